//! What workers do of each kind of task, and what becomes of single items.

use carrack_core::location::Location;
use carrack_core::options::{OptionValue, RateBound};
use carrack_core::request::{Compare, Existing};
use carrack_faults::fuse::{Call, FaultFs, Features};
use carrack_service::clock::Moment;
use carrack_service::journal::{AttemptEnd, EndKind};
use carrack_service::model::{ItemState, Progress, TaskKind};
use carrack_service::worker::PairOrder;

use super::MIB;
use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::tasks::{Tasks, pair};
use crate::support::{b3sum, same_tree, tree};

#[test]
fn worker_moves_what_is_still_what_was_copied() {
    let mut tasks = Tasks::new();
    let from = Node::start(&tasks.sandbox, "from", &[]);
    let run = tasks.sandbox.path("from/run");
    tree::mixed(&run);
    std::process::Command::new("cp").arg("-a").arg(&run).arg(tasks.sandbox.path("kept")).status().unwrap();
    let order = tasks.order("one", TaskKind::Move, vec![pair(from.end("run"), tasks.local("to", "/"))]);
    let attempt = tasks.run(&order);
    let end = attempt.ended();
    assert_eq!(end.kind, EndKind::Done, "{:?}", end.failure);
    assert_eq!(end.progress.items_done + end.progress.items_failed, end.progress.items_total);
    let left: Vec<_> = tree::walk(&run);
    // What is never copied is never deleted.
    assert_eq!(end.progress.items_failed as usize, left.iter().filter(|path| !path.is_dir()).count(), "{left:?}");
    if end.progress.items_failed == 0 {
        assert!(!run.exists());
        same_tree(&tasks.sandbox.path("kept"), &tasks.sandbox.path("to/run"));
    }
}

#[test]
fn worker_that_moves_leaves_a_source_that_has_changed_and_what_came_later() {
    let mut tasks = Tasks::new();
    let from = Node::start(&tasks.sandbox, "from", &[]);
    for name in ["a", "b", "sub/c"] {
        tasks.sandbox.write(format!("from/run/{name}"), tree::bytes(1000, 1));
    }
    tasks.sandbox.write("from/run/large", tree::bytes(16 * MIB, 2));
    let mut order = tasks.order("one", TaskKind::Move, vec![pair(from.end("run/"), tasks.local("to", "/"))]);
    order.options.rate_limit = Some(RateBound::new(2 * MIB as u64));
    tasks.start(&order);
    tasks.follow_until_moved("one", 1);
    // The small ones come first or last: what is there already is changed, and the rest of the copy takes long.
    let copied = tasks.sandbox.path("to/a");
    tasks.follow_until("one", "a small file is there", || copied.exists());
    tasks.sandbox.write("from/run/a", tree::bytes(1000, 9));
    tasks.sandbox.write("from/run/sub/later", "new");
    let attempt = tasks.follow("one", |_| false);
    let end = attempt.ended();
    assert_eq!((end.kind, end.progress.items_done, end.progress.items_failed), (EndKind::Done, 3, 1), "{end:?}");
    assert_eq!(tasks.paths("one", ItemState::Failed), ["a"]);
    assert_eq!(std::fs::read(tasks.sandbox.path("from/run/a")).unwrap(), tree::bytes(1000, 9));
    assert!(tasks.sandbox.path("from/run/sub/later").exists());
    assert!(!tasks.sandbox.path("from/run/b").exists() && !tasks.sandbox.path("from/run/large").exists());
}

#[test]
fn worker_that_moves_keeps_a_source_whose_copy_is_gone_and_says_so() {
    let mut tasks = Tasks::new();
    let from = Node::start(&tasks.sandbox, "from", &[]);
    tasks.sandbox.write("from/run/a", tree::bytes(1000, 1));
    tasks.sandbox.write("from/run/large", tree::bytes(16 * MIB, 2));
    let mut order = tasks.order("one", TaskKind::Move, vec![pair(from.end("run/"), tasks.local("to", "/"))]);
    order.options.rate_limit = Some(RateBound::new(2 * MIB as u64));
    tasks.start(&order);
    let copied = tasks.sandbox.path("to/a");
    tasks.follow_until("one", "a small file is there", || copied.exists());
    std::fs::remove_file(&copied).unwrap();
    let attempt = tasks.follow("one", |_| false);
    let end = attempt.ended();
    assert_eq!((end.kind, end.progress.items_failed), (EndKind::Done, 1), "{end:?}");
    let failure = end.failure.as_ref().unwrap();
    assert!(failure.why.contains("gone from the destination") && failure.side == "destination", "{failure:?}");
    assert!(tasks.sandbox.path("from/run/a").exists() && !tasks.sandbox.path("from/run/large").exists());
}

