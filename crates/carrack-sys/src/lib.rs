//! System calls, wrapped: the only crate of the workspace that may hold `unsafe`.
//!
//! Everything below a directory is reached through [`dir::Dir`], one component or one confined walk
//! at a time, never through a path handed to the C library: a tree may be changed by its owner
//! while it is copied, and a component swapped for a link must not lead outside. Names are raw
//! bytes, because that is what a Unix file name is.
//!
//! Linux is the first home. Whatever only Linux has keeps a portable fallback beside it, and the
//! tests run both on Linux, so that the fallback cannot rot. The crate decides no policy: it
//! retries `EINTR`, maps "this system cannot" to a documented answer, and returns every other error.
//!
//! Left out on purpose: asynchronous I/O, payload buffers, and anything the standard library
//! already does safely.

// What clippy.toml forbids the product.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod accounts;
pub mod bulk;
pub mod dir;
pub mod facts;
pub mod file;
pub mod gauge;
pub mod host;
pub mod inherited;
pub mod measure;
pub mod probe;
pub mod signal;
pub mod socket;
pub mod standard;
pub mod sync;
pub mod threads;
#[cfg(target_os = "linux")]
pub mod tun;

use rustix::io::Errno;

/// Whether every call that is newer than Linux 3.10 is done without, and of the calls that move bytes all that only
/// Linux has: `RUSTFLAGS="--cfg carrack_portable"`, for tests of what is done instead.
const PORTABLE: bool = cfg!(carrack_portable);

/// Runs a call again for as long as a signal handler interrupts it.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Numbers of system errors, by their standard names.
pub mod errno {
    pub use libc::{
        EACCES, EADDRINUSE, EADDRNOTAVAIL, EAGAIN, ECONNABORTED, ECONNREFUSED, ECONNRESET, EDQUOT, EEXIST, EFBIG,
        EHOSTUNREACH, EISDIR, ELOOP, EMFILE, ENAMETOOLONG, ENETUNREACH, ENFILE, ENOENT, ENOMEM, ENOSPC, ENOSYS,
        ENOTDIR, ENOTEMPTY, ENXIO, EOPNOTSUPP, EPERM, EPIPE, ERANGE, EROFS, ESTALE, ETIMEDOUT, EXDEV,
    };
}
