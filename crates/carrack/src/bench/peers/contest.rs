//! Who takes part, and the runs of one kind of data.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_engine::Context;
use carrack_measure::result::{Row, value};

use super::data::{self, Content, Data};
use super::ends::{FarKind, PeerPlaces};
use super::far::stopped;
use super::over_time::OverTime;
use super::remote_iperf3::RemoteIperf3;
use super::run::{arrived, run};
use super::server::{GRIDFTP_HOST, NoServer, Server, Setup, secret};
use super::tool::{Approach, Command, Far, NO_SSH, ServerKind, Tool, ToolJob};
use super::{PeersCase, PeersRequest, SourceCache, TellRow, absent_row, row};
use crate::bench::numbers;
use crate::output::format;

/// What a program may take to tell its version.
const ANSWERS: Duration = Duration::from_secs(10);

/// One run of one program.
#[derive(Clone, Debug)]
pub struct OneRun {
    /// Bytes of all sessions.
    pub bytes: f64,
    /// From the start of the commands to the end of the last.
    pub seconds: f64,
    /// Processor seconds on this host's side.
    pub here: f64,
    /// Those of the other side; `None` where they cannot be known.
    pub there: Option<f64>,
    /// What the network carried meanwhile, where it was one.
    pub over: Option<OverTime>,
}

impl OneRun {
    /// Bytes a second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes / self.seconds } else { 0.0 }
    }
}

/// The runs of one program with one kind of data.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// Those that were right.
    pub each: Vec<OneRun>,
    /// What went wrong with the last; then there are no more.
    pub fault: Option<String>,
}

/// A program that takes part.
struct Entrant {
    tool: Tool,
    far: Far,
    /// Who knows the other side's processor time.
    clock: Clock,
    words: Vec<OsString>,
}

/// Who knows the other side's processor time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    /// Both sides are processes of the command.
    Command,
    /// The sshd that listens there.
    Sshd,
    /// A server of this process.
    Server(usize),
    /// Nobody.
    Nobody,
}

/// Why a run counts for nothing.
enum Wrong {
    /// The program, or its result.
    Fault(String),
    /// This command.
    Stopped(Failure),
}

impl From<Failure> for Wrong {
    fn from(why: Failure) -> Self {
        Self::Stopped(why)
    }
}

/// Everything that a measurement needs.
pub struct Contest<'a> {
    request: &'a PeersRequest,
    context: &'a Context,
    expected: BTreeMap<String, Content>,
    entrants: Vec<Entrant>,
    absent: Vec<(Tool, String)>,
    secret: String,
    servers: Vec<Server>,
    remote: Option<RemoteIperf3>,
    // Dropped last: servers offer what lies in it.
    ends: PeerPlaces,
}

impl<'a> Contest<'a> {
    /// Makes the data, and finds out who takes part.
    ///
    /// # Errors
    /// Why nothing can be measured.
    pub fn open(request: &'a PeersRequest, context: &'a Context, tell: &mut dyn TellRow) -> Result<Self, Failure> {
        let ends = PeerPlaces::open(request, context, tell)?;
        let failed = |error| carrack_engine::io_failure(Side::Command, "make a password", &error);
        let mut contest = Self {
            request,
            context,
            ends,
            expected: BTreeMap::new(),
            entrants: Vec::new(),
            absent: Vec::new(),
            secret: secret().map_err(failed)?,
            servers: Vec::new(),
            remote: None,
        };
        let options = carrack_core::request::CopyOptions {
            source: request.end.clone(),
            destination: request.end.clone(),
            ..carrack_core::request::CopyOptions::default()
        };
        for data in &request.data {
            let content = contest.ends.make((*data, request.tree.as_deref()), &options, context)?;
            contest.expected.insert(data.name(), content);
        }
        let chosen = if request.tools.is_empty() { Tool::ALL } else { &request.tools };
        for tool in chosen {
            match contest.enter(*tool) {
                Ok(entrant) => contest.entrants.push(entrant),
                Err(Wrong::Fault(why)) => contest.absent.push((*tool, why)),
                Err(Wrong::Stopped(why)) => return Err(why),
            }
        }
        if contest.entrants.is_empty() {
            let why = contest.absent.iter().map(|(tool, why)| format!("{}: {why}", tool.name()));
            let why = format!("no program can take part: {}", why.collect::<Vec<_>>().join("; "));
            return Err(Failure::new(ErrorCode::Usage, Side::Command, why));
        }
        Ok(contest)
    }

