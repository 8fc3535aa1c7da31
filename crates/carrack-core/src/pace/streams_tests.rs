//! The controller against models of paths, on a clock of the test's own.

use super::noise::Noise;
use super::*;
use crate::pace::limit::StageTimes;

const MBIT: f64 = 1e6 / 8.0;
const TICK: Duration = Duration::from_millis(500);

/// What so many streams bring together, in bytes a second, and the share of segments that is lost.
type Path = Box<dyn Fn(u16) -> (f64, f64)>;

/// Two hosts with so many processors each.
fn same(processors: usize) -> Processors {
    Processors { source: processors, destination: processors }
}

/// So much for each stream, and so much for all.
fn capped(each: f64, all: f64) -> Path {
    Box::new(move |streams| ((f64::from(streams) * each).min(all), 0.0))
}

/// A transfer over a path, with all of it to do.
struct Run {
    control: StreamControl,
    path: Path,
    /// How far rates are off, as a part of them.
    noise: f64,
    chance: Noise,
    sample: Sample,
    /// What holds it back, as shares of time: waits for the network at both ends.
    network: f64,
    /// And waits for the rate that was asked for.
    pacing: f64,
    /// At every tick: the number that is there, and the rate without noise.
    trace: Vec<(u16, f64)>,
    changes: Vec<(f64, Change)>,
}

impl Run {
    fn new(streams: u16, processors: usize, path: Path) -> Self {
        Self {
            control: StreamControl::new(&Tuning::DEFAULT, streams, same(processors), false),
            path,
            noise: 0.0,
            chance: Noise::new(0),
            sample: Sample::default(),
            network: 0.9,
            pacing: 0.0,
            trace: Vec::new(),
            changes: Vec::new(),
        }
    }

    fn noisy(mut self, noise: f64, seed: u64) -> Self {
        (self.noise, self.chance) = (noise, Noise::new(seed));
        self
    }

    fn seconds(&mut self, seconds: u32) -> &mut Self {
        for _ in 0..seconds * 2 {
            self.tick();
        }
        self
    }

    fn tick(&mut self) {
        let (rate, loss) = (self.path)(self.sample.alive);
        self.trace.push((self.sample.alive, rate));
        // Of one probe, which is four ticks.
        let noise = 1.0 + self.noise * 2.0 * self.chance.next();
        let bytes = (rate * noise.max(0.0) * TICK.as_secs_f64()) as u64;
        let spent = |network: f64, pacing: f64| StageTimes {
            busy: TICK * 4,
            network: TICK.mul_f64(4.0 * network),
            pacing: TICK.mul_f64(4.0 * pacing),
            ..StageTimes::default()
        };
        let sample = &mut self.sample;
        sample.at += TICK;
        sample.delivered += bytes;
        sample.segments += bytes / 1448;
        sample.repeated += (bytes as f64 / 1448.0 * loss) as u64;
        (sample.source, sample.destination) =
            (sample.source.plus(&spent(self.network, self.pacing)), sample.destination.plus(&spent(self.network, 0.0)));
        if let Some(change) = self.control.handle_sample(self.sample) {
            self.changes.push((self.sample.at.as_secs_f64(), change));
        }
        // They are made, or have ended, before the next sample.
        self.sample.alive = self.control.streams();
    }

    /// The rate over the last so many seconds, without noise.
    fn rate(&self, seconds: usize) -> f64 {
        let last = &self.trace[self.trace.len() - 2 * seconds..];
        last.iter().map(|(_, rate)| rate).sum::<f64>() / last.len() as f64
    }

