//! Processes killed at every system call that matters, power cut at any moment, two who write one name: what stands
//! under a final name is right, the same command run again completes, and nothing is left over after it.

mod attributed;
mod changed;
mod linked;
mod renamed;
mod syncs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use carrack_core::chance::Chance;
use carrack_core::location::Location;
use carrack_core::request::{CopyOptions, CopyRequest};
use carrack_core::tuning::Tuning;
use carrack_engine::{Context, Copy};
use carrack_faults::image::{Image, Kind};
use carrack_faults::proxy::Proxy;
use carrack_faults::strace::{Inject, counts};
use carrack_faults::watch::{self, Allowed, Watcher};

use crate::support::node::Node;
use crate::support::process::{is_stopped, signal};
use crate::support::running::{InTime, Running};
use crate::support::{Sandbox, ran, same_tree, tree, wait_until};

/// Calls at which a program is killed: those after which somebody else sees something else than before.
const CALLS: [&str; 9] =
    ["write", "pwrite64", "fdatasync", "syncfs", "renameat", "renameat2", "unlinkat", "connect", "openat"];

/// How thorough a sweep is: `CARRACK_SWEEP`, the number of points, `all` for each; a few without it.
pub fn points(few: u64) -> u64 {
    match std::env::var("CARRACK_SWEEP") {
        Ok(text) if text == "all" => u64::MAX,
        Ok(text) => text.parse().unwrap(),
        Err(_) => few,
    }
}

/// So many of these, spread out, the last one among them.
pub fn spread(all: u64, count: u64) -> Vec<u64> {
    let count = count.min(all);
    (1..=count).map(|index| index * all / count).collect()
}

/// Small enough to be copied hundreds of times, and with one of everything: bundled files, blocks,
/// links, empty directories.
fn small_tree(sandbox: &Sandbox) -> PathBuf {
    for index in 0..8 {
        sandbox.write(format!("tree/d{}/small{index}", index % 2), tree::bytes(3000, index + 1));
    }
    sandbox.write("tree/large", tree::bytes((3 << 20) + 17, 100));
    sandbox.write("tree/d1/larger", tree::bytes((5 << 20) + 1, 101));
    fs::create_dir_all(sandbox.path("tree/empty")).unwrap();
    std::os::unix::fs::symlink("large", sandbox.path("tree/link")).unwrap();
    sandbox.path("tree")
}

/// Each name may hold what the source has; those that stood there before, also what they had.
fn allowed(from: &Path, old: &[(&str, &[u8])]) -> Allowed {
    let mut allowed = watch::allow(from);
    for (name, content) in old {
        allowed.entry(PathBuf::from(name)).or_default().insert(watch::content(content));
    }
    allowed
}

/// The copy is complete. A part file may be left whose name no marker bears witness to, because the marker was cut off
/// before that was on the disk; those are told, and `carrack gc` takes them when they are old enough.
#[track_caller]
pub fn assert_complete(from: &Path, to: &Path) {
    for left in tree::walk(to).into_iter().filter(|path| watch::is_hidden(path)) {
        assert!(!left.to_string_lossy().ends_with(".marker"), "{left:?} is left");
        println!("left behind: {left:?}");
        let parent = fs::File::open(left.parent().unwrap()).unwrap();
        let time = parent.metadata().unwrap().modified().unwrap();
        fs::remove_file(left).unwrap();
        // As the copy has left it.
        parent.set_modified(time).unwrap();
    }
    same_tree(from, to);
}

#[track_caller]
fn assert_nothing_left(directory: &Path) {
    let left: Vec<PathBuf> = tree::walk(directory).into_iter().filter(|path| watch::is_hidden(path)).collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    /// The command, and with it one end: the sender.
    Sender,
    /// The same as the receiver.
    Receiver,
    /// Both ends in one process.
    Both,
}

