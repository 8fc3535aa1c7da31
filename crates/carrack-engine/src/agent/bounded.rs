//! A measurement of the path to a node, from its begin to its end: it takes a bounded time, and its place among those
//! of the node is free as soon as its transfer has ended, however long its session goes on.

use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_sys::threads;

use crate::data::measurements::{ENDS_IN, PathTest};
use crate::error::{failure, system_failure};
use crate::transfer::Running;

/// A measurement that somebody watches.
pub(super) struct BoundedTest {
    begun: mpsc::SyncSender<Running>,
    watch: JoinHandle<()>,
}

impl BoundedTest {
    /// Has a thread watch a measurement that takes at most so long. It is there before the transfer: what nobody
    /// watches does not begin.
    ///
    /// # Errors
    /// When there can be no such thread: the place is free again.
    pub fn start(place: PathTest, longest: Duration) -> Result<Self, Failure> {
        let (begun, beginning) = mpsc::sync_channel::<Running>(1);
        let watch = move || {
            // Given back at the end of this, and when the transfer could not begin.
            let _place = place;
            let Ok(running) = beginning.recv() else { return };
            if !running.wait_over(longest) {
                let why = format!("the node measures for {} s at most", longest.as_secs_f64());
                running.cancel(failure(ErrorCode::ResourceLimit, Side::Link, why));
                if !running.wait_over(ENDS_IN) {
                    running.cut_off();
                }
            }
        };
        let watch =
            threads::start("the time of a measurement", watch).map_err(|error| system_failure(Side::Link, &error))?;
        Ok(Self { begun, watch })
    }

    /// Its transfer has begun.
    pub fn has_begun(&self, running: Running) {
        // A thread that has panicked takes nothing; its place is free.
        let _ = self.begun.send(running);
    }

    /// Waits until its place is free, once its transfer has ended or is being ended.
    pub fn join(self) {
        let Self { begun, watch } = self;
        drop(begun);
        // A panic of it has been told, and has given the place back.
        let _ = watch.join();
    }
}
