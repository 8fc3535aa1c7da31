//! Tasks that make their destination like their source: what they delete there, and when nothing.

use carrack_core::options::{FilterLines, OptionValue};
use carrack_service::journal::{AttemptEnd, EndKind};
use carrack_service::model::{ItemState, RunGuard, TaskKind, TaskPlan};
use carrack_service::worker::Order;
use serde_json::json;

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

/// What somebody has confirmed of a task, as the service keeps it.
fn confirm(tasks: &Tasks, task: &str, deletions: u64, file_system: Option<&str>) {
    let confirmed = json!({ "deletions": deletions, "file_system": file_system });
    std::fs::write(tasks.directory(task).join("confirmed"), confirmed.to_string()).unwrap();
}

fn plan(end: &AttemptEnd) -> &TaskPlan {
    end.progress.plan.as_ref().unwrap_or_else(|| panic!("no plan: {end:?}"))
}

/// A run of a timer whose source stands elsewhere copies and deletes nothing, and tells what it would delete. Once
/// confirmed, it is done as it was shown, and no more than that.
#[test]
fn worker_is_held_where_a_source_stands_on_another_file_system_and_does_once_what_is_confirmed() {
    let mut tasks = Tasks::new();
    tasks.sandbox.write("from/new", "new");
    for name in ["a", "b"] {
        tasks.sandbox.write(format!("to/{name}"), "old");
    }
    let mut order = order(&tasks, "one");
    order.guard = Some(RunGuard { file_system: Some("another".into()), items: Some(2) });
    let end = tasks.run(&order).ended().clone();
    assert_eq!((end.kind, end.progress.items_deleted, plan(&end).to_delete.items), (EndKind::Held, 0, 2), "{end:?}");
    let why = &end.failure.as_ref().unwrap().why;
    assert!(why.contains("another file system") && why.contains("mounted"), "{why}");
    assert_eq!(names(&tasks, "to"), ["a", "b"], "nothing was copied, either");
    assert_eq!(tasks.paths("one", ItemState::ToDelete), ["a", "b"]);
    let found = end.progress.source_file_system.clone().unwrap();
    // Confirmed of another one than it is now: held again.
    confirm(&tasks, "one", 2, Some("a third"));
    order.fence = 2;
    assert_eq!(tasks.run(&order).ended().kind, EndKind::Held);
    assert!(!tasks.directory("one").join("confirmed").exists(), "it is used up");
    assert_eq!(tasks.paths("one", ItemState::ToDelete), ["a", "b"], "told once");
    // More is there than was shown.
    confirm(&tasks, "one", 2, Some(&found));
    tasks.sandbox.write("to/c", "old");
    order.fence = 3;
    let end = tasks.run(&order).ended().clone();
    assert_eq!((end.kind, end.progress.items_deleted, plan(&end).to_delete.items), (EndKind::Held, 0, 3), "{end:?}");
    confirm(&tasks, "one", 3, Some(&found));
    order.fence = 4;
    let end = tasks.run(&order).done().clone();
    assert_eq!((end.progress.items_deleted, end.progress.plan), (3, None));
    assert_eq!(names(&tasks, "to"), ["new"]);
    assert_eq!(tasks.paths("one", ItemState::Deleted), ["a", "b", "c"]);
    assert_eq!(tasks.paths("one", ItemState::ToDelete), [""; 0]);
}

