//! Two trees, compared where they are: both ends list theirs at once and make the digests, and only what they tell
//! moves. Listings are merged as they come, so memory does not follow the size of the trees.
//!
//! A lost connection is made again, and its end goes on behind the last path that it has told.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use carrack_core::location::Location;
use carrack_core::plan::check::{
    CheckCounts, CheckFinding, CheckRules, CheckedFacts, CheckedItem, CheckedSide, CheckedState, TreeComparison,
};
use carrack_core::plan::compare::{CompareRules, State};
use carrack_core::report::{EndFacts, ErrorCode, Event, Failure, ItemKind, Side};
use carrack_core::request::{Compare, CopyOptions, CopyRequest, Digests, EndOptions, Existing};
use carrack_core::wire::control::{Entry, Survey, Surveyed};
use carrack_sys::threads;

use crate::context::Context;
use crate::copy::attempts::{Attempts, jittered};
use crate::error::{failure, system_failure};
use crate::files::Files;
use crate::panics::contain;
use crate::stop::{StopReason, Until};

/// Pages of a listing that wait for the other side's.
const PAGES_WAITING: usize = 2;
/// How often somebody who waits looks whether to go on.
const LOOKS: Duration = Duration::from_millis(100);

/// What is told while two trees are compared.
pub enum CheckEvent<'a> {
    /// What was found at a path, and all that was found until then.
    Found(&'a [u8], &'a CheckFinding, CheckCounts),
    /// So far; several times a second while nothing is found.
    Progress(CheckCounts),
}

/// How a comparison has ended.
#[derive(Clone, Debug, Default)]
pub struct ComparisonReport {
    /// What was found.
    pub counts: CheckCounts,
    /// The source's host and the destination's, as far as they have answered.
    pub ends: [Option<EndFacts>; 2],
    /// What ended it early.
    pub error: Option<Failure>,
}

/// Where a comparison goes on that was broken off.
#[derive(Clone, Debug, Default)]
pub struct CheckPosition {
    /// The last path that was found at either side, but for those that could not be read; empty: none.
    pub after: Vec<u8>,
    /// What had been found until then.
    pub counts: CheckCounts,
    /// What could not be read until then, and at which side.
    pub unread: Vec<(Side, Vec<u8>)>,
}

