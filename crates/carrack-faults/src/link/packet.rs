//! What a packet of a TUN device looks like on the wire, and how a large one is cut.
//!
//! The kernel hands over *super-packets*: up to 64 KiB of one TCP connection, one IP and one TCP header, and in the
//! `virtio_net_hdr` before them the size of the segments that a network card would make of it. Faults happen to
//! segments, so a super-packet that loses one leaves as the runs around it. Checksums of the payload are never
//! computed here: who receives takes them for checked by its device, as they were left to ours. That is also why an
//! altered payload is not noticed.

use carrack_sys::tun::HEADER_BYTES;

/// The most that a device hands over at once, with the header before it.
pub const PACKET_BYTES_MAX: usize = HEADER_BYTES + (64 << 10);

const TCP: u8 = 6;
const UDP: u8 = 17;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

// Of the virtio_net_hdr, whose fields are in the host's order.
const NEEDS_CHECKSUM: u8 = 1;
const GSO_TYPE: usize = 1;
const GSO_SIZE: usize = 4;

/// Where the parts of a packet are, in bytes from the beginning of its IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The transport's header begins.
    transport: usize,
    /// The payload begins.
    headers: usize,
    payload: usize,
    /// Payload of each segment but the last.
    segment: usize,
    /// How many packets it is on the wire.
    pub segments: usize,
    protocol: u8,
    is_v6: bool,
    /// Nobody has computed its checksum, and nobody will check it.
    unchecked: bool,
}

impl Shape {
    /// `None` for what is no IP packet.
    pub fn of(packet: &[u8]) -> Option<Self> {
        let (header, ip) = packet.split_at_checked(HEADER_BYTES)?;
        let (is_v6, transport, protocol) = match ip.first()? >> 4 {
            4 => (false, usize::from(ip[0] & 15) * 4, *ip.get(9)?),
            6 => (true, 40, *ip.get(6)?),
            _ => return None,
        };
        let headers = match protocol {
            TCP => transport + usize::from(ip.get(transport + 12)? >> 4) * 4,
            UDP => transport + 8,
            _ => transport,
        };
        let payload = ip.len().checked_sub(headers)?;
        let unchecked = header[0] & NEEDS_CHECKSUM != 0;
        let size = usize::from(u16::from_ne_bytes([header[GSO_SIZE], header[GSO_SIZE + 1]]));
        let is_large = header[GSO_TYPE] != 0 && protocol == TCP && (1..payload).contains(&size);
        let (segment, segments) = if is_large { (size, payload.div_ceil(size)) } else { (payload, 1) };
        Some(Self { transport, headers, payload, segment, segments, protocol, is_v6, unchecked })
    }

    /// Tells connections between two hosts apart: both ports.
    pub fn flow(&self, packet: &[u8]) -> u32 {
        let ports = packet.get(HEADER_BYTES + self.transport..).and_then(|transport| transport.first_chunk());
        if matches!(self.protocol, TCP | UDP) { ports.copied().map_or(0, u32::from_be_bytes) } else { 0 }
    }

    /// The payload of a run of segments, in bytes from its beginning.
    fn payload(&self, from: usize, to: usize) -> std::ops::Range<usize> {
        from * self.segment..(to * self.segment).min(self.payload)
    }

    /// Bytes of one segment as an IP packet.
    pub fn wire_bytes(&self, segment: usize) -> usize {
        self.headers + self.payload(segment, segment + 1).len()
    }

    /// Where in the packet (its `virtio_net_hdr` included) a segment's payload is, if it can be
    /// altered and nobody notices.
    pub fn alterable(&self, segment: usize) -> Option<std::ops::Range<usize>> {
        let payload = self.payload(segment, segment + 1);
        let before = HEADER_BYTES + self.headers;
        (self.unchecked && !payload.is_empty()).then(|| before + payload.start..before + payload.end)
    }

    /// Bytes of a run of segments, with all headers.
    pub fn run_bytes(&self, from: usize, to: usize) -> usize {
        HEADER_BYTES + self.headers + self.payload(from, to).len()
    }

