//! How many streams, found out while a transfer runs: the rate that some bring is measured, others are tried, and the
//! better number stays. Pure: samples in, changes out.
//!
//! # What is better
//! `rate · (1 - 5 · loss) / K^streams`. Each stream has to earn its part in the path: with K = 1.01, one per cent (of a
//! polite transfer five). And what is lost on the way, as the share of segments that are sent again, counts five times:
//! where that comes with more streams, the path is crowded, and others lose as well. On a path that loses packets by
//! itself it does not come with them; it is the same for any number, and falls out of the comparison. There a window is
//! halved so often that only more of them fill the path, so they are cheaper: K is less by the smaller of the two
//! shares that are compared, which the path's own cannot exceed.
//!
//! Fewer streams have to be better by this measure, and besides as fast: at least 98 % of the best mean rate of the
//! last minute (the *anchor*). So many small steps down cannot add up to a slow transfer.
//!
//! # When more could be better
//! When the network or storage holds the transfer back, and when the streams' own threads do while their host has
//! processors that they do not use. Where all processors are busy, only fewer are tried; where the rate is the one that
//! was asked for, nothing is.
//!
//! # How it is looked for
//! 1. **Begin**: from few streams a *ramp*, twice as many as long as that is 5 % better; then once half way between the
//!    last that was better and the first that was not. From many streams, which are a guess, half as many as long as
//!    that is as fast; if the first half is slower, a ramp.
//! 2. **Hold** for four probes, then a **trial** of an eighth more or less, confirmed by further probes (the more, the
//!    less even the rate is). More is kept if 2 % better, fewer if better and as fast. What is kept is followed at once
//!    by a step twice as wide, up to a quarter, or, where the rate grew with the number, by a ramp; what is not is
//!    undone, and the pause before the next trial in that direction becomes twice as long.
//! 3. A rate that is less than 70 % of the usual one for three probes: a ramp again.
//! 4. More than 1 % of the segments are lost: half as many are tried. If that is better, the path was crowded, and it
//!    stays. Otherwise the loss is the path's own: the streams come back, and that share is taken for granted from then
//!    on, as is what a ramp has accepted.
//!
//! A number that an earlier transfer of the pair found is held at once, if the rate is about what it was then. If it is
//! not, the path or storage has changed: what follows is what follows without it, from that number where the rate is
//! higher, else from the number that would have been the guess.
//!
//! A bound never closes a direction: it is tried again after its pause. The fewest streams are left for fewer only if
//! that is 2 % faster, and streams that a host did not take are asked for again after a minute.
//!
//! A probe takes two seconds, after one that is not counted where the number has changed. Nothing is concluded from a
//! probe in which streams came or went, small files went by, or nothing at all arrived; and near the end nothing is
//! tried any more.

mod anchor;
mod direction;
mod gauge;
#[cfg(test)]
pub(super) mod noise;
mod probe;
mod sample;
#[cfg(test)]
mod simulation;

use std::time::Duration;

use self::anchor::Anchor;
use self::direction::Direction;
use self::gauge::Gauge;
use self::probe::Probe;
pub use self::sample::{Change, KeptStart, Processors, Reason, Sample};
use crate::limits;
use crate::tuning::Tuning;

