//! A store in memory, which keeps all that the contract knows, can lose power, and shows what it has left behind. For
//! tests, and as the plainest way to read what the contract asks for.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use carrack_core::attributes::{Attributes, OtherAttributes, Time};
use carrack_core::digest::{BlockDigest, FileDigests};
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::limits;
use carrack_core::path::{join, split_name};
use carrack_core::report::ItemKind;
use carrack_core::request::Digests;
use carrack_core::transfer::Fingerprint;

use carrack_engine::stores::properties::{Case, Properties};
use carrack_engine::stores::read::Source;
use carrack_engine::stores::store::{Facts, Store, Wanted};
use carrack_engine::stores::write::Destination;
use carrack_engine::sync::lock;

mod reading;
mod writing;

/// A store in memory. A clone is the same store.
#[derive(Clone)]
pub struct Memory {
    state: Arc<Mutex<State>>,
    properties: Properties,
}

/// Which session of which copy something belongs to.
type Key = [u8; limits::MARKER_KEY_BYTES];

#[derive(Default)]
struct State {
    /// What has its name, by path from the store's root, which is not among them.
    nodes: BTreeMap<Vec<u8>, StoredItem>,
    /// What outlives a loss of power with its name.
    durable: BTreeMap<Vec<u8>, StoredItem>,
    /// Blocks that sessions have left, by their key and the path.
    left: BTreeMap<(Key, Vec<u8>), UnfinishedFile>,
    /// Parts and entries that have no name yet.
    hidden: u64,
    /// Counts changes: the time of this store.
    version: u64,
}

#[derive(Clone)]
struct StoredItem {
    kind: ItemKind,
    /// Of a link, what it says.
    content: Arc<Vec<u8>>,
    /// The content outlives a loss of power, if the name does.
    is_synced: bool,
    attributes: Attributes,
    /// When it was last changed.
    version: u64,
    /// By which session it was published, and from what.
    published: Option<Publication>,
}

#[derive(Clone)]
struct Publication {
    key: Key,
    source: Fingerprint,
    digests: FileDigests,
    /// What it was then.
    version: u64,
    /// A later session is told.
    is_written_down: bool,
}

/// Blocks of a file that has not got its name.
#[derive(Clone)]
struct UnfinishedFile {
    size: u64,
    block_bytes: u32,
    digests: Digests,
    blocks: BTreeMap<u64, (Vec<u8>, BlockDigest)>,
}

/// All that the contract has methods for, and names as they are written.
const PROPERTIES: Properties =
    Properties { owner: false, xattrs: false, sparse: false, case: Case::Differs, ..Properties::FILES };

impl Default for Memory {
    fn default() -> Self {
        Self::coarse(Duration::from_nanos(1))
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("items", &self.lock().nodes.len()).finish()
    }
}

impl Memory {
    /// An empty one, which keeps times in this unit: a divisor or a multiple of a second.
    pub fn coarse(times: Duration) -> Self {
        Self { state: Arc::default(), properties: Properties { times: Some(times), ..PROPERTIES } }
    }

    /// Somebody else changes a file in place; `false` where there is none.
    pub fn alter(&self, path: &[u8], content: &[u8]) -> bool {
        let mut state = self.lock();
        state.version += 1;
        let version = state.version;
        let node = state.nodes.get_mut(path).filter(|node| node.kind == ItemKind::File);
        node.is_some_and(|node| {
            (node.content, node.version) = (Arc::new(content.to_vec()), version);
            true
        })
    }

    /// Somebody else gives an item attributes beside permissions and time, instead of those that it has; `false` where
    /// there is none. A destination of this store keeps none.
    pub fn set_other_attributes(&self, path: &[u8], others: OtherAttributes) -> bool {
        let mut state = self.lock();
        state.version += 1;
        let version = state.version;
        state.nodes.get_mut(path).is_some_and(|node| {
            (node.attributes.others, node.version) = (others, version);
            true
        })
    }

    /// The power is lost. What was promised to be durable is there afterwards; of the rest, names are there if they
    /// `survive`, and then content that was not synced is not.
    pub fn lose_power(&self, names_survive: bool) {
        let mut state = self.lock();
        if !names_survive {
            state.nodes = state.durable.clone();
        }
        for node in state.nodes.values_mut().filter(|node| !node.is_synced && node.kind == ItemKind::File) {
            node.content = Arc::default();
        }
        state.hidden = 0;
    }

