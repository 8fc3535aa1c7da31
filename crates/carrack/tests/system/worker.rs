//! Workers of managed transfers: real processes that carry out orders, are killed, stopped and overtaken.

mod deletion;
mod faults;
mod kinds;
mod places;

use carrack_core::options::RateBound;
use carrack_service::journal::{EndKind, Record};
use carrack_service::model::{ItemState, TaskKind};

use crate::support::node::Node;
use crate::support::tasks::{Tasks, pair};
use crate::support::{b3sum, process, same_tree, tree, wait_until};

const MIB: usize = 1 << 20;

#[test]
fn worker_copies_a_tree_between_two_nodes_and_tells_each_file_with_its_digest() {
    let mut tasks = Tasks::new();
    let (from, to) = (Node::start(&tasks.sandbox, "from", &[]), Node::start(&tasks.sandbox, "to", &[]));
    tree::many(&tasks.sandbox.path("from/run"), 300, 2000);
    tasks.sandbox.write("from/run/large", tree::bytes(9 * MIB, 1));
    let order = tasks.order("one", TaskKind::Copy, vec![pair(from.end("run"), to.end("/"))]);
    let attempt = tasks.run(&order);
    let progress = &attempt.done().progress;
    assert_eq!((progress.items_total, progress.items_done), (301, 301));
    assert_eq!((progress.bytes_moved, progress.bytes_verified), (9 * MIB as u64 + 600_000, progress.bytes_total));
    assert!(progress.scan_complete && attempt.done().got_somewhere);
    same_tree(&tasks.sandbox.path("from/run"), &tasks.sandbox.path("to/run"));
    let items = tasks.items("one");
    assert_eq!(items.len(), 301);
    let large = items.iter().find(|item| item.path == b"run/large").unwrap();
    let digest = blake3_hex(large.digest.unwrap());
    assert_eq!((digest, large.size), (b3sum(&tasks.sandbox.path("from/run/large")), 9 * MIB as u64));
    assert!(attempt.records.iter().any(|record| matches!(record, Record::PairEnded(end) if end.pair == 0)));

    // A task that has done all does nothing more, as long as it is there.
    let mut again = carrack_service::worker::Order { fence: 2, ..order };
    let bytes_moved = progress.bytes_moved;
    let end = tasks.run(&again).done().clone();
    assert_eq!((end.progress.bytes_moved, end.got_somewhere), (bytes_moved, false));
    std::fs::remove_dir_all(tasks.sandbox.path("to/run")).unwrap();
    again.fence = 3;
    assert_eq!(tasks.run(&again).done().progress.items_done, 301);
    same_tree(&tasks.sandbox.path("from/run"), &tasks.sandbox.path("to/run"));
    assert_eq!(tasks.items("one").len(), 301);
}

