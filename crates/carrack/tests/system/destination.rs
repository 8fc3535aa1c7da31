//! What happens to a destination while a copy writes there, and what it makes of the attributes that it is given.

use std::fs;

use crate::faults::slow_copy;
use crate::support::node::Node;
use crate::support::{Sandbox, same_tree, tree};

const MIB: usize = 1 << 20;

/// With each way of treating what exists: a name that was free when the copy of its file began.
#[test]
fn a_file_that_appears_while_its_copy_runs_is_treated_as_was_asked() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let source = sandbox.write("src/file", tree::bytes(3 * MIB, 1));
    for (flag, replaces) in [("--no-clobber", false), ("--update", false), ("--verify=wire", true)] {
        let running = slow_copy(&sandbox, &source, &["src/", &node.at("dst"), &node.token(), "--json", flag]);
        let appeared = sandbox.write("root/dst/file", "appeared");
        let ran = running.end();
        assert_eq!(ran.code, 0, "{flag}: {}{}", ran.stdout, ran.stderr);
        if replaces {
            same_tree(&source, &appeared);
        } else {
            assert_eq!(fs::read(&appeared).unwrap(), b"appeared", "{flag}");
        }
        let summary = ran.summary();
        assert_eq!(
            (summary["files"].as_u64(), summary["files_kept"].as_u64()),
            match replaces {
                true => (Some(1), Some(0)),
                false => (Some(0), Some(1)),
            }
        );
        assert!(sandbox.parts("root").is_empty());
        fs::remove_dir_all(sandbox.path("root/dst")).unwrap();
    }
}
