//! Connections of a client: to a Unix socket, by TLS to a pinned key, or in the clear to this host.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use carrack_engine::keys::{PinnedKey, ShownKey};
use carrack_engine::threads;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs as provider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;

use super::error::{Called, ClientError};
use super::target::Target;

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
            let key = PinnedKey::<OwnCertificate>::new(*pin, Arc::clone(&provider));
            let config = ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&[&rustls::version::TLS13])
                .map_err(|error| ClientError::Broken(error.to_string()))?
                .dangerous()
                .with_custom_certificate_verifier(Arc::<PinnedKey<OwnCertificate>>::clone(&key));
            let mut config = config.with_no_client_auth();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            let name = ServerName::try_from(host.clone())
                .map_err(|_| ClientError::Broken(format!("{host} is neither a name nor an address")))?;
            match tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, socket).await {
                Ok(stream) => speak(target, stream).await,
                Err(error) => Err(refused_key(target, *pin, key.shown()).unwrap_or_else(|| failed(error))),
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

/// A service shows a certificate that it has signed itself.
#[derive(Debug)]
struct OwnCertificate;

impl ShownKey for OwnCertificate {
    const IS_RAW: bool = false;
    const TAKES_UNPINNED: bool = false;

    fn public_key(shown: &CertificateDer<'_>) -> Result<Vec<u8>, rustls::Error> {
        Ok(ParsedCertificate::try_from(shown)?.subject_public_key_info().to_vec())
    }

    fn verify(
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, shown, signature, algorithms)
    }
}

/// Why a handshake failed, where the key was the reason.
fn refused_key(target: &Target, pin: Option<[u8; 32]>, shown: Option<[u8; 32]>) -> Option<ClientError> {
    let (shown, target) = (shown?, target.host_header());
    match pin {
        None => Some(ClientError::UnknownKey { target, shown }),
        Some(pin) if pin != shown => Some(ClientError::ChangedKey { target, shown }),
        Some(_) => None,
    }
}
