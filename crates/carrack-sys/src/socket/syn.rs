//! How a TCP connection began: what the other side's first packet (its SYN) asked for, as it came here, and what both
//! sides agreed on. Whoever compares it with what the other side sent knows what was altered on the way. Off Linux each
//! is [`io::ErrorKind::Unsupported`].

use rustix::fd::AsFd;
use std::io;

/// What both sides of a connection agreed on when it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// Timestamps are in use.
    pub timestamps: bool,
    /// Selective acknowledgements are in use.
    pub sack: bool,
    /// Window scaling is in use, and by how many bits: of the other side's windows, and of this side's.
    pub scales: Option<(u8, u8)>,
    /// The segment that this side told the other it takes, in bytes, as its routes have it.
    pub advertised_mss: u32,
}

/// Has the kernel keep the first packet of each connection that a listener accepts from now on (`TCP_SAVE_SYN`).
///
/// # Errors
/// What the system says.
pub fn keep_syn(listener: impl AsFd) -> io::Result<()> {
    system::keep_syn(listener.as_fd())
}

/// The first packet of an accepted connection, from the header of IP on, if it was kept; it is given out once.
///
/// # Errors
/// What the system says.
pub fn take_syn(connection: impl AsFd) -> io::Result<Option<Vec<u8>>> {
    system::take_syn(connection.as_fd())
}

/// Reads what was agreed on.
///
/// # Errors
/// What the system says.
pub fn handshake(connection: impl AsFd) -> io::Result<Handshake> {
    system::handshake(connection.as_fd())
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod system {
    use super::Handshake;
    use rustix::fd::{AsRawFd, BorrowedFd};
    use std::io;

    /// linux/tcp.h; not in the C library's headers everywhere.
    const TCP_SAVE_SYN: libc::c_int = 27;
    const TCP_SAVED_SYN: libc::c_int = 28;
    /// Both headers with all their options: 60 bytes each, and IPv6 may have some more.
    const SYN_BYTES: usize = 512;
    /// `tcp_info` as far as it is read here.
    const INFO_BYTES: usize = 88;

    pub fn keep_syn(fd: BorrowedFd<'_>) -> io::Result<()> {
        let on: libc::c_int = 1;
        let (from, bytes) = (std::ptr::from_ref(&on).cast(), size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: the descriptor is borrowed for the call, and `from` points to `bytes` readable bytes that outlive it.
        let done = unsafe { libc::setsockopt(fd.as_raw_fd(), libc::IPPROTO_TCP, TCP_SAVE_SYN, from, bytes) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn get(fd: BorrowedFd<'_>, name: libc::c_int, into: &mut [u8]) -> io::Result<usize> {
        let mut bytes = libc::socklen_t::try_from(into.len()).unwrap_or(libc::socklen_t::MAX);
        let to = into.as_mut_ptr().cast();
        // SAFETY: the descriptor is borrowed for the call; the kernel writes at most `bytes` bytes to `to`, which has
        // them, and any bytes are values of theirs.
        let done = unsafe { libc::getsockopt(fd.as_raw_fd(), libc::IPPROTO_TCP, name, to, &mut bytes) };
        if done == 0 { Ok(bytes as usize) } else { Err(io::Error::last_os_error()) }
    }

    pub fn take_syn(fd: BorrowedFd<'_>) -> io::Result<Option<Vec<u8>>> {
        let mut syn = vec![0; SYN_BYTES];
        let filled = get(fd, TCP_SAVED_SYN, &mut syn)?;
        syn.truncate(filled);
        Ok(Some(syn).filter(|syn| !syn.is_empty()))
    }

    pub fn handshake(fd: BorrowedFd<'_>) -> io::Result<Handshake> {
        let mut info = [0; INFO_BYTES];
        let filled = get(fd, libc::TCP_INFO, &mut info)?;
        if filled < INFO_BYTES {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // Bits of tcpi_options; the scales are half a byte each, the first one where the processor has it first.
        let (options, scales) = (info[5], info[6]);
        let (low, high) = (scales & 0xf, scales >> 4);
        let scales = if cfg!(target_endian = "little") { (low, high) } else { (high, low) };
        Ok(Handshake {
            timestamps: options & 1 != 0,
            sack: options & 2 != 0,
            scales: (options & 4 != 0).then_some(scales),
            advertised_mss: u32::from_ne_bytes([info[84], info[85], info[86], info[87]]),
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::Handshake;
    use rustix::fd::BorrowedFd;
    use std::io::{self, ErrorKind::Unsupported};

    pub fn keep_syn(_: BorrowedFd<'_>) -> io::Result<()> {
        Err(Unsupported.into())
    }

    pub fn take_syn(_: BorrowedFd<'_>) -> io::Result<Option<Vec<u8>>> {
        Err(Unsupported.into())
    }

    pub fn handshake(_: BorrowedFd<'_>) -> io::Result<Handshake> {
        Err(Unsupported.into())
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn first_packet_is_kept_for_who_asked_and_given_out_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (near, listener.accept().unwrap().0)
        };
        let (_near, far) = connect();
        assert_eq!(take_syn(&far).unwrap(), None);
        keep_syn(&listener).unwrap();
        let (near, far) = connect();
        let syn = take_syn(&far).unwrap().expect("it was kept");
        // IPv4, then TCP with the port that it is for.
        let tcp = &syn[4 * usize::from(syn[0] & 0xf)..];
        assert_eq!(u16::from_be_bytes([tcp[2], tcp[3]]), far.local_addr().unwrap().port());
        assert_eq!(take_syn(&far).unwrap(), None);
        let agreed = [handshake(&near).unwrap(), handshake(&far).unwrap()];
        assert_eq!((agreed[0].sack, agreed[0].timestamps), (agreed[1].sack, agreed[1].timestamps));
        // What one sends is what the other receives.
        let scales = agreed.map(|side| side.scales);
        assert_eq!(scales[0], scales[1].map(|(theirs, own)| (own, theirs)));
        assert!(agreed[0].advertised_mss >= 536, "{agreed:?}");
    }
}
