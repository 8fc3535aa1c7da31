//! One transfer, as two machines: [`sender::Sender`] and [`receiver::Receiver`].
//!
//! Both follow one contract, [`machine::Machine`], which has a table of their methods. The disk is a peer like the
//! network: opening, publishing and syncing are actions, and how they ended comes back as an input. So any interleaving
//! of two peers, their disks and the network can be driven by a test from one seed (`simulation`).
//!
//! # How an item travels
//!
//! A small file, a link or a directory goes into a **bundle**, sent unasked down whichever stream is free. The
//! receiver writes every item under a hidden name, tells that the bundle has *landed*, and publishes it with
//! others in one group (*done*).
//!
//! A larger file is **offered**; once accepted its **blocks** go down any stream. A block whose digest matches has
//! *landed*. When all have been read, the source is checked to be what it was, and *complete* names the file's size and
//! digest. The receiver compares with its own and only then publishes.
//!
//! What a lost or slow stream carried and has not landed is sent again on another. What the sender gives up meanwhile
//! (*abandon*), the receiver ends, so that both always agree on what became of an item: every offer gets one last word,
//! a refusal, a *keep* or a *done*.
//!
//! # What the destination has
//!
//! Where that was asked for, the receiver is told size and time of each file before anything of it is sent (*compare*),
//! and answers for each what becomes of it (*compared*). What is the same has ended. What is not goes on as if it had
//! been found only then. Where the receiver is to delete what only it has, it is also told all other names, and after
//! each directory whether these were all. When every item has ended it may *delete*, by what the command has ordered.
//!
//! # What an earlier attempt left
//!
//! What has landed is brought to stable storage now and then and written down in the **marker** (*checkpoint*). The
//! next attempt's receiver tells which blocks of an offered file are **held**; the sender reads them, sends nothing,
//! and *confirms* those that are what its source has. Only then have they landed. So a claim of what the source does
//! not have costs a block. Small items are asked about before they are bundled, and those **known** to be published end
//! at once: those whose source has the same
//! **fingerprint** as then, and whose file at the destination is the one that got the name then, untouched.
//!
//! # Names of one file
//!
//! Where hard links are kept, the first name of a file that the scan finds is sent like any other. Further names wait
//! until that one is there; then they travel in bundles, and the receiver makes hard links of them. Where it cannot, or
//! where the first name has failed or stays as it was, the next one is sent in its place.
//!
//! # What grows
//!
//! A file that just changed may be *followed*: it is offered without a size, its blocks are sent as they come to be
//! there, and *complete* names the size and the time that it had when it had rested for long enough.
//!
//! # What is lost
//!
//! A block that storage gives back otherwise than it was written is taken back and sent again; it must come as it was.
//! A sync that fails voids the whole part file, and the item comes *again*, as does one whose digest is wrong though
//! its blocks were right, and one whose source changed while it was read: a few times, then it has failed. Streams may
//! all be lost; others take their place.

pub mod directories;
pub mod machine;
pub mod marker;
pub mod ranges;
pub mod receiver;
pub mod sender;

mod hostile;
mod orders;
mod simulation;

use std::sync::Arc;
use std::time::Duration;

use crate::attributes::{Attributes, Time};
use crate::digest::FileDigests;
pub use crate::fingerprint::Fingerprint;
use crate::ids::{BundleId, ItemId};
use crate::judgment::Judgment;
use crate::mode_change::ModeChange;
use crate::report::ItemKind;
use crate::special::SpecialFile;

/// Blocks of one file that may be under way, beyond those that have landed: what each side's ledger of a file, and the
/// gaps in it, are proportional to. With the smallest blocks still 256 MiB, more than any path holds.
pub const BLOCKS_AHEAD: u64 = 4096;

