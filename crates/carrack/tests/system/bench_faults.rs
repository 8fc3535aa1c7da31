//! `carrack bench disk` where something goes wrong: it says what, keeps no result, and leaves nothing behind.

use std::fs;
use std::path::Path;
use std::process::Command;

use carrack_faults::image::Scarce;
use carrack_faults::strace::Inject;

use crate::faults::{Mounted, NOBODY, open_to_all, under};
use crate::support::process::signal;
use crate::support::running::{InTime, Running};
use crate::support::{Sandbox, is_root, ran, tool, wait_until};

/// Everything that is in a directory, hidden names too.
fn names(directory: &Path) -> Vec<String> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Neither files nor a result nor a page are left.
#[track_caller]
fn left_nothing(sandbox: &Sandbox, directory: &str) {
    assert_eq!(names(&sandbox.path(directory)), Vec::<String>::new());
    assert!(!sandbox.path("home/.local").exists(), "a result was kept");
    for page in ["page.html", "page.html.part"] {
        assert!(!sandbox.path(page).exists(), "{page}");
    }
}

#[test]
fn bench_disk_refuses_places_that_it_cannot_write() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "mine");
    sandbox.run(["bench", "disk", "file", "--html=page.html"]).failed_with(11, &["file"]);
    sandbox.run(["bench", "disk", "absent", "--html=page.html"]).failed_with(11, &["absent"]);
    if !is_root() {
        return;
    }
    fs::create_dir(sandbox.path("closed")).unwrap();
    open_to_all(&sandbox);
    let ran = under(&sandbox, &NOBODY, &["bench", "disk", "closed"]);
    ran.failed_with(11, &["make a directory in closed", "ermission denied"]);
    left_nothing(&sandbox, "closed");
    let fixed = Mounted::new(sandbox.path("fixed"), "16m");
    tool(Command::new("mount").args(["-o", "remount,ro"]).arg(&fixed.0));
    let ran = sandbox.run(["bench", "disk", "fixed", "--html=page.html"]);
    ran.failed_with(11, &["make a directory in fixed", "ead-only"]);
    left_nothing(&sandbox, "fixed");
}

#[test]
fn bench_disk_leaves_nothing_where_there_is_room_for_its_directory_alone() {
    let sandbox = Sandbox::new();
    // The file system's own directory, and one more.
    let Some(scarce) = Scarce::new(&sandbox.path("scarce"), 1 << 20, 2) else { return };
    let ran = sandbox.run(["bench", "disk", "scarce", "--op=write", "--html=page.html"]);
    ran.failed_with(11, &["make a directory in scarce", "o space"]);
    left_nothing(&sandbox, "scarce");
    drop(scarce);
}

/// The storage fails in the midst of a row: each call in turn.
#[test]
fn bench_disk_that_meets_an_error_names_the_call_and_leaves_nothing() {
    for (call, error, when, arguments, words) in [
        ("pwrite64", "ENOSPC", "3", ["--op=write", "--mode=cached"], ["write", "o space"]),
        ("pwrite64", "EIO", "3", ["--op=write", "--mode=dsync"], ["write", "nput/output"]),
        ("fdatasync", "EIO", "1", ["--op=write", "--mode=fdatasync"], ["write", "nput/output"]),
        ("pread64", "EIO", "3", ["--op=read", "--mode=cached"], ["read", "nput/output"]),
    ] {
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.path("d")).unwrap();
        let mut command = sandbox.carrack();
        command.args(["bench", "disk", "d", "--size=8M", "--files=20", "--time=0", "--html=page.html"]).args(arguments);
        let ran = ran(Inject::new().error(call, error, when).around(&command).output_in_time().unwrap());
        ran.failed_with(11, &words);
        left_nothing(&sandbox, "d");
    }
}

/// Arguments of a measurement, and the file or directory that says that the phase has begun.
const PHASES: [(&str, &[&str], &str); 6] = [
    ("finding the size", &[], "data-0"),
    ("writing", &["--op=write", "--mode=dsync", "--record=512", "--size=256M", "--time=0"], "data-0"),
    ("laying out", &["--op=random-read", "--rate=1", "--size=256M", "--time=0"], "data-0"),
    ("visiting", &["--op=random-read", "--rate=1", "--size=1M", "--time=0"], "data-0"),
    ("many files at a time", &["--op=write", "--mode=dsync", "--threads=4", "--size=256M", "--time=0"], "data-3"),
    ("small files", &["--op=files", "--files=1000000", "--size=1M", "--time=0"], "files-0"),
];

/// A measurement that has come to a phase.
fn in_phase(sandbox: &Sandbox, (name, arguments, sign): (&str, &[&str], &str)) -> Running {
    fs::create_dir(sandbox.path("d")).unwrap();
    let mut command = sandbox.carrack();
    command.args(["bench", "disk", "d", "--html=page.html"]).args(arguments);
    let running = Running::start(&mut command);
    wait_until(name, || {
        let hidden = names(&sandbox.path("d"));
        hidden.iter().any(|hidden| sandbox.path("d").join(hidden).join(sign).exists())
    });
    running
}

#[test]
fn bench_disk_that_is_interrupted_in_any_phase_leaves_nothing() {
    for phase in PHASES {
        let sandbox = Sandbox::new();
        let running = in_phase(&sandbox, phase);
        signal(running.id(), "INT");
        let ran = running.end();
        assert_eq!(ran.code, 20, "{}: {}", phase.0, ran.stderr);
        left_nothing(&sandbox, "d");
    }
}

#[test]
fn bench_disk_that_is_killed_in_any_phase_is_swept_by_the_next() {
    for phase in PHASES {
        let sandbox = Sandbox::new();
        let running = in_phase(&sandbox, phase);
        signal(running.id(), "KILL");
        assert_eq!(running.end().code, -1, "{}", phase.0);
        let left = names(&sandbox.path("d"));
        assert_eq!(left.len(), 1, "{}: {left:?}", phase.0);
        let ran = sandbox.ok(["bench", "disk", "d", "--op=write", "--size=1M", "--no-keep", "--html=page.html"]);
        assert!(ran.stderr.contains(&format!("killed had left: {}", left[0])), "{}: {}", phase.0, ran.stderr);
        assert_eq!(names(&sandbox.path("d")), Vec::<String>::new(), "{}", phase.0);
        assert!(!sandbox.path("page.html.part").exists(), "{}", phase.0);
    }
}