/// So long streams that were asked for may take to be made.
const MAKING: Duration = Duration::from_secs(10);
/// Streams that could not be made are asked for again after this.
const REFUSED: Duration = Duration::from_secs(60);
/// A change has to pay within what is left.
const PROBES_LEFT: f64 = 4.0;
/// The factor by which each stream must raise the rate.
const COST: f64 = 1.01;
/// The same for a polite transfer.
const COST_POLITE: f64 = 1.05;
/// Better in a ramp, and in a trial.
const BETTER_RAMP: f64 = 1.05;
/// See [`BETTER_RAMP`].
const BETTER_TRIAL: f64 = 1.02;
/// As fast as the best mean of the last minute: at least this part of it.
const AS_FAST: f64 = 0.98;
/// A probe of half as many streams that is slower by more than this part is not looked at twice.
const SLOWER: f64 = 0.1;
/// More streams to begin with are a guess that is tested downwards.
const FEW: u16 = 8;
/// Where trials of more are not kept there is no need to make and end streams all the time.
const MORE_HELD_MAX: u32 = 40;
/// Trials of fewer cost part of the rate.
const FEWER_HELD_MAX: u32 = 160;
/// Probes that the mean of a held number is made of.
const MEAN_OF: u32 = 8;
/// A rate that is less than this part of the usual one, for so many probes, is another path.
const FALLEN: f64 = 0.7;
/// See [`FALLEN`].
const FALLEN_PROBES: u32 = 3;
/// Weight of the newest rate in the usual one.
const WEIGHT: f64 = 0.3;
/// Where probes differ by more than this part, as a standard deviation, small steps show nothing.
const UNEVEN: f64 = 0.15;
/// Loss above this is looked into.
const LOSS: f64 = 0.01;
/// Loss that is so many times what is taken for the path's own is not the path's own.
const LOSS_RISEN: f64 = 2.0;
/// The rate is about that of an earlier transfer: at least this part of it, and no more than it divided by this.
const AS_BEFORE: f64 = 0.7;
/// Fewer are used only if they are faster: where one packet is lost, more than a window should be left.
const STREAMS_MIN: u16 = 4;

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// A first measurement, then more are tried, or fewer.
    Begin { upwards: bool },
    /// A first measurement of what an earlier transfer found.
    Kept(KeptStart),
    /// More are tried; `base` is the best so far, and with `last` nothing is tried after this.
    Ramping { base: Probe, last: bool },
    /// Half as many as in `base` are tried, after `from` at first.
    Halving { base: Probe, from: u16 },
    /// At the best that is known.
    Hold,
    /// A step from `base`.
    Trial { base: Probe },
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
    /// More could not be made, until then.
    refused: Option<(u16, Duration)>,
    /// The factor by which each stream must raise the rate.
    cost: f64,
    phase: Phase,
    /// The last trial was of more.
    upwards: bool,
    /// The next trial is of so many more or fewer.
    step: u16,
    more: Direction,
    fewer: Direction,
    anchor: Anchor,
    gauge: Gauge,
    /// The time of the newest sample.
    now: Duration,
    /// Since when this number is wanted.
    wanted: Option<Duration>,
    /// The usual rate while a number is held.
    usual: f64,
    /// A number has been held: what was looked for has been found.
    has_held: bool,
    /// The mean of the probes of the number that there is.
    tally: Option<Probe>,
    /// What is known of the number that is gone back to.
    known: Option<Probe>,
    /// Probes since this number is held.
    held: u32,
    /// Probes in a row that were far below it.
    fallen: u32,
    /// Share of segments that is taken for the path's own loss.
    path_loss: f64,
}

impl StreamControl {
    /// Begins with so many streams between hosts with so many processors. A polite transfer leaves more of a path to
    /// others.
    pub fn new(tuning: &Tuning, streams: u16, processors: Processors, polite: bool) -> Self {
        let most = most_found(tuning, processors);
        Self {
            streams,
            fewest: streams.min(STREAMS_MIN),
            most: most.max(streams),
            refused: None,
            cost: if polite { COST_POLITE } else { COST },
            phase: Phase::Begin { upwards: streams <= FEW },
            upwards: false,
            step: 0,
            more: Direction::default(),
            fewer: Direction::default(),
            anchor: Anchor::default(),
            gauge: Gauge::new(processors, tuning.bundled_file_bytes_max),
            now: Duration::ZERO,
            wanted: None,
            usual: 0.0,
            has_held: false,
            tally: None,
            known: None,
            held: 0,
            fallen: 0,
            path_loss: 0.0,
        }
    }

