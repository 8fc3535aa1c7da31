//! One host: ssh is started, hears the command, and is listened to until it ends or its time is over.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use carrack_core::limits;
use carrack_core::location::SshHost;
use carrack_core::path::display_bytes;
use carrack_engine::{Stop, threads};
use data_encoding::HEXLOWER;

use super::shell::{BEGIN_LINE, line, ssh};
use super::{FanEnded, FanListener, FanRequest, HostEnd, Said};

/// How often it is looked whether the time is over.
const GLANCE: Duration = Duration::from_millis(50);
/// How long the far side has to end a command that it was told to end; then ssh itself is ended.
const LETS_GO: Duration = Duration::from_secs(4);
/// How long the pipes of an ssh that has ended may stay open: one that is shared (ControlPersist) holds them for hours.
const LINGERS: Duration = Duration::from_secs(1);
/// Pieces of output that wait to be listened to.
const PIECES: usize = 16;
const PIECE_BYTES: usize = 32 << 10;
/// Of ssh's own messages, so much is kept for an error.
const LAST_WORDS_BYTES: usize = 300;

/// Runs the command of a request at one host.
pub fn run_at(request: &FanRequest, host: &SshHost, stop: &Stop, listen: &dyn FanListener) -> HostEnd {
    let began = Instant::now();
    let ended = if stop.requested().is_some() {
        FanEnded::NotStarted
    } else {
        match Session::start(request, host) {
            Ok(session) => session.listen(request, host, stop, listen),
            Err(why) => FanEnded::Unreachable(why),
        }
    };
    HostEnd { host: host.clone(), ended, elapsed: began.elapsed() }
}

struct Session {
    child: Child,
    /// Open as long as the command may run.
    input: Option<ChildStdin>,
    pieces: Receiver<(Said, Vec<u8>)>,
    /// What the far shell says before the command runs.
    begin: String,
    /// What came on standard output before that.
    noise: Vec<u8>,
    has_begun: bool,
    /// The end of what came on standard error.
    last_words: Vec<u8>,
    began: Instant,
}

