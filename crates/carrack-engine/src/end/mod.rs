//! The command's view of one end: an agent somewhere, reached in one of three ways, that is asked and answers.

mod backlog;
mod inbox;
mod looked_up;
mod paths;
mod reader;
mod watchdog;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use carrack_core::credential::{Shown, Token};
use carrack_core::location::Location;
use carrack_core::pin::format_pin;
use carrack_core::report::{EndFacts, ErrorCode, Failure, ProgramSent, Side};
use carrack_core::request::{Confinement, EndOptions, Reach};
use carrack_core::timeline::StartStep;
use carrack_core::tuning::Tuning;
use carrack_core::wire::control::{Ask, Hello, Tell, Welcome};
use carrack_core::wire::mux::Channel;
use carrack_core::wire::{PROTOCOL_VERSION, PROTOCOL_VERSION_MIN, ProtocolError, Version};
use carrack_sys::threads;

use crate::agent::{Agent, DataPort, Environment};
use crate::context::Context;
use crate::control::ssh::SshChild;
use crate::control::{node_client, ssh};
use crate::error::{describe, failure, failure_unless_limited, system_failure};
use crate::net::mux::MuxWriter;
use crate::net::pipe::PipeWriter;
use crate::net::tls_duplex;
use crate::storage::place::Place;
use crate::sync::{Latch, lock};
use crate::transfer::SourcesHere;

use backlog::Backlog;
pub use inbox::{EndId, Inbox, InboxSender, Incoming, Note, Waited};
use looked_up::{LookedUp, own_address, told_first};
use paths::Paths;
use reader::{Across, Forward, HEARD_OUT, Hearing, spawn_reader};
use watchdog::Watchdog;

/// How an end is reached.
pub enum Reached {
    /// In this process.
    Here(Arc<Agent>, Option<JoinHandle<()>>),
    /// Over ssh. Ended when dropped.
    Ssh(SshChild),
    /// At a node: its address, its key, and how far it is (zero where that is not known).
    Node(SocketAddr, [u8; 32], Duration),
}

/// An agent that can be asked.
pub struct End {
    /// Which end of the copy it is.
    pub id: EndId,
    /// The name that messages call it by.
    pub name: String,
    /// What it said of itself.
    pub welcome: Welcome,
    /// When it was greeted, and when its answer was taken.
    pub greeted: (Instant, Instant),
    /// How it is reached.
    pub reached: Reached,
    /// Steps on the way to it; none of an end in this process.
    pub steps: Vec<(StartStep, Instant)>,
    /// The program that its host was sent, having none.
    pub program_sent: Option<ProgramSent>,
    writer: MuxWriter,
    /// All that it said has been read.
    heard_out: Arc<Latch>,
    watchdog: Watchdog,
    /// Where its words to the peer go.
    forward: Forward,
    /// What it has said and nobody has taken.
    backlog: Arc<Backlog>,
    next_request: u64,
    /// Asked before anybody waits for the answer, and not asked for since.
    early: Vec<(Ask, u64)>,
    /// Where a host that ssh reaches is, once it has been looked up.
    looked_up: LookedUp,
    /// What to do if a node refuses the token that it was shown, or that it was shown none.
    withheld: Option<Box<Failure>>,
    /// It was told to keep to a directory.
    is_confined: bool,
    tuning: Arc<Tuning>,
}

/// Writes to an ssh process, which ends when the writer is closed.
fn writer_to_ssh(out: io::Result<PipeWriter>, process: u32) -> Result<MuxWriter, Failure> {
    let lost = |error: io::Error| failure(ErrorCode::Internal, Side::Command, describe(&error)).during("a pipe");
    let out = out.map_err(lost)?;
    let end = out.end();
    let abort = move || {
        end.end();
        end_process(process);
    };
    Ok(MuxWriter::new(Box::new(out), Box::new(abort)))
}

impl End {
    /// What it and its host are.
    pub fn facts(&self) -> EndFacts {
        let welcome = &self.welcome;
        EndFacts {
            name: self.name.clone(),
            program: welcome.program.clone(),
            protocol: self.version().number(),
            system: welcome.system.clone(),
            processors: welcome.processors,
            congestion: welcome.congestion.clone(),
            key: self.key_fingerprint(),
        }
    }

