//! How many streams, found out while a transfer runs: the rate that some bring is measured, others are tried, and the
//! better number stays. Pure: samples in, changes out.
//!
//! # What is better
//! `rate · (1 - 5 · loss) / K^streams`. Each stream has to earn its part in the path: with K = 1.02, two per cent. And
//! what is lost on the way, as the share of segments that are sent again, counts five times: where that comes with more
//! streams, the path is crowded, and others lose as well. On a path that loses packets by itself it does not come with
//! them; it is the same for any number, and falls out of the comparison. There a window is halved so often that only
//! more of them fill the path, so they are cheaper: K is less by the smaller of the two shares that are compared, which
//! the path's own cannot exceed.
//!
//! # How it is looked for
//! 1. **Ramp**: twice as many as long as that is 5 % better; then once half way between the last that was better and
//!    the first that was not.
//! 2. **Hold** for four probes, then a **trial** of an eighth more or less, confirmed by a second probe and kept if 2 %
//!    better. What is kept is followed at once by a step twice as wide, up to a quarter; what is not is undone, and
//!    next time the other direction is tried. After each two trials in a row that were not kept the hold is twice as
//!    long, up to 32 probes.
//! 3. A rate that is less than 70 % of the usual one for three probes: a ramp again.
//! 4. More than 1 % of the segments are lost: half as many are tried. If that is better, the path was crowded, and it
//!    stays. Otherwise the loss is the path's own: the streams come back, and that share is taken for granted from then
//!    on, as is what a ramp has accepted.
//!
//! A probe takes two seconds, after one that is not counted where the number has changed. Nothing is concluded from a
//! probe in which streams came or went, something other than the network held the transfer back, small files went by,
//! or nothing at all arrived; and near the end nothing is tried any more.

use std::fmt;
use std::time::Duration;

use super::limit::{Stage, StageTimes, limit};
use crate::limits;
use crate::tuning::Tuning;
use crate::words::words;

/// At the beginning windows still grow: nothing is measured.
const SETTLING: Duration = Duration::from_secs(2);
/// After a change the first part of a probe is not counted.
const IGNORED: Duration = Duration::from_secs(1);
/// The part of a probe that is.
const COUNTED: Duration = Duration::from_secs(2);
/// So long streams that were asked for may take to be made.
const MAKING: Duration = Duration::from_secs(10);
/// A change has to pay within what is left.
const PROBES_LEFT: f64 = 4.0;
/// What each stream must earn.
const COST: f64 = 1.02;
/// However much is lost, streams are not free.
const COST_MIN: f64 = 1.005;
/// Better in a ramp, and in a trial.
const BETTER_RAMP: f64 = 1.05;
/// See [`BETTER_RAMP`].
const BETTER_TRIAL: f64 = 1.02;
/// What a lost segment costs, in segments that arrive: others on the path lose as well. Falcon, from which this is,
/// takes ten; before a shaper with short queues that gave up a tenth of the rate to lose 3 % less.
const LOSS_COST: f64 = 5.0;
/// Probes between two trials.
const HELD: u32 = 4;
/// Where trial after trial is not kept there is no need to make and end streams all the time.
const HELD_MAX: u32 = 32;
/// A rate that is less than this part of the usual one, for so many probes, is another path.
const FALLEN: f64 = 0.7;
/// See [`FALLEN`].
const FALLEN_PROBES: u32 = 3;
/// Weight of the newest rate in the usual one.
const WEIGHT: f64 = 0.3;
/// Loss above this is looked into.
const LOSS: f64 = 0.01;
/// Loss that is so many times what is taken for the path's own is not the path's own.
const LOSS_RISEN: f64 = 2.0;
/// Fewer are never tried: where one packet is lost, more than a window must be left.
const STREAMS_MIN: u16 = 4;

/// How a transfer stands, as its sender has measured it; `at` and all counts only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// When, by the sender's clock.
    pub at: Duration,
    /// Bytes that the receiving host has acknowledged.
    pub delivered: u64,
    /// Segments sent, those sent again included.
    pub segments: u64,
    /// Segments sent again.
    pub repeated: u64,
    /// Streams that are there.
    pub alive: u16,
    /// Items that have ended.
    pub items: u64,
    /// Bytes that have not landed yet; `None` while the scan may find more.
    pub left: Option<u64>,
    /// Where the sender's time has gone.
    pub source: StageTimes,
    /// Where the receiver's time has gone.
    pub destination: StageTimes,
}

