//! The protobuf shapes of control messages. Field numbers are for ever; a new field is optional, and the number of one
//! that is gone is reserved. Tests that say what no honest end says see this module, by the feature `testing`; all
//! others see [`super::Ask`] and [`super::Tell`].

mod evidence;
mod files;
mod sample;
mod transfer;

use prost::Message as _;

pub use self::evidence::{EvidenceAbout, EvidenceItem, EvidencePage};
pub use self::files::{
    Collect, Entry, Expected, ExpectedDigest, Filter, FilterRule, Inspected, List, MakeDirectory, Opened, Page, Part,
    PathFacts, Paths, Read, Remove, Rename, Sum, Sums, Survey, Surveyed, Unchanged,
};
pub use self::sample::{DeviceSample, InterfaceSample, QueueFill, Sample, StageTime, StepTime, StreamSample};
pub use self::transfer::{
    Begin, Change, Changes, Counted, Deletion, Ended, InFlight, Item, ItemInFlight, Items, MayDelete, Progress,
    RawAccounts, RawBackup, RawDeleteOrder, RawUnfinished, RawUnkept, RawUnkeptAttributes, RawUnkeptDirectories,
    ReceiveRole, References, Role, SendRole, Source, Stages, StreamLost,
};
#[cfg(any(test, feature = "testing"))]
pub use crate::wire::control::options::RawOptions;
pub use crate::wire::values::RawFailure;

use crate::wire::codec::decode;
use crate::wire::{ProtocolError, fields};

/// From the command to an agent.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ToAgent {
    /// The request's number.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// The request.
    #[prost(
        oneof = "Ask",
        tags = "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26"
    )]
    pub ask: Option<Ask>,
}

/// What the command asks of an agent.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Ask {
    /// The first message: versions.
    #[prost(message, tag = "2")]
    Hello(Hello),
    /// What are these paths?
    #[prost(message, tag = "3")]
    Inspect(Paths),
    /// Accept data connections.
    #[prost(message, tag = "4")]
    Listen(Listen),
    /// Make data connections.
    #[prost(message, tag = "5")]
    Dial(Dial),
    /// Carry a data stream over this connection.
    #[prost(message, tag = "6")]
    Tunnel(Tunnel),
    /// Start sending or receiving.
    #[prost(message, tag = "7")]
    Begin(Begin),
    /// Stop what runs and clean up.
    #[prost(message, tag = "8")]
    Cancel(Empty),
    /// List a directory.
    #[prost(message, tag = "9")]
    List(List),
    /// Make a directory.
    #[prost(message, tag = "10")]
    MakeDirectory(MakeDirectory),
    /// Give a path another name.
    #[prost(message, tag = "11")]
    Rename(Rename),
    /// Remove paths.
    #[prost(message, tag = "12")]
    Remove(Remove),
    /// Digests of files.
    #[prost(message, tag = "13")]
    Sum(Sum),
    /// The end: the agent closes the connection.
    #[prost(message, tag = "14")]
    Bye(Empty),
    /// Of what the next `Begin` names, send only these. May be said several times: the lists add up.
    #[prost(message, tag = "15")]
    Select(Paths),
    /// Collect what transfers that will not be taken up again have left.
    #[prost(message, tag = "16")]
    Collect(Collect),
    /// End data streams in good order: each when what it carries has landed (of a sender).
    #[prost(message, tag = "17")]
    Retire(Retire),
    /// What does your clock say?
    #[prost(message, tag = "18")]
    Clock(Empty),
    /// Which way do your packets take to the other end of what runs?
    #[prost(message, tag = "19")]
    Trace(Empty),
    /// What does your host say of itself?
    #[prost(message, tag = "20")]
    Evidence(EvidenceAbout),
    /// Of what the next `Begin` names, these files are sent only with these digests. May be said several
    /// times: the lists add up.
    #[prost(message, tag = "21")]
    Expect(Expected),
    /// A range of a file, over this connection.
    #[prost(message, tag = "22")]
    Read(Read),
    /// Of what the next `Begin` and every `List` and `Sum` before it name, rules leave names out, or keep them from
    /// being deleted. May be said several times: the rules follow each other.
    #[prost(message, tag = "23")]
    Filter(Filter),
    /// To `Deletion`: whether it may be done.
    #[prost(message, tag = "24")]
    MayDelete(MayDelete),
    /// Directories that may have files of what the next `Begin` receives.
    #[prost(message, tag = "25")]
    Refer(References),
    /// Owners and groups that become others in what the next `Begin` receives.
    #[prost(message, tag = "26")]
    Accounts(RawAccounts),
}

