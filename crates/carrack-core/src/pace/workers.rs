//! How many calls to a file system's metadata are under way at once, found out while a transfer runs. Pure: calls in,
//! a number out. A transfer has a controller for each kind of call: looking at files, opening them, making them, giving
//! them their names.
//!
//! # When it matters
//! A file system whose metadata is on a server answers each call late, and several at once as fast as one, up to what
//! the server can do; beyond, they wait for each other there. Where the median call takes less than
//! [`Tuning::metadata_worth`] nothing is done: the threads that need the calls make them, and another thread would cost
//! more than it brings.
//!
//! # What is followed
//! The *ratio*: the median time of the calls now, over what it is where none waits for another. Below 1.3 there may be
//! more workers, above 1.8 there are fewer, in between they stay as they are. More are tried only where those that
//! there are have been in use.
//!
//! What a call takes where none waits is measured in a *look*: for 32 calls, or a tenth of a second, there is one
//! worker. The first comes a few seconds after the beginning, then one every half a minute, or earlier where there are
//! fewer workers and calls still take as long. Without that it would creep up with the workers. Where the tenth
//! percentile of the medians since is lower, that counts: a look may fall into a bad moment. Medians are compared with
//! medians, so that calls which differ by themselves do not look like calls that wait.
//!
//! # How it is looked for
//! Twice as many after each window, as long as the ratio stays below 1.3. Where twice as many get more done, but not
//! enough, half as many more are tried. From then on an eighth more now and then.
//! More are kept if they get more done, by a tenth of what they could at least, and the ratio is not above 1.8; else
//! the number before comes back (a trial has two windows), and the pause before the next trial becomes twice as long.
//! Above 1.8 the number is divided by what the ratio is too high, at most by two; as soon as the ratio is below 1.3
//! again, the number before that is tried once.
//!
//! A window is 50 ms long, or as long as 32 calls take (16 where twice as many are tried each time). Only calls that
//! began with the number that is measured count.

mod seen;
#[cfg(test)]
mod simulation;
mod window;

use std::time::Duration;

use self::seen::SeenMedians;
use self::window::CallWindow;
use crate::tuning::Tuning;

/// There may be more workers below this ratio.
const GROW: f64 = 1.3;
/// There are fewer workers above this ratio.
const SHRINK: f64 = 1.8;
/// Before more are tried after a trial that was not kept; each further doubles it.
const PAUSE: Duration = Duration::from_secs(1);
/// See [`PAUSE`].
const PAUSE_LONGEST: Duration = Duration::from_secs(30);
/// The first look comes so long after the calls have been found to be slow: short transfers end without one, and of few
/// threads that make calls none waited for another.
const LOOK_FIRST: Duration = Duration::from_secs(5);
/// The same where there are many.
const LOOK_FIRST_OF_MANY: Duration = Duration::from_secs(1);
/// Between two looks: a server's load changes.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Calls of a look.
const LOOK_CALLS: usize = 32;
/// A look is long enough after this, if it has [`LOOK_CALLS_LEAST`].
const LOOK_ENOUGH: Duration = Duration::from_millis(100);
/// A look is over after this; with fewer calls it has shown nothing.
const LOOK_LONGEST: Duration = Duration::from_millis(500);
/// Between two looks where there are fewer workers and calls still take as long.
const LOOK_SOON: Duration = Duration::from_secs(3);
/// More workers get so much of what they could get done beside the others, at least.
const GAIN: f64 = 0.1;
/// See [`LOOK_ENOUGH`].
const LOOK_CALLS_LEAST: usize = 8;
/// Beyond so many, those that there are at the beginning may be too many: a look comes before more are tried.
const FEW: u16 = 8;

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub struct MetadataCall {
    /// When it began, since the controller did.
    pub began: Duration,
    /// When it ended.
    pub ended: Duration,
    /// Calls that were under way when it began, itself included.
    pub alongside: u16,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Calls are short: whoever needs them makes them.
    Idle,
    /// Twice as many after each window; `good` was good.
    Rising { good: Level },
    /// At the best number that is known; more are tried after `until`, and `pause` is the pause before that. There were
    /// `more` until calls took too long.
    Holding { until: Duration, pause: Duration, more: Option<u16> },
    /// More than `from` are tried; with `again` one window has spoken against them.
    Trying { from: Level, pause: Duration, again: bool },
}

/// What a number of workers gets done.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Level {
    workers: u16,
    /// Calls a second.
    rate: f64,
}

impl Level {
    /// So many workers, of which each needs this for a call.
    fn of(workers: u16, median: Duration) -> Self {
        Self { workers, rate: f64::from(workers) / median.as_secs_f64().max(1e-9) }
    }

