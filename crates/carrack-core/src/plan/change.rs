//! What is done to an item, from what stands at its name and what it is to be.

use super::compare::{State, is_one_time};
use crate::attributes::{CopyFacts, Lacks};
use crate::report::{Differences, Done, ItemKind};
use crate::request::Compare;

/// By what it is told in what an item has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeRules {
    /// What makes two files the same.
    pub compare: Compare,
    /// Modification times are set.
    pub times: bool,
    /// Permissions are set.
    pub permissions: bool,
    /// Times that differ by no more, in nanoseconds, are one time.
    pub window_ns: u64,
}

/// An item, as it stands there or is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeState {
    /// What it is, its size and time.
    pub state: State,
    /// Owner, group and permission bits: those that it has, or is to have in the place of the other.
    pub facts: CopyFacts,
    /// What it lacks besides, of what it is to have.
    pub lacks: Lacks,
}

impl ChangeRules {
    /// What writing an item does, where `there` stands at its name; of a link, whether that says the same.
    pub fn written(&self, item: &ChangeState, there: Option<&ChangeState>, says_the_same: bool) -> Done {
        let Some(there) = there.filter(|there| there.state.kind == item.state.kind) else { return Done::Created };
        let content = match item.state.kind {
            ItemKind::Symlink => !says_the_same,
            _ => self.compare == Compare::Content,
        };
        let size = item.state.kind == ItemKind::File && item.state.size != there.state.size;
        let time_is_of_writing = !self.times;
        Done::Replaced(Differences { content, size, time_is_of_writing, ..self.attributes(item, there) })
    }

    /// What setting the attributes of an item does; `None` where it has them.
    pub fn set(&self, item: &ChangeState, there: &ChangeState) -> Option<Done> {
        Some(self.attributes(item, there)).filter(|differs| differs.any_attribute()).map(Done::Set)
    }

    fn attributes(&self, item: &ChangeState, there: &ChangeState) -> Differences {
        // The permissions of a link mean nothing.
        let permissions = self.permissions && item.state.kind != ItemKind::Symlink;
        Differences {
            time: self.times && !is_one_time(item.state.mtime, there.state.mtime, self.window_ns),
            permissions: permissions && (item.facts.mode ^ there.facts.mode) & 0o7777 != 0,
            owner: item.facts.owner != there.facts.owner,
            group: item.facts.group != there.facts.group,
            acl: there.lacks.acl,
            xattrs: there.lacks.xattrs || there.lacks.capabilities,
            ..Differences::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::Time;

    const RULES: ChangeRules =
        ChangeRules { compare: Compare::SizeAndTime, times: true, permissions: true, window_ns: 0 };

    fn item(kind: ItemKind, size: u64, seconds: i64, mode: u32) -> ChangeState {
        let facts = CopyFacts { owner: 1, group: 2, mode };
        let state = State { kind, size, mtime: Some(Time::new(seconds, 5)) };
        ChangeState { state, facts, lacks: Lacks::default() }
    }

    fn file(size: u64, seconds: i64, mode: u32) -> ChangeState {
        item(ItemKind::File, size, seconds, mode)
    }

    #[test]
    fn change_tells_what_was_done_and_in_what_it_differed() {
        let wanted = file(7, 100, 0o644);
        let replaced = |rules: ChangeRules, there| rules.written(&wanted, Some(&there), false);
        assert_eq!(RULES.written(&wanted, None, false), Done::Created);
        assert_eq!(replaced(RULES, item(ItemKind::Symlink, 0, 100, 0o777)), Done::Created, "another kind has gone");
        assert_eq!(replaced(RULES, wanted), Done::Replaced(Differences::default()));
        let size = Differences { size: true, ..Differences::default() };
        assert_eq!(replaced(RULES, file(8, 100, 0o100_644)), Done::Replaced(size));
        let both = Differences { time: true, permissions: true, ..Differences::default() };
        assert_eq!(replaced(RULES, file(7, 101, 0o600)), Done::Replaced(both));
        let content = Differences { content: true, ..Differences::default() };
        assert_eq!(replaced(ChangeRules { compare: Compare::Content, ..RULES }, wanted), Done::Replaced(content));
        // What is not set is not told as set.
        let unset = Differences { time_is_of_writing: true, ..Differences::default() };
        let none = ChangeRules { times: false, permissions: false, ..RULES };
        assert_eq!(replaced(none, file(7, 101, 0o600)), Done::Replaced(unset));
        assert_eq!(none.set(&wanted, &file(7, 101, 0o600)), None);
        assert_eq!(ChangeRules { window_ns: u64::MAX, ..RULES }.set(&wanted, &file(7, 101, 0o644)), None);
        assert_eq!(RULES.set(&wanted, &file(7, 101, 0o600)), Some(Done::Set(both)));
        assert_eq!(RULES.set(&wanted, &wanted), None);
        let mut others = wanted;
        (others.facts.owner, others.facts.mode) = (9, 0o4644);
        let owner = Differences { owner: true, permissions: true, ..Differences::default() };
        assert_eq!(RULES.set(&wanted, &others), Some(Done::Set(owner)));
        for (acl, capabilities, xattrs) in [(true, false, false), (false, true, false), (false, false, true)] {
            let lacks = Lacks { acl, capabilities, xattrs, no_acls: true };
            let lacking = ChangeState { lacks, ..wanted };
            let differs = Differences { acl, xattrs: xattrs || capabilities, ..Differences::default() };
            assert_eq!(RULES.set(&wanted, &lacking), Some(Done::Set(differs)));
        }
    }

    #[test]
    fn link_changes_by_what_it_says_and_its_time() {
        let (link, older) = (item(ItemKind::Symlink, 0, 100, 0o777), item(ItemKind::Symlink, 0, 99, 0o755));
        let content = Differences { content: true, ..Differences::default() };
        assert_eq!(RULES.written(&link, Some(&link), false), Done::Replaced(content));
        let time = Differences { time: true, ..Differences::default() };
        assert_eq!(RULES.written(&link, Some(&older), true), Done::Replaced(time));
        assert_eq!(RULES.set(&link, &older), Some(Done::Set(time)));
    }
}
