//! What held a crowd back, as far as it was watched: the fullest of processors, disks and links; and when its rate
//! fell.

use std::time::{Duration, Instant};

use carrack_core::pace::limit::step_down;
use carrack_core::words;
use carrack_measure::result::Row;

use super::node::NodeGlance;
use super::observe::{HostGlance, means};
use super::rows::{Crowd, FALL, HOST, LIMIT};
use super::thin::Thin;
use crate::bench::numbers;
use crate::crowd::order::ClientWay;
use crate::output::format;

/// The condition that says what kind of thing was fullest, and the one that names it.
const KIND: &str = "of";
const THING: &str = "thing";
/// The share of the time, or of what it can do, that it was in use.
const SHARE: &str = "share";
/// The condition that says which way the bytes went whose rate fell.
const WAY: &str = "way";
const AT: &str = "at_seconds";
const BEFORE: &str = "before_bytes_per_second";
const AFTER: &str = "after_bytes_per_second";
const AT_WORK: &str = "clients_at_work";

/// What is in use for this share limits.
const FULL: f64 = 0.9;
/// An interface carries no more than its speed, but for what a clock is wrong by.
const OVER: f64 = 1.1;
/// Rates are compared second by second, and a fall has so many seconds before it.
const BEFORE_SECONDS: f64 = 3.0;

words! {
    /// What may be full.
    pub enum Full {
        0 Clients "clients-processors" "the processors of all hosts of the clients"
        1 Processors "processors" "all processors of a host"
        2 Processor "processor" "one processor of a host, with others idle"
        3 Disk "disk" "a disk that turns"
        4 Link "link" "an interface"
        5 Busy "busy-disk" "a disk that had something to do: one without turning parts may do more at once"
    }
}

/// Something that was watched.
#[derive(Clone, Debug, PartialEq)]
struct InUse {
    kind: Full,
    host: String,
    /// The disk or the interface.
    thing: String,
    share: f64,
}

/// The rows of what held a crowd back.
pub fn rows(crowd: &Crowd) -> Vec<Row> {
    let falls = ClientWay::ALL.iter().filter_map(|way| fall_row(crowd, *way));
    falls.chain(limit_row(crowd)).collect()
}

/// The fullest of all that was watched. None where nothing was.
fn limit_row(crowd: &Crowd) -> Option<Row> {
    let mut all: Vec<InUse> = clients(&crowd.busy).into_iter().collect();
    all.extend(node(&crowd.watched.node, crowd.watched.begin));
    for (host, seen) in &crowd.watched.hosts {
        all.extend(observed(host, seen, crowd.watched.begin));
    }
    // Of two that are as full, the server's is what people ask for.
    let most = all.into_iter().filter(|used| used.share.is_finite());
    let most = most.max_by(|one, other| one.share.total_cmp(&other.share))?;
    let mut row = Row { name: LIMIT.to_owned(), ..Row::default() };
    row.conditions = [(KIND, most.kind.name()), (HOST, &most.host), (THING, &most.thing)]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    row.put(SHARE, most.share);
    Some(row)
}

/// If one host of clients has processors to spare, it is not they that limit.
fn clients(busy: &[(String, Thin)]) -> Option<InUse> {
    let means = busy.iter().map(|(host, busy)| Some((host, busy.mean_and_most()?.0)));
    let (host, share) =
        means.collect::<Option<Vec<_>>>()?.into_iter().min_by(|one, other| one.1.total_cmp(&other.1))?;
    let host = if busy.len() == 1 { host.clone() } else { String::new() };
    Some(InUse { kind: Full::Clients, host, thing: String::new(), share })
}

fn node(seen: &[NodeGlance], begin: Instant) -> Vec<InUse> {
    let seen: Vec<&NodeGlance> = seen.iter().filter(|glance| glance.at > begin).collect();
    let mean =
        |of: fn(&NodeGlance) -> f64| seen.iter().map(|glance| of(glance)).sum::<f64>() / seen.len().max(1) as f64;
    if seen.is_empty() {
        return Vec::new();
    }
    let used = |kind, share| InUse { kind, host: "node".to_owned(), thing: String::new(), share };
    let (all, busiest) = (mean(|glance| glance.busy), mean(|glance| glance.busiest));
    // One processor that is always busy says something only beside idle ones.
    let one = (all < FULL).then(|| used(Full::Processor, busiest));
    one.into_iter().chain([used(Full::Processors, all)]).collect()
}

