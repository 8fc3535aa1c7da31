//! Uploads: blocks go to a spool beside the service, and the whole file goes from there to the endpoint, as a copy
//! does.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carrack_core::expected::ExpectedDigests;
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::Location;
use carrack_core::report::{Event, ItemKind, Outcome};
use carrack_core::request::{CopyOptions, CopyRequest, Durability, EndOptions, Existing, Verify};
use carrack_engine::{Context, Copy, Place, Stop, io_failure};
use data_encoding::HEXLOWER;

use super::end::End;
use super::spool::{Spool, SpoolEnd};
use super::{operations, told, totals};
use crate::clock::Moment;
use crate::model::{NewUpload, UploadExisting, Verb};

/// Writes a block to a spool.
///
/// # Errors
/// Those of [`Spool::put`].
pub fn put_block(spool: &Path, block: u32, offset: u64, digest: &str, bytes: &[u8]) -> Result<(), Failure> {
    Spool::at(spool.to_owned()).put(block, offset, digest, bytes)
}

/// Copies the file of a spool to the endpoint. Its name appears there once it is whole, and what was compared with the
/// digests is what has the name.
///
/// # Errors
/// [`ErrorCode::AlreadyExists`], [`ErrorCode::DigestMismatch`], and those of the copy.
pub fn publish(end: &End, stop: &Stop, spool: &Path) -> Result<(), Failure> {
    let spool = Spool::at(spool.to_owned());
    let _held = spool.hold(stop)?;
    let failed = |error| io_failure(Side::Command, "read the upload's spool", &error);
    // Another worker may have ended with it meanwhile.
    if spool.end().map_err(failed)?.is_some_and(|end| end.failure.is_none()) {
        return Ok(());
    }
    let upload = spool.request().map_err(failed)?.upload;
    let at = end.path(&upload.path, Verb::Write)?;
    let taken = |why: &str| Failure::new(ErrorCode::AlreadyExists, Side::Destination, why).at_path(&at[..]);
    let there = end.with_files(stop, |files| operations::there(files, &at))?;
    if there.as_ref().is_some_and(|entry| entry.kind == ItemKind::Directory) {
        return Err(taken("a directory has that name"));
    }
    let digest = spool.verify(&upload, stop)?;
    match there {
        Some(entry) if upload.existing == UploadExisting::Fail => {
            // It may be this file: a worker that was killed has published it, and nobody has heard of it.
            let may_be = entry.kind == ItemKind::File && entry.size == upload.size;
            let found = if may_be { totals::sum(end, stop, &upload.path).ok() } else { None };
            if found.is_none_or(|found| found.digest != HEXLOWER.encode(&digest)) {
                return Err(taken("something has that name"));
            }
        }
        _ => copy(end, stop, &spool, &upload, (&at, digest))?,
    }
    let found = end.with_files(stop, |files| files.stat(&at))?;
    let ended = SpoolEnd { failure: None, size: found.size, modified: told::moment(found.mtime) };
    spool.set_end(&ended).map_err(|error| io_failure(Side::Command, "write the upload's spool", &error))
}

fn copy(
    end: &End,
    stop: &Stop,
    spool: &Spool,
    upload: &NewUpload,
    (at, digest): (&[u8], [u8; 32]),
) -> Result<(), Failure> {
    let content = spool.content();
    if let Some(modified) = upload.modified {
        let time = std::fs::File::options()
            .write(true)
            .open(&content)
            .and_then(|file| file.set_modified(system_time(modified)));
        time.map_err(|error| io_failure(Side::Command, "set the time of the upload", &error))?;
    }
    let there = end.opened();
    let name = at.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec();
    let replaces = upload.existing == UploadExisting::Replace;
    let options = CopyOptions {
        existing: if replaces { Existing::Replace } else { Existing::Keep },
        verify: Verify::Wire,
        durability: Durability::Group,
        item_events: true,
        expected: ExpectedDigests::new([(name, digest)].into()),
        source: EndOptions { reach: there.options.reach.clone(), ..EndOptions::default() },
        destination: there.options.clone(),
        ..CopyOptions::default()
    };
    let source = Location::Local(content.as_os_str().as_bytes().to_vec());
    let request = CopyRequest { sources: vec![source], destination: there.location.with_path(at.to_vec()), options };
    let context = Context {
        local: Place::anywhere(),
        local_destination: Some(there.place.clone()),
        stop: stop.clone(),
        ..end.context().clone()
    };
    let mut copy = Copy::start(request, &context);
    let mut outcome = None;
    while let Some(event) = copy.next_event() {
        if let Event::Item(item) = event {
            outcome = Some((item.outcome, item.digests.blake3));
        }
    }
    let report = copy.wait();
    if let Some(failure) = report.error.or_else(|| report.failures.into_iter().next().map(|item| item.failure)) {
        return Err(failure);
    }
    match outcome {
        Some((Outcome::Published, Some(found))) if found == digest => Ok(()),
        Some((Outcome::Failed(failure), _)) => Err(failure),
        Some((Outcome::Kept, _)) if !replaces => {
            Err(Failure::new(ErrorCode::AlreadyExists, Side::Destination, "something has that name").at_path(at))
        }
        // A copy before this one, whose end nobody has heard of, has published the same bytes.
        Some((Outcome::Kept, Some(found))) if found == digest => Ok(()),
        other => {
            let why = format!("the copy ended without the file: {other:?}");
            Err(Failure::new(ErrorCode::Internal, Side::Command, why))
        }
    }
}

fn system_time(moment: Moment) -> SystemTime {
    let distance = Duration::from_micros(moment.0.unsigned_abs());
    if moment.0 < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}
