//! The pictures of a page: which values of a recording stand beside each other.

use carrack_core::timeline::{DeviceSample, StageTime, Work};

use super::view::{EndView, Step, View, processors_busy};
use crate::output::format;
use crate::output::plot::axis::Unit;
use crate::output::plot::{Band, Panel, Tone};

/// A device's name, its bytes, and how much of it is counted.
type Named<'a> = (&'a str, u64);

/// Bands of less than this share of the whole time are left out.
const BAND_LEAST: f64 = 0.002;

/// What the threads of streams do, as bands: name, tone, whether they wait, and the stages.
type Kind = (&'static str, Tone, bool, &'static [Work]);

const SOURCE: &[Kind] = &[
    ("work on reading", Tone::Second, false, &[Work::Find, Work::Read]),
    ("wait for storage", Tone::Second, true, &[Work::Find, Work::Read]),
    ("compute digests", Tone::Third, false, &[Work::Hash]),
    ("compress", Tone::Rest, false, &[Work::Compress]),
    ("encrypt", Tone::Fourth, false, &[Work::Seal]),
    ("work on sending", Tone::First, false, &[Work::Send]),
    ("wait for the connection", Tone::First, true, &[Work::Send]),
    ("wait for the rate limit", Tone::Fifth, true, &[Work::Pace]),
];

const DESTINATION: &[Kind] = &[
    ("wait for the connection", Tone::First, true, &[Work::Receive]),
    ("work on receiving", Tone::First, false, &[Work::Receive]),
    ("decrypt", Tone::Fourth, false, &[Work::Open]),
    ("unpack", Tone::Rest, false, &[Work::Unpack]),
    ("compute digests", Tone::Third, false, &[Work::Hash]),
    ("work on writing", Tone::Second, false, &[Work::Create, Work::Write]),
    ("wait for storage", Tone::Second, true, &[Work::Create, Work::Write]),
];

/// The rate of both ends.
pub fn rate(view: &View<'_>) -> Panel {
    let mut panel = Panel::new("Rate", Unit::BytesPerSecond);
    // What is read arrives: where both lines are one, the second is seen over the first.
    panel = panel.line("source", Tone::First, points(&view.source.rate()));
    panel = panel.line("destination", Tone::Second, points(&view.destination.rate()));
    panel.note = silences(view);
    panel
}

/// All others that have something to show.
pub fn others(view: &View<'_>) -> Vec<Panel> {
    let mut panels = vec![streams(view), retransmits(view), stages(&view.source, SOURCE)];
    panels.extend([stages(&view.destination, DESTINATION), commits(view)]);
    panels.extend([processors(&view.source), processors(&view.destination)]);
    panels.extend([disk_rate(view), disk_wait(view), round_trip(view), window(view), interface(view)]);
    panels.retain(|panel| !panel.is_empty());
    panels
}

