//! A list of records that grows from memory into a file.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};

use carrack_core::report::Failure;

/// Bytes that are kept in memory.
const IN_MEMORY: usize = 4 << 20;

/// Records, in the order in which they came.
#[derive(Default)]
pub struct Spool {
    memory: Vec<u8>,
    file: Option<File>,
    /// A record could not be written whole: nothing behind it can be found.
    broken: bool,
}

impl Spool {
    /// Adds a record, of the bytes that `write` appends. `scratch` makes the file, once there is more than memory is to
    /// hold; `fail` says that it could not be written.
    ///
    /// # Errors
    /// Those of the file.
    pub fn push(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>),
        scratch: impl FnOnce() -> Result<File, Failure>,
        fail: impl FnOnce(&io::Error) -> Failure,
    ) -> Result<(), Failure> {
        if self.broken {
            return Err(fail(&io::Error::other("an earlier record could not be written")));
        }
        let at = self.memory.len();
        self.memory.extend_from_slice(&[0; 4]);
        write(&mut self.memory);
        let length = u32::try_from(self.memory.len() - at - 4).unwrap_or(u32::MAX);
        if let Some(head) = self.memory.get_mut(at..at + 4) {
            head.copy_from_slice(&length.to_le_bytes());
        }
        if self.memory.len() < IN_MEMORY {
            return Ok(());
        }
        self.broken = true;
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(scratch()?),
        };
        file.write_all(&self.memory).map_err(|error| fail(&error))?;
        self.memory.clear();
        self.broken = false;
        Ok(())
    }

    /// Hands each record to `each`, until that says `false`.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn each(self, each: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other("it could not be written whole"));
        }
        let mut written: Box<dyn Read> = match self.file {
            Some(mut file) => {
                file.rewind()?;
                Box::new(BufReader::new(file))
            }
            None => Box::new(io::empty()),
        };
        let mut rest = (&mut written).chain(&self.memory[..]);
        let mut record = Vec::new();
        loop {
            let mut head = [0; 4];
            match rest.read(&mut head[..1])? {
                0 => return Ok(()),
                _ => rest.read_exact(&mut head[1..])?,
            }
            record.resize(u32::from_le_bytes(head) as usize, 0);
            rest.read_exact(&mut record)?;
            if !each(&record) {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use carrack_core::report::{ErrorCode, Side};

    use super::*;
    use crate::error::{failure, io_failure};

    fn fail(error: &io::Error) -> Failure {
        io_failure(Side::Destination, "write", error)
    }

    /// Some stay in memory, some go to the file; all come back in their order.
    #[test]
    fn records_come_back_in_their_order() {
        let mut spool = Spool::default();
        for number in 0..1000u32 {
            let write = |record: &mut Vec<u8>| record.extend(number.to_le_bytes().repeat(number as usize * 5));
            spool.push(write, || Ok(tempfile::tempfile().unwrap()), fail).unwrap();
        }
        assert!(spool.file.is_some() && !spool.memory.is_empty());
        let mut next = 0u32;
        let each = &mut |record: &[u8]| {
            assert_eq!(record, next.to_le_bytes().repeat(next as usize * 5));
            next += 1;
            next < 900
        };
        spool.each(each).unwrap();
        assert_eq!(next, 900);
    }

    /// Behind a record that was not written whole none is found where it is looked for.
    #[test]
    fn spool_that_could_not_be_written_gives_nothing() {
        let mut spool = Spool::default();
        let full = || Err(failure(ErrorCode::NoSpace, Side::Destination, "full"));
        let mut written = (0..3).map(|_| spool.push(|record| record.extend(vec![7; IN_MEMORY / 2]), full, fail));
        assert!(written.by_ref().any(|written| written.is_err()));
        drop(written);
        assert!(spool.push(|record| record.push(7), full, fail).is_err());
        assert!(spool.each(&mut |_| panic!("a record of a broken list")).is_err());
    }
}
