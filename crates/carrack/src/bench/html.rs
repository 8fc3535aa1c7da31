//! A result as one page that needs nothing else, in the style of every page that Carrack writes.

use std::collections::BTreeSet;

use carrack_measure::result::{Measurement, Row, label, value};

use super::table::is_random;
use super::{diff, ladder, load, numbers, page_tables, peers, table};
use crate::output::format;
use crate::output::plot::axis::Unit;
use crate::output::plot::bars::{Bar, bars};
use crate::output::plot::heat::{Cell, Heat, heat};
use crate::output::plot::html::{escape, name};
use crate::output::plot::page::Page;
use crate::output::plot::spreads::{Spread, spreads};
use crate::output::plot::{Panel, Tone};

const HATCHED: &str = "Hatched: from or in a cache, so nothing is said about the storage.";
/// More rows with single operations than this are in the table alone.
const SPREADS_MOST: usize = 40;
/// So many rows have a picture of their rate over time.
const PANELS_MOST: usize = 60;
/// A row with fewer slots has no rate over time.
const SLOTS_LEAST: usize = 20;

/// The page.
pub fn page(measured: &Measurement) -> String {
    let mut page = Page::new(&format!("carrack bench {} {}", measured.kind, measured.target));
    heading(&mut page, measured);
    if measured.kind == "load" {
        load::page::sections(&mut page, measured);
    } else if !peers::page::figures(&mut page, measured) {
        heat_maps(&mut page, measured);
        rates(&mut page, measured);
        operations(&mut page, measured);
        times(&mut page, measured);
        over_time(&mut page, measured);
        numbers_table(&mut page, measured);
    }
    facts(&mut page, measured);
    page.html(&format!("<footer>Written by carrack bench {}.</footer>", env!("CARGO_PKG_VERSION")));
    page.finish()
}

fn heading(page: &mut Page, measured: &Measurement) {
    let lines = table::headline(measured);
    page.html(&format!("<h1>{}</h1>", name(&lines[0])));
    let mut told: Vec<&str> =
        lines[1..].iter().filter(|line| !line.starts_with("note: ")).map(String::as_str).collect();
    let started = format::rfc3339_seconds(measured.started);
    let took = format!("measured {started} in {}", format::duration(measured.elapsed));
    told.push(&took);
    page.paragraph("lead", &told.join(" · "));
    for warning in &measured.warnings {
        page.paragraph("warning", &warning.text);
    }
    if let Some(verdict) = ladder::verdict(measured) {
        page.paragraph("verdict", &verdict);
    }
}

/// Whether a row says nothing about the storage.
fn is_hatched(row: &Row) -> bool {
    [label::CACHED, label::PARTLY_CACHED, label::CACHE_UNKNOWN].iter().any(|label| row.has_label(label))
}

fn bytes_rate(row: &Row) -> Option<f64> {
    row.value(value::BYTES_PER_SECOND)
}

fn record(row: &Row) -> Option<u64> {
    row.condition("record_bytes")?.parse().ok()
}

/// Mode, depth and files of a row: one heat map for each that was measured with several record sizes.
fn group(row: &Row) -> Option<(String, String)> {
    Some((row.condition("mode")?.to_owned(), super::table::depth(row)))
}

fn in_group<'a>(measured: &'a Measurement, wanted: &'a (String, String)) -> impl Iterator<Item = &'a Row> {
    measured.rows.iter().filter(move |row| group(row).as_ref() == Some(wanted) && row.condition("arrivals").is_none())
}

/// Groups of rows with at least three record sizes, in the order of their first rows.
fn grids(measured: &Measurement) -> Vec<(String, String)> {
    let mut groups: Vec<(String, String)> = Vec::new();
    for row in &measured.rows {
        groups.extend(group(row).filter(|group| !groups.contains(group)));
    }
    let sizes = |group: &(String, String)| in_group(measured, group).filter_map(record).collect::<BTreeSet<_>>().len();
    groups.retain(|group| sizes(group) >= 3);
    groups
}

