//! Steering tasks: `pause`, `resume`, `retry`, `cancel`, `clone`, `update`.

use carrack_service::client::Call;
use carrack_service::clock::Moment;
use carrack_service::model::{Task, TaskAct, TaskActed, TaskActs, TaskClone, TaskLeftovers, TaskRetry, TaskUpdate};
use carrack_sys::signal::stop_requested;
use clap::Command;

use super::super::reach::JSON;
use super::submission::{DEADLINE, LABEL, PRIORITY};
use super::{TASKS, path_of, select, tasks, told, wait};
use crate::cli::flag::Switch;
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::managed::service::Service;
use crate::managed::show;
use crate::output::format::counted;
use crate::output::lines::Lines;
use crate::output::{human, say};

const NO_LABEL: Switch = Switch::new("no-label", "Take the label away");
const NO_DEADLINE: Switch = Switch::new("no-deadline", "Take the deadline away");
const RECHECK: Switch =
    Switch::new("recheck", "Read what counts as done at the destination, and compare its digests, too");
const RUN: Switch = Switch::new("run", "Of previews: do what they have planned");
const CLEAN: Switch =
    Switch::new("clean", "Also remove the unfinished files that they have left, even of tasks that have ended");
const DRY_RUN: Switch = Switch::short('n', "dry-run", "Say which tasks they are; do nothing");

/// What clap knows of them.
pub fn commands() -> [Command; 6] {
    let many =
        |name: &'static str, about: &'static str| select::add(Command::new(name).about(about)).arg(DRY_RUN.arg());
    let deadline = || [DEADLINE.arg().conflicts_with(NO_DEADLINE.name), NO_DEADLINE.arg()];
    let clone = Command::new("clone")
        .about("Submit the same once more; the new identifier is printed")
        .arg(TASKS.arg().required(true))
        .args(deadline())
        .arg(RUN.arg());
    let update = Command::new("update")
        .about("Change label, deadline or priority")
        .arg(TASKS.arg().required(true))
        .args([LABEL.arg().conflicts_with(NO_LABEL.name), NO_LABEL.arg()])
        .args(deadline())
        .arg(PRIORITY.arg());
    [
        many("pause", "Pause tasks; a running transfer stops, and can be resumed"),
        many(
            "resume",
            "Have paused tasks go on where they stopped; one that a guard has paused does what its plan shows",
        ),
        many("retry", "Try what failed once more, of tasks that have ended").args(deadline()).arg(RECHECK.arg()),
        many("cancel", "End tasks; what was copied stays").arg(CLEAN.arg()),
        clone,
        update,
    ]
}

/// The deadline that is asked for: left as it is, taken away, or another one.
fn deadline(flags: &Flags) -> Result<Option<Option<Moment>>, CommandError> {
    if flags.has(&NO_DEADLINE) { Ok(Some(None)) } else { Ok(flags.get(&DEADLINE)?.map(Some)) }
}

/// Runs one of those that change where a task stands.
pub fn act(action: &str, flags: &Flags) -> Result<u8, CommandError> {
    let Ok(act) = TaskAct::parse(action) else { return clone(flags) };
    let (deadline, recheck) = match act {
        TaskAct::Retry => (deadline(flags)?, flags.has(&RECHECK)),
        _ => (None, false),
    };
    let (dry_run, clean) = (flags.has(&DRY_RUN), act == TaskAct::Cancel && flags.has(&CLEAN));
    let (service, json) = (Service::open(flags)?, flags.has(&JSON));
    let ids = tasks(&service, flags, &TASKS)?;
    // Whoever names tasks means these: no variable of the environment adds others.
    if let (true, Some(filter)) = (ids.is_empty(), select::filter(flags)?) {
        let (limit, cursor) = (Some(TASKS_AT_ONCE), None);
        return many(flags, TaskActs { act, filter, dry_run, deadline, recheck, limit, cursor }, clean);
    }
    let (mut out, mut code) = (Lines::stdout(json), exit::DONE);
    for id in ids {
        let task: Task = if dry_run {
            service.get(&path_of(&id, ""))?
        } else if let Some(ended) = clean.then(|| ended(&service, &id)).transpose()?.flatten() {
            ended
        } else {
            let call = Call::post(path_of(&id, &format!("/{action}")));
            let call = if act == TaskAct::Retry { service.with(call, &TaskRetry { deadline, recheck })? } else { call };
            service.call(&call)?
        };
        if json {
            out.json(&told::object("task", &task));
        } else {
            say(&format!("{id} {}{}", show::progress_line(&task), pending(&task)));
        }
        if clean && !dry_run {
            code = code.max(remove_leftovers(&service, json, &mut out, &id)?);
        }
    }
    out.finish()?;
    Ok(code)
}

