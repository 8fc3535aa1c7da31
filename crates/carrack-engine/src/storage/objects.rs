//! A store of objects: whole contents under keys, each put at once or in parts, and read in any range. There is no
//! rename, no directory, no time, and no writing in the middle.
//!
//! Whoever has such a service says by a [`Bucket`] how one object is listed, read, put and removed; [`Objects`] makes a
//! store of it. A block of a file is a part of its upload, so blocks come in any order and may come again. What
//! sessions leave for later ones are objects, too: the journal of a marker
//! ([`carrack_core::transfer::marker`]), below a key that no walk shows.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrack_core::attributes::Attributes;
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::report::ItemKind;
use carrack_core::transfer::Fingerprint;

use super::properties::{BlockBytes, Properties, Writes};
use super::read::Source;
use super::store::{Facts, Store, Wanted};
use super::write::Destination;
use crate::error::failure;

mod journal;
mod reading;
mod writing;

/// A service that keeps objects under keys. What is said of all methods of a store ([`super::store`]) is true here: any
/// thread may call, and codes of failures say whether another attempt may help. All calls may be repeated.
pub trait Bucket: Send + Sync + std::fmt::Debug + 'static {
    /// Bytes that a part of an upload may have; its last one may have fewer.
    fn part_bytes(&self) -> BlockBytes;

    /// What is under a key, if anything is.
    ///
    /// # Errors
    /// When it cannot be told.
    fn head(&self, key: &[u8]) -> Result<Option<Object>, Failure>;

    /// Hands all objects whose keys begin so to `each`, in the order of their keys, until that says `false`.
    ///
    /// # Errors
    /// When it cannot be told what there is, or what more there is.
    fn list(&self, prefix: &[u8], each: &mut dyn FnMut(&[u8], Object) -> bool) -> Result<(), Failure>;

    /// Reads exactly `out.len()` bytes at `offset` of this very version of an object.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceChanged`] when another version is there, or when it ends before, and with
    /// [`ErrorCode::SourceVanished`] when none is.
    fn get(&self, key: &[u8], version: Version, offset: u64, out: &mut [u8]) -> Result<(), Failure>;

    /// Puts an object in one step. When this returns the service does not lose it any more.
    ///
    /// # Errors
    /// Why it cannot be put; what was there is there.
    fn put(&self, key: &[u8], content: &[u8], over: Overwrite) -> Result<Put, Failure>;

    /// Removes what is under a key, if anything is.
    ///
    /// # Errors
    /// Why it cannot be removed.
    fn remove(&self, key: &[u8]) -> Result<(), Failure>;

    /// Begins an upload, and tells its name: up to 255 bytes, no slash. Nothing can be seen of it under its key.
    ///
    /// # Errors
    /// Why it cannot begin.
    fn begin_upload(&self, key: &[u8]) -> Result<Vec<u8>, Failure>;

    /// Puts a part in one step, in the place of one of this number, and tells what it is known by. When this returns
    /// the service does not lose it.
    ///
    /// # Errors
    /// Why it cannot be put; what was there is there.
    fn put_part(&self, upload: Upload<'_>, number: u64, content: &[u8]) -> Result<Version, Failure>;

    /// The parts of an upload by their numbers, and what each is known by; none where the upload is gone.
    ///
    /// # Errors
    /// When it cannot be told.
    fn parts(&self, upload: Upload<'_>) -> Result<BTreeMap<u64, Version>, Failure>;

    /// Reads a part back, from storage. A service that cannot keeps each part as an object of its own, and has it
    /// copied into the upload in the end.
    ///
    /// # Errors
    /// When it cannot be read.
    fn get_part(&self, upload: Upload<'_>, number: u64) -> Result<Vec<u8>, Failure>;

    /// Makes an object of these parts, from 0 on, as [`Bucket::put`]. The upload is gone then.
    ///
    /// # Errors
    /// Why it cannot be made, as when a part is missing, too small, or another: a call that hung in an earlier session
    /// may have put it. What was there is there.
    fn complete(&self, upload: Upload<'_>, parts: &[Version], over: Overwrite) -> Result<Put, Failure>;

    /// Removes an upload and its parts, if it is there.
    ///
    /// # Errors
    /// Why it cannot be removed.
    fn abort(&self, upload: Upload<'_>) -> Result<(), Failure>;
}

/// What an object is known by, made from its entity tag or version: every content that is put has another.
pub type Version = Fingerprint;

/// What is under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Bytes.
    pub size: u64,
    /// What it is known by.
    pub version: Version,
}

/// Whether an object may take the place of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// Of whatever is there.
    Anything,
    /// Of nothing: where an object is, that stays.
    Nothing,
}

/// What became of an object that was to be put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is there, and known by this.
    There(Version),
    /// Another one is there, and stays.
    Kept,
}

/// An upload that is not complete.
#[derive(Clone, Copy, Debug)]
pub struct Upload<'a> {
    /// Under which key its object will be.
    pub key: &'a [u8],
    /// Its name.
    pub name: &'a [u8],
}