fn heat_maps(page: &mut Page, measured: &Measurement) {
    for (at, group) in grids(measured).iter().enumerate() {
        if at == 0 {
            page.heading(2, "Rate by record size");
        }
        let rows: Vec<&Row> = in_group(measured, group).collect();
        let map = heat_map(&rows);
        let (mode, depth) = group;
        let title = format!("{mode}, depth {depth}, in MB/s");
        let note = if rows.iter().any(|row| is_hatched(row)) { HATCHED } else { "" };
        page.figure(&title, note, |width| heat(&map, &title, width));
    }
}

/// Record sizes down, operations across.
fn heat_map(rows: &[&Row]) -> Heat {
    let mut columns: Vec<String> = Vec::new();
    for row in rows {
        if !columns.contains(&row.name) {
            columns.push(row.name.clone());
        }
    }
    let sizes: BTreeSet<u64> = rows.iter().filter_map(|row| record(row)).collect();
    let cell = |name: &str, size: u64| {
        let row = rows.iter().find(|row| row.name == name && record(row) == Some(size))?;
        let rate = bytes_rate(row)?;
        let title = format!("{}: {} {}", diff::called(row), numbers::rate(rate), row.labels.join(", "));
        Some(Cell { value: rate, text: megabytes(rate), title, hatched: is_hatched(row) })
    };
    let line = |size: &u64| (numbers::record(*size), columns.iter().map(|name| cell(name, *size)).collect());
    let rows = sizes.iter().map(line).collect();
    Heat { columns, rows }
}

fn megabytes(rate: f64) -> String {
    match rate / 1e6 {
        rate if rate >= 99.95 => format::count(rate.round() as u64),
        rate => numbers::three_digits(rate),
    }
}

/// Rates as bars, of rows that stand in no heat map.
fn rates(page: &mut Page, measured: &Measurement) {
    let grids = grids(measured);
    let rows = measured.rows.iter().filter(|row| !is_random(row) && !group(row).is_some_and(|g| grids.contains(&g)));
    let all: Vec<Bar> = rows
        .filter_map(|row| {
            let rate = bytes_rate(row)?;
            let words: Vec<&str> =
                row.labels.iter().map(String::as_str).filter(|label| *label != label::SHORT).collect();
            let mut text = numbers::rate(rate);
            if !words.is_empty() {
                text = format!("{text} · {}", words.join(", "));
            }
            Some(Bar { name: diff::called(row), value: rate, text, hatched: is_hatched(row) })
        })
        .collect();
    bar_figure(page, "Rates", &all);
}

/// Operations a second: random reads and writes, and small files.
fn operations(page: &mut Page, measured: &Measurement) {
    let all: Vec<Bar> = single_operations(measured)
        .filter(|row| row.condition("arrivals").is_none())
        .filter_map(|row| {
            let rate = row.value(value::OPERATIONS_PER_SECOND)?;
            let text = format!("{} /s", numbers::count(rate));
            Some(Bar { name: diff::called(row), value: rate, text, hatched: is_hatched(row) })
        })
        .collect();
    if grids(measured).is_empty() || all.len() <= 20 {
        bar_figure(page, "Operations a second", &all);
    }
}

fn bar_figure(page: &mut Page, title: &str, all: &[Bar]) {
    if !all.is_empty() {
        let note = if all.iter().any(|bar| bar.hatched) { HATCHED } else { "" };
        page.figure(title, note, |width| bars(all, title, width));
    }
}

/// Rows of which people look at single operations, not at bytes.
fn single_operations(measured: &Measurement) -> impl Iterator<Item = &Row> {
    measured.rows.iter().filter(|row| is_random(row) || bytes_rate(row).is_none())
}

fn times(page: &mut Page, measured: &Measurement) {
    let all: Vec<Spread> = single_operations(measured)
        .filter_map(|row| {
            let latency = row.latency.as_ref().filter(|latency| latency.count() > 0)?;
            let quantile = |share| latency.quantile(share).as_secs_f64();
            let seconds = [quantile(0.5), quantile(0.95), quantile(0.99), latency.max().as_secs_f64()];
            Some(Spread { name: diff::called(row), seconds })
        })
        .take(SPREADS_MOST)
        .collect();
    if !all.is_empty() {
        let note = "A bar reaches from the median to the 99th percentile, the line in it is the 95th, the dot is the \
                    longest.";
        page.figure("Time of one operation", note, |width| spreads(&all, "Time of one operation", width));
    }
}

