//! A node's key and its token: read from files, or made and kept there.

#![expect(clippy::disallowed_methods, reason = "the node's own files, by their paths")]

use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use carrack_core::credential::Token;
use carrack_core::report::{ErrorCode, Failure, Side};
use data_encoding::HEXLOWER;

use super::Access;
use crate::control::token::read_token;
use crate::error::{failure, io_failure};
use crate::net::tls::Key;

/// The key: read from its file, or made and kept there.
pub(super) fn load_key(path: &Path) -> io::Result<Key> {
    match std::fs::read(path) {
        Ok(_) if std::fs::metadata(path)?.permissions().mode() & 0o077 != 0 => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, "others can read it: make a new one, or chmod 600 it"))
        }
        Ok(pkcs8) => Key::from_pkcs8(&pkcs8),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = Key::generate()?;
            write_private(path, key.pkcs8())?;
            Ok(key)
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
                    .and_then(|()| write_private(&path, format!("{}\n", HEXLOWER.encode(&random)).as_bytes()));
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

/// Writes a new file that nobody else can read.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
