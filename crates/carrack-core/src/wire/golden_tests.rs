//! Every message as it stands on the wire, beside `golden.txt`: a line for each, with its name and its bytes. A
//! difference is another wire, which a peer of the same version does not understand.
//! `CARRACK_GOLDEN=write cargo test -p carrack-core golden` writes the file anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::control::*;
use super::frame::{EntryHeader, EntryKind};
use super::peer::{Answer, DirectoryAttributes, ItemResult, Offer, PeerMessage, QueryItem};
use super::{Version, attributes, mux::Channel};
use crate::attributes::{Attribute, AttributeKind, Attributes, KeptAttributes, OtherAttributes, Time};
use crate::digest::{BlockDigest, FileDigests};
use crate::evidence::EvidenceText;
use crate::failure::{ErrorCode, Failure, Reason, Side};
use crate::growing::{GrowingLock, GrowingSources};
use crate::ids::{BundleId, ItemId, StreamId};
use crate::pace::limit::StageTimes;
use crate::plan::compare::State;
use crate::report::{
    Counts, DestinationCounts, Faults, Hop, ItemKind, ItemReport, Outcome, PathTrace, Progress, Unfinished, Unkept,
    UnkeptAttributes, UnkeptDirectories, Unsynced,
};
use crate::request::{Confinement, CongestionControl, Digests, Durability, Encrypt, Existing, InPlace, Verify};
use crate::timeline::{
    self, DeviceCounts, DeviceSample, InterfaceCounts, InterfaceSample, Pressure, ProcessorState, ProcessorTime, Queue,
    QueueFill, Sample, StageTime, StartStep, StepTime, StreamSample, TcpCounts, TcpState, ThreadTime, Throttled, Work,
};

mod compared;
mod measuring;

/// Its name, its bytes.
type Line = (&'static str, Vec<u8>);

#[test]
fn messages_are_encoded_as_ever() {
    let mut lines = asks();
    lines.extend(begins());
    lines.extend(tells());
    lines.extend(measuring::tells());
    lines.extend(ends());
    lines.extend(peer_messages());
    lines.extend(attributed_messages());
    lines.extend(entries());
    lines.extend(compared::lines());
    let mut text = String::new();
    for (name, bytes) in lines {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{name} {hex}").unwrap();
    }
    if std::env::var("CARRACK_GOLDEN").is_ok_and(|word| word == "write") {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/wire/golden.txt");
        std::fs::write(file, &text).unwrap();
    }
    let golden: Vec<&str> = include_str!("golden.txt").lines().collect();
    for (line, golden) in text.lines().zip(&golden) {
        assert_eq!(line, *golden);
    }
    assert_eq!(text.lines().count(), golden.len());
}

/// So that no message is forgotten: every field of both choices has a line.
#[test]
fn golden_lines_are_there_for_every_message() {
    let golden = include_str!("golden.txt");
    for (kind, tags) in [("ask", 2..=24), ("tell", 2..=26), ("peer", 1..=23)] {
        let lines = golden.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(' '));
        let found: Vec<u32> = lines.filter_map(|line| tag(line.split_once(' ')?.1)).collect();
        for tag in tags {
            assert!(found.contains(&tag), "no line of {kind} has field {tag}");
        }
    }
}

/// The number of a message's last field: its choice.
fn tag(hex: &str) -> Option<u32> {
    let bytes: Vec<u8> = (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..][..2], 16).unwrap()).collect();
    let mut rest = &bytes[..];
    let number = |rest: &mut &[u8]| prost::encoding::decode_varint(rest).ok();
    let mut last = None;
    while !rest.is_empty() {
        let key = number(&mut rest)?;
        let value = number(&mut rest)?;
        rest = if key & 7 == 2 { rest.get(usize::try_from(value).ok()?..)? } else { rest };
        last = u32::try_from(key >> 3).ok();
    }
    last
}

fn ask(name: &'static str, ask: Ask) -> Line {
    let bytes = ask.clone().encode(300);
    assert_eq!(Ask::decode(&bytes), Ok((300, Ok(ask))), "{name}");
    (name, bytes)
}

