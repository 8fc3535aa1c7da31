//! Asking what the receiver has before anything is sent, and telling it every name, where it is to find what only it
//! has.
//!
//! A question is closed when it is full, or when the scan has let it wait. Its files wait for the answer, and hold up
//! nobody: those that are to be sent are bundled and offered as if the scan had found them only then.

mod alike;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::alike::AlikeSources;
use super::{Sender, SenderAction, again};
use crate::attributes::OtherAttributes;
use crate::digest::FileDigests;
use crate::failure::Failure;
use crate::ids::BundleId;
use crate::judgment::{ItemDifference, Judgment};
use crate::limits;
use crate::report::{ItemKind, Outcome};
use crate::request::Renames;
use crate::transfer::ScannedItem;
use crate::wire::ProtocolError;
use crate::wire::peer::{AskedIndex, AskedItem, AskedLink, PeerMessage, Question};

#[derive(Debug, Default)]
pub(super) struct Comparing {
    filling: FilledQuestion,
    since: Option<Instant>,
    /// Bytes of the paths of what is being filled.
    bytes: usize,
    /// Closed, and not asked yet.
    waiting: VecDeque<FilledQuestion>,
    /// Files that wait for an answer, by the question's number.
    asked: BTreeMap<BundleId, Vec<ScannedItem>>,
    /// Files that are being read to be compared.
    contents: BTreeMap<AskedIndex, OpenItem>,
    /// Files of which samples would not tell which one it is.
    alike: AlikeSources,
}

/// A file of which the receiver has yet to say what becomes of it.
#[derive(Debug)]
struct OpenItem {
    scanned: ScannedItem,
    judgment: Judgment,
    /// Why it cannot be read here.
    failure: Option<Failure>,
}

#[derive(Debug, Default)]
struct FilledQuestion {
    items: Vec<ScannedItem>,
    question: Question,
}

/// What is deleted at the receiver before anything is sent.
#[derive(Debug, Default)]
pub(super) struct FirstDeletion {
    /// Items that could not be listed.
    failed: u64,
    /// Every name has been told.
    named: bool,
    /// The receiver has answered for all of them.
    answered: bool,
    /// The receiver has deleted it, or not.
    ended: bool,
}

impl Comparing {
    /// Files and names of one question: the answer to a full one is worth a message.
    const ITEMS: usize = 1024;
    /// Bytes of paths of one question: far from the bound of a message.
    const BYTES: usize = 128 << 10;
    /// Files that are being read: beyond, nothing more is asked.
    const CONTENTS: usize = 4096;
    /// How long the scan may take to fill a question.
    const PATIENCE: Duration = Duration::from_millis(5);

    /// Whether the scan may find more.
    pub fn has_room(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Nothing to ask or to wait for.
    pub fn is_empty(&self) -> bool {
        let is_asking = !self.waiting.is_empty() || !self.asked.is_empty() || !self.contents.is_empty();
        self.since.is_none() && !is_asking
    }

    /// When what has been filled so far is to be asked.
    pub fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + Self::PATIENCE)
    }

    fn has_grown(&mut self, now: Instant, bytes: usize) {
        self.since.get_or_insert(now);
        self.bytes += bytes;
        let Question { items, names, listed } = &self.filling.question;
        if items.len().max(names.len()).max(listed.len()) >= Self::ITEMS || self.bytes >= Self::BYTES {
            self.close();
        }
    }

    fn close(&mut self) {
        if self.since.take().is_some() {
            self.bytes = 0;
            self.waiting.push_back(std::mem::take(&mut self.filling));
        }
    }
}

impl Sender {
    /// Whether the receiver is asked about an item before it is sent. What has no size cannot be compared; what holds
    /// nothing and what is a further name are compared where they are written, unless nothing is, and so are
    /// directories.
    pub(super) fn is_compared(&self, item: &ScannedItem) -> bool {
        let options = &self.config.options;
        let is_asked = match item.kind {
            ItemKind::Directory => options.plan_only && options.item_changes,
            ItemKind::File if item.other_names.is_none() => item.size.is_some(),
            ItemKind::File | ItemKind::Symlink | ItemKind::Special => options.plan_only,
        };
        is_asked && options.rules().is_some()
    }

    /// An item is to be compared.
    pub(super) fn compare_later(&mut self, now: Instant, item: ScannedItem) {
        let path = self.target(&item);
        let leads_to = item.special.map_or_else(|| item.leads_to.clone(), |special| special.encode().to_vec());
        let hard_link = item.other_names.as_ref();
        let hard_link = hard_link.map(|names| AskedLink { names: names.paths.clone(), anew: names.anew });
        let others = match hard_link {
            None => item.attributes.others.kept(self.config.options.kept),
            // It has those of its file.
            Some(_) => OtherAttributes::default(),
        };
        let named = hard_link.iter().flat_map(|link| &link.names).map(Vec::len).sum::<usize>();
        let bytes = path.len() + leads_to.len() + named + others.encoded_bytes();
        let (size, mode) = (item.size.unwrap_or(0), item.attributes.mode);
        let mtime = item.attributes.mtime;
        let asked = AskedItem { path, kind: item.kind, size, mtime, mode, others, leads_to, hard_link };
        self.comparing.filling.question.items.push(asked);
        self.comparing.filling.items.push(item);
        self.comparing.has_grown(now, bytes);
        self.compare_more();
    }

