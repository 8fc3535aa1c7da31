//! Directories of a destination: their permissions and times, and what stands in their place at the end.

use carrack_core::attributes::{Attributes, Time};
use std::os::unix::fs::PermissionsExt;

use super::*;

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn attributes(path: &str, mode: u32) -> NewDirectory {
    NewDirectory { path: path.as_bytes().to_vec(), attributes: Attributes::new(mode, Time::new(700, 8)) }
}

/// Somebody who may write to the parent has a directory of ours that is private become the one
/// whose permissions are set.
#[test]
fn directory_exchanged_for_another_gets_neither_its_mode_nor_its_time() {
    for made in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["private", "dst/shared"] {
            std::fs::create_dir_all(path(name)).unwrap();
        }
        if !made {
            std::fs::create_dir(path("dst/shared/d")).unwrap();
        }
        set_mode(&path("private"), 0o700);
        let tree = begin(&path("dst"));
        tree.make_directory(b"shared/d").unwrap();
        put_small(&tree, "shared/d/f", b"content").publish().unwrap();
        std::fs::rename(path("dst/shared/d"), path("elsewhere")).unwrap();
        std::fs::rename(path("private"), path("dst/shared/d")).unwrap();
        let failures = tree.apply_directories(&[attributes("shared/d", 0o755), attributes("shared", 0o755)]);
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert_eq!((failures[0].0.as_slice(), failures[0].1.code), (&b"shared/d"[..], ErrorCode::NotFound));
        assert!(failures[0].1.message().contains("shared/d"), "{failures:?}");
        let metadata = path("dst/shared/d").metadata().unwrap();
        assert_eq!((metadata.mode() & 0o7777, metadata.mtime() == 700), (0o700, false));
        assert_eq!(path("dst/shared").metadata().unwrap().mtime(), 700);
    }
}

/// An overlay of several file systems gives a directory that it had forgotten another inode number.
#[test]
fn directory_whose_number_is_not_kept_is_not_taken_for_another() {
    use crate::storage::names::{FileSystemTraits, Sameness};
    for is_split in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let shown = FileSystemTraits { names: Sameness::default(), is_split };
        let root = Dir::open_ambient(directory.path()).unwrap();
        let tree =
            Tree::with(root, None, *b"0a1b2c3d", (Durability::Group, Arc::default()), Box::new(move |_| Some(shown)))
                .unwrap();
        tree.make_directory(b"d").unwrap();
        std::fs::rename(directory.path().join("d"), directory.path().join("old")).unwrap();
        std::fs::create_dir(directory.path().join("d")).unwrap();
        let failures = tree.apply_directories(&[attributes("d", 0o755)]);
        assert_eq!(failures.len(), usize::from(!is_split), "{failures:?}");
    }
}

/// The same while files are still coming, when its handle had to be given up.
#[test]
fn directory_exchanged_for_another_gets_no_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir_all(path("dst/d")).unwrap();
    let tree = begin(&path("dst"));
    put_small(&tree, "d/f", b"content").publish().unwrap();
    std::fs::rename(path("dst/d"), path("elsewhere")).unwrap();
    std::fs::create_dir(path("dst/d")).unwrap();
    for number in 0..300 {
        tree.make_directory(format!("other/{number}").as_bytes()).unwrap();
    }
    let refused = tree.write_small(&small("d/g", b"more"), Existing::Replace, b"more").err().unwrap();
    assert_eq!(refused.code, ErrorCode::NotFound, "{refused:?}");
    assert_eq!(std::fs::read_dir(path("dst/d")).unwrap().count(), 0);
}

#[test]
fn attributes_of_a_directory_that_this_copy_has_not_made_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("theirs")).unwrap();
    let before = mode(&directory.path().join("theirs"));
    let tree = begin(directory.path());
    let failures = tree.apply_directories(&[attributes("theirs", 0o777)]);
    assert_eq!(failures[0].1.code, ErrorCode::NotFound, "{failures:?}");
    assert_eq!(mode(&directory.path().join("theirs")), before);
}

#[test]
fn mode_bits_that_are_no_permission_stay_as_they_were_at_the_destination() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir_all(path("old/inner")).unwrap();
    set_mode(&path("old"), 0o2755);
    set_mode(&path("old/inner"), 0o3777);
    let tree = begin(directory.path());
    for name in [&b"old/inner"[..], b"old", b"old/new", b"plain"] {
        tree.make_directory(name).unwrap();
    }
    let list = [
        attributes("old/inner", 0o4750),
        attributes("old/new", 0o711),
        attributes("old", 0o770),
        attributes("plain", 0o7755),
    ];
    assert_eq!(tree.apply_directories(&list), []);
    let modes = ["old/inner", "old/new", "old", "plain"].map(|name| mode(&path(name)));
    // New ones take over the group of the one they are in, and that they do so.
    assert_eq!(modes, [0o3750, 0o2711, 0o2770, 0o755]);
    assert_eq!(path("old").metadata().unwrap().mtime(), 700);
}

