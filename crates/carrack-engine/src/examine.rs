//! Examining hosts: what one says of itself, and of two also what the connections between them met. Nothing is judged
//! here, and nothing is changed there.

mod approach;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use carrack_core::evidence::{Evidence, EvidenceText};
use carrack_core::failure::{ErrorCode, Failure, Reason, Side};
use carrack_core::ids::StreamId;
use carrack_core::limits;
use carrack_core::location::Location;
use carrack_core::report::{Event, PathTrace};
use carrack_core::request::{Encrypt, EndOptions};
use carrack_core::wire::control::{Ask, Dial, EvidenceAbout, Listen, Listening, Ports, SessionKey, Tell};

use crate::context::{Context, check_tuning};
use crate::control::whereabouts;
use crate::copy::connect::{bracketed, session_key};
use crate::end::{End, EndId, Inbox, Note, Reached};
use crate::error::failure;
use crate::net::connect::look_up;
use crate::stop::{Stop, Until};

use approach::WayToHost;

/// A host gathers for a few seconds: its commands have a limit of five each.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of the connection that the second host dials; that of the first host has 0.
const BACK: StreamId = StreamId(1 << 15);

/// A host to be examined, and how it is reached.
#[derive(Clone, Copy, Debug)]
pub struct ExaminedPlace<'a> {
    /// Where; of a path its directory is looked at, too.
    pub location: &'a Location,
    /// How it is reached.
    pub options: &'a EndOptions,
}

/// What a host has said.
#[derive(Debug)]
pub struct HostEvidence {
    /// The name that messages call it by.
    pub name: String,
    /// Its carrack.
    pub program: String,
    /// Its operating system, where it is told.
    pub system: String,
    /// What it says of itself, or why it says nothing.
    pub evidence: Result<Evidence, Failure>,
}

/// A data connection that was made to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExaminedPath {
    /// The address that answered.
    pub address: String,
    /// The round trip, as TCP measured it.
    pub round_trip: Duration,
}

/// What two hosts have said, and whether one reaches the other.
#[derive(Debug)]
pub struct Examined {
    /// The first host.
    pub near: HostEvidence,
    /// The second, or why nobody could ask it.
    pub far: Result<HostEvidence, Failure>,
    /// The data connection from the first host to the second; `None` if none was tried.
    pub there: Option<Result<ExaminedPath, Failure>>,
    /// The one from the second host to the first.
    pub back: Option<Result<ExaminedPath, Failure>>,
    /// The way of packets to a second host that could not be asked, as far as this host finds it.
    pub approach: Option<PathTrace>,
}

/// Asks one host.
///
/// # Errors
/// When it cannot be reached, or the work is to stop.
pub fn host(
    place: ExaminedPlace<'_>,
    context: &Context,
    observer: &(dyn Fn(Event) + Send + Sync),
) -> Result<HostEvidence, Failure> {
    let mut examining = Examining::new(context, observer)?;
    let mut end = examining.open(EndId::Source, place)?;
    let asked = examining.ask(&mut end, about(place.location, None, 0));
    let answered = asked.and_then(|request| examining.evidence(&end, request));
    end.close();
    examining.tell_notes();
    answered
}

/// Asks two hosts, and tries a data connection each way.
///
/// # Errors
/// When the first cannot be reached, or the work is to stop. That the second cannot is part of what was found.
pub fn pair(
    near: ExaminedPlace<'_>,
    far: ExaminedPlace<'_>,
    context: &Context,
    observer: &(dyn Fn(Event) + Send + Sync),
) -> Result<Examined, Failure> {
    let mut examining = Examining::new(context, observer)?;
    let examined = examining.pair(near, far);
    examining.tell_notes();
    examined
}

fn about(location: &Location, peer: Option<IpAddr>, connections: usize) -> EvidenceAbout {
    EvidenceAbout { peer, directory: location.path().unwrap_or_default().to_vec(), connections }
}

struct Examining<'a> {
    context: &'a Context,
    observer: &'a (dyn Fn(Event) + Send + Sync),
    inbox: Inbox,
    note: Note,
    notes: mpsc::Receiver<String>,
    /// When the first question was asked, by the clock of this host.
    asked: Option<SystemTime>,
}

