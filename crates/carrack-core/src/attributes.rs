//! What an item has beside its content: permissions, times, and attributes of further kinds.
//!
//! Permissions and the modification time are fields of their own: every item has them, and every version of the
//! protocol carries them. All else, such as an owner, extended attributes or access control lists, is an [`Attribute`]:
//! a kind with a number, and a value in the form that this kind prescribes. Of those that this version knows it keeps
//! some, where that is asked for ([`KeptAttributes`]). A source tells which of them an item has; the destination looks
//! at what the copy has got and reports what was not kept.

mod access;
mod extended;
pub mod faked;
mod kept;
pub mod nfs4;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::access::{AccessEntry, AccessLists, Who};
pub use self::extended::ExtendedAttributes;
pub use self::kept::{AttributesTold, KeptAttributes};
use crate::limits;

/// A moment by the clock of the host that names it, counted from the beginning of 1970 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Whole seconds, negative before 1970.
    pub seconds: i64,
    /// And nanoseconds, always forward; below [`Time::NANOS_PER_SECOND`] where the time has been checked.
    pub nanos: u32,
}

impl Time {
    /// Nanoseconds of one second.
    pub const NANOS_PER_SECOND: u32 = 1_000_000_000;

    /// From seconds since 1970 and nanoseconds beyond.
    pub const fn new(seconds: i64, nanos: u32) -> Self {
        Self { seconds, nanos }
    }

    /// Whether the nanoseconds are less than a second.
    pub const fn is_valid(self) -> bool {
        self.nanos < Self::NANOS_PER_SECOND
    }

    /// So long before; the beginning of all times where there is none.
    #[must_use]
    pub fn before(self, age: Duration) -> Self {
        let seconds = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
        let (nanos, borrowed) = match self.nanos.checked_sub(age.subsec_nanos()) {
            Some(nanos) => (nanos, 0),
            None => (self.nanos + Self::NANOS_PER_SECOND - age.subsec_nanos(), 1),
        };
        match self.seconds.checked_sub(seconds).and_then(|seconds| seconds.checked_sub(borrowed)) {
            Some(seconds) => Self::new(seconds, nanos),
            None => Self::new(i64::MIN, 0),
        }
    }
}

/// What an item has beside its content, and is to have at the destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits (07777).
    pub mode: u32,
    /// Modification time; `None` where the source has none.
    pub mtime: Option<Time>,
    /// Attributes of all other kinds.
    pub others: OtherAttributes,
}

impl Attributes {
    /// Of something that has a modification time.
    pub fn new(mode: u32, mtime: Time) -> Self {
        Self { mode, mtime: Some(mtime), others: OtherAttributes::default() }
    }
}

/// The number of a kind of attribute, which keeps its meaning for ever; 0 is no kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttributeKind(pub u16);

impl AttributeKind {
    /// The owner: its number, 4 bytes, the highest first; then its name, where that is told.
    pub const OWNER: Self = Self(1);
    /// The group: its number, as for the owner.
    pub const GROUP: Self = Self(2);
    /// Set-user-id, set-group-id and sticky bits, which the mode has as well: one byte, of the values 4, 2 and 1.
    pub const SPECIAL_BITS: Self = Self(3);
    /// A file has more names than this one. No bytes.
    pub const HARD_LINK: Self = Self(4);
    /// Access control lists: see [`AccessLists::attribute`]. No bytes: there is one that does not travel.
    pub const ACL: Self = Self(5);
    /// Capabilities of a program, as the kernel gives them. Without bytes as for an access control list.
    pub const CAPABILITIES: Self = Self(6);
    /// Extended attributes of other names: see [`ExtendedAttributes::attribute`]. Without bytes as for an access
    /// control list.
    pub const EXTENDED: Self = Self(7);
    /// The item is a symbolic link, and the destination has none. Never of an item itself: a destination counts it.
    pub const SYMBOLIC_LINK: Self = Self(8);
    /// The item is a directory, and the destination has none; as for a symbolic link.
    pub const DIRECTORY: Self = Self(9);
    /// The item is a FIFO, a socket or a device, and the destination may not make it; as for a symbolic link.
    pub const SPECIAL_FILE: Self = Self(10);
    /// When it was last read: seconds since 1970 (8 bytes) and nanoseconds (4 bytes), the highest first.
    pub const ACCESS_TIME: Self = Self(11);
    /// An access control list of NFS version 4, as its clients show it. Without bytes as for an access control list.
    pub const NFS4_ACL: Self = Self(12);
    /// Flags of an inode, as `chattr` sets them: it cannot be changed, only grows, or is not dumped. No bytes.
    pub const INODE_FLAGS: Self = Self(13);

