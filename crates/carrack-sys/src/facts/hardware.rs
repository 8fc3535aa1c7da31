//! What the kernel has noticed of failing hardware: its log, as far as this user may read it, and counters of errors in
//! memory.

use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use super::{About, Gatherer};

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
];
/// Lines that are told, the latest ones.
const LINES: usize = 64;
/// Bytes of the log that are read.
const LOG_BYTES: usize = 4 << 20;
/// The kernel gives a record at a time, and none is longer.
const RECORD_BYTES: usize = 8192;

pub(super) fn gather(facts: &mut Gatherer, _: About<'_>) {
    facts.each("sys/devices/system/edac/mc", &["ce_count", "ue_count", "mc_name"]);
    let log = log(facts).map(|lines| lines.join("\n"));
    facts.put("kernel-log", log);
}

fn log(facts: &Gatherer) -> io::Result<Vec<String>> {
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
                lines.extend(String::from_utf8_lossy(&record[..count]).lines().filter_map(told));
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

/// `4,1234,56789,-;text`: the text, if it is one of those that are told.
fn told(line: &str) -> Option<String> {
    let text = line.split_once(';').map_or(line, |(_, text)| text);
    TOLD.iter().any(|wanted| text.contains(wanted)).then(|| text.chars().take(240).collect())
}

#[cfg(test)]
mod tests {
    use super::super::FactText;
    use super::*;

    #[test]
    fn log_tells_losses_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("dev")).unwrap();
        let noise = "6,1,1,-;usb 1-1: new device\n".repeat(1000);
        let text = format!("3,2,2,-;Buffer I/O error on dev sdb1, logical block 7, lost async page write\n{noise}");
        std::fs::write(root.path().join("dev/kmsg"), text).unwrap();
        let lines = log(&Gatherer::at(root.path())).unwrap();
        assert_eq!(lines, ["Buffer I/O error on dev sdb1, logical block 7, lost async page write"]);
        let many: String = (0..200).map(|number| format!("3,1,1,-;{number} I/O error\n")).collect();
        std::fs::write(root.path().join("dev/kmsg"), many).unwrap();
        let lines = log(&Gatherer::at(root.path())).unwrap();
        assert!(lines.len() == LINES && lines[LINES - 1].starts_with("199"), "{lines:?}");
        let none = tempfile::tempdir().unwrap();
        assert_eq!(FactText::from(log(&Gatherer::at(none.path())).map(|_| String::new())), FactText::Absent);
    }
}
