//! Secrets of endpoints, sealed at rest: AES-256-GCM with a key in a file of its own, which no backup of the ledger
//! holds. What is sealed for one endpoint opens for no other.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};

use super::digest::random;
use crate::model::Secret;

const KEY_BYTES: usize = 32;
/// The first byte of what is sealed: this form.
const FORM: u8 = 1;

/// Why something could not be sealed or opened.
#[derive(Debug)]
pub enum SealError {
    /// The key's file cannot be read or made.
    KeyFile(PathBuf, io::Error),
    /// What is kept was sealed with another key, or for another endpoint, or has changed since.
    Unopened,
    /// The system gives no random bytes.
    NoRandom,
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyFile(path, error) => write!(f, "the key that seals secrets, {}: {error}", path.display()),
            Self::Unopened => f.write_str(
                "the secret that is kept does not open with the service's key: the key file is another one than when it was \
                 sealed. Give the endpoint its token once more",
            ),
            Self::NoRandom => f.write_str("the system gives no random bytes"),
        }
    }
}

impl std::error::Error for SealError {}

/// Seals and opens secrets.
pub struct Seal {
    key: RandomizedNonceKey,
}

impl Seal {
    /// With the key in this file, which is made if it is not there, readable by its owner alone.
    ///
    /// # Errors
    /// [`SealError::KeyFile`], also where others can read it.
    pub fn open(path: &Path) -> Result<Self, SealError> {
        let failed = |error| SealError::KeyFile(path.to_owned(), error);
        match read_key(path) {
            Ok(key) => Self::with_key(&key),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = random::<KEY_BYTES>().map_err(failed)?;
                let mut file =
                    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
                file.write_all(&key).and_then(|()| file.sync_all()).map_err(failed)?;
                Self::with_key(&key)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// With a key of 32 bytes.
    ///
    /// # Errors
    /// [`SealError::NoRandom`] where the cipher cannot be had.
    pub fn with_key(key: &[u8; KEY_BYTES]) -> Result<Self, SealError> {
        RandomizedNonceKey::new(&AES_256_GCM, key).map(|key| Self { key }).map_err(|_| SealError::NoRandom)
    }

    /// Seals an endpoint's secret.
    ///
    /// # Errors
    /// [`SealError::NoRandom`].
    pub fn seal(&self, endpoint: &str, secret: &Secret) -> Result<Vec<u8>, SealError> {
        let mut text = secret.reveal().as_bytes().to_vec();
        let nonce = self
            .key
            .seal_in_place_append_tag(Aad::from(endpoint.as_bytes()), &mut text)
            .map_err(|_| SealError::NoRandom)?;
        Ok([&[FORM], nonce.as_ref().as_slice(), &text].concat())
    }

    /// Opens what was sealed for this endpoint.
    ///
    /// # Errors
    /// [`SealError::Unopened`].
    pub fn unseal(&self, endpoint: &str, sealed: &[u8]) -> Result<Secret, SealError> {
        let rest = sealed.strip_prefix(&[FORM]).ok_or(SealError::Unopened)?;
        let (nonce, text) = rest.split_at_checked(NONCE_LEN).ok_or(SealError::Unopened)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::Unopened)?;
        let mut text = text.to_vec();
        let opened = self
            .key
            .open_in_place(nonce, Aad::from(endpoint.as_bytes()), &mut text)
            .map_err(|_| SealError::Unopened)?;
        std::str::from_utf8(opened).map(Secret::new).map_err(|_| SealError::Unopened)
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(..)")
    }
}

fn read_key(path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let file = OpenOptions::new().read(true).open(path)?;
    if file.metadata()?.mode() & 0o077 != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others can read it: chmod 600 it"));
    }
    let mut key = Vec::new();
    file.take(KEY_BYTES as u64 + 1).read_to_end(&mut key)?;
    key.try_into().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it does not hold 32 bytes"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn secret_opens_with_its_key_for_its_endpoint_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("seal.key");
        let (secret, seal) = (Secret::new("canary-7f3a"), Seal::open(&path).unwrap());
        let sealed = seal.seal("lab", &secret).unwrap();
        assert_ne!(sealed, seal.seal("lab", &secret).unwrap(), "another nonce each time");
        assert!(!String::from_utf8_lossy(&sealed).contains("canary"));
        assert_eq!(Seal::open(&path).unwrap().unseal("lab", &sealed).unwrap(), secret);
        assert!(matches!(seal.unseal("lab2", &sealed), Err(SealError::Unopened)));
        assert!(matches!(Seal::with_key(&[7; 32]).unwrap().unseal("lab", &sealed), Err(SealError::Unopened)));
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert!(seal.unseal("lab", &changed).is_err(), "{place}");
            assert!(seal.unseal("lab", &sealed[..place]).is_err(), "{place}");
        }
    }

    #[test]
    fn seal_key_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("seal.key");
        Seal::open(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Seal::open(&path).unwrap_err().to_string().contains("chmod 600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, [1; 31]).unwrap();
        assert!(Seal::open(&path).unwrap_err().to_string().contains("32 bytes"));
    }
}