/// From an agent to the command.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FromAgent {
    /// The request answered; 0 for what comes unasked.
    #[prost(uint64, tag = "1")]
    pub request: u64,
    /// The answer, or the report.
    #[prost(
        oneof = "Tell",
        tags = "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26"
    )]
    pub tell: Option<Tell>,
}

/// What an agent says.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Tell {
    /// Versions and the host.
    #[prost(message, tag = "2")]
    Welcome(Welcome),
    /// The request failed.
    #[prost(message, tag = "3")]
    Failed(RawFailure),
    /// Done; nothing else to say.
    #[prost(message, tag = "4")]
    Done(Counted),
    /// To `Inspect`.
    #[prost(message, tag = "5")]
    Inspected(Inspected),
    /// To `Listen`.
    #[prost(message, tag = "6")]
    Listening(Listening),
    /// To `Dial` and `Tunnel`.
    #[prost(message, tag = "7")]
    Dialed(Dialed),
    /// A page of a listing.
    #[prost(message, tag = "8")]
    Page(Page),
    /// Digests of some files.
    #[prost(message, tag = "9")]
    Sums(Sums),
    /// How a transfer stands.
    #[prost(message, tag = "10")]
    Progress(Progress),
    /// Items that ended.
    #[prost(message, tag = "11")]
    Items(Items),
    /// The transfer has ended at this end.
    #[prost(message, tag = "12")]
    Ended(Ended),
    /// For a person to read.
    #[prost(string, tag = "13")]
    Note(String),
    /// The sender has lost a data stream that the command may make anew.
    #[prost(message, tag = "14")]
    StreamLost(StreamLost),
    /// Where the time of this end's streams has gone so far.
    #[prost(message, tag = "15")]
    Stages(Stages),
    /// To `Dial`, before its answer, if it was asked for.
    #[prost(message, tag = "16")]
    Connected(Connected),
    /// What this end has measured.
    #[prost(message, tag = "17")]
    Sample(Box<Sample>),
    /// To `Clock`.
    #[prost(message, tag = "18")]
    Clock(Clock),
    /// To `Trace`.
    #[prost(message, tag = "19")]
    Traced(Traced),
    /// To `Evidence`.
    #[prost(message, tag = "20")]
    Evidence(EvidencePage),
    /// To `Read`, first: what the file is.
    #[prost(message, tag = "21")]
    Opened(Opened),
    /// To `Read`: the next bytes.
    #[prost(message, tag = "22")]
    Part(Part),
    /// What is about to be deleted, which waits for `MayDelete`.
    #[prost(message, tag = "23")]
    Deletion(Deletion),
    /// To `Begin` of a receiver, before its answer: upper and lower case are one at its top.
    #[prost(message, tag = "24")]
    FoldsCase(Empty),
    /// What was made, changed or deleted at the destination.
    #[prost(message, tag = "25")]
    Changes(Changes),
    /// The files in flight.
    #[prost(message, tag = "26")]
    InFlight(InFlight),
}

/// The way to the other end of a transfer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Traced {
    /// The other end's address; empty where there is none.
    #[prost(string, tag = "1")]
    pub to: String,
    /// Routers and the host itself, the nearest first.
    #[prost(message, repeated, tag = "2")]
    pub hops: Vec<TracedHop>,
    /// The host has answered.
    #[prost(bool, tag = "3")]
    pub reached: bool,
    /// The largest packet that gets there whole; 0 where it is not known.
    #[prost(uint32, tag = "4")]
    pub mtu_bytes: u32,
    /// A packet of that size has got there.
    #[prost(bool, tag = "5")]
    pub is_mtu_proved: bool,
    /// Larger packets vanish without a word.
    #[prost(bool, tag = "6")]
    pub drops_large_packets: bool,
    /// Why something could not be found.
    #[prost(string, tag = "7")]
    pub why: String,
}

