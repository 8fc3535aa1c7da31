//! Everything that can be said, said by a peer that means harm: every message of the wire with every field at its
//! extremes, and repeated until a message is as long as one may be. The messages are made from their definitions
//! ([`Schema`]), so that a new one joins by itself. Whoever hears them stays below 128 MB, does not panic or hang, and
//! reads and writes nothing that it was not told to.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use carrack_core::report::{ErrorCode, Failure, ItemKind, Side};
use carrack_core::wire::PROTOCOL_VERSION;
use carrack_core::wire::control::SessionKey;
use carrack_core::wire::control::raw::*;
use carrack_core::wire::mux::Channel;
use carrack_engine::testing::data::hello;
use carrack_engine::testing::net::socket::Socket;
use carrack_engine::testing::net::tls::Key;

use crate::support::Sandbox;
use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::{Running, peak_resident};
use crate::support::schema::{Schema, Variant};
use crate::support::speaker::Speaker;

/// What an end may hold at most.
const MEMORY: u64 = 128 << 20;
const CANARY: &str = "what stands outside and is nobody's business";
/// Longer than any of these commands takes on the slowest machine: one that is still there hangs, and is killed.
const PATIENCE: Duration = Duration::from_secs(30);
/// As often as a message of full length is said in one session.
const FLOODS: usize = 24;

/// What stands beside the root, and must be there afterwards as it was.
fn put_canary(sandbox: &Sandbox) {
    sandbox.write("outside/canary", CANARY);
}

fn assert_untouched(sandbox: &Sandbox) {
    let names: Vec<_> =
        std::fs::read_dir(sandbox.path("outside")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["canary"]);
    assert_eq!(std::fs::read_to_string(sandbox.path("outside/canary")).unwrap(), CANARY);
}

/// A port that nobody may be made to connect to.
fn trap() -> TcpListener {
    let trap = TcpListener::bind("127.0.0.1:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    trap
}

fn assert_empty(trap: &TcpListener) {
    let caught = trap.accept().map(|(_, from)| from);
    assert!(
        caught.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
        "somebody connected: {caught:?}"
    );
}

fn assert_not_told(bytes: &[u8], variant: &str) {
    let is_told = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
    assert!(!is_told, "after {variant} the canary's content was told");
}

fn options() -> RawOptions {
    RawOptions { block_bytes: 1 << 16, digests: 1, version: PROTOCOL_VERSION, ..RawOptions::default() }
}

fn session() -> Session {
    Session { id: vec![1; 16], secret: vec![2; 32], encrypt: true }
}

fn receive() -> Begin {
    let role = ReceiveRole { marker: vec![9; 8], ..ReceiveRole::default() };
    Begin { options: Some(options()), role: Some(Role::Receive(role)) }
}

fn send() -> Begin {
    let source = Source { path: b"tree".to_vec(), target: b"tree".to_vec(), ..Source::default() };
    let role = SendRole { sources: vec![source], known: true };
    Begin { options: Some(options()), role: Some(Role::Send(role)) }
}

/// Honest questions, where it takes more than ones and short texts to be one.
fn asks() -> Vec<(&'static str, Vec<u8>)> {
    let hello = Hello { oldest: 1, newest: PROTOCOL_VERSION, ..Hello::default() };
    let session = Some(session());
    let listen = Listen { session: session.clone(), ..Listen::default() };
    let addresses = vec!["127.0.0.1:1".to_owned()];
    let dial =
        Dial { session: session.clone(), addresses, pin: vec![3; 32], count: 1, timeout_ms: 100, ..Dial::default() };
    let tunnel = Tunnel { session, channel: 2, dial: true };
    // So that each extreme of a range is met on a file that is there.
    let read = Read { path: b"tree/file".to_vec(), length: 7, ..Read::default() };
    let one = |ask: Ask| content(&ToAgent { request: 0, ask: Some(ask) }.to_bytes());
    vec![
        ("Hello", one(Ask::Hello(hello))),
        ("Listen", one(Ask::Listen(listen))),
        ("Dial", one(Ask::Dial(dial))),
        ("Tunnel", one(Ask::Tunnel(tunnel))),
        ("Begin", one(Ask::Begin(receive()))),
        ("Read", one(Ask::Read(read))),
    ]
}

/// The content of a message's only field.
fn content(bytes: &[u8]) -> Vec<u8> {
    // The field's key, and its length.
    let varint = |bytes: &[u8]| bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    let key = varint(bytes);
    bytes[key + varint(&bytes[key..])..].to_vec()
}

/// When something is said to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// As the first word.
    First,
    /// After the greeting.
    Greeted,
    /// While it receives.
    Receiving,
    /// While it sends.
    Sending,
}

