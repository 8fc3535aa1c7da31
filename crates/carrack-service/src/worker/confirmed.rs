//! What somebody has confirmed of a task that a guard had paused: a file below the task's directory.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The file.
const CONFIRMED: &str = "confirmed";

/// What the plan showed that somebody has looked at. It may be done, and no more than that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    /// So many items were to be deleted.
    pub deletions: u64,
    /// The source stood on this file system.
    pub file_system: Option<String>,
}

impl Confirmed {
    /// Keeps it for the next attempts of the task.
    ///
    /// # Errors
    /// Those of the file.
    pub fn keep(&self, directory: &Path) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        std::fs::write(directory.join(CONFIRMED), serde_json::to_vec(self)?)
    }

    /// What is kept of a task. What cannot be read confirms nothing.
    pub fn of(directory: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(directory.join(CONFIRMED)).ok()?).ok()
    }

    /// Nothing is confirmed any more.
    ///
    /// # Errors
    /// Those of the file.
    pub fn take_back(directory: &Path) -> io::Result<()> {
        match std::fs::remove_file(directory.join(CONFIRMED)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confirmation_is_kept_until_it_is_taken_back() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("task");
        assert_eq!(Confirmed::of(&directory), None);
        let confirmed = Confirmed { deletions: 7, file_system: Some("ab".into()) };
        confirmed.keep(&directory).unwrap();
        assert_eq!(Confirmed::of(&directory), Some(confirmed));
        std::fs::write(directory.join(CONFIRMED), "torn").unwrap();
        assert_eq!(Confirmed::of(&directory), None, "a torn one confirms nothing");
        Confirmed::take_back(&directory).unwrap();
        Confirmed::take_back(&directory).unwrap();
        assert_eq!(Confirmed::of(&directory), None);
    }
}
