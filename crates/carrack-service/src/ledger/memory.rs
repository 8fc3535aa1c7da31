//! A ledger in memory: for simulations, which need thousands of them, and no disk. It keeps to the same rules as the
//! one that lasts, and passes the same suite.

mod row;
mod rows;

use carrack_engine::sync::lock;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use carrack_core::grant::GrantId;

use self::row::{TaskRow, latest, order};
use self::rows::Rows;
use super::audit::{AuditFilter, NewAuditLine};
use super::health::HealthRow;
use super::tally::{self, OverviewQuery, OverviewRows, Shift, TASKS_MOST};
use super::{
    Answer, EndpointRow, EventFilter, Ledger, LedgerError, NewEvent, Page, Retention, Submission, Submitted,
    TaskChange, TaskFilter, TaskGuard, TaskVisits, TaskWindow, UseTaken, UserChange, UserRow, VisitedTasks, VisitsMost,
    endpoints_of, rules,
};
use crate::clock::Moment;
use crate::model::{
    AuditLine, Ceilings, Endpoint, EndpointTest, Event, Task, TaskSort, TaskState, Timer, TimerState, TokenRow,
    TokenUse, User,
};

/// A ledger that is gone with its process.
#[derive(Default)]
pub struct MemoryLedger {
    rows: Mutex<Rows>,
}

impl MemoryLedger {
    /// One with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        lock(&self.rows)
    }
}

fn one(event: &NewEvent) -> &[NewEvent] {
    std::slice::from_ref(event)
}

impl Ledger for MemoryLedger {
    fn submit(&self, submission: &Submission, now: Moment) -> Answer<Submitted> {
        self.rows().submit(submission, now)
    }

    fn task(&self, id: &str) -> Answer<Task> {
        Ok(self.rows().task(id)?.task.clone())
    }

    fn tasks(&self, filter: &TaskFilter, page: &Page) -> Answer<Vec<Task>> {
        let rows = self.rows();
        let before = page.after.as_deref().map(|id| rows.place(id)).transpose()?;
        let is_owners = |place| {
            let row = rows.tasks.get(&place);
            row.is_some_and(|row| filter.owner.as_ref().is_none_or(|owner| *owner == row.task.owner))
        };
        if !before.is_none_or(is_owners) {
            return Err(LedgerError::Missing);
        }
        let found = latest(&rows.tasks, before).filter(|row| row.passes(filter));
        Ok(found.take(page.limit).map(|row| row.task.clone()).collect())
    }

    fn task_window(&self, filter: &TaskFilter, window: &TaskWindow) -> Answer<(Vec<Task>, u64)> {
        let rows = self.rows();
        // The latest first: what is equal stays so.
        let mut found: Vec<&Task> =
            latest(&rows.tasks, None).filter(|row| row.passes(filter)).map(|row| &row.task).collect();
        let total = u64::try_from(found.len()).unwrap_or(u64::MAX);
        if window.sort == TaskSort::Created {
            if !window.descending {
                found.reverse();
            }
        } else {
            found.sort_by(|one, other| {
                let order = order(window.sort, one, other);
                if window.descending { order.reverse() } else { order }
            });
        }
        let offset = usize::try_from(window.offset).unwrap_or(usize::MAX);
        Ok((found.into_iter().skip(offset).take(window.limit).cloned().collect(), total))
    }

    fn overview(&self, query: &OverviewQuery) -> Answer<OverviewRows> {
        let rows = self.rows();
        let tasks = || rows.tasks.values().map(|row| &row.task);
        let is_of = |wanted: &Option<String>, task: &Task| wanted.as_ref().is_none_or(|owner| *owner == task.owner);
        let mut at_present = Shift::default();
        let open = rows.open.iter().filter_map(|place| rows.tasks.get(place)).map(|row| &row.task);
        let mut rate = 0.0;
        for task in open.filter(|task| is_of(&query.curves_of, task)) {
            at_present.add(Shift::of(task.state), 1);
            rate += if task.state == TaskState::Active { task.progress.rates.now } else { 0.0 };
        }
        let own = || tasks().filter(|task| is_of(&query.rows_of, task));
        let mut slowest: Vec<&Task> = own().filter(|task| tally::may_be_slow(task, query)).collect();
        slowest.sort_by(|one, other| one.progress.rates.all.total_cmp(&other.progress.rates.all));
        let stuck = own().filter(|task| tally::is_stuck(task, query.now)).take(TASKS_MOST).cloned().collect();
        let slowest = slowest.into_iter().take(TASKS_MOST).cloned().collect();
        Ok(OverviewRows { rate, slowest, stuck, ..rows.tallies.rows(query, at_present) })
    }

