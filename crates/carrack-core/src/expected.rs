//! Digests that files must have: one that has another never gets its name.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::failure::{ErrorCode, Failure, Side};

/// By path relative to the destination, the BLAKE3 digest that a file must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedDigests(Arc<BTreeMap<Vec<u8>, [u8; 32]>>);

impl ExpectedDigests {
    /// Of these files.
    pub fn new(expected: BTreeMap<Vec<u8>, [u8; 32]>) -> Self {
        Self(Arc::new(expected))
    }

    /// Whether any file must have one.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each path with its digest.
    pub fn iter(&self) -> impl Iterator<Item = (&Vec<u8>, &[u8; 32])> {
        self.0.iter()
    }

    /// Compares what was read of a file with what it must be. `path`, relative to the destination, is asked for only if
    /// any file must have a digest.
    ///
    /// # Errors
    /// [`ErrorCode::DigestMismatch`] where it is another, or where its BLAKE3 digest is not known.
    pub fn check(&self, path: impl FnOnce() -> Vec<u8>, blake3: Option<[u8; 32]>) -> Result<(), Failure> {
        if self.0.is_empty() {
            return Ok(());
        }
        match self.0.get(&path()) {
            Some(expected) if blake3 != Some(*expected) => Err(unexpected(expected, blake3)),
            _ => Ok(()),
        }
    }
}

/// A file has another digest than it must have.
fn unexpected(expected: &[u8; 32], found: Option<[u8; 32]>) -> Failure {
    let hex = |digest: [u8; 32]| blake3::Hash::from(digest).to_hex();
    let found = match found {
        Some(digest) => format!("its BLAKE3 digest is {}", hex(digest)),
        None => "its BLAKE3 digest is not known".to_owned(),
    };
    let why = format!("{found}, and {} was expected", hex(*expected));
    Failure::new(ErrorCode::DigestMismatch, Side::Source, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_digest_is_compared_by_path_and_never_guessed() {
        let expected = ExpectedDigests::new(BTreeMap::from([(b"a".to_vec(), [1; 32])]));
        let check = |path: &[u8], blake3| expected.check(|| path.to_vec(), blake3).map_err(|why| why.code);
        assert_eq!(check(b"a", Some([1; 32])), Ok(()));
        assert_eq!(check(b"a", Some([2; 32])), Err(ErrorCode::DigestMismatch));
        assert_eq!(check(b"a", None), Err(ErrorCode::DigestMismatch));
        assert_eq!(check(b"b", Some([2; 32])), Ok(()));
        assert!(!expected.is_empty() && ExpectedDigests::default().is_empty());
    }
}
