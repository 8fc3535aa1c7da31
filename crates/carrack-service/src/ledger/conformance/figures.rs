//! Rules on sorted windows of tasks, on figures over time, and on the audit.

use serde_json::json;

use super::{ANY, Rule, accept, at, end, ids, rules, submission};
use crate::clock::Moment;
use crate::ledger::audit::{AuditFilter, NewAuditLine};
use crate::ledger::tally::OverviewQuery;
use crate::ledger::{Ledger, NewEvent, Retention, Submission, TaskChange, TaskFilter, TaskWindow, VisitsMost};
use crate::model::{EndVisit, EventKind, FailureFigures, NewTask, Pair, Progress, Rates, TaskSort, TaskState};

pub const RULES: &[Rule] = rules! {
    task_windows_are_sorted_and_count_all_rows
    tasks_are_found_by_label_identifier_and_paths
    overview_counts_bytes_ends_and_causes_by_time_owner_and_pair
    overview_tells_how_many_waited_and_ran
    overview_names_tasks_that_are_slow_or_stuck
    audit_is_searched_the_latest_first_and_forgotten_with_events
    visits_of_all_attempts_are_kept_with_their_task
};

fn progress(mib: u64, rate: f64) -> Progress {
    let rates = Rates { now: rate, all: rate, ..Rates::default() };
    Progress { bytes_moved: mib << 20, rates, ..Progress::default() }
}

fn moves(ledger: &dyn Ledger, id: &str, mib: u64, rate: f64, now: Moment) {
    let change = TaskChange { progress: Some(progress(mib, rate)), ..TaskChange::default() };
    ledger.change_task(id, &ANY, &change, &[], now).unwrap();
}

fn begin(ledger: &dyn Ledger, id: &str, now: Moment) {
    ledger.claim(id, now, &super::note(id, "begins")).unwrap();
}

fn task_windows_are_sorted_and_count_all_rows(ledger: &dyn Ledger) {
    for (id, mib, rate) in [("t1", 5, 1.0), ("t2", 7, 9.0), ("t3", 5, 3.0), ("t4", 0, 0.0)] {
        accept(ledger, id);
        begin(ledger, id, at(1));
        moves(ledger, id, mib, rate, at(2));
    }
    end(ledger, "t1", TaskState::Failed, at(3));
    accept(ledger, "t5");
    let window = |sort, descending, offset, limit| {
        let window = TaskWindow { sort, descending, offset, limit };
        let (tasks, total) = ledger.task_window(&TaskFilter::default(), &window).unwrap();
        assert_eq!(total, 5);
        ids(&tasks).join(" ")
    };
    for (sort, descending, expected) in [
        (TaskSort::Created, true, "t5 t4 t3 t2 t1"),
        (TaskSort::Created, false, "t1 t2 t3 t4 t5"),
        (TaskSort::State, false, "t5 t4 t3 t2 t1"),
        (TaskSort::State, true, "t1 t4 t3 t2 t5"),
        (TaskSort::Bytes, true, "t2 t3 t1 t5 t4"),
        (TaskSort::Rate, false, "t5 t4 t1 t3 t2"),
        (TaskSort::Ended, true, "t1 t5 t4 t3 t2"),
        (TaskSort::Ended, false, "t5 t4 t3 t2 t1"),
        (TaskSort::Source, true, "t5 t4 t3 t2 t1"),
    ] {
        assert_eq!(window(sort, descending, 0, 9), expected, "{sort:?} {descending}");
        assert_eq!(window(sort, descending, 1, 2), expected[3..8], "{sort:?} {descending}");
    }
    assert_eq!(window(TaskSort::Created, true, 4, 9), "t1");
    assert_eq!(window(TaskSort::Created, true, 5, 9), "");
    let pair = Pair { source: "@a:/".to_owned(), destination: Some("@z:/".to_owned()) };
    let request = NewTask { pairs: vec![pair], ..NewTask::default() };
    ledger.submit(&Submission { request, ..submission("t6") }, at(9)).unwrap();
    for (sort, descending, expected) in [(TaskSort::Source, false, 0), (TaskSort::Destination, false, 5)] {
        let window = TaskWindow { sort, descending, offset: 0, limit: 9 };
        let (tasks, _) = ledger.task_window(&TaskFilter::default(), &window).unwrap();
        assert_eq!(ids(&tasks)[expected], "t6", "{sort:?}");
    }
    let open = TaskFilter { states: vec![TaskState::Active], ..TaskFilter::default() };
    let one = TaskWindow { sort: TaskSort::Bytes, descending: true, offset: 0, limit: 1 };
    let (tasks, total) = ledger.task_window(&open, &one).unwrap();
    assert_eq!((ids(&tasks), total), (vec!["t2"], 3));
}