/// So many bytes, the first of this value, each one more than the one before.
fn counting<const BYTES: usize>(first: u8) -> [u8; BYTES] {
    std::array::from_fn(|at| first + at as u8)
}

fn session() -> SessionKey {
    SessionKey { id: counting(1), secret: counting(17), encrypt: Encrypt::Tls }
}

fn source(origin: Origin, target: &[u8]) -> SourceSpec {
    SourceSpec { origin, target: target.to_vec() }
}

fn asks() -> Vec<Line> {
    let dial = Dial {
        session: session(),
        addresses: vec!["192.0.2.1:4001".to_owned(), "[2001:db8::1]:4002".to_owned()],
        pin: counting(50),
        first: StreamId(32_768),
        count: 3,
        timeout: Duration::from_millis(6200),
        segment: 0,
        tell_connected: false,
    };
    let path = |path: &[u8]| Origin::Path(path.to_vec());
    let sources = vec![source(path(b"a/"), b""), source(path(b"b"), b"b")];
    let list = List { path: b"l".to_vec(), ..List::default() };
    let survey = Some(Survey { digests: Digests::BLAKE3, kept: KeptAttributes::ALL, after: b"a/b".to_vec() });
    let rename = |no_replace| Ask::Rename(Rename { from: b"f".to_vec(), to: b"t".to_vec(), no_replace });
    let unchanged = Some(State { kind: ItemKind::File, size: 5, mtime: Some(Time::new(-7, 8)) });
    let remove = Remove { path: b"r".to_vec(), recursive: true, go_on: false, empty_only: false, unchanged };
    let paths = || vec![b"p/q".to_vec(), b"\xff".to_vec(), Vec::new()];
    let selected = || vec![b"p/q".to_vec(), b"\xff".to_vec()];
    let ports = |ports| Ask::Listen(Listen { session: session(), ports });
    let range = Ports { low: 4000, high: 4999 };
    let sum = |digests| Ask::Sum(Sum { path: b"s".to_vec(), digests, one_file: false });
    let make = |path: &[u8], parents| Ask::MakeDirectory(MakeDirectory { path: path.to_vec(), parents });
    let hello = Hello { oldest: 1, newest: 1, program: "0.1.0".into(), token: "t0ken".into(), ..Hello::default() };
    let kept = Confinement { root: b"~/data".to_vec(), within: b"run/7".to_vec() };
    let confined = Hello { oldest: 1, newest: 1, confinement: Some(kept), ..Hello::default() };
    let about = EvidenceAbout { peer: Some("192.0.2.1".parse().unwrap()), directory: b"d".to_vec(), connections: 2 };
    let collect = Collect { path: b"c".to_vec(), older: Duration::from_secs(604_800), dry_run: true, marker: None };
    let read = ReadFile { path: b"r".to_vec(), offset: 5, length: 1 << 40, identity: None };
    vec![
        ask("ask Hello", Ask::Hello(hello)),
        ask("ask Hello-confined", Ask::Hello(confined)),
        ask("ask Inspect", Ask::Inspect(paths())),
        ask("ask Listen", ports(None)),
        ask("ask Listen-ports", ports(Some(range))),
        ask("ask Dial", Ask::Dial(dial.clone())),
        ask("ask Dial-segment", Ask::Dial(Dial { segment: 1200, ..dial.clone() })),
        ask("ask Dial-connected", Ask::Dial(Dial { tell_connected: true, ..dial })),
        ask("ask Tunnel", Ask::Tunnel(Tunnel { session: session(), channel: Channel(2), dials: true })),
        ask("ask Cancel", Ask::Cancel),
        ask("ask List", Ask::List(list.clone())),
        ask("ask List-recursive", Ask::List(List { recursive: true, ..list.clone() })),
        ask("ask List-itself", Ask::List(List { itself: true, ..list.clone() })),
        ask("ask List-sources", Ask::List(List { sources, ..list.clone() })),
        ask("ask List-usage", Ask::List(List { usage: true, ..list.clone() })),
        ask("ask List-survey", Ask::List(List { survey, ..list })),
        ask("ask MakeDirectory", make(b"m", false)),
        ask("ask MakeDirectory-parents", make(b"m/n", true)),
        ask("ask Rename", rename(false)),
        ask("ask Rename-no_replace", rename(true)),
        ask("ask Remove", Ask::Remove(remove.clone())),
        ask("ask Remove-go_on", Ask::Remove(Remove { recursive: false, go_on: true, ..remove.clone() })),
        ask("ask Remove-empty_only", Ask::Remove(Remove { recursive: false, empty_only: true, ..remove })),
        ask("ask Sum", sum(Digests::BLAKE3)),
        ask("ask Sum-adler32", sum(Digests { adler32: true, ..Digests::NONE })),
        ask("ask Sum-crc32c", sum(Digests { crc32c: true, ..Digests::NONE })),
        ask("ask Sum-xxh128", sum(Digests::XXH128)),
        ask("ask Bye", Ask::Bye),
        ask("ask Select", Ask::Select(selected())),
        ask("ask Expect", Ask::Expect(vec![(b"p/q".to_vec(), [7; 32]), (b"\xff".to_vec(), [8; 32])])),
        ask("ask Collect", Ask::Collect(collect.clone())),
        ask("ask Collect-marker", Ask::Collect(Collect { marker: Some(counting(100)), ..collect })),
        ask("ask Retire", Ask::Retire(5)),
        ask("ask Retire-wake", Ask::Wake(5)),
        ask("ask Clock", Ask::Clock),
        ask("ask Trace", Ask::Trace),
        ask("ask Evidence", Ask::Evidence(about)),
        ask("ask Read", Ask::Read(read.clone())),
        ask("ask Read-identity", Ask::Read(ReadFile { identity: Some(counting(1)), ..read })),
    ]
}

