//! Backups made while the ledger is written to, restores killed at any step, and what a restore makes of old tasks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::AtomicBool;
use std::thread;

use rustix::process::{Signal, getpid, kill_process};

use super::*;
use crate::ledger::rules;
use crate::ledger::sqlite::backup::{BackupError, backup, restore, restore_by_steps};
use crate::ledger::sqlite::check::check;
use crate::ledger::sqlite::open::beside;
use crate::model::{BlockedCause, Role, TaskKind, TimerSchedule, TimerState};

const YESTERDAY: Moment = Moment(1_000);
const NOW: Moment = Moment(9_000);

fn of_kind(id: &str, kind: TaskKind) -> Submission {
    let submission = submission(id);
    let mut request = NewTask { kind, ..submission.request };
    request.options.delete = id.ends_with("deletes");
    Submission { request, ..submission }
}

fn note(id: &str) -> NewEvent {
    rules::submitted_event(&submission(id))
}

fn to(state: TaskState) -> TaskChange {
    TaskChange { state: Some(state), ..TaskChange::default() }
}

fn timer(id: &str, kind: TaskKind) -> Timer {
    Timer {
        id: id.to_owned(),
        owner: "ada".to_owned(),
        label: None,
        schedule: TimerSchedule::default(),
        task: of_kind(id, kind).request,
        state: TimerState::Waiting,
        next_run: Some(Moment(1)),
        runs: 3,
        last_task: None,
        made: Moment(0),
        version: 1,
    }
}

fn session(id: &str, is_session: bool) -> TokenRow {
    TokenRow {
        id: id.to_owned(),
        user: "ada".to_owned(),
        label: String::new(),
        scope: None,
        made: Moment(0),
        expires: None,
        used: None,
        is_session,
    }
}

/// Tasks in every situation, timers and tokens.
fn fill(ledger: &SqliteLedger) {
    for (id, kind) in [
        ("copy queued", TaskKind::Copy),
        ("copy active", TaskKind::Copy),
        ("copy active, to pause", TaskKind::Copy),
        ("move queued", TaskKind::Move),
        ("move active", TaskKind::Move),
        ("move paused", TaskKind::Move),
        ("move cancelling", TaskKind::Move),
        ("move ended", TaskKind::Move),
        ("delete queued", TaskKind::Delete),
        ("copy deletes", TaskKind::Copy),
    ] {
        ledger.submit(&of_kind(id, kind), Moment(0)).unwrap();
    }
    let any = TaskGuard::default();
    for id in ["copy active", "copy active, to pause", "move active", "move cancelling", "move ended"] {
        ledger.claim(id, Moment(1), &note(id)).unwrap();
    }
    let pause = TaskChange { pause_wanted: Some(true), ..TaskChange::default() };
    ledger.change_task("copy active, to pause", &any, &pause, &[], Moment(2)).unwrap();
    ledger.change_task("move paused", &any, &to(TaskState::Paused), &[], Moment(2)).unwrap();
    ledger.change_task("move cancelling", &any, &to(TaskState::Cancelling), &[], Moment(2)).unwrap();
    ledger.change_task("move ended", &any, &to(TaskState::Succeeded), &[], Moment(2)).unwrap();
    ledger.add_timer(&timer("copies", TaskKind::Copy), &note("t")).unwrap();
    ledger.add_timer(&timer("moves", TaskKind::Move), &note("t")).unwrap();
    ledger.add_timer(&timer("deletes", TaskKind::Copy), &note("t")).unwrap();
    let user = User { name: "ada".to_owned(), role: Role::User, account: None, enabled: true, added: Moment(0) };
    ledger.add_user(&UserRow { user, password: None }).unwrap();
    ledger.add_token(&session("login", true), &[1; 32]).unwrap();
    ledger.add_token(&session("script", false), &[2; 32]).unwrap();
}

fn file(place: &Place, name: &str) -> PathBuf {
    place.path().with_file_name(name)
}

