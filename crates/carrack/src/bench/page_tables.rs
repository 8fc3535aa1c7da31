//! The tables of a page: all numbers, with columns for what was measured as on a terminal, and the way of packets.

use std::time::Duration;

use carrack_measure::result::{Measurement, Row, value};

use super::ladder::rung::LADDER;
use super::net::row::{P5, RETRANSMITS, RTT, WINDOW};
use super::{diff, ladder, numbers, table};
use crate::output::plot::html::{escape, name};
use crate::output::plot::page::Page;

/// A column: its heading, whether it has numbers, and its cell of a row, which is text.
type Column<'a> = (&'static str, bool, &'a dyn Fn(&Row) -> String);

/// All numbers. A column that is empty for every row is none.
pub fn numbers(page: &mut Page, measured: &Measurement) {
    let rows: Vec<&Row> = measured.rows.iter().filter(|row| !table::is_path(row)).collect();
    page.heading(2, "All numbers");
    match measured.kind.as_str() {
        "net" => columns(page, &rows, &NET),
        "ladder" => {
            let rate = |row: &Row| Some((row.name.clone(), row.value(value::BYTES_PER_SECOND)?));
            let rates: Vec<(String, f64)> = measured.rows.iter().filter_map(rate).collect();
            let against = |row: &Row| {
                let rung = LADDER.iter().find(|rung| rung.name() == row.name);
                rung.and_then(|rung| rung.stands_on(&rates)).map(|(name, _)| name.clone()).unwrap_or_default()
            };
            let mut all = RUNG.to_vec();
            all.insert(3, ("against", false, &against));
            columns(page, &rows, &all);
        }
        _ => columns(page, &rows, &OPERATIONS),
    }
}

const ROW: Column<'_> = ("row", false, &diff::called);
const RATE: Column<'_> = ("rate", true, &|row| shown(row, value::BYTES_PER_SECOND, &numbers::rate));
const CPU_A: Column<'_> = ("cpu A", true, &|row| shown(row, ladder::SOURCE_PROCESSORS, &share));
const CPU_B: Column<'_> = ("cpu B", true, &|row| shown(row, ladder::DESTINATION_PROCESSORS, &share));
const STREAMS: Column<'_> = ("streams", true, &|row| shown(row, ladder::STREAMS, &|streams| streams.to_string()));
const LABELS: Column<'_> = ("labels", false, &|row| row.labels.join(", "));
const WHY: Column<'_> = ("what went wrong", false, &|row| row.error.clone().unwrap_or_default());

const OPERATIONS: [Column<'_>; 12] = [
    ROW,
    RATE,
    ("settled", true, &|row| shown(row, value::SETTLED_BYTES_PER_SECOND, &numbers::rate)),
    ("1st done", true, &|row| shown(row, value::FIRST_DONE_BYTES_PER_SECOND, &numbers::rate)),
    ("per second", true, &|row| shown(row, value::OPERATIONS_PER_SECOND, &numbers::count)),
    ("p50", true, &|row| quantile(row, 0.5)),
    ("p95", true, &|row| quantile(row, 0.95)),
    ("p99", true, &|row| quantile(row, 0.99)),
    ("longest", true, &|row| quantile(row, 1.0)),
    ("cpu", true, &|row| shown(row, value::PROCESSORS, &share)),
    LABELS,
    WHY,
];

const NET: [Column<'_>; 11] = [
    ROW,
    RATE,
    ("p5", true, &|row| {
        let rate = row.value(value::BYTES_PER_SECOND).unwrap_or(0.0);
        shown(row, P5, &|slow| if rate > 0.0 { share(slow / rate) } else { String::new() })
    }),
    ("resent", true, &|row| shown(row, RETRANSMITS, &numbers::count)),
    ("rtt", true, &|row| shown(row, RTT, &|micros| numbers::time(Duration::from_micros(micros as u64)))),
    ("cwnd", true, &|row| shown(row, WINDOW, &numbers::amount)),
    CPU_A,
    CPU_B,
    STREAMS,
    LABELS,
    WHY,
];

const RUNG: [Column<'_>; 8] = [
    ROW,
    RATE,
    ("loss", true, &|row| shown(row, ladder::LOSS, &share)),
    CPU_A,
    CPU_B,
    STREAMS,
    ("link", false, &|row| row.condition("link").unwrap_or_default().to_owned()),
    LABELS,
];

fn shown(row: &Row, of: &str, show: &dyn Fn(f64) -> String) -> String {
    row.value(of).map_or_else(String::new, show)
}

