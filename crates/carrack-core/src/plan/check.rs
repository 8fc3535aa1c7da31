//! Two trees, compared as both are listed: what only one of them has, and in what the others differ.
//!
//! Both listings come in one order, so only the next item of each is held, and the paths of what could not be read:
//! that is a failure of its item, and what the other side has there and below is no difference.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::compare::{CompareRules, State};
use crate::attributes::{AttributeKind, KeptAttributes, OtherAttributes};
use crate::failure::{ErrorCode, Failure, Side};
use crate::judgment::Judgment;
use crate::limits;
use crate::path::{above, split_name};
use crate::report::{FileDigests, ItemKind};
use crate::request::Compare;
use crate::special::SpecialFile;

/// The order in which a tree is told that is compared: the top; what lies in a directory, by the bytes of the names;
/// then what lies in each directory there, in the same order.
pub fn listing_order(one: &[u8], other: &[u8]) -> Ordering {
    let names = |path| <[u8]>::split(path, |byte: &u8| *byte == b'/');
    let ((parent, name), (other_parent, other_name)) = (split_name(one), split_name(other));
    names(parent).cmp(names(other_parent)).then_with(|| name.cmp(other_name))
}

/// What one side tells at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedItem {
    /// Relative to the top; empty for the top.
    pub path: Vec<u8>,
    /// What is there.
    pub told: CheckedState,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckedState {
    /// An item.
    There(Box<CheckedFacts>),
    /// Something that is not compared.
    LeftOut,
    /// Something that cannot be read.
    Failed(Failure),
    /// A directory whose entries cannot be listed, or not all of them. It comes where they would.
    Unlisted(Failure),
}

/// What is compared of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedFacts {
    /// What it is; of a file its size and time.
    pub state: State,
    /// Where a link leads.
    pub link_target: Vec<u8>,
    /// Which FIFO, socket or device it is.
    pub special: Option<SpecialFile>,
    /// Permission bits (07777).
    pub mode: u32,
    /// Owner, group, and what else is compared.
    pub others: OtherAttributes,
    /// Of a file whose content is compared.
    pub digests: FileDigests,
    /// Of what has several names, its device and inode, where names of one file are compared.
    pub file: Option<(u64, u64)>,
}

impl CheckedFacts {
    /// The mode of what nobody has told one of.
    pub const NO_MODE: u32 = u32::MAX;
}

/// By what items are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckRules {
    /// What makes two files the same.
    pub compare: CompareRules,
    /// Attributes that are compared; with special bits, all permission bits.
    pub kept: KeptAttributes,
    /// Owners and groups are compared by their numbers alone.
    pub numeric_ids: bool,
    /// The source is what somebody once said of the destination: all that it tells is compared, and nothing else.
    pub claims: bool,
}

/// In what two items differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckDifferences {
    /// One is a file, the other something else.
    pub kind: bool,
    /// In bytes.
    pub size: bool,
    /// In their modification times.
    pub time: bool,
    /// Their bytes.
    pub content: bool,
    /// Where two links lead.
    pub target: bool,
    /// One is a FIFO, the other a socket, or they are two devices.
    pub special: bool,
    /// Permission bits.
    pub permissions: bool,
    /// The owner.
    pub owner: bool,
    /// The group.
    pub group: bool,
    /// Access control lists.
    pub acl: bool,
    /// Extended attributes or capabilities.
    pub xattrs: bool,
    /// It is another name of a file at one side, and not at the other.
    pub links: bool,
}

impl CheckDifferences {
    /// The words for these, in a fixed order.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let words = [
            (self.kind, "type"),
            (self.size, "size"),
            (self.time, "time"),
            (self.content, "content"),
            (self.target, "target"),
            (self.special, "device"),
            (self.permissions, "mode"),
            (self.owner, "owner"),
            (self.group, "group"),
            (self.acl, "acl"),
            (self.xattrs, "xattrs"),
            (self.links, "links"),
        ];
        words.into_iter().filter_map(|(differs, word)| differs.then_some(word))
    }
}

