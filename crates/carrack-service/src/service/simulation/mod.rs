//! The dispatcher in a world of its own: a clock that steps, a ledger that fails and fills up, workers that die, hang
//! and go on, nodes that are away, and a service that is killed between any two calls. Everything comes from a seed.
//!
//! Checked after every step: what was acknowledged is there; no two workers carry out a task at once; a submission is
//! one task; an end stays; a task that SUCCEEDED has all its items at the place that its endpoints name now, whoever
//! has moved endpoints, replaced tokens, changed deadlines, deleted or altered files meanwhile; nobody is CANCELLED,
//! PAUSED or FAILED without a reason. At the end everything is mended, and every task has to come to its right end in
//! time.
//!
//! `CARRACK_SIM_STEPS=1000000 cargo test -p carrack-service --release simulation_of_many_seeds` takes so many steps; a
//! failure prints its seed, and `CARRACK_SIM_SEED=N` runs that one alone.

mod faulty;
mod river_tests;
mod script;
mod timers_tests;
mod world;

pub(crate) use faulty::{Faults, Faulty};
use script::Script;

/// Steps of one seed.
const STEPS: u64 = 400;
/// Steps of an ordinary test run: a thousand tasks and more come to SUCCEEDED and are compared.
const STEPS_IN_ALL: u64 = 30_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn simulation_of_many_seeds_keeps_every_promise() {
    if let Some(seed) = number("CARRACK_SIM_SEED") {
        Script::new(seed).run(STEPS);
        return;
    }
    let seeds = number("CARRACK_SIM_STEPS").unwrap_or(STEPS_IN_ALL).div_ceil(STEPS);
    let (mut ends, mut crashes, mut attempts) = (std::collections::BTreeMap::<&str, u64>::new(), 0, 0);
    let (mut judged, mut changes) = (0, 0);
    for seed in 0..seeds {
        let run = std::panic::catch_unwind(|| Script::new(seed).run(STEPS));
        match run {
            Ok(summary) => {
                summary.ends.into_iter().for_each(|(state, count)| *ends.entry(state).or_default() += count);
                (crashes, attempts) = (crashes + summary.crashes, attempts + summary.attempts);
                (judged, changes) = (judged + summary.judged, changes + summary.changes);
            }
            Err(panic) => {
                eprintln!("replay: CARRACK_SIM_SEED={seed} cargo test -p carrack-service simulation_of_many_seeds");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{seeds} seeds of {STEPS} steps: {crashes} crashes of the service, {attempts} attempts, ends {ends:?}");
    println!(
        "{judged} tasks that said SUCCEEDED were compared, after {changes} changes of endpoints, deadlines and files"
    );
    // A simulation in which nothing happens shows nothing.
    for state in ["SUCCEEDED", "PARTIAL", "FAILED", "CANCELLED"] {
        assert!(ends.get(state).is_some_and(|count| *count > 0), "no task ended as {state}: {ends:?}");
    }
    assert!(judged > 5 * seeds && changes > 10 * seeds, "{judged} judged, {changes} changes");
    assert!(crashes > seeds && attempts > seeds, "{crashes} crashes, {attempts} attempts");
}
