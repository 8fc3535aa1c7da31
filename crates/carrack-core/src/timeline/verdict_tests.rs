//! Verdicts of what both ends told.

use super::*;
use crate::timeline::{InterfaceCounts, InterfaceSample, StageTime, StreamSample, TcpCounts, TcpState};

const SECOND: u64 = 1_000_000;

/// A second of four streams: what each stage waited, in percent of their time, and what it worked.
fn sample(carried: u64, waited: &[(Work, u64)], starved: u64) -> Sample {
    let all = 4 * SECOND / 100;
    let mut sample = Sample { carried_us: carried * all, ..Sample::default() };
    for (work, percent) in waited {
        let time = StageTime { waited_us: percent * all, ..StageTime::default() };
        sample.stages.set(*work, time);
    }
    sample.processor.starved_us = starved * all;
    sample
}

fn judge(source: Sample, destination: Sample, memory: bool) -> Option<Verdict> {
    let [source, destination] = [source, destination].map(|sample| [Point { at_us: SECOND, error_us: 0, sample }]);
    let before = Sample::default();
    let [source, destination] = [&source, &destination].map(|points| Stretch { before: &before, points });
    verdict(source, destination, SECOND, 4, memory)
}

fn stage(source: Sample, destination: Sample) -> Option<Stage> {
    judge(source, destination, false).map(|verdict| verdict.limit.stage)
}

use Work::{Create, Find, Pace, Read, Receive, Send, Write};

#[test]
fn slow_side_is_named_by_what_its_streams_waited_for() {
    for (what, source, destination, expected) in [
        ("slow reads", sample(100, &[(Read, 90)], 0), sample(100, &[(Receive, 92)], 0), Stage::SourceStorage),
        ("slow opens", sample(100, &[(Find, 90)], 0), sample(100, &[(Receive, 92)], 0), Stage::SourceMetadata),
        ("hashing", sample(100, &[(Read, 10)], 0), sample(100, &[(Receive, 80)], 0), Stage::SourceProcessors),
        ("slow writes", sample(100, &[(Send, 90)], 0), sample(100, &[(Write, 95)], 0), Stage::DestinationStorage),
        ("slow creates", sample(100, &[(Send, 90)], 0), sample(100, &[(Create, 95)], 0), Stage::DestinationMetadata),
        ("opening", sample(100, &[(Send, 80)], 0), sample(100, &[(Write, 9)], 0), Stage::DestinationProcessors),
        ("as asked", sample(100, &[(Pace, 80)], 0), sample(100, &[(Receive, 90)], 0), Stage::RateLimit),
        // Threads that got a processor for a fifth of the time were held up in calls of all kinds.
        (
            "a busy processor at the destination",
            sample(100, &[(Send, 70)], 0),
            sample(100, &[(Write, 40), (Receive, 45)], 80),
            Stage::DestinationProcessors,
        ),
        (
            "a busy processor at the source",
            sample(100, &[(Send, 40), (Read, 40)], 80),
            sample(100, &[(Receive, 90)], 0),
            Stage::SourceProcessors,
        ),
        // The receiver has nothing before a block has been read, and is quick with it.
        ("whole blocks", sample(90, &[(Read, 85)], 0), sample(5, &[], 0), Stage::SourceStorage),
    ] {
        assert_eq!(stage(source, destination), Some(expected), "{what}");
    }
}

/// Measured: a destination with a fifth of a processor, its group held back for 55 % of the time.
#[test]
fn control_group_that_is_held_back_is_no_slow_network() {
    let source = || sample(100, &[(Send, 88)], 4);
    let receiving = || sample(100, &[(Receive, 64), (Write, 15)], 12);
    assert_eq!(stage(source(), receiving()), Some(Stage::Network));
    let mut held = receiving();
    held.processor_state.cores = 2;
    held.throttled.time_us = SECOND * 2 * 55 / 100;
    let verdict = judge(source(), held, false).unwrap();
    assert_eq!(verdict.limit.stage, Stage::DestinationProcessors);
    assert!(matches!(verdict.fact, Some(Fact::Starved(share)) if (share - 0.55).abs() < 1e-9), "{verdict:?}");
}

