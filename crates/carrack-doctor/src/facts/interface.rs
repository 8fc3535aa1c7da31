//! Network interfaces: what the kernel, the driver and the slot say of each.

use super::{HostFacts, ProcessorList};
use crate::known::{Known, Unknown};

/// A network interface.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// Its name.
    pub name: &'a str,
    facts: HostFacts<'a>,
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
        u64::try_from(megabits)
            .ok()
            .filter(|speed| *speed > 0)
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
