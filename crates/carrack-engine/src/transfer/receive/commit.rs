//! Giving files their names, in groups.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Instant;

use carrack_core::attributes::{AttributeKind, Attributes, Lacks, Time};
use carrack_core::ids::{BundleId, ItemId};
use carrack_core::report::{ErrorCode, Failure, FileDigests};
use carrack_core::timeline::Work;
use carrack_core::transfer::machine::Machine;
use carrack_core::wire::peer::{DirectoryAttributes, ItemResult};

use super::changes::BundledChanges;
use super::referring::MadeItems;
use super::{ReceiveRun, Staged};
use crate::storage::write::{Entry, NewDirectory, Part};
use crate::sync::lock;

/// What the thread of the commits does, in the order in which the machine decides it.
pub(super) enum Commit {
    Publish {
        item: ItemId,
        digests: FileDigests,
        size: u64,
        /// Where it is another time than was offered.
        modified: Option<Time>,
    },
    Bundle(BundleId),
    /// What was made of reference directories.
    Referred(MadeItems),
    Directories(Vec<DirectoryAttributes>),
    Delete {
        failed: u64,
    },
    Sync,
}

/// An item of a bundle, and its place there.
type Indexed = (u32, Box<dyn Entry>);

/// A bundle whose items get their names by several threads.
struct Unpublished {
    bundle: BundleId,
    /// Items that have not got theirs.
    left: AtomicUsize,
    /// What has to be said of those that will not.
    said: Mutex<Vec<(u32, ItemResult)>>,
    /// What is told when all have theirs.
    changes: Mutex<BundledChanges>,
}

impl ReceiveRun {
    /// Publishes in groups: whatever has come meanwhile is synced together, then renamed.
    pub(super) fn commit_all(&self, work: &mpsc::Receiver<Commit>) {
        while let Ok(first) = work.recv() {
            // A sync costs the same for one file as for hundreds: whatever waits by now shares one.
            let group: Vec<Commit> =
                std::iter::once(first).chain(std::iter::from_fn(|| work.try_recv().ok())).collect();
            self.commits_waiting.fetch_sub(group.len(), Ordering::Relaxed);
            let synced = self.sync_group(&group);
            // Where no later sync can mend it, what is still to come would be copied in vain. Storage that is full has
            // lost this group alone, and its items say why.
            let is_full = |why: &Failure| matches!(why.code, ErrorCode::NoSpace | ErrorCode::QuotaExceeded);
            if synced.as_ref().is_err_and(|why| !is_full(why))
                && let Err(why) = self.destination.sync_all()
            {
                self.driver.tell(|machine| machine.fail(why));
            }
            let mut group = group.into_iter().peekable();
            while let Some(commit) = group.next() {
                let Commit::Bundle(first) = commit else {
                    self.commit(commit, &synced);
                    continue;
                };
                // Those that follow each other are published together, so that several threads have enough to do.
                let mut bundles = vec![first];
                while let Some(Commit::Bundle(next)) = group.next_if(|next| matches!(next, Commit::Bundle(_))) {
                    bundles.push(next);
                }
                self.commit_bundles(&bundles, &synced);
            }
            // After the renames: the marker may call published only what has its name.
            self.destination.written_down();
        }
    }

    pub(super) fn sync_group(&self, group: &[Commit]) -> Result<(), Failure> {
        let staged = lock(&self.staged);
        let needed = group.iter().any(|commit| {
            let bundle = match commit {
                Commit::Referred(made) => return made.await_sync(),
                Commit::Bundle(bundle) => bundle,
                _ => return false,
            };
            staged.get(bundle).is_some_and(|staged| staged.entries.iter().any(|(_, entry)| entry.awaits_sync()))
        });
        // The sync may take seconds, and the streams hand in bundles meanwhile.
        drop(staged);
        let sync = || self.destination.sync_group();
        if needed { self.driver.stages.aside(Work::Sync, sync) } else { Ok(()) }
    }

