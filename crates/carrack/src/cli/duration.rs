//! Durations as people type them: `250ms`, `5s`, `2m`, `1h`, `1d`; a bare number is seconds.

use std::time::Duration;

/// Longer is a slip of the finger, and far below what a clock can add up.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Parses a duration. One number, one unit, up to nine decimals.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is not a duration: use 250ms, 5s, 2m, 1h or 1d");
    let digits_end = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let unit_nanos: u128 = match unit {
        "ms" => 1_000_000,
        "" | "s" => 1_000_000_000,
        "m" | "min" => 60 * 1_000_000_000,
        "h" => 3600 * 1_000_000_000,
        "d" => 24 * 3600 * 1_000_000_000,
        _ => return Err(bad()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.is_empty() || fraction.len() > 9 || whole.len() > 12 {
        return Err(bad());
    }
    let whole: u128 = whole.parse().map_err(|_| bad())?;
    let numerator: u128 = fraction.parse().map_err(|_| bad())?;
    let digits = u32::try_from(fraction.len()).map_err(|_| bad())?;
    let nanos = whole * unit_nanos + numerator * unit_nanos / 10u128.pow(digits);
    match u64::try_from(nanos).map(Duration::from_nanos) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        _ => Err(format!("{text:?} is longer than a year")),
    }
}

/// Parses the time after which something is given up: not zero.
pub fn parse_timeout(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("a timeout of nothing would let nothing happen".to_owned()),
        timeout => Ok(timeout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let good = [
            ("5", 5_000),
            ("5s", 5_000),
            ("250ms", 250),
            ("2m", 120_000),
            ("2min", 120_000),
            ("1h", 3_600_000),
            ("1d", 86_400_000),
            ("1.5s", 1_500),
            ("0.25h", 900_000),
            ("0", 0),
        ];
        for (text, millis) in good {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn duration_that_is_none_is_refused() {
        for text in [
            "",
            "s",
            "-1s",
            "+1s",
            "1 s",
            " 1s",
            "1e3s",
            ".5s",
            "1.s",
            "1.5.5s",
            "1w",
            "1S",
            "5sec",
            "NaN",
            "inf",
            "367d",
            "99999999999999999999s",
            "999999999999d",
            "1m30s",
            "1.0123456789s",
        ] {
            assert!(parse_duration(text).is_err(), "{text:?}");
        }
    }
}
