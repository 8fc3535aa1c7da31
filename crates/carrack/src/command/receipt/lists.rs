//! Lists of a receipt's files for other tools. A digest that the receipt has not is made from a file whose content is
//! compared with the receipt at the same time.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use carrack_core::path::{check_relative, display_bytes};
use carrack_core::report::{ErrorCode, Failure, ItemKind, Side};
use carrack_receipt::{ReadReceipt, ReceiptItem};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use crate::error::CommandError;
use crate::output::lines::Lines;
use crate::output::{format, manifest, say};
use crate::receipts;

/// Bytes that are read at a time.
const SLICE_BYTES: usize = 1 << 20;

/// Prints the files of a receipt in a form that other tools read.
pub fn list(path: &[u8], form: &str, directory: &Path) -> Result<(), CommandError> {
    if !["b3sum", "sha256sum", "ro-crate"].contains(&form) {
        return Err(CommandError::usage(format!("{form:?} is no form of a list: use b3sum, sha256sum or ro-crate")));
    }
    let mut receipt = receipts::open(path)?;
    if (form == "sha256sum") == directory.as_os_str().is_empty() {
        let message = "sha256sum needs DIR, the directory with the files; the other forms need none";
        return Err(CommandError::usage(message));
    }
    if form == "ro-crate" {
        return crate_of(path, &mut receipt);
    }
    let mut out = Lines::stdout(false);
    let mut left_out = 0;
    each_file(path, &mut receipt, &mut |item| {
        let digest = match (form, item.blake3) {
            ("sha256sum", _) => sha256_of(directory, item)?,
            (_, Some(digest)) => HEXLOWER.encode(&digest),
            (_, None) => {
                left_out += 1;
                return Ok(());
            }
        };
        let line = manifest::line(&digest, &item.path);
        out.line(line.strip_suffix(b"\n").unwrap_or(&line));
        Ok(())
    })?;
    if left_out > 0 {
        let files = format::counted(left_out, "file", "files");
        say(&format!("note: {files} left out: the receipt has no digest of them"));
    }
    out.finish()
}

/// Hands out the files that the receipt says are there.
pub fn each_file(
    path: &[u8],
    receipt: &mut ReadReceipt<File>,
    each: &mut dyn FnMut(&ReceiptItem) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let refused = |error| receipts::refused(path, &error);
    let mut items = receipt.items().map_err(refused)?;
    while let Some(item) = items.next_item().map_err(refused)? {
        if item.outcome.is_claimed() && item.kind == ItemKind::File {
            each(&item)?;
        }
    }
    Ok(())
}

/// The SHA-256 digest of a file, in hexadecimal.
///
/// # Errors
/// When it cannot be read, or has not the content that the receipt says.
pub fn sha256_of(directory: &Path, item: &ReceiptItem) -> Result<String, CommandError> {
    let path = directory.join(std::ffi::OsStr::from_bytes(&item.path));
    let name = path.as_os_str().as_bytes();
    // A receipt is anybody's text.
    check_relative(&item.path).map_err(|why| CommandError::usage(format!("{}: {why}", display_bytes(&item.path))))?;
    let unread = |error: std::io::Error| CommandError::file("cannot read", name, &error);
    let mut file = carrack_sys::file::open_unfollowed(&path).map_err(unread)?;
    let mut sums = Sums::default();
    let mut slice = vec![0; SLICE_BYTES];
    loop {
        match file.read(&mut slice).map_err(unread)? {
            0 => break,
            count => sums.update(&slice[..count]),
        }
    }
    let is_same = sums.bytes == item.size && item.blake3.is_none_or(|digest| sums.blake3.finalize() == digest);
    if !is_same {
        let what = format!("{} has not the content that the receipt says", display_bytes(name));
        return Err(Failure::new(ErrorCode::DigestMismatch, Side::Command, what).into());
    }
    Ok(HEXLOWER.encode(sums.sha256.finish().as_ref()))
}

#[derive(Default)]
struct Sums {
    blake3: blake3::Hasher,
    sha256: carrack_receipt::Sha256,
    bytes: u64,
}

impl Sums {
    fn update(&mut self, bytes: &[u8]) {
        self.blake3.update(bytes);
        self.sha256.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

/// The files as an RO-Crate (1.1) describes them.
fn crate_of(path: &[u8], receipt: &mut ReadReceipt<File>) -> Result<(), CommandError> {
    let (began, source) = (receipt.statement.made.clone(), receipt.statement.sources.join(", "));
    let (mut parts, mut files): (Vec<Value>, Vec<Value>) = Default::default();
    each_file(path, receipt, &mut |item| {
        let name = std::str::from_utf8(&item.path).map_err(|_| {
            let name = display_bytes(&item.path);
            CommandError::usage(format!("{name} is not UTF-8: an RO-Crate cannot name it"))
        })?;
        let id = percent_encoded(name);
        let mut file = json!({ "@id": id, "@type": "File", "name": name, "contentSize": item.size.to_string() });
        if let Some(digest) = item.blake3 {
            file["identifier"] = json!(format!("blake3:{}", HEXLOWER.encode(&digest)));
        }
        if let Some(time) = item.found.as_ref().and_then(|found| found.mtime) {
            file["dateModified"] = json!(format::rfc3339_nanos(time.seconds, time.nanos));
        }
        parts.push(json!({ "@id": id }));
        files.push(file);
        Ok(())
    })?;
    let root = json!({
        "@id": "./", "@type": "Dataset", "datePublished": began, "name": "Copied files",
        "description": format!("Files copied from {source}, as a receipt of Carrack lists them"), "hasPart": parts,
    });
    let descriptor = json!({
        "@id": "ro-crate-metadata.json", "@type": "CreativeWork", "about": { "@id": "./" },
        "conformsTo": { "@id": "https://w3id.org/ro/crate/1.1" },
    });
    let graph: Vec<Value> = [descriptor, root].into_iter().chain(files).collect();
    let whole = json!({ "@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph });
    let mut out = Lines::stdout(false);
    out.line(format!("{whole:#}").as_bytes());
    out.finish()
}

/// A path as part of a URI.
fn percent_encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}
