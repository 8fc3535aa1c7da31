//! `carrack service status`: how a service does, on one screen.

use carrack_service::model::{Endpoint, HealthState, Overview, StateCount, Whoami};
use clap::Command;
use serde_json::json;

use crate::cli::flags::Flags;
use crate::command::reach::JSON;
use crate::command::task::told;
use crate::error::CommandError;
use crate::exit;
use crate::managed::service::Service;
use crate::managed::show;
use crate::output::format::{count, counted, rate_bytes, size};
use crate::output::human;
use crate::output::lines::Lines;

/// What clap knows of it.
pub fn command() -> Command {
    Command::new("status")
        .about(
            "Show how the service does: version, tasks, what moved and ended in the last day, endpoints with trouble",
        )
        .after_help("Exit code 1 if an endpoint is down or degraded.")
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let (service, as_json) = (Service::open(flags)?, flags.has(&JSON));
    let who: Whoami = service.get("/whoami")?;
    let overview: Overview = service.get("/overview")?;
    let mut endpoints: Vec<Endpoint> = Vec::new();
    service.rows::<Endpoint>("/endpoints", None, &mut |endpoint| {
        endpoints.push(endpoint);
        Ok(())
    })?;
    let ill: Vec<&Endpoint> = endpoints.iter().filter(|endpoint| is_ill(endpoint)).collect();
    let mut out = Lines::stdout(as_json);
    if as_json {
        let fields = json!({
            "service": who.service,
            "user": who.user,
            "states": overview.states,
            "ended": overview.ended,
            "rate": overview.rate,
            "moved": overview.moved.iter().sum::<u64>(),
            "endpoints": endpoints.len(),
            "endpoints_with_trouble": ill.iter().map(|endpoint| &endpoint.name).collect::<Vec<_>>(),
        });
        out.json(&told::object("service-status", &fields));
    } else {
        let place = service.target().to_string();
        lines(&place, &who, &overview, endpoints.len(), &ill).iter().for_each(|line| out.line(line.as_bytes()));
    }
    out.finish()?;
    Ok(if ill.is_empty() { exit::DONE } else { exit::OTHER })
}

fn is_ill(endpoint: &Endpoint) -> bool {
    endpoint.health.as_ref().is_some_and(|health| matches!(health.state, HealthState::Down | HealthState::Degraded))
}

fn lines(place: &str, who: &Whoami, overview: &Overview, endpoints: usize, ill: &[&Endpoint]) -> Vec<String> {
    let mut lines = vec![
        format!("service {place}"),
        format!("  version: {}", who.service),
        format!("  {}", show::whoami_line(who)),
        format!("  tasks: {}", states(&overview.states, "none")),
        format!("  moving: {}", rate_bytes(overview.rate)),
        format!("  last day: {} moved; ended: {}", size(overview.moved.iter().sum()), states(&overview.ended, "none")),
        format!("  endpoints: {}, {} with trouble", count(endpoints as u64), count(ill.len() as u64)),
    ];
    for endpoint in ill {
        let Some(health) = &endpoint.health else { continue };
        let why = health.last_fault.as_ref().map(|fault| {
            let why = fault.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            format!(", {} at {}{why}", fault.code, show::time(fault.time))
        });
        let tasks = counted(health.open_tasks, "open task", "open tasks");
        lines.push(format!("    @{}: {}{}; {tasks}", endpoint.name, health.state.name(), why.unwrap_or_default()));
    }
    lines.iter().map(|line| human::safe(line)).collect()
}

fn states(counts: &[StateCount], none: &str) -> String {
    let named = counts.iter().filter(|count| count.tasks > 0);
    let named: Vec<String> = named.map(|row| format!("{} {}", count(row.tasks), row.state.name())).collect();
    if named.is_empty() { none.to_owned() } else { named.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_names_tasks_and_the_endpoint_with_trouble() {
        let who = json!({ "user": "ada", "role": "admin", "via": "socket", "service": "0.1.0" });
        let overview = json!({
            "from": "2026-11-23T00:00:00Z", "to": "2026-11-24T00:00:00Z", "step_seconds": 720, "moved": [1_048_576, 0],
            "waiting": [], "running": [], "rate": 2e8,
            "ended": [{ "state": "SUCCEEDED", "tasks": 40 }, { "state": "FAILED", "tasks": 0 }],
            "states": [{ "state": "ACTIVE", "tasks": 1 }, { "state": "QUEUED", "tasks": 1200 }],
            "pairs": [], "failures": [], "slowest": [], "stuck": [],
        });
        let who: Whoami = serde_json::from_value(who).expect("a caller");
        let overview: Overview = serde_json::from_value(overview).expect("figures");
        let told = lines("/run/carrack.sock", &who, &overview, 3, &[]).join("\n");
        for line in [
            "service /run/carrack.sock",
            "  version: 0.1.0",
            "  tasks: 1 ACTIVE, 1,200 QUEUED",
            "  moving: 0.20 GB/s",
            "  last day: 1.0 MiB moved; ended: 40 SUCCEEDED",
            "  endpoints: 3, 0 with trouble",
        ] {
            assert!(told.lines().any(|told| told == line), "{line} is not in\n{told}");
        }
    }
}
