//! A connected socket that carries one data stream: TCP, or a Unix pair within the process.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

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
