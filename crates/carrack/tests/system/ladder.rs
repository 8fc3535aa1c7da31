//! `carrack bench ladder`: every rung between all kinds of places, who may measure a node, and that nothing stays.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use carrack_faults::fuse::{FaultFs, Features};
use carrack_faults::image::Scarce;
use serde_json::Value;

use crate::support::node::Node;
use crate::support::process::{agents, signal};
use crate::support::running::{InTime, Running};
use crate::support::sshd::Sshd;
use crate::support::{Ran, Sandbox, is_root, ran, wait_until};

/// A ladder that is soon over.
const SMALL: [&str; 4] = ["--json", "--size=8M", "--runs=1", "--no-keep"];

fn objects(ran: &Ran, kind: &str) -> Vec<Value> {
    let all = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|object| object["type"] == kind).collect()
}

fn names(ran: &Ran) -> Vec<String> {
    objects(ran, "row").iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

/// Everything that is in a directory, hidden names too.
fn content(directory: &Path) -> Vec<String> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn make_dirs(sandbox: &Sandbox, names: &[&str]) {
    names.iter().for_each(|name| fs::create_dir_all(sandbox.path(name)).unwrap());
}

#[test]
fn ladder_here_has_every_rung_is_kept_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    make_dirs(&sandbox, &["a", "b", "ram"]);
    sandbox.write("a/mine", "mine");
    let ran = sandbox.ok(["bench", "ladder", "a", "b", "--json", "--size=8M", "--runs=2"]);
    let all = ["zero->null", "ram->null", "ram->ram", "disk->null", "disk->ram", "random->disk", "disk->disk"];
    assert_eq!(names(&ran), all);
    for row in objects(&ran, "row") {
        let values = &row["values"];
        assert_eq!((&values["bytes"], &values["runs"]), (&(8 << 20).into(), &2.into()), "{row}");
        let rate = |name: &str| values[name].as_f64().unwrap();
        assert!(rate("least_bytes_per_second") <= rate("bytes_per_second"), "{row}");
        assert!(rate("bytes_per_second") <= rate("most_bytes_per_second") && rate("bytes_per_second") > 0.0, "{row}");
        assert_eq!(row["conditions"]["link"], "memory");
        assert_eq!(values["loss"].is_null(), row["name"] == "zero->null", "{row}");
    }
    let verdict = ran.summary()["verdict"].as_str().unwrap().to_owned();
    assert!(verdict.contains("the loss enters at ") || verdict.contains("no rung loses"), "{verdict}");
    assert_eq!((content(&sandbox.path("a")), content(&sandbox.path("b")).len()), (vec!["mine".to_owned()], 0));
    // What was kept says the same again.
    let shown = sandbox.ok(["bench", "show"]);
    assert!(shown.stdout.trim_end().ends_with(&verdict), "{}", shown.stdout);
    assert!(shown.stdout.lines().all(|line| line.chars().count() <= 80 || line == verdict), "{}", shown.stdout);
}

#[test]
fn ladder_to_a_node_and_from_it_goes_over_the_network() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    make_dirs(&sandbox, &["here", "root/there"]);
    let (there, token) = (node.at("there"), node.token());
    for places in [["here", &there], [&there, "here"]] {
        let ran = sandbox.ok([&["bench", "ladder", places[0], places[1], &token], &SMALL[..]].concat());
        // No directory in memory is known at a node: that is told, and its rungs are left out.
        assert!(objects(&ran, "note").iter().any(|note| note["message"].as_str().unwrap().contains("left out")));
        let names = names(&ran);
        for name in ["zero->null", "disk->null", "random->disk", "disk->disk"] {
            assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
        }
        assert!(!names.iter().any(|name| name == "ram->ram"), "{names:?}");
        assert!(objects(&ran, "row").iter().all(|row| row["conditions"]["link"] == "direct"), "{}", ran.stdout);
        assert_eq!(content(&sandbox.path("here")).len() + content(&sandbox.path("root/there")).len(), 0);
    }
}

