//! A transfer that was watched, as a row: what came in the time that counts, and what it cost.

use std::sync::LazyLock;
use std::time::Duration;

use carrack_core::request::LinkKind;
use carrack_core::timeline::{Sample, StreamSample, TcpState};
use carrack_measure::network::{Interval, StreamInterval};
use carrack_measure::result::{Row, label, value};
use carrack_measure::series::Series;

use super::plan::{NetStep, NetWay};
use crate::bench::ladder::{DESTINATION_PROCESSORS, SOURCE_PROCESSORS, STREAMS};
use crate::bench::moved::{EndSeen, Moved, SAMPLE_INTERVAL, UNCOUNTED};

/// Segments sent again by the sending host.
pub const RETRANSMITS: &str = "retransmits";
/// The smoothed round trip at its longest, in microseconds.
pub const RTT: &str = "rtt_us";
/// The shortest round trip that TCP has seen, in microseconds.
pub const MIN_RTT: &str = "min_rtt_us";
/// The share of segments that were sent again.
pub const RESENT_SHARE: &str = "resent_share";
/// The congestion windows of all connections together at their largest, in bytes.
pub const WINDOW: &str = "cwnd_bytes";
/// The rate of the slowest 5 % of seconds.
pub const P5: &str = "p5_bytes_per_second";
/// How the error of a row begins that was not tried because of another one.
pub const NOT_TRIED: &str = "not tried";
/// The error of a row of which nothing is known, not even why.
pub const NOTHING_CAME: &str = "nothing came";
/// The condition that says how many data connections were asked for.
pub const CONNECTIONS: &str = "connections";
/// The condition that says whether bytes went the other way at the same time.
pub const AT_ONCE: &str = "at_once";

/// A processor that is busy for this share of the time limits what is measured, in thousandths.
const BUSY_PERMILLE: u64 = 950;
/// A sample that is due may be so much late, or early.
const SLACK: Duration = Duration::from_millis(100);
/// A row is over so long after it should be, whatever is still missing.
const LATE: Duration = Duration::from_secs(5);
/// What landed between two moments is spread over parts of this length.
const PART_MS: u128 = 10;
/// What an end has counted when a transfer begins.
static NOTHING: LazyLock<Sample> = LazyLock::new(Sample::default);

/// The row of a step in one direction, with its name and conditions.
pub fn named(step: NetStep, back: bool) -> Row {
    let streams = step.streams.map_or_else(|| "auto".to_owned(), |streams| streams.to_string());
    let at_once = if step.way == NetWay::Both { "yes" } else { "no" };
    let conditions = [(CONNECTIONS, &*streams), ("mode", step.mode.name()), (AT_ONCE, at_once)];
    Row {
        name: if back { NetWay::Back } else { NetWay::There }.name().to_owned(),
        conditions: conditions.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        ..Row::default()
    }
}

/// Puts what was seen into a row.
pub fn fill(row: &mut Row, moved: &Moved, warm_up: Duration) {
    let window = Window::of(&moved.destination, warm_up);
    let (landed, landed_time, series) = steady(&moved.landed, warm_up);
    // The receiver's own count by its own clock is exact. One that tells nothing is known by the blocks that landed.
    let (bytes, time) = window.as_ref().map_or((landed as f64, landed_time), |window| (window.bytes(), window.time()));
    if time.is_zero() {
        return;
    }
    row.put(value::BYTES, bytes);
    row.put(value::SECONDS, time.as_secs_f64());
    row.put(value::BYTES_PER_SECOND, bytes / time.as_secs_f64());
    let rates = window.as_ref().map(Window::rates).unwrap_or_default();
    let percentile = |share: f64| match rates.len() {
        0 => series.rate_percentile(landed_time, share).unwrap_or(f64::NAN),
        // One second is no slowest of several.
        1 => f64::NAN,
        count => rates[((count - 1) as f64 * share).round() as usize],
    };
    row.put(P5, percentile(0.05));
    row.put("p95_bytes_per_second", percentile(0.95));
    row.series = Some(series);
    if let Some(link) = &moved.link {
        row.put(STREAMS, link.streams.into());
        if link.kind == LinkKind::Tunnel {
            row.labels.push(label::TUNNEL.to_owned());
        }
    }
    row.put(value::PROCESSORS, moved.here);
    let sent = Window::of(&moved.source, warm_up);
    for (window, name) in [(&sent, SOURCE_PROCESSORS), (&window, DESTINATION_PROCESSORS)] {
        row.put(name, window.as_ref().map_or(f64::NAN, Window::processors));
    }
    if [&sent, &window].into_iter().flatten().any(Window::is_busy) {
        row.labels.push(label::PROCESSOR.to_owned());
    }
    if let Some(sent) = &sent {
        sent.fill(row);
    }
    row.intervals = intervals(&moved.source, warm_up);
}

