//! Hidden names: of markers, and of what is being written. And which names are one name at a destination.
//!
//! A part file's name holds the marker's tag, so that no two runs ever take one another's part files for their own.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::failure;
use crate::sync::lock;
use carrack_core::limits;
use carrack_core::path::split_name;
use carrack_core::report::{ErrorCode, Failure, ItemKind, Side};
use carrack_core::transfer::marker::{TAG_BYTES, Tag};
use carrack_sys::dir::{Dir, Kind, stat_file};
use data_encoding::HEXLOWER;

const MIDDLE: &[u8] = b".carrack-";
const PART_END: &[u8] = b".part";
const MARKER_START: &[u8] = b".carrack-";
const MARKER_END: &[u8] = b".marker";

/// The name of the `number`-th marker of a key, counting from 1.
pub fn marker_name(key: [u8; limits::MARKER_KEY_BYTES], number: u32) -> Vec<u8> {
    let key = HEXLOWER.encode(&key);
    if number == 1 { format!(".carrack-{key}.marker") } else { format!(".carrack-{key}-{number}.marker") }.into_bytes()
}

/// Whether a marker is called so.
pub fn is_marker(name: &[u8]) -> bool {
    let key = name.strip_prefix(MARKER_START).and_then(|rest| rest.strip_suffix(MARKER_END));
    let key = key.and_then(|key| key.split_at_checked(2 * limits::MARKER_KEY_BYTES));
    key.is_some_and(|(key, number)| key.iter().all(u8::is_ascii_hexdigit) && matches!(number, [] | [b'-', b'2'..=b'9']))
}

/// Whether a marker of this key is called so.
pub fn is_marker_of(key: [u8; limits::MARKER_KEY_BYTES], name: &[u8]) -> bool {
    is_marker(name) && name.starts_with(&marker_name(key, 1)[..MARKER_START.len() + 2 * limits::MARKER_KEY_BYTES])
}

/// The tag in a part file's name; `None` if no part file is called so.
pub fn tag_of(name: &[u8]) -> Option<Tag> {
    tag_and_number(name).map(|(tag, _)| tag)
}

/// What a part file is by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// A small file or link: no marker tells of it.
    Small,
    /// A large file with this number.
    Numbered(u64),
    /// Made for a moment, to ask a file system about names; or with a number that no marker has.
    Other,
}

/// The tag in a part file's name, and what it is; `None` if no part file is called so.
pub fn part_kind(name: &[u8]) -> Option<(Tag, PartKind)> {
    tag_and_number(name).map(|(tag, number)| {
        let kind = match number {
            [] | [b'-', b'x', ..] => PartKind::Small,
            [_, digits @ ..] => match std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()) {
                Some(number) if number > 0 => PartKind::Numbered(number),
                _ => PartKind::Other,
            },
        };
        (tag, kind)
    })
}

