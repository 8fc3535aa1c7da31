//! What only rtnetlink tells: the route to an address, the queueing discipline of each interface, its addresses and its
//! kind. Each answer is put into words, as `ip` and `tc` have them.

use super::{About, Gatherer};

#[cfg(not(target_os = "linux"))]
pub(super) fn gather(_: &mut Gatherer, _: About<'_>) {}

#[cfg(target_os = "linux")]
pub(super) use self::linux::gather;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;
    use std::fs::File;
    use std::io::{self, Read, Write as _};
    use std::net::IpAddr;

    use super::super::FactText;
    use super::{About, Gatherer};

    /// Messages of rtnetlink (linux/rtnetlink.h).
    const GET_LINK: u16 = 18;
    const GET_ADDRESS: u16 = 22;
    const GET_ROUTE: u16 = 26;
    const GET_QDISC: u16 = 38;
    const ERROR: u16 = 2;
    const DONE: u16 = 3;
    const REQUEST: u16 = 1;
    const DUMP: u16 = 0x300;
    const HEADER_BYTES: usize = 16;
    /// A dump of one kind that is longer is cut off.
    const DUMP_BYTES: usize = 4 << 20;
    const MESSAGE_BYTES: usize = 64 << 10;
    /// The root of an interface's queueing disciplines.
    const ROOT: u32 = u32::MAX;

    pub(in super::super) fn gather(facts: &mut Gatherer, about: About<'_>) {
        let links = match links() {
            Ok(links) => links,
            Err(error) => return facts.put("netlink", error),
        };
        // Before what there may be much of.
        if let Some(peer) = about.peer {
            let route: FactText = match route(peer.to_canonical(), &links) {
                // The words of an unreachable host are the finding itself.
                Err(error) => FactText::Failed(error.to_string()),
                found => found.into(),
            };
            facts.put(format!("route/{peer}"), route);
        }
        for link in links.values() {
            facts.put(format!("link/{}", link.name), FactText::Found(link.kind.clone()));
        }
        match addresses(&links) {
            Ok(found) => {
                found.into_iter().for_each(|(name, text)| facts.put(format!("address/{name}"), FactText::Found(text)))
            }
            Err(error) => facts.put("address", error),
        }
        match disciplines(&links) {
            Ok(found) => {
                found.into_iter().for_each(|(name, text)| facts.put(format!("qdisc/{name}"), FactText::Found(text)))
            }
            Err(error) => facts.put("qdisc", error),
        }
    }

    /// An interface.
    struct NetworkLink {
        name: String,
        /// `veth`, `bond`, `vlan`; `ether` of hardware, `loopback`.
        kind: String,
    }

    /// Numbers of interfaces, and what they are.
    type Links = BTreeMap<u32, NetworkLink>;

    fn links() -> io::Result<Links> {
        let mut links = Links::new();
        dump(GET_LINK, &[0; 16], |body| {
            let (Some(hardware), Some(index)) = (number16(body, 2), number32(body, 4)) else { return };
            let mut name = String::new();
            let mut kind = if hardware == 772 { "loopback" } else { "ether" }.to_owned();
            for (number, value) in attributes(body.get(16..).unwrap_or_default()) {
                match number {
                    // IFLA_IFNAME
                    3 => name = text(value),
                    // IFLA_LINKINFO, and in it IFLA_INFO_KIND
                    18 => {
                        kind = attributes(value).find(|(inner, _)| *inner == 1).map_or(kind, |(_, value)| text(value))
                    }
                    _ => {}
                }
            }
            links.insert(index, NetworkLink { name, kind });
        })?;
        Ok(links)
    }

    /// For each interface its addresses with the lengths of their networks, a line each.
    fn addresses(links: &Links) -> io::Result<BTreeMap<String, String>> {
        let mut found: BTreeMap<String, String> = BTreeMap::new();
        dump(GET_ADDRESS, &[0; 8], |body| {
            let (Some(length), Some(index)) = (body.get(1), number32(body, 4)) else { return };
            let Some(link) = links.get(&index) else { return };
            let mut address = None;
            for (number, value) in attributes(body.get(8..).unwrap_or_default()) {
                // IFA_LOCAL goes before IFA_ADDRESS, which is the other side of a link between two.
                if number == 2 || (number == 1 && address.is_none()) {
                    address = ip(value);
                }
            }
            if let Some(address) = address {
                let _ = writeln!(found.entry(link.name.clone()).or_default(), "{address}/{length}");
            }
        })?;
        Ok(found)
    }

    /// For each interface its queueing disciplines, a line each: `fq root drops 0`.
    fn disciplines(links: &Links) -> io::Result<BTreeMap<String, String>> {
        let mut found: BTreeMap<String, String> = BTreeMap::new();
        dump(GET_QDISC, &[0; 20], |body| {
            let (Some(index), Some(parent)) = (number32(body, 4), number32(body, 12)) else { return };
            let Some(link) = links.get(&index) else { return };
            let (mut kind, mut drops) = (String::new(), None);
            for (number, value) in attributes(body.get(20..).unwrap_or_default()) {
                match number {
                    // TCA_KIND
                    1 => kind = text(value),
                    // TCA_STATS2, and in it TCA_STATS_QUEUE: length, backlog, drops
                    7 => {
                        drops =
                            attributes(value).find(|(inner, _)| *inner == 3).and_then(|(_, queue)| number32(queue, 8))
                    }
                    _ => {}
                }
            }
            let place = if parent == ROOT { "root".to_owned() } else { format!("parent {parent:x}") };
            let drops = drops.map(|drops| format!(" drops {drops}")).unwrap_or_default();
            let _ = writeln!(found.entry(link.name.clone()).or_default(), "{kind} {place}{drops}");
        })?;
        Ok(found)
    }

    /// The way to an address: `dev eth0 src 10.0.0.1 via 10.0.0.254 mtu 1500`.
    fn route(to: IpAddr, links: &Links) -> io::Result<String> {
        let (family, bytes) = match to {
            IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
            IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
        };
        let mut body = vec![0; 12];
        body[0] = u8::try_from(family).unwrap_or(0);
        body[1] = u8::try_from(8 * bytes.len()).unwrap_or(0);
        // RTA_DST
        body.extend(u16::try_from(4 + bytes.len()).unwrap_or(0).to_ne_bytes());
        body.extend(1u16.to_ne_bytes());
        body.extend(&bytes);
        let mut told = String::new();
        ask(GET_ROUTE, REQUEST, &body, |body| told = route_words(body, links))?;
        Ok(told)
    }

    fn route_words(body: &[u8], links: &Links) -> String {
        let mut words = Vec::new();
        for (number, value) in attributes(body.get(12..).unwrap_or_default()) {
            match number {
                4 => words.extend(
                    number32(value, 0).and_then(|index| links.get(&index)).map(|link| format!("dev {}", link.name)),
                ),
                5 => words.extend(ip(value).map(|gateway| format!("via {gateway}"))),
                7 => words.extend(ip(value).map(|source| format!("src {source}"))),
                // RTA_METRICS
                8 => {
                    for (metric, value) in attributes(value) {
                        let name = match metric {
                            2 => "mtu",
                            3 => "window",
                            8 => "advmss",
                            11 => "initcwnd",
                            14 => "initrwnd",
                            _ => continue,
                        };
                        words.extend(number32(value, 0).map(|value| format!("{name} {value}")));
                    }
                }
                _ => {}
            }
        }
        words.join(" ")
    }

    fn dump(kind: u16, body: &[u8], each: impl FnMut(&[u8])) -> io::Result<()> {
        ask(kind, REQUEST | DUMP, body, each)
    }

    /// Sends one request, and hands out the body of each message of the answer.
    fn ask(kind: u16, flags: u16, body: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<()> {
        use rustix::net::{AddressFamily, SocketFlags, SocketType};
        // For rtnetlink no protocol is named.
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let mut socket = File::from(socket);
        let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(u32::MAX);
        let mut message = Vec::with_capacity(HEADER_BYTES + body.len());
        message.extend(length.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend(1u32.to_ne_bytes());
        message.extend(0u32.to_ne_bytes());
        message.extend(body);
        socket.write_all(&message)?;
        let (mut buffer, mut taken) = (vec![0; MESSAGE_BYTES], 0);
        loop {
            let length = socket.read(&mut buffer)?;
            taken += length;
            let mut rest = &buffer[..length];
            while let (Some(whole), Some(kind)) = (number32(rest, 0), number16(rest, 4)) {
                let whole = usize::try_from(whole).unwrap_or(usize::MAX);
                let Some(body) = rest.get(HEADER_BYTES..whole) else { break };
                match kind {
                    DONE => return Ok(()),
                    ERROR => {
                        let number = number32(body, 0).unwrap_or(0).cast_signed();
                        return if number == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-number)) };
                    }
                    _ => each(body),
                }
                rest = rest.get(whole.next_multiple_of(4)..).unwrap_or_default();
            }
            // What is no dump is one message.
            if flags & DUMP == 0 || length == 0 || taken > DUMP_BYTES {
                return Ok(());
            }
        }
    }

    /// The attributes of a message: numbers and values. Bytes that are none end them.
    fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
        std::iter::from_fn(move || {
            let length = usize::from(number16(rest, 0)?);
            // NLA_F_NESTED and NLA_F_NET_BYTEORDER are flags of the number.
            let number = number16(rest, 2)? & 0x3fff;
            let value = rest.get(4..length)?;
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            Some((number, value))
        })
    }

    fn number16(bytes: &[u8], at: usize) -> Option<u16> {
        Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
    }

    fn number32(bytes: &[u8], at: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
    }

    fn ip(bytes: &[u8]) -> Option<IpAddr> {
        <[u8; 4]>::try_from(bytes).map(IpAddr::from).or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn attributes_end_where_the_bytes_are_none() {
            let bytes = [8, 0, 4, 0x80, 1, 0, 0, 0, 6, 0, 3, 0, b'l', b'o', 0, 0, 200, 0, 1, 0, 7];
            let found: Vec<(u16, &[u8])> = attributes(&bytes).collect();
            assert_eq!(found, [(4, &[1, 0, 0, 0][..]), (3, b"lo")]);
            assert_eq!(attributes(&[0; 8]).count(), 0);
        }

        #[test]
        fn unreachable_address_has_no_route() {
            let links = links().unwrap();
            assert!(links.values().any(|link| link.name == "lo" && link.kind == "loopback"));
            // 0.0.0.0/8 beyond the first address is nowhere.
            assert!(
                route([240, 0, 0, 1].into(), &links).is_err()
                    || !route([127, 0, 0, 1].into(), &links).unwrap().is_empty()
            );
        }
    }
}