    fn note(&self, lines: &[NewAuditLine]) -> Answer<()> {
        self.rows().audit.add(lines);
        Ok(())
    }

    fn audit(&self, filter: &AuditFilter, limit: usize) -> Answer<Vec<AuditLine>> {
        Ok(self.rows().audit.list(filter, limit))
    }

    fn count_tasks(&self) -> Answer<Vec<(String, TaskState, u64)>> {
        let mut counts: BTreeMap<(String, &str), (TaskState, u64)> = BTreeMap::new();
        for TaskRow { task, .. } in self.rows().tasks.values() {
            counts.entry((task.owner.clone(), task.state.name())).or_insert((task.state, 0)).1 += 1;
        }
        Ok(counts.into_iter().map(|((owner, _), (state, count))| (owner, state, count)).collect())
    }

    fn open_tasks(&self) -> Answer<Vec<(Task, Vec<String>)>> {
        let rows = self.rows();
        let open = rows.open.iter().filter_map(|place| rows.tasks.get(place));
        Ok(open.map(|row| (row.task.clone(), row.endpoints.clone())).collect())
    }

    fn claim(&self, id: &str, now: Moment, event: &NewEvent) -> Answer<Task> {
        self.rows().change(id, |task| rules::claim(task, now), one(event), now)
    }

    fn change_task(
        &self,
        id: &str,
        guard: &TaskGuard,
        change: &TaskChange,
        events: &[NewEvent],
        now: Moment,
    ) -> Answer<Task> {
        let mut rows = self.rows();
        let task = rows.change(id, |task| rules::change(task, guard, change, now), events, now)?;
        rows.visited(id, &change.visits, now)?;
        Ok(task)
    }

    fn visits(&self, owner: Option<&str>, since: Moment, most: VisitsMost) -> Answer<VisitedTasks> {
        let rows = self.rows();
        let own = rows.tasks.values().rev().filter(|row| owner.is_none_or(|owner| owner == row.task.owner));
        let told = own.filter_map(|row| {
            let (time, visits) = row.visited.clone()?;
            Some(TaskVisits { task: row.task.id.clone(), time, visits })
        });
        let mut found: Vec<_> = told.filter(|told| told.time >= since).collect();
        found.sort_by_key(|told| std::cmp::Reverse(told.time));
        let sized = |told: TaskVisits| {
            let document = serde_json::to_vec(&told.visits).map_err(|error| LedgerError::Broken(error.to_string()))?;
            Ok((document.len(), told))
        };
        VisitedTasks::within(most, found.into_iter().map(sized))
    }

    fn reopen(&self, id: &str, now: Moment, deadline: Option<Option<Moment>>, event: &NewEvent) -> Answer<Task> {
        self.rows().change(id, |task| rules::reopen(task, now, deadline), one(event), now)
    }

    fn record(&self, events: &[NewEvent], now: Moment) -> Answer<()> {
        self.rows().record(events, now);
        Ok(())
    }

    fn events(&self, filter: &EventFilter, limit: usize) -> Answer<Vec<Event>> {
        let rows = self.rows();
        let later = rows.events.range(filter.since.saturating_add(1)..).map(|(_, event)| event);
        let meant = later.filter(|event| {
            filter.owner.as_ref().is_none_or(|owner| *owner == event.owner)
                && filter.task.as_ref().is_none_or(|task| Some(task) == event.task.as_ref())
        });
        Ok(meant.take(limit).cloned().collect())
    }

    fn event_range(&self) -> Answer<(u64, u64)> {
        let rows = self.rows();
        let oldest = rows.events.keys().next().copied();
        Ok((rows.last_event, oldest.unwrap_or(rows.last_event + 1)))
    }

    fn add_endpoint(&self, row: &EndpointRow, event: &NewEvent) -> Answer<()> {
        let mut rows = self.rows();
        if rows.endpoints.contains_key(&row.endpoint.name) {
            return Err(LedgerError::Taken);
        }
        let mut row = row.clone();
        row.endpoint.has_token = row.sealed_token.is_some();
        rows.record(one(event), row.endpoint.added);
        rows.endpoints.insert(row.endpoint.name.clone(), row);
        Ok(())
    }

