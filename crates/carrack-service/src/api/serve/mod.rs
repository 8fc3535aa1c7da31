//! Where the API is reached: a Unix socket, and the node's port by two kinds of doors: TLS that names HTTP/1.1, and
//! HTTP in the clear from this host or from a listed proxy.

mod account;
mod connections;
mod drivers;
mod patient;

use std::io;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use carrack_engine::node::{Door, FirstSaid, HandedOver};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixListener};
use tokio_rustls::StartHandshake;

use self::connections::{Connections, Origin};
use self::drivers::Drivers;
use self::patient::Patient;
use super::{Api, Certificate, CertificateError, Peer, router};
use crate::identity::network;

/// Threads that answer requests. Whatever blocks is done by others.
const THREADS: usize = 2;
/// How often it is looked whether the certificate's files have changed.
const CERTIFICATE_LOOK: Duration = Duration::from_secs(60);
/// How often old uploads are looked for.
const UPLOADS_LOOK: Duration = Duration::from_secs(3600);
/// Of a handshake of TLS.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);
/// For requests under way, when the service ends.
const DRAIN: Duration = Duration::from_secs(5);
/// What clients in the clear begin with: no two begin alike, and no other door's clients do.
/// Those that no route takes are among them: whoever tries one is told so.
const METHODS: [&[u8]; 10] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"PATCH ", b"DELETE ", b"OPTIONS ", b"TRACE ", b"CONNECT ", b"QUERY "];
const CLEAR_REFUSED: &str = "HTTP/1.1 403 Forbidden\r\nContent-Type: application/problem+json\r\nConnection: close\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Forbidden\",\"status\":403,\"detail\":\"HTTP in the clear is for this host alone\",\
    \"code\":\"forbidden\",\"hints\":[\"use https://\"]}\n";

/// How long clients may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Of a request's head, and between two requests.
    pub head: Duration,
    /// From the head of a request to the head of its answer.
    pub request: Duration,
    /// A reader who takes nothing for so long is gone.
    pub reader: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { head: Duration::from_secs(20), request: Duration::from_secs(60), reader: Duration::from_secs(60) }
    }
}

/// Where the API is reached.
#[derive(Debug, Default)]
pub struct ServeConfig {
    /// The Unix socket. What stands there from an earlier run goes.
    pub socket: Option<PathBuf>,
    /// The same, opened by somebody else.
    pub listener: Option<StdUnixListener>,
    /// For TLS; none: no door on the node's port.
    pub certificate: Option<Arc<Certificate>>,
    /// Names of the host and the service, beside `localhost` and addresses: browsers that ask for another one are
    /// refused.
    pub names: Vec<String>,
    /// Proxies that may come in the clear, and whose word for the client's address is taken.
    pub proxies: Vec<IpAddr>,
    /// How long clients may take.
    pub patience: Patience,
}

/// The API at work. It ends when the handle is dropped.
pub struct ApiHandle {
    api: Arc<Api>,
    serving: Arc<Serving>,
    certificate: Option<Arc<Certificate>>,
    socket: Option<PathBuf>,
    drivers: Option<Arc<Drivers>>,
}

/// What all connections share.
struct Serving {
    api: Arc<Api>,
    app: Router,
    connections: Arc<Connections>,
    proxies: Vec<IpAddr>,
    patience: Patience,
}

/// Starts the API in threads of its own.
///
/// # Errors
/// When the socket cannot be had, or the system gives no threads.
pub fn start(api: Arc<Api>, config: ServeConfig) -> io::Result<ApiHandle> {
    api.hands.start()?;
    let drivers = Arc::new(Drivers::start(THREADS)?);
    let serving = Arc::new(Serving {
        app: router(&api, config.patience.request, &config.names),
        patience: config.patience,
        api: Arc::clone(&api),
        connections: Arc::default(),
        proxies: config.proxies.iter().map(IpAddr::to_canonical).collect(),
    });
    let listener = match (config.listener, &config.socket) {
        (Some(listener), _) => Some(listener),
        (None, Some(path)) => Some(bind(path)?),
        (None, None) => None,
    };
    if let Some(listener) = listener {
        listener.set_nonblocking(true)?;
        let handle = drivers.next().clone();
        let _context = handle.enter();
        let listener = UnixListener::from_std(listener)?;
        handle.spawn(Arc::clone(&serving).accept(listener));
    }
    drivers.next().spawn(sweep(Arc::clone(&api)));
    if let Some(certificate) = &config.certificate {
        drivers.next().spawn(watch(Arc::clone(&api), Arc::clone(certificate)));
    }
    Ok(ApiHandle { api, serving, certificate: config.certificate, socket: config.socket, drivers: Some(drivers) })
}

