//! Bearer tokens: what one node is shown, and files that hold a token.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use carrack_core::credential::{Credential, Shown, Token};
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::limits;
use carrack_core::location::NodeAddress;
use carrack_core::path::display_bytes;

use crate::error::failure;
use crate::own_files::{Unread, read_secret};

/// What a node is shown. `was_pinned`: its key was known before the work began.
///
/// # Errors
/// When the file that was named holds no token or is not the user's own; those of the source that was handed in.
pub fn choose(node: &NodeAddress, credential: &Credential, was_pinned: bool) -> Result<Shown, Failure> {
    match credential {
        Credential::None => Ok(Shown::default()),
        Credential::File(path) => read_token(Path::new(&OsString::from_vec(path.clone()))).map(Shown::from),
        Credential::Value(token) => Ok(token.clone().into()),
        Credential::Source(source) => source.token(node, was_pinned),
    }
}

/// Reads a token that nobody else can read.
///
/// # Errors
/// When others can, it is somebody else's, or it holds no token.
pub fn read_token(path: &Path) -> Result<Token, Failure> {
    // With some room for white space around it.
    let bytes = read_secret(path, 2 * limits::TOKEN_BYTES, |_| None);
    bytes.and_then(|bytes| Token::new(&bytes).map_err(Unread::Unfit)).map_err(|unread| match unread {
        Unread::Absent => refused(path, "No such file or directory"),
        Unread::Foreign(why) | Unread::Unfit(why) => refused(path, &why),
    })
}

fn refused(path: &Path, why: &str) -> Failure {
    let shown = display_bytes(path.as_os_str().as_bytes());
    failure(ErrorCode::AuthenticationFailed, Side::Command, format!("token file {shown}: {why}"))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;
    use std::sync::Arc;

    use carrack_core::credential::TokenSource;

    use super::*;

    fn node() -> NodeAddress {
        NodeAddress { host: "node.example".into(), port: 7420, pin: None }
    }

    /// A file with a mode.
    fn write(path: &Path, text: &[u8], mode: u32) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        path.to_path_buf()
    }

    #[test]
    fn file_that_was_named_is_the_users_own_or_an_error() {
        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &[u8], mode: u32| write(&home.path().join(name), text, mode);
        let choose =
            |path: &Path| super::choose(&node(), &Credential::File(path.as_os_str().as_bytes().to_vec()), true);
        let refused = |path: &Path, word: &str| {
            let failure = choose(path).unwrap_err();
            assert_eq!(failure.code, ErrorCode::AuthenticationFailed);
            assert!(failure.why.contains(word), "{word}: {failure}");
        };
        let good = write("good", b"word", 0o600);
        let link = home.path().join("link");
        symlink(&good, &link).unwrap();
        refused(&link, "symbolic link");
        refused(&home.path().join("absent"), "No such file");
        // The directory may be one that cannot be listed.
        let searched = write("searched/token", b"word", 0o600);
        fs::set_permissions(home.path().join("searched"), Permissions::from_mode(0o100)).unwrap();
        assert_eq!(choose(&searched).unwrap().token, Some(Token::new(b"word").unwrap()));
        fs::set_permissions(home.path().join("searched"), Permissions::from_mode(0o700)).unwrap();
        refused(home.path(), "no regular file");
        let fifo = home.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        refused(&fifo, "no regular file");
        for mode in [0o640, 0o604, 0o620, 0o602] {
            refused(&write("open", b"word", mode), "others can read or write");
        }
        refused(&write("empty", b" \n", 0o600), "empty");
        refused(&write("words", b"two words", 0o600), "no token");
        refused(&write("bytes", b"\x00\x01", 0o600), "no token");
        refused(&write("long", &vec![b'a'; limits::TOKEN_BYTES + 1], 0o600), "at most");
        refused(&write("huge", &vec![b'a'; 3 * limits::TOKEN_BYTES], 0o600), "bytes");
    }

    #[derive(Debug)]
    struct Pinned;

    impl TokenSource for Pinned {
        fn token(&self, node: &NodeAddress, was_pinned: bool) -> Result<Shown, Failure> {
            let why = failure(ErrorCode::AuthenticationFailed, Side::Command, format!("{} {was_pinned}", node.host));
            Ok(Shown { token: None, withheld: Some(Box::new(why)) })
        }
    }

    #[test]
    fn credential_of_an_end_is_shown_as_it_is_or_asked_for() {
        let given = Token::new(b"given").unwrap();
        for was_pinned in [false, true] {
            let choose = |credential| choose(&node(), &credential, was_pinned).unwrap();
            assert_eq!(choose(Credential::None), Shown::default());
            // Whoever hands in a token has said whose it is: that is enough at a first meeting.
            assert_eq!(choose(Credential::Value(given.clone())), given.clone().into());
            let asked = choose(Credential::Source(Arc::new(Pinned)));
            assert_eq!(asked.withheld.unwrap().why, format!("node.example {was_pinned}"));
        }
    }
}
