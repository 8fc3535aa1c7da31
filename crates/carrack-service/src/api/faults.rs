//! Faults of tasks by the places at which they came.

use carrack_engine::sync::lock;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Api;
use super::caller::Known;
use super::counters::{head, line};
use super::extract::QueryOf;
use super::problem::{ApiError, Done};
use crate::clock::Moment;
use crate::faults::{VISITS_MOST, statistics};
use crate::identity::{Caller, Object};
use crate::ledger::{TaskVisits, VisitedTasks};
use crate::model::{
    EndVisit, Endpoint, EndpointCheck, EndpointTest, FaultBurst, FaultCode, FaultStatistics, PlaceKind, Problem, Verb,
};

/// What is looked at where no time is named.
const USUAL: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest time that is looked at.
const MOST: Duration = Duration::from_secs(400 * 24 * 3600);
/// What metrics and tests of endpoints take for the present.
const PRESENT: Duration = Duration::from_secs(24 * 3600);
/// Metrics are computed anew after this time.
const FRESH: Duration = Duration::from_secs(60);

/// Which tasks are meant.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FaultTime {
    /// Tasks whose last attempt ended at this moment or later; 30 days before `to` where it is left out.
    from: Option<Moment>,
    /// Tasks whose last attempt ended before this moment; now where it is left out.
    to: Option<Moment>,
    /// Only bursts of which tasks came there by this endpoint.
    endpoint: Option<String>,
}

/// Tells how often tasks failed at which hosts, file systems and directories, and where faults come in bursts: far more
/// often than elsewhere, as a statistical test finds it. Of one's own tasks; for admins of all. Who is no admin is told
/// places by the names of their endpoints.
#[utoipa::path(
    get, path = "/faults", tag = "service", params(FaultTime),
    responses(
        (status = 200, description = "The statistics.", body = FaultStatistics),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    known: Known,
    QueryOf(time): QueryOf<FaultTime>,
) -> Done<Json<FaultStatistics>> {
    let told = api.run(move |api| {
        let caller = &*known.caller;
        api.check(caller, Verb::View, Object::Figures { of_all: false })?;
        // What is written in this moment counts, too.
        let to = time.to.unwrap_or_else(|| api.now().after(Duration::from_micros(1)));
        let from = time.from.unwrap_or_else(|| before(to, USUAL));
        if from >= to || to.since(from) > MOST {
            return Err(ApiError::malformed("from: it lies before to, by 400 days at most"));
        }
        let mut found = api.faults_between(caller, from, to)?;
        if let Some(endpoint) = &time.endpoint {
            found.bursts.retain(|burst| burst.endpoints.contains(endpoint));
        }
        Ok(found)
    });
    told.await.map(Json)
}

fn before(moment: Moment, time: Duration) -> Moment {
    Moment(moment.0.saturating_sub(i64::try_from(time.as_micros()).unwrap_or(i64::MAX)))
}

impl Api {
    /// Faults of the tasks that a caller may know of, by the names that they know.
    fn faults_between(&self, caller: &Caller, from: Moment, to: Moment) -> Done<FaultStatistics> {
        if caller.is_admin() {
            return Ok(statistics(&self.ledger.visits(None, from, VISITS_MOST)?, from, to));
        }
        let found = self.ledger.visits(Some(&caller.user), from, VISITS_MOST)?;
        Ok(statistics(&by_endpoints(found), from, to))
    }

    /// Adds to a test of an endpoint what tasks have met there: whether it, its disk or a directory of it fails far
    /// more often than others. Only numbers of tasks are told, whosever they are. The test does not fail by it: the
    /// endpoint was listed, written and read just now, and of two ends of a bad way each may be the innocent one.
    pub(super) fn judge_faults(&self, endpoint: &Endpoint, test: &mut EndpointTest) -> Done<()> {
        let to = self.now().after(Duration::from_micros(1));
        let from = before(to, USUAL);
        let found = statistics(&self.ledger.visits(None, from, VISITS_MOST)?, from, to);
        let is_here = |burst: &&FaultBurst| burst.endpoints.contains(&endpoint.name) && to.since(burst.to) < PRESENT;
        let checks: Vec<EndpointCheck> =
            found.bursts.iter().filter(is_here).map(|burst| check_of(burst, endpoint)).collect();
        if checks.is_empty() {
            let told = "tasks of the last 30 days do not fail far more often here than elsewhere".to_owned();
            test.checks.push(EndpointCheck { name: "faults".to_owned(), ok: Some(true), told, fix: None });
        }
        test.checks.extend(checks);
        Ok(())
    }

