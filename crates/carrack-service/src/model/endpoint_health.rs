//! How an endpoint does, as the service has met it: by its tasks' failures at its own side, by what they moved there,
//! and by the last test.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::word_enum;
use crate::clock::Moment;

/// A fault counts for so long after it, while the endpoint is reached again and nothing succeeds there.
const FAULT_COUNTS: i64 = 3_600_000_000;
/// An endpoint that was reached longer ago, without a fault since, is idle.
const RECENT: i64 = 24 * 3_600_000_000;

word_enum! {
    /// How an endpoint does.
    pub enum HealthState {
        Ok "ok" "it was reached within a day, and nothing has failed there since"
        Idle "idle" "it was not used for a day, or never, and nothing has failed there since"
        Degraded "degraded" "it was reached, and something failed there: nothing has succeeded since, for an hour at most"
        Down "down" "it could not be reached, or let nobody in, and was not reached since"
    }
}

/// Something that failed at an endpoint, by the endpoint's own side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndpointFault {
    /// When.
    pub time: Moment,
    /// Whether it was not reached, or let nobody in.
    pub unreached: bool,
    /// What kind, from the table of error codes; `test` where a test has found it.
    pub code: String,
    /// In words; none: it happened to a task that the caller may not see.
    pub why: Option<String>,
    /// The task that it happened to; none: a test has found it, or the caller may not see the task.
    pub task: Option<String>,
}

/// The last test of an endpoint, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndpointTested {
    /// When.
    pub time: Moment,
    /// Whether all was as it should be.
    pub ok: bool,
}

/// How an endpoint does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndpointHealth {
    /// In a word.
    pub state: HealthState,
    /// When a task or a test last reached it.
    pub last_contact: Option<Moment>,
    /// When a task or a test last succeeded there.
    pub last_success: Option<Moment>,
    /// What last failed there. Failures at the other side of a task, and of files that are not there or not readable,
    /// are none of the endpoint's.
    pub last_fault: Option<EndpointFault>,
    /// The last test.
    pub last_test: Option<EndpointTested>,
    /// Tasks that use it and have not ended: the caller's; of all, for whoever sees figures of all.
    pub open_tasks: u64,
}

impl HealthState {
    /// From when it was last reached, when something last succeeded there, and what last failed.
    pub fn of(contact: Option<Moment>, success: Option<Moment>, fault: Option<(Moment, bool)>, now: Moment) -> Self {
        let later = |one: Option<Moment>, than: Moment| one.is_some_and(|one| one > than);
        if let Some((time, unreached)) = fault
            && !later(success, time)
        {
            if unreached && !later(contact, time) {
                return Self::Down;
            }
            let is_past = |contact: Moment| contact.0.saturating_sub(time.0) >= FAULT_COUNTS;
            if !contact.is_some_and(is_past) {
                return Self::Degraded;
            }
        }
        let is_recent = |contact: Moment| now.0.saturating_sub(contact.0) < RECENT;
        if contact.is_some_and(is_recent) { Self::Ok } else { Self::Idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_is_the_latest_word_of_the_endpoint() {
        let at = |minute: i64| Moment(minute * 60_000_000);
        let (day, hour) = (24 * 60, 60);
        let state = |contact: Option<i64>, success: Option<i64>, fault: Option<(i64, bool)>| {
            let fault = fault.map(|(minute, unreached)| (at(minute), unreached));
            HealthState::of(contact.map(at), success.map(at), fault, at(day))
        };
        for (contact, success, fault, expected) in [
            (None, None, None, HealthState::Idle),
            (Some(0), Some(0), None, HealthState::Idle),
            (Some(1), None, None, HealthState::Ok),
            // Nobody has reached it so far, and nobody has since.
            (None, None, Some((5, true)), HealthState::Down),
            (Some(4), Some(4), Some((5, true)), HealthState::Down),
            (Some(5), None, Some((5, true)), HealthState::Down),
            // It is reached again; it has not shown yet that all is well.
            (Some(6), Some(4), Some((5, true)), HealthState::Degraded),
            (Some(6), Some(6), Some((5, true)), HealthState::Ok),
            (Some(4 + hour), Some(4), Some((5, true)), HealthState::Degraded),
            (Some(5 + hour), Some(4), Some((5, true)), HealthState::Ok),
            // It was reached, and its disk is full.
            (Some(5), Some(4), Some((5, false)), HealthState::Degraded),
            (Some(6), Some(6), Some((5, false)), HealthState::Ok),
        ] {
            assert_eq!(state(contact, success, fault), expected, "{contact:?} {success:?} {fault:?}");
        }
    }
}
