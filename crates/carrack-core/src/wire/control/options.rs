//! What both ends of a transfer must agree on, in types that cannot be wrong. Each option stands here once: what it is,
//! its number in the message, and what it travels as.

use std::time::Duration;

use crate::attributes::{AttributesTold, KeptAttributes};
use crate::growing::{GrowingIdle, GrowingLock, GrowingSources};
use crate::limits;
use crate::mode_change::ModeChange;
use crate::plan::compare::CompareRules;
use crate::request::{
    Compare, CongestionControl, CopyOptions, Delta, Digests, Durability, Existing, InPlace, MainDigest, Renames, Verify,
};
use crate::wire::{ProtocolError, Version};

/// Defines the options, the message that they travel in, and both ways between the two.
macro_rules! options {
    ($($(#[$attribute:meta])* $field:ident: $type:ty = $kind:ident $tag:literal,)+) => {
        /// Options of a transfer, checked.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct TransferOptions {
            $($(#[$attribute])* pub $field: $type,)+
        }

        /// Options of a transfer, as they travel.
        #[derive(Clone, PartialEq, prost::Message)]
        pub struct RawOptions {
            $($(#[$attribute])* #[prost($kind, tag = $tag)] pub $field: <$type as Travels>::Raw,)+
        }

        impl From<TransferOptions> for RawOptions {
            fn from(options: TransferOptions) -> Self {
                Self { $($field: options.$field.raw(),)+ }
            }
        }

        /// Every value is checked.
        impl TryFrom<RawOptions> for TransferOptions {
            type Error = ProtocolError;

            fn try_from(raw: RawOptions) -> Result<Self, ProtocolError> {
                Self { $($field: checked(stringify!($field), raw.$field)?,)+ }.in_bounds()
            }
        }
    };
}

options! {
    /// Bytes of a block: a power of two within bounds.
    block_bytes: u32 = uint32 "1",
    /// The digests that both ends compute.
    digests: Digests = uint32 "2",
    /// How files are proved.
    verify: Verify = uint32 "3",
    /// What happens to names that exist.
    existing: Existing = uint32 "4",
    /// Bytes a second; none travels as 0.
    rate_limit: Option<u64> = uint64 "5",
    /// The sender's congestion control, by its kernel's name; none travels as an empty one.
    congestion: Option<CongestionControl> = string "6",
    /// Tell of every item.
    item_events: bool = bool "7",
    /// The protocol version that both ends speak.
    version: Version = uint32 "8",
    /// What has reached stable storage, and when.
    durability: Durability = uint32 "9",
    /// What becomes of a source that grows while it is copied.
    growing: GrowingSources = uint32 "10",
    /// What makes two files the same.
    compare: Compare = uint32 "11",
    /// Modification times that differ by no more, in nanoseconds, are one time.
    window_ns: u64 = uint64 "12",
    /// Everything is compared, and nothing is written.
    plan_only: bool = bool "13",
    /// The receiver is told every name that the source has, so that it finds what only the destination has.
    tells_names: bool = bool "14",
    /// What has been copied is deleted at its source.
    removes_sources: bool = bool "15",
    /// What only the receiver has is deleted before anything is sent.
    deletes_first: bool = bool "16",
    /// At the destination upper and lower case are one, as its end has said: the sender looks for names that would
    /// become one.
    folds_case: bool = bool "17",
    /// The receiver tells of every item that it makes, changes or deletes, or would.
    item_changes: bool = bool "18",
    /// Modification times are compared and not set.
    no_times: bool = bool "19",
    /// The receiver writes through links that lead to directories below its destination.
    keeps_links: bool = bool "20",
    /// Whether of a file that the receiver has in another state only what differs is sent.
    delta: Delta = uint32 "21",
    /// Both ends are in one process: the receiver may make a part file that shares its blocks with the source.
    shares: bool = bool "22",
    /// Which files that only the receiver has are believed to be renamed; it is told all names before anything is sent.
    renames: Renames = uint32 "31",
    /// Data streams are cut into pieces ([`crate::wire::piece`]), which may be compressed.
    compress: bool = bool "30",
    /// A file that is followed is whole when it has not grown for so long, in milliseconds.
    growing_idle_ms: u64 = uint64 "32",
    /// It is whole when the file with this name beside it goes; none travels as an empty one.
    growing_lock: Option<GrowingLock> = string "33",
    /// Which files are written over where they stand.
    in_place: InPlace = uint32 "34",
    /// What is kept beside permissions and times.
    kept: KeptAttributes = uint32 "35",
    /// Owners and groups are told and kept by their numbers, and not by their names.
    numeric_ids: bool = bool "36",
    /// How permissions are changed on the way ([`ModeChange::encode`]); none travels as an empty text.
    mode_change: Option<ModeChange> = string "37",
    /// A destination that was there gets owner, permissions and access control list of its source, too.
    top_attributes: bool = bool "38",
    /// The destination writes owners, special bits and devices down beside items ([`crate::attributes::faked`]).
    fake_super: bool = bool "39",
    /// What is written down so at the source counts as what its items are.
    from_fake_super: bool = bool "40",
    /// The sender tells the files in flight.
    items_in_flight: bool = bool "41",
}

impl TransferOptions {
    /// What both ends must agree on for a copy that is asked for so. `verify` is what the receiver does.
    pub fn of(options: &CopyOptions, verify: Verify, block_bytes: u32, version: Version) -> Self {
        Self {
            block_bytes,
            digests: options.digest,
            verify,
            existing: options.existing,
            rate_limit: options.rate_limit,
            congestion: options.congestion,
            item_events: options.item_events,
            version,
            durability: options.durability,
            growing: options.growing,
            growing_idle_ms: options.growing_idle.as_millis() as u64,
            growing_lock: options.growing_lock,
            compare: options.compare,
            window_ns: u64::try_from(options.modify_window.as_nanos()).unwrap_or(u64::MAX),
            plan_only: options.plans(),
            tells_names: options.delete.is_some(),
            deletes_first: options.delete.is_some() && options.delete_first,
            removes_sources: options.remove_sources && !options.plans(),
            folds_case: false,
            item_changes: options.item_changes,
            items_in_flight: options.items_in_flight,
            no_times: options.no_times,
            kept: options.kept,
            numeric_ids: options.numeric_ids,
            top_attributes: options.top_attributes,
            fake_super: options.fake_super,
            from_fake_super: options.from_fake_super,
            mode_change: options.mode_change,
            keeps_links: options.keep_directory_links,
            delta: options.delta,
            shares: false,
            renames: if options.delete.is_some() { options.renames } else { Renames::Never },
            in_place: options.in_place,
            compress: options.compress,
        }
    }

    /// By what the receiver compares, if it is asked what it has before anything is sent.
    pub fn rules(&self) -> Option<CompareRules> {
        let Self { compare, existing, window_ns, .. } = *self;
        let finds_renames = self.renames != Renames::Never;
        (self.skips() || finds_renames || self.plan_only).then_some(CompareRules { compare, existing, window_ns })
    }

    /// Whether the receiver is told every name before anything is sent.
    pub fn names_first(&self) -> bool {
        self.tells_names && (self.deletes_first || self.renames != Renames::Never)
    }

    /// Whether files may be read at both sides to be compared.
    pub fn reads_to_compare(&self) -> bool {
        self.compare == Compare::Content || self.renames != Renames::Never
    }

    /// Whether small files that have changed may be sent as [patches](crate::wire::patch) of what stands there: only
    /// where the whole is verified.
    pub fn patches(&self) -> bool {
        self.delta != Delta::Never && self.digests.main.is_some() && self.rules().is_some() && !self.plan_only
    }

    /// How the source tells owners and groups, and what else items have.
    pub fn attributes_told(&self) -> AttributesTold {
        let names = !self.numeric_ids && self.kept.are_any();
        let at_once = self.rules().is_some() || self.follows();
        AttributesTold { kept: self.kept, names, at_once, hides_names: false, faked: self.from_fake_super }
    }

    /// Whether files that grow are copied on as they grow.
    pub fn follows(&self) -> bool {
        self.growing == GrowingSources::Follow
    }

    /// Whether what the destination has may keep an item from being sent.
    pub fn skips(&self) -> bool {
        self.compare != Compare::Nothing || self.existing != Existing::Replace
    }

    fn in_bounds(self) -> Result<Self, ProtocolError> {
        let block = self.block_bytes;
        if !block.is_power_of_two() || !(limits::BLOCK_BYTES_MIN..=limits::BLOCK_BYTES_MAX).contains(&block) {
            return Err(ProtocolError::violation(format!("the peer asked for blocks of {block} bytes")));
        }
        let idle = Duration::from_millis(self.growing_idle_ms);
        if self.growing == GrowingSources::Follow && !(GrowingIdle::SHORTEST..=GrowingIdle::LONGEST).contains(&idle) {
            return Err(ProtocolError::violation(format!("the peer asked to follow files for {idle:?}")));
        }
        Ok(self)
    }
}

/// The most characters of a wrong value that a refusal shows.
const SHOWN: usize = 40;

/// A value of an option as it came.
///
/// # Errors
/// A violation that names the option and shows the value, where no honest peer says so.
pub(super) fn checked<V: Travels>(option: &str, raw: V::Raw) -> Result<V, ProtocolError> {
    let shown = raw.clone();
    V::checked(raw).ok_or_else(|| unknown(option, &shown))
}

/// Escaped: what a peer says drives no terminal.
fn unknown(option: &str, raw: &dyn std::fmt::Debug) -> ProtocolError {
    let shown: String = format!("{raw:?}").chars().take(SHOWN).collect();
    ProtocolError::violation(format!("the peer asked for a value of {option} that is unknown: {shown}"))
}

/// The value of an option as it travels.
pub trait Travels: Sized {
    /// What stands in the message.
    type Raw: Clone + std::fmt::Debug;

    /// As it travels.
    fn raw(self) -> Self::Raw;

    /// As it came; `None` where no honest peer says so.
    fn checked(raw: Self::Raw) -> Option<Self>;
}

/// What travels as it is.
macro_rules! plain {
    ($($type:ty),+) => {$(
        impl Travels for $type {
            type Raw = Self;

            fn raw(self) -> Self {
                self
            }

            fn checked(raw: Self) -> Option<Self> {
                Some(raw)
            }
        }
    )+};
}

impl Travels for KeptAttributes {
    type Raw = u32;

    fn raw(self) -> u32 {
        self.bits()
    }

    fn checked(raw: u32) -> Option<Self> {
        Self::from_bits(raw)
    }
}

/// What travels as its number.
macro_rules! numbered {
    ($($type:ty),+) => {$(
        impl Travels for $type {
            type Raw = u32;

            fn raw(self) -> u32 {
                self.number()
            }

            fn checked(raw: u32) -> Option<Self> {
                Self::from_number(raw)
            }
        }
    )+};
}

plain!(bool, u32, u64);
numbered!(Compare, Delta, GrowingSources, InPlace, Renames, Verify, Existing, Version, Durability);

impl Travels for Option<u64> {
    type Raw = u64;

    fn raw(self) -> u64 {
        self.unwrap_or(0)
    }

    fn checked(raw: u64) -> Option<Self> {
        Some((raw > 0).then_some(raw))
    }
}

impl Travels for Option<CongestionControl> {
    type Raw = String;

    fn raw(self) -> String {
        self.map(|congestion| congestion.name().to_owned()).unwrap_or_default()
    }

    fn checked(raw: String) -> Option<Self> {
        if raw.is_empty() { Some(None) } else { CongestionControl::new(&raw).map(Some) }
    }
}

impl Travels for Option<GrowingLock> {
    type Raw = String;

    fn raw(self) -> String {
        self.map(|lock| lock.text().to_owned()).unwrap_or_default()
    }

    fn checked(raw: String) -> Option<Self> {
        if raw.is_empty() { Some(None) } else { GrowingLock::parse(&raw).ok().map(Some) }
    }
}

impl Travels for Option<ModeChange> {
    type Raw = String;

    fn raw(self) -> String {
        self.map(ModeChange::encode).unwrap_or_default()
    }

    fn checked(raw: String) -> Option<Self> {
        if raw.is_empty() { Some(None) } else { ModeChange::decode(&raw).map(Some) }
    }
}

/// A bit for each: 1 BLAKE3, 2 XXH3-128, 4 Adler-32, 8 CRC-32C. What is verified, is verified by one.
impl Travels for Digests {
    type Raw = u32;

    fn raw(self) -> u32 {
        let main = match self.main {
            None => 0,
            Some(MainDigest::Blake3) => 1,
            Some(MainDigest::Xxh128) => 2,
        };
        main | u32::from(self.adler32) << 2 | u32::from(self.crc32c) << 3
    }

    fn checked(raw: u32) -> Option<Self> {
        let main = match raw & 3 {
            0 => None,
            1 => Some(MainDigest::Blake3),
            2 => Some(MainDigest::Xxh128),
            _ => return None,
        };
        (raw < 16).then_some(Self { main, adler32: raw & 4 != 0, crc32c: raw & 8 != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_bounds_are_refused() {
        let good = TransferOptions {
            block_bytes: 4 << 20,
            digests: Digests { crc32c: true, ..Digests::BLAKE3 },
            verify: Verify::Disk,
            existing: Existing::Older,
            rate_limit: Some(5),
            congestion: CongestionControl::new("bbr"),
            item_events: true,
            version: Version::NEWEST,
            durability: Durability::Each,
            growing: GrowingSources::Follow,
            growing_idle_ms: 5000,
            growing_lock: GrowingLock::parse(".*.lock").ok(),
            compare: Compare::SizeAndTime,
            window_ns: 7,
            plan_only: true,
            tells_names: true,
            deletes_first: true,
            removes_sources: true,
            folds_case: true,
            item_changes: true,
            items_in_flight: true,
            no_times: true,
            kept: KeptAttributes::ALL,
            mode_change: ModeChange::parse("D755,F644").ok(),
            numeric_ids: true,
            top_attributes: true,
            fake_super: true,
            from_fake_super: true,
            keeps_links: true,
            delta: Delta::Never,
            shares: true,
            renames: Renames::Quick,
            in_place: InPlace::Append,
            compress: true,
        };
        let message = RawOptions::from(good);
        assert_eq!(TransferOptions::try_from(message.clone()), Ok(good));
        for block_bytes in [0, 1, 4095, 1 << 30, u32::MAX] {
            assert!(TransferOptions::try_from(RawOptions { block_bytes, ..message.clone() }).is_err());
        }
        assert!(TransferOptions::try_from(RawOptions { verify: 4, ..message.clone() }).is_err());
        assert!(TransferOptions::try_from(RawOptions { durability: 3, ..message.clone() }).is_err());
        for congestion in ["sixteen_letters_", "a b", "\0", "../x"] {
            let congestion = congestion.to_string();
            assert!(TransferOptions::try_from(RawOptions { congestion, ..message.clone() }).is_err());
        }
        for version in [0, 2, 99] {
            assert!(TransferOptions::try_from(RawOptions { version, ..message.clone() }).is_err());
        }
        assert!(TransferOptions::try_from(RawOptions { delta: 3, ..message.clone() }).is_err());
        assert!(TransferOptions::try_from(RawOptions { in_place: 3, ..message.clone() }).is_err());
        assert!(TransferOptions::try_from(RawOptions { renames: 3, ..message.clone() }).is_err());
        for growing_idle_ms in [0, 99, 86_400_001, u64::MAX] {
            assert!(TransferOptions::try_from(RawOptions { growing_idle_ms, ..message.clone() }).is_err());
        }
        let growing_lock = "../lock".to_owned();
        assert!(TransferOptions::try_from(RawOptions { growing_lock, ..message.clone() }).is_err());
        assert!(TransferOptions::try_from(RawOptions { growing: 3, ..message.clone() }).is_err());
        assert!(TransferOptions::try_from(RawOptions { existing: 4, ..message.clone() }).is_err());
        assert!(TransferOptions::try_from(RawOptions { compare: 4, ..message.clone() }).is_err());
        assert!(TransferOptions::try_from(RawOptions { digests: 3, ..message.clone() }).is_err(), "two to verify by");
        assert!(TransferOptions::try_from(RawOptions { digests: 16, ..message }).is_err());
    }
}
