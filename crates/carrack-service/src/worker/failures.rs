//! Failures of the engine as a journal has them, and which of them another attempt can help.

use carrack_core::failure::{ErrorCode, Failure, Reason, Side};

use crate::model::TaskFailure;

/// Whether the same may work later, without anybody submitting the task again. `reached`: the hosts have been reached
/// before, so a name that is unknown now, or an agent that does not run, is an outage and no mistake; and a token that
/// is refused now was replaced or has expired, and the endpoint gets another.
pub fn can_pass(failure: &Failure, reached: bool) -> bool {
    let was_there = reached
        && matches!(
            failure.code,
            ErrorCode::HostUnknown
                | ErrorCode::AgentMissing
                | ErrorCode::AgentRefused
                | ErrorCode::AuthenticationFailed
        );
    let own = failure.side == Side::Command && failure.code != ErrorCode::ResourceLimit;
    !own && (failure.code.may_pass() || was_there || failure.code == ErrorCode::SourceChanged)
}

/// As a journal has it, of an item with this path.
pub fn told(failure: &Failure, path: &[u8], reached: bool) -> TaskFailure {
    TaskFailure {
        code: failure.code.name().to_owned(),
        side: failure.side.name().to_owned(),
        endpoint: None,
        why: failure.message_of(path),
        retryable: can_pass(failure, reached),
        hints: Vec::new(),
    }
}

/// Whether a source is missing or may not be read: what `skip_source_errors` passes over.
pub fn is_source_error(failure: &Failure) -> bool {
    let codes = [ErrorCode::NotFound, ErrorCode::PermissionDenied, ErrorCode::SourceVanished];
    // What has to be mounted and is not is no source that may be missed.
    let is_required = failure.reason == Some(Reason::NotMounted);
    failure.side == Side::Source && codes.contains(&failure.code) && !is_required
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v14_refused_token_may_pass_only_where_one_was_taken_before() {
        let refused = Failure::new(ErrorCode::AuthenticationFailed, Side::Destination, "the token is not the node's");
        assert_eq!([false, true].map(|reached| can_pass(&refused, reached)), [false, true]);
        let key = Failure::new(ErrorCode::KeyMismatch, Side::Destination, "another key");
        assert!(!can_pass(&key, true));
    }
}
