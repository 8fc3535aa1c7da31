//! The kernel and this process: version, command line, limits.

use super::{About, Gatherer};

const FILES: &[&str] = &[
    "proc/sys/kernel/hostname",
    "proc/sys/kernel/osrelease",
    "proc/cmdline",
    "proc/self/limits",
    "proc/uptime",
    "sys/devices/system/node/online",
];

pub(super) fn gather(facts: &mut Gatherer, _: About<'_>) {
    FILES.iter().for_each(|file| facts.file(file));
    facts.listing("sys/class/iommu");
}
