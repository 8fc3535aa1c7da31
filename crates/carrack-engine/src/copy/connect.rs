//! Connecting the two ends for data: directly, the other way round, or through the control connections as a last resort.
//!
//! The side that the command runs on (of two remote hosts: the source) dials first, to the address that the control connection really
//! used. If that has not worked after a moment, the other side dials back as well, and whichever is made first is taken. If
//! neither is made in time, the streams ride inside the control connections.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::pace;
use carrack_core::report::{ErrorCode, Failure, LinkReport, Side};
use carrack_core::request::{CongestionControl, CopyRequest, Encrypt, LinkKind};
use carrack_core::tuning::{LINK_STAGGER, LINK_TIMEOUT, SILENCE};
use carrack_core::wire::control::{Ask, Dial, Dialed, Listen, Listening, Paths, SessionKey, Tell, Tunnel};
use carrack_core::wire::mux::Channel;

use super::Ends;
use super::resolve::Plan;
use crate::data::socket::Socket;
use crate::data::stream::{Connection, Protection};
use crate::end::{End, EndId, Inbox, Note, Reached};
use crate::error::failure;

/// Data connections made by the far side of a reverse link are numbered from here, so that a direct one that is made at the same
/// moment is not taken for the same.
pub const REVERSE_FIRST: u32 = 256;

/// How data flows.
pub struct Link {
    /// For the report.
    pub report: LinkReport,
    /// What ties connections to this transfer.
    pub key: SessionKey,
    /// Who makes further connections, and where to.
    pub more: Option<More>,
}

/// How further connections are made.
pub struct More {
    /// Who dials.
    pub dialer: EndId,
    /// Where to.
    pub addresses: Vec<String>,
    /// SHA-256 of the key that the listener shows.
    pub pin: Vec<u8>,
    /// The next connection's number.
    pub first: u32,
}

impl Ends {
    /// One of them.
    pub(super) fn get(&mut self, id: EndId) -> &mut End {
        match id {
            EndId::Source => &mut self.source,
            EndId::Destination => &mut self.destination,
        }
    }

    /// Who dials in a direct link.
    fn dialer(&self) -> EndId {
        if self.destination.is_here() { EndId::Destination } else { EndId::Source }
    }
}

fn other(id: EndId) -> EndId {
    match id {
        EndId::Source => EndId::Destination,
        EndId::Destination => EndId::Source,
    }
}

/// A new one.
///
/// # Errors
/// When the system gives no random bytes.
pub fn session_key(encrypt: Encrypt) -> Result<SessionKey, Failure> {
    let mut key = SessionKey { id: [0; 16], secret: [0; 32], encrypt };
    let random =
        carrack_sys::host::random_bytes(&mut key.id).and_then(|()| carrack_sys::host::random_bytes(&mut key.secret));
    random.map_err(|error| failure(ErrorCode::Internal, Side::Command, error.to_string()))?;
    Ok(key)
}

/// Asks what [`Connecting`] will ask first.
///
/// # Errors
/// When a connection has ended.
pub fn ask_early(request: &CopyRequest, key: &SessionKey, ends: &mut Ends) -> Result<(), Failure> {
    let here = ends.source.is_here() && ends.destination.is_here();
    if here || !matches!(request.options.reach.link, None | Some(LinkKind::Direct)) {
        return Ok(());
    }
    let listener = other(ends.dialer());
    ends.get(listener).ask_early(listen(request, key))
}

fn listen(request: &CopyRequest, key: &SessionKey) -> Ask {
    let (low, high) = request.options.reach.ports.unwrap_or((0, 0));
    Ask::Listen(Listen { session: Some(key.to_message()), port_low: u32::from(low), port_high: u32::from(high) })
}

/// Making the first data connection.
pub struct Connecting<'a> {
    /// What was asked for.
    pub request: &'a CopyRequest,
    /// What it has come to.
    pub plan: &'a Plan,
    /// Of this session.
    pub key: SessionKey,
    /// Where answers come.
    pub inbox: &'a mut Inbox,
    /// For a person to read.
    pub note: &'a Note,
    /// How many streams an earlier session of the run has found best.
    pub found: Option<u16>,
}

impl Connecting<'_> {
    /// Makes the first data connection (within one process: all of them).
    ///
    /// # Errors
    /// When none can be made in any allowed way.
    pub fn connect(&mut self, ends: &mut Ends) -> Result<Link, Failure> {
        let (request, plan, note) = (self.request, self.plan, self.note);
        if ends.source.is_here() && ends.destination.is_here() {
            return connect_here(request, plan, ends);
        }
        let wanted = request.options.reach.link;
        let mut why = None;
        if wanted != Some(LinkKind::Tunnel) {
            let (key, inbox) = (self.key.clone(), &mut *self.inbox);
            let mut attempt = Attempt { key, request, inbox, note, offers: Vec::new(), last: None };
            match attempt.run(ends, wanted)? {
                Some(link) => return Ok(link.with_streams(request, plan, self.found, ends)),
                None => why = attempt.last,
            }
        }
        let because = why.as_ref().map(|failure| failure.message.clone()).unwrap_or_default();
        if !matches!(wanted, None | Some(LinkKind::Tunnel)) {
            let message = format!(
                "no data connection by the only link allowed: {because}; try --data-address, --ports, or another --link"
            );
            return Err(failure(ErrorCode::NoLink, Side::Link, message));
        }
        if !because.is_empty() {
            note(format!("no direct data connection ({because}): data goes through the control connection"));
        }
        tunnel(self.key.id, ends, self.inbox, note)
    }
}

