//! Faults that others have met in queues of this kind (River's numbers are those of its issues), each by itself, and
//! what the schedule promises over hours.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use super::script::Script;
use super::world::{Work, lock};
use crate::clock::Clock;
use crate::ledger::{EventFilter, Ledger, NewEvent, Submission, TaskChange, TaskGuard, UserChange, endpoints_of};
use crate::model::{
    Estimate, Event, EventKind, NewTask, Overlap, Pair, Task, TaskState, Timer, TimerSchedule, TimerState, new_id,
};
use crate::schedule::{Link, Rules};
use crate::service::Settings;

impl Script {
    fn add(&mut self, owner: &str, work: &Work, nodes: (&str, &str)) -> String {
        let pair =
            Pair { source: format!("@{}:{}", nodes.0, work.path()), destination: Some(format!("@{}:/to", nodes.1)) };
        self.add_request(owner, NewTask { pairs: vec![pair], ..NewTask::default() })
    }

    fn add_request(&mut self, owner: &str, request: NewTask) -> String {
        let endpoints = endpoints_of(&request);
        let submission = Submission {
            id: new_id(),
            owner: owner.to_owned(),
            submission_id: None,
            endpoints,
            request,
            estimate: None,
        };
        self.ledger.submit(&submission, self.clock.now()).unwrap().task.id
    }

    fn task(&self, id: &str) -> Task {
        self.ledger.task(id).unwrap()
    }

    fn seconds(&mut self, count: u64) {
        (0..count).for_each(|_| self.second());
    }

    /// Goes on until a task is in a state; how many seconds that took.
    fn until(&mut self, id: &str, state: TaskState, at_most: u64) -> u64 {
        for second in 0..=at_most {
            if self.task(id).state == state {
                return second;
            }
            self.second();
        }
        panic!("after {at_most} s it is not {}: {:#?}", state.name(), self.task(id));
    }

    fn change(&mut self, id: &str, change: TaskChange, events: &[NewEvent]) {
        self.ledger.change_task(id, &TaskGuard::default(), &change, events, self.clock.now()).unwrap();
    }

    fn events(&self, id: &str, kind: EventKind) -> Vec<Event> {
        let filter = EventFilter { task: Some(id.to_owned()), ..EventFilter::default() };
        self.ledger.events(&filter, 100_000).unwrap().into_iter().filter(|event| event.kind == kind).collect()
    }

    fn attempts(&self) -> u64 {
        lock(&self.world).attempts
    }
}

fn items(items: u64) -> Work {
    Work { items, ..Work::default() }
}

#[test]
fn river_1318_long_running_tasks_do_not_hide_a_dead_worker() {
    let mut script = Script::new(1);
    script.settings.rules.workers = 400;
    script.settings.rules.per_link = 400;
    script.mend();
    let tasks: Vec<String> = (0..300).map(|_| script.add("ann", &items(100_000), ("n0", "n1"))).collect();
    script.seconds(3);
    let last = tasks.last().unwrap();
    lock(&script.world).kill(last);
    script.seconds(1);
    assert_eq!(script.task(last).state, TaskState::Queued);
    script.seconds(10);
    assert_eq!((script.task(last).state, script.task(last).fence), (TaskState::Active, 2));
}

#[test]
fn river_1318_timers_that_wait_do_not_hide_one_that_is_due() {
    let mut script = Script::new(1);
    let first = script.add("ann", &items(100_000), ("n0", "n1"));
    let due = script.clock.now();
    let timer = |id: String, last_task: Option<String>| {
        let schedule = TimerSchedule { every_seconds: Some(60), overlap: Overlap::Wait, ..TimerSchedule::default() };
        let pair = Pair { source: format!("@n0:{}", items(1).path()), destination: Some("@n1:/to".to_owned()) };
        let task = NewTask { pairs: vec![pair], ..NewTask::default() };
        let (owner, state) = ("ann".to_owned(), TimerState::Waiting);
        Timer {
            id,
            owner,
            label: None,
            schedule,
            task,
            state,
            next_run: Some(due),
            runs: 0,
            last_task,
            made: due,
            version: 1,
        }
    };
    let made = |id: &str| {
        let (kind, owner, subject) = (EventKind::TimerMade, "ann".to_owned(), Some(id.to_owned()));
        NewEvent { kind, owner, task: None, subject, text: String::new(), detail: json!({}) }
    };
    for n in 0..250 {
        let timer = timer(format!("waits {n}"), Some(first.clone()));
        script.ledger.add_timer(&timer, &made(&timer.id)).unwrap();
    }
    let late = timer("due".to_owned(), None);
    script.ledger.add_timer(&late, &made("due")).unwrap();
    script.seconds(5);
    assert_eq!(script.ledger.timer("due").unwrap().runs, 1);
    assert_eq!(script.ledger.timer("waits 0").unwrap().runs, 0);
}

