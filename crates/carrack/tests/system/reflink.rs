//! Copies within a file system that shares blocks between files: nothing is read, and the copy is whole or not there.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use carrack_faults::image::{Image, Kind};

use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::{Ran, Sandbox, tree, wait_until};

const MIB: usize = 1 << 20;
const SHARING: [Kind; 2] = [Kind::Xfs, Kind::Btrfs];

/// An image with a source in it.
struct Scene {
    sandbox: Sandbox,
    image: Image,
}

impl Scene {
    fn new(kind: Kind, mib: u64) -> Option<Self> {
        let sandbox = Sandbox::new();
        let image = Image::new(&sandbox.path(""), "disk", kind, mib)?;
        fs::create_dir(image.path().join("from")).unwrap();
        Some(Self { sandbox, image })
    }

    fn at(&self, path: &str) -> PathBuf {
        self.image.path().join(path)
    }

    fn copy(&self, verb: &str, more: &[&str]) -> Ran {
        let (from, to) = (format!("{}/", self.at("from").display()), self.at("to").display().to_string());
        let words = [verb, "--json", &from, &to].into_iter().chain(more.iter().copied());
        self.sandbox.ok(words)
    }
}

fn shared(ran: &Ran) -> (u64, u64) {
    let count = |name: &str| ran.summary()[name].as_u64().unwrap();
    (count("files_shared"), count("bytes_shared"))
}

/// Two large files, one of them with holes, and a small one.
fn fill(from: &Path) {
    fs::write(from.join("large"), tree::bytes(9 * MIB + 17, 1)).unwrap();
    let sparse = File::create(from.join("sparse")).unwrap();
    sparse.set_len(16 * MIB as u64).unwrap();
    sparse.write_all_at(&tree::bytes(MIB, 2), 3 * MIB as u64).unwrap();
    fs::write(from.join("small"), "small").unwrap();
    fs::set_permissions(from.join("large"), fs::Permissions::from_mode(0o440)).unwrap();
    sparse.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_nanos(1_500_000_000_123_456_789)).unwrap();
}

#[track_caller]
fn check_same(from: &Path, to: &Path) {
    for name in ["large", "sparse", "small"] {
        let (one, other) = (from.join(name), to.join(name));
        assert!(fs::read(&one).unwrap() == fs::read(&other).unwrap(), "{name} is another");
        let [one, other] = [one, other].map(|path| fs::metadata(path).unwrap());
        assert_eq!((one.mode(), one.mtime(), one.mtime_nsec()), (other.mode(), other.mtime(), other.mtime_nsec()));
    }
    assert!(fs::metadata(to.join("sparse")).unwrap().blocks() * 512 < 5 * MIB as u64, "its holes are filled");
}

#[test]
fn large_files_share_their_blocks_with_their_sources() {
    for kind in SHARING {
        let Some(scene) = Scene::new(kind, kind.smallest_mib()) else { continue };
        let (from, to) = (scene.at("from"), scene.at("to"));
        fill(&from);
        let ran = scene.copy("copy", &[]);
        check_same(&from, &to);
        assert_eq!(shared(&ran), (2, (25 * MIB + 17) as u64), "{kind:?}");
        assert_eq!(ran.summary()["files_verified"], 1, "of what was not read nothing is known");
        // What is written to one is not in the other.
        fs::set_permissions(from.join("large"), fs::Permissions::from_mode(0o640)).unwrap();
        let before = fs::read(to.join("large")).unwrap();
        File::options().write(true).open(from.join("large")).unwrap().write_all_at(b"other", MIB as u64).unwrap();
        assert!(fs::read(to.join("large")).unwrap() == before);
        // A changed file is replaced, the old one is kept, and what only the destination has goes.
        fs::write(to.join("only there"), "").unwrap();
        let ran = scene.copy("sync", &["--delete", "-b"]);
        assert_eq!(shared(&ran), (1, (9 * MIB + 17) as u64));
        check_same(&from, &to);
        assert!(fs::read(to.join("large~")).unwrap() == before && !to.join("only there").exists());
        let ran = scene.copy("sync", &["--delete"]);
        assert_eq!((shared(&ran), &ran.summary()["files"]), ((0, 0), &0.into()));
        let said = scene.sandbox.ok(["copy", &format!("{}/", from.display()), scene.at("again").to_str().unwrap()]);
        assert!(said.stderr.contains("verified: 1 file, BLAKE3"), "{}", said.stderr);
        assert!(said.stderr.contains("shared with the source: 2 files, "), "{}{}", said.stdout, said.stderr);
    }
}

#[test]
fn nothing_is_shared_where_bytes_are_to_be_read_or_their_digests_told() {
    let Some(scene) = Scene::new(Kind::Btrfs, 200) else { return };
    fill(&scene.at("from"));
    let manifest = scene.sandbox.path("manifest").display().to_string();
    for more in [
        &["--reflink", "never"][..],
        &["--verify", "disk"],
        &["--verify", "source"],
        &["--digest", "blake3,crc32c"],
        &["--manifest", &manifest],
        &["--growing=snapshot"],
    ] {
        let _ = fs::remove_dir_all(scene.at("to"));
        let ran = scene.copy("copy", more);
        assert_eq!(shared(&ran), (0, 0), "{more:?}");
        check_same(&scene.at("from"), &scene.at("to"));
    }
    let sums = fs::read_to_string(manifest).unwrap();
    assert_eq!(sums.lines().count(), 3, "{sums}");
    // What is to be deleted at the source was verified.
    let _ = fs::remove_dir_all(scene.at("to"));
    let ran = scene.copy("copy", &["--remove-source-files"]);
    assert_eq!((shared(&ran), &ran.summary()["sources_removed"]), ((0, 0), &3.into()));
}