#[test]
fn worker_deletes_a_tree_and_not_more_than_a_token_allows() {
    let mut tasks = Tasks::new();
    let node = Node::start(&tasks.sandbox, "data", &[]);
    tree::many(&tasks.sandbox.path("data/old"), 50, 10);
    tasks.sandbox.write("data/kept", "kept");
    let delete = |path: &str| vec![PairOrder::new(node.end(path), None)];
    let mut order = tasks.order("few", TaskKind::Delete, delete("old"));
    order.ceilings.deletions = Some(51);
    let end = tasks.run(&order).ended().clone();
    assert!(end.progress.items_failed == 1 && end.failure.unwrap().why.contains("52 items"));
    assert_eq!(tree::walk(&tasks.sandbox.path("data/old")).iter().filter(|path| path.is_file()).count(), 50);
    order.ceilings.deletions = Some(52);
    (order.fence, order.task, order.directory) = (1, "all".into(), tasks.directory("all"));
    let end = tasks.run(&order).done().clone();
    assert_eq!(end.progress.items_done, 52);
    assert!(!tasks.sandbox.path("data/old").exists() && tasks.sandbox.path("data/kept").exists());
    let root = tasks.order("root", TaskKind::Delete, delete("/"));
    assert_eq!(tasks.run(&root).ended().progress.items_failed, 1);
    assert!(tasks.sandbox.path("data/kept").exists());
}

/// How far it came nobody can say: the next attempt takes all of it for deleted.
#[test]
fn deletion_that_was_cut_short_counts_for_a_token() {
    let mut tasks = Tasks::new();
    let [backing, root] = ["backing", "data"].map(|name| tasks.sandbox.path(name));
    [&backing, &root].into_iter().for_each(|path| std::fs::create_dir(path).unwrap());
    tree::many(&backing.join("old"), 10, 10);
    let Ok(storage) = FaultFs::mount(&backing, &root, Features::default()) else { return };
    let mut order = tasks.order("one", TaskKind::Delete, vec![PairOrder::new(tasks.local("data", "old"), None)]);
    order.ceilings.deletions = Some(12);
    storage.hold("f000003", Call::Unlink);
    tasks.start(&order);
    tasks.follow_until("one", "it deletes", || storage.held() == 1);
    signal(tasks.process("one"), "KILL");
    storage.release();
    assert!(tasks.follow("one", |_| false).end.is_none());
    // With the directory that was named.
    let left = tree::walk(&backing.join("old")).len() as u64 + 1;
    assert!((3..=12).contains(&left), "{left}");
    for (fence, allowed) in [(2, 12 + left - 1), (3, 12 + left)] {
        (order.fence, order.ceilings.deletions) = (fence, Some(allowed));
        let end = tasks.run(&order).ended().clone();
        assert_eq!(end.progress.items_lost, 12);
        let why = end.failure.map_or_else(String::new, |failure| failure.why);
        let refused = format!(
            "{left} items would be deleted, and the token that submitted the task has {} left; 12 others",
            left - 1
        );
        assert_eq!((why.contains(&refused), backing.join("old").exists()), (fence == 2, fence == 2), "{why}");
    }
}

