//! The agent at the far side of an ssh session, on standard input and output.

use std::io;
use std::sync::{Arc, OnceLock, Weak};

use carrack_core::report::{Failure, Side};

use super::{Agent, DataPort, Environment};
use crate::control::ssh;
use crate::error::io_failure;
use crate::net::mux::MuxWriter;
use crate::storage::place::Place;

/// Runs the far side of an ssh session on standard input and output, until the session ends.
///
/// # Errors
/// When the connection breaks the protocol.
pub fn run_stdio(nonce: &str) -> Result<(), Failure> {
    ssh::announce(&mut io::stdout(), nonce).map_err(|error| io_failure(Side::Link, "announce the agent", &error))?;
    // SSH_CONNECTION: client address, client port, server address, server port; of the connection really used.
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let words: Vec<&str> = connection.split_ascii_whitespace().collect();
    let word = |place: usize| words.get(place).map(|word| (*word).to_string()).unwrap_or_default();
    let environment = Environment {
        place: Place::Anywhere { tilde: true },
        read_only: false,
        own_process: false,
        token: None,
        busy: false,
        data: DataPort::Own,
        local_address: word(2),
        peer_address: word(0),
    };
    // Called when all work here has ended, or when the other side has been silent for so long that nobody is there any more. A thread
    // that waits in read could not be woken then: what is unfinished is removed, and the process ends.
    let served: Arc<OnceLock<Weak<Agent>>> = Arc::default();
    let ended = Arc::clone(&served);
    let abort = move || {
        if let Some(agent) = ended.get().and_then(Weak::upgrade) {
            agent.end_work("the other side has been silent for too long");
        }
        std::process::exit(0);
    };
    let agent = Agent::new(MuxWriter::new(Box::new(io::stdout()), Box::new(abort)), environment);
    let _ = served.set(Arc::downgrade(&agent));
    let mut input = io::stdin();
    agent.greet(&mut input)?;
    agent.writer.keep_alive();
    agent.run(input);
    Ok(())
}
