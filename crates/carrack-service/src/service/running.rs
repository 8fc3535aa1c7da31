//! The dispatcher's thread, and how others reach it.

use carrack_engine::sync::{lock, unpoisoned};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use carrack_engine::threads;

use super::dispatcher::{Dispatcher, Parts, Settings, Turned};
use crate::ledger::LedgerError;
use crate::schedule::Outlook;

/// Where the ledger does not answer, the next turn comes after this time.
const TROUBLE_PAUSE: Duration = Duration::from_secs(1);
/// Turns while workers are waited for that were told to end.
const DRAIN_PAUSE: Duration = Duration::from_millis(100);

/// A service that runs.
#[derive(Debug)]
pub struct Service;

/// Has the dispatcher look at the ledger at once. Whoever writes into the ledger calls it; where it is forgotten, the
/// dispatcher looks within a second.
#[derive(Clone, Debug)]
pub struct Waker {
    shared: Arc<Shared>,
}

/// How the dispatcher is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Whether its thread is there.
    pub alive: bool,
    /// Since the last turn ended.
    pub last_turn: Duration,
    /// What the ledger refused in the last turn, in words.
    pub trouble: Option<String>,
    /// Tasks with a worker.
    pub running: usize,
    /// Tasks that have not ended.
    pub open: usize,
}

/// A hold on the dispatcher. Dropping it leaves the dispatcher running; [`Handle::drain`] ends it.
#[derive(Debug)]
pub struct Handle {
    shared: Arc<Shared>,
    outlook: Arc<Outlook>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    woken: bool,
    /// Whether workers are to be ended, too, and until when they are waited for.
    drain: Option<(bool, Instant)>,
    settings: Option<Settings>,
    ended: bool,
    last_turn: Instant,
    trouble: Option<String>,
    running: usize,
    open: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Service {
    /// Starts the dispatcher in a thread of its own. It reads the ledger and finds the workers of an earlier service.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn start(parts: Parts, settings: Settings) -> io::Result<Handle> {
        let mut dispatcher = Dispatcher::new(parts, settings);
        let outlook = dispatcher.outlook();
        let state = State {
            woken: false,
            drain: None,
            settings: None,
            ended: false,
            last_turn: Instant::now(),
            trouble: None,
            running: 0,
            open: 0,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let of_thread = shared.clone();
        let thread = threads::start_named("dispatcher", move || {
            // Also by a panic: whoever watches sees that the thread is gone.
            let _ended = Ended(of_thread.clone());
            run(&mut dispatcher, &of_thread);
        })?;
        Ok(Handle { shared, outlook, thread })
    }
}

struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.changed.notify_all();
    }
}

fn run(dispatcher: &mut Dispatcher, shared: &Shared) {
    let mut draining: Option<(bool, Instant)> = None;
    loop {
        let turned = dispatcher.turn();
        let mut state = shared.lock();
        state.last_turn = Instant::now();
        (state.running, state.open) = dispatcher.counts();
        note_trouble(&mut state, turned.as_ref().err());
        if let Some((stop_workers, until)) = draining
            && (!stop_workers || state.running == 0 || Instant::now() >= until)
        {
            return;
        }
        let next = match &turned {
            _ if draining.is_some() => DRAIN_PAUSE,
            Ok(Turned { next, .. }) => *next,
            Err(_) => TROUBLE_PAUSE,
        };
        let calls = |state: &mut State| {
            !state.woken && state.settings.is_none() && (state.drain.is_none() || draining.is_some())
        };
        let (mut state, _) = unpoisoned(shared.changed.wait_timeout_while(state, next, calls));
        state.woken = false;
        let (settings, drain) = (state.settings.take(), state.drain);
        drop(state);
        if let Some(settings) = settings {
            dispatcher.set_settings(settings);
        }
        if draining.is_none()
            && let Some((stop_workers, _)) = drain
        {
            dispatcher.drain(stop_workers);
            draining = drain;
        }
    }
}

fn note_trouble(state: &mut State, error: Option<&LedgerError>) {
    let trouble = error.map(ToString::to_string);
    if trouble != state.trouble {
        match &trouble {
            Some(why) => tracing::error!(why, "the ledger does not take what it should; running work goes on"),
            None => tracing::info!("the ledger answers again"),
        }
        state.trouble = trouble;
    }
}

impl Waker {
    /// Has the dispatcher take a turn now.
    pub fn wake(&self) {
        self.shared.lock().woken = true;
        self.shared.changed.notify_all();
    }
}

impl Handle {
    /// For whoever writes into the ledger.
    pub fn waker(&self) -> Waker {
        Waker { shared: self.shared.clone() }
    }

    /// Places in the queue, for the API.
    pub fn outlook(&self) -> Arc<Outlook> {
        self.outlook.clone()
    }

    /// How it is, for health checks and watchdogs.
    pub fn health(&self) -> Health {
        let state = self.shared.lock();
        Health {
            alive: !state.ended,
            last_turn: state.last_turn.elapsed(),
            trouble: state.trouble.clone(),
            running: state.running,
            open: state.open,
        }
    }

    /// Takes over other settings with the next turn, which comes at once.
    pub fn set_settings(&self, settings: Settings) {
        self.shared.lock().settings = Some(settings);
        self.shared.changed.notify_all();
    }

    /// Ends the dispatcher. Workers run on, and the next service finds them; with `stop_workers` they are told to end,
    /// and are waited for until the grace is over. Their attempts are given back, and count for nothing.
    ///
    /// # Errors
    /// Where the dispatcher has panicked.
    pub fn drain(self, stop_workers: bool, grace: Duration) -> Result<(), &'static str> {
        self.shared.lock().drain = Some((stop_workers, Instant::now() + grace));
        self.shared.changed.notify_all();
        self.thread.join().map_err(|_| "the dispatcher has panicked; its tasks go on with the next service")
    }
}
