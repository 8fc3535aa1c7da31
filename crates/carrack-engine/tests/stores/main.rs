//! A store that is none of Carrack's: what is in its own file and one registration make it a source and a destination
//! of verified copies that can be taken up again.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod compared;
mod far;
mod file_system;
mod left;
mod object;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use carrack_core::attributes::{AttributeKind, Attributes};
use carrack_core::digest::{BlockDigest, FileDigests};
use carrack_core::failure::{ErrorCode, Failure, Reason};
use carrack_core::filter::{Filters, RuleForm};
use carrack_core::location::Location;
use carrack_core::report::{Event, ItemKind, Report};
use carrack_core::request::{CopyOptions, CopyRequest, Digests, EndOptions, Verify};
use carrack_engine::files::{Files, ListEntry, ReadEvent, ReadRange, SumEntry, UsageEntry};
use carrack_engine::stores::objects::{self, Bucket, Objects};
use carrack_engine::stores::over::{Act, Call, Hook, Over};
use carrack_engine::stores::properties::{BlockBytes, MarkerRequest, Properties, WriteOptions, Writes};
use carrack_engine::stores::read::Source;
use carrack_engine::stores::store::{Facts, Store, Wanted};
use carrack_engine::stores::write::{Destination, NewFile, Opening, Part};
use carrack_engine::{Context, Copy, Stores};
use carrack_faults::stores::conformance::{Fixture, check};
use carrack_faults::stores::fault::{Fault, StoreFaults};

use object::{Service, State};

fn at(path: &str) -> Location {
    Location::Store { scheme: "objects".into(), path: path.into() }
}

fn here(path: &Path) -> Location {
    Location::Local(path.to_str().unwrap().into())
}

fn store(service: &Service) -> Arc<dyn Store> {
    Arc::new(Objects::new(service.clone()))
}

fn context(store: Arc<dyn Store>) -> Context {
    Context { stores: Stores::default().with("objects", store), ..Context::default() }
}

fn copy(store: Arc<dyn Store>, from: Location, to: Location) -> Report {
    copy_with(store, from, to, CopyOptions::default()).0
}

