//! Connecting the two ends for data: directly, the other way round, or through the control
//! connections as a last resort.
//!
//! The side that the command runs on (of two remote hosts: the source) dials first, to the address that the control
//! connection really used. If that has not worked after a moment, the other side dials back as well, and whichever is
//! made first is taken. If neither is made in time, the streams ride inside the control connections.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::ids::StreamId;
use carrack_core::location::Location;
use carrack_core::pace::streams::KeptStart;
use carrack_core::report::{ErrorCode, Failure, LinkReport, Reason, Side, StreamsFrom};
use carrack_core::request::{CongestionControl, CopyRequest, Encrypt, LinkKind, LinkSet, Reach};
use carrack_core::tuning::Tuning;
use carrack_core::wire::control::{Ask, Dial, Dialed, Listen, Listening, Ports, SessionKey, Tell, Tunnel};
use carrack_core::wire::mux::Channel;
use carrack_core::{limits, pace};

use super::ends::{Ends, other};
use super::here::connect_here;
use super::known::Known;
use super::resolve::Plan;
use crate::context::Context;
use crate::data::prepared::{Prepared, PreparedWay};
use crate::end::{End, EndId, Inbox, Incoming, Note, Reached};
use crate::error::failure;

/// Data connections of a reverse link are numbered from here, so that a direct one of the same session
/// never has the number of one.
const REVERSE_FIRST: u16 = 1 << 15;

/// Ports below are those of services, and are not given to whoever asks for any port.
const FIRST_FREE_PORT: u16 = 1024;

/// How data flows.
pub struct Link {
    /// For the report.
    pub report: LinkReport,
    /// What ties connections to this transfer.
    pub key: SessionKey,
    /// Who makes further connections, and where to.
    pub more: Option<MoreConnections>,
    /// Both ends are here: the numbers of further connections.
    pub here: Option<RangeInclusive<u16>>,
    /// Requests for connections beside the first that are under way.
    pub dials: Vec<u64>,
    /// The same of the ways that were not chosen.
    pub late: Vec<(EndId, u64)>,
    /// How far the ends are apart, by the first connection; zero where that is not known.
    pub round_trip: Duration,
    /// The number of streams is one that an earlier copy has found.
    pub kept: Option<KeptStart>,
}

impl Link {
    /// One whose connections have all been made.
    fn fixed(report: LinkReport, key: SessionKey) -> Self {
        let (dials, late) = (Vec::new(), Vec::new());
        Self { report, key, more: None, here: None, dials, late, round_trip: Duration::ZERO, kept: None }
    }
}

