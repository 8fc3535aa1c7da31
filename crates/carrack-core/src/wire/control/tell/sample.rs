//! A sample as fields of a message, and from there back. Its numbers may be any; how much there is of what has bounds,
//! and names are made fit to be shown.

use crate::limits;
use crate::timeline::{
    DeviceCounts, DeviceSample, InterfaceCounts, InterfaceSample, Pressure, ProcessorState, ProcessorTime, Queue,
    QueueFill, Sample, StageTime, StageTimes, StartStep, StepTime, StreamSample, TcpCounts, TcpState, ThreadTime,
    Throttled, Work,
};
use crate::wire::control::raw;
use crate::wire::{ProtocolError, peer_text};

impl TryFrom<raw::Sample> for Sample {
    type Error = ProtocolError;

    fn try_from(raw: raw::Sample) -> Result<Self, ProtocolError> {
        let bounded = |count: usize, most: usize, what: &str| {
            let why = || ProtocolError::violation(format!("the peer measured {count} {what}"));
            if count > most { Err(why()) } else { Ok(()) }
        };
        bounded(raw.streams.len(), limits::SAMPLE_STREAMS, "streams")?;
        bounded(raw.devices.len(), limits::SAMPLE_DEVICES, "devices")?;
        // A later version may have more of both; this one has each once.
        let mut stages = StageTimes::default();
        for stage in raw.stages {
            if let Some(work) = Work::from_number(stage.work) {
                stages.set(work, StageTime::from_values(stage.times));
            }
        }
        let mut queues: Vec<QueueFill> = Vec::new();
        for raw::QueueFill { queue, used, size } in raw.queues {
            if let Some(queue) = Queue::from_number(queue)
                && queues.iter().all(|fill| fill.queue != queue)
            {
                queues.push(QueueFill { queue, used, size });
            }
        }
        let mut steps: Vec<StepTime> = Vec::new();
        for raw::StepTime { step, at_us } in raw.steps {
            if let Some(step) = StartStep::from_number(step).filter(|step| step.is_of_an_end())
                && steps.iter().all(|taken| taken.step != step)
            {
                steps.push(StepTime { step, at_us });
            }
        }
        let streams = raw.streams.into_iter().map(stream).collect::<Result<_, _>>()?;
        let device = |device: raw::DeviceSample| DeviceSample {
            name: name(&device.name),
            counts: DeviceCounts::from_values(device.counts),
            in_flight: device.in_flight,
        };
        let interface = |interface: raw::InterfaceSample| InterfaceSample {
            name: name(&interface.name),
            counts: InterfaceCounts::from_values(interface.counts),
            speed_bits: interface.speed_bits,
        };
        Ok(Self {
            at_us: raw.at_us,
            bytes: raw.bytes,
            items: raw.items,
            carried_us: raw.carried_us,
            stages,
            queues,
            counts: TcpCounts::from_values(raw.counts),
            state: TcpState::from_values(raw.state),
            streams,
            processor: ProcessorTime::from_values(raw.processor),
            processor_state: ProcessorState::from_values(raw.processor_state),
            devices: raw.devices.into_iter().map(device).collect(),
            interface: raw.interface.map(interface),
            pressure: Pressure::from_values(raw.pressure),
            group_pressure: Pressure::from_values(raw.group_pressure),
            throttled: Throttled::from_values(raw.throttled),
            steps,
        })
    }
}

fn stream(stream: raw::StreamSample) -> Result<StreamSample, ProtocolError> {
    let wrong = |_| ProtocolError::violation(format!("the peer measured stream {}", stream.number));
    Ok(StreamSample {
        number: u16::try_from(stream.number).map_err(wrong)?,
        counts: TcpCounts::from_values(stream.counts),
        state: TcpState::from_values(stream.state),
        thread: ThreadTime::from_values(stream.thread),
    })
}

/// At most [`limits::SAMPLE_NAME_BYTES`] visible characters.
fn name(name: &str) -> String {
    peer_text(name).chars().filter(char::is_ascii_graphic).take(limits::SAMPLE_NAME_BYTES).collect()
}

