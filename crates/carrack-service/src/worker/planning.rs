//! What a copy would do, told without doing it: of a preview, and of a run of a timer that a guard holds. And the
//! guards themselves.

use std::fmt::Write as _;

use carrack_core::failure::{ErrorCode, Failure, Reason, Side};
use carrack_core::judgment::Judgment;
use carrack_core::options::DeleteLimit;
use carrack_core::report::{Event, ItemKind, ItemReport, Outcome};
use carrack_core::request::DeleteOrder;
use carrack_engine::Copy;

use super::attempt::Attempt;
use super::confirmed::Confirmed;
use super::ends::OpenEnd;
use super::failures::is_source_error;
use super::pass::Counted;
use super::places::{open, path_of};
use crate::journal::{Item, JournalError, Reader, Record, Withdrawn};
use crate::model::{EventKind, ItemState, Planned, Progress, RunGuard, TaskFailure, TaskPlan};

fn of_journal(why: impl ToString) -> Failure {
    Failure::new(ErrorCode::InputOutput, Side::Command, why.to_string())
}

/// Plans a pair of a preview: what would be copied, and what would be deleted.
///
/// # Errors
/// What ended it early. Items that could not be looked at are none of it.
pub fn preview(
    attempt: &mut Attempt<'_>,
    pair: u32,
    place: &[u8],
    source: &OpenEnd,
    destination: &OpenEnd,
) -> Result<(), Failure> {
    if let Some(history) = attempt.history.pairs.remove(&pair) {
        // An earlier attempt has come so far, or further: all of it is told anew.
        attempt.teller.begin_anew(&attempt.order.directory, pair, true).map_err(of_journal)?;
        attempt.history.pairs.insert(pair, history.remnant());
    }
    attempt.teller.begin_pass(pair, place, Progress::default());
    plan(attempt, pair, source, destination)?;
    attempt.teller.end_pass(false);
    Ok(())
}

/// Compares both sides, and tells what would be done. Of a task that is no preview only what would be deleted is told
/// item by item.
fn plan(attempt: &mut Attempt<'_>, pair: u32, source: &OpenEnd, destination: &OpenEnd) -> Result<(), Failure> {
    let (mut request, context) = attempt.dry_run(source, destination)?;
    request.options.plan = true;
    let mut plan = TaskPlan::default();
    let mut handle = Copy::start(request, &context);
    while let Some(event) = handle.next_event() {
        match event {
            Event::Item(item) => {
                count(&mut plan, &item);
                tell(attempt, pair, item);
            }
            Event::Progress(progress) => attempt.teller.update(|pass| {
                pass.found = (progress.files_found, progress.bytes_found);
                pass.scan_complete = progress.scan_complete;
            }),
            Event::Linked(_) => attempt.note_reached(),
            Event::Note(text) => attempt.teller.event(EventKind::Note, text, serde_json::json!({})),
            _ => {}
        }
    }
    let report = handle.wait();
    if let Some(error) = report.error {
        return Err(error);
    }
    plan.held_by = report.undeleted.map(|why| attempt.told(&why, b"").why);
    attempt.teller.counted_in_all(Counted { plan: Some(plan), ..Counted::default() });
    Ok(())
}

/// Counts an item. Directories are made as they are needed: they count only where they would be deleted.
fn count(plan: &mut TaskPlan, item: &ItemReport) {
    let planned = match (&item.outcome, item.judgment) {
        (Outcome::ToDelete, _) => &mut plan.to_delete,
        _ if item.kind == ItemKind::Directory => return,
        (Outcome::Planned, Some(Judgment::New) | None) => &mut plan.new,
        (Outcome::Planned, Some(_)) => &mut plan.changed,
        (Outcome::Same, _) => &mut plan.same,
        (Outcome::Kept, _) => &mut plan.left,
        (Outcome::Published | Outcome::Deleted | Outcome::Failed(_), _) => return,
    };
    planned.add(item.size);
}

