//! The words of a report.

use std::time::Duration;

use carrack_core::attributes::Time;
use carrack_core::limits;
use carrack_core::pace::packing::Compressible;
use carrack_core::pace::streams::Reason;
use carrack_core::report::{Counts, ErrorCode, Faults, FileDigests, ItemFailure, ItemKind, Progress, StreamsFrom};

use super::*;

fn denied(message: &str) -> Failure {
    Failure::new(ErrorCode::PermissionDenied, Side::Source, message)
}

fn link_report(kind: LinkKind) -> LinkReport {
    LinkReport {
        kind,
        address: "10.0.0.2:41234".into(),
        from: None,
        streams: 4,
        streams_from: StreamsFrom::Path,
        cipher: "TLS13_AES_128_GCM_SHA256".into(),
    }
}

fn finished() -> Report {
    Report {
        counts: Counts { files: 20_000, bytes: 81_920_000, ..Counts::default() },
        elapsed: Duration::from_millis(640),
        moving: Duration::from_millis(610),
        link: Some(link_report(LinkKind::Direct)),
        verify: Some(Verify::Wire),
        digest: Some(MainDigest::Blake3),
        durable: Some(true),
        ..Report::default()
    }
}

#[test]
fn summary_of_a_good_copy() {
    assert_eq!(
        report(&finished(), false),
        [
            "copied 20,000 files, 81.9 MB (81,920,000 bytes) in 0.64 s: 32,786 files/s, 0.13 GB/s (1.07 Gb/s)",
            "verified: BLAKE3 of what the receiver wrote, before each name appeared",
            "link: direct to 10.0.0.2:41234, 4 streams, TLS13_AES_128_GCM_SHA256",
            "durable: yes",
        ]
    );
    assert!(failures(&finished()).is_empty());
}

#[test]
fn compression_is_told_where_it_was_asked_for() {
    let line = |compress, bytes_compressed, bytes_compressed_to, bytes_not_shrunk| {
        let counts = Counts { bytes_compressed, bytes_compressed_to, bytes_not_shrunk, ..finished().counts };
        let lines = report(&Report { compress, counts, ..finished() }, false);
        lines.into_iter().find(|line| line.starts_with("compressed")).unwrap_or_default()
    };
    let (yes, all) = (Some(Compressible::Yes), finished().counts.bytes);
    assert_eq!(line(None, 0, 0, 0), "");
    assert_eq!(line(yes, all, 20 << 20, 0), "compressed: 78.1 MiB travelled as 20.0 MiB");
    let part = "compressed: 40.0 MiB travelled as 10.0 MiB, the rest as it is";
    assert_eq!(line(yes, 40 << 20, 10 << 20, all - (40 << 20)), format!("{part}: 38.1 MiB did not shrink"));
    assert_eq!(line(yes, 40 << 20, 10 << 20, 0), format!("{part}: the path is quicker than this work"));
    assert_eq!(line(yes, 0, 0, 0), "compressed: nothing: the path is quicker than this work");
    assert_eq!(line(yes, 0, 0, all), "compressed: nothing: 78.1 MiB did not shrink");
    assert_eq!(line(Some(Compressible::Local), 0, 0, 0), "compressed: nothing: nothing travels within one host");
    let old = "compressed: nothing: the destination's side runs a carrack that cannot unpack";
    assert_eq!(line(Some(Compressible::OldDestination), 0, 0, 0), old);
    let nothing = Report { compress: yes, counts: Counts::default(), ..finished() };
    let said = "compressed: nothing: there was next to nothing to send";
    assert!(report(&nothing, false).iter().any(|line| line == said));
}