/// How further connections are made.
pub struct MoreConnections {
    /// The end that dials; the other one listens.
    pub dialer: EndId,
    /// The addresses that the dialer tries.
    pub addresses: Vec<String>,
    /// SHA-256 of the key that the listener shows.
    pub pin: [u8; 32],
    /// The numbers of the next connections.
    pub numbers: RangeInclusive<u16>,
    /// Dials that may be under way at once.
    pub at_once: usize,
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

/// Asks what [`Connecting`] will ask first, and looks up where hosts that ssh reaches are.
///
/// # Errors
/// When a connection has ended.
pub fn ask_early(request: &CopyRequest, key: &SessionKey, ends: &mut Ends) -> Result<(), Failure> {
    let (options, links) = (&request.options, request.options.links);
    if links.allows(LinkKind::Direct) || links.allows(LinkKind::Reverse) {
        for (end, location, reach) in [
            (&mut ends.source, &request.sources[0], &options.source.reach),
            (&mut ends.destination, &request.destination, &options.destination.reach),
        ] {
            if reach.data_address.is_none() {
                end.look_up(location, reach)?;
            }
        }
    }
    if ends.are_here() || !links.allows(LinkKind::Direct) {
        return Ok(());
    }
    let listener = other(ends.dialer());
    ends.get(listener).ask_early(listen(reach(request, listener), key))
}

/// Begins to make data connections to a node far away, from here: where they go is known by its control connection, and
/// each takes two round trips. `None` where that is not so, or where one connection may be all that is wanted.
pub fn prepare(request: &CopyRequest, ends: &Ends, context: &Context) -> Option<Arc<Prepared>> {
    let options = &request.options;
    let (dialer, other) = match ends.dialer() {
        EndId::Source => (&ends.source, &ends.destination),
        EndId::Destination => (&ends.destination, &ends.source),
    };
    let (Reached::Here(agent, _), &Reached::Node(address, pin, round_trip)) = (&dialer.reached, &other.reached) else {
        return None;
    };
    let in_order = request.sources.iter().chain([&request.destination]).any(|one| *one == Location::Stdio);
    let elsewhere = reach(request, other.id).data_address.is_some();
    if elsewhere || in_order || !options.links.allows(LinkKind::Direct) || round_trip < ends.tuning.far_rtt {
        return None;
    }
    // What a sending node uses has not been heard yet: as many as there will be in any case.
    let own =
        || if dialer.id == EndId::Source { carrack_sys::host::default_congestion_control() } else { "bbr".into() };
    let congestion = options.congestion.as_ref().map_or_else(own, |chosen| chosen.name().to_owned());
    let guess = || pace::initial_streams(&ends.tuning, round_trip, &congestion, 1);
    let count = options.streams.or_else(|| Known::kept_ahead(request, context)).unwrap_or_else(guess);
    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
    let way = PreparedWay { local: reach(request, dialer.id).local_address, address, pin, encrypt: options.encrypt };
    let prepared = Prepared::start(way, count.min(limits::OWN_DIALS as u16), ends.tuning.link_timeout);
    agent.prepare(Arc::clone(&prepared));
    Some(prepared)
}

/// How one end is reached.
fn reach(request: &CopyRequest, end: EndId) -> &Reach {
    match end {
        EndId::Source => &request.options.source.reach,
        EndId::Destination => &request.options.destination.reach,
    }
}

fn listen(reach: &Reach, key: &SessionKey) -> Ask {
    let ports = reach.ports.map(|(low, high)| Ports { low, high });
    Ask::Listen(Listen { session: key.clone(), ports })
}

/// Making the first data connections.
pub struct Connecting<'a> {
    request: &'a CopyRequest,
    plan: &'a Plan,
    /// Of this session.
    key: SessionKey,
    note: Note,
    /// Dials under way.
    offers: Vec<DialOffer>,
    /// Why the last that failed did.
    last: Option<Failure>,
    start: Instant,
    tuning: Arc<Tuning>,
    /// What is known of the number of streams.
    known: &'a Known,
}

/// What one side was asked to dial.
struct DialOffer {
    kind: LinkKind,
    dialer: EndId,
    /// One for each connection.
    requests: Vec<u64>,
    addresses: Vec<String>,
    pin: [u8; 32],
    /// The numbers of the next connections.
    numbers: RangeInclusive<u16>,
    /// How many there are to be, if that is known.
    count: Option<u16>,
    /// TCP has connected the first. That is told once: whoever told it again and again would be listened to for ever.
    connected: bool,
}

impl DialOffer {
    /// For one more connection.
    fn dial(&mut self, session: SessionKey, timeout: Duration, tell_connected: bool) -> Dial {
        let first = self.numbers.next().unwrap_or(REVERSE_FIRST);
        Dial {
            session,
            addresses: self.addresses.clone(),
            pin: self.pin,
            first: StreamId(first),
            count: 1,
            timeout,
            segment: 0,
            tell_connected,
        }
    }
}

impl<'a> Connecting<'a> {
    /// Asks for the first data connections. They are made while the caller does something else. `known` is what earlier
    /// sessions and copies have found of their number.
    ///
    /// # Errors
    /// When a control connection ends.
    pub fn start(
        request: &'a CopyRequest,
        plan: &'a Plan,
        key: SessionKey,
        note: &Note,
        known: &'a Known,
        ends: &mut Ends,
        inbox: &mut Inbox,
    ) -> Result<Self, Failure> {
        let (note, start, tuning) = (Arc::clone(note), Instant::now(), Arc::clone(&ends.tuning));
        let mut connecting = Self { request, plan, key, note, offers: Vec::new(), last: None, start, tuning, known };
        let direct = ends.dialer();
        let links = request.options.links;
        if ends.are_here() {
        } else if links.allows(LinkKind::Direct) {
            connecting.offer(ends, inbox, LinkKind::Direct, direct)?;
        } else if links.allows(LinkKind::Reverse) {
            connecting.offer(ends, inbox, LinkKind::Reverse, other(direct))?;
        }
        Ok(connecting)
    }