    fn enter(&mut self, tool: Tool) -> Result<Entrant, Wrong> {
        let absent = |why: &str| Err(Wrong::Fault(why.to_owned()));
        if let Some(program) = tool.program().filter(|program| !is_on_path(program)) {
            return Err(Wrong::Fault(format!("{program} is not on the PATH here")));
        }
        match (tool.way(), &mut self.ends.far) {
            (Approach::Ssh, FarKind::Ssh(end, observer)) => {
                if let Some(program) = tool.program_there()
                    && observer.has(&[program])?.is_empty()
                {
                    return Err(Wrong::Fault(format!("{program} is not on the PATH at {}", end.login)));
                }
                let far = Far::Ssh(end.clone(), self.ends.far_data.clone());
                if let Some(why) = self.lacks(tool)? {
                    return Err(Wrong::Fault(why));
                }
                Ok(Entrant { tool, far, clock: Clock::Sshd, words: Vec::new() })
            }
            (Approach::Ssh, FarKind::Here) if tool == Tool::Carrack => {
                let far = Far::Here(self.ends.far_data.clone().into());
                Ok(Entrant { tool, far, clock: Clock::Command, words: Vec::new() })
            }
            (Approach::Ssh, FarKind::Node) if tool == Tool::Carrack => {
                let named = if self.ends.push { &self.request.b } else { &self.request.a };
                let far = below_url(&named.to_string(), &self.ends.far_name);
                Ok(Entrant { tool, far, clock: Clock::Nobody, words: self.request.token_words.clone() })
            }
            (_, FarKind::Node) if tool == Tool::CarrackNode => absent("it is the same as carrack: A or B is a node"),
            (Approach::Ssh, FarKind::Node) => absent("A or B is a node: for this program name an ssh host, HOST:DIR"),
            (Approach::Ssh, FarKind::Here) => absent(NO_SSH),
            (Approach::Here, _) if self.ends.is_here => {
                let far = Far::Here(self.ends.far_data.clone().into());
                Ok(Entrant { tool, far, clock: Clock::Command, words: Vec::new() })
            }
            (Approach::Here, _) => absent("it copies within a host, and A and B are on two"),
            (Approach::Server(ServerKind::Http), _) if self.ends.push => {
                absent("it only fetches: name the other host's directory first")
            }
            (Approach::Server(kind), _) => self.enter_by_server(tool, kind),
        }
    }

    /// What a program lacks that is there: an option that its earlier versions do not have.
    fn lacks(&self, tool: Tool) -> Result<Option<String>, Failure> {
        let Some((words, why)) = tool.proof() else { return Ok(None) };
        let command = Command { words: words.iter().map(OsString::from).collect(), input: None };
        let ended = run(&[command], &[], &self.ends.private, (ANSWERS, self.within_host()), self.context)?;
        Ok(ended.fault.map(|said| format!("{why} ({said})")))
    }

    fn enter_by_server(&mut self, tool: Tool, kind: ServerKind) -> Result<Entrant, Wrong> {
        let named = match kind {
            ServerKind::Node => &self.request.node,
            ServerKind::Rsync => &self.request.rsyncd,
            ServerKind::Gridftp => &self.request.gridftp,
            ServerKind::Xrootd => &self.request.xrootd,
            ServerKind::Http => &self.request.http,
            ServerKind::Iperf3 => &None,
        };
        if let Some(url) = named {
            let far = below_url(url, &self.ends.far_name);
            let words = if tool.is_carrack() { self.request.token_words.clone() } else { Vec::new() };
            return Ok(Entrant { tool, far, clock: Clock::Nobody, words });
        }
        if !self.ends.is_here {
            return match (kind, &mut self.ends.far) {
                (ServerKind::Iperf3, FarKind::Ssh(end, observer)) => {
                    let remote = RemoteIperf3::start(end, observer, self.context)?.map_err(Wrong::Fault)?;
                    let far = remote.far();
                    self.remote = Some(remote);
                    Ok(Entrant { tool, far, clock: Clock::Nobody, words: Vec::new() })
                }
                _ => Err(Wrong::Fault(no_server(kind))),
            };
        }
        if let Some(program) = kind.program().filter(|program| !is_on_path(program)) {
            return Err(Wrong::Fault(format!("{program} is not on the PATH here")));
        }
        let data = Path::new(&self.ends.far_data);
        let setup = Setup {
            data,
            private: &self.ends.private,
            carrack: &self.request.carrack,
            secret: &self.secret,
            context: self.context,
        };
        let server = setup.start(kind).map_err(|why| match why {
            NoServer::Absent(why) => Wrong::Fault(why),
            NoServer::Stopped(why) => Wrong::Stopped(why),
        })?;
        let words = match kind {
            ServerKind::Node => vec!["--token-file".into(), setup.token_file().into()],
            _ => Vec::new(),
        };
        let far = server.far.clone();
        self.servers.push(server);
        Ok(Entrant { tool, far, clock: Clock::Server(self.servers.len() - 1), words })
    }