#[test]
fn program_sent_is_told_with_verbose_only() {
    let sent = ProgramSent { host: "far".into(), slim: true, bytes: 2_916_248, size: 6_750_784, compressed: true };
    let line = |sent: &ProgramSent| event(&Event::ProgramSent(sent.clone()), 1).concat();
    assert_eq!(
        line(&sent),
        "far: the slim program was sent there, 2.8 MiB (2,916,248 bytes) through ssh, compressed; it has 6.4 MiB (6,750,784 bytes)"
    );
    let whole = ProgramSent { slim: false, compressed: false, bytes: sent.size, ..sent.clone() };
    assert!(line(&whole).starts_with("far: this program itself was sent there, 6.4 MiB"), "{}", line(&whole));
    assert!(line(&whole).contains("as it is"), "{}", line(&whole));
    assert!(event(&Event::ProgramSent(sent), 0).is_empty());
}

#[test]
fn unkept_metadata_is_told_with_an_example() {
    use carrack_core::report::Unkept;
    let permissions = Unkept { count: 1200, path: b"a/b".to_vec(), wanted: 0o640, kept: 0o755 };
    let times =
        Unkept { count: 1, path: Vec::new(), wanted: Time::new(16_725_225_600, 0), kept: Time::new(15_032_385_535, 5) };
    let unkept = Report { unkept_permissions: Some(permissions), unkept_times: Some(times), ..finished() };
    let line = "not kept by the destination: permissions of 1,200 items (first a/b: 0640 became 0755), times of 1 item (first .: \
                2500-01-01T00:00:00.000000000Z became 2446-05-10T22:38:55.000000005Z)";
    assert!(report(&unkept, false).iter().any(|told| told == line), "{:?}", report(&unkept, false));
}

#[test]
fn attributes_that_were_not_kept_are_counted_by_kind() {
    use carrack_core::attributes::AttributeKind;
    let told = |kinds: &[(u16, u64)]| {
        let kinds = kinds.iter().map(|(kind, items)| (AttributeKind(*kind), *items)).collect();
        unkept_attributes(&UnkeptAttributes { count: 1200, path: b"d/\x1b".to_vec(), kinds })
    };
    assert_eq!(told(&[(1, 3), (4, 1), (5, 2)]), "not kept: 3 owners, 1 hard link, 2 ACLs; first d/\\x1b");
    let rest = "not kept: 1 owner, 1,200 groups, set-id or sticky bits of 1 item, 2 hard links, 1 ACL, capabilities of 1 item, \
                extended attributes of 2 items, attributes of kind 700 of 3 items; first d/\\x1b";
    assert_eq!(told(&[(1, 1), (2, 1200), (3, 1), (4, 2), (5, 1), (6, 1), (7, 2), (700, 3)]), rest);
    // An older end does not count each kind.
    assert_eq!(told(&[(1, 0), (700, 0)]), "not kept: attributes of 1,200 items (owner, kind 700); first d/\\x1b");
}

#[test]
fn directories_whose_permissions_were_not_kept_are_counted_and_named() {
    use carrack_core::report::{Unkept, UnkeptDirectories};
    let permissions = Unkept { count: 4, path: b"f".to_vec(), wanted: 0o640, kept: 0o755 };
    let directories = UnkeptDirectories { count: 3, paths: vec![b"d".to_vec(), Vec::new()] };
    let unkept = Report { unkept_permissions: Some(permissions), unkept_directories: directories, ..finished() };
    let line = "not kept by the destination: permissions of 4 items, 3 directories of them (first f: 0640 became 0755)";
    assert!(report(&unkept, false).iter().any(|told| told == line), "{:?}", report(&unkept, false));
    let named = ["d", ".", "1 more directory"].map(|name| format!("permissions not kept: {name}"));
    assert_eq!(unkept_directories(&unkept), named);
    assert!(unkept_directories(&finished()).is_empty());
}

