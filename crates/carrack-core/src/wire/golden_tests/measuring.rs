//! Messages of what ends measure, and of files that are read over the control connection.

use super::*;
use crate::report::ItemInFlight;

/// What ends measure.
pub fn tells() -> Vec<Line> {
    let steps = vec![StepTime { step: StartStep::Begin, at_us: 30 }, StepTime { step: StartStep::Publish, at_us: 31 }];
    let opened = OpenedFile { size: 7, mtime: Some(Time::new(-3, 4)), identity: Some(counting(1)) };
    vec![
        tell("tell Sample", Tell::Sample(Box::new(sample()))),
        tell("tell Sample-steps", Tell::Sample(Box::new(Sample { at_us: 1, steps, ..Sample::default() }))),
        tell("tell Clock", Tell::Clock(1_000_000)),
        tell("tell Traced", Tell::Traced(Box::new(way()))),
        tell("tell Evidence", Tell::Evidence(evidence())),
        tell("tell Opened", Tell::Opened(OpenedFile { size: 7, ..OpenedFile::default() })),
        tell("tell Opened-identity", Tell::Opened(opened)),
        tell("tell Part", Tell::Part(b"bytes".to_vec())),
        tell("tell InFlight", Tell::InFlight(in_flight())),
        tell("tell InFlight-none", Tell::InFlight(Vec::new())),
    ]
}

fn in_flight() -> Vec<ItemInFlight> {
    let item = |path: &[u8], size, bytes| ItemInFlight { path: path.to_vec(), size, bytes };
    vec![item(b"d/f", Some(1 << 40), 300), item(b"stdin", None, 7)]
}

/// With a number of its own in every field.
fn sample() -> Sample {
    let mut stages = timeline::StageTimes::default();
    for work in Work::ALL {
        stages.set(*work, StageTime::from_values(u64::from(work.number()) * 10..));
    }
    let (counts, state, thread) = (TcpCounts::from_values(400..), TcpState::from_values(500..), (600, 601));
    let thread = ThreadTime { cpu_us: thread.0, starved_us: thread.1 };
    Sample {
        at_us: 1,
        bytes: 1 << 40,
        items: 3,
        carried_us: 4,
        stages,
        queues: Queue::ALL.iter().map(|&queue| QueueFill { queue, used: 5, size: 6 }).collect(),
        counts: TcpCounts::from_values(200..),
        state: TcpState::from_values(300..),
        streams: vec![StreamSample { number: 32_769, counts, state, thread }],
        processor: ProcessorTime::from_values(700..),
        processor_state: ProcessorState::from_values(800..),
        devices: vec![DeviceSample { name: "sda".into(), counts: DeviceCounts::from_values(900..), in_flight: 7 }],
        interface: Some(InterfaceSample {
            name: "eth0".into(),
            counts: InterfaceCounts::from_values(1000..),
            speed_bits: 10_000_000_000,
        }),
        pressure: Pressure::from_values(1100..),
        group_pressure: Pressure::from_values(1200..),
        throttled: Throttled::from_values(1300..),
        steps: Vec::new(),
    }
}
