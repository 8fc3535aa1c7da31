//! What only the destination has: found directory by directory as the source tells its names, kept in a list that grows
//! into a file, and deleted at the end, if nothing speaks against it.
//!
//! What may be deleted follows from the command's order alone: a name that the source did not tell, in a directory of
//! which it has told all names, that no rule protects, on the file system of that directory.

mod deleting;
mod finding;
mod list;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use carrack_core::backup::Backup;
use carrack_core::filter::{FilterSide, Filters, Scope};
use carrack_core::limits;
use carrack_core::path::{above, join, split_name};
use carrack_core::report::{ErrorCode, Failure, ItemKind, ItemReport, Reason, Side};
use carrack_core::request::{DeleteOrder, DeletionExtent};

use self::deleting::Deleting;
use self::finding::{Finding, UnsureDirectories};
use self::list::DeletionList;
use super::changes::{Changes, short_digest};
use super::only_there::OnlyThere;
use super::renaming::Renaming;
use crate::error::{failure, io_failure};
use crate::storage::workers::MetadataWorkers;
use crate::storage::write::Destination;
use crate::sync::lock;

/// Tells the command of items.
pub type TellItems = Box<dyn Fn(Vec<ItemReport>) + Send + Sync>;

/// Where a deletion asks what it does not know.
pub trait SourceNow {
    /// Of each path, whether the source has by now what goes there; `None` when the transfer has ended.
    fn still_there(&self, paths: Vec<Vec<u8>>) -> Option<Vec<bool>>;

    /// Whether the transfer has ended.
    fn is_over(&self) -> bool;
}

/// What may be deleted.
#[derive(Default)]
pub struct SweepOrder {
    /// How much, and in spite of what.
    pub order: DeleteOrder,
    /// What a rule protects is not.
    pub filters: Filters,
    /// What is kept of earlier runs is not, and what is deleted is kept.
    pub backup: Option<Backup>,
    /// Items that earlier sessions of the same run have brought: they were not there before it.
    pub brought: u64,
    /// All names come before anything else, and some of them once more.
    pub names_first: bool,
}

impl SweepOrder {
    /// Whether something may be kept at a path.
    fn protects(&self, path: &[u8]) -> bool {
        self.backup.as_ref().is_some_and(|backup| backup.protects(path))
    }

    /// Whether a file that is deleted stays in its directory under another name.
    fn keeps_beside(&self) -> bool {
        self.backup.as_ref().is_some_and(Backup::is_beside)
    }
}

/// What only the destination has, as far as is known.
pub struct Sweep {
    may: SweepOrder,
    /// Tells the command of items; `None` where it does not want to know.
    tell: Option<TellItems>,
    /// Tells of what is deleted, or would be.
    changes: Option<Arc<Changes>>,
    /// What of it the source may have renamed.
    renaming: Option<Arc<Renaming>>,
    state: Mutex<Swept>,
}

#[derive(Default)]
struct Swept {
    /// Names that the source has, by directory, until it has told all of them.
    names: HashMap<Vec<u8>, ToldNames>,
    /// Digests of the directories of which it has: their names may come once more, and are not kept.
    told: HashSet<u64>,
    /// Of the directory that names were told of last: whether two names may be one there.
    folds: Option<(Vec<u8>, bool)>,
    /// The source has told of some name.
    has_names: bool,
    /// Items that both have, those not counted that this run has brought.
    shared: u64,
    /// Of what earlier sessions have brought, what has not been met yet.
    brought: u64,
    /// Why something could not be found out: the first, and how many.
    unknown: Option<Failure>,
    list: DeletionList,
    /// What is on the list.
    found: OnlyThere,
    unsure: UnsureDirectories,
    /// Digests of the paths of those directories on the list that stay, because something is kept in them.
    stay: HashSet<u64>,
    ended: SweepEnd,
}

