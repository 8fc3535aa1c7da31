//! The writing half of the contract of a store: hidden until it is whole, then named, then durable. See
//! [`super::store`] for the rules of all methods.
//!
//! The order in which a session calls: [`Destination::known_count`] and [`Destination::known`] say what need not come
//! again; or [`Destination::standing`] says what is there to be compared. A large file: [`Destination::begin`]; its
//! blocks by [`Part::write`], each ended by [`Part::end_block`]; [`Part::checkpoint`] every now and then;
//! [`Part::finish`], [`Part::verify`], [`Part::publish`]. Small ones, in groups: [`Destination::write_small`] or
//! [`Destination::write_link`] of each; [`Destination::sync_group`]; [`Entry::verify`] and [`Entry::publish`] of each;
//! [`Destination::written_down`]. When all have their names: what only the destination has, as [`Destination::list`]
//! says, gets a [`Destination::delete`]; then [`Destination::apply_directories`], [`Destination::sync_all`]. At the end
//! every part that is still open gets [`Part::leave`], every entry [`Entry::remove`], and then [`Destination::finish`]
//! says whether all is done.

mod closing;
mod content;
mod small;
mod standing;
mod unkept;

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::attributes::{Attributes, Lacks, OtherAttributes, Time};
use carrack_core::digest::{BlockDigest, FileDigests};
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::report::{DestinationCounts, ItemKind, Unfinished, Unsynced};
use carrack_core::request::Digests;
use carrack_core::special::SpecialFile;
use carrack_core::transfer::Fingerprint;
use carrack_core::tuning::SLICE_BYTES;
use carrack_core::wire::patch::TakenBlock;
use carrack_sys::bulk::Pipe;

pub use self::closing::Closing;
pub use self::content::{block_digest, compare, compare_pieces};
pub use self::small::{Begun, Entry, Growing, Stored};
pub use self::standing::{Referred, StandingItem};
pub use self::unkept::UnkeptSoFar;
use super::properties::{Properties, WriteOptions};
use super::workers::MetadataWorkers;
use crate::error::failure;

/// A large file that is offered.
#[derive(Clone, Debug)]
pub struct NewFile<'a> {
    /// Relative to the destination.
    pub path: &'a [u8],
    /// Bytes; `None` for a source that ends when it ends.
    pub size: Option<u64>,
    /// What it is to have; no modification time where its source has none.
    pub attributes: Attributes,
    /// The source has holes worth keeping.
    pub sparse: bool,
    /// What a later session knows the source by.
    pub fingerprint: Option<Fingerprint>,
}

impl NewFile<'_> {
    /// What an earlier session may have published of it.
    pub fn as_earlier(&self, options: &WriteOptions) -> EarlierItem<'_> {
        EarlierItem {
            path: self.path,
            kind: ItemKind::File,
            fingerprint: self.fingerprint,
            mode: Some(self.attributes.mode),
            mtime: self.attributes.mtime,
            others: &self.attributes.others,
            block_bytes: Some(options.block_bytes),
        }
    }
}

/// What a bundled file or link is, beside its bytes.
pub struct SmallFile<'a> {
    /// Relative to the destination.
    pub path: &'a [u8],
    /// What it is to have; a modification time always.
    pub attributes: Attributes,
    /// What a later session knows the source by.
    pub fingerprint: Option<Fingerprint>,
    /// What was computed over what arrived.
    pub digests: FileDigests,
    /// It is to be read back before it gets its name.
    pub read_back: bool,
}

/// An item that an earlier session may have published.
#[derive(Clone, Debug)]
pub struct EarlierItem<'a> {
    /// Relative to the destination.
    pub path: &'a [u8],
    /// A file or a link.
    pub kind: ItemKind,
    /// What its source is known by.
    pub fingerprint: Option<Fingerprint>,
    /// Permission bits that it is to have, where they are known.
    pub mode: Option<u32>,
    /// The modification time that it is to have, if any.
    pub mtime: Option<Time>,
    /// Attributes of further kinds that it is to have.
    pub others: &'a OtherAttributes,
    /// Bytes of a block, of a file that travels in blocks: its digest is made of theirs.
    pub block_bytes: Option<u32>,
}

/// The modification time of a file while it is written over where it stands: older than any, so that it is compared as
/// different.
pub const TIME_OF_MIXTURE: Time = Time::new(0, 0);

/// Attributes for a directory.
#[derive(Clone, Debug)]
pub struct NewDirectory {
    /// Relative to the destination; empty for the destination itself.
    pub path: Vec<u8>,
    /// What it is to have.
    pub attributes: Attributes,
}

