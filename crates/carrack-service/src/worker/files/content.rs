//! The bytes of files: a range of one, or an archive of several. Nothing is kept: the service says how many parts it
//! takes, and reading waits for it.

use carrack_core::failure::{Blame, ErrorCode, Failure};
use carrack_engine::Stop;
use carrack_engine::files::{FileFacts, Files, ReadEvent, ReadRange};

use super::end::End;
use super::reply::{Reply, encoded};
use super::told;
use crate::model::Verb;
use crate::worker::files::{ContentFacts, Range};

/// Reads a range of a file: first what it is, as [`ContentFacts`], then its bytes.
///
/// # Errors
/// Those of the endpoint: [`ErrorCode::SourceChanged`] when it is another file than the range is of, or changes.
pub fn content(end: &End, stop: &Stop, path: &str, range: &Range, reply: &mut Reply) -> Result<(), Failure> {
    let at = end.path(path, Verb::Read)?;
    let range = ReadRange { offset: range.offset, length: range.length, identity: range.identity };
    end.with_files(stop, |files| {
        read(files, stop, &at, range, &mut |event| match event {
            ReadEvent::Opened(facts) => reply.hand_over(&encoded(&of_facts(&facts))?, stop),
            ReadEvent::Bytes(bytes) => reply.hand_over(bytes, stop),
        })
    })?;
    reply.done(b"")
}

/// Reads, and hands out what comes until `each` fails.
pub fn read(
    files: &mut Files,
    stop: &Stop,
    path: &[u8],
    range: ReadRange,
    each: &mut dyn FnMut(ReadEvent<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut failed = None;
    let read = files.read(path, range, &mut |event| {
        failed = stop.check().and_then(|()| each(event)).err();
        failed.is_none()
    });
    match failed {
        // The conversation was ended by that.
        Some(why) => Err(Failure { code: unsound(why.code), ..why }),
        None => read,
    }
}

/// What failed at this side leaves no conversation that could be used again.
fn unsound(code: ErrorCode) -> ErrorCode {
    if code.blame() == Blame::File { ErrorCode::Internal } else { code }
}

fn of_facts(facts: &FileFacts) -> ContentFacts {
    let FileFacts { size, mtime, identity } = *facts;
    ContentFacts { size, modified: mtime.and_then(told::moment), identity }
}
