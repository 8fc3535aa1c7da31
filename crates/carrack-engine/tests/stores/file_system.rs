//! The file systems of this host pass the suite of stores, too.

use std::sync::Arc;

use carrack_engine::Place;
use carrack_engine::stores::store::Store;
use carrack_engine::testing::storage::posix::Posix;
use carrack_faults::stores::conformance::{Fixture, check};
use carrack_sys::dir::Dir;

/// A directory of this host.
struct OnDisk(tempfile::TempDir);

impl OnDisk {
    fn empty() -> Box<dyn Fixture> {
        Box::new(Self(tempfile::tempdir().unwrap()))
    }
}

impl Fixture for OnDisk {
    fn store(&self) -> Arc<dyn Store> {
        let root = Arc::new(Dir::open_ambient(self.0.path()).unwrap());
        Arc::new(Posix::new(Place::Beneath(root)))
    }

    fn alter(&self, path: &[u8], content: &[u8]) -> bool {
        std::fs::write(self.0.path().join(std::str::from_utf8(path).unwrap()), content).unwrap();
        true
    }

    fn leftovers(&self) -> Option<u64> {
        let entries = std::fs::read_dir(self.0.path().join("top")).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name());
        Some(names.filter(|name| name.as_encoded_bytes().starts_with(b".")).count() as u64)
    }
}

#[test]
fn file_system_passes_the_suite_of_stores() {
    assert_eq!(check(&OnDisk::empty), []);
}
