//! A hostile command: requests that lead out of the root, options out of bounds, roles that are not a
//! stranger's, and asking twice.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;

use carrack_core::report::{ErrorCode, Failure, Reason};
use carrack_core::wire::PROTOCOL_VERSION;
use carrack_core::wire::control::raw::*;
use carrack_engine::testing::net::dial_rule::DialRule;

use crate::sandbox::Sandbox;
use crate::session::{Session, bytes, options, receive, receive_into, send};
use crate::watch::Watch;

/// Links that somebody who may has put below the root, and that lead out.
fn with_links(sandbox: &Sandbox) {
    symlink(sandbox.outside(), sandbox.root().join("absolute")).unwrap();
    symlink("../outside", sandbox.root().join("relative")).unwrap();
    symlink("../outside/canary", sandbox.root().join("leak")).unwrap();
    symlink("/proc/self/root", sandbox.root().join("magic")).unwrap();
}

const WAYS_OUT: [&str; 9] = [
    "..",
    "../outside",
    "/../outside/canary",
    "a/../../outside",
    "absolute/canary",
    "relative/canary",
    "relative/private/canary",
    "leak",
    "magic/etc/passwd",
];

/// Whatever is asked about what lies outside is refused, and nothing of it is told.
#[test]
fn paths_outside_are_not_read_or_changed() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    with_links(&sandbox);
    std::fs::write(sandbox.root().join("mine"), b"mine").unwrap();
    let before = sandbox.names();
    for path in WAYS_OUT {
        let sum = Sum { path: bytes(path), digests: 1, one_file: false };
        let asks = [
            Ask::List(List { path: bytes(path), recursive: true, ..List::default() }),
            Ask::List(List { path: bytes(path), survey: Some(Survey::default()), ..List::default() }),
            Ask::Sum(sum),
            Ask::Read(carrack_core::wire::control::raw::Read { path: bytes(path), length: 1, ..Default::default() }),
            Ask::MakeDirectory(MakeDirectory { path: bytes(&format!("{path}/made")), parents: false }),
            Ask::MakeDirectory(MakeDirectory { path: bytes(&format!("{path}/made/deep")), parents: true }),
            Ask::Rename(Rename { from: bytes("mine"), to: bytes(&format!("{path}/moved")), no_replace: false }),
            Ask::Rename(Rename { from: bytes(&format!("{path}/canary")), to: bytes("stolen"), no_replace: false }),
            Ask::Remove(Remove { path: bytes(&format!("{path}/canary")), recursive: false, ..Remove::default() }),
            Ask::Remove(Remove { path: bytes(&format!("{path}/private")), recursive: true, ..Remove::default() }),
            receive(path, 0),
            receive(&format!("{path}/made"), 0),
            receive(&format!("{path}/canary"), 3),
            send(path),
        ];
        let mut session = Session::start(&sandbox.root());
        for ask in asks {
            let shown = format!("{path}: {ask:?}");
            let failure = sandbox.around(|_| session.request(ask)).expect_err(&shown);
            assert!(!failure.message().is_empty(), "{shown}");
        }
        let Ok(Tell::Inspected(Inspected { facts })) =
            session.request(Ask::Inspect(Paths { paths: vec![bytes(path)] }))
        else {
            panic!()
        };
        assert!(facts[0].kind == 0 && facts[0].failure.is_some() && facts[0].resolved.is_empty(), "{path}: {facts:?}");
        session.assert_alive();
        session.leave().unwrap();
    }
    sandbox.assert_untouched();
    // The first part of a path that leads in and out again may be made before the second is looked at.
    let after: Vec<String> = sandbox.names().into_iter().filter(|name| name != "a").collect();
    assert_eq!(after, before);
}

/// Where the root is on its host is nobody's business, and what a path leads to is named from there.
#[test]
fn inspected_paths_are_named_from_the_root() {
    let sandbox = Sandbox::new();
    with_links(&sandbox);
    std::fs::create_dir_all(sandbox.root().join("d/e")).unwrap();
    symlink("d/e", sandbox.root().join("inside")).unwrap();
    let mut session = Session::start(&sandbox.root());
    let paths = ["d/e", "/d/none/deep", "", "/", "inside", "inside/none"].map(bytes).to_vec();
    let Ok(Tell::Inspected(Inspected { facts })) = session.request(Ask::Inspect(Paths { paths })) else { panic!() };
    let names: Vec<_> = facts.iter().map(|facts| String::from_utf8_lossy(&facts.resolved).into_owned()).collect();
    assert_eq!(names, ["/d/e", "/d/none/deep", "/", "/", "/d/e", "/d/e/none"]);
    session.leave().unwrap();
}

