//! Content that is put together from two: of two states of a source, of two sources, of a copy and what was left of another. Never under a
//! name with exit code 0.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::{Sandbox, same_tree, tree, wait_until};

const MIB: usize = 1 << 20;

/// Waits until a file's change time is so old that a session that begins now takes it for settled.
fn wait_until_settled(path: &Path) {
    let changed = fs::metadata(path).unwrap().ctime();
    wait_until("the change time is old", || carrack_sys::host::clock_seconds() > changed + 3);
}

fn holds_data_at(path: &Path, offset: u64) -> bool {
    let mut found = [0; 4096];
    File::open(path).is_ok_and(|file| file.read_exact_at(&mut found, offset).is_ok()) && found != [0; 4096]
}

/// Half of one file has come; it goes on with another of the same name, size and times, which is a hole there.
#[test]
fn a_hole_that_comes_for_a_resumed_file_is_written() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let content = tree::bytes(24 * MIB, 1);
    let ways = [&["local"][..], &["local", "--digest=xxh128"], &["local", "--verify=disk"], &["node"]];
    let mut last = None;
    for way in 0..ways.len() {
        let dense = sandbox.write(format!("{way}/src/f"), &content);
        let time = fs::metadata(&dense).unwrap().modified().unwrap();
        let sparse = sandbox.write(format!("{way}/other/f"), "");
        let file = File::options().write(true).open(&sparse).unwrap();
        file.set_len(content.len() as u64).unwrap();
        file.write_all_at(&content[16 * MIB..], 16 * MIB as u64).unwrap();
        file.set_modified(time).unwrap();
        last = Some(sparse);
    }
    wait_until_settled(&last.unwrap());
    for (way, flags) in ways.iter().enumerate() {
        let (there, below) = match flags[0] {
            "node" => (node.at(&format!("{way}/")), format!("root/{way}")),
            _ => (format!("dst/{way}/"), format!("dst/{way}")),
        };
        let (source, token) = (format!("{way}/src/f"), node.token());
        let arguments = [&[&source, &there, &token, "--block=256K", "--streams=2"], &flags[1..]].concat();
        let running = Running::start(sandbox.carrack().args(&arguments).args(["--bwlimit=8M", "--retries=0"]));
        wait_until("some of it has come", || {
            sandbox.parts(&below).iter().any(|part| holds_data_at(part, 6 * MIB as u64))
        });
        signal(running.id(), "TERM");
        assert_ne!(running.end().code, 0);
        fs::rename(sandbox.path(format!("{way}/src")), sandbox.path(format!("{way}/old"))).unwrap();
        fs::rename(sandbox.path(format!("{way}/other")), sandbox.path(format!("{way}/src"))).unwrap();
        sandbox.ok(&arguments);
        same_tree(&sandbox.path(&source), &sandbox.path(format!("{below}/f")));
    }
}
