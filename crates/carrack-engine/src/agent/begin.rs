//! The beginning of a transfer: its sources or its destination are opened, and what was connected before is handed to it.

use std::io;
use std::sync::Arc;

use carrack_core::limits;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::wire::control::{Begin, ReceiveRole, Role, Sink, TransferOptions};
use carrack_core::wire::expected::Expected;
use carrack_core::wire::mux::Channel;
use carrack_sys::dir::{Kind, stat_file};
use carrack_sys::file::clear_nonblock;
use carrack_sys::standard::Patient;

use super::Agent;
use crate::error::{failure, io_failure, protocol_failure, system_failure};
use crate::storage::destination::{Destination, Tree};
use crate::storage::marker::MarkerRequest;
use crate::storage::pipe::FifoWriter;
use crate::storage::source::SourceRoot;
use crate::transfer::receive::ReceiveRun;
use crate::transfer::send::SendRun;
use crate::transfer::{Running, Voice};

impl Agent {
    /// Adds to what the next transfer sends, and counts all of it.
    pub(super) fn select(&self, paths: Vec<Vec<u8>>) -> Result<u64, Failure> {
        let mut state = self.lock();
        let selection = state.selection.get_or_insert_default();
        for path in paths {
            selection.add(path);
            let (count, bytes) = selection.size();
            if count > limits::SELECTED_PATHS || bytes > limits::SELECTED_BYTES {
                let what =
                    format!("more than {} paths, or {} bytes of them", limits::SELECTED_PATHS, limits::SELECTED_BYTES);
                return Err(failure(ErrorCode::ProtocolViolation, Side::Link, format!("the peer selected {what}")));
            }
        }
        Ok(selection.size().0 as u64)
    }

    /// Starts a transfer; of a receiving one, how many items it knows from earlier sessions.
    pub(super) fn begin(self: &Arc<Self>, begin: Begin) -> Result<u64, Failure> {
        let Begin { options, role } = begin;
        if self.lock().running.is_some() {
            return Err(failure(
                ErrorCode::ProtocolViolation,
                Side::Link,
                "the peer began a second transfer in one session",
            ));
        }
        if self.environment.own.is_none() {
            role.check_remote().map_err(|error| protocol_failure(Side::Link, &error))?;
        }
        let (voice, tuning) = (self.voice(), Arc::clone(&self.environment.tuning));
        let mut known = 0;
        let running = match role {
            Role::Send(role) => {
                let roots = role
                    .sources
                    .iter()
                    .map(|source| SourceRoot::open(&self.environment.place, source, self.environment.own.as_ref()))
                    .collect::<Result<Vec<_>, _>>()?;
                let selection = self.lock().selection.take();
                Running::Send(SendRun::start(options, roots, selection, role.known, voice, tuning))
            }
            Role::Receive(role) => {
                self.may_change()?;
                let destination = self.destination(&role, &options)?;
                if let Destination::Tree(tree) = &destination {
                    known = tree.known_count(options.digests);
                }
                Running::Receive(ReceiveRun::start(options, destination, Expected::new(role.targets), voice, tuning))
            }
        };
        let waiting = {
            let mut state = self.lock();
            state.running = Some(running.clone());
            std::mem::take(&mut state.waiting)
        };
        running.started();
        for connection in waiting {
            running.add_stream(connection);
        }
        Ok(known)
    }

    fn voice(self: &Arc<Self>) -> Voice {
        let (peer, command) = (self.writer.clone(), self.writer.clone());
        Voice {
            peer: Arc::new(move |message| peer.send(Channel::PEER, &message.encode())),
            command: Arc::new(move |tell| {
                let _ = command.send(Channel::CONTROL, &tell.encode(0));
            }),
        }
    }

    fn destination(self: &Arc<Self>, role: &ReceiveRole, options: &TransferOptions) -> Result<Destination, Failure> {
        let path = &role.directory[..];
        let named = |error: &io::Error| system_failure(Side::Destination, error).at_path(path);
        match role.sink {
            Sink::Files => {
                let durably = options.durability != carrack_core::request::Durability::None;
                let directory = self.environment.place.make_dirs(path, durably).map_err(|error| named(&error))?;
                let request = marker_request(role, options);
                let tree = Tree::new(
                    directory,
                    role.targets.is_empty(),
                    request,
                    options.durability,
                    &self.environment.tuning,
                )
                .map_err(|error| named(&error))?;
                let (place, path) = (self.environment.place.clone(), path.to_vec());
                Ok(Destination::Tree(tree.found_by(move || place.stat(&path))))
            }
            Sink::Stdout => {
                let out = self.environment.own.clone().unwrap_or_default().open_output();
                let out = out.map_err(|error| io_failure(Side::Destination, "standard output", &error))?;
                let agent = Arc::downgrade(self);
                let is_over = move || agent.upgrade().is_none_or(|agent| agent.left.is_set());
                Ok(Destination::sequential(Box::new(Patient::new(out, is_over))))
            }
            Sink::Null => Ok(Destination::Null),
            Sink::Device => {
                let (parent, name) = self.environment.place.parent(path).map_err(|error| named(&error))?;
                if parent.stat_at(&name).map_err(|error| named(&error))?.kind == Kind::Fifo {
                    let agent = Arc::downgrade(self);
                    let is_over = move || agent.upgrade().is_none_or(|agent| agent.left.is_set());
                    let fifo = FifoWriter::new(parent, name, Box::new(is_over));
                    return Ok(Destination::sequential(Box::new(fifo)));
                }
                let file = parent.open_write(&name).map_err(|error| named(&error))?;
                if stat_file(&file).map_err(|error| named(&error))?.kind == Kind::File {
                    let what = "is a regular file: only devices and FIFOs are written in place";
                    return Err(failure(ErrorCode::Unsupported, Side::Destination, what).at_path(path));
                }
                clear_nonblock(&file).map_err(|error| named(&error))?;
                Ok(Destination::sequential(Box::new(file)))
            }
        }
    }
}

/// What a receiver's marker is found by, where it is to have one.
fn marker_request(role: &ReceiveRole, options: &TransferOptions) -> Option<MarkerRequest> {
    let key = role.marker.filter(|_| options.version.can_resume());
    key.map(|key| MarkerRequest { key, anew: role.anew })
}
