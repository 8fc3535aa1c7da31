//! What both ends say, in order of arrival: bounded in memory, and waited for under a deadline.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use carrack_core::limits;
use carrack_core::report::{ErrorCode, Failure, ItemReport, Outcome, Side};
use carrack_core::wire::control::Tell;

use super::backlog::Permit;
use crate::error::failure;
use crate::stop::Until;

/// For a person to read.
pub type Note = Arc<dyn Fn(String) + Send + Sync>;

/// Which end something came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndId {
    /// Where the bytes come from.
    Source,
    /// The end that receives.
    Destination,
}

impl EndId {
    /// The side that a user sees.
    pub fn side(self) -> Side {
        match self {
            Self::Source => Side::Source,
            Self::Destination => Side::Destination,
        }
    }
}

/// How waiting has ended.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, for a moment, on the stack")]
pub enum Waited {
    /// With what was waited for.
    Word(Incoming),
    /// With the deadline, before anything of the kind was said.
    Deadline,
}

/// Something that an end said.
pub struct Incoming {
    /// The end that said it.
    pub end: EndId,
    /// The request that it answers; 0 for none.
    pub request: u64,
    /// What; an error when the connection has ended.
    pub tell: Result<Tell, Failure>,
}

/// What both ends say, in order of arrival.
pub struct Inbox {
    receiver: mpsc::Receiver<(Incoming, Option<Permit>)>,
    sender: InboxSender,
    /// With the bytes that each takes.
    kept: VecDeque<(Incoming, usize)>,
    kept_bytes: usize,
}

/// Where the threads that read connections put what they read.
#[derive(Clone)]
pub struct InboxSender {
    pub(super) sender: mpsc::Sender<(Incoming, Option<Permit>)>,
    /// Ends every wait.
    pub(super) until: Until,
}

