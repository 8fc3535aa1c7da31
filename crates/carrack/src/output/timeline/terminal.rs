//! A recording as lines for a terminal or a file.

use carrack_core::timeline::ProcessorTime;

use super::view::{EndView, View, processors_busy};
use super::{happened, phases, start, told};
use crate::output::plot::axis::Unit;
use crate::output::plot::text::{Columns, Paper};

/// The lines of a report.
pub fn lines(view: &View<'_>, paper: Paper) -> Vec<String> {
    let mut lines = vec![told::title(view), told::when(view)];
    lines.extend(told::warnings(view).iter().map(|warning| format!("warning: {warning}")));
    for end in [&view.source, &view.destination] {
        if !end.silence().is_empty() {
            lines.push(format!("note: {}", end.silence()));
        }
    }
    lines.push(String::new());
    lines.push(told::verdict(view.verdict()));
    let figures = told::figures(view);
    let widest = figures.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    lines.extend(figures.iter().map(|(name, value)| format!("  {name:widest$}  {value}")));
    lines.push(String::new());
    pictures(view, paper, &mut lines);
    lines.extend(beginning(view));
    lines.extend(table(view));
    lines.into_iter().map(|line| if paper.is_ascii { ascii(&line) } else { line }).collect()
}

fn pictures(view: &View<'_>, paper: Paper, lines: &mut Vec<String>) {
    let marks = happened::marks(&view.happenings);
    let rated = view.rated();
    let mut draw = |title: &str, unit: Unit, steps: &[(f64, f64, f64)], at_least: f64, rows: usize| {
        // What nobody has measured is no picture of zeros.
        if !steps.is_empty() {
            let picture = Columns { title, unit, steps, at_least, rows };
            lines.extend(paper.draw(&picture, view.end));
            lines.extend(paper.ground(view.end));
            if rows > 4 {
                lines.extend(paper.marks(&marks, view.end));
                lines.extend(paper.told(&marks));
            }
            lines.push(String::new());
        }
    };
    let title = format!("Rate, as the {} has it", rated.side);
    draw(&title, Unit::BytesPerSecond, &rated.rate(), 0.0, 8);
    let streams: Vec<(f64, f64, f64)> =
        rated.steps.iter().filter_map(|step| Some((step.from, step.to, view.streams(step.to)? as f64))).collect();
    draw("Streams", Unit::Count, &streams, 1.0, 3);
    if view.source.steps.iter().any(|step| step.sample.counts.segments > 0) {
        let again = view.source.each(|step| Some(step.sample.counts.retransmits as f64 / step.time()));
        draw("Segments sent again", Unit::PerSecond, &again, 1.0, 3);
    }
    for end in [&view.source, &view.destination] {
        let busy = end.each(|step| processors_busy(&step.sample.processor));
        draw(&format!("Processors of the {}", end.side), Unit::Share, &busy, 1.0, 4);
    }
    for end in [&view.source, &view.destination] {
        draw(&format!("Waiting for disks at the {}", end.side), Unit::Share, &disk_wait(end), 1.0, 3);
    }
}

/// The share of the time in which somebody at an end waited for a disk; nothing where its system does not tell.
fn disk_wait(end: &EndView<'_>) -> Vec<(f64, f64, f64)> {
    let stalled = end.steps.iter().any(|step| step.sample.pressure.io_some_us > 0);
    let idle = end.steps.iter().any(|step| step.sample.processor != ProcessorTime::default());
    end.each(|step| {
        let share = |part: u64, all: f64| Some((part as f64 / all).min(1.0));
        let processor = &step.sample.processor;
        match (stalled, idle) {
            (true, _) => share(step.sample.pressure.io_some_us, step.time() * 1e6),
            (_, true) => {
                share(processor.disk_wait_us, processor.busy_us.saturating_add(processor.idle_us).max(1) as f64)
            }
            _ => None,
        }
    })
}

/// The stretches of time as a table, as wide as its cells.
fn table(view: &View<'_>) -> Vec<String> {
    let head = ["time", "MB/s", "streams", "again", "CPU src", "CPU dst", "limited by"].map(str::to_owned);
    let phases = phases::phases(view);
    if phases.is_empty() {
        return Vec::new();
    }
    let rows: Vec<[String; 7]> = std::iter::once(head).chain(phases.iter().map(|phase| phase.cells())).collect();
    aligned(&rows, &[1, 2, 3, 4, 5])
}

/// The steps of the start as a table.
fn beginning(view: &View<'_>) -> Vec<String> {
    let steps = start::rows(view.recording);
    if steps.is_empty() {
        return Vec::new();
    }
    let head = start::HEAD.map(str::to_owned);
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(steps.iter().map(start::Row::cells)).collect();
    let lines = std::iter::once("How the copy began".to_owned()).chain(aligned(&rows, &[0, 1, 2]));
    lines.chain([String::new()]).collect()
}

/// Rows of a table, as wide as their cells. Columns whose place is in `numbers` are set right.
fn aligned<const N: usize>(rows: &[[String; N]], numbers: &[usize]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match numbers.contains(&at) {
            false => format!("{cell:width$}"),
            true => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// The few characters of our own beyond ASCII, and whatever else a name has in it.
fn ascii(line: &str) -> String {
    let each = line.chars().map(|character| match character {
        'µ' => "u".to_owned(),
        _ if character.is_ascii() => character.to_string(),
        _ => character.escape_unicode().to_string(),
    });
    each.collect()
}
