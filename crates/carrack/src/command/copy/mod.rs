//! `carrack SRC... DST`: the engine copies, the output tells.

mod asking;
mod checks;
mod examples;
pub mod options;
mod signing;

pub use options::{command, sync_command};

use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::location::Location;
use carrack_core::request::CopyRequest;
use carrack_core::tuning::Tuning;
use carrack_engine::{Asker, Context, Copy};

use crate::cli::flags::Flags;
use crate::command::context::context;
use crate::command::copy::asking::TerminalAsker;
use crate::command::copy::signing::Signing;
use crate::error::CommandError;
use crate::output::{Output, OutputOptions, question, stream};

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    run_as(options::copy(flags)?, options::silence(flags)?, false, "copy")
}

/// Runs the verb `sync`.
pub fn sync(flags: &Flags) -> Result<u8, CommandError> {
    let (request, output) = options::sync(flags)?;
    let asks = question::is_watched() && !output.quiet && !output.json && !options::is_agreed(flags);
    run_as((request, output), options::silence(flags)?, asks, "sync")
}

/// `asks` is whether a person is there who can be asked, `of` what a receipt is of.
fn run_as(
    (request, output): (CopyRequest, OutputOptions),
    silence: Option<Duration>,
    asks: bool,
    of: &str,
) -> Result<u8, CommandError> {
    stream::end_by(request.options.deadline.and_then(|deadline| Instant::now().checked_add(deadline)));
    check_standard(&request)?;
    let mut signing = Signing::begin(output.receipt.as_deref(), of)?;
    let output = Arc::new(Output::open(output)?);
    let asker = || Arc::new(TerminalAsker::new(Arc::clone(&output), request.destination.to_string())) as Arc<dyn Asker>;
    let mut context = Context { asker: asks.then(asker), ..context() };
    if let Some(silence) = silence {
        context.tuning = Arc::new(Tuning { silence, ..*context.tuning });
    }
    let options = request.options.clone();
    let mut copy = Copy::start(request, &context);
    while let Some(event) = copy.next_event() {
        output.event(&event);
        signing.event(&event);
    }
    let report = copy.wait();
    // The questions of a copy are not those of a listing.
    let context = Context { asker: None, ..context };
    let unsigned = signing.finish(&output, &report, &options, &context).err();
    Ok(output.finish(&report, unsigned))
}

/// Whether there are the standard streams that the copy is to read or write, before anything is made.
fn check_standard(request: &CopyRequest) -> Result<(), CommandError> {
    if request.sources.contains(&Location::Stdio) {
        stream::input().map_err(|error| CommandError::file("cannot read from", b"standard input", &error))?;
    }
    if request.destination == Location::Stdio {
        stream::output().map_err(|error| stream::not_written(&error))?;
    }
    Ok(())
}
