//! A transfer: how it begins at each end, how it stands, and how it has ended.

use crate::wire::values::{RawDigests, RawFailure};

/// Start sending or receiving.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Begin {
    /// Options of the transfer.
    #[prost(message, optional, tag = "1")]
    pub options: Option<Options>,
    /// Whether this end sends or receives, and what.
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
    /// The protocol version that both ends speak.
    #[prost(uint32, tag = "11")]
    pub version: u32,
    /// 0 group, 1 each, 2 none.
    #[prost(uint32, tag = "12")]
    pub durability: u32,
    /// A source may grow while it is copied: what it had at first is copied.
    #[prost(bool, tag = "13")]
    pub allow_growing: bool,
    /// The sending host's congestion control by its kernel name; empty for what it has. Who does not know
    /// this field leaves it alone.
    #[prost(string, tag = "14")]
    pub congestion: String,
    /// Compute XXH3-128, in the place of BLAKE3.
    #[prost(bool, tag = "15")]
    pub xxh128: bool,
}

/// The sending role.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SendRole {
    /// The sources that are sent.
    #[prost(message, repeated, tag = "1")]
    pub sources: Vec<Source>,
    /// The receiver knows items of an earlier attempt: ask before sending.
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
    /// for no marker. The answer to `Begin` counts the items that it knows.
    #[prost(bytes = "vec", tag = "4")]
    pub marker: Vec<u8>,
    /// What an earlier attempt has left under that key is not used, but removed.
    #[prost(bool, tag = "5")]
    pub anew: bool,
    /// The sender leaves items out by a selection: what an earlier attempt has left of these stays.
    #[prost(bool, tag = "6")]
    pub partial: bool,
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
    /// Failed items that had vanished from the source.
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
    /// Items that an earlier attempt had published.
    #[prost(uint64, tag = "15")]
    pub resumed_files: u64,
    /// Bytes that an earlier attempt had brought, of whole and of unfinished files.
    #[prost(uint64, tag = "16")]
    pub resumed_bytes: u64,
    /// Recovered: data streams ended because what came was altered (told by the receiver).
    #[prost(uint64, tag = "17")]
    pub streams_altered: u64,
    /// Recovered: blocks that storage gave back otherwise than they were written (told by the receiver).
    #[prost(uint64, tag = "18")]
    pub blocks_rotten: u64,
    /// Recovered: items sent again whole, because what was written was lost.
    #[prost(uint64, tag = "19")]
    pub items_again: u64,
    /// Permission bits that the destination did not keep (told by the receiver).
    #[prost(message, optional, tag = "20")]
    pub unkept_permissions: Option<RawUnkept>,
    /// Modification times that the destination did not keep (told by the receiver).
    #[prost(message, optional, tag = "21")]
    pub unkept_times: Option<RawUnkept>,
    /// Markers and part files of Carrack's own that the scan has left out.
    #[prost(uint64, tag = "24")]
    pub leftovers: u64,
    /// Part files of an earlier attempt that were read again before they were believed (told by the receiver).
    #[prost(uint64, tag = "30")]
    pub parts_reread: u64,
    /// Bytes of them.
    #[prost(uint64, tag = "31")]
    pub bytes_reread: u64,
    /// With `--verify disk`, files that lie where nothing can be read back past the cache (told by the receiver).
    #[prost(uint64, tag = "32")]
    pub files_not_read_back: u64,
    /// Attributes of further kinds that were not kept: told by the receiver.
    #[prost(message, optional, boxed, tag = "33")]
    pub unkept_attributes: Option<Box<RawUnkeptAttributes>>,
    /// A sync failed: items that had got their names since the last one that had not (told by the receiver).
    #[prost(uint64, tag = "34")]
    pub unsynced: u64,
    /// Their paths, as far as they fit.
    #[prost(bytes = "vec", repeated, tag = "35")]
    pub unsynced_paths: Vec<Vec<u8>>,
    /// Unfinished files of an earlier attempt that were not asked for, and stay (told by the receiver).
    #[prost(message, optional, boxed, tag = "36")]
    pub unfinished: Option<Box<RawUnfinished>>,
    /// Directories among those whose permission bits were not kept (told by the receiver).
    #[prost(message, optional, boxed, tag = "37")]
    pub unkept_directories: Option<Box<RawUnkeptDirectories>>,
}

/// See [`crate::report::UnkeptDirectories`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct RawUnkeptDirectories {
    /// So many.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// Their paths, as far as they fit.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub paths: Vec<Vec<u8>>,
}

/// See [`crate::report::Unfinished`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct RawUnfinished {
    /// So many.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// Their paths, as far as they fit.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub paths: Vec<Vec<u8>>,
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
    /// How many items each of them stands for, in the same order.
    #[prost(uint64, repeated, tag = "4")]
    pub counts: Vec<u64>,
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
    /// When this was so, by the clock of this end, from the beginning of the transfer on.
    #[prost(uint64, tag = "5")]
    pub at_ns: u64,
    /// Bytes that the other host has acknowledged, over all streams so far (of the sender).
    #[prost(uint64, tag = "6")]
    pub delivered: u64,
    /// Segments sent, those sent again included (of the sender).
    #[prost(uint64, tag = "7")]
    pub segments: u64,
    /// Segments sent again (of the sender).
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
    /// It had been asked to end: without a failure, it has ended in good order.
    #[prost(bool, tag = "5")]
    pub retired: bool,
}
