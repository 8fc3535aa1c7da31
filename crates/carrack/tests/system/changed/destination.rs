//! The destination between two sessions: found as the first has left it, and altered by somebody else.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use super::case::{Case, Content, PAGE, State};
use crate::support::tool;

/// The directory that is copied into.
pub struct Destination {
    pub at: PathBuf,
    /// In memory, where files may be written through a mapping without a trace.
    pub in_memory: bool,
}

impl Destination {
    /// The name of a case.
    pub fn path(&self, case: &Case) -> PathBuf {
        self.at.join(case.path())
    }

    /// What the first session has left of a file that it had not whole.
    fn part(&self, case: &Case) -> Option<PathBuf> {
        let path = self.path(case);
        let begin = format!(".{}.carrack-", path.file_name().unwrap().to_str().unwrap());
        let entries = fs::read_dir(path.parent().unwrap()).ok()?;
        entries.flatten().map(|entry| entry.path()).find(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(&begin) && name.ends_with(".part")
        })
    }

    /// Whether the first session has come as far as the case wants: published, or the last block
    /// landed and the first not.
    pub fn has_come(&self, case: &Case) -> bool {
        if !case.state.is_part() {
            return self.path(case).exists();
        }
        let mut start = [0; 64];
        let landed = |part: PathBuf| {
            File::open(part).is_ok_and(|part| part.read_exact_at(&mut start, case.tail().start as u64).is_ok())
                && start != [0; 64]
        };
        self.part(case).is_some_and(landed) || self.path(case).exists()
    }

    /// Whether a case is in the state that its name says, before that is altered.
    pub fn is_as_wanted(&self, case: &Case) -> bool {
        self.path(case).exists() != case.state.is_part() && self.part(case).is_some() == case.state.is_part()
    }

    /// Alters what stands there.
    pub fn alter(&self, case: &Case, content: &Content, elsewhere: &Path) {
        let path = self.path(case);
        let found = if case.state.is_part() { self.part(case).unwrap() } else { path };
        let modified = fs::metadata(&found).unwrap().modified().unwrap();
        let tail = case.tail();
        match case.state {
            State::Published | State::Part => {}
            State::PublishedLinked | State::PartLinked => {
                fs::hard_link(&found, elsewhere.join(format!("{case:?}").replace(' ', ""))).unwrap();
            }
            State::PublishedReplaced | State::PartReplaced => {
                let other = found.with_extension("other");
                fs::write(&other, content.foreign(case.size())).unwrap();
                put_back(&other, modified);
                fs::rename(&other, &found).unwrap();
            }
            State::PublishedOverwritten => {
                self.write_at(&found, tail.start, tail.len(), 0x5b, modified);
            }
            State::PartAltered => {
                let mut byte = [0];
                File::open(&found).unwrap().read_exact_at(&mut byte, tail.start as u64 + 99).unwrap();
                self.write_at(&found, tail.start + 99, 1, byte[0] ^ 1, modified);
            }
            State::PartPunched => {
                let punch = format!("fpunch {} {}", tail.start, tail.len());
                tool(Command::new("xfs_io").args(["-c", &punch]).arg(&found));
                put_back(&found, modified);
            }
            State::PartTruncated => {
                File::options().write(true).open(&found).unwrap().set_len(tail.start as u64).unwrap();
                put_back(&found, modified);
            }
            State::PublishedRemoved => fs::remove_file(&found).unwrap(),
        }
    }

    fn write_at(&self, path: &Path, place: usize, length: usize, byte: u8, modified: SystemTime) {
        if self.in_memory {
            let end = (place + length).next_multiple_of(PAGE);
            let [map, read, write] = [
                format!("mmap -rw 0 {end}"),
                format!("mread {place} {length}"),
                format!("mwrite -S {byte} {place} {length}"),
            ];
            tool(Command::new("xfs_io").args(["-c", &map, "-c", &read, "-c", &write]).arg(path));
            assert_eq!(fs::metadata(path).unwrap().modified().unwrap(), modified);
        } else {
            File::options().write(true).open(path).unwrap().write_all_at(&vec![byte; length], place as u64).unwrap();
            put_back(path, modified);
        }
    }

    /// The journal of the first session.
    pub fn marker(&self) -> PathBuf {
        let entries = fs::read_dir(&self.at).unwrap().flatten().map(|entry| entry.path());
        let mut markers = entries.filter(|path| path.to_string_lossy().ends_with(".marker"));
        markers.next().expect("the first session has left a marker")
    }

    /// Whether nobody holds the marker any more: a node takes a moment to notice that the command is gone.
    pub fn is_left(&self) -> bool {
        File::open(self.marker()).is_ok_and(|marker| carrack_sys::file::try_lock(&marker).unwrap())
    }

    /// Alters a byte in the second half of the marker.
    pub fn damage_marker(&self) {
        let path = self.marker();
        let mut bytes = fs::read(&path).unwrap();
        let place = bytes.len() * 3 / 4;
        bytes[place] ^= 1;
        fs::write(path, bytes).unwrap();
    }
}

fn put_back(path: &Path, modified: SystemTime) {
    File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}
