//! What the kernel has noticed of failing hardware: its log, as far as this user may read it, and counters of errors in
//! memory.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use super::{About, FactText, Gatherer};

/// Lines that mean lost or damaged data, or a host that could not keep up; everything else is nobody's business. Of
/// each kind the latest are told: a flood of one does not push out another. Drivers write the same words with other
/// letters, so all are compared in small ones.
const KINDS: &[&[&str]] = &[
    &[
        "lost page write",
        "lost async page write",
        "lost sync page write",
        "i/o error",
        "critical medium error",
        "not responding, still trying",
        "remounting filesystem read-only",
        "btrfs error",
        "ext4-fs error",
        "shutting down filesystem",
        "disk failure on",
    ],
    &["netdev watchdog", "link is down", "link down", "link status definitely down"],
    &["aer:", "pcie bus error"],
    // "Kill process" before Linux 5.3, "Killed process" since.
    &["uncorrected error", "machine check", "hardware error", "out of memory: kill"],
    &[
        "tcp: out of memory",
        "nf_conntrack: table full",
        "neighbor table overflow",
        "blocked for more than",
        "soft lockup",
        "temperature above threshold",
    ],
];
/// Lines that a host writes at each boot, and that look like one of these: ports of PCIe, and of disks that are not
/// there.
const USUAL: &[&str] = &["aer: enabled with irq", "sata link down"];
/// Lines of a kind that are told, the latest ones, and the characters of a line: all kinds together fit into one text
/// of the evidence.
const LINES: usize = 64;
const LINE_CHARS: usize = 200;
/// Bytes of the log that are read: no kernel keeps more, but one may write while it is read.
const LOG_BYTES: usize = 256 << 20;
/// The kernel gives a record at a time, and none is longer.
const RECORD_BYTES: usize = 8192;

pub(super) fn gather(facts: &mut Gatherer, _: About<'_>) {
    facts.each("sys/devices/system/edac/mc", &["ce_count", "ue_count", "mc_name"]);
    let log = log(facts, uptime());
    let ages = log.as_ref().map(|lines| lines.iter().map(|line| line.age.to_string()).collect::<Vec<_>>().join("\n"));
    facts.put("kernel-log-ages", ages.map_or(FactText::Absent, FactText::Found));
    facts.put("kernel-log", log.map(|lines| lines.into_iter().map(|line| line.text).collect::<Vec<_>>().join("\n")));
}

/// A line of the log that is told.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LogLine {
    text: String,
    /// Seconds since the kernel wrote it.
    age: u64,
}

/// Microseconds of the clock that the kernel stamps its records with.
fn uptime() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0).saturating_mul(1_000_000) + u64::try_from(now.tv_nsec).unwrap_or(0) / 1000
}

