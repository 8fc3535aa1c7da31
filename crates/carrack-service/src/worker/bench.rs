//! What a process that measures is told, and how it ends with the service: its standard input stays open as long as the
//! service wants it to go on.

use std::io::{self, BufRead, Read};

use carrack_engine::threads;
use rustix::process::{Signal, getpid, kill_process};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::model::BenchKind;

/// An order with the longest paths and tokens is shorter.
const ORDER_BYTES: u64 = 64 << 10;

/// What is to be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchOrder {
    /// What.
    pub kind: BenchKind,
    /// The directory, as bytes.
    pub root: Vec<u8>,
}

/// Reads the order, which is one line of JSON.
///
/// # Errors
/// Those of reading, and an order that is none.
pub fn read_order<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<T> {
    let mut line = Vec::new();
    input.take(ORDER_BYTES).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}

/// Ends this process in good order, as SIGTERM does, when its input ends: the service wants it to end, or is gone.
///
/// # Errors
/// When no thread can be made.
pub fn end_with(mut input: impl Read + Send + 'static) -> io::Result<()> {
    let watch = move || {
        // Nothing comes any more: only the end is waited for, and a failure is an end, too.
        let _ = io::copy(&mut input, &mut io::sink());
        let _ = kill_process(getpid(), Signal::TERM);
    };
    threads::start_named("input", watch).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bench_order_comes_back_with_a_path_that_is_no_text() {
        let order = BenchOrder { kind: BenchKind::Disk, root: b"/data/\xff\n".to_vec() };
        let mut line = serde_json::to_vec(&order).unwrap();
        line.extend(b"\nmore");
        assert_eq!(read_order::<BenchOrder>(&mut &line[..]).unwrap(), order);
        let is_none = |text: &[u8]| read_order::<BenchOrder>(&mut &*text).is_err();
        assert!(is_none(b"{}\n") && is_none(b""));
    }
}
