//! `carrack bench peers`: Carrack beside the other programs that are found, on the same data.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use carrack_core::failure::{ErrorCode, Side};
use carrack_core::location::Location;
use carrack_core::request::{Encrypt, EndOptions, MainDigest};
use carrack_engine::io_failure;
use clap::Command;

use super::far_peers;
use super::shown::{BenchOutput, with_plain_output};
use crate::bench::peers::data::Data;
use crate::bench::peers::tool::Tool;
use crate::bench::peers::{CarrackDoes, PeersRequest, SourceCache, measure};
use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::cli::option_flags::typed::{DIGEST, ENCRYPT};
use crate::cli::words::split_words;
use crate::command::context::context;
use crate::command::reach::{self, BIND, CONNECT_TIMEOUT, NO_PUSH, REMOTE_PATH, RSH, TOKEN_FILE, credential, reach};
use crate::error::CommandError;
use carrack_core::duration::parse_timeout;
use carrack_core::size::parse_size;

const A: Positional = Positional::one("a", "A");
const B: Positional = Positional::one("b", "B");
const TOOLS: Value<Tool> =
    Value::word("tool", "LIST", Tool::ALL, "Several are separated by commas [default: all that are found]");
const SIZES: Value<u64> =
    Value::new("size", "LIST", parse_file, "Bytes of the single files; 0 for none [default: 64M,256M]");
const SIZES_DEFAULT: [u64; 2] = [64 << 20, 256 << 20];
const FILES: Value<u64> = Value::new("files", "N", parse_files, "Small files of one copy; 0 for none [default: 1000]");
const FILES_DEFAULT: u64 = 1000;
const TREE: Value<Vec<u8>> = Value::path(
    "tree",
    "DIR",
    "A tree of this host to copy, in place of files that are made: its files are not changed",
);
const FILES_MAX: u64 = 1_000_000;
const FILE_SIZE: Value<u64> = Value::new("file-size", "SIZE", parse_size, "Bytes of each of them [default: 16K]");
const FILE_SIZE_DEFAULT: u64 = 16 << 10;
const SESSIONS: Value<usize> =
    Value::new("sessions", "LIST", parse_sessions, "Copies that run at once, each as a command [default: 1,2]");
const SESSIONS_DEFAULT: [usize; 2] = [1, 2];
const SESSIONS_MAX: usize = 64;
const CACHES: Value<SourceCache> = Value::word(
    "cache",
    "LIST",
    SourceCache::ALL,
    "Where the source is read from; several are separated by commas [default: warm]",
);
const RUNS: Value<usize> =
    Value::new("runs", "N", parse_runs, "Runs of each program, of which the median counts [default: 3]");
const RUNS_DEFAULT: usize = 3;
const RUNS_MAX: usize = 99;
const STREAMS: Value<u16> = Value::new(
    "streams",
    "N",
    parse_streams,
    "Connections of bbcp, globus-url-copy, xrdcp, mscp and iperf3; Carrack finds its own number [default: 4]",
);
const STREAMS_DEFAULT: u16 = 4;
const TIMEOUT: Value<Duration> = Value::new(
    "timeout",
    "TIME",
    parse_timeout,
    "Limit for each run; a program that exceeds it is left out [default: 60s]",
);
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);
const SYNC: Switch =
    Switch::new("sync", "Stop the clock only when the destination's file system is synced, for every program");
const FAR_RSH: Value<Vec<String>> = Value::new(
    "far-rsh",
    "COMMAND",
    split_words,
    "The ssh by which A reaches B, where both are other hosts [default: ssh]",
);
const NODE: Value<String> =
    Value::new("node", "URL", parse_url, "The same directory of the other host at a Carrack node: carrack://host/dir");
const RSYNCD: Value<String> = Value::new(
    "rsyncd",
    "URL",
    parse_url,
    "The same at an rsync daemon: rsync://user@host/module/dir; the password is in RSYNC_PASSWORD",
);
const GRIDFTP: Value<String> =
    Value::new("gridftp", "URL", parse_url, "The same at a GridFTP server: gsiftp://host/dir, ftp://host:port/dir");
const XROOTD: Value<String> = Value::new("xrootd", "URL", parse_url, "The same at an XRootD server: root://host//dir");

const HTTP: Value<String> =
    Value::new("http", "URL", parse_url, "The same at a server of HTTP, for wget: http://host/dir; it only fetches");

const NOTES: &str = "\
A and B are directories: one of them here, and the other here, at an ssh host (host:dir) or on a node. Or A is at
an ssh host that has Carrack, and B anywhere else: then the programs are started at A, whose own ssh reaches B
without a password.
Every program moves the same data from A to B, as a command of its own; they take turns, and the result of
every run is compared. Rates count the whole command, its login too.

