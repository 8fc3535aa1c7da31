//! The verbs of a file manager on any kind of location: an agent is brought up there and asked.

use carrack_core::attributes::{KeptAttributes, OtherAttributes, Time};
use carrack_core::filter::Filters;
use carrack_core::limits;
use carrack_core::location::Location;
use carrack_core::path::check_relative;
use carrack_core::plan::compare::State;
use carrack_core::report::{EndFacts, ErrorCode, Event, Failure, FileDigests, ItemKind, ItemReport, Outcome, Side};
use carrack_core::request::{Digests, EndOptions};
use carrack_core::transfer::Fingerprint;
use carrack_core::wire::ProtocolError;
use carrack_core::wire::control::{self, Ask, FileSystemKey, PathFacts, Tell};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use crate::context::{Context, check_tuning};
use crate::end::{End, EndId, Inbox, Note};
use crate::error::failure;
use crate::stop::Until;

/// An open conversation with the agent of one location.
pub struct Files {
    end: Option<End>,
    inbox: Inbox,
    note: Note,
}

/// One entry of a listing.
#[derive(Clone, Debug)]
pub struct ListEntry {
    /// Relative to the listed directory; the name itself for a file.
    pub path: Vec<u8>,
    /// Whether it is a file, a link or a directory.
    pub kind: ItemKind,
    /// Size in bytes.
    pub size: u64,
    /// Permission bits of the mode.
    pub mode: u32,
    /// When the content was last modified.
    pub mtime: Time,
    /// Of a symbolic link, where it leads.
    pub link_target: Vec<u8>,
    /// Why nothing more is known.
    pub error: Option<Failure>,
    /// Bytes of the storage that it takes; `None` where nobody asked, or the place does not know.
    pub allocated: Option<u64>,
    /// Of a file with several names: what all its names have and nothing else in the listing; where
    /// [`Files::usage`] asked.
    pub twin: Option<NonZeroU64>,
    /// Names that it has; 0 where nobody asked, or the place does not know.
    pub names: u32,
    /// Its owner and group, with their names, and what else it has, extended attributes without their values; where
    /// [`Files::stat`] or [`Files::list_detailed`] asked.
    pub attributes: OtherAttributes,
}

/// What [`Files::usage`] hands out.
#[derive(Clone, Debug)]
pub enum UsageEntry {
    /// What was named.
    Itself(ListEntry),
    /// Something below it; its path begins there.
    Below(ListEntry),
}

/// The digests of one file.
#[derive(Clone, Debug)]
pub struct SumEntry {
    /// Relative to the directory named; the name itself for a file.
    pub path: Vec<u8>,
    /// Size in bytes.
    pub size: u64,
    /// The file's digests, or why there are none.
    pub result: Result<FileDigests, Failure>,
}

/// A range of a file.
#[derive(Clone, Copy, Debug)]
pub struct ReadRange {
    /// Where it begins.
    pub offset: u64,
    /// Its bytes; what lies behind the file's end is left out.
    pub length: u64,
    /// Only of the file that was known by this; `None` for whatever is there.
    pub identity: Option<Fingerprint>,
}

/// What [`Files::read`] hands out.
#[derive(Clone, Copy, Debug)]
pub enum ReadEvent<'a> {
    /// First: what the file is.
    Opened(FileFacts),
    /// The next bytes of the range.
    Bytes(&'a [u8]),
}

/// What a file is that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Size in bytes.
    pub size: u64,
    /// When the content was last modified; `None` where that is not known.
    pub mtime: Option<Time>,
    /// What this state of the file is known by: another state has another. `None` where nothing would tell that it has
    /// changed.
    pub identity: Option<Fingerprint>,
}

/// Takes a part of an answer, or finds that no honest agent would send it.
type TakePart<'a> = &'a mut dyn FnMut(Tell) -> Result<(), ProtocolError>;

/// Of a conversation that was stopped in the midst of an answer.
fn over() -> Failure {
    failure(ErrorCode::Interrupted, Side::Command, "the reading was stopped, and the conversation with it")
}

fn answers_other() -> ProtocolError {
    ProtocolError::violation("the peer answered something else than it was asked")
}

/// Whoever joins a listed name to what was listed must stay below it. What has no name of its own
/// comes back as it was typed.
fn check_name(path: &[u8], typed: &[u8]) -> Result<(), ProtocolError> {
    if path == typed { Ok(()) } else { check_relative(path).map_err(|error| ProtocolError::path(path, error)) }
}

