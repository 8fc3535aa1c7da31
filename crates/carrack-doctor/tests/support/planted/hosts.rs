//! Twenty hosts that nothing is wrong with: a fixture each, and what makes it such a host.

use super::{HealthyHost, NamedText};

/// Hosts of one place.
const LOCAL_US: u64 = 200;

pub const HEALTHY: &[&HealthyHost] = &[
    &LAPTOP, &MACHINE, &CONTAINER, &DTN_10G, &DTN_40G, &DTN_100G, &BOND, &VLAN, &ZFS, &LUSTRE, &RAID, &NFS, &XFS,
    &DISK, &BTRFS, &IPV6, &TUNED, &YEAR, &ARM, &NUMA,
];

/// A clock that somebody keeps, and room.
const KEPT: &[NamedText] = &[
    ("clock/discipline", "synchronised 1\nestimated-error-us 310\nmaximum-error-us 12480\n"),
    (
        "directory/statvfs",
        "block-size 4096\nblocks 66053021\navailable 41948148\nfiles 16777216\nfiles-available 16149490\n",
    ),
];

pub const LAPTOP: HealthyHost = HealthyHost {
    name: "a laptop on a wireless network, whose card tells no speed",
    fixture: "laptop",
    texts: &[
        KEPT,
        &[
            ("login-path", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
            ("login-command/sysctl", "/usr/sbin/sysctl"),
            ("login-command/tc", "/usr/sbin/tc"),
            ("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse2 avx2 aes vaes\n"),
            (
                "proc/meminfo",
                "MemTotal: 16000000 kB\nMemAvailable: 9100000 kB\nSwapTotal: 8000000 kB\nSwapFree: 7900000 kB\n",
            ),
            ("processor/governors", "performance 8"),
        ],
    ],
    known: &["host.commands", "processor.aes", "memory.swap"],
    round_trip_us: 25_000,
};

pub const MACHINE: HealthyHost = HealthyHost {
    name: "a virtual machine with virtio",
    fixture: "vm",
    texts: &[
        KEPT,
        &[
            ("sys/class/block/vda/queue/read_ahead_kb", "128\n"),
            ("sys/class/block/vda/queue/scheduler", "[none] mq-deadline kyber bfq\n"),
        ],
    ],
    known: &["clock.synchronised", "session.memory", "storage.scheduler"],
    round_trip_us: LOCAL_US,
};

pub const CONTAINER: HealthyHost = HealthyHost {
    name: "a container with control groups of version 2",
    fixture: "container",
    texts: &[
        KEPT,
        &[
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "max\n"),
            ("sys/fs/cgroup/memory.high", "max\n"),
            ("sys/fs/cgroup/pids.max", "max\n"),
            ("sys/fs/cgroup/cpu.max", "max 100000\n"),
            ("sys/devices/system/cpu/online", "0-15\n"),
            ("kernel-log.absent", ""),
            ("kernel-log-ages.absent", ""),
        ],
    ],
    known: &["session.memory", "session.processes", "session.processor-quota"],
    round_trip_us: LOCAL_US,
};

