//! `carrack timer`: tasks that are submitted again and again.

use std::time::Duration;

use carrack_service::client::{Call, segment};
use carrack_service::clock::Moment;
use carrack_service::model::{NewTimer, Overlap, Timer, TimerSchedule};
use clap::Command;

use super::reach::JSON;
use super::task::{new_task, submission_args, told};
use crate::cli::flag::{Positional, Value};
use crate::cli::flags::Flags;
use crate::cli::moment::parse_until;
use crate::error::CommandError;
use crate::exit;
use crate::managed::identifier::{Identified, identifier};
use crate::managed::service::{self, Service};
use crate::managed::show;
use crate::managed::table::AlignedRows;
use crate::output::lines::Lines;
use crate::output::say;
use carrack_core::duration::parse_timeout;

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
const OVERLAP: Value<Overlap> = Value::word("overlap", "WHAT", Overlap::ALL, "[default: skip]");

const EXAMPLES: &str = "\
Examples:
  carrack timer create --every 6h @lab:/out/ @archive:/lab/
  carrack timer create --cron '30 2 * * *' --zone Europe/Berlin --label nightly --delete \\
      @lab:/out/ @archive:/lab/
  carrack timer create --start 2026-12-01T00:00:00Z @lab:/run42 @archive:/";

/// What clap knows of it.
pub fn command() -> Command {
    let create = Command::new("create")
        .about("Make a timer; its identifier is printed. With neither --every nor --cron it runs once")
        .override_usage("carrack timer create [OPTIONS] [--every TIME | --cron FIELDS] SRC... DST")
        .args([
            EVERY.arg().conflicts_with(CRON.name),
            CRON.arg(),
            ZONE.arg().requires(CRON.name),
            START.arg(),
            UNTIL.arg(),
            RUNS.arg(),
            OVERLAP.arg(),
        ])
        .args(submission_args());
    let of = |name: &'static str, about: &'static str| Command::new(name).about(about).arg(TIMERS.arg().required(true));
    Command::new("timer")
        .about("Managed transfers: tasks at set times")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args([JSON.arg().global(true), service::arg()])
        .subcommands([
            create,
            Command::new("list").visible_alias("ls").about("List timers, the latest first"),
            of("show", "Show timers in full"),
            of("pause", "Have timers submit nothing until they are resumed"),
            of("resume", "Have paused timers go on"),
            of("rm", "Remove timers; their tasks stay"),
        ])
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
        action => each(action, &flags, json, &mut out)?,
    }
    out.finish()?;
    Ok(exit::DONE)
}

fn create(flags: &Flags, json: bool, out: &mut Lines) -> Result<(), CommandError> {
    let every = flags.get(&EVERY)?;
    if every.is_some_and(|every| every.as_secs() == 0) {
        return Err(CommandError::usage("--every: less than a second"));
    }
    let task = new_task(flags)?;
    let new = NewTimer {
        label: task.label.clone(),
        schedule: TimerSchedule {
            start: flags.get(&START)?,
            every_seconds: every.map(|every| every.as_secs()),
            cron: flags.get(&CRON)?,
            zone: flags.get(&ZONE)?,
            until: flags.get(&UNTIL)?,
            runs: flags.get(&RUNS)?,
            overlap: flags.get(&OVERLAP)?.unwrap_or_default(),
        },
        task,
    };
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

fn list(flags: &Flags, json: bool, out: &mut Lines) -> Result<(), CommandError> {
    let service = Service::open(flags)?;
    let mut table = AlignedRows::new(show::TIMER_HEADINGS);
    service.rows::<Timer>("/timers", None, &mut |timer| {
        if json {
            out.json(&told::object("timer", &timer))
        } else {
            table.row(show::timer_row(&timer))
        }
        Ok(())
    })?;
    if !json && !table.write(out) {
        say("there are no timers");
    }
    Ok(())
}

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
