//! What a driver says of its interface, by the ioctls of ethtool (linux/ethtool.h): driver, rings, channels, pause
//! frames, offloads, and those of its counters that tell of losses. Each answer is put into lines of a name and a
//! number.

use super::{About, Gatherer};

#[cfg(not(target_os = "linux"))]
pub(super) fn gather(_: &mut Gatherer, _: About<'_>) {}

#[cfg(target_os = "linux")]
pub(super) use self::linux::gather;

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod linux {
    use std::fmt::Write as _;
    use std::io;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    use super::super::FactText;
    use super::{About, Gatherer};

    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    const DRIVER: u32 = 0x03;
    const RINGS: u32 = 0x10;
    const PAUSE: u32 = 0x12;
    const STRINGS: u32 = 0x1b;
    const STATISTICS: u32 = 0x1d;
    const CHANNELS: u32 = 0x3c;
    /// Asked one by one: the name here, and the number of the question.
    const OFFLOADS: &[(&str, u32)] =
        &[("rx-checksum", 0x14), ("tx-checksum", 0x16), ("sg", 0x18), ("tso", 0x1e), ("gso", 0x23), ("gro", 0x2b)];
    /// A word of flags, of which one bit is large receive offload.
    const FLAGS: u32 = 0x25;
    const LRO: u32 = 1 << 15;
    const NAME_BYTES: usize = 32;
    /// The names of statistics, among the sets of strings.
    const STATISTICS_SET: u32 = 1;
    /// Counters of one driver that are looked at. Large ones have some thousand, most of them of single queues.
    const COUNTERS: u32 = 8192;
    /// Counters that are told: those that these words are in.
    const TOLD: &[&str] = &["pause", "miss", "discard", "crc", "out_of_buffer", "no_buff", "fifo", "overrun"];

    pub(in super::super) fn gather(facts: &mut Gatherer, _: About<'_>) {
        let Ok(socket) = UdpSocket::bind("[::]:0").or_else(|_| UdpSocket::bind("0.0.0.0:0")) else { return };
        for name in facts.interfaces() {
            let card = Card { socket: &socket, name: &name };
            let answers = [
                ("driver", card.driver()),
                ("rings", card.numbers(RINGS, &[(0, "rx-max"), (3, "tx-max"), (4, "rx"), (7, "tx")], 8)),
                ("channels", card.numbers(CHANNELS, &[(2, "max-other"), (3, "max-combined"), (7, "combined")], 8)),
                ("pause", card.numbers(PAUSE, &[(0, "autoneg"), (1, "rx"), (2, "tx")], 3)),
                ("offloads", card.offloads()),
                ("counters", card.counters()),
            ];
            for (kind, answer) in answers {
                let text: FactText = match answer {
                    Err(error) if is_unknown(&error) => FactText::Absent,
                    other => other.into(),
                };
                facts.put(format!("ethtool/{name}/{kind}"), text);
            }
        }
    }

    /// The driver does not answer such a question.
    fn is_unknown(error: &io::Error) -> bool {
        matches!(
            error.raw_os_error(),
            Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ENODEV | libc::ENOTTY | libc::ENOSYS)
        )
    }

    struct Card<'a> {
        socket: &'a UdpSocket,
        name: &'a str,
    }

    impl Card<'_> {
        /// Asks with a structure, which the kernel fills. It begins with the question's number and must be as long as
        /// that question's structure.
        fn ask(&self, structure: &mut [u32]) -> io::Result<()> {
            // SAFETY: ifreq is integers and addresses only, for which all bits zero is a value.
            let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
            let name = self.name.as_bytes();
            if name.len() >= request.ifr_name.len() {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            for (to, from) in request.ifr_name.iter_mut().zip(name) {
                *to = from.cast_signed();
            }
            request.ifr_ifru.ifru_data = structure.as_mut_ptr().cast();
            // SAFETY: the request names a structure that is ours for the call and as long as the kernel writes for its
            // first number, which whoever calls this sees to; the descriptor is open.
            let done = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL as _, &mut request) };
            if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        }

        /// Numbers behind the question's own, at these places.
        fn numbers(&self, question: u32, places: &[(usize, &str)], count: usize) -> io::Result<String> {
            let mut structure = vec![0; count + 1];
            structure[0] = question;
            self.ask(&mut structure)?;
            let mut lines = String::new();
            for (place, name) in places {
                let _ = writeln!(lines, "{name} {}", structure[place + 1]);
            }
            Ok(lines)
        }

        /// `ethtool_drvinfo`: 196 bytes. Behind the question stand five texts of 32 bytes and 12 bytes that are
        /// reserved, then numbers, of which the second is that of the counters.
        fn drvinfo(&self) -> io::Result<[u32; 49]> {
            let mut structure = [0; 49];
            structure[0] = DRIVER;
            self.ask(&mut structure)?;
            Ok(structure)
        }

        fn driver(&self) -> io::Result<String> {
            let structure = self.drvinfo()?;
            let text = |from: usize, bytes: usize| text(&bytes_of(&structure)[from..from + bytes]);
            Ok(format!(
                "driver {}\nversion {}\nfirmware {}\nbus {}\n",
                text(4, 32),
                text(36, 32),
                text(68, 32),
                text(100, 32)
            ))
        }

        fn offloads(&self) -> io::Result<String> {
            let mut lines = String::new();
            for (name, question) in OFFLOADS {
                let mut structure = [*question, 0];
                self.ask(&mut structure)?;
                let _ = writeln!(lines, "{name} {}", structure[1]);
            }
            let mut structure = [FLAGS, 0];
            self.ask(&mut structure)?;
            let _ = writeln!(lines, "lro {}", u32::from(structure[1] & LRO != 0));
            Ok(lines)
        }

        /// The counters whose names tell of losses and pauses, as far as they are not zero.
        fn counters(&self) -> io::Result<String> {
            let structure = self.drvinfo()?;
            let count = structure[45];
            if count == 0 || count > COUNTERS {
                return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
            }
            // The kernel writes as many as the driver has by then, whatever was asked for: there is room for the most.
            let most = COUNTERS as usize;
            let mut names = vec![0; 3 + most * NAME_BYTES / 4];
            names[..3].copy_from_slice(&[STRINGS, STATISTICS_SET, count]);
            self.ask(&mut names)?;
            // Numbers of 64 bits behind two of 32.
            let mut values = vec![0; 2 + 2 * most];
            values[..2].copy_from_slice(&[STATISTICS, count]);
            self.ask(&mut values)?;
            let (names, values) = (bytes_of(&names[3..]), bytes_of(&values[2..]));
            let mut lines = String::new();
            let each = names.chunks_exact(NAME_BYTES).zip(values.chunks_exact(8));
            for (name, value) in each.take(count as usize) {
                let (name, value) = (text(name), u64::from_ne_bytes(value.try_into().unwrap_or_default()));
                if value > 0 && TOLD.iter().any(|word| name.contains(word)) {
                    let _ = writeln!(lines, "{} {value}", name.replace(' ', "_"));
                }
            }
            Ok(lines)
        }
    }

    fn bytes_of(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn loopback_has_offloads_and_no_rings() {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let card = Card { socket: &socket, name: "lo" };
            let offloads = card.offloads().unwrap();
            assert!(offloads.lines().any(|line| line == "tso 1" || line == "tso 0"), "{offloads}");
            assert!(offloads.ends_with("lro 0\n"), "{offloads}");
            assert!(is_unknown(&card.numbers(RINGS, &[], 8).unwrap_err()));
            let none = Card { socket: &socket, name: "no-such-card" };
            assert!(is_unknown(&none.offloads().unwrap_err()));
            assert!(Card { name: &"n".repeat(16), ..none }.offloads().is_err());
        }
    }
}