/// What opening a place for a file came to.
pub enum Opening {
    /// The name stays as it is, as was asked for.
    Keep,
    /// A new one, with nothing in it.
    Fresh(Arc<dyn Part>),
    /// One that has blocks already.
    Resumed {
        /// Where it goes on growing.
        part: Arc<dyn Part>,
        /// Blocks that are there, by index, and what they were when they were written. The sender compares each.
        held: Vec<(u64, BlockDigest)>,
        /// Indexes of blocks that may be there: [`Part::rehash`] tells, in its own time.
        doubtful: Vec<u64>,
        /// Indexes of blocks that what stands at the name has, too, those among them that are there already: see
        /// [`Part::take_over`].
        standing: Range<u64>,
    },
    /// An earlier session has published it, with these digests, and neither side has changed since.
    Present(FileDigests),
    /// As `Present`, but what stands there has to be read before it is believed: [`Destination::known`] does that.
    MayBePresent,
}

/// Where files go.
pub trait Destination: Send + Sync {
    /// What can be done here.
    fn properties(&self) -> Properties;

    /// Items that earlier sessions published and a digest can prove, as far as is known: see [`Destination::known`].
    fn known_count(&self, _wanted: Digests) -> u64 {
        0
    }

    /// Whether an earlier session has published the item from the very same source, and its copy is what it was then;
    /// then its digests, and [`Destination::unkept`] tells what it does not have of what it is to have. May read all of
    /// it, unless `stop` says that nobody wants to know any more. `None` is always true enough: the item is sent again.
    /// May be repeated.
    fn known(&self, _item: &EarlierItem<'_>, _options: &WriteOptions, _stop: &dyn Fn() -> bool) -> Option<FileDigests> {
        None
    }

    /// What stands at each of these paths, in their order, to be compared; `None` where nothing does. The empty path is
    /// the destination itself. With `workers` it may look at several at once. A store that cannot tell leaves it out:
    /// then everything is sent. May be repeated.
    ///
    /// # Errors
    /// Of each path, why it cannot be told.
    fn standing(
        &self,
        paths: &[&[u8]],
        _workers: Option<&MetadataWorkers>,
    ) -> Vec<Result<Option<StandingItem>, Failure>> {
        paths.iter().map(|_| Ok(None)).collect()
    }

    /// The same of the path of a directory of the source, where a link may stand for one.
    ///
    /// # Errors
    /// Why it cannot be told.
    fn standing_directory(&self, path: &[u8]) -> Result<Option<StandingItem>, Failure> {
        self.standing(&[path], None).pop().unwrap_or(Ok(None))
    }

    /// What a file or a directory at a path lacks of what is given and only its extended attributes show; nothing where
    /// the store gives nothing of it. May be repeated.
    fn lacks(&self, _path: &[u8], _wanted: &OtherAttributes) -> Lacks {
        Lacks::default()
    }

    /// The first bytes of a file at a path, at most so many; `None` where none is.
    ///
    /// # Errors
    /// When it cannot be read.
    fn first_bytes(&self, _path: &[u8], _most: u64) -> Result<Option<Vec<u8>>, Failure> {
        Ok(None)
    }

