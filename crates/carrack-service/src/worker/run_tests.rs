//! Attempts in this process, from directory to directory of this host.

use std::fs;
use std::path::{Path, PathBuf};

use carrack_core::location::Location;
use serde_json::{Value, json};

use super::*;
use crate::journal::{AttemptEnd, ItemFilter, Reader, items};
use crate::worker::EndOrder;

/// One attempt: how it ended.
fn attempt(directory: &Path, fence: u64, kind: &str, pair: (&str, Option<&str>), options: Value) -> AttemptEnd {
    let end = |path: &str| json!({ "location": format!("{}/{path}", directory.display()) });
    let order = json!({
        "task": "t", "fence": fence, "directory": directory.join("task"), "kind": kind,
        "pairs": [{ "source": end(pair.0), "destination": pair.1.map(end) }], "deadline": null,
        "submitted": "2026-11-27T00:00:00Z", "options": options, "skip_source_errors": false,
        "fail_on_quota_errors": false, "expect_digests": {}, "ceilings": {},
    });
    let order: Order = serde_json::from_value(order).unwrap();
    fs::create_dir_all(&order.directory).unwrap();
    let lock = Lock::take(&order.directory).unwrap().unwrap();
    begin(&order, &lock, Context::default(), Reach::default()).unwrap().carry_out();
    let (mut reader, mut ended) = (Reader::open(&order.directory), None);
    while let Some(record) = reader.next_record().unwrap() {
        ended = if let Record::Ended(end) = record { Some(end) } else { ended };
    }
    ended.unwrap()
}

/// Paths below a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names = Vec::new();
    for entry in entries {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name().into_string().unwrap())).unwrap();
        names.extend(self::names(&path).iter().map(|below| format!("{name}/{below}")));
        names.push(name);
    }
    names.sort();
    names
}

#[test]
fn deletion_of_what_was_never_there_fails_as_often_as_it_is_tried() {
    let sandbox = tempfile::tempdir().unwrap();
    let delete = |fence, path: &str| attempt(sandbox.path(), fence, "delete", (path, None), json!({}));
    for fence in 1..=3 {
        let end = delete(fence, "typo");
        assert_eq!(end.failure.map(|why| why.code).as_deref(), Some("not-found"), "attempt {fence}");
        assert_eq!((end.progress.items_done, end.progress.items_failed), (0, 1), "attempt {fence}");
    }
    // Once it is there it is deleted.
    fs::create_dir(sandbox.path().join("typo")).unwrap();
    let end = delete(4, "typo");
    assert_eq!((end.failure, end.progress.items_done), (None, 1));
    assert!(!sandbox.path().join("typo").exists());
}

#[test]
fn deletion_that_was_cut_short_is_done_where_its_place_is_gone() {
    let sandbox = tempfile::tempdir().unwrap();
    let task = sandbox.path().join("task");
    fs::create_dir(&task).unwrap();
    let source = EndOrder::at_location(Location::Local(format!("{}/old", sandbox.path().display()).into_bytes()));
    // As an attempt leaves it that was killed after it had found the place.
    let (history, recovered) = History::read(&task, &|_| false).unwrap();
    assert_eq!(history.fence, 0);
    let mut journal = Writer::open(&recovered).unwrap();
    let began = Record::Began { fence: 1, time: now(), process: 1, program: String::new() };
    let pass = Record::PassBegan { pair: 0, place: PairOrder::new(source, None).place() };
    [began, pass].iter().for_each(|record| journal.append(record).unwrap());
    journal.finish().unwrap();
    drop(journal);
    let end = attempt(sandbox.path(), 2, "delete", ("old", None), json!({}));
    assert_eq!((end.failure, end.progress.items_done), (None, 1));
    let done = items(&task, &ItemFilter::default(), None, 10).unwrap().items;
    assert_eq!(done.iter().map(|item| item.state).collect::<Vec<_>>(), [ItemState::Done]);
}

/// A tree to be moved: `sub/a`, `sub/empty` and `out`, all but the first of them directories.
fn tree(sandbox: &Path) -> [PathBuf; 2] {
    let [from, to] = ["from", "to"].map(|name| sandbox.join(name));
    ["from/sub/empty", "from/out", "to"].iter().for_each(|path| fs::create_dir_all(sandbox.join(path)).unwrap());
    fs::write(from.join("sub/a"), "a").unwrap();
    [from, to]
}

#[test]
fn move_takes_all_directories_along_but_not_those_that_a_rule_leaves_out() {
    let cases = [
        ("from/", json!({}), ["out", "sub", "sub/a", "sub/empty"].as_slice(), [].as_slice()),
        ("from", json!({}), &["from", "from/out", "from/sub", "from/sub/a", "from/sub/empty"], &[]),
        ("from/", json!({ "filters": "- out/" }), &["sub", "sub/a", "sub/empty"], &["out", "sub", "sub/empty"]),
        (
            "from",
            json!({ "filters": "- out/" }),
            &["from", "from/sub", "from/sub/a", "from/sub/empty"],
            &["out", "sub", "sub/empty"],
        ),
        // Whatever else is at the destination.
        (
            "from/",
            json!({ "filters": "- out/\n- old/" }),
            &["old", "sub", "sub/a", "sub/empty"],
            &["old", "out", "sub", "sub/empty"],
        ),
    ];
    for (source, options, there, left) in cases {
        let sandbox = tempfile::tempdir().unwrap();
        let [from, to] = tree(sandbox.path());
        if there.contains(&"old") {
            [&from, &to].iter().for_each(|root| fs::create_dir(root.join("old")).unwrap());
        }
        let end = attempt(sandbox.path(), 1, "move", (source, Some("to/")), options.clone());
        assert_eq!((end.kind, end.failure), (EndKind::Done, None));
        assert_eq!((names(&to), names(&from)), (owned(there), owned(left)), "{source} {options}");
        assert_eq!(from.exists(), source.ends_with('/') || !left.is_empty(), "{source} {options}");
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn move_leaves_directories_that_were_made_after_it_looked() {
    for (source, top) in [("from/", ""), ("from", "from/")] {
        let sandbox = tempfile::tempdir().unwrap();
        let [from, to] = tree(sandbox.path());
        // All is copied, and no source deleted yet.
        attempt(sandbox.path(), 1, "copy", (source, Some("to/")), json!({}));
        fs::create_dir(from.join("sub/late")).unwrap();
        let end = attempt(sandbox.path(), 2, "move", (source, Some("to/")), json!({}));
        assert_eq!((end.kind, end.failure), (EndKind::Done, None));
        assert!(to.join(format!("{top}sub/a")).exists());
        assert_eq!(names(&from), ["out", "sub", "sub/empty", "sub/late"], "{source}");
    }
}

/// Whole seconds prove nothing, and of what was there already the journal has no digest: both sides are read.
#[test]
fn move_of_what_is_there_with_coarser_times_deletes_it_at_its_source() {
    let sandbox = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| sandbox.path().join(name));
    for (top, nanos) in [(&from, 500_000_000), (&to, 0)] {
        fs::create_dir(top).unwrap();
        fs::write(top.join("f"), "content").unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_000, nanos);
        fs::File::options().write(true).open(top.join("f")).unwrap().set_modified(time).unwrap();
    }
    let end = attempt(sandbox.path(), 1, "move", ("from/", Some("to/")), json!({ "compare": "checksum" }));
    assert_eq!((end.kind, end.failure), (EndKind::Done, None));
    assert_eq!((names(&from), names(&to)), (owned(&[]), owned(&["f"])));
}
