//! One client: its files one after the other, each by a copy of its own, as somebody makes it who types the command.

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use carrack_core::credential::Credential;
use carrack_core::failure::{ErrorCode, Failure};
use carrack_core::location::Location;
use carrack_core::path::join;
use carrack_core::report::Event;
use carrack_core::request::{CopyOptions, CopyRequest, EndOptions, LinkSet, Reach};
use carrack_engine::{Context, Copy, StopReason};

use super::order::{Carrier, Client, ClientWay, LoadOrder, put_name, set_name};
use super::program;
use super::told::{Attempt, CarryOutcome, FileCarried, PartTold};

/// What the clients of a part have in common.
pub struct ClientWork<'a> {
    /// What is to be done.
    pub order: &'a LoadOrder,
    /// What the engine may use; its stop ends all clients.
    pub context: &'a Context,
    /// The common start.
    pub begin: Instant,
    /// Where the host's own files are, and where fetched ones go.
    pub sources: &'a Path,
    pub got: &'a Path,
    pub tally: &'a Tally,
    pub tell: &'a (dyn Fn(PartTold) + Sync),
}

/// What has come to its end since it was last told.
#[derive(Default)]
pub struct Tally {
    /// Sent, and fetched.
    bytes: [AtomicU64; 2],
    /// Clients that are not done.
    pub active: AtomicU32,
}

