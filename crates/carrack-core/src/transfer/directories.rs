//! Permissions and times of directories wait until everything inside has been published: publishing changes a
//! directory's time, and a directory without write permission takes no files. Kept packed, one after the other, to be
//! told last to first: children come after their parents in a walk, so backwards means children first.

use crate::attributes::{Attributes, Time};
use crate::wire::attributes;
use crate::wire::peer::DirectoryAttributes;

/// Attributes of the directories of a transfer. Memory: the path, 18 bytes, and attributes of further kinds,
/// as they travel, of each.
#[derive(Clone, Debug, Default)]
pub struct DirectoryLog {
    packed: Vec<u8>,
    count: u64,
}

impl DirectoryLog {
    const FIXED_BYTES: usize = 2 + 8 + 4 + 2 + 2;

    /// Remembers one. The path has been checked, so its length fits.
    pub fn push(&mut self, path: &[u8], attributes: &Attributes) {
        let mtime = attributes.mtime.unwrap_or_default();
        let block = attributes::encode(&attributes.others);
        self.packed.extend_from_slice(path);
        self.packed.extend_from_slice(&block);
        self.packed.extend_from_slice(&(attributes.mode as u16).to_be_bytes());
        self.packed.extend_from_slice(&mtime.seconds.to_be_bytes());
        self.packed.extend_from_slice(&mtime.nanos.to_be_bytes());
        // At most `limits::ATTRIBUTE_BYTES`.
        self.packed.extend_from_slice(&(block.len() as u16).to_be_bytes());
        self.packed.extend_from_slice(&(path.len() as u16).to_be_bytes());
        self.count += 1;
    }

    /// Directories so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes the last ones, as many as make about `bytes` bytes; empty when there are none left.
    pub fn take(&mut self, bytes: usize) -> Vec<DirectoryAttributes> {
        let mut taken = Vec::new();
        let mut room = bytes;
        while room > 0 && self.packed.len() >= Self::FIXED_BYTES {
            let fixed = self.packed.split_off(self.packed.len() - Self::FIXED_BYTES);
            let number =
                |range: std::ops::Range<usize>| fixed[range].iter().fold(0u64, |n, &b| (n << 8) | u64::from(b));
            let (block_bytes, path_bytes) = (number(14..16) as usize, number(16..18) as usize);
            let block = self.packed.split_off(self.packed.len() - block_bytes);
            let path = self.packed.split_off(self.packed.len() - path_bytes);
            room = room.saturating_sub(path_bytes + block_bytes + Self::FIXED_BYTES);
            let mtime = Some(Time::new(number(2..10) as i64, number(10..14) as u32));
            // None, or what was packed here.
            let others = attributes::decode(&block).unwrap_or_default();
            let attributes = Attributes { mode: number(0..2) as u32, mtime, others };
            taken.push(DirectoryAttributes { path, attributes });
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_back_backwards_in_pages() {
        let mut log = DirectoryLog::default();
        for index in 0..1000u32 {
            let attributes = Attributes::new(index, Time::new(-i64::from(index), index));
            log.push(format!("d/{index}").as_bytes(), &attributes);
        }
        assert_eq!(log.count(), 1000);
        let mut expected = 999;
        loop {
            let page = log.take(300);
            if page.is_empty() {
                break;
            }
            assert!(page.len() < 20);
            for directory in page {
                assert_eq!(directory.path, format!("d/{expected}").as_bytes());
                assert_eq!(directory.attributes, Attributes::new(expected, Time::new(-i64::from(expected), expected)));
                expected = expected.wrapping_sub(1);
            }
        }
        assert_eq!(expected, u32::MAX);
    }
}