/// Compares what the first source and the destination of a request name. By what, under which rules, and how often lost
/// connections are made again, is as in a copy of the one to the other. Nothing is changed.
pub fn check(
    request: &CopyRequest,
    context: &Context,
    observer: &(dyn Fn(Event) + Send + Sync),
    each: &mut dyn FnMut(CheckEvent<'_>),
) -> ComparisonReport {
    check_behind(request, &CheckPosition::default(), context, observer, each)
}

/// The same, from where it was broken off.
pub fn check_behind(
    request: &CopyRequest,
    position: &CheckPosition,
    context: &Context,
    observer: &(dyn Fn(Event) + Send + Sync),
    each: &mut dyn FnMut(CheckEvent<'_>),
) -> ComparisonReport {
    let CheckPosition { after, counts, unread } = position;
    let mut comparison = TreeComparison::behind(rules(&request.options), after, *counts, unread.iter().cloned());
    let CopyRequest { sources, destination, options } = request;
    let facts = [OnceLock::new(), OnceLock::new()];
    let result = sources.first().map_or(Ok(()), |source| {
        let one = |location, end, side| SurveyedPlace { location, end, options, side };
        let places =
            [one(source, &options.source, Side::Source), one(destination, &options.destination, Side::Destination)];
        with_surveys(&places, (after, &facts), (context, observer), |listings, until| match listings {
            [source, destination] => merge(source, destination, until, &mut comparison, each),
            _ => Ok(()),
        })?
    });
    let ends = facts.map(OnceLock::into_inner);
    ComparisonReport { counts: comparison.counts(), ends, error: result.err() }
}

/// A place that is listed in the order in which trees are compared.
#[derive(Clone, Copy)]
pub struct SurveyedPlace<'a> {
    /// Where it is,
    pub location: &'a Location,
    /// and how its host is reached.
    pub end: &'a EndOptions,
    /// Which items are listed, which attributes are told, whether digests are made, and how often lost connections are
    /// made again: as in a copy.
    pub options: &'a CopyOptions,
    /// Which side it is, in failures.
    pub side: Side,
}

/// Lists a place, digests included where content is compared; `work` takes item by item from the function that it is
/// given.
///
/// # Errors
/// When the host has no thread left. What ends the listing early is told to `work`.
pub fn survey<T>(
    place: SurveyedPlace<'_>,
    context: &Context,
    observer: &(dyn Fn(Event) + Send + Sync),
    work: impl FnOnce(&mut dyn FnMut() -> Result<Option<CheckedItem>, Failure>) -> T,
) -> Result<T, Failure> {
    with_surveys(&[place], (b"", &[OnceLock::new()]), (context, observer), |listings, until| {
        let mut listing = listings.first_mut();
        work(&mut || listing.as_mut().map_or(Ok(None), |listing| listing.next(&mut || until.check())))
    })
}

/// Begins to list places behind a path, all at once, and ends that with `work`. What each end is stands in its place of
/// `facts`.
fn with_surveys<'a, T>(
    places: &'a [SurveyedPlace<'a>],
    (after, facts): (&'a [u8], &'a [OnceLock<EndFacts>]),
    (context, observer): (&Context, &(dyn Fn(Event) + Send + Sync)),
    work: impl FnOnce(&mut [PulledListing], &Until) -> T,
) -> Result<T, Failure> {
    let deadline = places.iter().find_map(|place| place.options.deadline);
    let end = deadline.and_then(|deadline| Instant::now().checked_add(deadline));
    let context = Context { stop: context.stop.child(), ..context.clone() };
    let until = Until::new(context.stop.clone(), end);
    std::thread::scope(|scope| {
        let begin = |(place, facts): (SurveyedPlace<'a>, _)| {
            let (sender, pages) = sync_channel(PAGES_WAITING);
            let SurveyedPlace { location, end, options, side } = place;
            let own = context.local_destination.clone().filter(|_| side == Side::Destination);
            let context = Context { local: own.unwrap_or_else(|| context.local.clone()), ..context.clone() };
            let surveyed = SurveyedEnd { location, end, options, after, facts, context, observer };
            let work = move || surveyed.run(sender);
            threads::start_scoped(scope, "a side of a comparison", work)
                .map_err(|error| system_failure(Side::Command, &error))?;
            Ok(PulledListing { side, pages, page: Vec::new().into_iter() })
        };
        let begun: Result<Vec<_>, Failure> = places.iter().copied().zip(facts).map(begin).collect();
        let result = begun.map(|mut listings| work(&mut listings, &until));
        // One side may be in the midst of a large file.
        context.stop.request(StopReason::Cancel);
        result
    })
}

fn rules(options: &CopyOptions) -> CheckRules {
    let window_ns = u64::try_from(options.modify_window.as_nanos()).unwrap_or(u64::MAX);
    let compare = CompareRules { compare: options.compare, existing: Existing::Replace, window_ns };
    CheckRules { compare, kept: options.kept, numeric_ids: options.numeric_ids, claims: false }
}

