//! Which links carry something. A link on which several attempts in a row got nowhere is tried by one task at a time,
//! with pauses of its own, so that a hundred tasks for one dead endpoint do not keep all workers waiting for it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::link::Link;
use super::patience::Patience;

/// Consecutive attempts without progress after which a link is tried by one task at a time.
const FUTILE_UNTIL_SICK: u32 = 3;

/// What is known of the links. Time is the service's steady time.
#[derive(Clone, Debug, Default)]
pub struct Health {
    links: BTreeMap<Link, Faults>,
}

#[derive(Clone, Copy, Debug)]
struct Faults {
    futile: u32,
    next_try: Duration,
}

impl Health {
    /// An attempt got nowhere on these links, for a reason that can pass.
    pub fn futile(&mut self, links: &[Link], patience: &Patience, now: Duration) {
        for link in links {
            let faults = self.links.entry(link.clone()).or_insert(Faults { futile: 0, next_try: now });
            faults.futile = faults.futile.saturating_add(1);
            faults.next_try = now + patience.pause(faults.futile, &link.to_string());
        }
    }

    /// An attempt moved something over these links. Which of them were sick.
    pub fn carried(&mut self, links: &[Link]) -> Vec<Link> {
        let mut recovered = Vec::new();
        for link in links {
            if self.links.remove(link).is_some_and(|faults| faults.futile >= FUTILE_UNTIL_SICK) {
                recovered.push(link.clone());
            }
        }
        recovered
    }

    /// Links that are tried by one task at a time, with the time until the next try and the attempts that failed.
    pub fn sick(&self, now: Duration) -> BTreeMap<Link, (Duration, u32)> {
        let sick = self.links.iter().filter(|(_, faults)| faults.futile >= FUTILE_UNTIL_SICK);
        sick.map(|(link, faults)| (link.clone(), (faults.next_try.saturating_sub(now), faults.futile))).collect()
    }

    /// Forgets links that no task uses.
    pub fn keep(&mut self, used: impl Fn(&Link) -> bool) {
        self.links.retain(|link, _| used(link));
    }
}
