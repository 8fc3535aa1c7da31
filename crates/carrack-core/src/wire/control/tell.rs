//! What an agent says: answers, how a transfer stands, and how it has ended. What is only shown
//! is made fit to be shown.

use std::time::Duration;

use super::raw;
use crate::attributes::{AttributeKind, Time};
use crate::failure::{ErrorCode, Failure, Side};
use crate::limits;
use crate::pace::limit::StageTimes;
use crate::path::check_relative;
use crate::report::{ItemKind, ItemReport, Outcome, Progress, Unkept, UnkeptAttributes};
use crate::wire::{ProtocolError, Version, peer_text};

/// The longest name of a cipher suite.
const CIPHER_CHARS: usize = 64;

/// What an agent says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tell {
    /// Versions and the host.
    Welcome(Welcome),
    /// The request failed.
    Failed(Failure),
    /// Done; with a count where there is something to count, such as entries removed.
    Done(u64),
    /// To `Inspect`: what each path is, in the order asked.
    Inspected(Vec<PathFacts>),
    /// To `Listen`.
    Listening(Listening),
    /// To `Dial` and `Tunnel`.
    Dialed(Dialed),
    /// A page of a listing: at most [`crate::limits::PAGE_ENTRIES`].
    Page(Vec<Entry>),
    /// Digests of some files, in the order of the walk.
    Sums(Vec<ItemReport>),
    /// How a transfer stands.
    Progress(Progress),
    /// Items that ended, in the order in which they did.
    Items(Vec<ItemReport>),
    /// The transfer has ended at this end.
    Ended(Box<Ended>),
    /// For a person to read.
    Note(String),
    /// The sender has lost a data stream, or one has ended as it was asked to. From version 2 on.
    StreamLost(StreamLost),
    /// Where the time of this end's streams has gone so far. From version 2 on.
    Stages(Stages),
    /// To `Dial`, before its answer, if it was asked for: TCP has connected, and the connection is being secured. The
    /// round trip, as TCP measured it. From version 3 on.
    Connected(Duration),
}

/// What an agent says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Welcome {
    /// The protocol version that will be used.
    pub version: Version,
    /// The program's version, for messages.
    pub program: String,
    /// Tells hosts apart: two agents with the same value see the same file systems.
    pub host_id: String,
    /// Processors that the agent may use.
    pub processors: u32,
    /// The address that the control connection reached, as the agent sees it; empty where there is none.
    pub local_address: String,
    /// The address that the control connection came from, as the agent sees it.
    pub peer_address: String,
    /// Seconds since 1970 by the agent's clock. From version 2 on; before 0.
    pub clock_seconds: i64,
    /// The congestion control that the host gives to connections; empty where it is not known.
    pub congestion: String,
    /// Tells the machine from all others, also after a reboot. From version 4 on; `None` of a node,
    /// which is known by its key.
    pub machine: Option<[u8; 32]>,
}

/// What a path is, links followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathFacts {
    /// `None` where nothing is.
    pub kind: Option<ItemKind>,
    /// Size in bytes.
    pub size: u64,
    /// The device it is on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
    /// The path with links resolved; of something that is not there, that of its nearest existing directory and the
    /// rest. Of a node it begins at the root: where that is stays unsaid.
    pub resolved: Vec<u8>,
    /// Why it could not be looked at.
    pub failure: Option<Failure>,
}

/// Where data connections are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// The port that accepts the data connections.
    pub port: u16,
    /// SHA-256 of the public key that the listener shows.
    pub pin: [u8; 32],
}

/// A data connection has been made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dialed {
    /// The address that answered, as the dialer says; empty inside a tunnel.
    pub address: String,
    /// The cipher suite, in at most 64 visible characters; empty without TLS.
    pub cipher: String,
    /// Round trip, as TCP measured it.
    pub round_trip: Duration,
}

/// One entry of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the listed directory. Whoever joins it to anything checks it.
    pub path: Vec<u8>,
    /// `None` where it is not known.
    pub kind: Option<ItemKind>,
    /// Size in bytes.
    pub size: u64,
    /// Permission bits of the mode.
    pub mode: u32,
    /// Modification time: seconds since 1970, nanoseconds.
    pub mtime: Time,
    /// Of a symbolic link.
    pub link_target: Vec<u8>,
    /// Why it could not be read: then nothing else is known.
    pub failure: Option<Failure>,
}

