//! The bundles of a sender: being filled, waiting for a stream, and out until both are known: what was sent and what
//! the receiver made of it.
//!
//! Where an earlier attempt may have published some of the items, the receiver is asked before they are bundled for
//! good. The question has a number of its own, and what is left to send gets another: bundles reach the streams in the
//! order of their numbers, but for those that go again.
//!
//! A bundle whose stream was lost is sent again under the same number, so that the receiver takes it once. Which
//! of the copies it took is not told. Where the copies differ, because a source changed between, the item goes
//! again under another number.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::SentItem;
use crate::ids::BundleId;
use crate::limits;
use crate::report::ItemKind;
use crate::transfer::ScannedItem;
use crate::tuning::Tuning;
use crate::wire::ProtocolError;
use crate::wire::peer::ItemResult;

/// Small items that travel together.
#[derive(Debug, PartialEq, Eq)]
pub struct Bundle {
    /// The sender's number for it.
    pub id: BundleId,
    /// At least one, at most [`limits::BUNDLE_ITEMS`].
    pub items: Vec<ScannedItem>,
    /// How often these items have been sent before, as they were found.
    pub attempt: u32,
    /// How often they have been looked at again and sent anew.
    pub again: u32,
}

#[derive(Debug, Default)]
pub(super) struct Bundles {
    filling: Filling,
    /// Items that the receiver is to be asked about.
    to_ask: VecDeque<Vec<ScannedItem>>,
    /// Asked about and not answered for, by the question's number.
    asked: BTreeMap<BundleId, Asked>,
    ready: VecDeque<Arc<Bundle>>,
    /// Taken by a stream at least once, and not settled.
    out: BTreeMap<BundleId, BundleOut>,
}

/// A bundle being filled.
#[derive(Debug, Default)]
pub(super) struct Filling {
    items: Vec<ScannedItem>,
    bytes: u64,
    since: Option<Instant>,
}

impl Filling {
    /// Adds an item; whether the bundle is full now.
    pub fn push(&mut self, tuning: &Tuning, now: Instant, item: ScannedItem) -> bool {
        let is_content = item.kind == ItemKind::File && item.other_names.is_none();
        let names = item.other_names.iter().flat_map(|names| &names.paths).map(|path| path.len() as u64 + 8);
        let content = if is_content { item.size.unwrap_or(0) } else { names.sum() };
        self.bytes += content + item.attributes.others.encoded_bytes() as u64;
        self.since.get_or_insert(now);
        self.items.push(item);
        self.items.len() >= tuning.bundle_items || self.bytes >= tuning.bundle_bytes
    }

    pub fn take(&mut self) -> Vec<ScannedItem> {
        std::mem::take(self).items
    }
}

#[derive(Debug)]
pub(super) struct Asked {
    pub items: Vec<ScannedItem>,
    /// Which of them the question names.
    pub named: BTreeSet<u32>,
}

#[derive(Debug)]
pub(super) struct BundleOut {
    pub bundle: Arc<Bundle>,
    /// As the last stream sent it that sent all of it.
    pub sent: Option<Vec<SentItem>>,
    /// Items that two streams have sent differently.
    pub doubtful: BTreeSet<usize>,
    pub done: Option<BTreeMap<u32, ItemResult>>,
}

impl Bundles {
    /// A file with holes of more bytes travels in blocks: bundles know no holes.
    pub const SPARSE_BYTES: u64 = 64 << 10;

    /// How long the scan may take to fill a bundle before a waiting stream takes what there is.
    const FILL_PATIENCE: Duration = Duration::from_millis(5);

    /// Adds an item to the bundle being filled; whether that is full now.
    pub fn fill(&mut self, tuning: &Tuning, now: Instant, item: ScannedItem) -> bool {
        self.filling.push(tuning, now, item)
    }

    /// Takes what there is of the bundle being filled.
    pub fn take_filling(&mut self) -> Vec<ScannedItem> {
        self.filling.take()
    }

    pub fn queue(&mut self, bundle: Bundle) {
        self.ready.push_back(Arc::new(bundle));
    }

