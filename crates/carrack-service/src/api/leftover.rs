//! What is left of a request's body when it has been answered. A client that still writes when its connection ends
//! hears of a broken connection, and never reads why it was refused: so the rest is taken in first.

use carrack_engine::sync::lock;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header;
use hyper::body::{Body as _, Frame, SizeHint};

/// How long a client may still write.
const PATIENCE: Duration = Duration::from_secs(5);

/// A body that a handler reads, and that can be read on when the handler has ended.
#[derive(Clone)]
pub(super) struct Leftover {
    body: Arc<Mutex<Body>>,
    /// The client waits until it is asked for the body: it has not begun to write.
    waits: bool,
}

impl Leftover {
    /// A request whose body can be read on after it was answered.
    pub fn of(request: Request) -> (Request, Self) {
        let (head, body) = request.into_parts();
        let leftover = Self { body: Arc::new(Mutex::new(body)), waits: head.headers.contains_key(header::EXPECT) };
        (Request::from_parts(head, Body::new(leftover.clone())), leftover)
    }

    /// Takes in what is left, but no more than this many bytes.
    pub async fn take_in(self, most: usize) {
        let mut taken = 0;
        let rest = async {
            while taken < most && !self.is_end_stream() {
                match poll_fn(|context| self.poll(context)).await {
                    Some(Ok(frame)) => taken += frame.data_ref().map_or(0, Bytes::len),
                    Some(Err(_)) | None => break,
                }
            }
        };
        if !self.waits {
            // Whoever takes longer than that has to do without the answer.
            let _ = tokio::time::timeout(PATIENCE, rest).await;
        }
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut *lock(&self.body)).poll_frame(context)
    }
}

impl hyper::body::Body for Leftover {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.poll(context)
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.body).is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        lock(&self.body).size_hint()
    }
}
