//! Panels as SVG inside a page. Colours and dashes come from the page's style sheet, so one drawing is good for a light
//! page and a dark one.

use std::fmt::Write;

use super::axis::{Axis, TimeAxis, Unit, moment};
use super::html::escape;
use super::lane::place;
use super::thin::thin;
use super::{Mark, Panel, Stack, Tone};

/// A drawing, element by element.
pub struct Svg {
    out: String,
}

impl Svg {
    /// Begins a drawing of this size. `label` says what it shows to who cannot see it.
    pub fn new(width: f64, height: f64, label: &str) -> Self {
        let mut out = String::new();
        let label = escape(label);
        let _ = write!(out, "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{label}\">");
        Self { out }
    }

    /// Begins a drawing that is shown in its own size, also where the page is narrower.
    pub fn natural(width: f64, height: f64, label: &str) -> Self {
        let label = escape(label);
        let out = format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" style=\"min-width:{width:.0}px\" role=\"img\" \
             aria-label=\"{label}\">"
        );
        Self { out }
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ =
            write!(self.out, "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>");
    }

    /// A rectangle; `title` is shown where the pointer rests on it.
    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), title: &str) {
        let size = format!("width=\"{width:.1}\" height=\"{height:.1}\"");
        let _ = write!(self.out, "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" {size}");
        let _ = match title {
            "" => write!(self.out, "/>"),
            title => write!(self.out, "><title>{}</title></rect>", escape(title)),
        };
    }

    /// A rectangle in a colour that is the same on a light page and a dark one: `#rrggbb`.
    pub fn block(&mut self, colour: &str, (x, y): (f64, f64), (width, height): (f64, f64), title: &str) {
        let title = escape(title);
        let _ = write!(
            self.out,
            "<rect fill=\"{colour}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\">\
             <title>{title}</title></rect>"
        );
    }

    /// A text; `anchor` is `start`, `middle` or `end`.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: &str, text: &str) {
        let text = escape(text);
        let _ = write!(
            self.out,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// A path through points; a gap where a point is not finite. Closed, it is an area.
    pub fn path(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>, is_closed: bool) {
        let mut path = String::new();
        let mut pen_down = false;
        for (x, y) in points {
            if y.is_finite() {
                let _ = write!(path, "{}{x:.1} {y:.1}", if pen_down { "L" } else { "M" });
            }
            pen_down = y.is_finite();
        }
        let close = if is_closed { "Z" } else { "" };
        let _ = write!(self.out, "<path class=\"{class}\" d=\"{path}{close}\"/>");
    }

    /// Ends the drawing.
    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>");
        self.out
    }
}

/// Where the picture is in the drawing.
#[derive(Clone, Copy, Debug)]
struct Frame {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    /// Seconds and value at the far corner.
    end: f64,
    most: f64,
}

impl Frame {
    fn x(&self, at: f64) -> f64 {
        self.left + (at / self.end).clamp(0.0, 1.0) * self.width
    }

    fn y(&self, value: f64) -> f64 {
        self.top + self.height - (value / self.most).clamp(0.0, 1.0) * self.height
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    fn right(&self) -> f64 {
        self.left + self.width
    }
}

/// How a panel is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Of the whole drawing.
    pub width: f64,
    /// Of the picture alone.
    pub height: f64,
    /// Whether marks have their labels here.
    pub with_labels: bool,
}

/// Room for numbers on the left, and for half a label on the right.
const MARGINS: (f64, f64) = (46.0, 14.0);
/// Height of a row of labels above the picture.
const ROW: f64 = 18.0;
/// Rows of labels, at most.
const ROWS: usize = 4;
/// Width of a character of a label, at most.
const CHARACTER: f64 = 6.6;

