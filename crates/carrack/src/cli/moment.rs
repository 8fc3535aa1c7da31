//! Moments as people type them: RFC 3339 (`2026-11-23T08:00:00Z`), or a duration from now.

use std::time::{Duration, SystemTime};

use carrack_core::duration::parse_duration;
use carrack_service::clock::Moment;

/// Parses a moment to come: RFC 3339, or how long from now.
pub fn parse_until(text: &str) -> Result<Moment, String> {
    from(text, SystemTime::now().into(), |now, duration| now.after(duration))
}

/// Parses a moment that has passed: RFC 3339, or how long ago.
pub fn parse_since(text: &str) -> Result<Moment, String> {
    let ago = |now: Moment, duration: Duration| {
        Moment(now.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    };
    from(text, SystemTime::now().into(), ago)
}

fn from(text: &str, now: Moment, far: impl Fn(Moment, Duration) -> Moment) -> Result<Moment, String> {
    let time = Moment::parse(text);
    time.or_else(|why| {
        parse_duration(text).map(|duration| far(now, duration)).map_err(|_| format!("{why}, or a duration, like 6h"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let eight = Moment(1_795_420_800_000_000);
        assert_eq!(parse_until("2026-11-23T08:00:00Z"), Ok(eight));
        assert_eq!(parse_until("2026-11-23T09:00:00+01:00"), Ok(eight));
        let later = |now: Moment, duration| now.after(duration);
        assert_eq!(from("90m", eight, later), Ok(Moment(eight.0 + 5_400_000_000)));
        assert!(parse_since("1h").expect("an hour ago") < parse_until("0").expect("now"));
        for text in ["", "tomorrow", "2026-11-23", "2026-11-23T08:00:00", "30m1h", "-1h"] {
            assert!(parse_until(text).is_err(), "{text}");
        }
    }
}
