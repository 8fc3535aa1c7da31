//! What an item has beside its content: permissions, times, and attributes of further kinds.
//!
//! Permissions and the modification time are fields of their own: every item has them, and every version of the
//! protocol carries them. All else, such as an owner, extended attributes or access control lists, is an [`Attribute`]:
//! a kind with a number, and a value in the form that this kind prescribes. This version makes none and keeps none: it
//! carries them to the destination, which reports them as not kept.

use std::fmt;

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

impl fmt::Display for AttributeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One attribute of an item: its kind and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The kind, which says what the bytes mean.
    pub kind: AttributeKind,
    /// The value, in the form that the kind prescribes.
    pub value: Box<[u8]>,
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

    /// Those that the other item does not have with the same value.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(self.iter().filter(|attribute| !other.0.contains(attribute)).cloned().collect())
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
    fn attributes_of_one_item_are_bounded_in_number_and_bytes() {
        let most = limits::ATTRIBUTES as u16;
        assert!(OtherAttributes::new(of(&(1..=most).collect::<Vec<_>>())).is_ok());
        assert_eq!(OtherAttributes::new(of(&(1..=most + 1).collect::<Vec<_>>())), Err(AttributesError::TooMany));
        let long = |length: usize| vec![Attribute { kind: AttributeKind(1), value: vec![0; length].into() }];
        let most = limits::ATTRIBUTE_BYTES - OtherAttributes::HEAD_BYTES;
        assert_eq!(OtherAttributes::new(long(most)).map(|fits| fits.encoded_bytes()), Ok(limits::ATTRIBUTE_BYTES));
        assert_eq!(OtherAttributes::new(long(most + 1)), Err(AttributesError::TooLong));
    }
}