/// Measured: the streams of a destination make small files, and then wait for more than twice as long for others.
#[test]
fn waiting_with_nothing_to_carry_does_not_hide_what_was_slow() {
    let receiving = sample(60, &[(Create, 62), (Receive, 140)], 0);
    assert_eq!(stage(sample(1, &[], 0), receiving), Some(Stage::DestinationMetadata));
}

/// A limit that changes midway: the longer one is named, and the other is the runner-up.
#[test]
fn limit_that_changes_is_named_by_the_longer_part() {
    let halves = |network: u64| {
        let storage = 96 - network;
        judge(sample(100, &[(Send, 97)], 0), sample(100, &[(Receive, network), (Write, storage)], 0), false)
    };
    for (network, first, second) in
        [(56, Stage::Network, Stage::DestinationStorage), (40, Stage::DestinationStorage, Stage::Network)]
    {
        let verdict = halves(network).unwrap();
        assert_eq!(verdict.next.map(|next| next.stage), Some(second), "{network}");
        assert_eq!(verdict.limit.stage, first, "{network}");
    }
}

#[test]
fn runner_up_and_shares_are_told() {
    let verdict = judge(sample(100, &[(Send, 90)], 0), sample(100, &[(Write, 70), (Receive, 12)], 0), false).unwrap();
    assert!((verdict.limit.share - 0.7).abs() < 1e-9, "{verdict:?}");
    assert_eq!(verdict.next.map(|next| next.stage), Some(Stage::DestinationProcessors));
    let starved = judge(sample(100, &[(Send, 70)], 0), sample(100, &[], 60), false).unwrap();
    assert_eq!(starved.fact, Some(Fact::Starved(0.6)));
    // Within one process the sides wait for each other's turn.
    let waiting = || (sample(100, &[(Send, 60)], 0), sample(100, &[(Receive, 60)], 0));
    let (source, destination) = waiting();
    assert_eq!(stage(source, destination), Some(Stage::Network));
    let (source, destination) = waiting();
    let memory = judge(source, destination, true).unwrap();
    assert!(memory.limit.stage != Stage::Network && memory.next.is_none_or(|next| next.stage != Stage::Network));
}

#[test]
fn stage_of_one_thread_is_named_where_streams_are_idle() {
    let busy = |work, percent: u64| {
        let mut sample = sample(10, &[], 0);
        let (waited_us, calls) = (percent * SECOND / 100, 9);
        sample.stages.set(work, StageTime { waited_us, calls, ..StageTime::default() });
        sample
    };
    let idle = || sample(10, &[], 0);
    assert_eq!(stage(busy(Work::List, 90), idle()), Some(Stage::SourceMetadata));
    assert_eq!(stage(idle(), busy(Work::Publish, 90)), Some(Stage::DestinationMetadata));
    assert_eq!(stage(idle(), busy(Work::Begin, 80)), Some(Stage::DestinationMetadata));
    assert_eq!(stage(idle(), busy(Work::Sync, 90)), Some(Stage::DestinationStorage));
    // Syncing and naming are done by one thread, and naming has a sync of the directory within.
    let both = |syncs, names| {
        let mut both = busy(Work::Sync, syncs);
        let waited_us = names * SECOND / 100;
        both.stages.set(Work::Publish, StageTime { waited_us, ..StageTime::default() });
        both
    };
    assert_eq!(stage(idle(), both(30, 50)), Some(Stage::DestinationMetadata));
    assert_eq!(stage(idle(), both(47, 48)), Some(Stage::DestinationStorage));
    // Empty files: the streams carry nothing.
    let mut listing = busy(Work::List, 90);
    listing.carried_us = 20;
    assert_eq!(stage(listing, sample(0, &[], 0)), Some(Stage::SourceMetadata));
    assert!(stage(busy(Work::List, 20), idle()).is_some_and(|stage| stage != Stage::SourceMetadata));
}

