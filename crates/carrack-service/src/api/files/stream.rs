//! Answers that are made line by line, as long as somebody reads them and may.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::api::Api;
use crate::api::caller::Known;
use crate::api::problem::{ApiError, Done};
use crate::api::stream::{Pieces, channel};
use crate::files::FilesError;

/// How often it is looked whether the reader is still let in.
const LOOK: Duration = Duration::from_secs(2);

/// An answer of lines of JSON. The work ends when nobody reads any more, or when the reader is not let in any more.
/// What goes wrong on the way is its last line, a problem.
pub fn lines<W>(api: Arc<Api>, known: Known, work: impl FnOnce(Arc<Pieces>) -> W) -> Done<Response>
where
    W: Future<Output = Result<(), FilesError>> + Send + 'static,
{
    let place = api.stream(&known, 1)?;
    let (pieces, body) = channel();
    let pieces = Arc::new(pieces);
    let work = work(Arc::clone(&pieces));
    tokio::spawn(async move {
        let _place = place;
        let ended = tokio::select! {
            ended = work => ended,
            () = pieces.closed() => return,
            () = until_unknown(&api, &known) => return,
        };
        if let Err(error) = ended
            && let Ok(line) = serde_json::to_string(&ApiError::from(error).problem())
        {
            pieces.send(format!("{line}\n")).await;
        }
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

async fn until_unknown(api: &Arc<Api>, known: &Known) {
    loop {
        tokio::time::sleep(LOOK).await;
        if *api.stopping.borrow() || !api.is_still_known(&known.caller).await {
            return;
        }
    }
}