    /// The versions of the programs, as facts.
    pub fn versions(&self) -> Vec<(String, String)> {
        let asked = self.entrants.iter().filter_map(|entrant| Some((entrant.tool, entrant.tool.version_words()?)));
        let version = |(tool, words): (Tool, [&str; 2])| {
            let command = Command { words: words.map(OsString::from).into(), input: None };
            let ended = run(&[command], &[], &self.ends.private, (ANSWERS, self.within_host()), self.context).ok()?;
            let line = ended.said.lines().find(|line| !line.trim().is_empty())?.trim().to_owned();
            Some((format!("version.{}", tool.name()), line))
        };
        asked.filter_map(version).collect()
    }

    /// The rows of programs that did not take part at all.
    pub fn absent(&self) -> Vec<Row> {
        self.absent.iter().map(|(tool, why)| absent_row(*tool, why)).collect()
    }

    /// All runs with one kind of data and so many sessions: a row for each program, the fastest first, and what ended
    /// it early.
    pub fn case(&mut self, case: PeersCase, tell: &mut dyn TellRow) -> (Vec<Row>, Option<Failure>) {
        let PeersCase { data, sessions, cache } = case;
        let takes: Vec<usize> =
            (0..self.entrants.len()).filter(|at| self.entrants[*at].tool.takes(data, sessions)).collect();
        tell.note(&format!(
            "{}: {}, {} of each",
            described(data, sessions, cache),
            format::counted(takes.len() as u64, "program", "programs"),
            format::counted(self.request.runs as u64, "run", "runs"),
        ));
        let mut runs: BTreeMap<usize, Runs> = takes.iter().map(|at| (*at, Runs::default())).collect();
        let mut ended = None;
        'all: for number in 0..self.request.runs {
            for turn in 0..takes.len() {
                // Who comes first takes turns, too: a host that slows down hits all alike.
                let at = takes[(turn + number) % takes.len()];
                if runs.get(&at).is_none_or(|runs| runs.fault.is_some()) {
                    continue;
                }
                let result = self.one(at, case);
                let Some(of) = runs.get_mut(&at) else { continue };
                match result {
                    Ok(run) => of.each.push(run),
                    Err(Wrong::Fault(why)) => of.fault = Some(why),
                    Err(Wrong::Stopped(why)) => {
                        ended = Some(why);
                        break 'all;
                    }
                }
            }
        }
        let done = runs.iter().filter(|(_, runs)| !runs.each.is_empty() || runs.fault.is_some());
        let mut rows: Vec<Row> = done
            .map(|(at, runs)| {
                let tool = self.entrants[*at].tool;
                row(tool, self.request.carrack_does.words(tool), case, runs)
            })
            .collect();
        let rate = |row: &Row| row.value(value::BYTES_PER_SECOND).unwrap_or(-1.0);
        rows.sort_by(|one, other| rate(other).total_cmp(&rate(one)));
        (rows, ended)
    }

    /// One run, with its result compared.
    fn one(&mut self, at: usize, PeersCase { data, sessions, cache }: PeersCase) -> Result<OneRun, Wrong> {
        stopped(self.context)?;
        for session in 0..sessions {
            self.ends.empty_target(session)?;
        }
        // What the run before has left.
        self.ends.sync();
        if cache == SourceCache::Cold {
            self.ends.drop_from_memory(data).map_err(|why| match why.code {
                ErrorCode::Interrupted | ErrorCode::Terminated => Wrong::Stopped(why),
                _ => Wrong::Fault(why.message()),
            })?;
        }
        let entrant = &self.entrants[at];
        let commands = (0..sessions).map(|session| self.command(entrant, data, session));
        let commands = commands.collect::<Result<Vec<Command>, String>>().map_err(Wrong::Fault)?;
        let (tool, clock) = (entrant.tool, entrant.clock);
        let environment = match tool {
            Tool::RsyncDaemon if matches!(clock, Clock::Server(_)) => {
                vec![(OsString::from("RSYNC_PASSWORD"), OsString::from(&self.secret))]
            }
            Tool::Gridftp if matches!(clock, Clock::Server(_)) => {
                vec![(OsString::from(GRIDFTP_HOST.0), OsString::from(GRIDFTP_HOST.1))]
            }
            _ => Vec::new(),
        };
        let before = self.cpu_there(clock);
        let mut ended =
            run(&commands, &environment, &self.ends.private, (self.request.timeout, self.within_host()), self.context)?;
        if self.request.sync && ended.fault.is_none() {
            let began = Instant::now();
            if !self.ends.sync() {
                return Err(Wrong::Fault("the destination's file system could not be synced in time".to_owned()));
            }
            ended.seconds += began.elapsed().as_secs_f64();
        }
        let after = self.cpu_there_after(clock);
        if let Some(why) = ended.fault {
            return Err(Wrong::Fault(why));
        }
        let mut bytes = data.bytes() as f64 * sessions as f64;
        if tool == Tool::Iperf3 {
            (bytes, ended.seconds) =
                arrived(&ended.said).ok_or_else(|| Wrong::Fault("it did not say what arrived".to_owned()))?;
        } else {
            self.compare(data, sessions)?;
        }
        let there = after.zip(before).map(|(after, before)| (after - before).max(0.0));
        // Within a host no network carries it.
        let over = (tool.way() != Approach::Here && clock != Clock::Command).then_some(ended.over);
        Ok(OneRun { bytes, seconds: ended.seconds, here: ended.cpu_seconds, there, over })
    }

    /// Whether the loopback may carry the data: a node's address may be one of this host, too.
    fn within_host(&self) -> bool {
        self.ends.is_here || matches!(self.ends.far, FarKind::Node)
    }

    fn command(&self, entrant: &Entrant, data: Data, session: usize) -> Result<Command, String> {
        let words: Vec<OsString> = self.request.carrack_words.iter().chain(&entrant.words).cloned().collect();
        let job = ToolJob {
            data,
            push: self.ends.push,
            near: &self.ends.near_data,
            far: &entrant.far,
            target: PeerPlaces::target(session),
            streams: self.request.streams,
            carrack: &self.request.carrack,
            carrack_words: &words,
        };
        job.command(entrant.tool)
    }

    fn compare(&mut self, data: Data, sessions: usize) -> Result<(), Wrong> {
        for session in 0..sessions {
            let found = self.ends.arrived(session)?;
            let Some(expected) = self.expected.get(&data.name()) else { continue };
            // A file's own name is that of the source at both ends.
            if let Some(why) = data::difference(expected, &found) {
                return Err(Wrong::Fault(why));
            }
        }
        Ok(())
    }

    fn cpu_there(&mut self, clock: Clock) -> Option<f64> {
        match (clock, &mut self.ends.far) {
            (Clock::Command, _) => Some(0.0),
            (Clock::Sshd, FarKind::Ssh(_, observer)) => observer.cpu_seconds(),
            (Clock::Server(at), _) => self.servers.get(at)?.cpu_seconds(),
            _ => None,
        }
    }

    /// The same, once the sessions of a run have left.
    fn cpu_there_after(&mut self, clock: Clock) -> Option<f64> {
        match (clock, &mut self.ends.far) {
            (Clock::Sshd, FarKind::Ssh(_, observer)) => observer.cpu_seconds_after(),
            _ => self.cpu_there(clock),
        }
    }
}

