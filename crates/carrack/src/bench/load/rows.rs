//! A crowd as rows: one for each way, one for each client, one for each file of which something is to be said, and one
//! for each host that was watched.

use std::time::Instant;

use carrack_measure::result::{Curve, Row, label, value};
use carrack_measure::series::Series;

use super::LoadRequest;
use super::count::{ClientDone, Fate, Judged, LoadCounts, clients, jain, times};
use super::node::NodeGlance;
use super::observe::{HostGlance, busiest, means};
use super::thin::Thin;
use crate::crowd::order::ClientWay;

/// The condition of the row of a way: how many clients there were.
pub const CLIENTS: &str = "clients";
/// The name of the row of one client, and its condition.
pub const CLIENT: &str = "client";
/// The name of the row of a file, and its condition.
pub const FILE: &str = "file";
/// The condition that says what was found of a file.
pub const FATE: &str = "fate";
/// The name of the row of a node, and of the row of another host.
pub const NODE: &str = "node";
pub const OBSERVED: &str = "observed";
/// The name of the row that says what was fullest of all that was watched, and of the row that says when the rate fell.
pub const LIMIT: &str = "limit";
pub const FALL: &str = "fall";
/// The condition that names a host.
pub const HOST: &str = "host";
/// Jain's index over the rates of the clients.
pub const JAIN: &str = "jain";
/// Processors that the node's process kept busy, in the mean.
pub const NODE_PROCESSORS: &str = "node_processors";
/// Share of a host's processors that were at work, in the mean.
pub const BUSY: &str = "busy";
/// Bytes a second.
pub const DISK_READ: &str = "disk_read_bytes_per_second";
pub const DISK_WRITTEN: &str = "disk_written_bytes_per_second";
pub const RECEIVED: &str = "received_bytes_per_second";
pub const SENT: &str = "sent_bytes_per_second";
/// The condition that names the interface of these.
pub const INTERFACE: &str = "interface";
/// Processors that the processes of a name kept busy, in the mean: the name follows.
pub const PROGRAM: &str = "program_processors.";

/// A host whose processors are busy for this share of the time limits what is measured.
const BUSY_SHARE: f64 = 0.95;
/// Programs of a host that are told of.
const PROGRAMS_SHOWN: usize = 3;

/// What came of a crowd.
pub struct Crowd {
    /// Every file.
    pub files: Vec<Judged>,
    /// Bytes over time: sent, and fetched.
    pub rates: [Series; 2],
    /// Clients at work over time.
    pub active: Thin,
    /// How busy the hosts of the clients were.
    pub busy: Vec<(String, Thin)>,
    /// What was watched besides.
    pub watched: CrowdWatched,
}

/// What was seen of other hosts.
pub struct CrowdWatched {
    /// The common start.
    pub begin: Instant,
    /// The node.
    pub node: Vec<NodeGlance>,
    /// Hosts that were observed.
    pub hosts: Vec<(String, Vec<(Instant, HostGlance)>)>,
}

/// All rows, in the order in which they are shown. `held` are those of what held the crowd back.
pub fn of(crowd: &Crowd, request: &LoadRequest, held: Vec<Row>) -> Vec<Row> {
    let ways: Vec<ClientWay> = ClientWay::ALL.iter().copied().filter(|way| request.direction.has(*way)).collect();
    let node = node_row(&crowd.watched);
    let mut rows: Vec<Row> = ways.iter().map(|way| way_row(crowd, request, *way, node.as_ref())).collect();
    rows.extend(crowd.busy.iter().filter_map(|(host, busy)| client_host_row(host, busy)));
    rows.extend(node);
    rows.extend(crowd.watched.hosts.iter().map(|(host, seen)| observed_row(host, seen, crowd.watched.begin)));
    rows.extend(held);
    let each = ways.iter().flat_map(|way| clients(&crowd.files, *way, request.size));
    rows.extend(each.map(|client| client_row(&client)));
    rows.extend(crowd.files.iter().filter(|file| !file.is_plain()).map(|file| file_row(file, request.size)));
    rows
}