    fn endpoint(&self, name: &str) -> Answer<EndpointRow> {
        self.rows().endpoints.get(name).cloned().ok_or(LedgerError::Missing)
    }

    fn endpoints(&self, page: &Page) -> Answer<Vec<Endpoint>> {
        let rows = self.rows();
        let behind = rows.endpoints.iter().filter(|(name, _)| page.after.as_ref().is_none_or(|after| *name > after));
        Ok(behind.take(page.limit).map(|(_, row)| row.endpoint.clone()).collect())
    }

    fn change_endpoint(&self, row: &EndpointRow, event: &NewEvent, now: Moment) -> Answer<Endpoint> {
        let mut rows = self.rows();
        let kept = rows.endpoints.get(&row.endpoint.name).ok_or(LedgerError::Missing)?;
        if kept.endpoint.version != row.endpoint.version {
            return Err(LedgerError::Conflict(format!("endpoint {} has changed meanwhile", row.endpoint.name)));
        }
        let name = &row.endpoint.name;
        let open = rows.open.iter().filter_map(|place| rows.tasks.get(place));
        let open = open.filter(|row| row.endpoints.iter().any(|endpoint| endpoint == name));
        let open: Vec<String> = open.map(|row| row.task.id.clone()).collect();
        let kept = rows.endpoints.get_mut(name).ok_or(LedgerError::Missing)?;
        rules::endpoint_may_change(&kept.endpoint, &row.endpoint, &open)?;
        let (before, sealed) = (kept.endpoint.clone(), kept.sealed_token.clone());
        *kept = row.clone();
        kept.endpoint.version += 1;
        kept.endpoint.has_token = row.sealed_token.is_some();
        let endpoint = kept.endpoint.clone();
        if rules::endpoint_begins_anew((&before, &sealed), (&endpoint, &row.sealed_token)) {
            rows.health.remove(name);
        }
        rows.record(one(event), now);
        Ok(endpoint)
    }

    fn remove_endpoint(&self, name: &str, event: &NewEvent, now: Moment) -> Answer<()> {
        let mut rows = self.rows();
        let used = |what: &str, id: &str| Err(LedgerError::Conflict(format!("endpoint {name} is used by {what} {id}")));
        let mut open = rows.open.iter().filter_map(|place| rows.tasks.get(place));
        if let Some(row) = open.find(|row| row.endpoints.iter().any(|endpoint| endpoint == name)) {
            return used("task", &row.task.id);
        }
        let mut timers = rows.timers.values().filter(|timer| timer.state != TimerState::Ended);
        if let Some(timer) = timers.find(|timer| endpoints_of(&timer.task).iter().any(|endpoint| endpoint == name)) {
            return used("timer", &timer.id);
        }
        rows.endpoints.remove(name).ok_or(LedgerError::Missing)?;
        rows.health.remove(name);
        rows.record(one(event), now);
        Ok(())
    }

    fn health(&self, endpoint: Option<&str>, owner: Option<&str>) -> Answer<BTreeMap<String, HealthRow>> {
        let rows = self.rows();
        let open = rows.open.iter().filter_map(|place| rows.tasks.get(place));
        let open = open.filter(|row| owner.is_none_or(|owner| owner == row.task.owner));
        Ok(rows.health.list(endpoint, open.flat_map(|row| &row.endpoints)))
    }

    fn note_test(&self, endpoint: &str, test: &EndpointTest, now: Moment) -> Answer<()> {
        let mut rows = self.rows();
        if !rows.endpoints.contains_key(endpoint) {
            return Err(LedgerError::Missing);
        }
        rows.health.note_test(endpoint, test, now);
        Ok(())
    }

    fn add_user(&self, row: &UserRow) -> Answer<()> {
        let mut rows = self.rows();
        if rows.users.contains_key(&row.user.name) || rows.is_account_taken(&row.user) {
            return Err(LedgerError::Taken);
        }
        rows.users.insert(row.user.name.clone(), row.clone());
        Ok(())
    }

    fn user(&self, name: &str) -> Answer<UserRow> {
        self.rows().users.get(name).cloned().ok_or(LedgerError::Missing)
    }

    fn user_of_account(&self, account: u32) -> Answer<Option<UserRow>> {
        Ok(self.rows().users.values().find(|row| row.user.account == Some(account)).cloned())
    }

    fn users(&self) -> Answer<Vec<User>> {
        Ok(self.rows().users.values().map(|row| row.user.clone()).collect())
    }