impl InboxSender {
    /// Puts in what is not counted, as one's own words.
    ///
    /// # Errors
    /// When nobody listens any more.
    pub fn send(&self, incoming: Incoming) -> io::Result<()> {
        self.sender.send((incoming, None)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// What something that an end said takes in memory, roughly.
pub(super) fn weight(tell: &Tell, encoded: usize) -> usize {
    // A failure's parts are boxes of their own, however few bytes they were on the wire.
    let held = |failure: &Option<Failure>| failure.as_ref().map_or(0, Failure::held_bytes);
    let of_item = |item: &ItemReport| match &item.outcome {
        Outcome::Failed(failure) => failure.held_bytes(),
        _ => 0,
    };
    let entries = match tell {
        Tell::Items(items) | Tell::Sums(items) => size_of_val(&items[..]) + items.iter().map(of_item).sum::<usize>(),
        Tell::Page(all) => size_of_val(&all[..]) + all.iter().map(|entry| held(&entry.failure)).sum::<usize>(),
        Tell::Changes(changes) => size_of_val(&changes[..]),
        Tell::InFlight(list) => size_of_val(&list[..]),
        Tell::Sample(sample) => sample.memory_bytes(),
        Tell::Evidence(all) => size_of_val(&all[..]),
        Tell::Inspected(all) => size_of_val(&all[..]) + all.iter().map(|facts| held(&facts.failure)).sum::<usize>(),
        _ => 0,
    };
    encoded + entries + size_of::<Incoming>()
}

impl Default for Inbox {
    fn default() -> Self {
        Self::until(Until::default())
    }
}

impl Inbox {
    /// Nothing is waited for any longer than this.
    pub fn until(until: Until) -> Self {
        let (sender, receiver) = mpsc::channel();
        Self { receiver, sender: InboxSender { sender, until }, kept: VecDeque::new(), kept_bytes: 0 }
    }

    /// Whether nothing is to be waited for any more: the command is told to stop, or its time is over.
    ///
    /// # Errors
    /// Why not: an interruption, or the deadline.
    pub fn check(&self) -> Result<(), Failure> {
        self.sender.until.check()
    }

    /// For another end to put its words into.
    pub fn share(&self) -> InboxSender {
        self.sender.clone()
    }

    /// Waits for something that `wanted` takes, which has to come before the deadline; the rest is kept for later.
    ///
    /// # Errors
    /// Those of [`wait_until`](Self::wait_until), and when the deadline passes ([`ErrorCode::Silence`]).
    pub fn wait(
        &mut self,
        deadline: Option<Instant>,
        note: &Note,
        wanted: &dyn Fn(&Incoming) -> bool,
    ) -> Result<Incoming, Failure> {
        match self.wait_until(deadline, note, wanted)? {
            Waited::Word(incoming) => Ok(incoming),
            Waited::Deadline => Err(failure(ErrorCode::Silence, Side::Link, "no answer in time")),
        }
    }

    /// Waits for something that `wanted` takes, or until the deadline; the rest is kept for later.
    ///
    /// # Errors
    /// When a connection ends, the command is told to stop or its time is over.
    pub fn wait_until(
        &mut self,
        deadline: Option<Instant>,
        note: &Note,
        wanted: &dyn Fn(&Incoming) -> bool,
    ) -> Result<Waited, Failure> {
        if let Some(index) = self.kept.iter().position(|(kept, _)| wanted(kept))
            && let Some(kept) = self.take_kept(index)
        {
            return Ok(Waited::Word(kept));
        }
        let is_end = self.kept.iter().position(|(kept, _)| kept.tell.is_err());
        if let Some(Incoming { end, tell: Err(lost), .. }) = is_end.and_then(|index| self.take_kept(index)) {
            return Err(self.said_before(end, lost));
        }
        // What was told before the deadline is taken behind it, and no more than that: who goes on telling
        // other things does not move it.
        let mut late = 0;
        loop {
            self.check()?;
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                late += 1;
            }
            if late > limits::WORDS_KEPT {
                return Ok(Waited::Deadline);
            }
            let left = deadline
                .map_or(Duration::from_millis(100), |deadline| deadline.saturating_duration_since(Instant::now()));
            match self.receiver.recv_timeout(left.min(Duration::from_millis(100))) {
                Ok((incoming, permit)) => match incoming {
                    Incoming { tell: Ok(Tell::Note(text)), .. } => note(text),
                    Incoming { tell: Err(lost), end, .. } => return Err(self.said_before(end, lost)),
                    incoming if wanted(&incoming) => return Ok(Waited::Word(incoming)),
                    incoming if self.makes_room_for(&incoming, permit.as_ref().map_or(0, Permit::bytes)) => {
                        let bytes = permit.map_or(0, |permit| permit.bytes());
                        self.kept_bytes += bytes;
                        self.kept.push_back((incoming, bytes));
                    }
                    incoming => {
                        let what = format!("the {} sends answers that nobody asked for", incoming.end.side());
                        return Err(failure(ErrorCode::ProtocolViolation, Side::Link, what));
                    }
                },
                Err(RecvTimeoutError::Timeout) if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                    return Ok(Waited::Deadline);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(failure(ErrorCode::Internal, Side::Command, "nobody is left to answer"));
                }
            }
        }
    }
}

impl Inbox {
    /// Which end has ended its session, and why. Whoever does closes the connection after these words, and that may be
    /// noticed before they are taken: by a question that cannot be sent, or at the other end.
    pub fn last_words(&mut self) -> Option<(EndId, Failure)> {
        self.kept_bytes = 0;
        let kept = self.kept.drain(..).map(|(kept, _)| kept);
        kept.chain(self.receiver.try_iter().map(|(said, _)| said)).find_map(|said| reason_of(&said))
    }