If the other directory is on this very host, by ssh or without, servers for carrack-node, rsync-daemon,
globus-url-copy, xrdcp, wget and iperf3 are started here for this directory alone, on the loopback. Otherwise
--node, --rsyncd, --gridftp, --xrootd and --http name servers that run there; iperf3's is started by ssh.

With --tree the programs copy the files and directories of a tree that is there, at the host where they are
started; links are left out.

Columns: spread is the distance of the slowest run from the fastest; cpu A and cpu B are processor seconds
here and at the other host; cpu/GB those of both for 10^9 bytes; enc is the encryption. \"unknown\" is what
the other host does not tell.";

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("peers")
        .about("Measure Carrack beside scp, rsync, GridFTP and others, on the same data")
        .after_help(NOTES)
        .arg(A.arg().required(true).help("Directory that the data comes from"))
        .arg(B.arg().required(true).help("Directory that it goes to"))
        .args([
            TOOLS.arg(),
            SIZES.arg(),
            FILES.arg(),
            FILE_SIZE.arg(),
            SESSIONS.arg(),
            CACHES.arg(),
            RUNS.arg(),
            STREAMS.arg(),
        ])
        .arg(TREE.arg().conflicts_with_all([FILES.name, FILE_SIZE.name]))
        .args([TIMEOUT.arg(), SYNC.arg(), NODE.arg(), RSYNCD.arg(), GRIDFTP.arg(), XROOTD.arg(), HTTP.arg()])
        .arg(FAR_RSH.arg().help_heading("Hosts"))
        .args([ENCRYPT.arg(), DIGEST.arg()].map(|arg| arg.help_heading("Carrack")))
        .args(reach::args());
    with_plain_output(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let (a, b) = (directory(flags, &A)?, directory(flags, &B)?);
    if a.is_remote() && b.is_remote() {
        return run_there(flags, &a, &b);
    }
    if let Some(given) = flags.given(&FAR_RSH) {
        let hint = "leave it out: --rsh names the ssh of this host";
        return Err(CommandError::usage(format!("{} is of two other hosts", given.origin)).hint(hint));
    }
    let request = request(flags)?;
    let mut shown = BenchOutput::of_measuring(flags)?;
    let (measured, failure) = measure(&request, &context(), &mut shown)?;
    shown.finish_with(&measured, failure)
}

/// Neither place is of this host: the programs are started at the first.
fn run_there(flags: &Flags, a: &Location, b: &Location) -> Result<u8, CommandError> {
    let Location::Ssh { host, path } = a else {
        let hint = format!("run it on one of the two hosts: ssh HOST carrack bench peers DIR {b}");
        let why = "of two other hosts the first must be one of ssh: the programs are started there";
        return Err(CommandError::usage(why).hint(hint));
    };
    for name in [TOKEN_FILE.name, BIND.name] {
        if let Some(origin) = flags.origin(name) {
            return Err(CommandError::usage(format!(
                "{origin} is of this host, and the programs are started at {host}"
            )));
        }
    }
    let words = [vec![directory_there(path)], flags.words(&B).cloned().collect(), words_there(flags)].concat();
    let mut shown = BenchOutput::of_measuring(flags)?;
    let measured = far_peers::measure_at(host, &words, &reach(flags)?, &context(), &mut shown);
    let (mut measured, failure) = measured.map_err(|why| {
        let hint =
            format!("Carrack must be installed at {host}; name it by --remote-path if it is not on the PATH there");
        let lacks = matches!(why.code, ErrorCode::AgentMissing | ErrorCode::AgentRefused);
        let error = CommandError::from(why);
        if lacks { error.hint(hint) } else { error }
    })?;
    measured.target = format!("{a} {b}");
    shown.finish_with(&measured, failure)
}

/// A directory of the first host, as a command there names it.
fn directory_there(path: &[u8]) -> OsString {
    OsString::from_vec(match path {
        [] => b".".to_vec(),
        [b'/', ..] => path.to_vec(),
        path => [b"./", path].concat(),
    })
}

