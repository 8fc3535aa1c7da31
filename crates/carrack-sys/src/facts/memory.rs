//! Memory: how much there is, and how much written data may wait in it.

use super::{About, Gatherer};

const VM: &[&str] = &[
    "dirty_bytes",
    "dirty_ratio",
    "dirty_background_bytes",
    "dirty_background_ratio",
    "dirty_expire_centisecs",
    "min_free_kbytes",
    "swappiness",
    "zone_reclaim_mode",
];

pub(super) fn gather(facts: &mut Gatherer, _: About<'_>) {
    facts.file("proc/meminfo");
    facts.files("proc/sys/vm", VM);
    facts.files("sys/kernel/mm/transparent_hugepage", &["enabled", "defrag"]);
}
