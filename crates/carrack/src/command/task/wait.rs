//! Waiting for tasks: `wait` and `watch`.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_service::client::Events;
use carrack_service::model::{DIFFERENCES, Task, TaskState};
use carrack_sys::signal::stop_requested;
use clap::Command;

use super::super::reach::JSON;
use super::{TASK, TASKS, path_of, task, tasks, told};
use crate::cli::flag::Value;
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::managed::service::Service;
use crate::managed::show;
use crate::output::lines::Lines;
use crate::output::{say, stream};
use carrack_core::duration::parse_timeout;

/// How long the end is waited for.
pub const TIMEOUT: Value<Duration> =
    Value::new("timeout", "TIME", parse_timeout, "Wait no longer than TIME, like 2h; exit code 30 then");

/// Without the stream of events: between the first two looks, and the most between later ones. A task that takes long
/// is looked at less often.
const PATIENCE: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];
/// With the stream of events, a task is looked at when something has happened to it, and once in this time.
const LOOK: Duration = Duration::from_secs(60);
/// Whoever watches sees it move once in this time.
const LOOK_WATCHED: Duration = Duration::from_secs(1);
/// How often a signal is looked for.
const TICK: Duration = Duration::from_millis(100);

/// What clap knows of them.
pub fn commands() -> [Command; 2] {
    let wait = Command::new("wait")
        .about("Wait until tasks have ended; the exit code says how")
        .arg(TASKS.arg().required(true))
        .arg(TIMEOUT.arg())
        .after_help(
            "Exit codes: 0 SUCCEEDED, 1 FAILED, 20 CANCELLED (or Ctrl-C), 23 PARTIAL, 27 PARTIAL of a check that has\n\
             found differences, 30 the timeout, 75 told to end (SIGTERM, SIGHUP): the tasks go on. Of several tasks\n\
             the worst: 1 before 20, 20 before 23, 23 before 27.",
        );
    let watch = Command::new("watch")
        .about("Show how far a task is, and what happens, until it ends; exit as wait does")
        .arg(TASK.arg().required(true));
    [wait, watch]
}

/// Runs `wait`.
pub fn wait(flags: &Flags) -> Result<u8, CommandError> {
    let service = Service::open(flags)?;
    until_ended(&service, &tasks(&service, flags, &TASKS)?, flags.get(&TIMEOUT)?, flags.has(&JSON))
}

/// Waits until all of these tasks have ended, says how, and answers with the exit code.
///
/// # Errors
/// The timeout; what the service says no to.
pub fn until_ended(
    service: &Service,
    ids: &[String],
    timeout: Option<Duration>,
    json: bool,
) -> Result<u8, CommandError> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut out = Lines::stdout(json);
    let mut worst = exit::DONE;
    for id in ids {
        let ended = wait_for(service, id, deadline, LOOK, &mut |_| Ok(()))?;
        let Some(task) = ended else {
            return Ok(exit::of_stop(stop_requested()));
        };
        if json {
            out.json(&told::object("task", &task));
        } else {
            say(&format!("{id} {}", show::progress_line(&task)));
            tell_why(&task);
        }
        worst = worse(worst, code_of(&task));
    }
    out.finish()?;
    Ok(worst)
}

/// Waits until a preview has ended, tells its plan, and answers with the exit code.
///
/// # Errors
/// The timeout; what the service says no to.
pub fn until_planned(service: &Service, id: &str, timeout: Option<Duration>, json: bool) -> Result<u8, CommandError> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let Some(task) = wait_for(service, id, deadline, LOOK, &mut |_| Ok(()))? else {
        return Ok(exit::of_stop(stop_requested()));
    };
    let mut out = Lines::stdout(json);
    if json {
        out.json(&told::object("task", &task));
    } else {
        show::plan_lines(&task).iter().for_each(|line| out.line(line.as_bytes()));
        tell_why(&task);
    }
    out.finish()?;
    Ok(code_of(&task))
}

/// Waits until a task has ended; `None` if a signal came first.
///
/// # Errors
/// What the service says no to.
pub fn for_end_of(service: &Service, id: &str) -> Result<Option<Task>, CommandError> {
    wait_for(service, id, None, LOOK, &mut |_| Ok(()))
}

fn tell_why(task: &Task) {
    if let Some(failure) = &task.failure {
        match is_different(task) {
            true => say(&format!("  {}", failure.why)),
            false => say(&format!("  {}: {}", failure.side, failure.why)),
        }
        failure.hints.iter().for_each(|hint| say(&format!("  hint: {hint}")));
    }
    if task.progress.items_failed > 0 {
        say(&format!("  carrack task items {} --state failed names what failed", task.id));
    }
}

