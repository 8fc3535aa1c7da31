//! Measurements of the path to a node: transfers of bytes that are made up, or dropped, there. They keep the path busy
//! and bring nobody anything, so a node takes one at a time, of a bounded length, from those who may.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};

use crate::error::failure;
use crate::sync::{lock, wait_timeout};

/// Time that a measurement's transfer has to end by itself when it is told to. Then its data connections are cut off:
/// one that hangs in a call does not keep the path to itself.
pub const ENDS_IN: Duration = Duration::from_secs(5);
/// How long a client's next measurement waits for its last one to leave: longer than that takes.
const PATIENCE: Duration = Duration::from_secs(7);
const _: () = assert!(PATIENCE.as_secs() > ENDS_IN.as_secs());

/// Who may measure, and who does.
#[derive(Debug)]
pub struct PathTests {
    allowed: bool,
    patience: Duration,
    now: Mutex<Option<TestingClient>>,
    left: Condvar,
}

/// Which way the bytes of a measurement go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestWay {
    /// The node makes them up.
    Out,
    /// The node drops them.
    In,
}

/// One client measures, at most once each way: both ways at once is one measurement, too.
#[derive(Debug)]
struct TestingClient {
    client: String,
    ways: Vec<TestWay>,
}

impl PathTests {
    /// Nobody measures yet; `allowed` says whether anybody may.
    pub fn new(allowed: bool) -> Self {
        Self { allowed, patience: PATIENCE, now: Mutex::default(), left: Condvar::new() }
    }

    /// Whether this client may measure.
    pub fn allowed(&self) -> bool {
        self.allowed
    }

    /// Takes a measurement by the client at this address.
    ///
    /// # Errors
    /// [`ErrorCode::PermissionDenied`] where the node takes none, [`ErrorCode::Busy`] while it has another.
    pub fn begin(self: &Arc<Self>, client: &str, way: TestWay) -> Result<PathTest, Failure> {
        if !self.allowed {
            let why = "the node takes no measurements from this client";
            return Err(failure(ErrorCode::PermissionDenied, Side::Link, why));
        }
        let end = Instant::now() + self.patience;
        let mut now = lock(&self.now);
        loop {
            match now.as_mut() {
                None => {
                    *now = Some(TestingClient { client: client.to_owned(), ways: vec![way] });
                    break;
                }
                Some(now) if now.client == client && !now.ways.contains(&way) => {
                    now.ways.push(way);
                    break;
                }
                // A command does not wait for the end of a session before it begins the next one.
                Some(now_) if now_.client == client && Instant::now() < end => {
                    now = wait_timeout(&self.left, now, end.saturating_duration_since(Instant::now()));
                }
                Some(now) if now.client == client => {
                    let why = "your last measurement of the node has not ended yet, and it takes one at a time";
                    return Err(failure(ErrorCode::Busy, Side::Link, why));
                }
                Some(_) => {
                    let why = "the node is being measured by somebody else, and takes one measurement at a time";
                    return Err(failure(ErrorCode::Busy, Side::Link, why));
                }
            }
        }
        Ok(PathTest { of: Arc::clone(self), way })
    }
}

/// A measurement under way; it ends when this is dropped.
#[derive(Debug)]
pub struct PathTest {
    of: Arc<PathTests>,
    way: TestWay,
}

impl Drop for PathTest {
    fn drop(&mut self) {
        let mut now = lock(&self.of.now);
        if let Some(here) = now.as_mut() {
            here.ways.retain(|way| *way != self.way);
            if here.ways.is_empty() {
                *now = None;
            }
        }
        self.of.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(result: Result<PathTest, Failure>) -> Option<ErrorCode> {
        result.err().map(|failure| failure.code)
    }

    #[test]
    fn node_takes_one_measurement_at_a_time_from_one_client_both_ways() {
        let all = Arc::new(PathTests::new(true));
        let out = all.begin("10.0.0.1", TestWay::Out).unwrap();
        assert_eq!(code(all.begin("10.0.0.2", TestWay::In)), Some(ErrorCode::Busy));
        let back = all.begin("10.0.0.1", TestWay::In).unwrap();
        drop(out);
        assert_eq!(code(all.begin("10.0.0.2", TestWay::Out)), Some(ErrorCode::Busy), "the other way is still measured");
        drop(back);
        assert_eq!(code(all.begin("10.0.0.2", TestWay::Out)), None);
        assert_eq!(code(Arc::new(PathTests::new(false)).begin("::1", TestWay::In)), Some(ErrorCode::PermissionDenied));
    }

    #[test]
    fn next_measurement_of_a_client_waits_for_its_last() {
        let all = Arc::new(PathTests::new(true));
        let first = all.begin("::1", TestWay::Out).unwrap();
        let second = {
            let all = Arc::clone(&all);
            std::thread::spawn(move || code(all.begin("::1", TestWay::Out)))
        };
        drop(first);
        assert_eq!(second.join().unwrap(), None);
        let all = Arc::new(PathTests { patience: Duration::from_millis(20), ..PathTests::new(true) });
        let _held = all.begin("::1", TestWay::Out).unwrap();
        let refused = |client| all.begin(client, TestWay::Out).unwrap_err();
        let (own, other) = (refused("::1"), refused("::2"));
        assert_eq!((own.code, other.code), (ErrorCode::Busy, ErrorCode::Busy), "it waits, but not for ever");
        assert!(own.why.starts_with("your last measurement") && other.why.contains("somebody else"), "{own} {other}");
    }
}
