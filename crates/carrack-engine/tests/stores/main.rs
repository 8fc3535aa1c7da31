//! A store that is none of Carrack's: what is in its own file and one registration make it a source and a destination
//! of verified copies that can be taken up again.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod object;

use std::path::Path;
use std::sync::Arc;

use carrack_core::location::Location;
use carrack_core::report::Report;
use carrack_core::request::{CopyOptions, CopyRequest};
use carrack_engine::stores::conformance::{Place, check};
use carrack_engine::stores::fault::{Fault, Faults};
use carrack_engine::stores::over::{Act, Call, Hook, Over};
use carrack_engine::stores::store::Store;
use carrack_engine::{Context, Copy, Stores};

use object::Objects;

fn at(path: &str) -> Location {
    Location::Store { scheme: "objects".into(), path: path.as_bytes().to_vec() }
}

fn here(path: &Path) -> Location {
    Location::Local(path.to_str().unwrap().as_bytes().to_vec())
}

fn copy(store: Arc<dyn Store>, from: Location, to: Location) -> Report {
    let context = Context { stores: Stores::default().with("objects", store), ..Context::default() };
    let options = CopyOptions { retries: 0, ..CopyOptions::default() };
    let mut copy = Copy::start(CopyRequest { sources: vec![from], destination: to, options }, &context);
    while copy.next_event().is_some() {}
    copy.wait()
}

/// A directory with a file of many blocks, one of a bundle, and an empty one.
fn filled() -> (tempfile::TempDir, Vec<(&'static str, Vec<u8>)>) {
    let place = tempfile::tempdir().unwrap();
    let large = (0..40u32 << 20).map(|n| (n % 251) as u8 ^ (n >> 16) as u8).collect();
    let files = vec![("large", large), ("d/small", b"small".to_vec()), ("d/e/empty", Vec::new())];
    for (name, content) in &files {
        let path = place.path().join("from").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    (place, files)
}

fn got(store: &Objects, key: &str) -> Option<Vec<u8>> {
    store.lock().objects.get(key.as_bytes()).map(|object| object.content.to_vec())
}

fn is_whole(report: &Report) -> bool {
    report.error.is_none() && report.files_failed == 0 && report.files == 3
}

#[test]
fn object_store_is_destination_and_source_of_verified_copies() {
    let ((place, files), store) = (filled(), Objects::default());
    let report = copy(Arc::new(store.clone()), here(&place.path().join("from/")), at("bucket"));
    assert!(is_whole(&report), "{report:?}");
    for (name, content) in &files {
        assert!(got(&store, &format!("bucket/{name}")).as_ref() == Some(content), "{name}");
    }
    assert!(store.lock().uploads.is_empty());
    let back = place.path().join("back");
    let report = copy(Arc::new(store.clone()), at("bucket/"), here(&back));
    assert!(is_whole(&report), "{report:?}");
    for (name, content) in &files {
        assert!(std::fs::read(back.join(name)).unwrap() == *content, "{name}");
    }
    // From one store into itself, too.
    let report = copy(Arc::new(store.clone()), at("bucket/large"), at("other/"));
    assert!(report.error.is_none() && got(&store, "other/large") == got(&store, "bucket/large"), "{report:?}");
}

#[test]
fn object_store_takes_up_what_an_earlier_copy_has_left() {
    let ((place, files), store) = (filled(), Objects::default());
    let from = here(&place.path().join("from/"));
    // Whoever carries the fifth block panics: the session is lost.
    let faults = Faults::new([Fault::panics(Call::EndBlock).after(5)]);
    let broken = Over::new(Arc::new(store.clone()), Arc::new(faults));
    let report = copy(Arc::new(broken), from.clone(), at("bucket"));
    assert!(report.error.is_some(), "{report:?}");
    assert!(got(&store, "bucket/large").is_none());
    let report = copy(Arc::new(store.clone()), from, at("bucket"));
    assert!(report.error.is_none() && report.files_failed == 0, "{report:?}");
    for (name, content) in &files {
        assert!(got(&store, &format!("bucket/{name}")).as_ref() == Some(content), "{name}");
    }
    assert!(report.bytes_resumed > 0, "{report:?}");
    assert!(store.lock().uploads.is_empty());
}

struct Empty(Arc<dyn Store>);

impl Place for Empty {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.0)
    }
}

#[test]
fn object_store_passes_the_suite_of_stores() {
    assert_eq!(check(&|| Box::new(Empty(Arc::new(Objects::default())))), []);
}

/// Where blocks are parts, one that is never ended is missing.
#[test]
fn object_store_that_lies_of_the_end_of_a_block_is_found() {
    struct Liar;
    impl Hook for Liar {
        fn before(&self, call: Call, _bytes: u64) -> Act {
            if call == Call::EndBlock { Act::Pretend } else { Act::Go }
        }
    }
    let place = || Box::new(Empty(Arc::new(Over::new(Arc::new(Objects::default()), Arc::new(Liar))))) as Box<dyn Place>;
    let found = check(&place);
    assert!(found.iter().any(|finding| finding.rule == "a large file comes back"), "{found:#?}");
}