impl<'a> Examining<'a> {
    fn new(context: &'a Context, observer: &'a (dyn Fn(Event) + Send + Sync)) -> Result<Self, Failure> {
        check_tuning(&context.tuning)?;
        let (sender, notes) = mpsc::sync_channel(limits::NOTES_WAITING);
        let note: Note = Arc::new(move |text| drop(sender.try_send(text)));
        let inbox = Inbox::until(Until::new(context.stop.clone(), None));
        Ok(Self { context, observer, inbox, note, notes, asked: None })
    }

    fn tell_notes(&self) {
        self.notes.try_iter().for_each(|text| (self.observer)(Event::Note(text)));
    }

    fn open(&mut self, id: EndId, place: ExaminedPlace<'_>) -> Result<End, Failure> {
        self.open_until(&self.context.stop.clone(), id, place)
    }

    /// The same; given up when `stop` says so.
    fn open_until(&mut self, stop: &Stop, id: EndId, place: ExaminedPlace<'_>) -> Result<End, Failure> {
        let words = self.inbox.share();
        let context = Context { stop: stop.clone(), ..self.context.clone() };
        let mut end = End::open(id, place.location, place.options, (&context, None), words, &self.note)?;
        match end.take_welcome(&mut self.inbox, &place.options.reach, &self.note) {
            Ok(()) => {
                end.program_sent.iter().for_each(|sent| (self.observer)(Event::ProgramSent(sent.clone())));
                Ok(end)
            }
            Err(refusal) => {
                end.close();
                Err(refusal)
            }
        }
    }

    /// Asks for evidence; the number of the request.
    fn ask(&mut self, end: &mut End, about: EvidenceAbout) -> Result<u64, Failure> {
        self.asked.get_or_insert_with(SystemTime::now);
        end.ask(Ask::Evidence(about))
    }

    /// Takes the answer to [`Examining::ask`].
    fn evidence(&mut self, end: &End, request: u64) -> Result<HostEvidence, Failure> {
        let evidence = self.answer(end, request);
        self.inbox.check()?;
        let (name, welcome) = (end.name.clone(), &end.welcome);
        Ok(HostEvidence { name, program: welcome.program.clone(), system: welcome.system.clone(), evidence })
    }

    fn answer(&mut self, end: &End, request: u64) -> Result<Evidence, Failure> {
        let deadline = Some(Instant::now() + PATIENCE);
        let mut evidence = Evidence::default();
        loop {
            match end.answer_by(deadline, &mut self.inbox, &self.note, request)? {
                Tell::Evidence(texts) => texts.into_iter().for_each(|(name, text)| evidence.put(&name, text)),
                Tell::Done(_) => {
                    // Its own clock was read in between.
                    for (name, time) in [("clock/asked", self.asked), ("clock/answered", Some(SystemTime::now()))] {
                        let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
                        evidence.put(name, EvidenceText::Found(since.as_nanos().to_string()));
                    }
                    return Ok(evidence);
                }
                _ => return Err(end.unexpected()),
            }
        }
    }

    fn pair(&mut self, near: ExaminedPlace<'_>, far: ExaminedPlace<'_>) -> Result<Examined, Failure> {
        let mut first = self.open(EndId::Source, near)?;
        let approach = WayToHost::begin(far, &self.context.stop)?;
        let opened = self.open_until(&approach.stop, EndId::Destination, far);
        let mut second = match opened {
            Ok(end) => end,
            Err(why) => {
                self.inbox.check()?;
                let (why, approach) = approach.end(why);
                // The way there may say why.
                let peer = places_of(far).first().map(SocketAddr::ip);
                let request = self.ask(&mut first, about(near.location, peer, 0))?;
                let near = self.evidence(&first, request);
                first.close();
                let near = near?;
                return Ok(Examined { near, far: Err(why), there: None, back: None, approach });
            }
        };
        let examined = self.both((near, &mut first), (far, &mut second));
        // An end that is closed tells so to whoever waits for anything: both have said all by now.
        first.close();
        second.close();
        examined
    }

