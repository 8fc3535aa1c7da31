//! The five fields of crontab: minute, hour, day of the month, month, day of the week.
//!
//! A field is `*`, a number, a range `a-b`, any of these with a step `/n`, or several of them separated by commas.
//! Months and days of the week may be named by their first three letters; Sunday is 0 and 7. Where both the day of the
//! month and the day of the week are restricted (do not begin with `*`), a day matches if either does, as crontab has
//! it. `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly` stand for their five fields.

use std::fmt;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};

/// A day on which nothing comes for so many days never comes: 29 February is at most eight years away.
const DAYS_SEARCHED: u32 = 8 * 366 + 1;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Times at which something is due, by the clock on the wall of a time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    week_days: Field,
}

/// Numbers that match, as bits, and whether it begins with `*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    bits: u64,
    is_any: bool,
}

impl Field {
    fn has(self, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.bits >> number & 1 == 1)
    }
}

/// What is wrong with a text that should be five fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronError(String);

impl fmt::Display for CronError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CronError {}

impl Cron {
    /// Reads five fields.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let text = match text.trim() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            text => text,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, week_days] = fields[..] else {
            return Err(CronError(format!(
                "{text:?} has {} fields; five are needed: minute, hour, day of the month, month, day of the week",
                fields.len()
            )));
        };
        let mut week_days = field("day of the week", week_days, 0..=7, &DAYS, 0)?;
        // Sunday is 0 and 7.
        week_days.bits |= week_days.bits >> 7 & 1;
        Ok(Self {
            minutes: field("minute", minutes, 0..=59, &[], 0)?,
            hours: field("hour", hours, 0..=23, &[], 0)?,
            days: field("day of the month", days, 1..=31, &[], 0)?,
            months: field("month", months, 1..=12, &MONTHS, 1)?,
            week_days,
        })
    }

    /// The first moment after `after` that matches. `None` where none comes, as on 30 February.
    ///
    /// Where clocks are set forward, a time that does not exist comes at the first moment after the gap. Where they are
    /// set back, a time that exists twice comes the first time only. Where the hour begins with `*`, neither is done:
    /// what comes each hour comes each hour.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let found = self.next_that_exists(after, zone);
        if self.hours.is_any {
            return found;
        }
        // A search that finds nothing has searched eight years; the first gap after that is far enough.
        let end =
            found.or_else(|| after.checked_add(SignedDuration::from_hours(i64::from(DAYS_SEARCHED) * 24)).ok())?;
        self.next_in_a_gap(after, end, zone).or(found)
    }

    fn next_that_exists(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let minute = after.as_second().div_euclid(60) + 1;
        let mut at = Timestamp::from_second(minute * 60).ok()?.to_zoned(zone.clone());
        for _ in 0..DAYS_SEARCHED {
            if self.matches_date(at.date()) {
                let day = at.date();
                while at.date() == day {
                    if !self.hours.has(at.hour()) {
                        at = at.checked_add((60 - i64::from(at.minute())).minutes()).ok()?;
                    } else if self.minutes.has(at.minute()) && (self.hours.is_any || !is_second_time(&at)) {
                        return Some(at.timestamp());
                    } else {
                        at = at.checked_add(1.minute()).ok()?;
                    }
                }
            } else {
                at = at.tomorrow().ok()?.start_of_day().ok()?;
            }
        }
        None
    }

    /// The end of the first gap between `after` and `before` in which a time matches.
    fn next_in_a_gap(&self, after: Timestamp, before: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        for transition in zone.following(after) {
            let at = transition.timestamp();
            if at >= before {
                break;
            }
            let earlier = at.checked_sub(SignedDuration::from_secs(1)).ok()?;
            let skipped_from = zone.to_offset(earlier).to_datetime(at);
            let skipped_until = zone.to_offset(at).to_datetime(at);
            let mut minute = ceil_to_minute(skipped_from)?;
            // A gap is a day at most: islands that changed sides of the date line.
            for _ in 0..=24 * 60 {
                if minute >= skipped_until {
                    break;
                }
                if self.matches_date(minute.date())
                    && self.hours.has(minute.hour())
                    && self.minutes.has(minute.minute())
                {
                    return Some(at);
                }
                minute = minute.checked_add(1.minute()).ok()?;
            }
        }
        None
    }

    fn matches_date(&self, date: Date) -> bool {
        let day = self.days.has(date.day());
        let week_day = self.week_days.has(date.weekday().to_sunday_zero_offset());
        let matches = match self.days.is_any || self.week_days.is_any {
            true => day && week_day,
            false => day || week_day,
        };
        matches && self.months.has(date.month())
    }
}

/// Whether its time on the wall was there before: clocks have been set back since.
fn is_second_time(at: &Zoned) -> bool {
    let zone = at.time_zone();
    zone.to_ambiguous_timestamp(at.datetime()).compatible().is_ok_and(|first| first < at.timestamp())
}

fn ceil_to_minute(at: DateTime) -> Option<DateTime> {
    let whole = Time::new(at.hour(), at.minute(), 0, 0).ok()?.on(at.date().year(), at.date().month(), at.date().day());
    if whole == at { Some(whole) } else { whole.checked_add(1.minute()).ok() }
}

fn field(
    name: &str,
    text: &str,
    range: std::ops::RangeInclusive<u8>,
    names: &[&str],
    first_name: u8,
) -> Result<Field, CronError> {
    let wrong = |why: String| CronError(format!("{text:?} is no {name}: {why}"));
    let (least, most) = (*range.start(), *range.end());
    let number = |word: &str| {
        if let Some(n) = names.iter().position(|name| name.eq_ignore_ascii_case(word)) {
            return u8::try_from(n).map(|n| n + first_name).map_err(|_| wrong(format!("{word:?}")));
        }
        let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let number = if digits { word.parse::<u8>().ok() } else { None };
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| wrong(format!("{word:?} is not from {least} to {most}")))
    };
    let mut bits = 0;
    for part in text.split(',') {
        let (span, step) = match part.split_once('/') {
            None => (part, None),
            Some((span, step)) => match step.parse::<u8>() {
                Ok(step @ 1..) if step <= most => (span, Some(step)),
                _ => return Err(wrong(format!("{step:?} is no step from 1 to {most}"))),
            },
        };
        let (from, until) = match span.split_once('-') {
            _ if span == "*" => (least, most),
            Some((from, until)) => (number(from)?, number(until)?),
            None => (number(span)?, if step.is_some() { most } else { number(span)? }),
        };
        if from > until {
            return Err(wrong(format!("{from} is more than {until}")));
        }
        for matching in (from..=until).step_by(usize::from(step.unwrap_or(1))) {
            bits |= 1 << matching;
        }
    }
    Ok(Field { bits, is_any: text.starts_with('*') })
}

#[cfg(test)]
#[path = "cron_tests.rs"]
mod tests;
