//! The data path: authenticated streams of frames, and the digests of what they carry.

pub mod hasher;
pub mod mac;
pub mod path_watch;
pub mod socket;
pub mod stages;
pub mod stream;
pub mod traffic;
