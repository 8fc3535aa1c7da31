//! What a receiving end does beside its pump, because it may take long: making part files durable and having the marker
//! claim them, looking at what earlier sessions published, and reading again what they left.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Instant;

use carrack_core::digest::{BlockDigest, block_length};
use carrack_core::ids::{BundleId, ItemId};
use carrack_core::limits;
use carrack_core::report::{Failure, FileDigests, ItemKind};
use carrack_core::request::{InPlace, Verify};
use carrack_core::timeline::Work;
use carrack_core::transfer::receiver::Opened;
use carrack_core::wire::control::Tell;
use carrack_core::wire::patch::TakenBlock;
use carrack_core::wire::peer::{Offer, QueryItem};

use super::ReceiveRun;
use super::commit::Commit;
use super::comparing::ReceivedQuestion;
use crate::storage::write::{EarlierItem, Part};
use crate::sync::lock;

/// Commits that wait while one group is being published: beyond, streams wait too.
pub(super) const COMMITS_WAITING: usize = 256;
/// Blocks that are read again before it is looked whether anybody still wants to know.
const REHASHED_AT_ONCE: usize = 16;
/// Bytes that are taken over before it is looked whether that still pays, roughly.
const TAKEN_OVER_AT_ONCE: u32 = 64 << 20;
/// Bytes that are taken over before the marker claims them.
const CLAIMED_AT_ONCE: u64 = 1 << 30;

/// Blocks of an open item to be made durable.
pub(super) struct Checkpoint {
    pub item: ItemId,
    pub blocks: Vec<(u64, BlockDigest)>,
}

/// Items of a bundle that may be there.
pub(super) struct Look {
    pub bundle: BundleId,
    pub items: Vec<QueryItem>,
}

/// Where the pump hands in what others carry out. Dropped, it ends them.
pub(super) struct Workers {
    pub commits: mpsc::SyncSender<Commit>,
    pub checkpoints: mpsc::SyncSender<Checkpoint>,
    pub looks: mpsc::SyncSender<Look>,
    pub questions: mpsc::SyncSender<ReceivedQuestion>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts those who carry it out.
    ///
    /// # Errors
    /// When the system gives too few threads.
    pub fn start(run: &Arc<ReceiveRun>) -> Result<Self, Failure> {
        let (commits, to_commit) = mpsc::sync_channel(COMMITS_WAITING);
        // No more than one for each open item, or for each question that may be out: nobody waits to hand one in.
        let (checkpoints, to_checkpoint) = mpsc::sync_channel(limits::OPEN_ITEMS);
        let (looks, to_look) = mpsc::sync_channel(limits::QUERIES);
        let (questions, to_compare) = mpsc::sync_channel(limits::QUERIES);
        let threads = vec![
            run.start_thread("the commits", move |run| run.commit_all(&to_commit))?,
            run.start_thread("the checkpoints", move |run| {
                to_checkpoint.iter().for_each(|checkpoint| run.checkpoint(&checkpoint));
            })?,
            run.start_thread("a look at what is there", move |run| to_look.iter().for_each(|look| run.look(&look)))?,
            run.start_thread("the comparison with what is there", move |run| {
                to_compare.iter().for_each(|asked| run.compare(asked));
            })?,
        ];
        Ok(Self { commits, checkpoints, looks, questions, threads })
    }

