//! Reading: an item's bytes, and proof that they did not change while they were read.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::transfer::ScannedItem;
use carrack_core::wire::control::Source as SourceMessage;
use carrack_sys::dir::{Dir, Kind, Links, Stat};
use carrack_sys::{dir, file};

use super::descriptors::patiently;
use super::place::Place;
use super::synthetic;
use crate::error::{failure, io_failure};

/// One source of a transfer, opened.
pub struct SourceRoot {
    /// What it is.
    pub kind: RootKind,
    /// Where it goes, relative to the destination.
    pub target: Vec<u8>,
    /// For messages: the path as typed.
    pub typed: Vec<u8>,
}

/// What a source is.
pub enum RootKind {
    /// A directory and all below it.
    Directory(Arc<Dir>),
    /// One file, relative to a directory.
    Entry(Arc<Dir>, Vec<u8>, Links),
    /// Standard input.
    Stdin,
    /// So many zeros.
    Zero(u64),
    /// So many random bytes.
    Random(u64),
}

impl SourceRoot {
    /// Opens what a request names; links named on the command line are followed.
    ///
    /// # Errors
    /// When it is not there or not readable.
    pub fn open(place: &Place, message: &SourceMessage) -> Result<Self, Failure> {
        let path = &message.path;
        let named = |error: &io::Error| io_failure(Side::Source, carrack_core::path::display_bytes(path), error);
        let kind = match message.synthetic {
            1 => RootKind::Stdin,
            2 => RootKind::Zero(message.size),
            3 => RootKind::Random(message.size),
            _ => {
                let stat = place.stat(path).map_err(|error| named(&error))?;
                if stat.kind == Kind::Dir {
                    RootKind::Directory(Arc::new(place.dir(path).map_err(|error| named(&error))?))
                } else {
                    Self::entry(place, path).map_err(|error| named(&error))?
                }
            }
        };
        Ok(Self { kind, target: message.target.clone(), typed: path.clone() })
    }

    /// A file named on the command line: its links lead anywhere the user may go, or anywhere below a node's root.
    fn entry(place: &Place, path: &[u8]) -> io::Result<RootKind> {
        match place {
            Place::Anywhere { .. } => {
                let (parent, name) = Place::Anywhere { tilde: false }.parent(&place.resolved(path))?;
                Ok(RootKind::Entry(Arc::new(parent), name, Links::Refuse))
            }
            Place::Beneath(root) => Ok(RootKind::Entry(Arc::clone(root), place.normal(path), Links::Beneath)),
        }
    }

    /// Opens the source of an item for reading.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceVanished`] when it was there for the scan and is no more.
    pub fn open_item(&self, item: &ScannedItem) -> Result<OpenSource, Failure> {
        let opened = match &self.kind {
            RootKind::Directory(root) => patiently(|| root.open_read(&item.path, Links::Refuse)),
            RootKind::Entry(parent, name, links) => patiently(|| parent.open_read(name, *links)),
            RootKind::Stdin => {
                let carry = Mutex::new(Sequential { carry: None });
                return Ok(OpenSource { content: Content::Stdin(carry), stat: None });
            }
            RootKind::Zero(_) => {
                return Ok(OpenSource { content: Content::Zero, stat: None });
            }
            RootKind::Random(seed) => {
                return Ok(OpenSource { content: Content::Random(*seed), stat: None });
            }
        };
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => failure(ErrorCode::SourceVanished, Side::Source, "vanished after it was listed"),
            _ => io_failure(Side::Source, "open", &error),
        })?;
        let stat = dir::stat_file(&file).map_err(|error| io_failure(Side::Source, "stat", &error))?;
        if stat.kind != Kind::File {
            return Err(failure(ErrorCode::SourceChanged, Side::Source, "is no longer a regular file"));
        }
        // It was opened so that a FIFO in its place could not hang us; it is a file, and files are read waiting.
        file::clear_nonblock(&file).map_err(|error| io_failure(Side::Source, "open", &error))?;
        Ok(OpenSource { content: Content::File(file), stat: Some(stat) })
    }
}

/// An item opened for reading. Several streams may read different blocks at once.
pub struct OpenSource {
    content: Content,
    stat: Option<Stat>,
}

enum Content {
    File(File),
    Stdin(Mutex<Sequential>),
    Zero,
    Random(u64),
}

/// Reading what cannot be read twice: one byte ahead, to know where it ends.
struct Sequential {
    carry: Option<u8>,
}

impl OpenSource {
    /// What it was when it was opened; `None` where there is nothing to ask.
    pub fn stat(&self) -> Option<&Stat> {
        self.stat.as_ref()
    }

