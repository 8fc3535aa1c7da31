//! Two hosts with a cable between them, and firewalls: network namespaces of the test's own.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use carrack_faults::netns::{self, Namespace};

/// The address of each host.
pub const ADDRESSES: [&str; 2] = ["10.0.0.1", "10.0.0.2"];

/// One of the two hosts.
#[derive(Clone, Copy)]
pub enum Host {
    Near,
    Far,
}

/// The two; gone when dropped.
pub struct Hosts {
    hosts: [Namespace; 2],
}

/// A name for hosts that nobody else has.
pub fn name() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("carrack-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Hosts {
    /// `None`, and why is printed, where such things cannot be made.
    pub fn new() -> Option<Self> {
        if !netns::can_make() {
            return None;
        }
        let here = name();
        let hosts = ["near", "far"].map(|side| Namespace::new(&format!("{here}-{side}")).unwrap());
        let [near, far] = [hosts[0].name(), hosts[1].name()];
        netns::ip(&["link", "add", "cable", "netns", near, "type", "veth", "peer", "name", "cable", "netns", far])
            .unwrap();
        for (host, address) in hosts.iter().zip(ADDRESSES) {
            host.ip(&["addr", "add", &format!("{address}/24"), "dev", "cable"]).unwrap();
            host.ip(&["link", "set", "cable", "up"]).unwrap();
        }
        Some(Self { hosts })
    }

    /// One of the hosts.
    pub fn host(&self, host: Host) -> &Namespace {
        &self.hosts[host as usize]
    }

    /// What runs a command on a host, when put in front of it.
    pub fn prefix(&self, host: Host) -> Vec<String> {
        self.host(host).prefix()
    }

    /// The same command, on a host. Its environment is what was set explicitly.
    pub fn on(&self, host: Host, command: &Command) -> Command {
        self.host(host).on(command)
    }

    /// Gives a host one more address.
    pub fn add_address(&self, host: Host, address: &str) {
        self.host(host).ip(&["addr", "add", &format!("{address}/24"), "dev", "cable"]).unwrap();
    }

    /// A firewall before a host, of the silent kind: what comes over the cable for these ports is lost.
    pub fn block(&self, host: Host, ports: &str) {
        self.block_from(host, "0.0.0.0/0", ports);
    }

    /// The same for what comes from some addresses.
    pub fn block_from(&self, host: Host, from: &str, ports: &str) {
        let host = self.host(host);
        // The rule that finds a host's own addresses comes first, and would let everything in: it has to step back.
        host.ip(&["rule", "add", "pref", "100", "lookup", "local"]).unwrap();
        host.ip(&["rule", "del", "pref", "0"]).unwrap();
        let lose =
            ["rule", "add", "pref", "10", "from", from, "iif", "cable", "ipproto", "tcp", "dport", ports, "blackhole"];
        host.ip(&lose).unwrap();
    }
}
