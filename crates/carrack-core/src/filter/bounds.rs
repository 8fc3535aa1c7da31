//! What of the files is taken, by size and by age.

use crate::attributes::Time;

/// Bounds of the files that are taken, each included. What lies outside is not copied and, because the source has it,
/// not deleted at the destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileBounds {
    /// The least size, in bytes.
    pub size_min: Option<u64>,
    /// The greatest size, in bytes.
    pub size_max: Option<u64>,
    /// The earliest modification time.
    pub modified_first: Option<Time>,
    /// The latest modification time.
    pub modified_last: Option<Time>,
}

impl FileBounds {
    /// Whether every file is taken.
    pub fn take_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a file is taken; `None` where it has to be known what is not.
    pub fn take(&self, size: Option<u64>, modified: Option<Time>) -> Option<bool> {
        fn within<T: Ord>(value: Option<T>, least: Option<T>, greatest: Option<T>) -> Option<bool> {
            if least.is_none() && greatest.is_none() {
                return Some(true);
            }
            let value = value?;
            let is_below = least.is_some_and(|least| value < least);
            Some(!is_below && greatest.is_none_or(|greatest| value <= greatest))
        }
        let has_size = within(size, self.size_min, self.size_max);
        let has_age = within(modified, self.modified_first, self.modified_last);
        match (has_size, has_age) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_within_all_bounds_are_taken_and_what_is_not_known_is_told() {
        let all = FileBounds::default();
        assert!(all.take_all() && all.take(None, None) == Some(true));
        let sizes = FileBounds { size_min: Some(2), size_max: Some(4), ..all };
        let takes = |size| sizes.take(Some(size), None);
        assert_eq!([1, 2, 4, 5].map(takes), [false, true, true, false].map(Some));
        assert_eq!(sizes.take(None, None), None);
        let (first, last) = (Some(Time::new(-5, 7)), Some(Time::new(9, 0)));
        let both = FileBounds { modified_first: first, modified_last: last, ..sizes };
        assert_eq!(both.take(Some(3), first), Some(true));
        assert_eq!(both.take(Some(3), Some(Time::new(-5, 6))), Some(false));
        assert_eq!(both.take(Some(3), Some(Time::new(9, 1))), Some(false));
        // What is not known does not matter where the rest decides.
        assert_eq!((both.take(Some(9), None), both.take(Some(3), None)), (Some(false), None));
    }
}
