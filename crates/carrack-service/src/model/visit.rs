//! Where a task was at work, and what failed there: kept of each task, so that faults can be counted by the place at
//! which they come. A visit has every directory in which an item was tried, also where nothing failed: a place is
//! judged by what went well there, too.

use std::collections::BTreeMap;

use carrack_core::failure::{Blame, ErrorCode};
use carrack_core::location::encoded_path;
use serde::{Deserialize, Serialize};

/// Directories that a visit tells apart. Of more, the deepest ones count for those that they are in: which they are
/// depends on what was tried, and not on what failed.
pub const DIRECTORIES_MOST: usize = 32;
/// PairVisits that a task keeps: those of its first pairs.
pub const VISITS_MOST: usize = 64;
/// Longer paths of directories count for those that they are in, in bytes.
const PATH_MOST: usize = 512;

/// One end of a pair of a task.
#[derive(Clone, PartialEq, Eq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct EndVisit {
    /// The host, as figures name it.
    #[prost(string, tag = "1")]
    pub host: String,
    /// The endpoint.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// What stands above the endpoint's paths.
    #[prost(bytes = "vec", tag = "3")]
    #[serde(with = "encoded_path", skip_serializing_if = "Vec::is_empty")]
    pub root: Vec<u8>,
    /// The file system, where the host tells one; 32 hexadecimal digits.
    #[prost(string, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// The directory that the paths of items are relative to.
    #[prost(bytes = "vec", tag = "5")]
    #[serde(with = "encoded_path")]
    pub directory: Vec<u8>,
    /// Codes of what failed at the host, before any item or beside all of them; each once.
    #[prost(string, repeated, tag = "6")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// Codes of what failed on the file system, and in no directory of its own; each once.
    #[prost(string, repeated, tag = "7")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disk_faults: Vec<String>,
    /// The most names that paths of directories have, where deeper ones were put together.
    #[prost(uint32, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth_most: Option<u32>,
    /// Directories in which items were tried, by their paths.
    #[prost(message, repeated, tag = "8")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<VisitedDirectory>,
}

/// A directory in which items were tried.
#[derive(Clone, PartialEq, Eq, prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct VisitedDirectory {
    /// Relative to the visit's; empty: that itself.
    #[prost(bytes = "vec", tag = "1")]
    #[serde(with = "encoded_path")]
    pub path: Vec<u8>,
    /// Codes of what failed there, each once.
    #[prost(string, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// What a failure at the side of an endpoint says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultMeaning {
    /// It was not reached, or let nobody in.
    Unreached,
    /// It was reached, and does not do what it should.
    Faulty,
    /// It was reached, and is well: what was asked for is not there, or not allowed.
    Reached,
    /// Nothing.
    Nothing,
}

impl FaultMeaning {
    /// The meaning of an error code by its name.
    pub fn of(code: &str) -> Self {
        let Some(code) = ErrorCode::ALL.iter().find(|known| known.name() == code) else { return Self::Nothing };
        match (code, code.blame()) {
            (ErrorCode::NodeReadOnly | ErrorCode::OutsideRoot, _) => Self::Reached,
            (ErrorCode::Busy, _) | (ErrorCode::ProtocolViolation | ErrorCode::BadPath, _) => Self::Faulty,
            (
                ErrorCode::InputOutput
                | ErrorCode::NoSpace
                | ErrorCode::QuotaExceeded
                | ErrorCode::ReadOnlyFileSystem
                | ErrorCode::DigestMismatch
                | ErrorCode::ResourceLimit,
                _,
            ) => Self::Faulty,
            (_, Blame::Network | Blame::Authorization | Blame::Peer) => Self::Unreached,
            (_, Blame::File) => Self::Reached,
            (_, Blame::User | Blame::Carrack) => Self::Nothing,
        }
    }

