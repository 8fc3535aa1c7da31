//! What is written where and how often, and that everything is synced before it gets its name, in
//! whichever way it is synced.

use std::fs;
use std::path::Path;

use carrack_faults::fuse::{Call, FaultFs, Features};
use carrack_faults::strace::{Inject, Traced, calls};

use crate::support::running::InTime;
use crate::support::{Ran, Sandbox, ran, same_tree, tree};

const MIB: usize = 1 << 20;
const SMALL_FILES: usize = 120;
const SMALL_BYTES: usize = 100_000;

/// What the life of a part file consists of, and what makes it durable.
const CALLS: [&str; 8] = ["openat", "openat2", "close", "fdatasync", "fsync", "syncfs", "renameat", "renameat2"];

/// Many small files, and the calls that copying them took.
fn copy(inject: Inject, more: &[&str]) -> (Sandbox, Ran, Vec<Traced>) {
    let sandbox = Sandbox::new();
    for number in 0..SMALL_FILES {
        sandbox.write(format!("in/f{number:03}"), tree::bytes(SMALL_BYTES, number as u64));
    }
    let log = sandbox.path("calls");
    let inject = inject.watch(&CALLS).log(&log);
    let ran = ran(inject.around(sandbox.carrack().args(["in/", "out"]).args(more)).output_in_time().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    same_tree(&sandbox.path("in"), &sandbox.path("out"));
    let calls = calls(&log);
    (sandbox, ran, calls)
}

fn count(calls: &[Traced], name: &str) -> usize {
    calls.iter().filter(|call| call.name() == name).count()
}

/// Of each file with a name: its part file was synced after it was written and before it was renamed, by
/// itself or with everything.
#[track_caller]
fn assert_synced_before_named(calls: &[Traced]) {
    // What only shows that names can be changed there is not of the copy.
    let is_named = |call: &&Traced| call.text.contains(".carrack-") && !call.text.contains("\".try.carrack-");
    let renames = calls.iter().filter(|call| call.name().starts_with("renameat")).filter(is_named);
    let mut named = 0;
    for rename in renames {
        let part = rename.text.split('"').nth(1).unwrap();
        let made = |call: &&Traced| call.text.contains("O_CREAT") && call.text.contains(&format!("\"{part}\""));
        let made = calls.iter().find(made).unwrap_or_else(|| panic!("{part} was never made"));
        let descriptor = made.result().unwrap();
        let of_part = |call: &&Traced, name: &str| {
            call.began > made.ended && call.text.starts_with(&format!("{name}({descriptor})"))
        };
        let closed = calls.iter().filter(|call| of_part(call, "close")).min_by_key(|call| call.began).unwrap();
        let alone = calls.iter().any(|call| of_part(&call, "fdatasync") && call.ended < closed.began);
        let with_all =
            |call: &Traced| call.name() == "syncfs" && call.began > closed.began && call.ended < rename.began;
        assert!(alone || calls.iter().any(with_all), "{part} got its name before it was synced");
        named += 1;
    }
    assert_eq!(named, SMALL_FILES);
}

#[test]
fn small_files_are_synced_in_groups_or_each_by_itself() {
    let (_sandbox, _, calls) = copy(Inject::new(), &[]);
    assert_synced_before_named(&calls);
    let syncs = count(&calls, "fdatasync") + count(&calls, "syncfs") + count(&calls, "fsync");
    assert!(syncs < SMALL_FILES / 2, "{syncs} syncs for {SMALL_FILES} files in groups");
    assert!(count(&calls, "syncfs") > 0);

    let (_sandbox, _, calls) = copy(Inject::new(), &["--durable=each"]);
    assert_synced_before_named(&calls);
    assert!(count(&calls, "fdatasync") >= SMALL_FILES, "{}", count(&calls, "fdatasync"));
}

/// The rate is such that most of the files come when the first group has been synced, and some while it is.
#[test]
fn syncing_everything_that_is_slow_gives_way_to_syncing_each_file() {
    let slow = Inject::new().delay("syncfs", 1_100_000, "1+");
    let (_sandbox, ran, calls) = copy(slow, &["--bwlimit=4MB", "--streams=2", "--json"]);
    assert_synced_before_named(&calls);
    assert!(count(&calls, "fdatasync") > SMALL_FILES / 4, "{}", count(&calls, "fdatasync"));
    // The first; one for what had come meanwhile, and one for what each stream was bringing then; the last of all.
    assert!(count(&calls, "syncfs") <= 5, "{}", count(&calls, "syncfs"));
    assert_eq!(ran.summary()["durable"], true);
}

#[test]
fn syncing_everything_that_proves_nothing_gives_way_to_syncing_each_file() {
    if !carrack_faults::can_mount("a FUSE file system") {
        return;
    }
    const FILES: u64 = 20;
    let sandbox = Sandbox::new();
    for number in 0..FILES {
        sandbox.write(format!("in/d{number}/f"), "content");
    }
    for directory in ["backing", "disk"] {
        fs::create_dir(sandbox.path(directory)).unwrap();
    }
    // The kernel keeps to itself that it was asked to sync all of a FUSE file system.
    let disk = FaultFs::mount(&sandbox.path("backing"), &sandbox.path("disk"), Features::default()).unwrap();
    let ran = sandbox.ok(["in/", "disk/to", "--json"]);
    assert_eq!(ran.summary()["durable"], true);
    let syncs = disk.count(Call::Sync);
    // Of files and of the directories that they stand in.
    assert!(syncs >= 2 * FILES, "{syncs} syncs");
}

#[test]
fn file_is_written_once_and_nowhere_but_beside_its_name() {
    if !carrack_faults::can_mount("a FUSE file system") {
        return;
    }
    const LARGE: usize = 24 * MIB + 5;
    let sandbox = Sandbox::new();
    for name in ["below/deep/large", "below/other"] {
        sandbox.write(format!("in/{name}"), tree::bytes(LARGE, 3));
    }
    for directory in ["backing", "disk"] {
        fs::create_dir(sandbox.path(directory)).unwrap();
    }
    let disk = FaultFs::mount(&sandbox.path("backing"), &sandbox.path("disk"), Features::default()).unwrap();
    // Whatever else a program may take for its own stands on the same file system.
    for directory in ["home", "tmp", "at"] {
        fs::create_dir(disk.path().join(directory)).unwrap();
    }
    let place = |name: &str| disk.path().join(name);
    let mut command = sandbox.carrack();
    command.env("HOME", place("home")).env("TMPDIR", place("tmp")).current_dir(place("at"));
    for variable in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
        command.env_remove(variable);
    }
    command.arg(sandbox.path("in/")).arg(place("to"));
    let ran = ran(command.output_in_time().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    same_tree(&sandbox.path("in"), &place("to"));
    let written = disk.written();
    let bytes = |directory: &str| written.get(&sandbox.path("backing").join(directory)).copied().unwrap_or(0);
    let most = LARGE as u64 + LARGE as u64 / 50;
    for directory in ["to/below/deep", "to/below"] {
        assert!((LARGE as u64..=most).contains(&bytes(directory)), "{directory}: {written:?}");
    }
    // The marker stands at the top: it is to be found by a command that knows no more than that.
    let (top, in_all) = (bytes("to"), written.values().sum::<u64>());
    assert!(in_all - top == bytes("to/below/deep") + bytes("to/below"), "{written:?}");
    assert!(in_all <= 2 * most, "{written:?}");
    let touched = |directory: &Path| directory.starts_with(sandbox.path("backing/to"));
    assert!(written.keys().all(|directory| touched(directory)), "{written:?}");
}