impl Session {
    fn start(request: &FanRequest, host: &SshHost) -> Result<Self, String> {
        let mut nonce = [0; 16];
        carrack_sys::host::random_bytes(&mut nonce).map_err(|error| error.to_string())?;
        let nonce = HEXLOWER.encode(&nonce);
        let line = line(&nonce, request.command.len());
        let mut command = ssh(&request.rsh, host, &line).ok_or("the command that reaches other hosts is empty")?;
        // A group of its own: Ctrl-C at a terminal is for this program, which ends all in good order.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            let words = request.rsh.join(" ");
            let why = error.to_string();
            let why = why.split(" (os error").next().unwrap_or_default();
            format!("{} cannot be started: {why}", display_bytes(words.as_bytes()))
        })?;
        let (teller, pieces) = sync_channel(PIECES);
        let pipes = [
            (Said::Out, child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
            (Said::Err, child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
        ];
        for (said, from) in pipes {
            let teller = teller.clone();
            threads::start("what a host says", move || from.into_iter().for_each(|from| pass_on(said, from, &teller)))
                .map_err(|error| {
                    let _ = child.kill();
                    let _ = child.wait();
                    error.to_string()
                })?;
        }
        let mut input = child.stdin.take();
        // A pipe has room for it. Who takes none of it has something else to say.
        let _ = input.as_mut().map(|input| input.write_all(&request.command));
        let begin = format!("{BEGIN_LINE} {nonce}\n");
        let began = Instant::now();
        let (noise, last_words) = (Vec::new(), Vec::new());
        Ok(Self { child, input, pieces, begin, noise, has_begun: false, last_words, began })
    }

    fn listen(mut self, request: &FanRequest, host: &SshHost, stop: &Stop, listen: &dyn FanListener) -> FanEnded {
        let mut gone = None;
        loop {
            match self.pieces.recv_timeout(GLANCE) {
                Ok((said, bytes)) => self.pass_on(host, said, &bytes, listen),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stop.requested().is_some() {
                return self.end(host, listen, FanEnded::Stopped);
            }
            if self.is_late(request) {
                let late = if self.has_begun { FanEnded::TimedOut } else { self.unreachable("no answer in time") };
                return self.end(host, listen, late);
            }
            if self.noise.len() > limits::SHELL_NOISE_BYTES {
                let noisy = self.unreachable("its login shell prints without end");
                return self.end(host, listen, noisy);
            }
            // Its pipes may be somebody else's by now.
            if gone.is_none() && !matches!(self.child.try_wait(), Ok(None)) {
                gone = Some(Instant::now());
            }
            if gone.is_some_and(|gone| gone.elapsed() >= LINGERS) {
                break;
            }
        }
        self.verdict()
    }

    fn is_late(&self, request: &FanRequest) -> bool {
        let elapsed = self.began.elapsed();
        let connects = !self.has_begun && elapsed >= request.connect_timeout;
        connects || request.timeout.is_some_and(|timeout| elapsed >= timeout)
    }

    fn pass_on(&mut self, host: &SshHost, said: Said, bytes: &[u8], listen: &dyn FanListener) {
        if said == Said::Err {
            self.last_words.extend_from_slice(bytes);
            let cut = self.last_words.len().saturating_sub(LAST_WORDS_BYTES);
            self.last_words.drain(..cut);
            listen.said(host, said, bytes);
        } else if self.has_begun {
            listen.said(host, said, bytes);
        } else {
            self.noise.extend_from_slice(bytes);
            let begin = self.begin.as_bytes();
            if let Some(at) = self.noise.windows(begin.len()).position(|window| window == begin) {
                self.has_begun = true;
                let rest = self.noise.split_off(at + begin.len());
                if !rest.is_empty() {
                    listen.said(host, said, &rest);
                }
            }
        }
    }

    /// How it ended by itself.
    fn verdict(mut self) -> FanEnded {
        let code = self.child.wait().ok().and_then(|status| {
            use std::os::unix::process::ExitStatusExt;
            status.code().or(status.signal().map(|signal| 128 + signal))
        });
        match code {
            _ if !self.has_begun => self.unreachable("the far shell did not run it"),
            // ssh's own code for its own failures; a command may end with it, too, and then says why by itself.
            Some(255) => FanEnded::Lost(self.words()),
            Some(code) => FanEnded::Code(code),
            None => FanEnded::Lost("ssh cannot be waited for".to_owned()),
        }
    }

    fn words(&self) -> String {
        let text = String::from_utf8_lossy(&self.last_words).into_owned();
        let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        display_bytes(last.trim().as_bytes()).to_string()
    }

    fn unreachable(&self, otherwise: &str) -> FanEnded {
        let words = self.words();
        FanEnded::Unreachable(if words.is_empty() { otherwise.to_owned() } else { words })
    }

    /// Has the far side end the command, and tells `ended`.
    fn end(mut self, host: &SshHost, listen: &dyn FanListener, ended: FanEnded) -> FanEnded {
        self.input = None;
        // Where nothing has begun there is nothing to end but ssh itself.
        let end = Instant::now() + if self.has_begun { LETS_GO } else { Duration::ZERO };
        while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            // What it still says is its own affair, and must not hold it up.
            if let Ok((said, bytes)) = self.pieces.recv_timeout(GLANCE) {
                self.pass_on(host, said, &bytes, listen);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        ended
    }
}

fn pass_on(said: Said, mut from: impl Read, teller: &SyncSender<(Said, Vec<u8>)>) {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return,
            Ok(count) if teller.send((said, piece[..count].to_vec())).is_ok() => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::fan::run;

    #[derive(Default)]
    struct Heard(Mutex<Vec<(String, Said, Vec<u8>)>>);

    impl FanListener for Heard {
        fn said(&self, host: &SshHost, said: Said, bytes: &[u8]) {
            self.0.lock().expect("whole").push((host.to_string(), said, bytes.to_vec()));
        }

        fn ended(&self, _: &HostEnd) {}
    }

    impl Heard {
        fn of(&self, host: &str, wanted: Said) -> String {
            let heard = self.0.lock().expect("whole");
            let own = heard.iter().filter(|(from, said, _)| from == host && *said == wanted);
            String::from_utf8(own.flat_map(|(.., bytes)| bytes.clone()).collect()).expect("UTF-8")
        }
    }

    /// A program that stands for ssh: `$1` is the host, `$2` the line.
    fn ends(rsh: &str, hosts: &[&str], command: &str, heard: &Heard) -> Vec<FanEnded> {
        let hosts = hosts.iter().map(|host| SshHost { user: None, host: (*host).to_owned() }).collect();
        let request = FanRequest {
            hosts,
            command: command.as_bytes().to_vec(),
            rsh: ["sh", "-c", rsh, "ssh"].map(str::to_owned).to_vec(),
            at_once: 2,
            timeout: Some(Duration::from_secs(20)),
            connect_timeout: Duration::from_secs(20),
        };
        run(&request, &Stop::new(), heard).into_iter().map(|end| end.ended).collect()
    }

    /// As an ssh that hangs in its login, or before it.
    #[test]
    fn host_that_never_answers_ends_with_its_time() {
        let request = FanRequest {
            hosts: vec![SshHost { user: None, host: "a".to_owned() }],
            command: b"true".to_vec(),
            rsh: ["sh", "-c", "exec sleep 600", "ssh"].map(str::to_owned).to_vec(),
            at_once: 1,
            timeout: Some(Duration::from_millis(300)),
            connect_timeout: Duration::from_secs(20),
        };
        let ended = run(&request, &Stop::new(), &Heard::default());
        assert_eq!(ended[0].ended, FanEnded::Unreachable("no answer in time".to_owned()));
        assert!(ended[0].elapsed < LETS_GO, "{:?}", ended[0].elapsed);
    }

    #[test]
    fn noise_before_the_command_is_passed_over_and_codes_are_told_apart() {
        let heard = Heard::default();
        let rsh =
            "echo motd of $1; case $1 in c) echo no route >&2; exit 255;; d) exit 1;; *) exec sh -c \"$2\";; esac";
        let all = ends(rsh, &["a", "b", "c", "d"], "echo out; echo err >&2; exit 3", &heard);
        let expected = [
            FanEnded::Code(3),
            FanEnded::Code(3),
            FanEnded::Unreachable("no route".to_owned()),
            FanEnded::Unreachable("the far shell did not run it".to_owned()),
        ];
        assert_eq!(all, expected);
        assert_eq!((heard.of("a", Said::Out).as_str(), heard.of("b", Said::Err).as_str()), ("out\n", "err\n"));
        assert_eq!(heard.of("c", Said::Out), "", "what a login shell says is not the command's");
    }

    #[test]
    fn connection_that_is_lost_is_no_exit_code_of_the_command() {
        let lost = ends("sh -c \"$2\"; echo it broke >&2; exit 255", &["a"], "true", &Heard::default());
        assert_eq!(lost, [FanEnded::Lost("it broke".to_owned())]);
    }
}
