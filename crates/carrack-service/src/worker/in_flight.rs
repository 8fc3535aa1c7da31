//! The files in flight of a task: a file beside its journal that the worker writes anew once a second at most, and that
//! is there only while something is in flight. Nobody needs it any more when the attempt has ended: it is never synced,
//! it is not in the journal, and where it cannot be written nothing is shown.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use carrack_core::limits;
use carrack_core::report::ItemInFlight;
use prost::Message;

use crate::model::Fence;

/// The file, below a task's directory.
const IN_FLIGHT: &str = "in-flight";
/// The file while it is written.
const IN_FLIGHT_NEXT: &str = "in-flight.next";
/// It is written no more often than this.
const EVERY: Duration = Duration::from_millis(500);
/// No worker writes a longer one.
const BYTES_MAX: u64 = (limits::IN_FLIGHT_PATHS_BYTES + limits::IN_FLIGHT * 64) as u64;

/// What stands in the file.
#[derive(Clone, PartialEq, Message)]
struct Told {
    /// The attempt that has written it.
    #[prost(uint64, tag = "1")]
    fence: Fence,
    /// The pair of the task that all of them are of, from 0.
    #[prost(uint32, tag = "2")]
    pair: u32,
    #[prost(message, repeated, tag = "3")]
    files: Vec<ToldFile>,
}

#[derive(Clone, PartialEq, Message)]
struct ToldFile {
    #[prost(bytes = "vec", tag = "1")]
    path: Vec<u8>,
    #[prost(uint64, optional, tag = "2")]
    size: Option<u64>,
    #[prost(uint64, tag = "3")]
    bytes: u64,
}

/// Tells the files in flight of one attempt.
#[derive(Debug)]
pub struct InFlightFile {
    directory: PathBuf,
    fence: Fence,
    is_told: bool,
    /// When it was written last, and how long after that it is again.
    written: Option<Instant>,
    every: Duration,
}

impl InFlightFile {
    /// Nothing is in flight yet. What an earlier attempt has left goes.
    pub fn begin(directory: &Path, fence: Fence) -> Self {
        let mut told = Self { directory: directory.to_owned(), fence, is_told: true, written: None, every: EVERY };
        told.end();
        told
    }

    /// These files of a pair are in flight from now on.
    pub fn tell(&mut self, pair: u32, files: Vec<ItemInFlight>) {
        if files.is_empty() {
            return self.end();
        }
        // The other host says when it tells: more often than this nobody looks.
        if self.written.is_some_and(|at| at.elapsed() < self.every) {
            return;
        }
        self.written = Some(Instant::now());
        let of = |ItemInFlight { path, size, bytes }| ToldFile { path, size, bytes };
        let told = Told { fence: self.fence, pair, files: files.into_iter().map(of).collect() };
        if self.write(&told.encode_to_vec()).is_err() {
            // What was true before is not now.
            self.is_told = true;
            self.end();
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let next = self.directory.join(IN_FLIGHT_NEXT);
        let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&next)?;
        file.write_all(bytes)?;
        fs::rename(next, self.directory.join(IN_FLIGHT))?;
        self.is_told = true;
        Ok(())
    }

    /// Nothing is in flight any more.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.is_told) {
            // Where it stays, whoever reads it knows by its fence that the attempt is over.
            for name in [IN_FLIGHT, IN_FLIGHT_NEXT] {
                let _ = fs::remove_file(self.directory.join(name));
            }
        }
    }
}

impl Drop for InFlightFile {
    fn drop(&mut self) {
        self.end();
    }
}

/// The pair and the files in flight of a task's attempt. What an earlier attempt has left, and what cannot be read, is
/// nothing.
pub fn of(directory: &Path, fence: Fence) -> Option<(u32, Vec<ItemInFlight>)> {
    let mut bytes = Vec::new();
    File::open(directory.join(IN_FLIGHT)).ok()?.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let told = Told::decode(&bytes[..]).ok().filter(|told| told.fence == fence)?;
    let of = |ToldFile { path, size, bytes }| ItemInFlight { path, size, bytes };
    Some((told.pair, told.files.into_iter().map(of).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &[u8], bytes: u64) -> ItemInFlight {
        ItemInFlight { path: path.to_vec(), size: Some(9), bytes }
    }

    #[test]
    fn files_in_flight_are_those_told_last_by_this_attempt() {
        let home = tempfile::tempdir().unwrap();
        let mut told = InFlightFile::begin(home.path(), 3);
        assert_eq!(of(home.path(), 3), None);
        // Another host may tell as often as it likes.
        told.tell(1, vec![file(b"first", 0)]);
        told.tell(1, vec![file(b"too soon", 0)]);
        assert_eq!(of(home.path(), 3), Some((1, vec![file(b"first", 0)])));
        told.every = Duration::ZERO;
        let all = vec![file(b"a/\xff\n", 1), ItemInFlight { size: None, ..file(b"b", 2) }];
        told.tell(7, vec![file(b"a", 0)]);
        told.tell(7, all.clone());
        assert_eq!(of(home.path(), 3), Some((7, all)));
        for other in [2, 4] {
            assert_eq!(of(home.path(), other), None, "of another attempt");
        }
        told.tell(7, Vec::new());
        assert_eq!((of(home.path(), 3), fs::read_dir(home.path()).unwrap().count()), (None, 0));
        told.tell(0, vec![file(b"a", 3)]);
        assert!(of(home.path(), 3).is_some());
        drop(told);
        assert_eq!(of(home.path(), 3), None, "the attempt has ended");
    }

    #[test]
    fn files_in_flight_of_an_attempt_that_was_killed_go_with_the_next() {
        let home = tempfile::tempdir().unwrap();
        let mut killed = InFlightFile::begin(home.path(), 1);
        killed.tell(0, vec![file(b"a", 1)]);
        std::mem::forget(killed);
        assert!(of(home.path(), 1).is_some());
        let _next = InFlightFile::begin(home.path(), 2);
        assert_eq!((of(home.path(), 1), of(home.path(), 2)), (None, None));
    }

    #[test]
    fn files_in_flight_that_are_as_long_as_may_be_are_read() {
        let home = tempfile::tempdir().unwrap();
        let path = vec![b'p'; limits::IN_FLIGHT_PATHS_BYTES / limits::IN_FLIGHT];
        let most = vec![ItemInFlight { path, size: Some(u64::MAX), bytes: u64::MAX }; limits::IN_FLIGHT];
        let mut told = InFlightFile::begin(home.path(), u64::MAX);
        told.tell(u32::MAX, most.clone());
        assert_eq!(of(home.path(), u64::MAX), Some((u32::MAX, most)));
        // A torn one is nothing.
        fs::write(home.path().join(IN_FLIGHT), b"\x08\x03\x1a\xff").unwrap();
        assert_eq!(of(home.path(), 3), None);
    }
}