fn options() -> TransferOptions {
    TransferOptions {
        digests: Digests::NONE,
        ..TransferOptions::of(&Default::default(), Verify::Wire, 1 << 20, Version::NEWEST)
    }
}

fn begin(name: &'static str, options: TransferOptions, role: Role) -> Line {
    ask(name, Ask::Begin(Begin { options, role }))
}

fn begins() -> Vec<Line> {
    let all = || TransferOptions {
        digests: Digests { adler32: true, crc32c: true, ..Digests::BLAKE3 },
        rate_limit: Some(5_000_000),
        item_events: true,
        growing: GrowingSources::Follow,
        growing_idle_ms: 2500,
        growing_lock: GrowingLock::parse(".*.lock").ok(),
        in_place: InPlace::Append,
        congestion: CongestionControl::new("bbr"),
        ..options()
    };
    let xxh128 = TransferOptions { digests: Digests { adler32: true, crc32c: true, ..Digests::XXH128 }, ..all() };
    let send = |sources, known| Role::Send(SendRole { sources, known });
    let a = || vec![source(Origin::Path(b"/data/a".to_vec()), b"a")];
    let [stdin, zeros, random] = [Origin::Stdin, Origin::Zeros(77), Origin::Random(78)];
    let synthetic = vec![source(stdin, b"stdin"), source(zeros, b"zero"), source(random, b"random")];
    let into = ReceiveRole {
        sink: Sink::Files,
        directory: b"/in".to_vec(),
        targets: Vec::new(),
        marker: None,
        anew: false,
        partial: false,
        lacks_top: false,
        delete: None,
        backup: None,
    };
    let receive = |sink| Role::Receive(ReceiveRole { sink, ..into.clone() });
    let named = ReceiveRole { targets: vec![b"a".to_vec(), b"b/c".to_vec()], ..into.clone() };
    let marked = ReceiveRole { marker: Some(counting(100)), ..named.clone() };
    let numbered = |verify, existing, durability| TransferOptions { verify, existing, durability, ..options() };
    let (wire, replace, group) = (Verify::Wire, Existing::Replace, Durability::Group);
    vec![
        begin("ask Begin-send", options(), send(a(), false)),
        begin("ask Begin-send-all", all(), send(a(), true)),
        begin("ask Begin-send-xxh128", xxh128, send(a(), false)),
        begin("ask Begin-send-source", numbered(Verify::Source, replace, group), send(a(), false)),
        begin("ask Begin-send-synthetic", numbered(wire, replace, group), send(synthetic, false)),
        begin("ask Begin-receive", options(), Role::Receive(named)),
        begin("ask Begin-receive-all", all(), Role::Receive(marked.clone())),
        begin("ask Begin-receive-partial", all(), Role::Receive(ReceiveRole { partial: true, ..marked.clone() })),
        begin("ask Begin-receive-anew", all(), Role::Receive(ReceiveRole { anew: true, ..marked })),
        begin(
            "ask Begin-receive-stdout",
            numbered(Verify::Disk, Existing::Keep, Durability::Each),
            receive(Sink::Stdout),
        ),
        begin("ask Begin-receive-null", numbered(Verify::None, Existing::Only, Durability::None), receive(Sink::Null)),
        begin("ask Begin-receive-device", numbered(wire, Existing::Older, group), receive(Sink::Device)),
        begin("ask Begin-receive-memory", options(), receive(Sink::Memory)),
    ]
}