    fn change_user(&self, name: &str, change: &UserChange) -> Answer<(UserRow, Vec<String>)> {
        let mut rows = self.rows();
        let mut row = rows.users.get(name).cloned().ok_or(LedgerError::Missing)?;
        let ends_sessions = rules::change_user(&mut row, change)?;
        if rows.is_account_taken(&row.user) {
            return Err(LedgerError::Taken);
        }
        rows.users.insert(name.to_owned(), row.clone());
        let ended = if ends_sessions { rows.remove_sessions(name) } else { Vec::new() };
        Ok((row, ended))
    }

    fn add_token(&self, row: &TokenRow, digest: &[u8; 32]) -> Answer<()> {
        let mut rows = self.rows();
        if !rows.users.contains_key(&row.user) {
            return Err(LedgerError::Missing);
        }
        if rows.token_place(&row.id).is_some() {
            return Err(LedgerError::Taken);
        }
        rows.last_token += 1;
        let place = rows.last_token;
        rows.tokens.insert(place, (row.clone(), *digest));
        Ok(())
    }

    fn token(&self, id: &str) -> Answer<(TokenRow, [u8; 32], User)> {
        let rows = self.rows();
        let place = rows.token_place(id).ok_or(LedgerError::Missing)?;
        let (row, digest) = rows.tokens.get(&place).ok_or(LedgerError::Missing)?;
        let user = rows.users.get(&row.user).ok_or(LedgerError::Missing)?;
        Ok((row.clone(), *digest, user.user.clone()))
    }

    fn tokens(&self, user: &str) -> Answer<Vec<TokenRow>> {
        let rows = self.rows();
        let tokens = latest(&rows.tokens, None).map(|(row, _)| row);
        Ok(tokens.filter(|row| row.user == user).cloned().collect())
    }

    fn token_used(&self, id: &str, now: Moment) -> Answer<()> {
        let mut rows = self.rows();
        let place = rows.token_place(id);
        if let Some((row, _)) = place.and_then(|place| rows.tokens.get_mut(&place)) {
            row.used = row.used.max(Some(rules::minute(now)));
        }
        Ok(())
    }

    fn token_use(&self, id: &str) -> Answer<TokenUse> {
        Ok(self.rows().token_use.get(id).copied().unwrap_or_default())
    }

    fn count_use(&self, user: &str, id: &str, more: &TokenUse, most: &Ceilings) -> Answer<UseTaken> {
        let mut rows = self.rows();
        let is_running = |task: &Task| Shift::of(task.state).running > 0;
        let is_of = |task: &Task| task.owner == user && task.request.token.as_deref() == Some(id);
        let mut tasks = rows.tasks.values().map(|row| &row.task);
        if more.is_limited_by(most)
            && let Some(task) = tasks.find(|task| is_running(task) && is_of(task))
        {
            return Ok(UseTaken::Running(task.id.clone()));
        }
        let used = rows.token_use.entry(id.to_owned()).or_default();
        if let Some(over) = used.and(more).over(most) {
            return Ok(UseTaken::Over(over));
        }
        *used = used.and(more);
        Ok(UseTaken::Taken)
    }

    fn remove_token(&self, id: &str) -> Answer<()> {
        let mut rows = self.rows();
        rows.token_use.remove(id);
        let place = rows.token_place(id).ok_or(LedgerError::Missing)?;
        rows.tokens.remove(&place);
        Ok(())
    }

    fn remove_sessions(&self, user: &str) -> Answer<Vec<String>> {
        Ok(self.rows().remove_sessions(user))
    }

    fn revoke_grants(&self, id: &GrantId, until: Moment, now: Moment) -> Answer<()> {
        let mut rows = self.rows();
        rows.revoked.retain(|_, until| *until > now);
        let kept = rows.revoked.entry(*id).or_insert(until);
        *kept = until.max(*kept);
        Ok(())
    }

    fn restore_grants(&self, id: &GrantId) -> Answer<()> {
        self.rows().revoked.remove(id);
        Ok(())
    }

    fn revoked_grants(&self, now: Moment) -> Answer<Vec<(GrantId, Moment)>> {
        let rows = self.rows();
        Ok(rows.revoked.iter().filter(|(_, until)| **until > now).map(|(id, until)| (*id, *until)).collect())
    }

