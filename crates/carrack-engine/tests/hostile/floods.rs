//! Too much of everything: requests, connections, tunnels, dials, paths, messages that are never
//! read. Memory stays bounded.

use std::time::{Duration, Instant};

use carrack_core::ids::ItemId;
use carrack_core::limits;
use carrack_core::report::{ErrorCode, Failure};
use carrack_core::wire::control::raw::*;
use carrack_core::wire::mux::Channel;
use carrack_core::wire::peer::PeerMessage;

use crate::sandbox::Sandbox;
use crate::session::{Session, refused};
use crate::watch::Watch;
use crate::wire::offer;

fn a_session() -> carrack_core::wire::control::raw::Session {
    carrack_core::wire::control::raw::Session { id: vec![1; 16], secret: vec![2; 32], encrypt: false }
}

/// The process has one thread that watches the deadlines of handshakes. It starts with the first of them, which may be
/// in the test that counts, and stays.
const WATCHES_DEADLINES: usize = 1;

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// A thread that has been told to end needs a moment for it.
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn paths_to_inspect() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    // Short ones, whose answers are long.
    let failure = session.request(Ask::Inspect(Paths { paths: vec![b"".to_vec(); 190_000] })).expect_err("too many");
    assert_eq!(failure.code, ErrorCode::ProtocolViolation, "{failure:?}");
    assert!(failure.message().contains("190000 paths"), "{failure:?}");
    session.assert_alive();
    // Long ones, every part of which would have to be looked up.
    let deep = b"n/".repeat(500_000);
    let asks = [
        Ask::Inspect(Paths { paths: vec![deep.clone()] }),
        Ask::List(List { path: deep.clone(), ..List::default() }),
        Ask::MakeDirectory(MakeDirectory { path: deep.clone(), parents: true }),
        Ask::Rename(Rename { from: deep.clone(), to: b"x".to_vec(), no_replace: false }),
        Ask::Rename(Rename { from: b"x".to_vec(), to: deep.clone(), no_replace: false }),
        Ask::Remove(Remove { path: deep.clone(), recursive: true, ..Remove::default() }),
        Ask::Sum(Sum { path: deep, ..Sum::default() }),
    ];
    for ask in asks {
        let failure = session.request(ask).expect_err("too long");
        assert_eq!(failure.code, ErrorCode::BadPath, "{failure:?}");
        assert!(failure.message().contains("too long"), "{failure:?}");
    }
    // As much as is allowed, as long as is allowed: the answer fits into a message.
    let longest = [b"n/".repeat(limits::PATH_BYTES / 2 - 1), b"n".to_vec()].concat();
    let answer = session.request(Ask::Inspect(Paths { paths: vec![longest; 14] }));
    assert!(matches!(answer, Ok(Tell::Inspected(_))), "{answer:?}");
    session.assert_alive();
    session.leave().unwrap();
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

/// Requests come faster than they can be answered, and the answers are not read.
#[test]
fn requests() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    (0..2000).for_each(|n| std::fs::write(sandbox.root().join(format!("{n:0>200}")), b"").unwrap());
    let mut session = Session::deaf(&sandbox.root());
    // Once it has had enough it reads no more.
    session.socket.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let list = ToAgent { request: 1, ask: Some(Ask::List(List { recursive: true, ..List::default() })) }.to_bytes();
    let filler = ToAgent {
        request: 2,
        ask: Some(Ask::Remove(Remove { path: vec![b'n'; 1 << 20], recursive: false, ..Remove::default() })),
    };
    let filler = &filler.to_bytes()[..limits::MESSAGE_BYTES];
    for round in 0..2000 {
        let message = if round < 20 { &list[..] } else { filler };
        if session.writer.send(Channel::CONTROL, message).is_err() {
            break;
        }
    }
    session.hear_again();
    let told = session.last_words();
    assert!(told.message().contains("more requests than"), "{told:?}");
    session.leave().unwrap();
}

/// More than may be there at once, none of which says a word: whoever knows the secret gets
/// through, from the same address.
#[test]
fn silent_connections_to_a_data_port() {
    let _watch = Watch::memory();
    if carrack_sys::host::raise_open_files_limit() < 4000 {
        return println!("skipped: too few descriptors");
    }
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    let (port, _) = session.listen();
    let connect = |_| std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let silent: Vec<_> = (0..limits::UNAUTHENTICATED + 100).map(connect).collect();
    assert!(session.connection(0).is_ok());
    session.leave().unwrap();
    drop(silent);
}

/// Each would be hundreds of times as large in memory: half a million sources, or targets, that are nothing.
#[test]
fn beginnings_of_nothing() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    for (role, element) in [(0x12, 0x0a), (0x1a, 0x1a)] {
        // Fields 2 or 3 of a beginning, field 7 of a request: made as bytes, because here they would be the
        // memory that they must not be.
        let role = [&[role, 0xc0, 0x84, 0x3d][..], &[element, 0].repeat(500_000)].concat();
        let message = [&[0x3a, 0xc4, 0x84, 0x3d][..], &role].concat();
        let mut session = Session::start(&sandbox.root());
        (0..24).for_each(|_| session.payload(Channel::CONTROL, &message));
        let told = session.last_words();
        assert!(told.message().contains("parts") || told.message().contains("more requests than"), "{told:?}");
        session.leave().unwrap();
    }
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