/// The exit code of a task that has ended.
pub fn code_of(task: &Task) -> u8 {
    match task.state {
        TaskState::Partial if is_different(task) => exit::DIFFERENCES,
        TaskState::Failed => exit::OTHER,
        TaskState::Cancelled => exit::INTERRUPTED,
        TaskState::Partial => exit::PARTIAL,
        _ => exit::DONE,
    }
}

/// Whether a check was done and has found differences.
fn is_different(task: &Task) -> bool {
    task.failure.as_ref().is_some_and(|failure| failure.code == DIFFERENCES)
}

fn worse(one: u8, other: u8) -> u8 {
    let order = [exit::OTHER, exit::INTERRUPTED, exit::PARTIAL, exit::DIFFERENCES, exit::DONE];
    order.into_iter().find(|code| [one, other].contains(code)).unwrap_or(one)
}

/// What happens to a task: by the service's stream of events, as long as that comes.
struct News<'a> {
    events: Option<Events<'a>>,
}

impl<'a> News<'a> {
    fn of(service: &'a Service, id: &str) -> Self {
        let mut events = service.events_to_come(id);
        // A service that sends no stream (it may be too many, or an earlier version) is asked again and again instead.
        Self { events: events.begin().is_ok().then_some(events) }
    }

    /// Waits so long, or until something has happened; whether it has.
    fn within(&mut self, patience: Duration) -> bool {
        let Some(events) = &mut self.events else {
            std::thread::sleep(patience);
            return false;
        };
        match events.next_within(patience) {
            Ok(event) => event.is_some(),
            Err(_) => {
                self.events = None;
                true
            }
        }
    }
}

/// Waits until a task has ended; `None` if a signal came first. `seen` gets the task each time that it was looked at:
/// at least once in `every`.
fn wait_for(
    service: &Service,
    id: &str,
    deadline: Option<Instant>,
    every: Duration,
    seen: &mut dyn FnMut(&Task) -> Result<(), CommandError>,
) -> Result<Option<Task>, CommandError> {
    let [mut patience, longest] = PATIENCE;
    let mut news = News::of(service, id);
    loop {
        let task: Task = service.get(&path_of(id, ""))?;
        seen(&task)?;
        if task.state.has_ended() {
            return Ok(Some(task));
        }
        let look = Instant::now() + if news.events.is_some() { every } else { patience.min(every) };
        patience = longest.min(patience * 5 / 4);
        loop {
            let now = Instant::now();
            if stop_requested().is_some() {
                return Ok(None);
            }
            if deadline.is_some_and(|deadline| now >= deadline) {
                let why = format!("{id} has not ended: {}", show::progress_line(&task));
                let failure = Failure::new(ErrorCode::Silence, Side::Command, why);
                return Err(CommandError::from(failure).hint("the task goes on; carrack task watch shows it"));
            }
            if now >= look {
                break;
            }
            let until = deadline.map_or(look, |deadline| deadline.min(look));
            if news.within(TICK.min(until.saturating_duration_since(now))) {
                break;
            }
        }
    }
}

/// Runs `watch`.
pub fn watch(flags: &Flags) -> Result<u8, CommandError> {
    let (service, json) = (Service::open(flags)?, flags.has(&JSON));
    let id = task(&service, flags)?;
    let bar = !json && std::io::stderr().is_terminal();
    let mut out = Lines::stdout(json);
    let mut last = String::new();
    let ended = wait_for(&service, &id, None, LOOK_WATCHED, &mut |task| {
        let line = show::progress_line(task);
        if json {
            out.json(&told::object("task", task));
            out.check()?;
        } else if bar {
            // To the start of the line, and what stood there away.
            stream::say(&format!("\r\x1b[K{line}"));
        } else if line != last {
            say(&line);
        }
        last = line;
        Ok(())
    })?;
    if bar {
        say("");
    }
    out.finish()?;
    let Some(task) = ended else { return Ok(exit::of_stop(stop_requested())) };
    if !json {
        tell_why(&task);
    }
    Ok(code_of(&task))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_exits_by_the_worst_end() {
        let task = show::task_of_tests();
        for (state, code) in
            [(TaskState::Succeeded, 0), (TaskState::Failed, 1), (TaskState::Cancelled, 20), (TaskState::Partial, 23)]
        {
            assert_eq!(code_of(&Task { state, failure: None, ..task.clone() }), code);
        }
        assert_eq!(worse(0, 23), 23);
        assert_eq!((worse(27, 23), worse(0, 27)), (23, 27));
        assert_eq!(worse(23, 20), 20);
        assert_eq!(worse(20, 1), 1);
        assert_eq!(worse(0, 0), 0);
    }
}
