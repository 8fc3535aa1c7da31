//! The kernel parameters that a rule may have set. A rule names one of these and no other: whoever sets them, or takes
//! that back, knows them all.

use carrack_core::words;

words! {
    /// A kernel parameter, by its name with dots.
    pub enum Parameter {
        ReceiveBuffer "net.ipv4.tcp_rmem" "the least, the first and the largest receive buffer of a connection"
        SendBuffer "net.ipv4.tcp_wmem" "the least, the first and the largest send buffer of a connection"
        WindowGrowth "net.ipv4.tcp_moderate_rcvbuf" "whether windows grow by themselves"
        AskedReceiveBuffer "net.core.rmem_max" "the largest receive buffer that a program may ask for"
        AskedSendBuffer "net.core.wmem_max" "the largest send buffer that a program may ask for"
        SavedMetrics "net.ipv4.tcp_no_metrics_save" "whether what a connection met is forgotten"
        CongestionControl "net.ipv4.tcp_congestion_control" "how a sender meets losses"
        WindowScaling "net.ipv4.tcp_window_scaling" "whether windows may be larger than 64 KiB"
        Sack "net.ipv4.tcp_sack" "whether a receiver says which packets it has"
        Timestamps "net.ipv4.tcp_timestamps" "whether packets say when they were sent"
        MtuProbing "net.ipv4.tcp_mtu_probing" "whether a sender looks for a packet that the path takes"
        Memory "net.ipv4.tcp_mem" "the pages of all connections: enough, too many, and the most"
        ConnectionTable "net.netfilter.nf_conntrack_max" "the connections that a firewall remembers"
        ListenQueue "net.core.somaxconn" "the connections that wait for a listener"
        OptionMemory "net.core.optmem_max" "the memory of notes about what is being sent"
        Discipline "net.core.default_qdisc" "the queue in which packets wait"
        Backlog "net.core.netdev_max_backlog" "the packets that wait for a processor"
        Budget "net.core.netdev_budget" "the packets of one round of a processor"
        DirtyBytes "vm.dirty_bytes" "the bytes that wait to be written to storage"
    }
}
