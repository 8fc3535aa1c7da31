//! The receipt of a pair: made when a pass over it has come to its end, in the place of an earlier one.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use carrack_core::path::{bare, display_bytes, split_name};
use carrack_core::plan::check::CheckFinding;
use carrack_core::report::{ItemKind, Report};
use carrack_core::request::CopyOptions;
use carrack_engine::Context;
use carrack_engine::check::ComparisonReport;
use carrack_receipt::{Deed, Draft, ItemOutcome, Making, ReceiptError, ReceiptItem, ReceiptKey, Statement};
use data_encoding::HEXLOWER;

use super::order::{EndOrder, EndpointRoot, Order, PairOrder};
use super::teller::now;
use crate::journal::{Item, ItemFilter, JournalError, each_item, receipt_path};
use crate::model::ItemState;

/// What is known of the receipt of a pair before anything is done.
struct Signing {
    key: ReceiptKey,
    directory: PathBuf,
    pair: u32,
    began: String,
}

impl Signing {
    /// Of a task that is to have one.
    fn begin(order: &Order, pair: u32) -> Result<Option<Self>, String> {
        let Some(key) = &order.receipt else { return Ok(None) };
        let key = ReceiptKey::parse(key.reveal().as_bytes()).map_err(|error| error.to_string())?;
        Ok(Some(Self { key, directory: order.directory.clone(), pair, began: now().to_string() }))
    }

