//! What workers told becomes what the ledger says: progress and events while they run, and what follows from their end.

use std::time::Duration;

use serde_json::json;

use super::attempt::{Attempt, event};
use super::board::{Known, Times, events_of_attempt};
use super::dispatcher::{Dispatcher, Turned};
use super::outcome::{Circumstances, LinkNews, Outcome, outcome};
use crate::journal::EndCounts;
use crate::ledger::{Answer, LedgerError, TaskChange, TaskGuard};
use crate::model::{Estimate, EventKind, Progress, Task, TaskKind, TaskState};
use crate::schedule::{Outlook, Size};

/// Progress is written once in this time, or less often where many tasks run: each write waits for the disk.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
const PROGRESS_PER_TASK: Duration = Duration::from_millis(20);
/// Progress becomes an event once in this time.
const PROGRESS_EVENT_EVERY: Duration = Duration::from_secs(5);

const RUNNING: [TaskState; 2] = [TaskState::Active, TaskState::Cancelling];

impl Dispatcher {
    /// Takes in what workers told since the last turn. Only memory changes.
    pub(super) fn hear(&mut self, times: Times) {
        for told in self.workers.poll() {
            let Some(known) = self.board.tasks.get_mut(&told.task) else { continue };
            let Some(attempt) = known.attempt.as_mut().filter(|attempt| attempt.fence == told.fence) else { continue };
            let (had_moved, before) = (attempt.got_somewhere(&known.task), attempt.done(&known.task));
            attempt.hear(&known.task, told.what);
            let is_first = !had_moved && attempt.got_somewhere(&known.task);
            if is_first {
                known.deaths = 0;
            }
            // Others may have found a link sick while this attempt bridged an outage. Of several links, what moves does
            // not say which one carries.
            let moves_on = known.links.len() == 1 && attempt.done(&known.task) > before;
            if is_first || moves_on {
                let links = known.links.clone();
                self.links_carry(&links, times);
            }
        }
    }

    /// Writes what is to be written. What the ledger does not take stays for the next turn.
    pub(super) fn settle(&mut self, times: Times, turned: &mut Turned) -> Answer<()> {
        let running: Vec<String> = self.running().map(|(id, _)| id.clone()).collect();
        let every = PROGRESS_EVERY.max(PROGRESS_PER_TASK * u32::try_from(running.len()).unwrap_or(u32::MAX));
        let mut done = Ok(());
        for id in running {
            done = done.and(self.settle_task(&id, every, times, turned));
        }
        done
    }

    fn settle_task(&mut self, id: &str, every: Duration, times: Times, turned: &mut Turned) -> Answer<()> {
        let Some(Known { attempt: Some(attempt), .. }) = self.board.tasks.get(id) else { return Ok(()) };
        let (is_gone, is_worth_saving) = (attempt.gone.is_some(), is_worth_saving(attempt, times, every));
        if !is_gone && !is_worth_saving {
            return Ok(());
        }
        if attempt.uncertain {
            let there = events_of_attempt(&*self.ledger, id, attempt.fence)?;
            self.attempt_mut(id, |attempt| attempt.settle_doubt(there));
        }
        match if is_gone { self.settle_end(id, times) } else { self.save_progress(id, times) } {
            Ok(()) => {
                // Progress changes no plan.
                turned.wrote |= is_gone;
                turned.saved = true;
                Ok(())
            }
            // Somebody has written meanwhile, or a later attempt has taken over: look at it again.
            Err(LedgerError::Conflict(_) | LedgerError::Fenced | LedgerError::Missing) => self.look_again(id, times),
            Err(error) => {
                self.attempt_mut(id, |attempt| attempt.uncertain = true);
                Err(error)
            }
        }
    }

    fn attempt_mut(&mut self, id: &str, change: impl FnOnce(&mut Attempt)) {
        if let Some(Known { attempt: Some(attempt), .. }) = self.board.tasks.get_mut(id) {
            change(attempt);
        }
    }

    fn save_progress(&mut self, id: &str, times: Times) -> Answer<()> {
        let Some(Known { task, attempt: Some(attempt), .. }) = self.board.tasks.get_mut(id) else { return Ok(()) };
        let progress = attempt.sample.as_ref().map(|sample| sample.progress.clone());
        let mut events = attempt.unsaved(task);
        let is_due = attempt.told_progress_at.is_none_or(|at| times.steady.saturating_sub(at) >= PROGRESS_EVENT_EVERY);
        let sample = attempt.sample.as_ref();
        if let Some(progress) = progress.as_ref().filter(|_| is_due) {
            let detail = json!({
                "progress": progress,
                "streams": sample.map_or(0, |sample| sample.streams),
                "source": sample.and_then(|sample| sample.source).map(counted),
                "destination": sample.and_then(|sample| sample.destination).map(counted),
            });
            events.push(event(task, EventKind::Progress, progress_text(progress), detail));
        }
        let told_progress = is_due && progress.is_some();
        let estimate = progress.as_ref().and_then(|counted| counted_estimate(&self.outlook, task, counted, times));
        if let Some(estimate) = &estimate {
            let detail = json!({ "estimate": estimate });
            events.push(event(task, EventKind::Decision, estimate_text(estimate), detail));
        }
        let change = TaskChange { progress, estimate, ..TaskChange::default() };
        let guard = TaskGuard { states: RUNNING.to_vec(), fence: Some(attempt.fence), version: None };
        let task = self.ledger.change_task(id, &guard, &change, &events, times.wall)?;
        let Some(known) = self.board.tasks.get_mut(id) else { return Ok(()) };
        known.update(task, times, self.settings.patience.longest_with_jitter());
        if let Some(attempt) = &mut known.attempt {
            attempt.saved(times.steady);
            attempt.told_progress_at = if told_progress { Some(times.steady) } else { attempt.told_progress_at };
        }
        Ok(())
    }

