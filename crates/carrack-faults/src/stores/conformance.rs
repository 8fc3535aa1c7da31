//! A suite that every store passes, according to what its properties say that it can do. Whoever writes a store has his
//! tests run [`check`]; what it finds is told by the name of the rule that is broken.
//!
//! That the suite notices a store that lies is tested with liars: see the tests of this module, one for each method.

mod reading;
mod sessions;
mod trial;
mod writing;

use std::sync::Arc;

use carrack_core::failure::Failure;

use carrack_engine::stores::store::Store;
use trial::Trial;

/// Where a store is tried: a new one, with nothing in it.
pub trait Fixture {
    /// The store under test.
    fn store(&self) -> Arc<dyn Store>;

    /// Has somebody else change a file in place, to content of another length; `false` where that cannot be done.
    fn alter(&self, _path: &[u8], _content: &[u8]) -> bool {
        false
    }

    /// Loses power. Names that nobody promised to be durable are there afterwards if they `survive`. `false` where that
    /// cannot be done.
    fn lose_power(&self, _names_survive: bool) -> bool {
        false
    }

    /// What there is beside items that have their names; `None` where nobody can tell.
    fn leftovers(&self) -> Option<u64> {
        None
    }
}

/// A rule that is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the rule.
    pub rule: &'static str,
    /// How the store breaks it.
    pub why: String,
}

/// Why a rule is broken.
pub(super) struct Broken(String);

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self(format!("fails: {failure}"))
    }
}

type Verdict = Result<(), Broken>;

/// Says what is broken unless it holds.
fn ensure(holds: bool, why: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(Broken(why())) }
}

type Rule = (&'static str, fn(&Trial<'_>) -> Verdict);

/// All rules, in the order in which they are tried.
const RULES: &[&[Rule]] = &[writing::RULES, reading::RULES, sessions::RULES];

/// Tries a store by every rule, each at a place of its own, and tells which are broken.
pub fn check(place: &dyn Fn() -> Box<dyn Fixture>) -> Vec<Finding> {
    let broken = |(rule, hold): &Rule| {
        let place = place();
        let Broken(why) = hold(&Trial::new(&*place)).err()?;
        Some(Finding { rule, why })
    };
    RULES.iter().flat_map(|rules| rules.iter()).filter_map(broken).collect()
}

#[cfg(test)]
mod tests;