/// What stands at the destination before: a name, and what it holds.
type Standing = (&'static str, Vec<u8>);

/// A kill sweep's scene: a source tree, and a node at the other end, or none.
struct Scene {
    sandbox: Sandbox,
    old: Vec<Standing>,
    more: &'static [&'static str],
    node: Option<Node>,
    from: String,
    to: String,
    there: PathBuf,
}

impl Scene {
    fn new(victim: Victim) -> Self {
        let sandbox = Sandbox::in_memory();
        small_tree(&sandbox);
        fs::create_dir(sandbox.path("root")).unwrap();
        let node = (victim != Victim::Both).then(|| Node::start(&sandbox, ".", &[]));
        let at = |path: &str| node.as_ref().map_or(path.to_string(), |node| node.at(path));
        let (from, to) = match victim {
            Victim::Receiver => (at("tree/"), "root/to".to_string()),
            _ => ("tree/".to_string(), at("root/to")),
        };
        let there = sandbox.path("root/to");
        Self { sandbox, old: vec![("large", b"old".to_vec())], more: &[], node, from, to, there }
    }

    fn command(&self) -> Command {
        let mut command = self.sandbox.carrack();
        // Blocks small enough that a file has several, and streams few enough that each does something.
        command.args(["--block=1M", "--streams=2"]).args(self.more);
        command.args(self.node.as_ref().map(Node::token)).args([&self.from, &self.to]);
        command
    }

    fn prepare(&self) -> Watcher {
        let _ = fs::remove_dir_all(self.sandbox.path("root"));
        for (name, content) in &self.old {
            self.sandbox.write(format!("root/to/{name}"), content);
        }
        let old: Vec<(&str, &[u8])> = self.old.iter().map(|(name, content)| (*name, &content[..])).collect();
        Watcher::start(&self.there, allowed(&self.sandbox.path("tree"), &old))
    }

    /// Killed at the n-th of a call; then what is there is right, and the same again completes.
    fn strike(&self, call: &str, nth: u64) {
        let what = format!("{} to {}, killed at {call} {nth}", self.from, self.to);
        let watcher = self.prepare();
        let killed = ran(Inject::new().kill(call, nth).around(&self.command()).output_in_time().unwrap());
        let again = ran(self.command().output_in_time().unwrap());
        assert_eq!(again.code, 0, "{what} ({}): {}", killed.code, again.stderr);
        let seen = watcher.end();
        assert_eq!(seen.violations, Vec::<String>::new(), "{what}");
        if self.node.is_some() {
            // A node may still be taking back what the killed one had begun.
            wait_until(&format!("nothing is left over: {what}"), || {
                !tree::walk(&self.there).iter().any(|path| watch::is_hidden(path))
            });
        }
        assert_complete(&self.sandbox.path("tree"), &self.there);
    }
}

impl Scene {
    fn sweep(&self, calls: &[&str], few: u64) {
        self.prepare().end();
        let all = places(&self.sandbox, &self.command(), calls);
        assert!(all.len() > 12, "{all:?}");
        let chosen = spread(all.len() as u64, points(few));
        println!("{} to {}: {} of {} points", self.from, self.to, chosen.len(), all.len());
        for place in chosen {
            let (call, nth) = &all[place as usize - 1];
            self.strike(call, *nth);
        }
    }
}

/// Where a command can be killed: each call, and each time that the thread makes it that makes it most often.
#[track_caller]
pub fn places(sandbox: &Sandbox, command: &Command, calls: &[&str]) -> Vec<(String, u64)> {
    let log = sandbox.path("strace.log");
    let traced = Inject::new().watch(calls).log(&log);
    let done = ran(traced.around(command).output_in_time().unwrap());
    assert_eq!(done.code, 0, "{}", done.stderr);
    // Starting takes some of these, too: reading settings, libraries. They are killed at like all others.
    let found = counts(&log).into_iter().filter(|(call, _)| calls.contains(&call.as_str()));
    found.flat_map(|(call, count)| (1..=count).map(move |nth| (call.clone(), nth))).collect()
}

fn sweep(victim: Victim, few: u64) {
    Scene::new(victim).sweep(&CALLS, few);
}

