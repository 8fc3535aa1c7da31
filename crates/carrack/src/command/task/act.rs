//! Steering tasks: `pause`, `resume`, `retry`, `cancel`, `clone`, `update`.

use carrack_service::client::{Call, with_query};
use carrack_service::model::{Task, TaskUpdate};
use clap::Command;

use super::super::reach::JSON;
use super::submission::{DEADLINE, LABEL, PRIORITY};
use super::{TASKS, path_of, tasks, told};
use crate::cli::flag::Switch;
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::managed::service::Service;
use crate::managed::show;
use crate::output::lines::Lines;
use crate::output::{human, say};

const ALL: Switch = Switch::new("all", "All of your tasks that have not ended");
const NO_LABEL: Switch = Switch::new("no-label", "Take the label away");
const NO_DEADLINE: Switch = Switch::new("no-deadline", "Take the deadline away");

/// What clap knows of them.
pub fn commands() -> [Command; 6] {
    let of = |name: &'static str, about: &'static str| Command::new(name).about(about).arg(TASKS.arg().required(true));
    let cancel = Command::new("cancel")
        .about("End tasks; what was copied stays")
        .arg(TASKS.arg().required_unless_present(ALL.name).conflicts_with(ALL.name))
        .arg(ALL.arg());
    let update = of("update", "Change label, deadline or priority")
        .args([LABEL.arg().conflicts_with(NO_LABEL.name), NO_LABEL.arg()])
        .args([DEADLINE.arg().conflicts_with(NO_DEADLINE.name), NO_DEADLINE.arg(), PRIORITY.arg()]);
    [
        of("pause", "Have tasks wait; a transfer under way ends where it is"),
        of("resume", "Have paused tasks go on where they stopped"),
        of("retry", "Try what failed once more, of tasks that have ended"),
        cancel,
        of("clone", "Submit the same once more; the new identifier is printed"),
        update,
    ]
}

/// Runs one of those that need nothing but the task.
pub fn act(action: &str, flags: &Flags) -> Result<u8, CommandError> {
    let (service, json) = (Service::open(flags)?, flags.has(&JSON));
    let ids = if action == "cancel" && flags.has(&ALL) { open_tasks(&service)? } else { tasks(flags, &TASKS)? };
    let mut out = Lines::stdout(json);
    if ids.is_empty() && !json {
        say("there are no tasks that have not ended");
    }
    for id in ids {
        let call = Call::post(path_of(&id, &format!("/{action}")));
        let task: Task = service.call(&call)?;
        if json {
            out.json(&told::object("task", &task));
        } else if action == "clone" {
            out.line(human::safe(&task.id).as_bytes());
        } else {
            say(&format!("{id} {}{}", show::progress_line(&task), pending(&task)));
        }
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

/// The caller's tasks that have not ended.
fn open_tasks(service: &Service) -> Result<Vec<String>, CommandError> {
    let who: carrack_service::model::Whoami = service.get("/whoami")?;
    let open = "QUEUED,STAGING,ACTIVE,PAUSED";
    let mut ids = Vec::new();
    let path = with_query("/tasks", &[("state", open), ("owner", &who.user)]);
    service.rows::<Task>(&path, None, &mut |task| {
        ids.push(task.id);
        Ok(())
    })?;
    Ok(ids)
}

/// Runs `update`.
pub fn update(flags: &Flags) -> Result<u8, CommandError> {
    let update = TaskUpdate {
        label: if flags.has(&NO_LABEL) { Some(None) } else { flags.get(&LABEL)?.map(Some) },
        deadline: if flags.has(&NO_DEADLINE) { Some(None) } else { flags.get(&DEADLINE)?.map(Some) },
        priority: flags.get(&PRIORITY)?,
    };
    if update.label.is_none() && update.deadline.is_none() && update.priority.is_none() {
        return Err(CommandError::usage("update needs --label, --deadline or --priority"));
    }
    let (service, json) = (Service::open(flags)?, flags.has(&JSON));
    let mut out = Lines::stdout(json);
    for id in tasks(flags, &TASKS)? {
        let call = service.with(Call::patch(path_of(&id, "")), &update)?;
        let task: Task = service.call(&call)?;
        told::task(&mut out, json, &task);
    }
    out.finish()?;
    Ok(exit::DONE)
}