fn log(facts: &Gatherer, uptime: u64) -> io::Result<Vec<LogLine>> {
    let mut options = std::fs::File::options();
    // At its end the log would wait for more.
    let mut file = options.read(true).custom_flags(libc::O_NONBLOCK).open(facts.root.join("dev/kmsg"))?;
    let (mut kinds, mut bytes, mut number) = (vec![VecDeque::new(); KINDS.len()], 0, 0);
    let mut record = vec![0; RECORD_BYTES];
    while bytes < LOG_BYTES {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(count) => {
                bytes += count;
                for line in String::from_utf8_lossy(&record[..count]).lines() {
                    let Some((kind, line)) = told(line, uptime) else { continue };
                    number += 1;
                    kinds[kind].push_back((number, line));
                    if kinds[kind].len() > LINES {
                        kinds[kind].pop_front();
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // Records were overwritten while they were read: the next one is there.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => bytes += 1,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut lines: Vec<(usize, LogLine)> = kinds.into_iter().flatten().collect();
    lines.sort_unstable_by_key(|(number, _)| *number);
    Ok(lines.into_iter().map(|(_, line)| line).collect())
}

/// `4,1234,56789,-;text`: the kind and the text, if it is one of those that are told; the third number is its time in
/// microseconds. A line that bears no time is as old as the host.
fn told(line: &str, uptime: u64) -> Option<(usize, LogLine)> {
    let (head, text) = line.split_once(';').unwrap_or(("", line));
    let small = text.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|wanted| small.contains(wanted));
    let kind = KINDS.iter().position(|words| has(words)).filter(|_| !has(USUAL))?;
    let stamp = head.split(',').nth(2).and_then(|stamp| stamp.parse::<u64>().ok()).unwrap_or(0);
    let text = text.chars().take(LINE_CHARS).collect();
    Some((kind, LogLine { text, age: uptime.saturating_sub(stamp) / 1_000_000 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_tells_losses_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("dev")).unwrap();
        let noise = "6,1,1,-;usb 1-1: new device\n".repeat(1000);
        let text =
            format!("3,2,40000000,-;Buffer I/O error on dev sdb1, logical block 7, lost async page write\n{noise}");
        std::fs::write(root.path().join("dev/kmsg"), text).unwrap();
        let lines = log(&Gatherer::at(root.path()), 100_000_000).unwrap();
        let text = "Buffer I/O error on dev sdb1, logical block 7, lost async page write".to_owned();
        assert_eq!(lines, [LogLine { text, age: 60 }]);
        let many: String = (0..200).map(|number| format!("3,1,1,-;{number} I/O error\n")).collect();
        std::fs::write(root.path().join("dev/kmsg"), many).unwrap();
        let lines = log(&Gatherer::at(root.path()), 0).unwrap();
        assert!(lines.len() == LINES && lines[LINES - 1].text.starts_with("199"), "{lines:?}");
        let none = tempfile::tempdir().unwrap();
        assert_eq!(FactText::from(log(&Gatherer::at(none.path()), 0).map(|_| String::new())), FactText::Absent);
    }

    /// Lines as drivers and kernels write them.
    #[test]
    fn log_tells_each_driver_s_words_and_none_of_a_boot() {
        let is_told = |line: &str| told(&format!("3,1,1,-;{line}"), 0).is_some();
        for line in [
            "mlx5_core 0000:3b:00.0 ens1: Link down",
            "mlx4_en: eth2: Link Down",
            "tg3 0000:02:00.0 eth0: Link is down",
            "e1000e 0000:00:03.0 eth0: NIC Link is Down",
            "bond0: (slave eth1): link status definitely down, disabling slave",
            "Out of memory: Kill process 4242 (rsync) score 900 or sacrifice child",
            "Out of memory: Killed process 4242 (rsync) total-vm:1kB",
            "Memory cgroup out of memory: Killed process 4242 (rsync) total-vm:1kB",
            "pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0",
        ] {
            assert!(is_told(line), "{line}");
        }
        for line in
            ["pcieport 0000:00:1c.0: AER: enabled with IRQ 122", "ata1: SATA link down (SStatus 0 SControl 300)"]
        {
            assert!(!is_told(line), "{line}");
        }
    }

    #[test]
    fn flood_of_one_kind_pushes_out_no_other_and_the_end_of_a_long_log_is_read() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("dev")).unwrap();
        let lost = "3,1,1,-;Buffer I/O error on dev sda, logical block 7, lost async page write\n";
        let flood = "4,1,1,-;pcieport 0000:00:01.0: AER: Corrected error received\n".repeat(100);
        let noise = format!("6,1,1,-;{}\n", "usb ".repeat(250)).repeat(5 << 10);
        let end = "4,1,1,-;mlx5_core 0000:3b:00.0 ens1: Link down\n";
        std::fs::write(root.path().join("dev/kmsg"), format!("{lost}{flood}{noise}{end}")).unwrap();
        let lines = log(&Gatherer::at(root.path()), 0).unwrap();
        assert!(
            lines[0].text.contains("lost async page write") && lines[LINES + 1].text.contains("Link down"),
            "{lines:?}"
        );
        assert_eq!(lines.len(), LINES + 2);
    }
}
