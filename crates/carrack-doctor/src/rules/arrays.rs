//! What puts a file system together from several disks: ZFS, arrays of the kernel, Lustre.

use carrack_core::words::shell_word;

use super::{Check, Limit, Rule, Threshold, Told, View};
use crate::finding::EvidenceClass::{EsnetTable, Kernel, OneOperator};
use crate::known::{Known, Unknown};
use crate::units;

const ZFS_PAGE: &str = "zfsprops(7), zpoolprops(7)";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "zfs.checksum",
        threshold: Threshold::plain("on"),
        reason: "without it ZFS neither notices nor repairs what a disk has damaged",
        source: ZFS_PAGE,
        class: Kernel,
        check: Check::Host(checksum),
    },
    Rule {
        id: "zfs.record",
        threshold: Threshold::of("{} where large files are kept", &[Limit::Bytes(RECORD)]),
        reason: "fewer, larger records cost less work for each byte",
        source: "Pacific Research Platform, FIONA of UC Santa Cruz, 2017",
        class: OneOperator,
        check: Check::Host(record),
    },
    Rule {
        id: "zfs.atime",
        threshold: Threshold::plain("off, or relatime"),
        reason: "every read is a write as well otherwise",
        source: ZFS_PAGE,
        class: Kernel,
        check: Check::Host(atime),
    },
    Rule {
        id: "zfs.ashift",
        threshold: Threshold::of("{} or more", &[Limit::Count(SHIFT)]),
        reason: "disks have sectors of 4 KiB, whatever some say: smaller writes make them read first",
        source: ZFS_PAGE,
        class: Kernel,
        check: Check::Host(ashift),
    },
    Rule {
        id: "zfs.pool",
        threshold: Threshold::of("ONLINE, with less than {} in use", &[Limit::Percent(FULL)]),
        reason: "a pool that has lost a disk reads others in its place; a full one writes into gaps",
        source: ZFS_PAGE,
        class: Kernel,
        check: Check::Host(pool),
    },
    Rule {
        id: "zfs.sync",
        threshold: Threshold::plain("standard, or always"),
        reason: "with sync=disabled a sync returns before anything is written: no copy there is durable, whatever it says",
        source: ZFS_PAGE,
        class: Kernel,
        check: Check::Host(sync),
    },
    Rule {
        id: "zfs.dedup",
        threshold: Threshold::plain("off"),
        reason: "each block that is written is looked for in a table, which has to fit into memory",
        source: ZFS_PAGE,
        class: Kernel,
        check: Check::Host(dedup),
    },
    Rule {
        id: "zfs.cache",
        threshold: Threshold::of("primarycache=all, and an ARC that may have {} of memory", &[Limit::Percent(CACHE)]),
        reason: "nothing is read ahead without a cache: each read waits for the disks",
        source: ZFS_PAGE,
        class: Kernel,
        check: Check::Host(cache),
    },
    Rule {
        id: "raid.state",
        threshold: Threshold::plain("no member is missing, and none is being built"),
        reason: "a degraded array is slower, and one more failure loses it",
        source: "kernel, admin-guide/md",
        class: Kernel,
        check: Check::Host(array),
    },
    Rule {
        id: "lustre.stripes",
        threshold: Threshold::of("{} or more for directories of large files", &[Limit::Count(STRIPES)]),
        reason: "a file lies on one server for each stripe",
        source: "fasterdata.es.net, Lustre",
        class: EsnetTable,
        check: Check::Host(stripes),
    },
];

/// Bytes of a record.
const RECORD: u64 = 1 << 20;
/// The power of two that a sector has bytes.
const SHIFT: u64 = 12;
/// Of a hundred: what may be in use of a pool.
const FULL: u64 = 80;
/// Of a hundred: the memory that ZFS may have for its cache at least.
const CACHE: u64 = 10;
/// Stripes of a file.
const STRIPES: u64 = 4;

/// Whether the directory lies on this kind of file system.
fn is_on(view: &View<'_>, kind: &str) -> bool {
    view.facts.mount().is_ok_and(|mount| mount.kind == kind)
}

fn checksum(view: &View<'_>) -> Known<Vec<Told>> {
    if !is_on(view, "zfs") {
        return Ok(Vec::new());
    }
    let (mount, kind) = (view.facts.mount()?, view.facts.dataset("checksum")?);
    if kind != "off" {
        return Ok(vec![Told::ok(kind).about(mount.source)]);
    }
    let told = Told::failure("off").about(mount.source).costs("damage by a disk is read as if it were data");
    Ok(vec![
        told.command(format!("zfs set checksum=on {}   # for what is written from then on", shell_word(mount.source))),
    ])
}

