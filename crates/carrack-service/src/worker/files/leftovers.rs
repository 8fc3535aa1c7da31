//! What a task has left at its destinations: named, or removed.

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::limits;
use carrack_core::path::{join, split_name};
use carrack_engine::Stop;
use data_encoding::HEXLOWER;

use super::end::End;
use super::message::LeftAt;
use crate::identity::ScopePath;
use crate::model::{TaskLeftover, TaskLeftovers, UnknownLeftovers, Verb, text_of};

/// How the name of a marker ends. An unfinished file is called otherwise.
const MARKER_END: &[u8] = b".marker";

/// Names what is left at places, or removes it. A place that cannot be looked at keeps no other from it.
///
/// # Errors
/// That it was stopped.
pub fn leftovers(end: &End, stop: &Stop, places: &[LeftAt], remove: bool) -> Result<TaskLeftovers, Failure> {
    let mut found = TaskLeftovers::default();
    for place in places {
        let looked = look(end, stop, place, remove, &mut found);
        stop.check()?;
        if let Err(failure) = looked {
            let why = end.named(failure).message();
            found.unknown.push(UnknownLeftovers { destination: place.destination.clone(), why });
        }
    }
    Ok(found)
}

fn look(end: &End, stop: &Stop, place: &LeftAt, remove: bool, found: &mut TaskLeftovers) -> Result<(), Failure> {
    let itself = end.path(&place.path, Verb::Write)?;
    let path = ScopePath::parse(&place.path).map(|path| path.bytes()).unwrap_or_default();
    // A single file was marked in the directory of its name. Whoever may do nothing there has left nothing there.
    let parent = split_name(&path).0;
    let above = end.path(&format!("/{}", text_of(parent)), Verb::Write).ok().filter(|_| !path.is_empty());
    for marker in &place.markers {
        let key = HEXLOWER.decode(marker.as_bytes()).ok().and_then(|key| key.try_into().ok());
        let key: [u8; limits::MARKER_KEY_BYTES] =
            key.ok_or_else(|| Failure::new(ErrorCode::Usage, Side::Command, "that is no key of a marker"))?;
        for (directory, shown) in [(Some(&itself), &path[..]), (above.as_ref(), parent)] {
            let Some(directory) = directory else { continue };
            let mut stays = Ok(());
            let collected = end.with_files(stop, |files| {
                files.collect_of(directory, key, !remove, &mut |entry| match entry.error {
                    // What tells whose they are is no file of anybody's.
                    None if remove && entry.path.ends_with(MARKER_END) => {}
                    None => found.add(TaskLeftover {
                        destination: place.destination.clone(),
                        path: format!("/{}", text_of(&join(shown, &entry.path))),
                        bytes: entry.size,
                    }),
                    Some(failure) if stays.is_ok() => stays = Err(failure),
                    Some(_) => {}
                })
            });
            match collected {
                // It is gone, or no directory: nothing is left in it.
                Err(failure) if matches!(failure.code, ErrorCode::NotFound | ErrorCode::NotADirectory) => {}
                collected => _ = collected?,
            }
            stays?;
        }
    }
    Ok(())
}