    /// Waits until there is one (within one process: all of them), and tries the other ways if the first does not lead
    /// there.
    ///
    /// # Errors
    /// When none can be made in any allowed way.
    pub fn finish(mut self, ends: &mut Ends, inbox: &mut Inbox) -> Result<Link, Failure> {
        let (request, plan) = (self.request, self.plan);
        if ends.are_here() {
            return connect_ends(request, plan, ends);
        }
        if let Some(link) = self.connect(ends, inbox)? {
            self.tell_unused_address(&link.offer, ends);
            return Ok(link.with_streams(request, plan, self.known, ends));
        }
        // A host that has reached a limit has nothing left for a tunnel either; another session may meet it with more.
        if let Some(limited) = self.last.take_if(|last| last.code == ErrorCode::ResourceLimit) {
            return Err(limited);
        }
        let because = self.last.as_ref().map(Failure::message).unwrap_or_default();
        if !request.options.links.allows(LinkKind::Tunnel) {
            let both = request.options.links == LinkSet::ALL.without(LinkKind::Tunnel);
            let allowed = if both { "the links" } else { "the only link" };
            let refused = failure(ErrorCode::NoLink, Side::Link, format!("no data connection by {allowed} allowed"));
            let source = self.last.clone().map(Box::new);
            return Err(Failure { source, ..refused.for_reason(Reason::LinkNotAllowed) });
        }
        if !because.is_empty() {
            (self.note)(format!("no direct data connection ({because}): data goes through the control connection"));
        }
        let link = tunnel(self.key.id, ends, inbox, &self.note)?;
        Ok(Link { late: self.under_way(), ..link })
    }

    /// An address that was given and not used must not be passed over: it may have been the whole point.
    fn tell_unused_address(&self, offer: &DialOffer, ends: &mut Ends) {
        let Some(address) = &reach(self.request, offer.dialer).data_address else { return };
        let is_reverse = offer.kind == LinkKind::Reverse && self.request.options.links.allows(LinkKind::Direct);
        if is_reverse && ends.get(other(offer.dialer)).is_here() {
            let why = self.last.as_ref().map(|last| format!(" ({})", last.message())).unwrap_or_default();
            (self.note)(format!(
                "the data address {address} did not answer{why}: data connections are made the other way round"
            ));
        }
    }

    /// Dials that have not been answered.
    fn under_way(&self) -> Vec<(EndId, u64)> {
        let of = |offer: &DialOffer| offer.requests.iter().map(|&request| (offer.dialer, request)).collect::<Vec<_>>();
        self.offers.iter().flat_map(of).collect()
    }

    fn connect(&mut self, ends: &mut Ends, inbox: &mut Inbox) -> Result<Option<UncountedLink>, Failure> {
        let links = self.request.options.links;
        let (stagger, timeout) = (self.tuning.link_stagger, self.tuning.link_timeout);
        if !links.allows(LinkKind::Direct) || !links.allows(LinkKind::Reverse) {
            return self.wait(ends, inbox, self.start + timeout + stagger);
        }
        if let Some(link) = self.wait(ends, inbox, self.start + stagger)? {
            return Ok(Some(link));
        }
        let direct = ends.dialer();
        self.offer(ends, inbox, LinkKind::Reverse, other(direct))?;
        self.wait(ends, inbox, self.start + stagger + timeout)
    }

    /// Asks one side to listen and the other to dial.
    fn offer(&mut self, ends: &mut Ends, inbox: &mut Inbox, kind: LinkKind, dialer: EndId) -> Result<(), Failure> {
        let session = self.key.clone();
        let listen = listen(reach(self.request, other(dialer)), &self.key);
        let listener = ends.get(other(dialer));
        let Listening { port, pin } = match listener.request_or_refusal(inbox, &self.note, listen)? {
            Ok(Tell::Listening(listening)) => listening,
            Ok(_) => return Err(listener.unexpected()),
            Err(failure) => {
                self.last = Some(failure);
                return Ok(());
            }
        };
        let addresses = match addresses(self.request, ends, other(dialer), port) {
            Ok(addresses) => addresses,
            Err(failure) => {
                self.last = Some(failure);
                return Ok(());
            }
        };
        let numbers =
            if kind == LinkKind::Reverse { REVERSE_FIRST..=StreamId::TUNNEL.0 - 1 } else { 0..=REVERSE_FIRST - 1 };
        let mut offer =
            DialOffer { kind, dialer, requests: Vec::new(), addresses, pin, numbers, count: None, connected: false };
        let dial = offer.dial(session, self.tuning.link_timeout, true);
        offer.requests.push(ends.get(dialer).ask(Ask::Dial(dial))?);
        self.offers.push(offer);
        let known = self.known_round_trip(ends, dialer);
        known.map_or(Ok(()), |round_trip| self.connected(ends, self.offers.len() - 1, round_trip))
    }