impl Files {
    /// Brings up the agent of `location`.
    ///
    /// # Errors
    /// When it cannot be reached, or a knob is out of its bounds.
    pub fn open(
        location: &Location,
        options: &EndOptions,
        context: &Context,
        observer: &(dyn Fn(Event) + Send + Sync),
    ) -> Result<Self, Failure> {
        check_tuning(&context.tuning)?;
        // Nobody reads them before the end is open: what is too much is not told.
        let (notes, told) = std::sync::mpsc::sync_channel(limits::NOTES_WAITING);
        let note: Note = Arc::new(move |text| drop(notes.try_send(text)));
        let mut inbox = Inbox::until(Until::new(context.stop.clone(), None));
        let opened =
            End::open(EndId::Source, location, options, (context, None), inbox.share(), &note).and_then(|mut end| {
                match end.take_welcome(&mut inbox, &options.reach, &note) {
                    Ok(()) => Ok(end),
                    Err(refusal) => {
                        end.close();
                        Err(refusal)
                    }
                }
            });
        told.try_iter().for_each(|text| observer(Event::Note(text)));
        let end = opened?;
        end.program_sent.iter().for_each(|sent| observer(Event::ProgramSent(sent.clone())));
        Ok(Self { end: Some(end), inbox, note })
    }

    /// What its host is; `None` once the conversation is over.
    pub(crate) fn facts(&self) -> Option<EndFacts> {
        self.end.as_ref().map(End::facts)
    }

    /// Asks, and hands out every part of the answer until the last.
    fn converse(&mut self, ask: Ask, part: TakePart<'_>) -> Result<u64, Failure> {
        self.converse_while(ask, &mut |tell| match tell {
            Tell::Page(_) | Tell::Sums(_) => part(tell).map(|()| true),
            _ => Err(answers_other()),
        })
    }

    /// As [`Self::converse`], until `part` says `false`: then the rest of the answer is not waited for.
    fn converse_while(
        &mut self,
        ask: Ask,
        part: &mut dyn FnMut(Tell) -> Result<bool, ProtocolError>,
    ) -> Result<u64, Failure> {
        let end = self.end.as_mut().ok_or_else(over)?;
        let request = end.ask(ask).map_err(|lost| self.inbox.reason(end.id, lost))?;
        loop {
            match end.answer(&mut self.inbox, &self.note, request)? {
                Tell::Done(count) => return Ok(count),
                tell => {
                    if !part(tell).map_err(|error| end.misbehaved(&error))? {
                        return Ok(0);
                    }
                }
            }
        }
    }

    /// Leaves out what rules leave out of a copy, from all that is listed, counted or summed from now on. Once for each
    /// conversation: further rules would join these.
    ///
    /// # Errors
    /// When the connection ends.
    pub fn leave_out(&mut self, filters: &Filters) -> Result<(), Failure> {
        let messages = control::Filter::messages(filters, None).into_iter();
        messages.map(Ask::Filter).try_for_each(|ask| self.converse(ask, &mut |_| Ok(())).map(|_| ()))
    }

    /// Compares only these paths and what is below them, from now on. Once for each conversation.
    ///
    /// # Errors
    /// When the connection ends, or these are too many.
    pub(crate) fn select(&mut self, paths: &[Vec<u8>]) -> Result<(), Failure> {
        let ask = |paths: &[Vec<u8>]| Ask::Select(paths.to_vec());
        let rooms = paths.chunk_by({
            let mut room = limits::TOLD_BYTES;
            move |_, path| {
                let fits = room > path.len() + 8;
                room = if fits { room - path.len() - 8 } else { limits::TOLD_BYTES };
                fits
            }
        });
        // Of an empty list nothing is compared.
        let none = paths.is_empty().then_some(paths);
        none.into_iter().chain(rooms).map(ask).try_for_each(|ask| self.converse(ask, &mut |_| Ok(())).map(|_| ()))
    }

    /// Tells a tree as it is compared with another, until `each` says `false`.
    ///
    /// # Errors
    /// When it cannot be listed; what could not be read below it are entries with a failure.
    pub(crate) fn survey(
        &mut self,
        path: &[u8],
        survey: control::Survey,
        each: &mut dyn FnMut(Vec<control::Entry>) -> bool,
    ) -> Result<(), Failure> {
        let list = control::List { path: path.to_vec(), survey: Some(survey), ..control::List::default() };
        let mut part = |tell| {
            let Tell::Page(page) = tell else { return Err(answers_other()) };
            page.iter().try_for_each(|entry| check_name(&entry.path, b""))?;
            Ok(each(page))
        };
        self.converse_while(Ask::List(list), &mut part).map(|_| ())
    }

