//! What the command is told of the files in flight, checked after every step.

use super::World;
use crate::limits;
use crate::report::Outcome;

impl World {
    /// Few files, none of which has ended, with no more bytes than have landed.
    pub(super) fn check_in_flight(&mut self) {
        let Some(list) = self.in_flight.look(self.now(), &self.sender) else { return };
        self.verdict.in_flight += list.len() as u64;
        assert!(list.len() <= limits::IN_FLIGHT, "{list:?}");
        let landed: u64 = list.iter().map(|item| item.bytes).sum();
        assert!(landed <= self.sender.progress().bytes_done, "more has landed than is done: {list:?}");
        for item in &list {
            assert!(item.size.is_none_or(|size| item.bytes <= size), "{item:?}");
            let ended = self.reports.iter().filter(|report| report.outcome == Outcome::Published);
            assert!(!ended.into_iter().any(|report| report.path == item.path), "{item:?} has its name");
        }
    }
}
