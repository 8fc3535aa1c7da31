//! Why a copy was not faster: the stage that the others waited for, in numbers that both ends and their kernels told.
//!
//! Looked at in this order: the rate that was asked for; storage and processors of the side that the other waits for;
//! where both sides wait for each other, the windows of TCP, lost packets, the round trip, and what is left is the
//! rate of the path. Where neither side carries anything, a stage that has one thread may be the cause: in the midst of
//! a copy, and after its last byte, when the streams have nothing left and the destination syncs.

use super::{Point, Sample, Work};
use crate::pace::limit::{Limit, Stage};

/// Why a copy was not faster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The stage that the others waited for, and the part of the streams' time that it took.
    pub limit: Limit,
    /// What the kernel says of it.
    pub fact: Option<Fact>,
    /// The stage that took the most time after it.
    pub next: Option<Limit>,
}

/// What a kernel says of a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fact {
    /// Share of the segments that was sent again.
    Resent(f64),
    /// Shortest round trip, in microseconds.
    RoundTripUs(u64),
    /// What the windows of all streams allowed in flight, in bytes.
    WindowBytes(u64),
    /// Share of their time that the streams' threads were ready and waited for a processor.
    Starved(f64),
}

impl Fact {
    /// For a sentence.
    pub fn words(&self) -> String {
        match self {
            Self::Resent(share) => format!("{:.2} % of the segments sent again", share * 100.0),
            Self::RoundTripUs(us) => format!("{:.1} ms", *us as f64 / 1000.0),
            Self::WindowBytes(bytes) => format!("{} KiB in flight over all streams", bytes / 1024),
            Self::Starved(share) => {
                format!("their threads waited for a processor for {:.0} % of the time", share * 100.0)
            }
        }
    }
}

/// Samples of one end over a stretch of a copy, in their order; the first is where it begins.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// The state before the stretch; all zeros where that is the beginning of the copy.
    pub before: &'a Sample,
    /// The samples in it.
    pub points: &'a [Point],
}

/// Less than this in a stream's threads says nothing, in microseconds.
const CARRIED_MIN_US: f64 = 50_000.0;
/// Both ends wait for each other: it is the path between them.
const BOTH_WAIT: f64 = 0.35;
/// More of their time than this, and the streams were as slow as they were asked to be.
const PACED: f64 = 0.3;
/// Streams that carry nothing for more than this wait for somebody who finds, makes or names files.
const IDLE: f64 = 0.5;
/// A stage of one thread that is at work for more than this holds up the streams that are idle.
const SERIAL: f64 = 0.5;
/// TCP says that a window held it back for this part of its time.
const WINDOW_LIMITED: f64 = 0.2;
/// TCP says that a window which is not filled held it back for this part of its time: whoever takes the bytes is slow.
const RELAYED: f64 = 0.6;
/// What is in flight is at least this part of what the window allows: a window that is the limit is full but for the
/// moments in which a thread does not get its processor.
const WINDOW_FILLED: f64 = 0.6;
/// Naming files takes so much longer than syncing them before it is named itself. Where each file is synced by itself,
/// giving it its name has a sync of the directory within, which takes about as long as that of the file.
const NAMES_OVER_SYNCS: f64 = 1.5;
/// Segments sent again from which on loss is what holds a path back that has no queue.
const LOSS: f64 = 0.0002;
/// Part of its time that TCP spent in timeouts.
const TIMEOUTS: f64 = 0.05;
/// A round trip that is longer than the shortest by this part, and by this time, in microseconds, is one of packets
/// that wait in a queue: the path is full.
const QUEUED: f64 = 0.25;
/// See [`QUEUED`].
const QUEUED_US: f64 = 2_000.0;
/// Shorter round trips hold nobody back, in microseconds.
const FAR_US: f64 = 2_000.0;
/// A runner-up has at least this part of the time.
const NEXT_MIN: f64 = 0.05;

/// Where the time of one end's streams went, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    carried: f64,
    storage: f64,
    metadata: f64,
    network: f64,
    pacing: f64,
    work: f64,
    starved: f64,
}

