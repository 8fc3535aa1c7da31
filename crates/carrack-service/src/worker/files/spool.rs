//! The spool of an upload: a directory with what was asked for, the blocks that have come, and how it ended. All that
//! is known of an upload stands in it, so it goes on whatever process ends.
//!
//! `request.json` is written last of all when a spool is made; `content` has the blocks at their offsets; `blocks` has
//! a byte for each block, 1 once the block is on stable storage; `end.json` is there once publishing has ended.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::limits;
use carrack_engine::secrets::write_whole;
use carrack_engine::{Stop, io_failure};
use data_encoding::HEXLOWER;
use rustix::fs::{FlockOperation, flock, statvfs};
use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::identity::digest::sha256;
use crate::model::{FileFailure, NewUpload};

const REQUEST: &str = "request.json";
const CONTENT: &str = "content";
const BLOCKS: &str = "blocks";
const END: &str = "end.json";
/// A block that is there.
const THERE: u8 = 1;
/// How often it is looked whether somebody else has ended with a spool.
const LOOK: Duration = Duration::from_millis(50);

/// What was asked for, by whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpoolRequest {
    /// The user.
    pub user: String,
    /// The endpoint.
    pub endpoint: String,
    /// The file.
    pub upload: NewUpload,
}

impl SpoolRequest {
    /// What the upload is called. The same file for the same place, by the same user, has the same name.
    pub fn id(&self) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("carrack upload 1");
        let NewUpload { path, size, blocks, .. } = &self.upload;
        for text in [&self.user, &self.endpoint, path] {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        hasher.update(&size.to_le_bytes());
        blocks.iter().for_each(|block| _ = hasher.update(block.as_bytes()));
        HEXLOWER.encode(&hasher.finalize().as_bytes()[..16])
    }
}

/// How publishing has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpoolEnd {
    /// Why it has failed; none: the file is published.
    pub failure: Option<FileFailure>,
    /// Size of the file that is published.
    pub size: u64,
    /// Its modification time, as its host tells it.
    pub modified: Option<Moment>,
}

/// A spool.
#[derive(Clone, Debug)]
pub struct Spool(PathBuf);

/// A spool that nobody else publishes, as long as it is held.
pub struct Held {
    _blocks: File,
}

impl Spool {
    /// The spool in this directory.
    pub fn at(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// The blocks, at their offsets.
    pub fn content(&self) -> PathBuf {
        self.0.join(CONTENT)
    }

    /// Makes it, without a block.
    ///
    /// # Errors
    /// Those of the system.
    pub fn make(&self, request: &SpoolRequest) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        self.forget_end()?;
        // The file gets its permissions at the endpoint from this one; nobody else comes through the directory.
        let content = File::options().write(true).create(true).truncate(true).mode(0o666).open(self.content())?;
        content.set_len(request.upload.size)?;
        content.sync_all()?;
        write_whole(&self.0.join(BLOCKS), &vec![0; request.upload.blocks.len()])?;
        self.ask(request)
    }

    /// Writes what is asked for.
    ///
    /// # Errors
    /// Those of the system.
    pub fn ask(&self, request: &SpoolRequest) -> io::Result<()> {
        write_whole(&self.0.join(REQUEST), &serde_json::to_vec(request)?)
    }

    /// What is asked for.
    ///
    /// # Errors
    /// Those of the system, and where it is none.
    pub fn request(&self) -> io::Result<SpoolRequest> {
        let request: SpoolRequest = serde_json::from_slice(&std::fs::read(self.0.join(REQUEST))?)?;
        request.upload.check().map_err(io::Error::other)?;
        Ok(request)
    }

    /// The blocks that are not there: the first and the last of each run.
    ///
    /// # Errors
    /// Those of the system.
    pub fn missing(&self) -> io::Result<Vec<[u32; 2]>> {
        let mut missing: Vec<[u32; 2]> = Vec::new();
        for (block, there) in (0u32..).zip(std::fs::read(self.0.join(BLOCKS))?) {
            match missing.last_mut() {
                _ if there == THERE => {}
                Some([_, last]) if *last + 1 == block => *last = block,
                _ => missing.push([block, block]),
            }
        }
        Ok(missing)
    }

