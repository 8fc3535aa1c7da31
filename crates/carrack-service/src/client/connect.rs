//! Connections of a client: to a Unix socket, by TLS to a pinned key, or in the clear to this host.

use carrack_engine::sync::lock;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrack_engine::threads;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;

use super::{Called, ClientError, Target};
use crate::identity::digest::sha256;

const CONNECT_PATIENCE: Duration = Duration::from_secs(20);

type Sender = SendRequest<Full<Bytes>>;

pub(super) async fn connect(target: &Target) -> Called<Sender> {
    match tokio::time::timeout(CONNECT_PATIENCE, connect_at_all(target)).await {
        Ok(connected) => connected,
        Err(_) => Err(unreachable(target, &io::ErrorKind::TimedOut.into())),
    }
}

async fn connect_at_all(target: &Target) -> Called<Sender> {
    let failed = |error: io::Error| unreachable(target, &error);
    match target {
        Target::Socket(path) => speak(target, UnixStream::connect(path).await.map_err(failed)?).await,
        Target::Loopback { address, port } => {
            speak(target, TcpStream::connect((*address, *port)).await.map_err(failed)?).await
        }
        Target::Tls { host, port, pin } => {
            let addresses = look_up(host, *port).await.map_err(failed)?;
            let socket = TcpStream::connect(&addresses[..]).await.map_err(failed)?;
            let provider = Arc::new(provider::default_provider());
            let key =
                Arc::new(PinnedCertificate { pin: *pin, seen: Mutex::new(None), provider: Arc::clone(&provider) });
            let config = ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&[&rustls::version::TLS13])
                .map_err(|error| ClientError::Broken(error.to_string()))?
                .dangerous()
                .with_custom_certificate_verifier(Arc::<PinnedCertificate>::clone(&key));
            let mut config = config.with_no_client_auth();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            let name = ServerName::try_from(host.clone())
                .map_err(|_| ClientError::Broken(format!("{host} is neither a name nor an address")))?;
            match tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, socket).await {
                Ok(stream) => speak(target, stream).await,
                Err(error) => Err(key.why(target).unwrap_or_else(|| failed(error))),
            }
        }
    }
}

/// The addresses of a name, found in a thread that nobody waits for longer than he likes.
async fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (tell, told) = oneshot::channel();
    let name = (host.to_owned(), port);
    let find = move || {
        let found = name.to_socket_addrs().map(Iterator::collect);
        // Whoever asked may have gone.
        let _ = tell.send(found);
    };
    threads::start("looking a host up", find)?;
    told.await.unwrap_or_else(|_| Err(io::ErrorKind::NotFound.into()))
}

async fn speak(target: &Target, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Called<Sender> {
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| ClientError::Broken(format!("{target}: {error}")))?;
    // It ends with the sender and the body, and tells its errors to them.
    tokio::spawn(connection);
    Ok(sender)
}

fn unreachable(target: &Target, error: &io::Error) -> ClientError {
    ClientError::Unreachable { target: target.to_string(), why: error.to_string(), kind: error.kind() }
}

/// Accepts a certificate by its public key alone: name, times and issuer of one that is signed by itself prove nothing.
#[derive(Debug)]
struct PinnedCertificate {
    pin: Option<[u8; 32]>,
    seen: Mutex<Option<[u8; 32]>>,
    provider: Arc<CryptoProvider>,
}

impl PinnedCertificate {
    /// Why its handshake failed, where the key was the reason.
    fn why(&self, target: &Target) -> Option<ClientError> {
        let shown = (*lock(&self.seen))?;
        let target = target.host_header();
        match self.pin {
            None => Some(ClientError::UnknownKey { target, shown }),
            Some(pin) if pin != shown => Some(ClientError::ChangedKey { target, shown }),
            Some(_) => None,
        }
    }
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let key = ParsedCertificate::try_from(end_entity)?.subject_public_key_info();
        let shown = sha256(&key);
        *lock(&self.seen) = Some(shown);
        if self.pin == Some(shown) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(rustls::Error::InvalidCertificate(rustls::CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not spoken".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