    /// Its worker is gone. The row is read once more, so that what people want by now counts, and changed only if it is
    /// still the same.
    fn settle_end(&mut self, id: &str, times: Times) -> Answer<()> {
        let task = self.ledger.task(id)?;
        let longest = self.settings.patience.longest_with_jitter();
        let Some(known) = self.board.tasks.get_mut(id) else { return Ok(()) };
        known.update(task, times, longest);
        let Known { task, attempt: Some(attempt), deaths, .. } = &*known else { return Ok(()) };
        let circumstances = Circumstances {
            patience: &self.settings.patience,
            deaths: *deaths,
            deadline_passed: known.deadline_passed(times, Duration::ZERO),
            now: times.wall,
        };
        let outcome = outcome(task, attempt, circumstances);
        let guard = TaskGuard { states: RUNNING.to_vec(), fence: Some(attempt.fence), version: Some(task.version) };
        let events: Vec<_> = attempt.unsaved(task).into_iter().chain(outcome.events.clone()).collect();
        let change = TaskChange { visits: attempt.visits.clone(), ..outcome.change.clone() };
        let after = self.ledger.change_task(id, &guard, &change, &events, times.wall)?;
        self.ended(after, &outcome, times);
        Ok(())
    }

    /// The ledger has the end of an attempt: memory follows.
    fn ended(&mut self, task: Task, outcome: &Outcome, times: Times) {
        let id = task.id.clone();
        let Some(known) = self.board.tasks.get_mut(&id) else { return };
        let attempt = known.attempt.take();
        let links = known.links.clone();
        let longest = self.settings.patience.longest_with_jitter();
        known.update(task, times, longest);
        known.retry_at = outcome.retry_in.map(|pause| times.steady + pause);
        known.deaths = if outcome.died { known.deaths + 1 } else { 0 };
        let Known { task, .. } = &*known;
        let (state, fence, owner) = (task.state, task.fence, task.owner.clone());
        // What brings nothing anywhere says nothing of how long that takes.
        let only_looks = task.request.preview || task.request.kind == TaskKind::Check;
        let progress = task.progress.clone();
        tracing::info!(target: "carrack::audit", task = %id, owner, state = state.name(), attempt = fence, "attempt ended");
        if state == TaskState::Succeeded
            && fence == 1
            && !only_looks
            && let Some(attempt) = attempt
            && !links.is_empty()
        {
            let share = u32::try_from(links.len()).unwrap_or(u32::MAX);
            let took = times.steady.saturating_sub(attempt.since) / share;
            for link in &links {
                self.history.add(link, took, super::moved(&progress, share));
            }
            self.outlook.remember(&self.history);
        }
        if state.has_ended() {
            self.board.tasks.remove(&id);
        }
        match outcome.link {
            LinkNews::Carried => self.links_carry(&links, times),
            LinkNews::Futile => self.health.futile(&links, &self.settings.patience, times.steady),
            LinkNews::Nothing => {}
        }
    }

    /// Links have carried something: whoever waits for one that was sick need not wait any longer.
    fn links_carry(&mut self, links: &[crate::schedule::Link], times: Times) {
        let recovered = self.health.carried(links);
        if recovered.is_empty() {
            return;
        }
        for known in self.board.tasks.values_mut() {
            if known.retry_at.is_some() && known.links.iter().any(|link| recovered.contains(link)) {
                known.retry_at = Some(times.steady);
            }
        }
    }
}

/// What is expected of a task whose first worker has just counted the sources. `None`: that was told before, or they
/// are not counted yet.
fn counted_estimate(outlook: &Outlook, task: &Task, counted: &Progress, times: Times) -> Option<Estimate> {
    let told = task.estimate.as_ref().is_some_and(|estimate| estimate.bytes.is_some());
    if told || task.fence != 1 || !counted.scan_complete || task.request.preview {
        return None;
    }
    let size = Size { bytes: counted.bytes_total, items: counted.items_total };
    Some(outlook.promise(&super::links_of(&task.request), Some(size), times.wall).estimate(Some(size), times.wall))
}

fn is_worth_saving(attempt: &Attempt, times: Times, every: Duration) -> bool {
    let is_due = attempt.saved_at.is_none_or(|at| times.steady.saturating_sub(at) >= every);
    is_due && (attempt.sample.is_some() || !attempt.events.is_empty())
}

/// Counters of an end, as an event of progress has them.
fn counted(counts: EndCounts) -> serde_json::Value {
    json!({
        "processor_seconds": Duration::from_micros(counts.processor_us).as_secs_f64(),
        "storage_wait_seconds": Duration::from_micros(counts.storage_wait_us).as_secs_f64(),
        "retransmits": counts.retransmits,
    })
}

fn estimate_text(estimate: &Estimate) -> String {
    match estimate.seconds() {
        Some((least, most)) => format!("expected to take {least} to {most} s: {}", estimate.why),
        None => format!("how long it takes is not known: {}", estimate.why),
    }
}

fn progress_text(progress: &Progress) -> String {
    let Progress { items_done, items_total, bytes_moved, bytes_total, .. } = progress;
    let so_far = if progress.scan_complete { "" } else { " found so far" };
    format!("{items_done} of {items_total} items, {bytes_moved} of {bytes_total} bytes{so_far}")
}
