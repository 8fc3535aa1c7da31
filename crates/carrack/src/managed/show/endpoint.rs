//! Endpoints.

use carrack_service::model::{Endpoint, EndpointLimits};

use super::{shortened, time};
use crate::cli::task_location::shown_endpoint_location;
use crate::output::{format, human};

/// Headings of [`endpoint_row`].
pub const ENDPOINT_HEADINGS: [&str; 4] = ["ENDPOINT", "OWNER", "MAY", "LOCATION"];

/// An endpoint in a list.
pub fn endpoint_row(endpoint: &Endpoint) -> [String; 4] {
    [
        human::safe(&endpoint.name),
        human::safe(&endpoint.owner),
        may(endpoint).to_owned(),
        shortened(&shown_endpoint_location(&endpoint.location), 100),
    ]
}

fn may(endpoint: &Endpoint) -> &'static str {
    if endpoint.read_only { "read" } else { "write" }
}

/// An endpoint in full.
pub fn endpoint_lines(endpoint: &Endpoint) -> Vec<String> {
    let mut lines = vec![
        format!("endpoint {}", endpoint.name),
        format!("  location: {}", shown_endpoint_location(&endpoint.location)),
        format!("  tasks may: {}", may(endpoint)),
        format!("  owner: {}", endpoint.owner),
    ];
    let mut line = |name: &str, text: String| lines.push(format!("  {name}: {text}"));
    if !endpoint.users.is_empty() {
        line("users", endpoint.users.join(", "));
    }
    if endpoint.uploads {
        line("uploads", "allowed, through the service".to_owned());
    }
    line("token", if endpoint.has_token { "kept, sealed".to_owned() } else { "none".to_owned() });
    let EndpointLimits { transfers, streams, rate, timetable } = &endpoint.limits;
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
    lines.iter().map(|line| human::safe(line)).collect()
}
