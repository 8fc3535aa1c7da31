//! `carrack gc`: what transfers have left that nobody takes up again.

use carrack_core::path::{display_bytes, join};
use carrack_core::tuning::LEFTOVER_AGE;
use serde_json::json;

use super::place::Session;
use crate::cli::duration::parse_duration;
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::output::json as objects;

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let locations = flags.locations("locations")?;
    let older = flags.parse("older-than", parse_duration)?.unwrap_or(LEFTOVER_AGE);
    let dry_run = flags.has("dry-run");
    let mut session = Session::new("gc", flags)?;
    session.each(&locations, |session, files, path| {
        let collected = files.collect(path, older, dry_run, &mut |mut found| {
            let name = join(path, &found.path);
            if let Some(failure) = found.error.take() {
                return session.fail(&name, failure);
            }
            session.done += 1;
            if session.json {
                let fields = json!({ "size": found.size, "dry_run": dry_run });
                session.json("leftover", objects::with_path(fields, &name));
            } else if !session.quiet {
                session.line(display_bytes(&name).to_string().as_bytes());
            }
        });
        collected.map(|_| ())
    })?;
    session.finish()
}