    /// How far a node is to which a control connection has just been made from here: its data connections go to the
    /// same port, so they are known to get there.
    fn known_round_trip(&self, ends: &mut Ends, dialer: EndId) -> Option<Duration> {
        let elsewhere = reach(self.request, other(dialer)).data_address.is_some();
        if elsewhere || !ends.get(dialer).is_here() {
            return None;
        }
        match ends.get(other(dialer)).reached {
            Reached::Node(_, _, round_trip) => Some(round_trip),
            Reached::Here(..) | Reached::Ssh(_) => None,
        }
    }

    /// TCP has connected the first, or something before it to the same port: if that is a long way, the others need not
    /// wait until it is secured. Where nothing answers, one connection is tried and no more: a firewall should not take
    /// them for a scan.
    fn connected(&mut self, ends: &mut Ends, index: usize, round_trip: Duration) -> Result<(), Failure> {
        if round_trip < self.tuning.far_rtt || self.offers[index].count.is_some() {
            return Ok(());
        }
        let known = self.known.streams(self.offers[index].kind);
        let streams = known.unwrap_or_else(|| stream_count(self.request, self.plan, round_trip, ends));
        let session = self.key.clone();
        let offer = &mut self.offers[index];
        offer.count = Some(streams);
        let dialer = ends.get(offer.dialer);
        while offer.requests.len() < dials_at_once(dialer).min(streams.into()) {
            let dial = offer.dial(session.clone(), self.tuning.link_timeout, false);
            offer.requests.push(dialer.ask(Ask::Dial(dial))?);
        }
        Ok(())
    }

    /// Waits until one of the dials has worked, or all have failed, or time is up.
    fn wait(
        &mut self,
        ends: &mut Ends,
        inbox: &mut Inbox,
        deadline: Instant,
    ) -> Result<Option<UncountedLink>, Failure> {
        while !self.offers.is_empty() {
            let offers = &self.offers;
            let of = |end: EndId, request: u64| {
                let asked = |offer: &DialOffer| offer.requests.iter().position(|asked| *asked == request);
                let dialed = offers.iter().enumerate().filter(|(_, offer)| offer.dialer == end);
                dialed.filter_map(|(index, offer)| Some((index, asked(offer)?))).next()
            };
            let wanted = |incoming: &Incoming| of(incoming.end, incoming.request).is_some();
            let answer = match inbox.wait(Some(deadline), &self.note, &wanted) {
                Ok(answer) => answer,
                Err(failure) if failure.code == ErrorCode::Silence && Instant::now() >= deadline => {
                    self.last.get_or_insert(failure);
                    return Ok(None);
                }
                Err(failure) => return Err(failure),
            };
            let Some((index, request)) = of(answer.end, answer.request) else {
                continue;
            };
            let tell = answer.tell?;
            if let Tell::Connected(round_trip) = tell {
                if std::mem::replace(&mut self.offers[index].connected, true) {
                    return Err(ends.get(answer.end).unexpected());
                }
                self.connected(ends, index, round_trip)?;
                continue;
            }
            self.offers[index].requests.swap_remove(request);
            match tell {
                Tell::Dialed(dialed) => {
                    let offer = self.offers.swap_remove(index);
                    return Ok(Some(UncountedLink { key: self.key.clone(), offer, dialed, late: self.under_way() }));
                }
                Tell::Failed(why) => self.last = Some(why),
                _ => {}
            }
            self.offers.retain(|offer| !offer.requests.is_empty());
        }
        Ok(None)
    }
}

