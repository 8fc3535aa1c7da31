//! Deleting what has been copied at its source.

use std::fs::File;
use std::io;

use carrack_core::limits;
use carrack_core::path::split_name;
use carrack_core::report::{ErrorCode, Failure, ItemKind, Side};
use carrack_core::transfer::ScannedItem;
use carrack_sys::dir::{Dir, Links, Stat};

use super::descriptors::patiently;
use super::extended::Holder;
use super::kinds::kind_of;
use super::names::unnamed_in;
use super::source::{PosixSource, RootKind};
use super::times::time_of;
use crate::error::{failure, io_failure};
use crate::sync::lock;

impl PosixSource {
    /// Deletes an item that still is what the walk found.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceChanged`] when it is not; else why it stays.
    pub fn remove_copied(&self, item: &ScannedItem) -> Result<(), Failure> {
        let removed = match &self.kind {
            RootKind::Directory(top) => {
                let (parent, name) = split_name(&item.path);
                patiently(|| top.open_dir(parent, Links::Refuse))
                    .map(|directory| self.remove_from(&directory, name, item))
            }
            RootKind::Entry(top, path, links) => {
                let (parent, name) = split_name(path);
                patiently(|| top.open_dir(parent, *links)).map(|directory| self.remove_from(&directory, name, item))
            }
        };
        removed.map_err(|error| io_failure(Side::Source, "delete", &error))?
    }

    fn remove_from(&self, directory: &Dir, name: &[u8], item: &ScannedItem) -> Result<(), Failure> {
        let stat = match directory.stat_uncached(name, Links::Refuse) {
            Ok(stat) => stat,
            // Somebody else was quicker.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(io_failure(Side::Source, "look once more", &error)),
        };
        let shown = self.telling.shown(stat, Holder::Entry(directory, name));
        if !self.is_what_was_copied(&shown, item) {
            let why = "it has changed since it was copied, so it was not deleted";
            return Err(failure(ErrorCode::SourceChanged, Side::Source, why));
        }
        match directory.unlink(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_failure(Side::Source, "delete", &error)),
            _ => {
                // Its other names have another change time from now on.
                let mut linked = lock(&self.names_deleted);
                if stat.links > 1 && linked.len() < limits::LINKED_FILES {
                    linked.insert((stat.device, stat.inode));
                }
                Ok(())
            }
        }
    }

    fn is_what_was_copied(&self, stat: &Stat, item: &ScannedItem) -> bool {
        let is_file = item.kind == ItemKind::File;
        let is_same = kind_of(stat.kind) == item.kind
            && item.file == Some((stat.device, stat.inode))
            && (!is_file || item.size == Some(stat.size))
            && item.attributes.mtime == Some(time_of(stat.mtime));
        let is_untouched = item.changed == Some(time_of(stat.ctime));
        is_same && (is_untouched || lock(&self.names_deleted).contains(&(stat.device, stat.inode)))
    }

    /// A file without a name, beside the source.
    ///
    /// # Errors
    /// Those of the system.
    pub fn unnamed_file(&self) -> Result<File, Failure> {
        let made = match &self.kind {
            RootKind::Directory(top) => unnamed_in(top),
            RootKind::Entry(top, path, links) => {
                top.open_dir(split_name(path).0, *links).and_then(|directory| unnamed_in(&directory))
            }
        };
        made.map_err(|error| io_failure(Side::Source, "make room for the list of what is deleted", &error))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::storage::posix::place::Place;
    use crate::storage::read::{Found, Source, Walk};

    fn opened(path: &std::path::Path) -> (PosixSource, Vec<ScannedItem>) {
        let path = path.to_str().unwrap().as_bytes();
        let source = PosixSource::open(&Place::Anywhere { home: None }, path).unwrap();
        let mut items = Vec::new();
        source.walk(&Walk::plain(0), &mut |found| {
            if let Found::Item(item) = found {
                items.push(item);
            }
            true
        });
        (source, items)
    }

    fn item<'a>(items: &'a [ScannedItem], path: &str) -> &'a ScannedItem {
        items.iter().find(|item| item.path == path.as_bytes()).unwrap()
    }

    /// A name that is another file's by now, a time that was put back, and a directory that is a link by now.
    #[test]
    fn what_is_not_what_was_copied_stays() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("top");
        fs::create_dir_all(top.join("d")).unwrap();
        fs::create_dir(place.path().join("outside")).unwrap();
        for name in ["top/same", "top/other", "top/back", "top/d/f", "outside/f"] {
            fs::write(place.path().join(name), "content").unwrap();
        }
        symlink("same", top.join("link")).unwrap();
        let (source, items) = opened(&top);
        let modified = fs::metadata(top.join("back")).unwrap().modified().unwrap();
        fs::write(top.join("back"), "CONTENT").unwrap();
        fs::File::options().write(true).open(top.join("back")).unwrap().set_modified(modified).unwrap();
        fs::write(top.join("new"), "content").unwrap();
        fs::rename(top.join("new"), top.join("other")).unwrap();
        fs::rename(top.join("d"), top.join("moved")).unwrap();
        symlink("../outside", top.join("d")).unwrap();
        for changed in ["other", "back"] {
            assert_eq!(source.remove_copied(item(&items, changed)).unwrap_err().code, ErrorCode::SourceChanged);
        }
        source.remove_copied(item(&items, "d/f")).unwrap_err();
        source.remove_copied(item(&items, "same")).unwrap();
        source.remove_copied(item(&items, "link")).unwrap();
        assert!(top.join("back").exists());
        assert!(top.join("other").exists() && top.join("moved/f").exists() && place.path().join("outside/f").exists());
        assert!(!top.join("same").exists() && !top.join("link").is_symlink());
    }

    /// Deleting one changes the other's times: it is what was copied all the same, unless its content has changed.
    #[test]
    fn all_names_of_a_file_are_deleted() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for (one, other) in [("a", "b"), ("c", "d")] {
            fs::write(at(one), "content").unwrap();
            fs::hard_link(at(one), at(other)).unwrap();
        }
        let (source, items) = opened(place.path());
        source.remove_copied(item(&items, "a")).unwrap();
        source.remove_copied(item(&items, "b")).unwrap();
        assert!(!at("a").exists() && !at("b").exists());
        source.remove_copied(item(&items, "c")).unwrap();
        fs::write(at("d"), "another").unwrap();
        assert_eq!(source.remove_copied(item(&items, "d")).unwrap_err().code, ErrorCode::SourceChanged);
        // A source that is a file.
        let (source, items) = opened(&at("d"));
        source.remove_copied(&items[0]).unwrap();
        source.unnamed_file().unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
