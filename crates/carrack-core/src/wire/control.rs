//! What the command says to each end of a copy (an *agent*: over ssh, in a node, or in the command's own process), and what
//! the end says back. Also the verbs of a file manager.
//!
//! Tagged fields (protobuf). A request has a number, and every answer to it bears the same one. An agent carries out one
//! request at a time; status of a running transfer comes unasked.

use prost::Message as _;

use super::{ProtocolError, decode, error_code::ErrorCode, error_code::Side, peer::raw::Failure as RawFailure};
use crate::report::{self, FileDigests, ItemKind, ItemReport, Outcome};
use crate::request::{Digests, Encrypt, Existing, Verify};
use crate::{limits, tuning};

/// From the command to an agent.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ToAgent {
    /// The request's number.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// What is asked.
    #[prost(oneof = "Ask", tags = "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14")]
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
    /// Rename.
    #[prost(message, tag = "11")]
    Rename(Rename),
    /// Remove.
    #[prost(message, tag = "12")]
    Remove(Remove),
    /// Digests of files.
    #[prost(message, tag = "13")]
    Sum(Sum),
    /// The end: the agent closes the connection.
    #[prost(message, tag = "14")]
    Bye(Empty),
}

/// From an agent to the command.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FromAgent {
    /// The request answered; 0 for what comes unasked.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// What is said.
    #[prost(oneof = "Tell", tags = "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13")]
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
}

/// Nothing.
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
}

/// Paths to inspect.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Paths {
    /// As typed.
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
    /// Bytes.
    #[prost(uint64, tag = "2")]
    pub size: u64,
    /// The device it is on.
    #[prost(uint64, tag = "3")]
    pub device: u64,
    /// Its inode there.
    #[prost(uint64, tag = "4")]
    pub inode: u64,
    /// The path with links resolved; of something that is not there, that of its nearest existing directory and the rest.
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
    /// The port.
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
    /// How many.
    #[prost(uint32, tag = "4")]
    pub count: u32,
    /// The number of the first.
    #[prost(uint32, tag = "5")]
    pub first: u32,
    /// Give up after so many milliseconds.
    #[prost(uint32, tag = "6")]
    pub timeout_ms: u32,
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

/// Options of a transfer, as both ends need them.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Options {
    /// Bytes.
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
    /// Which session's data connections to use.
    #[prost(bytes = "vec", tag = "9")]
    pub session_id: Vec<u8>,
    /// Data streams that will be made.
    #[prost(uint32, tag = "10")]
    pub streams: u32,
}

/// The sending role.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SendRole {
    /// What is sent.
    #[prost(message, repeated, tag = "1")]
    pub sources: Vec<Source>,
}

/// One source.
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
}

/// How a transfer stands at one end.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Progress {
    /// See [`report::Progress`].
    #[prost(uint64, tag = "1")]
    pub files_done: u64,
    /// Bytes.
    #[prost(uint64, tag = "2")]
    pub bytes_done: u64,
    /// Items.
    #[prost(uint64, tag = "3")]
    pub files_found: u64,
    /// Bytes.
    #[prost(uint64, tag = "4")]
    pub bytes_found: u64,
    /// The scan has ended.
    #[prost(bool, tag = "5")]
    pub scan_complete: bool,
    /// Items.
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
    /// Bytes.
    #[prost(uint64, tag = "3")]
    pub size: u64,
    /// Digests.
    #[prost(message, optional, tag = "4")]
    pub digests: Option<RawDigests>,
    /// 0 published, 1 kept, 2 failed.
    #[prost(uint32, tag = "5")]
    pub outcome: u32,
    /// Why it failed.
    #[prost(message, optional, tag = "6")]
    pub failure: Option<RawFailure>,
}

/// Digests of a file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RawDigests {
    /// 32 bytes, or none.
    #[prost(bytes = "vec", tag = "1")]
    pub blake3: Vec<u8>,
    /// Adler-32.
    #[prost(uint32, optional, tag = "2")]
    pub adler32: Option<u32>,
    /// CRC-32C.
    #[prost(uint32, optional, tag = "3")]
    pub crc32c: Option<u32>,
}

