//! A hostile command, and sender, in conversation with a real agent that is set up as a node sets it up.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use carrack_core::ids::StreamId;
use carrack_core::report::{Counts, Failure, Faults};
use carrack_core::request::Encrypt;
use carrack_core::tuning::Tuning;
use carrack_core::wire::control::SessionKey;
use carrack_core::wire::control::raw::*;
use carrack_core::wire::mux::Channel;
use carrack_core::wire::peer::PeerMessage;
use carrack_core::wire::{PROTOCOL_VERSION, PROTOCOL_VERSION_MIN};
use carrack_engine::Place;
use carrack_engine::sync::lock;
use carrack_engine::testing::agent::{self, Agent, DataPort, Environment, NodeToken};
use carrack_engine::testing::data::dial;
use carrack_engine::testing::data::sessions::NodeSessions;
use carrack_engine::testing::data::stream::{Connection, OutStream};
use carrack_engine::testing::net::dial_rule::DialRule;
use carrack_engine::testing::net::mux::MuxWriter;
use carrack_sys::dir::Dir;

use crate::sandbox::{CANARY, Sandbox};

const PATIENCE: Duration = Duration::from_secs(20);
/// The unit of the hostile transfers: the smallest.
pub const BLOCK: u32 = carrack_core::limits::BLOCK_BYTES_MIN;

/// One control connection to an agent.
pub struct Session {
    pub writer: MuxWriter,
    pub socket: UnixStream,
    ears: mpsc::Sender<()>,
    told: mpsc::Receiver<(u64, Tell)>,
    kept: Vec<(u64, Tell)>,
    peer: mpsc::Receiver<PeerMessage>,
    agent: JoinHandle<Result<(), Failure>>,
    next_request: u64,
    key: SessionKey,
    listening: Option<Listening>,
    /// Where what the agent says to its peer goes; to the test when nowhere.
    forward: Arc<Mutex<Option<MuxWriter>>>,
    /// Everything that the agent said, for a look whether it told what it must not tell.
    everything: Arc<Mutex<Vec<u8>>>,
}

/// Options that an honest command could send.
pub fn options() -> RawOptions {
    RawOptions { block_bytes: BLOCK, digests: 1, version: PROTOCOL_VERSION, ..RawOptions::default() }
}

/// The same, verified by XXH3-128.
pub fn xxh128() -> RawOptions {
    RawOptions { digests: 2, ..options() }
}

/// How a transfer has ended, with what became of its items.
pub fn ended(counts: Counts) -> Ended {
    Ended { counts: counts.values(), ..Ended::default() }
}

/// What an end has counted.
pub fn told(ended: &Ended) -> (Counts, Faults) {
    (Counts::from_values(ended.counts.clone()), Faults::from_values(ended.faults.clone()))
}

/// To receive into a directory of the agent.
pub fn receive_into(directory: &[u8]) -> Begin {
    let role = ReceiveRole { directory: directory.to_vec(), ..ReceiveRole::default() };
    Begin { options: Some(options()), role: Some(Role::Receive(role)) }
}

/// A path as the wire has it.
pub fn bytes(path: &str) -> Vec<u8> {
    path.as_bytes().to_vec()
}

/// Asks for what is at a path.
pub fn send(path: &str) -> Ask {
    let source = Source { path: bytes(path), target: b"t".to_vec(), ..Source::default() };
    let role = SendRole { sources: vec![source], known: false };
    Ask::Begin(Begin { options: Some(options()), role: Some(Role::Send(role)) })
}

/// Wants to write to a directory, or to a sink of this kind.
pub fn receive(directory: &str, sink: u32) -> Ask {
    let role = ReceiveRole { directory: bytes(directory), sink, ..ReceiveRole::default() };
    Ask::Begin(Begin { options: Some(options()), role: Some(Role::Receive(role)) })
}

fn hello() -> Ask {
    Ask::Hello(Hello { oldest: PROTOCOL_VERSION_MIN, newest: PROTOCOL_VERSION, ..Hello::default() })
}

fn half(socket: &UnixStream) -> UnixStream {
    socket.try_clone().unwrap()
}

fn mux(socket: &UnixStream) -> MuxWriter {
    let abort = half(socket);
    MuxWriter::new(Box::new(half(socket)), Box::new(move || drop(abort.shutdown(Shutdown::Both))))
}

impl Session {
    /// A session that has been greeted, with an agent whose paths lead below `root`.
    pub fn start(root: &Path) -> Self {
        let mut session = Self::strange(root);
        assert!(matches!(session.request(hello()), Ok(Tell::Welcome(_))));
        session
    }

    /// One that has not.
    pub fn strange(root: &Path) -> Self {
        let session = Self::unheard(root);
        session.hear_again();
        session
    }

    /// One that has greeted, and reads nothing of what it is told until [`Session::hear_again`].
    pub fn deaf(root: &Path) -> Self {
        let mut session = Self::unheard(root);
        session.ask(hello());
        session
    }