/// The flags of this verb for a command at another host that does the same between its own directory and B. It has no
/// terminal, and keeps nothing.
fn words_there(flags: &Flags) -> Vec<OsString> {
    let words = [
        words_of(flags, &TOOLS),
        words_of(flags, &SIZES),
        words_of(flags, &FILES),
        words_of(flags, &TREE),
        words_of(flags, &FILE_SIZE),
        words_of(flags, &SESSIONS),
        words_of(flags, &RUNS),
        words_of(flags, &STREAMS),
        words_of(flags, &TIMEOUT),
        words_of(flags, &NODE),
        words_of(flags, &RSYNCD),
        words_of(flags, &GRIDFTP),
        words_of(flags, &XROOTD),
        words_of(flags, &HTTP),
        words_of(flags, &CACHES),
        words_of(flags, &ENCRYPT),
        words_of(flags, &DIGEST),
        words_of(flags, &REMOTE_PATH),
        words_of(flags, &CONNECT_TIMEOUT),
    ];
    let switches = [&SYNC, &NO_PUSH].into_iter().filter(|switch| flags.has(switch));
    let switches = switches.map(|switch| OsString::from(format!("--{}", switch.name)));
    let rsh = flags.given(&FAR_RSH).map(|given| word(RSH.name, &given.value));
    words.concat().into_iter().chain(switches).chain(rsh).collect()
}

/// What a contest between a directory of this host and another place is to be.
pub fn request(flags: &Flags) -> Result<PeersRequest, CommandError> {
    let (a, b) = (directory(flags, &A)?, directory(flags, &B)?);
    let credential = credential(flags, &[a.clone(), b.clone()])?;
    let reach = reach(flags)?;
    let own = std::env::current_exe();
    let own = own.map_err(|error| io_failure(Side::Command, "find this program".to_owned(), &error))?;
    // One that was sent for this alone may have lost its name by now.
    let own = if own.exists() { own } else { PathBuf::from(format!("/proc/{}/exe", std::process::id())) };
    let (carrack_words, carrack_does) = carrack(flags)?;
    let tree = flags.get(&TREE)?.map(|path| PathBuf::from(OsStr::from_bytes(&path)));
    let data = data(flags, tree.as_deref())?;
    let caches = or_default(flags.all(&CACHES)?, &[SourceCache::Warm]);
    if caches.contains(&SourceCache::Cold) && a.node().is_some() {
        let hint = "name its host by ssh: HOST:DIR";
        return Err(CommandError::usage("--cache=cold: a node does not drop files from memory").hint(hint));
    }
    if data.is_empty() {
        return Err(CommandError::usage("--size 0 and --files 0 leave nothing to copy"));
    }
    Ok(PeersRequest {
        a,
        b,
        tools: flags.all(&TOOLS)?,
        data,
        tree,
        sessions: or_default(flags.all(&SESSIONS)?, &SESSIONS_DEFAULT),
        caches,
        runs: flags.get(&RUNS)?.unwrap_or(RUNS_DEFAULT),
        streams: flags.get(&STREAMS)?.unwrap_or(STREAMS_DEFAULT),
        timeout: flags.get(&TIMEOUT)?.unwrap_or(TIMEOUT_DEFAULT),
        sync: flags.has(&SYNC),
        node: flags.get(&NODE)?,
        rsyncd: flags.get(&RSYNCD)?,
        gridftp: flags.get(&GRIDFTP)?,
        xrootd: flags.get(&XROOTD)?,
        http: flags.get(&HTTP)?,
        end: EndOptions { credential, reach, ..EndOptions::default() },
        carrack_words,
        token_words: word_of(flags, &TOKEN_FILE),
        carrack_does,
        carrack: own,
    })
}

fn data(flags: &Flags, tree: Option<&Path>) -> Result<Vec<Data>, CommandError> {
    if let Some(tree) = tree {
        let failed = |error| io_failure(Side::Command, format!("look at {}", tree.display()), &error);
        let sizes = flags.all(&SIZES)?.into_iter().filter(|size| *size > 0).map(Data::File);
        return Ok(sizes.chain([Data::count(tree).map_err(failed)?]).collect());
    }
    let sizes = or_default(flags.all(&SIZES)?, &SIZES_DEFAULT);
    let mut data: Vec<Data> = sizes.into_iter().filter(|size| *size > 0).map(Data::File).collect();
    let files = flags.get(&FILES)?.unwrap_or(FILES_DEFAULT);
    let size = flags.get(&FILE_SIZE)?.unwrap_or(FILE_SIZE_DEFAULT);
    data.extend((files > 0).then_some(Data::Tree { files, size }));
    let mut different: Vec<Data> = Vec::new();
    for one in data {
        different.extend((!different.contains(&one)).then_some(one));
    }
    Ok(different)
}

