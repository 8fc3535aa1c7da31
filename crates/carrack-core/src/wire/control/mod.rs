//! What the command says to each end of a copy (an *agent*: over ssh, in a node, or in the command's own process), and
//! what the end says back. Also the verbs of a file manager.
//!
//! Tagged fields (protobuf). A request has a number, and every answer to it bears the same one. An agent carries out
//! one request at a time; status of a running transfer comes unasked. [`Ask::decode`] and [`Tell::decode`] check every
//! length, count and number, so that nobody else need.

mod ask;
mod options;
#[cfg(not(feature = "testing"))]
pub(crate) mod raw;
#[cfg(feature = "testing")]
pub mod raw;
mod session_key;
mod tell;

pub use ask::{
    Ask, Begin, Collect, Dial, EvidenceAbout, Filter, Hello, List, Listen, MakeDirectory, MarkerKey, Origin, Ports,
    ReadFile, ReceiveRole, Remove, Rename, Role, SendRole, Sink, SourceSpec, Sum, Survey, Tunnel,
};
pub use options::TransferOptions;
pub use session_key::SessionKey;
pub use tell::{
    Dialed, Ended, Entry, FileSystemKey, Listening, OpenedFile, PathFacts, PlaceKey, Stages, StreamLost, Surveyed,
    Tell, Welcome,
};
