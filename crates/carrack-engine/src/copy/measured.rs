//! The timeline of a run: what both ends measure is placed on one axis, added up over the sessions, kept and told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::failure::{Failure, Side};
use carrack_core::pace::limit::{StepDown, step_down};
use carrack_core::report::{EndSample, SessionEnds as EndsTold};
use carrack_core::timeline::{
    ClockOffset, Happened, Point, Sample, Start, StartStep, StepTaken, Stretch, Timeline, Verdict, away_us, verdict,
    with_absence,
};
use carrack_core::tuning::Tuning;
use carrack_core::wire::control::{Ask, Tell};

use super::connect::Link;
use super::ends::Ends;
use crate::end::{EndId, Incoming};

/// Clocks are asked for as often as this once a session has run for a moment, one question behind the answer to the
/// other: the best of a few round trips is close to the shortest. Until then, what the ends said in their greetings has
/// to do.
const FIRST_QUESTIONS: u32 = 4;

/// Samples that the latest stretch is made of, with some to spare.
const RECENT: usize = 32;

/// Less between two samples says nothing of a rate, in seconds.
const INTERVAL_MIN: f64 = 0.25;

/// What is known of one end's measuring.
#[derive(Debug, Default)]
struct OneEnd {
    clock: ClockOffset,
    /// The last sample of the sessions before.
    before: Option<Sample>,
    /// The last sample of this one, with those before.
    last: Option<Sample>,
    /// The question for its clock that is out: its number, and when it was asked.
    asked: Option<(u64, u64)>,
    /// The newest samples, without each stream by itself; a long timeline is thinned.
    recent: Vec<Point>,
    answers: u32,
    due: Option<Instant>,
}

/// The timeline of a run, while it grows.
pub struct Measured {
    start: Instant,
    tuning: Arc<Tuning>,
    session: u32,
    /// When the session began, and how long those before it took, in microseconds.
    session_us: u64,
    moving_us: u64,
    /// How long there was no session, between two.
    apart_us: u64,
    /// The number of streams that is wanted, since when, and how long how many were wanted before, in microseconds of
    /// one stream.
    streams: u16,
    streams_since_us: u64,
    streams_us: u64,
    timeline: Timeline,
    /// How the session began.
    steps: Start,
    source: OneEnd,
    destination: OneEnd,
}

impl Measured {
    /// Begins with the run: its axis has its zero there.
    pub fn new(tuning: Arc<Tuning>, start: Instant) -> Self {
        let (timeline, steps, source, destination) = Default::default();
        let (session, session_us, moving_us, apart_us) = Default::default();
        let (streams, streams_since_us, streams_us) = Default::default();
        Self {
            start,
            tuning,
            session,
            session_us,
            moving_us,
            apart_us,
            streams,
            streams_since_us,
            streams_us,
            timeline,
            steps,
            source,
            destination,
        }
    }

    /// The ends of another session are about to be reached.
    pub fn reach(&mut self, now: Instant) {
        self.steps = Start::new(self.at(now));
    }

    /// A step of the session's start was taken.
    pub fn step(&mut self, side: Side, step: StartStep, at: Instant) {
        self.steps.handle_step(side, step, self.at(at), 0);
    }

    /// A session begins, and both ends are there, with a link between them; what they are.
    pub fn session(&mut self, session: u32, link: &Link, ends: &Ends, now: Instant) -> EndsTold {
        if session > 0 {
            self.apart_us = self.apart_us.saturating_add(self.at(now).saturating_sub(self.session_us));
        }
        self.session = session;
        self.session_us = self.at(now);
        self.steps.handle_round_trip(u64::try_from(link.round_trip.as_micros()).unwrap_or(u64::MAX));
        for end in [&ends.source, &ends.destination] {
            end.steps.iter().for_each(|(step, at)| self.step(end.id.side(), *step, *at));
        }
        self.step(Side::Link, StartStep::Link, now);
        for (end, facts) in [(&mut self.source, &ends.source), (&mut self.destination, &ends.destination)] {
            let before = end.last.take().or_else(|| end.before.take());
            let due = Some(now + self.tuning.unmeasured);
            *end = OneEnd { before, due, ..OneEnd::default() };
            if let Some(clock_us) = facts.welcome.clock_us {
                let (asked, came) = facts.greeted;
                end.clock.handle_answer(micros(self.start, asked), micros(self.start, came), clock_us);
            }
        }
        self.mark(Happened::Session { streams: link.report.streams }, now);
        let [source, destination] = [&ends.source, &ends.destination].map(|end| end.facts());
        EndsTold { session, source, destination }
    }

    /// When [`Measured::work`] next has something to do.
    pub fn due(&self) -> Option<Instant> {
        let due = |end: &OneEnd| end.due.filter(|_| end.asked.is_none());
        [due(&self.source), due(&self.destination)].into_iter().flatten().min()
    }