    /// When, since `from`, the rate was first so high.
    fn reaches(&self, rate: f64, from: f64) -> f64 {
        let first = (from * 2.0) as usize;
        let ticks = self.trace[first..].iter().position(|(_, now)| *now >= rate);
        ticks.map_or(f64::INFINITY, |ticks| ticks as f64 / 2.0)
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn streams_eight_of_fifty_fill_four_hundred() {
    let mut run = Run::new(2, 2, capped(50.0 * MBIT, 400.0 * MBIT));
    run.seconds(120);
    assert!(run.reaches(360.0 * MBIT, 0.0) <= 15.0, "{:?}", run.changes);
    assert!((6..=10).contains(&run.control.streams()), "{:?}", run.changes);
    assert!(run.rate(60) > 380.0 * MBIT, "{:?}", run.changes);
}

/// A copy of hours over a path that stays as it is: trials that lead nowhere become rare, and come often again where
/// there is more to be had.
#[test]
fn trials_that_find_nothing_better_become_rarer() {
    let mut run = Run::new(2, 2, capped(50.0 * MBIT, 400.0 * MBIT)).noisy(0.01, 7);
    let changes = |run: &mut Run, seconds| {
        let before = run.changes.len();
        run.seconds(seconds);
        run.changes.len() - before
    };
    run.seconds(300);
    let later = changes(&mut run, 3600);
    assert!(later <= 120, "{later} in an hour: {:?}", run.changes);
    assert!(run.rate(600) > 380.0 * MBIT);
    // Four times as much is free of a sudden.
    run.path = capped(50.0 * MBIT, 1600.0 * MBIT);
    run.seconds(300);
    assert!(run.rate(60) > 1200.0 * MBIT, "{:?}", &run.changes[run.changes.len() - 20..]);
}

#[test]
fn streams_stay_as_they_are_in_the_first_seconds() {
    let mut run = Run::new(2, 64, capped(50.0 * MBIT, 400.0 * MBIT));
    run.seconds(3);
    assert!(run.changes.is_empty(), "{:?}", run.changes);
}

#[test]
fn cap_that_is_halved_is_found_again() {
    let mut run = Run::new(2, 2, capped(50.0 * MBIT, 400.0 * MBIT));
    run.seconds(60);
    run.path = capped(25.0 * MBIT, 400.0 * MBIT);
    run.seconds(60);
    assert!(run.reaches(360.0 * MBIT, 60.0) <= 30.0, "{:?}", run.changes);
    assert!((14..=18).contains(&run.control.streams()), "{:?}", run.changes);
}

/// Three probes of the fallen rate are enough: those before it do not count.
#[test]
fn cap_that_falls_to_a_third_is_found_again() {
    let mut run = Run::new(2, 2, capped(50.0 * MBIT, 400.0 * MBIT));
    run.seconds(60);
    assert_eq!(run.control.streams(), 8);
    run.path = capped(50.0 * MBIT / 3.0, 400.0 * MBIT);
    run.seconds(60);
    assert!(run.reaches(360.0 * MBIT, 60.0) <= 25.0, "{:?}", run.changes);
}

#[test]
fn streams_too_many_at_first_become_fewer_and_lose_nothing() {
    let mut run = Run::new(32, 2, capped(50.0 * MBIT, 400.0 * MBIT));
    run.seconds(120);
    assert!((6..=10).contains(&run.control.streams()), "{:?}", run.changes);
    assert!(run.rate(110) > 380.0 * MBIT, "{:?}", run.changes);
}

#[test]
fn streams_are_soon_few_again_where_one_does_all() {
    let mut run = Run::new(2, 16, capped(1000.0 * MBIT, 1000.0 * MBIT));
    run.seconds(300);
    let most = run.trace.iter().map(|(streams, _)| *streams).max();
    assert!(most.is_some_and(|most| most <= 4), "{:?}", run.changes);
    let few = run.trace.iter().filter(|(streams, _)| *streams <= 3).count();
    assert!(few * 10 >= run.trace.len() * 9, "{:?}", run.changes);
    assert!(run.control.streams() <= 3);
}

#[test]
fn noise_is_not_followed_far() {
    for (noise, share) in [(0.03, 0.93), (0.10, 0.85)] {
        let (mut shares, mut found, mut worst) = (Vec::new(), Vec::new(), f64::INFINITY);
        for seed in 1..=200 {
            let mut run = Run::new(2, 2, capped(50.0 * MBIT, 400.0 * MBIT)).noisy(noise, seed);
            run.seconds(180);
            let kept = run.rate(150) / (400.0 * MBIT);
            worst = worst.min(kept);
            shares.push(kept);
            found.push(f64::from(run.control.streams()));
        }
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        println!("noise {noise}: mean {mean:.3}, worst {worst:.3}, median n {}", median(found.clone()));
        assert!(mean >= share && worst >= 0.6, "noise {noise}: mean {mean}, worst {worst}");
        assert!((6.0..=11.0).contains(&median(found)));
    }
}

/// Each stream's rate follows from the loss, which is the same however many there are: more than 1 % of it,
/// and halving brings half.
#[test]
fn lossy_path_gets_more_streams_and_not_fewer() {
    let path = |loss: f64| -> Path {
        // After Mathis, at 50 ms and segments of 1448 bytes.
        let each = 1.22 * 1448.0 / (0.05 * loss.sqrt());
        Box::new(move |streams| ((f64::from(streams) * each).min(1000.0 * MBIT), loss))
    };
    for loss in [1e-3, 1e-2, 2e-2] {
        let mut run = Run::new(32, 4, path(loss));
        run.seconds(120);
        assert!(run.control.streams() >= 48, "{loss}: {:?}", run.changes);
        let halved = run.changes.iter().filter(|(_, change)| change.reason == Reason::Loss).count();
        assert!(halved <= usize::from(loss > LOSS), "{loss}: {:?}", run.changes);
    }
}

/// A crowded path: what is beyond its queue is lost, and the rate stays what it is.
#[test]
fn loss_of_our_own_making_halves() {
    let crowded = |streams: u16| (400.0 * MBIT, if streams > 12 { 0.002 * f64::from(streams) } else { 0.0 });
    let mut run = Run::new(32, 2, Box::new(crowded));
    run.seconds(60);
    assert_eq!(
        run.changes.iter().find(|(_, change)| change.reason == Reason::Loss).map(|(_, change)| change.streams),
        Some(16)
    );
    assert!(run.control.streams() <= 16, "{:?}", run.changes);
    assert!(run.changes.iter().all(|(_, change)| change.reason != Reason::LossOfPath), "{:?}", run.changes);
}

#[test]
fn growth_that_only_loses_more_is_undone() {
    // One more brings a little, and much of it is sent twice.
    let path = |streams: u16| {
        let share = f64::from(streams) / 16.0;
        (400.0 * MBIT * share.sqrt(), if streams > 16 { 0.05 } else { 0.0 })
    };
    let mut run = Run::new(16, 4, Box::new(path));
    run.seconds(60);
    assert!(run.control.streams() <= 16, "{:?}", run.changes);
}

#[test]
fn busy_processors_are_no_reason_for_more_streams() {
    let mut run = Run::new(2, 4, capped(50.0 * MBIT, 400.0 * MBIT));
    // Both ends work, with all processors.
    run.network = 0.1;
    run.seconds(120);
    assert!(run.changes.is_empty(), "{:?}", run.changes);
    run.network = 0.9;
    run.seconds(60);
    assert!(run.reaches(360.0 * MBIT, 120.0) <= 15.0, "{:?}", run.changes);
}

/// Where streams' threads are the limit, and processors are free for more of them, more are tried.
#[test]
fn idle_processors_are_a_reason_for_more_streams() {
    let mut run = Run::new(2, 16, capped(50.0 * MBIT, 400.0 * MBIT));
    run.network = 0.1;
    run.seconds(60);
    assert!(run.reaches(360.0 * MBIT, 0.0) <= 15.0, "{:?}", run.changes);
    // Enough of them on one host are not enough.
    let one_is_full = Processors { source: 4, destination: 64 };
    let mut run = Run::new(2, 4, capped(50.0 * MBIT, 400.0 * MBIT));
    run.control = StreamControl::new(&Tuning::DEFAULT, 2, one_is_full, false);
    run.network = 0.1;
    run.seconds(60);
    assert!(run.changes.is_empty(), "{:?}", run.changes);
}

#[test]
fn rate_that_was_asked_for_says_nothing_of_streams() {
    let mut run = Run::new(8, 16, capped(50.0 * MBIT, 100.0 * MBIT));
    run.pacing = 0.8;
    run.seconds(120);
    assert!(run.changes.is_empty(), "{:?}", run.changes);
}

/// Each stream brings less than the one before.
#[test]
fn polite_transfer_leaves_more_to_others() {
    let found = |polite: bool| {
        let mut run = Run::new(2, 16, Box::new(|streams| (100.0 * MBIT * f64::from(streams).sqrt(), 0.0)));
        run.control = StreamControl::new(&Tuning::DEFAULT, 2, same(16), polite);
        run.seconds(300);
        run.control.best()
    };
    let (polite, usual) = (found(true), found(false));
    assert!(polite <= 12 && usual >= 24, "{polite} and {usual}");
}

#[test]
fn small_files_and_silence_say_nothing() {
    let mut run = Run::new(2, 16, capped(50.0 * MBIT, 400.0 * MBIT));
    for _ in 0..120 {
        run.sample.items += 100;
        run.tick();
    }
    assert!(run.changes.is_empty(), "{:?}", run.changes);
    let mut run = Run::new(2, 16, capped(0.0, 0.0));
    run.seconds(60);
    assert!(run.changes.is_empty(), "{:?}", run.changes);
}

#[test]
fn streams_are_not_changed_near_the_end() {
    let mut run = Run::new(2, 16, capped(50.0 * MBIT, 400.0 * MBIT));
    // Two streams need 10 s for it: less than it would take to find out, and to gain by it.
    run.sample.left = Some((1000.0 * MBIT) as u64);
    run.seconds(10);
    assert!(run.changes.is_empty(), "{:?}", run.changes);
}

#[test]
fn streams_that_cannot_be_made_are_not_waited_for() {
    let mut run = Run::new(4, 16, capped(50.0 * MBIT, 400.0 * MBIT));
    for _ in 0..120 {
        run.tick();
        run.sample.alive = run.sample.alive.min(5);
    }
    assert!(run.changes.iter().any(|(_, change)| change.reason == Reason::NotMade), "{:?}", run.changes);
    assert!(run.control.streams() <= 5, "{:?}", run.changes);
}

/// The host that took no more takes them later.
#[test]
fn streams_that_could_not_be_made_are_asked_for_again() {
    let mut run = Run::new(4, 16, capped(50.0 * MBIT, 400.0 * MBIT));
    for tick in 0..600 {
        run.tick();
        if tick < 60 {
            run.sample.alive = run.sample.alive.min(5);
        }
    }
    assert!(run.changes.iter().any(|(_, change)| change.reason == Reason::NotMade), "{:?}", run.changes);
    assert!(run.rate(60) > 380.0 * MBIT, "{:?}", run.changes);
}

#[test]
fn streams_stay_within_what_processors_and_politeness_allow() {
    for (processors, most) in [(1, 16), (2, 32), (64, 64), (128, 128)] {
        let mut run = Run::new(2, processors, capped(50.0 * MBIT, f64::INFINITY));
        run.seconds(300);
        let seen = run.trace.iter().map(|(streams, _)| *streams).max();
        assert_eq!(seen, Some(most), "{:?}", run.changes);
    }
    // What was begun with is not taken for too many by itself.
    assert_eq!(StreamControl::new(&Tuning::DEFAULT, 32, same(1), false).most, 32);
}

#[test]
fn streams_taken_away_on_trial_come_back_near_the_end() {
    // Half of them bring half, and the loss is the path's own.
    let mut run = Run::new(8, 2, Box::new(|streams| (f64::from(streams) * 50.0 * MBIT, 0.02)));
    run.control.most = 8;
    while run.changes.is_empty() {
        run.tick();
    }
    assert_eq!((run.control.streams(), run.control.best()), (4, 8), "{:?}", run.changes);
    run.sample.left = Some((1000.0 * MBIT) as u64);
    run.seconds(10);
    assert_eq!(run.control.streams(), 8, "{:?}", run.changes);
}

/// Whatever an end makes up, the number stays within its bounds, and nothing panics.
#[test]
fn samples_that_make_no_sense() {
    let (mut run, mut control) =
        (Run::new(2, 2, capped(0.0, 0.0)), StreamControl::new(&Tuning::DEFAULT, 2, same(2), false));
    let odd = [0, 1, 1 << 20, 1 << 40, u64::MAX / 2, u64::MAX];
    let mut pick = |count: usize| ((run.chance.next() + 6.0) / 12.0 * count as f64) as usize % count;
    for _ in 0..50_000 {
        let time = |number: u64| Duration::from_nanos(number);
        let times = |pick: &mut dyn FnMut(usize) -> usize| StageTimes {
            busy: time(odd[pick(6)]),
            network: time(odd[pick(6)]),
            ..StageTimes::default()
        };
        let sample = Sample {
            at: time(odd[pick(6)]),
            delivered: odd[pick(6)],
            segments: odd[pick(6)],
            repeated: odd[pick(6)],
            alive: if pick(2) == 0 { pick(70) as u16 } else { 2 },
            items: odd[pick(6)],
            left: [None, Some(odd[pick(6)])][pick(2)],
            source: times(&mut pick),
            destination: times(&mut pick),
        };
        control.handle_sample(sample);
        assert!((2..=32).contains(&control.streams()));
    }
}
