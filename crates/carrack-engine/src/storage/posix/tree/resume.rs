//! Taking up the part file of an earlier session: whose it is, and which of its blocks are believed.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use carrack_core::attributes::Time;
use carrack_core::digest::{BlockDigest, block_count, block_length};
use carrack_core::path::split_name;
use carrack_core::request::Digests;
use carrack_core::transfer::marker;
use carrack_core::transfer::marker::Left;
use carrack_sys::dir::{Dir, Kind, Stat, stat_file, stat_file_uncached};
use carrack_sys::{file, host};

use super::{OpenedPart, Tree};
use crate::storage::posix::descriptors::patiently;
use crate::storage::posix::marker::Journal;
use crate::storage::posix::names::{PartName, tag_of, unnamed_in};
use crate::storage::posix::part::{PartClaims, PartFile, Touched};
use crate::storage::posix::times::system_time;
use crate::storage::properties::WriteOptions;
use crate::storage::write::NewFile;

impl Tree {
    /// The part file that an earlier session left, if it is of a source of the same size in the same blocks. Whether
    /// that source has changed since does not matter: the sender compares each block with what it has now. Whether
    /// the part file has, does.
    pub(super) fn resume(
        &self,
        journal: &Journal,
        left: &Left,
        offer: &NewFile<'_>,
        options: &WriteOptions,
    ) -> Option<OpenedPart> {
        let part = &left.part;
        // Without digests nothing can be compared.
        if offer.size != Some(part.size) || part.block_bytes != options.block_bytes || options.digests.main.is_none() {
            return None;
        }
        let (parent, _) = split_name(offer.path);
        let directory = self.shared.directories.find(parent)?;
        let opened = patiently(|| directory.dir.open_existing(&part.part_name)).ok()?;
        // Tells whoever collects leftovers that somebody is here. What another holds may change or go: the file
        // starts over under a new number.
        if !lock_patiently(&opened) {
            return None;
        }
        let stat = stat_file_uncached(&opened).ok()?;
        // A marker is only bytes: whoever has made it does not get what comes put into a file of theirs.
        let is_part = tag_of(&part.part_name) == Some(journal.tag()) && is_made_by_us(&directory.dir, stat.uid);
        if stat.kind != Kind::File || stat.links != 1 || !is_part || stat.size > part.size {
            return None;
        }
        let untouched = left.identity.is_some() && left.identity == directory.file_system.ground.identity(&stat);
        let (held, doubtful) = believed((journal.damaged(), untouched), left, &opened, &stat, options.digests);
        if held.is_empty() && doubtful.is_empty() {
            return None;
        }
        // The earlier session may have been cut off when it had its permissions already: they are not for what comes.
        if stat.mode & 0o7777 != 0o600 {
            file::set_mode(&opened, 0o600).ok()?;
        }
        if stat.size < part.size {
            opened.set_len(part.size).ok()?;
        }
        if offer.attributes.mtime.is_none() {
            // It gets no other, and that of a part file that was left is no file's time.
            file::set_times(&opened, system_time(Time::new(host::clock_seconds(), 0))).ok()?;
        }
        let mut number = part.number;
        if part.digests != options.digests {
            number = journal.next_part();
            journal.retaken(part.number, marker::PartRecord { number, digests: options.digests, ..part.clone() });
        }
        let name = PartName::taken_up(part.part_name.clone());
        let taken_up = self.part_file(opened, name, (offer, part.size), options, Touched::Any);
        let blocks = AtomicU64::new((held.len() + doubtful.len()) as u64);
        let held_at = |index: &u64| held.binary_search_by_key(index, |block| block.0).is_ok();
        // Whatever else is claimed every later session doubts anyway.
        let doubted = |claim: &marker::Claim| claim.sure && part.digests == options.digests && !held_at(&claim.index);
        let unproven = left.claims().into_iter().filter(doubted).map(|claim| claim.index).collect();
        let claims = PartClaims { blocks, unproven: Mutex::new(unproven) };
        let part = PartFile { number: Some(number), claims, ..taken_up };
        let (file, standing) = self.standing_file(offer, options).unzip();
        let (part, standing) = (PartFile { standing: Mutex::new(file), ..part }, standing.unwrap_or(0..0));
        Some(OpenedPart::Resumed { part, held, doubtful, standing })
    }
}

/// Whether what this user makes in a directory belongs to this number. Some file systems give all files one owner.
fn is_made_by_us(directory: &Dir, owner: u32) -> bool {
    let made = || unnamed_in(directory).and_then(|file| stat_file(&file)).is_ok_and(|stat| stat.uid == owner);
    owner == host::user_id() || made()
}

/// Whoever collects leftovers holds a part file while looking at it, and a program that is being started holds what
/// this process has open until it runs.
pub(super) const PART_LOCK_PATIENCE: Duration = Duration::from_millis(500);
const PART_LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Takes the lock of a part file that was left; `false` if somebody else has it and keeps it. Where there are no locks,
/// whoever owns the marker is alone.
pub(super) fn lock_patiently(part: &std::fs::File) -> bool {
    lock_within(part, PART_LOCK_PATIENCE)
}

/// The same, for as long as this.
pub(super) fn lock_within(part: &std::fs::File, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    while matches!(file::try_lock(part), Ok(false)) {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(PART_LOCK_PAUSE);
    }
    true
}

/// What a part file holds by its marker: blocks that are there, and those that have to be looked at. `untouched`: it is
/// the very file that the last session left, and nothing has been written to it since.
fn believed(
    (damaged, untouched): (bool, bool),
    left: &Left,
    opened: &std::fs::File,
    stat: &Stat,
    wanted: Digests,
) -> (Vec<(u64, BlockDigest)>, Vec<u64>) {
    let (size, block_bytes) = (left.part.size, left.part.block_bytes);
    let end = |index: u64| index * u64::from(block_bytes) + block_length(index, size, block_bytes);
    let comparable = left.part.digests == wanted;
    let (mut held, mut doubtful) = (Vec::new(), Vec::new());
    for claim in left.claims().into_iter().filter(|claim| end(claim.index) <= stat.size) {
        // Behind the damage a claim may have been taken back.
        if claim.sure && comparable && untouched && !damaged {
            held.push((claim.index, claim.digest));
        } else {
            doubtful.push(claim.index);
        }
    }
    if damaged {
        // Claims were lost: whatever has data may be a block.
        let mut offset = 0;
        while let Ok(Some(data)) = file::next_data(opened, offset)
            && data < stat.size.min(size)
        {
            let index = data / u64::from(block_bytes);
            if index < block_count(size, block_bytes) && end(index) <= stat.size {
                let is_held = held.binary_search_by_key(&index, |block: &(u64, BlockDigest)| block.0).is_ok();
                if !is_held {
                    doubtful.push(index);
                }
            }
            offset = (index + 1) * u64::from(block_bytes);
        }
        doubtful.sort_unstable();
        doubtful.dedup();
    }
    (held, doubtful)
}