#[test]
fn kill_sweep_of_a_command_that_sends() {
    sweep(Victim::Sender, 12);
}

#[test]
fn kill_sweep_of_a_command_that_receives() {
    sweep(Victim::Receiver, 12);
}

#[test]
fn kill_sweep_of_both_ends_in_one_process() {
    sweep(Victim::Both, 12);
}

#[test]
fn kill_sweep_at_random_moments_sends_again_only_what_was_not_kept() {
    const FILES: usize = 12;
    const EACH: usize = (6 << 20) + 5;
    const RATE: u64 = 48 << 20;
    let sandbox = Sandbox::in_memory();
    for index in 0..FILES {
        sandbox.write(format!("tree/f{index:02}"), tree::bytes(EACH, index as u64 + 1));
    }
    let node = Node::start(&sandbox, "root", &[]);
    let proxy = Proxy::start(node.address.parse().unwrap());
    let to = node.at("to").replace(&node.address, &proxy.address().to_string());
    let total = (FILES * EACH) as u64;
    let mut chance = Chance::new(0xca44);
    let there = sandbox.path("root/to");
    let watcher = Watcher::start(&there, watch::allow(&sandbox.path("tree")));
    let command = || {
        let mut command = sandbox.carrack();
        command.args(["--streams=4", "--bwlimit", &format!("{RATE}B"), &node.token(), "tree/", &to]);
        command
    };
    let mut kills = 0;
    for _ in 0..points(5).min(100) {
        let before = proxy.carried().up;
        let mut running = Running::start(&mut command());
        // So many bytes, and not so much time: the machine may be busy.
        let until = total / 8 + chance.below(total / 2);
        wait_until("bytes are on their way", || proxy.carried().up - before > until || !running.is_running());
        kills += u64::from(running.is_running());
        signal(running.id(), "KILL");
        let ended = running.end();
        assert!([0, -1].contains(&ended.code), "{}", ended.stderr);
    }
    assert!(kills > 0, "every copy was done before it was to be killed");
    // What is there under final names has been brought, and is not missing.
    let before = proxy.carried().up;
    let last = ran(command().output_in_time().unwrap());
    assert_eq!(last.code, 0, "{}", last.stderr);
    let sent = proxy.carried().up - before;
    assert!(sent <= total + total / 50 + (1 << 20), "{sent} bytes for {total}");
    let seen = watcher.end();
    assert_eq!(seen.violations, Vec::<String>::new());
    same_tree(&sandbox.path("tree"), &there);
    wait_until("nothing is left over", || !tree::walk(&there).iter().any(|path| watch::is_hidden(path)));
}