/// A data stream was lost, or has ended as it was asked to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamLost {
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// The path took its first words, and nothing that fills a packet.
    pub stuck: bool,
    /// It had been asked to end (version 3): without a failure, it has ended in good order.
    pub retired: bool,
}

/// Where the time of one end's streams has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// How long each stage has worked and waited.
    pub times: StageTimes,
    /// When this was so, by the clock of this end, from the beginning of the transfer on. From version 3
    /// on, as all below; before 0.
    pub at: Duration,
    /// Bytes that the other host has acknowledged, over all streams so far (of the sender).
    pub delivered: u64,
    /// Segments sent, those sent again included (of the sender).
    pub segments: u64,
    /// Segments sent again (of the sender).
    pub repeated: u64,
}

/// How a transfer has ended at one end. Counts of what an end of an older version does not tell are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Files that got their names.
    pub files: u64,
    /// Symbolic links that got their names.
    pub symlinks: u64,
    /// Directories that were made or found.
    pub directories: u64,
    /// Bytes of the files that got their names.
    pub bytes: u64,
    /// Items kept as they were.
    pub kept: u64,
    /// Items that failed.
    pub failed: u64,
    /// Of those, vanished.
    pub vanished: u64,
    /// Of those, neither file nor directory nor link.
    pub specials: u64,
    /// Recovered: digest mismatches.
    pub mismatches: u64,
    /// Recovered: sent again after a stream was lost.
    pub resent: u64,
    /// Recovered: stragglers sent again.
    pub stragglers: u64,
    /// Recovered: streams lost.
    pub streams_lost: u64,
    /// Everything published is on stable storage.
    pub durable: bool,
    /// Why it ended early.
    pub failure: Option<Failure>,
    /// Items that an earlier attempt had published. From version 2 on.
    pub resumed_files: u64,
    /// Bytes that an earlier attempt had brought, of whole and of unfinished files. From version 2 on.
    pub resumed_bytes: u64,
    /// Recovered: data streams ended because what came was altered. Told by the receiver, from version 2 on.
    pub streams_altered: u64,
    /// Recovered: blocks that storage gave back otherwise than they were written. Told by the
    /// receiver, from version 2 on.
    pub blocks_rotten: u64,
    /// Recovered: items sent again whole, because what was written was lost. From version 2 on.
    pub items_again: u64,
    /// Permission bits that the destination did not keep. Told by the receiver, from version 4 on.
    pub unkept_permissions: Option<Unkept<u32>>,
    /// Modification times that the destination did not keep. Told by the receiver, from version 4 on.
    pub unkept_times: Option<Unkept<Time>>,
    /// Attributes of further kinds that were not kept (4): told by the receiver, and by the sender where the
    /// receiver is of a version before.
    pub unkept_attributes: Option<UnkeptAttributes>,
    /// Markers and part files of Carrack's own that the scan has left out. From version 4 on.
    pub leftovers: u64,
    /// Part files of an earlier attempt that were read again before they were believed. Told by the
    /// receiver, from version 4 on.
    pub parts_reread: u64,
    /// Bytes of them.
    pub bytes_reread: u64,
    /// With `--verify disk`, files that lie where nothing can be read back past the cache. Told by the
    /// receiver, from version 4 on.
    pub files_not_read_back: u64,
}

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
fn below_second(nanos: u32) -> u32 {
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
            congestion: welcome.congestion,
            machine,
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
        }
    }
}

impl From<raw::PathFacts> for PathFacts {
    fn from(facts: raw::PathFacts) -> Self {
        let raw::PathFacts { kind, size, device, inode, resolved, failure } = facts;
        let (kind, failure) = (ItemKind::from_number(kind), failure.map(Into::into));
        Self { kind, size, device, inode, resolved, failure }
    }
}

impl From<PathFacts> for raw::PathFacts {
    fn from(facts: PathFacts) -> Self {
        let PathFacts { kind, size, device, inode, resolved, failure } = facts;
        let (kind, failure) = (kind.map_or(0, ItemKind::number), failure.map(Into::into));
        Self { kind, size, device, inode, resolved, failure }
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
        }
    }
}

