//! Keys of receipts: this user's own, and those of others that this user knows.

use std::fs::File;
use std::path::PathBuf;

use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_engine::secrets::{Unread, read_secret, write_whole};
use carrack_receipt::{KeptSigner, PublicKey, ReadReceipt, ReceiptError, ReceiptKey, Signers};

use crate::directories::{config_directory, state_directory};
use crate::error::CommandError;

/// A file of a key is no longer.
const KEY_BYTES: usize = 4 << 10;
/// Nor is one of known keys.
const SIGNERS_BYTES: u64 = 4 << 20;

/// Whose a key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signer {
    /// This user's.
    Own,
    /// Somebody's that this user knows.
    Known(String),
    /// Nobody's that this user knows.
    Unknown,
}

/// Where this user's key is.
pub fn key_path() -> PathBuf {
    state_directory().join("receipt_key")
}

/// Where the known keys are.
pub fn signers_path() -> PathBuf {
    config_directory().join("receipt_signers")
}

/// This user's key, where there is one.
///
/// # Errors
/// When its file cannot be used.
pub fn own_key() -> Result<Option<ReceiptKey>, CommandError> {
    let path = key_path();
    let unfit = |why: &str| {
        let why = format!("the key for receipts, {}: {why}", path.display());
        CommandError::from(Failure::new(ErrorCode::PermissionDenied, Side::Command, why))
    };
    match read_secret(&path, KEY_BYTES, |_| None) {
        Err(Unread::Absent) => Ok(None),
        Err(Unread::Foreign(why) | Unread::Unfit(why)) => Err(unfit(&why)),
        Ok(bytes) => ReceiptKey::parse(&bytes).map(Some).map_err(|error| unfit(&error.to_string())),
    }
}

/// This user's key; it is made where there is none.
///
/// # Errors
/// When its file cannot be used, or not be written.
pub fn own_key_or_new() -> Result<ReceiptKey, CommandError> {
    if let Some(key) = own_key()? {
        return Ok(key);
    }
    let path = key_path();
    let (key, text) = ReceiptKey::generate().map_err(|error| CommandError::usage(error.to_string()))?;
    let written = write_whole(&path, text.as_bytes());
    let name = path.as_os_str().as_encoded_bytes();
    written.map_err(|error| CommandError::file("cannot write the key for receipts", name, &error))?;
    // Two commands may have made one at the same time: whichever stands there now is this user's.
    Ok(own_key()?.unwrap_or(key))
}

/// The keys of others that this user knows.
///
/// # Errors
/// When the file cannot be read.
pub fn signers() -> Result<Signers, CommandError> {
    use std::io::Read;
    let path = signers_path();
    let unread =
        |error| CommandError::file("cannot read the keys of signers in", path.as_os_str().as_encoded_bytes(), &error);
    let mut text = String::new();
    match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Signers::default()),
        opened => opened.and_then(|file| file.take(SIGNERS_BYTES).read_to_string(&mut text)).map_err(unread)?,
    };
    Ok(Signers::parse(&text))
}

/// Keeps a key, or forgets one. Lines of the file that are of another form stay.
///
/// # Errors
/// When the file cannot be read or written.
pub fn change_signers(change: impl Fn(&mut Vec<String>)) -> Result<(), CommandError> {
    let path = signers_path();
    let name = path.as_os_str().as_encoded_bytes();
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.map_err(|error| CommandError::file("cannot read the keys of signers in", name, &error))?,
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    let text: String = lines.into_iter().map(|line| line + "\n").collect();
    let written = write_whole(&path, text.as_bytes());
    written.map_err(|error| CommandError::file("cannot write the keys of signers to", name, &error))
}

/// The line of a signer of this name.
pub fn is_line_of(line: &str, name: &str) -> bool {
    Signers::parse(line).kept.iter().any(|KeptSigner { name: kept, .. }| kept == name)
}

/// Whose a key is.
///
/// # Errors
/// When the known keys cannot be read.
pub fn signer(key: PublicKey) -> Result<Signer, CommandError> {
    if own_key()?.is_some_and(|own| own.public() == key) {
        return Ok(Signer::Own);
    }
    let known = signers()?;
    Ok(known.name_of(key).map_or(Signer::Unknown, |name| Signer::Known(name.to_owned())))
}

/// Opens a receipt and looks whether it is what was signed.
///
/// # Errors
/// When it cannot be read, or is not.
pub fn open(path: &[u8]) -> Result<ReadReceipt<File>, CommandError> {
    use std::os::unix::ffi::OsStrExt;
    let file = File::open(std::ffi::OsStr::from_bytes(path));
    let file = file.map_err(|error| CommandError::file("cannot read the receipt", path, &error))?;
    ReadReceipt::open(file).map_err(|error| refused(path, &error))
}

/// What is wrong with a receipt, as the end of a command.
pub fn refused(path: &[u8], error: &ReceiptError) -> CommandError {
    let name = carrack_core::path::display_bytes(path);
    let code = match error {
        ReceiptError::Io(error) => return CommandError::file("cannot read the receipt", path, error),
        ReceiptError::Unread(why) => return why.clone().into(),
        ReceiptError::Form { line: 1, .. } => ErrorCode::Usage,
        ReceiptError::Form { .. } | ReceiptError::Altered(_) | ReceiptError::Signature(_) => ErrorCode::DigestMismatch,
    };
    Failure::new(code, Side::Command, format!("the receipt {name}: {error}")).into()
}
