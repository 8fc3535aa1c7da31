//! Where a host is that ssh reaches, by its name: looked up while other things are done.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::mpsc;
use std::time::Duration;

use carrack_core::location::SshHost;
use carrack_core::report::{Failure, Side};
use carrack_core::request::Reach;
use carrack_sys::threads;

use crate::control::whereabouts::addresses;
use crate::error::system_failure;

/// How long the look-up of a host's addresses may take longer than everything before the first question that needs
/// them.
const PATIENCE: Duration = Duration::from_secs(1);
/// Any port will do where nothing is sent.
const DISCARD: u16 = 9;

/// The addresses of a host, once they are known.
#[derive(Debug, Default)]
pub struct LookedUp {
    under_way: Option<mpsc::Receiver<Vec<SocketAddr>>>,
    found: Vec<SocketAddr>,
}

impl LookedUp {
    /// Begins to look.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn begin(host: SshHost, reach: Reach) -> Result<Self, Failure> {
        let (sender, found) = mpsc::channel();
        threads::start("looking a host up", move || sender.send(addresses(&host, &reach)))
            .map_err(|error| system_failure(Side::Command, &error))?;
        Ok(Self { under_way: Some(found), found: Vec::new() })
    }

    /// What was found; none where nobody looked, or it takes too long.
    pub fn take(&mut self) -> Vec<SocketAddr> {
        if let Some(found) = self.under_way.take().and_then(|found| found.recv_timeout(PATIENCE).ok()) {
            self.found = found;
        }
        self.found.clone()
    }
}

/// The address that packets from this host to another have. Nothing is sent.
pub fn own_address(to: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = if to.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((to.ip(), DISCARD)).ok()?;
    let address = socket.local_addr().ok()?.ip().to_canonical();
    (!address.is_unspecified()).then_some(address)
}

/// The addresses that were looked up, with a port. What the host itself tells of its address is none
/// unless it is among them.
pub fn told_first(mut found: Vec<SocketAddr>, told: &str, port: u16) -> Vec<String> {
    let told = told.parse::<IpAddr>().ok().map(|address| address.to_canonical());
    found.sort_by_key(|address| Some(address.ip().to_canonical()) != told);
    let with_port = |mut address: SocketAddr| {
        address.set_port(port);
        match address.ip().to_canonical() {
            IpAddr::V4(address) => format!("{address}:{port}"),
            IpAddr::V6(_) => address.to_string(),
        }
    };
    found.into_iter().map(with_port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_where_its_name_leads_and_not_where_it_says() {
        let found = || ["10.0.0.1:0", "[2001:db8::1]:0"].map(|address| address.parse().unwrap()).to_vec();
        assert_eq!(told_first(found(), "192.168.7.7", 5000), ["10.0.0.1:5000", "[2001:db8::1]:5000"]);
        assert_eq!(told_first(found(), "2001:db8::1", 5000), ["[2001:db8::1]:5000", "10.0.0.1:5000"]);
        assert_eq!(told_first(found(), "::ffff:10.0.0.1", 5000)[0], "10.0.0.1:5000");
        assert!(told_first(Vec::new(), "192.168.7.7", 5000).is_empty());
    }

    #[test]
    fn host_that_no_ssh_tells_of_sees_the_address_that_packets_to_it_have() {
        assert_eq!(own_address("127.0.0.9:0".parse().unwrap()), Some("127.0.0.1".parse().unwrap()));
        let reach = Reach { rsh: vec!["no-ssh".to_owned()], ..Reach::default() };
        let mut looked_up = LookedUp::begin(SshHost { user: None, host: "127.0.0.9".into() }, reach).unwrap();
        // Whoever dials asks once more.
        for _ in 0..2 {
            assert_eq!(looked_up.take(), ["127.0.0.9:0".parse().unwrap()]);
        }
        assert!(LookedUp::default().take().is_empty());
    }
}
