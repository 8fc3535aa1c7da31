//! A crowd as a page: what became of the files, the rates and hosts over time, the clients beside each other.

use carrack_measure::result::{Curve, Measurement, Row, value};

use super::held;
use super::rows::{CLIENT, CLIENTS, FATE, FILE, HOST, INTERFACE, JAIN, NODE, OBSERVED};
use crate::bench::numbers;
use crate::output::format;
use crate::output::plot::axis::Unit;
use crate::output::plot::bars::{Bar, bars};
use crate::output::plot::html::name;
use crate::output::plot::page::Page;
use crate::output::plot::spreads::{Spread, spreads};
use crate::output::plot::{Panel, Tone};

/// More clients than this are shown by tenths.
const BARS_MOST: usize = 40;
/// Files that a table names; a kept result has all.
const FILES_MOST: usize = 1000;
const TONES: [Tone; 5] = [Tone::First, Tone::Second, Tone::Third, Tone::Fourth, Tone::Fifth];
const HEIGHT: f64 = 170.0;

/// Everything of a crowd that stands between the heading and the host's facts.
pub fn sections(page: &mut Page, measured: &Measurement) {
    let ways: Vec<&Row> = measured.rows.iter().filter(|row| row.condition(CLIENTS).is_some()).collect();
    ways.iter().for_each(|way| figures(page, way));
    measured.rows.iter().filter_map(held::sentence).for_each(|sentence| {
        page.paragraph("verdict", &format!("The crowd: {sentence}."));
    });
    let end = end_of(measured);
    page.heading(2, "Over time");
    rates(page, &ways, end);
    let Some(first) = ways.first() else { return };
    panel(page, "Clients at work", Unit::Count, &first.curves, "count", end);
    hosts(page, measured, end);
    page.heading(2, "Clients");
    ways.iter().for_each(|way| clients(page, measured, &way.name));
    times(page, &ways);
    files(page, measured);
}

fn number(row: &Row, name: &str) -> f64 {
    row.value(name).unwrap_or(0.0)
}

fn count(row: &Row, name: &str) -> String {
    format::count(number(row, name).max(0.0).round() as u64)
}

/// The numbers that people look for first.
fn figures(page: &mut Page, way: &Row) {
    let word = if way.name == "put" { "sent" } else { "fetched" };
    page.heading(2, &format!("Files {word}"));
    let time = |name: &str| way.value(name).map_or_else(|| "-".to_owned(), |seconds| Unit::Seconds.shown(seconds));
    page.figures(&[
        ("whole", format!("{} of {}", count(way, "whole"), count(way, "files"))),
        ("rate", way.value(value::BYTES_PER_SECOND).map_or_else(|| "-".to_owned(), numbers::rate)),
        ("first client done", time(value::FIRST_DONE_SECONDS)),
        ("last client done", time(value::SECONDS)),
        ("Jain's index", way.value(JAIN).map_or_else(|| "-".to_owned(), |jain| format!("{jain:.3}"))),
        ("short", count(way, "short")),
        ("wrong", count(way, "wrong")),
        ("missing", count(way, "missing")),
        ("refused", count(way, "refused")),
        ("lost", count(way, "lost")),
        ("timed out", count(way, "timed_out")),
        ("repeated", count(way, "repeated")),
    ]);
}

/// Where the time axis of all pictures ends.
fn end_of(measured: &Measurement) -> f64 {
    let seconds = measured.rows.iter().filter(|row| row.condition(CLIENTS).is_some());
    let seconds = seconds.filter_map(|row| row.value(value::SECONDS)).filter(|seconds| seconds.is_finite());
    seconds.fold(1e-3, f64::max)
}

fn rates(page: &mut Page, ways: &[&Row], end: f64) {
    let mut panel = Panel::new("Rate of all clients together", Unit::BytesPerSecond);
    for (way, tone) in ways.iter().zip(TONES) {
        let word = if way.name == "put" { "sent" } else { "fetched" };
        panel = panel.line(if ways.len() > 1 { word } else { "" }, tone, rate_points(way));
    }
    if !panel.is_empty() {
        page.panel(&panel, end, &[], HEIGHT, true);
    }
}

/// Rates over stretches that a picture can show, a fifth of a second at least: progress comes in steps of that.
fn rate_points(way: &Row) -> Vec<(f64, f64)> {
    let Some(series) = &way.series else { return Vec::new() };
    let slot = series.slot().as_secs_f64();
    let each = series.amounts().len().div_ceil(200).max((0.2 / slot).ceil() as usize).max(1);
    let time = slot * each as f64;
    let sums = series.amounts().chunks(each).map(|slots| slots.iter().sum::<f64>());
    sums.enumerate().map(|(at, bytes)| ((at as f64 + 0.5) * time, bytes / time)).collect()
}

/// A picture of the curves of one unit.
fn panel(page: &mut Page, title: &str, unit: Unit, curves: &[Curve], wanted: &str, end: f64) {
    let mut panel = Panel::new(title, unit);
    let own: Vec<&Curve> = curves.iter().filter(|curve| curve.unit == wanted).collect();
    for (curve, tone) in own.iter().filter(|curve| curve.points.len() > 1).zip(TONES) {
        panel = panel.line(if own.len() > 1 { &curve.name } else { "" }, tone, curve.points.clone());
    }
    if wanted == "share" {
        panel.at_least = 1.0;
    }
    if !panel.is_empty() {
        page.panel(&panel, end, &[], HEIGHT, true);
    }
}

