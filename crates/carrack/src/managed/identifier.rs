//! Identifiers as a person types them: whole, or a beginning of at least eight characters that only one has.

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::words::quoted;
use carrack_service::client::with_query;
use carrack_service::model::Listed;
use serde::Deserialize;

use super::service::Service;
use crate::error::CommandError;

/// Fewer are a slip: a number that was meant for something else.
const LEAST: usize = 8;

/// What has an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identified {
    /// A task.
    Task,
    /// A timer.
    Timer,
    /// A token.
    Token,
}

impl Identified {
    fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Timer => "timer",
            Self::Token => "token",
        }
    }

    /// Characters of a whole one.
    fn whole(self) -> usize {
        match self {
            Self::Task | Self::Timer => 36,
            Self::Token => 16,
        }
    }

    /// Where those are listed that may be meant.
    fn list(self, beginning: &str) -> String {
        match self {
            Self::Task => with_query("/tasks", &[("q", beginning)]),
            Self::Timer => "/timers".to_owned(),
            Self::Token => "/tokens".to_owned(),
        }
    }
}

#[derive(Deserialize)]
struct IdentifiedRow {
    id: String,
}

/// The identifier that a word names.
///
/// # Errors
/// [`ErrorCode::NotFound`] where none begins so, a usage error where several do, and those of the service.
pub fn identifier(service: &Service, of: Identified, word: &std::ffi::OsStr) -> Result<String, CommandError> {
    let name = of.name();
    let text = word.to_str().filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| CommandError::usage(format!("a {name} is named by its identifier")))?;
    if text.len() >= of.whole() {
        return Ok(text.to_owned());
    }
    if text.len() < LEAST {
        let why =
            format!("{}: a {name} is named by its identifier, of which at least {LEAST} characters", quoted(text));
        return Err(CommandError::usage(why));
    }
    let text = &*text.to_ascii_lowercase();
    let mut found: Vec<String> = Vec::new();
    let mut take = |row: IdentifiedRow| {
        if row.id.starts_with(text) {
            found.push(row.id);
        }
        Ok(())
    };
    match of {
        Identified::Task | Identified::Timer => service.rows(&of.list(text), None, &mut take)?,
        // A user's tokens are few: they come all at once.
        Identified::Token => {
            let listed: Listed<IdentifiedRow> = service.get(&of.list(text))?;
            listed.items.into_iter().try_for_each(take)?;
        }
    }
    match &found[..] {
        [one] => Ok(one.clone()),
        [] => {
            let why = format!("there is no such {name}: none has an identifier that begins with {}", quoted(text));
            Err(Failure::new(ErrorCode::NotFound, Side::Command, why).into())
        }
        [first, second, ..] => {
            let count = found.len();
            let why = format!("{count} {name}s begin with {}, such as {first} and {second}", quoted(text));
            Err(CommandError::usage(why))
        }
    }
}