#[test]
fn backup_of_a_ledger_in_use_is_whole_and_of_one_moment() {
    let place = Place::new();
    let ledger = place.open();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut accepted = 0;
            while !done.load(Ordering::Relaxed) {
                ledger.submit(&submission(&format!("t{accepted}")), Moment(0)).unwrap();
                accepted += 1;
            }
            accepted
        });
        let mut before = 0;
        for number in 0..5 {
            let to = file(&place, &format!("backup {number}"));
            let report = backup(&place.path(), &to, YESTERDAY).unwrap();
            assert_eq!((report.made, report.bytes), (YESTERDAY, fs::metadata(&to).unwrap().len()));
            assert!(report.tasks >= before);
            before = report.tasks;
            // Each task has its event, and no task is missing in between.
            let copy = Connection::open(&to).unwrap();
            let count = |sql: &str| copy.query_row(sql, (), |row| row.get::<_, u32>(0)).unwrap();
            let tasks = count("SELECT count(*) FROM task");
            assert_eq!(u64::from(tasks), report.tasks);
            assert_eq!(tasks, count("SELECT count(*) FROM event"));
            assert_eq!(tasks, count("SELECT count(*) FROM task WHERE id = 't' || (seq - 1)"));
        }
        done.store(true, Ordering::Relaxed);
        assert!(writer.join().unwrap() > 0);
    });
    let mut left: Vec<_> = fs::read_dir(place.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.retain(|name| !name.to_str().unwrap().starts_with("backup "));
    left.sort_unstable();
    assert_eq!(left, ["ledger.db", "ledger.db-open", "ledger.db-shm", "ledger.db-wal"]);
}

#[test]
fn backup_never_replaces_a_file_and_is_read_by_its_owner_alone() {
    let place = Place::new();
    drop(place.open());
    let to = file(&place, "backup");
    backup(&place.path(), &to, YESTERDAY).unwrap();
    assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
    let before = fs::read(&to).unwrap();
    assert!(matches!(backup(&place.path(), &to, NOW), Err(BackupError::Exists(path)) if path == to));
    assert!(fs::read(&to).unwrap() == before);
    let missing = backup(&file(&place, "no.db"), &file(&place, "backup 2"), NOW);
    assert!(matches!(missing, Err(BackupError::Ledger(_))), "{missing:?}");
    assert!(!file(&place, "backup 2").exists());
}

#[test]
fn restore_has_what_moves_or_deletes_confirmed_and_fences_off_what_was() {
    let place = Place::new();
    let ledger = place.open();
    fill(&ledger);
    let old_events = ledger.event_range().unwrap().0;
    let from = file(&place, "backup");
    backup(&place.path(), &from, YESTERDAY).unwrap();
    ledger.submit(&submission("since"), Moment(5)).unwrap();
    drop(ledger);
    let report = restore(&place.path(), &from, NOW).unwrap();
    assert_eq!((report.made, report.tasks), (Some(YESTERDAY), 10));
    assert_eq!(
        report.to_confirm,
        ["move queued", "move active", "move paused", "move cancelling", "delete queued", "copy deletes"]
    );
    assert_eq!(
        (report.paused_timers, report.sessions_ended, report.tokens),
        (vec!["moves".to_owned(), "deletes".to_owned()], 1, 1)
    );

    let ledger = place.open();
    assert_eq!(ledger.task("since"), Err(LedgerError::Missing));
    for (id, state, must_confirm) in [
        ("copy queued", TaskState::Queued, false),
        ("copy active", TaskState::Queued, false),
        ("copy active, to pause", TaskState::Paused, false),
        ("move queued", TaskState::Queued, true),
        ("move active", TaskState::Queued, true),
        ("move paused", TaskState::Paused, true),
        ("move cancelling", TaskState::Cancelling, false),
        ("move ended", TaskState::Succeeded, false),
        ("delete queued", TaskState::Queued, true),
        ("copy deletes", TaskState::Queued, true),
    ] {
        let task = ledger.task(id).unwrap();
        let cause = task.blocked.map(|blocked| blocked.cause);
        assert_eq!((task.state, cause), (state, must_confirm.then_some(BlockedCause::Confirm)), "{id}");
        assert!(task.fence >= rules::RESTORE_STEP, "{id}");
        // A worker of the ledger that was replaced.
        for fence in 1..4 {
            let guard = TaskGuard { fence: Some(fence), ..TaskGuard::default() };
            let late = ledger.change_task(id, &guard, &to(TaskState::Succeeded), &[], NOW);
            assert_eq!(late, Err(LedgerError::Fenced), "{id}");
        }
        assert_eq!(ledger.claim(id, NOW, &note(id)).is_ok(), state == TaskState::Queued && !must_confirm, "{id}");
    }
    let confirm = TaskChange { blocked: Some(None), ..TaskChange::default() };
    ledger.change_task("move queued", &TaskGuard::default(), &confirm, &[], NOW).unwrap();
    ledger.claim("move queued", NOW, &note("move queued")).unwrap();
    // Whoever follows events by number misses none: all that follow are greater than any that was told.
    let told = ledger.events(&EventFilter { since: old_events + 1000, ..EventFilter::default() }, 100).unwrap();
    assert!(told.iter().any(|event| event.text.contains("restored")), "{told:?}");
    assert_eq!(ledger.due_timers(NOW, 10).unwrap(), [timer("copies", TaskKind::Copy)]);
    assert_eq!(ledger.timer("moves").unwrap().state, TimerState::Paused);
    assert_eq!(ledger.tokens("ada").unwrap(), [session("script", false)]);
    // The submission of a task that is in the backup is still known.
    assert!(ledger.submit(&submission("copy queued"), NOW).unwrap().duplicate);
    drop(ledger);

    let replaced = report.replaced.unwrap();
    let replaced = SqliteLedger::open(&replaced, NOW).unwrap();
    assert_eq!(replaced.task("since").unwrap().id, "since");
}