impl From<ItemReport> for raw::Item {
    fn from(item: ItemReport) -> Self {
        let (outcome, failure) = match item.outcome {
            Outcome::Published => (0, None),
            Outcome::Kept => (1, None),
            Outcome::Failed(failure) => (2, Some(failure.into())),
        };
        let digests = Some(item.digests.into());
        Self { path: item.path, kind: item.kind.number(), size: item.size, digests, outcome, failure }
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
            outcome: match item.outcome {
                0 => Outcome::Published,
                1 => Outcome::Kept,
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
alike!(Ended {
    files, symlinks, directories, bytes, kept, failed, vanished, specials, mismatches, resent, stragglers, streams_lost, durable,
    resumed_files, resumed_bytes, streams_altered, blocks_rotten, items_again, leftovers, parts_reread, bytes_reread,
    files_not_read_back; failure, unkept_permissions, unkept_times, unkept_attributes
});

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
        let kinds = unkept.kinds.into_iter().map(|kind| kind.0.into()).collect();
        Self::new(raw::RawUnkeptAttributes { count: unkept.count, path: unkept.path, kinds })
    }
}

impl From<Box<raw::RawUnkeptAttributes>> for UnkeptAttributes {
    fn from(raw: Box<raw::RawUnkeptAttributes>) -> Self {
        // Another host may say anything: what is no number of a kind is none.
        let kinds = raw.kinds.into_iter().filter_map(|kind| u16::try_from(kind).ok().map(AttributeKind));
        Self { count: raw.count, path: shown(raw.path), kinds: kinds.take(limits::ATTRIBUTES).collect() }
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

    fn checked(tell: raw::Tell) -> Result<Tell, ProtocolError> {
        Tell::decode(&raw::FromAgent { request: 1, tell: Some(tell) }.to_bytes()).map(|(_, tell)| tell)
    }

    #[test]
    fn welcome_names_a_version_that_is_spoken_and_a_whole_machine() {
        let welcome = |version, bytes: usize| {
            checked(raw::Tell::Welcome(raw::Welcome { version, machine: vec![1; bytes], ..raw::Welcome::default() }))
        };
        for version in 1..=4 {
            assert!(welcome(version, 0).is_ok() && welcome(version, 32).is_ok());
        }
        for (version, bytes) in [(0, 0), (5, 0), (u32::MAX, 0), (4, 31), (4, 33), (4, 1)] {
            assert!(welcome(version, bytes).is_err(), "version {version}, {bytes} bytes");
        }
    }

    #[test]
    fn listening_is_on_a_port_with_a_whole_pin() {
        let listening = |port, bytes| checked(raw::Tell::Listening(raw::Listening { port, pin: vec![1; bytes] }));
        assert_eq!(listening(50_000, 32), Ok(Tell::Listening(Listening { port: 50_000, pin: [1; 32] })));
        for port in [65_536, 65_536 + 5000, u32::MAX] {
            assert!(listening(port, 32).is_err(), "{port}");
        }
        assert!(listening(50_000, 31).is_err() && listening(50_000, 0).is_err());
    }

    #[test]
    fn entry_has_a_time_and_permissions_that_can_be() {
        let entry = raw::Entry { kind: 9, mode: u32::MAX, mtime_nanos: u32::MAX, ..raw::Entry::default() };
        let Ok(Tell::Page(entries)) = checked(raw::Tell::Page(raw::Page { entries: vec![entry] })) else { panic!() };
        assert_eq!((entries[0].kind, entries[0].mode, entries[0].mtime), (None, 0o7777, Time::new(0, 999_999_999)));
    }

    #[test]
    fn cipher_and_note_drive_no_terminal() {
        let cipher = format!("TLS\x1b[2J {}", "x".repeat(1000));
        let Ok(Tell::Dialed(dialed)) = checked(raw::Tell::Dialed(raw::Dialed { cipher, ..raw::Dialed::default() }))
        else {
            panic!()
        };
        assert_eq!(dialed.cipher, format!("TLS[2J{}", "x".repeat(58)));
        assert_eq!(checked(raw::Tell::Note("a\x1b".into())), Ok(Tell::Note("a\u{fffd}".into())));
    }
}
