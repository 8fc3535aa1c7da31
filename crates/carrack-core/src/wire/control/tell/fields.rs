//! What an agent says as fields of a message, and from there back. What is only shown is made fit to be shown.

use std::num::NonZeroU64;
use std::time::Duration;

use super::{
    Dialed, Ended, Entry, Listening, OpenedFile, PathFacts, PlaceKey, Stages, StreamLost, Surveyed, Tell, Welcome,
    evidence, in_flight,
};
use crate::attributes::{AttributeKind, Time};
use crate::failure::{ErrorCode, Failure, Side};
use crate::judgment::Judgment;
use crate::limits;
use crate::pace::limit::StageTimes;
use crate::path::check_relative;
use crate::report::{
    Counts, DestinationCounts, Faults, ItemKind, ItemReport, Outcome, Progress, Unfinished, Unkept, UnkeptAttributes,
    UnkeptDirectories, Unsynced,
};
use crate::request::DeletionExtent;
use crate::special::SpecialFile;
use crate::wire::control::raw;
use crate::wire::values::checked_identity;
use crate::wire::{ProtocolError, Version, attributes, peer_text};

/// The longest name of a cipher suite.
const CIPHER_CHARS: usize = 64;

impl Tell {
    /// As bytes, with the number of the request that it answers; 0 for what comes unasked.
    pub fn encode(self, request: u64) -> Vec<u8> {
        raw::FromAgent { request, tell: Some(self.into()) }.to_bytes()
    }

    /// From bytes, with the number of the request that it answers.
    ///
    /// # Errors
    /// When the bytes cannot be read, or say what no agent may say.
    pub fn decode(bytes: &[u8]) -> Result<(u64, Self), ProtocolError> {
        let (request, tell) = raw::FromAgent::from_bytes(bytes)?;
        Ok((request, tell.try_into()?))
    }
}

impl TryFrom<raw::Tell> for Tell {
    type Error = ProtocolError;

    fn try_from(tell: raw::Tell) -> Result<Self, ProtocolError> {
        Ok(match tell {
            raw::Tell::Welcome(welcome) => Self::Welcome(welcome.try_into()?),
            raw::Tell::Failed(failure) => Self::Failed(failure.into()),
            raw::Tell::Done(counted) => Self::Done(counted.count),
            raw::Tell::Inspected(inspected) => Self::Inspected(all(inspected.facts)),
            raw::Tell::Listening(listening) => Self::Listening(listening.try_into()?),
            raw::Tell::Dialed(dialed) => Self::Dialed(dialed.into()),
            raw::Tell::Page(page) => Self::Page(all(page.entries)),
            raw::Tell::Sums(sums) => Self::Sums(all(sums.list)),
            raw::Tell::Progress(progress) => Self::Progress(progress.into()),
            raw::Tell::Items(items) => Self::Items(all(items.list)),
            raw::Tell::Ended(ended) => Self::Ended(Box::new(ended.into())),
            raw::Tell::Note(text) => Self::Note(peer_text(&text)),
            raw::Tell::StreamLost(raw::StreamLost { failure, stuck, retired }) => {
                Self::StreamLost(StreamLost { failure: failure.map(Into::into), stuck, retired })
            }
            raw::Tell::Stages(stages) => Self::Stages(stages.into()),
            raw::Tell::Connected(connected) => Self::Connected(Duration::from_micros(connected.round_trip_us)),
            raw::Tell::Sample(sample) => Self::Sample(Box::new((*sample).try_into()?)),
            raw::Tell::Clock(clock) => Self::Clock(clock.us),
            raw::Tell::Traced(traced) => Self::Traced(Box::new(traced.try_into()?)),
            raw::Tell::Evidence(page) => Self::Evidence(evidence::texts(page)?),
            raw::Tell::Opened(opened) => Self::Opened(opened.try_into()?),
            raw::Tell::Part(raw::Part { content }) if !(1..=limits::PART_BYTES).contains(&content.len()) => {
                return Err(ProtocolError::violation(format!(
                    "the peer sent {} bytes of a file at once",
                    content.len()
                )));
            }
            raw::Tell::Part(raw::Part { content }) => Self::Part(content),
            raw::Tell::FoldsCase(_) => Self::FoldsCase,
            raw::Tell::Changes(raw::Changes { list }) => {
                Self::Changes(list.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?)
            }
            raw::Tell::InFlight(told) => Self::InFlight(in_flight::checked(told)?),
            raw::Tell::Deletion(raw::Deletion { items, of, bytes }) => {
                Self::Deletion(DeletionExtent { items, of, bytes })
            }
        })
    }
}

