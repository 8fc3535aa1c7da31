//! The receiving half of a transfer: what may be written, what has landed, when a name may appear.
//!
//! Invariants, asserted in every build:
//! - a file is published only when every block has landed, and its digest, computed here over what was
//!   written, is the sender's;
//! - a block is written by one stream at a time, and never again once it has landed, unless storage has lost it;
//! - a block from an earlier attempt has landed only once the sender has compared it with its source;
//! - with `--verify disk` and checkpoints, a file is published only after each of its blocks has been read back.
//!
//! Every offer gets one last word: a refusal, a *keep* or a *done*. So the sender's count of open
//! offers is never below ours.
//!
//! When the transfer fails, part files that are open are left to the driver, who knows what it has checkpointed and
//! asks for the rest by [`Receiver::unsaved`].

mod answers;
mod blocks;
mod checkpoints;
mod comparing;
mod incoming;
mod machine;
mod resume;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use self::answers::shorten_failures;
use self::incoming::{IncomingItem, ItemState};
use super::Unit;
use crate::attributes::Time;
use crate::digest::{BlockDigest, FileDigests, is_main_of};
use crate::failure::{ErrorCode, Failure, Side};
use crate::ids::{BundleId, ItemId, StreamId};
use crate::limits;
use crate::report::ItemKind;
use crate::request::{Digests, Verify};
use crate::tuning::Tuning;
use crate::wire::control::TransferOptions;
use crate::wire::patch::TakenBlock;
use crate::wire::peer::{Answer, AskedIndex, DirectoryAttributes, ItemResult, Offer, PeerMessage, QueryItem, Question};
use crate::wire::{ProtocolError, failure_bytes};

/// What has to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverAction {
    /// Send this to the sender.
    Send(PeerMessage),
    /// Make the part file for an offered item, and say so by [`Receiver::handle_opened`].
    Open(Offer),
    /// Sync the part file if asked to, verify it again if asked to, give it its name, and say so by
    /// [`Receiver::handle_published`].
    Publish {
        /// Number of the item.
        item: ItemId,
        /// The digests that the file must have.
        digests: FileDigests,
        /// Its size in bytes.
        size: u64,
        /// Its modification time, where that is another than was offered.
        modified: Option<Time>,
    },
    /// Remove the part file.
    Discard(ItemId),
    /// Publish the bundle's items together with others, and say so by [`Receiver::handle_committed`].
    Commit(BundleId),
    /// Cut this stream off, and say so by [`Receiver::handle_stream_closed`]: the sender has given it up.
    CloseStream(StreamId),
    /// Set permissions and times, in this order, and say so by [`Receiver::handle_directories_applied`].
    ApplyDirectories(Vec<DirectoryAttributes>),
    /// Bring everything published to stable storage, and say so by [`Receiver::handle_synced`].
    Sync,
    /// Bring these blocks of an open item to stable storage, read them back past the cache where that was asked for,
    /// write them down in the marker, and say so by [`Receiver::handle_checkpointed`]. One at a time for each item.
    Checkpoint {
        /// Number of the item.
        item: ItemId,
        /// Index and digest of each block.
        blocks: Vec<(u64, BlockDigest)>,
    },
    /// See which of these an earlier attempt has published and are there still, and say so by
    /// [`Receiver::handle_looked`].
    Look {
        /// The bundle that they are to travel in.
        bundle: BundleId,
        /// Its files and links.
        items: Vec<QueryItem>,
    },
    /// See what of this is there, and say so by [`Receiver::handle_compared`]; keep in mind the names that are told.
    Compare {
        /// Number of the question.
        number: BundleId,
        /// What the sender has.
        question: Question,
    },
    /// See whether what stands there holds this, and say so by [`Receiver::handle_content_compared`]. It is one of the
    /// files of which [`Receiver::handle_compared`] was told [`Judgment::Undecided`](crate::judgment::Judgment).
    CompareContent {
        /// Which file.
        asked: AskedIndex,
        /// The BLAKE3 of the source; `None` where it cannot be read, and nothing is the same.
        digest: Option<[u8; 32]>,
    },
    /// Everything has its name, or nothing has been sent yet: delete what only the destination has, as the command has
    /// ordered, before directories get their times, and say so by [`Receiver::handle_deleted`].
    Delete {
        /// Items that failed, as the sender knows.
        failed: u64,
    },
}

