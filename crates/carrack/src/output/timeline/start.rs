//! How a recorded copy began: the steps of its first session, each with what it took.

use carrack_core::report::Side;
use carrack_core::timeline::StartStep;
use serde_json::{Value, json};

use super::happened::text;
use super::phases::thousandths;
use super::read::{Recording, Told};
use crate::output::plot::Tone;

/// Rows, at most: four sides cannot take more steps than these.
const ROWS: usize = 64;
/// Width of a bar, of its own units.
const BAR: f64 = 200.0;

/// What the columns of a table are called.
pub const HEAD: [&str; 5] = ["at", "took", "round trips", "of", "step"];

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// In seconds.
    pub at: f64,
    /// Since the step before, in seconds.
    pub took: f64,
    /// The same in round trips, where those are what a step costs.
    pub round_trips: Option<f64>,
    /// The word of its side; printable.
    pub side: String,
    /// Its word; printable.
    pub step: String,
}

/// The steps of the first session that has any, in their order.
pub fn rows(recording: &Recording) -> Vec<Row> {
    let steps = || recording.events.iter().filter(|told| told.kind == "step");
    let session = |told: &Told| told.fields.get("session").and_then(Value::as_u64).unwrap_or(0);
    let first = steps().map(session).min();
    let mut rows: Vec<Row> = steps().filter(|told| Some(session(told)) == first).take(ROWS).map(row).collect();
    rows.sort_by(|one, other| one.at.total_cmp(&other.at));
    rows
}

fn row(told: &Told) -> Row {
    let took = told.fields.get("took_us").and_then(Value::as_u64).unwrap_or(0);
    let (side, step) = (text(&told.fields, "side"), text(&told.fields, "step"));
    let round_trips = told.fields.get("round_trips").and_then(Value::as_f64);
    Row { at: told.at_us as f64 / 1e6, took: took as f64 / 1e6, round_trips, side, step }
}

impl Row {
    /// The cells of its row, in the order of [`HEAD`].
    pub fn cells(&self) -> [String; 5] {
        // A later version may know more steps.
        let step = StartStep::parse(&self.step).map_or_else(|_| self.step.clone(), |step| step.meaning().to_owned());
        let round_trips = self.round_trips.map_or("-".into(), |trips| format!("{trips:.1}"));
        [brief(self.at), brief(self.took), round_trips, self.side.clone(), step]
    }

    /// Where it stands between the beginning and the last step, as a bar; HTML.
    pub fn bar(&self, end: f64) -> String {
        let scale = if end > 0.0 { BAR / end } else { 0.0 };
        let tone = match Side::parse(&self.side) {
            Ok(Side::Source) => Tone::First,
            Ok(Side::Destination) => Tone::Second,
            Ok(Side::Link) => Tone::Third,
            _ => Tone::Rest,
        };
        // What took next to nothing is seen all the same.
        let width = (self.took * scale).clamp(1.5, BAR);
        let x = (self.at * scale - width).clamp(0.0, BAR - width);
        format!(
            "<svg class=\"bar\" viewBox=\"0 0 {BAR} 10\" aria-hidden=\"true\"><rect class=\"band {}\" x=\"{x:.1}\" \
             y=\"0\" width=\"{width:.1}\" height=\"10\"/></svg>",
            tone.class()
        )
    }

    /// The row as an object's fields.
    pub fn fields(&self) -> Value {
        json!({
            "side": self.side,
            "step": self.step,
            "at_us": (self.at * 1e6).round() as u64,
            "took_us": (self.took * 1e6).round() as u64,
            "round_trips": self.round_trips.map(thousandths),
        })
    }
}

/// A time of a start: milliseconds, mostly.
fn brief(seconds: f64) -> String {
    match seconds * 1e3 {
        ms if ms < 9.95 => format!("{ms:.1} ms"),
        ms if ms < 9999.5 => format!("{ms:.0} ms"),
        _ => format!("{seconds:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_start_are_brief() {
        let cases = [(0.0, "0.0 ms"), (0.00994, "9.9 ms"), (0.08, "80 ms"), (1.5, "1500 ms"), (12.34, "12.3 s")];
        for (seconds, told) in cases {
            assert_eq!(brief(seconds), told);
        }
    }

    #[test]
    fn bars_stay_within_their_room() {
        let row = |at, took| Row { at, took, round_trips: None, side: "link".into(), step: "dial".into() };
        assert!(row(1.0, 0.5).bar(2.0).contains("class=\"band t3\" x=\"50.0\" y=\"0\" width=\"50.0\""));
        for (at, took, end) in [(0.0, 0.0, 0.0), (2.0, 9.0, 2.0), (0.0, 1.0, 2.0), (2.0, 0.0, 2.0)] {
            let bar = row(at, took).bar(end);
            let number = |name: &str| -> f64 {
                let (_, rest) = bar.split_once(&format!(" {name}=\"")).unwrap();
                rest.split_once('"').unwrap().0.parse().unwrap()
            };
            assert!(number("x") >= 0.0 && number("x") + number("width") <= BAR, "{bar}");
        }
    }
}
