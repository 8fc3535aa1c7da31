//! What a store is: the contract of every place that bytes are read from and written to.
//!
//! A [`Store`] is opened for reading as a [`Source`], whose items are opened as [`Reader`]s, and for writing as a [`Destination`], in which a
//! large file grows as a [`Part`] and a small one waits as an [`Entry`] until it gets its name. What a store can do is said by its
//! [`Properties`]; whoever uses one asks those, and never which store it is. `storage::conformance` checks all that is said here.
//!
//! For all methods:
//! - **Threads.** Each method may be called by several threads at once. Where that is not so, the method says so.
//! - **Paths** are relative to what was opened. They have been checked: no empty name, no `.` or `..`, no slash at either end. The empty path
//!   is what was opened itself.
//! - **Failures** have a code that says whether another attempt may help. The callers go by these: [`ErrorCode::SourceChanged`] (the item is
//!   listed and read again), [`ErrorCode::SourceVanished`], [`ErrorCode::ResourceLimit`] of [`Destination::begin`] (it is asked again when
//!   another file has been published), [`ErrorCode::InputOutput`] and [`ErrorCode::DigestMismatch`] of publishing (the item is sent again).
//! - **Retry.** A store repeats what the system tells it to repeat (an interrupted call, a busy descriptor table) and nothing else. Each method
//!   says whether the caller may repeat it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use carrack_core::failure::Failure;
use carrack_core::limits;
use carrack_core::report::ItemKind;
use carrack_core::request::{Digests, Durability, Existing, Verify};
use carrack_core::tuning::Tuning;

use super::read::Source;
use super::write::Destination;

/// What a store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// What is written can be read again. Of a store that keeps nothing no byte needs to be handed over.
    pub keeps: bool,
    /// In which order a file's bytes may be written.
    pub writes: Writes,
    /// A name shows what it showed before or all of the new content, and nothing in between.
    pub atomic_publish: bool,
    /// [`Destination::sync_all`] proves that what has its name outlives a loss of power.
    pub sync: bool,
    /// The unit in which modification times are kept; `None` where they are not.
    pub times: Option<Duration>,
    /// Permission bits are kept.
    pub permissions: bool,
    /// Symbolic links are kept.
    pub links: bool,
    /// Directories exist, even with nothing in them, and have attributes.
    pub directories: bool,
    /// Owner and group could be kept. Carrack does not set them.
    pub owner: bool,
    /// Extended attributes could be kept. Carrack does not set them.
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
    /// They are two.
    Differs,
    /// They are one.
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

impl Properties {
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
    };
}

/// A place whose paths can be read and written.
pub trait Store: Send + Sync + fmt::Debug {
    /// What it can do. Always the same; of one directory of it [`Destination::properties`] may say less.
    fn properties(&self) -> Properties;

    /// What a path is; `None` where nothing is. May be repeated.
    ///
    /// # Errors
    /// When it cannot be told.
    fn look(&self, path: &[u8]) -> Result<Option<Facts>, Failure>;

    /// Opens what is at a path for reading. May be repeated.
    ///
    /// # Errors
    /// When nothing is there, or it may not be read.
    fn source(&self, path: &[u8]) -> Result<Box<dyn Source>, Failure>;

    /// Opens a directory for writing and makes it, and those above it, where it is missing. One session at a time writes with one key: what a
    /// second one may do is the store's to decide, but it may not destroy what the first has published. May be repeated.
    ///
    /// # Errors
    /// When it cannot be written.
    fn destination(&self, wanted: &Wanted<'_>) -> Result<Box<dyn Destination>, Failure>;
}

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What it is.
    pub kind: ItemKind,
    /// Bytes of a file.
    pub size: u64,
}

/// A directory that is to be written to.
pub struct Wanted<'a> {
    /// Its path.
    pub path: &'a [u8],
    /// It is itself the copy of a directory, whose attributes come at the end with the empty path.
    pub is_copied: bool,
    /// What is to be found and left under which key; `None` where no session is to be taken up.
    pub marker: Option<MarkerRequest>,
    /// How its files are written.
    pub options: WriteOptions,
    /// The knobs.
    pub tuning: &'a Arc<Tuning>,
}

/// A session that may be taken up by a later one.
#[derive(Clone, Copy, Debug)]
pub struct MarkerRequest {
    /// What it is found by: two sessions with the same key copy the same.
    pub key: [u8; limits::MARKER_KEY_BYTES],
    /// Whatever is there already is removed, not used.
    pub anew: bool,
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
}