fn observed(host: &str, seen: &[(Instant, HostGlance)], begin: Instant) -> Vec<InUse> {
    let seen: Vec<&HostGlance> = seen.iter().filter(|(at, _)| *at > begin).map(|(_, glance)| glance).collect();
    if seen.is_empty() {
        return Vec::new();
    }
    let used = |kind, thing: &str, share| InUse { kind, host: host.to_owned(), thing: thing.to_owned(), share };
    let mut all =
        vec![used(Full::Processors, "", seen.iter().map(|glance| glance.busy).sum::<f64>() / seen.len() as f64)];
    for (kind, which) in [(Full::Disk, true), (Full::Busy, false)] {
        let disks = seen.iter().flat_map(|glance| &glance.disks_busy).filter(|(_, (_, turns))| *turns == which);
        let disks = disks.map(|(name, (share, _))| (name.as_str(), *share));
        all.extend(means(disks, seen.len()).into_iter().map(|(name, share)| used(kind, name, share)));
    }
    let links = seen.iter().flat_map(|glance| {
        glance.interfaces.iter().filter_map(|(name, rates)| {
            let speed = glance.speeds.get(name).filter(|speed| **speed > 0.0)?;
            // More than it can carry: the speed is not what it says.
            let share = rates[0].max(rates[1]) / speed;
            (share <= OVER).then_some((name.as_str(), share))
        })
    });
    all.extend(means(links, seen.len()).into_iter().map(|(name, share)| used(Full::Link, name, share)));
    all
}

/// The moment from which on all clients together were slower, while half of them were still at work.
fn fall_row(crowd: &Crowd, way: ClientWay) -> Option<Row> {
    let active = crowd.active.points();
    let most = active.iter().map(|(_, clients)| *clients).fold(0.0, f64::max);
    let end = active.iter().rev().find(|(_, clients)| *clients * 2.0 >= most).map(|(at, _)| *at)?;
    let end = Duration::try_from_secs_f64(end).ok()?;
    let step = step_down(&crowd.rates[way as usize].by_second(end), BEFORE_SECONDS)?;
    let at_work = active.iter().rev().find(|(at, _)| *at <= step.at).map_or(f64::NAN, |(_, clients)| *clients);
    let mut row = Row { name: FALL.to_owned(), ..Row::default() };
    row.conditions = vec![(WAY.to_owned(), way.name().to_owned())];
    for (name, value) in [(AT, step.at), (BEFORE, step.before), (AFTER, step.after), (AT_WORK, at_work)] {
        row.put(name, value);
    }
    Some(row)
}

/// A row of these as a sentence; `None` for any other.
pub fn sentence(row: &Row) -> Option<String> {
    match row.name.as_str() {
        LIMIT => Some(limit(row)),
        FALL => {
            let rate = |name: &str| row.value(name).map_or_else(|| "-".to_owned(), numbers::rate);
            let number = |name: &str| row.value(name).unwrap_or(0.0).max(0.0).round();
            let what = if row.condition(WAY) == Some(ClientWay::Put.name()) { "sent" } else { "fetched" };
            Some(format!(
                "what was {what} fell after {} s from {} to {}, with {} at work",
                number(AT),
                rate(BEFORE),
                rate(AFTER),
                format::counted(number(AT_WORK) as u64, "client", "clients")
            ))
        }
        _ => None,
    }
}

fn limit(row: &Row) -> String {
    let share = row.value(SHARE).unwrap_or(0.0);
    let condition = |name: &str| row.condition(name).unwrap_or_default();
    let (host, thing) = (condition(HOST), condition(THING));
    let kind = Full::ALL.iter().find(|kind| kind.name() == condition(KIND)).copied();
    let what = match kind {
        Some(Full::Clients) if host.is_empty() => "the processors of all hosts of the clients".to_owned(),
        Some(Full::Clients) => format!("the processors of {host}, where the clients run"),
        Some(Full::Processors) => format!("the processors of {}", the(host)),
        Some(Full::Processor) => format!("one processor of {}", the(host)),
        Some(Full::Disk | Full::Busy) => format!("disk {thing} of {host}"),
        Some(Full::Link) => format!("{thing} of {host}"),
        None => "something that this program does not know".to_owned(),
    };
    let used = format!("{what}, {:.0}% in use", share * 100.0);
    match kind {
        Some(Full::Busy) if share >= FULL => {
            format!("perhaps limited by {used}: it always had something to do, and may do more at once")
        }
        _ if share >= FULL => format!("limited by {used}"),
        _ => format!("nothing that was watched was full; the fullest: {used}; --observe HOST watches more hosts"),
    }
}