/// Draws a panel. `end` is where its time axis ends, in seconds.
pub fn panel(panel: &Panel, end: f64, marks: &[Mark], size: Size) -> String {
    let (left, right) = MARGINS;
    let width = size.width - left - right;
    let texts = marks.iter().enumerate().map(|(at, mark)| {
        let short = (at + 1).to_string();
        (mark.at / end * width, format!("{short}: {}", mark.label), short)
    });
    let labels = match size.with_labels {
        true => place(&texts.collect::<Vec<_>>(), width, ROWS, |text| text_width(text) + 11.0),
        false => Vec::new(),
    };
    let rows = labels.iter().map(|label| label.row + 1).max().unwrap_or(0);
    let top = 8.0 + rows as f64 * ROW;
    let axis = Axis::new(panel.unit, panel.most(), if size.height < 100.0 { 3 } else { 5 });
    let time = TimeAxis::new(end, (width / 72.0) as u32);
    let frame = Frame { left, top, width, height: size.height, end: time.end, most: axis.top };
    let mut svg = Svg::new(size.width, frame.bottom() + 22.0, &described(panel));
    grid(&mut svg, &frame, &axis, &time);
    bands(&mut svg, &frame, &panel.stack);
    for line in &panel.lines {
        let points = thin(&line.points, end, width as usize / 2);
        let class = format!("line {}", line.tone.class());
        svg.path(&class, points.iter().map(|&(at, value)| (frame.x(at), point(&frame, value))), false);
    }
    for (at, mark) in marks.iter().enumerate() {
        let label = labels.iter().find(|label| label.mark == at);
        let up = label.map_or(frame.top, |label| frame.top - label.row as f64 * ROW - 4.0);
        let class = if mark.is_bad { "mark bad" } else { "mark" };
        svg.line(class, (frame.x(mark.at), up), (frame.x(mark.at), frame.bottom()));
    }
    // Over all lines, which would strike them out.
    for label in &labels {
        let bad = if marks[label.mark].is_bad { " bad" } else { "" };
        let (x, y) = (left + label.left, frame.top - label.row as f64 * ROW - ROW);
        svg.rect(&format!("tag{bad}"), (x, y), (text_width(&label.text) + 8.0, ROW - 3.0), "");
        svg.text(&format!("tagged{bad}"), (x + 4.0, y + 11.5), "start", &label.text);
    }
    readings(&mut svg, &frame, panel);
    svg.finish()
}

/// How wide a small text is, at most.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

fn point(frame: &Frame, value: f64) -> f64 {
    if value.is_finite() { frame.y(value) } else { f64::NAN }
}

/// What a panel shows, in words.
fn described(panel: &Panel) -> String {
    let of = |name: &str, values: &mut dyn Iterator<Item = f64>| {
        let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        format!("{name} up to {}", panel.unit.shown(most))
    };
    let lines = panel.lines.iter().map(|line| of(&line.name, &mut line.points.iter().map(|(_, value)| *value)));
    let bands = panel.stack.bands.iter().map(|band| of(&band.name, &mut band.values.iter().copied()));
    let all: Vec<String> = lines.chain(bands).collect();
    format!("{} over time: {}", panel.title, all.join(", "))
}

fn grid(svg: &mut Svg, frame: &Frame, axis: &Axis, time: &TimeAxis) {
    for (value, label) in &axis.ticks {
        let y = frame.y(*value);
        svg.line(if *value == 0.0 { "base" } else { "grid" }, (frame.left, y), (frame.right(), y));
        svg.text("tick", (frame.left - 6.0, y + 4.0), "end", label);
    }
    for (at, label) in &time.ticks {
        let x = frame.x(*at);
        svg.line("base", (x, frame.bottom()), (x, frame.bottom() + 4.0));
        // The last label must not stick out.
        let (middle, most) = (text_width(label) / 2.0, frame.right() + MARGINS.1 - 1.0);
        let (x, anchor) = if x + middle > most { (most, "end") } else { (x, "middle") };
        svg.text("tick", (x, frame.bottom() + 17.0), anchor, label);
    }
}

