//! What `/proc` and `/sys` say of the network: settings and counters of TCP, interfaces, bonds, slots.

use super::{About, Gatherer};

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
    facts.files("proc/net", COUNTERS);
    for name in facts.each("sys/class/net", INTERFACE) {
        let place = format!("sys/class/net/{name}");
        for link in ["device/driver", "master"] {
            facts.link(&format!("{place}/{link}"));
        }
        facts.listing(&format!("{place}/queues"));
    }
}