    fn pair<'a>(&self, order: &'a Order) -> Option<&'a PairOrder> {
        usize::try_from(self.pair).ok().and_then(|at| order.pairs.get(at))
    }

    /// What it says of itself. Where an endpoint is, its users need not know.
    fn statement(&self, order: &Order, of: Deed) -> Statement {
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
        let pair = self.pair(order);
        let source = pair.map(|pair| words(&pair.source, pair.source_endpoint.as_ref()));
        let destination =
            pair.and_then(|pair| Some(words(pair.destination.as_ref()?, pair.destination_endpoint.as_ref())));
        Statement {
            id: order.task.clone(),
            of: of.name().into(),
            began: self.began.clone(),
            made: now().to_string(),
            program: env!("CARGO_PKG_VERSION").into(),
            sources: source.into_iter().collect(),
            destination: destination.unwrap_or_default(),
            ..Statement::default()
        }
    }

    /// What users call the hosts of source and destination.
    fn hosts(&self, order: &Order) -> [Option<String>; 2] {
        let pair = self.pair(order);
        let roots = pair.map(|pair| [pair.source_endpoint.as_ref(), pair.destination_endpoint.as_ref()]);
        roots.unwrap_or_default().map(|root| root.map(|root| format!("@{}", root.name)))
    }

    /// Has it written, and gives it its name.
    fn publish(
        self,
        write: impl FnOnce(&ReceiptKey, &mut dyn Write) -> Result<Statement, ReceiptError>,
    ) -> Result<Statement, String> {
        let path = receipt_path(&self.directory, self.pair);
        let part = path.with_extension("part");
        let written = File::create(&part).map(BufWriter::new).map_err(|error| error.to_string()).and_then(|mut out| {
            let made = write(&self.key, &mut out).map_err(|error| error.to_string())?;
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

/// The receipt of a copy that is being made.
pub struct PairReceipt {
    /// The items, as the copy tells them.
    pub making: Making,
    signing: Signing,
}

impl PairReceipt {
    /// Begins one, where the task is to have it, with the items that earlier attempts have told.
    ///
    /// # Errors
    /// In words: what the system or the journal says.
    pub fn begin(order: &Order, pair: u32) -> Result<Option<Self>, String> {
        let Some(signing) = Signing::begin(order, pair)? else { return Ok(None) };
        let mut making = Making::new(spool(&order.directory).map_err(|error| error.to_string())?);
        let filter = ItemFilter { pair: Some(pair), ..ItemFilter::default() };
        let told = each_item(&order.directory, &filter, |item| {
            making.earlier(earlier(item));
            Ok::<_, JournalError>(())
        });
        told.map_err(|error| error.to_string())?;
        Ok(Some(Self { making, signing }))
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
        let statement = self.signing.statement(order, Deed::Task);
        self.making.name_hosts(self.signing.hosts(order));
        self.signing.publish(|key, out| self.making.finish(statement, (report, options, context), key, out))
    }
}

/// The receipt of a check that is being made. What was found waits in a file of the task's directory, so that a check
/// that was broken off can go on with it.
pub struct CheckReceipt {
    signing: Signing,
    /// What the top is called, where that is a file: the last name of its place at the destination.
    top: Vec<u8>,
    /// A line when it began, a line for each item, and one wherever it was kept how far the check has come.
    log: BufWriter<File>,
    /// The first error; nothing is taken after it.
    error: Option<io::Error>,
}

impl CheckReceipt {
    /// What stands before the path behind which a check goes on.
    const MARK: char = '=';

    /// Begins one, where the task is to have it.
    ///
    /// # Errors
    /// In words.
    pub fn begin(order: &Order, pair: u32) -> Result<Option<Self>, String> {
        let Some(signing) = Signing::begin(order, pair)? else { return Ok(None) };
        let path = Self::path(order, pair);
        let opened = fs::OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
        let mut log = BufWriter::new(opened.map_err(|error| error.to_string())?);
        let error = writeln!(log, "{}", signing.began).err();
        Ok(Some(Self { top: Self::top(order, &signing), signing, log, error }))
    }

    fn top(order: &Order, signing: &Signing) -> Vec<u8> {
        let destination = signing.pair(order).and_then(|pair| pair.destination.as_ref());
        let path = destination.and_then(|end| end.location.path()).unwrap_or_default();
        split_name(bare(path)).1.to_vec()
    }

    fn path(order: &Order, pair: u32) -> PathBuf {
        receipt_path(&order.directory, pair).with_extension("items")
    }

    /// Goes on behind the path that was kept last. `None` where what was found until then is not there any more.
    ///
    /// # Errors
    /// In words.
    pub fn go_on(order: &Order, pair: u32, after: &[u8]) -> Result<Option<Self>, String> {
        let Some(mut signing) = Signing::begin(order, pair)? else { return Ok(None) };
        let path = Self::path(order, pair);
        let file = match fs::OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let mark = format!("{}{}", Self::MARK, HEXLOWER.encode(after));
        let mut lines = BufReader::new(file);
        let (mut end, mut kept, mut line) = (0, None, String::new());
        while lines.read_line(&mut line).map_err(|error| error.to_string())? > 0 && line.ends_with('\n') {
            end += line.len() as u64;
            match line.trim_end() {
                began if end == line.len() as u64 => began.clone_into(&mut signing.began),
                other if other == mark => kept = Some(end),
                _ => {}
            }
            line.clear();
        }
        let Some(kept) = kept else { return Ok(None) };
        let mut file = lines.into_inner();
        let cut = file.set_len(kept).and_then(|()| file.seek(SeekFrom::End(0)));
        cut.map_err(|error| error.to_string())?;
        Ok(Some(Self { top: Self::top(order, &signing), signing, log: BufWriter::new(file), error: None }))
    }

    /// Takes what was found at a path.
    pub fn found(&mut self, path: &[u8], finding: &CheckFinding) {
        if let Some(item) = ReceiptItem::of_finding(path, &self.top, finding) {
            self.line(&item.line());
        }
    }

    /// All until here is to be there when the check goes on behind this path.
    pub fn keep(&mut self, after: &[u8]) {
        self.line(&format!("{}{}", Self::MARK, HEXLOWER.encode(after)));
        if self.error.is_none() {
            self.error = self.log.flush().err();
        }
    }

    fn line(&mut self, line: &str) {
        if self.error.is_none() {
            self.error = writeln!(self.log, "{line}").err();
        }
    }

    /// Puts them in order, and signs. `failed` could not be read by earlier attempts.
    ///
    /// # Errors
    /// In words.
    pub fn finish(
        self,
        order: &Order,
        report: &ComparisonReport,
        options: &CopyOptions,
        failed: &[Item],
    ) -> Result<Statement, String> {
        let Self { signing, top, log, error } = self;
        let said = |error: io::Error| error.to_string();
        if let Some(error) = error {
            return Err(said(error));
        }
        let mut file = log.into_inner().map_err(|error| said(error.into_error()))?;
        file.rewind().map_err(said)?;
        let mut draft = Draft::new(spool(&order.directory).map_err(said)?);
        for item in failed.iter().cloned().map(earlier) {
            let path = if item.path.is_empty() { top.clone() } else { item.path };
            draft.add(ReceiptItem { path, ..item });
        }
        for line in BufReader::new(file).lines().skip(1) {
            let line = line.map_err(said)?;
            if !line.starts_with(Self::MARK) {
                draft.add(ReceiptItem::parse(&line)?);
            }
        }
        let mut statement = signing.statement(order, Deed::Check).with_comparison(report, options);
        for (host, name) in statement.hosts.iter_mut().zip(signing.hosts(order)) {
            host.name = name.unwrap_or_else(|| std::mem::take(&mut host.name));
        }
        signing.publish(|key, out| draft.write(None, statement, key, out))
    }

    /// What was found is not needed any more: the check has come to its end.
    pub fn forget(order: &Order, pair: u32) {
        // Nobody reads it, and the task's directory goes with the task.
        let _ = fs::remove_file(Self::path(order, pair));
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
