//! Block devices.

use std::time::Duration;

/// What a block device has done since the system started, for anybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// As the kernel names it.
    pub name: String,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Requests completed.
    pub requests: u64,
    /// Time that requests took, summed over them.
    pub wait: Duration,
    /// Time in which at least one request was in flight.
    pub busy: Duration,
    /// Requests in flight.
    pub in_flight: u64,
}

/// The block device of this number, as a file's `st_dev` has it; `None` where a file system has no device of its own,
/// as memory, network and stacked ones, and off Linux.
pub fn device(number: u64) -> Option<DeviceFacts> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let place = format!("/sys/dev/block/{major}:{minor}");
    let name = std::fs::read_link(&place).ok()?.file_name()?.to_string_lossy().into_owned();
    parse(&super::read(&format!("{place}/stat"))?, name)
}

/// The kernel's `Documentation/block/stat.rst`: sectors of 512 bytes, times in milliseconds.
fn parse(text: &str, name: String) -> Option<DeviceFacts> {
    let numbers: Vec<u64> = text.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let [reads, _, read, read_ms, writes, _, written, write_ms, in_flight, busy_ms, ..] = numbers[..] else {
        return None;
    };
    Some(DeviceFacts {
        name,
        read_bytes: read.saturating_mul(512),
        written_bytes: written.saturating_mul(512),
        requests: reads.saturating_add(writes),
        wait: Duration::from_millis(read_ms.saturating_add(write_ms)),
        busy: Duration::from_millis(busy_ms),
        in_flight,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_counters_are_read() {
        let text = "     100      3   2048      40     50      1  4096      60      2      70    100 0 0 0 0 0 0\n";
        let facts = parse(text, "sda".into()).unwrap();
        assert_eq!((facts.read_bytes, facts.written_bytes, facts.requests), (1 << 20, 2 << 20, 150));
        assert_eq!((facts.wait, facts.busy), (Duration::from_millis(100), Duration::from_millis(70)));
        assert_eq!(facts.in_flight, 2);
        for wrong in ["", "1 2 3", "1 2 3 4 5 6 7 8 9 x"] {
            assert_eq!(parse(wrong, String::new()), None, "{wrong:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn file_systems_without_a_device_have_none() {
        use std::os::unix::fs::MetadataExt;
        assert_eq!(device(std::fs::metadata("/proc").unwrap().dev()), None);
        assert_eq!(device(u64::MAX), None);
        // Some device that there is.
        let listed = std::fs::read_dir("/sys/dev/block").into_iter().flatten().flatten().next();
        if let Some(entry) = listed {
            let text = entry.file_name().into_string().unwrap();
            let (major, minor) = text.split_once(':').unwrap();
            let number = rustix::fs::makedev(major.parse().unwrap(), minor.parse().unwrap());
            assert!(!device(number).unwrap().name.is_empty());
        }
    }
}
