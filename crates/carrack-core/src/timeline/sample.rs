//! One end of a transfer at one moment.

use super::counters::{
    DeviceCounts, InterfaceCounts, Pressure, ProcessorState, ProcessorTime, StageTime, TcpCounts, TcpState, ThreadTime,
    Throttled,
};
use super::start::StepTime;
use crate::words::words;

words! {
    /// What threads of an end do.
    pub enum Work {
        /// At the source, in the thread of the scan.
        1 List "list" "list directories and look at files"
        /// At the source, in the threads of the streams.
        2 Find "find" "open files"
        /// At the source, in the threads of the streams.
        3 Read "read" "read files"
        /// At both ends, in the threads of the streams.
        4 Hash "hash" "compute digests"
        /// At the source, in the threads of the streams.
        5 Seal "seal" "encrypt"
        /// At the source, in the threads of the streams.
        6 Send "send" "hand over to the connection"
        /// At the source, in the threads of the streams.
        7 Pace "pace" "wait for the rate limit"
        /// At the destination, in the threads of the streams.
        8 Receive "receive" "take from the connection"
        /// At the destination, in the threads of the streams.
        9 Open "open" "decrypt"
        /// At the destination, in the threads of the streams.
        10 Create "create" "make small files, links and directories, whole"
        /// At the destination, in the threads of the streams.
        11 Write "write" "write large files"
        /// At the destination, in one thread.
        12 Begin "begin" "make large files, before their first byte"
        /// At the destination, in one thread, or two.
        13 Sync "sync" "bring files to stable storage"
        /// At the destination, in one thread.
        14 Publish "publish" "give files their names"
        /// At the source, in the threads of the streams.
        15 Compress "compress" "compress"
        /// At the destination, in the threads of the streams.
        16 Unpack "unpack" "unpack what came compressed"
    }
}

words! {
    /// Where something waits between two stages.
    pub enum Queue {
        /// At the source: bundles that the scan has filled and no stream has taken.
        1 Bundles "bundles" "small files found, in bundles"
        /// At the source: files offered to the receiver, or ready to be.
        2 Offers "offers" "large files found"
        /// At the source: send buffers of the sockets, in bytes.
        3 SendBuffers "send-buffers" "bytes handed to the system and not sent"
        /// At the destination: receive buffers of the sockets, in bytes.
        4 ReceiveBuffers "receive-buffers" "bytes that came and were not taken"
        /// At the destination: files and bundles that wait for their names.
        5 Commits "commits" "files and bundles before their names"
        /// At the destination: part files that are open.
        6 Parts "parts" "open part files"
    }
}

/// How full a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFill {
    /// Which.
    pub queue: Queue,
    /// What waits in it.
    pub used: u64,
    /// What has room in it.
    pub size: u64,
}

impl QueueFill {
    /// The free share, 0 to 1.
    pub fn free(&self) -> f64 {
        if self.size == 0 { 0.0 } else { 1.0 - (self.used as f64 / self.size as f64).min(1.0) }
    }
}

/// The times of all stages of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes([StageTime; Work::ALL.len()]);

impl StageTimes {
    /// Of one stage.
    pub fn of(&self, work: Work) -> StageTime {
        self.0[work.number() as usize - 1]
    }

    /// Sets the times of one stage.
    pub fn set(&mut self, work: Work, time: StageTime) {
        self.0[work.number() as usize - 1] = time;
    }

    /// What has been added since an earlier state.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at].since(&earlier.0[at])))
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at].plus(&other.0[at])))
    }

    /// The stages that have done anything.
    pub fn iter(&self) -> impl Iterator<Item = (Work, StageTime)> + '_ {
        let each = Work::ALL.iter().map(|&work| (work, self.of(work)));
        each.filter(|(_, time)| *time != StageTime::default())
    }
}

/// One data stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamSample {
    /// Its number in the session.
    pub number: u16,
    /// Since its connection began.
    pub counts: TcpCounts,
    /// At this moment.
    pub state: TcpState,
    /// Of its thread at this end.
    pub thread: ThreadTime,
}

/// A block device that a source or the destination lies on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceSample {
    /// As the kernel names it, such as `nvme0n1`.
    pub name: String,
    /// Since the session began.
    pub counts: DeviceCounts,
    /// Requests in flight.
    pub in_flight: u64,
}