/// Four streams fill the network for twelve seconds and write to the page cache; then the destination syncs.
#[test]
fn last_sync_is_waiting_for_the_destination() {
    let judged = |synced: u64| {
        let ends = [(Send, Sample::default()), (Receive, Sample::default())].map(|(work, before)| {
            let points = (1..=12 + synced).map(|second| {
                let carried = second.min(12);
                let mut sample = Sample { carried_us: carried * 4 * SECOND, ..Sample::default() };
                let waited = |waited_us| StageTime { waited_us, ..StageTime::default() };
                sample.stages.set(work, waited(carried * 2 * SECOND));
                if work == Receive {
                    sample.stages.set(Work::Sync, waited((second - carried) * SECOND));
                }
                Point { at_us: second * SECOND, error_us: 0, sample }
            });
            (before, points.collect::<Vec<Point>>())
        });
        let [source, destination] = &ends;
        let [source, destination] = [source, destination].map(|(before, points)| Stretch { before, points });
        let verdict = verdict(source, destination, (12 + synced) * SECOND, 4, false).unwrap();
        (verdict.limit, verdict.next.unwrap())
    };
    // Half of the time the network, the other half of each side's own work; the sync is counted with both.
    for (synced, first, share) in [(0, Stage::Network, 0.5), (4, Stage::Network, 0.375)] {
        let (limit, _) = judged(synced);
        assert_eq!((limit.stage, (limit.share - share).abs() < 1e-9), (first, true), "{synced}: {limit:?}");
    }
    let (limit, next) = judged(8);
    assert_eq!(limit.stage, Stage::DestinationStorage, "{limit:?}");
    assert!((limit.share - 0.4).abs() < 1e-9 && next.share < 0.4, "{limit:?} {next:?}");
}

/// Both sides wait for the path.
fn path(counts: TcpCounts, state: TcpState) -> (Stage, Option<Fact>) {
    let source = Sample { counts, state, ..sample(100, &[(Send, 95)], 0) };
    let verdict = judge(source, sample(100, &[(Receive, 95)], 0), false).unwrap();
    (verdict.limit.stage, verdict.fact)
}

