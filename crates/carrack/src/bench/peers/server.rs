//! Servers that are started for the time of a measurement: on the loopback of this host, on a free port, for one
//! directory alone.

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use carrack_core::failure::Failure;
use carrack_engine::Context;
use carrack_sys::host;
use data_encoding::HEXLOWER;

use super::far::stopped;
use super::processor;
use super::run::write_private;
use super::tool::{Far, ServerKind};

const LOOPBACK: &str = "127.0.0.1";
/// What GridFTP's programs take for this host's address: without it they fail where nobody knows the host's name.
pub const GRIDFTP_HOST: (&str, &str) = ("GLOBUS_HOSTNAME", LOOPBACK);
/// Ports that are tried: somebody may take one between the moment it is found free and the server's start.
const PORTS: usize = 3;
/// What a server may take until it listens, and to end.
const STARTS: Duration = Duration::from_secs(10);
const ENDS: Duration = Duration::from_secs(3);
const AGAIN: Duration = Duration::from_millis(20);

/// A server of this process. It ends when this is dropped.
pub struct Server {
    child: Child,
    /// Where it offers the directory.
    pub far: Far,
}

/// Why there is no server.
pub enum NoServer {
    /// It cannot be had: a sentence.
    Absent(String),
    /// The command was stopped meanwhile.
    Stopped(Failure),
}

/// What servers are started with.
pub struct Setup<'a> {
    /// The directory that they offer.
    pub data: &'a Path,
    /// A directory for keys, passwords and configuration, that only this user may look into.
    pub private: &'a Path,
    /// This program.
    pub carrack: &'a Path,
    /// The password that clients show an rsync daemon, and the token that they show a node.
    pub secret: &'a str,
    /// When to give up.
    pub context: &'a Context,
}

/// The user that an rsync daemon knows.
const RSYNC_USER: &str = "carrack";
/// The name of the directory there.
const MODULE: &str = "data";

