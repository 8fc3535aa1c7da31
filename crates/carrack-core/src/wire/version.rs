//! Which versions of the protocol there are, and from which on what can be said.
//!
//! 1. The first.
//! 2. Resume (`Held`, `Confirm`, `Query`, `Known`, `Present`), results that ask for an item again (`Again`), blocks asked for again after
//!    they had landed; streams made anew while a transfer runs. What an end of version 1 does not understand is not said to it.
//! 3. XXH3-128 in the place of BLAKE3 (`Options`, `Sum`, digests of items; trailers, `Held` and `Complete` carry its 16 bytes and zeros);
//!    how far a dial goes, before its answer (`Connected`); streams that end in good order while a transfer runs (`Retire`), and what
//!    streams carry (in `Stages`).
//! 4. A dialer in the clear masks its first words. Fingerprints of sources, in `Offer`, `Query` and the entries of bundles. Optional fields are
//!    marked (4) where they are defined and in docs/protocol.md: what an end of a version before does not say is absent, and means what
//!    it meant then.

/// The version of everything in this module. Both ends say which they speak, and the lower is used.
pub const PROTOCOL_VERSION: u32 = 4;
/// From this version on a transfer can be taken up again, and survives the loss of its streams.
pub const VERSION_RESUME: u32 = 2;
/// From this version on blocks can be verified by XXH3-128.
pub const VERSION_XXH128: u32 = 3;
/// From this version on a sender ends streams in good order when it is asked to, and tells what its streams carry.
pub const VERSION_RETIRE: u32 = 3;
/// From this version on a sender reads its sources once more when it is asked to.
pub const VERSION_VERIFY_SOURCE: u32 = 4;
/// From this version on a sender looks whether two of its sources have the same names.
pub const VERSION_OVERLAPS: u32 = 4;
/// From this version on a receiver tells of directories whose attributes failed in messages of their own, however many there are.
pub const VERSION_DIRECTORIES_FAILED: u32 = 4;
/// From this version on a dialer in the clear masks its first words, which an older listener does not understand.
pub const VERSION_MASKED_HELLO: u32 = 4;
/// From this version on a source's fingerprint travels with each file and link of a bundle.
pub const VERSION_FINGERPRINT: u32 = 4;
/// The oldest version still spoken.
pub const PROTOCOL_VERSION_MIN: u32 = 1;
