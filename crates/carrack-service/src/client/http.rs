//! A client of one service, over HTTP.

use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, header};
use serde::de::DeserializeOwned;

use super::call::{API_PREFIX, Answer, Call, with_query};
use super::connect;
use super::error::{Called, ClientError, problem};
use super::target::Target;
use crate::model::{Listed, Secret};

/// Until the head of an answer is there. A task's submission is the longest that a service may take.
const ANSWER_PATIENCE: Duration = Duration::from_secs(90);
/// Between two pieces of a body. A stream of events has a sign of life every 15 s.
const BODY_PATIENCE: Duration = Duration::from_secs(60);
/// Of a document that is read whole.
const DOCUMENT_BYTES_MAX: usize = 64 << 20;

/// A client of one service.
pub struct Client {
    target: Target,
    token: Option<Secret>,
    pub(super) runtime: tokio::runtime::Runtime,
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

    /// The body of an answer that is no problem.
    pub(super) async fn open(&self, call: &Call, accept: &str) -> Called<Incoming> {
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
    pub(super) async fn next_piece(body: &mut Incoming) -> Called<Option<Bytes>> {
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
