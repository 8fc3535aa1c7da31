//! Asking which small items an earlier attempt has published, before they are sent.

use std::collections::BTreeSet;

use super::bundles::Asked;
use super::{Sender, SenderAction};
use crate::digest::FileDigests;
use crate::ids::BundleId;
use crate::limits;
use crate::report::{ItemKind, Outcome};
use crate::request::Verify;
use crate::transfer::{Fingerprint, ScannedItem};
use crate::wire::ProtocolError;
use crate::wire::peer::{PeerMessage, QueryItem};

impl Sender {
    /// Bytes of a question, roughly: it has to fit into a message, whatever the paths. What does
    /// not fit is sent unasked.
    const QUERY_BYTES: usize = limits::MESSAGE_BYTES / 2;
    /// Of an item in a question, besides its path.
    const QUERY_ITEM_BYTES: usize = 96;

    /// Asks as much as may be asked at once. Only what waits for its own answer waits.
    pub(super) fn ask_more(&mut self) {
        while let Some(items) = self.bundles.next_to_ask() {
            let mut room = Self::QUERY_BYTES;
            let mut named = Vec::new();
            for (index, item) in (0..).zip(&items) {
                let question = self.question(index, item);
                let bytes = question.as_ref().map_or(0, |question| {
                    question.path.len() + question.others.encoded_bytes() + Self::QUERY_ITEM_BYTES
                });
                if let (Some(question), Some(left)) = (question, room.checked_sub(bytes)) {
                    room = left;
                    named.push(question);
                }
            }
            if named.is_empty() {
                self.queue_bundle(items, 0, 0);
                continue;
            }
            let id = BundleId(self.number());
            let indexes = named.iter().map(|question| question.index).collect();
            self.actions.push_back(SenderAction::Send(PeerMessage::Query { bundle: id, items: named }));
            self.bundles.record_asked(id, Asked { items, named: indexes });
        }
    }

    /// `None` for what is always sent: directories, and sources that nothing tells to be still the same.
    fn question(&self, index: u32, item: &ScannedItem) -> Option<QueryItem> {
        let size = match item.kind {
            _ if item.other_names.is_some() => return None,
            ItemKind::File => item.size?,
            ItemKind::Symlink => 0,
            ItemKind::Directory | ItemKind::Special => return None,
        };
        let (mtime, fingerprint) = (item.attributes.mtime?, Some(self.fingerprint(item)?));
        let (mode, others) = (item.attributes.mode, item.attributes.others.clone());
        Some(QueryItem { index, path: self.target(item), kind: item.kind, size, mode, mtime, others, fingerprint })
    }

    /// What an item is known by. With `--verify source` none is believed: what its times do not tell is to be found.
    /// What is followed is to become another.
    pub(super) fn fingerprint(&self, item: &ScannedItem) -> Option<Fingerprint> {
        item.fingerprint.filter(|_| self.config.options.verify != Verify::Source && !item.followed)
    }

    /// The answer: what is known has ended, the rest is sent.
    pub(super) fn handle_known(&mut self, id: BundleId, known: Vec<(u32, FileDigests)>) -> Result<(), ProtocolError> {
        let wrong = |what: &str| ProtocolError::violation(format!("the receiver answered question {id} {what}"));
        let Asked { items, named } =
            self.bundles.take_asked(id).ok_or_else(|| wrong("which was not asked, or has been answered"))?;
        let wanted = self.config.options.digests;
        let mut ended = BTreeSet::new();
        let mut digests = Vec::with_capacity(known.len());
        for (index, told) in known {
            let item = items.get(index as usize).filter(|_| named.contains(&index) && ended.insert(index));
            let item = item.ok_or_else(|| wrong("with an item twice, or one that was not asked about"))?;
            let told = match item.kind {
                ItemKind::File => told.covering(wanted).ok_or_else(|| wrong("without the digests agreed"))?,
                _ => FileDigests::default(),
            };
            digests.push((index, told));
        }
        for (index, digests) in digests {
            let item = &items[index as usize];
            let size = if item.kind == ItemKind::File { item.size.unwrap_or(0) } else { 0 };
            self.count_resumed(size);
            self.end_item(item, size, digests, Outcome::Published);
        }
        let rest = (0..).zip(items).filter(|(index, _)| !ended.contains(index));
        let rest: Vec<ScannedItem> = rest.map(|(_, item)| item).collect();
        if !rest.is_empty() {
            self.queue_bundle(rest, 0, 0);
        }
        self.ask_more();
        Ok(())
    }

    /// An item that an earlier attempt has published.
    pub(super) fn count_resumed(&mut self, bytes: u64) {
        self.progress.bytes_done += bytes;
        self.totals.counts.files_resumed += 1;
        self.totals.counts.bytes_resumed += bytes;
    }
}