    /// Asks the ends for their clocks, if it is time to.
    ///
    /// # Errors
    /// When a connection has ended.
    pub fn work(&mut self, ends: &mut Ends, now: Instant) -> Result<(), Failure> {
        let at = self.at(now);
        for id in [EndId::Source, EndId::Destination] {
            let end = self.end(id);
            if end.asked.is_none() && end.due.is_some_and(|due| now >= due) {
                end.asked = Some((ends.get(id).ask(Ask::Clock)?, at));
            }
        }
        Ok(())
    }

    /// Takes an answer, if it is one that was asked for here.
    pub fn handle_answer(&mut self, incoming: &Incoming, now: Instant) -> bool {
        let (at, pause) = (self.at(now), self.tuning.clock_interval);
        let end = self.end(incoming.end);
        let Some((_, asked_us)) = end.asked.filter(|(request, _)| *request == incoming.request) else { return false };
        if let Ok(Tell::Clock(clock_us)) = incoming.tell {
            end.clock.handle_answer(asked_us, at, clock_us);
        }
        (end.asked, end.answers) = (None, end.answers + 1);
        end.due = Some(if end.answers < FIRST_QUESTIONS { now } else { now + pause });
        true
    }

    /// An end has measured something; where that belongs.
    pub fn handle_sample(&mut self, id: EndId, mut sample: Sample, now: Instant) -> EndSample {
        let (at, session) = (self.at(now), self.session);
        let steps = std::mem::take(&mut sample.steps);
        let end = self.end(id);
        let sample = match &end.before {
            Some(before) => {
                // A source counts what the sessions before have brought along; a destination what it has named.
                let named = if id == EndId::Destination { before.items } else { 0 };
                Sample { items: sample.items.saturating_add(named), ..sample }.after(before)
            }
            None => sample,
        };
        // Without an answer it was measured at some time before now.
        let (at_us, error_us) = end.clock.place(sample.at_us, at).unwrap_or((at, at));
        end.last = Some(Sample { streams: Vec::new(), ..sample.clone() });
        // What an end says of its clock puts nothing into the future.
        let point = Point { at_us: at_us.min(at), error_us, sample };
        let end = self.end(id);
        if end.recent.len() >= RECENT {
            end.recent.remove(0);
        }
        let sample = Sample { streams: Vec::new(), ..point.sample.clone() };
        end.recent.push(Point { at_us: point.at_us, error_us, sample });
        self.timeline.push(id.side(), point.clone());
        for taken in steps {
            let (at_us, error_us) = self.end(id).clock.place(taken.at_us, at).unwrap_or((at, at));
            self.steps.handle_step(id.side(), taken.step, at_us.min(at), error_us);
        }
        self.steps.handle_end(id.side());
        EndSample { side: id.side(), session, point }
    }

    /// The steps of the session's start that are not told yet; `over`: nothing more of them will come.
    pub fn take_steps(&mut self, over: bool) -> Vec<StepTaken> {
        let steps = self.steps.take(over);
        for taken in &steps {
            self.timeline.mark(taken.at_us, Happened::Step { side: taken.side, step: taken.step });
        }
        steps
    }

    /// The session is over: what comes until the next one begins is nobody's time.
    pub fn end_session(&mut self, now: Instant) {
        let at = self.at(now);
        self.moving_us = self.moving_us.saturating_add(at.saturating_sub(self.session_us));
        self.session_us = at;
        self.count_streams(at, 0);
    }

    /// Marks what happened.
    pub fn mark(&mut self, what: Happened, now: Instant) {
        let at = self.at(now);
        if let Happened::Session { streams } | Happened::Streams { streams, .. } = what {
            self.count_streams(at, streams);
        }
        self.timeline.mark(at, what);
    }

    /// From now on another number of streams is wanted.
    fn count_streams(&mut self, at: u64, streams: u16) {
        self.streams_us = self.streams_us.saturating_add(self.streams_us_since(at));
        (self.streams, self.streams_since_us) = (streams, at);
    }

    fn streams_us_since(&self, at: u64) -> u64 {
        at.saturating_sub(self.streams_since_us).saturating_mul(self.streams.into())
    }

