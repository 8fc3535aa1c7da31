//! What programs say: which commands a login shell finds, and how the ssh server is set up. Each has a limit in time
//! and in bytes, reads nothing, and changes nothing.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{About, FactText, Gatherer};

/// No program may take longer.
const TIME: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(5);
/// One that was killed ends within this time, or not before what it waits for.
const LAST: Duration = Duration::from_millis(200);
/// Bytes of one program's output.
const OUTPUT_BYTES: u64 = 64 << 10;
/// What a person needs to look at a host's network and to mend it, and the program itself.
const WANTED: &[&str] = &["ip", "tc", "ss", "ethtool", "sysctl", "ping", "carrack"];
/// Where systems keep what only administrators are thought to need.
const ADMINISTRATORS: &[&str] = &["usr/sbin", "sbin", "usr/local/sbin"];
/// Shells that understand the line below.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "busybox"];
/// Before each answer: a login shell may greet.
const MARK: &str = "carrack-finds ";
/// Processes that are looked at for an ssh server.
const PROCESSES: usize = 100_000;

pub(super) fn gather(facts: &mut Gatherer, about: About<'_>) {
    commands(facts);
    ssh_server(facts);
    if let Some(peer) = about.peer {
        name_of(facts, peer);
    }
}

/// How long it takes to ask for the name of the other host, as an ssh server does for each login. That it has none is
/// an answer, too.
fn name_of(facts: &mut Gatherer, peer: std::net::IpAddr) {
    let begin = Instant::now();
    let asked = run(Command::new("getent").args(["hosts", &peer.to_canonical().to_string()]));
    let told = match asked {
        Err(error) if error.kind() == io::ErrorKind::NotFound => FactText::Absent,
        _ => FactText::Found(format!("answered-us {}\n", begin.elapsed().as_micros())),
    };
    facts.put("names/peer", told);
}

/// For each wanted command the path that a login shell finds; and where it lies if it does not.
fn commands(facts: &mut Gatherer) {
    let shell = login_shell(facts);
    let name = Path::new(&shell).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    facts.put("login-shell", FactText::Found(shell.clone()));
    if !SHELLS.contains(&name.as_str()) {
        let why = format!("{name} is not asked: it has a language of its own");
        return facts.put("login-path", FactText::Failed(why));
    }
    let line = format!(
        "for c in {}; do printf '{MARK}%s %s\\n' \"$c\" \"$(command -v \"$c\")\"; done; printf '{MARK}PATH %s\\n' \"$PATH\"",
        WANTED.join(" ")
    );
    let told = match run(Command::new(&shell).args(["-l", "-c", &line])) {
        Ok(told) => told,
        Err(error) => return facts.put("login-path", FactText::Failed(error.to_string())),
    };
    for answer in told.lines().filter_map(|line| line.strip_prefix(MARK)) {
        let (command, path) = answer.split_once(' ').unwrap_or((answer, ""));
        match (command, path.trim()) {
            ("PATH", path) => facts.put("login-path", FactText::Found(path.to_owned())),
            (command, "") => facts.put(format!("login-command/{command}"), FactText::Absent),
            (command, path) => facts.put(format!("login-command/{command}"), FactText::Found(path.to_owned())),
        }
        let mut places = ADMINISTRATORS.iter().map(|place| format!("{place}/{command}"));
        let place = places.find(|place| facts.root.join(place).is_file());
        if let Some(place) = place {
            facts.put(format!("beside-path/{command}"), FactText::Found(format!("/{place}")));
        }
    }
}

/// The shell of this user, by the list of users; where it is not there, the one that every system has.
fn login_shell(facts: &Gatherer) -> String {
    let user = crate::host::user_id().to_string();
    let users = facts.read("etc/passwd").unwrap_or_default();
    let line = users.lines().find(|line| line.split(':').nth(2) == Some(&user));
    let shell = line.and_then(|line| line.rsplit(':').next()).filter(|shell| shell.starts_with('/'));
    shell.unwrap_or("/bin/sh").to_owned()
}

/// The ssh server that serves this session, or the one of this network: its title, in which it counts the connections
/// that have not logged in, and its settings in force, as far as this user may ask.
fn ssh_server(facts: &mut Gatherer) {
    let Some((process, title)) = listener(facts) else {
        return facts.put("sshd/listener", FactText::Absent);
    };
    facts.put("sshd/listener", FactText::Found(title.clone()));
    let Ok(program) = std::fs::read_link(facts.root.join(format!("proc/{process}/exe"))) else {
        return facts.put("command/sshd -T", FactText::Denied);
    };
    // The same settings as its own: what it was started with stands in its title.
    let mut command = Command::new(listening_program(&title, &program));
    command.arg("-T");
    let words: Vec<&str> = title.split_whitespace().collect();
    for pair in words.windows(2).filter(|pair| matches!(pair[0], "-f" | "-o")) {
        command.args(pair);
    }
    let told = run(&mut command);
    facts.put("command/sshd -T", told);
}

/// The path in the title, `sshd: /usr/sbin/sshd -D [listener] …`: since OpenSSH 9.8 the process may be another program.
fn listening_program(title: &str, process: &Path) -> std::path::PathBuf {
    let words = title.strip_prefix("sshd:").unwrap_or_default();
    words.split_whitespace().find(|word| word.starts_with('/')).map_or_else(|| process.to_owned(), Into::into)
}

