//! A session in which something panics, beside another of the same node.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use carrack_core::wire::control::List;
use carrack_sys::dir::Dir;

use super::*;

/// As long as somebody may wait who waits in vain.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection that panics when it is written to for the n-th time.
struct Fused {
    out: UnixStream,
    writes: AtomicI64,
}

impl Write for Fused {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
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
    said: mpsc::Receiver<(u64, Tell)>,
}

impl Client {
    /// Of a session that panics at its n-th word; 0 for never.
    fn of_session(root: &Arc<Dir>, sessions: &Arc<NodeSessions>, panics_at: i64) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let environment = Environment {
            place: Place::Beneath(Arc::clone(root)),
            read_only: false,
            own: None,
            token: None,
            busy: false,
            data: DataPort::Shared(Arc::clone(sessions)),
            local_address: String::new(),
            peer_address: String::new(),
            tuning: Arc::default(),
        };
        let half = |socket: &UnixStream| socket.try_clone().unwrap();
        let (abort, out) = (half(&theirs), Fused { out: half(&theirs), writes: AtomicI64::new(panics_at) });
        let writer = MuxWriter::new(Box::new(out), Box::new(move || drop(abort.shutdown(Shutdown::Both))));
        let agent = Agent::new(writer, environment);
        std::thread::spawn(move || agent.run(theirs));
        let (say, said) = mpsc::channel();
        let input = half(&ours);
        let writer = MuxWriter::new(Box::new(ours), Box::new(|| {}));
        let reader = writer.clone();
        std::thread::spawn(move || {
            let _ = reader.read_all(input, &mut |_, payload| {
                say.send(Tell::decode(&payload).unwrap()).map_err(|_| io::ErrorKind::BrokenPipe.into())
            });
        });
        Self { writer, said }
    }

    fn ask(&self, request: u64, ask: Ask) {
        self.writer.send(Channel::CONTROL, &ask.encode(request)).unwrap();
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
        client.ask(8, list());
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
