//! The protobuf shapes of control messages. Field numbers are for ever; a new field is optional, and the number of one
//! that is gone is reserved. Tests that say what no honest end says see this module, by the feature `testing`; all
//! others see [`super::Ask`] and [`super::Tell`].

use prost::Message as _;

pub use crate::wire::values::{RawDigests, RawFailure};

use crate::wire::codec::decode;
use crate::wire::{ProtocolError, fields};

/// From the command to an agent.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ToAgent {
    /// The request's number.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// What is asked.
    #[prost(oneof = "Ask", tags = "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17")]
    pub ask: Option<Ask>,
}

/// What the command asks of an agent.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Ask {
    /// The first message: versions.
    #[prost(message, tag = "2")]
    Hello(Hello),
    /// What are these paths?
    #[prost(message, tag = "3")]
    Inspect(Paths),
    /// Accept data connections.
    #[prost(message, tag = "4")]
    Listen(Listen),
    /// Make data connections.
    #[prost(message, tag = "5")]
    Dial(Dial),
    /// Carry a data stream over this connection.
    #[prost(message, tag = "6")]
    Tunnel(Tunnel),
    /// Start sending or receiving.
    #[prost(message, tag = "7")]
    Begin(Begin),
    /// Stop what runs and clean up.
    #[prost(message, tag = "8")]
    Cancel(Empty),
    /// List a directory.
    #[prost(message, tag = "9")]
    List(List),
    /// Make a directory.
    #[prost(message, tag = "10")]
    MakeDirectory(MakeDirectory),
    /// Give a path another name.
    #[prost(message, tag = "11")]
    Rename(Rename),
    /// Remove paths.
    #[prost(message, tag = "12")]
    Remove(Remove),
    /// Digests of files.
    #[prost(message, tag = "13")]
    Sum(Sum),
    /// The end: the agent closes the connection.
    #[prost(message, tag = "14")]
    Bye(Empty),
    /// Of what the next `Begin` names, send only these (version 2). May be said several times: the lists add up.
    #[prost(message, tag = "15")]
    Select(Paths),
    /// Collect what transfers that will not be taken up again have left (version 2).
    #[prost(message, tag = "16")]
    Collect(Collect),
    /// End data streams in good order: each when what it carries has landed (version 3, of a sender).
    #[prost(message, tag = "17")]
    Retire(Retire),
}

/// From an agent to the command.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FromAgent {
    /// The request answered; 0 for what comes unasked.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// What is said.
    #[prost(oneof = "Tell", tags = "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16")]
    pub tell: Option<Tell>,
}

/// What an agent says.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Tell {
    /// Versions and the host.
    #[prost(message, tag = "2")]
    Welcome(Welcome),
    /// The request failed.
    #[prost(message, tag = "3")]
    Failed(RawFailure),
    /// Done; nothing else to say.
    #[prost(message, tag = "4")]
    Done(Counted),
    /// To `Inspect`.
    #[prost(message, tag = "5")]
    Inspected(Inspected),
    /// To `Listen`.
    #[prost(message, tag = "6")]
    Listening(Listening),
    /// To `Dial` and `Tunnel`.
    #[prost(message, tag = "7")]
    Dialed(Dialed),
    /// A page of a listing.
    #[prost(message, tag = "8")]
    Page(Page),
    /// Digests of some files.
    #[prost(message, tag = "9")]
    Sums(Sums),
    /// How a transfer stands.
    #[prost(message, tag = "10")]
    Progress(Progress),
    /// Items that ended.
    #[prost(message, tag = "11")]
    Items(Items),
    /// The transfer has ended at this end.
    #[prost(message, tag = "12")]
    Ended(Ended),
    /// For a person to read.
    #[prost(string, tag = "13")]
    Note(String),
    /// The sender has lost a data stream that the command may make anew (version 2).
    #[prost(message, tag = "14")]
    StreamLost(StreamLost),
    /// Where the time of this end's streams has gone so far (version 2).
    #[prost(message, tag = "15")]
    Stages(Stages),
    /// To `Dial`, before its answer, if it was asked for.
    #[prost(message, tag = "16")]
    Connected(Connected),
}