    /// Whether the place has failed.
    pub fn is_fault(self) -> bool {
        matches!(self, Self::Unreached | Self::Faulty)
    }
}

/// Adds codes that are not there yet.
pub fn add_codes(to: &mut Vec<String>, more: &[String]) {
    for code in more {
        if let Err(place) = to.binary_search(code) {
            to.insert(place, code.clone());
        }
    }
}

impl EndVisit {
    /// An item was tried in this directory, relative to the visit's; with the code of its failure, if it failed.
    pub fn tried(&mut self, directory: &[u8], fault: Option<&str>) {
        let fault: Vec<String> = fault.into_iter().map(str::to_owned).collect();
        let path = self.within_depth(short(directory));
        match self.directories.binary_search_by(|known| known.path[..].cmp(path)) {
            Ok(place) => add_codes(&mut self.directories[place].faults, &fault),
            Err(place) => {
                let found = VisitedDirectory { path: path.to_vec(), faults: fault };
                self.directories.insert(place, found);
                self.fold();
            }
        }
    }

    /// Takes in what another attempt has met at the same end.
    pub fn merge(&mut self, other: &Self) {
        if other.disk.is_some() {
            self.disk.clone_from(&other.disk);
        }
        add_codes(&mut self.faults, &other.faults);
        add_codes(&mut self.disk_faults, &other.disk_faults);
        let depths = [self.depth_most, other.depth_most];
        self.depth_most = depths.into_iter().flatten().min();
        self.directories.extend(other.directories.iter().cloned());
        self.put_together();
        self.fold();
    }

    /// Whether another one is of the same end.
    pub fn is_of(&self, other: &Self) -> bool {
        (&self.host, &self.endpoint, &self.directory) == (&other.host, &other.endpoint, &other.directory)
    }

    /// The same by the name of the endpoint alone: where that is, its users need not know.
    #[must_use]
    pub fn by_endpoint(mut self) -> Self {
        let Some(endpoint) = &self.endpoint else { return self };
        self.host = format!("@{endpoint}");
        let below = self.directory.strip_prefix(&self.root[..]).unwrap_or(&self.directory);
        self.directory = [if below.starts_with(b"/") { &b""[..] } else { b"/" }, below].concat();
        self.root = Vec::new();
        self
    }

    /// Puts the deepest directories together with those that they are in, until there are few enough.
    fn fold(&mut self) {
        while self.directories.len() > DIRECTORIES_MOST {
            let deepest = self.directories.iter().map(|known| depth(&known.path)).max().unwrap_or(0);
            self.depth_most = Some(deepest.saturating_sub(1));
            self.put_together();
        }
    }

    fn put_together(&mut self) {
        let mut all: BTreeMap<Vec<u8>, Vec<String>> = BTreeMap::new();
        for VisitedDirectory { path, faults } in std::mem::take(&mut self.directories) {
            add_codes(all.entry(self.within_depth(&path).to_vec()).or_default(), &faults);
        }
        self.directories = all.into_iter().map(|(path, faults)| VisitedDirectory { path, faults }).collect();
    }

    fn within_depth<'a>(&self, mut path: &'a [u8]) -> &'a [u8] {
        while self.depth_most.is_some_and(|most| depth(path) > most) {
            path = parent(path);
        }
        path
    }
}

/// Takes in the visits of another attempt of the same task.
pub fn merge_visits(known: &mut Vec<EndVisit>, more: &[EndVisit]) {
    for visit in more {
        if let Some(same) = known.iter_mut().find(|other| other.is_of(visit)) {
            same.merge(visit);
        } else if known.len() < VISITS_MOST {
            known.push(visit.clone());
        }
    }
}

/// How many names a path has.
fn depth(path: &[u8]) -> u32 {
    let slashes = path.iter().filter(|byte| **byte == b'/').count();
    if path.is_empty() { 0 } else { u32::try_from(slashes).unwrap_or(u32::MAX).saturating_add(1) }
}

