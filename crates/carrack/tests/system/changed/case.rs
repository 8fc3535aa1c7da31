//! The lists that the table is made of, and what the files of a case hold.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::support::tree;

const MIB: usize = 1 << 20;
/// The blocks of all runs: so large that the first block of a part file is long under way when a
/// short last one has landed.
pub const BLOCK: usize = 4 * MIB;
/// The last block of files with several.
const TAIL: usize = 64 << 10;
/// A page of a file, at least on the file systems that are used here: what a hole is made of.
pub const PAGE: usize = 4096;

/// How a source changes between two runs. Size and modification time are the same before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It does not.
    Unchanged,
    /// Written over in place.
    Overwritten,
    /// Its last bytes are written over in place.
    EndOverwritten,
    /// Another file is renamed to its name.
    Renamed,
    /// Another file that was there before is linked to its name.
    HardLinked,
    /// Its directory is exchanged for another one that was there before.
    DirectoryExchanged,
    /// The same; the other file has holes where this one has data.
    ExchangedForHoles,
    /// The same; the other file has data where this one has holes.
    ExchangedForData,
    /// Another file system, filled before, is mounted over its directory.
    MountedOver,
    /// Its directory is a bind mount, which is exchanged for that of another directory.
    BindExchanged,
    /// Written over through a mapping of its pages.
    Mapped,
    /// The same on tmpfs, where that moves no time.
    MappedInMemory,
    /// Data is made a hole in place.
    Punched,
    /// A hole is filled in place.
    Filled,
    /// Written over in place, where times are whole seconds.
    Coarse,
    /// The same; its time is beyond what the file system can keep.
    Clamped,
    /// Written over in place while the clock is an hour behind.
    ClockSetBack,
    /// A link in the path of the source is set to another directory. A run of its own: it is another source.
    LinkSwitched,
}

impl Change {
    pub const ALL: [Self; 17] = [
        Self::Unchanged,
        Self::Overwritten,
        Self::EndOverwritten,
        Self::Renamed,
        Self::HardLinked,
        Self::DirectoryExchanged,
        Self::ExchangedForHoles,
        Self::ExchangedForData,
        Self::MountedOver,
        Self::BindExchanged,
        Self::Mapped,
        Self::MappedInMemory,
        Self::Punched,
        Self::Filled,
        Self::Coarse,
        Self::Clamped,
        Self::ClockSetBack,
    ];
}

/// What stands at the destination when the second run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// What the first run published.
    Published,
    /// The same, with a second name.
    PublishedLinked,
    /// Another file of the same size and time, renamed to the name.
    PublishedReplaced,
    /// The same file, written over in place, its time put back.
    PublishedOverwritten,
    /// Nothing: what was published has been removed.
    PublishedRemoved,
    /// The part file that the first run left.
    Part,
    /// The same, one byte altered in a block that is claimed, its time put back.
    PartAltered,
    /// The same, with a hole in place of a claimed block, its time put back.
    PartPunched,
    /// The same, cut before the claimed block.
    PartTruncated,
    /// The same, with a second name.
    PartLinked,
    /// Another file of the same size and time, renamed to the part file's name.
    PartReplaced,
}

impl State {
    pub const ALL: [Self; 11] = [
        Self::Published,
        Self::PublishedLinked,
        Self::PublishedReplaced,
        Self::PublishedOverwritten,
        Self::PublishedRemoved,
        Self::Part,
        Self::PartAltered,
        Self::PartPunched,
        Self::PartTruncated,
        Self::PartLinked,
        Self::PartReplaced,
    ];

    pub fn is_part(self) -> bool {
        !matches!(
            self,
            Self::Published
                | Self::PublishedLinked
                | Self::PublishedReplaced
                | Self::PublishedOverwritten
                | Self::PublishedRemoved
        )
    }
}

/// What kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// It goes in a bundle, and never leaves a part file for a later run.
    Small,
    /// Full of data.
    Large,
    /// A block of it is a hole.
    Sparse,
}

impl Shape {
    pub const ALL: [Self; 3] = [Self::Small, Self::Large, Self::Sparse];
}

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub change: Change,
    pub state: State,
    pub shape: Shape,
}

/// Cases in one directory of the source: what is done to a directory is done to all of them. Small files come
/// with an earlier session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    pub change: Change,
    pub small: bool,
}

impl Unit {
    /// Of the directory.
    pub fn name(self) -> String {
        let size = if self.small { "Small" } else { "Large" };
        format!("{:?}-{size}", self.change)
    }
}

/// Every case with one of these changes, but small files in part.
pub fn cross(changes: &[Change]) -> Vec<Case> {
    let states = || State::ALL.into_iter().flat_map(|state| Shape::ALL.map(|shape| (state, shape)));
    let all = changes.iter().flat_map(|&change| states().map(move |(state, shape)| Case { change, state, shape }));
    all.filter(|case| !(case.state.is_part() && case.shape == Shape::Small)).collect()
}

impl Case {
    pub fn unit(&self) -> Unit {
        Unit { change: self.change, small: self.shape == Shape::Small }
    }

    pub fn name(&self) -> String {
        format!("{:?}-{:?}", self.state, self.shape)
    }

