//! What an item is, where it may not be made so: written down beside it, in the form of rsync's `--fake-super`.

use crate::special::{SpecialFile, SpecialKind};

/// The extended attribute that it is written down in.
pub const FAKED_STAT: &[u8] = b"user.rsync.%stat";

/// What is written down of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FakedStat {
    /// What a file stands for that holds nothing; `None` of a file and of a directory.
    pub special: Option<SpecialFile>,
    /// It is a directory.
    pub is_directory: bool,
    /// A file that holds where a symbolic link leads. Only rsync makes such.
    pub is_link: bool,
    /// Permission bits (07777).
    pub mode: u32,
    /// The number of the owner.
    pub owner: u32,
    /// The number of the group.
    pub group: u32,
}

const TYPES: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const SPECIAL: [(SpecialKind, u32); 4] = [
    (SpecialKind::Fifo, 0o010_000),
    (SpecialKind::Character, 0o020_000),
    (SpecialKind::Block, 0o060_000),
    (SpecialKind::Socket, 0o140_000),
];
/// More bytes than any has.
const LONGEST: usize = 64;

impl FakedStat {
    /// As it is written down: kind and permissions in octal digits, the numbers of a device, owner and group.
    pub fn text(&self) -> String {
        let kind = match self.special {
            None if self.is_directory => DIRECTORY,
            None if self.is_link => LINK,
            None => FILE,
            Some(special) => SPECIAL.iter().find(|(kind, _)| *kind == special.kind).map_or(FILE, |(_, bits)| *bits),
        };
        let (major, minor) = self.special.map_or((0, 0), |special| (special.major, special.minor));
        format!("{:o} {major},{minor} {}:{}", kind | self.mode & 0o7777, self.owner, self.group)
    }

    /// From such a text; `None` where it is in another form, or what it tells of can be no file and no directory here.
    pub fn read(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= LONGEST)?;
        let mut parts = text.trim_end_matches(['\0', '\n']).split(' ');
        let (mode, numbers, owners) = (parts.next()?, parts.next()?, parts.next()?);
        let mode = u32::from_str_radix(mode, 8).ok().filter(|mode| mode & !(TYPES | 0o7777) == 0)?;
        let (major, minor) = numbers.split_once(',')?;
        let (owner, group) = owners.split_once(':')?;
        let numbers: (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
        let kind = mode & TYPES;
        let special = SPECIAL.iter().find(|(_, bits)| *bits == kind).map(|(kind, _)| *kind);
        let is_device = matches!(special, Some(SpecialKind::Block | SpecialKind::Character));
        let (major, minor) = if is_device { numbers } else { (0, 0) };
        let is_known = special.is_some() || [FILE, DIRECTORY, LINK].contains(&kind);
        (is_known && parts.next().is_none()).then_some(Self {
            special: special.map(|kind| SpecialFile { kind, major, minor }),
            is_directory: kind == DIRECTORY,
            is_link: kind == LINK,
            mode: mode & 0o7777,
            owner: owner.parse().ok()?,
            group: group.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_comes_back_and_all_else_is_nothing() {
        let plain = FakedStat {
            special: None,
            is_directory: false,
            is_link: false,
            mode: 0o4755,
            owner: 1234,
            group: 4_294_967_294,
        };
        assert_eq!(plain.text(), "104755 0,0 1234:4294967294");
        let special = |kind, major, minor| Some(SpecialFile { kind, major, minor });
        for one in [
            plain,
            FakedStat { is_directory: true, ..plain },
            FakedStat { is_link: true, mode: 0o777, ..plain },
            FakedStat { special: special(SpecialKind::Block, 8, 1), ..plain },
            FakedStat { special: special(SpecialKind::Character, 1, 3), mode: 0o600, ..plain },
            FakedStat { special: special(SpecialKind::Fifo, 0, 0), ..plain },
            FakedStat { special: special(SpecialKind::Socket, 0, 0), ..plain },
        ] {
            assert_eq!(FakedStat::read(one.text().as_bytes()), Some(one));
            assert_eq!(FakedStat::read(format!("{}\n", one.text()).as_bytes()), Some(one));
        }
        for wrong in [
            "",
            "104755",
            "104755 0,0",
            "104755 0,0 1",
            "104755 0,0 1:2 3",
            "204755 0,0 1:2",
            "150777 0,0 1:2",
            "104755 0 1:2",
            "104755 0,0 -1:2",
            "104755 0,0 4294967296:2",
            "999 0,0 1:2",
        ] {
            assert_eq!(FakedStat::read(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(FakedStat::read(&[b'1'; 100]), None);
        assert_eq!(FakedStat::read(b"104755 0,0 1:\xff"), None);
    }
}
