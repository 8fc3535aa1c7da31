//! Measuring by programs that stand for `carrack worker --bench`: lines of shell.

use std::path::Path;
use std::time::Instant;

use super::*;
use crate::clock::SystemClock;

/// What a program prints that has measured one row.
const ROW: &str = r#"{"v":1,"type":"note","message":"small"}
{"v":1,"type":"row","name":"write","conditions":{"depth":"1"},"values":{"bytes_per_second":5e8},"labels":[],"latency":{}}
{"v":1,"type":"summary","elapsed_seconds":1.5,"verdict":"the disk"}"#;
/// Prints it, and notes each process by a line in `begun`. The kind of the order names a file with other words to run.
const SCRIPT: &str = r#"
read -r order
kind=$(printf '%s' "$order" | sed 's/.*"kind":"\([a-z]*\)".*/\1/')
echo "$kind" >> "$0/begun"
if [ -e "$0/$kind.sh" ]; then . "$0/$kind.sh"; else cat "$0/row"; fi
"#;

/// What a program prints that has measured a path.
const PATH: &str = r#"{"there":{"bytes_per_second":1e8,"streams":4,"round_trip_us":20100.0,"labels":[]},
"back":{"bytes_per_second":9e7,"resent_share":0.0002,"labels":["processor"]},"notes":["a note"],"failure":null}"#;
/// Prints it, and keeps the order; `path.sh` has other words to run.
const PATH_SCRIPT: &str = r#"
read -r order
printf '%s\n' "$order" > "$0/ordered"
echo path >> "$0/begun"
if [ -e "$0/path.sh" ]; then . "$0/path.sh"; else cat "$0/path"; fi
"#;

fn shell(directory: &Path, patience: Duration) -> Programs {
    std::fs::write(directory.join("row"), ROW).unwrap();
    std::fs::write(directory.join("path"), PATH).unwrap();
    let arguments = |script: &str| ["-c", script, directory.to_str().unwrap()].map(str::to_owned).to_vec();
    let (arguments, path_arguments) = (arguments(SCRIPT), arguments(PATH_SCRIPT));
    Programs { program: "/bin/sh".into(), arguments, path_arguments, environment: vec!["PATH".into()], patience }
}

/// For tests of the API: each kind has one row, unless a file says something else.
pub fn measures_nothing(directory: &Path) -> Programs {
    shell(directory, Duration::from_secs(60))
}

pub(super) struct Rig {
    pub(super) directory: tempfile::TempDir,
    pub(super) benches: Arc<Benches>,
}

impl Rig {
    pub(super) fn new(patience: Duration) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let benches = Self::over(directory.path(), patience);
        Self { directory, benches }
    }

    pub(super) fn over(directory: &Path, patience: Duration) -> Arc<Benches> {
        Benches::new(directory.join("bench"), shell(directory, patience), Arc::new(SystemClock::new()))
    }

    /// What a kind, or the measuring of a path, does instead.
    pub(super) fn script(&self, kind: &str, script: &str) {
        std::fs::write(self.directory.path().join(format!("{kind}.sh")), script).unwrap();
    }

    /// The kinds whose processes were started.
    pub(super) fn begun(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("begun")).unwrap_or_default()
    }

    fn until(&self, what: &str, is_so: impl Fn(&BenchStatus) -> bool) -> BenchStatus {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let status = self.benches.status("lab").unwrap();
            if is_so(&status) {
                return status;
            }
            assert!(Instant::now() < until, "{what}: {status:?}");
            std::thread::yield_now();
        }
    }

    fn ended(&self) -> BenchStatus {
        self.until("the end", |status| matches!(status.state, BenchState::Finished | BenchState::Failed))
    }
}

pub(super) const LONG: Duration = Duration::from_secs(60);
/// Goes on until its input ends, as what measures does.
pub(super) const WAITS: &str = "cat > /dev/null; echo ended >> \"$0/begun\"";