#[test]
fn worker_takes_no_more_than_a_token_has_left_by_all_pairs_of_a_task() {
    let mut tasks = Tasks::new();
    for name in ["one", "two"] {
        tasks.sandbox.write(format!("from/{name}"), tree::bytes(1000, 1));
    }
    let pairs =
        |tasks: &Tasks| ["one", "two"].map(|name| pair(tasks.local("from", name), tasks.local("to", "/"))).into();
    let mut order = tasks.order("less", TaskKind::Copy, pairs(&tasks));
    order.ceilings.bytes = Some(1999);
    let end = tasks.run(&order).ended().clone();
    assert!(end.failure.unwrap().why.contains("more than the 1999 bytes that the token"));
    assert!(tasks.sandbox.path("to/one").exists() && !tasks.sandbox.path("to/two").exists());
    // A move deletes: nothing is copied where that is not allowed.
    let mut order = tasks.order("move", TaskKind::Move, pairs(&tasks));
    order.ceilings.deletions = Some(0);
    let end = tasks.run(&order).ended().clone();
    assert!(end.failure.unwrap().why.contains("more than the 0 deletions that the token"));
    assert!(tasks.sandbox.path("from/one").exists() && !tasks.sandbox.path("to/two").exists());
    order = tasks.order("enough", TaskKind::Move, pairs(&tasks));
    (order.ceilings.deletions, order.ceilings.bytes) = (Some(2), Some(2000));
    assert_eq!(tasks.run(&order).done().progress.items_done, 2);
    assert!(!tasks.sandbox.path("from/two").exists() && tasks.sandbox.path("to/two").exists());
}

#[test]
fn worker_fails_items_alone_and_a_later_attempt_copies_only_those() {
    let mut tasks = Tasks::new();
    tree::many(&tasks.sandbox.path("from/run"), 20, 3000);
    let wrong = tasks.sandbox.write("from/run/wrong", "not what was expected");
    let right = b3sum(&tasks.sandbox.write("from/run/right", "as expected"));
    // Large enough to travel in blocks; and what stands at the name stays.
    tasks.sandbox.write("from/run/large", tree::bytes(3 * MIB, 8));
    tasks.sandbox.write("to/run/large", "before");
    tasks.sandbox.write("to/run/wrong", "before");
    let ends = vec![
        pair(tasks.local("from", "gone"), tasks.local("to", "/")),
        pair(tasks.local("from", "run"), tasks.local("to", "/")),
    ];
    let mut order = tasks.order("one", TaskKind::Copy, ends);
    let later = b3sum(&tasks.sandbox.write("later", "expected"));
    order.expect_digests.insert("run/wrong".into(), later.to_uppercase());
    order.expect_digests.insert("run/large".into(), later.clone());
    order.expect_digests.insert("run/right".into(), right.clone());
    let end = tasks.run(&order).ended().clone();
    assert_eq!((end.kind, end.progress.items_done, end.progress.items_failed), (EndKind::Done, 21, 3));
    let failed: Vec<_> = tasks.items("one").into_iter().filter(|item| item.state == ItemState::Failed).collect();
    let codes: Vec<_> = failed.iter().map(|item| (item.pair, &*item.failure.as_ref().unwrap().code)).collect();
    assert_eq!(codes, [(0, "not-found"), (1, "digest-mismatch"), (1, "digest-mismatch")]);
    for name in ["to/run/large", "to/run/wrong"] {
        assert_eq!(std::fs::read(tasks.sandbox.path(name)).unwrap(), b"before", "{name} has the right name");
    }
    let left = tree::walk(&tasks.sandbox.path("to"));
    assert!(!left.iter().any(|path| path.to_string_lossy().contains(".part")), "{left:?}");
    tasks.sandbox.write("from/run/large", "expected");

    std::fs::write(&wrong, "expected").unwrap();
    tasks.sandbox.write("from/gone", "back");
    let touched = tasks.sandbox.path("to/run/right");
    std::fs::remove_file(&touched).unwrap();
    order.fence = 2;
    let end = tasks.run(&order).done().clone();
    assert_eq!((end.progress.items_done, end.progress.items_total), (24, 24));
    // What was done and is not there any more is done again.
    assert!(touched.exists());
    assert_eq!(tasks.paths("one", ItemState::Failed), Vec::<String>::new());
    assert_eq!(std::fs::read(tasks.sandbox.path("to/run/wrong")).unwrap(), b"expected");
    assert_eq!(std::fs::read(tasks.sandbox.path("to/gone")).unwrap(), b"back");
}

