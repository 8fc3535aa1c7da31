//! Large files that have changed: of what stands at their names only the blocks that differ are sent, and whatever
//! becomes of the old file, the new one is whole or not there.

use std::fs::{self, File, hard_link};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::counted::CountedNode;
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::{Ran, tree, wait_until};

const MIB: usize = 1 << 20;
const LARGE: usize = 24 * MIB + 17;
const BLOCK: usize = 256 << 10;
/// Of the blocks of [`LARGE`]: the power of two above its square root.
pub const BLOCK_CHUNK: usize = 8 << 10;

fn scene() -> CountedNode {
    CountedNode::start(&["--block=256K", "--streams=2"])
}

impl CountedNode {
    fn old(&self, name: &str, content: &[u8]) {
        self.sandbox.write(format!("root/to/{name}"), content);
    }

    fn new_file(&self, name: &str, content: &[u8]) {
        self.sandbox.write(format!("tree/{name}"), content);
    }

    #[track_caller]
    fn check(&self, name: &str, content: &[u8]) {
        assert!(fs::read(self.sandbox.path(format!("root/to/{name}"))).unwrap() == content, "{name} is another");
        let left: Vec<_> = self.sandbox.parts("root/to");
        assert!(left.is_empty(), "{left:?}");
    }
}

fn taken_over(ran: &Ran) -> u64 {
    ran.summary()["bytes_taken_over"].as_u64().unwrap()
}

#[test]
fn blocks_that_differ_are_all_that_is_sent() {
    let scene = scene();
    let old = tree::bytes(LARGE, 1);
    for verify in ["wire", "disk", "source"] {
        for digest in ["blake3", "xxh128", "blake3,crc32c"] {
            let new = tree::changed(&old, BLOCK, &[0, 40, 41, 96]);
            scene.old("large", &old);
            scene.new_file("large", &new);
            let (ran, sent) = scene.copy(&["--verify", verify, "--digest", digest]);
            // Of a block that differs, the chunks that differ; the last block, which is short, has none.
            assert_eq!(taken_over(&ran), (LARGE - 3 * BLOCK_CHUNK - 17) as u64, "{verify} {digest}");
            assert_eq!(ran.summary()["bytes_resumed"], 0);
            assert!(sent < (4 * BLOCK_CHUNK + MIB / 8) as u64, "{verify} {digest}: {sent} bytes");
            scene.check("large", &new);
        }
    }
    scene.old("large", &old);
    let (ran, sent) = scene.copy(&["--delta=never"]);
    assert!(taken_over(&ran) == 0 && sent > LARGE as u64, "{sent} bytes");
    // Without a digest nothing can be compared.
    scene.old("large", &old);
    let (ran, sent) = scene.copy(&["--delta=always", "--verify=none"]);
    assert!(taken_over(&ran) == 0 && sent > LARGE as u64, "{sent} bytes");
    scene.old("large", &old);
    let shown = scene.sandbox.ok(scene.words(&[]).iter().filter(|word| *word != "--json")).stderr;
    assert!(shown.contains("of changed files were there already, and were not sent"), "{shown}");
}

