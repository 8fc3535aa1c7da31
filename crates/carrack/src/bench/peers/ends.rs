//! The two places: a directory here and one at the other end, a hidden directory in each, and how to reach them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::Location;
use carrack_core::path::display_bytes;
use carrack_core::request::{CopyOptions, CopyRequest, EndOptions};
use carrack_engine::{Context, io_failure};
use carrack_measure::residency;
use carrack_sys::dir::Dir;

use super::data::{self, Content, Data};
use super::far::{Observer, stopped};
use super::run::{make_private, write_private};
use super::tool::SshEnd;
use super::{PeersRequest, TellRow};
use crate::bench::moved;
use crate::far_scratch::{FarScratch, LostHosts};

/// Where the data lies below each hidden directory; beside it are keys and configuration.
const DATA: &str = "data";
const PRIVATE: &str = "private";
/// What a host may take to write out all that it has in memory.
const SYNCS: Duration = Duration::from_secs(1800);
/// A file of which more than this share is still in memory was not dropped.
const STAYS: f64 = 0.1;
/// The numbers of the hidden directories of one process.
const NUMBERS: [usize; 2] = [8, 9];

/// What the other end is.
pub enum FarKind {
    /// A directory of this host.
    Here,
    /// A directory at an ssh host.
    Ssh(SshEnd, Box<Observer>),
    /// A directory of a node.
    Node,
}

/// Both places. Dropped, it removes everything that it has made.
pub struct PeerPlaces {
    /// From here to the other end.
    pub push: bool,
    /// The data directory here.
    pub near_data: PathBuf,
    /// Here, for keys and what programs say.
    pub private: PathBuf,
    /// The data directory at the other end: a path there.
    pub far_data: String,
    /// The hidden directory that it is in, below the directory that was named.
    pub far_name: String,
    /// What it is.
    pub far: FarKind,
    /// Servers that are started here can offer that directory.
    pub is_here: bool,
    far_scratch: FarScratch,
    // Removed last: what is above refers to what lies in it.
    near_scratch: FarScratch,
}

impl PeerPlaces {
    /// Makes the hidden directories, if there is room for the data here.
    ///
    /// # Errors
    /// Why a place cannot be used.
    pub fn open(request: &PeersRequest, context: &Context, tell: &mut dyn TellRow) -> Result<Self, Failure> {
        let (push, near, far) = match (&request.a, &request.b) {
            (Location::Local(near), far) => (true, near, far),
            (far, Location::Local(near)) => (false, near, far),
            _ => return Err(usage("neither A nor B is a directory of this host".to_owned())),
        };
        let near = Path::new(OsStr::from_bytes(near)).canonicalize();
        let near = near.map_err(|error| io_failure(Side::Command, format!("open {}", request.a), &error))?;
        check_plain(near.as_os_str().as_bytes())?;
        check_room(request, push, &near)?;
        let (lost, mut note) = (LostHosts::default(), |text: &str| tell.note(text));
        let end = EndOptions { credential: carrack_core::credential::Credential::default(), ..request.end.clone() };
        let near_location = Location::Local(near.as_os_str().as_bytes().to_vec());
        let near_scratch = FarScratch::create(&near_location, "ladder", NUMBERS[0], &end, context, &lost, &mut note)?;
        let own = near.join(near_scratch.name());
        make_private(&own.join(PRIVATE))?;
        let private = own.join(PRIVATE);
        let (kind, far_location) = far_of(far, &private, request, context)?;
        let mut far_scratch =
            FarScratch::create(&far_location, "ladder", NUMBERS[1], &request.end, context, &lost, &mut note)?;
        far_scratch.make_empty(DATA)?;
        let far_name = format!("{}/{DATA}", far_scratch.name());
        let far_path = far_scratch.file(DATA);
        let far_data = String::from_utf8_lossy(far_path.path().unwrap_or_default()).into_owned();
        let mut ends = Self {
            push,
            near_data: own.join(DATA),
            private,
            far_data,
            far_name,
            far: kind,
            is_here: false,
            far_scratch,
            near_scratch,
        };
        ends.near_scratch.make_empty(DATA)?;
        let far_path = PathBuf::from(&ends.far_data);
        ends.is_here = match &mut ends.far {
            FarKind::Here => true,
            FarKind::Ssh(_, observer) => observer.is_here(&far_path),
            FarKind::Node => false,
        };
        Ok(ends)
    }