/// Links below the root are listed and sent as links, and removed as links; what they lead to is left alone.
#[test]
fn links_that_lead_out_are_only_links() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    with_links(&sandbox);
    let mut session = Session::start(&sandbox.root());
    let list = List { path: b"".to_vec(), recursive: true, ..List::default() };
    let Ok(Tell::Page(page)) = session.request(Ask::List(list)) else { panic!() };
    assert!(page.entries.iter().all(|entry| entry.kind == 3), "{page:?}");
    assert_eq!(page.entries.len(), 4);
    for link in ["absolute", "relative", "leak", "magic"] {
        let remove = Remove { path: bytes(link), recursive: true, ..Remove::default() };
        assert!(matches!(session.request(Ask::Remove(remove)), Ok(Tell::Done(Counted { count: 1 }))));
    }
    session.leave().unwrap();
    sandbox.assert_untouched();
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

fn refusal(session: &mut Session, ask: Ask, what: &str) {
    let failure: Failure = session.request(ask).expect_err(what);
    assert_eq!(failure.code, ErrorCode::ProtocolViolation, "{what}: {failure:?}");
    assert!(failure.message().contains(what), "{what}: {failure:?}");
    session.assert_alive();
}

#[test]
fn options_and_roles_that_are_not_given() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    let with = |change: &dyn Fn(&mut RawOptions)| {
        let mut begin = receive_into(b"");
        change(begin.options.as_mut().unwrap());
        Ask::Begin(begin)
    };
    for block in [0, 1, 4096, 65537, 1 << 30, u32::MAX] {
        let ask = with(&|options| options.block_bytes = block);
        refusal(&mut session, ask, &format!("the peer asked for blocks of {block} bytes"));
    }
    for digests in [3, 16, u32::MAX] {
        let ask = with(&|options| options.digests = digests);
        refusal(&mut session, ask, &format!("a value of digests that is unknown: {digests}"));
    }
    refusal(&mut session, with(&|options| options.verify = 9), "a value of verify that is unknown: 9");
    refusal(&mut session, with(&|options| options.existing = 9), "a value of existing that is unknown: 9");
    let wild = "\u{1b}[2J".repeat(100);
    refusal(
        &mut session,
        with(&|options| options.congestion.clone_from(&wild)),
        "a value of congestion that is unknown: \"\\u{1b}[2J",
    );
    let begin = |options, role| Ask::Begin(Begin { options, role });
    let receiving = receive_into(b"").role;
    refusal(&mut session, begin(None, receiving), "began a transfer without options");
    refusal(&mut session, begin(Some(options()), None), "began a transfer without a role");
    // Standard output, and kinds that nobody knows.
    for sink in [1, 5, u32::MAX] {
        refusal(&mut session, receive("", sink), &format!("a destination of unknown kind {sink}"));
    }
    // Standard input, and kinds that nobody knows.
    for synthetic in [1, 4, u32::MAX] {
        let source = Source { synthetic, size: u64::MAX, target: b"t".to_vec(), ..Source::default() };
        let role = Role::Send(SendRole { sources: vec![source], known: false });
        refusal(&mut session, begin(Some(options()), Some(role)), "sources that it may not ask for");
    }
    for target in [&b"../x"[..], b"/x", b"a//b", b"a\0", &vec![b'n'; 70_000], &b"n/".repeat(30_000)[..59_999]] {
        let source = Source { path: b"".to_vec(), target: target.to_vec(), ..Source::default() };
        let role = Role::Send(SendRole { sources: vec![source], known: false });
        let ask = begin(Some(options()), Some(role));
        let failure = session.request(ask).expect_err("the target is no name");
        assert_eq!(failure.code, ErrorCode::BadPath, "{failure:?}");
    }
    session.leave().unwrap();
    sandbox.assert_untouched();
}

