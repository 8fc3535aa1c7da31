//! Results as bonnie++ 2.00 prints them: one line of 50 fields, which `bon_csv2html` and `bon_csv2txt` read.
//!
//! Rates are in K/s, files in units of 1024, and a latency is the longest single operation. What was not measured is
//! empty, as in bonnie++: single characters are never written.

use std::time::Duration;

use carrack_measure::result::{Measurement, Row, value};

/// Version of the form, and the version of bonnie++ that prints it.
const FORM: &str = "1.98";
const PROGRAM: &str = "2.00";
/// bonnie++ leaves out results of less time than this, as too small to mean anything.
const PLUSES: &str = "+++++";

/// The line. Of several rows of an operation the first counts whose writes reach the storage; the first read.
pub fn line(measured: &Measurement) -> String {
    let fact = |name: &str| measured.facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let setting =
        |name: &str| measured.settings.iter().find(|(known, _)| known == name).and_then(|(_, v)| v.parse().ok());
    let size: u64 = setting("size_bytes").unwrap_or(0);
    let write = written(measured, "write");
    let rewrite = written(measured, "rewrite");
    let read = first(measured, "read");
    let seeks = first(measured, "random-read");
    let files: Vec<Option<&Row>> = [("sequential", "file-"), ("random", "file-")]
        .into_iter()
        .flat_map(|(order, prefix)| {
            ["create", "stat", "delete"].map(|act| in_order(measured, &format!("{prefix}{act}"), order))
        })
        .collect();
    let chunk = write.or(read).and_then(|row| row.condition("record_bytes")).unwrap_or("8192").to_owned();
    let made = files[0].and_then(|row| row.value(value::OPERATIONS)).unwrap_or(0.0);
    let mut fields = vec![
        FORM.to_owned(),
        PROGRAM.to_owned(),
        name(fact("host").as_deref().unwrap_or("host")),
        write.or(read).and_then(|row| row.condition("threads")).unwrap_or("1").to_owned(),
        measured.started.to_string(),
        megabytes(size),
        chunk,
        // As many as there was time for: bonnie++ leaves that empty.
        String::new(),
        seeks.and_then(|row| row.condition("depth")).unwrap_or_default().to_owned(),
    ];
    let none = [String::new(), String::new()];
    fields.extend(none.clone());
    fields.extend(kilobytes(write));
    fields.extend(kilobytes(rewrite));
    fields.extend(none);
    fields.extend(kilobytes(read));
    fields.extend(operations(seeks));
    fields.push(if made >= 1.0 { format!("{:.0}", (made / 1024.0).ceil()) } else { String::new() });
    // Empty files in one directory: their largest and smallest size, number of directories, and size of writes.
    fields.extend(std::iter::repeat_n(String::new(), 4));
    fields.extend(files.iter().flat_map(|row| operations(*row)));
    let latencies = [None, write, rewrite, None, read, seeks];
    fields.extend(latencies.into_iter().chain(files).map(longest));
    fields.join(",")
}

fn first<'a>(measured: &'a Measurement, name: &str) -> Option<&'a Row> {
    measured.rows.iter().find(|row| row.name == name && row.condition("arrivals").is_none())
}

/// bonnie++ syncs what it wrote, and counts the time.
fn written<'a>(measured: &'a Measurement, name: &str) -> Option<&'a Row> {
    let synced = |row: &&Row| row.name == name && row.condition("mode") == Some("fdatasync");
    measured.rows.iter().find(synced).or_else(|| first(measured, name))
}

fn in_order<'a>(measured: &'a Measurement, name: &str, order: &str) -> Option<&'a Row> {
    measured.rows.iter().find(|row| row.name == name && row.condition("order") == Some(order))
}

fn kilobytes(row: Option<&Row>) -> [String; 2] {
    rated(row, row.and_then(|row| row.value(value::BYTES_PER_SECOND)).map(|rate| rate / 1024.0))
}

fn operations(row: Option<&Row>) -> [String; 2] {
    rated(row, row.and_then(|row| row.value(value::OPERATIONS_PER_SECOND)))
}

/// A rate with the processor time that went into it, in percent.
fn rated(row: Option<&Row>, rate: Option<f64>) -> [String; 2] {
    let Some((row, rate)) = row.zip(rate) else { return [String::new(), String::new()] };
    if row.value(value::SECONDS).is_none_or(|seconds| seconds <= 0.0) {
        return [PLUSES.to_owned(), "+++".to_owned()];
    }
    [format!("{rate:.0}"), format!("{:.0}", row.value(value::PROCESSORS).unwrap_or(0.0) * 100.0)]
}

fn longest(row: Option<&Row>) -> String {
    let time = row.and_then(|row| row.latency.as_ref()).map(|latency| latency.max());
    time.map_or_else(String::new, latency)
}

/// As bonnie++ writes them: `34541us`, from 100 ms on `171ms`, from 100 s on `171s`.
fn latency(time: Duration) -> String {
    match time.as_micros() {
        micros if micros < 100_000 => format!("{micros}us"),
        micros if micros < 100_000_000 => format!("{}ms", micros / 1000),
        micros => format!("{}s", micros / 1_000_000),
    }
}

/// As bonnie++ writes sizes: `4769M`, `252G`.
fn megabytes(size: u64) -> String {
    const GIB: u64 = 1 << 30;
    if size > 0 && size.is_multiple_of(GIB) {
        format!("{}G", size / GIB)
    } else {
        format!("{}M", size.div_ceil(1 << 20))
    }
}

/// A name without what would be another field.
fn name(text: &str) -> String {
    text.replace([',', '\n', '"', '<', '>', '&'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::document::tests::sample;

    #[test]
    fn line_has_fifty_fields_in_their_places() {
        let line = line(&sample());
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), 50, "{line}");
        assert_eq!(&fields[..3], ["1.98", "2.00", "dtn1"]);
        assert_eq!((fields[5], fields[6]), ("4769M", "1048576"));
        // Written with a sync, not into the cache.
        assert_eq!((fields[11], fields[12]), ("4101562", "50"));
        assert_eq!((fields[13], fields[17], fields[19]), ("1074219", "3417969", "16"));
        assert_eq!((fields[26], fields[30], fields[32], fields[34]), ("2000", "2000", "2000", ""));
        assert_eq!((fields[38], fields[39], fields[49]), ("", "20000us", ""));
    }

    #[test]
    fn latencies_are_written_as_bonnie_writes_them() {
        for (micros, text) in [(34_541, "34541us"), (171_000, "171ms"), (353_999, "353ms"), (171_000_000, "171s")] {
            assert_eq!(latency(Duration::from_micros(micros)), text);
        }
    }
}
