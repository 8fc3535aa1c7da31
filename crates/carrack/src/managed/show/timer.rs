//! Timers.

use std::time::Duration;

use carrack_core::options::{DeleteLimit, OptionValue};
use carrack_core::tuning::TIMER_DELETE_SHARE;
use carrack_service::model::{Task, Timer, TimerSchedule};

use super::task::pair_words;
use super::{maybe_time, shortened, time};
use crate::output::{format, human};

/// Headings of [`timer_row`].
pub const TIMER_HEADINGS: [&str; 7] = ["TIMER", "STATE", "RUNS AT", "NEXT RUN", ">RUNS", "LAST RUN", "WHAT"];

/// A timer in a list; `last` is the task of its last run.
pub fn timer_row(timer: &Timer, last: Option<&Task>) -> [String; 7] {
    [
        timer.id.clone(),
        timer.state.name().to_owned(),
        shortened(&schedule_words(&timer.schedule), 40),
        maybe_time(timer.next_run),
        format::count(timer.runs),
        last.map_or("-", |task| task.state.name()).to_owned(),
        shortened(&what(timer), 60),
    ]
}

/// Its label, or else from where to where it copies.
fn what(timer: &Timer) -> String {
    let places = || match &timer.task.pairs[..] {
        [] => String::new(),
        [pair] => pair_words(timer.task.kind, pair),
        [pair, more @ ..] => {
            format!("{}, and {} more", pair_words(timer.task.kind, pair), format::count(more.len() as u64))
        }
    };
    timer.label.clone().unwrap_or_else(places)
}

/// A timer in full.
pub fn timer_lines(timer: &Timer) -> Vec<String> {
    let mut lines = vec![format!("timer {}", timer.id), format!("  state: {}", timer.state.name())];
    let mut line = |name: &str, text: String| lines.push(format!("  {name}: {text}"));
    if let Some(label) = &timer.label {
        line("label", label.clone());
    }
    line("owner", timer.owner.clone());
    line("runs", format!("{}; {} so far", schedule_words(&timer.schedule), format::count(timer.runs)));
    line("next run", maybe_time(timer.next_run));
    line("overlap", timer.schedule.overlap.meaning().to_owned());
    if let Some(until) = timer.schedule.until {
        line("until", time(until));
    }
    if let Some(runs) = timer.schedule.runs {
        line("runs in all", format::count(runs));
    }
    for pair in &timer.task.pairs {
        let to = pair.destination.as_ref().map(|to| format!(" -> {to}")).unwrap_or_default();
        line(timer.task.kind.name(), format!("{}{to}", pair.source));
    }
    if timer.task.deletes_at_destination() {
        let most = timer.task.options.max_delete.unwrap_or(DeleteLimit::Share(TIMER_DELETE_SHARE));
        let waits = match most {
            DeleteLimit::Partial(_) => "",
            _ => "; a run that would delete more waits until somebody resumes it",
        };
        line("max delete", format!("{}{waits}", most.text()));
    }
    if let Some(task) = &timer.last_task {
        line("last task", task.clone());
    }
    line("made", time(timer.made));
    lines.iter().map(|line| human::safe(line)).collect()
}

fn schedule_words(schedule: &TimerSchedule) -> String {
    let jitter = schedule.jitter_seconds.map(|seconds| format!(", up to {} later", every_words(seconds)));
    let when = match (schedule.every_seconds, &schedule.cron) {
        (Some(seconds), _) => format!("every {}", every_words(seconds)),
        (None, Some(cron)) => format!("at {cron} ({})", schedule.zone.as_deref().unwrap_or("UTC")),
        (None, None) => "once".to_owned(),
    };
    format!("{when}{}", jitter.unwrap_or_default())
}

/// As it was typed, where it is whole: `1 d`, `6 h`.
fn every_words(seconds: u64) -> String {
    match seconds {
        _ if seconds > 0 && seconds.is_multiple_of(86_400) => format::counted(seconds / 86_400, "day", "days"),
        _ if seconds > 0 && seconds.is_multiple_of(3600) => format::counted(seconds / 3600, "hour", "hours"),
        _ => format::duration(Duration::from_secs(seconds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_shown_in_words() {
        let every = |seconds| TimerSchedule { every_seconds: Some(seconds), ..TimerSchedule::default() };
        assert_eq!(schedule_words(&every(86_400)), "every 1 day");
        assert_eq!(schedule_words(&every(7200)), "every 2 hours");
        assert_eq!(schedule_words(&every(90)), "every 1 min 30 s");
        let cron = TimerSchedule { cron: Some("0 3 * * *".into()), ..TimerSchedule::default() };
        assert_eq!(schedule_words(&cron), "at 0 3 * * * (UTC)");
        assert_eq!(schedule_words(&TimerSchedule::default()), "once");
        let jittered = TimerSchedule { jitter_seconds: Some(1800), ..every(86_400) };
        assert_eq!(schedule_words(&jittered), "every 1 day, up to 30 min 00 s later");
    }
}
