//! Values that may not be known, with the reason.

use std::fmt;

/// Why something is not known: half a sentence, as `eth0 tells no speed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown(pub String);

impl Unknown {
    /// For this reason.
    pub fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A value, or why there is none.
pub type Known<T> = Result<T, Unknown>;
