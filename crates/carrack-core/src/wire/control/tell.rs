//! What an agent says: answers, how a transfer stands, and how it has ended. What is only shown
//! is made fit to be shown.

mod change;
mod evidence;
mod fields;
mod in_flight;
mod path;
mod sample;

use std::num::NonZeroU64;
use std::time::Duration;

use crate::attributes::{OtherAttributes, Time};
use crate::evidence::EvidenceText;
use crate::failure::Failure;
use crate::fingerprint::Fingerprint;
use crate::pace::limit::StageTimes;
use crate::report::{
    Counts, DestinationCounts, Faults, FileDigests, ItemChange, ItemInFlight, ItemKind, ItemReport, PathTrace,
    Progress, Unfinished, Unkept, UnkeptAttributes, UnkeptDirectories, Unsynced,
};
use crate::request::DeletionExtent;
use crate::special::SpecialFile;
use crate::timeline::Sample;
use crate::wire::Version;

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
    /// The sender has lost a data stream, or one has ended as it was asked to.
    StreamLost(StreamLost),
    /// Where the time of this end's streams has gone so far.
    Stages(Stages),
    /// To `Dial`, before its answer, if it was asked for: TCP has connected, and the connection is being secured. The
    /// round trip, as TCP measured it.
    Connected(Duration),
    /// What this end has measured.
    Sample(Box<Sample>),
    /// To `Clock`: microseconds since the agent began.
    Clock(u64),
    /// To `Trace`: the way to the other end of the transfer.
    Traced(Box<PathTrace>),
    /// To `Evidence`, page by page: names, and what the host says.
    Evidence(Vec<(String, EvidenceText)>),
    /// To `Read`, first: what the file is.
    Opened(OpenedFile),
    /// To `Read`: the next bytes, at most [`crate::limits::PART_BYTES`].
    Part(Vec<u8>),
    /// What a receiver is about to delete: it waits for [`Ask::MayDelete`](super::Ask::MayDelete).
    Deletion(DeletionExtent),
    /// To `Begin` of a receiver, before its answer: upper and lower case are one at the top of the destination.
    FoldsCase,
    /// What the receiver has made, changed or deleted, or would, in that order.
    Changes(Vec<ItemChange>),
    /// The files in flight at the sender: at most [`crate::limits::IN_FLIGHT`].
    InFlight(Vec<ItemInFlight>),
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
    /// Seconds since 1970 by the agent's clock.
    pub clock_seconds: i64,
    /// The congestion control that the host gives to connections; empty where it is not known.
    pub congestion: String,
    /// Tells the machine from all others, also after a reboot; `None` of a node,
    /// which is known by its key.
    pub machine: Option<[u8; 32]>,
    /// The operating system and its version; empty from a node that wants no token, and where it is not
    /// known.
    pub system: String,
    /// Microseconds since the agent began; `None` where it does not say.
    pub clock_us: Option<u64>,
    /// The directory that it keeps to for the whole session, by device and inode: the greeting names one.
    pub root: Option<(u64, u64)>,
    /// It takes data streams that are cut into pieces, and sends such: an earlier build does not.
    pub compresses: bool,
}

/// What a file is that is about to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenedFile {
    /// Size in bytes.
    pub size: u64,
    /// When the content was last modified; `None` where that is not known.
    pub mtime: Option<Time>,
    /// What this state of the file is known by; `None` where nothing would tell that it has changed.
    pub identity: Option<Fingerprint>,
}

/// What a path is, links followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathFacts {
    /// `None` where nothing is. A link to nothing has a device and an inode all the same.
    pub kind: Option<ItemKind>,
    /// Size in bytes.
    pub size: u64,
    /// The device it is on.
    pub device: u64,
    /// Its inode on that device.
    pub inode: u64,
    /// The path with links resolved; of something that is not there, that of its nearest existing directory and the
    /// rest. Of a node it begins at the root: where that is stays unsaid.
    pub resolved: Vec<u8>,
    /// Why it could not be looked at.
    pub failure: Option<Failure>,
    /// Of a directory, what it lies in on its file system, the topmost first, and itself: the same through any mount,
    /// and nothing that tells a path. At most [`PLACES_TOLD`](crate::limits::PLACES_TOLD).
    pub lies_in: Vec<PlaceKey>,
    /// Of a directory, itself and what is mounted below it. At most [`PLACES_TOLD`](crate::limits::PLACES_TOLD).
    pub holds: Vec<PlaceKey>,
    /// A directory where a mounted file system begins.
    pub is_mount_top: bool,
    /// By which its file system is known, or that in which it would be made: over reboots as far as it knows itself,
    /// and by whichever host it is mounted; `None` where nothing tells. Only equality counts.
    pub file_system: Option<FileSystemKey>,
}

/// By which a file system is known.
pub type FileSystemKey = [u8; 16];

