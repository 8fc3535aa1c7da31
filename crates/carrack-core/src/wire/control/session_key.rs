//! The key of a session's data connections.

use super::raw;
use crate::request::Encrypt;
use crate::wire::ProtocolError;

/// What a session's data connections need, checked.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey {
    /// The number that tells the session from all others.
    pub id: [u8; 16],
    /// Proves that a connection belongs to it.
    pub secret: [u8; 32],
    /// TLS, or clear with MACs.
    pub encrypt: Encrypt,
}

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionKey").field("encrypt", &self.encrypt).finish_non_exhaustive()
    }
}

impl From<SessionKey> for raw::Session {
    fn from(key: SessionKey) -> Self {
        Self { id: key.id.to_vec(), secret: key.secret.to_vec(), encrypt: key.encrypt == Encrypt::Tls }
    }
}

impl TryFrom<Option<raw::Session>> for SessionKey {
    type Error = ProtocolError;

    fn try_from(session: Option<raw::Session>) -> Result<Self, ProtocolError> {
        let wrong = || ProtocolError::violation("the peer sent a session without a whole identifier and secret");
        let session = session.ok_or_else(wrong)?;
        Ok(Self {
            id: session.id.try_into().map_err(|_| wrong())?,
            secret: session.secret.try_into().map_err(|_| wrong())?,
            encrypt: if session.encrypt { Encrypt::Tls } else { Encrypt::None },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_does_not_print() {
        let key = SessionKey { id: [0xaa; 16], secret: [0xbb; 32], encrypt: Encrypt::Tls };
        assert!(!format!("{key:?}").contains("187"));
        assert_eq!(SessionKey::try_from(Some(key.clone().into())), Ok(key));
        assert!(SessionKey::try_from(Some(raw::Session::default())).is_err());
    }
}