    /// Below the source, and below the destination.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(self.unit().name()).join(self.name())
    }

    pub fn size(&self) -> usize {
        match (self.shape, self.state.is_part()) {
            (Shape::Small, _) => 6000,
            (Shape::Large, false) => MIB + 3000,
            (Shape::Sparse, false) | (Shape::Large, true) => BLOCK + TAIL,
            (Shape::Sparse, true) => 2 * BLOCK + TAIL,
        }
    }

    /// Where the first version has data; what is empty is nowhere.
    fn data(&self) -> [Range<usize>; 2] {
        let tail = self.tail();
        match (self.shape, self.state.is_part()) {
            (Shape::Sparse, false) => [0..0, tail],
            // The first block takes long, and the last has landed meanwhile.
            (Shape::Sparse, true) => [0..BLOCK, tail],
            _ => [0..self.size(), 0..0],
        }
    }

    /// The end of the file, from a page's border on. Of a part file the last block: the one that the marker claims.
    pub fn tail(&self) -> Range<usize> {
        let start = if self.size() > BLOCK { self.size() - TAIL } else { PAGE };
        start..self.size()
    }

    /// The hole that is filled, or the first data where there is none.
    fn gap(&self) -> Range<usize> {
        match (self.shape, self.state.is_part()) {
            (Shape::Sparse, false) => 0..BLOCK,
            (Shape::Sparse, true) => BLOCK..2 * BLOCK,
            _ => 0..PAGE,
        }
    }

    /// When all its versions were written, as far as anybody can see.
    pub fn time(&self) -> SystemTime {
        match self.change {
            // The year 2500. What an inode of 128 bytes makes of it is not this.
            Change::Clamped => SystemTime::UNIX_EPOCH + Duration::from_secs(16_725_225_600),
            _ => SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000),
        }
    }
}

/// Bytes for all files: each takes them from another place.
pub struct Content {
    first: Vec<u8>,
    second: Vec<u8>,
}

impl Content {
    const SHIFT: usize = 8;
    const LONGEST: usize = 2 * BLOCK + TAIL;

    pub fn new() -> Self {
        let bytes = |seed| tree::bytes(Self::LONGEST + Self::SHIFT * 4096, seed);
        Self { first: bytes(1), second: bytes(2) }
    }

    fn of<'a>(bytes: &'a [u8], case: &Case) -> &'a [u8] {
        let states = State::ALL.len() * Shape::ALL.len();
        let number = case.change as usize * states + case.state as usize * Shape::ALL.len() + case.shape as usize;
        &bytes[number * Self::SHIFT..][..case.size()]
    }

    /// Writes the first version.
    pub fn write_first(&self, case: &Case, path: &Path) {
        let file = File::create_new(path).unwrap();
        file.set_len(case.size() as u64).unwrap();
        self.put(case, &file, case.data());
        file.set_modified(case.time()).unwrap();
    }

    fn put(&self, case: &Case, file: &File, ranges: [Range<usize>; 2]) {
        for range in ranges {
            file.write_all_at(&Self::of(&self.first, case)[range.clone()], range.start as u64).unwrap();
        }
    }

    /// Writes the second version as another file, with holes where the first had its end, or with data where the first
    /// had holes, if so wanted.
    pub fn write_second(&self, case: &Case, path: &Path) {
        let file = File::create_new(path).unwrap();
        file.set_len(case.size() as u64).unwrap();
        match case.change {
            // The first block too: whether a block is claimed or not, a hole may come for it.
            Change::ExchangedForHoles => {
                let start = match (case.state.is_part(), case.shape) {
                    (false, _) => 0,
                    (true, Shape::Sparse) => BLOCK,
                    (true, _) => BLOCK / 2,
                };
                self.put(case, &file, [start..case.tail().start, 0..0]);
            }
            Change::ExchangedForData => {
                self.put(case, &file, case.data());
                self.put_second(case, &file, case.gap());
            }
            _ => case.data().into_iter().for_each(|range| self.put_second(case, &file, range)),
        }
        file.set_modified(case.time()).unwrap();
    }

    fn put_second(&self, case: &Case, file: &File, range: Range<usize>) {
        file.write_all_at(&Self::of(&self.second, case)[range.clone()], range.start as u64).unwrap();
    }

    /// Writes the second version over what is there, as the change says, and puts the time back.
    pub fn write_over(&self, case: &Case, path: &Path) {
        let file = File::options().write(true).open(path).unwrap();
        match case.change {
            Change::EndOverwritten => self.put_second(case, &file, case.size() - 100..case.size()),
            Change::Filled => self.put_second(case, &file, case.gap()),
            _ => case.data().into_iter().for_each(|range| self.put_second(case, &file, range)),
        }
        file.set_modified(case.time()).unwrap();
    }

    /// Whether a file has the first version's bytes.
    pub fn is_first(&self, case: &Case, bytes: &[u8]) -> bool {
        let first = Self::of(&self.first, case);
        let mut expected = vec![0; case.size()];
        case.data().into_iter().for_each(|range| expected[range.clone()].copy_from_slice(&first[range]));
        bytes == expected
    }

    /// Other bytes of the same length, for what somebody else puts in the way.
    pub fn foreign(&self, length: usize) -> &[u8] {
        &self.second[self.second.len() - length..]
    }
}