/// What a receiver is told at its start.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverConfig {
    /// The transfer's options.
    pub options: TransferOptions,
    /// What has landed is to be checkpointed: there is a marker to write it down in, or it is read back block by block.
    /// Then [`ReceiverAction::Publish`] need not read anything back.
    pub checkpoints: bool,
    /// Knobs: how often it acknowledges and checkpoints.
    pub tuning: Tuning,
}

/// How a stream is to treat a block that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockStart {
    /// Write its bytes. Where the marker claims the block from an earlier attempt, that is to be taken back there
    /// before the first byte is written: a claim that is trusted after a crash must be true.
    Write,
    /// Read and drop them.
    Discard,
    /// Another stream is still writing the same. Ask again when something has changed: it lands, or is cut off.
    WaitFor(StreamId),
}

/// A block that a stream has brought and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivedBlock {
    /// The item's number.
    pub item: ItemId,
    /// Where the block starts, in bytes.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

/// How opening a part file went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// Blocks may come.
    Ready,
    /// The name stays as it is, as was asked for.
    Keep,
    /// It cannot be written.
    Refused(Failure),
    /// Blocks may come; these of them, by index, with the digests that they were found to have, are in the part file.
    Resumed {
        /// From an earlier attempt.
        left: Vec<(u64, BlockDigest)>,
        /// From what stands at the name.
        taken_over: Vec<TakenBlock>,
    },
    /// An earlier attempt has published it, and it has not changed since. With every digest that the options ask for.
    Present(FileDigests),
    /// The part file shares all its blocks with the source.
    Shared,
}

/// The receiving half of a transfer.
#[derive(Debug)]
pub struct Receiver {
    options: TransferOptions,
    tuning: Tuning,
    items: BTreeMap<ItemId, IncomingItem>,
    waiting: VecDeque<Offer>,
    last_offer: ItemId,
    /// Bundles that have landed, as far back as the sender may send one again.
    bundles_landed: BTreeSet<BundleId>,
    bundles_to_commit: usize,
    /// What each stream is writing.
    streams: BTreeMap<StreamId, Option<Unit>>,
    /// Streams that the sender has given up: what they bring is old.
    lost: BTreeSet<StreamId>,
    actions: VecDeque<ReceiverAction>,
    landed_blocks: Vec<(ItemId, u64)>,
    landed_bundles: Vec<BundleId>,
    /// Before this, what has landed since the last time is not told.
    landed_at: Option<Instant>,
    directories_pending: u64,
    /// Offered items that have ended otherwise than published.
    ended_otherwise: u64,
    /// The sender has said that nothing comes after what is open, if all of that is published.
    finishes_once_published: bool,
    phase: ReceiverPhase,
    bytes_landed: u64,
    files_published: u64,
    /// Questions being looked into: kind of each item by its index.
    looks: BTreeMap<BundleId, BTreeMap<u32, ItemKind>>,
    /// Questions being compared: how many files each is about.
    comparisons: BTreeMap<BundleId, usize>,
    /// Files whose content is being compared; and those whose content the sender has told.
    contents: BTreeSet<AskedIndex>,
    contents_told: BTreeSet<AskedIndex>,
    delete_told: bool,
    doubts: comparing::Doubts,
    /// Of the actions, those that tell of held blocks.
    held_waiting: usize,
    checkpoints: bool,
    /// As it was last told.
    now: Option<Instant>,
    /// When what has landed is to be checkpointed.
    checkpoint_at: Option<Instant>,
    /// Bytes of all items that have landed and are not being checkpointed.
    unsaved_bytes: u64,
    blocks_rotten: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ReceiverPhase {
    Receiving,
    Draining,
    Syncing,
    Finished,
    Failed(Failure),
}

impl Receiver {
    /// Bundles remembered as landed. The sender sends one again only before it has heard that it landed, and until then
    /// no more than [`limits::UNACKNOWLEDGED_BUNDLES`] others can land.
    const BUNDLES_REMEMBERED: usize = 4 * limits::UNACKNOWLEDGED_BUNDLES;
    /// Answers that wait to be sent. Far more than an honest sender can be owed; one that asks and does not
    /// listen ends the transfer.
    const ACTIONS_WAITING: usize = 16_384;
    /// Paths and texts of directories' failures in one message, in bytes.
    const DIRECTORY_FAILURE_BYTES: usize = limits::MESSAGE_BYTES / 2;

