//! The way that data to the other host would take from this one.

use super::HostFacts;
use super::interface::Interface;
use crate::known::{Known, Unknown};

/// Interfaces that are looked at below one.
const CARRIERS: usize = 64;

/// A route to one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route<'a> {
    /// The address that it leads to.
    pub to: &'a str,
    /// The interface.
    pub device: &'a str,
    /// The next router; `None` where the address is on the interface's own network.
    pub via: Option<&'a str>,
    /// The address of this host that packets have.
    pub source: Option<&'a str>,
    /// The largest packet that the route is known to take, where it is less than the interface's.
    pub mtu: Option<u64>,
}

impl<'a> HostFacts<'a> {
    /// The route to the other host: the one that was asked for.
    pub fn route(&self) -> Known<Route<'a>> {
        let (to, _) =
            self.evidence.below("route/").next().ok_or_else(|| Unknown("no other host was named".to_owned()))?;
        let text = self.text(&format!("route/{to}"))?;
        let value = |key: &str| {
            let mut words = text.split_whitespace().skip_while(|word| *word != key);
            words.next().and_then(|_| words.next())
        };
        let device = value("dev").ok_or_else(|| Unknown(format!("the route to {to} names no interface")))?;
        let mtu = value("mtu").and_then(|word| word.parse().ok());
        Ok(Route { to, device, via: value("via"), source: value("src"), mtu })
    }

    /// The address that a route was asked for, and what the kernel answered, if it has none.
    pub fn missing_route(&self) -> Option<(&'a str, &'a str)> {
        self.evidence.below("route/").find_map(|(to, text)| match text {
            carrack_core::evidence::EvidenceText::Failed(why) => Some((to, why.as_str())),
            _ => None,
        })
    }

    /// The same facts, of which this interface counts as the carrier.
    pub fn on(self, interface: &'a str) -> Self {
        Self { on: Some(interface), ..self }
    }

    /// The carrier and all that it is put together from: the bond below a VLAN, the links of a bond.
    pub fn carriers(&self) -> Known<Vec<&'a str>> {
        let mut names = vec![self.carrier()?.name];
        let mut at = 0;
        while at < names.len() {
            // Hosts of an older Carrack tell of bonds alone.
            let below = self.text(&format!("lower/{}", names[at]));
            let below = below.or_else(|_| self.interface(names[at]).text("bonding/slaves")).unwrap_or_default();
            for name in below.split_whitespace() {
                if names.len() < CARRIERS && !names.contains(&name) {
                    names.push(name);
                }
            }
            at += 1;
        }
        Ok(names)
    }

    /// The interface that carries data to the other host; where no other host is known, the fastest that is up.
    pub fn carrier(&self) -> Known<Interface<'a>> {
        if let Some(name) = self.on {
            return Ok(self.interface(name));
        }
        match self.route() {
            Ok(route) => Ok(self.interface(route.device)),
            Err(_) if self.evidence.below("route/").next().is_none() => {
                let fastest = self.interfaces().into_iter().filter(|one| one.is_up() && !one.is_loopback());
                // Links to containers say 10 Gb/s, and so do bridges of them.
                let leads_out = |one: &Interface<'_>| !matches!(one.kind(), Ok("veth" | "bridge"));
                let fastest = fastest.max_by_key(|one| (leads_out(one), one.speed().unwrap_or(0)));
                fastest.ok_or_else(|| match self.interfaces().is_empty() {
                    true => Unknown("this host shows no interfaces (/sys/class/net)".to_owned()),
                    false => Unknown("no interface is up".to_owned()),
                })
            }
            Err(why) => Err(why),
        }
    }
}
