//! What a later attempt counts as done: only what is at the place that its order names, now.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use carrack_core::options::RateBound;
use carrack_service::clock::Moment;
use carrack_service::journal::{EndKind, Record};
use carrack_service::model::{Ceilings, EventKind, ItemState, TaskKind};
use carrack_service::worker::{Order, Secret};

use crate::support::node::Node;
use crate::support::process;
use crate::support::tasks::{Attempt, Tasks, pair};
use crate::support::{same_tree, tree};

const MIB: usize = 1 << 20;

fn set_time_of(file: &fs::File, like: &fs::Metadata) {
    file.set_times(fs::FileTimes::new().set_modified(like.modified().unwrap())).unwrap();
}

/// A tree of small files and a missing one, copied as far as it goes.
fn partly_done(tasks: &mut Tasks) -> Order {
    tree::many(&tasks.sandbox.path("from/run"), 30, 2000);
    let ends = ["run", "late"].map(|name| pair(tasks.local("from", name), tasks.local("to", "/"))).to_vec();
    let order = tasks.order("one", TaskKind::Copy, ends);
    let end = tasks.run(&order).ended().clone();
    assert_eq!((end.kind, end.progress.items_done, end.progress.items_failed), (EndKind::Done, 30, 1));
    tasks.sandbox.write("from/late", "there by now");
    Order { fence: 2, ..order }
}

fn note(attempt: &Attempt, what: &str) -> serde_json::Value {
    let found = attempt.records.iter().find_map(|record| match record {
        Record::Event { kind: EventKind::Note, text, detail, .. } if text.contains(what) => Some(detail.clone()),
        _ => None,
    });
    serde_json::from_str(&found.unwrap_or_else(|| panic!("no note has {what:?}: {:?}", attempt.records))).unwrap()
}

#[test]
fn retry_copies_again_what_was_deleted_or_altered_since() {
    let mut tasks = Tasks::new();
    let order = partly_done(&mut tasks);
    let token_allows = |items: u64, fence| {
        let ceilings = Ceilings { entries: Some(items), bytes: Some(items * 2000), ..Ceilings::default() };
        Order { fence, ceilings, ..order.clone() }
    };
    let files: Vec<_> = tree::walk(&tasks.sandbox.path("to/run")).into_iter().filter(|path| path.is_file()).collect();
    fs::remove_file(&files[0]).unwrap();
    // Of the same size, and of a time that is told apart by its whole seconds alone.
    let before = fs::metadata(&files[1]).unwrap().modified().unwrap();
    fs::write(&files[1], vec![b'x'; 2000]).unwrap();
    let altered = fs::File::options().write(true).open(&files[1]).unwrap();
    altered.set_times(fs::FileTimes::new().set_modified(before + Duration::from_secs(1))).unwrap();
    let untouched = fs::metadata(&files[2]).unwrap();
    // What is copied again counts again.
    let attempt = tasks.run(&token_allows(31 + 1, 2));
    let refused = attempt.ended().clone();
    assert!(refused.failure.unwrap().why.contains("more than the 32 items that the token"));
    assert_eq!((refused.progress.items_lost, refused.progress.bytes_lost), (2, 4000));
    let told = note(&attempt, "copied again");
    assert_eq!((&told["there"], &told["lost"]), (&28.into(), &2.into()));
    let attempt = tasks.run(&token_allows(31 + 2, 3));
    let progress = &attempt.done().progress;
    assert_eq!((progress.items_done, progress.items_total, progress.items_remembered), (31, 31, 0));
    assert_eq!((progress.items_lost, progress.bytes_lost), (2, 4000));
    assert_eq!(note(&attempt, "are at the destination")["there"], 28);
    same_tree(&tasks.sandbox.path("from/run"), &tasks.sandbox.path("to/run"));
    // What is there is not copied again, and each item is told once.
    assert_eq!(fs::metadata(&files[2]).unwrap().ino(), untouched.ino());
    let paths = tasks.paths("one", ItemState::Done);
    assert!(paths.len() == 31 && paths.is_sorted_by(|one, next| one < next), "{paths:?}");
    // Another attempt finds all of it.
    let again = tasks.run(&Order { fence: 4, ..order });
    assert_eq!(note(&again, "are at the destination")["there"], 30);
    assert_eq!(tasks.paths("one", ItemState::Done).len(), 31);
}

#[test]
fn retry_of_a_source_that_has_changed_tells_the_item_as_it_is_now() {
    let mut tasks = Tasks::new();
    let order = partly_done(&mut tasks);
    let changed = tasks.sandbox.path("from/run/d000/f000003");
    fs::write(&changed, "shorter").unwrap();
    fs::remove_file(tasks.sandbox.path("to/run/d000/f000003")).unwrap();
    tasks.run(&order).done();
    let items = tasks.items("one");
    let told: Vec<_> = items.iter().filter(|item| item.path == b"run/d000/f000003").map(|item| item.size).collect();
    assert_eq!(told, [7]);
    same_tree(&tasks.sandbox.path("from/run"), &tasks.sandbox.path("to/run"));
}

