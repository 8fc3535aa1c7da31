//! What a store can do, and how it is asked to write.

use std::time::Duration;

use carrack_core::attributes::KeptAttributes;
use carrack_core::failure::{ErrorCode, Failure, Reason, Side};
use carrack_core::limits;
use carrack_core::request::{Digests, Durability, Existing, InPlace, Verify};

use crate::error::failure;

/// What a store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// What is written is wanted, to be kept or to be seen. Otherwise no byte needs to be handed over.
    pub keeps: bool,
    /// In which order a file's bytes may be written.
    pub writes: Writes,
    /// A name shows what it showed before or all of the new content, and nothing in between.
    pub atomic_publish: bool,
    /// [`sync_all`](super::write::Destination::sync_all) proves that what has its name outlives a loss of power.
    pub sync: bool,
    /// The unit in which modification times are kept; `None` where they are not.
    pub times: Option<Duration>,
    /// Permission bits are kept.
    pub permissions: bool,
    /// Symbolic links are kept. Where they are not, none is written: the receiver counts them.
    pub links: bool,
    /// Directories exist, even with nothing in them, and have attributes. Where they do not, none is made.
    pub directories: bool,
    /// Owner and group can be kept.
    pub owner: bool,
    /// Extended attributes can be kept.
    pub xattrs: bool,
    /// Holes take no room.
    pub sparse: bool,
    /// Whether names that differ by case are two.
    pub case: Case,
    /// The store keeps a digest of each block beside it, and proves by it what it gives back.
    pub own_digests: bool,
    /// Bytes that one block may have; `None` for any.
    pub block_bytes: Option<BlockBytes>,
    /// A later session of the same copy finds what this one has left.
    pub resumes: bool,
    /// What only the destination has can be found and deleted.
    pub deletes: bool,
}

/// In which order a file's bytes may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// At any place, again and again.
    Anywhere,
    /// Blocks in any order and again; the bytes of one block from its beginning to its end, by one thread.
    Blocks,
    /// From beginning to end, once.
    InOrder,
}

/// Whether names that differ by case are two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Two names that differ so are two entries.
    Differs,
    /// Two names that differ so are one entry.
    Folds,
    /// Each directory may be different, and is asked.
    PerDirectory,
}

/// Bytes that one block may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockBytes {
    /// The last block of a file may have fewer.
    pub smallest: u32,
    /// None may have more.
    pub largest: u32,
}

impl BlockBytes {
    /// The size of a block, a power of two, that is nearest to the one wanted; `None` where there is none.
    pub fn nearest(self, wanted: u32) -> Option<u32> {
        let smallest = self.smallest.max(limits::BLOCK_BYTES_MIN).checked_next_power_of_two()?;
        let largest = 1 << self.largest.min(limits::BLOCK_BYTES_MAX).checked_ilog2()?;
        (smallest <= largest).then(|| wanted.clamp(smallest, largest))
    }

    /// Whether blocks of this size are taken.
    ///
    /// # Errors
    /// With [`Reason::BlockRefused`] and what is taken.
    pub fn check(self, block: u32) -> Result<(), Failure> {
        let what = match self.nearest(block) {
            Some(nearest) if nearest == block => return Ok(()),
            Some(nearest) => format!("not of {block}; the nearest has {nearest}"),
            None => "and no power of two that blocks may have is among them".to_owned(),
        };
        let message = format!("the store takes blocks of {} to {} bytes, {what}", self.smallest, self.largest);
        Err(failure(ErrorCode::Unsupported, Side::Destination, message).for_reason(Reason::BlockRefused))
    }
}

impl Properties {
    /// What a file system usually can. What one cannot is found when it has been tried, and told.
    pub const FILES: Self = Self {
        keeps: true,
        writes: Writes::Anywhere,
        atomic_publish: true,
        sync: true,
        times: Some(Duration::from_nanos(1)),
        permissions: true,
        links: true,
        directories: true,
        owner: true,
        xattrs: true,
        sparse: true,
        case: Case::PerDirectory,
        own_digests: false,
        block_bytes: None,
        resumes: true,
        deletes: true,
    };

    /// Of what forgets: everything is taken, nothing is kept.
    pub const NOTHING: Self = Self {
        keeps: false,
        writes: Writes::Anywhere,
        atomic_publish: false,
        sync: false,
        times: None,
        permissions: false,
        links: false,
        directories: false,
        owner: false,
        xattrs: false,
        sparse: false,
        case: Case::Differs,
        own_digests: false,
        block_bytes: None,
        resumes: false,
        deletes: false,
    };
}

/// A session that may be taken up by a later one.
#[derive(Clone, Copy, Debug)]
pub struct MarkerRequest {
    /// What it is found by: two sessions with the same key copy the same.
    pub key: [u8; limits::MARKER_KEY_BYTES],
    /// Whatever is there already is removed, not used.
    pub anew: bool,
    /// The directory is the copy's own: it was made just now.
    pub made_top: bool,
    /// Not all that the key means is copied: unfinished items that the session does not ask for stay.
    pub partial: bool,
}

/// How files are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Bytes of a block; the last of a file may have fewer.
    pub block_bytes: u32,
    /// What is computed over what arrives.
    pub digests: Digests,
    /// How files are proved.
    pub verify: Verify,
    /// What happens to names that exist.
    pub existing: Existing,
    /// What has reached stable storage, and when.
    pub durability: Durability,
    /// Modification times that differ by no more, in nanoseconds, are one time.
    pub window_ns: u64,
    /// A link that is there already is the same.
    pub compares: bool,
    /// Of a file that stands at its name in another state, what may still be the same is taken over.
    pub takes_over: bool,
    /// Which files are written over where they stand.
    pub in_place: InPlace,
    /// Who writes has a new part share the blocks of its source, by `Part::share`: nothing is reserved for it before.
    pub shares: bool,
    /// Nothing is written.
    pub plan_only: bool,
    /// What items get of the attributes of their sources beside permissions and times.
    pub kept: KeptAttributes,
    /// What of it may not be set is written down beside items.
    pub fakes: bool,
    /// The destination itself becomes as its source is, also where it was there.
    pub top_attributes: bool,
}

impl WriteOptions {
    /// What nobody has asked for otherwise, in blocks of so many bytes.
    pub const fn in_blocks(block_bytes: u32) -> Self {
        Self {
            block_bytes,
            digests: Digests::BLAKE3,
            verify: Verify::Wire,
            existing: Existing::Replace,
            durability: Durability::Group,
            window_ns: 0,
            compares: false,
            takes_over: false,
            in_place: InPlace::Never,
            shares: false,
            plan_only: false,
            kept: KeptAttributes::NONE,
            fakes: false,
            top_attributes: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_bytes_of_a_store_are_met_by_a_power_of_two() {
        let nearest = |smallest, largest, wanted| BlockBytes { smallest, largest }.nearest(wanted);
        assert_eq!(nearest(5 << 20, u32::MAX, 256 << 10), Some(8 << 20));
        assert_eq!(nearest(5 << 20, u32::MAX, 16 << 20), Some(16 << 20));
        assert_eq!(nearest(0, 3 << 20, 4 << 20), Some(2 << 20));
        assert_eq!(nearest(0, u32::MAX, 4 << 20), Some(4 << 20));
        for (smallest, largest) in [(0, 0), (0, 1000), (5 << 20, 7 << 20), (65 << 20, 1 << 30), (u32::MAX, u32::MAX)] {
            assert_eq!(nearest(smallest, largest, 4 << 20), None, "{smallest} to {largest}");
        }
    }
}
