//! A recording in a dozen rows: stretches of time, each with what was measured in it.

use serde_json::{Value, json};

use super::view::{EndView, Verdict, View, processors_busy};
use crate::output::plot::axis::{TimeAxis, Unit, moment};

/// Rows, about.
const ROWS: u32 = 12;

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// In seconds.
    pub from: f64,
    /// In seconds.
    pub to: f64,
    /// Moments are told with a decimal: the copy was short.
    pub is_fine: bool,
    /// Bytes a second, at the destination if it tells.
    pub rate: Option<f64>,
    /// Data streams at its end.
    pub streams: Option<u64>,
    /// Segments that the source sent again; nothing where it does not tell of TCP.
    pub retransmits: Option<u64>,
    /// Share of the processors of the source's host that was at work.
    pub source_busy: Option<f64>,
    /// The same at the destination.
    pub destination_busy: Option<f64>,
    /// What held it back.
    pub verdict: Option<Verdict>,
}

/// What the columns of a table are called.
pub const HEAD: [&str; 7] =
    ["time", "MB/s", "streams", "retransmits", "source CPU", "destination CPU", "limited by (of the streams' time)"];

/// The stretches of a recording: of equal length, cut where the rate fell. None where neither end tells.
pub fn phases(view: &View<'_>) -> Vec<Phase> {
    if !view.source.tells() && !view.destination.tells() {
        return Vec::new();
    }
    let mut cuts: Vec<f64> = TimeAxis::new(view.end, ROWS).ticks.into_iter().map(|(at, _)| at).collect();
    let width = cuts.get(1).copied().unwrap_or(view.end);
    cuts.push(view.end);
    let fell = view.happenings.iter().filter(|one| one.is_fall);
    for one in fell.take(ROWS as usize) {
        // A cut close to another moves that one, so that no row has next to nothing.
        cuts.retain(|cut| (cut - one.at).abs() > width / 4.0 || *cut == 0.0 || *cut >= view.end);
        cuts.push(one.at);
    }
    cuts.sort_by(f64::total_cmp);
    // The very end stays, and what is too close to it does not.
    cuts.retain(|cut| view.end - cut >= width / 20.0 || *cut >= view.end);
    cuts.dedup();
    cuts.windows(2).map(|pair| phase(view, pair[0], pair[1])).collect()
}

fn phase(view: &View<'_>, from: f64, to: f64) -> Phase {
    let (source, destination) = (view.source.over(from, to), view.destination.over(from, to));
    let rated = view.rated();
    let bytes = rated.over(from, to).bytes as f64;
    let time = covered(rated, from, to);
    let tells_tcp = view.source.steps.iter().any(|step| step.sample.counts.segments > 0);
    Phase {
        from,
        to,
        is_fine: view.end < 20.0,
        rate: (time > 0.0).then(|| bytes / time),
        streams: view.streams(to),
        retransmits: tells_tcp.then_some(source.counts.retransmits),
        source_busy: processors_busy(&source.processor),
        destination_busy: processors_busy(&destination.processor),
        verdict: view.limits(from, to),
    }
}

/// How much of a stretch an end tells of, in seconds.
fn covered(end: &EndView<'_>, from: f64, to: f64) -> f64 {
    end.steps.iter().map(|step| (step.to.min(to) - step.from.max(from)).max(0.0)).sum()
}

impl Phase {
    /// The cells of its row, in the order of [`HEAD`]; what is not known is a dash.
    pub fn cells(&self) -> [String; 7] {
        let share = |share: Option<f64>| share.map_or("-".into(), |share| Unit::Share.shown(share));
        let count = |count: Option<u64>| count.map_or("-".into(), crate::output::format::count);
        let rate =
            |rate: f64| if rate >= 99.95e6 { format!("{:.0}", rate / 1e6) } else { format!("{:.1}", rate / 1e6) };
        let limited = |verdict: Verdict| {
            let (stage, share) = verdict.limit;
            format!("{} ({})", stage.meaning(), Unit::Share.shown(share))
        };
        [
            // Seconds alone would not tell short ones apart.
            match self.is_fine {
                true => format!("{:.1} to {:.1} s", self.from, self.to),
                false => format!("{} to {}", moment(self.from), moment(self.to)),
            },
            self.rate.map_or("-".into(), rate),
            count(self.streams),
            count(self.retransmits),
            share(self.source_busy),
            share(self.destination_busy),
            self.verdict.map_or("-".into(), limited),
        ]
    }

    /// The row as an object's fields.
    pub fn fields(&self) -> Value {
        let limit = self.verdict.map(|verdict| verdict.fields());
        json!({
            "from_seconds": thousandths(self.from),
            "to_seconds": thousandths(self.to),
            "bytes_per_second": self.rate.map(|rate| rate as u64),
            "streams": self.streams,
            "retransmits": self.retransmits,
            "source_busy": self.source_busy.map(thousandths),
            "destination_busy": self.destination_busy.map(thousandths),
            "limited_by": limit.as_ref().map(|(limit, _)| limit),
            "runner_up": limit.as_ref().and_then(|(_, runner_up)| runner_up.as_ref()),
        })
    }
}

impl Verdict {
    /// What held it back and what was next, as objects.
    pub fn fields(&self) -> (Value, Option<Value>) {
        let object = |(stage, share): (carrack_core::pace::limit::Stage, f64)| json!({ "stage": stage.name(), "share": thousandths(share) });
        (object(self.limit), self.runner_up.map(object))
    }
}

/// More digits would be noise.
pub fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