fn blake3_hex(digest: [u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn worker_keeps_two_roots_of_this_host_apart() {
    let mut tasks = Tasks::new();
    tasks.sandbox.write("a/data/x", "from a");
    tasks.sandbox.write("b/data/y", "stays");
    tasks.sandbox.write("outside", "secret");
    // The same path below both: they are not the same place.
    let order = |tasks: &Tasks, name: &str, from: &str| {
        tasks.order(name, TaskKind::Copy, vec![pair(tasks.local("a", from), tasks.local("b", "/data/"))])
    };
    let one = order(&tasks, "one", "/data/");
    tasks.run(&one).done();
    assert_eq!(std::fs::read(tasks.sandbox.path("b/data/x")).unwrap(), b"from a");
    let out = order(&tasks, "out", "/../outside");
    let end = tasks.run(&out).ended().clone();
    assert_eq!((end.kind, end.progress.items_done, end.progress.items_failed), (EndKind::Done, 0, 1));
    assert!(!tasks.sandbox.path("b/data/outside").exists());
    let same = tasks.order("same", TaskKind::Copy, vec![pair(tasks.local("a", "/data/"), tasks.local("a", "/data/"))]);
    assert_eq!(tasks.run(&same).ended().failure.as_ref().unwrap().code, "same-file");
}

#[test]
fn worker_that_is_killed_in_mid_file_is_followed_by_one_that_goes_on_there() {
    let mut tasks = Tasks::new();
    let to = Node::start(&tasks.sandbox, "to", &[]);
    let size = 48 * MIB;
    tasks.sandbox.write("from/large", tree::bytes(size, 3));
    let rate = 12 * MIB as u64;
    let mut order = tasks.order("one", TaskKind::Copy, vec![pair(tasks.local("from", "large"), to.end("large"))]);
    order.options.rate_limit = Some(RateBound::new(rate));
    tasks.start(&order);
    tasks.follow_until_moved("one", 24 * MIB as u64);
    process::signal(tasks.process("one"), "KILL");
    let killed = tasks.follow("one", |_| false);
    assert!(killed.end.is_none() && killed.why.unwrap().contains("signal"));

    (order.fence, order.options.rate_limit) = (2, None);
    let attempt = tasks.run(&order);
    let progress = &attempt.done().progress;
    assert_eq!((progress.items_done, progress.bytes_moved), (1, size as u64));
    // What landed in the last second or so, and what was in flight.
    assert!(progress.bytes_resent <= 2 * rate, "{} bytes were sent again", progress.bytes_resent);
    let told = std::fs::read(tasks.sandbox.path("to/large")).unwrap();
    assert!(told == tree::bytes(size, 3));
    // What is shown never goes back.
    let shown = attempt.records.iter().filter_map(|record| match record {
        Record::Sample(sample) => Some(sample.progress.bytes_moved),
        _ => None,
    });
    assert!(shown.collect::<Vec<_>>().is_sorted_by(|one, next| one <= next));
}

#[test]
fn worker_stops_in_good_order_and_its_task_goes_on_later() {
    let mut tasks = Tasks::new();
    tree::many(&tasks.sandbox.path("from/run"), 200, 100_000);
    let ends = pair(tasks.local("from", "run"), tasks.local("to", "/"));
    let mut order = tasks.order("one", TaskKind::Copy, vec![ends]);
    order.options.rate_limit = Some(RateBound::new(4 * MIB as u64));
    tasks.start(&order);
    tasks.follow_until_moved("one", 4 * MIB as u64);
    tasks.supervisor.stop("one");
    let stopped = tasks.follow("one", |_| false);
    let end = stopped.ended();
    assert_eq!((end.kind, &end.failure, &stopped.why), (EndKind::Stopped, &None, &None));
    assert!(end.got_somewhere && end.progress.items_done < 200);

    (order.fence, order.options.rate_limit) = (2, None);
    assert_eq!(tasks.run(&order).done().progress.items_done, 200);
    same_tree(&tasks.sandbox.path("from/run"), &tasks.sandbox.path("to/run"));
    // Each path once, whichever attempt has told it.
    let paths = tasks.paths("one", ItemState::Done);
    assert_eq!(paths.len(), 200);
    assert!(paths.is_sorted_by(|one, next| one < next));
}

#[test]
fn worker_outlives_its_service_and_the_next_one_finds_it() {
    let mut tasks = Tasks::new();
    tasks.sandbox.write("from/large", tree::bytes(32 * MIB, 4));
    let ends = pair(tasks.local("from", "large"), tasks.local("to", "/"));
    let mut order = tasks.order("one", TaskKind::Copy, vec![ends]);
    order.options.rate_limit = Some(RateBound::new(8 * MIB as u64));
    tasks.start(&order);
    tasks.follow_until_moved("one", 4 * MIB as u64);
    tasks.another_service(|_| {});
    tasks.supervisor.adopt("one", 1);
    assert_eq!(tasks.supervisor.alive().collect::<Vec<_>>(), [("one", 1)]);
    let attempt = tasks.follow("one", |_| false);
    let began = attempt.records.iter().filter(|record| matches!(record, Record::Began { .. })).count();
    assert_eq!((attempt.done().progress.bytes_resent, began), (0, 1));
    // Of a task whose worker ended unseen, the end is told.
    tasks.another_service(|_| {});
    tasks.supervisor.adopt("one", 1);
    tasks.follow("one", |_| false).done();
    // And of one that never began, that it is gone.
    tasks.supervisor.adopt("two", 1);
    assert!(tasks.follow("two", |_| false).end.is_none());
}

#[test]
fn worker_that_was_stopped_is_fenced_off_by_the_next_attempt() {
    let mut tasks = Tasks::new();
    tasks.sandbox.write("from/large", tree::bytes(24 * MIB, 5));
    let ends = pair(tasks.local("from", "large"), tasks.local("to", "/"));
    let mut order = tasks.order("one", TaskKind::Copy, vec![ends]);
    order.options.rate_limit = Some(RateBound::new(4 * MIB as u64));
    tasks.start(&order);
    tasks.follow_until_moved("one", 4 * MIB as u64);
    let first = tasks.process("one");
    process::signal(first, "STOP");
    wait_until("the worker stands still", || process::is_stopped(first));
    // A service that takes it for dead starts another attempt.
    tasks.another_service(|_| {});
    (order.fence, order.options.rate_limit) = (2, None);
    let second = tasks.run(&order);
    second.done();
    assert!(!process::is_alive(first));
    assert!(std::fs::read(tasks.sandbox.path("to/large")).unwrap() == tree::bytes(24 * MIB, 5));
    let fences = tasks.records("one").into_iter().filter_map(|record| match record {
        Record::Began { fence, .. } => Some(fence),
        _ => None,
    });
    assert_eq!(fences.collect::<Vec<_>>(), [1, 2]);

    // An order of before does nothing, and leaves the journal as it is.
    let journal = std::fs::read(tasks.journal("one")).unwrap();
    for fence in [1, 2] {
        order.fence = fence;
        tasks.start(&order);
        let late = tasks.follow("one", |_| false);
        assert!(late.why.is_some() || late.end.is_some(), "attempt {fence}");
        assert_eq!(std::fs::read(tasks.journal("one")).unwrap(), journal);
    }
}

#[test]
fn worker_that_falls_silent_is_ended_by_its_service() {
    let mut tasks = Tasks::new();
    tasks.sandbox.write("from/large", tree::bytes(24 * MIB, 6));
    let ends = pair(tasks.local("from", "large"), tasks.local("to", "/"));
    let mut order = tasks.order("one", TaskKind::Copy, vec![ends]);
    order.options.rate_limit = Some(RateBound::new(MIB as u64));
    tasks.another_service(|settings| settings.silence = std::time::Duration::from_secs(3));
    tasks.start(&order);
    tasks.follow_until_moved("one", 1);
    let first = tasks.process("one");
    process::signal(first, "STOP");
    let gone = tasks.follow("one", |_| false);
    assert!(gone.end.is_none() && gone.why.unwrap().contains("fell silent"));
    assert!(!process::is_alive(first));
}

#[test]
fn worker_writes_and_shows_no_secret() {
    let mut tasks = Tasks::new();
    let to = Node::start(&tasks.sandbox, "to", &[]);
    tasks.sandbox.write("from/large", tree::bytes(24 * MIB, 7));
    let mut order = tasks.order("one", TaskKind::Copy, vec![pair(tasks.local("from", "large"), to.end("/"))]);
    order.options.rate_limit = Some(RateBound::new(MIB as u64));
    tasks.start(&order);
    tasks.follow_until_moved("one", 1);
    let worker = tasks.process("one");
    for about in ["cmdline", "environ"] {
        let shown = std::fs::read(format!("/proc/{worker}/{about}")).unwrap();
        assert!(!shown.is_empty() && !holds_token(&shown), "{about}");
    }
    let limits = std::fs::read_to_string(format!("/proc/{worker}/limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"));
    process::signal(worker, "ABRT");
    let gone = tasks.follow("one", |_| false);
    let why = gone.why.unwrap();
    assert!(gone.end.is_none() && !why.contains("core dumped"), "{why}");
    // A refusal by the node names no token, either.
    if let Some(end) = &mut order.pairs[0].destination {
        end.credentials.token = Some(carrack_service::worker::Secret::new(format!("{}-no-more", Node::TOKEN)));
    }
    order.fence = 2;
    assert_eq!(tasks.run(&order).ended().failure.as_ref().unwrap().code, "authentication-failed");
    for file in tree::walk(&tasks.directory("one")) {
        assert!(!holds_token(&std::fs::read(&file).unwrap()), "{}", file.display());
    }
    assert!(!format!("{order:?}").contains(Node::TOKEN));
}

fn holds_token(bytes: &[u8]) -> bool {
    bytes.windows(Node::TOKEN.len()).any(|window| window == Node::TOKEN.as_bytes())
}

#[test]
fn worker_gives_way_to_other_processes_as_it_is_told() {
    let mut tasks = Tasks::new();
    tasks.sandbox.write("from/large", tree::bytes(8 * MIB, 7));
    let mut order =
        tasks.order("one", TaskKind::Copy, vec![pair(tasks.local("from", "large"), tasks.local("to", "/"))]);
    (order.options.rate_limit, order.nice) = (Some(RateBound::new(MIB as u64)), 3);
    tasks.start(&order);
    tasks.follow_until_moved("one", 1);
    let nice_of = |process: &str| -> i32 {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        stat.rsplit(") ").next().unwrap().split(' ').nth(16).unwrap().parse().unwrap()
    };
    let worker = tasks.process("one").to_string();
    assert_eq!(nice_of(&worker), (nice_of("self") + 3).min(19));
}
