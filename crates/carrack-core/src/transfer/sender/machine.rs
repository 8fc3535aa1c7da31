//! A sender keeps the contract of machines.

use std::time::Instant;

use super::ends::bytes_of;
use super::{Sender, SenderAction, SenderPhase};
use crate::failure::{Failure, Side};
use crate::transfer::Unit;
use crate::transfer::machine::Machine;
use crate::wire::ProtocolError;
use crate::wire::peer::PeerMessage;

impl Machine for Sender {
    type Action = SenderAction;

    const SIDE: Side = Side::Source;

    /// The receiver says something.
    ///
    /// # Errors
    /// When no receiver may say that now.
    fn handle_message(&mut self, now: Instant, message: PeerMessage) -> Result<(), ProtocolError> {
        if self.has_ended() {
            return Ok(());
        }
        match message {
            PeerMessage::Answer { item, answer } => self.handle_answer(item, answer)?,
            PeerMessage::Landed { blocks, bundles } => {
                for (item, offset) in blocks {
                    self.handle_landed(now, item, offset)?;
                }
                for bundle in bundles {
                    self.check_known(bundle.0)?;
                    self.streams.landed(now, Unit::Bundle(bundle));
                }
            }
            PeerMessage::SendAgain { item, offset } => self.handle_send_again(item, offset)?,
            PeerMessage::Done { item, result } => self.handle_done(item, result)?,
            PeerMessage::BundleDone { bundle, exceptions } => {
                self.bundles.record_done(bundle, exceptions)?;
                self.streams.landed(now, Unit::Bundle(bundle));
                self.settle_bundle(bundle);
            }
            PeerMessage::Finished { durable } => self.handle_finished(durable)?,
            PeerMessage::DirectoriesFailed(failures) => self.handle_directories_failed(failures)?,
            PeerMessage::Fail(failure) => self.phase = SenderPhase::Failed(failure),
            PeerMessage::Held { item, first, digests, taken_over, chunks } => {
                self.handle_held(item, first, &digests, taken_over, &chunks)?;
            }
            PeerMessage::Known { bundle, items } => self.handle_known(bundle, items)?,
            PeerMessage::ContentCompared { asked, same, chunks } => {
                self.handle_content_compared(now, asked, same, chunks)?;
            }
            PeerMessage::Deleted => self.handle_deleted()?,
            PeerMessage::AskStillThere { number, paths } => self.handle_ask_still_there(number, paths)?,
            PeerMessage::Compared { number, judgments } => self.handle_compared(now, number, &judgments)?,
            PeerMessage::Offer(_)
            | PeerMessage::Confirm { .. }
            | PeerMessage::Query { .. }
            | PeerMessage::Compare { .. }
            | PeerMessage::Content { .. }
            | PeerMessage::Delete { .. }
            | PeerMessage::StillThere { .. }
            | PeerMessage::Complete { .. }
            | PeerMessage::Abandon { .. }
            | PeerMessage::Directories(_)
            | PeerMessage::StreamLost { .. }
            | PeerMessage::Finish
            | PeerMessage::FinishContents(_)
            | PeerMessage::FinishOncePublished { .. } => {
                return Err(ProtocolError::violation("the receiver sent what only a sender sends"));
            }
        }
        self.advance(now);
        Ok(())
    }

    /// What else is late, a stream finds when it asks.
    fn handle_time(&mut self, now: Instant) {
        if !self.has_ended() && self.comparing.due().is_some_and(|due| due <= now) {
            self.close_question();
        }
    }

    /// Ends the transfer for a reason of this side, and tells the receiver.
    fn fail(&mut self, failure: Failure) {
        if self.outcome().is_some() {
            return;
        }
        if !self.has_ended() {
            self.actions.push_back(SenderAction::Send(PeerMessage::Fail(failure.clone())));
        }
        self.phase = SenderPhase::Failed(failure);
    }

    /// What has to be done outside; `None` when nothing. Held blocks are confirmed when there is nothing more urgent,
    /// so that one message tells of many.
    fn poll_action(&mut self) -> Option<SenderAction> {
        let action = self.actions.pop_front();
        if let Some(SenderAction::Report(report)) = &action {
            self.report_bytes -= bytes_of(report);
        }
        action.or_else(|| {
            let (item, first, count) = self.confirms.pop_front().filter(|_| !self.has_ended())?;
            Some(SenderAction::Send(PeerMessage::Confirm { item, first, count }))
        })
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.comparing.due().filter(|_| !self.has_ended())
    }

    /// Whether everything has ended, and how.
    fn outcome(&self) -> Option<Result<(), Failure>> {
        match &self.phase {
            SenderPhase::Finished => Some(Ok(())),
            SenderPhase::Failed(failure) => Some(Err(failure.clone())),
            _ => None,
        }
    }
}