/// A regular file is not written in place: that way is for devices and FIFOs.
#[test]
fn file_is_no_sink() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.root().join("mine"), b"mine").unwrap();
    let mut session = Session::start(&sandbox.root());
    let failure = session.request(receive("mine", 3)).expect_err("a regular file");
    assert_eq!(failure.code, ErrorCode::Unsupported, "{failure:?}");
    session.leave().unwrap();
    assert_eq!(std::fs::read(sandbox.root().join("mine")).unwrap(), b"mine");
}

/// What is dropped measures the path, whatever device it is said to be dropped into.
#[test]
fn null_sink_beside_a_name_is_a_measurement() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.root().join("mine"), b"mine").unwrap();
    let dials = || DialRule { listens: "127.0.0.1:1".parse().unwrap(), only_who_asks: false, told: Vec::new() };
    let mut session = Session::at_node(&sandbox.root(), dials());
    for name in ["", "x", "mine", ".", "../dev/null", "/dev/null"] {
        let failure = session.request(receive(name, 2)).expect_err("a measurement that the node takes from nobody");
        assert_eq!(failure.code, ErrorCode::PermissionDenied, "{name}: {failure:?}");
        session.assert_alive();
    }
    session.leave().unwrap();
    assert_eq!(std::fs::read(sandbox.root().join("mine")).unwrap(), b"mine");
    // The device itself is a destination like others.
    let mut session = Session::at_node(std::path::Path::new("/dev"), dials());
    session.request(receive("null", 2)).unwrap();
}

/// Whoever serves a directory has said what is kept to, and no client says another.
#[test]
fn greeting_moves_no_root_that_an_agent_has() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::strange(&sandbox.root());
    let greeting = Ask::Hello(Hello {
        oldest: PROTOCOL_VERSION,
        newest: PROTOCOL_VERSION,
        root: b"/".to_vec(),
        ..Hello::default()
    });
    let failure: Failure = session.request(greeting).expect_err("another root");
    assert!(failure.code == ErrorCode::Usage && failure.message().contains("a root of its own"), "{failure:?}");
    sandbox.assert_untouched();
}

#[test]
fn asking_twice() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    let greeting = Ask::Hello(Hello { oldest: 1, newest: 1, ..Hello::default() });
    refusal(&mut session, greeting, "greeted twice");
    session.begin();
    refusal(&mut session, Ask::Begin(receive_into(b"")), "a second transfer in one session");
    refusal(&mut session, send(""), "a second transfer in one session");
    let tunnel = |channel| Ask::Tunnel(Tunnel { session: Some(a_session()), channel, dial: true });
    for channel in [0, 1, 65_536, u32::MAX] {
        refusal(&mut session, tunnel(channel), &format!("channel {channel} as a tunnel"));
    }
    session.ask(tunnel(2));
    refusal(&mut session, tunnel(2), "channel 2 twice");
    session.leave().unwrap();
    sandbox.assert_untouched();
}

fn a_session() -> carrack_core::wire::control::raw::Session {
    carrack_core::wire::control::raw::Session { id: vec![1; 16], secret: vec![2; 32], encrypt: false }
}

#[test]
fn sessions_and_dials_that_make_no_sense() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    for wrong in [
        None,
        Some(carrack_core::wire::control::raw::Session { id: vec![1; 15], ..a_session() }),
        Some(carrack_core::wire::control::raw::Session { secret: vec![1; 33], ..a_session() }),
    ] {
        let what = "a session without a whole identifier and secret";
        refusal(&mut session, Ask::Listen(Listen { session: wrong.clone(), ..Listen::default() }), what);
        refusal(&mut session, Ask::Dial(Dial { session: wrong.clone(), pin: vec![0; 32], ..Dial::default() }), what);
        refusal(&mut session, Ask::Tunnel(Tunnel { session: wrong, channel: 2, dial: true }), what);
    }
    let dial = |count, first, addresses| {
        let pin = vec![0; 32];
        Ask::Dial(Dial { session: Some(a_session()), addresses, pin, count, first, timeout_ms: 1, ..Dial::default() })
    };
    for (count, first) in [(10_000, 0), (u32::MAX, 0), (1, u32::MAX), (1, 1 << 16)] {
        refusal(&mut session, dial(count, first, Vec::new()), &format!("{count} data connections were asked for"));
    }
    let many = vec!["127.0.0.1:1".to_owned(); 1000];
    refusal(&mut session, dial(1, 0, many), "1000 addresses");
    // Addresses that are none are an error like one where nobody answers.
    let nonsense = vec![String::new(), ":".into(), "-oProxyCommand=x:1".into(), "a\0b:1".into()];
    let failure = session.request(dial(1, 0, nonsense)).expect_err("no address");
    assert_eq!(failure.code, ErrorCode::ConnectFailed, "{failure:?}");
    session.assert_alive();
    session.leave().unwrap();
    sandbox.assert_untouched();
}

