//! Tokens that are kept: one in a file, which bears the name of its node.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use carrack_core::credential::Token;
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::NodeAddress;
use carrack_engine::io_failure;
use carrack_engine::secrets::{read_token, write_whole};

use crate::directories::config_directory;

/// A token that is kept.
#[derive(Debug)]
pub struct KeptToken {
    /// `HOST:PORT`.
    pub node: String,
    /// The path of its file.
    pub path: PathBuf,
    /// Why it cannot be used, if so.
    pub refused: Option<String>,
}

/// The directory of the tokens that are kept.
pub fn directory() -> PathBuf {
    config_directory().join("tokens")
}

/// Keeps a token for a node, instead of the one that is kept already, and tells where.
///
/// # Errors
/// When it is none, or cannot be written.
pub fn keep(node: &NodeAddress, token: &[u8]) -> Result<PathBuf, Failure> {
    keep_in(&directory(), node, token)
}

pub(super) fn keep_in(directory: &Path, node: &NodeAddress, token: &[u8]) -> Result<PathBuf, Failure> {
    let path = directory.join(node.known_as());
    let refused = |why| {
        let message = format!("the token for {}: {why}", node.known_as());
        Failure::new(ErrorCode::Usage, Side::Command, message)
    };
    let token = Token::new(token).map_err(refused)?;
    write_whole(&path, format!("{}\n", token.reveal()).as_bytes()).map_err(|error| named(&path, "write", &error))?;
    Ok(path)
}

/// Forgets the token that is kept for a node.
///
/// # Errors
/// When none is, or it cannot be removed.
pub fn forget(node: &NodeAddress) -> Result<(), Failure> {
    let path = directory().join(node.known_as());
    std::fs::remove_file(&path).map_err(|error| named(&path, "remove", &error))
}

/// The nodes for which tokens are kept, in order.
///
/// # Errors
/// When the directory cannot be read.
pub fn kept() -> Result<Vec<KeptToken>, Failure> {
    kept_in(&directory())
}

pub(super) fn kept_in(directory: &Path) -> Result<Vec<KeptToken>, Failure> {
    let fail = |error: io::Error| named(directory, "list", &error);
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail(error)),
    };
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fail)?;
        // What begins with a dot is being written, or was when a command died.
        let Some(node) = entry.file_name().to_str().filter(|name| !name.starts_with('.')).map(str::to_owned) else {
            continue;
        };
        let path = entry.path();
        let refused = read_token(&path).err().map(|failure| failure.message());
        all.push(KeptToken { node, path, refused });
    }
    all.sort_by(|a, b| a.node.cmp(&b.node));
    Ok(all)
}

/// Another node of the same host for which a token is kept, the first by name.
pub(super) fn other_port(directory: &Path, node: &NodeAddress) -> Option<String> {
    let own = node.known_as();
    let (host, _) = own.rsplit_once(':')?;
    let names = std::fs::read_dir(directory).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| *name != own && name.rsplit_once(':').is_some_and(|(other, _)| other == host)).min()
}

fn named(path: &Path, call: &'static str, error: &io::Error) -> Failure {
    io_failure(Side::Command, call, error).at_path(path.as_os_str().as_bytes())
}
