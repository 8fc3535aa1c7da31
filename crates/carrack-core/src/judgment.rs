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
    /// Something else stands there, whose chunks are told: what differs of it is sent.
    Chunked(ItemDifference),
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
    /// Whether the receiver reads of it before anything becomes of it, and tells what came of that.
    pub fn is_open(self) -> bool {
        self.is_read() || matches!(self, Self::Chunked(_))
    }

    /// Whether the sender reads of it, too, and tells what it holds.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Undecided | Self::Sampled)
    }

    const DIFFERS: u8 = 16;
    const CHUNKED: u8 = 24;

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
            Self::Differs(difference) => Self::DIFFERS | difference.bits(),
            Self::Chunked(difference) => Self::CHUNKED | difference.bits(),
        }
    }

    /// The judgment of a number; `None` where there is none.
    pub fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::New,
            1 => Self::Same,
            2 => Self::Undecided,
            3 => Self::Left(LeftBecause::Exists),
            4 => Self::Left(LeftBecause::Absent),
            5 => Self::Left(LeftBecause::Newer),
            6 => Self::Sampled,
            _ if number & !7 == Self::DIFFERS => Self::Differs(ItemDifference::from_bits(number)),
            _ if number & !7 == Self::CHUNKED => Self::Chunked(ItemDifference::from_bits(number)),
            _ => return None,
        })
    }
}

impl ItemDifference {
    fn bits(self) -> u8 {
        u8::from(self.kind) | u8::from(self.size) << 1 | u8::from(self.time) << 2
    }

    /// Of the three lowest bits.
    fn from_bits(bits: u8) -> Self {
        let has = |bit: u8| bits & bit != 0;
        Self { kind: has(1), size: has(2), time: has(4) }
    }
}