/// Of what has come, a crash costs what landed since the last checkpoint, about a second's data, and what
/// was in flight: counted on the wire. Pushed, the sender is killed; pulled, the receiver, which has no
/// time for a last checkpoint.
#[test]
fn kill_sweep_costs_about_a_second_of_what_has_come() {
    const TOTAL: u64 = 144 << 20;
    const RATE: u64 = 16 << 20;
    // Two streams, a block of each on its way and one in the buffers between; words around the data.
    const IN_FLIGHT: u64 = (4 * 4) << 20;
    const WORDS: u64 = 2 << 20;
    let sandbox = Sandbox::in_memory();
    sandbox.write("tree/large", tree::bytes(TOTAL as usize, 1));
    let node = Node::start(&sandbox, "root", &[]);
    let source = Node::start(&sandbox, "tree", &[]);
    let mut chance = Chance::new(0x5ec0);
    for round in 0..points(2).min(100) {
        let pulls = round % 2 == 1;
        let served = if pulls { &source } else { &node };
        let proxy = Proxy::start(served.address.parse().unwrap());
        let at = |path: &str| served.at(path).replace(&served.address, &proxy.address().to_string());
        let name = format!("copy{round}");
        let (from, to) = if pulls { (at("large"), name.clone()) } else { ("tree/large".into(), at(&name)) };
        let carried = || if pulls { proxy.carried().down } else { proxy.carried().up };
        let command = |more: &[String]| {
            let mut command = sandbox.carrack();
            command.args(["--streams=2", &served.token(), &from, &to]).args(more);
            command
        };
        let until = TOTAL / 2 + chance.below(TOTAL / 4);
        let mut running = Running::start(&mut command(&[format!("--bwlimit={RATE}B")]));
        wait_until("so much has come", || carried() > until || !running.is_running());
        assert!(running.is_running(), "it ended early");
        signal(running.id(), "KILL");
        running.end();
        let came = carried();
        let last = ran(command(&["--json".into()]).output_in_time().unwrap());
        assert_eq!(last.code, 0, "{}", last.stderr);
        let sent = carried() - came;
        // Another second for a machine that is busy with other things.
        let most = TOTAL - came.min(TOTAL) + 2 * RATE + IN_FLIGHT + WORDS;
        assert!(sent <= most, "round {round}: {came} bytes had come, and then {sent}, not {most}");
        assert!(last.summary()["bytes_resumed"].as_u64().is_some_and(|bytes| bytes > 0), "{}", last.stdout);
        let made = if pulls { sandbox.path(&name) } else { sandbox.path("root").join(&name) };
        assert!(fs::read(&made).unwrap() == fs::read(sandbox.path("tree/large")).unwrap());
        eprintln!("round {round}: {came} bytes came before the kill, {sent} after it; at most {most}");
        fs::remove_file(made).unwrap();
    }
}

/// The copy of a sandbox's tree that is cut off.
type Copying = fn(&Sandbox, &Path) -> Command;

fn by_the_program(sandbox: &Sandbox, to: &Path) -> Command {
    let mut command = sandbox.carrack();
    command.args(["--block=1M", "tree/"]).arg(to);
    command
}

/// In a process of its own, with knobs that no option turns on a machine of few processors.
fn by_several_threads(sandbox: &Sandbox, to: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "crash::copies_by_several_threads", "--ignored", "--test-threads=1"]);
    command.env(SEVERAL_FROM, sandbox.path("tree/")).env(SEVERAL_TO, to);
    command
}

const SEVERAL_FROM: &str = "CARRACK_TEST_FROM";
const SEVERAL_TO: &str = "CARRACK_TEST_TO";

#[test]
#[ignore = "others start it, as a program"]
fn copies_by_several_threads() {
    let (Some(from), Some(to)) = (std::env::var_os(SEVERAL_FROM), std::env::var_os(SEVERAL_TO)) else { return };
    let local = |path: std::ffi::OsString| Location::Local([path.as_encoded_bytes(), b"/"].concat());
    let options = CopyOptions { block_bytes: Some(1 << 20), ..CopyOptions::default() };
    let request = CopyRequest { sources: vec![local(from)], destination: local(to), options };
    let tuning = Arc::new(Tuning { scan_threads: 3, publish_threads: 4, ..Tuning::default() });
    let report = Copy::start(request, &Context { tuning, ..Context::default() }).wait();
    assert!(report.error.is_none() && report.counts.files_failed == 0, "{:?} {:?}", report.error, report.failures);
}

