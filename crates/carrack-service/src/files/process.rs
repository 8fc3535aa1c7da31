//! Processes of file workers: how they are started, and what they leave behind.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A worker that was started and has got no order yet.
pub struct Started {
    /// Where frames go to it and come from it.
    pub stream: UnixStream,
    /// What it complains of, where it can.
    pub complaints: Option<UnixStream>,
    /// Its process; none: it is a thread of this one.
    pub child: Option<Child>,
}

/// Starts workers.
pub trait Start: Send + Sync + 'static {
    /// Starts one.
    ///
    /// # Errors
    /// Those of the system.
    fn start(&self) -> io::Result<Started>;
}

/// Starts workers as processes of a program.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The program.
    pub program: PathBuf,
    /// The arguments that make it a file worker.
    pub arguments: Vec<String>,
    /// Variables of its environment that a worker keeps; all others are taken away.
    pub environment: Vec<String>,
}

impl Programs {
    /// The service's own program.
    pub fn new(program: PathBuf, environment: Vec<String>) -> Self {
        Self { program, arguments: vec!["worker".into(), "--files".into()], environment }
    }
}

impl Start for Programs {
    fn start(&self) -> io::Result<Started> {
        let (stream, far) = UnixStream::pair()?;
        let (complaints, far_complaints) = UnixStream::pair()?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear().current_dir("/");
        for name in &self.environment {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        // One socket is both: its end tells the worker that the service is gone, however it went.
        command.stdin(OwnedFd::from(far)).stdout(Stdio::null()).stderr(OwnedFd::from(far_complaints));
        let child = command.spawn().map_err(|error| {
            io::Error::new(error.kind(), format!("{}: it cannot be started: {error}", self.program.display()))
        })?;
        Ok(Started { stream, complaints: Some(complaints), child: Some(child) })
    }
}
