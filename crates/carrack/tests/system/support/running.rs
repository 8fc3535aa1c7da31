//! A command that the test does something beside.

use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;

use super::{Ran, ran};

/// A started program; ended when dropped.
pub struct Running {
    child: Child,
    /// Read all the while: a full pipe must not hold the program.
    outputs: Option<[JoinHandle<Vec<u8>>; 2]>,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let outputs = [read(child.stdout.take().unwrap()), read(child.stderr.take().unwrap())];
        Self { child, outputs: Some(outputs) }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ran {
        let status = self.child.wait().unwrap();
        let [stdout, stderr] = self.outputs.take().unwrap().map(|output| output.join().unwrap());
        ran(Output { status, stdout, stderr })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// The most memory that a process has had resident, in bytes; `None` when it is gone.
pub fn peak_resident(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}
