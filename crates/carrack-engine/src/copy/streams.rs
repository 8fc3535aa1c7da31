//! Data connections while a transfer runs: those beyond the first are asked for, what is lost is made anew, and when
//! fewer are wanted the sender is asked to end some in good order. There are never to be more than are wanted: what
//! ends, or is lost while it ends, is not made anew. Those that were asked to end are parked for a
//! while, and where more are wanted then, parked ones go on before others are dialled.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::ids::StreamId;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::tuning::Tuning;
use carrack_core::wire::control::{Ask, Dial, SessionKey, StreamLost, Tell};

use super::attempts::{jittered, longest_pause};
use super::connect::{Link, MoreConnections};
use super::ends::Ends;
use super::here::connect_here;
use crate::end::{EndId, Incoming, Note};
use crate::error::failure;

/// While there is no connection at all, pauses are at most so long: the session is given up before long.
const PAUSE_WITHOUT_ANY: Duration = Duration::from_secs(5);
/// Where a path seems to lose large packets: what goes through every tunnel in use, then what every path must carry.
const SEGMENTS: [u32; 2] = [1200, 536];

/// The data connections of a session.
pub struct Streams {
    /// Who makes more of them, and where to; `None` where no more can be made.
    more: Option<MoreConnections>,
    /// Both ends are here: the numbers of further connections.
    here: Option<RangeInclusive<u16>>,
    key: SessionKey,
    wanted: u16,
    alive: u16,
    /// Of those alive, the ones that have been asked to end.
    retiring: u16,
    /// The question that asked for it, and how many it asked for.
    asked_to_end: Option<(u64, u16)>,
    /// Of those retiring, so many may go on when they are asked to.
    parked: u16,
    /// The question that asked for that, and how many it asked.
    asked_to_wake: Option<(u64, u16)>,
    missing: u16,
    dials: Vec<u64>,
    /// Dials of the way that was not chosen: what comes of them carries as much as any.
    late: Vec<(EndId, u64)>,
    /// Dials that have failed since the last that worked.
    failed_dials: u32,
    /// Connections lost since something last landed.
    lost_in_vain: u32,
    /// What had landed when that was last told.
    landed: (u64, u64),
    /// When the next may be dialled.
    due: Instant,
    /// Since when there has been none.
    none_since: Option<Instant>,
    last: Option<Failure>,
    /// That the host of an end had no thread for one: without any, that is why.
    limited: Option<Failure>,
    /// How many of [`SEGMENTS`] have been tried.
    shrunk: usize,
    /// Connections of the segment size in use that got stuck.
    stuck: u32,
    /// That it was reduced has not been told: only a handshake that goes through shows that the path is there.
    untold: bool,
    tuning: Arc<Tuning>,
}

impl Streams {
    /// Those of a link of which the first has been made (within one process: all).
    pub fn new(link: Link, tuning: Arc<Tuning>, now: Instant) -> Self {
        let wanted = link.report.streams;
        let under_way = u16::try_from(link.dials.len()).unwrap_or(u16::MAX);
        let others = if link.more.is_some() { wanted.saturating_sub(1) } else { 0 };
        Self {
            more: link.more,
            here: link.here,
            key: link.key,
            wanted,
            alive: wanted - others,
            retiring: 0,
            asked_to_end: None,
            parked: 0,
            asked_to_wake: None,
            missing: others.saturating_sub(under_way),
            dials: link.dials,
            late: link.late,
            failed_dials: 0,
            lost_in_vain: 0,
            landed: (0, 0),
            due: now,
            none_since: None,
            last: None,
            limited: None,
            shrunk: 0,
            stuck: 0,
            untold: false,
            tuning,
        }
    }

    /// Connections that carry something.
    pub fn alive(&self) -> u16 {
        self.staying()
    }

    /// Sets the number of streams that is wanted from now on.
    pub fn want(&mut self, streams: u16) {
        self.wanted = streams.max(1);
        self.missing = self.wanted.saturating_sub(self.to_be());
    }

    /// Those that stay, and those that are under way.
    fn to_be(&self) -> u16 {
        let waking = self.asked_to_wake.map_or(0, |(_, count)| count);
        self.staying() + waking + self.dials.len() as u16
    }

    /// Those that are there and have not been asked to end.
    fn staying(&self) -> u16 {
        self.alive.saturating_sub(self.retiring)
    }

    /// When [`Streams::work`] next has something to do.
    pub fn due(&self) -> Option<Instant> {
        let room = self.here.is_some() || self.more.as_ref().is_some_and(|more| self.dials.len() < more.at_once);
        let dial = (self.missing > 0 && room).then_some(self.due);
        [dial, self.given_up_at()].into_iter().flatten().min()
    }

