//! What this host counts while an end is at work: processors, devices, the interface, pressure.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use carrack_core::ids::StreamId;
use carrack_core::limits;
use carrack_core::timeline::{
    DeviceCounts, DeviceSample, InterfaceCounts, InterfaceSample, Pressure, ProcessorState, ProcessorTime, Sample,
    ThreadTime, Throttled,
};
use carrack_sys::measure as sys;

/// Reads what the host counts, from a beginning on.
pub struct Meter {
    /// Numbers of the devices that files lie on.
    devices: Vec<u64>,
    groups: sys::GroupPaths,
    /// Processors that this process may use.
    allowed: usize,
    /// Name of the interface that the data goes over.
    interface: Option<String>,
    /// Whether the whole host is told of, not the transfer's own threads alone.
    tells_host: bool,
    /// What the host had counted at the beginning.
    start: Sample,
    last: Last,
}

/// Of the last reading: what shares of the time are made of.
struct Last {
    at: Instant,
    processors: sys::Processors,
    threads: HashMap<StreamId, ThreadTime>,
}

impl Meter {
    /// Begins to count. `devices` are numbers of file systems, as `st_dev` has them; `tells_host`: what the whole host
    /// does is told, too.
    pub fn new(mut devices: Vec<u64>, tells_host: bool) -> Self {
        devices.sort_unstable();
        devices.dedup();
        devices.truncate(limits::SAMPLE_DEVICES);
        let processors = Self::processors(tells_host);
        let last = Last { at: Instant::now(), processors: processors.clone(), threads: HashMap::new() };
        let (groups, allowed) = (sys::GroupPaths::find(), carrack_sys::host::cpu_count());
        let mut meter = Self { devices, groups, allowed, interface: None, tells_host, start: Sample::default(), last };
        meter.start = meter.absolute(&processors);
        meter
    }

    /// The data goes over a connection that has this address here. The first one counts.
    pub fn set_address(&mut self, address: IpAddr) {
        if self.tells_host
            && self.interface.is_none()
            && let Some(name) = sys::interface_of(address)
        {
            self.interface = Some(name);
            self.start.interface = self.read_interface();
        }
    }

    /// Fills in what the host has counted since the beginning. `threads` are those of the streams.
    pub fn fill(&mut self, sample: &mut Sample, threads: HashMap<StreamId, ThreadTime>, all_threads: ThreadTime) {
        let processors = Self::processors(self.tells_host);
        let now = self.absolute(&processors);
        let start = &self.start;
        let counted = now.processor.since(&start.processor);
        sample.processor = ProcessorTime {
            // The process of a node serves others as well, of which a guest learns nothing.
            process_us: if self.tells_host { counted.process_us } else { all_threads.cpu_us },
            streams_us: all_threads.cpu_us,
            starved_us: all_threads.starved_us,
            ..counted
        };
        sample.pressure = now.pressure.since(&start.pressure);
        sample.group_pressure = now.group_pressure.since(&start.group_pressure);
        sample.throttled = now.throttled.since(&start.throttled);
        sample.devices = now.devices;
        for device in &mut sample.devices {
            if let Some(earlier) = start.devices.iter().find(|earlier| earlier.name == device.name) {
                device.counts = device.counts.since(&earlier.counts);
            }
        }
        sample.interface = now.interface;
        if let (Some(interface), Some(earlier)) = (&mut sample.interface, &start.interface) {
            interface.counts = interface.counts.since(&earlier.counts);
        }
        sample.processor_state = self.state(processors, threads);
    }

    /// How the processors stood since the last time.
    fn state(&mut self, processors: sys::Processors, threads: HashMap<StreamId, ThreadTime>) -> ProcessorState {
        let now = Instant::now();
        let span = now.saturating_duration_since(self.last.at);
        let before = std::mem::replace(&mut self.last, Last { at: now, processors, threads });
        let each = self.last.processors.each.iter().zip(&before.processors.each);
        let shares: Vec<u64> = each
            .map(|(now, before)| {
                let (busy, idle) = (now.busy.saturating_sub(before.busy), now.idle.saturating_sub(before.idle));
                permille(busy, busy + idle)
            })
            .collect();
        let of_threads = |time: fn(&ThreadTime) -> u64| {
            let used = self.last.threads.iter().map(|(stream, now)| {
                let before = before.threads.get(stream).copied().unwrap_or_default();
                permille(Duration::from_micros(time(&now.since(&before))), span)
            });
            used.max().unwrap_or(0)
        };
        ProcessorState {
            // A guest learns no more of the host than what the transfer may use of it.
            cores: if self.tells_host { self.last.processors.each.len() } else { self.allowed } as u64,
            idle_cores: shares.iter().filter(|share| **share < 500).count() as u64,
            busiest_core_permille: shares.iter().copied().max().unwrap_or(0),
            busiest_thread_permille: of_threads(|time| time.cpu_us),
            starved_thread_permille: of_threads(|time| time.starved_us),
            allowed_permille: 1000 * self.allowed as u64,
        }
    }

    /// Nothing where only the transfer is told of.
    fn processors(tells_host: bool) -> sys::Processors {
        if tells_host { sys::processors().unwrap_or_default() } else { sys::Processors::default() }
    }

