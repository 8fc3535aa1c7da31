//! `carrack gc`: what transfers have left that nobody takes up again.

use std::time::Duration;

use carrack_core::path::{display_bytes, join};
use carrack_core::tuning::LEFTOVER_AGE;
use clap::Command;
use serde_json::json;

use super::named::VerbPlace;
use super::place::VerbRun;
use super::reach::with_reach;
use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::output::json as objects;
use carrack_core::duration::parse_duration;

const OLDER_THAN: Value<Duration> =
    Value::new("older-than", "TIME", parse_duration, "Only leftovers unchanged for at least TIME [default: 7d]");
const DRY_RUN: Switch = Switch::short('n', "dry-run", "Show what would be removed; remove nothing");
const LOCATIONS: Positional = Positional::several("locations", "LOCATION");

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("gc")
        .about("Remove leftovers of interrupted copies, older than 7 days")
        .args([OLDER_THAN.arg(), DRY_RUN.arg()])
        .arg(LOCATIONS.arg().required(true));
    with_reach(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let places: Vec<VerbPlace> = flags.locations(&LOCATIONS)?.into_iter().map(VerbPlace::from).collect();
    let older = flags.get(&OLDER_THAN)?.unwrap_or(LEFTOVER_AGE);
    let dry_run = flags.has(&DRY_RUN);
    let mut run = VerbRun::new("gc", flags)?;
    run.each(&places, |run, files, place| {
        let path = place.path();
        let collected = files.collect(path, older, dry_run, &mut |mut found| {
            let name = join(path, &found.path);
            if let Some(failure) = found.error.take() {
                return run.fail(&name, failure);
            }
            run.done += 1;
            if run.json {
                let fields = json!({ "size": found.size, "dry_run": dry_run });
                run.json("leftover", objects::with_path(fields, &name));
            } else if !run.quiet {
                run.line(display_bytes(&name).to_string().as_bytes());
            }
        });
        collected.map(|_| ())
    })?;
    run.finish()
}
