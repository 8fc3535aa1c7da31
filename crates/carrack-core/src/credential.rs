//! What a node is shown by whoever connects to it.

use std::fmt;
use std::sync::Arc;

use crate::failure::Failure;
use crate::limits;
use crate::location::NodeAddress;

/// A bearer token: one word of visible ASCII characters. It is not in the text that `Debug` makes.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Takes a token without the white space around it.
    ///
    /// # Errors
    /// What is wrong with it; nothing of it is in the words.
    pub fn new(bytes: &[u8]) -> Result<Self, String> {
        let token = bytes.trim_ascii();
        if token.is_empty() {
            return Err("it is empty".into());
        }
        if token.len() > limits::TOKEN_BYTES {
            return Err(format!("a token has at most {} characters", limits::TOKEN_BYTES));
        }
        // RFC 6750 allows fewer; what is no line of visible characters is a key, a password file, anything but a token.
        match std::str::from_utf8(token) {
            Ok(token) if token.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Self(token.to_owned())),
            _ => Err("it is no token: a token is one word of visible ASCII characters".into()),
        }
    }

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// What one node is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The bearer token, if any.
    pub token: Option<Token>,
    /// Why another token was not shown: what a user has to know if the node refuses this.
    pub withheld: Option<Box<Failure>>,
}

impl From<Token> for Shown {
    fn from(token: Token) -> Self {
        Self { token: Some(token), withheld: None }
    }
}

/// Finds a node's token whenever a connection to it is made. Tokens expire: each session of a long copy asks again.
pub trait TokenSource: fmt::Debug + Send + Sync {
    /// What this node is shown. `was_pinned`: its key was known before the work began; otherwise nobody has
    /// had a chance to compare it.
    ///
    /// # Errors
    /// When a token that is meant for this node cannot be used. Nothing is sent to the node then.
    fn token(&self, node: &NodeAddress, was_pinned: bool) -> Result<Shown, Failure>;
}

/// Where the bearer token comes from that one end's node is shown. It goes to that node alone.
#[derive(Clone, Debug, Default)]
pub enum Credential {
    /// None is shown.
    #[default]
    None,
    /// The one in this file, read for each session; nobody but its owner may be able to read it.
    File(Vec<u8>),
    /// This token, which the caller has at hand.
    Value(Token),
    /// The one that is found when the connection is made.
    Source(Arc<dyn TokenSource>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_one_visible_word_and_is_not_told() {
        let token = Token::new(b" a-secret\n").expect("a token");
        assert_eq!(token.reveal(), "a-secret");
        assert!(!format!("{:?} {:?}", Credential::Value(token.clone()), Shown::from(token)).contains("secret"));
        for (bytes, why) in [(&b" \n"[..], "empty"), (b"two words", "no token"), (b"\x00\x01", "no token")] {
            assert!(Token::new(bytes).expect_err("no token").contains(why), "{why}");
        }
        assert!(Token::new(&vec![b'a'; limits::TOKEN_BYTES + 1]).expect_err("too long").contains("at most"));
        assert!(Token::new(&vec![b'a'; limits::TOKEN_BYTES]).is_ok());
    }
}
