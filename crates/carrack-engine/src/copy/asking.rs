//! What the user is asked while a session waits: whether much may be deleted. The answer may take as long as it likes.
//! It is waited for by a thread of its own, so that the ends are heard and kept alive meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use carrack_core::failure::Side;
use carrack_core::report::Failure;
use carrack_core::request::DeletionExtent;
use carrack_core::wire::control::Ask;
use carrack_sys::threads;

use super::Copying;
use super::ends::{Ends, misbehaved};
use crate::end::EndId;
use crate::error::system_failure;
use crate::panics::contain;
use crate::sync::{Latch, lock};

/// The question of a session, and what was answered in the sessions before.
#[derive(Default)]
pub(super) struct Asking {
    /// Of a question that was asked in this session: nobody waits for its answer any more.
    over: Option<Arc<Latch>>,
    /// So much may be deleted.
    agreed: Arc<Mutex<Option<DeletionExtent>>>,
    /// Microseconds for which the user has thought.
    thought_us: Arc<AtomicU64>,
}

impl Asking {
    /// Whether a question was asked in this session: its rate has a gap then that is nobody's fault.
    pub fn has_asked(&self) -> bool {
        self.over.is_some()
    }

    /// For how long nothing was done because the user was thinking, since this was asked last.
    pub fn take_thought(&self) -> Duration {
        Duration::from_micros(self.thought_us.swap(0, Ordering::Relaxed))
    }

    /// The session is over.
    pub fn end(&mut self) {
        if let Some(over) = self.over.take() {
            over.set();
        }
    }
}

impl Copying<'_> {
    /// Asks the user whether the destination may delete so much, and passes the answer on when it comes.
    ///
    /// # Errors
    /// When it was not to ask, or asks twice; when the system gives no thread.
    pub(super) fn ask_user(&mut self, ends: &mut Ends, extent: DeletionExtent) -> Result<(), Failure> {
        let asks = self.request.options.delete.is_some() && self.asking.over.is_none();
        let Some(asker) = self.context.asker.clone().filter(|_| asks) else {
            return Err(misbehaved(ends, EndId::Destination, "asked what it was not to ask"));
        };
        let over = Arc::clone(self.asking.over.insert(Arc::default()));
        let (answer, until, agreed) = (ends.destination.later(), self.until.clone(), Arc::clone(&self.asking.agreed));
        let thought_us = Arc::clone(&self.asking.thought_us);
        // A session that was lost after the answer takes nothing back.
        if lock(&agreed).is_some_and(|agreed| is_within(extent, agreed)) {
            answer(Ask::MayDelete(true));
            return Ok(());
        }
        let ask = move || {
            let is_over = || over.is_set() || until.check().is_err();
            let began = Instant::now();
            let may = contain(Side::Command, "a question", || asker.may_delete(&extent, &is_over)).unwrap_or(false);
            let thought = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            thought_us.fetch_add(thought, Ordering::Relaxed);
            if is_over() {
                return;
            }
            if may {
                *lock(&agreed) = Some(extent);
            }
            answer(Ask::MayDelete(may));
        };
        threads::start("a question to the user", ask).map(drop).map_err(|error| system_failure(Side::Command, &error))
    }
}

/// Whether no more is to be deleted than somebody has agreed to, and no greater part of what is there.
fn is_within(extent: DeletionExtent, agreed: DeletionExtent) -> bool {
    let share = |items: u64, of: u64| u128::from(items) * u128::from(of);
    extent.items <= agreed.items && share(extent.items, agreed.of) <= share(agreed.items, extent.of)
}
