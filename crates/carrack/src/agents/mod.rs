//! The programs that ssh hosts without one are sent: slim ones (this program built with no features), packed by the
//! build script, and those that `carrack agent add` has brought. A program that was built without any sends itself.

#[cfg(feature = "slim-inside")]
pub mod added;
#[cfg(feature = "slim-inside")]
pub mod pack;

use carrack_core::agents::AgentProgram;
#[cfg(feature = "slim-inside")]
use carrack_core::agents::HostKind;
use carrack_core::request::Push;
use carrack_core::wire::PROTOCOL_VERSION;

/// By this others see which protocol a program speaks without running it.
#[used]
static MARK: [u8; 28] = {
    let mut mark = *b"carrack speaks protocol 0000";
    let (mut left, mut at) = (PROTOCOL_VERSION, mark.len());
    while left > 0 {
        at -= 1;
        mark[at] = b'0' + (left % 10) as u8;
        left /= 10;
    }
    mark
};

/// What an ssh host without an agent is sent.
pub fn push() -> Push {
    Push::Agents(known(), carrack_sys::host::own_program)
}

/// The programs for other hosts that were added, and those that are inside; the first that fits is sent.
#[cfg(feature = "slim-inside")]
pub fn known() -> &'static [AgentProgram] {
    static KNOWN: std::sync::LazyLock<Vec<AgentProgram>> =
        std::sync::LazyLock::new(|| added::all().into_iter().map(|added| added.agent).chain(inside()).collect());
    &KNOWN
}

/// None.
#[cfg(not(feature = "slim-inside"))]
pub fn known() -> &'static [AgentProgram] {
    &[]
}

/// The programs for other hosts that are inside.
#[cfg(feature = "slim-inside")]
pub fn inside() -> Vec<AgentProgram> {
    let agent = |&(machine, glibc, gzip, size, blake3, cksum): &packed::Row| AgentProgram {
        kind: HostKind { system: "Linux".into(), machine: machine.into(), glibc },
        gzip_size: gzip.len() as u64,
        gzip: std::sync::Arc::new(move || Ok(gzip.into())),
        size,
        blake3,
        cksum,
        unpack,
    };
    packed::AGENTS.iter().map(agent).collect()
}

/// None.
#[cfg(not(feature = "slim-inside"))]
pub fn inside() -> Vec<AgentProgram> {
    Vec::new()
}

#[cfg(feature = "slim-inside")]
mod packed {
    /// Kind of processor, glibc that it needs, the program in gzip's format, its length, BLAKE3 and `cksum`.
    pub type Row = (&'static str, Option<u32>, &'static [u8], u64, [u8; 32], u32);

    // `AGENTS`.
    include!(concat!(env!("OUT_DIR"), "/agents.rs"));
}

/// `None` if it is damaged: gzip's format has a checksum.
#[cfg(feature = "slim-inside")]
pub fn unpack(gzip: &[u8]) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut program = Vec::new();
    flate2::read::GzDecoder::new(gzip).read_to_end(&mut program).ok()?;
    Some(program)
}

#[cfg(all(test, feature = "slim-inside"))]
mod tests {
    use super::*;

    #[test]
    fn agents_inside_are_whole_and_their_damage_is_noticed() {
        for agent in inside() {
            let gzip = (agent.gzip)().unwrap();
            assert_eq!(gzip.len() as u64, agent.gzip_size);
            let program = (agent.unpack)(&gzip).expect("whole");
            let packed = pack::pack(&program).unwrap();
            assert_eq!((packed.size, packed.blake3, packed.cksum), (agent.size, agent.blake3, agent.cksum));
            assert_eq!((packed.machine, packed.glibc), (&*agent.kind.machine, agent.kind.glibc));
            assert_eq!(packed.protocol, Some(PROTOCOL_VERSION));
            let mut damaged = gzip.to_vec();
            let middle = damaged.len() / 2;
            damaged[middle] ^= 1;
            assert_eq!((agent.unpack)(&damaged), None);
            assert_eq!((agent.unpack)(&gzip[..middle]), None);
        }
    }

    #[test]
    fn program_tells_its_protocol() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let packed = pack::pack(&own).unwrap();
        assert_eq!((packed.protocol, packed.machine), (Some(PROTOCOL_VERSION), std::env::consts::ARCH));
        assert!(packed.glibc.is_some_and(|minor| minor > 2));
    }

    #[test]
    fn what_is_no_program_is_refused_in_words() {
        for (bytes, words) in
            [(&b""[..], "no program"), (b"#!/bin/sh\n", "no program"), (b"\x7fELF\x02\x01\x01", "no program")]
        {
            let refused = pack::pack(bytes).err().unwrap();
            assert!(refused.contains(words), "{refused}");
        }
    }
}