    /// A greeted session with an agent as a node has it, which dials by these rules.
    pub fn at_node(root: &Path, dials: DialRule) -> Self {
        let mut sessions = NodeSessions::new(1, [0; 32]);
        sessions.dials = dials;
        let mut session = Self::unheard_at(root, DataPort::Shared(Arc::new(sessions)));
        session.hear_again();
        assert!(matches!(session.request(hello()), Ok(Tell::Welcome(_))));
        session
    }

    /// From now on what the agent says is read.
    pub fn hear_again(&self) {
        let _ = self.ears.send(());
    }

    /// A session with an agent that wants this node's token, to which `shown` is shown instead; or why not.
    pub fn with_grant(root: &Path, token: &Arc<NodeToken>, shown: &str) -> Result<Self, Failure> {
        let mut session = Self::unheard_with(root, DataPort::Own(None), Some(Arc::clone(token)));
        session.hear_again();
        let token = shown.to_owned();
        let hello =
            Ask::Hello(Hello { oldest: PROTOCOL_VERSION_MIN, newest: PROTOCOL_VERSION, token, ..Hello::default() });
        match session.request(hello)? {
            Tell::Welcome(_) => Ok(session),
            other => panic!("{other:?}"),
        }
    }

    fn unheard(root: &Path) -> Self {
        Self::unheard_at(root, DataPort::Own(None))
    }

    fn unheard_at(root: &Path, data: DataPort) -> Self {
        Self::unheard_with(root, data, None)
    }

    fn unheard_with(root: &Path, data: DataPort, token: Option<Arc<NodeToken>>) -> Self {
        let (socket, theirs) = UnixStream::pair().unwrap();
        let mut environment = Environment {
            place: Place::Beneath(Arc::new(Dir::open_ambient(root).unwrap())),
            read_only: false,
            gives_ownership: true,
            own: None,
            sources: None,
            token,
            grant: None,
            busy: false,
            data,
            local_address: String::new(),
            peer_address: String::new(),
            tuning: Arc::default(),
            began: Instant::now(),
        };
        let agent = std::thread::spawn(move || {
            let writer = mux(&theirs);
            let mut input = half(&theirs);
            let greeted = agent::greet(&mut input, &writer, &environment);
            let greeted = greeted.map(|grant| environment.restrict(grant));
            if greeted.is_ok() {
                writer.keep_alive(&Tuning::DEFAULT).unwrap();
                Agent::new(writer, environment).run(input);
            }
            // As a node does with a connection that it has done with.
            let _ = theirs.shutdown(Shutdown::Both);
            greeted
        });
        let (writer, reader) = (mux(&socket), half(&socket));
        let (ears, opened) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let (say, peer) = mpsc::channel();
        let everything = Arc::new(Mutex::new(Vec::new()));
        let forward = Arc::new(Mutex::new(None::<MuxWriter>));
        let carry = Arc::clone(&forward);
        let (reading, heard) = (writer.clone(), Arc::clone(&everything));
        let read = move || {
            let _ = opened.recv();
            let _ = reading.read_all(reader, &mut |channel, payload| {
                lock(&heard).extend_from_slice(&payload);
                match channel {
                    Channel::CONTROL => drop(tell.send(FromAgent::from_bytes(&payload).unwrap())),
                    Channel::PEER => {
                        let other = carry.lock().unwrap().clone();
                        match other {
                            Some(other) => drop(other.send(channel, &payload)),
                            None => drop(say.send(PeerMessage::decode(&payload).unwrap())),
                        }
                    }
                    _ => {}
                }
                Ok(())
            });
        };
        std::thread::Builder::new().name("hostile reader".into()).spawn(read).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        let key = SessionKey { id: [1; 16], secret: [2; 32], encrypt: Encrypt::Tls };
        let (kept, listening) = (Vec::new(), None);
        Self { writer, socket, ears, told, kept, peer, agent, next_request: 1, key, listening, forward, everything }
    }

    /// Data connections with TLS or without.
    pub fn with(mut self, encrypt: Encrypt) -> Self {
        self.key.encrypt = encrypt;
        self
    }

    /// What data connections prove to know.
    pub fn key(&self) -> SessionKey {
        self.key.clone()
    }

    /// From now on what this agent says to its peer is carried to the other.
    pub fn forward_to(&self, other: &Self) {
        *self.forward.lock().unwrap() = Some(other.writer.clone());
    }

    /// Where data connections are accepted: port, and pin of the key shown there.
    pub fn listen(&mut self) -> (u16, Vec<u8>) {
        if self.listening.is_none() {
            let listen = Listen { session: Some(self.key.clone().into()), ..Listen::default() };
            let Ok(Tell::Listening(listening)) = self.request(Ask::Listen(listen)) else { panic!("no data port") };
            self.listening = Some(listening);
        }
        let listening = self.listening.as_ref().unwrap();
        (listening.port as u16, listening.pin.clone())
    }

