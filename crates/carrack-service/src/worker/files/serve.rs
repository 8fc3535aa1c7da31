//! The loop of a file worker: reads requests, starts a thread for each, and ends with its input.

use carrack_engine::sync::lock;
use std::collections::HashMap;
use std::io::{self, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::time::Duration;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::request::Reach;
use carrack_engine::{Context, Stop, StopReason, threads};
use rustix::process::setsid;

use super::super::called::of_endpoint;
use super::end::End;
use super::gate::Gate;
use super::listing::Listings;
use super::reply::{Credit, Output, Reply};
use super::{Ask, FilesOrder, ToWorker, frame, told};
use super::{archive, content, leftovers, operations, totals, upload};
use crate::model::keep_out_of_cores;

/// Requests that one worker carries out at once. The service asks for fewer.
const REQUESTS_MAX: usize = 64;
/// Of these, trees that are counted; others wait for their turn.
const COUNTS_AT_ONCE: usize = 3;
/// Of these, archives and files that are downloaded. They last as long as their readers like: others are refused.
const ARCHIVES_AT_ONCE: usize = 4;
const FILES_AT_ONCE: usize = 12;
/// How often it is looked whether the process is to end: a signal wakes nobody.
const LOOK: Duration = Duration::from_millis(100);

/// What a file worker is given by its process.
pub struct Means {
    /// What the engine works with. Its `stop` ends the worker.
    pub context: Context,
    /// How hosts are reached.
    pub reach: Reach,
    /// Where the order and requests come from, and answers go to.
    pub stream: UnixStream,
}

/// A worker at its work.
struct Session {
    end: Result<Arc<End>, Failure>,
    listings: Arc<Listings>,
    /// Requests under way, by number.
    running: Mutex<HashMap<u64, Request>>,
    counts: Gate,
    archives: Gate,
    files: Gate,
    stop: Stop,
}

/// Serves as a process of its own, and answers with its exit code.
pub fn run(means: Means) -> u8 {
    // The service reads the last line that a worker writes there.
    let complain = |why: String| {
        let _ = writeln!(io::stderr(), "{why}");
        1
    };
    // Before there is a secret: no core holds one, and nobody else of this account reads this process's memory.
    if let Err(error) = keep_out_of_cores() {
        return complain(format!("secrets cannot be kept out of core dumps: {error}"));
    }
    crate::worker::go_first();
    // No program that it starts, as ssh, asks anything at the service's terminal. It fails where it is so already.
    let _ = setsid();
    serve(means).map_or_else(complain, |()| 0)
}

/// Serves the files of the endpoint that the first frame orders, until the stream ends.
///
/// # Errors
/// In words, where the stream does not hold what it should.
pub fn serve(means: Means) -> Result<(), String> {
    let told = |error: io::Error| format!("the service cannot be understood: {error}");
    let output = Output::new(means.stream.try_clone().map_err(told)?);
    let watched = means.stream.try_clone().map_err(told)?;
    let stop = means.context.stop.child();
    let context = Context { stop: stop.clone(), ..means.context };
    let mut input = BufReader::new(means.stream);
    let Some((order, _)) = frame::read::<FilesOrder>(&mut input).map_err(told)? else { return Ok(()) };
    crate::worker::give_up_rights([&order.end]);
    let end = End::open(&order, &means.reach, &context).map(Arc::new);
    let end = end.map_err(|failure| of_endpoint(failure, &order.name, b""));
    drop(order);
    let session = Arc::new(Session {
        end,
        listings: Arc::default(),
        running: Mutex::default(),
        counts: Gate::new(COUNTS_AT_ONCE),
        archives: Gate::new(ARCHIVES_AT_ONCE),
        files: Gate::new(FILES_AT_ONCE),
        stop: stop.clone(),
    });
    let watching = stop.clone();
    let watch = move || {
        while watching.requested().is_none() {
            std::thread::park_timeout(LOOK);
        }
        // Wakes the reader. Where the stream has ended already, so much the better.
        let _ = watched.shutdown(Shutdown::Both);
    };
    let watcher = threads::start("the watch for the end", watch).map_err(told)?;
    let ended = loop {
        match frame::read::<ToWorker>(&mut input) {
            Ok(Some((asked, body))) => session.take(asked, body, &output),
            Ok(None) => break Ok(()),
            Err(_) if stop.requested().is_some() => break Ok(()),
            Err(error) => break Err(told(error)),
        }
    };
    stop.request(StopReason::Cancel);
    watcher.thread().unpark();
    ended
}

/// What a request under way hears of.
struct Request {
    stop: Stop,
    credit: Arc<Credit>,
}

/// A request under way, until it is dropped.
struct Running {
    session: Arc<Session>,
    id: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.session.running().remove(&self.id);
    }
}

