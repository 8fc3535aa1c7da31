//! Removing, with everything below: what cannot go is told and left, and all that can goes.

use std::io;

use carrack_core::path::{join, split_name};
use carrack_core::plan::compare::State;
use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_core::wire::control::Remove;
use carrack_sys::dir::{Dir, Kind, Links, Stat};

use super::MayDelete;
use crate::error::{failure, io_failure};
use crate::storage::entering::Trail;
use crate::storage::place::Place;
use crate::storage::posix::kinds::kind_of;
use crate::storage::refusal::why_refused;
use crate::storage::times::time_of;

/// Is told what below the directory cannot be removed, and why.
pub type Stuck<'a> = &'a mut dyn FnMut(Vec<u8>, Failure) -> Result<(), Failure>;

/// Removes a file, or a directory with everything below it, and tells how many entries went. Of what is to be removed
/// only if it is empty, whatever is no directory stays, and so do the directories above it.
///
/// # Errors
/// Of what was named itself, and of those who asked for one answer, the first of what is below it; those
/// of `may_delete` and of `stuck`, which end it.
pub fn remove(place: &Place, remove: &Remove, may_delete: MayDelete<'_>, stuck: Stuck<'_>) -> Result<u64, Failure> {
    let named = |failure: Failure| failure.during("remove").at_path(&remove.path[..]);
    let fail =
        |what: &'static str, error: &io::Error| io_failure(Side::Destination, what, error).at_path(&remove.path[..]);
    let (parent, name) = place.parent(&remove.path).map_err(|error| fail("remove", &error))?;
    let stat = parent.stat_at(&name).map_err(|error| fail("remove", &error))?;
    if stat.kind != Kind::Dir && remove.empty_only {
        let refused = failure(ErrorCode::NotADirectory, Side::Destination, "is no directory");
        return Err(refused.at_path(&remove.path[..]));
    }
    if remove.unchanged.is_some_and(|unchanged| unchanged != state_of(&stat)) {
        let changed = failure(ErrorCode::SourceChanged, Side::Destination, "is not what it was when it was looked at");
        return Err(changed.at_path(&remove.path[..]));
    }
    if stat.kind != Kind::Dir {
        may_delete().map_err(named)?;
        parent.unlink(&name).map_err(|error| fail("remove", &why_refused(&parent, &name, error)))?;
        return Ok(1);
    }
    if !remove.recursive && !remove.empty_only {
        let refused = failure(ErrorCode::IsADirectory, Side::Destination, "is a directory");
        return Err(refused.at_path(&remove.path[..]).for_reason(Reason::DirectoryToRemove));
    }
    let top = parent.open_dir(&name, Links::Refuse).map_err(|error| fail("open", &error))?;
    let mut emptying = Emptying {
        top: &top,
        may_delete,
        empty_only: remove.empty_only,
        waiting: Vec::new(),
        removed: 0,
        left: 0,
        first: None,
        stuck: remove.go_on.then_some(stuck),
    };
    emptying.run().map_err(named)?;
    let (removed, left) = (emptying.removed, emptying.left);
    if let Some((path, first)) = emptying.first {
        let first = first.at_path(join(&remove.path, &path));
        if left == 1 {
            return Err(first);
        }
        let why = format!("of what is below, {left} could not be removed and {removed} were; the first of those");
        return Err(failure(first.code, first.side, why).at_path(&remove.path[..]).caused_by(first));
    }
    if left > 0 {
        return Ok(removed);
    }
    may_delete().map_err(named)?;
    parent.remove_dir(&name).map_err(|error| fail("remove the directory", &error))?;
    Ok(removed + 1)
}

/// What a file or a link is known to be unchanged by.
fn state_of(stat: &Stat) -> State {
    let size = if stat.kind == Kind::File { stat.size } else { 0 };
    State { kind: kind_of(stat.kind), size, mtime: Some(time_of(stat.mtime)) }
}

/// A directory that is being emptied.
struct Emptying<'a, 'b> {
    top: &'a Dir,
    may_delete: MayDelete<'a>,
    /// What is no directory stays.
    empty_only: bool,
    /// Directories below it; of one whose content has been seen to, how many entries had been left before. It
    /// waits below its children.
    waiting: Vec<(Vec<u8>, Option<u64>)>,
    removed: u64,
    /// Entries that could not be removed. Directories that hold them do not count.
    left: u64,
    /// The first of them, where nobody is told of each.
    first: Option<(Vec<u8>, Failure)>,
    stuck: Option<Stuck<'b>>,
}

impl Emptying<'_, '_> {
    fn run(&mut self) -> Result<(), Failure> {
        let mut trail = Trail::default();
        self.empty(b"", &mut trail)?;
        while let Some((path, seen_to)) = self.waiting.pop() {
            match seen_to {
                None => {
                    self.waiting.push((path.clone(), Some(self.left)));
                    self.empty(&path, &mut trail)?;
                }
                Some(before) if self.left > before => {}
                Some(_) => {
                    (self.may_delete)()?;
                    let (holder, name) = split_name(&path);
                    let gone = self.top.open_dir(holder, Links::Refuse).and_then(|holder| holder.remove_dir(name));
                    self.went(path, "remove the directory", gone)?;
                }
            }
        }
        Ok(())
    }

