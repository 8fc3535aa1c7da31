//! Why a copy was not faster: the stage that the others waited for, in numbers that both ends and their kernels told.
//!
//! Looked at in this order: the rate that was asked for; storage and processors of the side that the other waits for;
//! where both sides wait for each other, the windows of TCP, lost packets, the round trip, and what is left is the
//! rate of the path. Where neither side carries anything, a stage that has one thread may be the cause: in the midst of
//! a copy, and after its last byte, when the streams have nothing left and the destination syncs.

use super::path::PathCounted;
use super::stretch::{Fact, Stretch};
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
/// Naming files takes so much longer than syncing them before it is named itself. Where each file is synced by itself,
/// giving it its name has a sync of the directory within, which takes about as long as that of the file.
const NAMES_OVER_SYNCS: f64 = 1.5;
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
    let told = add_serial(&mut shares, serial(&sent, &received, span_us), (span_us, carried, streams), last);
    let (sends, receives) = (sender.network / carried, receiver.network / carried);
    let (stage, fact) = if sender.pacing / carried > PACED {
        (Stage::RateLimit, None)
    } else if let Some(stage) = held_up {
        (stage, None)
    } else if sends.min(receives) > BOTH_WAIT && !memory && is_path_longest(&shares) {
        PathCounted::new(source, destination, &sent, span_us).stage()
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
            *share = (*share * told + if *known == last { waited } else { 0.0 }) / (told + waited);
        }
        if share(&shares, last) > share(&shares, stage) {
            (stage, fact) = (last, None);
        }
    }
    let share = share(&shares, stage);
    let others = shares.iter().filter(|(known, share)| {
        *known != share_of(stage) && *share >= NEXT_MIN && !(memory && *known == Stage::Network)
    });
    let next = others.max_by(|one, other| one.1.total_cmp(&other.1));
    // Both sides are at work at once: of that time the runner-up has what the first leaves.
    let next = next.map(|&(stage, other)| Limit { stage, share: other.min(1.0 - share) });
    let next = next.filter(|next| next.share >= NEXT_MIN);
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
        Self { network, ..side }.split(rest - network, sample)
    }

    /// What is left of the time was work as far as the threads had a processor, or were ready for one. The rest was
    /// waiting that nobody timed: brief calls are sampled. Each of them finds, reads or makes files.
    fn split(self, left: f64, sample: &Sample) -> Self {
        let processor = &sample.processor;
        let host = processor.busy_us.saturating_add(processor.idle_us).saturating_add(processor.stolen_us);
        let stolen = if host == 0 { 0.0 } else { processor.stolen_us as f64 / host as f64 };
        let worked = processor.streams_us as f64 + (self.starved + stolen) * self.carried;
        // Some systems do not tell what a thread has used.
        let work = if processor.streams_us == 0 { left } else { left.min(worked) };
        let timed = self.storage + self.metadata;
        let stored = if timed > 0.0 { self.storage / timed } else { 1.0 };
        let untimed = left - work;
        Self {
            work,
            storage: self.storage + untimed * stored,
            metadata: self.metadata + untimed * (1.0 - stored),
            ..self
        }
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
/// was waited for `last` of all counts by itself. All shares are parts of one time, which is returned.
fn add_serial(
    shares: &mut [(Stage, f64)],
    serial: [(Stage, f64); 3],
    (span_us, carried, streams): (u64, f64, u16),
    last: Option<(Stage, f64)>,
) -> f64 {
    let span = span_us as f64;
    let rest = (span - last.map_or(0.0, |(_, us)| us)).max(1.0);
    let all = rest * f64::from(streams.max(1));
    let idle = (all - carried).max(0.0);
    let took = serial.map(|(stage, share)| {
        let counted_apart = last.filter(|(last, _)| *last == stage).map_or(0.0, |(_, us)| us);
        (stage, ((share * span - counted_apart) / rest).clamp(0.0, 1.0) * idle)
    });
    let sum: f64 = took.iter().map(|(_, time)| time).sum();
    // Two threads of this kind may be at work at once.
    let scale = if sum > idle { idle / sum } else { 1.0 };
    let total = carried + sum * scale;
    for (stage, share) in shares {
        let serial: f64 = took.iter().filter(|(known, _)| known == stage).map(|(_, time)| time * scale).sum();
        *share = (*share * carried + serial) / total;
    }
    total
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

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
