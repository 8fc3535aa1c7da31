//! What `/proc` and `/sys` say of the network: settings and counters of TCP, interfaces, bonds, slots.

use super::{About, FactText, Gatherer};

const CORE: &[&str] = &[
    "rmem_max",
    "wmem_max",
    "rmem_default",
    "wmem_default",
    "optmem_max",
    "default_qdisc",
    "netdev_max_backlog",
    "netdev_budget",
    "netdev_budget_usecs",
    "somaxconn",
];
const IPV4: &[&str] = &[
    "tcp_rmem",
    "tcp_wmem",
    "tcp_mem",
    "tcp_congestion_control",
    "tcp_available_congestion_control",
    "tcp_mtu_probing",
    "tcp_base_mss",
    "tcp_timestamps",
    "tcp_sack",
    "tcp_window_scaling",
    "tcp_no_metrics_save",
    "tcp_slow_start_after_idle",
    "tcp_moderate_rcvbuf",
    "tcp_adv_win_scale",
    "tcp_shrink_window",
    "tcp_notsent_lowat",
    "tcp_max_syn_backlog",
    "tcp_ecn",
];
/// How many connections a firewall of this host remembers, and how many it may.
const CONNECTIONS: &[&str] = &["nf_conntrack_count", "nf_conntrack_max"];
const COUNTERS: &[&str] = &["netstat", "snmp", "sockstat", "softnet_stat"];
const INTERFACE: &[&str] = &[
    "speed",
    "duplex",
    "mtu",
    "operstate",
    "carrier",
    "tx_queue_len",
    "type",
    "statistics/rx_errors",
    "statistics/rx_crc_errors",
    "statistics/rx_missed_errors",
    "statistics/rx_dropped",
    "statistics/rx_packets",
    "statistics/tx_errors",
    "statistics/tx_dropped",
    "statistics/tx_packets",
    "bonding/mode",
    "bonding/xmit_hash_policy",
    "bonding/slaves",
    "bonding/active_slave",
    "device/numa_node",
    "device/local_cpulist",
    "device/current_link_speed",
    "device/max_link_speed",
    "device/current_link_width",
    "device/max_link_width",
    "device/iommu_group/type",
];

pub(super) fn gather(facts: &mut Gatherer, _: About<'_>) {
    facts.files("proc/sys/net/core", CORE);
    facts.files("proc/sys/net/ipv4", IPV4);
    facts.files("proc/sys/net/netfilter", CONNECTIONS);
    facts.files("proc/net", COUNTERS);
}

/// What `/sys` says of interfaces.
pub(super) fn gather_interfaces(facts: &mut Gatherer, _: About<'_>) {
    for name in facts.interfaces() {
        let place = format!("sys/class/net/{name}");
        facts.files(&place, INTERFACE);
        for link in ["device/driver", "master"] {
            facts.link(&format!("{place}/{link}"));
        }
        facts.listing(&format!("{place}/queues"));
        // What it is put together from: a VLAN from a bond, a bond from its links.
        let entries = facts.entries(&place);
        let below: Vec<&str> = entries.iter().filter_map(|entry| entry.strip_prefix("lower_")).collect();
        facts.put(format!("lower/{name}"), FactText::Found(below.join("\n")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::put;

    #[test]
    fn interfaces_tell_what_they_are_put_together_from() {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("sys/class/net/bond0.205/mtu", "9000\n"),
            ("sys/class/net/bond0/mtu", "9000\n"),
            ("proc/sys/net/netfilter/nf_conntrack_count", "7\n"),
        ] {
            put(root.path(), name, text);
        }
        let link = |upper: &str, lower: &str| {
            let from = root.path().join(format!("sys/class/net/{upper}/lower_{lower}"));
            std::os::unix::fs::symlink(format!("../{lower}"), from).unwrap();
        };
        link("bond0.205", "bond0");
        link("bond0", "eth4");
        link("bond0", "eth5");
        let mut facts = crate::facts::Gatherer::at(root.path());
        gather(&mut facts, About::default());
        gather_interfaces(&mut facts, About::default());
        let text = |name: &str| facts.texts.iter().find(|(known, _)| known == name).unwrap().1.clone();
        assert_eq!(text("lower/bond0.205"), FactText::Found("bond0".into()));
        assert_eq!(text("lower/bond0"), FactText::Found("eth4\neth5".into()));
        assert_eq!(text("proc/sys/net/netfilter/nf_conntrack_count"), FactText::Found("7\n".into()));
        assert_eq!(text("proc/sys/net/netfilter/nf_conntrack_max"), FactText::Absent);
    }
}