    /// Why a question could not be sent to an end whose connection was lost: the end's own reason, where it has said
    /// one.
    pub fn reason(&mut self, end: EndId, lost: Failure) -> Failure {
        for (said, permit) in self.receiver.try_iter() {
            let bytes = permit.map_or(0, |permit| permit.bytes());
            self.kept_bytes += bytes;
            self.kept.push_back((said, bytes));
        }
        self.said_before(end, lost)
    }

    /// What an end said before its connection was lost, if that was why; else that it was lost. The reason stays to be
    /// found by [`Inbox::last_words`]: only whoever knows the end can tell what its refusal means for the user.
    fn said_before(&self, end: EndId, lost: Failure) -> Failure {
        let said = self.kept.iter().filter(|(said, _)| said.end == end && lost.code.may_pass());
        let Some((_, why)) = said.filter_map(|(said, _)| reason_of(said)).next() else { return lost };
        // At the end that was lost.
        match lost.at.and_then(|at| at.end) {
            Some(end) => why.at_end(end),
            None => why,
        }
    }

    /// Whether something may be kept. How an end stands is told several times a second, asked or not:
    /// of that the newest counts.
    fn makes_room_for(&mut self, incoming: &Incoming, bytes: usize) -> bool {
        let status = |word: &Incoming| match word.tell {
            Ok(Tell::Progress(_)) => Some((word.end, "progress")),
            Ok(Tell::InFlight(_)) => Some((word.end, "in flight")),
            Ok(Tell::Stages(_)) => Some((word.end, "stages")),
            Ok(Tell::Sample(_)) => Some((word.end, "sample")),
            _ => None,
        };
        let same = |word: &Incoming| word.request == incoming.request && status(word) == status(incoming);
        if status(incoming).is_some()
            && let Some(index) = self.kept.iter().position(|(kept, _)| same(kept))
        {
            self.take_kept(index);
        }
        self.kept.len() < limits::WORDS_KEPT && self.kept_bytes + bytes <= limits::WORDS_KEPT_BYTES
    }

