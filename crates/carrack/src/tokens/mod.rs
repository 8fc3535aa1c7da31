//! Bearer tokens: which one a node is shown of those that this user has.
//!
//! A token belongs to a node. The user says so by a flag, or by keeping it in a file with the node's name; a token that
//! is merely found where the tools of the field keep theirs may belong to any service. So neither a kept nor a found
//! one goes to a node whose key nobody had pinned before the command began, and a found one only where the command
//! names one node and no other.

pub mod kept;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrack_core::credential::{Credential, Shown, Token, TokenSource};
use carrack_core::failure::{ErrorCode, Failure, Reason, Side};
use carrack_core::limits;
use carrack_core::location::NodeAddress;
use carrack_core::path::display_bytes;
use carrack_engine::secrets::{Unread, read_secret};

/// Why a file holds no token that anybody should be shown.
type Unfit = String;

/// What a node is shown for which no flag names a token: the one that is kept for it; if there is none, and the command
/// names no other node, one that is found where other tools keep theirs. Either only if the node's key was pinned
/// before the command began.
pub fn search(of_several: bool) -> Credential {
    Credential::Source(Arc::new(Search { of_several }))
}

/// Looks for a token in this process's environment, each time that it is asked.
#[derive(Debug)]
struct Search {
    /// The command names several nodes: a token that is only found is shown to none of them.
    of_several: bool,
}

impl TokenSource for Search {
    fn token(&self, node: &NodeAddress, was_pinned: bool) -> Result<Shown, Failure> {
        let variable = |name: &str| std::env::var_os(name);
        let surroundings = Surroundings { variable: &variable, kept: kept::directory(), shared: "/tmp".into() };
        surroundings.choose(node, self.of_several, was_pinned)
    }
}

/// Where tokens are looked for. Everything outside this process comes from here, so that a test can stand in for it.
struct Surroundings<'a> {
    variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// Where tokens are kept, one file for each node.
    kept: PathBuf,
    /// A directory that everybody may write to.
    shared: PathBuf,
}

impl Surroundings<'_> {
    /// `of_several`: the command names other nodes, too.
    fn choose(&self, node: &NodeAddress, of_several: bool, was_pinned: bool) -> Result<Shown, Failure> {
        let withheld = |why: String| Failure::new(ErrorCode::AuthenticationFailed, Side::Command, why);
        let first_meeting = |what: &str| {
            let why = format!("{what} was not shown, because this is the first meeting with {node}");
            withheld(why).for_reason(Reason::FirstMeeting)
        };
        let no_token = |why| Ok(Shown { token: None, withheld: Some(Box::new(why)) });
        let kept = self.kept.join(node.known_as());
        match read(&kept, |_| None) {
            Ok(token) if was_pinned => return Ok(token.into()),
            Ok(_) => return no_token(first_meeting("the token that is kept for it")),
            Err(Unread::Absent) => {}
            Err(Unread::Foreign(why) | Unread::Unfit(why)) => return Err(refused(&kept, &why)),
        }
        let Some((origin, found)) = self.find() else {
            let Some(other) = kept::other_port(&self.kept, node) else { return Ok(Shown::default()) };
            let why = format!("the token that is kept for {other} was not shown, because this is {}", node.known_as());
            return no_token(withheld(why).for_reason(Reason::TokenMissing));
        };
        let token = match found {
            Ok(token) => token,
            Err(why) => return no_token(withheld(format!("{origin} was not shown: {why}"))),
        };
        if of_several {
            let why = format!("the token in {origin} was not shown, because the command names several nodes");
            return no_token(withheld(why).for_reason(Reason::TokenOfSeveral));
        }
        if was_pinned {
            return Ok(token.into());
        }
        no_token(first_meeting(&format!("the token in {origin}")))
    }

    /// A token where all tools of the field look for one (WLCG Bearer Token Discovery), in its order: where it is, and
    /// the token or why what is there is none.
    fn find(&self) -> Option<(String, Result<Token, Unfit>)> {
        let set = |name: &str| (self.variable)(name).filter(|value| !value.is_empty());
        if let Some(token) = set("BEARER_TOKEN") {
            return Some(("BEARER_TOKEN".into(), Token::new(token.as_bytes())));
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

/// A name that another user made in a shared directory may lead to any file of this user's: by a link, or by a
/// second name of the file.
fn may_be_found(facts: &std::fs::Metadata) -> Option<String> {
    let own = facts.uid() == carrack_sys::host::user_id() && facts.nlink() == 1;
    (!own).then(|| "it has other names, or another owner".into())
}

fn refused(path: &Path, why: &str) -> Failure {
    let shown = display_bytes(path.as_os_str().as_bytes());
    let message = format!("token file {shown}: {why}");
    Failure::new(ErrorCode::AuthenticationFailed, Side::Command, message)
}

fn read(path: &Path, more: impl FnOnce(&std::fs::Metadata) -> Option<String>) -> Result<Token, Unread> {
    // With some room for white space around it.
    let bytes = read_secret(path, 2 * limits::TOKEN_BYTES, more)?;
    Token::new(&bytes).map_err(Unread::Unfit)
}

#[cfg(test)]
mod tests;
