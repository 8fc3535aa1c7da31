//! A blocking client of the API, for the command line and tests: over the service's Unix socket, over TLS with a pinned
//! key, or in the clear on this host alone.
//!
//! Every call has a connection of its own. Paths are relative to `/api/v1`, like `/tasks`; [`with_query`] and
//! [`segment`] make them.

mod connect;
mod events;
mod target;

use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::events::Events;
pub use self::target::{Target, parse_login_link};
use crate::model::{Listed, Problem, ProblemCode, Secret, percent};

/// Where all routes but health and metrics are.
pub const API_PREFIX: &str = "/api/v1";
/// Until the head of an answer is there. A task's submission is the longest that a service may take.
const ANSWER_PATIENCE: Duration = Duration::from_secs(90);
/// Between two pieces of a body. A stream of events has a sign of life every 15 s.
const BODY_PATIENCE: Duration = Duration::from_secs(60);
/// Of a document that is read whole.
const DOCUMENT_BYTES_MAX: usize = 64 << 20;

/// Why a call gave no answer, or not the one that was wanted.
#[derive(Clone, Debug)]
pub enum ClientError {
    /// Nobody answers there.
    Unreachable {
        /// Where.
        target: String,
        /// Why, in words.
        why: String,
        /// What the system said.
        kind: io::ErrorKind,
    },
    /// The service shows a key that nobody has vouched for: compare it with what the service printed, then pin it.
    UnknownKey {
        /// Where, as `HOST:PORT`.
        target: String,
        /// SHA-256 of the key that it shows.
        shown: [u8; 32],
    },
    /// The service shows another key than the pinned one.
    ChangedKey {
        /// Where, as `HOST:PORT`.
        target: String,
        /// SHA-256 of the key that it shows.
        shown: [u8; 32],
    },
    /// The service says no.
    Problem(Box<Problem>),
    /// The connection ended, or what came is not what the API says.
    Broken(String),
}

impl ClientError {
    /// The code of the problem, where the service has sent one.
    pub fn code(&self) -> Option<ProblemCode> {
        if let Self::Problem(problem) = self { Some(problem.code) } else { None }
    }

    /// Whether the same call may work a little later: nobody answered, or the connection ended.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken(_) => true,
            Self::Problem(problem) => problem.status == 503 || problem.status == 429,
            Self::UnknownKey { .. } | Self::ChangedKey { .. } => false,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { target, why, .. } => write!(f, "no service answers at {target}: {why}"),
            Self::UnknownKey { target, shown } => {
                write!(f, "nothing is known of {target}, which shows the key {}", carrack_core::pin::format_pin(shown))
            }
            Self::ChangedKey { target, shown } => {
                let shown = carrack_core::pin::format_pin(shown);
                write!(f, "{target} shows another key than the pinned one: {shown}")
            }
            Self::Problem(problem) => problem.fmt(f),
            Self::Broken(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ClientError {}

/// What a call gives.
pub type Called<T> = Result<T, ClientError>;

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    method: Method,
    path: String,
    body: Option<Vec<u8>>,
    headers: Vec<(&'static str, String)>,
}

impl Call {
    /// Asks for what is there.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// Adds something, or has something done.
    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    /// Changes something.
    pub fn patch(path: impl Into<String>) -> Self {
        Self::new(Method::PATCH, path)
    }

    /// Brings something to its place.
    pub fn put(path: impl Into<String>) -> Self {
        Self::new(Method::PUT, path)
    }

    /// Removes something.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), body: None, headers: Vec::new() }
    }

    /// The same with this document.
    ///
    /// # Errors
    /// [`ClientError::Broken`] for what JSON cannot hold, as a map whose keys are no text.
    pub fn body(mut self, document: &impl Serialize) -> Called<Self> {
        let bytes = serde_json::to_vec(document).map_err(|error| ClientError::Broken(error.to_string()))?;
        self.body = Some(bytes);
        Ok(self)
    }

    /// The same with these bytes, which are no document.
    #[must_use]
    pub fn bytes(mut self, bytes: Vec<u8>) -> Self {
        self.body = Some(bytes);
        self.header("content-type", "application/octet-stream")
    }

    /// The same with this header: `Idempotency-Key`, `If-Match`.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// An answer that is no problem.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Of HTTP: 200, 201, 202 or 204.
    pub status: u16,
    /// The entity tag, as `If-Match` takes it.
    pub etag: Option<String>,
    /// The task was there already, by its submission's id.
    pub is_replay: bool,
    body: Vec<u8>,
}

impl Answer {
    /// The body as it came.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The document.
    ///
    /// # Errors
    /// [`ClientError::Broken`] where it is another one.
    pub fn json<T: DeserializeOwned>(&self) -> Called<T> {
        serde_json::from_slice(&self.body).map_err(|error| {
            ClientError::Broken(format!("the service's answer is not what this program knows: {error}"))
        })
    }
}

/// A client of one service.
pub struct Client {
    target: Target,
    token: Option<Secret>,
    runtime: tokio::runtime::Runtime,
}

impl Client {
    /// A client that shows this token; over the Unix socket none is needed.
    ///
    /// # Errors
    /// When the system gives no descriptors.
    pub fn new(target: Target, token: Option<Secret>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { target, token, runtime })
    }

    /// Where the service is.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Makes a call, and takes the whole answer.
    ///
    /// # Errors
    /// Every [`ClientError`].
    pub fn call(&self, call: &Call) -> Called<Answer> {
        self.runtime.block_on(async {
            let (head, body) = self.begin(call, "application/json").await?;
            let body = read_whole(body).await?;
            if !head.status.is_success() {
                return Err(problem(head.status, &body));
            }
            let etag = head.headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
            let is_replay = head.headers.contains_key("idempotent-replay");
            Ok(Answer { status: head.status.as_u16(), etag, is_replay, body })
        })
    }

