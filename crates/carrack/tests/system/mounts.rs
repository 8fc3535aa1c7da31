//! Disks that are mounted at two hosts, and disks that are not mounted any more.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use carrack_faults::proxy::Proxy;

use crate::support::node::Node;
use crate::support::running::Running;
use crate::support::service::{Service, object};
use crate::support::{Sandbox, is_root, tool, tree, wait_until};

/// What starts a command as on another host: another boot than this one.
fn other_host(sandbox: &Sandbox) -> Vec<String> {
    let boot = sandbox.write("boot", "11111111-2222-4333-8444-555555555555\n");
    let script = "mount --bind \"$0\" /proc/sys/kernel/random/boot_id && exec \"$@\"";
    ["unshare", "--mount", "sh", "-c", script, boot.to_str().unwrap()].map(str::to_owned).to_vec()
}

/// Two hosts that have one directory: what the one shows as its source is what the other would have written.
#[test]
fn only_copy_on_a_disk_of_two_hosts_is_not_moved_onto_itself() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    tree::mixed(&sandbox.path("one/run"));
    symlink(sandbox.path("one"), sandbox.path("two")).unwrap();
    let near = Node::start(&sandbox, "one", &[]);
    let other = other_host(&sandbox);
    let boot = tool(Command::new(&other[0]).args(&other[1..]).args(["cat", "/proc/sys/kernel/random/boot_id"]));
    assert!(boot.starts_with("11111111-"), "it is this host: {boot}");
    let far = Node::on(&other, &sandbox, "two", "127.0.0.1");
    let tokens = [near.token_as("source"), far.token_as("destination")];
    let before = tree::walk(&sandbox.path("one/run"));
    let file = before.iter().find(|path| path.is_file() && !path.is_symlink()).unwrap();
    let name = file.strip_prefix(sandbox.path("one")).unwrap().to_str().unwrap();
    for (verb, from, to) in [("sync", "run/", "run/"), ("sync", "run", ""), ("copy", name, name)] {
        let words = [verb, "--remove-source-files", &near.at(from), &far.at(to), &tokens[0], &tokens[1]];
        let ran = sandbox.run(words);
        assert!(ran.code != 0 && ran.stderr.contains("mounted at both hosts"), "{verb} {from}: {}", ran.stderr);
        assert_eq!(tree::walk(&sandbox.path("one/run")), before);
    }

    let _service = Service::start(&sandbox, &[]);
    for (name, node) in [("one", &near), ("two", &far)] {
        let token = node.token_file.display().to_string();
        sandbox.ok(["endpoint", "add", name, &node.at(""), "--token-file", &token]);
    }
    let task = |from: &str, to: &str| {
        let words = ["task", "submit", "--kind", "move", from, to, "--wait", "--timeout", "60s"];
        let id = sandbox.run(words).stdout.lines().next().unwrap().to_owned();
        object(&sandbox, &["task", "show", &id])
    };
    let failed = task("@one:/run/", "@two:/run/");
    assert_eq!((&failed["state"], &failed["failure"]["code"]), (&"FAILED".into(), &"same-file".into()), "{failed:#}");
    assert_eq!(tree::walk(&sandbox.path("one/run")), before);
    // Beside each other they are two.
    fs::write(sandbox.path("one/alone"), "alone").unwrap();
    let moved = task("@one:/alone", "@two:/elsewhere/");
    assert_eq!(moved["state"], "SUCCEEDED", "{moved:#}");
    assert!(!sandbox.path("one/alone").exists() && sandbox.path("one/elsewhere/alone").exists());
}

/// Mounted for as long as this lives.
struct Mounted(PathBuf);

impl Mounted {
    fn tmpfs(at: PathBuf) -> Self {
        tool(Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&at));
        Self(at)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // At the end of a test that has failed the first failure is told.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// A node comes back before its disk does. What it shows then is not what was to be copied.
#[test]
fn run_goes_on_only_on_the_disks_that_it_began_with() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    for name in ["data/a", "data/b", "data/z"] {
        sandbox.write(format!("root/{name}"), name);
    }
    let mut node = Node::start(&sandbox, "root", &[]);
    let proxy = Proxy::start(node.address.parse().unwrap());
    let there = node.at("data/").replace(&node.address, &proxy.address().to_string());
    let token = node.token();
    sandbox.ok(["sync", "--delete", &there, "dst", &token]);
    sandbox.write("root/data/large", vec![7; 16 << 20]);
    proxy.rate(Some(1_000_000));
    let words = ["sync", "--delete", "--retries=2", &there, "dst", &token];
    let running = Running::start(sandbox.carrack().args(words));
    wait_until("a part of it is there", || !sandbox.parts("dst").is_empty());
    node.kill();
    let stub = Mounted::tmpfs(sandbox.path("root/data"));
    fs::write(sandbox.path("root/data/stub"), "the disk is not mounted").unwrap();
    node.restart(&sandbox);
    proxy.rate(None);
    proxy.reset_all();
    let ran = running.end();
    assert!(ran.code != 0 && ran.stderr.contains("is on another file system than when"), "{}", ran.stderr);
    for name in ["a", "b", "z"] {
        assert!(sandbox.path("dst").join(name).exists(), "{name} was deleted: {}", ran.stderr);
    }
    assert!(!sandbox.path("dst/stub").exists());
    // The same command goes on once it is.
    node.kill();
    drop(stub);
    node.restart(&sandbox);
    proxy.reset_all();
    sandbox.ok(words);
    assert_eq!(fs::metadata(sandbox.path("dst/large")).unwrap().len(), 16 << 20);
}
