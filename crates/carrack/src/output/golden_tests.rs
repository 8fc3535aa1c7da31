//! Golden files of what cannot be had from the program at will: every event and report as text and as JSON, and
//! the table of error codes.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, SystemTime};

use carrack_core::attributes::{AttributeKind, Time};
use carrack_core::failure::Retryable;
use carrack_core::location::Location;
use carrack_core::pace::limit::{Limit, Stage};
use carrack_core::pace::streams::{Change, Reason};
use carrack_core::report::{
    Counts, DestinationCounts, Differences, Done, EndFacts, ErrorCode, Event, Failure, Faults, FileDigests, Hop,
    ItemChange, ItemFailure, ItemKind, ItemReport, LinkReport, Outcome, PathTrace, ProgramSent, Progress, RateFall,
    Report, SessionEnds, Side, StreamsFrom, Unfinished, Unkept, UnkeptAttributes, UnkeptDirectories,
};
use carrack_core::request::{Durability, Encrypt, Existing, LinkKind, MainDigest, Verify};
use carrack_core::timeline::{Fact, StartStep, StepTaken};
use carrack_core::words::Word;
use serde_json::Value;

use super::sample::tests::full;
use super::timeline::write::first;
use super::{CopyTarget, human, json};
use crate::error::CommandError;
use crate::exit;
use crate::golden::compare;
use crate::json_schema::Schema;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn failure(code: ErrorCode, side: Side, message: &str) -> Failure {
    Failure::new(code, side, message)
}

fn denied() -> Failure {
    failure(ErrorCode::PermissionDenied, Side::Source, "open: Permission denied")
}

fn link(kind: LinkKind, address: &str, cipher: &str) -> LinkReport {
    let streams_from = if kind == LinkKind::Reverse { StreamsFrom::Kept } else { StreamsFrom::Path };
    LinkReport { kind, address: address.into(), from: None, streams: 4, streams_from, cipher: cipher.into() }
}

fn item(path: &[u8], kind: ItemKind, outcome: Outcome) -> Event {
    let digests = FileDigests { blake3: Some([0xab; 32]), adler32: Some(0xab), crc32c: Some(1), xxh128: None };
    Event::Item(ItemReport { path: path.to_vec(), kind, size: 12_345, digests, judgment: None, outcome })
}

fn changes() -> Vec<Event> {
    let differs = Differences { content: true, size: true, ..Differences::default() };
    let change = |done| ItemChange {
        path: b"d/f".to_vec(),
        kind: ItemKind::File,
        size: 5,
        mtime: Some(Time::new(6, 7)),
        leads_to: Vec::new(),
        digests: FileDigests::default(),
        done,
    };
    [Done::Created, Done::Replaced(differs), Done::Deleted].map(|done| Event::Changed(change(done))).into()
}

