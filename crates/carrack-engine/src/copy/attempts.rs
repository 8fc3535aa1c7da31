//! When a session that failed is begun again, after what pause, and when the run is given up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::request::CopyOptions;
use carrack_core::tuning::Tuning;

/// Attempts of one run.
pub struct Attempts {
    retries: u32,
    /// Attempts since something was last gained.
    in_a_row: u32,
    /// Both ends have been reached and linked: what is asked for is possible.
    reached: bool,
    /// Until then what has never been reached is tried again.
    first_until: Instant,
    tuning: Arc<Tuning>,
}

impl Attempts {
    /// The count before the first attempt.
    pub fn new(options: &CopyOptions, tuning: Arc<Tuning>, now: Instant) -> Self {
        let until = [&options.source, &options.destination].map(|end| end.reach.connect_deadline(now));
        let first_until = until[0].max(until[1]);
        Self { retries: options.retries, in_a_row: 0, reached: false, first_until, tuning }
    }

    /// Both ends have been linked. The first time that is a gain.
    pub fn handle_link(&mut self) {
        if !self.reached {
            self.handle_gain();
        }
    }

    /// Something has landed that had not landed before.
    pub fn handle_gain(&mut self) {
        (self.reached, self.in_a_row) = (true, 0);
    }

    /// Which attempt comes next, the first after a gain being 1, and the longest pause before it; `None` to give up.
    pub fn next(&mut self, failure: &Failure, now: Instant) -> Option<(u32, Duration)> {
        let most = if self.reached { self.retries } else { self.retries.min(self.tuning.first_retries) };
        let in_time = self.reached || now < self.first_until;
        if self.in_a_row >= most || !in_time || !self.may_pass(failure) {
            return None;
        }
        self.in_a_row += 1;
        Some((self.in_a_row, longest_pause(&self.tuning, self.in_a_row - 1)))
    }

    /// Attempts in a row that have been made without gain, the one that failed last not counted.
    pub fn in_a_row(&self) -> u32 {
        self.in_a_row
    }

    /// Whether another attempt may meet something else.
    pub fn may_pass(&self, failure: &Failure) -> bool {
        // A host that has run an agent before will do so again, once it is up or the path to it is,
        // or to who knows its name.
        let was_there = self.reached
            && matches!(failure.code, ErrorCode::AgentRefused | ErrorCode::AgentMissing | ErrorCode::HostUnknown);
        // What the command itself could not do is no fault of the path, but its host may soon have room again.
        let may_help = failure.side != Side::Command || failure.code == ErrorCode::ResourceLimit;
        may_help && (failure.code.may_pass() || was_there)
    }
}

/// The longest pause after so many failures before the last one.
pub fn longest_pause(tuning: &Tuning, before: u32) -> Duration {
    tuning.retry_pause.saturating_mul(1 << before.min(16)).min(tuning.retry_pause_max)
}

/// Between half of a pause and all of it, at random: many commands that lost the same node do not come
/// back at the same moment.
pub fn jittered(longest: Duration) -> Duration {
    let mut random = [0; 4];
    // Without randomness the pause is the longest: it only has to differ between commands.
    let part = carrack_sys::host::random_bytes(&mut random).map_or(u32::MAX, |()| u32::from_le_bytes(random));
    longest / 2 + (longest / 2).mul_f64(f64::from(part) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::failure;

    fn lost(code: ErrorCode) -> Failure {
        failure(code, Side::Link, "")
    }

    fn attempts(retries: u32) -> Attempts {
        Attempts::new(&CopyOptions { retries, ..CopyOptions::default() }, Arc::default(), Instant::now())
    }

    fn count(attempts: &mut Attempts, failure: &Failure) -> u32 {
        let now = Instant::now();
        (0..).take_while(|_| attempts.next(failure, now).is_some()).count() as u32
    }

    #[test]
    fn attempts_are_as_many_as_asked_for_and_anew_after_each_gain() {
        let mut attempts = attempts(7);
        assert_eq!(count(&mut attempts, &lost(ErrorCode::ConnectionLost)), Tuning::DEFAULT.first_retries);
        attempts.handle_gain();
        assert_eq!(count(&mut attempts, &lost(ErrorCode::Silence)), 7);
        attempts.handle_gain();
        assert_eq!(count(&mut attempts, &lost(ErrorCode::Busy)), 7);
        assert_eq!(attempts.in_a_row(), 7);
    }

    #[test]
    fn attempts_end_at_what_cannot_pass() {
        for reached in [false, true] {
            let mut attempts = attempts(7);
            if reached {
                attempts.handle_gain();
            }
            for code in ErrorCode::ALL {
                let again = attempts.next(&lost(*code), Instant::now()).is_some();
                let host = matches!(code, ErrorCode::AgentRefused | ErrorCode::AgentMissing | ErrorCode::HostUnknown);
                assert_eq!(again, code.may_pass() || (reached && host), "{} {reached}", code.name());
                attempts.in_a_row = 0;
            }
            let own = failure(ErrorCode::ConnectFailed, Side::Command, "no such program");
            assert!(attempts.next(&own, Instant::now()).is_none());
            let limited = failure(ErrorCode::ResourceLimit, Side::Command, "no thread");
            assert!(attempts.next(&limited, Instant::now()).is_some());
        }
        assert_eq!(count(&mut attempts(0), &lost(ErrorCode::Busy)), 0);
    }

    #[test]
    fn attempts_on_what_was_never_reached_end_in_time() {
        let now = Instant::now();
        let late = now + 2 * CopyOptions::default().source.reach.connect_timeout;
        let mut attempts = attempts(7);
        assert!(attempts.next(&lost(ErrorCode::ConnectFailed), late).is_none());
        attempts.handle_gain();
        assert!(attempts.next(&lost(ErrorCode::ConnectFailed), late).is_some());
    }

    #[test]
    fn attempts_outlive_ten_minutes_without_a_network() {
        let least: Duration =
            (0..carrack_core::tuning::RETRIES).map(|before| longest_pause(&Tuning::DEFAULT, before) / 2).sum();
        let usual = least.mul_f64(1.5);
        assert!(usual > Duration::from_secs(10 * 60), "{usual:?}");
        for before in 0..64 {
            let pause = jittered(longest_pause(&Tuning::DEFAULT, before));
            assert!(
                pause >= longest_pause(&Tuning::DEFAULT, before) / 2
                    && pause <= longest_pause(&Tuning::DEFAULT, before)
            );
        }
    }
}
