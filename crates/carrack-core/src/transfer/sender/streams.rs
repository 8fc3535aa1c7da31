//! What each stream of a sender carries, and when one of them is too slow.
//!
//! A stream carries a unit from the moment it takes it until both are known: that it has been sent, and that it has
//! landed. A unit is carried by one living stream at a time.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::ids::StreamId;
use crate::transfer::Unit;
use crate::tuning::Tuning;
use crate::wire::control::TransferOptions;

/// The data streams of a sender.
#[derive(Debug)]
pub(super) struct Streams {
    straggler_factor: u32,
    straggler_age_min: Duration,
    table: BTreeMap<StreamId, Stream>,
    /// There has been one.
    begun: bool,
    /// Usual time from taking a block to its landing.
    usual_block: Option<Duration>,
    /// The same for a bundle. Apart, because a bundle may be a thousand times smaller than a block.
    usual_bundle: Option<Duration>,
    /// Streams cut off so far for being slow.
    cuts: u32,
    /// None is ever cut off.
    kept: bool,
    /// How long one that was chosen to end stays connected.
    parked: Duration,
    /// Bytes per second that all of them share, where a limit was asked for.
    rate_limit: Option<u64>,
    /// Size of a whole block, in bytes.
    block_bytes: u64,
    /// Content of the largest bundle, in bytes.
    bundle_bytes: u64,
}

#[derive(Debug)]
struct Stream {
    alive: bool,
    /// It is given nothing more. When it carries nothing any more it is parked, and then it ends.
    retiring: bool,
    /// It carries nothing any more, and ends at this moment.
    parked_until: Option<Instant>,
    /// Blocks and bundles that it carries, oldest first.
    carried: Vec<Carried>,
}

/// What becomes of a stream that was chosen to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retired {
    /// Something that it carried has not landed.
    Carries,
    /// It stays connected until then, and may be woken.
    Parked(Instant),
    /// It has ended.
    Ended,
}

/// A unit that a stream has taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub unit: Unit,
    pub since: Instant,
    pub sent: bool,
    pub landed: bool,
    /// It cannot be read again, so its stream is never cut off.
    pub once: bool,
}

impl Streams {
    /// How often the patience with slow streams doubles: when cutting one off has not helped, the path
    /// is slow, not the stream.
    const DOUBLINGS_MAX: u32 = 8;
    /// Streams that take turns at a limited rate may take some more than others: on a busy host, or because
    /// their slices are larger.
    const TURNS: u32 = 2;

    pub fn new(tuning: &Tuning, options: &TransferOptions) -> Self {
        Self {
            straggler_factor: tuning.straggler_factor,
            straggler_age_min: tuning.straggler_age_min,
            table: BTreeMap::new(),
            begun: false,
            usual_block: None,
            usual_bundle: None,
            cuts: 0,
            kept: false,
            parked: tuning.parked,
            rate_limit: options.rate_limit,
            block_bytes: options.block_bytes.into(),
            bundle_bytes: tuning.bundle_bytes + tuning.bundled_file_bytes_max,
        }
    }

    pub fn add(&mut self, stream: StreamId) {
        let carried = Vec::new();
        self.begun = true;
        self.table.insert(stream, Stream { alive: true, retiring: false, parked_until: None, carried });
    }

    /// Chooses so many living streams to end, but never all, and says how many it chose. Those that carry nothing
    /// first, then the newest: the windows of the others have had longer to grow.
    pub fn retire(&mut self, count: usize) -> usize {
        let mut staying: Vec<_> =
            self.table.iter_mut().filter(|(_, stream)| stream.alive && !stream.retiring).collect();
        staying.sort_by_key(|(number, stream)| (!stream.carried.is_empty(), Reverse(**number)));
        let count = count.min(staying.len().saturating_sub(1));
        staying.into_iter().take(count).for_each(|(_, stream)| stream.retiring = true);
        count
    }

    /// Whether it has been chosen to end, or has ended so.
    pub fn is_retiring(&self, stream: StreamId) -> bool {
        self.table.get(&stream).is_some_and(|stream| stream.retiring)
    }

