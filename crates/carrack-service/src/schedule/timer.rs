//! When a timer runs.
//!
//! - *once*: at `start`, or at once.
//! - *every*: at `start` and each so many seconds after it. These are seconds that pass: setting clocks forward or back
//!   for summer does not move them against UTC.
//! - *cron*: by the clock on the wall of `zone`. A time that a change of clocks leaves out comes at the first moment
//!   after the gap; a time that comes twice counts the first time. Where the hour field begins with `*`, neither is
//!   done: what comes each hour comes each hour.
//!
//! Runs that came due while the service was stopped, or that a clock set forward has jumped over, become one run, which
//! says how many were missed. With jitter each run comes later, by a time of its own, and always before the next one is
//! due. A clock that is set back delays the next run until it shows its time; no run comes twice.
//! The number of a run is part of the submission id of its task, and the ledger writes both at once.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::cron::{Cron, CronError};
use crate::clock::Moment;
use crate::model::{Overlap, Timer, TimerSchedule, TimerState};

/// The shortest time between two runs: a task takes about as long to begin and end.
pub const EVERY_SECONDS_MIN: u64 = 10;

/// The most seconds that a run comes after it is due.
pub const JITTER_SECONDS_MAX: u64 = 86_400;

/// Runs that are looked at for the smallest time between two. The runs of a day are alike on every day; days that
/// follow each other may come late in a year.
const GAPS_COUNTED: usize = 1_500;

/// Missed runs are counted up to here.
const MISSED_COUNTED: u64 = 1_000;

/// What is wrong with a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// The five fields.
    Cron(CronError),
    /// There is no time zone of this name.
    Zone(String),
    /// `every` and `cron` at once.
    Both,
    /// A zone without `cron`.
    ZoneAlone,
    /// Runs follow each other too soon.
    TooOften,
    /// Runs would be put off until the next one is due, or for longer than a day.
    Jitter {
        /// By how many seconds they can be put off.
        most: u64,
    },
    /// No run ever comes.
    Never,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron(error) => error.fmt(f),
            Self::Zone(name) => {
                write!(f, "this host knows no time zone {name:?}; names are those of the IANA database")
            }
            Self::Both => f.write_str("a timer runs by every or by cron, not by both"),
            Self::ZoneAlone => f.write_str("a time zone is for cron alone"),
            Self::TooOften => write!(f, "a timer runs every {EVERY_SECONDS_MIN} seconds at most"),
            Self::Jitter { most } => write!(
                f,
                "runs of this timer can be put off by {most} seconds at most: by less than the time from one to the \
                 next, and never by more than {JITTER_SECONDS_MAX} seconds"
            ),
            Self::Never => f.write_str("with this start, end and number of runs, no run ever comes"),
        }
    }
}

impl std::error::Error for ScheduleError {}

/// Checks a schedule, and tells the first run of a timer that is made now. A first run that is past comes at once where
/// the timer runs once; else the next one of its row is the first.
///
/// # Errors
/// What is wrong with it.
pub fn check(schedule: &TimerSchedule, now: Moment) -> Result<Moment, ScheduleError> {
    if schedule.every_seconds.is_some() && schedule.cron.is_some() {
        return Err(ScheduleError::Both);
    }
    if schedule.zone.is_some() && schedule.cron.is_none() {
        return Err(ScheduleError::ZoneAlone);
    }
    if schedule.every_seconds.is_some_and(|seconds| seconds < EVERY_SECONDS_MIN) {
        return Err(ScheduleError::TooOften);
    }
    let first = match (schedule.every_seconds, &schedule.cron) {
        (None, None) => Some(schedule.start.unwrap_or(now).max(now)),
        _ => next_after(schedule, now, Moment(now.0 - 1))?,
    };
    if let Some(jitter) = schedule.jitter_seconds.filter(|jitter| *jitter > 0) {
        let most = jitter_most(schedule, now)?;
        if jitter > most {
            return Err(ScheduleError::Jitter { most });
        }
    }
    first.filter(|_| schedule.runs != Some(0)).ok_or(ScheduleError::Never)
}

/// By how many seconds the runs of a schedule can be put off. By the clock on the wall: where a change of clocks brings
/// two runs nearer, [`put_off`] knows.
fn jitter_most(schedule: &TimerSchedule, now: Moment) -> Result<u64, ScheduleError> {
    let gap = match (schedule.every_seconds, &schedule.cron) {
        (Some(every), _) => Some(every),
        (None, Some(cron)) => smallest_gap(&Cron::parse(cron).map_err(ScheduleError::Cron)?, now),
        (None, None) => None,
    };
    Ok(gap.map_or(JITTER_SECONDS_MAX, |gap| JITTER_SECONDS_MAX.min(gap.saturating_sub(1))))
}

/// The smallest time between two runs, in seconds; `None` where there are no two.
fn smallest_gap(cron: &Cron, now: Moment) -> Option<u64> {
    let first = Timestamp::from_microsecond(now.0).ok().and_then(|now| cron.next(now, &TimeZone::UTC));
    let runs = std::iter::successors(first, |run| cron.next(*run, &TimeZone::UTC));
    let seconds: Vec<i64> = runs.take(GAPS_COUNTED).map(|run| run.as_second()).collect();
    seconds.windows(2).filter_map(|pair| u64::try_from(pair[1].saturating_sub(pair[0])).ok()).min()
}

