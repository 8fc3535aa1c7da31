//! A host that has few threads left: a control group with a limit of processes and threads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A control group whose processes have so many threads together at most; gone when dropped, once they have ended.
pub struct ThreadLimit(PathBuf);

impl ThreadLimit {
    /// Makes a group without a limit. `None`, and why is printed, where that cannot be done.
    pub fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("carrack-few-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        for root in ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"] {
            let group = Path::new(root).join(&name);
            if fs::create_dir(&group).is_err() {
                continue;
            }
            let group = Self(group);
            if group.0.join("pids.max").exists() {
                return Some(group);
            }
        }
        println!("skipped: control groups with a limit of threads cannot be made here");
        None
    }

    /// Lets its processes have so many threads. Those that are there stay.
    pub fn set(&self, threads: u32) {
        fs::write(self.0.join("pids.max"), threads.to_string()).unwrap();
    }

    /// Lets its processes have as many as they like.
    pub fn lift(&self) {
        fs::write(self.0.join("pids.max"), "max").unwrap();
    }

    /// Threads that there are.
    pub fn count(&self) -> u32 {
        fs::read_to_string(self.0.join("pids.current")).unwrap().trim().parse().unwrap()
    }

    /// Words before a command that run it in the group.
    pub fn prefix(&self) -> Vec<String> {
        let join = "echo $$ > \"$0\" && exec \"$@\"";
        ["sh", "-c", join, self.0.join("cgroup.procs").to_str().unwrap()].map(str::to_owned).to_vec()
    }

    /// The same command in the group.
    pub fn limited(&self, command: &Command) -> Command {
        crate::netns::after(&self.prefix(), command)
    }
}

impl Drop for ThreadLimit {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