/// Everybody may connect: the service sees each caller's account.
fn bind(path: &Path) -> io::Result<StdUnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = StdUnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

/// Removes uploads that nobody goes on with.
async fn sweep(api: Arc<Api>) {
    loop {
        tokio::time::sleep(UPLOADS_LOOK).await;
        let uploads = Arc::clone(&api.uploads);
        // A panic there is told by its own message.
        let _ = api.hands.run(move || uploads.sweep()).await;
    }
}

async fn watch(api: Arc<Api>, certificate: Arc<Certificate>) {
    loop {
        tokio::time::sleep(CERTIFICATE_LOOK).await;
        let looked = Arc::clone(&certificate);
        if let Ok(reloaded) = api.hands.run(move || looked.reload()).await {
            tell(&reloaded);
        }
    }
}

fn tell(reloaded: &Result<bool, CertificateError>) {
    match reloaded {
        Ok(true) => tracing::info!(target: "carrack::api", "the certificate was loaded again"),
        Ok(false) => {}
        Err(error) => tracing::warn!(target: "carrack::api", "the certificate before stays in use: {error}"),
    }
}

impl ApiHandle {
    /// The doors of the API for the node's port; none without a certificate.
    ///
    /// # Errors
    /// Every [`CertificateError`].
    pub fn doors(&self) -> Result<Vec<Door>, CertificateError> {
        let (Some(certificate), Some(drivers)) = (&self.certificate, &self.drivers) else { return Ok(Vec::new()) };
        let config = certificate.config()?;
        let mut doors = Vec::new();
        let (serving, by, for_tls) = (Arc::clone(&self.serving), Arc::downgrade(drivers), Arc::clone(&config));
        doors.push(Door::tls_unshaken(config, move |handed| take(&serving, &by, &for_tls, handed)));
        for method in METHODS {
            let (serving, by, config) = (Arc::clone(&self.serving), Arc::downgrade(drivers), certificate.config()?);
            doors.push(Door::clear_handed_over(method, move |handed| take(&serving, &by, &config, handed)));
        }
        Ok(doors)
    }

    /// SHA-256 of the public key that TLS shows; none without a certificate.
    pub fn fingerprint(&self) -> Option<[u8; 32]> {
        self.certificate.as_ref().map(|certificate| certificate.fingerprint())
    }

    /// Where the Unix socket is.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// The API itself.
    pub fn api(&self) -> &Arc<Api> {
        &self.api
    }

    /// Loads the certificate's files again if they have changed; the log says whether they could be used.
    pub fn reload(&self) {
        if let Some(certificate) = &self.certificate {
            tell(&certificate.reload());
        }
    }

