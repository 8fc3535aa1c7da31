//! The sending half of a transfer: what is offered, which block goes down which stream, what has to go again.
//!
//! Invariants:
//! - an item ends once, by the receiver's word: what this side gives up the receiver may have published already;
//! - a unit is carried by one living stream at a time, until it has been sent and has landed;
//! - at most [`limits::UNACKNOWLEDGED_BUNDLES`] bundles, [`limits::OFFERED_ITEMS`] offers, [`limits::QUERIES`]
//!   questions and [`super::BLOCKS_AHEAD`] blocks of a file are out;
//! - a held block is confirmed only after it has been read here and its digests are those that the receiver told.
//!
//! # For the driver
//!
//! Numbers of streams are not used twice. After every input, streams that were told [`Next::Wait`] ask again, and
//! `poll_action` is called until it returns `None`. Inputs after the outcome is known change nothing.

mod again;
mod bundles;
mod comparing;
mod ends;
mod following;
mod groups;
mod in_flight;
mod machine;
mod messages;
mod offered;
mod queries;
mod streams;
mod work;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use self::again::Renewals;
pub use self::bundles::Bundle;
use self::bundles::Bundles;
use self::comparing::{Comparing, FirstDeletion};
use self::groups::Groups;
pub use self::in_flight::InFlight;
use self::offered::Offered;
use self::streams::Streams;
use super::directories::DirectoryLog;
use super::{ScannedItem, Unit};
use crate::digest::{BlockDigest, FileDigests};
use crate::expected::ExpectedDigests;
use crate::failure::{ErrorCode, Failure, Reason, Side};
use crate::ids::{BundleId, ItemId, StreamId};
use crate::report::{Counts, Faults, ItemKind, ItemReport, Outcome, Progress};
use crate::tuning::Tuning;
use crate::wire::control::TransferOptions;
use crate::wire::peer::{AskedIndex, DirectoryAttributes, Offer, PeerMessage};
use crate::{limits, path};

/// Work for a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// Read and send these items.
    Bundle(Arc<Bundle>),
    /// Read and send this block.
    Block(BlockJob),
    /// Read this block, send nothing, and say what its digest is by [`Sender::handle_block_checked`].
    Check(BlockJob),
}

/// A block to read and send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockJob {
    /// The item's number.
    pub item: ItemId,
    /// Where the block starts, in bytes.
    pub offset: u64,
    /// Bytes; of a source without a size, the most that may be read.
    pub length: u32,
    /// The block is the whole file; of a source without a size, not known before it has been read.
    pub whole: bool,
    /// The source has no size: read until it ends, and say how much came by [`Sender::handle_read`].
    pub unsized_source: bool,
    /// The source has holes: look before reading.
    pub sparse: bool,
    /// The receiver has told the chunks of what it holds of the block: [`Sender::chunks_of`].
    pub patched: bool,
}

/// What a stream is to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Carry out this job.
    Job(Job),
    /// Nothing until an input changes something, or until this moment.
    Wait(Option<Instant>),
    /// Nothing, ever: say so to the receiver and close.
    End,
}

/// What became of one item of a bundle while it was read and sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentItem {
    /// Bytes of it.
    pub size: u64,
    /// Those of them that the receiver has already, and that were not sent.
    pub taken_over: u64,
    /// Digest of those bytes.
    pub digest: BlockDigest,
    /// Why it could not be read: the receiver was told to drop it.
    pub failure: Option<Failure>,
}

