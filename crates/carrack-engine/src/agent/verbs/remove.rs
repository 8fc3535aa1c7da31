//! Removing, with everything below: what cannot go is told and left, and all that can goes.

use std::io;

use carrack_core::path::{join, split_name};
use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_core::wire::control::Remove;
use carrack_sys::dir::{Dir, Kind, Links};

use super::MayDelete;
use crate::error::{failure, io_failure};
use crate::storage::place::Place;
use crate::storage::walk::Trail;

/// Is told what below the directory cannot be removed, and why.
pub type Stuck<'a> = &'a mut dyn FnMut(Vec<u8>, Failure) -> Result<(), Failure>;

/// Removes a file, or a directory with everything below it, and tells how many entries went.
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
    if stat.kind != Kind::Dir {
        may_delete().map_err(named)?;
        parent.unlink(&name).map_err(|error| fail("remove", &error))?;
        return Ok(1);
    }
    if !remove.recursive {
        let refused = failure(ErrorCode::IsADirectory, Side::Destination, "is a directory");
        return Err(refused.at_path(&remove.path[..]).for_reason(Reason::DirectoryToRemove));
    }
    let top = parent.open_dir(&name, Links::Refuse).map_err(|error| fail("open", &error))?;
    let mut emptying =
        Emptying { top: &top, may_delete, waiting: Vec::new(), removed: 0, left: 0, first: None, stuck: None };
    emptying.stuck = remove.go_on.then_some(stuck);
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

/// A directory that is being emptied.
struct Emptying<'a, 'b> {
    top: &'a Dir,
    may_delete: MayDelete<'a>,
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
        self.left += 1;
        let failure = io_failure(Side::Destination, what, error);
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
