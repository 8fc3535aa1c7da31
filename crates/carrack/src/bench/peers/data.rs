//! What is moved: one file, or many small ones. It is made once, and every copy of it is compared.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::request::Digests;
use carrack_core::size::parse_size;
use carrack_engine::files::Files;
use carrack_engine::io_failure;
use carrack_measure::data::Records;

use crate::bench::numbers;
use crate::output::format;

/// The name of a tree.
const TREE: &str = "tree";
/// Files of one directory of a tree.
const FILES_IN_DIRECTORY: u64 = 1000;
const RECORD: u64 = 1 << 20;

/// What is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// One file of so many bytes.
    File(u64),
    /// Many files.
    Tree {
        /// How many.
        files: u64,
        /// Bytes of each.
        size: u64,
    },
    /// A tree of the user's.
    Own {
        /// How many files it has.
        files: u64,
        /// Bytes of all of them.
        bytes: u64,
    },
}

/// What stands before the numbers of a tree of the user's.
const OWN: &str = "tree:";

impl Data {
    /// Its name at the source, and below the directory that takes the copy.
    pub fn name(self) -> String {
        match self {
            Self::File(size) => format!("file-{size}"),
            Self::Tree { .. } | Self::Own { .. } => TREE.to_owned(),
        }
    }

    /// Bytes of all of it.
    pub fn bytes(self) -> u64 {
        match self {
            Self::File(size) => size,
            Self::Tree { files, size } => files.saturating_mul(size),
            Self::Own { bytes, .. } => bytes,
        }
    }

    /// How many files it is.
    pub fn files(self) -> u64 {
        match self {
            Self::File(_) => 1,
            Self::Tree { files, .. } | Self::Own { files, .. } => files,
        }
    }

    /// As a row's condition: `256M`, `1000x16K`.
    pub fn condition(self) -> String {
        match self {
            Self::File(size) => numbers::record(size),
            Self::Tree { files, size } => format!("{files}x{}", numbers::record(size)),
            Self::Own { files, bytes } => format!("{OWN}{files}:{bytes}"),
        }
    }

    /// From a row's condition.
    pub fn of_condition(text: &str) -> Option<Self> {
        if let Some((files, bytes)) = text.strip_prefix(OWN).and_then(|own| own.split_once(':')) {
            return Some(Self::Own { files: files.parse().ok()?, bytes: bytes.parse().ok()? });
        }
        match text.split_once('x') {
            Some((files, size)) => Some(Self::Tree { files: files.parse().ok()?, size: parse_size(size).ok()? }),
            None => parse_size(text).ok().map(Self::File),
        }
    }

    /// Whether it is a directory.
    pub fn is_tree(self) -> bool {
        !matches!(self, Self::File(_))
    }

    /// Counts a tree of the user's.
    ///
    /// # Errors
    /// Those of the file system, and that it has no file.
    pub fn count(tree: &Path) -> io::Result<Self> {
        let (mut files, mut bytes) = (0, 0_u64);
        each_below(tree, &mut |_, entry| {
            if entry.file_type()?.is_file() {
                files += 1;
                bytes = bytes.saturating_add(entry.metadata()?.len());
            }
            Ok(())
        })?;
        if bytes == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no files with content"));
        }
        Ok(Self::Own { files, bytes })
    }

    /// Makes it in a directory of this host; a tree of the user's from there.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn make(self, directory: &Path, tree: Option<&Path>) -> Result<(), Failure> {
        let failed = |error: io::Error| io_failure(Side::Command, "make the data to copy", &error);
        self.write(&directory.join(self.name()), tree).map_err(failed)
    }

    fn write(self, path: &Path, tree: Option<&Path>) -> io::Result<()> {
        match self {
            Self::File(size) => write_random(path, size, size),
            Self::Tree { files, size } => {
                fs::create_dir(path)?;
                for number in 0..files {
                    let parent = path.join(format!("d{:03}", number / FILES_IN_DIRECTORY));
                    if number % FILES_IN_DIRECTORY == 0 {
                        fs::create_dir(&parent)?;
                    }
                    write_random(&parent.join(format!("f{number:06}")), size, number)?;
                }
                Ok(())
            }
            Self::Own { .. } => {
                fs::create_dir(path)?;
                let Some(tree) = tree else { return Ok(()) };
                each_below(tree, &mut |inside, entry| {
                    let (kind, to) = (entry.file_type()?, path.join(inside));
                    match () {
                        () if kind.is_dir() => fs::create_dir(to),
                        // The very content, where both are on one file system: nobody writes to it.
                        () if kind.is_file() => {
                            fs::hard_link(entry.path(), &to).or_else(|_| fs::copy(entry.path(), &to).map(|_| ()))
                        }
                        // Not every program takes anything else.
                        () => Ok(()),
                    }
                })
            }
        }
    }
}

