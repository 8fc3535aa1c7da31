//! What a ledger in memory keeps, and how a change of it is made.

use std::collections::{BTreeMap, BTreeSet};

use carrack_core::grant::GrantId;

use super::row::TaskRow;
use crate::clock::Moment;
use crate::ledger::audit::AuditLines;
use crate::ledger::health::{self, Healths};
use crate::ledger::tally::{Before, Tallies, Tally};
use crate::ledger::{Answer, EndpointRow, LedgerError, NewEvent, Submission, Submitted, UserRow, rules};
use crate::model::{EndVisit, Event, Task, Timer, TokenRow, TokenUse, User, merge_visits};

/// Each method either changes all that it says or nothing: what can fail comes first.
#[derive(Default)]
pub struct Rows {
    /// By the order of acceptance.
    pub tasks: BTreeMap<u64, TaskRow>,
    /// Where a task is in `tasks`.
    pub task_places: BTreeMap<String, u64>,
    pub submissions: BTreeMap<(String, String), u64>,
    /// Those that have not ended.
    pub open: BTreeSet<u64>,
    pub last_task: u64,
    pub events: BTreeMap<u64, Event>,
    pub last_event: u64,
    pub endpoints: BTreeMap<String, EndpointRow>,
    pub health: Healths,
    pub users: BTreeMap<String, UserRow>,
    /// Tasks that are gone, and whose directories may still be there.
    pub forgotten: BTreeSet<String>,
    /// By the order in which they were added.
    pub tokens: BTreeMap<u64, (TokenRow, [u8; 32])>,
    pub last_token: u64,
    pub token_use: BTreeMap<String, TokenUse>,
    /// Grants that are not taken any more, and until when.
    pub revoked: BTreeMap<GrantId, Moment>,
    pub tallies: Tallies,
    pub audit: AuditLines,
    /// By the order in which they were added.
    pub timers: BTreeMap<u64, Timer>,
    pub last_timer: u64,
}

impl Rows {
    pub fn place(&self, id: &str) -> Answer<u64> {
        self.task_places.get(id).copied().ok_or(LedgerError::Missing)
    }

    pub fn task(&self, id: &str) -> Answer<&TaskRow> {
        self.tasks.get(&self.place(id)?).ok_or(LedgerError::Missing)
    }

    /// Has a rule change a task.
    pub fn change(
        &mut self,
        id: &str,
        rule: impl FnOnce(&mut Task) -> Answer<()>,
        events: &[NewEvent],
        now: Moment,
    ) -> Answer<Task> {
        let place = self.place(id)?;
        let row = self.tasks.get_mut(&place).ok_or(LedgerError::Missing)?;
        let mut task = row.task.clone();
        let before = Before::of(&task);
        rule(&mut task)?;
        row.task = task.clone();
        self.count(before, &task, events, now);
        if task.state.has_ended() {
            self.open.remove(&place);
        } else {
            self.open.insert(place);
        }
        self.record(events, now);
        Ok(task)
    }

    /// Takes in where an attempt was at work.
    pub fn visited(&mut self, id: &str, visits: &[EndVisit], now: Moment) -> Answer<()> {
        let place = self.place(id)?;
        let row = self.tasks.get_mut(&place).ok_or(LedgerError::Missing)?;
        if !visits.is_empty() {
            let (time, known) = row.visited.get_or_insert((now, Vec::new()));
            *time = now;
            merge_visits(known, visits);
        }
        Ok(())
    }

    pub fn count(&mut self, before: Before, task: &Task, events: &[NewEvent], now: Moment) {
        let mut signs = health::of_change(&before, task, events, now);
        signs.retain(|endpoint, _| self.endpoints.contains_key(endpoint));
        self.health.add(signs, now);
        if let Some((token, more)) = before.used_since(task) {
            let used = self.token_use.entry(token.to_owned()).or_default();
            *used = used.and(&more);
        }
        if let Some(tally) = Tally::of_change(before, task, events, now) {
            self.tallies.add(tally);
        }
    }

    pub fn record(&mut self, events: &[NewEvent], now: Moment) {
        for event in events.iter().cloned() {
            self.last_event += 1;
            let NewEvent { kind, owner, task, subject, text, detail } = event;
            let event = Event { id: self.last_event, time: now, kind, owner, task, subject, text, detail };
            self.events.insert(self.last_event, event);
        }
    }

    pub fn submit(&mut self, submission: &Submission, now: Moment) -> Answer<Submitted> {
        let Submission { id, owner, submission_id, request, endpoints, .. } = submission;
        let key = submission_id.clone().map(|submission_id| (owner.clone(), submission_id));
        if let Some(place) = key.as_ref().and_then(|key| self.submissions.get(key)) {
            let row = self.tasks.get(place).ok_or(LedgerError::Missing)?;
            return rules::repeated(row.task.clone(), &row.submitted, submission);
        }
        if self.task_places.contains_key(id) {
            return Err(LedgerError::Taken);
        }
        let task = rules::accepted(submission, now);
        let endpoints: BTreeSet<String> = endpoints.iter().cloned().collect();
        let row = TaskRow {
            task: task.clone(),
            submitted: request.clone(),
            submission_id: submission_id.clone(),
            endpoints: endpoints.into_iter().collect(),
            visited: None,
        };
        self.last_task += 1;
        let place = self.last_task;
        self.tasks.insert(place, row);
        self.task_places.insert(id.clone(), place);
        self.open.insert(place);
        if let Some(key) = key {
            self.submissions.insert(key, place);
        }
        self.count(Before::ACCEPTED, &task, &[], now);
        self.record(&[rules::submitted_event(submission)], now);
        Ok(Submitted { task, duplicate: false })
    }

    pub fn forget_task(&mut self, place: u64) -> Option<String> {
        let row = self.tasks.remove(&place)?;
        let Task { id, owner, .. } = row.task;
        self.task_places.remove(&id);
        if let Some(submission_id) = row.submission_id {
            self.submissions.remove(&(owner, submission_id));
        }
        self.events.retain(|_, event| event.task.as_ref() != Some(&id));
        Some(id)
    }

    /// Whether a timer's last run has submitted this task.
    pub fn is_last_of_timer(&self, place: u64) -> bool {
        let id = self.tasks.get(&place).map(|row| &row.task.id);
        id.is_some() && self.timers.values().any(|timer| timer.last_task.as_ref() == id)
    }

    pub fn timer_place(&self, id: &str) -> Answer<u64> {
        let place = self.timers.iter().find(|(_, timer)| timer.id == id);
        place.map(|(place, _)| *place).ok_or(LedgerError::Missing)
    }

    pub fn token_place(&self, id: &str) -> Option<u64> {
        self.tokens.iter().find(|(_, (row, _))| row.id == id).map(|(place, _)| *place)
    }

    pub fn remove_sessions(&mut self, user: &str) -> Vec<String> {
        let mut removed = Vec::new();
        self.tokens.retain(|_, (row, _)| {
            let stays = row.user != user || !row.is_session;
            if !stays {
                removed.push(row.id.clone());
            }
            stays
        });
        removed
    }

    /// Whether the account is another user's.
    pub fn is_account_taken(&self, user: &User) -> bool {
        let others = self.users.values().filter(|other| other.user.name != user.name);
        user.account.is_some() && others.map(|other| other.user.account).any(|account| account == user.account)
    }
}
