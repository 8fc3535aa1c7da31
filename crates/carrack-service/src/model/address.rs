//! Addresses that only this host reaches.

use std::net::IpAddr;

/// Loopback, link-local (there are the clouds' services of secrets), nowhere, and everywhere.
pub fn is_of_this_host(address: IpAddr) -> bool {
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
        ] {
            assert!(is_of_this_host(address.parse::<IpAddr>().unwrap().to_canonical()), "{address}");
        }
        for address in ["192.0.2.1", "10.0.0.1", "2001:db8::1", "fec0::1", "::ffff:10.0.0.1"] {
            assert!(!is_of_this_host(address.parse::<IpAddr>().unwrap().to_canonical()), "{address}");
        }
    }
}