/// The directory that a path is in, relative as it is; empty: the one that it begins at.
pub fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(b"", |slash| &path[..slash])
}

fn short(mut path: &[u8]) -> &[u8] {
    while path.len() > PATH_MOST {
        path = parent(path);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(visit: &EndVisit) -> Vec<&str> {
        visit.directories.iter().map(|known| std::str::from_utf8(&known.path).unwrap()).collect()
    }

    #[test]
    fn visit_folds_the_deepest_directories_whatever_failed_and_in_whatever_order() {
        let tried: Vec<String> = (0..40).map(|number| format!("a/b{}/c{number}", number % 4)).collect();
        let mut one = EndVisit::default();
        tried.iter().for_each(|path| one.tried(path.as_bytes(), None));
        assert_eq!(paths(&one), ["a/b0", "a/b1", "a/b2", "a/b3"]);
        let mut other = EndVisit::default();
        for path in tried.iter().rev() {
            other.tried(path.as_bytes(), path.ends_with("c7").then_some("input-output"));
        }
        assert_eq!(paths(&other), paths(&one));
        let mut both = one;
        both.merge(&other);
        assert_eq!(paths(&both), paths(&other));
        let faulty: Vec<_> = both.directories.iter().filter(|known| !known.faults.is_empty()).collect();
        assert_eq!(faulty.len(), 1);
        assert_eq!((&faulty[0].path[..], &faulty[0].faults[..]), (&b"a/b3"[..], &["input-output".to_owned()][..]));
    }

    #[test]
    fn visit_told_by_its_endpoint_names_neither_host_nor_root() {
        let visit = |root: &str, directory: &str| EndVisit {
            host: "10.0.0.1".into(),
            endpoint: Some("lab".into()),
            root: root.into(),
            directory: directory.into(),
            ..EndVisit::default()
        };
        for (root, directory, expected) in
            [("/data", "/data/run", "/run"), ("/data", "/data", "/"), ("/", "/a", "/a"), ("", "/a", "/a")]
        {
            let told = visit(root, directory).by_endpoint();
            assert_eq!((told.host.as_str(), &told.directory[..]), ("@lab", expected.as_bytes()));
            assert!(told.root.is_empty());
        }
    }

    #[test]
    fn failures_of_files_say_that_an_endpoint_was_reached_and_those_of_its_host_that_it_was_not() {
        let unreached = |code: &&ErrorCode| FaultMeaning::of(code.name()) == FaultMeaning::Unreached;
        for (code, expected) in [
            (ErrorCode::ConnectFailed, FaultMeaning::Unreached),
            (ErrorCode::AuthenticationFailed, FaultMeaning::Unreached),
            (ErrorCode::KeyMismatch, FaultMeaning::Unreached),
            (ErrorCode::Silence, FaultMeaning::Unreached),
            (ErrorCode::VersionMismatch, FaultMeaning::Unreached),
            (ErrorCode::Busy, FaultMeaning::Faulty),
            (ErrorCode::NoSpace, FaultMeaning::Faulty),
            (ErrorCode::InputOutput, FaultMeaning::Faulty),
            (ErrorCode::DigestMismatch, FaultMeaning::Faulty),
            (ErrorCode::NotFound, FaultMeaning::Reached),
            (ErrorCode::PermissionDenied, FaultMeaning::Reached),
            (ErrorCode::OutsideRoot, FaultMeaning::Reached),
            (ErrorCode::DeadlinePassed, FaultMeaning::Nothing),
            (ErrorCode::Internal, FaultMeaning::Nothing),
        ] {
            assert_eq!(FaultMeaning::of(code.name()), expected, "{}", code.name());
        }
        // A code of a newer program says nothing.
        assert_eq!(FaultMeaning::of("on-the-moon"), FaultMeaning::Nothing);
        assert!(ErrorCode::ALL.iter().filter(unreached).count() > 8);
    }
}
