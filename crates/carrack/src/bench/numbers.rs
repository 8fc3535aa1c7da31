//! Numbers in few columns: rates, counts, times, record sizes.

use std::time::Duration;

/// A rate in GB/s, MB/s or kB/s with three digits: `4.82 GB/s`.
pub fn rate(bytes_per_second: f64) -> String {
    let (value, unit) = match bytes_per_second {
        rate if rate >= 1e9 => (rate / 1e9, "GB/s"),
        rate if rate >= 1e6 => (rate / 1e6, "MB/s"),
        rate => (rate / 1e3, "kB/s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// An amount in GB, MB or kB with three digits: `12.4 MB`.
pub fn amount(bytes: f64) -> String {
    rate(bytes).trim_end_matches("/s").to_owned()
}

/// A number with three digits that mean something: `0.05`, `4.82`, `48.2`, `482`.
pub fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// A time in its unit: `850ns`, `4.82us`, `31.1ms`, `2.00s`.
pub fn time(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    let (value, unit) = match nanos {
        nanos if nanos >= 1e9 => (nanos / 1e9, "s"),
        nanos if nanos >= 1e6 => (nanos / 1e6, "ms"),
        nanos if nanos >= 1e3 => (nanos / 1e3, "us"),
        nanos => return format!("{nanos:.0}ns"),
    };
    format!("{}{unit}", three_digits(value))
}

/// A count: `4,029`, from a million on `1.20M`.
pub fn count(number: f64) -> String {
    if number >= 1e6 {
        format!("{}M", three_digits(number / 1e6))
    } else {
        crate::output::format::count(number.round() as u64)
    }
}

/// A record size as people type it: `4K`, `1M`, `512`.
pub fn record(bytes: u64) -> String {
    let units = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    let unit = units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(unit, letter)| format!("{}{letter}", bytes / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [4.8213e9, 1.16e8, 69.3e6, 999.6e6, 512.0].map(rate),
            ["4.82 GB/s", "116 MB/s", "69.3 MB/s", "1000 MB/s", "0.51 kB/s"]
        );
        assert_eq!(
            [850, 4821, 31_100_000, 2_000_000_000].map(|n| time(Duration::from_nanos(n))),
            ["850ns", "4.82us", "31.1ms", "2.00s"]
        );
        assert_eq!([12.4, 4029.0, 1_204_000.0].map(count), ["12", "4,029", "1.20M"]);
        assert_eq!([512, 4096, 1 << 20, 1 << 30, 1536].map(record), ["512", "4K", "1M", "1G", "1536"]);
    }
}
