//! A peer is known by its public key alone: who signed it, its name and its times prove nothing.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

use crate::sync::lock;

/// In which form a listener shows its key.
pub trait ShownKey: Debug + Send + Sync + 'static {
    /// Whether it is a raw key (RFC 7250), and no certificate.
    const IS_RAW: bool;
    /// Whether any key is taken where none is pinned. Whoever asks learns which it was either way.
    const TAKES_UNPINNED: bool;

    /// The public key, as `SubjectPublicKeyInfo`.
    ///
    /// # Errors
    /// When what was shown holds none.
    fn public_key(shown: &CertificateDer<'_>) -> Result<Vec<u8>, Error>;

    /// Checks that the listener holds the key.
    ///
    /// # Errors
    /// When it does not.
    fn verify(
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> Result<HandshakeSignatureValid, Error>;
}

/// A node's key.
#[derive(Debug)]
pub struct RawKey;

impl ShownKey for RawKey {
    const IS_RAW: bool = true;
    const TAKES_UNPINNED: bool = true;

    fn public_key(shown: &CertificateDer<'_>) -> Result<Vec<u8>, Error> {
        Ok(shown.to_vec())
    }

    fn verify(
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
    }
}

/// Accepts the one key that is pinned; where none is, as [`ShownKey::TAKES_UNPINNED`] says.
#[derive(Debug)]
pub struct PinnedKey<K> {
    pin: Option<[u8; 32]>,
    seen: Mutex<Option<[u8; 32]>>,
    provider: Arc<CryptoProvider>,
    form: PhantomData<K>,
}

impl<K: ShownKey> PinnedKey<K> {
    /// Accepts the key with this SHA-256 of its `SubjectPublicKeyInfo`.
    pub fn new(pin: Option<[u8; 32]>, provider: Arc<CryptoProvider>) -> Arc<Self> {
        Arc::new(Self { pin, seen: Mutex::new(None), provider, form: PhantomData })
    }

    /// The SHA-256 of the key that the listener has shown, and whether it is the pinned one.
    pub fn shown(&self) -> Option<[u8; 32]> {
        *lock(&self.seen)
    }
}

impl<K: ShownKey> ServerCertVerifier for PinnedKey<K> {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let key = K::public_key(end_entity)?;
        let mut shown = [0; 32];
        shown.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &key).as_ref());
        *lock(&self.seen) = Some(shown);
        let taken = self.pin.map_or(K::TAKES_UNPINNED, |pin| pin == shown);
        if taken {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(rustls::CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not spoken".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        K::verify(message, shown, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        K::IS_RAW
    }
}
