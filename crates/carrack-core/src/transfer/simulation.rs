//! Two peers, their disks and the network between them, on a clock of the test's own, from one seed.
//!
//! A seed decides what is copied, how fast everything is, and what goes wrong ([`plan`]). The [`world`] then
//! drives a sender and a receiver the way the engine does, and asserts after every step what must hold whatever
//! happens; [`verdict`] says what must hold at the end. Content is modelled: a block is a number, its digest is
//! made of the number and knows nothing of its place, so that only the digest of the whole file can tell a
//! block in the wrong place.
//!
//! A seed of a [`row`] decides several sessions one after the other, with crashes, power cuts and changes between,
//! against one modelled disk and marker ([`store`]).
//!
//! `CARRACK_SIM_SEED=N` replays one seed, `CARRACK_SIM_SEEDS=N` runs so many, from `CARRACK_SIM_FIRST` or 0 on;
//! `CARRACK_SIM_ROW` and `CARRACK_SIM_ROWS` are the same for rows.
#![cfg(test)]

mod disk;
mod link;
pub(super) mod plan;
mod row;
mod source;
mod storage;
mod store;
mod verdict;
mod world;

use self::plan::{Mutant, Plan};
use self::verdict::Verdict;
use self::world::World;

const SEEDS: u64 = 2500;
const ROWS: u64 = 1500;

/// Says how to run a seed again when its run has panicked.
struct Replay(&'static str, u64);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay: {}={} cargo test -p carrack-core simulation", self.0, self.1);
        }
    }
}

fn run(plan: Plan) -> Verdict {
    let _replay = Replay("CARRACK_SIM_SEED", plan.seed);
    World::new(plan).run()
}

fn run_row(seed: u64) -> Verdict {
    let _replay = Replay("CARRACK_SIM_ROW", seed);
    row::run(seed, None)
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number of a seed, or of seeds"))
}

/// Runs `count` seeds from `first` on, on all processors, and adds up what happened.
fn run_seeds(first: u64, count: u64, run: impl Fn(u64) -> Verdict + Copy + Send) -> Verdict {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    std::thread::scope(|scope| {
        let seeds = |thread: u64| (first..first + count).skip(thread as usize).step_by(threads as usize);
        let sum = move |thread: u64| seeds(thread).map(run).fold(Verdict::default(), Verdict::add);
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || sum(thread))).collect();
        let verdicts = running.into_iter().map(|thread| thread.join().expect("the seed is printed above"));
        verdicts.fold(Verdict::default(), Verdict::add)
    })
}

/// A simulation in which nothing happens proves nothing.
fn check_seen(named: &[(&'static str, u64)]) {
    for (what, times) in named {
        assert!(*times >= 20, "{what} happened {times} times");
    }
}

#[test]
fn simulation_of_every_seed_ends_as_it_must() {
    if let Some(seed) = number("CARRACK_SIM_SEED") {
        eprintln!("{:?}", run(Plan::new(seed)));
        return;
    }
    let count = number("CARRACK_SIM_SEEDS").unwrap_or(SEEDS);
    let first = number("CARRACK_SIM_FIRST").unwrap_or(0);
    let sum = run_seeds(first, count, |seed| run(Plan::new(seed)));
    eprintln!("{count} seeds from {first}: {sum:?}");
    if count >= SEEDS {
        check_seen(&sum.named());
    }
}

#[test]
fn simulation_of_every_row_of_sessions_ends_whole() {
    if let Some(seed) = number("CARRACK_SIM_ROW") {
        eprintln!("{:?}", run_row(seed));
        return;
    }
    let count = number("CARRACK_SIM_ROWS").unwrap_or(ROWS);
    let first = number("CARRACK_SIM_FIRST").unwrap_or(0);
    let sum = run_seeds(first, count, run_row);
    eprintln!("{count} rows from {first}: {sum:?}");
    if count >= ROWS {
        check_seen(&sum.named_in_rows());
    }
}

/// A driver that does one of these wrong leaves a trace that the runs above would not let pass.
#[test]
fn mutants_of_the_driver_are_caught() {
    let mutants = [
        Mutant::ConfirmUnread,
        Mutant::ClaimBeforeSync,
        Mutant::SyncAgain,
        Mutant::ClaimKept,
        Mutant::PublishUnchecked,
        Mutant::ChangeIgnored,
        Mutant::HoleNotWritten,
        Mutant::IdentityIgnored,
        Mutant::HostIgnored,
        Mutant::FreshBelieved,
        Mutant::NotSettled,
        Mutant::ListingBelieved,
        Mutant::PartBelieved,
        Mutant::NameBelieved,
        Mutant::TwinsSent,
        Mutant::SecondReadingSkipped,
    ];
    for mutant in mutants {
        let fails = |&seed: &u64| std::panic::catch_unwind(|| row::run(seed, Some(mutant))).is_err();
        let caught: Vec<u64> = (0..ROWS).filter(fails).take(3).collect();
        assert_eq!(caught.len(), 3, "{mutant:?} is not caught");
        eprintln!("{mutant:?} is caught by rows {caught:?}");
    }
}

#[test]
fn mutant_that_writes_blocks_elsewhere_is_caught() {
    for mutant in [Mutant::SwappedOnTheWay, Mutant::SwappedOnDisk] {
        let mut caught = 0;
        for seed in 0..300 {
            // That nothing wrong was published is asserted by the run itself. What was written elsewhere may belie the
            // marker at once, which the run asserts, too.
            let verdict = match std::panic::catch_unwind(|| run(Plan::with_mutant(seed, mutant))) {
                Ok(verdict) => verdict,
                Err(why) if why.downcast_ref::<String>().is_some_and(|why| why.contains("the marker claims")) => {
                    caught += 1;
                    continue;
                }
                Err(why) => std::panic::resume_unwind(why),
            };
            // Found when it was read back, or by the digest of the whole; or it cost the file.
            let found = verdict.rotten + verdict.again + verdict.failed + verdict.transfers_failed;
            assert!(verdict.misplaced == 0 || found > 0, "seed {seed} of {mutant:?}: {verdict:?}");
            caught += u64::from(verdict.misplaced > 0 && verdict.transfers_failed == 0);
        }
        assert!(caught > 50, "{mutant:?} did something {caught} times");
    }
}
