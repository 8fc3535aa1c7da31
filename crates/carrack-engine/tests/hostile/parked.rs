//! Streams that were asked to end and stay connected for a while, when somebody on the path closes them meanwhile.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use carrack_core::wire::control::raw::*;

use crate::sandbox::{Sandbox, directory};
use crate::session::{BLOCK, Session, options, receive_into, told};
use crate::watch::Watch;

/// At the rate below for three seconds: longer than an idle stream takes to notice that it was closed.
const BLOCKS: u64 = 300;
const BLOCKS_A_SECOND: u64 = 100;
const STREAMS: usize = 2;

/// A connection on its way through the proxy.
struct Passing {
    bytes: AtomicU64,
    sockets: [TcpStream; 2],
}

type Connections = Arc<Mutex<Vec<Arc<Passing>>>>;

fn named(name: &str, work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().name(name.into()).spawn(work).unwrap();
}

/// Stands before a port; its own, and what passes.
fn proxy(port: u16) -> (u16, Connections) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let connections = Connections::default();
    let made = Arc::clone(&connections);
    named("proxy", move || {
        for near in listener.incoming() {
            let (Ok(near), Ok(far)) = (near, TcpStream::connect(("127.0.0.1", port))) else { return };
            let half = |socket: &TcpStream| socket.try_clone().unwrap();
            let passing = Passing { bytes: AtomicU64::new(0), sockets: [half(&near), half(&far)] };
            let passing = Arc::new(passing);
            made.lock().unwrap().push(Arc::clone(&passing));
            let (back, answers) = (half(&far), half(&near));
            named("proxy back", move || drop(pass(back, answers, &AtomicU64::new(0))));
            named("proxy forth", move || drop(pass(near, far, &passing.bytes)));
        }
    });
    (own, connections)
}

fn pass(mut from: TcpStream, mut to: TcpStream, bytes: &AtomicU64) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return to.shutdown(Shutdown::Write);
        }
        to.write_all(&buffer[..read])?;
        bytes.fetch_add(read as u64, Ordering::Relaxed);
    }
}

/// The connection on which nothing comes while others carry several blocks.
fn parked(connections: &Connections) -> Arc<Passing> {
    let deadline = Instant::now() + Duration::from_secs(20);
    let passed =
        |all: &[Arc<Passing>]| -> Vec<u64> { all.iter().map(|one| one.bytes.load(Ordering::Relaxed)).collect() };
    let all = connections.lock().unwrap().clone();
    assert_eq!(all.len(), STREAMS);
    let mut before = passed(&all);
    while Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
        let grown: Vec<u64> = passed(&all).iter().zip(&before).map(|(now, before)| now - before).collect();
        if grown.iter().all(|grown| *grown > 0) {
            before = passed(&all);
        } else if grown.iter().any(|grown| *grown > 8 * u64::from(BLOCK)) {
            let still = grown.iter().position(|grown| *grown == 0).unwrap();
            return Arc::clone(&all[still]);
        }
    }
    panic!("no stream rests");
}

/// Two streams, of which one is parked, and then cut off. `is_noticed`: only when the sender has told that it is lost
/// is it asked to go on.
fn cut_while_parked(is_noticed: bool) {
    let (from, sandbox) = (directory(), Sandbox::new());
    let mut content = vec![0; (BLOCKS * u64::from(BLOCK)) as usize];
    carrack_engine::testing::storage::synthetic::random_at(3, 0, &mut content);
    std::fs::write(from.path().join("f"), &content).unwrap();
    let (mut sender, mut receiver) = (Session::start(from.path()), Session::start(&sandbox.root()));
    sender.forward_to(&receiver);
    receiver.forward_to(&sender);
    let (port, pin) = receiver.listen();
    let (port, connections) = proxy(port);
    let session = Some(sender.key().into());
    let addresses = vec![format!("127.0.0.1:{port}")];
    let dial = Dial { session, addresses, pin, count: STREAMS as u32, timeout_ms: 5000, ..Dial::default() };
    sender.request(Ask::Dial(dial)).unwrap();
    let rate_limit = BLOCKS_A_SECOND * u64::from(BLOCK);
    let options = Some(RawOptions { rate_limit, ..options() });
    receiver.request(Ask::Begin(Begin { options: options.clone(), ..receive_into(b"") })).unwrap();
    let role = Role::Send(SendRole { sources: vec![Source::default()], known: false });
    sender.request(Ask::Begin(Begin { options, role: Some(role) })).unwrap();

    let asked = |sender: &mut Session, count, wake| match sender.request(Ask::Retire(Retire { count, wake })) {
        Ok(Tell::Done(Counted { count })) => count,
        other => panic!("{other:?}"),
    };
    // Of one that is there, none ends: both have to be.
    while asked(&mut sender, 1, 0) == 0 {
        std::thread::yield_now();
    }
    let parked = parked(&connections);
    for socket in &parked.sockets {
        let _ = socket.shutdown(Shutdown::Both);
    }
    if is_noticed {
        let lost = sender.wait(|_, tell| matches!(tell, Tell::StreamLost(_)));
        assert!(matches!(lost, Some(Tell::StreamLost(StreamLost { retired: true, .. }))), "{lost:?}");
        assert_eq!(asked(&mut sender, 0, 1), 0, "it has gone");
    } else {
        // It goes on, and what it is given goes down the other when it fails; or its end was noticed before.
        let woken = asked(&mut sender, 0, 1);
        let lost = sender.wait(|_, tell| matches!(tell, Tell::StreamLost(_)));
        let Some(Tell::StreamLost(StreamLost { retired, .. })) = lost else { panic!("{lost:?}") };
        assert_eq!(woken, u64::from(!retired), "one that was parked does not go on");
    }
    assert_eq!(receiver.ended(), Ok(()));
    let Some(Tell::Ended(sent)) = sender.wait(|_, tell| matches!(tell, Tell::Ended(_))) else { panic!() };
    let (counts, faults) = told(&sent);
    assert_eq!((sent.failure, counts.files, faults.digest_mismatches), (None, 1, 0));
    sender.leave().unwrap();
    receiver.leave().unwrap();
    assert!(std::fs::read(sandbox.root().join("f")).unwrap() == content);
    sandbox.assert_untouched();
}

#[test]
fn parked_stream_that_was_cut_off_is_told_and_does_not_go_on() {
    let _watch = Watch::start();
    cut_while_parked(true);
}

#[test]
fn wake_of_a_parked_stream_that_was_cut_off_costs_nothing() {
    let _watch = Watch::start();
    cut_while_parked(false);
}