    /// When the session is given up, if no connection comes. Where none can be dialled, the end that cut the last one
    /// off still has to say why.
    fn given_up_at(&self) -> Option<Instant> {
        let patience = if self.more.is_some() { self.tuning.silence } else { self.tuning.other_end_patience };
        self.none_since.map(|since| since + patience)
    }

    /// Asks for what is missing, if it is time to.
    ///
    /// # Errors
    /// When nothing is left and nothing can be made: the session has to be given up.
    pub fn work(&mut self, ends: &mut Ends, now: Instant) -> Result<(), Failure> {
        if self.given_up_at().is_some_and(|at| now >= at) {
            return Err(self.given_up("no data connection is left, and none can be made"));
        }
        if self.lost_in_vain > 4 * u32::from(self.wanted) + 16 {
            return Err(self.given_up("data connections are lost before anything gets through"));
        }
        self.wake_parked(ends)?;
        self.add_here(ends)?;
        while self.missing > 0 && now >= self.due {
            let Some(more) = self.more.as_mut().filter(|more| self.dials.len() < more.at_once) else { return Ok(()) };
            let Some(first) = more.numbers.next() else {
                return Err(self.given_up("too many data connections have been lost"));
            };
            let dial = Dial {
                session: self.key.clone(),
                addresses: more.addresses.clone(),
                pin: more.pin,
                first: StreamId(first),
                count: 1,
                timeout: self.tuning.link_timeout,
                tell_connected: false,
                segment: self.shrunk.checked_sub(1).map_or(0, |index| SEGMENTS[index]),
            };
            let request = ends.get(more.dialer).ask(Ask::Dial(dial))?;
            self.dials.push(request);
            self.missing -= 1;
        }
        self.end_surplus(ends)
    }

    /// Makes what is missing between two ends that are here.
    fn add_here(&mut self, ends: &Ends) -> Result<(), Failure> {
        let Some(numbers) = &mut self.here else { return Ok(()) };
        while self.missing > 0 {
            let Some(number) = numbers.next() else { return Ok(()) };
            if let Err(why) = connect_here(ends, number) {
                // Those that are there are as many as the system can carry.
                self.last = Some(why);
                self.want(self.staying());
                return Ok(());
            }
            self.missing -= 1;
            self.alive += 1;
            self.none_since = None;
        }
        Ok(())
    }

    /// Has parked streams go on in the place of those that are missing.
    fn wake_parked(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        if let Some(count) = self.can_wake() {
            let request = ends.source.ask(Ask::Wake(count.into()))?;
            self.ask_to_wake(request, count);
        }
        Ok(())
    }

    fn can_wake(&self) -> Option<u16> {
        let idle = self.asked_to_wake.is_none() && self.asked_to_end.is_none();
        Some(self.missing.min(self.parked)).filter(|&count| idle && count > 0)
    }

    /// So many have been asked to go on, by this request.
    fn ask_to_wake(&mut self, request: u64, count: u16) {
        self.asked_to_wake = Some((request, count));
        self.missing -= count;
    }

    /// Takes the answer: some may have ended meanwhile. Then nothing is known to be parked any more, and what is
    /// missing is dialled.
    fn handle_wake_answer(&mut self, asked: u16, answer: Result<Tell, Failure>) {
        let woken = match answer {
            Ok(Tell::Done(count)) => u16::try_from(count).unwrap_or(asked).min(asked),
            _ => 0,
        };
        self.asked_to_wake = None;
        self.retiring = self.retiring.saturating_sub(woken);
        self.parked = if woken < asked { 0 } else { self.parked.saturating_sub(woken) };
        self.want(self.wanted);
    }

    /// Has the sender end what is there and not wanted. Dials that are under way are not waited for: what they
    /// bring is seen when it comes.
    fn end_surplus(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        let count = self.staying().saturating_sub(self.wanted);
        if count == 0 || self.asked_to_end.is_some() || self.asked_to_wake.is_some() {
            return Ok(());
        }
        let request = ends.source.ask(Ask::Retire(count.into()))?;
        self.ask_to_end(request, count);
        Ok(())
    }

    /// So many have been asked to end, by this request. Counted at once: some may have ended before the answer comes.
    fn ask_to_end(&mut self, request: u64, count: u16) {
        self.asked_to_end = Some((request, count));
        self.retiring += count;
    }

    /// Takes the answer to the question for some to end: it may be fewer that do.
    fn handle_end_answer(&mut self, asked: u16, answer: Result<Tell, Failure>) {
        let ending = match answer {
            Ok(Tell::Done(count)) => u16::try_from(count).unwrap_or(asked).min(asked),
            _ => 0,
        };
        self.asked_to_end = None;
        self.retiring = self.retiring.saturating_sub(asked - ending);
        self.parked = (self.parked + ending).min(self.retiring);
        // What does not end stays, and is not asked again and again.
        self.wanted = self.wanted.max(self.staying());
    }