#[test]
fn retry_says_how_many_items_are_only_remembered_and_digests_find_what_times_hide() {
    let mut tasks = Tasks::new();
    let order = partly_done(&mut tasks);
    let hidden = tasks.sandbox.path("to/run/d000/f000001");
    let before = fs::metadata(&hidden).unwrap();
    fs::write(&hidden, vec![b'x'; 2000]).unwrap();
    set_time_of(&fs::File::options().write(true).open(&hidden).unwrap(), &before);
    // Sources that are gone cannot be compared with.
    let gone = tasks.sandbox.path("from/run/d000/f000002");
    fs::remove_file(&gone).unwrap();
    let attempt = tasks.run(&order);
    assert_eq!(attempt.done().progress.items_remembered, 1);
    assert_eq!(note(&attempt, "only remembered")["remembered"], 1);
    assert_eq!(fs::read(&hidden).unwrap(), vec![b'x'; 2000]);
    // A copy that is gone with its source cannot be made again, and is not called done.
    fs::write(tasks.directory("one").join("recheck"), "").unwrap();
    let attempt = tasks.run(&Order { fence: 3, ..order.clone() });
    assert_eq!(attempt.done().progress.items_remembered, 0);
    let from = tasks.sandbox.path("from/run/d000/f000001");
    assert_eq!(fs::read(&hidden).unwrap(), fs::read(from).unwrap());
    assert!(!tasks.directory("one").join("recheck").exists());
    fs::remove_file(tasks.sandbox.path("to/run/d000/f000002")).unwrap();
    let end = tasks.run(&Order { fence: 4, ..order }).ended().clone();
    assert_eq!((end.progress.items_done, end.progress.items_failed), (30, 1));
    assert_eq!(tasks.paths("one", ItemState::Failed), ["run/d000/f000002"]);
    assert!(!tasks.paths("one", ItemState::Done).contains(&"run/d000/f000002".into()));
}

#[test]
fn pair_that_leads_elsewhere_is_copied_anew() {
    let mut tasks = Tasks::new();
    let mut order = partly_done(&mut tasks);
    // The endpoint of the destination has another root by now: nothing of what was done is there.
    for pair in &mut order.pairs {
        pair.destination = Some(tasks.local("moved", "/"));
    }
    let attempt = tasks.run(&order);
    let progress = &attempt.done().progress;
    assert_eq!((progress.items_done, progress.items_total, progress.items_lost), (31, 31, 30));
    note(&attempt, "leads elsewhere");
    same_tree(&tasks.sandbox.path("from"), &tasks.sandbox.path("moved"));
    assert_eq!(tasks.paths("one", ItemState::Done).len(), 31);
    // The source leads elsewhere, too, where other files are; what was told of the first counts no more.
    tree::many(&tasks.sandbox.path("other/run"), 5, 100);
    tasks.sandbox.write("other/late", "another");
    for (pair, name) in order.pairs.iter_mut().zip(["run", "late"]) {
        (pair.source, pair.destination) = (tasks.local("other", name), Some(tasks.local("third", "/")));
    }
    order.fence = 3;
    let progress = tasks.run(&order).done().progress.clone();
    assert_eq!((progress.items_done, progress.items_lost, progress.bytes_lost), (6, 30 + 31, 2 * 30 * 2000 + 12));
    same_tree(&tasks.sandbox.path("other"), &tasks.sandbox.path("third"));
    assert_eq!(tasks.paths("one", ItemState::Done).len(), 6);
    // The same holds where the files of the new source happen to be there.
    for (pair, name) in order.pairs.iter_mut().zip(["run", "late"]) {
        pair.source = tasks.local("from", name);
    }
    order.fence = 4;
    assert_eq!(tasks.run(&order).done().progress.items_done, 31);
    assert_eq!(tasks.paths("one", ItemState::Done).len(), 31);
}

#[test]
fn pair_that_leads_elsewhere_after_a_kill_is_copied_anew() {
    let mut tasks = Tasks::new();
    tree::many(&tasks.sandbox.path("from/run"), 200, 100_000);
    let mut order = tasks.order("one", TaskKind::Copy, vec![pair(tasks.local("from", "run"), tasks.local("to", "/"))]);
    order.options.rate_limit = Some(RateBound::new(4 * MIB as u64));
    tasks.start(&order);
    tasks.follow_until_moved("one", 4 * MIB as u64);
    process::signal(tasks.process("one"), "KILL");
    tasks.follow("one", |_| false);
    order.pairs[0].destination = Some(tasks.local("moved", "/"));
    (order.fence, order.options.rate_limit) = (2, None);
    let attempt = tasks.run(&order);
    let progress = &attempt.done().progress;
    assert_eq!(progress.items_done, 200);
    // What was moved for nothing counts once.
    let again = progress.bytes_lost + progress.bytes_resent;
    assert!((4 * MIB as u64..8 * MIB as u64).contains(&again), "{progress:?}");
    same_tree(&tasks.sandbox.path("from"), &tasks.sandbox.path("moved"));
    assert_eq!(tasks.paths("one", ItemState::Done).len(), 200);
}