impl CheckRules {
    /// In what two items differ.
    pub fn differences(&self, source: &CheckedFacts, destination: &CheckedFacts) -> CheckDifferences {
        if self.claims {
            return self.unfounded(source, destination);
        }
        let by_state = match self.compare.judge(&source.state, Some(&destination.state)) {
            Judgment::Differs(differs) => CheckDifferences {
                kind: differs.kind,
                size: differs.size,
                time: differs.time && self.compare.compare == Compare::SizeAndTime,
                ..CheckDifferences::default()
            },
            Judgment::Undecided => {
                CheckDifferences { content: source.digests != destination.digests, ..CheckDifferences::default() }
            }
            _ => CheckDifferences::default(),
        };
        if by_state.kind {
            return CheckDifferences { kind: true, ..CheckDifferences::default() };
        }
        let is_link = source.state.kind == ItemKind::Symlink;
        let (one, other) = (&source.others, &destination.others);
        let differs = |kind| one.of_kind(kind).map(|told| &told.value) != other.of_kind(kind).map(|told| &told.value);
        CheckDifferences {
            target: source.link_target != destination.link_target,
            special: source.special != destination.special,
            permissions: self.kept.special_bits && !is_link && source.mode != destination.mode,
            owner: self.kept.owner && self.is_other_account(AttributeKind::OWNER, one, other),
            group: self.kept.group && self.is_other_account(AttributeKind::GROUP, one, other),
            acl: self.kept.acls && (differs(AttributeKind::ACL) || differs(AttributeKind::NFS4_ACL)),
            xattrs: (self.kept.has_xattrs() && differs(AttributeKind::EXTENDED))
                || (self.kept.capabilities && differs(AttributeKind::CAPABILITIES)),
            ..by_state
        }
    }

    /// Whether two items have something that was to be compared and did not come, at both sides. What comes from one
    /// side alone is a difference.
    fn is_untold(&self, source: &CheckedFacts, destination: &CheckedFacts) -> bool {
        let has = |facts: &CheckedFacts, kind| facts.others.of_kind(kind).is_some_and(|told| !told.travels());
        let both = |kind| has(source, kind) && has(destination, kind);
        let are_cut = |facts: &CheckedFacts| facts.others.extended().is_some_and(|extended| extended.are_cut);
        (self.kept.acls && (both(AttributeKind::ACL) || both(AttributeKind::NFS4_ACL)))
            || (self.kept.capabilities && both(AttributeKind::CAPABILITIES))
            || (self.kept.has_xattrs() && are_cut(source) && are_cut(destination))
    }

    /// What the source says and the destination is not.
    fn unfounded(&self, source: &CheckedFacts, destination: &CheckedFacts) -> CheckDifferences {
        if source.state.kind != destination.state.kind {
            return CheckDifferences { kind: true, ..CheckDifferences::default() };
        }
        let (one, other) = (&source.others, &destination.others);
        let says = |kind| one.of_kind(kind).is_some();
        let value = |told: &OtherAttributes, kind| told.of_kind(kind).map(|told| told.value.clone());
        let differs = |kind| value(one, kind) != value(other, kind);
        CheckDifferences {
            kind: false,
            size: source.state.size != destination.state.size,
            time: source.state.mtime.is_some() && source.state.mtime != destination.state.mtime,
            content: source.digests.blake3.is_some() && source.digests.blake3 != destination.digests.blake3,
            target: !source.link_target.is_empty() && source.link_target != destination.link_target,
            special: source.special.is_some() && source.special != destination.special,
            permissions: source.mode != CheckedFacts::NO_MODE && source.mode != destination.mode,
            owner: says(AttributeKind::OWNER) && self.is_other_account(AttributeKind::OWNER, one, other),
            group: says(AttributeKind::GROUP) && self.is_other_account(AttributeKind::GROUP, one, other),
            // What was to be kept and is not there is said, too.
            acl: self.kept.acls && (differs(AttributeKind::ACL) || differs(AttributeKind::NFS4_ACL)),
            xattrs: (self.kept.has_xattrs() && differs(AttributeKind::EXTENDED))
                || (self.kept.capabilities && differs(AttributeKind::CAPABILITIES)),
            links: false,
        }
    }

    /// By name, where both have one.
    fn is_other_account(&self, kind: AttributeKind, one: &OtherAttributes, other: &OtherAttributes) -> bool {
        let account = |told: &OtherAttributes| Some(told.of_kind(kind)?.as_account()?.1.to_vec());
        match (account(one).filter(|name| !name.is_empty()), account(other).filter(|name| !name.is_empty())) {
            (Some(one), Some(other)) if !self.numeric_ids => one != other,
            _ => one.number(kind) != other.number(kind),
        }
    }
}

/// What a comparison finds at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckFinding {
    /// Both sides have the same.
    Same(Box<[CheckedFacts; 2]>),
    /// Only the source has it.
    OnlySource(Box<CheckedFacts>),
    /// Only the destination has it.
    OnlyDestination(Box<CheckedFacts>),
    /// Both have something, and the two differ.
    Differs(Box<[CheckedFacts; 2]>, CheckDifferences),
    /// It cannot be read; the failure says at which side.
    Failed(Failure),
}

