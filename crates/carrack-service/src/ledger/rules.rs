//! What may become of a task: pure, and the same for every ledger. A ledger loads a task, has a rule change it, and
//! stores it, in one transaction.

use carrack_core::failure::{ErrorCode, Side};
use serde_json::json;

use super::rows::{Answer, LedgerError, NewEvent, Submission, Submitted, TaskChange, TaskGuard, UserChange, UserRow};
use crate::clock::Moment;
use crate::model::{Blocked, BlockedCause, Endpoint, EventKind, NewTask, Progress, Task, TaskFailure, TaskState};

/// By how much fences and numbers of events jump where a ledger is restored from a backup: more than a service counts
/// between two backups, so that nothing written since the backup was made passes for new.
pub const RESTORE_STEP: u64 = 1 << 32;

/// Changes a user. Whether their sessions end.
///
/// # Errors
/// [`LedgerError::Conflict`] where the password is another one than the change says.
pub fn change_user(row: &mut UserRow, change: &UserChange) -> Answer<bool> {
    let UserChange { role, account, enabled, password, password_was } = change;
    if password_was.as_ref().is_some_and(|was| *was != row.password) {
        return Err(LedgerError::Conflict("the password was changed meanwhile".to_owned()));
    }
    let before = row.clone();
    row.user.role = role.unwrap_or(row.user.role);
    row.user.account = account.unwrap_or(row.user.account);
    row.user.enabled = enabled.unwrap_or(row.user.enabled);
    if let Some(password) = password {
        row.password.clone_from(password);
    }
    Ok(!row.user.enabled || before.user.role != row.user.role || before.password != row.password)
}

/// A task as it is when it is accepted.
pub fn accepted(submission: &Submission, now: Moment) -> Task {
    let Submission { id, owner, request, estimate, .. } = submission;
    Task {
        id: id.clone(),
        owner: owner.clone(),
        request: request.clone(),
        state: TaskState::Queued,
        pause_wanted: false,
        cancel_wanted: false,
        blocked: None,
        position: None,
        expected_start: None,
        in_flight: Vec::new(),
        fence: 0,
        futile_attempts: 0,
        progress: Progress::default(),
        estimate: estimate.clone(),
        failure: None,
        submitted: now,
        started: None,
        ended: None,
        version: 1,
    }
}

/// The event of an acceptance.
pub fn submitted_event(submission: &Submission) -> NewEvent {
    let Submission { id, owner, submission_id, request, endpoints, estimate } = submission;
    NewEvent {
        kind: EventKind::Submitted,
        owner: owner.clone(),
        task: Some(id.clone()),
        subject: None,
        text: "accepted".to_owned(),
        detail: json!({
            "kind": request.kind.name(),
            "pairs": request.pairs.len(),
            "endpoints": endpoints,
            "submission_id": submission_id,
            "timer": request.timer,
            "estimate": estimate,
        }),
    }
}

/// Answers a submission whose identifier came before: with its task, if it asked for the same.
///
/// # Errors
/// [`LedgerError::Conflict`] where it asked for something else.
pub fn repeated(task: Task, submitted: &NewTask, submission: &Submission) -> Answer<Submitted> {
    if *submitted != submission.request {
        let id = submission.submission_id.as_deref().unwrap_or_default();
        let why = format!("submission {id} asked for something else before: it is task {}", task.id);
        return Err(LedgerError::Conflict(why));
    }
    Ok(Submitted { task, duplicate: true })
}

/// A label as it is searched: in whatever case.
pub fn folded(label: &str) -> String {
    label.to_lowercase()
}

/// Whether a task's label, identifier or a path of it contains a text, in whatever case: of labels any, of paths that
/// of ASCII.
pub fn mentions(task: &Task, text: &str) -> bool {
    let text_of_paths = text.to_ascii_lowercase();
    let is_in = |path: &String| path.to_ascii_lowercase().contains(&text_of_paths);
    let mut paths =
        task.request.pairs.iter().flat_map(|pair| [Some(&pair.source), pair.destination.as_ref()]).flatten();
    task.request.label.as_deref().is_some_and(|label| folded(label).contains(&folded(text)))
        || task.id.contains(&text_of_paths)
        || paths.any(is_in)
}

