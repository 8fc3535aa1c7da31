//! What handlers tell of their requests, for the audit.

use std::sync::{Arc, OnceLock};

/// Characters of a name that somebody tried.
const NAME_CHARS: usize = 64;

/// What a handler tells of its request. What is told first holds.
#[derive(Clone, Default)]
pub(super) struct Noted {
    user: Arc<OnceLock<String>>,
    object: Arc<OnceLock<String>>,
}

impl Noted {
    /// What the request made.
    pub fn about(&self, object: &str) {
        // Somebody has told it already.
        let _ = self.object.set(object.to_owned());
    }

    /// Who it was, where nobody is known yet.
    pub fn by(&self, user: &str) {
        // Somebody has told it already.
        let _ = self.user.set(user.chars().filter(|letter| !letter.is_control()).take(NAME_CHARS).collect());
    }

    /// Who it was, if that was told.
    pub fn user(&self) -> Option<&str> {
        self.user.get().map(String::as_str)
    }

    /// What it made, if that was told.
    pub fn object(&self) -> Option<&str> {
        self.object.get().map(String::as_str)
    }
}