    /// The same, begun with what an earlier transfer of the pair has found.
    #[must_use]
    pub fn kept(self, kept: KeptStart) -> Self {
        Self { phase: Phase::Kept(kept), ..self }
    }

    /// The best number of streams that is known and bytes a second with it, once the search for it has come to rest.
    pub fn found(&self) -> Option<(u16, f64)> {
        let (Phase::Ramping { base, .. }
        | Phase::Halving { base, .. }
        | Phase::Trial { base }
        | Phase::Losing { base }) = self.phase
        else {
            return matches!(self.phase, Phase::Hold).then_some((self.streams, self.usual));
        };
        self.has_held.then_some((base.streams, base.rate))
    }

    /// So many are wanted now, some of them maybe on trial.
    pub fn streams(&self) -> u16 {
        self.streams
    }

    /// The best number of streams that is known.
    pub fn best(&self) -> u16 {
        match self.phase {
            Phase::Ramping { base, .. }
            | Phase::Halving { base, .. }
            | Phase::Trial { base }
            | Phase::Losing { base } => base.streams,
            Phase::Begin { .. } | Phase::Kept(_) | Phase::Hold => self.streams,
        }
    }

    /// Takes a sample, and says what is to be changed.
    pub fn handle_sample(&mut self, sample: Sample) -> Option<Change> {
        self.now = sample.at;
        if let Some(change) = self.not_made(&sample) {
            return Some(change);
        }
        let probe = self.gauge.handle_sample(sample, self.streams)?;
        let again = self.has_fallen(&probe);
        if self.is_near_the_end(&sample, &probe) {
            return self.give_back(&probe);
        }
        if again {
            (self.more, self.fewer) = (Direction::default(), Direction::default());
            self.anchor = Anchor::default();
            // What was measured before the rate fell says nothing of the path as it is.
            self.tally = None;
            self.phase = Phase::Begin { upwards: true };
        }
        let (streams, reason) = self.conclude(probe)?;
        self.go_to(streams, reason, &probe)
    }

    /// Streams that do not come, because the path or a host takes no more, are not waited for.
    fn not_made(&mut self, sample: &Sample) -> Option<Change> {
        let since = *self.wanted.get_or_insert(sample.at);
        let (Phase::Ramping { base, .. } | Phase::Trial { base }) = self.phase else { return None };
        if sample.alive >= self.streams || self.streams < base.streams || sample.at < since + MAKING {
            return None;
        }
        self.refused = Some((sample.alive.max(base.streams), sample.at.saturating_add(REFUSED)));
        self.hold(base.rate);
        self.go_to(base.streams, Reason::NotMade, &base)
    }

    /// The most streams that may be asked for now.
    fn most(&self) -> u16 {
        let refused = self.refused.filter(|(_, until)| self.now < *until);
        refused.map_or(self.most, |(most, _)| self.most.min(most))
    }

