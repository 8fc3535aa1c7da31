//! Submitting: a task is accepted once, whatever is lost on the way back.

use axum::http::{HeaderMap, StatusCode};

use super::problem::{ApiError, Done};
use super::{Api, TaskSize};
use crate::identity::{Caller, RequestFault, SCOPE_LACKS_VERB, check_request};
use crate::ledger::{LedgerError, Submission, Submitted};
use crate::model::{KnownBy, NewTask, ProblemCode, Verb, new_id};
use crate::schedule::timer::SUBMISSION_PREFIX;

const SUBMISSION_ID_MAX: usize = 128;

/// The submission's id, out of `Idempotency-Key` or the query; both must say the same.
pub(super) fn submission_id(headers: &HeaderMap, query: Option<String>) -> Done<Option<String>> {
    let header = match headers.get("idempotency-key").map(|value| value.to_str()) {
        None => None,
        // The draft of the header has it in quotes.
        Some(Ok(text)) => Some(text.trim().trim_matches('"').to_owned()),
        Some(Err(_)) => return Err(ApiError::malformed("Idempotency-Key holds printable ASCII characters alone")),
    };
    let id = match (header, query) {
        (Some(one), Some(other)) if one != other => {
            return Err(ApiError::malformed("Idempotency-Key and submission_id differ"));
        }
        (one, other) => one.or(other),
    };
    match &id {
        Some(id)
            if id.is_empty() || id.len() > SUBMISSION_ID_MAX || !id.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            Err(ApiError::malformed(format!(
                "a submission's id has 1 to {SUBMISSION_ID_MAX} printable characters without spaces"
            )))
        }
        // With the id of a run to come, that run would find another request under it, and the timer would stop.
        Some(id) if id.starts_with(SUBMISSION_PREFIX) => {
            Err(ApiError::malformed(format!("a submission's id does not begin with {SUBMISSION_PREFIX}")))
        }
        _ => Ok(id),
    }
}

impl From<LookupFault> for ApiError {
    fn from(fault: LookupFault) -> Self {
        match fault {
            LookupFault::Ledger(error) => error.into(),
            LookupFault::Request(fault) => fault.into(),
        }
    }
}

enum LookupFault {
    Ledger(LedgerError),
    Request(RequestFault),
}

impl From<RequestFault> for LookupFault {
    fn from(fault: RequestFault) -> Self {
        Self::Request(fault)
    }
}

impl Api {
    /// Checks a request of this caller: its form, and their right to every place. The endpoints that it uses.
    pub(super) fn check_task(&self, caller: &Caller, request: &NewTask) -> Done<Vec<String>> {
        let look_up = |name: &str| match self.ledger.endpoint(name) {
            Ok(row) => Ok(Some(row.endpoint)),
            Err(LedgerError::Missing) => Ok(None),
            Err(error) => Err(LookupFault::Ledger(error)),
        };
        let checked = check_request(caller, request, look_up);
        if let Err(LookupFault::Request(fault)) = &checked {
            let rule = match fault {
                RequestFault::NoEndpoint { rule, .. } => *rule,
                RequestFault::Forbidden { rule, .. } => Some(*rule),
                RequestFault::Lacks { .. } => Some(SCOPE_LACKS_VERB),
                RequestFault::Wrong(_) => None,
            };
            if let Some(rule) = rule {
                return Err(self.refused(caller, Verb::Tasks, rule, fault.clone().into()));
            }
        }
        if request.deadline.is_some_and(|deadline| deadline <= self.now()) {
            return Err(ApiError::malformed("the deadline is over already"));
        }
        let endpoints = checked?;
        for name in &endpoints {
            self.check_open(&self.ledger.endpoint(name)?.endpoint)?;
        }
        Ok(endpoints)
    }

    /// A request with what the service itself knows of it: by which token it came, and how much that may do.
    pub(super) fn stamped(caller: &Caller, mut request: NewTask) -> NewTask {
        if caller.via == KnownBy::Token {
            request.token.clone_from(&caller.token);
        }
        request.ceilings = caller.scope.as_ref().map(|scope| scope.ceilings).unwrap_or_default();
        request
    }

    /// Accepts a task of this caller. `size`: where they have counted what there is to move.
    pub(super) fn accept(
        &self,
        caller: &Caller,
        request: NewTask,
        id: Option<String>,
        size: Option<TaskSize>,
    ) -> Done<Submitted> {
        let endpoints = self.check_task(caller, &request)?;
        let estimate = self.backend.estimate(&request, size, self.now());
        let submission = Submission {
            id: new_id(),
            owner: caller.user.clone(),
            submission_id: id,
            request: Self::stamped(caller, request),
            endpoints,
            estimate: Some(estimate),
        };
        let mut submitted = self.ledger.submit(&submission, self.now()).map_err(|error| match error {
            LedgerError::Conflict(why) => ApiError::new(StatusCode::CONFLICT, ProblemCode::SubmissionDiffers, why)
                .hint("a submission's id stands for one request; another request takes another id"),
            other => other.into(),
        })?;
        if !submitted.duplicate {
            tracing::info!(
                target: "carrack::audit",
                user = %caller.user, via = caller.via.name(), task = %submitted.task.id,
                kind = submitted.task.request.kind.name(), pairs = submitted.task.request.pairs.len(), "task accepted"
            );
            self.wrote();
        }
        self.backend.complete(&mut submitted.task);
        Ok(submitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::timer;

    #[test]
    fn submission_id_of_a_run_of_a_timer_is_nobodys_to_choose() {
        let none = HeaderMap::new();
        for run in [timer::submission_id("0199", 1), timer::submission_id("", 0)] {
            let headers = HeaderMap::from_iter([("idempotency-key".parse().unwrap(), run.parse().unwrap())]);
            assert!(
                submission_id(&none, Some(run.clone())).is_err() && submission_id(&headers, None).is_err(),
                "{run}"
            );
        }
        assert!(matches!(submission_id(&none, Some("timer-run-1".to_owned())), Ok(Some(_))));
    }
}
