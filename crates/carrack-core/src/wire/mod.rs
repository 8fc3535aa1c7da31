//! Bytes to types and back, nowhere else.
//!
//! Three things travel. *Control messages* ([`control`]): the command and each end, over ssh or
//! a node's TLS connection.
//! *Peer messages* ([`peer`]): the sender and the receiver of one transfer, carried between them by the command.
//! *Frames* ([`frame`]): metadata and payload, over the data streams. The first two are tagged fields
//! (protobuf), so that a newer peer may say more than an older one understands; frames are fixed headers,
//! changed only with [`PROTOCOL_VERSION`].

pub mod attributes;
mod codec;
pub mod control;
mod error;
pub mod expected;
pub mod fields;
pub mod frame;
#[cfg(test)]
mod golden_tests;
pub mod linked;
pub mod mux;
pub mod patch;
pub mod peer;
pub mod piece;
mod values;
mod version;

pub use codec::peer_text;
pub use error::ProtocolError;
pub use values::failure_bytes;
pub use version::{PROTOCOL_VERSION, PROTOCOL_VERSION_MIN, Version};