/// A card of 10 Gb/s in a slot, as ESnet has transfer nodes set up.
const CARD: &[NamedText] = &[
    ("ethtool/eth0/channels", "max-other 1\nmax-combined 16\ncombined 2\n"),
    ("ethtool/eth0/driver", "driver ixgbe\nversion 6.18\nfirmware 0x800003e7\nbus 0000:3b:00.0\n"),
    ("ethtool/eth0/pause", "autoneg 0\nrx 1\ntx 1\n"),
    ("ethtool/eth0/rings", "rx-max 4096\ntx-max 4096\nrx 4096\ntx 4096\n"),
    ("interrupts/eth0", "40 912873 0 eth0-TxRx-0\n41 887190 1 eth0-TxRx-1\n42 3 0 eth0\n"),
    ("qdisc/eth0", "mq root drops 0\nfq parent 1 drops 0\nfq parent 2 drops 0\n"),
    ("sys/class/net/eth0/device/current_link_speed", "8.0 GT/s PCIe\n"),
    ("sys/class/net/eth0/device/current_link_width", "8\n"),
    ("sys/class/net/eth0/device/driver", "ixgbe\n"),
    ("sys/class/net/eth0/device/local_cpulist", "0-1\n"),
    ("sys/class/net/eth0/device/max_link_speed", "8.0 GT/s PCIe\n"),
    ("sys/class/net/eth0/device/max_link_width", "8\n"),
    ("sys/class/net/eth0/device/numa_node", "0\n"),
    ("sys/class/net/eth0/duplex", "full\n"),
    ("sys/class/net/eth0/mtu", "9000\n"),
    ("sys/class/net/eth0/speed", "10000\n"),
    ("sys/class/net/eth0/tx_queue_len", "10000\n"),
];
/// Buffers and the like for 40 Gb/s at 20 ms.
const BUFFERS_40G: &[NamedText] = &[
    ("proc/sys/net/core/rmem_max", "268435456\n"),
    ("proc/sys/net/core/wmem_max", "268435456\n"),
    ("proc/sys/net/ipv4/tcp_congestion_control", "htcp\n"),
    ("proc/sys/net/ipv4/tcp_moderate_rcvbuf", "1\n"),
    ("proc/sys/net/ipv4/tcp_mtu_probing", "1\n"),
    ("proc/sys/net/ipv4/tcp_no_metrics_save", "1\n"),
    ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t268435456\n"),
    ("proc/sys/net/ipv4/tcp_sack", "1\n"),
    ("proc/sys/net/ipv4/tcp_timestamps", "1\n"),
    ("proc/sys/net/ipv4/tcp_window_scaling", "1\n"),
    ("proc/sys/net/ipv4/tcp_wmem", "4096\t65536\t268435456\n"),
];
/// What a transfer node has beside its card: buffers for 10 Gb/s at 50 ms, an ssh server, a firewall.
const DTN: &[NamedText] = &[
    ("command/sshd -T", "port 22\nusedns no\nmaxstartups 100:30:300\npersourcepenalties crash:90 authfail:5\n"),
    ("names/peer", "answered-us 1200\n"),
    ("proc/sys/net/core/default_qdisc", "fq\n"),
    ("proc/sys/net/core/netdev_max_backlog", "250000\n"),
    ("proc/sys/net/core/rmem_max", "134217728\n"),
    ("proc/sys/net/core/wmem_max", "134217728\n"),
    ("proc/sys/net/ipv4/tcp_congestion_control", "cubic\n"),
    ("proc/sys/net/ipv4/tcp_mtu_probing", "1\n"),
    ("proc/sys/net/ipv4/tcp_no_metrics_save", "1\n"),
    ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t134217728\n"),
    ("proc/sys/net/ipv4/tcp_wmem", "4096\t65536\t134217728\n"),
    ("proc/sys/net/netfilter/nf_conntrack_count", "1209\n"),
    ("proc/sys/net/netfilter/nf_conntrack_max", "262144\n"),
    ("processor/governors", "performance 2\n"),
    ("sshd/listener", "sshd: /usr/sbin/sshd -D [listener] 0 of 100-300 startups"),
    ("sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
];

pub const DTN_10G: HealthyHost = HealthyHost {
    name: "a transfer node of 10 Gb/s, tuned as ESnet says",
    fixture: "vm",
    texts: &[KEPT, CARD, DTN],
    known: &["interface.interrupts", "interface.qdisc", "interface.rings", "sshd.startups", "tcp.connection-table"],
    round_trip_us: 40_000,
};

pub const DTN_40G: HealthyHost = HealthyHost {
    name: "a transfer node of 40 Gb/s, tuned as ESnet says, whose card could use a newer slot than it has",
    fixture: "vm",
    texts: &[
        KEPT,
        CARD,
        DTN,
        BUFFERS_40G,
        &[
            (
                "command/systemctl show",
                "LimitNOFILE=1048576\nMemoryMax=infinity\nCPUQuotaPerSecUSec=infinity\nTasksMax=16384\n",
            ),
            ("sys/class/net/eth0/device/driver", "mlx5_core\n"),
            ("sys/class/net/eth0/device/max_link_speed", "16.0 GT/s PCIe\n"),
            ("sys/class/net/eth0/speed", "40000\n"),
        ],
    ],
    known: &["interface.slot", "session.unit", "tcp.receive-buffer", "tcp.asked-buffers"],
    round_trip_us: 20_000,
};

pub const DTN_100G: HealthyHost = HealthyHost {
    name: "a transfer node of 100 Gb/s, tuned as ESnet says",
    fixture: "dtn-100g",
    texts: &[
        KEPT,
        &[
            ("ethtool/ens6f0/counters", "rx_pause_ctrl_phy 0\nrx_out_of_buffer 0\n"),
            ("ethtool/ens6f0/rings", "rx-max 8192\ntx-max 8192\nrx 8192\ntx 8192\n"),
            ("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/mapper/vg-root ro intel_iommu=on iommu=pt\n"),
            ("proc/net/netstat", "TcpExt: ListenOverflows ListenDrops TCPMemoryPressures\nTcpExt: 0 0 0\n"),
            ("proc/net/softnet_stat", "0012a0c1 00000000 00000011 00000000\n00000a2b 00000000 00000000 00000000\n"),
            ("proc/sys/kernel/osrelease", "6.12.0-55.el10.x86_64\n"),
            ("proc/sys/net/core/netdev_max_backlog", "250000\n"),
            ("proc/sys/net/core/optmem_max", "1048576\n"),
            ("proc/sys/net/core/rmem_max", "2147483647\n"),
            ("proc/sys/net/core/wmem_max", "2147483647\n"),
            ("proc/sys/net/ipv4/tcp_moderate_rcvbuf", "1\n"),
            ("proc/sys/net/ipv4/tcp_mtu_probing", "1\n"),
            ("proc/sys/net/ipv4/tcp_no_metrics_save", "1\n"),
            ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t2147483647\n"),
            ("proc/sys/net/ipv4/tcp_wmem", "4096\t65536\t2147483647\n"),
            ("processor/governors", "performance 64\n"),
            ("qdisc/ens6f0", "mq root drops 0\nfq parent 1 drops 0\nfq parent 2 drops 0\n"),
            ("sys/class/net/ens6f0/device/current_link_width", "16\n"),
            ("sys/class/net/ens6f0/tx_queue_len", "10000\n"),
        ],
    ],
    known: &["host.iommu", "interface.slot", "tcp.optmem", "tcp.receive-buffer", "tcp.send-buffer"],
    round_trip_us: 50_000,
};

pub const BOND: HealthyHost = HealthyHost {
    name: "a transfer node with a bond of two links by layer3+4",
    fixture: "bond",
    texts: &[
        KEPT,
        &[
            ("proc/sys/net/core/rmem_max", "67108864\n"),
            ("proc/sys/net/core/wmem_max", "67108864\n"),
            ("proc/sys/net/ipv4/tcp_congestion_control", "cubic\n"),
            ("proc/sys/net/ipv4/tcp_moderate_rcvbuf", "1\n"),
            ("proc/sys/net/ipv4/tcp_mtu_probing", "1\n"),
            ("proc/sys/net/ipv4/tcp_no_metrics_save", "1\n"),
            ("sys/class/net/bond0/bonding/xmit_hash_policy", "layer3+4 1\n"),
            ("sys/class/net/eth0/carrier", "1\n"),
            ("sys/class/net/eth1/carrier", "1\n"),
        ],
    ],
    known: &["interface.bond", "tcp.receive-buffer"],
    round_trip_us: 10_000,
};

pub const VLAN: HealthyHost = HealthyHost {
    name: "a transfer node with a VLAN on a bond of four links",
    fixture: "dtn-vlan",
    texts: &[
        KEPT,
        BUFFERS_40G,
        &[
            ("sys/class/net/bond0/bonding/xmit_hash_policy", "layer3+4 1\n"),
            ("sys/class/net/eth5/duplex", "full\n"),
            ("sys/class/net/eth6/statistics/rx_crc_errors", "0\n"),
            ("sys/class/net/eth6/statistics/rx_errors", "0\n"),
            ("sys/class/net/eth7/device/current_link_width", "8\n"),
        ],
    ],
    known: &["interface.bond", "interface.duplex", "interface.errors", "interface.slot", "interface.stacked"],
    round_trip_us: 20_000,
};

/// Properties of a data set and of a pool for large files.
pub const ZFS: HealthyHost = HealthyHost {
    name: "a transfer node of 40 Gb/s with ZFS",
    fixture: "fiona-zfs",
    texts: &[&[
        KEPT[0],
        (
            "command/zfs get",
            "recordsize\t1048576\nchecksum\ton\natime\toff\nrelatime\toff\ncompression\tlz4\nsync\tstandard\n\
                 dedup\toff\nprimarycache\tall\n",
        ),
        ("command/zpool get", "health\tONLINE\nashift\t12\ncapacity\t61\nfragmentation\t9\n"),
        ("proc/meminfo", "MemTotal: 131072000 kB\nMemAvailable: 60000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"),
        ("proc/spl/kstat/zfs/arcstats", "13 1 0x01 123 33456 8 9\nname type data\nc_max 4 67108864000\n"),
        ("proc/sys/net/core/rmem_max", "268435456\n"),
        ("proc/sys/net/core/wmem_max", "268435456\n"),
        ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t268435456\n"),
        ("proc/sys/net/ipv4/tcp_wmem", "4096\t65536\t268435456\n"),
    ]],
    known: &["zfs.ashift", "zfs.atime", "zfs.cache", "zfs.checksum", "zfs.dedup", "zfs.pool", "zfs.record", "zfs.sync"],
    round_trip_us: 20_000,
};

pub const LUSTRE: HealthyHost = HealthyHost {
    name: "a transfer node with Lustre, whose directory has four stripes",
    fixture: "dtn-bond4",
    texts: &[
        KEPT,
        BUFFERS_40G,
        &[(
            "command/lfs getstripe",
            "stripe_count:  4 stripe_size:   1048576 pattern:       raid0 stripe_offset: -1\n",
        )],
    ],
    known: &["interface.bond", "lustre.stripes"],
    round_trip_us: 20_000,
};

pub const RAID: HealthyHost = HealthyHost {
    name: "a server with an array of the kernel of four disks",
    fixture: "vm",
    texts: &[
        KEPT,
        &[
            ("directory/devices", "md0\nsda\nsdb\nsdc\nsdd"),
            ("directory/mount", "36 27 9:0 / /data rw,noatime shared:1 - xfs /dev/md0 rw,sunit=1024"),
            ("directory/path", "/data"),
            ("sys/class/block/md0/md/degraded", "0\n"),
            ("sys/class/block/md0/md/level", "raid6\n"),
            ("sys/class/block/md0/md/sync_action", "idle\n"),
            ("sys/class/block/md0/queue/read_ahead_kb", "8192\n"),
            ("sys/class/block/sda/queue/rotational", "1\n"),
            ("sys/class/block/sda/queue/scheduler", "[mq-deadline] kyber bfq none\n"),
            ("sys/class/block/sdb/queue/rotational", "1\n"),
            ("sys/class/block/sdb/queue/scheduler", "[mq-deadline] kyber bfq none\n"),
            ("sys/class/block/sdc/queue/rotational", "1\n"),
            ("sys/class/block/sdc/queue/scheduler", "[mq-deadline] kyber bfq none\n"),
            ("sys/class/block/sdd/queue/rotational", "1\n"),
            ("sys/class/block/sdd/queue/scheduler", "none mq-deadline kyber [bfq]\n"),
        ],
    ],
    known: &["raid.state", "storage.read-ahead", "storage.scheduler"],
    round_trip_us: LOCAL_US,
};

/// A card of 1 Gb/s.
const GIGABIT: &[NamedText] = &[("sys/class/net/eth0/duplex", "full\n"), ("sys/class/net/eth0/speed", "1000\n")];

pub const NFS: HealthyHost = HealthyHost {
    name: "a server of 1 Gb/s with NFS that is mounted hard, and measured to be faster than that",
    fixture: "vm",
    texts: &[
        KEPT,
        GIGABIT,
        &[
            ("directory/devices", ""),
            (
                "directory/mount",
                "30 22 0:47 / /project rw,relatime shared:9 - nfs4 files.lab:/project rw,vers=4.2,rsize=1048576,\
                 wsize=1048576,hard,proto=tcp,nconnect=8,timeo=600,sec=sys",
            ),
            ("directory/path", "/project"),
            ("measured/storage/read", "640000000"),
            ("measured/storage/write", "410000000"),
            ("proc/sys/vm/dirty_bytes", "805306368\n"),
        ],
    ],
    known: &["memory.dirty", "storage.kind", "storage.read-rate", "storage.soft-mount", "storage.write-rate"],
    round_trip_us: LOCAL_US,
};

pub const XFS: HealthyHost = HealthyHost {
    name: "a server with XFS on NVMe",
    fixture: "vm",
    texts: &[
        KEPT,
        &[
            ("directory/devices", "nvme0n1p1\nnvme0n1"),
            ("directory/mount", "36 27 259:1 / /scratch rw,noatime shared:1 - xfs /dev/nvme0n1p1 rw,attr2,inode64"),
            ("directory/path", "/scratch"),
            ("sys/class/block/nvme0n1/queue/read_ahead_kb", "128\n"),
            ("sys/class/block/nvme0n1/queue/rotational", "0\n"),
            ("sys/class/block/nvme0n1/queue/scheduler", "[none] mq-deadline kyber bfq\n"),
            ("sys/class/block/nvme0n1p1/queue/scheduler.absent", ""),
            ("sys/class/block/nvme0n1p1/queue/rotational.absent", ""),
            ("sys/class/block/nvme0n1p1/queue/read_ahead_kb.absent", ""),
        ],
    ],
    known: &["storage.barriers", "storage.inodes", "storage.scheduler"],
    round_trip_us: LOCAL_US,
};

pub const DISK: HealthyHost = HealthyHost {
    name: "a server of 1 Gb/s that saves power, with ext4 on a disk that turns",
    fixture: "vm",
    texts: &[
        KEPT,
        GIGABIT,
        &[
            ("directory/devices", "sda1\nsda"),
            ("directory/mount", "36 27 8:1 / /data rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro"),
            ("directory/path", "/data"),
            ("measured/storage/read", "212000000"),
            ("measured/storage/write", "187000000"),
            ("proc/sys/vm/dirty_bytes", "268435456\n"),
            ("processor/governors", "powersave 2\n"),
            ("sys/class/block/sda/queue/read_ahead_kb", "4096\n"),
            ("sys/class/block/sda/queue/rotational", "1\n"),
            ("sys/class/block/sda/queue/scheduler", "none [mq-deadline] kyber bfq\n"),
            ("sys/class/block/sda1/queue/scheduler.absent", ""),
            ("sys/class/block/sda1/queue/rotational.absent", ""),
            ("sys/class/block/sda1/queue/read_ahead_kb.absent", ""),
        ],
    ],
    known: &["processor.governor", "storage.read-ahead", "storage.scheduler", "storage.write-rate"],
    round_trip_us: LOCAL_US,
};

pub const BTRFS: HealthyHost = HealthyHost {
    name: "a server with Btrfs on a solid-state disk",
    fixture: "vm",
    texts: &[
        KEPT,
        &[
            ("directory/devices", "sdb"),
            ("directory/mount", "36 27 0:31 /@data /data rw,relatime shared:1 - btrfs /dev/sdb rw,ssd,space_cache=v2"),
            ("directory/path", "/data"),
            (
                "directory/statvfs",
                "block-size 4096\nblocks 244190646\navailable 91948148\nfiles 0\nfiles-available 0\n",
            ),
            ("sys/class/block/sdb/queue/read_ahead_kb", "128\n"),
            ("sys/class/block/sdb/queue/rotational", "0\n"),
            ("sys/class/block/sdb/queue/scheduler", "none [mq-deadline] kyber bfq\n"),
        ],
    ],
    known: &["storage.inodes", "storage.kind", "storage.scheduler"],
    round_trip_us: LOCAL_US,
};

pub const IPV6: HealthyHost = HealthyHost {
    name: "a transfer node of 10 Gb/s with addresses of IP version 6 alone",
    fixture: "vm",
    texts: &[
        KEPT,
        CARD,
        DTN,
        &[
            ("address/eth0", "2001:db8:7::2/64\nfe80::fc:ff:fe00:1/64\n"),
            ("route/2001:db8:9::7", "2001:db8:9::7 dev eth0 via fe80::1 src 2001:db8:7::2\n"),
        ],
    ],
    known: &["interface.mtu", "path.route", "tcp.receive-buffer"],
    round_trip_us: 40_000,
};

pub const TUNED: HealthyHost = HealthyHost {
    name: "a transfer node of 10 Gb/s whose files and tuned profile agree with what is set",
    fixture: "vm",
    texts: &[
        KEPT,
        CARD,
        DTN,
        &[
            ("etc/sysctl.d/90-dtn.conf", "net.ipv4.tcp_rmem = 4096 131072 134217728\nnet.core.rmem_max=134217728\n"),
            ("etc/tuned/active_profile", "dtn\n"),
            ("etc/tuned/tuned-main.conf", "reapply_sysctl = 1\n"),
            ("process/tuned", "812"),
            (
                "tuned/1/dtn",
                "[main]\ninclude=network-throughput\n[sysctl]\nnet.ipv4.tcp_rmem=\"4096 131072 134217728\"\n",
            ),
            ("tuned/2/network-throughput", "[sysctl]\nnet.ipv4.tcp_mtu_probing=1\n"),
        ],
    ],
    known: &["settings.next-boot", "settings.tuned"],
    round_trip_us: 40_000,
};

pub const YEAR: HealthyHost = HealthyHost {
    name: "a transfer node of 10 Gb/s that is up for a year, and has met a few errors, old lines of the log, and swap",
    fixture: "vm",
    texts: &[
        KEPT,
        CARD,
        DTN,
        &[
            ("ethtool/eth0/counters", "rx_pause 1409\nrx_no_dma_resources 12\n"),
            (
                "kernel-log",
                "ixgbe 0000:3b:00.0 eth0: NIC Link is Down\n\
                 Buffer I/O error on dev vda, logical block 7, lost async page write\n\
                 md/raid1:md7: Disk failure on sdy, disabling device.\n",
            ),
            ("kernel-log-ages", "31535990\n15000000\n3600\n"),
            (
                "proc/meminfo",
                "MemTotal: 263000000 kB\nMemAvailable: 190000000 kB\nSwapTotal: 8000000 kB\nSwapFree: 4100000 kB\n",
            ),
            ("proc/net/netstat", "TcpExt: ListenOverflows ListenDrops TCPMemoryPressures\nTcpExt: 40 40 0\n"),
            ("proc/net/softnet_stat", "e8d4a510 00000009 00001000 00000000\ne8d40000 00000001 00000100 00000000\n"),
            ("proc/uptime", "31536000.12 900000000.00\n"),
            ("sys/class/net/eth0/statistics/rx_crc_errors", "41\n"),
            ("sys/class/net/eth0/statistics/rx_errors", "44\n"),
            ("sys/class/net/eth0/statistics/rx_missed_errors", "1200\n"),
            ("sys/class/net/eth0/statistics/rx_packets", "913000000000\n"),
            ("sys/devices/system/edac/mc/mc0/ce_count", "7\n"),
            ("sys/devices/system/edac/mc/mc0/ue_count", "0\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
        ],
    ],
    known: &[
        "hardware.log",
        "hardware.memory",
        "interface.errors",
        "interface.pause",
        "memory.huge-pages",
        "tcp.listen-queue",
    ],
    round_trip_us: 40_000,
};

pub const ARM: HealthyHost = HealthyHost {
    name: "an ARM server of 25 Gb/s with instructions for AES and pages of 64 KiB",
    fixture: "vm",
    texts: &[
        KEPT,
        CARD,
        DTN,
        &[
            ("page-bytes", "65536\n"),
            (
                "proc/cpuinfo",
                "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics\n\
                 CPU implementer\t: 0x41\n",
            ),
            ("proc/sys/net/ipv4/tcp_mem", "191592\t255456\t383184\n"),
            ("sys/class/net/eth0/device/driver", "ena\n"),
            ("sys/class/net/eth0/speed", "25000\n"),
        ],
    ],
    known: &["processor.aes", "tcp.memory"],
    round_trip_us: 20_000,
};

pub const NUMA: HealthyHost = HealthyHost {
    name: "a host of two nodes of memory, whose card, interrupts and disk are at one",
    fixture: "irq-other-node",
    texts: &[
        KEPT,
        &[
            ("block/nvme0n1/numa-node", "0\n"),
            ("directory/devices", "nvme0n1"),
            ("directory/mount", "36 27 259:0 / /scratch rw,noatime shared:1 - xfs /dev/nvme0n1 rw,attr2,inode64"),
            ("directory/path", "/scratch"),
            (
                "interrupts/eth0",
                "150 2 0 eth0\n151 90210 8 eth0-TxRx-0\n152 88107 9 eth0-TxRx-1\n153 91002 10 eth0-TxRx-2\n",
            ),
            ("processor/governors", "performance 96\n"),
            ("sys/class/block/nvme0n1/queue/read_ahead_kb", "128\n"),
            ("sys/class/block/nvme0n1/queue/rotational", "0\n"),
            ("sys/class/block/nvme0n1/queue/scheduler", "[none] mq-deadline\n"),
            ("sys/class/net/eth0/tx_queue_len", "10000\n"),
        ],
    ],
    known: &["interface.interrupts", "interface.numa", "storage.numa"],
    round_trip_us: LOCAL_US,
};
