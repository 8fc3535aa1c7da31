//! The dispatcher: ledger, schedule and workers, in turns.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::attempt::{Attempt, event};
use super::board::{Board, Known, News, Times};
use super::orders::{NoOrder, Orders, Unseal};
use super::outcome::failure_of;
use super::timers::Timers;
use super::{StartFault, Workers};
use crate::clock::Clock;
use crate::ledger::{Answer, Ledger, LedgerError, Page, Retention, TaskFilter};
use crate::model::{Endpoint, EndpointLimits, EventKind, Secret, TaskState};
use crate::schedule::{
    Decision, EndpointState, Health as Links, History, Outlook, Patience, Plan, Rules, Shares, View, plan, rate_now,
};

/// All rows are read again after this time, whatever the events say.
const RELOAD_EVERY: Duration = Duration::from_secs(60);
/// Old rows are removed once in this time, so many at once.
const FORGET_EVERY: Duration = Duration::from_secs(60);
const FORGOTTEN_AT_ONCE: usize = 500;
/// A worker of an earlier attempt that is still there is waited for so long before the start is tried again.
const STILL_HELD_PAUSE: Duration = Duration::from_millis(500);
/// A turn follows after this time at the latest: while workers run, and while none does.
const TURN_EVERY_RUNNING: Duration = Duration::from_millis(200);
const TURN_EVERY_IDLE: Duration = Duration::from_secs(1);
/// It is looked once in this time whether running tasks may go on.
const RIGHTS_EVERY: Duration = Duration::from_secs(1);
/// Where nothing has changed, the schedule is looked at once in this time: while workers run, and while none does. It
/// takes at most one part in `PLAN_SHARE` of a processor.
const PLAN_EVERY_RUNNING: Duration = Duration::from_secs(1);
const PLAN_EVERY_IDLE: Duration = Duration::from_secs(60);
const PLAN_SHARE: u32 = 50;
/// Finished tasks that tell what links did before, when the service starts.
const HISTORY_TASKS: usize = 500;

/// What an operator chooses.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How much at once.
    pub rules: Rules,
    /// Pauses between attempts.
    pub patience: Patience,
    /// Tasks that have ended are kept for so long; for ever where nothing is said.
    pub keep_tasks: Option<Duration>,
    /// Events are kept for so long.
    pub keep_events: Option<Duration>,
    /// By how much workers give way to other processes: 0 (not at all) to 19. Those at work stay as they are.
    pub worker_nice: u8,
    /// The user who is whoever runs the service: their tasks may name any location.
    pub service_owner: String,
}

impl Default for Settings {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 3600);
        Self {
            rules: Rules::default(),
            patience: Patience::default(),
            keep_tasks: None,
            keep_events: Some(day * 90),
            worker_nice: 0,
            service_owner: "local".to_owned(),
        }
    }
}

/// What a dispatcher works with.
pub struct Parts {
    /// What must not be lost.
    pub ledger: Arc<dyn Ledger>,
    /// Who carries out.
    pub workers: Box<dyn Workers>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Opens tokens of endpoints.
    pub seal: Arc<dyn Unseal>,
    /// Signs receipts.
    pub receipt_key: Secret,
    /// The directory with a directory for each task.
    pub tasks: PathBuf,
    /// Makes identifiers of tasks that timers submit.
    pub ids: Box<dyn FnMut() -> String + Send>,
    /// Called after a turn that has written something.
    pub changed: Arc<dyn Fn() + Send + Sync>,
}

/// What a turn did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turned {
    /// A task has changed.
    pub wrote: bool,
    /// Progress was written.
    pub saved: bool,
    /// A plan was made.
    pub planned: bool,
    /// The next turn follows after this time at the latest.
    pub next: Duration,
}

/// Ledger, schedule and workers, in turns.
pub struct Dispatcher {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) workers: Box<dyn Workers>,
    clock: Arc<dyn Clock>,
    orders: Orders,
    ids: Box<dyn FnMut() -> String + Send>,
    changed: Arc<dyn Fn() + Send + Sync>,
    pub(super) settings: Settings,
    pub(super) board: Board,
    pub(super) health: Links,
    shares: Shares,
    pub(super) history: History,
    pub(super) outlook: Arc<Outlook>,
    timers: Timers,
    endpoints: Option<BTreeMap<String, Endpoint>>,
    loaded_at: Option<Duration>,
    forgot_at: Duration,
    /// Something has changed since the last plan.
    news: bool,
    /// When the next plan is made, whatever has changed.
    plan_at: Duration,
    /// When it is looked next whether running tasks may go on.
    rights_at: Duration,
    /// No worker is started any more.
    draining: bool,
}

