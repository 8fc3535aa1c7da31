//! What an end of a copy tells of it while it runs and when it has ended, and how that becomes what a user is told. Part of
//! [`super`]'s messages.

use std::time::Duration;

use crate::failure::{ErrorCode, Failure, Side};
use crate::pace::limit::StageTimes;
use crate::report::{self, ItemKind, ItemReport, Outcome};
use crate::wire::values::{RawDigests, RawFailure};

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
    /// Part files of an earlier attempt that were read again before they were believed (version 4, told by the receiver).
    #[prost(uint64, tag = "30")]
    pub parts_reread: u64,
    /// Bytes of them.
    #[prost(uint64, tag = "31")]
    pub bytes_reread: u64,
    /// With `--verify disk`, files that lie where nothing can be read back past the cache (version 4, told by the receiver).
    #[prost(uint64, tag = "32")]
    pub files_not_read_back: u64,
}

/// See [`report::Unkept`]; permission bits stand in the place of seconds.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RawUnkept {
    /// Items.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// The first of them.
    #[prost(bytes = "vec", tag = "2")]
    pub path: Vec<u8>,
    /// Seconds, or permission bits.
    #[prost(sint64, tag = "3")]
    pub wanted: i64,
    /// Nanoseconds.
    #[prost(uint32, tag = "4")]
    pub wanted_nanos: u32,
    /// Seconds, or permission bits.
    #[prost(sint64, tag = "5")]
    pub kept: i64,
    /// Nanoseconds.
    #[prost(uint32, tag = "6")]
    pub kept_nanos: u32,
}

/// Where the time of one end's streams has gone, in nanoseconds: see [`crate::pace::limit::StageTimes`].
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Stages {
    /// Carrying something.
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

/// A data stream was lost, or has ended as it was asked to.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StreamLost {
    /// Its number.
    #[prost(uint32, tag = "1")]
    pub stream: u32,
    /// Data streams that are left.
    #[prost(uint32, tag = "2")]
    pub left: u32,
    /// Why.
    #[prost(message, optional, tag = "3")]
    pub failure: Option<RawFailure>,
    /// The path took its first words, and nothing that fills a packet.
    #[prost(bool, tag = "4")]
    pub stuck: bool,
    /// It had been asked to end (version 3): without a failure, it has ended in good order.
    #[prost(bool, tag = "5")]
    pub retired: bool,
}

impl From<ItemReport> for Item {
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

impl From<Item> for ItemReport {
    fn from(item: Item) -> Self {
        let unexplained = Failure { code: ErrorCode::Other, side: Side::Link, message: "no reason was given".into() };
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

impl From<report::Unkept<(i64, u32)>> for RawUnkept {
    fn from(unkept: report::Unkept<(i64, u32)>) -> Self {
        let ((wanted, wanted_nanos), (kept, kept_nanos)) = (unkept.wanted, unkept.kept);
        Self { count: unkept.count, path: unkept.path, wanted, wanted_nanos, kept, kept_nanos }
    }
}

impl From<report::Unkept<u32>> for RawUnkept {
    fn from(unkept: report::Unkept<u32>) -> Self {
        let (wanted, kept) = (i64::from(unkept.wanted), i64::from(unkept.kept));
        Self { count: unkept.count, path: unkept.path, wanted, kept, ..Self::default() }
    }
}

impl From<RawUnkept> for report::Unkept<(i64, u32)> {
    fn from(raw: RawUnkept) -> Self {
        let nanos = |nanos: u32| nanos.min(999_999_999);
        let (wanted, kept) = ((raw.wanted, nanos(raw.wanted_nanos)), (raw.kept, nanos(raw.kept_nanos)));
        Self { count: raw.count, path: shown(raw.path), wanted, kept }
    }
}

impl From<RawUnkept> for report::Unkept<u32> {
    fn from(raw: RawUnkept) -> Self {
        let mode = |bits: i64| (bits & 0o7777) as u32;
        Self { count: raw.count, path: shown(raw.path), wanted: mode(raw.wanted), kept: mode(raw.kept) }
    }
}

/// A path that is only shown; none instead of one that cannot be.
fn shown(path: Vec<u8>) -> Vec<u8> {
    if crate::path::check_relative(&path).is_ok() { path } else { Vec::new() }
}

impl From<StageTimes> for Stages {
    fn from(times: StageTimes) -> Self {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            busy_ns: nanos(times.busy),
            storage_ns: nanos(times.storage),
            network_ns: nanos(times.network),
            pacing_ns: nanos(times.pacing),
            ..Self::default()
        }
    }
}

impl From<Stages> for StageTimes {
    fn from(stages: Stages) -> Self {
        let time = Duration::from_nanos;
        Self {
            busy: time(stages.busy_ns),
            storage: time(stages.storage_ns),
            network: time(stages.network_ns),
            pacing: time(stages.pacing_ns),
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
