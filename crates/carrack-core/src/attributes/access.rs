//! Access control lists of POSIX: who may do what with an item, beside its owner and group.

use super::{Attribute, AttributeKind};
use crate::limits::ACCOUNT_NAME_BYTES;

/// The access control lists of an item: its own, and, of a directory, the one that items made in it get. An item
/// without one has an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessLists {
    /// Who may do what.
    pub access: Vec<AccessEntry>,
    /// What is made in a directory gets this.
    pub default: Vec<AccessEntry>,
}

/// What some may do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccessEntry {
    /// Who.
    pub who: Who,
    /// The name of a user or a group, where that is told; else empty.
    pub name: Vec<u8>,
    /// Read (4), write (2) and execute (1).
    pub permissions: u8,
}

/// Whom an entry is about, in the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The owner.
    Owner,
    /// A user, by number.
    User(u32),
    /// The members of the owning group.
    Group,
    /// The members of a group, by number.
    GroupOf(u32),
    /// The most that the four kinds before may, but the owner.
    Mask,
    /// All others.
    Others,
}

impl Who {
    /// The number of its kind, as the kernel and the protocol have it.
    pub fn tag(self) -> u8 {
        match self {
            Self::Owner => 1,
            Self::User(_) => 2,
            Self::Group => 4,
            Self::GroupOf(_) => 8,
            Self::Mask => 16,
            Self::Others => 32,
        }
    }

    /// The number of a user or a group.
    pub fn id(self) -> Option<u32> {
        match self {
            Self::User(id) | Self::GroupOf(id) => Some(id),
            Self::Owner | Self::Group | Self::Mask | Self::Others => None,
        }
    }

    /// Of a kind and a number; `None` where there is no such kind.
    pub fn of(tag: u8, id: u32) -> Option<Self> {
        Some(match tag {
            1 => Self::Owner,
            2 => Self::User(id),
            4 => Self::Group,
            8 => Self::GroupOf(id),
            16 => Self::Mask,
            32 => Self::Others,
            _ => return None,
        })
    }
}

impl AccessEntry {
    /// Without a name.
    pub fn new(who: Who, permissions: u8) -> Self {
        Self { who, name: Vec::new(), permissions }
    }
}

impl AccessLists {
    /// Whether there is none.
    pub fn are_none(&self) -> bool {
        self.access.is_empty() && self.default.is_empty()
    }

    /// In the order of the entries. Of entries that are about the same only what all of them allow stays.
    #[must_use]
    pub fn in_order(self) -> Self {
        let order = |mut list: Vec<AccessEntry>| {
            list.sort_unstable();
            list.dedup_by(|next, first| {
                let is_one = next.who == first.who;
                first.permissions &= if is_one { next.permissions } else { first.permissions };
                is_one
            });
            list
        };
        Self { access: order(self.access), default: order(self.default) }
    }

    /// As an attribute of an item. Each list is the number of its entries (2 bytes), and of each its kind, its
    /// permissions (a byte each), a number (4 bytes; 0 where there is none), the length of a name (a byte), the name.
    pub fn attribute(&self) -> Attribute {
        let mut value = Vec::new();
        for list in [&self.access, &self.default] {
            value.extend_from_slice(&(list.len() as u16).to_be_bytes());
            for AccessEntry { who, name, permissions } in list {
                let name = &name[..name.len().min(ACCOUNT_NAME_BYTES)];
                value.extend_from_slice(&[who.tag(), *permissions]);
                value.extend_from_slice(&who.id().unwrap_or(0).to_be_bytes());
                value.push(name.len() as u8);
                value.extend_from_slice(name);
            }
        }
        Attribute { kind: AttributeKind::ACL, value: value.into() }
    }

    /// From the value of such an attribute; `None` where it is not in this form.
    pub fn from_value(value: &[u8]) -> Option<Self> {
        let mut rest = value;
        let (access, default) = (list(&mut rest)?, list(&mut rest)?);
        rest.is_empty().then_some(Self { access, default })
    }

    /// The permission bits that let nobody do more than the list of an item with these permissions, where that cannot
    /// be set: what anybody whom it names may not is taken from all who would have it by the bits.
    pub fn narrowed(&self, mode: u32) -> u32 {
        let of = |wanted: fn(&Who) -> bool| {
            self.access.iter().filter(move |entry| wanted(&entry.who)).map(|entry| u32::from(entry.permissions))
        };
        if self.access.is_empty() {
            return mode;
        }
        let all = |list: &mut dyn Iterator<Item = u32>| list.fold(0o7, |all, one| all & one);
        let mask = all(&mut of(|who| *who == Who::Mask));
        let users = all(&mut of(|who| matches!(who, Who::User(_))));
        let groups = all(&mut of(|who| matches!(who, Who::GroupOf(_))));
        let own_group = all(&mut of(|who| *who == Who::Group));
        let group = own_group & mask & users;
        let others = users & groups & if self.names_any() { mask } else { 0o7 };
        mode & !0o077 | (mode >> 3 & group) << 3 | mode & others
    }