    /// Whether the receiver wants to know names: until all have been told, or it deletes.
    fn tells_names(&self) -> bool {
        self.config.options.tells_names && !self.first.named && !self.delete_told
    }

    /// Tells the receiver that the source has this name, where it wants to know. Files that are compared are told of by
    /// that.
    pub(super) fn tell_name(&mut self, now: Instant, item: &ScannedItem) {
        self.tell_path(now, self.target(item));
    }

    /// The same of a path of the destination.
    pub(super) fn tell_path(&mut self, now: Instant, path: Vec<u8>) {
        if self.tells_names() && !path.is_empty() {
            let bytes = path.len();
            self.comparing.filling.question.names.push(path);
            self.comparing.has_grown(now, bytes);
            self.compare_more();
        }
    }

    /// A file or link is left out by what it is: the source has its name.
    pub fn handle_left_out(&mut self, now: Instant, item: &ScannedItem) {
        if !self.has_ended() {
            self.totals.counts.links_skipped += u64::from(item.kind == ItemKind::Symlink);
            self.tell_name(now, item);
        }
    }

    /// Something could not be listed while names are told before anything is sent.
    pub fn handle_unlisted(&mut self, now: Instant, item: &ScannedItem) {
        self.first.failed += 1;
        self.handle_named(now, item);
    }

    /// A name is told before anything is sent; what becomes of it is found later.
    pub fn handle_named(&mut self, now: Instant, item: &ScannedItem) {
        if !self.has_ended() {
            if self.config.options.renames == Renames::Quick {
                self.comparing.alike.note(item);
            }
            self.tell_name(now, item);
        }
    }

    /// All names have been told, before anything is sent.
    pub fn handle_names_complete(&mut self, _now: Instant) {
        self.first.named = true;
        self.close_question();
        self.end_names();
    }

    /// Whether the receiver knows every name, and has deleted what it was to delete before anything is sent.
    pub fn is_past_names(&self) -> bool {
        if self.config.options.deletes_first { self.first.ended } else { self.first.answered }
    }

    /// Whether the receiver has answered for all names; it deletes then, where that comes first.
    fn end_names(&mut self) {
        if !self.first.named || self.first.answered || !self.comparing.is_empty() || self.has_ended() {
            return;
        }
        self.first.answered = true;
        if self.config.options.deletes_first {
            self.delete_told = true;
            self.actions.push_back(SenderAction::Send(PeerMessage::Delete { failed: self.first.failed }));
        }
    }

    pub(super) fn handle_deleted(&mut self) -> Result<(), ProtocolError> {
        let asks = self.doubt.is_some() || !self.config.options.deletes_first;
        if !self.first.named || !self.delete_told || asks || std::mem::replace(&mut self.first.ended, true) {
            return Err(ProtocolError::violation("the receiver says that it has deleted what it was not told to"));
        }
        Ok(())
    }

    /// The scan has told everything that it has found in a directory, `path` below a source; `complete` if that is all
    /// that is there.
    pub fn handle_listed(&mut self, now: Instant, root: u32, path: &[u8], complete: bool) {
        if self.has_ended() || !self.tells_names() {
            return;
        }
        let path = self.place(root, path);
        let bytes = path.len();
        self.comparing.filling.question.listed.push((path, complete));
        self.comparing.has_grown(now, bytes);
        self.compare_more();
    }

    /// Closes what is being filled, and asks.
    pub(super) fn close_question(&mut self) {
        self.comparing.close();
        self.compare_more();
    }

    fn compare_more(&mut self) {
        while self.comparing.asked.len() < limits::QUERIES
            && self.comparing.contents.len() < Comparing::CONTENTS
            && let Some(FilledQuestion { items, question }) = self.comparing.waiting.pop_front()
        {
            let number = BundleId(self.number());
            self.actions.push_back(SenderAction::Send(PeerMessage::Compare { number, question }));
            self.comparing.asked.insert(number, items);
        }
    }