/// What has to be done outside.
#[derive(Clone, Debug)]
pub enum SenderAction {
    /// Send this to the receiver.
    Send(PeerMessage),
    /// See whether the item's source is still what it was when it was opened, with [`crate::request::Verify::Source`]
    /// by reading it a second time, and say so by [`Sender::handle_source_checked`].
    CheckSource(ItemId),
    /// Look at the item's source now and then, say by [`Sender::handle_grown`] how much there is, and by
    /// [`Sender::handle_followed`] that it is whole, or by [`Sender::handle_follow_failed`] why not; until it is
    /// [not followed](Sender::is_followed) any more.
    Follow(ItemId),
    /// The item's source is not needed any more.
    CloseSource(ItemId),
    /// Cut this stream off: it is too slow, and what it carries goes elsewhere.
    AbortStream(StreamId),
    /// Read all of this file, of which the destination has one of the same size, and say its BLAKE3 by
    /// [`Sender::handle_content_read`]; or that of samples of it.
    ReadContent {
        /// Which file.
        asked: AskedIndex,
        /// As it was found.
        scanned: ScannedItem,
        /// Only samples are read.
        samples: bool,
    },
    /// See what the sources have by now at these paths of the destination that no rule leaves out, and say so by
    /// [`Sender::handle_looked_up`]. What cannot be looked at counts as there.
    LookUp {
        /// Number of the question.
        number: BundleId,
        /// Relative to the destination.
        paths: Vec<Vec<u8>>,
    },
    /// An item has ended.
    Report(Box<ItemReport>),
    /// What was found so is at the destination, and is to be deleted here once all of it is durable.
    Copied(Box<ScannedItem>),
    /// Delete at the source what has been [copied](Self::Copied), each item only if it still is what was found; tell
    /// those that stay by [`Sender::handle_source_kept`], and the end by [`Sender::handle_sources_removed`].
    RemoveSources,
    /// Look at a source again that changed while it was read, and say what it is now by [`Sender::handle_rescanned`].
    Rescan {
        /// As it was found before.
        scanned: ScannedItem,
        /// The number of this attempt, which the answer gives back.
        attempt: u32,
    },
}

/// What a sender is told at its start.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// The transfer's options.
    pub options: TransferOptions,
    /// For each source, where it goes, relative to the destination; empty for the destination itself.
    pub targets: Vec<Vec<u8>>,
    /// An earlier attempt may have published items: ask about small ones before they are sent.
    pub known: bool,
    /// Knobs: what is bundled, and when a stream counts as slow.
    pub tuning: Tuning,
}

/// The sending half of a transfer.
#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    expected: ExpectedDigests,
    next_number: u64,
    comparing: Comparing,
    bundles: Bundles,
    groups: Groups,
    /// To be offered, and how often each has been before.
    offers_waiting: VecDeque<(ScannedItem, u32)>,
    items: BTreeMap<ItemId, Offered>,
    /// Items with blocks to send, in order.
    sendable: VecDeque<ItemId>,
    streams: Streams,
    directories: DirectoryLog,
    /// Directories that could not be made: they have ended, and no attributes are set.
    directories_failed: BTreeSet<Vec<u8>>,
    /// Directories that could not be listed to their end: whoever owns them at the destination may go on there.
    directories_unlisted: BTreeSet<Vec<u8>>,
    /// Of the first directory whose contents are copied: what the destination itself is to have.
    contents: Option<DirectoryAttributes>,
    /// Directories whose attributes were told, and have not failed.
    directories_told: u64,
    renewals: Renewals,
    actions: VecDeque<SenderAction>,
    /// What the reports among them take in memory, roughly.
    report_bytes: usize,
    /// Held blocks that are right and have not been confirmed: item, first, how many.
    confirms: VecDeque<(ItemId, u64, u64)>,
    /// Offered items that the receiver has ended otherwise than published.
    ended_otherwise: u64,
    /// The receiver has been told that what is open is all, if all of that is published; and none has ended otherwise
    /// since.
    finish_told: bool,
    /// The receiver has been told to delete what only it has.
    delete_told: bool,
    /// How what is deleted before anything is sent comes about.
    first: FirstDeletion,
    /// The receiver's open question about what it is to delete: its number, and how many paths.
    doubt: Option<(BundleId, usize)>,
    phase: SenderPhase,
    progress: Progress,
    totals: SenderTotals,
}

/// Counts for the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderTotals {
    /// What became of the items; of the scan's own finds, `leftovers`, nothing is known here.
    pub counts: Counts,
    /// Faults that the transfer recovered from.
    pub faults: Faults,
    /// The receiver synced everything.
    pub durable: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SenderPhase {
    Scanning,
    Draining,
    Finishing,
    /// The receiver has ended. What was copied is being deleted here.
    Removing,
    Finished,
    Failed(Failure),
}

impl Sender {
    /// Bytes of paths in one message of directory attributes.
    const DIRECTORY_PAGE_BYTES: usize = 128 << 10;

