//! What a transfer tells while it runs, and when it has ended. The engine fills these; the command line prints them.

mod change;
mod unkept;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

pub use self::change::{Differences, Done, ItemChange};
pub use self::unkept::{UnkeptAttributes, UnkeptDirectories};
use crate::attributes::Time;
pub use crate::digest::FileDigests;
pub use crate::failure::{At, ErrorCode, Failure, Reason, Side};
use crate::groups::counters;
use crate::judgment::Judgment;
use crate::location::Location;
use crate::pace::limit::Limit;
use crate::pace::packing::Compressible;
use crate::pace::streams::Change;
use crate::reference::ReferenceDirectories;
use crate::request::{Durability, Encrypt, Existing, LinkKind, MainDigest, Verify};
use crate::timeline::{Fact, Point, StepTaken, Timeline};
use crate::words::words;

/// Told while a transfer runs, in order.
#[derive(Clone, Debug)]
pub enum Event {
    /// Where everything will go; before the first byte moves.
    Resolved {
        /// One for each source, in words that can be typed.
        sources: Vec<String>,
        /// The resolved target of each source, in the same order.
        targets: Vec<String>,
        /// The directory that the paths of items are relative to; `None` where nothing is kept under names.
        directory: Option<Location>,
    },
    /// An ssh host without an agent got one.
    ProgramSent(ProgramSent),
    /// How data streams run.
    Linked(LinkReport),
    /// Another number of data streams is tried, or taken back.
    Streams(Change),
    /// Something a user should know that is not a failure (a host key pinned, a binary pushed).
    Note(String),
    /// Counts so far; several a second.
    Progress(Progress),
    /// The files in flight from now on; an empty list where none are. Once a second at most, if they have changed. Only
    /// when asked for. None are after [`Event::SessionLost`].
    InFlight(Vec<ItemInFlight>),
    /// One item has ended. All of them when asked for, else only failures and skipped ones.
    Item(ItemReport),
    /// An item was made, changed or deleted at the destination, or would be. Only when asked for.
    Changed(ItemChange),
    /// The connection to an end, or the whole link, was lost, and both ends will be reached anew. From then on items
    /// are told again, those that had ended before too.
    SessionLost {
        /// Why it failed.
        failure: Failure,
        /// Which attempt in a row comes next, the first being 1.
        attempt: u32,
        /// The pause before the attempt begins.
        pause: Duration,
    },
    /// A session begins, and what its two ends are. What is measured from then on is theirs.
    Ends(Box<SessionEnds>),
    /// What an end has measured; about once a second from each end that tells.
    Sample(Box<EndSample>),
    /// A step of a session's start was taken. Told once both ends have told theirs, in their order.
    Step {
        /// Sessions of this copy before the one that it is of.
        session: u32,
        /// The step, at its place on the axis of the copy.
        taken: StepTaken,
    },
    /// A data stream was lost, or has ended as it was asked to.
    StreamEnded {
        /// Why it failed; `None` where it was asked to end.
        failure: Option<Failure>,
    },
    /// The copy has become much slower. A note says the same to a person.
    RateFell(RateFall),
    /// The way from an end to the other, where it was asked for.
    Path {
        /// The end that it begins at.
        side: Side,
        /// What was found.
        path: PathTrace,
    },
}

/// The way that packets take to another host, as far as it could be found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathTrace {
    /// The host; `None` where the data goes over no network of its own.
    pub to: Option<IpAddr>,
    /// Routers and the host itself, the nearest first.
    pub hops: Vec<Hop>,
    /// The host has answered.
    pub reached: bool,
    /// The largest packet that gets there whole, in bytes.
    pub mtu_bytes: Option<u32>,
    /// A packet of that size has got there. Otherwise it is what the sending host takes for possible.
    pub is_mtu_proved: bool,
    /// Larger packets vanish, and no router says so.
    pub drops_large_packets: bool,
    /// Why something could not be found; empty where everything was.
    pub why: String,
}

