//! What holds a transfer back, from where its streams' threads spend their time.
//!
//! Each end measures for each stream how long it carried data, and how much of that it waited: for storage, for the
//! network, for the rate that was asked for. A sender that waits for the network may wait for a slow receiver, and a
//! receiver for a slow sender: only both together tell.

use std::time::Duration;

use crate::words::words;

/// Where the time of one end's streams went, summed over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// Carrying something, whatever of it was waiting.
    pub busy: Duration,
    /// Of that, waiting for storage: reads at the source, writes at the destination.
    pub storage: Duration,
    /// Of that, waiting until the connection took or gave something.
    pub network: Duration,
    /// Of that, waiting because of `--bwlimit`.
    pub pacing: Duration,
}

impl StageTimes {
    /// What has been added since an earlier state.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            storage: self.storage.saturating_sub(earlier.storage),
            network: self.network.saturating_sub(earlier.network),
            pacing: self.pacing.saturating_sub(earlier.pacing),
        }
    }

    /// The sum of these times and another's.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            busy: self.busy.saturating_add(other.busy),
            storage: self.storage.saturating_add(other.storage),
            network: self.network.saturating_add(other.network),
            pacing: self.pacing.saturating_add(other.pacing),
        }
    }

    /// As part of a longer time. The side whose streams carried something for less of it had nothing to carry
    /// meanwhile: it waited for the other, as it does within a block.
    fn over(&self, span: Duration) -> Self {
        let idle = span.saturating_sub(self.busy);
        Self { busy: self.busy.max(span), network: self.network.saturating_add(idle), ..*self }
    }

    fn share(&self, of: Duration) -> f64 {
        if self.busy.is_zero() { 0.0 } else { (of.as_secs_f64() / self.busy.as_secs_f64()).min(1.0) }
    }

    /// What is neither waiting nor idle: hashing, sealing, copying, and waiting for a processor to do it on.
    pub(super) fn work(&self) -> Duration {
        self.busy.saturating_sub(self.storage).saturating_sub(self.network).saturating_sub(self.pacing)
    }
}

words! {
    /// A stage that the others wait for.
    pub enum Stage {
        /// Reading from the source's storage.
        SourceStorage "source-storage" "the source's storage"
        /// Hashing and sealing there.
        SourceProcessors "source-processors" "the source's processors"
        Network "network" "the network"
        /// Opening and hashing there.
        DestinationProcessors "destination-processors" "the destination's processors"
        /// Writing to the destination's storage.
        DestinationStorage "destination-storage" "the destination's storage"
        RateLimit "rate-limit" "the rate limit"
        /// A pipe or a terminal that takes what the command prints.
        Reader "reader" "whoever reads the output"
        /// The receive window of one side, or the send buffer of the other, is smaller than what the path holds.
        Window "window" "TCP's windows"
        /// Packets are lost that no queue has dropped because it was full.
        Loss "loss" "lost packets"
        /// Nothing but the distance.
        RoundTrip "round-trip" "the round trip"
        /// Listing directories, opening files.
        SourceMetadata "source-metadata" "finding files at the source"
        /// Making files, giving them their names.
        DestinationMetadata "destination-metadata" "making files at the destination"
        /// Nothing came through between the hosts: the link was away, or a session was lost and not yet begun anew.
        NoLink "no-link" "no link between the hosts"
    }
}

/// What held a transfer back, and how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The slowest stage.
    pub stage: Stage,
    /// The part of their time that the streams of its side (of the network: of the side that waited less) spent on it,
    /// 0 to 1; of the reader, and of a link that is away, the part of the whole time.
    pub share: f64,
}

impl Limit {
    /// What it is and how much, for a sentence.
    pub fn words(&self) -> String {
        format!("{} ({})", self.stage.meaning(), self.amount())
    }

    /// How much, for a sentence.
    pub fn amount(&self) -> String {
        let of = if matches!(self.stage, Stage::Reader | Stage::NoLink) { "the time" } else { "the streams' time" };
        format!("{:.0} % of {of}", self.share * 100.0)
    }
}

/// Less than this in a stream's threads says nothing.
const BUSY_MIN: Duration = Duration::from_millis(50);
/// Both ends wait for each other: it is the path between them.
const BOTH_WAIT: f64 = 0.35;
/// More of their time than this, and the streams were as slow as they were asked to be.
const PACED: f64 = 0.3;