impl Dispatcher {
    /// Knows nothing yet: the first turn reads the ledger and finds the workers of an earlier service.
    pub fn new(parts: Parts, settings: Settings) -> Self {
        let Parts { ledger, workers, clock, seal, receipt_key, tasks, ids, changed } = parts;
        let service_owner = settings.service_owner.clone();
        let orders =
            Orders { ledger: ledger.clone(), seal, clock: Arc::clone(&clock), tasks, receipt_key, service_owner };
        let forgot_at = clock.elapsed();
        Self {
            ledger,
            workers,
            clock,
            orders,
            ids,
            changed,
            settings,
            board: Board::default(),
            health: Links::default(),
            shares: Shares::default(),
            history: History::default(),
            outlook: Arc::default(),
            timers: Timers::default(),
            endpoints: None,
            loaded_at: None,
            forgot_at,
            news: true,
            plan_at: Duration::ZERO,
            rights_at: Duration::ZERO,
            draining: false,
        }
    }

    /// What is expected, for the API.
    pub fn outlook(&self) -> Arc<Outlook> {
        self.outlook.clone()
    }

    /// Takes over other rules.
    pub fn set_settings(&mut self, settings: Settings) {
        self.orders.service_owner.clone_from(&settings.service_owner);
        self.settings = settings;
        self.news = true;
    }

    /// Starts no more workers. With `stop_workers` those that run are told to end; their attempts are given back. Else
    /// they run on without a service, and the next one finds them.
    pub fn drain(&mut self, stop_workers: bool) {
        self.draining = true;
        if stop_workers {
            let ids: Vec<String> = self.running().map(|(id, _)| id.clone()).collect();
            ids.iter().for_each(|id| self.stop(id));
        }
    }

    /// Tasks with a worker.
    pub(super) fn running(&self) -> impl Iterator<Item = (&String, &Known)> {
        self.board.tasks.iter().filter(|(_, known)| known.attempt.is_some())
    }

    /// How many tasks have a worker, and how many are open in all.
    pub fn counts(&self) -> (usize, usize) {
        (self.running().count(), self.board.tasks.len())
    }

    fn times(&self) -> Times {
        Times { wall: self.clock.now(), steady: self.clock.elapsed() }
    }

    /// Does all that can be done now.
    ///
    /// # Errors
    /// What the ledger refused. All that was not written is still to be done, and the next turn does it.
    pub fn turn(&mut self) -> Answer<Turned> {
        let times = self.times();
        let mut turned = Turned { next: TURN_EVERY_IDLE, ..Turned::default() };
        let done = self.turn_with(times, &mut turned);
        if turned.wrote || turned.saved {
            (self.changed)();
        }
        if self.running().next().is_some() {
            turned.next = turned.next.min(TURN_EVERY_RUNNING);
        }
        done.map(|()| turned)
    }

    fn turn_with(&mut self, times: Times, turned: &mut Turned) -> Answer<()> {
        let mut owners: BTreeMap<&str, u32> = BTreeMap::new();
        for known in self.board.tasks.values().filter(|known| known.attempt.is_some()) {
            *owners.entry(&known.task.owner).or_default() += 1;
        }
        self.shares.advance(times.steady, owners);
        // A ledger that cannot be read does not keep workers from being heard.
        let read = self.read(times);
        self.hear(times);
        read?;
        self.stop_disbarred(times);
        // What is refused of one task or by one step keeps no other from being done.
        let settled = self.settle(times, turned);
        let wishes = self.carry_out_wishes(times, turned);
        self.tell_deadlines();
        let late = self.start_late(times, turned);
        let planned = if self.draining { Ok(()) } else { self.begin_more(times, turned) };
        let forgot = self.forget(times);
        settled.and(wishes).and(late).and(planned).and(forgot)
    }

    /// Runs timers, and starts what the schedule says.
    fn begin_more(&mut self, times: Times, turned: &mut Turned) -> Answer<()> {
        let Self { timers, ledger, board, ids, .. } = self;
        let ran = timers.run(&**ledger, board, times, ids);
        if ran.as_ref().is_ok_and(|ran| *ran) {
            turned.wrote = true;
            self.read(times)?;
        }
        if turned.wrote || self.news || self.plan_at <= times.steady {
            self.news = false;
            self.plan(times, turned)?;
        }
        ran.map(|_| ())
    }

