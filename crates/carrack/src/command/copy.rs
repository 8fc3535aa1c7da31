//! `carrack SRC... DST`: the engine copies, the output tells.

use crate::cli::flags::Flags;
use crate::cli::options;
use crate::error::CommandError;
use crate::output::Output;

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let (request, output) = options::copy(flags)?;
    let output = Output::open(output)?;
    let report = carrack_engine::copy::copy(&request, &|event| output.event(&event));
    Ok(output.finish(&report))
}
