//! The parts of a crowd, in this process and at the far side of ssh: how they are begun, started together and heard.

use carrack_sys::sync::{lock, unpoisoned};
use std::io::{BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::SshHost;
use carrack_core::request::Reach;
use carrack_engine::{Context, FarPart, FarSession, StopReason, threads};

use crate::crowd::far::{VERB, go_line, next_line, ping_line, wait_for_start};
use crate::crowd::order::LoadOrder;
use crate::crowd::part;
use crate::crowd::told::PartTold;

/// Hosts that are reached at a time.
const AT_ONCE: usize = 32;
/// A part that says nothing for so long is lost: it tells several times a second that it is there.
const SILENCE: Duration = Duration::from_secs(60);
const GLANCE: Duration = Duration::from_millis(100);
/// The start is told so long before it is due.
const NOTICE: Duration = Duration::from_millis(300);
/// Questions for the distance of each part.
const PINGS: u64 = 3;
/// Notes of ssh that are passed on.
pub type Note = Arc<dyn Fn(String) + Send + Sync>;

/// A part of the crowd.
pub struct CrowdPart {
    /// What its host is called.
    pub host: String,
    /// What it does.
    pub order: LoadOrder,
    /// The BLAKE3 of each file that its clients send.
    pub digests: Vec<[u8; 32]>,
    line: Option<PartLine>,
    /// When it was heard last.
    heard: Instant,
    /// Why it is lost.
    pub lost: Option<String>,
    /// Its clients are done.
    pub has_ended: bool,
    /// It has told everything.
    pub is_over: bool,
}

enum PartLine {
    Here { starter: Sender<Instant>, context: Context, thread: Option<JoinHandle<()>> },
    Far { input: ChildStdin, _session: FarSession },
}

impl Drop for PartLine {
    fn drop(&mut self) {
        if let Self::Here { context, thread, .. } = self {
            context.stop.request(StopReason::Cancel);
            // What it has made is removed before this program ends.
            let _ = thread.take().map(JoinHandle::join);
        }
    }
}

/// What a part said; nothing where its line has ended.
struct HeardLine {
    part: usize,
    at: Instant,
    told: Option<PartTold>,
}

/// All parts of a crowd.
pub struct Parts {
    /// Those that could be begun.
    pub all: Vec<CrowdPart>,
    heard: Receiver<HeardLine>,
    context: Context,
}

/// Where a part runs.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The host; this one where there is none.
    pub host: Option<SshHost>,
    /// What is to be done there.
    pub order: LoadOrder,
}