#[test]
fn old_files_of_any_kind_and_size_are_replaced() {
    let scene = scene();
    let new = tree::bytes(LARGE, 1);
    scene.new_file("large", &new);
    let longer = [&new[..], &[7; 3 * MIB]].concat();
    let shifted = [&[1], &new[..LARGE - 1]].concat();
    let cases: [(&[u8], usize); 8] = [
        (b"", 0),
        (b"short", 0),
        (&new[..BLOCK_CHUNK - 1], 0),
        (&new[..BLOCK - 1], BLOCK - BLOCK_CHUNK),
        (&new[..10 * BLOCK + 5], 10 * BLOCK),
        // A file that has grown: of the block in which it ended, what it had.
        (&new[..10 * BLOCK + 3 * BLOCK_CHUNK + 5], 10 * BLOCK + 3 * BLOCK_CHUNK),
        (&longer, LARGE),
        // Nothing of it is where it was.
        (&shifted, 0),
    ];
    for (old, expected) in cases {
        scene.old("large", old);
        let (ran, sent) = scene.copy(&["--no-resume"]);
        assert_eq!(taken_over(&ran), expected as u64, "{} bytes", old.len());
        assert!(sent < (LARGE - expected + MIB) as u64, "{} bytes: {sent}", old.len());
        scene.check("large", &new);
    }
    // Holes stay holes, and an old one is not taken for content.
    let there = scene.sandbox.path("root/to/large");
    File::create(&there).unwrap().set_len(LARGE as u64).unwrap();
    scene.copy(&["--no-resume"]);
    scene.check("large", &new);
    let sparse = File::create(scene.sandbox.path("tree/large")).unwrap();
    sparse.set_len(LARGE as u64).unwrap();
    sparse.write_all_at(&new[..BLOCK], 3 * MIB as u64).unwrap();
    scene.copy(&["--no-resume"]);
    assert!(fs::read(&there).unwrap() == fs::read(scene.sandbox.path("tree/large")).unwrap());
    assert!(fs::metadata(&there).unwrap().blocks() * 512 < 2 * MIB as u64, "holes were filled");
    // What is no file has no content, and other names of a file keep theirs.
    fs::remove_file(&there).unwrap();
    symlink("elsewhere", &there).unwrap();
    scene.old("elsewhere", &new);
    scene.new_file("large", &new);
    let (ran, _) = scene.copy(&["--no-resume"]);
    assert_eq!(taken_over(&ran), 0);
    scene.check("large", &new);
    let old = tree::changed(&new, BLOCK, &[5]);
    scene.old("large", &old);
    hard_link(&there, scene.sandbox.path("root/to/other")).unwrap();
    let (ran, _) = scene.copy(&["--no-resume"]);
    assert_eq!(taken_over(&ran), (LARGE - BLOCK_CHUNK) as u64);
    scene.check("large", &new);
    scene.check("other", &old);
}

/// Set when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What the old file holds says nothing of what is right: it is compared block by block, whatever its time says.
#[test]
fn old_file_that_rots_or_is_altered_meanwhile_is_never_part_of_the_new_one() {
    let scene = scene();
    let new = tree::bytes(LARGE, 1);
    scene.new_file("large", &new);
    let there = scene.sandbox.path("root/to/large");
    for round in 0..6_u64 {
        scene.old("large", &tree::changed(&new, BLOCK, &[2, 60]));
        let altered = File::options().write(true).open(&there).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut written = round;
                while !over.load(Ordering::Relaxed) {
                    written += 1;
                    let at = written.wrapping_mul(0x9e37_79b9_7f4a_7c15) % LARGE as u64;
                    altered.write_all_at(&written.to_le_bytes(), at).unwrap();
                }
                written
            });
            // Also when the copy does not end in time.
            let end = Over(&over);
            let ran = scene.sandbox.run(scene.words(&["--no-resume"]));
            drop(end);
            assert_eq!(ran.code, 0, "round {round}: {}", ran.stderr);
            assert!(writer.join().unwrap() > round + 1);
        });
        scene.check("large", &new);
    }
}

/// A page here and there of a large file costs those pages, whatever a block has; and what has changed all over is sent
/// once.
#[test]
fn pieces_of_a_block_are_sent_where_the_rest_is_there() {
    let scene = scene();
    let old = tree::bytes(LARGE, 1);
    let pages = |pages: &[usize]| tree::changed(&old, 4096, pages);
    let cases: [(Vec<u8>, usize); 5] = [
        (pages(&[100]), 1),
        // Page 63 is the last of a block.
        (pages(&[60, 61, 62, 63, 64, 65, 66, 67]), 4),
        (pages(&(0..6144).step_by(64).collect::<Vec<_>>()), 96),
        // Each chunk of one block: there is nothing to be saved of it.
        (pages(&(64..128).collect::<Vec<_>>()), BLOCK / BLOCK_CHUNK),
        ([&tree::bytes(LARGE - 17, 3), &old[LARGE - 17..]].concat(), LARGE / BLOCK_CHUNK),
    ];
    for (number, (new, chunks)) in cases.iter().enumerate() {
        for flags in ["--durable=group", "--inplace", "-z", "--verify=disk"] {
            scene.old("large", &old);
            scene.new_file("large", new);
            let (ran, sent) = scene.copy(&[flags]);
            let saved = (LARGE / BLOCK_CHUNK - chunks) * BLOCK_CHUNK + LARGE % BLOCK_CHUNK;
            assert_eq!(taken_over(&ran), saved as u64, "case {number}, {flags}");
            assert!(sent < (chunks * BLOCK_CHUNK + MIB / 8 + LARGE / 100) as u64, "case {number}, {flags}: {sent}");
            assert_eq!(ran.summary()["faults"]["digest_mismatches"], 0);
            scene.check("large", new);
        }
    }
}

