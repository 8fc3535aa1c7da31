//! Timers against tables, and over clocks that step as they like.

use proptest::prelude::*;

use super::*;
use crate::model::NewTask;

fn at(text: &str) -> Moment {
    Moment(text.parse::<Timestamp>().unwrap().as_microsecond())
}

fn timer(schedule: TimerSchedule, next_run: &str) -> Timer {
    let (id, owner, next_run) = ("t".to_owned(), "ann".to_owned(), Some(at(next_run)));
    let (state, made, task) = (TimerState::Waiting, at("2026-11-23T08:00:00Z"), NewTask::default());
    Timer { id, owner, label: None, schedule, task, state, next_run, runs: 0, last_task: None, made, version: 1 }
}

fn every(seconds: u64) -> TimerSchedule {
    TimerSchedule { every_seconds: Some(seconds), ..TimerSchedule::default() }
}

#[test]
fn timer_first_run_is_start_or_now_or_the_next_of_its_row() {
    let now = at("2026-11-23T08:00:00Z");
    assert_eq!(check(&TimerSchedule::default(), now), Ok(now));
    let start = |text| Some(at(text));
    let later = TimerSchedule { start: start("2026-11-24T00:00:00Z"), ..TimerSchedule::default() };
    assert_eq!(check(&later, now), Ok(at("2026-11-24T00:00:00Z")));
    assert_eq!(check(&every(60), now), Ok(now));
    let past = TimerSchedule { start: start("2026-11-23T07:59:30Z"), ..every(60) };
    assert_eq!(check(&past, now), Ok(at("2026-11-23T08:00:30Z")));
    let cron = TimerSchedule {
        cron: Some("0 3 * * *".to_owned()),
        start: start("2026-12-01T03:00:00Z"),
        ..TimerSchedule::default()
    };
    assert_eq!(check(&cron, now), Ok(at("2026-12-01T03:00:00Z")));
    let berlin = TimerSchedule { zone: Some("Europe/Berlin".to_owned()), start: None, ..cron };
    assert_eq!(check(&berlin, now), Ok(at("2026-11-24T02:00:00Z")));
}

#[test]
fn timer_schedules_that_cannot_be_are_refused() {
    let now = at("2026-11-23T08:00:00Z");
    let cron = TimerSchedule { cron: Some("0 3 * * *".to_owned()), ..TimerSchedule::default() };
    let refused = |schedule: TimerSchedule| check(&schedule, now).unwrap_err();
    assert_eq!(refused(TimerSchedule { every_seconds: Some(60), ..cron.clone() }), ScheduleError::Both);
    assert_eq!(refused(TimerSchedule { zone: Some("UTC".to_owned()), ..every(60) }), ScheduleError::ZoneAlone);
    assert_eq!(refused(every(9)), ScheduleError::TooOften);
    assert_eq!(refused(TimerSchedule { runs: Some(0), ..every(60) }), ScheduleError::Never);
    assert_eq!(refused(TimerSchedule { until: Some(at("2026-11-23T07:00:00Z")), ..every(60) }), ScheduleError::Never);
    assert_eq!(refused(TimerSchedule { cron: Some("0 0 30 2 *".to_owned()), ..cron.clone() }), ScheduleError::Never);
    let zone = "Middle/Earth".to_owned();
    assert_eq!(refused(TimerSchedule { zone: Some(zone.clone()), ..cron.clone() }), ScheduleError::Zone(zone));
    assert!(matches!(refused(TimerSchedule { cron: Some("soon".to_owned()), ..cron }), ScheduleError::Cron(_)));
}

#[test]
fn timer_with_jitter_is_put_off_by_a_time_of_its_own_and_keeps_its_row() {
    let jittered =
        |every_seconds: u64, jitter: u64| TimerSchedule { jitter_seconds: Some(jitter), ..every(every_seconds) };
    assert_eq!(check(&jittered(60, 60), at("2026-11-23T08:00:00Z")), Err(ScheduleError::Jitter { most: 59 }));
    let cron = TimerSchedule { cron: Some("0 3 * * *".to_owned()), ..TimerSchedule::default() };
    let cron = TimerSchedule { jitter_seconds: Some(JITTER_SECONDS_MAX + 1), ..cron };
    assert_eq!(check(&cron, at("2026-11-23T08:00:00Z")), Err(ScheduleError::Jitter { most: 86_399 }));
    let mut timer = timer(jittered(3600, 600), "2026-11-23T09:00:00Z");
    let mut delays = std::collections::BTreeSet::new();
    for hour in 10..20 {
        let now = timer.next_run.expect("a next run");
        let Ok(Step::Run { timer: next, missed: 0, .. }) = step(&timer, now, false) else { panic!() };
        let (row, run) = (at(&format!("2026-11-23T{hour:02}:00:00Z")), next.next_run.expect("a next run"));
        assert_eq!(run, put_off(&timer, row));
        assert!(run >= row && run.since(row) <= Duration::from_secs(600), "{run}");
        delays.insert(run.since(row));
        timer = next;
    }
    assert!(delays.len() > 3, "{delays:?}");
    let other = Timer { id: "other".to_owned(), ..timer.clone() };
    let row = at("2026-11-24T00:00:00Z");
    assert_ne!(put_off(&timer, row), put_off(&other, row));
}

