//! Which tasks are meant, by what they are and not by their identifiers: flags of `list` and of what steers tasks.

use carrack_core::words::parse_among;
use carrack_service::clock::Moment;
use carrack_service::model::{TaskSelection, TaskState};
use clap::{ArgAction, ArgGroup, Command};

use super::TASKS;
use crate::cli::flag::{Switch, Value};
use crate::cli::flags::Flags;
use crate::cli::moment::parse_since;
use crate::error::CommandError;

const ALL: Switch = Switch::new("all", "All of your tasks that this can be done to");
pub const STATE: Value<TaskState> =
    Value::new("state", "LIST", parse_state, "Only tasks in these states, separated by commas, like ACTIVE,QUEUED");
pub const LABEL: Value<String> = Value::new("label", "TEXT", text, "Only tasks whose label contains TEXT");
pub const ENDPOINT: Value<String> = Value::new("endpoint", "NAME", text, "Only tasks that use this endpoint");
pub const USER: Value<String> =
    Value::new("user", "USER", text, "Only tasks of this user, or of all with * (for administrators)");
pub const TIMER: Value<String> = Value::new("timer", "TIMER", text, "Only tasks of this timer");
pub const CAUSE: Value<String> =
    Value::new("cause", "CODE", text, "Only tasks that failed with this error code, like no-space");
pub const SINCE: Value<Moment> =
    Value::new("since", "TIME", parse_since, "Only tasks submitted later: 2d (ago), or 2026-11-23T08:00:00Z");
pub const BEFORE: Value<Moment> = Value::new("before", "TIME", parse_since, "Only tasks submitted before");

/// The group of the flags, of which one stands in place of identifiers.
const SELECTION: &str = "selection";

/// Has a command take tasks by their identifiers, or by what they are.
pub fn add(command: Command) -> Command {
    let names = [STATE.name, LABEL.name, ENDPOINT.name, USER.name, TIMER.name, CAUSE.name, SINCE.name, BEFORE.name];
    command
        .arg(TASKS.arg().required_unless_present_any([ALL.name, SELECTION]).conflicts_with_all([ALL.name, SELECTION]))
        .arg(ALL.arg())
        .arg(STATE.arg().action(ArgAction::Append))
        .args([LABEL.arg(), ENDPOINT.arg(), USER.arg(), TIMER.arg(), CAUSE.arg(), SINCE.arg(), BEFORE.arg()])
        .group(ArgGroup::new(SELECTION).args(names).multiple(true))
}

/// What was described; `None`: tasks are named.
pub fn filter(flags: &Flags) -> Result<Option<TaskSelection>, CommandError> {
    let all = flags.has(&ALL);
    let filter = TaskSelection {
        all: false,
        state: flags.all(&STATE)?,
        label: flags.get(&LABEL)?,
        endpoint: flags.get(&ENDPOINT)?,
        source: None,
        destination: None,
        owner: flags.get(&USER)?,
        timer: flags.get(&TIMER)?,
        cause: flags.get(&CAUSE)?,
        since: flags.get(&SINCE)?,
        before: flags.get(&BEFORE)?,
        q: None,
    };
    let is_any = filter != TaskSelection::default();
    Ok((all || is_any).then_some(TaskSelection { all, ..filter }))
}

#[expect(clippy::unnecessary_wraps, reason = "a parser of a flag may refuse")]
fn text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

fn parse_state(text: &str) -> Result<TaskState, String> {
    parse_among(&text.to_ascii_uppercase(), TaskState::ALL)
}