fn the(host: &str) -> String {
    if host == "node" { "the node's host".to_owned() } else { host.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::bench::load::rows::CrowdWatched;

    fn thin(points: &[(f64, f64)]) -> Thin {
        let mut thin = Thin::new(0.0);
        points.iter().for_each(|(at, value)| thin.add(*at, *value));
        thin
    }

    /// A crowd whose hosts were busy so much, with a host that was observed.
    fn crowd(clients: &[f64], host: HostGlance) -> Crowd {
        let begin = Instant::now();
        let at = begin + Duration::from_secs(1);
        let glance = |busy, busiest| NodeGlance { at, processors: 0.5, busiest, busy };
        Crowd {
            files: Vec::new(),
            rates: Default::default(),
            active: Thin::default(),
            busy: clients.iter().map(|busy| ("c1".to_owned(), thin(&[(0.0, *busy)]))).collect(),
            watched: CrowdWatched {
                begin,
                node: vec![glance(0.3, 0.5)],
                hosts: vec![("pool".to_owned(), vec![(at, host)])],
            },
        }
    }

    fn said(crowd: &Crowd) -> String {
        sentence(&limit_row(crowd).expect("something was watched")).expect("a sentence")
    }

    #[test]
    fn fullest_of_all_that_was_watched_is_named() {
        let host = |busy: f64, disk: f64, received: f64| HostGlance {
            busy,
            disks_busy: BTreeMap::from([("sda".to_owned(), (disk, true)), ("sdb".to_owned(), (0.1, true))]),
            interfaces: BTreeMap::from([("eth0".to_owned(), [received, 1e6]), ("tun0".to_owned(), [9e9, 9e9])]),
            speeds: BTreeMap::from([("eth0".to_owned(), 1.25e8), ("tun0".to_owned(), 0.0)]),
            ..HostGlance::default()
        };
        assert_eq!(said(&crowd(&[0.5], host(0.3, 0.97, 1e7))), "limited by disk sda of pool, 97% in use");
        assert_eq!(said(&crowd(&[0.5], host(0.3, 0.5, 1.2e8))), "limited by eth0 of pool, 96% in use");
        assert_eq!(said(&crowd(&[0.5], host(0.95, 0.5, 0.0))), "limited by the processors of pool, 95% in use");
        // One that does much at once is always busy long before it is full.
        let mut flash = host(0.3, 0.5, 0.0);
        flash.disks_busy.insert("nvme0n1".to_owned(), (0.99, false));
        assert!(said(&crowd(&[0.5], flash)).starts_with("perhaps limited by disk nvme0n1 of pool, 99% in use"));
        // A speed that is none.
        assert!(said(&crowd(&[0.5], host(0.3, 0.55, 9e9))).contains("the fullest: disk sda"));
        let full = said(&crowd(&[0.98], host(0.3, 0.5, 0.0)));
        assert_eq!(full, "limited by the processors of c1, where the clients run, 98% in use");
        // One of two hosts of clients could do more.
        let idle = said(&crowd(&[0.98, 0.4], host(0.3, 0.55, 0.0)));
        assert!(idle.starts_with("nothing that was watched was full; the fullest: disk sda of pool, 55%"), "{idle}");
        let mut one = crowd(&[0.5], host(0.3, 0.5, 0.0));
        one.watched.node[0].busiest = 0.99;
        assert_eq!(said(&one), "limited by one processor of the node's host, 99% in use");
        assert!(limit_row(&Crowd { busy: Vec::new(), ..crowd(&[], host(0.0, 0.0, 0.0)) }).is_some());
        let mut nobody = crowd(&[], host(0.0, 0.0, 0.0));
        (nobody.watched.node, nobody.watched.hosts) = (Vec::new(), Vec::new());
        assert_eq!(limit_row(&nobody), None);
    }

    #[test]
    fn fall_is_one_while_clients_are_at_work() {
        let with = |fast: u64, slow: u64, active: &[(f64, f64)]| {
            let mut crowd = crowd(&[], HostGlance::default());
            for second in 0..fast + slow {
                let bytes = if second < fast { 100e6 } else { 20e6 };
                crowd.rates[0].add(Duration::from_millis(second * 1000 + 500), bytes);
            }
            crowd.active = thin(active);
            fall_row(&crowd, ClientWay::Put)
        };
        let row = with(10, 8, &[(0.0, 100.0), (9.0, 94.0), (18.0, 90.0)]).expect("it fell");
        let told = sentence(&row).expect("a sentence");
        assert_eq!(told, "what was sent fell after 10 s from 100 MB/s to 20.0 MB/s, with 94 clients at work");
        // At the end, where most are done, a crowd is slower without a fault.
        assert_eq!(with(10, 8, &[(0.0, 100.0), (10.0, 90.0), (11.0, 5.0), (18.0, 1.0)]), None);
        assert_eq!(with(18, 0, &[(0.0, 100.0), (18.0, 90.0)]), None);
        assert_eq!(sentence(&Row::default()), None);
    }
}
