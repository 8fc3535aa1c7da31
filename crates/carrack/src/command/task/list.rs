//! What is asked of a service about tasks: `list`, `show`, `items`, `events`.

use std::io::{BufRead, BufReader};

use carrack_service::client::with_query;
use carrack_service::model::{Event, ITEM_CSV_HEADINGS, ItemState, Task, TaskItem, TaskLeftovers, TaskState};
use carrack_sys::signal::stop_requested;
use clap::{ArgAction, Command};

use super::super::reach::JSON;
use super::select::{BEFORE, CAUSE, ENDPOINT, LABEL, SINCE, STATE, TIMER, USER};
use super::{TASK, TASKS, path_of, task, tasks, told};
use crate::cli::flag::{Switch, Value};
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::managed::service::Service;
use crate::managed::show;
use crate::managed::table::{AlignedRows, CSV, TASK_CSV};
use crate::output::lines::Lines;
use crate::output::say;

const LIMIT: Value<usize> = Value::new("limit", "N", parse_limit, "At most so many [default: 50]");
const ALL: Switch = Switch::new("all", "All of them");

const ITEM_STATE: Value<ItemState> =
    Value::word("state", "STATE", ItemState::ALL, "Only items in this state [default: all]");
const PAIR: Value<u64> = Value::new("pair", "N", parse_event, "Of which pair of the task, from 0 [default: 0]");
const SINCE_EVENT: Value<u64> =
    Value::new("since", "N", parse_event, "Only events after the one with this number [default: 0]");
const FOLLOW: Switch = Switch::short('f', "follow", "Go on with the events to come, until Ctrl-C");

/// What clap knows of them.
pub fn commands() -> [Command; 5] {
    let list = Command::new("list")
        .visible_alias("ls")
        .about("List tasks, the latest first")
        .arg(STATE.arg().action(ArgAction::Append))
        .args([LABEL.arg(), ENDPOINT.arg(), USER.arg().alias("owner"), TIMER.arg(), CAUSE.arg(), SINCE.arg()])
        .arg(BEFORE.arg())
        .args([LIMIT.arg(), ALL.arg().conflicts_with(LIMIT.name), CSV.arg().conflicts_with(JSON.name)]);
    let show = Command::new("show").about("Show tasks in full").arg(TASKS.arg().required(true));
    let items = Command::new("items")
        .about("List what became of the items of a task, of any number")
        .arg(TASK.arg().required(true))
        .args([ITEM_STATE.arg(), CSV.arg().conflicts_with(JSON.name)]);
    let events = Command::new("events")
        .about("List what happened to a task, or to all of yours")
        .arg(TASK.arg())
        .args([SINCE_EVENT.arg(), FOLLOW.arg()]);
    let receipt = Command::new("receipt")
        .about("Print the signed receipt of a task, for `carrack verify`")
        .after_help("Whoever verifies it has to believe the service's key: carrack receipt trust NAME --of-service")
        .arg(TASK.arg().required(true))
        .arg(PAIR.arg());
    [list, show, items, events, receipt]
}

/// Runs `list`.
pub fn list(flags: &Flags) -> Result<u8, CommandError> {
    let (json, csv) = (flags.has(&JSON), flags.has(&CSV));
    let mut query: Vec<(&str, String)> = Vec::new();
    let states = flags.all(&STATE)?;
    if !states.is_empty() {
        query.push(("state", states.iter().map(|state| state.name()).collect::<Vec<_>>().join(",")));
    }
    let texts = [(&LABEL, "label"), (&ENDPOINT, "endpoint"), (&TIMER, "timer"), (&CAUSE, "cause")];
    for (flag, name) in texts {
        query.extend(flags.get(flag)?.map(|text| (name, text)));
    }
    // Those of all users are listed where nobody is named.
    query.extend(flags.get(&USER)?.filter(|user| user != "*").map(|user| ("owner", user)));
    for (flag, name) in [(&SINCE, "since"), (&BEFORE, "before")] {
        query.extend(flags.get(flag)?.map(|time| (name, time.to_string())));
    }
    let most = if flags.has(&ALL) { None } else { Some(flags.get(&LIMIT)?.unwrap_or(50)) };
    let service = Service::open(flags)?;
    let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, &value[..])).collect();
    let mut out = Lines::stdout(json);
    let mut table = AlignedRows::new(show::TASK_HEADINGS);
    if csv {
        out.line(TASK_CSV.headings().as_bytes());
    }
    let mut count = 0;
    // One more than is shown tells that there are more.
    service.rows::<Task>(&with_query("/tasks", &query), most.map(|most| most + 1), &mut |task| {
        count += 1;
        if most.is_some_and(|most| count > most) {
            return Ok(());
        }
        if json {
            out.json(&told::object("task", &task))
        } else if csv {
            out.line(TASK_CSV.line(&task).as_bytes());
        } else {
            table.row(show::task_row(&task))
        }
        Ok(())
    })?;
    if !json {
        let any = csv || table.write(&mut out);
        match most {
            _ if !any => say("there are no such tasks"),
            Some(most) if count > most => say("note: there are more; --all lists them, --limit N some of them"),
            _ => {}
        }
    }
    out.finish()?;
    Ok(exit::DONE)
}