/// Where the first pair of a task comes from; empty: it has none.
pub fn first_source(task: &Task) -> &str {
    task.request.pairs.first().map_or("", |pair| &pair.source)
}

/// Where the first pair of a task goes; empty: nowhere.
pub fn first_destination(task: &Task) -> &str {
    task.request.pairs.first().and_then(|pair| pair.destination.as_deref()).unwrap_or_default()
}

/// Whether a location is at an endpoint.
pub fn is_at(location: &str, endpoint: &str) -> bool {
    location.strip_prefix('@').and_then(|rest| rest.strip_prefix(endpoint)).is_some_and(|rest| rest.starts_with(':'))
}

/// Whether a task failed with this error code, or waits for this cause.
pub fn is_because(task: &Task, cause: &str) -> bool {
    task.failure.as_ref().is_some_and(|failure| failure.code == cause)
        || task.blocked.as_ref().is_some_and(|blocked| blocked.cause.name() == cause)
}

/// The minute of a moment: so exactly is it kept when a token was shown.
pub fn minute(now: Moment) -> Moment {
    const MINUTE: i64 = 60_000_000;
    Moment(now.0.div_euclid(MINUTE) * MINUTE)
}

/// Begins an attempt.
///
/// # Errors
/// [`LedgerError::Conflict`] where none may begin.
pub fn claim(task: &mut Task, now: Moment) -> Answer<()> {
    let refusal = match task {
        Task { state, .. } if *state != TaskState::Queued => format!("it is {}", state.name()),
        Task { cancel_wanted: true, .. } => "its end is wanted".to_owned(),
        Task { pause_wanted: true, .. } => "a pause is wanted".to_owned(),
        Task { blocked: Some(blocked), .. } if needs_confirmation(blocked) => blocked.why.clone(),
        _ => {
            task.state = TaskState::Active;
            task.blocked = None;
            task.fence += 1;
            task.started.get_or_insert(now);
            task.version += 1;
            return Ok(());
        }
    };
    Err(LedgerError::Conflict(format!("task {} cannot begin: {refusal}", task.id)))
}

/// Whether an endpoint may change as it is to, while these open tasks use it: they go on where they began.
///
/// # Errors
/// [`LedgerError::Conflict`] that names one of them.
pub fn endpoint_may_change(before: &Endpoint, after: &Endpoint, open: &[String]) -> Answer<()> {
    let Some(first) = open.first().filter(|_| before.location != after.location) else { return Ok(()) };
    let others = match open.len() - 1 {
        0 => String::new(),
        1 => ", and by another one".to_owned(),
        others => format!(", and by {others} others"),
    };
    let why = format!("endpoint {} is used by task {first}, which has not ended{others}", before.name);
    Err(LedgerError::Conflict(why))
}

/// Whether an endpoint that is changed is another one than before, as far as its health goes: it is elsewhere, shows
/// another token, or allows something else.
pub fn endpoint_begins_anew(before: (&Endpoint, &Option<Vec<u8>>), after: (&Endpoint, &Option<Vec<u8>>)) -> bool {
    before.0.location != after.0.location
        || before.1 != after.1
        || before.0.read_only != after.0.read_only
        || before.0.ownership != after.0.ownership
}