fn share(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

fn quantile(row: &Row, share: f64) -> String {
    row.latency.as_ref().map_or_else(String::new, |all| numbers::time(all.quantile(share)))
}

fn columns(page: &mut Page, rows: &[&Row], columns: &[Column<'_>]) {
    let cells: Vec<(&Column<'_>, Vec<String>)> = columns
        .iter()
        .map(|column| (column, rows.iter().map(|row| (column.2)(row)).collect::<Vec<String>>()))
        .filter(|(_, cells)| cells.iter().any(|cell| !cell.is_empty()))
        .collect();
    let head: Vec<&str> = cells.iter().map(|(column, _)| column.0).collect();
    let numbers: Vec<usize> = (0..cells.len()).filter(|at| cells[*at].0.1).collect();
    let line = |at: usize| cells.iter().map(|(_, cells)| escape(&cells[at])).collect();
    let lines: Vec<Vec<String>> = (0..rows.len()).map(line).collect();
    page.table(&head, &lines, &numbers);
}

/// The way of packets in each direction, where it was looked for.
pub fn routes(page: &mut Page, measured: &Measurement) {
    let rows: Vec<&Row> = measured.rows.iter().filter(|row| table::is_path(row)).collect();
    if !rows.is_empty() {
        page.heading(2, "The way of packets");
    }
    for row in rows {
        page.heading(3, row.name.strip_prefix("path ").unwrap_or(&row.name));
        let Some(route) = &row.route else {
            page.paragraph("note", row.error.as_deref().unwrap_or("not looked for"));
            continue;
        };
        let why = if route.why.is_empty() { String::new() } else { format!("; {}", route.why) };
        page.paragraph("note", &format!("{}{why}", table::largest_packet(row, route)));
        let hops = route.hops.iter().enumerate().map(|(distance, hop)| {
            let time = hop.rtt_us.map(|micros| numbers::time(Duration::from_nanos((micros * 1e3) as u64)));
            let address = hop.address.as_deref().map_or_else(|| "no answer".to_owned(), name);
            vec![(distance + 1).to_string(), address, time.unwrap_or_default()]
        });
        let hops: Vec<Vec<String>> = hops.collect();
        if !hops.is_empty() {
            page.table(&["hop", "address", "round trip"], &hops, &[0, 2]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::html::page;
    use crate::bench::net::path;
    use crate::bench::net::row::{AT_ONCE, CONNECTIONS};
    use carrack_measure::network::{Route, RouteHop};

    fn conditions(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn with(mut row: Row, values: &[(&str, f64)]) -> Row {
        values.iter().for_each(|(name, value)| row.put(name, *value));
        row
    }

    #[test]
    fn page_of_a_network_has_what_tcp_did_the_way_and_why_a_row_failed() {
        let hops = vec![
            RouteHop { address: Some("10.0.0.1".to_owned()), rtt_us: Some(312.0) },
            RouteHop { address: Some("<b>".to_owned()), rtt_us: None },
        ];
        let route = Route { hops, why: "nobody behind hop 2 answers probes".to_owned(), ..Route::default() };
        let way = Row { name: "path there".to_owned(), route: Some(route), ..Row::default() };
        let lost = Row { name: "path back".to_owned(), error: Some("not <asked>".to_owned()), ..Row::default() };
        let of = |name: &str| Row {
            name: name.to_owned(),
            conditions: conditions(&[(CONNECTIONS, "8"), ("mode", "clear"), (AT_ONCE, "no")]),
            ..Row::default()
        };
        let values = [
            (value::BYTES_PER_SECOND, 100e6),
            (P5, 50e6),
            (RETRANSMITS, 1234.0),
            (RTT, 20_000.0),
            (WINDOW, 5e6),
            (ladder::SOURCE_PROCESSORS, 0.5),
            (ladder::DESTINATION_PROCESSORS, 0.75),
        ];
        let absent = Row { error: Some("connection refused".to_owned()), ..of("back") };
        let rows = vec![with(way, &[(path::MTU, 1500.0)]), lost, with(of("there"), &values), absent];
        let page = page(&Measurement { kind: "net".to_owned(), rows, ..Measurement::default() });
        for words in [
            ">1,234</td>",
            ">50%</td>",
            ">75%</td>",
            ">20.0ms</td>",
            "connection refused",
            "packets of 1500 bytes",
            "nobody behind hop 2 answers probes",
            ">10.0.0.1<",
            "&lt;b&gt;",
            ">312us</td>",
            "not &lt;asked&gt;",
        ] {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert!(!page.contains(">p99</th>") && !page.contains("path there</td>"), "{page}");
    }

    #[test]
    fn page_of_a_ladder_has_losses_and_both_ends() {
        let rung = |name: &str, rate: f64| {
            let row = Row {
                name: name.to_owned(),
                conditions: conditions(&[("sink", "null"), ("link", "direct")]),
                ..Row::default()
            };
            with(row, &[(value::BYTES_PER_SECOND, rate), (ladder::SOURCE_PROCESSORS, 0.25)])
        };
        let rows = vec![rung("zero->null", 4e9), with(rung("disk->null", 1e9), &[(ladder::LOSS, 0.75)])];
        let page = page(&Measurement { kind: "ladder".to_owned(), rows, ..Measurement::default() });
        for words in [">loss</th>", ">75%</td>", "zero-&gt;null</td>", ">cpu A</th>", ">direct</td>"] {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert!(!page.contains(">cpu B</th>") && !page.contains("The way of packets"), "{page}");
    }
}
