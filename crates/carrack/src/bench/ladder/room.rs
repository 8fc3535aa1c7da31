//! Whether there is room for a ladder's files, found out before any of them is written. A file system of this host is
//! asked. Another host is offered a file, which it refuses before the first byte if it has no room for it; if it does
//! not refuse, the copy ends with the first bytes that land.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::Location;
use carrack_core::request::{CopyOptions, CopyRequest};
use carrack_engine::Context;
use carrack_sys::dir::Dir;

use super::{LadderPlace, LadderRequest};
use crate::bench::moved::{self, Moved};
use crate::far_scratch::{FarScratch, LostHosts};

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

/// Why the memory of the source, and that of the destination, cannot be used.
pub type Lacking = [Option<String>; 2];

/// Refuses a ladder that would fill a file system; `note` takes what a person should know. Of memory that nobody has
/// asked for it tells where that has no room.
///
/// # Errors
/// That there is no room, or why a place could not be asked.
pub fn check(request: &LadderRequest, context: &Context, note: &mut dyn FnMut(&str)) -> Result<Lacking, Failure> {
    let mut lacking = check_here(request)?;
    let (mut numbers, lost) = (NUMBERS.into_iter(), LostHosts::default());
    for (place, lacks) in [&request.source, &request.destination].into_iter().zip(&mut lacking) {
        for (directory, is_wanted) in directories(place) {
            let number = numbers.next().unwrap_or_default();
            if !directory.is_remote() {
                continue;
            }
            let mut options = request.options.clone();
            if std::ptr::eq(place, &request.source) {
                options.destination = options.source.clone();
            }
            match FarScratch::create(directory, "ladder", number, &options.destination, context, &lost, note) {
                Ok(scratch) => match ask(&scratch, directory, options, request.size, context, note) {
                    Err(why) if why.code == ErrorCode::NoSpace && !is_wanted => *lacks = Some(why.message()),
                    other => other?,
                },
                Err(why) if is_wanted => return Err(why),
                // A directory in memory that is not there is left out later.
                Err(_) => {}
            }
        }
    }
    Ok(lacking)
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
    let has_landed = &mut |moved: &Moved| moved.landed.last().is_some_and(|(_, bytes)| *bytes > 0);
    match moved::watch_until(request, context, note, has_landed).1 {
        Some(why) if why.code == ErrorCode::NoSpace => {
            let what = format!(
                "{directory}: no room for the ladder's {size} bytes and a tenth of the free space besides; \
                 give a smaller --size"
            );
            Err(Failure::new(ErrorCode::NoSpace, Side::Command, what).caused_by(why))
        }
        other => other.map_or(Ok(()), Err),
    }
}

/// Refuses what would fill a file system of this host. What nobody has asked for gets what room the rest leaves.
fn check_here(request: &LadderRequest) -> Result<Lacking, Failure> {
    let ends = [&request.source, &request.destination].into_iter().enumerate();
    let all = ends.flat_map(|(end, place)| directories(place).map(move |(place, is_wanted)| (end, place, is_wanted)));
    let (wanted, others): (Vec<_>, Vec<_>) = all.partition(|(.., is_wanted)| *is_wanted);
    let (mut taken, mut lacking) = (HashMap::<u64, u64>::new(), Lacking::default());
    for (end, place, is_wanted) in wanted.into_iter().chain(others) {
        let Location::Local(path) = place else { continue };
        let path = if path.is_empty() { b".".as_slice() } else { path };
        let Ok(directory) = Dir::open_ambient(Path::new(OsStr::from_bytes(path))) else { continue };
        let (Ok(space), Ok(stat)) = (directory.free_space(), directory.stat_self()) else { continue };
        let (taken, free) = (taken.entry(stat.device).or_default(), space.bytes_available);
        let bytes = taken.saturating_add(request.size);
        if bytes as f64 <= free as f64 * FREE_SHARE {
            *taken = bytes;
            continue;
        }
        let why = format!("{place}: the ladder would write {bytes} bytes, and {free} are free; give a smaller --size");
        if is_wanted {
            return Err(Failure::new(ErrorCode::NoSpace, Side::Command, why));
        }
        lacking[end] = Some(why);
    }
    Ok(lacking)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where all directories are on one file system, the disk's files come first.
    #[test]
    fn memory_that_nobody_asked_for_gets_what_room_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let here = || Location::Local(directory.path().to_str().unwrap().into());
        let free = Dir::open_ambient(directory.path()).unwrap().free_space().unwrap().bytes_available;
        let checked = |share: f64, asked: [bool; 2]| {
            let place = |is_asked| LadderPlace { directory: here(), ram: Some(here()), is_asked };
            let request = LadderRequest {
                source: place(asked[0]),
                destination: place(asked[1]),
                size: (free as f64 * share) as u64,
                runs: 1,
                streams: vec![None],
                options: CopyOptions::default(),
            };
            check_here(&request).map(|lacking| lacking.map(|why| why.is_some())).map_err(|why| why.code)
        };
        // Of a tenth, four, three and two files fit; nobody else fills the rest meanwhile.
        for (share, lacking) in [(0.1, [false, false]), (0.27, [false, true]), (0.4, [true, true])] {
            assert_eq!(checked(share, [false; 2]), Ok(lacking), "{share}");
        }
        assert_eq!(checked(0.27, [false, true]), Ok([true, false]), "what is asked for comes first");
        for (share, asked) in [(0.4, [true, false]), (0.27, [true, true]), (0.6, [false; 2])] {
            assert_eq!(checked(share, asked), Err(ErrorCode::NoSpace), "{share} {asked:?}");
        }
    }
}
