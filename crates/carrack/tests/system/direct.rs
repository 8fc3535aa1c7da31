//! A source that is written past the cache while it is copied, by one call that lasts for seconds: its times are those
//! of the call's beginning, and no lock of the file is held.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Stdio};

use carrack_faults::image::{Image, Kind};
use carrack_faults::throttle::Throttle;

use crate::support::node::Node;
use crate::support::running::end_of;
use crate::support::{Sandbox, b3sum, wait_until};

const OLD: u8 = 0xaa;
const NEW: u8 = 0xbb;

/// How the kernel is asked to write: by a call that returns when it is done, or by one that only hands it over.
const CALLS: [&str; 3] = ["pvsync", "libaio", "io_uring"];

/// `CARRACK_DIRECT_ROUNDS`: how often each call is tried, each time by the next route.
fn rounds() -> usize {
    std::env::var("CARRACK_DIRECT_ROUNDS").map_or(1, |rounds| rounds.parse().expect("CARRACK_DIRECT_ROUNDS"))
}

/// One call that writes all of a file past the cache, begun when this returns.
fn write(throttle: &Throttle, file: &Path, size: usize, call: &str) -> Child {
    let changed = || fs::metadata(file).map(|stat| (stat.ctime(), stat.ctime_nsec())).unwrap();
    let before = changed();
    let mut fio = throttle.command("fio");
    fio.args(["--name=write", "--rw=write", "--direct=1", "--overwrite=1", "--fallocate=none", "--thread"])
        .args([format!("--filename={}", file.display()), format!("--size={size}"), format!("--bs={size}")])
        .args([format!("--ioengine={call}"), format!("--buffer_pattern={NEW:#x}")]);
    let child = fio.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the call to write has begun", || changed() != before);
    child
}

/// Copies a file by one of four routes: what it has come to be there; `None` where it got no name.
fn copied(route: usize, sandbox: &Sandbox, node: &Node, file: &Path, name: &str) -> Option<Vec<u8>> {
    let (here, below) = (format!("dst/{name}/"), format!("dst/{name}/f"));
    let (there, token) = (node.at(&format!("{name}/")), node.token());
    let (arguments, copy): (&[&str], String) = match route {
        0 => (&[&here], below),
        1 => (&[&here, "--verify=source", "--block=256K", "--streams=2"], below),
        2 => (&[&there, &token], format!("root/{name}/f")),
        _ => (&[&here, "--digest=none", "--verify=none"], below),
    };
    let ran = sandbox.run([&[file.to_str().unwrap()], arguments].concat());
    let copy = sandbox.path(copy);
    assert_eq!(copy.exists(), ran.code == 0, "{}{}", ran.stdout, ran.stderr);
    copy.exists().then(|| fs::read(copy).unwrap())
}

fn make_old(file: &Path, size: usize) {
    fs::write(file, vec![OLD; size]).unwrap();
    fs::File::open(file).unwrap().sync_all().unwrap();
}

/// All of the file is old; a call writes all of it; a copy that begins meanwhile has all of what the call has written.
fn source_under_a_direct_write(kind: Kind, large: (usize, u64), small: (usize, u64)) {
    let sandbox = Sandbox::new();
    let Some(image) = Image::new(&sandbox.path("."), "image", kind, 320) else { return };
    let node = Node::start(&sandbox, "root", &[]);
    let file = image.path().join("f");
    for (size, rate) in [large, small] {
        let Some(throttle) = Throttle::new(image.path(), rate) else { return };
        for round in 0..rounds() {
            for (number, call) in CALLS.into_iter().enumerate() {
                make_old(&file, size);
                let mut writer = write(&throttle, &file, size, call);
                assert!(writer.try_wait().unwrap().is_none(), "the call to write was over at once");
                let what = format!("{kind:?}-{size}-{call}-{round}");
                let found = copied((round + number) % 4, &sandbox, &node, &file, &what);
                let wrong = |found: &Vec<u8>| found.len() != size || found.iter().any(|byte| *byte != NEW);
                let old = |found: &Vec<u8>| found.iter().filter(|byte| **byte == OLD).count();
                assert!(!found.as_ref().is_some_and(wrong), "{what}: {:?} bytes are old", found.as_ref().map(old));
                let wrote = end_of(writer);
                assert!(wrote.status.success(), "{}", String::from_utf8_lossy(&wrote.stderr));
                assert!(found.is_some(), "{what}: the file was given up though its writer ended");
            }
        }
    }
    // A digest of it is that of one state, too.
    let Some(throttle) = Throttle::new(image.path(), small.1) else { return };
    make_old(&file, small.0);
    let writer = write(&throttle, &file, small.0, "libaio");
    let told = sandbox.ok(["sum", file.to_str().unwrap()]).stdout;
    assert!(end_of(writer).status.success());
    assert!(told.contains(&b3sum(&file)), "{told}");
}

#[test]
fn source_under_a_direct_write_on_ext4_is_copied_whole_or_not_at_all() {
    source_under_a_direct_write(Kind::Ext4, (16 << 20, 4_000_000), (512 << 10, 1_000_000));
}

#[test]
fn source_under_a_direct_write_on_xfs_is_copied_whole_or_not_at_all() {
    source_under_a_direct_write(Kind::Xfs, (16 << 20, 4_000_000), (512 << 10, 1_000_000));
}