#[test]
fn data_connections() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let before = threads();
    for begin_first in [true, false] {
        let mut session = Session::start(&sandbox.root()).with(carrack_core::request::Encrypt::None);
        if begin_first {
            session.begin();
        }
        let connections: Vec<_> = (0..1000).map_while(|number| session.connection(number).ok()).collect();
        wait_until("threads stay", || threads() < before + 3 * usize::from(limits::STREAMS));
        if !begin_first {
            session.begin();
        }
        if begin_first {
            let failure = session.ended().expect_err("so many");
            assert_eq!(failure.code, ErrorCode::ProtocolViolation, "{failure:?}");
            assert!(failure.message().contains("more than 512 data connections"), "{failure:?}");
        }
        session.assert_alive();
        session.leave().unwrap();
        drop(connections);
        wait_until("threads end with their session", || threads() <= before + WATCHES_DEADLINES);
    }
    sandbox.assert_untouched();
}

#[test]
fn tunnels_and_dials() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let before = threads();
    let mut session = Session::start(&sandbox.root());
    for channel in 2..1002 {
        session.ask(Ask::Tunnel(Tunnel { session: Some(a_session()), channel, dial: true }));
        // One after the other: too many at once are refused for that.
        session.assert_alive();
    }
    let failure = session.last_words();
    assert!(failure.message().contains("more tunnels than"), "{failure:?}");
    session.leave().unwrap();
    wait_until("threads end with their session", || threads() <= before + WATCHES_DEADLINES);
    let mut session = Session::start(&sandbox.root());
    // Nobody answers there (RFC 5737), or this host has no way there: either way it takes no more than its share.
    for _ in 0..500 {
        let addresses = vec!["192.0.2.1:9".to_owned()];
        let session_message = Some(a_session());
        let dial = Dial {
            session: session_message,
            addresses,
            pin: vec![0; 32],
            count: 1,
            first: 0,
            timeout_ms: 500,
            ..Dial::default()
        };
        session.ask(Ask::Dial(dial));
        session.assert_alive();
        assert!(threads() < before + 200);
    }
    session.leave().unwrap();
    wait_until("threads end with their session", || threads() <= before + WATCHES_DEADLINES);
    sandbox.assert_untouched();
}

/// A tunnel whose stream nobody reads must not keep the session from ending with its connection.
#[test]
fn tunnel_that_is_not_read() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    session.ask(Ask::Tunnel(Tunnel { session: Some(a_session()), channel: 2, dial: false }));
    let flood = vec![b'C'; 1 << 20];
    session.payload(Channel(2), &flood);
    session.payload(Channel(2), &flood);
    session.leave().unwrap();
    sandbox.assert_untouched();
}

/// Every Listen replaces the one before.
#[test]
fn listeners() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let before = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let mut session = Session::start(&sandbox.root());
    for number in 0..50 {
        let id = carrack_core::wire::control::raw::Session { id: vec![number; 16], ..a_session() };
        session.request(Ask::Listen(Listen { session: Some(id), ..Listen::default() })).unwrap();
    }
    wait_until("one port stays open", || std::fs::read_dir("/proc/self/fd").unwrap().count() < before + 20);
    session.leave().unwrap();
}

/// Messages between the peers, whose answers are not read.
#[test]
fn peer_messages() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    // Who does not listen does not hear that its `Begin` was carried out either, and what it says
    // before that is for nobody.
    let early = |failure: &Failure| failure.message().contains("which it has not offered");
    let mut failures = (0..20).map(|_| flood_of_offers(&sandbox));
    let failure = failures.find(|failure| !early(failure)).expect("some flood begins in time");
    assert!(failure.message().contains("does not take the answers"), "{failure:?}");
    sandbox.assert_untouched();
}

fn flood_of_offers(sandbox: &Sandbox) -> Failure {
    let mut session = Session::deaf(&sandbox.root());
    session.ask(Ask::Begin(crate::session::receive_into(b"")));
    // Requests are carried out in order: when this one is done, the transfer has begun.
    session.ask(Ask::MakeDirectory(MakeDirectory { path: b"begun".to_vec(), parents: false }));
    wait_until("the transfer has begun", || sandbox.root().join("begun").exists());
    // The first 64 are opened; of the others each offer and its end is a word more that waits to be sent.
    for item in 1..=60_000 {
        let gone = session.writer.send(Channel::PEER, &offer(item, b"n", None).encode()).is_err();
        session.say(&PeerMessage::Abandon { item: ItemId(item) });
        if gone {
            break;
        }
    }
    session.hear_again();
    let failure = session.ended().expect_err("so many answers cannot wait");
    session.leave().unwrap();
    failure
}

#[test]
fn attributes_of_directories() {
    let _watch = Watch::memory();
    let sandbox = Sandbox::new();
    let paths: Vec<String> = (0..30_000).map(|n| format!("{n:x}")).collect();
    let paths: Vec<&[u8]> = paths.iter().map(|path| path.as_bytes()).collect();
    let page = crate::wire::directories(&paths);
    let failure = refused(&sandbox, |session| (0..50).for_each(|_| session.say(&page)));
    assert_eq!(failure.code, ErrorCode::ProtocolViolation, "{failure:?}");
    assert!(failure.message().contains("attributes of more directories than it sent"), "{failure:?}");
}
