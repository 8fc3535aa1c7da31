//! Stores that keep the rules, and liars that the rules find.

use std::collections::BTreeSet;
use std::time::Duration;

use carrack_core::transfer::{Fingerprint, ScannedItem};

use super::*;
use crate::stores::memory::Memory;
use crate::stores::rate::Rate;
use carrack_engine::stores::over::{Act, Call, Hook, Over};
use carrack_engine::stores::properties::Properties;
use carrack_engine::stores::read::{Found, OpenOptions, Reader, Source, Walk};
use carrack_engine::stores::store::{Facts, Wanted};
use carrack_engine::stores::write::Destination;

/// A store in memory, and what stands over it.
struct InMemory {
    memory: Memory,
    store: Arc<dyn Store>,
}

impl InMemory {
    fn plain() -> Box<dyn Fixture> {
        let memory = Memory::default();
        Box::new(Self { store: Arc::new(memory.clone()), memory })
    }

    fn over(memory: Memory, hook: impl Hook + 'static) -> Box<dyn Fixture> {
        Box::new(Self { store: Arc::new(Over::new(Arc::new(memory.clone()), Arc::new(hook))), memory })
    }
}

impl Fixture for InMemory {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    fn alter(&self, path: &[u8], content: &[u8]) -> bool {
        self.memory.alter(path, content)
    }

    fn lose_power(&self, names_survive: bool) -> bool {
        self.memory.lose_power(names_survive);
        true
    }

    fn leftovers(&self) -> Option<u64> {
        Some(self.memory.leftovers())
    }
}

/// A store of which the sources have only what they must have: what stands at a path is found by walking.
#[derive(Debug)]
struct Walked(Memory);

impl Store for Walked {
    fn properties(&self) -> Properties {
        self.0.properties()
    }

    fn look(&self, path: &[u8]) -> Result<Option<Facts>, Failure> {
        self.0.look(path)
    }

    fn source(&self, path: &[u8]) -> Result<Box<dyn Source>, Failure> {
        Ok(Box::new(WalkedSource(self.0.source(path)?)))
    }

    fn destination(&self, wanted: &Wanted<'_>) -> Result<Box<dyn Destination>, Failure> {
        self.0.destination(wanted)
    }
}

struct WalkedSource(Box<dyn Source>);

impl Source for WalkedSource {
    fn walks_in_order(&self) -> bool {
        false
    }

    fn filters(&self) -> bool {
        false
    }

    fn is_directory(&self) -> bool {
        self.0.is_directory()
    }

    fn walk(&self, walk: &Walk<'_>, each: &mut dyn FnMut(Found) -> bool) {
        self.0.walk(walk, each);
    }

    fn link_target(&self, path: &[u8]) -> Result<(Vec<u8>, Option<Fingerprint>), Failure> {
        self.0.link_target(path)
    }

    fn open(&self, item: &ScannedItem, options: &mut OpenOptions<'_>) -> Result<Box<dyn Reader>, Failure> {
        self.0.open(item, options)
    }
}

/// Tells one lie: of each of its calls the same.
struct Liar {
    call: Call,
    act: fn() -> Act,
}

impl Hook for Liar {
    fn before(&self, call: Call, _bytes: u64) -> Act {
        if call == self.call { (self.act)() } else { Act::Go }
    }
}

#[test]
fn conformance_of_a_store_in_memory() {
    assert_eq!(check(&InMemory::plain), []);
    assert_eq!(check(&|| InMemory::over(Memory::coarse(Duration::from_secs(2)), Rate::new(None, Duration::ZERO))), []);
}

#[test]
fn conformance_of_a_store_that_finds_by_walking() {
    let place = || {
        let memory = Memory::default();
        Box::new(InMemory { store: Arc::new(Walked(memory.clone())), memory }) as Box<dyn Fixture>
    };
    assert_eq!(check(&place), []);
}

/// A store that lies in one method is found, whichever it is.
#[test]
fn conformance_finds_a_liar_in_every_method() {
    // What an object store needs and this one does not is tried there.
    let needed_elsewhere = [Call::EndBlock];
    let mut unseen = BTreeSet::new();
    for &call in Call::ALL.iter().filter(|call| !needed_elsewhere.contains(call)) {
        // What is not kept has to be told by a store that does not keep it.
        let memory = || if call == Call::Unkept { Memory::coarse(Duration::from_secs(2)) } else { Memory::default() };
        if check(&|| InMemory::over(memory(), Liar { call, act: || Act::Pretend })).is_empty() {
            unseen.insert(call.name());
        }
    }
    assert_eq!(unseen, BTreeSet::new(), "nobody notices these lies");
}

/// What it is, where it is told, how, and the rule that it breaks.
type Lie = (&'static str, Call, fn() -> Act, &'static str);

/// Lies by halves, and the rule that finds each.
#[test]
fn conformance_names_the_rule_that_a_liar_breaks() {
    let cases: [Lie; 14] = [
        ("writes short", Call::Write, || Act::Half, "a large file comes back"),
        ("writes small files short", Call::WriteSmall, || Act::Half, "a small file comes back"),
        ("writes pieces short", Call::WriteGrowing, || Act::Half, "a small file in pieces comes back"),
        ("claims a sync", Call::SyncAll, || Act::Pretend, "what was synced outlives a loss of power"),
        (
            "claims a group's sync",
            Call::SyncGroup,
            || Act::Pretend,
            "a name that outlives a loss of power has all of its content",
        ),
        (
            "renames late",
            Call::Publish,
            || Act::Late,
            "nothing shows before it is published, and all of it right after",
        ),
        (
            "renames small files late",
            Call::PublishEntry,
            || Act::Late,
            "nothing shows before it is published, and all of it right after",
        ),
        (
            "forgets times of large files",
            Call::Begin,
            || Act::Bare,
            "attributes are kept, or it is told that they are not",
        ),
        (
            "forgets times of small files",
            Call::WriteSmall,
            || Act::Bare,
            "attributes are kept, or it is told that they are not",
        ),
        (
            "forgets half of the directories",
            Call::ApplyDirectories,
            || Act::Half,
            "directories come back with their attributes",
        ),
        ("lists half", Call::Walk, || Act::Half, "a walk finds all, each once, directories first"),
        (
            "forgets what is said to be read soon",
            Call::WillRead,
            || Act::Pretend,
            "a hint changes nothing that is read",
        ),
        ("forgets what was said to be read", Call::WasRead, || Act::Pretend, "a hint changes nothing that is read"),
        ("reads half", Call::ReadAt, || Act::Half, "any range of a file is read as it is"),
    ];
    for (what, call, act, rule) in cases {
        let found = check(&|| InMemory::over(Memory::default(), Liar { call, act }));
        assert!(found.iter().any(|finding| finding.rule == rule), "{what}: {found:#?}");
    }
}
