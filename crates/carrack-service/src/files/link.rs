//! The link to one worker: requests go out with a number each, and parts of answers find their request by it.

use carrack_engine::sync::lock;
use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::pin;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::FilesError;
use super::process::Started;
use crate::worker::files::frame::{LENGTHS_BYTES, Lengths, decode_head, encode_head};
use crate::worker::files::{Ask, FilesOrder, FromWorker, Tell, ToWorker};

/// Parts of one answer that wait to be taken. An answer of many parts is asked for part by part, so a request that has
/// more is one whose reader is gone.
const PARTS_WAITING: usize = 64;
/// Bytes of a worker's last complaint that are kept.
const COMPLAINT_BYTES: usize = 1024;
/// How long a worker that has closed its stream may take to end.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(10);

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// A document as JSON, or bytes of a file.
    pub body: Vec<u8>,
    /// No more follows.
    pub is_last: bool,
}

/// The whole of an answer of one part.
pub type Answer = Vec<u8>;

type Waiting = mpsc::Sender<Result<Part, FilesError>>;

/// The link to one worker.
pub(super) struct Link {
    requests: mpsc::UnboundedSender<Vec<u8>>,
    stream: StdUnixStream,
    /// None once it is taken note of that it has ended; and where it is a thread of this process.
    child: Mutex<Option<Child>>,
    next: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: HashMap<u64, Waiting>,
    /// Why the worker takes no more requests.
    ended: Option<String>,
    /// What it has complained of last.
    complaint: Vec<u8>,
}

impl Link {
    /// Sends the order to a worker that was started. It is called within a runtime.
    pub fn open(started: Started, order: &FilesOrder) -> io::Result<Arc<Self>> {
        let Started { stream, complaints, child } = started;
        let order = encode_head(order, 0)?;
        stream.set_nonblocking(true)?;
        let (input, output) = UnixStream::from_std(stream.try_clone()?)?.into_split();
        let (requests, to_write) = mpsc::unbounded_channel();
        // Nobody else has the receiver, and it is there.
        let _ = requests.send(order);
        let child = Mutex::new(child);
        let link = Arc::new(Self { requests, stream, child, next: AtomicU64::new(1), state: Mutex::default() });
        tokio::spawn(write(output, to_write));
        let complaints = match complaints {
            Some(complaints) => {
                complaints.set_nonblocking(true)?;
                let complaints = UnixStream::from_std(complaints)?;
                Some(tokio::spawn(Arc::clone(&link).hear(complaints)))
            }
            None => None,
        };
        let reading = Arc::clone(&link);
        tokio::spawn(async move {
            let broken = reading.read(input).await.err();
            reading.bury(broken, complaints).await;
        });
        Ok(link)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether the worker takes requests.
    pub fn is_alive(&self) -> bool {
        self.state().ended.is_none()
    }

    /// Ends the worker at once, and with it all requests.
    pub fn end(&self, why: &str) {
        self.close(why.to_owned());
        self.kill();
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        lock(&self.child)
    }

    fn kill(&self) {
        if let Some(child) = &mut *self.child() {
            // It fails where the child has ended.
            let _ = child.kill();
        }
    }

    /// Takes no more requests, and tells those under way. The first reason stays.
    fn close(&self, why: String) {
        let mut state = self.state();
        if state.ended.is_some() {
            return;
        }
        let waiting: Vec<Waiting> = state.waiting.drain().map(|(_, waiting)| waiting).collect();
        state.ended = Some(why.clone());
        drop(state);
        for waiting in waiting {
            // A reader that takes nothing is told by the end of its channel.
            let _ = waiting.try_send(Err(FilesError::Lost(why.clone())));
        }
    }

    /// Sends a request, which ends at `until`. `held` is dropped with its answer.
    pub fn ask(
        self: &Arc<Self>,
        ask: Ask,
        body: &[u8],
        until: Option<Instant>,
        held: Box<dyn Send>,
    ) -> Result<Conversation, FilesError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let lost = |error: io::Error| FilesError::Lost(error.to_string());
        let mut frame = encode_head(&ToWorker { id, ask }, body.len()).map_err(lost)?;
        frame.extend_from_slice(body);
        let (waiting, parts) = mpsc::channel(PARTS_WAITING);
        let mut state = self.state();
        if let Some(why) = &state.ended {
            return Err(FilesError::Lost(why.clone()));
        }
        state.waiting.insert(id, waiting);
        drop(state);
        // A writer that has ended is told by the reader, whose stream has ended too.
        let _ = self.requests.send(frame);
        Ok(Conversation { id, link: Arc::clone(self), parts, until, ended: false, _held: held })
    }

    /// Gives a request up. Nobody waits for its answer any more.
    fn give_up(&self, id: u64) {
        self.state().waiting.remove(&id);
        self.cancel(id);
    }

    /// Tells the worker to give a request up.
    fn cancel(&self, id: u64) {
        if let Ok(frame) = encode_head(&ToWorker { id, ask: Ask::Cancel }, 0) {
            let _ = self.requests.send(frame);
        }
    }

    async fn read(&self, mut input: OwnedReadHalf) -> io::Result<()> {
        loop {
            let mut lengths = [0; LENGTHS_BYTES];
            match input.read_exact(&mut lengths).await {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                read => drop(read?),
            }
            let lengths = Lengths::decode(lengths)?;
            let mut head = vec![0; lengths.head];
            input.read_exact(&mut head).await?;
            let mut body = vec![0; lengths.body];
            input.read_exact(&mut body).await?;
            let FromWorker { id, tell } = decode_head(&head)?;
            self.deliver(id, tell, body);
        }
    }

