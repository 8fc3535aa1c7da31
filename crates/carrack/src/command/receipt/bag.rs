//! `carrack receipt bag`: a BagIt bag (RFC 8493) of what a receipt lists. The files stay where they are, in `DIR/data`;
//! the bag's lists are written beside that directory.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use carrack_core::path::display_bytes;
use carrack_core::report::{ErrorCode, Failure, ItemKind, Side};
use carrack_receipt::{BAGIT_TXT, Sha256, bag_line};
use data_encoding::HEXLOWER;
use serde_json::json;

use super::lists::{each_file, sha256_of};
use crate::error::CommandError;
use crate::output::lines::Lines;
use crate::output::{format, json as objects, say};
use crate::receipts;

/// Where a bag has its files.
const PAYLOAD: &str = "data";
/// Where it has the receipt.
const KEPT_RECEIPT: &str = "carrack-receipt.jsonl";
/// Names that are told of what does not belong there.
const NAMES_TOLD: usize = 5;

/// Makes the bag.
pub fn make(path: &[u8], directory: &Path, json: bool) -> Result<(), CommandError> {
    let payload = directory.join(PAYLOAD);
    let mut receipt = receipts::open(path)?;
    let mut unlisted = BTreeSet::new();
    collect(&payload, b"", &mut unlisted)?;
    check_names(path, &mut receipt, &mut unlisted)?;
    let (mut lines, mut files, mut bytes) = (String::new(), 0_u64, 0_u64);
    each_file(path, &mut receipt, &mut |item| {
        let digest = sha256_of(&payload, item)?;
        let name = [PAYLOAD.as_bytes(), b"/", &item.path].concat();
        lines += &bag_line(&digest, &name).unwrap_or_default();
        (files, bytes) = (files + 1, bytes + item.size);
        Ok(())
    })?;
    let text = std::fs::read(std::ffi::OsStr::from_bytes(path));
    let text = text.map_err(|error| CommandError::file("cannot read the receipt", path, &error))?;
    let info = format!(
        "Bagging-Date: {}\nBag-Software-Agent: carrack {}\nPayload-Oxum: {bytes}.{files}\nExternal-Identifier: {}\n",
        &format::rfc3339(SystemTime::now())[..10],
        env!("CARGO_PKG_VERSION"),
        receipt.statement.id,
    );
    let tags: [(&str, &[u8]); 4] = [
        ("bag-info.txt", info.as_bytes()),
        ("bagit.txt", BAGIT_TXT.as_bytes()),
        (KEPT_RECEIPT, &text),
        ("manifest-sha256.txt", lines.as_bytes()),
    ];
    let mut of_tags = String::new();
    for (name, content) in tags {
        write(directory, name, content)?;
        let digest = HEXLOWER.encode(Sha256::of(content).as_ref());
        of_tags += &bag_line(&digest, name.as_bytes()).unwrap_or_default();
    }
    write(directory, "tagmanifest-sha256.txt", of_tags.as_bytes())?;
    if json {
        let mut out = Lines::stdout(true);
        let fields = objects::with_path(json!({ "files": files, "bytes": bytes }), directory.as_os_str().as_bytes());
        out.json(&objects::object("bag", SystemTime::now(), fields));
        return out.finish();
    }
    let counted = format::counted(files, "file", "files");
    let name = display_bytes(directory.as_os_str().as_bytes());
    say(&format!("{name} is a bag of {counted}, {}: each was compared with the receipt", format::size(bytes)));
    Ok(())
}

/// Looks at all names before anything is written.
fn check_names(
    path: &[u8],
    receipt: &mut carrack_receipt::ReadReceipt<fs::File>,
    unlisted: &mut BTreeSet<Vec<u8>>,
) -> Result<(), CommandError> {
    let refused = |error| receipts::refused(path, &error);
    let mut items = receipt.items().map_err(refused)?;
    while let Some(item) = items.next_item().map_err(refused)? {
        let name = display_bytes(&item.path);
        match item.kind {
            ItemKind::Directory => {}
            _ if !item.outcome.is_claimed() => {
                let what = format!("{name} is {} in the receipt: a bag of it would not be whole", item.outcome.name());
                return Err(refuse(what));
            }
            ItemKind::File if bag_line("", &item.path).is_none() => {
                return Err(refuse(format!("{name} is not UTF-8: a bag cannot name it")));
            }
            ItemKind::File => {
                unlisted.remove(&item.path);
            }
            kind => return Err(refuse(format!("{name} is a {}: a bag has files alone", kind.name()))),
        }
    }
    if unlisted.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = unlisted.iter().take(NAMES_TOLD).map(|name| display_bytes(name).to_string()).collect();
    let what = format!("not in the receipt, and in {PAYLOAD}: {}", shown.join(", "));
    let hint = "copy all that the bag is to have with one --receipt, into DIR/data";
    Err(refuse(what).hint(hint))
}

fn refuse(what: String) -> CommandError {
    Failure::new(ErrorCode::Usage, Side::Command, what).into()
}

/// What is in the payload, but directories.
fn collect(directory: &Path, below: &[u8], names: &mut BTreeSet<Vec<u8>>) -> Result<(), CommandError> {
    let unread = |error: std::io::Error| {
        CommandError::file("cannot list", directory.as_os_str().as_bytes(), &error)
            .hint("a bag's files are in DIR/data: carrack copy SRC DIR/data/ --receipt FILE")
    };
    for entry in fs::read_dir(directory).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let name = carrack_core::path::join(below, entry.file_name().as_bytes());
        match entry.file_type().map_err(unread)?.is_dir() {
            true => collect(&entry.path(), &name, names)?,
            false => {
                names.insert(name);
            }
        }
    }
    Ok(())
}

fn write(directory: &Path, name: &str, content: &[u8]) -> Result<(), CommandError> {
    let path = directory.join(name);
    let named = path.as_os_str().as_bytes();
    let mut file = crate::output::part_file::OutputFile::create(named);
    let written = file.as_mut().map_or_else(|_| Ok(()), |file| std::io::Write::write_all(file, content));
    let published = file.and_then(|file| written.and_then(|()| file.publish()));
    published.map_err(|error| CommandError::file("cannot write", named, &error))
}
