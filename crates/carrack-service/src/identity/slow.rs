//! Guessing is made slow: after a few failures of one user from one network, further tries are refused for a while that
//! doubles. A crowd of networks has a bound for each user, too; networks from which the user has logged in before are
//! outside it, so that a crowd does not lock the user out there. The tables are bounded; what has been quiet for
//! longest is forgotten first.

use carrack_engine::sync::lock;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Mutex;
use std::time::Duration;

/// Failures that cost nothing: people mistype.
const FREE: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);
/// Without failures for so long, nothing is held against anybody.
const FORGET: Duration = Duration::from_secs(60 * 60);
const ENTRIES_MAX: usize = 10_000;
/// Wrong passwords of one user from networks that are new to them: at once, and how often one more.
const NEW_NETWORKS_FREE: u32 = 20;
const NEW_NETWORKS_EVERY: Duration = Duration::from_secs(60);

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
    /// When a user last logged in from a network.
    logins: Mutex<HashMap<(String, Option<IpAddr>), Duration>>,
    /// Until when the wrong passwords of a user's new networks are paid for, at one each [`NEW_NETWORKS_EVERY`].
    crowds: Mutex<HashMap<String, Duration>>,
}

impl Slow {
    /// How long this user has to wait before the next try from this address; none: not at all.
    pub fn wait(&self, user: &str, address: Option<IpAddr>, now: Duration) -> Option<Duration> {
        let key = (user.to_owned(), address.map(network));
        let of_crowd = if lock(&self.logins).contains_key(&key) { None } else { self.crowd(user, now) };
        let failed = lock(&self.failures).get(&key).copied();
        let own = failed.and_then(|failed| (failed.last + pause(failed.count)).checked_sub(now));
        own.max(of_crowd).filter(|left| !left.is_zero())
    }

    /// How long networks that are new to a user have to wait.
    fn crowd(&self, user: &str, now: Duration) -> Option<Duration> {
        let paid = lock(&self.crowds).get(user).copied()?;
        paid.checked_sub(now + (NEW_NETWORKS_FREE - 1) * NEW_NETWORKS_EVERY)
    }

    /// Notes a failure.
    pub fn failed(&self, user: &str, address: Option<IpAddr>, now: Duration) {
        let key = (user.to_owned(), address.map(network));
        if !lock(&self.logins).contains_key(&key) {
            let mut crowds = lock(&self.crowds);
            make_room(&mut crowds, |paid| *paid);
            let paid = crowds.entry(key.0.clone()).or_insert(now);
            *paid = now.max(*paid) + NEW_NETWORKS_EVERY;
        }
        let mut failures = lock(&self.failures);
        if failures.len() >= ENTRIES_MAX {
            failures.retain(|_, failed| now.saturating_sub(failed.last) < FORGET);
        }
        make_room(&mut failures, |failed| failed.last);
        let failed = failures.entry(key).or_insert(Failures { count: 0, last: now });
        if now.saturating_sub(failed.last) >= FORGET {
            failed.count = 0;
        }
        *failed = Failures { count: failed.count.saturating_add(1), last: now };
    }

    /// Notes a success: nothing is held against them any more.
    pub fn succeeded(&self, user: &str, address: Option<IpAddr>, now: Duration) {
        let key = (user.to_owned(), address.map(network));
        lock(&self.failures).remove(&key);
        let mut logins = lock(&self.logins);
        make_room(&mut logins, |last| *last);
        logins.insert(key, now);
    }
}

/// Forgets the oldest row of a table that is full.
fn make_room<K: Clone + Eq + Hash, V>(table: &mut HashMap<K, V>, age: impl Fn(&V) -> Duration) {
    if table.len() >= ENTRIES_MAX
        && let Some(oldest) = table.iter().min_by_key(|(_, row)| age(row)).map(|(key, _)| key.clone())
    {
        table.remove(&oldest);
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
        slow.succeeded("ann", address, now);
        assert_eq!(slow.wait("ann", address, now), None);
    }

    #[test]
    fn crowd_of_networks_has_few_guesses_and_locks_nobody_out_where_they_were_before() {
        let slow = Slow::default();
        let (home, mut now) = (Some("203.0.113.9".parse().unwrap()), Duration::from_secs(5));
        slow.succeeded("ann", home, now);
        let address = |number: u32| Some(IpAddr::from((0x0a00_0000 + number).to_be_bytes()));
        let mut looked_at = 0;
        for number in 0..6000 {
            now += Duration::from_millis(100);
            if slow.wait("ann", address(number % 1200), now).is_none() {
                slow.failed("ann", address(number % 1200), now);
                looked_at += 1;
            }
        }
        // Ten minutes.
        assert!((20..=31).contains(&looked_at), "{looked_at}");
        assert_eq!(slow.wait("ann", home, now), None);
        assert!(slow.wait("ann", address(70_000), now).is_some());
        assert_eq!(slow.wait("bob", address(70_000), now), None);
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