    /// Whether these, which are more, are worth it.
    fn is_worth_more_than(&self, fewer: &Self) -> bool {
        let more = f64::from(self.workers) / f64::from(fewer.workers) - 1.0;
        self.rate >= fewer.rate * (1.0 + GAIN * more)
    }
}

/// One worker shows what a call takes.
#[derive(Clone, Copy, Debug)]
struct LookAlone {
    since: Duration,
}

/// Finds the number of workers for one kind of call.
#[derive(Clone, Debug)]
pub struct WorkerControl {
    worth: Duration,
    most: u16,
    /// It is not found out, but this.
    fixed: Option<u16>,
    /// What an earlier transfer has found.
    kept: Option<u16>,
    /// Threads that make such calls by themselves.
    callers: u16,
    workers: u16,
    phase: Phase,
    window: CallWindow,
    seen: SeenMedians,
    look: Option<LookAlone>,
    next_look: Duration,
    has_looked: bool,
    /// When the last look ended.
    looked: Duration,
}

impl WorkerControl {
    /// Before the first call.
    pub fn new(tuning: &Tuning) -> Self {
        let fixed = Some(tuning.metadata_workers).filter(|workers| *workers > 0);
        Self {
            worth: tuning.metadata_worth,
            most: tuning.metadata_workers_most,
            fixed,
            kept: None,
            callers: 1,
            workers: fixed.unwrap_or(1),
            phase: Phase::Idle,
            window: CallWindow::default(),
            seen: SeenMedians::default(),
            look: None,
            next_look: Duration::ZERO,
            has_looked: false,
            looked: Duration::ZERO,
        }
    }

    /// Begins with what an earlier transfer has found, where calls are slow.
    pub fn handle_kept(&mut self, workers: u16) {
        self.kept = Some(workers.clamp(1, self.most));
    }

    /// So many threads make such calls by themselves.
    pub fn handle_callers(&mut self, callers: u16) {
        self.callers = callers.max(1);
    }

    /// Whether the number counts: calls are slow, or it is fixed. Else whoever needs a call makes it.
    pub fn governs(&self) -> bool {
        self.fixed.is_some() || self.phase != Phase::Idle
    }

    /// Calls that may be under way at once.
    pub fn workers(&self) -> u16 {
        match (self.fixed, self.phase, self.look) {
            (Some(fixed), ..) => fixed,
            (None, Phase::Idle, _) => self.callers,
            (None, _, Some(_)) => 1,
            (None, _, None) => self.workers,
        }
    }

    /// The best number that is known, and calls a second with it; `None` while it is looked for, and where calls are
    /// not slow.
    pub fn found(&self) -> Option<(u16, f64)> {
        let workers = match self.phase {
            Phase::Holding { .. } => self.workers,
            Phase::Trying { from, .. } => from.workers,
            Phase::Idle | Phase::Rising { .. } => return None,
        };
        Some((workers, Level::of(workers, self.seen.last()?).rate))
    }

    /// A call has ended.
    pub fn handle_call(&mut self, call: MetadataCall) {
        if self.fixed.is_some() {
            return;
        }
        if let Some(look) = self.look {
            if call.began >= look.since && call.alongside <= 1 {
                self.window.add(call, 1);
            }
            return self.look_on(look, call.ended);
        }
        let workers = self.workers();
        self.window.add(call, workers);
        let few = matches!(self.phase, Phase::Rising { .. });
        if self.window.is_full(call.ended, workers, few) {
            self.conclude(call.ended);
        }
    }

    /// Time goes by without a call that ends: a look must not hold up everything behind a call that hangs.
    pub fn handle_time(&mut self, now: Duration) {
        if let Some(look) = self.look {
            self.look_on(look, now);
        }
    }

    fn look_on(&mut self, look: LookAlone, now: Duration) {
        let calls = self.window.calls();
        let time = now.saturating_sub(look.since);
        let is_enough = calls >= LOOK_CALLS || (calls >= LOOK_CALLS_LEAST && time >= LOOK_ENOUGH);
        if !is_enough && time < LOOK_LONGEST {
            return;
        }
        if calls >= LOOK_CALLS_LEAST {
            self.seen = SeenMedians::of_look(self.window.median());
            self.has_looked = true;
        }
        (self.look, self.looked, self.next_look) = (None, now, now.saturating_add(LOOK_EVERY));
        self.window.restart(now);
    }

