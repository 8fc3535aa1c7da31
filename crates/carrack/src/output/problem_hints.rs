//! What a person at a terminal can try about a problem of a managed service: from its code, never from its text.

use carrack_service::model::ProblemCode;

/// What to try where a managed service says no; `None` where nothing helps, or it has said it already.
pub fn of_problem(code: ProblemCode) -> Option<&'static str> {
    use ProblemCode as P;
    Some(match code {
        P::Unauthenticated => "carrack login --service URL USER",
        P::WrongLogin => "an administrator can set a new password: carrack service user edit USER --password",
        P::SubmissionDiffers => "give another task another --submission-id",
        P::VersionDiffers => "look at it again, then change it",
        P::TooMany | P::TooSlow | P::LedgerHeld | P::Stopping => "try again later",
        P::StorageFull => "free some space where the service keeps its state",
        P::Internal => "see the service's log",
        _ => return None,
    })
}