fn events() -> Vec<Event> {
    let kinds = [LinkKind::Memory, LinkKind::Direct, LinkKind::Reverse, LinkKind::Tunnel];
    let links = kinds.map(|kind| Event::Linked(link(kind, "h:1", "TLS13_AES_128_GCM_SHA256")));
    let reasons = [Reason::TryMore, Reason::TryFewer, Reason::Back, Reason::Loss, Reason::LossOfPath, Reason::NotMade];
    let streams =
        reasons.map(|reason| Event::Streams(Change { streams: 4, before: 1, rate: 1.25e7, loss: 0.25, reason }));
    let mut events = vec![Event::Resolved {
        sources: vec!["a".into(), "b".into()],
        targets: vec!["d/a".into(), "d/b".into()],
        directory: None,
    }];
    let slim = ProgramSent { host: "me@far".into(), slim: true, bytes: 2_916_248, size: 6_750_784, compressed: true };
    let itself = ProgramSent { slim: false, bytes: 8_123_456, size: 8_123_456, compressed: false, ..slim.clone() };
    events.extend([slim, itself].map(Event::ProgramSent));
    events.extend(links);
    events.extend(changes());
    events.push(Event::Linked(link(LinkKind::Direct, "h:1", "none")));
    events.extend(streams);
    events.push(Event::Note("the host key was pinned\u{1b}".into()));
    events.extend([Side::Source, Side::Destination, Side::Link, Side::Command].map(|side| Event::SessionLost {
        failure: failure(ErrorCode::ConnectionLost, side, "the connection was lost"),
        attempt: 2,
        pause: Duration::from_millis(1500),
    }));
    let end = EndFacts {
        name: "far".into(),
        program: "0.1.0".into(),
        protocol: 1,
        system: "Linux 6.8.0".into(),
        processors: 8,
        congestion: "cubic".into(),
        key: None,
    };
    let silent = EndFacts { system: String::new(), ..end.clone() };
    events.push(Event::Ends(Box::new(SessionEnds { session: 1, source: end, destination: silent })));
    events.extend([Side::Source, Side::Destination].map(|side| Event::Sample(Box::new(full(side)))));
    events.push(Event::StreamEnded { failure: None });
    events.push(Event::StreamEnded { failure: Some(denied()) });
    let fall = RateFall { rate: 1.38e8, usual: 2e8, over: Duration::from_secs(10), limit: None };
    let network = Limit { stage: Stage::Network, share: 0.5 };
    events.extend([fall, RateFall { limit: Some(network), ..fall }].map(Event::RateFell));
    let hop = |address: Option<[u8; 4]>| Hop {
        address: address.map(Into::into),
        round_trip: address.map(|_| Duration::from_micros(312)),
    };
    let path = PathTrace {
        to: Some([10, 2, 0, 1].into()),
        hops: vec![hop(Some([10, 1, 0, 1])), hop(None)],
        mtu_bytes: Some(1400),
        why: "nobody behind hop 1 answers probes".into(),
        ..PathTrace::default()
    };
    events.push(Event::Path { side: Side::Source, path });
    let (side, step) = (Side::Destination, StartStep::Reserve);
    let taken = StepTaken { side, step, at_us: 250_000, error_us: 40, took_us: 160_000, round_trip_us: 80_000 };
    let near = StepTaken { side: Side::Link, step: StartStep::Dial, round_trip_us: 0, ..taken };
    events.extend([taken, near].map(|taken| Event::Step { session: 0, taken }));
    events.push(Event::Progress(Progress {
        files_done: 1,
        bytes_done: 2,
        files_found: 3,
        bytes_found: 4,
        scan_complete: true,
        files_failed: 5,
    }));
    for kind in [ItemKind::File, ItemKind::Directory, ItemKind::Symlink, ItemKind::Special] {
        events.push(item(b"d/name", kind, Outcome::Published));
    }
    events.push(item(b"d/\xff\n", ItemKind::File, Outcome::Kept));
    events.push(item(b"d/name", ItemKind::File, Outcome::Failed(denied())));
    events
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn reports() -> Vec<(&'static str, Report)> {
    let report = Report {
        counts: Counts { files: 2, bytes: 3_000_000, ..Counts::default() },
        elapsed: Duration::from_secs(2),
        moving: Duration::from_millis(1500),
        link: Some(link(LinkKind::Direct, "10.0.0.2:41234", "TLS13_AES_128_GCM_SHA256")),
        verify: Some(Verify::Wire),
        digest: Some(MainDigest::Blake3),
        encrypt: Some(Encrypt::Tls),
        durability: Some(Durability::Group),
        durable: Some(true),
        ..Report::default()
    };
    let unkept_times = Unkept { count: 1, path: Vec::new(), wanted: Time::new(1, 2), kept: Time::new(1, 0) };
    let kinds = BTreeMap::from([1, 2, 3, 4, 5, 6, 7, 300].map(|kind| (AttributeKind(kind), u64::from(kind))));
    let unkept_attributes = UnkeptAttributes { count: 301, path: b"a".to_vec(), kinds };
    let unkept_directories = UnkeptDirectories { count: 3, paths: vec![b"d".to_vec(), b"\xff".to_vec()] };
    let everything = Report {
        counts: Counts {
            symlinks: 1,
            directories: 3,
            files_kept: 4,
            files_failed: 120,
            files_vanished: 1,
            specials_skipped: 1,
            leftovers_skipped: 2,
            files_resumed: 1,
            bytes_resumed: 1_000_000,
            ..report.counts
        },
        failures: vec![
            ItemFailure { path: b"a".to_vec(), failure: denied() },
            ItemFailure {
                path: b"\xff".to_vec(),
                failure: failure(ErrorCode::NoSpace, Side::Destination, "write: No space left"),
            },
        ],
        verify: Some(Verify::Disk),
        faults: Faults {
            digest_mismatches: 1,
            resent_after_loss: 2,
            stragglers: 3,
            streams_lost: 4,
            streams_altered: 5,
            blocks_rotten: 6,
            items_again: 7,
            sessions_lost: 8,
        },
        existing: Some(Existing::Older),
        unkept_permissions: Some(Unkept { count: 2, path: b"a".to_vec(), wanted: 0o640, kept: 0o755 }),
        unkept_times: Some(unkept_times),
        unkept_attributes: Some(unkept_attributes),
        unkept_directories,
        at_destination: DestinationCounts {
            parts_reread: 1,
            bytes_reread: 1024,
            files_not_read_back: 3,
            ..Default::default()
        },
        unfinished: Unfinished { count: 2, paths: vec![b"d/big".to_vec(), b"\xff".to_vec()] },
        unfinished_in: b"/there".to_vec(),
        limit: Some(Limit { stage: Stage::Network, share: 0.93 }),
        durable: Some(false),
        ..report.clone()
    };
    let clear = Report {
        verify: Some(Verify::None),
        digest: None,
        encrypt: Some(Encrypt::None),
        durability: Some(Durability::None),
        link: Some(link(LinkKind::Reverse, "h:1", "none")),
        durable: Some(false),
        ..report.clone()
    };
    let pipe = Report { durable: None, verify: Some(Verify::Source), ..report.clone() };
    let ended =
        Report { error: Some(failure(ErrorCode::Interrupted, Side::Command, "interrupted")), ..Report::default() };
    let stages = [
        Stage::SourceStorage,
        Stage::SourceProcessors,
        Stage::Network,
        Stage::DestinationProcessors,
        Stage::DestinationStorage,
        Stage::RateLimit,
        Stage::Reader,
        Stage::SourceMetadata,
        Stage::DestinationMetadata,
    ];
    let limited =
        stages.map(|stage| ("limited", Report { limit: Some(Limit { stage, share: 0.5 }), ..report.clone() }));
    let next = Some(Limit { stage: Stage::RateLimit, share: 0.2 });
    let measured = [
        (Stage::Window, Fact::WindowBytes(262_144)),
        (Stage::Loss, Fact::Resent(0.0123)),
        (Stage::RoundTrip, Fact::RoundTripUs(80_000)),
        (Stage::SourceProcessors, Fact::Starved(0.6)),
    ];
    let measured = measured.map(|(stage, fact)| {
        let limit = Some(Limit { stage, share: 0.7 });
        ("limited", Report { limit, limit_fact: Some(fact), limit_next: next, ..report.clone() })
    });
    let mut reports = vec![
        ("a good copy", report),
        ("a copy with everything", everything),
        ("in the clear", clear),
        ("to a pipe", pipe),
        ("ended", ended),
    ];
    reports.extend(limited);
    reports.extend(measured);
    reports
}

/// A value as it is printed, held against the schema.
fn line(value: &Value) -> String {
    Schema::published().check(value).unwrap_or_else(|why| panic!("{why}"));
    format!("{}\n", json::text(value))
}

#[test]
fn golden_events() {
    let mut text = String::new();
    let mut objects = String::new();
    for event in events() {
        for verbose in 0..=2 {
            human::event(&event, verbose).iter().for_each(|line| writeln!(text, "{verbose} {line}").expect("text"));
        }
        objects += &line(&json::event(&event, NOW));
    }
    let asked = serde_json::json!({ "sources": ["a"], "destination": "b/", "streams": null, "rate_limit": 5 });
    objects += &line(&first(asked, "Linux 6.8.0", NOW));
    compare("events.txt", &text);
    compare("json/events.txt", &objects);
}

#[test]
fn golden_reports() {
    let mut text = String::new();
    let mut objects = String::new();
    for (name, report) in reports() {
        writeln!(text, "# {name}").expect("text");
        let place = CopyTarget::Place(Location::Local(b"there".to_vec()));
        let lines = [
            human::report(&report, false),
            human::unfinished(&report, &place).into_iter().collect(),
            human::left_out(&report).into_iter().collect(),
            human::unkept_directories(&report),
            human::failures(&report),
        ];
        lines.iter().flatten().for_each(|line| writeln!(text, "{line}").expect("text"));
        objects += &line(&json::summary(&report, false, exit::of_report(&report), NOW));
    }
    let usage = CommandError::usage("the command cannot be carried out").hint("one thing to try").hint("and another");
    objects += &line(&json::error(&usage.failure, human::hint_of_error(&usage), &usage.hints, usage.exit_code(), NOW));
    compare("reports.txt", &text);
    compare("json/reports.txt", &objects);
}

#[test]
fn golden_error_codes() {
    let mut table = String::from("number name exit-code blame may-pass retryable meaning\n");
    for code in ErrorCode::ALL {
        let (number, name, exit, blame) = (code.number(), code.name(), exit::of_code(*code), code.blame());
        let (may_pass, retryable) = (code.may_pass(), code.retryable().name());
        writeln!(table, "{number} {name} {exit} {blame:?} {may_pass} {retryable} {code}").expect("text");
    }
    compare("error-codes.txt", &table);
}

/// The words in the schema are those of the program, all of them.
#[test]
fn schema_lists_every_word() {
    fn names<W: Word>() -> Vec<&'static str> {
        W::ALL.iter().map(|word| word.name()).collect()
    }
    let schema = Schema::published();
    for (place, words) in [
        ("/$defs/code/enum", ErrorCode::ALL.iter().map(|code| code.name()).collect()),
        ("/$defs/side/enum", names::<Side>()),
        ("/$defs/retryable/enum", names::<Retryable>()),
        ("/$defs/kind/enum", names::<ItemKind>()),
        ("/$defs/link_kind/enum", names::<LinkKind>()),
        ("/$defs/streams/properties/reason/enum", names::<Reason>()),
        ("/$defs/reason/enum", names::<carrack_core::failure::Reason>()),
        ("/$defs/copy_summary/properties/verify/oneOf/1/enum", names::<Verify>()),
        ("/$defs/copy_summary/properties/digest/oneOf/1/enum", names::<MainDigest>()),
        ("/$defs/copy_summary/properties/encrypt/oneOf/1/enum", names::<Encrypt>()),
        ("/$defs/copy_summary/properties/durability/oneOf/1/enum", names::<Durability>()),
        ("/$defs/limit/properties/stage/enum", names::<Stage>()),
    ] {
        assert_eq!(schema.at(place), &serde_json::json!(words), "{place}");
    }
    let codes = schema.at("/$defs/exit_code/enum").as_array().expect("a list");
    for code in ErrorCode::ALL {
        assert!(codes.contains(&exit::of_code(*code).into()), "{}", code.name());
    }
}
