//! What of the path between two hosts held a copy back, by what the sender's kernel counted: windows, a queue that is
//! full, lost packets, the distance.

use super::stretch::{Fact, Stretch};
use super::{InterfaceCounts, Point, Sample, StreamSample, TcpState};
use crate::pace::limit::Stage;

/// TCP says that a window held it back for this part of its time.
const WINDOW_LIMITED: f64 = 0.2;
/// TCP says that a window which is not filled held it back for this part of its time: whoever takes the bytes is slow.
const RELAYED: f64 = 0.6;
/// What is in flight is at least this part of what the window allows: a window that is the limit is full but for the
/// moments in which a thread does not get its processor.
const WINDOW_FILLED: f64 = 0.6;
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
/// A card that carries this part of its speed is full: the rest are gaps and preambles, which nobody counts.
const CARD_FULL: f64 = 0.9;

/// The path, as the sender's kernel saw it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathCounted {
    /// Share of the segments sent again, without those of times in which packets waited in a queue.
    resent: f64,
    timeouts: f64,
    /// Packets waited in a queue: it is full.
    is_queued: bool,
    rwnd_limited: f64,
    sndbuf_limited: f64,
    rtt_us: f64,
    min_rtt_us: f64,
    window_bytes: f64,
    cwnd_bytes: f64,
    in_flight_bytes: f64,
    /// The card of one of the ends carries all that it can.
    fills_card: bool,
    /// The part of the window that is in flight; `None` of a kernel that does not tell the window: before Linux 5.4.
    filled: Option<f64>,
}

/// Round trips of one sample, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Trips {
    /// That of the middle stream,
    middle: f64,
    /// how far it fluctuates,
    varies: f64,
    /// and the shortest that the middle one has seen.
    middle_shortest: f64,
    /// The shortest that any stream has seen; 0 of a kernel that does not tell: before Linux 4.6.
    shortest: f64,
    /// The shortest that any stream has now.
    now: f64,
    /// The shortest of those that have carried about as much as the others, where these are several; else 0.
    several_now: f64,
}

impl Trips {
    /// What is told of all streams together are the longest; it counts where no stream is told of by itself. The middle
    /// stream is that of the bytes that have been carried since the sample `before`: one that carries nothing tells the
    /// trips of long ago.
    fn of(sample: &Sample, before: &Sample) -> Self {
        let delivered = |stream: &StreamSample| stream.counts.delivered;
        let carried = |stream: &StreamSample| {
            let earlier = before.streams.iter().find(|earlier| earlier.number == stream.number);
            delivered(stream).saturating_sub(earlier.map_or(0, delivered))
        };
        let told = sample.streams.iter().filter(|stream| stream.state.rtt_us > 0);
        let carried: Vec<(&TcpState, u64)> = told.map(|stream| (&stream.state, carried(stream))).collect();
        let states = || carried.iter().map(|(state, _)| *state);
        // Where none has carried anything, each counts as much.
        let none = carried.iter().all(|(_, bytes)| *bytes == 0);
        let weight = |bytes: u64| if none { 1 } else { u128::from(bytes) };
        let all: u128 = carried.iter().map(|(_, bytes)| weight(*bytes)).sum();
        // Those of an equal part, or nearly: the others have said little since they began.
        let most = 2 * carried.len() as u128;
        let carries = |bytes: u64| bytes > 0 && u128::from(bytes) * most >= all;
        let carrying = || carried.iter().filter(|(_, bytes)| carries(*bytes)).map(|(state, _)| state.rtt_us);
        let several_now = if carrying().count() > 1 { carrying().min() } else { None };
        let middle = |value: fn(&TcpState) -> u64| {
            let up_to = |most: u64| -> u128 {
                carried.iter().filter(|(state, _)| value(state) <= most).map(|(_, bytes)| weight(*bytes)).sum()
            };
            states().map(value).filter(|most| up_to(*most) > all / 2).min()
        };
        let shortest = states().map(|state| state.min_rtt_us).filter(|us| *us > 0).min();
        let all = &sample.state;
        let least = shortest.unwrap_or(all.min_rtt_us);
        Self {
            middle: middle(|state| state.rtt_us).unwrap_or(all.rtt_us) as f64,
            varies: middle(|state| state.rtt_var_us).unwrap_or(0) as f64,
            middle_shortest: middle(|state| state.min_rtt_us).filter(|us| *us > 0).unwrap_or(least) as f64,
            shortest: least as f64,
            now: states().map(|state| state.rtt_us).min().unwrap_or(all.rtt_us) as f64,
            several_now: several_now.unwrap_or(0) as f64,
        }
    }