/// One step of the way.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracedHop {
    /// Who answered; empty if nobody did.
    #[prost(string, tag = "1")]
    pub address: String,
    /// How long that took; 0 where it is not known.
    #[prost(uint64, tag = "2")]
    pub round_trip_us: u64,
}

/// A message without fields.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Empty {}

/// Which versions are spoken.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Hello {
    /// Oldest protocol version. In 1 and 2 builds from before version 1 said theirs, whose numbers meant other things:
    /// here they read as 0 to 0, and the other way round.
    #[prost(uint32, tag = "7")]
    pub oldest: u32,
    /// Newest protocol version.
    #[prost(uint32, tag = "8")]
    pub newest: u32,
    /// The program's version, for messages.
    #[prost(string, tag = "3")]
    pub program: String,
    /// A node's bearer token.
    #[prost(string, tag = "4")]
    pub token: String,
    /// The directory that the agent keeps to; empty for none.
    #[prost(bytes = "vec", tag = "5")]
    pub root: Vec<u8>,
    /// The path below it that may be used; empty for all of it.
    #[prost(bytes = "vec", tag = "6")]
    pub within: Vec<u8>,
}

/// The agent's answer to `Hello`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Welcome {
    /// The protocol version that will be used.
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// The program's version, for messages.
    #[prost(string, tag = "2")]
    pub program: String,
    /// Tells hosts apart: two agents with the same value see the same file systems.
    #[prost(string, tag = "3")]
    pub host_id: String,
    /// Processors that the agent may use.
    #[prost(uint32, tag = "4")]
    pub processors: u32,
    /// The address that the control connection reached, as the agent sees it; empty where there is none.
    #[prost(string, tag = "5")]
    pub local_address: String,
    /// The address that the control connection came from, as the agent sees it.
    #[prost(string, tag = "6")]
    pub peer_address: String,
    /// Seconds since 1970 by the agent's clock.
    #[prost(sint64, tag = "7")]
    pub clock_seconds: i64,
    /// The congestion control that the host gives to connections; empty where it is not known. Who does not know
    /// this field does without.
    #[prost(string, tag = "8")]
    pub congestion: String,
    /// Tells the machine from all others, also after a reboot: 32 bytes, or none from a node, which is
    /// known by its key.
    #[prost(bytes = "vec", tag = "12")]
    pub machine: Vec<u8>,
    /// The operating system and its version; empty from a node without a token, and where it is not known.
    #[prost(string, tag = "13")]
    pub system: String,
    /// What the agent's clock says, as in `Clock`.
    #[prost(uint64, optional, tag = "14")]
    pub clock_us: Option<u64>,
    /// The directory that it keeps to, because the greeting names one.
    #[prost(message, optional, tag = "15")]
    pub root: Option<Root>,
    /// It takes data streams that are cut into pieces, and sends such.
    #[prost(bool, tag = "30")]
    pub compresses: bool,
}

/// A directory by its numbers.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Root {
    /// The device that it is on.
    #[prost(uint64, tag = "1")]
    pub device: u64,
    /// Its inode there.
    #[prost(uint64, tag = "2")]
    pub inode: u64,
}

/// An agent's clock.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Clock {
    /// Microseconds since the agent began.
    #[prost(uint64, tag = "1")]
    pub us: u64,
}

/// Accept data connections.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Listen {
    /// Which session they are for, and the secret they prove.
    #[prost(message, optional, tag = "1")]
    pub session: Option<Session>,
    /// First port allowed; 0 for any.
    #[prost(uint32, tag = "2")]
    pub port_low: u32,
    /// Last port allowed.
    #[prost(uint32, tag = "3")]
    pub port_high: u32,
}