/// Connects two ends that are both here.
fn connect_ends(request: &CopyRequest, plan: &Plan, ends: &Ends) -> Result<Link, Failure> {
    let streams = stream_count(request, plan, Duration::ZERO, ends);
    (0..streams).try_for_each(|number| connect_here(ends, number))?;
    let streams_from = Known::default().origin(request, LinkKind::Memory);
    let (kind, address) = (LinkKind::Memory, String::new());
    let report = LinkReport { kind, address, from: None, streams, streams_from, cipher: "memory".into() };
    let link = Link::fixed(report, session_key(Encrypt::None)?);
    Ok(Link { here: (!plan.one_stream).then_some(streams..=REVERSE_FIRST - 1), ..link })
}

fn stream_count(request: &CopyRequest, plan: &Plan, round_trip: Duration, ends: &Ends) -> u16 {
    if plan.one_stream {
        return 1;
    }
    let processors = ends.processors().fewest();
    let chosen = request.options.congestion.as_ref().map(CongestionControl::name);
    let congestion = chosen.unwrap_or(&ends.source.welcome.congestion);
    request.options.streams.unwrap_or_else(|| pace::initial_streams(&ends.tuning, round_trip, congestion, processors))
}

/// How many dials an end may be asked for at once. One elsewhere still has to have room for what else is asked of it.
fn dials_at_once(dialer: &End) -> usize {
    if dialer.is_here() { limits::OWN_DIALS } else { limits::DIALS / 2 }
}

/// A link whose number of streams has not been settled.
struct UncountedLink {
    key: SessionKey,
    offer: DialOffer,
    dialed: Dialed,
    late: Vec<(EndId, u64)>,
}

impl UncountedLink {
    fn with_streams(self, request: &CopyRequest, plan: &Plan, known: &Known, ends: &mut Ends) -> Link {
        let (round_trip, kind) = (self.dialed.round_trip, self.offer.kind);
        let under_way = u16::try_from(self.offer.requests.len()).unwrap_or(u16::MAX);
        let guess = stream_count(request, plan, round_trip, ends);
        let counted = self.offer.count.or(known.streams(kind)).unwrap_or(guess);
        let streams = counted.max(under_way.saturating_add(1));
        // Another host may say anything: an address is one.
        let address = self.dialed.address.parse::<SocketAddr>().map(|address| address.to_string()).unwrap_or_default();
        let cipher = if self.dialed.cipher.is_empty() { "none".into() } else { self.dialed.cipher };
        let dialer = self.offer.dialer;
        let is_here = matches!(ends.get(dialer).reached, Reached::Here(..));
        let from = reach(request, dialer).local_address.filter(|_| is_here);
        let streams_from = known.origin(request, kind);
        let report = LinkReport { kind, address, from, streams, streams_from, cipher };
        let at_once = dials_at_once(ends.get(dialer));
        // The address that worked first: the others have shown what they are worth.
        let addresses = if report.address.is_empty() { self.offer.addresses } else { vec![report.address.clone()] };
        Link {
            report,
            key: self.key,
            more: Some(MoreConnections {
                dialer,
                addresses,
                pin: self.offer.pin,
                numbers: self.offer.numbers,
                at_once,
            }),
            here: None,
            dials: self.offer.requests,
            late: self.late,
            round_trip,
            kept: known.start(kind, guess),
        }
    }
}