#[test]
fn xxh128_is_not_taken_for_more_than_it_is() {
    let clear = LinkReport { cipher: "none".into(), ..link_report(LinkKind::Direct) };
    let said = |digest, verify, durable| {
        let finished = Report { digest, verify: Some(verify), durable, link: Some(clear.clone()), ..finished() };
        report(&finished, false)[1..3].to_vec()
    };
    let link = "link: direct to 10.0.0.2:41234, 4 streams, in the clear, ";
    let xxh128 = Some(MainDigest::Xxh128);
    assert_eq!(
        said(xxh128, Verify::Wire, Some(true)),
        [
            "verified: xxh128 of each block of what the receiver wrote, before each name appeared; it finds accidents, not forgery",
            &format!("{link}headers authenticated, content not"),
        ]
    );
    assert_eq!(
        said(xxh128, Verify::Disk, Some(true))[0],
        "verified: xxh128 of each block of what storage gave back, before each name appeared; it finds accidents, not forgery"
    );
    assert_eq!(
        said(xxh128, Verify::Wire, None)[0],
        "verified: xxh128 of each block of what the receiver got; it finds accidents, not forgery"
    );
    assert_eq!(said(None, Verify::None, Some(true))[1], format!("{link}headers authenticated, content not"));
    let blake3 = said(Some(MainDigest::Blake3), Verify::Wire, Some(true));
    assert_eq!(blake3[1], format!("{link}every frame authenticated"));
}

#[test]
fn summary_tells_skipped_items_by_their_rule_and_counts_what_was_verified() {
    let lines = |existing, files, kept| {
        let counts = Counts { files, files_kept: kept, ..Counts::default() };
        report(&Report { counts, existing: Some(existing), ..finished() }, false)
    };
    let rules = [
        (Existing::Keep, "skipped: 2,000, existing there (content not compared)"),
        (Existing::Only, "skipped: 2,000, not existing there (content not compared)"),
        (Existing::Older, "skipped: 2,000, not older there (content not compared)"),
    ];
    for (existing, line) in rules {
        let some = lines(existing, 1, 2000);
        assert_eq!(some[1], line);
        assert_eq!(some[2], "verified: 1 file, BLAKE3 of what the receiver wrote, before each name appeared");
        assert_eq!(lines(existing, 0, 2000)[2], "verified: nothing, because no file was copied");
    }
}

#[test]
fn summary_of_a_copy_with_everything() {
    let all = Report {
        counts: Counts { files: 1, symlinks: 2, directories: 1, files_kept: 3, ..finished().counts },
        link: Some(link_report(LinkKind::Tunnel)),
        verify: Some(Verify::None),
        existing: Some(Existing::Older),
        faults: Faults { digest_mismatches: 2, stragglers: 1, ..Faults::default() },
        durable: Some(false),
        ..finished()
    };
    let lines = report(&all, false);
    assert!(lines[0].starts_with("copied 1 file, 2 symbolic links, 1 directory, 81.9 MB"), "{}", lines[0]);
    assert!(!lines[0].contains("files/s"), "{}", lines[0]);
    assert_eq!(lines[1], "skipped: 3, not older there (content not compared)");
    assert_eq!(lines[2], "verified: no, as asked (--verify none)");
    assert_eq!(lines[3], "link: tunnel over the control connection, 4 streams, TLS13_AES_128_GCM_SHA256");
    assert_eq!(lines[4], "recovered: 2 sent again after a digest mismatch, 1 sent again because their stream was slow");
    assert!(lines[5].starts_with("durable: no"));
}

