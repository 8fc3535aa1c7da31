//! Data connections: made, accepted and tied to their session; streams of frames over them, and the
//! digests of what they carry.

pub mod content;
pub mod crew;
pub mod dial;
pub mod hasher;
pub mod hello;
pub mod listen;
pub mod mac;
pub mod measurements;
pub mod meter;
pub mod path_watch;
pub mod pieces;
pub mod prepared;
pub mod sessions;
pub mod stages;
pub mod stream;
pub mod traffic;