/// The process and the title of a listening sshd: of an ancestor, or else of one in the same network.
fn listener(facts: &Gatherer) -> Option<(u32, String)> {
    let title = |process: u32| {
        let bytes = facts.read(&format!("proc/{process}/cmdline")).ok()?;
        let title = bytes.replace('\0', " ").trim().to_owned();
        (title.starts_with("sshd:") && title.contains("[listener]")).then_some(title)
    };
    let mut process = std::process::id();
    while process > 1 {
        if let Some(title) = title(process) {
            return Some((process, title));
        }
        process = parent(facts, process)?;
    }
    let network = |process: &str| std::fs::read_link(facts.root.join(format!("proc/{process}/ns/net"))).ok();
    let own = network("self");
    let processes = std::fs::read_dir(facts.root.join("proc")).ok()?.flatten().take(PROCESSES);
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter_map(|process| Some((process, title(process)?))).find(|(process, _)| {
        // Who may not see the network of another takes it for this one.
        network(&process.to_string()).is_none_or(|network| Some(network) == own)
    })
}

fn parent(facts: &Gatherer, process: u32) -> Option<u32> {
    let stat = facts.read(&format!("proc/{process}/stat")).ok()?;
    // The name stands in brackets and may hold anything; the state follows, and then the parent.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// What a program says on its standard output.
///
/// # Errors
/// That it cannot be started, takes too long, or ends with an error: then its first line of complaint.
pub(super) fn run(command: &mut Command) -> io::Result<String> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let until = Instant::now() + TIME;
    // Each pipe is read by a thread of its own: a program that fills one waits for it.
    let [output, complaint] = [
        child.stdout.take().map(|pipe| reading(Box::new(pipe))).transpose(),
        child.stderr.take().map(|pipe| reading(Box::new(pipe))).transpose(),
    ];
    let (output, complaint) = match (output, complaint) {
        (Ok(output), Ok(complaint)) => (output, complaint),
        (Err(error), _) | (_, Err(error)) => {
            child.kill()?;
            leave(child);
            return Err(error);
        }
    };
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if Instant::now() >= until => {
                child.kill()?;
                leave(child);
                let seconds = TIME.as_secs();
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("it was stopped after {seconds} s")));
            }
            None => std::thread::sleep(LOOK),
        }
    };
    // What it has started may keep the pipes open.
    let told = |pipe: Option<std::sync::mpsc::Receiver<String>>| {
        let left = until.saturating_duration_since(Instant::now()).max(LOOK);
        pipe.and_then(|pipe| pipe.recv_timeout(left).ok()).unwrap_or_default()
    };
    if status.success() {
        return Ok(told(output));
    }
    let complaint = told(complaint);
    let first = complaint.lines().find(|line| !line.trim().is_empty()).unwrap_or("it ended with an error");
    Err(io::Error::other(first.to_owned()))
}

/// Takes note of the end of a program that was killed. One that waits in the kernel, as for a server that does not
/// answer, ends when that does: a thread stays with it.
fn leave(mut child: std::process::Child) {
    let until = Instant::now() + LAST;
    while Instant::now() < until {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(LOOK),
            Ok(Some(_)) | Err(_) => return,
        }
    }
    // Without a thread nobody takes note, and the program stays in the list of processes until this one ends.
    let _ = crate::threads::start("a program that does not end", move || child.wait());
}

fn reading(pipe: Box<dyn Read + Send>) -> io::Result<std::sync::mpsc::Receiver<String>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let read = move || {
        let (mut bytes, mut pipe) = (Vec::new(), pipe);
        // What has come is told also if the rest cannot be read.
        let _ = (&mut pipe).take(OUTPUT_BYTES).read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        // A program that has more to say must not wait for somebody to take it.
        let _ = io::copy(&mut pipe, &mut io::sink());
    };
    crate::threads::start("what a program says", read).map(|_| receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_heard_stopped_and_its_complaint_told() {
        let sh = |line: &str| run(Command::new("sh").args(["-c", line]));
        assert_eq!(sh("echo one; echo two >&2").unwrap(), "one\n");
        assert_eq!(sh("echo; echo no such thing >&2; exit 3").unwrap_err().to_string(), "no such thing");
        assert_eq!(sh("exit 1").unwrap_err().to_string(), "it ended with an error");
        assert_eq!(sh("head -c 1000000 /dev/zero | tr '\\0' x").unwrap().len() as u64, OUTPUT_BYTES);
        assert_eq!(sh("exec sleep 600").unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(run(&mut Command::new("/no/such/program")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn program_that_does_not_end_is_left() {
        // Nobody has killed it, so that it does not end, as one that waits in the kernel does not.
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let process = rustix::process::Pid::from_child(&child);
        leave(child);
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    }

    #[test]
    fn sshd_is_called_as_its_listener_was() {
        let title = "sshd: /opt/ssh/sbin/sshd -D -f /tmp/x/sshd_config [listener] 0 of 10-100 startups";
        assert_eq!(listening_program(title, Path::new("/usr/lib/other")), Path::new("/opt/ssh/sbin/sshd"));
        assert_eq!(listening_program("sshd: [listener]", Path::new("/usr/sbin/sshd")), Path::new("/usr/sbin/sshd"));
    }
}
