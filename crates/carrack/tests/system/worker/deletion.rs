//! Tasks that make their destination like their source: what they delete there, and when nothing.

use carrack_core::options::{FilterLines, OptionValue};
use carrack_service::journal::{AttemptEnd, EndKind};
use carrack_service::model::{ItemState, TaskKind};
use carrack_service::worker::Order;

use crate::support::node::Node;
use crate::support::tasks::{Tasks, pair};

/// What a directory of the sandbox has, sorted.
fn names(tasks: &Tasks, directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(tasks.sandbox.path(directory)).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A task over what is in `from`, that deletes what is in `to` alone.
fn order(tasks: &Tasks, name: &str) -> Order {
    let mut order = tasks.order(name, TaskKind::Copy, vec![pair(tasks.local("from", "/"), tasks.local("to", "/"))]);
    order.options.delete = true;
    order
}

fn whole(end: &AttemptEnd) -> (EndKind, u64, u64) {
    (end.kind, end.progress.items_deleted, end.progress.items_failed)
}

#[test]
fn worker_deletes_what_only_the_destination_has_and_no_rule_keeps() {
    let mut tasks = Tasks::new();
    let to = Node::start(&tasks.sandbox, "there", &[]);
    for name in ["same", "changed", "new", "left.log"] {
        tasks.sandbox.write(format!("from/{name}"), "of the source");
    }
    tasks.sandbox.ok(["sync", "from/same", "to/"]);
    tasks.sandbox.ok(["sync", "from/same", "there/"]);
    for (number, place) in ["to", "there"].into_iter().enumerate() {
        for name in ["changed", "only/deep", "kept.log"] {
            tasks.sandbox.write(format!("{place}/{name}"), "old");
        }
        let mut order = order(&tasks, &format!("task{number}"));
        if place == "there" {
            order.pairs = vec![pair(tasks.local("from", "/"), to.end("/"))];
        }
        order.options.filters = Some(FilterLines::parse("# logs stay where they are\n- *.log").unwrap());
        let end = tasks.run(&order).done().clone();
        assert_eq!(whole(&end), (EndKind::Done, 2, 0));
        assert_eq!(
            (end.progress.items_done, end.progress.items_skipped),
            (2, 1),
            "the same in size and time is not sent"
        );
        assert_eq!(tasks.paths(&order.task, ItemState::Deleted), ["only", "only/deep"]);
        assert_eq!(names(&tasks, place), ["changed", "kept.log", "new", "same"]);
    }
}

/// An item that failed keeps everything. When it has been mended, the task deletes.
#[test]
fn worker_deletes_nothing_after_a_failure_and_what_was_to_go_when_that_has_passed() {
    let mut tasks = Tasks::new();
    tasks.sandbox.write("from/file", "content");
    tasks.sandbox.write("to/file/in the way", "a directory");
    tasks.sandbox.write("to/only", "old");
    let mut order = order(&tasks, "one");
    let end = tasks.run(&order).ended().clone();
    assert_eq!(whole(&end), (EndKind::Done, 0, 2), "{end:?}");
    assert_eq!(tasks.paths("one", ItemState::Failed), ["", "file"]);
    assert_eq!(names(&tasks, "to"), ["file", "only"]);
    std::fs::remove_dir_all(tasks.sandbox.path("to/file")).unwrap();
    order.fence = 2;
    let end = tasks.run(&order).ended().clone();
    assert_eq!(whole(&end), (EndKind::Done, 1, 0), "{end:?}");
    assert_eq!(names(&tasks, "to"), ["file"]);
}

/// There was nothing to delete when the item failed, and there is when it has been mended. No later attempt looks for
/// what was deleted.
#[test]
fn worker_deletes_also_in_the_pass_that_mends_what_failed() {
    let mut tasks = Tasks::new();
    for name in ["file", "other"] {
        tasks.sandbox.write(format!("from/{name}"), "content");
    }
    tasks.sandbox.write("to/file/in the way", "a directory");
    let mut order = order(&tasks, "one");
    let end = tasks.run(&order).ended().clone();
    assert_eq!(whole(&end), (EndKind::Done, 0, 1), "{end:?}");
    assert_eq!(tasks.paths("one", ItemState::Failed), ["file"]);
    std::fs::remove_dir_all(tasks.sandbox.path("to/file")).unwrap();
    tasks.sandbox.write("to/later", "old");
    for fence in [2, 3] {
        order.fence = fence;
        let end = tasks.run(&order).done().clone();
        assert_eq!(whole(&end), (EndKind::Done, 1, 0), "{end:?}");
        assert_eq!((end.progress.items_total, end.progress.items_lost), (2, 0), "{end:?}");
        assert_eq!(tasks.paths("one", ItemState::Deleted), ["later"]);
        assert_eq!(names(&tasks, "to"), ["file", "other"]);
    }
}

#[test]
fn worker_keeps_all_beside_an_empty_source_and_beyond_a_limit() {
    let mut tasks = Tasks::new();
    std::fs::create_dir(tasks.sandbox.path("from")).unwrap();
    for name in ["a", "b"] {
        tasks.sandbox.write(format!("to/{name}"), "old");
    }
    let refused = |tasks: &mut Tasks, order: &Order, words: &str| {
        let end = tasks.run(order).ended().clone();
        assert_eq!(end.progress.items_deleted, 0);
        let failed = tasks.items(&order.task).into_iter().find_map(|item| item.failure);
        let why = failed.or(end.failure).unwrap_or_else(|| panic!("{words}: nothing failed"));
        assert!(why.why.contains(words) && !why.retryable, "{why:?}");
        assert_eq!(names(tasks, "to"), ["a", "b"]);
    };
    let mut empty = order(&tasks, "empty");
    refused(&mut tasks, &empty, "the source is empty");
    tasks.sandbox.write("from/new", "new");
    let mut limited = order(&tasks, "limited");
    limited.options.max_delete = Some(OptionValue::parse("1").unwrap());
    let end = tasks.run(&limited).ended().clone();
    assert_eq!(whole(&end), (EndKind::Done, 0, 1), "{end:?}");
    std::fs::remove_file(tasks.sandbox.path("to/new")).unwrap();
    let mut counted = order(&tasks, "counted");
    counted.ceilings.deletions = Some(1);
    refused(&mut tasks, &counted, "1 deletions left");
    // Nothing of it was copied, either.
    assert_eq!(names(&tasks, "to"), ["a", "b"]);
    std::fs::remove_file(tasks.sandbox.path("from/new")).unwrap();
    (empty.fence, empty.options.allow_empty) = (2, true);
    assert_eq!(tasks.run(&empty).done().progress.items_deleted, 2);
    assert_eq!(names(&tasks, "to"), Vec::<String>::new());
}
