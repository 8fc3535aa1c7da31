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
                self.travels() && others.0.contains(self)
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

/// Attributes of one item, one of each kind at most, in the order of their kinds. None of them costs no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherAttributes(Box<[Attribute]>);

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
        let checked = Self(list.into_boxed_slice());
        if checked.0.len() > limits::ATTRIBUTES {
            return Err(AttributesError::TooMany);
        }
        if checked.encoded_bytes() > limits::ATTRIBUTE_BYTES {
            return Err(AttributesError::TooLong);
        }
        let is_ordered = checked.0.is_sorted_by(|one, next| one.kind < next.kind);
        let has_none = checked.0.first().is_some_and(|first| first.kind.0 == 0);
        if is_ordered && !has_none { Ok(checked) } else { Err(AttributesError::Order) }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In the order of their kinds.
    pub fn iter(&self) -> impl Iterator<Item = &Attribute> {
        self.0.iter()
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
        Self(self.iter().filter(is_kept).cloned().collect())
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
        Self(all.into_boxed_slice())
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
        Self(self.0.iter().map(one).collect())
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
        Self(self.iter().map(one).collect())
    }

    /// The same, where extended attributes of names and values do not travel.
    #[must_use]
    pub fn without_values(&self) -> Self {
        let one = |attribute: &Attribute| match attribute.kind {
            AttributeKind::EXTENDED => Attribute::present(attribute.kind),
            _ => attribute.clone(),
        };
        Self(self.iter().map(one).collect())
    }

    /// Those that the other item does not have with the same value.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(self.iter().filter(|attribute| !other.0.contains(attribute)).cloned().collect())
    }

    fn lacks_values(&self, wanted: &Self, kept: KeptAttributes) -> bool {
        // What is not known is left as it is.
        let Some(ExtendedAttributes { mut values, are_cut, .. }) = wanted.extended() else { return false };
        values.retain(|(name, _)| ExtendedAttributes::is_kept(name, kept));
        let now = self.extended().unwrap_or_default().values;
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
        self.0.iter().map(|attribute| Self::HEAD_BYTES + attribute.value.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kinds: &[u16]) -> Vec<Attribute> {
        kinds.iter().map(|&kind| Attribute { kind: AttributeKind(kind), value: Box::from(&b"v"[..]) }).collect()
    }

    #[test]
    fn attributes_of_one_item_have_each_kind_once_and_in_order() {
        for kinds in [&[][..], &[1], &[1, 2, u16::MAX]] {
            assert!(OtherAttributes::new(of(kinds)).is_ok(), "{kinds:?}");
        }
        for kinds in [&[0][..], &[0, 1], &[1, 1], &[2, 1], &[1, 2, 2]] {
            assert_eq!(OtherAttributes::new(of(kinds)), Err(AttributesError::Order), "{kinds:?}");
        }
    }

    #[test]
    fn attributes_without_others_are_those_that_are_missing_or_differ() {
        let one = OtherAttributes::new(of(&[1, 2, 3])).unwrap();
        let mut changed = of(&[2, 3, 4]);
        changed[1].value = Box::from(&b"w"[..]);
        let left = one.without(&OtherAttributes::new(changed).unwrap());
        assert_eq!(left, OtherAttributes::new(of(&[1, 3])).unwrap());
        assert!(one.without(&one).is_empty());
    }

    #[test]
    fn attributes_that_a_copy_shows_are_kept_and_all_others_are_not() {
        let of = |list| OtherAttributes::new(list).unwrap();
        let full = of(vec![
            Attribute::number(AttributeKind::OWNER, 1000),
            Attribute::number(AttributeKind::GROUP, 100),
            Attribute::special_bits(0o6755),
            Attribute::present(AttributeKind::HARD_LINK),
            Attribute::present(AttributeKind::ACL),
        ]);
        let none = OtherAttributes::default();
        let unkept =
            |owner, group, mode| full.not_kept(&CopyFacts { owner, group, mode }, &none).map(|kind| kind.0).collect();
        let (all, all_but_shown): (Vec<u16>, Vec<u16>) = (unkept(0, 0, 0o755), unkept(1000, 100, 0o7755));
        assert_eq!((all, all_but_shown), (vec![1, 2, 3, 4, 5], vec![4, 5]));
        // One of two bits is not both; an owner's number is no group's.
        let some: [Vec<u16>; 2] = [unkept(1000, 100, 0o4755), unkept(100, 1000, 0o6755)];
        assert_eq!(some, [vec![3, 4, 5], vec![1, 2, 4, 5]]);
    }

    #[test]
    fn values_of_no_known_form_are_not_kept() {
        let shown = CopyFacts { owner: 0, group: 0, mode: 0o7777 };
        for kind in 1..=7 {
            for value in [&[][..], &[0], &[0; 3], &[0; 5], &[0xff; 4]] {
                let one = vec![Attribute { kind: AttributeKind(kind), value: Box::from(value) }];
                let unkept = OtherAttributes::new(one).unwrap().not_kept(&shown, &OtherAttributes::default()).count();
                // A copy with all special bits has the ones that a byte of 0 names; one without extended attributes has
                // all of none.
                let is_kept = matches!(kind, 3 | 7) && value == [0];
                assert_eq!(unkept == 0, is_kept, "{kind} {value:?}");
            }
        }
    }

    fn listed(lists: Option<AccessLists>, values: &[(&str, &str)], are_cut: bool) -> OtherAttributes {
        let values = values.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
        let values = ExtendedAttributes { values, has_others: false, are_cut };
        let values = (!values.are_none()).then(|| values.attribute(1000));
        OtherAttributes::new(lists.map(|lists| lists.attribute()).into_iter().chain(values).collect()).unwrap()
    }

    fn of_user(id: u32, name: &str) -> AccessLists {
        let named = AccessEntry { name: name.into(), ..AccessEntry::new(Who::User(id), 6) };
        AccessLists { access: vec![AccessEntry::new(Who::Owner, 7), named], default: Vec::new() }
    }

    #[test]
    fn lists_and_values_are_kept_where_the_copy_has_the_same() {
        let shown = CopyFacts { owner: 0, group: 0, mode: 0 };
        let wanted = listed(Some(of_user(7, "")), &[("user.a", "1")], false);
        let unkept = |wanted: &OtherAttributes, has: &OtherAttributes| -> Vec<u16> {
            wanted.not_kept(&shown, has).map(|kind| kind.0).collect()
        };
        assert!(unkept(&wanted, &wanted).is_empty());
        assert_eq!(unkept(&wanted, &OtherAttributes::default()), [5, 7]);
        assert_eq!(unkept(&wanted, &listed(Some(of_user(8, "")), &[("user.a", "1")], true)), [5]);
        // Others of the item that came with nothing are not kept.
        let cut = listed(None, &[("user.a", "1")], true);
        assert_eq!(unkept(&cut, &cut), [7]);
    }

    #[test]
    fn item_lacks_what_differs_of_what_is_kept_and_is_known() {
        let all = KeptAttributes::ALL;
        let (none, some) = (OtherAttributes::default(), listed(Some(of_user(7, "")), &[("user.a", "1")], false));
        let both = Lacks { capabilities: false, ..Lacks::ALL };
        assert_eq!((none.lacks(&some, all), some.lacks(&none, all)), (both, both));
        assert!(!some.lacks(&some, all).any() && !none.lacks(&some, KeptAttributes::NONE).any());
        let other = listed(Some(of_user(7, "")), &[("user.a", "2")], false);
        assert_eq!(other.lacks(&some, all), Lacks { xattrs: true, ..Lacks::default() });
        let unknown = [AttributeKind::ACL, AttributeKind::CAPABILITIES, AttributeKind::EXTENDED];
        let unknown = OtherAttributes::new(unknown.map(Attribute::present).to_vec()).unwrap();
        assert!(!some.lacks(&unknown, all).any());
        // Of what is not all known only what is known counts.
        let more = listed(Some(of_user(7, "")), &[("user.a", "1"), ("user.b", "2")], false);
        let cut = listed(Some(of_user(7, "")), &[("user.a", "1")], true);
        assert!(!more.lacks(&cut, all).any() && more.lacks(&some, all).any() && none.lacks(&cut, all).xattrs);
        // What is not kept here is not missed.
        let root = listed(None, &[("trusted.a", "1")], false);
        let users = KeptAttributes { trusted_xattrs: false, ..all };
        assert!(none.lacks(&root, all).xattrs && !none.lacks(&root, users).any());
    }

    #[test]
    fn numbers_of_lists_become_those_of_this_host_and_come_in_order() {
        let here = |lists: AccessLists| {
            let told = listed(Some(lists), &[], false);
            told.with_numbers(false, |_, id, name| if name == b"ann" { 1 } else { id }).access_lists().unwrap().access
        };
        assert_eq!(here(of_user(7, "ann")), of_user(1, "").access);
        assert_eq!(here(of_user(7, "")), of_user(7, "").access);
        let garbled = vec![Attribute { kind: AttributeKind::ACL, value: Box::new([1]) }];
        let garbled = OtherAttributes::new(garbled).unwrap().with_numbers(false, |_, id, _| id);
        assert_eq!(garbled.of_kind(AttributeKind::ACL), Some(&Attribute::present(AttributeKind::ACL)));
    }

    #[test]
    fn attributes_of_one_item_are_bounded_in_number_and_bytes() {
        let most = limits::ATTRIBUTES as u16;
        assert!(OtherAttributes::new(of(&(1..=most).collect::<Vec<_>>())).is_ok());
        assert_eq!(OtherAttributes::new(of(&(1..=most + 1).collect::<Vec<_>>())), Err(AttributesError::TooMany));
        let long = |length: usize| vec![Attribute { kind: AttributeKind(1), value: vec![0; length].into() }];
        let most = limits::ATTRIBUTE_BYTES - OtherAttributes::HEAD_BYTES;
        assert_eq!(OtherAttributes::new(long(most)).map(|fits| fits.encoded_bytes()), Ok(limits::ATTRIBUTE_BYTES));
        assert_eq!(OtherAttributes::new(long(most + 1)), Err(AttributesError::TooLong));
    }

    #[test]
    fn owners_are_told_by_number_and_name() {
        let told = |attribute: Attribute| OtherAttributes::new(vec![attribute]).unwrap();
        let named = told(Attribute::named(AttributeKind::OWNER, 1000, b"ann"));
        assert_eq!((named.number(AttributeKind::OWNER), named.number(AttributeKind::GROUP)), (Some(1000), None));
        let here = named.clone().with_numbers(false, |kind, id, name| {
            assert_eq!((kind, id, name), (AttributeKind::OWNER, 1000, &b"ann"[..]));
            7
        });
        assert_eq!(here, told(Attribute::number(AttributeKind::OWNER, 7)));
        assert_eq!(here.clone().with_numbers(false, |_, _, _| panic!("it has no name")), here);
        let nameless = here.clone().with_numbers(true, |_, id, name| id + u32::from(name.is_empty()));
        assert_eq!(nameless, told(Attribute::number(AttributeKind::OWNER, 8)));
        let short = told(Attribute { kind: AttributeKind::OWNER, value: Box::from(&b"abc"[..]) });
        assert_eq!((short.number(AttributeKind::OWNER), short.clone().with_numbers(false, |_, _, _| 1)), (None, short));
        let strange = told(Attribute { kind: AttributeKind(99), value: Box::from(&b"longer"[..]) });
        assert_eq!(strange.clone().with_numbers(false, |_, _, _| 1), strange);
        let kept = KeptAttributes { owner: true, ..KeptAttributes::default() };
        assert_eq!((named.kept(kept), strange.kept(kept)), (named.clone(), OtherAttributes::default()));
        assert!(named.kept(KeptAttributes::default()).is_empty());
    }

    #[test]
    fn times_before_others() {
        let age = |seconds, nanos| Duration::new(seconds, nanos);
        assert_eq!(Time::new(10, 5).before(age(3, 5)), Time::new(7, 0));
        assert_eq!(Time::new(10, 5).before(age(3, 6)), Time::new(6, 999_999_999));
        assert_eq!(Time::new(0, 0).before(age(1, 1)), Time::new(-2, 999_999_999));
        assert_eq!(Time::new(i64::MIN, 0).before(age(0, 1)), Time::new(i64::MIN, 0));
        assert_eq!(Time::new(-9, 0).before(Duration::MAX), Time::new(i64::MIN, 0));
    }
}