/// The transfer has ended at one end.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Ended {
    /// Files published.
    #[prost(uint64, tag = "1")]
    pub files: u64,
    /// Links published.
    #[prost(uint64, tag = "2")]
    pub symlinks: u64,
    /// Directories.
    #[prost(uint64, tag = "3")]
    pub directories: u64,
    /// Bytes published.
    #[prost(uint64, tag = "4")]
    pub bytes: u64,
    /// Items kept as they were.
    #[prost(uint64, tag = "5")]
    pub kept: u64,
    /// Items failed.
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
}

/// List a directory, or describe a file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct List {
    /// As typed.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// And everything below.
    #[prost(bool, tag = "2")]
    pub recursive: bool,
    /// Describe the path itself, even when it is a directory.
    #[prost(bool, tag = "3")]
    pub itself: bool,
}

/// A page of a listing.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Page {
    /// At most [`limits::PAGE_ENTRIES`].
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
    /// Bytes.
    #[prost(uint64, tag = "3")]
    pub size: u64,
    /// Permission bits.
    #[prost(uint32, tag = "4")]
    pub mode: u32,
    /// Modification time.
    #[prost(sint64, tag = "5")]
    pub mtime_seconds: i64,
    /// And nanoseconds.
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
    /// As typed.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// And those above it; then one that exists is fine.
    #[prost(bool, tag = "2")]
    pub parents: bool,
}

/// Rename.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Rename {
    /// As typed.
    #[prost(bytes = "vec", tag = "1")]
    pub from: Vec<u8>,
    /// As typed.
    #[prost(bytes = "vec", tag = "2")]
    pub to: Vec<u8>,
}

/// Remove.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Remove {
    /// As typed.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// A directory with everything below it.
    #[prost(bool, tag = "2")]
    pub recursive: bool,
}

/// Digests of files.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sum {
    /// As typed; a directory stands for all files below it.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// Which.
    #[prost(bool, tag = "2")]
    pub blake3: bool,
    /// Which.
    #[prost(bool, tag = "3")]
    pub adler32: bool,
    /// Which.
    #[prost(bool, tag = "4")]
    pub crc32c: bool,
}

/// Digests of some files.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sums {
    /// In the order of the walk.
    #[prost(message, repeated, tag = "1")]
    pub list: Vec<Item>,
}

/// The end of a request, with a count where there is something to count.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Counted {
    /// For instance entries removed.
    #[prost(uint64, tag = "1")]
    pub count: u64,
}

impl ToAgent {
    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode_to_vec()
    }

    /// From bytes.
    ///
    /// # Errors
    /// When it cannot be read or asks nothing that is known.
    pub fn from_bytes(bytes: &[u8]) -> Result<(u64, Ask), ProtocolError> {
        let message: Self = decode(bytes, "a request")?;
        let ask = message.ask.ok_or_else(|| ProtocolError::violation("the peer sent a request of unknown type"))?;
        Ok((message.request, ask))
    }
}

impl FromAgent {
    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode_to_vec()
    }

    /// From bytes.
    ///
    /// # Errors
    /// When it cannot be read or says nothing that is known.
    pub fn from_bytes(bytes: &[u8]) -> Result<(u64, Tell), ProtocolError> {
        let message: Self = decode(bytes, "an answer")?;
        let tell = message.tell.ok_or_else(|| ProtocolError::violation("the peer sent an answer of unknown type"))?;
        Ok((message.request, tell))
    }
}

/// The number of a kind in messages; 0 is nothing.
pub fn kind_number(kind: ItemKind) -> u32 {
    match kind {
        ItemKind::File => 1,
        ItemKind::Directory => 2,
        ItemKind::Symlink => 3,
        ItemKind::Special => 4,
    }
}

