//! `carrack service faults`: how often tasks fail at which places, and where faults come in bursts.

use carrack_service::client::with_query;
use carrack_service::clock::Moment;
use carrack_service::model::FaultStatistics;
use clap::Command;

use crate::cli::flag::Value;
use crate::cli::flags::Flags;
use crate::cli::moment::parse_since;
use crate::command::reach::JSON;
use crate::command::task::told;
use crate::error::CommandError;
use crate::exit;
use crate::managed::service::Service;
use crate::managed::show;
use crate::output::lines::Lines;

const SINCE: Value<Moment> =
    Value::new("since", "TIME", parse_since, "Only tasks that ended later: 2d (ago), or a time [default: 30d]");
const BEFORE: Value<Moment> = Value::new("before", "TIME", parse_since, "Only tasks that ended before");
const ENDPOINT: Value<String> = Value::new(
    "endpoint",
    "NAME",
    |text| Ok(text.strip_prefix('@').unwrap_or(text).to_owned()),
    "Only bursts at this endpoint",
);

const EXAMPLES: &str = "\
Examples:
  carrack service faults                          what stands out of the last 30 days
  carrack service faults --since 1d --endpoint lab
  carrack service faults --json | jq '.bursts[].place'

A fault is what failed at a place, repaired or not: an altered block, a lost connection, a disk that is full. Files that
are not there, or not readable, are none. A place is named where its tasks fail far more often than all others of the
same time; docs/operations.md says by which test.";

/// What clap knows of it.
pub fn command() -> Command {
    Command::new("faults")
        .about("Show at which hosts, disks and directories tasks fail far more often than elsewhere")
        .after_help(EXAMPLES)
        .args([SINCE.arg(), BEFORE.arg(), ENDPOINT.arg()])
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let (service, json) = (Service::open(flags)?, flags.has(&JSON));
    let moment = |flag| Ok::<_, CommandError>(flags.get(flag)?.map(|time: Moment| time.to_string()));
    let (since, before, endpoint) = (moment(&SINCE)?, moment(&BEFORE)?, flags.get(&ENDPOINT)?);
    let query = [("from", &since), ("to", &before), ("endpoint", &endpoint)];
    let query: Vec<(&str, &str)> =
        query.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))).collect();
    let found: FaultStatistics = service.get(&with_query("/faults", &query))?;
    let mut out = Lines::stdout(json);
    if json {
        out.json(&told::object("service-faults", &found));
    } else {
        show::fault_lines(&found).iter().for_each(|line| out.line(line.as_bytes()));
    }
    out.finish()?;
    Ok(exit::DONE)
}
