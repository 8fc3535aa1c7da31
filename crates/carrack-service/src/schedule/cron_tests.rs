//! The five fields against tables and against a walk over every minute.

use jiff::civil::date;
use proptest::prelude::*;

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

/// The next times after a local one, as text with its offset.
fn times(cron: &str, zone_name: &str, after: &str, count: usize) -> Vec<String> {
    let (cron, zone) = (Cron::parse(cron).unwrap(), zone(zone_name));
    let mut at: Timestamp = after.parse().unwrap();
    let mut times = Vec::new();
    for _ in 0..count {
        at = cron.next(at, &zone).unwrap();
        times.push(at.to_zoned(zone.clone()).strftime("%m-%d %H:%M%z").to_string());
    }
    times
}

#[test]
fn cron_plain_times_follow_each_other() {
    assert_eq!(times("30 2 * * *", "UTC", "2026-11-23T02:30:00Z", 2), ["11-24 02:30+0000", "11-25 02:30+0000"]);
    assert_eq!(
        times("*/20 8-9 * * mon-fri", "UTC", "2026-11-20T09:30:00Z", 3),
        ["11-20 09:40+0000", "11-23 08:00+0000", "11-23 08:20+0000"]
    );
    assert_eq!(
        times("0 0 1,15 * 7", "UTC", "2026-11-01T00:00:00Z", 3),
        ["11-08 00:00+0000", "11-15 00:00+0000", "11-22 00:00+0000"]
    );
    assert_eq!(times("@monthly", "Europe/Berlin", "2026-11-23T00:00:00Z", 1), ["12-01 00:00+0100"]);
    assert_eq!(times("0 12 29 feb *", "UTC", "2026-11-23T00:00:00Z", 1), ["02-29 12:00+0000"]);
}

#[test]
fn cron_time_in_a_gap_comes_at_the_end_of_the_gap() {
    // Clocks in Berlin go from 02:00 to 03:00 on 29 March 2026.
    assert_eq!(
        times("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2),
        ["03-29 03:00+0200", "03-30 02:30+0200"]
    );
    // Two times that fall into the gap, and the one at its end, are one.
    assert_eq!(
        times("0,30 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 3),
        ["03-29 03:00+0200", "03-29 03:30+0200", "03-30 02:00+0200"]
    );
    // What comes each hour comes an hour later.
    assert_eq!(
        times("30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3),
        ["03-29 01:30+0100", "03-29 03:30+0200", "03-29 04:30+0200"]
    );
    // Samoa left out 30 December 2011.
    assert_eq!(times("0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", 1), ["12-31 00:00+1400"]);
}

#[test]
fn cron_time_that_comes_twice_counts_once_unless_it_comes_each_hour() {
    // Clocks in Berlin go from 03:00 to 02:00 on 25 October 2026.
    assert_eq!(
        times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2),
        ["10-25 02:30+0200", "10-26 02:30+0100"]
    );
    assert_eq!(
        times("30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 3),
        ["10-25 02:30+0200", "10-25 02:30+0100", "10-25 03:30+0100"]
    );
}

#[test]
fn cron_day_that_never_comes_is_none() {
    let cron = Cron::parse("0 0 30 2 *").unwrap();
    let after: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(cron.next(after, &zone("UTC")), None);
    assert_eq!(cron.next(after, &zone("Europe/Berlin")), None);
}

#[test]
fn cron_texts_that_are_none_are_refused_with_the_field() {
    for (text, part) in [
        ("", "five are needed"),
        ("* * * *", "has 4 fields"),
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of the month"),
        ("* * * 13 *", "month"),
        ("* * * * 8", "day of the week"),
        ("5-1 * * * *", "5 is more than 1"),
        ("*/0 * * * *", "step"),
        ("*/x * * * *", "step"),
        ("1,,2 * * * *", "minute"),
        ("-1 * * * *", "minute"),
        ("+1 * * * *", "minute"),
        ("* * * foo *", "month"),
        ("@reboot", "five are needed"),
    ] {
        let error = Cron::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text:?}: {error}");
    }
}

/// A field as text, and the numbers that it means.
fn any_field(least: u8, most: u8) -> impl Strategy<Value = (String, Vec<u8>)> {
    let part = prop_oneof![
        (1..=most).prop_map(move |step| (format!("*/{step}"), (least..=most).step_by(step.into()).collect::<Vec<_>>())),
        (least..=most).prop_map(|number| (number.to_string(), vec![number])),
        (least..=most, least..=most, 1..=most).prop_map(|(a, b, step)| {
            let (from, until) = (a.min(b), a.max(b));
            (format!("{from}-{until}/{step}"), (from..=until).step_by(step.into()).collect())
        }),
    ];
    prop::collection::vec(part, 1..4).prop_map(|parts| {
        let (texts, numbers): (Vec<_>, Vec<Vec<u8>>) = parts.into_iter().unzip();
        (texts.join(","), numbers.concat())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Minute by minute, the plain way, over two days, in a zone that sets its clocks on the first of them or on none.
    #[test]
    fn cron_finds_what_a_walk_over_every_minute_finds(
        minute in any_field(0, 59), hour in any_field(0, 23), day in 0..4usize,
        zone_name in prop_oneof![Just("UTC"), Just("Europe/Berlin"), Just("Australia/Lord_Howe")],
    ) {
        let start = [date(2026, 3, 28), date(2026, 10, 24), date(2026, 4, 4), date(2026, 6, 1)][day];
        let zone = zone(zone_name);
        let cron = Cron::parse(&format!("{} {} * * *", minute.0, hour.0)).unwrap();
        let from = start.at(12, 0, 0, 0).to_zoned(zone.clone()).unwrap().timestamp();
        let each_hour = hour.0.starts_with('*');
        let matches = |at: DateTime| minute.1.contains(&(at.minute() as u8)) && hour.1.contains(&(at.hour() as u8));
        let mut expected = Vec::new();
        let mut latest = from.to_zoned(zone.clone()).datetime();
        for n in 1..=2 * 24 * 60 {
            let at = from + SignedDuration::from_mins(n);
            let local = at.to_zoned(zone.clone()).datetime();
            // Times that the wall clock has jumped over, and times that it shows once more.
            let mut due = matches(local) && (each_hour || local > latest);
            let mut skipped = latest + 1.minute();
            while skipped < local {
                due |= !each_hour && matches(skipped);
                skipped += 1.minute();
            }
            latest = latest.max(local);
            if due {
                expected.push(at);
            }
        }
        let mut found = Vec::new();
        let mut at = from;
        while let Some(next) = cron.next(at, &zone).filter(|next| *next <= from + SignedDuration::from_hours(48)) {
            prop_assert!(next > at);
            found.push(next);
            at = next;
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn cron_takes_any_text_without_panic(text in "[0-9*/,\\- a-z]{0,30}") {
        if let Ok(cron) = Cron::parse(&text) {
            cron.next(Timestamp::UNIX_EPOCH, &TimeZone::UTC);
        }
    }
}