/// A message without fields.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Empty {}

/// Which versions are spoken.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Hello {
    /// Oldest protocol version.
    #[prost(uint32, tag = "1")]
    pub oldest: u32,
    /// Newest protocol version.
    #[prost(uint32, tag = "2")]
    pub newest: u32,
    /// The program's version, for messages.
    #[prost(string, tag = "3")]
    pub program: String,
    /// A node's bearer token.
    #[prost(string, tag = "4")]
    pub token: String,
}

/// The agent's answer to `Hello`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Welcome {
    /// The protocol version that will be used.
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// The program's version, for messages.
    #[prost(string, tag = "2")]
    pub program: String,
    /// Tells hosts apart: two agents with the same value see the same file systems.
    #[prost(string, tag = "3")]
    pub host_id: String,
    /// Processors that the agent may use.
    #[prost(uint32, tag = "4")]
    pub processors: u32,
    /// The address that the control connection reached, as the agent sees it; empty where there is none.
    #[prost(string, tag = "5")]
    pub local_address: String,
    /// The address that the control connection came from, as the agent sees it.
    #[prost(string, tag = "6")]
    pub peer_address: String,
    /// Seconds since 1970 by the agent's clock (version 2).
    #[prost(sint64, tag = "7")]
    pub clock_seconds: i64,
    /// The congestion control that the host gives to connections; empty where it is not known. Who does not know
    /// this field does without.
    #[prost(string, tag = "8")]
    pub congestion: String,
    /// Tells the machine from all others, also after a reboot: 32 bytes, or none from a node, which is
    /// known by its key (version 4).
    #[prost(bytes = "vec", tag = "12")]
    pub machine: Vec<u8>,
}

/// Paths to inspect.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Paths {
    /// The paths as the user typed them, not yet resolved.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub paths: Vec<Vec<u8>>,
}

/// What paths are, in the order asked.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Inspected {
    /// One for each.
    #[prost(message, repeated, tag = "1")]
    pub facts: Vec<PathFacts>,
}

/// What a path is, links followed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PathFacts {
    /// `kind` numbers, 0 where nothing is.
    #[prost(uint32, tag = "1")]
    pub kind: u32,
    /// Size in bytes.
    #[prost(uint64, tag = "2")]
    pub size: u64,
    /// The device it is on.
    #[prost(uint64, tag = "3")]
    pub device: u64,
    /// Its inode there.
    #[prost(uint64, tag = "4")]
    pub inode: u64,
    /// The path with links resolved; of something that is not there, that of its nearest existing directory and the
    /// rest. Of a node (4) it begins at the root: where that is stays unsaid.
    #[prost(bytes = "vec", tag = "5")]
    pub resolved: Vec<u8>,
    /// Why it could not be looked at.
    #[prost(message, optional, tag = "6")]
    pub failure: Option<RawFailure>,
}

/// Accept data connections.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Listen {
    /// Which session they are for, and the secret they prove.
    #[prost(message, optional, tag = "1")]
    pub session: Option<Session>,
    /// First port allowed; 0 for any.
    #[prost(uint32, tag = "2")]
    pub port_low: u32,
    /// Last port allowed.
    #[prost(uint32, tag = "3")]
    pub port_high: u32,
}

/// End data streams in good order.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Retire {
    /// How many. One stays, whatever is asked.
    #[prost(uint32, tag = "1")]
    pub count: u32,
}

/// What ties data connections to a session.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Session {
    /// 16 bytes, random.
    #[prost(bytes = "vec", tag = "1")]
    pub id: Vec<u8>,
    /// 32 bytes, random, for this session only.
    #[prost(bytes = "vec", tag = "2")]
    pub secret: Vec<u8>,
    /// TLS on data connections.
    #[prost(bool, tag = "3")]
    pub encrypt: bool,
}

