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
    use std::io::IsTerminal;
    if std::io::stdin().is_terminal() {
        stream::say(&format!("{what}: "));
    }
    let line = carrack_sys::standard::hidden_line(BYTES_MAX);
    if std::io::stdin().is_terminal() {
        // The line feed that was typed was not shown either.
        say("");
    }
    let bytes = line.map_err(|error| CommandError::file("cannot read", b"standard input", &error))?;
    let text = String::from_utf8(bytes).map_err(|_| CommandError::usage(format!("{what} is not UTF-8")))?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(CommandError::usage(format!("{what} is empty"))),
        secret => Ok(Secret::new(secret)),
    }
}