    /// The name of a kind that this version knows, as programs read it.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::OWNER => "owner",
            Self::GROUP => "group",
            Self::SPECIAL_BITS => "special-bits",
            Self::HARD_LINK => "hard-link",
            Self::ACL => "acl",
            Self::CAPABILITIES => "capabilities",
            Self::EXTENDED => "extended-attributes",
            Self::SYMBOLIC_LINK => "symbolic-link",
            Self::DIRECTORY => "directory",
            Self::SPECIAL_FILE => "special-file",
            Self::ACCESS_TIME => "access-time",
            Self::NFS4_ACL => "nfs4-acl",
            Self::INODE_FLAGS => "inode-flags",
            _ => return None,
        })
    }
}

impl AttributeKind {
    /// Whether it says who may do what.
    pub fn is_access_list(self) -> bool {
        matches!(self, Self::ACL | Self::NFS4_ACL)
    }

    /// The kind of a name, or of a number in its place.
    pub fn named(name: &str) -> Option<Self> {
        let number = name.parse().ok().map(Self);
        (1..=13).map(Self).find(|kind| kind.name() == Some(name)).or(number)
    }
}

impl fmt::Display for AttributeKind {
    /// The name, or `kind` and the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "kind {}", self.0),
        }
    }
}

/// What a copy has of attributes that every file system shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyFacts {
    /// The number of the owner.
    pub owner: u32,
    /// The number of the group.
    pub group: u32,
    /// Permission bits (07777).
    pub mode: u32,
}

/// One attribute of an item: its kind and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The kind, which says what the bytes mean.
    pub kind: AttributeKind,
    /// The value, in the form that the kind prescribes.
    pub value: Box<[u8]>,
}

impl Attribute {
    /// An owner or a group.
    pub fn number(kind: AttributeKind, number: u32) -> Self {
        Self { kind, value: Box::new(number.to_be_bytes()) }
    }

    /// The same with a name, of at most so many bytes that any host has.
    pub fn named(kind: AttributeKind, number: u32, name: &[u8]) -> Self {
        Self { kind, value: [&number.to_be_bytes()[..], name].concat().into() }
    }

    /// The number and the name of an owner or a group, if it is one; without a name, an empty one.
    pub fn as_account(&self) -> Option<(u32, &[u8])> {
        let (number, name) = self.value.split_first_chunk()?;
        let is_account = matches!(self.kind, AttributeKind::OWNER | AttributeKind::GROUP);
        is_account.then_some((u32::from_be_bytes(*number), name))
    }

    /// The set-user-id, set-group-id and sticky bits of a mode.
    pub fn special_bits(mode: u32) -> Self {
        Self { kind: AttributeKind::SPECIAL_BITS, value: Box::new([(mode >> 9 & 0o7) as u8]) }
    }

    /// When an item was last read.
    pub fn access_time(time: Time) -> Self {
        let value = [&time.seconds.to_be_bytes()[..], &time.nanos.to_be_bytes()].concat();
        Self { kind: AttributeKind::ACCESS_TIME, value: value.into() }
    }

    /// Something that an item has and that does not travel. Costs no allocation.
    pub fn present(kind: AttributeKind) -> Self {
        Self { kind, value: Box::default() }
    }

