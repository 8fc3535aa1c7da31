//! The number of connections, and what is asked for in its place.

use std::sync::Mutex;

use carrack_core::report::{LinkReport, StreamsFrom};
use carrack_core::request::{Encrypt, LinkKind};

use super::*;

fn more() -> MoreConnections {
    MoreConnections { dialer: EndId::Source, addresses: Vec::new(), pin: [0; 32], numbers: 1..=19, at_once: 4 }
}

fn streams(wanted: u16, now: Instant) -> Streams {
    let report = LinkReport {
        kind: LinkKind::Direct,
        address: String::new(),
        from: None,
        streams: wanted,
        streams_from: StreamsFrom::Path,
        cipher: String::new(),
    };
    let key = SessionKey { id: [0; 16], secret: [0; 32], encrypt: Encrypt::None };
    Streams::new(
        Link {
            report,
            key,
            more: Some(more()),
            here: None,
            dials: Vec::new(),
            late: Vec::new(),
            round_trip: Duration::ZERO,
            kept: None,
        },
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
fn lost_stream_is_made_again() {
    let now = Instant::now();
    let mut one = streams(1, now);
    assert_eq!(one.due(), None);
    one.handle_stream_lost(StreamLost::default(), now);
    assert_eq!(one.missing, 1);
    assert!(one.due().is_some_and(|due| due > now), "a pause");
}

#[test]
fn stream_without_a_thread_is_not_asked_for_again_unless_it_is_the_only_one() {
    let now = Instant::now();
    let lost = || {
        let failure = Some(failure(ErrorCode::ResourceLimit, Side::Source, "no thread"));
        StreamLost { failure, ..StreamLost::default() }
    };
    let mut streams = streams(8, now);
    (streams.alive, streams.missing) = (3, 0);
    streams.handle_stream_lost(lost(), now);
    assert_eq!((streams.wanted, streams.alive, streams.missing), (2, 2, 0));
    streams.handle_stream_lost(lost(), now);
    streams.handle_stream_lost(lost(), now);
    assert_eq!((streams.alive, streams.missing), (0, 1));
    assert_eq!(streams.given_up("none is left").code, ErrorCode::ResourceLimit);
}

#[test]
fn end_that_cut_all_streams_off_has_time_to_say_why_where_none_can_be_dialled() {
    let now = Instant::now();
    let mut streams = streams(2, now);
    streams.more = None;
    (streams.alive, streams.missing) = (2, 0);
    (0..2).for_each(|_| streams.handle_stream_lost(StreamLost::default(), now));
    let patience = streams.tuning.other_end_patience;
    assert_eq!(streams.given_up_at(), Some(now + patience));
    assert!(patience < streams.tuning.silence);
}

#[test]
fn pauses_grow_with_failures_and_end_with_a_connection() {
    let now = Instant::now();
    let mut eight = streams(8, now);
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
        streams_from: StreamsFrom::Path,
        cipher: String::new(),
    };
    let key = SessionKey { id: [0; 16], secret: [0; 32], encrypt: Encrypt::None };
    let link = Link {
        report,
        key,
        more: Some(more()),
        here: None,
        dials: vec![5, 6, 7],
        late: Vec::new(),
        round_trip: Duration::ZERO,
        kept: None,
    };
    let mut eight = Streams::new(link, Arc::default(), now);
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
    let mut two = streams(2, now);
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
    let mut two = streams(2, now);
    let lose = |two: &mut Streams, stuck| two.handle_stream_lost(StreamLost { stuck, ..StreamLost::default() }, now);
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
    let mut two = streams(2, now);
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
    let mut eight = streams(8, now);
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
    let mut eight = streams(8, now);
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
    let mut two = streams(2, now);
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
    let mut two = streams(2, now);
    (two.missing, two.alive) = (0, 2);
    ask_to_end(&mut two, 1, 1);
    two.handle_answer(ended(1, 1), &quiet(), now);
    two.handle_stream_lost(StreamLost::default(), now);
    two.handle_stream_lost(StreamLost { retired: true, ..StreamLost::default() }, now);
    assert_eq!((two.alive, two.missing, two.none_since), (0, 1, Some(now)));
}

/// Eight connections of which three have been asked to end.
fn three_parked(now: Instant) -> Streams {
    let mut eight = streams(8, now);
    (eight.missing, eight.alive) = (0, 8);
    ask_to_end(&mut eight, 5, 1);
    eight.handle_answer(ended(1, 3), &quiet(), now);
    assert_eq!((eight.alive(), eight.parked, eight.can_wake()), (5, 3, None));
    eight
}

/// As [`Streams::wake_parked`], without the end that would be asked.
fn wake(streams: &mut Streams, request: u64) -> u16 {
    let count = streams.can_wake().unwrap_or(0);
    streams.ask_to_wake(request, count);
    count
}

#[test]
fn parked_streams_go_on_before_others_are_dialled() {
    let now = Instant::now();
    let mut eight = three_parked(now);
    eight.want(7);
    assert_eq!(wake(&mut eight, 2), 2);
    assert_eq!((eight.missing, eight.alive()), (0, 5), "they are asked for, and not there");
    eight.handle_answer(ended(2, 2), &quiet(), now);
    assert_eq!((eight.alive(), eight.parked, eight.retiring, eight.missing), (7, 1, 1, 0));
    // More than are parked: the rest is dialled.
    eight.want(10);
    assert_eq!(wake(&mut eight, 3), 1);
    assert_eq!(eight.missing, 2);
    eight.handle_answer(ended(3, 1), &quiet(), now);
    assert_eq!((eight.alive(), eight.parked, eight.retiring, eight.missing), (8, 0, 0, 2));
}

/// A minute has passed while the question was on its way.
#[test]
fn parked_stream_that_has_ended_is_dialled() {
    let now = Instant::now();
    for (first, failed) in [(true, false), (false, false), (false, true)] {
        let mut eight = three_parked(now);
        eight.want(8);
        wake(&mut eight, 2);
        let over = |eight: &mut Streams| {
            eight.handle_stream_lost(StreamLost { retired: true, ..StreamLost::default() }, now);
        };
        if first {
            over(&mut eight);
        }
        let woken = if failed { 0 } else { 2 };
        let tell = if failed { Tell::Failed(failure(ErrorCode::Internal, Side::Source, "")) } else { Tell::Done(2) };
        eight.handle_answer(Incoming { end: EndId::Source, request: 2, tell: Ok(tell) }, &quiet(), now);
        if !first {
            over(&mut eight);
        }
        assert_eq!((eight.alive(), eight.missing), (5 + woken, 3 - woken), "{first} {failed}");
        assert_eq!((eight.parked, eight.can_wake()), (0, None), "it is not asked again and again");
    }
}

#[test]
fn parked_stream_takes_the_place_of_one_that_is_lost() {
    let now = Instant::now();
    let mut eight = three_parked(now);
    eight.handle_stream_lost(StreamLost::default(), now);
    assert_eq!((eight.alive(), eight.missing), (4, 1));
    assert_eq!(wake(&mut eight, 2), 1);
    // One that is lost while it is parked is none to wake, and is not made again.
    eight.handle_stream_lost(StreamLost { retired: true, ..StreamLost::default() }, now);
    eight.handle_answer(ended(2, 1), &quiet(), now);
    assert_eq!((eight.alive(), eight.missing, eight.retiring), (5, 0, 1));
    // Fewer are wanted while others are asked to go on: they are asked to end when that is answered.
    eight.want(6);
    assert_eq!(wake(&mut eight, 3), 1);
    eight.want(4);
    eight.handle_answer(ended(3, 1), &quiet(), now);
    assert_eq!(eight.staying() - eight.wanted, 2);
}
