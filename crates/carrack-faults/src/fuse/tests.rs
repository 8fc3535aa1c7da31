//! The file system against the standard library's calls.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;

use super::*;
use crate::can_mount;

struct Scene {
    mounted: FaultFs,
    _directory: tempfile::TempDir,
}

fn scene(features: Features) -> Option<Scene> {
    if !can_mount("a FUSE file system") {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let (backing, at) = (directory.path().join("backing"), directory.path().join("at"));
    fs::create_dir(&backing).unwrap();
    fs::create_dir(&at).unwrap();
    Some(Scene { mounted: FaultFs::mount(&backing, &at, features).unwrap(), _directory: directory })
}

impl Scene {
    fn path(&self, name: &str) -> PathBuf {
        self.mounted.path().join(name)
    }
}

#[test]
fn fuse_without_faults_is_a_file_system() {
    let Some(scene) = scene(Features::default()) else { return };
    let bytes: Vec<u8> = (0..1_000_000u32).map(|at| (at % 253) as u8).collect();
    fs::create_dir(scene.path("d")).unwrap();
    fs::write(scene.path("d/a"), &bytes).unwrap();
    assert!(fs::read(scene.path("d/a")).unwrap() == bytes);
    fs::rename(scene.path("d"), scene.path("e")).unwrap();
    std::os::unix::fs::symlink("a", scene.path("e/link")).unwrap();
    assert!(fs::read(scene.path("e/link")).unwrap() == bytes);
    let mut file = fs::OpenOptions::new().append(true).open(scene.path("e/a")).unwrap();
    file.write_all(b"more").unwrap();
    file.sync_all().unwrap();
    let when = std::time::UNIX_EPOCH + Duration::new(1_000_000, 7);
    file.set_modified(when).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 1_000_004);
    assert_eq!(fs::metadata(scene.path("e/a")).unwrap().modified().unwrap(), when);
    fs::rename(scene.path("e/a"), scene.path("e/link")).unwrap();
    let names: Vec<_> = fs::read_dir(scene.path("e")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["link"]);
    // A file that is open outlives its name.
    fs::remove_file(scene.path("e/link")).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 1_000_004);
    fs::remove_dir(scene.path("e")).unwrap();
    assert!(scene.mounted.count(Call::Write) > 0 && scene.mounted.hits() == 0);
}

#[test]
fn fuse_calls_fail_when_they_were_told_to() {
    let Some(scene) = scene(Features { uncached: true, ..Features::default() }) else { return };
    let path = scene.path("file");
    fs::write(&path, vec![7; 100_000]).unwrap();
    let fail = |call, when, error| {
        scene.mounted.clear();
        scene.mounted.fault_on("file", call, when, Fault::Fail(error));
    };
    fail(Call::Read, When::Offset(50_000), Errno::IO);
    let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    assert_eq!(file.read_at(&mut [0; 1000], 49_000).unwrap(), 1000);
    assert_eq!(file.read_at(&mut [0; 1000], 49_001).unwrap_err().raw_os_error(), Some(Errno::IO.raw_os_error()));
    fail(Call::Write, When::Nth(2), Errno::NOSPC);
    let results: Vec<bool> = (0..3).map(|_| file.write_at(b"x", 0).is_ok()).collect();
    assert_eq!(results, [true, false, true]);
    fail(Call::Sync, When::From(1), Errno::DQUOT);
    assert!(file.sync_data().is_err());
    fail(Call::Rename, When::Always, Errno::IO);
    assert!(fs::rename(&path, scene.path("file2")).is_err());
    assert_eq!(scene.mounted.hits(), 1);
    scene.mounted.clear();
    scene.mounted.stale_once(Call::Read);
    assert!(fs::read(&path).is_err() && fs::read(&path).is_ok());
}

#[test]
fn fuse_writes_less_lies_and_rots() {
    let Some(scene) = scene(Features { uncached: true, ..Features::default() }) else { return };
    let path = scene.path("file");
    scene.mounted.fault(Call::Write, When::Nth(1), Fault::Short(10));
    scene.mounted.fault(Call::Write, When::Nth(2), Fault::Lie);
    let mut file = fs::File::create(&path).unwrap();
    assert_eq!(file.write(&[1; 100]).unwrap(), 10);
    assert_eq!(file.write(&[2; 100]).unwrap(), 100);
    let mut expected = vec![1; 10];
    expected.extend([0; 100]);
    assert_eq!(fs::read(&path).unwrap(), expected);
    scene.mounted.fault(Call::Read, When::Offset(5), Fault::Rot);
    expected[5] ^= 0x10;
    assert_eq!(fs::read(&path).unwrap(), expected);
}