    /// Whether a copy that has come out like this, and has these others, has it. Another host's value may be anything.
    fn is_kept(&self, copy: &CopyFacts, others: &OtherAttributes) -> bool {
        match self.kind {
            AttributeKind::OWNER => self.value[..] == copy.owner.to_be_bytes(),
            AttributeKind::GROUP => self.value[..] == copy.group.to_be_bytes(),
            AttributeKind::SPECIAL_BITS => {
                matches!(self.value[..], [bits] if u32::from(bits) & !(copy.mode >> 9) == 0)
            }
            AttributeKind::ACL | AttributeKind::CAPABILITIES | AttributeKind::NFS4_ACL => {
                self.travels() && others.all().contains(self)
            }
            // Whoever looks at the copy's other times looks at this one.
            AttributeKind::ACCESS_TIME => true,
            AttributeKind::EXTENDED => ExtendedAttributes::from_value(&self.value).is_some_and(|wanted| {
                let has_all = others.extended().is_some_and(|kept| kept.values == wanted.values);
                has_all && !wanted.has_others && !wanted.are_cut
            }),
            _ => false,
        }
    }

    /// Whether its value came with it.
    pub fn travels(&self) -> bool {
        !self.value.is_empty()
    }
}

/// What an item that is there lacks of what it is to have, of what nothing tells but its extended attributes. Something
/// that it has and is not to have counts as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lacks {
    /// An access control list.
    pub acl: bool,
    /// Capabilities.
    pub capabilities: bool,
    /// Extended attributes.
    pub xattrs: bool,
    /// No access control list can be there: what an item lacks of one, its permissions make up for.
    pub no_acls: bool,
}

impl Lacks {
    /// Nothing is known of it but that it is not as it is to be.
    pub const ALL: Self = Self { acl: true, capabilities: true, xattrs: true, no_acls: false };
    /// It can have no access control list.
    pub const NO_ACLS: Self = Self { acl: false, capabilities: false, xattrs: false, no_acls: true };

    /// Whether there is anything that could be given.
    pub fn any(self) -> bool {
        self.acl || self.capabilities || self.xattrs
    }
}

/// Attributes of one item, one of each kind at most, in the order of their kinds. Most items of a tree have the same:
/// a clone shares them. None of them costs no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherAttributes(Option<Arc<[Attribute]>>);

/// Why attributes are not those of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributesError {
    /// More than [`limits::ATTRIBUTES`] of them.
    TooMany,
    /// More than [`limits::ATTRIBUTE_BYTES`] of them, as they travel.
    TooLong,
    /// A kind is 0, comes twice, or comes after a greater one.
    Order,
}

impl OtherAttributes {
    /// Bytes that each takes beside its value: kind and length.
    pub const HEAD_BYTES: usize = 2 + 2;
    /// The number of no owner and no group.
    pub const NO_NUMBER: u32 = u32::MAX;

    /// Attributes in the order of their kinds.
    ///
    /// # Errors
    /// When one item cannot have them.
    pub fn new(list: Vec<Attribute>) -> Result<Self, AttributesError> {
        let checked = Self::of(list);
        if checked.all().len() > limits::ATTRIBUTES {
            return Err(AttributesError::TooMany);
        }
        if checked.encoded_bytes() > limits::ATTRIBUTE_BYTES {
            return Err(AttributesError::TooLong);
        }
        let is_ordered = checked.all().is_sorted_by(|one, next| one.kind < next.kind);
        let has_none = checked.all().first().is_some_and(|first| first.kind.0 == 0);
        if is_ordered && !has_none { Ok(checked) } else { Err(AttributesError::Order) }
    }

    fn of(list: Vec<Attribute>) -> Self {
        Self((!list.is_empty()).then(|| list.into()))
    }

    fn all(&self) -> &[Attribute] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// In the order of their kinds.
    pub fn iter(&self) -> impl Iterator<Item = &Attribute> {
        self.all().iter()
    }

    /// The number of the owner or of the group, where it is told. The greatest number stands for none.
    pub fn number(&self, kind: AttributeKind) -> Option<u32> {
        let told = self.iter().find(|attribute| attribute.kind == kind)?.as_account();
        told.map(|(number, _)| number).filter(|number| *number != Self::NO_NUMBER)
    }