fn tag_and_number(name: &[u8]) -> Option<(Tag, &[u8])> {
    let stem = name.strip_prefix(b".")?.strip_suffix(PART_END)?;
    let index = stem.windows(MIDDLE.len()).rposition(|bytes| bytes == MIDDLE)?;
    let (tag, number) = stem[index + MIDDLE.len()..].split_at_checked(TAG_BYTES)?;
    let numbered = match number {
        [] => true,
        [b'-', b'x', digits @ ..] | [b'-', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let tag: Tag = tag.try_into().ok()?;
    (numbered && tag.iter().all(u8::is_ascii_hexdigit)).then_some((tag, number))
}

/// Whether an entry is one of ours: a marker, or what is being written. Left out wherever a tree is copied.
pub fn is_own(name: &[u8], kind: Kind) -> bool {
    !matches!(kind, Kind::Dir | Kind::Unknown) && is_own_name(name)
}

fn is_own_name(name: &[u8]) -> bool {
    is_marker(name) || tag_of(name).is_some()
}

/// As [`is_own`], of an entry of a listing.
pub fn is_own_path(path: &[u8], kind: Option<ItemKind>) -> bool {
    matches!(kind, Some(ItemKind::File | ItemKind::Symlink | ItemKind::Special)) && is_own_name(split_name(path).1)
}

/// No item gets the name of a marker: the next session would believe what it says.
///
/// # Errors
/// When it would.
pub fn check_is_no_marker(name: &[u8]) -> Result<(), Failure> {
    let why = "that is the name of a marker, by which a copy goes on, and no other file gets it";
    // Where names are one in another case, too.
    if is_marker(&name.to_ascii_lowercase()) {
        Err(failure(ErrorCode::Unsupported, Side::Destination, why))
    } else {
        Ok(())
    }
}

/// A file without a name.
///
/// # Errors
/// Those of the system.
pub fn unnamed_in(directory: &Dir) -> io::Result<File> {
    let name = PartNames::new(new_tag()?).numbered(b"unnamed", 1);
    let file = directory.create_new(&name.name)?;
    directory.unlink(&name.name).map(|()| file)
}

/// A tag that no other run has.
///
/// # Errors
/// When the system has no random numbers.
pub fn new_tag() -> io::Result<Tag> {
    let mut random = [0; TAG_BYTES / 2];
    carrack_sys::host::random_bytes(&mut random)?;
    let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
    let mut tag = [0; TAG_BYTES];
    for (pair, byte) in tag.chunks_exact_mut(2).zip(random) {
        pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    Ok(tag)
}

/// What a file that is made for a moment shows of the file system of its directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSystemTraits {
    /// Which names are one name there.
    pub names: Sameness,
    /// The file has another device than its directory, as where the layers of an overlay lie on several file systems:
    /// then a directory has another inode number each time that the system has forgotten it.
    pub is_split: bool,
}

/// Which names are one name at a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sameness {
    /// Upper and lower case are one.
    pub case: bool,
    /// The composed and the decomposed form of a letter with an accent are one.
    pub forms: bool,
}

impl Sameness {
    /// Whether two different names can be one.
    pub fn any(self) -> bool {
        self.case || self.forms
    }
}

impl FileSystemTraits {
    /// Asks a directory's file system, by a file that is there for a moment. `None` where that cannot be found out
    /// here: nothing can be written to the directory, or looking fails.
    pub fn ask(dir: &Dir, tag: Tag) -> Option<Self> {
        let name = |letters: &str| [b".", letters.as_bytes(), MIDDLE, &tag, b"-0", PART_END].concat();
        let probe = name("A\u{e9}");
        // One that an earlier session of the run could not take away any more says nothing of itself, and
        // stays if nobody else does.
        let made = dir.create_new(&probe).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => dir.unlink(&probe).and_then(|()| dir.create_new(&probe)),
            _ => Err(error),
        });
        let (file, directory) = (stat_file(&made.ok()?), dir.stat_self());
        // No other file has such a name, so whatever is found is the one that was made.
        let finds = |letters| match dir.stat_at(&name(letters)) {
            Ok(_) => Some(true),
            Err(error) => (error.kind() == io::ErrorKind::NotFound).then_some(false),
        };
        let (case, forms) = (finds("a\u{e9}"), finds("Ae\u{301}"));
        // What cannot be removed is collected later, as any part file.
        let _ = dir.unlink(&probe);
        Some(Self {
            names: Sameness { case: case?, forms: forms? },
            is_split: file.ok()?.device != directory.ok()?.device,
        })
    }
}

/// Finds out whether names can be given and taken away in a directory, before anything is written there: what could not
/// be renamed would be written whole and stay as a part. There is no marker yet that would tell of the file by which it
/// is tried: its name is made of the copy's `key`, so the same copy takes away what a killed session has left.
///
/// # Errors
/// When not. Where nothing can be made, that is no error: what stands there may be all that is wanted.
pub fn check_names_change(dir: &Dir, key: Option<[u8; limits::MARKER_KEY_BYTES]>) -> io::Result<()> {
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if dir.is_append_only() {
        return refused(
            "the directory takes new names and lets none be changed (chattr +a): nothing was written there",
        );
    }
    let mut tag = new_tag()?;
    if let Some(key) = key {
        tag.copy_from_slice(&HEXLOWER.encode(&key).as_bytes()[..TAG_BYTES]);
    }
    let name = |number: &str| [&b".try"[..], MIDDLE, &tag, number.as_bytes(), PART_END].concat();
    let (first, second) = (name("-0"), name("-1"));
    let made = dir.create_new(&first).or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => dir.unlink(&first).and_then(|()| dir.create_new(&first)),
        _ => Err(error),
    });
    if made.is_err() {
        return Ok(());
    }
    let renamed = dir.rename(&first, dir, &second);
    let removed = dir.unlink(if renamed.is_ok() { &second } else { &first });
    match (renamed, removed) {
        // Another user's file may be in the way.
        (Err(_), Ok(())) if dir.stat_at(&second).is_ok() => Ok(()),
        (Err(error), _) if error.kind() == io::ErrorKind::PermissionDenied => {
            refused("the directory takes new names and lets none be changed: no file was written there")
        }
        (_, Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => refused(
            "the directory takes new names and lets none be removed: no file but an empty one was written there",
        ),
        // Whatever else is wrong is told of the items that meet it.
        _ => Ok(()),
    }
}

