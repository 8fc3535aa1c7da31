//! A recording as a page.

use super::view::View;
use super::{happened, panels, phases, start, told};
use crate::output::plot::axis::moment;
use crate::output::plot::html::{escape, name};
use crate::output::plot::page::Page;

/// Height of the first picture, and of the others.
const HEIGHTS: (f64, f64) = (190.0, 110.0);

/// The page, whole.
pub fn page(view: &View<'_>) -> String {
    let title = told::title(view);
    let mut page = Page::new(&title);
    page.html(&format!("<h1>{}</h1>", name(&title)));
    page.paragraph("lead", &told::when(view));
    for warning in told::warnings(view) {
        page.paragraph("warning", &warning);
    }
    page.paragraph("verdict", &told::verdict(view.verdict()));
    page.figures(&told::figures(view));
    let marks = happened::marks(&view.happenings);
    page.heading(2, "Over time");
    let rate = panels::rate(view);
    if rate.is_empty() {
        page.paragraph("note", &rate.note);
    } else {
        page.panel(&rate, view.end, &marks, HEIGHTS.0, true);
    }
    for panel in panels::others(view) {
        page.panel(&panel, view.end, &marks, HEIGHTS.1, false);
    }
    beginning(&mut page, view);
    phase_table(&mut page, view);
    happenings(&mut page, view);
    page.heading(2, "Facts");
    let mut rows = Vec::new();
    for (group, facts) in told::facts(view) {
        for (at, (fact, value)) in facts.iter().enumerate() {
            let group = if at == 0 { format!("<strong>{}</strong>", escape(&group)) } else { String::new() };
            rows.push(vec![group, escape(fact), name(value)]);
        }
    }
    page.table(&["of", "what", "value"], &rows, &[]);
    page.html(&format!("<footer>{}</footer>", escape(&footer(view))));
    page.finish()
}

fn beginning(page: &mut Page, view: &View<'_>) {
    let steps = start::rows(view.recording);
    let Some(last) = steps.last() else { return };
    page.heading(2, "How the copy began");
    let row = |step: &start::Row| {
        let [at, took, round_trips, side, what] = step.cells().map(|cell| escape(&cell));
        vec![at, took, round_trips, step.bar(last.at), side, what]
    };
    let rows: Vec<Vec<String>> = steps.iter().map(row).collect();
    let [at, took, round_trips, side, what] = start::HEAD;
    page.table(&[at, took, round_trips, "", side, what], &rows, &[0, 1, 2]);
}

fn phase_table(page: &mut Page, view: &View<'_>) {
    let phases = phases::phases(view);
    if phases.is_empty() {
        return;
    }
    page.heading(2, "In numbers");
    let rows: Vec<Vec<String>> =
        phases.iter().map(|phase| phase.cells().iter().map(|cell| escape(cell)).collect()).collect();
    page.table(&phases::HEAD, &rows, &[1, 2, 3, 4, 5]);
}

fn happenings(page: &mut Page, view: &View<'_>) {
    if view.happenings.is_empty() {
        return;
    }
    page.heading(2, "Events");
    let marks = happened::marks(&view.happenings);
    let mut number = 0;
    let rows: Vec<Vec<String>> = view
        .happenings
        .iter()
        .map(|one| {
            // Marks are some of what happened, in the same order.
            let is_next =
                marks.get(number).is_some_and(|mark| mark.at.total_cmp(&one.at).is_eq() && mark.label == one.label);
            number += usize::from(is_next && one.is_marked);
            let mark = if is_next && one.is_marked { number.to_string() } else { String::new() };
            vec![mark, escape(&moment(one.at)), escape(&one.label), name(&one.detail)]
        })
        .collect();
    page.table(&["mark", "at", "event", "more"], &rows, &[0, 1]);
}

fn footer(view: &View<'_>) -> String {
    let errors = [&view.source, &view.destination].map(|end| {
        let series = view.recording.timeline.series(if end.side == "source" {
            carrack_core::report::Side::Source
        } else {
            carrack_core::report::Side::Destination
        });
        series.into_iter().flat_map(|series| series.points()).map(|point| point.error_us).max().unwrap_or(0)
    });
    let worst = errors.into_iter().max().unwrap_or(0) as f64 / 1e6;
    let error = crate::output::plot::axis::Unit::Seconds.shown(worst);
    let samples = crate::output::format::counted(view.recording.samples, "sample", "samples");
    format!(
        "{samples}. Both ends are on one axis, which may be wrong by {error}. Rest the pointer on a picture to read its \
         values. Written by carrack report {}.",
        env!("CARGO_PKG_VERSION")
    )
}