fn conditions<const N: usize>(pairs: [(&str, String); N]) -> Vec<(String, String)> {
    pairs.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// Whether a row is about a crowd as a whole, or its node.
pub fn is_of_crowd(row: &Row) -> bool {
    matches!(row.name.as_str(), NODE | LIMIT | FALL)
}

fn way_row(crowd: &Crowd, request: &LoadRequest, way: ClientWay, node: Option<&Row>) -> Row {
    let own: Vec<&Judged> = crowd.files.iter().filter(|file| file.carried.way == way).collect();
    let counts = LoadCounts::of(own.iter().copied());
    let clients = clients(&crowd.files, way, request.size);
    let mut row = Row { name: way.name().to_owned(), ..Row::default() };
    row.conditions = conditions([
        (CLIENTS, clients.len().to_string()),
        ("files", request.files.to_string()),
        ("size_bytes", request.size.to_string()),
    ]);
    let bytes = counts.whole.saturating_mul(request.size) as f64;
    let seconds = own.iter().map(|file| file.carried.ended).max().unwrap_or_default().as_secs_f64();
    row.put(value::BYTES, bytes);
    row.put(value::SECONDS, seconds);
    row.put(value::BYTES_PER_SECOND, bytes / seconds);
    // Who has given up is not done.
    let done = clients.iter().filter(|client| client.whole == u64::from(request.files));
    let first = done.map(|client| client.time.as_secs_f64()).reduce(f64::min);
    row.put(value::FIRST_DONE_SECONDS, first.unwrap_or(f64::NAN));
    let rates: Vec<f64> = clients.iter().map(ClientDone::rate).collect();
    row.put(JAIN, jain(&rates));
    row.put("slowest_client_bytes_per_second", rates.iter().copied().reduce(f64::min).unwrap_or(f64::NAN));
    row.put("fastest_client_bytes_per_second", rates.iter().copied().reduce(f64::max).unwrap_or(f64::NAN));
    counts.named().into_iter().for_each(|(name, count)| row.put(name, count as f64));
    let used = node.and_then(|node| node.value(NODE_PROCESSORS));
    row.put(NODE_PROCESSORS, used.unwrap_or(f64::NAN));
    let times = times(&crowd.files, way);
    row.latency = (times.count() > 0).then_some(times);
    let series = &crowd.rates[way as usize];
    row.series = (!series.amounts().is_empty()).then(|| series.clone());
    row.curves = vec![Curve {
        name: "clients at work".to_owned(),
        unit: "count".to_owned(),
        points: crowd.active.points().to_vec(),
    }];
    let is_busy = |(_, busy): &(String, Thin)| busy.mean_and_most().is_some_and(|(mean, _)| mean >= BUSY_SHARE);
    if !crowd.busy.is_empty() && crowd.busy.iter().all(is_busy) {
        row.labels.push(label::PROCESSOR.to_owned());
    }
    row
}

/// How busy a host of clients was: where it is busy all the time, the crowd and not the server is measured.
fn client_host_row(host: &str, busy: &Thin) -> Option<Row> {
    let (mean, most) = busy.mean_and_most()?;
    let mut row = Row { name: "clients' host".to_owned(), ..Row::default() };
    row.conditions = conditions([(HOST, host.to_owned())]);
    row.put(BUSY, mean);
    row.put("busy_most", most);
    row.curves =
        vec![Curve { name: "processors".to_owned(), unit: "share".to_owned(), points: busy.points().to_vec() }];
    Some(row)
}

fn seconds(begin: Instant, at: Instant) -> f64 {
    at.saturating_duration_since(begin).as_secs_f64()
}

fn node_row(watched: &CrowdWatched) -> Option<Row> {
    // What was told before the start is of another time.
    let own: Vec<&NodeGlance> = watched.node.iter().filter(|glance| glance.at > watched.begin).collect();
    let curve = |name: &str, unit: &str, of: &dyn Fn(&NodeGlance) -> f64| {
        let mut thin = Thin::new(0.0);
        own.iter().for_each(|glance| thin.add(seconds(watched.begin, glance.at), of(glance)));
        let all = thin.mean_and_most();
        (Curve { name: name.to_owned(), unit: unit.to_owned(), points: thin.points().to_vec() }, all)
    };
    let (processors, used) = curve("node's processors", "processors", &|glance| glance.processors);
    let (busiest, most) = curve("busiest processor", "share", &|glance| glance.busiest);
    let (busy, all) = curve("all processors", "share", &|glance| glance.busy);
    let (mean, peak) = used?;
    let mut row = Row { name: NODE.to_owned(), ..Row::default() };
    row.put(NODE_PROCESSORS, mean);
    row.put("node_processors_most", peak);
    row.put(value::BUSIEST_PROCESSOR, most.map_or(f64::NAN, |(mean, _)| mean));
    row.put(BUSY, all.map_or(f64::NAN, |(mean, _)| mean));
    row.curves = vec![processors, busiest, busy];
    Some(row)
}

/// The value of a row, and the name, the unit and the points of the curve that it is the mean of.
type HostCurve<'a> = (&'a str, &'a str, &'a str, &'a dyn Fn(&HostGlance) -> f64);

fn observed_row(host: &str, seen: &[(Instant, HostGlance)], begin: Instant) -> Row {
    let seen: Vec<(Instant, HostGlance)> = seen.iter().filter(|(at, _)| *at > begin).cloned().collect();
    let interface = busiest(&seen);
    let rate_of = |glance: &HostGlance, way: usize| {
        let (name, _) = interface.as_ref()?;
        glance.interfaces.get(name).map(|rates| rates[way])
    };
    let mut row = Row { name: OBSERVED.to_owned(), ..Row::default() };
    row.conditions = conditions([(HOST, host.to_owned())]);
    row.conditions.extend(interface.iter().map(|(name, _)| (INTERFACE.to_owned(), name.clone())));
    let all: [HostCurve<'_>; 5] = [
        (BUSY, "processors", "share", &|glance| glance.busy),
        (DISK_READ, "disks read", "bytes_per_second", &|glance| glance.disk[0]),
        (DISK_WRITTEN, "disks written", "bytes_per_second", &|glance| glance.disk[1]),
        (RECEIVED, "received", "bytes_per_second", &|glance| rate_of(glance, 0).unwrap_or(f64::NAN)),
        (SENT, "sent", "bytes_per_second", &|glance| rate_of(glance, 1).unwrap_or(f64::NAN)),
    ];
    for (value, name, unit, of) in all {
        let mut thin = Thin::new(0.0);
        seen.iter().for_each(|(at, glance)| thin.add(seconds(begin, *at), of(glance)));
        if let Some((mean, _)) = thin.mean_and_most() {
            row.put(value, mean);
            row.curves.push(Curve { name: name.to_owned(), unit: unit.to_owned(), points: thin.points().to_vec() });
        }
    }
    programs(&mut row, &seen, begin);
    row
}

/// The programs that used the host's processors most.
fn programs(row: &mut Row, seen: &[(Instant, HostGlance)], begin: Instant) {
    let all = seen.iter().flat_map(|(_, glance)| glance.programs.iter().map(|(name, used)| (name.as_str(), *used)));
    let mut most: Vec<(&str, f64)> = means(all, seen.len()).into_iter().collect();
    most.sort_by(|one, other| other.1.total_cmp(&one.1));
    for (name, used) in most.into_iter().take(PROGRAMS_SHOWN) {
        let mut thin = Thin::new(0.0);
        let of = |glance: &HostGlance| glance.programs.get(name).copied().unwrap_or(0.0);
        seen.iter().for_each(|(at, glance)| thin.add(seconds(begin, *at), of(glance)));
        row.put(&format!("{PROGRAM}{name}"), used);
        row.curves.push(Curve { name: name.to_owned(), unit: "processors".to_owned(), points: thin.points().to_vec() });
    }
}

fn client_row(client: &ClientDone) -> Row {
    let mut row = Row { name: CLIENT.to_owned(), ..Row::default() };
    row.conditions = conditions([
        (CLIENT, client.number.to_string()),
        (HOST, client.host.clone()),
        ("way", client.way.name().to_owned()),
    ]);
    row.put("whole", client.whole as f64);
    row.put(value::BYTES, client.bytes as f64);
    row.put(value::SECONDS, client.time.as_secs_f64());
    row.put(value::BYTES_PER_SECOND, client.rate());
    row
}

fn file_row(file: &Judged, size: u64) -> Row {
    let carried = &file.carried;
    let mut row = Row { name: FILE.to_owned(), ..Row::default() };
    row.conditions = conditions([
        (FILE, format!("{}-{:05}-{:06}", carried.way.name(), carried.client, carried.file)),
        (CLIENT, carried.client.to_string()),
        (HOST, file.host.clone()),
        (FATE, file.fate.name().to_owned()),
    ]);
    row.put("expected_bytes", size as f64);
    row.put("found_bytes", file.size().map_or(f64::NAN, |size| size as f64));
    row.put("attempts", carried.attempts.len() as f64);
    for name in ["refused", "lost", "timed_out", "failed"] {
        let count = LoadCounts::of([file]).named().into_iter().find(|(known, _)| *known == name);
        row.put(name, count.map_or(0.0, |(_, count)| count as f64));
    }
    row.put("said_done", f64::from(u8::from(carried.said_done())));
    let why = file.why();
    row.error = (file.fate != Fate::Whole || !why.is_empty()).then_some(why);
    row
}