impl Tally {
    fn add(&self, way: ClientWay, bytes: u64) {
        self.bytes[way as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes what is new.
    pub fn take(&self) -> [u64; 2] {
        [0, 1].map(|way| self.bytes[way].swap(0, Ordering::Relaxed))
    }
}

/// What the host's own files are called in its directory.
pub fn source_name(number: u32) -> String {
    format!("source-{number:04}")
}

/// What fetched files are called.
pub fn got_name(client: u32, file: u32) -> String {
    format!("got-{client:05}-{file:06}")
}

impl ClientWork<'_> {
    /// Everything that a client does; `place` is its place among those of the part.
    pub fn run(&self, place: usize, client: Client) {
        for file in 0..self.order.files {
            let carried = self.carry(place, client, file);
            (self.tell)(PartTold::FileCarried(Box::new(carried)));
        }
        self.tally.active.fetch_sub(1, Ordering::Relaxed);
    }

    fn until(&self) -> Instant {
        let most = Duration::from_secs(10 * 366 * 24 * 3600);
        self.begin + self.order.timeout.min(most)
    }

    /// Why no further attempt is made.
    fn is_over(&self) -> Option<Attempt> {
        if self.context.stop.requested().is_some() {
            Some(Attempt::new(CarryOutcome::Stopped, ""))
        } else {
            (Instant::now() >= self.until()).then(|| Attempt::new(CarryOutcome::TimedOut, "its turn never came"))
        }
    }

    fn carry(&self, place: usize, client: Client, file: u32) -> FileCarried {
        let source = match client.way {
            ClientWay::Put => self.order.source_of(place, file),
            ClientWay::Get => self.order.set_of(client.number, file),
        };
        let (name, local) = match client.way {
            ClientWay::Put => {
                (put_name(&self.order.prefix, client.number, file), self.sources.join(source_name(source)))
            }
            ClientWay::Get => (set_name(&self.order.prefix, source), self.got.join(got_name(client.number, file))),
        };
        let began = self.begin.elapsed();
        let (attempts, streams_lost) = match (&self.order.carrier, self.is_over()) {
            (_, Some(over)) => (vec![over], 0),
            (Carrier::Carrack { .. }, None) => self.copy(client.way, &name, &local),
            (Carrier::Program { put, get, node }, None) => {
                let line = if client.way == ClientWay::Put { put } else { get };
                let line = program::expand(line.as_deref().unwrap_or("false"), &local, node, &name);
                (self.attempts(&line), 0)
            }
        };
        let ended = self.begin.elapsed();
        let (client, way) = (client.number, client.way);
        FileCarried { client, file, way, source, began, ended, attempts, streams_lost }
    }

    /// Runs another program until it says that it is done, as often as may be.
    fn attempts(&self, line: &str) -> Vec<Attempt> {
        let mut attempts = Vec::new();
        loop {
            let attempt = program::run(line, self.until(), &self.context.stop);
            let may_pass = matches!(attempt.outcome, CarryOutcome::Refused | CarryOutcome::Lost | CarryOutcome::Failed);
            attempts.push(attempt);
            if !may_pass || attempts.len() > self.order.retries as usize {
                return attempts;
            }
            if let Some(over) = self.pause(attempts.len()) {
                attempts.push(over);
                return attempts;
            }
        }
    }

    /// Waits before the next attempt: longer each time, and never beyond the end of the whole.
    fn pause(&self, before: usize) -> Option<Attempt> {
        let longest = Duration::from_millis(500).saturating_mul(1 << before.min(6));
        let end = (Instant::now() + longest).min(self.until());
        while Instant::now() < end {
            if let Some(over) = self.is_over() {
                return Some(over);
            }
            std::thread::sleep(Duration::from_millis(20).min(end.saturating_duration_since(Instant::now())));
        }
        self.is_over()
    }

    /// A copy of one file; the engine makes the attempts.
    fn copy(&self, way: ClientWay, name: &str, local: &Path) -> (Vec<Attempt>, u64) {
        let Carrier::Carrack { node, directory, .. } = &self.order.carrier else { return (Vec::new(), 0) };
        let here = Location::Local(local.as_os_str().as_encoded_bytes().to_vec());
        let there = Location::Node { node: node.clone(), path: join(directory, name.as_bytes()) };
        let (from, to) = if way == ClientWay::Put { (here, there) } else { (there, here) };
        let mut options = options(self.order);
        options.deadline = Some(self.until().saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
        let mut copy = Copy::start(CopyRequest { sources: vec![from], destination: to, options }, self.context);
        let (mut attempts, mut landed) = (Vec::new(), 0);
        while let Some(event) = copy.next_event() {
            match event {
                Event::Progress(progress) => {
                    self.tally.add(way, progress.bytes_done.saturating_sub(landed));
                    landed = landed.max(progress.bytes_done);
                }
                Event::SessionLost { failure, .. } => attempts.push(attempt_of(&failure)),
                _ => {}
            }
        }
        let report = copy.wait();
        let item = report.failures.first().map(|item| &item.failure);
        let last = match report.error.as_ref().or(item) {
            Some(failure) => attempt_of(failure),
            None => {
                self.tally.add(way, report.counts.bytes.saturating_sub(landed));
                Attempt::new(CarryOutcome::Done, "")
            }
        };
        attempts.push(last);
        (attempts, report.faults.streams_lost)
    }
}

/// How a client copies.
pub fn options(order: &LoadOrder) -> CopyOptions {
    let Carrier::Carrack { token, streams, link, .. } = &order.carrier else { return CopyOptions::default() };
    let default = CopyOptions::default();
    let end = EndOptions {
        credential: token.clone().map_or(Credential::None, Credential::Value),
        reach: Reach { connect_timeout: order.connect_timeout, local_address: order.local_address, ..Reach::default() },
        ..EndOptions::default()
    };
    CopyOptions {
        streams: *streams,
        links: link.map_or(default.links, LinkSet::only),
        retries: order.retries,
        source: end.clone(),
        destination: end,
        ..default
    }
}

fn attempt_of(failure: &Failure) -> Attempt {
    let outcome = match failure.code {
        ErrorCode::ConnectFailed | ErrorCode::Busy | ErrorCode::AuthenticationFailed => CarryOutcome::Refused,
        ErrorCode::ConnectionLost | ErrorCode::Silence => CarryOutcome::Lost,
        ErrorCode::DeadlinePassed => CarryOutcome::TimedOut,
        ErrorCode::Interrupted | ErrorCode::Terminated => CarryOutcome::Stopped,
        _ => CarryOutcome::Failed,
    };
    Attempt::new(outcome, &failure.to_string())
}

/// Ends every client of a part.
pub fn stop(context: &Context) {
    context.stop.request(StopReason::Cancel);
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_core::failure::Side;

    #[test]
    fn failures_are_refusals_losses_or_neither() {
        let outcome = |code| attempt_of(&Failure::new(code, Side::Link, "why")).outcome;
        assert_eq!(outcome(ErrorCode::ConnectFailed), CarryOutcome::Refused);
        assert_eq!(outcome(ErrorCode::Busy), CarryOutcome::Refused);
        assert_eq!(outcome(ErrorCode::ConnectionLost), CarryOutcome::Lost);
        assert_eq!(outcome(ErrorCode::DeadlinePassed), CarryOutcome::TimedOut);
        assert_eq!(outcome(ErrorCode::NoSpace), CarryOutcome::Failed);
    }
}
