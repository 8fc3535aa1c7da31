//! Which sessions expect data connections on a node's one port.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use carrack_core::wire::control::SessionKey;

use super::measurements::PathTests;
use super::stream::Connection;
use crate::net::dial_rule::DialRule;
use crate::sync::lock;

/// What takes a session's data connections.
pub type Arrived = Arc<dyn Fn(Connection) + Send + Sync>;

/// The sessions that expect data connections on a node's port.
pub struct NodeSessions {
    /// The port that accepts the data connections.
    pub port: u16,
    /// Pin of the node's key.
    pub pin: [u8; 32],
    /// Where the node dials for its clients.
    pub dials: DialRule,
    /// Who may measure the path to it.
    pub measurements: Arc<PathTests>,
    open: Mutex<HashMap<[u8; 16], (SessionKey, Arrived)>>,
}

impl NodeSessions {
    /// None yet, at the port where the node listens and of the node with this key.
    pub fn new(port: u16, pin: [u8; 32]) -> Self {
        let listens = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        let dials = DialRule { listens, only_who_asks: true, told: Vec::new() };
        let measurements = Arc::new(PathTests::new(false));
        Self { port, pin, dials, measurements, open: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 16], (SessionKey, Arrived)>> {
        lock(&self.open)
    }

    /// Expects connections of this session. One that is expected already keeps its owner: then false.
    #[must_use]
    pub fn insert(&self, key: SessionKey, arrived: Arrived) -> bool {
        match self.lock().entry(key.id) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert((key, arrived));
                true
            }
        }
    }

    /// Expects no more.
    pub fn remove(&self, id: &[u8; 16]) {
        self.lock().remove(id);
    }

    /// The key of a session that expects connections.
    pub fn key(&self, id: &[u8; 16]) -> Option<SessionKey> {
        self.lock().get(id).map(|(key, _)| key.clone())
    }

    /// What takes a session's connections.
    pub fn taker(&self, id: &[u8; 16]) -> Option<Arrived> {
        self.lock().get(id).map(|(_, arrived)| Arc::clone(arrived))
    }
}
