//! Results in files of the state directory: `ENDPOINT.KIND.json`; of a path `ENDPOINT@ENDPOINT.path.json`, the two
//! names in order.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use carrack_engine::secrets::write_whole;

use serde::de::DeserializeOwned;

use super::paths::PathNames;
use super::run::RESULT_BYTES;
use crate::model::{BenchKind, BenchResult, PathResult};

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
        BenchKind::ALL.iter().filter_map(|&kind| read(&self.path(endpoint, kind)).transpose()).collect()
    }

    fn path_of_path(&self, names: &PathNames) -> PathBuf {
        self.0.join(format!("{}{PATH_END}", names.in_order().join(BETWEEN)))
    }

    /// Writes the result of a path in place of the one before.
    pub fn write_path(&self, names: &PathNames, result: &PathResult) -> io::Result<()> {
        write_whole(&self.path_of_path(names), &serde_json::to_vec(result)?)
    }

    /// The result of a path; none: there is none.
    pub fn read_path(&self, names: &PathNames) -> io::Result<Option<PathResult>> {
        read(&self.path_of_path(names))
    }

    /// Removes the results of an endpoint and of all its paths.
    pub fn remove(&self, endpoint: &str) -> io::Result<()> {
        for &kind in BenchKind::ALL {
            gone(std::fs::remove_file(self.path(endpoint, kind)))?;
        }
        let Some(all) = gone(std::fs::read_dir(&self.0))? else { return Ok(()) };
        for entry in all {
            let entry = entry?;
            let name = entry.file_name();
            let names = name.to_str().and_then(|name| name.strip_suffix(PATH_END));
            if names.is_some_and(|names| names.split(BETWEEN).any(|name| name == endpoint)) {
                gone(std::fs::remove_file(entry.path()))?;
            }
        }
        Ok(())
    }
}

/// What stands between the names of a path's ends: no name of an endpoint has it.
const BETWEEN: &str = "@";
/// How the name of a path's file ends.
const PATH_END: &str = ".path.json";

/// What is not there is none.
fn gone<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let Some(file) = gone(File::open(path)).map_err(named)? else { return Ok(None) };
    let mut text = Vec::new();
    file.take(RESULT_BYTES).read_to_end(&mut text).map_err(named)?;
    serde_json::from_slice(&text).map(Some).map_err(|error| named(error.into()))
}