fn tasks_are_found_by_label_identifier_and_paths(ledger: &dyn Ledger) {
    let with = |id: &str, label: Option<&str>, source: &str, destination: Option<&str>| {
        let pair = Pair { source: source.to_owned(), destination: destination.map(str::to_owned) };
        let request = NewTask { pairs: vec![pair], label: label.map(str::to_owned), ..NewTask::default() };
        ledger.submit(&Submission { request, ..submission(id) }, at(0)).unwrap();
    };
    with("t-one", Some("Nachtl\u{e4}ufe \u{c4}"), "@here:/a", Some("@there:/b"));
    with("t-two", None, "@here:/Data/\"x\\y\"", Some("@there:/copy"));
    with("t-three", None, "@here:/c", None);
    let found = |text: &str| {
        let filter = TaskFilter { text: Some(text.to_owned()), ..TaskFilter::default() };
        let window = TaskWindow { sort: TaskSort::Created, descending: false, offset: 0, limit: 9 };
        let (tasks, total) = ledger.task_window(&filter, &window).unwrap();
        assert_eq!(total, tasks.len() as u64);
        let mut listed = super::listed(ledger, &filter);
        listed.reverse();
        assert_eq!(listed, ids(&tasks), "{text}");
        listed.join(" ")
    };
    for (text, expected) in [
        ("L\u{c4}UFE", "t-one"),
        ("t-t", "t-two t-three"),
        ("/DATA", "t-two"),
        ("\"x\\y\"", "t-two"),
        ("@there", "t-one t-two"),
        ("copy", "t-two"),
        // Words of the document that are none of the request's own.
        ("pairs", ""),
        ("destination", ""),
        ("%", ""),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
}

/// From the suite's first moment on, which is no whole minute.
fn query(owner: Option<&str>) -> OverviewQuery {
    let owner = owner.map(str::to_owned);
    let from = Moment(at(0).0.div_euclid(60_000_000) * 60_000_000);
    OverviewQuery { curves_of: owner.clone(), rows_of: owner, from, step_minutes: 1, steps: 10, now: at(540) }
}

fn overview_counts_bytes_ends_and_causes_by_time_owner_and_pair(ledger: &dyn Ledger) {
    for (id, owner) in [("a1", "ada"), ("b1", "bob"), ("a2", "ada")] {
        ledger.submit(&Submission { owner: owner.to_owned(), ..submission(id) }, at(0)).unwrap();
        begin(ledger, id, at(1));
    }
    let mib = f64::from(1 << 20);
    moves(ledger, "a1", 2, mib, at(5));
    moves(ledger, "a1", 6, 2.0 * mib, at(130));
    moves(ledger, "b1", 3, mib, at(130));
    let failure = json!({ "code": "connect-failed", "side": "source", "why": "no" });
    let event = |kind, detail| NewEvent { kind, detail, ..super::note("a2", "it failed") };
    let fault = event(EventKind::Fault, json!({ "failure": failure }));
    let queued = TaskChange { state: Some(TaskState::Queued), ..TaskChange::default() };
    ledger.change_task("a2", &ANY, &queued, &[fault], at(130)).unwrap();
    let ended = event(EventKind::Ended, json!({ "failure": failure }));
    let failed = TaskChange { state: Some(TaskState::Failed), ..TaskChange::default() };
    ledger.change_task("a2", &ANY, &failed, &[ended], at(200)).unwrap();
    end(ledger, "a1", TaskState::Succeeded, at(200));
    end(ledger, "b1", TaskState::Cancelled, at(200));
    let minute = |second: i64| ((at(second).0 - query(None).from.0) / 60_000_000) as usize;
    let all = ledger.overview(&query(None)).unwrap();
    let mut moved = vec![0; 10];
    moved[minute(5)] += 2 << 20;
    moved[minute(130)] += 7 << 20;
    assert_eq!(all.moved, moved);
    assert_eq!(all.pairs.len(), 1);
    let pair = &all.pairs[0];
    assert_eq!((pair.source.as_str(), pair.destination.as_str()), ("@here", "@there"));
    assert_eq!((pair.bytes, pair.succeeded, pair.partial, pair.failed, pair.cancelled), (9 << 20, 1, 0, 1, 1));
    assert_eq!(pair.success, Some(0.5));
    // 6 MiB at 2 MiB/s and 3 MiB at 1 MiB/s took six seconds.
    assert!((pair.rate.unwrap() - 1.5 * mib).abs() < 1.0, "{pair:?}");
    let mut steps = vec![0; 10];
    steps[minute(130)] += 1;
    steps[minute(200)] += 1;
    let figures = FailureFigures { code: "connect-failed".to_owned(), side: "source".to_owned(), count: 2, steps };
    assert_eq!(all.failures, [figures]);
    let of_bob = ledger.overview(&query(Some("bob"))).unwrap();
    assert_eq!((of_bob.moved.iter().sum::<u64>(), of_bob.failures.len()), (3 << 20, 0));
    assert_eq!((of_bob.pairs[0].cancelled, of_bob.pairs[0].success), (1, None));
    let retention = Retention { tasks_ended_before: at(0), events_before: at(9_000), limit: 100 };
    ledger.forget(&retention).unwrap();
    let forgotten = ledger.overview(&query(None)).unwrap();
    assert_eq!((forgotten.moved, forgotten.pairs.len(), forgotten.failures.len()), (vec![0; 10], 0, 0));
}

fn overview_tells_how_many_waited_and_ran(ledger: &dyn Ledger) {
    accept(ledger, "t1");
    accept(ledger, "t2");
    ledger.submit(&Submission { owner: "bob".to_owned(), ..submission("t3") }, at(0)).unwrap();
    let change = |id: &str, state: TaskState, second: i64| {
        let change = TaskChange { state: Some(state), ..TaskChange::default() };
        ledger.change_task(id, &ANY, &change, &[], at(second)).unwrap();
    };
    begin(ledger, "t1", at(65));
    change("t1", TaskState::Paused, 125);
    change("t1", TaskState::Queued, 185);
    begin(ledger, "t1", at(245));
    change("t1", TaskState::Cancelling, 305);
    change("t1", TaskState::Failed, 365);
    ledger.reopen("t1", at(425), None, &super::note("t1", "again")).unwrap();
    change("t2", TaskState::Cancelled, 365);
    // Steps end one, two, … minutes after the minute of the suite's first moment.
    let waiting_and_running = |query: &OverviewQuery| {
        let rows = ledger.overview(query).unwrap();
        (rows.waiting, rows.running)
    };
    let ends: Vec<i64> = (1..=10).map(|step| ends_of(step).0).collect();
    let during = |from: i64, to: i64| move |end: &i64| u64::from(at(from).0 <= *end && *end < at(to).0);
    let sum = |spans: &[(i64, i64)]| -> Vec<u64> {
        ends.iter().map(|end| spans.iter().map(|(from, to)| during(*from, *to)(end)).sum()).collect()
    };
    let waiting = sum(&[(0, 65), (125, 245), (425, 9_000), (0, 365)]);
    let running = sum(&[(65, 125), (245, 365)]);
    assert!(waiting.contains(&2) && running.contains(&1), "{waiting:?} {running:?}");
    assert_eq!(waiting_and_running(&query(Some("ada"))), (waiting.clone(), running.clone()));
    let longer = OverviewQuery { step_minutes: 2, steps: 5, ..query(Some("ada")) };
    let every_second = |counts: &[u64]| counts.iter().skip(1).step_by(2).copied().collect::<Vec<_>>();
    assert_eq!(waiting_and_running(&longer), (every_second(&waiting), every_second(&running)));
    assert_eq!(waiting_and_running(&query(None)).0[9], 2, "of everybody");
    let retention = Retention { tasks_ended_before: at(0), events_before: ends_of(5), limit: 100 };
    ledger.forget(&retention).unwrap();
    let known = |counts: &[u64]| [vec![0; 5], counts[5..].to_vec()].concat();
    assert_eq!(waiting_and_running(&query(Some("ada"))), (known(&waiting), known(&running)));
}

/// When a step of [`query`] ends.
fn ends_of(step: i64) -> Moment {
    Moment(query(None).from.0 + step * 60_000_000)
}

fn overview_names_tasks_that_are_slow_or_stuck(ledger: &dyn Ledger) {
    for (id, mib, rate) in [("fast", 900, 9e9), ("slow", 2, 3.0), ("small", 0, 1.0), ("still", 4, 0.0), ("old", 2, 1.0)]
    {
        accept(ledger, id);
        begin(ledger, id, at(1));
        moves(ledger, id, mib, rate, at(2));
    }
    // It ended before the time that is asked for.
    end(ledger, "old", TaskState::Succeeded, at(3));
    accept(ledger, "futile");
    let futile = TaskChange { futile_attempts: Some(5), ..TaskChange::default() };
    ledger.change_task("futile", &ANY, &futile, &[], at(4)).unwrap();
    let query = OverviewQuery { from: Moment(query(None).from.0 + 120_000_000), ..query(None) };
    let rows = ledger.overview(&query).unwrap();
    assert_eq!((ids(&rows.slowest), ids(&rows.stuck)), (vec!["slow", "fast"], vec!["still", "futile"]));
    let soon = ledger.overview(&OverviewQuery { now: at(60), ..query.clone() }).unwrap();
    assert_eq!(ids(&soon.stuck), ["futile"], "it has only just begun");
    let of_bob = OverviewQuery { rows_of: Some("bob".to_owned()), ..query };
    assert_eq!(ledger.overview(&of_bob).unwrap().slowest, []);
}

fn audit_is_searched_the_latest_first_and_forgotten_with_events(ledger: &dyn Ledger) {
    let line = |second: i64, user: &str, object: Option<&str>| NewAuditLine {
        time: at(second),
        user: user.to_owned(),
        via: "token".to_owned(),
        token: Some("aaaabbbb".to_owned()),
        from: Some("192.0.2.7".to_owned()),
        action: "POST /tasks".to_owned(),
        object: object.map(str::to_owned),
        status: 201,
    };
    ledger.note(&[line(1, "ada", Some("t1")), line(2, "bob", None)]).unwrap();
    ledger.note(&[line(3, "ada", Some("T2"))]).unwrap();
    let found = |filter: AuditFilter, limit| {
        let lines = ledger.audit(&filter, limit).unwrap();
        lines.iter().map(|line| line.id).collect::<Vec<_>>()
    };
    let text = |text: &str| AuditFilter { text: Some(text.to_owned()), ..AuditFilter::default() };
    let all = found(AuditFilter::default(), 9);
    assert!(all.len() == 3 && all.is_sorted_by(|one, other| one > other), "{all:?}");
    assert_eq!(found(text("ADA"), 9), [all[0], all[2]]);
    assert_eq!(found(text("t2"), 9), [all[0]]);
    assert_eq!(found(text("192.0.2"), 2), all[..2]);
    assert!(found(text("nobody"), 9).is_empty());
    assert_eq!(found(AuditFilter { before: Some(all[0]), ..text("ada") }, 9), [all[2]]);
    let between = AuditFilter { from: Some(at(2)), to: Some(at(3)), ..AuditFilter::default() };
    assert_eq!(found(between, 9), [all[1]]);
    let kept = ledger.audit(&AuditFilter::default(), 1).unwrap().remove(0);
    assert_eq!((kept.user.as_str(), kept.object.as_deref(), kept.status), ("ada", Some("T2"), 201));
    let retention = Retention { tasks_ended_before: at(0), events_before: at(3), limit: 100 };
    ledger.forget(&retention).unwrap();
    assert_eq!(found(AuditFilter::default(), 9), all[..1]);
}

fn visits_of_all_attempts_are_kept_with_their_task(ledger: &dyn Ledger) {
    let visit = |host: &str, path: &str, fault: Option<&str>| {
        let mut visit = EndVisit { host: host.to_owned(), directory: b"/d".to_vec(), ..EndVisit::default() };
        visit.tried(path.as_bytes(), fault);
        visit
    };
    let tell = |id: &str, visits: &[EndVisit], now: Moment| {
        let change = TaskChange { visits: visits.to_vec(), ..TaskChange::default() };
        ledger.change_task(id, &ANY, &change, &[], now).unwrap();
    };
    for id in ["t1", "t2", "t3"] {
        accept(ledger, id);
    }
    tell("t1", &[visit("a", "x", None), visit("b", "x", Some("no-space"))], at(10));
    tell("t2", &[visit("a", "z", None)], at(20));
    tell("t1", &[visit("b", "y", Some("input-output"))], at(30));
    // What changes otherwise changes nothing of them.
    moves(ledger, "t1", 1, 1.0, at(40));
    let most = |tasks| VisitsMost { tasks, bytes: 1 << 20 };
    let told = ledger.visits(None, at(0), most(9)).unwrap().tasks;
    assert_eq!(
        told.iter().map(|told| (told.task.as_str(), told.time)).collect::<Vec<_>>(),
        [("t1", at(30)), ("t2", at(20))]
    );
    let mut both = visit("b", "x", Some("no-space"));
    both.merge(&visit("b", "y", Some("input-output")));
    assert_eq!(told[0].visits, [visit("a", "x", None), both]);
    let tasks = |owner: Option<&str>, since: Moment, limit: usize| {
        let told = ledger.visits(owner, since, most(limit)).unwrap().tasks;
        told.into_iter().map(|told| told.task).collect::<Vec<_>>()
    };
    // Neither more tasks nor more bytes are read than may be, and whoever asks is told.
    let bytes = |at: usize| serde_json::to_vec(&told[at].visits).unwrap().len();
    for (tasks, bytes, expected) in [
        (9, bytes(0) + bytes(1), (2, true)),
        (2, 1 << 20, (2, true)),
        (1, 1 << 20, (1, false)),
        (9, bytes(0) + bytes(1) - 1, (1, false)),
        (9, bytes(0) - 1, (0, false)),
    ] {
        let found = ledger.visits(None, at(0), VisitsMost { tasks, bytes }).unwrap();
        assert_eq!((found.tasks.len(), found.complete), expected, "{tasks} tasks, {bytes} bytes");
    }
    assert_eq!(tasks(Some("ada"), at(0), 9), ["t1", "t2"]);
    assert!(tasks(Some("bob"), at(0), 9).is_empty());
    assert_eq!((tasks(None, at(25), 9), tasks(None, at(0), 1)), (vec!["t1".to_owned()], vec!["t1".to_owned()]));
    end(ledger, "t1", TaskState::Failed, at(50));
    let retention = Retention { tasks_ended_before: at(60), events_before: at(0), limit: 9 };
    assert_eq!(ledger.forget(&retention).unwrap(), ["t1"]);
    assert_eq!(tasks(None, at(0), 9), ["t2"]);
}
