//! Whether there is room for a ladder's files, found out before any of them is written. A file system of this host is
//! asked. Another host is offered a file, which it refuses before the first byte if it has no room for it; if it does
//! not refuse, the copy ends with the first bytes that land.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::Location;
use carrack_core::request::{CopyOptions, CopyRequest};
use carrack_engine::Context;
use carrack_sys::dir::Dir;

use super::scratch::FarScratch;
use super::{LadderPlace, LadderRequest};
use crate::bench::moved;

/// Share of the free space that may be used.
const FREE_SHARE: f64 = 0.9;
/// Bytes a second of a copy that only asks, in small blocks: little of it lands before that is told.
const ASKING_RATE: u64 = 16 << 20;
/// See [`ASKING_RATE`].
const ASKING_BLOCK: u32 = 256 << 10;
/// The file that another host is offered.
const OFFERED: &str = "room";
/// Directories of the question, told apart from those of the rungs.
const NUMBERS: [usize; 4] = [4, 5, 6, 7];

/// Refuses a ladder that would fill a file system; `note` takes what a person should know.
///
/// # Errors
/// That there is no room, or why a place could not be asked.
pub fn check(request: &LadderRequest, context: &Context, note: &mut dyn FnMut(&str)) -> Result<(), Failure> {
    check_here(request)?;
    let mut numbers = NUMBERS.into_iter();
    for place in [&request.source, &request.destination] {
        for (directory, is_wanted) in directories(place) {
            let number = numbers.next().unwrap_or_default();
            if !directory.is_remote() {
                continue;
            }
            let mut options = request.options.clone();
            if std::ptr::eq(place, &request.source) {
                options.destination = options.source.clone();
            }
            match FarScratch::create(directory, number, &options.destination, context, note) {
                Ok(scratch) => ask(&scratch, directory, options, request.size, context, note)?,
                Err(why) if is_wanted => return Err(why),
                // A directory in memory that is not there is left out later.
                Err(_) => {}
            }
        }
    }
    Ok(())
}

/// The directories of one end, and whether the ladder fails without them.
fn directories(place: &LadderPlace) -> impl Iterator<Item = (&Location, bool)> {
    std::iter::once((&place.directory, true)).chain(place.ram.iter().map(|ram| (ram, place.is_asked)))
}

/// Offers another host a file of zeros that would leave it with too little room.
fn ask(
    scratch: &FarScratch,
    directory: &Location,
    options: CopyOptions,
    size: u64,
    context: &Context,
    note: &mut dyn FnMut(&str),
) -> Result<(), Failure> {
    let wanted = (size as f64 / FREE_SHARE) as u64;
    let options = CopyOptions {
        resume: false,
        retries: 0,
        rate_limit: Some(ASKING_RATE),
        block_bytes: Some(ASKING_BLOCK),
        ..options
    };
    let sources = vec![Location::Zero(wanted)];
    let request = CopyRequest { sources, destination: scratch.file(OFFERED), options };
    let has_landed = &mut |landed: &[_]| landed.last().is_some_and(|(_, bytes)| *bytes > 0);
    match moved::watch(request, context, note, has_landed) {
        Err(why) if why.code == ErrorCode::NoSpace => {
            let what = format!(
                "{directory}: no room for the ladder's {size} bytes and a tenth of the free space besides; \
                 give a smaller --size"
            );
            Err(Failure::new(ErrorCode::NoSpace, Side::Command, what).caused_by(why))
        }
        other => other.map(drop),
    }
}

/// Refuses what would fill a file system of this host.
fn check_here(request: &LadderRequest) -> Result<(), Failure> {
    let mut wanted: Vec<(u64, u64, u64, &Location)> = Vec::new();
    for (place, _) in [&request.source, &request.destination].into_iter().flat_map(directories) {
        let Location::Local(path) = place else { continue };
        let path = if path.is_empty() { b".".as_slice() } else { path };
        let Ok(directory) = Dir::open_ambient(Path::new(OsStr::from_bytes(path))) else { continue };
        let (Ok(space), Ok(stat)) = (directory.free_space(), directory.stat_self()) else { continue };
        match wanted.iter_mut().find(|(device, ..)| *device == stat.device) {
            Some((_, bytes, ..)) => *bytes = bytes.saturating_add(request.size),
            None => wanted.push((stat.device, request.size, space.bytes_available, place)),
        }
    }
    match wanted.into_iter().find(|(_, bytes, free, _)| *bytes as f64 > *free as f64 * FREE_SHARE) {
        None => Ok(()),
        Some((_, bytes, free, place)) => {
            let why =
                format!("{place}: the ladder would write {bytes} bytes, and {free} are free; give a smaller --size");
            Err(Failure::new(ErrorCode::NoSpace, Side::Command, why))
        }
    }
}