    /// Reads what others have written.
    fn read(&mut self, times: Times) -> Answer<()> {
        let longest = self.settings.patience.longest_with_jitter();
        let is_due = self.loaded_at.is_none_or(|at| times.steady.saturating_sub(at) >= RELOAD_EVERY);
        if self.loaded_at.is_none() {
            self.load_history(times)?;
        }
        let news = if is_due {
            let news = self.board.load(&*self.ledger, times, longest)?;
            self.loaded_at = Some(times.steady);
            let board = &self.board;
            self.health.keep(|link| board.tasks.values().any(|known| known.links.contains(link)));
            news
        } else {
            self.board.follow(&*self.ledger, times, longest)?
        };
        self.take_in(news);
        if self.endpoints.is_none() {
            self.endpoints = Some(load_endpoints(&*self.ledger)?);
        }
        Ok(())
    }

    fn take_in(&mut self, news: News) {
        self.news |= news.changed;
        if news.endpoints {
            self.endpoints = None;
        }
        for task in news.orphaned {
            self.workers.stop(&task);
        }
        for (task, fence) in news.adopted {
            self.workers.adopt(&task, fence);
        }
    }

    /// Reads one task again after the ledger has refused a change of it.
    pub(super) fn look_again(&mut self, id: &str, times: Times) -> Answer<()> {
        let (longest, mut news) = (self.settings.patience.longest_with_jitter(), News::default());
        self.board.refresh(id, &*self.ledger, times, longest, &mut news)?;
        self.take_in(news);
        Ok(())
    }

    fn load_history(&mut self, times: Times) -> Answer<()> {
        let filter = TaskFilter { states: vec![TaskState::Succeeded], ..TaskFilter::default() };
        for task in self.ledger.tasks(&filter, &Page { after: None, limit: HISTORY_TASKS })?.into_iter().rev() {
            if let (1, Some(started), Some(ended)) =
                (task.fence, task.started, task.ended.filter(|end| *end <= times.wall))
            {
                let links = super::links_of(&task.request);
                let share = u32::try_from(links.len().max(1)).unwrap_or(u32::MAX);
                for link in &links {
                    self.history.add(link, ended.since(started) / share, super::moved(&task.progress, share));
                }
            }
        }
        self.outlook.remember(&self.history);
        Ok(())
    }

    /// Tells a task's worker to end. An attempt whose worker is not there yet ends at once.
    pub(super) fn stop(&mut self, id: &str) {
        let Some(Known { attempt: Some(attempt), .. }) = self.board.tasks.get_mut(id) else { return };
        attempt.leaves = true;
        match attempt.start_at.take() {
            Some(_) => attempt.gone = Some(None),
            None => self.workers.stop(id),
        }
    }

    /// Tells workers to end whose task could not start any more: the user, the token or an endpoint is not what it was.
    /// The next attempt is then refused, with the reason.
    fn stop_disbarred(&mut self, times: Times) {
        if times.steady < self.rights_at {
            return;
        }
        self.rights_at = times.steady + RIGHTS_EVERY;
        let is_disbarred = |known: &Known| {
            // A ledger that does not answer says nothing against anybody.
            matches!(self.orders.check_going_on(&known.task, &known.links), Err(NoOrder::Failure(_)))
        };
        let runs = |known: &&Known| known.attempt.as_ref().is_some_and(|attempt| !attempt.leaves);
        let running = self.board.tasks.iter().filter(|(_, known)| runs(known));
        let disbarred: Vec<String> =
            running.filter(|(_, known)| is_disbarred(known)).map(|(id, _)| id.clone()).collect();
        for id in disbarred {
            self.stop(&id);
        }
    }

    /// Decides what starts, and when that is decided anew where nothing changes meanwhile: all that time alone changes
    /// of a queue without workers is in the plan's `look_again`.
    fn plan(&mut self, times: Times, turned: &mut Turned) -> Answer<()> {
        turned.planned = true;
        let began = self.clock.elapsed();
        let planned = self.carry_out_plan(times, turned);
        let took = self.clock.elapsed().saturating_sub(began);
        let every = if self.running().next().is_some() { PLAN_EVERY_RUNNING } else { PLAN_EVERY_IDLE };
        self.plan_at = times.steady + every.max(took * PLAN_SHARE);
        if let Some(wait) = planned.1 {
            self.plan_at = self.plan_at.min(times.steady + wait.max(took * PLAN_SHARE));
            turned.next = turned.next.min(wait.max(Duration::from_millis(50)));
        }
        planned.0
    }