    fn add_timer(&self, timer: &Timer, event: &NewEvent) -> Answer<()> {
        let mut rows = self.rows();
        if rows.timer_place(&timer.id).is_ok() {
            return Err(LedgerError::Taken);
        }
        rows.last_timer += 1;
        let place = rows.last_timer;
        rows.timers.insert(place, timer.clone());
        rows.record(one(event), timer.made);
        Ok(())
    }

    fn timer(&self, id: &str) -> Answer<Timer> {
        let rows = self.rows();
        rows.timers.get(&rows.timer_place(id)?).cloned().ok_or(LedgerError::Missing)
    }

    fn timers(&self, owner: Option<&str>, page: &Page) -> Answer<Vec<Timer>> {
        let rows = self.rows();
        let before = page.after.as_deref().map(|id| rows.timer_place(id)).transpose()?;
        let is_owners = |place| {
            let timer = rows.timers.get(&place);
            timer.is_some_and(|timer| owner.is_none_or(|owner| owner == timer.owner))
        };
        if !before.is_none_or(is_owners) {
            return Err(LedgerError::Missing);
        }
        let found = latest(&rows.timers, before).filter(|timer| owner.is_none_or(|owner| owner == timer.owner));
        Ok(found.take(page.limit).cloned().collect())
    }

    fn due_timers(&self, now: Moment, limit: usize) -> Answer<Vec<Timer>> {
        let rows = self.rows();
        let is_due = |timer: &&Timer| timer.state == TimerState::Waiting && timer.next_run.is_some_and(|at| at <= now);
        let mut due: Vec<Timer> = rows.timers.values().filter(is_due).cloned().collect();
        due.sort_by_key(|timer| timer.next_run);
        due.truncate(limit);
        Ok(due)
    }

    fn change_timer(
        &self,
        timer: &Timer,
        submission: Option<&Submission>,
        event: &NewEvent,
        now: Moment,
    ) -> Answer<Option<Submitted>> {
        let mut rows = self.rows();
        let place = rows.timer_place(&timer.id)?;
        let before = rows.timers.get(&place).ok_or(LedgerError::Missing)?;
        if before.version != timer.version {
            return Err(LedgerError::Conflict(format!("timer {} has changed meanwhile", timer.id)));
        }
        let (owner, made) = (before.owner.clone(), before.made);
        let submitted = submission.map(|submission| rows.submit(submission, now)).transpose()?;
        let last_task = submitted.as_ref().map(|submitted| submitted.task.id.clone()).or(timer.last_task.clone());
        let changed = Timer { owner, made, last_task, version: timer.version + 1, ..timer.clone() };
        rows.timers.insert(place, changed);
        rows.record(one(event), now);
        Ok(submitted)
    }

    fn remove_timer(&self, id: &str, event: &NewEvent, now: Moment) -> Answer<()> {
        let mut rows = self.rows();
        let place = rows.timer_place(id)?;
        rows.timers.remove(&place);
        rows.record(one(event), now);
        Ok(())
    }

    fn forget(&self, retention: &Retention) -> Answer<Vec<String>> {
        let mut rows = self.rows();
        let ended = rows.tasks.iter().filter_map(|(place, row)| Some((row.task.ended?, *place)));
        let mut ended: Vec<_> = ended.filter(|(ended, _)| *ended < retention.tasks_ended_before).collect();
        ended.retain(|(_, place)| !rows.is_last_of_timer(*place));
        ended.sort_unstable();
        ended.truncate(retention.limit);
        let gone: Vec<String> = ended.into_iter().filter_map(|(_, place)| rows.forget_task(place)).collect();
        rows.forgotten.extend(gone.iter().cloned());
        let old = rows.events.values().filter(|event| event.time < retention.events_before);
        let mut old: Vec<_> = old.map(|event| (event.time, event.id)).collect();
        old.sort_unstable();
        old.truncate(retention.limit);
        for (_, id) in old {
            rows.events.remove(&id);
        }
        rows.tallies.forget(retention.events_before);
        rows.audit.forget(retention.events_before, retention.limit);
        Ok(gone)
    }

    fn forgotten(&self) -> Answer<Vec<String>> {
        Ok(self.rows().forgotten.iter().cloned().collect())
    }

    fn directories_removed(&self, tasks: &[String]) -> Answer<()> {
        self.rows().forgotten.retain(|task| !tasks.contains(task));
        Ok(())
    }

    fn probe(&self) -> Answer<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::conformance;

    #[test]
    fn memory_ledger_passes_the_suite() {
        let findings = conformance::check(&|| Box::new(MemoryLedger::new()));
        assert_eq!(findings, []);
    }
}
