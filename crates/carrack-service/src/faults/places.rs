//! At which places a task was at work, and at which of them it had a fault.

use std::collections::{BTreeMap, BTreeSet};

use carrack_core::location::encode_path;
use carrack_core::path::bare;

use crate::model::{EndVisit, FaultPlace, PlaceKind, parent};

/// Names of a path that are told apart: a deeper directory counts for the one that it is in.
const NAMES_MOST: usize = 12;
/// Bytes that a place takes beside its names, as it is kept.
const PLACE_BYTES: usize = 128;

/// A place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetPlace {
    /// A host.
    Host(String),
    /// A file system of a host.
    Disk(String, String),
    /// A directory of a host.
    Path(String, Vec<u8>),
    /// The way between two hosts, which stand in their order.
    Link(String, String),
}

impl MetPlace {
    /// Of places with the same tasks the one is named that has the greatest rank: a file system, which fails more often
    /// than a name on it, then the narrowest.
    pub fn rank(&self) -> usize {
        match self {
            Self::Host(_) => 0,
            Self::Link(..) => 1,
            Self::Path(_, path) => 2 + path.iter().filter(|byte| **byte == b'/').count(),
            Self::Disk(..) => usize::MAX,
        }
    }

    /// About so many bytes are kept of it.
    fn bytes(&self) -> usize {
        let names = match self {
            Self::Host(host) => host.len(),
            Self::Disk(one, other) | Self::Link(one, other) => one.len() + other.len(),
            Self::Path(host, path) => host.len() + path.len(),
        };
        PLACE_BYTES + names
    }

    /// As it is told.
    pub fn told(&self) -> FaultPlace {
        let of = |kind, host: &String| FaultPlace { kind, host: host.clone(), disk: None, path: None, peer: None };
        match self {
            Self::Host(host) => of(PlaceKind::Host, host),
            Self::Disk(host, disk) => FaultPlace { disk: Some(disk.clone()), ..of(PlaceKind::Disk, host) },
            Self::Path(host, path) => FaultPlace { path: Some(encode_path(path)), ..of(PlaceKind::Path, host) },
            Self::Link(host, peer) => FaultPlace { peer: Some(peer.clone()), ..of(PlaceKind::Link, host) },
        }
    }
}

/// Places by numbers, in bounded memory.
#[derive(Debug)]
pub struct NumberedPlaces {
    numbers: BTreeMap<MetPlace, u32>,
    /// Bytes that may still be kept: of directories, and of other places. However many directories there are, hosts
    /// are counted.
    left: [usize; 2],
    /// A place had no room.
    is_full: bool,
}

impl NumberedPlaces {
    /// So many bytes of directories are kept, and as many of other places.
    pub fn within(bytes: usize) -> Self {
        Self { numbers: BTreeMap::new(), left: [bytes; 2], is_full: false }
    }

    /// The number of a place; `None` where it has no room. A place that has one counts in all tasks.
    pub fn number(&mut self, place: MetPlace) -> Option<u32> {
        if let Some(number) = self.numbers.get(&place) {
            return Some(*number);
        }
        let left = &mut self.left[usize::from(!matches!(place, MetPlace::Path(..)))];
        let Some(rest) = left.checked_sub(place.bytes()) else {
            self.is_full = true;
            return None;
        };
        *left = rest;
        let next = u32::try_from(self.numbers.len()).ok()?;
        self.numbers.insert(place, next);
        Some(next)
    }

    /// Whether every place had room.
    pub fn has_all(&self) -> bool {
        !self.is_full
    }

    /// The places in the order of their numbers.
    pub fn into_places(self) -> Vec<MetPlace> {
        let mut numbered: Vec<(u32, MetPlace)> =
            self.numbers.into_iter().map(|(place, number)| (number, place)).collect();
        numbered.sort_unstable_by_key(|(number, _)| *number);
        numbered.into_iter().map(|(_, place)| place).collect()
    }
}

/// A place at which a task was, with the codes of what failed there.
type Met = (MetPlace, Vec<String>);

