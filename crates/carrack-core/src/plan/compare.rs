//! Whether what stands at the destination is what the source has.

use crate::attributes::Time;
use crate::judgment::{ItemDifference, Judgment, LeftBecause};
use crate::report::ItemKind;
use crate::request::{Compare, Existing};

/// What of an item is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// What it is.
    pub kind: ItemKind,
    /// Bytes of a file.
    pub size: u64,
    /// When its content was last modified; `None` where there is no such time.
    pub mtime: Option<Time>,
}

/// By what two sides are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompareRules {
    /// What makes two files the same.
    pub compare: Compare,
    /// What happens to names that exist already, or do not.
    pub existing: Existing,
    /// Times that differ by no more, in nanoseconds, are one time.
    pub window_ns: u64,
}

impl CompareRules {
    /// What becomes of an item of the source, where `there` stands at its name.
    pub fn judge(&self, source: &State, there: Option<&State>) -> Judgment {
        let Some(there) = there else {
            let is_only = self.existing == Existing::Only;
            return if is_only { Judgment::Left(LeftBecause::Absent) } else { Judgment::New };
        };
        if self.existing == Existing::Keep {
            return Judgment::Left(LeftBecause::Exists);
        }
        let time = !self.is_one_time(source.mtime, there.mtime);
        let difference = ItemDifference { kind: source.kind != there.kind, size: source.size != there.size, time };
        if difference.kind {
            return Judgment::Differs(difference);
        }
        if self.existing == Existing::Older && time && there.mtime > source.mtime {
            return Judgment::Left(LeftBecause::Newer);
        }
        match self.compare {
            Compare::Nothing => Judgment::Differs(difference),
            _ if difference.size => Judgment::Differs(difference),
            Compare::Size => Judgment::Same,
            Compare::SizeAndTime if time => Judgment::Differs(difference),
            Compare::SizeAndTime => Judgment::Same,
            Compare::Content => Judgment::Undecided,
        }
    }

    /// As [`is_one_time`], within the window of these rules.
    pub fn is_one_time(&self, one: Option<Time>, other: Option<Time>) -> bool {
        is_one_time(one, other, self.window_ns)
    }
}

/// Nanoseconds of the steps that file systems count in: NTFS and SMB, those with microseconds, exFAT.
const STEPS_NS: [u32; 3] = [100, 1000, 10_000_000];
/// The last second that file systems have: ext4 with inodes of 128 bytes and XFS without `bigtime`, NFS, FAT, ext4,
/// XFS.
const LAST_SECONDS: [i64; 5] = [i32::MAX as i64, u32::MAX as i64, 4_354_819_199, 0x3_7fff_ffff, 16_299_260_424];
/// The first one, of the same that have any.
const FIRST_SECONDS: [i64; 2] = [i32::MIN as i64, 0];

/// Whether two times are one, at the precision that both sides have: whole seconds where either has no more; or they
/// differ by so many nanoseconds at most.
pub fn is_one_time(one: Option<Time>, other: Option<Time>, window_ns: u64) -> bool {
    // A side without times tells nothing, so the size has to be enough.
    let (Some(one), Some(other)) = (one, other) else { return true };
    let is_coarse = one.nanos == 0 || other.nanos == 0;
    let nanos = |time: Time| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
    one == other
        || (is_coarse && one.seconds == other.seconds)
        || (nanos(one) - nanos(other)).unsigned_abs() <= u128::from(window_ns)
        || is_kept_as(one, other)
        || is_kept_as(other, one)
}