/// The samples of an end in the time that counts: the first and the last count from and to. Without a warm-up the first
/// is the beginning.
struct Window<'a> {
    samples: Vec<(u64, &'a Sample)>,
    is_from_beginning: bool,
}

impl<'a> Window<'a> {
    fn of(end: &'a EndSeen, warm_up: Duration) -> Option<Self> {
        let begin = end.began_us()?;
        let from = begin.saturating_add(micros(warm_up));
        let is_from_beginning = warm_up <= SLACK;
        let start = is_from_beginning.then_some((begin, &*NOTHING));
        let told = end.samples.iter().map(|(at, sample)| (*at, sample));
        let told = told.skip_while(|(at, _)| at.saturating_add(micros(SLACK)) < from);
        let samples: Vec<(u64, &Sample)> = start.into_iter().chain(told).collect();
        (samples.len() > 1).then_some(Self { samples, is_from_beginning })
    }

    fn ends(&self) -> ((u64, &'a Sample), (u64, &'a Sample)) {
        // There are two at least.
        (self.samples[0], self.samples[self.samples.len() - 1])
    }

    fn time(&self) -> Duration {
        let ((first, _), (last, _)) = self.ends();
        Duration::from_micros(last.saturating_sub(first))
    }

    fn bytes(&self) -> f64 {
        let ((_, first), (_, last)) = self.ends();
        last.bytes.saturating_sub(first.bytes) as f64
    }

    /// Bytes a second between each two samples, the slowest first.
    fn rates(&self) -> Vec<f64> {
        let rate = |pair: &[(u64, &Sample)]| {
            let time = pair[1].0.saturating_sub(pair[0].0) as f64 / 1e6;
            pair[1].1.bytes.saturating_sub(pair[0].1.bytes) as f64 / time
        };
        let mut rates: Vec<f64> = self.samples.windows(2).map(rate).filter(|rate| rate.is_finite()).collect();
        rates.sort_by(f64::total_cmp);
        rates
    }

    fn processors(&self) -> f64 {
        let ((_, first), (_, last)) = self.ends();
        let uncounted = if self.is_from_beginning { UNCOUNTED } else { Duration::ZERO };
        let counted = self.time().saturating_sub(uncounted);
        last.processor.since(&first.processor).process_us as f64 / 1e6 / counted.as_secs_f64()
    }

    /// Whether the busiest processor of the host had no rest: in half of the samples, so that a moment is not enough.
    fn is_busy(&self) -> bool {
        let rest = &self.samples[1..];
        let busy = rest.iter().filter(|(_, sample)| sample.processor_state.busiest_core_permille >= BUSY_PERMILLE);
        busy.count() * 2 > rest.len()
    }

