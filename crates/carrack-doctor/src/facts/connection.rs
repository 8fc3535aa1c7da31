//! The data connections that were made to look at: what both sides agreed on, and the first packet as it came.

use super::HostFacts;
use crate::known::{Known, Unknown};

/// What TCP says of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// Timestamps are in use.
    pub timestamps: bool,
    /// Selective acknowledgements are in use.
    pub sack: bool,
    /// Window scaling is in use.
    pub scaling: bool,
    /// The segment that this side has announced.
    pub advertised_mss: u64,
}

/// What the first packet of a connection asked for, as it came to the listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syn {
    /// The largest segment.
    pub mss: Option<u16>,
    /// Window scaling.
    pub scale: Option<u8>,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
}

impl HostFacts<'_> {
    /// The connection that this host has dialled, and the one that it has accepted, by their first packet.
    fn connection(&self, accepted: bool) -> Known<String> {
        let entries = self.evidence().entries("connection/");
        let found = entries.iter().map(|number| format!("connection/{number}")).find(|name| {
            self.text(&format!("{name}/tcp")).is_ok() && self.text(&format!("{name}/syn")).is_ok() == accepted
        });
        found.ok_or_else(|| Unknown("there was no data connection that way".to_owned()))
    }

    /// What was agreed on for the connection that this host has dialled.
    pub fn dialled(&self) -> Known<Agreed> {
        let name = format!("{}/tcp", self.connection(false)?);
        let is = |key: &str| self.line_number(&name, key).map(|value| value != 0);
        Ok(Agreed {
            timestamps: is("timestamps")?,
            sack: is("sack")?,
            scaling: is("scaling")?,
            advertised_mss: self.line_number(&name, "advertised-mss")?,
        })
    }

    /// The first packet of the connection that this host has accepted.
    pub fn accepted_syn(&self) -> Known<Syn> {
        let name = format!("{}/syn", self.connection(true)?);
        Syn::parse(self.text(&name)?).ok_or_else(|| Unknown("the first packet cannot be read".to_owned()))
    }

    /// The congestion control of the connection that this host has dialled, or else of the one that it has accepted.
    pub fn congestion_used(&self) -> Known<&str> {
        let name = self.connection(false).or_else(|_| self.connection(true))?;
        self.line(&format!("{name}/tcp"), "congestion")
    }
}

impl Syn {
    /// Headers of IP and TCP, in hexadecimal.
    fn parse(hex: &str) -> Option<Self> {
        let bytes: Option<Vec<u8>> =
            hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
        let bytes = bytes?;
        let ip_bytes = match bytes.first()? >> 4 {
            4 => 4 * usize::from(bytes[0] & 0xf),
            6 => 40,
            _ => return None,
        };
        let tcp = bytes.get(ip_bytes..)?;
        let mut options = tcp.get(20..4 * usize::from(tcp.get(12)? >> 4))?;
        let mut syn = Self::default();
        while let Some((&kind, rest)) = options.split_first() {
            // The end, and a gap.
            match kind {
                0 => break,
                1 => {
                    options = rest;
                    continue;
                }
                _ => {}
            }
            let length = usize::from(*rest.first()?);
            let value = options.get(2..length)?;
            match (kind, value) {
                (2, [high, low]) => syn.mss = Some(u16::from_be_bytes([*high, *low])),
                (3, [scale]) => syn.scale = Some(*scale),
                (4, _) => syn.sack = true,
                (8, _) => syn.timestamps = true,
                _ => {}
            }
            options = options.get(length..)?;
        }
        Some(syn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A SYN of Linux as tcpdump prints it: mss 1460, sackOK, TS, nop, wscale 7; and the same behind a device that has
    /// put gaps in the place of what it does not know.
    #[test]
    fn first_packet_tells_its_options() {
        let ip = "4500003c1c4640004006b1e6ac10000aac10000b";
        let tcp = "c5e4005036a1c8d700000000a002faf0fe300000";
        let whole = format!("{ip}{tcp}020405b40402080a0a1b2c3d0000000001030307");
        let syn = Syn { mss: Some(1460), scale: Some(7), sack: true, timestamps: true };
        assert_eq!(Syn::parse(&whole), Some(syn));
        let altered = format!("{ip}{tcp}020405b4{}", "01".repeat(16));
        assert_eq!(Syn::parse(&altered), Some(Syn { mss: Some(1460), ..Syn::default() }));
        let six = format!("6000000000280640{}{tcp}020405a00402080a0a1b2c3d0000000001030307", "00".repeat(32));
        assert_eq!(Syn::parse(&six).and_then(|syn| syn.mss), Some(1440));
        for wrong in ["", "45", "zz", &whole[..60], &format!("{ip}{tcp}0200{}", "01".repeat(18))] {
            assert_eq!(Syn::parse(wrong), None, "{wrong}");
        }
    }
}