/// Another number of streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The number of streams from now on.
    pub streams: u16,
    /// The number of streams until now.
    pub before: u16,
    /// Bytes a second that those brought.
    pub rate: f64,
    /// Of their segments, the share that was sent again.
    pub loss: f64,
    /// Why the number of streams changes.
    pub reason: Reason,
}

words! {
    /// Why the number of streams changes.
    pub enum Reason {
        TryMore "try-more" "to see whether more are faster"
        TryFewer "try-fewer" "to see whether fewer are as fast"
        Back "back" "those that were tried were not worth it"
        Loss "loss" "packets are lost, to see whether there are too many"
        /// With half as many the same was lost, and less came.
        LossOfPath "loss-of-path" "it is the path that loses packets"
        NotMade "not-made" "more could not be made"
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.meaning())
    }
}

/// What a number of streams brings.
#[derive(Clone, Copy, Debug)]
struct Probe {
    streams: u16,
    /// Bytes a second.
    rate: f64,
    /// Share of segments sent again.
    loss: f64,
    /// The network held the transfer back.
    network: bool,
}

impl Probe {
    /// How much better it is than another, as a factor.
    fn over(&self, other: &Self) -> f64 {
        let cost = (COST - self.loss.min(other.loss)).max(COST_MIN);
        let streams = i32::from(self.streams) - i32::from(other.streams);
        self.useful() / other.useful() / cost.powi(streams)
    }

    /// The rate, less what its loss costs others on the path.
    fn useful(&self) -> f64 {
        self.rate * (1.0 - LOSS_COST * self.loss).max(0.1)
    }

    /// The mean of `count` probes and this one.
    fn with(&self, mean: &Self, count: u32) -> Self {
        let part = 1.0 / f64::from(count + 1);
        let towards = |mean: f64, this: f64| mean + (this - mean) * part;
        Self { rate: towards(mean.rate, self.rate), loss: towards(mean.loss, self.loss), ..*self }
    }
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// A first measurement, then twice as many.
    Ramp,
    /// More are tried; `base` is the best so far, and with `last` nothing is tried after this.
    Ramping { base: Probe, last: bool },
    /// At the best that is known.
    Hold,
    /// A step from `base`; `first` is the probe that has to be confirmed.
    Trial { base: Probe, first: Option<Probe> },
    /// Half of `base`, because of what is lost.
    Losing { base: Probe },
}

/// Finds the number of streams of one transfer.
#[derive(Clone, Debug)]
pub struct StreamControl {
    /// The number of streams that is wanted.
    streams: u16,
    fewest: u16,
    most: u16,
    phase: Phase,
    /// The next trial is of more.
    upwards: bool,
    /// And of so many more or fewer.
    step: u16,
    /// Where the probe began that is under way.
    begun: Option<Sample>,
    /// Nothing is measured before; counted from when all streams are there.
    ignored: Duration,
    /// Since when all streams are there.
    complete: Option<Duration>,
    /// Since when this number is wanted.
    wanted: Option<Duration>,
    /// The usual rate while a number is held.
    usual: f64,
    /// The mean of so many probes since it is held.
    held: Option<(Probe, u32)>,
    /// Probes in a row that were far below it.
    fallen: u32,
    /// Trials in a row that were not kept.
    fruitless: u32,
    /// Share of segments that is taken for the path's own loss.
    path_loss: f64,
    /// Files up to this size travel in bundles.
    bundled_file_bytes_max: u64,
}

impl StreamControl {
    /// Begins with so many streams, where the smaller host has so many processors.
    pub fn new(tuning: &Tuning, streams: u16, processors: usize) -> Self {
        let most = u16::try_from(processors.saturating_mul(usize::from(tuning.streams_per_processor)));
        let most = most.unwrap_or(u16::MAX).min(tuning.streams_found_max).min(limits::STREAMS);
        Self {
            streams,
            fewest: streams.min(STREAMS_MIN),
            most: most.max(streams),
            phase: Phase::Ramp,
            upwards: true,
            step: 0,
            begun: None,
            ignored: SETTLING,
            complete: None,
            wanted: None,
            usual: 0.0,
            held: None,
            fallen: 0,
            fruitless: 0,
            path_loss: 0.0,
            bundled_file_bytes_max: tuning.bundled_file_bytes_max,
        }
    }

    /// So many are wanted now, some of them maybe on trial.
    pub fn streams(&self) -> u16 {
        self.streams
    }

    /// The best number of streams that is known.
    pub fn best(&self) -> u16 {
        match self.phase {
            Phase::Ramping { base, .. } | Phase::Trial { base, .. } | Phase::Losing { base } => base.streams,
            Phase::Ramp | Phase::Hold => self.streams,
        }
    }

