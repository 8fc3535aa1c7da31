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
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(scratch()?),
        };
        file.write_all(&self.memory).map_err(|error| fail(&error))?;
        self.memory.clear();
        Ok(())
    }

    /// Hands each record to `each`, until that says `false`.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn each(self, each: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<()> {
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