/// Where a listener may be reached, best first; why nowhere. What the listener says of itself is not dialled: it would
/// aim the dialer at whatever that can reach.
fn addresses(request: &CopyRequest, ends: &mut Ends, listener: EndId, told_port: u16) -> Result<Vec<String>, Failure> {
    let dialer = ends.get(other(listener));
    let reach = reach(request, listener);
    let dialer_is_here = dialer.is_here();
    // Seen from the other side, this host is where its control connection came from. It names the address to itself.
    let peer_sees = if ends.get(listener).is_here() { ends.get(other(listener)).seen_address() } else { None };
    let end = ends.get(listener);
    let port = match end.reached {
        Reached::Node(address, ..) => address.port(),
        _ => listening_port(reach, end, told_port)?,
    };
    let with_port = |host: &str| format!("{}:{port}", bracketed(host));
    let mut addresses = match (&end.reached, &reach.data_address) {
        // An end here that listens on one address says which.
        (Reached::Here(..), _) if !end.welcome.local_address.is_empty() => vec![with_port(&end.welcome.local_address)],
        (Reached::Here(..), _) => peer_sees.iter().map(|seen| with_port(seen)).collect(),
        (_, Some(address)) => return Ok(vec![with_port(address)]),
        (Reached::Node(address, ..), None) => vec![with_port(&address.ip().to_canonical().to_string())],
        (Reached::Ssh(_), None) => end.places(port),
    };
    // Where another host dials, the name that was typed may lead there in its own way: behind a jump
    // host, in the same cluster.
    if !dialer_is_here && !end.is_here() {
        let typed = end.name.rsplit('@').next().unwrap_or_default();
        let typed = if matches!(end.reached, Reached::Node(..)) { typed.into() } else { format!("{typed}:{port}") };
        if !addresses.contains(&typed) {
            addresses.push(typed);
        }
    }
    if addresses.is_empty() {
        let why = format!("no address is known here that {} must have", end.name);
        return Err(failure(ErrorCode::ConnectFailed, Side::Link, why).for_reason(Reason::NoAddress));
    }
    Ok(addresses)
}

/// The port that an agent which is no node listens on for this session. One that the kernel or a range chose
/// is never a service's own.
fn listening_port(reach: &Reach, end: &End, told: u16) -> Result<u16, Failure> {
    let (low, high) = reach.ports.unwrap_or((FIRST_FREE_PORT, u16::MAX));
    port_within(told, low, high).ok_or_else(|| {
        let message = format!("{}: listens on port {told}, and was to listen on one of {low}-{high}", end.name);
        failure(ErrorCode::ProtocolViolation, Side::Link, message)
    })
}

fn port_within(told: u16, low: u16, high: u16) -> Option<u16> {
    Some(told).filter(|port| (low..=high).contains(port))
}

/// A host as it stands before a port.
pub fn bracketed(host: &str) -> String {
    if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_string() }
}

/// One stream inside the control connections, which are encrypted already.
fn tunnel(id: [u8; 16], ends: &mut Ends, inbox: &mut Inbox, note: &Note) -> Result<Link, Failure> {
    // The receiver has begun already, with this session; the secret is another, of which no listener knows.
    let key = SessionKey { id, ..session_key(Encrypt::None)? };
    let ask = |dials| Ask::Tunnel(Tunnel { session: key.clone(), channel: Channel::FIRST_TUNNEL, dials });
    let answering = ends.destination.ask(ask(false))?;
    // Requests are begun in order: an answer to one that asks for nothing says that this end of the tunnel is there.
    // Bytes that came before it would be lost.
    ends.destination.request(inbox, note, Ask::Inspect(Vec::new()))?;
    // One that was refused has been by now: nobody would answer the other end.
    let is_awaited = match ends.destination.answer_by(Some(Instant::now()), inbox, note, answering) {
        Err(why) if why.code != ErrorCode::Silence => return Err(why),
        answered => answered.is_err(),
    };
    let dialing = ends.source.ask(ask(true))?;
    let deadline = Some(Instant::now() + ends.tuning.silence);
    ends.source.answer_by(deadline, inbox, note, dialing)?;
    if is_awaited {
        ends.destination.answer_by(deadline, inbox, note, answering)?;
    }
    let carrier = [&ends.source, &ends.destination].map(|end| match end.reached {
        Reached::Here(..) => None,
        Reached::Ssh(_) => Some("ssh"),
        Reached::Node(..) => Some("TLS"),
    });
    let cipher = format!("inside {}", carrier.into_iter().flatten().collect::<Vec<_>>().join(" and "));
    let (kind, address, streams_from) = (LinkKind::Tunnel, String::new(), StreamsFrom::Path);
    let report = LinkReport { kind, address, from: None, streams: 1, streams_from, cipher };
    Ok(Link::fixed(report, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_outside_the_range_is_not_dialled() {
        assert_eq!(port_within(50_000, 1024, u16::MAX), Some(50_000));
        for told in [0, 22, 1023] {
            assert_eq!(port_within(told, FIRST_FREE_PORT, u16::MAX), None, "{told}");
        }
        assert_eq!((port_within(80, 80, 90), port_within(91, 80, 90)), (Some(80), None));
    }
}
