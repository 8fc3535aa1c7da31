//! Files that share their blocks with their sources, in a copy within one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use carrack_core::timeline::Work;
use carrack_core::transfer::receiver::Opened;
use carrack_core::wire::peer::Offer;

use super::ReceiveRun;
use crate::storage::write::Part;
use crate::sync::lock;
use crate::transfer::SourcesHere;

/// So many more files than have shared their blocks may be found not to, before few are tried.
const IN_VAIN: u64 = 8;
/// Then one of so many: there may be other file systems in a tree, and other sources.
const ONE_OF: u64 = 64;

/// Whether it is worth trying, by what came of it so far.
#[derive(Default)]
pub(super) struct Sharing {
    sources: Option<SourcesHere>,
    shared: AtomicU64,
    in_vain: AtomicU64,
    asked: AtomicU64,
}

impl Sharing {
    /// With the sender of the session, where files may be shared at all.
    pub fn new(sources: Option<SourcesHere>) -> Self {
        Self { sources, ..Self::default() }
    }

    /// Asked once for each file.
    pub fn is_tried(&self) -> bool {
        let (shared, in_vain) = (self.shared.load(Ordering::Relaxed), self.in_vain.load(Ordering::Relaxed));
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        self.sources.is_some() && (in_vain < shared + IN_VAIN || asked.is_multiple_of(ONE_OF))
    }

    fn note(&self, shared: bool) {
        let counter = if shared { &self.shared } else { &self.in_vain };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl ReceiveRun {
    /// Has a part file share the blocks of its source. Where that cannot be, its blocks may come.
    pub(super) fn share(self: &Arc<Self>, offer: &Offer, part: Arc<dyn Part>) {
        let item = offer.item;
        lock(&self.parts).insert(item, Arc::clone(&part));
        // A file system may write what it holds of the source first, and a source may have to rest.
        self.spawn("sharing blocks with a source", move |run| {
            let source = run.sharing.sources.as_ref().and_then(|sources| sources.open(item));
            let file = source.as_ref().and_then(|source| source.file());
            let shared = run.driver.stages.aside(Work::Begin, || part.share(file));
            let opened = match shared {
                Ok(is_shared) => {
                    // A source that could not be opened says nothing of the file systems.
                    if source.is_some() {
                        run.sharing.note(is_shared);
                    }
                    if is_shared { Opened::Shared } else { Opened::Ready }
                }
                Err(why) => {
                    lock(&run.parts).remove(&item);
                    part.remove();
                    run.offer_ended(item, None);
                    Opened::Refused(why)
                }
            };
            run.driver.tell(|machine| machine.handle_opened(Instant::now(), item, opened));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharing_is_seldom_tried_where_it_has_been_in_vain() {
        assert!(!Sharing::new(None).is_tried());
        let sharing = Sharing::new(Some(SourcesHere::default()));
        for _ in 0..IN_VAIN {
            assert!(sharing.is_tried());
            sharing.note(false);
        }
        let tried = (0..2 * ONE_OF).filter(|_| sharing.is_tried()).count();
        assert_eq!(tried, 2, "there may be other file systems");
        sharing.note(true);
        assert!(sharing.is_tried() && sharing.is_tried());
    }
}