/// The path, as the sender's kernel saw it.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    resent: f64,
    timeouts: f64,
    rwnd_limited: f64,
    sndbuf_limited: f64,
    rtt_us: f64,
    min_rtt_us: f64,
    window_bytes: f64,
    cwnd_bytes: f64,
    in_flight_bytes: f64,
    /// The part of the window that is in flight.
    filled: f64,
}

/// What held a copy back over a stretch of `span_us` microseconds, over so many streams in the mean; `None` where too
/// little was told. Within one process there is no network: each side waits for the other's turn on the processors.
pub fn verdict(
    source: Stretch<'_>,
    destination: Stretch<'_>,
    span_us: u64,
    streams: u16,
    memory: bool,
) -> Option<Verdict> {
    let (last_source, last_destination) = (source.points.last()?, destination.points.last()?);
    let (sent, received) = (since(source.before, last_source), since(destination.before, last_destination));
    let [sender, receiver] =
        [(&sent, Work::Read, Work::Find, Work::Send), (&received, Work::Write, Work::Create, Work::Receive)].map(
            |(sample, storage, metadata, network)| Side::new(sample, [storage, metadata, network], span_us, streams),
        );
    let carried = sender.carried.max(receiver.carried);
    let total = span_us as f64 * f64::from(streams.max(1));
    let idle = if total > 0.0 { (1.0 - carried / total).clamp(0.0, 1.0) } else { 0.0 };
    // Of a million empty files the streams carry next to nothing.
    let held_up = held_up_by(&sent, &received, span_us, idle);
    if carried < CARRIED_MIN_US && held_up.is_none() {
        return None;
    }
    let carried = carried.max(1.0);
    let (sender, receiver) = (sender.over(carried), receiver.over(carried));
    let mut shares = shares(&sender, &receiver, carried);
    let last = last_wait(source, destination, span_us).filter(|_| held_up.is_none());
    add_serial(&mut shares, serial(&sent, &received, span_us), (span_us, carried, streams), last);
    let (sends, receives) = (sender.network / carried, receiver.network / carried);
    let (stage, fact) = if sender.pacing / carried > PACED {
        (Stage::RateLimit, None)
    } else if let Some(stage) = held_up {
        (stage, None)
    } else if sends.min(receives) > BOTH_WAIT && !memory && is_path_longest(&shares) {
        Path::new(source, &sent, span_us).stage()
    } else if sends > receives {
        receiver.slower(Stage::DestinationStorage, Stage::DestinationMetadata, Stage::DestinationProcessors)
    } else {
        sender.slower(Stage::SourceStorage, Stage::SourceMetadata, Stage::SourceProcessors)
    };
    let is_path = |stage| matches!(stage, Stage::Network | Stage::Window | Stage::Loss | Stage::RoundTrip);
    let share_of = |stage: Stage| if is_path(stage) { Stage::Network } else { stage };
    let share = |shares: &[(Stage, f64)], stage| {
        shares.iter().find(|(known, _)| *known == share_of(stage)).map_or(0.0, |(_, share)| *share)
    };
    let (mut stage, mut fact) = (stage, fact);
    if let Some((last, last_us)) = last {
        let waited = last_us * f64::from(streams.max(1));
        for (known, share) in &mut shares {
            *share = (*share * carried + if *known == last { waited } else { 0.0 }) / (carried + waited);
        }
        if share(&shares, last) > share(&shares, stage) {
            (stage, fact) = (last, None);
        }
    }
    let share = share(&shares, stage);
    let others = shares.iter().filter(|(known, share)| {
        *known != share_of(stage) && *share >= NEXT_MIN && !(memory && *known == Stage::Network)
    });
    let next = others.max_by(|one, other| one.1.total_cmp(&other.1)).map(|&(stage, share)| Limit { stage, share });
    Some(Verdict { limit: Limit { stage, share }, fact, next })
}