/// The rate over time of every row that took long enough to have one.
fn over_time(page: &mut Page, measured: &Measurement) {
    let panels: Vec<(Panel, f64)> = measured.rows.iter().filter_map(panel).take(PANELS_MOST).collect();
    if !panels.is_empty() {
        page.heading(2, "Rate over time");
        page.small_panels(&panels);
    }
}

fn panel(row: &Row) -> Option<(Panel, f64)> {
    let series = row.series.as_ref().filter(|series| series.amounts().len() >= SLOTS_LEAST)?;
    // As many points as there are pixels to show, at most.
    let each = series.amounts().len().div_ceil(100);
    let time = series.slot().as_secs_f64() * each as f64;
    let sums = series.amounts().chunks(each).map(|slots| slots.iter().sum::<f64>());
    let points = sums.enumerate().map(|(at, bytes)| ((at as f64 + 0.5) * time, bytes / time));
    let mut points: Vec<(f64, f64)> = points.collect();
    // The last one is not whole.
    points.pop();
    let end = points.len() as f64 * time;
    Some((Panel::new(&diff::called(row), Unit::BytesPerSecond).line("", Tone::First, points), end))
}

fn numbers_table(page: &mut Page, measured: &Measurement) {
    page_tables::numbers(page, measured);
    page_tables::routes(page, measured);
}

fn facts(page: &mut Page, measured: &Measurement) {
    let all = measured.settings.iter().chain(&measured.facts);
    let rows: Vec<Vec<String>> = all.map(|(fact, value)| vec![escape(fact), name(value)]).collect();
    page.html("<details><summary>The host and the settings</summary>");
    page.table(&["what", "value"], &rows, &[]);
    page.html("</details>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::document::tests::sample;

    #[test]
    fn page_asks_for_nothing_and_hatches_what_is_cached() {
        let page = page(&sample());
        for foreign in ["<script", "http:", "https:", "src=", "@import"] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        // Drawn in three widths.
        assert_eq!(page.matches("class=\"band t1 hatched\"").count(), 3);
        assert!(page.contains("prefers-color-scheme: dark") && page.contains("write cached 1M 1"));
        assert!(page.contains("the files are small") && page.contains("Time of one operation"));
    }

    #[test]
    fn several_record_sizes_are_a_heat_map() {
        let mut grid = sample();
        let rows: Vec<Row> = [4096u64, 65536, 1 << 20]
            .iter()
            .flat_map(|size| {
                ["write", "read"].map(|name| {
                    let mut row = sample().rows[0].clone();
                    row.name = name.to_owned();
                    row.conditions
                        .iter_mut()
                        .filter(|(name, _)| name == "record_bytes")
                        .for_each(|(_, v)| *v = size.to_string());
                    row
                })
            })
            .collect();
        grid.rows = rows;
        let page = page(&grid);
        assert!(page.contains("Rate by record size") && page.contains("<h3>cached, depth 1, in MB/s</h3>"));
        // Six cells, drawn in three widths.
        assert_eq!(page.matches("class=\"veil\"").count(), 18);
        assert!(!page.contains("<h3>Rates</h3>"));
    }

    #[test]
    fn rung_from_random_bytes_is_a_bar_and_empty_columns_are_none() {
        let mut ladder = sample();
        ladder.kind = "ladder".to_owned();
        ladder.rows.truncate(1);
        ladder.rows[0] = Row { name: "random->disk".to_owned(), latency: None, series: None, ..ladder.rows[0].clone() };
        ladder.rows[0].conditions = vec![("sink".to_owned(), "disk".to_owned())];
        let page = page(&ladder);
        assert!(page.contains("<h3>Rates</h3>") && !page.contains("<h3>Operations a second</h3>"));
        assert!(page.contains(">rate</th>") && !page.contains(">p99</th>"), "{page}");
    }
}