/// A client that says what it likes to a real node.
struct Client<'a> {
    node: &'a Node,
    speaker: Option<Speaker>,
}

impl Client<'_> {
    /// A question, and the end of its answer; false when the connection ended instead.
    fn ask(speaker: &mut Speaker, request: u64, ask: Ask, name: &str) -> bool {
        let _ = speaker.send(Channel::CONTROL, &ToAgent { request, ask: Some(ask) }.to_bytes());
        while let Some((channel, payload)) = speaker.next() {
            assert_not_told(&payload, name);
            let answers = |payload: &[u8]| FromAgent::from_bytes(payload).unwrap().0 == request;
            if channel == Channel::CONTROL && answers(&payload) {
                return true;
            }
        }
        false
    }

    fn open(&self, when: When) -> Speaker {
        let mut speaker = Speaker::connect(&self.node.address).unwrap();
        let hello = Hello { oldest: 1, newest: PROTOCOL_VERSION, ..Hello::default() };
        let begin = match when {
            When::First => return speaker,
            When::Greeted => None,
            When::Receiving => Some(receive()),
            When::Sending => Some(send()),
        };
        assert!(Self::ask(&mut speaker, 1, Ask::Hello(hello), "a greeting"));
        assert!(begin.is_none_or(|begin| Self::ask(&mut speaker, 2, Ask::Begin(begin), "an honest beginning")));
        speaker
    }

    /// Says it, and waits until it has been dealt with.
    fn say(&mut self, when: When, channel: Channel, variant: &Variant) {
        let mut speaker = self.speaker.take().unwrap_or_else(|| self.open(when));
        for _ in 0..if variant.is_flood { FLOODS } else { 1 } {
            if speaker.send(channel, &variant.bytes).is_err() {
                break;
            }
        }
        let ping = Ask::Inspect(Paths { paths: vec![Vec::new()] });
        let is_alive = Self::ask(&mut speaker, u64::from(u32::MAX) + 7, ping, &variant.name);
        // What may have begun a transfer, or answers later, is not taken for the next one's.
        let is_plain = when == When::Greeted && !variant.name.contains("Begin") && !variant.is_flood;
        if is_alive && is_plain {
            self.speaker = Some(speaker);
        }
    }
}

#[test]
fn node_survives_every_message_at_its_extremes() {
    let sandbox = Sandbox::new();
    put_canary(&sandbox);
    // Where a node dials for a client has tests of its own.
    let schema = Schema::read(1);
    assert!(schema.fields("ToAgent").len() > 16 && schema.fields("Peer").len() > 16);
    let node = Node::start(&sandbox, "root", &["--anonymous"]);
    let mut count = 0;
    let asks = schema.plain("ToAgent", &asks());
    let words = schema.plain("Peer", &[]);
    for when in [When::First, When::Greeted, When::Receiving, When::Sending] {
        let mut client = Client { node: &node, speaker: None };
        let mut say = |channel, variant: &Variant| {
            count += 1;
            client.say(when, channel, variant);
        };
        // The tree that is sent may be gone by what was said before.
        sandbox.write("root/tree/file", "content");
        if matches!(when, When::First | When::Greeted) {
            schema.variants("ToAgent", &asks, &mut |variant| say(Channel::CONTROL, &variant));
        }
        schema.variants("Peer", &words, &mut |variant| say(Channel::PEER, &variant));
    }
    assert!(count > 1500, "{count} messages were made");
    assert_untouched(&sandbox);
    let peak = peak_resident(node.child.id()).expect("the node is still there");
    assert!(peak < MEMORY, "the node took {peak} bytes");
    sandbox.write("honest", "content");
    sandbox.ok(["honest", &node.at("honest")]);
    assert_eq!(std::fs::read_to_string(sandbox.path("root/honest")).unwrap(), "content");
}