/// The flags that the commands of Carrack get as well, and what they mean for the columns.
fn carrack(flags: &Flags) -> Result<(Vec<OsString>, CarrackDoes), CommandError> {
    let mut words = [word_of(flags, &REMOTE_PATH), word_of(flags, &CONNECT_TIMEOUT), word_of(flags, &BIND)].concat();
    words.extend(flags.has(&NO_PUSH).then(|| OsString::from(format!("--{}", NO_PUSH.name))));
    let mut does = CarrackDoes::default();
    if let Some(encrypt) = flags.get(&ENCRYPT)? {
        words.extend(word_of(flags, &ENCRYPT));
        does.encrypts = Some(if encrypt == Encrypt::None { "no" } else { "TLS" });
    }
    if let Some(digest) = flags.get(&DIGEST)? {
        words.extend(word_of(flags, &DIGEST));
        does.verifies = Some(match digest.main {
            Some(MainDigest::Blake3) => "BLAKE3",
            Some(MainDigest::Xxh128) => "xxh128",
            None => "no",
        });
        if digest.main.is_none() {
            words.push("--verify=none".into());
        }
    }
    Ok((words, does))
}

/// A flag as it was given, for another command.
fn word_of<T>(flags: &Flags, flag: &Value<T>) -> Vec<OsString> {
    flags.given(flag).iter().map(|given| word(flag.name, &given.value)).collect()
}

/// The same of a flag that may be given more than once.
fn words_of<T>(flags: &Flags, flag: &Value<T>) -> Vec<OsString> {
    flags.in_order(&[flag.name]).iter().map(|(name, given)| word(name, &given.value)).collect()
}

fn word(name: &str, value: &[u8]) -> OsString {
    let mut word = OsString::from(format!("--{name}="));
    word.push(OsStr::from_bytes(value));
    word
}

fn or_default<T: Clone>(given: Vec<T>, default: &[T]) -> Vec<T> {
    if given.is_empty() { default.to_vec() } else { given }
}

fn directory(flags: &Flags, which: &Positional) -> Result<Location, CommandError> {
    match flags.location(which)? {
        found @ (Location::Local(_) | Location::Ssh { .. } | Location::Node { .. }) => Ok(found),
        other => Err(CommandError::usage(format!("programs copy from one directory to another, and {other} is none"))),
    }
}

fn parse_file(text: &str) -> Result<u64, String> {
    parse_size(text)
}

fn parse_files(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| *count <= FILES_MAX);
    count.ok_or_else(|| format!("{text:?} is no number of files: use 0 to {FILES_MAX}"))
}

fn parse_sessions(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=SESSIONS_MAX).contains(count));
    count.ok_or_else(|| format!("{text:?} is no number of sessions: use 1 to {SESSIONS_MAX}"))
}

fn parse_runs(text: &str) -> Result<usize, String> {
    let runs = text.parse().ok().filter(|runs| (1..=RUNS_MAX).contains(runs));
    runs.ok_or_else(|| format!("{text:?} is no number of runs: use 1 to {RUNS_MAX}"))
}

fn parse_streams(text: &str) -> Result<u16, String> {
    let streams = text.parse().ok().filter(|streams| (1..=128).contains(streams));
    streams.ok_or_else(|| format!("{text:?} is no number of connections: use 1 to 128"))
}

/// Addresses are words of other programs' command lines: none may look like an option.
fn parse_url(text: &str) -> Result<String, String> {
    match text.split_once("://") {
        Some((scheme, rest))
            if !rest.is_empty()
                && scheme.bytes().all(|byte| byte.is_ascii_lowercase())
                && !scheme.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            Ok(text.to_owned())
        }
        _ => Err(format!("{text:?} is no address: use SCHEME://HOST/DIR")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_bounds() {
        assert_eq!((parse_files("0"), parse_sessions("64"), parse_streams("128")), (Ok(0), Ok(64), Ok(128)));
        assert!(["-1", "1000001", "x"].iter().all(|text| parse_files(text).is_err()));
        assert!(["0", "65", ""].iter().all(|text| parse_sessions(text).is_err()));
        assert!(["0", "100"].iter().all(|text| parse_runs(text).is_err()) && parse_runs("99").is_ok());
        assert!(["0", "129", "auto"].iter().all(|text| parse_streams(text).is_err()));
    }

    #[test]
    fn addresses_are_no_options_and_hold_nothing_that_drives_a_terminal() {
        for text in ["gsiftp://h/d", "root://h:1094//d", "carrack://h/d#sha256:ab", "rsync://u@h/m"] {
            assert_eq!(parse_url(text).as_deref(), Ok(text));
        }
        for text in ["", "h:/d", "-S://x", "://x", "ftp://", "ftp://h/a b", "ftp://h/\u{1b}[2J", "--x://y"] {
            assert!(parse_url(text).is_err(), "{text}");
        }
    }
}