    /// Makes data at the source, and answers with what a copy of it must be.
    ///
    /// # Errors
    /// Those of either place.
    pub fn make(
        &mut self,
        (data, tree): (Data, Option<&Path>),
        options: &CopyOptions,
        context: &Context,
    ) -> Result<Content, Failure> {
        stopped(context)?;
        data.make(&self.near_data, tree)?;
        let name = format!("{DATA}/{}", data.name());
        let made = self.near_scratch.file(&name);
        let content = data::content(self.near_scratch.files(), made.path().unwrap_or_default())?;
        if !self.push {
            let request = CopyRequest {
                sources: vec![made],
                destination: self.far_scratch.file(&name),
                options: CopyOptions { resume: false, ..options.clone() },
            };
            moved::watch(request, context, &mut |_| {})?;
            // Room for the copies that come back.
            let path = self.near_data.join(data.name());
            let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            removed.map_err(|error| io_failure(Side::Command, format!("remove {}", path.display()), &error))?;
        }
        Ok(content)
    }

    /// The name of the directory that takes the copy of a session, below the data directory of its end.
    pub fn target(session: usize) -> String {
        format!("to{session}")
    }

    fn takes(&mut self) -> &mut FarScratch {
        if self.push { &mut self.far_scratch } else { &mut self.near_scratch }
    }

    /// Makes that directory, empty.
    ///
    /// # Errors
    /// Those of the place.
    pub fn empty_target(&mut self, session: usize) -> Result<(), Failure> {
        self.takes().make_empty(&format!("{DATA}/{}", Self::target(session)))
    }

    /// What has come there.
    ///
    /// # Errors
    /// Those of the place.
    pub fn arrived(&mut self, session: usize) -> Result<Content, Failure> {
        let takes = self.takes();
        let target = takes.file(&format!("{DATA}/{}", Self::target(session)));
        data::content(takes.files(), target.path().unwrap_or_default())
    }

    /// Has the host of the source drop the data from memory, once it is written out.
    ///
    /// # Errors
    /// That it cannot be done there.
    pub fn drop_from_memory(&mut self, data: Data) -> Result<(), Failure> {
        let name = data.name();
        if self.push || self.is_here {
            let source = if self.push { self.near_data.join(&name) } else { Path::new(&self.far_data).join(&name) };
            let mut stays = 0.0_f64;
            let dropped = data::each_file(&source, &mut |file| {
                let file = std::fs::File::open(file)?;
                file.sync_data()?;
                let len = file.metadata()?.len();
                carrack_sys::file::drop_cache(&file, 0, len)?;
                stays = stays.max(residency::cached_share(&file, len).unwrap_or(0.0));
                Ok(())
            });
            dropped
                .map_err(|error| io_failure(Side::Command, format!("drop {} from memory", source.display()), &error))?;
            return if stays > STAYS {
                Err(usage(format!("--cache=cold: {} stays in memory", source.display())))
            } else {
                Ok(())
            };
        }
        let FarKind::Ssh(end, observer) = &mut self.far else {
            return Err(usage("--cache=cold: a node does not drop files from memory; name its host by ssh".to_owned()));
        };
        // A letter for each file, and how many were to be dropped.
        let path = format!("{}/{name}", self.far_data);
        let drop = "dd if=\"$f\" of=/dev/null iflag=nocache count=0 2>/dev/null && echo y";
        let script = format!(
            "sync; find '{path}' -type f | while IFS= read -r f; do {drop}; done | wc -l; find '{path}' -type f | wc -l"
        );
        let said = observer.ask_within(&script, SYNCS)?;
        let number = |at: usize| said.get(at).and_then(|line| line.trim().parse::<u64>().ok());
        match (number(0), number(1)) {
            (Some(dropped), Some(all)) if dropped == all && all > 0 => Ok(()),
            _ => Err(usage(format!("--cache=cold: {} cannot drop files from memory (dd iflag=nocache)", end.login))),
        }
    }

    /// Has the file system that takes the copies write everything out, and says whether it has; what cannot be asked is
    /// left.
    pub fn sync(&mut self) -> bool {
        let here = if self.push { PathBuf::from(&self.far_data) } else { self.near_data.clone() };
        match &mut self.far {
            FarKind::Ssh(_, observer) if self.push => {
                let script = format!("sync -f '{}' 2>/dev/null || sync", self.far_data);
                observer.ask_within(&script, SYNCS).is_ok()
            }
            FarKind::Node if self.push => true,
            _ => Dir::open_ambient(&here).and_then(|open| open.sync_filesystem()).is_ok(),
        }
    }
}

