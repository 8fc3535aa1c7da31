//! Endpoints.

use carrack_service::clock::Moment;
use carrack_service::model::{Endpoint, EndpointFault, EndpointHealth, EndpointLimits};

use super::{shortened, time};
use crate::output::{format, human};

/// Headings of [`endpoint_row`].
pub const ENDPOINT_HEADINGS: [&str; 5] = ["ENDPOINT", "HEALTH", "OWNER", "MAY", "LOCATION"];

/// An endpoint in a list.
pub fn endpoint_row(endpoint: &Endpoint) -> [String; 5] {
    [
        human::safe(&endpoint.name),
        endpoint.health.as_ref().map_or("-", |health| health.state.name()).to_owned(),
        human::safe(&endpoint.owner),
        may(endpoint).to_owned(),
        shortened(&endpoint.location.text(), 100),
    ]
}

fn may(endpoint: &Endpoint) -> &'static str {
    if endpoint.read_only { "read" } else { "write" }
}

/// How an endpoint does, and from what that is known.
fn health_lines(health: &EndpointHealth) -> Vec<String> {
    let EndpointHealth { state, last_contact, last_success, last_fault, last_test, open_tasks } = health;
    let when = |moment: &Option<Moment>| moment.map_or_else(|| "never".to_owned(), time);
    let mut lines = vec![
        format!("  health: {}", state.name()),
        format!("  last reached: {}", when(last_contact)),
        format!("  last success: {}", when(last_success)),
    ];
    if let Some(EndpointFault { time: at, code, why, task, .. }) = last_fault {
        let why = why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let task = task.as_ref().map_or_else(String::new, |task| format!(" (task {task})"));
        lines.push(format!("  last fault: {}, {code}{why}{task}", time(*at)));
    }
    if let Some(test) = last_test {
        lines.push(format!("  last test: {}, {}", time(test.time), if test.ok { "passed" } else { "found faults" }));
    }
    lines.push(format!("  open tasks: {open_tasks}"));
    lines
}

/// An endpoint in full.
pub fn endpoint_lines(endpoint: &Endpoint) -> Vec<String> {
    let mut lines = vec![
        format!("endpoint {}", endpoint.name),
        format!("  location: {}", endpoint.location.text()),
        format!("  tasks may: {}", may(endpoint)),
        format!("  owner: {}", endpoint.owner),
    ];
    let mut line = |name: &str, text: String| lines.push(format!("  {name}: {text}"));
    if !endpoint.users.is_empty() {
        line("users", endpoint.users.join(", "));
    }
    if endpoint.ownership {
        line("ownership", "owners, special bits and devices are set".to_owned());
    }
    if endpoint.uploads {
        line("uploads", "allowed, through the service".to_owned());
    }
    line("token", if endpoint.has_token { "kept, sealed".to_owned() } else { "none".to_owned() });
    let EndpointLimits { transfers, streams, rate, timetable, drained } = &endpoint.limits;
    if let Some(why) = drained {
        line("drained", format!("no transfer begins: {why}"));
    }
    if let Some(transfers) = transfers {
        line("transfers at once", transfers.to_string());
    }
    if let Some(streams) = streams {
        line("streams of a transfer", streams.to_string());
    }
    if let Some(rate) = rate {
        line("rate of a transfer", format::rate_bytes(*rate as f64));
    }
    for window in timetable {
        let rate = match window.rate {
            0 => "no transfer begins".to_owned(),
            rate => format::rate_bytes(rate as f64),
        };
        line(&format!("from {} to {}", window.from, window.until), rate);
    }
    if let Some(verify) = endpoint.defaults.verify {
        line("verify", verify.name().to_owned());
    }
    if let Some(encrypt) = endpoint.defaults.encrypt {
        line("encrypt", encrypt.name().to_owned());
    }
    if !endpoint.description.is_empty() {
        line("description", endpoint.description.clone());
    }
    line("added", time(endpoint.added));
    if let Some(health) = &endpoint.health {
        lines.extend(health_lines(health));
    }
    lines.iter().map(|line| human::safe(line)).collect()
}