fn record(view: &View<'_>) -> Known<Vec<Told>> {
    if !is_on(view, "zfs") {
        return Ok(Vec::new());
    }
    let (mount, text) = (view.facts.mount()?, view.facts.dataset("recordsize")?);
    let bytes = bytes(text)?;
    if bytes >= RECORD as f64 {
        return Ok(vec![Told::ok(units::bytes(bytes)).about(mount.source)]);
    }
    let told = Told::warning(units::bytes(bytes)).about(mount.source);
    let told = told.costs(format!("{:.0} records where one would do", RECORD as f64 / bytes.max(512.0)));
    Ok(vec![told.command(format!(
        "zfs set recordsize={RECORD} {}   # for files that are written from then on",
        shell_word(mount.source)
    ))])
}

/// `131072`, as `-p` has it, or `128K`.
fn bytes(text: &str) -> Known<f64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let power = match unit {
        "" => 0,
        "K" => 1,
        "M" => 2,
        _ => return Err(Unknown::because("the size cannot be read")),
    };
    number
        .parse::<f64>()
        .map(|number| number * 1024_f64.powi(power))
        .map_err(|_| Unknown::because("the size cannot be read"))
}

fn atime(view: &View<'_>) -> Known<Vec<Told>> {
    if !is_on(view, "zfs") {
        return Ok(Vec::new());
    }
    let mount = view.facts.mount()?;
    if view.facts.dataset("atime")? == "off" || view.facts.dataset("relatime") == Ok("on") {
        return Ok(vec![Told::ok("a read is no write").about(mount.source)]);
    }
    let told = Told::warning("on").about(mount.source).costs("a write for each file that is read");
    Ok(vec![told.command(format!("zfs set atime=off {}", shell_word(mount.source)))])
}

/// The property of the data set, and what is mounted; `None` where it is no ZFS.
fn property<'a>(view: &View<'a>, name: &str) -> Known<Option<(&'a str, &'a str)>> {
    if !is_on(view, "zfs") {
        return Ok(None);
    }
    Ok(Some((view.facts.dataset(name)?, view.facts.mount()?.source)))
}

fn sync(view: &View<'_>) -> Known<Vec<Told>> {
    let Some((kind, source)) = property(view, "sync")? else { return Ok(Vec::new()) };
    if kind != "disabled" {
        return Ok(vec![Told::ok(kind).about(source)]);
    }
    let told = Told::failure("disabled").about(source).costs("a power cut loses files that were reported as durable");
    Ok(vec![told.command(format!("zfs set sync=standard {}", shell_word(source)))])
}

fn dedup(view: &View<'_>) -> Known<Vec<Told>> {
    let Some((kind, source)) = property(view, "dedup")? else { return Ok(Vec::new()) };
    if kind == "off" {
        return Ok(vec![Told::ok("off").about(source)]);
    }
    let told = Told::warning(kind).about(source).costs("writes that read the table of all blocks first");
    Ok(vec![told.command(format!("zfs set dedup=off {}   # for what is written from then on", shell_word(source)))])
}

fn cache(view: &View<'_>) -> Known<Vec<Told>> {
    let Some((kind, source)) = property(view, "primarycache")? else { return Ok(Vec::new()) };
    if kind != "all" {
        let told = Told::warning(format!("primarycache={kind}")).about(source);
        let told = told.costs("reads that wait for the disks, each by itself");
        return Ok(vec![told.command(format!("zfs set primarycache=all {}", shell_word(source)))]);
    }
    // Hosts of an older Carrack do not tell how large the cache may be.
    let most = view.facts.text("proc/spl/kstat/zfs/arcstats").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("c_max "))?;
        line.split_whitespace().last()?.parse::<u64>().ok()
    });
    let (Some(most), Ok(all)) = (most, view.facts.memory("MemTotal")) else {
        return Ok(vec![Told::ok("all").about(source)]);
    };
    let value = format!("all; the ARC may have {} of {}", units::bytes(most as f64), units::bytes(all as f64));
    if most as f64 >= all as f64 * CACHE as f64 / 100.0 {
        return Ok(vec![Told::ok(value).about(source)]);
    }
    let told = Told::warning(value).about(source).costs("what was read ahead is gone before it is wanted");
    let least = all / 2;
    Ok(vec![told.command(format!("echo {least} > /sys/module/zfs/parameters/zfs_arc_max   # until the next boot"))])
}

fn ashift(view: &View<'_>) -> Known<Vec<Told>> {
    if !is_on(view, "zfs") {
        return Ok(Vec::new());
    }
    let mount = view.facts.mount()?;
    let shift: u64 = view.facts.pool("ashift")?.parse().map_err(|_| Unknown::because("ashift is no number"))?;
    match shift {
        0 => Err(Unknown::because("the pool lets each disk choose its ashift: zdb -C tells it")),
        SHIFT.. => Ok(vec![Told::ok(shift.to_string()).about(mount.source)]),
        _ => {
            let told = Told::warning(shift.to_string()).about(mount.source);
            let told = told.costs("disks read 4 KiB for each smaller write");
            Ok(vec![
                told.advice(format!(
                    "make the pool anew with zpool create -o ashift={SHIFT}: it cannot be changed later"
                )),
            ])
        }
    }
}