fn tell(attempt: &Attempt<'_>, pair: u32, report: ItemReport) {
    let ItemReport { path, kind, size, outcome, .. } = report;
    let is_preview = attempt.order.preview;
    let (state, failure) = match outcome {
        Outcome::ToDelete => (ItemState::ToDelete, None),
        Outcome::Planned if is_preview && kind != ItemKind::Directory => (ItemState::Planned, None),
        Outcome::Failed(why) if is_preview => {
            // The next attempt would find it no other: whoever wants to know plans once more.
            let failure = TaskFailure { retryable: false, ..attempt.told(&why, &path) };
            let is_skipped = attempt.order.skip_source_errors && is_source_error(&why);
            (if is_skipped { ItemState::Skipped } else { ItemState::Failed }, Some(failure))
        }
        _ => return,
    };
    attempt.teller.item(Item { pair, path, kind, state, size, digest: None, failure }, false, false);
}

/// What earlier attempts have told of a pair as a plan counts no more.
///
/// # Errors
/// If that cannot be kept.
pub fn forget(attempt: &Attempt<'_>, pair: u32) -> Result<(), Failure> {
    let directory = &attempt.order.directory;
    let forget = || -> Result<(), JournalError> {
        let mut withdrawn = Withdrawn::load(directory)?;
        let mut reader = Reader::open(directory).without(withdrawn.clone());
        while let Some(record) = reader.next_record()? {
            if let Record::Item(item) = record
                && item.pair == pair
                && item.state.is_plan()
            {
                withdrawn.item(reader.record_began());
            }
        }
        withdrawn.save(directory)
    };
    forget().map_err(of_journal)
}

/// Before a run of a timer that deletes: whether its source stands where it stood when the last run succeeded. Where it
/// does not, the plan is told, and the attempt held: `false`.
///
/// # Errors
/// What keeps the source from being looked at, or the plan from being made.
pub fn check_ground(
    attempt: &mut Attempt<'_>,
    pair: u32,
    place: &[u8],
    source: &OpenEnd,
    destination: &OpenEnd,
) -> Result<bool, Failure> {
    let Some(guard) = &attempt.order.guard else { return Ok(true) };
    let path = path_of(source)?;
    let found = open(source, &attempt.context)?.file_system(path)?;
    attempt.note_reached();
    let found = found.map(|key| {
        key.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    });
    let counted = Counted { source_file_system: found.clone(), ..Counted::default() };
    attempt.teller.counted_in_all(counted);
    let confirmed = Confirmed::of(&attempt.order.directory).and_then(|confirmed| confirmed.file_system);
    if is_where_it_was(guard, confirmed.as_deref(), found.as_deref()) {
        return Ok(true);
    }
    let before = attempt.history.pairs.get(&pair).map(|pair| pair.progress.clone());
    attempt.teller.begin_pass(pair, place, before.unwrap_or_default());
    plan(attempt, pair, source, destination)?;
    attempt.teller.leave_pass();
    let why = "the source stands on another file system than when the last run succeeded (is its disk mounted?), so \
               nothing was copied or deleted";
    hold(attempt, &Failure::new(ErrorCode::PermissionDenied, Side::Source, why).at_path(path))?;
    Ok(false)
}

/// What is not known holds nothing back: hosts without such a key have the other guard.
fn is_where_it_was(guard: &RunGuard, confirmed: Option<&str>, found: Option<&str>) -> bool {
    let (Some(expected), Some(found)) = (guard.file_system.as_deref(), found) else { return true };
    expected == found || confirmed == Some(found)
}

