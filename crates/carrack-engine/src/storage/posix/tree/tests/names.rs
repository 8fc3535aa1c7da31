//! What stands at a name when an item gets it, and was not there when the item came.

use std::os::unix::fs::MetadataExt;

use super::*;
use crate::storage::posix::directories::Names;
use crate::storage::posix::part::check_twin;
use crate::storage::posix::tree::FurtherName;

const KINDS: [&str; 3] = ["small", "link", "large"];

/// A whole item of a kind under its hidden name, for the name `f`. It gets the name, and `false` says that
/// what stands there was kept.
fn whole(tree: &Tree, kind: &str, existing: Existing) -> Box<dyn Fn() -> Result<bool, Failure>> {
    match kind {
        "small" => {
            let entry = tree.write_small(&small("f", b"new"), existing, b"new").unwrap().unwrap();
            Box::new(move || entry.publish())
        }
        "link" => {
            let entry = tree.write_link(&small("f", b""), existing, b"new").unwrap().unwrap();
            Box::new(move || entry.publish())
        }
        _ => {
            let options = WriteOptions { existing, ..options() };
            let offer = NewFile { size: Some(3), ..offer("f") };
            let OpenedPart::Fresh(part) = tree.open_part(&offer, &options, true).unwrap() else { panic!() };
            part.write(0, b"new").unwrap();
            part.finish(3).unwrap();
            Box::new(move || part.publish(FileDigests::default()))
        }
    }
}

fn set_mtime(path: &Path, seconds: u64) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

/// The sources are of the seconds 300 and 500.
#[test]
fn file_that_appears_meanwhile_is_replaced_only_as_was_asked() {
    let later = 10_000;
    let ways = [
        (Existing::Replace, later, true),
        (Existing::Keep, 1, false),
        (Existing::Older, later, false),
        (Existing::Older, 1, true),
    ];
    for kind in KINDS {
        for (existing, seconds, replaced) in ways {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("f");
            let tree = begin(directory.path());
            let publish = whole(&tree, kind, existing);
            std::fs::write(&path, "appeared").unwrap();
            set_mtime(&path, seconds);
            assert_eq!(publish(), Ok(replaced), "{kind} {existing:?}");
            let kept = std::fs::read(&path).is_ok_and(|content| content == b"appeared");
            assert_eq!(kept, !replaced, "{kind} {existing:?}");
            drop(publish);
            tree.finish(true);
            assert_eq!(hidden(directory.path()), Vec::<String>::new(), "{kind} {existing:?}");
        }
    }
}

#[test]
fn name_that_vanishes_meanwhile_is_not_made_anew_where_only_existing_ones_are_written() {
    for kind in KINDS {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::fs::write(&path, "old").unwrap();
        let tree = begin(directory.path());
        let publish = whole(&tree, kind, Existing::Only);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(publish(), Ok(false), "{kind}");
        assert!(path.symlink_metadata().is_err(), "{kind}");
        // And one that stays is.
        std::fs::write(&path, "old").unwrap();
        assert_eq!(whole(&tree, kind, Existing::Only)(), Ok(true), "{kind}");
    }
}

#[test]
fn file_that_is_never_replaced_is_not_replaced_when_it_appears_meanwhile() {
    for kind in KINDS {
        for existing in [Existing::Replace, Existing::Keep, Existing::Older] {
            for (made, code) in [("fifo", ErrorCode::SpecialFile), ("directory", ErrorCode::IsADirectory)] {
                let directory = tempfile::tempdir().unwrap();
                let path = directory.path().join("f");
                let tree = begin(directory.path());
                let publish = whole(&tree, kind, existing);
                match made {
                    "fifo" => drop(std::process::Command::new("mkfifo").arg(&path).status().unwrap()),
                    _ => std::fs::create_dir(&path).unwrap(),
                }
                let told = publish().unwrap_err();
                assert_eq!(told.code, code, "{kind} {existing:?}: {told:?}");
                let found = path.symlink_metadata().unwrap();
                assert!(!found.is_file() && !found.is_symlink(), "{kind} {existing:?} {made}");
                drop(publish);
                tree.finish(true);
                assert_eq!(hidden(directory.path()), Vec::<String>::new());
            }
        }
    }
}