/// Runs `show`.
pub fn show(flags: &Flags) -> Result<u8, CommandError> {
    let (service, json) = (Service::open(flags)?, flags.has(&JSON));
    let mut out = Lines::stdout(json);
    for id in tasks(&service, flags, &TASKS)? {
        let task: Task = service.get(&path_of(&id, ""))?;
        told::task(&mut out, json, &task);
        if task.state.has_ended() && task.state != TaskState::Succeeded {
            leftovers(&service, json, &mut out, &id);
        }
        out.check()?;
    }
    out.finish()?;
    Ok(exit::DONE)
}

/// Tells what a task has left unfinished. Where the service cannot say that, it says why, and the task is shown all
/// the same.
fn leftovers(service: &Service, json: bool, out: &mut Lines, id: &str) {
    let left: Result<TaskLeftovers, _> = service.get(&path_of(id, "/leftovers"));
    match left {
        Ok(left) if json => out.json(&told::object("task-leftovers", &left)),
        Ok(left) => show::leftover_lines(id, &left).iter().for_each(|line| out.line(line.as_bytes())),
        Err(why) => say(&format!("what task {id} has left unfinished is not known: {why}")),
    }
}

/// Runs `items`.
pub fn items(flags: &Flags) -> Result<u8, CommandError> {
    let (service, json, csv) = (Service::open(flags)?, flags.has(&JSON), flags.has(&CSV));
    let state = flags.get(&ITEM_STATE)?;
    let path = path_of(&task(&service, flags)?, "/items");
    let path = match state {
        Some(state) => with_query(&path, &[("state", state.name())]),
        None => path,
    };
    let mut out = Lines::stdout(false);
    if csv {
        out.line(ITEM_CSV_HEADINGS.as_bytes());
    }
    let stream = service.stream(&path, "application/x-ndjson")?;
    for line in BufReader::new(stream).lines() {
        let broken = |why: String| service.error(carrack_service::client::ClientError::Broken(why));
        let line = line.map_err(|error| broken(error.to_string()))?;
        if line.is_empty() {
            continue;
        }
        let item: TaskItem = serde_json::from_str(&line)
            .map_err(|error| broken(format!("an item of the list cannot be read: {error}")))?;
        if json {
            out.json(&told::object("task-item", &item));
        } else if csv {
            out.line(item.csv().as_bytes());
        } else {
            out.line(show::item_line(&item).as_bytes());
        }
        out.check()?;
    }
    out.finish()?;
    Ok(exit::DONE)
}

/// Runs `receipt`.
pub fn receipt(flags: &Flags) -> Result<u8, CommandError> {
    let service = Service::open(flags)?;
    let pair = flags.get(&PAIR)?.unwrap_or(0).to_string();
    let path = with_query(&path_of(&task(&service, flags)?, "/receipt"), &[("pair", &pair)]);
    let mut out = Lines::stdout(false);
    for line in BufReader::new(service.stream(&path, "application/x-ndjson")?).lines() {
        let broken = |why: String| service.error(carrack_service::client::ClientError::Broken(why));
        out.line(line.map_err(|error| broken(error.to_string()))?.as_bytes());
        out.check()?;
    }
    out.finish()?;
    Ok(exit::DONE)
}

/// Runs `events`.
pub fn events(flags: &Flags) -> Result<u8, CommandError> {
    let (service, json) = (Service::open(flags)?, flags.has(&JSON));
    let since = flags.get(&SINCE_EVENT)?.unwrap_or(0);
    let of = tasks(&service, flags, &TASK)?.pop();
    let mut out = Lines::stdout(json || flags.has(&FOLLOW));
    if flags.has(&FOLLOW) {
        let mut events = service.events(since, of.as_deref());
        while stop_requested().is_none() {
            // Short, so that Ctrl-C ends it.
            let next = events.next_within(std::time::Duration::from_millis(300));
            if let Some(event) = next.map_err(|error| service.error(error))? {
                told::event(&mut out, json, &event);
                out.check()?;
            }
        }
        out.finish()?;
        return Ok(exit::of_stop(stop_requested()));
    }
    let since = since.to_string();
    let mut path = with_query("/events", &[("since", &since)]);
    if let Some(of) = &of {
        path = with_query(&path, &[("task", of)]);
    }
    service.rows::<Event>(&path, None, &mut |event| {
        told::event(&mut out, json, &event);
        out.check()
    })?;
    out.finish()?;
    Ok(exit::DONE)
}

fn parse_limit(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| format!("{text:?} is not a number from 1 on"))
}

fn parse_event(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number of an event"))
}