    /// Takes a sample, and says what is to be changed.
    pub fn handle_sample(&mut self, sample: Sample) -> Option<Change> {
        if let Some(change) = self.not_made(&sample) {
            return Some(change);
        }
        let probe = self.measure(sample)?;
        let again = self.has_fallen(&probe);
        if self.is_near_the_end(&sample, &probe) {
            return self.give_back(&probe);
        }
        if again {
            self.fruitless = 0;
            self.phase = Phase::Ramp;
        }
        let (streams, reason) = self.conclude(probe)?;
        self.go_to(streams, reason, &probe)
    }

    /// Streams that do not come, because the path or a host takes no more, are not waited for.
    fn not_made(&mut self, sample: &Sample) -> Option<Change> {
        let since = *self.wanted.get_or_insert(sample.at);
        let (Phase::Ramping { base, .. } | Phase::Trial { base, .. }) = self.phase else { return None };
        if sample.alive >= self.streams || self.streams < base.streams || sample.at < since + MAKING {
            return None;
        }
        self.most = sample.alive.max(base.streams);
        self.hold(base.rate);
        self.go_to(base.streams, Reason::NotMade, &base)
    }

    /// Goes on with the probe under way; its result when it has come to its end.
    fn measure(&mut self, sample: Sample) -> Option<Probe> {
        if sample.alive != self.streams {
            (self.begun, self.complete) = (None, None);
            // Those that come next need a moment as well.
            self.ignored = self.ignored.max(IGNORED);
            return None;
        }
        let complete = *self.complete.get_or_insert(sample.at);
        if sample.at < complete + self.ignored {
            return None;
        }
        let begun = *self.begun.get_or_insert(sample);
        let time = sample.at.saturating_sub(begun.at);
        if time < COUNTED {
            return None;
        }
        // The next begins where this ends, unless something changes.
        self.begun = Some(sample);
        let bytes = sample.delivered.saturating_sub(begun.delivered);
        let items = sample.items.saturating_sub(begun.items);
        if bytes == 0 || bytes < items.saturating_mul(self.bundled_file_bytes_max) {
            return None;
        }
        let (sent, again) =
            (sample.segments.saturating_sub(begun.segments), sample.repeated.saturating_sub(begun.repeated));
        let stage = limit(&sample.source.since(&begun.source), &sample.destination.since(&begun.destination));
        Some(Probe {
            streams: self.streams,
            rate: bytes as f64 / time.as_secs_f64(),
            loss: if sent == 0 { 0.0 } else { again as f64 / sent as f64 },
            network: stage.is_some_and(|limit| limit.stage == Stage::Network),
        })
    }

    /// Whether the rate has been far below the usual one for long enough.
    fn has_fallen(&mut self, probe: &Probe) -> bool {
        if !matches!(self.phase, Phase::Hold) || !probe.network {
            return false;
        }
        if probe.rate >= self.usual * FALLEN {
            self.fallen = 0;
            self.usual += (probe.rate - self.usual) * WEIGHT;
            return false;
        }
        self.fallen += 1;
        self.fallen >= FALLEN_PROBES
    }

    fn is_near_the_end(&self, sample: &Sample, probe: &Probe) -> bool {
        let needed = probe.rate * (IGNORED + COUNTED).as_secs_f64() * PROBES_LEFT;
        sample.left.is_some_and(|left| (left as f64) < needed)
    }

    /// What was taken away on trial and is missed.
    fn give_back(&mut self, probe: &Probe) -> Option<Change> {
        let (Phase::Trial { base, .. } | Phase::Losing { base }) = self.phase else { return None };
        if probe.streams >= base.streams || probe.over(&base) >= 1.0 {
            return None;
        }
        self.hold(base.rate);
        self.go_to(base.streams, Reason::Back, probe)
    }

    /// What follows from a probe: another number, and why.
    fn conclude(&mut self, probe: Probe) -> Option<(u16, Reason)> {
        match self.phase {
            // It waits until the network is what holds the transfer back.
            Phase::Ramp if !probe.network => None,
            Phase::Ramp => self.ramp_on(probe, false),
            Phase::Ramping { base, last } => self.conclude_ramp(base, last, probe),
            Phase::Hold => self.hold_on(probe),
            Phase::Trial { base, first } => self.conclude_trial(base, first, probe),
            Phase::Losing { base } => self.conclude_loss(base, probe),
        }
    }

    /// Twice as many, if there may be.
    fn ramp_on(&mut self, base: Probe, last: bool) -> Option<(u16, Reason)> {
        let next = base.streams.saturating_mul(2).min(self.most);
        if last || next == base.streams || !base.network {
            self.hold(base.rate);
            return None;
        }
        self.phase = Phase::Ramping { base, last: false };
        Some((next, Reason::TryMore))
    }