/// A kind from its number; `None` for 0 and unknown ones.
pub fn kind_from_number(number: u32) -> Option<ItemKind> {
    [ItemKind::File, ItemKind::Directory, ItemKind::Symlink, ItemKind::Special]
        .into_iter()
        .find(|kind| kind_number(*kind) == number)
}

/// Options of a transfer, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferOptions {
    /// A power of two within bounds.
    pub block_bytes: u32,
    /// What is computed.
    pub digests: Digests,
    /// How files are proved.
    pub verify: Verify,
    /// What happens to names that exist.
    pub existing: Existing,
    /// Bytes a second.
    pub rate_limit: Option<u64>,
    /// Tell of every item.
    pub item_events: bool,
    /// Data streams that will be made.
    pub streams: u16,
}

impl TransferOptions {
    /// As a message.
    pub fn to_message(&self, session_id: [u8; 16]) -> Options {
        Options {
            block_bytes: self.block_bytes,
            blake3: self.digests.blake3,
            adler32: self.digests.adler32,
            crc32c: self.digests.crc32c,
            verify: match self.verify {
                Verify::Wire => 0,
                Verify::Disk => 1,
                Verify::None => 2,
            },
            existing: match self.existing {
                Existing::Replace => 0,
                Existing::Keep => 1,
                Existing::Only => 2,
                Existing::Older => 3,
            },
            rate_limit: self.rate_limit.unwrap_or(0),
            item_events: self.item_events,
            session_id: session_id.to_vec(),
            streams: u32::from(self.streams),
        }
    }

    /// From a message, every value checked.
    ///
    /// # Errors
    /// On a value out of bounds.
    pub fn from_message(options: &Options) -> Result<Self, ProtocolError> {
        let block = options.block_bytes;
        if !block.is_power_of_two() || !(tuning::BLOCK_BYTES_MIN..=tuning::BLOCK_BYTES_MAX).contains(&block) {
            return Err(ProtocolError::violation(format!("the peer asked for blocks of {block} bytes")));
        }
        let streams = u16::try_from(options.streams).ok().filter(|&count| (1..=limits::STREAMS).contains(&count));
        let streams = streams
            .ok_or_else(|| ProtocolError::violation(format!("the peer asked for {} streams", options.streams)))?;
        let unknown = |what, value| ProtocolError::violation(format!("the peer asked for unknown {what} {value}"));
        Ok(Self {
            block_bytes: block,
            digests: Digests { blake3: options.blake3, adler32: options.adler32, crc32c: options.crc32c },
            verify: match options.verify {
                0 => Verify::Wire,
                1 => Verify::Disk,
                2 => Verify::None,
                other => return Err(unknown("verification", other)),
            },
            existing: match options.existing {
                0 => Existing::Replace,
                1 => Existing::Keep,
                2 => Existing::Only,
                3 => Existing::Older,
                other => return Err(unknown("treatment of existing files", other)),
            },
            rate_limit: (options.rate_limit > 0).then_some(options.rate_limit),
            item_events: options.item_events,
            streams,
        })
    }
}

/// What a session's data connections need, checked.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey {
    /// Which session.
    pub id: [u8; 16],
    /// Proves that a connection belongs to it.
    pub secret: [u8; 32],
    /// TLS, or clear with MACs.
    pub encrypt: Encrypt,
}

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionKey").field("encrypt", &self.encrypt).finish_non_exhaustive()
    }
}

impl SessionKey {
    /// As a message.
    pub fn to_message(&self) -> Session {
        Session { id: self.id.to_vec(), secret: self.secret.to_vec(), encrypt: self.encrypt == Encrypt::Tls }
    }

    /// From a message.
    ///
    /// # Errors
    /// When something is missing or of the wrong length.
    pub fn from_message(session: Option<&Session>) -> Result<Self, ProtocolError> {
        let wrong = || ProtocolError::violation("the peer sent a session without a whole identifier and secret");
        let session = session.ok_or_else(wrong)?;
        Ok(Self {
            id: session.id.as_slice().try_into().map_err(|_| wrong())?,
            secret: session.secret.as_slice().try_into().map_err(|_| wrong())?,
            encrypt: if session.encrypt { Encrypt::Tls } else { Encrypt::None },
        })
    }
}