/// What holds a transfer back, from both ends' times over the same stretch; `None` when there was too little to tell.
pub fn limit(sender: &StageTimes, receiver: &StageTimes) -> Option<Limit> {
    let span = sender.busy.max(receiver.busy);
    if sender.busy.min(receiver.busy).is_zero() || span < BUSY_MIN {
        return None;
    }
    let (sender, receiver) = (&sender.over(span), &receiver.over(span));
    let (sends, receives) = (sender.share(sender.network), receiver.share(receiver.network));
    let paced = sender.share(sender.pacing);
    let (stage, share) = if paced > PACED {
        (Stage::RateLimit, paced)
    } else if sends.min(receives) > BOTH_WAIT {
        (Stage::Network, sends.min(receives))
    } else if sends > receives {
        slower(receiver, Stage::DestinationStorage, Stage::DestinationProcessors)
    } else {
        slower(sender, Stage::SourceStorage, Stage::SourceProcessors)
    };
    Some(Limit { stage, share })
}

fn slower(side: &StageTimes, storage: Stage, processors: Stage) -> (Stage, f64) {
    if side.storage > side.work() { (storage, side.share(side.storage)) } else { (processors, side.share(side.work())) }
}

/// Whether it was the reader of what the command says that held a transfer back: for more than half of
/// the time it was waited for.
pub fn reader(waited: Duration, of: Duration) -> Option<Limit> {
    let share = if of.is_zero() { 0.0 } else { (waited.as_secs_f64() / of.as_secs_f64()).min(1.0) };
    (of >= BUSY_MIN && share > 0.5).then_some(Limit { stage: Stage::Reader, share })
}

/// Watches the rate, and says when it has fallen for good.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateWatch {
    usual: Option<f64>,
}

impl RateWatch {
    /// A rate below this part of what was usual is told.
    const FALLEN: f64 = 0.7;
    /// Weight of the newest rate in what is usual.
    const WEIGHT: f64 = 0.3;

    /// Takes the rate over the latest stretch, in bytes a second; what was usual before, when the new one is far below.
    /// Then the new one is what is usual from now on, so that it is told once.
    pub fn fallen(&mut self, rate: f64) -> Option<f64> {
        let usual = self.usual.unwrap_or(rate);
        if rate < usual * Self::FALLEN {
            self.usual = Some(rate);
            return Some(usual);
        }
        self.usual = Some(usual + (rate - usual) * Self::WEIGHT);
        None
    }
}

/// Where a rate fell, and how far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepDown {
    /// Seconds from the beginning to the fall.
    pub at: f64,
    /// Bytes a second before it,
    pub before: f64,
    /// and after it.
    pub after: f64,
}

/// Less than so much after a fall says nothing, in seconds.
const AFTER_SECONDS: f64 = 2.5;
/// One step explains the rates if what it leaves unexplained is no more than this part.
const UNEXPLAINED: f64 = 0.5;