    /// Brings up the agent of a location. `options` are of this location alone.
    ///
    /// # Errors
    /// When it cannot be reached, or speaks no version that is spoken here.
    pub fn open(
        id: EndId,
        location: &Location,
        options: &EndOptions,
        (context, sources): (&Context, Option<&SourcesHere>),
        words: InboxSender,
        note: &Note,
    ) -> Result<Self, Failure> {
        let forward = Arc::new(Mutex::new(None));
        let until = words.until.clone();
        let words = Hearing::new(words, &context.tuning);
        let (backlog, heard_out) = (Arc::clone(&words.backlog), Arc::clone(&words.heard_out));
        let (mut shown, mut program_sent) = (Shown::default(), None);
        let mut steps = Vec::new();
        let (name, writer, reached) = match location {
            Location::Ssh { host, .. } => {
                let session = ssh::start(host, &options.reach, &context.stop, note)?;
                let child = session.child;
                program_sent = session.sent;
                steps.push((StartStep::Login, Instant::now()));
                let process = child.id();
                let writer = writer_to_ssh(PipeWriter::new(session.input), process)?;
                spawn_reader(id, host.to_string(), &writer, session.output, &forward, words)?;
                (host.to_string(), writer, Reached::Ssh(child))
            }
            Location::Node { node, .. } => {
                let connected = node_client::connect(node, options, &*context.keys, note)?;
                shown = connected.shown;
                steps.extend(
                    [StartStep::Connect, StartStep::Secure].into_iter().zip(<[_; 2]>::from(connected.connected)),
                );
                let lost = |error: io::Error| {
                    let why = describe(&error);
                    failure_unless_limited(ErrorCode::ConnectFailed, Side::Link, &error, why).at_end(node.to_string())
                };
                let (reader, out) = tls_duplex::split(connected.socket, connected.tls).map_err(lost)?;
                let end = out.end();
                let writer = MuxWriter::new(Box::new(out), Box::new(move || end.end()));
                spawn_reader(id, node.to_string(), &writer, reader, &forward, words)?;
                (node.to_string(), writer, Reached::Node(connected.address, connected.pin, connected.round_trip))
            }
            _ => {
                let own = context.local_destination.as_ref().filter(|_| id == EndId::Destination);
                let own = own.unwrap_or(&context.local);
                let place = context.stores.of(location)?.unwrap_or_else(|| own.clone());
                let reached = (options.reach.local_address, place, sources.cloned());
                Self::open_here(id, reached, context, &forward, words)?
            }
        };
        let watchdog = Watchdog::start(writer.clone(), until, context.tuning.leave_grace).map_err(|error| {
            writer.close();
            system_failure(Side::Command, &error)
        })?;
        let now = Instant::now();
        let mut end = Self {
            id,
            name,
            welcome: Welcome::default(),
            greeted: (now, now),
            reached,
            steps,
            program_sent,
            writer,
            heard_out,
            watchdog,
            forward,
            backlog,
            next_request: 1,
            early: Vec::new(),
            looked_up: LookedUp::default(),
            withheld: shown.withheld,
            is_confined: options.confinement.is_some(),
            tuning: Arc::clone(&context.tuning),
        };
        end.greet(shown.token.as_ref(), options.confinement.as_ref())?;
        Ok(end)
    }

    fn open_here(
        id: EndId,
        (local_address, place, sources): (Option<IpAddr>, Place, Option<SourcesHere>),
        context: &Context,
        forward: &Forward,
        words: Hearing,
    ) -> Result<(String, MuxWriter, Reached), Failure> {
        let lost = |error: io::Error| {
            failure(ErrorCode::ResourceLimit, Side::Command, describe(&error)).during("a socket pair")
        };
        let (ours, theirs) = UnixStream::pair().map_err(lost)?;
        let environment = Environment {
            place,
            read_only: false,
            gives_ownership: context.gives_ownership,
            own: Some(context.standard.clone()),
            sources,
            token: None,
            grant: None,
            busy: false,
            data: DataPort::Own(local_address),
            local_address: local_address.map(|local| local.to_string()).unwrap_or_default(),
            peer_address: String::new(),
            tuning: Arc::clone(&context.tuning),
            began: Instant::now(),
        };
        let half = |socket: &UnixStream| socket.try_clone().map_err(lost);
        let (agent_abort, agent_out) = (half(&theirs)?, half(&theirs)?);
        let agent_writer =
            MuxWriter::new(Box::new(agent_out), Box::new(move || drop(agent_abort.shutdown(std::net::Shutdown::Both))));
        let (abort, out) = (half(&ours)?, half(&ours)?);
        let writer = MuxWriter::new(Box::new(out), Box::new(move || drop(abort.shutdown(std::net::Shutdown::Both))));
        let agent = Agent::new(agent_writer.clone(), environment);
        let (served, tuning) = (Arc::clone(&agent), Arc::clone(&context.tuning));
        let serve = move || {
            let mut input = theirs;
            // Its greeting is answered like any other's: one conversation for all three kinds of end.
            if served.greet(&mut input).is_ok() {
                served.keep_alive_and_run(input, &agent_writer, &tuning);
            }
        };
        let thread = threads::start("an end of the copy", serve);
        let thread = thread.map_err(|error| system_failure(Side::Command, &error))?;
        spawn_reader(id, "this host".into(), &writer, ours, forward, words)?;
        Ok(("this host".into(), writer, Reached::Here(agent, Some(thread))))
    }