impl Parts {
    /// Begins all parts. Those that cannot be are lost from the beginning, with why.
    pub fn begin(seats: Vec<Seat>, reach: &Reach, context: &Context, note: &Note) -> Self {
        let (teller, heard) = channel();
        let queue = Mutex::new(seats.into_iter().enumerate().collect::<std::collections::VecDeque<_>>());
        let done = Mutex::new(Vec::new());
        let begin_all = |teller: Sender<HeardLine>| {
            loop {
                let next = lock(&queue).pop_front();
                let Some((at, seat)) = next else { return };
                let begun = begin(&seat, at, reach, context, note, &teller);
                lock(&done).push((at, seat, begun));
            }
        };
        let begin_all = &begin_all;
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                let teller = teller.clone();
                if threads::start_scoped(scope, "beginning parts", move || begin_all(teller)).is_err() {
                    break;
                }
            }
            // This thread begins some, too, or all of them where the system gives no other.
            begin_all(teller.clone());
        });
        let mut done = unpoisoned(done.into_inner());
        done.sort_by_key(|(at, ..)| *at);
        let mut all = Vec::new();
        for (_, seat, begun) in done {
            let (line, lost) = match begun {
                Ok(line) => (Some(line), None),
                Err(why) => (None, Some(why)),
            };
            let host = seat.host.as_ref().map_or_else(|| "this host".to_owned(), ToString::to_string);
            let is_over = lost.is_some();
            let (order, digests, heard) = (seat.order, Vec::new(), Instant::now());
            all.push(CrowdPart { host, order, digests, line, heard, lost, has_ended: is_over, is_over });
        }
        Self { all, heard, context: context.clone() }
    }

    /// Listens until `enough` says so. What a part says is handed to `each`, with its place and when it was heard; a
    /// part that is lost stays lost.
    ///
    /// # Errors
    /// When the user ends it.
    pub fn listen(
        &mut self,
        each: &mut dyn FnMut(&mut CrowdPart, usize, Instant, PartTold),
        enough: &mut dyn FnMut(&[CrowdPart]) -> bool,
    ) -> Result<(), Failure> {
        loop {
            if enough(&self.all) {
                return Ok(());
            }
            self.context.stop.check()?;
            match self.heard.recv_timeout(GLANCE) {
                Ok(HeardLine { part, at, told }) => {
                    if let Some(part_of) = self.all.get_mut(part).filter(|part| part.lost.is_none()) {
                        part_of.heard = at;
                        take(part_of, part, at, told, each);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.all.iter_mut().for_each(|part| lose(part, "it has ended")),
            }
            for part in self.all.iter_mut().filter(|part| !part.is_over && part.heard.elapsed() > SILENCE) {
                lose(part, "nothing was heard of it for a minute");
            }
        }
    }

    /// Waits until all have their files made; those that cannot make them are lost.
    ///
    /// # Errors
    /// When the user ends it.
    pub fn ready(&mut self, note: &mut dyn FnMut(&str)) -> Result<(), Failure> {
        let mut ready = vec![false; self.all.len()];
        let waiting = std::cell::RefCell::new(&mut ready);
        self.listen(
            &mut |part, at, _, told| match told {
                PartTold::Ready(digests) => {
                    part.digests = digests;
                    waiting.borrow_mut()[at] = true;
                }
                PartTold::Note(text) => note(&format!("{}: {text}", part.host)),
                _ => {}
            },
            &mut |parts| parts.iter().zip(waiting.borrow().iter()).all(|(part, ready)| *ready || part.lost.is_some()),
        )
    }

    /// Starts all at one moment, which is told: every part hears of it as much earlier as its answers take.
    ///
    /// # Errors
    /// When the user ends it.
    pub fn start(&mut self) -> Result<Instant, Failure> {
        let mut distances = vec![Duration::from_secs(1); self.all.len()];
        for number in 0..PINGS {
            let sent = Instant::now();
            let mut waiting: Vec<bool> = self.all.iter_mut().map(|part| part.say(&ping_line(number))).collect();
            let pending = std::cell::RefCell::new(&mut waiting);
            let patience = Instant::now() + Duration::from_secs(10);
            self.listen(
                &mut |_, at, heard, told| {
                    if told == PartTold::Pong(number) {
                        distances[at] = distances[at].min(heard.saturating_duration_since(sent) / 2);
                        pending.borrow_mut()[at] = false;
                    }
                },
                &mut |parts| {
                    let waits = |(part, waits): (&CrowdPart, &bool)| *waits && part.lost.is_none();
                    Instant::now() >= patience || !parts.iter().zip(pending.borrow().iter()).any(waits)
                },
            )?;
        }
        let farthest = distances.iter().max().copied().unwrap_or_default();
        let begin = Instant::now() + NOTICE + farthest;
        for (part, distance) in self.all.iter_mut().zip(distances) {
            match &mut part.line {
                Some(PartLine::Here { starter, .. }) => drop(starter.send(begin)),
                Some(PartLine::Far { .. }) => {
                    let after = begin.saturating_duration_since(Instant::now()).saturating_sub(distance);
                    part.say(&go_line(after));
                }
                None => {}
            }
        }
        Ok(begin)
    }

    /// Gives up those whose clients are not done.
    pub fn lose_unended(&mut self, why: &str) {
        self.all.iter_mut().filter(|part| !part.has_ended).for_each(|part| lose(part, why));
    }

    /// Ends the lines of all parts, and waits until those of this process have removed what they made.
    pub fn end(&mut self) {
        // All are told before any is waited for.
        for part in &self.all {
            if let Some(PartLine::Here { context, .. }) = &part.line {
                context.stop.request(StopReason::Cancel);
            }
        }
        std::thread::scope(|scope| {
            for part in &mut self.all {
                let line = part.line.take();
                // Without a thread it ends here.
                let _ = threads::start_scoped(scope, "the end of a part", move || drop(line));
            }
        });
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.end();
    }
}

impl CrowdPart {
    /// Says something to a far part; whether it could be said.
    fn say(&mut self, line: &serde_json::Value) -> bool {
        match &mut self.line {
            Some(PartLine::Far { input, .. }) => {
                let said = input.write_all(format!("{line}\n").as_bytes()).and_then(|()| input.flush());
                said.is_ok()
            }
            _ => false,
        }
    }
}

fn lose(part: &mut CrowdPart, why: &str) {
    if !part.is_over {
        part.lost.get_or_insert_with(|| why.to_owned());
        (part.has_ended, part.is_over) = (true, true);
    }
}

fn take(
    part: &mut CrowdPart,
    at: usize,
    heard: Instant,
    told: Option<PartTold>,
    each: &mut dyn FnMut(&mut CrowdPart, usize, Instant, PartTold),
) {
    match told {
        None => lose(part, "the connection to it was lost"),
        Some(PartTold::Failed(why)) => lose(part, &why),
        Some(PartTold::Over) => (part.has_ended, part.is_over) = (true, true),
        Some(PartTold::Ended) => part.has_ended = true,
        Some(told) => each(part, at, heard, told),
    }
}

fn begin(
    seat: &Seat,
    at: usize,
    reach: &Reach,
    context: &Context,
    note: &Note,
    teller: &Sender<HeardLine>,
) -> Result<PartLine, String> {
    let Some(host) = &seat.host else { return begin_here(seat, at, context, teller) };
    let part = FarPart::start(VERB, host, reach, &context.stop, note).map_err(|why| why.to_string())?;
    let FarPart { mut input, output, session, .. } = part;
    let line = format!("{}\n", seat.order.to_json());
    input.write_all(line.as_bytes()).and_then(|()| input.flush()).map_err(|error| error.to_string())?;
    let teller = teller.clone();
    threads::start("what a part says", move || pass_on(at, output, &teller)).map_err(|error| error.to_string())?;
    Ok(PartLine::Far { input, _session: session })
}

fn pass_on(part: usize, mut output: BufReader<ChildStdout>, teller: &Sender<HeardLine>) {
    while let Some(told) = next_line(&mut output).as_ref().and_then(PartTold::from_json) {
        let _ = teller.send(HeardLine { part, at: Instant::now(), told: Some(told) });
    }
    let _ = teller.send(HeardLine { part, at: Instant::now(), told: None });
}

fn begin_here(seat: &Seat, at: usize, context: &Context, teller: &Sender<HeardLine>) -> Result<PartLine, String> {
    let (starter, starts) = channel();
    let context = Context { stop: context.stop.child(), ..context.clone() };
    let (own, order, teller) = (context.clone(), seat.order.clone(), teller.clone());
    let work = move || {
        let tell = |told| drop(teller.send(HeardLine { part: at, at: Instant::now(), told: Some(told) }));
        part::run(&order, &own, &tell, &mut || wait_for_start(&starts, &own));
        let _ = teller.send(HeardLine { part: at, at: Instant::now(), told: None });
    };
    let thread = threads::start("a part", work).map_err(|error| error.to_string())?;
    Ok(PartLine::Here { starter, context, thread: Some(thread) })
}

/// No part is left: why the first is not there.
pub fn nobody(host: &str, why: &str) -> Failure {
    Failure::new(ErrorCode::ConnectFailed, Side::Command, format!("no host of the crowd could begin; {host}: {why}"))
}
