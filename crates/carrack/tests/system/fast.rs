//! The quick ways through a system, and the ordinary ones where it has not got them: the same bytes either way.

use std::fs;
use std::process::Command;

use carrack_faults::strace::{Inject, counts};

use crate::support::node::Node;
use crate::support::running::InTime;
use crate::support::{PORTABLE, Ran, Sandbox, ran, same_tree, tree};

const MIB: usize = 1 << 20;
/// Nobody looks at the bytes: the kernel may move them by itself.
const UNSEEN: [&str; 4] = ["--encrypt=none", "--digest=none", "--verify=none", "--streams=2"];
/// What is used if the system has it: the call, and what a system without it says.
const QUICK: [(&str, &str); 7] = [
    ("sendfile", "EINVAL"),
    ("splice", "EINVAL"),
    ("pwritev2", "EOPNOTSUPP"),
    ("preadv2", "EOPNOTSUPP"),
    ("fallocate", "EOPNOTSUPP"),
    ("fadvise64", "ENOSYS"),
    ("sync_file_range", "ENOSYS"),
];

/// A file that is large enough to pass the cache by, one that is not, and small ones.
fn sources(sandbox: &Sandbox) {
    sandbox.write("tree/large", tree::bytes(72 * MIB + 5, 1));
    sandbox.write("tree/middle", tree::bytes(9 * MIB + 1, 2));
    tree::many(&sandbox.path("tree/small"), 50, 3000);
}

fn copy(sandbox: &Sandbox, inject: &Inject, more: &[&str]) -> Ran {
    let _ = fs::remove_dir_all(sandbox.path("to"));
    let ran = ran(inject.around(sandbox.carrack().args(["tree/", "to"]).args(more)).output_in_time().unwrap());
    assert_eq!(ran.code, 0, "{inject:?} {more:?}: {}", ran.stderr);
    same_tree(&sandbox.path("tree"), &sandbox.path("to"));
    ran
}

#[test]
fn system_calls_that_are_missing_are_done_without() {
    if PORTABLE {
        return;
    }
    let sandbox = Sandbox::new();
    sources(&sandbox);
    let log = sandbox.path("calls");
    for more in [&[][..], &UNSEEN] {
        let calls: Vec<&str> = QUICK.iter().map(|(call, _)| *call).collect();
        copy(&sandbox, &Inject::new().watch(&calls).log(&log), more);
        let made = counts(&log);
        let used = if more.is_empty() { "pwritev2" } else { "splice" };
        assert!(made.get(used).is_some_and(|count| *count > 0), "{used} is not used: {made:?}");
        let mut none = Inject::new();
        for (call, error) in QUICK {
            none = none.error(call, error, "1+");
            if made.contains_key(call) {
                copy(&sandbox, &Inject::new().error(call, error, "1+"), more);
            }
        }
        copy(&sandbox, &none, more);
    }
}

#[test]
fn sendfile_that_fails_gives_way_to_reading() {
    let sandbox = Sandbox::new();
    sources(&sandbox);
    copy(&sandbox, &Inject::new().error("sendfile", "EIO", "7+"), &UNSEEN);
}

#[test]
fn processors_may_be_one() {
    let sandbox = Sandbox::new();
    sources(&sandbox);
    let node = Node::start(&sandbox, "root", &[]);
    for more in [&[][..], &UNSEEN] {
        let mut command = Command::new("taskset");
        let carrack = sandbox.carrack();
        command.args(["-c", "0"]).arg(carrack.get_program()).current_dir(sandbox.path(""));
        command.envs(carrack.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let done = ran(command.args(["tree/", &node.at("to"), &node.token()]).args(more).output_in_time().unwrap());
        assert_eq!(done.code, 0, "{}", done.stderr);
        same_tree(&sandbox.path("tree"), &sandbox.path("root/to"));
        fs::remove_dir_all(sandbox.path("root/to")).unwrap();
    }
}

#[test]
fn congestion_control_is_the_kernels_or_is_refused() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("file", tree::bytes(MIB, 3));
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap();
    let name = allowed.split_whitespace().next().unwrap();
    sandbox.ok(["file", &node.at("to"), &node.token(), &format!("--congestion={name}")]);
    let refused = sandbox.run(["file", &node.at("again"), &node.token(), "--congestion=nosuch"]);
    refused.failed_with(2, &["congestion control nosuch", "--congestion", name]);
    assert!(!sandbox.path("root/again").exists());
    sandbox.run(["file", &node.at("again"), "--congestion=../x"]).failed_with(2, &["congestion control"]);
}
