//! Bearer tokens: which one a node is shown, where it comes from, and where tokens are kept.
//!
//! A token belongs to a node. The user says so by a flag, or by keeping it in a file with the node's name; a token that is merely found
//! where the tools of the field keep theirs may belong to any service. So neither a kept nor a found one goes to a node whose key nobody had
//! pinned before the command began, and a found one only where the command names one node and no other.

#![expect(clippy::disallowed_methods, reason = "files of the user's own, by the path that the user gave them")]

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use carrack_core::limits;
use carrack_core::location::NodeAddress;
use carrack_core::path::display_bytes;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::request::Credential;

use crate::error::{describe, failure};
use crate::own_files::{Unread, config_directory, read_secret, write_whole};

/// Why a file holds no token that anybody should be shown.
type Unfit = String;

/// What one node is shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The bearer token; empty for none.
    pub token: String,
    /// What a user has to know if the node refuses that: why another token was not shown, and what to do about it.
    pub hint: Option<String>,
}

/// Where tokens are looked for. Everything outside this process comes from here, so that a test can stand in for it.
struct Surroundings<'a> {
    variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// Where tokens are kept, one file for each node.
    kept: PathBuf,
    /// A directory that everybody may write to.
    shared: PathBuf,
}

/// The token for a node. `was_pinned`: its key was pinned before the command began.
///
/// # Errors
/// When the file that was named, or the one kept for this node, holds no token or is not the user's own.
pub fn choose(node: &NodeAddress, credential: &Credential, was_pinned: bool) -> Result<Shown, Failure> {
    let variable = |name: &str| std::env::var_os(name);
    let surroundings =
        Surroundings { variable: &variable, kept: config_directory().join("tokens"), shared: "/tmp".into() };
    surroundings.choose(node, credential, was_pinned)
}

impl Surroundings<'_> {
    fn choose(&self, node: &NodeAddress, credential: &Credential, was_pinned: bool) -> Result<Shown, Failure> {
        if let Credential::File(path) = credential {
            let token = read_token(Path::new(&OsString::from_vec(path.clone())))?;
            return Ok(Shown { token, hint: None });
        }
        let first_meeting = |what: &str| {
            format!(
                "{what} was not shown, because this is the first meeting with {node}: compare the key in the note above with what \
                 the node's administrator says, and run the command again; or type it behind the address (#sha256:...)"
            )
        };
        let withheld = |hint| Ok(Shown { token: String::new(), hint: Some(hint) });
        let kept = self.kept.join(node.known_as());
        match read(&kept, |_| None) {
            Ok(token) if was_pinned => return Ok(Shown { token, hint: None }),
            Ok(_) => return withheld(first_meeting("the token that is kept for it")),
            Err(Unread::Absent) => {}
            Err(Unread::Foreign(why) | Unread::Unfit(why)) => return Err(refused(&kept, &why)),
        }
        let Some((origin, found)) = self.find() else { return Ok(Shown::default()) };
        let token = match found {
            Ok(token) => token,
            Err(why) => return withheld(format!("{origin} was not shown: {why}")),
        };
        if *credential == Credential::Kept {
            return withheld(format!(
                "the token in {origin} was not shown, because the command names several nodes: give each its own by \
                 --source-token-file and --destination-token-file, or keep it by `carrack token add {node}`"
            ));
        }
        if was_pinned {
            return Ok(Shown { token, hint: None });
        }
        withheld(first_meeting(&format!("the token in {origin}")))
    }

    /// A token where all tools of the field look for one (WLCG Bearer Token Discovery), in its order: where it is, and the token or why
    /// what is there is none.
    fn find(&self) -> Option<(String, Result<String, Unfit>)> {
        let set = |name: &str| (self.variable)(name).filter(|value| !value.is_empty());
        if let Some(token) = set("BEARER_TOKEN") {
            return Some(("BEARER_TOKEN".into(), check(token.as_bytes())));
        }
        let shown = |path: &Path| display_bytes(path.as_os_str().as_bytes()).to_string();
        if let Some(path) = set("BEARER_TOKEN_FILE").map(PathBuf::from) {
            let token = read(&path, |_| None).map_err(|unread| match unread {
                Unread::Absent => "no such file".into(),
                Unread::Foreign(why) | Unread::Unfit(why) => why,
            });
            return Some((format!("the file {} that BEARER_TOKEN_FILE names", shown(&path)), token));
        }
        let name = format!("bt_u{}", carrack_sys::host::user_id());
        let runtime = set("XDG_RUNTIME_DIR").map(|directory| PathBuf::from(directory).join(&name));
        for path in runtime.into_iter().chain([self.shared.join(&name)]) {
            match read(&path, may_be_found) {
                Ok(token) => return Some((format!("the file {}", shown(&path)), Ok(token))),
                // Anybody may put something there: it is none of ours, and no error of ours.
                Err(Unread::Absent | Unread::Foreign(_)) => {}
                Err(Unread::Unfit(why)) => return Some((format!("the file {}", shown(&path)), Err(why))),
            }
        }
        None
    }
}

