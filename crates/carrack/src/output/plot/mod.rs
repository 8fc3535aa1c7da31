//! Plots over time, for a page and for a terminal: axes with round numbers, lines, stacked bands, marks. And plots of
//! single values, for a page: [`bars`], [`spreads`], [`heat`].
//!
//! A [`Panel`] is data with a title and a unit. [`svg`] draws it for a [`page`], [`text`] with characters. Nothing here
//! knows what a copy or a measurement is.

pub mod axis;
pub mod bars;
pub mod heat;
pub mod html;
mod lane;
mod names;
pub mod page;
pub mod spreads;
pub mod svg;
pub mod text;
mod thin;

use axis::Unit;

/// One picture of several that have a common time axis.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// What it shows, without the unit.
    pub title: String,
    /// What the values are.
    pub unit: Unit,
    /// Lines, drawn over the bands.
    pub lines: Vec<Line>,
    /// Bands that stand on each other.
    pub stack: Stack,
    /// The axis reaches this value at least.
    pub at_least: f64,
    /// A sentence for what the picture alone does not say.
    pub note: String,
}

impl Panel {
    /// A panel without data.
    pub fn new(title: &str, unit: Unit) -> Self {
        Self { title: title.to_owned(), unit, ..Self::default() }
    }

    /// The same with one line more, if the line has any point.
    #[must_use]
    pub fn line(mut self, name: &str, tone: Tone, points: Vec<(f64, f64)>) -> Self {
        if points.iter().any(|(_, value)| value.is_finite()) {
            self.lines.push(Line { name: name.to_owned(), tone, points });
        }
        self
    }

    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.stack.bands.is_empty()
    }

    /// The largest value, of the bands their sum.
    pub fn most(&self) -> f64 {
        let lines = self.lines.iter().flat_map(|line| line.points.iter().map(|(_, value)| *value));
        let sums = (0..self.stack.steps.len())
            .map(|at| self.stack.bands.iter().filter_map(|band| band.values.get(at)).sum::<f64>());
        lines.chain(sums).filter(|value| value.is_finite()).fold(self.at_least, f64::max)
    }
}

/// Values at moments. A value that is not finite is a gap.
#[derive(Clone, Debug)]
pub struct Line {
    /// For the legend.
    pub name: String,
    /// How it is drawn.
    pub tone: Tone,
    /// Seconds and values, in their order.
    pub points: Vec<(f64, f64)>,
}

/// Bands over common stretches of time.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// From and to, in seconds.
    pub steps: Vec<(f64, f64)>,
    /// From bottom to top.
    pub bands: Vec<Band>,
}

/// One band.
#[derive(Clone, Debug)]
pub struct Band {
    /// For the legend.
    pub name: String,
    /// How it is drawn.
    pub tone: Tone,
    /// Hatched instead of filled: the other half of what has the same tone.
    pub hatched: bool,
    /// A value for each step.
    pub values: Vec<f64>,
}

/// A colour and, for who cannot tell colours, a way of dashing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// The first of two: blue, solid.
    #[default]
    First,
    /// The second of two: orange, dashed.
    Second,
    /// Green, dotted.
    Third,
    /// Purple, long dashes.
    Fourth,
    /// Red, dashes and dots.
    Fifth,
    /// Grey: what is not worth a colour.
    Rest,
}

impl Tone {
    /// As style sheets of a page call it.
    pub fn class(self) -> &'static str {
        match self {
            Self::First => "t1",
            Self::Second => "t2",
            Self::Third => "t3",
            Self::Fourth => "t4",
            Self::Fifth => "t5",
            Self::Rest => "t0",
        }
    }
}

/// Something that happened at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// In seconds.
    pub at: f64,
    /// Two or three words. The number before them is the mark's place in its list, from 1 on.
    pub label: String,
    /// Something went wrong.
    pub is_bad: bool,
}