#[test]
fn path_is_judged_by_windows_then_loss_then_the_round_trip() {
    let state = |rtt_us, min_rtt_us, window_bytes| TcpState { rtt_us, min_rtt_us, window_bytes, ..TcpState::default() };
    let counts = |delivered, retransmits, rwnd_limited_us| {
        let (segments, busy_us) = (100_000, 4 * SECOND);
        TcpCounts { delivered, segments, retransmits, busy_us, rwnd_limited_us, ..TcpCounts::default() }
    };
    // 64 KiB for each of four streams, 20 ms away.
    let window = path(counts(12 << 20, 0, 4 * SECOND), state(20_000, 20_000, 256 << 10));
    assert_eq!(window.0, Stage::Window);
    // The sender's own buffer is small.
    let small = TcpCounts { sndbuf_limited_us: 2 * SECOND, ..counts(4 << 20, 0, 0) };
    assert_eq!(path(small, state(45_000, 40_000, 1 << 20)).0, Stage::Window);
    // A connection that still grows, and with it the receiver's window.
    assert_eq!(path(counts(24 << 20, 0, 2 * SECOND), state(103_000, 100_000, 12 << 20)).0, Stage::RoundTrip);
    // It is rather the congestion window that allows little, though the receiver's has been closed at times.
    let reno = TcpState { cwnd_bytes: 6 << 20, ..state(102_000, 100_000, 8 << 20) };
    assert_eq!(path(counts(60 << 20, 0, 3 * SECOND / 2), reno).0, Stage::RoundTrip);
    // A relay far away that takes little: what is in flight does not fill its window.
    assert_eq!(path(counts(16 << 20, 0, 4 * SECOND), state(41_000, 40_000, 4 << 20)).0, Stage::Network);
    // A relay next door that takes little: its window is closed, and nothing is in flight.
    assert_eq!(path(counts(12 << 20, 0, 4 * SECOND), state(150, 60, 1 << 20)).0, Stage::Network);
    assert_eq!(path(counts(12 << 20, 0, 4 * SECOND), state(150, 60, 0)).0, Stage::Network);
    // One that acknowledges late, as far as its window goes.
    assert_eq!(path(counts(7 << 20, 0, 4 * SECOND), state(4_600, 4, 95 << 10)).0, Stage::Network);
    // Full: packets wait in a queue, and some are dropped there.
    assert_eq!(path(counts(100 << 20, 500, 0), state(51_000, 200, 4 << 20)).0, Stage::Network);
    assert_eq!(path(counts(100 << 20, 500, 0), state(140_000, 80_000, 4 << 20)).0, Stage::Network);
    // Lost without a queue.
    let loss = path(counts(10 << 20, 500, 0), state(81_000, 80_000, 4 << 20));
    assert_eq!(loss, (Stage::Loss, Some(Fact::Resent(0.005))));
    let slow = TcpCounts { timeouts_us: SECOND, ..counts(1 << 20, 0, 0) };
    assert_eq!(path(slow, state(300, 200, 4 << 20)).0, Stage::Loss);
    // Far, and nothing else.
    assert_eq!(
        path(counts(10 << 20, 2, 0), state(81_000, 80_000, 4 << 20)),
        (Stage::RoundTrip, Some(Fact::RoundTripUs(80_000)))
    );
    assert_eq!(path(counts(900 << 20, 0, 0), state(300, 200, 4 << 20)).0, Stage::Network);
    // Kernels before 5.4 do not tell the window, those before 4.6 not the shortest round trip either.
    for min_rtt_us in [20_000, 0] {
        assert_eq!(path(counts(12 << 20, 0, 4 * SECOND), state(20_000, min_rtt_us, 0)).0, Stage::Window);
        assert_eq!(path(counts(10 << 20, 0, 2 * SECOND), state(20_000, min_rtt_us, 0)).0, Stage::RoundTrip);
        assert_eq!(path(counts(10 << 20, 500, 0), state(20_000, min_rtt_us, 0)).0, Stage::Loss);
    }
    assert_eq!(path(counts(12 << 20, 0, 4 * SECOND), state(150, 0, 0)).0, Stage::Network);
}

/// 118 MB/s over 80 ms by a card of 1 Gb/s: what it cannot take waits in the sockets, and no round trip shows it.
#[test]
fn card_that_is_full_is_the_network_and_no_distance() {
    let of = |sent_bytes: u64, received_bytes: u64, speed_bits: u64| {
        let interface = |counts| Some(InterfaceSample { name: "eth0".into(), counts, speed_bits });
        let counts =
            TcpCounts { delivered: 118_000_000, segments: 90_000, busy_us: 4 * SECOND, ..TcpCounts::default() };
        let state = TcpState { rtt_us: 82_000, min_rtt_us: 80_000, window_bytes: 64 << 20, ..TcpState::default() };
        let sent = InterfaceCounts { sent_bytes, received_bytes: 1 << 40, ..InterfaceCounts::default() };
        let source = Sample { counts, state, interface: interface(sent), ..sample(100, &[(Send, 95)], 0) };
        let received = InterfaceCounts { received_bytes, sent_bytes: 1 << 40, ..InterfaceCounts::default() };
        let destination = Sample { interface: interface(received), ..sample(100, &[(Receive, 95)], 0) };
        judge(source, destination, false).unwrap().limit.stage
    };
    assert_eq!(of(118_000_000, 0, 1_000_000_000), Stage::Network);
    assert_eq!(of(0, 118_000_000, 1_000_000_000), Stage::Network);
    // It could carry more, or nobody knows.
    assert_eq!(of(110_000_000, 110_000_000, 1_000_000_000), Stage::RoundTrip);
    assert_eq!(of(118_000_000, 118_000_000, 0), Stage::RoundTrip);
}