/// More than a share of what the destination had is not deleted. The run of a timer waits for somebody; another task
/// ends, and says so.
#[test]
fn worker_deletes_no_more_than_a_share_of_what_was_there() {
    let mut tasks = Tasks::new();
    for name in ["same", "new", "new too"] {
        tasks.sandbox.write(format!("from/{name}"), "of the source");
    }
    tasks.sandbox.ok(["sync", "from/same", "to/"]);
    for name in ["a", "b"] {
        tasks.sandbox.write(format!("to/{name}"), "old");
    }
    let mut order = order(&tasks, "plain");
    order.options.max_delete = Some(OptionValue::parse("50%").unwrap());
    let end = tasks.run(&order).ended().clone();
    assert_eq!(whole(&end), (EndKind::Done, 0, 1), "{end:?}");
    let held_by = plan(&end).held_by.clone().unwrap();
    assert!(held_by.contains("2 of 3 items") && held_by.contains("50 %"), "{held_by}");
    // A later attempt finds more that both have: by the last run's items it still is too much.
    order.task = "timed".into();
    order.directory = tasks.directory("timed");
    order.guard = Some(RunGuard { file_system: None, items: Some(3) });
    order.fence = 2;
    let end = tasks.run(&order).ended().clone();
    assert_eq!((end.kind, end.progress.items_deleted), (EndKind::Held, 0), "{end:?}");
    let why = &end.failure.as_ref().unwrap().why;
    assert!(why.contains("2 items would be deleted") && why.contains("had 3 items"), "{why}");
    assert_eq!(names(&tasks, "to"), ["a", "b", "new", "new too", "same"]);
    confirm(&tasks, "timed", 2, None);
    order.fence = 3;
    assert_eq!(tasks.run(&order).done().progress.items_deleted, 2);
    assert_eq!(names(&tasks, "to"), ["new", "new too", "same"]);
    // An empty source holds a run, too, and is meant so where that is confirmed.
    for name in ["same", "new", "new too"] {
        std::fs::remove_file(tasks.sandbox.path(format!("from/{name}"))).unwrap();
    }
    order.task = "empty".into();
    order.directory = tasks.directory("empty");
    order.fence = 1;
    assert_eq!(tasks.run(&order).ended().kind, EndKind::Held);
    confirm(&tasks, "empty", 3, None);
    order.fence = 2;
    assert_eq!(tasks.run(&order).done().progress.items_deleted, 3);
    assert_eq!(names(&tasks, "to"), [""; 0]);
}

/// A preview of any copy tells what is new, changed, the same and to be deleted, and changes nothing; the next attempt
/// tells it anew.
#[test]
fn worker_previews_a_copy_and_changes_nothing() {
    let mut tasks = Tasks::new();
    let from = Node::start(&tasks.sandbox, "from", &[]);
    for name in ["same", "changed", "new"] {
        tasks.sandbox.write(format!("from/{name}"), "of the source");
    }
    tasks.sandbox.ok(["sync", "from/same", "to/"]);
    for name in ["changed", "only/deep"] {
        tasks.sandbox.write(format!("to/{name}"), "old");
    }
    let before = crate::support::tree::walk(&tasks.sandbox.path("to"));
    for (name, delete, source) in [("a", true, tasks.local("from", "/")), ("b", false, from.end("/"))] {
        let mut order = order(&tasks, name);
        order.pairs = vec![pair(source, tasks.local("to", "/"))];
        (order.preview, order.options.delete) = (true, delete);
        for fence in [1, 2] {
            order.fence = fence;
            let end = tasks.run(&order).done().clone();
            let plan = plan(&end);
            let counted = [plan.new, plan.changed, plan.same, plan.to_delete].map(|planned| planned.items);
            // A plain copy sends what is the same, too.
            assert_eq!(counted, if delete { [1, 1, 1, 2] } else { [1, 2, 0, 0] }, "{name} {fence}: {plan:?}");
            assert_eq!((end.progress.items_done, end.progress.bytes_moved, &plan.held_by), (0, 0, &None));
            let planned = if delete { vec!["changed", "new"] } else { vec!["changed", "new", "same"] };
            assert_eq!(tasks.paths(name, ItemState::Planned), planned, "{name} {fence}");
            let to_delete = if delete { vec!["only", "only/deep"] } else { Vec::new() };
            assert_eq!(tasks.paths(name, ItemState::ToDelete), to_delete, "{name} {fence}");
        }
    }
    assert_eq!(crate::support::tree::walk(&tasks.sandbox.path("to")), before);
    assert_eq!(std::fs::read(tasks.sandbox.path("to/changed")).unwrap(), b"old");
}