    /// What held the run back so far: in all of it, or since a while ago. `None` where an end does not tell, and where
    /// it was too little to tell. `memory`: both ends are in one process.
    pub fn verdict(&self, over: Option<Duration>, memory: bool, now: Instant) -> Option<Verdict> {
        let nothing = Sample::default();
        let Some(over) = over else {
            let [source, destination] = [Side::Source, Side::Destination].map(|side| self.timeline.series(side));
            let (source, destination) = (source?.points(), destination?.points());
            // A pause between two sessions is nobody's time.
            let span = self.moving_us.saturating_add(self.at(now).saturating_sub(self.session_us));
            let stretch = |points| Stretch { before: &nothing, points };
            let all_us = self.streams_us.saturating_add(self.streams_us_since(self.at(now)));
            let mean = all_us.checked_div(span).map_or(self.streams, |mean| u16::try_from(mean).unwrap_or(u16::MAX));
            let known = verdict(stretch(source), stretch(destination), span, mean, memory);
            return with_absence(known, self.away_us(), span.saturating_add(self.apart_us));
        };
        let since = self.at(now).saturating_sub(u64::try_from(over.as_micros()).unwrap_or(u64::MAX));
        let [source, destination] = [&self.source, &self.destination].map(|end| {
            let first = end.recent.iter().position(|point| point.at_us > since).unwrap_or(end.recent.len());
            let before = first.checked_sub(1).and_then(|before| end.recent.get(before));
            Stretch { before: before.map_or(&nothing, |point| &point.sample), points: &end.recent[first..] }
        });
        verdict(source, destination, self.at(now) - since, self.streams, memory)
    }

    /// How long nothing came through between the hosts, in microseconds: within sessions, and between them.
    pub fn away_us(&self) -> u64 {
        let points = self.timeline.series(Side::Source).map_or(&[][..], |source| source.points());
        away_us(Stretch { before: &Sample::default(), points }).saturating_add(self.apart_us)
    }

    /// Where the rate of the latest samples fell, how long ago, and from what to what: by what has landed. There
    /// must have been so many seconds before it.
    pub fn fall(&self, before_seconds: f64, now: Instant) -> Option<(Duration, StepDown)> {
        let end = if self.destination.recent.is_empty() { &self.source } else { &self.destination };
        let first = end.recent.first()?;
        let carried = end.before.as_ref().map_or(0, |before| before.bytes);
        let start = (self.session_us, carried);
        // Of a long session the beginning is not there any more.
        let start = Some(start).filter(|(at_us, _)| end.recent.len() < RECENT && *at_us < first.at_us);
        let points: Vec<(u64, u64)> =
            start.into_iter().chain(end.recent.iter().map(|point| (point.at_us, point.sample.bytes))).collect();
        // An interval of a moment, at the end of a session, has no rate.
        let intervals: Vec<(f64, f64)> =
            points.windows(2).map(interval).filter(|(seconds, _)| *seconds >= INTERVAL_MIN).collect();
        let step = step_down(&intervals, before_seconds)?;
        let after: f64 = intervals.iter().map(|(seconds, _)| seconds).sum::<f64>() - step.at;
        let (last_us, _) = points.last()?;
        let since = Duration::from_micros(self.at(now).saturating_sub(*last_us)) + Duration::from_secs_f64(after);
        Some((since, step))
    }

    /// Hands the timeline out, as far as it goes.
    pub fn take_timeline(&mut self) -> Timeline {
        std::mem::take(&mut self.timeline)
    }

    fn at(&self, now: Instant) -> u64 {
        micros(self.start, now)
    }

    fn end(&mut self, id: EndId) -> &mut OneEnd {
        match id {
            EndId::Source => &mut self.source,
            EndId::Destination => &mut self.destination,
        }
    }
}

/// Seconds between two samples, and bytes.
fn interval(pair: &[(u64, u64)]) -> (f64, f64) {
    let [(from_us, before), (to_us, after)] = [pair[0], pair[1]];
    (to_us.saturating_sub(from_us) as f64 / 1e6, after.saturating_sub(before) as f64)
}

