//! A sync that gives files of the destination their new names, killed at every system call that matters.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use carrack_faults::strace::Inject;
use carrack_faults::watch::{self, Content, Watcher};

use super::{assert_complete, places, points, small_tree, spread};
use crate::support::running::InTime;
use crate::support::{Sandbox, ran, same_tree, tool};

const CALLS: [&str; 7] = ["linkat", "renameat", "renameat2", "unlinkat", "fdatasync", "syncfs", "write"];

fn command(sandbox: &Sandbox) -> Command {
    let mut command = sandbox.carrack();
    command.args(["sync", "--block=1M", "--delete", "--detect-renames", "tree/", "root/to"]);
    command
}

/// What was copied before anything was renamed; each name may hold what it held, or what the source has.
fn prepare(sandbox: &Sandbox) -> Watcher {
    let to = sandbox.path("root/to");
    let _ = fs::remove_dir_all(&to);
    tool(Command::new("cp").arg("-a").args([sandbox.path("before"), to.clone()]));
    let mut allowed = watch::allow(&sandbox.path("tree"));
    for (path, content) in watch::allow(&to) {
        allowed.entry(path).or_default().extend(content);
    }
    Watcher::start(&to, allowed)
}

/// What the files hold, whatever their names are.
fn contents(sandbox: &Sandbox, below: &str) -> BTreeSet<Content> {
    watch::allow(&sandbox.path(below)).into_values().flatten().collect()
}

#[test]
fn kill_sweep_of_a_sync_that_renames() {
    let sandbox = Sandbox::in_memory();
    small_tree(&sandbox);
    fs::create_dir(sandbox.path("root")).unwrap();
    sandbox.ok(["sync", "tree/", "before"]);
    fs::rename(sandbox.path("tree/d0"), sandbox.path("tree/new")).unwrap();
    fs::rename(sandbox.path("tree/large"), sandbox.path("tree/new/large too")).unwrap();
    // Another file by the old name of one, and one that is sent.
    sandbox.write("tree/d0/small0", "another");
    // What is renamed: what stands at names that the source has no longer.
    let (before, after) = (watch::allow(&sandbox.path("before")), watch::allow(&sandbox.path("tree")));
    let gone = before.into_iter().filter(|(path, _)| !after.contains_key(path));
    let gone: BTreeSet<_> = gone.flat_map(|(_, content)| content).collect();
    let wanted: BTreeSet<_> = gone.intersection(&contents(&sandbox, "tree")).copied().collect();
    prepare(&sandbox).end();
    let all = places(&sandbox, &command(&sandbox), &CALLS);
    same_tree(&sandbox.path("tree"), &sandbox.path("root/to"));
    assert!(["linkat", "unlinkat"].iter().all(|call| all.iter().any(|(other, _)| call == other)), "{all:?}");
    for place in spread(all.len() as u64, points(12)) {
        let (call, nth) = &all[place as usize - 1];
        let what = format!("killed at {call} {nth}");
        let watcher = prepare(&sandbox);
        let killed = ran(Inject::new().kill(call, *nth).around(&command(&sandbox)).output_in_time().unwrap());
        // What the source has by another name is never without one.
        assert!(contents(&sandbox, "root/to").is_superset(&wanted), "{what}");
        let again = ran(command(&sandbox).output_in_time().unwrap());
        assert_eq!(again.code, 0, "{what} ({}): {}", killed.code, again.stderr);
        assert_eq!(watcher.end().violations, Vec::<String>::new(), "{what}");
        assert_complete(&sandbox.path("tree"), &sandbox.path("root/to"));
    }
}
