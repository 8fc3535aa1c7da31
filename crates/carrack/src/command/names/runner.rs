//! Runs the copies that a line of another program comes to, and has its events told in that program's words.

use std::sync::Arc;
use std::time::Instant;

use carrack_core::report::{ErrorCode, Event, Failure, Report, Side};
use carrack_core::request::CopyRequest;
use carrack_core::tuning::Tuning;
use carrack_engine::{Context, Copy};

use super::step::CopyStep;
use crate::cli::flags::Flags;
use crate::command::context::context;
use crate::command::copy::options;
use crate::error::CommandError;
use crate::output::stream;

/// Tells of a copy in the words of another program.
pub trait Teller {
    /// Something has happened.
    fn event(&mut self, event: &Event);
    /// A copy has ended. Answers with the code that the line ends with if no further copy is made; 0 goes on.
    fn ended(&mut self, step: &CopyStep, report: &Report) -> u8;
}

/// What a step is, in the types that `carrack copy` makes of its own line.
///
/// # Errors
/// What `carrack copy` says to such a line.
pub fn request(step: &CopyStep) -> Result<(CopyRequest, Context), CommandError> {
    let matches = options::command()
        .try_get_matches_from(step.words())
        .map_err(|refusal| CommandError::usage(refusal.render().to_string().trim().to_owned()))?;
    let environment = |name: &str| std::env::var_os(name);
    let flags = Flags::new(&matches, &environment);
    let (mut request, _) = options::copy(&flags)?;
    request.options.item_events = true;
    let mut context = context();
    if let Some(silence) = options::silence(&flags)? {
        context.tuning = Arc::new(Tuning { silence, ..*context.tuning });
    }
    Ok((request, context))
}

/// Runs a copy to its end.
///
/// # Errors
/// What ends it before it begins.
pub fn run(step: &CopyStep, teller: &mut dyn Teller) -> Result<u8, CommandError> {
    let (request, context) = request(step)?;
    run_request(step, request, context, teller)
}

/// The same of a request that is known already.
///
/// # Errors
/// What ends it before it begins.
pub fn run_request(
    step: &CopyStep,
    request: CopyRequest,
    context: Context,
    teller: &mut dyn Teller,
) -> Result<u8, CommandError> {
    stream::end_by(request.options.deadline.and_then(|deadline| Instant::now().checked_add(deadline)));
    let mut copy = Copy::start(request, &context);
    while let Some(event) = copy.next_event() {
        teller.event(&event);
    }
    let mut report = copy.wait();
    if let (Some(pattern), None, 0) = (&step.pattern, &report.error, report.counts.names_made()) {
        let Report { counts, .. } = &report;
        if counts.files_kept + counts.files_same + counts.files_resumed + counts.files_failed == 0 {
            report.error = Some(unmatched(pattern));
        }
    }
    Ok(teller.ended(step, &report))
}

/// That nothing has a name like this.
fn unmatched(pattern: &[u8]) -> Failure {
    let pattern = carrack_core::path::display_bytes(pattern);
    Failure::new(ErrorCode::NotFound, Side::Source, format!("{pattern}: no file has a name that matches"))
}