/// From a moment to a later one.
fn micros(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use carrack_core::timeline::StepTime;

    use super::*;

    fn sample(at_us: u64, bytes: u64) -> Sample {
        Sample { at_us, bytes, ..Sample::default() }
    }

    fn measured(start: Instant) -> Measured {
        let mut measured = Measured::new(Arc::default(), start);
        (measured.source.due, measured.destination.due) = (Some(start), Some(start));
        measured
    }

    /// As a session's beginning does it.
    fn next_session(measured: &mut Measured) {
        for end in [&mut measured.source, &mut measured.destination] {
            let before = end.last.take().or_else(|| end.before.take());
            *end = OneEnd { before, ..OneEnd::default() };
        }
        measured.session += 1;
    }

    #[test]
    fn samples_of_both_ends_stand_on_one_axis() {
        let start = Instant::now();
        let after = |micros| start + Duration::from_micros(micros);
        let mut measured = measured(start);
        // The source's clock began 300 ms before the axis, the destination's 200 ms after it.
        for (end, request, clock) in [(EndId::Source, 5, 1_300_100), (EndId::Destination, 9, 800_100)] {
            measured.end(end).asked = Some((request, 1_000_000));
            let answer = |request| Incoming { end, request, tell: Ok(Tell::Clock(clock)) };
            assert!(!measured.handle_answer(&answer(77), after(1_000_100)), "asked by somebody else");
            assert!(measured.handle_answer(&answer(request), after(1_000_200)));
            assert!(!measured.handle_answer(&answer(request), after(1_000_300)), "answered twice");
        }
        let source = measured.handle_sample(EndId::Source, sample(2_300_000, 7), after(2_500_000));
        let destination = measured.handle_sample(EndId::Destination, sample(1_800_000, 6), after(2_000_500));
        assert_eq!((source.point.at_us, source.side), (2_000_000, Side::Source));
        assert_eq!((destination.point.at_us, destination.side), (2_000_000, Side::Destination));
        assert!(source.point.error_us >= 100 && source.point.error_us < 1000, "{}", source.point.error_us);
        // A clock that leaps ahead puts nothing into the future, and one that goes back makes no disorder.
        let leap = measured.handle_sample(EndId::Source, sample(u64::MAX, 8), after(3_000_000));
        assert_eq!(leap.point.at_us, 3_000_000);
        measured.handle_sample(EndId::Source, sample(0, 9), after(3_500_000));
        let points = measured.timeline.series(Side::Source).unwrap().points();
        assert!(points.is_sorted_by_key(|point| point.at_us) && points.len() == 2);
    }

    #[test]
    fn fall_of_the_rate_is_placed_by_what_landed() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut measured = measured(start);
        let mut landed = 0;
        for second in 1..=16 {
            landed += if second <= 5 { 48 } else { 8 };
            measured.handle_sample(EndId::Source, sample(second * 1_000_000, 2 * landed), after(second));
            measured.handle_sample(EndId::Destination, sample(second * 1_000_000, landed), after(second));
        }
        let (since, step) = measured.fall(2.5, after(16)).unwrap();
        assert_eq!((since.as_secs(), step.before.round(), step.after.round()), (11, 48.0, 8.0));
    }

    /// By each end's own clock, and only once both have told.
    #[test]
    fn steps_of_both_ends_stand_on_one_axis() {
        let start = Instant::now();
        let after = |micros| start + Duration::from_micros(micros);
        let mut measured = measured(start);
        measured.reach(start);
        measured.step(Side::Link, StartStep::Link, after(900));
        measured.source.clock.handle_answer(0, 200, 5100);
        measured.destination.clock.handle_answer(0, 200, 100);
        let told = |step, at_us| Sample { steps: vec![StepTime { step, at_us }], ..sample(9000, 1) };
        let placed = measured.handle_sample(EndId::Source, told(StartStep::List, 5600), after(9000));
        assert!(placed.point.sample.steps.is_empty() && measured.take_steps(false).is_empty());
        measured.handle_sample(EndId::Destination, told(StartStep::Write, 1000), after(9000));
        let steps = measured.take_steps(false);
        let steps: Vec<_> =
            steps.iter().map(|taken| (taken.side, taken.at_us, taken.took_us, taken.error_us)).collect();
        assert_eq!(
            steps,
            [(Side::Source, 600, 600, 100), (Side::Link, 900, 300, 0), (Side::Destination, 1000, 100, 100)]
        );
        assert_eq!(measured.timeline.marks().len(), 3);
    }

    #[test]
    fn sessions_add_up_on_the_timeline() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut measured = measured(start);
        measured.handle_sample(EndId::Source, sample(1, 100), after(1));
        measured.handle_sample(EndId::Source, sample(2, 250), after(2));
        next_session(&mut measured);
        // One that told nothing loses nothing of those before.
        next_session(&mut measured);
        let told = measured.handle_sample(EndId::Source, sample(1, 30), after(5));
        assert_eq!((told.session, told.point.sample.bytes), (2, 280));
        assert_eq!(told.point.error_us, 5_000_000, "its clock is not known");
        let destination = measured.handle_sample(EndId::Destination, sample(1, 30), after(5));
        assert_eq!(destination.point.sample.bytes, 30);
    }

    #[test]
    fn clocks_are_asked_for_often_at_first() {
        let start = Instant::now();
        let mut measured = measured(start);
        for request in 0..6 {
            assert!(measured.due().is_some());
            (measured.source.asked, measured.destination.due) = (Some((request, 0)), None);
            assert_eq!(measured.due(), None, "one question is out");
            let answer = Incoming { end: EndId::Source, request, tell: Ok(Tell::Clock(0)) };
            measured.handle_answer(&answer, start);
            let wait = measured.due().unwrap() - start;
            assert_eq!(wait > Duration::ZERO, request >= 3, "{request}: {wait:?}");
        }
    }
}