    /// The BLAKE3 of a file at a path, by so many threads at most; `None` where none is, or once told to stop.
    ///
    /// # Errors
    /// When it cannot be read.
    fn content(
        &self,
        _path: &[u8],
        _threads: usize,
        _stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<[u8; 32]>, Failure> {
        Ok(None)
    }

    /// Gives what stands at a path permissions and a time, and what else is kept; see [`Destination::unkept`]. Says
    /// whether anything has changed by that. `of` is the device and inode of the file that was compared. May be
    /// repeated.
    ///
    /// # Errors
    /// Why they cannot be set; where another file stands there.
    fn set_attributes(&self, _path: &[u8], _attributes: &Attributes, _of: Option<(u64, u64)>) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Notes of what stands at a path, and stays as it is, what it has not kept of these; see [`Destination::unkept`].
    fn note_unkept(&self, _path: &[u8], _attributes: &Attributes) {}

    /// Whether a link stands at a path that says this, as far as that can be told. May be repeated.
    fn is_link_to(&self, _path: &[u8], _target: &[u8]) -> bool {
        false
    }

    /// Names in a directory, but Carrack's own, in any order, until `each` says `false`; none if it is not there.
    /// Whether these were all: there are none of Carrack's own. See [`Properties::deletes`]. May be repeated.
    ///
    /// # Errors
    /// When not all of them can be told.
    fn list(&self, _directory: &[u8], _each: &mut dyn FnMut(&[u8]) -> bool) -> Result<bool, Failure> {
        Ok(true)
    }

    /// Whether two different names may be one in a directory, also in one that is yet to be made.
    fn folds_names(&self, _directory: &[u8]) -> bool {
        false
    }

    /// Whether upper and lower case are surely one at the top.
    fn folds_case(&self) -> bool {
        false
    }

    /// Whether what stands at a path, by device and inode, is no other name's of this copy: it is this one's by now.
    fn claim(&self, _path: &[u8], _file: (u64, u64)) -> bool {
        true
    }

    /// Deletes a file or a link, or a directory with nothing in it. May be repeated: what is not there is deleted.
    ///
    /// # Errors
    /// Why it stays.
    fn delete(&self, _path: &[u8], _kind: ItemKind) -> Result<(), Failure> {
        Err(failure(ErrorCode::Unsupported, Side::Destination, "the store deletes nothing"))
    }

    /// Takes away one name of a file that has another, if it is this `file` (device and inode), whatever is kept of
    /// what is deleted; `false` if another one stands there. May be repeated: then nothing stands there.
    ///
    /// # Errors
    /// Why it stays.
    fn forget_name(&self, _path: &[u8], _file: (u64, u64)) -> Result<bool, Failure> {
        Err(failure(ErrorCode::Unsupported, Side::Destination, "the store deletes nothing"))
    }

    /// The content of a file with rules, of at most so many bytes; `None` where there is none. May be repeated.
    ///
    /// # Errors
    /// When there is one that cannot be read.
    fn read_rules(&self, _path: &[u8], _most: usize) -> Result<Option<Vec<u8>>, Failure> {
        Ok(None)
    }

    /// A file without a name, for what is too long to keep in memory.
    ///
    /// # Errors
    /// Those of the store; that it has none.
    fn scratch(&self) -> Result<File, Failure> {
        Err(failure(ErrorCode::Unsupported, Side::Destination, "the store has no room for a list"))
    }

    /// Makes the place where a file grows, or takes up what an earlier session left of it. What that left and does not
    /// fit what is offered now is removed. Unless told to `believe`, what an earlier session published does not count.
    /// Nothing can be seen under the file's name before it is published. One thread at a time for one path.
    ///
    /// # Errors
    /// Why it cannot be written; nothing is left behind. With [`ErrorCode::ResourceLimit`] it may be repeated later.
    fn begin(&self, file: &NewFile<'_>, options: &WriteOptions, believe: bool) -> Result<Opening, Failure>;

    /// Writes a small file under a hidden name, with its attributes. Repeated, it starts over.
    ///
    /// # Errors
    /// Why it cannot be written; nothing is left behind.
    fn write_small(&self, small: &SmallFile<'_>, options: &WriteOptions, content: &[u8]) -> Result<Stored, Failure>;

    /// Makes a small file of `size` bytes under a hidden name, to be written in pieces.
    ///
    /// # Errors
    /// Why it cannot be written; nothing is left behind.
    fn begin_small(&self, _small: &SmallFile<'_>, _options: &WriteOptions, _size: u64) -> Result<Begun, Failure> {
        Ok(Begun::AtOnce)
    }

    /// Makes a symbolic link under a hidden name. Repeated, it starts over.
    ///
    /// # Errors
    /// Why it cannot be made, as where links are not kept; nothing is left behind.
    fn write_link(&self, _small: &SmallFile<'_>, _options: &WriteOptions, _target: &[u8]) -> Result<Stored, Failure> {
        Err(failure(ErrorCode::Unsupported, Side::Destination, "is a symbolic link, and the store keeps none"))
    }

    /// Makes a FIFO, a socket or a device under a hidden name. Repeated, it starts over.
    ///
    /// # Errors
    /// Why it cannot be made, as where none are kept; nothing is left behind.
    fn write_special(
        &self,
        _small: &SmallFile<'_>,
        _options: &WriteOptions,
        _special: SpecialFile,
    ) -> Result<Stored, Failure> {
        Err(failure(ErrorCode::Unsupported, Side::Destination, "is a FIFO, socket or device, and the store keeps none"))
    }

    /// Makes a further name of a file that is there, under a hidden name: `names` are those that it has, and the bytes
    /// of a file. It has all of that file's attributes by that. Repeated, it starts over.
    ///
    /// # Errors
    /// Those of the store; nothing is left behind. That no link can be made of any of the names is none:
    /// [`Stored::Unlinked`].
    fn write_hard_link(
        &self,
        _small: &SmallFile<'_>,
        _options: &WriteOptions,
        _names: (&[Vec<u8>], Option<u64>),
    ) -> Result<Stored, Failure> {
        Ok(Stored::Unlinked)
    }

    /// Whether what stands at a path is something special of this kind and these numbers. May be repeated.
    fn is_special(&self, _path: &[u8], _special: SpecialFile) -> bool {
        false
    }

    /// Makes a file of what a reference directory has, under a hidden name, unless `stop` says that nobody wants it any
    /// more. Repeated, it starts over.
    ///
    /// # Errors
    /// Why it cannot be made: no link of it, none in this store, or it is another file by now. Nothing is left behind,
    /// and the item can be sent.
    fn write_referred(
        &self,
        _referred: &Referred<'_>,
        _options: &WriteOptions,
        _stop: &dyn Fn() -> bool,
    ) -> Result<Stored, Failure> {
        Err(failure(ErrorCode::Unsupported, Side::Destination, "the store has no directories to refer to"))
    }

    /// Makes a directory, and those above it, or finds it. May be repeated.
    ///
    /// # Errors
    /// When something else stands there.
    fn make_directory(&self, _path: &[u8]) -> Result<(), Failure> {
        Ok(())
    }

    /// The permissions, the owner and the access control lists that the directory itself keeps, whatever its source
    /// has; `None` where it is to become as that is.
    fn kept_by_top(&self) -> Option<&Attributes> {
        None
    }

    /// Brings what small files of a group hold to stable storage, before they get their names; but of those that need
    /// no sync ([`Entry::awaits_sync`]). May not be repeated after an error: asking again would prove nothing.
    ///
    /// # Errors
    /// The system's: then nothing that was written since the last time may be relied on.
    fn sync_group(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// A group has got its names: from now on a later session finds it. May be repeated.
    fn written_down(&self) {}

    /// Sets attributes of directories in this order, and tells what failed. Nothing is written into them afterwards.
    /// May be repeated.
    fn apply_directories(&self, _list: &[NewDirectory]) -> Vec<(Vec<u8>, Failure)> {
        Vec::new()
    }

    /// Brings everything that has its name to stable storage, and tells whether that was done. May not be repeated
    /// after an error.
    ///
    /// # Errors
    /// The system's, as [`Destination::sync_group`]; and when the destination is no longer where it was.
    fn sync_all(&self) -> Result<bool, Failure> {
        Ok(false)
    }

    /// What has got its name and may be gone, because a sync has failed since: nothing as long as none has.
    fn unsynced(&self) -> Unsynced {
        Unsynced::default()
    }

    /// Unfinished items of an earlier session that this one did not ask for, once it has finished: they stay.
    fn unfinished(&self) -> Unfinished {
        Unfinished::default()
    }

    /// What a user should know of calls to storage that have not returned: each once. To be asked every now and then.
    fn stalled(&self, _now: Instant) -> Vec<String> {
        Vec::new()
    }

    /// The session has failed. What is about to get its name still may for so long, and nothing after that: a call that
    /// hangs may return when the next session has long given a newer file that name.
    fn close_in(&self, _patience: Duration) {}

    /// What was not kept so far of what was to be set. Attributes of unknown kinds are not kept: they fail nothing.
    fn unkept(&self) -> UnkeptSoFar {
        UnkeptSoFar::default()
    }

    /// What it counts.
    fn counted(&self) -> DestinationCounts {
        DestinationCounts::default()
    }

    /// Files that have got their names, or kept them, where nothing can be read back past a cache.
    fn files_in_memory(&self) -> u64 {
        0
    }

    /// The end of the session, when every part has been published, removed or left, and nobody writes or removes any
    /// more. `whole`: nothing is left to do, and nothing stays but what has its name. Once.
    fn finish(&self, _whole: bool) {}
}

/// Where a file grows, hidden. Several threads may write different blocks at once; a block is written by one at a time.
pub trait Part: Send + Sync {
    /// Writes bytes of a block. How blocks and bytes may follow each other is said by [`Properties::writes`]. May be
    /// repeated where bytes may be written again.
    ///
    /// # Errors
    /// Those of the store; bytes out of their order.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure>;

    /// A whole block is a hole: it reads as zeros afterwards, whatever was there. May be repeated, as [`Part::write`].
    ///
    /// # Errors
    /// Those of [`Part::write`].
    fn write_hole(&self, offset: u64, length: u64) -> Result<(), Failure> {
        let zeros = vec![0; SLICE_BYTES.min(usize::try_from(length).unwrap_or(SLICE_BYTES))];
        let piece = |done| &zeros[..zeros.len().min((length - done) as usize)];
        (0..length).step_by(SLICE_BYTES).try_for_each(|done| self.write(offset + done, piece(done)))
    }

    /// All bytes of a block have been written, as far as they came. Not called after a write of the block has failed.
    /// May be repeated.
    ///
    /// # Errors
    /// Those of [`Part::write`], found only now.
    fn end_block(&self, _offset: u64, _length: u64) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether [`Part::write_from`] can be used: the fast path of copies without digests.
    fn splices(&self) -> bool {
        false
    }

    /// Writes all that a pipe of the kernel holds. May not be repeated: the pipe is empty then.
    ///
    /// # Errors
    /// Those of [`Part::write`]; the pipe may then still hold something.
    fn write_from(&self, _offset: u64, _pipe: &mut Pipe) -> Result<(), Failure> {
        Err(failure(ErrorCode::Internal, Side::Destination, "the store takes no bytes from a pipe of the kernel"))
    }

    /// Makes blocks durable, with the digests that they were found to have: a later session may hold them. With
    /// `read_back` they are read from storage first. Tells the indexes of blocks that storage gives back as something
    /// else. Where nothing can be resumed and nothing is read back, there is nothing to do. May be repeated.
    ///
    /// # Errors
    /// When they cannot be made durable: nothing of this part may be relied on any more.
    fn checkpoint(&self, _blocks: &[(u64, BlockDigest)], _read_back: bool) -> Result<Vec<u64>, Failure> {
        Ok(Vec::new())
    }

    /// A block that an earlier session wrote is about to be written again: what is held of it is not. May be repeated.
    fn unclaim(&self, _index: u64) {}

    /// Reads blocks that may be there from an earlier session, and tells what those are that can be read. It reads all
    /// of them: for a thread of its own. May be repeated.
    fn rehash(&self, _doubtful: &[u64]) -> Vec<(u64, BlockDigest)> {
        Vec::new()
    }

    /// Copies blocks here from what stands at the name, and tells what they are here, of those that could be copied:
    /// for a thread of its own. Nobody writes them meanwhile. May be repeated.
    fn take_over(&self, _standing: &[u64]) -> Vec<TakenBlock> {
        Vec::new()
    }

    /// Reads from `offset` on what is here now; how many bytes, fewer than `slice` has only at the end.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&self, _offset: u64, _slice: &mut [u8]) -> Result<usize, Failure> {
        Err(failure(ErrorCode::Internal, Side::Destination, "the store takes over no blocks"))
    }

    /// Of a new part that nothing has been reserved for ([`WriteOptions::shares`]): has it share all blocks of its
    /// source, as that is at one moment; `false` where that cannot be, and blocks may come. For a thread of its own.
    /// Called once.
    ///
    /// # Errors
    /// Those of [`Destination::begin`].
    fn share(&self, _source: Option<&File>) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Nothing more is taken over: what stands at the name is let go of. May be repeated.
    fn end_taking_over(&self) {}

    /// It has another modification time than was said at its beginning. Before [`Part::finish`], which sets it; a store
    /// that keeps no times, or takes them only at the beginning, leaves it out.
    fn set_modified(&self, _at: Time) {}

    /// All blocks are there: cuts it to its size and sets its attributes; then everything written is on stable storage,
    /// as far as was asked for. May be repeated.
    ///
    /// # Errors
    /// Those of the system: nothing of this part may be relied on any more.
    fn finish(&self, _size: u64) -> Result<(), Failure> {
        Ok(())
    }

    /// Reads back what storage holds, past any cache, and compares. After [`Part::finish`]. May be repeated.
    ///
    /// # Errors
    /// With [`ErrorCode::DigestMismatch`] when storage gives back something else.
    fn verify(&self, _size: u64, _expected: FileDigests) -> Result<(), Failure> {
        Ok(())
    }

    /// Gives it its name; `false` when what has come to stand there is to be kept. `digests` are what it has been found
    /// to be. When this returns the name shows all of it. Once; without its name the part is gone.
    ///
    /// # Errors
    /// Those of the system, something that is not replaced, and a name that is another item's of this copy.
    fn publish(&self, digests: FileDigests) -> Result<bool, Failure>;

    /// Removes it: its file will not come. May be repeated.
    fn remove(&self) {}

    /// Stays for the next session, if that can use anything of it; else it is removed. Nobody may write to it any more.
    fn leave(&self) {
        self.remove();
    }
}
