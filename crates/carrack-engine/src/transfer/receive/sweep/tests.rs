//! What is deleted, and when nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

use carrack_core::filter::RuleForm;
use carrack_core::request::Durability;
use carrack_sys::dir::{Dir, Links};

use super::*;
use crate::storage::posix::tree::Tree;

/// What a source answers, and how long it is there.
struct Known {
    /// All that it has by now.
    there: &'static [u8],
    asked: Mutex<Vec<Vec<u8>>>,
    /// How often more it says that the transfer goes on.
    patience: AtomicUsize,
}

impl Default for Known {
    fn default() -> Self {
        Self { there: b"", asked: Mutex::default(), patience: AtomicUsize::new(usize::MAX) }
    }
}

impl SourceNow for Known {
    fn still_there(&self, paths: Vec<Vec<u8>>) -> Option<Vec<bool>> {
        let there = paths.iter().map(|path| path == self.there).collect();
        lock(&self.asked).extend(paths);
        Some(there)
    }

    fn is_over(&self) -> bool {
        let left = self.patience.load(Ordering::Relaxed);
        self.patience.store(left.saturating_sub(1), Ordering::Relaxed);
        left == 0
    }
}

/// A transfer that ends meanwhile deletes nothing more.
#[test]
fn deletion_ends_with_its_transfer() {
    let place = tempfile::tempdir().unwrap();
    let root = Dir::open_ambient(place.path()).unwrap();
    let tree = Tree::new(root, false, None, Durability::None, &Arc::default()).unwrap();
    let sweep = Sweep::new(SweepOrder::default(), None, None, None);
    sweep.has(&tree, [(&b"told"[..], false)].into_iter());
    (0..9).for_each(|number| std::fs::write(place.path().join(format!("f{number}")), "x").unwrap());
    sweep.listed(&tree, &[(b"".to_vec(), true)], None);
    sweep.delete(&tree, (0, true), false, &Known { patience: AtomicUsize::new(4), ..Known::default() });
    assert_eq!(sweep.ended().deleted.items, 4);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 5);
}

/// However deep: no level costs anything of the stack, and each directory is empty when its turn comes.
#[test]
fn three_thousand_levels_are_listed_and_deleted_on_a_small_stack() {
    const LEVELS: usize = 3000;
    let place = tempfile::tempdir().unwrap();
    let root = Dir::open_ambient(place.path()).unwrap();
    let deep = vec!["d"; LEVELS].join("/").into_bytes();
    root.make_dir_all(&deep, Links::Refuse).unwrap().create_new(b"file").unwrap();
    let tree = Tree::new(root, false, None, Durability::None, &Arc::default()).unwrap();
    let sweep = Sweep::new(SweepOrder::default(), None, None, None);
    sweep.has(&tree, [(&b"told"[..], false)].into_iter());
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(512 << 10);
        let listing = small.spawn_scoped(scope, || sweep.listed(&tree, &[(b"".to_vec(), true)], None));
        listing.unwrap().join().unwrap();
    });
    sweep.delete(&tree, (0, true), false, &Known::default());
    let SweepEnd { deleted, why, .. } = sweep.ended();
    assert_eq!((deleted.items, why), (LEVELS as u64 + 1, None));
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

/// What no message can name stays, and is the reason why nothing goes.
#[test]
fn directory_deeper_than_a_path_may_be_keeps_everything() {
    let place = tempfile::tempdir().unwrap();
    let root = Dir::open_ambient(place.path()).unwrap();
    let deep = vec!["n".repeat(limits::NAME_BYTES); limits::PATH_BYTES / limits::NAME_BYTES].join("/").into_bytes();
    assert!(deep.len() > limits::PATH_BYTES);
    root.make_dir_all(&deep, Links::Refuse).unwrap();
    std::fs::create_dir(place.path().join("d")).unwrap();
    std::fs::write(place.path().join("d/only"), "x").unwrap();
    let tree = Tree::new(root, false, None, Durability::None, &Arc::default()).unwrap();
    let sweep = Sweep::new(SweepOrder::default(), None, None, None);
    sweep.has(&tree, [(&b"d"[..], false)].into_iter());
    sweep.listed(&tree, &[(b"d".to_vec(), true), (b"".to_vec(), true)], None);
    sweep.delete(&tree, (0, true), false, &Known::default());
    let SweepEnd { deleted, why, .. } = sweep.ended();
    let why = why.map(|why| why.to_string()).unwrap_or_default();
    assert!(deleted.items == 0 && why.contains("deeper than 65535 bytes of path"), "{why}");
    assert!(place.path().join("d/only").exists());
}

/// Rules in a directory that goes hold for nothing beside it.
#[test]
fn rules_below_what_goes_do_not_hold_beside_it() {
    let place = tempfile::tempdir().unwrap();
    let root = Dir::open_ambient(place.path()).unwrap();
    let tree = Tree::new(root, false, None, Durability::None, &Arc::default()).unwrap();
    let mut filters = Filters::new(false);
    filters.add(RuleForm::Rule, b":- .rules").unwrap();
    let sweep = Sweep::new(SweepOrder { filters, ..SweepOrder::default() }, None, None, None);
    sweep.has(&tree, [(&b"told"[..], false)].into_iter());
    for number in 0..8 {
        std::fs::create_dir(place.path().join(format!("d{number}"))).unwrap();
        std::fs::write(place.path().join(format!("d{number}/.rules")), "!\n").unwrap();
        std::fs::write(place.path().join(format!("d{number}.o")), "kept").unwrap();
    }
    std::fs::write(place.path().join(".rules"), "*.o\n.rules\n").unwrap();
    sweep.listed(&tree, &[(b"".to_vec(), true)], None);
    sweep.delete(&tree, (0, true), false, &Known::default());
    assert_eq!(sweep.ended().why, None);
    assert!((0..8).all(|number| place.path().join(format!("d{number}.o")).exists()));
}