    fn take_kept(&mut self, index: usize) -> Option<Incoming> {
        let (kept, bytes) = self.kept.remove(index)?;
        self.kept_bytes -= bytes;
        Some(kept)
    }
}

/// The greeting is each end's first question, and a reason that answers no question ends everything.
fn reason_of(said: &Incoming) -> Option<(EndId, Failure)> {
    match &said.tell {
        Ok(Tell::Failed(why)) if said.request <= 1 => Some((said.end, why.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use carrack_core::pace::limit::StageTimes;
    use carrack_core::report::Progress;
    use carrack_core::wire::control::{Dialed, Stages, StreamLost};

    use super::super::backlog::Backlog;

    use super::*;

    fn word(end: EndId, request: u64, tell: Tell) -> Incoming {
        Incoming { end, request, tell: Ok(tell) }
    }

    fn busy(nanos: u64) -> Stages {
        let times = StageTimes { busy: Duration::from_nanos(nanos), ..StageTimes::default() };
        Stages { times, ..Stages::default() }
    }

    fn quiet() -> Note {
        Arc::new(|_| {})
    }

    /// Over a slow path much time may pass until somebody listens, and ends tell several times a second how they stand.
    #[test]
    fn inbox_is_not_filled_by_how_ends_stand() {
        let mut inbox = Inbox::default();
        let words = inbox.share();
        for count in 0..1000 {
            for end in [EndId::Source, EndId::Destination] {
                let progress = Progress { files_done: count, ..Progress::default() };
                words.send(word(end, 0, Tell::Progress(progress))).unwrap();
                words.send(word(end, 0, Tell::Stages(busy(count)))).unwrap();
            }
        }
        words.send(word(EndId::Source, 7, Tell::Done(0))).unwrap();
        assert!(inbox.wait(None, &quiet(), &|word| word.request == 7).is_ok());
        for _ in 0..4 {
            let kept = inbox.wait(None, &quiet(), &|_| true).unwrap().tell;
            let newest = match kept {
                Ok(Tell::Progress(progress)) => progress.files_done == 999,
                Ok(Tell::Stages(stages)) => stages == busy(999),
                _ => false,
            };
            assert!(newest);
        }
        assert!(inbox.kept.is_empty());
    }

    /// An end that never stops telling how it stands must not keep another question's deadline from passing.
    #[test]
    fn inbox_that_is_flooded_does_not_move_a_deadline() {
        let mut inbox = Inbox::default();
        for _ in 0..1000 {
            inbox.share().send(word(EndId::Source, 0, Tell::Stages(Stages::default()))).unwrap();
        }
        let why = inbox.wait(Some(Instant::now()), &quiet(), &|word| word.request == 7).err();
        assert_eq!(why.map(|failure| failure.code), Some(ErrorCode::Silence));
        assert!(inbox.receiver.try_iter().count() > 900, "it was listened to until it had said all");
        // What was said in time is still heard.
        inbox.share().send(word(EndId::Source, 0, Tell::Stages(Stages::default()))).unwrap();
        inbox.share().send(word(EndId::Source, 7, Tell::Done(0))).unwrap();
        assert!(inbox.wait(Some(Instant::now()), &quiet(), &|word| word.request == 7).is_ok());
    }

    fn refused(end: EndId, request: u64) -> Incoming {
        word(end, request, Tell::Failed(failure(ErrorCode::AuthenticationFailed, Side::Link, "no token")))
    }

    fn closed(end: EndId) -> Incoming {
        let why = failure(ErrorCode::ConnectionLost, Side::Link, "it was closed").at_end("a host");
        Incoming { end, request: 0, tell: Err(why) }
    }

    #[test]
    fn inbox_finds_a_reason_behind_what_came_of_it() {
        // The other end was waited for, and its connection heard of first.
        for request in [0, 1] {
            let mut inbox = Inbox::default();
            inbox.share().send(refused(EndId::Destination, request)).unwrap();
            inbox.share().send(closed(EndId::Source)).unwrap();
            assert!(inbox.wait(None, &quiet(), &|_| false).is_err());
            let (end, why) = inbox.last_words().unwrap();
            assert_eq!((end, why.code), (EndId::Destination, ErrorCode::AuthenticationFailed));
        }
        // Nothing could be sent any more, and its words have not been taken.
        let mut inbox = Inbox::default();
        inbox.share().send(refused(EndId::Source, 2)).unwrap();
        inbox.share().send(closed(EndId::Source)).unwrap();
        inbox.share().send(refused(EndId::Destination, 0)).unwrap();
        inbox.share().send(closed(EndId::Destination)).unwrap();
        assert_eq!(inbox.last_words().map(|(end, _)| end), Some(EndId::Destination));
        assert!(inbox.last_words().is_none());
    }

    /// Whoever waits for an answer, or has a question that cannot be sent, is told why the end has gone.
    #[test]
    fn inbox_tells_the_reason_in_place_of_the_end_of_the_connection() {
        let lost = || failure(ErrorCode::ConnectionLost, Side::Link, "it takes nothing").at_end("a host");
        for asked in [false, true] {
            let mut inbox = Inbox::default();
            inbox.share().send(refused(EndId::Source, 0)).unwrap();
            inbox.share().send(closed(EndId::Source)).unwrap();
            let why = match asked {
                true => inbox.reason(EndId::Source, lost()),
                false => inbox.wait(None, &quiet(), &|word| word.request == 7).err().unwrap(),
            };
            assert_eq!(why.code, ErrorCode::AuthenticationFailed);
            assert_eq!(why.at.and_then(|at| at.end).as_deref(), Some("a host"));
            // It stays for whoever knows what it means for the user.
            assert_eq!(inbox.last_words().map(|(end, _)| end), Some(EndId::Source));
        }
        // What another end said is no reason for this one, and stays to be heard.
        let mut inbox = Inbox::default();
        inbox.share().send(refused(EndId::Destination, 0)).unwrap();
        inbox.share().send(closed(EndId::Destination)).unwrap();
        inbox.share().send(word(EndId::Source, 7, Tell::Done(0))).unwrap();
        assert_eq!(inbox.reason(EndId::Source, lost()).code, ErrorCode::ConnectionLost);
        assert!(inbox.wait(None, &quiet(), &|word| word.request == 7).is_ok());
        let why = inbox.wait(None, &quiet(), &|word| word.request == 8).err();
        assert_eq!(why.map(|why| why.code), Some(ErrorCode::AuthenticationFailed));
        // A peer that broke the protocol is not excused by what it said.
        inbox.share().send(refused(EndId::Source, 0)).unwrap();
        let broken = failure(ErrorCode::ProtocolViolation, Side::Link, "noise");
        assert_eq!(inbox.reason(EndId::Source, broken).code, ErrorCode::ProtocolViolation);
    }

    /// A few words can be as large as many.
    #[test]
    fn inbox_keeps_what_nobody_asked_for_within_bounds_of_bytes() {
        const BYTES: usize = limits::WORDS_KEPT_BYTES / 4;
        let mut inbox = Inbox::default();
        let words = inbox.share();
        let put = || {
            let permit = Arc::new(Backlog::default()).hold(BYTES);
            words.sender.send((word(EndId::Source, 0, Tell::Items(Vec::new())), Some(permit))).unwrap();
        };
        (0..4).for_each(|_| put());
        let why = inbox.wait(Some(Instant::now()), &quiet(), &|word| word.request == 7).err();
        assert_eq!(why.map(|failure| failure.code), Some(ErrorCode::Silence));
        // What is taken makes room again.
        inbox.wait(None, &quiet(), &|_| true).unwrap();
        (0..2).for_each(|_| put());
        let refused = inbox.wait(None, &quiet(), &|word| word.request == 7).err().map(|failure| failure.code);
        assert_eq!((refused, inbox.kept.len()), (Some(ErrorCode::ProtocolViolation), 4));
    }

    /// All connections of a far path may be made while something else is waited for.
    #[test]
    fn inbox_keeps_the_answers_to_all_dials_beside_what_ends_tell() {
        const FIRST: u64 = 10;
        let mut inbox = Inbox::default();
        let words = inbox.share();
        words.send(word(EndId::Source, FIRST, Tell::Connected(Duration::from_millis(20)))).unwrap();
        for dial in 0..limits::OWN_DIALS as u64 {
            words.send(word(EndId::Source, FIRST + dial, Tell::Dialed(Dialed::default()))).unwrap();
        }
        for end in [EndId::Source, EndId::Destination] {
            words.send(word(end, 0, Tell::Stages(busy(1)))).unwrap();
            words.send(word(end, 0, Tell::StreamLost(StreamLost::default()))).unwrap();
        }
        words.send(word(EndId::Destination, 7, Tell::Done(0))).unwrap();
        assert!(inbox.wait(None, &quiet(), &|word| word.request == 7).is_ok());
        for dial in 0..limits::OWN_DIALS as u64 {
            let dialed = |word: &Incoming| word.request == FIRST + dial && matches!(word.tell, Ok(Tell::Dialed(_)));
            assert!(inbox.wait(Some(Instant::now()), &quiet(), &dialed).is_ok(), "dial {dial}");
        }
    }

    #[test]
    fn inbox_keeps_what_nobody_asked_for_within_bounds() {
        let mut inbox = Inbox::default();
        let words = inbox.share();
        for _ in 0..=limits::WORDS_KEPT {
            words.send(word(EndId::Source, 0, Tell::Items(Vec::new()))).unwrap();
        }
        let refused = inbox.wait(None, &quiet(), &|word| word.request == 7).err().map(|failure| failure.code);
        assert_eq!(refused, Some(ErrorCode::ProtocolViolation));
    }
}
