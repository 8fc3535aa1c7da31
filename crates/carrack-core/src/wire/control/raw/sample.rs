//! What an end measures, on the wire. Groups of numbers are lists, in the order of the fields that
//! [`crate::timeline`] defines; fields are only ever added at the end of a group, and those that are missing are 0.

/// One end at one moment.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sample {
    /// By the end's own clock, in microseconds since its agent began.
    #[prost(uint64, tag = "1")]
    pub at_us: u64,
    /// Content that the streams have carried, in bytes.
    #[prost(uint64, tag = "2")]
    pub bytes: u64,
    /// Files and links that have ended.
    #[prost(uint64, tag = "3")]
    pub items: u64,
    /// Time in which streams carried something, summed over them, in microseconds.
    #[prost(uint64, tag = "4")]
    pub carried_us: u64,
    /// Where the time of the threads went.
    #[prost(message, repeated, tag = "5")]
    pub stages: Vec<StageTime>,
    /// Queues between stages.
    #[prost(message, repeated, tag = "6")]
    pub queues: Vec<QueueFill>,
    /// Of all data streams together: see [`crate::timeline::TcpCounts`].
    #[prost(uint64, repeated, tag = "7")]
    pub counts: Vec<u64>,
    /// The same: see [`crate::timeline::TcpState`].
    #[prost(uint64, repeated, tag = "8")]
    pub state: Vec<u64>,
    /// Each data stream.
    #[prost(message, repeated, tag = "9")]
    pub streams: Vec<StreamSample>,
    /// See [`crate::timeline::ProcessorTime`].
    #[prost(uint64, repeated, tag = "10")]
    pub processor: Vec<u64>,
    /// See [`crate::timeline::ProcessorState`].
    #[prost(uint64, repeated, tag = "11")]
    pub processor_state: Vec<u64>,
    /// Devices that a source or the destination lies on.
    #[prost(message, repeated, tag = "12")]
    pub devices: Vec<DeviceSample>,
    /// The interface that the data goes over.
    #[prost(message, optional, tag = "13")]
    pub interface: Option<InterfaceSample>,
    /// Of the host: see [`crate::timeline::Pressure`].
    #[prost(uint64, repeated, tag = "14")]
    pub pressure: Vec<u64>,
    /// Of the control group of the process: the same.
    #[prost(uint64, repeated, tag = "15")]
    pub group_pressure: Vec<u64>,
    /// See [`crate::timeline::Throttled`].
    #[prost(uint64, repeated, tag = "16")]
    pub throttled: Vec<u64>,
    /// Steps of the session's start that no sample before has told.
    #[prost(message, repeated, tag = "17")]
    pub steps: Vec<StepTime>,
}

/// A step of a session's start.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct StepTime {
    /// See [`crate::timeline::StartStep`].
    #[prost(uint32, tag = "1")]
    pub step: u32,
    /// By the end's own clock, in microseconds since its agent began.
    #[prost(uint64, tag = "2")]
    pub at_us: u64,
}

/// The time of one stage.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StageTime {
    /// See [`crate::timeline::Work`].
    #[prost(uint32, tag = "1")]
    pub work: u32,
    /// See [`crate::timeline::StageTime`].
    #[prost(uint64, repeated, tag = "2")]
    pub times: Vec<u64>,
}

/// How full a queue is.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct QueueFill {
    /// See [`crate::timeline::Queue`].
    #[prost(uint32, tag = "1")]
    pub queue: u32,
    /// What waits in it.
    #[prost(uint64, tag = "2")]
    pub used: u64,
    /// What has room in it.
    #[prost(uint64, tag = "3")]
    pub size: u64,
}

/// One data stream.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StreamSample {
    /// Its number in the session.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// See [`crate::timeline::TcpCounts`].
    #[prost(uint64, repeated, tag = "2")]
    pub counts: Vec<u64>,
    /// See [`crate::timeline::TcpState`].
    #[prost(uint64, repeated, tag = "3")]
    pub state: Vec<u64>,
    /// See [`crate::timeline::ThreadTime`].
    #[prost(uint64, repeated, tag = "4")]
    pub thread: Vec<u64>,
}

/// A block device.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeviceSample {
    /// As the kernel names it.
    #[prost(string, tag = "1")]
    pub name: String,
    /// See [`crate::timeline::DeviceCounts`].
    #[prost(uint64, repeated, tag = "2")]
    pub counts: Vec<u64>,
    /// Requests in flight.
    #[prost(uint64, tag = "3")]
    pub in_flight: u64,
}

/// A network interface.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InterfaceSample {
    /// As the kernel names it.
    #[prost(string, tag = "1")]
    pub name: String,
    /// See [`crate::timeline::InterfaceCounts`].
    #[prost(uint64, repeated, tag = "2")]
    pub counts: Vec<u64>,
    /// Bits a second that it carries each way.
    #[prost(uint64, tag = "3")]
    pub speed_bits: u64,
}