    /// Reads exactly `out.len()` bytes at `offset`.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceChanged`] when the source ends before.
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Failure> {
        match &self.content {
            Content::File(file) => {
                let read = file::read_full_at(file, out, offset)
                    .map_err(|error| io_failure(Side::Source, format!("read at {offset}"), &error))?;
                if read < out.len() {
                    let message = format!(
                        "ends at {}, earlier than when it was opened: it was truncated while it was copied",
                        offset + read as u64
                    );
                    return Err(failure(ErrorCode::SourceChanged, Side::Source, message));
                }
            }
            Content::Zero => out.fill(0),
            Content::Random(seed) => synthetic::random_at(*seed, offset, out),
            Content::Stdin(_) => {
                return Err(failure(ErrorCode::Internal, Side::Source, "a pipe was read out of order"));
            }
        }
        Ok(())
    }

    /// Reads a small file to its end, whatever its size was said to be (a file of `/proc` says 0), and returns what there was.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceChanged`] when there is more than `most`, or other than the size said.
    pub fn read_whole(&self, out: &mut Vec<u8>, most: usize) -> Result<usize, Failure> {
        let start = out.len();
        let Content::File(file) = &self.content else {
            let size = most;
            out.resize(start + size, 0);
            self.read_at(0, &mut out[start..])?;
            return Ok(size);
        };
        let said = self.stat.map_or(0, |stat| stat.size) as usize;
        // A file that says 0 has one unless it is virtual; one that says more is read in one call, and a second that finds the end.
        let mut room = if said == 0 { 4096 } else { said + 1 };
        let mut read = 0;
        loop {
            out.resize(start + read + room, 0);
            let got = file::read_at(file, &mut out[start + read..], read as u64)
                .map_err(|error| io_failure(Side::Source, format!("read at {read}"), &error))?;
            read += got;
            // A short read of a regular file is its end when what was said is there.
            if got == 0 || (said > 0 && read == said) {
                break;
            }
            if read > most {
                return Err(failure(
                    ErrorCode::SourceChanged,
                    Side::Source,
                    "grew while it was copied; run the same command again",
                ));
            }
            room = if said == 0 { most + 1 - read } else { (said + 1).saturating_sub(read).max(1) };
        }
        out.truncate(start + read);
        if said > 0 && read != said {
            return Err(failure(
                ErrorCode::SourceChanged,
                Side::Source,
                format!("has {read} bytes, not the {said} that it had when it was opened"),
            ));
        }
        Ok(read)
    }

    /// Reads the next bytes of a source without a size, up to `out.len()`; tells how many, and whether it ended.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read_next(&self, offset: u64, out: &mut [u8]) -> Result<(usize, bool), Failure> {
        let fail = |error: io::Error| io_failure(Side::Source, format!("read at {offset}"), &error);
        let (filled, more) = match &self.content {
            Content::Stdin(sequential) => {
                let mut sequential = sequential.lock().unwrap_or_else(PoisonError::into_inner);
                let mut filled = 0;
                if let (Some(byte), Some(first)) = (sequential.carry.take(), out.first_mut()) {
                    *first = byte;
                    filled = 1;
                }
                let mut input = io::stdin().lock();
                filled += read_full(&mut input, &mut out[filled..]).map_err(fail)?;
                let mut ahead = [0];
                let more = filled == out.len() && read_full(&mut input, &mut ahead).map_err(fail)? == 1;
                sequential.carry = more.then_some(ahead[0]);
                (filled, more)
            }
            Content::File(file) => {
                let filled = file::read_full_at(file, out, offset).map_err(fail)?;
                let more =
                    filled == out.len() && file::read_at(file, &mut [0], offset + filled as u64).map_err(fail)? == 1;
                (filled, more)
            }
            Content::Zero | Content::Random(_) => (0, false),
        };
        Ok((filled, !more))
    }

    /// Whether `offset..offset + length` is all hole.
    pub fn is_hole(&self, offset: u64, length: u64) -> bool {
        match &self.content {
            Content::File(file) => match file::next_data(file, offset) {
                Ok(None) => true,
                Ok(Some(data)) => data >= offset + length,
                Err(_) => false,
            },
            _ => false,
        }
    }

    /// Whether the source is still what it was when it was opened.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceChanged`] when not.
    pub fn check_unchanged(&self) -> Result<(), Failure> {
        let (Content::File(file), Some(before)) = (&self.content, &self.stat) else {
            return Ok(());
        };
        let now = dir::stat_file(file).map_err(|error| io_failure(Side::Source, "stat", &error))?;
        if (now.size, now.mtime, now.inode, now.device) == (before.size, before.mtime, before.inode, before.device) {
            return Ok(());
        }
        let message = format!(
            "changed while it was copied (size {} to {} bytes); run the same command again",
            before.size, now.size
        );
        Err(failure(ErrorCode::SourceChanged, Side::Source, message))
    }
}

fn read_full(input: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < out.len() {
        match input.read(&mut out[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
