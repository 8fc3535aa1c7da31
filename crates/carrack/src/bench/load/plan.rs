//! Who does what: clients over hosts and ways, and how many different files there are.

use carrack_core::location::SshHost;
use carrack_core::words;

use crate::crowd::order::{Client, ClientWay, SOURCES_MAX};

words! {
    /// Which way the files go.
    pub enum LoadDirection {
        Put "put" "to the server"
        Get "get" "from the server"
        Both "both" "half of the clients send while the others fetch"
    }
}

impl LoadDirection {
    /// Which way a client's files go.
    pub fn of(self, number: u32) -> ClientWay {
        match self {
            Self::Put => ClientWay::Put,
            Self::Get => ClientWay::Get,
            Self::Both if number % 2 == 1 => ClientWay::Put,
            Self::Both => ClientWay::Get,
        }
    }

    /// Whether any file goes this way.
    pub fn has(self, way: ClientWay) -> bool {
        self == Self::Both || self.of(1) == way
    }
}

/// The clients of each host that has any. Numbers go round, so that no host has two more than another; where half of
/// the clients go the other way, in pairs.
pub fn seats(clients: u32, direction: LoadDirection, hosts: &[SshHost]) -> Vec<(Option<SshHost>, Vec<Client>)> {
    let places: Vec<Option<SshHost>> =
        if hosts.is_empty() { vec![None] } else { hosts.iter().cloned().map(Some).collect() };
    let mut seats: Vec<(Option<SshHost>, Vec<Client>)> = places.into_iter().map(|host| (host, Vec::new())).collect();
    let count = seats.len();
    let width = if direction == LoadDirection::Both { 2 } else { 1 };
    for number in 1..=clients {
        let at = ((number - 1) / width) as usize % count;
        seats[at].1.push(Client { number, way: direction.of(number) });
    }
    seats.retain(|(_, clients)| !clients.is_empty());
    seats
}

/// Different files: as many as `bytes` have room for, one at least, and no more than there are uses.
pub fn different(bytes: u64, size: u64, uses: u64) -> u32 {
    let most = (bytes / size.max(1)).clamp(1, u64::from(SOURCES_MAX)).min(uses.max(1));
    u32::try_from(most).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> SshHost {
        SshHost { user: None, host: name.to_owned() }
    }

    #[test]
    fn clients_go_round_the_hosts() {
        let numbers = |clients: u32, direction, hosts: &[SshHost]| -> Vec<Vec<u32>> {
            let seats = seats(clients, direction, hosts);
            seats.iter().map(|(_, clients)| clients.iter().map(|client| client.number).collect()).collect()
        };
        assert_eq!(numbers(3, LoadDirection::Put, &[]), [vec![1, 2, 3]]);
        let hosts = [host("a"), host("b"), host("c")];
        assert_eq!(numbers(5, LoadDirection::Get, &hosts), [vec![1, 4], vec![2, 5], vec![3]]);
        assert_eq!(numbers(2, LoadDirection::Put, &hosts), [vec![1], vec![2]], "a host without clients takes no part");
        assert_eq!(numbers(6, LoadDirection::Both, &hosts), [vec![1, 2], vec![3, 4], vec![5, 6]]);
        let both = seats(6, LoadDirection::Both, &hosts);
        assert!(both.iter().all(|(_, clients)| clients[0].way == ClientWay::Put && clients[1].way == ClientWay::Get));
    }

    #[test]
    fn different_files_are_as_many_as_there_is_room_for() {
        assert_eq!(different(1 << 30, 1 << 30, 1000), 1);
        assert_eq!(different(1 << 30, 4 << 30, 1000), 1);
        assert_eq!(different(1 << 30, 16 << 20, 1000), 64);
        assert_eq!(different(1 << 30, 1 << 20, 100), 100);
        assert_eq!(different(1 << 30, 1, 1_000_000), SOURCES_MAX);
        assert_eq!(different(10, 0, 3), 3);
    }
}