#[test]
fn restore_is_refused_while_a_service_runs() {
    let place = Place::new();
    drop(place.open());
    let from = file(&place, "backup");
    backup(&place.path(), &from, YESTERDAY).unwrap();
    let service = fs::File::create(file(&place, "service.lock")).unwrap();
    service.lock().unwrap();
    let before = fs::read(place.path()).unwrap();
    assert!(matches!(restore(&place.path(), &from, NOW), Err(BackupError::InUse(_))));
    assert!(fs::read(place.path()).unwrap() == before);
    drop(service);
    restore(&place.path(), &from, NOW).unwrap();
}

#[test]
fn restore_of_what_is_no_whole_backup_leaves_the_ledger() {
    let place = Place::new();
    place.open().submit(&submission("t1"), Moment(0)).unwrap();
    let good = file(&place, "backup");
    backup(&place.path(), &good, YESTERDAY).unwrap();
    let bad = file(&place, "bad");
    let whole = fs::read(&good).unwrap();
    let newer = file(&place, "newer");
    fs::copy(&good, &newer).unwrap();
    Connection::open(&newer).unwrap().execute_batch("INSERT INTO migration VALUES (999, 'x', 'y', 0, '9')").unwrap();
    let mut flipped = whole.clone();
    flipped[4096..8192].iter_mut().for_each(|byte| *byte = !*byte);
    for (content, kind) in [
        (&b""[..], OpenErrorKind::OtherFile),
        (&b"no database at all, but a text of some length, so that there is a header"[..], OpenErrorKind::Damaged),
        (&whole[..whole.len() - 4096], OpenErrorKind::Damaged),
        (&flipped, OpenErrorKind::Damaged),
        (&fs::read(&newer).unwrap(), OpenErrorKind::NewerSchema),
    ] {
        fs::write(&bad, content).unwrap();
        let error = restore(&place.path(), &bad, NOW).unwrap_err();
        assert!(matches!(&error, BackupError::Ledger(error) if error.kind == kind && error.path == bad), "{error:?}");
        assert_eq!(place.open().task("t1").unwrap().fence, 0);
    }
    assert!(matches!(restore(&place.path(), &file(&place, "none"), NOW), Err(BackupError::System(..))));
}

#[test]
fn restore_mends_a_ledger_that_is_damaged_gone_or_without_its_log() {
    for spoil in [
        |path: &Path| {
            fs::write(path, vec![7; 20_000]).unwrap();
            fs::write(beside(path, "-wal"), "").unwrap();
        },
        |path: &Path| fs::remove_file(path).unwrap(),
        |path: &Path| fs::remove_file(beside(path, "-wal")).unwrap(),
    ] {
        let place = Place::new();
        fs::create_dir_all(file(&place, "tasks").join("t1")).unwrap();
        let other = Place::new();
        let ledger = other.open();
        ledger.submit(&submission("t1"), Moment(0)).unwrap();
        backup(&other.path(), &file(&place, "backup"), YESTERDAY).unwrap();
        for name in ["ledger.db", "ledger.db-wal", "ledger.db-open"] {
            fs::copy(file(&other, name), file(&place, name)).unwrap();
        }
        spoil(&place.path());
        place.refused();
        restore(&place.path(), &file(&place, "backup"), NOW).unwrap();
        assert_eq!(place.open().task("t1").unwrap().state, TaskState::Queued);
    }
}