    /// A sender with nothing to send yet.
    pub fn new(config: SenderConfig) -> Self {
        Self {
            comparing: Comparing::default(),
            bundles: Bundles::default(),
            groups: Groups::default(),
            streams: Streams::new(&config.tuning, &config.options),
            config,
            next_number: 1,
            offers_waiting: VecDeque::new(),
            items: BTreeMap::new(),
            sendable: VecDeque::new(),
            directories: DirectoryLog::default(),
            expected: ExpectedDigests::default(),
            directories_failed: BTreeSet::new(),
            directories_unlisted: BTreeSet::new(),
            contents: None,
            directories_told: 0,
            renewals: Renewals::default(),
            actions: VecDeque::new(),
            report_bytes: 0,
            confirms: VecDeque::new(),
            ended_otherwise: 0,
            finish_told: false,
            delete_told: false,
            first: FirstDeletion::default(),
            doubt: None,
            phase: SenderPhase::Scanning,
            progress: Progress::default(),
            totals: SenderTotals::default(),
        }
    }

    /// What the transfer has done so far.
    pub fn progress(&self) -> Progress {
        Progress { files_failed: self.totals.counts.files_failed, ..self.progress }
    }

    /// Counts for the report.
    pub fn totals(&self) -> SenderTotals {
        self.totals
    }

    /// Nothing that the receiver says changes anything any more.
    fn has_ended(&self) -> bool {
        matches!(self.phase, SenderPhase::Removing | SenderPhase::Finished | SenderPhase::Failed(_))
    }

    /// Whether an item travels in a bundle: small files, links and directories do.
    fn is_bundled(&self, item: &ScannedItem) -> bool {
        let most = if item.sparse { Bundles::SPARSE_BYTES } else { u64::MAX };
        let most = self.config.tuning.bundled_file_bytes_max.min(most);
        let is_small = !item.followed && item.size.is_some_and(|size| size <= most);
        item.kind != ItemKind::File || item.other_names.is_some() || is_small
    }

    /// Where an item goes, relative to the destination.
    pub fn target(&self, item: &ScannedItem) -> Vec<u8> {
        self.place(item.root, &item.path)
    }

    fn place(&self, root: u32, path: &[u8]) -> Vec<u8> {
        let top = self.config.targets.get(root as usize).map_or(&b""[..], Vec::as_slice);
        if path.is_empty() { top.to_vec() } else { path::join(top, path) }
    }

    /// Digests without which offered files get no name. Those of bundles are for whoever reads them to check.
    pub fn expect(&mut self, expected: ExpectedDigests) {
        self.expected = expected;
    }

    /// What was scanned of an offered item, for the one who opens its source.
    pub fn scanned(&self, item: ItemId) -> Option<&ScannedItem> {
        self.items.get(&item).map(|item| &item.scanned)
    }

    /// Whether the scan may go on: what it has found and nobody has taken is bounded, and so is what was told of it.
    /// Whoever reads that may be slow.
    pub fn wants_items(&self) -> bool {
        self.bundles.queued() < limits::QUEUED_BUNDLES
            && self.comparing.has_room()
            && self.groups.has_room()
            && self.offers_waiting.len() < limits::OFFERED_ITEMS
            && self.report_bytes < limits::REPORT_BYTES_WAITING
    }

    /// Bundles, and files to be offered, that the scan has found and nobody has taken.
    pub fn waiting(&self) -> [usize; 2] {
        [self.bundles.queued(), self.offers_waiting.len()]
    }

    /// The scan found something.
    pub fn handle_item(&mut self, now: Instant, mut item: ScannedItem) {
        if self.has_ended() {
            return;
        }
        if !self.config.options.kept.hard_links {
            item.names = 1;
        }
        item.change_mode(self.config.options.mode_change);
        let is_compared = self.is_compared(&item);
        if !is_compared {
            self.tell_name(now, &item);
        }
        match item.kind {
            ItemKind::Special if !self.config.options.kept.has_special(item.special) => {
                self.totals.counts.specials_skipped += 1;
                let message = "is a FIFO, socket or device: not copied".to_string();
                let failure = Failure::new(ErrorCode::SpecialFile, Side::Source, message);
                let failure = failure.for_reason(Reason::SpecialUnasked);
                return self.end_item(&item, 0, FileDigests::default(), Outcome::Failed(failure));
            }
            ItemKind::Directory if self.config.options.plan_only && !is_compared => return self.plan_directory(&item),
            ItemKind::Directory if self.config.options.plan_only => {}
            ItemKind::Directory => {
                let target = self.target(&item);
                if target.is_empty() {
                    // The destination itself, which is there.
                    self.totals.counts.directories += 1;
                    self.contents.get_or_insert(DirectoryAttributes { path: target, attributes: item.attributes });
                    return;
                }
                self.directories.push(&target, &item.attributes);
            }
            ItemKind::File | ItemKind::Symlink | ItemKind::Special => self.progress.files_found += 1,
        }
        self.find(now, item);
    }

