//! The one place where the project makes threads. A host may have none left (`ulimit -u`, `pids.max` of a control
//! group, memory): that is an error like any other, and never a panic. `clippy.toml` refuses every other way.

use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};
use std::{fmt, io};

/// The system gives no thread: inside the [`io::Error`] of [`start`].
#[derive(Debug)]
pub struct NoThread {
    what: &'static str,
    why: io::Error,
}

impl NoThread {
    /// Whether this error says that the system gives no thread.
    pub fn is_in(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }

    /// The error of a thread for `what` that the system has refused to somebody else a moment ago.
    pub fn for_what(what: &'static str) -> io::Error {
        Self::error(what, io::Error::from_raw_os_error(libc::EAGAIN))
    }

    fn error(what: &'static str, why: io::Error) -> io::Error {
        io::Error::other(Self { what, why })
    }
}

impl fmt::Display for NoThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot start a thread for {}: {}", self.what, self.why)
    }
}

impl std::error::Error for NoThread {}

/// Starts a thread for `what`: a few words for messages, such as "a data stream".
///
/// # Errors
/// [`NoThread`], when the system gives none. `work` has been dropped then.
#[expect(clippy::disallowed_methods, reason = "the one place")]
pub fn start<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // Boxed, here and below: the standard library's part is then there once, and not for each kind of work.
    let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
    Builder::new().spawn(work).map_err(|why| NoThread::error(what, why))
}

/// As [`start`], under a name that `ps -T` and `top -H` show.
///
/// # Errors
/// As [`start`].
#[expect(clippy::disallowed_methods, reason = "the one place")]
pub fn start_named<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
    Builder::new().name(name.to_owned()).spawn(work).map_err(|why| NoThread::error(name, why))
}

/// Starts a thread that ends with its scope, for `what`.
///
/// # Errors
/// As [`start`].
#[expect(clippy::disallowed_methods, reason = "the one place")]
pub fn start_scoped<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let work: Box<dyn FnOnce() -> T + Send + 'scope> = Box::new(work);
    Builder::new().spawn_scoped(scope, work).map_err(|why| NoThread::error(what, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_is_started_and_lack_of_one_is_named() {
        assert_eq!(start("a test", || 7).unwrap().join().unwrap(), 7);
        assert_eq!(std::thread::scope(|scope| start_scoped(scope, "a test", || 8).unwrap().join().unwrap()), 8);
        let named = start_named("test", || std::thread::current().name().map(str::to_owned));
        assert_eq!(named.unwrap().join().unwrap().unwrap(), "test");
        let error = NoThread::error("a data stream", io::ErrorKind::WouldBlock.into());
        assert!(NoThread::is_in(&error) && !NoThread::is_in(&io::ErrorKind::WouldBlock.into()));
        assert!(error.to_string().starts_with("cannot start a thread for a data stream: "), "{error}");
    }
}