/// Bands stand on each other; where there are more steps than can be seen, neighbours become one.
fn bands(svg: &mut Svg, frame: &Frame, stack: &Stack) {
    let group = stack.steps.len().div_ceil((frame.width / 4.0) as usize).max(1);
    let steps: Vec<(f64, f64)> =
        stack.steps.chunks(group).map(|steps| (steps[0].0, steps[steps.len() - 1].1)).collect();
    let mut floor = vec![0.0; steps.len()];
    for band in &stack.bands {
        let values = band.values.chunks(group).zip(stack.steps.chunks(group));
        let values = values.map(|(values, steps)| {
            let time: f64 = steps.iter().map(|(from, to)| to - from).sum();
            let sum: f64 = values.iter().zip(steps).map(|(value, (from, to))| value * (to - from)).sum();
            if time > 0.0 { sum / time } else { 0.0 }
        });
        let ceiling: Vec<f64> = floor.iter().zip(values).map(|(floor, value)| floor + value).collect();
        let edge = |heights: &[f64]| -> Vec<(f64, f64)> {
            let pairs = steps.iter().zip(heights);
            pairs.flat_map(|((from, to), height)| [*from, *to].map(|at| (frame.x(at), frame.y(*height)))).collect()
        };
        let hatched = if band.hatched { " hatched" } else { "" };
        let class = format!("band {}{hatched}", band.tone.class());
        svg.path(&class, edge(&ceiling).into_iter().chain(edge(&floor).into_iter().rev()), true);
        floor = ceiling;
    }
}

/// Columns that tell their values where the pointer rests on them, without a script.
fn readings(svg: &mut Svg, frame: &Frame, panel: &Panel) {
    let columns = (frame.width / 18.0).ceil();
    let width = frame.end / columns;
    for column in 0..columns as usize {
        let (from, to) = (column as f64 * width, (column + 1) as f64 * width);
        let middle = f64::midpoint(from, to);
        let near = |points: &[(f64, f64)]| {
            let finite = points.iter().filter(|(_, value)| value.is_finite());
            let nearest = finite.min_by(|one, other| (one.0 - middle).abs().total_cmp(&(other.0 - middle).abs()))?;
            ((nearest.0 - middle).abs() <= width.max(2.5)).then_some(nearest.1)
        };
        let lines = panel.lines.iter().filter_map(|line| Some((&line.name, near(&line.points)?)));
        let step = panel.stack.steps.iter().position(|(from, to)| (*from..*to).contains(&middle));
        let of_step = |band: &super::Band| step.and_then(|at| band.values.get(at).copied());
        let bands = panel.stack.bands.iter().filter_map(|band| Some((&band.name, of_step(band)?)));
        let told: Vec<String> =
            lines.chain(bands).map(|(name, value)| format!("{name}: {}", panel.unit.shown(value))).collect();
        if !told.is_empty() {
            let title = format!("{}\n{}", short_moment(middle, frame.end), told.join("\n"));
            let (x, wide) = (frame.x(from), frame.width / columns);
            svg.rect("reading", (x, frame.top), (wide, frame.height), &title);
        }
    }
}

/// A moment of an axis that ends at `end`: where that is soon, with parts of a second.
fn short_moment(at: f64, end: f64) -> String {
    if end < 10.0 { Unit::Seconds.shown(at) } else { moment(at) }
}

/// A short piece of a line or a band, for a legend.
pub fn swatch(tone: Tone, band: Option<bool>) -> String {
    let mut svg = String::from("<svg class=\"swatch\" viewBox=\"0 0 28 12\" aria-hidden=\"true\">");
    let class = tone.class();
    let _ = match band {
        None => write!(svg, "<path class=\"line {class}\" d=\"M0 6L28 6\"/>"),
        Some(hatched) => {
            let hatched = if hatched { " hatched" } else { "" };
            write!(svg, "<rect class=\"band {class}{hatched}\" x=\"0\" y=\"0\" width=\"28\" height=\"12\"/>")
        }
    };
    svg.push_str("</svg>");
    svg
}