/// One step of the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// Who answered; `None` if nobody did.
    pub address: Option<IpAddr>,
    /// How long the answer took, where that is known.
    pub round_trip: Option<Duration>,
}

/// The two ends of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionEnds {
    /// Sessions of this copy before it.
    pub session: u32,
    /// Where the bytes come from.
    pub source: EndFacts,
    /// Where they go.
    pub destination: EndFacts,
}

/// What an end says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndFacts {
    /// As messages call it: a host, or a node.
    pub name: String,
    /// Version of its program.
    pub program: String,
    /// Version of the protocol that it speaks.
    pub protocol: u32,
    /// Its operating system and the version of that; empty where it does not say.
    pub system: String,
    /// Processors that it may use.
    pub processors: u32,
    /// Congestion control that its host gives to connections; empty where it does not say.
    pub congestion: String,
    /// The fingerprint of the key that it has shown, where it is a node.
    pub key: Option<String>,
}

/// What an end has measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndSample {
    /// The source or the destination.
    pub side: Side,
    /// Sessions of this copy before the one that it is of.
    pub session: u32,
    /// The sample, at its place on the axis of the copy.
    pub point: Point,
}

/// How far the rate fell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateFall {
    /// Bytes a second, over the last stretch.
    pub rate: f64,
    /// Bytes a second that were usual before.
    pub usual: f64,
    /// How long the stretch was.
    pub over: Duration,
    /// What held the copy back in it, where that is known.
    pub limit: Option<Limit>,
}

/// What a copy has done so far, as counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Items published at the destination: files and links.
    pub files_done: u64,
    /// Bytes of files landed at the destination.
    pub bytes_done: u64,
    /// Items found so far.
    pub files_found: u64,
    /// Bytes found so far.
    pub bytes_found: u64,
    /// Whether the scan has ended: only then are the `found` figures totals.
    pub scan_complete: bool,
    /// Items that failed so far.
    pub files_failed: u64,
}

/// A file that has begun to arrive and has no name yet. Small files, which travel many at once, are never told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemInFlight {
    /// Relative to the destination directory.
    pub path: Vec<u8>,
    /// Bytes of content; `None` of a source that has no size, or that still grows.
    pub size: Option<u64>,
    /// Bytes that have landed, those that an earlier attempt had brought included.
    pub bytes: u64,
}

/// What an ssh host without an agent was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSent {
    /// The host, as it was typed.
    pub host: String,
    /// Whether it was the slim program that the command carries; else it was the command's own.
    pub slim: bool,
    /// Bytes that went through the ssh session.
    pub bytes: u64,
    /// Length of the program as it is kept there, in bytes.
    pub size: u64,
    /// Whether it travelled compressed.
    pub compressed: bool,
}

/// How data streams run.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// The kind of link.
    pub kind: LinkKind,
    /// Address that data connections go to; empty for memory and tunnel.
    pub address: String,
    /// Address of this host that they leave from, where this host makes them and the user has named one.
    pub from: Option<IpAddr>,
    /// Data connections: those to begin with, and in a report those at the end.
    pub streams: u16,
    /// Where the number to begin with comes from.
    pub streams_from: StreamsFrom,
    /// For instance `TLS13_AES_128_GCM_SHA256`; `none` in the clear, `memory` within one process.
    pub cipher: String,
}

words! {
    /// Where the number of data connections to begin with comes from.
    pub enum StreamsFrom {
        Asked "asked" "as was asked for"
        Path "path" "by the path and the processors"
        Kept "kept" "as this pair had last time"
        Run "run" "as an earlier session of the same run has found"
    }
}

words! {
    /// What an item is.
    pub enum ItemKind {
        1 File "file" "a regular file, a pipe or a synthetic source"
        2 Directory "directory" "a directory"
        3 Symlink "symlink" "a symbolic link"
        4 Special "special" "a FIFO, socket or device: never copied"
    }
}