/// A bucket as a store.
#[derive(Clone, Debug)]
pub struct Objects(Arc<dyn Bucket>);

impl Objects {
    /// Of this one.
    pub fn new(bucket: impl Bucket) -> Self {
        Self(Arc::new(bucket))
    }
}

/// What an object has that becomes a file, and what one has that was a file.
fn kept() -> Attributes {
    Attributes { mode: 0o644, ..Attributes::default() }
}

/// A key below another; either may be empty.
fn below(top: &[u8], path: &[u8]) -> Vec<u8> {
    [top, path].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(&b'/')
}

/// What the keys of all objects below a key begin with.
fn prefix(top: &[u8]) -> Vec<u8> {
    if top.is_empty() { Vec::new() } else { [top, b"/"].concat() }
}

fn properties(bucket: &dyn Bucket) -> Properties {
    Properties {
        keeps: true,
        writes: Writes::Blocks,
        atomic_publish: true,
        sync: true,
        block_bytes: Some(bucket.part_bytes()),
        resumes: true,
        ..Properties::NOTHING
    }
}

/// What a key is: an object, or, where objects are below it, a directory. Below the empty one is everything.
fn look(bucket: &dyn Bucket, key: &[u8]) -> Result<Option<Facts>, Failure> {
    let directory = Facts { kind: ItemKind::Directory, size: 0 };
    if key.is_empty() {
        return Ok(Some(directory));
    }
    if let Some(object) = bucket.head(key)? {
        return Ok(Some(Facts { kind: ItemKind::File, size: object.size }));
    }
    let mut is_prefix = false;
    bucket.list(&prefix(key), &mut |_, _| {
        is_prefix = true;
        false
    })?;
    Ok(is_prefix.then_some(directory))
}

impl Store for Objects {
    fn properties(&self) -> Properties {
        properties(&*self.0)
    }

    fn look(&self, path: &[u8]) -> Result<Option<Facts>, Failure> {
        look(&*self.0, trimmed(path))
    }

    fn source(&self, path: &[u8]) -> Result<Box<dyn Source>, Failure> {
        let key = trimmed(path);
        let facts = look(&*self.0, key)?.ok_or_else(|| failure(ErrorCode::NotFound, Side::Source, "is not there"))?;
        let is_directory = facts.kind == ItemKind::Directory;
        Ok(Box::new(reading::ObjectSource { bucket: Arc::clone(&self.0), top: key.to_vec(), is_directory }))
    }

    fn destination(&self, wanted: &Wanted<'_>) -> Result<Box<dyn Destination>, Failure> {
        Ok(Box::new(writing::ObjectDestination::open(&self.0, trimmed(wanted.path), wanted)?))
    }
}

/// Without slashes at its ends.
fn trimmed(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|&byte| byte != b'/').unwrap_or(path.len());
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(start, |last| last + 1);
    &path[start..end]
}