impl From<Tell> for raw::Tell {
    fn from(tell: Tell) -> Self {
        match tell {
            Tell::Welcome(welcome) => Self::Welcome(welcome.into()),
            Tell::Failed(failure) => Self::Failed(failure.into()),
            Tell::Done(count) => Self::Done(raw::Counted { count }),
            Tell::Inspected(facts) => Self::Inspected(raw::Inspected { facts: all(facts) }),
            Tell::Listening(Listening { port, pin }) => {
                Self::Listening(raw::Listening { port: port.into(), pin: pin.to_vec() })
            }
            Tell::Dialed(Dialed { address, cipher, round_trip }) => {
                Self::Dialed(raw::Dialed { address, cipher, round_trip_us: micros(round_trip) })
            }
            Tell::Page(entries) => Self::Page(raw::Page { entries: all(entries) }),
            Tell::Sums(list) => Self::Sums(raw::Sums { list: all(list) }),
            Tell::Progress(progress) => Self::Progress(progress.into()),
            Tell::Items(list) => Self::Items(raw::Items { list: all(list) }),
            Tell::Ended(ended) => Self::Ended((*ended).into()),
            Tell::Note(text) => Self::Note(text),
            Tell::StreamLost(StreamLost { failure, stuck, retired }) => {
                Self::StreamLost(raw::StreamLost { failure: failure.map(Into::into), stuck, retired })
            }
            Tell::Stages(stages) => Self::Stages(stages.into()),
            Tell::Connected(round_trip) => Self::Connected(raw::Connected { round_trip_us: micros(round_trip) }),
            Tell::Sample(sample) => Self::Sample(Box::new((*sample).into())),
            Tell::Clock(us) => Self::Clock(raw::Clock { us }),
            Tell::Traced(path) => Self::Traced((*path).into()),
            Tell::Evidence(texts) => Self::Evidence(evidence::page(texts)),
            Tell::Opened(opened) => Self::Opened(opened.into()),
            Tell::Part(content) => Self::Part(raw::Part { content }),
            Tell::FoldsCase => Self::FoldsCase(raw::Empty {}),
            Tell::Deletion(DeletionExtent { items, of, bytes }) => Self::Deletion(raw::Deletion { items, of, bytes }),
            Tell::Changes(list) => Self::Changes(raw::Changes { list: all(list) }),
            Tell::InFlight(list) => Self::InFlight(raw::InFlight { list: all(list) }),
        }
    }
}

