//! A connected socket that carries one data stream: TCP, or a Unix pair within the process.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use carrack_core::tuning::{STREAM_SILENCE, Tuning};
use carrack_sys::bulk;
use carrack_sys::socket::{
    set_congestion_control, set_not_sent_low_water, set_pacing_rate, set_user_timeout, tcp_facts,
};

/// How often who waits to send looks whether the peer is still heard.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A connected socket.
#[derive(Debug)]
pub enum Socket {
    /// To another process or host.
    Tcp(TcpStream),
    /// Within the process: between two local ends, or between a stream and the tunnel that carries it.
    Unix(UnixStream),
}

impl Socket {
    /// Another handle to the same socket.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(socket) => Self::Tcp(socket.try_clone()?),
            Self::Unix(socket) => Self::Unix(socket.try_clone()?),
        })
    }

    /// Ends both directions: whoever waits in a call on any handle wakes up.
    pub fn abort(&self) {
        // An error means that the connection has ended already.
        let _ = match self {
            Self::Tcp(socket) => socket.shutdown(Shutdown::Both),
            Self::Unix(socket) => socket.shutdown(Shutdown::Both),
        };
    }

    /// Makes it ready for [`Socket::send`], and for nothing else that writes. A peer may take nothing for as long as
    /// its storage or the reader of its pipe takes: TCP's own limit (`TCP_USER_TIMEOUT`) counts that as silence even
    /// while every question is answered.
    pub fn make_sending(&self, tuning: &Tuning) {
        if let Self::Tcp(socket) = self
            && let Ok(facts) = tcp_facts(socket)
        {
            // Without these it is as before: patience ends earlier than it should.
            let _ = set_user_timeout(socket, Duration::ZERO);
            // Work is taken by the stream that can send it, not by the one whose buffer is patient:
            // near the end that decides.
            let far = facts.rtt >= tuning.far_rtt;
            let not_sent = if far { tuning.not_sent_bytes_far } else { tuning.not_sent_bytes };
            let _ = set_not_sent_low_water(socket, not_sent);
            let _ = socket.set_write_timeout(Some(LOOK_INTERVAL));
        }
    }

    /// Has the kernel spread what is sent, so that no burst is faster than so many bytes a second. A hint: it
    /// bounds nothing over time.
    pub fn pace(&self, rate: u64) {
        if let Self::Tcp(socket) = self {
            // A little above, for headers and what is sent again: the limit itself is not the kernel's to keep.
            let _ = set_pacing_rate(socket, rate.saturating_add(rate / 8).max(64 << 10));
        }
    }

    /// Chooses the congestion control; within the process there is none.
    ///
    /// # Errors
    /// When the kernel does not have it, or not for everybody.
    pub fn set_congestion_control(&self, name: &str) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => set_congestion_control(socket, name),
            Self::Unix(_) => Ok(()),
        }
    }

    /// Whether what was sent has had no answer for [`STREAM_SILENCE`].
    pub fn is_silent(&self) -> bool {
        match self {
            Self::Tcp(socket) => {
                tcp_facts(socket).is_ok_and(|facts| facts.unanswered && facts.last_heard > STREAM_SILENCE)
            }
            Self::Unix(_) => false,
        }
    }

    /// Writes everything, and waits for as long as the peer is heard.
    ///
    /// # Errors
    /// `TimedOut` when it is not, and those of the connection.
    pub fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.while_heard(|| (&mut &*self).write(bytes))? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }

    /// Sends `length` bytes of a file from `offset`, inside the kernel, and says how many went: fewer when
    /// the file ends or cannot be read, or when this cannot be done here. The caller goes on with what is
    /// left, and meets the same.
    ///
    /// # Errors
    /// As [`Socket::send`].
    pub fn send_file(&self, file: &File, offset: u64, length: usize) -> io::Result<usize> {
        let mut sent = 0;
        while sent < length {
            let some = || bulk::send_file(self, file, offset + sent as u64, length - sent);
            match self.while_heard(some) {
                Ok(0) => break,
                Ok(count) => sent += count,
                Err(error) if is_of_connection(&error) => return Err(error),
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    /// Tries a call that sends until it has sent something, for as long as the peer is heard.
    fn while_heard(&self, mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
        loop {
            match call() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.is_tcp() => {
                    if self.is_silent() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                other => return other,
            }
        }
    }

    fn is_tcp(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// Bounds how long one read or write may wait; `None` for ever.
    ///
    /// # Errors
    /// Those of the system call.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.set_read_timeout(timeout).and_then(|()| socket.set_write_timeout(timeout)),
            Self::Unix(socket) => socket.set_read_timeout(timeout).and_then(|()| socket.set_write_timeout(timeout)),
        }
    }
}

/// Whether an error of a call that also reads a file is the connection's.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, HostUnreachable, NetworkUnreachable};
    use io::ErrorKind::{NotConnected, TimedOut};
    matches!(
        error.kind(),
        BrokenPipe
            | ConnectionAborted
            | ConnectionReset
            | HostUnreachable
            | NetworkUnreachable
            | NotConnected
            | TimedOut
    )
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => (&mut &*socket).read(buffer),
            Socket::Unix(socket) => (&mut &*socket).read(buffer),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => (&mut &*socket).write(buffer),
            Socket::Unix(socket) => (&mut &*socket).write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
