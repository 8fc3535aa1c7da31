//! Where an attempt is at work, and what fails there: told before its end, so that faults are counted by their places.

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::Location;
use carrack_core::path::bare;
use carrack_core::report::Faults;
use data_encoding::HEXLOWER;

use super::order::{EndOrder, EndpointRoot, PairOrder};
use super::places::is_contents;
use crate::model::{EndVisit, FaultMeaning, TaskKind, merge_visits, parent};

/// What an attempt has visited.
#[derive(Debug, Default)]
pub struct PairVisits {
    /// Of the pairs before.
    told: Vec<EndVisit>,
    /// The ends of the pair under way that keep files.
    source: Option<EndVisit>,
    destination: Option<EndVisit>,
}

impl PairVisits {
    /// A pair begins.
    pub fn begin(&mut self, pair: &PairOrder, kind: TaskKind) {
        self.finish();
        let visit = |end, endpoint| visit(end, endpoint, kind);
        self.source = visit(&pair.source, pair.source_endpoint.as_ref());
        self.destination = pair.destination.as_ref().and_then(|end| visit(end, pair.destination_endpoint.as_ref()));
    }

    /// The destination's directory that the paths of items are relative to.
    pub fn resolved(&mut self, directory: &Location) {
        if let (Some(visit), Some(path)) = (&mut self.destination, directory.path()) {
            visit.directory = placed(path, &visit.root, directory);
        }
    }

    /// The pair is over its last item.
    pub fn finish(&mut self) {
        let ended = [self.source.take(), self.destination.take()];
        merge_visits(&mut self.told, &ended.into_iter().flatten().collect::<Vec<_>>());
    }

    /// All that was visited.
    pub fn take(&mut self) -> Vec<EndVisit> {
        self.finish();
        std::mem::take(&mut self.told)
    }

    /// An item was tried, at both ends.
    pub fn tried(&mut self, path: &[u8], failure: Option<&Failure>) {
        let fault = failure.filter(|failure| is_fault(failure));
        for (visit, side) in [(&mut self.source, Side::Source), (&mut self.destination, Side::Destination)] {
            if let Some(visit) = visit {
                let own = fault.filter(|failure| is_of(failure, side)).map(|failure| failure.code.name());
                visit.tried(parent(path), own);
            }
        }
    }

    /// Something failed beside the items.
    pub fn failed(&mut self, failure: &Failure) {
        if !is_fault(failure) {
            return;
        }
        for (visit, side) in [(&mut self.source, Side::Source), (&mut self.destination, Side::Destination)] {
            if let Some(visit) = visit.as_mut().filter(|_| is_of(failure, side)) {
                let code = failure.code.name().to_owned();
                // What a file system refuses has been reached.
                let is_of_host = FaultMeaning::of(&code) == FaultMeaning::Unreached || visit.disk.is_none();
                add(if is_of_host { &mut visit.faults } else { &mut visit.disk_faults }, code);
            }
        }
    }

    /// What a copy has found out about its ends, and what it has repaired: what came altered may be the fault of either
    /// host, and what storage gave back altered is its own.
    pub fn copied(&mut self, file_systems: [Option<[u8; 16]>; 2], faults: &Faults) {
        let altered = faults.digest_mismatches + faults.streams_altered > 0;
        let code = ErrorCode::DigestMismatch.name().to_owned();
        for (visit, key) in [&mut self.source, &mut self.destination].into_iter().zip(file_systems) {
            let Some(visit) = visit else { continue };
            visit.disk = key.map(|key| HEXLOWER.encode(&key)).or(visit.disk.take());
            if altered {
                add(&mut visit.faults, code.clone());
            }
        }
        if let Some(visit) = self.destination.as_mut().filter(|_| faults.blocks_rotten > 0) {
            add(&mut visit.disk_faults, code);
        }
    }
}

fn add(codes: &mut Vec<String>, code: String) {
    if let Err(place) = codes.binary_search(&code) {
        codes.insert(place, code);
    }
}

/// Whether a failure says something of the place where it happened, and not of what was asked for.
fn is_fault(failure: &Failure) -> bool {
    FaultMeaning::of(failure.code.name()).is_fault()
}

/// What fails between the ends may be the fault of either.
fn is_of(failure: &Failure, side: Side) -> bool {
    failure.side == side || failure.side == Side::Link
}