/// The network interface that the data goes over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceSample {
    /// As the kernel names it, such as `eth0`.
    pub name: String,
    /// Since the session began.
    pub counts: InterfaceCounts,
    /// Bits a second that it carries each way; 0 where nobody knows.
    pub speed_bits: u64,
}

/// One end at one moment. What the end's system does not tell is 0, or not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// By the end's own clock, in microseconds since its agent began.
    pub at_us: u64,
    /// Content that the streams have carried, in bytes.
    pub bytes: u64,
    /// Files and links that have ended, as this end knows.
    pub items: u64,
    /// Time in which streams carried something, summed over them, in microseconds.
    pub carried_us: u64,
    /// Where the time of the threads went.
    pub stages: StageTimes,
    /// Queues between stages.
    pub queues: Vec<QueueFill>,
    /// All data streams together, those included that have ended.
    pub counts: TcpCounts,
    /// All data streams that are there: the largest times, and sums of bytes.
    pub state: TcpState,
    /// Each data stream that is there; none where the link is not TCP.
    pub streams: Vec<StreamSample>,
    /// Processor time.
    pub processor: ProcessorTime,
    /// How the processors stood since the sample before.
    pub processor_state: ProcessorState,
    /// Devices that a source or the destination lies on.
    pub devices: Vec<DeviceSample>,
    /// The interface that the data goes over.
    pub interface: Option<InterfaceSample>,
    /// Of the whole host.
    pub pressure: Pressure,
    /// Of the control group of the process.
    pub group_pressure: Pressure,
    /// By the control groups of the process.
    pub throttled: Throttled,
    /// Steps of the session's start that no sample before has told. They are no part of a timeline's points: the
    /// command takes them out.
    pub steps: Vec<StepTime>,
}