#[test]
fn worker_never_takes_an_absent_digest_for_the_expected_one() {
    let mut tasks = Tasks::new();
    tasks.sandbox.write("from/a", "a");
    tasks.sandbox.write("to/a", "older");
    let mut order = tasks.order("one", TaskKind::Copy, vec![pair(tasks.local("from", "a"), tasks.local("to", "/"))]);
    // A file that is kept is not read, so nobody knows its digest.
    order.options.existing = Some(Existing::Keep);
    order.expect_digests.insert("a".into(), b3sum(&tasks.sandbox.path("from/a")));
    order.expect_digests.insert("b".into(), String::new());
    let end = tasks.run(&order).ended().clone();
    assert_eq!((end.kind, end.progress.items_done), (EndKind::Done, 0));
    assert_eq!(tasks.paths("one", ItemState::Failed), ["a", "b"]);
}

#[test]
fn worker_skips_missing_sources_where_that_is_asked_for() {
    let mut tasks = Tasks::new();
    tasks.sandbox.write("from/a", "a");
    let ends = ["gone", "a"].map(|name| pair(tasks.local("from", name), tasks.local("to", "/")));
    let mut order = tasks.order("one", TaskKind::Copy, ends.to_vec());
    order.skip_source_errors = true;
    let progress = tasks.run(&order).done().progress.clone();
    assert_eq!((progress.items_done, progress.items_skipped), (1, 1));
    assert_eq!(tasks.items("one")[0].failure.as_ref().unwrap().code, "not-found");
}

#[test]
fn worker_ends_at_ceilings_and_deadlines_and_writes_to_nothing_read_only() {
    let mut tasks = Tasks::new();
    tree::many(&tasks.sandbox.path("from/run"), 20, 1000);
    let ends = |tasks: &Tasks| vec![pair(tasks.local("from", "run"), tasks.local("to", "/"))];
    let mut order = tasks.order("entries", TaskKind::Copy, ends(&tasks));
    order.ceilings.entries = Some(19);
    let end = tasks.run(&order).ended().clone();
    let failure = end.failure.unwrap();
    assert!(end.kind == EndKind::Failed && !failure.retryable && failure.why.contains("19 items"), "{failure:?}");

    let mut order = tasks.order("late", TaskKind::Copy, ends(&tasks));
    order.deadline = Some(Moment(0));
    let end = tasks.run(&order).ended().clone();
    let failure = end.failure.unwrap();
    assert_eq!((end.kind, &*failure.code, failure.retryable), (EndKind::Failed, "deadline-passed", false));

    let mut order = tasks.order("fixed", TaskKind::Copy, ends(&tasks));
    order.pairs[0].destination.as_mut().unwrap().read_only = true;
    let failure = tasks.run(&order).ended().failure.clone().unwrap();
    assert_eq!(&*failure.code, "node-read-only");
    assert_eq!(tree::walk(&tasks.sandbox.path("to")).iter().filter(|path| path.is_file()).count(), 0);
}

#[test]
fn worker_that_cannot_reach_a_host_leaves_the_other_pairs_alone() {
    let mut tasks = Tasks::new();
    let mut node = Node::start(&tasks.sandbox, "far", &[]);
    tasks.sandbox.write("far/x", "x");
    tasks.sandbox.write("from/a", "a");
    let ends =
        vec![pair(node.end("x"), tasks.local("to", "/")), pair(tasks.local("from", "a"), tasks.local("to", "/"))];
    node.kill();
    let mut order = tasks.order("one", TaskKind::Copy, ends);
    let end = tasks.run(&order).ended().clone();
    let failure = end.failure.unwrap();
    assert_eq!((end.kind, &*failure.code, failure.retryable), (EndKind::Failed, "connect-failed", true));
    assert_eq!((end.progress.items_done, end.got_somewhere), (1, true));
    assert_eq!(tasks.paths("one", ItemState::Failed), Vec::<String>::new());
    node.restart(&tasks.sandbox);
    std::fs::remove_file(tasks.sandbox.path("to/a")).unwrap();
    order.fence = 2;
    assert_eq!(tasks.run(&order).done().progress.items_done, 2);
    assert!(tasks.sandbox.path("to/x").exists() && tasks.sandbox.path("to/a").exists());
}

