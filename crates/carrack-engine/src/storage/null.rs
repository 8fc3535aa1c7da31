//! Destinations that forget.

use std::sync::Arc;

use carrack_core::digest::FileDigests;
use carrack_core::failure::Failure;
use carrack_core::special::SpecialFile;

use super::properties::{Properties, WriteOptions};
use super::write::{Destination, NewFile, Opening, Part, SmallFile, Stored};

/// Nothing is kept.
#[derive(Clone, Copy, Debug)]
pub struct Null {
    /// Bytes are wanted in memory first, as an application takes them. Otherwise the kernel may throw them away itself.
    pub takes: bool,
}

impl Destination for Null {
    fn properties(&self) -> Properties {
        Properties { keeps: self.takes, ..Properties::NOTHING }
    }

    fn begin(&self, _file: &NewFile<'_>, _options: &WriteOptions, _believe: bool) -> Result<Opening, Failure> {
        Ok(Opening::Fresh(Arc::new(*self)))
    }

    fn write_small(&self, _small: &SmallFile<'_>, _options: &WriteOptions, _content: &[u8]) -> Result<Stored, Failure> {
        Ok(Stored::Done)
    }

    fn write_special(&self, _: &SmallFile<'_>, _: &WriteOptions, _: SpecialFile) -> Result<Stored, Failure> {
        Ok(Stored::Done)
    }

    fn write_hard_link(
        &self,
        _: &SmallFile<'_>,
        _: &WriteOptions,
        _: (&[Vec<u8>], Option<u64>),
    ) -> Result<Stored, Failure> {
        Ok(Stored::Done)
    }

    fn write_link(&self, _small: &SmallFile<'_>, _options: &WriteOptions, _target: &[u8]) -> Result<Stored, Failure> {
        Ok(Stored::Done)
    }
}

impl Part for Null {
    fn write(&self, _offset: u64, _bytes: &[u8]) -> Result<(), Failure> {
        Ok(())
    }

    fn write_hole(&self, _offset: u64, _length: u64) -> Result<(), Failure> {
        Ok(())
    }

    fn publish(&self, _digests: FileDigests) -> Result<bool, Failure> {
        Ok(true)
    }
}
