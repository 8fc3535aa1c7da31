//! Collecting what transfers have left that nobody takes up again: markers that no session holds, the part files that
//! belong to them, and part files that belong to no marker. Whatever a session under way may still need stays.
//!
//! A marker stands in the directory that was copied into, its part files there and below. So a walk from the top down
//! sees the marker first; a part file whose marker is above what is walked looks as if it had none, and goes only when
//! nothing has been written to it for a long time.
//!
//! Others may write into directories of the tree, and put markers of their own there, with any tag. So a marker speaks
//! for what is below its own directory only; of several that speak for one part file, one that says that it stays is
//! enough; and none ever goes that somebody has open for writing.

use std::collections::HashMap;
use std::fs::File;
use std::io;

use carrack_core::limits;
use carrack_core::path::{join, split_name};
use carrack_core::transfer::marker::Tag;
use carrack_sys::dir::{Dir, DirEntry, Kind, Links, Stat};
use carrack_sys::file;

use super::entering::Trail;
use super::marker::{Abandoned, Looked, left_of, look};
use super::names::{is_marker, is_marker_of, tag_of};

/// Without a marker a part file stays for at least so long, in seconds: a small one of a session under way may wait for
/// its name while a disk hangs, and is not held open.
const UNMARKED_AGE_MIN: u64 = 3600;
/// Markers held at once: each is an open file.
const HELD_MAX: usize = 128;

/// Something that was removed, or would be.
#[derive(Debug)]
pub struct Collected {
    /// Relative to where the walk began.
    pub path: Vec<u8>,
    /// What it was before it was removed.
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
    /// Report what would be removed, and remove nothing.
    pub dry_run: bool,
    /// Only what the copy with this marker key has left, however old it is.
    pub only: Option<[u8; limits::MARKER_KEY_BYTES]>,
}

