//! What is measured of a transfer beside itself.

use carrack_core::limits;
use carrack_core::wire::control::Tell;

use super::{Agent, DataPort, verbs};
use crate::storage::place::Place;
use crate::transfer::Measured;

impl Agent {
    /// What is measured of a transfer: the file systems that its files lie on, of many sources those of the first.
    pub(super) fn measured(&self, paths: impl IntoIterator<Item = Vec<u8>>) -> Measured {
        // A guest of a node learns nothing of what others do on its host.
        let tells_host = match &self.environment.data {
            DataPort::Shared(sessions) => sessions.measurements.allowed() && self.environment.grant.is_none(),
            DataPort::Own(_) => true,
        };
        let mut measured = Measured { began: self.environment.began, tells_host, devices: Vec::new() };
        let is_file_system = !matches!(self.environment.place, Place::Stored(..));
        if is_file_system && tells_host {
            let paths: Vec<Vec<u8>> = paths.into_iter().take(limits::SAMPLE_DEVICES).collect();
            if let Tell::Inspected(facts) = verbs::inspect(&self.environment.place, &paths) {
                let there = facts.iter().filter(|facts| facts.kind.is_some());
                measured.devices = there.map(|facts| facts.device).collect();
            }
        }
        measured
    }
}
