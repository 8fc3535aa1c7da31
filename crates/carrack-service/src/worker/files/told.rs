//! What the engine tells, as documents of the API.

use carrack_core::attributes::Time;
use carrack_core::failure::{ErrorCode, Failure};
use carrack_engine::files::ListEntry;

use crate::clock::Moment;
use crate::model::{FileEntry, FileFailure, FileKind, text_of};
use carrack_core::report::ItemKind;

/// A failure, with what to try.
pub fn failure(failure: &Failure) -> FileFailure {
    FileFailure {
        code: failure.code.name().to_owned(),
        message: failure.message(),
        hints: hint(failure.code).into_iter().map(str::to_owned).collect(),
    }
}

fn hint(code: ErrorCode) -> Option<&'static str> {
    Some(match code {
        ErrorCode::PermissionDenied => {
            "the account that Carrack runs as there has to have the right, or the token has to cover it"
        }
        ErrorCode::NodeReadOnly | ErrorCode::ReadOnlyFileSystem => "whoever owns the endpoint can allow changes",
        ErrorCode::AlreadyExists => "choose another name, or replace what has it",
        ErrorCode::NotEmpty => "delete what is in it first",
        ErrorCode::NoSpace | ErrorCode::QuotaExceeded => "free some space there",
        ErrorCode::Busy | ErrorCode::ResourceLimit => "try again in a moment",
        ErrorCode::ConnectFailed
        | ErrorCode::ConnectionLost
        | ErrorCode::Silence
        | ErrorCode::HostUnknown
        | ErrorCode::AgentMissing
        | ErrorCode::AgentRefused
        | ErrorCode::AuthenticationFailed
        | ErrorCode::KeyMismatch => "the test of the endpoint says what is missing",
        _ => return None,
    })
}

/// An entry by this name.
pub fn entry(name: &[u8], found: &ListEntry) -> FileEntry {
    FileEntry {
        name: text_of(name),
        kind: kind(found.kind),
        size: found.size,
        modified: moment(found.mtime),
        mode: found.mode,
        link_target: (found.kind == ItemKind::Symlink).then(|| text_of(&found.link_target)),
        error: found.error.as_ref().map(|failure| failure.message_of(name)),
    }
}

/// What an entry is.
pub fn kind(kind: ItemKind) -> FileKind {
    match kind {
        ItemKind::File => FileKind::File,
        ItemKind::Directory => FileKind::Directory,
        ItemKind::Symlink => FileKind::Symlink,
        ItemKind::Special => FileKind::Special,
    }
}

/// A time; none where it is beyond any clock, as what a host tells may be.
pub fn moment(time: Time) -> Option<Moment> {
    let micros = time.seconds.checked_mul(1_000_000)?.checked_add(i64::from(time.nanos / 1000))?;
    let moment = Moment(micros);
    moment.is_told().then_some(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_no_clock_shows_is_none() {
        assert_eq!(moment(Time::new(1, 2_999)), Some(Moment(1_000_002)));
        for seconds in [i64::MAX, i64::MIN, 1 << 50] {
            assert_eq!(moment(Time::new(seconds, 0)), None, "{seconds}");
        }
    }
}