    /// Waits until all that was handed in has been carried out.
    pub fn finish(self) {
        drop((self.commits, self.checkpoints, self.looks, self.questions));
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

impl ReceiveRun {
    fn checkpoint(&self, checkpoint: &Checkpoint) {
        // Not there any more: the item was published or given up while the checkpoint waited, and there is nothing to
        // save.
        let part = lock(&self.parts).get(&checkpoint.item).cloned();
        let read_back = self.driver.options.verify == Verify::Disk;
        let save = |part: Arc<dyn Part>| part.checkpoint(&checkpoint.blocks, read_back);
        let saved = part.map_or(Ok(Vec::new()), |part| self.driver.stages.aside(Work::Sync, || save(part)));
        self.driver.tell(|machine| machine.handle_checkpointed(Instant::now(), checkpoint.item, saved));
    }

    fn look(&self, look: &Look) {
        let over = || self.driver.is_over();
        let found = |item: &QueryItem| {
            let QueryItem { index, path, kind, size: _, mode, mtime, others, fingerprint } = item;
            let others = &self.owners.here(others.clone());
            let (kind, mtime, fingerprint) = (*kind, self.time_to_set(Some(*mtime)), *fingerprint);
            let mode = Some(*mode).filter(|_| kind == ItemKind::File);
            let earlier = EarlierItem { path, kind, fingerprint, mode, mtime, others, block_bytes: None };
            Some((*index, self.destination.known(&earlier, &self.writing, &over)?))
        };
        let known: Vec<(u32, FileDigests)> = look.items.iter().filter_map(found).collect();
        self.driver.tell(|machine| machine.handle_looked(Instant::now(), look.bundle, known));
    }

    /// A part file that has blocks already: accepted at once where the marker can be believed, else once they have been
    /// read again. `standing` are those that are taken over from what stands at the name.
    pub(super) fn take_up(
        self: &Arc<Self>,
        offer: &Offer,
        part: Arc<dyn Part>,
        held: Vec<(u64, BlockDigest)>,
        (doubtful, standing): (Vec<u64>, Range<u64>),
    ) {
        let (item, size) = (offer.item, offer.size.unwrap_or(0));
        lock(&self.parts).insert(item, Arc::clone(&part));
        if doubtful.is_empty() && standing.is_empty() {
            return self.taken_up(item, held, Vec::new());
        }
        self.spawn("reading what is there", move |run| {
            let mut left = held;
            // What this session did not write itself may have been altered since: only what is read and digested
            // counts.
            if !doubtful.is_empty() {
                run.reread.0.fetch_add(1, Ordering::Relaxed);
            }
            for some in doubtful.chunks(REHASHED_AT_ONCE) {
                if run.driver.is_over() {
                    return;
                }
                let read = part.rehash(some);
                run.reread.1.fetch_add(run.bytes_of(&read, size), Ordering::Relaxed);
                left.extend(read);
            }
            let there: HashSet<u64> = left.iter().map(|(index, _)| *index).collect();
            let taken_over = run.take_over(item, size, &*part, standing, &there);
            part.end_taking_over();
            if let Some(taken_over) = taken_over {
                run.taken_up(item, left, taken_over);
            }
        });
    }

    fn bytes_of(&self, blocks: &[(u64, BlockDigest)], size: u64) -> u64 {
        blocks.iter().map(|(index, _)| block_length(*index, size, self.driver.options.block_bytes)).sum()
    }

    /// Copies blocks from what stands at the name of an item, but those that are `there`, as long as that pays; `None`
    /// when the transfer is over before. Every now and then what has been copied is claimed: a session that is lost
    /// need not begin anew.
    fn take_over(
        &self,
        item: ItemId,
        size: u64,
        part: &dyn Part,
        standing: Range<u64>,
        there: &HashSet<u64>,
    ) -> Option<Vec<TakenBlock>> {
        let is_over = || self.driver.is_over();
        if standing.is_empty() {
            return Some(Vec::new());
        }
        let turn = self.taking_over.turn(standing, is_over)?;
        let at_once = (TAKEN_OVER_AT_ONCE / self.driver.options.block_bytes).max(1) as usize;
        let missing: Vec<u64> = turn.blocks.clone().filter(|index| !there.contains(index)).collect();
        let (mut taken, mut unclaimed) = (Vec::new(), Vec::new());
        for some in missing.chunks(at_once) {
            if is_over() {
                return None;
            }
            // Of what is written on nothing is trusted, whatever is quicker.
            if self.driver.options.in_place != InPlace::Append && !self.taking_over.pays() {
                break;
            }
            let bytes = some.iter().map(|&index| block_length(index, size, self.driver.options.block_bytes)).sum();
            let found = self.taking_over.copying.measure(bytes, || part.take_over(some));
            unclaimed.extend(found.iter().map(|block| (block.index, block.digest)));
            taken.extend(found);
            if self.bytes_of(&unclaimed, size) >= CLAIMED_AT_ONCE && part.checkpoint(&unclaimed, false).is_ok() {
                lock(&self.claimed).extend(unclaimed.drain(..).map(|(index, _)| (item, index)));
            }
        }
        Some(taken)
    }

    /// An earlier session may have published the file: it is read back. One that is something else by now is opened
    /// again, like one that nobody ever published.
    pub(super) fn look_at_published(self: &Arc<Self>, offer: Offer) {
        self.spawn("reading back what was published", move |run| {
            let over = || run.driver.is_over();
            let earlier = EarlierItem {
                path: &offer.path,
                kind: ItemKind::File,
                fingerprint: offer.fingerprint,
                mode: Some(offer.attributes.mode),
                mtime: run.time_to_set(offer.attributes.mtime),
                others: &offer.attributes.others,
                block_bytes: Some(run.driver.options.block_bytes),
            };
            if let Some(digests) = run.destination.known(&earlier, &run.writing, &over) {
                run.offer_ended(offer.item, None);
                return run
                    .driver
                    .tell(|machine| machine.handle_opened(Instant::now(), offer.item, Opened::Present(digests)));
            }
            {
                let (offers, numbers) = &mut *lock(&run.disbelieved);
                numbers.insert(offer.item);
                offers.push_back(offer);
            }
            // The pump opens it.
            run.driver.tell(|_| ());
        });
    }

    fn taken_up(&self, item: ItemId, left: Vec<(u64, BlockDigest)>, taken_over: Vec<TakenBlock>) {
        // Before the machine hears of them: it may have one of them written again at once. Of what was taken over the
        // marker claims nothing.
        lock(&self.claimed).extend(left.iter().map(|(index, _)| (item, *index)));
        let opened = Opened::Resumed { left, taken_over };
        self.driver.tell(|machine| machine.handle_opened(Instant::now(), item, opened));
    }

    /// A block is about to be written: what the marker claims of it from an earlier session is no longer so.
    pub(super) fn take_claim_back(&self, item: ItemId, offset: u64, part: &dyn Part) {
        let index = offset / u64::from(self.driver.options.block_bytes);
        if lock(&self.claimed).remove(&(item, index)) {
            part.unclaim(index);
        }
    }

    /// Tells the command of calls to the file system that do not return.
    pub(super) fn tell_stalled(&self) {
        for text in self.destination.stalled(Instant::now()) {
            (self.driver.voice.command)(Tell::Note(text));
        }
    }

    /// What is left of the transfer's part files stays for the next session, as far as it is of use, or goes.
    pub(super) fn leave_parts(&self, outcome: &Result<(), Failure>) {
        let unsaved = self.driver.lock().unsaved();
        let read_back = self.driver.options.verify == Verify::Disk;
        for (item, part) in lock(&self.parts).drain() {
            if outcome.is_ok() {
                part.remove();
                continue;
            }
            if let Some((_, blocks)) = unsaved.iter().find(|(number, _)| *number == item) {
                // What cannot be saved is sent again.
                let _ = part.checkpoint(blocks, read_back);
            }
            part.leave();
        }
        self.destination.finish(outcome.is_ok());
    }
}