/// Which names are one is asked in one directory after the other until one can tell. Until then
/// names are taken to be one.
#[test]
fn directory_that_cannot_tell_whether_names_are_one_leaves_that_to_the_next() {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use crate::storage::names::FileSystemTraits;
    let directory = tempfile::tempdir().unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let ask = move |_: &Dir| (count.fetch_add(1, Ordering::Relaxed) == 2).then(FileSystemTraits::default);
    let root = Dir::open_ambient(directory.path()).unwrap();
    let tree = Tree::with(root, None, *b"0a1b2c3d", (Durability::Group, Arc::default()), Box::new(ask)).unwrap();
    let folds = |path: &[u8]| tree.shared.directories.get(path).unwrap().folds();
    assert!(folds(b"") && folds(b"d") && folds(b""));
    put_small(&tree, "d/a", b"a").publish().unwrap();
    put_small(&tree, "d/A", b"A").publish().unwrap();
    put_small(&tree, "d/twin", b"t").publish().unwrap();
    std::fs::hard_link(directory.path().join("d/twin"), directory.path().join("d/TWIN")).unwrap();
    let twin = tree.write_small(&small("d/TWIN", b"T"), Existing::Replace, b"T");
    assert_eq!(twin.err().map(|failure| failure.code), Some(ErrorCode::AlreadyExists));
    assert!(!folds(b"e") && !folds(b"d") && !folds(b"") && !folds(b"f"));
    assert_eq!(asked.load(Ordering::Relaxed), 3, "nobody is asked any more");
    let read = |name: &str| std::fs::read(directory.path().join(name)).unwrap();
    assert_eq!((read("d/a"), read("d/A")), (b"a".to_vec(), b"A".to_vec()));
}

/// A peer tells of names in directories of any depth that are yet to be made: no level costs anything of the stack.
#[test]
fn directory_of_ten_thousand_missing_levels_folds_as_the_top_does() {
    let directory = tempfile::tempdir().unwrap();
    let tree = folding(directory.path());
    let deep = vec!["d"; 10_000].join("/").into_bytes();
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(256 << 10);
        let folds = small.spawn_scoped(scope, || tree.folds_names(&deep)).unwrap().join().unwrap();
        assert_eq!(folds, tree.folds_names(b""));
    });
}

/// Where names may be one, a further name of a file is still a name of its own; another form of its first name is not.
#[test]
fn further_names_are_kept_where_names_fold() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("a"), b"x").unwrap();
    let time = std::time::UNIX_EPOCH + Duration::from_secs(300);
    std::fs::File::options().write(true).open(path("a")).unwrap().set_modified(time).unwrap();
    std::fs::hard_link(path("a"), path("twin")).unwrap();
    std::fs::hard_link(path("a"), path("A")).unwrap();
    let tree = folding(directory.path());
    let found = path("a").metadata().unwrap();
    assert!(tree.claim(b"a", (found.dev(), found.ino())), "as a sync that has found it to be the same");
    let named = |name| tree.write_hard_link(&small(name, b""), Existing::Replace, (&[b"a".to_vec()], Some(1)));
    assert!(matches!(named("twin"), Ok(FurtherName::Same)));
    assert_eq!(named("A").err().map(|failure| failure.code), Some(ErrorCode::AlreadyExists));
    let Ok(FurtherName::Hidden(entry)) = named("new") else { panic!("it is made") };
    assert!(entry.publish().unwrap());
    assert_eq!(path("new").metadata().unwrap().ino(), found.ino());
    assert_eq!(hidden(directory.path()), Vec::<String>::new());
}

/// A sync that hung returns after the session has failed: by then the next session may have given a
/// newer file the same name.
#[test]
fn closed_session_gives_no_file_its_name() {
    for kind in KINDS {
        for (patience, named) in [(Duration::from_secs(600), true), (Duration::ZERO, false)] {
            let directory = tempfile::tempdir().unwrap();
            std::fs::write(directory.path().join("f"), "newer").unwrap();
            let tree = begin(directory.path());
            let publish = whole(&tree, kind, Existing::Replace);
            tree.close_in(patience);
            let code = publish().map_err(|failure| failure.code);
            assert_eq!(code, if named { Ok(true) } else { Err(ErrorCode::InputOutput) }, "{kind}");
            let there = directory.path().join("f");
            let stays = std::fs::read_link(&there).is_err() && std::fs::read(&there).unwrap() == b"newer";
            assert_eq!(stays, !named, "{kind}");
        }
    }
}

/// A second hard link is a name of its own; another form of a name is none, nor is a short one.
#[test]
fn hard_link_is_no_twin() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("a"), "x").unwrap();
    let look = |name: &str| Dir::open_ambient(place.path()).unwrap().stat_at(name.as_bytes()).unwrap();
    let published = Names::from([((look("a").device, look("a").inode), b"a".to_vec())]);
    let is_twin = |name: &str| check_twin(&published, name.as_bytes(), Some(look("a"))).is_err();
    assert_eq!(["a", "A", "b", "\u{e4}"].map(is_twin), [false, true, true, true]);
    std::fs::hard_link(place.path().join("a"), place.path().join("b")).unwrap();
    assert_eq!(["a", "A", "b", "\u{e4}"].map(is_twin), [false, true, false, true]);
}

/// What a session has left that was killed while it tried whether names can be changed goes with the next of its copy.
#[test]
fn name_that_a_killed_session_has_tried_goes_with_the_next() {
    for number in 0..2 {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(format!(".try.carrack-05050505-{number}.part")), "").unwrap();
        let tree = begin(directory.path());
        tree.finish(true);
        assert_eq!(hidden(directory.path()), Vec::<String>::new());
    }
}
