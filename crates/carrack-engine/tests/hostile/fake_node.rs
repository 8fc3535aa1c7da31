//! A node that is none: it has a key and speaks TLS, and then says whatever a test wants.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use carrack_core::location::{Location, NodeAddress};
use carrack_core::report::{ItemKind, Report};
use carrack_core::request::{CopyOptions, CopyRequest};
use carrack_core::tuning::Tuning;
use carrack_core::wire::PROTOCOL_VERSION;
use carrack_core::wire::control::SessionKey;
use carrack_core::wire::control::raw::*;
use carrack_core::wire::mux::Channel;
use carrack_core::wire::peer::PeerMessage;
use carrack_engine::stores::store::Store;
use carrack_engine::testing::data::hello;
use carrack_engine::testing::data::stream::{Connection, OutStream};
use carrack_engine::testing::net::mux::MuxWriter;
use carrack_engine::testing::net::opening::{OpenedConnection, ProtocolOpening, open};
use carrack_engine::testing::net::socket::Socket;
use carrack_engine::testing::net::tls::{ALPN_CONTROL, Key, Tls};
use carrack_engine::testing::net::tls_duplex::{self, DuplexReader};
use carrack_engine::{Context, Copy, Stores};

use crate::sandbox::Sandbox;

const PATIENCE: Duration = Duration::from_secs(20);

/// The fake's side of one control connection.
pub struct Conversation {
    writer: MuxWriter,
    asked: mpsc::Receiver<(u64, Ask)>,
    peer: mpsc::Receiver<PeerMessage>,
    data: TcpListener,
    /// Held while nothing is read.
    hearing: Arc<Mutex<()>>,
    key: Key,
    session: Option<SessionKey>,
    /// What is under the paths that it is asked about.
    pub kind: Option<ItemKind>,
    /// All that it was asked.
    pub seen: Vec<Ask>,
}

/// Of a command that does not wait long for last words: most fakes say none.
pub const IMPATIENT: Tuning = Tuning {
    last_words: Duration::from_millis(200),
    leave_after: Duration::from_millis(400),
    leave_grace: Duration::from_millis(200),
    leave_patience: Duration::from_millis(300),
    other_end_patience: Duration::from_millis(500),
    ..Tuning::DEFAULT
};

/// How a fake plays on one connection.
pub type Play = Box<dyn FnOnce(&mut Conversation) + Send>;

/// A fake that takes one connection.
pub struct FakeNode {
    pub node: NodeAddress,
    thread: JoinHandle<()>,
}

fn read_all(
    reader: DuplexReader,
    writer: MuxWriter,
    hearing: Arc<Mutex<()>>,
) -> (mpsc::Receiver<(u64, Ask)>, mpsc::Receiver<PeerMessage>) {
    let (ask, asked) = mpsc::channel();
    let (say, peer) = mpsc::channel();
    let read = move || {
        let _ = writer.read_all(reader, &mut |channel, payload| {
            drop(hearing.lock().unwrap());
            match channel {
                Channel::CONTROL => drop(ask.send(ToAgent::from_bytes(&payload).unwrap())),
                _ => drop(say.send(PeerMessage::decode(&payload).unwrap())),
            }
            Ok(())
        });
    };
    std::thread::Builder::new().name("fake node's reader".into()).spawn(read).unwrap();
    (asked, peer)
}

impl FakeNode {
    /// Takes one connection, and hands it over before anything was said on it.
    pub fn raw(play: impl FnOnce(TcpStream, Key) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let key = Key::generate().unwrap();
        let port = listener.local_addr().unwrap().port();
        let node = NodeAddress { host: "127.0.0.1".into(), port, pin: Some(key.pin) };
        let serve = move || play(listener.accept().unwrap().0, key);
        let thread = std::thread::Builder::new().name("fake node".into()).spawn(serve).unwrap();
        Self { node, thread }
    }

    /// Takes one connection, and lets `play` hold the conversation on it.
    pub fn start(play: impl FnOnce(&mut Conversation) + Send + 'static) -> Self {
        Self::serve(vec![Box::new(play)])
    }

    /// Takes as many connections, one after the other.
    pub fn serve(plays: Vec<Play>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let key = Key::generate().unwrap();
        let port = listener.local_addr().unwrap().port();
        let node = NodeAddress { host: "127.0.0.1".into(), port, pin: Some(key.pin) };
        let serve = move || plays.into_iter().for_each(|play| converse(&listener, key.clone(), play));
        let thread = std::thread::Builder::new().name("fake node".into()).spawn(serve).unwrap();
        Self { node, thread }
    }

    pub fn at(&self, path: &str) -> Location {
        Location::Node { node: self.node.clone(), path: path.as_bytes().to_vec() }
    }

