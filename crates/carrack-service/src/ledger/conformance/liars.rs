//! The suite notices a ledger that lies: each of these breaks one promise.

use std::collections::BTreeMap;

use carrack_core::grant::GrantId;

use super::check_those;
use crate::clock::Moment;
use crate::ledger::audit::{AuditFilter, NewAuditLine};
use crate::ledger::health::HealthRow;
use crate::ledger::memory::MemoryLedger;
use crate::ledger::tally::{OverviewQuery, OverviewRows};
use crate::ledger::{
    Answer, EndpointRow, EventFilter, Ledger, LedgerError, NewEvent, Page, Retention, Submission, Submitted,
    TaskChange, TaskFilter, TaskGuard, TaskWindow, UseTaken, UserChange, UserRow, VisitedTasks, VisitsMost,
};
use crate::model::{
    AuditLine, Ceilings, Endpoint, EndpointTest, Event, Task, TaskState, Timer, TokenRow, TokenUse, User,
};

/// A promise that is broken.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    None,
    ForgetsSubmissions,
    TakesAnotherRequest,
    ClaimsTwice,
    IgnoresFences,
    IgnoresVersions,
    LosesEvents,
    EventsOfOthers,
    PagesOverlap,
    RunsWithoutTheTimer,
    TimersAlwaysDue,
    ForgetsAll,
    ReordersEvents,
    RepeatsEvents,
    AnswersLate,
    KeepsTokens,
    UseIsNotNoted,
    EndpointsAlwaysGo,
}

struct Liar {
    honest: MemoryLedger,
    lie: Lie,
}

/// Methods that only pass on what they get.
macro_rules! honest {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)+) => {
        $(fn $name(&self, $($argument: $kind),*) -> Answer<$answer> {
            self.honest.$name($($argument),*)
        })+
    };
}

impl Ledger for Liar {
    honest! {
        task_window(filter: &TaskFilter, window: &TaskWindow) -> (Vec<Task>, u64);
        overview(query: &OverviewQuery) -> OverviewRows;
        note(lines: &[NewAuditLine]) -> ();
        audit(filter: &AuditFilter, limit: usize) -> Vec<AuditLine>;
        count_tasks() -> Vec<(String, TaskState, u64)>;
        open_tasks() -> Vec<(Task, Vec<String>)>;
        visits(owner: Option<&str>, since: Moment, most: VisitsMost) -> VisitedTasks;
        reopen(id: &str, now: Moment, deadline: Option<Option<Moment>>, event: &NewEvent) -> Task;
        record(events: &[NewEvent], now: Moment) -> ();
        event_range() -> (u64, u64);
        add_endpoint(row: &EndpointRow, event: &NewEvent) -> ();
        endpoint(name: &str) -> EndpointRow;
        endpoints(page: &Page) -> Vec<Endpoint>;
        change_endpoint(row: &EndpointRow, event: &NewEvent, now: Moment) -> Endpoint;
        health(endpoint: Option<&str>, owner: Option<&str>) -> BTreeMap<String, HealthRow>;
        note_test(endpoint: &str, test: &EndpointTest, now: Moment) -> ();
        add_user(row: &UserRow) -> ();
        user(name: &str) -> UserRow;
        user_of_account(account: u32) -> Option<UserRow>;
        users() -> Vec<User>;
        change_user(name: &str, change: &UserChange) -> (UserRow, Vec<String>);
        add_token(row: &TokenRow, digest: &[u8; 32]) -> ();
        token(id: &str) -> (TokenRow, [u8; 32], User);
        tokens(user: &str) -> Vec<TokenRow>;
        token_use(id: &str) -> TokenUse;
        count_use(user: &str, id: &str, more: &TokenUse, most: &Ceilings) -> UseTaken;
        remove_sessions(user: &str) -> Vec<String>;
        revoke_grants(id: &GrantId, until: Moment, now: Moment) -> ();
        restore_grants(id: &GrantId) -> ();
        revoked_grants(now: Moment) -> Vec<(GrantId, Moment)>;
        add_timer(timer: &Timer, event: &NewEvent) -> ();
        timer(id: &str) -> Timer;
        timers(owner: Option<&str>, page: &Page) -> Vec<Timer>;
        remove_timer(id: &str, event: &NewEvent, now: Moment) -> ();
        forgotten() -> Vec<String>;
        directories_removed(tasks: &[String]) -> ();
        probe() -> ();
    }

    fn task(&self, id: &str) -> Answer<Task> {
        let mut task = self.honest.task(id)?;
        if self.lie == Lie::AnswersLate && task.state == TaskState::Active {
            // As it was before the claim.
            task.state = TaskState::Queued;
        }
        Ok(task)
    }

    fn submit(&self, submission: &Submission, now: Moment) -> Answer<Submitted> {
        if self.lie == Lie::ForgetsSubmissions {
            return self.honest.submit(&Submission { submission_id: None, ..submission.clone() }, now);
        }
        let submitted = self.honest.submit(submission, now);
        match (self.lie, &submitted) {
            (Lie::TakesAnotherRequest, Err(LedgerError::Conflict(_))) => {
                let task = self.honest.tasks(&TaskFilter::default(), &super::first(1))?.remove(0);
                Ok(Submitted { task, duplicate: true })
            }
            _ => submitted,
        }
    }

