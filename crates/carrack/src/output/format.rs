//! Numbers for people: counts with separators, sizes in powers of 1024, rates decimal (as networks and disks are sold),
//! durations. Exact bytes stand beside every rounded size.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::SignedDuration;
use jiff::civil::{DateTime, Time, date};

/// `20,000`
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 file`, `20,000 files`
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// `78.1 MiB`; below a kibibyte exact.
pub fn size(bytes: u64) -> String {
    if bytes < 1024 {
        return counted(bytes, "byte", "bytes");
    }
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 0;
    let mut value = bytes as f64 / 1024.0;
    // 1023.95 would be printed as 1024.0.
    while value >= 1023.95 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", units[unit])
}

/// `78.1 MiB (81,920,000 bytes)`
pub fn size_exact(bytes: u64) -> String {
    if bytes < 1024 { size(bytes) } else { format!("{} ({} bytes)", size(bytes), count(bytes)) }
}

/// `462.2 MB (462,221,586 bytes)`: in the units of rates, for a line that has one.
pub fn decimal_size_exact(bytes: u64) -> String {
    let (unit, name) = decimal_unit(bytes);
    if unit == 1.0 { size(bytes) } else { format!("{:.1} {name} ({} bytes)", bytes as f64 / unit, count(bytes)) }
}

/// `12.3 of 50.1+ GB`: `more` stands behind the whole.
pub fn decimal_part(done: u64, whole: u64, more: &str) -> String {
    let (unit, name) = decimal_unit(whole);
    let decimals = usize::from(unit > 1.0);
    format!("{:.decimals$} of {:.decimals$}{more} {name}", done as f64 / unit, whole as f64 / unit)
}

/// The largest unit of 1000ⁿ bytes of which there is one.
fn decimal_unit(bytes: u64) -> (f64, &'static str) {
    // 999,950 would be printed as 1000.0.
    let units = [(1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let fits = |unit: f64| bytes as f64 >= unit * if unit > 1e3 { 0.99995 } else { 1.0 };
    units.into_iter().find(|(unit, _)| fits(*unit)).unwrap_or((1.0, "bytes"))
}

/// Bytes a second as `0.13 GB/s`; slow ones as `1.25 MB/s`, `5.00 kB/s`, `3.00 B/s`.
pub fn rate_bytes(bytes_per_second: f64) -> String {
    let (unit, prefix) = rate_unit(bytes_per_second);
    format!("{} {prefix}B/s", decimal(bytes_per_second / unit))
}

/// Bytes a second as `0.13 GB/s (1.07 Gb/s)`.
pub fn rate(bytes_per_second: f64) -> String {
    let (unit, prefix) = rate_unit(bytes_per_second);
    format!("{} ({} {prefix}b/s)", rate_bytes(bytes_per_second), decimal(bytes_per_second * 8.0 / unit))
}

/// The unit that leaves no more than one zero behind the point.
fn rate_unit(bytes_per_second: f64) -> (f64, &'static str) {
    match bytes_per_second {
        rate if rate >= 1e7 || rate == 0.0 => (1e9, "G"),
        rate if rate >= 1e4 => (1e6, "M"),
        rate if rate >= 1e1 => (1e3, "k"),
        _ => (1.0, ""),
    }
}

/// As many decimals as leave two or three digits that mean something.
fn decimal(value: f64) -> String {
    let decimals = match value {
        _ if value >= 10.0 => 1,
        _ if value >= 0.1 => 2,
        _ if value >= 0.01 => 3,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// Per second, or nothing when no time was measured.
pub fn per_second(amount: u64, time: Duration) -> Option<f64> {
    let seconds = time.as_secs_f64();
    (seconds > 0.0).then(|| amount as f64 / seconds)
}

/// `0.61 s`, `12.3 s`, `2 min 05 s`, `3 h 02 min`
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match time.as_secs_f64() {
        exact if exact < 10.0 => format!("{exact:.2} s"),
        exact if exact < 59.95 => format!("{exact:.1} s"),
        _ if seconds < 3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// `0:07`, `12:34`, `1:02:03`: what is left.
pub fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// A moment as RFC 3339 in UTC with milliseconds: `2026-11-20T12:29:29.123Z`.
pub fn rfc3339(time: SystemTime) -> String {
    let (seconds, nanos) = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (i64::try_from(after.as_secs()).unwrap_or(i64::MAX), after.subsec_nanos()),
        Err(before) => (-i64::try_from(before.duration().as_secs()).unwrap_or(i64::MAX), 0),
    };
    format!("{:.3}Z", civil(seconds, nanos))
}

/// Seconds since 1970 as RFC 3339 in UTC: `2026-11-20T12:29:29Z`.
pub fn rfc3339_seconds(seconds: i64) -> String {
    format!("{}Z", civil(seconds, 0))
}

/// A modification time as RFC 3339 in UTC with all its digits: `2026-11-20T12:29:29.000000001Z`.
pub fn rfc3339_nanos(seconds: i64, nanos: u32) -> String {
    format!("{:.9}Z", civil(seconds, nanos))
}

/// Date and time of day. RFC 3339 has four digits for the year: a time before the year 0 or after 9999, which only a
/// damaged file bears, is shown as the first or last that it can say.
fn civil(seconds: i64, nanos: u32) -> DateTime {
    let nanos = i32::try_from(nanos).unwrap_or(i32::MAX);
    let since = SignedDuration::new(seconds.clamp(FIRST_SECOND, LAST_SECOND), nanos);
    date(1970, 1, 1).to_datetime(Time::midnight()).saturating_add(since)
}

/// 0000-01-01T00:00:00Z, in seconds since 1970.
const FIRST_SECOND: i64 = -62_167_219_200;
/// 9999-12-31T23:59:59Z, in seconds since 1970.
const LAST_SECOND: i64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (20_000, "20,000"),
            (81_920_000, "81,920,000"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ];
        for (number, text) in cases {
            assert_eq!(count(number), text);
        }
        assert_eq!(counted(1, "file", "files"), "1 file");
        assert_eq!(counted(0, "file", "files"), "0 files");
    }

    #[test]
    fn sizes() {
        let cases = [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1,023 bytes"),
            (1024, "1.0 KiB"),
            (81_920_000, "78.1 MiB"),
            ((1 << 30) - 1, "1.0 GiB"),
            (3 << 39, "1.5 TiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text);
        }
        assert_eq!(size_exact(81_920_000), "78.1 MiB (81,920,000 bytes)");
        assert_eq!(size_exact(7), "7 bytes");
    }

    #[test]
    fn sizes_beside_rates_are_decimal() {
        assert_eq!(decimal_size_exact(462_221_586), "462.2 MB (462,221,586 bytes)");
        assert_eq!(decimal_size_exact(999_960), "1.0 MB (999,960 bytes)");
        assert_eq!(decimal_size_exact(999), "999 bytes");
        assert_eq!(decimal_size_exact(1), "1 byte");
        assert_eq!(decimal_part(12_340_000_000, 50_100_000_000, "+"), "12.3 of 50.1+ GB");
        assert_eq!(decimal_part(1, 5, ""), "1 of 5 bytes");
    }

    #[test]
    fn rates_are_decimal() {
        let cases = [
            (0.0, "0.00 GB/s (0.00 Gb/s)"),
            (134_295_081.0, "0.13 GB/s (1.07 Gb/s)"),
            (12_345_678_901.0, "12.3 GB/s (98.8 Gb/s)"),
            (12_500_000.0, "0.013 GB/s (0.10 Gb/s)"),
            (1_250_000.0, "1.25 MB/s (10.0 Mb/s)"),
            (12_500.0, "0.013 MB/s (0.10 Mb/s)"),
            (5_000.0, "5.00 kB/s (40.0 kb/s)"),
            (300.0, "0.30 kB/s (2.40 kb/s)"),
            (3.0, "3.00 B/s (24.0 b/s)"),
        ];
        for (bytes_per_second, text) in cases {
            assert_eq!(rate(bytes_per_second), text);
        }
        assert_eq!(per_second(10, Duration::ZERO), None);
        assert_eq!(per_second(10, Duration::from_millis(500)), Some(20.0));
    }

    #[test]
    fn durations() {
        let cases = [
            (0, "0.00 s", "0:00"),
            (610, "0.61 s", "0:00"),
            (12_340, "12.3 s", "0:12"),
            (59_990, "0 min 59 s", "0:59"),
            (125_000, "2 min 05 s", "2:05"),
            (10_923_000, "3 h 02 min", "3:02:03"),
        ];
        for (millis, long, short) in cases {
            let time = Duration::from_millis(millis);
            assert_eq!((duration(time).as_str(), clock(time).as_str()), (long, short));
        }
    }

    #[test]
    fn moments() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (-11_644_473_600, "1601-01-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ];
        for (seconds, text) in cases {
            assert_eq!(rfc3339_seconds(seconds), text);
        }
        assert_eq!(rfc3339_nanos(0, 5), "1970-01-01T00:00:00.000000005Z");
        let time = UNIX_EPOCH + Duration::from_millis(1_700_000_000_042);
        assert_eq!(rfc3339(time), "2023-11-14T22:13:20.042Z");
        // A file system may claim any time: none may overflow.
        for seconds in [i64::MIN, i64::MAX] {
            assert!(rfc3339_seconds(seconds).ends_with('Z'));
        }
        assert_eq!(rfc3339_seconds(FIRST_SECOND), "0000-01-01T00:00:00Z");
        assert_eq!(rfc3339_seconds(i64::MIN), "0000-01-01T00:00:00Z");
        assert_eq!(rfc3339_nanos(i64::MAX, 999_999_999), "9999-12-31T23:59:59.999999999Z");
    }
}
