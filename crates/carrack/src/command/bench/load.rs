//! `carrack bench load`: a crowd of clients at one server.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use carrack_core::credential::Credential;
use carrack_core::location::{Location, SshHost};
use carrack_core::options::Streams;
use carrack_core::path::display_bytes;
use carrack_core::words;
use clap::Command;

use super::shown::{BenchOutput, with_plain_output};
use crate::bench::load::plan::LoadDirection;
use crate::bench::load::{LoadRequest, LoadServerKind, OtherServer, measure};
use crate::cli::flag::{Positional, Value};
use crate::cli::flags::Flags;
use crate::cli::hosts::parse_hosts;
use crate::cli::location::parse_location;
use crate::cli::option_flags::typed::STREAMS;
use crate::command::context::context;
use crate::command::copy::options::LINK;
use crate::command::reach::{self, credential, reach};
use crate::crowd::order::{CLIENTS_MAX, ClientWay, FILES_MAX};
use crate::error::CommandError;
use crate::exit;
use carrack_core::duration::parse_timeout;
use carrack_core::size::parse_size;

const NODE: Positional = Positional::one("node", "NODE");
const CLIENTS: Value<u32> = Value::new("clients", "N", parse_clients, "Clients at a time [default: 10]");
const CLIENTS_DEFAULT: u32 = 10;
const FILES: Value<u32> =
    Value::new("files", "N", parse_files, "Files of each client, one after the other [default: 10]");
const FILES_DEFAULT: u32 = 10;
const SIZE: Value<u64> = Value::new("size", "SIZE", parse_file_size, "Bytes of each file [default: 16M]");
const SIZE_DEFAULT: u64 = 16 << 20;
const DIRECTION: Value<LoadDirection> = Value::word("direction", "WAY", LoadDirection::ALL, "[default: put]");
const FROM: Value<Vec<SshHost>> = Value::new(
    "from",
    "HOSTS",
    parse_hosts,
    "Run the clients on these hosts by ssh, as c[080-101]; they go round [default: this host]",
);
const TIMEOUT: Value<Duration> =
    Value::new("timeout", "TIME", parse_timeout, "Give up TIME after the common start [default: 1h]");
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(3600);
const RETRIES: Value<u32> = Value::new(
    "retries",
    "N",
    parse_retries,
    "Attempts of each file behind the first, where the server refuses or is lost [default: as a copy; with --tool or \
     --put 0]",
);
const RETRIES_MAX: u32 = 1000;
const DIFFERENT: Value<u64> = Value::new(
    "different",
    "SIZE",
    parse_file_size,
    "Bytes of different files that each host sends in turns, and that all clients fetch in turns [default: 1G]",
);
const DIFFERENT_DEFAULT: u64 = 1 << 30;
const SCRATCH: Value<Vec<u8>> = Value::path(
    "scratch",
    "DIR",
    "Directory at the clients' hosts for what they send and fetch [default: the one for temporary files]",
);
const OBSERVE: Value<Vec<SshHost>> =
    Value::new("observe", "HOSTS", parse_hosts, "Watch processors, disks and network of these hosts by ssh");
const TOOL: Value<LoadTool> =
    Value::word("tool", "TOOL", LoadTool::ALL, "Have another program be the client; NODE is then as it takes it");
const PUT: Value<String> = Value::new(
    "put",
    "LINE",
    parse_line,
    "Shell line that sends a file: {local} is the file, {name} its name at {node}",
);
const GET: Value<String> =
    Value::new("get", "LINE", parse_line, "Shell line that fetches {name} from {node} into the file {local}");
const CHECK: Value<Location> = Value::new(
    "check",
    "DIR",
    parse_check,
    "With --tool or --put, directory where what was sent can be seen, also HOST:DIR [default: it is fetched again]",
);

words! {
    /// Programs whose lines are known.
    pub enum LoadTool {
        Rsync "rsync" "rsync://HOST/MODULE, or HOST:DIR"
        Gridftp "gridftp" "globus-url-copy to gsiftp://HOST/DIR or ftp://HOST/DIR"
        Xrootd "xrootd" "xrdcp to root://HOST//DIR"
        Curl "curl" "curl to any URL that takes uploads"
        Scp "scp" "scp to HOST:DIR"
    }
}