#[test]
fn river_1245_cancel_that_nobody_announced_is_carried_out() {
    let mut script = Script::new(1);
    let id = script.add("ann", &items(100_000), ("n0", "n1"));
    script.seconds(3);
    script.change(&id, TaskChange { cancel_wanted: Some(true), ..TaskChange::default() }, &[]);
    let took = script.until(&id, TaskState::Cancelled, 70);
    assert!(took > 0 && lock(&script.world).running().is_empty());
}

#[test]
fn river_1308_task_that_is_removed_in_mid_run_loses_its_worker_and_nothing_else() {
    let mut script = Script::new(1);
    let (gone, stays) = (script.add("ann", &items(100_000), ("n0", "n1")), script.add("bob", &items(40), ("n0", "n1")));
    script.seconds(3);
    script.change(&gone, TaskChange { state: Some(TaskState::Failed), ..TaskChange::default() }, &[]);
    let now = script.clock.now();
    let retention = crate::ledger::Retention {
        tasks_ended_before: now.after(Duration::from_secs(1)),
        events_before: now,
        limit: 9,
    };
    assert_eq!(script.ledger.forget(&retention).unwrap(), std::slice::from_ref(&gone));
    script.until(&stays, TaskState::Succeeded, 60);
    script.seconds(60);
    assert!(lock(&script.world).running().is_empty());
}

#[test]
fn directories_that_a_killed_service_has_left_of_forgotten_tasks_are_removed() {
    let mut script = Script::new(1);
    let id = script.add("ann", &items(3), ("n0", "n1"));
    script.until(&id, TaskState::Succeeded, 30);
    let now = script.clock.now().after(Duration::from_secs(1));
    let retention = crate::ledger::Retention { tasks_ended_before: now, events_before: now, limit: 9 };
    script.kill_service();
    // The last that it did.
    assert_eq!(script.ledger.forget(&retention).unwrap(), std::slice::from_ref(&id));
    script.start_service();
    assert!(lock(&script.world).tasks.contains_key(&id));
    script.seconds(130);
    assert!(!lock(&script.world).tasks.contains_key(&id));
    assert_eq!(script.ledger.forgotten().unwrap(), [""; 0]);
}

#[test]
fn river_1290_shutdown_in_good_order_gives_attempts_back() {
    let mut script = Script::new(1);
    let id = script.add("ann", &items(50), ("n0", "n1"));
    script.seconds(5);
    script.dispatcher.as_mut().unwrap().drain(true);
    script.seconds(5);
    let task = script.task(&id);
    assert_eq!((task.state, task.futile_attempts, task.fence), (TaskState::Queued, 0, 1));
    assert_eq!(script.events(&id, EventKind::Fault), []);
    assert!(lock(&script.world).running().is_empty());
    script.kill_service();
    script.start_service();
    script.seconds(2);
    assert_eq!(script.task(&id).fence, 2);
    script.until(&id, TaskState::Succeeded, 60);
}

#[test]
fn river_1291_worker_that_ignores_its_end_is_ended_by_force() {
    let mut script = Script::new(1);
    let id = script.add("ann", &items(100_000), ("n0", "n1"));
    script.seconds(3);
    lock(&script.world).tasks.get_mut(&id).and_then(|task| task.process.as_mut()).unwrap().frozen = true;
    script.change(&id, TaskChange { cancel_wanted: Some(true), ..TaskChange::default() }, &[event(&id)]);
    script.until(&id, TaskState::Cancelling, 2);
    script.until(&id, TaskState::Cancelled, 30);
    assert!(lock(&script.world).running().is_empty());
}

