//! What all callers have together, such as memory for bodies: a caller gets a share only if that leaves as much for
//! others as they then hold. One alone gets half of it; a crowd of callers gets less each, and whoever comes next still
//! gets something.

use carrack_engine::sync::lock;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::caller::{Known, Peer};
use crate::identity::network;

/// Whom a share counts for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    /// A user, by whatever they are known.
    User(String),
    /// An account of this host that is nobody's yet.
    Account(u32),
    /// A network of strangers.
    Network(IpAddr),
    /// A stranger of whom nothing is known.
    Stranger,
}

impl Holder {
    /// Of a request, by what stands in its extensions.
    pub fn of(extensions: &axum::http::Extensions) -> Self {
        match (extensions.get::<Known>(), extensions.get::<Peer>()) {
            (Some(known), _) => Self::of_user(known),
            (None, Some(Peer::Account(account))) => Self::Account(*account),
            (None, Some(Peer::Address { address, .. })) => Self::Network(network(*address)),
            (None, None) => Self::Stranger,
        }
    }

    /// Somebody who is known.
    pub fn of_user(known: &Known) -> Self {
        Self::User(known.caller.user.clone())
    }
}

/// So much of something, in bytes or as a number.
#[derive(Debug)]
pub(super) struct Shares {
    total: usize,
    held: Mutex<HashMap<Holder, usize>>,
    freed: Notify,
}

/// A part of it, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    shares: Arc<Shares>,
    holder: Holder,
    amount: usize,
}

impl Shares {
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total, held: Mutex::default(), freed: Notify::new() })
    }

    /// Takes this much, if the holder may have it now.
    pub fn take(self: &Arc<Self>, holder: &Holder, amount: usize) -> Option<Share> {
        let mut held = self.lock();
        let left = self.total.checked_sub(held.values().sum::<usize>() + amount)?;
        let own = held.get(holder).copied().unwrap_or(0) + amount;
        if own > left {
            return None;
        }
        held.insert(holder.clone(), own);
        Some(Share { shares: Arc::clone(self), holder: holder.clone(), amount })
    }

    /// As [`Self::take`]; waits for others to give back what they hold, but no longer than this.
    pub async fn wait_for(self: &Arc<Self>, holder: &Holder, amount: usize, patience: Duration) -> Option<Share> {
        let until = Instant::now() + patience;
        loop {
            // Before it is looked: what is given back in between is heard of.
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if let Some(share) = self.take(holder, amount) {
                return Some(share);
            }
            timeout_at(until, freed).await.ok()?;
        }
    }

    /// How much nobody holds.
    #[cfg(test)]
    pub fn left(&self) -> usize {
        self.total - self.lock().values().sum::<usize>()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Holder, usize>> {
        lock(&self.held)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.shares.lock();
        if let Some(own) = held.get_mut(&self.holder) {
            *own -= self.amount;
            if *own == 0 {
                held.remove(&self.holder);
            }
        }
        drop(held);
        self.shares.freed.notify_waiters();
    }
}

/// Names of which each has something under way once at a time, and all together only so often.
#[derive(Debug)]
pub(super) struct Names {
    most: usize,
    held: Mutex<BTreeSet<String>>,
}

/// One of them, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Name {
    names: Arc<Names>,
    name: String,
}

/// Why a name cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameFault {
    /// Somebody has it.
    Held,
    /// As many others are held as may be.
    Full,
}

impl Names {
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, held: Mutex::default() })
    }

    /// Takes a name.
    ///
    /// # Errors
    /// Every [`NameFault`].
    pub fn take(self: &Arc<Self>, name: &str) -> Result<Name, NameFault> {
        let mut held = lock(&self.held);
        if held.contains(name) {
            return Err(NameFault::Held);
        }
        if held.len() >= self.most {
            return Err(NameFault::Full);
        }
        held.insert(name.to_owned());
        Ok(Name { names: Arc::clone(self), name: name.to_owned() })
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        lock(&self.names.held).remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(number: usize) -> Holder {
        Holder::User(format!("user {number}"))
    }

    #[test]
    fn shares_of_the_greedy_leave_some_for_whoever_comes_next() {
        let shares = Shares::new(1200);
        let mut taken = Vec::new();
        for one in 1..=5 {
            let before = taken.len();
            taken.extend(std::iter::from_fn(|| shares.take(&user(one), 1)));
            assert!(taken.len() > before, "user {one} got nothing");
            assert!(shares.left() > 0);
        }
        assert_eq!(taken.iter().filter(|share| share.holder == user(1)).count(), 600);
        taken.clear();
        assert_eq!(shares.left(), 1200);
        assert!(shares.lock().is_empty());
    }

    #[test]
    fn share_that_is_more_than_there_is_is_never_given() {
        let shares = Shares::new(100);
        assert!(shares.take(&user(1), 51).is_none() && shares.take(&user(1), usize::MAX / 2).is_none());
        assert_eq!(shares.take(&user(1), 50).map(|share| share.amount), Some(50));
    }

    #[tokio::test]
    async fn share_that_is_waited_for_comes_when_another_is_given_back() {
        let shares = Shares::new(100);
        let first = shares.take(&user(1), 50);
        assert!(shares.wait_for(&user(2), 30, Duration::ZERO).await.is_none());
        let second = user(2);
        let (given, ()) = tokio::join!(shares.wait_for(&second, 30, Duration::from_secs(60)), async {
            tokio::task::yield_now().await;
            drop(first);
        });
        assert!(given.is_some());
    }

    #[test]
    fn name_is_had_once_and_so_many_in_all() {
        let names = Names::new(2);
        let (one, two) = (names.take("one"), names.take("two"));
        assert_eq!(names.take("one").err(), Some(NameFault::Held));
        assert_eq!(names.take("three").err(), Some(NameFault::Full));
        drop(one);
        assert!(names.take("three").is_ok() && names.take("one").is_ok() && two.is_ok());
    }
}