/// Measured: eight streams over 10 ms and a full queue, of which one was made behind it; and four over 40 ms that lose
/// packets, of which one waits long for a segment that is sent again.
#[test]
fn one_stream_does_not_speak_for_the_path() {
    let stage = |streams: &[(u64, u64)]| {
        let state = |&(rtt_us, min_rtt_us): &(u64, u64)| TcpState { rtt_us, min_rtt_us, ..TcpState::default() };
        let streams = streams.iter().map(state);
        let all = streams.clone().reduce(|one, other| one.peak(&other)).unwrap();
        let streams = streams.map(|state| StreamSample { state, ..StreamSample::default() }).collect();
        let counts = TcpCounts { segments: 9_000, retransmits: 1_500, busy_us: 4 * SECOND, ..TcpCounts::default() };
        let source = Sample { counts, state: all, streams, ..sample(100, &[(Send, 95)], 0) };
        judge(source, sample(100, &[(Receive, 95)], 0), false).unwrap().limit.stage
    };
    assert_eq!(stage(&[(20_758, 10_052), (21_601, 10_559), (22_068, 18_000)]), Stage::Network);
    assert_eq!(stage(&[(77_869, 40_153), (43_126, 40_000), (42_972, 40_000), (41_628, 40_196)]), Stage::Loss);
}

/// Measured, over 40 ms: two seconds of a link that four streams fill, then eight in which 2 % is lost; where few
/// packets are in flight the last one of a burst is acknowledged late, and trips fluctuate by more than they are
/// longer.
#[test]
fn losses_behind_a_queue_are_told_from_it() {
    let stage = |seconds: &[(u64, [u64; 3])]| {
        let mut counts = TcpCounts::default();
        let points: Vec<Point> = (1..)
            .zip(seconds)
            .map(|(second, (retransmits, [rtt_us, min_rtt_us, rtt_var_us]))| {
                counts.segments += 700;
                counts.retransmits += retransmits;
                let state = TcpState {
                    rtt_us: *rtt_us,
                    min_rtt_us: *min_rtt_us,
                    rtt_var_us: *rtt_var_us,
                    ..TcpState::default()
                };
                let streams = vec![StreamSample { state, ..StreamSample::default() }; 4];
                let carried = sample(100 * second, &[(Send, 95 * second)], 0);
                Point { at_us: second * SECOND, error_us: 0, sample: Sample { counts, state, streams, ..carried } }
            })
            .collect();
        let last = points.len() as u64;
        let received =
            [Point { at_us: last * SECOND, error_us: 0, sample: sample(100 * last, &[(Receive, 95 * last)], 0) }];
        let before = Sample::default();
        let [source, destination] = [&points[..], &received[..]].map(|points| Stretch { before: &before, points });
        verdict(source, destination, last * SECOND, 4, false).unwrap().limit.stage
    };
    let full = |_: u64| (0, [73_400, 40_100, 60]);
    let lossy =
        |number: u64| (14, if number.is_multiple_of(2) { [52_600, 40_000, 17_900] } else { [42_000, 40_000, 2_500] });
    assert_eq!(stage(&[full(0), full(1), full(2)]), Stage::Network);
    assert_eq!(stage(&(0..8).map(lossy).collect::<Vec<_>>()), Stage::Loss);
    let both: Vec<_> = (0..4).map(full).chain((0..6).map(lossy)).collect();
    assert_eq!(stage(&both), Stage::Loss);
    let both: Vec<_> = (0..6).map(full).chain((0..4).map(lossy)).collect();
    assert_eq!(stage(&both), Stage::Network);
}

/// Measured: a link of 20 ms that eight connections of others fill. No stream has seen it empty, and what each has seen
/// differs.
#[test]
fn streams_that_begin_behind_a_full_queue_know_it_by_each_other() {
    let state = |rtt_us, min_rtt_us, rtt_var_us| TcpState { rtt_us, min_rtt_us, rtt_var_us, ..TcpState::default() };
    let states = [
        state(39_642, 32_000, 633),
        state(41_275, 30_320, 13_187),
        state(36_327, 35_680, 11_241),
        state(36_496, 35_803, 11_398),
        state(35_947, 35_409, 10_950),
    ];
    let streams = states.map(|state| StreamSample { state, ..StreamSample::default() }).to_vec();
    let counts = TcpCounts { segments: 2849, retransmits: 600, busy_us: 4 * SECOND, ..TcpCounts::default() };
    let source = Sample { counts, state: states[1], streams, ..sample(100, &[(Send, 95)], 0) };
    assert_eq!(judge(source, sample(100, &[(Receive, 95)], 0), false).unwrap().limit.stage, Stage::Network);
}