    /// What the host has counted since it started.
    fn absolute(&self, processors: &sys::Processors) -> Sample {
        let all = &processors.all;
        // How a quota holds this process back says nothing of others, and whose transfer it is has to know it.
        let sys::Throttled { periods, time } = self.groups.throttled();
        let throttled = Throttled { periods, time_us: micros(time) };
        if !self.tells_host {
            return Sample { throttled, ..Sample::default() };
        }
        Sample {
            processor: ProcessorTime {
                process_us: micros(sys::process_cpu_time()),
                busy_us: micros(all.busy),
                idle_us: micros(all.idle),
                disk_wait_us: micros(all.disk_wait),
                stolen_us: micros(all.stolen),
                ..ProcessorTime::default()
            },
            devices: self.devices.iter().filter_map(|number| sys::device(*number)).map(device).collect(),
            interface: self.read_interface(),
            pressure: pressure(sys::pressure()),
            group_pressure: pressure(self.groups.pressure()),
            throttled,
            ..Sample::default()
        }
    }

    fn read_interface(&self) -> Option<InterfaceSample> {
        let name = self.interface.clone()?;
        let facts = sys::interface(&name)?;
        let counts = InterfaceCounts {
            received_bytes: facts.received_bytes,
            sent_bytes: facts.sent_bytes,
            received_dropped: facts.received_dropped,
            sent_dropped: facts.sent_dropped,
            errors: facts.errors,
        };
        Some(InterfaceSample { name, counts, speed_bits: facts.speed_bits })
    }
}

fn device(facts: sys::DeviceFacts) -> DeviceSample {
    let counts = DeviceCounts {
        read_bytes: facts.read_bytes,
        written_bytes: facts.written_bytes,
        requests: facts.requests,
        wait_us: micros(facts.wait),
        busy_us: micros(facts.busy),
    };
    DeviceSample { name: facts.name, counts, in_flight: facts.in_flight }
}

fn pressure(facts: sys::Pressure) -> Pressure {
    Pressure {
        cpu_some_us: micros(facts.cpu_some),
        io_some_us: micros(facts.io_some),
        io_full_us: micros(facts.io_full),
        memory_some_us: micros(facts.memory_some),
        memory_full_us: micros(facts.memory_full),
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A part of a time, in thousandths, no more than all of it.
fn permille(part: Duration, of: Duration) -> u64 {
    if of.is_zero() { 0 } else { (part.as_secs_f64() / of.as_secs_f64() * 1000.0).min(1000.0) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meter_counts_from_its_beginning() {
        let mut meter = Meter::new(vec![u64::MAX, u64::MAX], true);
        let start = carrack_sys::host::thread_cpu_time();
        while carrack_sys::host::thread_cpu_time() - start < Duration::from_millis(40) {
            std::hint::black_box(0);
        }
        meter.set_address("127.0.0.1".parse().unwrap());
        let busy = |cpu_us| HashMap::from([(StreamId(3), ThreadTime { cpu_us, starved_us: 0 })]);
        let mut sample = Sample::default();
        meter.fill(&mut sample, busy(0), ThreadTime { cpu_us: 5, starved_us: 6 });
        assert_eq!((sample.processor.streams_us, sample.processor.starved_us), (5, 6));
        assert!(sample.devices.is_empty(), "no device has that number");
        assert!(sample.processor.process_us < 600_000_000, "since the beginning, not since the process began");
        // A thread that used all of the time since.
        meter.fill(&mut sample, busy(600_000_000), ThreadTime::default());
        assert_eq!(sample.processor_state.busiest_thread_permille, 1000);
        assert!(sample.processor_state.allowed_permille >= 1000);
        #[cfg(target_os = "linux")]
        {
            assert!(sample.processor.process_us >= 30_000, "{:?}", sample.processor);
            assert_eq!(sample.interface.as_ref().map(|interface| &interface.name[..]), Some("lo"));
            assert!(sample.processor_state.cores >= 1);
        }
    }

    #[test]
    fn meter_of_a_guest_tells_of_its_transfer_alone() {
        let root = std::fs::metadata("/").map(|facts| std::os::unix::fs::MetadataExt::dev(&facts)).unwrap();
        let mut meter = Meter::new(vec![root], false);
        meter.set_address("127.0.0.1".parse().unwrap());
        // What others do in the same process.
        let start = carrack_sys::host::thread_cpu_time();
        while carrack_sys::host::thread_cpu_time() - start < Duration::from_millis(5) {
            std::hint::black_box(0);
        }
        let mut sample = Sample::default();
        meter.fill(&mut sample, HashMap::new(), ThreadTime { cpu_us: 5, starved_us: 6 });
        let of_threads = ProcessorTime { process_us: 5, streams_us: 5, starved_us: 6, ..ProcessorTime::default() };
        assert_eq!(sample.processor, of_threads);
        assert_eq!((sample.pressure, sample.group_pressure), (Pressure::default(), Pressure::default()));
        assert!(sample.devices.is_empty() && sample.interface.is_none());
        // What a quota or an affinity leaves of the host is about this process, too.
        let state = sample.processor_state;
        assert_eq!((state.cores, state.busiest_core_permille), (carrack_sys::host::cpu_count() as u64, 0));
        let groups = sys::GroupPaths::find();
        assert_eq!(meter.absolute(&sys::Processors::default()).throttled.periods, groups.throttled().periods);
    }

    #[test]
    fn shares_are_no_more_than_all() {
        let second = Duration::from_secs(1);
        assert_eq!([permille(second, second * 4), permille(second * 9, second)], [250, 1000]);
        assert_eq!(permille(second, Duration::ZERO), 0);
    }
}
