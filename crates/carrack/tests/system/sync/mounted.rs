//! `--require-mount`: a source that is not mounted is no source.

use std::fs;

use super::numbers;
use crate::faults::Mounted;
use crate::support::node::Node;
use crate::support::{Sandbox, is_root};

#[test]
fn nothing_is_copied_or_deleted_unless_the_source_is_mounted() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let disk = Mounted::new(sandbox.path("root/disk"), "1m");
    let node = Node::start(&sandbox, "root", &[]);
    let (at_node, token) = (node.at("disk/"), node.token());
    fs::create_dir(disk.0.join("below")).unwrap();
    fs::write(disk.0.join("f"), "mounted").unwrap();
    sandbox.write("root/plain/f", "plain");
    for verb in ["copy", "sync"] {
        let to = format!("to-{verb}");
        for from in ["root/disk/", &at_node, "root/disk"] {
            sandbox.ok([verb, "--require-mount", from, &to, &token]);
        }
        assert_eq!(fs::read_to_string(sandbox.path(&to).join("f")).unwrap(), "mounted");
    }
    sandbox.write("dst/only", "x");
    for sources in
        [&["root/plain/"][..], &["root/disk/below/"], &["root/disk/f"], &["root/disk/", "root/plain"], &["root/"]]
    {
        for (verb, more) in [("copy", &[][..]), ("copy", &["-n"]), ("sync", &["-n"]), ("sync", &[])] {
            let words = [&[verb, "--require-mount"], more, sources, &["fresh"]].concat();
            let named = sources.last().unwrap();
            sandbox.run(words).failed_with(11, &["no file system is mounted there", named, "is it mounted?"]);
            assert!(!sandbox.path("fresh").exists(), "{sources:?}");
        }
    }
    sandbox.run(["sync", "--require-mount", "root/disk/", "zero:1", "dst"]).failed_with(11, &["zero:1"]);
    let there = node.at("plain/");
    let ran = sandbox.run(["sync", "--require-mount", "--delete", &there, "dst", &token]);
    ran.failed_with(11, &["plain/: no file system is mounted there"]);
    drop(disk);
    let unmounted = ["sync", "--require-mount", "--delete", "--allow-empty", "root/disk/", "dst"];
    sandbox.run(unmounted).failed_with(11, &["no file system is mounted there"]);
    assert!(sandbox.path("dst/only").exists());
    let ran = sandbox.ok(["sync", "--delete", "--allow-empty", "root/disk/", "dst", "--json"]);
    assert_eq!(numbers(&ran, &["items_deleted"]), [1]);
}
