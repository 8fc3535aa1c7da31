//! Small files that others have taken the place of, on their way out.
//!
//! Who renames over a file frees what that held. On ext4 this takes several times as long as the rename. A file that is
//! open goes when it is closed: that does a thread of its own, while the next ones get their names.

use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use carrack_sys::dir::{Dir, HeldEntry, Kind, Stat};
use carrack_sys::threads;

use super::identity::Ground;
use crate::sync::lock;

/// Files that wait to be closed, beyond which whoever replaces one closes it.
const WAITING: usize = 64;
/// Larger files are not held: their space is to be free for what comes next.
const BYTES_MOST: u64 = 64 << 10;

/// Closes files that have been replaced. Its thread begins with the first one.
#[derive(Default)]
pub(super) struct Replaced(Mutex<Closer>);

#[derive(Default)]
enum Closer {
    #[default]
    Unused,
    Closing(SyncSender<HeldEntry>, JoinHandle<()>),
    /// There is no thread to be had, or the session is over.
    Over,
}

impl Replaced {
    /// Keeps what stands at a name, and is about to lose it, from being freed by the rename; `None` where that would be
    /// no faster, or is not known to be without side effects (NFS gives what is open another name).
    pub fn hold(&self, ground: &Ground, directory: &Dir, name: &[u8], there: Option<Stat>) -> Option<HeldEntry> {
        let pays = ground.frees_at_once();
        let old = there.filter(|old| pays && old.kind == Kind::File && (1..=BYTES_MOST).contains(&old.size));
        old.and_then(|_| directory.hold(name).ok())
    }

    /// Lets go of it.
    pub fn close(&self, held: HeldEntry) {
        let mut state = lock(&self.0);
        if matches!(*state, Closer::Unused) {
            let (queue, waiting) = sync_channel(WAITING);
            let thread = threads::start("closing what was replaced", move || waiting.into_iter().for_each(drop));
            *state = thread.map_or(Closer::Over, |thread| Closer::Closing(queue, thread));
        }
        let left = match &*state {
            Closer::Closing(queue, _) => queue.try_send(held).err().map(|full| match full {
                TrySendError::Full(held) | TrySendError::Disconnected(held) => held,
            }),
            _ => Some(held),
        };
        drop(state);
        drop(left);
    }

    /// Waits until all have been closed. The end of the session.
    pub fn finish(&self) {
        let state = std::mem::replace(&mut *lock(&self.0), Closer::Over);
        if let Closer::Closing(queue, thread) = state {
            drop(queue);
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use carrack_sys::dir::stat_path;

    use super::*;

    /// Open files of this process below a directory that have lost their names.
    fn nameless(below: &Path) -> usize {
        let open =
            std::fs::read_dir("/proc/self/fd").unwrap().flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok());
        open.filter(|path| path.starts_with(below) && path.to_string_lossy().ends_with(" (deleted)")).count()
    }

    /// What is replaced stays until it is closed, and nothing of it stays after the session.
    #[test]
    #[cfg(target_os = "linux")]
    fn replaced_file_is_freed_by_the_end_of_the_session() {
        let place = tempfile::tempdir_in(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")).unwrap();
        let place = place.path().canonicalize().unwrap();
        let directory = Dir::open_ambient(&place).unwrap();
        let ground = Ground::new(directory.stat_self().unwrap().device, &directory);
        if !ground.frees_at_once() {
            return println!("skipped: the target directory is on no file system where files are held");
        }
        let replaced = Replaced::default();
        let put = |name: &str, bytes: usize| {
            std::fs::write(place.join(name), vec![1; bytes]).unwrap();
            Some(stat_path(&place.join(name), true).unwrap())
        };
        let hold = |name: &str, there| replaced.hold(&ground, &directory, name.as_bytes(), there);
        // Nothing there, nothing in it, or more than the next file may have to wait for.
        assert!(hold("none", None).is_none() && hold("empty", put("empty", 0)).is_none());
        assert!(hold("large", put("large", BYTES_MOST as usize + 1)).is_none());
        for number in 0..3 * WAITING {
            let name = format!("f{number}");
            let held = hold(&name, put(&name, 5)).unwrap();
            put("new", 6);
            std::fs::rename(place.join("new"), place.join(&name)).unwrap();
            assert!(nameless(&place) > 0);
            replaced.close(held);
        }
        replaced.finish();
        assert_eq!(nameless(&place), 0);
        // Whoever comes late closes it by himself.
        let held = hold("f0", put("f0", 5)).unwrap();
        std::fs::remove_file(place.join("f0")).unwrap();
        replaced.close(held);
        assert_eq!(nameless(&place), 0);
    }
}
