//! Who is in which call to a disk, and since when: a file system that hangs is told by name while it hangs, because the
//! call itself can neither be ended nor asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::sync::lock;
use carrack_core::path::display_bytes;

/// The calls under way at one destination.
#[derive(Default)]
pub struct Watch {
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    last: u64,
    open: BTreeMap<u64, CallUnderWay>,
}

struct CallUnderWay {
    since: Instant,
    what: &'static str,
    path: Arc<[u8]>,
    told: bool,
}

/// A call under way; dropped when it returns.
pub struct Entered<'a> {
    watch: &'a Watch,
    number: u64,
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        lock(&self.calls)
    }

    /// A call begins: what it does, and to what.
    pub fn enter(&self, what: &'static str, path: &Arc<[u8]>) -> Entered<'_> {
        let mut calls = self.lock();
        calls.last += 1;
        let number = calls.last;
        calls.open.insert(number, CallUnderWay { since: Instant::now(), what, path: Arc::clone(path), told: false });
        Entered { watch: self, number }
    }

    /// What a user should know by now: each call once that has been under way for longer than `after`.
    pub fn stalled(&self, now: Instant, after: Duration) -> Vec<String> {
        let mut calls = self.lock();
        let late = calls.open.values_mut().filter(|call| !call.told && now.duration_since(call.since) >= after);
        late.map(|call| {
            call.told = true;
            let (path, seconds) = (display_bytes(&call.path), now.duration_since(call.since).as_secs());
            let shown = if call.path.is_empty() { "the destination".to_string() } else { path.to_string() };
            format!("{shown}: the file system has not answered a {} for {seconds} s; still waiting for it", call.what)
        })
        .collect()
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.watch.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stall_is_told_once_and_forgotten_when_it_ends() {
        let (watch, after) = (Watch::default(), Duration::from_secs(10));
        let name = |name: &[u8]| Arc::from(name);
        let slow = watch.enter("write", &name(b"slow\n"));
        drop(watch.enter("write", &name(b"quick")));
        let later = Instant::now() + after;
        assert_eq!(watch.stalled(Instant::now(), after), Vec::<String>::new());
        let told = watch.stalled(later, after);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("slow\\x0a: ") && told[0].contains(" write for 1"), "{told:?}");
        assert_eq!(watch.stalled(later, after), Vec::<String>::new());
        let _next = watch.enter("sync", &name(b""));
        drop(slow);
        let told = watch.stalled(later + after, after);
        assert!(told.len() == 1 && told[0].starts_with("the destination: "), "{told:?}");
    }
}
