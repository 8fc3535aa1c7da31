//! How a copy stands, in a line that is as long as there is room for: first what is asked first.

use std::time::Duration;

use carrack_core::report::Progress;

use super::format::{self, count};

/// Counts so far, as a line. `rate` is in bytes a second.
pub fn progress(counts: &Progress, rate: Option<f64>) -> String {
    parts(counts, rate).join(", ")
}

/// The same in so many columns: what stands last is left out.
#[cfg(feature = "terminal")]
pub fn progress_in(counts: &Progress, rate: Option<f64>, columns: usize) -> String {
    let mut line = String::new();
    for part in parts(counts, rate) {
        let separator = if line.is_empty() { "" } else { ", " };
        // All that is in it is ASCII.
        if line.len() + separator.len() + part.len() > columns {
            break;
        }
        line = format!("{line}{separator}{part}");
    }
    line
}

/// Percent, rate, time left, failures, bytes, files.
fn parts(counts: &Progress, rate: Option<f64>) -> Vec<String> {
    // A plus says that the scan is still finding more.
    let more = if counts.scan_complete { "" } else { "+" };
    let mut parts = Vec::new();
    if counts.scan_complete && counts.bytes_found > 0 {
        let hundredths = counts.bytes_done.min(counts.bytes_found) as f64 * 100.0 / counts.bytes_found as f64;
        // It is whole only when all of it is there.
        parts.push(format!("{} %", hundredths.floor()));
    }
    parts.extend(rate.map(format::rate_bytes));
    parts.extend(time_left(counts, rate).map(|left| format!("{} left", format::clock(left))));
    if counts.files_failed > 0 {
        parts.push(format!("{} failed", count(counts.files_failed)));
    }
    parts.push(format::decimal_part(counts.bytes_done, counts.bytes_found, more));
    parts.push(format!("{} of {}{more} files", count(counts.files_done), count(counts.files_found)));
    parts
}

/// Only a finished scan knows how much is left.
fn time_left(counts: &Progress, rate: Option<f64>) -> Option<Duration> {
    let rate = rate.filter(|rate| counts.scan_complete && *rate > 0.0)?;
    let left = counts.bytes_found.saturating_sub(counts.bytes_done);
    Duration::try_from_secs_f64((left as f64 / rate).ceil()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Progress {
        Progress {
            files_done: 1200,
            files_found: 3000,
            bytes_done: 1_000_000_000,
            bytes_found: 4_000_000_000,
            scan_complete: false,
            files_failed: 0,
        }
    }

    #[test]
    fn progress_promises_an_end_only_when_it_knows_one() {
        assert_eq!(progress(&counts(), Some(1e9)), "1.00 GB/s, 1.0 of 4.0+ GB, 1,200 of 3,000+ files");
        let scanned = Progress { scan_complete: true, files_failed: 2, ..counts() };
        let whole = "25 %, 1.00 GB/s, 0:03 left, 2 failed, 1.0 of 4.0 GB, 1,200 of 3,000 files";
        assert_eq!(progress(&scanned, Some(1e9)), whole);
        assert_eq!(progress(&scanned, None), "25 %, 2 failed, 1.0 of 4.0 GB, 1,200 of 3,000 files");
        let nearly = Progress { bytes_done: 3_999_999_999, files_failed: 0, ..scanned };
        assert!(progress(&nearly, None).starts_with("99 %, "));
        for rate in [f64::INFINITY, 0.0, f64::MIN_POSITIVE] {
            assert!(!progress(&scanned, Some(rate)).is_empty());
        }
    }

    #[cfg(feature = "terminal")]
    #[test]
    fn progress_has_percent_rate_and_time_left_in_few_columns() {
        let long = Progress { scan_complete: true, bytes_found: 40_000_000_000_000, ..counts() };
        assert_eq!(progress_in(&long, Some(2e8), 30), "0 %, 0.20 GB/s, 55:33:15 left");
        assert_eq!(progress_in(&long, Some(2e8), 66), "0 %, 0.20 GB/s, 55:33:15 left, 0.0 of 40.0 TB");
        assert_eq!(progress_in(&long, Some(2e8), 160), progress(&long, Some(2e8)));
    }
}
