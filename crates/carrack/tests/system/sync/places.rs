//! Destinations that keep less than the source has: what they cannot hold is not sent again and again.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use carrack_faults::fuse::Features;
use carrack_faults::image::Image;

use super::numbers;
use crate::disk::faulty;
use crate::support::{Sandbox, is_root};

/// Files of times that few file systems have: after 2038, before 1901, of nanoseconds.
fn timed(sandbox: &Sandbox) {
    let since = SystemTime::UNIX_EPOCH;
    let times = [
        ("now", since + Duration::new(1_700_000_000, 123_456_789)),
        ("late", since + Duration::new(4_102_444_800, 5)),
        ("last", since + Duration::from_secs(u64::from(i32::MAX as u32))),
        ("early", since - Duration::from_secs(2_500_000_000)),
    ];
    for (name, time) in times {
        let path = sandbox.write(Path::new("src/d").join(name), name);
        fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }
}

/// Sent once; then it is the same. What has changed is sent, whatever its time.
fn synced_once(sandbox: &Sandbox, to: &Path) {
    let to = to.to_str().unwrap();
    let sync = || numbers(&sandbox.ok(["sync", "--json", "--delete", "src/", to]), &["files", "files_same"]);
    assert_eq!(sync(), [4, 0], "{to}");
    assert_eq!(sync(), [0, 4], "{to}");
    let planned = sandbox.ok(["sync", "-n", "--json", "--delete", "src/", to]);
    assert_eq!(numbers(&planned, &["files", "files_same"]), [0, 4], "{to}");
    let path = sandbox.write("src/d/now", "NOW");
    let earlier = SystemTime::UNIX_EPOCH + Duration::new(1_600_000_000, 123_456_789);
    fs::File::options().write(true).open(path).unwrap().set_modified(earlier).unwrap();
    assert_eq!(sync(), [1, 3], "{to}");
    assert_eq!(fs::read_to_string(Path::new(to).join("d/now")).unwrap(), "NOW");
}

#[test]
fn times_that_the_destination_cannot_hold_are_no_difference() {
    if !is_root() {
        return;
    }
    for make in
        [(|directory| Image::of_whole_seconds(directory, "disk", 16)) as fn(&Path) -> Option<Image>, |directory| {
            Image::of_early_times(directory, "disk")
        }]
    {
        let sandbox = Sandbox::new();
        timed(&sandbox);
        fs::create_dir(sandbox.path("disks")).unwrap();
        if let Some(image) = make(&sandbox.path("disks")) {
            synced_once(&sandbox, &image.path().join("to"));
        }
    }
}

/// By FUSE: whole seconds, no place reserved, no name replaced by a rename, names in one case.
#[test]
fn destinations_that_do_less_are_synced_once() {
    for features in [
        Features { whole_seconds: true, ..Features::default() },
        Features { no_allocate: true, no_rename_flags: true, ..Features::default() },
        Features { folds_case: true, whole_seconds: true, ..Features::default() },
        Features { decomposes: true, no_change_times: true, ..Features::default() },
    ] {
        let sandbox = Sandbox::new();
        timed(&sandbox);
        let Some(disk) = faulty(&sandbox, "disk", features) else { return };
        synced_once(&sandbox, &disk.path().join("to"));
    }
}