impl LoadTool {
    /// Its lines that send and fetch a file.
    fn lines(self) -> [&'static str; 2] {
        match self {
            Self::Rsync => ["rsync {local} {node}/{name}", "rsync {node}/{name} {local}"],
            Self::Gridftp => {
                ["globus-url-copy file://{local} {node}/{name}", "globus-url-copy {node}/{name} file://{local}"]
            }
            Self::Xrootd => ["xrdcp -f -s {local} {node}/{name}", "xrdcp -f -s {node}/{name} {local}"],
            Self::Curl => ["curl -sS -f -T {local} {node}/{name}", "curl -sS -f -o {local} {node}/{name}"],
            Self::Scp => ["scp -q -B {local} {node}/{name}", "scp -q -B {node}/{name} {local}"],
        }
    }
}

const NOTES: &str = "\
NODE is carrack://host/path. Below it a directory is made and filled by clients that begin at one moment, each
with copies of its own. When all are done, size and BLAKE3 of every file are read back and compared: each file is
whole, short, wrong or missing. Then the directory is removed.

With --from the clients run on other hosts, which ssh reaches and which get the program as for a copy. A host that
cannot take part is named, and the others run without its clients. The hosts show NODE the token that this host
would show; it reaches them through ssh.

With --tool, or with --put and --get, another program is the client of another kind of server, and its files are
looked at in the same way. Files are named load-XXXXXXXX-… there, and removed where --check can see them.

Exit code 0 if every file is whole, 23 if not.";

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("load")
        .about("Put a crowd of clients at one server and look at every file afterwards")
        .after_help(NOTES)
        .arg(NODE.arg().required(true).help("Directory of a node; with --tool or --put any server"))
        .args([CLIENTS.arg(), FILES.arg(), SIZE.arg(), DIRECTION.arg(), FROM.arg(), TIMEOUT.arg(), RETRIES.arg()])
        .args([DIFFERENT.arg(), SCRATCH.arg(), OBSERVE.arg(), STREAMS.arg(), LINK.arg()])
        .args(
            [TOOL.arg().conflicts_with_all([PUT.name, GET.name]), PUT.arg(), GET.arg(), CHECK.arg()]
                .map(|arg| arg.help_heading("Other clients")),
        )
        .args(reach::args());
    with_plain_output(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let request = request(flags)?;
    let mut shown = BenchOutput::of_measuring(flags)?;
    let (measured, is_whole) = measure(&request, &context(), &mut shown)?;
    shown.finish_coded(&measured, if is_whole { exit::DONE } else { exit::PARTIAL })
}

fn request(flags: &Flags) -> Result<LoadRequest, CommandError> {
    let direction = flags.get(&DIRECTION)?.unwrap_or(LoadDirection::Put);
    let typed = flags.words(&NODE).next().map(|word| word.as_bytes().to_vec()).unwrap_or_default();
    let mut target = display_bytes(&typed).to_string();
    let (server, credential) = match lines(flags)? {
        Some([put, get]) => {
            let node = String::from_utf8(typed).map_err(|_| CommandError::usage(format!("{target} is not UTF-8")))?;
            let node = node.trim_end_matches('/').to_owned();
            let other = OtherServer { node, put, get, check: flags.get(&CHECK)? };
            check_lines(&other, direction)?;
            (LoadServerKind::Other(other), Credential::None)
        }
        None => {
            let place = flags.location(&NODE)?;
            if place.node().is_none() {
                let error = CommandError::usage(format!("{target} is no node"));
                return Err(error.hint("use carrack://host/path, or say by --tool how the server is spoken to"));
            }
            if flags.given(&CHECK).is_some() {
                return Err(CommandError::usage("--check is for --tool and --put: a node is asked itself"));
            }
            // Without the key: whoever compares two results looks for the place.
            target = place.to_string();
            let credential = credential(flags, std::slice::from_ref(&place))?;
            (LoadServerKind::Node(place), credential)
        }
    };
    let reach = reach(flags)?;
    Ok(LoadRequest {
        target,
        server,
        clients: flags.get(&CLIENTS)?.unwrap_or(CLIENTS_DEFAULT),
        files: flags.get(&FILES)?.unwrap_or(FILES_DEFAULT),
        size: flags.get(&SIZE)?.unwrap_or(SIZE_DEFAULT),
        direction,
        different: flags.get(&DIFFERENT)?.unwrap_or(DIFFERENT_DEFAULT),
        hosts: flags.get(&FROM)?.unwrap_or_default(),
        timeout: flags.get(&TIMEOUT)?.unwrap_or(TIMEOUT_DEFAULT),
        retries: flags.get(&RETRIES)?,
        streams: flags.get(&STREAMS)?.and_then(Streams::fixed),
        link: flags.get(&LINK)?,
        reach,
        credential,
        scratch: scratch(flags.given(&SCRATCH).map(|given| given.value))?,
        observe: flags.get(&OBSERVE)?.unwrap_or_default(),
    })
}