/// What is named of 32 streams, of which 20 have carried nothing after their beginning. Each of `busy` and `one` of the
/// others: its round trip, the shortest, and how far it fluctuates, in microseconds.
fn of_some_idle(busy: [u64; 3], one: [u64; 3]) -> Stage {
    let stream = |number, delivered, [rtt_us, min_rtt_us, rtt_var_us]: [u64; 3]| {
        let state = TcpState { rtt_us, min_rtt_us, rtt_var_us, ..TcpState::default() };
        let counts = TcpCounts { delivered, ..TcpCounts::default() };
        StreamSample { number, counts, state, ..StreamSample::default() }
    };
    let idle = (0..20).map(|number| stream(number, 404, [33_240, 32_506, 10_598]));
    let busy = (20..31).map(|number| stream(number, 2 << 20, busy));
    let streams: Vec<StreamSample> = idle.chain(busy).chain([stream(31, 2 << 20, one)]).collect();
    let counts = TcpCounts { segments: 2_724, retransmits: 143, busy_us: 4 * SECOND, ..TcpCounts::default() };
    let state = TcpState { rtt_us: 52_138, min_rtt_us: 32_830, ..TcpState::default() };
    let source = Sample { counts, state, streams, ..sample(100, &[(Send, 95)], 0) };
    judge(source, sample(100, &[(Receive, 95)], 0), false).unwrap().limit.stage
}

/// Measured: the same, where most of 32 streams carried nothing after their beginning: they tell the trips of then.
#[test]
fn streams_that_carry_nothing_do_not_speak_for_the_path() {
    assert_eq!(of_some_idle([41_500, 32_726, 3_978], [41_500, 32_726, 3_978]), Stage::Network);
}

/// Measured, twice: the same, where the shortest trip that any stream has seen was a long one. What is lost while all
/// wait is what the queue drops. Where one stream that carries as much does not wait, or trips fluctuate by more, there
/// is no queue.
#[test]
fn losses_while_all_streams_wait_are_those_of_a_full_queue() {
    assert_eq!(of_some_idle([38_200, 32_500, 1_200], [36_700, 32_200, 500]), Stage::Network);
    assert_eq!(of_some_idle([38_200, 32_500, 1_200], [33_000, 32_200, 500]), Stage::Loss);
    assert_eq!(of_some_idle([38_200, 32_500, 9_000], [36_700, 32_200, 500]), Stage::Loss);
}

/// Measured: 1,200 files of 24 kB from a disk held to 200 reads a second, 85 ms of processor in six seconds. Brief
/// calls are sampled, and a tenth of the waiting was seen.
#[test]
fn time_that_threads_used_no_processor_for_is_not_work() {
    let mut source = sample(100, &[(Read, 10), (Find, 2)], 0);
    source.processor.streams_us = 62_000;
    let verdict = judge(source, sample(100, &[(Receive, 92)], 0), false).unwrap();
    assert_eq!(verdict.limit.stage, Stage::SourceStorage);
    assert!(verdict.limit.share > 0.75 && verdict.next.is_none_or(|next| next.stage != Stage::SourceProcessors));
    // One whose threads had a processor all the time is held back by it.
    let mut source = sample(100, &[(Read, 10), (Find, 2)], 0);
    source.processor.streams_us = 4 * SECOND * 9 / 10;
    let verdict = judge(source, sample(100, &[(Receive, 92)], 0), false).unwrap();
    assert_eq!(verdict.limit.stage, Stage::SourceProcessors);
    // And one that waits for a processor, or for the hypervisor, too.
    let mut source = sample(100, &[(Read, 10)], 30);
    source.processor.streams_us = SECOND;
    (source.processor.busy_us, source.processor.stolen_us) = (SECOND, SECOND);
    let verdict = judge(source, sample(100, &[(Receive, 92)], 0), false).unwrap();
    assert_eq!(verdict.limit.stage, Stage::SourceProcessors);
}

