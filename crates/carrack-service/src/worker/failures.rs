//! Failures of the engine as a journal has them, and which of them another attempt can help.

use carrack_core::failure::{ErrorCode, Failure, Side};

use crate::model::TaskFailure;

/// Whether the same may work later, without anybody doing anything. `reached`: the hosts have been reached before, so
/// a name that is unknown now, or an agent that does not run, is an outage and no mistake.
pub fn can_pass(failure: &Failure, reached: bool) -> bool {
    let was_there =
        reached && matches!(failure.code, ErrorCode::HostUnknown | ErrorCode::AgentMissing | ErrorCode::AgentRefused);
    let own = failure.side == Side::Command && failure.code != ErrorCode::ResourceLimit;
    !own && (failure.code.may_pass() || was_there || failure.code == ErrorCode::SourceChanged)
}

/// As a journal has it, of an item with this path.
pub fn told(failure: &Failure, path: &[u8], reached: bool) -> TaskFailure {
    TaskFailure {
        code: failure.code.name().to_owned(),
        side: failure.side.name().to_owned(),
        why: failure.message_of(path),
        retryable: can_pass(failure, reached),
        hints: Vec::new(),
    }
}

/// Whether a source is missing or may not be read: what `skip_source_errors` passes over.
pub fn is_source_error(failure: &Failure) -> bool {
    let codes = [ErrorCode::NotFound, ErrorCode::PermissionDenied, ErrorCode::SourceVanished];
    failure.side == Side::Source && codes.contains(&failure.code)
}