fn all<A, B: From<A>>(list: Vec<A>) -> Vec<B> {
    list.into_iter().map(B::from).collect()
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds that are less than a second.
pub(super) fn below_second(nanos: u32) -> u32 {
    nanos.min(999_999_999)
}

impl TryFrom<raw::Welcome> for Welcome {
    type Error = ProtocolError;

    fn try_from(welcome: raw::Welcome) -> Result<Self, ProtocolError> {
        let unknown = || ProtocolError::violation(format!("the peer chose version {}", welcome.version));
        let machine = match welcome.machine.len() {
            0 => None,
            length => Some(
                welcome
                    .machine
                    .try_into()
                    .map_err(|_| ProtocolError::violation(format!("the peer named its machine in {length} bytes")))?,
            ),
        };
        Ok(Self {
            version: Version::from_number(welcome.version).ok_or_else(unknown)?,
            program: peer_text(&welcome.program),
            host_id: welcome.host_id,
            processors: welcome.processors,
            local_address: welcome.local_address,
            peer_address: welcome.peer_address,
            clock_seconds: welcome.clock_seconds,
            congestion: peer_text(&welcome.congestion),
            machine,
            system: peer_text(&welcome.system),
            clock_us: welcome.clock_us,
            root: welcome.root.map(|raw::Root { device, inode }| (device, inode)),
            compresses: welcome.compresses,
        })
    }
}

impl From<Welcome> for raw::Welcome {
    fn from(welcome: Welcome) -> Self {
        Self {
            version: welcome.version.number(),
            program: welcome.program,
            host_id: welcome.host_id,
            processors: welcome.processors,
            local_address: welcome.local_address,
            peer_address: welcome.peer_address,
            clock_seconds: welcome.clock_seconds,
            congestion: welcome.congestion,
            machine: welcome.machine.map(|machine| machine.to_vec()).unwrap_or_default(),
            system: welcome.system,
            clock_us: welcome.clock_us,
            root: welcome.root.map(|(device, inode)| raw::Root { device, inode }),
            compresses: welcome.compresses,
        }
    }
}

impl TryFrom<raw::Opened> for OpenedFile {
    type Error = ProtocolError;

    fn try_from(opened: raw::Opened) -> Result<Self, ProtocolError> {
        let raw::Opened { size, mtime_seconds, mtime_nanos, identity } = opened;
        let mtime = mtime_seconds.map(|seconds| Time::new(seconds, below_second(mtime_nanos)));
        Ok(Self { size, mtime, identity: checked_identity(identity)? })
    }
}

impl From<OpenedFile> for raw::Opened {
    fn from(opened: OpenedFile) -> Self {
        Self {
            size: opened.size,
            mtime_seconds: opened.mtime.map(|mtime| mtime.seconds),
            mtime_nanos: opened.mtime.map_or(0, |mtime| mtime.nanos),
            identity: opened.identity.map(|identity| identity.to_vec()).unwrap_or_default(),
        }
    }
}

impl From<raw::PathFacts> for PathFacts {
    fn from(facts: raw::PathFacts) -> Self {
        let raw::PathFacts { kind, size, device, inode, resolved, failure, lies_in, holds, is_mount_top, file_system } =
            facts;
        let (kind, failure) = (ItemKind::from_number(kind), failure.map(Into::into));
        let keys = |keys: Vec<Vec<u8>>| {
            keys.into_iter().filter_map(|key| key.try_into().ok()).take(limits::PLACES_TOLD).collect()
        };
        let (lies_in, holds, file_system) = (keys(lies_in), keys(holds), file_system.try_into().ok());
        Self { kind, size, device, inode, resolved, failure, lies_in, holds, is_mount_top, file_system }
    }
}

impl From<PathFacts> for raw::PathFacts {
    fn from(facts: PathFacts) -> Self {
        let PathFacts { kind, size, device, inode, resolved, failure, lies_in, holds, is_mount_top, file_system } =
            facts;
        let (kind, failure) = (kind.map_or(0, ItemKind::number), failure.map(Into::into));
        let keys = |keys: Vec<PlaceKey>| keys.into_iter().map(Vec::from).collect();
        let (lies_in, holds) = (keys(lies_in), keys(holds));
        let file_system = file_system.map(Vec::from).unwrap_or_default();
        Self { kind, size, device, inode, resolved, failure, lies_in, holds, is_mount_top, file_system }
    }
}

impl TryFrom<raw::Listening> for Listening {
    type Error = ProtocolError;

    fn try_from(listening: raw::Listening) -> Result<Self, ProtocolError> {
        let raw::Listening { port, pin } = listening;
        let wrong = |_| ProtocolError::violation(format!("the peer listens on port {port}"));
        let pin = pin.try_into().map_err(|_| ProtocolError::violation("a pin of the wrong length"))?;
        Ok(Self { port: u16::try_from(port).map_err(wrong)?, pin })
    }
}

impl From<raw::Dialed> for Dialed {
    fn from(dialed: raw::Dialed) -> Self {
        // Another host may say anything: a cipher is a word.
        let cipher = dialed.cipher.chars().filter(char::is_ascii_graphic).take(CIPHER_CHARS).collect();
        Self { address: dialed.address, cipher, round_trip: Duration::from_micros(dialed.round_trip_us) }
    }
}

impl From<raw::Entry> for Entry {
    fn from(entry: raw::Entry) -> Self {
        Self {
            path: entry.path,
            kind: ItemKind::from_number(entry.kind),
            size: entry.size,
            mode: entry.mode & 0o7777,
            mtime: Time::new(entry.mtime_seconds, below_second(entry.mtime_nanos)),
            link_target: entry.link_target,
            failure: entry.failure.map(Into::into),
            allocated: entry.allocated,
            twin: NonZeroU64::new(entry.twin),
            names: entry.names,
            // What cannot be read is not shown.
            attributes: attributes::decode(&entry.attributes).unwrap_or_default(),
            surveyed: entry.surveyed.map(|surveyed| Surveyed {
                digests: surveyed.digests.unwrap_or_default().into(),
                is_timeless: surveyed.timeless,
                is_left_out: surveyed.left_out,
                special: SpecialFile::decode(&surveyed.special),
                file: (surveyed.inode != 0).then_some((surveyed.device, surveyed.inode)),
            }),
        }
    }
}

impl From<Entry> for raw::Entry {
    fn from(entry: Entry) -> Self {
        Self {
            path: entry.path,
            kind: entry.kind.map_or(0, ItemKind::number),
            size: entry.size,
            mode: entry.mode,
            mtime_seconds: entry.mtime.seconds,
            mtime_nanos: entry.mtime.nanos,
            link_target: entry.link_target,
            failure: entry.failure.map(Into::into),
            allocated: entry.allocated,
            twin: entry.twin.map_or(0, NonZeroU64::get),
            names: entry.names,
            attributes: attributes::encode(&entry.attributes),
            surveyed: entry.surveyed.map(|surveyed| {
                let special = surveyed.special.map(|special| special.encode().to_vec());
                let (device, inode) = surveyed.file.unwrap_or_default();
                Box::new(raw::Surveyed {
                    digests: Some(surveyed.digests.into()),
                    timeless: surveyed.is_timeless,
                    left_out: surveyed.is_left_out,
                    special: special.unwrap_or_default(),
                    device,
                    inode,
                })
            }),
        }
    }
}

impl From<ItemReport> for raw::Item {
    fn from(item: ItemReport) -> Self {
        let (outcome, failure) = match item.outcome {
            Outcome::Published => (0, None),
            Outcome::Kept => (1, None),
            Outcome::Failed(failure) => (2, Some(failure.into())),
            Outcome::Same => (3, None),
            Outcome::Planned => (4, None),
            Outcome::Deleted => (5, None),
            Outcome::ToDelete => (6, None),
        };
        let digests = Some(item.digests.into());
        let judgment = item.judgment.map(|judgment| judgment.number().into());
        Self { path: item.path, kind: item.kind.number(), size: item.size, digests, outcome, failure, judgment }
    }
}

impl From<raw::Item> for ItemReport {
    fn from(item: raw::Item) -> Self {
        let unexplained = Failure::new(ErrorCode::Other, Side::Link, "no reason was given");
        Self {
            path: item.path,
            kind: ItemKind::from_number(item.kind).unwrap_or(ItemKind::File),
            size: item.size,
            digests: item.digests.unwrap_or_default().into(),
            judgment: item.judgment.and_then(|number| Judgment::from_number(u8::try_from(number).ok()?)),
            outcome: match item.outcome {
                0 => Outcome::Published,
                1 => Outcome::Kept,
                3 => Outcome::Same,
                4 => Outcome::Planned,
                5 => Outcome::Deleted,
                6 => Outcome::ToDelete,
                _ => Outcome::Failed(item.failure.map_or(unexplained, Failure::from)),
            },
        }
    }
}

/// Both ways between a message and what it says, where the fields of both have the same names: those behind the
/// semicolon are optional and are converted.
macro_rules! alike {
    ($name:ident { $($same:ident),+ $(; $($converted:ident),+)? }) => {
        impl From<raw::$name> for $name {
            fn from(raw: raw::$name) -> Self {
                Self { $($same: raw.$same,)+ $($($converted: raw.$converted.map(Into::into),)+)? }
            }
        }

        impl From<$name> for raw::$name {
            fn from(said: $name) -> Self {
                Self { $($same: said.$same,)+ $($($converted: said.$converted.map(Into::into),)+)? }
            }
        }
    };
}

alike!(Progress { files_done, bytes_done, files_found, bytes_found, scan_complete, files_failed });

impl From<raw::RawUnfinished> for Unfinished {
    fn from(raw: raw::RawUnfinished) -> Self {
        Self { count: raw.count, paths: raw.paths.into_iter().take(limits::UNFINISHED_PATHS).collect() }
    }
}

impl From<Unfinished> for raw::RawUnfinished {
    fn from(told: Unfinished) -> Self {
        Self { count: told.count, paths: told.paths }
    }
}

impl From<raw::Ended> for Ended {
    fn from(raw: raw::Ended) -> Self {
        Self {
            counts: Counts::from_values(raw.counts),
            faults: Faults::from_values(raw.faults),
            at_destination: DestinationCounts::from_values(raw.at_destination),
            durable: raw.durable,
            failure: raw.failure.map(Into::into),
            unkept_permissions: raw.unkept_permissions.map(Into::into),
            unkept_times: raw.unkept_times.map(Into::into),
            unkept_attributes: raw.unkept_attributes.map(Into::into),
            unsynced: Unsynced { count: raw.unsynced, paths: raw.unsynced_paths },
            undeleted: raw.undeleted.map(|failure| (*failure).into()),
            unfinished: raw.unfinished.map(|told| (*told).into()).unwrap_or_default(),
            unkept_directories: raw.unkept_directories.map(|told| (*told).into()).unwrap_or_default(),
        }
    }
}

impl From<Ended> for raw::Ended {
    fn from(said: Ended) -> Self {
        Self {
            counts: said.counts.values(),
            faults: said.faults.values(),
            at_destination: said.at_destination.values(),
            durable: said.durable,
            failure: said.failure.map(Into::into),
            unkept_permissions: said.unkept_permissions.map(Into::into),
            unkept_times: said.unkept_times.map(Into::into),
            unkept_attributes: said.unkept_attributes.map(Into::into),
            unsynced: said.unsynced.count,
            unsynced_paths: said.unsynced.paths,
            undeleted: said.undeleted.map(|failure| Box::new(failure.into())),
            unfinished: (said.unfinished.count > 0).then(|| Box::new(said.unfinished.into())),
            unkept_directories: (said.unkept_directories.count > 0).then(|| Box::new(said.unkept_directories.into())),
        }
    }
}

impl From<Unkept<Time>> for raw::RawUnkept {
    fn from(unkept: Unkept<Time>) -> Self {
        let (wanted, kept) = (unkept.wanted, unkept.kept);
        Self {
            count: unkept.count,
            path: unkept.path,
            wanted: wanted.seconds,
            wanted_nanos: wanted.nanos,
            kept: kept.seconds,
            kept_nanos: kept.nanos,
        }
    }
}

impl From<UnkeptAttributes> for Box<raw::RawUnkeptAttributes> {
    fn from(unkept: UnkeptAttributes) -> Self {
        let (kinds, mut counts): (_, Vec<u64>) =
            unkept.kinds.into_iter().map(|(kind, items)| (u32::from(kind.0), items)).unzip();
        if counts.iter().all(|items| *items == 0) {
            counts.clear();
        }
        Self::new(raw::RawUnkeptAttributes { count: unkept.count, path: unkept.path, kinds, counts })
    }
}

impl From<Box<raw::RawUnkeptAttributes>> for UnkeptAttributes {
    fn from(raw: Box<raw::RawUnkeptAttributes>) -> Self {
        // Another host may say anything: what is no number of a kind is none.
        let counts = raw.counts.into_iter().chain(std::iter::repeat(0));
        let kinds = raw.kinds.into_iter().zip(counts);
        let kinds = kinds.filter_map(|(kind, items)| u16::try_from(kind).ok().map(|kind| (AttributeKind(kind), items)));
        Self { count: raw.count, path: shown(raw.path), kinds: kinds.take(limits::ATTRIBUTES).collect() }
    }
}

impl From<raw::RawUnkeptDirectories> for UnkeptDirectories {
    fn from(raw: raw::RawUnkeptDirectories) -> Self {
        let paths = raw.paths.into_iter().take(limits::UNKEPT_DIRECTORIES).map(shown);
        Self { count: raw.count, paths: paths.collect() }
    }
}

impl From<UnkeptDirectories> for raw::RawUnkeptDirectories {
    fn from(told: UnkeptDirectories) -> Self {
        Self { count: told.count, paths: told.paths }
    }
}

impl From<Unkept<u32>> for raw::RawUnkept {
    fn from(unkept: Unkept<u32>) -> Self {
        let (wanted, kept) = (i64::from(unkept.wanted), i64::from(unkept.kept));
        Self { count: unkept.count, path: unkept.path, wanted, kept, ..Self::default() }
    }
}

impl From<raw::RawUnkept> for Unkept<Time> {
    fn from(raw: raw::RawUnkept) -> Self {
        let wanted = Time::new(raw.wanted, below_second(raw.wanted_nanos));
        let kept = Time::new(raw.kept, below_second(raw.kept_nanos));
        Self { count: raw.count, path: shown(raw.path), wanted, kept }
    }
}

impl From<raw::RawUnkept> for Unkept<u32> {
    fn from(raw: raw::RawUnkept) -> Self {
        let mode = |bits: i64| (bits & 0o7777) as u32;
        Self { count: raw.count, path: shown(raw.path), wanted: mode(raw.wanted), kept: mode(raw.kept) }
    }
}

/// A path that is only shown; none instead of one that cannot be.
fn shown(path: Vec<u8>) -> Vec<u8> {
    if check_relative(&path).is_ok() { path } else { Vec::new() }
}

impl From<raw::Stages> for Stages {
    fn from(stages: raw::Stages) -> Self {
        let time = Duration::from_nanos;
        Self {
            times: StageTimes {
                busy: time(stages.busy_ns),
                storage: time(stages.storage_ns),
                network: time(stages.network_ns),
                pacing: time(stages.pacing_ns),
            },
            at: time(stages.at_ns),
            delivered: stages.delivered,
            segments: stages.segments,
            repeated: stages.repeated,
        }
    }
}

impl From<Stages> for raw::Stages {
    fn from(stages: Stages) -> Self {
        let times = stages.times;
        Self {
            busy_ns: nanos(times.busy),
            storage_ns: nanos(times.storage),
            network_ns: nanos(times.network),
            pacing_ns: nanos(times.pacing),
            at_ns: nanos(stages.at),
            delivered: stages.delivered,
            segments: stages.segments,
            repeated: stages.repeated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::drives_terminal;

    /// A peer may send what no program of ours does: the texts are made as a peer makes them, past [`Tell::encode`].
    #[test]
    fn texts_of_a_welcome_are_bounded_and_drive_no_terminal() {
        let hostile = format!("cubic\u{1b}[2J\u{202e}\n{}", "x".repeat(limits::ERROR_TEXT_BYTES));
        let welcome = raw::Welcome {
            version: Version::NEWEST.number(),
            program: hostile.clone(),
            congestion: hostile.clone(),
            system: hostile,
            ..raw::Welcome::default()
        };
        let Ok(welcome) = Welcome::try_from(welcome) else { panic!("a version that is known") };
        for text in [&welcome.program, &welcome.congestion, &welcome.system] {
            assert!(text.starts_with("cubic\u{fffd}") && text.len() <= limits::ERROR_TEXT_BYTES, "{text:?}");
            assert!(!text.chars().any(drives_terminal), "{text:?}");
        }
    }
}