    /// Has so many go on that were chosen to end and have not, and says how many: the oldest first, whose windows have
    /// had the longest to grow.
    pub fn wake(&mut self, count: usize) -> usize {
        let chosen = self.table.values_mut().filter(|stream| stream.alive && stream.retiring).take(count);
        chosen.map(|stream| (stream.retiring, stream.parked_until) = (false, None)).count()
    }

    /// Parks a chosen stream when all that it carried has landed, and ends it when it has been parked for long enough.
    pub fn retired(&mut self, now: Instant, stream: StreamId) -> Retired {
        let Some(stream) = self.table.get_mut(&stream).filter(|stream| stream.retiring) else { return Retired::Ended };
        if !stream.carried.is_empty() {
            return Retired::Carries;
        }
        let until = *stream.parked_until.get_or_insert(now + self.parked);
        if now < until {
            return Retired::Parked(until);
        }
        stream.alive = false;
        Retired::Ended
    }

    pub fn is_alive(&self, stream: StreamId) -> bool {
        self.table.get(&stream).is_some_and(|stream| stream.alive)
    }

    /// Nothing more will be asked about a stream that is not alive.
    pub fn remove(&mut self, stream: StreamId) {
        if !self.is_alive(stream) {
            self.table.remove(&stream);
        }
    }

    pub fn take(&mut self, stream: StreamId, carried: Carried) {
        if let Some(stream) = self.table.get_mut(&stream) {
            stream.carried.push(carried);
        }
    }

    /// Whether some living stream carries the unit.
    pub fn carries(&self, unit: Unit) -> bool {
        self.carrier(unit).is_some()
    }

    fn carrier(&self, unit: Unit) -> Option<(StreamId, usize)> {
        self.table.iter().find_map(move |(&number, stream)| {
            let index = stream.carried.iter().position(|carried| carried.unit == unit);
            index.map(|index| (number, index))
        })
    }

    /// A stream has sent the unit; whether it still carried it.
    pub fn sent(&mut self, stream: StreamId, unit: Unit) -> bool {
        let Some(stream) = self.table.get_mut(&stream) else {
            return false;
        };
        let Some(index) = stream.carried.iter().position(|carried| carried.unit == unit) else {
            return false;
        };
        stream.carried[index].sent = true;
        if stream.carried[index].landed {
            stream.carried.remove(index);
        }
        true
    }

    /// A stream has read a block that was to be compared; whether it still carried it.
    pub fn checked(&mut self, stream: StreamId, unit: Unit) -> bool {
        let Some(stream) = self.table.get_mut(&stream) else {
            return false;
        };
        let before = stream.carried.len();
        stream.carried.retain(|carried| carried.unit != unit);
        stream.carried.len() < before
    }

    /// A stream has sent the unit; which one is not known.
    pub fn sent_by_any(&mut self, unit: Unit) {
        let carrier = self.carrier(unit);
        if let Some((stream, _)) = carrier {
            self.sent(stream, unit);
        }
    }

    /// The receiver has the unit.
    pub fn landed(&mut self, now: Instant, unit: Unit) {
        let Some((number, index)) = self.carrier(unit) else {
            return;
        };
        let Some(stream) = self.table.get_mut(&number) else {
            return;
        };
        let carried = &mut stream.carried[index];
        if carried.landed {
            return;
        }
        carried.landed = true;
        let took = now.saturating_duration_since(carried.since);
        if carried.sent {
            stream.carried.remove(index);
        }
        let usual = match unit {
            Unit::Block(..) => &mut self.usual_block,
            Unit::Bundle(_) => &mut self.usual_bundle,
            Unit::Check(..) => return,
        };
        *usual = Some(usual.map_or(took, |usual| (usual * 7 + took) / 8));
    }

    /// What a stream carries and has not sent is not late before this moment: its source is waited for.
    pub fn rest(&mut self, stream: StreamId, until: Instant) {
        let carried = self.table.get_mut(&stream).into_iter().flat_map(|stream| &mut stream.carried);
        carried.filter(|carried| !carried.sent).for_each(|carried| carried.since = carried.since.max(until));
    }

    /// Takes units off the streams that carry them.
    pub fn forget(&mut self, which: impl Fn(Unit) -> bool) {
        for stream in self.table.values_mut() {
            stream.carried.retain(|carried| !which(carried.unit));
        }
    }