    /// Lists a directory, or names a file, in the order of the file system.
    ///
    /// # Errors
    /// When it cannot be read; what could not be read below it is told as entries with an error.
    pub fn list(&mut self, path: &[u8], recursive: bool, each: &mut dyn FnMut(ListEntry)) -> Result<(), Failure> {
        self.list_as(control::List { path: path.to_vec(), recursive, ..control::List::default() }, each)
    }

    /// The same, with owner and group, names, and what else each has.
    ///
    /// # Errors
    /// As [`Files::list`].
    pub fn list_detailed(
        &mut self,
        path: &[u8],
        recursive: bool,
        each: &mut dyn FnMut(ListEntry),
    ) -> Result<(), Failure> {
        let list = control::List { path: path.to_vec(), recursive, details: true, ..control::List::default() };
        self.list_as(list, each)
    }

    fn list_as(&mut self, list: control::List, each: &mut dyn FnMut(ListEntry)) -> Result<(), Failure> {
        let typed = list.path.clone();
        self.pages(Ask::List(list), &typed, each).map(|_| ())
    }

    /// Describes what a path is, a link not followed.
    ///
    /// # Errors
    /// When nothing is there.
    pub fn stat(&mut self, path: &[u8]) -> Result<ListEntry, Failure> {
        let mut found = None;
        self.list_as(
            control::List { path: path.to_vec(), itself: true, details: true, ..control::List::default() },
            &mut |entry| found = Some(entry),
        )?;
        match (found, &self.end) {
            (Some(entry), _) => Ok(entry),
            (None, Some(end)) => Err(end.unexpected()),
            (None, None) => Err(over()),
        }
    }