impl Setup<'_> {
    /// The file with the token of a node.
    pub fn token_file(&self) -> PathBuf {
        self.private.join("token")
    }

    /// Starts one.
    ///
    /// # Errors
    /// That it does not start, or that the command was stopped.
    pub fn start(&self, kind: ServerKind) -> Result<Server, NoServer> {
        let mut tried = 1;
        loop {
            let port = free_port().map_err(|error| NoServer::Absent(format!("no port is free: {error}")))?;
            match self.start_at(kind, port) {
                Err(NoServer::Absent(_)) if tried < PORTS => tried += 1,
                other => return other,
            }
        }
    }

    fn start_at(&self, kind: ServerKind, port: u16) -> Result<Server, NoServer> {
        let mut command = match kind.program() {
            Some(program) => Command::new(program),
            None => Command::new(self.carrack),
        };
        match kind {
            ServerKind::Node => self.node(&mut command, port),
            ServerKind::Rsync => self.rsync(&mut command, port),
            ServerKind::Gridftp => self.gridftp(&mut command, port),
            ServerKind::Xrootd => self.xrootd(&mut command, port),
            ServerKind::Http => {
                let words = ["-m", "http.server", "--bind", LOOPBACK, "--directory"];
                command.args(words).arg(self.data).arg(port.to_string());
                Ok(())
            }
            ServerKind::Iperf3 => {
                command.args(["-s", "-B", LOOPBACK, "-p", &port.to_string()]);
                Ok(())
            }
        }
        .map_err(NoServer::Absent)?;
        let log = self.private.join(format!("server-{port}"));
        let mut spawn = || {
            let said = File::create(&log)?;
            command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said).process_group(0).spawn()
        };
        let child = spawn().map_err(|error| NoServer::Absent(format!("its server cannot be started: {error}")))?;
        let mut server = Server { child, far: Far::Port(LOOPBACK.to_owned(), port) };
        server.await_port(port, &log, self.context)?;
        server.far = self.far(kind, port, &log).map_err(NoServer::Absent)?;
        Ok(server)
    }

    /// How clients name the directory.
    fn far(&self, kind: ServerKind, port: u16, log: &Path) -> Result<Far, String> {
        let data = self.data.display();
        let url = |text: String| Ok(Far::Url(text, String::new()));
        match kind {
            ServerKind::Node => {
                let said = std::fs::read_to_string(log).unwrap_or_default();
                let pin = said.lines().find_map(|line| line.strip_prefix("fingerprint "));
                let pin = pin.ok_or("the node did not tell its fingerprint")?;
                Ok(Far::Url(format!("carrack://{LOOPBACK}:{port}"), pin.to_owned()))
            }
            ServerKind::Rsync => url(format!("rsync://{RSYNC_USER}@{LOOPBACK}:{port}/{MODULE}")),
            ServerKind::Gridftp => url(format!("ftp://{LOOPBACK}:{port}{data}")),
            ServerKind::Xrootd => url(format!("root://{LOOPBACK}:{port}/{data}")),
            ServerKind::Http => url(format!("http://{LOOPBACK}:{port}")),
            ServerKind::Iperf3 => Ok(Far::Port(LOOPBACK.to_owned(), port)),
        }
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.private.join(name);
        // Of a server that found its port taken.
        let _ = std::fs::remove_file(&path);
        write_private(&path, text, false).map_err(|why| why.message())?;
        Ok(path)
    }

    fn node(&self, command: &mut Command, port: u16) -> Result<(), String> {
        let token = self.write("token", &format!("{}\n", self.secret))?;
        command.args(["serve", "--node-only", "--listen", &format!("{LOOPBACK}:{port}"), "--root"]).arg(self.data);
        command.arg("--token-file").arg(token).arg("--key-file").arg(self.private.join("node-key"));
        Ok(())
    }

    fn rsync(&self, command: &mut Command, port: u16) -> Result<(), String> {
        let secrets = self.write("rsyncd.secrets", &format!("{RSYNC_USER}:{}\n", self.secret))?;
        // Not as nobody, who may not write there.
        let user = if host::user_id() == 0 { "uid = 0\ngid = 0\n" } else { "" };
        let text = format!(
            "{user}use chroot = no\nreverse lookup = no\n[{MODULE}]\npath = {}\nread only = no\nauth users = \
             {RSYNC_USER}\nsecrets file = {}\n",
            self.data.display(),
            secrets.display()
        );
        let config = self.write("rsyncd.conf", &text)?;
        command.args(["--daemon", "--no-detach", &format!("--address={LOOPBACK}"), &format!("--port={port}")]);
        command.arg(format!("--config={}", config.display()));
        Ok(())
    }

    /// It asks nobody who they are: so it shows no other directory than this one, and to this host alone.
    fn gridftp(&self, command: &mut Command, port: u16) -> Result<(), String> {
        command.env(GRIDFTP_HOST.0, GRIDFTP_HOST.1);
        command.args(["-aa", "-no-detach", "-c", "/dev/null", "-p", &port.to_string()]);
        if host::user_id() == 0 {
            command.args(["-anonymous-user", "root", "-allow-root"]);
        }
        command.args(["-control-interface", LOOPBACK, "-data-interface", LOOPBACK, "-home-dir"]).arg(self.data);
        command.arg("-restrict-paths").arg(format!("RW{}", self.data.display()));
        Ok(())
    }

    fn xrootd(&self, command: &mut Command, port: u16) -> Result<(), String> {
        if host::user_id() == 0 {
            return Err("its server refuses to run as root: start one and name it by --xrootd".to_owned());
        }
        let own = self.private.join("xrootd");
        std::fs::create_dir_all(&own).map_err(|error| format!("cannot make {}: {error}", own.display()))?;
        let text = format!(
            "all.export {}\nall.adminpath {own}\nall.pidpath {own}\nxrd.port {port}\nxrd.network nodnr\n\
             xrootd.chksum crc32c\n",
            self.data.display(),
            own = own.display()
        );
        let config = self.write("xrootd.conf", &text)?;
        command.args(["-I", "v4", "-l"]).arg(own.join("log")).arg("-c").arg(config);
        Ok(())
    }
}

impl Server {
    /// Processor time that it has used, with all that it has started.
    pub fn cpu_seconds(&self) -> Option<f64> {
        processor::tree_seconds(self.child.id())
    }

    fn await_port(&mut self, port: u16, log: &Path, context: &Context) -> Result<(), NoServer> {
        let deadline = Instant::now() + STARTS;
        while !processor::listens(port) {
            let has_ended = !matches!(self.child.try_wait(), Ok(None));
            if has_ended || Instant::now() > deadline {
                let said = std::fs::read_to_string(log).unwrap_or_default();
                let line = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
                let line = carrack_core::path::display_bytes(line.trim().as_bytes()).to_string();
                return Err(NoServer::Absent(format!("its server did not start: {line}")));
            }
            stopped(context).map_err(NoServer::Stopped)?;
            std::thread::sleep(AGAIN);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        host::end_group(self.child.id(), false);
        let deadline = Instant::now() + ENDS;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                host::end_group(self.child.id(), true);
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(AGAIN);
        }
    }
}

/// A secret that nobody can guess.
///
/// # Errors
/// If the system has no random bytes.
pub fn secret() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    host::random_bytes(&mut bytes)?;
    Ok(HEXLOWER.encode(&bytes))
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((LOOPBACK, 0))?.local_addr()?.port())
}
