//! Keys that sign receipts: Ed25519, and nothing else uses them.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use data_encoding::{BASE64, BASE64_NOPAD};

use crate::error::ReceiptError;
use crate::ssh::{SshReader, put_string};

/// How OpenSSH calls such a key.
pub(crate) const ALGORITHM: &str = "ssh-ed25519";
const PUBLIC_BYTES: usize = 32;

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";

/// A key that signs receipts. It is made for that, and is no node's key.
pub struct ReceiptKey {
    pair: Ed25519KeyPair,
}

impl ReceiptKey {
    /// A new key, and the text of the file that keeps it: PKCS #8 in PEM.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn generate() -> Result<(Self, String), ReceiptError> {
        let unmade = |_| ReceiptError::Signature("no key can be made: the system gives no random numbers".into());
        let pair = Ed25519KeyPair::generate().map_err(unmade)?;
        let der = pair.to_pkcs8v1().map_err(unmade)?;
        let text = format!("{BEGIN}\n{}\n{END}\n", BASE64.encode(der.as_ref()));
        Ok((Self { pair }, text))
    }

    /// The key that such a text keeps.
    ///
    /// # Errors
    /// When it keeps none.
    pub fn parse(text: &[u8]) -> Result<Self, ReceiptError> {
        let none = || ReceiptError::Signature("it holds no Ed25519 key in PEM (PKCS #8)".into());
        let text = std::str::from_utf8(text).map_err(|_| none())?.trim();
        let inside = text.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END)).ok_or_else(none)?;
        let inside: String = inside.split_ascii_whitespace().collect();
        let der = BASE64.decode(inside.as_bytes()).map_err(|_| none())?;
        let pair = Ed25519KeyPair::from_pkcs8(&der).map_err(|_| none())?;
        Ok(Self { pair })
    }

    /// What others verify with.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; PUBLIC_BYTES];
        bytes.copy_from_slice(self.pair.public_key().as_ref());
        PublicKey { bytes }
    }

    /// Over bytes that say for themselves what they are for.
    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }
}

/// The public half of a key that signs receipts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey {
    bytes: [u8; PUBLIC_BYTES],
}

impl PublicKey {
    /// From `ssh-ed25519 BASE64`, with or without a comment behind it, as OpenSSH writes public keys.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let (algorithm, key) = (words.next()?, words.next()?);
        let blob = BASE64.decode(key.as_bytes()).ok()?;
        (algorithm == ALGORITHM).then(|| Self::from_blob(&blob))?
    }

    /// As SSH has it within other things.
    pub(crate) fn blob(self) -> Vec<u8> {
        let mut blob = Vec::with_capacity(64);
        put_string(&mut blob, ALGORITHM.as_bytes());
        put_string(&mut blob, &self.bytes);
        blob
    }

    pub(crate) fn from_blob(blob: &[u8]) -> Option<Self> {
        let mut reader = SshReader(blob);
        let (algorithm, bytes) = (reader.string()?, reader.string()?);
        let is_ours = algorithm == ALGORITHM.as_bytes() && reader.0.is_empty();
        Some(Self { bytes: bytes.try_into().ok()? }).filter(|_| is_ours)
    }

    /// As `ssh-keygen -l` shows it.
    pub fn fingerprint(self) -> String {
        format!("SHA256:{}", BASE64_NOPAD.encode(digest(&SHA256, &self.blob()).as_ref()))
    }

    pub(crate) fn verifies(self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.bytes).verify(message, signature).is_ok()
    }
}

impl std::fmt::Display for PublicKey {
    /// As OpenSSH writes public keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{ALGORITHM} {}", BASE64.encode(&self.blob()))
    }
}

/// SHA-256, for the lists of other tools.
pub struct Sha256(aws_lc_rs::digest::Context);

impl Default for Sha256 {
    fn default() -> Self {
        Self(aws_lc_rs::digest::Context::new(&SHA256))
    }
}

impl Sha256 {
    /// Of all these bytes.
    pub fn of(bytes: &[u8]) -> Vec<u8> {
        digest(&SHA256, bytes).as_ref().to_vec()
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all that was added.
    pub fn finish(self) -> Vec<u8> {
        self.0.finish().as_ref().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_from_their_texts_and_other_texts_are_none() {
        let (key, text) = ReceiptKey::generate().expect("a key");
        assert_eq!(ReceiptKey::parse(text.as_bytes()).expect("the same").public(), key.public());
        let public = key.public().to_string();
        assert_eq!(PublicKey::parse(&public), Some(key.public()));
        assert_eq!(PublicKey::parse(&format!("{public} me@here")), Some(key.public()));
        for other in ["", "ssh-ed25519", "ssh-ed25519 AAAA", "ssh-rsa AAAAB3NzaC1yc2E=", &public[..public.len() - 8]] {
            assert_eq!(PublicKey::parse(other), None, "{other}");
        }
        let cut = text.replace("MC", "MD");
        for other in [
            &b""[..],
            b"\xff",
            BEGIN.as_bytes(),
            b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
            cut.as_bytes(),
        ] {
            assert!(ReceiptKey::parse(other).is_err());
        }
    }
}
