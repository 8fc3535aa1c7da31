//! A part of the caller's own program at the far side of an ssh session. It is found there, or sent, as an agent is;
//! what the two say to each other is their own affair.

use std::io::{self, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::Arc;

use carrack_core::location::SshHost;
use carrack_core::report::{ErrorCode, Failure, ProgramSent, Side};
use carrack_core::request::Reach;

use super::ssh::{self, SshChild};
use crate::error::failure;
use crate::stop::Stop;

/// A part that has announced itself. Its standard input ends when `input` is dropped, and that is its sign to end; one
/// that does not within two seconds of `session` being dropped loses its ssh.
pub struct FarPart {
    /// What is written here is its standard input.
    pub input: ChildStdin,
    /// Its standard output, the announcement taken.
    pub output: BufReader<ChildStdout>,
    /// The ssh that keeps it.
    pub session: FarSession,
    /// What was sent, where the host had no program that knows the part.
    pub sent: Option<ProgramSent>,
}

/// The ssh of a part; ended when dropped.
pub struct FarSession(#[expect(dead_code, reason = "what matters is that it is dropped")] SshChild);

impl FarPart {
    /// Starts ssh to `host`, and there the program with the words `verb` (letters, digits and dashes), `--hello` and a
    /// nonce. Whatever knows `verb` there must also answer to `--speaks` as an agent does. `note` is given ssh's own
    /// messages.
    ///
    /// # Errors
    /// As for a copy: ssh cannot be started, ends before the part speaks, or nothing fits there and none can be put.
    pub fn start(
        verb: &str,
        host: &SshHost,
        reach: &Reach,
        stop: &Stop,
        note: &Arc<dyn Fn(String) + Send + Sync>,
    ) -> Result<Self, Failure> {
        if !verb.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'-')) {
            return Err(failure(ErrorCode::Internal, Side::Command, "a part's verb has other characters than letters"));
        }
        let session = ssh::start_as(verb, host, reach, stop, note)?;
        let (input, output) = (session.input, session.output);
        Ok(Self { input, output, session: FarSession(session.child), sent: session.sent })
    }

    /// What the part says first, at the far side, with the nonce that it was given.
    ///
    /// # Errors
    /// Those of writing.
    pub fn announce(out: &mut impl Write, nonce: &str) -> io::Result<()> {
        ssh::announce(out, nonce)
    }
}