/// Names that the source has in a directory.
#[derive(Default)]
struct ToldNames {
    /// Digests of 8 bytes. A name that only the destination has stays if its digest is that of one of these, and
    /// nothing worse happens.
    digests: Vec<u64>,
    /// Those that the destination may have in another form.
    whole: HashSet<Vec<u8>>,
    /// Digests of those that the destination had not when they were told.
    new: Vec<u64>,
}

impl ToldNames {
    fn is_empty(&self) -> bool {
        self.digests.is_empty() && self.whole.is_empty()
    }

    /// All of them have been told.
    fn close(&mut self) {
        self.digests.sort_unstable();
        self.new.sort_unstable();
    }

    /// Whether the source has this name, in this form.
    fn take(&mut self, name: &[u8]) -> bool {
        self.digests.binary_search(&short_digest(name)).is_ok() || self.whole.remove(name)
    }

    fn is_new(&self, name: &[u8]) -> bool {
        !self.new.is_empty() && self.new.binary_search(&short_digest(name)).is_ok()
    }
}

/// Names that only the destination has in a directory, and the rules as they hold there.
struct ExtraNames<'a> {
    paths: Vec<Vec<u8>>,
    /// How many others it had before this session.
    shared: u64,
    scope: Scope<'a>,
    device: Option<u64>,
}

/// How it ended.
#[derive(Clone, Debug, Default)]
pub struct SweepEnd {
    /// What was deleted.
    pub deleted: OnlyThere,
    /// What stays.
    pub stays: OnlyThere,
    /// How many more were to go, and stay because the source has them by now.
    pub appeared: u64,
    /// Why something stays that was to go.
    pub why: Option<Failure>,
}

impl Sweep {
    /// Nothing found yet.
    pub fn new(
        may: SweepOrder,
        tell: Option<TellItems>,
        changes: Option<Arc<Changes>>,
        renaming: Option<Arc<Renaming>>,
    ) -> Self {
        let state = Mutex::new(Swept { brought: may.brought, ..Swept::default() });
        Self { may, tell, changes, renaming, state }
    }

    /// Whether it matters how many names both sides have.
    pub fn counts_names(&self) -> bool {
        let DeleteOrder { share, asks, .. } = self.may.order;
        share.is_some() || asks
    }