    /// Writes a run of segments as a packet of its own; `out` has [`Shape::run_bytes`].
    pub fn cut(&self, packet: &[u8], from: usize, to: usize, out: &mut [u8]) {
        if from == 0 && to == self.segments {
            out.copy_from_slice(packet);
            return;
        }
        let payload = self.payload(from, to);
        let before = HEADER_BYTES + self.headers;
        out[..before].copy_from_slice(&packet[..before]);
        out[before..].copy_from_slice(&packet[before + payload.start..before + payload.end]);
        if to - from == 1 {
            out[GSO_TYPE] = 0;
            out[GSO_SIZE..GSO_SIZE + 2].fill(0);
        }
        let ip = &mut out[HEADER_BYTES..];
        let addresses = self.rewrite_ip(ip, from);
        let length = ip.len() - self.transport;
        let tcp = &mut ip[self.transport..];
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        // A segment of 64 KiB at most: no packet is larger.
        tcp[4..8].copy_from_slice(&sequence.wrapping_add(payload.start as u32).to_be_bytes());
        if to < self.segments {
            tcp[13] &= !(FIN | PSH);
        }
        if from > 0 {
            tcp[13] &= !CWR;
        }
        // What the checksum begins with; the rest is the device's.
        let begun = fold(addresses + u32::from(self.protocol) + length as u32);
        put(tcp, 16, begun);
    }

    /// Lengths, number and checksum of the IP header; the sum of both addresses.
    fn rewrite_ip(&self, ip: &mut [u8], from: usize) -> u32 {
        let length = ip.len();
        if self.is_v6 {
            put(ip, 4, (length - self.transport) as u16);
            return sum(&ip[8..40]);
        }
        put(ip, 2, length as u16);
        let number = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(from as u16);
        put(ip, 4, number);
        put(ip, 10, 0);
        put(ip, 10, !fold(sum(&ip[..self.transport])));
        sum(&ip[12..20])
    }
}

/// Puts gaps in the place of window scaling, selective acknowledgements and timestamps in the first packet of a
/// connection of TCP. Its checksum is not computed yet; one that is stays as it was.
pub fn strip_options(packet: &mut [u8]) {
    alter_options(packet, |option| {
        if matches!(option[0], 3 | 4 | 8) {
            option.fill(GAP);
        }
    });
}

/// Lowers the largest segment that the first packet of a connection of TCP announces.
pub fn lower_segment(packet: &mut [u8], most: u16) {
    alter_options(packet, |option| {
        if let [2, 4, high, low] = option {
            [*high, *low] = u16::from_be_bytes([*high, *low]).min(most).to_be_bytes();
        }
    });
}

const GAP: u8 = 1;

