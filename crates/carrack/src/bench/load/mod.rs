//! A crowd of clients at one server: begun together, from this host or from many, and every file looked at afterwards.

pub mod count;
pub mod held;
mod node;
mod observe;
pub mod page;
mod parts;
pub mod plan;
pub mod rows;
mod server;
pub mod table;
mod thin;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use carrack_core::credential::{Credential, Token};
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::{Location, NodeAddress, SshHost};
use carrack_core::request::{EndOptions, LinkKind, LinkSet, Reach};
use carrack_core::tuning::RETRIES;
use carrack_engine::Context;
use carrack_engine::secrets::read_token;
use carrack_measure::facts;
use carrack_measure::result::{Measurement, Warning};
use carrack_measure::series::Series;
use data_encoding::HEXLOWER;

use self::count::{Content, Judged, SeenFile};
use self::node::NodeWatch;
use self::observe::HostObserver;
use self::parts::{CrowdPart, Note, Parts, Seat, nobody};
use self::plan::{LoadDirection, different, seats};
use self::rows::{Crowd, CrowdWatched};
use self::server::LoadServer;
pub use self::server::OtherServer;
use self::thin::Thin;
use super::ladder::TellRow;
use super::numbers;
use crate::crowd::order::{Carrier, ClientWay, LoadOrder, put_name, set_name};
use crate::crowd::told::{Attempt, CarryOutcome, FileCarried, PartTold};
use crate::far_scratch::{FarScratch, LostHosts};
use crate::output::format;

/// What to do.
pub struct LoadRequest {
    /// The server, as it was typed.
    pub target: String,
    /// How it is spoken to.
    pub server: LoadServerKind,
    /// Clients in all.
    pub clients: u32,
    /// Files of each.
    pub files: u32,
    /// Bytes of each file.
    pub size: u64,
    /// Which way they go.
    pub direction: LoadDirection,
    /// Bytes of different files at each sending host, and at the server.
    pub different: u64,
    /// Hosts of the clients; this one where none is named.
    pub hosts: Vec<SshHost>,
    /// From the common start to giving up.
    pub timeout: Duration,
    /// Attempts of each file behind the first; what is usual where none is said.
    pub retries: Option<u32>,
    /// Data connections of each copy.
    pub streams: Option<u16>,
    /// The one kind of link that may be used.
    pub link: Option<LinkKind>,
    /// How hosts are reached, and the node.
    pub reach: Reach,
    /// What the node is shown.
    pub credential: Credential,
    /// The directory at the clients' hosts in which their files are.
    pub scratch: Vec<u8>,
    /// Other hosts that are watched.
    pub observe: Vec<SshHost>,
}

/// How a server is spoken to.
pub enum LoadServerKind {
    /// By this program: a directory of a node.
    Node(Location),
    /// By another one.
    Other(OtherServer),
}

/// A part that is not done so long after the end of the time is lost.
const GRACE: Duration = Duration::from_secs(30);
/// How often it is told how far all are.
const NOTES_EVERY: Duration = Duration::from_secs(10);
/// A client's progress is told several times a second.
const CURVE_SECONDS: f64 = 0.5;

/// Runs the crowd. The measurement, and whether every file is whole.
///
/// # Errors
/// Why it could not begin, or was ended. Whatever it ends with, nothing stays at a node or at a host.
pub fn measure(
    request: &LoadRequest,
    context: &Context,
    tell: &mut dyn TellRow,
) -> Result<(Measurement, bool), Failure> {
    let (began, started) = (Instant::now(), carrack_sys::host::clock_seconds());
    let end =
        EndOptions { credential: request.credential.clone(), reach: request.reach.clone(), ..EndOptions::default() };
    let server = match &request.server {
        LoadServerKind::Node(place) => LoadServer::at_node(place, &end, context, &mut |text| tell.note(text))?,
        LoadServerKind::Other(other) => LoadServer::Other { server: other.clone(), end: end.clone() },
    };
    let local = Location::Local(request.scratch.clone());
    let own =
        FarScratch::create(&local, "crowd", 0, &EndOptions::default(), context, &LostHosts::default(), &mut |text| {
            tell.note(text)
        })?;
    let mut run = LoadRun { request, context, end, server, own, prefix: prefix(request)?, warnings: Vec::new() };
    let set = run.fill()?;
    let (parts, expected) = run.begin(tell)?;
    let crowd = run.run(parts, expected, set, tell)?;
    let rows = rows::of(&crowd, request, held::rows(&crowd));
    for warning in &run.warnings {
        tell.warning(warning);
    }
    rows.iter().for_each(|row| tell.row(row));
    let is_whole = crowd.files.iter().all(|file| file.fate == count::Fate::Whole);
    let measured = Measurement {
        kind: "load".to_owned(),
        target: request.target.clone(),
        started,
        elapsed: began.elapsed(),
        settings: settings(request),
        facts: facts::host().0,
        warnings: run.warnings,
        rows,
    };
    Ok((measured, is_whole))
}