/// By which a directory of a file system of a host is known.
pub type PlaceKey = [u8; 16];

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
    /// Bytes of the storage that it takes; `None` where nobody asked, or where it is not known.
    pub allocated: Option<u64>,
    /// Of a file with several names: what all its names have and nothing else in the listing.
    pub twin: Option<NonZeroU64>,
    /// Names that it has; 0 where nobody asked, or where that is not known.
    pub names: u32,
    /// Its owner and group, with their names, and what else it has, where somebody asked; extended attributes without
    /// their values, unless it is surveyed.
    pub attributes: OtherAttributes,
    /// What a survey tells besides.
    pub surveyed: Option<Surveyed>,
}

/// What a survey tells of an entry besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surveyed {
    /// Those that were asked for, of a file.
    pub digests: FileDigests,
    /// It has no modification time.
    pub is_timeless: bool,
    /// Its size or age, or where it leads, leaves it out.
    pub is_left_out: bool,
    /// Of a FIFO, a socket or a device, which one.
    pub special: Option<SpecialFile>,
    /// Of what has several names, its device and inode, where names of one file are compared.
    pub file: Option<(u64, u64)>,
}

/// A data stream was lost, or has ended as it was asked to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamLost {
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// The path took its first words, and nothing that fills a packet.
    pub stuck: bool,
    /// It had been asked to end: without a failure, it has ended in good order.
    pub retired: bool,
}

/// Where the time of one end's streams has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// How long each stage has worked and waited.
    pub times: StageTimes,
    /// When this was so, by the clock of this end, from the beginning of the transfer on.
    pub at: Duration,
    /// Bytes that the other host has acknowledged, over all streams so far (of the sender).
    pub delivered: u64,
    /// Segments sent, those sent again included (of the sender).
    pub segments: u64,
    /// Segments sent again (of the sender).
    pub repeated: u64,
}

/// How a transfer has ended at one end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// What became of the items. Told by the sender.
    pub counts: Counts,
    /// Faults that the transfer recovered from; `streams_altered` and `blocks_rotten` are told by the receiver, the
    /// others by the sender. Lost sessions are the command's to count.
    pub faults: Faults,
    /// What the destination's end counted. Told by the receiver.
    pub at_destination: DestinationCounts,
    /// Everything published is on stable storage.
    pub durable: bool,
    /// Why it ended early.
    pub failure: Option<Failure>,
    /// Permission bits that the destination did not keep. Told by the receiver.
    pub unkept_permissions: Option<Unkept<u32>>,
    /// Modification times that the destination did not keep. Told by the receiver.
    pub unkept_times: Option<Unkept<Time>>,
    /// Directories among the items whose permission bits the destination did not keep. Told by the receiver.
    pub unkept_directories: UnkeptDirectories,
    /// Attributes of further kinds that were not kept: told by the receiver.
    pub unkept_attributes: Option<UnkeptAttributes>,
    /// Names that may be gone because a sync failed. Told by the receiver.
    pub unsynced: Unsynced,
    /// Unfinished files of an earlier attempt that were not asked for, and stay. Told by the receiver.
    pub unfinished: Unfinished,
    /// Why something that only the destination has was not deleted. Told by the receiver.
    pub undeleted: Option<Failure>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;
    use crate::wire::ProtocolError;
    use crate::wire::control::raw;

    fn checked(tell: raw::Tell) -> Result<Tell, ProtocolError> {
        Tell::decode(&raw::FromAgent { request: 1, tell: Some(tell) }.to_bytes()).map(|(_, tell)| tell)
    }

    #[test]
    fn welcome_names_a_version_that_is_spoken_and_a_whole_machine() {
        let welcome = |version, bytes: usize| {
            checked(raw::Tell::Welcome(raw::Welcome { version, machine: vec![1; bytes], ..raw::Welcome::default() }))
        };
        assert!(welcome(1, 0).is_ok() && welcome(1, 32).is_ok());
        for (version, bytes) in [(0, 0), (2, 0), (u32::MAX, 0), (1, 31), (1, 33), (1, 1)] {
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
    fn part_has_bytes_that_fit_and_an_opened_file_a_whole_identity() {
        let part = |bytes: usize| checked(raw::Tell::Part(raw::Part { content: vec![0x0b; bytes] }));
        // Whatever is in a file, even if all of it looks like fields.
        for bytes in [1, limits::PART_BYTES] {
            assert_eq!(part(bytes), Ok(Tell::Part(vec![0x0b; bytes])));
        }
        assert!(part(0).is_err() && part(limits::PART_BYTES + 1).is_err());
        let opened = |bytes| checked(raw::Tell::Opened(raw::Opened { identity: vec![1; bytes], ..Default::default() }));
        assert_eq!(opened(0), Ok(Tell::Opened(OpenedFile::default())));
        assert_eq!(opened(16), Ok(Tell::Opened(OpenedFile { identity: Some([1; 16]), ..OpenedFile::default() })));
        assert!(opened(15).is_err() && opened(17).is_err());
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
