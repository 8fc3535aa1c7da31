//! Data connections while a transfer runs: those beyond the first are asked for, what is lost is made anew, and when
//! fewer are wanted the sender is asked to end some in good order. There are never to be more than are wanted: what
//! ends, or is lost while it ends, is not made anew.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::ids::StreamId;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::tuning::Tuning;
use carrack_core::wire::Version;
use carrack_core::wire::control::{Ask, Dial, SessionKey, StreamLost, Tell};

use super::attempts::{jittered, longest_pause};
use super::connect::{Link, MoreConnections};
use super::ends::Ends;
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
    key: SessionKey,
    /// Whether a lost one is told of and replaced (version 2).
    replaced: bool,
    wanted: u16,
    alive: u16,
    /// Of those alive, the ones that have been asked to end.
    retiring: u16,
    /// The question that asked for it, and how many it asked for.
    asked_to_end: Option<(u64, u16)>,
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
    pub fn new(link: Link, version: Version, tuning: Arc<Tuning>, now: Instant) -> Self {
        let wanted = link.report.streams;
        let under_way = u16::try_from(link.dials.len()).unwrap_or(u16::MAX);
        let others = if link.more.is_some() { wanted.saturating_sub(1) } else { 0 };
        Self {
            more: link.more,
            key: link.key,
            replaced: version.remakes_streams(),
            wanted,
            alive: wanted - others,
            retiring: 0,
            asked_to_end: None,
            missing: others.saturating_sub(under_way),
            dials: link.dials,
            late: link.late,
            failed_dials: 0,
            lost_in_vain: 0,
            landed: (0, 0),
            due: now,
            none_since: None,
            last: None,
            shrunk: 0,
            stuck: 0,
            untold: false,
            tuning,
        }
    }

    /// Connections that are there, those included that have been asked to end and still carry something.
    pub fn alive(&self) -> u16 {
        self.alive
    }

    /// Sets the number of streams that is wanted from now on.
    pub fn want(&mut self, streams: u16) {
        self.wanted = streams.max(1);
        let staying = self.staying() + self.dials.len() as u16;
        self.missing = self.wanted.saturating_sub(staying);
    }

    /// Those that are there and have not been asked to end.
    fn staying(&self) -> u16 {
        self.alive.saturating_sub(self.retiring)
    }

    /// When [`Streams::work`] next has something to do.
    pub fn due(&self) -> Option<Instant> {
        let room = self.more.as_ref().is_some_and(|more| self.dials.len() < more.at_once);
        let dial = (self.missing > 0 && room).then_some(self.due);
        let give_up = self.none_since.map(|since| since + self.tuning.silence);
        [dial, give_up].into_iter().flatten().min()
    }

    /// Asks for what is missing, if it is time to.
    ///
    /// # Errors
    /// When nothing is left and nothing can be made: the session has to be given up.
    pub fn work(&mut self, ends: &mut Ends, now: Instant) -> Result<(), Failure> {
        if let Some(since) = self.none_since
            && (self.more.is_none() || now >= since + self.tuning.silence)
        {
            return Err(self.given_up("no data connection is left, and none can be made"));
        }
        if self.lost_in_vain > 4 * u32::from(self.wanted) + 16 {
            return Err(self.given_up("data connections are lost before anything gets through"));
        }
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

    /// Has the sender end what is there and not wanted. Dials that are under way are not waited for: what they
    /// bring is seen when it comes.
    fn end_surplus(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        let count = self.staying().saturating_sub(self.wanted);
        if count == 0 || self.asked_to_end.is_some() {
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
        // What does not end stays, and is not asked again and again.
        self.wanted = self.wanted.max(self.staying());
    }

    fn given_up(&self, what: &str) -> Failure {
        let given_up = failure(ErrorCode::ConnectionLost, Side::Link, what);
        Failure { source: self.last.clone().map(Box::new), ..given_up }
    }

    /// Takes the answer to a dial, or to the question for some to end.
    pub fn handle_answer(&mut self, incoming: Incoming, note: &Note, now: Instant) {
        if let Some((request, count)) = self.asked_to_end
            && (incoming.end, incoming.request) == (EndId::Source, request)
        {
            return self.handle_end_answer(count, incoming.tell);
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
            return;
        }
        self.lost_in_vain += 1;
        self.last = lost.failure.or(self.last.take());
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
        if !self.replaced {
            return;
        }
        if self.staying() + self.dials.len() as u16 + self.missing < self.wanted {
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
mod tests {
    use std::sync::Mutex;

    use carrack_core::report::LinkReport;
    use carrack_core::request::{Encrypt, LinkKind};

    use super::*;

    fn more() -> MoreConnections {
        MoreConnections { dialer: EndId::Source, addresses: Vec::new(), pin: [0; 32], numbers: 1..=19, at_once: 4 }
    }

    fn streams(wanted: u16, version: Version, now: Instant) -> Streams {
        let report = LinkReport {
            kind: LinkKind::Direct,
            address: String::new(),
            from: None,
            streams: wanted,
            cipher: String::new(),
        };
        let key = SessionKey { id: [0; 16], secret: [0; 32], encrypt: Encrypt::None };
        Streams::new(
            Link { report, key, more: Some(more()), dials: Vec::new(), late: Vec::new() },
            version,
            Arc::default(),
            now,
        )
    }

    fn dialed(request: u64) -> Incoming {
        Incoming { end: EndId::Source, request, tell: Ok(Tell::Dialed(Default::default())) }
    }

    fn quiet() -> Note {
        Arc::new(|_| {})
    }

    #[test]
    fn lost_stream_is_made_again_and_a_version_1_sender_has_no_more() {
        let now = Instant::now();
        for (version, missing) in [(Version::V1, 0), (Version::V2, 1)] {
            let mut one = streams(1, version, now);
            assert_eq!(one.due(), None);
            one.handle_stream_lost(StreamLost::default(), now);
            assert_eq!(one.missing, missing);
            assert!(one.due().is_some_and(|due| due > now), "a pause, or the end of patience");
        }
    }

    #[test]
    fn pauses_grow_with_failures_and_end_with_a_connection() {
        let now = Instant::now();
        let mut eight = streams(8, Version::V2, now);
        eight.missing = 0;
        let mut pauses = Vec::new();
        for request in 1..12 {
            eight.dials.push(request);
            let tell = Ok(Tell::Failed(failure(ErrorCode::ConnectFailed, Side::Link, "")));
            eight.handle_answer(Incoming { end: EndId::Source, request, tell }, &quiet(), now);
            pauses.push(eight.due - now);
        }
        assert!(
            pauses.is_sorted()
                && pauses[10] >= Tuning::DEFAULT.retry_pause_max / 2
                && pauses[10] <= Tuning::DEFAULT.retry_pause_max,
            "{pauses:?}"
        );
        eight.dials.push(12);
        eight.handle_answer(dialed(12), &quiet(), now);
        assert_eq!((eight.failed_dials, eight.missing, eight.alive), (0, 7, 2), "never more than are wanted");
        // An answer that nobody waits for changes nothing.
        eight.handle_answer(dialed(99), &quiet(), now);
        assert_eq!(eight.alive, 2);
    }

    #[test]
    fn stream_under_way_already_is_not_asked_for_again() {
        let now = Instant::now();
        let report = LinkReport {
            kind: LinkKind::Direct,
            address: String::new(),
            from: None,
            streams: 8,
            cipher: String::new(),
        };
        let key = SessionKey { id: [0; 16], secret: [0; 32], encrypt: Encrypt::None };
        let link = Link { report, key, more: Some(more()), dials: vec![5, 6, 7], late: Vec::new() };
        let mut eight = Streams::new(link, Version::V2, Arc::default(), now);
        assert_eq!((eight.alive, eight.missing, eight.due()), (1, 4, Some(now)));
        eight.handle_answer(dialed(6), &quiet(), now);
        assert_eq!((eight.alive, eight.dials.len()), (2, 2));
        // Where no more than four may be under way, three more have to wait.
        eight.dials.extend([8, 9]);
        assert_eq!(eight.due(), None);
    }

    /// Both ways were tried, and the other one was quicker: what comes of the slower one is a
    /// connection like any other.
    #[test]
    fn connections_of_the_way_that_was_not_chosen_count() {
        let now = Instant::now();
        let mut two = streams(2, Version::V3, now);
        (two.missing, two.alive) = (0, 2);
        two.late = vec![(EndId::Destination, 7), (EndId::Destination, 8)];
        let answer = |request, tell| Incoming { end: EndId::Destination, request, tell: Ok(tell) };
        two.handle_answer(answer(7, Tell::Connected(Default::default())), &quiet(), now);
        two.handle_answer(answer(7, Tell::Dialed(Default::default())), &quiet(), now);
        two.handle_answer(answer(8, Tell::Failed(failure(ErrorCode::ConnectFailed, Side::Link, ""))), &quiet(), now);
        two.handle_answer(answer(8, Tell::Dialed(Default::default())), &quiet(), now);
        assert_eq!((two.alive, two.missing, two.late.len()), (3, 0, 0));
        // It is one more than is wanted, so it is not made anew when it goes.
        two.handle_stream_lost(StreamLost::default(), now);
        assert_eq!((two.alive, two.missing), (2, 0));
    }

    #[test]
    fn segments_shrink_twice_and_each_time_it_is_told() {
        let now = Instant::now();
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&told);
        let note: Note = Arc::new(move |text| kept.lock().unwrap().push(text));
        let mut two = streams(2, Version::V2, now);
        let lose =
            |two: &mut Streams, stuck| two.handle_stream_lost(StreamLost { stuck, ..StreamLost::default() }, now);
        // Both were stuck; one of them comes back, and is stuck again, and so is the other.
        for (request, stuck) in [(1, true), (2, true), (3, true), (4, true), (5, false), (6, true), (7, true)] {
            lose(&mut two, stuck);
            two.dials.push(request);
            two.handle_answer(dialed(request), &note, now);
        }
        let told = told.lock().unwrap();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("1200 bytes") && told[1].contains("536 bytes") && told[0].contains("MTU"), "{told:?}");
    }

    #[test]
    fn path_that_is_gone_is_not_called_a_black_hole() {
        let now = Instant::now();
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&told);
        let note: Note = Arc::new(move |text| kept.lock().unwrap().push(text));
        let mut two = streams(2, Version::V2, now);
        two.handle_stream_lost(StreamLost { stuck: true, ..StreamLost::default() }, now);
        two.dials.push(1);
        let tell = Ok(Tell::Failed(failure(ErrorCode::ConnectFailed, Side::Link, "")));
        two.handle_answer(Incoming { end: EndId::Source, request: 1, tell }, &note, now);
        assert!(told.lock().unwrap().is_empty());
    }

    /// Eight connections, of which some are to end: `ask` in the place of the end that would be asked.
    fn ask_to_end(streams: &mut Streams, wanted: u16, request: u64) -> u16 {
        streams.want(wanted);
        let count = streams.staying() - streams.wanted;
        streams.ask_to_end(request, count);
        count
    }

    fn ended(request: u64, count: u64) -> Incoming {
        let tell = Ok(Tell::Done(count));
        Incoming { end: EndId::Source, request, tell }
    }

    #[test]
    fn stream_that_was_asked_to_end_is_not_made_again() {
        let now = Instant::now();
        let mut eight = streams(8, Version::V3, now);
        (eight.missing, eight.alive) = (0, 8);
        assert_eq!(ask_to_end(&mut eight, 5, 1), 3);
        // One has ended before the answer comes; another is lost before it could end.
        eight.handle_stream_lost(StreamLost { retired: true, ..StreamLost::default() }, now);
        eight.handle_answer(ended(1, 3), &quiet(), now);
        let failure = Some(failure(ErrorCode::ConnectionLost, Side::Link, ""));
        eight.handle_stream_lost(StreamLost { retired: true, failure, ..StreamLost::default() }, now);
        assert_eq!((eight.alive, eight.retiring, eight.missing), (6, 1, 0));
        // One that was to stay is made again.
        eight.handle_stream_lost(StreamLost::default(), now);
        assert_eq!((eight.alive, eight.staying(), eight.missing), (5, 4, 1));
        eight.handle_stream_lost(StreamLost { retired: true, ..StreamLost::default() }, now);
        assert_eq!((eight.alive, eight.retiring, eight.missing), (4, 0, 1));
    }

    #[test]
    fn streams_may_end_fewer_than_were_asked_to_and_the_rest_stays() {
        let now = Instant::now();
        let mut eight = streams(8, Version::V3, now);
        (eight.missing, eight.alive) = (0, 8);
        ask_to_end(&mut eight, 2, 1);
        eight.handle_answer(ended(1, 4), &quiet(), now);
        assert_eq!((eight.retiring, eight.staying(), eight.wanted, eight.asked_to_end), (4, 4, 4, None));
        ask_to_end(&mut eight, 2, 2);
        let tell = Ok(Tell::Failed(failure(ErrorCode::Internal, Side::Source, "")));
        eight.handle_answer(Incoming { end: EndId::Source, request: 2, tell }, &quiet(), now);
        assert_eq!((eight.retiring, eight.staying(), eight.wanted), (4, 4, 4));
    }

    #[test]
    fn streams_are_dialled_and_a_change_of_mind_takes_back_those_that_were_not() {
        let now = Instant::now();
        let mut two = streams(2, Version::V3, now);
        (two.missing, two.alive) = (0, 2);
        two.want(8);
        assert_eq!((two.missing, two.due()), (6, Some(now)));
        two.dials.extend([1, 2]);
        two.missing -= 2;
        two.want(3);
        assert_eq!(two.missing, 0, "one more than is wanted is under way");
        two.handle_answer(dialed(1), &quiet(), now);
        let tell = Ok(Tell::Failed(failure(ErrorCode::ConnectFailed, Side::Link, "")));
        two.handle_answer(Incoming { end: EndId::Source, request: 2, tell }, &quiet(), now);
        assert_eq!((two.alive, two.missing), (3, 0), "and is not tried again when it fails");
    }

    #[test]
    fn last_stream_may_be_lost_while_others_end() {
        let now = Instant::now();
        let mut two = streams(2, Version::V3, now);
        (two.missing, two.alive) = (0, 2);
        ask_to_end(&mut two, 1, 1);
        two.handle_answer(ended(1, 1), &quiet(), now);
        two.handle_stream_lost(StreamLost::default(), now);
        two.handle_stream_lost(StreamLost { retired: true, ..StreamLost::default() }, now);
        assert_eq!((two.alive, two.missing, two.none_since), (0, 1, Some(now)));
    }
}
