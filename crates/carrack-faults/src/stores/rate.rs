//! A hook that makes a store slow: so many bytes of content a second, and so long for each call.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use carrack_core::pace::RateLimit;

use carrack_engine::stores::over::{Act, Call, Hook};
use carrack_engine::sync::lock;

/// How slow a store is.
pub struct Rate {
    limit: Option<Mutex<RateLimit>>,
    delay: Duration,
}

impl Rate {
    /// So many bytes a second of reading and writing together, if there is a limit, and so long before each call.
    pub fn new(bytes_per_second: Option<u64>, delay: Duration) -> Self {
        Self { limit: bytes_per_second.map(|rate| Mutex::new(RateLimit::new(rate))), delay }
    }
}

impl Hook for Rate {
    fn before(&self, _call: Call, bytes: u64) -> Act {
        let reserve = |limit: &Mutex<RateLimit>| lock(limit).reserve(Instant::now(), bytes);
        let wait = self.limit.as_ref().filter(|_| bytes > 0).map_or(Duration::ZERO, reserve) + self.delay;
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        Act::Go
    }
}
