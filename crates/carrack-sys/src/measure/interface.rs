//! Network interfaces.

use std::net::IpAddr;
use std::path::Path;

/// What a network interface has done since it came up, for anybody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceFacts {
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets dropped on receiving.
    pub received_dropped: u64,
    /// Packets dropped on sending.
    pub sent_dropped: u64,
    /// Errors, both ways.
    pub errors: u64,
    /// Bits a second that it carries each way; 0 where nobody knows.
    pub speed_bits: u64,
}

/// The counters of an interface of this name, in this process's network; `None` if there is none, and off Linux.
pub fn interface(name: &str) -> Option<InterfaceFacts> {
    let counted = parse(&super::read("/proc/self/net/dev")?, name)?;
    Some(InterfaceFacts { speed_bits: speed_bits(Path::new("/sys/class/net"), name), ..counted })
}

/// What a card says of its speed, or a bond or a VLAN of what is below it. Tunnels, bridges and links to containers are
/// no cards: what they say is a constant of their driver.
fn speed_bits(interfaces: &Path, name: &str) -> u64 {
    let place = interfaces.join(name);
    let is_upon = |entry: std::fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b"lower_");
    let is_bridge = place.join("bridge").exists();
    let is_card = place.join("device").exists() || place.read_dir().is_ok_and(|all| all.flatten().any(is_upon));
    let megabits = std::fs::read_to_string(place.join("speed")).ok().and_then(|text| text.trim().parse::<u64>().ok());
    megabits.filter(|_| is_card && !is_bridge).unwrap_or(0).saturating_mul(1_000_000)
}

/// Lines of `name: received… sent…`, eight numbers each: bytes, packets, errors, dropped and four more.
fn parse(text: &str, name: &str) -> Option<InterfaceFacts> {
    let numbers = text.lines().find_map(|line| {
        let (found, numbers) = line.split_once(':')?;
        (found.trim() == name).then_some(numbers)
    })?;
    let numbers: Vec<u64> = numbers.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let [received_bytes, _, received_errors, received_dropped, _, _, _, _, sent_bytes, _, errors, sent_dropped, ..] =
        numbers[..]
    else {
        return None;
    };
    let errors = received_errors.saturating_add(errors);
    Some(InterfaceFacts { received_bytes, sent_bytes, received_dropped, sent_dropped, errors, speed_bits: 0 })
}

/// The name of the interface that has this address; `None` if none has.
#[allow(unsafe_code)]
pub fn interface_of(address: IpAddr) -> Option<String> {
    let wanted = address.to_canonical();
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `first` is writable for the call, which sets it to a list that freeifaddrs gives back, or fails.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return None;
    }
    let (mut at, mut found) = (first, None);
    while !at.is_null() && found.is_none() {
        // SAFETY: `at` is an element of the list, which is not freed before the end.
        let element = unsafe { &*at };
        // SAFETY: an element's address is null or a socket address of the list, as its family says.
        if unsafe { address_of(element.ifa_addr) } == Some(wanted) {
            // SAFETY: an element's name is a text of the list with a zero at its end.
            let name = unsafe { std::ffi::CStr::from_ptr(element.ifa_name) };
            found = Some(name.to_string_lossy().into_owned());
        }
        at = element.ifa_next;
    }
    // SAFETY: the list came from getifaddrs, and nothing of it is used any more.
    unsafe { libc::freeifaddrs(first) };
    found
}

/// # Safety
/// `address` is null, or points to a socket address that is as long as its family says.
#[allow(unsafe_code)]
unsafe fn address_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: every socket address begins with its family.
    match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: of this family it is a sockaddr_in; it is read without regard to alignment.
            let address = unsafe { std::ptr::read_unaligned(address.cast::<libc::sockaddr_in>()) };
            Some(IpAddr::from(address.sin_addr.s_addr.to_ne_bytes()))
        }
        libc::AF_INET6 => {
            // SAFETY: of this family it is a sockaddr_in6; it is read without regard to alignment.
            let address = unsafe { std::ptr::read_unaligned(address.cast::<libc::sockaddr_in6>()) };
            Some(IpAddr::from(address.sin6_addr.s6_addr).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_counters_are_read() {
        let text = "Inter-|   Receive   |  Transmit\n face |bytes packets errs drop\n  eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                    eth01: 0 0 0 0 0 0 0 0 0 0 0 0\n";
        let facts = parse(text, "eth0").unwrap();
        let counted =
            (facts.received_bytes, facts.sent_bytes, facts.received_dropped, facts.sent_dropped, facts.errors);
        assert_eq!(counted, (1, 9, 4, 12, 14));
        assert_eq!(parse(text, "eth01"), Some(InterfaceFacts::default()));
        for absent in ["eth", "", "lo"] {
            assert_eq!(parse(text, absent), None, "{absent:?}");
        }
        assert_eq!(parse("lo: 1 2 3\n", "lo"), None);
    }

    #[test]
    fn speed_is_that_of_a_card_or_of_what_is_upon_one() {
        let root = tempfile::tempdir().unwrap();
        for (name, speed, beside) in [
            ("eth0", "25000\n", "device"),
            ("bond0", "50000\n", "lower_eth0"),
            ("veth1", "10000\n", "queues"),
            ("down", "-1\n", "device"),
        ] {
            std::fs::create_dir_all(root.path().join(name).join(beside)).unwrap();
            std::fs::write(root.path().join(name).join("speed"), speed).unwrap();
        }
        let of = |name: &str| speed_bits(root.path(), name);
        assert_eq!(["eth0", "bond0", "veth1", "down", "none"].map(of), [25_000_000_000, 50_000_000_000, 0, 0, 0]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn loopback_is_found_by_its_address() {
        for address in ["127.0.0.1", "::ffff:127.0.0.1"] {
            let name = interface_of(address.parse().unwrap()).unwrap();
            assert_eq!(name, "lo");
            assert!(interface(&name).is_some());
        }
        assert_eq!(interface_of("203.0.113.77".parse().unwrap()), None);
    }
}
