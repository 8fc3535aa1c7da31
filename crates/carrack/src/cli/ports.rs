//! Ranges of TCP ports, and addresses to listen on.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use carrack_core::location::{DEFAULT_PORT, parse_port};

/// Parses `LO-HI`, both included, or a single port.
pub fn parse_ports(text: &str) -> Result<(u16, u16), String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (parse_port(low), parse_port(high)) {
        (Some(low), Some(high)) if 0 < low && low <= high => Ok((low, high)),
        _ => Err(format!("{text:?} is not a range of ports: use LO-HI, like 50000-50100")),
    }
}

/// Parses where to listen: `ADDR:PORT`, `[V6]:PORT`, `ADDR`, `:PORT` or `PORT`; port 0 lets the kernel choose.
pub fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let every = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, DEFAULT_PORT));
    }
    let port = text.strip_prefix("*:").or_else(|| text.strip_prefix(':')).unwrap_or(text);
    parse_port(port)
        .map(|port| SocketAddr::new(every, port))
        .ok_or_else(|| format!("{text:?} is not an address to listen on: use a numeric ADDR:PORT, like [::]:7420"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports() {
        let good = [("50000-50100", (50000, 50100)), ("7420", (7420, 7420)), ("1-65535", (1, 65535))];
        for (text, range) in good {
            assert_eq!(parse_ports(text), Ok(range), "{text}");
        }
        for text in ["", "-", "0", "0-5", "5-", "-5", "10-5", "1-65536", "+1-5", "1--5", "a-b", "1 - 5", "1:5"] {
            assert!(parse_ports(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn listen() {
        let good = [
            ("[::]:7420", "[::]:7420"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("10.0.0.1", "10.0.0.1:7420"),
            ("::1", "[::1]:7420"),
            ("[::1]", "[::1]:7420"),
            (":9000", "[::]:9000"),
            ("*:9000", "[::]:9000"),
            ("9000", "[::]:9000"),
        ];
        for (text, address) in good {
            assert_eq!(parse_listen(text).map(|parsed| parsed.to_string()), Ok(address.to_owned()), "{text}");
        }
        for text in ["", ":", "*", "localhost:1", "1.2.3.4:70000", "[::1", "-1", "+5", "http://x"] {
            assert!(parse_listen(text).is_err(), "{text:?}");
        }
    }
}
