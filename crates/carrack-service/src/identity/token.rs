//! Tokens: `carrack_ID_SECRET`. The identifier finds the row; of the secret, 256 random bits, only SHA-256 is kept.
//! Leaked tokens are found by their first word.

use std::io;

use data_encoding::{BASE32_NOPAD, HEXLOWER};

use super::digest::{is_same, random, sha256};
use crate::model::Secret;

const PREFIX: &str = "carrack_";
const ID_CHARACTERS: usize = 16;
const SECRET_CHARACTERS: usize = 52;

/// A token that was just made. Only now can it be shown.
#[derive(Debug)]
pub struct NewSecret {
    /// Identifier; not secret.
    pub id: String,
    /// The whole token.
    pub token: Secret,
    /// What is kept.
    pub digest: [u8; 32],
}

impl NewSecret {
    /// Makes one.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn make() -> io::Result<Self> {
        let encode = |bytes: &[u8]| BASE32_NOPAD.encode(bytes).to_ascii_lowercase();
        let (id, secret) = (encode(&random::<10>()?), encode(&random::<32>()?));
        let digest = sha256(secret.as_bytes());
        let token = Secret::new(format!("{PREFIX}{id}_{secret}"));
        Ok(Self { id, token, digest })
    }
}

/// A token that somebody shows.
#[derive(Clone, Debug)]
pub struct ShownToken {
    /// Which row it claims to be.
    pub id: String,
    digest: [u8; 32],
    csrf: String,
}

impl ShownToken {
    /// Parses what stands behind `Bearer`; none if it can be no token.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_ours = |text: &str, length| {
            text.len() == length && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        if !is_ours(id, ID_CHARACTERS) || !is_ours(secret, SECRET_CHARACTERS) {
            return None;
        }
        // Whoever reads the cookie can compute it; a page of another origin cannot read the cookie.
        let csrf = HEXLOWER.encode(&sha256(format!("csrf of {secret}").as_bytes())[..16]);
        Some(Self { id: id.to_owned(), digest: sha256(secret.as_bytes()), csrf })
    }

    /// Whether it is the one whose digest was kept.
    pub fn is(&self, kept: &[u8; 32]) -> bool {
        is_same(&self.digest, kept)
    }

    /// The second proof that a change needs where the token came by a cookie, which browsers send unasked.
    pub fn csrf(&self) -> &str {
        &self.csrf
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_known_by_its_digest_alone() {
        let (made, other) = (NewSecret::make().unwrap(), NewSecret::make().unwrap());
        let shown = ShownToken::parse(made.token.reveal()).unwrap();
        assert_eq!((&shown.id, shown.is(&made.digest), shown.is(&other.digest)), (&made.id, true, false));
        assert!(!format!("{made:?} {shown:?}").contains(made.token.reveal().rsplit_once('_').unwrap().1));
        let again = ShownToken::parse(made.token.reveal()).unwrap();
        assert_eq!(again.csrf(), shown.csrf());
        assert_ne!(ShownToken::parse(other.token.reveal()).unwrap().csrf(), shown.csrf());
    }

    #[test]
    fn token_of_another_form_is_none() {
        let good = NewSecret::make().unwrap().token.reveal().to_owned();
        for bad in [
            "",
            "carrack_",
            "carrack__",
            &good[1..],
            &good[..good.len() - 1],
            &format!("{good}a"),
            &good.to_uppercase(),
            &good.replace("carrack_", "carrack-"),
            &format!("{good} "),
            &good.replacen(&good[8..10], "é", 1),
        ] {
            assert!(ShownToken::parse(bad).is_none(), "{bad}");
        }
    }
}