    fn both(
        &mut self,
        (near, first): (ExaminedPlace<'_>, &mut End),
        (far, second): (ExaminedPlace<'_>, &mut End),
    ) -> Result<Examined, Failure> {
        second.look_up(far.location, &far.options.reach)?;
        first.look_up(near.location, &near.options.reach)?;
        let key = session_key(Encrypt::Tls)?;
        let mut tried = None;
        let there = self.connect(first, (&mut *second, far.options), &key, StreamId(0), &mut tried)?;
        let peer = tried.take();
        let back = self.connect(second, (&mut *first, near.options), &key, BACK, &mut tried)?;
        // A connection knows its other side; without one it is the address that was tried.
        let peers = [(&there, peer), (&back, tried)].map(|(path, peer)| peer.filter(|_| path.is_err()));
        let made = usize::from(there.is_ok()) + usize::from(back.is_ok());
        let asked = self.ask(first, about(near.location, peers[0], made))?;
        let asked_far = self.ask(second, about(far.location, peers[1], made))?;
        let near = self.evidence(first, asked)?;
        let far = self.evidence(second, asked_far)?;
        Ok(Examined { near, far: Ok(far), there: Some(there), back: Some(back), approach: None })
    }

    /// Has one host listen and the other dial. The inner error is why there is no connection.
    fn connect(
        &mut self,
        dialer: &mut End,
        (listener, options): (&mut End, &EndOptions),
        key: &SessionKey,
        number: StreamId,
        tried: &mut Option<IpAddr>,
    ) -> Result<Result<ExaminedPath, Failure>, Failure> {
        let ports = options.reach.ports.map(|(low, high)| Ports { low, high });
        let listen = Ask::Listen(Listen { session: key.clone(), ports });
        let Listening { port, pin } = match listener.request_or_refusal(&mut self.inbox, &self.note, listen)? {
            Ok(Tell::Listening(listening)) => listening,
            Ok(_) => return Err(listener.unexpected()),
            Err(refused) => return Ok(Err(refused)),
        };
        let addresses = addresses(dialer, listener, options, port);
        if addresses.is_empty() {
            let why = format!("no address is known here that {} must have", listener.name);
            return Ok(Err(failure(ErrorCode::ConnectFailed, Side::Link, why).for_reason(Reason::NoAddress)));
        }
        *tried = addresses.iter().find_map(|address| Some(address.parse::<SocketAddr>().ok()?.ip()));
        let timeout = self.context.tuning.link_timeout;
        let dial = Dial {
            session: key.clone(),
            addresses,
            pin,
            first: number,
            count: 1,
            timeout,
            segment: 0,
            tell_connected: false,
        };
        let request = dialer.ask(Ask::Dial(dial))?;
        // The dialer keeps to the time itself.
        let deadline = Some(Instant::now() + 2 * timeout);
        Ok(match dialer.answer_by(deadline, &mut self.inbox, &self.note, request) {
            Ok(Tell::Dialed(dialed)) => {
                let address = dialed.address.parse::<SocketAddr>().map(|address| address.to_string());
                Ok(ExaminedPath { address: address.unwrap_or_default(), round_trip: dialed.round_trip })
            }
            Ok(_) => return Err(dialer.unexpected()),
            Err(why) => {
                self.inbox.check()?;
                Err(why)
            }
        })
    }
}

/// Where a listener may be reached, as a copy would: what it says of itself is not dialled.
fn addresses(dialer: &mut End, listener: &mut End, options: &EndOptions, told_port: u16) -> Vec<String> {
    let with_port = |host: &str| format!("{}:{told_port}", bracketed(host));
    match (&listener.reached, &options.reach.data_address) {
        (Reached::Here(..), _) if !listener.welcome.local_address.is_empty() => {
            vec![with_port(&listener.welcome.local_address)]
        }
        // Seen from the other side, this host is where its control connection came from.
        (Reached::Here(..), _) => dialer.seen_address().map(|seen| with_port(&seen)).into_iter().collect(),
        (_, Some(address)) => vec![with_port(address)],
        (Reached::Node(address, ..), None) => {
            vec![SocketAddr::new(address.ip().to_canonical(), address.port()).to_string()]
        }
        (Reached::Ssh(_), None) => listener.places(told_port),
    }
}

/// Where a host that could not be reached is, by its name.
fn places_of(place: ExaminedPlace<'_>) -> Vec<SocketAddr> {
    match place.location {
        Location::Ssh { host, .. } => whereabouts::addresses(host, &place.options.reach),
        Location::Node { node, .. } => match place.options.reach.node_address {
            Some(address) => vec![SocketAddr::new(address, node.port)],
            None => look_up(&format!("{}:{}", bracketed(&node.host), node.port)).unwrap_or_default(),
        },
        _ => Vec::new(),
    }
}