#[test]
fn rate_is_of_the_time_and_the_bytes_that_moved() {
    let line = |report: Report| self::report(&report, false).remove(0);
    let counts = Counts { files: 1, ..finished().counts };
    let slow_start = Report { counts, elapsed: Duration::from_secs(1), ..finished() };
    assert_eq!(
        line(slow_start.clone()),
        "copied 1 file, 81.9 MB (81,920,000 bytes) in 1.00 s (0.61 s of transfer): 0.13 GB/s (1.07 Gb/s)"
    );
    let counts = Counts { bytes_resumed: 61_440_000, ..counts };
    let resumed = Report { counts, elapsed: Duration::from_millis(610), ..slow_start };
    assert_eq!(
        line(resumed.clone()),
        "copied 1 file, 81.9 MB (81,920,000 bytes) in 0.61 s: 0.034 GB/s (0.27 Gb/s) for the bytes sent now"
    );
    let counts = Counts { files: 2, files_resumed: 2, bytes_resumed: 81_920_000, ..counts };
    let nothing_sent = Report { counts, ..resumed.clone() };
    assert_eq!(line(nothing_sent), "copied 2 files, 81.9 MB (81,920,000 bytes) in 0.61 s");
    let faults = Faults { sessions_lost: 1, ..Faults::default() };
    assert!(line(Report { faults, ..resumed }).ends_with("in 0.61 s: 0.13 GB/s (1.07 Gb/s)"));
}

#[test]
fn first_line_counts_failed_items() {
    let line = |failed, dry_run| {
        let counts = Counts { files_failed: failed, ..finished().counts };
        report(&Report { counts, ..finished() }, dry_run).remove(0)
    };
    assert!(line(1, false).ends_with("(1.07 Gb/s); 1 item failed"), "{}", line(1, false));
    assert_eq!(line(2, true), "would copy 20,000 files, 81.9 MB (81,920,000 bytes); 2 items failed");
}

#[test]
fn plan_claims_nothing() {
    assert_eq!(report(&finished(), true), ["would copy 20,000 files, 81.9 MB (81,920,000 bytes)"]);
}

#[test]
fn summary_of_nothing_moved_divides_by_nothing() {
    assert_eq!(report(&Report::default(), false)[0], "copied 0 files, 0 bytes in 0.00 s");
}

#[test]
fn failures_say_side_path_and_how_many_more() {
    let item = |path: &[u8], message: &str| ItemFailure { path: path.to_vec(), failure: denied(message) };
    let failed = Report {
        counts: Counts { files_failed: 4, ..finished().counts },
        failures: vec![
            item(b"a/b", "permission denied (open)"),
            ItemFailure { failure: denied("permission denied (open)").at_path(&b"/data/a/c"[..]), ..item(b"a/c", "") },
            item(b"a/\x1b\xff", "gone\x1b[2J"),
        ],
        error: Some(Failure::new(ErrorCode::Usage, Side::Command, "no")),
        ..finished()
    };
    assert_eq!(
        failures(&failed),
        [
            "failed: source: a/b: permission denied (open)",
            "failed: source: /data/a/c: permission denied (open)",
            "failed: source: a/\\x1b\\xff: gone\\x1b[2J",
            "failed: 1 more item not named here (--json, --log-file and --failed-list name every one)",
            "error: no",
        ]
    );
}

#[test]
fn failures_of_one_cause_are_one_line_with_a_count() {
    let item = |path: &[u8], at: &[u8], why: &str| {
        let failure = denied(why).at_path(at);
        ItemFailure { path: path.to_vec(), failure }
    };
    let failed = |failures: Vec<ItemFailure>| {
        let counts = Counts { files_failed: failures.len() as u64, ..finished().counts };
        Report { counts, failures, ..finished() }
    };
    let lines = failures(&failed(vec![
        item(b"d/a", b"d", "in the way"),
        item(b"other", b"other", "gone"),
        item(b"d", b"d", "in the way"),
        item(b"d/e/b", b"d", "in the way"),
        item(b"d/c", b"d", "another cause"),
        item(b"dd", b"d", "in the way"),
    ]));
    let told = [
        "failed: source: d: in the way (2 items below it failed as well)",
        "failed: source: other: gone",
        "failed: source: d/c: d: another cause",
        "failed: source: dd: d: in the way",
    ];
    assert_eq!(lines, told);
    // An item that failed by itself is one line, and those that the report does not name are counted apart.
    let lines = failures(&Report {
        counts: Counts { files_failed: 9, ..finished().counts },
        ..failed(vec![item(b"d", b"d", "gone"), item(b"d", b"d", "gone")])
    });
    assert_eq!(lines[..2], ["failed: source: d: gone", "failed: source: d: gone"]);
    assert!(lines[2].starts_with("failed: 7 more items not named here"), "{lines:?}");
}