/// End data streams in good order.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Retire {
    /// How many. One stays, whatever is asked.
    #[prost(uint32, tag = "1")]
    pub count: u32,
    /// Instead: so many that were asked to end and have not are to go on.
    #[prost(uint32, tag = "2")]
    pub wake: u32,
}

/// What ties data connections to a session.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Session {
    /// 16 bytes, random.
    #[prost(bytes = "vec", tag = "1")]
    pub id: Vec<u8>,
    /// 32 bytes, random, for this session only.
    #[prost(bytes = "vec", tag = "2")]
    pub secret: Vec<u8>,
    /// TLS on data connections.
    #[prost(bool, tag = "3")]
    pub encrypt: bool,
}

/// Where data connections are accepted.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Listening {
    /// The port that accepts the data connections.
    #[prost(uint32, tag = "1")]
    pub port: u32,
    /// SHA-256 of the public key that the listener shows.
    #[prost(bytes = "vec", tag = "2")]
    pub pin: Vec<u8>,
}

/// Make data connections.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Dial {
    /// Which session they are for, and the secret they prove.
    #[prost(message, optional, tag = "1")]
    pub session: Option<Session>,
    /// `host:port`, tried one after the other.
    #[prost(string, repeated, tag = "2")]
    pub addresses: Vec<String>,
    /// SHA-256 of the public key that the listener must show.
    #[prost(bytes = "vec", tag = "3")]
    pub pin: Vec<u8>,
    /// How many connections to make.
    #[prost(uint32, tag = "4")]
    pub count: u32,
    /// The number of the first.
    #[prost(uint32, tag = "5")]
    pub first: u32,
    /// Give up after so many milliseconds.
    #[prost(uint32, tag = "6")]
    pub timeout_ms: u32,
    /// Segments of at most so many bytes in both directions; 0 lets TCP decide.
    #[prost(uint32, tag = "7")]
    pub segment: u32,
    /// Say how far it is (`Connected`) as soon as TCP knows, before anybody has proved anything. Who does not know
    /// this field says nothing.
    #[prost(bool, tag = "8")]
    pub tell_connected: bool,
}

/// A connection that was asked for is there, and is being secured; `Dialed` or `Failed` follows.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Connected {
    /// Round trip in microseconds, as TCP measured it.
    #[prost(uint64, tag = "1")]
    pub round_trip_us: u64,
}

/// A data connection has been made.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Dialed {
    /// The address that answered.
    #[prost(string, tag = "1")]
    pub address: String,
    /// The cipher suite; empty without TLS.
    #[prost(string, tag = "2")]
    pub cipher: String,
    /// Round trip in microseconds, as TCP measured it.
    #[prost(uint64, tag = "3")]
    pub round_trip_us: u64,
}

/// Carry a data stream inside the control connection.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Tunnel {
    /// Which session it is for.
    #[prost(message, optional, tag = "1")]
    pub session: Option<Session>,
    /// Channel of the multiplexed connection.
    #[prost(uint32, tag = "2")]
    pub channel: u32,
    /// Whether this end speaks first.
    #[prost(bool, tag = "3")]
    pub dial: bool,
}

impl ToAgent {
    /// Encodes the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode_to_vec()
    }

    /// Decodes from bytes.
    ///
    /// # Errors
    /// When it cannot be read or asks nothing that is known.
    pub fn from_bytes(bytes: &[u8]) -> Result<(u64, Ask), ProtocolError> {
        let message: Self = decode(bytes, "a request", fields::REQUEST)?;
        let ask = message.ask.ok_or_else(|| ProtocolError::violation("the peer sent a request of unknown type"))?;
        Ok((message.request, ask))
    }
}

impl FromAgent {
    /// Encodes the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode_to_vec()
    }

    /// Decodes from bytes.
    ///
    /// # Errors
    /// When it cannot be read or says nothing that is known.
    pub fn from_bytes(bytes: &[u8]) -> Result<(u64, Tell), ProtocolError> {
        let message: Self = decode(bytes, "an answer", fields::ANSWER)?;
        let tell = message.tell.ok_or_else(|| ProtocolError::violation("the peer sent an answer of unknown type"))?;
        Ok((message.request, tell))
    }
}
