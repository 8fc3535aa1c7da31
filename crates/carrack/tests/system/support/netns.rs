//! Two hosts with a cable between them, and firewalls: network namespaces of the test's own.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{is_root, tool};

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
    names: [String; 2],
}

impl Hosts {
    /// `None`, and why is printed, where such things cannot be made.
    pub fn new() -> Option<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let here = format!("carrack-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        if !is_root() || ip(&["netns", "list"]).is_none() {
            println!("skipped: network namespaces need root and the ip command (iproute2)");
            return None;
        }
        let hosts = Self { names: ["near", "far"].map(|side| format!("{here}-{side}")) };
        let [near, far] = &hosts.names;
        if ip(&["netns", "add", near]).is_none() || ip(&["netns", "add", far]).is_none() {
            println!("skipped: this machine does not let root make network namespaces");
            return None;
        }
        must(&["link", "add", "cable", "netns", near, "type", "veth", "peer", "name", "cable", "netns", far]);
        for (name, address) in hosts.names.iter().zip(ADDRESSES) {
            must(&["-n", name, "addr", "add", &format!("{address}/24"), "dev", "cable"]);
            for device in ["lo", "cable"] {
                must(&["-n", name, "link", "set", device, "up"]);
            }
        }
        Some(hosts)
    }

    fn name(&self, host: Host) -> &str {
        &self.names[host as usize]
    }

    /// What runs a command on a host, when put in front of it.
    pub fn prefix(&self, host: Host) -> Vec<String> {
        ["ip", "netns", "exec", self.name(host)].map(String::from).to_vec()
    }

    /// The same command, on a host. Its environment is what was set explicitly.
    pub fn on(&self, host: Host, command: &Command) -> Command {
        let prefix = self.prefix(host);
        let mut wrapped = Command::new(&prefix[0]);
        wrapped.args(&prefix[1..]).arg(command.get_program()).args(command.get_args()).env_clear();
        wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(directory) = command.get_current_dir() {
            wrapped.current_dir(directory);
        }
        wrapped
    }

    /// A firewall before a host, of the silent kind: what comes over the cable for these ports is lost.
    pub fn block(&self, host: Host, ports: &str) {
        let name = self.name(host);
        // The rule that finds a host's own addresses comes first, and would let everything in: it has to step back.
        must(&["-n", name, "rule", "add", "pref", "100", "lookup", "local"]);
        must(&["-n", name, "rule", "del", "pref", "0"]);
        let lose = ["rule", "add", "pref", "10", "iif", "cable", "ipproto", "tcp", "dport", ports, "blackhole"];
        must(&[&["-n", name][..], &lose].concat());
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Option<()> {
    let output = Command::new("ip").args(arguments).output().ok()?;
    output.status.success().then_some(())
}

fn must(arguments: &[&str]) {
    tool(Command::new("ip").args(arguments));
}