/// A copy that is cut off loses neither what it had sent, nor what it had taken over.
#[test]
fn delta_that_is_cut_off_is_taken_up() {
    let scene = scene();
    let old = tree::bytes(LARGE, 1);
    let half = 0..48;
    let new = [&tree::bytes(half.len() * BLOCK, 2), &old[half.len() * BLOCK..]].concat();
    scene.old("large", &old);
    scene.new_file("large", &new);
    for (end, first) in [("TERM", "--delta=auto"), ("KILL", "--delta=auto"), ("TERM", "--delta=never")] {
        let before = scene.proxy.carried().up;
        let mut copying = Running::start(scene.sandbox.carrack().args(scene.words(&["--bwlimit=3M", first])));
        let enough = (half.len() * BLOCK / 2) as u64;
        wait_until("half of what differs was sent", || {
            scene.proxy.carried().up - before > enough || !copying.is_running()
        });
        assert!(copying.is_running(), "{}", copying.end().stderr);
        signal(copying.id(), end);
        copying.end();
        let (ran, sent) = scene.copy(&[]);
        // What was taken over is claimed by the marker in its time: by then an earlier attempt has brought it.
        let resumed = ran.summary()["bytes_resumed"].as_u64().unwrap();
        assert!(resumed > 0, "{end}: {}", ran.stdout);
        // What was not even begun comes from what stands at the name.
        assert!(first == "--delta=auto" || taken_over(&ran) > LARGE as u64 / 4, "{end}: {}", ran.stdout);
        assert!(resumed + taken_over(&ran) > (LARGE - half.len() * BLOCK) as u64, "{end}: {}", ran.stdout);
        assert!(sent < (half.len() * BLOCK) as u64 - enough / 2, "{end}: {sent} bytes");
        scene.check("large", &new);
        scene.old("large", &old);
    }
}

/// Beside what stands there, a file that is the same already is not touched, and one that is new is sent.
#[test]
fn sync_sends_of_each_file_what_differs() {
    let scene = scene();
    let contents: Vec<Vec<u8>> = (0..4).map(|number| tree::bytes(4 * MIB + number, number as u64)).collect();
    for (number, content) in contents.iter().enumerate() {
        scene.new_file(&format!("d/f{number}"), content);
    }
    scene.copy(&[]);
    let new = tree::changed(&contents[1], BLOCK, &[3]);
    scene.new_file("d/f1", &new);
    scene.new_file("d/f4", &contents[0]);
    let words = |more: &[&str]| {
        let words = scene.words(more);
        [&["sync".to_owned()], &words[1..]].concat()
    };
    let before = scene.proxy.carried().up;
    let ran = scene.sandbox.ok(words(&["--delete", "-b"]));
    let sent = scene.proxy.carried().up - before;
    let counts = super::sync::numbers(&ran, &["files", "files_same", "bytes_taken_over"]);
    assert_eq!(counts, [2, 3, (4 * MIB + 1 - BLOCK_CHUNK / 2) as u64]);
    assert!(sent < (5 * MIB) as u64, "{sent}");
    scene.check("d/f1", &new);
    scene.check("d/f1~", &contents[1]);
    scene.check("d/f4", &contents[0]);
    // So it is with blocks of a sync's own size.
    let new = tree::changed(&contents[2], BLOCK, &[3]);
    scene.new_file("d/f2", &new);
    let own: Vec<String> = words(&[]).into_iter().filter(|word| !word.starts_with("--block")).collect();
    let before = scene.proxy.carried().up;
    scene.sandbox.ok(own);
    let sent = scene.proxy.carried().up - before;
    assert!(sent < (MIB / 4) as u64, "{sent}");
    scene.check("d/f2", &new);
}

impl CountedNode {
    /// Syncs `tree/` to the node, and tells how many bytes went there.
    fn sync(&self, more: &[&str]) -> (Ran, u64) {
        let before = self.proxy.carried().up;
        let words = self.words(more);
        let ran = self.sandbox.ok([&["sync".to_owned()], &words[1..]].concat());
        (ran, self.proxy.carried().up - before)
    }
}

const CHUNK: usize = 1 << 10;

