//! Results in the form of fio's `--output-format=json+`: a job a row, with the bins of its times, which
//! `fio_jsonplus_clat2csv` and other readers of fio's results take.

use carrack_measure::result::{Measurement, Row, value};
use serde_json::{Map, Value, json};

use super::numbers;

/// Shares of which fio lists the times.
const SHARES: [f64; 17] =
    [0.01, 0.05, 0.10, 0.20, 0.30, 0.40, 0.50, 0.60, 0.70, 0.80, 0.90, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999];

/// The whole of a measurement. Rows about small files are left out: fio's jobs move bytes.
pub fn document(measured: &Measurement) -> Value {
    let rows = measured.rows.iter().filter(|row| row.value(value::BYTES).is_some() && row.latency.is_some());
    json!({
        "fio version": concat!("carrack-", env!("CARGO_PKG_VERSION")),
        "timestamp": measured.started,
        "timestamp_ms": measured.started.saturating_mul(1000),
        "jobs": rows.map(job).collect::<Vec<_>>(),
    })
}

fn job(row: &Row) -> Value {
    let is_write = row.name.contains("write");
    let (written, read) = if is_write { (Some(row), None) } else { (None, Some(row)) };
    let mode = row.condition("mode").unwrap_or_default();
    let record: u64 = row.condition("record_bytes").and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    json!({
        "jobname": format!("{}-{mode}-{}-{}", row.name, numbers::record(record), super::table::depth(row)),
        "groupid": 0,
        "error": 0,
        "elapsed": row.value(value::SECONDS).unwrap_or(0.0).ceil() as u64,
        "job options": {
            "rw": kind(&row.name),
            "bs": record.to_string(),
            "iodepth": row.condition("depth").unwrap_or("1"),
            "numjobs": row.condition("threads").unwrap_or("1"),
            "direct": if mode == "direct" { "1" } else { "0" },
            "end_fsync": if mode == "fdatasync" { "1" } else { "0" },
        },
        "labels": row.labels,
        "read": direction(read),
        "write": direction(written),
        "trim": direction(None),
        "job_runtime": millis(row),
        "usr_cpu": row.value(value::PROCESSORS).unwrap_or(0.0) * 100.0,
        "sys_cpu": 0.0,
    })
}

/// What fio calls it.
fn kind(name: &str) -> &str {
    match name {
        "random-read" => "randread",
        "random-write" => "randwrite",
        name if name.contains("write") => "write",
        _ => "read",
    }
}

fn millis(row: &Row) -> u64 {
    (row.value(value::SECONDS).unwrap_or(0.0) * 1000.0).round() as u64
}

/// One direction of a job; zeros for one that it did not move bytes in.
fn direction(row: Option<&Row>) -> Value {
    let number = |name: &str| row.and_then(|row| row.value(name)).unwrap_or(0.0);
    let times = times(row);
    json!({
        "io_bytes": number(value::BYTES) as u64,
        "io_kbytes": (number(value::BYTES) / 1024.0) as u64,
        "bw_bytes": number(value::BYTES_PER_SECOND) as u64,
        "bw": (number(value::BYTES_PER_SECOND) / 1024.0) as u64,
        "iops": number(value::OPERATIONS_PER_SECOND),
        "runtime": row.map_or(0, millis),
        "total_ios": number(value::OPERATIONS) as u64,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": { "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0 },
        "clat_ns": times,
        "lat_ns": times,
    })
}

fn times(row: Option<&Row>) -> Value {
    let Some(latency) = row.and_then(|row| row.latency.as_ref()).filter(|latency| latency.count() > 0) else {
        return json!({ "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0 });
    };
    let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let mean = latency.mean().as_nanos() as f64;
    let squares = latency.bins().map(|(nanos, count)| (nanos as f64 - mean).powi(2) * count as f64).sum::<f64>();
    let percentiles: Map<String, Value> =
        SHARES.iter().map(|share| (format!("{:.6}", share * 100.0), json!(nanos(latency.quantile(*share))))).collect();
    let bins: Map<String, Value> = latency.bins().map(|(nanos, count)| (nanos.to_string(), json!(count))).collect();
    json!({
        "min": nanos(latency.min()),
        "max": nanos(latency.max()),
        "mean": mean,
        "stddev": (squares / latency.count() as f64).sqrt(),
        "N": latency.count(),
        "percentile": percentiles,
        "bins": bins,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::document::tests::sample;

    #[test]
    fn document_has_what_readers_of_fio_ask_for() {
        let document = document(&sample());
        let jobs = document["jobs"].as_array().expect("jobs");
        assert_eq!(jobs.len(), 5, "rows about small files are left out");
        for job in jobs {
            for direction in ["read", "write", "trim"] {
                assert!(job[direction]["clat_ns"]["N"].is_u64() && job[direction]["bw_bytes"].is_u64());
            }
        }
        assert_eq!(jobs[4]["job options"]["rw"], "randread");
        assert_eq!((&jobs[0]["write"]["total_ios"], &jobs[0]["read"]["total_ios"]), (&json!(5), &json!(0)));
        let bins = jobs[0]["write"]["clat_ns"]["bins"].as_object().expect("bins");
        assert_eq!(bins.values().map(|count| count.as_u64().expect("a count")).sum::<u64>(), 5);
        assert_eq!(jobs[0]["write"]["clat_ns"]["percentile"]["50.000000"], 50_944);
    }
}