/// Everything below a directory, with its path inside; directories before what is in them.
fn each_below(tree: &Path, each: &mut dyn FnMut(&Path, &fs::DirEntry) -> io::Result<()>) -> io::Result<()> {
    let mut left = vec![PathBuf::new()];
    while let Some(inside) = left.pop() {
        for entry in fs::read_dir(tree.join(&inside))? {
            let entry = entry?;
            let path = inside.join(entry.file_name());
            each(&path, &entry)?;
            if entry.file_type()?.is_dir() {
                left.push(path);
            }
        }
    }
    Ok(())
}

/// Hands each file of what lies at a path to `each`, be it a file or a tree.
///
/// # Errors
/// Those of the file system, and of `each`.
pub fn each_file(path: &Path, each: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    if !path.is_dir() {
        return each(path);
    }
    each_below(path, &mut |inside, entry| if entry.file_type()?.is_file() { each(&path.join(inside)) } else { Ok(()) })
}

/// Bytes that nothing on the way can make fewer; other ones for each seed.
fn write_random(path: &Path, size: u64, seed: u64) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let mut records = Records::new(RECORD.min(size.max(1)) as usize, seed);
    let mut left = size;
    while left > 0 {
        let record = records.next_record();
        let len = left.min(record.len() as u64) as usize;
        file.write_all(&record[..len])?;
        left -= len as u64;
    }
    Ok(())
}

/// Size and digest of each file, by its path below the tree; of a single file by its name.
pub type Content = BTreeMap<Vec<u8>, (u64, [u8; 32])>;

/// What is at a path of a place, with a digest of every file. Whether a tree lies there or in a directory of its name
/// makes no difference: some programs put a source below its destination, whatever they are told.
///
/// # Errors
/// The first file that cannot be read, or what ended the conversation.
pub fn content(files: &mut Files, path: &[u8]) -> Result<Content, Failure> {
    let mut found = Content::new();
    let mut failed = None;
    files.sum(path, Digests::BLAKE3, &mut |entry| {
        let inside = [TREE.as_bytes(), b"/"].concat();
        let mut name = entry.path.as_slice();
        while let Some(rest) = name.strip_prefix(inside.as_slice()) {
            name = rest;
        }
        match entry.result.map(|digests| digests.blake3) {
            Ok(Some(digest)) => {
                found.insert(name.to_vec(), (entry.size, digest));
            }
            Ok(None) => {}
            Err(why) => failed = Some(why),
        }
    })?;
    failed.map_or(Ok(found), Err)
}

/// What is wrong with a copy: a sentence, or nothing.
pub fn difference(expected: &Content, found: &Content) -> Option<String> {
    let missing = expected.keys().filter(|name| !found.contains_key(*name)).count();
    let more = found.keys().filter(|name| !expected.contains_key(*name)).count();
    let both = expected.iter().filter_map(|(name, source)| Some((source, found.get(name)?)));
    let (mut short, mut altered) = (0, 0);
    for (source, copy) in both {
        short += usize::from(source.0 != copy.0);
        altered += usize::from(source.0 == copy.0 && source.1 != copy.1);
    }
    let told = [
        (missing, "missing"),
        (short, "of another size"),
        (altered, "with other bytes"),
        (more, "that nobody has sent"),
    ];
    let told: Vec<String> = told
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", format::counted(*count as u64, "file", "files")))
        .collect();
    (!told.is_empty()).then(|| format!("the copy is wrong: {}", told.join(", ")))
}

