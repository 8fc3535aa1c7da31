//! What the engine tells, as documents of the API.

use carrack_core::attributes::Time;
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::path::display_bytes;
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

/// The same by the name that callers know the place by, as `@lab:/run/file`: where its host is, and below what its root
/// lies there, is none of what they have asked for. `base` is that root. What failed at the service itself stays.
pub fn of_endpoint(mut failure: Failure, name: &str, base: &[u8]) -> Failure {
    failure.source = failure.source.map(|source| Box::new(of_endpoint(*source, name, base)));
    let is_here = failure.side == Side::Command;
    let Some(at) = failure.at.as_deref_mut().filter(|at| at.end.is_some() || !is_here) else { return failure };
    let below = at.path.as_deref().filter(|_| !is_here).and_then(|path| path.strip_prefix(base));
    let below = below.filter(|below| below.is_empty() || below.starts_with(b"/") || base.ends_with(b"/"));
    match below.map(|below| below.strip_prefix(b"/").unwrap_or(below)) {
        Some(below) => {
            at.end = Some(format!("@{name}:/{}", display_bytes(below)));
            at.path = None;
        }
        None => at.end = Some(format!("@{name}")),
    }
    failure
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
    fn failure_names_the_endpoint_in_place_of_its_host_and_root() {
        let failed = |side, path: Option<&str>, end: Option<&str>| {
            let failure = Failure::new(ErrorCode::NotFound, side, "gone").during("open");
            let failure = path.into_iter().fold(failure, |failure, path| failure.at_path(path.as_bytes()));
            end.into_iter().fold(failure, Failure::at_end)
        };
        let cases = [
            (Side::Source, Some("/data/run/a"), Some("10.0.0.1:7341"), "/data", "@lab:/run/a: open: gone"),
            (Side::Source, Some("/data"), None, "/data", "@lab:/: open: gone"),
            (Side::Destination, Some("/run/a"), None, "/", "@lab:/run/a: open: gone"),
            (Side::Link, None, Some("10.0.0.1:7341"), "/", "@lab: open: gone"),
            (Side::Source, Some("/data2/a"), None, "/data", "@lab: /data2/a: open: gone"),
            (Side::Source, None, None, "/data", "open: gone"),
            (Side::Command, Some("/data/spool"), None, "/data", "/data/spool: open: gone"),
        ];
        for (side, path, end, base, expected) in cases {
            assert_eq!(of_endpoint(failed(side, path, end), "lab", base.as_bytes()).message(), expected);
        }
        let outer =
            Failure { source: Some(Box::new(failed(Side::Link, None, Some("h:1")))), ..failed(Side::Link, None, None) };
        assert_eq!(of_endpoint(outer, "lab", b"").message(), "open: gone: @lab: open: gone");
    }

    #[test]
    fn time_that_no_clock_shows_is_none() {
        assert_eq!(moment(Time::new(1, 2_999)), Some(Moment(1_000_002)));
        for seconds in [i64::MAX, i64::MIN, 1 << 50] {
            assert_eq!(moment(Time::new(seconds, 0)), None, "{seconds}");
        }
    }
}