/// A kind of data as a sentence begins with it.
pub fn described(data: Data, sessions: usize, cache: SourceCache) -> String {
    let what = match data {
        Data::File(size) => format!("one file of {}", numbers::record(size)),
        Data::Tree { files, size } => {
            format!("{} of {}", format::counted(files, "file", "files"), numbers::record(size))
        }
        Data::Own { files, bytes } => {
            format!("a tree of {}, {}", format::counted(files, "file", "files"), numbers::amount(bytes as f64))
        }
    };
    let at_once = if sessions == 1 { String::new() } else { format!(", {sessions} sessions at once") };
    let cold = if cache == SourceCache::Cold { ", not in memory" } else { "" };
    format!("{what}{at_once}{cold}")
}

fn no_server(kind: ServerKind) -> String {
    match kind.flag() {
        Some(flag) => format!("no server is known there: {flag} URL names one"),
        None => "its server can be started here and by ssh alone".to_owned(),
    }
}

/// A directory below one that was named by an address; a fragment stays at the end.
fn below_url(url: &str, name: &str) -> Far {
    let (before, fragment) = url.split_once('#').map_or((url, String::new()), |(a, b)| (a, format!("#{b}")));
    Far::Url(format!("{}/{name}", before.trim_end_matches('/')), fragment)
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| is_program(&directory.join(program)))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_below_an_address_keep_its_fragment() {
        let text = |far: Far| match far {
            Far::Url(before, behind) => format!("{before}|{behind}"),
            _ => String::new(),
        };
        assert_eq!(text(below_url("carrack://h:1/d/#sha256:ab", "x/data")), "carrack://h:1/d/x/data|#sha256:ab");
        assert_eq!(text(below_url("gsiftp://h/d", "x/data")), "gsiftp://h/d/x/data|");
    }

    #[test]
    fn kinds_of_data_are_described() {
        assert_eq!(described(Data::File(1 << 20), 1, SourceCache::Cold), "one file of 1M, not in memory");
        let tree = Data::Tree { files: 1000, size: 16 << 10 };
        assert_eq!(described(tree, 2, SourceCache::Warm), "1,000 files of 16K, 2 sessions at once");
    }

    #[test]
    fn programs_are_found_on_the_path() {
        assert!(is_on_path("sh") && !is_on_path("no-such-program-of-carrack") && !is_on_path(".."));
    }
}
