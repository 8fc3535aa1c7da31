//! Figures over a time: what was moved, what waited, what failed and why, between which places.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Api;
use super::admit::Known;
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
        // Whole minutes: the one that is under way counts.
        let to = Moment((self.to.unwrap_or(now).min(now).0.div_euclid(MINUTE) + 1) * MINUTE);
        let from = self.from.unwrap_or(Moment(to.0 - USUAL_MINUTES * MINUTE));
        let from = Moment(from.0.div_euclid(MINUTE) * MINUTE);
        if from >= to || to.since(from) > MOST {
            return Err(ApiError::malformed("from: it lies before to, by 400 days at most"));
        }
        let minutes = to.since(from).as_secs().div_ceil(60);
        let step = minutes.div_ceil(u64::from(steps));
        let own = || Some(caller.user.clone());
        let of_all = Action { verb: Verb::View, object: Object::Figures { of_all: true } };
        Ok(OverviewQuery {
            curves_of: if may(caller, &of_all).verdict == Verdict::Allowed { None } else { own() },
            rows_of: if caller.is_admin() { None } else { own() },
            from,
            step_minutes: u32::try_from(step).unwrap_or(u32::MAX),
            steps: usize::try_from(minutes.div_ceil(step)).unwrap_or(1),
            now,
        })
    }
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
        let OverviewRows { moved, waiting, running, pairs, failures, mut slowest, mut stuck } =
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
            to: query.to(),
            step_seconds: u64::from(query.step_minutes) * 60,
            moved,
            waiting,
            running,
            states: TaskState::ALL.iter().map(count).collect(),
            pairs,
            failures,
            slowest,
            stuck,
        })
    });
    told.await.map(Json)
}
