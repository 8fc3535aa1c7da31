//! The protobuf shapes of [`super::PeerMessage`]. Field numbers are for ever; a new field is optional.

use crate::wire::values::{RawDigests, RawFailure};

pub const PUBLISHED: u32 = 1;
pub const KEPT: u32 = 2;
pub const MISMATCH: u32 = 3;
pub const FAILED: u32 = 4;
pub const DROPPED: u32 = 5;
pub const ACCEPTED: u32 = 6;
pub const PRESENT: u32 = 7;
pub const AGAIN: u32 = 8;
pub const SAME: u32 = 9;
pub const SHARED: u32 = 10;

#[derive(Clone, PartialEq, prost::Message)]
pub struct Peer {
    #[prost(
        oneof = "Body",
        tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26"
    )]
    pub body: Option<Body>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Body {
    #[prost(message, tag = "1")]
    Offer(Offer),
    #[prost(message, tag = "2")]
    Answer(ItemResult),
    #[prost(message, tag = "3")]
    Landed(Landed),
    #[prost(message, tag = "4")]
    SendAgain(SendAgain),
    #[prost(message, tag = "5")]
    Complete(Complete),
    #[prost(message, tag = "6")]
    Abandon(Abandon),
    #[prost(message, tag = "7")]
    Done(ItemResult),
    #[prost(message, tag = "8")]
    BundleDone(BundleDone),
    #[prost(message, tag = "9")]
    Directories(Directories),
    #[prost(message, tag = "10")]
    Finish(Finish),
    #[prost(message, tag = "11")]
    Finished(Finished),
    #[prost(message, tag = "12")]
    Fail(RawFailure),
    #[prost(message, tag = "13")]
    StreamLost(StreamLost),
    #[prost(message, tag = "14")]
    Held(Held),
    #[prost(message, tag = "15")]
    Confirm(Confirm),
    #[prost(message, tag = "16")]
    Query(Query),
    #[prost(message, tag = "17")]
    Known(Known),
    #[prost(message, tag = "18")]
    DirectoriesFailed(DirectoriesFailed),
    #[prost(message, tag = "19")]
    Compare(Compare),
    #[prost(message, tag = "20")]
    Compared(Compared),
    #[prost(message, tag = "21")]
    Delete(Delete),
    #[prost(message, tag = "22")]
    Content(Content),
    #[prost(message, tag = "23")]
    ContentCompared(ContentCompared),
    #[prost(message, tag = "24")]
    AskStillThere(AskStillThere),
    #[prost(message, tag = "25")]
    StillThere(StillThere),
    #[prost(message, tag = "26")]
    Deleted(Deleted),
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Offer {
    #[prost(uint64, tag = "1")]
    pub item: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub path: Vec<u8>,
    #[prost(uint64, optional, tag = "3")]
    pub size: Option<u64>,
    #[prost(uint32, tag = "4")]
    pub mode: u32,
    #[prost(sint64, optional, tag = "5")]
    pub mtime_seconds: Option<i64>,
    #[prost(uint32, tag = "6")]
    pub mtime_nanos: u32,
    #[prost(bool, tag = "7")]
    pub sparse: bool,
    #[prost(bytes = "vec", optional, tag = "8")]
    pub fingerprint: Option<Vec<u8>>,
    /// See [`crate::wire::attributes`].
    #[prost(bytes = "vec", optional, tag = "9")]
    pub attributes: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ItemResult {
    #[prost(uint64, tag = "1")]
    pub item: u64,
    #[prost(uint32, tag = "2")]
    pub kind: u32,
    #[prost(message, optional, tag = "3")]
    pub failure: Option<RawFailure>,
    #[prost(message, optional, tag = "4")]
    pub digests: Option<RawDigests>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Landed {
    #[prost(uint64, repeated, tag = "1")]
    pub items: Vec<u64>,
    #[prost(uint64, repeated, tag = "2")]
    pub offsets: Vec<u64>,
    #[prost(uint64, repeated, tag = "3")]
    pub bundles: Vec<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SendAgain {
    #[prost(uint64, tag = "1")]
    pub item: u64,
    #[prost(uint64, tag = "2")]
    pub offset: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Complete {
    #[prost(uint64, tag = "1")]
    pub item: u64,
    #[prost(uint64, tag = "2")]
    pub size: u64,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub digest: Option<Vec<u8>>,
    #[prost(sint64, optional, tag = "4")]
    pub mtime_seconds: Option<i64>,
    #[prost(uint32, tag = "5")]
    pub mtime_nanos: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Abandon {
    #[prost(uint64, tag = "1")]
    pub item: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct BundleDone {
    #[prost(uint64, tag = "1")]
    pub bundle: u64,
    #[prost(message, repeated, tag = "2")]
    pub exceptions: Vec<ItemResult>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Directories {
    #[prost(message, repeated, tag = "1")]
    pub list: Vec<Directory>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Directory {
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    #[prost(uint32, tag = "2")]
    pub mode: u32,
    #[prost(sint64, tag = "3")]
    pub mtime_seconds: i64,
    #[prost(uint32, tag = "4")]
    pub mtime_nanos: u32,
    /// See [`crate::wire::attributes`].
    #[prost(bytes = "vec", optional, tag = "5")]
    pub attributes: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StreamLost {
    #[prost(uint32, tag = "1")]
    pub stream: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Finish {
    #[prost(message, optional, tag = "1")]
    pub contents: Option<Directory>,
    /// Only once what is open has been published.
    #[prost(uint64, optional, tag = "2")]
    pub ended_otherwise: Option<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Finished {
    #[prost(bool, tag = "1")]
    pub durable: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DirectoriesFailed {
    #[prost(message, repeated, tag = "1")]
    pub failures: Vec<PathFailure>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PathFailure {
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub failure: Option<RawFailure>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Held {
    #[prost(uint64, tag = "1")]
    pub item: u64,
    #[prost(uint64, tag = "2")]
    pub first: u64,
    /// 40 bytes a block: the main digest, Adler-32, CRC-32C.
    #[prost(bytes = "vec", tag = "3")]
    pub digests: Vec<u8>,
    #[prost(bool, tag = "4")]
    pub taken_over: bool,
    /// 4 bytes a chunk of each block.
    #[prost(bytes = "vec", tag = "5")]
    pub chunks: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Confirm {
    #[prost(uint64, tag = "1")]
    pub item: u64,
    #[prost(uint64, tag = "2")]
    pub first: u64,
    #[prost(uint64, tag = "3")]
    pub count: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Query {
    #[prost(uint64, tag = "1")]
    pub bundle: u64,
    #[prost(message, repeated, tag = "2")]
    pub items: Vec<RawQueryItem>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct RawQueryItem {
    #[prost(uint32, tag = "1")]
    pub index: u32,
    #[prost(bytes = "vec", tag = "2")]
    pub path: Vec<u8>,
    #[prost(uint32, tag = "3")]
    pub kind: u32,
    #[prost(uint64, tag = "4")]
    pub size: u64,
    #[prost(sint64, tag = "5")]
    pub mtime_seconds: i64,
    #[prost(uint32, tag = "6")]
    pub mtime_nanos: u32,
    #[prost(bytes = "vec", optional, tag = "7")]
    pub fingerprint: Option<Vec<u8>>,
    /// See [`crate::wire::attributes`].
    #[prost(bytes = "vec", optional, tag = "8")]
    pub attributes: Option<Vec<u8>>,
    #[prost(uint32, tag = "9")]
    pub mode: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Known {
    #[prost(uint64, tag = "1")]
    pub bundle: u64,
    #[prost(message, repeated, tag = "2")]
    pub items: Vec<KnownItem>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct KnownItem {
    #[prost(uint32, tag = "1")]
    pub index: u32,
    #[prost(message, optional, tag = "2")]
    pub digests: Option<RawDigests>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Compare {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// See [`super::question`].
    #[prost(bytes = "vec", tag = "2")]
    pub items: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    pub names: Vec<u8>,
    #[prost(message, repeated, tag = "4")]
    pub listed: Vec<Listed>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Listed {
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
    #[prost(bool, tag = "2")]
    pub complete: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Compared {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// One for each file that was asked about.
    #[prost(bytes = "vec", tag = "2")]
    pub judgments: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Delete {
    #[prost(uint64, tag = "1")]
    pub failed: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Deleted {}

#[derive(Clone, PartialEq, prost::Message)]
pub struct AskStillThere {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// Packed.
    #[prost(bytes = "vec", tag = "2")]
    pub paths: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StillThere {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// A byte for each path that was asked about: 1 or 0.
    #[prost(bytes = "vec", tag = "2")]
    pub there: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Content {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(uint32, tag = "2")]
    pub index: u32,
    /// None where it cannot be read.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub blake3: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ContentCompared {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(uint32, tag = "2")]
    pub index: u32,
    #[prost(bool, tag = "3")]
    pub same: bool,
    /// CRC-32C of each chunk of what stands there, 4 bytes for each, the highest first.
    #[prost(bytes = "vec", tag = "4")]
    pub chunks: Vec<u8>,
}
