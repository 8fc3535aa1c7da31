//! What the sender says that it has, compared with what is there.

use std::time::Instant;

use super::{Receiver, ReceiverAction};
use crate::ids::BundleId;
use crate::judgment::Judgment;
use crate::limits;
use crate::report::ItemKind;
use crate::wire::ProtocolError;
use crate::wire::peer::{AskedIndex, AskedItem, PeerMessage, Question};

/// What the source is asked about before it is deleted.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// Of the last question; 0 before the first.
    number: u64,
    /// Paths of the question that waits for its answer.
    open: Option<usize>,
    answer: Option<Vec<bool>>,
}

impl Receiver {
    /// Whether something that was asked has not been answered.
    pub(super) fn is_comparing(&self) -> bool {
        !self.comparisons.is_empty() || !self.contents.is_empty()
    }

    pub(super) fn handle_compare(&mut self, number: BundleId, question: Question) -> Result<(), ProtocolError> {
        let wrong = |what: &str| Err(ProtocolError::violation(format!("the sender asked question {number} {what}")));
        if self.options.rules().is_none() && !question.items.is_empty() {
            return wrong("about files, and nothing is compared");
        }
        let Self { options, .. } = self;
        let is_asked = |item: &AskedItem| match item.kind {
            ItemKind::Directory => options.plan_only && options.item_changes,
            ItemKind::File if item.hard_link.is_none() => true,
            ItemKind::File | ItemKind::Symlink | ItemKind::Special => options.plan_only,
        };
        if !question.items.iter().all(is_asked) {
            return wrong("about items that are not compared so");
        }
        let tells = !question.names.is_empty() || !question.listed.is_empty();
        if tells && (!self.options.tells_names || self.delete_told) {
            return wrong("with names that nobody wants to know");
        }
        if self.comparisons.len() >= limits::QUERIES || self.comparisons.contains_key(&number) {
            return wrong("twice, or asks too many");
        }
        let open = self.contents.len() + self.comparisons.values().sum::<usize>();
        if open + question.items.len() > limits::COMPARED_ITEMS {
            return wrong("about more files than may wait for an answer");
        }
        self.comparisons.insert(number, question.items.len());
        self.actions.push_back(ReceiverAction::Compare { number, question });
        Ok(())
    }

    /// The answer to [`ReceiverAction::Compare`]: what becomes of each file, in the order of the question.
    pub fn handle_compared(&mut self, now: Instant, number: BundleId, judgments: Vec<Judgment>) {
        self.note_time(now);
        let asked = self.comparisons.remove(&number).filter(|_| !self.has_ended());
        let Some(asked) = asked else { return };
        assert_eq!(asked, judgments.len(), "every file that was asked about is answered for");
        for (index, judgment) in (0..).zip(&judgments).filter(|(_, judgment)| judgment.is_open()) {
            let asked = AskedIndex { number, index };
            self.contents.insert(asked);
            if !judgment.is_read() {
                self.contents_told.insert(asked);
            }
        }
        self.send(PeerMessage::Compared { number, judgments });
    }

    pub(super) fn handle_content(&mut self, asked: AskedIndex, digest: Option<[u8; 32]>) -> Result<(), ProtocolError> {
        let is_open = self.contents.contains(&asked) && self.contents_told.insert(asked);
        if !is_open {
            return Err(ProtocolError::violation(
                "the sender told the content of a file that nobody asked for, or twice",
            ));
        }
        self.actions.push_back(ReceiverAction::CompareContent { asked, digest });
        Ok(())
    }

    /// The answer to [`ReceiverAction::CompareContent`]; and without one, of each file of which
    /// [`Receiver::handle_compared`] was told [`Judgment::Chunked`], the digests of its [chunks](crate::wire::patch).
    pub fn handle_content_compared(&mut self, now: Instant, asked: AskedIndex, same: bool, chunks: Vec<u32>) {
        self.note_time(now);
        let is_open = self.contents.remove(&asked) && self.contents_told.remove(&asked);
        if is_open && !self.has_ended() {
            self.send(PeerMessage::ContentCompared { asked, same, chunks });
        }
    }

    pub(super) fn handle_delete(&mut self, failed: u64) -> Result<(), ProtocolError> {
        let open = !self.items.is_empty() || !self.waiting.is_empty() || self.bundles_to_commit > 0;
        if !self.options.tells_names || self.delete_told || open || self.is_comparing() {
            return Err(ProtocolError::violation("the sender says to delete before every item has ended, or twice"));
        }
        self.delete_told = true;
        self.actions.push_back(ReceiverAction::Delete { failed });
        Ok(())
    }

    /// [`ReceiverAction::Delete`] has been carried out: the sender may wait for that.
    pub fn handle_deleted(&mut self) {
        if self.options.deletes_first && !self.has_ended() {
            self.send(PeerMessage::Deleted);
        }
    }

    /// Asks the source whether it has by now what is about to be deleted, while [`ReceiverAction::Delete`] is carried
    /// out; one question after the other. [`Self::take_still_there`] gives the answer.
    pub fn ask_still_there(&mut self, paths: Vec<Vec<u8>>) {
        if self.has_ended() {
            return;
        }
        assert_eq!(self.doubts.open, None, "one question after the other");
        self.doubts.number += 1;
        self.doubts.open = Some(paths.len());
        self.send(PeerMessage::AskStillThere { number: BundleId(self.doubts.number), paths });
    }

    /// The answer, once it has come: of each path whether the source has something there, or may have.
    pub fn take_still_there(&mut self) -> Option<Vec<bool>> {
        self.doubts.answer.take()
    }

    pub(super) fn handle_still_there(&mut self, number: BundleId, there: Vec<bool>) -> Result<(), ProtocolError> {
        let is_answer = number.0 == self.doubts.number && self.doubts.open == Some(there.len());
        if !is_answer {
            return Err(ProtocolError::violation(format!(
                "the sender answered question {number} about what it has, which was not asked so"
            )));
        }
        self.doubts.open = None;
        self.doubts.answer = Some(there);
        Ok(())
    }
}
