//! The receipt of a pair: made when a pass over it has come to its end, in the place of an earlier one.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use carrack_core::path::{bare, display_bytes};
use carrack_core::report::{ItemKind, Report};
use carrack_core::request::CopyOptions;
use carrack_engine::Context;
use carrack_receipt::{Deed, ItemOutcome, Making, ReceiptItem, ReceiptKey, Statement};

use super::order::{EndOrder, EndpointRoot, Order};
use super::teller::now;
use crate::journal::{Item, ItemFilter, JournalError, each_item, receipt_path};
use crate::model::ItemState;

/// A receipt that is being made.
pub struct PairReceipt {
    /// The items, as the copy tells them.
    pub making: Making,
    key: ReceiptKey,
    directory: PathBuf,
    pair: u32,
    began: String,
}

impl PairReceipt {
    /// Begins one, where the task is to have it, with the items that earlier attempts have told.
    ///
    /// # Errors
    /// In words: what the system or the journal says.
    pub fn begin(order: &Order, pair: u32) -> Result<Option<Self>, String> {
        let Some(key) = &order.receipt else { return Ok(None) };
        let key = ReceiptKey::parse(key.reveal().as_bytes()).map_err(|error| error.to_string())?;
        let spool = spool(&order.directory).map_err(|error| error.to_string())?;
        let mut making = Making::new(spool);
        let filter = ItemFilter { pair: Some(pair), ..ItemFilter::default() };
        let told = each_item(&order.directory, &filter, |item| {
            making.earlier(earlier(item));
            Ok::<_, JournalError>(())
        });
        told.map_err(|error| error.to_string())?;
        let (directory, began) = (order.directory.clone(), now().to_string());
        Ok(Some(Self { making, key, directory, pair, began }))
    }

    /// Lists what the destination has, and signs.
    ///
    /// # Errors
    /// In words.
    pub fn finish(
        mut self,
        order: &Order,
        report: &Report,
        options: &CopyOptions,
        context: &Context,
    ) -> Result<Statement, String> {
        // Where an endpoint is, its users need not know.
        let words = |end: &EndOrder, root: Option<&EndpointRoot>| {
            let path = end.location.path().unwrap_or_default();
            match root {
                Some(root) => {
                    let path = path.strip_prefix(bare(&root.base)).unwrap_or(path);
                    format!("@{}:{}", root.name, display_bytes(path))
                }
                None => end.location.to_string(),
            }
        };
        let name = |root: Option<&EndpointRoot>| root.map(|root| format!("@{}", root.name));
        let pair = usize::try_from(self.pair).ok().and_then(|at| order.pairs.get(at));
        let source = pair.map(|pair| words(&pair.source, pair.source_endpoint.as_ref()));
        let destination =
            pair.and_then(|pair| Some(words(pair.destination.as_ref()?, pair.destination_endpoint.as_ref())));
        let statement = Statement {
            id: order.task.clone(),
            of: Deed::Task.name().into(),
            began: self.began,
            made: now().to_string(),
            program: env!("CARGO_PKG_VERSION").into(),
            sources: source.into_iter().collect(),
            destination: destination.unwrap_or_default(),
            ..Statement::default()
        };
        let roots = pair.map(|pair| (pair.source_endpoint.as_ref(), pair.destination_endpoint.as_ref()));
        let (of_source, of_destination) = roots.unwrap_or_default();
        self.making.name_hosts([name(of_source), name(of_destination)]);
        let path = receipt_path(&self.directory, self.pair);
        let part = path.with_extension("part");
        let written = File::create(&part).map(BufWriter::new).map_err(|error| error.to_string()).and_then(|mut out| {
            let made = self.making.finish(statement, (report, options, context), &self.key, &mut out);
            let made = made.map_err(|error| error.to_string())?;
            let synced = out.flush().and_then(|()| out.get_ref().sync_all());
            synced.and_then(|()| fs::rename(&part, &path)).map_err(|error| error.to_string())?;
            Ok(made)
        });
        if written.is_err() {
            // What was made of it is of no use.
            let _ = fs::remove_file(&part);
        }
        written
    }
}

/// A file without a name.
fn spool(directory: &Path) -> io::Result<File> {
    let path = directory.join("receipt.spool");
    let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// What an earlier attempt has told.
fn earlier(item: Item) -> ReceiptItem {
    let Item { path, kind, state, size, digest, failure, .. } = item;
    let is_read = digest.is_some() || kind != ItemKind::File;
    let outcome = match state {
        ItemState::Done if is_read => ItemOutcome::Copied,
        ItemState::Done => ItemOutcome::Same,
        ItemState::Deleted => ItemOutcome::Deleted,
        ItemState::Failed => ItemOutcome::Failed,
        _ => ItemOutcome::Kept,
    };
    let size = if kind == ItemKind::File { size } else { 0 };
    let why = failure.map(|failure| format!("{}: {}", failure.code, failure.why));
    ReceiptItem { path, kind, outcome, size, blake3: digest, found: None, why }
}