/// A task, if it has ended.
fn ended(service: &Service, id: &str) -> Result<Option<Task>, CommandError> {
    let task: Task = service.get(&path_of(id, ""))?;
    Ok(Some(task).filter(|task| task.state.has_ended()))
}

/// Waits for the end of a task that was cancelled, removes what it has left, and answers with the exit code.
fn remove_leftovers(service: &Service, json: bool, out: &mut Lines, id: &str) -> Result<u8, CommandError> {
    if wait::for_end_of(service, id)?.is_none() {
        return Ok(exit::of_stop(stop_requested()));
    }
    let removed: TaskLeftovers = service.call(&Call::delete(path_of(id, "/leftovers")))?;
    if json {
        out.json(&told::object("task-leftovers-removed", &removed));
    } else {
        show::removed_lines(id, &removed).iter().for_each(|line| say(line));
    }
    out.check()?;
    Ok(if removed.unknown.is_empty() { exit::DONE } else { exit::PARTIAL })
}

/// Tasks of one call: the API's most.
const TASKS_AT_ONCE: usize = 1000;

/// The same to all tasks that were described, page by page.
fn many(flags: &Flags, mut acts: TaskActs, clean: bool) -> Result<u8, CommandError> {
    let (service, json) = (Service::open(flags)?, flags.has(&JSON));
    let mut out = Lines::stdout(json);
    let (mut meant, mut done, mut code) = (0, 0, exit::DONE);
    let mut ended = Vec::new();
    loop {
        let call = service.with(Call::post("/tasks/acts"), &acts)?;
        let acted: TaskActed = service.call(&call)?;
        (meant, done) = (meant + acted.tasks, done + acted.done);
        for task in &acted.items {
            if json {
                out.json(&told::object("task-act", task));
            } else {
                out.line(show::acted_line(task).as_bytes());
            }
        }
        out.check()?;
        let cancelled = acted.items.into_iter().filter(|task| clean && !acts.dry_run && task.why.is_none());
        ended.extend(cancelled.map(|task| task.id));
        acts.cursor = acted.next;
        if acts.cursor.is_none() {
            break;
        }
    }
    for id in ended {
        code = code.max(remove_leftovers(&service, json, &mut out, &id)?);
    }
    out.finish()?;
    match (acts.dry_run, meant) {
        (_, 0) => say("there are no such tasks"),
        (true, _) => say(&format!("{} would be meant; nothing was done", counted(meant, "task", "tasks"))),
        (false, _) => say(&format!("{}: {done} of {}", acts.act.name(), counted(meant, "task", "tasks"))),
    }
    Ok(if acts.dry_run || done == meant { code } else { exit::PARTIAL })
}

/// Runs `clone`.
fn clone(flags: &Flags) -> Result<u8, CommandError> {
    let again = TaskClone { deadline: deadline(flags)?, run: flags.has(&RUN) };
    let (service, json) = (Service::open(flags)?, flags.has(&JSON));
    let mut out = Lines::stdout(json);
    for id in tasks(&service, flags, &TASKS)? {
        let task: Task = service.call(&service.with(Call::post(path_of(&id, "/clone")), &again)?)?;
        if json { out.json(&told::object("task", &task)) } else { out.line(human::safe(&task.id).as_bytes()) }
    }
    out.finish()?;
    Ok(exit::DONE)
}

/// What was asked for and is not so yet.
fn pending(task: &Task) -> &'static str {
    match (task.state.has_ended(), task.cancel_wanted, task.pause_wanted) {
        (false, true, _) => " (is being cancelled)",
        (false, _, true) if task.state != carrack_service::model::TaskState::Paused => " (is being paused)",
        _ => "",
    }
}

/// Runs `update`.
pub fn update(flags: &Flags) -> Result<u8, CommandError> {
    let update = TaskUpdate {
        label: if flags.has(&NO_LABEL) { Some(None) } else { flags.get(&LABEL)?.map(Some) },
        deadline: deadline(flags)?,
        priority: flags.get(&PRIORITY)?,
    };
    if update.label.is_none() && update.deadline.is_none() && update.priority.is_none() {
        return Err(CommandError::usage("update needs --label, --deadline or --priority"));
    }
    let (service, json) = (Service::open(flags)?, flags.has(&JSON));
    let mut out = Lines::stdout(json);
    for id in tasks(&service, flags, &TASKS)? {
        let call = service.with(Call::patch(path_of(&id, "")), &update)?;
        let task: Task = service.call(&call)?;
        told::task(&mut out, json, &task);
    }
    out.finish()?;
    Ok(exit::DONE)
}