/// The lines of another program, if one is to be the client.
fn lines(flags: &Flags) -> Result<Option<[Option<String>; 2]>, CommandError> {
    if let Some(tool) = flags.get(&TOOL)? {
        return Ok(Some(tool.lines().map(|line| Some(line.to_owned()))));
    }
    let lines = [flags.get(&PUT)?, flags.get(&GET)?];
    Ok(lines.iter().any(Option::is_some).then_some(lines))
}

/// What is sent must be seen again, and what is fetched must have been sent.
fn check_lines(other: &OtherServer, direction: LoadDirection) -> Result<(), CommandError> {
    if other.put.is_none() {
        return Err(CommandError::usage("--get needs --put, too: what is fetched is put there before"));
    }
    if other.get.is_none() && direction.has(ClientWay::Get) {
        return Err(CommandError::usage("--direction get and both need --get"));
    }
    if other.get.is_none() && other.check.is_none() {
        let error = CommandError::usage("nothing shows whether what was sent is there");
        return Err(error.hint("give --check DIR, where it can be seen, or --get, which fetches it again"));
    }
    Ok(())
}

/// An absolute path: programs get it as it is.
fn scratch(typed: Option<Vec<u8>>) -> Result<Vec<u8>, CommandError> {
    let path = match typed {
        Some(path) => std::path::absolute(Path::new(std::ffi::OsStr::from_bytes(&path)))
            .map_err(|error| CommandError::file("cannot use", &path, &error))?,
        None => std::env::temp_dir(),
    };
    Ok(path.into_os_string().into_encoded_bytes())
}

fn number(text: &str, most: u32) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!("{text:?} is not a number from 1 to {most}")),
    }
}

fn parse_clients(text: &str) -> Result<u32, String> {
    number(text, CLIENTS_MAX)
}

fn parse_files(text: &str) -> Result<u32, String> {
    number(text, FILES_MAX)
}

fn parse_retries(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if number <= RETRIES_MAX => Ok(number),
        _ => Err(format!("{text:?} is not a number from 0 to {RETRIES_MAX}")),
    }
}

fn parse_file_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err("a file of no bytes cannot come short".to_owned()),
        size if size > carrack_core::limits::FILE_BYTES => Err(format!("{text:?} is larger than any file")),
        size => Ok(size),
    }
}

fn parse_line(text: &str) -> Result<String, String> {
    match ["{local}", "{name}"].iter().find(|word| !text.contains(*word)) {
        Some(word) => Err(format!("the line lacks {word}")),
        None => Ok(text.to_owned()),
    }
}

fn parse_check(text: &str) -> Result<Location, String> {
    match parse_location(text.as_bytes())? {
        place @ (Location::Local(_) | Location::Ssh { .. }) => Ok(place),
        other => Err(format!("{other} is no directory of a host")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_bounds() {
        assert_eq!((parse_clients("1"), parse_clients("10000")), (Ok(1), Ok(10_000)));
        assert!(["0", "10001", "x", ""].iter().all(|text| parse_clients(text).is_err()));
        assert_eq!((parse_file_size("1G"), parse_files("100000")), (Ok(1 << 30), Ok(100_000)));
        assert_eq!((parse_retries("0"), parse_retries("1001").is_err()), (Ok(0), true));
        assert!(parse_file_size("0").is_err() && parse_file_size("9000P").is_err());
        assert!(parse_line("cp {local} {node}/{name}").is_ok());
        assert!(parse_line("cp {local} x").is_err() && parse_line("cp x {name}").is_err());
        assert!(parse_check("far:dir").is_ok() && parse_check("carrack://far/d").is_err());
    }

    #[test]
    fn what_is_sent_must_be_seen_again() {
        let other = |put: bool, get: bool, check: bool| OtherServer {
            node: "n".to_owned(),
            put: put.then(String::new),
            get: get.then(String::new),
            check: check.then_some(Location::Local(b"d".to_vec())),
        };
        assert!(check_lines(&other(true, false, true), LoadDirection::Put).is_ok());
        assert!(check_lines(&other(true, true, false), LoadDirection::Both).is_ok());
        assert!(check_lines(&other(true, false, false), LoadDirection::Put).is_err());
        assert!(check_lines(&other(true, false, true), LoadDirection::Get).is_err());
        assert!(check_lines(&other(false, true, true), LoadDirection::Get).is_err());
    }

    #[test]
    fn lines_of_every_tool_have_their_words() {
        for tool in LoadTool::ALL {
            assert!(tool.lines().iter().all(|line| parse_line(line).is_ok() && line.contains("{node}")), "{tool:?}");
        }
    }
}