#[test]
fn ladder_over_ssh_has_every_rung_at_both_ends() {
    let sandbox = Sandbox::new();
    let far = Sshd::start(&sandbox);
    make_dirs(&sandbox, &["here", "there"]);
    let there = format!("far:{}", sandbox.path("there").display());
    for places in [["here", &there], [&there, "here"]] {
        let ran = sandbox.ok([&["bench", "ladder", places[0], places[1], &far.rsh], &SMALL[..]].concat());
        assert_eq!(names(&ran).len(), 7, "{}", ran.stdout);
        assert_eq!(content(&sandbox.path("here")).len() + content(&sandbox.path("there")).len(), 0);
    }
}

#[test]
fn node_is_measured_only_by_who_may() {
    let sandbox = Sandbox::new();
    make_dirs(&sandbox, &["here"]);
    for (more, words) in [
        (&["--anonymous"][..], "takes no measurements"),
        (&["--measure=nobody"], "takes no measurements"),
        (&["--anonymous", "--measure=anyone"], ""),
    ] {
        let node = Node::start(&sandbox, "root", more);
        let ran = sandbox.run([&["bench", "ladder", "here", &node.at(""), &node.token()], &SMALL[..]].concat());
        match words {
            "" => assert_eq!(ran.code, 0, "{}", ran.stderr),
            words => ran.failed_with(11, &[words]),
        }
        // Also of what ended early.
        assert_eq!(content(&sandbox.path("here")).len() + content(&sandbox.path("root")).len(), 0);
    }
}

/// A ladder that would take long, once it has begun to write.
fn long(sandbox: &Sandbox) -> Running {
    let running = Running::start(sandbox.carrack().args(["bench", "ladder", "a", "b", "--size=256M", "--runs=99"]));
    wait_until("the directory is there", || !content(&sandbox.path("b")).is_empty());
    running
}

#[test]
fn ladder_that_was_killed_is_swept_by_the_next_and_one_that_runs_is_not() {
    let sandbox = Sandbox::new();
    make_dirs(&sandbox, &["a", "b"]);
    let killed = long(&sandbox);
    signal(killed.id(), "KILL");
    assert_eq!(killed.end().code, -1);
    let left = content(&sandbox.path("b"));
    assert_eq!(left.len(), 1, "{left:?}");
    let runs = long(&sandbox);
    wait_until("what was left is gone", || !sandbox.path("b").join(&left[0]).exists());
    wait_until("its own is there", || !content(&sandbox.path("b")).is_empty());
    let own = content(&sandbox.path("b"));
    // Beside it another one measures, and ends.
    sandbox.ok([&["bench", "ladder", "a", "b"], &SMALL[..]].concat());
    assert_eq!(content(&sandbox.path("b")), own);
    signal(runs.id(), "INT");
    assert_eq!(runs.end().code, 20);
    assert_eq!(content(&sandbox.path("a")).len() + content(&sandbox.path("b")).len(), 0);
}

#[test]
fn ladder_that_is_interrupted_keeps_the_rungs_that_it_has() {
    let sandbox = Sandbox::new();
    make_dirs(&sandbox, &["a", "b"]);
    let out = sandbox.path("rows");
    let mut command = sandbox.carrack();
    command
        .args(["bench", "ladder", "a", "b", "--size=64M", "--runs=40", "--json"])
        .stdout(File::create(&out).unwrap());
    let mut child = command.spawn().unwrap();
    wait_until("the first rung is there", || fs::read_to_string(&out).unwrap().contains("zero->null"));
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(20));
    let told: Vec<Value> =
        fs::read_to_string(&out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = told.iter().find(|object| object["type"] == "summary").unwrap();
    assert_eq!((&summary["exit_code"], &summary["verdict"]), (&20.into(), &Value::Null), "{summary}");
    let shown = sandbox.ok(["bench", "show", summary["id"].as_str().unwrap()]).stdout;
    assert!(shown.contains("zero->null") && !shown.contains("disk->disk"), "{shown}");
    assert!(shown.contains("not everything was measured: interrupted"), "{shown}");
    assert_eq!(content(&sandbox.path("a")).len() + content(&sandbox.path("b")).len(), 0);
}

