//! Finding what there is to send.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use carrack_core::ids::BundleId;
use carrack_core::report::ItemKind;
use carrack_core::selection::Selection;
use carrack_core::timeline::Work;
use carrack_core::transfer::machine::Machine;
use carrack_core::unicode::fold_case;

use super::SendRun;
use crate::data::stages::Lap;
use crate::storage::overlap::Overlaps;
use crate::storage::posix::clashes::clash;
use crate::storage::read::{Found, Root, Walk, WalkChoice, missing};
use crate::sync::lock;

/// Found items handed to the machine at once; and where it asks about them, before any of them gives a stream work.
const SCAN_BATCH: usize = 64;
const COMPARED_BATCH: usize = 512;
/// Found items handed to the machine before there is a data connection: what is told of them waits at the command.
const SCAN_AHEAD: usize = 4096;

impl SendRun {
    /// Walks the sources and hands in what it finds; at the end what was selected and is not there.
    pub(super) fn scan(&self) {
        let selection = lock(&self.selection).take();
        let _caller = self.listing.enter();
        if self.driver.options.names_first() && !self.tell_all_names() {
            return;
        }
        let mut ahead = 0;
        if !self.walk_all(selection.as_ref(), &mut |batch| self.take_found(batch, &mut ahead)) {
            return;
        }
        // A selected path that no source has is a failure of its own: a list of files would be shortened without a
        // word.
        let mut absent = selection.iter().flat_map(|selection| missing(&self.roots, selection)).peekable();
        while absent.peek().is_some() {
            if !self.take_found(&mut absent.by_ref().take(SCAN_BATCH).collect(), &mut ahead) {
                return;
            }
        }
        self.driver.tell(|machine| machine.handle_scan_complete(Instant::now()));
        if self.driver.options.tells_names {
            self.look_up();
        }
    }

    /// Walks the sources, and hands what it finds to `take`, a batch at a time, until that says `false`.
    fn walk_all(&self, selection: Option<&Selection>, take: &mut dyn FnMut(&mut Vec<Found>) -> bool) -> bool {
        let overlaps = Overlaps::new(&self.roots, selection);
        let compares = self.driver.options.rules().is_some();
        let most = if compares { COMPARED_BATCH } else { SCAN_BATCH };
        let clashing = if self.driver.options.folds_case { clashing(&self.roots) } else { HashMap::new() };
        for (number, root) in self.roots.iter().enumerate() {
            let mut batch = Vec::with_capacity(most);
            if let Some(other) = clashing.get(&number) {
                let kind = if root.source.is_directory() { ItemKind::Directory } else { ItemKind::File };
                batch.push(Found::Failure(Walk::plain(number as u32).item(b"", kind), clash(other)));
                if !take(&mut batch) {
                    return false;
                }
                continue;
            }
            let mut since = Instant::now();
            let mut lap = Lap::begin();
            let chosen = WalkChoice {
                selection,
                freshness: self.freshness,
                workers: Some(&self.listing),
                folds_case: self.driver.options.folds_case,
                ..self.without_excluded()
            };
            root.walk(number as u32, &chosen, &mut |found| {
                batch.push(self.with_link(overlaps.check(found)));
                // A slow listing must not keep back what it has found.
                let full = batch.len() >= most || since.elapsed() > Duration::from_millis(2);
                if !full {
                    return true;
                }
                since = Instant::now();
                // Waiting for room is no listing.
                self.driver.stages.count_aside(Work::List, &lap);
                let goes_on = take(&mut batch);
                lap = Lap::begin();
                goes_on
            });
            self.driver.stages.count_aside(Work::List, &lap);
            if !take(&mut batch) {
                return false;
            }
        }
        true
    }

    /// Tells all names, and waits until the destination knows what only it has, and has deleted that where that comes
    /// first; `false` when the transfer has ended.
    fn tell_all_names(&self) -> bool {
        let named = self.walk_all(None, &mut |batch| self.tell_names(batch));
        if !named {
            return false;
        }
        self.driver.tell(|machine| machine.handle_names_complete(Instant::now()));
        let mut machine = self.driver.lock();
        while machine.outcome().is_none() && !machine.is_past_names() {
            // It may be asked meanwhile what the sources have by now.
            // Its lock is given back at once: whoever puts one there holds the machine's.
            let doubt = lock(&self.doubts).pop_front();
            if let Some(doubt) = doubt {
                drop(machine);
                self.answer(doubt);
                machine = self.driver.lock();
                continue;
            }
            machine = self.driver.wait(machine);
        }
        machine.outcome().is_none()
    }