    /// Whether packets wait in a queue: round trips are longer than the shortest one of the path, by more than they
    /// fluctuate. A stream that has never seen a trip as short as another's has met a queue each time.
    fn are_queued(&self, shortest: f64) -> bool {
        let queued = self.middle - shortest;
        let is_long = queued > QUEUED_US.max(QUEUED * shortest) && queued > self.varies;
        is_long || self.middle_shortest - shortest > QUEUED_US
    }

    /// Whether each of several streams waits at the same time: then a full queue has dropped what is lost. Where others
    /// keep the queue from being empty, the shortest trip that was seen is long itself, and the wait a small part of
    /// it. A stream's own bursts are no queue that all meet.
    fn all_wait(&self, shortest: f64) -> bool {
        self.several_now - shortest > QUEUED_US && self.middle - shortest > self.varies
    }
}

/// What was sent again while packets waited in a queue, and while they did not.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    queued_us: u64,
    lossy_us: u64,
    all_us: u64,
    /// Without a queue: sent again, and all.
    resent: u64,
    segments: u64,
}

impl Losses {
    fn of(source: Stretch<'_>, span_us: u64, shortest: f64) -> Self {
        let began_us = source.points.last().map_or(0, |last| last.at_us.saturating_sub(span_us));
        let (mut before, mut losses) = ((began_us, source.before), Self::default());
        for Point { at_us, sample, .. } in source.points {
            let (took_us, counts) = (at_us.saturating_sub(before.0), sample.counts.since(&before.1.counts));
            let earlier = std::mem::replace(&mut before, (*at_us, sample)).1;
            // A stream that has just been made, or has gone, says nothing of the path.
            if sample.state.rtt_us == 0 {
                continue;
            }
            losses.all_us += took_us;
            let is_lossy = share(counts.retransmits, counts.segments) >= LOSS
                || share(counts.timeouts_us, counts.busy_us) >= TIMEOUTS;
            let trips = Trips::of(sample, earlier);
            if trips.are_queued(shortest) || (is_lossy && trips.all_wait(shortest)) {
                losses.queued_us += took_us;
                continue;
            }
            losses.resent = losses.resent.saturating_add(counts.retransmits);
            losses.segments = losses.segments.saturating_add(counts.segments);
            losses.lossy_us += if is_lossy { took_us } else { 0 };
        }
        losses
    }
}

/// The part of its speed that an end's interface carried one way; 0 where nobody knows.
fn card_share(end: Stretch<'_>, span_us: u64, way: fn(&InterfaceCounts) -> u64) -> f64 {
    let Some(card) = end.points.last().and_then(|last| last.sample.interface.as_ref()) else { return 0.0 };
    let before = end.before.interface.as_ref().filter(|before| before.name == card.name);
    let bytes = way(&card.counts).saturating_sub(before.map_or(0, |before| way(&before.counts)));
    share(bytes.saturating_mul(8), card.speed_bits) / (span_us.max(1) as f64 / 1e6)
}