/// What a command does with a hostile node, and when that says what it should not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scene {
    /// In the place of an answer of the kind that is asked for: which verb brings about the question.
    Answer(&'static str),
    /// While it pulls.
    Pull,
    /// While it pushes.
    Push,
    /// While a real node pulls from the hostile one.
    ThirdPull,
    /// While a real node pushes to the hostile one.
    ThirdPush,
}

/// A hostile node for one command.
struct Fake {
    /// For control and data, as a node's.
    listener: TcpListener,
    key: Key,
}

impl Fake {
    fn new() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").unwrap(), key: Key::generate().unwrap() }
    }

    fn at(&self, path: &str) -> String {
        let pin: String = self.key.pin.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("carrack://{}/{path}#sha256:{pin}", self.listener.local_addr().unwrap())
    }

    /// What an honest node answers, before a transfer.
    fn honest(&self, ask: &Ask, scene: Scene) -> Option<Tell> {
        Some(match ask {
            Ask::Hello(_) => Tell::Welcome(Welcome { version: PROTOCOL_VERSION, processors: 1, ..Welcome::default() }),
            Ask::Inspect(paths) => {
                let is_there = !matches!(scene, Scene::Push | Scene::ThirdPush);
                let kind = if is_there { ItemKind::File.number() } else { 0 };
                let facts = PathFacts { kind, size: 5, inode: 1, resolved: b"/f".to_vec(), ..PathFacts::default() };
                Tell::Inspected(Inspected { facts: vec![facts; paths.paths.len()] })
            }
            // So that this one is asked to dial.
            Ask::Listen(_) if scene == Scene::Answer("Dial") => {
                let message = "no port".to_owned();
                Tell::Failed(Failure::new(ErrorCode::ConnectFailed, Side::Source, message).into())
            }
            Ask::Listen(_) => {
                let port = u32::from(self.listener.local_addr().unwrap().port());
                Tell::Listening(Listening { port, pin: self.key.pin.to_vec() })
            }
            Ask::Begin(_) | Ask::Cancel(_) | Ask::Bye(_) | Ask::List(_) => Tell::Done(Counted::default()),
            _ => return None,
        })
    }

    /// Takes the command's connection, and says the variant when the scene wants it; tells whether it came to that.
    fn play(&self, scene: Scene, channel: Channel, variant: &Variant) -> bool {
        let Ok(mut speaker) = Speaker::accept(self.listener.accept().unwrap().0, &self.key) else { return false };
        let mut kept = None;
        while let Some((heard, payload)) = speaker.next() {
            if heard != Channel::CONTROL {
                continue;
            }
            let (request, ask) = ToAgent::from_bytes(&payload).unwrap();
            let is_asked = match scene {
                Scene::Answer(question) => format!("{ask:?}").starts_with(&format!("{question}(")),
                _ => false,
            };
            if is_asked {
                return self.attack(speaker, channel, variant, request);
            }
            if let (Ask::List(_), Scene::Answer("Sum")) = (&ask, scene) {
                let kind = ItemKind::File.number();
                let page = Page { entries: vec![Entry { path: b"f".to_vec(), kind, ..Entry::default() }] };
                let _ = speaker.send(Channel::CONTROL, &FromAgent { request, tell: Some(Tell::Page(page)) }.to_bytes());
            }
            let Some(answer) = self.honest(&ask, scene) else { continue };
            let _ = speaker.send(Channel::CONTROL, &FromAgent { request, tell: Some(answer) }.to_bytes());
            match ask {
                Ask::Listen(listen) if !matches!(scene, Scene::Answer(_)) => {
                    let (socket, _) = self.listener.accept().unwrap();
                    let key = SessionKey::try_from(listen.session).unwrap();
                    kept = hello::accept(Arc::new(Socket::Tcp(socket)), &self.key, &|_| Some(key.clone())).ok();
                }
                Ask::Begin(_) => {
                    let said = self.attack(speaker, channel, variant, 0);
                    drop(kept);
                    return said;
                }
                _ => {}
            }
        }
        false
    }

    fn attack(&self, mut speaker: Speaker, channel: Channel, variant: &Variant, request: u64) -> bool {
        let mut bytes = variant.bytes.clone();
        if channel == Channel::CONTROL && !variant.name.starts_with("FromAgent.request ") {
            bytes.extend(FromAgent { request, tell: None }.to_bytes());
        }
        for _ in 0..if variant.is_flood { FLOODS } else { 1 } {
            if speaker.send(channel, &bytes).is_err() {
                break;
            }
        }
        speaker.leave();
        true
    }
}

