//! What is deleted, and when nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

use carrack_core::filter::RuleForm;
use carrack_core::request::Durability;
use carrack_sys::dir::Dir;

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
    let sweep = Sweep::new(SweepOrder::default(), None, None);
    sweep.has(&tree, b"told");
    (0..9).for_each(|number| std::fs::write(place.path().join(format!("f{number}")), "x").unwrap());
    sweep.listed(&tree, b"", true);
    sweep.delete(&tree, 0, false, &Known { patience: AtomicUsize::new(4), ..Known::default() });
    assert_eq!(sweep.ended().deleted.items, 4);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 5);
}

/// Rules in a directory that goes hold for nothing beside it.
#[test]
fn rules_below_what_goes_do_not_hold_beside_it() {
    let place = tempfile::tempdir().unwrap();
    let root = Dir::open_ambient(place.path()).unwrap();
    let tree = Tree::new(root, false, None, Durability::None, &Arc::default()).unwrap();
    let mut filters = Filters::new(false);
    filters.add(RuleForm::Rule, b":- .rules").unwrap();
    let sweep = Sweep::new(SweepOrder { filters, ..SweepOrder::default() }, None, None);
    sweep.has(&tree, b"told");
    for number in 0..8 {
        std::fs::create_dir(place.path().join(format!("d{number}"))).unwrap();
        std::fs::write(place.path().join(format!("d{number}/.rules")), "!\n").unwrap();
        std::fs::write(place.path().join(format!("d{number}.o")), "kept").unwrap();
    }
    std::fs::write(place.path().join(".rules"), "*.o\n.rules\n").unwrap();
    sweep.listed(&tree, b"", true);
    sweep.delete(&tree, 0, false, &Known::default());
    assert_eq!(sweep.ended().why, None);
    assert!((0..8).all(|number| place.path().join(format!("d{number}.o")).exists()));
}

/// Names are told before their directory is there, and compared when the transfer has made it.
#[test]
fn what_the_transfer_makes_meanwhile_is_not_deleted() {
    let place = tempfile::tempdir().unwrap();
    let root = Dir::open_ambient(place.path()).unwrap();
    let tree = Tree::new(root, false, None, Durability::None, &Arc::default()).unwrap();
    let sweep = Sweep::new(SweepOrder::default(), None, None);
    let told: [&[u8]; 3] = ["D".as_bytes(), "D/README".as_bytes(), "D/caf\u{e9}".as_bytes()];
    told.iter().for_each(|path| sweep.has(&tree, path));
    for name in ["README", "caf\u{e9}", "Only", "readme"] {
        tree.make_directory(b"D").unwrap();
        std::fs::write(place.path().join("D").join(name), "x").unwrap();
    }
    for directory in [&b""[..], b"D"] {
        sweep.listed(&tree, directory, true);
    }
    let known = Known { there: b"D/Only", ..Known::default() };
    sweep.delete(&tree, 0, false, &known);
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