impl From<Sample> for raw::Sample {
    fn from(sample: Sample) -> Self {
        let stage = |(work, time): (Work, StageTime)| raw::StageTime { work: work.number(), times: time.values() };
        let queue = |fill: QueueFill| raw::QueueFill { queue: fill.queue.number(), used: fill.used, size: fill.size };
        let stream = |stream: StreamSample| raw::StreamSample {
            number: stream.number.into(),
            counts: stream.counts.values(),
            state: stream.state.values(),
            thread: stream.thread.values(),
        };
        let device = |device: DeviceSample| raw::DeviceSample {
            name: device.name,
            counts: device.counts.values(),
            in_flight: device.in_flight,
        };
        let interface = |interface: InterfaceSample| raw::InterfaceSample {
            name: interface.name,
            counts: interface.counts.values(),
            speed_bits: interface.speed_bits,
        };
        let step = |taken: StepTime| raw::StepTime { step: taken.step.number(), at_us: taken.at_us };
        Self {
            at_us: sample.at_us,
            bytes: sample.bytes,
            items: sample.items,
            carried_us: sample.carried_us,
            stages: sample.stages.iter().map(stage).collect(),
            queues: sample.queues.into_iter().map(queue).collect(),
            counts: sample.counts.values(),
            state: sample.state.values(),
            streams: sample.streams.into_iter().map(stream).collect(),
            processor: sample.processor.values(),
            processor_state: sample.processor_state.values(),
            devices: sample.devices.into_iter().map(device).collect(),
            interface: sample.interface.map(interface),
            pressure: sample.pressure.values(),
            group_pressure: sample.group_pressure.values(),
            throttled: sample.throttled.values(),
            steps: sample.steps.into_iter().map(step).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::control::Tell;

    fn told(sample: raw::Sample) -> Result<Sample, ProtocolError> {
        let bytes = raw::FromAgent { request: 0, tell: Some(raw::Tell::Sample(Box::new(sample))) }.to_bytes();
        match Tell::decode(&bytes)? {
            (_, Tell::Sample(sample)) => Ok(*sample),
            (_, other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn sample_of_a_peer_is_bounded() {
        let streams = |count| vec![raw::StreamSample { counts: vec![1; 3], ..raw::StreamSample::default() }; count];
        let most = told(raw::Sample { streams: streams(limits::SAMPLE_STREAMS), ..raw::Sample::default() }).unwrap();
        assert_eq!(most.streams.len(), limits::SAMPLE_STREAMS);
        assert_eq!(most.streams[0].counts, TcpCounts::from_values([1, 1, 1]));
        for count in [limits::SAMPLE_STREAMS + 1, 10_000, 60_000] {
            assert!(told(raw::Sample { streams: streams(count), ..raw::Sample::default() }).is_err(), "{count}");
        }
        let devices = vec![raw::DeviceSample::default(); limits::SAMPLE_DEVICES + 1];
        assert!(told(raw::Sample { devices, ..raw::Sample::default() }).is_err());
        let stream = raw::StreamSample { number: 1 << 16, ..raw::StreamSample::default() };
        assert!(told(raw::Sample { streams: vec![stream], ..raw::Sample::default() }).is_err());
        // Lists of any length stand for as many fields as there are.
        let long = told(raw::Sample { counts: vec![u64::MAX; 50_000], ..raw::Sample::default() }).unwrap();
        assert_eq!(long.counts.out_of_order, u64::MAX);
        assert!(long.memory_bytes() < 10_000);
    }

    #[test]
    fn sample_of_a_peer_drives_no_terminal_and_names_what_is_known() {
        let device = raw::DeviceSample { name: format!("sd\x1b[2J\n{}", "x".repeat(500)), ..Default::default() };
        let queue = |queue, used| raw::QueueFill { queue, used, size: 9 };
        let queues = vec![queue(1, 3), queue(99, 4), queue(1, 5)];
        let stage = |work| raw::StageTime { work, times: vec![7; 20] };
        let sample = raw::Sample {
            devices: vec![device],
            queues,
            stages: vec![stage(3), stage(0), stage(999)],
            steps: [8, 1, 0, 99, 8, 16].map(|step| raw::StepTime { step, at_us: 5 }).to_vec(),
            ..Default::default()
        };
        let sample = told(sample).unwrap();
        assert_eq!(sample.devices[0].name, format!("sd[2J{}", "x".repeat(limits::SAMPLE_NAME_BYTES - 5)));
        assert_eq!(sample.queues, [QueueFill { queue: Queue::Bundles, used: 3, size: 9 }]);
        assert_eq!(sample.stages.iter().map(|(work, _)| work).collect::<Vec<_>>(), [Work::Read]);
        // Those that only the command knows, and unknown ones, are passed over; each counts once.
        let told = |step| StepTime { step, at_us: 5 };
        assert_eq!(sample.steps, [told(StartStep::Begin), told(StartStep::Publish)]);
    }
}
