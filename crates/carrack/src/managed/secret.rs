//! Passwords and tokens that a person types, or a program writes to standard input. None is ever an argument.

use carrack_service::model::Secret;

use crate::error::CommandError;
use crate::output::{say, stream};

/// Longer than any token or sensible password.
const BYTES_MAX: usize = 4096;

/// Reads one line from standard input; a terminal does not show what is typed.
///
/// # Errors
/// Standard input that cannot be read; nothing, or too much.
pub fn read(what: &str) -> Result<Secret, CommandError> {
    read_if_any(what)?.ok_or_else(|| CommandError::usage(format!("{what} is empty")))
}

/// The same; `None` for an empty line.
///
/// # Errors
/// Standard input that cannot be read, and too much.
pub fn read_if_any(what: &str) -> Result<Option<Secret>, CommandError> {
    let is_terminal = is_typed();
    if is_terminal {
        stream::say(&format!("{what}: "));
    }
    let line = carrack_sys::standard::hidden_line(BYTES_MAX);
    if is_terminal {
        // The line feed that was typed was not shown either.
        say("");
    }
    let bytes = line.map_err(|error| CommandError::file("cannot read", b"standard input", &error))?;
    let text = String::from_utf8(bytes).map_err(|_| CommandError::usage(format!("{what} is not UTF-8")))?;
    let secret = text.trim_end_matches(['\r', '\n']);
    Ok((!secret.is_empty()).then(|| Secret::new(secret)))
}

/// Reads a password that is to be kept: a person types it twice.
///
/// # Errors
/// As [`read`]; two that differ.
pub fn read_new(what: &str) -> Result<Secret, CommandError> {
    let secret = read(what)?;
    if is_typed() && read("the same again")? != secret {
        return Err(CommandError::usage(format!("{what} was typed in two ways: nothing is changed")));
    }
    Ok(secret)
}

fn is_typed() -> bool {
    use std::io::IsTerminal;
    std::io::stdin().is_terminal()
}
