//! A sample of an end as JSON, and back.
//!
//! Groups of counters are objects whose keys are the names of the fields; a field that is 0 is left out, and so is what
//! is not there. Times are in microseconds, sizes in bytes.

use carrack_core::limits;
use carrack_core::report::{EndSample, Side};
use carrack_core::timeline::{
    DeviceCounts, DeviceSample, InterfaceCounts, InterfaceSample, Point, Pressure, ProcessorState, ProcessorTime,
    Queue, QueueFill, Sample, StageTime, StreamSample, TcpCounts, TcpState, ThreadTime, Throttled, Work,
};
use serde_json::{Map, Value, json};

/// Puts a group of numbers into an object, and takes it from there.
macro_rules! group {
    ($($group:ident),+) => {
        $(
            impl Group for $group {
                fn object(&self) -> Map<String, Value> {
                    let named = Self::NAMES.iter().zip(self.values());
                    named.filter(|(_, value)| *value != 0).map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
                }

                fn read(fields: &Map<String, Value>) -> Result<Self, String> {
                    let mut group = Self::default();
                    for name in Self::NAMES {
                        group.set(name, number(fields, name)?);
                    }
                    Ok(group)
                }
            }
        )+
    };
}

trait Group: Sized + Default {
    fn object(&self) -> Map<String, Value>;
    fn read(fields: &Map<String, Value>) -> Result<Self, String>;
}

group!(
    DeviceCounts,
    InterfaceCounts,
    Pressure,
    ProcessorState,
    ProcessorTime,
    StageTime,
    TcpCounts,
    TcpState,
    ThreadTime,
    Throttled
);

/// A sample's fields. `with_streams` also those of each stream by itself.
pub fn value(told: &EndSample, with_streams: bool) -> Value {
    let EndSample { side, session, point: Point { at_us, error_us, sample } } = told;
    let mut fields = Map::new();
    fields.insert("side".into(), json!(side.name()));
    fields.insert("session".into(), json!(session));
    for (name, value) in [
        ("at_us", *at_us),
        ("error_us", *error_us),
        ("clock_us", sample.at_us),
        ("bytes", sample.bytes),
        ("items", sample.items),
        ("carried_us", sample.carried_us),
    ] {
        fields.insert(name.into(), json!(value));
    }
    let stages = sample.stages.iter().map(|(work, time)| (work.name().to_owned(), time.object().into()));
    put(&mut fields, "stages", stages.collect());
    let queues = sample.queues.iter();
    let queues = queues.map(|fill| (fill.queue.name().to_owned(), json!({ "used": fill.used, "size": fill.size })));
    put(&mut fields, "queues", queues.collect());
    put(&mut fields, "tcp", merged(sample.counts.object(), sample.state.object()));
    put(&mut fields, "processor", merged(sample.processor.object(), sample.processor_state.object()));
    if !sample.devices.is_empty() {
        fields.insert("devices".into(), sample.devices.iter().map(device).collect());
    }
    if let Some(interface) = &sample.interface {
        let mut object = interface.counts.object();
        object.insert("name".into(), json!(interface.name));
        if interface.speed_bits > 0 {
            object.insert("speed_bits".into(), json!(interface.speed_bits));
        }
        fields.insert("interface".into(), object.into());
    }
    put(&mut fields, "pressure", sample.pressure.object());
    put(&mut fields, "group_pressure", sample.group_pressure.object());
    put(&mut fields, "throttled", sample.throttled.object());
    if with_streams && !sample.streams.is_empty() {
        fields.insert("streams".into(), sample.streams.iter().map(stream).collect());
    }
    fields.into()
}

fn put(fields: &mut Map<String, Value>, name: &str, object: Map<String, Value>) {
    if !object.is_empty() {
        fields.insert(name.to_owned(), object.into());
    }
}

fn merged(mut one: Map<String, Value>, other: Map<String, Value>) -> Map<String, Value> {
    one.extend(other);
    one
}

fn device(device: &DeviceSample) -> Value {
    let mut object = device.counts.object();
    object.insert("name".into(), json!(device.name));
    object.insert("in_flight".into(), json!(device.in_flight));
    object.into()
}

