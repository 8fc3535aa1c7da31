//! Two peers, their disks and the network between them, on a clock of the test's own, from one seed.
//!
//! A seed decides what is copied, how fast everything is, and what goes wrong ([`plan`]). The [`world`] then drives a sender and a
//! receiver the way the engine does, and asserts after every step what must hold whatever happens; [`verdict`] says what must hold
//! at the end. Content is modelled: a block is a number, its digest is made of the number and knows nothing of its
//! place, so that only the digest of the whole file can tell a block in the wrong place.
//!
//! `CARRACK_SIM_SEED=N` replays one seed, `CARRACK_SIM_SEEDS=N` runs so many from 0 on.
#![cfg(test)]

mod disk;
mod link;
pub(super) mod plan;
mod source;
mod verdict;
mod world;

use self::plan::{Mutant, Plan};
use self::verdict::Verdict;
use self::world::World;

const SEEDS: u64 = 4000;

/// Says how to run a seed again when its run has panicked.
struct Replay(u64);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay: CARRACK_SIM_SEED={} cargo test -p carrack-core simulation", self.0);
        }
    }
}

fn run(plan: Plan) -> Verdict {
    let _replay = Replay(plan.seed);
    World::new(plan).run()
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number of a seed, or of seeds"))
}

/// Runs `count` seeds from `first` on, on all processors, and adds up what happened.
fn run_seeds(first: u64, count: u64) -> Verdict {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    std::thread::scope(|scope| {
        let seeds = |thread: u64| (first..first + count).skip(thread as usize).step_by(threads as usize);
        let sum =
            move |thread: u64| seeds(thread).map(|seed| run(Plan::new(seed))).fold(Verdict::default(), Verdict::add);
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || sum(thread))).collect();
        let verdicts = running.into_iter().map(|thread| thread.join().expect("the seed is printed above"));
        verdicts.fold(Verdict::default(), Verdict::add)
    })
}

#[test]
fn every_seed_ends_as_it_must() {
    if let Some(seed) = number("CARRACK_SIM_SEED") {
        eprintln!("{:?}", run(Plan::new(seed)));
        return;
    }
    let count = number("CARRACK_SIM_SEEDS").unwrap_or(SEEDS);
    let sum = run_seeds(0, count);
    eprintln!("{count} seeds: {sum:?}");
    // A simulation in which nothing happens proves nothing.
    if count >= SEEDS {
        for (what, times) in sum.named() {
            assert!(times >= 20, "{what} happened {times} times in {count} seeds");
        }
    }
}

#[test]
fn a_mutant_that_writes_blocks_elsewhere_is_caught() {
    for mutant in [Mutant::SwappedOnTheWay, Mutant::SwappedOnDisk] {
        let mut caught = 0;
        for seed in 0..300 {
            // That nothing wrong was published is asserted by the run itself.
            let verdict = run(Plan::with_mutant(seed, mutant));
            assert!(
                verdict.misplaced == 0 || verdict.failed > 0 || verdict.transfers_failed > 0,
                "seed {seed} of {mutant:?}: {verdict:?}"
            );
            caught += u64::from(verdict.misplaced > 0 && verdict.transfers_failed == 0);
        }
        assert!(caught > 50, "{mutant:?} did something {caught} times");
    }
}
