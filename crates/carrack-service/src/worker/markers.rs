//! By which keys the passes of a task have marked what they left at their destinations, kept beside the task's journal:
//! what a task has left can be found when it has ended, and by nobody who does not know its keys.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use carrack_core::limits;
use data_encoding::HEXLOWER;

/// Lines of a pair's number and a key in hexadecimal.
const MARKERS: &str = "markers";

/// A key, and the pair that it marks.
pub type PairMarker = (u32, [u8; limits::MARKER_KEY_BYTES]);

/// The keys of a task, as its attempt adds to them. A task may have ten thousand pairs: they are read once.
#[derive(Debug)]
pub struct Markers {
    path: PathBuf,
    known: HashSet<PairMarker>,
}

impl Markers {
    /// Reads the keys of a task.
    ///
    /// # Errors
    /// Those of the file, with its path.
    pub fn load(directory: &Path) -> Result<Self, String> {
        Ok(Self { path: directory.join(MARKERS), known: all(directory)?.into_iter().collect() })
    }

    /// Keeps a key, before anything is left by it.
    ///
    /// # Errors
    /// Those of the file, with its path.
    pub fn keep(&mut self, marker: PairMarker) -> Result<(), String> {
        if !self.known.insert(marker) {
            return Ok(());
        }
        let append = || {
            let mut file = File::options().append(true).create(true).mode(0o600).open(&self.path)?;
            // One that was torn off would take this one with it.
            file.write_all(format!("\n{} {}\n", marker.0, HEXLOWER.encode(&marker.1)).as_bytes())
        };
        append().map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

/// All keys of a task, in the order in which they were first used. What can be read of a damaged file counts.
///
/// # Errors
/// Those of the file, with its path.
pub fn all(directory: &Path) -> Result<Vec<PairMarker>, String> {
    let path = directory.join(MARKERS);
    let bytes = match std::fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(|error| format!("{}: {error}", path.display()))?,
    };
    let parse = |line: &str| {
        let (pair, key) = line.split_once(' ')?;
        Some((pair.parse().ok()?, HEXLOWER.decode(key.as_bytes()).ok()?.try_into().ok()?))
    };
    Ok(String::from_utf8_lossy(&bytes).lines().filter_map(parse).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_kept_once_and_one_that_was_torn_off_costs_no_other() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(all(home.path()).unwrap(), []);
        for marker in [(0, [1; 8]), (7, [2; 8]), (0, [1; 8])] {
            // Another attempt each time.
            Markers::load(home.path()).unwrap().keep(marker).unwrap();
        }
        assert_eq!(all(home.path()).unwrap(), [(0, [1; 8]), (7, [2; 8])]);
        let path = home.path().join(MARKERS);
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&text[..text.len() - 4], b"\xff"].concat()).unwrap();
        let mut markers = Markers::load(home.path()).unwrap();
        for _ in 0..2 {
            markers.keep((1, [3; 8])).unwrap();
        }
        assert_eq!(all(home.path()).unwrap(), [(0, [1; 8]), (1, [3; 8])]);
    }
}