    /// Marks a stream as lost and gives what it carried.
    pub fn lose(&mut self, stream: StreamId) -> Vec<Carried> {
        let Some(stream) = self.table.get_mut(&stream) else {
            return Vec::new();
        };
        stream.alive = false;
        std::mem::take(&mut stream.carried)
    }

    /// They are all within one process, where no path is slower than another, and what is cut off is not made again: a
    /// stream that is late there waits for a processor, or for the rate that was asked for.
    pub fn keep_all(&mut self) {
        self.kept = true;
    }

    /// The stream, other than `idle`, that is to be cut off first, and when.
    ///
    /// None before something of the kind has landed, and never one that carries what cannot be read again.
    pub fn straggler(&self, idle: StreamId) -> Option<(Instant, StreamId)> {
        if self.kept {
            return None;
        }
        let others = self.table.iter().filter(|(number, stream)| **number != idle && stream.alive);
        let replaceable = others.filter(|(_, stream)| stream.carried.iter().all(|carried| !carried.once));
        let late = replaceable.filter_map(|(&number, stream)| {
            let waiting = stream.carried.iter().filter(|carried| !carried.landed);
            let deadlines = waiting.filter_map(|carried| Some(carried.since + self.patience(carried.unit)?));
            deadlines.min().map(|deadline| (deadline, number))
        });
        late.min()
    }

    /// A straggler has been cut off.
    pub fn count_cut(&mut self) {
        self.cuts += 1;
    }

    fn patience(&self, unit: Unit) -> Option<Duration> {
        let usual = match unit {
            Unit::Block(..) => self.usual_block?,
            Unit::Bundle(_) => self.usual_bundle?,
            // Slow is the source then, and another stream would not be quicker.
            Unit::Check(..) => return None,
        };
        let patience = usual.saturating_mul(self.straggler_factor).max(self.straggler_age_min);
        Some(patience.saturating_mul(1 << self.cuts.min(Self::DOUBLINGS_MAX)) + self.limited(unit))
    }

    /// What the limit of the rate may take of a unit's time: all streams take turns at it. What landed before
    /// may have been far smaller.
    fn limited(&self, unit: Unit) -> Duration {
        let Some(rate) = self.rate_limit else { return Duration::ZERO };
        let bytes = if matches!(unit, Unit::Bundle(_)) { self.bundle_bytes } else { self.block_bytes };
        let sharing = self.table.values().filter(|stream| stream.alive).count() as u64;
        let milliseconds = bytes.saturating_mul(sharing).saturating_mul(1000) / rate.max(1);
        Duration::from_millis(milliseconds).saturating_mul(Self::TURNS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::BundleId;
    use crate::transfer::orders::options;
    use crate::tuning::WHOLE_SECONDS;

    #[test]
    fn stream_that_waits_for_its_source_is_not_late() {
        let start = Instant::now();
        let mut streams = Streams::new(&Tuning::DEFAULT, &options(1 << 20));
        let mut take = |stream, bundle| {
            let (unit, since) = (Unit::Bundle(bundle), start);
            streams.add(stream);
            streams.take(stream, Carried { unit, since, sent: false, landed: false, once: false });
        };
        take(StreamId(1), BundleId(10));
        take(StreamId(2), BundleId(20));
        streams.sent(StreamId(1), Unit::Bundle(BundleId(10)));
        streams.landed(start + Duration::from_millis(1), Unit::Bundle(BundleId(10)));
        let late = |streams: &Streams| streams.straggler(StreamId(1)).unwrap().0;
        assert_eq!(late(&streams), start + Tuning::DEFAULT.straggler_age_min);
        let until = start + WHOLE_SECONDS;
        streams.rest(StreamId(2), until);
        assert_eq!(late(&streams), until + Tuning::DEFAULT.straggler_age_min);
        // What has been sent is on its way, whatever its stream waits for.
        streams.sent(StreamId(2), Unit::Bundle(BundleId(20)));
        streams.rest(StreamId(2), until + WHOLE_SECONDS);
        assert_eq!(late(&streams), until + Tuning::DEFAULT.straggler_age_min);
    }
}
