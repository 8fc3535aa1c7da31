//! What the system counts: processors, threads, block devices, network interfaces, pressure, control groups.
//!
//! Everything is read from `/proc` and `/sys`. Where there is none, or it does not say, the answer is `None` or zeros:
//! whoever measures does without. Counters are those of the system, since it started.

mod device;
mod group;
mod interface;
mod processor;

pub use device::{DeviceFacts, device};
pub use group::{GroupPaths, Pressure, Throttled, pressure};
pub use interface::{InterfaceFacts, interface, interface_of};
pub use processor::{Busy, Processors, ThreadFacts, process_cpu_time, processors, thread, thread_number};

/// A file's text, as far as it is text; `None` where it cannot be read.
fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The number behind a word in lines such as `nr_throttled 7`.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "nr_periods 3\nnr_throttled 7\nthrottled_usec x\n";
        assert_eq!(field(text, "nr_throttled"), Some(7));
        assert_eq!(field(text, "nr"), None);
        assert_eq!(field(text, "throttled_usec"), None);
        assert_eq!(read("/no/such/file"), None);
    }
}
