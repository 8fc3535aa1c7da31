//! Every message as it stands on the wire, beside `golden.txt`: a line for each, with the version that it is said in, its name and its
//! bytes. A difference is another wire, which a peer of that version does not understand. `CARRACK_GOLDEN=write cargo test -p carrack-core golden`
//! writes the file anew.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::control::*;
use super::peer::{Answer, DirectoryAttributes, ItemResult, Offer, PeerMessage, QueryItem};
use super::values::{RawDigests, RawFailure};
use crate::digest::{BlockDigest, FileDigests};
use crate::failure::{ErrorCode, Failure, Side};
use crate::report::ItemKind;

/// The version that says it, its name, its bytes.
type Line = (u32, &'static str, Vec<u8>);

#[test]
fn messages_are_encoded_as_ever() {
    let mut lines = asks();
    lines.extend(begins());
    lines.extend(tells());
    lines.extend(ends());
    lines.extend(peer_messages());
    let mut text = String::new();
    for (version, name, bytes) in lines {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{version} {name} {hex}").unwrap();
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
fn every_message_has_a_golden_line() {
    let golden = include_str!("golden.txt");
    for (kind, tags) in [("ask", 2..=17), ("tell", 2..=16), ("peer", 1..=18)] {
        let lines = golden.lines().filter_map(|line| line.split_once(' ')?.1.strip_prefix(kind)?.strip_prefix(' '));
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

fn ask(version: u32, name: &'static str, ask: Ask) -> Line {
    (version, name, ToAgent { request: 300, ask: Some(ask) }.to_bytes())
}

fn session() -> Option<Session> {
    Some(Session { id: (1..17).collect(), secret: (17..49).collect(), encrypt: true })
}

fn source(path: &[u8], target: &[u8], synthetic: u32, size: u64) -> Source {
    Source { path: path.to_vec(), target: target.to_vec(), synthetic, size }
}

fn asks() -> Vec<Line> {
    let addresses = vec!["192.0.2.1:4001".to_owned(), "[2001:db8::1]:4002".to_owned()];
    let dial = Dial { session: session(), addresses, pin: (50..82).collect(), ..Dial::default() };
    let dial = Dial { count: 3, first: 32_768, timeout_ms: 6200, ..dial };
    let sources = vec![source(b"a/", b"", 0, 0), source(b"b", b"b", 0, 0)];
    let sum = Sum { path: b"s".to_vec(), ..Sum::default() };
    let list = List { path: b"l".to_vec(), ..List::default() };
    let remove = Remove { path: b"r".to_vec(), recursive: true, go_on: false };
    let paths = || Paths { paths: vec![b"p/q".to_vec(), b"\xff".to_vec(), Vec::new()] };
    vec![
        ask(1, "ask Hello", Ask::Hello(Hello { oldest: 1, newest: 4, program: "0.1.0".into(), token: "t0ken".into() })),
        ask(1, "ask Inspect", Ask::Inspect(paths())),
        ask(1, "ask Listen", Ask::Listen(Listen { session: session(), port_low: 0, port_high: 0 })),
        ask(1, "ask Listen-ports", Ask::Listen(Listen { session: session(), port_low: 4000, port_high: 4999 })),
        ask(1, "ask Dial", Ask::Dial(dial.clone())),
        ask(2, "ask Dial-segment", Ask::Dial(Dial { segment: 1200, ..dial.clone() })),
        ask(3, "ask Dial-connected", Ask::Dial(Dial { tell_connected: true, ..dial })),
        ask(1, "ask Tunnel", Ask::Tunnel(Tunnel { session: session(), channel: 2, dial: true })),
        ask(1, "ask Cancel", Ask::Cancel(Empty {})),
        ask(1, "ask List", Ask::List(list.clone())),
        ask(1, "ask List-recursive", Ask::List(List { recursive: true, ..list.clone() })),
        ask(1, "ask List-itself", Ask::List(List { itself: true, ..list.clone() })),
        ask(4, "ask List-sources", Ask::List(List { sources, ..list })),
        ask(1, "ask MakeDirectory", Ask::MakeDirectory(MakeDirectory { path: b"m".to_vec(), parents: false })),
        ask(1, "ask MakeDirectory-parents", Ask::MakeDirectory(MakeDirectory { path: b"m/n".to_vec(), parents: true })),
        ask(1, "ask Rename", Ask::Rename(Rename { from: b"f".to_vec(), to: b"t".to_vec() })),
        ask(1, "ask Remove", Ask::Remove(remove.clone())),
        ask(4, "ask Remove-go_on", Ask::Remove(Remove { recursive: false, go_on: true, ..remove })),
        ask(1, "ask Sum", Ask::Sum(Sum { blake3: true, ..sum.clone() })),
        ask(1, "ask Sum-adler32", Ask::Sum(Sum { adler32: true, ..sum.clone() })),
        ask(1, "ask Sum-crc32c", Ask::Sum(Sum { crc32c: true, ..sum.clone() })),
        ask(3, "ask Sum-xxh128", Ask::Sum(Sum { xxh128: true, ..sum })),
        ask(1, "ask Bye", Ask::Bye(Empty {})),
        ask(2, "ask Select", Ask::Select(paths())),
        ask(2, "ask Collect", Ask::Collect(Collect { path: b"c".to_vec(), older_seconds: 604_800, dry_run: true })),
        ask(3, "ask Retire", Ask::Retire(Retire { count: 5 })),
    ]
}

fn options() -> Options {
    Options { block_bytes: 1 << 20, session_id: (1..17).collect(), streams: 1, ..Options::default() }
}

fn begin(version: u32, name: &'static str, options: Options, role: Role) -> Line {
    ask(version, name, Ask::Begin(Begin { options: Some(options), role: Some(role) }))
}

fn send(sources: Vec<Source>) -> Role {
    Role::Send(SendRole { sources, known: false })
}

fn begins() -> Vec<Line> {
    let all = |version| Options {
        blake3: true,
        adler32: true,
        crc32c: true,
        rate_limit: 5_000_000,
        item_events: true,
        version,
        allow_growing: true,
        congestion: "bbr".into(),
        ..options()
    };
    let a = || vec![source(b"/data/a", b"a", 0, 0)];
    let synthetic = vec![source(b"", b"stdin", 1, 0), source(b"", b"zero", 2, 77), source(b"", b"random", 3, 78)];
    let into = ReceiveRole { directory: b"/in".to_vec(), ..ReceiveRole::default() };
    let receive = |sink| Role::Receive(ReceiveRole { sink, ..into.clone() });
    let named = ReceiveRole { targets: vec![b"a".to_vec(), b"b/c".to_vec()], ..into.clone() };
    let marked = ReceiveRole { marker: (100..108).collect(), source_clock: 1_700_000_000, ..named.clone() };
    let numbered = |verify, existing, durability| Options { verify, existing, durability, version: 4, ..options() };
    vec![
        begin(1, "ask Begin-send", options(), send(a())),
        begin(2, "ask Begin-send", all(2), Role::Send(SendRole { sources: a(), known: true })),
        begin(3, "ask Begin-send-xxh128", Options { blake3: false, xxh128: true, ..all(3) }, send(a())),
        begin(4, "ask Begin-send-source", numbered(3, 0, 0), send(a())),
        begin(4, "ask Begin-send-synthetic", numbered(0, 0, 0), send(synthetic)),
        begin(1, "ask Begin-receive", options(), Role::Receive(named)),
        begin(2, "ask Begin-receive", all(2), Role::Receive(marked.clone())),
        begin(4, "ask Begin-receive-anew", all(4), Role::Receive(ReceiveRole { anew: true, ..marked })),
        begin(4, "ask Begin-receive-stdout", numbered(1, 1, 1), receive(1)),
        begin(4, "ask Begin-receive-null", numbered(2, 2, 2), receive(2)),
        begin(4, "ask Begin-receive-device", numbered(0, 3, 0), receive(3)),
    ]
}

fn tell(version: u32, name: &'static str, tell: Tell) -> Line {
    (version, name, FromAgent { request: 301, tell: Some(tell) }.to_bytes())
}

fn failure(code: ErrorCode, side: Side) -> Failure {
    Failure { code, side, message: format!("a/b: {code}") }
}

fn raw_failure() -> RawFailure {
    failure(ErrorCode::NoSpace, Side::Destination).into()
}

fn item(name: &[u8], kind: u32, digests: RawDigests, outcome: u32) -> Item {
    let failure = (outcome == 2).then(raw_failure);
    Item { path: name.to_vec(), kind, size: 1234, digests: Some(digests), outcome, failure }
}

fn entry(name: &[u8], kind: u32) -> Entry {
    let entry = Entry { path: name.to_vec(), kind, size: 4321, mode: 0o2640, ..Entry::default() };
    Entry { mtime_seconds: -5, mtime_nanos: 999_999_999, ..entry }
}

fn tells() -> Vec<Line> {
    let welcome = Welcome { version: 1, program: "0.1.0".into(), host_id: "boot mnt".into(), ..Welcome::default() };
    let welcome = Welcome { local_address: "192.0.2.1".into(), peer_address: "2001:db8::1".into(), ..welcome };
    let welcome = Welcome { processors: 48, congestion: "cubic".into(), ..welcome };
    let clocked = Welcome { version: 2, clock_seconds: 1_700_000_000, ..welcome.clone() };
    let facts = PathFacts { size: 6, device: 7, inode: 8, resolved: b"/x".to_vec(), ..PathFacts::default() };
    let kinds = (0..5).map(|kind| PathFacts { kind, ..facts.clone() });
    let failed = PathFacts { failure: Some(raw_failure()), ..PathFacts::default() };
    let link = Entry { link_target: b"to".to_vec(), ..entry(b"l", 3) };
    let refused = Entry { path: b"u".to_vec(), failure: Some(raw_failure()), ..Entry::default() };
    let entries = vec![entry(b"f", 1), entry(b"d/e", 2), link, entry(b"s", 4), refused];
    let main = RawDigests { blake3: (1..33).collect(), ..RawDigests::default() };
    let sums = RawDigests { adler32: Some(0x0102_0304), crc32c: Some(0), ..main.clone() };
    let xxh128 = RawDigests { xxh128: (33..49).collect(), ..RawDigests::default() };
    let list = vec![item(b"a", 1, sums, 0), item(b"b", 3, RawDigests::default(), 1), item(b"c", 2, main, 2)];
    let progress = Progress { files_done: 1, bytes_done: 2, files_found: 3, bytes_found: 4, ..Progress::default() };
    let stages = Stages { busy_ns: 9, storage_ns: 2, network_ns: 3, pacing_ns: 4, ..Stages::default() };
    let dialed = Dialed { address: "192.0.2.1:4001".into(), cipher: "TLS13".into(), round_trip_us: 1500 };
    let lost = StreamLost { stream: 6, left: 3, failure: Some(raw_failure()), ..StreamLost::default() };
    vec![
        tell(1, "tell Welcome", Tell::Welcome(welcome)),
        tell(2, "tell Welcome", Tell::Welcome(clocked.clone())),
        tell(4, "tell Welcome", Tell::Welcome(Welcome { version: 4, machine: (60..92).collect(), ..clocked })),
        tell(1, "tell Failed", Tell::Failed(failure(ErrorCode::AuthenticationFailed, Side::Link).into())),
        tell(1, "tell Done", Tell::Done(Counted { count: 0 })),
        tell(1, "tell Done-count", Tell::Done(Counted { count: 300 })),
        tell(1, "tell Inspected", Tell::Inspected(Inspected { facts: kinds.chain([failed]).collect() })),
        tell(1, "tell Listening", Tell::Listening(Listening { port: 4003, pin: (50..82).collect() })),
        tell(1, "tell Dialed", Tell::Dialed(dialed)),
        tell(1, "tell Dialed-tunnel", Tell::Dialed(Dialed::default())),
        tell(1, "tell Page", Tell::Page(Page { entries })),
        tell(1, "tell Sums", Tell::Sums(Sums { list: list.clone() })),
        tell(3, "tell Sums-xxh128", Tell::Sums(Sums { list: vec![item(b"x", 1, xxh128, 0)] })),
        tell(1, "tell Progress", Tell::Progress(progress)),
        tell(1, "tell Progress-scanned", Tell::Progress(Progress { scan_complete: true, files_failed: 5, ..progress })),
        tell(1, "tell Items", Tell::Items(Items { list })),
        tell(1, "tell Note", Tell::Note("for a person".into())),
        tell(2, "tell StreamLost", Tell::StreamLost(lost.clone())),
        tell(2, "tell StreamLost-stuck", Tell::StreamLost(StreamLost { stuck: true, ..lost.clone() })),
        tell(3, "tell StreamLost-retired", Tell::StreamLost(StreamLost { failure: None, retired: true, ..lost })),
        tell(2, "tell Stages", Tell::Stages(stages)),
        tell(3, "tell Stages", Tell::Stages(Stages { at_ns: 5, delivered: 6, segments: 8, repeated: 7, ..stages })),
        tell(3, "tell Connected", Tell::Connected(Connected { round_trip_us: 70_000 })),
    ]
}

fn ends() -> Vec<Line> {
    let one = Ended { files: 1, symlinks: 2, directories: 3, bytes: 4, kept: 5, failed: 9, ..Ended::default() };
    let one = Ended { vanished: 7, specials: 8, mismatches: 10, resent: 11, stragglers: 12, streams_lost: 13, ..one };
    let one = Ended { durable: true, ..one };
    let two = Ended { resumed_files: 14, resumed_bytes: 15, streams_altered: 16, ..one.clone() };
    let two = Ended { blocks_rotten: 17, items_again: 18, ..two };
    let unkept = |wanted, wanted_nanos, kept, kept_nanos| {
        Some(RawUnkept { count: 19, path: b"d/f".to_vec(), wanted, wanted_nanos, kept, kept_nanos })
    };
    let four = Ended { unkept_permissions: unkept(0o755, 0, 0o700, 0), leftovers: 20, ..two.clone() };
    let four = Ended { unkept_times: unkept(-1, 999_999_999, 2, 0), ..four };
    let four = Ended { parts_reread: 21, bytes_reread: 22, files_not_read_back: 23, ..four };
    vec![
        tell(1, "tell Ended", Tell::Ended(one.clone())),
        tell(1, "tell Ended-failure", Tell::Ended(Ended { failure: Some(raw_failure()), durable: false, ..one })),
        tell(2, "tell Ended", Tell::Ended(two)),
        tell(4, "tell Ended", Tell::Ended(four)),
    ]
}

fn peer(version: u32, name: &'static str, message: PeerMessage) -> Line {
    assert_eq!(PeerMessage::decode(&message.encode()), Ok(message.clone()), "{name}");
    (version, name, message.encode())
}

fn done(result: ItemResult) -> PeerMessage {
    PeerMessage::Done { item: 9, result }
}

fn answer(answer: Answer) -> PeerMessage {
    PeerMessage::Answer { item: 9, answer }
}

fn digests() -> FileDigests {
    FileDigests { blake3: Some([5; 32]), adler32: Some(6), crc32c: Some(7), xxh128: None }
}

fn peer_messages() -> Vec<Line> {
    let why = || failure(ErrorCode::InputOutput, Side::Destination);
    let offer = Offer { item: 9, path: b"a/\xff".to_vec(), size: Some(1 << 40), mode: 0o4640, ..no_offer() };
    let offer = Offer { mtime: Some((-5, 999_999_999)), ..offer };
    let pipe = Offer { size: None, mtime: None, sparse: true, ..offer.clone() };
    let printed = Offer { fingerprint: Some([11; 16]), ..offer.clone() };
    let query = |fingerprint| {
        let file =
            QueryItem { index: 4, path: b"q".to_vec(), kind: ItemKind::File, size: 5, mtime: (6, 7), fingerprint };
        let link = QueryItem { index: 5, kind: ItemKind::Symlink, size: 0, mtime: (-6, 8), ..file.clone() };
        PeerMessage::Query { bundle: 3, items: vec![file, link] }
    };
    let known = |digests| PeerMessage::Known { bundle: 3, items: vec![(4, digests), (5, FileDigests::default())] };
    let xxh128 = FileDigests { xxh128: Some([8; 16]), ..FileDigests::default() };
    let block = BlockDigest { main: [9; 32], adler32: 0x0102_0304, crc32c: u32::MAX };
    let directory = |path: &[u8]| DirectoryAttributes { path: path.to_vec(), mode: 0o2755, mtime: (-1, 2) };
    let exceptions = vec![(1, ItemResult::Kept), (2, ItemResult::Mismatch), (3, ItemResult::Failed(why()))];
    let failures = vec![(b"d".to_vec(), why()), (Vec::new(), why())];
    vec![
        peer(1, "peer Offer", PeerMessage::Offer(offer)),
        peer(1, "peer Offer-pipe", PeerMessage::Offer(pipe)),
        peer(4, "peer Offer-fingerprint", PeerMessage::Offer(printed)),
        peer(1, "peer Answer-accept", answer(Answer::Accept)),
        peer(1, "peer Answer-keep", answer(Answer::Keep)),
        peer(1, "peer Answer-refuse", answer(Answer::Refuse(why()))),
        peer(2, "peer Answer-present", answer(Answer::Present(digests()))),
        peer(1, "peer Landed", PeerMessage::Landed { blocks: vec![(9, 0), (9, 1 << 20)], bundles: vec![1, 300] }),
        peer(1, "peer SendAgain", PeerMessage::SendAgain { item: 9, offset: 1 << 20 }),
        peer(1, "peer Complete", PeerMessage::Complete { item: 9, size: 5000, digest: Some([10; 32]) }),
        peer(1, "peer Complete-unverified", PeerMessage::Complete { item: 9, size: 5000, digest: None }),
        peer(1, "peer Abandon", PeerMessage::Abandon { item: 9 }),
        peer(1, "peer Done", done(ItemResult::Published)),
        peer(1, "peer Done-kept", done(ItemResult::Kept)),
        peer(1, "peer Done-mismatch", done(ItemResult::Mismatch)),
        peer(1, "peer Done-failed", done(ItemResult::Failed(why()))),
        peer(1, "peer Done-dropped", done(ItemResult::Dropped)),
        peer(2, "peer Done-again", done(ItemResult::Again(why()))),
        peer(1, "peer BundleDone", PeerMessage::BundleDone { bundle: 3, exceptions }),
        peer(1, "peer Directories", PeerMessage::Directories(vec![directory(b"d/e"), directory(b"d")])),
        peer(1, "peer Finish", PeerMessage::Finish),
        peer(4, "peer FinishContents", PeerMessage::FinishContents(directory(b""))),
        peer(1, "peer Finished", PeerMessage::Finished { durable: true, failures: failures.clone() }),
        peer(4, "peer DirectoriesFailed", PeerMessage::DirectoriesFailed(failures)),
        peer(1, "peer Fail", PeerMessage::Fail(why())),
        peer(1, "peer StreamLost", PeerMessage::StreamLost { stream: 258 }),
        peer(2, "peer Held", PeerMessage::Held { item: 9, first: 3, digests: vec![block, BlockDigest::default()] }),
        peer(2, "peer Confirm", PeerMessage::Confirm { item: 9, first: 3, count: 2 }),
        peer(2, "peer Query", query(None)),
        peer(4, "peer Query-fingerprint", query(Some([12; 16]))),
        peer(2, "peer Known", known(digests())),
        peer(3, "peer Known-xxh128", known(xxh128)),
    ]
}

fn no_offer() -> Offer {
    Offer { item: 1, path: Vec::new(), size: None, mode: 0, mtime: None, sparse: false, fingerprint: None }
}