/// Of no transfer, and of a receiver, none end; however many are asked for, one stays, which
/// its tests in the core show.
#[test]
fn streams_to_end_are_more_than_there_are() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox.root());
    let none = |session: &mut Session| {
        for count in [0, 1, u32::MAX] {
            for ask in [Retire { count, wake: 0 }, Retire { count, wake: u32::MAX }] {
                let answer = session.request(Ask::Retire(ask));
                assert!(matches!(answer, Ok(Tell::Done(Counted { count: 0 }))), "{answer:?}");
            }
        }
    };
    none(&mut session);
    session.begin();
    none(&mut session);
    session.assert_alive();
    session.leave().unwrap();
    sandbox.assert_untouched();
}

/// What a node that is asked to dial an address says of it.
fn dialed(session: &mut Session, address: std::net::SocketAddr, encrypt: bool) -> Failure {
    // Words of a protocol that takes a line for a command.
    let key = Some(carrack_core::wire::control::raw::Session {
        id: b"\r\nFLUSHALL\r\nxxxx".to_vec(),
        secret: vec![2; 32],
        encrypt,
    });
    let addresses = vec![address.to_string()];
    let dial = Dial { session: key, addresses, pin: vec![3; 32], count: 1, timeout_ms: 300, ..Dial::default() };
    session.request(Ask::Dial(Dial { first: 0x0d0a, tell_connected: true, ..dial })).expect_err("nobody is there")
}

/// A port that is closed, one that is silent, one that answers with something else, and one that hangs up: a client
/// that has its node knock there learns of none which it is, and the service hears nothing that the client chose.
#[test]
fn node_tells_nothing_of_what_it_dials() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let listens = "127.0.0.1:1".parse().unwrap();
    let dials = DialRule { listens, only_who_asks: false, told: Vec::new() };
    let mut session = Session::at_node(&sandbox.root(), dials);
    let listener = || TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = listener().local_addr().unwrap();
    let (silent, speaking, leaving) = (listener(), listener(), listener());
    let places = [silent.local_addr().unwrap(), speaking.local_addr().unwrap(), leaving.local_addr().unwrap()];
    let service = std::thread::spawn(move || {
        let mut heard = Vec::new();
        for _ in 0..2 {
            let (mut socket, _) = speaking.accept().unwrap();
            drop(leaving.accept().unwrap());
            socket.write_all(b"220 here\r\n").unwrap();
            let mut words = Vec::new();
            let _ = socket.read_to_end(&mut words);
            heard.push(words);
        }
        heard
    });
    for encrypt in [true, false] {
        let mut said = Vec::new();
        for address in [closed, places[0], places[1], places[2]] {
            let failure = dialed(&mut session, address, encrypt);
            assert_eq!(failure.code, ErrorCode::ConnectFailed, "{failure:?}");
            said.push(failure.message().replace(&address.to_string(), "ADDRESS"));
        }
        said.dedup();
        assert_eq!(said, ["data connection to ADDRESS: nobody who belongs to this copy answers there"]);
    }
    session.assert_alive();
    session.leave().unwrap();
    let heard = service.join().unwrap();
    assert!(heard.iter().all(|words| !words.is_empty()));
    assert!(!heard.iter().flat_map(|words| words.windows(4)).any(|word| word == b"FLUS" || word == b"\r\nFL"));
}

#[test]
fn node_does_not_dial_its_own_host() {
    let _watch = Watch::start();
    let sandbox = Sandbox::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    for only_who_asks in [false, true] {
        let dials = DialRule { listens: "[::]:7420".parse().unwrap(), only_who_asks, told: Vec::new() };
        let mut session = Session::at_node(&sandbox.root(), dials);
        let failure = dialed(&mut session, address, false);
        assert_eq!(failure.reason, Some(Reason::DialsNoOwnAddress), "{failure:?}");
        session.assert_alive();
        session.leave().unwrap();
    }
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