/// Which end tells nothing; empty if both do.
pub fn silences(view: &View<'_>) -> String {
    let all = [view.source.silence(), view.destination.silence()];
    all.into_iter().filter(|silence| !silence.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Values that hold for a while, each in the middle of its time, with a gap where nothing is known.
fn points(steps: &[(f64, f64, f64)]) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(steps.len() + 2);
    for (at, &(from, to, value)) in steps.iter().enumerate() {
        if at > 0 && from > steps[at - 1].1 + 1e-3 {
            points.push((from, f64::NAN));
        }
        if at == 0 {
            points.push((from, value));
        }
        points.push((f64::midpoint(from, to), value));
        if at + 1 == steps.len() {
            points.push((to, value));
        }
    }
    points
}

fn each(end: &EndView<'_>, value: impl Fn(&Step) -> Option<f64>) -> Vec<(f64, f64)> {
    points(&end.each(value))
}

/// A count per second; nothing where it was never counted.
fn per_second(end: &EndView<'_>, count: impl Fn(&Step) -> u64) -> Vec<(f64, f64)> {
    if end.steps.iter().all(|step| count(step) == 0) {
        return Vec::new();
    }
    each(end, |step| Some(count(step) as f64 / step.time()))
}

/// A gauge; nothing where it is always 0.
fn gauge(end: &EndView<'_>, scale: f64, value: impl Fn(&Step) -> u64) -> Vec<(f64, f64)> {
    per_step(end, |step| value(step) as f64 * scale)
}

fn per_step(end: &EndView<'_>, value: impl Fn(&Step) -> f64) -> Vec<(f64, f64)> {
    if end.steps.iter().all(|step| value(step) == 0.0) {
        return Vec::new();
    }
    each(end, |step| Some(value(step)))
}

fn streams(view: &View<'_>) -> Panel {
    let mut line = Vec::new();
    let ends = [&view.source, &view.destination];
    let moments = ends.into_iter().find(|end| end.tells()).map(|end| end.steps.iter().map(|step| step.to));
    let moments: Vec<f64> = moments.into_iter().flatten().collect();
    let happened = view.happenings.iter().filter(|one| one.streams.is_some()).map(|one| one.at);
    let mut all: Vec<f64> = moments.into_iter().chain(happened).collect();
    all.sort_by(f64::total_cmp);
    for at in all {
        let Some(streams) = view.streams(at) else { continue };
        // A number of streams does not rise slowly: it is a stair.
        if let Some(&(_, before)) = line.last() {
            line.push((at, before));
        }
        line.push((at, streams as f64));
    }
    Panel::new("Streams", Unit::Count).line("data streams", Tone::First, line)
}

fn retransmits(view: &View<'_>) -> Panel {
    let (source, destination) = (&view.source, &view.destination);
    let sum = source.over(0.0, view.end).counts;
    let mut panel = Panel::new("Retransmits", Unit::PerSecond);
    if sum.segments > 0 {
        let all = points(&source.each(|step| Some(step.sample.counts.retransmits as f64 / step.time())));
        panel = panel.line("segments sent again", Tone::First, all);
        let share = sum.retransmits as f64 / sum.segments as f64;
        let (count, share) = (format::count(sum.retransmits), Unit::Share.shown(share));
        panel.note = format!("{count} of {} segments: {share}.", format::count(sum.segments));
        if sum.timeouts > 0 {
            let time = format::duration(std::time::Duration::from_micros(sum.timeouts_us));
            panel.note += &format!(" {}, {time} lost in them.", format::counted(sum.timeouts, "timeout", "timeouts"));
        }
    }
    panel.line("arrived out of order", Tone::Second, per_second(destination, |step| step.sample.counts.out_of_order))
}

/// Where the time of an end's streams goes, in bands that stand on each other.
fn stages(end: &EndView<'_>, kinds: &[Kind]) -> Panel {
    let mut panel = Panel::new(&format!("Streams of the {}: what they do", end.side), Unit::Share);
    panel.at_least = 1.0;
    let part = |time: StageTime, waits: bool| if waits { time.waited_us } else { time.worked_us };
    // What has no waiting of its own takes all of its time.
    let whole = |kind: &Kind| {
        matches!(kind.3, [Work::Hash | Work::Compress | Work::Seal | Work::Open | Work::Unpack | Work::Pace])
    };
    // A peer may tell any number: as fractions, none is too large to be added.
    let of = |step: &Step, kind: &Kind| -> f64 {
        let times = kind.3.iter().map(|work| step.sample.stages.of(*work));
        let each = times.map(|time| if whole(kind) { used_us(time) } else { part(time, kind.2) as f64 });
        each.sum::<f64>() / 1e6
    };
    let told: Vec<&Step> = end.steps.iter().filter(|step| step.sample.carried_us > 0).collect();
    if told.is_empty() {
        return panel;
    }
    let all = |step: &Step| {
        let carried = step.sample.carried_us as f64 / 1e6;
        let streams = step.sample.streams.len() as f64 * step.time();
        kinds.iter().map(|kind| of(step, kind)).sum::<f64>().max(carried).max(streams)
    };
    panel.stack.steps = told.iter().map(|step| (step.from, step.to)).collect();
    for kind in kinds {
        let values: Vec<f64> = told.iter().map(|step| of(step, kind) / all(step)).collect();
        let time: f64 = told.iter().zip(&values).map(|(step, value)| step.time() * value).sum();
        if time > BAND_LEAST * told.iter().map(|step| step.time()).sum::<f64>() {
            let (name, tone, hatched, _) = *kind;
            panel.stack.bands.push(Band { name: name.to_owned(), tone, hatched, values });
        }
    }
    panel.note = "Of the time of all its streams. Above the bands they have nothing to carry.".into();
    panel
}

/// Microseconds that were worked and waited.
fn used_us(time: StageTime) -> f64 {
    time.worked_us as f64 + time.waited_us as f64
}

/// What single threads do beside the streams.
fn commits(view: &View<'_>) -> Panel {
    let mut panel = Panel::new("Threads beside the streams", Unit::Share);
    let share = |end: &EndView<'_>, work: Work| {
        let time = |step: &Step| {
            let time = step.sample.stages.of(work);
            (used_us(time) / 1e6 / step.time()).min(1.0)
        };
        let line = per_step(end, time);
        // What is never seen needs no line.
        if line.iter().any(|(_, value)| *value > 0.01) { line } else { Vec::new() }
    };
    for (name, tone, end, work) in [
        ("source: list directories", Tone::First, &view.source, Work::List),
        ("destination: make files", Tone::Second, &view.destination, Work::Begin),
        ("destination: sync", Tone::Third, &view.destination, Work::Sync),
        ("destination: publish", Tone::Fourth, &view.destination, Work::Publish),
    ] {
        panel = panel.line(name, tone, share(end, work));
    }
    panel
}

