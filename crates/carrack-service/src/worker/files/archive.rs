//! An archive of several paths of an endpoint, made while it is sent. A tree is listed over one conversation and its
//! files are read over another; the listing waits while a file is read, so memory does not grow with the tree. Whatever
//! cannot be read ends the archive before its end: one that unpacks whole is whole.

use carrack_core::attributes::Time;
use carrack_core::failure::Failure;
use carrack_core::path::join;
use carrack_core::report::ItemKind;
use carrack_engine::Stop;
use carrack_engine::files::{Files, ListEntry, ReadEvent, ReadRange};

use super::content::read;
use super::end::End;
use super::reply::Reply;
use super::tar::{self, Kind};
use crate::identity::ScopePath;
use crate::model::Verb;

/// An archive that is being made.
struct Archive<'a> {
    reply: &'a mut Reply,
    stop: &'a Stop,
    /// What is made and not handed over yet: many entries are small.
    made: Vec<u8>,
}

/// Bytes of one part of the answer.
const PART_BYTES: usize = 64 << 10;

/// Makes an archive of these paths. Their names in it begin below the deepest directory that holds all of them. FIFOs,
/// sockets and devices are left out.
///
/// # Errors
/// The first thing that cannot be listed or read.
pub fn archive(end: &End, stop: &Stop, paths: &[String], reply: &mut Reply) -> Result<(), Failure> {
    let mut places = Vec::with_capacity(paths.len());
    for path in paths {
        let at = end.path(path, Verb::Read)?;
        let below = ScopePath::parse(path).map(|path| path.bytes()).unwrap_or_default();
        places.push((at, below));
    }
    let common = common_directory(places.iter().map(|(_, below)| &below[..]));
    let mut archive = Archive { reply, stop, made: Vec::new() };
    end.with_files(stop, |listing| {
        end.with_files(stop, |reading| {
            for (at, below) in &places {
                let name = below.get(common..).unwrap_or_default();
                archive.add(listing, reading, at, name)?;
            }
            Ok(())
        })
    })?;
    archive.put(&tar::end())?;
    archive.flush()?;
    archive.reply.done(b"")
}

/// How many bytes of all paths are a directory that holds each of them, with its slash.
fn common_directory<'a>(paths: impl Iterator<Item = &'a [u8]>) -> usize {
    let directory = |path: &[u8]| path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let shared = |one: &[u8], other: &[u8]| {
        let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
        one[..same].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1)
    };
    let mut common: Option<&[u8]> = None;
    for path in paths {
        let own = &path[..directory(path)];
        common = Some(common.map_or(own, |common| &common[..shared(common, own)]));
    }
    common.map_or(0, <[u8]>::len)
}

impl Archive<'_> {
    /// Adds what is at a path, under this name; all below it, where it is a directory.
    fn add(&mut self, listing: &mut Files, reading: &mut Files, at: &[u8], name: &[u8]) -> Result<(), Failure> {
        let itself = listing.stat(at)?;
        // The endpoint's root has no name.
        if !name.is_empty() {
            self.entry(reading, at, name, &itself)?;
        }
        if itself.kind != ItemKind::Directory {
            return Ok(());
        }
        let mut failed = None;
        let listed = listing.list(at, true, &mut |entry| {
            if failed.is_none() {
                let name = if name.is_empty() { entry.path.clone() } else { join(name, &entry.path) };
                failed = self.entry(reading, &join(at, &entry.path), &name, &entry).err();
            }
        });
        failed.map_or(listed, Err)
    }

    fn entry(&mut self, reading: &mut Files, at: &[u8], name: &[u8], entry: &ListEntry) -> Result<(), Failure> {
        self.stop.check()?;
        if let Some(why) = &entry.error {
            return Err(why.clone());
        }
        match entry.kind {
            ItemKind::Directory => self.header(name, Kind::Directory, entry.mode, entry.mtime),
            ItemKind::Symlink => self.header(name, Kind::Symlink(&entry.link_target), entry.mode, entry.mtime),
            ItemKind::File => self.file(reading, at, name, entry),
            ItemKind::Special => Ok(()),
        }
    }

    fn header(&mut self, name: &[u8], kind: Kind<'_>, mode: u32, mtime: Time) -> Result<(), Failure> {
        self.put(&tar::header(name, kind, mode, mtime))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.made.extend_from_slice(bytes);
        if self.made.len() < PART_BYTES { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.reply.hand_over(&self.made, self.stop)?;
        self.made.clear();
        Ok(())
    }

    fn file(&mut self, reading: &mut Files, at: &[u8], name: &[u8], entry: &ListEntry) -> Result<(), Failure> {
        let (mut size, stop) = (0, self.stop);
        let whole = ReadRange { offset: 0, length: u64::MAX, identity: None };
        read(reading, stop, at, whole, &mut |event| match event {
            ReadEvent::Opened(facts) => {
                size = facts.size;
                self.header(name, Kind::File(size), entry.mode, facts.mtime.unwrap_or(entry.mtime))
            }
            ReadEvent::Bytes(bytes) => self.put(bytes),
        })?;
        self.put(&tar::padding(size))
    }
}
