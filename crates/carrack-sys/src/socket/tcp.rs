//! TCP settings and counters. Off Linux each is [`io::ErrorKind::Unsupported`]: all of them tune or
//! measure, so a caller can note that and go on.

use rustix::fd::AsFd;
use std::io;
use std::time::Duration;

/// What the kernel knows of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFacts {
    /// Smoothed round trip.
    pub rtt: Duration,
    /// How far round trips differ from the smoothed one, in the mean.
    pub rtt_var: Duration,
    /// The largest packet that the path takes, in bytes.
    pub path_mtu: u32,
    /// Shortest round trip in the kernel's window; zero before the first sample.
    pub min_rtt: Duration,
    /// Segments sent again, since the connection began.
    pub retransmits: u64,
    /// Segments sent, those sent again included.
    pub segments_out: u32,
    /// Bytes per second delivered, as measured over the last round trip.
    pub delivery_rate: u64,
    /// Segments allowed in flight.
    pub congestion_window: u32,
    /// Since an acknowledgement came last.
    pub last_heard: Duration,
    /// Something has been sent again, or a closed window asked about, and no answer has come to that.
    pub unanswered: bool,
    /// Neither side has ended it.
    pub is_open: bool,
    /// Bytes that the other side has acknowledged, since the connection began.
    pub acknowledged: u64,
    /// Segments sent and not acknowledged.
    pub unacknowledged: u32,
    /// Payload of a segment, in bytes.
    pub segment_bytes: u32,
    /// Bytes that have come in order.
    pub received: u64,
    /// Bytes in the send buffer that have not been sent.
    pub unsent_bytes: u32,
    /// Bytes that the other side's receive window allows; 0 before Linux 5.4.
    pub send_window: u32,
    /// Time in which something was under way.
    pub busy: Duration,
    /// Of that, time in which the other side's receive window allowed no more.
    pub rwnd_limited: Duration,
    /// Of that, time in which the send buffer allowed no more.
    pub sndbuf_limited: Duration,
    /// Segments that came out of order; 0 before Linux 5.4.
    pub out_of_order: u32,
    /// Retransmission timeouts; 0 before Linux 6.7.
    pub timeouts: u16,
    /// Time lost in them; 0 before Linux 6.7.
    pub timeouts_time: Duration,
}

/// The buffers of a socket, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferBytes {
    /// What has room in the send buffer.
    pub send: u64,
    /// What has room in the receive buffer.
    pub receive: u64,
    /// What has come and was not read.
    pub unread: u64,
}

/// Reads how large a socket's buffers are, and what waits to be read.
pub fn buffer_bytes(fd: impl AsFd) -> io::Result<BufferBytes> {
    use rustix::net::sockopt;
    let fd = fd.as_fd();
    Ok(BufferBytes {
        send: sockopt::socket_send_buffer_size(fd)? as u64,
        receive: sockopt::socket_recv_buffer_size(fd)? as u64,
        unread: rustix::io::ioctl_fionread(fd)?,
    })
}

/// Lets a socket be writable only while less than `bytes` wait unsent in it, so that a change of
/// mind does not queue behind megabytes (`TCP_NOTSENT_LOWAT`).
pub fn set_not_sent_low_water(fd: impl AsFd, bytes: u32) -> io::Result<()> {
    system::set_not_sent_low_water(fd.as_fd(), bytes)
}

/// How long sent data may stay unacknowledged before the connection is given up (`RFC 5482`); zero
/// leaves it to the system.
pub fn set_user_timeout(fd: impl AsFd, timeout: Duration) -> io::Result<()> {
    system::set_user_timeout(fd.as_fd(), timeout)
}

/// Lets the peer send more before it has been seen how fast this side reads: the receive buffer may grow to `bytes` at
/// once, at most to half of what the system allows a socket, and by itself from there on. It is a bound, nothing is
/// taken. Before Linux 4.18 nothing changes.
pub fn open_receive_window(fd: impl AsFd, bytes: u32) -> io::Result<()> {
    system::open_receive_window(fd.as_fd(), bytes)
}