fn evidence() -> Vec<(String, EvidenceText)> {
    let text = |name: &str, text| (name.to_owned(), text);
    vec![
        text("proc/a", EvidenceText::Found("4096 1\n".to_owned())),
        text("b", EvidenceText::Absent),
        text("c", EvidenceText::Denied),
        text("d", EvidenceText::Failed("Input/output error".to_owned())),
    ]
}

fn way() -> PathTrace {
    let hop = |address: Option<&str>, micros| Hop {
        address: address.map(|address| address.parse().unwrap()),
        round_trip: Some(micros).filter(|micros| *micros > 0).map(Duration::from_micros),
    };
    PathTrace {
        to: Some("10.2.0.1".parse().unwrap()),
        hops: vec![hop(Some("fd77::1"), 312), hop(None, 0), hop(Some("10.2.0.1"), 1_000)],
        reached: true,
        mtu_bytes: Some(1_400),
        is_mtu_proved: true,
        drops_large_packets: true,
        why: "nobody behind hop 1 answers probes".into(),
    }
}

fn tell(name: &'static str, tell: Tell) -> Line {
    let bytes = tell.clone().encode(301);
    assert_eq!(Tell::decode(&bytes), Ok((301, tell)), "{name}");
    (name, bytes)
}

/// With a text alone.
fn failure(code: ErrorCode, side: Side) -> Failure {
    Failure::new(code, side, format!("a/b: {code}"))
}

/// With all parts.
fn whole_failure() -> Failure {
    let inner = Failure::new(ErrorCode::InputOutput, Side::Source, "input/output error").during("read").at_offset(7);
    let outer = Failure::new(ErrorCode::SourceChanged, Side::Source, "given up").for_reason(Reason::SourceGrew);
    outer.at_end("h:d").at_path(&b"a/b"[..]).caused_by(inner)
}

fn no_space() -> Failure {
    failure(ErrorCode::NoSpace, Side::Destination)
}

fn item(name: &[u8], kind: ItemKind, digests: FileDigests, outcome: Outcome) -> ItemReport {
    ItemReport { path: name.to_vec(), kind, size: 1234, digests, judgment: None, outcome }
}

fn entry(name: &[u8], kind: ItemKind) -> Entry {
    let mtime = Time::new(-5, 999_999_999);
    Entry { path: name.to_vec(), kind: Some(kind), size: 4321, mode: 0o2640, mtime, ..Entry::default() }
}

