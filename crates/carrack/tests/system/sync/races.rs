//! Directories that are exchanged for links while a sync walks, compares, makes, links, gives attributes, renames and
//! deletes: whatever becomes of the sync, nothing outside its two trees is read, changed or deleted.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Instant;

use carrack_core::filter::SourceLinks;
use carrack_faults::race::Racer;
use carrack_service::journal::EndKind;
use carrack_service::model::TaskKind;
use carrack_service::worker::Order;

use super::set_mtime;
use crate::fidelity::{ACCESS, DEFAULT, list, set};
use crate::support::node::Node;
use crate::support::sshd::Sshd;
use crate::support::tasks::{Tasks, pair};
use crate::support::{Sandbox, race_time, same_tree};

const CANARY: &str = "nobody may read this, and nobody may write here";
const SOURCE: &str = "of the source";
const FILES: u64 = 24;
const FLAGS: [&str; 6] = ["sync", "-q", "-aX", "--delete", "--durable=none", "--retries=2"];
const REMOVES: [&str; 4] = ["copy", "-q", "--remove-source-files", "--retries=2"];

/// Everything below a directory, links not followed: what it is, when it was changed, and what it holds.
fn shown(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![top.to_path_buf()];
    while let Some(path) = waiting.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let content = if meta.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            String::new()
        } else if meta.is_symlink() {
            fs::read_link(&path).unwrap().display().to_string()
        } else {
            fs::read_to_string(&path).unwrap()
        };
        let times = (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec());
        found.insert(path, format!("{:o} {times:?} {content}", meta.mode()));
    }
    found
}

/// Where in it a file is.
fn below(directory: &Path, number: u64) -> PathBuf {
    directory.join(if number.is_multiple_of(3) { "e" } else { "" })
}

/// A tree with the directory `d`, and beside the tree a link that leads out of it.
struct Place {
    top: PathBuf,
    bait: PathBuf,
    out: PathBuf,
}

impl Place {
    fn new(top: PathBuf, out: &Path) -> Self {
        Self { bait: top.with_file_name("bait"), top, out: out.to_path_buf() }
    }

    /// Makes both what they were before anything was exchanged, and writes the files in the directory.
    fn mend(&self, content: impl Fn(u64) -> (String, &'static str)) {
        for path in [&self.top, &self.bait] {
            let is_directory = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
            let _ = if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
        fs::create_dir_all(self.top.join("d/e")).unwrap();
        symlink(&self.out, &self.bait).unwrap();
        for number in 0..FILES {
            let (name, content) = content(number);
            fs::write(below(&self.top.join("d"), number).join(name), content).unwrap();
        }
    }

    /// Gives files further names, and lists and values to some.
    fn attribute(&self) {
        for number in 0..FILES {
            let first = below(&self.top.join("d"), number).join(format!("f{number}"));
            fs::hard_link(first, self.top.join(format!("link{number}"))).unwrap();
        }
        set(&self.top.join("d/f1"), "user.x", b"value");
        set(&self.top.join("d/e/f3"), ACCESS, &list([7, 6, 4, 7, 4], 1000));
        set(&self.top.join("d/e"), DEFAULT, &list([7, 6, 4, 7, 4], 1000));
    }

    /// Whether a file of the source is here, under either of the two names that are exchanged.
    fn holds(&self, number: u64) -> bool {
        let name = format!("f{number}");
        let named = [self.top.join("d"), self.bait.clone()].map(|directory| below(&directory, number).join(&name));
        named.iter().any(|path| fs::read_to_string(path).is_ok_and(|content| content == SOURCE))
    }
}

/// Runs syncs from `a/src` to `b/dst` while one or both are raced, and then one that is left alone.
fn race(place: &Path, sync: impl FnMut(u64) -> i32) {
    let (from, to) = race_of(place, false, sync);
    same_tree(&from, &to);
}

/// The same with copies that delete what they have copied at its source.
fn race_of_removal(place: &Path, copy: impl FnMut(u64) -> i32) {
    let (from, to) = race_of(place, true, copy);
    let files = |top: &Path| shown(top).into_keys().filter(|path| path.is_file()).count() as u64;
    assert_eq!((files(&from), files(&to)), (0, FILES + FILES / 2), "all has been moved, and what only it has stays");
}

/// The two trees after the last run. With `removes` nothing of the source is nowhere after any.
fn race_of(place: &Path, removes: bool, mut sync: impl FnMut(u64) -> i32) -> (PathBuf, PathBuf) {
    let out = place.join("out");
    fs::create_dir_all(out.join("e")).unwrap();
    for name in (0..FILES).flat_map(|number| [format!("f{number}"), format!("e/f{number}"), format!("only{number}")]) {
        fs::write(out.join(&name), CANARY).unwrap();
        set_mtime(&out.join(name), 1_000_000_000);
    }
    let before = shown(&out);
    let (from, to) = (Place::new(place.join("a/src"), &out), Place::new(place.join("b/dst"), &out));
    let mend = || {
        from.mend(|number| (format!("f{number}"), SOURCE));
        if !removes {
            from.attribute();
        }
        // Half of them differ, and half only the destination has.
        to.mend(|number| (format!("{}{number}", if number % 2 == 0 { "f" } else { "only" }), "old"));
    };
    let end = Instant::now() + race_time();
    let (mut round, mut swaps) = (0, 0);
    while Instant::now() < end || round < 6 {
        mend();
        let raced = [&[&from][..], &[&to], &[&from, &to]];
        let raced = raced[round as usize % raced.len()];
        let racers: Vec<Racer> = raced.iter().map(|place| Racer::start(&place.top.join("d"), &place.bait)).collect();
        let code = sync(round);
        swaps += racers.iter().map(Racer::swaps).sum::<u64>();
        drop(racers);
        assert!(matches!(code, 0 | 10..=30), "round {round}: {code}");
        assert_eq!(shown(&out), before, "round {round}: something outside was touched");
        let told = shown(&to.top).into_iter().find(|(_, what)| what.contains(CANARY));
        assert!(told.is_none(), "round {round}: {told:?}");
        let lost = (0..FILES).find(|&number| !from.holds(number) && !to.holds(number));
        assert!(!removes || lost.is_none(), "round {round}: {lost:?} is nowhere");
        round += 1;
    }
    assert!(swaps > 10 * round, "{swaps} exchanges in {round} rounds");
    mend();
    assert_eq!(sync(round), 0);
    (from.top, to.top)
}

#[test]
fn race_on_one_host() {
    let sandbox = Sandbox::in_memory();
    race(&sandbox.path(""), |_| sandbox.run(FLAGS.into_iter().chain(["a/src/", "b/dst"])).code);
}

#[test]
fn race_at_a_node_that_is_copied_to() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "b", &[]);
    let words = ["a/src/", &node.at("dst"), &node.token()].map(str::to_owned);
    race(&sandbox.path(""), |_| sandbox.run(FLAGS.map(str::to_owned).iter().chain(&words)).code);
}

