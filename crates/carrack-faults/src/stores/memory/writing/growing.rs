//! Small files that come in pieces.

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_engine::stores::write::{Growing, SmallFile, Stored};

use super::{Hidden, MemoryDestination};

/// A small file that is written in pieces.
pub(super) struct MemoryGrowing {
    pub destination: MemoryDestination,
    pub hidden: Option<Hidden>,
    pub content: Vec<u8>,
}

impl Growing for MemoryGrowing {
    fn write(&mut self, bytes: &[u8]) {
        self.content.extend_from_slice(bytes);
    }

    fn finish(mut self: Box<Self>, small: &SmallFile<'_>) -> Result<Stored, Failure> {
        let Some(mut hidden) = self.hidden.take() else {
            return Err(Failure::new(ErrorCode::Internal, Side::Destination, "a file was finished twice"));
        };
        (hidden.attributes, hidden.source) = (small.attributes.clone(), small.fingerprint);
        Ok(self.destination.waiting(hidden, small, std::mem::take(&mut self.content)))
    }
}

impl Drop for MemoryGrowing {
    fn drop(&mut self) {
        self.hidden.iter().for_each(Hidden::remove);
    }
}
