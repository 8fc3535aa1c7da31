//! By which keys the passes of a task have marked what they left at their destinations, kept beside the task's journal:
//! what a task has left can be found when it has ended, and by nobody who does not know its keys.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use carrack_core::limits;
use data_encoding::HEXLOWER;

/// Lines of a pair's number and a key in hexadecimal.
const MARKERS: &str = "markers";

/// A key, and the pair that it marks.
pub type PairMarker = (u32, [u8; limits::MARKER_KEY_BYTES]);

/// Keeps a key, before anything is left by it.
///
/// # Errors
/// Those of the file.
pub fn keep(directory: &Path, marker: PairMarker) -> io::Result<()> {
    if all(directory)?.contains(&marker) {
        return Ok(());
    }
    let mut file = File::options().append(true).create(true).mode(0o600).open(directory.join(MARKERS))?;
    // One that was torn off would take this one with it.
    file.write_all(format!("\n{} {}\n", marker.0, HEXLOWER.encode(&marker.1)).as_bytes())?;
    file.sync_data()
}

/// All keys of a task, in the order in which they were first used.
///
/// # Errors
/// Those of the file.
pub fn all(directory: &Path) -> io::Result<Vec<PairMarker>> {
    let text = match std::fs::read_to_string(directory.join(MARKERS)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let parse = |line: &str| {
        let (pair, key) = line.split_once(' ')?;
        Some((pair.parse().ok()?, HEXLOWER.decode(key.as_bytes()).ok()?.try_into().ok()?))
    };
    Ok(text.lines().filter_map(parse).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_kept_once_and_one_that_was_torn_off_costs_no_other() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(all(home.path()).unwrap(), []);
        for marker in [(0, [1; 8]), (7, [2; 8]), (0, [1; 8])] {
            keep(home.path(), marker).unwrap();
        }
        assert_eq!(all(home.path()).unwrap(), [(0, [1; 8]), (7, [2; 8])]);
        let path = home.path().join(MARKERS);
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 4]).unwrap();
        keep(home.path(), (1, [3; 8])).unwrap();
        assert_eq!(all(home.path()).unwrap(), [(0, [1; 8]), (1, [3; 8])]);
    }
}
