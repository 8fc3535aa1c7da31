//! Collecting what transfers have left that nobody takes up again: markers that no session holds, the part files that belong to
//! them, and part files that belong to no marker. Whatever a session under way may still need stays.
//!
//! A marker stands in the directory that was copied into, its part files there and below. So a walk from the top down sees the
//! marker first; a part file whose marker is above what is walked looks as if it had none, and goes only when nobody has it open for
//! writing and nothing has been written to it for a long time.

use std::collections::HashMap;
use std::io;

use carrack_core::path::join;
use carrack_core::transfer::marker::Tag;
use carrack_sys::dir::{Dir, Entry, Kind, Links, Stat};
use carrack_sys::file;

use super::marker::{Abandoned, Looked, look};
use super::names::{is_marker, tag_of};

/// Without a marker a part file stays for at least so long, in seconds: a small one of a session under way may wait for its name while
/// a disk hangs, and is not held open.
const UNMARKED_AGE_MIN: u64 = 3600;
/// Markers held at once: each is an open file.
const HELD_MAX: usize = 128;

/// Something that was removed, or would be.
#[derive(Debug)]
pub struct Collected {
    /// Relative to where the walk began.
    pub path: Vec<u8>,
    /// What it was.
    pub stat: Stat,
    /// Why it could not be removed, or looked at.
    pub result: io::Result<()>,
}

/// What is to be collected.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Only what has not been changed for so many seconds.
    pub older_seconds: u64,
    /// Seconds since 1970.
    pub now: i64,
    /// Tell only.
    pub dry_run: bool,
}

impl Rules {
    /// By the time of the last change of any kind: a part file's modification time may be its source's already.
    fn is_old(&self, stat: &Stat, at_least: u64) -> bool {
        let age = self.now.saturating_sub(stat.ctime.seconds);
        u64::try_from(age).is_ok_and(|age| age >= self.older_seconds.max(at_least))
    }
}

/// Whose part files may go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Stay,
    Go,
}

/// Tells of one that was collected.
pub type Each<'a, E> = &'a mut dyn FnMut(Collected) -> Result<(), E>;

struct Walk<'a, E> {
    top: &'a Dir,
    rules: Rules,
    verdicts: HashMap<Tag, Verdict>,
    /// Markers to remove once their part files are gone, with the directories they are in.
    held: Vec<(Vec<u8>, Vec<u8>, Abandoned)>,
    each: Each<'a, E>,
}

/// Walks everything below a directory and removes what is left over there.
///
/// # Errors
/// Those of `each`, which end it.
pub fn collect<E>(top: &Dir, rules: Rules, each: Each<'_, E>) -> Result<(), E> {
    let mut walk = Walk { top, rules, verdicts: HashMap::new(), held: Vec::new(), each };
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        let found = top.open_dir(&path, Links::Refuse).and_then(|directory| {
            let found = leftovers(&directory, &path, &mut waiting)?;
            Ok((directory, found))
        });
        match found {
            Ok((directory, found)) => walk.directory(&path, &directory, found)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let stat = top.stat_self().ok();
                if let Some(stat) = stat {
                    (walk.each)(Collected { path, stat, result: Err(error) })?;
                }
            }
        }
    }
    walk.markers()
}

/// Names in a directory that are markers or part files, markers first; directories below it are put aside.
fn leftovers(directory: &Dir, path: &[u8], waiting: &mut Vec<Vec<u8>>) -> io::Result<Vec<Vec<u8>>> {
    let (mut markers, mut parts) = (Vec::new(), Vec::new());
    let mut entries = directory.entries()?;
    let mut batch = Vec::new();
    while entries.next_batch(&mut batch)? {
        for Entry { name, kind, .. } in batch.drain(..) {
            let hidden = is_marker(&name) || tag_of(&name).is_some();
            let kind = match kind {
                Some(kind) => kind,
                None => directory.stat_at(&name)?.kind,
            };
            match kind {
                Kind::Dir => waiting.push(join(path, &name)),
                Kind::File | Kind::Symlink if hidden => {
                    if is_marker(&name) {
                        markers.push(name)
                    } else {
                        parts.push(name)
                    }
                }
                _ => {}
            }
        }
    }
    markers.append(&mut parts);
    Ok(markers)
}

