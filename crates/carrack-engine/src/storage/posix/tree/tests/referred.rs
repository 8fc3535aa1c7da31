//! Files of a reference directory: linked or copied, and never changed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::storage::write::Referred;

/// A reference directory with `f`, and a destination.
struct Scene {
    place: tempfile::TempDir,
    tree: Tree,
}

impl Scene {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for directory in ["old/d", "new"] {
            fs::create_dir_all(place.path().join(directory)).unwrap();
        }
        fs::write(place.path().join("old/d/f"), "content").unwrap();
        let tree = begin(&place.path().join("new"));
        Self { place, tree }
    }

    fn stat(&self, path: &str) -> Stat {
        Dir::open_ambient(self.place.path()).unwrap().stat_at(path.as_bytes()).unwrap()
    }

    fn old(&self) -> Dir {
        Dir::open_ambient(&self.place.path().join("old/d")).unwrap()
    }

    fn write(&self, found: &Stat, as_link: bool, verify: Verify) -> Result<Option<PartEntry>, Failure> {
        let attributes = Attributes::new(0o600, Time::new(500, 7));
        let (path, found_at, directory) = (&b"d/f"[..], &b"d/f"[..], &self.old());
        let referred = Referred { path, attributes, found_at, directory, found, as_link };
        self.tree.write_referred(&referred, &WriteOptions { verify, ..options() }, &|| false)
    }

    fn metadata(&self, path: &str) -> fs::Metadata {
        fs::metadata(self.place.path().join(path)).unwrap()
    }

    fn left(&self) -> Vec<String> {
        hidden(&self.place.path().join("new/d"))
    }
}

/// Somebody else's file that has come to an old name keeps it.
#[test]
fn name_is_forgotten_only_while_it_is_of_that_file() {
    let scene = Scene::new();
    for name in ["new/d/old name", "new/d/other"] {
        fs::create_dir_all(scene.place.path().join("new/d")).unwrap();
        fs::write(scene.place.path().join(name), "content").unwrap();
    }
    let file = |path: &str| (scene.metadata(path).dev(), scene.metadata(path).ino());
    let other = file("new/d/other");
    assert_eq!(scene.tree.forget_name(b"d/old name", other).ok(), Some(false));
    assert_eq!(scene.tree.forget_name(b"d/old name", file("new/d/old name")).ok(), Some(true));
    assert_eq!(scene.tree.forget_name(b"d/old name", other).ok(), Some(false), "it is gone");
    assert_eq!(file("new/d/other"), other);
    // Somebody has removed the directory: nothing of it is left to do, and nothing has failed.
    fs::remove_dir_all(scene.place.path().join("new/d")).unwrap();
    assert_eq!(scene.tree.forget_name(b"d/other", other).ok(), Some(false), "its directory is gone");
}

#[test]
fn file_is_linked_or_copied_and_stays_what_it_was() {
    for verify in [Verify::Wire, Verify::Disk, Verify::None] {
        let scene = Scene::new();
        let (found, before) = (scene.old().stat_at(b"f").unwrap(), scene.metadata("old/d/f"));
        let entry = scene.write(&found, true, verify).unwrap().unwrap();
        assert!(!entry.awaits_sync());
        assert!(entry.publish().unwrap());
        assert_eq!(scene.metadata("new/d/f").ino(), before.ino());
        // What stands there is another name of the same file: to rename it would take none away.
        let entry = scene.write(&found, true, verify).unwrap().unwrap();
        assert!(entry.publish().unwrap());
        entry.remove();
        assert_eq!((scene.metadata("new/d/f").ino(), scene.left()), (before.ino(), vec![]));
        let entry = scene.write(&found, false, verify).unwrap().unwrap();
        scene.tree.sync_group().unwrap();
        entry.verify().unwrap();
        assert!(entry.publish().unwrap());
        let (copied, after) = (scene.metadata("new/d/f"), scene.metadata("old/d/f"));
        assert_eq!((copied.mode() & 0o777, copied.mtime(), copied.len()), (0o600, 500, 7));
        assert_ne!(copied.ino(), before.ino());
        assert_eq!((after.mode(), after.mtime(), after.nlink()), (before.mode(), before.mtime(), 1));
        assert_eq!(scene.left(), Vec::<String>::new());
        scene.tree.finish(true);
    }
}

#[test]
fn file_that_was_exchanged_is_not_linked() {
    let exchange: [fn(&Path); 5] = [
        |path| fs::write(path, "other content").unwrap(),
        |path| fs::set_permissions(path, Permissions::from_mode(0o4755)).unwrap(),
        |path| {
            fs::rename(path, path.with_file_name("away")).unwrap();
            fs::write(path, "content").unwrap();
        },
        |path| {
            fs::rename(path, path.with_file_name("away")).unwrap();
            std::os::unix::fs::symlink("away", path).unwrap();
        },
        |path| fs::remove_file(path).unwrap(),
    ];
    for (number, exchange) in exchange.iter().enumerate() {
        let scene = Scene::new();
        let found = scene.old().stat_at(b"f").unwrap();
        exchange(&scene.place.path().join("old/d/f"));
        for as_link in [true, false] {
            assert!(scene.write(&found, as_link, Verify::Wire).is_err(), "{number} {as_link}");
            assert!(!scene.place.path().join("new/d/f").exists());
            assert_eq!(scene.left(), Vec::<String>::new(), "{number} {as_link}");
        }
        scene.tree.finish(true);
    }
}

/// A session that was killed leaves a hard link under the hidden name: what is written there next is another file.
#[test]
fn link_that_was_left_is_not_written_to() {
    let scene = Scene::new();
    let found = scene.old().stat_at(b"f").unwrap();
    let left = scene.write(&found, true, Verify::Wire).unwrap().unwrap();
    let hidden = scene.left();
    assert_eq!(hidden.len(), 1);
    drop(left);
    let entry = scene.tree.write_small(&small("d/f", b"other"), Existing::Replace, b"other").unwrap().unwrap();
    assert_eq!(scene.left(), hidden);
    scene.tree.sync_group().unwrap();
    assert!(entry.publish().unwrap());
    assert_eq!(fs::read(scene.place.path().join("old/d/f")).unwrap(), b"content");
    assert_eq!(fs::read(scene.place.path().join("new/d/f")).unwrap(), b"other");
    assert_eq!(scene.stat("old").kind, Kind::Dir);
    scene.tree.finish(true);
}

#[test]
fn attributes_of_shared_files_are_not_set_where_they_are_to_stay() {
    let scene = Scene::new();
    let found = scene.old().stat_at(b"f").unwrap();
    assert!(scene.write(&found, true, Verify::Wire).unwrap().unwrap().publish().unwrap());
    let attributes = Attributes::new(0o600, Time::new(500, 7));
    let keeping = begin(&scene.place.path().join("new")).keeping_shared(true);
    assert!(keeping.set_attributes(b"d/f", &attributes, None).is_err());
    assert_eq!(scene.metadata("old/d/f").mode() & 0o7777, found.mode);
    fs::remove_file(scene.place.path().join("old/d/f")).unwrap();
    keeping.set_attributes(b"d/f", &attributes, None).unwrap();
    assert_eq!(scene.metadata("new/d/f").mode() & 0o777, 0o600);
    scene.tree.finish(true);
    keeping.finish(true);
}
