//! Single datagrams that ask the way: how far each goes is limited, and what routers and the other host say of it comes
//! back over the socket's error queue. No privilege is needed. Off Linux it is [`io::ErrorKind::Unsupported`].

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// What came back to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The port that the probe was sent to.
    pub port: u16,
    /// Who says it; `None` for this host itself.
    pub from: Option<IpAddr>,
    /// What it says.
    pub word: AnswerWord,
}

/// What is said of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerWord {
    /// It went as far as it might.
    Expired,
    /// It came to the host, which has nobody at that port.
    Arrived,
    /// It is larger than the next part of the way takes: packets of so many bytes at most.
    TooLarge(u32),
    /// It goes no further.
    Refused,
}

/// Sends probes to one host.
#[derive(Debug)]
pub struct Prober {
    system: system::ProbeSocket,
    to: IpAddr,
}

impl Prober {
    /// Probes to `to` leave from an address of this host, if one is given.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(from: Option<IpAddr>, to: IpAddr) -> io::Result<Self> {
        Ok(Self { system: system::ProbeSocket::new(from, to)?, to })
    }

    /// Sends a packet of so many bytes, all headers included, that may pass so many hops. It is never cut in parts.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] where this host itself sends no packet of that size; those of the system.
    pub fn send(&self, port: u16, hops: u8, packet_bytes: u32) -> io::Result<()> {
        let payload = packet_bytes.saturating_sub(headers_bytes(self.to)) as usize;
        self.system.send(SocketAddr::new(self.to, port), hops, payload)
    }

    /// The next answer; `None` if none comes in time.
    ///
    /// # Errors
    /// Those of the system.
    pub fn answer(&self, timeout: Duration) -> io::Result<Option<Answer>> {
        self.system.answer(timeout)
    }

    /// The largest packet that goes to the host whole, as far as this host knows by now.
    ///
    /// # Errors
    /// Those of the system.
    pub fn known_mtu(&self) -> io::Result<u32> {
        self.system.known_mtu(self.to)
    }
}