    /// A directory that would be made or found is counted, and so is the destination itself.
    fn plan_directory(&mut self, item: &ScannedItem) {
        match self.target(item).is_empty() {
            true => self.totals.counts.add(ItemKind::Directory, 0),
            false => self.end_item(item, 0, FileDigests::default(), Outcome::Planned),
        }
    }

    /// An item is to be sent.
    fn admit(&mut self, now: Instant, item: ScannedItem) {
        if !self.is_bundled(&item) {
            self.offers_waiting.push_back((item, 0));
            self.make_offers();
        } else if self.bundles.fill(&self.config.tuning, now, item) {
            self.close_filling();
        }
    }

    /// Something could not be scanned. `item` bears its root and path.
    pub fn handle_scan_failure(&mut self, now: Instant, item: &ScannedItem, failure: Failure) {
        if !self.has_ended() {
            self.tell_name(now, item);
            if item.kind == ItemKind::Directory {
                self.directories_unlisted.insert(self.target(item));
            }
            self.end_item(item, 0, FileDigests::default(), Outcome::Failed(failure));
        }
    }

    /// The attributes of a directory, as the receiver is told them. One that is not whole does not shut its owner out:
    /// whatever kept it from being listed, such as its permissions, may pass.
    fn tell_directory(&mut self, mut directory: DirectoryAttributes) -> DirectoryAttributes {
        let unlisted = self.directories_unlisted.contains(&directory.path);
        directory.attributes.mode |= if unlisted { 0o700 } else { 0 };
        directory
    }

    /// The scan has ended.
    pub fn handle_scan_complete(&mut self, now: Instant) {
        self.progress.scan_complete = true;
        self.close_question();
        self.close_filling();
        if self.phase == SenderPhase::Scanning {
            self.phase = SenderPhase::Draining;
        }
        self.advance(now);
    }

    fn close_filling(&mut self) {
        let items = self.bundles.take_filling();
        if items.is_empty() {
            return;
        }
        // What has been compared is known not to be there.
        if self.config.known && self.config.options.rules().is_none() {
            self.bundles.ask_later(items);
            self.ask_more();
        } else {
            self.queue_bundle(items, 0, 0);
        }
    }