#[test]
fn river_1324_what_cannot_be_read_fails_once() {
    let mut script = Script::new(1);
    for (source, part) in [
        ("@nowhere:/x", "no endpoint"),
        ("what is this", "a location is"),
        ("/etc/passwd", "only an admin"),
        ("@n0:/a/%2E./b", "no component .."),
    ] {
        let pair = Pair { source: source.to_owned(), destination: Some("@n1:/to".to_owned()) };
        let id = script.add_request("bob", NewTask { pairs: vec![pair], ..NewTask::default() });
        script.until(&id, TaskState::Failed, 3);
        let task = script.task(&id);
        assert!(task.failure.as_ref().is_some_and(|failure| failure.why.contains(part)), "{task:#?}");
        assert_eq!(task.fence, 0);
    }
    assert_eq!(script.attempts(), 0);
}

#[test]
fn poison_task_fails_after_ten_deaths_and_others_go_on() {
    let mut script = Script::new(1);
    let poison = script.add("ann", &Work { items: 5, poison: true, ..Work::default() }, ("n0", "n1"));
    let good = script.add("ann", &items(20), ("n0", "n1"));
    script.until(&good, TaskState::Succeeded, 60);
    script.until(&poison, TaskState::Failed, 2 * 3600);
    let task = script.task(&poison);
    assert_eq!((task.fence, task.failure.unwrap().code.as_str()), (10, "internal"));
}

#[test]
fn v7_service_killed_again_and_again_costs_no_running_attempt() {
    let mut script = Script::new(1);
    let tasks: Vec<String> = (0..5).map(|_| script.add("ann", &items(60), ("n0", "n1"))).collect();
    for round in 0..20 {
        script.seconds(2);
        if round % 2 == 0 {
            script.kill_service();
            // Workers go on while there is no service.
            script.seconds(1);
            script.start_service();
        }
    }
    for id in tasks {
        script.until(&id, TaskState::Succeeded, 60);
        assert_eq!(script.task(&id).fence, 1);
        assert_eq!(script.events(&id, EventKind::Note).len(), 60);
    }
}

#[test]
fn v8_endpoint_dead_for_an_hour_is_tried_twenty_times_at_most() {
    for count in [1, 50] {
        let mut script = Script::new(1);
        lock(&script.world).away.insert("n1".to_owned());
        let tasks: Vec<String> = (0..count).map(|_| script.add("ann", &items(3), ("n0", "n1"))).collect();
        let other = script.add("bob", &items(3), ("n0", "n2"));
        script.until(&other, TaskState::Succeeded, 10);
        let before = script.attempts();
        script.seconds(3600);
        let attempts = script.attempts() - before;
        // Those that began before anybody knew: as many as the pair may run at once.
        let allowed = if count == 1 { 20 } else { 20 + u64::from(script.settings.rules.per_link) };
        assert!(attempts <= allowed && attempts >= 10, "{count} tasks: {attempts} attempts");
        lock(&script.world).away.clear();
        let back = script.clock.elapsed();
        for id in &tasks {
            script.until(id, TaskState::Succeeded, 1000);
        }
        // What waited for the endpoint goes on once one task has got through.
        let took = script.clock.elapsed() - back;
        assert!(took <= Duration::from_secs(375 + 10 * count), "{took:?}");
    }
}

#[test]
fn v8_ten_minutes_of_outage_fail_no_task() {
    let mut script = Script::new(1);
    let tasks: Vec<String> =
        (0..30).map(|n| script.add(["ann", "bob", "cid"][n % 3], &items(200), ("n0", "n1"))).collect();
    script.seconds(30);
    lock(&script.world).away.insert("n0".to_owned());
    script.seconds(600);
    lock(&script.world).away.clear();
    for id in &tasks {
        script.until(id, TaskState::Succeeded, 4 * 3600);
    }
}

/// While it runs, nobody else tries the link: without its word the others would wait for its end.
#[test]
fn link_is_well_again_once_a_task_moves_on_that_has_bridged_the_outage() {
    let mut script = Script::new(1);
    let long = script.add("ann", &items(100_000), ("n0", "n1"));
    script.seconds(5);
    let set_frozen = |script: &Script, frozen| {
        let mut world = lock(&script.world);
        world.tasks.get_mut(&long).and_then(|task| task.process.as_mut()).unwrap().frozen = frozen;
    };
    set_frozen(&script, true);
    lock(&script.world).away.insert("n1".to_owned());
    let others: Vec<String> = (0..3).map(|_| script.add("bob", &items(3), ("n0", "n1"))).collect();
    script.seconds(30);
    assert!(others.iter().all(|id| script.task(id).state == TaskState::Queued && script.task(id).fence >= 1));
    lock(&script.world).away.clear();
    set_frozen(&script, false);
    for id in &others {
        script.until(id, TaskState::Succeeded, 30);
    }
    assert_eq!((script.task(&long).state, script.task(&long).fence), (TaskState::Active, 1));
}

