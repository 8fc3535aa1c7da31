//! What this end's host says of itself, for whoever examines it.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::{Weak, mpsc};
use std::time::{Duration, Instant};

use carrack_core::evidence::EvidenceText;
use carrack_core::limits;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::wire::control::{EvidenceAbout, Tell};
use carrack_sys::dir::Dir;
use carrack_sys::facts::{self, FactText};

use super::{Agent, DataPort};
use crate::error::failure;
use crate::net::socket::Socket;
use crate::storage::place::Place;

/// A connection that its dialer has made is here soon.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);
/// A directory takes no longer to be opened, or its server is gone.
const OPEN: Duration = Duration::from_secs(10);

impl Agent {
    /// Gathers, and sends page by page; the answer is how many texts there were. A node gives them to those who have
    /// shown its token: what anybody may reach does not say what it is made of.
    pub(super) fn tell_evidence(&self, request: u64, about: &EvidenceAbout) -> Result<Tell, Failure> {
        if matches!(self.environment.data, DataPort::Shared(_)) && self.environment.token.is_none() {
            let why = "a node that wants no token says nothing of its host";
            return Err(failure(ErrorCode::AuthenticationFailed, Side::Link, why));
        }
        let (mut texts, peer) = self.connections(about.connections);
        // Held open until all is gathered: its path leads through the handle.
        let directory = match &about.directory[..] {
            b"" => None,
            typed => Some(open_within(OPEN, self.environment.place.clone(), typed.to_vec())),
        };
        let path = match &directory {
            Some(Ok(directory)) => Some(PathBuf::from(format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd()))),
            Some(Err(error)) => {
                texts.push(("directory".to_owned(), EvidenceText::Failed(error.to_string())));
                None
            }
            None => None,
        };
        let gathered = facts::gather(facts::About { peer: about.peer.or(peer), directory: path.as_deref() });
        texts.extend(gathered.into_iter().map(|(name, text)| (name, text_of(text))));
        let count = texts.len();
        let (mut page, mut bytes) = (Vec::new(), 0);
        for (name, text) in texts {
            let text = bounded(text);
            bytes += name.len() + if let EvidenceText::Found(text) = &text { text.len() } else { 0 };
            page.push((name, text));
            if page.len() >= limits::PAGE_ENTRIES || bytes >= limits::PAGE_BYTES {
                self.page(request, Tell::Evidence(std::mem::take(&mut page)))?;
                bytes = 0;
            }
        }
        self.page(request, Tell::Evidence(page))?;
        Ok(Tell::Done(count as u64))
    }

    /// What TCP knows of so many data connections of this session, and where they lead. The last that a peer has made
    /// may still be on its way here.
    fn connections(&self, count: usize) -> (Vec<(String, EvidenceText)>, Option<std::net::IpAddr>) {
        let end = Instant::now() + PATIENCE;
        let sockets = loop {
            let sockets: Vec<_> = self.lock().connections.iter().filter_map(Weak::upgrade).collect();
            if sockets.len() >= count || Instant::now() >= end || self.left.wait(LOOK) {
                break sockets;
            }
        };
        let (mut texts, mut other) = (Vec::new(), None);
        for (number, socket) in sockets.iter().take(count).enumerate() {
            let Socket::Tcp(socket) = &**socket else { continue };
            for (name, end) in [("local", socket.local_addr()), ("peer", socket.peer_addr())] {
                let Ok(end) = end else { continue };
                if name == "peer" {
                    other.get_or_insert(end.ip().to_canonical());
                }
                let end = std::net::SocketAddr::new(end.ip().to_canonical(), end.port());
                texts.push((format!("connection/{number}/{name}"), EvidenceText::Found(end.to_string())));
            }
            for (name, text) in facts::connection(socket) {
                texts.push((format!("connection/{number}/{name}"), text_of(text)));
            }
        }
        (texts, other)
    }
}

/// Opens a directory; one of a server that does not answer is left to its thread.
fn open_within(time: Duration, place: Place, path: Vec<u8>) -> io::Result<Dir> {
    let (sender, receiver) = mpsc::channel();
    let open = move || {
        // Whoever waited may have left.
        let _ = sender.send(place.dir(&path));
    };
    carrack_sys::threads::start("opening a directory", open)?;
    let silent = |_| io::Error::other(format!("it did not answer within {} s", time.as_secs()));
    receiver.recv_timeout(time).map_err(silent)?
}

/// A text that its reader takes.
fn bounded(text: EvidenceText) -> EvidenceText {
    match text {
        EvidenceText::Found(mut text) => {
            let end = (0..=limits::EVIDENCE_TEXT_BYTES.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
            text.truncate(end.unwrap_or(0));
            EvidenceText::Found(text)
        }
        other => other,
    }
}

fn text_of(text: FactText) -> EvidenceText {
    match text {
        FactText::Found(text) => EvidenceText::Found(text),
        FactText::Absent => EvidenceText::Absent,
        FactText::Denied => EvidenceText::Denied,
        FactText::Failed(why) => EvidenceText::Failed(why),
    }
}
