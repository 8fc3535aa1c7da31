//! Tells others what has ended: for each such event a program of the operator's is run, with a document of it as JSON
//! on standard input. No shell reads anything, and no user chooses the program.
//!
//! Events are read from the ledger behind a number that is kept in a file: what a service that was killed had not told
//! is told by the next one. An event may be told twice, and never out of order; its number says which it is. A program
//! that fails is run again after a pause, a few times; one that does not end is killed. It holds up nobody but the
//! events behind its own.

mod document;
mod program;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use carrack_engine::secrets::write_whole;
use carrack_engine::sync::lock;
use carrack_engine::threads;

use self::document::{is_told, notice_document};
use self::program::NoticeProgram;
use crate::ledger::{Answer, EventFilter, Ledger, LedgerError};
use crate::model::{Event, Notice, Secret, Task};

/// How often new events are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Events that are read at once.
const EVENTS_AT_ONCE: usize = 500;
/// Between two attempts to tell one event.
const PAUSES: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(60)];
/// How long a program may run.
const PROGRAM_MOST: Duration = Duration::from_secs(30);

/// What an operator chooses.
#[derive(Clone, Default)]
pub struct NotifyConfig {
    /// The program and its arguments; without it nothing is run.
    pub command: Vec<String>,
    /// Ends of tasks that do not say themselves which of their ends are told. With `failed`, left-out and last runs of
    /// timers, too.
    pub ends: Vec<Notice>,
    /// What signs the document, for whoever gets it passed on.
    pub key: Option<Secret>,
}

impl fmt::Debug for NotifyConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotifyConfig").field("command", &self.command).field("ends", &self.ends).finish_non_exhaustive()
    }
}

/// How long things take; tests are shorter of time.
#[derive(Clone, Copy, Debug)]
struct NotifyTimes {
    look: Duration,
    pauses: [Duration; 2],
    program: Duration,
}

const TIMES: NotifyTimes = NotifyTimes { look: LOOK_EVERY, pauses: PAUSES, program: PROGRAM_MOST };

/// The end of the service is wanted.
#[derive(Debug, Default)]
struct Ending {
    wanted: Mutex<bool>,
    changed: Condvar,
}

impl Ending {
    /// Waits for so long. Whether the end is wanted.
    fn wait(&self, time: Duration) -> bool {
        let wanted = lock(&self.wanted);
        match self.changed.wait_timeout_while(wanted, time, |wanted| !*wanted) {
            Ok((wanted, _)) => *wanted,
            Err(_) => true,
        }
    }

    fn is_wanted(&self) -> bool {
        *lock(&self.wanted)
    }
}

/// The thread that tells.
pub struct Notifier {
    ending: Arc<Ending>,
    thread: JoinHandle<()>,
}

impl Notifier {
    /// Begins to tell what happens from now on, or from where the last one stopped: the number of the last event that
    /// was dealt with is kept in the file `kept`. Nothing is begun without a program.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(config: NotifyConfig, ledger: Arc<dyn Ledger>, kept: PathBuf) -> io::Result<Option<Self>> {
        Self::start_with(config, ledger, kept, TIMES)
    }

    fn start_with(
        config: NotifyConfig,
        ledger: Arc<dyn Ledger>,
        kept: PathBuf,
        times: NotifyTimes,
    ) -> io::Result<Option<Self>> {
        if config.command.is_empty() {
            return Ok(None);
        }
        let ending: Arc<Ending> = Arc::default();
        let mut telling = Telling { config, ledger, kept, times, ending: Arc::clone(&ending) };
        let thread = threads::start_named("notify", move || telling.run())?;
        Ok(Some(Self { ending, thread }))
    }

    /// Ends it. A program that is running is killed; its event is told by the next service.
    pub fn stop(self) {
        *lock(&self.ending.wanted) = true;
        self.ending.changed.notify_all();
        // A thread that has panicked tells nothing more, and has been told of.
        let _ = self.thread.join();
    }
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifier").finish_non_exhaustive()
    }
}

