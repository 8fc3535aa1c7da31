//! What must hold when nothing is left to happen, and counts of what did happen.

use std::collections::BTreeMap;

use super::link::Receiving;
use super::world::World;
use crate::digest::FileDigests;
use crate::failure::ErrorCode;
use crate::report::{ItemKind, ItemReport, Outcome};
use crate::request::{Durability, MainDigest};
use crate::transfer::machine::Machine;

/// Counts of what happened in one run, or in many.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    pub transfers: u64,
    pub transfers_failed: u64,
    pub aborted: u64,
    pub published: u64,
    pub republished: u64,
    pub kept: u64,
    pub failed: u64,
    pub cuts: u64,
    pub stalls: u64,
    pub stragglers: u64,
    pub closed: u64,
    pub waits: u64,
    pub discarded: u64,
    pub corruptions: u64,
    pub changes: u64,
    pub misplaced: u64,
    pub scan_waits: u64,
    pub sessions: u64,
    pub crashes: u64,
    pub power_cuts: u64,
    pub left: u64,
    pub resumed: u64,
    pub started_over: u64,
    pub held: u64,
    pub held_wrong: u64,
    pub compared: u64,
    pub present: u64,
    pub known: u64,
    pub checkpoints: u64,
    pub last_checkpoints: u64,
    pub rotten: u64,
    pub again: u64,
    pub sync_failures: u64,
    pub all_lost: u64,
    pub rows_whole: u64,
    pub retired: u64,
    /// Streams that were asked to end and then went on.
    pub woken: u64,
    pub holes: u64,
    pub exchanges: u64,
    pub hosts: u64,
    pub altered: u64,
    pub rests: u64,
    pub twins: u64,
    pub read_twice: u64,
    pub same: u64,
    pub removed: u64,
    pub taken_over: u64,
    pub shared: u64,
    pub followed: u64,
    pub patched_in_vain: u64,
    /// Files that were told as in flight, each time anew.
    pub in_flight: u64,
}

impl Verdict {
    pub fn add(self, other: Self) -> Self {
        Self {
            transfers: self.transfers + other.transfers,
            transfers_failed: self.transfers_failed + other.transfers_failed,
            aborted: self.aborted + other.aborted,
            published: self.published + other.published,
            republished: self.republished + other.republished,
            kept: self.kept + other.kept,
            failed: self.failed + other.failed,
            cuts: self.cuts + other.cuts,
            stalls: self.stalls + other.stalls,
            stragglers: self.stragglers + other.stragglers,
            closed: self.closed + other.closed,
            waits: self.waits + other.waits,
            discarded: self.discarded + other.discarded,
            corruptions: self.corruptions + other.corruptions,
            changes: self.changes + other.changes,
            misplaced: self.misplaced + other.misplaced,
            scan_waits: self.scan_waits + other.scan_waits,
            sessions: self.sessions + other.sessions,
            crashes: self.crashes + other.crashes,
            power_cuts: self.power_cuts + other.power_cuts,
            left: self.left + other.left,
            resumed: self.resumed + other.resumed,
            started_over: self.started_over + other.started_over,
            held: self.held + other.held,
            held_wrong: self.held_wrong + other.held_wrong,
            compared: self.compared + other.compared,
            present: self.present + other.present,
            known: self.known + other.known,
            checkpoints: self.checkpoints + other.checkpoints,
            last_checkpoints: self.last_checkpoints + other.last_checkpoints,
            rotten: self.rotten + other.rotten,
            again: self.again + other.again,
            sync_failures: self.sync_failures + other.sync_failures,
            all_lost: self.all_lost + other.all_lost,
            rows_whole: self.rows_whole + other.rows_whole,
            retired: self.retired + other.retired,
            woken: self.woken + other.woken,
            holes: self.holes + other.holes,
            exchanges: self.exchanges + other.exchanges,
            hosts: self.hosts + other.hosts,
            altered: self.altered + other.altered,
            rests: self.rests + other.rests,
            twins: self.twins + other.twins,
            read_twice: self.read_twice + other.read_twice,
            same: self.same + other.same,
            removed: self.removed + other.removed,
            taken_over: self.taken_over + other.taken_over,
            shared: self.shared + other.shared,
            followed: self.followed + other.followed,
            patched_in_vain: self.patched_in_vain + other.patched_in_vain,
            in_flight: self.in_flight + other.in_flight,
        }
    }