    /// What TCP counted at the sending host. Of a link that is not TCP nothing is known.
    fn fill(&self, row: &mut Row) {
        let ((_, first), (_, last)) = self.ends();
        if last.streams.is_empty() && last.counts == Default::default() {
            return;
        }
        let counts = last.counts.since(&first.counts);
        let with_streams = || self.samples.iter().filter(|(_, sample)| !sample.streams.is_empty());
        let peak = with_streams().fold(TcpState::default(), |peak, (_, sample)| peak.peak(&sample.state));
        let shortest = with_streams().map(|(_, sample)| sample.state.min_rtt_us).filter(|rtt| *rtt > 0).min();
        row.put(RETRANSMITS, counts.retransmits as f64);
        row.put("segments", counts.segments as f64);
        row.put(RESENT_SHARE, counts.retransmits as f64 / counts.segments as f64);
        row.put(RTT, peak.rtt_us as f64);
        row.put(MIN_RTT, shortest.map_or(f64::NAN, |rtt| rtt as f64));
        row.put(WINDOW, peak.cwnd_bytes as f64);
        let each: Vec<f64> = per_stream(first, last).into_iter().map(|one| one.bytes as f64).collect();
        let per_second = |bytes: Option<f64>| bytes.map_or(f64::NAN, |bytes| bytes / self.time().as_secs_f64());
        row.put("slowest_stream_bytes_per_second", per_second(each.iter().copied().reduce(f64::min)));
        row.put("fastest_stream_bytes_per_second", per_second(each.iter().copied().reduce(f64::max)));
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// What each connection did between two samples. One that is gone in the later is not told.
fn per_stream(first: &Sample, last: &Sample) -> Vec<StreamInterval> {
    let before = |number: u16| first.streams.iter().find(|stream| stream.number == number);
    let each = last.streams.iter().map(|stream: &StreamSample| {
        let before = before(stream.number).map(|before| before.counts).unwrap_or_default();
        let (counts, state) = (stream.counts.since(&before), stream.state);
        StreamInterval {
            stream: stream.number.into(),
            bytes: counts.delivered,
            retransmits: counts.retransmits,
            cwnd_bytes: state.cwnd_bytes,
            window_bytes: state.window_bytes,
            rtt_us: state.rtt_us,
            rtt_var_us: state.rtt_var_us,
            path_mtu_bytes: state.path_mtu_bytes,
        }
    });
    each.collect()
}

/// Every interval between two samples of the sender, the warm-up's too.
fn intervals(source: &EndSeen, warm_up: Duration) -> Vec<Interval> {
    let (Some(begin), Some(window)) = (source.began_us(), Window::of(source, warm_up)) else { return Vec::new() };
    let counts_from = window.samples[0].0;
    let start = (begin, Sample::default());
    let befores = std::iter::once(&start).chain(&source.samples);
    let each = befores.zip(&source.samples).filter(|(_, (_, sample))| !sample.streams.is_empty());
    let each = each.map(|((from, before), (to, sample))| Interval {
        start_seconds: from.saturating_sub(begin) as f64 / 1e6,
        seconds: to.saturating_sub(*from) as f64 / 1e6,
        is_warm_up: *to <= counts_from,
        streams: per_stream(before, sample),
    });
    each.collect()
}

/// What landed after the warm-up, which begins with the first byte: bytes, in which time, and when.
fn steady(landed: &[(Duration, u64)], warm_up: Duration) -> (u64, Duration, Series) {
    let mut series = Series::default();
    let Some((first, _)) = landed.iter().find(|(_, bytes)| *bytes > 0) else { return (0, Duration::ZERO, series) };
    let mut after = landed.iter().filter(|(at, _)| *at >= *first + warm_up);
    let Some(&(begin, start)) = after.next() else { return (0, Duration::ZERO, series) };
    let (mut end, mut bytes) = (begin, start);
    for &(at, so_far) in after {
        spread(&mut series, [end - begin, at.max(end) - begin], so_far.saturating_sub(bytes) as f64);
        (end, bytes) = (at, so_far.max(bytes));
    }
    (bytes - start, end - begin, series)
}

/// Bytes that landed between two moments landed evenly, as far as anybody knows.
fn spread(series: &mut Series, [from, to]: [Duration; 2], bytes: f64) {
    let mut begin = from;
    while begin < to {
        let next = u64::try_from((begin.as_millis() / PART_MS + 1) * PART_MS).unwrap_or(u64::MAX);
        let end = Duration::from_millis(next).min(to);
        let share = (end - begin).as_secs_f64() / (to - from).as_secs_f64();
        series.add(begin + (end - begin) / 2, bytes * share);
        begin = end;
    }
}

/// Whether a transfer has been watched for its warm-up and as long again as was asked for.
pub fn is_enough(moved: &Moved, warm_up: Duration, time: Duration) -> bool {
    let is_told = moved.destination.samples.is_empty() || is_long(&moved.source, warm_up, time);
    (is_whole(moved, warm_up, time) && is_told) || is_overdue(moved, warm_up, time)
}

/// Whether the numbers of a row are of all the time that was asked for.
pub fn is_whole(moved: &Moved, warm_up: Duration, time: Duration) -> bool {
    if !moved.destination.samples.is_empty() {
        return is_long(&moved.destination, warm_up, time);
    }
    // An end that tells nothing is waited for a little longer than one that does.
    let first = moved.landed.iter().find(|(_, bytes)| *bytes > 0).map(|(at, _)| *at);
    let end = warm_up + time + 2 * SAMPLE_INTERVAL;
    first.zip(moved.landed.last()).is_some_and(|(first, (last, _))| *last >= first + end)
}

/// Whether a transfer should have been over for a while: an end tells too little, or nothing comes.
pub fn is_overdue(moved: &Moved, warm_up: Duration, time: Duration) -> bool {
    moved.linked.is_some_and(|linked| linked.elapsed() >= warm_up + time + LATE)
}

fn is_long(end: &EndSeen, warm_up: Duration, time: Duration) -> bool {
    Window::of(end, warm_up).is_some_and(|window| window.time() + SLACK >= time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_core::timeline::TcpCounts;
    use std::time::Instant;

    /// A sample a second: bytes by the receiver, or acknowledged by one connection.
    fn end(bytes: &[u64]) -> EndSeen {
        let sample = |(second, bytes): (usize, &u64)| {
            let counts = TcpCounts {
                delivered: *bytes,
                segments: *bytes / 10,
                retransmits: *bytes / 100,
                ..TcpCounts::default()
            };
            let state = TcpState { rtt_us: 50 + second as u64, min_rtt_us: 40, cwnd_bytes: 9, ..TcpState::default() };
            let streams = vec![StreamSample { number: 3, counts, state, ..StreamSample::default() }];
            (
                5_000_000 + 1_000_000 * second as u64,
                Sample { bytes: *bytes, counts, state, streams, ..Sample::default() },
            )
        };
        EndSeen { samples: bytes.iter().enumerate().map(sample).collect(), ..EndSeen::default() }
    }

    #[test]
    fn row_counts_what_the_receiver_had_after_the_warm_up() {
        let moved = Moved {
            source: end(&[100, 1100, 2100, 3100]),
            destination: end(&[0, 1000, 2000, 3000]),
            ..Moved::default()
        };
        let mut row = Row::default();
        fill(&mut row, &moved, Duration::from_secs(1));
        assert_eq!((row.value(value::BYTES), row.value(value::SECONDS)), (Some(3000.0), Some(3.0)));
        assert_eq!((row.value(RETRANSMITS), row.value(RTT)), (Some(30.0), Some(53.0)));
        let told: Vec<_> = row.intervals.iter().map(|one| (one.is_warm_up, one.streams[0].bytes)).collect();
        assert_eq!(told, [(true, 100), (false, 1000), (false, 1000), (false, 1000)]);
        assert!(is_enough(&moved, Duration::from_secs(1), Duration::from_secs(3)));
        assert!(!is_enough(&moved, Duration::from_secs(1), Duration::from_secs(4)));
    }

    #[test]
    fn row_without_a_warm_up_counts_from_the_beginning() {
        let ends = || EndSeen { begin_us: Some(4_000_000), ..end(&[100, 1100, 2100]) };
        let moved = Moved { source: ends(), destination: ends(), ..Moved::default() };
        let mut row = Row::default();
        fill(&mut row, &moved, Duration::ZERO);
        assert_eq!((row.value(value::BYTES), row.value(value::SECONDS)), (Some(2100.0), Some(3.0)));
        assert_eq!(row.value(RETRANSMITS), Some(21.0));
        assert!(row.intervals.len() == 3 && row.intervals.iter().all(|interval| !interval.is_warm_up));
        assert!(is_enough(&moved, Duration::ZERO, Duration::from_secs(3)));
        assert!(!is_enough(&moved, Duration::ZERO, Duration::from_secs(4)));
    }

    #[test]
    fn row_ends_although_the_sender_tells_nothing() {
        let (second, now) = (Duration::from_secs(1), Instant::now());
        let moved = |ago: u32| Moved {
            linked: now.checked_sub(second * ago),
            destination: end(&[0, 1000, 2000, 3000]),
            ..Moved::default()
        };
        assert!(is_whole(&moved(4), second, second * 3) && !is_enough(&moved(4), second, second * 3));
        assert!(is_enough(&moved(9), second, second * 3));
        let silent = Moved { linked: now.checked_sub(second * 9), ..Moved::default() };
        assert!(is_enough(&silent, second, second * 3) && !is_whole(&silent, second, second * 3));
    }

    #[test]
    fn row_of_an_end_that_tells_nothing_counts_what_landed() {
        let landed: Vec<_> = (0..=60).map(|tenth| (Duration::from_millis(100 * tenth), 100 * tenth)).collect();
        let moved = Moved { landed, ..Moved::default() };
        let mut row = Row::default();
        fill(&mut row, &moved, Duration::from_secs(1));
        assert_eq!(row.value(value::BYTES_PER_SECOND).map(f64::round), Some(1000.0));
        assert!(is_enough(&moved, Duration::from_secs(1), Duration::from_secs(2)));
        assert!(row.intervals.is_empty() && row.value(RTT).is_none());
    }

    #[test]
    fn warm_up_is_left_out_from_the_first_byte_on() {
        // Nothing for two seconds, slow for one, then 1000 bytes a second.
        let mut landed = vec![(Duration::from_secs(1), 0), (Duration::from_secs(2), 5)];
        landed.extend((0..=40).map(|tenth| (Duration::from_millis(3000 + 100 * tenth), 10 + 100 * tenth)));
        let (bytes, time, series) = steady(&landed, Duration::from_secs(1));
        assert_eq!((bytes, time), (4000, Duration::from_secs(4)));
        assert_eq!(series.amounts().iter().sum::<f64>().round(), 4000.0);
        assert_eq!(series.rate_percentile(time, 0.05).map(f64::round), Some(1000.0));
    }

    #[test]
    fn what_landed_between_two_moments_landed_evenly() {
        let landed: Vec<_> = (0..=8).map(|at| (Duration::from_millis(253 * at), 253 * at + 1)).collect();
        let (_, time, series) = steady(&landed, Duration::ZERO);
        let rates: Vec<f64> =
            series.whole_slots(time).iter().map(|bytes| bytes / series.slot().as_secs_f64()).collect();
        assert!(time == Duration::from_millis(2024) && rates.len() > 20, "{rates:?}");
        assert!(rates.iter().all(|rate| (rate - 1000.0).abs() < 1.0), "{rates:?}");
    }

    #[test]
    fn nothing_that_landed_is_no_rate() {
        assert_eq!(steady(&[(Duration::from_secs(1), 0)], Duration::ZERO).0, 0);
        assert_eq!(steady(&[], Duration::ZERO).1, Duration::ZERO);
        let mut row = Row::default();
        fill(&mut row, &Moved::default(), Duration::ZERO);
        assert!(row.values.is_empty());
    }
}
