//! What a recording shows: for each end the differences between its samples, what happened, and what held it back.

use carrack_core::pace::limit::{Limit, Stage};
use carrack_core::report::Side;
use carrack_core::timeline::{
    Point, Pressure, ProcessorTime, Sample, StageTime, StageTimes, Stretch, TcpCounts, verdict,
};
use serde_json::{Map, Value};

use super::happened::{self, Happening};
use super::read::Recording;

/// A recording, ready to be shown.
pub struct View<'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// Where the axis ends, in seconds.
    pub end: f64,
    /// The source.
    pub source: EndView<'a>,
    /// The destination.
    pub destination: EndView<'a>,
    /// What happened, in its order.
    pub happenings: Vec<Happening>,
    /// When counters were 0, in microseconds.
    began_us: u64,
}

/// One end.
pub struct EndView<'a> {
    /// `source` or `destination`.
    pub side: &'static str,
    /// What it said of itself when the last session began; nothing if no session did.
    pub facts: Option<&'a Map<String, Value>>,
    /// From sample to sample.
    pub steps: Vec<Step>,
}

/// The time between two samples.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// In seconds.
    pub from: f64,
    /// In seconds.
    pub to: f64,
    /// Counters have what was added in between, gauges are those of its end.
    pub sample: Sample,
}

/// What held a copy back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The slowest stage, and its share of the time.
    pub limit: (Stage, f64),
    /// The next.
    pub runner_up: Option<(Stage, f64)>,
}

/// How fast it went, in bytes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Over the whole time.
    pub mean: f64,
    /// Half of the time it was faster.
    pub median: f64,
    /// A twentieth of the time it was slower.
    pub p5: f64,
    /// A twentieth of the time it was faster.
    pub p95: f64,
}

impl<'a> View<'a> {
    /// What a recording shows.
    pub fn of(recording: &'a Recording) -> Self {
        let happenings = happened::all(recording);
        let ends = recording.events.iter().rfind(|told| told.kind == "ends");
        // Counters begin at 0 when both ends are there.
        let began_us = recording.events.iter().find(|told| told.kind == "ends").map_or(0, |told| told.at_us);
        let end_of = |side: Side| {
            let points = recording.timeline.series(side).map_or(&[][..], |series| series.points());
            let facts = ends.and_then(|told| told.fields.get(side.name()));
            EndView { side: side.name(), facts: facts.and_then(Value::as_object), steps: steps(points, began_us) }
        };
        let (source, destination) = (end_of(Side::Source), end_of(Side::Destination));
        let last = |end: &EndView<'_>| end.steps.last().map_or(0.0, |step| step.to);
        let elapsed = recording.summary.as_ref().and_then(|summary| summary.get("elapsed_seconds"));
        let last_event = happenings.last().map_or(0.0, |happening| happening.at);
        let end = [last(&source), last(&destination), last_event, elapsed.and_then(Value::as_f64).unwrap_or(0.0)];
        let end = end.into_iter().filter(|end| end.is_finite()).fold(0.0, f64::max);
        let end = if end > 0.0 { end } else { 1.0 };
        Self { recording, end, source, destination, happenings, began_us }
    }

