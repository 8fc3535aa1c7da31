//! Where the clock of an end stands on the axis of the command.
//!
//! The command asks an end for its clock, and knows when it asked and when the answer came: the end read its clock at
//! some moment between the two. The middle is taken, and is wrong by at most half the round trip, so the answer with
//! the shortest one is the best. Clocks drift: an old answer's error grows with time, until a new one is better.

/// What two clocks may drift apart, in microseconds a second: quartz has 100 at worst, two of them twice that.
const DRIFT_PPM: u64 = 200;

/// The offset of an end's clock, in microseconds, and how far off it may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffset {
    best: Option<Answer>,
}

/// An answer that was believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answer {
    /// To be added to the end's clock.
    offset_us: i64,
    error_us: u64,
    /// When it came, on the axis.
    at_us: u64,
}

impl Answer {
    fn error_us(&self, now_us: u64) -> u64 {
        let age = now_us.saturating_sub(self.at_us);
        self.error_us.saturating_add((age / 1_000_000).saturating_mul(DRIFT_PPM))
    }
}

impl ClockOffset {
    /// An answer came: when it was asked for and when it came, on the axis, and what the end's clock said.
    pub fn handle_answer(&mut self, asked_us: u64, came_us: u64, clock_us: u64) {
        let error_us = came_us.saturating_sub(asked_us).div_ceil(2);
        let middle = asked_us.saturating_add(error_us);
        let signed = |us: u64| i64::try_from(us).unwrap_or(i64::MAX);
        let answer = Answer { offset_us: signed(middle).saturating_sub(signed(clock_us)), error_us, at_us: came_us };
        if self.best.is_none_or(|best| error_us <= best.error_us(came_us)) {
            self.best = Some(answer);
        }
    }

    /// Where a moment of the end's clock is on the axis, and by how much that may be wrong, both in microseconds;
    /// `None` before the first answer.
    pub fn place(&self, clock_us: u64, now_us: u64) -> Option<(u64, u64)> {
        let best = self.best?;
        Some((clock_us.saturating_add_signed(best.offset_us), best.error_us(now_us)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_round_trip_places_a_clock() {
        let mut clock = ClockOffset::default();
        assert_eq!(clock.place(5, 5), None);
        // The end's clock is 1000 behind the axis. The answer of a slow round trip was read late in it.
        clock.handle_answer(10_000, 90_000, 84_000);
        let (at, error) = clock.place(84_000, 90_000).unwrap();
        assert_eq!((at, error), (50_000, 40_000));
        assert!(at.abs_diff(85_000) <= error);
        clock.handle_answer(100_000, 100_200, 99_110);
        assert_eq!(clock.place(99_110, 100_200), Some((100_100, 100)));
        // A slower one is not believed again, until the other has become old.
        clock.handle_answer(200_000, 210_000, 199_200);
        assert_eq!(clock.place(99_110, 200_000).unwrap().0, 100_100);
        let hour = 3_600_000_000;
        assert_eq!(clock.place(99_110, hour + 100_200).unwrap().1, 100 + 3600 * DRIFT_PPM);
        clock.handle_answer(hour, hour + 2000, hour);
        assert_eq!(clock.place(hour, hour + 2000), Some((hour + 1000, 1000)));
    }

    /// Whatever the two clocks and the network do, the error bound holds.
    #[test]
    fn error_bound_holds_for_any_delay() {
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for behind in [0, 1, 1000, 5_000_000] {
            let mut clock = ClockOffset::default();
            let mut now = 10_000_000;
            for _ in 0..1000 {
                let (there, back) = (next(50_000), next(50_000));
                let read = now + there;
                clock.handle_answer(now, read + back, read - behind);
                now = read + back + next(2_000_000);
                let (at, error) = clock.place(now - behind, now).unwrap();
                assert!(at.abs_diff(now) <= error, "{at} is not {now} ± {error}");
            }
        }
    }

    #[test]
    fn clocks_of_any_value_are_placed_somewhere() {
        for clock_us in [0, 1, u64::MAX / 2, u64::MAX] {
            for (asked, came) in [(0, 0), (9, 3), (u64::MAX, 0), (0, u64::MAX), (u64::MAX, u64::MAX)] {
                let mut clock = ClockOffset::default();
                clock.handle_answer(asked, came, clock_us);
                for now in [0, u64::MAX] {
                    assert!(clock.place(u64::MAX - clock_us, now).is_some());
                }
            }
        }
    }
}