fn connect_here(request: &CopyRequest, plan: &Plan, ends: &Ends) -> Result<Link, Failure> {
    let (Reached::Here(source, _), Reached::Here(destination, _)) = (&ends.source.reached, &ends.destination.reached)
    else {
        return Err(failure(ErrorCode::Internal, Side::Command, "two ends here that are not"));
    };
    let streams = stream_count(request, plan, Duration::ZERO, ends);
    for number in 0..streams {
        let (out, input) = UnixStream::pair()
            .map_err(|error| failure(ErrorCode::ResourceLimit, Side::Command, format!("a socket pair: {error}")))?;
        let connection = |socket| Connection {
            socket: Arc::new(Socket::Unix(socket)),
            protection: Protection::Memory,
            early: Vec::new(),
            number,
        };
        source.arrived(connection(out));
        destination.arrived(connection(input));
    }
    let report = LinkReport { kind: LinkKind::Memory, address: String::new(), streams, cipher: "memory".into() };
    Ok(Link { report, key: session_key(Encrypt::None)?, more: None })
}

fn stream_count(request: &CopyRequest, plan: &Plan, round_trip: Duration, ends: &Ends) -> u16 {
    if plan.in_order {
        return 1;
    }
    let processors = ends.processors();
    let chosen = request.options.congestion.as_ref().map(CongestionControl::name);
    let congestion = chosen.unwrap_or(&ends.source.welcome.congestion);
    request.options.streams.unwrap_or_else(|| pace::initial_streams(round_trip, congestion, processors))
}

/// Trying to connect in one way and the other.
struct Attempt<'a> {
    key: SessionKey,
    request: &'a CopyRequest,
    inbox: &'a mut Inbox,
    note: &'a Note,
    /// Dials under way.
    offers: Vec<Offer>,
    last: Option<Failure>,
}

struct Offer {
    kind: LinkKind,
    dialer: EndId,
    request: u64,
    addresses: Vec<String>,
    pin: Vec<u8>,
}

impl Attempt<'_> {
    fn run(&mut self, ends: &mut Ends, only: Option<LinkKind>) -> Result<Option<Unsized>, Failure> {
        let start = Instant::now();
        let direct = ends.dialer();
        if only != Some(LinkKind::Reverse) {
            self.start(ends, LinkKind::Direct, direct)?;
            let patience = if only.is_some() { LINK_TIMEOUT } else { LINK_STAGGER };
            if let Some(link) = self.wait(start + patience)? {
                return Ok(Some(link));
            }
        }
        if only != Some(LinkKind::Direct) {
            self.start(ends, LinkKind::Reverse, other(direct))?;
        }
        self.wait(start + LINK_TIMEOUT + LINK_STAGGER)
    }

    /// Asks one side to listen and the other to dial.
    fn start(&mut self, ends: &mut Ends, kind: LinkKind, dialer: EndId) -> Result<(), Failure> {
        let session = Some(self.key.to_message());
        let listen = listen(self.request, &self.key);
        let listener = ends.get(other(dialer));
        let Listening { port, pin } = match listener.request(self.inbox, self.note, listen) {
            Ok(Tell::Listening(listening)) => listening,
            Ok(_) => return Err(listener.unexpected()),
            Err(failure) => {
                self.last = Some(failure);
                return Ok(());
            }
        };
        let addresses = addresses(self.request, ends, other(dialer), port);
        let first = if kind == LinkKind::Reverse { REVERSE_FIRST } else { 0 };
        let timeout_ms = LINK_TIMEOUT.as_millis() as u32;
        let dial =
            Dial { session, addresses: addresses.clone(), pin: pin.clone(), count: 1, first, timeout_ms, segment: 0 };
        let request = ends.get(dialer).ask(Ask::Dial(dial))?;
        self.offers.push(Offer { kind, dialer, request, addresses, pin });
        Ok(())
    }

    /// Waits until one of the dials has worked, or all have failed, or time is up.
    fn wait(&mut self, deadline: Instant) -> Result<Option<Unsized>, Failure> {
        while !self.offers.is_empty() {
            let offers = &self.offers;
            let of = |end: EndId, request: u64| {
                offers.iter().position(|offer| (offer.dialer, offer.request) == (end, request))
            };
            let answer = match self
                .inbox
                .wait(Some(deadline), self.note, &|incoming| of(incoming.end, incoming.request).is_some())
            {
                Ok(answer) => answer,
                Err(failure) if failure.code == ErrorCode::Silence && Instant::now() >= deadline => {
                    self.last.get_or_insert(failure);
                    return Ok(None);
                }
                Err(failure) => return Err(failure),
            };
            let Some(place) = of(answer.end, answer.request) else {
                continue;
            };
            let offer = self.offers.remove(place);
            match answer.tell? {
                Tell::Dialed(dialed) => {
                    return Ok(Some(Unsized { key: self.key.clone(), offer, dialed }));
                }
                Tell::Failed(why) => self.last = Some(why.into()),
                _ => {}
            }
        }
        Ok(None)
    }
}

