//! Waiting for sockets, and the TCP settings that the standard library does not reach.
//!
//! Streams are blocking and owned by one thread each; a thread that must also hear from the rest
//! of the program waits on a [`Waker`] beside its socket.

mod syn;
mod tcp;

pub use syn::{Handshake, handshake, keep_syn, take_syn};
pub use tcp::{
    BufferBytes, TcpFacts, buffer_bytes, congestion_control, open_receive_window, set_congestion_control,
    set_keep_alive, set_largest_segment, set_not_sent_low_water, set_pacing_rate, set_user_timeout, tcp_facts,
};

use crate::retry;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::time::{Duration, Instant};

/// What a wait ended with; all `false` means that time ran out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Reading will not block: there is data, an end, or an error to collect.
    pub read: bool,
    /// Writing will not block: there is room, or an error to collect.
    pub write: bool,
    /// The waker was used; stays so until drained.
    pub woken: bool,
}

/// Waits until `fd` is ready or `timeout` passes (`None` waits for ever). Signals do not end it.
pub fn wait(fd: impl AsFd, read: bool, write: bool, timeout: Option<Duration>) -> io::Result<Ready> {
    wait_on(fd.as_fd(), read, write, None, timeout)
}

/// As [`wait`], and also ends when `waker` is used. With neither direction wanted only the waker
/// counts, even if the peer hangs up.
pub fn wait_two(
    fd: impl AsFd,
    want_read: bool,
    want_write: bool,
    waker: &Waker,
    timeout: Option<Duration>,
) -> io::Result<Ready> {
    wait_on(fd.as_fd(), want_read, want_write, Some(waker), timeout)
}

fn wait_on(
    fd: BorrowedFd<'_>,
    read: bool,
    write: bool,
    waker: Option<&Waker>,
    timeout: Option<Duration>,
) -> io::Result<Ready> {
    let mut wanted = PollFlags::empty();
    wanted.set(PollFlags::IN, read);
    wanted.set(PollFlags::OUT, write);
    let mut set = Vec::with_capacity(2);
    // poll(2) reports a hang-up even to those who asked for nothing, and would spin on it.
    if !wanted.is_empty() {
        set.push(PollFd::from_borrowed_fd(fd, wanted));
    }
    let socket_count = set.len();
    set.extend(waker.map(|waker| PollFd::new(waker, PollFlags::IN)));

    poll_until(&mut set, timeout)?;

    let mut ready = Ready::default();
    for entry in &set[..socket_count] {
        let found = entry.revents();
        if found.contains(PollFlags::NVAL) {
            return Err(Errno::BADF.into());
        }
        // The operation itself tells best what went wrong.
        let over = found.intersects(PollFlags::HUP | PollFlags::ERR);
        ready.read = read && (over || found.contains(PollFlags::IN));
        ready.write = write && (over || found.contains(PollFlags::OUT));
    }
    let mut wakers = set[socket_count..].iter();
    ready.woken = wakers.any(|entry| !entry.revents().is_empty());
    Ok(ready)
}

/// Longest single `poll`: systems without `ppoll` take milliseconds in an `int`, 24 days.
const POLL_MAX: Duration = Duration::from_secs(24 * 3600);

fn poll_until(set: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    // A timeout past what the clock can hold is for ever.
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let round = left.unwrap_or(POLL_MAX).min(POLL_MAX);
        let span = Timespec::try_from(round).map_err(|_| Errno::INVAL)?;
        match rustix::event::poll(set, Some(&span)) {
            Ok(0) if left.is_none_or(|left| left > round) => {}
            Err(Errno::INTR) => {}
            other => return other.map(drop).map_err(io::Error::from),
        }
    }
}

/// Ends another thread's wait. Wakes add up to one until drained.
#[derive(Debug)]
pub struct Waker {
    read: OwnedFd,
    /// Only where the two ends differ: a pipe.
    write: Option<OwnedFd>,
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

impl Waker {
    /// An eventfd, or a pipe where there is none.
    pub fn new() -> io::Result<Waker> {
        #[cfg(target_os = "linux")]
        {
            use rustix::event::{EventfdFlags, eventfd};
            let asked = if crate::PORTABLE {
                Err(Errno::NOSYS)
            } else {
                eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            };
            match asked {
                Ok(read) => return Ok(Waker { read, write: None }),
                Err(Errno::NOSYS | Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Waker::with_pipe()
    }

    fn with_pipe() -> io::Result<Waker> {
        let (read, write) = rustix::pipe::pipe()?;
        for end in [&read, &write] {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(end, true)?;
        }
        let write = Some(write);
        Ok(Waker { read, write })
    }

    /// Makes present and coming waits end, until [`Waker::drain`].
    pub fn wake(&self) {
        let end = self.write.as_ref().unwrap_or(&self.read);
        // Eight bytes are what an eventfd takes. The only failure is EAGAIN: full of wakes already.
        let _ = retry(|| rustix::io::write(end, &1u64.to_ne_bytes()));
    }

    /// Forgets all wakes so far. Drain first, then look for what changed, or a wake is lost.
    pub fn drain(&self) {
        let mut bytes = [0; 512];
        while let Ok(1..) = retry(|| rustix::io::read(&self.read, &mut bytes)) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    const NOW: Option<Duration> = Some(Duration::ZERO);
    const LONG: Option<Duration> = Some(Duration::from_secs(60));

    #[test]
    fn readiness_is_told_apart() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        assert_eq!(wait(&near, true, false, NOW).unwrap(), Ready::default());
        let both = wait(&near, true, true, LONG).unwrap();
        assert!(both.write && !both.read);
        far.write_all(b"x").unwrap();
        assert!(wait(&near, true, false, LONG).unwrap().read);
        near.read_exact(&mut [0]).unwrap();
        drop(far);
        let over = wait(&near, true, true, None).unwrap();
        assert!(over.read && over.write);
    }

    #[test]
    fn waker_of_either_kind_wakes_until_drained() {
        let (near, far) = UnixStream::pair().unwrap();
        for waker in [Waker::new().unwrap(), Waker::with_pipe().unwrap()] {
            let look = |timeout| wait_two(&near, true, false, &waker, timeout).unwrap();
            assert_eq!(look(NOW), Ready::default());
            std::thread::scope(|scope| {
                scope.spawn(|| waker.wake());
                assert!(look(LONG).woken);
            });
            for _ in 0..100_000 {
                waker.wake();
            }
            assert!(look(NOW).woken);
            waker.drain();
            assert!(!look(NOW).woken);
        }
        drop(far);
        let waker = Waker::new().unwrap();
        let idle = wait_two(&near, false, false, &waker, NOW).unwrap();
        assert_eq!(idle, Ready::default());
    }
}