/// Whether a file system that counts in longer steps, or to an earlier last second, keeps a time as the other one.
fn is_kept_as(time: Time, kept: Time) -> bool {
    let is_step = |step: u32| time.nanos - time.nanos % step == kept.nanos;
    if time.seconds == kept.seconds && STEPS_NS.into_iter().any(is_step) {
        return true;
    }
    let is_last = time.seconds > kept.seconds && LAST_SECONDS.contains(&kept.seconds);
    let is_first = time.seconds < kept.seconds && FIRST_SECONDS.contains(&kept.seconds);
    kept.nanos == 0 && (is_last || is_first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size: u64, seconds: i64, nanos: u32) -> State {
        State { kind: ItemKind::File, size, mtime: Some(Time::new(seconds, nanos)) }
    }

    fn rules(compare: Compare, existing: Existing) -> CompareRules {
        CompareRules { compare, existing, window_ns: 0 }
    }

    #[test]
    fn same_is_what_the_level_says() {
        use Compare::{Content, Nothing, Size, SizeAndTime};
        let (size, time, kind) = (
            Judgment::Differs(ItemDifference { size: true, ..ItemDifference::default() }),
            Judgment::Differs(ItemDifference { time: true, ..ItemDifference::default() }),
            Judgment::Differs(ItemDifference { kind: true, ..ItemDifference::default() }),
        );
        let source = file(7, 100, 5);
        let link = State { kind: ItemKind::Symlink, ..source };
        // What stands there, and what each level says of it.
        let cases = [
            (
                source,
                [Judgment::Differs(ItemDifference::default()), Judgment::Same, Judgment::Same, Judgment::Undecided],
            ),
            (file(8, 100, 5), [size, size, size, size]),
            (file(7, 101, 5), [time, Judgment::Same, time, Judgment::Undecided]),
            // Never *older than*: a file that was restored from a backup has an older time and another content.
            (file(7, 99, 5), [time, Judgment::Same, time, Judgment::Undecided]),
            (link, [kind, kind, kind, kind]),
        ];
        for (there, judgments) in cases {
            for (compare, judgment) in [Nothing, Size, SizeAndTime, Content].into_iter().zip(judgments) {
                assert_eq!(
                    rules(compare, Existing::Replace).judge(&source, Some(&there)),
                    judgment,
                    "{compare:?} {there:?}"
                );
                assert_eq!(rules(compare, Existing::Replace).judge(&source, None), Judgment::New);
            }
        }
    }

    #[test]
    fn names_that_exist_are_left_as_was_asked() {
        let source = file(7, 100, 0);
        let judge =
            |existing, there: Option<State>| rules(Compare::SizeAndTime, existing).judge(&source, there.as_ref());
        let left = |because| Judgment::Left(because);
        assert_eq!(judge(Existing::Keep, Some(file(1, 1, 0))), left(LeftBecause::Exists));
        assert_eq!(judge(Existing::Keep, None), Judgment::New);
        assert_eq!(judge(Existing::Only, None), left(LeftBecause::Absent));
        assert!(matches!(judge(Existing::Only, Some(file(1, 1, 0))), Judgment::Differs(_)));
        assert_eq!(judge(Existing::Older, Some(file(1, 101, 0))), left(LeftBecause::Newer));
        // Of equal time and another size it is replaced, as rsync does.
        assert!(matches!(judge(Existing::Older, Some(file(1, 100, 0))), Judgment::Differs(_)));
        assert!(matches!(judge(Existing::Older, Some(file(7, 99, 0))), Judgment::Differs(_)));
        assert_eq!(judge(Existing::Older, Some(file(7, 100, 0))), Judgment::Same);
    }

    #[test]
    fn times_are_compared_as_precisely_as_both_sides_can() {
        let time = |seconds, nanos| Some(Time::new(seconds, nanos));
        let is_one = |window_ns, one, other| {
            CompareRules { window_ns, ..rules(Compare::SizeAndTime, Existing::Replace) }.is_one_time(one, other)
        };
        assert!(is_one(0, time(5, 7), time(5, 7)) && !is_one(0, time(5, 7), time(5, 8)));
        // A side that has whole seconds only.
        assert!(is_one(0, time(5, 7), time(5, 0)) && is_one(0, time(5, 0), time(5, 999_999_999)));
        assert!(!is_one(0, time(5, 0), time(6, 0)) && !is_one(0, time(5, 999_999_999), time(6, 0)));
        // A window, in both directions and over the second's border.
        for (one, other) in [(time(5, 999_999_999), time(6, 1)), (time(7, 5), time(5, 5)), (time(-1, 5), time(1, 5))] {
            assert!(is_one(2_000_000_000, one, other) && is_one(2_000_000_000, other, one));
            assert!(!is_one(1, one, other));
        }
        // A side that counts in longer steps, and cuts off what is less; and one that ends earlier.
        for (nanos, step) in [(123_456_700, 100), (123_456_000, 1000), (120_000_000, 10_000_000)] {
            for fine in [nanos + 1, nanos + step - 1] {
                assert!(is_one(0, time(5, fine), time(5, nanos)) && is_one(0, time(5, nanos), time(5, fine)));
                assert!(!is_one(0, time(5, fine), time(6, nanos)));
            }
            assert!(
                !is_one(0, time(5, nanos + step), time(5, nanos)) && !is_one(0, time(5, nanos - 1), time(5, nanos))
            );
        }
        let last = time(i64::from(i32::MAX), 0);
        for far in [time(i64::from(i32::MAX) + 1, 0), time(1 << 40, 7)] {
            assert!(is_one(0, far, last) && is_one(0, last, far));
            assert!(!is_one(0, far, time(i64::from(i32::MAX), 1)) && !is_one(0, far, time(i64::from(i32::MAX) - 1, 0)));
        }
        assert!(
            !is_one(0, time(5, 0), last) && is_one(0, time(-7, 5), time(0, 0)) && !is_one(0, time(7, 5), time(0, 0))
        );
        assert!(is_one(0, None, time(5, 0)) && is_one(0, time(5, 0), None));
        let extremes = [time(i64::MIN, 0), time(i64::MAX, 999_999_999)];
        assert!(!is_one(u64::MAX, extremes[0], extremes[1]));
    }
}
