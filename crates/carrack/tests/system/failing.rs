//! File systems whose storage fails in the midst of a copy, and for good: what the report calls durable is there when
//! the file system is mounted anew, as after a power cut at the moment when the copy ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use carrack_faults::image::{Image, Kind, Scarce};
use serde_json::Value;

use crate::support::{Ran, Sandbox, tool, tree};

/// All that is copied, in MiB, about.
const TREE_MIB: u64 = 24;

/// How many moments of the failure are tried: `CARRACK_SWEEP`; one without it.
fn moments() -> u64 {
    std::env::var("CARRACK_SWEEP").map_or(1, |count| count.parse().expect("CARRACK_SWEEP"))
}

/// Small files and large ones, in several directories; the content of each by its path.
fn sources(sandbox: &Sandbox) -> BTreeMap<String, Vec<u8>> {
    let small = (0..400u64).map(|number| (format!("d{}/s{number}", number % 7), 20_000 + number as usize));
    let large = (0..8u64).map(|number| (format!("large{number}"), (2 << 20) + 7));
    let all = small.chain(large).enumerate().map(|(seed, (path, size))| (path, tree::bytes(size, seed as u64)));
    all.inspect(|(path, content)| drop(sandbox.write(format!("tree/{path}"), content))).collect()
}

/// The paths of items that came to be so, by the lines of `--json`: the last line of a path counts.
fn told(ran: &Ran) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut last = BTreeMap::new();
    for line in ran.stdout.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["type"] == "item" && line["kind"] == "file" {
            last.insert(line["path"].as_str().unwrap().to_owned(), line["outcome"] == "published");
        }
    }
    let of = |published| last.iter().filter(|(_, is)| **is == published).map(|(path, _)| path.clone()).collect();
    (of(true), of(false))
}

/// One copy to a file system on storage that takes so many bytes more and then fails.
fn copy_to_storage_that_fails(kind: Kind, durable: &str, room: u64) {
    let sandbox = Sandbox::new();
    let Some(scarce) = Scarce::new(&sandbox.path("memory"), 1 << 30, 1000) else { return };
    let Some(image) = Image::new(scarce.path(), "image", kind, 320) else { return };
    image.write_single_pages();
    let content = sources(&sandbox);
    fs::create_dir(image.path().join("to")).unwrap();
    tool(Command::new("sync").arg("-f").arg(image.path()));
    scarce.leave_room(room);
    let to = image.path().join("to");
    let to = to.to_str().unwrap();
    let ran = sandbox.run(["tree/", to, "--json", "--block=256K", &format!("--durable={durable}")]);
    let (published, failed) = told(&ran);
    let (summary, code) = (ran.summary(), ran.code);
    let snapshot = image.snapshot(&sandbox.path("after.img"));
    drop(image);
    // One that cannot be mounted has nothing.
    let after = snapshot.try_open(&sandbox.path("after"));
    let there = |path: &String| fs::read(after.as_ref().ok()?.path().join("to").join(path)).ok();
    let gone: Vec<&String> = published.iter().filter(|path| there(path).as_ref() != Some(&content[*path])).collect();
    let what = format!("{kind:?} --durable={durable} room {room}: exit {code}, durable {}", summary["durable"]);
    let counts = (published.len(), failed.len(), gone.len());
    println!("{what}: {} published, {} failed or in doubt, {} published are gone", counts.0, counts.1, counts.2);
    // The storage has failed: nothing is called durable but what was synced before, and that is all of it or nothing.
    match (durable, summary["durable"].as_bool()) {
        ("none", told) => assert_eq!(told, Some(false), "{what}"),
        (_, Some(true)) => assert!(code == 0 && failed.is_empty() && gone.is_empty(), "{what}: gone: {gone:?}"),
        // What was lost and is in no list was lost without a word.
        _ => assert!(code == 11 && gone.is_empty(), "{what}: gone: {gone:?}: {}", summary["error"]),
    }
}

fn sweep(kind: Kind) {
    for (number, durable) in ["group", "each", "none"].into_iter().enumerate() {
        for moment in 0..moments() {
            // Without a sweep, in the midst.
            let part = if moments() == 1 { 40 + 10 * number as u64 } else { 100 * (moment + 1) / (moments() + 2) };
            copy_to_storage_that_fails(kind, durable, (TREE_MIB << 20) * part / 100);
        }
    }
}

#[test]
fn failing_storage_of_ext4_is_never_called_durable() {
    sweep(Kind::Ext4);
}

#[test]
fn failing_storage_of_xfs_is_never_called_durable() {
    sweep(Kind::Xfs);
}

#[test]
fn failing_storage_of_btrfs_is_never_called_durable() {
    sweep(Kind::Btrfs);
}
