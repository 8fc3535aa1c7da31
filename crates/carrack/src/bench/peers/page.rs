//! The same as figures of a page: bars for each kind of data, the longest first, whoever it is.

use carrack_measure::result::{Measurement, Row, value};

use super::lines::{is_of_peers, short, title};
use super::{CPU_HERE, CPU_OF_GIGABYTE, CPU_THERE, DATA, ENCRYPTS, FILES_PER_SECOND, RUNS, SESSIONS, VERIFIES};
use crate::bench::numbers;
use crate::output::plot::bars::{Bar, bars};
use crate::output::plot::html::{escape, name};
use crate::output::plot::page::Page;

/// Bars for each kind of data, and a table of all numbers. Nothing for another kind of measurement.
pub fn figures(page: &mut Page, measured: &Measurement) -> bool {
    if measured.kind != "peers" {
        return false;
    }
    let mut titles: Vec<String> = Vec::new();
    let rows = || measured.rows.iter().filter(|row| is_of_peers(row));
    for row in rows().filter(|row| row.value(value::BYTES_PER_SECOND).is_some()) {
        let title = title(row);
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    for wanted in &titles {
        let of: Vec<&Row> = rows().filter(|row| title(row) == *wanted).collect();
        let note = "Median of all runs. Behind the rate: processor seconds of both sides for each GB, encryption, and \
                    what the copy is verified by.";
        let rates: Vec<Bar> = of.iter().filter_map(|row| bar(row)).collect();
        page.figure(wanted, note, |width| bars(&rates, wanted, width));
    }
    table(page, measured);
    true
}

fn bar(row: &Row) -> Option<Bar> {
    let rate = row.value(value::BYTES_PER_SECOND)?;
    let shown = match row.value(FILES_PER_SECOND) {
        Some(files) => format!("{} /s", numbers::count(files)),
        None => numbers::rate(rate),
    };
    let cpu = row
        .value(CPU_OF_GIGABYTE)
        .map_or_else(|| "cpu unknown".to_owned(), |seconds| format!("{} s/GB", numbers::three_digits(seconds)));
    let word = |name: &str| short(row.condition(name).unwrap_or_default());
    let text = format!("{shown} · {cpu} · {}, {}", word(ENCRYPTS), word(VERIFIES));
    Some(Bar { name: short(&row.name), value: rate, text, hatched: false })
}

fn table(page: &mut Page, measured: &Measurement) {
    const HEAD: [&str; 13] = [
        "program",
        "data",
        "sessions",
        "rate",
        "files/s",
        "seconds",
        "runs",
        "cpu here",
        "cpu there",
        "cpu/GB",
        "encrypted",
        "verified",
        "remark",
    ];
    const NUMBERS: [&str; 8] = ["sessions", "rate", "files/s", "seconds", "runs", "cpu here", "cpu there", "cpu/GB"];
    let rows: Vec<Vec<String>> = measured.rows.iter().map(cells).collect();
    // A column that is empty for every row is none.
    let columns: Vec<usize> = (0..HEAD.len()).filter(|&at| rows.iter().any(|row| !row[at].is_empty())).collect();
    let head: Vec<&str> = columns.iter().map(|&at| HEAD[at]).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| columns.iter().map(|&at| row[at].clone()).collect()).collect();
    let numbers: Vec<usize> = (0..head.len()).filter(|&at| NUMBERS.contains(&head[at])).collect();
    page.heading(2, "All numbers");
    page.table(&head, &rows, &numbers);
}

fn cells(row: &Row) -> Vec<String> {
    let number = |name: &str, show: &dyn Fn(f64) -> String| row.value(name).map_or_else(String::new, show);
    let seconds = |name: &str| match row.value(value::SECONDS) {
        Some(_) => row.value(name).map_or_else(|| "unknown".to_owned(), numbers::three_digits),
        None => String::new(),
    };
    let word = |condition: &str| escape(row.condition(condition).unwrap_or_default());
    vec![
        name(&row.name),
        word(DATA),
        word(SESSIONS),
        number(value::BYTES_PER_SECOND, &numbers::rate),
        number(FILES_PER_SECOND, &numbers::count),
        number(value::SECONDS, &numbers::three_digits),
        number(RUNS, &|runs| runs.to_string()),
        seconds(CPU_HERE),
        seconds(CPU_THERE),
        seconds(CPU_OF_GIGABYTE),
        word(ENCRYPTS),
        word(VERIFIES),
        escape(row.error.as_deref().unwrap_or_default()),
    ]
}

#[cfg(test)]
mod tests {
    use crate::bench::html;
    use crate::bench::peers::lines::tests::sample;

    #[test]
    fn page_of_programs_has_bars_for_each_kind_of_data_in_the_order_of_their_rates() {
        let page = html::page(&sample());
        // Three bars and one, drawn in three widths.
        assert_eq!(page.matches("class=\"band t1\"").count(), 12);
        let (first, second) = (page.find(">globus-url-copy<"), page.find(">carrack<"));
        assert!(first.is_some() && first < second, "{page}");
        for words in ["<h3>one file of 256M</h3>", "mscp is not on the PATH here", "2.64 s/GB · no, no", ">unknown<"] {
            assert!(page.contains(words), "{words}");
        }
        assert!(!page.contains("<h3>Rates</h3>"));
    }
}
