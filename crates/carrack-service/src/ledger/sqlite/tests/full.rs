//! Storage that is full, or takes nothing any more. In a mount namespace that goes with its process.

use std::fs;

use super::*;

/// Plays a part with a ledger on a file system of its own of 2 MiB.
fn on_small_storage(part: &str) {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let directory = place.path().parent().unwrap().to_owned();
    let mut command = player("unshare", part, &place.path());
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = {
        let mut mounted = Command::new("unshare");
        mounted.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        mounted.args(["-m", "sh", "-c", "mount -t tmpfs -o size=2m none \"$0\" && exec \"$@\""]);
        mounted.arg(directory).arg(own_program()).args(arguments);
        mounted
    };
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn full_storage_refuses_what_is_new_and_keeps_what_is_there() {
    on_small_storage("fill");
}

pub fn fill(path: &Path) {
    let ballast = path.with_file_name("ballast");
    fs::write(&ballast, vec![1; 1 << 20]).unwrap();
    let ledger = SqliteLedger::open(path, Moment(0)).unwrap();
    let mut accepted = Vec::new();
    let refused = loop {
        let id = format!("t{}", accepted.len());
        match ledger.submit(&submission(&id), Moment(0)) {
            Ok(submitted) => accepted.push(submitted.task),
            Err(error) => break error,
        }
    };
    assert!(matches!(&refused, LedgerError::Full(why) if why.contains("ledger.db")), "{refused:?}");
    assert!(accepted.len() > 10, "{}", accepted.len());
    // What is there is read; health is told.
    for task in &accepted {
        assert_eq!(ledger.task(&task.id).as_ref(), Ok(task));
    }
    let probes = (0..100).map(|_| ledger.submit(&submission("new"), Moment(0)).and_then(|_| ledger.probe()));
    assert!(probes.into_iter().any(|probe| matches!(probe, Err(LedgerError::Full(_)))));
    let filled = SqliteLedger::open(&path.with_file_name("other.db"), Moment(0));
    assert_eq!(filled.map(|_| ()).unwrap_err().kind, OpenErrorKind::Full);
    // As soon as there is room it goes on by itself.
    fs::remove_file(&ballast).unwrap();
    assert_eq!(ledger.probe(), Ok(()));
    ledger.submit(&submission("later"), Moment(0)).unwrap();
    drop(ledger);
    let ledger = SqliteLedger::open(path, Moment(0)).unwrap();
    assert!(accepted.iter().all(|task| ledger.task(&task.id).as_ref() == Ok(task)));
    assert!(ledger.task("later").is_ok());
}

#[test]
fn read_only_storage_is_refused_with_its_reason() {
    on_small_storage("read-only");
}

pub fn open_read_only(path: &Path) {
    drop(SqliteLedger::open(path, Moment(0)).unwrap());
    let directory = path.parent().unwrap();
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(directory).status().unwrap();
    assert!(remounted.success());
    let refused = SqliteLedger::open(path, Moment(0)).map(|_| ()).unwrap_err();
    assert_eq!(refused.kind, OpenErrorKind::ReadOnly, "{refused}");
}

#[test]
fn quota_that_is_used_up_is_storage_that_is_full() {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        return;
    }
    let place = Place::new();
    let mut command = player("strace", "quota", &place.path());
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = {
        let mut traced = Command::new("strace");
        traced.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        traced.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64"]);
        traced.args(["-e", "inject=pwrite64:error=EDQUOT:when=300+"]).arg(own_program()).args(arguments);
        traced
    };
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&done.stderr));
}

pub fn meet_quota(path: &Path) {
    let ledger = SqliteLedger::open(path, Moment(0)).unwrap();
    let mut tries = (0..1000).map(|number| ledger.submit(&submission(&format!("t{number}")), Moment(0)));
    let refused = tries.find_map(Result::err).expect("the system refuses to write");
    assert!(matches!(&refused, LedgerError::Full(why) if why.contains("quota")), "{refused:?}");
    assert!(ledger.task("t0").is_ok());
    assert!(!path.with_extension("room").exists());
}