    /// Removes what is no directory, and puts the directories aside.
    fn empty(&mut self, path: &[u8], trail: &mut Trail) -> Result<(), Failure> {
        let top = self.top;
        let listed = top.open_dir(path, Links::Refuse).and_then(|directory| {
            trail.enter(path, &directory)?;
            Ok((directory.entries()?, directory))
        });
        let (mut entries, directory) = match listed {
            Ok(listed) => listed,
            Err(error) => return self.cannot(path.to_vec(), "open", &error),
        };
        let mut batch = Vec::new();
        loop {
            match entries.next_batch(&mut batch) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => return self.cannot(path.to_vec(), "list", &error),
            }
            for entry in batch.drain(..) {
                let full = join(path, &entry.name);
                let kind = entry.kind.map_or_else(|| directory.stat_at(&entry.name).map(|stat| stat.kind), Ok);
                match kind {
                    Ok(Kind::Dir) => self.waiting.push((full, None)),
                    Ok(_) if self.empty_only => self.stays(
                        full,
                        failure(ErrorCode::NotEmpty, Side::Destination, "is left, and so are the directories above it"),
                    )?,
                    kind => {
                        (self.may_delete)()?;
                        self.went(full, "remove", kind.and_then(|_| directory.unlink(&entry.name)))?;
                    }
                }
            }
        }
    }

    fn went(&mut self, path: Vec<u8>, what: &'static str, result: io::Result<()>) -> Result<(), Failure> {
        match result {
            Ok(()) => {
                self.removed += 1;
                Ok(())
            }
            Err(error) => self.cannot(path, what, &error),
        }
    }

    fn cannot(&mut self, path: Vec<u8>, what: &'static str, error: &io::Error) -> Result<(), Failure> {
        if error.kind() == io::ErrorKind::NotFound {
            // Somebody else was quicker.
            return Ok(());
        }
        self.stays(path, io_failure(Side::Destination, what, error))
    }

    fn stays(&mut self, path: Vec<u8>, failure: Failure) -> Result<(), Failure> {
        self.left += 1;
        match &mut self.stuck {
            // Of the directory itself it is said as one that is named so.
            Some(stuck) => stuck(if path.is_empty() { b".".to_vec() } else { path }, failure),
            None => {
                self.first.get_or_insert((path, failure));
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty_only(path: &[u8]) -> Remove {
        Remove { path: path.to_vec(), recursive: false, go_on: true, empty_only: true, unchanged: None }
    }

    #[test]
    fn what_is_to_be_unchanged_is_removed_only_as_it_was() {
        let top = tempfile::tempdir().unwrap();
        let place = Place::beneath(top.path()).unwrap();
        let file = top.path().join("f");
        let ask = |path: &[u8]| {
            let unchanged = place.parent(path).unwrap().0.stat_at(path).map(|stat| state_of(&stat)).ok();
            Remove { path: path.to_vec(), recursive: false, go_on: false, empty_only: false, unchanged }
        };
        let removed = |ask: &Remove| remove(&place, ask, &|| Ok(()), &mut |_, _| Ok(())).map_err(|why| why.code);
        std::fs::write(&file, "content").unwrap();
        let asked = ask(b"f");
        let longer = Remove { unchanged: asked.unchanged.map(|was| State { size: 8, ..was }), ..asked.clone() };
        assert_eq!(removed(&longer), Err(ErrorCode::SourceChanged));
        let times = std::fs::File::options().write(true).open(&file).unwrap();
        times.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(removed(&asked), Err(ErrorCode::SourceChanged));
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert_eq!(removed(&Remove { recursive: true, ..asked }), Err(ErrorCode::SourceChanged));
        std::fs::remove_dir(&file).unwrap();
        std::os::unix::fs::symlink("f", top.path().join("link")).unwrap();
        assert_eq!(removed(&ask(b"link")), Ok(1));
        std::fs::write(&file, "content").unwrap();
        assert_eq!(removed(&ask(b"f")), Ok(1));
    }

    #[test]
    fn removal_of_empty_directories_leaves_whatever_is_none() {
        let top = tempfile::tempdir().unwrap();
        let place = Place::beneath(top.path()).unwrap();
        for directory in ["t/a/b", "t/c/d", "t/e"] {
            std::fs::create_dir_all(top.path().join(directory)).unwrap();
        }
        std::fs::write(top.path().join("t/c/file"), "kept").unwrap();
        std::os::unix::fs::symlink("e", top.path().join("link")).unwrap();
        let mut told = Vec::new();
        let mut stuck = |path: Vec<u8>, why: Failure| {
            told.push((path, why.code));
            Ok(())
        };
        assert_eq!(remove(&place, &empty_only(b"t"), &|| Ok(()), &mut stuck).unwrap(), 4, "a, a/b, c/d, e");
        assert_eq!(told, [(b"c/file".to_vec(), ErrorCode::NotEmpty)]);
        assert_eq!(std::fs::read(top.path().join("t/c/file")).unwrap(), b"kept");
        for path in [&b"t/c/file"[..], b"link"] {
            let refused = remove(&place, &empty_only(path), &|| Ok(()), &mut |_, _| Ok(())).unwrap_err();
            assert_eq!(refused.code, ErrorCode::NotADirectory);
        }
        assert!(top.path().join("link").is_symlink());
    }

    #[test]
    fn removal_of_empty_directories_leaves_what_comes_between_look_and_removal() {
        for held in ["t/a/b", "t/a", "t"] {
            let top = tempfile::tempdir().unwrap();
            let place = Place::beneath(top.path()).unwrap();
            std::fs::create_dir_all(top.path().join("t/a/b")).unwrap();
            let file = top.path().join(held).join("late");
            // Everything has been looked at when the first of them is to go.
            let put = || std::fs::write(&file, "late").map_err(|error| io_failure(Side::Destination, "put", &error));
            let asked = std::cell::Cell::new(false);
            let may_delete = || if asked.replace(true) { Ok(()) } else { put() };
            let removed = remove(&place, &empty_only(b"t"), &may_delete, &mut |_, _| Ok(()));
            assert_eq!(std::fs::read(&file).unwrap(), b"late", "{held}: {removed:?}");
        }
    }
}