/// What happened in a stretch.
fn since(before: &Sample, last: &Point) -> Sample {
    let last = &last.sample;
    Sample {
        carried_us: last.carried_us.saturating_sub(before.carried_us),
        stages: last.stages.since(&before.stages),
        counts: last.counts.since(&before.counts),
        processor: last.processor.since(&before.processor),
        processor_state: last.processor_state,
        throttled: last.throttled.since(&before.throttled),
        ..Sample::default()
    }
}

impl Side {
    fn new(sample: &Sample, [storage, metadata, network]: [Work; 3], span_us: u64, streams: u16) -> Self {
        let waited = |work| sample.stages.of(work).waited_us as f64;
        let carried = sample.carried_us as f64;
        let starved = if carried > 0.0 { sample.processor.starved_us as f64 / carried } else { 0.0 };
        // A thread whose control group has used its quota up is not ready: the kernel does not count that it waits. It
        // counts for each processor how long the group was held back there.
        let cores = sample.processor_state.cores.clamp(1, u64::from(streams.max(1)));
        let throttled = sample.throttled.time_us as f64 / (span_us.max(1) as f64 * cores as f64);
        let starved = starved.max(throttled).min(1.0);
        // A thread that has to wait for a processor does so in the midst of whatever it does: that part of its waiting
        // is not for storage, nor for the network.
        let kept = 1.0 - starved;
        let side = Self {
            carried,
            storage: waited(storage) * kept,
            metadata: waited(metadata) * kept,
            network: waited(network) * kept,
            pacing: waited(Work::Pace),
            work: 0.0,
            starved,
        };
        let rest = (carried - side.storage - side.metadata - side.pacing).max(0.0);
        // A stream that has nothing to carry waits for the connection, too: that is not a part of what it carried.
        let network = side.network.min(rest);
        Self { network, work: rest - network, ..side }
    }

    /// As part of a longer time. The side whose streams carried something for less of it had nothing to carry
    /// meanwhile: it waited for the other, as it does within a block.
    fn over(self, carried: f64) -> Self {
        let idle = (carried - self.carried).max(0.0);
        Self { carried: self.carried + idle, network: self.network + idle, ..self }
    }

    fn slower(&self, storage: Stage, metadata: Stage, processors: Stage) -> (Stage, Option<Fact>) {
        if self.storage.max(self.metadata) > self.work {
            return (if self.storage >= self.metadata { storage } else { metadata }, None);
        }
        (processors, Some(Fact::Starved(self.starved)).filter(|_| self.starved >= NEXT_MIN))
    }
}

/// The part of the streams' time that each stage took.
fn shares(sender: &Side, receiver: &Side, carried: f64) -> Vec<(Stage, f64)> {
    let share = |time: f64| (time / carried).clamp(0.0, 1.0);
    vec![
        (Stage::SourceStorage, share(sender.storage)),
        (Stage::SourceMetadata, share(sender.metadata)),
        (Stage::SourceProcessors, share(sender.work)),
        (Stage::Network, share(sender.network.min(receiver.network))),
        (Stage::DestinationProcessors, share(receiver.work)),
        (Stage::DestinationMetadata, share(receiver.metadata)),
        (Stage::DestinationStorage, share(receiver.storage)),
        (Stage::RateLimit, share(sender.pacing)),
    ]
}

/// Whether no stage of either side takes more of the time than both sides wait for each other.
fn is_path_longest(shares: &[(Stage, f64)]) -> bool {
    let path = shares.iter().find(|(stage, _)| *stage == Stage::Network).map_or(0.0, |(_, share)| *share);
    shares.iter().all(|(_, share)| *share <= path)
}

/// The part of the time that stages were at work which have a thread of their own.
fn serial(sent: &Sample, received: &Sample, span_us: u64) -> [(Stage, f64); 3] {
    let share = |sample: &Sample, work| {
        let time = sample.stages.of(work);
        time.worked_us.saturating_add(time.waited_us) as f64 / span_us.max(1) as f64
    };
    [
        (Stage::SourceMetadata, share(sent, Work::List)),
        (Stage::DestinationMetadata, share(received, Work::Begin) + share(received, Work::Publish)),
        (Stage::DestinationStorage, share(received, Work::Sync)),
    ]
}