    /// What was refused of it, and after which time it may look different though nothing else has happened.
    fn carry_out_plan(&mut self, times: Times, turned: &mut Turned) -> (Answer<()>, Option<Duration>) {
        let entries: Vec<_> = self
            .board
            .tasks
            .values()
            .filter_map(|known| {
                let usual_time = known.links.iter().map(|link| self.history.usual_time(link)).sum();
                let usual_range = self.history.usual_range(&known.links);
                known.entry(times, usual_time, usual_range)
            })
            .collect();
        let endpoints = self.endpoint_states(times);
        let sick = self.health.sick(times.steady);
        let view = View {
            rules: &self.settings.rules,
            tasks: &entries,
            endpoints: &endpoints,
            sick: &sick,
            shares: &self.shares,
            history: &self.history,
        };
        let Plan { decisions, queue, next, look_again } = plan(&view);
        let mut done = Ok(());
        for decision in decisions {
            done = done.and(match decision {
                Decision::Start { task, detail } => self.start(&task, &detail, times, turned),
                Decision::GiveWay { task, why, detail, for_whom } => {
                    tracing::info!(target: "carrack::service", task, for_whom, "gives way: {why}");
                    self.give_way(&task, &why, detail, times, turned)
                }
            });
        }
        if done.is_err() {
            // What was decided is not all done.
            self.news = true;
        }
        let changed = self.outlook.update(&queue, next, times.wall);
        let events: Vec<_> = changed
            .into_iter()
            .filter_map(|(id, blocked)| {
                let Known { task, .. } = self.board.tasks.get(&id)?;
                let detail = json!({ "blocked": blocked });
                Some(event(task, EventKind::Decision, format!("waits: {}", blocked.why), detail))
            })
            .collect();
        if !events.is_empty() {
            done = done.and(self.ledger.record(&events, times.wall));
            turned.wrote = true;
        }
        (done, look_again)
    }

    fn endpoint_states(&self, times: Times) -> BTreeMap<String, EndpointState> {
        let second = times.wall.second_of_day();
        let states = self.endpoints.iter().flatten().map(|(name, endpoint)| {
            let rate = rate_now(&endpoint.limits, second).ok();
            let closed_for = rate.filter(|rate| rate.rate == Some(0)).and_then(|rate| rate.holds_for);
            let EndpointLimits { transfers, drained, .. } = &endpoint.limits;
            (name.clone(), EndpointState { transfers: *transfers, closed_for, drained: drained.clone() })
        });
        states.collect()
    }

    fn start(&mut self, id: &str, detail: &serde_json::Value, times: Times, turned: &mut Turned) -> Answer<()> {
        let Some(Known { task, .. }) = self.board.tasks.get(id) else { return Ok(()) };
        match self.make_order(id, task.fence + 1, times) {
            Ok(_) => {}
            Err(NoOrder::Ledger(error)) => return Err(error),
            Err(NoOrder::Failure(failure)) => {
                return self.move_to(id, TaskState::Failed, EventKind::Ended, Some(*failure), times, turned);
            }
        }
        let waited = times.wall.since(task.submitted).as_secs();
        let text = format!("attempt {} begins", task.fence + 1);
        let mut detail = detail.clone();
        detail["waited_seconds"] = waited.into();
        detail["attempt"] = (task.fence + 1).into();
        match self.ledger.claim(id, times.wall, &event(task, EventKind::Started, text, detail)) {
            Ok(task) => {
                turned.wrote = true;
                let Some(known) = self.board.tasks.get_mut(id) else { return Ok(()) };
                let mut attempt = Attempt::new(&task, times.steady, 0);
                attempt.start_at = Some(times.steady);
                known.update(task, times, self.settings.patience.longest_with_jitter());
                known.retry_at = None;
                known.attempt = Some(attempt);
                self.start_worker(id, times, turned)
            }
            Err(LedgerError::Conflict(_) | LedgerError::Missing) => self.look_again(id, times),
            Err(error) => Err(error),
        }
    }

    /// Attempts whose workers could not be started when they were claimed.
    fn start_late(&mut self, times: Times, turned: &mut Turned) -> Answer<()> {
        let is_late = |attempt: &Attempt| attempt.start_at.is_some_and(|at| at <= times.steady);
        let late = self.running().filter(|(_, known)| known.attempt.as_ref().is_some_and(is_late));
        let late: Vec<String> = late.map(|(id, _)| id.clone()).collect();
        let mut done = Ok(());
        for id in late {
            done = done.and(self.start_worker(&id, times, turned));
        }
        done
    }

