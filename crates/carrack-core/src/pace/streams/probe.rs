//! What a number of streams brings, measured over one stretch of a transfer.

use std::time::Duration;

use super::sample::{Processors, Sample};
use crate::pace::limit::{Stage, StageTimes, limit};

/// What a lost segment costs, in segments that arrive: others on the path lose as well. Falcon, from which this is,
/// takes ten; before a shaper with short queues that gave up a tenth of the rate to lose 3 % less.
const LOSS_COST: f64 = 5.0;
/// However much is lost, streams are not free.
const COST_MIN: f64 = 1.005;
/// Threads that work for less than this part of their host's processor time leave processors idle.
const IDLE: f64 = 0.9;

/// What a number of streams brings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub streams: u16,
    /// Probes that this is the mean of.
    pub count: u32,
    /// Bytes a second.
    pub rate: f64,
    /// Share of segments sent again.
    pub loss: f64,
    /// The rate is that of the streams, not one that was asked for.
    pub free: bool,
    /// More streams could bring more: what holds each back is not used up.
    pub roomy: bool,
}

impl Probe {
    /// From two samples of the same number of streams.
    pub fn between(begun: &Sample, now: &Sample, processors: Processors) -> Self {
        let time = now.at.saturating_sub(begun.at);
        let bytes = now.delivered.saturating_sub(begun.delivered);
        let (sent, again) = (now.segments.saturating_sub(begun.segments), now.repeated.saturating_sub(begun.repeated));
        let (source, destination) = (now.source.since(&begun.source), now.destination.since(&begun.destination));
        let stage = limit(&source, &destination).map(|limit| limit.stage);
        Self {
            streams: now.alive,
            count: 1,
            rate: bytes as f64 / time.as_secs_f64(),
            loss: if sent == 0 { 0.0 } else { again as f64 / sent as f64 },
            free: stage.is_some_and(|stage| !matches!(stage, Stage::RateLimit | Stage::Reader)),
            roomy: match stage {
                Some(Stage::SourceProcessors) => leaves_idle(&source, time, processors.source),
                Some(Stage::DestinationProcessors) => leaves_idle(&destination, time, processors.destination),
                Some(Stage::RateLimit | Stage::Reader) | None => false,
                // The path, or storage.
                Some(_) => true,
            },
        }
    }

    /// How much better it is than another, as a factor, where each stream costs a factor of `cost`.
    pub fn over(&self, other: &Self, cost: f64) -> f64 {
        let cost = (cost - self.loss.min(other.loss)).max(COST_MIN);
        let streams = i32::from(self.streams) - i32::from(other.streams);
        self.useful() / other.useful() / cost.powi(streams)
    }

    /// Whether the rate changed at least half as much as it would if each stream, or each one less, counted fully.
    pub fn grows_with_streams(&self, base: &Self) -> bool {
        let (more, fewer) = (self.streams.max(base.streams), self.streams.min(base.streams));
        self.rate / base.rate - 1.0 >= 0.5 * (f64::from(more) / f64::from(fewer) - 1.0)
    }

    /// The rate, less what its loss costs others on the path.
    fn useful(&self) -> f64 {
        self.rate * (1.0 - LOSS_COST * self.loss).max(0.1)
    }

    /// The mean of those before and this one, which counts as if they were no more than `most` together.
    pub fn after(&self, before: Option<Self>, most: u32) -> Self {
        let Some(before) = before else { return *self };
        let count = before.count.saturating_add(1).min(most);
        let towards = |mean: f64, this: f64| mean + (this - mean) / f64::from(count);
        Self { rate: towards(before.rate, self.rate), loss: towards(before.loss, self.loss), count, ..*self }
    }
}

/// Whether a host whose streams' threads worked like this for so long has processors that they do not use.
fn leaves_idle(threads: &StageTimes, time: Duration, processors: usize) -> bool {
    threads.work().as_secs_f64() < IDLE * processors as f64 * time.as_secs_f64()
}