    fn commit(&self, commit: Commit, synced: &Result<(), Failure>) {
        match commit {
            Commit::Bundle(bundle) => self.commit_bundles(&[bundle], synced),
            Commit::Referred(made) => self.commit_made(made, synced),
            Commit::Publish { item, digests, size, modified } => {
                let part = lock(&self.parts).remove(&item);
                if let (Some(part), Some(modified)) = (&part, modified) {
                    part.set_modified(modified);
                }
                let published = part.map_or(Ok(true), |part| self.publish(&*part, digests, size));
                self.offer_ended(item, Some((size, digests)).filter(|_| published == Ok(true)));
                let result = match published {
                    Ok(true) => ItemResult::Published,
                    Ok(false) => ItemResult::Kept,
                    Err(why) => self.lost(why),
                };
                self.driver.tell(|machine| machine.handle_published(Instant::now(), item, result));
            }
            Commit::Directories(list) => {
                // Last of all, when nothing is made below any more: each new entry would change its directory's time,
                // and permissions without writing would refuse it.
                let mut list = list;
                list.iter_mut().for_each(|directory| self.localize_directory(directory));
                let told = self.changes.as_ref().filter(|_| self.properties.directories).map(|_| list.clone());
                let to_set = |DirectoryAttributes { path, attributes }| {
                    let attributes = Attributes { mtime: self.time_to_set(attributes.mtime), ..attributes };
                    NewDirectory { path, attributes }
                };
                let list: Vec<NewDirectory> = list.into_iter().map(to_set).collect();
                let properties = &self.properties;
                if properties.keeps && !properties.directories {
                    let below = list.iter().filter(|directory| !directory.path.is_empty());
                    below.for_each(|directory| self.leave_out(&directory.path, AttributeKind::DIRECTORY));
                }
                let told = told.unwrap_or_default();
                let lacks = |one: &DirectoryAttributes| self.destination.lacks(&one.path, &one.attributes.others);
                let lacked: Vec<Lacks> = told.iter().map(lacks).collect();
                let apply = || self.destination.apply_directories(&list);
                let failures = self.driver.stages.aside(Work::Publish, apply);
                self.directories_set(&told, &lacked, &failures);
                self.driver.tell(|machine| machine.handle_directories_applied(Instant::now(), failures));
            }
            Commit::Delete { failed } => {
                // A new name is there for good before the old one goes.
                let is_renamed = self.renaming.as_ref().is_some_and(|renaming| renaming.renamed().items > 0);
                if is_renamed && !self.driver.options.plan_only {
                    let synced = self.driver.stages.aside(Work::Sync, || self.destination.sync_all());
                    if let Err(why) = synced {
                        return self.driver.tell(|machine| machine.fail(why));
                    }
                }
                self.delete(failed);
                self.driver.tell(|machine| machine.handle_deleted());
            }
            Commit::Sync => {
                let synced = self.driver.stages.aside(Work::Sync, || self.destination.sync_all());
                self.driver.tell(|machine| match synced {
                    Ok(durable) => machine.handle_synced(Instant::now(), durable),
                    Err(why) => machine.fail(why),
                });
            }
        }
    }

    /// Gives the items of bundles their names, and tells the machine of each bundle when all of its items have theirs.
    fn commit_bundles(&self, bundles: &[BundleId], synced: &Result<(), Failure>) {
        let take = |bundle: &BundleId| (*bundle, lock(&self.staged).remove(bundle).unwrap_or_default());
        let staged: Vec<(BundleId, Staged)> = bundles.iter().map(take).collect();
        let items = staged.iter().map(|(_, staged)| staged.entries.len()).sum::<usize>();
        if self.publishing.shares_short(items) {
            return self.publish_by_directory(staged, synced);
        }
        for (bundle, Staged { entries, mut exceptions, changes, .. }) in staged {
            exceptions.extend(self.publish_entries(entries, synced));
            self.bundle_ended(changes, &exceptions);
            self.driver.tell(|machine| machine.handle_committed(Instant::now(), bundle, exceptions));
        }
    }

    fn bundle_ended(&self, changes: BundledChanges, said: &[(u32, ItemResult)]) {
        if let Some(told) = &self.changes {
            told.bundle_ended(changes, said);
        }
    }

    /// Directories have got their attributes, and lacked this before, but for those that failed.
    fn directories_set(&self, list: &[DirectoryAttributes], lacked: &[Lacks], failures: &[(Vec<u8>, Failure)]) {
        let Some(changes) = &self.changes else { return };
        let failed: HashSet<&[u8]> = failures.iter().map(|(path, _)| &path[..]).collect();
        let set = list.iter().zip(lacked).filter(|(one, _)| !failed.contains(&one.path[..]));
        set.for_each(|(one, lacked)| changes.directory_set(&one.path, &one.attributes, *lacked));
    }

