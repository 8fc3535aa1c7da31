//! A receipt is read: first whether it is what was signed, then item by item.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use carrack_core::plan::check::listing_order;
use data_encoding::HEXLOWER;

use crate::error::ReceiptError;
use crate::form::{LINE_BYTES, STATEMENT_BYTES, VERSION};
use crate::item::{ItemOutcome, ReceiptItem};
use crate::signature::{self, Signature, Signed};
use crate::statement::Statement;
use crate::tops::Tops;

/// Lines of a signature of this kind, at most.
const SIGNATURE_LINES: u64 = 20;

/// A receipt whose form is right, and which is what its key has signed.
pub struct ReadReceipt<R> {
    input: BufReader<R>,
    /// What it says as a whole.
    pub statement: Statement,
    /// Who signed, by the key: whether that key is somebody's, this does not know.
    pub signature: Signature,
}

/// Reads lines, each no longer than it may be.
struct LineReader<'a, R> {
    input: &'a mut BufReader<R>,
    number: u64,
    line: Vec<u8>,
}

impl<R: Read> LineReader<'_, R> {
    /// The next line without its end; `None` at the end.
    fn next(&mut self, bytes_max: usize) -> Result<Option<&str>, ReceiptError> {
        self.line.clear();
        self.number += 1;
        let limit = bytes_max as u64 + 1;
        self.input.by_ref().take(limit).read_until(b'\n', &mut self.line)?;
        match self.line.pop() {
            None => Ok(None),
            Some(b'\n') => {
                let text = std::str::from_utf8(&self.line).ok();
                text.map(Some).ok_or_else(|| ReceiptError::form(self.number, "it is not UTF-8"))
            }
            Some(_) if self.line.len() >= bytes_max => Err(ReceiptError::form(self.number, "it is too long")),
            Some(_) => Err(ReceiptError::form(self.number, "the receipt is cut off here")),
        }
    }
}

impl<R: Read + Seek> ReadReceipt<R> {
    /// Reads all of it, once.
    ///
    /// # Errors
    /// When it cannot be read, has not the form of a receipt, or is not what was signed.
    pub fn open(input: R) -> Result<Self, ReceiptError> {
        let mut input = BufReader::with_capacity(256 << 10, input);
        let (statement, signature) = read_whole(&mut input)?;
        Ok(Self { input, statement, signature })
    }