fn welcomes() -> Vec<Line> {
    let welcome = Welcome {
        version: Version::NEWEST,
        program: "0.1.0".into(),
        host_id: "boot mnt".into(),
        processors: 48,
        local_address: "192.0.2.1".into(),
        peer_address: "2001:db8::1".into(),
        clock_seconds: 1_700_000_000,
        congestion: "cubic".into(),
        machine: None,
        system: String::new(),
        clock_us: Some(9),
        root: None,
        compresses: false,
    };
    let known =
        Welcome { compresses: true, machine: Some(counting(60)), system: "Linux 6.8.0".into(), ..welcome.clone() };
    let kept = Welcome { root: Some((9, 1 << 40)), ..known.clone() };
    vec![
        tell("tell Welcome", Tell::Welcome(welcome)),
        tell("tell Welcome-machine", Tell::Welcome(known)),
        tell("tell Welcome-root", Tell::Welcome(kept)),
    ]
}

fn tells() -> Vec<Line> {
    let facts = PathFacts {
        size: 6,
        device: 7,
        inode: 8,
        resolved: b"/x".to_vec(),
        is_mount_top: true,
        file_system: Some([10; 16]),
        ..PathFacts::default()
    };
    let [file, directory, symlink, special] =
        [ItemKind::File, ItemKind::Directory, ItemKind::Symlink, ItemKind::Special];
    let kinds = [None, Some(file), Some(directory), Some(symlink), Some(special)];
    let failed = PathFacts { failure: Some(no_space()), ..PathFacts::default() };
    let facts = kinds.into_iter().map(|kind| PathFacts { kind, ..facts.clone() }).chain([failed]).collect();
    let surveyed = Some(Surveyed { file: Some((8, 9)), ..Surveyed::default() });
    let link = Entry { link_target: b"to".to_vec(), surveyed, ..entry(b"l", symlink) };
    let mut entries = vec![entry(b"f", file), entry(b"d/e", directory), link, entry(b"s", special)];
    entries.push(Entry { path: b"u".to_vec(), failure: Some(no_space()), ..Entry::default() });
    let main = FileDigests { blake3: Some(counting(1)), ..FileDigests::default() };
    let sums = FileDigests { adler32: Some(0x0102_0304), crc32c: Some(0), ..main };
    let xxh128 = FileDigests { xxh128: Some(counting(33)), ..FileDigests::default() };
    let list = vec![
        item(b"a", file, sums, Outcome::Published),
        item(b"b", symlink, FileDigests::default(), Outcome::Kept),
        item(b"c", directory, main, Outcome::Failed(no_space())),
    ];
    let progress = Progress { files_done: 1, bytes_done: 2, files_found: 3, bytes_found: 4, ..Progress::default() };
    let time = Duration::from_nanos;
    let times = StageTimes { busy: time(9), storage: time(2), network: time(3), pacing: time(4) };
    let stages = Stages { times, ..Stages::default() };
    let carried = Stages { at: time(5), delivered: 6, segments: 8, repeated: 7, ..stages };
    let dialed = Dialed { address: "192.0.2.1:4001".into(), cipher: "TLS13".into(), round_trip: time(1_500_000) };
    let lost = StreamLost { failure: Some(no_space()), ..StreamLost::default() };
    let mut lines = welcomes();
    lines.extend([
        tell("tell Failed", Tell::Failed(failure(ErrorCode::AuthenticationFailed, Side::Link))),
        tell("tell Failed-whole", Tell::Failed(whole_failure())),
        tell("tell Failed-why", Tell::Failed(Failure::new(ErrorCode::Busy, Side::Link, "many sessions"))),
        tell("tell Done", Tell::Done(0)),
        tell("tell Done-count", Tell::Done(300)),
        tell("tell Inspected", Tell::Inspected(facts)),
        tell("tell Listening", Tell::Listening(Listening { port: 4003, pin: counting(50) })),
        tell("tell Dialed", Tell::Dialed(dialed)),
        tell("tell Dialed-tunnel", Tell::Dialed(Dialed::default())),
        tell("tell Page", Tell::Page(entries)),
        tell("tell Sums", Tell::Sums(list.clone())),
        tell("tell Sums-xxh128", Tell::Sums(vec![item(b"x", file, xxh128, Outcome::Published)])),
        tell("tell Progress", Tell::Progress(progress)),
        tell("tell Progress-scanned", Tell::Progress(Progress { scan_complete: true, files_failed: 5, ..progress })),
        tell("tell Items", Tell::Items(list)),
        tell("tell Note", Tell::Note("for a person".into())),
        tell("tell StreamLost", Tell::StreamLost(lost.clone())),
        tell("tell StreamLost-stuck", Tell::StreamLost(StreamLost { stuck: true, ..lost })),
        tell("tell StreamLost-retired", Tell::StreamLost(StreamLost { retired: true, ..StreamLost::default() })),
        tell("tell Stages", Tell::Stages(stages)),
        tell("tell Stages-carried", Tell::Stages(carried)),
        tell("tell Connected", Tell::Connected(Duration::from_millis(70))),
    ]);
    lines
}

