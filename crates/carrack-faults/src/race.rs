//! A name that is now this, now that: what a check has seen may be gone before its use.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Exchanges two names without pause, in one step each, so that neither is ever absent; ends when dropped.
///
/// One of the two is the bait, such as a symbolic link that leads outside; the other is what a program expects there.
pub struct Racer {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Racer {
    /// Both must exist, on one file system that can exchange names.
    pub fn start(name: &Path, bait: &Path) -> Self {
        exchange(name, bait).unwrap_or_else(|error| panic!("{name:?} and {bait:?}: {error}"));
        let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(1)));
        let thread = {
            let (stop, swaps) = (Arc::clone(&stop), Arc::clone(&swaps));
            let names: [PathBuf; 2] = [name.into(), bait.into()];
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    // One of them may have been removed or replaced by the program that is raced:
                    // then there is nothing to do.
                    if exchange(&names[0], &names[1]).is_ok() {
                        swaps.fetch_add(1, Ordering::Relaxed);
                    } else {
                        std::thread::yield_now();
                    }
                }
            })
        };
        Self { stop, swaps, thread: Some(thread) }
    }

    /// How often they have been exchanged.
    pub fn swaps(&self) -> u64 {
        self.swaps.load(Ordering::Relaxed)
    }
}

fn exchange(a: &Path, b: &Path) -> rustix::io::Result<()> {
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)
}

impl Drop for Racer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_exchanged_in_a_race_is_always_there_and_is_both() {
        let directory = tempfile::tempdir().unwrap();
        let (name, bait) = (directory.path().join("name"), directory.path().join("bait"));
        std::fs::create_dir(&name).unwrap();
        std::os::unix::fs::symlink("/", &bait).unwrap();
        let racer = Racer::start(&name, &bait);
        let mut seen = [0u64; 2];
        while seen.contains(&0) {
            seen[usize::from(std::fs::symlink_metadata(&name).unwrap().is_symlink())] += 1;
        }
        assert!(racer.swaps() > 0);
    }
}
