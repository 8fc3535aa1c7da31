//! The listings of all callers: which worker has which, and when they are dropped.

use carrack_engine::sync::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use super::pool::{Kept, Lease};
use crate::identity::{Caller, ScopePath};
use crate::model::new_id;
use crate::worker::files::Ask;

/// Listings of one user: the oldest goes.
const LISTINGS_OF_ONE: usize = 8;
/// A listing that nobody has asked for so long is dropped.
const UNUSED: Duration = Duration::from_secs(300);
/// How often it is looked for such ones.
const LOOK: Duration = Duration::from_secs(5);

/// A listing of somebody.
pub struct Found {
    /// The worker that has it.
    pub lease: Lease,
    /// The endpoint.
    pub endpoint: String,
    /// The directory.
    pub path: ScopePath,
}

/// All listings.
#[derive(Default)]
pub struct Listings {
    all: Mutex<Vec<Listing>>,
    /// Somebody looks for old ones.
    is_swept: AtomicBool,
}

struct Listing {
    id: String,
    user: String,
    token: Option<String>,
    endpoint: String,
    path: ScopePath,
    worker: Kept,
    used: Instant,
}

impl Drop for Listing {
    fn drop(&mut self) {
        // A worker that has ended has none.
        let _ = self
            .worker
            .lease()
            .ask(Ask::CloseListing { listing: self.id.clone() }, b"")
            .map(super::Conversation::leave);
    }
}

impl Listings {
    fn all(&self) -> MutexGuard<'_, Vec<Listing>> {
        lock(&self.all)
    }

    /// Takes note of a new listing of a worker, and gives its identifier. Where its user has too many the one goes that
    /// was not asked for the longest.
    pub fn add(self: &Arc<Self>, lease: &Lease, path: &ScopePath) -> String {
        let (id, key) = (new_id(), lease.key());
        let listing = Listing {
            id: id.clone(),
            user: key.user.clone(),
            token: key.token.clone(),
            endpoint: key.endpoint.clone(),
            path: path.clone(),
            worker: lease.keep(),
            used: Instant::now(),
        };
        let mut all = self.all();
        let own = || all.iter().enumerate().filter(|(_, listing)| listing.user == key.user);
        let oldest = own().min_by_key(|(_, listing)| listing.used).map(|(place, _)| place);
        let surplus = oldest.filter(|_| own().count() >= LISTINGS_OF_ONE).map(|place| all.swap_remove(place));
        all.push(listing);
        drop(all);
        drop(surplus);
        if !self.is_swept.swap(true, Ordering::Relaxed) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
        id
    }

    /// The listing of a caller with this identifier, while its worker lives.
    pub fn find(&self, caller: &Caller, id: &str) -> Option<Found> {
        let mut all = self.all();
        let listing = all.iter_mut().find(|listing| listing.id == id && listing.is_of(caller))?;
        let lease = listing.worker.lease();
        if !lease.is_alive() {
            return None;
        }
        listing.used = Instant::now();
        Some(Found { lease, endpoint: listing.endpoint.clone(), path: listing.path.clone() })
    }

    /// Drops a listing of a caller. False: there is none.
    pub fn remove(&self, caller: &Caller, id: &str) -> bool {
        let mut all = self.all();
        let place = all.iter().position(|listing| listing.id == id && listing.is_of(caller));
        let removed = place.map(|place| all.swap_remove(place));
        drop(all);
        removed.is_some()
    }

    /// Drops listings that nobody asks for, and those of workers that have ended.
    fn drop_old(&self) {
        let mut all = self.all();
        let is_old = |listing: &mut Listing| listing.used.elapsed() >= UNUSED || !listing.worker.is_alive();
        let old: Vec<Listing> = all.extract_if(.., is_old).collect();
        drop(all);
        drop(old);
    }
}

async fn sweep(listings: Weak<Listings>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(listings) = listings.upgrade() else { return };
        listings.drop_old();
    }
}

impl Listing {
    fn is_of(&self, caller: &Caller) -> bool {
        self.user == caller.user && self.token == caller.token
    }
}