    /// Takes no more requests, and waits a few seconds for those that are under way.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(drivers) = self.drivers.take() else { return };
        self.api.stop();
        let connections = Arc::clone(&self.serving.connections);
        drivers.wait_for(async {
            // Whoever does not end in time is cut off.
            let _ = tokio::time::timeout(DRAIN, connections.until_none()).await;
        });
        drivers.end();
        if let Some(path) = &self.socket {
            // The next run would remove it as well.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for ApiHandle {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for ApiHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiHandle").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Serving {
    async fn accept(self: Arc<Self>, listener: UnixListener) {
        let mut stopping = self.api.stopping.subscribe();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stopping.wait_for(|stopping| *stopping) => return,
            };
            let Ok((stream, _)) = accepted else {
                // Out of descriptors: whoever is served now gives some back.
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            // Without an account nobody is known there.
            let Ok(account) = stream.peer_cred().map(|peer| peer.uid()) else { continue };
            if let Some(place) = self.connections.admit(Origin::Account(account)) {
                let serving = Arc::clone(&self);
                tokio::spawn(async move {
                    let peer = Peer::Account(account);
                    connections::serve(&serving, Patient::new(stream, b"", serving.patience.reader), move |_| {
                        peer.clone()
                    })
                    .await;
                    drop(place);
                });
            } else if let Some(refusal) = self.connections.refusal() {
                tokio::spawn(async move {
                    connections::refuse(stream).await;
                    drop(refusal);
                });
            }
        }
    }
}

/// Takes a client of the node's port.
fn take(serving: &Arc<Serving>, by: &Weak<Drivers>, config: &Arc<rustls::ServerConfig>, handed: HandedOver) {
    // The service ends: nobody is served any more.
    let Some(drivers) = by.upgrade() else { return };
    let (serving, config) = (Arc::clone(serving), Arc::clone(config));
    drivers.next().spawn(async move {
        // A client that goes away early is no news.
        let _ = meet(&serving, config, handed).await;
    });
}

async fn meet(serving: &Arc<Serving>, config: Arc<rustls::ServerConfig>, handed: HandedOver) -> io::Result<()> {
    let address = handed.peer.ip().to_canonical();
    let Some(_place) = serving.connections.admit(Origin::Network(network(address))) else {
        return turn_away(serving, config, handed).await;
    };
    let mut socket = TcpStream::from_std(handed.socket)?;
    let guest = Arc::new(handed.guest);
    let admit: Arc<dyn Fn() + Send + Sync> = {
        let guest = Arc::clone(&guest);
        Arc::new(move || guest.admit())
    };
    let (client, server) = (handed.peer, socket.local_addr()?);
    let account = match serving.proxies.contains(&address) && address.is_loopback() {
        true => serving.api.run(move |_| Ok(account::of_connection(client, server))).await.unwrap_or(None),
        false => None,
    };
    let is_proxy = account::is_proxy(&serving.proxies, address, account, serving.api.account);
    let proxies = serving.proxies.clone();
    let peer = move |headers: &axum::http::HeaderMap| {
        let told = if is_proxy { connections::forwarded(headers, &proxies) } else { None };
        Peer::Address { address: told.unwrap_or(address), admit: Arc::clone(&admit), by_proxy: is_proxy }
    };
    match handed.said {
        FirstSaid::Hello(accepted) => {
            let handshake = StartHandshake::from_parts(*accepted, socket).into_stream(config);
            let stream = tokio::time::timeout(HANDSHAKE_PATIENCE, handshake).await??;
            connections::serve(serving, Patient::new(stream, b"", serving.patience.reader), peer).await;
        }
        FirstSaid::Clear(first) if address.is_loopback() || is_proxy => {
            connections::serve(serving, Patient::new(socket, first, serving.patience.reader), peer).await;
        }
        FirstSaid::Clear(_) => {
            socket.write_all(CLEAR_REFUSED.as_bytes()).await?;
            socket.shutdown().await?;
        }
    }
    drop(guest);
    Ok(())
}

/// Tells a client of the node's port that there is no place for its connection.
async fn turn_away(serving: &Serving, config: Arc<rustls::ServerConfig>, handed: HandedOver) -> io::Result<()> {
    let Some(_refusal) = serving.connections.refusal() else { return Ok(()) };
    let socket = TcpStream::from_std(handed.socket)?;
    match handed.said {
        FirstSaid::Hello(accepted) => {
            let handshake = StartHandshake::from_parts(*accepted, socket).into_stream(config);
            connections::refuse(tokio::time::timeout(HANDSHAKE_PATIENCE, handshake).await??).await;
        }
        FirstSaid::Clear(first) => {
            connections::refuse(Patient::new(socket, first, serving.patience.reader)).await;
        }
    }
    Ok(())
}
