//! A node's key and its token: read from files, or made and kept there.

#![expect(clippy::disallowed_methods, reason = "the node's own files, by their paths")]

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use carrack_core::credential::Token;
use carrack_core::report::{ErrorCode, Failure, Side};
use data_encoding::HEXLOWER;

use super::Access;
use crate::control::token::read_token;
use crate::error::{failure, io_failure};
use crate::net::tls::Key;
use crate::own_files::write_new;

/// The key: read from its file, or made and kept there.
pub(super) fn load_key(path: &Path) -> io::Result<Key> {
    match std::fs::read(path) {
        Ok(_) if std::fs::metadata(path)?.permissions().mode() & 0o077 != 0 => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, "others can read it: make a new one, or chmod 600 it"))
        }
        Ok(pkcs8) => Key::from_pkcs8(&pkcs8),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = Key::generate()?;
            match write_new(path, key.pkcs8()) {
                // Another node has begun at the same moment: its key is this one's, too.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Key::from_pkcs8(&std::fs::read(path)?),
                written => written.map(|()| key),
            }
        }
        Err(error) => Err(error),
    }
}

/// The token, and where it is; `None` where anybody may come.
pub(super) fn load_token(access: Access) -> Result<(Option<Token>, Option<PathBuf>), Failure> {
    let path = match access {
        Access::Anonymous => return Ok((None, None)),
        Access::TokenFile(path) => path,
        Access::Generated(path) => {
            if !path.exists() {
                let mut random = [0; 32];
                let made = carrack_sys::host::random_bytes(&mut random)
                    .and_then(|()| write_new(&path, format!("{}\n", HEXLOWER.encode(&random)).as_bytes()));
                let made = made.or_else(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => Ok(()),
                    _ => Err(error),
                });
                made.map_err(|error| io_failure(Side::Command, format!("token {}", path.display()), &error))?;
            }
            path
        }
    };
    let token = read_token(&path)?;
    if token.reveal().len() < 16 {
        let message = format!(
            "token file {}: a token of {} characters can be guessed; take 32 random ones",
            path.display(),
            token.reveal().len()
        );
        return Err(failure(ErrorCode::Usage, Side::Command, message));
    }
    Ok((Some(token), Some(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_begin_at_one_moment_have_one_key_and_one_token() {
        for _ in 0..20 {
            let directory = tempfile::tempdir().unwrap();
            let (key, token) = (directory.path().join("new/node.key"), directory.path().join("new/token"));
            let start = std::sync::Barrier::new(4);
            let begin = || {
                start.wait();
                let made = load_key(&key).unwrap().pkcs8().to_vec();
                (made, load_token(Access::Generated(token.clone())).unwrap().0.unwrap().reveal().to_owned())
            };
            let made: Vec<_> = std::thread::scope(|scope| {
                let begun: Vec<_> = (0..4).map(|_| scope.spawn(begin)).collect();
                begun.into_iter().map(|one| one.join().unwrap()).collect()
            });
            assert!(made.iter().all(|one| *one == made[0]), "{made:?}");
            // Nothing else is left beside them.
            assert_eq!(std::fs::read_dir(directory.path().join("new")).unwrap().count(), 2);
        }
    }
}