/// Names are told before their directory is there, and compared when the transfer has made it.
#[test]
fn what_the_transfer_makes_meanwhile_is_not_deleted() {
    let place = tempfile::tempdir().unwrap();
    let root = Dir::open_ambient(place.path()).unwrap();
    let tree = Tree::new(root, false, None, Durability::None, &Arc::default()).unwrap();
    let sweep = Sweep::new(SweepOrder::default(), None, None, None);
    let told: [&[u8]; 3] = ["D".as_bytes(), "D/README".as_bytes(), "D/caf\u{e9}".as_bytes()];
    sweep.has(&tree, told.iter().map(|path| (*path, false)));
    for name in ["README", "caf\u{e9}", "Only", "readme"] {
        tree.make_directory(b"D").unwrap();
        std::fs::write(place.path().join("D").join(name), "x").unwrap();
    }
    for directory in [&b""[..], b"D"] {
        sweep.listed(&tree, &[(directory.to_vec(), true)], None);
    }
    let known = Known { there: b"D/Only", ..Known::default() };
    sweep.delete(&tree, (0, true), false, &known);
    let asked = known.asked.into_inner().unwrap();
    let SweepEnd { deleted, stays, why, appeared } = sweep.ended();
    assert_eq!((deleted.items, stays.items, why, appeared), (1, 0, None, 1));
    assert_eq!(asked.len(), 2, "only what is on the list: {asked:?}");
    let mut left = Vec::new();
    tree.list(b"D", &mut |name| {
        left.push(name.to_vec());
        true
    })
    .unwrap();
    left.sort_unstable();
    assert_eq!(left, ["Only".as_bytes(), "README".as_bytes(), "caf\u{e9}".as_bytes()], "the source has Only by now");
}

/// Asked where there is more to delete than half of what is there, or more than may be without a question.
#[test]
fn large_deletion_is_asked_about_and_declined() {
    let place = tempfile::tempdir().unwrap();
    let root = Dir::open_ambient(place.path()).unwrap();
    let tree = Tree::new(root, false, None, Durability::None, &Arc::default()).unwrap();
    std::fs::create_dir(place.path().join("d")).unwrap();
    for name in ["told", "also", "only", "d/below"] {
        std::fs::write(place.path().join(name), "123").unwrap();
    }
    let swept = |order: DeleteOrder, told: &[&[u8]]| {
        let sweep = Sweep::new(SweepOrder { order, ..SweepOrder::default() }, None, None, None);
        sweep.has(&tree, told.iter().map(|name| (&name[..], false)));
        sweep.listed(&tree, &[(b"".to_vec(), true)], None);
        sweep
    };
    let asks = DeleteOrder { asks: true, ..DeleteOrder::default() };
    let all = swept(asks, &[b"told"]).question(0, false);
    assert_eq!(all, Some(DeletionExtent { items: 4, of: 5, bytes: Some(9) }));
    let partial = DeleteOrder { most: Some(3), partial: true, ..asks };
    let some = swept(partial, &[b"told"]).question(0, false);
    assert_eq!(some, Some(DeletionExtent { items: 3, of: 5, bytes: None }));
    assert_eq!(swept(asks, &[b"told", b"also", b"d"]).question(0, false), None, "one of four");
    assert_eq!(swept(DeleteOrder::default(), &[b"told"]).question(0, false), None);
    let sweep = swept(asks, &[b"told"]);
    assert_eq!((sweep.question(1, false), sweep.question(0, true)), (None, None), "nothing is deleted anyway");
    sweep.delete(&tree, (0, false), false, &Known::default());
    let SweepEnd { deleted, stays, why, .. } = sweep.ended();
    assert_eq!((deleted.items, stays.items), (0, 4));
    assert_eq!(why.and_then(|why| why.reason), Some(Reason::DeletionDeclined));
    assert!(place.path().join("d/below").exists());
    let many = DeletionExtent { items: 1001, of: u64::MAX, bytes: None };
    assert!(many.is_large() && !DeletionExtent { items: 1000, ..many }.is_large());
}

/// Of what the destination had: what this session has brought makes the share of what goes no smaller.
#[test]
fn share_that_may_go_is_one_of_what_was_there() {
    let ended = |share: u8, new: bool| {
        let place = tempfile::tempdir().unwrap();
        let root = Dir::open_ambient(place.path()).unwrap();
        let tree = Tree::new(root, false, None, Durability::None, &Arc::default()).unwrap();
        let order = DeleteOrder { share: Some(share), ..DeleteOrder::default() };
        let sweep = Sweep::new(SweepOrder { order, ..SweepOrder::default() }, None, None, None);
        for name in ["a", "b", "only", "only too"] {
            std::fs::write(place.path().join(name), "x").unwrap();
        }
        sweep.has(&tree, [(&b"a"[..], false), (b"b", new)].into_iter());
        sweep.listed(&tree, &[(b"".to_vec(), true)], None);
        sweep.delete(&tree, (0, true), false, &Known::default());
        let SweepEnd { deleted, why, .. } = sweep.ended();
        (deleted.items, why.map(|why| why.to_string()))
    };
    assert_eq!(ended(50, false), (2, None));
    assert_eq!(ended(100, true), (2, None));
    for (share, new, words) in [(49, false, "2 of 4 items"), (50, true, "2 of 3 items"), (0, false, "at most 0 % may")]
    {
        let (deleted, why) = ended(share, new);
        assert_eq!(deleted, 0);
        assert!(why.as_deref().is_some_and(|why| why.contains(words)), "{why:?}");
    }
}
