//! Opening ports: on IPv6 and IPv4 together where the host has both.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use socket2::{Domain, Socket as RawSocket, Type};

/// Binds the first free port of a range (or any): on `local` alone, or on IPv6 and IPv4 together
/// where the host has both.
///
/// # Errors
/// That of the last port tried.
pub fn bind(local: Option<IpAddr>, ports: Option<(u16, u16)>) -> io::Result<TcpListener> {
    let (low, high) = ports.unwrap_or((0, 0));
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for port in low..=high {
        match bind_port(local, port) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn bind_port(local: Option<IpAddr>, port: u16) -> io::Result<TcpListener> {
    if let Some(local) = local {
        return bind_address(SocketAddr::new(local, port));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn bind_to_one_address_accepts_on_no_other() {
        let local = IpAddr::from([127, 0, 0, 2]);
        let listener = bind(Some(local), None).unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(address.ip(), local);
        TcpStream::connect(address).unwrap();
        let elsewhere = TcpStream::connect((Ipv4Addr::LOCALHOST, address.port()));
        assert_eq!(elsewhere.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        // An address for documents, which no host has.
        assert_eq!(bind(Some(IpAddr::from([192, 0, 2, 1])), None).unwrap_err().kind(), io::ErrorKind::AddrNotAvailable);
    }
}
