//! Guessing is made slow: after a few failures of one user from one network, further tries are refused for a while that
//! doubles. The table is bounded; what has been quiet for longest is forgotten first.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Failures that cost nothing: people mistype.
const FREE: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);
/// Without failures for so long, nothing is held against anybody.
const FORGET: Duration = Duration::from_secs(60 * 60);
const ENTRIES_MAX: usize = 10_000;

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Duration,
}

/// Who failed how often. Times are those of one steady clock.
#[derive(Default)]
pub struct Slow {
    /// By user and network; the user's name alone where none is known, so that a crowd of networks is slowed, too.
    failures: Mutex<HashMap<(String, Option<IpAddr>), Failures>>,
}

impl Slow {
    /// How long this user has to wait before the next try from this address; none: not at all.
    pub fn wait(&self, user: &str, address: Option<IpAddr>, now: Duration) -> Option<Duration> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = failures.get(&(user.to_owned(), address.map(network)))?;
        let pause = pause(failed.count);
        (failed.last + pause).checked_sub(now).filter(|left| !left.is_zero())
    }

    /// Notes a failure.
    pub fn failed(&self, user: &str, address: Option<IpAddr>, now: Duration) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= ENTRIES_MAX {
            failures.retain(|_, failed| now.saturating_sub(failed.last) < FORGET);
        }
        if failures.len() >= ENTRIES_MAX
            && let Some(oldest) = failures.iter().min_by_key(|(_, failed)| failed.last).map(|(key, _)| key.clone())
        {
            failures.remove(&oldest);
        }
        let failed =
            failures.entry((user.to_owned(), address.map(network))).or_insert(Failures { count: 0, last: now });
        if now.saturating_sub(failed.last) >= FORGET {
            failed.count = 0;
        }
        *failed = Failures { count: failed.count.saturating_add(1), last: now };
    }

    /// Notes a success: nothing is held against them any more.
    pub fn succeeded(&self, user: &str, address: Option<IpAddr>) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.remove(&(user.to_owned(), address.map(network)));
    }
}

fn pause(count: u32) -> Duration {
    match count.checked_sub(FREE) {
        None => Duration::ZERO,
        Some(more) => FIRST_PAUSE.saturating_mul(1 << more.min(20)).min(LONGEST_PAUSE),
    }
}

/// The network that an address counts for: whoever has one address of a /64 has all of them.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from_bits(address.to_bits())),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousand_wrong_passwords_take_days() {
        let slow = Slow::default();
        let (address, mut now) = (Some("192.0.2.7".parse().unwrap()), Duration::ZERO);
        for _ in 0..1000 {
            now += slow.wait("ann", address, now).unwrap_or_default();
            assert_eq!(slow.wait("ann", address, now), None);
            slow.failed("ann", address, now);
        }
        assert!(now > Duration::from_secs(10 * 24 * 3600), "{now:?}");
        // Others are not slowed: nobody can lock a user out from elsewhere.
        assert_eq!(slow.wait("bob", address, now), None);
        assert_eq!(slow.wait("ann", Some("192.0.2.8".parse().unwrap()), now), None);
        slow.succeeded("ann", address);
        assert_eq!(slow.wait("ann", address, now), None);
    }

    #[test]
    fn slow_table_is_bounded() {
        let slow = Slow::default();
        for number in 0..ENTRIES_MAX as u32 + 500 {
            slow.failed(&format!("user{number}"), None, Duration::from_secs(u64::from(number)));
        }
        let failures = slow.failures.lock().unwrap();
        assert!(failures.len() <= ENTRIES_MAX);
        assert!(failures.contains_key(&(format!("user{}", ENTRIES_MAX + 499), None)));
    }
}