    /// The set-user-id, set-group-id and sticky bits that are told, as bits of a mode.
    pub fn special_bits(&self) -> u32 {
        let told = self.iter().find(|attribute| attribute.kind == AttributeKind::SPECIAL_BITS);
        told.map_or(0, |bits| bits.value.first().map_or(0, |bits| u32::from(*bits) << 9 & 0o7000))
    }

    /// When the item was last read at its source, where that is told.
    pub fn access_time(&self) -> Option<Time> {
        let (seconds, nanos) = self.of_kind(AttributeKind::ACCESS_TIME)?.value.split_first_chunk()?;
        let time = Time::new(i64::from_be_bytes(*seconds), u32::from_be_bytes(nanos.try_into().ok()?));
        Some(time).filter(|time| time.is_valid())
    }

    /// Whether there is one of this kind.
    pub fn has(&self, kind: AttributeKind) -> bool {
        self.of_kind(kind).is_some()
    }

    /// The one of this kind.
    pub fn of_kind(&self, kind: AttributeKind) -> Option<&Attribute> {
        self.iter().find(|attribute| attribute.kind == kind)
    }

    /// The access control lists that came with the item: none where it has none. `None` where it has one that is not
    /// known here.
    pub fn access_lists(&self) -> Option<AccessLists> {
        match self.of_kind(AttributeKind::ACL) {
            None => Some(AccessLists::default()),
            Some(lists) => AccessLists::from_value(&lists.value),
        }
    }

    /// The extended attributes that came with the item; `None` as for access control lists.
    pub fn extended(&self) -> Option<ExtendedAttributes> {
        match self.of_kind(AttributeKind::EXTENDED) {
            None => Some(ExtendedAttributes::default()),
            Some(values) => ExtendedAttributes::from_value(&values.value),
        }
    }

    /// Those of the kinds that are kept, and what it takes to keep them.
    #[must_use]
    pub fn kept(&self, kept: KeptAttributes) -> Self {
        // Special bits are given with their owner and group alone.
        let owners = kept.owner || kept.group || kept.special_bits;
        let is_kept = |attribute: &&Attribute| match attribute.kind {
            AttributeKind::OWNER | AttributeKind::GROUP => owners,
            AttributeKind::ACL | AttributeKind::NFS4_ACL => kept.acls,
            AttributeKind::CAPABILITIES => kept.capabilities,
            AttributeKind::EXTENDED => kept.has_xattrs(),
            AttributeKind::ACCESS_TIME => kept.access_times,
            _ => false,
        };
        if self.iter().all(|one| is_kept(&one)) {
            return self.clone();
        }
        Self::of(self.iter().filter(is_kept).cloned().collect())
    }

    /// With the owner, the group, the special bits and the access control lists of something else in the place of its
    /// own.
    #[must_use]
    pub fn with_access_of(&self, other: &Self) -> Self {
        let lists = [AttributeKind::ACL, AttributeKind::NFS4_ACL];
        let kinds = [AttributeKind::OWNER, AttributeKind::GROUP, AttributeKind::SPECIAL_BITS, lists[0], lists[1]];
        let rest = self.iter().filter(|one| !kinds.contains(&one.kind));
        let access = other.iter().filter(|one| kinds.contains(&one.kind));
        let mut all: Vec<Attribute> = rest.chain(access).cloned().collect();
        all.sort_unstable_by_key(|one| one.kind);
        Self::of(all)
    }

    /// With other numbers for owners, groups and whom lists name; with `nameless` also for those without one.
    #[must_use]
    pub fn with_numbers(self, nameless: bool, number: impl Fn(AttributeKind, u32, &[u8]) -> u32) -> Self {
        let is_list = |attribute: &Attribute| attribute.kind == AttributeKind::ACL && attribute.travels();
        let is_asked = |(_, name): (u32, &[u8])| nameless || !name.is_empty();
        if !self.iter().any(|one| is_list(one) || one.as_account().is_some_and(is_asked)) {
            return self;
        }
        let entry = |AccessEntry { who, name, permissions }: AccessEntry| {
            let who = match who {
                Who::User(id) => Who::User(number(AttributeKind::OWNER, id, &name)),
                Who::GroupOf(id) => Who::GroupOf(number(AttributeKind::GROUP, id, &name)),
                who => who,
            };
            AccessEntry::new(who, permissions)
        };
        let listed = |list: Vec<AccessEntry>| list.into_iter().map(entry).collect();
        let one = |attribute: &Attribute| match (attribute.as_account(), is_list(attribute)) {
            (Some((id, name)), _) => Attribute::number(attribute.kind, number(attribute.kind, id, name)),
            (None, true) => AccessLists::from_value(&attribute.value).map_or_else(
                || Attribute::present(AttributeKind::ACL),
                |AccessLists { access, default }| {
                    AccessLists { access: listed(access), default: listed(default) }.in_order().attribute()
                },
            ),
            (None, false) => attribute.clone(),
        };
        Self::of(self.iter().map(one).collect())
    }