#[test]
fn count_of_one_cause_is_a_least_where_not_all_items_are_named() {
    let below = |number: u32| {
        let path = format!("d/{number}").into_bytes();
        ItemFailure { path, failure: denied("in the way").at_path(&b"d"[..]) }
    };
    let of = |failed: u64| {
        let failures_told = (0..limits::FAILURES_TOLD as u32).map(below).collect();
        failures(&Report {
            counts: Counts { files_failed: failed, ..finished().counts },
            failures: failures_told,
            ..finished()
        })
    };
    assert_eq!(of(100), ["failed: source: d: in the way (100 items below it failed as well)"]);
    let lines = of(1000);
    assert_eq!(lines[0], "failed: source: d: in the way (at least 100 items below it failed as well)");
    assert!(lines.len() == 2 && lines[1].starts_with("failed: 900 more items not named here"), "{lines:?}");
}

#[test]
fn path_is_named_once_and_never_mistaken_for_a_word() {
    let cases = [
        (&b"a"[..], "not a directory", "failed: source: a: not a directory"),
        (b"denied", "permission denied", "failed: source: denied: permission denied"),
        (b"c", "abc: gone", "failed: source: c: abc: gone"),
    ];
    for (path, message, line) in cases {
        assert_eq!(failed_item(path, &denied(message)), line);
    }
    for (path, named, line) in
        [(&b"c"[..], &b"/data/a/c"[..], "failed: source: /data/a/c: gone"), (b"c", b"c", "failed: source: c: gone")]
    {
        assert_eq!(failed_item(path, &denied("gone").at_path(named)), line);
    }
    assert_eq!(failed_item(b"c", &denied("gone").at_end("h")), "failed: source: h: c: gone");
}

#[test]
fn events_are_lines() {
    let digests = FileDigests { blake3: Some([0x11; 32]), ..FileDigests::default() };
    let item = |outcome| {
        Event::Item(ItemReport {
            path: b"a\n".to_vec(),
            kind: ItemKind::File,
            size: 1234,
            digests,
            judgment: None,
            outcome,
        })
    };
    let resolved = Event::Resolved {
        sources: vec!["a\x1bx".into(), "b\\x00".into()],
        targets: vec!["c".into(), "d".into()],
        directory: None,
    };
    let more = Change { streams: 8, before: 4, rate: 2e9, loss: 0.0, reason: Reason::TryMore };
    let cases = [
        (resolved, 0, vec!["a\\x1bx -> c".to_owned(), "b\\x00 -> d".to_owned()]),
        (Event::Note("pushed".into()), 0, vec!["note: pushed".to_owned()]),
        (Event::Streams(more), 0, Vec::new()),
        (
            Event::Streams(more),
            1,
            vec![
                "8 streams from now on, after 4 with 2.00 GB/s (16.0 Gb/s): to see whether more are faster".to_owned(),
            ],
        ),
        (item(Outcome::Published), 0, vec![]),
        (item(Outcome::Published), 1, vec!["a\\x0a".to_owned()]),
        (item(Outcome::Published), 2, vec![format!("a\\x0a  1,234 bytes  {}", "11".repeat(32))]),
        (item(Outcome::Kept), 1, vec!["kept: a\\x0a".to_owned()]),
        (item(Outcome::Failed(denied("x"))), 2, vec![]),
        (Event::Linked(link_report(LinkKind::Memory)), 0, vec![]),
        (Event::Linked(link_report(LinkKind::Memory)), 1, vec!["link: within this process".to_owned()]),
        (Event::Progress(Progress::default()), 2, vec![]),
    ];
    for (told, verbose, lines) in cases {
        assert_eq!(event(&told, verbose), lines, "{told:?}");
    }
}