/// The start of a name, of at most so many bytes. Of one in UTF-8 no character is cut in two: some file
/// systems take no such name.
fn cut(name: &[u8], room: usize) -> &[u8] {
    const CHARACTER_BYTES: usize = 4;
    if name.len() <= room {
        return name;
    }
    let begins = |index: &usize| name[*index] & 0xc0 != 0x80;
    let end = (room.saturating_sub(CHARACTER_BYTES - 1)..=room).rev().find(begins);
    &name[..end.unwrap_or(room)]
}

/// Names of the part files of one session.
pub struct PartNames {
    tag: Tag,
    /// Names of small files' parts that are in use, with their directories.
    in_use: Mutex<HashSet<Vec<u8>>>,
    next: AtomicU64,
}

/// A part file's name, in use until this is dropped.
pub struct PartName {
    /// The name itself.
    pub name: Vec<u8>,
    reserved: Option<(Arc<PartNames>, Vec<u8>)>,
}

impl PartName {
    /// One that an earlier session made: its number is in use once.
    pub fn taken_up(name: Vec<u8>) -> Self {
        Self { name, reserved: None }
    }
}

impl Drop for PartName {
    fn drop(&mut self) {
        if let Some((names, whole)) = &self.reserved {
            names.lock().remove(whole);
        }
    }
}

