//! Which versions of the protocol there are, and which the two ends of a connection agree on.
//!
//! There is one. Nothing has been released yet: a change edits version 1 in place. From the first release on, what an
//! end of an earlier version does not understand is not said to it, and a version may only be dropped with a notice.

use std::fmt;

/// The newest version spoken. Both ends say which they speak, and the lower is used.
pub const PROTOCOL_VERSION: u32 = Version::NEWEST.0;
/// The oldest version still spoken.
pub const PROTOCOL_VERSION_MIN: u32 = Version::OLDEST.0;

/// A version of the protocol that is spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u32);

impl Version {
    /// The oldest that is still spoken.
    pub const OLDEST: Self = Self(1);
    /// The newest version that this program speaks.
    pub const NEWEST: Self = Self(1);

    /// From its number on the wire; `None` for one that is not spoken here.
    pub fn from_number(number: u32) -> Option<Self> {
        Some(Self(number)).filter(|version| (Self::OLDEST..=Self::NEWEST).contains(version))
    }

    /// The number on the wire.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The newest that both speak; `None` where there is none. The other speaks `oldest` to `newest`.
    pub fn common(oldest: u32, newest: u32) -> Option<Self> {
        Self::from_number(newest.min(Self::NEWEST.0)).filter(|version| version.0 >= oldest)
    }
}

/// The oldest.
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
        assert_eq!(found, [1]);
        assert_eq!(Version::from_number(u32::MAX), None);
    }

    #[test]
    fn newest_that_both_speak_is_used() {
        let common = |oldest, newest| Version::common(oldest, newest).map(Version::number);
        assert_eq!([common(1, 1), common(1, 9), common(0, 1)], [Some(1); 3]);
        assert_eq!([common(2, 9), common(0, 0), common(2, 1)], [None; 3]);
    }
}
