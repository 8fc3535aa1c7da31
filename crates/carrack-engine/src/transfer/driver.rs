//! What both ends of a transfer have in common: a machine that threads share, the pump that carries out what it
//! decides, the threads, and how they all end.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use carrack_core::ids::StreamId;
use carrack_core::report::{Failure, Side};
use carrack_core::timeline::StartStep;
use carrack_core::transfer::machine::Machine;
use carrack_core::tuning::Tuning;
use carrack_core::wire::ProtocolError;
use carrack_core::wire::control::{self as told, Tell, TransferOptions};
use carrack_core::wire::peer::PeerMessage;
use carrack_sys::threads;

use super::Voice;
use crate::data::crew::Crew;
use crate::data::stages::Stages;
use crate::data::traffic::{Traffic, TrafficCount};
use crate::error::{protocol_failure, system_failure};
use crate::net::socket::Socket;
use crate::panics::contain;
use crate::sync::{Latch, lock, wait, wait_timeout};

/// One end's machine, and what drives it.
pub struct Driver<M: Machine> {
    machine: Mutex<M>,
    changed: Condvar,
    pub(super) options: TransferOptions,
    pub(super) tuning: Arc<Tuning>,
    pub(super) voice: Voice,
    /// Connections of the streams that are at work, to cut one off from another thread: its own may hang in a write.
    pub(super) sockets: Mutex<HashMap<StreamId, Arc<Socket>>>,
    /// Of these and of those that have gone.
    pub(super) traffic: TrafficCount,
    pub(super) stages: Arc<Stages>,
    /// The threads of the streams.
    pub(super) crew: Arc<Crew>,
    pub(super) sampling: Sampling,
    /// The transfer has ended: for threads that wait for nothing that the machine decides.
    pub(super) over: Latch,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The thread that takes samples.
#[derive(Default)]
pub(super) struct Sampling {
    /// The transfer is over: one more, and no further.
    pub(super) stop: Latch,
    /// Nothing more may be told.
    pub(super) silent: Mutex<bool>,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

/// What one end does in each round of its pump.
pub(super) trait Pump<M: Machine> {
    /// Before the machine is asked what is to be done.
    fn prepare(&mut self);

    /// Sees the machine, and the actions that have just been taken from it, before they are carried out.
    fn look(&mut self, _machine: &M, _actions: &[M::Action]) {}

    /// How long the pump may rest when there is nothing to do and no deadline comes earlier.
    fn rest(&self) -> Duration;

    /// Does what the machine has decided.
    fn carry_out(&mut self, action: M::Action);

    /// A round is over; `last` when the transfer has ended and nothing is left to do.
    fn end_round(&mut self, _last: bool) {}
}

impl<M: Machine> Driver<M> {
    pub(super) fn new(machine: M, options: TransferOptions, voice: Voice, tuning: Arc<Tuning>) -> Arc<Self> {
        let stages = Arc::new(Stages::default());
        stages.step(StartStep::Begin);
        Arc::new(Self {
            machine: Mutex::new(machine),
            changed: Condvar::new(),
            options,
            tuning,
            voice,
            sockets: Mutex::default(),
            traffic: TrafficCount::default(),
            stages,
            crew: Arc::default(),
            sampling: Sampling::default(),
            over: Latch::default(),
            threads: Mutex::default(),
        })
    }

    /// Who changes something under this lock calls [`Self::wake`] afterwards.
    pub(super) fn lock(&self) -> MutexGuard<'_, M> {
        lock(&self.machine)
    }

    /// Tells the machine something, and wakes everybody.
    pub(super) fn tell<T>(&self, input: impl FnOnce(&mut M) -> T) -> T {
        let result = input(&mut self.lock());
        self.wake();
        result
    }

