//! Which versions of the protocol there are, and from which on what can be said.
//!
//! 1. The first.
//! 2. Resume (`Held`, `Confirm`, `Query`, `Known`, `Present`), results that ask for an item again (`Again`), blocks
//!    asked for again after they had landed; streams made anew while a transfer runs. What an end of version 1 does not
//!    understand is not said to it.
//! 3. XXH3-128 in the place of BLAKE3 (`Options`, `Sum`, digests of items; trailers, `Held` and `Complete` carry its 16
//!    bytes and zeros); how far a dial goes, before its answer (`Connected`); streams that end in good order while a
//!    transfer runs (`Retire`), and what streams carry (in `Stages`).
//! 4. A dialer in the clear masks its first words. Fingerprints of sources, and attributes of further kinds than
//!    permissions and times, in `Offer`, `Query` and the entries of bundles; these also of directories. Optional fields
//!    are marked (4) where they are defined and in docs/protocol.md: what an end of a version before does not say is
//!    absent, and means what it meant then.
//! 5. Streams that were asked to end stay connected for a while, and go on when they are asked to (`Retire.wake`). Ends
//!    tell what they measure (`Sample`), and what their clocks say (`Clock`). Ends elsewhere than in the command's own
//!    process make up sources, too; and receivers take bytes into memory, and no further. Ends find
//!    the way to the other end (`Trace`), and what their host says of itself (`Evidence`). Senders are told which
//!    digests files must have (`Expect`).
//! 6. Ends read ranges of files over the control connection (`Read`), and rename only to names that nothing has
//!    (`Rename.no_replace`).
//! 7. Ends collect what one copy has left, known by the key of its marker (`Collect.marker`).

use std::fmt;

/// The version of everything in this module. Both ends say which they speak, and the lower is used.
pub const PROTOCOL_VERSION: u32 = Version::NEWEST.0;
/// The oldest version still spoken.
pub const PROTOCOL_VERSION_MIN: u32 = Version::OLDEST.0;

/// A version of the protocol that is spoken here, and what can be said in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u32);

impl Version {
    /// Version 1.
    pub const V1: Self = Self(1);
    /// Version 2.
    pub const V2: Self = Self(2);
    /// Version 3.
    pub const V3: Self = Self(3);
    /// Version 4.
    pub const V4: Self = Self(4);
    /// Version 5.
    pub const V5: Self = Self(5);
    /// Version 6.
    pub const V6: Self = Self(6);
    /// Version 7.
    pub const V7: Self = Self(7);
    /// The oldest that is still spoken.
    pub const OLDEST: Self = Self::V1;
    /// The first in which an agent keeps to a directory that the greeting names.
    pub const KEEPS_TO_A_ROOT: Self = Self::V7;
    /// The newest version that this program speaks.
    pub const NEWEST: Self = Self::V7;

    /// From its number on the wire; `None` for one that is not spoken here.
    pub fn from_number(number: u32) -> Option<Self> {
        Some(Self(number)).filter(|version| (Self::OLDEST..=Self::NEWEST).contains(version))
    }

    /// The number on the wire.
    pub fn number(self) -> u32 {
        self.0
    }

    /// A transfer can be taken up again, and whole items are sent again.
    pub fn can_resume(self) -> bool {
        self >= Self::V2
    }

    /// Streams that a running transfer has lost are made again.
    pub fn remakes_streams(self) -> bool {
        self >= Self::V2
    }

    /// The sender takes a list of what is to be sent.
    pub fn can_select(self) -> bool {
        self >= Self::V2
    }

    /// The sender can take a source that grows for what it was at first.
    pub fn can_allow_growing(self) -> bool {
        self >= Self::V2
    }

    /// The receiver can be told how much has to reach stable storage.
    pub fn has_durability(self) -> bool {
        self >= Self::V2
    }

    /// Ends tell where the time of their streams goes.
    pub fn tells_stages(self) -> bool {
        self >= Self::V2
    }

