//! A result as one page that needs nothing else: no script, no request, light and dark.

use std::collections::BTreeSet;
use std::fmt::Write;

use carrack_measure::result::{Measurement, Row, label, value};

use super::svg::{self, Cell, ChartBar, Range, escape};
use super::{diff, numbers};

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b2430;--soft:#5b6675;--paper:#fff;--card:#f5f7fa;--edge:#dde3ea;--bar:#2f6fb2;--mark:#0c2f55;--warn:#8a5a00}
@media(prefers-color-scheme:dark){:root{--ink:#e4e9f0;--soft:#98a4b3;--paper:#12171e;--card:#1b222c;--edge:#2c3643;--bar:#5b9bd8;--mark:#d9ebff;--warn:#e0b050}}
body{margin:0 auto;max-width:1000px;padding:28px 20px 60px;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
h1{font-size:24px;margin:0 0 2px}h2{font-size:17px;margin:34px 0 8px}p{margin:4px 0}.soft{color:var(--soft)}
.note{border-left:3px solid var(--warn);background:var(--card);padding:6px 12px;margin:8px 0}
.plot{overflow-x:auto;background:var(--card);border:1px solid var(--edge);border-radius:8px;padding:12px}
svg{display:block;font:12.5px system-ui,sans-serif}svg text{fill:var(--ink)}
.name{text-anchor:end}.head{text-anchor:middle;fill:var(--soft)!important}.cell{text-anchor:middle;font-size:12px}
.bar{fill:var(--bar)}.bar.hatched{fill:url(#hatch)}.hatch{fill:url(#veil)}.grid{stroke:var(--edge)}
.whisker{stroke:var(--bar);stroke-width:1.5}.mark{stroke:var(--paper);stroke-width:2}.dot{fill:var(--mark)}
.line{fill:none;stroke:var(--bar);stroke-width:1.5}.area{fill:var(--bar);opacity:.16}
.small{display:grid;grid-template-columns:repeat(auto-fill,minmax(270px,1fr));gap:12px}
figure{margin:0;background:var(--card);border:1px solid var(--edge);border-radius:8px;padding:8px 10px;overflow:hidden}
figcaption{font-size:13px}table{border-collapse:collapse;font-size:13px;width:100%}
th,td{padding:4px 8px;border-bottom:1px solid var(--edge);text-align:right;white-space:nowrap}
th:first-child,td:first-child,.words{text-align:left}th{color:var(--soft);font-weight:600}
td.words{white-space:normal}details{margin-top:30px}summary{cursor:pointer;font-weight:600}";

/// Patterns for what is not to be believed.
const PATTERNS: &str = r##"<svg width="0" height="0" style="position:absolute"><defs><pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="7" height="7" style="fill:var(--bar);opacity:.25"/><rect width="2.5" height="7" style="fill:var(--bar)"/></pattern><pattern id="veil" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="2" height="8" fill="#fff" opacity=".35"/></pattern></defs></svg>"##;

/// The page.
pub fn page(measured: &Measurement) -> String {
    let title = format!("carrack bench {} {}", measured.kind, measured.target);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><link rel=\"icon\" href=\"data:,\"><title>{}</title><style>{STYLE}</style></head>\
         <body>{PATTERNS}\n",
        escape(&title)
    );
    page += &heading(measured);
    page += &heat_maps(measured);
    page += &rates(measured);
    page += &operations(measured);
    page += &times(measured);
    page += &over_time(measured);
    page += &numbers_table(measured);
    page += &facts(measured);
    page + "</body></html>\n"
}

fn heading(measured: &Measurement) -> String {
    let lines = super::table::headline(measured);
    let started = crate::output::format::rfc3339_seconds(measured.started);
    let mut html = format!("<h1>{}</h1>\n", escape(&lines[0]));
    let host = lines[1..].iter().filter(|line| !line.starts_with("note: "));
    let host: Vec<String> = host.map(|line| escape(line)).collect();
    let took = crate::output::format::duration(measured.elapsed);
    let _ = writeln!(html, "<p class=\"soft\">{} &middot; {started}, {took}</p>", host.join(" &middot; "));
    for warning in &measured.warnings {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", escape(&warning.text));
    }
    html
}

/// Whether a row says nothing about the storage.
fn is_hatched(row: &Row) -> bool {
    [label::CACHED, label::PARTLY_CACHED, label::CACHE_UNKNOWN].iter().any(|label| row.has_label(label))
}

fn bytes_rate(row: &Row) -> Option<f64> {
    row.value(value::BYTES_PER_SECOND)
}

fn is_random(row: &Row) -> bool {
    row.name.starts_with("random-")
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

fn heat_maps(measured: &Measurement) -> String {
    let mut html = String::new();
    for group in grids(measured) {
        let rows: Vec<&Row> = in_group(measured, &group).collect();
        let mut names: Vec<String> = Vec::new();
        for row in &rows {
            if !names.contains(&row.name) {
                names.push(row.name.clone());
            }
        }
        let sizes: BTreeSet<u64> = rows.iter().filter_map(|row| record(row)).collect();
        let cell = |name: &str, size: u64| {
            let row = rows.iter().find(|row| row.name == name && record(row) == Some(size))?;
            let rate = bytes_rate(row)?;
            let title = format!("{}: {} {}", diff::called(row), numbers::rate(rate), row.labels.join(", "));
            Some(Cell { amount: rate, text: numbers::rate(rate), title, hatched: is_hatched(row) })
        };
        let lines: Vec<(String, Vec<Option<Cell>>)> = sizes
            .iter()
            .map(|size| (numbers::record(*size), names.iter().map(|name| cell(name, *size)).collect()))
            .collect();
        let (mode, depth) = &group;
        let _ = writeln!(
            html,
            "<h2>Rate by record size: {}, depth {}</h2><div class=\"plot\">{}</div>",
            escape(mode),
            escape(depth),
            svg::heat_map(&names, &lines)
        );
        html += "<p class=\"soft\">Hatched: from or in a cache, so nothing is said about the storage.</p>\n";
    }
    html
}

/// Rates as bars, of rows that stand in no heat map.
fn rates(measured: &Measurement) -> String {
    let grids = grids(measured);
    let rows = measured.rows.iter().filter(|row| !is_random(row) && !group(row).is_some_and(|g| grids.contains(&g)));
    let bars: Vec<ChartBar> = rows
        .filter_map(|row| {
            let rate = bytes_rate(row)?;
            let words =
                row.labels.iter().filter(|label| *label != label::SHORT).cloned().collect::<Vec<_>>().join(", ");
            let text = format!("{}  {words}", numbers::rate(rate)).trim_end().to_owned();
            Some(ChartBar { name: diff::called(row), amount: rate, text, hatched: is_hatched(row) })
        })
        .collect();
    if bars.is_empty() {
        return String::new();
    }
    format!("<h2>Rates</h2><div class=\"plot\">{}</div>\n", svg::bars(&bars))
}

/// Operations a second: random reads and writes, and small files.
fn operations(measured: &Measurement) -> String {
    let rows = measured.rows.iter().filter(|row| is_random(row) || bytes_rate(row).is_none());
    let rows = rows.filter(|row| row.condition("arrivals").is_none());
    let bars: Vec<ChartBar> = rows
        .filter_map(|row| {
            let rate = row.value(value::OPERATIONS_PER_SECOND)?;
            let text = format!("{} /s", numbers::count(rate));
            Some(ChartBar { name: diff::called(row), amount: rate, text, hatched: is_hatched(row) })
        })
        .collect();
    if bars.is_empty() || !grids(measured).is_empty() && bars.len() > 20 {
        return String::new();
    }
    format!("<h2>Operations a second</h2><div class=\"plot\">{}</div>\n", svg::bars(&bars))
}

fn times(measured: &Measurement) -> String {
    let rows = measured.rows.iter().filter(|row| is_random(row) || bytes_rate(row).is_none());
    let ranges: Vec<Range> = rows
        .filter_map(|row| {
            let latency = row.latency.as_ref().filter(|latency| latency.count() > 0)?;
            let nanos = |time: std::time::Duration| time.as_nanos() as f64;
            let quantile = |share| nanos(latency.quantile(share));
            let nanos = [quantile(0.5), quantile(0.95), quantile(0.99), nanos(latency.max())];
            Some(Range { name: diff::called(row), nanos })
        })
        .take(40)
        .collect();
    if ranges.is_empty() {
        return String::new();
    }
    format!(
        "<h2>Time of one operation</h2><div class=\"plot\">{}</div><p class=\"soft\">The bar reaches from the median \
         to the 99th percentile, the line in it is the 95th, the dot is the longest.</p>\n",
        svg::ranges(&ranges)
    )
}

/// The rate over time of every row that took long enough to have one.
fn over_time(measured: &Measurement) -> String {
    let mut html = String::new();
    for row in measured.rows.iter().take(60) {
        let Some(series) = row.series.as_ref().filter(|series| series.amounts().len() >= 20) else { continue };
        // As many points as there are pixels to show, at most.
        let each = series.amounts().len().div_ceil(100);
        let points: Vec<f64> = series.amounts().chunks(each).map(|slots| slots.iter().sum()).collect();
        // The last one is not whole.
        let points = &points[..points.len() - 1];
        let rate = bytes_rate(row).map_or_else(String::new, numbers::rate);
        let _ = writeln!(
            html,
            "<figure><figcaption>{} <span class=\"soft\">{rate}</span></figcaption>{}</figure>",
            escape(&diff::called(row)),
            svg::line(points)
        );
    }
    if html.is_empty() { html } else { format!("<h2>Rate over time</h2><div class=\"small\">{html}</div>\n") }
}

fn numbers_table(measured: &Measurement) -> String {
    let mut html = String::from(
        "<h2>All numbers</h2><div class=\"plot\"><table><tr><th>row</th><th>rate</th><th>settled</th><th>1st done</th>\
         <th>per second</th><th>p50</th><th>p95</th><th>p99</th><th>longest</th><th>cpu</th><th class=\"words\">labels</th></tr>\n",
    );
    for row in &measured.rows {
        let number = |name: &str, show: &dyn Fn(f64) -> String| row.value(name).map_or_else(String::new, show);
        let time = |share: f64| row.latency.as_ref().map_or_else(String::new, |all| numbers::time(all.quantile(share)));
        let cells = [
            number(value::BYTES_PER_SECOND, &numbers::rate),
            number(value::SETTLED_BYTES_PER_SECOND, &numbers::rate),
            number(value::FIRST_DONE_BYTES_PER_SECOND, &numbers::rate),
            number(value::OPERATIONS_PER_SECOND, &numbers::count),
            time(0.5),
            time(0.95),
            time(0.99),
            time(1.0),
            number(value::PROCESSORS, &|used| format!("{:.0}%", used * 100.0)),
        ];
        let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        let labels = escape(&row.labels.join(", "));
        let _ =
            writeln!(html, "<tr><td>{}</td>{cells}<td class=\"words\">{labels}</td></tr>", escape(&diff::called(row)));
    }
    html + "</table></div>\n"
}

fn facts(measured: &Measurement) -> String {
    let all = measured.settings.iter().chain(&measured.facts);
    let rows: String = all
        .map(|(name, value)| format!("<tr><td>{}</td><td class=\"words\">{}</td></tr>\n", escape(name), escape(value)))
        .collect();
    format!("<details><summary>The host and the settings</summary><table>{rows}</table></details>\n")
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
        assert_eq!(page.matches("class=\"bar hatched\"").count(), 1);
        assert!(page.contains("prefers-color-scheme:dark") && page.contains("write cached 1M 1"));
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
        assert!(page.contains("Rate by record size: cached, depth 1"));
        assert_eq!(page.matches("class=\"hatch\"").count(), 6);
        assert!(!page.contains("<h2>Rates</h2>"));
    }
}