    fn greet(&mut self, token: Option<&Token>, confinement: Option<&Confinement>) -> Result<(), Failure> {
        let hello = Hello {
            oldest: PROTOCOL_VERSION_MIN,
            newest: PROTOCOL_VERSION,
            program: env!("CARGO_PKG_VERSION").into(),
            token: token.map(|token| token.reveal().to_owned()).unwrap_or_default(),
            confinement: confinement.cloned(),
        };
        self.ask(Ask::Hello(hello)).map(|_| ())
    }

    /// Begins to look up where a host is that ssh reaches; of a node that is known, and this host need not be.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn look_up(&mut self, location: &Location, reach: &Reach) -> Result<(), Failure> {
        if let (Location::Ssh { host, .. }, Reached::Ssh(_)) = (location, &self.reached) {
            self.looked_up = LookedUp::begin(host.clone(), reach.clone())?;
        }
        Ok(())
    }

    /// Where this host is, with a port: what its name resolves to, the address first that the far side sees
    /// its control connection at.
    pub fn places(&mut self, port: u16) -> Vec<String> {
        told_first(self.looked_up.take(), &self.welcome.local_address, port)
    }

    /// The address of this host that the far side sees: of its control connection, or where it cannot know that,
    /// because no ssh has told it, the one that packets to it have.
    pub fn seen_address(&mut self) -> Option<String> {
        if !self.welcome.peer_address.is_empty() {
            return Some(self.welcome.peer_address.clone());
        }
        self.looked_up.take().into_iter().find_map(own_address).map(|from| from.to_string())
    }

    /// Takes the answer to the greeting.
    ///
    /// # Errors
    /// When there is none, or a refusal.
    pub fn take_welcome(&mut self, inbox: &mut Inbox, reach: &Reach, note: &Note) -> Result<(), Failure> {
        let deadline = reach.connect_deadline(Instant::now());
        let id = self.id;
        let answer = inbox.wait(Some(deadline), note, &|incoming| incoming.end == id && incoming.request == 1)?;
        match answer.tell? {
            Tell::Welcome(welcome) if self.is_confined != welcome.root.is_some() => Err(self.unexpected()),
            Tell::Welcome(welcome) => {
                self.welcome = welcome;
                self.greeted.1 = Instant::now();
                if !self.is_here() {
                    self.steps.push((StartStep::Greet, self.greeted.1));
                }
                self.writer.keep_alive(&self.tuning).map_err(|error| system_failure(Side::Command, &error))
            }
            Tell::Failed(refusal) => Err(self.refused(self.placed(refusal))),
            _ => Err(self.unexpected()),
        }
    }

    /// What its refusal of the greeting means for the user.
    pub fn refused(&self, refusal: Failure) -> Failure {
        let refusal = refusal.at_end(&*self.name);
        match (refusal.code, &self.withheld) {
            (ErrorCode::AuthenticationFailed, Some(withheld)) => {
                Failure { reason: withheld.reason.or(refusal.reason), ..refusal }.caused_by((**withheld).clone())
            }
            _ => refusal,
        }
    }

    /// From now on, what each end says to the other is carried across.
    pub fn introduce(&self, other: &Self) {
        let set = |forward: &Forward, to: &Self| {
            let (name, writer, heard_out) = (to.name.clone(), to.writer.clone(), Arc::clone(&to.heard_out));
            *lock(forward) = Some(Across { name, writer, heard_out });
        };
        set(&self.forward, other);
        set(&other.forward, self);
    }

    /// Sends a request, and tells its number.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn ask(&mut self, ask: Ask) -> Result<u64, Failure> {
        let request = self.next_request;
        self.next_request += 1;
        let sent = self.writer.send(Channel::CONTROL, &ask.encode(request));
        sent.map_err(|error| {
            // Whoever ends a session says why before: that is found in the inbox once it has been read.
            self.heard_out.wait(HEARD_OUT);
            let why = format!("the control connection was lost: {}", describe(&error));
            failure(ErrorCode::ConnectionLost, Side::Link, why).at_end(&*self.name)
        })?;
        Ok(request)
    }

    /// A request that is sent later, by any thread. Nobody waits for its answer.
    pub fn later(&mut self) -> impl FnOnce(Ask) + Send + use<> {
        let (request, writer) = (self.next_request, self.writer.clone());
        self.next_request += 1;
        // Of a connection that is gone its reader tells.
        move |ask| drop(writer.send(Channel::CONTROL, &ask.encode(request)))
    }

    /// Sends a request that is sure to come, so that the answer is under way when [`End::request`] comes to it: over a
    /// long path each question that waits for the one before costs a round trip.
    ///
    /// # Errors
    /// As [`End::ask`].
    pub fn ask_early(&mut self, ask: Ask) -> Result<(), Failure> {
        let request = self.ask(ask.clone())?;
        self.early.push((ask, request));
        Ok(())
    }

    /// Sends a request and waits for its answer; a refusal comes back as the error.
    ///
    /// # Errors
    /// When the connection ends, or the agent refuses.
    pub fn request(&mut self, inbox: &mut Inbox, note: &Note, ask: Ask) -> Result<Tell, Failure> {
        self.request_or_refusal(inbox, note, ask)?
    }

    /// As [`End::request`], for those whom a refusal does not end: it is the inner error.
    ///
    /// # Errors
    /// When the connection ends: whatever else is waited for does not come either.
    pub fn request_or_refusal(
        &mut self,
        inbox: &mut Inbox,
        note: &Note,
        ask: Ask,
    ) -> Result<Result<Tell, Failure>, Failure> {
        let request = match self.early.iter().position(|(early, _)| *early == ask) {
            Some(index) => self.early.remove(index).1,
            None => self.ask(ask).map_err(|lost| inbox.reason(self.id, lost))?,
        };
        self.answer_or_refusal(None, inbox, note, request)
    }

    /// Waits for the answer to a request.
    ///
    /// # Errors
    /// As [`End::request`].
    pub fn answer(&self, inbox: &mut Inbox, note: &Note, request: u64) -> Result<Tell, Failure> {
        self.answer_by(None, inbox, note, request)
    }

    /// Waits for the answer to a request that must not take long.
    ///
    /// # Errors
    /// As [`End::request`], and [`ErrorCode::Silence`] after the deadline.
    pub fn answer_by(
        &self,
        deadline: Option<Instant>,
        inbox: &mut Inbox,
        note: &Note,
        request: u64,
    ) -> Result<Tell, Failure> {
        self.answer_or_refusal(deadline, inbox, note, request)?
    }

    fn answer_or_refusal(
        &self,
        deadline: Option<Instant>,
        inbox: &mut Inbox,
        note: &Note,
        request: u64,
    ) -> Result<Result<Tell, Failure>, Failure> {
        let id = self.id;
        let answer = inbox.wait(deadline, note, &|incoming| incoming.end == id && incoming.request == request)?;
        Ok(match answer.tell? {
            Tell::Failed(refusal) => Err(self.placed(refusal)),
            tell => Ok(tell),
        })
    }

    /// A failure of a file at this end, whichever side the agent thought it was.
    pub fn placed(&self, mut failure: Failure) -> Failure {
        if matches!(failure.side, Side::Source | Side::Destination) {
            failure.side = self.id.side();
        }
        if matches!(self.reached, Reached::Ssh(_) | Reached::Node(..)) && failure.side != Side::Command {
            return failure.at_end(&*self.name);
        }
        failure
    }

    /// An answer that makes no sense.
    pub fn unexpected(&self) -> Failure {
        failure(ErrorCode::ProtocolViolation, Side::Link, "the peer answered something else than it was asked")
            .at_end(&*self.name)
    }

    /// An answer that breaks the protocol.
    pub fn misbehaved(&self, error: &ProtocolError) -> Failure {
        failure(error.code, Side::Link, error.to_string()).at_end(&*self.name)
    }

    /// Whether it is in this process.
    pub fn is_here(&self) -> bool {
        matches!(self.reached, Reached::Here(..))
    }

    /// Tells the machine whose files it has from all others, also after a reboot: a later run of the same copy finds by
    /// it what this one has left. Whoever answers at the same address with another key is another.
    pub fn machine(&self) -> Vec<u8> {
        let told = self.welcome.machine.as_ref().map_or(&[][..], |machine| machine);
        let pin = if let Reached::Node(_, pin, _) = &self.reached { Some(pin) } else { None };
        let mut name = machine(pin, told, &self.name);
        if let Reached::Here(agent, _) = &self.reached {
            name.extend(agent.store_name().unwrap_or_default().bytes());
        }
        // One path is another below another directory.
        if let Some((device, inode)) = self.root() {
            name.extend([device, inode].iter().flat_map(|number| number.to_le_bytes()));
        }
        name
    }

    /// The fingerprint of the key that it has shown, where it is a node.
    pub fn key_fingerprint(&self) -> Option<String> {
        if let Reached::Node(_, pin, _) = &self.reached { Some(format_pin(pin)) } else { None }
    }

    /// Whether it has the same files as another.
    pub fn shares_host(&self, other: &Self) -> bool {
        !self.welcome.host_id.trim().is_empty() && self.welcome.host_id == other.welcome.host_id
    }

    /// Whether both run under one kernel: device and inode numbers mean the same, paths need not.
    pub fn shares_kernel(&self, other: &Self) -> bool {
        let boot = |end: &Self| end.welcome.host_id.split(' ').next().unwrap_or_default().to_owned();
        !boot(self).is_empty() && boot(self) == boot(other)
    }

    /// Whether one path is the same at both, of ends on one host: a node's begin at its root, and those of an end in
    /// this process may begin at a directory, too.
    pub fn has_paths_of(&self, other: &Self) -> bool {
        self.paths() == other.paths()
    }

    fn paths(&self) -> Paths<'_> {
        match &self.reached {
            Reached::Node(address, pin, _) => Paths::Node(*pin, address.port()),
            Reached::Here(agent, _) => Paths::of(agent.store_name(), self.root()),
            Reached::Ssh(_) => Paths::of(None, self.root()),
        }
    }

    /// The directory that its paths begin at, of an end that is no node: device and inode.
    fn root(&self) -> Option<(u64, u64)> {
        match &self.reached {
            Reached::Here(agent, _) => agent.root(),
            Reached::Ssh(_) => self.welcome.root,
            Reached::Node(..) => None,
        }
    }

    /// From now on only last words are said to it: its connection is ended soon, whether or not it takes them.
    pub fn leave_soon(&self) {
        self.watchdog.leave_at(Instant::now() + self.tuning.leave_after);
    }

    /// Says good-bye and waits until everything of it in this process has ended.
    pub fn close(mut self) {
        self.backlog.end();
        self.leave_soon();
        let _ = self.ask(Ask::Bye);
        match self.reached {
            Reached::Here(_, thread) => {
                // First, so that a long answer that nobody takes any more is given up.
                self.writer.close();
                if let Some(thread) = thread {
                    let _ = thread.join();
                }
            }
            Reached::Node(..) => self.writer.close(),
            // ssh leaves when the agent does, a round trip or two later: nobody has to wait for that, unless there is
            // no thread to do so.
            Reached::Ssh(child) => drop(threads::start("the end of ssh", move || drop(child))),
        }
    }

    /// The protocol version that it speaks.
    pub fn version(&self) -> Version {
        self.welcome.version
    }
}