fn ends() -> Vec<Line> {
    let counts =
        Counts { files: 1, symlinks: 2, directories: 3, bytes: 4, files_kept: 5, files_failed: 9, ..Counts::default() };
    let counts = Counts { files_vanished: 7, specials_skipped: 8, ..counts };
    let faults = Faults { digest_mismatches: 10, resent_after_loss: 11, stragglers: 12, ..Faults::default() };
    let faults = Faults { streams_lost: 13, ..faults };
    let one = Ended { counts, faults, durable: true, ..Ended::default() };
    let counts = Counts { files_resumed: 14, bytes_resumed: 15, ..counts };
    let faults = Faults { streams_altered: 16, blocks_rotten: 17, items_again: 18, ..faults };
    let two = Ended { counts, faults, ..one.clone() };
    let permissions = Unkept { count: 19, path: b"d/f".to_vec(), wanted: 0o755, kept: 0o700 };
    let times = Unkept { count: 19, path: b"d/f".to_vec(), wanted: Time::new(-1, 999_999_999), kept: Time::new(2, 0) };
    let four = Ended {
        unkept_permissions: Some(permissions),
        counts: Counts { leftovers_skipped: 20, ..counts },
        ..two.clone()
    };
    let four = Ended { unkept_times: Some(times), ..four };
    let kinds = BTreeMap::from([(AttributeKind(7), 23), (AttributeKind(300), 2)]);
    let attributes = UnkeptAttributes { count: 24, path: b"d/f".to_vec(), kinds };
    let attributes = Ended { unkept_attributes: Some(attributes), ..one.clone() };
    let at_destination = DestinationCounts {
        parts_reread: 21,
        bytes_reread: 22,
        files_not_read_back: 23,
        ..DestinationCounts::default()
    };
    let four = Ended { at_destination, ..four };
    let unsynced = Unsynced { count: 25, paths: vec![b"d/f".to_vec(), b"d/g".to_vec()] };
    let unsynced = Ended { unsynced, durable: false, failure: Some(no_space()), ..Ended::default() };
    let unfinished = Unfinished { count: 2, paths: vec![b"d/h".to_vec()] };
    let unfinished = Ended { unfinished, ..Ended::default() };
    let directories = UnkeptDirectories { count: 26, paths: vec![b"d".to_vec(), b"e/f".to_vec()] };
    let directories = Ended { unkept_directories: directories, ..Ended::default() };
    let failed = Ended { failure: Some(no_space()), durable: false, ..one.clone() };
    vec![
        tell("tell Ended", Tell::Ended(Box::new(one))),
        tell("tell Ended-failure", Tell::Ended(Box::new(failed))),
        tell("tell Ended-resumed", Tell::Ended(Box::new(two))),
        tell("tell Ended-unkept", Tell::Ended(Box::new(four))),
        tell("tell Ended-attributes", Tell::Ended(Box::new(attributes))),
        tell("tell Ended-unsynced", Tell::Ended(Box::new(unsynced))),
        tell("tell Ended-unfinished", Tell::Ended(Box::new(unfinished))),
        tell("tell Ended-directories", Tell::Ended(Box::new(directories))),
    ]
}

fn peer(name: &'static str, message: PeerMessage) -> Line {
    assert_eq!(PeerMessage::decode(&message.encode()), Ok(message.clone()), "{name}");
    (name, message.encode())
}