/// Asks a side that says nothing whether it is still there: after `idle`, and as often again; with a user timeout, that
/// decides when it is gone.
pub fn set_keep_alive(fd: impl AsFd, idle: Duration) -> io::Result<()> {
    system::set_keep_alive(fd.as_fd(), idle)
}

/// Bounds the segments of a connection that is not made yet, in both directions: it is
/// announced to the other side, too.
pub fn set_largest_segment(fd: impl AsFd, bytes: u32) -> io::Result<()> {
    system::set_largest_segment(fd.as_fd(), bytes)
}

/// Caps the rate at which the kernel paces segments out.
pub fn set_pacing_rate(fd: impl AsFd, bytes_per_s: u64) -> io::Result<()> {
    system::set_pacing_rate(fd.as_fd(), bytes_per_s)
}

/// Chooses the congestion control by its kernel name, such as `cubic` or `bbr`.
pub fn set_congestion_control(fd: impl AsFd, name: &str) -> io::Result<()> {
    system::set_congestion_control(fd.as_fd(), name)
}

/// The congestion control in force.
pub fn congestion_control(fd: impl AsFd) -> io::Result<String> {
    system::congestion_control(fd.as_fd())
}

/// Reads the connection's counters. Those a kernel is too old to know are zero.
pub fn tcp_facts(fd: impl AsFd) -> io::Result<TcpFacts> {
    system::tcp_facts(fd.as_fd())
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod system {
    use super::TcpFacts;
    use rustix::fd::{AsRawFd, BorrowedFd};
    use rustix::net::sockopt;
    use std::io;
    use std::mem::size_of;
    use std::time::Duration;

    pub fn set_not_sent_low_water(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
        set(fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &bytes)
    }

    pub fn set_user_timeout(fd: BorrowedFd<'_>, timeout: Duration) -> io::Result<()> {
        // Zero means the default, so the shortest real timeout is one millisecond; the kernel
        // takes an int.
        let floor = u128::from(!timeout.is_zero());
        let millis = timeout.as_millis().max(floor);
        let millis = u32::try_from(millis).unwrap_or(u32::MAX).min(i32::MAX as u32);
        Ok(sockopt::set_tcp_user_timeout(fd, millis)?)
    }

    pub fn open_receive_window(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
        // Whoever would be woken by so many bytes only must have room for them; unlike SO_RCVBUF that leaves the buffer
        // to grow and shrink by itself. Reads are not to wait for as many.
        set(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &bytes.min(i32::MAX as u32))?;
        set(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &1u32)
    }

    pub fn set_keep_alive(fd: BorrowedFd<'_>, idle: Duration) -> io::Result<()> {
        sockopt::set_tcp_keepidle(fd, idle)?;
        sockopt::set_tcp_keepintvl(fd, idle)?;
        Ok(sockopt::set_socket_keepalive(fd, true)?)
    }

    pub fn set_largest_segment(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
        set(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &bytes)
    }

    pub fn set_pacing_rate(fd: BorrowedFd<'_>, bytes_per_s: u64) -> io::Result<()> {
        let (level, name) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
        // u32::MAX itself means "no cap" in the four-byte form.
        if bytes_per_s < u64::from(u32::MAX) {
            return set(fd, level, name, &(bytes_per_s as u32));
        }
        set(fd, level, name, &bytes_per_s)?;
        // Before Linux 4.20 the kernel reads four bytes of the eight, a cap far too low; it gives
        // itself away by answering with four. No cap is then the nearest to what was asked.
        let mut in_force = 0u64;
        if get(fd, level, name, &mut in_force)? < size_of::<u64>() {
            return set(fd, level, name, &u32::MAX);
        }
        Ok(())
    }

    pub fn set_congestion_control(fd: BorrowedFd<'_>, name: &str) -> io::Result<()> {
        Ok(sockopt::set_tcp_congestion(fd, name)?)
    }

    pub fn congestion_control(fd: BorrowedFd<'_>) -> io::Result<String> {
        Ok(sockopt::tcp_congestion(fd)?)
    }

    pub fn tcp_facts(fd: BorrowedFd<'_>) -> io::Result<TcpFacts> {
        // The kernel's structure has grown for twenty years, and each kernel fills what it knows: its fields are
        // read where they stand (linux/tcp.h).
        let mut words = Info([0; INFO_WORDS]);
        let filled = get(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut words)?;
        let info = TcpInfo { words: words.0, filled };
        let micros = |count: u32| Duration::from_micros(count.into());
        // All ones is the kernel's "no sample yet".
        let min_rtt = match info.u32(148) {
            u32::MAX => 0,
            count => count,
        };
        Ok(TcpFacts {
            rtt: micros(info.u32(68)),
            rtt_var: micros(info.u32(72)),
            path_mtu: info.u32(60),
            min_rtt: micros(min_rtt),
            retransmits: info.u32(100).into(),
            segments_out: info.u32(136),
            delivery_rate: info.u64(160),
            congestion_window: info.u32(80),
            last_heard: Duration::from_millis(info.u32(56).into()),
            unanswered: info.byte(2) > 0 || info.byte(3) > 0,
            // TCP_ESTABLISHED.
            is_open: info.byte(0) == 1,
            acknowledged: info.u64(120),
            unacknowledged: info.u32(24),
            segment_bytes: info.u32(16),
            received: info.u64(128),
            unsent_bytes: info.u32(144),
            send_window: info.u32(228),
            busy: Duration::from_micros(info.u64(168)),
            rwnd_limited: Duration::from_micros(info.u64(176)),
            sndbuf_limited: Duration::from_micros(info.u64(184)),
            out_of_order: info.u32(224),
            timeouts: info.u32(240).to_ne_bytes()[..2].try_into().map(u16::from_ne_bytes).unwrap_or(0),
            timeouts_time: Duration::from_millis(info.u32(244).into()),
        })
    }

    /// More than any kernel fills.
    const INFO_WORDS: usize = 64;

    /// As the kernel writes it.
    struct Info([u32; INFO_WORDS]);

    /// `tcp_info`, of which the first bytes are filled, the rest zeros.
    struct TcpInfo {
        words: [u32; INFO_WORDS],
        filled: usize,
    }

    impl TcpInfo {
        /// The number at this offset; 0 where the kernel has not written it whole.
        fn u32(&self, offset: usize) -> u32 {
            if offset + 4 <= self.filled { self.words[offset / 4] } else { 0 }
        }

        fn u64(&self, offset: usize) -> u64 {
            if offset + 8 > self.filled {
                return 0;
            }
            let halves = [self.words[offset / 4].to_ne_bytes(), self.words[offset / 4 + 1].to_ne_bytes()];
            halves.concat().try_into().map_or(0, u64::from_ne_bytes)
        }

        fn byte(&self, offset: usize) -> u8 {
            if offset < self.filled { self.words[offset / 4].to_ne_bytes()[offset % 4] } else { 0 }
        }
    }

    /// Types whose every bit pattern is a value, so the kernel may write any part of them.
    trait Plain {}
    impl Plain for u32 {}
    impl Plain for u64 {}
    impl Plain for Info {}

    fn set<T: Plain>(fd: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
        let from = std::ptr::from_ref(value).cast();
        let bytes = size_of::<T>() as libc::socklen_t;
        // SAFETY: the descriptor is borrowed for the call, and `from` points to `bytes` readable
        // bytes that outlive it.
        let done = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, from, bytes) };
        if done == 0 {
            return Ok(());
        }
        Err(io::Error::last_os_error())
    }

    /// Returns how many bytes the kernel filled.
    fn get<T: Plain>(fd: BorrowedFd<'_>, level: i32, name: i32, into: &mut T) -> io::Result<usize> {
        let mut bytes = size_of::<T>() as libc::socklen_t;
        let to = std::ptr::from_mut(into).cast();
        // SAFETY: the descriptor is borrowed for the call; the kernel writes at most `bytes`
        // bytes to `to`, which has them, and `T: Plain` makes any of them valid.
        let done = unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, to, &mut bytes) };
        if done == 0 {
            return Ok(bytes as usize);
        }
        Err(io::Error::last_os_error())
    }
}

