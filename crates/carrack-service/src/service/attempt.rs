//! An attempt under way, as far as its worker has told and the ledger knows.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Moment;
use crate::journal::{AttemptEnd, Record, Sample};
use crate::ledger::NewEvent;
use crate::model::{EndVisit, EventKind, Fence, Progress, Task, merge_visits};
use crate::supervise::What;

/// Events of a worker that wait for the ledger. More are dropped, and counted: a ledger that takes nothing for long
/// must not fill the memory.
const EVENTS_WAITING: usize = 1_000;

/// The member of an event's detail that says which event of its attempt it is. So a service that reads a journal again
/// knows which events the ledger has.
const ORDINAL: &str = "journal_event";
/// The member that says of which attempt.
const ATTEMPT: &str = "attempt";

/// An attempt under way.
#[derive(Debug)]
pub(super) struct Attempt {
    pub fence: Fence,
    /// By the service's steady time.
    pub since: Duration,
    /// Until its worker is there: when starting it is tried next.
    pub start_at: Option<Duration>,
    /// This service has started its worker.
    pub started: bool,
    /// Its worker has said that it began.
    pub began: bool,
    /// It was told to end.
    pub leaves: bool,
    /// The deadline that its worker knows of; `None` where an earlier service has started it.
    pub deadline: Option<Option<Moment>>,
    /// What the task had done when the attempt began.
    before: (u64, u64),
    /// The latest sample that the ledger does not have.
    pub sample: Option<Sample>,
    pub saved_at: Option<Duration>,
    pub told_progress_at: Option<Duration>,
    pub events: VecDeque<NewEvent>,
    dropped: u64,
    /// Events of the journal so far, and those that the ledger had before.
    heard: u64,
    known: u64,
    /// The ledger did not say whether it has the events: it is asked before they are written again.
    pub uncertain: bool,
    pub end: Option<AttemptEnd>,
    /// Where it was at work, and what failed there.
    pub visits: Vec<EndVisit>,
    /// Its worker is gone. In words, where it ended by a fault that no record tells.
    pub gone: Option<Option<String>>,
}

impl Attempt {
    /// Of a task that has just been claimed, or that an earlier service has claimed; of the latter the ledger has
    /// `known` events.
    pub fn new(task: &Task, since: Duration, known: u64) -> Self {
        Self {
            fence: task.fence,
            since,
            start_at: None,
            started: false,
            began: false,
            leaves: false,
            deadline: None,
            before: done(&task.progress),
            sample: None,
            saved_at: None,
            told_progress_at: None,
            events: VecDeque::new(),
            dropped: 0,
            heard: 0,
            known,
            uncertain: false,
            end: None,
            visits: Vec::new(),
            gone: None,
        }
    }

    /// Takes in what its worker told.
    pub fn hear(&mut self, task: &Task, what: What) {
        match what {
            What::Record(Record::Began { .. }) => self.began = true,
            What::Record(Record::Sample(sample)) => self.sample = Some(sample),
            What::Record(Record::Event { time, kind, text, detail }) => {
                self.heard += 1;
                if self.heard > self.known {
                    let detail = self.detail(&detail, time.to_string());
                    self.push(event(task, kind, text, detail));
                }
            }
            What::Record(Record::Ended(end)) => self.end = Some(end),
            What::Record(Record::Visited(visit)) => merge_visits(&mut self.visits, &[visit]),
            What::Gone { why, .. } => self.gone = Some(why),
            // Of items and of pairs only workers need to know: the service counts by samples.
            What::Record(_) => {}
        }
    }

    fn detail(&self, detail: &str, time: String) -> serde_json::Value {
        let mut detail = match serde_json::from_str(detail) {
            Ok(serde_json::Value::Object(members)) => members,
            Ok(serde_json::Value::Null) | Err(_) => serde_json::Map::new(),
            Ok(other) => serde_json::Map::from_iter([("told".to_owned(), other)]),
        };
        detail.insert(ORDINAL.to_owned(), self.heard.into());
        detail.insert(ATTEMPT.to_owned(), self.fence.into());
        detail.insert("time".to_owned(), time.into());
        detail.into()
    }

    fn push(&mut self, event: NewEvent) {
        if self.events.len() == EVENTS_WAITING {
            self.events.pop_front();
            self.dropped += 1;
        }
        self.events.push_back(event);
    }

    /// Events for the ledger, which stay here until [`Self::saved`].
    pub fn unsaved(&self, task: &Task) -> Vec<NewEvent> {
        let mut events: Vec<NewEvent> = self.events.iter().cloned().collect();
        if self.dropped > 0 {
            let text = format!("{} events before this one were lost: the ledger took none", self.dropped);
            let detail = serde_json::json!({ "lost": self.dropped });
            events.insert(0, event(task, EventKind::Note, text, detail));
        }
        events
    }

    /// The ledger has so many events of this attempt, as it says now.
    pub fn settle_doubt(&mut self, known: u64) {
        let fence = self.fence;
        self.events.retain(|event| ordinal(&event.detail, fence).is_none_or(|ordinal| ordinal > known));
        self.uncertain = false;
    }

    /// The ledger has the events and the sample.
    pub fn saved(&mut self, now: Duration) {
        self.events.clear();
        self.dropped = 0;
        self.sample = None;
        self.saved_at = Some(now);
    }

    /// What the task has done by now, by its latest sample: items and bytes.
    pub fn done(&self, task: &Task) -> (u64, u64) {
        done(self.sample.as_ref().map_or(&task.progress, |sample| &sample.progress))
    }

    /// Whether this attempt has moved anything yet, by its latest sample.
    pub fn got_somewhere(&self, task: &Task) -> bool {
        self.done(task) > self.before
    }
}

fn done(progress: &Progress) -> (u64, u64) {
    (progress.items_done, progress.bytes_moved)
}

/// An event of a task.
pub(super) fn event(task: &Task, kind: EventKind, text: String, detail: serde_json::Value) -> NewEvent {
    NewEvent { kind, owner: task.owner.clone(), task: Some(task.id.clone()), subject: None, text, detail }
}

/// The ordinal of an event that came from a journal, if it is of this attempt.
pub(super) fn ordinal(detail: &serde_json::Value, fence: Fence) -> Option<u64> {
    let number = |name| detail.get(name).and_then(serde_json::Value::as_u64);
    number(ORDINAL).filter(|_| number(ATTEMPT) == Some(fence))
}
