//! A hook that makes a store fail: which call, how often it goes well before, how often it then fails.

use std::sync::Mutex;

use carrack_core::failure::Failure;

use carrack_engine::stores::over::{Act, Call, Hook};
use carrack_engine::sync::lock;

/// Faults of a store.
#[derive(Default)]
pub struct StoreFaults(Mutex<Vec<Fault>>);

/// One fault: which call it hits, and what happens then.
pub struct Fault {
    call: Call,
    /// Calls that go well first.
    after: u64,
    /// Calls that then fail; `None` for all.
    times: Option<u64>,
    how: How,
}

enum How {
    Fails(Failure),
    Panics,
}

impl Fault {
    /// The call always fails, and says this.
    pub fn fails(call: Call, why: Failure) -> Self {
        Self { call, after: 0, times: None, how: How::Fails(why) }
    }

    /// The call always panics.
    pub fn panics(call: Call) -> Self {
        Self { call, after: 0, times: None, how: How::Panics }
    }

    /// The same after so many calls that go well.
    #[must_use]
    pub fn after(mut self, calls: u64) -> Self {
        self.after = calls;
        self
    }

    /// The same, and it goes well again after so many failures.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }
}

impl StoreFaults {
    /// These. Of two faults of one call the first counts until it is over.
    pub fn new(faults: impl IntoIterator<Item = Fault>) -> Self {
        Self(Mutex::new(faults.into_iter().collect()))
    }
}

impl Hook for StoreFaults {
    fn before(&self, call: Call, _bytes: u64) -> Act {
        let mut faults = lock(&self.0);
        let Some(fault) = faults.iter_mut().find(|fault| fault.call == call && fault.times != Some(0)) else {
            return Act::Go;
        };
        if fault.after > 0 {
            fault.after -= 1;
            return Act::Go;
        }
        fault.times = fault.times.map(|times| times - 1);
        match &fault.how {
            How::Fails(why) => Act::Fail(why.clone()),
            How::Panics => {
                drop(faults);
                std::panic::panic_any(format!("{} panics, as a test wants it", call.name()));
            }
        }
    }
}
