//! `du`: the same here, at a node and over ssh, and beside the system's own du.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use serde_json::Value;

use crate::support::node::Node;
use crate::support::sshd::Sshd;
use crate::support::{Sandbox, tool};

/// A tree with what du makes something of: holes, several names of a file, links, names that sort between.
fn tree(sandbox: &Sandbox) {
    sandbox.write("root/a/b/c", vec![1; 5000]);
    sandbox.write("root/a/f", "1");
    sandbox.write("root/a-/g", vec![1; 100_000]);
    sandbox.write("root/top", vec![1; 10]);
    fs::create_dir(sandbox.path("root/empty")).unwrap();
    fs::hard_link(sandbox.path("root/a-/g"), sandbox.path("root/a/twin")).unwrap();
    File::create(sandbox.path("root/sparse")).unwrap().set_len(1 << 30).unwrap();
    std::os::unix::fs::symlink("a", sandbox.path("root/link")).unwrap();
    sandbox.write(std::path::Path::new("root").join(OsStr::from_bytes(b"\xff")), "x");
}

/// Lines in the order of their names: which of two names of a file comes first is up to the file system.
fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn du_agrees_with_the_systems_own() {
    let sandbox = Sandbox::new();
    tree(&sandbox);
    let system = |words: &[&str]| tool(Command::new("du").current_dir(sandbox.path("")).args(words));
    // Of names of one file, which one is counted depends on the order: the directories above both are sure.
    fs::remove_file(sandbox.path("root/a/twin")).unwrap();
    for words in [&["root"][..], &["-s", "root"], &["-d", "1", "root"], &["-sc", "root/a", "root/a-"], &["root/top"]] {
        let ran = sandbox.ok(["du"].iter().chain(words));
        assert_eq!(sorted(&ran.stdout), sorted(&system(words)), "{words:?}");
    }
    // After what is in it.
    let own = sandbox.ok(["du", "root"]).stdout;
    let place = |name: &str| own.lines().position(|line| line.ends_with(&format!("\t{name}"))).unwrap();
    assert!(place("root/a/b") < place("root/a") && place("root/a") < place("root"), "{own}");
    fs::hard_link(sandbox.path("root/a-/g"), sandbox.path("root/a/twin")).unwrap();
    assert_eq!(sandbox.ok(["du", "-s", "root"]).stdout, system(&["-s", "root"]));
    assert_eq!(sandbox.ok(["du", "-sc", "root/a", "root/a-"]).stdout, system(&["-sc", "root/a", "root/a-"]));
}

#[test]
fn du_is_the_same_here_at_a_node_and_over_ssh() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let sshd = Sshd::start(&sandbox);
    tree(&sandbox);
    let root = sandbox.path("root").display().to_string();
    let counts = |words: &[&str]| {
        let lines = objects(&sandbox.ok(["du", "--json"].iter().chain(words)).stdout);
        let (summary, lines) = lines.split_last().unwrap();
        assert_eq!((&summary["verb"], &summary["exit_code"]), (&"du".into(), &0.into()));
        let last = lines.last().unwrap().clone();
        (
            lines.len(),
            last["size"].clone(),
            last["allocated"].clone(),
            last["files"].clone(),
            last["directories"].clone(),
        )
    };
    let here = counts(&[&root]);
    // The second name of a file is none of its own.
    assert_eq!(here.1, 5000 + 1 + 100_000 + 10 + (1 << 30) + 1 + 1);
    assert!(here.2.as_u64().unwrap() < 1 << 20, "{here:?}");
    assert_eq!((here.0, &here.3, &here.4), (5, &7.into(), &5.into()));
    assert_eq!(counts(&[&node.at(""), &node.token()]), here);
    assert_eq!(counts(&[&format!("far:{root}"), &sshd.rsh]), here);
}

#[test]
fn du_shows_files_levels_and_units_as_asked() {
    let sandbox = Sandbox::new();
    tree(&sandbox);
    let lines = |words: &[&str]| sorted(&sandbox.ok(["du"].iter().chain(words)).stdout);
    assert_eq!(lines(&["-ab", "root/a/b"]), ["5000\troot/a/b", "5000\troot/a/b/c"]);
    assert_eq!(lines(&["--apparent-size", "root/top", "root/sparse"]), ["1\troot/top", "1048576\troot/sparse"]);
    assert_eq!(lines(&["-sh", "--apparent-size", "root/sparse"]), ["1.0 GiB\troot/sparse"]);
    assert_eq!(lines(&["-b", "root/link"]), ["1\troot/link"]);
    // What the link leads to.
    assert_eq!(lines(&["-sb", "root/link/", "--quiet"]).len(), 1);
    assert_eq!(lines(&["-d", "0", "root"]).len(), 1);
    assert_eq!(lines(&["-a", "-d1", "root"]).len(), 8);
    sandbox.run(["du", "-s", "-d1", "root"]).failed_with(2, &["--max-depth"]);
    sandbox.run(["du", "root/absent"]).failed_with(11, &["absent", "No such file"]);
    sandbox.run(["du", "root/absent", "root/top"]).failed_with(23, &["absent"]);
    let help = sandbox.ok(["du", "--help"]).stdout;
    assert!(help.contains("-h, --human-readable"), "{help}");
}
