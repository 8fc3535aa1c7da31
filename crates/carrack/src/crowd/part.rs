//! The part of a crowd that one host has: its directory, its files, its clients, and what they fetched.

use carrack_sys::sync::{lock, unpoisoned};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::Location;
use carrack_core::report::{Event, Outcome as ItemOutcome};
use carrack_core::request::{CopyOptions, CopyRequest, Digests, Durability, EndOptions};
use carrack_engine::files::Files;
use carrack_engine::{Context, Copy, io_failure, system_failure, threads};
use carrack_sys::dir::Dir;
use carrack_sys::measure::processors;

use super::client::{ClientWork, Tally, got_name, source_name};
use super::order::{ClientWay, LoadOrder};
use super::told::{FileFound, PartTold};
use crate::far_scratch::{FarScratch, LostHosts};

/// How often it is told how far all are.
const TICK: Duration = Duration::from_millis(200);
/// Share of the free space that may be used.
const FREE_SHARE: f64 = 0.9;
/// The directories of one part are told apart by numbers; those of another part of the same process by others.
static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// Tells what happens, from several threads.
pub type Tell<'a> = &'a (dyn Fn(PartTold) + Sync);

/// Does all that is ordered. Once everything is ready, `go` waits for the common start; `None` if there is none.
pub fn run(order: &LoadOrder, context: &Context, tell: Tell<'_>, go: &mut dyn FnMut() -> Option<Instant>) {
    let (tally, begin, over) = (Tally::default(), OnceLock::new(), AtomicBool::new(false));
    let done = std::thread::scope(|scope| {
        let _end = TickEnd(&over);
        threads::start_scoped(scope, "progress", || tick(&tally, &begin, &over, tell))
            .map_err(|error| system_failure(Side::Command, &error))?;
        work(order, context, &tally, &begin, tell, go)
    });
    match done {
        Ok(()) => tell(PartTold::Over),
        Err(why) => tell(PartTold::Failed(super::told::short(&why.to_string()))),
    }
}

/// Ends the ticks, whatever ends the work.
struct TickEnd<'a>(&'a AtomicBool);

impl Drop for TickEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Tells how far all are until it is over: that is also how a far part shows that it is there.
fn tick(tally: &Tally, begin: &OnceLock<Instant>, over: &AtomicBool, tell: Tell<'_>) {
    let mut before = processors();
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(TICK);
        let now = processors();
        let busy = before.as_ref().zip(now.as_ref()).and_then(|(before, now)| {
            let busy = now.all.busy.saturating_sub(before.all.busy).as_secs_f64();
            let idle = now.all.idle.saturating_sub(before.all.idle).as_secs_f64();
            (busy + idle > 0.0).then(|| busy / (busy + idle))
        });
        // The system counts in ticks of its own: a glance that is too short says nothing.
        if busy.is_some() {
            before = now;
        }
        tell(progress(tally, begin, busy));
    }
}

fn progress(tally: &Tally, begin: &OnceLock<Instant>, busy: Option<f64>) -> PartTold {
    let at = begin.get().map_or(Duration::ZERO, |begin| Instant::now().saturating_duration_since(*begin));
    PartTold::Progress { at, bytes: tally.take(), active: tally.active.load(Ordering::Relaxed), busy }
}

fn work(
    order: &LoadOrder,
    context: &Context,
    tally: &Tally,
    begun: &OnceLock<Instant>,
    tell: Tell<'_>,
    go: &mut dyn FnMut() -> Option<Instant>,
) -> Result<(), Failure> {
    check_room(order)?;
    let [sources, got] = [(); 2].map(|()| scratch(&order.scratch, context, tell));
    let (sources, got) = (sources?, got?);
    let sends = order.clients.iter().any(|client| client.way == ClientWay::Put);
    let digests = if sends { make_sources(order, &sources, context)? } else { Vec::new() };
    tell(PartTold::Ready(digests));
    let Some(begin) = go() else { return Ok(()) };
    let _ = begun.set(begin);
    tally.active.store(u32::try_from(order.clients.len()).unwrap_or(u32::MAX), Ordering::Relaxed);
    let [from, to] = [&sources, &got].map(path_of);
    let work = ClientWork { order, context, begin, sources: &from, got: &to, tally, tell };
    while Instant::now() < begin && context.stop.requested().is_none() {
        std::thread::sleep(begin.saturating_duration_since(Instant::now()).min(Duration::from_millis(20)));
    }
    std::thread::scope(|scope| {
        for (place, client) in order.clients.iter().enumerate() {
            let work = &work;
            let started = threads::start_scoped(scope, "a client", move || work.run(place, *client));
            if let Err(error) = started {
                tell(PartTold::Note(format!("client {} cannot take part: {error}", client.number)));
                tally.active.fetch_sub(1, Ordering::Relaxed);
            }
        }
    });
    tell(progress(tally, begun, None));
    tell(PartTold::Ended);
    context.stop.check()?;
    if order.clients.iter().any(|client| client.way == ClientWay::Get) {
        look(order, &got, context, tell)?;
    }
    Ok(())
}

