//! The bytes of a file on their way from its worker to whoever downloads it: as fast as the reader takes them, and cut
//! off visibly where they do not come whole.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::Frame;
use tokio::sync::mpsc;

use crate::api::shares::Share;
use crate::files::{Conversation, FilesError, Part};

/// Pieces that wait for the reader.
const PIECES: usize = 4;
/// A reader who takes nothing for so long is gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// What comes is not the whole: the connection ends with it.
#[derive(Debug)]
struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the file could not be read to its end")
    }
}

impl std::error::Error for Cut {}

/// The pieces. Where they end and nobody has said that they are all, the connection is cut.
struct Pieces {
    pieces: mpsc::Receiver<Bytes>,
    is_whole: Arc<AtomicBool>,
    is_over: bool,
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let Some(piece) = ready!(self.pieces.poll_recv(context)) else {
            self.is_over = true;
            let is_whole = self.is_whole.load(Ordering::Acquire);
            return Poll::Ready((!is_whole).then_some(Err(Cut)));
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

/// The body of an answer: the `first` part, if it was taken already, and all that follows; `length` bytes, where that
/// was said. `place` is given back at the end. A reader that goes ends the work.
pub(super) fn relay(mut conversation: Conversation, first: Option<Part>, length: Option<u64>, place: Share) -> Body {
    let (pieces, taken) = mpsc::channel(PIECES);
    let is_whole = Arc::new(AtomicBool::new(false));
    let said = Arc::clone(&is_whole);
    tokio::spawn(async move {
        let _place = place;
        let mut sent = 0;
        let told = tokio::select! {
            () = pieces.closed() => return,
            told = pass_on(&mut conversation, first, &pieces, &mut sent) => told,
        };
        match told {
            Ok(()) if length.is_none_or(|length| length == sent) => said.store(true, Ordering::Release),
            Ok(()) => tracing::warn!(target: "carrack::files", sent, "a download was cut off: it ended too early"),
            Err(error) => tracing::warn!(target: "carrack::files", sent, "a download was cut off: {error}"),
        }
    });
    Body::new(Pieces { pieces: taken, is_whole, is_over: false })
}

async fn pass_on(
    conversation: &mut Conversation,
    mut part: Option<Part>,
    pieces: &mpsc::Sender<Bytes>,
    sent: &mut u64,
) -> Result<(), FilesError> {
    loop {
        let next = match part.take() {
            Some(first) => Some(first),
            None => conversation.flow().await?,
        };
        let Some(Part { body, is_last }) = next else { return Ok(()) };
        let bytes = body.len() as u64;
        if bytes > 0 && pieces.send_timeout(Bytes::from(body), PATIENCE).await.is_err() {
            return Err(FilesError::Lost("nobody takes it".to_owned()));
        }
        *sent += bytes;
        if is_last {
            return Ok(());
        }
    }
}