/// Where data connections are accepted.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Listening {
    /// The port that accepts the data connections.
    #[prost(uint32, tag = "1")]
    pub port: u32,
    /// SHA-256 of the public key that the listener shows.
    #[prost(bytes = "vec", tag = "2")]
    pub pin: Vec<u8>,
}

/// Make data connections.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Dial {
    /// Which session they are for, and the secret they prove.
    #[prost(message, optional, tag = "1")]
    pub session: Option<Session>,
    /// `host:port`, tried one after the other.
    #[prost(string, repeated, tag = "2")]
    pub addresses: Vec<String>,
    /// SHA-256 of the public key that the listener must show.
    #[prost(bytes = "vec", tag = "3")]
    pub pin: Vec<u8>,
    /// How many connections to make.
    #[prost(uint32, tag = "4")]
    pub count: u32,
    /// The number of the first.
    #[prost(uint32, tag = "5")]
    pub first: u32,
    /// Give up after so many milliseconds.
    #[prost(uint32, tag = "6")]
    pub timeout_ms: u32,
    /// Segments of at most so many bytes in both directions; 0 lets TCP decide (version 2).
    #[prost(uint32, tag = "7")]
    pub segment: u32,
    /// Say how far it is (`Connected`) as soon as TCP knows, before anybody has proved anything. Who does not know
    /// this field says nothing.
    #[prost(bool, tag = "8")]
    pub tell_connected: bool,
}

/// A connection that was asked for is there, and is being secured; `Dialed` or `Failed` follows.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Connected {
    /// Round trip in microseconds, as TCP measured it.
    #[prost(uint64, tag = "1")]
    pub round_trip_us: u64,
}

/// A data connection has been made.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Dialed {
    /// The address that answered.
    #[prost(string, tag = "1")]
    pub address: String,
    /// The cipher suite; empty without TLS.
    #[prost(string, tag = "2")]
    pub cipher: String,
    /// Round trip in microseconds, as TCP measured it.
    #[prost(uint64, tag = "3")]
    pub round_trip_us: u64,
}

/// Carry a data stream inside the control connection.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Tunnel {
    /// Which session it is for.
    #[prost(message, optional, tag = "1")]
    pub session: Option<Session>,
    /// Channel of the multiplexed connection.
    #[prost(uint32, tag = "2")]
    pub channel: u32,
    /// Whether this end speaks first.
    #[prost(bool, tag = "3")]
    pub dial: bool,
}

/// Start sending or receiving.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Begin {
    /// Options of the transfer.
    #[prost(message, optional, tag = "1")]
    pub options: Option<Options>,
    /// What this end does.
    #[prost(oneof = "Role", tags = "2, 3")]
    pub role: Option<Role>,
}

/// What an end does.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Role {
    /// It reads and sends.
    #[prost(message, tag = "2")]
    Send(SendRole),
    /// It receives and writes.
    #[prost(message, tag = "3")]
    Receive(ReceiveRole),
}

