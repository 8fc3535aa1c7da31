//! `carrack`: the command line of a bulk data mover.
//!
//! Text becomes types in [`cli`], one file per verb in [`command`] calls the engine, [`output`] says what happened, and
//! [`exit`] turns how it ended into a number. Nothing here moves a byte.

// What clippy.toml forbids the product.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod agents;
#[cfg(feature = "terminal")]
mod bench;
mod cli;
mod command;
mod crowd;
mod directories;
#[cfg(feature = "terminal")]
mod doctor;
mod error;
mod exit;
#[cfg(feature = "terminal")]
mod fan;
mod far_scratch;
#[cfg(feature = "service")]
mod managed;
mod output;
#[cfg(feature = "terminal")]
mod receipts;
mod tokens;

#[cfg(test)]
#[path = "../tests/system/support/golden.rs"]
mod golden;

#[cfg(test)]
#[path = "../tests/system/support/json_schema.rs"]
mod json_schema;

use std::io::Write;

fn main() {
    carrack_sys::signal::install();
    carrack_sys::host::raise_open_files_limit();
    let code = command::run(std::env::args_os().collect());
    // What a thread has left to do concerns nobody any more: a copy that went well must not end by its abort.
    let _ = std::io::stdout().flush();
    carrack_sys::host::exit_at_once(code);
}
