//! A copy from outside: begun, listened to, cancelled, waited for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use carrack_core::failure::{ErrorCode, Side};
use carrack_core::report::{Event, Report};
use carrack_core::request::CopyRequest;
use carrack_sys::threads;

use super::events::Events;
use super::run::{new_report, run};
use crate::context::Context;
use crate::error::{failure, system_failure};
use crate::panics::contain;
use crate::stop::{Stop, StopReason, Until};

/// Copies files and directories between two places.
#[derive(Debug)]
pub struct Copy;

/// A copy that is under way. Dropped, it is cancelled, and comes to its end by itself.
pub struct Handle {
    events: Arc<Events>,
    /// Taken, and not handed out yet.
    taken: VecDeque<Event>,
    stop: Stop,
    running: Option<JoinHandle<Report>>,
    /// Of a copy that could not begin, or whose thread does not tell how it ended.
    report: Report,
}

impl Copy {
    /// Begins a copy, which runs on threads of its own. The same request, begun again, goes on where an earlier one was
    /// cancelled or lost: that is how a copy is paused.
    pub fn start(request: CopyRequest, context: &Context) -> Handle {
        let start = Instant::now();
        let stop = context.stop.child();
        let context = Context { stop: stop.clone(), ..context.clone() };
        let end = request.options.deadline.and_then(|deadline| start.checked_add(deadline));
        let until = Until::new(stop.clone(), end);
        let events = Arc::new(Events::new(until.clone()));
        let (telling, mut report) = (Arc::clone(&events), new_report(&request.options));
        let work = move || {
            let report = contain(Side::Command, "a copy", || run(&request, &context, &telling, start, until));
            telling.end();
            report.unwrap_or_else(|why| Report { error: Some(why), ..new_report(&request.options) })
        };
        let running = match threads::start("a copy", work) {
            Ok(running) => {
                report.error = Some(failure(ErrorCode::Internal, Side::Command, "the copy's thread ended by a panic"));
                Some(running)
            }
            Err(error) => {
                report.error = Some(system_failure(Side::Command, &error));
                events.end();
                None
            }
        };
        Handle { events, taken: VecDeque::new(), stop, running, report }
    }
}

impl Handle {
    /// Waits for what the copy tells next; `None` once it has ended. A copy waits for whoever reads this: nothing is
    /// left out, nothing is lost meanwhile, and memory does not grow.
    pub fn next_event(&mut self) -> Option<Event> {
        if self.taken.is_empty() {
            self.taken = self.events.take();
        }
        self.taken.pop_front()
    }

    /// Ends the copy soon: the ends are told, and leave what another copy can go on from. Does not wait.
    pub fn cancel(&self) {
        self.stop.request(StopReason::Cancel);
    }

    /// Whether the copy has ended: then [`Handle::wait`] does not wait.
    pub fn has_ended(&self) -> bool {
        self.running.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// For somebody else to cancel the copy with.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Waits until the copy has ended, and tells how. What it still has to tell goes nowhere.
    pub fn wait(mut self) -> Report {
        self.events.leave();
        let report = std::mem::take(&mut self.report);
        // A panic of the work is contained in it, and told in its report. What comes after the work may panic, too: it
        // drops values that the caller has put into the context.
        self.running.take().and_then(|running| running.join().ok()).unwrap_or(report)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.cancel();
            self.events.leave();
        }
    }
}
