//! Results in files of the state directory: `ENDPOINT.KIND.json`.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::PathBuf;

use carrack_engine::secrets::write_whole;

use super::run::RESULT_BYTES;
use crate::model::{BenchKind, BenchResult};

/// The files.
pub struct Kept(PathBuf);

impl Kept {
    /// Those in a directory.
    pub fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    fn path(&self, endpoint: &str, kind: BenchKind) -> PathBuf {
        self.0.join(format!("{endpoint}.{}.json", kind.name()))
    }

    /// Writes a result in place of the one before.
    pub fn write(&self, endpoint: &str, result: &BenchResult) -> io::Result<()> {
        write_whole(&self.path(endpoint, result.kind), &serde_json::to_vec(result)?)
    }

    /// The results of an endpoint. One that cannot be read is an error, not left out.
    pub fn read(&self, endpoint: &str) -> io::Result<Vec<BenchResult>> {
        let mut results = Vec::new();
        for &kind in BenchKind::ALL {
            let path = self.path(endpoint, kind);
            let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            let mut text = Vec::new();
            match File::open(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(named(error)),
                Ok(file) => file.take(RESULT_BYTES).read_to_end(&mut text).map_err(named)?,
            };
            results.push(serde_json::from_slice(&text).map_err(|error| named(error.into()))?);
        }
        Ok(results)
    }

    /// Removes the results of an endpoint.
    pub fn remove(&self, endpoint: &str) -> io::Result<()> {
        for &kind in BenchKind::ALL {
            match std::fs::remove_file(self.path(endpoint, kind)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}
