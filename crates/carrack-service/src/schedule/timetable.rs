//! An endpoint's timetable: which rate holds at this hour.

use std::fmt;
use std::time::Duration;

use crate::model::{EndpointLimits, RateWindow};

/// What is wrong with a timetable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimetableError {
    text: String,
}

impl fmt::Display for TimetableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no time of a day: it is written HH:MM, from 00:00 to 24:00", self.text)
    }
}

impl std::error::Error for TimetableError {}

/// The rate that holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateNow {
    /// Bytes a second of each transfer; none: not limited. Zero: none begins.
    pub rate: Option<u64>,
    /// Until the hour at which it may change, by the clock on the wall; none: it does not.
    pub holds_for: Option<Duration>,
}

const DAY_MINUTES: u32 = 24 * 60;

/// The rate at a time of the day, in seconds since local midnight. Of windows that overlap the first counts. A window
/// whose ends are the same is the whole day.
///
/// # Errors
/// Where a time of the timetable cannot be read.
pub fn rate_now(limits: &EndpointLimits, second_of_day: u32) -> Result<RateNow, TimetableError> {
    let minute = second_of_day / 60 % DAY_MINUTES;
    let mut rate = None;
    let mut edges = Vec::new();
    for RateWindow { from, until, rate: in_window } in &limits.timetable {
        let (from, until) = (minutes(from)? % DAY_MINUTES, minutes(until)? % DAY_MINUTES);
        edges.extend([from, until]);
        let is_in = match from.cmp(&until) {
            std::cmp::Ordering::Less => (from..until).contains(&minute),
            std::cmp::Ordering::Equal => true,
            std::cmp::Ordering::Greater => minute >= from || minute < until,
        };
        if is_in && rate.is_none() {
            rate = Some(*in_window);
        }
    }
    let ahead = |edge: u32| match (edge + DAY_MINUTES - minute) % DAY_MINUTES {
        0 => DAY_MINUTES,
        minutes => minutes,
    };
    let next = edges.into_iter().map(ahead).min();
    let holds_for = next.map(|minutes| Duration::from_secs(u64::from(minutes * 60 - second_of_day % 60)));
    Ok(RateNow { rate: rate.or(limits.rate), holds_for })
}

fn minutes(text: &str) -> Result<u32, TimetableError> {
    let wrong = || TimetableError { text: text.to_owned() };
    let (hours, minutes) = text.split_once(':').ok_or_else(wrong)?;
    let number = |digits: &str| match digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse::<u32>().map_err(|_| wrong()),
        false => Err(wrong()),
    };
    let of_day = number(hours)? * 60 + number(minutes)?;
    if number(minutes)? > 59 || of_day > DAY_MINUTES {
        return Err(wrong());
    }
    Ok(of_day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(windows: &[(&str, &str, u64)]) -> EndpointLimits {
        let window =
            |&(from, until, rate): &(&str, &str, u64)| RateWindow { from: from.into(), until: until.into(), rate };
        EndpointLimits { rate: Some(7), timetable: windows.iter().map(window).collect(), ..EndpointLimits::default() }
    }

    #[test]
    fn timetable_window_over_midnight_counts_on_both_days() {
        let limits = limits(&[("22:00", "06:30", 0), ("06:00", "08:00", 5)]);
        let at = |hour: u32, minute: u32| rate_now(&limits, (hour * 60 + minute) * 60 + 30).unwrap();
        let holds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(at(23, 0), RateNow { rate: Some(0), holds_for: holds(7 * 3600 - 30) });
        assert_eq!(at(6, 15), RateNow { rate: Some(0), holds_for: holds(15 * 60 - 30) });
        assert_eq!(at(6, 30), RateNow { rate: Some(5), holds_for: holds(90 * 60 - 30) });
        assert_eq!(at(8, 0), RateNow { rate: Some(7), holds_for: holds(14 * 3600 - 30) });
        assert_eq!(rate_now(&EndpointLimits::default(), 0), Ok(RateNow { rate: None, holds_for: None }));
    }

    #[test]
    fn timetable_times_that_are_none_are_refused() {
        for text in ["", "7:00", "24:01", "12:60", "12", "ab:cd", "12:0", "+1:00", "12:00:00"] {
            assert!(rate_now(&limits(&[(text, "08:00", 0)]), 0).is_err(), "{text}");
        }
        assert_eq!(rate_now(&limits(&[("00:00", "24:00", 1)]), 0).unwrap().rate, Some(1));
    }
}