#[test]
fn v15_clock_steps_expire_nothing_and_delay_nothing() {
    let mut script = Script::new(1);
    let deadline = Some(script.clock.now().after(Duration::from_secs(12 * 3600)));
    let pair = Pair { source: format!("@n0:{}", items(400).path()), destination: Some("@n1:/to".to_owned()) };
    let runs = script.add_request("ann", NewTask { pairs: vec![pair.clone()], deadline, ..NewTask::default() });
    lock(&script.world).away.insert("n2".to_owned());
    let retries = script.add("ann", &items(3), ("n2", "n3"));
    script.seconds(100);
    for hours in [24, -48, 24] {
        script.clock.step(hours * 3600);
        script.seconds(10);
        assert_eq!(script.task(&runs).state, TaskState::Active, "{hours} hours");
        assert!(!script.task(&retries).state.has_ended());
    }
    script.clock.step(-24 * 3600);
    lock(&script.world).away.clear();
    // No longer than the longest pause, also for a service that starts anew and knows only the ledger's times.
    script.kill_service();
    script.start_service();
    script.until(&retries, TaskState::Succeeded, 400);
    script.until(&runs, TaskState::Succeeded, 400);
}

#[test]
fn v16_small_task_beside_giants_starts_within_five_seconds() {
    let mut script = Script::new(1);
    for _ in 0..30 {
        script.add("ann", &items(1_000_000), ("n0", "n1"));
    }
    script.seconds(30);
    for owner in ["bob", "cid"] {
        let small = script.add(owner, &items(3), ("n2", "n3"));
        assert!(script.until(&small, TaskState::Active, 5) <= 5);
    }
}

#[test]
fn deadline_fails_a_task_that_waits_and_one_that_runs() {
    let mut script = Script::new(1);
    lock(&script.world).away.insert("n2".to_owned());
    let now = script.clock.now();
    let mut add = |source: &str| {
        let pair =
            Pair { source: format!("@{source}:{}", items(100_000).path()), destination: Some("@n1:/to".to_owned()) };
        let deadline = Some(now.after(Duration::from_secs(100)));
        script.add_request("ann", NewTask { pairs: vec![pair], deadline, ..NewTask::default() })
    };
    let (waits, runs) = (add("n2"), add("n0"));
    let took = script.until(&waits, TaskState::Failed, 110);
    assert!(took >= 99, "{took}");
    // A worker knows its deadline; this one does not, and is told to end.
    script.until(&runs, TaskState::Failed, 60);
    for id in [waits, runs] {
        assert_eq!(script.task(&id).failure.unwrap().code, "deadline-passed");
    }
}

#[test]
fn pause_keeps_what_is_done_and_resume_goes_on() {
    let mut script = Script::new(1);
    let id = script.add("ann", &items(40), ("n0", "n1"));
    script.seconds(10);
    let pause = |wanted| TaskChange { pause_wanted: Some(wanted), ..TaskChange::default() };
    script.change(&id, pause(true), &[event(&id)]);
    script.until(&id, TaskState::Paused, 5);
    let done = script.task(&id).progress.items_done;
    assert!(done > 0);
    script.seconds(100);
    assert_eq!(script.task(&id).progress.items_done, done);
    script.change(&id, pause(false), &[event(&id)]);
    script.until(&id, TaskState::Succeeded, 50);
    assert_eq!(script.events(&id, EventKind::Note).len(), 40);
    assert_eq!(script.task(&id).futile_attempts, 0);
}

#[test]
fn full_ledger_takes_nothing_new_and_running_work_goes_on() {
    let mut script = Script::new(1);
    let (runs, waits) = (script.add("ann", &items(50), ("n0", "n1")), script.add("ann", &items(3), ("n0", "n1")));
    script.settings.rules.workers = 1;
    script.mend();
    script.seconds(3);
    script.faults.full.store(true, Ordering::Relaxed);
    script.seconds(100);
    assert_eq!((script.task(&runs).state, script.task(&waits).state), (TaskState::Active, TaskState::Queued));
    assert_eq!(lock(&script.world).tasks[&runs].done, 50);
    script.faults.full.store(false, Ordering::Relaxed);
    script.until(&waits, TaskState::Succeeded, 20);
    assert_eq!((script.task(&runs).state, script.events(&runs, EventKind::Note).len()), (TaskState::Succeeded, 50));
}