    /// A receiver that has been offered nothing yet.
    pub fn new(config: ReceiverConfig) -> Self {
        Self {
            options: config.options,
            tuning: config.tuning,
            items: BTreeMap::new(),
            waiting: VecDeque::new(),
            last_offer: ItemId(0),
            bundles_landed: BTreeSet::new(),
            bundles_to_commit: 0,
            streams: BTreeMap::new(),
            lost: BTreeSet::new(),
            actions: VecDeque::new(),
            landed_blocks: Vec::new(),
            landed_bundles: Vec::new(),
            landed_at: None,
            directories_pending: 0,
            ended_otherwise: 0,
            finishes_once_published: false,
            phase: ReceiverPhase::Receiving,
            bytes_landed: 0,
            files_published: 0,
            looks: BTreeMap::new(),
            comparisons: BTreeMap::new(),
            contents: BTreeSet::new(),
            contents_told: BTreeSet::new(),
            delete_told: false,
            doubts: comparing::Doubts::default(),
            held_waiting: 0,
            checkpoints: config.checkpoints,
            now: None,
            checkpoint_at: None,
            unsaved_bytes: 0,
            blocks_rotten: 0,
        }
    }

    /// Blocks that storage gave back otherwise than they were written, and that were asked for again.
    pub fn blocks_rotten(&self) -> u64 {
        self.blocks_rotten
    }

    /// Bytes landed and offered files published so far.
    pub fn progress(&self) -> (u64, u64) {
        (self.bytes_landed, self.files_published)
    }

    fn has_ended(&self) -> bool {
        matches!(self.phase, ReceiverPhase::Finished | ReceiverPhase::Failed(_))
    }

    fn handle_finish(&mut self) -> Result<(), ProtocolError> {
        let offers = !self.items.is_empty() || !self.waiting.is_empty();
        let questions = !self.looks.is_empty() || self.is_comparing();
        if offers || self.bundles_to_commit > 0 || questions {
            return Err(ProtocolError::violation("the sender finished before every item had ended"));
        }
        self.phase = ReceiverPhase::Draining;
        Ok(())
    }

    /// The sender's last word, if all goes well. It did not know yet how items ended whose number it does not know.
    fn handle_finish_once_published(&mut self, ended_otherwise: u64) {
        self.finishes_once_published = ended_otherwise == self.ended_otherwise;
        self.finish_if_all_is_published();
    }

    fn finish_if_all_is_published(&mut self) {
        if self.finishes_once_published && self.phase == ReceiverPhase::Receiving && self.handle_finish().is_ok() {
            self.advance();
        }
    }

    fn handle_offer(&mut self, offer: Offer) -> Result<(), ProtocolError> {
        if offer.item <= self.last_offer {
            return Err(ProtocolError::violation(format!("the sender offered item {} out of order", offer.item)));
        }
        if self.waiting.len() + self.items.len() >= limits::OFFERED_ITEMS {
            return Err(ProtocolError::violation("the sender offered more files than the protocol allows at once"));
        }
        self.last_offer = offer.item;
        self.waiting.push_back(offer);
        self.open_more();
        Ok(())
    }

    fn open_more(&mut self) {
        while self.items.len() < limits::OPEN_ITEMS {
            let Some(offer) = self.waiting.pop_front() else {
                return;
            };
            self.items.insert(offer.item, IncomingItem::new(offer.size, &self.options));
            self.actions.push_back(ReceiverAction::Open(offer));
        }
    }

