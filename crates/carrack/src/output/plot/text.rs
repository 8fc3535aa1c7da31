//! Panels as characters: columns of blocks, or of ASCII where a terminal has no others.

use super::Mark;
use super::axis::{Axis, TimeAxis, Unit, moment};
use super::thin::means;

/// How characters are chosen, and how many fit beside each other.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Columns of a line.
    pub columns: usize,
    /// Nothing beyond ASCII.
    pub is_ascii: bool,
}

/// Before the picture: a number of the axis, a space and the axis itself.
const GUTTER: usize = 9;
/// Levels of a character from empty to full.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 9] = [' ', '.', '.', '.', ':', ':', ':', '#', '#'];

/// One picture: a title with the unit, and columns. Values hold from one second to another.
#[derive(Clone, Debug)]
pub struct Columns<'a> {
    /// What it shows.
    pub title: &'a str,
    /// What the values are.
    pub unit: Unit,
    /// From, to and value.
    pub steps: &'a [(f64, f64, f64)],
    /// The axis reaches this value at least.
    pub at_least: f64,
    /// Rows of characters.
    pub rows: usize,
}

impl Paper {
    /// Columns of the picture itself.
    fn width(&self) -> usize {
        self.columns.saturating_sub(GUTTER + 1).max(10)
    }

    fn axis(&self) -> char {
        if self.is_ascii { '|' } else { '│' }
    }

    /// Draws values as columns, `end` being the last second of the axis.
    pub fn draw(&self, picture: &Columns<'_>, end: f64) -> Vec<String> {
        let values = means(picture.steps, end, self.width());
        let most = values.iter().flatten().fold(picture.at_least, |most, value| most.max(*value));
        let axis = Axis::new(picture.unit, most, if picture.rows > 4 { 3 } else { 1 });
        let unit = if axis.unit.is_empty() { String::new() } else { format!(", {}", axis.unit) };
        let mut lines = vec![format!("{}{unit}", picture.title)];
        let levels = if self.is_ascii { ASCII } else { BLOCKS };
        let rows = picture.rows.max(1);
        // A number stands in the row that its value reaches.
        let row_of = |value: f64| (value / axis.top * rows as f64).ceil().max(1.0) as usize;
        for row in (1..=rows).rev() {
            let tick = axis.ticks.iter().rev().find(|(value, _)| *value > 0.0 && row_of(*value) == row);
            let label = tick.map_or("", |(_, label)| label);
            let columns = values.iter().map(|value| match value {
                None => ' ',
                Some(value) => {
                    let filled = (value / axis.top * rows as f64 - (row - 1) as f64).clamp(0.0, 1.0);
                    // What is not nothing is seen.
                    let least = f64::from(u8::from(row == 1 && *value > 0.0));
                    levels[(filled * 8.0).round().max(least) as usize]
                }
            });
            let columns: String = columns.collect();
            let line = format!("{label:>width$} {}{columns}", self.axis(), width = GUTTER - 2);
            lines.push(line.trim_end().to_owned());
        }
        lines
    }

    /// The ground of the pictures above it, with moments.
    pub fn ground(&self, end: f64) -> Vec<String> {
        let width = self.width();
        let time = TimeAxis::new(end, (width / 10) as u32);
        let (flat, corner, tick) = if self.is_ascii { ('-', '+', '+') } else { ('─', '└', '┬') };
        let mut line = vec![flat; width];
        let mut labels = vec![' '; width + GUTTER + 1];
        for (at, label) in &time.ticks {
            let column = ((at / time.end * width as f64) as usize).min(width - 1);
            line[column] = tick;
            let start = (GUTTER + column).min(labels.len().saturating_sub(label.chars().count()));
            for (place, character) in labels[start..].iter_mut().zip(label.chars()) {
                *place = character;
            }
        }
        let ground = format!("{:>width$} {corner}{}", "0", line.into_iter().collect::<String>(), width = GUTTER - 2);
        vec![ground, labels.into_iter().collect::<String>().trim_end().to_owned()]
    }

    /// A line with a letter or `*` where each mark is, and the marks in words. Nothing without marks.
    pub fn marks(&self, marks: &[Mark], end: f64) -> Vec<String> {
        let width = self.width();
        let mut line = vec![' '; width];
        for (at, mark) in marks.iter().enumerate() {
            let column = ((mark.at / end * width as f64) as usize).min(width - 1);
            line[column] = if line[column] == ' ' { letter(at) } else { '*' };
        }
        let line = format!("{:>width$} {}", "", line.into_iter().collect::<String>(), width = GUTTER - 1);
        if marks.is_empty() { Vec::new() } else { vec![line.trim_end().to_owned()] }
    }

    /// The marks in words, each with its letter and its moment.
    pub fn told(&self, marks: &[Mark]) -> Vec<String> {
        let told = |(at, mark): (usize, &Mark)| format!("  {} {:>8}  {}", letter(at), moment(mark.at), mark.label);
        marks.iter().enumerate().map(told).collect()
    }
}

/// `a` to `z`, then `A` to `Z`, then `+`.
fn letter(at: usize) -> char {
    let letters = ('a'..='z').chain('A'..='Z');
    letters.into_iter().nth(at).unwrap_or('+')
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: Paper = Paper { columns: 30, is_ascii: false };

    fn picture(steps: &[(f64, f64, f64)]) -> Columns<'_> {
        Columns { title: "Rate", unit: Unit::BytesPerSecond, steps, at_least: 0.0, rows: 4 }
    }

    #[test]
    fn columns_are_as_high_as_their_values() {
        let steps = [(0.0, 5.0, 2e8), (5.0, 10.0, 1e8), (15.0, 20.0, 1.0)];
        let drawn = PAPER.draw(&picture(&steps), 20.0);
        assert_eq!(
            drawn,
            ["Rate, MB/s", "    200 │█████", "        │█████", "        │██████████", "        │██████████     ▁▁▁▁▁"]
        );
        let ascii = Paper { is_ascii: true, ..PAPER };
        let drawn = ascii.draw(&picture(&steps), 20.0).concat() + &ascii.ground(20.0).concat();
        assert!(drawn.is_ascii() && drawn.contains("|##########     ....."), "{drawn}");
        assert_eq!(PAPER.ground(20.0), ["      0 └┬─────────┬────────┬", "         0         10 s   20 s"]);
    }

    #[test]
    fn lines_fit_the_paper() {
        for columns in [20, 40, 80, 132] {
            for is_ascii in [true, false] {
                let paper = Paper { columns, is_ascii };
                let steps: Vec<(f64, f64, f64)> =
                    (0..1000).map(|at| (f64::from(at), f64::from(at + 1), f64::from(at * at))).collect();
                let marks: Vec<Mark> =
                    (0..70).map(|at| Mark { at: f64::from(at) * 14.0, label: "m".into(), is_bad: false }).collect();
                let all = [paper.draw(&picture(&steps), 1000.0), paper.ground(1000.0), paper.marks(&marks, 1000.0)];
                for line in all.concat() {
                    assert!(line.chars().count() <= columns.max(20), "{line}");
                }
            }
        }
        assert!(PAPER.marks(&[], 1.0).is_empty());
    }
}
