//! `carrack timer`: tasks that are submitted again and again.

use std::time::Duration;

use carrack_service::client::{Call, segment};
use carrack_service::clock::Moment;
use carrack_service::model::{NewTimer, Overlap, Task, Timer, TimerSchedule, TimerUpdate};
use clap::{Arg, Command};

use super::reach::JSON;
use super::task::{LABEL, is_task_given, new_task, submission_args, told};
use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::cli::moment::parse_until;
use crate::error::CommandError;
use crate::exit;
use crate::managed::identifier::{Identified, identifier};
use crate::managed::service::{self, Service};
use crate::managed::show;
use crate::managed::table::{AlignedRows, CSV, TIMER_CSV};
use crate::output::lines::Lines;
use crate::output::say;
use carrack_core::duration::{parse_duration, parse_timeout};

const TIMER: Positional = Positional::one("timer", "TIMER");
const TIMERS: Positional = Positional::several("timer", "TIMER");

const EVERY: Value<Duration> = Value::new("every", "TIME", parse_timeout, "From one run to the next, like 6h");
const CRON: Value<String> = Value::new(
    "cron",
    "FIELDS",
    |text| Ok(text.to_owned()),
    "Minute, hour, day of the month, month, day of the week, as crontab has them: '0 3 * * 1-5'",
);
const ZONE: Value<String> =
    Value::new("zone", "ZONE", |text| Ok(text.to_owned()), "Time zone of --cron, like Europe/Berlin [default: UTC]");
const START: Value<Moment> =
    Value::new("start", "TIME", parse_until, "The first run: a duration from now, or a time [default: at once]");
const UNTIL: Value<Moment> = Value::new("until", "TIME", parse_until, "No run is due after TIME");
const RUNS: Value<u64> = Value::new("runs", "N", parse_runs, "Runs in all");
const JITTER: Value<Duration> = Value::new(
    "jitter",
    "TIME",
    parse_duration,
    "Let each run come up to TIME after it is due, at a time of its own, so that many timers do not begin at once; 0: none",
);
const NO_LABEL: Switch = Switch::new("no-label", "Take the label away");
const NO_END: Switch = Switch::new("no-end", "Take --until and --runs away");
const OVERLAP: Value<Overlap> = Value::word("overlap", "WHAT", Overlap::ALL, "[default: skip]");

const EXAMPLES: &str = "\
Examples:
  carrack timer create --every 6h @lab:/out/ @archive:/lab/
  carrack timer create --cron '30 2 * * *' --zone Europe/Berlin --label nightly --delete \\
      @lab:/out/ @archive:/lab/
  carrack timer edit TIMER --cron '30 3 * * *'
  carrack timer run TIMER
  carrack timer create --start 2026-12-01T00:00:00Z @lab:/run42 @archive:/";

/// What clap knows of it.
pub fn command() -> Command {
    let create = Command::new("create")
        .about("Make a timer; its identifier is printed. With neither --every nor --cron it runs once")
        .override_usage("carrack timer create [OPTIONS] [--every TIME | --cron FIELDS] SRC... DST")
        .args(schedule_args())
        .args(submission_args());
    let edit = Command::new("edit")
        .about("Change a timer: label, schedule, and with SRC... DST all that it submits")
        .override_usage("carrack timer edit [OPTIONS] TIMER [SRC... DST]")
        .arg(TIMER.arg().required(true).help("The timer; what is not named of it stays as it is"))
        .args(schedule_args())
        .args([NO_LABEL.arg().conflicts_with(LABEL.name), NO_END.arg().conflicts_with_all([UNTIL.name, RUNS.name])])
        .args(submission_args());
    let of = |name: &'static str, about: &'static str| Command::new(name).about(about).arg(TIMERS.arg().required(true));
    Command::new("timer")
        .about("Managed transfers: tasks at set times")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(JSON.arg().global(true))
        .args(service::args())
        .subcommands([
            create,
            Command::new("list")
                .visible_alias("ls")
                .about("List timers, the latest first: when they run, and how the last run ended")
                .arg(CSV.arg().conflicts_with(JSON.name)),
            of("show", "Show timers in full"),
            edit,
            of("run", "Have timers run now, beside their schedule"),
            of("pause", "Have timers submit nothing until they are resumed"),
            of("resume", "Have paused timers go on"),
            of("rm", "Remove timers; their tasks stay"),
        ])
}

fn schedule_args() -> [Arg; 8] {
    [
        EVERY.arg().conflicts_with(CRON.name),
        CRON.arg(),
        ZONE.arg().conflicts_with(EVERY.name),
        START.arg(),
        UNTIL.arg(),
        RUNS.arg(),
        JITTER.arg(),
        OVERLAP.arg(),
    ]
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let Some((action, flags)) = flags.subcommand() else {
        return Err(CommandError::usage("timer needs another word: see carrack timer --help"));
    };
    let json = flags.has(&JSON);
    let mut out = Lines::stdout(json);
    match action {
        "create" => create(&flags, json, &mut out)?,
        "list" => list(&flags, json, &mut out)?,
        "edit" => edit(&flags, json, &mut out)?,
        action => each(action, &flags, json, &mut out)?,
    }
    out.finish()?;
    Ok(exit::DONE)
}

