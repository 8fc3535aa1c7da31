//! Sessions of one node beside each other: one in which something panics, and some that measure.

use std::cell::RefCell;
use std::io::Write;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use carrack_core::request::Verify;
use carrack_core::wire::Version;
use carrack_core::wire::control::{Begin, List, MakeDirectory, Origin, Role, SendRole, SourceSpec, TransferOptions};
use carrack_sys::dir::Dir;

use super::*;
use crate::data::measurements::PathTests;

/// As long as somebody may wait who waits in vain.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection that panics when it is written to for the n-th time.
struct Fused {
    out: UnixStream,
    writes: AtomicI64,
    /// Held while nothing is to be written.
    gate: Arc<Mutex<()>>,
}

impl Write for Fused {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _open = lock(&self.gate);
        assert_ne!(self.writes.fetch_sub(1, Ordering::Relaxed), 1, "a fuse has blown");
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The command's side of a session; what is said comes in order, and then the end.
struct Client {
    writer: MuxWriter,
    agent: Arc<Agent>,
    /// Held while the agent's words do not leave.
    gate: Arc<Mutex<()>>,
    said: mpsc::Receiver<(u64, Tell)>,
    /// What was said and nobody has looked for.
    kept: RefCell<Vec<(u64, Tell)>>,
}

impl Client {
    /// Of a session that panics at its n-th word; 0 for never.
    fn of_session(root: &Arc<Dir>, sessions: &Arc<NodeSessions>, panics_at: i64) -> Self {
        Self::from_address("", root, sessions, panics_at, Tuning::default())
    }

    fn from_address(
        address: &str,
        root: &Arc<Dir>,
        sessions: &Arc<NodeSessions>,
        panics_at: i64,
        tuning: Tuning,
    ) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let environment = Environment {
            place: Place::Beneath(Arc::clone(root)),
            read_only: false,
            gives_ownership: false,
            own: None,
            sources: None,
            token: None,
            grant: None,
            busy: false,
            data: DataPort::Shared(Arc::clone(sessions)),
            local_address: String::new(),
            peer_address: address.to_owned(),
            tuning: Arc::new(tuning),
            began: Instant::now(),
        };
        let half = |socket: &UnixStream| socket.try_clone().unwrap();
        let gate = Arc::<Mutex<()>>::default();
        let out = Fused { out: half(&theirs), writes: AtomicI64::new(panics_at), gate: Arc::clone(&gate) };
        let abort = half(&theirs);
        let writer = MuxWriter::new(Box::new(out), Box::new(move || drop(abort.shutdown(Shutdown::Both))));
        let agent = Agent::new(writer, environment);
        let served = Arc::clone(&agent);
        std::thread::spawn(move || served.run(theirs));
        let (say, said) = mpsc::channel();
        let input = half(&ours);
        let writer = MuxWriter::new(Box::new(ours), Box::new(|| {}));
        let reader = writer.clone();
        std::thread::spawn(move || {
            let _ = reader.read_all(input, &mut |channel, payload| match channel {
                Channel::CONTROL => {
                    say.send(Tell::decode(&payload).unwrap()).map_err(|_| io::ErrorKind::BrokenPipe.into())
                }
                _ => Ok(()),
            });
        });
        Self { writer, agent, gate, said, kept: RefCell::default() }
    }

    fn ask(&self, request: u64, ask: Ask) {
        self.writer.send(Channel::CONTROL, &ask.encode(request)).unwrap();
    }