/// Adds what stages took that have a thread of their own, as far as the streams had nothing to carry meanwhile. What
/// was waited for `last` of all counts by itself.
fn add_serial(
    shares: &mut [(Stage, f64)],
    serial: [(Stage, f64); 3],
    (span_us, carried, streams): (u64, f64, u16),
    last: Option<(Stage, f64)>,
) {
    let span = span_us as f64;
    let rest = (span - last.map_or(0.0, |(_, us)| us)).max(1.0);
    let idle = (1.0 - carried / (rest * f64::from(streams.max(1)))).clamp(0.0, 1.0);
    for (stage, share) in serial {
        let counted_apart = last.filter(|(last, _)| *last == stage).map_or(0.0, |(_, us)| us);
        let share = ((share * span - counted_apart) / rest).clamp(0.0, 1.0) * idle;
        if let Some(entry) = shares.iter_mut().find(|(known, _)| *known == stage) {
            entry.1 = entry.1.max(share);
        }
    }
}

/// The stage of one thread that holds up streams which are idle. One thread syncs files and gives them their names, so
/// both count together.
fn held_up_by(sent: &Sample, received: &Sample, span_us: u64, idle: f64) -> Option<Stage> {
    let [list, names, syncs] = serial(sent, received, span_us);
    let destination = if names.1 > NAMES_OVER_SYNCS * syncs.1 { names.0 } else { syncs.0 };
    let found = if list.1 >= names.1 + syncs.1 { list } else { (destination, names.1 + syncs.1) };
    let is_long = found.1 * span_us as f64 >= CARRIED_MIN_US;
    (idle > IDLE && found.1 > SERIAL && is_long).then_some(found.0)
}

/// What was waited for after both sides had carried their last byte, and for how long, in microseconds. Writes that the
/// page cache took are paid for there.
fn last_wait(source: Stretch<'_>, destination: Stretch<'_>, span_us: u64) -> Option<(Stage, f64)> {
    let end_us = source.points.last()?.at_us.max(destination.points.last()?.at_us);
    let carried_until = |side: Stretch<'_>| {
        let before = std::iter::once(side.before.carried_us);
        let known = before.chain(side.points.iter().map(|point| point.sample.carried_us));
        let grew = side.points.iter().zip(known).filter(|(point, before)| point.sample.carried_us > *before).last();
        grew.map(|(point, _)| point.at_us)
    };
    let from_us = carried_until(source).into_iter().chain(carried_until(destination)).max()?;
    let waited_us = end_us.saturating_sub(from_us).min(span_us);
    let [sent, received] = [source, destination].map(|side| {
        let first = side.points.partition_point(|point| point.at_us <= from_us);
        let before = first.checked_sub(1).map_or(side.before, |before| &side.points[before].sample);
        side.points.last().map(|last| since(before, last)).unwrap_or_default()
    });
    let stage = held_up_by(&sent, &received, waited_us, 1.0)?;
    Some((stage, waited_us as f64))
}

/// The round trip of the middle stream, and the shortest of any, in microseconds. What is told of all together are the
/// longest; it counts where no stream is told of by itself.
fn round_trips(sample: &Sample) -> (f64, f64) {
    let states = sample.streams.iter().map(|stream| stream.state).filter(|state| state.rtt_us > 0);
    let shortest = states.clone().map(|state| state.min_rtt_us).filter(|us| *us > 0).min();
    let mut all: Vec<u64> = states.map(|state| state.rtt_us).collect();
    all.sort_unstable();
    match (all.get(all.len() / 2), shortest) {
        (Some(middle), Some(shortest)) => (*middle as f64, shortest as f64),
        _ => (sample.state.rtt_us as f64, sample.state.min_rtt_us as f64),
    }
}