/// How many items there were of each kind of finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// The same at both sides.
    pub same: u64,
    /// Different ones.
    pub differing: u64,
    /// At the source alone.
    pub only_source: u64,
    /// At the destination alone.
    pub only_destination: u64,
    /// Could not be read.
    pub failed: u64,
    /// Bytes of the source's files that both sides have.
    pub bytes: u64,
    /// Files whose times were to be compared, and of which one side has none.
    pub timeless: u64,
    /// Files with several names at one side or both, of which there were too many to say which names are of one file.
    pub unlinked: u64,
    /// Items at both sides with an ACL or extended attributes that were to be compared, and that did not come: they are
    /// too long, or could not be read.
    pub untold: u64,
}

impl CheckCounts {
    /// Items that are not the same at both sides, as far as they could be read.
    pub fn differences(&self) -> u64 {
        self.differing + self.only_source + self.only_destination
    }

    fn add(&mut self, finding: &CheckFinding, compare: Compare) {
        let both = match finding {
            CheckFinding::Same(facts) | CheckFinding::Differs(facts, _) => Some(facts),
            _ => None,
        };
        *match finding {
            CheckFinding::Same(_) => &mut self.same,
            CheckFinding::OnlySource(_) => &mut self.only_source,
            CheckFinding::OnlyDestination(_) => &mut self.only_destination,
            CheckFinding::Differs(..) => &mut self.differing,
            CheckFinding::Failed(_) => &mut self.failed,
        } += 1;
        self.bytes += both.map_or(0, |facts| facts[0].state.size);
        let is_timeless = |facts: &CheckedFacts| facts.state.kind == ItemKind::File && facts.state.mtime.is_none();
        let is_timeless = both.is_some_and(|facts| facts.iter().any(is_timeless));
        self.timeless += u64::from(compare == Compare::SizeAndTime && is_timeless);
    }
}

/// A side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckedSide {
    /// What is compared.
    Source,
    /// What it is compared with.
    Destination,
}

/// Merges two listings into what differs.
pub struct TreeComparison {
    rules: CheckRules,
    links: NamesOfOne,
    counts: CheckCounts,
    source: SideListing,
    destination: SideListing,
}

/// Which files of the two sides belong together, of those with several names.
#[derive(Default)]
struct NamesOfOne {
    /// By the file's device and inode: the same of the other side's file that has the first of its names; `None` where
    /// that one has a single name.
    source: BTreeMap<(u64, u64), Option<(u64, u64)>>,
    destination: BTreeMap<(u64, u64), Option<(u64, u64)>>,
}

impl NamesOfOne {
    /// Takes the two files of a path, and says whether it is another name of a file at one side alone; `None` where
    /// too many files have several names.
    fn pair(&mut self, source: Option<(u64, u64)>, destination: Option<(u64, u64)>) -> Option<bool> {
        let of_source = belongs(&mut self.source, source, destination)?;
        let of_destination = belongs(&mut self.destination, destination, source)?;
        Some(!(of_source && of_destination))
    }
}

/// Whether the other side's file is that of this one's first name. Two single files are no names of one.
fn belongs(
    known: &mut BTreeMap<(u64, u64), Option<(u64, u64)>>,
    file: Option<(u64, u64)>,
    other: Option<(u64, u64)>,
) -> Option<bool> {
    let Some(file) = file else { return Some(true) };
    match known.get(&file) {
        Some(first) => Some(first.is_some() && *first == other),
        None if known.len() >= limits::LINKED_FILES => None,
        None => {
            known.insert(file, other);
            Some(true)
        }
    }
}

/// What one side has told.
#[derive(Default)]
struct SideListing {
    /// The next item; `None` once it has been taken.
    next: Option<CheckedItem>,
    is_over: bool,
    /// The last path that came in its place in the order.
    last: Option<Vec<u8>>,
    /// What could not be read.
    unread: BTreeSet<Vec<u8>>,
}

impl CheckedItem {
    /// Where it stands in the order of the listing.
    fn place(&self) -> Vec<u8> {
        match &self.told {
            CheckedState::Unlisted(_) if !self.path.is_empty() => [&self.path, &b"/"[..]].concat(),
            _ => self.path.clone(),
        }
    }
}

impl SideListing {
    /// Has the next item, unless the listing is over.
    fn fill<E: From<Failure>>(
        &mut self,
        side: Side,
        pull: impl FnOnce() -> Result<Option<CheckedItem>, E>,
    ) -> Result<(), E> {
        if self.is_over || self.next.is_some() {
            return Ok(());
        }
        let Some(item) = pull()? else {
            self.is_over = true;
            return Ok(());
        };
        // What cannot be listed may be told late, or again after a connection was lost.
        if !matches!(item.told, CheckedState::Unlisted(_)) {
            if self.last.as_ref().is_some_and(|last| listing_order(last, &item.path).is_ge()) {
                let what = "the listing did not come in the order that was asked for";
                return Err(Failure::new(ErrorCode::ProtocolViolation, side, what).at_path(&item.path[..]).into());
            }
            self.last = Some(item.path.clone());
        }
        self.next = Some(item);
        Ok(())
    }

