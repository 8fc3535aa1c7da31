//! `--receipt`: a signed account of a copy, item by item.
//!
//! Items are noted as the copy tells them. When it has ended, the destination is listed once, for the attributes that
//! its items have, and the receipt is written, signed and given its name.

use std::io;
use std::time::SystemTime;

use carrack_core::path::display_bytes;
use carrack_core::report::{Event, Failure, Report};
use carrack_core::request::CopyOptions;
use carrack_engine::Context;
use carrack_receipt::{Making, PublicKey, ReceiptError, ReceiptKey, Statement};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use super::format::{counted, rfc3339};
use super::json::with_path;
use super::part_file::{OutputFile, spool_beside};
use crate::error::CommandError;
use crate::receipts;

/// A receipt that is being made.
pub struct Receipt {
    path: Vec<u8>,
    /// What it is of, a word of [`Deed`](carrack_receipt::Deed).
    of: String,
    file: OutputFile,
    key: ReceiptKey,
    making: Making,
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

impl Receipt {
    /// Begins a receipt, before anything is moved.
    ///
    /// # Errors
    /// When its file or the user's key cannot be made.
    pub fn create(path: &[u8], of: &str) -> Result<Self, CommandError> {
        let key = receipts::own_key_or_new()?;
        let file = OutputFile::create(path).map_err(|error| unwritten(path, &error))?;
        let spool = spool_beside(path).map_err(|error| unwritten(path, &error))?;
        let making = Making::new(spool);
        Ok(Self { path: path.to_vec(), of: of.to_owned(), file, key, making, began: SystemTime::now() })
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
        let Self { path, of, mut file, key, making, began } = self;
        let statement = Statement {
            id: new_id()?,
            of,
            began: rfc3339(began),
            made: rfc3339(SystemTime::now()),
            program: env!("CARGO_PKG_VERSION").into(),
            ..Statement::default()
        };
        match making.finish(statement, (report, options, context), &key, &mut file) {
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
