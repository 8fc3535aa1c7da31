//! Why the system lets nobody change a name: it says `Operation not permitted` of attributes (`chattr`) and of sticky
//! directories alike. Asked after a refusal, so that a change that succeeds costs nothing.

use std::io;

use carrack_sys::dir::{Dir, Lock};

const STICKY: u32 = 0o1000;
const IMMUTABLE_DIRECTORY: &str = "the directory is immutable (chattr +i)";

/// The error of a call that was to replace, rename or remove `name` in a directory, with its cause where that shows.
/// Every other error is returned as it is.
pub fn why_refused(dir: &Dir, name: &[u8], error: io::Error) -> io::Error {
    let is_refusal = error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_some();
    let cause = if is_refusal { cause(dir, name) } else { None };
    cause.map_or(error, |cause| io::Error::new(io::ErrorKind::PermissionDenied, cause))
}

/// The same of a call that was to make a new name.
pub fn why_not_made(dir: &Dir, error: io::Error) -> io::Error {
    let is_refusal = error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_some();
    match dir.lock().filter(|_| is_refusal) {
        Some(Lock::Immutable) => io::Error::new(io::ErrorKind::PermissionDenied, IMMUTABLE_DIRECTORY),
        _ => error,
    }
}

fn cause(dir: &Dir, name: &[u8]) -> Option<&'static str> {
    match (dir.lock(), dir.lock_of(name)) {
        (Some(Lock::Immutable), _) => Some(IMMUTABLE_DIRECTORY),
        (Some(Lock::AppendOnly), _) => Some("the directory takes new names and lets none be changed (chattr +a)"),
        (None, Some(Lock::Immutable)) => Some("what has the name is immutable (chattr +i)"),
        (None, Some(Lock::AppendOnly)) => Some("what has the name can only be appended to (chattr +a)"),
        (None, None) => {
            let (above, there) = (dir.stat_self().ok()?, dir.stat_at(name).ok()?);
            let own = carrack_sys::host::user_id();
            let is_foreign = ![above.uid, there.uid].contains(&own);
            (above.mode & STICKY != 0 && is_foreign)
                .then_some("the directory is sticky (chmod +t), and what has the name belongs to another user")
        }
    }
}