    /// Whether a path, or a directory above it, could not be read.
    fn hides(&self, path: &[u8]) -> bool {
        let is_unread = |path: &[u8]| self.unread.contains(path);
        !self.unread.is_empty() && (is_unread(b"") || above(path).any(is_unread) || is_unread(path))
    }
}

impl TreeComparison {
    /// A comparison of two listings, of which nothing has come.
    pub fn new(rules: CheckRules) -> Self {
        Self {
            rules,
            links: NamesOfOne::default(),
            counts: CheckCounts::default(),
            source: SideListing::default(),
            destination: SideListing::default(),
        }
    }

    /// One that goes on behind a path, after these counts; what could not be read until then is known by side and path.
    pub fn behind(
        rules: CheckRules,
        after: &[u8],
        counts: CheckCounts,
        unread: impl IntoIterator<Item = (Side, Vec<u8>)>,
    ) -> Self {
        let mut comparison = Self { counts, ..Self::new(rules) };
        for listing in [&mut comparison.source, &mut comparison.destination] {
            listing.last = (!after.is_empty()).then(|| after.to_vec());
        }
        for (side, path) in unread {
            let listing = if side == Side::Destination { &mut comparison.destination } else { &mut comparison.source };
            listing.unread.insert(path);
        }
        comparison
    }

    /// What has been found so far.
    pub fn counts(&self) -> CheckCounts {
        self.counts
    }

    /// The next finding and its path; `None` when both listings have ended. `pull` gives the next item of a side.
    ///
    /// # Errors
    /// Those of `pull`; a listing that breaks the order.
    pub fn next_finding<E: From<Failure>>(
        &mut self,
        pull: &mut dyn FnMut(CheckedSide) -> Result<Option<CheckedItem>, E>,
    ) -> Result<Option<(Vec<u8>, CheckFinding)>, E> {
        loop {
            self.source.fill(Side::Source, || pull(CheckedSide::Source))?;
            self.destination.fill(Side::Destination, || pull(CheckedSide::Destination))?;
            let order = match (&self.source.next, &self.destination.next) {
                (None, None) => return Ok(None),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(one), Some(other)) => listing_order(&one.place(), &other.place()),
            };
            let take = |listing: &mut SideListing, is_next: bool| listing.next.take_if(|_| is_next);
            let one = take(&mut self.source, order.is_le());
            let other = take(&mut self.destination, order.is_ge());
            let Some(path) = one.as_ref().or(other.as_ref()).map(|item| item.path.clone()) else { continue };
            if let Some(finding) = self.judge(&path, one, other) {
                self.counts.add(&finding, self.rules.compare.compare);
                return Ok(Some((path, finding)));
            }
        }
    }

    /// What two sides have at one path is; `None` where that is nothing to be told.
    fn judge(&mut self, path: &[u8], one: Option<CheckedItem>, other: Option<CheckedItem>) -> Option<CheckFinding> {
        use CheckedState::{Failed, LeftOut, There, Unlisted};
        match (one.map(|item| item.told), other.map(|item| item.told)) {
            (Some(Failed(why) | Unlisted(why)), rest) => {
                let is_new = self.source.unread.insert(path.to_vec());
                if let Some(Failed(_) | Unlisted(_)) = rest {
                    self.destination.unread.insert(path.to_vec());
                }
                is_new.then_some(CheckFinding::Failed(why))
            }
            (_, Some(Failed(why) | Unlisted(why))) => {
                self.destination.unread.insert(path.to_vec()).then_some(CheckFinding::Failed(why))
            }
            (Some(There(one)), Some(There(other))) => {
                let mut differs = self.rules.differences(&one, &other);
                self.counts.untold += u64::from(!differs.kind && self.rules.is_untold(&one, &other));
                if self.rules.kept.hard_links && !differs.kind {
                    let links = self.links.pair(one.file, other.file);
                    self.counts.unlinked += u64::from(links.is_none());
                    differs.links = links.unwrap_or_default();
                }
                let both = Box::new([*one, *other]);
                Some(match differs == CheckDifferences::default() {
                    true => CheckFinding::Same(both),
                    false => CheckFinding::Differs(both, differs),
                })
            }
            (Some(There(facts)), None) if !self.destination.hides(path) => Some(CheckFinding::OnlySource(facts)),
            (None, Some(There(facts))) if !self.source.hides(path) => Some(CheckFinding::OnlyDestination(facts)),
            (None | Some(There(_) | LeftOut), None | Some(There(_) | LeftOut)) => None,
        }
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