/// A name that another user made in a shared directory may lead to any file of this user's: by a link, or by a second name of the file.
fn may_be_found(facts: &std::fs::Metadata) -> Option<String> {
    let own = facts.uid() == carrack_sys::host::user_id() && facts.nlink() == 1;
    (!own).then(|| "it has other names, or another owner".into())
}

/// Reads a token that nobody else can read.
///
/// # Errors
/// When others can, it is somebody else's, or it holds no token.
pub fn read_token(path: &Path) -> Result<String, Failure> {
    read(path, |_| None).map_err(|unread| match unread {
        Unread::Absent => refused(path, "No such file or directory"),
        Unread::Foreign(why) | Unread::Unfit(why) => refused(path, &why),
    })
}

fn refused(path: &Path, why: &str) -> Failure {
    let shown = display_bytes(path.as_os_str().as_bytes());
    failure(ErrorCode::AuthenticationFailed, Side::Command, format!("token file {shown}: {why}"))
}

fn read(path: &Path, more: impl FnOnce(&std::fs::Metadata) -> Option<String>) -> Result<String, Unread> {
    // With some room for white space around it.
    let bytes = read_secret(path, 2 * limits::TOKEN_BYTES, more)?;
    check(&bytes).map_err(Unread::Unfit)
}

/// A token, without the white space around it.
///
/// # Errors
/// What is wrong with it; nothing of it is in the words.
pub fn check(bytes: &[u8]) -> Result<String, Unfit> {
    let token = bytes.trim_ascii();
    if token.is_empty() {
        return Err("it is empty".into());
    }
    if token.len() > limits::TOKEN_BYTES {
        return Err(format!("a token has at most {} characters", limits::TOKEN_BYTES));
    }
    // RFC 6750 allows fewer; what is no line of visible characters is a key, a password file, anything but a token.
    match std::str::from_utf8(token) {
        Ok(token) if token.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(token.to_owned()),
        _ => Err("it is no token: a token is one word of visible ASCII characters".into()),
    }
}

/// A token that is kept.
#[derive(Debug)]
pub struct KeptToken {
    /// `HOST:PORT`.
    pub node: String,
    /// Its file.
    pub path: PathBuf,
    /// Why it cannot be used, if so.
    pub refused: Option<String>,
}

/// Keeps a token for a node, instead of the one that is kept already, and tells where.
///
/// # Errors
/// When it is none, or cannot be written.
pub fn keep(node: &NodeAddress, token: &[u8]) -> Result<PathBuf, Failure> {
    keep_in(&config_directory().join("tokens"), node, token)
}

fn keep_in(directory: &Path, node: &NodeAddress, token: &[u8]) -> Result<PathBuf, Failure> {
    let path = directory.join(node.known_as());
    let token = check(token)
        .map_err(|why| failure(ErrorCode::Usage, Side::Command, format!("the token for {}: {why}", node.known_as())))?;
    write_whole(&path, format!("{token}\n").as_bytes()).map_err(|error| named(&path, "write", &error))?;
    Ok(path)
}

/// Forgets the token that is kept for a node.
///
/// # Errors
/// When none is, or it cannot be removed.
pub fn forget(node: &NodeAddress) -> Result<(), Failure> {
    let path = config_directory().join("tokens").join(node.known_as());
    std::fs::remove_file(&path).map_err(|error| named(&path, "remove", &error))
}

/// The nodes for which tokens are kept, in order.
///
/// # Errors
/// When the directory cannot be read.
pub fn kept() -> Result<Vec<KeptToken>, Failure> {
    kept_in(&config_directory().join("tokens"))
}

fn kept_in(directory: &Path) -> Result<Vec<KeptToken>, Failure> {
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
        let refused = read_token(&path).err().map(|failure| failure.message);
        all.push(KeptToken { node, path, refused });
    }
    all.sort_by(|a, b| a.node.cmp(&b.node));
    Ok(all)
}

fn named(path: &Path, what: &str, error: &io::Error) -> Failure {
    let shown = display_bytes(path.as_os_str().as_bytes());
    failure(crate::error::code_of(error), Side::Command, format!("{shown}: {what}: {}", describe(error)))
}

#[cfg(test)]
mod tests;