/// Options of a transfer, as both ends need them. Number 9 is reserved: it was the session's.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Options {
    /// Size of a block in bytes.
    #[prost(uint32, tag = "1")]
    pub block_bytes: u32,
    /// Compute BLAKE3.
    #[prost(bool, tag = "2")]
    pub blake3: bool,
    /// Compute Adler-32.
    #[prost(bool, tag = "3")]
    pub adler32: bool,
    /// Compute CRC-32C.
    #[prost(bool, tag = "4")]
    pub crc32c: bool,
    /// 0 wire, 1 disk, 2 none.
    #[prost(uint32, tag = "5")]
    pub verify: u32,
    /// 0 replace, 1 keep, 2 only existing, 3 older.
    #[prost(uint32, tag = "6")]
    pub existing: u32,
    /// Bytes a second; 0 for no limit.
    #[prost(uint64, tag = "7")]
    pub rate_limit: u64,
    /// Tell of every item.
    #[prost(bool, tag = "8")]
    pub item_events: bool,
    /// Always 1: no end goes by it, but each refuses what is no number of data streams.
    #[prost(uint32, tag = "10")]
    pub streams: u32,
    /// The lower of the two ends' protocol versions; 0 is 1.
    #[prost(uint32, tag = "11")]
    pub version: u32,
    /// 0 group, 1 each, 2 none (version 2).
    #[prost(uint32, tag = "12")]
    pub durability: u32,
    /// A source may grow while it is copied: what it had at first is copied (version 2).
    #[prost(bool, tag = "13")]
    pub allow_growing: bool,
    /// The sending host's congestion control by its kernel name; empty for what it has. Who does not know
    /// this field leaves it alone.
    #[prost(string, tag = "14")]
    pub congestion: String,
    /// Compute XXH3-128, in the place of BLAKE3 (version 3).
    #[prost(bool, tag = "15")]
    pub xxh128: bool,
}

/// The sending role.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SendRole {
    /// What is sent.
    #[prost(message, repeated, tag = "1")]
    pub sources: Vec<Source>,
    /// The receiver knows items of an earlier attempt: ask before sending (version 2).
    #[prost(bool, tag = "2")]
    pub known: bool,
}

/// One source of a copy.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Source {
    /// The path as typed; empty for a synthetic source.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// Where it goes, relative to the destination directory; empty for the directory itself.
    #[prost(bytes = "vec", tag = "2")]
    pub target: Vec<u8>,
    /// 0 a path, 1 standard input, 2 zeros, 3 random bytes.
    #[prost(uint32, tag = "3")]
    pub synthetic: u32,
    /// Bytes of a synthetic source.
    #[prost(uint64, tag = "4")]
    pub size: u64,
}

/// The receiving role.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ReceiveRole {
    /// The directory that targets are relative to; made when missing. For a sink of kind 3, the path of the sink.
    #[prost(bytes = "vec", tag = "1")]
    pub directory: Vec<u8>,
    /// 0 files, 1 standard output, 2 nothing is kept, 3 a device or FIFO.
    #[prost(uint32, tag = "2")]
    pub sink: u32,
    /// What is taken: items of these names and what is below them. None: whatever comes.
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub targets: Vec<Vec<u8>>,
    /// What the marker is found by when the same is copied again: [`crate::limits::MARKER_KEY_BYTES`] bytes, or none
    /// for no marker (version 2). The answer to `Begin` counts the items that it knows.
    #[prost(bytes = "vec", tag = "4")]
    pub marker: Vec<u8>,
    /// What an earlier attempt has left under that key is not used, but removed (version 2).
    #[prost(bool, tag = "5")]
    pub anew: bool,
    /// The source's clock when the session began, in seconds since 1970 (versions 2 and 3; a receiver of version
    /// 4 goes by fingerprints).
    #[prost(sint64, tag = "6")]
    pub source_clock: i64,
}

/// The end of a request, with a count where there is something to count.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Counted {
    /// For instance entries removed.
    #[prost(uint64, tag = "1")]
    pub count: u64,
}

/// How a transfer stands at one end.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Progress {
    /// Items that have ended.
    #[prost(uint64, tag = "1")]
    pub files_done: u64,
    /// Bytes that have landed.
    #[prost(uint64, tag = "2")]
    pub bytes_done: u64,
    /// Items that the scan has found.
    #[prost(uint64, tag = "3")]
    pub files_found: u64,
    /// Bytes of the items that the scan has found.
    #[prost(uint64, tag = "4")]
    pub bytes_found: u64,
    /// The scan has ended.
    #[prost(bool, tag = "5")]
    pub scan_complete: bool,
    /// Items that have failed.
    #[prost(uint64, tag = "6")]
    pub files_failed: u64,
}