/// A file of a bundle is sent as a patch of what stands there, whichever is longer, and wherever they differ.
#[test]
fn small_files_are_sent_as_patches() {
    let scene = scene();
    let old = tree::bytes(145_000, 1);
    let shifted = [&[1], &old[..144_999]].concat();
    let cases: [(&str, Vec<u8>, usize); 7] = [
        ("one", tree::changed(&old, CHUNK, &[70]), 145_000 - CHUNK),
        ("ends", tree::changed(&old, CHUNK, &[0, 141]), 140 * CHUNK),
        ("cut", old[..100_000].to_vec(), 100_000 - 100_000 % CHUNK),
        ("grown", [&old[..], &[7; 50_000]].concat(), 145_000 - 145_000 % CHUNK),
        ("shifted", shifted, 0),
        ("tiny", old[..9_000].to_vec(), 0),
        ("most", [&old[..], &tree::bytes(MIB - 145_000, 9)].concat(), 145_000 - 145_000 % (4 * CHUNK)),
    ];
    for digest in ["blake3", "xxh128", "blake3,crc32c"] {
        for (name, new, there) in &cases {
            scene.old(name, &old);
            scene.new_file(name, new);
            let (ran, sent) = scene.sync(&["--digest", digest, "--checksum"]);
            assert_eq!(taken_over(&ran), *there as u64, "{name} {digest}");
            assert!(sent < (new.len() - there + 8_000) as u64, "{name} {digest}: {sent} bytes");
            scene.check(name, new);
            let (again, _) = scene.sync(&["--digest", digest, "--checksum"]);
            assert_eq!(super::sync::numbers(&again, &["files"]), [0]);
            scene.old(name, &old);
            let (ran, sent) = scene.sync(&["--digest", digest, "--checksum", "--delta=never"]);
            assert!(taken_over(&ran) == 0 && sent > new.len() as u64, "{name} {digest}: {sent} bytes");
            scene.check(name, new);
            std::fs::remove_file(scene.sandbox.path(format!("tree/{name}"))).unwrap();
        }
    }
    // Without a digest nobody would see that what stands there has become another.
    scene.old("one", &old);
    scene.new_file("one", &cases[0].1);
    let (ran, sent) = scene.sync(&["--verify=none", "--delta=always"]);
    assert!(taken_over(&ran) == 0 && sent > old.len() as u64, "{sent}");
    // What is told of a change is the file's size, not the patch's.
    scene.old("one", &old);
    let (ran, _) = scene.sync(&["--itemize-changes"]);
    assert!(ran.stdout.contains("\"size\":145000"), "{}", ran.stdout);
}

/// What stands there is altered after its chunks were told: the file comes again, whole.
#[test]
fn small_file_that_is_altered_meanwhile_is_never_part_of_the_new_one() {
    let scene = scene();
    let names: Vec<String> = (0..200).map(|number| format!("f{number:03}")).collect();
    let old = |number: usize| tree::bytes(100_000, number as u64);
    let new = |number: usize| tree::changed(&old(number), CHUNK, &(0..40).collect::<Vec<_>>());
    for (number, name) in names.iter().enumerate() {
        scene.old(name, &old(number));
        scene.new_file(name, &new(number));
    }
    let words = scene.words(&["--bwlimit=4M", "--checksum"]);
    let words = [&["sync".to_owned()], &words[1..]].concat();
    let copying = Running::start(scene.sandbox.carrack().args(&words));
    let there = |name: &str| scene.sandbox.path(format!("root/to/{name}"));
    wait_until("the first file", || fs::read(there(&names[0])).unwrap() == new(0));
    let mut altered = 0;
    for (number, name) in names.iter().enumerate().rev().take(50) {
        let file = File::options().write(true).open(there(name)).unwrap();
        altered += u64::from(fs::read(there(name)).unwrap() == old(number));
        // Of chunks that are the same in both.
        file.write_all_at(&[0x55; 4 * CHUNK], 80_000).unwrap();
        if number % 2 == 0 {
            file.set_len(60_000).unwrap();
        }
    }
    let ran = copying.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for (number, name) in names.iter().enumerate() {
        scene.check(name, &new(number));
    }
    let (told, all) = (taken_over(&ran), 200 * (100_000 - 40 * CHUNK as u64));
    assert!(altered > 10 && told > 0 && told < all, "{told} of {all} bytes, {altered} altered");
    assert_eq!(ran.summary()["faults"]["digest_mismatches"], 0, "nothing was altered on the way");
}