#[test]
fn where_nothing_can_be_shared_files_are_copied() {
    let Some(scene) = Scene::new(Kind::Ext4, 200) else { return };
    let from = scene.at("from");
    for number in 0..12 {
        fs::write(from.join(format!("{number}")), tree::bytes(2 * MIB, number)).unwrap();
    }
    fill(&from);
    let ran = scene.copy("copy", &[]);
    assert_eq!((shared(&ran), &ran.summary()["files"]), ((0, 0), &15.into()));
    check_same(&from, &scene.at("to"));
    let elsewhere = scene.sandbox.path("elsewhere");
    scene.sandbox.ok(["copy", &format!("{}/", from.display()), elsewhere.to_str().unwrap()]);
    check_same(&from, &elsewhere);
    assert!(fs::read(elsewhere.join("11")).unwrap() == tree::bytes(2 * MIB, 11));
}

/// Blocks that are shared take no room: a file goes where there is none for a second one.
#[test]
fn shared_blocks_need_no_room() {
    let Some(scene) = Scene::new(Kind::Xfs, 340) else { return };
    let large = scene.at("from/large");
    fs::write(&large, tree::bytes(150 * MIB, 5)).unwrap();
    let fill = tree::bytes((scene.image.free_bytes() as usize).saturating_sub(60 * MIB), 6);
    fs::write(scene.at("filled"), fill).unwrap();
    let ran = scene.copy("copy", &[]);
    assert_eq!(shared(&ran), (1, 150 << 20));
    fs::remove_file(scene.at("to/large")).unwrap();
    let words =
        ["copy", "--reflink", "never", large.to_str().unwrap(), scene.at("to").to_str().unwrap()].map(str::to_owned);
    let refused = scene.sandbox.run(words);
    assert!(refused.code != 0 && refused.stderr.contains("too few"), "{}", refused.stderr);
    assert!(!scene.at("to/large").exists() && scene.sandbox.parts(scene.at("to")).is_empty());
}

/// A file that is written to while it is copied: what gets its name was the source at one moment.
#[test]
fn source_that_is_being_written_is_never_shared_half() {
    let Some(scene) = Scene::new(Kind::Btrfs, 200) else { return };
    let (path, to, over) = (scene.at("from/large"), scene.at("to"), AtomicBool::new(false));
    fs::write(&path, vec![0; 2 * MIB]).unwrap();
    let ran: Vec<_> = std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = File::options().write(true).open(&path).unwrap();
            let is_over = || over.load(Ordering::Relaxed);
            for byte in 1..=20 {
                // As soon as a part file is there, whose blocks are being shared.
                while !is_over() && scene.sandbox.parts(&to).is_empty() {}
                file.write_all_at(&vec![byte; 2 * MIB], 0).unwrap();
            }
        });
        let copy = |_| {
            let from = format!("{}/", scene.at("from").display());
            let ran = scene.sandbox.run(["copy", "--json", &from, to.to_str().unwrap()]);
            (ran, fs::read(to.join("large")).ok())
        };
        let ran = (0..8).map(copy).collect();
        over.store(true, Ordering::Relaxed);
        ran
    });
    for (ran, copied) in &ran {
        let is_one = |copied: &Vec<u8>| copied.len() == 2 * MIB && copied.iter().all(|byte| *byte == copied[0]);
        assert!(copied.as_ref().is_none_or(is_one), "a mixture");
        assert!(ran.code == 0 || ran.stdout.contains("source-changed"), "{}", ran.stdout);
    }
    assert!(ran.iter().any(|(ran, _)| ran.code == 0 && shared(ran).0 == 1), "none was shared");
}

#[test]
fn killed_copy_leaves_whole_files_and_the_next_one_completes_it() {
    let Some(scene) = Scene::new(Kind::Btrfs, 300) else { return };
    let files = 60;
    for number in 0..files {
        fs::write(scene.at(&format!("from/{number}")), tree::bytes(2 * MIB, number)).unwrap();
    }
    let check = || {
        for number in 0..files {
            if let Ok(copied) = fs::read(scene.at(&format!("to/{number}"))) {
                assert!(copied == tree::bytes(2 * MIB, number), "{number} is not whole");
            }
        }
    };
    for entries in [1, 5, 20, 40] {
        let _ = fs::remove_dir_all(scene.at("to"));
        let to = scene.at("to");
        let mut command = scene.sandbox.carrack();
        command.args(["copy", "-q", "--durable", "each", &format!("{}/", scene.at("from").display())]).arg(&to);
        let mut running = Running::start(&mut command);
        let has_come = || fs::read_dir(&to).is_ok_and(|there| there.count() >= entries);
        wait_until("some entries", || !running.is_running() || has_come());
        if running.is_running() {
            signal(running.id(), "KILL");
        }
        running.end();
        check();
        scene.copy("copy", &[]);
        check();
        assert_eq!(fs::read_dir(&to).unwrap().count(), files as usize, "something is left, or missing");
    }
}