fn merge(
    source: &mut PulledListing,
    destination: &mut PulledListing,
    until: &Until,
    comparison: &mut TreeComparison,
    each: &mut dyn FnMut(CheckEvent<'_>),
) -> Result<(), Failure> {
    loop {
        let counts = comparison.counts();
        let mut wait = || {
            each(CheckEvent::Progress(counts));
            until.check()
        };
        let next = comparison.next_finding(&mut |side| match side {
            CheckedSide::Source => source.next(&mut wait),
            CheckedSide::Destination => destination.next(&mut wait),
        })?;
        let Some((path, finding)) = next else { return Ok(()) };
        each(CheckEvent::Found(&path, &finding, comparison.counts()));
    }
}

/// The listing of one side, as it comes.
struct PulledListing {
    side: Side,
    pages: Receiver<Result<Vec<Entry>, Failure>>,
    page: std::vec::IntoIter<Entry>,
}

impl PulledListing {
    /// The next item; `wait` is asked now and then whether to go on.
    fn next(&mut self, wait: &mut dyn FnMut() -> Result<(), Failure>) -> Result<Option<CheckedItem>, Failure> {
        loop {
            if let Some(entry) = self.page.next() {
                return checked_item(entry, self.side).map(Some);
            }
            match self.pages.recv_timeout(LOOKS) {
                Ok(page) => self.page = page.map_err(|why| of_side(why, self.side))?.into_iter(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
            wait()?;
        }
    }
}

/// Each end tells what it reads as a source's.
fn of_side(why: Failure, side: Side) -> Failure {
    Failure { side: if why.side == Side::Source { side } else { why.side }, ..why }
}

fn checked_item(entry: Entry, side: Side) -> Result<CheckedItem, Failure> {
    let Entry { path, kind, size, mode, mtime, link_target, failure: why, attributes, surveyed, .. } = entry;
    let told = match (why, surveyed) {
        (Some(why), _) if kind == Some(ItemKind::Directory) => CheckedState::Unlisted(of_side(why, side)),
        (Some(why), _) => CheckedState::Failed(of_side(why, side)),
        (None, None) => {
            let what = "its program is older and lists nothing that can be compared: update it there";
            return Err(failure(ErrorCode::VersionMismatch, side, what));
        }
        (None, Some(surveyed)) if surveyed.is_left_out => CheckedState::LeftOut,
        (None, Some(surveyed)) => {
            let kind = kind.unwrap_or(ItemKind::Special);
            let is_file = kind == ItemKind::File;
            let mtime = (is_file && !surveyed.is_timeless).then_some(mtime);
            let state = State { kind, size: if is_file { size } else { 0 }, mtime };
            let Surveyed { special, digests, file, .. } = surveyed;
            CheckedState::There(Box::new(CheckedFacts {
                state,
                link_target,
                special,
                mode,
                others: attributes,
                digests,
                file,
            }))
        }
    };
    Ok(CheckedItem { path, told })
}

/// One side, while it is listed.
struct SurveyedEnd<'a> {
    location: &'a Location,
    end: &'a EndOptions,
    options: &'a CopyOptions,
    facts: &'a OnceLock<EndFacts>,
    /// Only what comes behind this path.
    after: &'a [u8],
    context: Context,
    observer: &'a (dyn Fn(Event) + Send + Sync),
}

/// How far the listing of a side has come.
struct SurveyProgress {
    attempts: Attempts,
    /// The last path that has come in its place.
    after: Vec<u8>,
    /// Nobody takes any more.
    is_unread: bool,
}

impl SurveyedEnd<'_> {
    fn run(&self, pages: SyncSender<Result<Vec<Entry>, Failure>>) {
        let told = contain(Side::Command, "a side of a comparison", || self.tell_all(&pages));
        if let Err(why) = told.and_then(|result| result) {
            // Whoever has stopped to read knows why.
            let _ = pages.send(Err(why));
        }
    }

    fn tell_all(&self, pages: &SyncSender<Result<Vec<Entry>, Failure>>) -> Result<(), Failure> {
        let attempts = Attempts::new(self.options, self.context.tuning.clone(), Instant::now());
        let mut told = SurveyProgress { attempts, after: self.after.to_vec(), is_unread: false };
        loop {
            match self.tell_rest(&mut told, pages) {
                Err(why) if !told.is_unread => self.pause(&mut told.attempts, why)?,
                _ => return Ok(()),
            }
        }
    }

    /// Over one connection.
    fn tell_rest(
        &self,
        told: &mut SurveyProgress,
        pages: &SyncSender<Result<Vec<Entry>, Failure>>,
    ) -> Result<(), Failure> {
        let mut files = Files::open(self.location, self.end, &self.context, self.observer)?;
        told.attempts.handle_link();
        // That of the first connection stays.
        files.facts().into_iter().for_each(|facts| drop(self.facts.set(facts)));
        files.leave_out(&self.options.filters)?;
        self.options.only.as_ref().map_or(Ok(()), |only| files.select(only))?;
        let digests = if self.options.compare == Compare::Content { Digests::BLAKE3 } else { Digests::NONE };
        let survey = Survey { digests, kept: self.options.kept, after: told.after.clone() };
        files.survey(self.location.path().unwrap_or_default(), survey, &mut |page| {
            told.attempts.handle_gain();
            let is_unlisted = |entry: &Entry| entry.failure.is_some() && entry.kind == Some(ItemKind::Directory);
            if let Some(last) = page.iter().rfind(|entry| !is_unlisted(entry)) {
                told.after.clone_from(&last.path);
            }
            told.is_unread = pages.send(Ok(page)).is_err();
            !told.is_unread
        })
    }

    /// Waits before the connection is made again, if that may help.
    fn pause(&self, attempts: &mut Attempts, why: Failure) -> Result<(), Failure> {
        let Some((attempt, longest)) = attempts.next(&why, Instant::now()) else { return Err(why) };
        let pause = jittered(longest);
        let over = Instant::now() + pause;
        (self.observer)(Event::SessionLost { failure: why, attempt, pause });
        while Instant::now() < over {
            self.context.stop.check()?;
            std::thread::park_timeout(over.saturating_duration_since(Instant::now()).min(LOOKS));
        }
        Ok(())
    }
}
