//! Copies that take over what has not changed of the files that stand there, killed at every system call that matters.

use super::{Scene, Victim};
use crate::support::running::InTime;
use crate::support::{ran, tree};

/// Those by which blocks are taken over as well.
const CALLS: [&str; 9] =
    ["write", "pwrite64", "copy_file_range", "ioctl", "ftruncate", "fdatasync", "renameat", "renameat2", "openat"];
const MIB: usize = 1 << 20;

/// Of each file, the old one or the new one stands there at any moment.
#[track_caller]
fn sweep(victim: Victim) {
    let mut scene = Scene::new(victim);
    scene.more = &["--delta=always"];
    let new = |name: &str| std::fs::read(scene.sandbox.path(format!("tree/{name}"))).unwrap();
    let mut shorter = tree::changed(&new("d1/larger"), MIB, &[0]);
    shorter.truncate(3 * MIB + 5);
    scene.old = vec![
        ("large", tree::changed(&new("large"), MIB, &[1])),
        ("d1/larger", shorter),
        ("d0/small0", tree::changed(&new("d0/small0"), 1000, &[1])),
    ];
    scene.prepare().end();
    let done = ran(scene.command().arg("--json").output_in_time().unwrap());
    assert!(done.summary()["bytes_taken_over"].as_u64().is_some_and(|bytes| bytes >= 4 << 20), "{}", done.stdout);
    scene.sweep(&CALLS, 8);
}

#[test]
fn kill_sweep_of_a_command_that_sends_what_differs() {
    sweep(Victim::Sender);
}

#[test]
fn kill_sweep_of_a_command_that_takes_over_what_does_not() {
    sweep(Victim::Receiver);
}

#[test]
fn kill_sweep_of_both_ends_of_a_delta() {
    sweep(Victim::Both);
}