    /// By which the file system is known that a directory is on, links followed: `None` where nothing tells. Only
    /// equality counts.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn file_system(&mut self, path: &[u8]) -> Result<Option<FileSystemKey>, Failure> {
        let end = self.end.as_mut().ok_or_else(over)?;
        match end.request(&mut self.inbox, &self.note, Ask::Inspect(vec![path.to_vec()]))? {
            Tell::Inspected(mut facts) if facts.len() == 1 => match facts.pop() {
                Some(PathFacts { failure: Some(why), .. }) => Err(why),
                found => Ok(found.and_then(|facts| facts.file_system)),
            },
            _ => Err(end.unexpected()),
        }
    }

    /// Describes what a path is and everything below it, with what it takes of the storage: the thing itself first. A
    /// link is followed where the path ends with a slash.
    ///
    /// # Errors
    /// As [`Files::list`].
    pub fn usage(&mut self, path: &[u8], each: &mut dyn FnMut(UsageEntry)) -> Result<(), Failure> {
        let wanted = |itself: bool| control::List {
            path: path.to_vec(),
            recursive: !itself,
            itself,
            usage: true,
            ..control::List::default()
        };
        let mut is_tree = false;
        self.list_as(wanted(true), &mut |entry| {
            let is_followed = entry.kind == ItemKind::Symlink && path.ends_with(b"/");
            is_tree = entry.kind == ItemKind::Directory || is_followed;
            each(UsageEntry::Itself(entry));
        })?;
        if is_tree { self.list_as(wanted(false), &mut |entry| each(UsageEntry::Below(entry))) } else { Ok(()) }
    }

    /// Makes a directory; with `parents` those above it too, and one that exists is fine.
    ///
    /// # Errors
    /// Those of the place.
    pub fn make_dir(&mut self, path: &[u8], parents: bool) -> Result<(), Failure> {
        self.converse(Ask::MakeDirectory(control::MakeDirectory { path: path.to_vec(), parents }), &mut |_| Ok(()))
            .map(|_| ())
    }

    /// Renames; onto an existing directory, into it.
    ///
    /// # Errors
    /// Those of the place.
    pub fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), Failure> {
        self.rename_as(from, to, false)
    }

    /// Renames to this very name, if nothing has it when the rename happens.
    ///
    /// # Errors
    /// [`ErrorCode::AlreadyExists`], and those of the place.
    pub fn rename_to_free(&mut self, from: &[u8], to: &[u8]) -> Result<(), Failure> {
        self.rename_as(from, to, true)
    }

    fn rename_as(&mut self, from: &[u8], to: &[u8], no_replace: bool) -> Result<(), Failure> {
        let ask = control::Rename { from: from.to_vec(), to: to.to_vec(), no_replace };
        self.converse(Ask::Rename(ask), &mut |_| Ok(())).map(|_| ())
    }

    /// Removes, and tells how many entries went; of a directory all that can, and each entry that cannot
    /// is told, with its error.
    ///
    /// # Errors
    /// Those of the place; what was removed before stays removed.
    pub fn remove(&mut self, path: &[u8], recursive: bool, each: &mut dyn FnMut(ListEntry)) -> Result<u64, Failure> {
        let ask = control::Remove { path: path.to_vec(), recursive, go_on: true, empty_only: false, unchanged: None };
        self.pages(Ask::Remove(ask), b".", each)
    }

    /// Removes a file or a link that still is what [`Files::stat`] told of it, by its kind, size and time.
    ///
    /// # Errors
    /// With [`ErrorCode::SourceChanged`] when it is not; else those of the place.
    pub fn remove_unchanged(&mut self, path: &[u8], told: &ListEntry) -> Result<(), Failure> {
        let size = if told.kind == ItemKind::File { told.size } else { 0 };
        let unchanged = Some(State { kind: told.kind, size, mtime: Some(told.mtime) });
        let ask = control::Remove { path: path.to_vec(), recursive: false, go_on: true, empty_only: false, unchanged };
        self.pages(Ask::Remove(ask), b".", &mut |_| {}).map(|_| ())
    }

    /// Removes a directory and those below it in which nothing else is, and tells how many went. Whatever is no
    /// directory stays and is told, as in [`Files::remove`], and so does what comes to be there meanwhile.
    ///
    /// # Errors
    /// Those of the place; what was removed before stays removed.
    pub fn remove_empty(&mut self, path: &[u8], each: &mut dyn FnMut(ListEntry)) -> Result<u64, Failure> {
        let ask =
            control::Remove { path: path.to_vec(), recursive: false, go_on: true, empty_only: true, unchanged: None };
        self.pages(Ask::Remove(ask), b".", each)
    }

    /// Removes what transfers have left below a directory and nothing has changed for so long, or only tells of it; and
    /// how much it was. Entries with an error could not be removed, or looked at.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn collect(
        &mut self,
        path: &[u8],
        older: Duration,
        dry_run: bool,
        each: &mut dyn FnMut(ListEntry),
    ) -> Result<u64, Failure> {
        let ask = control::Collect { path: path.to_vec(), older, dry_run, marker: None };
        self.pages(Ask::Collect(ask), b"", each)
    }

    /// Removes what the copy with this marker key has left in a directory and below it, and how much it was. With
    /// `dry_run` only names the unfinished files that its marker tells of, as they would be called when they are whole.
    /// Sizes are bytes that they take. Nothing of a session under way is touched.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn collect_of(
        &mut self,
        path: &[u8],
        marker: control::MarkerKey,
        dry_run: bool,
        each: &mut dyn FnMut(ListEntry),
    ) -> Result<u64, Failure> {
        let ask = control::Collect { path: path.to_vec(), older: Duration::ZERO, dry_run, marker: Some(marker) };
        self.pages(Ask::Collect(ask), b"", each)
    }

    fn pages(&mut self, ask: Ask, typed: &[u8], each: &mut dyn FnMut(ListEntry)) -> Result<u64, Failure> {
        let mut part = |tell| {
            let Tell::Page(page) = tell else { return Ok(()) };
            for entry in page {
                check_name(&entry.path, typed)?;
                each(entry.into());
            }
            Ok(())
        };
        self.converse(ask, &mut part)
    }

    /// Reads a range of a file over the control connection, in parts of at most [`limits::PART_BYTES`], and waits for
    /// `each` to take one: for a look into a file, or a download of one. A copy is many times faster, and is verified.
    /// Where `each` says `false` the reading stops, and with it this conversation.
    ///
    /// All bytes are of one state of the file. The last part comes only when it is sure that the file has not changed
    /// since it was opened.
    ///
    /// # Errors
    /// When it cannot be read, is no file, is another than [`ReadRange::identity`] says, or changes while it is read;
    /// that it was stopped.
    pub fn read(
        &mut self,
        path: &[u8],
        range: ReadRange,
        each: &mut dyn FnMut(ReadEvent<'_>) -> bool,
    ) -> Result<(), Failure> {
        let ReadRange { offset, length, identity } = range;
        let ask = control::ReadFile { path: path.to_vec(), offset, length, identity };
        let (mut left, mut is_stopped) = (None, false);
        let mut part = |tell| {
            let goes_on = match (tell, left) {
                (Tell::Opened(control::OpenedFile { size, mtime, identity: found }), None) => {
                    if identity.is_some() && found != identity {
                        return Err(ProtocolError::violation("the peer opened another file than was asked for"));
                    }
                    left = Some(size.saturating_sub(offset).min(length));
                    each(ReadEvent::Opened(FileFacts { size, mtime, identity: found }))
                }
                (Tell::Part(bytes), Some(rest)) if bytes.len() as u64 <= rest => {
                    left = Some(rest - bytes.len() as u64);
                    each(ReadEvent::Bytes(&bytes))
                }
                _ => return Err(ProtocolError::violation("the peer sent other bytes of a file than were asked for")),
            };
            is_stopped |= !goes_on;
            Ok(goes_on)
        };
        let read = self.converse_while(Ask::Read(ask), &mut part);
        if is_stopped {
            // What is still under way is nobody's: the end stops when its connection goes.
            self.end.take().into_iter().for_each(End::close);
            return Err(over());
        }
        read?;
        match (left, &self.end) {
            (Some(0), _) => Ok(()),
            (_, Some(end)) => {
                Err(end.misbehaved(&ProtocolError::violation("the peer sent fewer bytes of a file than it has")))
            }
            (_, None) => Err(over()),
        }
    }

    /// Digests of a file, or of every file below a directory.
    ///
    /// # Errors
    /// When the path cannot be read; single files' errors are in their entries.
    pub fn sum(&mut self, path: &[u8], digests: Digests, each: &mut dyn FnMut(SumEntry)) -> Result<(), Failure> {
        self.sum_as(control::Sum { path: path.to_vec(), digests, one_file: false }, each)
    }

    /// Digests of a file; a directory is refused.
    ///
    /// # Errors
    /// When the path cannot be read, or is no file.
    pub fn sum_file(&mut self, path: &[u8], digests: Digests) -> Result<FileDigests, Failure> {
        let mut found = None;
        self.sum_as(control::Sum { path: path.to_vec(), digests, one_file: true }, &mut |sum| {
            found = Some(sum.result)
        })?;
        found.unwrap_or_else(|| Err(failure(ErrorCode::NotFound, Side::Source, "no digest has come of it")))
    }

    fn sum_as(&mut self, ask: control::Sum, each: &mut dyn FnMut(SumEntry)) -> Result<(), Failure> {
        let path = ask.path.clone();
        let mut part = |tell| {
            let Tell::Sums(sums) = tell else { return Ok(()) };
            for item in sums {
                check_name(&item.path, &path)?;
                each(item.into());
            }
            Ok(())
        };
        self.converse(Ask::Sum(ask), &mut part).map(|_| ())
    }

    /// The same, in the order in which trees are compared; a file that is named itself has an empty path.
    ///
    /// # Errors
    /// As [`Self::sum`].
    pub fn sum_in_order(
        &mut self,
        path: &[u8],
        digests: Digests,
        each: &mut dyn FnMut(SumEntry),
    ) -> Result<(), Failure> {
        let survey = control::Survey { digests, kept: KeptAttributes::NONE, after: Vec::new() };
        self.survey(path, survey, &mut |page| {
            for control::Entry { path, kind, size, failure, surveyed, .. } in page {
                let surveyed = surveyed.filter(|told| kind == Some(ItemKind::File) && !told.is_left_out);
                let result = failure.map_or_else(|| surveyed.map(|told| Ok(told.digests)), |why| Some(Err(why)));
                result.into_iter().for_each(|result| each(SumEntry { path: path.clone(), size, result }));
            }
            true
        })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end.close();
        }
    }
}

impl From<control::Entry> for ListEntry {
    fn from(entry: control::Entry) -> Self {
        Self {
            path: entry.path,
            kind: entry.kind.unwrap_or(ItemKind::Special),
            size: entry.size,
            mode: entry.mode,
            mtime: entry.mtime,
            link_target: entry.link_target,
            error: entry.failure,
            allocated: entry.allocated,
            twin: entry.twin,
            names: entry.names,
            attributes: entry.attributes,
        }
    }
}

impl From<ItemReport> for SumEntry {
    fn from(item: ItemReport) -> Self {
        let result = match item.outcome {
            Outcome::Failed(failure) => Err(failure),
            _ => Ok(item.digests),
        };
        Self { path: item.path, size: item.size, result }
    }
}
