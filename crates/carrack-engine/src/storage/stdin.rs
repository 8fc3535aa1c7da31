//! Standard input as a source: one item without a size, read once and in order.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Mutex;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::transfer::ScannedItem;
use carrack_sys::standard::Patient;

use super::read::{Found, OpenOptions, Reader, Source, Walk};
use super::synthetic::made_up;
use crate::error::{failure, io_failure};
use crate::standard::Standard;
use crate::sync::lock;

/// What the program's owner hands in for `-`.
pub struct Stdin(pub Standard);

impl Source for Stdin {
    fn walks_in_order(&self) -> bool {
        false
    }

    fn filters(&self) -> bool {
        false
    }

    fn walk(&self, walk: &Walk<'_>, each: &mut dyn FnMut(Found) -> bool) {
        each(Found::Item(made_up(walk)));
    }

    fn open(&self, _item: &ScannedItem, _options: &mut OpenOptions<'_>) -> Result<Box<dyn Reader>, Failure> {
        let input = self.0.open_input().map_err(|error| io_failure(Side::Source, "standard input", &error))?;
        Ok(Box::new(PipeReader(Mutex::new(PipeInput { input, carry: None }))))
    }
}

struct PipeReader(Mutex<PipeInput>);

/// Reading what cannot be read twice: one byte ahead, to know where it ends.
struct PipeInput {
    /// Not the library's standard input: that takes one that cannot be read for an empty one.
    input: File,
    carry: Option<u8>,
}

impl Reader for PipeReader {
    fn read_at(&self, _offset: u64, _out: &mut [u8]) -> Result<(), Failure> {
        Err(failure(ErrorCode::Internal, Side::Source, "a pipe was read out of order"))
    }

    fn read_next(&self, offset: u64, out: &mut [u8], is_over: &dyn Fn() -> bool) -> Result<(usize, bool), Failure> {
        let fail = |error: io::Error| io_failure(Side::Source, "read", &error).at_offset(offset);
        let mut sequential = lock(&self.0);
        let mut filled = 0;
        if let (Some(byte), Some(first)) = (sequential.carry.take(), out.first_mut()) {
            *first = byte;
            filled = 1;
        }
        let mut input = Patient::new(sequential.input.try_clone().map_err(fail)?, is_over);
        filled += read_full(&mut input, &mut out[filled..]).map_err(fail)?;
        let mut ahead = [0];
        let more = filled == out.len() && read_full(&mut input, &mut ahead).map_err(fail)? == 1;
        sequential.carry = more.then_some(ahead[0]);
        Ok((filled, !more))
    }
}

fn read_full(input: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < out.len() {
        match input.read(&mut out[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