    /// A window is over.
    fn conclude(&mut self, now: Duration) {
        let (median, used) = (self.window.median(), self.window.was_used());
        self.window.restart(now);
        if self.phase == Phase::Idle {
            if median >= self.worth {
                self.begin(now, median);
            }
            return;
        }
        if median < self.worth / 2 {
            (self.phase, self.seen) = (Phase::Idle, SeenMedians::default());
            return;
        }
        self.seen.add(median);
        if now >= self.next_look && self.workers > 1 {
            self.look = Some(LookAlone { since: now });
            return;
        }
        let ratio = median.as_secs_f64() / self.seen.alone().as_secs_f64();
        let before = self.workers;
        self.follow(now, ratio, used, Level::of(before, median));
        if self.workers != before {
            // What began with another number says nothing of this one.
            self.window.restart(now);
        }
    }

    /// Calls have been found to be slow.
    fn begin(&mut self, now: Duration, median: Duration) {
        self.seen.add(median);
        self.workers = self.callers.min(self.most);
        self.phase = Phase::Rising { good: Level::of(self.workers, median) };
        self.next_look = now.saturating_add(if self.workers > FEW { LOOK_FIRST_OF_MANY } else { LOOK_FIRST });
        if let Some(kept) = self.kept {
            self.workers = kept;
            self.phase = Phase::Holding { until: now.saturating_add(PAUSE), pause: PAUSE, more: None };
        }
    }

    fn follow(&mut self, now: Duration, ratio: f64, used: bool, level: Level) {
        let hold = |pause: Duration| Phase::Holding { until: now.saturating_add(pause), pause, more: None };
        let good =
            |fewer: &Level| ratio <= SHRINK && (level.workers <= fewer.workers || level.is_worth_more_than(fewer));
        match self.phase {
            Phase::Idle => {}
            // Where there are many at the beginning, no more are tried before a look.
            Phase::Rising { good: first }
                if level.workers > FEW && level.workers <= first.workers && !self.has_looked => {}
            Phase::Rising { good: fewer } if good(&fewer) => {
                let next = self.workers.saturating_mul(2).min(self.most);
                if used && ratio < GROW && next > self.workers {
                    (self.phase, self.workers) = (Phase::Rising { good: level }, next);
                } else {
                    self.phase = hold(PAUSE);
                }
            }
            // Twice as many got more done, and yet not enough: the best number may lie between.
            Phase::Rising { good: fewer } if level.rate > fewer.rate && fewer.workers > 1 => {
                self.workers = fewer.workers + fewer.workers / 2;
                self.phase = Phase::Trying { from: fewer, pause: PAUSE / 2, again: false };
            }
            Phase::Rising { good: fewer } => (self.workers, self.phase) = (fewer.workers, hold(PAUSE)),
            Phase::Holding { more, .. } if ratio > SHRINK => {
                let more = more.or(Some(self.workers));
                self.workers = self.fewer(ratio);
                // The server is another than that which the pause was found with.
                self.phase = Phase::Holding { until: now.saturating_add(PAUSE), pause: PAUSE, more };
                // It may be that the server needs longer by now whatever the number.
                self.next_look = self.next_look.min(self.looked.saturating_add(LOOK_SOON));
            }
            // A short delay of the server has passed, or these are as many as it takes by now: a trial tells.
            Phase::Holding { pause, more: Some(more), .. } if ratio < GROW && used && more > self.workers => {
                self.phase = Phase::Trying { from: level, pause, again: false };
                self.workers = more;
            }
            Phase::Holding { until, pause, .. } if ratio < GROW && used && now >= until => self.try_more(level, pause),
            Phase::Holding { .. } => {}
            Phase::Trying { from, .. } if good(&from) => {
                self.phase = hold(PAUSE);
                if used && ratio < GROW {
                    self.try_more(level, PAUSE);
                }
            }
            Phase::Trying { from, pause, again: false } if ratio <= SHRINK => {
                self.phase = Phase::Trying { from, pause, again: true };
            }
            Phase::Trying { from, pause, .. } => {
                let pause = pause.saturating_mul(2).min(PAUSE_LONGEST);
                (self.workers, self.phase) = (from.workers, hold(pause));
            }
        }
    }

    /// An eighth more, if there may be.
    fn try_more(&mut self, level: Level, pause: Duration) {
        let next = self.workers.saturating_add((self.workers / 8).max(1)).min(self.most);
        if next > self.workers {
            self.phase = Phase::Trying { from: level, pause, again: false };
            self.workers = next;
        }
    }

    /// So many that the ratio would be what it may be, if the calls' time is in proportion to them.
    fn fewer(&self, ratio: f64) -> u16 {
        let wanted = (f64::from(self.workers) * GROW / ratio) as u16;
        wanted.clamp((self.workers / 2).max(1), self.workers.saturating_sub(1).max(1))
    }
}
