//! Memory: how much there is, and how much written data may wait in it.

use super::{About, FactText, Gatherer};

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
    if facts.is_host() {
        facts.put("page-bytes", FactText::Found(page_bytes().to_string()));
    }
    facts.files("proc/sys/vm", VM);
    facts.files("sys/kernel/mm/transparent_hugepage", &["enabled", "defrag"]);
}

#[allow(unsafe_code)]
fn page_bytes() -> libc::c_long {
    // SAFETY: the call takes a number and touches no memory of ours.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }
}