    fn queue_bundle(&mut self, items: Vec<ScannedItem>, attempt: u32, again: u32) {
        let id = BundleId(self.number());
        self.bundles.queue(Bundle { id, items, attempt, again });
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    fn make_offers(&mut self) {
        while self.items.len() < limits::OFFERED_ITEMS {
            let Some((scanned, attempt)) = self.next_offer() else {
                return;
            };
            let id = ItemId(self.number());
            self.actions.push_back(SenderAction::Send(PeerMessage::Offer(Offer {
                item: id,
                path: self.target(&scanned),
                size: scanned.size.filter(|_| !scanned.followed),
                attributes: scanned.attributes.clone(),
                sparse: scanned.sparse,
                fingerprint: self.fingerprint(&scanned),
            })));
            self.items.insert(id, Offered::new(scanned, attempt, &self.config.options));
        }
    }

    /// An offered item that may still be published.
    fn active(&mut self, id: ItemId) -> Option<&mut Offered> {
        let ended = self.has_ended();
        let item = self.items.get_mut(&id);
        item.filter(|item| !ended && item.abandoned.is_none())
    }

    /// The answer to [`SenderAction::CheckSource`]: the digests of a second reading, `None` of a
    /// source that is not read twice.
    ///
    /// The receiver is told the digests that are compared here, and publishes nothing else: a block that goes again,
    /// and is read again for that, while the second reading goes on or after it, must be what both readings have seen.
    pub fn handle_source_checked(&mut self, now: Instant, id: ItemId, result: Result<Option<FileDigests>, Failure>) {
        let Some(item) = self.active(id) else {
            return;
        };
        match (result, item.finish()) {
            (Err(failure), _) => self.abandon(id, failure),
            (Ok(Some(second)), Some((_, first))) if second != first => self.abandon(id, changed_unseen()),
            (Ok(_), Some((size, digests))) => {
                if let Err(failure) = self.check_expected(id, &digests) {
                    return self.abandon(id, failure);
                }
                let Some(item) = self.active(id) else { return };
                (item.completed, item.digests) = (true, digests);
                let message = PeerMessage::Complete { item: id, size, digest: digests.main(), modified: item.modified };
                self.actions.push_back(SenderAction::Send(message));
                self.advance(now);
            }
            (Ok(_), None) => {
                let message = "what was read is not as long as the source".to_string();
                self.abandon(id, Failure::new(ErrorCode::SourceChanged, Side::Source, message));
            }
        }
    }

    /// Compares what was read of an offered item with what it must be, if anything is expected.
    fn check_expected(&self, id: ItemId, digests: &FileDigests) -> Result<(), Failure> {
        let Some(item) = self.items.get(&id) else { return Ok(()) };
        self.expected.check(|| self.target(&item.scanned), digests.blake3)
    }

    /// Gives an offered item up because of its source, and tells the receiver. How the item ends is the receiver's to
    /// say: it may have been published before it heard of this.
    pub(crate) fn abandon(&mut self, id: ItemId, failure: Failure) {
        let Some(item) = self.active(id) else {
            return;
        };
        item.abandoned = Some(failure);
        item.forget_held();
        self.actions.push_back(SenderAction::Send(PeerMessage::Abandon { item: id }));
        self.release(id);
    }

    /// No stream has anything to do with the item any more.
    fn release(&mut self, id: ItemId) {
        self.sendable.retain(|&other| other != id);
        self.confirms.retain(|&(other, ..)| other != id);
        self.streams.forget(|unit| matches!(unit, Unit::Block(other, _) | Unit::Check(other, _) if other == id));
        self.actions.push_back(SenderAction::CloseSource(id));
    }

    fn take_out(&mut self, id: ItemId) -> Option<Offered> {
        if self.items.get(&id)?.abandoned.is_none() {
            self.release(id);
        }
        self.items.remove(&id)
    }

    /// Where nothing is left but files that have been sent whole, the receiver may end by itself when it has published
    /// them.
    fn tell_finish_ahead(&mut self) {
        let directories = self.directories.count() > 0 || self.contents.is_some();
        let is_whole = |item: &Offered| item.completed && item.abandoned.is_none();
        if !self.finish_told && !directories && !self.config.options.tells_names && self.items.values().all(is_whole) {
            self.finish_told = true;
            let message = PeerMessage::FinishOncePublished { ended_otherwise: self.ended_otherwise };
            self.actions.push_back(SenderAction::Send(message));
        }
    }

    /// Once everything has ended, tells the directories' attributes, and that this was all.
    fn advance(&mut self, now: Instant) {
        if self.has_ended() {
            return;
        }
        self.begin_released(now);
        let is_found = self.comparing.is_empty() && self.groups.is_empty() && self.offers_waiting.is_empty();
        let rest = !is_found || !self.bundles.is_empty() || !self.renewals.is_empty();
        if self.phase != SenderPhase::Draining || rest {
            return;
        }
        if !self.items.is_empty() {
            return self.tell_finish_ahead();
        }
        if self.finish_told {
            self.phase = SenderPhase::Finishing;
            return;
        }
        // Before directories get their times, which deletions would change.
        if self.config.options.tells_names && !self.delete_told {
            self.delete_told = true;
            // A FIFO that is left out is no failure.
            let failed = self.totals.counts.files_failed - self.totals.counts.specials_skipped;
            self.actions.push_back(SenderAction::Send(PeerMessage::Delete { failed }));
        }
        loop {
            let page = self.directories.take(Self::DIRECTORY_PAGE_BYTES);
            if page.is_empty() {
                break;
            }
            let failed = &self.directories_failed;
            let made: Vec<_> = page.into_iter().filter(|directory| !failed.contains(&directory.path)).collect();
            let page: Vec<_> = made.into_iter().map(|one| self.tell_directory(one)).collect();
            if !page.is_empty() {
                self.directories_told += page.len() as u64;
                self.actions.push_back(SenderAction::Send(PeerMessage::Directories(page)));
            }
        }
        let contents = self.contents.take().map(|contents| self.tell_directory(contents));
        self.directories_told += u64::from(contents.is_some());
        let finish = contents.map_or(PeerMessage::Finish, PeerMessage::FinishContents);
        self.actions.push_back(SenderAction::Send(finish));
        self.phase = SenderPhase::Finishing;
    }
}

/// Two readings differ, and no time has moved.
pub fn changed_unseen() -> Failure {
    let why = "changed while it was copied, and its times do not show it, as when a program writes to it through a mapping (mmap)";
    Failure::new(ErrorCode::SourceChanged, Side::Source, why).for_reason(Reason::SourceBusy)
}