/// What the other end is, and its directory by an absolute path.
fn far_of(
    far: &Location,
    private: &Path,
    request: &PeersRequest,
    context: &Context,
) -> Result<(FarKind, Location), Failure> {
    match far {
        Location::Ssh { host, path } => {
            let login = host.user.as_ref().map_or_else(|| host.host.clone(), |user| format!("{user}@{}", host.host));
            let prefix = if host.host.contains(':') {
                login.replace(&host.host, &format!("[{}]", host.host))
            } else {
                login.clone()
            };
            let words = request.end.reach.rsh.clone();
            let wrapper = private.join("ssh");
            write_private(&wrapper, &wrapper_text(&words), true)?;
            let timeout = request.end.reach.connect_timeout;
            let mut observer = Observer::open(&wrapper, &login, timeout, context)?;
            let quoted = String::from_utf8_lossy(path).replace('\'', "'\\''");
            let script = if quoted.is_empty() { "pwd -P".to_owned() } else { format!("cd -- '{quoted}' && pwd -P") };
            let absolute = observer.line(&script)?;
            if !absolute.starts_with('/') {
                let why = format!("{far} is no directory that can be entered");
                return Err(Failure::new(ErrorCode::NotFound, Side::Command, why));
            }
            check_plain(absolute.as_bytes())?;
            let end = SshEnd { login, prefix, wrapper, words };
            Ok((FarKind::Ssh(end, Box::new(observer)), far.with_path(absolute.into_bytes())))
        }
        Location::Local(path) => {
            let absolute = Path::new(OsStr::from_bytes(path)).canonicalize();
            let absolute = absolute.map_err(|error| io_failure(Side::Command, format!("open {far}"), &error))?;
            check_plain(absolute.as_os_str().as_bytes())?;
            Ok((FarKind::Here, Location::Local(absolute.as_os_str().as_bytes().to_vec())))
        }
        Location::Node { path, .. } => {
            check_plain(path)?;
            Ok((FarKind::Node, far.clone()))
        }
        other => Err(usage(format!("{other} is no directory"))),
    }
}

/// The user's ssh command as one program. It asks for nothing, and logs in anew each time: a connection that is shared
/// would make the first program pay for all.
fn wrapper_text(words: &[String]) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect::<Vec<_>>().join(" ");
    format!("#!/bin/sh\nexec {quoted} -o BatchMode=yes -o ControlMaster=no -o ControlPath=none \"$@\"\n")
}

fn check_room(request: &PeersRequest, push: bool, near: &Path) -> Result<(), Failure> {
    let all = request.data.iter().fold(0u64, |sum, data| sum.saturating_add(data.bytes()));
    let most = request.data.iter().map(|data| data.bytes()).max().unwrap_or(0);
    let sessions = request.sessions.iter().max().copied().unwrap_or(1) as u64;
    let copies = most.saturating_mul(sessions);
    let is_far_here = matches!(request.b, Location::Local(_)) && push;
    data::check_room(near, if push && !is_far_here { all } else { all.saturating_add(copies) })
}

/// Programs read what they are given in many ways: as an address, as a pattern, as words of shell.
fn check_plain(path: &[u8]) -> Result<(), Failure> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(byte);
    if path.iter().all(is_plain) {
        return Ok(());
    }
    let path = display_bytes(path);
    Err(usage(format!("{path}: not every program takes such a path: use letters, digits and / . _ - + alone")))
}

fn usage(why: String) -> Failure {
    Failure::new(ErrorCode::Usage, Side::Command, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_some_program_would_read_otherwise_are_refused() {
        for path in ["", "/data/run-1_a.b+c"] {
            check_plain(path.as_bytes()).expect("plain");
        }
        for path in ["/a b", "/a:b", "/a'b", "/$HOME", "/a%b", "/a*", "/a,b", "/\u{e4}"] {
            assert!(check_plain(path.as_bytes()).is_err_and(|why| why.code == ErrorCode::Usage), "{path}");
        }
    }

    #[test]
    fn wrapper_keeps_the_words_of_the_ssh_command() {
        let words = ["ssh", "-o", "User=it's me"].map(str::to_owned);
        let text = wrapper_text(&words);
        assert!(text.contains(r"exec 'ssh' '-o' 'User=it'\''s me' -o BatchMode=yes"), "{text}");
    }
}