struct Telling {
    config: NotifyConfig,
    ledger: Arc<dyn Ledger>,
    kept: PathBuf,
    times: NotifyTimes,
    ending: Arc<Ending>,
}

impl Telling {
    fn run(&mut self) {
        let mut since = loop {
            match self.begin() {
                Ok(since) => break since,
                Err(error) => tracing::warn!(target: "carrack::notify", "the events cannot be read: {error}"),
            }
            if self.ending.wait(self.times.look) {
                return;
            }
        };
        while !self.ending.wait(self.times.look) {
            if let Err(error) = self.turn(&mut since) {
                tracing::warn!(target: "carrack::notify", "the events cannot be read: {error}");
            }
        }
    }

    /// Behind which event it goes on: the last one that was dealt with. Where none is known, what has happened until
    /// now is nobody's news.
    fn begin(&self) -> Answer<u64> {
        let (last, _) = self.ledger.event_range()?;
        let kept = std::fs::read_to_string(&self.kept).ok().and_then(|text| text.trim().parse::<u64>().ok());
        // A ledger that was restored has fewer events.
        let since = kept.map_or(last, |kept| kept.min(last));
        self.keep(since);
        Ok(since)
    }

    /// Deals with what is new. `since` is the number of the last event that was dealt with, also after an error.
    fn turn(&self, since: &mut u64) -> Answer<()> {
        loop {
            let filter = EventFilter { since: *since, ..EventFilter::default() };
            let events = self.ledger.events(&filter, EVENTS_AT_ONCE)?;
            let is_last = events.len() < EVENTS_AT_ONCE;
            let before = *since;
            for event in &events {
                if !self.deal_with(event)? {
                    return Ok(());
                }
                *since = event.id;
            }
            if *since != before {
                self.keep(*since);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// The task of an event that may be told, if there is one still.
    fn task_of(&self, event: &Event) -> Answer<Option<Task>> {
        let Some(id) = event.task.as_deref().filter(|_| document::may_be_told(event)) else { return Ok(None) };
        match self.ledger.task(id) {
            Ok(task) => Ok(Some(task)),
            Err(LedgerError::Missing) => Ok(None),
            // Its notice is not lost: the event is dealt with once the ledger answers.
            Err(error) => Err(error),
        }
    }

    /// Tells an event, if it is one to be told. Not whether the end of the service came first.
    fn deal_with(&self, event: &Event) -> Answer<bool> {
        let task = self.task_of(event)?;
        if !is_told(event, task.as_ref(), &self.config.ends) {
            return Ok(true);
        }
        let program = NoticeProgram {
            command: &self.config.command,
            key: self.config.key.as_ref(),
            most: self.times.program,
            is_over: &|| self.ending.is_wanted(),
        };
        let body = notice_document(event, task.as_ref());
        let pauses = self.times.pauses.into_iter().map(Some).chain([None]);
        for (attempt, pause) in (1..).zip(pauses) {
            let why = match program.run(event, &body) {
                Ok(()) => {
                    tracing::debug!(target: "carrack::notify", event = event.id, attempt, "told");
                    self.keep(event.id);
                    return Ok(true);
                }
                Err(why) => why,
            };
            if self.ending.is_wanted() {
                return Ok(false);
            }
            let (event, kind) = (event.id, event.kind.name());
            match pause {
                Some(pause) => {
                    let pause = pause.as_secs();
                    tracing::warn!(target: "carrack::notify", event, kind, attempt, "not told: {why}; again in {pause} s");
                }
                None => {
                    tracing::error!(target: "carrack::notify", event, kind, attempt, "not told, and given up: {why}")
                }
            }
            if pause.is_some_and(|pause| self.ending.wait(pause)) {
                return Ok(false);
            }
        }
        self.keep(event.id);
        Ok(true)
    }

    fn keep(&self, since: u64) {
        if let Err(error) = write_whole(&self.kept, format!("{since}\n").as_bytes()) {
            tracing::warn!(target: "carrack::notify", "{}: {error}", self.kept.display());
        }
    }
}

#[cfg(test)]
mod tests;