impl From<FileDigests> for RawDigests {
    fn from(digests: FileDigests) -> Self {
        Self {
            blake3: digests.blake3.map(|digest| digest.to_vec()).unwrap_or_default(),
            adler32: digests.adler32,
            crc32c: digests.crc32c,
        }
    }
}

impl From<RawDigests> for FileDigests {
    fn from(digests: RawDigests) -> Self {
        Self { blake3: digests.blake3.as_slice().try_into().ok(), adler32: digests.adler32, crc32c: digests.crc32c }
    }
}

impl From<ItemReport> for Item {
    fn from(item: ItemReport) -> Self {
        let (outcome, failure) = match item.outcome {
            Outcome::Published => (0, None),
            Outcome::Kept => (1, None),
            Outcome::Failed(failure) => (2, Some(failure.into())),
        };
        let digests = Some(item.digests.into());
        Self { path: item.path, kind: kind_number(item.kind), size: item.size, digests, outcome, failure }
    }
}

impl From<Item> for ItemReport {
    fn from(item: Item) -> Self {
        let unexplained =
            report::Failure { code: ErrorCode::Other, side: Side::Link, message: "no reason was given".into() };
        Self {
            path: item.path,
            kind: kind_from_number(item.kind).unwrap_or(ItemKind::File),
            size: item.size,
            digests: item.digests.unwrap_or_default().into(),
            outcome: match item.outcome {
                0 => Outcome::Published,
                1 => Outcome::Kept,
                _ => Outcome::Failed(item.failure.map_or(unexplained, report::Failure::from)),
            },
        }
    }
}

impl From<report::Progress> for Progress {
    fn from(progress: report::Progress) -> Self {
        Self {
            files_done: progress.files_done,
            bytes_done: progress.bytes_done,
            files_found: progress.files_found,
            bytes_found: progress.bytes_found,
            scan_complete: progress.scan_complete,
            files_failed: progress.files_failed,
        }
    }
}

impl From<Progress> for report::Progress {
    fn from(progress: Progress) -> Self {
        Self {
            files_done: progress.files_done,
            bytes_done: progress.bytes_done,
            files_found: progress.files_found,
            bytes_found: progress.bytes_found,
            scan_complete: progress.scan_complete,
            files_failed: progress.files_failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_bounds_are_refused() {
        let good = TransferOptions {
            block_bytes: tuning::BLOCK_BYTES,
            digests: Digests { blake3: true, adler32: false, crc32c: true },
            verify: Verify::Disk,
            existing: Existing::Older,
            rate_limit: Some(5),
            item_events: true,
            streams: 4,
        };
        let message = good.to_message([1; 16]);
        assert_eq!(TransferOptions::from_message(&message), Ok(good));
        for block_bytes in [0, 1, 4095, 1 << 30, u32::MAX] {
            assert!(TransferOptions::from_message(&Options { block_bytes, ..message.clone() }).is_err());
        }
        for streams in [0, 10_000, u32::MAX] {
            assert!(TransferOptions::from_message(&Options { streams, ..message.clone() }).is_err());
        }
        assert!(TransferOptions::from_message(&Options { verify: 3, ..message.clone() }).is_err());
        assert!(TransferOptions::from_message(&Options { existing: 4, ..message }).is_err());
    }

    #[test]
    fn a_secret_does_not_print() {
        let key = SessionKey { id: [0xaa; 16], secret: [0xbb; 32], encrypt: Encrypt::Tls };
        assert!(!format!("{key:?}").contains("187"));
        assert_eq!(SessionKey::from_message(Some(&key.to_message())), Ok(key));
        assert!(SessionKey::from_message(Some(&Session::default())).is_err());
    }
}
