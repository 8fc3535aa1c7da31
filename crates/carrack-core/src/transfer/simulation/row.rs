//! Rows of sessions: one command, stopped in the middle and run again, until nothing disturbs it.
//!
//! What outlives a session is the source, which changes meanwhile, and the [`Store`]. Whatever happened before, the
//! last session leaves every item as its source is.

use super::plan::{Crash, Mutant, Plan, Rng};
use super::source::{Source, SourceItem, digest_of};
use super::store::{Standing, Store};
use super::verdict::Verdict;
use super::world::World;
use crate::attributes::Time;
use crate::report::ItemKind;
use crate::request::Verify;
use crate::transfer::machine::Machine;

/// What stands between two sessions.
struct Row {
    rng: Rng,
    source: Source,
    store: Store,
    /// The source's clock, in seconds.
    clock: i64,
    verdict: Verdict,
    mutant: Option<Mutant>,
    /// Sources change all the time, and sessions follow each other at once: within what a clock takes for one moment.
    hectic: bool,
}

pub fn run(seed: u64, mutant: Option<Mutant>) -> Verdict {
    let mut rng = Rng::new(seed ^ 0x726f_7773);
    let plan = Plan::of_row(seed);
    let source = Source::new(&plan, &mut rng);
    let mut row = Row {
        rng,
        source,
        store: Store::default(),
        clock: 0,
        verdict: Verdict::default(),
        mutant,
        hectic: seed % 4 == 3 || matches!(mutant, Some(Mutant::FreshBelieved | Mutant::NotSettled)),
    };
    row.stand_before();
    let disturbed = 1 + row.rng.below(4);
    for session in 0..=disturbed {
        let last = session == disturbed;
        let whole = row.session(Plan::of_session(seed, session, last), last);
        if last {
            assert!(whole, "nothing was in the way of the last session");
            row.verdict.rows_whole += 1;
        } else {
            row.between();
        }
    }
    row.verdict
}

impl Row {
    /// Some names are taken before anything is copied.
    fn stand_before(&mut self) {
        for item in &self.source.items {
            if item.scanned.kind != ItemKind::Directory && self.rng.chance(300) {
                self.store.rename(&item.scanned.path, foreign(&mut self.rng));
            }
        }
        self.store.sync_names();
    }

    /// One session; whether it ended with everything as it is at the source.
    fn session(&mut self, mut plan: Plan, last: bool) -> bool {
        plan.mutant = self.mutant;
        if self.hectic && !last {
            plan.source_change = 300;
        }
        if self.mutant == Some(Mutant::PublishUnchecked) {
            (plan.options.verify, plan.rot) = (Verify::Disk, 300);
        }
        if self.mutant == Some(Mutant::SecondReadingSkipped) {
            plan.read_twice();
        }
        self.source.mutant = self.mutant;
        let source = std::mem::take(&mut self.source);
        let mut world = World::session(plan, source, std::mem::take(&mut self.store), self.clock);
        world.play();
        world.finish();
        self.clock += world.clock.as_secs() as i64;
        let power = world.plan.crash.is_some_and(|(_, crash)| crash == Crash::Power);
        let (crashed, succeeded) = (world.crashed, world.sender.outcome() == Some(Ok(())));
        let sessions = Verdict { sessions: 1, ..world.verdict };
        (self.source, self.store) = (world.source, world.store);
        self.verdict = std::mem::take(&mut self.verdict).add(sessions);
        match (crashed, power) {
            (true, true) => {
                self.verdict.power_cuts += 1;
                self.store.power_cut(&mut self.rng);
            }
            (true, false) => self.verdict.crashes += 1,
            (false, _) => self.verdict.left += u64::from(!succeeded),
        }
        self.check_names();
        succeeded && self.first_wrong(last).is_none()
    }

    /// An item that is not at the destination as it is at the source.
    fn first_wrong(&self, last: bool) -> Option<usize> {
        let wrong = |&(number, item): &(usize, &SourceItem)| {
            // What cannot be read twice fails when its stream is lost.
            let copied = match item.scanned.kind {
                ItemKind::File => item.scanned.size.is_some(),
                kind => kind == ItemKind::Symlink,
            };
            let copied = copied && !item.gone && !item.twin;
            let standing = self.store.standing(&item.scanned.path);
            copied
                && standing
                    .is_none_or(|standing| standing.torn || !self.source.is_now(number, standing.size, standing.blake3))
        };
        let (number, item) = self.source.items.iter().enumerate().find(wrong)?;
        assert!(!last, "{item:?} is at the destination as {:?}", self.store.standing(&item.scanned.path));
        Some(number)
    }

    /// Under a name is what was there before, or what some version of its source was. Only where nothing was synced, by
    /// the user's wish, may a power cut leave something else.
    fn check_names(&self) {
        for (number, item) in self.source.items.iter().enumerate().filter(|(_, item)| !item.twin) {
            let Some(standing) = self.store.standing(&item.scanned.path) else { continue };
            let whole =
                standing.torn || is_foreign(standing) || self.source.is_version(number, standing.size, standing.blake3);
            assert!(whole, "{:?} is neither old nor new", item.scanned);
        }
    }

    /// Time goes by, or none: sources change and are exchanged, power fails, others copy to the same names
    /// and alter what is there.
    fn between(&mut self) {
        let (pause, often) = if self.hectic { (1, 1000) } else { (60, 400) };
        self.clock += self.rng.below(pause) as i64;
        let changes = if self.rng.chance(often) { 300 } else { 0 };
        let exchanges = if self.rng.chance(200) { 300 } else { 0 };
        for item in 0..self.source.items.len() {
            let is_file = self.source.items[item].scanned.kind != ItemKind::Directory;
            if is_file && self.rng.chance(changes) {
                self.source.change(item, self.clock, &mut self.rng);
                self.verdict.changes += 1;
            }
            if is_file && self.rng.chance(exchanges) {
                self.source.exchange(item, &mut self.rng);
                self.verdict.exchanges += 1;
            }
        }
        if self.rng.chance(60) {
            self.source.exchange_host();
            self.verdict.hosts += 1;
        }
        self.others_write();
        if self.rng.chance(150) {
            self.verdict.power_cuts += 1;
            self.store.power_cut(&mut self.rng);
            self.check_names();
        }
        self.clock += self.rng.below(pause) as i64;
    }

    /// What others do at the destination.
    fn others_write(&mut self) {
        if self.rng.chance(200) {
            for item in &self.source.items {
                if self.rng.chance(200) && item.scanned.kind == ItemKind::File {
                    self.store.rename(&item.scanned.path, foreign(&mut self.rng));
                }
            }
            self.store.sync_names();
        }
        if self.rng.chance(200) {
            self.verdict.altered += self.store.alter_parts(&mut self.rng);
            // As it was, but for content: what an editor does that puts times back.
            for item in &self.source.items {
                if let Some(standing) =
                    self.store.standing(&item.scanned.path).cloned().filter(|_| self.rng.chance(300))
                {
                    self.store.rename(&item.scanned.path, Standing { blake3: digest_of(77).main, ..standing });
                }
            }
            self.store.sync_names();
        }
    }
}

/// Of another origin, and never of the same time.
fn foreign(rng: &mut Rng) -> Standing {
    let mtime = Some(Time::new(-77, 0));
    Standing { blake3: digest_of(77).main, size: rng.below(10), mtime, inode: 0, synced: true, torn: false }
}

fn is_foreign(standing: &Standing) -> bool {
    standing.blake3 == digest_of(77).main
}