/// A link whose number of streams has not been settled.
struct Unsized {
    key: SessionKey,
    offer: Offer,
    dialed: Dialed,
}

impl Unsized {
    fn with_streams(self, request: &CopyRequest, plan: &Plan, found: Option<u16>, ends: &Ends) -> Link {
        let round_trip = Duration::from_micros(self.dialed.round_trip_us);
        let streams = found.unwrap_or_else(|| stream_count(request, plan, round_trip, ends));
        let cipher = if self.dialed.cipher.is_empty() { "none".into() } else { self.dialed.cipher };
        let first = if self.offer.kind == LinkKind::Reverse { REVERSE_FIRST } else { 0 };
        let report = LinkReport { kind: self.offer.kind, address: self.dialed.address, streams, cipher };
        // The address that worked first: the others have shown what they are worth.
        let addresses = if report.address.is_empty() { self.offer.addresses } else { vec![report.address.clone()] };
        Link {
            report,
            key: self.key,
            more: Some(More { dialer: self.offer.dialer, addresses, pin: self.offer.pin, first: first + 1 }),
        }
    }
}

/// Where a listener may be reached, best first.
fn addresses(request: &CopyRequest, ends: &mut Ends, listener: EndId, port: u32) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    let peer_sees = ends.get(other(listener)).welcome.peer_address.clone();
    let end = ends.get(listener);
    match &end.reached {
        // Seen from the other side, this host is where its control connection came from.
        Reached::Here(..) => hosts.push(peer_sees),
        reached => {
            if let Some(address) = &request.options.reach.data_address {
                return vec![format!("{}:{port}", bracketed(address))];
            }
            if let Reached::Node(address, _) = reached {
                hosts.push(address.ip().to_canonical().to_string());
            }
            hosts.push(end.welcome.local_address.clone());
            // Behind a jump host or a translated address only the name may lead there.
            let name = end.name.rsplit('@').next().unwrap_or_default();
            let name = if matches!(reached, Reached::Node(..)) {
                name.rsplit_once(':').map_or(name, |(host, _)| host)
            } else {
                name
            };
            hosts.push(name.trim_start_matches('[').trim_end_matches(']').to_string());
        }
    }
    let mut addresses: Vec<String> = Vec::new();
    for host in hosts.into_iter().filter(|host| !host.is_empty()) {
        let address = format!("{}:{port}", bracketed(&host));
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

fn bracketed(host: &str) -> String {
    if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_string() }
}

/// One stream inside the control connections, which are encrypted already.
fn tunnel(id: [u8; 16], ends: &mut Ends, inbox: &mut Inbox, note: &Note) -> Result<Link, Failure> {
    // The receiver has begun already, with this session; the secret is another, of which no listener knows.
    let key = SessionKey { id, ..session_key(Encrypt::None)? };
    let channel = u32::from(Channel::FIRST_TUNNEL.0);
    let ask = |dial| Ask::Tunnel(Tunnel { session: Some(key.to_message()), channel, dial });
    let answering = ends.destination.ask(ask(false))?;
    // Requests are begun in order: an answer to one that asks for nothing says that this end of the tunnel is there. Bytes
    // that came before it would be lost.
    ends.destination.request(inbox, note, Ask::Inspect(Paths::default()))?;
    let dialing = ends.source.ask(ask(true))?;
    let deadline = Some(Instant::now() + SILENCE);
    ends.source.answer_by(deadline, inbox, note, dialing)?;
    ends.destination.answer_by(deadline, inbox, note, answering)?;
    let carrier = [&ends.source, &ends.destination].map(|end| match end.reached {
        Reached::Here(..) => None,
        Reached::Ssh(_) => Some("ssh"),
        Reached::Node(..) => Some("TLS"),
    });
    let cipher = format!("inside {}", carrier.into_iter().flatten().collect::<Vec<_>>().join(" and "));
    let report = LinkReport { kind: LinkKind::Tunnel, address: String::new(), streams: 1, cipher };
    Ok(Link { report, key, more: None })
}
