//! What a store is: the contract of every place that bytes are read from and written to.
//!
//! A [`Store`] is opened for reading as a [`Source`], whose items are opened as [`Reader`]s, and for writing as a
//! [`Destination`], in which a large file grows as a [`Part`] and a small one waits as an [`Entry`] until it gets its
//! name. What a store can do is said by its [`Properties`]; whoever uses one asks those, and never which store it is.
//! The suite `conformance` of the crate `carrack-faults` checks all that is said here.
//!
//! For all methods:
//! - **Threads.** Each method may be called by several threads at once. Where that is not so, the method says so.
//! - **Paths** are relative to what was opened. They have been checked: no empty name, no `.` or `..`, no slash at
//!   either end. The empty path is what was opened itself.
//! - **Failures** have a code that says whether another attempt may help. The callers go by these:
//!   [`ErrorCode::SourceChanged`] (the item is listed and read again), [`ErrorCode::SourceVanished`],
//!   [`ErrorCode::ResourceLimit`] of [`Destination::begin`] (it is asked again when another file has been published),
//!   [`ErrorCode::InputOutput`] and [`ErrorCode::DigestMismatch`] of publishing (the item is sent again).
//! - **Retry.** A store repeats what the system tells it to repeat (an interrupted call, a busy descriptor table) and
//!   nothing else. Each method says whether the caller may repeat it.
//!
//! [`Reader`]: super::read::Reader
//! [`Part`]: super::write::Part
//! [`Entry`]: super::write::Entry
//! [`ErrorCode::SourceChanged`]: carrack_core::failure::ErrorCode::SourceChanged
//! [`ErrorCode::SourceVanished`]: carrack_core::failure::ErrorCode::SourceVanished
//! [`ErrorCode::ResourceLimit`]: carrack_core::failure::ErrorCode::ResourceLimit
//! [`ErrorCode::InputOutput`]: carrack_core::failure::ErrorCode::InputOutput
//! [`ErrorCode::DigestMismatch`]: carrack_core::failure::ErrorCode::DigestMismatch

use std::fmt;
use std::sync::Arc;

use carrack_core::backup::Backup;
use carrack_core::failure::Failure;
use carrack_core::report::ItemKind;
use carrack_core::tuning::Tuning;

use super::properties::{MarkerRequest, Properties, WriteOptions};
use super::read::Source;
use super::write::Destination;

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

    /// Opens a directory for writing and makes it, and those above it, where it is missing. One session at a time
    /// writes with one key: what a second one may do is the store's to decide, but it may not destroy what the first
    /// has published. May be repeated.
    ///
    /// # Errors
    /// When it cannot be written.
    fn destination(&self, wanted: &Wanted<'_>) -> Result<Box<dyn Destination>, Failure>;
}

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Whether it is a file, a link or a directory.
    pub kind: ItemKind,
    /// Bytes of a file.
    pub size: u64,
}

/// A directory that is to be written to.
pub struct Wanted<'a> {
    /// The path of the destination.
    pub path: &'a [u8],
    /// It is itself the copy of a directory, whose attributes come at the end with the empty path.
    pub is_copied: bool,
    /// What is to be found and left under which key; `None` where no session is to be taken up.
    pub marker: Option<MarkerRequest>,
    /// How its files are written.
    pub options: WriteOptions,
    /// What is replaced or deleted is kept.
    pub backup: Option<&'a Backup>,
    /// Links that lead to directories below it are written through, where the store has links.
    pub keeps_links: bool,
    /// Files with several names keep their attributes.
    pub keeps_shared: bool,
    /// The knobs of the copy.
    pub tuning: &'a Arc<Tuning>,
}
