//! Network interfaces: what the kernel, the driver and the slot say of each.

use std::net::IpAddr;

use super::{HostFacts, ProcessorList};
use crate::known::{Known, Unknown};

/// What the kernel's driver of TUN says to anybody who has not set a speed: before Linux 6.2, and since.
const TUN_MEGABITS: [i64; 2] = [10, 10_000];

/// A network interface.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// Its name.
    pub name: &'a str,
    facts: HostFacts<'a>,
}

/// A network that an interface has an address in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressNetwork {
    /// The interface's address.
    pub address: IpAddr,
    length: u32,
}

impl AddressNetwork {
    /// `192.0.2.5/24`; `None` for what is no such text.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.trim().split_once('/')?;
        Some(Self { address: address.parse().ok()?, length: length.parse().ok()? })
    }

    /// Whether an address belongs to it.
    pub fn holds(&self, address: IpAddr) -> bool {
        let differs = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => u128::from(own.to_bits() ^ other.to_bits()) << 96,
            (IpAddr::V6(own), IpAddr::V6(other)) => own.to_bits() ^ other.to_bits(),
            _ => return false,
        };
        differs.leading_zeros() >= self.length
    }

    /// Whether its addresses mean something on one cable only.
    fn is_link_local(&self) -> bool {
        match self.address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        }
    }
}

/// An interrupt of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// How often it has come.
    pub count: u64,
    /// The processors that it comes to.
    pub processors: ProcessorList,
}

impl<'a> HostFacts<'a> {
    /// All interfaces.
    pub fn interfaces(&self) -> Vec<Interface<'a>> {
        // A file beside the interfaces is `bonding_masters`.
        let names = self.evidence.entries("sys/class/net/").into_iter().filter(|name| *name != "bonding_masters");
        names.map(|name| Interface { name, facts: *self }).collect()
    }

    /// The interface of this name.
    pub fn interface(&self, name: &'a str) -> Interface<'a> {
        Interface { name, facts: *self }
    }
}

impl<'a> Interface<'a> {
    /// The name of one of its files.
    pub fn file(&self, file: &str) -> String {
        format!("sys/class/net/{}/{file}", self.name)
    }

    /// The number in one of its files.
    pub fn number(&self, file: &str) -> Known<i64> {
        self.facts.number(&self.file(file))
    }

    /// The text of one of its files.
    pub fn text(&self, file: &str) -> Known<&'a str> {
        self.facts.text(&self.file(file))
    }

    /// The text of one of its files, if there is such a file.
    pub fn if_any(&self, file: &str) -> Known<Option<&'a str>> {
        self.facts.if_any(&self.file(file))
    }

    /// Bits a second.
    pub fn speed(&self) -> Known<u64> {
        let none = || Unknown(format!("{} tells no speed", self.name));
        // A virtual device says -1, or that it cannot say.
        let megabits = self.number("speed").map_err(|_| none())?;
        let is_constant = self.kind() == Ok("tun") && TUN_MEGABITS.contains(&megabits);
        u64::try_from(megabits)
            .ok()
            .filter(|speed| *speed > 0 && !is_constant)
            .map(|speed| speed.saturating_mul(1_000_000))
            .ok_or_else(none)
    }

    /// The largest packet, in bytes.
    pub fn mtu(&self) -> Known<u64> {
        self.number("mtu").map(|mtu| u64::try_from(mtu).unwrap_or(0))
    }

    /// Whether it can carry anything.
    pub fn is_up(&self) -> bool {
        // A tunnel or the like is "unknown" while it is up.
        matches!(self.text("operstate"), Ok("up" | "unknown")) && self.number("carrier") != Ok(0)
    }

    /// Whether it leads to this host itself.
    pub fn is_loopback(&self) -> bool {
        self.number("type") == Ok(772)
    }

    /// Whether a card stands behind it.
    pub fn is_hardware(&self) -> bool {
        self.text("device/driver").is_ok()
    }

    /// What it is, as `ip` has it: `veth`, `bond`, `vlan`, `ether`.
    pub fn kind(&self) -> Known<&'a str> {
        self.facts.text(&format!("link/{}", self.name))
    }

    /// Its addresses, with the lengths of their networks.
    pub fn addresses(&self) -> Vec<&'a str> {
        self.facts.text(&format!("address/{}", self.name)).map(|text| text.lines().collect()).unwrap_or_default()
    }

    /// The networks that it has addresses in, without those of one cable.
    pub fn networks(&self) -> Vec<AddressNetwork> {
        let networks = self.addresses().into_iter().filter_map(AddressNetwork::parse);
        networks.filter(|network| !network.is_link_local()).collect()
    }

    /// Its queueing disciplines, the root first: kind, and packets that it has dropped.
    pub fn disciplines(&self) -> Known<Vec<(&'a str, bool)>> {
        let text = self.facts.text(&format!("qdisc/{}", self.name))?;
        Ok(text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(kind, rest)| (kind, rest.starts_with("root")))
            .collect())
    }

    /// Its interrupts; none where nobody asked, or it has none of its own.
    pub fn interrupts(&self) -> Known<Vec<Interrupt>> {
        let name = format!("interrupts/{}", self.name);
        let text = if self.facts.evidence().get(&name).is_some() { self.facts.if_any(&name)? } else { None };
        let interrupt = |line: &str| {
            let mut words = line.split_whitespace();
            let (number, count) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            Some(Interrupt { number, count, processors: ProcessorList::parse(words.next()?)? })
        };
        Ok(text.unwrap_or_default().lines().filter_map(interrupt).collect())
    }

    /// A number that its driver tells.
    pub fn driver_number(&self, kind: &str, key: &str) -> Known<u64> {
        self.facts.line_number(&format!("ethtool/{}/{kind}", self.name), key)
    }

    /// The counters of losses that its driver tells, as far as they are not zero.
    pub fn driver_counters(&self) -> Known<Vec<(&'a str, u64)>> {
        let text = self.facts.text(&format!("ethtool/{}/counters", self.name))?;
        Ok(text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_holds_what_begins_like_its_address() {
        let holds = |network: &str, address: &str| {
            AddressNetwork::parse(network).expect("a network").holds(address.parse().expect("an address"))
        };
        assert!(holds("10.0.7.1/24", "10.0.7.200") && !holds("10.0.7.1/24", "10.0.8.1"));
        assert!(holds("10.0.7.1/0", "192.0.2.1") && !holds("10.0.7.1/32", "10.0.7.2") && !holds("10.0.7.1/24", "::"));
        assert!(holds("fd00:7::1/64", "fd00:7::2") && !holds("fd00:7::1/128", "fd00:7::2"));
        for none in ["", "10.0.7.1", "10.0.7/24", "10.0.7.1/-1"] {
            assert_eq!(AddressNetwork::parse(none), None, "{none}");
        }
    }
}