/// Changes a task where the guard holds.
///
/// # Errors
/// [`LedgerError::Fenced`] where it comes from an older attempt, [`LedgerError::Conflict`] where the task's state or
/// version does not allow it.
pub fn change(task: &mut Task, guard: &TaskGuard, change: &TaskChange, now: Moment) -> Answer<()> {
    guard_holds(task, guard)?;
    allowed(task, change)?;
    let TaskChange {
        state,
        pause_wanted,
        cancel_wanted,
        blocked,
        progress,
        estimate,
        failure,
        futile_attempts,
        label,
        deadline,
        priority,
        // They are no part of the task.
        visits: _,
    } = change.clone();
    if let Some(state) = state
        && state != task.state
    {
        task.state = state;
        // What must be confirmed stays so while the task is paused.
        task.blocked = task.blocked.take().filter(|blocked| needs_confirmation(blocked) && !state.has_ended());
        if state.has_ended() {
            // The clock may have been set back meanwhile.
            task.ended = Some(now.max(task.submitted).max(task.started.unwrap_or_default()));
        }
    }
    set(&mut task.pause_wanted, pause_wanted);
    set(&mut task.cancel_wanted, cancel_wanted);
    set(&mut task.blocked, blocked);
    set(&mut task.progress, progress);
    set(&mut task.estimate, estimate.map(Some));
    if task.state.has_ended() {
        note_what_it_took(task);
    }
    set(&mut task.failure, failure);
    set(&mut task.futile_attempts, futile_attempts);
    set(&mut task.request.label, label);
    set(&mut task.request.deadline, deadline);
    set(&mut task.request.priority, priority.map(Some));
    task.version += 1;
    Ok(())
}

/// Has a task that ended wait for another attempt, with another deadline where one is given.
///
/// # Errors
/// [`LedgerError::Conflict`] where it has not ended, or has succeeded, and where its deadline has passed.
pub fn reopen(task: &mut Task, now: Moment, deadline: Option<Option<Moment>>) -> Answer<()> {
    if !matches!(task.state, TaskState::Partial | TaskState::Failed | TaskState::Cancelled) {
        let why = format!(
            "task {} is {}: only one that is PARTIAL, FAILED or CANCELLED is tried again",
            task.id,
            task.state.name()
        );
        return Err(LedgerError::Conflict(why));
    }
    let deadline = deadline.unwrap_or(task.request.deadline);
    if let Some(passed) = deadline.filter(|deadline| *deadline <= now) {
        let why = format!("the deadline of task {} has passed ({passed}): it takes another one", task.id);
        return Err(LedgerError::Conflict(why));
    }
    task.request.deadline = deadline;
    task.state = TaskState::Queued;
    task.pause_wanted = false;
    task.cancel_wanted = false;
    task.blocked = None;
    task.failure = None;
    task.futile_attempts = 0;
    task.ended = None;
    if let Some(estimate) = &mut task.estimate {
        estimate.took_seconds = None;
    }
    task.version += 1;
    Ok(())
}

/// Puts what a task took beside what was expected of it.
fn note_what_it_took(task: &mut Task) {
    let took = task.started.zip(task.ended).map(|(started, ended)| ended.since(started).as_secs_f64());
    if let Some(estimate) = &mut task.estimate {
        estimate.took_seconds = took;
    }
}

/// Ends a task whose row cannot be read.
pub fn fail_unreadable(task: &mut Task, why: &str, now: Moment) {
    task.state = TaskState::Failed;
    task.blocked = None;
    task.failure = Some(unreadable(why));
    task.ended = Some(now);
    task.version += 1;
}

/// Why a task whose row cannot be read failed.
pub fn unreadable(why: &str) -> TaskFailure {
    TaskFailure {
        code: ErrorCode::Internal.name().to_owned(),
        side: Side::Command.name().to_owned(),
        endpoint: None,
        why: format!("its row in the ledger cannot be read: {why}"),
        retryable: false,
        hints: vec!["submit it again".to_owned()],
    }
}

/// The event of [`fail_unreadable`].
pub fn unreadable_event(task: &Task, why: &str) -> NewEvent {
    NewEvent {
        kind: EventKind::Ended,
        owner: task.owner.clone(),
        task: Some(task.id.clone()),
        subject: None,
        text: "failed: its row in the ledger cannot be read".to_owned(),
        detail: json!({ "state": TaskState::Failed.name(), "why": why }),
    }
}

