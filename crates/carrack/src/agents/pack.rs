//! A program for other hosts, packed: what it needs of a host, its gzip, its checksums. The build script has this file,
//! too, for the programs that go inside.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use object::read::elf::ElfFile64;
use object::{Architecture, LittleEndian, Object, ObjectSection};

/// Stands in each program, with the protocol's version behind it.
pub const MARK: &str = "carrack speaks protocol ";

/// A packed program.
pub struct Packed {
    /// As `uname -m` names the processor.
    pub machine: &'static str,
    /// The second number of the oldest glibc that will do; `None` where it brings its C library.
    pub glibc: Option<u32>,
    /// The protocol that it speaks; `None` where it does not say.
    pub protocol: Option<u32>,
    /// In gzip's format.
    pub gzip: Vec<u8>,
    /// Its length, in bytes.
    pub size: u64,
    /// Its BLAKE3.
    pub blake3: [u8; 32],
    /// What POSIX's `cksum` says of it.
    pub cksum: u32,
}

/// Packs a program for Linux.
///
/// # Errors
/// In words, where it is none, or needs another C library than glibc.
pub fn pack(program: &[u8]) -> Result<Packed, String> {
    let file =
        ElfFile64::<LittleEndian>::parse(program).map_err(|error| format!("it is no program for Linux: {error}"))?;
    let machine = match file.architecture() {
        Architecture::X86_64 => "x86_64",
        Architecture::Aarch64 => "aarch64",
        Architecture::PowerPc64 => "ppc64le",
        Architecture::Riscv64 => "riscv64",
        other => return Err(format!("it is for a processor that this carrack does not know: {other:?}")),
    };
    let glibc = needs(&file)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let gzip = encoder.write_all(program).and_then(|()| encoder.finish()).map_err(|error| error.to_string())?;
    let (size, blake3, cksum) = (program.len() as u64, *blake3::hash(program).as_bytes(), cksum(program));
    Ok(Packed { machine, glibc, protocol: protocol(program), gzip, size, blake3, cksum })
}

/// Of the C library: the highest version of glibc that a symbol asks for.
fn needs(file: &ElfFile64<'_, LittleEndian>) -> Result<Option<u32>, String> {
    let unread = |error: object::Error| format!("it is damaged: {error}");
    let loader = file.section_by_name(".interp").map(|section| section.data()).transpose().map_err(unread)?;
    let Some(loader) = loader else { return Ok(None) };
    if !loader.windows(8).any(|part| part == b"ld-linux") && !loader.windows(4).any(|part| part == b"ld64") {
        return Err("it needs another C library than glibc; link it statically".to_owned());
    }
    let (endian, sections) = (file.endian(), file.elf_section_table());
    let needed = sections.gnu_verneed(endian, file.data()).map_err(unread)?;
    let Some((mut libraries, strings)) = needed else { return Ok(Some(0)) };
    let strings = sections.strings(endian, file.data(), strings).map_err(unread)?;
    let mut least = 0;
    while let Some((_, mut versions)) = libraries.next().map_err(unread)? {
        while let Some(version) = versions.next().map_err(unread)? {
            let name = version.name(endian, strings).map_err(unread)?;
            least = least.max(match name {
                b"GLIBC_ABI_DT_RELR" => 36,
                _ => name.strip_prefix(b"GLIBC_2.").and_then(second_number).unwrap_or(0),
            });
        }
    }
    Ok(Some(least))
}

fn second_number(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.split('.').next()?.parse().ok()
}

/// What stands behind the mark, which the text of this program has once more, without a number.
fn protocol(program: &[u8]) -> Option<u32> {
    let mark = MARK.as_bytes();
    let behind =
        program.windows(mark.len()).enumerate().filter(|(_, part)| *part == mark).map(|(at, _)| at + mark.len());
    behind.into_iter().find_map(|at| {
        let digits: String = program.get(at..at + 4)?.iter().map(|&byte| char::from(byte)).collect();
        digits.parse().ok()
    })
}

/// What POSIX's `cksum` says: bit by bit, for one file.
fn cksum(bytes: &[u8]) -> u32 {
    let length = bytes.len().to_le_bytes();
    let significant = length.len() - length.iter().rev().take_while(|byte| **byte == 0).count();
    let mut sum = 0_u32;
    for byte in bytes.iter().chain(&length[..significant]) {
        sum ^= u32::from(*byte) << 24;
        for _ in 0..8 {
            sum = (sum << 1) ^ if sum >> 31 == 1 { 0x04c1_1db7 } else { 0 };
        }
    }
    !sum
}