fn cron(text: &str, jitter: u64) -> TimerSchedule {
    TimerSchedule { cron: Some(text.to_owned()), jitter_seconds: Some(jitter), ..TimerSchedule::default() }
}

#[test]
fn timer_jitter_is_less_than_the_smallest_time_between_two_runs_of_its_line() {
    let now = at("2026-11-23T08:20:00Z");
    for (line, most) in [
        ("0 * * * *", 3_599),
        ("* * * * *", 59),
        ("*/25 * * * *", 599),
        ("0 3 * * *", 86_399),
        ("0 3 * * 1", 86_400),
        // 23:00 and 00:00 follow each other in the night from the 15th to the 16th alone.
        ("0 0,23 1,15,16 * *", 3_599),
        ("0 0 29 2 *", 86_400),
        // In Berlin clocks change between the two.
        ("30 1,3 * * *", 7_199),
    ] {
        for zone in [None, Some("Europe/Berlin".to_owned()), Some("Pacific/Apia".to_owned())] {
            let of = |jitter| TimerSchedule { zone: zone.clone(), ..cron(line, jitter) };
            assert!(check(&of(most), now).is_ok(), "{line} {zone:?}");
            assert_eq!(check(&of(most + 1), now), Err(ScheduleError::Jitter { most }), "{line} {zone:?}");
        }
    }
    let refused = check(&cron("0 * * * *", 7_200), now).unwrap_err().to_string();
    assert!(refused.contains("3599 seconds at most"), "{refused}");
}

#[test]
fn timer_with_jitter_loses_no_run_also_where_clocks_change_or_an_older_timer_has_more() {
    // Two hours lie between them, and one in the night in which clocks are set forward.
    let spring = TimerSchedule { zone: Some("Europe/Berlin".to_owned()), ..cron("0 1,3 * * *", 7_199) };
    for (schedule, rows) in [
        (spring, ["2027-03-28T00:00:00Z", "2027-03-28T01:00:00Z", "2027-03-28T23:00:00Z"]),
        (cron("0 * * * *", 3_599), ["2026-11-23T10:00:00Z", "2026-11-23T11:00:00Z", "2026-11-23T12:00:00Z"]),
        (cron("0 * * * *", 7_200), ["2026-11-23T10:00:00Z", "2026-11-23T11:00:00Z", "2026-11-23T12:00:00Z"]),
    ] {
        for number in 0..50 {
            let timer = Timer { id: format!("timer-{number}"), ..timer(schedule.clone(), rows[0]) };
            let runs = rows.map(|row| put_off(&timer, at(row)));
            assert!(runs[0] >= at(rows[0]) && runs[0] < at(rows[1]), "{} {}", timer.id, runs[0]);
            let timer = Timer { next_run: Some(runs[0]), ..timer };
            let Ok(Step::Run { timer, missed: 0, .. }) = step(&timer, runs[0], false) else { panic!() };
            assert_eq!(timer.next_run, Some(runs[1]));
            let Ok(Step::Run { timer, missed: 0, .. }) = step(&timer, runs[1], false) else { panic!() };
            assert_eq!(timer.next_run, Some(runs[2]));
        }
    }
}

#[test]
fn timer_that_runs_beside_its_schedule_keeps_the_run_that_waits() {
    let schedule = TimerSchedule { jitter_seconds: Some(1_800), ..every(3_600) };
    for schedule in [schedule, cron("0 * * * *", 1_800)] {
        for number in 0..20 {
            let base = Timer { id: format!("timer-{number}"), ..timer(schedule.clone(), "2026-11-23T10:00:00Z") };
            let (now, later) = (at("2026-11-23T10:00:01Z"), at("2026-11-23T10:40:00Z"));
            let waiting = put_off(&base, at("2026-11-23T10:00:00Z"));
            let next = put_off(&base, at("2026-11-23T11:00:00Z"));
            let told = |now| match step(&Timer { next_run: Some(now), ..base.clone() }, now, false) {
                Ok(Step::Run { timer, missed: 0, .. }) => timer.next_run,
                other => panic!("{other:?}"),
            };
            assert_eq!(told(now), Some(if waiting > now { waiting } else { next }));
            assert_eq!(told(later), Some(next));
            // Whoever resumes a timer gets the run that waits, too.
            let resumed = |now| run_after(&base, now).unwrap();
            assert_eq!((resumed(now), resumed(later)), (Some(if waiting > now { waiting } else { next }), Some(next)));
        }
    }
    // What has come at once, and was not put off, does not come again.
    let schedule = TimerSchedule { jitter_seconds: Some(3_599), ..every(3_600) };
    let first = timer(schedule, "2026-11-23T08:00:00Z");
    assert_eq!(put_off(&first, first.made), first.made);
    let beside = at("2026-11-23T08:00:01Z");
    for now in [first.made, beside] {
        let Ok(Step::Run { timer, missed: 0, .. }) = step(&Timer { next_run: Some(now), ..first.clone() }, now, false)
        else {
            panic!()
        };
        assert_eq!(timer.next_run, Some(put_off(&first, at("2026-11-23T09:00:00Z"))));
    }
}