    fn handle_abandon(&mut self, id: ItemId) -> Result<(), ProtocolError> {
        if id > self.last_offer {
            return Err(ProtocolError::violation(format!("the sender gave up item {id}, which it has not offered")));
        }
        let waiting = self.waiting.len();
        self.waiting.retain(|offer| offer.item != id);
        if self.waiting.len() < waiting {
            self.send_done(id, ItemResult::Dropped);
        }
        let Some(item) = self.items.get_mut(&id) else {
            return Ok(());
        };
        match item.state {
            ItemState::Opening | ItemState::Dropped => item.state = ItemState::Dropped,
            ItemState::Open => self.drop_open(id, ItemResult::Dropped),
            // Too late: it is published, and the sender learns so.
            ItemState::Publishing => {}
        }
        Ok(())
    }

    /// Ends an item whose part file is there and is not to be published.
    fn drop_open(&mut self, id: ItemId, result: ItemResult) {
        if let Some(item) = self.items.remove(&id) {
            self.unsaved_bytes -= item.unsaved_bytes();
        }
        self.actions.push_back(ReceiverAction::Discard(id));
        self.send_done(id, result);
        self.open_more();
    }

    /// The answer to [`ReceiverAction::Open`].
    pub fn handle_opened(&mut self, now: Instant, id: ItemId, opened: Opened) {
        self.note_time(now);
        if self.has_ended() {
            if matches!(opened, Opened::Ready | Opened::Shared) {
                self.actions.push_back(ReceiverAction::Discard(id));
            }
            return;
        }
        let Some(item) = self.items.get_mut(&id) else {
            return;
        };
        let dropped = item.state == ItemState::Dropped;
        let answer = match opened {
            Opened::Ready | Opened::Resumed { .. } | Opened::Shared if dropped => {
                return self.drop_open(id, ItemResult::Dropped);
            }
            Opened::Ready => {
                item.state = ItemState::Open;
                Answer::Accept
            }
            Opened::Resumed { left, taken_over } => {
                item.state = ItemState::Open;
                let taken_over = item.take_over(taken_over);
                self.hold(id, [left, taken_over].concat());
                Answer::Accept
            }
            Opened::Shared => {
                item.state = ItemState::Open;
                self.bytes_landed += item.share();
                Answer::Shared
            }
            Opened::Present(digests) => Answer::Present(digests),
            Opened::Keep => Answer::Keep,
            Opened::Refused(failure) => Answer::Refuse(failure),
        };
        if !matches!(answer, Answer::Accept | Answer::Shared) {
            self.items.remove(&id);
        }
        if dropped {
            self.send_done(id, ItemResult::Dropped);
        } else {
            self.send(PeerMessage::Answer { item: id, answer });
        }
        self.open_more();
    }

    fn handle_complete(
        &mut self,
        id: ItemId,
        (size, digest): (u64, Option<[u8; 32]>),
        modified: Option<Time>,
    ) -> Result<(), ProtocolError> {
        let wrong = |what: &str| Err(ProtocolError::violation(format!("the sender completed item {id}, {what}")));
        if id > self.last_offer || self.waiting.iter().any(|offer| offer.item == id) {
            return wrong("whose offer has not been answered");
        }
        let is_shared = self.items.get(&id).is_some_and(|item| item.shared);
        let wanted = if is_shared { Digests::NONE } else { self.options.digests };
        if digest.is_some() != wanted.main.is_some() || digest.is_some_and(|digest| !is_main_of(&digest, wanted)) {
            return wrong("with another digest than agreed");
        }
        // It may have ended while this was under way.
        let Some(item) = self.items.get_mut(&id) else {
            return Ok(());
        };
        if !item.complete(size, digest) {
            return wrong("which was not open, twice, or with a size that its offer or its blocks do not allow");
        }
        item.modified = modified;
        self.publish_if_whole(id);
        Ok(())
    }