fn processors(end: &EndView<'_>) -> Panel {
    let cores = end.steps.last().map_or(0, |step| step.sample.processor_state.cores);
    let mut panel = Panel::new(&format!("Processors of the {}", end.side), Unit::Share);
    panel.at_least = 1.0;
    let host = each(end, |step| processors_busy(&step.sample.processor));
    let all = cores.max(1) as f64;
    let process = per_step(end, |step| step.sample.processor.process_us as f64 / 1e6 / step.time() / all);
    let name = if cores > 0 { format!("all {cores} together") } else { "all together".into() };
    panel = panel.line(&name, Tone::First, host).line("of that, this copy", Tone::Third, process);
    let busiest = |value: fn(&Step) -> u64| gauge(end, 1e-3, value);
    panel = panel.line("busiest one", Tone::Second, busiest(|step| step.sample.processor_state.busiest_core_permille));
    panel.line("busiest stream", Tone::Fourth, busiest(|step| step.sample.processor_state.busiest_thread_permille))
}

/// The devices with most bytes first, two at most.
fn busiest<'a>(end: &'a EndView<'_>, bytes: impl Fn(&DeviceSample) -> u64) -> Vec<&'a str> {
    let mut sums: Vec<Named<'a>> = Vec::new();
    for device in end.steps.iter().flat_map(|step| &step.sample.devices) {
        match sums.iter_mut().find(|(name, _)| *name == device.name) {
            Some((_, sum)) => *sum = sum.saturating_add(bytes(device)),
            None => sums.push((&device.name, bytes(device))),
        }
    }
    sums.retain(|(_, sum)| *sum > 0);
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    sums.into_iter().take(2).map(|(name, _)| name).collect()
}

/// A line for each of an end's busiest devices.
fn devices(
    mut panel: Panel,
    end: &EndView<'_>,
    tones: [Tone; 2],
    doing: &str,
    bytes: fn(&DeviceSample) -> u64,
    value: fn(&DeviceSample) -> f64,
) -> Panel {
    for (name, tone) in busiest(end, bytes).into_iter().zip(tones) {
        let of = |step: &Step| {
            let device = step.sample.devices.iter().find(|device| device.name == name)?;
            Some(value(device) / step.time())
        };
        let name = super::happened::printable(name);
        panel = panel.line(&format!("{} {name}{doing}", end.side), tone, each(end, of));
    }
    panel
}

fn disk_rate(view: &View<'_>) -> Panel {
    let read = |device: &DeviceSample| device.counts.read_bytes;
    let panel = Panel::new("Disks: rate", Unit::BytesPerSecond);
    let rate = |device: &DeviceSample| device.counts.read_bytes as f64;
    let panel = devices(panel, &view.source, [Tone::First, Tone::Third], " read", read, rate);
    let written = |device: &DeviceSample| device.counts.written_bytes;
    let rate = |device: &DeviceSample| device.counts.written_bytes as f64;
    devices(panel, &view.destination, [Tone::Second, Tone::Fourth], " written", written, rate)
}