    pub fn queued(&self) -> usize {
        self.ready.len() + self.to_ask.len()
    }

    pub fn ask_later(&mut self, items: Vec<ScannedItem>) {
        self.to_ask.push_back(items);
    }

    /// The next items to ask about, when one more question may be out.
    pub fn next_to_ask(&mut self) -> Option<Vec<ScannedItem>> {
        if self.asked.len() >= limits::QUERIES { None } else { self.to_ask.pop_front() }
    }

    pub fn record_asked(&mut self, id: BundleId, asked: Asked) {
        self.asked.insert(id, asked);
    }

    pub fn take_asked(&mut self, id: BundleId) -> Option<Asked> {
        self.asked.remove(&id)
    }

    /// Nothing to fill, to send or to wait for.
    pub fn is_empty(&self) -> bool {
        let asking = !self.to_ask.is_empty() || !self.asked.is_empty();
        self.filling.items.is_empty() && !asking && self.ready.is_empty() && self.out.is_empty()
    }

    /// When what has been filled so far is to be taken as it is.
    pub fn filling_until(&self) -> Option<Instant> {
        let wanted = self.ready.is_empty() && self.to_ask.is_empty() && self.has_room();
        let since = self.filling.since.filter(|_| wanted);
        since.map(|since| since + Self::FILL_PATIENCE)
    }

    fn has_room(&self) -> bool {
        self.out.len() < limits::UNACKNOWLEDGED_BUNDLES
    }

    /// The next bundle to send, and whether the receiver has it already: then it is only read again.
    pub fn take(&mut self) -> Option<(Arc<Bundle>, bool)> {
        let front = self.ready.front()?;
        if !self.has_room() && !self.out.contains_key(&front.id) {
            return None;
        }
        let bundle = self.ready.pop_front()?;
        let out = self.out.entry(bundle.id).or_insert_with(|| BundleOut {
            bundle: Arc::clone(&bundle),
            sent: None,
            doubtful: BTreeSet::new(),
            done: None,
        });
        Some((bundle, out.done.is_some()))
    }

    /// The stream that carried it was lost.
    pub fn requeue(&mut self, id: BundleId) {
        let Some(out) = self.out.get(&id) else { return };
        let settled = out.sent.is_some() && out.done.is_some();
        if !settled && self.ready.iter().all(|bundle| bundle.id != id) {
            self.ready.push_front(Arc::clone(&out.bundle));
        }
    }

    /// A stream has sent all of it.
    pub fn record_sent(&mut self, id: BundleId, sent: Vec<SentItem>) {
        let Some(out) = self.out.get_mut(&id) else {
            return;
        };
        assert_eq!(sent.len(), out.bundle.items.len(), "every item of a bundle is told of");
        if let Some(earlier) = &out.sent {
            let differ = earlier.iter().zip(&sent).enumerate().filter(|(_, (a, b))| a != b);
            out.doubtful.extend(differ.map(|(index, _)| index));
        }
        out.sent = Some(sent);
    }

    /// The receiver has ended it.
    pub fn record_done(&mut self, id: BundleId, exceptions: Vec<(u32, ItemResult)>) -> Result<(), ProtocolError> {
        let out = self.out.get_mut(&id).filter(|out| out.done.is_none());
        let out = out.ok_or_else(|| ProtocolError::violation("the receiver ended a bundle that was not under way"))?;
        let items = out.bundle.items.len();
        let told = exceptions.len();
        let exceptions: BTreeMap<u32, ItemResult> = exceptions.into_iter().collect();
        if exceptions.len() != told || exceptions.keys().any(|&index| index as usize >= items) {
            return Err(ProtocolError::violation("the receiver ended an item twice, or one that is not in its bundle"));
        }
        out.done = Some(exceptions);
        Ok(())
    }

    /// Takes the bundle out once everything about it is known.
    pub fn take_settled(&mut self, id: BundleId) -> Option<BundleOut> {
        let settled = self.out.get(&id).is_some_and(|out| out.sent.is_some() && out.done.is_some());
        if !settled {
            return None;
        }
        self.ready.retain(|bundle| bundle.id != id);
        self.out.remove(&id)
    }
}