/// A schedule with what the flags say of it.
fn schedule(flags: &Flags, old: TimerSchedule) -> Result<TimerSchedule, CommandError> {
    let (every, cron, zone) = (flags.get(&EVERY)?, flags.get(&CRON)?, flags.get(&ZONE)?);
    if every.is_some_and(|every| every.as_secs() == 0) {
        return Err(CommandError::usage("--every: less than a second"));
    }
    let (every_seconds, cron, zone) = match (every, cron) {
        (Some(every), _) => (Some(every.as_secs()), None, None),
        (None, Some(cron)) => (None, Some(cron), zone.or(old.zone)),
        (None, None) => (old.every_seconds, old.cron, zone.or(old.zone)),
    };
    if zone.is_some() && cron.is_none() {
        return Err(CommandError::usage("--zone is the time zone of --cron"));
    }
    let keeps_end = !flags.has_if_known(&NO_END);
    Ok(TimerSchedule {
        start: flags.get(&START)?.or(old.start),
        every_seconds,
        cron,
        zone,
        until: flags.get(&UNTIL)?.or(old.until).filter(|_| keeps_end),
        runs: flags.get(&RUNS)?.or(old.runs).filter(|_| keeps_end),
        jitter_seconds: match flags.get(&JITTER)? {
            Some(jitter) => Some(jitter.as_secs()).filter(|seconds| *seconds > 0),
            None => old.jitter_seconds,
        },
        overlap: flags.get(&OVERLAP)?.unwrap_or(old.overlap),
    })
}

fn create(flags: &Flags, json: bool, out: &mut Lines) -> Result<(), CommandError> {
    let task = new_task(flags)?;
    let new = NewTimer { label: task.label.clone(), schedule: schedule(flags, TimerSchedule::default())?, task };
    let service = Service::open(flags)?;
    let timer: Timer = service.call(&service.with(Call::post("/timers"), &new)?)?;
    if json {
        out.json(&told::object("timer", &timer));
    } else {
        out.line(timer.id.as_bytes());
        if let Some(next) = timer.next_run {
            say(&format!("the next run is at {}", show::time(next)));
        }
    }
    Ok(())
}

fn edit(flags: &Flags, json: bool, out: &mut Lines) -> Result<(), CommandError> {
    let service = Service::open(flags)?;
    let Some(word) = flags.words(&TIMER).next() else { return Err(CommandError::usage("the timer is missing")) };
    let path = format!("/timers/{}", segment(&identifier(&service, Identified::Timer, word)?));
    let old: Timer = service.get(&path)?;
    let task = if is_task_given(flags)? { Some(new_task(flags)?) } else { None };
    let changed = schedule(flags, old.schedule.clone())?;
    let update = TimerUpdate {
        label: if flags.has(&NO_LABEL) { Some(None) } else { flags.get(&LABEL)?.map(Some) },
        schedule: (changed != old.schedule).then_some(changed),
        task,
    };
    if update.label.is_none() && update.schedule.is_none() && update.task.is_none() {
        return Err(CommandError::usage("nothing of the timer is changed: name what shall be other than it is"));
    }
    // What is written is what was read: somebody else's change in between is not undone.
    let call = Call::patch(path).header("If-Match", format!("\"{}\"", old.version));
    let timer: Timer = service.call(&service.with(call, &update)?)?;
    if json {
        out.json(&told::object("timer", &timer));
    } else {
        show::timer_lines(&timer).iter().for_each(|line| out.line(line.as_bytes()));
    }
    Ok(())
}

fn list(flags: &Flags, json: bool, out: &mut Lines) -> Result<(), CommandError> {
    let (service, csv) = (Service::open(flags)?, flags.has(&CSV));
    let mut table = AlignedRows::new(show::TIMER_HEADINGS);
    if csv {
        out.line(TIMER_CSV.headings().as_bytes());
    }
    let mut shown = 0;
    service.rows::<Timer>("/timers", None, &mut |timer| {
        if json {
            out.json(&told::object("timer", &timer));
            return Ok(());
        }
        shown += 1;
        let last = timer.last_task.as_ref().filter(|_| shown <= OUTCOMES_MOST);
        // A task that is gone, or that is not shown to this user, has no outcome.
        let last = last.and_then(|task| service.get::<Task>(&format!("/tasks/{}", segment(task))).ok());
        if csv {
            let mut row = serde_json::to_value(&timer).unwrap_or_default();
            row["last"] = serde_json::to_value(&last).unwrap_or_default();
            out.line(TIMER_CSV.line(&row).as_bytes());
        } else {
            table.row(show::timer_row(&timer, last.as_ref()));
        }
        out.check()
    })?;
    if !json && !csv && !table.write(out) {
        say("there are no timers");
    }
    Ok(())
}

/// Timers whose last task is asked for: each is a request.
const OUTCOMES_MOST: usize = 1000;

fn each(action: &str, flags: &Flags, json: bool, out: &mut Lines) -> Result<(), CommandError> {
    let service = Service::open(flags)?;
    for word in flags.words(&TIMERS) {
        let id = identifier(&service, Identified::Timer, word)?;
        let path = format!("/timers/{}", segment(&id));
        if action == "rm" {
            service.run(&Call::delete(path))?;
            if json {
                out.json(&told::object("timer-removed", &serde_json::json!({ "id": id })));
            } else {
                say(&format!("the timer {id} is removed"));
            }
            continue;
        }
        let timer: Timer = match action {
            "show" => service.get(&path)?,
            action => service.call(&Call::post(format!("{path}/{action}")))?,
        };
        if json {
            out.json(&told::object("timer", &timer));
        } else {
            show::timer_lines(&timer).iter().for_each(|line| out.line(line.as_bytes()));
        }
    }
    Ok(())
}

fn parse_runs(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|runs| *runs > 0).ok_or_else(|| format!("{text:?} is not a number of runs"))
}