/// Items that ended.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Items {
    /// In the order in which they ended.
    #[prost(message, repeated, tag = "1")]
    pub list: Vec<Item>,
}

/// An item that ended.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Item {
    /// Relative to the destination directory.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// `kind` numbers.
    #[prost(uint32, tag = "2")]
    pub kind: u32,
    /// Size in bytes.
    #[prost(uint64, tag = "3")]
    pub size: u64,
    /// Digests of the whole file.
    #[prost(message, optional, tag = "4")]
    pub digests: Option<RawDigests>,
    /// 0 published, 1 kept, 2 failed.
    #[prost(uint32, tag = "5")]
    pub outcome: u32,
    /// Why it failed.
    #[prost(message, optional, tag = "6")]
    pub failure: Option<RawFailure>,
}

/// The transfer has ended at one end.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Ended {
    /// Files that got their names.
    #[prost(uint64, tag = "1")]
    pub files: u64,
    /// Symbolic links that got their names.
    #[prost(uint64, tag = "2")]
    pub symlinks: u64,
    /// Directories that were made or found.
    #[prost(uint64, tag = "3")]
    pub directories: u64,
    /// Bytes of the files that got their names.
    #[prost(uint64, tag = "4")]
    pub bytes: u64,
    /// Items kept as they were.
    #[prost(uint64, tag = "5")]
    pub kept: u64,
    /// Items that failed.
    #[prost(uint64, tag = "6")]
    pub failed: u64,
    /// Of those, vanished.
    #[prost(uint64, tag = "7")]
    pub vanished: u64,
    /// Of those, neither file nor directory nor link.
    #[prost(uint64, tag = "8")]
    pub specials: u64,
    /// Recovered: digest mismatches.
    #[prost(uint64, tag = "9")]
    pub mismatches: u64,
    /// Recovered: sent again after a stream was lost.
    #[prost(uint64, tag = "10")]
    pub resent: u64,
    /// Recovered: stragglers sent again.
    #[prost(uint64, tag = "11")]
    pub stragglers: u64,
    /// Recovered: streams lost.
    #[prost(uint64, tag = "12")]
    pub streams_lost: u64,
    /// Everything published is on stable storage.
    #[prost(bool, tag = "13")]
    pub durable: bool,
    /// Why it ended early.
    #[prost(message, optional, tag = "14")]
    pub failure: Option<RawFailure>,
    /// Items that an earlier attempt had published (version 2).
    #[prost(uint64, tag = "15")]
    pub resumed_files: u64,
    /// Bytes that an earlier attempt had brought, of whole and of unfinished files (version 2).
    #[prost(uint64, tag = "16")]
    pub resumed_bytes: u64,
    /// Recovered: data streams ended because what came was altered (version 2, told by the receiver).
    #[prost(uint64, tag = "17")]
    pub streams_altered: u64,
    /// Recovered: blocks that storage gave back otherwise than they were written (version 2, told by the receiver).
    #[prost(uint64, tag = "18")]
    pub blocks_rotten: u64,
    /// Recovered: items sent again whole, because what was written was lost (version 2).
    #[prost(uint64, tag = "19")]
    pub items_again: u64,
    /// Permission bits that the destination did not keep (4, told by the receiver).
    #[prost(message, optional, tag = "20")]
    pub unkept_permissions: Option<RawUnkept>,
    /// Modification times that the destination did not keep (4, told by the receiver).
    #[prost(message, optional, tag = "21")]
    pub unkept_times: Option<RawUnkept>,
    /// Markers and part files of Carrack's own that the scan has left out (version 4).
    #[prost(uint64, tag = "24")]
    pub leftovers: u64,
    /// Part files of an earlier attempt that were read again before they were believed (version
    /// 4, told by the receiver).
    #[prost(uint64, tag = "30")]
    pub parts_reread: u64,
    /// Bytes of them.
    #[prost(uint64, tag = "31")]
    pub bytes_reread: u64,
    /// With `--verify disk`, files that lie where nothing can be read back past the cache (version
    /// 4, told by the receiver).
    #[prost(uint64, tag = "32")]
    pub files_not_read_back: u64,
    /// Attributes of further kinds that were not kept: told by the receiver, and by the sender where the receiver is
    /// of a version before (4).
    #[prost(message, optional, boxed, tag = "33")]
    pub unkept_attributes: Option<Box<RawUnkeptAttributes>>,
}