/// Copies onto an image, cuts the power at moments spread over the copy, and looks at what a machine
/// finds when it comes back.
fn power_cuts(kind: Kind, cuts: u64, copying: Copying, many: usize) {
    let sandbox = Sandbox::new();
    let from = small_tree(&sandbox);
    tree::many(&from.join("many"), many, 5000);
    let directory = sandbox.path("disks");
    fs::create_dir(&directory).unwrap();
    let Some(image) = Image::new(&directory, "disk", kind, kind.smallest_mib().max(64)) else { return };
    let names = allowed(&from, &[("large", b"old")]);
    let mut chance = Chance::new(kind.smallest_mib());
    let mut durable = 0;
    for cut in 0..cuts {
        let what = format!("{kind:?}, cut {cut}");
        let to = image.path().join("to");
        let _ = fs::remove_dir_all(&to);
        fs::create_dir(&to).unwrap();
        fs::write(to.join("large"), "old").unwrap();
        // What stood there before stands on the disk, too.
        for path in [&to.join("large"), &to, &image.path().to_path_buf()] {
            fs::File::open(path).unwrap().sync_all().unwrap();
        }
        // Each time after another number of entries has come: a moment of the copy, however long it takes here.
        let wanted = chance.below(many as u64 * 6 / 5) as usize;
        let mut running = Running::start(&mut copying(&sandbox, &to));
        wait_until("the copy has come so far", || tree::walk(&to).len() > wanted || !running.is_running());
        // Copying the image takes its time, a cut takes none: nothing may be done between the image's
        // first block and its last.
        signal(running.id(), "STOP");
        wait_until("it has stopped", || is_stopped(running.id()));
        let ended = !running.is_running();
        let snapshot = image.snapshot(&directory.join("cut.img"));
        signal(running.id(), "CONT");
        let done = running.end();
        assert_eq!(done.code, 0, "{what}: {}", done.stderr);
        // In its place, over the one that went on: the same command finds it under the same name.
        let after = snapshot.open(image.path());
        let found = after.path().join("to");
        for path in watch::files(&found) {
            let name = path.strip_prefix(&found).unwrap();
            let content = watch::content(&fs::read(&path).unwrap());
            let right = names.get(name).is_some_and(|contents| contents.contains(&content));
            assert!(right, "{what}: {name:?} holds {} bytes that nobody sent", content.0);
        }
        assert!(found.join("large").exists(), "{what}: neither the old file nor the new one is there");
        if ended {
            // It had said that all is durable. That its marker is gone need not be.
            assert!(
                watch::allow(&found) == watch::allow(&from),
                "{what}: something that was said to be durable is not there"
            );
            durable += 1;
        }
        // The same command completes there.
        let again =
            ran(sandbox.carrack().args(["--block=1M", "tree/", found.to_str().unwrap()]).output_in_time().unwrap());
        assert_eq!(again.code, 0, "{what}: {}", again.stderr);
        assert_complete(&from, &found);
    }
    println!("{kind:?}: {cuts} cuts, {durable} of them after the end");
}

#[test]
fn power_cuts_on_ext4() {
    power_cuts(Kind::Ext4, points(6).min(100), by_the_program, 150);
}

#[test]
fn power_cuts_on_xfs() {
    power_cuts(Kind::Xfs, points(2).min(100), by_the_program, 150);
}

#[test]
fn power_cuts_on_btrfs() {
    power_cuts(Kind::Btrfs, points(2).min(100), by_the_program, 150);
}

#[test]
fn power_cuts_while_several_threads_publish() {
    power_cuts(Kind::Ext4, points(4).min(100), by_several_threads, 1500);
}

#[test]
fn writers_of_one_name_leave_one_of_both() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "root", &[]);
    for side in ["a", "b"] {
        let seed = u64::from(side.as_bytes()[0]);
        sandbox.write(format!("{side}/large"), tree::bytes((2 << 20) + seed as usize, seed));
        sandbox.write(format!("{side}/small"), tree::bytes(5000 + seed as usize, seed));
    }
    let mut names = allowed(&sandbox.path("a"), &[]);
    for (name, contents) in allowed(&sandbox.path("b"), &[]) {
        names.entry(name).or_default().extend(contents);
    }
    let watcher = Watcher::start(&sandbox.path("root/to"), names);
    for round in 0..points(8).min(100) {
        let running =
            ["a/", "b/"].map(|from| Running::start(sandbox.carrack().args([&node.token(), from, &node.at("to")])));
        for one in running {
            let ended = one.end();
            assert_eq!(ended.code, 0, "round {round}: {}", ended.stderr);
        }
    }
    let seen = watcher.end();
    assert_eq!(seen.violations, Vec::<String>::new());
    assert_eq!(watch::files(&sandbox.path("root/to")).len(), 2);
    assert_nothing_left(&sandbox.path("root"));
}
