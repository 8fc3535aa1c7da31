//! The program that an ssh host without an agent is sent: what it is known by there, and its bytes as they travel.

use std::borrow::Cow;
use std::io;

use carrack_core::location::SshHost;
use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_core::request::{Push, SlimProgram};
use data_encoding::HEXLOWER;

use crate::error::{describe, failure};

/// A program that may be sent.
pub struct Program {
    /// The first 16 bytes of its BLAKE3, in hex: a part of the name under which it is kept.
    pub hash: String,
    /// What `cksum` says of it.
    pub cksum: u32,
    /// Its length, in bytes.
    pub size: u64,
    content: Content,
}

enum Content {
    /// This program's own file.
    Itself(Vec<u8>),
    Slim(&'static SlimProgram),
}

impl Program {
    /// What `push` asks for; `None` where nothing may be sent.
    ///
    /// # Errors
    /// When this program's own file cannot be read.
    pub fn new(push: Push, host: &SshHost) -> Result<Option<Self>, Failure> {
        match push {
            Push::Never => Ok(None),
            Push::Itself(read) => own_file(host, read).map(|bytes| Some(Self::itself(bytes))),
            Push::Slim(program) => Ok(Some(Self::slim(program))),
        }
    }

    pub(super) fn itself(bytes: Vec<u8>) -> Self {
        let hash = hash(blake3::hash(&bytes).as_bytes());
        Self { hash, cksum: posix_checksum(&bytes), size: bytes.len() as u64, content: Content::Itself(bytes) }
    }

    pub(super) fn slim(program: &'static SlimProgram) -> Self {
        let hash = hash(&program.blake3);
        Self { hash, cksum: program.cksum, size: program.size, content: Content::Slim(program) }
    }

    /// Whether it is the slim program.
    pub fn is_slim(&self) -> bool {
        matches!(self.content, Content::Slim(_))
    }

    /// How many bytes travel where the far side can unpack them; `None` where it is not there compressed.
    pub fn gzip_size(&self) -> Option<u64> {
        match &self.content {
            Content::Itself(_) => None,
            Content::Slim(program) => Some(program.gzip.len() as u64),
        }
    }

    /// The bytes that travel: compressed, or as they are kept.
    ///
    /// # Errors
    /// When what this program carries is damaged.
    pub fn bytes(&self, compressed: bool) -> Result<Cow<'_, [u8]>, Failure> {
        match &self.content {
            Content::Itself(bytes) => Ok(bytes.into()),
            Content::Slim(program) if compressed => Ok(program.gzip.into()),
            Content::Slim(program) => (program.unpack)(program.gzip)
                .filter(|bytes| bytes.len() as u64 == self.size)
                .map(Cow::Owned)
                .ok_or_else(|| {
                    let message = "the program for other hosts that this one carries is damaged";
                    failure(ErrorCode::AgentMissing, Side::Command, message).for_reason(Reason::OwnFileDamaged)
                }),
        }
    }
}

fn hash(blake3: &[u8; 32]) -> String {
    HEXLOWER.encode(&blake3[..16])
}

fn own_file(host: &SshHost, read: fn() -> io::Result<Vec<u8>>) -> Result<Vec<u8>, Failure> {
    read().map_err(|error| {
        let why =
            format!("this program's own file, to be pushed there if needed, cannot be read: {}", describe(&error));
        let unread = failure(ErrorCode::AgentMissing, Side::Command, why).at_end(host.to_string());
        unread.for_reason(Reason::OwnFileUnreadable)
    })
}

/// Of bytes that are eight at a time; by POSIX's polynomial.
static TABLES: [[u32; 256]; 8] = {
    const POLYNOMIAL: u32 = 0x04c1_1db7;
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = ((byte as u32) << 24, 0);
        while bit < 8 {
            sum = (sum << 1) ^ if sum >> 31 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before << 8) ^ tables[0][(before >> 24) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
};

/// What `cksum` prints (POSIX), the one checksum that every far side can make. It is for accidents only: nobody but the
/// user may write what it is made of.
fn posix_checksum(bytes: &[u8]) -> u32 {
    let one = |sum: u32, byte: u8| (sum << 8) ^ TABLES[0][usize::from((sum >> 24) as u8 ^ byte)];
    let mut eights = bytes.chunks_exact(8);
    let mut sum = 0_u32;
    for eight in &mut eights {
        let first = sum.to_be_bytes();
        let next = |index: usize| TABLES[7 - index][usize::from(eight[index] ^ first.get(index).unwrap_or(&0))];
        sum = (0..8).fold(0, |sum, index| sum ^ next(index));
    }
    sum = eights.remainder().iter().fold(sum, |sum, byte| one(sum, *byte));
    let mut length = bytes.len();
    while length > 0 {
        sum = one(sum, (length & 0xff) as u8);
        length >>= 8;
    }
    !sum
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn checksums_are_those_of_cksum() {
        for (bytes, sum) in [(&b""[..], 4_294_967_295), (b"123456789", 930_766_865)] {
            assert_eq!(posix_checksum(bytes), sum);
        }
        let directory = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..70_003_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for length in [1, 7, 8, 9, 255, 256, 65_536, 70_003] {
            let path = directory.path().join("file");
            std::fs::write(&path, &bytes[..length]).unwrap();
            let said = Command::new("cksum").arg(&path).output().unwrap().stdout;
            let said = String::from_utf8(said).unwrap();
            assert_eq!(said.split(' ').next(), Some(posix_checksum(&bytes[..length]).to_string().as_str()), "{length}");
        }
    }
}