    /// Asks for a measurement until the node has a place for it.
    fn begins_to_measure(&self) {
        let start = Instant::now();
        for request in 1.. {
            self.ask(request, measure());
            match self.answer(request) {
                Tell::Done(_) => return,
                Tell::Failed(why) if why.code == ErrorCode::Busy && start.elapsed() < PATIENCE => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn answer(&self, request: u64) -> Tell {
        self.find(|said, _| said == request)
    }

    /// Why its transfer has ended.
    fn ended(&self) -> Failure {
        let ended = self.find(|_, tell| matches!(tell, Tell::Ended(_)));
        let Tell::Ended(ended) = ended else { unreachable!("it was looked for") };
        ended.failure.expect("a failure")
    }

    fn find(&self, is_it: impl Fn(u64, &Tell) -> bool) -> Tell {
        let mut kept = self.kept.borrow_mut();
        if let Some(at) = kept.iter().position(|(request, tell)| is_it(*request, tell)) {
            return kept.remove(at).1;
        }
        loop {
            let (request, tell) = self.said.recv_timeout(PATIENCE).expect("it is said");
            if is_it(request, &tell) {
                return tell;
            }
            kept.push((request, tell));
        }
    }

    /// All that is said until the end of the session.
    fn rest(&self) -> Vec<(u64, Tell)> {
        let mut all = Vec::new();
        loop {
            match self.said.recv_timeout(PATIENCE) {
                Ok(said) => all.push(said),
                Err(mpsc::RecvTimeoutError::Disconnected) => return all,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("the session has not ended, after {all:?}"),
            }
        }
    }
}

fn list() -> Ask {
    Ask::List(List { path: Vec::new(), recursive: true, ..List::default() })
}

/// Bytes that are made up, without end.
fn measure() -> Ask {
    let options = TransferOptions::of(&Default::default(), Verify::Wire, limits::BLOCK_BYTES_MIN, Version::NEWEST);
    let source = SourceSpec { origin: Origin::Zeros(1 << 40), target: b"t".to_vec() };
    Ask::Begin(Begin { options, role: Role::Send(SendRole { sources: vec![source], known: false }) })
}

/// A node that takes measurements, for so long, from clients at these addresses.
fn measuring(longest: Duration, addresses: [&str; 2]) -> (tempfile::TempDir, [Client; 2]) {
    let place = tempfile::tempdir().unwrap();
    let root = Arc::new(Dir::open_ambient(place.path()).unwrap());
    let mut sessions = NodeSessions::new(1, [0; 32]);
    sessions.measurements = Arc::new(PathTests::new(true));
    let sessions = Arc::new(sessions);
    let tuning = Tuning { measure_longest: longest, ..Tuning::default() };
    let clients = addresses.map(|address| Client::from_address(address, &root, &sessions, 0, tuning));
    (place, clients)
}

#[test]
fn measurement_that_takes_too_long_is_ended_and_others_may_measure() {
    let (_place, [first, second]) = measuring(Duration::from_millis(100), ["10.0.0.1", "10.0.0.2"]);
    first.begins_to_measure();
    second.begins_to_measure();
    let why = first.ended();
    assert_eq!(why.code, ErrorCode::ResourceLimit, "{why}");
    assert!(why.message().contains("measures for 0.1 s at most"), "{why}");
    // Its session goes on, and measures no more.
    first.ask(1 << 40, measure());
    let Tell::Failed(why) = first.answer(1 << 40) else { panic!("it measures again") };
    assert_eq!(why.code, ErrorCode::ProtocolViolation, "{why}");
}

#[test]
fn measurement_that_was_cancelled_leaves_its_place_to_others_while_its_session_goes_on() {
    let (_place, [first, second]) = measuring(Duration::MAX, ["10.0.0.1", "10.0.0.2"]);
    first.begins_to_measure();
    second.ask(1 << 40, measure());
    let Tell::Failed(why) = second.answer(1 << 40) else { panic!("two measure at once") };
    assert_eq!(why.code, ErrorCode::Busy, "{why}");
    first.ask(1 << 40, Ask::Cancel);
    second.begins_to_measure();
    first.ask(1 << 41, list());
    assert!(matches!(first.answer(1 << 41), Tell::Page(_) | Tell::Done(_)), "its session is there");
}

#[test]
fn panic_ends_its_session_and_no_other() {
    let place = tempfile::tempdir().unwrap();
    for number in 0..3 {
        std::fs::write(place.path().join(format!("file-{number}")), "content").unwrap();
    }
    let root = Arc::new(Dir::open_ambient(place.path()).unwrap());
    let sessions = Arc::new(NodeSessions::new(1, [0; 32]));
    let other = Client::of_session(&root, &sessions, 0);
    // A listing is a page, and its end.
    for panics_at in 1..=2 {
        let client = Client::of_session(&root, &sessions, panics_at);
        client.ask(7, list());
        // The session may be over already.
        let _ = client.writer.send(Channel::CONTROL, &list().encode(8));
        let rest = client.rest();
        let told = rest.iter().rev().find(|said| said.0 == 7).expect("an answer");
        let Tell::Failed(why) = &told.1 else { panic!("{told:?}") };
        assert_eq!(why.code, ErrorCode::Internal);
        assert!(why.message().contains("a fuse has blown"), "{}", why.message());
        // What it had been asked besides is not answered by a session in an unknown state.
        assert!(!rest.iter().any(|said| said.0 == 8), "{rest:?}");
    }
    other.ask(1, list());
    other.ask(2, Ask::Bye);
    let said: Vec<_> = other.rest().into_iter().map(|said| said.1).collect();
    assert!(matches!(said[..], [Tell::Page(_), Tell::Done(_)]), "{said:?}");
}

fn over() -> Failure {
    failure(ErrorCode::PermissionDenied, Side::Link, "it is over").for_reason(Reason::GrantCeiling)
}

/// A directory with one file, and a client of a node for it.
fn served() -> (tempfile::TempDir, Client) {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("file"), "content").unwrap();
    let root = Arc::new(Dir::open_ambient(place.path()).unwrap());
    let client = Client::of_session(&root, &Arc::new(NodeSessions::new(1, [0; 32])), 0);
    (place, client)
}

fn make_directory() -> Ask {
    Ask::MakeDirectory(MakeDirectory { path: b"made".to_vec(), parents: false })
}

/// What was under way is answered before the reason is told, and nothing else is begun.
#[test]
fn session_that_is_ended_answers_first_and_says_why_then() {
    let (place, client) = served();
    // The first word of the answer is on its way.
    let closed = lock(&client.gate);
    client.ask(7, list());
    while client.agent.work().requests == 0 {
        std::thread::yield_now();
    }
    client.ask(8, make_directory());
    let ending = Arc::clone(&client.agent);
    let ended = std::thread::spawn(move || ending.end_session(over()));
    while client.agent.ending.get().is_none() {
        std::thread::yield_now();
    }
    drop(closed);
    ended.join().unwrap();
    let said = client.rest();
    let answer = said.iter().position(|(request, tell)| *request == 7 && !matches!(tell, Tell::Page(_)));
    let reason = said.iter().position(|(request, tell)| *request == 0 && matches!(tell, Tell::Failed(_)));
    assert!(answer.is_some() && answer < reason, "{said:?}");
    assert!(said.iter().all(|(request, _)| *request != 8) && !place.path().join("made").exists(), "{said:?}");
}

/// Nobody waits for a request that never comes.
#[test]
fn session_that_is_ended_while_it_has_nothing_to_do_says_why_at_once() {
    let (_place, client) = served();
    client.agent.end_session(over());
    let said = client.rest();
    assert!(matches!(&said[..], [(0, Tell::Failed(why))] if *why == over()), "{said:?}");
}

/// A client that takes nothing keeps no session that was ended.
#[test]
fn session_of_a_client_that_reads_nothing_is_ended_in_time() {
    let (_place, client) = served();
    let _closed = lock(&client.gate);
    client.ask(7, list());
    while client.agent.work().requests == 0 {
        std::thread::yield_now();
    }
    client.agent.end_session(over());
    assert!(client.agent.left.is_set());
}

/// The stream of a tunnel takes nothing for as long as its disk or its reader pauses: nothing of what came is lost.
/// Nobody waits for a stream without a transfer, nor where there is nobody at the other end any more.
#[test]
fn stream_of_a_tunnel_is_waited_for_as_long_as_its_transfer_runs() {
    let (_place, [client, _]) = measuring(Duration::MAX, ["10.0.0.1", "10.0.0.2"]);
    let long = 2 * Tuning::DEFAULT.silence;
    assert!(client.agent.is_waited_for(Duration::ZERO) && !client.agent.is_waited_for(long));
    client.begins_to_measure();
    assert!(client.agent.is_waited_for(long));
    let payload: Vec<u8> = (0..4 << 20).map(|number: u32| number as u8).collect();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ours.set_write_timeout(Some(Duration::from_millis(5))).unwrap();
    let (agent, content) = (Arc::clone(&client.agent), payload.clone());
    let handed_on = std::thread::spawn(move || agent.hand_on(&ours, &content));
    // It has timed out many times by then.
    assert!(!client.agent.left.wait(Duration::from_millis(500)) && !handed_on.is_finished());
    let mut came = Vec::new();
    io::Read::read_to_end(&mut theirs, &mut came).unwrap();
    assert!(came == payload, "{} bytes came", came.len());
    client.ask(1 << 40, Ask::Bye);
    client.rest();
    assert!(!client.agent.is_waited_for(Duration::ZERO));
}