impl Sample {
    /// A sample of a later session with all that the sessions before have counted: the last sample of those.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        self.bytes = self.bytes.saturating_add(before.bytes);
        self.items = self.items.max(before.items);
        self.carried_us = self.carried_us.saturating_add(before.carried_us);
        self.stages = self.stages.plus(&before.stages);
        self.counts = self.counts.plus(&before.counts);
        self.processor = self.processor.plus(&before.processor);
        self.pressure = self.pressure.plus(&before.pressure);
        self.group_pressure = self.group_pressure.plus(&before.group_pressure);
        self.throttled = self.throttled.plus(&before.throttled);
        for device in &mut self.devices {
            if let Some(earlier) = before.devices.iter().find(|earlier| earlier.name == device.name) {
                device.counts = device.counts.plus(&earlier.counts);
            }
        }
        if let (Some(interface), Some(earlier)) = (&mut self.interface, &before.interface)
            && interface.name == earlier.name
        {
            interface.counts = interface.counts.plus(&earlier.counts);
        }
        self
    }

    /// What was counted since an earlier sample; the rest as it is now.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut sample = self.clone();
        sample.bytes = self.bytes.saturating_sub(earlier.bytes);
        sample.items = self.items.saturating_sub(earlier.items);
        sample.carried_us = self.carried_us.saturating_sub(earlier.carried_us);
        sample.stages = self.stages.since(&earlier.stages);
        sample.counts = self.counts.since(&earlier.counts);
        sample.processor = self.processor.since(&earlier.processor);
        sample.pressure = self.pressure.since(&earlier.pressure);
        sample.group_pressure = self.group_pressure.since(&earlier.group_pressure);
        sample.throttled = self.throttled.since(&earlier.throttled);
        for device in &mut sample.devices {
            if let Some(before) = earlier.devices.iter().find(|before| before.name == device.name) {
                device.counts = device.counts.since(&before.counts);
            }
        }
        if let (Some(interface), Some(before)) = (&mut sample.interface, &earlier.interface)
            && interface.name == before.name
        {
            interface.counts = interface.counts.since(&before.counts);
        }
        sample
    }

    /// One sample for this and the one before it. Counters have everything; of gauges the larger stays.
    #[must_use]
    pub fn merged(mut self, earlier: &Self) -> Self {
        self.state = self.state.peak(&earlier.state);
        self.processor_state = self.processor_state.peak(&earlier.processor_state);
        for queue in &mut self.queues {
            if let Some(earlier) = earlier.queues.iter().find(|earlier| earlier.queue == queue.queue) {
                queue.used = queue.used.max(earlier.used);
            }
        }
        for device in &mut self.devices {
            if let Some(earlier) = earlier.devices.iter().find(|earlier| earlier.name == device.name) {
                device.in_flight = device.in_flight.max(earlier.in_flight);
            }
        }
        self
    }

    /// Gives back memory that is not used.
    pub fn shrink(&mut self) {
        self.streams.shrink_to_fit();
        self.queues.shrink_to_fit();
        self.steps.shrink_to_fit();
        self.devices.shrink_to_fit();
    }

    /// Memory that it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let names = self.devices.iter().map(|device| device.name.capacity()).sum::<usize>();
        size_of::<Self>()
            + names
            + self.interface.as_ref().map_or(0, |interface| interface.name.capacity())
            + self.devices.capacity() * size_of::<DeviceSample>()
            + self.queues.capacity() * size_of::<QueueFill>()
            + self.steps.capacity() * size_of::<StepTime>()
            + self.streams_bytes()
    }

    /// Of that, for each stream by itself.
    pub fn streams_bytes(&self) -> usize {
        self.streams.capacity() * size_of::<StreamSample>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_two_sessions_are_added_and_taken_apart_again() {
        let of = |count: u64| {
            let counts = DeviceCounts::from_values(std::iter::repeat(count));
            Sample {
                bytes: count,
                carried_us: count,
                counts: TcpCounts::from_values(std::iter::repeat(count)),
                devices: vec![DeviceSample { name: "vda".to_owned(), counts, ..DeviceSample::default() }],
                ..Sample::default()
            }
        };
        let (first, second) = (of(7), of(5));
        assert_eq!(second.clone().after(&first).since(&first), second);
        let other =
            Sample { devices: vec![DeviceSample { name: "vdb".to_owned(), ..DeviceSample::default() }], ..of(5) };
        assert_eq!(other.since(&first).devices, other.devices, "of a device that was not there before, all counts");
    }

    #[test]
    fn stages_are_kept_by_their_numbers() {
        let mut times = StageTimes::default();
        for (at, work) in Work::ALL.iter().enumerate() {
            assert_eq!(work.number() as usize, at + 1);
            times.set(*work, StageTime { worked_us: work.number().into(), ..StageTime::default() });
        }
        assert_eq!(times.of(Work::Publish).worked_us, 14);
        assert_eq!(times.iter().count(), 16);
        assert_eq!(times.since(&times).iter().count(), 0);
    }

    #[test]
    fn sessions_add_up_and_neighbours_merge() {
        let device = |name: &str, read_bytes, in_flight| DeviceSample {
            name: name.to_owned(),
            counts: DeviceCounts { read_bytes, ..DeviceCounts::default() },
            in_flight,
        };
        let first = Sample {
            bytes: 100,
            items: 3,
            devices: vec![device("sda", 10, 7)],
            state: TcpState { rtt_us: 900, ..TcpState::default() },
            queues: vec![QueueFill { queue: Queue::Commits, used: 9, size: 10 }],
            ..Sample::default()
        };
        let second = Sample {
            bytes: 5,
            items: 1,
            devices: vec![device("sda", 1, 2), device("sdb", 1, 0)],
            queues: vec![QueueFill { queue: Queue::Commits, used: 1, size: 10 }],
            ..Sample::default()
        };
        let sum = second.clone().after(&first);
        assert_eq!((sum.bytes, sum.items, sum.devices[0].counts.read_bytes), (105, 3, 11));
        assert_eq!(sum.devices[1].counts.read_bytes, 1);
        let merged = second.merged(&first);
        assert_eq!((merged.bytes, merged.state.rtt_us, merged.devices[0].in_flight), (5, 900, 7));
        assert!((merged.queues[0].free() - 0.1).abs() < 1e-9);
        assert_eq!(QueueFill { queue: Queue::Offers, used: 1, size: 0 }.free().to_bits(), 0.0_f64.to_bits());
    }
}