/// The headers of IP and UDP.
fn headers_bytes(to: IpAddr) -> u32 {
    if to.is_ipv4() { 28 } else { 48 }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod system {
    use super::{Answer, AnswerWord};
    use crate::socket::wait;
    use rustix::fd::AsRawFd;
    use std::io;
    use std::mem::size_of;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
    use std::time::{Duration, Instant};

    /// Calls that may tell of earlier probes before one is made for itself.
    const EARLIER_ERRORS: usize = 16;
    /// More than any packet has.
    const PAYLOAD_MAX: usize = 65_535;
    /// Which errors these are: from ICMP, from ICMPv6.
    const ORIGIN_ICMP: u8 = 2;
    const ORIGIN_ICMP6: u8 = 3;
    /// The kernel's `sock_extended_err`: errno, origin, type, code, padding, info, data.
    const EXTENDED_ERROR_BYTES: usize = 16;

    #[derive(Debug)]
    pub struct ProbeSocket {
        socket: UdpSocket,
        is_v4: bool,
    }

    impl ProbeSocket {
        pub fn new(from: Option<IpAddr>, to: IpAddr) -> io::Result<Self> {
            let is_v4 = to.is_ipv4();
            let any = if is_v4 { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
            let from = from.filter(|from| from.is_ipv4() == is_v4).unwrap_or(any);
            let prober = Self { socket: UdpSocket::bind(SocketAddr::new(from, 0))?, is_v4 };
            // Packets are not cut, and what the kernel remembers of the way does not count: it is asked anew.
            prober.set((libc::IP_RECVERR, libc::IPV6_RECVERR), 1)?;
            prober.set((libc::IP_MTU_DISCOVER, libc::IPV6_MTU_DISCOVER), libc::IP_PMTUDISC_PROBE)?;
            prober.socket.set_nonblocking(true)?;
            Ok(prober)
        }

        fn set(&self, (v4, v6): (libc::c_int, libc::c_int), value: libc::c_int) -> io::Result<()> {
            let (level, name) = if self.is_v4 { (libc::IPPROTO_IP, v4) } else { (libc::IPPROTO_IPV6, v6) };
            let from = std::ptr::from_ref(&value).cast();
            let bytes = size_of::<libc::c_int>() as libc::socklen_t;
            // SAFETY: the descriptor is open, and `from` points to `bytes` readable bytes that outlive the call.
            let done = unsafe { libc::setsockopt(self.socket.as_raw_fd(), level, name, from, bytes) };
            if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        }

        pub fn send(&self, to: SocketAddr, hops: u8, payload: usize) -> io::Result<()> {
            self.set((libc::IP_TTL, libc::IPV6_UNICAST_HOPS), hops.into())?;
            let zeros = [0; PAYLOAD_MAX];
            for _ in 0..EARLIER_ERRORS {
                match self.socket.send_to(&zeros[..payload.min(PAYLOAD_MAX)], to) {
                    Ok(_) => return Ok(()),
                    Err(error) => match error.raw_os_error() {
                        Some(libc::EMSGSIZE) => return Err(io::ErrorKind::InvalidInput.into()),
                        // What an earlier probe met is told by the next call on the socket, once; it stays in the
                        // queue as well.
                        Some(libc::EINTR | libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH) => {}
                        _ => return Err(error),
                    },
                }
            }
            Err(io::ErrorKind::HostUnreachable.into())
        }

        pub fn answer(&self, timeout: Duration) -> io::Result<Option<Answer>> {
            let deadline = Instant::now() + timeout;
            loop {
                match self.take() {
                    Ok(Some(answer)) => return Ok(Some(answer)),
                    // Something else than an answer.
                    Ok(None) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        let left = deadline.saturating_duration_since(Instant::now());
                        if left.is_zero() {
                            return Ok(None);
                        }
                        // Errors wake whoever waits to read.
                        let _ = wait(&self.socket, true, false, Some(left))?;
                        let _ = self.socket.take_error()?;
                        // What somebody sends to this port is of no use here, and would wake it again and again.
                        while self.socket.recv_from(&mut [0; 16]).is_ok() {}
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }

        /// Takes an entry of the error queue; `None` for one that is no answer.
        fn take(&self) -> io::Result<Option<Answer>> {
            let mut control = Control([0; CONTROL_WORDS]);
            let mut name = [0_u64; 4];
            let mut byte = [0_u8; 1];
            let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: byte.len() };
            // SAFETY: msghdr is integers and pointers, for which all bits zero is a value.
            let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
            message.msg_name = name.as_mut_ptr().cast();
            message.msg_namelen = size_of::<[u64; 4]>() as libc::socklen_t;
            message.msg_iov = &raw mut part;
            message.msg_iovlen = 1;
            message.msg_control = control.0.as_mut_ptr().cast();
            // Libraries of C differ in the type.
            message.msg_controllen = size_of::<Control>() as _;
            // SAFETY: the descriptor is open; every pointer of `message` has the bytes that stand beside it, and they
            // outlive the call.
            let taken = unsafe {
                libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
            };
            if taken < 0 {
                return Err(io::Error::last_os_error());
            }
            let name: Vec<u8> = name.iter().flat_map(|word| word.to_ne_bytes()).collect();
            // The port stands behind the family in both kinds of addresses.
            let port = u16::from_be_bytes([name[2], name[3]]);
            Ok(self.extended_error(&message).and_then(|bytes| self.parse(port, &bytes)))
        }

        /// The bytes of the extended error, with the address behind it.
        fn extended_error(&self, message: &libc::msghdr) -> Option<Vec<u8>> {
            let (level, kind) =
                if self.is_v4 { (libc::SOL_IP, libc::IP_RECVERR) } else { (libc::SOL_IPV6, libc::IPV6_RECVERR) };
            // SAFETY: `message` is as the kernel has filled it, its control bytes aligned.
            let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
            while !header.is_null() {
                // SAFETY: the macros above and below give null or a whole header within the control bytes.
                let found = unsafe { &*header };
                if (found.cmsg_level, found.cmsg_type) == (level, kind) {
                    // SAFETY: CMSG_LEN of nothing is the length of the header, no memory is touched.
                    let header_bytes = unsafe { libc::CMSG_LEN(0) } as usize;
                    let whole: usize = found.cmsg_len as _;
                    let length = whole.saturating_sub(header_bytes);
                    // SAFETY: the kernel has written `cmsg_len` bytes from the header on.
                    return Some(unsafe { std::slice::from_raw_parts(libc::CMSG_DATA(header), length) }.to_vec());
                }
                // SAFETY: as above.
                header = unsafe { libc::CMSG_NXTHDR(message, header) };
            }
            None
        }

        /// ICMP: 11 time exceeded; 3 unreachable: 3 port, 4 too large. ICMPv6: 3 time exceeded; 1 unreachable: 4 port;
        /// 2 too large.
        fn parse(&self, port: u16, bytes: &[u8]) -> Option<Answer> {
            let error = bytes.get(..EXTENDED_ERROR_BYTES)?;
            let (origin, kind, code) = (error[4], error[5], error[6]);
            let info = u32::from_ne_bytes(error[8..12].try_into().ok()?);
            let word = match (origin, kind, code) {
                (ORIGIN_ICMP, 11, _) | (ORIGIN_ICMP6, 3, _) => AnswerWord::Expired,
                (ORIGIN_ICMP, 3, 3) | (ORIGIN_ICMP6, 1, 4) => AnswerWord::Arrived,
                (ORIGIN_ICMP, 3, 4) | (ORIGIN_ICMP6, 2, _) => AnswerWord::TooLarge(info),
                (ORIGIN_ICMP | ORIGIN_ICMP6, ..) => AnswerWord::Refused,
                _ => return None,
            };
            Some(Answer { port, from: address(&bytes[EXTENDED_ERROR_BYTES..]), word })
        }

        pub fn known_mtu(&self, to: IpAddr) -> io::Result<u32> {
            // Only a connected socket tells, and this one must hear of all ports.
            let socket = UdpSocket::bind(SocketAddr::new(self.socket.local_addr()?.ip(), 0))?;
            socket.connect(SocketAddr::new(to, 9))?;
            let (level, name) =
                if self.is_v4 { (libc::IPPROTO_IP, libc::IP_MTU) } else { (libc::IPPROTO_IPV6, libc::IPV6_MTU) };
            let (mut mtu, mut bytes): (libc::c_int, _) = (0, size_of::<libc::c_int>() as libc::socklen_t);
            let to = std::ptr::from_mut(&mut mtu).cast();
            // SAFETY: the descriptor is open; the kernel writes at most `bytes` bytes to `to`, which has them.
            let done = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, to, &mut bytes) };
            if done == 0 { Ok(u32::try_from(mtu).unwrap_or(0)) } else { Err(io::Error::last_os_error()) }
        }
    }

    /// `sockaddr_in` and `sockaddr_in6`: family, port, then the address; of IPv6 behind four bytes more.
    fn address(bytes: &[u8]) -> Option<IpAddr> {
        match i32::from(u16::from_ne_bytes(*bytes.first_chunk()?)) {
            libc::AF_INET => Some(IpAddr::from(<[u8; 4]>::try_from(bytes.get(4..8)?).ok()?)),
            libc::AF_INET6 => Some(IpAddr::from(<[u8; 16]>::try_from(bytes.get(8..24)?).ok()?).to_canonical()),
            _ => None,
        }
    }

    const CONTROL_WORDS: usize = 64;

    /// Aligned as control messages have to be.
    struct Control([u64; CONTROL_WORDS]);
}

/// What a system without these answers.
#[cfg(not(target_os = "linux"))]
mod system {
    use super::Answer;
    use std::io::{self, ErrorKind::Unsupported};
    use std::net::{IpAddr, SocketAddr};
    use std::time::Duration;

    #[derive(Debug)]
    pub struct NoProbes;
    pub use self::NoProbes as ProbeSocket;

    impl NoProbes {
        pub fn new(_: Option<IpAddr>, _: IpAddr) -> io::Result<Self> {
            Err(Unsupported.into())
        }

        pub fn send(&self, _: SocketAddr, _: u8, _: usize) -> io::Result<()> {
            Err(Unsupported.into())
        }

        pub fn answer(&self, _: Duration) -> io::Result<Option<Answer>> {
            Err(Unsupported.into())
        }

        pub fn known_mtu(&self, _: IpAddr) -> io::Result<u32> {
            Err(Unsupported.into())
        }
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn probes_to_this_host_arrive_whole_or_are_too_large() {
        for to in ["127.0.0.1", "::1"] {
            let to: IpAddr = to.parse().unwrap();
            let Ok(prober) = Prober::new(Some(to), to) else {
                println!("skipped: no {to} here");
                continue;
            };
            let mtu = prober.known_mtu().unwrap();
            assert!(mtu >= 1280, "{to}: {mtu}");
            // Nobody is there: two ports that were free a moment ago.
            let free = || std::net::UdpSocket::bind((to, 0)).unwrap().local_addr().unwrap().port();
            let ports = [free(), free()];
            for (port, bytes) in ports.into_iter().zip([100, mtu.min(65_000)]) {
                prober.send(port, 1, bytes).unwrap();
                let answer = prober.answer(LONG).unwrap().expect("this host answers");
                assert_eq!(answer, Answer { port, from: Some(to), word: AnswerWord::Arrived });
            }
            assert_eq!(prober.answer(Duration::ZERO).unwrap(), None);
        }
    }
}
