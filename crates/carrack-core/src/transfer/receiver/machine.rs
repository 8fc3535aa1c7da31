//! A receiver keeps the contract of machines.

use std::time::Instant;

use super::{Receiver, ReceiverAction, ReceiverPhase};
use crate::failure::{Failure, Side};
use crate::transfer::machine::Machine;
use crate::wire::ProtocolError;
use crate::wire::peer::PeerMessage;

impl Machine for Receiver {
    type Action = ReceiverAction;

    const SIDE: Side = Side::Destination;

    /// The sender says something.
    ///
    /// # Errors
    /// When no sender may say that now.
    fn handle_message(&mut self, now: Instant, message: PeerMessage) -> Result<(), ProtocolError> {
        self.note_time(now);
        if self.has_ended() {
            return Ok(());
        }
        if self.actions.len() - self.held_waiting >= Self::ACTIONS_WAITING {
            return Err(ProtocolError::violation("the sender goes on and does not take the answers"));
        }
        match message {
            PeerMessage::Fail(failure) => self.phase = ReceiverPhase::Failed(failure),
            // It does not know yet that its last word counts: of what has been published it may lose a stream, or find
            // that it cannot read it again.
            PeerMessage::StreamLost { stream } if self.finishes_once_published => self.handle_stream_lost(stream),
            PeerMessage::Abandon { item } if self.finishes_once_published => self.handle_abandon(item)?,
            // Deletion goes on after its last word.
            PeerMessage::StillThere { number, there } => self.handle_still_there(number, there)?,
            _ if self.phase != ReceiverPhase::Receiving => {
                return Err(ProtocolError::violation("the sender went on after its last word"));
            }
            PeerMessage::Offer(offer) => self.handle_offer(offer)?,
            PeerMessage::Complete { item, size, digest, modified } => {
                self.handle_complete(item, (size, digest), modified)?
            }
            PeerMessage::Abandon { item } => self.handle_abandon(item)?,
            PeerMessage::StreamLost { stream } => self.handle_stream_lost(stream),
            PeerMessage::Directories(list) => {
                self.directories_pending += 1;
                self.actions.push_back(ReceiverAction::ApplyDirectories(list));
            }
            PeerMessage::Finish => self.handle_finish()?,
            PeerMessage::FinishOncePublished { ended_otherwise } => self.handle_finish_once_published(ended_otherwise),
            PeerMessage::FinishContents(contents) => {
                self.handle_finish()?;
                self.directories_pending += 1;
                self.actions.push_back(ReceiverAction::ApplyDirectories(vec![contents]));
            }
            PeerMessage::Confirm { item, first, count } => self.handle_confirm(item, first, count)?,
            PeerMessage::Query { bundle, items } => self.handle_query(bundle, items)?,
            PeerMessage::Compare { number, question } => self.handle_compare(number, question)?,
            PeerMessage::Content { asked, digest } => self.handle_content(asked, digest)?,
            PeerMessage::Delete { failed } => self.handle_delete(failed)?,
            PeerMessage::Answer { .. }
            | PeerMessage::Held { .. }
            | PeerMessage::Known { .. }
            | PeerMessage::Compared { .. }
            | PeerMessage::ContentCompared { .. }
            | PeerMessage::Deleted
            | PeerMessage::AskStillThere { .. }
            | PeerMessage::Landed { .. }
            | PeerMessage::SendAgain { .. }
            | PeerMessage::Done { .. }
            | PeerMessage::BundleDone { .. }
            | PeerMessage::DirectoriesFailed(_)
            | PeerMessage::Finished { .. } => {
                return Err(ProtocolError::violation("the sender sent what only a receiver sends"));
            }
        }
        self.advance();
        Ok(())
    }

    /// It is `now`. To be said before `poll_action`, and when [`Self::next_deadline`] has come.
    fn handle_time(&mut self, now: Instant) {
        self.note_time(now);
        match self.next_checkpoint() {
            Some(at) if at <= now => self.checkpoint_all(),
            None if self.unsaved_bytes > 0 => self.checkpoint_at = Some(now + self.tuning.marker_interval),
            _ => {}
        }
    }

    /// Ends the transfer for a reason of this side, and tells the sender.
    fn fail(&mut self, failure: Failure) {
        if !self.has_ended() {
            self.send(PeerMessage::Fail(failure.clone()));
            self.phase = ReceiverPhase::Failed(failure);
        }
    }

    /// What has to be done outside; `None` when nothing. What has landed is told when there is nothing more urgent, so
    /// that one message tells of many.
    fn poll_action(&mut self) -> Option<ReceiverAction> {
        if let Some(action) = self.actions.pop_front() {
            self.held_waiting -= usize::from(matches!(action, ReceiverAction::Send(PeerMessage::Held { .. })));
            return Some(action);
        }
        if self.has_ended() || self.now < self.landed_due() {
            return None;
        }
        self.landed().map(ReceiverAction::Send)
    }

    /// When [`Self::handle_time`] is to be called, though nothing has happened.
    fn next_deadline(&self) -> Option<Instant> {
        [self.next_checkpoint(), self.landed_due()].into_iter().flatten().min()
    }

    /// Whether everything has ended, and how.
    fn outcome(&self) -> Option<Result<(), Failure>> {
        match &self.phase {
            ReceiverPhase::Finished => Some(Ok(())),
            ReceiverPhase::Failed(failure) => Some(Err(failure.clone())),
            _ => None,
        }
    }
}
