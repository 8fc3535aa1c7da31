//! The agent at the far side of an ssh session.

use std::io::{Read, Write};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use carrack_core::failure::{Failure, Side};

use super::{Agent, DataPort, Environment, greet};
use crate::control::ssh;
use crate::error::io_failure;
use crate::net::mux::MuxWriter;
use crate::storage::place::Place;

/// The far side of an ssh session: what a process that ssh has started knows, and its standard streams.
pub struct FarSide {
    /// What the command wants to hear before anything else.
    pub nonce: String,
    /// From the command.
    pub input: Box<dyn Read + Send>,
    /// What is written here reaches the command.
    pub output: Box<dyn Write + Send>,
    /// Where the command's paths lead: anywhere, or into a store that this process has, which takes bytes in any order.
    pub place: Place,
    /// The address of this host that the ssh connection reached; empty where it is not known.
    pub local_address: String,
    /// The address that the ssh connection came from; empty where it is not known.
    pub peer_address: String,
    /// Called when the command has been silent for so long that nobody is there any more, once what is unfinished has
    /// been removed. The thread that waits for `input` cannot be woken: a process of its own ends here.
    pub abandoned: Box<dyn Fn() + Send + Sync>,
}

impl FarSide {
    /// Does what the command asks until the session ends.
    ///
    /// # Errors
    /// When the connection breaks the protocol.
    pub fn run(self) -> Result<(), Failure> {
        let (mut input, mut output) = (self.input, self.output);
        ssh::announce(&mut output, &self.nonce)
            .map_err(|error| io_failure(Side::Link, "announce the agent", &error))?;
        let mut environment = Environment {
            place: self.place,
            read_only: false,
            gives_ownership: false,
            own: None,
            sources: None,
            token: None,
            grant: None,
            busy: false,
            data: DataPort::Own(None),
            local_address: self.local_address,
            peer_address: self.peer_address,
            tuning: Arc::default(),
            began: Instant::now(),
        };
        // Called when all work here has ended, or when the command has been silent for too long.
        let served: Arc<OnceLock<Weak<Agent>>> = Arc::default();
        let (ended, abandoned) = (Arc::clone(&served), self.abandoned);
        let abort = move || {
            if let Some(agent) = ended.get().and_then(Weak::upgrade) {
                agent.end_work("the other side has been silent for too long");
            }
            abandoned();
        };
        let writer = MuxWriter::new(output, Box::new(abort));
        environment.restrict(greet(&mut input, &writer, &environment)?);
        let agent = Agent::new(writer, environment);
        let _ = served.set(Arc::downgrade(&agent));
        agent.keep_alive_and_run(input, &agent.writer, &agent.environment.tuning);
        Ok(())
    }
}
