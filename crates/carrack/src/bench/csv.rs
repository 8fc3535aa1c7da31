//! Results as CSV: one line a row, with the same columns in every file.

use carrack_measure::result::{Row, value};

use super::ladder;
use super::net::row::{AT_ONCE, CONNECTIONS, RETRANSMITS, RTT, WINDOW};
use super::peers;
use crate::output::csv;

/// Conditions and numbers that have a column; a number that a row lacks is empty.
const CONDITIONS: [&str; 7] = ["mode", "record_bytes", "depth", "threads", "arrivals", "order", "processors"];
const VALUES: [&str; 14] = [
    value::BYTES,
    value::OPERATIONS,
    value::SECONDS,
    value::BYTES_PER_SECOND,
    value::OPERATIONS_PER_SECOND,
    value::SETTLED_BYTES_PER_SECOND,
    value::FIRST_DONE_SECONDS,
    value::FIRST_DONE_BYTES_PER_SECOND,
    value::SYNC_SECONDS,
    value::ARRIVALS_PER_SECOND,
    value::CACHED,
    value::UNWRITTEN,
    value::PROCESSORS,
    value::BUSIEST_PROCESSOR,
];
/// The column of [`value::PROCESSORS`]: a condition of rows has the same name.
const PROCESSORS_USED: &str = "processors_used";
/// Columns behind those: what came later, so that none moves.
const MORE_CONDITIONS: [&str; 2] = [CONNECTIONS, AT_ONCE];
const MORE_VALUES: [&str; 7] = [
    ladder::STREAMS,
    RETRANSMITS,
    "resent_share",
    RTT,
    WINDOW,
    ladder::SOURCE_PROCESSORS,
    ladder::DESTINATION_PROCESSORS,
];
/// Columns behind those, of programs that were compared.
const PEERS_CONDITIONS: [&str; 4] = [peers::DATA, peers::SESSIONS, peers::ENCRYPTS, peers::VERIFIES];
const PEERS_VALUES: [&str; 7] = [
    peers::LEAST,
    peers::MOST,
    peers::FILES_PER_SECOND,
    peers::RUNS,
    peers::CPU_HERE,
    peers::CPU_THERE,
    peers::CPU_OF_GIGABYTE,
];
const TIMES: [(&str, f64); 3] = [("p50_ns", 0.5), ("p95_ns", 0.95), ("p99_ns", 0.99)];

/// The first line.
pub fn heading() -> String {
    let mut columns = vec!["name"];
    columns.extend(CONDITIONS);
    columns.extend(VALUES.map(|name| if name == value::PROCESSORS { PROCESSORS_USED } else { name }));
    columns.extend(TIMES.map(|(name, _)| name));
    columns.extend(["max_ns", "labels"]);
    columns.extend(MORE_CONDITIONS);
    columns.extend(MORE_VALUES);
    columns.push("error");
    columns.extend(PEERS_CONDITIONS);
    columns.extend(PEERS_VALUES);
    columns.join(",")
}

/// The line of a row.
pub fn row(row: &Row) -> String {
    let mut fields = vec![row.name.clone()];
    fields.extend(CONDITIONS.map(|name| row.condition(name).unwrap_or_default().to_owned()));
    fields.extend(VALUES.map(|name| row.value(name).map_or_else(String::new, |value| value.to_string())));
    let latency = row.latency.as_ref();
    let nanos = |time: std::time::Duration| time.as_nanos().to_string();
    fields.extend(TIMES.map(|(_, share)| latency.map_or_else(String::new, |all| nanos(all.quantile(share)))));
    fields.push(latency.map_or_else(String::new, |all| nanos(all.max())));
    fields.push(row.labels.join(" "));
    fields.extend(MORE_CONDITIONS.map(|name| row.condition(name).unwrap_or_default().to_owned()));
    fields.extend(MORE_VALUES.map(|name| row.value(name).map_or_else(String::new, |value| value.to_string())));
    fields.push(row.error.clone().unwrap_or_default());
    fields.extend(PEERS_CONDITIONS.map(|name| row.condition(name).unwrap_or_default().to_owned()));
    fields.extend(PEERS_VALUES.map(|name| row.value(name).map_or_else(String::new, |value| value.to_string())));
    csv::line(&fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::document::tests::sample;

    #[test]
    fn every_line_has_the_columns_of_the_first() {
        let count = heading().split(',').count();
        let mut names: Vec<String> = heading().split(',').map(str::to_owned).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "each name once");
        for one in &sample().rows {
            assert_eq!(row(one).split(',').count(), count);
        }
        let first = row(&sample().rows[0]);
        assert!(first.starts_with("write,cached,1048576,1,1,,,,5000000000,5,"), "{first}");
    }
}
