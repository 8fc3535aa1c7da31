//! Durations as people type them: `250ms`, `5s`, `1h30m`, `2w`; a bare number is seconds.

use std::time::Duration;

use crate::words::quoted;

/// Longer is a slip of the finger, and far below what a clock can add up.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Nanoseconds of each unit; the longest first.
const UNITS: [(&str, u128); 8] = [
    ("y", 365 * 24 * 3_600_000_000_000),
    ("w", 7 * 24 * 3_600_000_000_000),
    ("d", 24 * 3_600_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
];

/// Parses a duration: numbers of up to nine decimals, each with its unit, the longest first.
///
/// # Errors
/// The sentence that refuses the text.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("{} is not a duration: use 250ms, 5s, 2m, 1h, 1d, 2w, or 1h30m", quoted(text));
    let (mut rest, mut nanos, mut before) = (text, 0, u128::MAX);
    loop {
        let is_digit = |character: char| character.is_ascii_digit() || character == '.';
        let (number, after) = rest.split_at(rest.find(|character| !is_digit(character)).unwrap_or(rest.len()));
        let (unit, after) = after.split_at(after.find(is_digit).unwrap_or(after.len()));
        let is_alone = rest.len() == text.len() && after.is_empty();
        let unit = if unit.is_empty() && is_alone { "s" } else { unit };
        let unit = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, nanos)| *nanos);
        let unit = unit.filter(|unit| *unit < before).ok_or_else(bad)?;
        nanos += number_of(number, unit).ok_or_else(bad)?;
        (rest, before) = (after, unit);
        if rest.is_empty() {
            break;
        }
    }
    match u64::try_from(nanos).map(Duration::from_nanos) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        _ => Err(format!("{} is longer than a hundred years", quoted(text))),
    }
}

fn number_of(number: &str, unit_nanos: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.is_empty() || fraction.len() > 9 || whole.len() > 12 {
        return None;
    }
    let (whole, numerator): (u128, u128) = (whole.parse().ok()?, fraction.parse().ok()?);
    let digits = u32::try_from(fraction.len()).ok()?;
    Some(whole * unit_nanos + numerator * unit_nanos / 10u128.pow(digits))
}

/// Parses the time after which something is given up: not zero.
///
/// # Errors
/// The sentence that refuses the text.
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
            ("2w", 14 * 86_400_000),
            ("1y", 365 * 86_400_000),
            ("1h30m", 5_400_000),
            ("1d2h3min4s5ms", 93_784_005),
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
            "1S",
            "5sec",
            "1M",
            "NaN",
            "inf",
            "101y",
            "99999999999999999999s",
            "999999999999d",
            "30m1h",
            "1h1h",
            "1m1min",
            "1h30",
            "1h 30m",
            "1.0123456789s",
        ] {
            assert!(parse_duration(text).is_err(), "{text:?}");
        }
    }
}