fn share(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

impl PathCounted {
    /// What the samples of both ends say of it, over a stretch of `span_us` microseconds.
    pub fn new(source: Stretch<'_>, destination: Stretch<'_>, sent: &Sample, span_us: u64) -> Self {
        let counts = &sent.counts;
        // Each with the one before it. A stream that has just been made, or has gone, says nothing of the path.
        let samples = || source.points.iter().map(|point| &point.sample);
        let told: Vec<(&Sample, &Sample)> = samples()
            .zip(std::iter::once(source.before).chain(samples()))
            .filter(|(sample, _)| sample.state.rtt_us > 0)
            .collect();
        let mean = |value: &dyn Fn(&Sample) -> u64| {
            told.iter().map(|(sample, _)| value(sample) as f64).sum::<f64>() / told.len().max(1) as f64
        };
        // The path is one, whatever one stream met on it: the middle one counts, and the shortest that any has seen.
        // One that began behind a full queue has never seen the shortest.
        let trips: Vec<Trips> = told.iter().map(|(sample, before)| Trips::of(sample, before)).collect();
        let rtt_us = trips.iter().map(|trips| trips.middle).sum::<f64>() / trips.len().max(1) as f64;
        let shortest = |of: fn(&Trips) -> f64| trips.iter().map(of).filter(|us| *us > 0.0).reduce(f64::min);
        let min_rtt_us = shortest(|trips| trips.shortest).or_else(|| shortest(|trips| trips.now)).unwrap_or(0.0);
        // A limit may change in a stretch: a queue for a while, and then losses without one.
        let losses = Losses::of(source, span_us, min_rtt_us);
        let queued_in_the_mean = rtt_us - min_rtt_us > QUEUED_US.max(QUEUED * min_rtt_us);
        let is_queued =
            losses.queued_us * 2 > losses.all_us || (queued_in_the_mean && losses.queued_us > losses.lossy_us);
        let rate = counts.delivered as f64 / (span_us.max(1) as f64 / 1e6);
        Self {
            resent: match losses.segments {
                0 => share(counts.retransmits, counts.segments),
                segments => share(losses.resent, segments),
            },
            is_queued,
            timeouts: share(counts.timeouts_us, counts.busy_us),
            rwnd_limited: share(counts.rwnd_limited_us, counts.busy_us),
            sndbuf_limited: share(counts.sndbuf_limited_us, counts.busy_us),
            rtt_us,
            min_rtt_us,
            window_bytes: mean(&|sample| sample.state.window_bytes),
            cwnd_bytes: mean(&|sample| sample.state.cwnd_bytes),
            in_flight_bytes: rate * rtt_us / 1e6,
            fills_card: card_share(source, span_us, |counts| counts.sent_bytes) >= CARD_FULL
                || card_share(destination, span_us, |counts| counts.received_bytes) >= CARD_FULL,
            filled: Self::filled(source, span_us),
        }
    }

    /// How far what is in flight fills the window, by the mean of the samples that tell of both. Each is taken with the
    /// rate of its own time: while a connection grows, what it carries later does not fill the window that it had.
    fn filled(source: Stretch<'_>, span_us: u64) -> Option<f64> {
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
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }

    /// What of the path holds back, and what the kernel says of it.
    pub fn stage(&self) -> (Stage, Option<Fact>) {
        // What the sender's own card cannot take waits in its sockets, not in a queue that the round trip shows.
        if self.fills_card {
            return (Stage::Network, None);
        }
        // A slow relay closes its window, too. But it is near, or little is in flight to it: then it is not the window.
        // Where the congestion window allows less it is that one which counts; the other grows as it does.
        let is_less = self.cwnd_bytes <= 0.0 || self.window_bytes <= self.cwnd_bytes;
        let receiver = match self.filled {
            Some(filled) => self.rwnd_limited > WINDOW_LIMITED && filled >= WINDOW_FILLED && is_less,
            None => self.rwnd_limited > RELAYED,
        };
        if (receiver || self.sndbuf_limited > WINDOW_LIMITED) && self.min_rtt_us >= FAR_US {
            return (Stage::Window, Some(Fact::WindowBytes(self.in_flight_bytes as u64)));
        }
        if self.is_queued {
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