impl<E> Walk<'_, E> {
    fn directory(&mut self, path: &[u8], directory: &Dir, found: Vec<Vec<u8>>) -> Result<(), E> {
        for name in found {
            let Ok(stat) = directory.stat_at(&name) else { continue };
            if is_marker(&name) {
                self.marker(path, directory, name, stat)?;
            } else if let Some(tag) = tag_of(&name)
                && self.may_go(tag, directory, &name, &stat)
            {
                let result = if self.rules.dry_run { Ok(()) } else { directory.unlink(&name) };
                self.tell(join(path, &name), stat, result)?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, path: Vec<u8>, stat: Stat, result: io::Result<()>) -> Result<(), E> {
        match &result {
            // Somebody else was quicker: the transfer itself, or another that collects.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            _ => (self.each)(Collected { path, stat, result }),
        }
    }

    fn marker(&mut self, path: &[u8], directory: &Dir, name: Vec<u8>, stat: Stat) -> Result<(), E> {
        let looked = match look(directory, &name) {
            Ok(looked) => looked,
            Err(error) => return self.tell(join(path, &name), stat, Err(error)),
        };
        match looked {
            Looked::Abandoned(marker) if self.rules.is_old(&marker.stat, 0) && self.held.len() < HELD_MAX => {
                self.verdicts.extend(marker.tag.map(|tag| (tag, Verdict::Go)));
                self.held.push((path.to_vec(), name, marker));
            }
            Looked::Abandoned(Abandoned { tag, .. }) | Looked::Live(tag) => {
                self.verdicts.extend(tag.map(|tag| (tag, Verdict::Stay)));
            }
            Looked::Foreign => {}
        }
        Ok(())
    }

    fn may_go(&self, tag: Tag, directory: &Dir, name: &[u8], stat: &Stat) -> bool {
        match self.verdicts.get(&tag) {
            Some(verdict) => *verdict == Verdict::Go,
            None => {
                let free = || match directory.open_existing(name) {
                    Ok(part) => !matches!(file::try_lock(&part), Ok(false)),
                    // A link, or a file that is read-only already: neither is being written.
                    Err(_) => true,
                };
                self.rules.is_old(stat, UNMARKED_AGE_MIN) && free()
            }
        }
    }

    /// The markers themselves, last: whoever is interrupted before finds their part files again.
    fn markers(mut self) -> Result<(), E> {
        for (path, name, marker) in std::mem::take(&mut self.held) {
            let stat = marker.stat;
            let removed = if self.rules.dry_run {
                Ok(())
            } else {
                self.top.open_dir(&path, Links::Refuse).and_then(|directory| marker.remove(&directory, &name))
            };
            self.tell(join(&path, &name), stat, removed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::convert::Infallible;
    use std::path::Path;

    use carrack_core::request::Durability;

    use super::*;
    use crate::storage::marker::{Journal, MarkerRequest};

    const HOUR: u64 = 3600;

    fn put(directory: &Path, name: &str) {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }

    fn marker(directory: &Path, key: u8) -> Journal {
        let request = MarkerRequest { key: [key; 8], anew: false, source_clock: 0 };
        Journal::open(&Dir::open_ambient(directory).unwrap(), &request, Durability::Group).unwrap()
    }

    fn part(journal: &Journal, name: &str, number: &str) -> String {
        format!(".{name}.carrack-{}{number}.part", std::str::from_utf8(&journal.tag()).unwrap())
    }

    /// Collects as if so much time had passed, and tells the paths.
    fn run(directory: &Path, older_seconds: u64, later: u64, dry_run: bool) -> Vec<String> {
        let now = carrack_sys::host::clock_seconds() + later as i64;
        let (mut gone, rules) = (Vec::new(), Rules { older_seconds, now, dry_run });
        let top = Dir::open_ambient(directory).unwrap();
        collect(&top, rules, &mut |one| {
            one.result.unwrap();
            gone.push(String::from_utf8(one.path).unwrap());
            Ok::<(), Infallible>(())
        })
        .unwrap();
        gone.sort();
        gone
    }

    #[test]
    fn what_a_live_session_has_is_never_touched() {
        let directory = tempfile::tempdir().unwrap();
        let live = marker(directory.path(), 1);
        for (name, number) in [("a", ""), ("b", "-1"), ("c", "-x3")] {
            put(directory.path(), &part(&live, name, number));
            put(directory.path(), &format!("deep/er/{}", part(&live, name, number)));
        }
        assert_eq!(run(directory.path(), 0, 400 * 24 * HOUR, false), Vec::<String>::new());
        drop(live);
        assert_eq!(run(directory.path(), HOUR, 0, false), Vec::<String>::new(), "too young");
        let told = run(directory.path(), HOUR, 2 * HOUR, true);
        assert_eq!(told.len(), 7, "{told:?}");
        assert_eq!(run(directory.path(), HOUR, 2 * HOUR, false), told);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read_dir(directory.path().join("deep/er")).unwrap().count(), 0);
    }

    #[test]
    fn a_young_marker_keeps_its_old_parts() {
        let directory = tempfile::tempdir().unwrap();
        let young = marker(directory.path(), 1);
        let name = part(&young, "a", "-1");
        put(directory.path(), &name);
        drop(young);
        // The file is as old as the marker here: only the rule for those without one would take it.
        assert_eq!(run(directory.path(), 3 * HOUR, 2 * HOUR, false), Vec::<String>::new());
        std::fs::remove_file(directory.path().join(".carrack-0101010101010101.marker")).unwrap();
        assert_eq!(run(directory.path(), 0, HOUR / 2, false), Vec::<String>::new());
        assert_eq!(run(directory.path(), 3 * HOUR, 2 * HOUR, false), Vec::<String>::new());
        assert_eq!(run(directory.path(), 0, 2 * HOUR, false), [name]);
    }

    #[test]
    fn a_part_that_is_open_for_writing_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (open, closed) = (".a.carrack-01234567-1.part", ".b.carrack-01234567-2.part");
        put(directory.path(), open);
        put(directory.path(), closed);
        let held = std::fs::File::open(directory.path().join(open)).unwrap();
        assert!(file::try_lock(&held).unwrap());
        assert_eq!(run(directory.path(), 0, 2 * HOUR, false), [closed]);
    }

    #[test]
    fn other_files_are_no_leftovers() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a", ".a.part", ".carrack-1.marker", "a.carrack-01234567.part", ".carrack", "carrack.marker"] {
            put(directory.path(), name);
        }
        std::fs::create_dir(directory.path().join(".d.carrack-01234567.part")).unwrap();
        std::fs::create_dir(directory.path().join(".carrack-0101010101010101.marker")).unwrap();
        std::os::unix::fs::symlink("/", directory.path().join("out")).unwrap();
        assert_eq!(run(directory.path(), 0, 400 * 24 * HOUR, false), Vec::<String>::new());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 9);
    }

    #[test]
    fn a_marker_that_cannot_be_read_goes_alone() {
        let directory = tempfile::tempdir().unwrap();
        put(directory.path(), ".carrack-0101010101010101-2.marker");
        let path = directory.path().join(".carrack-0101010101010101-2.marker");
        let allow = |mode| std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        allow(0o666);
        assert_eq!(run(directory.path(), 0, 0, false), Vec::<String>::new(), "others could write it");
        allow(0o600);
        assert_eq!(run(directory.path(), 0, 0, false), [".carrack-0101010101010101-2.marker"]);
    }
}
