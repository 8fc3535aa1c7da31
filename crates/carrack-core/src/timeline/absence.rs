//! Time in which nothing came through between the hosts: a link that was away, a session that was lost.

use super::stretch::Stretch;
use super::{Sample, Verdict};
use crate::pace::limit::{Limit, Stage};

/// Less without a byte may be a late acknowledgement, in microseconds.
const AWAY_MIN_US: u64 = 3_000_000;

/// How long a source waited for acknowledgements, and none came, in microseconds: stretches of some seconds, in which
/// bytes were under way.
pub fn away_us(source: Stretch<'_>) -> u64 {
    let (mut before, mut since, mut away_us) = (source.before, None, 0);
    let mut end = |since: &mut Option<u64>, at_us: u64| {
        let lasted = since.take().map_or(0, |since| at_us.saturating_sub(since));
        if lasted >= AWAY_MIN_US {
            away_us += lasted;
        }
    };
    let mut last_us = 0;
    for point in source.points {
        if is_away(before, &point.sample, since.is_some()) {
            since.get_or_insert(last_us);
        } else {
            end(&mut since, last_us);
        }
        (before, last_us) = (&point.sample, point.at_us);
    }
    end(&mut since, last_us);
    away_us
}

/// Whether bytes were under way between two samples, and none was acknowledged. Streams that are given up meanwhile
/// have nothing under way any more, and yet nothing comes through.
fn is_away(before: &Sample, after: &Sample, was_away: bool) -> bool {
    let delivered = after.counts.delivered.saturating_sub(before.counts.delivered);
    delivered == 0 && before.counts.delivered > 0 && (was_away || after.state.in_flight_bytes > 0)
}

/// What held a copy back that had no link for a part of its time: the link, if that took longer than any stage.
pub fn with_absence(verdict: Option<Verdict>, away_us: u64, all_us: u64) -> Option<Verdict> {
    let away = away_us as f64 / all_us.max(1) as f64;
    if away_us < AWAY_MIN_US || away <= 0.0 {
        return verdict;
    }
    let away = Limit { stage: Stage::NoLink, share: away.min(1.0) };
    let Some(known) = verdict else { return Some(Verdict { limit: away, fact: None, next: None }) };
    // What the stages took is a part of the rest.
    let of_all = |limit: Limit| Limit { share: limit.share * (1.0 - away.share), ..limit };
    let (limit, next) = (of_all(known.limit), known.next.map(of_all));
    if away.share > limit.share {
        return Some(Verdict { limit: away, fact: None, next: Some(limit) });
    }
    let next = next.filter(|next| next.share > away.share).or(Some(away));
    Some(Verdict { limit, next, ..known })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{Point, TcpCounts, TcpState};

    const SECOND: u64 = 1_000_000;

    fn points(delivered: &[u64], in_flight_bytes: u64) -> Vec<Point> {
        let point = |(second, delivered): (usize, &u64)| {
            let counts = TcpCounts { delivered: *delivered, ..TcpCounts::default() };
            let state = TcpState { in_flight_bytes, ..TcpState::default() };
            let sample = Sample { counts, state, ..Sample::default() };
            Point { at_us: (second as u64 + 1) * SECOND, error_us: 0, sample }
        };
        delivered.iter().enumerate().map(point).collect()
    }

    #[test]
    fn link_is_away_while_bytes_are_under_way_and_none_is_acknowledged() {
        let before = Sample::default();
        let away = |delivered: &[u64], in_flight| {
            let points = points(delivered, in_flight);
            away_us(Stretch { before: &before, points: &points }) / SECOND
        };
        assert_eq!(away(&[5, 9, 9, 9, 9, 9, 12, 15], 100), 4);
        assert_eq!(away(&[5, 9, 9, 9, 9, 9, 9], 100), 5, "until the end");
        let mut given_up = points(&[5, 9, 9, 9, 9, 9, 12], 100);
        given_up[4].sample.state.in_flight_bytes = 0;
        assert_eq!(away_us(Stretch { before: &before, points: &given_up }) / SECOND, 4);
        // A receiver that takes nothing has nothing under way; a moment is none; before the first byte there is none.
        assert_eq!(away(&[5, 9, 9, 9, 9, 9, 12], 0), 0);
        assert_eq!(away(&[5, 9, 9, 9, 12, 12, 13], 100), 0);
        assert_eq!(away(&[0, 0, 0, 0, 0, 3], 100), 0);
    }

    #[test]
    fn absence_is_named_if_it_took_longest() {
        let verdict = |share| {
            let limit = Limit { stage: Stage::Network, share };
            let next = Some(Limit { stage: Stage::SourceStorage, share: 1.0 - share });
            Some(Verdict { limit, fact: None, next })
        };
        let named = |away: u64, share| {
            let found = with_absence(verdict(share), away * SECOND, 50 * SECOND).unwrap();
            let next = found.next.unwrap();
            assert!(found.limit.share + next.share <= 1.0 + 1e-9, "{found:?}");
            (found.limit.stage, next.stage)
        };
        assert_eq!(named(45, 0.9), (Stage::NoLink, Stage::Network));
        assert_eq!(named(10, 0.9), (Stage::Network, Stage::NoLink));
        assert_eq!(named(5, 0.6), (Stage::Network, Stage::SourceStorage));
        assert_eq!(with_absence(verdict(0.9), 2 * SECOND, 50 * SECOND), verdict(0.9));
        assert_eq!(with_absence(None, 45 * SECOND, 50 * SECOND).map(|one| one.limit.stage), Some(Stage::NoLink));
    }
}