    fn names_any(&self) -> bool {
        self.access.iter().any(|entry| entry.who.id().is_some())
    }
}

fn list(rest: &mut &[u8]) -> Option<Vec<AccessEntry>> {
    let (count, after) = rest.split_first_chunk()?;
    *rest = after;
    let mut list = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let ([tag, permissions], after) = rest.split_first_chunk()?;
        let (id, after) = after.split_first_chunk()?;
        let (length, after) = after.split_first()?;
        let (name, after) = after.split_at_checked(usize::from(*length))?;
        let who = Who::of(*tag, u32::from_be_bytes(*id)).filter(|_| *permissions <= 0o7)?;
        list.push(AccessEntry { who, name: name.to_vec(), permissions: *permissions });
        *rest = after;
    }
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(who: Who, permissions: u8) -> AccessEntry {
        AccessEntry::new(who, permissions)
    }

    fn lists() -> AccessLists {
        let named = AccessEntry { name: b"ann".to_vec(), ..entry(Who::User(1000), 6) };
        let access = vec![
            entry(Who::Owner, 7),
            named,
            entry(Who::Group, 5),
            entry(Who::GroupOf(u32::MAX), 0),
            entry(Who::Mask, 7),
            entry(Who::Others, 4),
        ];
        AccessLists { access, default: vec![entry(Who::Owner, 7), entry(Who::Group, 5), entry(Who::Others, 0)] }
    }

    #[test]
    fn lists_come_back_and_what_is_cut_or_changed_is_none() {
        let value = lists().attribute().value;
        assert_eq!(AccessLists::from_value(&value), Some(lists()));
        for end in 0..value.len() {
            assert_eq!(AccessLists::from_value(&value[..end]), None, "{end}");
        }
        assert_eq!(AccessLists::from_value(&[&value[..], &[0]].concat()), None);
        for (kind, permissions) in [(0, 7), (3, 7), (64, 7), (1, 8)] {
            let value = [0, 1, kind, permissions, 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(AccessLists::from_value(&value), None, "{kind} {permissions}");
        }
        assert_eq!(AccessLists::from_value(&[0; 4]), Some(AccessLists::default()));
    }

    #[test]
    fn order_is_that_of_kinds_and_numbers_and_of_two_entries_the_narrower_counts() {
        let access = vec![
            entry(Who::Others, 4),
            entry(Who::User(9), 6),
            entry(Who::Owner, 7),
            entry(Who::User(7), 4),
            entry(Who::User(9), 5),
        ];
        let expected = [entry(Who::Owner, 7), entry(Who::User(7), 4), entry(Who::User(9), 4), entry(Who::Others, 4)];
        assert_eq!(AccessLists { access, default: Vec::new() }.in_order().access, expected);
    }

    #[test]
    fn bits_without_the_list_let_nobody_do_more() {
        let narrowed = |entries: &[(Who, u8)], mode| {
            let access = entries.iter().map(|(who, permissions)| entry(*who, *permissions)).collect();
            AccessLists { access, default: Vec::new() }.narrowed(mode)
        };
        assert_eq!(narrowed(&[], 0o644), 0o644);
        // The group's bits were the mask.
        let (owner, mask) = ((Who::Owner, 6), (Who::Mask, 6));
        let more = [owner, (Who::User(7), 6), (Who::Group, 4), mask, (Who::Others, 4)];
        assert_eq!(narrowed(&more, 0o664), 0o644);
        let denied = [owner, (Who::User(7), 0), (Who::Group, 4), mask, (Who::Others, 4)];
        assert_eq!(narrowed(&denied, 0o4664), 0o4600);
        let group_denied = [owner, (Who::Group, 4), (Who::GroupOf(7), 0), mask, (Who::Others, 4)];
        assert_eq!(narrowed(&group_denied, 0o664), 0o640);
        // Of named users a mask takes what others have.
        let masked = [owner, (Who::User(7), 7), (Who::Group, 7), (Who::Mask, 0), (Who::Others, 4)];
        assert_eq!(narrowed(&masked, 0o604), 0o600);
        let nobody_named = [owner, (Who::Group, 7), (Who::Mask, 0), (Who::Others, 4)];
        assert_eq!(narrowed(&nobody_named, 0o604), 0o604);
    }
}