    /// Whoever waits looks again.
    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Gives the lock back until somebody is to look again.
    pub(super) fn wait<'a>(&self, machine: MutexGuard<'a, M>) -> MutexGuard<'a, M> {
        wait(&self.changed, machine)
    }

    /// As [`Self::wait`], for at most this long.
    pub(super) fn wait_timeout<'a>(&self, machine: MutexGuard<'a, M>, most: Duration) -> MutexGuard<'a, M> {
        wait_timeout(&self.changed, machine, most)
    }

    /// Hands something to whoever waits for it by [`Self::next_of`]. Under the machine's lock, under which they wait.
    pub(super) fn queue<T>(&self, queue: &Mutex<VecDeque<T>>, next: T) {
        self.tell(|_| lock(queue).push_back(next));
    }

    /// The next of a queue, as soon as there is one; `None` when the transfer has ended.
    pub(super) fn next_of<T>(&self, queue: &Mutex<VecDeque<T>>) -> Option<T> {
        let mut machine = self.lock();
        while machine.outcome().is_none() {
            let next = lock(queue).pop_front();
            if next.is_some() {
                return next;
            }
            machine = self.wait(machine);
        }
        None
    }

    /// Whether the transfer has ended.
    pub(super) fn is_over(&self) -> bool {
        self.lock().outcome().is_some()
    }

    /// See [`super::Running::cancel`].
    pub(super) fn cancel(&self, why: Failure) {
        self.tell(|machine| machine.fail(why));
    }

    /// Hands in what the peer said, if `check` has nothing against it.
    pub(super) fn handle_peer(&self, bytes: &[u8], check: impl FnOnce(&PeerMessage) -> Result<(), ProtocolError>) {
        self.tell(|machine| {
            let handled = PeerMessage::decode(bytes).and_then(|message| {
                check(&message)?;
                machine.handle_message(Instant::now(), message)
            });
            if let Err(error) = handled {
                let peer = if M::SIDE == Side::Source { Side::Destination } else { Side::Source };
                machine.fail(protocol_failure(peer, &error));
            }
        });
    }

    /// Starts a thread that somebody waits for. Should it panic, the transfer has failed: nobody is to wait for what it
    /// would have done.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn start_thread(
        self: &Arc<Self>,
        what: &'static str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<JoinHandle<()>, Failure> {
        let driver = Arc::clone(self);
        let contained = move || {
            if let Err(why) = contain(M::SIDE, what, work) {
                driver.cancel(why);
            }
        };
        threads::start(what, contained).map_err(|error| system_failure(M::SIDE, &error))
    }

    /// As [`Self::try_spawn`]. Where the system gives no thread, the transfer has failed.
    pub(super) fn spawn(self: &Arc<Self>, what: &'static str, work: impl FnOnce() + Send + 'static) {
        if let Err(why) = self.try_spawn(what, work) {
            self.cancel(why);
        }
    }

    /// As [`Self::start_thread`]; [`Self::join`] waits for it.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn try_spawn(
        self: &Arc<Self>,
        what: &'static str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), Failure> {
        let thread = self.start_thread(what, work)?;
        let mut threads = lock(&self.threads);
        // A long transfer sees many streams come and go.
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(())
    }

    /// Cuts a data connection off, if it is still there.
    pub(super) fn abort(&self, number: StreamId) {
        if let Some(socket) = lock(&self.sockets).get(&number) {
            socket.abort();
        }
    }

    /// The addresses of a data connection, this host's and the other's; `None` where there is none that has any.
    pub(super) fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        let sockets = lock(&self.sockets);
        sockets.values().find_map(|socket| {
            let Socket::Tcp(tcp) = &**socket else { return None };
            let (here, there) = (tcp.local_addr().ok()?, tcp.peer_addr().ok()?);
            Some((here.ip().to_canonical(), there.ip().to_canonical()))
        })
    }

    /// Cuts all data connections off.
    pub(super) fn abort_all(&self) {
        for socket in lock(&self.sockets).values() {
            socket.abort();
        }
    }

    /// See [`super::Running::join`].
    pub(super) fn join(&self) {
        // A stream whose peer says nothing more and does not hang up would wait for ever, and so would this.
        self.abort_all();
        self.join_sampling();
        // The lock is given back before each wait: a thread that is waited for may itself be starting one.
        while let Some(thread) = { lock(&self.threads).pop() } {
            let _ = thread.join();
        }
    }

    /// Pumps until the transfer has ended, and tells how. After a panic nobody carries out any more what the machine
    /// decides: the peer is told here.
    pub(super) fn pump_to_the_end(&self, pump: &mut impl Pump<M>) -> Result<(), Failure> {
        let outcome = contain(M::SIDE, "the pump", || self.pump(pump)).unwrap_or_else(|why| {
            self.cancel(why.clone());
            self.over.set();
            let _ = contain(M::SIDE, "the last word", || (self.voice.peer)(&PeerMessage::Fail(why.clone())));
            Err(why)
        });
        self.end_sampling(outcome.is_err());
        outcome
    }

    /// Carries out what the machine decides, until the transfer has ended; tells how.
    fn pump(&self, pump: &mut impl Pump<M>) -> Result<(), Failure> {
        let mut reports = StageReports::new(&self.tuning);
        loop {
            pump.prepare();
            let mut machine = self.lock();
            // The machine has no clock: what it decides after a while, it decides when it is told the time.
            machine.handle_time(Instant::now());
            let actions: Vec<_> = std::iter::from_fn(|| machine.poll_action()).collect();
            let outcome = machine.outcome();
            if outcome.is_some() {
                self.over.set();
            }
            pump.look(&machine, &actions);
            let idle = actions.is_empty();
            if idle && outcome.is_none() {
                // Woken by any input.
                let most = pump.rest();
                let deadline = machine.next_deadline();
                let left = deadline.map_or(most, |deadline| deadline.saturating_duration_since(Instant::now()));
                drop(self.wait_timeout(machine, left.min(most)));
            } else {
                // Without the lock: an action may wait for a file or for the connection, and the streams need the
                // machine meanwhile.
                drop(machine);
            }
            actions.into_iter().for_each(|action| pump.carry_out(action));
            // Only when there is nothing left to do: the last actions tell the other side how it ended.
            let last = outcome.filter(|_| idle);
            pump.end_round(last.is_some());
            reports.tell(&self.voice, &self.stages, || self.traffic.so_far(&self.sockets), last.is_some());
            if let Some(outcome) = last {
                return outcome;
            }
        }
    }
}

/// Tells the command now and then where the time of this end's streams goes, and what they carry.
struct StageReports {
    interval: Duration,
    start: Instant,
    told: Instant,
}

impl StageReports {
    fn new(tuning: &Tuning) -> Self {
        let now = Instant::now();
        Self { interval: tuning.stages_interval, start: now, told: now }
    }

    /// If it is time to, or if this is the last time.
    fn tell(&mut self, voice: &Voice, stages: &Stages, traffic: impl FnOnce() -> Traffic, last: bool) {
        if !last && self.told.elapsed() < self.interval {
            return;
        }
        self.told = Instant::now();
        let Traffic { delivered, segments, repeated } = traffic();
        let (times, at) = (stages.times(), self.start.elapsed());
        (voice.command)(Tell::Stages(told::Stages { times, at, delivered, segments, repeated }));
    }
}