#[test]
fn outlook_tells_position_and_expected_start_of_what_waits() {
    let mut script = Script::new(1);
    script.settings.rules.workers = 1;
    script.mend();
    let first = script.add("ann", &items(20), ("n0", "n1"));
    script.until(&first, TaskState::Succeeded, 60);
    let tasks: Vec<String> = (0..3).map(|_| script.add("ann", &items(20), ("n0", "n1"))).collect();
    script.seconds(2);
    let outlook = script.dispatcher.as_ref().unwrap().outlook();
    let seen: Vec<Task> = tasks
        .iter()
        .map(|id| {
            let mut task = script.task(id);
            outlook.apply(&mut task);
            task
        })
        .collect();
    assert_eq!(seen.iter().map(|task| task.position).collect::<Vec<_>>(), [None, Some(1), Some(2)]);
    let starts: Vec<_> =
        seen.iter().map(|task| task.expected_start.map(|at| at.since(script.clock.now()).as_secs())).collect();
    assert!(starts[1].is_some_and(|wait| (15..25).contains(&wait)), "{starts:?}");
    assert!(starts[2].is_some_and(|wait| (35..50).contains(&wait)), "{starts:?}");
    assert!(
        seen[2].blocked.as_ref().is_some_and(|blocked| blocked.why.contains("1 tasks are before it")),
        "{:?}",
        seen[2]
    );
}

#[test]
fn estimate_is_made_once_the_sources_are_counted_and_stands_beside_what_it_took() {
    let mut script = Script::new(1);
    let mut run = |count| {
        let id = script.add("ann", &items(count), ("n0", "n1"));
        script.until(&id, TaskState::Succeeded, 3 * count + 20);
        let told =
            script.events(&id, EventKind::Decision).into_iter().find(|event| event.detail["estimate"].is_object());
        let ended = script.events(&id, EventKind::Ended).remove(0);
        (script.task(&id), told.unwrap(), ended)
    };
    for (number, count) in [10, 40, 20].into_iter().enumerate() {
        let (task, told, _) = run(count);
        let estimate = task.estimate.unwrap();
        assert_eq!((estimate.seconds(), estimate.items), (None, Some(count)), "{estimate:?}");
        let known = ["no task between", "one task between", "the last 2 tasks between"][number];
        assert!(estimate.why.starts_with(known) && told.text.contains("not known"), "{estimate:?}, {told:?}");
    }
    let (task, told, ended) = run(30);
    let estimate = task.estimate.clone().unwrap();
    let (least, most) = estimate.seconds().unwrap();
    assert!(0 < least && least <= most && most <= least * 3 + 3, "{estimate:?}");
    let took = task.ended.unwrap().since(task.started.unwrap()).as_secs_f64();
    assert_eq!((estimate.took_seconds, estimate.was_kept()), (Some(took), Some(true)), "{estimate:?}");
    assert_eq!(ended.detail["estimate"], serde_json::to_value(&estimate).unwrap());
    // It stays as it was told.
    let first = serde_json::from_value(told.detail["estimate"].clone()).ok();
    assert_eq!(first, Some(Estimate { took_seconds: None, ..estimate }));
}