    /// Tells the names of what was found, once there is room.
    fn tell_names(&self, batch: &mut Vec<Found>) -> bool {
        let mut machine = self.driver.lock();
        while machine.outcome().is_none() && !machine.wants_items() {
            machine = self.driver.wait(machine);
        }
        let now = Instant::now();
        for found in batch.drain(..) {
            match found {
                Found::Item(item) | Found::LeftOut(item) => machine.handle_named(now, &item),
                Found::Failure(item, _) => machine.handle_unlisted(now, &item),
                Found::Listed { root, path, complete } => machine.handle_listed(now, root, &path, complete),
                // It comes once more.
                Found::Own => {}
            }
        }
        let goes_on = machine.outcome().is_none();
        drop(machine);
        self.driver.wake();
        goes_on
    }

    /// A link that is compared before it is sent comes with what it says.
    fn with_link(&self, found: Found) -> Found {
        match found {
            Found::Item(mut item) if self.driver.options.plan_only && item.kind == ItemKind::Symlink => {
                match self.root(&item).and_then(|root| root.source.link_target(&item.path)) {
                    Ok((leads_to, _)) => item.leads_to = leads_to,
                    Err(why) => return Found::Failure(item, why),
                }
                Found::Item(item)
            }
            other => other,
        }
    }

    fn without_excluded(&self) -> WalkChoice<'_> {
        let filters = Some(&self.filters).filter(|filters| !filters.is_empty());
        WalkChoice { filters, backup: self.backup.as_ref(), ..WalkChoice::all() }
    }

    /// Says what the sources have by now of what the destination is about to delete, until the transfer has ended: the
    /// scan may have missed what was replaced or made meanwhile.
    fn look_up(&self) {
        while let Some(doubt) = self.driver.next_of(&self.doubts) {
            self.answer(doubt);
        }
    }

    fn answer(&self, (number, paths): (BundleId, Vec<Vec<u8>>)) {
        let has = |path: &Vec<u8>| self.roots.iter().any(|root| root.has(path, &self.without_excluded()));
        let there = paths.iter().map(has).collect();
        self.driver.tell(|machine| machine.handle_looked_up(Instant::now(), number, there));
    }

    /// Hands in what the scan found, once there is room; before there is a data connection, `ahead` counts how much
    /// there is. False when the transfer has ended.
    pub(super) fn take_found(&self, batch: &mut Vec<Found>, ahead: &mut usize) -> bool {
        *ahead += batch.len();
        let mut machine = self.driver.lock();
        loop {
            if machine.outcome().is_some() {
                return false;
            }
            // The scan is far quicker than any network. Without a bound the machine would hold every name of a tree,
            // and the command every report of it.
            if machine.wants_items() && (*ahead <= SCAN_AHEAD || self.linked.load(Ordering::Relaxed)) {
                break;
            }
            machine = self.driver.wait(machine);
        }
        let now = Instant::now();
        for found in batch.drain(..) {
            match found {
                Found::Item(item) => machine.handle_item(now, self.followed_if_recent(item)),
                Found::Failure(item, why) => machine.handle_scan_failure(now, &item, why),
                Found::LeftOut(item) => machine.handle_left_out(now, &item),
                Found::Listed { root, path, complete } => machine.handle_listed(now, root, &path, complete),
                Found::Own => {
                    self.own.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        drop(machine);
        self.driver.wake();
        true
    }
}

/// Sources whose names would become one without regard to case, by their numbers: each with the name of another.
fn clashing(roots: &[Root]) -> HashMap<usize, Vec<u8>> {
    let mut first: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut clashing = HashMap::new();
    for (number, root) in roots.iter().enumerate().filter(|(_, root)| !root.target.is_empty()) {
        let other = *first.entry(fold_case(&root.target)).or_insert(number);
        if roots[other].target != root.target {
            clashing.insert(number, roots[other].target.clone());
            clashing.entry(other).or_insert_with(|| root.target.clone());
        }
    }
    clashing
}
