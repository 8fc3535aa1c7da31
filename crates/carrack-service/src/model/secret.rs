//! A text that no log shows.

use std::fmt;

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use serde::{Deserialize, Serialize};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};

/// Has no core hold what this process knows, and nobody else of this account read its memory.
///
/// # Errors
/// The system's.
pub fn keep_out_of_cores() -> std::io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(())
}

/// A text that no log shows. It is written out where a worker's order is and where a client sends it, and nowhere else.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl utoipa::PartialSchema for Secret {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).write_only(true).into()
    }
}

impl utoipa::ToSchema for Secret {}
