//! Whether the ledger is older than the tasks beside it: somebody has put a file from before in its place. What it
//! acknowledged since is gone, and attempts that it hands out would be refused by journals.

use std::collections::BTreeSet;
use std::path::Path;

use crate::ledger::{Answer, Ledger, LedgerError};
use crate::worker::lock;

/// Tasks that are named; of more only the number is told.
const NAMED: usize = 5;

/// What the directories of tasks know and the ledger does not, in words; none where the ledger knows all of it.
///
/// # Errors
/// Those of the ledger.
pub fn news(ledger: &dyn Ledger, tasks: &Path) -> Answer<Option<String>> {
    let (mut unknown, mut ahead) = (Vec::new(), Vec::new());
    // Their directories are removed soon.
    let forgotten: BTreeSet<String> = ledger.forgotten()?.into_iter().collect();
    let entries = std::fs::read_dir(tasks).into_iter().flatten().filter_map(Result::ok);
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let Ok(id) = entry.file_name().into_string() else { continue };
        match ledger.task(&id) {
            // The attempt counts in the ledger before its worker begins.
            Ok(task) => {
                let begun = lock::holder(&entry.path());
                if begun.is_some_and(|holder| holder.fence > task.fence) {
                    ahead.push(id);
                }
            }
            Err(LedgerError::Missing) if forgotten.contains(&id) => {}
            Err(LedgerError::Missing) => unknown.push(id),
            Err(error) => return Err(error),
        }
    }
    let told = [(&mut unknown, "are not in it"), (&mut ahead, "have later attempts than it knows")];
    let told: Vec<String> = told.into_iter().filter_map(|(ids, what)| named(ids, what)).collect();
    Ok((!told.is_empty()).then(|| told.join("; ")))
}

fn named(ids: &mut [String], what: &str) -> Option<String> {
    ids.sort();
    let first = ids.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = ids.len().saturating_sub(NAMED);
    match (ids.len(), more) {
        (0, _) => None,
        (count, 0) => Some(format!("{count} tasks {what}: {first}")),
        (count, more) => Some(format!("{count} tasks {what}: {first} and {more} more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;
    use crate::ledger::memory::MemoryLedger;
    use crate::ledger::{Retention, Submission, TaskChange, TaskGuard};
    use crate::model::{NewTask, Pair, TaskState};

    fn submission(id: &str) -> Submission {
        let pair = Pair { source: "@here:/a".to_owned(), destination: Some("@there:/b".to_owned()) };
        Submission {
            id: id.to_owned(),
            owner: "ada".to_owned(),
            submission_id: None,
            request: NewTask { pairs: vec![pair], ..NewTask::default() },
            endpoints: Vec::new(),
            estimate: None,
        }
    }

    #[test]
    fn ledger_that_is_older_than_the_tasks_beside_it_is_named() {
        let ledger = MemoryLedger::new();
        ledger.submit(&submission("known"), Moment(0)).unwrap();
        let tasks = tempfile::tempdir().unwrap();
        let known = tasks.path().join("known");
        std::fs::create_dir(&known).unwrap();
        let sign = |fence| lock::Lock::take(&known).unwrap().unwrap().sign(1, fence).unwrap();
        sign(0);
        assert_eq!(news(&ledger, tasks.path()), Ok(None));
        sign(3);
        let ahead = "1 tasks have later attempts than it knows: known";
        assert_eq!(news(&ledger, tasks.path()).unwrap().as_deref(), Some(ahead));
        for id in 0..7 {
            std::fs::create_dir(tasks.path().join(format!("t{id}"))).unwrap();
        }
        let unknown = "7 tasks are not in it: t0, t1, t2, t3, t4 and 2 more";
        assert_eq!(news(&ledger, tasks.path()).unwrap(), Some(format!("{unknown}; {ahead}")));
    }

    /// A service may be killed between the two.
    #[test]
    fn directory_of_a_forgotten_task_makes_no_ledger_older() {
        let ledger = MemoryLedger::new();
        ledger.submit(&submission("old"), Moment(0)).unwrap();
        let end = TaskChange { state: Some(TaskState::Cancelled), ..TaskChange::default() };
        ledger.change_task("old", &TaskGuard::default(), &end, &[], Moment(1)).unwrap();
        let retention = Retention { tasks_ended_before: Moment(9), events_before: Moment(0), limit: 9 };
        let tasks = tempfile::tempdir().unwrap();
        std::fs::create_dir(tasks.path().join("old")).unwrap();
        assert_eq!(ledger.forget(&retention).unwrap(), ["old"]);
        assert_eq!(news(&ledger, tasks.path()), Ok(None));
        ledger.directories_removed(&["old".to_owned()]).unwrap();
        assert!(news(&ledger, tasks.path()).unwrap().is_some_and(|news| news.contains("old")));
    }
}