    pub fn join(self) {
        self.thread.join().unwrap();
    }
}

/// The next control connection. Data connections of the conversation before it may still be waiting.
fn accept_control(listener: &TcpListener, key: &Key) -> (TcpStream, Box<Tls>) {
    let control = ProtocolOpening::with_key(key, &[ALPN_CONTROL]).unwrap();
    loop {
        let socket = listener.accept().unwrap().0;
        let shared = Arc::new(Socket::Tcp(socket.try_clone().unwrap()));
        if let Ok((_, OpenedConnection::Records(tls))) = open(&shared, &[&control]) {
            return (socket, tls);
        }
    }
}

fn converse(listener: &TcpListener, key: Key, play: Play) {
    let (socket, tls) = accept_control(listener, &key);
    let abort = socket.try_clone().unwrap();
    let (reader, out) = tls_duplex::split(socket, tls).unwrap();
    let writer = MuxWriter::new(Box::new(out), Box::new(move || drop(abort.shutdown(Shutdown::Both))));
    let hearing = Arc::default();
    let (asked, peer) = read_all(reader, writer.clone(), Arc::clone(&hearing));
    // On the node's one port.
    let data = listener.try_clone().unwrap();
    let (kind, seen) = (Some(ItemKind::File), Vec::new());
    let mut conversation = Conversation { writer, asked, peer, data, hearing, key, session: None, kind, seen };
    play(&mut conversation);
    // A moment for the last words to leave; then the connection is closed.
    conversation.drain();
    conversation.writer.close();
}

impl Conversation {
    /// The next request; `None` when the client has gone. What the clock says is answered here: it may be asked at any
    /// time.
    pub fn next(&mut self) -> Option<(u64, Ask)> {
        loop {
            let (request, ask) = self.asked.recv_timeout(PATIENCE).ok()?;
            self.seen.push(ask.clone());
            match ask {
                Ask::Clock(_) => self.tell(request, Tell::Clock(Clock { us: 1 })),
                ask => return Some((request, ask)),
            }
        }
    }

    pub fn tell(&self, request: u64, tell: Tell) {
        self.payload(Channel::CONTROL, &FromAgent { request, tell: Some(tell) }.to_bytes());
    }

    pub fn payload(&self, channel: Channel, bytes: &[u8]) {
        // The client may have hung up: that is what is wanted.
        let _ = self.writer.send(channel, bytes);
    }

    /// Says so, and whether the client still takes anything.
    pub fn try_payload(&self, bytes: &[u8]) -> bool {
        self.writer.send(Channel::CONTROL, bytes).is_ok()
    }

    pub fn say(&self, message: &PeerMessage) {
        self.payload(Channel::PEER, &message.encode());
    }

    /// What the client's receiver says next, progress of landing left out; `None` when it has gone.
    pub fn heard(&self) -> Option<PeerMessage> {
        loop {
            match self.peer.recv_timeout(PATIENCE).ok()? {
                PeerMessage::Landed { .. } => {}
                message => return Some(message),
            }
        }
    }

    /// Until the client's receiver has ended the transfer; then ends it too.
    pub fn until_failed(&self) {
        while let Some(message) = self.heard() {
            if let PeerMessage::Fail(failure) = message {
                return self.tell(0, Tell::Ended(Ended { failure: Some(failure.into()), ..Ended::default() }));
            }
        }
    }

    /// The answer that an honest node gives, as far as there is one before a transfer begins.
    pub fn honest(&mut self, ask: &Ask) -> Option<Tell> {
        Some(match ask {
            Ask::Hello(_) => Tell::Welcome(Welcome { version: PROTOCOL_VERSION, processors: 1, ..Welcome::default() }),
            Ask::Inspect(paths) => {
                let kind = self.kind.map_or(0, ItemKind::number);
                let facts = PathFacts { kind, size: 5, inode: 1, resolved: b"/f".to_vec(), ..PathFacts::default() };
                Tell::Inspected(Inspected { facts: vec![facts; paths.paths.len()] })
            }
            Ask::Listen(listen) => {
                self.session = listen.session.clone().try_into().ok();
                let port = u32::from(self.data.local_addr().unwrap().port());
                Tell::Listening(Listening { port, pin: self.key.pin.to_vec() })
            }
            Ask::Begin(_) | Ask::Cancel(_) => Tell::Done(Counted::default()),
            Ask::Clock(_) => Tell::Clock(Clock { us: 1 }),
            _ => return None,
        })
    }

    /// Answers honestly until the transfer has begun, and gives back its data stream.
    pub fn begin(&mut self) -> OutStream {
        OutStream::new(self.begun(), Arc::default(), &Tuning::DEFAULT)
    }

