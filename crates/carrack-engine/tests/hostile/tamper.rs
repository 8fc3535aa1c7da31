//! Somebody on the path between two honest ends, who changes, repeats, reorders, cuts and injects. A
//! wrong file never gets a name.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrack_core::chance::Chance;
use carrack_core::ids::StreamId;
use carrack_core::report::Failure;
use carrack_core::request::Encrypt;
use carrack_core::wire::control::raw::*;
use carrack_core::wire::frame::{HEADER_BYTES, MAC_BYTES, TRAILER_BYTES};
use carrack_engine::testing::data::dial;
use carrack_engine::testing::data::stream::Connection;

use crate::sandbox::Sandbox;
use crate::session::{BLOCK, Session, anywhere, options, receive_into, told, xxh128};
use crate::watch::Watch;

/// What a dialer in the clear says before its first frame: magic, greeting, proof.
const GREETING: usize = 4 + 50 + 32;
const PAYLOAD: usize = HEADER_BYTES + MAC_BYTES;
const TRAILER: usize = PAYLOAD + BLOCK as usize;
/// A full block in the clear.
const FRAME: usize = TRAILER + TRAILER_BYTES + MAC_BYTES;
const FILE_BYTES: usize = 20 * BLOCK as usize + 123;

/// What happens to the bytes of a connection from its dialer to its listener. The first argument counts connections.
type Alter = Arc<dyn Fn(usize, &mut TcpStream, &mut TcpStream) -> io::Result<()> + Send + Sync>;

fn named(name: &str, work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().name(name.into()).spawn(work).unwrap();
}

/// Stands before a port, and tells its own.
fn proxy(port: u16, alter: Alter) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    named("proxy", move || {
        for (number, near) in listener.incoming().enumerate() {
            let (Ok(mut near), Ok(mut far)) = (near, TcpStream::connect(("127.0.0.1", port))) else { return };
            let (mut back, mut answers) = (far.try_clone().unwrap(), near.try_clone().unwrap());
            named("proxy back", move || {
                let _ = io::copy(&mut back, &mut answers);
                let _ = answers.shutdown(Shutdown::Both);
            });
            let alter = Arc::clone(&alter);
            named("proxy forth", move || {
                let _ = alter(number, &mut near, &mut far);
                let _ = far.shutdown(Shutdown::Both);
                let _ = near.shutdown(Shutdown::Both);
            });
        }
    });
    own
}

