//! Figures over a time: what was moved, what waited, what failed and why, between which places.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Api;
use super::caller::Known;
use super::extract::QueryOf;
use super::problem::{ApiError, Done};
use crate::clock::Moment;
use crate::identity::{Action, Caller, Object, Verdict, may};
use crate::ledger::tally::{MINUTE, OverviewQuery, OverviewRows};
use crate::model::{Overview, Problem, StateCount, TaskState, Verb};

/// What is shown where no time is named.
const USUAL_MINUTES: i64 = 24 * 60;
/// The longest time that is told of.
const MOST: Duration = Duration::from_secs(400 * 24 * 3600);
const STEPS_USUAL: u32 = 120;
const STEPS_MOST: u32 = 500;

/// Which time is told of.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct OverviewTime {
    /// From this moment on, to the minute; a day before `to` where it is left out.
    from: Option<Moment>,
    /// Until this moment; now where it is left out, or lies ahead.
    to: Option<Moment>,
    /// Steps at most, 1 to 500; 120 where it is left out. A step is one minute or several.
    #[param(minimum = 1, maximum = 500)]
    steps: Option<u32>,
}

impl OverviewTime {
    fn query(&self, now: Moment, caller: &Caller) -> Done<OverviewQuery> {
        let steps = self.steps.unwrap_or(STEPS_USUAL);
        if !(1..=STEPS_MOST).contains(&steps) {
            return Err(ApiError::malformed(format!("steps: 1 to {STEPS_MOST}")));
        }
        let minute = |time: Moment| Moment(time.0.div_euclid(MINUTE) * MINUTE);
        let after = |time: Moment| Moment(minute(time).0 + MINUTE);
        // Whole minutes: the one that is under way counts.
        let to = self.to.map_or(after(now), |to| if to < now { minute(Moment(to.0 + MINUTE - 1)) } else { after(now) });
        let asked = self.from.unwrap_or(Moment(to.0 - USUAL_MINUTES * MINUTE));
        if asked >= to || to.since(asked) > MOST {
            return Err(ApiError::malformed("from: it lies before to, by 400 days at most"));
        }
        let (from, step, steps) = fitted(asked, to, steps);
        let own = || Some(caller.user.clone());
        let of_all = Action { verb: Verb::View, object: Object::Figures { of_all: true } };
        Ok(OverviewQuery {
            curves_of: if may(caller, &of_all).verdict == Verdict::Allowed { None } else { own() },
            rows_of: if caller.is_admin() { None } else { own() },
            from,
            step_minutes: u32::try_from(step).unwrap_or(u32::MAX),
            steps: usize::try_from(steps).unwrap_or(1),
            now,
        })
    }
}

/// When the first step begins, the minutes of each step, and how many there are: at most `most`, the last of them ends
/// at `to`. A minute of which only a part was asked for is left out where it would make every step longer.
fn fitted(from: Moment, to: Moment, most: u32) -> (Moment, i64, i64) {
    let most = i64::from(most);
    let begin = from.0.div_euclid(MINUTE) * MINUTE;
    let minutes = (to.0 - begin) / MINUTE;
    let is_part = begin != from.0 && minutes > 1;
    let minutes = if is_part && (minutes - 1) % most == 0 { minutes - 1 } else { minutes };
    let ceil = |number: i64, by: i64| (number + by - 1) / by;
    let step = ceil(minutes, most);
    let steps = ceil(minutes, step);
    (Moment(to.0 - steps * step * MINUTE), step, steps)
}

/// Tells what was done over a time: bytes, tasks that waited and ran, pairs of places, failures by cause, tasks that
/// were slow or do not get on. Of one's own tasks; for admins of all; for viewers the curves and causes of all.
#[utoipa::path(
    get, path = "/overview", tag = "service", params(OverviewTime),
    responses(
        (status = 200, description = "The figures.", body = Overview),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    known: Known,
    QueryOf(time): QueryOf<OverviewTime>,
) -> Done<Json<Overview>> {
    let told = api.run(move |api| {
        let caller = &*known.caller;
        api.check(caller, Verb::View, Object::Figures { of_all: false })?;
        let query = time.query(api.now(), caller)?;
        let OverviewRows { moved, waiting, running, rate, sums, pairs, failures, mut slowest, mut stuck } =
            api.ledger.overview(&query)?;
        slowest.iter_mut().chain(&mut stuck).for_each(|task| api.backend.complete(task));
        let mut states: BTreeMap<&str, u64> = BTreeMap::new();
        for (owner, state, count) in api.ledger.count_tasks()? {
            if query.curves_of.as_ref().is_none_or(|wanted| *wanted == owner) {
                *states.entry(state.name()).or_default() += count;
            }
        }
        let count =
            |state: &TaskState| StateCount { state: *state, tasks: states.get(state.name()).copied().unwrap_or(0) };
        Ok(Overview {
            from: query.from,
            to: query.to().min(query.now),
            step_seconds: u64::from(query.step_minutes) * 60,
            moved,
            waiting,
            running,
            rate,
            ended: [
                (TaskState::Succeeded, sums.succeeded),
                (TaskState::Partial, sums.partial),
                (TaskState::Failed, sums.failed),
                (TaskState::Cancelled, sums.cancelled),
            ]
            .map(|(state, tasks)| StateCount { state, tasks })
            .to_vec(),
            states: TaskState::ALL.iter().map(count).collect(),
            pairs,
            failures,
            slowest,
            stuck,
        })
    });
    told.await.map(Json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_fit_the_time_and_end_with_it() {
        let at = |seconds: i64| Moment(seconds * 1_000_000);
        let hour = 3600;
        for (from, to, most, expected) in [
            // A day until 12:28:30 in 24 steps are hours, not 61 minutes.
            (at(30), at(24 * hour + 60), 24, (at(60), 60, 24)),
            (at(0), at(24 * hour), 24, (at(0), 60, 24)),
            (at(0), at(90 * 60), 60, (at(0), 2, 45)),
            (at(0), at(91 * 60), 60, (at(-60), 2, 46)),
            (at(30), at(60), 24, (at(0), 1, 1)),
            (at(30), at(120), 24, (at(0), 1, 2)),
        ] {
            assert_eq!(fitted(from, to, most), expected, "{from:?} {to:?} {most}");
        }
    }
}