    /// The source has these names; with `true` the destination has nothing there. Those of a directory mostly come
    /// together.
    pub fn has<'a>(&self, destination: &dyn Destination, paths: impl Iterator<Item = (&'a [u8], bool)>) {
        let state = &mut *lock(&self.state);
        // Only where a share of what is there matters.
        let counts = self.counts_names();
        let mut paths = paths.map(|(path, new)| (split_name(path), new && counts)).peekable();
        while let Some(((directory, name), new)) = paths.next() {
            if state.told.contains(&short_digest(directory)) {
                while paths.next_if(|((other, _), _)| *other == directory).is_some() {}
                continue;
            }
            let folds = state.folds(destination, directory);
            if !state.names.contains_key(directory) {
                state.names.insert(directory.to_vec(), ToldNames::default());
            }
            let Some(names) = state.names.get_mut(directory) else { return };
            let more = std::iter::from_fn(|| paths.next_if(|((other, _), _)| *other == directory));
            for (name, new) in std::iter::once((name, new)).chain(more.map(|((_, name), new)| (name, new))) {
                if new {
                    names.new.push(short_digest(name));
                }
                if folds {
                    names.whole.insert(name.to_vec());
                } else {
                    names.digests.push(short_digest(name));
                }
            }
        }
    }

    /// The source has told every name of each of these directories; with `true` if these are all that it has. Where
    /// that is slow, `workers` list several at once.
    pub fn listed(
        &self,
        destination: &dyn Destination,
        directories: &[(Vec<u8>, bool)],
        workers: Option<&MetadataWorkers>,
    ) {
        let mut told = Vec::with_capacity(directories.len());
        {
            let state = &mut *lock(&self.state);
            for (directory, complete) in directories {
                let names = state.names.remove(directory).unwrap_or_default();
                // Of what it holds, not its own name in the directory above: that is told even where it holds nothing.
                state.has_names |= !names.is_empty();
                if self.may.names_first {
                    state.told.insert(short_digest(directory));
                }
                if *complete {
                    told.push((&directory[..], Mutex::new(names)));
                } else {
                    let why = failure(ErrorCode::InputOutput, Side::Source, "could not be listed to its end");
                    state.unknown.get_or_insert(why.at_path(&directory[..]));
                }
            }
        }
        let compare = |(directory, names): &(&[u8], Mutex<ToldNames>)| {
            self.extra(destination, directory, std::mem::take(&mut *lock(names)))
        };
        let extra: Vec<_> = match workers.filter(|workers| workers.are_several()) {
            Some(workers) => workers.each(&told, compare),
            None => told.iter().map(compare).collect(),
        };
        let state = &mut *lock(&self.state);
        for found in extra {
            if let Err(why) = found.and_then(|extra| self.find(destination, state, extra)) {
                state.unknown.get_or_insert(why);
            }
        }
    }

    /// What the destination has in a directory, and the source has not told.
    fn extra(
        &self,
        destination: &dyn Destination,
        directory: &[u8],
        mut names: ToldNames,
    ) -> Result<ExtraNames<'_>, Failure> {
        let (mut paths, mut shared) = (Vec::new(), 0);
        names.close();
        let scope = self.scope(destination, directory)?;
        let device = device_of(destination, directory)?;
        destination.list(directory, &mut |name| {
            match names.take(name) {
                true => shared += u64::from(!names.is_new(name)),
                false => paths.push(join(directory, name)),
            }
            true
        })?;
        if !paths.is_empty() && !names.whole.is_empty() {
            let told: Vec<_> = names.whole.iter().map(|name| join(directory, name)).collect();
            paths = without_twins(destination, paths, &told)?;
        }
        Ok(ExtraNames { paths, shared, scope, device })
    }

    fn find(&self, destination: &dyn Destination, state: &mut Swept, extra: ExtraNames<'_>) -> Result<(), Failure> {
        let ExtraNames { paths, shared, scope, device } = extra;
        // What earlier sessions have brought is no part of it, either.
        let brought = shared.min(state.brought);
        (state.shared, state.brought) = (state.shared + shared - brought, state.brought - brought);
        let Swept { list, found, unsure, .. } = state;
        let renaming = self.renaming.as_deref();
        let mut finding = Finding { may: &self.may, destination, scope, device, list, found, unsure, renaming };
        paths.iter().try_for_each(|path| finding.all_at(path))
    }

    /// The rules as they hold in a directory.
    fn scope(&self, destination: &dyn Destination, directory: &[u8]) -> Result<Scope<'_>, Failure> {
        let mut scope = self.may.filters.scope(FilterSide::Destination);
        if self.may.filters.are_per_directory() {
            let top = Some(&b""[..]).filter(|_| !directory.is_empty());
            for each in top.into_iter().chain(above(directory)).chain([directory]) {
                enter(destination, &mut scope, each)?;
            }
        }
        Ok(scope)
    }

    /// What is about to be deleted, where somebody is to be asked about that.
    pub fn question(&self, failed: u64, plan_only: bool) -> Option<DeletionExtent> {
        if !self.may.order.asks || plan_only {
            return None;
        }
        let state = &mut *lock(&self.state);
        self.settle(state);
        if self.why_not(state, failed).is_some() {
            return None;
        }
        let OnlyThere { items, bytes } = self.to_delete(state);
        let most = self.most(state).unwrap_or(u64::MAX);
        let bytes = (items <= most).then_some(bytes);
        Some(DeletionExtent { items: items.min(most), of: state.there(), bytes }).filter(DeletionExtent::is_large)
    }

    /// Finds out which directories stay because something is kept in them: by now it is known what has been renamed.
    fn settle(&self, state: &mut Swept) {
        if let Some(renaming) = self.renaming.as_deref() {
            state.stay = state.unsure.that_stay(renaming);
        }
    }

    /// Deletes what was found, unless something speaks against it: `failed` items have failed otherwise, or whoever was
    /// asked did not say that it `may`. What the source has by now stays: it was made or replaced while the source was
    /// listed.
    pub fn delete(
        &self,
        destination: &dyn Destination,
        (failed, may): (u64, bool),
        plan_only: bool,
        source: &dyn SourceNow,
    ) {
        let state = &mut *lock(&self.state);
        self.settle(state);
        let refused = self.why_not(state, failed).or_else(|| (!may).then(|| declined(self.to_delete(state).items)));
        let would = if refused.is_some() { 0 } else { self.most(state).unwrap_or(u64::MAX) };
        let most = if plan_only { 0 } else { would };
        // What stays anyway is not asked about.
        let asks = refused.is_none();
        let ended = SweepEnd { why: refused, ..SweepEnd::default() };
        let list = std::mem::take(&mut state.list);
        let mut deleting = Deleting {
            sweep: self,
            destination,
            source,
            asks,
            most,
            would: would - most,
            ended,
            next: Vec::new(),
            plan_only,
            bytes: 0,
            told: Vec::new(),
        };
        let stay = &state.stay;
        let walked = list.each(&mut |path, kind, size| {
            let stays = kind == ItemKind::Directory && stay.contains(&short_digest(path));
            stays || deleting.take(path, kind, size)
        });
        deleting.go_on();
        let Deleting { mut ended, mut told, .. } = deleting;
        self.tell_items(&mut told);
        if let Err(error) = walked {
            ended.why.get_or_insert(io_failure(Side::Destination, "read the list of what is deleted", &error));
        }
        if ended.why.is_none() && ended.stays.items > 0 && !plan_only {
            ended.why = Some(self.too_many(state));
        }
        state.ended = ended;
    }

    fn tell_items(&self, told: &mut Vec<ItemReport>) {
        if let Some(tell) = self.tell.as_ref().filter(|_| !told.is_empty()) {
            tell(std::mem::take(told));
        }
    }

    /// How many items may be deleted, if there is a bound: a number, or a share of what the destination has.
    fn most(&self, state: &Swept) -> Option<u64> {
        self.may.order.most.into_iter().chain(self.most_of_share(state)).min()
    }

    fn most_of_share(&self, state: &Swept) -> Option<u64> {
        let most = u128::from(state.there()) * u128::from(self.may.order.share?) / 100;
        Some(u64::try_from(most).unwrap_or(u64::MAX))
    }

    fn too_many(&self, state: &Swept) -> Failure {
        let (found, DeleteOrder { most, share, .. }) = (self.to_delete(state).items, self.may.order);
        let is_over = |bound: Option<u64>| bound.is_some_and(|bound| found > bound);
        let why = match share.filter(|_| is_over(self.most_of_share(state))) {
            Some(share) => {
                let there = state.there();
                format!("{found} of {there} items at the destination would be deleted, and at most {share} % may be")
            }
            None => format!("{found} items would be deleted, and at most {} may be", most.unwrap_or(0)),
        };
        failure(ErrorCode::PermissionDenied, Side::Destination, why).for_reason(Reason::TooManyDeletions)
    }

    /// What keeps everything from being deleted.
    fn why_not(&self, state: &Swept, failed: u64) -> Option<Failure> {
        let nothing = |why: String, reason| {
            Some(
                failure(ErrorCode::PermissionDenied, Side::Destination, format!("{why}, so nothing was deleted"))
                    .for_reason(reason),
            )
        };
        let unknown = state.unknown.as_ref().filter(|_| !self.may.order.ignore_errors);
        let found = self.to_delete(state).items;
        // What could not be looked at there may be what only the destination has.
        if found == 0 && unknown.is_none_or(|why| why.side != Side::Destination) {
            return None;
        }
        if failed > 0 && !self.may.order.ignore_errors {
            let items = if failed == 1 { "an item".to_owned() } else { format!("{failed} items") };
            return nothing(format!("{items} failed"), Reason::DeletionUnsure);
        }
        if let Some(why) = unknown {
            return nothing(why.to_string(), Reason::DeletionUnsure);
        }
        if !state.has_names && !self.may.order.allow_empty {
            return nothing("the source is empty".to_owned(), Reason::EmptySource);
        }
        match self.most(state) {
            Some(most) if found > most && !self.may.order.partial => Some(self.too_many(state)),
            _ => None,
        }
    }

    /// What was found and may go, without what has another name by now.
    fn to_delete(&self, state: &Swept) -> OnlyThere {
        let OnlyThere { items, bytes } = self.renaming.as_ref().map(|renaming| renaming.renamed()).unwrap_or_default();
        let found = state.may_go();
        OnlyThere { items: found.items.saturating_sub(items), bytes: found.bytes.saturating_sub(bytes) }
    }

    /// How it ended; before that, what was found.
    pub fn ended(&self) -> SweepEnd {
        lock(&self.state).ended.clone()
    }
}

