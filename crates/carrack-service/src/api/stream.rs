//! Answers that last: a body that is made piece by piece, as fast as its reader takes it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::Frame;
use tokio::sync::mpsc;

/// Pieces that wait for the reader.
const PIECES: usize = 4;
/// A reader who takes nothing for so long is gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// The end that makes the pieces.
pub(super) struct Pieces(mpsc::Sender<Bytes>);

impl Pieces {
    /// Hands a piece over. False: nobody reads any more.
    pub async fn send(&self, piece: impl Into<Bytes>) -> bool {
        self.0.send_timeout(piece.into(), PATIENCE).await.is_ok()
    }

    /// Waits until nobody reads any more.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

struct PiecesBody(mpsc::Receiver<Bytes>);

impl hyper::body::Body for PiecesBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// A body, and the end that makes it. The body ends when that is dropped.
pub(super) fn channel() -> (Pieces, Body) {
    let (sender, receiver) = mpsc::channel(PIECES);
    (Pieces(sender), Body::new(PiecesBody(receiver)))
}
