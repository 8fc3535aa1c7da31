//! When a session may give no more names.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};

use crate::error::failure;

/// The moment from which on nothing of a session gets its name any more. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub struct Closing(Arc<OnceLock<Instant>>);

impl Closing {
    /// See [`close_in`](super::Destination::close_in).
    pub fn close_in(&self, patience: Duration) {
        let _ = self.0.set(Instant::now() + patience);
    }

    /// To be asked before a name is given.
    ///
    /// # Errors
    /// When the session has ended so long ago that the next one may have given newer files these names.
    pub fn check_open(&self) -> Result<(), Failure> {
        if self.0.get().is_none_or(|closes| Instant::now() < *closes) {
            return Ok(());
        }
        let message = "storage took too long: the session had ended before the file could get its name";
        Err(failure(ErrorCode::InputOutput, Side::Destination, message))
    }
}