impl PartNames {
    /// With this tag, which no other session has at the same time.
    pub fn new(tag: Tag) -> Self {
        Self { tag, in_use: Mutex::default(), next: AtomicU64::new(1) }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Vec<u8>>> {
        lock(&self.in_use)
    }

    fn with(&self, name: &[u8], number: &str) -> Vec<u8> {
        let suffix = [MIDDLE, &self.tag, number.as_bytes(), PART_END].concat();
        // A long name gives way to the suffix.
        let room = limits::NAME_BYTES - 1 - suffix.len();
        [b".", cut(name, room), &suffix].concat()
    }

    /// For a large file: the number tells it from all others of the marker.
    pub fn numbered(&self, name: &[u8], number: u64) -> PartName {
        PartName { name: self.with(name, &format!("-{number}")), reserved: None }
    }

    /// For a small file or link: the same name in every session, so that what an earlier one left is replaced by the
    /// way. A number is added where the name is in use, and where another name in use may be the same name because the
    /// directory `folds` names.
    pub fn small(self: &Arc<Self>, parent: &[u8], name: &[u8], folds: bool) -> PartName {
        if !folds {
            let plain = self.with(name, "");
            let whole = [parent, b"/", &plain].concat();
            if self.lock().insert(whole.clone()) {
                return PartName { name: plain, reserved: Some((Arc::clone(self), whole)) };
            }
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        PartName { name: self.with(name, &format!("-x{number}")), reserved: None }
    }

    /// Makes something under a hidden name, which nothing of this session bears: what stands there was left by an
    /// earlier one, and is replaced.
    ///
    /// # Errors
    /// Those of the system.
    pub fn make<T>(dir: &Dir, name: &PartName, mut make: impl FnMut(&[u8]) -> io::Result<T>) -> io::Result<T> {
        match make(&name.name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                dir.unlink(&name.name)?;
                make(&name.name)
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: Tag = *b"0a1b2c3d";

    #[test]
    fn names_made_here_are_known_here_and_no_others() {
        let names = Arc::new(PartNames::new(TAG));
        let long = [b'n'; limits::NAME_BYTES];
        for name in [&b"a"[..], b".hidden", b"a.carrack-ffffffff.part", b"\xff\xfe", &long] {
            let one = names.small(b"d", name, false);
            let two = names.small(b"d", name, false);
            for part in [&one, &two, &names.numbered(name, u64::MAX)] {
                assert_eq!(tag_of(&part.name), Some(TAG));
                assert!(part.name.len() <= limits::NAME_BYTES);
            }
            assert_ne!(one.name, two.name);
        }
        for name in [
            &b"a"[..],
            b".a.part",
            b".a.carrack-.part",
            b".a.carrack-0a1b2c3.part",
            b".a.carrack-0a1b2c3g.part",
            b".a.carrack-0a1b2c3d",
            b"a.carrack-0a1b2c3d.part",
            b".a.carrack-0a1b2c3d-.part",
            b".a.carrack-0a1b2c3d-x.part",
            b".a.carrack-0a1b2c3d-1f.part",
            b".a.carrack-0a1b2c3d1.part",
        ] {
            assert_eq!(tag_of(name), None, "{}", String::from_utf8_lossy(name));
        }
        let key = [0xab; 8];
        assert_eq!(marker_name(key, 1), b".carrack-abababababababab.marker");
        for number in 1..=9 {
            assert!(is_marker(&marker_name(key, number)) && tag_of(&marker_name(key, number)).is_none());
        }
        for name in [&b".carrack-.marker"[..], b".carrack-ababababababab.marker", b".carrack-abababababababab-1.marker"]
        {
            assert!(!is_marker(name));
        }
    }

    #[test]
    fn long_names_that_begin_alike_have_different_parts() {
        let names = Arc::new(PartNames::new(TAG));
        let (one, two) = ([b'n'; 255], [[b'n'; 254].as_slice(), b"m"].concat());
        let first = names.small(b"", &one, false);
        let second = names.small(b"", &two, false);
        assert_ne!(first.name, second.name);
        assert_ne!(names.numbered(&one, 1).name, names.numbered(&two, 2).name);
        let elsewhere = names.small(b"d", &one, false);
        assert_eq!(first.name, elsewhere.name);
        let plain = first.name.clone();
        drop(first);
        assert_eq!(names.small(b"", &two, false).name, plain, "free again");
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let names = Arc::new(PartNames::new(TAG));
        for character in ["n", "\u{e9}", "\u{20ac}", "\u{1f600}"] {
            for shift in 0..4 {
                let name = "x".repeat(shift) + &character.repeat((limits::NAME_BYTES - shift) / character.len());
                for part in [names.small(b"", name.as_bytes(), false), names.numbered(name.as_bytes(), 1 << 40)] {
                    assert!(std::str::from_utf8(&part.name).is_ok(), "{name}");
                    assert!(part.name.len() + character.len() > limits::NAME_BYTES, "{name}");
                    assert_eq!(tag_of(&part.name), Some(TAG));
                }
            }
        }
        assert_eq!(cut(&[0x80; 9], 8), [0x80; 8]);
    }

    #[test]
    fn leftover_of_an_earlier_question_about_names_is_taken_away() {
        let directory = tempfile::tempdir().unwrap();
        let root = Dir::open_ambient(directory.path()).unwrap();
        let probe = ".A\u{e9}.carrack-0badcafe-0.part";
        drop(root.create_new(probe.as_bytes()).unwrap());
        assert_eq!(FileSystemTraits::ask(&root, *b"0badcafe"), Some(FileSystemTraits::default()));
        assert!(root.stat_at(probe.as_bytes()).is_err());
    }

    #[test]
    fn names_that_may_be_one_never_share_a_part() {
        let names = Arc::new(PartNames::new(TAG));
        let (one, two) = (names.small(b"", b"a", true), names.small(b"", b"A", true));
        assert!(!one.name.eq_ignore_ascii_case(&two.name));
    }

    #[test]
    fn names_that_are_one_are_asked_of_the_file_system_and_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient(directory.path()).unwrap();
        let same = FileSystemTraits::ask(&dir, TAG).unwrap().names;
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        std::fs::write(directory.path().join("B"), "").unwrap();
        assert_eq!(same.case, directory.path().join("b").exists());
    }

    #[test]
    fn leftover_of_an_earlier_session_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient(directory.path()).unwrap();
        let name = Arc::new(PartNames::new(TAG)).small(b"", b"f", false);
        let left = PartNames::make(&dir, &name, |name| dir.create_new(name)).unwrap();
        carrack_sys::file::write_all_at(&left, b"old", 0).unwrap();
        PartNames::make(&dir, &name, |name| dir.symlink(b"target", name)).unwrap();
        assert_eq!(dir.read_link(&name.name).unwrap(), b"target");
        PartNames::make(&dir, &name, |name| dir.create_new(name)).unwrap();
        assert_eq!(dir.stat_at(&name.name).unwrap().size, 0);
    }
}