    /// What some thousand runs must have seen.
    pub fn named(&self) -> [(&'static str, u64); 19] {
        [
            ("a transfer that failed", self.transfers_failed),
            ("an abort", self.aborted),
            ("a publication", self.published),
            ("an item kept", self.kept),
            ("an item failed", self.failed),
            ("a lost connection", self.cuts),
            ("a stall", self.stalls),
            ("a straggler", self.stragglers),
            ("a stream closed by the receiver", self.closed),
            ("a block that was there already", self.discarded),
            ("a block altered on the way", self.corruptions),
            ("a change of a source", self.changes),
            ("a scan that waited", self.scan_waits),
            ("a stream that ended as it was asked to", self.retired),
            ("a source that was deleted", self.removed),
            ("a block that was taken over", self.taken_over),
            ("a file that shares its blocks", self.shared),
            ("a file that was followed to its end", self.followed),
            ("a file in flight", self.in_flight),
        ]
    }

    /// What some thousand rows of sessions must have seen.
    pub fn named_in_rows(&self) -> [(&'static str, u64); 28] {
        [
            ("a crash of the receiver", self.crashes),
            ("a power cut", self.power_cuts),
            ("a session that ended early and in order", self.left),
            ("a part file taken up", self.resumed),
            ("a part file started over", self.started_over),
            ("a held block that was right", self.held),
            ("a held block that was not", self.held_wrong),
            ("a held block compared", self.compared),
            ("a large file that was there", self.present),
            ("a small item that was there", self.known),
            ("a checkpoint", self.checkpoints),
            ("a last checkpoint", self.last_checkpoints),
            ("a rotten block", self.rotten),
            ("an item sent again whole", self.again),
            ("a failed sync", self.sync_failures),
            ("a moment without streams", self.all_lost),
            ("a row that ended whole", self.rows_whole),
            ("a stream that ended as it was asked to", self.retired),
            ("a stream that was asked to end and went on", self.woken),
            ("a hole that came for what had been written", self.holes),
            ("a source exchanged for another", self.exchanges),
            ("another host in place of the source's", self.hosts),
            ("a block of a part file altered by somebody else", self.altered),
            ("a source that was let rest before it was read", self.rests),
            ("a second source of the same name", self.twins),
            ("a source that was read twice", self.read_twice),
            ("a file that was the same", self.same),
            ("a file that came again whole, since another had been patched", self.patched_in_vain),
        ]
    }
}

impl World {
    pub fn finish(&mut self) {
        if self.crashed {
            return;
        }
        let (sender, receiver) = (self.sender.outcome(), self.receiver.outcome());
        let (sender, receiver) = sender.zip(receiver).unwrap_or_else(|| {
            panic!(
                "nothing is left to happen, and the transfer has not ended:\n{:#?}\n{:#?}",
                self.sender, self.receiver
            )
        });
        self.verdict.aborted += u64::from(self.aborted);
        self.verdict.transfers_failed += u64::from(sender.is_err());
        let open: Vec<_> = self.streams.iter().filter(|stream| stream.receiving != Receiving::Over).collect();
        assert!(open.is_empty(), "streams are left at the receiver: {open:?}");
        if !self.aborted {
            assert_eq!(sender.is_ok(), receiver.is_ok(), "{sender:?} but {receiver:?}");
            assert!(sender.is_ok(), "the transfer failed for no reason: {sender:?}");
        }
        let later = self.now() + self.plan.tuning.sample_interval;
        let in_flight = self.in_flight.look(later, &self.sender);
        assert!(in_flight.as_ref().is_none_or(Vec::is_empty), "after the end: {in_flight:?}");
        if sender.is_ok() {
            assert!(receiver.is_ok());
            self.check_success();
        }
        self.leave();
    }

    fn check_success(&mut self) {
        assert!(self.disk.parts.is_empty() && self.disk.bundles.is_empty() && self.disk.opening.is_empty());
        assert!(self.disk.directories.is_empty(), "directories without attributes: {:?}", self.disk.directories);
        let mut reports: BTreeMap<Vec<u8>, ItemReport> = BTreeMap::new();
        let mut counted = [0; 6];
        counted[4] += self.sources_kept.take().map_or(0, |kept| kept.len() as u64);
        let is_twin = |report: &ItemReport| matches!(&report.outcome, Outcome::Failed(why) if why.code == ErrorCode::AlreadyExists);
        for report in std::mem::take(&mut self.reports) {
            if is_twin(&report) {
                counted[4] += 1;
                self.verdict.twins += 1;
                continue;
            }
            let earlier = reports.insert(report.path.clone(), report);
            assert!(earlier.is_none(), "an item has ended twice: {earlier:?}");
        }
        let items = self.source.items.len();
        for item in (0..items).filter(|&item| !self.source.items[item].twin).collect::<Vec<_>>() {
            let scanned = &self.source.items[item].scanned;
            let unseen = self.unseen.contains(&item);
            match reports.remove(&scanned.path) {
                None if unseen => {}
                None => {
                    assert_eq!(scanned.kind, ItemKind::Directory, "{scanned:?} has not ended");
                    counted[2] += 1;
                }
                Some(report) => self.check_item(item, &report, &mut counted),
            }
        }
        assert!(reports.is_empty(), "nobody asked for {reports:?}");
        let totals = self.sender.totals();
        assert_eq!([totals.counts.files, totals.counts.symlinks], counted[..2]);
        // A directory whose attributes could not be set is there and has failed.
        assert!(totals.counts.directories >= counted[2] && totals.counts.directories <= counted[2] + counted[4]);
        assert_eq!([totals.counts.files_kept, totals.counts.files_failed, totals.counts.bytes], counted[3..]);
        let durable = self.plan.options.durability != Durability::None;
        assert_eq!(totals.durable, durable);
        assert!(!durable || self.store.names_synced(), "said to be durable, and is not");
        let progress = self.sender.progress();
        let done = totals.counts.files + totals.counts.symlinks + totals.counts.files_same;
        assert_eq!(progress.files_done, done);
        assert!(
            progress.scan_complete
                && progress.files_failed == totals.counts.files_failed
                && progress.bytes_done >= totals.counts.bytes
        );
    }

    fn check_item(&mut self, item: usize, report: &ItemReport, counted: &mut [u64; 6]) {
        let source = &self.source.items[item];
        let name = self.store.standing(&report.path);
        let times = self.disk.published.get(&report.path).copied().unwrap_or(0);
        // Sent again because two copies differed, of a source that changed or could not be read twice: then the last
        // may fail where an earlier one did not.
        let fickle = source.has_changed() || self.plan.read_failure > 0 || self.plan.source_change > 0;
        assert!(times <= 1 || fickle, "{:?} was published {times} times", source.scanned);
        self.verdict.republished += u64::from(times > 1);
        match &report.outcome {
            Outcome::Published => {
                let name = name.expect("what is reported is there");
                assert!(!name.torn && self.source.is_version(item, name.size, name.blake3), "{report:?} is not whole");
                assert_eq!(report.size, name.size * u64::from(report.kind == ItemKind::File));
                let digest = report.digests.blake3;
                let wanted =
                    report.kind == ItemKind::File && self.plan.options.digests.main == Some(MainDigest::Blake3);
                // What shares its blocks has not been read.
                let is_shared = self.plan.options.shares && report.digests == FileDigests::default();
                let is_right = is_shared || digest == wanted.then_some(name.blake3);
                assert!(is_right, "{report:?} is not what was published: {:?}", name.blake3);
                let kind = if report.kind == ItemKind::File { 0 } else { 1 };
                counted[kind] += 1;
                counted[5] += report.size;
                self.verdict.published += 1;
            }
            Outcome::Same => {
                let name = name.expect("what is the same is there");
                assert!(
                    !name.torn && self.source.is_version(item, name.size, name.blake3),
                    "{report:?} is not the same"
                );
                self.verdict.same += 1;
            }
            outcome => {
                let made = source.scanned.kind == ItemKind::Directory;
                assert!(times == 0 || fickle || made, "{report:?} was published");
                let failed = matches!(outcome, Outcome::Failed(_));
                counted[if failed { 4 } else { 3 }] += 1;
                self.verdict.failed += u64::from(failed);
                self.verdict.kept += u64::from(!failed);
            }
        }
    }
}