/// See [`End::machine`].
fn machine(pin: Option<&[u8; 32]>, told: &[u8], name: &str) -> Vec<u8> {
    match pin {
        Some(pin) => [b"node ", &pin[..]].concat(),
        None if !told.is_empty() => [b"machine ", told].concat(),
        // Where its system does not say.
        None => [b"name ", name.as_bytes()].concat(),
    }
}

/// Ends ssh at once, so that a thread waiting for it wakes up.
fn end_process(process: u32) {
    carrack_sys::host::terminate(process);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_store_or_a_directory_are_not_the_host_s() {
        let root = Some((1, 2));
        assert_eq!(Paths::of(None, None), Paths::Host);
        assert_eq!(Paths::of(None, root), Paths::Directory(1, 2));
        assert_ne!(Paths::of(None, root), Paths::of(None, Some((1, 3))));
        assert_eq!(Paths::of(Some("objects"), root), Paths::of(Some("objects"), None));
        for store in [Paths::of(Some("objects"), None), Paths::of(None, root)] {
            assert!(store != Paths::Host && store != Paths::Store("tapes"), "{store:?}");
        }
    }

    #[test]
    fn machine_is_told_by_its_key_or_by_itself_and_by_its_name_only_before_version_4() {
        let (one, other) = ([1; 32], [2; 32]);
        assert_ne!(machine(Some(&one), &[], "host:1"), machine(Some(&other), &[], "host:1"));
        assert_eq!(machine(Some(&one), &[9], "host:1"), machine(Some(&one), &[8], "host:2"));
        assert_ne!(machine(None, &[1; 32], "host"), machine(None, &[2; 32], "host"));
        assert_eq!(machine(None, &[1; 32], "host"), machine(None, &[1; 32], "user@host"));
        assert_ne!(machine(None, &[], "host"), machine(None, &[], "other"));
        assert_ne!(machine(None, &one, ""), machine(Some(&one), &[], ""));
    }
}
