//! A transfer: how it begins at each end, how it stands, and how it has ended.

use crate::wire::control::options::RawOptions;
use crate::wire::values::{RawDigests, RawFailure};

/// Start sending or receiving.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Begin {
    /// Options of the transfer.
    #[prost(message, optional, tag = "1")]
    pub options: Option<RawOptions>,
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
    /// What only the destination has is deleted.
    #[prost(message, optional, tag = "7")]
    pub delete: Option<RawDeleteOrder>,
    /// What is replaced or deleted is kept.
    #[prost(message, optional, tag = "8")]
    pub backup: Option<RawBackup>,
    /// The attributes of the source itself do not come: of that only some paths are copied.
    #[prost(bool, tag = "9")]
    pub lacks_top: bool,
}

/// See [`crate::reference::ReferenceDirectories`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct References {
    /// What becomes of a file that one of them has: 0 a hard link to it, 1 a copy of it, 2 nothing.
    #[prost(uint32, tag = "1")]
    pub used: u32,
    /// Their paths as typed.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub paths: Vec<Vec<u8>>,
}

/// See [`crate::accounts::AccountMaps`]: rules as they are typed, none as an empty text.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RawAccounts {
    /// Of owners.
    #[prost(string, tag = "1")]
    pub users: String,
    /// Of groups.
    #[prost(string, tag = "2")]
    pub groups: String,
}

/// See [`crate::backup::Backup`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct RawBackup {
    /// Relative to the destination; empty where each stays beside its place.
    #[prost(bytes = "vec", tag = "1")]
    pub directory: Vec<u8>,
    /// Stands at the end of each name.
    #[prost(bytes = "vec", tag = "2")]
    pub suffix: Vec<u8>,
}

/// See [`crate::request::DeleteOrder`].
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct RawDeleteOrder {
    /// Where more would be deleted, nothing is,
    #[prost(uint64, optional, tag = "1")]
    pub most: Option<u64>,
    /// or so many are.
    #[prost(bool, tag = "2")]
    pub partial: bool,
    /// An empty source empties the destination.
    #[prost(bool, tag = "3")]
    pub allow_empty: bool,
    /// Failures keep only what is in directories that could not be listed.
    #[prost(bool, tag = "4")]
    pub ignore_errors: bool,
    /// Before much is deleted, the command is asked.
    #[prost(bool, tag = "5")]
    pub asks: bool,
    /// Where more hundredths of what is there would be deleted, nothing is: 0 to 100.
    #[prost(uint32, optional, tag = "6")]
    pub share: Option<u32>,
}

/// What is about to be deleted.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Deletion {
    /// How many items.
    #[prost(uint64, tag = "1")]
    pub items: u64,
    /// Of how many.
    #[prost(uint64, tag = "2")]
    pub of: u64,
    /// Bytes of the files among them, where that is known.
    #[prost(uint64, optional, tag = "3")]
    pub bytes: Option<u64>,
}

/// The answer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MayDelete {
    /// Whether it may be done.
    #[prost(bool, tag = "1")]
    pub may: bool,
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
    /// 0 published, 1 kept, 2 failed, 3 the same, 4 planned, 5 deleted, 6 to be deleted.
    #[prost(uint32, tag = "5")]
    pub outcome: u32,
    /// Why it failed.
    #[prost(message, optional, tag = "6")]
    pub failure: Option<RawFailure>,
    /// How it compared with what the destination had: its number.
    #[prost(uint32, optional, tag = "7")]
    pub judgment: Option<u32>,
}

/// The files in flight; all others are not, or not any more.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InFlight {
    /// One that was told before comes before one that was not.
    #[prost(message, repeated, tag = "1")]
    pub list: Vec<ItemInFlight>,
}

/// A file that has begun to arrive and has no name yet.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ItemInFlight {
    /// Relative to the destination directory.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// Size in bytes, where that is known.
    #[prost(uint64, optional, tag = "2")]
    pub size: Option<u64>,
    /// Bytes that have landed.
    #[prost(uint64, tag = "3")]
    pub bytes: u64,
}

/// Items that were made, changed or deleted at the destination, or would be.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Changes {
    /// In the order in which that was done.
    #[prost(message, repeated, tag = "1")]
    pub list: Vec<Change>,
}

/// An item that was made, changed or deleted.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Change {
    /// Relative to the destination directory; empty for that itself.
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    /// `kind` numbers.
    #[prost(uint32, tag = "2")]
    pub kind: u32,
    /// Bytes of content.
    #[prost(uint64, tag = "3")]
    pub size: u64,
    /// Modification time of its source.
    #[prost(sint64, optional, tag = "4")]
    pub mtime_seconds: Option<i64>,
    /// Nanoseconds of it.
    #[prost(uint32, tag = "5")]
    pub mtime_nanos: u32,
    /// What a link says.
    #[prost(bytes = "vec", tag = "6")]
    pub leads_to: Vec<u8>,
    /// Digests of the whole file.
    #[prost(message, optional, tag = "7")]
    pub digests: Option<RawDigests>,
    /// 0 created, 1 deleted; 32 replaced and 64 attributes set, plus in what it differed: 1 content, 2 size, 4 time, 8
    /// permissions; and 16 where its time is that of writing it.
    #[prost(uint32, tag = "8")]
    pub done: u32,
}

/// The transfer has ended at one end. Groups of numbers are lists, as those of samples are.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Ended {
    /// Told by the sender: see [`crate::report::Counts`].
    #[prost(uint64, repeated, tag = "1")]
    pub counts: Vec<u64>,
    /// Told by either: see [`crate::report::Faults`].
    #[prost(uint64, repeated, tag = "2")]
    pub faults: Vec<u64>,
    /// Told by the receiver: see [`crate::report::DestinationCounts`].
    #[prost(uint64, repeated, tag = "3")]
    pub at_destination: Vec<u64>,
    /// Everything published is on stable storage.
    #[prost(bool, tag = "4")]
    pub durable: bool,
    /// Why it ended early.
    #[prost(message, optional, tag = "5")]
    pub failure: Option<RawFailure>,
    /// Permission bits that the destination did not keep (told by the receiver).
    #[prost(message, optional, tag = "6")]
    pub unkept_permissions: Option<RawUnkept>,
    /// Modification times that the destination did not keep (told by the receiver).
    #[prost(message, optional, tag = "7")]
    pub unkept_times: Option<RawUnkept>,
    /// Directories among those whose permission bits were not kept (told by the receiver).
    #[prost(message, optional, boxed, tag = "8")]
    pub unkept_directories: Option<Box<RawUnkeptDirectories>>,
    /// Attributes of further kinds that were not kept: told by the receiver.
    #[prost(message, optional, boxed, tag = "9")]
    pub unkept_attributes: Option<Box<RawUnkeptAttributes>>,
    /// A sync failed: items that had got their names since the last one that had not (told by the receiver).
    #[prost(uint64, tag = "10")]
    pub unsynced: u64,
    /// Their paths, as far as they fit.
    #[prost(bytes = "vec", repeated, tag = "11")]
    pub unsynced_paths: Vec<Vec<u8>>,
    /// Unfinished files of an earlier attempt that were not asked for, and stay (told by the receiver).
    #[prost(message, optional, boxed, tag = "12")]
    pub unfinished: Option<Box<RawUnfinished>>,
    /// Why something that only the destination has was not deleted (told by the receiver).
    #[prost(message, optional, boxed, tag = "13")]
    pub undeleted: Option<Box<RawFailure>>,
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