    /// Several threads publish, each all that is in one directory: the kernel gives names in a directory one after the
    /// other, and who waits for it burns processor time.
    fn publish_by_directory(&self, staged: Vec<(BundleId, Staged)>, synced: &Result<(), Failure>) {
        let mut bundles = Vec::new();
        let mut directories: HashMap<Vec<u8>, Vec<(usize, Indexed)>> = HashMap::new();
        for (number, (bundle, Staged { entries, exceptions, changes, .. })) in staged.into_iter().enumerate() {
            // One more than there are: a bundle of nothing is told of as well.
            bundles.push(Unpublished {
                bundle,
                left: AtomicUsize::new(entries.len() + 1),
                said: Mutex::new(exceptions),
                changes: Mutex::new(changes),
            });
            for entry in entries {
                let directory = entry.1.directory();
                match directories.get_mut(directory) {
                    Some(list) => list.push((number, entry)),
                    None => drop(directories.insert(directory.to_vec(), vec![(number, entry)])),
                }
            }
        }
        let done = |one: &Unpublished| {
            if one.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                let said = std::mem::take(&mut *lock(&one.said));
                self.bundle_ended(std::mem::take(&mut *lock(&one.changes)), &said);
                self.driver.tell(|machine| machine.handle_committed(Instant::now(), one.bundle, said));
            }
        };
        bundles.iter().for_each(done);
        let lists: Vec<Mutex<Vec<(usize, Indexed)>>> = directories.into_values().map(Mutex::new).collect();
        let publish = |entry: &dyn Entry| self.publishing.call(|job| job.measure(|_| entry.publish()));
        let publish = |entry: &dyn Entry| self.driver.stages.aside_briefly(Work::Publish, || publish(entry));
        self.publishing.each_short(&lists, |list| {
            for (number, (index, entry)) in std::mem::take(&mut *lock(list)) {
                let Some(bundle) = bundles.get(number) else { continue };
                let exception = self.publish_entry(index, &*entry, synced, publish);
                lock(&bundle.said).extend(exception);
                done(bundle);
            }
        });
    }

    /// Gives a bundle's items their names. What has to be said of each that has not got its own.
    fn publish_entries(&self, entries: Vec<Indexed>, synced: &Result<(), Failure>) -> Vec<(u32, ItemResult)> {
        let publish = |entry: &dyn Entry| self.publishing.call(|job| job.measure(|_| entry.publish()));
        let mut entries = entries.into_iter();
        let mut said = Vec::new();
        // Calls may be found to be slow in the midst of a bundle: several threads publish what is left of it.
        while !self.publishing.are_several() {
            let publish = |entry: &dyn Entry| self.driver.stages.aside_briefly(Work::Publish, || publish(entry));
            let Some((index, entry)) = entries.next() else { return said };
            said.extend(self.publish_entry(index, &*entry, synced, publish));
        }
        let list: Vec<Mutex<Option<Indexed>>> = entries.map(|entry| Mutex::new(Some(entry))).collect();
        let one = |entry: &Mutex<Option<Indexed>>| {
            let (index, entry) = lock(entry).take()?;
            self.publish_entry(index, &*entry, synced, publish)
        };
        let by_several = self.driver.stages.aside(Work::Publish, || self.publishing.each(&list, one));
        said.extend(by_several.into_iter().flatten());
        said
    }

    fn publish_entry(
        &self,
        index: u32,
        entry: &dyn Entry,
        synced: &Result<(), Failure>,
        publish: impl Fn(&dyn Entry) -> Result<bool, Failure>,
    ) -> Option<(u32, ItemResult)> {
        // What is not synced cannot be read back from storage, nor published.
        let checked = synced.clone().and_then(|()| entry.verify());
        match checked.inspect_err(|_| entry.remove()).and_then(|()| publish(entry)) {
            Ok(true) => {
                self.count_published();
                None
            }
            Ok(false) => Some((index, ItemResult::Kept)),
            Err(why) => Some((index, self.lost(why))),
        }
    }

    /// `false` when what has come to stand there is to be kept.
    pub(super) fn publish(&self, part: &dyn Part, digests: FileDigests, size: u64) -> Result<bool, Failure> {
        // Synced first, renamed last: the name is never on anything that is less than that. What is to be read back has
        // been, block by block.
        self.driver.stages.aside(Work::Sync, || part.finish(size)).inspect_err(|_| part.remove())?;
        let published = self.driver.stages.aside(Work::Publish, || part.publish(digests))?;
        if published {
            self.count_published();
        }
        Ok(published)
    }

    pub(super) fn count_published(&self) {
        self.items_published.fetch_add(1, Ordering::Relaxed);
    }

    /// What was written is of no use. Where storage has lost it, writing it again to another place may help.
    pub(super) fn lost(&self, why: Failure) -> ItemResult {
        let again = matches!(why.code, ErrorCode::InputOutput | ErrorCode::DigestMismatch);
        if again { ItemResult::Again(why) } else { ItemResult::Failed(why) }
    }
}