/// Hands each option of the first packet of a connection to `alter`, with its kind and length.
fn alter_options(packet: &mut [u8], alter: impl Fn(&mut [u8])) {
    const SYN: u8 = 0x02;
    let Some(shape) = Shape::of(packet).filter(|shape| shape.protocol == TCP && shape.unchecked) else { return };
    let tcp = &mut packet[HEADER_BYTES + shape.transport..HEADER_BYTES + shape.headers];
    if tcp[13] & SYN == 0 {
        return;
    }
    let mut at = 20;
    while at < tcp.len() && tcp[at] != 0 {
        if tcp[at] == GAP {
            at += 1;
            continue;
        }
        let length = usize::from(tcp.get(at + 1).copied().unwrap_or(0));
        let Some(option) = tcp.get_mut(at..at + length).filter(|option| option.len() >= 2) else { return };
        alter(option);
        at += length;
    }
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The Internet checksum's sum (RFC 1071) of a few headers.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0))).sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A packet of TCP as the kernel hands it over, with segments of a size if that is given.
    pub fn tcp(payload: &[u8], segment: Option<u16>, is_v6: bool) -> Vec<u8> {
        let mut packet = vec![0; HEADER_BYTES];
        packet[0] = NEEDS_CHECKSUM;
        if let Some(segment) = segment {
            packet[GSO_TYPE] = if is_v6 { 4 } else { 1 };
            packet[GSO_SIZE..GSO_SIZE + 2].copy_from_slice(&segment.to_ne_bytes());
        }
        let ip = if is_v6 {
            let mut ip = vec![0x60, 0, 0, 0, 0, 0, TCP, 64];
            ip.extend([0xfd; 32]);
            put(&mut ip, 4, 20 + payload.len() as u16);
            ip
        } else {
            let mut ip = vec![0x45, 0, 0, 0, 0xff, 0xfe, 0x40, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            put(&mut ip, 2, 40 + payload.len() as u16);
            ip
        };
        packet.extend(ip);
        let mut header = [0; 20];
        header[4..8].copy_from_slice(&0xffff_fff0_u32.to_be_bytes());
        header[12] = 5 << 4;
        header[13] = FIN | PSH | CWR | 0x10;
        packet.extend(header);
        packet.extend_from_slice(payload);
        packet
    }

    #[test]
    fn packet_that_opens_a_connection_loses_its_options_and_no_other_does() {
        let options = [2, 4, 5, 180, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7];
        for is_v6 in [false, true] {
            let mut packet = tcp(&options, None, is_v6);
            let begin = packet.len() - options.len() - 20;
            // The payload is options: the header has twenty bytes more.
            packet[begin + 12] = 10 << 4;
            let before = packet.clone();
            strip_options(&mut packet);
            assert_eq!(packet, before, "no connection begins with it");
            packet[begin + 13] = 2;
            strip_options(&mut packet);
            assert_eq!(packet[begin + 20..], [[2, 4, 5, 180].to_vec(), vec![1; 16]].concat());
            lower_segment(&mut packet, 536);
            assert_eq!(packet[begin + 20..begin + 24], [2, 4, 2, 24]);
            lower_segment(&mut packet, 9000);
            assert_eq!(packet[begin + 20..begin + 24], [2, 4, 2, 24], "it is never raised");
        }
    }

    fn cut(packet: &[u8], from: usize, to: usize) -> Vec<u8> {
        let shape = Shape::of(packet).expect("an IP packet");
        let mut out = vec![0; shape.run_bytes(from, to)];
        shape.cut(packet, from, to, &mut out);
        out
    }

    #[test]
    fn packet_runs_together_are_the_whole() {
        let payload: Vec<u8> = (0..2500_u32).map(|index| index as u8).collect();
        for is_v6 in [false, true] {
            let packet = tcp(&payload, Some(1000), is_v6);
            let ip_bytes = if is_v6 { 40 } else { 20 };
            let shape = Shape::of(&packet).expect("an IP packet");
            assert_eq!(shape.segments, 3);
            assert_eq!([0, 2].map(|segment| shape.wire_bytes(segment)), [ip_bytes + 1020, ip_bytes + 520]);
            assert_eq!(cut(&packet, 0, 3), packet);
            let mut arrived = Vec::new();
            for (from, to, flags) in [(0, 2, CWR), (2, 3, FIN | PSH)] {
                let run = cut(&packet, from, to);
                let ip = &run[HEADER_BYTES..];
                let tcp = &ip[ip_bytes..];
                let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
                assert_eq!(sequence, 0xffff_fff0_u32.wrapping_add(1000 * from as u32));
                assert_eq!(tcp[13], flags | 0x10);
                assert_eq!(u16::from_be_bytes([tcp[16], tcp[17]]), begun(ip, is_v6));
                let is_large = run[GSO_TYPE] != 0;
                assert_eq!(is_large, to - from > 1);
                let told = u16::from_be_bytes(if is_v6 { [ip[4], ip[5]] } else { [ip[2], ip[3]] });
                assert_eq!(usize::from(told), ip.len() - if is_v6 { 40 } else { 0 });
                if !is_v6 {
                    assert_eq!(fold(sum(&ip[..20])), 0xffff, "the header's checksum");
                    assert_eq!(u16::from_be_bytes([ip[4], ip[5]]), 0xfffe_u16.wrapping_add(from as u16));
                }
                arrived.extend_from_slice(&tcp[20..]);
            }
            assert_eq!(arrived, payload);
        }
    }

    /// The sum that a device goes on from: that of the pseudo-header.
    fn begun(ip: &[u8], is_v6: bool) -> u16 {
        let (addresses, header) = if is_v6 { (&ip[8..40], 40) } else { (&ip[12..20], 20) };
        fold(sum(addresses) + u32::from(TCP) + (ip.len() - header) as u32)
    }

    #[test]
    fn packet_is_altered_only_where_nobody_checks() {
        let mut packet = tcp(&[7; 100], None, false);
        let whole = HEADER_BYTES + 40..HEADER_BYTES + 140;
        assert_eq!(Shape::of(&packet).and_then(|shape| shape.alterable(0)), Some(whole));
        packet[0] = 0;
        assert_eq!(Shape::of(&packet).and_then(|shape| shape.alterable(0)), None, "its checksum is there");
        let empty = tcp(&[], None, false);
        assert_eq!(Shape::of(&empty).and_then(|shape| shape.alterable(0)), None, "an acknowledgement");
    }

    #[test]
    fn packet_that_is_none_has_no_shape() {
        let packet = tcp(&[1; 10], Some(4), false);
        for length in 0..HEADER_BYTES + 40 {
            assert_eq!(Shape::of(&packet[..length]), None, "{length} bytes");
        }
        let mut other = packet;
        other[HEADER_BYTES] = 0x15;
        assert_eq!(Shape::of(&other), None);
    }
}
