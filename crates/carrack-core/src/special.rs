//! Files that hold nothing: FIFOs, sockets and devices.

use crate::words::words;

words! {
    /// What a file that holds nothing is.
    pub enum SpecialKind {
        0 Fifo "fifo" "a FIFO"
        1 Socket "socket" "a socket"
        2 Block "block-device" "a block device"
        3 Character "character-device" "a character device"
    }
}

/// A FIFO, a socket or a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialFile {
    /// Which of them.
    pub kind: SpecialKind,
    /// Of a device, the number of its driver; else 0.
    pub major: u32,
    /// Of a device, its number among those of its driver; else 0.
    pub minor: u32,
}

impl SpecialFile {
    /// Bytes of one, as it travels.
    pub const BYTES: usize = 9;

    /// Whether it is a device.
    pub fn is_device(self) -> bool {
        matches!(self.kind, SpecialKind::Block | SpecialKind::Character)
    }

    /// As it travels: its kind, and both numbers, the highest byte first.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [self.kind.number() as u8, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes[1..5].copy_from_slice(&self.major.to_be_bytes());
        bytes[5..].copy_from_slice(&self.minor.to_be_bytes());
        bytes
    }

    /// What such bytes say; `None` where that is nothing.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let special = Self { kind: SpecialKind::from_number(bytes[0].into())?, major: number(1), minor: number(5) };
        let has_numbers = (special.major, special.minor) != (0, 0);
        (special.is_device() || !has_numbers).then_some(special)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_files_come_back_and_other_bytes_are_none() {
        for kind in [SpecialKind::Fifo, SpecialKind::Socket, SpecialKind::Block, SpecialKind::Character] {
            let numbers =
                if matches!(kind, SpecialKind::Block | SpecialKind::Character) { (259, 1 << 20) } else { (0, 0) };
            let special = SpecialFile { kind, major: numbers.0, minor: numbers.1 };
            assert_eq!(SpecialFile::decode(&special.encode()), Some(special));
            assert_eq!(SpecialFile::decode(&special.encode()[1..]), None);
        }
        assert_eq!(SpecialFile::decode(&[4, 0, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(SpecialFile::decode(&[0, 0, 0, 0, 1, 0, 0, 0, 0]), None, "a FIFO has no numbers");
        assert_eq!(SpecialFile::decode(b""), None);
    }
}