fn done(result: ItemResult) -> PeerMessage {
    PeerMessage::Done { item: ItemId(9), result }
}

fn answer(answer: Answer) -> PeerMessage {
    PeerMessage::Answer { item: ItemId(9), answer }
}

fn digests() -> FileDigests {
    FileDigests { blake3: Some([5; 32]), adler32: Some(6), crc32c: Some(7), xxh128: None }
}

fn peer_messages() -> Vec<Line> {
    let why = || failure(ErrorCode::InputOutput, Side::Destination);
    let offer = offer();
    let pipe = Offer {
        size: None,
        attributes: Attributes { mtime: None, ..offer.attributes.clone() },
        sparse: true,
        ..offer.clone()
    };
    let printed = Offer { fingerprint: Some([11; 16]), ..offer.clone() };
    let known =
        |digests| PeerMessage::Known { bundle: BundleId(3), items: vec![(4, digests), (5, FileDigests::default())] };
    let xxh128 = FileDigests { xxh128: Some([8; 16]), ..FileDigests::default() };
    let block = BlockDigest { main: [9; 32], adler32: 0x0102_0304, crc32c: u32::MAX };
    let exceptions = vec![(1, ItemResult::Kept), (2, ItemResult::Mismatch), (3, ItemResult::Failed(why()))];
    let failures = vec![(b"d".to_vec(), why()), (Vec::new(), why())];
    let (held, chunks) = (vec![block, Default::default()], vec![1, 0xdead_beef]);
    vec![
        peer("peer Offer", PeerMessage::Offer(offer)),
        peer("peer Offer-pipe", PeerMessage::Offer(pipe)),
        peer("peer Offer-fingerprint", PeerMessage::Offer(printed)),
        peer("peer Answer-accept", answer(Answer::Accept)),
        peer("peer Answer-keep", answer(Answer::Keep)),
        peer("peer Answer-refuse", answer(Answer::Refuse(why()))),
        peer("peer Answer-present", answer(Answer::Present(digests()))),
        peer("peer Answer-shared", answer(Answer::Shared)),
        peer(
            "peer Landed",
            PeerMessage::Landed {
                blocks: vec![(ItemId(9), 0), (ItemId(9), 1 << 20)],
                bundles: vec![BundleId(1), BundleId(300)],
            },
        ),
        peer("peer SendAgain", PeerMessage::SendAgain { item: ItemId(9), offset: 1 << 20 }),
        peer(
            "peer Complete",
            PeerMessage::Complete { item: ItemId(9), size: 5000, digest: Some([10; 32]), modified: None },
        ),
        peer(
            "peer Complete-unverified",
            PeerMessage::Complete { item: ItemId(9), size: 5000, digest: None, modified: None },
        ),
        peer(
            "peer Complete-followed",
            PeerMessage::Complete { item: ItemId(9), size: 5000, digest: None, modified: Some(Time::new(7, 8)) },
        ),
        peer("peer Abandon", PeerMessage::Abandon { item: ItemId(9) }),
        peer("peer Done", done(ItemResult::Published)),
        peer("peer Done-kept", done(ItemResult::Kept)),
        peer("peer Done-mismatch", done(ItemResult::Mismatch)),
        peer("peer Done-failed", done(ItemResult::Failed(why()))),
        peer("peer Done-dropped", done(ItemResult::Dropped)),
        peer("peer Done-again", done(ItemResult::Again(why()))),
        peer("peer BundleDone", PeerMessage::BundleDone { bundle: BundleId(3), exceptions }),
        peer("peer Directories", PeerMessage::Directories(vec![directory(b"d/e"), directory(b"d")])),
        peer("peer Finish", PeerMessage::Finish),
        peer("peer FinishContents", PeerMessage::FinishContents(directory(b""))),
        peer("peer FinishOncePublished", PeerMessage::FinishOncePublished { ended_otherwise: 1 }),
        peer("peer Finished", PeerMessage::Finished { durable: true }),
        peer("peer DirectoriesFailed", PeerMessage::DirectoriesFailed(failures)),
        peer("peer Fail", PeerMessage::Fail(why())),
        peer("peer StreamLost", PeerMessage::StreamLost { stream: StreamId(258) }),
        peer("peer Held", PeerMessage::Held { item: ItemId(9), first: 3, digests: held, taken_over: true, chunks }),
        peer("peer Confirm", PeerMessage::Confirm { item: ItemId(9), first: 3, count: 2 }),
        peer("peer Query", query(None, OtherAttributes::default())),
        peer("peer Query-fingerprint", query(Some([12; 16]), OtherAttributes::default())),
        peer("peer Known", known(digests())),
        peer("peer Known-xxh128", known(xxh128)),
    ]
}