    fn tasks(&self, filter: &TaskFilter, page: &Page) -> Answer<Vec<Task>> {
        let mut tasks = self.honest.tasks(filter, page)?;
        if let Some(after) = page.after.as_ref().filter(|_| self.lie == Lie::PagesOverlap) {
            tasks.insert(0, self.honest.task(after)?);
        }
        Ok(tasks)
    }

    fn claim(&self, id: &str, now: Moment, event: &NewEvent) -> Answer<Task> {
        let claimed = self.honest.claim(id, now, event);
        if self.lie == Lie::ClaimsTwice && claimed.is_err() { self.honest.task(id) } else { claimed }
    }

    fn change_task(
        &self,
        id: &str,
        guard: &TaskGuard,
        change: &TaskChange,
        events: &[NewEvent],
        now: Moment,
    ) -> Answer<Task> {
        let mut guard = guard.clone();
        guard.fence = guard.fence.filter(|_| self.lie != Lie::IgnoresFences);
        guard.version = guard.version.filter(|_| self.lie != Lie::IgnoresVersions);
        let events = if self.lie == Lie::LosesEvents { &[] } else { events };
        self.honest.change_task(id, &guard, change, events, now)
    }

    fn events(&self, filter: &EventFilter, limit: usize) -> Answer<Vec<Event>> {
        let owner = filter.owner.clone().filter(|_| self.lie != Lie::EventsOfOthers);
        let mut events = self.honest.events(&EventFilter { owner, ..filter.clone() }, limit)?;
        match self.lie {
            Lie::ReordersEvents => events.reverse(),
            Lie::RepeatsEvents => events.extend(events.last().cloned()),
            _ => {}
        }
        Ok(events)
    }

    fn remove_endpoint(&self, name: &str, event: &NewEvent, now: Moment) -> Answer<()> {
        match self.honest.remove_endpoint(name, event, now) {
            Err(LedgerError::Conflict(_)) if self.lie == Lie::EndpointsAlwaysGo => Ok(()),
            removed => removed,
        }
    }

    fn token_used(&self, id: &str, now: Moment) -> Answer<()> {
        if self.lie == Lie::UseIsNotNoted { Ok(()) } else { self.honest.token_used(id, now) }
    }

    fn remove_token(&self, id: &str) -> Answer<()> {
        if self.lie == Lie::KeepsTokens { self.honest.token(id).map(drop) } else { self.honest.remove_token(id) }
    }

    fn due_timers(&self, now: Moment, limit: usize) -> Answer<Vec<Timer>> {
        let now = if self.lie == Lie::TimersAlwaysDue { Moment(i64::MAX) } else { now };
        self.honest.due_timers(now, limit)
    }

    fn change_timer(
        &self,
        timer: &Timer,
        submission: Option<&Submission>,
        event: &NewEvent,
        now: Moment,
    ) -> Answer<Option<Submitted>> {
        match self.honest.change_timer(timer, submission, event, now) {
            Err(LedgerError::Conflict(_)) if self.lie == Lie::RunsWithoutTheTimer => {
                let once_more = |one: &Submission| Submission { submission_id: None, ..one.clone() };
                submission.map(|one| self.honest.submit(&once_more(one), now)).transpose()
            }
            changed => changed,
        }
    }

    fn forget(&self, retention: &Retention) -> Answer<Vec<String>> {
        let limit = if self.lie == Lie::ForgetsAll { usize::MAX } else { retention.limit };
        self.honest.forget(&Retention { limit, ..*retention })
    }
}

#[test]
fn conformance_notices_each_lie_by_its_rule() {
    for (lie, rule) in [
        (Lie::ForgetsSubmissions, "submission_ten_times_at_once_is_one_task"),
        (Lie::TakesAnotherRequest, "submission_repeated_with_another_request_conflicts"),
        (Lie::ClaimsTwice, "claim_by_many_at_once_is_one_attempt"),
        (Lie::IgnoresFences, "change_of_an_older_attempt_is_fenced"),
        (Lie::IgnoresVersions, "change_needs_its_states_and_its_version"),
        (Lie::LosesEvents, "change_sets_what_it_names_and_nothing_else"),
        (Lie::EventsOfOthers, "events_are_told_by_owner_and_task"),
        (Lie::PagesOverlap, "tasks_are_paged_without_gaps_while_others_come"),
        (Lie::RunsWithoutTheTimer, "timer_run_by_two_at_once_is_one_task"),
        (Lie::TimersAlwaysDue, "timers_that_are_due_come_by_their_time"),
        (Lie::ForgetsAll, "forget_takes_so_many_at_a_time"),
        (Lie::ReordersEvents, "events_are_told_in_order_from_where_one_stopped"),
        (Lie::RepeatsEvents, "events_are_told_in_order_from_where_one_stopped"),
        (Lie::AnswersLate, "claim_begins_an_attempt"),
        (Lie::KeepsTokens, "token_removed_is_gone"),
        (Lie::UseIsNotNoted, "token_use_is_noted_to_the_minute"),
        (Lie::EndpointsAlwaysGo, "endpoint_in_use_is_not_removed"),
    ] {
        let broken = |lie| check_those(&|| Box::new(Liar { honest: MemoryLedger::new(), lie }), &|name| name == rule);
        assert_eq!(broken(lie).len(), 1, "{lie:?}: {rule} is not broken");
        assert_eq!(broken(Lie::None), [], "{rule}");
    }
}