/// How busy the disks are, and how long somebody waited for them.
fn disk_wait(view: &View<'_>) -> Panel {
    let busy = |device: &DeviceSample| device.counts.busy_us as f64 / 1e6;
    let any: fn(&DeviceSample) -> u64 = |device| device.counts.busy_us;
    let mut panel = Panel::new("Disks: share of the time", Unit::Share);
    panel.at_least = 1.0;
    panel = devices(panel, &view.source, [Tone::First, Tone::Rest], " busy", any, busy);
    panel = devices(panel, &view.destination, [Tone::Second, Tone::Rest], " busy", any, busy);
    let stalled = |step: &Step| {
        let io = step.sample.pressure.io_some_us.max(step.sample.group_pressure.io_some_us);
        (io as f64 / 1e6 / step.time()).min(1.0)
    };
    for (end, tone) in [(&view.source, Tone::Third), (&view.destination, Tone::Fourth)] {
        panel = panel.line(&format!("{}: somebody waits for a disk", end.side), tone, per_step(end, stalled));
    }
    if panel.is_empty() {
        for (end, tone) in [(&view.source, Tone::Third), (&view.destination, Tone::Fourth)] {
            let idle = |step: &Step| {
                let time = &step.sample.processor;
                time.disk_wait_us as f64 / time.busy_us.saturating_add(time.idle_us).max(1) as f64
            };
            panel = panel.line(&format!("{}: processors idle for a disk", end.side), tone, per_step(end, idle));
        }
    }
    panel
}

fn round_trip(view: &View<'_>) -> Panel {
    let gauge = |value: fn(&Step) -> u64| gauge(&view.source, 1e-6, value);
    Panel::new("Round trip", Unit::Seconds)
        .line("longest of all streams", Tone::First, gauge(|step| step.sample.state.rtt_us))
        .line("shortest seen", Tone::Third, gauge(|step| step.sample.state.min_rtt_us))
}

fn window(view: &View<'_>) -> Panel {
    let gauge = |value: fn(&Step) -> u64| gauge(&view.source, 1.0, value);
    Panel::new("Bytes in flight, of all streams", Unit::Bytes)
        .line("congestion window", Tone::First, gauge(|step| step.sample.state.cwnd_bytes))
        .line("receive window of the destination", Tone::Third, gauge(|step| step.sample.state.window_bytes))
        .line("in flight", Tone::Second, gauge(|step| step.sample.state.in_flight_bytes))
}

fn interface(view: &View<'_>) -> Panel {
    let mut panel = Panel::new("Network interfaces", Unit::BytesPerSecond);
    for (end, tone, doing, is_sent) in
        [(&view.source, Tone::First, "sent", true), (&view.destination, Tone::Second, "received", false)]
    {
        let last = end.steps.last().and_then(|step| step.sample.interface.as_ref());
        let name = last.map_or(String::new(), |interface| super::happened::printable(&interface.name));
        let line = each(end, |step| {
            let counts = &step.sample.interface.as_ref()?.counts;
            let bytes = if is_sent { counts.sent_bytes } else { counts.received_bytes };
            Some(bytes as f64 / step.time())
        });
        panel = panel.line(&format!("{} {name} {doing}", end.side), tone, line);
    }
    let dropped = |end: &EndView<'_>| -> u64 {
        let counts = end.steps.iter().filter_map(|step| step.sample.interface.as_ref());
        let dropped = counts.flat_map(|interface| [interface.counts.received_dropped, interface.counts.sent_dropped]);
        dropped.fold(0, u64::saturating_add)
    };
    let dropped = [&view.source, &view.destination].map(|end| (end.side, dropped(end)));
    let told = dropped.iter().filter(|(_, dropped)| *dropped > 0);
    let told =
        told.map(|(side, dropped)| format!("The {side} dropped {}.", format::counted(*dropped, "packet", "packets")));
    panel.note = told.collect::<Vec<_>>().join(" ");
    panel
}
