//! Sockets that listen already when the process begins: whoever has started it (systemd, by a socket unit) has opened
//! them, and says so by `LISTEN_PID` and `LISTEN_FDS` (sd_listen_fds(3)).

use std::io;
use std::net::TcpListener;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::FdFlags;
use rustix::net::AddressFamily;

/// The first descriptor; standard input, output and error come before it.
const FIRST: RawFd = 3;
/// More are a mistake.
const MOST: RawFd = 64;

static TAKEN: AtomicBool = AtomicBool::new(false);

/// Sockets by kind, in the order in which they were handed over.
#[derive(Debug, Default)]
pub struct Inherited {
    /// On an address and a port.
    pub tcp: Vec<TcpListener>,
    /// On a path.
    pub unix: Vec<UnixListener>,
}

/// Takes them, once: a second call finds none. None where nobody has handed over any to this process.
///
/// # Errors
/// Those of the system calls, and `InvalidInput` for a descriptor that is no socket which listens, or for variables
/// that hold no numbers.
pub fn listeners() -> io::Result<Inherited> {
    let mut found = Inherited::default();
    let Some(count) = handed_over(|name| std::env::var(name).ok(), std::process::id())? else { return Ok(found) };
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Ok(found);
    }
    for number in FIRST..FIRST + count {
        let socket = take(number)?;
        rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
        if !rustix::net::sockopt::socket_acceptconn(&socket)? {
            let why = format!("descriptor {number}, which was handed over, does not listen");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        match rustix::net::sockopt::socket_domain(&socket)? {
            AddressFamily::UNIX => found.unix.push(socket.into()),
            _ => found.tcp.push(socket.into()),
        }
    }
    Ok(found)
}

/// How many descriptors were handed over to this process.
fn handed_over(variable: impl Fn(&str) -> Option<String>, own: u32) -> io::Result<Option<RawFd>> {
    let bad = |name: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("{name} holds no number that can be"));
    let Some(process) = variable("LISTEN_PID") else { return Ok(None) };
    if process.parse::<u32>().map_err(|_| bad("LISTEN_PID"))? != own {
        // A parent's, inherited along with its environment.
        return Ok(None);
    }
    let Some(count) = variable("LISTEN_FDS") else { return Ok(None) };
    let count = count.parse().ok().filter(|count| (0..=MOST).contains(count));
    count.map(Some).ok_or_else(|| bad("LISTEN_FDS"))
}

#[allow(unsafe_code)]
fn take(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call only looks whether the descriptor is open.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and by the protocol of LISTEN_FDS this process owns it; `TAKEN` lets it be taken once, and
    // nothing in this process could have been given its number, because it was open before the process began.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inherited_sockets_are_those_of_this_process_alone() {
        let asked = |process: Option<&'static str>, count: Option<&'static str>| {
            handed_over(|name| if name == "LISTEN_PID" { process } else { count }.map(str::to_owned), 7)
        };
        assert_eq!(asked(Some("7"), Some("2")).expect("numbers"), Some(2));
        assert_eq!(asked(Some("8"), Some("2")).expect("numbers"), None);
        assert_eq!(asked(None, Some("2")).expect("numbers"), None);
        assert_eq!(asked(Some("7"), None).expect("numbers"), None);
        for (process, count) in [("x", "1"), ("7", "x"), ("7", "-1"), ("7", "1000")] {
            assert!(asked(Some(process), Some(count)).is_err(), "{process} {count}");
        }
    }
}