    fn publish_if_whole(&mut self, id: ItemId) {
        let Some(item) = self.items.get_mut(&id) else {
            return;
        };
        match item.finish() {
            // A sync may be under way: its failure is told once only, and must not be taken for this file's success.
            Some((_, Some(_))) if item.saving.is_some() => {}
            Some((_, Some(_)))
                if self.checkpoints && self.options.verify == Verify::Disk && !item.unsaved.is_empty() =>
            {
                self.checkpoint(id);
            }
            Some((size, Some(digests))) => {
                self.unsaved_bytes -= item.unsaved_bytes();
                item.unsaved.clear();
                item.state = ItemState::Publishing;
                let modified = item.modified;
                self.actions.push_back(ReceiverAction::Publish { item: id, digests, size, modified });
            }
            Some((_, None)) => {
                let message = "what was written is not what was read, though every block of it was".to_string();
                self.lose(id, Failure::new(ErrorCode::DigestMismatch, Side::Link, message));
            }
            None => {}
        }
    }

    /// What was written of an open item is of no use.
    fn lose(&mut self, id: ItemId, failure: Failure) {
        self.bytes_landed -= self.items.get(&id).map_or(0, |item| item.bytes);
        self.drop_open(id, ItemResult::Again(failure));
    }

    /// The answer to [`ReceiverAction::Publish`].
    pub fn handle_published(&mut self, now: Instant, id: ItemId, result: ItemResult) {
        self.note_time(now);
        let item = self.items.remove(&id).filter(|item| item.state == ItemState::Publishing);
        let item = item.expect("only what was to be published is");
        if matches!(result, ItemResult::Again(_)) {
            self.bytes_landed -= item.bytes;
        }
        self.files_published += u64::from(result == ItemResult::Published);
        if !self.has_ended() {
            self.send_done(id, result);
            self.open_more();
            self.finish_if_all_is_published();
        }
    }

    /// The answer to [`ReceiverAction::Commit`].
    pub fn handle_committed(&mut self, now: Instant, bundle: BundleId, mut exceptions: Vec<(u32, ItemResult)>) {
        self.note_time(now);
        assert!(self.bundles_to_commit > 0, "only what was to be committed is");
        self.bundles_to_commit -= 1;
        if !self.has_ended() {
            shorten_failures(&mut exceptions);
            self.send(PeerMessage::BundleDone { bundle, exceptions });
            self.finish_if_all_is_published();
        }
    }

    /// The answer to [`ReceiverAction::ApplyDirectories`].
    pub fn handle_directories_applied(&mut self, now: Instant, failures: Vec<(Vec<u8>, Failure)>) {
        self.note_time(now);
        assert!(self.directories_pending > 0, "only attributes that were to be set are");
        self.directories_pending -= 1;
        let (mut page, mut page_bytes) = (Vec::new(), 0);
        for (path, failure) in failures {
            // With what protobuf says of lengths.
            let bytes = path.len() + failure_bytes(&failure) + 16;
            if page_bytes + bytes > Self::DIRECTORY_FAILURE_BYTES {
                self.tell_directories_failed(std::mem::take(&mut page));
                page_bytes = 0;
            }
            page_bytes += bytes;
            page.push((path, failure));
        }
        self.tell_directories_failed(page);
        self.advance();
    }

    fn tell_directories_failed(&mut self, failures: Vec<(Vec<u8>, Failure)>) {
        if !failures.is_empty() && !self.has_ended() {
            self.send(PeerMessage::DirectoriesFailed(failures));
        }
    }

    /// After the sender's last word, once every directory has its attributes: sync.
    fn advance(&mut self) {
        if self.phase == ReceiverPhase::Draining && self.directories_pending == 0 {
            self.phase = ReceiverPhase::Syncing;
            self.actions.push_back(ReceiverAction::Sync);
        }
    }

    /// The answer to [`ReceiverAction::Sync`].
    pub fn handle_synced(&mut self, now: Instant, durable: bool) {
        self.note_time(now);
        if self.phase == ReceiverPhase::Syncing {
            self.send(PeerMessage::Finished { durable });
            self.phase = ReceiverPhase::Finished;
        }
    }
}