/// How an item ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemReport {
    /// Relative to the destination directory.
    pub path: Vec<u8>,
    /// Whether it is a file, a link or a directory.
    pub kind: ItemKind,
    /// Bytes of content.
    pub size: u64,
    /// Digests of the whole file, as the receiver computed them.
    pub digests: FileDigests,
    /// How it compared with what the destination had, where that was asked.
    pub judgment: Option<Judgment>,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Whole, verified as asked, under its name.
    Published,
    /// The same was there already.
    Same,
    /// It would be copied: nothing is, in a dry run.
    Planned,
    /// Only the destination had it, and it is gone.
    Deleted,
    /// Only the destination has it, and it would be deleted.
    ToDelete,
    /// Left alone because of `--no-clobber`, `--existing` or `--update`.
    Kept,
    /// Not there. The old file, if any, is untouched.
    Failed(Failure),
}

/// Attributes of one kind that a destination's file systems did not keep as they were set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unkept<T> {
    /// Of so many items.
    pub count: u64,
    /// The first of them, relative to the destination directory; empty for that itself.
    pub path: Vec<u8>,
    /// What it was to be.
    pub wanted: T,
    /// What the destination has kept instead.
    pub kept: T,
}

/// Items that had got their names when a sync failed, since the last one that had not: nothing proves that they are on
/// stable storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsynced {
    /// So many.
    pub count: u64,
    /// Their paths below the destination, the first of them; [`crate::limits::UNSYNCED_PATHS_BYTES`] together at most.
    pub paths: Vec<Vec<u8>>,
}

/// Unfinished files of an earlier copy that stay for the next one: this copy left them out by what it selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// So many.
    pub count: u64,
    /// Their paths below the destination, the first [`crate::limits::UNFINISHED_PATHS`] of them.
    pub paths: Vec<Vec<u8>>,
}

counters! {
    /// What became of the items of a transfer, as counts: the source's end keeps them, tells them, and they stand in
    /// the report. Documents have them by these names.
    pub struct Counts {
        /// Files that got their names.
        files,
        /// Symbolic links that got their names.
        symlinks,
        /// Directories that were made or found.
        directories,
        /// Bytes of the files that got their names.
        bytes,
        /// Items left as they were, on request.
        files_kept,
        /// Items that failed.
        files_failed,
        /// Failed items that had vanished from the source after the scan saw them.
        files_vanished,
        /// Failed items that are FIFOs, sockets and devices, which are copied only where that is asked for.
        specials_skipped,
        /// Markers and part files of Carrack's own that stand in the source and were left out.
        leftovers_skipped,
        /// Files and links that an earlier attempt had published: they were not sent again.
        files_resumed,
        /// Bytes that an earlier attempt had brought, of whole and of unfinished files: they were not sent again.
        bytes_resumed,
        /// Files and links that the destination had already, as far as was compared: they were not sent.
        files_same,
        /// Bytes of them.
        bytes_same,
        /// Files and links that were copied, and then deleted at their source.
        sources_removed,
        /// Symbolic links that lead out of what is copied, and were left out on request.
        links_skipped,
        /// Bytes of changed files that were taken over from what stood at their names: they were not sent.
        bytes_taken_over,
        /// Files that share their blocks with their sources: nothing of them was read, sent or compared.
        files_shared,
        /// Bytes of them.
        bytes_shared,
        /// Bytes that travelled compressed, as they were before,
        bytes_compressed,
        /// and as they travelled.
        bytes_compressed_to,
        /// Bytes that were to be compressed and did not shrink: they travelled as they are.
        bytes_not_shrunk,
        /// Files that grew while they were copied, and were copied on until they had rested.
        files_followed,
        /// Further names of files of this copy, which became hard links to them: nothing of them was sent.
        hard_links,
        /// FIFOs, sockets and devices that got their names.
        specials,
    }
}

impl Counts {
    /// Names that were made, but those of directories.
    pub fn names_made(&self) -> u64 {
        let made = [self.files, self.symlinks, self.hard_links, self.specials];
        made.into_iter().fold(0, u64::saturating_add)
    }