impl Path {
    fn new(source: Stretch<'_>, sent: &Sample, span_us: u64) -> Self {
        let counts = &sent.counts;
        let share = |part: u64, of: u64| if of == 0 { 0.0 } else { part as f64 / of as f64 };
        // A stream that has just been made, or has gone, says nothing of the path.
        let told: Vec<&Sample> =
            source.points.iter().map(|point| &point.sample).filter(|sample| sample.state.rtt_us > 0).collect();
        let mean = |value: &dyn Fn(&Sample) -> u64| {
            told.iter().map(|sample| value(sample) as f64).sum::<f64>() / told.len().max(1) as f64
        };
        // The path is one, whatever one stream met on it: the middle one counts, and the shortest that any has seen.
        // One that began behind a full queue has never seen the shortest.
        let trips: Vec<(f64, f64)> = told.iter().map(|sample| round_trips(sample)).collect();
        let rtt_us = trips.iter().map(|(rtt, _)| rtt).sum::<f64>() / trips.len().max(1) as f64;
        let min_rtt_us = trips.iter().map(|(_, min)| *min).filter(|min| *min > 0.0).reduce(f64::min).unwrap_or(0.0);
        let rate = counts.delivered as f64 / (span_us.max(1) as f64 / 1e6);
        Self {
            resent: share(counts.retransmits, counts.segments),
            timeouts: share(counts.timeouts_us, counts.busy_us),
            rwnd_limited: share(counts.rwnd_limited_us, counts.busy_us),
            sndbuf_limited: share(counts.sndbuf_limited_us, counts.busy_us),
            rtt_us,
            min_rtt_us,
            window_bytes: mean(&|sample| sample.state.window_bytes),
            cwnd_bytes: mean(&|sample| sample.state.cwnd_bytes),
            in_flight_bytes: rate * rtt_us / 1e6,
            filled: Self::filled(source, span_us),
        }
    }

    /// How far what is in flight fills the window, by the mean of the samples that tell of both. Each is taken with the
    /// rate of its own time: while a connection grows, what it carries later does not fill the window that it had.
    fn filled(source: Stretch<'_>, span_us: u64) -> f64 {
        let began_us = source.points.last().map_or(0, |last| last.at_us.saturating_sub(span_us));
        let mut before = (began_us, source.before.counts.delivered);
        let mut shares = Vec::new();
        for Point { at_us, sample, .. } in source.points {
            let state = &sample.state;
            let bytes = sample.counts.delivered.saturating_sub(before.1) as f64;
            let seconds = at_us.saturating_sub(before.0).max(1) as f64 / 1e6;
            if state.rtt_us > 0 && state.window_bytes > 0 {
                shares.push(bytes / seconds * (state.rtt_us as f64 / 1e6) / state.window_bytes as f64);
            }
            before = (*at_us, sample.counts.delivered);
        }
        shares.iter().sum::<f64>() / shares.len().max(1) as f64
    }

    /// What of the path holds back, and what the kernel says of it.
    fn stage(&self) -> (Stage, Option<Fact>) {
        let queued = self.rtt_us - self.min_rtt_us;
        // A slow relay closes its window, too. But it is near, or little is in flight to it: then it is not the window.
        // Where the congestion window allows less it is that one which counts; the other grows as it does.
        let is_less = self.cwnd_bytes <= 0.0 || self.window_bytes <= self.cwnd_bytes;
        let receiver = self.rwnd_limited > WINDOW_LIMITED && self.filled >= WINDOW_FILLED && is_less;
        if (receiver || self.sndbuf_limited > WINDOW_LIMITED) && self.min_rtt_us >= FAR_US {
            return (Stage::Window, Some(Fact::WindowBytes(self.in_flight_bytes as u64)));
        }
        if queued > QUEUED_US.max(QUEUED * self.min_rtt_us) {
            return (Stage::Network, Some(Fact::RoundTripUs(self.rtt_us as u64)));
        }
        if self.resent >= LOSS || self.timeouts >= TIMEOUTS {
            return (Stage::Loss, Some(Fact::Resent(self.resent)));
        }
        // A receiver's window grows as the connection does; one that is closed nearly always is somebody's who is slow.
        if self.rwnd_limited <= RELAYED && self.min_rtt_us >= FAR_US {
            return (Stage::RoundTrip, Some(Fact::RoundTripUs(self.min_rtt_us as u64)));
        }
        (Stage::Network, None)
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