/// Something that the scan found, or that the command line named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedItem {
    /// Which of the transfer's sources it belongs to.
    pub root: u32,
    /// Relative to that source; empty for the source itself.
    pub path: Vec<u8>,
    /// Whether it is a file, a link, a directory or something special.
    pub kind: ItemKind,
    /// What it is, of something special.
    pub special: Option<SpecialFile>,
    /// Bytes; `None` for a source that ends when it ends (a pipe, a file of `/proc`).
    pub size: Option<u64>,
    /// What it has beside its content.
    pub attributes: Attributes,
    /// Less is allocated than the size says: there are holes.
    pub sparse: bool,
    /// When content or attributes last changed, by the source's clock; `None` where there is no such time.
    pub changed: Option<Time>,
    /// Device and inode, where that tells it from another file that takes its name.
    pub file: Option<(u64, u64)>,
    /// How many names it has: more than one only where they are to be names of one file at the destination, too.
    pub names: u64,
    /// Names that it has at the destination already, where this one is to be another of them.
    pub other_names: Option<Arc<OtherNames>>,
    /// What a later session knows it by; `None` where nothing tells that it is still the same.
    pub fingerprint: Option<Fingerprint>,
    /// How it compares with what the destination has, once that is known.
    pub judgment: Option<Judgment>,
    /// What a link says, where it is compared before it is sent; else empty.
    pub leads_to: Vec<u8>,
    /// A file that has just changed, and is copied on as it grows.
    pub followed: bool,
    /// Digests of the [chunks](crate::wire::patch) of what the destination has in its place, where they are known.
    pub chunks: Option<Arc<[u32]>>,
}

impl ScannedItem {
    /// An item of which nothing is known but its path and kind.
    pub fn new(root: u32, path: Vec<u8>, kind: ItemKind) -> Self {
        Self {
            root,
            path,
            kind,
            special: None,
            size: None,
            attributes: Attributes::default(),
            sparse: false,
            changed: None,
            file: None,
            names: 1,
            other_names: None,
            fingerprint: None,
            judgment: None,
            leads_to: Vec::new(),
            followed: false,
            chunks: None,
        }
    }

    /// Permissions as they are to be at the destination. A symbolic link has none of its own.
    pub fn change_mode(&mut self, change: Option<ModeChange>) {
        let mode = &mut self.attributes.mode;
        match (change, self.kind) {
            (None, _) | (_, ItemKind::Symlink) => {}
            (Some(change), ItemKind::Directory) => *mode = change.of_directory(*mode),
            (Some(change), ItemKind::File | ItemKind::Special) => *mode = change.of_file(*mode),
        }
    }

    /// Whether it is a file whose content may have changed within so long before `now`, which its clock shows. What
    /// changes sets both times, so an old one of either says that it has not.
    pub fn has_just_changed(&self, now: Time, within: Duration) -> bool {
        let since = now.before(within);
        let is_recent = |time: Option<Time>| time.is_some_and(|time| time > since);
        let is_file = self.kind == ItemKind::File && self.size.is_some();
        is_file && is_recent(self.changed) && is_recent(self.attributes.mtime)
    }
}

/// Names at the destination of a file that is there whole, for whoever gets another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherNames {
    /// Relative to the destination, at least one, at most [`crate::limits::NAMES_OF_ONE`]. More than one where no
    /// further name could be made of the first.
    pub paths: Vec<Vec<u8>>,
    /// Bytes of a file.
    pub size: Option<u64>,
    /// In a dry run: what stands at them would become another file.
    pub anew: bool,
    /// What it holds, where that is known.
    pub digests: FileDigests,
    /// What its source was known by when it was found.
    pub fingerprint: Option<Fingerprint>,
    /// All of it was sent, or compared by what it holds.
    pub is_proven: bool,
}

/// Identifies a unit of sending and acknowledging.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// A block: item, and offset in bytes.
    Block(ItemId, u64),
    /// A bundle.
    Bundle(BundleId),
    /// A block that the receiver holds, read by the sender to be compared: item, and offset in bytes.
    Check(ItemId, u64),
}