    /// Writes what the last day had, as metrics: labels are words of the program.
    pub(super) fn write_fault_metrics(&self, text: &mut String) -> Done<()> {
        let now = self.clock.elapsed();
        let fresh =
            |(at, found): &(Duration, FaultStatistics)| (now.saturating_sub(*at) < FRESH).then(|| found.clone());
        let known = lock(&self.faults_known.0).as_ref().and_then(fresh);
        let found = match known {
            Some(found) => found,
            None => {
                let to = self.now().after(Duration::from_micros(1));
                let from = before(to, PRESENT);
                let found = statistics(&self.ledger.visits(None, from, VISITS_MOST)?, from, to);
                *lock(&self.faults_known.0) = Some((now, found.clone()));
                found
            }
        };
        let name = "carrack_fault_bursts";
        head(text, name, "gauge", "Places where tasks of the last day fail far more often than elsewhere, by kind.");
        for kind in PlaceKind::ALL {
            let count = found.bursts.iter().filter(|burst| burst.place.kind == *kind).count();
            line(text, name, &format!("kind=\"{}\"", kind.name()), count);
        }
        let name = "carrack_day_tasks_with_faults";
        head(text, name, "gauge", "Tasks of the last day with a fault, repaired or not, by its code.");
        for FaultCode { code, tasks } in &found.codes {
            line(text, name, &format!("code=\"{code}\""), tasks);
        }
        head(text, "carrack_day_tasks", "gauge", "Tasks whose last attempt ended within a day.");
        line(text, "carrack_day_tasks", "", found.tasks);
        Ok(())
    }
}

/// Places by the names of their endpoints.
fn by_endpoints(found: VisitedTasks) -> VisitedTasks {
    let renamed = |task: TaskVisits| {
        let visits = task.visits.into_iter().map(EndVisit::by_endpoint).collect();
        TaskVisits { visits, ..task }
    };
    VisitedTasks { tasks: found.tasks.into_iter().map(renamed).collect(), ..found }
}

/// What a test of an endpoint says of a burst there.
fn check_of(burst: &FaultBurst, endpoint: &Endpoint) -> EndpointCheck {
    let FaultBurst { place, tasks, faulty, tasks_elsewhere, faulty_elsewhere, from, to, .. } = burst;
    let (at, fix) = match place.kind {
        PlaceKind::Host => (
            "at its host".to_owned(),
            "look at the host: its memory, network card and cables; carrack doctor shows more",
        ),
        PlaceKind::Disk => (
            "on its disk".to_owned(),
            "look at the disk (smartctl, the log of its kernel), and at what is on it: carrack check compares copies",
        ),
        PlaceKind::Path => {
            let path = place.path.as_deref().unwrap_or_default();
            let root = endpoint.location.directory();
            let below = path.strip_prefix(root.strip_suffix('/').unwrap_or(root));
            let at = match below {
                Some(below) if below.starts_with('/') => format!("in @{}:{below}", endpoint.name),
                _ => "in the directory that its root is in".to_owned(),
            };
            (at, "look at the disk that the directory is on, and at what is in it")
        }
        PlaceKind::Link => {
            ("between its host and another one".to_owned(), "look at the network between the two: carrack doctor")
        }
    };
    let codes = burst.codes.iter().take(3).map(|FaultCode { code, tasks }| format!("{code}: {tasks}"));
    let told = format!(
        "{faulty} of {tasks} tasks had a fault {at} ({}) from {from} to {to}, and {faulty_elsewhere} of \
         {tasks_elsewhere} tasks elsewhere",
        codes.collect::<Vec<_>>().join(", ")
    );
    EndpointCheck { name: "faults".to_owned(), ok: None, told, fix: Some(fix.to_owned()) }
}