    /// The answer: what is the same has ended, and what is not is sent.
    pub(super) fn handle_compared(
        &mut self,
        now: Instant,
        number: BundleId,
        judgments: &[Judgment],
    ) -> Result<(), ProtocolError> {
        let items = self.comparing.asked.remove(&number).filter(|items| items.len() == judgments.len());
        let items = items.ok_or_else(|| {
            ProtocolError::violation(format!("the receiver answered question {number}, which was not asked so"))
        })?;
        for ((index, item), judgment) in (0..).zip(items).zip(judgments) {
            if judgment.is_open() && item.other_names.is_some() {
                let why = "the receiver would read a file that gets a hard link";
                return Err(ProtocolError::violation(why));
            }
            if judgment.is_open() {
                let asked = AskedIndex { number, index };
                let samples = *judgment == Judgment::Sampled;
                if samples && !self.comparing.alike.tells_apart(&item) {
                    // So no old name is found for it, and it is sent.
                    self.actions.push_back(SenderAction::Send(PeerMessage::Content { asked, digest: None }));
                } else if judgment.is_read() {
                    self.actions.push_back(SenderAction::ReadContent { asked, scanned: item.clone(), samples });
                }
                let open = OpenItem { scanned: item, judgment: *judgment, failure: None };
                self.comparing.contents.insert(asked, open);
            } else {
                self.end_compared(now, item, *judgment);
            }
        }
        self.go_on_comparing();
        Ok(())
    }

    /// What becomes of a file, now that it has been compared.
    fn end_compared(&mut self, now: Instant, mut item: ScannedItem, judgment: Judgment) {
        if item.kind == ItemKind::Directory {
            return self.plan_directory(&item);
        }
        item.judgment = Some(judgment);
        let outcome = match judgment {
            Judgment::Same => Outcome::Same,
            Judgment::Left(_) => Outcome::Kept,
            _ if self.config.options.plan_only => Outcome::Planned,
            Judgment::New | Judgment::Differs(_) | Judgment::Undecided | Judgment::Sampled | Judgment::Chunked(_) => {
                return self.admit(now, item);
            }
        };
        let size = item.size.unwrap_or(0);
        self.end_item(&item, size, FileDigests::default(), outcome);
    }

    fn go_on_comparing(&mut self) {
        // A stream may have nothing else to do; and nothing more may come.
        let is_last = self.progress.scan_complete && self.comparing.is_empty();
        if is_last || self.bundles.queued() == 0 {
            self.close_filling();
        }
        self.compare_more();
        self.end_names();
    }

    /// The answer to [`SenderAction::ReadContent`]: the BLAKE3 of the file, or of its samples.
    pub fn handle_content_read(&mut self, _now: Instant, asked: AskedIndex, read: Result<[u8; 32], Failure>) {
        let ended = self.has_ended();
        let Some(open) = self.comparing.contents.get_mut(&asked).filter(|_| !ended) else { return };
        let digest = read.map_err(|why| open.failure = Some(why)).ok();
        self.actions.push_back(SenderAction::Send(PeerMessage::Content { asked, digest }));
    }

    /// The receiver asks, before it deletes, what the source has by now.
    pub(super) fn handle_ask_still_there(
        &mut self,
        number: BundleId,
        paths: Vec<Vec<u8>>,
    ) -> Result<(), ProtocolError> {
        if !self.delete_told || self.doubt.is_some() || self.first.ended {
            return Err(ProtocolError::violation(
                "the receiver asked what the source has when it may not, or too much",
            ));
        }
        self.doubt = Some((number, paths.len()));
        self.actions.push_back(SenderAction::LookUp { number, paths });
        Ok(())
    }

    /// The answer to [`SenderAction::LookUp`].
    pub fn handle_looked_up(&mut self, _now: Instant, number: BundleId, there: Vec<bool>) {
        let asked = self.doubt.take_if(|(open, _)| *open == number).filter(|_| !self.has_ended());
        let Some((_, asked)) = asked else { return };
        assert_eq!(asked, there.len(), "every path that was asked about is answered for");
        self.actions.push_back(SenderAction::Send(PeerMessage::StillThere { number, there }));
    }

    /// The receiver has read the same file, or tells the chunks of what it has.
    pub(super) fn handle_content_compared(
        &mut self,
        now: Instant,
        asked: AskedIndex,
        same: bool,
        chunks: Vec<u32>,
    ) -> Result<(), ProtocolError> {
        let OpenItem { mut scanned, judgment, failure } = self.comparing.contents.remove(&asked).ok_or_else(|| {
            ProtocolError::violation("the receiver compared the content of a file that it was not asked about")
        })?;
        scanned.chunks = Some(chunks).filter(|chunks| !chunks.is_empty()).map(Arc::from);
        let same = same && failure.is_none();
        // What has changed since it was listed is sent: whoever reads it then sees to it that it is listed anew.
        match (failure.filter(|why| !again::may_pass(why)), judgment) {
            (Some(why), _) => self.end_item(&scanned, 0, FileDigests::default(), Outcome::Failed(why)),
            (None, Judgment::Chunked(difference)) => self.end_compared(now, scanned, Judgment::Differs(difference)),
            (None, _) if same => self.end_compared(now, scanned, Judgment::Same),
            (None, _) => self.end_compared(now, scanned, Judgment::Differs(ItemDifference::default())),
        }
        self.go_on_comparing();
        Ok(())
    }
}
