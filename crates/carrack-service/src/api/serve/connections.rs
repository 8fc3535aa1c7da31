//! Connections: how many there may be, and how HTTP is spoken on each.

use carrack_engine::sync::lock;
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, Version, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt;

use super::{Peer, Serving};
use crate::api::problem::ApiError;
use crate::model::ProblemCode;

/// Connections in all, and of one network or account.
const CONNECTIONS_MAX: usize = 2048;
const CONNECTIONS_OF_ONE: usize = 256;
/// Connections beyond these that are told so at the same time; further ones are cut off.
const REFUSALS_MAX: usize = 64;
/// How long a connection that is refused may take to ask for something.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(2);
const HEAD_BYTES_MAX: usize = 32 << 10;
const HEADERS_MAX: usize = 64;

/// Whom a connection counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// An account of this host, over the Unix socket.
    Account(u32),
    /// The network of an address.
    Network(IpAddr),
}

/// The connections under way.
pub(super) struct Connections {
    by_origin: Mutex<HashMap<Origin, usize>>,
    gone: Notify,
    refusals: Arc<Semaphore>,
}

impl Default for Connections {
    fn default() -> Self {
        let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
        Self { by_origin: Mutex::default(), gone: Notify::default(), refusals }
    }
}

/// A connection's place, given back when it is dropped.
pub(super) struct Place {
    connections: Arc<Connections>,
    origin: Origin,
}

impl Connections {
    /// A place for a new connection; none: there are too many.
    pub fn admit(self: &Arc<Self>, origin: Origin) -> Option<Place> {
        let mut by_origin = lock(&self.by_origin);
        if by_origin.values().sum::<usize>() >= CONNECTIONS_MAX {
            return None;
        }
        let count = by_origin.entry(origin).or_default();
        if *count >= CONNECTIONS_OF_ONE {
            return None;
        }
        *count += 1;
        Some(Place { connections: Arc::clone(self), origin })
    }

    /// The right to tell one client that there are too many; none: too many are being told already.
    pub fn refusal(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.refusals).try_acquire_owned().ok()
    }

    /// Waits until there are none.
    pub async fn until_none(&self) {
        loop {
            let gone = self.gone.notified();
            if lock(&self.by_origin).is_empty() {
                return;
            }
            gone.await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut by_origin = lock(&self.connections.by_origin);
        if let Some(count) = by_origin.get_mut(&self.origin) {
            *count -= 1;
            if *count == 0 {
                by_origin.remove(&self.origin);
            }
        }
        self.connections.gone.notify_waiters();
    }
}

/// Speaks HTTP/1.1 until either side has enough. `peer` says whom a request comes from.
pub(super) async fn serve(
    serving: &Serving,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: impl Fn(&HeaderMap) -> Peer + Send + Sync + 'static,
) {
    let (app, peer) = (serving.app.clone(), Arc::new(peer));
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        let (app, peer) = (app.clone(), peer(request.headers()));
        request.extensions_mut().insert(peer);
        async move { Ok::<Response, Infallible>(answer(app, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(serving.patience.head)
        .max_header_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX * 2)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let mut stopping = serving.api.stopping.subscribe();
    // An error is the client's, who is told by hyper where there is something to tell.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stopping| *stopping) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Answers the first request of a connection for which there is no place, and ends it.
pub(super) async fn refuse(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    let service = hyper::service::service_fn(|_: Request<Incoming>| async {
        let detail = "there are too many connections of this client, or in all";
        let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, ProblemCode::TooMany, detail).retry_after(5);
        let error = error.hint("use fewer connections, or end those that are open");
        Ok::<Response, Infallible>(error.into_response())
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REFUSAL_PATIENCE)
        .max_header_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX * 2)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // Whoever sends no request in time, or reads no answer, is cut off.
    let _ = tokio::time::timeout(2 * REFUSAL_PATIENCE, connection).await;
}

async fn answer(app: axum::Router, request: Request<Incoming>) -> Response {
    // RFC 9112 §3.2: one Host, no more and no less; what two of them mean depends on whom one asks.
    let hosts = request.headers().get_all(header::HOST).iter().count();
    if hosts > 1 || (hosts == 0 && request.version() == Version::HTTP_11) {
        let error = ApiError::new(StatusCode::BAD_REQUEST, ProblemCode::Malformed, "a request names one host");
        let mut response = error.into_response();
        // What stands behind it may be meant for another host, too.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return response;
    }
    match app.oneshot(request.map(Body::new)).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// The client's address, as the proxies tell it: the last one that is no listed proxy's own.
pub(super) fn forwarded(headers: &HeaderMap, proxies: &[IpAddr]) -> Option<IpAddr> {
    let all = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
    let addresses: Vec<&str> = all.flat_map(|line| line.split(',')).map(str::trim).collect();
    for text in addresses.iter().rev() {
        let address = text.parse::<IpAddr>().ok()?.to_canonical();
        if !proxies.contains(&address) {
            return Some(address);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_one_address_leave_room_for_others() {
        let connections = Arc::<Connections>::default();
        let origin = |last| Origin::Network(IpAddr::from([192, 0, 2, last]));
        let mut places: Vec<Place> = (0..CONNECTIONS_OF_ONE).filter_map(|_| connections.admit(origin(1))).collect();
        assert_eq!(places.len(), CONNECTIONS_OF_ONE);
        assert!(connections.admit(origin(1)).is_none());
        places.extend(connections.admit(origin(2)));
        assert_eq!(places.len(), CONNECTIONS_OF_ONE + 1);
        places.pop();
        places.pop();
        assert!(connections.admit(origin(1)).is_some());
        drop(places);
        assert!(connections.by_origin.lock().unwrap().is_empty());
    }

    #[test]
    fn forwarded_address_is_the_last_that_no_proxy_has() {
        let proxies = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])];
        let told = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-forwarded-for", HeaderValue::from_static(line));
            }
            forwarded(&headers, &proxies).map(|address| address.to_string())
        };
        assert_eq!(told(&["192.0.2.9"]).as_deref(), Some("192.0.2.9"));
        // Whatever the client itself has written stands before what the proxy has seen.
        assert_eq!(told(&["127.0.0.1, 192.0.2.9"]).as_deref(), Some("192.0.2.9"));
        assert_eq!(told(&["127.0.0.1", "192.0.2.9, 10.0.0.2"]).as_deref(), Some("192.0.2.9"));
        assert_eq!(told(&["::ffff:192.0.2.9"]).as_deref(), Some("192.0.2.9"));
        assert_eq!(told(&[]), None);
        assert_eq!(told(&["192.0.2.9, unknown"]), None);
    }
}
