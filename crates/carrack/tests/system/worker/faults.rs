//! The state directory fails a worker.

use std::os::unix::fs::FileExt;
use std::process::Command;

use carrack_core::options::RateBound;
use carrack_service::journal::{EndKind, Record};
use carrack_service::model::{EventKind, ItemState, TaskKind};

use super::MIB;
use crate::support::node::Node;
use crate::support::tasks::{Tasks, pair};
use crate::support::{is_root, process, same_tree, tool, tree};

#[test]
fn worker_finds_its_state_directory_full_and_a_later_attempt_tells_what_is_missing() {
    if !is_root() {
        eprintln!("skipped: only root may mount");
        return;
    }
    let mut tasks = Tasks::new();
    tree::many(&tasks.sandbox.path("from/run"), 12_000, 10);
    let directory = tasks.directory("one");
    std::fs::create_dir_all(&directory).unwrap();
    tool(Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&directory));
    let mounted = Mounted(directory.clone());
    let mut order = tasks.order("one", TaskKind::Copy, vec![pair(tasks.local("from", "run"), tasks.local("to", "/"))]);
    let full = tasks.run(&order);
    let end = full.ended();
    let failure = end.failure.as_ref().unwrap();
    assert_eq!((end.kind, &*failure.code, failure.retryable), (EndKind::Failed, "no-space", true), "{failure:?}");
    tool(Command::new("mount").args(["-o", "remount,size=64m"]).arg(&directory));
    order.fence = 2;
    assert_eq!(tasks.run(&order).done().progress.items_done, 12_000);
    assert_eq!(tasks.paths("one", ItemState::Done).len(), 12_000);
    same_tree(&tasks.sandbox.path("from/run"), &tasks.sandbox.path("to/run"));
    drop(mounted);
}

struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// A task that was killed in the middle of its files.
fn half_done(tasks: &mut Tasks) -> carrack_service::worker::Order {
    tree::many(&tasks.sandbox.path("from/run"), 100, 100_000);
    let ends = pair(tasks.local("from", "run"), tasks.local("to", "/"));
    let mut order = tasks.order("one", TaskKind::Copy, vec![ends]);
    order.options.rate_limit = Some(RateBound::new(2 * MIB as u64));
    tasks.start(&order);
    tasks.follow_until_moved("one", 4 * MIB as u64);
    process::signal(tasks.process("one"), "KILL");
    assert!(tasks.follow("one", |_| false).end.is_none());
    (order.fence, order.options.rate_limit) = (2, None);
    order
}

fn all_are_told_once(tasks: &mut Tasks, order: &carrack_service::worker::Order) {
    assert_eq!(tasks.run(order).done().progress.items_done, 100);
    same_tree(&tasks.sandbox.path("from/run"), &tasks.sandbox.path("to/run"));
    let paths = tasks.paths("one", ItemState::Done);
    assert_eq!(paths.len(), 100);
    assert!(paths.is_sorted_by(|one, next| one < next), "a path twice");
}

#[test]
fn worker_cuts_the_torn_end_of_its_journal_and_goes_on() {
    let mut tasks = Tasks::new();
    let order = half_done(&mut tasks);
    let journal = std::fs::File::options().read(true).write(true).open(tasks.journal("one")).unwrap();
    journal.set_len(journal.metadata().unwrap().len() - 3).unwrap();
    all_are_told_once(&mut tasks, &order);
    let cut =
        |record: &Record| matches!(record, Record::Event { kind: EventKind::Fault, text, .. } if text.contains("torn"));
    assert!(tasks.records("one").iter().any(cut));
}

#[test]
fn worker_keeps_the_damaged_part_of_its_journal_aside_and_goes_on() {
    let mut tasks = Tasks::new();
    let order = half_done(&mut tasks);
    let journal = std::fs::File::options().read(true).write(true).open(tasks.journal("one")).unwrap();
    let middle = journal.metadata().unwrap().len() / 2;
    journal.write_all_at(&[0xa5; 8], middle).unwrap();
    // The service that reads it ends the worker's attempt rather than guess.
    all_are_told_once(&mut tasks, &order);
    let aside = std::fs::read_dir(tasks.directory("one")).unwrap().flatten();
    let aside: Vec<_> = aside.filter(|entry| entry.file_name().to_string_lossy().contains("damaged")).collect();
    assert_eq!(aside.len(), 1);
}

#[test]
fn worker_whose_node_dies_goes_on_when_it_is_back_and_tells_each_item_once() {
    let mut tasks = Tasks::new();
    let mut from = Node::start(&tasks.sandbox, "from", &[]);
    tree::many(&tasks.sandbox.path("from/run"), 300, 100_000);
    let ends = pair(from.end("run"), tasks.local("to", "/"));
    let mut order = tasks.order("one", TaskKind::Copy, vec![ends]);
    order.options.rate_limit = Some(RateBound::new(8 * MIB as u64));
    // One of those that come first fails, before and after.
    order.expect_digests.insert("run/d000/f000000".into(), "0".repeat(64));
    tasks.start(&order);
    tasks.follow_until_moved("one", 8 * MIB as u64);
    from.kill();
    from.restart(&tasks.sandbox);
    let attempt = tasks.follow("one", |_| false);
    let end = attempt.ended();
    assert_eq!((end.kind, end.progress.items_done, end.progress.items_failed), (EndKind::Done, 299, 1));
    assert!(end.progress.faults > 0 && end.progress.bytes_resent <= 16 * MIB as u64, "{:?}", end.progress);
    assert_eq!(tasks.paths("one", ItemState::Failed), ["run/d000/f000000"]);
    let paths = tasks.paths("one", ItemState::Done);
    assert_eq!(paths.len(), 299);
    assert!(paths.is_sorted_by(|one, next| one < next), "a path twice");
    let lost = |record: &Record| matches!(record, Record::Event { kind: EventKind::Fault, .. });
    assert!(attempt.records.iter().any(lost));
}