/// The report, and the notes that came before it.
fn copy_with(store: Arc<dyn Store>, from: Location, to: Location, options: CopyOptions) -> (Report, Vec<String>) {
    let options = CopyOptions { retries: 0, ..options };
    let mut copy = Copy::start(CopyRequest { sources: vec![from], destination: to, options }, &context(store));
    let mut notes = Vec::new();
    while let Some(event) = copy.next_event() {
        if let Event::Note(note) = event {
            notes.push(note);
        }
    }
    (copy.wait(), notes)
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

fn got(service: &Service, key: &str) -> Option<Vec<u8>> {
    service.lock().objects.get(key.as_bytes()).map(|(content, _)| content.clone())
}

/// Nothing is there but these files.
fn expect_only(service: &Service, files: &[(&'static str, Vec<u8>)]) {
    for (name, content) in files {
        assert!(got(service, &format!("bucket/{name}")).as_ref() == Some(content), "{name}");
    }
    let state = service.lock();
    let keys: Vec<_> = state.objects.keys().map(|key| String::from_utf8_lossy(key)).collect();
    assert_eq!(keys.len(), files.len(), "{keys:?}");
    assert!(state.uploads.is_empty(), "{:?}", state.uploads.keys());
}

fn is_whole(report: &Report) -> bool {
    report.error.is_none() && report.counts.files_failed == 0 && report.counts.files == 3
}

#[test]
fn object_store_is_destination_and_source_of_verified_copies() {
    for verify in [Verify::Wire, Verify::Disk] {
        let ((place, files), service) = (filled(), Service::default());
        let options = CopyOptions { verify, ..CopyOptions::default() };
        let (report, _) = copy_with(store(&service), here(&place.path().join("from/")), at("bucket"), options);
        assert!(is_whole(&report) && report.durable == Some(true), "{report:?}");
        expect_only(&service, &files);
        let back = place.path().join("back");
        let began = SystemTime::now() - Duration::from_secs(2);
        let report = copy(store(&service), at("bucket/"), here(&back));
        assert!(is_whole(&report), "{report:?}");
        for (name, content) in &files {
            assert!(std::fs::read(back.join(name)).unwrap() == *content, "{name}");
            // There are no times to keep: a file has that of its copy.
            assert!(back.join(name).metadata().unwrap().modified().unwrap() >= began, "{name}");
        }
        // From one store into itself, too.
        let report = copy(store(&service), at("bucket/large"), at("other/"));
        assert!(report.error.is_none() && got(&service, "other/large") == got(&service, "bucket/large"), "{report:?}");
    }
}

#[test]
fn object_store_takes_up_what_an_earlier_copy_has_left() {
    let ((place, files), service) = (filled(), Service::default());
    let from = here(&place.path().join("from/"));
    // Whoever carries the fifth block panics: the session is lost.
    let faults = StoreFaults::new([Fault::panics(Call::EndBlock).after(5)]);
    let broken = Over::new(store(&service), Arc::new(faults));
    let report = copy(Arc::new(broken), from.clone(), at("bucket"));
    assert!(report.error.is_some(), "{report:?}");
    assert!(got(&service, "bucket/large").is_none());
    // What was left for this copy is no content of another.
    let other = copy(store(&service), at("bucket/"), here(&place.path().join("other")));
    assert!(other.error.is_none() && other.counts.files <= 2 && other.counts.leftovers_skipped > 0, "{other:?}");
    // With other digests the parts are read again; with the same they are believed.
    for (crc32c, session) in [(true, 1), (false, 2)] {
        let service = Service::clone_of(&service);
        let digest = Digests { crc32c, ..Digests::BLAKE3 };
        let options = CopyOptions { digest, ..CopyOptions::default() };
        let (report, _) = copy_with(store(&service), from.clone(), at("bucket"), options);
        assert!(report.error.is_none() && report.counts.files_failed == 0, "{session}: {report:?}");
        assert!(report.counts.bytes_resumed > 0, "{session}: {report:?}");
        expect_only(&service, &files);
    }
    let options = CopyOptions { resume: false, ..CopyOptions::default() };
    let (report, _) = copy_with(store(&service), from, at("bucket"), options);
    assert!(is_whole(&report) && report.counts.bytes_resumed == 0, "{report:?}");
    expect_only(&service, &files);
}

fn options() -> WriteOptions {
    WriteOptions::in_blocks(128 << 10)
}

/// A session that keeps a journal.
fn destination(service: &Service) -> Box<dyn Destination> {
    let marker = Some(MarkerRequest { key: [3; 8], anew: false, made_top: false, partial: false });
    let tuning = &Arc::default();
    store(service)
        .destination(&Wanted {
            path: b"bucket",
            is_copied: false,
            marker,
            options: options(),
            backup: None,
            keeps_links: false,
            keeps_shared: false,
            tuning,
        })
        .unwrap()
}

fn file(size: u64) -> NewFile<'static> {
    let attributes = Attributes::default();
    NewFile { path: b"f", size: Some(size), attributes, sparse: false, fingerprint: None }
}

/// A call that hangs may put its part when a later session has long put its own.
#[test]
fn object_of_parts_that_somebody_else_has_put_is_refused() {
    let service = Service::default();
    let to = destination(&service);
    let Opening::Fresh(part) = to.begin(&file(1000), &options(), true).unwrap() else { panic!("it is not new") };
    part.write(0, &[1; 1000]).unwrap();
    part.end_block(0, 1000).unwrap();
    let (key, name) = service.lock().uploads.keys().next().cloned().unwrap();
    service.put_part(objects::Upload { key: &key, name: &name }, 0, &[2; 1000]).unwrap();
    part.finish(1000).unwrap();
    assert_eq!(part.publish(FileDigests::default()).unwrap_err().code, ErrorCode::InputOutput);
    assert!(got(&service, "bucket/f").is_none() && service.lock().uploads.is_empty());
}

/// A call that hangs may put its part when a later session has claimed that block, and before the next one looks.
#[test]
fn object_store_reads_parts_again_that_are_not_those_of_its_journal() {
    let ((place, files), service) = (filled(), Service::default());
    let from = here(&place.path().join("from/"));
    let broken = Over::new(store(&service), Arc::new(StoreFaults::new([Fault::panics(Call::EndBlock).after(5)])));
    assert!(copy(Arc::new(broken), from.clone(), at("bucket")).error.is_some());
    let uploads: Vec<_> = service.lock().uploads.iter().map(|(id, parts)| (id.clone(), parts.clone())).collect();
    for ((key, name), parts) in &uploads {
        for (number, (content, _)) in parts {
            let older: Vec<u8> = content.iter().map(|byte| !byte).collect();
            service.put_part(objects::Upload { key, name }, *number, &older).unwrap();
        }
    }
    assert!(uploads.iter().any(|(_, parts)| !parts.is_empty()), "nothing was left");
    let report = copy(store(&service), from, at("bucket"));
    assert!(report.error.is_none() && report.counts.files_failed == 0, "{report:?}");
    expect_only(&service, &files);
}

/// What one session puts and claims, and what the next ones take from it.
#[test]
fn parts_of_an_upload_are_believed_as_long_as_nobody_else_has_put_any() {
    let (block, service) = (128u64 << 10, Service::default());
    let content = |number: u8| vec![number; block as usize];
    let put = |part: &dyn Part, index: u64, number: u8| {
        part.write(index * block, &content(number)).unwrap();
        part.end_block(index * block, block).unwrap();
        let digest = BlockDigest { main: [number; 32], ..BlockDigest::default() };
        assert_eq!(part.checkpoint(&[(index, digest)], false).unwrap(), [] as [u64; 0]);
    };
    let hung = |index: u64, number: u8| {
        let (key, name) = service.lock().uploads.keys().next().cloned().unwrap();
        service.put_part(objects::Upload { key: &key, name: &name }, index, &content(number)).unwrap();
    };
    // Each session is killed: none ends in good order.
    type Session<'a> = &'a dyn Fn(&dyn Part, Vec<u64>, Vec<u64>);
    let session = |work: Session| match destination(&service).begin(&file(2 * block), &options(), true).unwrap() {
        Opening::Fresh(part) => work(&*part, Vec::new(), Vec::new()),
        Opening::Resumed { part, held, doubtful, .. } => {
            work(&*part, held.into_iter().map(|block| block.0).collect(), doubtful);
        }
        _ => panic!("it is there"),
    };
    let none = Vec::<u64>::new();
    session(&|part, _, _| {
        put(part, 0, 1);
        put(part, 1, 1);
    });
    session(&|part, held, doubtful| {
        assert_eq!((held, doubtful), (vec![0, 1], none.clone()), "all is as it was claimed");
        part.unclaim(1);
    });
    session(&|part, held, doubtful| {
        assert_eq!((held, doubtful), (vec![0], none.clone()), "the other was taken back");
        put(part, 1, 2);
    });
    hung(1, 1);
    session(&|part, held, doubtful| {
        assert_eq!((held, doubtful), (none.clone(), vec![0, 1]), "a call that hung has put another part");
        // And another does while they are read: that part is not the one that is adopted.
        hung(0, 3);
        let read: Vec<_> = part.rehash(&[0, 1]).into_iter().map(|block| block.0).collect();
        assert_eq!(read, [1]);
    });
    session(&|part, held, doubtful| {
        assert_eq!((held, doubtful), (none.clone(), vec![0, 1]), "one was not read again");
        assert_eq!(part.rehash(&[0, 1]).len(), 2);
    });
    session(&|_, held, doubtful| assert_eq!((held, doubtful), (vec![0, 1], none.clone()), "both were read again"));
}

/// A file of a bundle that is read back may have several blocks.
#[test]
fn small_file_of_several_blocks_is_read_back_from_an_object_store() {
    let (place, service) = (tempfile::tempdir().unwrap(), Service::default());
    let contents = [0, 1, 256 << 10, (256 << 10) + 1, 600 << 10];
    let from = place.path().join("from");
    std::fs::create_dir(&from).unwrap();
    for size in contents {
        std::fs::write(from.join(size.to_string()), (0..size).map(|n| (n % 251) as u8).collect::<Vec<_>>()).unwrap();
    }
    let options = CopyOptions { verify: Verify::Disk, block_bytes: Some(256 << 10), ..CopyOptions::default() };
    let (report, _) = copy_with(store(&service), here(&place.path().join("from/")), at("bucket"), options);
    assert!(report.error.is_none() && report.counts.files_failed == 0, "{report:?}");
    for size in contents {
        let found = got(&service, &format!("bucket/{size}")).unwrap();
        assert!(found == std::fs::read(from.join(size.to_string())).unwrap(), "{size}");
    }
}

/// A damaged journal says nothing, and what it knew of is removed; so is what somebody else has put into it.
#[test]
fn object_store_starts_over_where_its_journal_is_damaged() {
    let (place, files) = filled();
    let from = here(&place.path().join("from/"));
    let flip = |state: &mut State, key: &[u8]| *state.objects.get_mut(key).unwrap().0.last_mut().unwrap() ^= 1;
    let add = |state: &mut State, key: &[u8]| drop(state.objects.insert([key, b"0"].concat(), (vec![7; 100], 0)));
    let damages: [fn(&mut State, &[u8]); 2] = [flip, add];
    for (number, damage) in damages.into_iter().enumerate() {
        let service = Service::default();
        let broken = Over::new(store(&service), Arc::new(StoreFaults::new([Fault::panics(Call::EndBlock).after(5)])));
        assert!(copy(Arc::new(broken), from.clone(), at("bucket")).error.is_some());
        let is_journal = |key: &&Vec<u8>| key.windows(9).any(|part| part == b".carrack-");
        let journal = service.lock().objects.keys().rfind(is_journal).unwrap().clone();
        damage(&mut service.lock(), &journal);
        let report = copy(store(&service), from.clone(), at("bucket"));
        assert!(is_whole(&report) && report.counts.bytes_resumed == 0, "{number}: {report:?}");
        expect_only(&service, &files);
    }
}

/// What a store cannot keep is told before the first byte and counted, and fails nothing.
#[test]
fn object_store_keeps_no_links_and_says_so() {
    let ((place, mut files), service) = (filled(), Service::default());
    std::os::unix::fs::symlink("small", place.path().join("from/d/link")).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(place.path().join("from/d/small"), private).unwrap();
    let from = here(&place.path().join("from/"));
    let (report, notes) = copy_with(store(&service), from, at("bucket"), CopyOptions::default());
    assert!(is_whole(&report) && report.counts.symlinks == 0 && report.counts.files_kept == 1, "{report:?}");
    let unkept = report.unkept_attributes.unwrap();
    let expected = [(AttributeKind::SYMBOLIC_LINK, 1), (AttributeKind::DIRECTORY, 2)];
    assert_eq!(unkept.kinds.into_iter().collect::<Vec<_>>(), expected);
    assert!(report.unkept_times.is_some() && report.unkept_permissions.is_some());
    let lacks = "no permissions, no modification times, no symbolic links and no directories";
    assert!(notes.iter().any(|note| note.contains(lacks)), "{notes:?}");
    files.sort();
    expect_only(&service, &files);
}

/// A store that says something else of what it can do.
#[derive(Debug)]
struct Saying(Arc<dyn Store>, fn(Properties) -> Properties);

impl Store for Saying {
    fn properties(&self) -> Properties {
        self.1(self.0.properties())
    }

    fn look(&self, path: &[u8]) -> Result<Option<Facts>, Failure> {
        self.0.look(path)
    }

    fn source(&self, path: &[u8]) -> Result<Box<dyn Source>, Failure> {
        self.0.source(path)
    }

    fn destination(&self, wanted: &Wanted<'_>) -> Result<Box<dyn Destination>, Failure> {
        self.0.destination(wanted)
    }
}

#[test]
fn store_that_takes_bytes_in_order_gets_one_stream_and_says_so() {
    let ((place, mut files), service) = (filled(), Service::default());
    let options = CopyOptions { streams: Some(4), ..CopyOptions::default() };
    let from = here(&place.path().join("from/"));
    // Each file from its beginning to its end, and no byte twice.
    let in_order = |says| Properties { writes: Writes::InOrder, resumes: false, ..says };
    let (report, notes) = copy_with(Arc::new(Saying(store(&service), in_order)), from, at("bucket"), options);
    assert!(is_whole(&report), "{report:?}");
    assert_eq!(report.link.map(|link| link.streams), Some(1));
    assert!(notes.iter().any(|note| note.starts_with("one stream carries the data")), "{notes:?}");
    files.sort();
    expect_only(&service, &files);
}

/// What was asked for is never changed in silence.
#[test]
fn blocks_that_a_store_does_not_take_are_refused_or_told() {
    let ((place, files), service) = (filled(), Service::default());
    let from = here(&place.path().join("from/large"));
    let copy_in = |block_bytes| {
        let options = CopyOptions { block_bytes, ..CopyOptions::default() };
        copy_with(store(&service), from.clone(), at("bucket/large"), options)
    };
    let (report, _) = copy_in(Some(64 << 10));
    let refused = report.error.as_ref().unwrap();
    assert_eq!((refused.code, refused.reason), (ErrorCode::Unsupported, Some(Reason::BlockRefused)), "{report:?}");
    assert!(refused.message().contains("the nearest has 131072"), "{refused}");
    assert!(service.lock().objects.is_empty());
    let (report, notes) = copy_in(Some(128 << 10));
    let says_blocks = |notes: &[String]| notes.iter().any(|note| note.contains("blocks"));
    assert!(report.error.is_none() && !says_blocks(&notes), "{report:?} {notes:?}");
    // Nobody asked, and what is chosen fits, or is told.
    let (report, notes) = copy_in(None);
    assert!(report.error.is_none() && !says_blocks(&notes), "{report:?} {notes:?}");
    let small =
        |says| Properties { block_bytes: Some(BlockBytes { largest: 200 << 10, ..object::PART_BYTES }), ..says };
    let narrow = Arc::new(Saying(store(&service), small));
    let (report, notes) = copy_with(narrow, from, at("bucket/large"), CopyOptions::default());
    assert!(report.error.is_none() && notes.iter().any(|note| note.contains("blocks have 131072 bytes")), "{notes:?}");
    expect_only(&service, &files[..1]);
}

fn listed(files: &mut Files, path: &str, recursive: bool) -> Vec<(String, ItemKind, u64)> {
    let mut entries = Vec::new();
    let mut each = |entry: ListEntry| {
        assert!(entry.error.is_none(), "{entry:?}");
        entries.push((String::from_utf8(entry.path).unwrap(), entry.kind, entry.size));
    };
    files.list(path.as_bytes(), recursive, &mut each).unwrap();
    entries
}

#[test]
fn verbs_that_read_work_in_a_store_and_the_others_say_why_not() {
    let ((place, filled), service) = (filled(), Service::default());
    copy(store(&service), here(&place.path().join("from/")), at("bucket"));
    let mut files = Files::open(&at("bucket"), &EndOptions::default(), &context(store(&service)), &|_| {}).unwrap();
    let own = |entries: &[(&str, ItemKind, u64)]| {
        entries.iter().map(|(path, kind, size)| ((*path).to_owned(), *kind, *size)).collect::<Vec<_>>()
    };
    let (file, directory, large) = (ItemKind::File, ItemKind::Directory, 40 << 20);
    let all = [("d/e/empty", file, 0), ("d/small", file, 5), ("large", file, large)];
    assert_eq!(listed(&mut files, "bucket", true), own(&all));
    assert_eq!(listed(&mut files, "bucket/", false), own(&[("d", directory, 0), ("large", file, large)]));
    assert_eq!(listed(&mut files, "bucket/large", false), own(&[("large", file, large)]));
    assert_eq!(files.list(b"nowhere", false, &mut |_| {}).unwrap_err().code, ErrorCode::NotFound);
    assert_eq!(files.stat(b"bucket/d").map(|found| (found.path, found.kind)).unwrap(), (b"d".to_vec(), directory));
    assert_eq!(files.stat(b"bucket/large").map(|found| (found.path, found.size)).unwrap(), (b"large".to_vec(), large));
    assert_eq!(files.stat(b"nowhere").unwrap_err().code, ErrorCode::NotFound);
    let mut used = Vec::new();
    let mut each = |entry: UsageEntry| match entry {
        UsageEntry::Itself(entry) => used.push((String::new(), entry.kind, entry.size)),
        UsageEntry::Below(entry) => used.push((String::from_utf8(entry.path).unwrap(), entry.kind, entry.size)),
    };
    files.usage(b"bucket", &mut each).unwrap();
    assert_eq!((&used[0].1, &used[1..]), (&directory, &own(&all)[..]));
    let mut itself = Vec::new();
    files
        .usage(b"bucket/large", &mut |entry| {
            itself.push(matches!(entry, UsageEntry::Itself(entry) if entry.size == large))
        })
        .unwrap();
    assert_eq!(itself, [true]);
    let mut sums = BTreeMap::new();
    let mut each = |sum: SumEntry| {
        sums.insert(sum.path, sum.result.unwrap().blake3);
    };
    files.sum(b"bucket", Digests::BLAKE3, &mut each).unwrap();
    for (name, content) in &filled {
        assert_eq!(sums[name.as_bytes()], Some(*blake3::hash(content).as_bytes()), "{name}");
    }
    assert_eq!(sums.len(), filled.len());
    let mut one = Vec::new();
    files.sum(b"bucket/d/small", Digests::BLAKE3, &mut |sum| one.push(sum.path)).unwrap();
    assert_eq!(one, [b"small".to_vec()]);
    let range = ReadRange { offset: (1 << 20) - 7, length: 2 << 20, identity: None };
    let (mut facts, mut bytes) = (None, Vec::new());
    let mut take = |event: ReadEvent<'_>| {
        match event {
            ReadEvent::Opened(found) => facts = Some(found),
            ReadEvent::Bytes(part) => bytes.extend_from_slice(part),
        }
        true
    };
    files.read(b"bucket/large", range, &mut take).unwrap();
    let whole = &filled.iter().find(|(name, _)| *name == "large").unwrap().1;
    assert_eq!(facts.map(|facts| facts.size), Some(large));
    assert!(bytes[..] == whole[(1 << 20) - 7..][..2 << 20], "another range was read");
    expect_no_changes(&mut files, "");
    expect_only(&service, &filled);
    let mut filters = Filters::new(false);
    filters.add(RuleForm::Exclude, b"/d/e/").unwrap();
    filters.files.size_max = Some(5);
    files.leave_out(&filters).unwrap();
    assert_eq!(listed(&mut files, "bucket", true), own(&[("d/small", file, 5)]));
    assert_eq!(listed(&mut files, "bucket", false), own(&[("d", directory, 0)]));
    assert_eq!(listed(&mut files, "bucket/large", false), own(&[]));
    let mut sums = Vec::new();
    files.sum(b"bucket", Digests::BLAKE3, &mut |sum| sums.push(sum.path)).unwrap();
    assert_eq!(sums, [b"d/small".to_vec()]);
}

/// Verbs that change something say why they cannot; `root` is what paths begin with.
fn expect_no_changes(files: &mut Files, root: &str) {
    let at = |path: &str| format!("{root}bucket{path}").into_bytes();
    let refused = [
        files.remove(&at("/large"), true, &mut |_| {}).map(drop),
        files.collect(&at(""), Duration::ZERO, true, &mut |_| {}).map(drop),
        files.make_dir(&at("/new"), true),
        files.rename(&at("/large"), &at("/small")),
    ];
    for result in refused {
        let why = result.unwrap_err();
        assert!(why.code == ErrorCode::Unsupported && why.message().contains("objects is a store"), "{why}");
    }
}

#[test]
fn dry_run_counts_in_a_store_what_a_copy_would_bring() {
    let ((place, _), service) = (filled(), Service::default());
    copy(store(&service), here(&place.path().join("from/")), at("bucket"));
    let options = CopyOptions { dry_run: true, ..CopyOptions::default() };
    let back = place.path().join("back");
    let (dry, _) = copy_with(store(&service), at("bucket/"), here(&back), options.clone());
    assert!(dry.error.is_none() && !back.exists(), "{dry:?}");
    let report = copy(store(&service), at("bucket/"), here(&back));
    assert_eq!(
        (dry.counts.files, dry.counts.bytes, dry.counts.files_failed),
        (report.counts.files, report.counts.bytes, 0)
    );
    let (dry, _) = copy_with(store(&service), here(&back), at("new"), options);
    assert!(dry.error.is_none() && dry.counts.files == 3 && service.lock().objects.len() == 3, "{dry:?}");
}

struct Empty(Service, Arc<dyn Store>);

impl Empty {
    fn over(hook: impl Hook + 'static) -> Box<dyn Fixture> {
        let service = Service::default();
        let over = Arc::new(Over::new(store(&service), Arc::new(hook)));
        Box::new(Self(service, over))
    }
}

impl Fixture for Empty {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.1)
    }

    fn alter(&self, path: &[u8], content: &[u8]) -> bool {
        self.0.put(path, content, objects::Overwrite::Anything).unwrap();
        true
    }

    fn leftovers(&self) -> Option<u64> {
        let state = self.0.lock();
        let journals = state.objects.keys().filter(|key| key.windows(9).any(|part| part == b".carrack-"));
        Some((state.uploads.len() + journals.count()) as u64)
    }
}