/// A real command against a hostile node, one run for each variant.
struct Trials<'a> {
    sandbox: &'a Sandbox,
    node: Option<&'a Node>,
    number: AtomicUsize,
    said: AtomicUsize,
    /// What went wrong after which variant.
    wrong: Mutex<Vec<String>>,
}

impl<'a> Trials<'a> {
    fn new(sandbox: &'a Sandbox, node: Option<&'a Node>) -> Self {
        Self { sandbox, node, number: AtomicUsize::new(0), said: AtomicUsize::new(0), wrong: Mutex::default() }
    }

    fn command(&self, scene: Scene, fake: &Fake) -> Command {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let here = format!("got/{number}/");
        let there = |path: &str| self.node.unwrap().at(path);
        let mut command = self.sandbox.carrack();
        match scene {
            Scene::Answer("List") => return words(command, &["ls", "--json", &fake.at("f")]),
            Scene::Answer("Sum") => return words(command, &["sum", "--json", &fake.at("f")]),
            Scene::Answer("MakeDirectory") => return words(command, &["mkdir", "--json", &fake.at("f")]),
            _ => command.args([
                "copy",
                "--json",
                "--retries=0",
                "--streams=1",
                &format!("--failed-list=failed-{number}"),
            ]),
        };
        let [from, to] = match scene {
            Scene::Answer(_) | Scene::Pull => [fake.at("f"), here],
            Scene::Push => ["large".to_owned(), fake.at("f")],
            Scene::ThirdPull => [fake.at("f"), there(&here)],
            Scene::ThirdPush => [there("large"), fake.at("f")],
        };
        words(command, &[&from, &to])
    }

    fn run(&self, scene: Scene, channel: Channel, variant: &Variant) {
        let (fake, program) = (Fake::new(), std::fs::canonicalize(crate::support::program()).unwrap());
        let mut running = Running::start(&mut self.command(scene, &fake));
        let (ran, said, peak) = std::thread::scope(|scope| {
            let play = scope.spawn(|| fake.play(scene, channel, variant));
            let (mut peak, start) = (0, Instant::now());
            while running.is_running() {
                // Its peak is read while it is there: it only grows. Before it runs the program,
                // its memory is this test's.
                if std::fs::read_link(format!("/proc/{}/exe", running.id())).is_ok_and(|exe| exe == program) {
                    peak = peak_resident(running.id()).unwrap_or(0).max(peak);
                }
                if start.elapsed() > PATIENCE {
                    signal(running.id(), "KILL");
                }
                std::thread::park_timeout(Duration::from_millis(2));
            }
            // Whoever still waits for the command learns that it has gone.
            drop(TcpStream::connect(fake.listener.local_addr().unwrap()));
            (running.end(), play.join().unwrap(), peak)
        });
        let told = format!("{}{}", ran.stdout, ran.stderr);
        let wrong = match ran.code {
            _ if !said => "it never came to that".to_owned(),
            code @ (..0 | 101) => format!("the command ended with {code}"),
            _ if told.contains("panicked") => "a thread panicked".to_owned(),
            _ if told.contains(CANARY) => "the canary's content was told".to_owned(),
            _ if peak >= MEMORY => format!("the command took {peak} bytes"),
            _ => String::new(),
        };
        if wrong.is_empty() {
            self.said.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let told: String = told.chars().take(500).collect();
        self.wrong.lock().unwrap().push(format!("{scene:?}: {}: {wrong}: {told}", variant.name));
    }

    /// Hands jobs to as many threads as there are processors, and waits for the first that fails.
    fn all(&self, make: impl Fn(&mut dyn FnMut(Scene, Channel, Variant))) {
        let (send, jobs) = mpsc::sync_channel::<(Scene, Channel, Variant)>(2);
        let jobs = Mutex::new(jobs);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let job = jobs.lock().unwrap().recv();
                        let Ok((scene, channel, variant)) = job else { return };
                        self.run(scene, channel, &variant);
                    }
                });
            }
            make(&mut |scene, channel, variant| drop(send.send((scene, channel, variant))));
            drop(send);
        });
        let wrong = self.wrong.lock().unwrap();
        assert!(wrong.is_empty(), "{} went wrong:\n{}", wrong.len(), wrong.join("\n"));
    }
}