impl Session {
    fn running(&self) -> MutexGuard<'_, HashMap<u64, Request>> {
        lock(&self.running)
    }

    /// Begins a request, or ends one.
    fn take(self: &Arc<Self>, asked: ToWorker, body: Vec<u8>, output: &Output) {
        let ToWorker { id, ask } = asked;
        match ask {
            Ask::Cancel => {
                if let Some(request) = self.running().remove(&id) {
                    request.stop.request(StopReason::Cancel);
                }
                return;
            }
            Ask::Take { parts } => {
                if let Some(request) = self.running().get(&id) {
                    request.credit.add(parts);
                }
                return;
            }
            _ => {}
        }
        let (reply, stop) = (Reply::new(id, output.clone()), self.stop.child());
        let mut running = self.running();
        if running.len() >= REQUESTS_MAX {
            drop(running);
            return reply.fail(told::failure(&Failure::new(
                ErrorCode::Busy,
                Side::Command,
                "too many requests at once",
            )));
        }
        running.insert(id, Request { stop: stop.clone(), credit: reply.credit() });
        drop(running);
        let running = Running { session: Arc::clone(self), id };
        // Handed over once the thread is there: without one, whoever asked is told so.
        let (give, given) = mpsc::sync_channel::<(Reply, Running)>(1);
        let work = move || {
            let Ok((mut reply, running)) = given.recv() else { return };
            if let Err(failure) = running.session.carry_out(&ask, body, &stop, &mut reply) {
                reply.fail(told::failure(&failure));
            }
        };
        match threads::start_named("request", work) {
            // It waits for this.
            Ok(_) => drop(give.send((reply, running))),
            Err(error) => reply.fail(told::failure(&carrack_engine::system_failure(Side::Command, &error))),
        }
    }

    /// Carries out one request. Each line names the function that does it.
    fn carry_out(&self, ask: &Ask, body: Vec<u8>, stop: &Stop, reply: &mut Reply) -> Result<(), Failure> {
        let end = self.end.as_ref().map_err(Failure::clone)?;
        self.answer(end, ask, body, stop, reply).map_err(|failure| end.named(failure))
    }

    fn answer(&self, end: &Arc<End>, ask: &Ask, body: Vec<u8>, stop: &Stop, reply: &mut Reply) -> Result<(), Failure> {
        match ask {
            // Taken before.
            Ask::Cancel | Ask::Take { .. } => Ok(()),
            Ask::Content { path, range } => {
                let _turn = self.files.try_enter("downloads")?;
                content::content(end, stop, path, range, reply)
            }
            Ask::Archive { paths } => {
                let _turn = self.archives.try_enter("archives")?;
                archive::archive(end, stop, paths, reply)
            }
            Ask::PutBlock { spool, block, offset, digest } => {
                upload::put_block(spool, *block, *offset, digest, &body)?;
                reply.done(b"")
            }
            Ask::Publish { spool } => {
                upload::publish(end, stop, spool)?;
                reply.done(b"")
            }
            Ask::MakeDirectory { path, parents } => {
                operations::make_directory(end, stop, path, *parents)?;
                reply.done(b"")
            }
            Ask::Rename { from, to, replace } => {
                operations::rename(end, stop, from, to, *replace)?;
                reply.done(b"")
            }
            Ask::OpenListing { listing, path } => reply.done_with(&self.listings.open(end, &self.stop, listing, path)?),
            Ask::Window { listing, window } => reply.done_with(&self.listings.window(listing, window)?),
            Ask::Names { listing, filter, hidden, offset } => {
                reply.done(&self.listings.names(listing, filter, *hidden, *offset)?)
            }
            Ask::CloseListing { listing } => {
                self.listings.close(listing);
                reply.done(b"")
            }
            Ask::Usage { paths } => {
                let _turn = self.counts.enter(stop)?;
                totals::usage(end, stop, paths, reply)
            }
            Ask::Leftovers { places, remove } => reply.done_with(&leftovers::leftovers(end, stop, places, *remove)?),
            Ask::Sum { path } => reply.done_with(&totals::sum(end, stop, path)?),
            Ask::Properties { path } => reply.done_with(&operations::properties(end, stop, path)?),
        }
    }
}