/// The event of a timer that is paused because its row cannot be read.
pub fn timer_paused_event(timer: &str, owner: String, why: &str) -> NewEvent {
    NewEvent {
        kind: EventKind::TimerSkipped,
        owner,
        task: None,
        subject: Some(timer.to_owned()),
        text: "paused: its row in the ledger cannot be read".to_owned(),
        detail: json!({ "why": why }),
    }
}

/// What a restore from a backup makes of a task that is open: no attempt of it runs any more; what moves or deletes
/// waits until somebody confirms it, because it may have been done since.
pub fn restored(task: &mut Task, deletes: bool, now: Moment) {
    task.fence += RESTORE_STEP;
    task.version += RESTORE_STEP;
    if task.state.has_ended() {
        return;
    }
    if task.state == TaskState::Active {
        task.state = if task.pause_wanted { TaskState::Paused } else { TaskState::Queued };
        task.blocked = None;
    }
    if deletes && task.state != TaskState::Cancelling {
        let why = "the ledger was restored from a backup; the task may have moved or deleted files since";
        task.blocked = Some(Blocked {
            cause: BlockedCause::Confirm,
            why: why.to_owned(),
            since: now,
            next_try: None,
            hint: Some("look at its files, then resume or cancel it".to_owned()),
        });
    }
}

/// The event of [`restored`].
pub fn restored_event(task: &Task) -> NewEvent {
    NewEvent {
        kind: EventKind::Queued,
        owner: task.owner.clone(),
        task: Some(task.id.clone()),
        subject: None,
        text: "the ledger was restored from a backup".to_owned(),
        detail: json!({ "state": task.state.name(), "fence": task.fence, "blocked": task.blocked }),
    }
}

/// The event of a timer that a restore pauses.
pub fn timer_restored_event(timer: &str, owner: String) -> NewEvent {
    NewEvent {
        kind: EventKind::TimerSkipped,
        owner,
        task: None,
        subject: Some(timer.to_owned()),
        text: "paused: the ledger was restored from a backup, and its tasks move or delete".to_owned(),
        detail: json!({}),
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn needs_confirmation(blocked: &Blocked) -> bool {
    blocked.cause == BlockedCause::Confirm
}

fn guard_holds(task: &Task, guard: &TaskGuard) -> Answer<()> {
    match guard.fence {
        Some(fence) if fence < task.fence => return Err(LedgerError::Fenced),
        Some(fence) if fence > task.fence => {
            return Err(LedgerError::Conflict(format!("task {} has had no attempt {fence} yet", task.id)));
        }
        _ => {}
    }
    if guard.version.is_some_and(|version| version != task.version) {
        return Err(LedgerError::Conflict(format!("task {} has changed meanwhile", task.id)));
    }
    if !guard.states.is_empty() && !guard.states.contains(&task.state) {
        return Err(LedgerError::Conflict(format!("task {} is {}", task.id, task.state.name())));
    }
    Ok(())
}

/// States that have ended stay; only a claim begins an attempt; what must be confirmed waits for that and nothing else.
fn allowed(task: &Task, change: &TaskChange) -> Answer<()> {
    let conflict = |why: &str| Err(LedgerError::Conflict(format!("task {} {why}", task.id)));
    if task.state.has_ended() {
        // What its owner calls it is no part of what became of it.
        let only_label = TaskChange { label: change.label.clone(), ..TaskChange::default() } == *change;
        return if only_label { Ok(()) } else { conflict(&format!("has ended: it is {}", task.state.name())) };
    }
    if change.state == Some(TaskState::Active) && task.state != TaskState::Active {
        return conflict("begins an attempt only where it is claimed");
    }
    let unconfirmed = task.blocked.as_ref().is_some_and(needs_confirmation);
    if unconfirmed && matches!(&change.blocked, Some(Some(other)) if !needs_confirmation(other)) {
        return conflict("waits until somebody confirms it");
    }
    Ok(())
}