#[test]
fn fuse_hangs_until_it_is_released() {
    let Some(scene) = scene(Features::default()) else { return };
    fs::write(scene.path("file"), b"x").unwrap();
    scene.mounted.hang();
    let path = scene.path("file");
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        fs::File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    });
    while scene.mounted.hung() == 0 {
        std::thread::yield_now();
    }
    assert!(!reader.is_finished());
    scene.mounted.release();
    assert_eq!(reader.join().unwrap(), b"x");
}

#[test]
fn fuse_lets_go_held_calls_one_after_the_other() {
    let Some(scene) = scene(Features::default()) else { return };
    let remove = |name: &str| {
        fs::write(scene.path(name), b"x").unwrap();
        let path = scene.path(name);
        move || fs::remove_file(path).unwrap()
    };
    fs::create_dir(scene.path("a")).unwrap();
    fs::create_dir(scene.path("b")).unwrap();
    let [first, second, free] = ["a/held", "b/held", "free"].map(remove);
    scene.mounted.hold("held", Call::Unlink);
    free();
    let first = std::thread::spawn(first);
    while scene.mounted.held() < 1 {
        std::thread::yield_now();
    }
    let second = std::thread::spawn(second);
    while scene.mounted.held() < 2 {
        std::thread::yield_now();
    }
    scene.mounted.let_one_go();
    first.join().unwrap();
    assert!(!second.is_finished());
    scene.mounted.release();
    second.join().unwrap();
}

#[test]
fn file_systems_differ() {
    let features = Features { rename_refuses: true, folds_case: true, whole_seconds: true, ..Features::default() };
    let Some(one) = scene(features) else { return };
    fs::write(one.path("Name"), b"1").unwrap();
    assert_eq!(fs::read(one.path("nAME")).unwrap(), b"1");
    fs::write(one.path("other"), b"2").unwrap();
    assert_eq!(fs::rename(one.path("other"), one.path("Name")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    let file = fs::File::open(one.path("other")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + Duration::new(5, 9)).unwrap();
    assert_eq!(file.metadata().unwrap().modified().unwrap(), std::time::UNIX_EPOCH + Duration::from_secs(5));

    let Some(two) = scene(Features { decomposes: true, no_direct: true, no_allocate: true, ..Features::default() })
    else {
        return;
    };
    let file = fs::File::create(two.path("caf\u{e9}")).unwrap();
    let name = fs::read_dir(two.mounted.path()).unwrap().next().unwrap().unwrap().file_name();
    assert_eq!(name.to_str(), Some("cafe\u{301}"));
    assert!(two.path("caf\u{e9}").exists());
    assert!(!carrack_sys::file::preallocate(&file, 4096).unwrap());
}

#[test]
fn fuse_folds_names_in_one_directory_and_says_so() {
    let Some(scene) = scene(Features { folds_case_in: Some("folds"), ..Features::default() }) else { return };
    for (directory, is_one) in [("plain", false), ("folds", true), ("folds/below", true)] {
        fs::create_dir(scene.path(directory)).unwrap();
        fs::write(scene.path(directory).join("name"), b"1").unwrap();
        assert_eq!(scene.path(directory).join("NAME").exists(), is_one, "{directory}");
        let open = fs::File::open(scene.path(directory)).unwrap();
        let flags = rustix::fs::ioctl_getflags(&open).unwrap().bits();
        assert_eq!(flags, if is_one { 0x4000_0000 } else { 0 }, "{directory}");
    }
}

/// Up to the knee several calls are answered as fast as one; beyond it each takes longer.
#[test]
fn fuse_under_load_answers_later_the_more_calls_there_are() {
    let Some(scene) = scene(Features { many_at_once: true, ..Features::default() }) else { return };
    for file in 0..32 {
        fs::create_dir(scene.path(&format!("d{file}"))).unwrap();
        fs::write(scene.path(&format!("d{file}/f")), "").unwrap();
    }
    let each = Duration::from_millis(20);
    scene.mounted.load(Load { calls: vec![Call::Open], each, knee: 4 });
    let time = |threads: usize| {
        let start = std::time::Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let path = scene.path(&format!("d{thread}/f"));
                scope.spawn(move || drop(fs::File::open(path).unwrap()));
            }
        });
        start.elapsed()
    };
    // The fastest of some: what else the host does takes its time, too.
    let four = (0..20).map(|_| time(4)).min().unwrap_or_default();
    let (one, many) = (time(1), time(32));
    assert!(one >= each && four < 3 * each, "{one:?} {four:?}");
    assert!(many >= 5 * each && scene.mounted.loaded_most() > 16, "{many:?} {}", scene.mounted.loaded_most());
}