/// The places of a visit.
pub fn places_of(visit: &EndVisit) -> Vec<Met> {
    let mut all = visit.faults.clone();
    let mut on_disk = visit.disk_faults.clone();
    let mut met: Vec<Met> = Vec::new();
    for known in &visit.directories {
        on_disk.extend(known.faults.iter().cloned());
        for path in above(&visit.directory, &known.path) {
            met.push((MetPlace::Path(visit.host.clone(), path), known.faults.clone()));
        }
    }
    all.extend(on_disk.iter().cloned());
    if let Some(disk) = &visit.disk {
        met.push((MetPlace::Disk(visit.host.clone(), disk.clone()), on_disk));
    }
    met.push((MetPlace::Host(visit.host.clone()), all));
    met
}

/// The places of a task, each once, in their order.
pub fn places_of_task(visits: &[EndVisit]) -> Vec<Met> {
    let mut met: Vec<Met> = visits.iter().flat_map(places_of).collect();
    met.extend(link_of(visits));
    met.sort_unstable();
    met.dedup_by(|later, first| {
        let is_same = later.0 == first.0;
        if is_same {
            first.1.append(&mut later.1);
        }
        is_same
    });
    for (_, codes) in &mut met {
        codes.sort_unstable();
        codes.dedup();
    }
    met
}

/// The way between the two hosts of a task that has two: what failed at both failed between them.
fn link_of(visits: &[EndVisit]) -> Option<Met> {
    let hosts: BTreeSet<&String> = visits.iter().map(|visit| &visit.host).collect();
    let [one, other] = hosts.into_iter().collect::<Vec<_>>()[..] else { return None };
    let at = |host: &String| -> BTreeSet<&String> {
        visits.iter().filter(|visit| visit.host == *host).flat_map(|visit| &visit.faults).collect()
    };
    let both = at(one).intersection(&at(other)).map(|code| (*code).clone()).collect();
    Some((MetPlace::Link(one.clone(), other.clone()), both))
}

/// A directory below another with all that are above it, each of no more than [`NAMES_MOST`] names. The root is left
/// out: that is the host.
fn above(base: &[u8], below: &[u8]) -> Vec<Vec<u8>> {
    let whole = match (bare(base), below) {
        (base, b"") => base.to_vec(),
        (b"/", below) => [b"/", below].concat(),
        (b"", below) => below.to_vec(),
        (base, below) => [base, b"/", below].concat(),
    };
    let mut paths = Vec::new();
    let slashes = whole.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/');
    let end = slashes.map(|(at, _)| at).nth(NAMES_MOST - 1).unwrap_or(whole.len());
    let mut path = &whole[..end];
    while !path.is_empty() && path != b"/" {
        paths.push(path.to_vec());
        path = parent(path);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::VisitedDirectory;

    #[test]
    fn fault_of_an_item_is_one_of_its_directory_and_of_all_that_it_is_in() {
        let directory = |path: &str, faults: &[&str]| VisitedDirectory {
            path: path.into(),
            faults: faults.iter().map(|code| (*code).to_owned()).collect(),
        };
        let visit = EndVisit {
            host: "h".into(),
            disk: Some("d".into()),
            directory: b"/data".to_vec(),
            faults: vec!["connection-lost".into()],
            directories: vec![directory("a/b", &["input-output"]), directory("c", &[])],
            ..EndVisit::default()
        };
        let met = places_of_task(std::slice::from_ref(&visit));
        let told: Vec<(MetPlace, usize)> = met.into_iter().map(|(place, codes)| (place, codes.len())).collect();
        let path = |path: &str| MetPlace::Path("h".into(), path.into());
        let expected = [
            (MetPlace::Host("h".into()), 2),
            (MetPlace::Disk("h".into(), "d".into()), 1),
            (path("/data"), 1),
            (path("/data/a"), 1),
            (path("/data/a/b"), 1),
            (path("/data/c"), 0),
        ];
        assert_eq!(told, expected);
        let other = EndVisit { host: "g".into(), disk: None, directories: Vec::new(), ..visit.clone() };
        let link = MetPlace::Link("g".into(), "h".into());
        assert!(places_of_task(&[visit, other]).contains(&(link, vec!["connection-lost".to_owned()])));
    }
}