/// See [`crate::report::UnkeptAttributes`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct RawUnkeptAttributes {
    /// How many items it happened to.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// The first of them.
    #[prost(bytes = "vec", tag = "2")]
    pub path: Vec<u8>,
    /// Numbers of the kinds.
    #[prost(uint32, repeated, tag = "3")]
    pub kinds: Vec<u32>,
}

/// See [`crate::report::Unkept`]; permission bits stand in the place of seconds.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RawUnkept {
    /// How many items it happened to.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// The first of them.
    #[prost(bytes = "vec", tag = "2")]
    pub path: Vec<u8>,
    /// Seconds, or permission bits.
    #[prost(sint64, tag = "3")]
    pub wanted: i64,
    /// Nanoseconds of the time that was wanted.
    #[prost(uint32, tag = "4")]
    pub wanted_nanos: u32,
    /// Seconds, or permission bits.
    #[prost(sint64, tag = "5")]
    pub kept: i64,
    /// Nanoseconds of the time that was kept.
    #[prost(uint32, tag = "6")]
    pub kept_nanos: u32,
}

/// Where the time of one end's streams has gone, in nanoseconds: see [`crate::pace::limit::StageTimes`].
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Stages {
    /// Time in which it carried something.
    #[prost(uint64, tag = "1")]
    pub busy_ns: u64,
    /// Of that, waiting for storage.
    #[prost(uint64, tag = "2")]
    pub storage_ns: u64,
    /// Of that, waiting for the connection.
    #[prost(uint64, tag = "3")]
    pub network_ns: u64,
    /// Of that, waiting because of the rate that was asked for.
    #[prost(uint64, tag = "4")]
    pub pacing_ns: u64,
    /// When this was so, by the clock of this end, from the beginning of the transfer on (version 3).
    #[prost(uint64, tag = "5")]
    pub at_ns: u64,
    /// Bytes that the other host has acknowledged, over all streams so far (version 3, of the sender).
    #[prost(uint64, tag = "6")]
    pub delivered: u64,
    /// Segments sent, those sent again included (version 3, of the sender).
    #[prost(uint64, tag = "7")]
    pub segments: u64,
    /// Segments sent again (version 3, of the sender).
    #[prost(uint64, tag = "8")]
    pub repeated: u64,
}

/// A data stream was lost, or has ended as it was asked to. Numbers 1 and 2 are reserved: they told which it
/// was, and how many are left.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StreamLost {
    /// Why it failed, if it did.
    #[prost(message, optional, tag = "3")]
    pub failure: Option<RawFailure>,
    /// The path took its first words, and nothing that fills a packet.
    #[prost(bool, tag = "4")]
    pub stuck: bool,
    /// It had been asked to end (version 3): without a failure, it has ended in good order.
    #[prost(bool, tag = "5")]
    pub retired: bool,
}

/// List a directory, or describe a file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct List {
    /// The path as the user typed it, not yet resolved.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// And everything below.
    #[prost(bool, tag = "2")]
    pub recursive: bool,
    /// Describe the path itself, even when it is a directory.
    #[prost(bool, tag = "3")]
    pub itself: bool,
    /// The sources of a copy, up to the one of this path: what an earlier one has under the same name is told
    /// as a failure (version 4).
    #[prost(message, repeated, tag = "4")]
    pub sources: Vec<Source>,
}

/// A page of a listing.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Page {
    /// At most [`crate::limits::PAGE_ENTRIES`].
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<Entry>,
}