/// What nobody asks for again goes at the very end, when directories have their times, and may be read-only.
#[test]
fn part_file_that_goes_at_the_end_leaves_the_directorys_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("d");
    let tree = begin(directory.path());
    let part = fresh(&tree, &offer("d/f"));
    write(&part, &[0]);
    part.leave();
    tree.finish(false);
    assert_eq!(hidden(&path).len(), 1);
    let tree = begin(directory.path());
    tree.make_directory(b"d").unwrap();
    let list = [attributes("d", 0o555), NewDirectory { path: Vec::new(), ..attributes("", 0o750) }];
    assert_eq!(tree.apply_directories(&list), []);
    tree.finish(true);
    assert_eq!((hidden(&path).len(), hidden(directory.path()).len()), (0, 0));
    for (path, expected) in [(path.as_path(), 0o555), (directory.path(), 0o750)] {
        let metadata = path.metadata().unwrap();
        assert_eq!((metadata.mode() & 0o7777, metadata.mtime(), metadata.mtime_nsec()), (expected, 700, 8));
    }
}

/// A destination whose calls take long is one where calls wait for each other: here each directory's entrance waits
/// until another one is under way.
#[test]
fn directories_beside_each_other_are_entered_at_once_and_each_by_one_thread() {
    use crate::storage::posix::directories::Directories;
    use std::sync::{Condvar, Mutex};
    use std::time::Duration;

    /// Directories under way, the most of them at once, and all.
    #[derive(Default)]
    struct Entered {
        counts: Mutex<[usize; 3]>,
        changed: Condvar,
    }
    let directory = tempfile::tempdir().unwrap();
    for name in ["p/a", "p/b", "p/b/c"] {
        std::fs::create_dir_all(directory.path().join(name)).unwrap();
    }
    let root = std::fs::metadata(directory.path()).unwrap().ino();
    let parent = std::fs::metadata(directory.path().join("p")).unwrap().ino();
    let entered = Arc::new(Entered::default());
    let told = Arc::clone(&entered);
    let clean = move |dir: &Dir| {
        let inode = dir.stat_self().unwrap().inode;
        let mut counts = told.counts.lock().unwrap();
        if inode == root {
            return;
        }
        counts[2] += 1;
        if inode == parent {
            return;
        }
        counts[0] += 1;
        counts[1] = counts[1].max(counts[0]);
        told.changed.notify_all();
        let alone = |counts: &mut [usize; 3]| counts[1] < 2;
        counts = told.changed.wait_timeout_while(counts, Duration::from_secs(20), alone).unwrap().0;
        counts[0] -= 1;
    };
    let top = Dir::open_ambient(directory.path()).unwrap();
    let directories =
        Directories::new(top, false, (Box::new(|_| None), Some(Box::new(clean))), Syncs::default()).unwrap();
    let found: Vec<_> = std::thread::scope(|scope| {
        let all = [&b"p/a"[..], b"p/b", b"p/a", b"p/b", b"p/b/c"];
        let started = all.map(|path| scope.spawn(|| directories.get(path).unwrap()));
        started.map(|one| one.join().unwrap()).into()
    });
    assert!(Arc::ptr_eq(&found[0], &found[2]) && Arc::ptr_eq(&found[1], &found[3]));
    // At once, and none of the four twice.
    let counts = *entered.counts.lock().unwrap();
    assert!(counts[1] >= 2, "{counts:?}");
    assert_eq!(counts[2], 4);
}

#[test]
fn directory_that_cannot_be_entered_is_tried_again_and_what_waits_for_it_is_told() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("d"), "a file").unwrap();
    let tree = begin(directory.path());
    let directories = &tree.shared.directories;
    let failed = std::thread::scope(|scope| {
        let started: Vec<_> = (0..4).map(|_| scope.spawn(|| directories.get(b"d/e").is_err())).collect();
        started.into_iter().all(|one| one.join().unwrap())
    });
    assert!(failed);
    std::fs::remove_file(directory.path().join("d")).unwrap();
    directories.get(b"d/e").unwrap();
    assert!(directory.path().join("d/e").is_dir());
}