/// What names at another server begin with: those of an earlier crowd may still be there.
fn prefix(request: &LoadRequest) -> Result<String, Failure> {
    if matches!(request.server, LoadServerKind::Node(_)) {
        return Ok(String::new());
    }
    let mut bytes = [0; 4];
    carrack_sys::host::random_bytes(&mut bytes)
        .map_err(|error| Failure::new(ErrorCode::Internal, Side::Command, error.to_string()))?;
    Ok(format!("load-{}-", HEXLOWER.encode(&bytes)))
}

fn settings(request: &LoadRequest) -> Vec<(String, String)> {
    let by = match &request.server {
        LoadServerKind::Node(_) => "carrack".to_owned(),
        LoadServerKind::Other(other) => {
            [&other.put, &other.get].into_iter().flatten().cloned().collect::<Vec<_>>().join("; ")
        }
    };
    let hosts: Vec<String> = request.hosts.iter().map(ToString::to_string).collect();
    [
        ("clients", request.clients.to_string()),
        ("files", request.files.to_string()),
        ("size_bytes", request.size.to_string()),
        ("direction", request.direction.name().to_owned()),
        ("by", by),
        ("from", if hosts.is_empty() { "this host".to_owned() } else { hosts.join(" ") }),
        ("timeout_seconds", request.timeout.as_secs().to_string()),
        ("retries", retries(request).to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// A copy makes many attempts by itself; another program is called once, as somebody calls it who types its name.
fn retries(request: &LoadRequest) -> u32 {
    request.retries.unwrap_or(if matches!(request.server, LoadServerKind::Node(_)) { RETRIES } else { 0 })
}

/// A crowd under way.
struct LoadRun<'a> {
    request: &'a LoadRequest,
    context: &'a Context,
    end: EndOptions,
    server: LoadServer,
    /// A directory of this command's own.
    own: FarScratch,
    prefix: String,
    warnings: Vec<Warning>,
}

impl LoadRun<'_> {
    fn warn(&mut self, word: &str, text: String) {
        self.warnings.push(Warning { word: word.to_owned(), text });
    }

    /// Puts what is fetched to the server.
    fn fill(&self) -> Result<Vec<[u8; 32]>, Failure> {
        let count = self.set_count();
        self.server.fill(count, self.request.size, &self.prefix, &self.own, self.context)
    }

    fn set_count(&self) -> u32 {
        let request = self.request;
        let uses = u64::from(request.clients) * u64::from(request.files);
        if request.direction.has(ClientWay::Get) { different(request.different, request.size, uses) } else { 0 }
    }

    fn carrier(&self) -> Result<Carrier, Failure> {
        let request = self.request;
        match &self.server {
            LoadServer::Node { directory, .. } => {
                let (Some(node), Some(path)) = (directory.node(), directory.path()) else {
                    return Err(Failure::new(ErrorCode::Internal, Side::Command, "a node's directory is on no node"));
                };
                let (node, token) = self.shown(node)?;
                let (streams, link) = (request.streams, request.link);
                Ok(Carrier::Carrack { node, directory: path.to_vec(), token, streams, link })
            }
            LoadServer::Other { server, .. } => {
                Ok(Carrier::Program { put: server.put.clone(), get: server.get.clone(), node: server.node.clone() })
            }
        }
    }

    /// The node with its key, which this host knows by now, and what it is shown.
    fn shown(&self, node: &NodeAddress) -> Result<(NodeAddress, Option<Token>), Failure> {
        let typed = node.pin.is_some();
        let (pin, was_pinned) = match node.pin {
            Some(pin) => (Some(pin), true),
            None => {
                let known = self.context.keys.expected(node)?;
                (known.pin, known.was_pinned)
            }
        };
        let node = NodeAddress { pin, ..node.clone() };
        let token = match &self.request.credential {
            Credential::None => None,
            Credential::File(path) => Some(read_token(Path::new(OsStr::from_bytes(path)))?),
            Credential::Value(token) => Some(token.clone()),
            Credential::Source(source) => source.token(&node, was_pinned || typed)?.token,
        };
        Ok((node, token))
    }

    /// Begins the parts, and waits until their files are made. Those that are not there are named and left out; none of
    /// their clients counts.
    fn begin(&mut self, tell: &mut dyn TellRow) -> Result<(Parts, BTreeSet<(u32, u32)>), Failure> {
        let carrier = self.carrier()?;
        let (request, set) = (self.request, self.set_count());
        let seat = |(host, clients): (Option<SshHost>, Vec<_>)| {
            let uses = clients.len() as u64 * u64::from(request.files);
            let order = LoadOrder {
                clients,
                files: request.files,
                size: request.size,
                sources: different(request.different, request.size, uses),
                set,
                prefix: self.prefix.clone(),
                carrier: carrier.clone(),
                retries: retries(request),
                timeout: request.timeout,
                scratch: request.scratch.clone(),
                connect_timeout: request.reach.connect_timeout,
                // The address is one of this host.
                local_address: request.reach.local_address.filter(|_| host.is_none()),
            };
            Seat { host, order }
        };
        let seats = seats(request.clients, request.direction, &request.hosts).into_iter().map(seat).collect();
        let (teller, notes) = mpsc::channel();
        let note: Note = Arc::new(move |text| drop(teller.send(text)));
        let mut parts = Parts::begin(seats, &request.reach, self.context, &note);
        notes.try_iter().for_each(|text| tell.note(&text));
        self.context.stop.check()?;
        parts.ready(&mut |text| tell.note(text))?;
        let missing: Vec<(String, usize, String)> = parts
            .all
            .iter()
            .filter_map(|part| Some((part.host.clone(), part.order.clients.len(), part.lost.clone()?)))
            .collect();
        if missing.len() == parts.all.len() {
            return Err(nobody(&missing[0].0, &missing[0].2));
        }
        for (host, clients, why) in missing {
            let what = if clients == 1 { "1 client is".to_owned() } else { format!("{clients} clients are") };
            self.warn("unreachable", format!("{host} takes no part, {what} left out: {why}"));
        }
        let there = parts.all.iter().filter(|part| part.lost.is_none());
        let each = there.flat_map(|part| part.order.clients.iter().map(|client| client.number));
        let expected = each.flat_map(|client| (0..request.files).map(move |file| (client, file))).collect();
        Ok((parts, expected))
    }

    /// Runs the clients, and judges every file.
    fn run(
        &mut self,
        mut parts: Parts,
        expected: BTreeSet<(u32, u32)>,
        set: Vec<[u8; 32]>,
        tell: &mut dyn TellRow,
    ) -> Result<Crowd, Failure> {
        let request = self.request;
        let watch = match &self.server {
            LoadServer::Node { directory, .. } => {
                let links = request.link.map_or(LinkSet::ALL, LinkSet::only);
                Some(NodeWatch::start(directory, &self.end, links, self.context))
            }
            LoadServer::Other { .. } => None,
        };
        let observers = self.observers();
        let begin = parts.start()?;
        let mut heard = CrowdHeard::new(parts.all.len(), !matches!(self.server, LoadServer::Node { .. }), request.size);
        let clients = parts.all.iter().filter(|part| part.lost.is_none()).map(|part| part.order.clients.len());
        heard.active.add(0.0, clients.sum::<usize>() as f64);
        let last = begin + request.timeout.min(Duration::from_secs(366 * 24 * 3600)) + GRACE;
        let mut next = Instant::now() + NOTES_EVERY;
        parts.listen(
            &mut |part, at, when, told| {
                let since = when.saturating_duration_since(begin);
                heard.take(part, at, since, told);
                if when >= next {
                    next = when + NOTES_EVERY;
                    tell.note(&heard.progress(since, expected.len()));
                }
            },
            &mut |parts| Instant::now() >= last || parts.iter().all(|part| part.has_ended),
        )?;
        parts.lose_unended("it was not done when the time was over");
        heard.active.end(begin.elapsed().as_secs_f64(), 0.0);
        let node = watch.map(NodeWatch::finish);
        let observed: Vec<_> =
            observers.into_iter().map(|observer| (observer.host.clone(), observer.finish())).collect();
        parts.listen(
            &mut |part, at, when, told| heard.take(part, at, when.saturating_duration_since(begin), told),
            &mut |parts| parts.iter().all(|part| part.is_over),
        )?;
        heard.notes.drain(..).for_each(|note| tell.note(&note));
        let started =
            |part: &&CrowdPart| part.order.clients.iter().any(|client| expected.contains(&(client.number, 0)));
        for part in parts.all.iter().filter(started) {
            if let Some(why) = &part.lost {
                self.warnings.push(Warning { word: "host-lost".to_owned(), text: format!("{}: {why}", part.host) });
            }
        }
        let watched = self.watched(node, observed, begin);
        let files = self.judge(&parts.all, &expected, &set, &mut heard)?;
        parts.end();
        self.clear(&expected, tell);
        let busy = heard.busy.iter().zip(&parts.all).map(|(busy, part)| (part.host.clone(), busy.clone())).collect();
        Ok(Crowd { files, rates: heard.rates, active: heard.active, busy, watched })
    }

    fn observers(&mut self) -> Vec<HostObserver> {
        let mut observers = Vec::new();
        for host in &self.request.observe {
            match HostObserver::start(host, &self.request.reach.rsh) {
                Ok(observer) => observers.push(observer),
                Err(why) => self.warn("unobserved", format!("{host} was not observed: {why}")),
            }
        }
        observers
    }

    /// What was seen of the node and of other hosts while the crowd was there.
    fn watched(
        &mut self,
        node: Option<node::NodeSeen>,
        observed: Vec<(SshHost, observe::HostSeen)>,
        begin: Instant,
    ) -> CrowdWatched {
        let mut watched = CrowdWatched { begin, node: Vec::new(), hosts: Vec::new() };
        if let Some((glances, why)) = node {
            match why {
                Some(why) => self.warn("node-unknown", format!("how busy the node was is not known: {why}")),
                None if glances.is_empty() => {
                    self.warn(
                        "node-unknown",
                        "how busy the node was is not known: it was too short to tell".to_owned(),
                    );
                }
                None => {}
            }
            watched.node = glances;
        }
        for (host, seen) in observed {
            match seen {
                Ok(seen) => watched.hosts.push((host.to_string(), seen)),
                Err(why) => self.warn("unobserved", format!("{host} was not observed: {why}")),
            }
        }
        watched
    }

    /// Looks at every file that should be there. What a client fetched, its own host has looked at.
    fn judge(
        &self,
        parts: &[CrowdPart],
        expected: &BTreeSet<(u32, u32)>,
        set: &[[u8; 32]],
        heard: &mut CrowdHeard,
    ) -> Result<Vec<Judged>, Failure> {
        let size = self.request.size;
        let owners: BTreeMap<u32, &CrowdPart> =
            parts.iter().flat_map(|part| part.order.clients.iter().map(move |client| (client.number, part))).collect();
        let way = |client: u32| self.request.direction.of(client);
        let name = |(client, file): &(u32, u32)| put_name(&self.prefix, *client, *file);
        let names: Vec<String> =
            expected.iter().filter(|(client, _)| way(*client) == ClientWay::Put).map(name).collect();
        let mut seen = match names.is_empty() {
            true => BTreeMap::new(),
            false => self.server.look(&names, &self.own, self.context)?,
        };
        let mut files = Vec::new();
        for &(client, file) in expected {
            let Some(part) = owners.get(&client) else { continue };
            let carried =
                heard.carried.remove(&(client, file)).unwrap_or_else(|| gone(client, file, way(client), part));
            let (digests, found) = match way(client) {
                ClientWay::Put => (&*part.digests, seen.remove(&name(&(client, file))).unwrap_or(SeenFile::Nothing)),
                ClientWay::Get => (set, heard.found.remove(&(client, file)).map_or(SeenFile::Nothing, SeenFile::File)),
            };
            let digest = digests.get(carried.source as usize).copied().unwrap_or_default();
            files.push(Judged::new(carried, &part.host, &(size, digest), found));
        }
        Ok(files)
    }

    /// Removes what the crowd put to another server, or says that it is there.
    fn clear(&self, expected: &BTreeSet<(u32, u32)>, tell: &mut dyn TellRow) {
        let sent = expected.iter().filter(|(client, _)| self.request.direction.of(*client) == ClientWay::Put);
        let mut names: Vec<String> = sent.map(|(client, file)| put_name(&self.prefix, *client, *file)).collect();
        names.extend((0..self.set_count()).map(|number| set_name(&self.prefix, number)));
        if self.server.clear(&names, self.context) {
            tell.note(&format!("files whose names begin with {} are left at the server", self.prefix));
        }
    }
}

/// A file of whose client nothing more was heard.
fn gone(client: u32, file: u32, way: ClientWay, part: &CrowdPart) -> FileCarried {
    let why = part.lost.as_deref().unwrap_or("its client told nothing of it");
    let attempts = vec![Attempt::new(CarryOutcome::Lost, &format!("{}: {why}", part.host))];
    let place = part.order.clients.iter().position(|one| one.number == client).unwrap_or(0);
    let source =
        if way == ClientWay::Put { part.order.source_of(place, file) } else { part.order.set_of(client, file) };
    let (began, ended) = (Duration::ZERO, Duration::ZERO);
    FileCarried { client, file, way, source, began, ended, attempts, streams_lost: 0 }
}

/// What the parts have told so far.
struct CrowdHeard {
    /// The bytes are told with each file alone.
    by_file: bool,
    size: u64,
    rates: [Series; 2],
    carried: BTreeMap<(u32, u32), FileCarried>,
    found: BTreeMap<(u32, u32), Content>,
    /// Clients at work of each part, and of all over time.
    at_work: Vec<u32>,
    active: Thin,
    /// How busy the host of each part was.
    busy: Vec<Thin>,
    notes: Vec<String>,
}

impl CrowdHeard {
    fn new(parts: usize, by_file: bool, size: u64) -> Self {
        Self {
            by_file,
            size,
            rates: Default::default(),
            carried: BTreeMap::new(),
            found: BTreeMap::new(),
            at_work: vec![0; parts],
            active: Thin::new(CURVE_SECONDS),
            busy: vec![Thin::new(CURVE_SECONDS); parts],
            notes: Vec::new(),
        }
    }

    /// Takes what a part says; `when` is since the common start, by this host's clock.
    fn take(&mut self, part: &CrowdPart, at: usize, when: Duration, told: PartTold) {
        let is_its_own = |client: u32, file: u32| {
            file < part.order.files && part.order.clients.iter().any(|own| own.number == client)
        };
        match told {
            PartTold::Progress { at: since, bytes, active, busy } => {
                for (rate, bytes) in self.rates.iter_mut().zip(bytes).filter(|_| !self.by_file) {
                    // Another host's clock may run as it likes: nothing is later than now.
                    rate.add(since.min(when), bytes as f64);
                }
                self.at_work[at] = active.min(u32::try_from(part.order.clients.len()).unwrap_or(u32::MAX));
                if !when.is_zero() {
                    self.active.add(when.as_secs_f64(), self.at_work.iter().map(|one| f64::from(*one)).sum());
                    let busy = busy.filter(|busy| (0.0..=1.0).contains(busy));
                    busy.into_iter().for_each(|busy| self.busy[at].add(when.as_secs_f64(), busy));
                }
            }
            PartTold::FileCarried(mut carried) if is_its_own(carried.client, carried.file) => {
                carried.ended = carried.ended.min(when);
                carried.began = carried.began.min(carried.ended);
                if self.by_file && carried.said_done() {
                    self.spread(&carried);
                }
                self.carried.entry((carried.client, carried.file)).or_insert(*carried);
            }
            PartTold::FileFound(found) if is_its_own(found.client, found.file) => {
                self.found.insert((found.client, found.file), found.content);
            }
            PartTold::Note(text) if self.notes.len() < 100 => self.notes.push(format!("{}: {text}", part.host)),
            _ => {}
        }
    }

    /// How far all are, in a line.
    fn progress(&self, since: Duration, files: usize) -> String {
        let bytes: f64 = self.rates.iter().flat_map(|rate| rate.amounts()).sum();
        format!(
            "after {} s {} of {} files and {} are told of, {} clients at work",
            since.as_secs(),
            format::count(self.carried.len() as u64),
            format::count(files as u64),
            numbers::amount(bytes),
            self.at_work.iter().sum::<u32>()
        )
    }

    /// The bytes of a file that another program carried, evenly over its time.
    fn spread(&mut self, carried: &FileCarried) {
        const PIECES: u32 = 20;
        let (time, rate) = (carried.ended - carried.began, &mut self.rates[carried.way as usize]);
        for piece in 0..PIECES {
            let at = carried.began + time * (2 * piece + 1) / (2 * PIECES);
            rate.add(at, self.size as f64 / f64::from(PIECES));
        }
    }
}