    fn given_up(&self, what: &str) -> Failure {
        if let Some(limited) = &self.limited {
            return limited.clone();
        }
        let given_up = failure(ErrorCode::ConnectionLost, Side::Link, what);
        Failure { source: self.last.clone().map(Box::new), ..given_up }
    }

    /// Takes the answer to a dial, or to the question for some to end or to go on.
    pub fn handle_answer(&mut self, incoming: Incoming, note: &Note, now: Instant) {
        if let Some((request, count)) = self.asked_to_end
            && (incoming.end, incoming.request) == (EndId::Source, request)
        {
            return self.handle_end_answer(count, incoming.tell);
        }
        if let Some((request, count)) = self.asked_to_wake
            && (incoming.end, incoming.request) == (EndId::Source, request)
        {
            return self.handle_wake_answer(count, incoming.tell);
        }
        if let Some(index) = self.late.iter().position(|late| *late == (incoming.end, incoming.request)) {
            if matches!(incoming.tell, Ok(Tell::Connected(_))) {
                return;
            }
            self.late.swap_remove(index);
            if matches!(incoming.tell, Ok(Tell::Dialed(_))) {
                self.alive += 1;
                self.none_since = None;
                self.want(self.wanted);
            }
            return;
        }
        let is_ours = self.more.as_ref().is_some_and(|more| more.dialer == incoming.end);
        let Some(index) = self.dials.iter().position(|dial| is_ours && *dial == incoming.request) else {
            return;
        };
        self.dials.swap_remove(index);
        match incoming.tell {
            Ok(Tell::Dialed(_)) => {
                self.alive += 1;
                self.failed_dials = 0;
                self.none_since = None;
                if std::mem::take(&mut self.untold) {
                    note(black_hole(SEGMENTS[self.shrunk - 1]));
                }
            }
            Ok(Tell::Failed(why)) => {
                self.last = Some(why);
                self.failed_dials += 1;
                self.again(now);
            }
            _ => {}
        }
    }

    /// A connection was lost, or has ended as it was asked to.
    pub fn handle_stream_lost(&mut self, lost: StreamLost, now: Instant) {
        self.alive = self.alive.saturating_sub(1);
        if self.alive == 0 {
            self.none_since.get_or_insert(now);
        }
        if lost.retired && self.retiring > 0 {
            self.retiring = self.retiring.saturating_sub(1);
            self.parked = self.parked.min(self.retiring);
            return;
        }
        self.last = lost.failure.or(self.last.take());
        // The host has no thread for it: those that are there are as many as it can carry.
        let is_too_many = self.last.as_ref().is_some_and(|why| why.code == ErrorCode::ResourceLimit);
        if is_too_many {
            self.limited.clone_from(&self.last);
        }
        if is_too_many && self.staying() > 0 {
            return self.want(self.staying());
        }
        self.lost_in_vain += 1;
        if lost.stuck {
            self.stuck += 1;
            self.shrink();
        }
        self.again(now);
    }

    /// What got stuck was made for larger packets than are tried next; the others of its kind count for nothing.
    fn shrink(&mut self) {
        let enough = if self.shrunk == 0 { 1 } else { u32::from(self.wanted) };
        if self.stuck < enough || self.shrunk == SEGMENTS.len() {
            return;
        }
        self.stuck = 0;
        self.shrunk += 1;
        self.untold = true;
    }

    fn again(&mut self, now: Instant) {
        if self.to_be() + self.missing < self.wanted {
            self.missing += 1;
        }
        let setbacks = self.failed_dials.max(self.lost_in_vain / u32::from(self.wanted));
        let most = if self.alive == 0 { PAUSE_WITHOUT_ANY } else { self.tuning.retry_pause_max };
        self.due = self.due.max(now + jittered(longest_pause(&self.tuning, setbacks).min(most)));
    }

    /// So much has landed, in items and bytes.
    pub fn handle_landed(&mut self, landed: (u64, u64)) {
        if landed != self.landed {
            self.landed = landed;
            self.lost_in_vain = 0;
        }
    }
}

fn black_hole(segment: u32) -> String {
    format!(
        "the path lets small packets through and loses large ones without a word (a path MTU black hole): data connections are made \
         again with segments of {segment} bytes. To be fast, let ICMP \"fragmentation needed\" through, or set net.ipv4.tcp_mtu_probing=1, \
         or give the interface the MTU of the path"
    )
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