/// One entry of a listing.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Entry {
    /// Relative to the listed directory.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// `kind` numbers.
    #[prost(uint32, tag = "2")]
    pub kind: u32,
    /// Size in bytes.
    #[prost(uint64, tag = "3")]
    pub size: u64,
    /// Permission bits of the mode.
    #[prost(uint32, tag = "4")]
    pub mode: u32,
    /// When the content was last modified.
    #[prost(sint64, tag = "5")]
    pub mtime_seconds: i64,
    /// Nanoseconds of the modification time.
    #[prost(uint32, tag = "6")]
    pub mtime_nanos: u32,
    /// Of a symbolic link.
    #[prost(bytes = "vec", tag = "7")]
    pub link_target: Vec<u8>,
    /// Why it could not be read: then nothing else is known.
    #[prost(message, optional, tag = "8")]
    pub failure: Option<RawFailure>,
}

/// Make a directory.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MakeDirectory {
    /// The path as the user typed it, not yet resolved.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// And those above it; then one that exists is fine.
    #[prost(bool, tag = "2")]
    pub parents: bool,
}

/// Which path gets which name.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Rename {
    /// The path that is renamed, as the user typed it.
    #[prost(bytes = "vec", tag = "1")]
    pub from: Vec<u8>,
    /// The new path, as the user typed it.
    #[prost(bytes = "vec", tag = "2")]
    pub to: Vec<u8>,
}

/// Which path is removed, and how.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Remove {
    /// The path as the user typed it, not yet resolved.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// A directory with everything below it.
    #[prost(bool, tag = "2")]
    pub recursive: bool,
    /// What cannot be removed below it is told in pages (4), as entries with a failure, and the answer is how many
    /// were. Without that the first such failure is the answer; either way all is removed that can be.
    #[prost(bool, tag = "3")]
    pub go_on: bool,
}

/// Digests of files.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sum {
    /// As typed; a directory stands for all files below it.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// Compute BLAKE3.
    #[prost(bool, tag = "2")]
    pub blake3: bool,
    /// Compute Adler-32.
    #[prost(bool, tag = "3")]
    pub adler32: bool,
    /// Compute CRC-32C.
    #[prost(bool, tag = "4")]
    pub crc32c: bool,
    /// Compute XXH3-128 (version 3); not together with BLAKE3.
    #[prost(bool, tag = "5")]
    pub xxh128: bool,
}

/// Digests of some files.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sums {
    /// In the order of the walk.
    #[prost(message, repeated, tag = "1")]
    pub list: Vec<Item>,
}

/// Collect what transfers have left that will not be taken up again.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Collect {
    /// As typed: a directory, searched with everything below.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// Only what nothing has been written to for so many seconds.
    #[prost(uint64, tag = "2")]
    pub older_seconds: u64,
    /// Report what would be removed, and remove nothing.
    #[prost(bool, tag = "3")]
    pub dry_run: bool,
}

impl ToAgent {
    /// Encodes the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode_to_vec()
    }

    /// Decodes from bytes.
    ///
    /// # Errors
    /// When it cannot be read or asks nothing that is known.
    pub fn from_bytes(bytes: &[u8]) -> Result<(u64, Ask), ProtocolError> {
        let message: Self = decode(bytes, "a request", fields::REQUEST)?;
        let ask = message.ask.ok_or_else(|| ProtocolError::violation("the peer sent a request of unknown type"))?;
        Ok((message.request, ask))
    }
}

impl FromAgent {
    /// Encodes the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode_to_vec()
    }

    /// Decodes from bytes.
    ///
    /// # Errors
    /// When it cannot be read or says nothing that is known.
    pub fn from_bytes(bytes: &[u8]) -> Result<(u64, Tell), ProtocolError> {
        let message: Self = decode(bytes, "an answer", fields::ANSWER)?;
        let tell = message.tell.ok_or_else(|| ProtocolError::violation("the peer sent an answer of unknown type"))?;
        Ok((message.request, tell))
    }
}