#[test]
fn start_of_the_next_task_is_a_range_by_what_runs_and_waits() {
    let mut script = Script::new(1);
    script.settings.rules.workers = 1;
    script.mend();
    let link = [Link::new("@n0", "@n1")];
    let promised = |script: &Script| {
        let now = script.clock.now();
        let promise = script.dispatcher.as_ref().unwrap().outlook().promise(&link, None, now);
        [promise.earliest_start, promise.latest_start].map(|start| start.map(|at| at.since(now).as_secs()))
    };
    script.seconds(2);
    assert_eq!(promised(&script), [Some(0), Some(0)]);
    let first = script.add("ann", &items(20), ("n0", "n1"));
    script.seconds(2);
    assert_eq!(promised(&script)[1], None, "how long it takes is not known");
    script.until(&first, TaskState::Succeeded, 60);
    for count in [20, 21] {
        let id = script.add("ann", &items(count), ("n0", "n1"));
        script.until(&id, TaskState::Succeeded, 80);
    }
    let tasks: Vec<String> = (0..3).map(|_| script.add("ann", &items(20), ("n0", "n1"))).collect();
    script.seconds(2);
    let [earliest, latest] = promised(&script);
    let asked = script.clock.elapsed();
    script.until(&tasks[0], TaskState::Succeeded, 60);
    let first_ended = (script.clock.elapsed() - asked).as_secs();
    script.until(&tasks[2], TaskState::Succeeded, 120);
    let all_ended = (script.clock.elapsed() - asked).as_secs();
    assert!(earliest.is_some_and(|earliest| earliest <= first_ended), "{earliest:?}, then {first_ended}");
    assert!(latest.is_some_and(|latest| all_ended <= latest && latest < 3 * all_ended), "{latest:?}, then {all_ended}");
}

fn event(id: &str) -> NewEvent {
    let (owner, text) = ("ann".to_owned(), "asked".to_owned());
    NewEvent { kind: EventKind::Updated, owner, task: Some(id.to_owned()), subject: None, text, detail: json!({}) }
}

#[test]
fn user_who_is_disabled_loses_running_attempts_within_seconds() {
    let mut script = Script::new(1);
    let (ann, bob) =
        (script.add("ann", &items(100_000), ("n0", "n1")), script.add("bob", &items(100_000), ("n0", "n1")));
    script.seconds(3);
    assert_eq!(lock(&script.world).running().len(), 2);
    let disable = UserChange { enabled: Some(false), ..UserChange::default() };
    script.ledger.change_user("ann", &disable).unwrap();
    script.until(&ann, TaskState::Failed, 10);
    let failure = script.task(&ann).failure.unwrap();
    assert!(failure.why.contains("disabled") && !failure.retryable, "{failure:?}");
    assert_eq!((lock(&script.world).running().len(), script.task(&bob).state), (1, TaskState::Active));
}

#[test]
fn queue_that_nothing_changes_is_not_planned_each_second() {
    let mut script = Script::new(1);
    script.mend();
    let tasks: Vec<String> = (0..3).map(|_| script.add("ann", &items(10), ("n0", "n1"))).collect();
    script.settings.rules.maintenance = Some("the rack is moved".to_owned());
    let settings = script.settings.clone();
    script.dispatcher.as_mut().unwrap().set_settings(settings.clone());
    let planned = |script: &mut Script, seconds: u64| {
        let planned = (0..seconds).filter(|_| {
            script.clock.pass(Duration::from_secs(1));
            script.dispatcher.as_mut().unwrap().turn().unwrap().planned
        });
        planned.count()
    };
    assert!(planned(&mut script, 3) >= 1);
    assert_eq!(planned(&mut script, 50), 0);
    // Something new is planned at once.
    script.add("bob", &items(10), ("n0", "n1"));
    assert_eq!(planned(&mut script, 1), 1);
    let rules = Rules { maintenance: None, ..settings.rules.clone() };
    script.dispatcher.as_mut().unwrap().set_settings(Settings { rules, ..settings });
    assert_eq!(planned(&mut script, 1), 1);
    assert!(tasks.iter().all(|id| script.task(id).state == TaskState::Active));
}

#[test]
fn river_deadline_that_was_put_off_before_the_service_died_fails_no_task() {
    let mut script = Script::new(21);
    let deadline = |script: &Script, seconds| Some(script.clock.now().after(Duration::from_secs(seconds)));
    let pair = Pair { source: format!("@n0:{}", items(60).path()), destination: Some("@n1:/to".to_owned()) };
    let request = NewTask { pairs: vec![pair], deadline: deadline(&script, 20), ..NewTask::default() };
    let id = script.add_request("ann", request);
    script.until(&id, TaskState::Active, 10);
    script.seconds(3);
    // It was acknowledged, and the service had no time to tell the worker.
    script.kill_service();
    let change = TaskChange { deadline: Some(deadline(&script, 3600)), ..TaskChange::default() };
    script.change(&id, change, &[]);
    script.seconds(30);
    assert!(lock(&script.world).running().is_empty(), "the worker knew of the first deadline alone");
    script.start_service();
    script.until(&id, TaskState::Succeeded, 600);
}
