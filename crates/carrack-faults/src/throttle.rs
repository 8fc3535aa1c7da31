//! A device that takes writes slowly, from the processes of one control group: their calls last long.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A control group whose processes write to one device at a limited rate; gone when dropped, once they have ended.
pub struct Throttle(PathBuf);

impl Throttle {
    /// Limits writes to the device of the file system that a path is on. `None`, and why is printed, where that cannot
    /// be done.
    pub fn new(on: &Path, bytes_per_second: u64) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("carrack-slow-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let device = fs::metadata(on).unwrap().dev();
        let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        let limits = [
            ("/sys/fs/cgroup/blkio", "blkio.throttle.write_bps_device", format!("{device} {bytes_per_second}")),
            ("/sys/fs/cgroup", "io.max", format!("{device} wbps={bytes_per_second}")),
        ];
        for (root, file, limit) in limits {
            let group = Path::new(root).join(&name);
            if fs::create_dir(&group).is_err() {
                continue;
            }
            let group = Self(group);
            if group.0.join(file).exists() && fs::write(group.0.join(file), limit).is_ok() {
                return Some(group);
            }
        }
        println!("skipped: control groups with a limit of writes cannot be made here");
        None
    }

    /// A command that runs a program in the group.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs")).arg(program);
        command
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