    /// As [`Self::begin`], and gives back the connection.
    pub fn begun(&mut self) -> Connection {
        self.begun_over(None)
    }

    /// The next connection that is made to it, of which nothing has been read.
    pub fn next_connection(&self) -> TcpStream {
        self.data.accept().unwrap().0
    }

    /// As [`Self::begun`], over a connection that was made before.
    pub fn begun_over(&mut self, mut made: Option<TcpStream>) -> Connection {
        let mut stream = None;
        while let Some((request, ask)) = self.next() {
            let answer = self.honest(&ask).expect("a request that comes before a transfer");
            self.tell(request, answer);
            match ask {
                Ask::Listen(_) => {
                    let socket = made.take().unwrap_or_else(|| self.next_connection());
                    stream = Some(self.accept(socket));
                }
                Ask::Begin(_) => return stream.expect("a data connection"),
                _ => {}
            }
        }
        panic!("the client left before it began");
    }

    fn accept(&self, socket: TcpStream) -> Connection {
        let find = |id: &[u8; 16]| self.session.clone().filter(|session| session.id == *id);
        hello::accept(Arc::new(Socket::Tcp(socket)), &self.key, &find).unwrap().0
    }

    /// Reads nothing more while the guard is there, and says all the time that it is there itself.
    pub fn stop_hearing(&self) -> MutexGuard<'_, ()> {
        self.writer.keep_alive(&Tuning::DEFAULT).unwrap();
        self.hearing.lock().unwrap()
    }

    /// Until the client has gone, which shows in what is written to it.
    pub fn until_gone(&self) {
        while self.writer.send(Channel::CONTROL, b"").is_ok() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends the connection at once.
    pub fn leave(&self) {
        self.writer.close();
    }

    /// Answers what still comes, until the client goes.
    fn drain(&mut self) {
        while let Ok((request, ask)) = self.asked.recv_timeout(Duration::from_millis(500)) {
            match self.honest(&ask) {
                Some(answer) => self.tell(request, answer),
                None => return,
            }
        }
    }
}

/// Pulls `path` of the fake into the sandbox's root, as a user would, in one attempt.
pub fn pull(node: &FakeNode, path: &str, sandbox: &Sandbox) -> Report {
    pull_with(node, path, sandbox, CopyOptions { retries: 0, ..CopyOptions::default() })
}

/// As [`pull`], with one stream and these options.
pub fn pull_with(node: &FakeNode, path: &str, sandbox: &Sandbox, options: CopyOptions) -> Report {
    pull_tuned(node, path, sandbox, options, IMPATIENT)
}

/// As [`pull_with`], by a command with these knobs.
pub fn pull_tuned(node: &FakeNode, path: &str, sandbox: &Sandbox, options: CopyOptions, tuning: Tuning) -> Report {
    let mut directory = sandbox.root().into_os_string().into_encoded_bytes();
    directory.push(b'/');
    copy_with(node.at(path), Location::Local(directory), options, Stores::default(), tuning)
}

/// Pushes a file to `path` of the fake.
pub fn push(file: &std::path::Path, node: &FakeNode, path: &str, options: CopyOptions) -> Report {
    copy(Location::Local(file.as_os_str().as_encoded_bytes().to_vec()), node.at(path), options)
}

/// As [`push`], by a command with these knobs.
pub fn push_tuned(file: &std::path::Path, node: &FakeNode, path: &str, options: CopyOptions, tuning: Tuning) -> Report {
    let source = Location::Local(file.as_os_str().as_encoded_bytes().to_vec());
    copy_with(source, node.at(path), options, Stores::default(), tuning)
}

/// Pushes a path of a store to `path` of the fake.
pub fn push_from_store(store: Arc<dyn Store>, from: &[u8], node: &FakeNode, path: &str) -> Report {
    let stores = Stores::default().with("store", store);
    let source = Location::Store { scheme: "store".into(), path: from.to_vec() };
    copy_with(source, node.at(path), CopyOptions { retries: 0, ..CopyOptions::default() }, stores, IMPATIENT)
}

fn copy(source: Location, destination: Location, options: CopyOptions) -> Report {
    copy_with(source, destination, options, Stores::default(), IMPATIENT)
}

fn copy_with(source: Location, destination: Location, options: CopyOptions, stores: Stores, tuning: Tuning) -> Report {
    let mut options = CopyOptions { streams: Some(1), ..options };
    options.source.reach.connect_timeout = PATIENCE;
    options.destination.reach.connect_timeout = PATIENCE;
    let request = CopyRequest { sources: vec![source], destination, options };
    let context = Context { tuning: Arc::new(tuning), stores, ..Context::default() };
    Copy::start(request, &context).wait()
}
