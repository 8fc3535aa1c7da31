//! The programs that an ssh host without an agent may be sent: what each is known by there, and its bytes as they
//! travel.

use std::borrow::Cow;
use std::io;

use carrack_core::agents::{AgentProgram, HostKind};
use carrack_core::location::SshHost;
use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_core::request::Push;
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
    /// Where it starts.
    pub kind: HostKind,
    content: Content,
}

enum Content {
    /// This program's own file.
    Itself(Vec<u8>),
    Agent(&'static AgentProgram),
}

impl Program {
    /// What `push` asks for: nothing where nothing may be sent.
    ///
    /// # Errors
    /// When this program's own file cannot be read.
    pub fn of(push: Push, host: &SshHost) -> Result<Vec<Self>, Failure> {
        match push {
            Push::Never => Ok(Vec::new()),
            Push::Agents(agents, read) => {
                let mut programs: Vec<Self> = agents.iter().map(Self::agent).collect();
                if !agents.iter().any(|agent| agent.kind.is_like(&HostKind::own())) {
                    programs.push(Self::itself(own_file(host, read)?));
                }
                Ok(programs)
            }
        }
    }

    pub(super) fn itself(bytes: Vec<u8>) -> Self {
        let hash = hash(blake3::hash(&bytes).as_bytes());
        let (cksum, size, kind) = (posix_checksum(&bytes), bytes.len() as u64, HostKind::own());
        Self { hash, cksum, size, kind, content: Content::Itself(bytes) }
    }

    pub(super) fn agent(agent: &'static AgentProgram) -> Self {
        let AgentProgram { kind, size, cksum, blake3, .. } = agent;
        Self { hash: hash(blake3), cksum: *cksum, size: *size, kind: kind.clone(), content: Content::Agent(agent) }
    }

    /// Whether it is a slim program.
    pub fn is_slim(&self) -> bool {
        matches!(self.content, Content::Agent(_))
    }

    /// How many bytes travel where the far side can unpack them; `None` where it is not there compressed.
    pub fn gzip_size(&self) -> Option<u64> {
        match &self.content {
            Content::Itself(_) => None,
            Content::Agent(agent) => Some(agent.gzip_size),
        }
    }

    /// The bytes that travel: compressed, or as they are kept.
    ///
    /// # Errors
    /// When what this program carries is damaged, or what was added to it cannot be read.
    pub fn bytes(&self, compressed: bool) -> Result<Cow<'_, [u8]>, Failure> {
        let agent = match &self.content {
            Content::Itself(bytes) => return Ok(bytes.into()),
            Content::Agent(agent) => agent,
        };
        let gzip = (agent.gzip)().map_err(|error| {
            let message = format!("the agent for {} cannot be read: {}", self.kind, describe(&error));
            failure(ErrorCode::AgentMissing, Side::Command, message).for_reason(Reason::OwnFileUnreadable)
        })?;
        if compressed && gzip.len() as u64 == agent.gzip_size {
            return Ok(gzip);
        }
        let unpacked = (agent.unpack)(&gzip).filter(|bytes| bytes.len() as u64 == self.size && !compressed);
        unpacked.map(Cow::Owned).ok_or_else(|| {
            let message = format!("the agent for {} that this program has is damaged", self.kind);
            failure(ErrorCode::AgentMissing, Side::Command, message).for_reason(Reason::OwnFileDamaged)
        })
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