/// A directory of the part's own.
fn scratch(parent: &[u8], context: &Context, tell: Tell<'_>) -> Result<FarScratch, Failure> {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut note = |text: &str| tell(PartTold::Note(text.to_owned()));
    let parent = Location::Local(parent.to_vec());
    FarScratch::create(&parent, "load", number, &EndOptions::default(), context, &LostHosts::default(), &mut note)
}

/// Where a directory of this host is.
pub fn path_of(scratch: &FarScratch) -> PathBuf {
    let file = scratch.file("x");
    let path = Path::new(OsStr::from_bytes(file.path().unwrap_or_default()));
    path.parent().unwrap_or(Path::new("/")).to_owned()
}

fn check_room(order: &LoadOrder) -> Result<(), Failure> {
    let count = |wanted: ClientWay| order.clients.iter().filter(|client| client.way == wanted).count() as u64;
    let sources = if count(ClientWay::Put) > 0 { u64::from(order.sources) } else { 0 };
    let files = sources.saturating_add(count(ClientWay::Get).saturating_mul(u64::from(order.files)));
    let needed = files.saturating_mul(order.size);
    let path = Path::new(OsStr::from_bytes(&order.scratch));
    let open = Dir::open_ambient(path).and_then(|directory| directory.free_space());
    let space = open.map_err(|error| io_failure(Side::Command, "open", &error).at_path(order.scratch.clone()))?;
    if needed as f64 > space.bytes_available as f64 * FREE_SHARE {
        let why = format!("the crowd's files take {needed} bytes, and {} are free", space.bytes_available);
        return Err(Failure::new(ErrorCode::NoSpace, Side::Command, why).at_path(order.scratch.clone()));
    }
    Ok(())
}

/// Makes the files that clients send; the BLAKE3 of each.
pub fn make_sources(order: &LoadOrder, scratch: &FarScratch, context: &Context) -> Result<Vec<[u8; 32]>, Failure> {
    let make = |number| make(order.size, scratch.file(&source_name(number)), EndOptions::default(), context);
    (0..order.sources).map(make).collect()
}

/// Makes a file of random bytes, wherever; its BLAKE3, as it was computed from what was written.
///
/// # Errors
/// Those of a copy.
pub fn make(size: u64, file: Location, end: EndOptions, context: &Context) -> Result<[u8; 32], Failure> {
    let options = CopyOptions {
        destination: end,
        item_events: true,
        resume: false,
        retries: 0,
        durability: Durability::None,
        ..CopyOptions::default()
    };
    let request = CopyRequest { sources: vec![Location::Random(size)], destination: file, options };
    let mut copy = Copy::start(request, context);
    let mut digest = None;
    while let Some(event) = copy.next_event() {
        if let Event::Item(item) = event
            && item.outcome == ItemOutcome::Published
        {
            digest = item.digests.blake3;
        }
    }
    let report = copy.wait();
    let failed = report.failures.into_iter().next().map(|item| item.failure);
    match (report.error.or(failed), digest) {
        (Some(why), _) => Err(why),
        (None, Some(digest)) => Ok(digest),
        (None, None) => Err(Failure::new(ErrorCode::Internal, Side::Command, "a file was made without a digest")),
    }
}

/// Tells size and digest of all that was fetched.
fn look(order: &LoadOrder, got: &FarScratch, context: &Context, tell: Tell<'_>) -> Result<(), Failure> {
    let place = Location::Local(path_of(got).into_os_string().into_encoded_bytes());
    let of_client = |client: u32| (0..order.files).map(move |file| (got_name(client, file), (client, file)));
    let fetching = order.clients.iter().filter(|client| client.way == ClientWay::Get);
    let names: BTreeMap<String, (u32, u32)> = fetching.flat_map(|client| of_client(client.number)).collect();
    let unread = Mutex::new(None);
    let mut files = Files::open(&place, &EndOptions::default(), context, &|_| {})?;
    files.sum(place.path().unwrap_or_default(), Digests::BLAKE3, &mut |entry| {
        let known = std::str::from_utf8(&entry.path).ok().and_then(|name| names.get(name));
        let Some(&(client, file)) = known else { return };
        match entry.result {
            Ok(digests) => {
                let content = (entry.size, digests.blake3.unwrap_or_default());
                tell(PartTold::FileFound(FileFound { client, file, content }));
            }
            Err(why) => {
                lock(&unread).get_or_insert(why);
            }
        }
    })?;
    unpoisoned(unread.into_inner()).map_or(Ok(()), Err)
}
