//! Opening ports: on IPv6 and IPv4 together where the host has both.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use socket2::{Domain, Socket as RawSocket, Type};

/// Binds the first free port of a range (or any), on IPv6 and IPv4 together where the host has both.
///
/// # Errors
/// That of the last port tried.
pub fn bind(ports: Option<(u16, u16)>) -> io::Result<TcpListener> {
    let (low, high) = ports.unwrap_or((0, 0));
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for port in low..=high {
        match bind_port(port) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn bind_port(port: u16) -> io::Result<TcpListener> {
    bind_address(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))
        .or_else(|_| bind_address(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))))
}

/// Binds one address; an unspecified IPv6 one takes IPv4 too.
///
/// # Errors
/// Those of the system calls.
pub fn bind_address(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = RawSocket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    // As many as may come at once after a pause of ours; the kernel caps it at its own maximum.
    socket.listen(4096)?;
    Ok(socket.into())
}