/// What a system without these answers.
#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(target_os = "linux", allow(dead_code))]
mod portable {
    use super::TcpFacts;
    use rustix::fd::BorrowedFd;
    use std::io::{self, ErrorKind::Unsupported};
    use std::time::Duration;

    pub fn set_not_sent_low_water(_: BorrowedFd<'_>, _: u32) -> io::Result<()> {
        Err(Unsupported.into())
    }

    pub fn set_user_timeout(_: BorrowedFd<'_>, _: Duration) -> io::Result<()> {
        Err(Unsupported.into())
    }

    pub fn open_receive_window(_: BorrowedFd<'_>, _: u32) -> io::Result<()> {
        Err(Unsupported.into())
    }

    pub fn set_keep_alive(_: BorrowedFd<'_>, _: Duration) -> io::Result<()> {
        Err(Unsupported.into())
    }

    pub fn set_largest_segment(_: BorrowedFd<'_>, _: u32) -> io::Result<()> {
        Err(Unsupported.into())
    }

    pub fn set_pacing_rate(_: BorrowedFd<'_>, _: u64) -> io::Result<()> {
        Err(Unsupported.into())
    }

    pub fn set_congestion_control(_: BorrowedFd<'_>, _: &str) -> io::Result<()> {
        Err(Unsupported.into())
    }

