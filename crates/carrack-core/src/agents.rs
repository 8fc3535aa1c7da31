//! Programs that are sent to ssh hosts without one: the slim program, built for several kinds of hosts.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;

/// What a program needs of a host to start there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostKind {
    /// The system, as `uname -s` names it.
    pub system: Cow<'static, str>,
    /// The kind of processor, as `uname -m` names it.
    pub machine: Cow<'static, str>,
    /// The oldest glibc 2 that will do, by its second number; `None` where no C library of the host is needed, or where
    /// it is not known which.
    pub glibc: Option<u32>,
}

impl HostKind {
    /// That of the machine which this program was built for.
    pub fn own() -> Self {
        let is_mac = cfg!(target_os = "macos");
        let machine = match std::env::consts::ARCH {
            "aarch64" if is_mac => "arm64",
            other => other,
        };
        Self { system: if is_mac { "Darwin" } else { "Linux" }.into(), machine: machine.into(), glibc: None }
    }

    /// Whether system and kind of processor are the same.
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.system, &self.machine) == (&other.system, &other.machine)
    }
}

impl fmt::Display for HostKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.system, self.machine)?;
        self.glibc.map_or(Ok(()), |minor| write!(f, " (glibc 2.{minor})"))
    }
}

/// Reads the bytes of a compressed program, from where they are.
pub type ReadGzip = Arc<dyn Fn() -> io::Result<Cow<'static, [u8]>> + Send + Sync>;

/// A program for other hosts, compressed.
#[derive(Clone)]
pub struct AgentProgram {
    /// Where it starts.
    pub kind: HostKind,
    /// Length of the program in gzip's format, in bytes.
    pub gzip_size: u64,
    /// The program in gzip's format.
    pub gzip: ReadGzip,
    /// Length of the program, unpacked, in bytes.
    pub size: u64,
    /// BLAKE3 of the program, unpacked.
    pub blake3: [u8; 32],
    /// What POSIX's `cksum` says of the program, unpacked.
    pub cksum: u32,
    /// Unpacks it, for a host that has no `gzip`; `None` if it is damaged.
    pub unpack: fn(&[u8]) -> Option<Vec<u8>>,
}

impl fmt::Debug for AgentProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an agent for {}, {} bytes", self.kind, self.size)
    }
}
