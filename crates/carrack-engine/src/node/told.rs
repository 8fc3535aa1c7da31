//! What a node tells whoever runs it: who came, and what became of them.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use carrack_core::report::Failure;

pub use crate::agent::SessionWork;

/// A client that came for a session, and has left.
#[derive(Clone, Debug)]
pub struct SessionEnd {
    /// Where it came from.
    pub peer: SocketAddr,
    /// Why it was not let in; none: it was.
    pub refused: Option<Failure>,
    /// Whether it had shown the node's token; an anonymous node asks for none.
    pub has_shown_token: bool,
    /// What it did.
    pub work: SessionWork,
    /// How long it was there, from the end of its TLS handshake.
    pub lasted: Duration,
}

/// Gets every [`SessionEnd`] of a node, from the session's thread: it must not wait for long.
#[derive(Clone)]
pub struct NodeLog(Arc<dyn Fn(&SessionEnd) + Send + Sync>);

impl NodeLog {
    /// A log that calls this.
    pub fn new(tell: impl Fn(&SessionEnd) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// Nobody wants to know.
    pub fn none() -> Self {
        Self::new(|_| {})
    }

    pub(super) fn tell(&self, end: &SessionEnd) {
        (self.0)(end);
    }
}

impl fmt::Debug for NodeLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeLog(..)")
    }
}
