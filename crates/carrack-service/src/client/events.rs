//! Events as they happen, over connections that may end.

use std::collections::VecDeque;
use std::time::Duration;

use hyper::body::Incoming;

use super::call::{Call, with_query};
use super::error::{Called, ClientError};
use super::http::Client;
use crate::model::Event;

/// Between two tries to connect again.
const PAUSE: Duration = Duration::from_millis(500);
/// Tries in a row that bring nothing, before it is told.
const TRIES: u32 = 20;
/// Of one event.
const EVENT_BYTES_MAX: usize = 4 << 20;

impl Client {
    /// Events as they happen, from the one behind `since`; `task`: only of this one. It goes on by itself where a
    /// connection ends.
    pub fn events(&self, since: u64, task: Option<&str>) -> Events<'_> {
        Events::new(self, Some(since), task)
    }

    /// Events from now on.
    pub fn events_to_come(&self, task: Option<&str>) -> Events<'_> {
        Events::new(self, None, task)
    }
}

/// Events as they happen: an iterator that waits for the next one, and ends only by an error.
pub struct Events<'a> {
    client: &'a Client,
    task: Option<String>,
    /// The last event that was read; none: the stream begins with what comes.
    since: Option<u64>,
    body: Option<Incoming>,
    unread: Vec<u8>,
    ready: VecDeque<Event>,
    futile: u32,
    connections: u64,
}

impl<'a> Events<'a> {
    pub(super) fn new(client: &'a Client, since: Option<u64>, task: Option<&str>) -> Self {
        let task = task.map(str::to_owned);
        Self { client, task, since, body: None, unread: Vec::new(), ready: VecDeque::new(), futile: 0, connections: 0 }
    }

    /// How many connections it took so far.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Connects, and waits until the service sends: what happens from now on is not missed.
    ///
    /// # Errors
    /// What the service says no to, and that nobody answers.
    pub fn begin(&mut self) -> Called<()> {
        let client = self.client;
        client.runtime.block_on(self.read())
    }

    /// The next event, or none if `patience` is over before it comes. A connection that has to be made takes its own
    /// time beside that.
    ///
    /// # Errors
    /// What the service says no to, and what does not pass within ten seconds.
    pub fn next_within(&mut self, patience: Duration) -> Called<Option<Event>> {
        let client = self.client;
        client.runtime.block_on(async {
            if self.ready.is_empty() && self.body.is_none() {
                // A failure is tried once more below, where failures are counted.
                self.body = self.open().await.ok();
            }
            // What is read is kept where the future ends early: no event is lost.
            tokio::time::timeout(patience, self.next_event()).await.map_or(Ok(None), |event| event.map(Some))
        })
    }

    async fn next_event(&mut self) -> Called<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.since = Some(event.id);
                self.futile = 0;
                return Ok(event);
            }
            if let Err(error) = self.read().await {
                self.body = None;
                self.unread.clear();
                self.futile += 1;
                if !error.may_pass() || self.futile > TRIES {
                    return Err(error);
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn open(&mut self) -> Called<Incoming> {
        let since = self.since.map_or_else(|| "latest".to_owned(), |id| id.to_string());
        let mut path = with_query("/events", &[("since", &since)]);
        if let Some(task) = &self.task {
            path = with_query(&path, &[("task", task)]);
        }
        self.connections += 1;
        self.client.open(&Call::get(path), "text/event-stream").await
    }

    /// Reads what comes next, and takes the events out of it.
    async fn read(&mut self) -> Called<()> {
        if self.body.is_none() {
            self.body = Some(self.open().await?);
        }
        let Some(body) = &mut self.body else { return Ok(()) };
        let Some(piece) = Client::next_piece(body).await? else {
            // The service ends streams when it stops, and when the caller may not read any more: the next call says.
            self.body = None;
            self.futile += 1;
            if self.futile > TRIES {
                return Err(ClientError::Broken("the service ends the stream of events again and again".into()));
            }
            tokio::time::sleep(PAUSE).await;
            return Ok(());
        };
        self.unread.extend_from_slice(&piece);
        while let Some(end) = self.unread.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = self.unread.drain(..end + 2).collect();
            match parse(&block) {
                Some(event) => self.ready.push_back(event),
                // A stream that begins with what comes says where that is: a later connection goes on there.
                None => self.since = self.since.or(position(&block)),
            }
        }
        if self.unread.len() > EVENT_BYTES_MAX {
            return Err(ClientError::Broken("an event is larger than any that the API has".into()));
        }
        Ok(())
    }
}

impl Iterator for Events<'_> {
    type Item = Called<Event>;

    fn next(&mut self) -> Option<Called<Event>> {
        let client = self.client;
        Some(client.runtime.block_on(self.next_event()))
    }
}

/// An event out of its block of lines; none for a sign of life.
fn parse(block: &[u8]) -> Option<Event> {
    let text = std::str::from_utf8(block).ok()?;
    let data: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .map(|data| data.strip_prefix(' ').unwrap_or(data))
        .collect();
    serde_json::from_str(&data.join("\n")).ok()
}

/// The number of an event that a block names without having it.
fn position(block: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(block).ok()?;
    text.lines().find_map(|line| line.strip_prefix("id:"))?.trim().parse().ok()
}
