//! Which names a receiver takes.

use std::collections::BTreeSet;

use super::ProtocolError;
use crate::failure::ErrorCode;
use crate::path::{above, display_bytes};

/// What a receiver takes: items of these names, and what is below them. A sender could be told to send `report.pdf`
/// into a home directory, and send `.bashrc`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Empty: whatever comes, because the content of a directory was asked for.
    targets: BTreeSet<Vec<u8>>,
}

impl Expected {
    /// These and what is below them; with none, anything.
    pub fn new(targets: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self { targets: targets.into_iter().collect() }
    }

    /// Checks a path that has the form of one.
    ///
    /// # Errors
    /// When it was not asked for.
    pub fn check(&self, path: &[u8]) -> Result<(), ProtocolError> {
        if self.targets.is_empty() || above(path).chain([path]).any(|path| self.targets.contains(path)) {
            return Ok(());
        }
        let shown = display_bytes(&path[..path.len().min(200)]);
        Err(ProtocolError {
            code: ErrorCode::BadPath,
            what: format!("the peer sent the path \"{shown}\", which was not asked for"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_were_not_asked_for_are_not_expected() {
        let expected = Expected::new([b"f".to_vec(), b"a/b".to_vec()]);
        for path in [&b"f"[..], b"f/x", b"f/x/y", b"a/b", b"a/b/c"] {
            assert_eq!(expected.check(path), Ok(()), "{path:?}");
        }
        for path in [&b"g"[..], b"ff", b".f", b"F", b"a", b"a/c", b"x/f", b".bashrc"] {
            let error = expected.check(path).expect_err("not asked for");
            assert_eq!(error.code, ErrorCode::BadPath);
        }
        assert_eq!(Expected::default().check(b"anything"), Ok(()));
    }
}