fn declined(items: u64) -> Failure {
    let items = if items == 1 { "an item was".to_owned() } else { format!("{items} items were") };
    let why = format!("{items} to be deleted, and nobody said yes, so nothing was deleted");
    failure(ErrorCode::PermissionDenied, Side::Destination, why).for_reason(Reason::DeletionDeclined)
}

impl Swept {
    /// Items that the destination had when they were looked at, without those that no rule lets go.
    fn there(&self) -> u64 {
        self.shared.saturating_add(self.may_go().items)
    }

    /// What is on the list, without the directories that stay because something is kept in them.
    fn may_go(&self) -> OnlyThere {
        OnlyThere { items: self.found.items.saturating_sub(self.stay.len() as u64), ..self.found }
    }

    /// Whether the destination may have names of a directory in another form.
    fn folds(&mut self, destination: &dyn Destination, directory: &[u8]) -> bool {
        match &self.folds {
            Some((last, folds)) if last == directory => *folds,
            _ => {
                let folds = destination.folds_names(directory);
                self.folds = Some((directory.to_vec(), folds));
                folds
            }
        }
    }
}

/// Which of these paths are no other form of a told one: upper case, decomposed. The file system knows, by which file
/// it finds under either. What changes meanwhile is taken for such a form.
fn without_twins(
    destination: &dyn Destination,
    paths: Vec<Vec<u8>>,
    told: &[Vec<u8>],
) -> Result<Vec<Vec<u8>>, Failure> {
    let before = files_at(destination, &paths)?;
    let of_source: HashSet<_> = files_at(destination, told)?.into_iter().flatten().collect();
    let after = files_at(destination, &paths)?;
    let is_other = |(before, after): (Option<_>, Option<_>)| {
        before == after && before.is_some_and(|file| !of_source.contains(&file))
    };
    let others = before.into_iter().zip(after).map(is_other);
    Ok(paths.into_iter().zip(others).filter_map(|(path, is_other)| is_other.then_some(path)).collect())
}

/// Device and inode of what stands at each path.
fn files_at(destination: &dyn Destination, paths: &[Vec<u8>]) -> Result<Vec<Option<(u64, u64)>>, Failure> {
    let paths: Vec<_> = paths.iter().map(Vec::as_slice).collect();
    let standing = destination.standing(&paths, None).into_iter();
    standing.map(|one| one.map(|there| there.and_then(|there| there.file))).collect()
}

/// The file system that a directory is on.
fn device_of(destination: &dyn Destination, directory: &[u8]) -> Result<Option<u64>, Failure> {
    let standing = destination.standing(&[directory], None).pop();
    Ok(standing.transpose()?.flatten().and_then(|there| there.device()))
}

fn enter(destination: &dyn Destination, scope: &mut Scope<'_>, directory: &[u8]) -> Result<(), Failure> {
    let read = &mut |name: &[u8]| {
        destination.read_rules(&join(directory, name), limits::FILTER_BYTES).map_err(|why| why.message())
    };
    scope.enter(directory, read).map_err(|why| failure(ErrorCode::Usage, Side::Destination, why).at_path(directory))
}

#[cfg(test)]
mod tests;