fn words(mut command: Command, words: &[&str]) -> Command {
    command.args(words);
    command
}

/// The question to which a kind of answer belongs.
fn question_of(answer: &str) -> Option<&'static str> {
    Some(match answer {
        "Welcome" => "Hello",
        "Inspected" | "Failed" => "Inspect",
        "Listening" => "Listen",
        "Dialed" | "Connected" => "Dial",
        "Page" => "List",
        "Sums" => "Sum",
        "Done" => "MakeDirectory",
        _ => return None,
    })
}

#[test]
fn command_survives_every_message_at_its_extremes() {
    let sandbox = Sandbox::new();
    put_canary(&sandbox);
    sandbox.write("large", vec![7; 3 << 20]);
    let trap = trap();
    let schema = Schema::read(trap.local_addr().unwrap().port());
    let tells = schema.plain("FromAgent", &[]);
    let words = schema.plain("Peer", &[]);
    let trials = Trials::new(&sandbox, None);
    trials.all(|each| {
        schema.variants("FromAgent", &tells, &mut |variant| {
            let kind = variant.name.split(['.', ' ']).nth(1).unwrap().to_owned();
            let copy =
                || Variant { name: variant.name.clone(), bytes: variant.bytes.clone(), is_flood: variant.is_flood };
            if let Some(question) = question_of(&kind) {
                each(Scene::Answer(question), Channel::CONTROL, copy());
            }
            each(Scene::Pull, Channel::CONTROL, copy());
        });
        for scene in [Scene::Pull, Scene::Push] {
            schema.variants("Peer", &words, &mut |variant| each(scene, Channel::PEER, variant));
        }
    });
    let said = trials.said.into_inner();
    assert!(said > 800, "{said} messages were said");
    assert_untouched(&sandbox);
    assert_empty(&trap);
}

#[test]
fn third_party_survives_every_message_at_its_extremes() {
    let sandbox = Sandbox::new();
    put_canary(&sandbox);
    let node = Node::start(&sandbox, "root", &["--anonymous"]);
    sandbox.write("root/large", vec![7; 3 << 20]);
    let trap = trap();
    let schema = Schema::read(trap.local_addr().unwrap().port());
    let words = schema.plain("Peer", &[]);
    let trials = Trials::new(&sandbox, Some(&node));
    trials.all(|each| {
        for scene in [Scene::ThirdPull, Scene::ThirdPush] {
            schema.variants("Peer", &words, &mut |variant| each(scene, Channel::PEER, variant));
        }
    });
    assert!(trials.said.into_inner() > 400);
    assert_untouched(&sandbox);
    assert_empty(&trap);
    let peak = peak_resident(node.child.id()).expect("the node is still there");
    assert!(peak < MEMORY, "the node took {peak} bytes");
    sandbox.ok(["root/large", &node.at("honest")]);
}