/// The one moment at which the rate fell: of all, the one whose two means leave the least unexplained. Each interval is
/// so many seconds and so many bytes. `None` where no single fall to less than what [`RateWatch`] tells explains them,
/// with so many seconds before it at least.
pub fn step_down(intervals: &[(f64, f64)], before_seconds: f64) -> Option<StepDown> {
    let sums = |part: &[(f64, f64)]| part.iter().fold((0.0, 0.0), |(time, bytes), one| (time + one.0, bytes + one.1));
    let spread = |part: &[(f64, f64)]| {
        let (time, bytes) = sums(part);
        let mean = bytes / time;
        part.iter().map(|(seconds, bytes)| (bytes / seconds - mean).powi(2) * seconds).sum::<f64>()
    };
    let sides = |at: usize| {
        let (before, after) = intervals.split_at(at);
        let ((time, bytes), (time_after, bytes_after)) = (sums(before), sums(after));
        let falls = bytes_after / time_after < bytes / time * RateWatch::FALLEN;
        let step = StepDown { at: time, before: bytes / time, after: bytes_after / time_after };
        (time >= before_seconds && time_after >= AFTER_SECONDS && falls).then(|| (spread(before) + spread(after), step))
    };
    if intervals.iter().any(|(seconds, bytes)| *seconds <= 0.0 || !bytes.is_finite()) {
        return None;
    }
    let (left, step) = (1..intervals.len()).filter_map(sides).min_by(|one, other| one.0.total_cmp(&other.0))?;
    (left <= spread(intervals) * UNEXPLAINED).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(storage: u64, network: u64, pacing: u64) -> StageTimes {
        let seconds = Duration::from_secs;
        StageTimes { busy: seconds(100), storage: seconds(storage), network: seconds(network), pacing: seconds(pacing) }
    }

    #[test]
    fn slowest_stage_is_named() {
        let cases = [
            // Both wait for each other.
            (times(5, 80, 0), times(5, 80, 0), Stage::Network),
            // The sender waits, the receiver writes.
            (times(5, 85, 0), times(80, 10, 0), Stage::DestinationStorage),
            // The sender waits, the receiver hashes.
            (times(5, 85, 0), times(10, 10, 0), Stage::DestinationProcessors),
            // The receiver waits, the sender reads.
            (times(80, 5, 0), times(5, 85, 0), Stage::SourceStorage),
            // The receiver waits, the sender hashes.
            (times(10, 5, 0), times(5, 85, 0), Stage::SourceProcessors),
            // The sender reads a block before it begins to send it: the receiver has nothing before
            // it, and is quick with it.
            (times(90, 2, 0), StageTimes { busy: Duration::from_secs(3), ..times(1, 1, 0) }, Stage::SourceStorage),
            // As slow as asked.
            (times(1, 1, 90), times(1, 95, 0), Stage::RateLimit),
            // Two processors do everything in one machine: the sender is the busier.
            (times(5, 10, 0), times(10, 30, 0), Stage::SourceProcessors),
        ];
        for (sender, receiver, stage) in cases {
            let found = limit(&sender, &receiver).map(|limit| limit.stage);
            assert_eq!(found, Some(stage), "{sender:?} {receiver:?}");
        }
        let share = limit(&times(5, 85, 0), &times(80, 10, 0)).map(|limit| limit.share);
        assert!(share.is_some_and(|share| (share - 0.8).abs() < 1e-9), "{share:?}");
        assert_eq!(limit(&StageTimes::default(), &times(1, 1, 1)), None);
        let seconds = Duration::from_secs;
        assert_eq!(reader(seconds(8), seconds(10)).map(|limit| limit.stage), Some(Stage::Reader));
        assert_eq!(reader(seconds(4), seconds(10)), None);
        assert_eq!(reader(seconds(0), seconds(0)), None);
    }

    #[test]
    fn limit_counts_only_the_latest_stretch() {
        let (early, late) = (times(90, 5, 0), times(95, 95, 3));
        let since = late.since(&early);
        assert_eq!(since.storage, Duration::from_secs(5));
        assert_eq!(since.network, Duration::from_secs(90));
        assert_eq!(early.plus(&since).network, late.network);
    }

    #[test]
    fn fall_is_placed_where_it_was() {
        let seconds = |rates: &[f64]| rates.iter().map(|rate| (1.0, *rate)).collect::<Vec<_>>();
        // Slow start, then 48 for four seconds, then 8.
        let rates = seconds(&[20.0, 48.0, 49.0, 47.0, 48.0, 30.0, 8.0, 8.0, 9.0, 8.0, 7.0, 8.0]);
        let step_down = |intervals: &[(f64, f64)]| super::step_down(intervals, 2.5);
        let step = step_down(&rates).unwrap();
        assert!((5.0..=6.0).contains(&step.at) && step.after < 12.0 && step.before > 40.0, "{step:?}");
        // A second that is quick, and then slow ones: a fall for whoever knows that it fell.
        let burst = seconds(&[130.0, 6.6, 6.3, 6.6, 7.1, 6.3]);
        assert_eq!(step_down(&burst), None);
        assert_eq!(super::step_down(&burst, 0.5).map(|step| step.at), Some(1.0));
        // Growth, noise, and a short last second are no fall.
        assert_eq!(step_down(&seconds(&[8.0, 8.0, 8.0, 8.0, 48.0, 48.0, 48.0, 48.0])), None);
        assert_eq!(step_down(&seconds(&[50.0, 20.0, 48.0, 22.0, 50.0, 19.0, 47.0, 20.0, 30.0, 28.0])), None);
        assert_eq!(step_down(&seconds(&[50.0, 50.0, 50.0, 50.0, 50.0, 10.0])), None);
        for none in [&[][..], &[(1.0, 5.0)], &[(0.0, 5.0), (1.0, 5.0)], &[(1.0, f64::NAN), (1.0, 1.0)]] {
            assert_eq!(step_down(none), None);
        }
    }

    #[test]
    fn rate_fall_is_told_once_and_noise_is_not() {
        let mut watch = RateWatch::default();
        for rate in [200.0, 190.0, 205.0, 170.0, 200.0] {
            assert_eq!(watch.fallen(rate), None, "{rate}");
        }
        let usual = watch.fallen(130.0);
        assert!(usual.is_some_and(|usual| usual > 180.0 && usual < 210.0), "{usual:?}");
        for rate in [138.0, 138.0, 200.0, 200.0] {
            assert_eq!(watch.fallen(rate), None, "{rate}");
        }
        assert!(watch.fallen(100.0).is_some());
    }
}