    fn deliver(&self, id: u64, tell: Tell, body: Vec<u8>) {
        let mut state = self.state();
        let (told, is_last) = match tell {
            Tell::Part => (Ok(Part { body, is_last: false }), false),
            Tell::Done => (Ok(Part { body, is_last: true }), true),
            Tell::Failed { failure } => (Err(FilesError::Failed(failure)), true),
        };
        let taken = state.waiting.get(&id).is_some_and(|waiting| waiting.try_send(told).is_ok());
        if is_last || !taken {
            state.waiting.remove(&id);
        }
    }

    async fn hear(self: Arc<Self>, mut complaints: UnixStream) {
        let mut bytes = [0; COMPLAINT_BYTES];
        while let Ok(count @ 1..) = complaints.read(&mut bytes).await {
            let mut state = self.state();
            state.complaint.extend_from_slice(&bytes[..count]);
            let surplus = state.complaint.len().saturating_sub(COMPLAINT_BYTES);
            state.complaint.drain(..surplus);
        }
    }

    /// The stream has ended: says why to whoever waits, and takes note of the process.
    async fn bury(&self, broken: Option<io::Error>, hearing: Option<JoinHandle<()>>) {
        if broken.is_some() {
            self.kill();
        }
        let status = self.wait().await;
        if let Some(hearing) = hearing {
            // Whoever the worker has started may still hold its standard error.
            let _ = tokio::time::timeout(END_PATIENCE, hearing).await;
        }
        let complaint = String::from_utf8_lossy(&self.state().complaint).into_owned();
        let last = complaint.lines().rev().find(|line| !line.trim().is_empty());
        let why = match (last, broken, status) {
            (Some(line), _, _) => line.trim().chars().filter(|character| !character.is_control()).collect(),
            (None, Some(error), _) => error.to_string(),
            (None, None, Some(status)) => status.to_string(),
            (None, None, None) => "it gave no reason".to_owned(),
        };
        if self.is_alive() {
            tracing::warn!(target: "carrack::files", "a file worker has ended: {why}");
        }
        self.close(why);
    }

    /// Waits for the process. One that does not end is killed.
    async fn wait(&self) -> Option<ExitStatus> {
        let began = Instant::now();
        loop {
            let status = match &mut *self.child() {
                Some(child) => child.try_wait(),
                None => return None,
            };
            match status {
                Ok(None) => {}
                ended => {
                    *self.child() = None;
                    return ended.ok().flatten();
                }
            }
            if began.elapsed() >= END_PATIENCE {
                self.kill();
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

async fn write(mut output: OwnedWriteHalf, mut requests: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(frame) = requests.recv().await {
        if output.write_all(&frame).await.is_err() {
            return;
        }
    }
}

/// The answer to one request. Dropping it ends the request.
pub struct Conversation {
    id: u64,
    link: Arc<Link>,
    parts: mpsc::Receiver<Result<Part, FilesError>>,
    until: Option<Instant>,
    ended: bool,
    _held: Box<dyn Send>,
}

impl Conversation {
    /// The next part, once it is there; `None` behind the last.
    ///
    /// # Errors
    /// [`FilesError::Failed`], [`FilesError::Lost`] and [`FilesError::OverTime`]; nothing follows any of them.
    pub async fn next(&mut self) -> Result<Option<Part>, FilesError> {
        if self.ended {
            return Ok(None);
        }
        let told = match self.until {
            None => self.parts.recv().await,
            Some(until) => {
                let told = tokio::time::timeout_at(until.into(), self.parts.recv()).await;
                // A part may be there all the time, for a reader who is slow to take them.
                match told.ok().filter(|_| Instant::now() < until) {
                    Some(told) => told,
                    None => {
                        self.link.give_up(self.id);
                        self.ended = true;
                        return Err(FilesError::OverTime);
                    }
                }
            }
        };
        let told = told.unwrap_or_else(|| Err(FilesError::Lost("its answer was not taken in time".to_owned())));
        self.ended = told.as_ref().map_or(true, |part| part.is_last);
        told.map(Some)
    }

    /// As [`Self::next`], of an answer of many parts that come as they are taken ([`Ask::Take`]).
    ///
    /// # Errors
    /// As [`Self::next`].
    pub async fn flow(&mut self) -> Result<Option<Part>, FilesError> {
        let part = self.next().await?;
        if !self.ended
            && let Ok(frame) = encode_head(&ToWorker { id: self.id, ask: Ask::Take { parts: 1 } }, 0)
        {
            let _ = self.link.requests.send(frame);
        }
        Ok(part)
    }

    /// As [`Self::answer`]. Once `left` is over the worker is told to give the request up; its answer then says whether
    /// it has.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub async fn answer_unless(self, left: impl Future<Output = ()>) -> Result<Answer, FilesError> {
        let (id, link) = (self.id, Arc::clone(&self.link));
        let mut answer = pin!(self.answer());
        tokio::select! {
            told = &mut answer => return told,
            () = left => link.cancel(id),
        }
        answer.await
    }

    /// The answer of a request that has one part.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub async fn answer(mut self) -> Result<Answer, FilesError> {
        loop {
            match self.next().await? {
                Some(part) if part.is_last => return Ok(part.body),
                Some(_) => {}
                None => return Ok(Vec::new()),
            }
        }
    }
}

impl Conversation {
    /// Has the request carried out without anybody waiting for it.
    pub(super) fn leave(mut self) {
        self.ended = true;
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.link.give_up(self.id);
    }
}