struct Liar(Option<Call>);

impl Hook for Liar {
    fn before(&self, call: Call, _bytes: u64) -> Act {
        if self.0 == Some(call) { Act::Pretend } else { Act::Go }
    }
}

/// Where blocks are parts, one that is never ended is missing.
#[test]
fn object_store_passes_the_suite_and_one_that_lies_of_the_end_of_a_block_does_not() {
    assert_eq!(check(&|| Empty::over(Liar(None))), []);
    let found = check(&|| Empty::over(Liar(Some(Call::EndBlock))));
    assert!(found.iter().any(|finding| finding.rule == "a large file comes back"), "{found:#?}");
}

/// What it has, it is found to lie about.
#[test]
fn object_store_that_lies_in_any_method_of_its_own_is_found() {
    // It has no links, holes or permissions, deletes and syncs nothing: a store in memory is tried by these.
    let absent = [
        Call::Attributes,
        Call::LinkTarget,
        Call::RemoveSource,
        Call::IsZeros,
        Call::IsHole,
        Call::WillRead,
        Call::WasRead,
        Call::BeginSmall,
        Call::Standing,
        Call::FirstBytes,
        Call::Content,
        Call::SetAttributes,
        Call::List,
        Call::Delete,
        Call::MakeDirectory,
        Call::SyncGroup,
        Call::ApplyDirectories,
        Call::AwaitsSync,
        Call::RemoveEntry,
        Call::WriteGrowing,
        Call::FinishGrowing,
        Call::TakeOver,
        Call::ReadPart,
    ];
    let is_unseen = |call: &&Call| !absent.contains(call) && check(&|| Empty::over(Liar(Some(**call)))).is_empty();
    let unseen: Vec<_> = Call::ALL.iter().filter(is_unseen).collect();
    assert_eq!(unseen, [] as [&Call; 0], "nobody notices these lies");
}