/// A container may have little of the memory that other hosts have.
#[test]
fn rungs_with_memory_that_nobody_asked_for_are_left_out_where_it_has_no_room() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    make_dirs(&sandbox, &["a", "b"]);
    // In a mount namespace that goes with the command.
    let ladder = |room: &str, more: &[&str]| {
        let (command, mut mounted) = (sandbox.carrack(), Command::new("unshare"));
        mounted.current_dir(sandbox.path(".")).env_clear();
        mounted.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let script = "mount -t tmpfs -o size=$0 none /dev/shm && exec \"$@\"";
        mounted.args(["-m", "sh", "-c", script, room]).arg(command.get_program());
        mounted.args(["bench", "ladder", "a", "b", "--json", "--size=16M", "--runs=1", "--no-keep"]).args(more);
        ran(mounted.output_in_time().unwrap())
    };
    let without = ["zero->null", "disk->null", "random->disk", "disk->disk"];
    let at_source = ["zero->null", "ram->null", "disk->null", "random->disk", "disk->disk"];
    for (room, rungs, left_out) in [("16m", &without[..], 2), ("24m", &at_source[..], 1)] {
        let ran = ladder(room, &[]);
        assert_eq!(ran.code, 0, "{room}: {}", ran.stderr);
        assert_eq!(names(&ran), rungs, "{room}");
        let notes = objects(&ran, "note");
        let told = notes.iter().filter(|note| {
            let text = note["message"].as_str().unwrap();
            text.contains("are left out: /dev/shm: ") && text.contains("smaller --size")
        });
        assert_eq!(told.count(), left_out, "{room}: {}", ran.stdout);
    }
    ladder("16m", &["--source-ram=/dev/shm"]).failed_with(11, &["/dev/shm", "smaller --size"]);
    assert_eq!(content(&sandbox.path("a")).len() + content(&sandbox.path("b")).len(), 0);
}

#[test]
fn ladder_refuses_what_it_cannot_measure() {
    let sandbox = Sandbox::new();
    make_dirs(&sandbox, &["a", "b"]);
    for (arguments, code, words) in [
        (&["zero:8M", "b"][..], 2, "is none"),
        (&["a", "null:"], 2, "is none"),
        (&["a"], 2, "required"),
        (&["a", "b", "--size=1M"], 2, "too little"),
        (&["a", "b", "--runs=0"], 2, "number of runs"),
        (&["a", "missing"], 11, "missing"),
        (&["a", "b", "--size=9999T"], 11, "smaller --size"),
        (&["a", "b", "--source-ram=/nowhere", "--size=8M"], 11, "/nowhere"),
    ] {
        sandbox.run([&["bench", "ladder"], arguments].concat()).failed_with(code, &[words]);
        assert_eq!(content(&sandbox.path("a")).len() + content(&sandbox.path("b")).len(), 0, "{arguments:?}");
    }
}

#[test]
fn ladder_without_room_at_a_node_is_refused_before_anything_is_written() {
    if !carrack_faults::can_mount("a file system of FUSE") {
        return;
    }
    let sandbox = Sandbox::in_memory();
    make_dirs(&sandbox, &["backing", "here"]);
    let here = FaultFs::mount(&sandbox.path("backing"), &sandbox.path("here"), Features::default()).unwrap();
    let Some(there) = Scarce::new(&sandbox.path("root"), 64 << 20, 1000) else { return };
    let node = Node::start(&sandbox, "root", &[]);
    let ladder = |size: &str| {
        let of_node = [&node.at(""), node.token().as_str(), size, "--runs=1", "--json", "--no-keep"].map(str::to_owned);
        sandbox.run([["bench", "ladder", "here"].map(str::to_owned).to_vec(), of_node.to_vec()].concat())
    };
    // A tenth of what is free has to stay free.
    for size in ["--size=65M", "--size=60M"] {
        ladder(size).failed_with(11, &["smaller --size", "too few"]);
        assert!(here.written().is_empty(), "{:?}", here.written());
        assert_eq!(content(there.path()).len() + content(&sandbox.path("backing")).len(), 0);
    }
    assert_eq!(ladder("--size=50M").code, 0);
    assert!(!here.written().is_empty());
    assert_eq!(content(there.path()).len() + content(&sandbox.path("backing")).len(), 0);
}

