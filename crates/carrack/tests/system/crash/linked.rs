//! A sync that links what another directory has, killed at every system call that matters.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use carrack_faults::strace::Inject;
use carrack_faults::watch::Watcher;

use super::{allowed, assert_complete, places, points, small_tree, spread};
use crate::support::running::InTime;
use crate::support::{Sandbox, ran, tree};

const CALLS: [&str; 7] = ["linkat", "renameat", "renameat2", "unlinkat", "copy_file_range", "fdatasync", "syncfs"];

fn command(sandbox: &Sandbox) -> Command {
    let mut command = sandbox.carrack();
    command.args(["sync", "--block=1M", "--link-dest", "../monday", "tree/", "root/to"]);
    command
}

/// What stands in the reference directory: content, inode, permissions and time of each file.
fn standing(top: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u64, u32, i64)> {
    let files = tree::walk(top).into_iter().filter(|path| path.is_file() && !path.is_symlink());
    let of = |path: PathBuf| {
        let found = fs::metadata(&path).unwrap();
        let content = fs::read(&path).unwrap();
        (path, (content, found.ino(), found.mode(), found.mtime()))
    };
    files.map(of).collect()
}

fn prepare(sandbox: &Sandbox) -> Watcher {
    let _ = fs::remove_dir_all(sandbox.path("root/to"));
    sandbox.write("root/to/large", "old");
    Watcher::start(&sandbox.path("root/to"), allowed(&sandbox.path("tree"), &[("large", b"old")]))
}

#[test]
fn kill_sweep_of_a_sync_that_links() {
    let sandbox = Sandbox::in_memory();
    small_tree(&sandbox);
    sandbox.ok(["sync", "tree/", "root/monday"]);
    // Some are linked, some copied there, some sent.
    fs::set_permissions(sandbox.path("tree/d0/small0"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    sandbox.write("tree/d1/small1", "new");
    let before = standing(&sandbox.path("root/monday"));
    prepare(&sandbox).end();
    let done = ran(command(&sandbox).output_in_time().unwrap());
    assert!(done.code == 0 && done.stderr.contains("linked: 8 files"), "{}", done.stderr);
    prepare(&sandbox).end();
    let all = places(&sandbox, &command(&sandbox), &CALLS);
    assert!(all.iter().any(|(call, _)| call == "linkat"), "{all:?}");
    for place in spread(all.len() as u64, points(10)) {
        let (call, nth) = &all[place as usize - 1];
        let what = format!("killed at {call} {nth}");
        let watcher = prepare(&sandbox);
        let killed = ran(Inject::new().kill(call, *nth).around(&command(&sandbox)).output_in_time().unwrap());
        assert_eq!(standing(&sandbox.path("root/monday")), before, "{what}");
        let again = ran(command(&sandbox).output_in_time().unwrap());
        assert_eq!(again.code, 0, "{what} ({}): {}", killed.code, again.stderr);
        assert_eq!(watcher.end().violations, Vec::<String>::new(), "{what}");
        assert_complete(&sandbox.path("tree"), &sandbox.path("root/to"));
        assert_eq!(standing(&sandbox.path("root/monday")), before, "{what}");
    }
}
