//! What the kernel has noticed of failing hardware: its log, as far as this user may read it, and counters of errors in
//! memory.

use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use super::{About, FactText, Gatherer};

/// Lines that mean lost or damaged data, or a host that could not keep up; everything else is nobody's business.
const TOLD: &[&str] = &[
    "lost page write",
    "lost async page write",
    "lost sync page write",
    "I/O error",
    "critical medium error",
    "Uncorrected error",
    "Machine Check",
    "Hardware Error",
    "TCP: out of memory",
    "NETDEV WATCHDOG",
    "not responding, still trying",
    "Remounting filesystem read-only",
    "nf_conntrack: table full",
    "neighbor table overflow",
    "BTRFS error",
    "EXT4-fs error",
    "Shutting down filesystem",
    "Disk failure on",
    "Link is Down",
    "Out of memory: Killed process",
    "AER:",
    "PCIe Bus Error",
    "blocked for more than",
    "soft lockup",
    "temperature above threshold",
];
/// Lines that are told, the latest ones.
const LINES: usize = 64;
/// Bytes of the log that are read.
const LOG_BYTES: usize = 4 << 20;
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
#[derive(Debug, PartialEq, Eq)]
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
    let (mut lines, mut bytes) = (Vec::new(), 0);
    let mut record = vec![0; RECORD_BYTES];
    while bytes < LOG_BYTES {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(count) => {
                bytes += count;
                lines.extend(String::from_utf8_lossy(&record[..count]).lines().filter_map(|line| told(line, uptime)));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // Records were overwritten while they were read: the next one is there.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => bytes += 1,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let first = lines.len().saturating_sub(LINES);
    Ok(lines.split_off(first))
}

/// `4,1234,56789,-;text`: the text, if it is one of those that are told; the third number is its time in microseconds.
/// A line that bears no time is as old as the host.
fn told(line: &str, uptime: u64) -> Option<LogLine> {
    let (head, text) = line.split_once(';').unwrap_or(("", line));
    TOLD.iter().any(|wanted| text.contains(wanted)).then(|| {
        let stamp = head.split(',').nth(2).and_then(|stamp| stamp.parse::<u64>().ok()).unwrap_or(0);
        LogLine { text: text.chars().take(240).collect(), age: uptime.saturating_sub(stamp) / 1_000_000 }
    })
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
}