    /// Blocks can be verified by XXH3-128.
    pub fn has_xxh128(self) -> bool {
        self >= Self::V3
    }

    /// A sender ends streams in good order when it is asked to.
    pub fn retires_streams(self) -> bool {
        self >= Self::V3
    }

    /// Ends tell what their streams carry.
    pub fn tells_traffic(self) -> bool {
        self >= Self::V3
    }

    /// The sender can read its sources a second time.
    pub fn verifies_source(self) -> bool {
        self >= Self::V4
    }

    /// The source end looks whether two sources have the same names.
    pub fn finds_overlaps(self) -> bool {
        self >= Self::V4
    }

    /// A receiver tells of directories whose attributes failed in messages of their own, however many there are.
    pub fn tells_failed_directories(self) -> bool {
        self >= Self::V4
    }

    /// A dialer in the clear masks its first words, which an older listener does not understand.
    pub fn masks_hello(self) -> bool {
        self >= Self::V4
    }

    /// A source's fingerprint travels with each file and link of a bundle.
    pub fn has_fingerprints(self) -> bool {
        self >= Self::V4
    }

    /// Items have attributes beside permissions and times. A receiver that does not know one, or
    /// cannot keep it, says so.
    pub fn has_attributes(self) -> bool {
        self >= Self::V4
    }

    /// With `--verify disk` a receiver reads what an earlier attempt published, too.
    pub fn reads_back_known(self) -> bool {
        self >= Self::V4
    }

    /// A sender parks streams that it was asked to end, and has them go on when it is asked to.
    pub fn parks_streams(self) -> bool {
        self >= Self::V5
    }

    /// Ends tell what they measure, and what their clocks say.
    pub fn tells_samples(self) -> bool {
        self >= Self::V5
    }

    /// Directories are removed only if nothing else is in them, where that is asked for.
    pub fn removes_empty_only(self) -> bool {
        self >= Self::V5
    }

    /// A sender can be told which digests files must have.
    pub fn expects_digests(self) -> bool {
        self >= Self::V5
    }

    /// A sender makes up bytes wherever it is, to measure the path from there.
    pub fn makes_sources(self) -> bool {
        self >= Self::V5
    }

    /// A receiver takes bytes into memory, to measure the path to it.
    pub fn takes_into_memory(self) -> bool {
        self >= Self::V5
    }

    /// Ends find the way that their packets take to the other end.
    pub fn traces_path(self) -> bool {
        self >= Self::V5
    }

    /// Ends gather evidence of their host.
    pub fn tells_evidence(self) -> bool {
        self >= Self::V5
    }

    /// Ends read ranges of files over the control connection.
    pub fn reads_ranges(self) -> bool {
        self >= Self::V6
    }

    /// Ends collect what one copy has left, and nothing else.
    pub fn collects_of_one(self) -> bool {
        self >= Self::V7
    }

    /// A receiver writes zeros where a hole is announced. One that resumes and is of a version before 4 takes what an
    /// earlier session left there for zeros.
    pub fn zeroes_holes(self) -> bool {
        !self.can_resume() || self >= Self::V4
    }
}

/// An end that does not say its version speaks the oldest.
impl Default for Version {
    fn default() -> Self {
        Self::OLDEST
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_are_not_spoken_have_no_number_here() {
        let found: Vec<u32> = (0..10).filter_map(Version::from_number).map(Version::number).collect();
        assert_eq!(found, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(Version::from_number(u32::MAX), None);
        assert_eq!((PROTOCOL_VERSION_MIN, PROTOCOL_VERSION), (1, 7));
    }

    #[test]
    fn holes_are_zeroed_where_nothing_was_left_or_what_was_is_known() {
        let zeroes = [Version::V1, Version::V2, Version::V3, Version::V4].map(Version::zeroes_holes);
        assert_eq!(zeroes, [true, false, false, true]);
    }
}