impl Rules {
    /// By the time of the last change of any kind: a part file's modification time may be its source's already.
    fn is_old(&self, stat: &Stat, at_least: u64) -> bool {
        let age = self.now.saturating_sub(stat.ctime.seconds);
        // The clock of a file system on another host may be ahead of this one's.
        self.only.is_some() || u64::try_from(age).is_ok_and(|age| age >= self.older_seconds.max(at_least))
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

/// Whether a path is a directory, or below it; both relative to the top, which is empty.
fn is_within(path: &[u8], directory: &[u8]) -> bool {
    directory.is_empty() || path.strip_prefix(directory).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

/// What the markers of one directory say of the part files there and below.
type Verdicts = HashMap<Tag, Verdict>;

struct Collector<'a, E> {
    top: &'a Dir,
    rules: Rules,
    /// Of the directory that is looked at and of those above it, topmost first; of those without
    /// markers there is nothing.
    verdicts: Vec<(Vec<u8>, Verdicts)>,
    /// Markers to remove once their part files are gone, with the directories they are in.
    held: Vec<(Vec<u8>, Vec<u8>, Abandoned)>,
    each: Each<'a, E>,
}

/// Walks everything below a directory and removes what is left over there.
///
/// # Errors
/// Those of `each`, which end it.
pub fn collect<E>(top: &Dir, rules: Rules, each: Each<'_, E>) -> Result<(), E> {
    if let (Some(key), true) = (rules.only, rules.dry_run) {
        return unfinished(top, key, each);
    }
    let mut walk = Collector { top, rules, verdicts: Vec::new(), held: Vec::new(), each };
    let (mut waiting, mut trail) = (vec![Vec::new()], Trail::default());
    while let Some(path) = waiting.pop() {
        let found = top.open_dir(&path, Links::Refuse).and_then(|directory| {
            trail.enter(&path, &directory)?;
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

/// Tells of the unfinished files that the markers of a key know, by the names that they would get. Without a walk:
/// small ones of a session that was killed are known by their names alone, and hold no block that anybody could go on
/// from.
fn unfinished<E>(top: &Dir, key: [u8; limits::MARKER_KEY_BYTES], each: Each<'_, E>) -> Result<(), E> {
    for part in left_of(top, key) {
        let parent = top.open_dir(split_name(&part.path).0, Links::Refuse);
        // Otherwise it is gone, or was never made.
        if let Ok(stat) = parent.and_then(|parent| parent.stat_at(&part.part_name)) {
            each(Collected { path: part.path, stat, result: Ok(()) })?;
        }
    }
    Ok(())
}

/// Names in a directory that are markers or part files, markers first; directories below it are put aside.
fn leftovers(directory: &Dir, path: &[u8], waiting: &mut Vec<Vec<u8>>) -> io::Result<Vec<Vec<u8>>> {
    let (mut markers, mut parts) = (Vec::new(), Vec::new());
    let mut entries = directory.entries()?;
    let mut batch = Vec::new();
    while entries.next_batch(&mut batch)? {
        for DirEntry { name, kind, .. } in batch.drain(..) {
            let hidden = is_marker(&name) || tag_of(&name).is_some();
            // What is gone meanwhile is none of ours any more.
            let Some(kind) = kind.or_else(|| directory.stat_at(&name).ok().map(|stat| stat.kind)) else { continue };
            match kind {
                Kind::Dir => waiting.push(join(path, &name)),
                Kind::Unknown => {}
                _ if hidden => {
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

/// A part file that nobody has open for writing, locked until this is dropped. What cannot be opened for writing has
/// nothing to lock: a link, a file that is read-only already, or what is never opened.
struct Idle {
    _locked: Option<File>,
}

impl Idle {
    fn of(directory: &Dir, name: &[u8], kind: Kind) -> Option<Self> {
        let is_file = kind == Kind::File;
        let part = if is_file { directory.open_existing(name).ok() } else { None };
        let busy = part.as_ref().is_some_and(|part| matches!(file::try_lock(part), Ok(false)));
        (!busy).then_some(Self { _locked: part })
    }
}

impl<E> Collector<'_, E> {
    fn directory(&mut self, path: &[u8], directory: &Dir, found: Vec<Vec<u8>>) -> Result<(), E> {
        // Whatever is below a directory is walked before the next beside it: what was said
        // there is not needed any more.
        self.verdicts.retain(|(above, _)| is_within(path, above));
        for name in found {
            let Ok(stat) = directory.stat_at(&name) else { continue };
            if is_marker(&name) {
                if self.rules.only.is_none_or(|key| is_marker_of(key, &name)) {
                    self.marker(path, directory, name, stat)?;
                }
            } else if let Some(tag) = tag_of(&name)
                && self.may_go(tag, &stat)
                && let Some(idle) = Idle::of(directory, &name, stat.kind)
            {
                let result = if self.rules.dry_run { Ok(()) } else { directory.unlink(&name) };
                drop(idle);
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
                self.says(path, marker.tag, Verdict::Go);
                self.held.push((path.to_vec(), name, marker));
            }
            Looked::Abandoned(Abandoned { tag, .. }) | Looked::Live(tag) => self.says(path, tag, Verdict::Stay),
            Looked::Foreign => {}
        }
        Ok(())
    }

    /// Writes down what a marker in the directory that is looked at says of part files.
    fn says(&mut self, path: &[u8], tag: Option<Tag>, verdict: Verdict) {
        let Some(tag) = tag else { return };
        if self.verdicts.last().is_none_or(|(directory, _)| directory != path) {
            self.verdicts.push((path.to_vec(), Verdicts::new()));
        }
        if let Some((_, here)) = self.verdicts.last_mut() {
            let said = here.entry(tag).or_insert(verdict);
            if verdict == Verdict::Stay {
                *said = verdict;
            }
        }
    }

    fn may_go(&self, tag: Tag, stat: &Stat) -> bool {
        let mut said = self.verdicts.iter().filter_map(|(_, verdicts)| verdicts.get(&tag)).peekable();
        match said.peek() {
            Some(_) => said.all(|verdict| *verdict == Verdict::Go),
            // What no marker of the key speaks for is another's.
            None => self.rules.only.is_none() && self.rules.is_old(stat, UNMARKED_AGE_MIN),
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
mod tests {
    use std::convert::Infallible;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use carrack_core::request::{Digests, Durability};
    use carrack_core::transfer::marker::{Chain, PartRecord};
    use carrack_core::tuning::Tuning;

    use super::*;
    use crate::storage::posix::marker::Journal;
    use crate::storage::properties::MarkerRequest;

    const HOUR: u64 = 3600;

    fn put(directory: &Path, name: &str) {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }

    fn marker(directory: &Path, key: u8) -> Journal {
        let request = MarkerRequest { key: [key; 8], anew: false, made_top: false, partial: false };
        Journal::open(&Dir::open_ambient(directory).unwrap(), &request, Durability::Group, &Tuning::DEFAULT).unwrap()
    }

    fn part(journal: &Journal, name: &str, number: &str) -> String {
        format!(".{name}.carrack-{}{number}.part", std::str::from_utf8(&journal.tag()).unwrap())
    }

    /// Collects as if so much time had passed, and tells the paths.
    fn run(directory: &Path, older_seconds: u64, later: u64, dry_run: bool) -> Vec<String> {
        let now = carrack_sys::host::clock_seconds() + later as i64;
        run_by(directory, Rules { older_seconds, now, dry_run, only: None })
    }

    fn run_by(directory: &Path, rules: Rules) -> Vec<String> {
        let mut gone = Vec::new();
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
    fn live_sessions_files_are_never_touched() {
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
    fn leftovers_of_one_copy_go_and_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let (mine, others) = (marker(directory.path(), 1), marker(directory.path(), 2));
        let large = part(&mine, "large", "-1");
        for name in [&large, &part(&mine, "small", ""), &part(&others, "a", "-1"), ".b.carrack-0123456789ab.part"] {
            put(directory.path(), &format!("deep/{name}"));
        }
        let record = |number, path: &[u8], part_name: &str| PartRecord {
            number,
            path: path.to_vec(),
            part_name: part_name.into(),
            size: 9,
            block_bytes: 1 << 20,
            digests: Digests::BLAKE3,
        };
        assert!(mine.part(record(1, b"deep/large", &large)));
        // Was never made; and is none of its own.
        assert!(mine.part(record(2, b"deep/gone", &part(&mine, "gone", "-2"))));
        assert!(mine.part(record(3, b"deep/a", &part(&others, "a", "-1"))));
        let by = |key: u8, dry_run| {
            run_by(directory.path(), Rules { older_seconds: 0, now: 0, dry_run, only: Some([key; 8]) })
        };
        assert_eq!(by(1, true), Vec::<String>::new(), "a marker that is held");
        for journal in [&mine, &others] {
            journal.keep();
            journal.finish(false);
        }
        let tag = String::from_utf8(mine.tag().to_vec()).unwrap();
        drop(mine);
        assert_eq!((by(1, true), by(3, true)), (vec!["deep/large".to_owned()], Vec::new()));
        let gone = by(1, false);
        assert_eq!(gone.len(), 3, "{gone:?}");
        assert!(gone.iter().all(|path| path.contains(&tag) || path.ends_with(".marker")), "{gone:?}");
        assert_eq!(by(1, true), Vec::<String>::new());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "the other's marker, and a directory");
        assert_eq!(std::fs::read_dir(directory.path().join("deep")).unwrap().count(), 2);
    }

    #[test]
    fn young_marker_keeps_its_old_parts() {
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
    fn part_that_is_open_for_writing_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (open, closed) = (".a.carrack-01234567-1.part", ".b.carrack-01234567-2.part");
        put(directory.path(), open);
        put(directory.path(), closed);
        let held = std::fs::File::open(directory.path().join(open)).unwrap();
        assert!(file::try_lock(&held).unwrap());
        assert_eq!(run(directory.path(), 0, 2 * HOUR, false), [closed]);
    }

    /// A marker that nobody holds, as anybody could write it.
    fn planted(directory: &Path, name: &str, tag: Tag) {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, Chain::begin(tag).0).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    }

    #[test]
    fn planted_marker_does_not_speak_against_a_live_one() {
        const PLANTED: &str = "deep/.carrack-0202020202020202.marker";
        let directory = tempfile::tempdir().unwrap();
        let live = marker(directory.path(), 1);
        put(directory.path(), &format!("deep/{}", part(&live, "a", "-1")));
        put(directory.path(), &format!("deep/er/{}", part(&live, "b", "")));
        planted(directory.path(), PLANTED, live.tag());
        assert_eq!(run(directory.path(), 0, 400 * 24 * HOUR, false), [PLANTED]);
        // Beside it neither.
        let beside = ".carrack-0303030303030303.marker";
        planted(directory.path(), beside, live.tag());
        put(directory.path(), &part(&live, "c", ""));
        assert_eq!(run(directory.path(), 0, 400 * 24 * HOUR, false), [beside]);
    }

    #[test]
    fn marker_speaks_for_its_own_directory_only() {
        let directory = tempfile::tempdir().unwrap();
        // Whichever is walked first: each has a marker for what is in the other.
        for (here, there, tag) in [("a", "b", "0000000a"), ("b", "a", "0000000b"), ("a", "ab", "0000000c")] {
            planted(
                directory.path(),
                &format!("{here}/.carrack-01010101{tag}.marker"),
                tag.as_bytes().try_into().unwrap(),
            );
            put(directory.path(), &format!("{there}/.f.carrack-{tag}.part"));
            put(directory.path(), &format!("{here}/below/.f.carrack-{tag}.part"));
        }
        let gone = run(directory.path(), 0, 0, false);
        let parts: Vec<&String> = gone.iter().filter(|path| path.ends_with(".part")).collect();
        assert_eq!(
            parts,
            [
                "a/below/.f.carrack-0000000a.part",
                "a/below/.f.carrack-0000000c.part",
                "b/below/.f.carrack-0000000b.part"
            ]
        );
    }

    #[test]
    fn part_that_is_open_for_writing_stays_whatever_a_marker_says() {
        let directory = tempfile::tempdir().unwrap();
        planted(directory.path(), ".carrack-0101010101010101.marker", *b"01234567");
        put(directory.path(), ".f.carrack-01234567-1.part");
        let held = std::fs::File::open(directory.path().join(".f.carrack-01234567-1.part")).unwrap();
        assert!(file::try_lock(&held).unwrap());
        assert_eq!(run(directory.path(), 0, 400 * 24 * HOUR, false), [".carrack-0101010101010101.marker"]);
    }

    #[test]
    fn file_that_is_only_named_like_a_marker_stays() {
        let directory = tempfile::tempdir().unwrap();
        let name = ".carrack-0101010101010101.marker";
        for content in ["somebody's notes", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "c"] {
            std::fs::write(directory.path().join(name), content).unwrap();
            std::fs::set_permissions(directory.path().join(name), PermissionsExt::from_mode(0o600)).unwrap();
            assert_eq!(run(directory.path(), 0, 400 * 24 * HOUR, false), Vec::<String>::new());
            // Nor does a copy under the same key write it over, or begin anew without it.
            for anew in [false, true] {
                let request = MarkerRequest { key: [1; 8], anew, made_top: false, partial: false };
                let journal = Journal::open(
                    &Dir::open_ambient(directory.path()).unwrap(),
                    &request,
                    Durability::Group,
                    &Tuning::DEFAULT,
                );
                journal.unwrap().finish(true);
            }
            assert_eq!(std::fs::read(directory.path().join(name)).unwrap(), content.as_bytes());
        }
        // Cut short, or of another version, it is one.
        for content in [&b""[..], b"\x89carr", b"\x89carrack\xff\xff\xff\xffwhatever"] {
            std::fs::write(directory.path().join(name), content).unwrap();
            assert_eq!(run(directory.path(), 0, 0, false), [name]);
        }
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
    fn marker_that_cannot_be_read_goes_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".carrack-0101010101010101-2.marker");
        std::fs::write(&path, b"\x89carrack, and nothing that makes sense").unwrap();
        let allow = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        allow(0o666);
        assert_eq!(run(directory.path(), 0, 0, false), Vec::<String>::new(), "others could write it");
        allow(0o600);
        assert_eq!(run(directory.path(), 0, 0, false), [".carrack-0101010101010101-2.marker"]);
    }
}
