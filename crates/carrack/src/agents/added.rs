//! Programs for other hosts that the user has added: each a file in gzip's format, and one in JSON that says what it
//! is.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrack_core::agents::{AgentProgram, HostKind};
use carrack_core::wire::PROTOCOL_VERSION;
use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use super::pack::{self, Packed};
use super::unpack;
use crate::directories::data_directory;

/// A program that was added.
pub struct Added {
    /// What it is.
    pub agent: AgentProgram,
    /// Where it is kept.
    pub path: PathBuf,
}

fn directory() -> PathBuf {
    data_directory().join("agents")
}

/// Those that speak this program's protocol, in the order of their names. What cannot be read is none.
pub fn all() -> Vec<Added> {
    let entries = fs::read_dir(directory()).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut documents: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    documents.sort();
    documents.iter().filter_map(|path| read(path)).collect()
}

fn read(document: &Path) -> Option<Added> {
    let path = document.with_extension("gz");
    // It will run wherever this user can log in.
    if ![document.parent()?, document, &path].into_iter().all(is_of_user_alone) {
        return None;
    }
    let said: Value = serde_json::from_slice(&fs::read(document).ok()?).ok()?;
    let number = |name: &str| said[name].as_u64();
    if number("protocol") != Some(PROTOCOL_VERSION.into()) {
        return None;
    }
    // One that was cut short is none.
    let gzip_size = fs::metadata(&path).ok()?.len();
    if number("bytes") != Some(gzip_size) {
        return None;
    }
    let from = path.clone();
    let kind = HostKind {
        system: "Linux".into(),
        machine: word(said["machine"].as_str()?)?.into(),
        glibc: number("glibc").and_then(|minor| u32::try_from(minor).ok()),
    };
    let blake3: [u8; 32] = HEXLOWER.decode(said["blake3"].as_str()?.as_bytes()).ok()?.try_into().ok()?;
    let agent = AgentProgram {
        kind,
        gzip_size,
        gzip: Arc::new(move || still_whole(&from, &blake3).map(Into::into)),
        size: number("size")?,
        blake3,
        cksum: u32::try_from(number("cksum")?).ok()?,
        unpack,
    };
    Some(Added { agent, path })
}

/// What was added, if it is still that.
fn still_whole(path: &Path, blake3: &[u8; 32]) -> io::Result<Vec<u8>> {
    let gzip = fs::read(path)?;
    match unpack(&gzip) {
        Some(program) if blake3::hash(&program) == *blake3 => Ok(gzip),
        _ => Err(io::Error::other(format!("{} has changed since it was added; add it again", path.display()))),
    }
}

/// Whether nobody but the user, or root, can change what is there.
fn is_of_user_alone(path: &Path) -> bool {
    let owner = [0, carrack_sys::host::user_id()];
    fs::symlink_metadata(path)
        .is_ok_and(|found| !found.is_symlink() && owner.contains(&found.uid()) && found.mode() & 0o022 == 0)
}

/// It stands in a line of shell.
fn word(text: &str) -> Option<String> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_plain.then(|| text.to_owned())
}

/// Keeps a program, in the place of one for the same kind of host.
///
/// # Errors
/// Those of the files; in words, where it is no agent that this program can send.
pub fn add(program: &[u8]) -> Result<Added, String> {
    let packed = pack::pack(program)?;
    match packed.protocol {
        Some(PROTOCOL_VERSION) => {}
        Some(other) => {
            return Err(format!("it speaks protocol {other}, and this carrack protocol {PROTOCOL_VERSION}"));
        }
        None => return Err("it is no carrack".to_owned()),
    }
    keep(&packed).map_err(|error| format!("cannot keep it in {}: {error}", directory().display()))
}

fn keep(packed: &Packed) -> io::Result<Added> {
    let Packed { machine, glibc, gzip, size, blake3, cksum, .. } = packed;
    let directory = directory();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    let needs = if glibc.is_some() { "glibc" } else { "static" };
    let document = directory.join(format!("linux-{machine}-{needs}.json"));
    let text = json!({
        "machine": machine, "glibc": glibc, "size": size, "bytes": gzip.len(), "blake3": HEXLOWER.encode(blake3),
        "cksum": cksum, "protocol": packed.protocol,
    });
    // Whoever reads between the two meets no document, or a program that has not the announced length.
    let _ = fs::remove_file(&document);
    replace(&document.with_extension("gz"), gzip)?;
    replace(&document, format!("{text}\n").as_bytes())?;
    read(&document).ok_or_else(|| io::Error::other("others may write there"))
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let next = path.with_extension(format!("next{}", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(next, path)
}