#[test]
fn worker_that_cannot_connect_keeps_what_earlier_attempts_have_told() {
    let mut tasks = Tasks::new();
    let from = Node::start(&tasks.sandbox, "from", &[]);
    tree::many(&tasks.sandbox.path("from/run"), 300, 100_000);
    let mut order = tasks.order("one", TaskKind::Copy, vec![pair(from.end("run"), tasks.local("to", "/"))]);
    order.options.rate_limit = Some(RateBound::new(2 << 20));
    tasks.start(&order);
    tasks.follow_until_moved("one", 4 << 20);
    signal(tasks.process("one"), "TERM");
    let before = tasks.follow("one", |_| false).ended().progress.clone();
    assert!(before.items_done > 0 && before.bytes_moved >= 4 << 20, "{before:?}");
    let is_kept = |end: &AttemptEnd| {
        let now = &end.progress;
        assert!(now.items_done >= before.items_done && now.bytes_moved >= before.bytes_moved, "{now:?}: {before:?}");
        assert!(!end.got_somewhere, "{end:?}");
        end.failure.clone().unwrap().code
    };
    // Another node has its place, which no attempt can help; then none is there.
    let Location::Node { node, .. } = &mut order.pairs[0].source.location else { panic!() };
    let real = node.pin.replace([0; 32]);
    order.fence = 2;
    assert_eq!(is_kept(tasks.run(&order).ended()), "key-mismatch");
    let Location::Node { node, .. } = &mut order.pairs[0].source.location else { panic!() };
    node.pin = real;
    drop(from);
    order.fence = 3;
    assert_eq!(is_kept(tasks.run(&order).ended()), "connect-failed");
}

/// What the archive has already, by content, is not sent once more, and goes at the instrument. What is younger, what
/// differs and what was not compared stays.
#[test]
fn worker_moves_what_is_old_enough_and_proved_to_be_in_the_archive() {
    let mut tasks = Tasks::new();
    for name in ["archived", "differs", "not there", "young"] {
        tasks.sandbox.write(format!("from/{name}"), format!("{name} of the source"));
    }
    tasks.sandbox.ok(["sync", "from/archived", "from/differs", "to/"]);
    tasks.sandbox.write("to/differs", "differs of the elder!");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(40 * 86_400);
    for place in ["from/archived", "from/differs", "from/not there", "to/archived", "to/differs"] {
        std::fs::File::options().write(true).open(tasks.sandbox.path(place)).unwrap().set_modified(old).unwrap();
    }
    let mut order =
        tasks.order("by time", TaskKind::Move, vec![pair(tasks.local("from", "/"), tasks.local("to", "/"))]);
    order.options.min_age = Some(OptionValue::parse("30d").unwrap());
    order.options.compare = Some(Compare::SizeAndTime);
    order.options.only = Some(vec!["archived".into()]);
    let end = tasks.run(&order).done().clone();
    assert_eq!((end.progress.items_done, end.progress.items_skipped), (0, 1), "{end:?}");
    assert!(tasks.sandbox.path("from/archived").exists(), "by its time alone it is not proved");
    order.task = "by content".into();
    order.directory = tasks.directory("by content");
    order.options.compare = Some(Compare::Content);
    order.options.only = None;
    let end = tasks.run(&order).done().clone();
    let Progress { items_done, items_skipped, bytes_moved, bytes_verified, bytes_skipped, .. } = end.progress;
    assert_eq!((items_done, items_skipped), (3, 0), "{:?}", end.progress);
    assert_eq!((bytes_moved, bytes_verified, bytes_skipped), (66, 66, 0), "{:?}", end.progress);
    let left: Vec<_> = tree::walk(&tasks.sandbox.path("from"));
    assert_eq!(left, [tasks.sandbox.path("from/young")]);
    assert_eq!(std::fs::read(tasks.sandbox.path("to/differs")).unwrap(), b"differs of the source");
    assert!(!tasks.sandbox.path("to/young").exists());
}