/// What a crossed case copies: name, what the destination has, what the source has.
fn crossed_files(seed: u64) -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let old = |number: u64| tree::bytes(3 * MIB + 11, seed * 16 + number);
    let small = |number: u64| tree::bytes(100_003, seed * 16 + number);
    let mut holes = tree::changed(&old(3), BLOCK, &[0, 11]);
    holes[MIB..2 * MIB].fill(0);
    let some = [seed as usize % 12, (seed as usize * 5 + 3) % 12];
    vec![
        ("plain", old(0), tree::changed(&old(0), BLOCK, &some)),
        ("grown", old(1), [&old(1)[..], &[9; MIB / 2]].concat()),
        ("cut", old(2), old(2)[..2 * MIB + 5].to_vec()),
        ("holes", old(3), holes.clone()),
        ("filled", holes, tree::changed(&old(3), BLOCK, &some)),
        ("linked", old(4), tree::changed(&old(4), BLOCK, &some)),
        ("same", old(5), old(5)),
        ("small", small(6), tree::changed(&small(6), 1 << 10, &[seed as usize % 90])),
        ("small-cut", small(7), small(7)[..70_001].to_vec()),
        ("small-grown", small(8)[..70_001].to_vec(), small(8)),
    ]
}

/// Deltas with each level of verification, digest, durability and rule, of files that grew, were cut, have holes or
/// other names; half of the copies are killed, and done once more.
#[test]
fn deltas_are_whole_with_every_other_option_and_after_every_kill() {
    let scene = scene();
    for seed in 0..16_u64 {
        let files = crossed_files(seed);
        for place in ["tree", "root/to"] {
            let _ = fs::remove_dir_all(scene.sandbox.path(place));
        }
        for (name, old, new) in &files {
            scene.old(name, old);
            let there = File::options().write(true).open(scene.sandbox.path(format!("root/to/{name}"))).unwrap();
            // Not in the same tick of the clock as its source.
            there.set_modified(std::time::UNIX_EPOCH).unwrap();
            scene.new_file(name, new);
        }
        let source = File::create(scene.sandbox.path("tree/holes")).unwrap();
        let new = &files[3].2;
        source.set_len(new.len() as u64).unwrap();
        source.write_all_at(&new[..MIB], 0).unwrap();
        source.write_all_at(&new[2 * MIB..], 2 * MIB as u64).unwrap();
        hard_link(scene.sandbox.path("root/to/linked"), scene.sandbox.path("root/to/other.keep")).unwrap();
        hard_link(scene.sandbox.path("tree/plain"), scene.sandbox.path("tree/twin")).unwrap();
        scene.old("left.out", b"old");
        scene.new_file("left.out", b"new");
        let pick = |words: &[&'static str], by: u64| words[(seed / by) as usize % words.len()];
        let rules = ["--exclude=*.out", "--exclude=*.keep", "--delta=always"];
        let mut words: Vec<String> = scene.words(&rules);
        words[0] = "sync".into();
        words.push(pick(&["--verify=wire", "--verify=disk", "--verify=source", "--verify=none"], 2).into());
        words.push(pick(&["--digest=blake3", "--digest=xxh128", "--digest=blake3,crc32c"], 1).into());
        words.push(pick(&["--durable=group", "--durable=each", "--durable=none"], 3).into());
        words.push(pick(&["--delete", "-c", "--growing=snapshot"], 1).into());
        let shown = words.join(" ");
        if seed % 2 == 1 {
            let before = scene.proxy.carried().up;
            let enough = seed * 97_000;
            let mut copying = Running::start(scene.sandbox.carrack().args(&words).arg("--bwlimit=4M"));
            wait_until("some bytes", || scene.proxy.carried().up - before > enough || !copying.is_running());
            if copying.is_running() {
                signal(copying.id(), "KILL");
            }
            copying.end();
            for (name, old, new) in &files {
                let there = fs::read(scene.sandbox.path(format!("root/to/{name}"))).unwrap();
                assert!(there == *old || there == *new, "{shown}: {name} is neither the old file nor the new one");
            }
        }
        let ran = scene.sandbox.ok(&words);
        for (name, _, new) in &files {
            scene.check(name, new);
        }
        scene.check("twin", &files[0].2);
        scene.check("other.keep", &files[5].1);
        scene.check("left.out", b"old");
        assert!(seed % 2 == 1 || taken_over(&ran) > 0, "{shown}");
        let holes = fs::metadata(scene.sandbox.path("root/to/holes")).unwrap();
        assert!(holes.blocks() * 512 < 3 * MIB as u64, "{shown}: holes were filled");
    }
}