fn pass(from: &mut TcpStream, to: &mut TcpStream, bytes: usize) -> io::Result<()> {
    let passed = io::copy(&mut from.take(bytes as u64), to)?;
    if passed < bytes as u64 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

fn pass_rest(from: &mut TcpStream, to: &mut TcpStream) -> io::Result<()> {
    io::copy(from, to).map(|_| ())
}

fn read(from: &mut TcpStream, bytes: usize) -> io::Result<Vec<u8>> {
    let mut content = vec![0; bytes];
    from.read_exact(&mut content)?;
    Ok(content)
}

/// Changes one bit of each of these places, on the connections of this parity (or all).
fn flip(places: Vec<usize>, only_first: bool) -> Alter {
    Arc::new(move |number, from, to| {
        let mut passed = 0;
        for &place in places.iter().filter(|_| number == 0 || !only_first) {
            pass(from, to, place - passed)?;
            let mut byte = read(from, 1)?;
            byte[0] ^= 0x10;
            to.write_all(&byte)?;
            passed = place + 1;
        }
        pass_rest(from, to)
    })
}

/// How a transfer between two honest ends went.
struct Outcome {
    sent: Ended,
    received: Result<(), Failure>,
}

/// The way between two agents.
struct Way {
    encrypt: Encrypt,
    streams: u32,
    alter: Alter,
}

/// Connections that are made in the place of lost ones.
const REDIALS: u32 = 5;

/// Sends the directory `from` to the sandbox; as a command does, makes anew what is lost. An error when not even the
/// first data connections could be made.
fn transfer(from: &Path, sandbox: &Sandbox, way: Way) -> Result<Outcome, Failure> {
    transfer_with(options(), from, sandbox, way)
}

fn transfer_with(options: RawOptions, from: &Path, sandbox: &Sandbox, way: Way) -> Result<Outcome, Failure> {
    let mut sender = Session::start(from).with(way.encrypt);
    let mut receiver = Session::start(&sandbox.root()).with(way.encrypt);
    sender.forward_to(&receiver);
    receiver.forward_to(&sender);
    let (port, pin) = receiver.listen();
    let addresses = vec![format!("127.0.0.1:{}", proxy(port, way.alter))];
    let dial = Dial { session: Some(sender.key().into()), addresses, pin, timeout_ms: 5000, ..Dial::default() };
    let dialed = sender.request(Ask::Dial(Dial { count: way.streams, ..dial.clone() }));
    let outcome = dialed.map(|_| {
        let options = Some(options);
        receiver.request(Ask::Begin(Begin { options: options.clone(), ..receive_into(b"") })).unwrap();
        let role = Role::Send(SendRole { sources: vec![Source::default()], known: false });
        sender.request(Ask::Begin(Begin { options, role: Some(role) })).unwrap();
        let mut redials = 0;
        let sent = loop {
            match sender.wait(|_, tell| matches!(tell, Tell::Ended(_) | Tell::StreamLost(_))) {
                Some(Tell::Ended(sent)) => break sent,
                Some(Tell::StreamLost(_)) if redials < REDIALS => {
                    let again = Dial { first: way.streams + redials, count: 1, ..dial.clone() };
                    sender.ask(Ask::Dial(again));
                    redials += 1;
                }
                Some(Tell::StreamLost(_)) => drop(sender.ask(Ask::Cancel(Empty {}))),
                other => panic!("{other:?}"),
            }
        };
        Outcome { sent, received: receiver.ended() }
    });
    sender.leave().unwrap();
    receiver.leave().unwrap();
    assert_only_right_files(from, sandbox);
    outcome
}

/// Whatever has a name is whole, and is what the source has under that name.
fn assert_only_right_files(from: &Path, sandbox: &Sandbox) {
    sandbox.assert_untouched();
    for name in sandbox.names() {
        let (there, here) = (from.join(&name), sandbox.root().join(&name));
        if here.is_file() {
            assert!(std::fs::read(&there).unwrap() == std::fs::read(&here).unwrap(), "{name} is wrong");
        }
    }
}

fn random(seed: u64, bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    carrack_engine::testing::storage::synthetic::random_at(seed, 0, &mut content);
    content
}

/// A directory with one file of several blocks.
fn one_file() -> tempfile::TempDir {
    let directory = crate::sandbox::directory();
    std::fs::write(directory.path().join("f"), random(1, FILE_BYTES)).unwrap();
    directory
}

fn clear(streams: u32, alter: Alter) -> Way {
    Way { encrypt: Encrypt::None, streams, alter }
}

/// Where the first frame starts: the bundle of the source directory itself is none.
fn frame(number: usize) -> usize {
    GREETING + number * FRAME
}

#[test]
fn tamper_of_nothing_recovers_nothing() {
    let _watch = Watch::start();
    let from = one_file();
    for encrypt in [Encrypt::None, Encrypt::Tls] {
        let sandbox = Sandbox::new();
        let seen = Arc::new(Mutex::new(0));
        let count = Arc::clone(&seen);
        let alter: Alter = Arc::new(move |_, from, to| {
            let mut buffer = vec![0; 64 << 10];
            loop {
                let read = from.read(&mut buffer)?;
                *count.lock().unwrap() += read;
                if read == 0 {
                    return Ok(());
                }
                to.write_all(&buffer[..read])?;
            }
        });
        let outcome = transfer(from.path(), &sandbox, Way { encrypt, streams: 1, alter }).unwrap();
        let (counts, faults) = told(&outcome.sent);
        assert_eq!((outcome.received, outcome.sent.failure), (Ok(()), None));
        assert_eq!((counts.files, faults.digest_mismatches, faults.streams_lost), (1, 0, 0));
        assert_eq!(sandbox.names(), ["f"]);
        if encrypt == Encrypt::None {
            // What the places below are counted from. The frame that ends the stream may find it closed.
            let (all, end) = (frame(20) + (FRAME - BLOCK as usize + 123), HEADER_BYTES + MAC_BYTES);
            let seen = *seen.lock().unwrap();
            assert!(seen == all || seen == all + end, "{seen} {all}");
        }
    }
}

/// The stream ended, and others brought the file. Of several streams the altered one may have carried nothing at that
/// place.
fn assert_replaced(outcome: &Outcome, sandbox: &Sandbox, streams: u32, what: &str) {
    assert_eq!((&outcome.received, &outcome.sent.failure), (&Ok(()), &None), "{what}");
    assert!(streams > 1 || told(&outcome.sent).1.streams_lost == 1, "{what}: nobody noticed: {:?}", outcome.sent);
    assert_eq!(sandbox.names(), ["f"], "{what}");
}

#[test]
fn altered_metadata_ends_its_stream() {
    let _watch = Watch::start();
    let from = one_file();
    let places = [
        (0, "kind"),
        (1, "flags"),
        (6, "length"),
        (15, "item"),
        (21, "offset"),
        (HEADER_BYTES, "first byte of the header's MAC"),
        (HEADER_BYTES + MAC_BYTES - 1, "last byte of the header's MAC"),
        (TRAILER, "status"),
        (TRAILER + 8, "digest"),
        (TRAILER + 47, "last byte of the trailer"),
        (TRAILER + 48, "first byte of the trailer's MAC"),
        (TRAILER + 63, "last byte of the trailer's MAC"),
    ];
    for (place, what) in places {
        for (number, streams) in [(0, 1), (2, 1), (0, 3)] {
            let sandbox = Sandbox::new();
            let alter = flip(vec![frame(number) + place], true);
            let outcome = transfer(from.path(), &sandbox, clear(streams, alter)).unwrap();
            assert_replaced(&outcome, &sandbox, streams, what);
        }
    }
}

#[test]
fn altered_payload_is_sent_again() {
    let _watch = Watch::start();
    let from = one_file();
    let all: [&[usize]; 4] = [
        &[frame(0) + PAYLOAD],
        &[frame(0) + TRAILER - 1],
        &[frame(3) + PAYLOAD + 12_345],
        &[frame(0) + PAYLOAD + 7, frame(1) + PAYLOAD + 7, frame(9) + PAYLOAD + 7],
    ];
    for (places, options) in all.into_iter().flat_map(|places| [(places, options()), (places, xxh128())]) {
        let sandbox = Sandbox::new();
        let way = clear(1, flip(places.to_vec(), true));
        let outcome = transfer_with(options, from.path(), &sandbox, way).unwrap();
        let (counts, faults) = told(&outcome.sent);
        assert_eq!((outcome.received, outcome.sent.failure), (Ok(()), None));
        assert_eq!(faults.digest_mismatches, places.len() as u64);
        assert_eq!((counts.files, faults.streams_lost), (1, 0));
        assert_eq!(sandbox.names(), ["f"]);
    }
    // Every time: it is given up, and said so.
    let sandbox = Sandbox::new();
    let alter: Alter = Arc::new(|_, from, to| {
        pass(from, to, GREETING + PAYLOAD)?;
        loop {
            let mut rest = read(from, FRAME)?;
            rest[0] ^= 1;
            to.write_all(&rest)?;
        }
    });
    let outcome = transfer(from.path(), &sandbox, clear(1, alter)).unwrap();
    assert!(told(&outcome.sent).0.files_failed == 1 || outcome.sent.failure.is_some(), "{:?}", outcome.sent);
    assert_eq!(sandbox.names(), Vec::<String>::new());
}

#[test]
fn replayed_reordered_and_missing_frames_end_their_stream() {
    let _watch = Watch::start();
    let from = one_file();
    type Way = (&'static str, fn(&mut TcpStream, &mut TcpStream) -> io::Result<()>);
    let ways: [Way; 4] = [
        ("replayed", |from, to| {
            let frame = read(from, FRAME)?;
            to.write_all(&frame).and_then(|()| to.write_all(&frame))
        }),
        ("reordered", |from, to| {
            let (first, second) = (read(from, FRAME)?, read(from, FRAME)?);
            to.write_all(&second).and_then(|()| to.write_all(&first))
        }),
        ("missing", |from, _| read(from, FRAME).map(|_| ())),
        ("its trailer replaced by the next one's", |from, to| {
            let (mut first, second) = (read(from, FRAME)?, read(from, FRAME)?);
            first[TRAILER..].copy_from_slice(&second[TRAILER..]);
            to.write_all(&first).and_then(|()| to.write_all(&second))
        }),
    ];
    for (what, way) in ways {
        for streams in [1, 2] {
            let sandbox = Sandbox::new();
            let alter: Alter = Arc::new(move |number, from, to| {
                pass(from, to, GREETING)?;
                if number == 0 {
                    way(from, to)?;
                }
                pass_rest(from, to)
            });
            let outcome = transfer(from.path(), &sandbox, clear(streams, alter)).unwrap();
            assert_replaced(&outcome, &sandbox, streams, what);
        }
    }
}

#[test]
fn cut_stream_is_replaced_by_the_others() {
    let _watch = Watch::start();
    let from = one_file();
    let mut lost = 0;
    for encrypt in [Encrypt::None, Encrypt::Tls] {
        for place in [5_000, 70_000, 140_001] {
            let sandbox = Sandbox::new();
            let alter: Alter =
                Arc::new(move |number, from, to| if number == 0 { pass(from, to, place) } else { pass_rest(from, to) });
            let outcome = transfer(from.path(), &sandbox, Way { encrypt, streams: 2, alter }).unwrap();
            let (counts, faults) = told(&outcome.sent);
            assert_eq!((outcome.received, outcome.sent.failure), (Ok(()), None));
            assert_eq!(counts.files, 1);
            assert_eq!(sandbox.names(), ["f"]);
            lost += faults.streams_lost;
        }
    }
    // The other stream may have been so quick that the first carried nothing, but not always.
    assert!(lost > 0);
}

/// A record that was altered ends its stream; the file comes by the others.
#[test]
fn altered_records_end_their_stream() {
    let _watch = Watch::start();
    let from = one_file();
    for place in [3_000, 20_000, 65_536, 300_001] {
        for (streams, only_first) in [(1, true), (3, true)] {
            let sandbox = Sandbox::new();
            let way = Way { encrypt: Encrypt::Tls, streams, alter: flip(vec![place], only_first) };
            let outcome = transfer(from.path(), &sandbox, way).unwrap();
            assert_replaced(&outcome, &sandbox, streams, &format!("{place}"));
        }
    }
}

/// A bit anywhere in a transfer of many small files and a larger one.
#[test]
fn bit_altered_anywhere() {
    let _watch = Watch::start();
    let from = one_file();
    std::fs::create_dir(from.path().join("d")).unwrap();
    for number in 0..100 {
        std::fs::write(from.path().join(format!("d/{number}")), random(number, 37 * number as usize)).unwrap();
    }
    std::os::unix::fs::symlink("d/1", from.path().join("link")).unwrap();
    for seed in 0..40u64 {
        let encrypt = if seed % 4 == 0 { Encrypt::Tls } else { Encrypt::None };
        let greeting = if encrypt == Encrypt::Tls { 2_000 } else { GREETING };
        // Half of them among the small files, which come first.
        let span = if seed % 2 == 0 { 180_000 } else { 1_400_000 };
        let place = greeting + Chance::new(seed).below(span) as usize;
        let sandbox = Sandbox::new();
        let way = Way { encrypt, streams: 1 + seed as u32 % 2, alter: flip(vec![place], true) };
        let outcome = transfer(from.path(), &sandbox, way).unwrap();
        if outcome.received.is_ok() && outcome.sent.failure.is_none() && told(&outcome.sent).0.files_failed == 0 {
            assert_eq!(sandbox.names().len(), 103, "seed {seed}");
        }
    }
}

/// A greeting that was altered in any part leads nowhere, and so does one that was recorded, or
/// made without the secret.
#[test]
fn connections_without_the_secret_are_refused() {
    let _watch = Watch::start();
    let from = one_file();
    for place in [0, 4, 20, 22, 53, 54, 85] {
        let sandbox = Sandbox::new();
        let refused = transfer(from.path(), &sandbox, clear(1, flip(vec![place], true)));
        match refused {
            Err(_) => assert_eq!(sandbox.names(), Vec::<String>::new()),
            // The last part is the dialer's proof: only the listener sees that it is wrong.
            Ok(outcome) => {
                assert!(place >= 54, "{place}");
                assert_replaced(&outcome, &sandbox, 1, "the dialer's proof");
            }
        }
    }
    for encrypt in [Encrypt::None, Encrypt::Tls] {
        let sandbox = Sandbox::new();
        let mut receiver = Session::start(&sandbox.root()).with(encrypt);
        let (port, pin) = receiver.listen();
        receiver.begin();
        let pin: [u8; 32] = pin.try_into().unwrap();
        let mut key = receiver.key();
        key.secret = [9; 32];
        let address = format!("127.0.0.1:{port}");
        for id in [key.id, [9; 16]] {
            key.id = id;
            let dialed = dial::dial(
                (None, std::slice::from_ref(&address), &anywhere(), None),
                &key,
                pin,
                StreamId(0),
                0,
                Duration::from_secs(5),
                &|_| {},
            );
            match dialed {
                Err(error) => {
                    assert!(
                        encrypt == Encrypt::None
                            && (id != [9; 16]) == (error.kind() == io::ErrorKind::PermissionDenied)
                    );
                }
                // On TLS no answer is waited for: the connection is closed, and nothing was said on it.
                Ok(dialed) => assert!(encrypt == Encrypt::Tls && is_closed(&dialed.connection)),
            }
        }
        receiver.say(&carrack_core::wire::peer::PeerMessage::Finish);
        receiver.ended().unwrap();
        receiver.leave().unwrap();
        sandbox.assert_untouched();
    }
}

fn is_closed(connection: &Connection) -> bool {
    connection.socket.set_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut said = [0; 1];
    match (&*connection.socket).read(&mut said) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn recorded_connection_is_refused() {
    let _watch = Watch::start();
    let from = one_file();
    let sandbox = Sandbox::new();
    let mut sender = Session::start(from.path()).with(Encrypt::None);
    let mut receiver = Session::start(&sandbox.root()).with(Encrypt::None);
    sender.forward_to(&receiver);
    receiver.forward_to(&sender);
    let (port, pin) = receiver.listen();
    let tape = Arc::new(Mutex::new(Vec::new()));
    let recorder = Arc::clone(&tape);
    let alter: Alter = Arc::new(move |_, from, to| {
        let mut buffer = [0; 4096];
        loop {
            let read = from.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            recorder.lock().unwrap().extend_from_slice(&buffer[..read]);
            to.write_all(&buffer[..read])?;
        }
    });
    let addresses = vec![format!("127.0.0.1:{}", proxy(port, alter))];
    let session = Some(sender.key().into());
    sender
        .request(Ask::Dial(Dial { session, addresses, pin, count: 1, first: 0, timeout_ms: 5000, ..Dial::default() }))
        .unwrap();
    // The recorded greeting, against the same listener while it waits for more.
    let recorded = loop {
        let recorded = tape.lock().unwrap().clone();
        assert!(recorded.len() <= GREETING);
        if recorded.len() == GREETING {
            break recorded;
        }
        std::thread::yield_now();
    };
    let mut replay = TcpStream::connect(("127.0.0.1", port)).unwrap();
    replay.write_all(&recorded).unwrap();
    let mut answer = Vec::new();
    // It proves itself (64 bytes), sees that the proof is of another conversation, and hangs up.
    let _ = replay.read_to_end(&mut answer);
    assert_eq!(answer.len(), 64);
    receiver.request(Ask::Begin(receive_into(b""))).unwrap();
    let role = Role::Send(SendRole { sources: vec![Source::default()], known: false });
    sender.request(Ask::Begin(Begin { options: Some(options()), role: Some(role) })).unwrap();
    receiver.ended().unwrap();
    sender.leave().unwrap();
    receiver.leave().unwrap();
    assert_only_right_files(from.path(), &sandbox);
    assert_eq!(sandbox.names(), ["f"]);
}