/// Refuses data for which a directory of this host has no room.
///
/// # Errors
/// That there is none, or what the file system says.
pub fn check_room(directory: &Path, needed: u64) -> Result<(), Failure> {
    /// Share of the free space that may be used.
    const FREE_SHARE: f64 = 0.9;
    let space = carrack_sys::dir::Dir::open_ambient(directory).and_then(|open| open.free_space());
    let space = space.map_err(|error| io_failure(Side::Command, format!("open {}", directory.display()), &error))?;
    if needed as f64 <= space.bytes_available as f64 * FREE_SHARE {
        return Ok(());
    }
    let why = format!(
        "{} has {} free, and {} would be written: a tenth of the free space stays free",
        directory.display(),
        format::size(space.bytes_available),
        format::size(needed)
    );
    Err(Failure::new(ErrorCode::NoSpace, Side::Command, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_made_as_it_is_described_and_nothing_in_it_repeats() {
        let place = tempfile::tempdir().expect("a directory");
        let (file, tree) = (Data::File((3 << 20) + 5), Data::Tree { files: 1001, size: 700 });
        for data in [file, tree] {
            data.make(place.path(), None).expect("made");
        }
        let content = fs::read(place.path().join(file.name())).expect("a file");
        assert_eq!(content.len(), (3 << 20) + 5);
        assert_ne!(content[..1 << 20], content[1 << 20..2 << 20]);
        let of = |name: &str| fs::read(place.path().join("tree").join(name)).expect("a file");
        assert_eq!(of("d000/f000000").len(), 700);
        assert_ne!(of("d000/f000000"), of("d001/f001000"));
        assert_eq!((file.condition(), tree.condition()), ("3145733".to_owned(), "1001x700".to_owned()));
        assert_eq!((tree.bytes(), tree.files(), Data::File(0).bytes()), (700_700, 1001, 0));
    }

    #[test]
    fn tree_of_the_user_is_copied_as_it_is_and_stays() {
        let (own, place) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        fs::create_dir_all(own.path().join("a/empty")).expect("made");
        fs::write(own.path().join("a/one"), b"12345").expect("written");
        fs::write(own.path().join("two"), b"678").expect("written");
        std::os::unix::fs::symlink("nowhere", own.path().join("link")).expect("made");
        let data = Data::count(own.path()).expect("counted");
        assert_eq!(data, Data::Own { files: 2, bytes: 8 });
        assert_eq!(Data::of_condition(&data.condition()), Some(data));
        data.make(place.path(), Some(own.path())).expect("made");
        let made = place.path().join(data.name());
        assert_eq!(fs::read(made.join("a/one")).expect("a file"), b"12345");
        assert!(made.join("a/empty").is_dir() && fs::symlink_metadata(made.join("link")).is_err());
        fs::remove_dir_all(&made).expect("removed");
        assert_eq!(fs::read(own.path().join("two")).expect("a file"), b"678");
        assert!(Data::count(&own.path().join("a/empty")).is_err() && Data::count(&own.path().join("none")).is_err());
        for data in [Data::File(5), Data::Tree { files: 1001, size: 700 }] {
            assert_eq!(Data::of_condition(&data.condition()), Some(data));
        }
        assert_eq!((Data::of_condition("x"), Data::of_condition("tree:1")), (None, None));
    }

    #[test]
    fn difference_counts_what_is_wrong() {
        let content = |files: &[(&str, u64, u8)]| -> Content {
            files.iter().map(|(name, size, byte)| (name.as_bytes().to_vec(), (*size, [*byte; 32]))).collect()
        };
        let expected = content(&[("a", 1, 1), ("b", 2, 2), ("c", 3, 3)]);
        assert_eq!(difference(&expected, &expected), None);
        let wrong = content(&[("a", 1, 9), ("b", 1, 2), ("d", 1, 1)]);
        assert_eq!(
            difference(&expected, &wrong).as_deref(),
            Some(
                "the copy is wrong: 1 file missing, 1 file of another size, 1 file with other bytes, 1 file that nobody \
                 has sent"
            )
        );
        assert!(difference(&expected, &Content::new()).is_some_and(|why| why.contains("3 files missing")));
    }

    #[test]
    fn room_is_asked_for_before_anything_is_written() {
        let place = tempfile::tempdir().expect("a directory");
        check_room(place.path(), 1).expect("room");
        assert!(check_room(place.path(), u64::MAX).is_err_and(|why| why.code == ErrorCode::NoSpace));
    }
}