    /// The end whose bytes are shown as the rate: what has arrived, where the destination tells.
    pub fn rated(&self) -> &EndView<'a> {
        if self.destination.steps.is_empty() { &self.source } else { &self.destination }
    }

    /// How fast it went, by the samples; nothing without any.
    pub fn rates(&self) -> Option<Rates> {
        let mut steps: Vec<(f64, f64)> =
            self.rated().rate().into_iter().map(|(from, to, rate)| (rate, to - from)).collect();
        steps.sort_by(|one, other| one.0.total_cmp(&other.0));
        let time: f64 = steps.iter().map(|(_, time)| time).sum();
        let bytes: f64 = steps.iter().map(|(rate, time)| rate * time).sum();
        let at = |share: f64| {
            let mut passed = 0.0;
            let found = steps.iter().find(|(_, time)| {
                passed += time;
                passed >= share * time_of(&steps)
            });
            found.or(steps.last()).map_or(0.0, |(rate, _)| *rate)
        };
        (time > 0.0).then(|| Rates { mean: bytes / time, median: at(0.5), p5: at(0.05), p95: at(0.95) })
    }

    /// What held the whole copy back: as the report has it, else by the samples.
    pub fn verdict(&self) -> Option<Verdict> {
        let limited = self.recording.summary.as_ref().and_then(|summary| summary.get("limited_by"));
        let by_samples = self.limits(0.0, self.end);
        let limit_of = |limit: &Value| {
            let stage = Stage::parse(limit.get("stage")?.as_str()?).ok()?;
            Some((stage, limit.get("share")?.as_f64()?))
        };
        let Some(limit) = limited.and_then(limit_of) else { return by_samples };
        // A program that does not say what was next leaves it to the samples.
        let next = limited.and_then(|limited| limited.get("next")).and_then(limit_of);
        let mut among = by_samples.iter().flat_map(|verdict| [Some(verdict.limit), verdict.runner_up]).flatten();
        let runner_up = next.or_else(|| among.find(|(stage, _)| *stage != limit.0));
        Some(Verdict { limit, runner_up })
    }

    /// What held it back from one second to another; nothing where an end does not tell.
    pub fn limits(&self, from: f64, to: f64) -> Option<Verdict> {
        let nothing = Sample::default();
        let [(source, source_us), (destination, destination_us)] = [Side::Source, Side::Destination].map(|side| {
            let points = self.recording.timeline.series(side).map_or(&[][..], |series| series.points());
            let until = |at: f64| points.partition_point(|point| point.at_us as f64 / 1e6 <= at);
            let (first, last) = (until(from), until(to));
            let before = first.checked_sub(1).map(|before| &points[before]);
            let points = &points[first..last.max(first)];
            let began_us = before.map_or(self.began_us, |point| point.at_us);
            let span_us = points.last().map_or(0, |point| point.at_us.saturating_sub(began_us));
            (Stretch { before: before.map_or(&nothing, |point| &point.sample), points }, span_us)
        });
        let streams = self.mean_streams(from, to);
        let found = verdict(source, destination, source_us.max(destination_us), streams, self.is_in_memory())?;
        let pair = |limit: Limit| (limit.stage, limit.share);
        Some(Verdict { limit: pair(found.limit), runner_up: found.next.map(pair) })
    }

    /// Whether both ends were in one process.
    fn is_in_memory(&self) -> bool {
        let link = self.recording.events.iter().rfind(|told| told.kind == "link");
        link.is_some_and(|told| told.fields.get("kind").and_then(Value::as_str) == Some("memory"))
    }

    /// The number of data streams at a moment; nothing where nobody tells.
    pub fn streams(&self, at: f64) -> Option<u64> {
        let last = self.happenings.iter().rfind(|one| one.at <= at && one.streams.is_some());
        let wanted = last.and_then(|one| one.streams);
        let there = [&self.source, &self.destination].into_iter().find_map(|end| {
            let step = end.steps.iter().find(|step| step.to >= at)?;
            (!step.sample.streams.is_empty()).then_some(step.sample.streams.len() as u64)
        });
        // Of those that are wanted some may be lost; of those that are there some may be parked.
        wanted.into_iter().chain(there).min()
    }

    /// The number of data streams from one second to another, in the mean; at least 1.
    fn mean_streams(&self, from: f64, to: f64) -> u16 {
        let changes = self.happenings.iter().filter(|one| one.streams.is_some() && one.at > from && one.at < to);
        let cuts: Vec<f64> = [from].into_iter().chain(changes.map(|one| one.at)).chain([to]).collect();
        let parts = cuts.windows(2).map(|cut| self.streams(cut[0]).unwrap_or(1) as f64 * (cut[1] - cut[0]));
        let mean = if to > from { parts.sum::<f64>() / (to - from) } else { 1.0 };
        mean.clamp(1.0, f64::from(u16::MAX)) as u16
    }

    /// A number of the report.
    pub fn summary(&self, name: &str) -> Option<&Value> {
        self.recording.summary.as_ref()?.get(name).filter(|value| !value.is_null())
    }
}