/// A copy that takes about twenty seconds.
fn slow(tasks: &mut Tasks) -> Order {
    tasks.sandbox.write("from/large", tree::bytes(20 * MIB, 5));
    let mut order =
        tasks.order("one", TaskKind::Copy, vec![pair(tasks.local("from", "large"), tasks.local("to", "/"))]);
    order.options.rate_limit = Some(RateBound::new(MIB as u64));
    order
}

fn from_now(time: Duration) -> Moment {
    Moment::from(SystemTime::now() + time)
}

#[test]
fn deadline_that_is_changed_while_a_worker_runs_holds_for_it() {
    let mut tasks = Tasks::new();
    let mut order = slow(&mut tasks);
    let far = from_now(Duration::from_secs(3600));
    order.deadline = Some(far);
    tasks.start(&order);
    tasks.follow_until_moved("one", 1);
    // Shorter: it has passed.
    tasks.supervisor.tell_deadline("one", Some(Moment(1))).unwrap();
    let end = tasks.follow("one", |_| false).ended().clone();
    assert_eq!((end.kind, &*end.failure.unwrap().code, end.late), (EndKind::Failed, "deadline-passed", true));
    // A later attempt knows nothing of what was said to the one before.
    (order.fence, order.options.rate_limit) = (2, Some(RateBound::new(4 * MIB as u64)));
    tasks.start(&order);
    tasks.follow_until_moved("one", MIB as u64);
    // Longer, or none: the time that it began with goes by.
    tasks.another_service(|_| {});
    tasks.supervisor.adopt("one", 2);
    tasks.supervisor.tell_deadline("one", None).unwrap();
    tasks.follow("one", |_| false).done();
    assert_eq!(fs::read(tasks.sandbox.path("to/large")).unwrap(), tree::bytes(20 * MIB, 5));
}

#[test]
fn deadline_that_is_put_off_ends_nobody_at_the_old_time() {
    let mut tasks = Tasks::new();
    let mut order = slow(&mut tasks);
    order.options.rate_limit = Some(RateBound::new(3 * MIB as u64));
    let old = from_now(Duration::from_secs(4));
    order.deadline = Some(old);
    tasks.start(&order);
    tasks.supervisor.tell_deadline("one", Some(from_now(Duration::from_secs(3600)))).unwrap();
    let attempt = tasks.follow("one", |_| false);
    attempt.done();
    assert!(attempt.done().time > old, "it has ended before the old deadline, and shows nothing");
}

#[test]
fn token_that_was_replaced_after_a_host_was_reached_makes_any_later_attempt_wait() {
    let mut tasks = Tasks::new();
    let to = Node::start(&tasks.sandbox, "to", &[]);
    tasks.sandbox.write("from/large", tree::bytes(24 * MIB, 7));
    let mut order = tasks.order("one", TaskKind::Copy, vec![pair(tasks.local("from", "large"), to.end("/"))]);
    order.options.rate_limit = Some(RateBound::new(MIB as u64));
    tasks.start(&order);
    // No sample has told of a byte: only that the hosts were reached.
    tasks.follow("one", |record| matches!(record, Record::Reached));
    process::signal(tasks.process("one"), "KILL");
    tasks.follow("one", |_| false);
    if let Some(end) = &mut order.pairs[0].destination {
        end.credentials.token = Some(Secret::new(format!("{}-no-more", Node::TOKEN)));
    }
    for fence in [2, 3] {
        order.fence = fence;
        let failure = tasks.run(&order).ended().failure.clone().unwrap();
        assert_eq!((&*failure.code, failure.retryable), ("authentication-failed", true), "attempt {fence}");
    }
}

#[test]
fn progress_never_goes_back_when_sessions_are_lost() {
    let mut tasks = Tasks::new();
    let mut from = Node::start(&tasks.sandbox, "from", &[]);
    tree::many(&tasks.sandbox.path("from/run"), 200, 100_000);
    let ends = pair(from.end("run"), tasks.local("to", "/"));
    let mut order = tasks.order("one", TaskKind::Copy, vec![ends]);
    order.options.rate_limit = Some(RateBound::new(8 * MIB as u64));
    tasks.start(&order);
    tasks.follow_until_moved("one", 8 * MIB as u64);
    let shown = |attempt: &Attempt| -> Vec<(u64, u64)> {
        let of = |record: &Record| match record {
            Record::Sample(sample) => Some((sample.progress.items_done, sample.progress.bytes_moved)),
            Record::Ended(end) => Some((end.progress.items_done, end.progress.bytes_moved)),
            _ => None,
        };
        attempt.records.iter().filter_map(of).collect()
    };
    from.kill();
    let first = tasks.follow("one", |_| false);
    let mut all = shown(&first);
    assert!(first.ended().failure.as_ref().unwrap().retryable && first.ended().progress.bytes_moved > 0);
    from.restart(&tasks.sandbox);
    (order.fence, order.options.rate_limit) = (2, None);
    let second = tasks.run(&order);
    second.done();
    all.extend(shown(&second));
    assert!(all.is_sorted_by(|one, next| one.0 <= next.0 && one.1 <= next.1), "{all:?}");
}
