//! Paths, measured by a line of shell that stands for `carrack worker --path`.

use std::time::{Duration, Instant};

use carrack_core::location::Location;

use super::Refused;
use super::tests::{LONG, Rig, WAITS};
use crate::model::{BenchState, PathStatus};
use crate::worker::paths::PathOrder;
use crate::worker::{EndOrder, PairOrder};

fn order() -> PathOrder {
    let end = |host: &str| {
        let location = Location::parse_document(&format!("carrack://{host}:7420/data")).unwrap();
        EndOrder::at_location(location)
    };
    PathOrder { pair: PairOrder::new(end("one"), Some(end("other"))), streams: None, rate_limit: Some(7_000_000) }
}

impl Rig {
    fn path(&self, from: &str, to: &str) -> PathStatus {
        self.benches.path_status(from, to).unwrap()
    }

    fn path_until(&self, what: &str, is_so: impl Fn(&PathStatus) -> bool) -> PathStatus {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let status = self.path("lab", "archive");
            if is_so(&status) {
                return status;
            }
            assert!(Instant::now() < until, "{what}: {status:?}");
            std::thread::yield_now();
        }
    }

    fn path_ended(&self) -> PathStatus {
        self.path_until("the end", |status| matches!(status.state, BenchState::Finished | BenchState::Failed))
    }
}

#[test]
fn path_is_measured_and_kept_over_a_restart_and_seen_from_both_ends() {
    let rig = Rig::new(LONG);
    assert_eq!((rig.path("lab", "archive").state, rig.path("lab", "archive").result), (BenchState::Idle, None));
    rig.benches.start_path("lab", "archive", order()).unwrap();
    let status = rig.path_ended();
    assert_eq!((status.state, &status.failure), (BenchState::Finished, &None));
    let ordered = std::fs::read_to_string(rig.directory.path().join("ordered")).unwrap();
    assert!(ordered.contains("carrack://one:7420/data") && ordered.contains("7000000"), "{ordered}");
    let result = status.result.unwrap();
    assert_eq!((result.there.bytes_per_second, result.back.bytes_per_second), (Some(1e8), Some(9e7)));
    assert_eq!((result.there.streams, result.back.resent_share), (Some(4), Some(0.0002)));
    assert_eq!((result.rate_limit, result.notes.len()), (Some(7_000_000), 1));
    assert!(result.time >= status.started.unwrap() && result.program == env!("CARGO_PKG_VERSION"));
    let other = rig.path("archive", "lab");
    assert_eq!((other.from.as_str(), other.state), ("archive", BenchState::Finished));
    assert_eq!(other.result, Some(result.clone().turned()));
    assert_eq!(rig.path("lab", "elsewhere").result, None);
    let later = Rig::over(rig.directory.path(), LONG);
    assert_eq!(later.path_status("archive", "lab").unwrap().result, Some(result.turned()));
    // Another endpoint's results stay; those of the path go with either end.
    later.forget("la");
    assert!(rig.path("lab", "archive").result.is_some());
    later.forget("lab");
    assert_eq!(rig.path("lab", "archive").result, None);
    assert_eq!(std::fs::read_dir(rig.directory.path().join("bench")).unwrap().count(), 0);
}

#[test]
fn path_keeps_its_last_result_beside_the_failure_of_a_later_run() {
    let rig = Rig::new(LONG);
    rig.benches.start_path("lab", "archive", order()).unwrap();
    let kept = rig.path_ended().result;
    let failure = r#"{"code":"permission-denied","side":"link","why":"@archive: the node takes no measurements from this client","retryable":"no"}"#;
    rig.script("path", &format!(r#"echo '{{"there":{{}},"back":{{}},"notes":[],"failure":{failure}}}'"#));
    rig.benches.start_path("archive", "lab", order()).unwrap();
    let status = rig.path_until("it failed", |status| status.state == BenchState::Failed);
    let why = status.failure.unwrap();
    assert_eq!(why.why, "@archive: the node takes no measurements from this client");
    assert!(why.hints[0].contains("--measure token"), "{why:?}");
    assert_eq!(status.result, kept);
    // A half of it is a result, too.
    let half = r#"{"there":{"bytes_per_second":5.0},"back":{"error":"lost"},"notes":[],"failure":"#;
    rig.script("path", &format!("echo '{half}{failure}}}'"));
    rig.benches.start_path("lab", "archive", order()).unwrap();
    let is_half = |status: &PathStatus| status.result.as_ref().is_some_and(|of| of.there.bytes_per_second == Some(5.0));
    let status = rig.path_until("a half is kept", is_half);
    assert_eq!((status.state, status.result.unwrap().back.error.as_deref()), (BenchState::Failed, Some("lost")));
    rig.script("path", "head -c 100 \"$0/path\"; kill -KILL $$");
    rig.benches.start_path("lab", "archive", order()).unwrap();
    let is_killed = |status: &PathStatus| status.failure.as_ref().is_some_and(|why| why.why.contains("signal: 9"));
    rig.path_until("it was killed", is_killed);
}

#[test]
fn path_that_takes_too_long_is_ended_and_told() {
    let rig = Rig::new(Duration::from_secs(2));
    rig.script("path", WAITS);
    rig.benches.start_path("lab", "archive", order()).unwrap();
    let why = rig.path_ended().failure.unwrap();
    assert_eq!((why.why.as_str(), why.hints.len()), ("it took longer than 2 s", 1));
    assert_eq!(rig.begun(), "path\nended\n");
}

#[test]
fn path_is_measured_while_nothing_else_is_and_ends_with_either_endpoint_and_with_the_service() {
    let rig = Rig::new(LONG);
    rig.script("path", WAITS);
    rig.benches.start_path("lab", "archive", order()).unwrap();
    rig.path_until("it runs", |status| status.state == BenchState::Running && rig.begun() == "path\n");
    let busy = "the path between @archive and @lab";
    assert!(matches!(rig.benches.start("lab", Vec::new()), Err(Refused::Busy { of, .. }) if of == busy));
    assert!(matches!(rig.benches.start_path("a", "b", order()), Err(Refused::Busy { of, .. }) if of == busy));
    assert_eq!(rig.benches.status("lab").unwrap().state, BenchState::Idle);
    rig.benches.forget("archive");
    rig.path_until("its process has ended", |status| {
        status.state == BenchState::Idle && rig.begun() == "path\nended\n"
    });
    rig.path_until("another begins", |_| rig.benches.start_path("lab", "archive", order()).is_ok());
    rig.path_until("it runs", |_| rig.begun() == "path\nended\npath\n");
    rig.benches.stop();
    rig.path_until("its process has ended", |_| rig.begun() == "path\nended\npath\nended\n");
    assert!(matches!(rig.benches.start_path("lab", "archive", order()), Err(Refused::Stopping)));
}