    /// Counts an item that is at the destination: a file of `size` bytes, a link or a directory.
    pub fn add(&mut self, kind: ItemKind, size: u64) {
        match kind {
            ItemKind::Directory => self.directories = self.directories.saturating_add(1),
            ItemKind::Symlink => self.symlinks = self.symlinks.saturating_add(1),
            ItemKind::Special => self.specials = self.specials.saturating_add(1),
            ItemKind::File => {
                self.files = self.files.saturating_add(1);
                self.bytes = self.bytes.saturating_add(size);
            }
        }
    }
}

counters! {
    /// What the destination's end counts beside the items. Documents have it by these names.
    pub struct DestinationCounts {
        /// Part files that an earlier attempt had left and that might have been altered since: they were read again
        /// before they counted.
        parts_reread,
        /// Bytes of them.
        bytes_reread,
        /// With `--verify disk`, files that storage was not read for: it is memory, or lies where nothing can be read
        /// back past the cache.
        files_not_read_back,
        /// Files, links and directories that only the destination had, and that were deleted.
        items_deleted,
        /// Bytes of the files among them.
        bytes_deleted,
        /// Those that only the destination has, and that stay: nothing was to be deleted, or might be.
        items_only_there,
        /// Bytes of the files among them.
        bytes_only_there,
        /// Files that were sent although one of the same size and modification time stood at their names.
        files_replaced_same,
        /// Items that were the same and were given permissions and times of their sources.
        attributes_set,
        /// Files that a reference directory has, and that got their names as hard links to it: they were not sent.
        files_linked,
        /// Bytes of them.
        bytes_linked,
        /// Files that a reference directory has, and that were copied from it at the destination: they were not sent.
        files_copied_there,
        /// Bytes of them.
        bytes_copied_there,
        /// Files that only the destination had, and that got the names that the source has given them: both sides had
        /// read all of them, and nothing was sent.
        files_renamed,
        /// Bytes of them.
        bytes_renamed,
        /// Files that got their new names by size, time and samples alone.
        files_renamed_unread,
        /// Bytes of them.
        bytes_renamed_unread,
        /// Files that were written over where they stood.
        files_in_place,
    }
}

counters! {
    /// What was recovered without a user. Documents have it by these names.
    pub struct Faults {
        /// Blocks or bundles sent again because their digest did not match.
        digest_mismatches,
        /// Blocks or bundles sent again because their stream was lost.
        resent_after_loss,
        /// Blocks sent again near the end because their stream was slow.
        stragglers,
        /// Data connections lost.
        streams_lost,
        /// Of those, ended because what came over them had been altered.
        streams_altered,
        /// Blocks sent again because storage gave back other bytes than were written.
        blocks_rotten,
        /// Items sent again whole: what was written was lost, or their source changed.
        items_again,
        /// Times that both ends were reached anew.
        sessions_lost,
    }
}