fn offer() -> Offer {
    let attributes = Attributes::new(0o4640, Time::new(-5, 999_999_999));
    Offer { item: ItemId(9), path: b"a/\xff".to_vec(), size: Some(1 << 40), attributes, ..compared::no_offer() }
}

fn directory(path: &[u8]) -> DirectoryAttributes {
    DirectoryAttributes { path: path.to_vec(), attributes: Attributes::new(0o2755, Time::new(-1, 2)) }
}

fn query(fingerprint: Option<[u8; 16]>, others: OtherAttributes) -> PeerMessage {
    let (path, mtime) = (b"q".to_vec(), Time::new(6, 7));
    let file = QueryItem { index: 4, path, kind: ItemKind::File, size: 5, mode: 0o640, mtime, others, fingerprint };
    let link = QueryItem { index: 5, kind: ItemKind::Symlink, size: 0, mtime: Time::new(-6, 8), ..file.clone() };
    PeerMessage::Query { bundle: BundleId(3), items: vec![file, link] }
}

/// Messages with attributes beside permissions and times.
fn attributed_messages() -> Vec<Line> {
    let with_others = |attributes: Attributes| Attributes { others: others(), ..attributes };
    let attributed = |path: &[u8]| {
        let DirectoryAttributes { path, attributes } = directory(path);
        DirectoryAttributes { path, attributes: with_others(attributes) }
    };
    let offer = Offer { attributes: with_others(offer().attributes), ..offer() };
    vec![
        peer("peer Offer-attributes", PeerMessage::Offer(offer)),
        peer("peer Directories-attributes", PeerMessage::Directories(vec![attributed(b"d")])),
        peer("peer FinishContents-attributes", PeerMessage::FinishContents(attributed(b""))),
        peer("peer Query-attributes", query(Some([12; 16]), others())),
    ]
}

fn others() -> OtherAttributes {
    let of = |kind, value: &[u8]| Attribute { kind: AttributeKind(kind), value: value.into() };
    OtherAttributes::new(vec![of(7, b"value"), of(300, b"")]).unwrap()
}

/// What a bundle's entry begins with, and its block of attributes.
fn entries() -> Vec<Line> {
    let block = attributes::encode(&others());
    let plain = EntryHeader {
        kind: EntryKind::File,
        fingerprinted: false,
        patched: false,
        attribute_bytes: 0,
        path_bytes: 3,
        mode: 0o4640,
        size: 5,
        mtime: Time::new(-5, 999_999_999),
    };
    let printed = EntryHeader { fingerprinted: true, ..plain };
    let patched = EntryHeader { patched: true, ..plain };
    let full = EntryHeader { attribute_bytes: block.len() as u16, ..printed };
    let directory = EntryHeader { kind: EntryKind::Directory, size: 0, ..plain };
    let link = EntryHeader { kind: EntryKind::Symlink, size: 6, ..plain };
    let line = |name, header: EntryHeader| {
        assert_eq!(EntryHeader::decode(&header.encode()), Ok(header), "{name}");
        (name, header.encode().to_vec())
    };
    vec![
        line("entry file", plain),
        line("entry directory", directory),
        line("entry link", link),
        line("entry file-fingerprint", printed),
        line("entry file-patch", patched),
        line("entry file-attributes", full),
        ("attributes", block),
    ]
}
