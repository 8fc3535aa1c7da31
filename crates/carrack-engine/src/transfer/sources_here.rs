//! What the two ends of a copy within one process have in common: the receiver may open the sender's files.

use std::sync::{Arc, OnceLock, Weak};

use carrack_core::ids::ItemId;

use crate::storage::read::Reader;

/// Gives a receiver within the same process the files that are offered to it.
pub trait OpensSources: Send + Sync {
    /// The source of an offered item, opened; `None` where it is not what was listed, or cannot be opened.
    fn open_source(&self, item: ItemId) -> Option<Arc<dyn Reader>>;
}

/// Where the receiver finds the sender of its session, once that has begun.
#[derive(Clone, Default)]
pub struct SourcesHere(Arc<OnceLock<Weak<dyn OpensSources>>>);

impl SourcesHere {
    /// The sender of the session is there.
    pub fn begin(&self, sender: Weak<dyn OpensSources>) {
        // There is one in a session.
        let _ = self.0.set(sender);
    }

    /// As [`OpensSources::open_source`].
    pub fn open(&self, item: ItemId) -> Option<Arc<dyn Reader>> {
        self.0.get()?.upgrade()?.open_source(item)
    }
}