/// The end of a transfer.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What became of the items.
    pub counts: Counts,
    /// The first [`crate::limits::FAILURES_TOLD`] failures, in words, path first.
    pub failures: Vec<ItemFailure>,
    /// From the command's start to its end.
    pub elapsed: Duration,
    /// From the link being made to the last publication: the rate is over this.
    pub moving: Duration,
    /// How data streams ran.
    pub link: Option<LinkReport>,
    /// How each file was proved,
    pub verify: Option<Verify>,
    /// and by which digest.
    pub digest: Option<MainDigest>,
    /// Whether what travels could be compressed; `None` where nobody asked for it.
    pub compress: Option<Compressible>,
    /// Whether data was encrypted.
    pub encrypt: Option<Encrypt>,
    /// Blocks and bundles sent more than once, streams lost: what was recovered without a user.
    pub faults: Faults,
    /// Permission bits that the destination did not keep.
    pub unkept_permissions: Option<Unkept<u32>>,
    /// The directories among them.
    pub unkept_directories: UnkeptDirectories,
    /// Modification times that the destination did not keep, in seconds and nanoseconds.
    pub unkept_times: Option<Unkept<Time>>,
    /// Attributes of further kinds that the destination did not keep: owners, access control lists and others.
    pub unkept_attributes: Option<UnkeptAttributes>,
    /// What the destination's end counted.
    pub at_destination: DestinationCounts,
    /// Unfinished files of an earlier copy that were not part of this one, and stay.
    pub unfinished: Unfinished,
    /// Why something that only the destination has was not deleted.
    pub undeleted: Option<Failure>,
    /// The directory whose marker tells of them, as the destination knows it.
    pub unfinished_in: Vec<u8>,
    /// Directories at the destination that might have files already, as asked.
    pub references: Option<ReferenceDirectories>,
    /// What was to become of names that exist at the destination, as asked: why items were [kept](Counts::files_kept).
    pub existing: Option<Existing>,
    /// What had to reach stable storage, and when, as asked.
    pub durability: Option<Durability>,
    /// What held the copy back, where both ends told and it took long enough to tell.
    pub limit: Option<Limit>,
    /// What the kernels say of that.
    pub limit_fact: Option<Fact>,
    /// What held it back most after that.
    pub limit_next: Option<Limit>,
    /// Whether everything published had reached stable storage when the transfer ended; `None` where nothing is kept
    /// (a stream, a sink).
    pub durable: Option<bool>,
    /// The error that ended the transfer early, if one did.
    pub error: Option<Failure>,
    /// What both ends measured, and what happened.
    pub timeline: Option<Arc<Timeline>>,
    /// By which the file systems of the first source and of the destination are known, where they tell. Only equality
    /// counts.
    pub file_systems: [Option<[u8; 16]>; 2],
}

/// A failed item as the report keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemFailure {
    /// Relative to the destination directory.
    pub path: Vec<u8>,
    /// Why the item failed.
    pub failure: Failure,
}

impl Faults {
    /// Of what an end has told, what is its own to tell: the receiver sees what came altered and what storage has
    /// lost, the sender everything else but lost sessions, which the command counts.
    pub fn told_by(self, end: Side) -> Self {
        let Self { streams_altered, blocks_rotten, .. } = self;
        match end {
            Side::Destination => Self { streams_altered, blocks_rotten, ..Self::default() },
            _ => Self { streams_altered: 0, blocks_rotten: 0, sessions_lost: 0, ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_an_item_by_its_kind() {
        let mut counts = Counts::default();
        counts.add(ItemKind::File, 5);
        counts.add(ItemKind::File, 7);
        counts.add(ItemKind::Symlink, 9);
        counts.add(ItemKind::Directory, 11);
        assert_eq!(counts, Counts { files: 2, bytes: 12, symlinks: 1, directories: 1, ..Counts::default() });
        counts.add(ItemKind::File, u64::MAX);
        assert_eq!(counts.bytes, u64::MAX, "a peer may tell any size");
    }

    /// Numbers all different, so that none can stand for another.
    fn faults() -> Faults {
        let faults = Faults { digest_mismatches: 1, resent_after_loss: 2, stragglers: 3, ..Faults::default() };
        let faults = Faults { streams_lost: 4, streams_altered: 5, blocks_rotten: 6, ..faults };
        Faults { items_again: 7, sessions_lost: 8, ..faults }
    }

    #[test]
    fn faults_of_sessions_add_up() {
        let sum = faults().plus(&faults());
        let twice = Faults { digest_mismatches: 2, resent_after_loss: 4, stragglers: 6, ..Faults::default() };
        let twice = Faults { streams_lost: 8, streams_altered: 10, blocks_rotten: 12, ..twice };
        assert_eq!(sum, Faults { items_again: 14, sessions_lost: 16, ..twice });
        let sum = sum.plus(&Faults { items_again: u64::MAX, ..Faults::default() });
        assert_eq!(sum.items_again, u64::MAX, "a peer may tell any number");
    }

    #[test]
    fn faults_are_told_by_the_end_that_sees_them() {
        let receiver = Faults { streams_altered: 5, blocks_rotten: 6, ..Faults::default() };
        assert_eq!(faults().told_by(Side::Destination), receiver);
        let both = faults().told_by(Side::Source).plus(&receiver);
        assert_eq!(both, Faults { sessions_lost: 0, ..faults() });
    }
}