    fn make_order(&self, id: &str, fence: u64, times: Times) -> Result<crate::worker::Order, NoOrder> {
        let Some(Known { task, .. }) = self.board.tasks.get(id) else { return Err(LedgerError::Missing.into()) };
        let second = times.wall.second_of_day();
        let rate = |name: &str| {
            let endpoint = self.endpoints.as_ref()?.get(name)?;
            rate_now(&endpoint.limits, second).ok()?.rate
        };
        let order = self.orders.make(task, fence, &rate)?;
        Ok(crate::worker::Order { nice: self.settings.worker_nice, ..order })
    }

    /// Starts the worker of an attempt that was claimed.
    fn start_worker(&mut self, id: &str, times: Times, turned: &mut Turned) -> Answer<()> {
        let Some(Known { task, .. }) = self.board.tasks.get(id) else { return Ok(()) };
        let order = match self.make_order(id, task.fence, times) {
            Ok(order) => order,
            Err(NoOrder::Ledger(error)) => return Err(error),
            Err(NoOrder::Failure(failure)) => {
                return self.move_to(id, TaskState::Failed, EventKind::Ended, Some(*failure), times, turned);
            }
        };
        let started = self.workers.start(&order);
        let Some(Known { task, attempt: Some(attempt), .. }) = self.board.tasks.get_mut(id) else { return Ok(()) };
        match started {
            Ok(()) => {
                attempt.deadline = Some(order.deadline);
                attempt.start_at = None;
                attempt.started = true;
                attempt.since = times.steady;
            }
            Err(StartFault::StillHeld) => attempt.start_at = Some(times.steady + STILL_HELD_PAUSE),
            Err(StartFault::Failed(why)) => {
                tracing::warn!(task = id, why, "a worker cannot be started");
                attempt.start_at = None;
                attempt.end = Some(could_not_start(task.progress.clone(), why, times));
                attempt.gone = Some(None);
            }
        }
        Ok(())
    }

    fn give_way(
        &mut self,
        id: &str,
        why: &str,
        detail: serde_json::Value,
        times: Times,
        turned: &mut Turned,
    ) -> Answer<()> {
        let Some(Known { task, .. }) = self.board.tasks.get(id) else { return Ok(()) };
        self.ledger.record(&[event(task, EventKind::Decision, format!("gives way: {why}"), detail)], times.wall)?;
        turned.wrote = true;
        self.stop(id);
        Ok(())
    }

    fn forget(&mut self, times: Times) -> Answer<()> {
        if times.steady.saturating_sub(self.forgot_at) < FORGET_EVERY {
            return Ok(());
        }
        let before = |age: Option<Duration>| {
            let micros = age.map(|age| i64::try_from(age.as_micros()).unwrap_or(i64::MAX));
            crate::clock::Moment(micros.map_or(i64::MIN, |micros| times.wall.0.saturating_sub(micros)))
        };
        let retention = Retention {
            tasks_ended_before: before(self.settings.keep_tasks),
            events_before: before(self.settings.keep_events),
            limit: FORGOTTEN_AT_ONCE,
        };
        self.ledger.forget(&retention)?;
        self.forgot_at = times.steady;
        // Also those that a service has forgotten which was killed before it came to their directories.
        let mut removed = self.ledger.forgotten()?;
        removed.retain(|task| self.workers.forget(task));
        if removed.is_empty() { Ok(()) } else { self.ledger.directories_removed(&removed) }
    }
}

/// As if the worker had said so itself.
fn could_not_start(progress: crate::model::Progress, why: String, times: Times) -> crate::journal::AttemptEnd {
    let mut failure =
        failure_of(carrack_core::failure::ErrorCode::ResourceLimit, format!("no worker can be started: {why}"));
    failure.retryable = true;
    failure.hints = vec!["free space in the service's state directory, or processes of its host".to_owned()];
    crate::journal::AttemptEnd {
        time: times.wall,
        kind: crate::journal::EndKind::Failed,
        progress,
        failure: Some(failure),
        got_somewhere: false,
        late: false,
    }
}

fn load_endpoints(ledger: &dyn Ledger) -> Answer<BTreeMap<String, Endpoint>> {
    let mut endpoints = BTreeMap::new();
    let mut page = Page { after: None, limit: 500 };
    loop {
        let rows = ledger.endpoints(&page)?;
        page.after = rows.last().map(|endpoint| endpoint.name.clone());
        let is_last = rows.len() < page.limit;
        endpoints.extend(rows.into_iter().map(|endpoint| (endpoint.name.clone(), endpoint)));
        if is_last {
            return Ok(endpoints);
        }
    }
}