/// Every call to the storage of one end is late; the rest is memory.
#[test]
fn rung_that_a_slow_storage_enters_by_is_named() {
    if !carrack_faults::can_mount("a file system of FUSE") {
        return;
    }
    for (slow, words) in [("a", "the loss enters at disk->null: "), ("b", "the loss enters at random->disk: ")] {
        let sandbox = Sandbox::in_memory();
        make_dirs(&sandbox, &["a", "b", "backing"]);
        let features = Features { uncached: true, ..Features::default() };
        let disk = FaultFs::mount(&sandbox.path("backing"), &sandbox.path(slow), features).unwrap();
        disk.slow(Duration::from_millis(30));
        let ran = sandbox.ok([&["bench", "ladder", "a", "b"], &SMALL[..]].concat());
        let verdict = ran.summary()["verdict"].as_str().unwrap().to_owned();
        assert!(verdict.starts_with(words), "{verdict}: {}", ran.stdout);
        assert_eq!(content(&sandbox.path("backing")).len(), 0);
    }
}

/// Ladders to a far place, ended once all files that they read are there and no rung has been measured.
#[test]
fn ladder_that_is_interrupted_or_loses_its_far_side_leaves_nothing() {
    let sandbox = Sandbox::new();
    make_dirs(&sandbox, &["here", "root", "there"]);
    let mut node = Node::start(&sandbox, "root", &[]);
    let far = Sshd::start(&sandbox);
    let over_ssh = format!("far:{}", sandbox.path("there").display());
    let is_clean = |far: &str| content(&sandbox.path("here")).is_empty() && content(&sandbox.path(far)).is_empty();
    let begin = |far: &str, location: &str, access: &str| {
        let mut command = sandbox.carrack();
        command.args(["bench", "ladder", "here", location, access, "--size=64M", "--runs=1", "--no-keep"]);
        let running = Running::start(&mut command);
        // The last file that is made before the rungs, but for those in memory.
        let has_file = |name: &String| sandbox.path(far).join(name).join("to").exists();
        wait_until("files are made at both ends", || content(&sandbox.path(far)).iter().any(has_file));
        running
    };
    for (directory, location, access) in
        [("root", node.at(""), node.token()), ("there", over_ssh.clone(), far.rsh.clone())]
    {
        let running = begin(directory, &location, &access);
        signal(running.id(), "INT");
        assert_eq!(running.end().code, 20);
        assert!(is_clean(directory), "{directory}: {:?}", content(&sandbox.path(directory)));
    }
    // A far side that is killed: what it was called by cleans up where it can be reached again.
    let running = begin("there", &over_ssh, &far.rsh);
    let killed = agents(&sandbox.path(""));
    assert!(!killed.is_empty());
    killed.into_iter().for_each(|agent| signal(agent, "KILL"));
    let ran = running.end();
    assert!(![0, 20].contains(&ran.code), "{}", ran.stdout);
    assert!(is_clean("there"), "{:?}", content(&sandbox.path("there")));
    // Where nobody answers any more, the next ladder there does.
    let running = begin("root", &node.at(""), &node.token());
    node.kill();
    let ran = running.end();
    assert!(![0, 20].contains(&ran.code), "{}", ran.stdout);
    assert_eq!(content(&sandbox.path("here")).len(), 0);
    node.restart(&sandbox);
    sandbox.ok([&["bench", "ladder", "here", &node.at(""), &node.token()], &SMALL[..]].concat());
    assert!(is_clean("root"), "{:?}", content(&sandbox.path("root")));
}
