//! Keys, and what each side of a handshake accepts: the listener shows one raw key, the connecting side compares it
//! with the pin.

use std::io;
use std::sync::Arc;

use aws_lc_rs::signature::Ed25519KeyPair;
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ServerConfig};

use super::pinned::{PinnedKey, RawKey};

/// The key pair that a listener shows.
#[derive(Clone)]
pub struct Key {
    certified: Arc<CertifiedKey>,
    pkcs8: Vec<u8>,
    /// SHA-256 of the public key: what the other side pins.
    pub pin: [u8; 32],
}

impl Key {
    /// A fresh one.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn generate() -> io::Result<Self> {
        let random = aws_lc_rs::rand::SystemRandom::new();
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&random)
            .map_err(|_| io::Error::other("no key could be made: the system gives no random bytes"))?;
        Self::from_pkcs8(pkcs8.as_ref())
    }

    /// One that was kept.
    ///
    /// # Errors
    /// When the bytes are no key.
    pub fn from_pkcs8(pkcs8: &[u8]) -> io::Result<Self> {
        let unreadable = || io::Error::new(io::ErrorKind::InvalidData, "not an Ed25519 key in PKCS #8");
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pkcs8.to_vec()));
        let signing = provider::sign::any_supported_type(&der).map_err(|_| unreadable())?;
        let public = signing.public_key().ok_or_else(unreadable)?.to_vec();
        let mut pin = [0; 32];
        pin.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &public).as_ref());
        let certified = Arc::new(CertifiedKey::new(vec![CertificateDer::from(public)], signing));
        Ok(Self { certified, pkcs8: pkcs8.to_vec(), pin })
    }

    /// To be kept, readable by nobody else.
    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }
}

/// AES-128-GCM first where the processor has AES, ChaCha20-Poly1305 elsewhere: measured, in performance.md.
pub(super) fn crypto_provider() -> Arc<CryptoProvider> {
    let mut suites = vec![
        provider::cipher_suite::TLS13_AES_128_GCM_SHA256,
        provider::cipher_suite::TLS13_AES_256_GCM_SHA384,
        provider::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    ];
    if !carrack_sys::host::has_aes() {
        suites.rotate_right(1);
    }
    Arc::new(CryptoProvider { cipher_suites: suites, ..provider::default_provider() })
}

/// How the connecting side is configured.
///
/// # Errors
/// When rustls refuses it, which would be a bug.
#[cfg(any(test, feature = "testing"))]
pub fn client_config(pin: Option<[u8; 32]>, alpn: &[&[u8]]) -> io::Result<ClientConfig> {
    pinning(pin, alpn).map(|(config, _)| config)
}

pub(super) fn pinning(pin: Option<[u8; 32]>, alpn: &[&[u8]]) -> io::Result<(ClientConfig, Arc<PinnedKey<RawKey>>)> {
    let provider = crypto_provider();
    let verifier = PinnedKey::<RawKey>::new(pin, Arc::clone(&provider));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::<PinnedKey<RawKey>>::clone(&verifier))
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    config.enable_sni = false;
    config.enable_secret_extraction = true;
    config.resumption = rustls::client::Resumption::disabled();
    Ok((config, verifier))
}

/// A raw key has no name; rustls asks for one, and sends none.
///
/// # Errors
/// None that can happen.
pub fn nameless() -> io::Result<ServerName<'static>> {
    ServerName::try_from("carrack").map_err(io::Error::other)
}

/// How the listening side is configured that shows this key and speaks these protocols (ALPN).
///
/// # Errors
/// When rustls refuses it, which would be a bug.
pub fn server_config(key: &Key, protocols: &[&[u8]]) -> io::Result<ServerConfig> {
    let mut config = ServerConfig::builder_with_provider(crypto_provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::clone(&key.certified))));
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    // A sender never reads its data stream: tickets would lie there unread and turn its close into a reset.
    config.send_tls13_tickets = 0;
    config.enable_secret_extraction = true;
    Ok(config)
}