    fn conclude_ramp(&mut self, base: Probe, last: bool, probe: Probe) -> Option<(u16, Reason)> {
        let enough = if last { BETTER_TRIAL } else { BETTER_RAMP };
        if probe.over(&base) >= enough {
            // Half as many have just been seen to be worse, whatever is lost: it need not be tried.
            self.path_loss = self.path_loss.max(probe.loss).max(LOSS);
            return self.ramp_on(probe, last);
        }
        let between = base.streams.midpoint(probe.streams);
        if last || between == base.streams {
            // More has just been tried.
            (self.upwards, self.step) = (false, 0);
            self.hold(base.rate);
            return Some((base.streams, Reason::Back));
        }
        self.phase = Phase::Ramping { base, last: true };
        Some((between, Reason::Back))
    }

    fn hold_on(&mut self, probe: Probe) -> Option<(u16, Reason)> {
        if !probe.network {
            self.held = None;
            return None;
        }
        let (mean, count) =
            self.held.map_or((probe, 1), |(mean, count)| (probe.with(&mean, count.min(HELD - 1)), count + 1));
        self.held = Some((mean, count));
        if count > 1 && self.is_lossy(&mean) {
            self.phase = Phase::Losing { base: mean };
            return Some(((mean.streams / 2).max(self.fewest), Reason::Loss));
        }
        if count < self.patience() { None } else { self.step_from(mean) }
    }

    /// Probes until the next trial.
    fn patience(&self) -> u32 {
        HELD.saturating_mul(1 << (self.fruitless / 2).min(HELD_MAX.ilog2())).min(HELD_MAX)
    }

    /// Loss that is neither small nor known to be the path's own.
    fn is_lossy(&self, probe: &Probe) -> bool {
        probe.loss > LOSS && probe.loss > self.path_loss * LOSS_RISEN && probe.streams > self.fewest
    }

    fn conclude_loss(&mut self, base: Probe, probe: Probe) -> Option<(u16, Reason)> {
        if probe.over(&base) >= 1.0 {
            self.hold(probe.rate);
            return None;
        }
        self.path_loss = base.loss;
        self.hold(base.rate);
        Some((base.streams, Reason::LossOfPath))
    }

    /// Tries a few more, or a few fewer.
    fn step_from(&mut self, base: Probe) -> Option<(u16, Reason)> {
        // A trial that goes too far costs at most a quarter of the rate while it lasts.
        let step = self.step.clamp((base.streams / 8).max(1), (base.streams / 4).max(1));
        let more = base.streams.saturating_add(step).min(self.most);
        let fewer = base.streams.saturating_sub(step).max(self.fewest);
        // At one of its bounds there is one direction only.
        self.upwards = if self.upwards { more > base.streams } else { fewer == base.streams };
        let (next, reason) = if self.upwards { (more, Reason::TryMore) } else { (fewer, Reason::TryFewer) };
        if next == base.streams {
            self.hold(base.rate);
            return None;
        }
        self.step = step;
        self.phase = Phase::Trial { base, first: None };
        Some((next, reason))
    }

    fn conclude_trial(&mut self, base: Probe, first: Option<Probe>, probe: Probe) -> Option<(u16, Reason)> {
        let measured = first.map_or(probe, |first| probe.with(&first, 1));
        if measured.over(&base) < BETTER_TRIAL {
            (self.upwards, self.step) = (!self.upwards, 0);
            self.fruitless = self.fruitless.saturating_add(1);
            self.hold(base.rate);
            return Some((base.streams, Reason::Back));
        }
        if first.is_none() {
            self.phase = Phase::Trial { base, first: Some(probe) };
            return None;
        }
        self.fruitless = 0;
        self.step = self.step.saturating_mul(2);
        if !measured.network {
            self.hold(measured.rate);
            return None;
        }
        self.step_from(measured)
    }

    /// Stays for some probes, where this rate is usual.
    fn hold(&mut self, usual: f64) {
        (self.phase, self.usual, self.held, self.fallen) = (Phase::Hold, usual, None, 0);
    }

    fn go_to(&mut self, streams: u16, reason: Reason, probe: &Probe) -> Option<Change> {
        let before = std::mem::replace(&mut self.streams, streams);
        (self.begun, self.complete, self.wanted, self.ignored) = (None, None, None, IGNORED);
        (before != streams).then_some(Change { streams, before, rate: probe.rate, loss: probe.loss, reason })
    }
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