fn pool(view: &View<'_>) -> Known<Vec<Told>> {
    if !is_on(view, "zfs") {
        return Ok(Vec::new());
    }
    let mount = view.facts.mount()?;
    let name = mount.source.split('/').next().unwrap_or_default();
    let health = view.facts.pool("health")?;
    let mut all = Vec::new();
    let layout = view.facts.text("command/zpool status").map(layout).unwrap_or_default();
    if health == "ONLINE" {
        all.push(Told::ok(format!("ONLINE{layout}")).about(name));
    } else {
        let told = Told::failure(format!("{health}{layout}")).about(name);
        let told = told.costs("reads are put together from the other disks, and one more failure may lose data");
        all.push(told.command(format!(
            "zpool status -x {name}   # then: zpool replace {name} OLD NEW",
            name = shell_word(name)
        )));
    }
    let full: f64 = view.facts.pool("capacity")?.trim_end_matches('%').parse().unwrap_or(0.0);
    if full >= FULL as f64 {
        let told =
            Told::warning(format!("{full:.0} % in use")).about(name).costs("writes go into gaps, and get slower");
        all.push(told.advice("remove what is not needed, snapshots included: zfs list -t snapshot"));
    }
    Ok(all)
}

/// `: 2 x raidz1`, of the lines of `zpool status`.
fn layout(status: &str) -> String {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for line in status.lines().map(str::trim) {
        let name = line.split_whitespace().next().unwrap_or_default();
        let Some((kind, number)) = name.rsplit_once('-') else { continue };
        let is_group = ["raidz1", "raidz2", "raidz3", "mirror"].contains(&kind) && number.parse::<u32>().is_ok();
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            _ if !is_group => {}
            Some((_, count)) => *count += 1,
            None => kinds.push((kind, 1)),
        }
    }
    let words: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} x {kind}")).collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) }
}

fn array(view: &View<'_>) -> Known<Vec<Told>> {
    if !super::storage::is_asked(view) {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for array in view.facts.devices()?.into_iter().filter(|device| device.is_array()) {
        let level = array.text("md/level")?;
        // Arrays without spare data (raid0, linear) have no such files.
        let Ok(missing) = array.number("md/degraded") else {
            all.push(Told::ok(level).about(array.name));
            continue;
        };
        let action = array.text("md/sync_action").unwrap_or("idle");
        let value = format!("{level}, {missing} missing, {action}");
        let told = match (missing, action) {
            (0, "idle" | "frozen") => {
                all.push(Told::ok(value).about(array.name));
                continue;
            }
            (0, _) => {
                Told::warning(value).costs("its disks are busy with that").advice("wait until /proc/mdstat shows none")
            }
            (_, _) => Told::failure(value)
                .costs("reads are put together from the other disks, and one more failure may lose data")
                .command(format!("mdadm --manage /dev/{} --add /dev/NEW", array.name)),
        };
        all.push(told.about(array.name));
    }
    Ok(all)
}

fn stripes(view: &View<'_>) -> Known<Vec<Told>> {
    if !is_on(view, "lustre") {
        return Ok(Vec::new());
    }
    let (directory, text) = (view.facts.directory()?, view.facts.text("command/lfs getstripe")?);
    let mut words = text.split_whitespace().skip_while(|word| *word != "stripe_count:").skip(1);
    let count: i64 = words.next().and_then(|word| word.parse().ok()).ok_or_else(|| {
        Unknown::because("lfs getstripe tells no stripe_count: the directory may have a layout in parts")
    })?;
    // -1 is one for each server.
    if count >= STRIPES as i64 || count == -1 || text.contains("lcm_layout_gen") {
        return Ok(vec![Told::ok(format!("{count} stripes")).about(directory)]);
    }
    let told = Told::warning(format!("{count} stripes")).about(directory);
    let told = told.costs(format!("each file is limited to what {} of the servers give", count.max(1)));
    Ok(vec![told.command(format!("lfs setstripe -c {STRIPES} {}   # for new files", shell_word(directory)))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_is_described_and_sizes_are_read() {
        let status =
            "  pool: big\n config:\n\tbig  ONLINE\n\t  raidz1-0  ONLINE\n\t    sda  ONLINE\n\t  raidz1-1  ONLINE\n";
        assert_eq!(layout(status), ": 2 x raidz1");
        assert_eq!(layout("\tbig ONLINE\n\t ata-INTEL-1 ONLINE\n"), "");
        assert_eq!((bytes("1048576"), bytes("128K")), (Ok(1048576.0), Ok(131072.0)));
        assert!(bytes("x").is_err());
    }
}