#[test]
fn timer_missed_runs_become_one_that_says_so() {
    let timer = timer(every(3600), "2026-11-23T09:00:00Z");
    let Ok(Step::Run { timer, due, missed }) = step(&timer, at("2026-11-23T12:30:00Z"), false) else { panic!() };
    assert_eq!((due, missed, timer.runs), (at("2026-11-23T09:00:00Z"), 3, 1));
    assert_eq!(timer.next_run, Some(at("2026-11-23T13:00:00Z")));
    // Clocks are set back by two hours: the run that was done is not done again.
    assert_eq!(step(&timer, at("2026-11-23T10:30:00Z"), false), Ok(Step::NotDue));
}

#[test]
fn timer_far_behind_is_caught_up_at_once() {
    let timer = timer(every(10), "1970-01-01T00:00:00Z");
    let now = at("2026-11-23T12:30:05Z");
    let Ok(Step::Run { timer, missed, .. }) = step(&timer, now, false) else { panic!() };
    assert!(missed >= MISSED_COUNTED, "{missed}");
    assert!(timer.next_run.is_some_and(|next| next > now && next.since(now) <= Duration::from_secs(10)));
}

#[test]
fn timer_overlap_skips_waits_or_starts_as_told() {
    let now = at("2026-11-23T09:00:00Z");
    let with = |overlap| timer(TimerSchedule { overlap, ..every(3600) }, "2026-11-23T09:00:00Z");
    let next = Some(at("2026-11-23T10:00:00Z"));
    let Ok(Step::Skip { timer, .. }) = step(&with(Overlap::Skip), now, true) else { panic!() };
    assert_eq!((timer.runs, timer.next_run), (0, next));
    assert_eq!(step(&with(Overlap::Wait), now, true), Ok(Step::Wait));
    for (overlap, is_open) in [(Overlap::Start, true), (Overlap::Skip, false), (Overlap::Wait, false)] {
        let Ok(Step::Run { timer, missed: 0, .. }) = step(&with(overlap), now, is_open) else { panic!() };
        assert_eq!((timer.runs, timer.next_run), (1, next));
    }
}

#[test]
fn timer_ends_after_its_runs_and_after_its_end() {
    let now = at("2026-11-23T09:00:00Z");
    for schedule in [
        TimerSchedule { runs: Some(1), ..every(3600) },
        TimerSchedule { until: Some(at("2026-11-23T09:59:59Z")), ..every(3600) },
        TimerSchedule { start: Some(now), ..TimerSchedule::default() },
        TimerSchedule::default(),
    ] {
        let Ok(Step::Run { timer, .. }) = step(&timer(schedule, "2026-11-23T09:00:00Z"), now, false) else { panic!() };
        assert_eq!((timer.state, timer.next_run), (TimerState::Ended, None));
        assert_eq!(step(&timer, now, false), Ok(Step::NotDue));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the clock does, runs have rising numbers and due times, and each due time is run, merged or skipped.
    #[test]
    fn timer_runs_no_time_twice_and_loses_none(
        every_seconds in 10u64..10_000, steps in prop::collection::vec((-5_000i64..20_000, any::<bool>()), 1..60),
        overlap in prop::sample::select(Overlap::ALL.to_vec()),
    ) {
        let start = at("2026-11-23T08:00:00Z");
        let schedule = TimerSchedule { overlap, ..every(every_seconds) };
        let mut timer = Timer { next_run: Some(start), made: start, ..timer(schedule, "2026-11-23T08:00:00Z") };
        let (mut now, mut last_due, mut accounted, mut latest) = (start, Moment(i64::MIN), 0u64, start);
        for (seconds, is_open) in steps {
            now = Moment(now.0 + seconds * 1_000_000);
            latest = latest.max(now);
            let stepped = step(&timer, now, is_open).unwrap();
            let times = |next: &Timer, due: Moment| {
                (next.next_run.unwrap().0 - due.0) as u64 / (every_seconds * 1_000_000)
            };
            let (next, due) = match stepped {
                Step::Run { timer: next, due, missed } => {
                    prop_assert_eq!(next.runs, timer.runs + 1);
                    let merged = times(&next, due) - 1;
                    prop_assert!(missed == merged || (missed < merged && missed >= MISSED_COUNTED), "{} of {}", missed, merged);
                    (next, due)
                }
                Step::Skip { timer: next, due } => {
                    prop_assert_eq!(next.runs, timer.runs);
                    (next, due)
                }
                Step::Wait | Step::NotDue => continue,
            };
            prop_assert!(due > last_due && due <= now && next.next_run.unwrap() > now);
            last_due = due;
            accounted += times(&next, due);
            timer = next;
        }
        let behind = timer.next_run.unwrap();
        let all = (behind.0 - start.0) / (every_seconds as i64 * 1_000_000);
        prop_assert_eq!(accounted, all as u64, "until {}", latest);
    }
}
