//! What is measured of a transfer beside itself.

use carrack_core::limits;
use carrack_core::wire::control::{Tell, TransferOptions};

use super::{Agent, verbs};
use crate::storage::place::Place;
use crate::transfer::Measured;

impl Agent {
    /// What is measured of a transfer: the file systems that its files lie on, of many sources those of the first.
    pub(super) fn measured(&self, options: &TransferOptions, paths: impl IntoIterator<Item = Vec<u8>>) -> Measured {
        let mut measured = Measured { began: self.began, devices: Vec::new() };
        let is_file_system = !matches!(self.environment.place, Place::Stored(..));
        if options.version.tells_samples() && is_file_system {
            let paths: Vec<Vec<u8>> = paths.into_iter().take(limits::SAMPLE_DEVICES).collect();
            if let Tell::Inspected(facts) = verbs::inspect(&self.environment.place, &paths) {
                let there = facts.iter().filter(|facts| facts.kind.is_some());
                measured.devices = there.map(|facts| facts.device).collect();
            }
        }
        measured
    }
}