    pub fn ask(&mut self, ask: Ask) -> u64 {
        let request = self.next_request;
        self.next_request += 1;
        let _ = self.writer.send(Channel::CONTROL, &ToAgent { request, ask: Some(ask) }.to_bytes());
        request
    }

    /// Waits for something that the agent says; `None` when the connection ends first.
    pub fn wait(&mut self, wanted: impl Fn(u64, &Tell) -> bool) -> Option<Tell> {
        if let Some(place) = self.kept.iter().position(|(request, tell)| wanted(*request, tell)) {
            return Some(self.kept.remove(place).1);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((request, tell)) if wanted(request, &tell) => return Some(tell),
                Ok(other) => self.kept.push(other),
                Err(mpsc::RecvTimeoutError::Disconnected) => return None,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("the agent says nothing; before: {:?}", self.kept),
            }
        }
    }

    /// Asks, and gives back the (first part of the) answer.
    pub fn request(&mut self, ask: Ask) -> Result<Tell, Failure> {
        let request = self.ask(ask);
        match self.wait(|number, _| number == request).expect("an answer") {
            Tell::Failed(failure) => Err(failure.into()),
            tell => Ok(tell),
        }
    }

    /// The agent still does what it is asked.
    pub fn assert_alive(&mut self) {
        let answer = self.request(Ask::Inspect(Paths { paths: vec![b"".to_vec()] }));
        assert!(matches!(answer, Ok(Tell::Inspected(_))), "{answer:?}");
    }

    /// What the agent says of its own accord before it hangs up on a peer that broke the protocol.
    pub fn last_words(&mut self) -> Failure {
        match self.wait(|_, tell| matches!(tell, Tell::Failed(_))) {
            Some(Tell::Failed(failure)) => failure.into(),
            _ => panic!("the agent hung up without a word"),
        }
    }

    /// Bytes as they are.
    pub fn raw(&self, bytes: &[u8]) {
        // The agent may have hung up: that is what is wanted.
        let _ = (&self.socket).write_all(bytes);
    }

    /// A payload as it is, framed.
    pub fn payload(&self, channel: Channel, bytes: &[u8]) {
        let _ = self.writer.send(channel, bytes);
    }

    pub fn say(&self, message: &PeerMessage) {
        self.payload(Channel::PEER, &message.encode());
    }

    /// What the receiver says next, progress of landing left out.
    pub fn heard(&self) -> PeerMessage {
        loop {
            match self.peer.recv_timeout(PATIENCE).expect("the receiver says something") {
                PeerMessage::Landed { .. } => {}
                message => return message,
            }
        }
    }

    /// Starts receiving at the agent's root.
    pub fn begin(&mut self) {
        self.request(Ask::Begin(receive_into(b""))).unwrap();
    }

    /// A data connection that knows the secret.
    pub fn connection(&mut self, number: u16) -> std::io::Result<Connection> {
        let (port, pin) = self.listen();
        let (address, pin) = (format!("127.0.0.1:{port}"), pin.try_into().unwrap());
        let to = (None, &[address][..], &anywhere(), None);
        dial::dial(to, &self.key, pin, StreamId(number), 0, PATIENCE, &|_| {}).map(|dialed| dialed.connection)
    }

    pub fn stream(&mut self, number: u16) -> OutStream {
        OutStream::new(self.connection(number).unwrap(), Arc::default(), &Tuning::DEFAULT)
    }

    /// How the transfer ended at the agent.
    pub fn ended(&mut self) -> Result<(), Failure> {
        match self.wait(|_, tell| matches!(tell, Tell::Ended(_))) {
            Some(Tell::Ended(ended)) => ended.failure.map_or(Ok(()), |failure| Err(failure.into())),
            other => panic!("no end of the transfer: {other:?}"),
        }
    }

    /// Hangs up, and waits until the agent has left.
    pub fn leave(self) -> Result<(), Failure> {
        self.writer.close();
        let result = self.agent.join().expect("the agent does not panic");
        let everything = lock(&self.everything);
        assert!(!everything.windows(CANARY.len()).any(|window| window == CANARY), "a canary's content was told");
        result
    }
}

/// Runs a transfer into the sandbox against a hostile sender, and tells how the receiver ended it. It must answer on.
pub fn refused(sandbox: &Sandbox, act: impl FnOnce(&mut Session)) -> Failure {
    let failure = sandbox.around(|root| {
        let mut session = Session::start(root);
        session.begin();
        act(&mut session);
        let failure = session.ended().expect_err("the receiver took it");
        session.assert_alive();
        session.leave().unwrap();
        failure
    });
    sandbox.assert_untouched();
    failure
}

/// Every address may be dialled.
pub fn anywhere() -> dial::Allow {
    Arc::new(|_| Ok(()))
}