    /// Whether the rate has been far below the usual one for long enough.
    fn has_fallen(&mut self, probe: &Probe) -> bool {
        if !matches!(self.phase, Phase::Hold) || !probe.roomy {
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
        let needed = probe.rate * gauge::TIME.as_secs_f64() * PROBES_LEFT;
        sample.left.is_some_and(|left| (left as f64) < needed)
    }

    /// What was taken away on trial and is missed.
    fn give_back(&mut self, probe: &Probe) -> Option<Change> {
        let (Phase::Trial { base } | Phase::Halving { base, .. } | Phase::Losing { base }) = self.phase else {
            return None;
        };
        if probe.streams >= base.streams || probe.over(&base, self.cost) >= 1.0 {
            return None;
        }
        self.hold(base.rate);
        self.go_to(base.streams, Reason::Back, probe)
    }

    /// What follows from a probe: another number, and why.
    fn conclude(&mut self, probe: Probe) -> Option<(u16, Reason)> {
        match self.phase {
            Phase::Begin { upwards } => self.begin(upwards, probe),
            Phase::Kept(kept) => self.compare_with_kept(kept, probe),
            Phase::Ramping { base, last } => self.conclude_ramp(base, last, probe),
            Phase::Halving { base, from } => self.conclude_halving(base, from, probe),
            Phase::Hold => self.hold_on(probe),
            Phase::Trial { base } => self.conclude_trial(base, probe),
            Phase::Losing { base } => self.conclude_loss(base, probe),
        }
    }

    /// After the first measurement. It waits until the streams can tell something.
    fn begin(&mut self, upwards: bool, probe: Probe) -> Option<(u16, Reason)> {
        if !probe.free || (upwards && !probe.roomy) {
            self.tally = None;
            return None;
        }
        let measured = self.count(probe);
        if measured.count < self.probes_needed() {
            return None;
        }
        self.remember(&measured);
        if self.is_lossy(&measured) {
            return Some(self.lose(measured));
        }
        if upwards { self.ramp_on(measured, false) } else { self.halve(measured, measured.streams) }
    }

    /// After the first measurement of what an earlier transfer found.
    fn compare_with_kept(&mut self, kept: KeptStart, probe: Probe) -> Option<(u16, Reason)> {
        if !probe.free {
            self.tally = None;
            return None;
        }
        let measured = self.count(probe);
        if measured.rate >= kept.rate * AS_BEFORE && measured.rate <= kept.rate / AS_BEFORE {
            self.remember(&measured);
            self.hold(measured.rate);
            return None;
        }
        if measured.rate > kept.rate {
            (self.phase, self.tally) = (Phase::Begin { upwards: true }, None);
            return self.begin(true, probe);
        }
        self.phase = Phase::Begin { upwards: kept.guess <= FEW };
        Some((kept.guess, Reason::PathChanged))
    }

    /// The mean of this probe and those before of the same number.
    fn count(&mut self, probe: Probe) -> Probe {
        let mean = probe.after(self.tally, MEAN_OF);
        self.tally = Some(mean);
        mean
    }

    /// Probes of a number from which something is concluded: of an uneven rate one says little.
    fn probes_needed(&self) -> u32 {
        match self.gauge.uneven() {
            uneven if uneven < UNEVEN / 3.0 => 1,
            uneven if uneven < UNEVEN => 2,
            _ => 3,
        }
    }

    /// Fewer streams have to be as fast as this. Of an uneven rate only so much counts as is certain.
    fn remember(&mut self, mean: &Probe) {
        let certain = 1.0 - self.gauge.uneven() / f64::from(mean.count).sqrt();
        self.anchor.add(self.now, mean.rate * certain.max(0.0));
    }

    /// How far the ratio of two means may be from the truth.
    fn doubt(&self, one: &Probe, other: &Probe) -> f64 {
        self.gauge.uneven() * (1.0 / f64::from(one.count) + 1.0 / f64::from(other.count)).sqrt()
    }

    /// Twice as many, if there may be.
    fn ramp_on(&mut self, base: Probe, last: bool) -> Option<(u16, Reason)> {
        let next = base.streams.saturating_mul(2).min(self.most());
        if last || next <= base.streams || !base.roomy {
            self.hold(base.rate);
            return None;
        }
        self.phase = Phase::Ramping { base, last: false };
        Some((next, Reason::TryMore))
    }

    fn conclude_ramp(&mut self, base: Probe, last: bool, probe: Probe) -> Option<(u16, Reason)> {
        let measured = self.count(probe);
        let enough = if last { BETTER_TRIAL } else { BETTER_RAMP };
        let better = measured.over(&base, self.cost);
        // A rate that grew only a little may have done so by chance.
        let needed = self.probes_needed() + u32::from(!measured.grows_with_streams(&base));
        if better >= enough - self.doubt(&measured, &base) && measured.count < needed {
            return None;
        }
        if better >= enough {
            self.remember(&measured);
            // Half as many have just been seen to be worse, whatever is lost: it need not be tried.
            self.path_loss = self.path_loss.max(measured.loss).max(LOSS);
            return self.ramp_on(measured, last);
        }
        let between = base.streams.midpoint(probe.streams);
        if last || between == base.streams {
            self.step = 0;
            self.more.delay();
            self.hold(base.rate);
            return Some((base.streams, Reason::Back));
        }
        self.phase = Phase::Ramping { base, last: true };
        Some((between, Reason::Back))
    }

    /// Half as many, if there may be.
    fn halve(&mut self, base: Probe, from: u16) -> Option<(u16, Reason)> {
        let next = base.streams / 2;
        if next == 0 {
            self.hold(base.rate);
            return None;
        }
        self.phase = Phase::Halving { base, from };
        Some((next, Reason::TryFewer))
    }

    fn conclude_halving(&mut self, base: Probe, from: u16, probe: Probe) -> Option<(u16, Reason)> {
        let measured = self.count(probe);
        let as_fast = self.is_as_fast(&measured, &base);
        let doubt = self.doubt(&measured, &base).max(SLOWER);
        let best = self.anchor.best(self.now);
        let clear = measured.rate < (1.0 - doubt) * best || measured.rate > (1.0 + doubt) * best;
        if !clear && measured.count < self.probes_needed() + u32::from(!as_fast) {
            return None;
        }
        if as_fast {
            // A lucky probe is no measure for those that follow.
            if measured.count >= self.probes_needed() {
                self.remember(&measured);
            }
            return self.halve(measured, from);
        }
        // What lies between is tried next.
        self.upwards = true;
        // Where the first half was too few, all of them may have been.
        let more = base.streams.saturating_mul(2).min(self.most());
        if base.streams < from || !base.roomy || more <= base.streams {
            self.hold(base.rate);
            return Some((base.streams, Reason::Back));
        }
        self.phase = Phase::Ramping { base, last: false };
        Some((more, Reason::TryMore))
    }

    /// Whether fewer streams than in `base` are better, and not slower.
    fn is_as_fast(&self, fewer: &Probe, base: &Probe) -> bool {
        let faster = if fewer.streams < self.fewest { BETTER_TRIAL } else { AS_FAST };
        fewer.over(base, self.cost) > 1.0 && fewer.rate >= faster * self.anchor.best(self.now)
    }

    fn hold_on(&mut self, probe: Probe) -> Option<(u16, Reason)> {
        if !probe.free {
            self.tally = None;
            return None;
        }
        let mean = self.count(probe);
        self.held = self.held.saturating_add(1);
        if mean.count > 1 && self.is_lossy(&mean) {
            return Some(self.lose(mean));
        }
        self.more.waited = self.more.waited.saturating_add(1);
        self.fewer.waited = self.fewer.waited.saturating_add(1);
        if self.held < direction::HELD { None } else { self.step_from(mean) }
    }

    /// Loss that is neither small nor known to be the path's own.
    fn is_lossy(&self, probe: &Probe) -> bool {
        probe.loss > LOSS && probe.loss > self.path_loss * LOSS_RISEN && probe.streams > self.fewest
    }

    fn lose(&mut self, base: Probe) -> (u16, Reason) {
        self.phase = Phase::Losing { base };
        ((base.streams / 2).max(self.fewest), Reason::Loss)
    }

    fn conclude_loss(&mut self, base: Probe, probe: Probe) -> Option<(u16, Reason)> {
        if probe.over(&base, self.cost) >= 1.0 {
            // The rate of a crowded path is no measure for what is left to others.
            self.anchor = Anchor::default();
            self.hold(probe.rate);
            return None;
        }
        self.path_loss = base.loss;
        self.hold(base.rate);
        Some((base.streams, Reason::LossOfPath))
    }

    /// Tries a few more, or a few fewer, if it is time to.
    fn step_from(&mut self, base: Probe) -> Option<(u16, Reason)> {
        self.remember(&base);
        let (more, fewer) = (self.more.is_due(MORE_HELD_MAX), self.fewer.is_due(FEWER_HELD_MAX));
        let directions = if self.upwards { [(fewer, false), (more, true)] } else { [(more, true), (fewer, false)] };
        directions.into_iter().filter(|(due, _)| *due).find_map(|(_, upwards)| self.step(base, upwards))
    }

    /// Tries a step in this direction; where a bound is in the way, that waits.
    fn step(&mut self, base: Probe, upwards: bool) -> Option<(u16, Reason)> {
        if upwards != self.upwards {
            self.step = 0;
        }
        // A trial that goes too far costs at most a quarter of the rate while it lasts. Where the rate is uneven, a
        // small step shows nothing.
        let (least, most) = if self.gauge.uneven() < UNEVEN { (8, 4) } else { (3, 2) };
        let step = self.step.clamp((base.streams / least).max(1), (base.streams / most).max(1));
        let (next, reason, possible) = if upwards {
            let next = base.streams.saturating_add(step).min(self.most());
            (next, Reason::TryMore, base.roomy && next > base.streams)
        } else {
            let next = base.streams.saturating_sub(step).max(1);
            (next, Reason::TryFewer, next < base.streams)
        };
        if !possible {
            self.direction(upwards).delay();
            return None;
        }
        (self.upwards, self.step) = (upwards, step);
        self.phase = Phase::Trial { base };
        Some((next, reason))
    }

    fn direction(&mut self, upwards: bool) -> &mut Direction {
        if upwards { &mut self.more } else { &mut self.fewer }
    }

    fn conclude_trial(&mut self, base: Probe, probe: Probe) -> Option<(u16, Reason)> {
        let measured = self.count(probe);
        let upwards = measured.streams > base.streams;
        let better =
            if upwards { measured.over(&base, self.cost) >= BETTER_TRIAL } else { self.is_as_fast(&measured, &base) };
        let hopeless = measured.rate < (1.0 - 1.5 * self.doubt(&measured, &base)) * base.rate;
        let needed = self.probes_needed() + 1;
        if measured.count < needed && (better || (needed > 2 && !hopeless)) {
            return None;
        }
        if !better {
            self.step = 0;
            self.direction(upwards).fail();
            self.hold(base.rate);
            self.known = Some(base);
            return Some((base.streams, Reason::Back));
        }
        self.remember(&measured);
        (self.more, self.fewer) = (Direction::default(), Direction::default());
        self.step = self.step.saturating_mul(2);
        if measured.grows_with_streams(&base) {
            return if upwards { self.ramp_on(measured, false) } else { self.halve(measured, base.streams) };
        }
        let next = self.step(measured, upwards);
        if next.is_none() {
            self.hold(measured.rate);
        }
        next
    }

    /// Stays for some probes, where this rate is usual.
    fn hold(&mut self, usual: f64) {
        (self.phase, self.usual, self.fallen) = (Phase::Hold, usual, 0);
        (self.tally, self.held, self.has_held) = (None, 0, true);
    }

    fn go_to(&mut self, streams: u16, reason: Reason, probe: &Probe) -> Option<Change> {
        let before = std::mem::replace(&mut self.streams, streams);
        self.gauge.handle_change();
        (self.wanted, self.tally) = (None, self.known.take());
        (before != streams).then_some(Change { streams, before, rate: probe.rate, loss: probe.loss, reason })
    }
}

/// The most streams that may be found better, between hosts with so many processors.
pub fn most_found(tuning: &Tuning, processors: Processors) -> u16 {
    let found_max = usize::from(tuning.streams_found_max).max(processors.fewest());
    let most = processors.fewest().saturating_mul(usize::from(tuning.streams_per_processor)).min(found_max);
    u16::try_from(most).unwrap_or(u16::MAX).min(limits::STREAMS)
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