/// What the run of a timer may delete, where somebody has looked at its plan, or where an earlier attempt has changed
/// what the destination has.
pub fn bound(attempt: &Attempt<'_>, delete: &mut DeleteOrder) {
    let order = attempt.order;
    let Some(guard) = &order.guard else { return };
    if let Some(Confirmed { deletions, .. }) = Confirmed::of(&order.directory) {
        delete.allow_empty = true;
        // Whoever lets so many go, and no more, still means that.
        if !delete.partial {
            (delete.most, delete.share) = (Some(deletions), None);
        }
        return;
    }
    // What this run has brought before a session was lost makes the share of what goes smaller. What the last run has
    // left does not.
    if let (Some(DeleteLimit::Share(share)), Some(items)) = (order.options.max_delete, guard.items) {
        let most = u128::from(items) * u128::from(share) / 100;
        delete.most = Some(u64::try_from(most).unwrap_or(u64::MAX));
    }
}

/// What a task has not deleted, and why: of the run of a timer somebody has to look at it where a guard has stopped it.
///
/// # Errors
/// As [`hold`].
pub fn undeleted(attempt: &mut Attempt<'_>, why: &Failure, (items, bytes): (u64, u64)) -> Result<(), Failure> {
    let to_delete = Planned { items, bytes };
    let plan = TaskPlan { to_delete, held_by: Some(attempt.told(why, b"").why), ..TaskPlan::default() };
    attempt.teller.counted_in_all(Counted { plan: Some(plan), ..Counted::default() });
    // Who lets some of them go has said how many.
    let is_partial = matches!(attempt.order.options.max_delete, Some(DeleteLimit::Partial(_)));
    let is_guard = match why.reason {
        Some(Reason::TooManyDeletions) => !is_partial,
        reason => reason == Some(Reason::EmptySource),
    };
    match &attempt.order.guard {
        Some(guard) if is_guard => {
            let before = guard.items.map(|items| format!("; the last run that succeeded had {items} items"));
            let text = format!("{}{}", why.why, before.unwrap_or_default());
            hold(attempt, &Failure { why: text, ..why.clone() })
        }
        _ => Ok(()),
    }
}

/// Ends the attempt until somebody has looked at the plan. What was confirmed before is used up.
fn hold(attempt: &mut Attempt<'_>, why: &Failure) -> Result<(), Failure> {
    Confirmed::take_back(&attempt.order.directory).map_err(of_journal)?;
    attempt.held = Some(TaskFailure { retryable: false, ..attempt.told(why, b"") });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_on_another_file_system_holds_a_run_unless_that_was_confirmed() {
        let guard = |file_system: Option<&str>| RunGuard { file_system: file_system.map(Into::into), items: None };
        for (expected, confirmed, found, goes_on) in [
            (Some("a"), None, Some("a"), true),
            (Some("a"), None, Some("b"), false),
            (Some("a"), Some("b"), Some("b"), true),
            (Some("a"), Some("b"), Some("c"), false),
            (None, None, Some("b"), true),
            (Some("a"), None, None, true),
        ] {
            assert_eq!(is_where_it_was(&guard(expected), confirmed, found), goes_on, "{expected:?} {found:?}");
        }
    }

    #[test]
    fn plan_counts_files_and_links_and_directories_only_where_they_go() {
        let mut plan = TaskPlan::default();
        let item = |kind, outcome, judgment| ItemReport {
            path: b"p".to_vec(),
            kind,
            size: 3,
            digests: Default::default(),
            judgment,
            outcome,
        };
        for (kind, outcome, judgment) in [
            (ItemKind::File, Outcome::Planned, Some(Judgment::New)),
            (ItemKind::Symlink, Outcome::Planned, Some(Judgment::Differs(Default::default()))),
            (ItemKind::Directory, Outcome::Planned, None),
            (ItemKind::File, Outcome::Same, Some(Judgment::Same)),
            (ItemKind::Directory, Outcome::ToDelete, None),
            (ItemKind::File, Outcome::ToDelete, None),
        ] {
            count(&mut plan, &item(kind, outcome, judgment));
        }
        let counted = [plan.new, plan.changed, plan.same, plan.left, plan.to_delete].map(|planned| planned.items);
        assert_eq!(counted, [1, 1, 1, 0, 2]);
    }
}