/// Measured: 94 % and 100 %. Streams that carry little say little beside a stage that keeps them waiting.
#[test]
fn shares_are_parts_of_one_time() {
    let mut destination = sample(6, &[], 0);
    let waited_us = 94 * SECOND / 100;
    destination.stages.set(Work::Sync, StageTime { waited_us, ..StageTime::default() });
    let verdict = judge(sample(6, &[], 0), destination, false).unwrap();
    assert_eq!(verdict.limit.stage, Stage::DestinationStorage);
    let next = verdict.next.map_or(0.0, |next| next.share);
    assert!(verdict.limit.share > 0.85 && verdict.limit.share + next <= 1.0, "{verdict:?}");
    // Both sides are at work at once.
    let verdict = judge(sample(100, &[(Send, 50)], 0), sample(100, &[(Write, 90)], 0), false).unwrap();
    let next = verdict.next.map_or(0.0, |next| next.share);
    assert!(verdict.limit.share + next <= 1.0 + 1e-9, "{verdict:?}");
}

/// Measured: 48 MiB over 100 ms. The window was closed at times while it grew, and most went after the only sample
/// that tells of it.
#[test]
fn connection_that_grows_is_held_back_by_the_round_trip() {
    let sample = |delivered, state| {
        let counts = TcpCounts { delivered, busy_us: SECOND, rwnd_limited_us: SECOND / 3, ..TcpCounts::default() };
        Sample { counts, state, ..sample(100, &[(Send, 95)], 0) }
    };
    let state = TcpState { rtt_us: 103_000, min_rtt_us: 100_000, ..TcpState::default() };
    let state = TcpState { cwnd_bytes: 8 << 20, window_bytes: 6 << 20, ..state };
    let point = |at_us, sample| Point { at_us, error_us: 0, sample };
    let source = [point(SECOND, sample(8 << 20, state)), point(5 * SECOND / 4, sample(48 << 20, TcpState::default()))];
    let received = Sample { carried_us: 4 * SECOND, ..Sample::default() };
    let mut destination = [point(SECOND, received)];
    let waited_us = 95 * 4 * SECOND / 100;
    destination[0].sample.stages.set(Receive, StageTime { waited_us, ..StageTime::default() });
    let before = Sample::default();
    let [source, destination] = [&source[..], &destination[..]].map(|points| Stretch { before: &before, points });
    let verdict = verdict(source, destination, 5 * SECOND / 4, 4, false).unwrap();
    assert_eq!(verdict.limit.stage, Stage::RoundTrip, "{verdict:?}");
}

#[test]
fn verdict_needs_both_ends_and_survives_any_numbers() {
    let before = Sample::default();
    let none = Stretch { before: &before, points: &[] };
    assert_eq!(verdict(none, none, SECOND, 4, false), None);
    assert_eq!(judge(sample(0, &[], 0), sample(0, &[], 0), false), None);
    let mut wild = Sample { carried_us: u64::MAX, ..Sample::default() };
    for work in Work::ALL {
        wild.stages.set(*work, StageTime { worked_us: u64::MAX, waited_us: u64::MAX, calls: u64::MAX });
    }
    wild.counts = TcpCounts::from_values([u64::MAX; 10]);
    wild.state = TcpState::from_values([u64::MAX; 8]);
    wild.processor.starved_us = u64::MAX;
    for (source, destination) in [
        (wild.clone(), wild.clone()),
        (wild.clone(), Sample::default()),
        (Sample::default(), wild.clone()),
        (wild, sample(100, &[(Receive, 95)], 0)),
    ] {
        for memory in [false, true] {
            if let Some(verdict) = judge(source.clone(), destination.clone(), memory) {
                let share = verdict.limit.share;
                assert!((0.0..=1.0).contains(&share), "{verdict:?}");
                assert!(verdict.fact.is_none_or(|fact| !fact.words().is_empty()));
            }
        }
    }
}
