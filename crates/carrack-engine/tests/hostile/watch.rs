//! What every test is watched for: panics in threads of the product, hanging, memory.

use carrack_engine::sync::{lock, unpoisoned};
use std::sync::{Mutex, MutexGuard, Once, RwLock, RwLockReadGuard, RwLockWriteGuard, mpsc};
use std::time::Duration;

/// Panics in threads that no test has named: those of the product.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Memory is the process's: whoever measures it runs alone.
static MEMORY: RwLock<()> = RwLock::new(());

/// What hostile input may cost, in kilobytes.
const GROWTH_KB_MAX: u64 = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(60);

/// Watches one test while it exists.
pub struct Watch {
    _done: mpsc::Sender<()>,
    _others: Option<RwLockReadGuard<'static, ()>>,
    alone: Option<(RwLockWriteGuard<'static, ()>, u64)>,
}

fn panics() -> MutexGuard<'static, Vec<String>> {
    lock(&PANICS)
}

fn record_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().name().is_none() {
                panics().push(panic.to_string());
            }
            before(panic);
        }));
    });
}

/// A test that hangs ends the whole run: a thread that waits for ever cannot be ended alone.
fn watchdog() -> mpsc::Sender<()> {
    let (done, ended) = mpsc::channel::<()>();
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let watch = move || {
        if ended.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("{test} hangs");
            std::process::abort();
        }
    };
    std::thread::Builder::new().name("watchdog".into()).spawn(watch).unwrap();
    done
}

impl Watch {
    /// For a test that may run beside others.
    pub fn start() -> Self {
        record_panics();
        let others = unpoisoned(MEMORY.read());
        Self { _done: watchdog(), _others: Some(others), alone: None }
    }

    /// For a test during which memory may not grow by more than 64 MB.
    pub fn memory() -> Self {
        record_panics();
        let alone = unpoisoned(MEMORY.write());
        // proc(5): 5 resets the peak.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = status_kb("VmHWM:");
        Self { _done: watchdog(), _others: None, alone: Some((alone, before)) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        assert_eq!(*panics(), Vec::<String>::new(), "a thread of the product panicked");
        if let Some((_, before)) = &self.alone {
            let growth = status_kb("VmHWM:").saturating_sub(*before);
            assert!(growth < GROWTH_KB_MAX, "memory grew by {growth} kB");
        }
    }
}

fn status_kb(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