/// Restores the file `backup` beside a ledger, and kills itself before a step.
pub fn restore_until(ledger: &Path, last: u32) {
    let mut steps = 0;
    let mut step = || {
        if steps == last {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
        steps += 1;
    };
    restore_by_steps(ledger, &ledger.with_file_name("backup"), NOW, &mut step).unwrap();
}

/// Killed at any step: the ledger is the old one, the new one, or refused; never a mixture, never empty.
#[test]
fn killed_while_it_restores_leaves_the_old_ledger_or_the_new_one_or_none() {
    let (mut olds, mut refusals) = (0, 0);
    for step in 0.. {
        let place = Place::new();
        let ledger = place.open();
        ledger.submit(&submission("t1"), Moment(0)).unwrap();
        fs::create_dir_all(file(&place, "tasks").join("t1")).unwrap();
        backup(&place.path(), &file(&place, "backup"), YESTERDAY).unwrap();
        ledger.submit(&submission("since"), Moment(0)).unwrap();
        // As a service that was killed leaves it.
        std::mem::forget(ledger);
        let done = player(&own_program(), &format!("restore {step}"), &place.path()).output().unwrap();
        match place.try_open() {
            Ok(ledger) => {
                let is_new = ledger.task("t1").unwrap().fence > 0;
                assert_eq!(ledger.task("since").is_err(), is_new, "step {step}");
                olds += u32::from(!is_new);
                assert!(is_new || !done.status.success(), "step {step}");
            }
            Err(error) => {
                assert!(matches!(error.kind, OpenErrorKind::LogLost | OpenErrorKind::Gone), "step {step}: {error}");
                refusals += 1;
            }
        }
        restore(&place.path(), &file(&place, "backup"), NOW).unwrap();
        assert!(place.open().task("since").is_err(), "step {step}");
        if done.status.success() {
            break;
        }
        assert!(step < 20, "{done:?}");
    }
    assert!(olds >= 2 && refusals >= 2, "{olds} {refusals}");
}

#[test]
fn check_finds_nothing_in_a_ledger_that_is_well() {
    let place = Place::new();
    let ledger = place.open();
    fill(&ledger);
    for id in ["copy active", "copy active, to pause", "move active", "move cancelling", "move ended"] {
        fs::create_dir_all(file(&place, "tasks").join(id)).unwrap();
        fs::write(file(&place, "tasks").join(id).join("journal"), "").unwrap();
    }
    let report = check(&place.path()).unwrap();
    assert_eq!((report.tasks, report.open_tasks, report.findings), (10, 9, vec![]));
    // A service that is killed may leave the directory of a task that it has forgotten.
    place.alter("INSERT INTO forgotten (task) VALUES ('forgotten')");
    fs::create_dir(file(&place, "tasks").join("forgotten")).unwrap();
    assert_eq!(check(&place.path()).unwrap().findings, vec![]);
}

#[test]
fn check_of_a_ledger_that_lacks_a_step_says_so_and_no_more() {
    let place = Place::new();
    drop(place.open());
    place.alter("DROP TABLE forgotten; DELETE FROM migration WHERE number = 2");
    let kinds: Vec<_> = check(&place.path()).unwrap().findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, ["schema"]);
    drop(place.open());
    assert_eq!(check(&place.path()).unwrap().findings, vec![]);
}

#[test]
fn check_finds_what_is_wrong() {
    let place = Place::new();
    fill(&place.open());
    fs::create_dir_all(file(&place, "tasks").join("stranger")).unwrap();
    place.alter(
        "PRAGMA foreign_keys = OFF; DELETE FROM user; UPDATE task SET request = '{\"x\": 1}' WHERE id = 'move queued';
         UPDATE timer SET schedule = '' WHERE id = 'moves'",
    );
    let report = check(&place.path()).unwrap();
    let found = |kind: &str, part: &str| {
        let of_kind = |finding: &&_| -> bool {
            let finding: &crate::ledger::sqlite::check::CheckFinding = finding;
            finding.kind == kind && finding.why.contains(part)
        };
        report.findings.iter().filter(of_kind).count()
    };
    assert_eq!(found("journal-missing", "task move active "), 1, "{report:?}");
    assert_eq!(found("journal-missing", ""), 5, "{report:?}");
    assert_eq!(found("task-unknown", "stranger"), 1, "{report:?}");
    assert_eq!(found("damage", "table token"), 2, "{report:?}");
    assert_eq!(found("unreadable", "task move queued"), 1, "{report:?}");
    assert_eq!(found("unreadable", "timer moves"), 1, "{report:?}");
    fs::write(place.path(), vec![7; 20_000]).unwrap();
    let report = check(&place.path()).unwrap();
    assert!(report.findings.iter().any(|finding| finding.kind == "schema" || finding.kind == "damage"), "{report:?}");
}
