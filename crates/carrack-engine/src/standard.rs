//! The streams that `-` stands for at a local end.

use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Opens a stream. Each session of a copy opens it anew.
pub type OpenStream = Arc<dyn Fn() -> io::Result<File> + Send + Sync>;

/// What a local end reads and writes where a location is `-`.
#[derive(Clone, Default)]
pub struct Standard {
    /// What a source `-` reads; `None` where there is nothing to read.
    pub input: Option<OpenStream>,
    /// What a destination `-` writes; `None` where nothing may be written.
    pub output: Option<OpenStream>,
}

impl Standard {
    /// Opens what there is to read.
    ///
    /// # Errors
    /// `Unsupported` where there is nothing; those of opening.
    pub(crate) fn open_input(&self) -> io::Result<File> {
        open(self.input.as_ref(), "no stream was given to read")
    }

    /// Opens what is to be written.
    ///
    /// # Errors
    /// `Unsupported` where there is nothing; those of opening.
    pub(crate) fn open_output(&self) -> io::Result<File> {
        open(self.output.as_ref(), "no stream was given to write")
    }
}

fn open(stream: Option<&OpenStream>, missing: &str) -> io::Result<File> {
    stream.map_or_else(|| Err(io::Error::new(io::ErrorKind::Unsupported, missing)), |open| open())
}

impl fmt::Debug for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (input, output) = (self.input.is_some(), self.output.is_some());
        f.debug_struct("Standard").field("input", &input).field("output", &output).finish()
    }
}
