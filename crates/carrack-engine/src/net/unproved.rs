//! Connections that have not proved who they are: how many there may be at one port, and who has
//! to go when there are more.
//!
//! Strangers are counted by the network that they come from: whoever has a /64 of IPv6, or a /24 of IPv4, has as many
//! addresses as it takes. When there are too many of all, the oldest of the network that has the most is cut off. So a
//! newcomer from anywhere else is always let in, and one who comes from that network has as long as it takes the others
//! to fill all places once more.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard};

use carrack_core::limits;

use crate::net::socket::Socket;
use crate::sync::lock;

/// The strangers of one port.
#[derive(Default)]
pub struct Unproved {
    /// By network, oldest first.
    waiting: Mutex<HashMap<IpAddr, VecDeque<UnprovedSocket>>>,
}

struct UnprovedSocket {
    /// In the order in which they came.
    number: u64,
    socket: Arc<Socket>,
}

/// A stranger's place, given back when it is dropped: once it has proved who it is, or is gone.
pub struct Slot {
    unproved: Arc<Unproved>,
    network: IpAddr,
    number: u64,
}

impl Unproved {
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, VecDeque<UnprovedSocket>>> {
        lock(&self.waiting)
    }

    /// A place for a new connection from this address; if there is none left, that of the oldest of
    /// those who have the most.
    pub fn admit(self: &Arc<Self>, address: IpAddr, socket: &Arc<Socket>) -> Slot {
        let network = network(address);
        let mut waiting = self.lock();
        let number = waiting.values().flatten().map(|stranger| stranger.number + 1).max().unwrap_or(0);
        waiting.entry(network).or_default().push_back(UnprovedSocket { number, socket: Arc::clone(socket) });
        while waiting.values().map(VecDeque::len).sum::<usize>() > limits::UNAUTHENTICATED {
            let age =
                |strangers: &VecDeque<UnprovedSocket>| strangers.front().map_or(u64::MAX, |stranger| stranger.number);
            let fullest = waiting.values_mut().max_by_key(|strangers| (strangers.len(), u64::MAX - age(strangers)));
            let Some(oldest) = fullest.and_then(VecDeque::pop_front) else { break };
            oldest.socket.abort();
        }
        Slot { unproved: Arc::clone(self), network, number }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut waiting = self.unproved.lock();
        if let Some(strangers) = waiting.get_mut(&self.network) {
            strangers.retain(|stranger| stranger.number != self.number);
            if strangers.is_empty() {
                waiting.remove(&self.network);
            }
        }
    }
}

/// The network that an address counts for.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & !0xff)),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn stranger(unproved: &Arc<Unproved>, address: &str) -> (UnixStream, Slot) {
        let (near, far) = UnixStream::pair().unwrap();
        let place = unproved.admit(address.parse().unwrap(), &Arc::new(Socket::Unix(far)));
        near.set_nonblocking(true).unwrap();
        (near, place)
    }

    fn is_cut_off((near, _): &(UnixStream, Slot)) -> bool {
        let read = std::io::Read::read(&mut &*near, &mut [0; 1]);
        !read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    #[test]
    fn addresses_count_for_their_network() {
        for (a, b, same) in [
            ("10.1.2.3", "10.1.2.200", true),
            ("10.1.2.3", "10.1.3.3", false),
            ("::ffff:10.1.2.3", "10.1.2.7", true),
            ("2001:db8:0:1::1", "2001:db8:0:1:ffff::", true),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
        ] {
            assert_eq!(network(a.parse().unwrap()) == network(b.parse().unwrap()), same, "{a} {b}");
        }
    }

    /// Silent ones from many addresses of a few networks, and now and then somebody from elsewhere:
    /// who came from there stays.
    #[test]
    fn crowd_of_silent_strangers_only_crowds_out_itself() {
        let unproved = Arc::new(Unproved::default());
        let mut silent = Vec::new();
        let mut others = Vec::new();
        for n in 0..3 * limits::UNAUTHENTICATED {
            silent.push(stranger(&unproved, &format!("2001:db8:0:{:x}::{n:x}", n % 8)));
            if n % 256 == 0 {
                others.push(stranger(&unproved, &format!("192.0.{}.1", n / 256)));
            }
        }
        assert!(!others.iter().any(is_cut_off));
        let cut = silent.iter().filter(|stranger| is_cut_off(stranger)).count();
        assert_eq!(cut, silent.len() + others.len() - limits::UNAUTHENTICATED);
        assert!(silent[..cut - 8].iter().all(is_cut_off), "the oldest first");
        // Who has proved to belong here counts no more.
        drop(others);
        drop(silent);
        assert!(unproved.lock().is_empty());
    }
}
