//! Metrics by place and timer: what was moved between which endpoints and how tasks ended there, how endpoints do, how
//! often timers ran.

use carrack_engine::sync::lock;

use super::Api;
use super::counters::{head, line};
use super::place_counters::{PLACES_MOST, PlaceSums, labels};
use super::problem::Done;
use crate::clock::Moment;
use crate::identity::Caller;
use crate::ledger::Page;
use crate::ledger::tally::{MINUTE, OverviewQuery};
use crate::model::{HealthState, TimerState};

impl Api {
    /// Writes them.
    pub(super) fn write_places(&self, caller: &Caller, text: &mut String) -> Done<()> {
        self.write_sums(text)?;
        self.write_endpoints(caller, text)?;
        self.write_timers(text)
    }

    /// Sums of whole minutes, and what the minute under way has by now.
    fn place_sums(&self) -> Done<PlaceSums> {
        let now = self.now();
        let minute = Moment(now.0.div_euclid(MINUTE) * MINUTE);
        let rows = |from: Moment, to: Moment| {
            let minutes = u32::try_from((to.0 - from.0) / MINUTE).unwrap_or(u32::MAX);
            let query = OverviewQuery { curves_of: None, rows_of: None, from, step_minutes: minutes, steps: 1, now };
            self.ledger.overview(&query)
        };
        let mut sums = lock(&self.places.sums);
        let until = *sums.until.get_or_insert(minute);
        if until < minute {
            let over = rows(until, minute)?;
            sums.add(&over);
            sums.until = Some(minute);
        }
        let mut sums = sums.clone();
        sums.add(&rows(minute, Moment(minute.0 + MINUTE))?);
        Ok(sums)
    }

    fn write_sums(&self, text: &mut String) -> Done<()> {
        let sums = self.place_sums()?;
        let name = "carrack_moved_bytes_total";
        head(text, name, "counter", "Bytes that came to their destinations, by places.");
        for ((source, destination), bytes) in &sums.bytes {
            line(text, name, &labels(&[("source", source), ("destination", destination)]), bytes);
        }
        let name = "carrack_tasks_ended_total";
        head(text, name, "counter", "Tasks that ended, by places and state.");
        for ((source, destination, state), tasks) in &sums.ended {
            let labels = labels(&[("source", source), ("destination", destination), ("state", state)]);
            line(text, name, &labels, tasks);
        }
        let name = "carrack_failures_total";
        head(text, name, "counter", "Failures of attempts and tasks, by side and code.");
        for ((side, code), count) in &sums.failures {
            line(text, name, &labels(&[("side", side), ("code", code)]), count);
        }
        Ok(())
    }

    fn write_endpoints(&self, caller: &Caller, text: &mut String) -> Done<()> {
        let mut endpoints = self.ledger.endpoints(&Page { after: None, limit: PLACES_MOST })?;
        self.tell_health(caller, None, &mut endpoints)?;
        let known = || endpoints.iter().filter_map(|endpoint| Some((&*endpoint.name, endpoint.health.as_ref()?)));
        head(
            text,
            "carrack_endpoint_up",
            "gauge",
            "1: nothing has failed at the endpoint since it was last used; else 0.",
        );
        for (name, health) in known() {
            let is_up = matches!(health.state, HealthState::Ok | HealthState::Idle);
            line(text, "carrack_endpoint_up", &labels(&[("endpoint", name)]), u8::from(is_up));
        }
        head(text, "carrack_endpoint_open_tasks", "gauge", "Tasks that have not ended, by endpoint.");
        for (name, health) in known() {
            line(text, "carrack_endpoint_open_tasks", &labels(&[("endpoint", name)]), health.open_tasks);
        }
        Ok(())
    }

    fn write_timers(&self, text: &mut String) -> Done<()> {
        let timers = self.ledger.timers(None, &Page { after: None, limit: PLACES_MOST })?;
        let labels_of = |id: &str, label: Option<&str>| labels(&[("timer", id), ("label", label.unwrap_or_default())]);
        head(text, "carrack_timer_runs_total", "counter", "Runs of a timer.");
        for timer in &timers {
            line(text, "carrack_timer_runs_total", &labels_of(&timer.id, timer.label.as_deref()), timer.runs);
        }
        let name = "carrack_timer_next_run_seconds";
        head(text, name, "gauge", "When a waiting timer is due next, in seconds since 1970.");
        for timer in timers.iter().filter(|timer| timer.state == TimerState::Waiting) {
            let Some(next) = timer.next_run else { continue };
            line(text, name, &labels_of(&timer.id, timer.label.as_deref()), next.0.div_euclid(1_000_000));
        }
        Ok(())
    }
}
