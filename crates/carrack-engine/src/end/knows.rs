//! What an end can be asked for, by the version that its program speaks.

use carrack_core::report::{ErrorCode, Failure, Reason};
use carrack_core::wire::Version;

use super::End;
use crate::error::failure;

impl End {
    /// Refuses to go on where this end's version is too old for what was asked for, which is what `reason` says.
    ///
    /// # Errors
    /// That this end is too old, for this `reason`.
    pub fn check_knows(&self, knows: impl Fn(Version) -> bool, reason: Reason) -> Result<(), Failure> {
        self.check_version(knows, reason.meaning()).map_err(|refused| refused.for_reason(reason))
    }

    /// The same without a reason of its own: `lacks` says what it cannot do.
    ///
    /// # Errors
    /// That this end is too old.
    pub fn check_version(&self, knows: impl Fn(Version) -> bool, lacks: &str) -> Result<(), Failure> {
        if knows(self.version()) {
            return Ok(());
        }
        let why = format!("its carrack {} is too old: {lacks}", self.welcome.program);
        Err(failure(ErrorCode::VersionMismatch, self.id.side(), why).at_end(&*self.name))
    }
}