    /// How much there is that has no name: parts, entries, and what sessions have written down for later ones.
    pub fn leftovers(&self) -> u64 {
        let state = self.lock();
        let told = state.nodes.values().filter(|node| node.published.is_some());
        state.hidden + (state.left.len() + told.count()) as u64
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A time as it is kept.
    fn kept_time(&self, time: Time) -> Time {
        match self.properties.times.map(|unit| (unit.as_secs() as i64, unit.subsec_nanos())) {
            Some((0, unit)) => Time::new(time.seconds, time.nanos - time.nanos % unit.max(1)),
            Some((unit, _)) => Time::new(time.seconds - time.seconds.rem_euclid(unit), 0),
            None => Time::default(),
        }
    }
}

impl State {
    /// Gives something its name, in the place of what stood there, and makes the directories above it.
    fn put(&mut self, path: &[u8], mut node: StoredItem) -> Result<(), Failure> {
        let (parent, _) = split_name(path);
        self.make_directory(parent)?;
        self.version += 1;
        node.version = self.version;
        if let Some(published) = &mut node.published {
            published.version = self.version;
        }
        self.nodes.insert(path.to_vec(), node);
        Ok(())
    }

    fn make_directory(&mut self, path: &[u8]) -> Result<(), Failure> {
        if path.is_empty() {
            return Ok(());
        }
        match self.nodes.get(path).map(|node| node.kind) {
            Some(ItemKind::Directory) => return Ok(()),
            Some(_) => {
                let why = "something stands there that is no directory";
                return Err(Failure::new(ErrorCode::NotADirectory, Side::Destination, why).at_path(path));
            }
            None => {}
        }
        self.make_directory(split_name(path).0)?;
        self.version += 1;
        let node = StoredItem {
            kind: ItemKind::Directory,
            content: Arc::default(),
            is_synced: true,
            attributes: plain_directory(),
            version: self.version,
            published: None,
        };
        self.nodes.insert(path.to_vec(), node);
        Ok(())
    }
}

/// What a directory has that was made on the way.
fn plain_directory() -> Attributes {
    Attributes { mode: 0o755, ..Attributes::default() }
}

/// Without slashes at its ends.
fn trimmed(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|&byte| byte != b'/').unwrap_or(path.len());
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(start, |last| last + 1);
    &path[start..end]
}

/// A path below another; either may be empty.
fn below(top: &[u8], path: &[u8]) -> Vec<u8> {
    match (top, path) {
        (b"", path) => path.to_vec(),
        (top, b"") => top.to_vec(),
        (top, path) => join(top, path),
    }
}

impl Store for Memory {
    fn properties(&self) -> Properties {
        self.properties
    }

    fn look(&self, path: &[u8]) -> Result<Option<Facts>, Failure> {
        let path = trimmed(path);
        if path.is_empty() {
            return Ok(Some(Facts { kind: ItemKind::Directory, size: 0 }));
        }
        let state = self.lock();
        Ok(state.nodes.get(path).map(|node| Facts { kind: node.kind, size: node.size() }))
    }

    fn source(&self, path: &[u8]) -> Result<Box<dyn Source>, Failure> {
        let path = trimmed(path);
        let facts = self.look(path)?.ok_or_else(|| Failure::new(ErrorCode::NotFound, Side::Source, "is not there"))?;
        let is_directory = facts.kind == ItemKind::Directory;
        Ok(Box::new(reading::MemorySource { store: self.clone(), top: path.to_vec(), is_directory }))
    }

    fn destination(&self, wanted: &Wanted<'_>) -> Result<Box<dyn Destination>, Failure> {
        let top = trimmed(wanted.path).to_vec();
        self.lock().make_directory(&top)?;
        Ok(Box::new(writing::MemoryDestination::new(self.clone(), top, wanted.marker, wanted.options)))
    }
}

impl StoredItem {
    /// Bytes of a file.
    fn size(&self) -> u64 {
        if self.kind == ItemKind::File { self.content.len() as u64 } else { 0 }
    }
}
