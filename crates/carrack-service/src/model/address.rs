//! Addresses of this host, and addresses that only this host reaches.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Loopback, link-local (there are the clouds' services of secrets), nowhere, everywhere, and whatever address this
/// host has itself; also where one stands in an address of the other family.
pub fn is_of_this_host(address: IpAddr) -> bool {
    is_near(address, &|address| UdpSocket::bind((address, 0)).is_ok())
}

/// `is_own`: whether this host has the address.
fn is_near(address: IpAddr, is_own: &dyn Fn(IpAddr) -> bool) -> bool {
    let address = address.to_canonical();
    is_special(address) || is_own(address) || translated(address).is_some_and(|inner| is_near(inner.into(), is_own))
}

/// The IPv4 address that a translator or a tunnel makes of an IPv6 address: NAT64 (RFC 6052 and 8215), 6to4 (RFC 3056),
/// and the compatible form of old.
fn translated(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let of = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 1, _, _, _, high, low] | [0x2002, high, low, ..] => {
            Some(of(high, low))
        }
        [0, 0, 0, 0, 0, 0, high, low] if address != Ipv6Addr::UNSPECIFIED && address != Ipv6Addr::LOCALHOST => {
            Some(of(high, low))
        }
        _ => None,
    }
}

fn is_special(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_loopback()
                || address.is_link_local()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_broadcast()
                || address.octets()[0] == 0
        }
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unspecified()
                || address.is_multicast()
                || address.segments()[0] & 0xffc0 == 0xfe80
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_host_are_known_in_every_form() {
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "255.255.255.255",
            "224.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "febf::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:7f00:1",
            "::ffff:169.254.169.254",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::127.0.0.1",
            "64:ff9b:1:2:3:4:7f00:1",
            "2002:7f00:1::1",
            "::127.0.0.1",
            // What it has itself.
            "198.51.100.7",
            "::ffff:198.51.100.7",
            "64:ff9b::198.51.100.7",
            "2002:c633:6407::",
            "2001:db8::7",
        ] {
            assert!(near(address), "{address}");
        }
        for address in
            ["192.0.2.1", "10.0.0.1", "2001:db8::1", "fec0::1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "2002:a00:1::1"]
        {
            assert!(!near(address), "{address}");
        }
        assert!(is_of_this_host("127.0.0.1".parse().unwrap()) && !is_of_this_host("192.0.2.1".parse().unwrap()));
    }

    /// Of a host with an address of each family.
    fn near(address: &str) -> bool {
        let own: [IpAddr; 2] = ["198.51.100.7", "2001:db8::7"].map(|own| own.parse().unwrap());
        is_near(address.parse().unwrap(), &|address| own.contains(&address))
    }
}
