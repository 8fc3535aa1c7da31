//! How an item of the source compares with what the destination has.

/// How an item of the source compares with what the destination has, and what becomes of it by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgment {
    /// Nothing stands there: it is sent.
    New,
    /// Something else stands there: it is sent.
    Differs(ItemDifference),
    /// What stands there is the same, as far as was compared.
    Same,
    /// Of one size: only the content tells.
    Undecided,
    /// Of one size and time with a file of another name: samples of it tell.
    Sampled,
    /// What stands there, or that nothing does, is left as it is.
    Left(LeftBecause),
}

/// In what two items differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemDifference {
    /// One is a file, the other something else.
    pub kind: bool,
    /// In bytes.
    pub size: bool,
    /// In their modification times.
    pub time: bool,
}

/// Why an item is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftBecause {
    /// Something stands there, and nothing that exists is replaced.
    Exists,
    /// Nothing stands there, and only what exists is replaced.
    Absent,
    /// What stands there is newer.
    Newer,
}

impl Judgment {
    /// Whether both sides read of it before anything is decided.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Undecided | Self::Sampled)
    }

    const DIFFERS: u8 = 16;

    /// The number in messages.
    pub fn number(self) -> u8 {
        match self {
            Self::New => 0,
            Self::Same => 1,
            Self::Undecided => 2,
            Self::Left(LeftBecause::Exists) => 3,
            Self::Left(LeftBecause::Absent) => 4,
            Self::Left(LeftBecause::Newer) => 5,
            Self::Sampled => 6,
            Self::Differs(ItemDifference { kind, size, time }) => {
                Self::DIFFERS | u8::from(kind) | u8::from(size) << 1 | u8::from(time) << 2
            }
        }
    }

    /// The judgment of a number; `None` where there is none.
    pub fn from_number(number: u8) -> Option<Self> {
        let has = |bit: u8| number & bit != 0;
        Some(match number {
            0 => Self::New,
            1 => Self::Same,
            2 => Self::Undecided,
            3 => Self::Left(LeftBecause::Exists),
            4 => Self::Left(LeftBecause::Absent),
            5 => Self::Left(LeftBecause::Newer),
            6 => Self::Sampled,
            _ if number & !7 == Self::DIFFERS => {
                Self::Differs(ItemDifference { kind: has(1), size: has(2), time: has(4) })
            }
            _ => return None,
        })
    }
}
