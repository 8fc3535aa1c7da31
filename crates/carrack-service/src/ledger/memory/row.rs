//! A task in memory: which filters it passes, and before which other ones it stands.

use std::collections::BTreeMap;

use crate::clock::Moment;
use crate::ledger::{TaskFilter, rules};
use crate::model::{EndVisit, NewTask, Task, TaskSort, TaskState};

/// A task with what it was submitted with.
pub struct TaskRow {
    pub task: Task,
    pub submitted: NewTask,
    pub submission_id: Option<String>,
    pub endpoints: Vec<String>,
    /// Where it was at work, and when that was told last.
    pub visited: Option<(Moment, Vec<EndVisit>)>,
}

impl TaskRow {
    /// Whether it is one of those that are asked for.
    pub fn passes(&self, filter: &TaskFilter) -> bool {
        let Self { task, endpoints, .. } = self;
        let label = |part: &String| {
            task.request.label.as_deref().is_some_and(|label| rules::folded(label).contains(&rules::folded(part)))
        };
        filter.owner.as_ref().is_none_or(|owner| *owner == task.owner)
            && (filter.states.is_empty() || filter.states.contains(&task.state))
            && filter.label.as_ref().is_none_or(label)
            && filter.endpoint.as_ref().is_none_or(|endpoint| endpoints.contains(endpoint))
            && filter.source.as_ref().is_none_or(|name| rules::is_at(rules::first_source(task), name))
            && filter.destination.as_ref().is_none_or(|name| rules::is_at(rules::first_destination(task), name))
            && filter.since.is_none_or(|since| task.submitted >= since)
            && filter.before.is_none_or(|before| task.submitted < before)
            && filter.timer.as_ref().is_none_or(|timer| Some(timer) == self.submitted.timer.as_ref())
            && filter.text.as_ref().is_none_or(|text| rules::mentions(task, text))
            && filter.cause.as_ref().is_none_or(|cause| rules::is_because(task, cause))
    }
}

/// What comes first of two tasks.
pub fn order(sort: TaskSort, one: &Task, other: &Task) -> std::cmp::Ordering {
    let state = |task: &Task| TaskState::ALL.iter().position(|state| *state == task.state);
    match sort {
        TaskSort::Created => std::cmp::Ordering::Equal,
        TaskSort::State => state(one).cmp(&state(other)),
        TaskSort::Bytes => one.progress.bytes_moved.cmp(&other.progress.bytes_moved),
        TaskSort::Source => rules::first_source(one).cmp(rules::first_source(other)),
        TaskSort::Destination => rules::first_destination(one).cmp(rules::first_destination(other)),
        TaskSort::Ended => one.ended.cmp(&other.ended),
        TaskSort::Rate => one.progress.rates.all.total_cmp(&other.progress.rates.all),
    }
}

/// The rows before a place, the latest first.
pub fn latest<T>(rows: &BTreeMap<u64, T>, before: Option<u64>) -> impl Iterator<Item = &T> {
    rows.range(..before.unwrap_or(u64::MAX)).rev().map(|(_, row)| row)
}
