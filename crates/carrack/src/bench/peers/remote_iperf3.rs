//! `iperf3 -s` at the ssh host, for the time of a measurement. It ends with the ssh session that has started it, also
//! if this process is killed: then its standard input ends, and a line of shell there ends the server.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use carrack_core::failure::Failure;
use carrack_engine::Context;

use super::far::{Observer, stopped};
use super::tool::{Far, SshEnd};

/// Its usual port, which firewalls of transfer nodes let through.
const PORT: u16 = 5201;
const STARTS: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(50);

/// The server.
pub struct RemoteIperf3 {
    child: Option<Child>,
    address: String,
}

impl RemoteIperf3 {
    /// Starts one, or finds one that runs already.
    ///
    /// # Errors
    /// That the host cannot be asked any more; inside, a sentence says why there is no server.
    pub fn start(end: &SshEnd, observer: &mut Observer, context: &Context) -> Result<Result<Self, String>, Failure> {
        // The address of this host's ssh connection there, which the network between both carries.
        let connection = observer.line("echo $SSH_CONNECTION")?;
        let Some(address) = connection.split(' ').nth(2).map(str::to_owned) else {
            return Ok(Err("its host does not tell its address".to_owned()));
        };
        if listens(observer)? {
            return Ok(Ok(Self { child: None, address }));
        }
        if observer.has(&["iperf3"])?.is_empty() {
            return Ok(Err(format!("iperf3 is not on the PATH at {}", end.login)));
        }
        let script = format!("iperf3 -s -p {PORT} >/dev/null 2>&1 & p=$!; cat >/dev/null; kill $p");
        let mut command = Command::new(&end.wrapper);
        command.args([&end.login, &format!("exec sh -c '{script}'")]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Ok(Err(format!("cannot start ssh: {error}"))),
        };
        let remote = Self { child: Some(child), address };
        let deadline = Instant::now() + STARTS;
        while !listens(observer)? {
            if Instant::now() > deadline {
                return Ok(Err("its server did not start there".to_owned()));
            }
            stopped(context)?;
            std::thread::sleep(AGAIN);
        }
        Ok(Ok(remote))
    }

    /// Where clients find it.
    pub fn far(&self) -> Far {
        Far::Port(self.address.clone(), PORT)
    }
}

/// Whether somebody listens on its port there.
fn listens(observer: &mut Observer) -> Result<bool, Failure> {
    let script = format!("cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep ':{PORT:04X} [0F]*:0000 0A'");
    Ok(!observer.ask(&script)?.is_empty())
}

impl Drop for RemoteIperf3 {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // The end of its input ends the server, and with it the session.
        drop(child.stdin.take());
        let deadline = Instant::now() + STARTS;
        while matches!(child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = child.kill();
                let _ = child.wait();
                return;
            }
            std::thread::sleep(AGAIN);
        }
    }
}