    pub fn congestion_control(_: BorrowedFd<'_>) -> io::Result<String> {
        Err(Unsupported.into())
    }

    pub fn tcp_facts(_: BorrowedFd<'_>) -> io::Result<TcpFacts> {
        Err(Unsupported.into())
    }
}

#[cfg(not(target_os = "linux"))]
use portable as system;

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn settings_take_and_facts_are_plausible() {
        let (mut near, mut far) = pair();
        set_not_sent_low_water(&near, 128 * 1024).unwrap();
        set_user_timeout(&near, Duration::from_micros(1)).unwrap();
        set_user_timeout(&near, Duration::MAX).unwrap();
        set_keep_alive(&near, Duration::from_secs(5)).unwrap();
        set_congestion_control(&near, "reno").unwrap();
        assert_eq!(congestion_control(&near).unwrap(), "reno");
        assert!(set_congestion_control(&near, "no such").is_err());
        near.write_all(&[1; 4096]).unwrap();
        far.read_exact(&mut [0; 4096]).unwrap();
        let facts = tcp_facts(&near).unwrap();
        assert!(facts.segments_out > 0 && facts.congestion_window > 0 && facts.is_open);
        assert!(facts.rtt > Duration::ZERO && facts.rtt < Duration::from_secs(60));
        assert!(facts.min_rtt <= facts.rtt * 10);
        assert!(facts.acknowledged <= 4097 && (facts.acknowledged >= 4096 || facts.unacknowledged > 0), "{facts:?}");
        drop(far);
        // The end has come when it can be read.
        assert_eq!(near.read(&mut [0]).unwrap(), 0);
        assert!(!tcp_facts(&near).unwrap().is_open);
    }

    /// Our offsets are those of the C library's structure, as far as that goes.
    #[allow(unsafe_code)]
    #[test]
    fn facts_are_read_where_the_system_has_them() {
        use std::mem::offset_of;
        use std::os::fd::AsRawFd;
        let offsets = [
            (offset_of!(libc::tcp_info, tcpi_rtt), 68),
            (offset_of!(libc::tcp_info, tcpi_rttvar), 72),
            (offset_of!(libc::tcp_info, tcpi_pmtu), 60),
            (offset_of!(libc::tcp_info, tcpi_snd_cwnd), 80),
            (offset_of!(libc::tcp_info, tcpi_total_retrans), 100),
            (offset_of!(libc::tcp_info, tcpi_bytes_acked), 120),
            (offset_of!(libc::tcp_info, tcpi_bytes_received), 128),
            (offset_of!(libc::tcp_info, tcpi_segs_out), 136),
            (offset_of!(libc::tcp_info, tcpi_notsent_bytes), 144),
            (offset_of!(libc::tcp_info, tcpi_min_rtt), 148),
            (offset_of!(libc::tcp_info, tcpi_delivery_rate), 160),
            (offset_of!(libc::tcp_info, tcpi_busy_time), 168),
            (offset_of!(libc::tcp_info, tcpi_rwnd_limited), 176),
            (offset_of!(libc::tcp_info, tcpi_sndbuf_limited), 184),
        ];
        assert!(offsets.iter().all(|(theirs, ours)| theirs == ours), "{offsets:?}");
        let (mut near, mut far) = pair();
        near.write_all(&[1; 4096]).unwrap();
        assert_eq!(buffer_bytes(&near).unwrap().unread, 0);
        far.read_exact(&mut [0; 96]).unwrap();
        let buffers = buffer_bytes(&far).unwrap();
        assert_eq!(buffers.unread, 4000);
        assert!(buffers.send > 4096 && buffers.receive > 4096, "{buffers:?}");
        let facts = tcp_facts(&far).unwrap();
        assert!(facts.received == 4096 && facts.segment_bytes >= 500, "{facts:?}");
        // SAFETY: tcp_info is integers only, for which all bits zero is a value.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut bytes = size_of::<libc::tcp_info>() as libc::socklen_t;
        // SAFETY: the pointer has the bytes that `bytes` allows the kernel to write.
        let done = unsafe {
            libc::getsockopt(near.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &mut bytes)
        };
        let facts = tcp_facts(&near).unwrap();
        assert_eq!(done, 0);
        assert_eq!(facts.segments_out, info.tcpi_segs_out);
        assert_eq!(facts.congestion_window, info.tcpi_snd_cwnd);
        assert_eq!(facts.acknowledged, info.tcpi_bytes_acked);
    }

    #[test]
    fn pacing_rates_above_32_bits_are_kept() {
        let (near, _far) = pair();
        for rate in [1_000_000, u64::from(u32::MAX), 12_500_000_000] {
            set_pacing_rate(&near, rate).unwrap();
            assert_eq!(pacing_rate(&near), rate);
        }
    }

    #[test]
    fn segments_stay_small_in_both_directions() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let socket =
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
        set_largest_segment(&socket, 536).unwrap();
        rustix::net::connect(&socket, &address).unwrap();
        let (mut near, mut far) = (TcpStream::from(socket), listener.accept().unwrap().0);
        let before = [&near, &far].map(|side| tcp_facts(side).unwrap().segments_out);
        near.write_all(&[1; 53_600]).unwrap();
        far.read_exact(&mut [0; 53_600]).unwrap();
        far.write_all(&[1; 53_600]).unwrap();
        near.read_exact(&mut [0; 53_600]).unwrap();
        let after = [&near, &far].map(|side| tcp_facts(side).unwrap().segments_out);
        assert!(after.iter().zip(before).all(|(after, before)| after - before >= 100), "{before:?} {after:?}");
    }

    #[allow(unsafe_code)]
    fn pacing_rate(stream: &TcpStream) -> u64 {
        use std::os::fd::AsRawFd;
        let (mut rate, mut bytes) = (0u64, 8 as libc::socklen_t);
        let to = (&raw mut rate).cast();
        let (level, name) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
        // SAFETY: `to` has the eight bytes that `bytes` allows the kernel to write.
        let done = unsafe { libc::getsockopt(stream.as_raw_fd(), level, name, to, &mut bytes) };
        assert_eq!((done, bytes), (0, 8));
        rate
    }

    #[test]
    fn tcp_settings_are_unsupported_elsewhere() {
        let (near, _far) = pair();
        let error = portable::tcp_facts(near.as_fd()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }
}
