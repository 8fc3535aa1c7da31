//! Errors of system calls and connections, as failures.

use std::borrow::Cow;
use std::{fmt, io};

use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_core::wire::ProtocolError;
use carrack_sys::threads::NoThread;

/// A failure, and why.
pub fn failure(code: ErrorCode, side: Side, why: impl Into<String>) -> Failure {
    Failure::new(code, side, why)
}

/// What the system said when `call` was done.
pub fn io_failure(side: Side, call: impl Into<Cow<'static, str>>, error: &io::Error) -> Failure {
    system_failure(side, error).during(call)
}

/// As [`io_failure`], with this code, unless the host has reached a limit: then that is what failed.
pub fn failure_unless_limited(code: ErrorCode, side: Side, error: &io::Error, why: impl Into<String>) -> Failure {
    let limited = code_of(error) == ErrorCode::ResourceLimit;
    failure(if limited { ErrorCode::ResourceLimit } else { code }, side, why)
}

/// A path that the client's grant does not cover.
#[derive(Debug)]
pub struct OutsideGrant(pub String);

impl fmt::Display for OutsideGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OutsideGrant {}

/// What the system said, where the path alone says what was done.
pub fn system_failure(side: Side, error: &io::Error) -> Failure {
    if let Some(outside) = error.get_ref().and_then(|inner| inner.downcast_ref::<OutsideGrant>()) {
        return failure(ErrorCode::OutsideRoot, side, outside.0.clone()).for_reason(Reason::GrantOutside);
    }
    let code = code_of(error);
    failure(code, side, meaning(code, error).map_or_else(|| describe(error), str::to_owned))
}

/// A peer that broke the protocol.
pub fn protocol_failure(side: Side, error: &ProtocolError) -> Failure {
    failure(error.code, side, error.what.clone())
}

/// What the system says, without Rust's "(os error N)".
pub fn describe(error: &io::Error) -> String {
    // Rust's words for it are of a buffer.
    if error.kind() == io::ErrorKind::UnexpectedEof && error.get_ref().is_none() {
        return "the connection was closed before all was said".to_owned();
    }
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_string(),
        None => text,
    }
}

/// The code for a system error.
pub fn code_of(error: &io::Error) -> ErrorCode {
    use carrack_sys::errno::*;
    if NoThread::is_in(error) {
        return ErrorCode::ResourceLimit;
    }
    match error.raw_os_error() {
        Some(ENOENT) => ErrorCode::NotFound,
        Some(EACCES | EPERM) => ErrorCode::PermissionDenied,
        Some(EISDIR) => ErrorCode::IsADirectory,
        Some(ENOTDIR) => ErrorCode::NotADirectory,
        Some(EEXIST) => ErrorCode::AlreadyExists,
        Some(ELOOP) => ErrorCode::SymlinkRefused,
        Some(EXDEV) => ErrorCode::OutsideRoot,
        Some(ENAMETOOLONG) => ErrorCode::NameTooLong,
        Some(ENOSPC) => ErrorCode::NoSpace,
        Some(EDQUOT) => ErrorCode::QuotaExceeded,
        Some(EROFS) => ErrorCode::ReadOnlyFileSystem,
        Some(EFBIG) => ErrorCode::FileTooLarge,
        Some(EMFILE | ENFILE | ENOMEM) => ErrorCode::ResourceLimit,
        Some(ENOTEMPTY) => ErrorCode::NotEmpty,
        Some(EOPNOTSUPP | ENOSYS) => ErrorCode::Unsupported,
        Some(ECONNREFUSED | EHOSTUNREACH | ENETUNREACH | EADDRNOTAVAIL) => ErrorCode::ConnectFailed,
        Some(ECONNRESET | EPIPE | ECONNABORTED) => ErrorCode::ConnectionLost,
        Some(ETIMEDOUT) => ErrorCode::Silence,
        Some(_) => ErrorCode::InputOutput,
        None => match error.kind() {
            io::ErrorKind::NotFound => ErrorCode::NotFound,
            io::ErrorKind::PermissionDenied => ErrorCode::PermissionDenied,
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                ErrorCode::ConnectionLost
            }
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => ErrorCode::Silence,
            io::ErrorKind::InvalidData => ErrorCode::ProtocolViolation,
            io::ErrorKind::InvalidInput => ErrorCode::BadPath,
            io::ErrorKind::Unsupported => ErrorCode::Unsupported,
            _ => ErrorCode::InputOutput,
        },
    }
}

/// What an error of the system means here, where its words name another cause (`Invalid cross-device link`).
fn meaning(code: ErrorCode, error: &io::Error) -> Option<&'static str> {
    error.raw_os_error()?;
    Some(match code {
        ErrorCode::SymlinkRefused => "a symbolic link stands in the path and is not followed there",
        ErrorCode::OutsideRoot => "the path leads outside the directory that is served",
        _ => return None,
    })
}
