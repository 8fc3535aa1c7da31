//! `--receipt`: a signed account of a copy or a comparison, item by item.
//!
//! Items of a copy are noted as it tells them. When it has ended, the destination is listed once, for the attributes
//! that its items have. A comparison finds these itself. Then the receipt is written, signed and given its name.

use std::fs::File;
use std::io;
use std::time::SystemTime;

use carrack_core::path::display_bytes;
use carrack_core::plan::check::CheckFinding;
use carrack_core::report::{Event, Failure, Report};
use carrack_core::request::CopyOptions;
use carrack_engine::Context;
use carrack_engine::check::ComparisonReport;
use carrack_receipt::{Deed, Draft, Making, PublicKey, ReceiptError, ReceiptItem, ReceiptKey, Statement};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use super::format::{counted, rfc3339};
use super::json::with_path;
use super::part_file::{OutputFile, spool_beside};
use crate::error::CommandError;
use crate::receipts;

/// The receipt of a copy that is being made.
pub struct Receipt {
    begun: BegunReceipt,
    making: Making,
}

/// The receipt of a comparison that is being made.
pub struct CheckReceipt {
    begun: BegunReceipt,
    draft: Draft,
}

/// What is known of a receipt before anything is done.
struct BegunReceipt {
    path: Vec<u8>,
    /// What it is of, a word of [`Deed`].
    of: String,
    file: OutputFile,
    key: ReceiptKey,
    began: SystemTime,
}

/// A receipt that was made.
#[derive(Debug)]
pub struct MadeReceipt {
    /// Where it is.
    pub path: Vec<u8>,
    /// What it says.
    pub statement: Statement,
    /// Who signed.
    pub key: PublicKey,
}

impl MadeReceipt {
    /// For a person.
    pub fn line(&self) -> String {
        let items = counted(self.statement.items, "item", "items");
        format!("receipt: {}, {items}, signed by {}", display_bytes(&self.path), self.key.fingerprint())
    }

    /// For a program.
    pub fn fields(&self) -> Value {
        let Statement { id, items, bytes, ending, outcomes, .. } = &self.statement;
        let key = self.key.fingerprint();
        let fields =
            json!({ "id": id, "items": items, "bytes": bytes, "ending": ending, "outcomes": outcomes, "key": key });
        with_path(fields, &self.path)
    }
}

impl BegunReceipt {
    /// Makes its file, and an empty one for what is to be told of items.
    fn create(path: &[u8], of: &str) -> Result<(Self, File), CommandError> {
        let key = receipts::own_key_or_new()?;
        let file = OutputFile::create(path).map_err(|error| unwritten(path, &error))?;
        let spool = spool_beside(path).map_err(|error| unwritten(path, &error))?;
        Ok((Self { path: path.to_vec(), of: of.to_owned(), file, key, began: SystemTime::now() }, spool))
    }

    /// What it says of itself.
    fn statement(&self) -> Result<Statement, CommandError> {
        Ok(Statement {
            id: new_id()?,
            of: self.of.clone(),
            began: rfc3339(self.began),
            made: rfc3339(SystemTime::now()),
            program: env!("CARGO_PKG_VERSION").into(),
            ..Statement::default()
        })
    }

    /// Gives it its name, if it could be written.
    fn made(self, written: Result<Statement, ReceiptError>) -> Result<MadeReceipt, CommandError> {
        let Self { path, file, key, .. } = self;
        match written {
            Ok(statement) => {
                file.publish().map_err(|error| unwritten(&path, &error))?;
                Ok(MadeReceipt { path, statement, key: key.public() })
            }
            Err(why) => {
                // The first reason is the one to tell.
                let _ = file.discard();
                Err(match why {
                    ReceiptError::Io(error) => unwritten(&path, &error),
                    ReceiptError::Unread(why) => unlisted(why),
                    other => unwritten(&path, &io::Error::other(other)),
                })
            }
        }
    }
}

impl Receipt {
    /// Begins a receipt, before anything is moved; `of` is a word of [`Deed`].
    ///
    /// # Errors
    /// When its file or the user's key cannot be made.
    pub fn create(path: &[u8], of: &str) -> Result<Self, CommandError> {
        let (begun, spool) = BegunReceipt::create(path, of)?;
        Ok(Self { begun, making: Making::new(spool) })
    }

    /// Takes what a copy tells.
    pub fn event(&mut self, event: &Event) {
        self.making.event(event);
    }

    /// Lists what the destination has, writes the receipt and signs it.
    ///
    /// # Errors
    /// When the destination cannot be listed, or the receipt not be written.
    pub fn finish(
        self,
        report: &Report,
        options: &CopyOptions,
        context: &Context,
    ) -> Result<MadeReceipt, CommandError> {
        let Self { mut begun, making } = self;
        let statement = begun.statement()?;
        let written = making.finish(statement, (report, options, context), &begun.key, &mut begun.file);
        begun.made(written)
    }
}

impl CheckReceipt {
    /// As [`Receipt::create`], before anything is compared.
    ///
    /// # Errors
    /// The same.
    pub fn create(path: &[u8]) -> Result<Self, CommandError> {
        let (begun, spool) = BegunReceipt::create(path, Deed::Check.name())?;
        Ok(Self { begun, draft: Draft::new(spool) })
    }

    /// Takes what was found at a path; `name` is the last one of what was named at the destination.
    pub fn found(&mut self, path: &[u8], name: &[u8], finding: &CheckFinding) {
        ReceiptItem::of_finding(path, name, finding).into_iter().for_each(|item| self.draft.add(item));
    }

    /// Writes the receipt and signs it. `places` are what was compared, as it may be typed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(
        self,
        places: [String; 2],
        report: &ComparisonReport,
        options: &CopyOptions,
    ) -> Result<MadeReceipt, CommandError> {
        let Self { mut begun, draft } = self;
        let [source, destination] = places;
        let statement = Statement { sources: vec![source], destination, ..begun.statement()? };
        let statement = statement.with_comparison(report, options);
        let written = draft.write(None, statement, &begun.key, &mut begun.file);
        begun.made(written)
    }
}

fn unwritten(path: &[u8], error: &io::Error) -> CommandError {
    CommandError::file("cannot write the receipt", path, error)
}

fn unlisted(why: Failure) -> CommandError {
    let told = format!("no receipt was written, because the destination cannot be listed: {}", why.why);
    CommandError::from(Failure { why: told, ..why })
        .hint("what was copied is there; the same command again makes the receipt")
}

fn new_id() -> Result<String, CommandError> {
    let mut random = [0; 16];
    let made = carrack_sys::host::random_bytes(&mut random);
    made.map_err(|error| CommandError::file("cannot read", b"random numbers", &error))?;
    Ok(HEXLOWER.encode(&random))
}
