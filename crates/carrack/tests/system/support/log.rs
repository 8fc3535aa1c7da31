//! What a process of the test says on standard error.

use std::io::Read;
use std::process::ChildStderr;
use std::sync::{Arc, Mutex};

/// The log of a process so far. It is shown where the test fails, and while it runs if `RUST_LOG` is set: otherwise a
/// line for each session of each node would drown what the runner says.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<String>>);

impl Log {
    /// Reads it to its end, in a thread of its own.
    pub fn of(mut from: ChildStderr) -> Self {
        let log = Self::default();
        let into = Arc::clone(&log.0);
        let is_shown = std::env::var_os("RUST_LOG").is_some();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]);
                if is_shown {
                    eprint!("{text}");
                }
                into.lock().unwrap().push_str(&text);
            }
        });
        log
    }

    /// What was said so far.
    pub fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    /// Shows it where the test has failed.
    pub fn show_if_failed(&self, whose: &str) {
        if std::thread::panicking() {
            eprintln!("the log of {whose}:\n{}", self.text());
        }
    }
}
