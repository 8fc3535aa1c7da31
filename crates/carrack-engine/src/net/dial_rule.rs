//! Where a node dials for its clients. A client names the address of the other end, and so could have the node knock at
//! what only the node can reach: services of its own host, and of networks behind it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use carrack_core::report::Reason;

/// Networks that a node may dial whatever else holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// From `ADDRESS/BITS`, or an address.
    ///
    /// # Errors
    /// Why it is none, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is not a network: use ADDRESS/BITS, like 10.1.0.0/16 or fd00::/8");
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let digits = |bits: &str| !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits =
            bits.map_or(Some(most), |bits| bits.parse().ok().filter(|_| digits(bits)).filter(|&bits| bits <= most));
        Ok(Self { address, bits: bits.ok_or_else(bad)? })
    }

    fn contains(&self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, width: u32| (a ^ b).checked_shr(width - u32::from(self.bits)).unwrap_or(0) == 0;
        match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

/// What a node dials.
#[derive(Clone, Debug)]
pub struct DialRule {
    /// The address that the node listens on.
    pub listens: SocketAddr,
    /// Only the host that asks, because anybody may ask (`--anonymous`), or because nothing is to
    /// change by it (`--read-only`).
    pub only_who_asks: bool,
    /// What it was told to (`--dial-to`).
    pub told: Vec<Network>,
}

/// Why a node does not dial an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is this host's, or this link's.
    TooNear,
    /// Only the host that asks would be dialled.
    Stranger,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooNear => "this node does not dial loopback, link-local or its own addresses",
            Self::Stranger => "this node is anonymous or read-only, and dials only the host that asks",
        })
    }
}

impl std::error::Error for Refused {}

impl Refused {
    /// The reason of the failure that this becomes.
    pub fn reason(self) -> Reason {
        match self {
            Self::TooNear => Reason::DialsNoOwnAddress,
            Self::Stranger => Reason::DialsOnlyAsker,
        }
    }
}

impl DialRule {
    /// Whether to dial an address, for a client whose control connection comes from `asks`.
    ///
    /// # Errors
    /// [`Refused`], which says why the address is not dialled.
    pub fn check(&self, address: SocketAddr, asks: Option<IpAddr>) -> Result<(), Refused> {
        let ip = address.ip().to_canonical();
        let listens = self.listens.ip().to_canonical();
        if self.told.iter().any(|network| network.contains(ip)) {
            return Ok(());
        }
        let own = is_own(ip);
        // Its own port is its own business: a copy from this node to this node.
        let itself = own && address.port() == self.listens.port();
        let as_near = (listens.is_loopback() && ip.is_loopback())
            || (is_link_local(listens) && is_link_local(ip))
            || (!listens.is_unspecified() && listens == ip);
        if (own || ip.is_loopback() || is_link_local(ip) || is_nowhere(ip)) && !as_near && !itself {
            return Err(Refused::TooNear);
        }
        if self.only_who_asks && !itself && asks.map(|asks| asks.to_canonical()) != Some(ip) {
            return Err(Refused::Stranger);
        }
        Ok(())
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// "Here", "everybody", and groups.
fn is_nowhere(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[0] == 0 || ip.is_broadcast() || ip.is_multicast(),
        IpAddr::V6(ip) => ip.is_unspecified() || ip.is_multicast(),
    }
}

/// Whether an address is one of this host's: to those the system sends from themselves. No packet goes out.
fn is_own(ip: IpAddr) -> bool {
    let any: IpAddr = if ip.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((ip, 9))?;
        socket.local_addr()
    });
    ip.is_loopback() || from.is_ok_and(|from| from.ip() == ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(listens: &str) -> DialRule {
        DialRule { listens: listens.parse().unwrap(), only_who_asks: false, told: Vec::new() }
    }

    fn check(rule: &DialRule, address: &str) -> Result<(), Refused> {
        rule.check(address.parse().unwrap(), Some("192.0.2.9".parse().unwrap()))
    }

    #[test]
    fn node_dials_far_and_not_near() {
        let everywhere = rule("[::]:7420");
        for far in ["192.0.2.1:22", "[2001:db8::1]:80", "10.0.0.1:443"] {
            assert_eq!(check(&everywhere, far), Ok(()), "{far}");
        }
        for near in [
            "127.0.0.1:6379",
            "127.9.9.9:22",
            "[::1]:6379",
            "[::ffff:127.0.0.1]:6379",
            "169.254.169.254:80",
            "[fe80::1]:80",
            "0.0.0.0:6379",
            "0.1.2.3:1",
            "[::]:6379",
            "255.255.255.255:9",
            "224.0.0.1:9",
            "[ff02::1]:9",
        ] {
            assert_eq!(check(&everywhere, near), Err(Refused::TooNear), "{near}");
        }
        // Its own port is served by itself.
        assert_eq!(check(&everywhere, "127.0.0.1:7420"), Ok(()));
    }

    #[test]
    fn node_that_listens_near_dials_near() {
        let loopback = rule("127.0.0.1:7420");
        assert_eq!(check(&loopback, "127.0.0.2:5000"), Ok(()));
        assert_eq!(check(&loopback, "[::ffff:127.0.0.1]:5000"), Ok(()));
        assert_eq!(check(&loopback, "169.254.169.254:80"), Err(Refused::TooNear));
        assert_eq!(check(&rule("[fe80::2]:7420"), "[fe80::1]:5000"), Ok(()));
        assert_eq!(check(&rule("[fe80::2]:7420"), "[::1]:5000"), Err(Refused::TooNear));
    }

    #[test]
    fn dial_rule_of_whoever_runs_the_node_has_the_last_word() {
        let mut told = rule("[::]:7420");
        told.told = ["127.0.0.0/8", "169.254.1.0/24", "fe80::/10"].map(|text| Network::parse(text).unwrap()).to_vec();
        for near in ["127.0.0.1:6379", "169.254.1.7:80", "[fe80::1]:80"] {
            assert_eq!(check(&told, near), Ok(()), "{near}");
        }
        assert_eq!(check(&told, "169.254.169.254:80"), Err(Refused::TooNear));
    }

    #[test]
    fn anonymous_node_dials_only_who_asks() {
        let mut anonymous = rule("[::]:7420");
        anonymous.only_who_asks = true;
        assert_eq!(check(&anonymous, "192.0.2.9:5000"), Ok(()));
        assert_eq!(check(&anonymous, "[::ffff:192.0.2.9]:5000"), Ok(()));
        assert_eq!(check(&anonymous, "192.0.2.10:5000"), Err(Refused::Stranger));
        assert_eq!(anonymous.check("192.0.2.9:5000".parse().unwrap(), None), Err(Refused::Stranger));
        anonymous.told = vec![Network::parse("192.0.2.0/24").unwrap()];
        assert_eq!(check(&anonymous, "192.0.2.10:5000"), Ok(()));
    }

    #[test]
    fn networks_are_parsed() {
        for (text, inside, outside) in [
            ("10.1.0.0/16", "10.1.255.255", "10.2.0.0"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::1", "::1", "::2"),
            ("0.0.0.0/0", "255.1.2.3", "::1"),
        ] {
            let network = Network::parse(text).unwrap();
            assert!(network.contains(inside.parse().unwrap()) && !network.contains(outside.parse().unwrap()), "{text}");
        }
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.0/-1",
            "host",
            "host/8",
            "/8",
            "1.2.3.4/8/8",
        ] {
            assert!(Network::parse(text).is_err(), "{text:?}");
        }
    }
}
