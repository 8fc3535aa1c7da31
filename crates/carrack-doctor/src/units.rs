//! Numbers as sentences have them.

use std::time::Duration;

/// Bytes a second: `42 MB/s`.
pub fn rate(bytes_per_second: f64) -> String {
    let (value, unit) = scaled(bytes_per_second, &["B/s", "kB/s", "MB/s", "GB/s"]);
    format!("{} {unit}", digits(value))
}

/// Bits a second, as interfaces count: `100 Gb/s`.
pub fn bits(bits_per_second: f64) -> String {
    let (value, unit) = scaled(bits_per_second, &["b/s", "kb/s", "Mb/s", "Gb/s"]);
    format!("{} {unit}", digits(value))
}

/// Bytes of memory, in powers of two: `6.0 MiB`.
pub fn bytes(bytes: f64) -> String {
    let mut value = bytes;
    for unit in ["bytes", "KiB", "MiB"] {
        if value < 1024.0 {
            return format!("{} {unit}", digits(value));
        }
        value /= 1024.0;
    }
    format!("{} GiB", digits(value))
}

/// A time: `80 ms`, `0.24 ms`.
pub fn time(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    if ms >= 1000.0 { format!("{} s", digits(ms / 1e3)) } else { format!("{} ms", digits(ms)) }
}

/// A share: `0.2 %`.
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.01 { format!("{percent:.4} %") } else { format!("{} %", digits(percent)) }
}

fn scaled<'a>(value: f64, units: &[&'a str; 4]) -> (f64, &'a str) {
    let (mut value, mut at) = (value, 0);
    while value >= 1000.0 && at < units.len() - 1 {
        value /= 1000.0;
        at += 1;
    }
    (value, units[at])
}

/// Two or three digits that count.
fn digits(value: f64) -> String {
    match value {
        value if value >= 10.0 || value.fract() == 0.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_units() {
        assert_eq!(
            (rate(42e6), bits(100e9), bytes(6.0 * 1048576.0)),
            ("42 MB/s".into(), "100 Gb/s".into(), "6 MiB".into())
        );
        assert_eq!(
            (time(Duration::from_micros(240)), time(Duration::from_millis(80))),
            ("0.24 ms".into(), "80 ms".into())
        );
        assert_eq!(
            (share(0.002), share(0.00001), bits(2.5e9)),
            ("0.20 %".into(), "0.0010 %".into(), "2.5 Gb/s".into())
        );
    }
}