/// The first time in a schedule's row after `after`, of a timer that was made at `made`; `None` where none comes any
/// more. A timer that runs once has no run after its first.
///
/// # Errors
/// Where the fields or the zone cannot be read.
pub fn next_after(schedule: &TimerSchedule, made: Moment, after: Moment) -> Result<Option<Moment>, ScheduleError> {
    let next = if let Some(every) = schedule.every_seconds {
        let (anchor, every) = (schedule.start.unwrap_or(made).0, micros(every.max(1)));
        let rows = after.0.saturating_sub(anchor).div_euclid(every).saturating_add(1).max(0);
        Some(Moment(anchor.saturating_add(rows.saturating_mul(every))))
    } else if let Some(cron) = &schedule.cron {
        let cron = Cron::parse(cron).map_err(ScheduleError::Cron)?;
        let zone = zone(schedule.zone.as_deref())?;
        // A run at `start` itself counts.
        let after = schedule.start.map_or(after, |start| after.max(Moment(start.0.saturating_sub(1))));
        let after = Timestamp::from_microsecond(after.0).map_err(|_| ScheduleError::Never)?;
        cron.next(after, &zone).map(|next| Moment(next.as_microsecond()))
    } else {
        schedule.start.filter(|start| *start > after)
    };
    Ok(next.filter(|next| schedule.until.is_none_or(|until| *next <= until)))
}

/// When a run comes that is due then: later by a time that is the timer's and this run's own, the same whenever it is
/// asked for, and before the next run is due. What comes when the timer begins is not put off.
pub fn put_off(timer: &Timer, due: Moment) -> Moment {
    let schedule = &timer.schedule;
    let Some(jitter) = schedule.jitter_seconds.filter(|jitter| *jitter > 0) else { return due };
    if schedule.cron.is_none() && (schedule.start == Some(due) || timer.made == due) {
        return due;
    }
    let next = next_after(schedule, timer.made, due).ok().flatten();
    let jitter = next.map_or(jitter, |next| jitter.min(next.since(due).as_secs().saturating_sub(1)));
    let mut hash = blake3::Hasher::new();
    hash.update(timer.id.as_bytes()).update(&due.0.to_le_bytes());
    let mut number = [0; 8];
    hash.finalize_xof().fill(&mut number);
    Moment(due.0.saturating_add(micros(u64::from_le_bytes(number) % (jitter + 1))))
}

/// The run that comes after `after`. It may be of a time that is past: that run was put off, and waits.
///
/// # Errors
/// Where the schedule cannot be read.
pub fn run_after(timer: &Timer, after: Moment) -> Result<Option<Moment>, ScheduleError> {
    let jitter = micros(timer.schedule.jitter_seconds.unwrap_or(0));
    let from = after.0.saturating_sub(jitter).max(timer.made.0.saturating_sub(1)).min(after.0);
    let mut row = next_after(&timer.schedule, timer.made, Moment(from))?;
    while let Some(due) = row {
        let run = put_off(timer, due);
        // A first run comes at its own time, whatever the jitter.
        if run > after && due != after {
            return Ok(Some(run));
        }
        row = next_after(&timer.schedule, timer.made, due)?;
    }
    Ok(None)
}

/// What happens to a timer that is due.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It submits its task. The timer as it is afterwards; its `last_task` is to be set.
    Run {
        /// With the run counted and the next one's time.
        timer: Timer,
        /// When this run was due.
        due: Moment,
        /// Further runs that were due and become part of this one; counted to a thousand.
        missed: u64,
    },
    /// It leaves this run out. The timer as it is afterwards.
    Skip {
        /// With the next run's time.
        timer: Timer,
        /// When this run was due.
        due: Moment,
    },
    /// It waits for the end of its last task.
    Wait,
    /// It is not due.
    NotDue,
}

/// Decides for a timer at `now`. `is_open`: the task of its last run has not ended.
///
/// # Errors
/// Where its schedule cannot be read.
pub fn step(timer: &Timer, now: Moment, is_open: bool) -> Result<Step, ScheduleError> {
    let due = match timer.next_run {
        Some(due) if timer.state == TimerState::Waiting && due <= now => due,
        _ => return Ok(Step::NotDue),
    };
    if is_open && timer.schedule.overlap == Overlap::Wait {
        return Ok(Step::Wait);
    }
    let mut missed = 0;
    let mut next = run_after(timer, due)?;
    while let Some(run) = next.filter(|run| *run <= now) {
        missed += 1;
        let from = if missed < MISSED_COUNTED { run } else { now };
        next = run_after(timer, from)?;
    }
    let skips = is_open && timer.schedule.overlap == Overlap::Skip;
    let runs = timer.runs + u64::from(!skips);
    let next = next.filter(|_| timer.schedule.runs.is_none_or(|allowed| runs < allowed));
    let state = if next.is_some() { TimerState::Waiting } else { TimerState::Ended };
    let timer = Timer { runs, next_run: next, state, ..timer.clone() };
    Ok(if skips { Step::Skip { timer, due } } else { Step::Run { timer, due, missed } })
}

/// Submission ids of timers' tasks begin with this, and nobody else's do.
pub const SUBMISSION_PREFIX: &str = "timer:";

/// By what a run's task is known, so that none comes twice.
pub fn submission_id(timer: &str, run: u64) -> String {
    format!("{SUBMISSION_PREFIX}{timer}:run:{run}")
}

fn zone(name: Option<&str>) -> Result<TimeZone, ScheduleError> {
    match name {
        None => Ok(TimeZone::UTC),
        Some(name) => TimeZone::get(name).map_err(|_| ScheduleError::Zone(name.to_owned())),
    }
}

fn micros(seconds: u64) -> i64 {
    i64::try_from(Duration::from_secs(seconds).as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "timer_tests.rs"]
mod tests;