    /// Its only item, but for the directories that this lies in; `None` where it has none, or several.
    ///
    /// # Errors
    /// When it cannot be read, or was changed since its signature was looked at.
    pub fn only_item(&mut self) -> Result<Option<ReceiptItem>, ReceiptError> {
        let Statement { items, outcomes, .. } = &self.statement;
        let directories = outcomes.get(ItemOutcome::Holds.name()).copied().unwrap_or_default();
        if items.checked_sub(directories) != Some(1) {
            return Ok(None);
        }
        let mut items = self.items()?;
        while let Some(item) = items.next_item()? {
            if item.outcome != ItemOutcome::Holds {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// Its items, from the first on.
    ///
    /// # Errors
    /// When it cannot be read from its start.
    pub fn items(&mut self) -> Result<ReceiptItems<'_, R>, ReceiptError> {
        self.input.seek(SeekFrom::Start(0))?;
        let mut lines = LineReader { input: &mut self.input, number: 0, line: Vec::new() };
        lines.next(LINE_BYTES)?;
        let left = self.statement.items;
        Ok(ReceiptItems { lines, left, hasher: blake3::Hasher::new(), digest: self.statement.items_blake3.clone() })
    }
}

/// The first names of all paths of a receipt, where they are few: what is to be listed to find its items.
///
/// # Errors
/// When it cannot be read, or was changed since its signature was looked at.
pub fn tops<R: Read + Seek>(receipt: &mut ReadReceipt<R>) -> Result<Option<Vec<Vec<u8>>>, ReceiptError> {
    let mut tops = Tops::default();
    let mut items = receipt.items()?;
    while let Some(item) = items.next_item()? {
        tops.add(&item.path);
    }
    Ok(tops.few())
}

fn read_whole<R: Read>(input: &mut BufReader<R>) -> Result<(Statement, Signature), ReceiptError> {
    let mut lines = LineReader { input, number: 0, line: Vec::new() };
    let first = lines.next(LINE_BYTES)?.unwrap_or_default();
    check_first(first)?;
    let mut signed = Signed::new();
    let mut items = blake3::Hasher::new();
    let (mut count, mut last): (u64, Option<Vec<u8>>) = (0, None);
    let add = |signed: &mut Signed, line: &str| {
        signed.update(line.as_bytes());
        signed.update(b"\n");
    };
    add(&mut signed, first);
    // The statement is the last line before the signature: each line is known for an item by the next one.
    let mut held: Option<String> = None;
    loop {
        let number = lines.number + 1;
        let next = lines.next(STATEMENT_BYTES)?;
        let line = next.ok_or_else(|| ReceiptError::form(number, "the receipt is cut off: it has no signature"))?;
        if line == signature::BEGIN {
            break;
        }
        add(&mut signed, line);
        let Some(before) = held.replace(line.to_owned()) else { continue };
        let item = ReceiptItem::parse(&before).map_err(|why| ReceiptError::form(number - 1, why))?;
        if last.as_ref().is_some_and(|last| listing_order(last, &item.path).is_ge()) {
            return Err(ReceiptError::form(number - 1, "the item is not in its place in the order"));
        }
        last = Some(item.path);
        items.update(before.as_bytes());
        items.update(b"\n");
        count += 1;
    }
    let number = lines.number - 1;
    let statement: Statement = serde_json::from_str(&held.unwrap_or_default())
        .map_err(|_| ReceiptError::form(number, "it is no statement of a receipt that this version knows"))?;
    let signature = read_signature(&mut lines)?;
    signature.check(&signed.finish())?;
    if statement.carrack_receipt != VERSION {
        return Err(ReceiptError::form(number, "the statement is of another version"));
    }
    if statement.items != count || statement.items_blake3 != HEXLOWER.encode(items.finalize().as_bytes()) {
        return Err(ReceiptError::Altered("its items are not those that its statement is of".into()));
    }
    Ok((statement, signature))
}

fn check_first(line: &str) -> Result<(), ReceiptError> {
    #[derive(serde::Deserialize)]
    struct First {
        carrack_receipt: u32,
    }
    match serde_json::from_str(line) {
        Ok(First { carrack_receipt: VERSION }) => Ok(()),
        Ok(First { carrack_receipt }) => {
            let why = format!("it is a receipt of version {carrack_receipt}, and this program reads version {VERSION}");
            Err(ReceiptError::form(1, why))
        }
        Err(_) => Err(ReceiptError::form(1, "it is no receipt of Carrack")),
    }
}

fn read_signature<R: Read>(lines: &mut LineReader<'_, R>) -> Result<Signature, ReceiptError> {
    let mut inside = String::new();
    let first = lines.number;
    loop {
        let number = lines.number + 1;
        let cut = || ReceiptError::form(number, "the receipt is cut off in its signature");
        match lines.next(LINE_BYTES)?.ok_or_else(cut)? {
            signature::END => break,
            line => inside.push_str(line),
        }
        if number - first > SIGNATURE_LINES {
            return Err(ReceiptError::form(number, "the signature is too long"));
        }
    }
    let number = lines.number + 1;
    match lines.next(LINE_BYTES) {
        Ok(None) => Signature::parse(&inside),
        _ => Err(ReceiptError::form(number, "something stands behind the signature")),
    }
}

/// The items of a receipt, one after the other.
pub struct ReceiptItems<'a, R> {
    lines: LineReader<'a, R>,
    left: u64,
    hasher: blake3::Hasher,
    digest: String,
}

impl<R: Read> ReceiptItems<'_, R> {
    /// The next item; `None` behind the last.
    ///
    /// # Errors
    /// When the receipt cannot be read, or was changed since its signature was looked at.
    pub fn next_item(&mut self) -> Result<Option<ReceiptItem>, ReceiptError> {
        let changed = || ReceiptError::Altered("the receipt was changed while it was read".into());
        if self.left == 0 {
            let is_same = self.digest == HEXLOWER.encode(self.hasher.finalize().as_bytes());
            return if is_same { Ok(None) } else { Err(changed()) };
        }
        self.left -= 1;
        let number = self.lines.number + 1;
        let line = self.lines.next(LINE_BYTES)?.ok_or_else(changed)?;
        self.hasher.update(line.as_bytes());
        self.hasher.update(b"\n");
        ReceiptItem::parse(line).map(Some).map_err(|why| ReceiptError::form(number, why))
    }
}

impl From<ReceiptError> for io::Error {
    fn from(error: ReceiptError) -> Self {
        match error {
            ReceiptError::Io(error) => error,
            other => io::Error::other(other),
        }
    }
}
