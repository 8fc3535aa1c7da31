//! Which account of this host has made a connection to it, as the kernel's tables of connections say.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Accounts below this number are the system's own: people do not log in as a web server.
const PEOPLE_FROM: u32 = 1000;

/// Whether a connection is a listed proxy's. One from this host is only where the system's own account has made it:
/// any other account could say that it is the proxy.
pub(super) fn is_proxy(proxies: &[IpAddr], address: IpAddr, account: Option<u32>, own: u32) -> bool {
    let is_trusted = |account: u32| account < PEOPLE_FROM || account == own;
    proxies.contains(&address) && (!address.is_loopback() || account.is_some_and(is_trusted))
}

/// The account that has made a connection to this host from itself; `None` where the tables do not have it. They may be
/// long: it blocks.
pub(super) fn of_connection(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let wanted = (canonical(client), canonical(server));
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"].into_iter().find_map(|table| {
        let text = fs::read_to_string(table).ok()?;
        text.lines().find_map(|line| row(line).filter(|(ends, _)| *ends == wanted)).map(|(_, account)| account)
    })
}

/// Both ends of a row, and the account.
fn row(line: &str) -> Option<((SocketAddr, SocketAddr), u32)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (end(words.next()?)?, end(words.next()?)?);
    Some(((local, remote), words.nth(4)?.parse().ok()?))
}

/// `0100007F:1F90`: the address as numbers of 32 bits in the machine's own order.
fn end(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let number = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok();
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(number(0)?.to_ne_bytes())),
        32 => {
            let mut bytes = [0; 16];
            for (n, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&number(8 * n)?.to_ne_bytes());
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn proxy_of_this_host_is_believed_if_an_account_of_the_system_has_connected() {
        let (far, near) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([127, 0, 0, 1]));
        let is = |proxies: &[IpAddr], address, account| is_proxy(proxies, address, account, 2000);
        assert!(is(&[far], far, None) && !is(&[far], near, Some(0)));
        for (account, expected) in
            [(Some(0), true), (Some(33), true), (Some(2000), true), (Some(1000), false), (None, false)]
        {
            assert_eq!(is(&[near], near, account), expected, "{account:?}");
        }
    }

    #[test]
    fn account_of_a_connection_is_who_has_made_it() {
        for at in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(at) else { continue };
            let port = listener.local_addr().unwrap().port();
            let to = if at == "[::1]:0" { format!("[::1]:{port}") } else { format!("127.0.0.1:{port}") };
            let client = TcpStream::connect(&to).unwrap();
            let (server, peer) = listener.accept().unwrap();
            let own = rustix::process::geteuid().as_raw();
            assert_eq!(of_connection(peer, server.local_addr().unwrap()), Some(own), "{at}");
            drop(client);
        }
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; read -u 3");
        let mut other = Command::new("bash").args(["-c", &script]).uid(12_345).stdin(Stdio::null()).spawn().unwrap();
        let (server, peer) = listener.accept().unwrap();
        assert_eq!(of_connection(peer, server.local_addr().unwrap()), Some(12_345));
        drop(server);
        other.wait().unwrap();
    }
}