/// An end that keeps files.
fn visit(end: &EndOrder, endpoint: Option<&EndpointRoot>, kind: TaskKind) -> Option<EndVisit> {
    let is_kept = matches!(end.location, Location::Local(_) | Location::Node { .. } | Location::Ssh { .. });
    let path = end.location.path().filter(|_| is_kept)?;
    let root = match (&end.root, endpoint) {
        (Some(root), _) => root.clone(),
        (None, Some(endpoint)) => endpoint.base.clone(),
        (None, None) => Vec::new(),
    };
    // The directory in which a name is; a check compares what is in it.
    let directory = if is_contents(path) || kind == TaskKind::Check { bare(path) } else { above(bare(path)) };
    Some(EndVisit {
        host: end.location.place_name(),
        endpoint: endpoint.map(|endpoint| endpoint.name.clone()),
        directory: placed(directory, &root, &end.location),
        root,
        ..EndVisit::default()
    })
}

fn above(path: &[u8]) -> &[u8] {
    match parent(path) {
        b"" if path.starts_with(b"/") => b"/",
        above => above,
    }
}

/// A directory as its host has it: paths below a root are told without it, but for those of nodes.
fn placed(path: &[u8], root: &[u8], location: &Location) -> Vec<u8> {
    if matches!(location, Location::Node { .. }) {
        return path.to_vec();
    }
    let below = path.strip_prefix(b"/").unwrap_or(path);
    match (bare(root), below) {
        (b"", _) => path.to_vec(),
        (root, b"") => root.to_vec(),
        (b"/", below) => [b"/", below].concat(),
        (root, below) => [root, b"/", below].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str, root: Option<&str>) -> EndOrder {
        let location = Location::parse_document(text).unwrap();
        EndOrder { root: root.map(|root| root.as_bytes().to_vec()), ..EndOrder::at_location(location) }
    }

    fn directory(visit: &Option<EndVisit>) -> &str {
        std::str::from_utf8(&visit.as_ref().unwrap().directory).unwrap()
    }

    #[test]
    fn visit_has_the_directory_as_its_host_has_it() {
        for (text, root, expected) in [
            ("/run", Some("/data"), "/data"),
            ("/run/", Some("/data"), "/data/run"),
            ("/", Some("/data/"), "/data"),
            ("/a/b", Some("/"), "/a"),
            ("/a/b", None, "/a"),
            ("/a", None, "/"),
            ("carrack://h/data/run", None, "/data"),
            ("ssh://h/~/data/run/", None, "~/data/run"),
        ] {
            assert_eq!(directory(&visit(&end(text, root), None, TaskKind::Copy)), expected, "{text} {root:?}");
        }
    }

    #[test]
    fn visits_tell_faults_at_the_side_that_failed_and_trials_at_both() {
        let mut visits = PairVisits::default();
        visits.begin(&PairOrder::new(end("carrack://a/src/", None), Some(end("/dst", None))), TaskKind::Copy);
        visits.resolved(&Location::Local(b"/dst/in".to_vec()));
        visits.tried(b"x/1", None);
        visits.tried(b"y/2", Some(&Failure::new(ErrorCode::InputOutput, Side::Destination, "bad")));
        // Nobody's fault.
        visits.tried(b"y/3", Some(&Failure::new(ErrorCode::NotFound, Side::Source, "gone")));
        visits.failed(&Failure::new(ErrorCode::ConnectionLost, Side::Link, "lost"));
        let faults = Faults { blocks_rotten: 1, ..Faults::default() };
        visits.copied([None, Some([7; 16])], &faults);
        let told = visits.take();
        let [source, destination] = &told[..] else { panic!("{told:?}") };
        assert_eq!((source.host.as_str(), &source.directory[..]), ("a", &b"/src"[..]));
        assert_eq!(
            (&destination.directory[..], destination.disk.as_deref()),
            (&b"/dst/in"[..], Some(&*"07".repeat(16)))
        );
        let of = |visit: &EndVisit| -> Vec<(String, usize)> {
            let told = visit.directories.iter();
            told.map(|known| (String::from_utf8(known.path.clone()).unwrap(), known.faults.len())).collect()
        };
        assert_eq!(of(source), [("x".to_owned(), 0), ("y".to_owned(), 0)]);
        assert_eq!(of(destination), [("x".to_owned(), 0), ("y".to_owned(), 1)]);
        assert_eq!((source.faults.len(), destination.faults.len(), destination.disk_faults.len()), (1, 1, 1));
    }
}