    /// The document at a path.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Called<T> {
        self.call(&Call::get(path))?.json()
    }

    /// All rows of a list, page by page.
    pub fn rows<T: DeserializeOwned>(&self, path: &str) -> Rows<'_, T> {
        Rows { client: self, path: path.to_owned(), page: Vec::new().into_iter(), next: Some(None) }
    }

    /// A body as it comes, of any size: `application/x-ndjson` or `text/csv`.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn stream(&self, path: &str, accept: &str) -> Called<BodyReader<'_>> {
        let body = self.runtime.block_on(self.open(&Call::get(path), accept))?;
        Ok(BodyReader { client: self, body, piece: Bytes::new() })
    }

    /// Events as they happen, from the one behind `since`; `task`: only of this one. It goes on by itself where a
    /// connection ends.
    pub fn events(&self, since: u64, task: Option<&str>) -> Events<'_> {
        Events::new(self, Some(since), task)
    }

    /// Events from now on.
    pub fn events_to_come(&self, task: Option<&str>) -> Events<'_> {
        Events::new(self, None, task)
    }

    /// The body of an answer that is no problem.
    async fn open(&self, call: &Call, accept: &str) -> Called<Incoming> {
        let (head, body) = self.begin(call, accept).await?;
        if head.status.is_success() { Ok(body) } else { Err(problem(head.status, &read_whole(body).await?)) }
    }

    async fn begin(&self, call: &Call, accept: &str) -> Called<(hyper::http::response::Parts, Incoming)> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("{API_PREFIX}{}", call.path))
            .header(header::HOST, self.target.host_header())
            .header(header::ACCEPT, accept)
            .header(header::USER_AGENT, concat!("carrack/", env!("CARGO_PKG_VERSION")));
        if let Some(token) = &self.token {
            let mut value = header::HeaderValue::from_str(&format!("Bearer {}", token.reveal()))
                .map_err(|_| ClientError::Broken("the token holds characters that no token has".into()))?;
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        if call.body.is_some() && !call.headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = Full::new(Bytes::from(call.body.clone().unwrap_or_default()));
        let request = request.body(body).map_err(|error| ClientError::Broken(error.to_string()))?;
        let mut sender = connect::connect(&self.target).await?;
        let sent = tokio::time::timeout(ANSWER_PATIENCE, sender.send_request(request)).await;
        let answer = sent
            .map_err(|_| ClientError::Broken(format!("{} does not answer", self.target)))?
            .map_err(|error| ClientError::Broken(format!("{} ended the connection: {error}", self.target)))?;
        Ok(answer.into_parts())
    }

    /// The next piece of a body; none at its end.
    async fn next_piece(body: &mut Incoming) -> Called<Option<Bytes>> {
        loop {
            let frame = tokio::time::timeout(BODY_PATIENCE, body.frame())
                .await
                .map_err(|_| ClientError::Broken("the service has fallen silent".into()))?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(ClientError::Broken(format!("the answer was cut: {error}"))),
                // Trailers say nothing here.
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data()
                        && !piece.is_empty()
                    {
                        return Ok(Some(piece));
                    }
                }
            }
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("target", &self.target).finish_non_exhaustive()
    }
}

async fn read_whole(mut body: Incoming) -> Called<Vec<u8>> {
    let mut whole = Vec::new();
    while let Some(piece) = Client::next_piece(&mut body).await? {
        if whole.len() + piece.len() > DOCUMENT_BYTES_MAX {
            return Err(ClientError::Broken("the answer is larger than any that the API has".into()));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole)
}

/// What the service says where it says no.
fn problem(status: StatusCode, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<Problem>(body) {
        Ok(problem) => ClientError::Problem(Box::new(problem)),
        Err(_) => ClientError::Broken(format!("the answer is {status}, and not from a service of Carrack")),
    }
}

/// All rows of a list.
pub struct Rows<'a, T> {
    client: &'a Client,
    path: String,
    page: std::vec::IntoIter<T>,
    /// Where the next page begins; none: there is no more.
    next: Option<Option<String>>,
}

impl<T: DeserializeOwned> Iterator for Rows<'_, T> {
    type Item = Called<T>;

    fn next(&mut self) -> Option<Called<T>> {
        loop {
            if let Some(row) = self.page.next() {
                return Some(Ok(row));
            }
            let cursor = self.next.take()?;
            let path = match &cursor {
                Some(cursor) => with_query(&self.path, &[("cursor", cursor)]),
                None => self.path.clone(),
            };
            match self.client.get::<Listed<T>>(&path) {
                Ok(page) => {
                    self.page = page.items.into_iter();
                    self.next = page.next.map(Some);
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// A body as it comes.
pub struct BodyReader<'a> {
    client: &'a Client,
    body: Incoming,
    piece: Bytes,
}

impl Read for BodyReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            let next = self.client.runtime.block_on(Client::next_piece(&mut self.body));
            match next.map_err(io::Error::other)? {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let count = self.piece.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.piece.split_to(count));
        Ok(count)
    }
}

/// A path with a query behind it, or more of one.
pub fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    let mut whole = path.to_owned();
    for (name, value) in query {
        whole.push(if whole.contains('?') { '&' } else { '?' });
        whole.push_str(name);
        whole.push('=');
        whole.push_str(&segment(value));
    }
    whole
}

/// A text as one segment of a path, or one value of a query.
pub fn segment(text: &str) -> String {
    percent(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_hold_whatever_a_name_holds() {
        assert_eq!(with_query("/tasks", &[("label", "a b&c"), ("after", "x")]), "/tasks?label=a%20b%26c&after=x");
        assert_eq!(segment("é/?#%"), "%C3%A9%2F%3F%23%25");
    }
}