#[test]
fn race_at_a_node_that_is_copied_from() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "a", &[]);
    let words = [&node.at("src/"), "b/dst", &node.token()].map(str::to_owned);
    race(&sandbox.path(""), |_| sandbox.run(FLAGS.map(str::to_owned).iter().chain(&words)).code);
}

/// What a link leads to is read where that was asked for, and never what lies outside the node's root.
#[test]
fn race_at_a_node_whose_links_are_followed() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "a", &[]);
    let words = ["-L", &node.at("src/"), "b/dst", &node.token()].map(str::to_owned);
    race(&sandbox.path(""), |_| sandbox.run(FLAGS.map(str::to_owned).iter().chain(&words)).code);
}

#[test]
fn race_between_two_nodes() {
    let sandbox = Sandbox::in_memory();
    let (a, b) = (Node::start(&sandbox, "a", &[]), Node::start(&sandbox, "b", &[]));
    let words = [a.at("src/"), b.at("dst"), a.token_as("source"), b.token_as("destination")];
    race(&sandbox.path(""), |_| sandbox.run(FLAGS.map(str::to_owned).iter().chain(&words)).code);
}

#[test]
fn race_over_ssh() {
    let sandbox = Sandbox::new();
    let sshd = Sshd::start(&sandbox);
    let there = format!("far:{}", sandbox.path("b/dst").display());
    race(&sandbox.path(""), |_| sandbox.run(FLAGS.into_iter().chain([&sshd.rsh[..], "a/src/", &there])).code);
}

/// A task's worker, between two endpoints of this host.
#[test]
fn race_of_a_task() {
    race_of_tasks(None);
}

#[test]
fn race_of_a_task_that_follows_links() {
    race_of_tasks(Some(SourceLinks::Follow));
}

#[test]
fn race_of_removal_on_one_host() {
    let sandbox = Sandbox::in_memory();
    race_of_removal(&sandbox.path(""), |_| sandbox.run(REMOVES.into_iter().chain(["a/src/", "b/dst"])).code);
}

#[test]
fn race_of_removal_at_a_node() {
    let sandbox = Sandbox::in_memory();
    let node = Node::start(&sandbox, "a", &[]);
    let words = [&node.at("src/"), "b/dst", &node.token()].map(str::to_owned);
    race_of_removal(&sandbox.path(""), |_| sandbox.run(REMOVES.map(str::to_owned).iter().chain(&words)).code);
}

#[test]
fn race_of_removal_between_two_nodes() {
    let sandbox = Sandbox::in_memory();
    let (a, b) = (Node::start(&sandbox, "a", &[]), Node::start(&sandbox, "b", &[]));
    let words = [a.at("src/"), b.at("dst"), a.token_as("source"), b.token_as("destination")];
    race_of_removal(&sandbox.path(""), |_| sandbox.run(REMOVES.map(str::to_owned).iter().chain(&words)).code);
}

#[test]
fn race_of_removal_over_ssh() {
    let sandbox = Sandbox::new();
    let sshd = Sshd::start(&sandbox);
    let there = format!("far:{}/", sandbox.path("a/src").display());
    race_of_removal(&sandbox.path(""), |_| {
        sandbox.run(REMOVES.into_iter().chain([&sshd.rsh[..], &there, "b/dst"])).code
    });
}

#[test]
fn race_of_a_task_that_moves() {
    let mut tasks = Tasks::new();
    let order = tasks.order("", TaskKind::Move, vec![pair(tasks.local("a", "/src/"), tasks.local("b", "/dst"))]);
    race_of_removal(&tasks.sandbox.path(""), |round| {
        let mut order = Order { task: format!("task{round}"), ..order.clone() };
        order.directory = tasks.directory(&order.task);
        match tasks.run(&order).ended().kind {
            EndKind::Done => 0,
            _ => 23,
        }
    });
}

fn race_of_tasks(links: Option<SourceLinks>) {
    let mut tasks = Tasks::new();
    let order = tasks.order("", TaskKind::Copy, vec![pair(tasks.local("a", "/src/"), tasks.local("b", "/dst"))]);
    race(&tasks.sandbox.path(""), |round| {
        let mut order = Order { task: format!("task{round}"), ..order.clone() };
        order.directory = tasks.directory(&order.task);
        order.options.delete = true;
        order.options.links = links;
        match tasks.run(&order).ended().kind {
            EndKind::Done => 0,
            _ => 23,
        }
    });
}