fn time_of(steps: &[(f64, f64)]) -> f64 {
    steps.iter().map(|(_, time)| time).sum()
}

impl EndView<'_> {
    /// Whether it tells what it measures.
    pub fn tells(&self) -> bool {
        !self.steps.is_empty()
    }

    /// A text of what it said of itself, as it said it: whoever shows it to people makes it `printable`.
    pub fn fact(&self, name: &str) -> &str {
        self.facts.and_then(|facts| facts.get(name)).and_then(Value::as_str).unwrap_or_default()
    }

    /// Why it tells nothing; empty if it does.
    pub fn silence(&self) -> String {
        match self.facts {
            _ if self.tells() => String::new(),
            Some(_) => format!("The {} has told nothing.", self.side),
            None => format!("The {} was not reached.", self.side),
        }
    }

    /// Bytes a second.
    pub fn rate(&self) -> Vec<(f64, f64, f64)> {
        self.each(|step| Some(step.sample.bytes as f64 / (step.to - step.from)))
    }

    /// A value for each step; a step without one is left out.
    pub fn each(&self, value: impl Fn(&Step) -> Option<f64>) -> Vec<(f64, f64, f64)> {
        self.steps.iter().filter_map(|step| Some((step.from, step.to, value(step)?))).collect()
    }

    /// What was counted from one second to another. Steps that are only partly in it count by that part.
    pub fn over(&self, from: f64, to: f64) -> Sample {
        let mut sum = Sample::default();
        for step in self.steps.iter().filter(|step| step.to > from && step.from < to) {
            let share = (step.to.min(to) - step.from.max(from)) / (step.to - step.from);
            sum = scaled(&step.sample, share).after(&sum);
        }
        sum
    }
}

impl Step {
    /// Seconds.
    pub fn time(&self) -> f64 {
        self.to - self.from
    }
}

/// The share of the processors of a host that was at work.
pub fn processors_busy(time: &ProcessorTime) -> Option<f64> {
    let all = time.busy_us.saturating_add(time.idle_us);
    (all > 0).then(|| time.busy_us as f64 / all as f64)
}

/// The steps between points. Counters begin with 0 at `began_us`.
fn steps(points: &[Point], began_us: u64) -> Vec<Step> {
    let mut earlier = Point { at_us: began_us, ..Point::default() };
    let mut steps = Vec::with_capacity(points.len());
    for point in points {
        if point.at_us > earlier.at_us {
            let (from, to) = (earlier.at_us as f64 / 1e6, point.at_us as f64 / 1e6);
            steps.push(Step { from, to, sample: point.sample.since(&earlier.sample) });
            earlier = point.clone();
        }
    }
    steps
}

/// A sample of which only a part counts.
fn scaled(sample: &Sample, share: f64) -> Sample {
    let part = |value: u64| (value as f64 * share).round() as u64;
    let mut stages = StageTimes::default();
    for (work, time) in sample.stages.iter() {
        stages.set(work, StageTime::from_values(time.values().into_iter().map(part)));
    }
    Sample {
        bytes: part(sample.bytes),
        carried_us: part(sample.carried_us),
        stages,
        counts: TcpCounts::from_values(sample.counts.values().into_iter().map(part)),
        processor: ProcessorTime::from_values(sample.processor.values().into_iter().map(part)),
        pressure: Pressure::from_values(sample.pressure.values().into_iter().map(part)),
        ..Sample::default()
    }
}