    /// What an item lacks that has these attributes and is to have those, of what is kept.
    pub fn lacks(&self, wanted: &Self, kept: KeptAttributes) -> Lacks {
        let differs = |kind| {
            let (now, wanted) = (self.of_kind(kind), wanted.of_kind(kind));
            // What is not known is left as it is.
            now != wanted && wanted.is_none_or(Attribute::travels)
        };
        Lacks {
            acl: kept.acls && (differs(AttributeKind::ACL) || differs(AttributeKind::NFS4_ACL)),
            capabilities: kept.capabilities && differs(AttributeKind::CAPABILITIES),
            xattrs: kept.has_xattrs() && self.lacks_values(wanted, kept),
            no_acls: false,
        }
    }

    /// The same, where extended attributes have their names alone.
    #[must_use]
    pub fn with_names_alone(&self) -> Self {
        let one = |attribute: &Attribute| {
            let is_extended = attribute.kind == AttributeKind::EXTENDED;
            let Some(mut extended) = is_extended.then(|| ExtendedAttributes::from_value(&attribute.value)).flatten()
            else {
                return attribute.clone();
            };
            extended.values.iter_mut().for_each(|(_, value)| value.clear());
            extended.attribute(limits::ATTRIBUTE_BYTES)
        };
        Self::of(self.iter().map(one).collect())
    }

    /// The same, where extended attributes of names and values do not travel.
    #[must_use]
    pub fn without_values(&self) -> Self {
        let one = |attribute: &Attribute| match attribute.kind {
            AttributeKind::EXTENDED => Attribute::present(attribute.kind),
            _ => attribute.clone(),
        };
        Self::of(self.iter().map(one).collect())
    }

    /// Those that the other item does not have with the same value.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self::of(self.iter().filter(|attribute| !other.all().contains(attribute)).cloned().collect())
    }

    fn lacks_values(&self, wanted: &Self, kept: KeptAttributes) -> bool {
        // What is not known is left as it is.
        let Some(ExtendedAttributes { mut values, are_cut, .. }) = wanted.extended() else { return false };
        values.retain(|(name, _)| ExtendedAttributes::is_kept(name, kept));
        let mut now = self.extended().unwrap_or_default().values;
        // A source without one says nothing of it.
        if !values.iter().any(|(name, _)| ExtendedAttributes::is_label(name)) {
            now.retain(|(name, _)| !ExtendedAttributes::is_label(name));
        }
        if are_cut { values.iter().any(|one| !now.contains(one)) } else { now != values }
    }

    /// The kinds of those that a copy does not have that has come out like this, and has these others.
    pub fn not_kept(&self, copy: &CopyFacts, others: &Self) -> impl Iterator<Item = AttributeKind> {
        self.iter().filter(move |attribute| !attribute.is_kept(copy, others)).map(|attribute| attribute.kind)
    }

    /// The kinds.
    pub fn kinds(&self) -> impl Iterator<Item = AttributeKind> {
        self.iter().map(|attribute| attribute.kind)
    }

    /// Bytes that they take where they travel; at most [`limits::ATTRIBUTE_BYTES`].
    pub fn encoded_bytes(&self) -> usize {
        self.iter().map(|attribute| Self::HEAD_BYTES + attribute.value.len()).sum()
    }
}

#[cfg(test)]
mod tests;