fn stream(stream: &StreamSample) -> Value {
    let mut object = merged(stream.counts.object(), merged(stream.state.object(), stream.thread.object()));
    object.insert("number".into(), json!(stream.number));
    object.into()
}

/// A sample from the fields of its line. Fields that are not known are passed over.
///
/// # Errors
/// What is wrong, for a sentence that names the line.
pub fn parse(fields: &Map<String, Value>) -> Result<EndSample, String> {
    let side = match fields.get("side").and_then(Value::as_str).map(Side::parse) {
        Some(Ok(side @ (Side::Source | Side::Destination))) => side,
        _ => return Err("a sample's side is neither source nor destination".into()),
    };
    let none = Map::new();
    let tcp = object(fields, "tcp")?.unwrap_or(&none);
    let processor = object(fields, "processor")?.unwrap_or(&none);
    let mut sample = Sample {
        at_us: number(fields, "clock_us")?,
        bytes: number(fields, "bytes")?,
        items: number(fields, "items")?,
        carried_us: number(fields, "carried_us")?,
        counts: Group::read(tcp)?,
        state: Group::read(tcp)?,
        processor: Group::read(processor)?,
        processor_state: Group::read(processor)?,
        pressure: Group::read(object(fields, "pressure")?.unwrap_or(&none))?,
        group_pressure: Group::read(object(fields, "group_pressure")?.unwrap_or(&none))?,
        throttled: Group::read(object(fields, "throttled")?.unwrap_or(&none))?,
        ..Sample::default()
    };
    // Stages and queues of a later version are not known here.
    let stages = object(fields, "stages")?.unwrap_or(&none);
    for work in Work::ALL {
        if let Some(time) = object(stages, work.name())? {
            sample.stages.set(*work, Group::read(time)?);
        }
    }
    let queues = object(fields, "queues")?.unwrap_or(&none);
    for queue in Queue::ALL {
        if let Some(fill) = object(queues, queue.name())? {
            let fill = QueueFill { queue: *queue, used: number(fill, "used")?, size: number(fill, "size")? };
            sample.queues.push(fill);
        }
    }
    for device in list(fields, "devices", limits::SAMPLE_DEVICES)? {
        let device = device?;
        let (name, in_flight) = (text(device, "name")?, number(device, "in_flight")?);
        sample.devices.push(DeviceSample { name, counts: Group::read(device)?, in_flight });
    }
    if let Some(interface) = object(fields, "interface")? {
        let (name, counts, speed_bits) =
            (text(interface, "name")?, Group::read(interface)?, number(interface, "speed_bits")?);
        sample.interface = Some(InterfaceSample { name, counts, speed_bits });
    }
    for stream in list(fields, "streams", limits::SAMPLE_STREAMS)? {
        let stream = stream?;
        let number = u16::try_from(number(stream, "number")?).map_err(|_| "a stream's number is above 65535")?;
        let (counts, state, thread) = (Group::read(stream)?, Group::read(stream)?, Group::read(stream)?);
        sample.streams.push(StreamSample { number, counts, state, thread });
    }
    let session = u32::try_from(number(fields, "session")?).map_err(|_| "session is above 4294967295")?;
    let point = Point { at_us: number(fields, "at_us")?, error_us: number(fields, "error_us")?, sample };
    Ok(EndSample { side, session, point })
}

/// A number that is not negative; 0 where there is none.
pub fn number(fields: &Map<String, Value>, name: &str) -> Result<u64, String> {
    let Some(value) = fields.get(name) else { return Ok(0) };
    value.as_u64().ok_or_else(|| format!("{name} is not a whole number from 0 on"))
}

/// A text; empty where there is none.
pub fn text(fields: &Map<String, Value>, name: &str) -> Result<String, String> {
    let Some(value) = fields.get(name) else { return Ok(String::new()) };
    let text = value.as_str().ok_or_else(|| format!("{name} is not a text"))?;
    Ok(text.to_owned())
}

fn object<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<Option<&'a Map<String, Value>>, String> {
    let Some(value) = fields.get(name) else { return Ok(None) };
    value.as_object().map(Some).ok_or_else(|| format!("{name} is not an object"))
}