fn hosts(page: &mut Page, measured: &Measurement, end: f64) {
    for row in &measured.rows {
        let host = row.condition(HOST).unwrap_or_default();
        match row.name.as_str() {
            NODE => {
                panel(page, "Node: its process, of one processor", Unit::Share, &row.curves, "processors", end);
                panel(page, "Node: processors of its host", Unit::Share, &row.curves, "share", end);
            }
            OBSERVED => {
                panel(page, &format!("{host}: processors"), Unit::Share, &row.curves, "share", end);
                let programs = format!("{host}: programs, of one processor");
                panel(page, &programs, Unit::Share, &row.curves, "processors", end);
                let (disks, network): (Vec<Curve>, Vec<Curve>) =
                    row.curves.iter().cloned().partition(|curve| curve.name.starts_with("disks"));
                let interface = row.condition(INTERFACE).unwrap_or("network");
                let rates = "bytes_per_second";
                panel(page, &format!("{host}: disks"), Unit::BytesPerSecond, &disks, rates, end);
                panel(page, &format!("{host}: {interface}"), Unit::BytesPerSecond, &network, rates, end);
            }
            _ => {}
        }
    }
    let own = measured.rows.iter().filter(|row| row.name == "clients' host");
    let panels: Vec<(Panel, f64)> = own
        .filter_map(|row| {
            let mut panel = Panel::new(&format!("{}: processors", row.condition(HOST)?), Unit::Share);
            panel.at_least = 1.0;
            let points = row.curves.first().map(|curve| curve.points.clone()).filter(|points| points.len() > 1)?;
            Some((panel.line("", Tone::Rest, points), end))
        })
        .filter(|(panel, _)| !panel.is_empty())
        .take(60)
        .collect();
    if !panels.is_empty() {
        page.heading(2, "Hosts of the clients");
        page.small_panels(&panels);
    }
}

/// The rate of each client, or where there are many, of every tenth of them from the slowest to the fastest.
fn clients(page: &mut Page, measured: &Measurement, way: &str) {
    let own = measured.rows.iter().filter(|row| row.name == CLIENT && row.condition("way") == Some(way));
    let mut own: Vec<&Row> = own.collect();
    let word = if way == "put" { "sends" } else { "fetches" };
    let bar = |row: &&Row, name: String| {
        let rate = number(row, value::BYTES_PER_SECOND);
        Bar { name, value: rate, text: numbers::rate(rate), hatched: false }
    };
    let called = |row: &Row| {
        format!("{} {}", row.condition(CLIENT).unwrap_or_default(), row.condition(HOST).unwrap_or_default())
    };
    let (all, note): (Vec<Bar>, &str) = if own.len() <= BARS_MOST {
        (own.iter().map(|row| bar(row, called(row))).collect(), "")
    } else {
        own.sort_by(|one, other| {
            number(one, value::BYTES_PER_SECOND).total_cmp(&number(other, value::BYTES_PER_SECOND))
        });
        let tenths = (0..=10).map(|tenth| {
            let row = own[(own.len() - 1) * tenth / 10];
            let share = match tenth {
                0 => "slowest".to_owned(),
                10 => "fastest".to_owned(),
                tenth => format!("{} % are slower", tenth * 10),
            };
            bar(&row, format!("{share}: {}", called(row)))
        });
        (tenths.collect(), "Every tenth client, from the slowest to the fastest.")
    };
    if !all.is_empty() {
        let title = format!("What each client {word} a second");
        page.figure(&title, note, |width| bars(&all, &title, width));
    }
}

fn times(page: &mut Page, ways: &[&Row]) {
    let spread = |row: &&Row| {
        let times = row.latency.as_ref().filter(|times| times.count() > 0)?;
        let quantile = |share| times.quantile(share).as_secs_f64();
        let seconds = [quantile(0.5), quantile(0.95), quantile(0.99), times.max().as_secs_f64()];
        Some(Spread { name: row.name.clone(), seconds })
    };
    let all: Vec<Spread> = ways.iter().filter_map(spread).collect();
    if !all.is_empty() {
        let note = "A bar reaches from the median to the 99th percentile, the line in it is the 95th, the dot is the \
                    longest.";
        page.figure("Time of one file", note, |width| spreads(&all, "Time of one file", width));
    }
}

/// Files that are not whole, or were tried more than once.
fn files(page: &mut Page, measured: &Measurement) {
    let own: Vec<&Row> = measured.rows.iter().filter(|row| row.name == FILE).collect();
    page.heading(2, "Files of which something is to be said");
    if own.is_empty() {
        page.paragraph("note", "None: every file is whole, and was carried at the first attempt.");
        return;
    }
    let line = |row: &&Row| {
        let condition = |wanted: &str| name(row.condition(wanted).unwrap_or_default());
        let found = row.value("found_bytes").map_or_else(|| "-".to_owned(), |_| count(row, "found_bytes"));
        let why = name(row.error.as_deref().unwrap_or_default());
        vec![condition(FILE), condition(HOST), condition(FATE), found, count(row, "attempts"), why]
    };
    let rows: Vec<Vec<String>> = own.iter().take(FILES_MOST).map(line).collect();
    page.table(&["file", "host", "found", "bytes", "attempts", "why"], &rows, &[3, 4]);
    if own.len() > FILES_MOST {
        page.paragraph(
            "note",
            &format!("{} more are in the kept result.", format::count((own.len() - FILES_MOST) as u64)),
        );
    }
}