    /// Writes a block, if it is the one of the digest. It is on stable storage then.
    ///
    /// # Errors
    /// [`ErrorCode::DigestMismatch`], [`ErrorCode::NoSpace`], and those of the system.
    pub fn put(&self, block: u32, offset: u64, digest: &str, bytes: &[u8]) -> Result<(), Failure> {
        if HEXLOWER.encode(&sha256(bytes)) != digest {
            return Err(other_block(block));
        }
        let blocks = self.blocks()?;
        let mut there = [0];
        failed("read", blocks.read_exact_at(&mut there, block.into()))?;
        if there[0] == THERE {
            return Ok(());
        }
        let free = failed("look at", statvfs(&self.0).map_err(io::Error::from))?;
        if free.f_bavail.saturating_mul(free.f_frsize) < limits::UPLOAD_SPARE_BYTES {
            let why = "the disk of the service's state directory is full but for what the service itself needs";
            return Err(Failure::new(ErrorCode::NoSpace, Side::Command, why));
        }
        let content = failed("open", File::options().write(true).open(self.content()))?;
        failed("write", content.write_all_at(bytes, offset).and_then(|()| content.sync_data()))?;
        failed("write", blocks.write_all_at(&[THERE], block.into()).and_then(|()| blocks.sync_data()))
    }

    /// Reads the file again, compares each block with its digest, and answers with the BLAKE3 digest of all. A block
    /// that is not what it should be is missing from then on.
    ///
    /// # Errors
    /// [`ErrorCode::DigestMismatch`], and those of the system.
    pub fn verify(&self, upload: &NewUpload, stop: &Stop) -> Result<[u8; 32], Failure> {
        let mut content = failed("open", File::open(self.content()))?;
        let mut hasher = blake3::Hasher::new();
        let mut bytes = Vec::new();
        for (block, digest) in (0u32..).zip(&upload.blocks) {
            stop.check()?;
            bytes.resize(upload.block_length(block).unwrap_or_default(), 0);
            failed("read", content.read_exact(&mut bytes))?;
            if HEXLOWER.encode(&sha256(&bytes)) != *digest {
                failed("write", self.blocks()?.write_all_at(&[0], block.into()))?;
                return Err(other_block(block));
            }
            hasher.update(&bytes);
        }
        Ok(*hasher.finalize().as_bytes())
    }

    /// Waits until nobody else publishes it: a worker of a service that was killed may still be at it.
    ///
    /// # Errors
    /// Those of the system, and where the request is to end.
    pub fn hold(&self, stop: &Stop) -> Result<Held, Failure> {
        let blocks = self.blocks()?;
        loop {
            match flock(blocks.as_fd(), FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Held { _blocks: blocks }),
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(error) => return failed("lock", Err(error.into())),
            }
            stop.check()?;
            std::thread::park_timeout(LOOK);
        }
    }

    /// How publishing has ended, if it has.
    ///
    /// # Errors
    /// Those of the system.
    pub fn end(&self) -> io::Result<Option<SpoolEnd>> {
        match std::fs::read(self.0.join(END)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes how publishing has ended.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_end(&self, end: &SpoolEnd) -> io::Result<()> {
        write_whole(&self.0.join(END), &serde_json::to_vec(end)?)
    }

    /// Forgets how publishing has ended: it is tried again.
    ///
    /// # Errors
    /// Those of the system.
    pub fn forget_end(&self) -> io::Result<()> {
        gone(std::fs::remove_file(self.0.join(END)))
    }

    /// Frees the space of a file that is published.
    ///
    /// # Errors
    /// Those of the system.
    pub fn release(&self) -> io::Result<()> {
        gone(std::fs::remove_file(self.content()))
    }

    /// Removes it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove(&self) -> io::Result<()> {
        gone(std::fs::remove_dir_all(&self.0))
    }

    /// When something of it has changed last; none where nothing is there.
    pub fn changed(&self) -> Option<SystemTime> {
        let times = [REQUEST, BLOCKS, END].map(|name| std::fs::metadata(self.0.join(name)));
        let own = std::fs::metadata(&self.0);
        times.into_iter().chain([own]).filter_map(|found| found.ok()?.modified().ok()).max()
    }

    fn blocks(&self) -> Result<File, Failure> {
        failed("open", File::options().read(true).write(true).open(self.0.join(BLOCKS)))
    }
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// A result of the system, with what was to be done.
fn failed<T>(call: &'static str, result: io::Result<T>) -> Result<T, Failure> {
    result.map_err(|error| io_failure(Side::Command, format!("{call} the upload's spool"), &error))
}

fn other_block(block: u32) -> Failure {
    let why = format!("block {block} is not the one whose SHA-256 was given");
    Failure::new(ErrorCode::DigestMismatch, Side::Command, why)
}
