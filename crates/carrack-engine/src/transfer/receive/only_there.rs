//! How much only the destination has.

/// Counts of items that only the destination has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnlyThere {
    /// Files, links and directories.
    pub items: u64,
    /// Bytes of the files.
    pub bytes: u64,
}

impl OnlyThere {
    pub fn add(&mut self, size: u64) {
        self.items += 1;
        self.bytes = self.bytes.saturating_add(size);
    }
}