fn list<'a>(
    fields: &'a Map<String, Value>,
    name: &'a str,
    most: usize,
) -> Result<impl Iterator<Item = Result<&'a Map<String, Value>, String>>, String> {
    let list = match fields.get(name) {
        None => &[][..],
        Some(value) => value.as_array().ok_or_else(|| format!("{name} is not a list"))?,
    };
    if list.len() > most {
        return Err(format!("{name} has more than {most} elements"));
    }
    Ok(list.iter().map(move |value| value.as_object().ok_or_else(|| format!("{name} has what is no object"))))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use carrack_core::timeline::StageTimes;

    /// A sample with something in every field.
    pub fn full(side: Side) -> EndSample {
        let mut stages = StageTimes::default();
        for work in Work::ALL {
            let at = u64::from(work.number());
            stages.set(*work, StageTime { worked_us: at, waited_us: 100 + at, calls: 200 + at });
        }
        let (counts, state) = (TcpCounts::from_values(300..), TcpState::from_values(400..));
        let stream = |number| StreamSample { number, counts, state, thread: ThreadTime { cpu_us: 1, starved_us: 2 } };
        let sample = Sample {
            at_us: 5,
            bytes: u64::MAX,
            items: 3,
            carried_us: 4,
            stages,
            queues: Queue::ALL.iter().map(|&queue| QueueFill { queue, used: 1, size: 9 }).collect(),
            counts,
            state,
            streams: vec![stream(0), stream(u16::MAX)],
            processor: ProcessorTime::from_values(500..),
            processor_state: ProcessorState::from_values(600..),
            devices: vec![DeviceSample { name: "sda".into(), counts: DeviceCounts::from_values(700..), in_flight: 8 }],
            interface: Some(InterfaceSample {
                name: "eth0".into(),
                counts: InterfaceCounts::from_values(800..),
                speed_bits: 805,
            }),
            pressure: Pressure::from_values(900..),
            group_pressure: Pressure::from_values(910..),
            throttled: Throttled::from_values(920..),
            steps: Vec::new(),
        };
        EndSample { side, session: 2, point: Point { at_us: 1_000_007, error_us: 40, sample } }
    }

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn samples_come_back() {
        for side in [Side::Source, Side::Destination] {
            let told = full(side);
            assert_eq!(parse(&fields(value(&told, true))), Ok(told.clone()));
            let without = fields(value(&told, false));
            assert!(!without.contains_key("streams") && without.contains_key("tcp"));
            let empty = EndSample { side, session: 0, point: Point::default() };
            assert_eq!(parse(&fields(value(&empty, true))), Ok(empty));
        }
    }

    #[test]
    fn parse_refuses_wrong_fields_and_passes_over_unknown_ones() {
        let right = || fields(value(&full(Side::Source), true));
        for (name, wrong) in [
            ("side", json!("link")),
            ("side", json!(1)),
            ("at_us", json!(-1)),
            ("bytes", json!(1.5)),
            ("session", json!(1_u64 << 40)),
            ("stages", json!([])),
            ("stages", json!({ "read": 3 })),
            ("stages", json!({ "read": { "worked_us": "x" } })),
            ("queues", json!({ "commits": null })),
            ("tcp", json!({ "delivered": {} })),
            ("devices", json!({})),
            ("devices", json!([1])),
            ("devices", json!(vec![json!({}); limits::SAMPLE_DEVICES + 1])),
            ("interface", json!({ "name": 1 })),
            ("streams", json!([{ "number": 65_536 }])),
            ("streams", json!(vec![json!({}); limits::SAMPLE_STREAMS + 1])),
        ] {
            let mut fields = right();
            fields.insert(name.into(), wrong.clone());
            assert!(parse(&fields).is_err(), "{name}: {wrong}");
        }
        let mut further = right();
        further.insert("of a later version".into(), json!([1]));
        further["stages"]["teleport"] = json!(7);
        further["queues"]["limbo"] = json!([]);
        assert_eq!(parse(&further), Ok(full(Side::Source)));
    }
}