#[test]
fn bench_measures_each_kind_and_keeps_results_over_a_restart() {
    let rig = Rig::new(LONG);
    assert_eq!(rig.benches.status("lab").unwrap().state, BenchState::Idle);
    rig.benches.start("lab", b"/data".to_vec()).unwrap();
    let status = rig.ended();
    assert_eq!(
        (status.state, status.failures.len(), rig.begun().as_str()),
        (BenchState::Finished, 0, "disk\ncpu\nladder\n")
    );
    assert_eq!(status.results.iter().map(|result| result.kind).collect::<Vec<_>>(), BenchKind::ALL);
    let disk = &status.results[0];
    assert_eq!(
        (disk.elapsed_seconds, disk.verdict.as_deref(), disk.notes.as_slice()),
        (1.5, Some("the disk"), &["small".to_owned()][..])
    );
    assert_eq!((disk.rows[0].name.as_str(), disk.rows[0].values["bytes_per_second"]), ("write", 5e8));
    assert!(disk.time >= status.started.unwrap() && disk.program == env!("CARGO_PKG_VERSION"));
    // Another service over the same directory.
    let later = Rig::over(rig.directory.path(), LONG).status("lab").unwrap();
    assert_eq!((later.state, later.results), (BenchState::Idle, status.results));
    assert!(rig.benches.status("other").unwrap().results.is_empty());
    rig.benches.forget("lab");
    assert_eq!(rig.benches.status("lab").unwrap().results, []);
    assert_eq!(std::fs::read_dir(rig.directory.path().join("bench")).unwrap().count(), 0);
}

#[test]
fn bench_tells_why_a_kind_failed_and_measures_the_others() {
    let rig = Rig::new(LONG);
    rig.script("disk", r#"echo '{"type":"error","code":"no-space","message":"no room"}'; exit 12"#);
    rig.script("cpu", "head -c 100 \"$0/row\"; kill -KILL $$");
    rig.benches.start("lab", b"/data".to_vec()).unwrap();
    let status = rig.ended();
    assert_eq!(status.state, BenchState::Failed);
    let [disk, cpu] = &status.failures[..] else { panic!("{status:?}") };
    assert_eq!((disk.kind, disk.why.as_str()), (BenchKind::Disk, "no room"));
    assert!(disk.hint.as_ref().unwrap().contains("free some space below /data"), "{disk:?}");
    assert!(cpu.kind == BenchKind::Cpu && cpu.why.contains("signal: 9"), "{cpu:?}");
    assert_eq!(status.results.iter().map(|result| result.kind).collect::<Vec<_>>(), [BenchKind::Ladder]);
}

#[test]
fn bench_that_prints_without_end_or_takes_too_long_is_ended_and_told() {
    let rig = Rig::new(Duration::from_secs(2));
    rig.script("disk", "exec yes");
    rig.script("cpu", WAITS);
    rig.benches.start("lab", b"/data".to_vec()).unwrap();
    let status = rig.ended();
    let whys: Vec<&str> = status.failures.iter().map(|failure| failure.why.as_str()).collect();
    assert_eq!(whys, ["it printed too much", "it took longer than 2 s"]);
    assert_eq!(rig.begun(), "disk\ncpu\nended\nladder\n");
}

#[test]
fn bench_runs_once_at_a_time_and_ends_with_its_endpoint_and_with_the_service() {
    let rig = Rig::new(LONG);
    rig.script("disk", WAITS);
    rig.benches.start("lab", b"/data".to_vec()).unwrap();
    let running = rig.until("it runs", |_| rig.begun() == "disk\n");
    assert_eq!((running.state, running.measuring), (BenchState::Running, Some(BenchKind::Disk)));
    for name in ["lab", "other"] {
        assert!(matches!(rig.benches.start(name, Vec::new()), Err(Refused::Busy { of, .. }) if of == "@lab"));
    }
    assert_eq!(rig.benches.status("other").unwrap().state, BenchState::Idle);
    rig.benches.forget("lab");
    rig.until("its process has ended, and no other begins", |status| {
        status.state == BenchState::Idle && rig.begun() == "disk\nended\n"
    });
    // A run that was cancelled holds up no other for long.
    rig.until("another begins", |_| rig.benches.start("lab", b"/data".to_vec()).is_ok());
    rig.until("it runs", |_| rig.begun() == "disk\nended\ndisk\n");
    rig.benches.stop();
    rig.until("its process has ended", |_| rig.begun() == "disk\nended\ndisk\nended\n");
    assert!(matches!(rig.benches.start("lab", Vec::new()), Err(Refused::Stopping)));
    assert_eq!(rig.benches.status("lab").unwrap().results, []);
}
