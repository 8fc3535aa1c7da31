//! Whether both ends stand on what they stood on when a run began: a disk may be mounted no more.

use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_core::request::CopyRequest;
use carrack_core::wire::control::PathFacts;

use super::ends::Ends;
use super::resolve::{Plan, inspect};
use crate::end::{End, Inbox, Note};
use crate::error::failure;

/// Refuses sources at which no file system is mounted, where one was required to be. Before each session: it may have
/// gone since the one before.
///
/// # Errors
/// That one is none; as [`resolve`].
pub fn check_mounted(request: &CopyRequest, end: &mut End, inbox: &mut Inbox, note: &Note) -> Result<(), Failure> {
    if !request.options.require_mount {
        return Ok(());
    }
    let facts = inspect(&request.sources, end, inbox, note)?;
    let is_mounted = |facts: &Option<PathFacts>| facts.as_ref().is_some_and(|facts| facts.is_mount_top);
    match request.sources.iter().zip(&facts).find(|(_, facts)| !is_mounted(facts)) {
        Some((location, _)) => {
            let why = "no file system is mounted there, so nothing was copied or deleted";
            let missing = failure(ErrorCode::NotFound, Side::Source, why).for_reason(Reason::NotMounted);
            Err(missing.at_end(location.to_string()))
        }
        None => Ok(()),
    }
}

/// Refuses to go on where the first source, or the destination, is on another file system than the plan was made for: a
/// host that has come back may not have mounted its disk yet. What is not there would be deleted at the destination,
/// and what is written would be hidden by the disk. It may pass.
///
/// # Errors
/// That it is so; as [`resolve`](super::resolve::resolve).
pub fn check_same_disks(
    request: &CopyRequest,
    ends: &mut Ends,
    (inbox, note): (&mut Inbox, &Note),
    plan: &Plan,
) -> Result<(), Failure> {
    let destination = std::slice::from_ref(&request.destination);
    let sides = [
        (Side::Source, &request.sources[..], &mut ends.source),
        (Side::Destination, destination, &mut ends.destination),
    ];
    for ((side, locations, end), known) in sides.into_iter().zip(plan.file_systems) {
        if known.is_none() {
            continue;
        }
        let facts = inspect(locations, end, inbox, note)?;
        let first = locations.iter().zip(facts).find_map(|(location, facts)| Some((location, facts?)));
        let Some((location, facts)) = first else { continue };
        if facts.file_system.is_some() && facts.file_system != known {
            let why = "is on another file system than when the copy began, so nothing more is copied or deleted: \
                       is its disk mounted?";
            return Err(failure(ErrorCode::Busy, side, why).at_end(location.to_string()));
        }
    }
    Ok(())
}
