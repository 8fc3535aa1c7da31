//! The programs that are compared: what each needs, what it does with the bytes besides moving them, and its command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use carrack_core::words;

use super::data::Data;

words! {
    /// A program that moves the data, in one way.
    pub enum Tool {
        Carrack "carrack" "Carrack by ssh; to a node, if B or A is one"
        CarrackNode "carrack-node" "Carrack to a node"
        Scp "scp" "OpenSSH's"
        Sftp "sftp" "OpenSSH's"
        Rsync "rsync" "rsync -a by ssh"
        RsyncDaemon "rsync-daemon" "rsync -a to a daemon"
        Bbcp "bbcp" "bbcp by ssh"
        Gridftp "globus-url-copy" "GridFTP"
        Xrdcp "xrdcp" "XRootD"
        Rclone "rclone" "rclone by sftp"
        Mscp "mscp" "mscp by ssh"
        Wget "wget" "from a server of HTTP, file by file"
        Cp "cp" "cp -a, within a host"
        Iperf3 "iperf3" "what the network gives from memory to memory"
    }
}

/// How a tool reaches the other host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approach {
    /// By the user's ssh.
    Ssh,
    /// Not at all: both directories are this host's.
    Here,
    /// By a server.
    Server(ServerKind),
}

/// A server that a tool needs at the other host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// `carrack serve`.
    Node,
    /// An rsync daemon.
    Rsync,
    /// A GridFTP server.
    Gridftp,
    /// An XRootD server.
    Xrootd,
    /// A server of HTTP.
    Http,
    /// `iperf3 -s`.
    Iperf3,
}

impl ServerKind {
    /// Its program; `None` for Carrack itself.
    pub fn program(self) -> Option<&'static str> {
        match self {
            Self::Node => None,
            Self::Rsync => Some("rsync"),
            Self::Gridftp => Some("globus-gridftp-server"),
            Self::Xrootd => Some("xrootd"),
            Self::Http => Some("python3"),
            Self::Iperf3 => Some("iperf3"),
        }
    }

    /// The flag that names one that runs already.
    pub fn flag(self) -> Option<&'static str> {
        match self {
            Self::Node => Some("--node"),
            Self::Rsync => Some("--rsyncd"),
            Self::Gridftp => Some("--gridftp"),
            Self::Xrootd => Some("--xrootd"),
            Self::Http => Some("--http"),
            Self::Iperf3 => None,
        }
    }
}

impl Tool {
    /// How it reaches the other host.
    pub fn way(self) -> Approach {
        match self {
            Self::CarrackNode => Approach::Server(ServerKind::Node),
            Self::RsyncDaemon => Approach::Server(ServerKind::Rsync),
            Self::Gridftp => Approach::Server(ServerKind::Gridftp),
            Self::Xrdcp => Approach::Server(ServerKind::Xrootd),
            Self::Iperf3 => Approach::Server(ServerKind::Iperf3),
            Self::Wget => Approach::Server(ServerKind::Http),
            Self::Cp => Approach::Here,
            _ => Approach::Ssh,
        }
    }

    /// Whether it is Carrack.
    pub fn is_carrack(self) -> bool {
        matches!(self, Self::Carrack | Self::CarrackNode)
    }

    /// The program that must be on the PATH here; `None` for Carrack itself.
    pub fn program(self) -> Option<&'static str> {
        match self {
            Self::Carrack | Self::CarrackNode => None,
            Self::RsyncDaemon => Some("rsync"),
            other => Some(other.name()),
        }
    }

    /// The program that must be on the PATH at the other host, where ssh alone does not do.
    pub fn program_there(self) -> Option<&'static str> {
        matches!(self, Self::Rsync | Self::Bbcp | Self::Iperf3).then(|| self.program()).flatten()
    }

    /// Which encryption the bytes travel in.
    pub fn encrypts(self) -> &'static str {
        match self {
            Self::Carrack | Self::CarrackNode => "TLS",
            _ if self.way() == Approach::Ssh && self != Self::Bbcp => "ssh",
            _ => "no",
        }
    }

    /// What it compares the copy by, unless an option says otherwise.
    pub fn verifies(self) -> &'static str {
        match self {
            Self::Carrack | Self::CarrackNode => "BLAKE3",
            // In transit alone: nobody compares what was written.
            Self::Scp | Self::Sftp | Self::Mscp => "transit",
            Self::Rsync | Self::RsyncDaemon => "checksum",
            Self::Xrdcp => "crc32c",
            Self::Rclone => "hash",
            Self::Bbcp | Self::Gridftp | Self::Wget | Self::Cp | Self::Iperf3 => "no",
        }
    }

    /// Whether it can move this data with so many sessions at once.
    pub fn takes(self, data: Data, sessions: usize) -> bool {
        // A server of iperf3 has one client at a time, and no file.
        self != Self::Iperf3 || (matches!(data, Data::File(_)) && sessions == 1)
    }

    /// A command that fails if the program lacks what its runs need, and what that is.
    pub fn proof(self) -> Option<(&'static [&'static str], &'static str)> {
        // Without that option it reads no ssh configuration and asks no agent as ssh does.
        let words: &[&str] = &["rclone", "--config", "/dev/null", "--sftp-ssh", "ssh", "version"];
        (self == Self::Rclone).then_some((words, "this rclone cannot go by the ssh command: 1.64 or later can"))
    }

    /// The words that make it print its version.
    pub fn version_words(self) -> Option<[&'static str; 2]> {
        Some(match self {
            Self::Carrack | Self::CarrackNode | Self::RsyncDaemon => return None,
            Self::Scp | Self::Sftp => ["ssh", "-V"],
            Self::Gridftp => ["globus-url-copy", "-version"],
            Self::Mscp => ["mscp", "-h"],
            Self::Rsync => ["rsync", "--version"],
            Self::Bbcp => ["bbcp", "--version"],
            Self::Xrdcp => ["xrdcp", "--version"],
            Self::Rclone => ["rclone", "--version"],
            Self::Wget => ["wget", "--version"],
            Self::Cp => ["cp", "--version"],
            Self::Iperf3 => ["iperf3", "--version"],
        })
    }
}

/// A host that ssh reaches.
#[derive(Clone, Debug)]
pub struct SshEnd {
    /// `user@host`, as ssh takes it.
    pub login: String,
    /// The same before a colon and a path: addresses of IPv6 stand in brackets.
    pub prefix: String,
    /// The user's ssh command, which asks for nothing.
    pub wrapper: PathBuf,
    /// The words of that command, for programs that cannot call it.
    pub words: Vec<String>,
}

/// Where the data lies at the other host, as one tool names it.
#[derive(Clone, Debug)]
pub enum Far {
    /// A directory of this host.
    Here(PathBuf),
    /// A directory at an ssh host, absolute.
    Ssh(SshEnd, String),
    /// A directory by the address of a server, without the slash at its end; the rest comes behind the path.
    Url(String, String),
    /// Where `iperf3 -s` listens.
    Port(String, u16),
}

impl Far {
    /// A path below the directory.
    fn at(&self, name: &str) -> OsString {
        match self {
            Self::Here(directory) => directory.join(name).into(),
            Self::Ssh(end, directory) => format!("{}:{directory}/{name}", end.prefix).into(),
            Self::Url(before, behind) => format!("{before}/{name}{behind}").into(),
            Self::Port(..) => OsString::new(),
        }
    }
}

/// One session of one run.
pub struct ToolJob<'a> {
    /// What is moved.
    pub data: Data,
    /// From here to the other host.
    pub push: bool,
    /// The data directory here.
    pub near: &'a Path,
    /// The one at the other host.
    pub far: &'a Far,
    /// The directory at the receiving end, below its data directory, that takes the copy.
    pub target: String,
    /// Connections of tools that are told how many.
    pub streams: u16,
    /// This program.
    pub carrack: &'a Path,
    /// Further words for it.
    pub carrack_words: &'a [OsString],
}

/// A command that is ready to run.
#[derive(Debug, Default)]
pub struct Command {
    /// The program and its words.
    pub words: Vec<OsString>,
    /// What it reads from its standard input.
    pub input: Option<String>,
}

impl ToolJob<'_> {
    /// The name of the data at its source.
    fn name(&self) -> String {
        self.data.name()
    }

    /// Source and target, where the target is named as a whole.
    fn ends(&self) -> (OsString, OsString) {
        let (name, target) = (self.name(), format!("{}/{}", self.target, self.name()));
        if self.push {
            (self.near.join(&name).into(), self.far.at(&target))
        } else {
            (self.far.at(&name), self.near.join(&target).into())
        }
    }

    /// Source, and the directory that takes it.
    fn ends_into(&self) -> (OsString, OsString) {
        let (name, target) = (self.name(), format!("{}/", self.target));
        if self.push {
            (self.near.join(&name).into(), self.far.at(&target))
        } else {
            let mut into: OsString = self.near.join(&self.target).into();
            into.push("/");
            (self.far.at(&name), into)
        }
    }

    /// The command of a tool; a sentence says why there is none.
    pub fn command(&self, tool: Tool) -> Result<Command, String> {
        let is_tree = self.data.is_tree();
        let (from, to) = if is_tree { self.ends_into() } else { self.ends() };
        let streams = self.streams.to_string();
        let wrapper = match self.far {
            Far::Ssh(end, _) => end.wrapper.as_os_str().to_owned(),
            _ => OsString::new(),
        };
        let text = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let tree = |word: &str| is_tree.then(|| OsString::from(word));
        let mut words = Vec::new();
        match tool {
            Tool::Carrack | Tool::CarrackNode => {
                words.push(self.carrack.into());
                words.extend(text(&["copy", "-q"]));
                if !wrapper.is_empty() {
                    words.extend([OsString::from("--rsh"), wrapper]);
                }
                words.extend(self.carrack_words.iter().cloned());
            }
            Tool::Scp => {
                words.extend(text(&["scp", "-q", "-S"]));
                words.push(wrapper);
                words.extend(tree("-r"));
            }
            Tool::Rsync => {
                words.extend(text(&["rsync", "-a", "-e"]));
                words.push(wrapper);
            }
            Tool::RsyncDaemon => words.extend(text(&["rsync", "-a"])),
            Tool::Bbcp => words = self.bbcp(&wrapper, &streams, is_tree),
            Tool::Gridftp => return Ok(self.gridftp(&streams, is_tree)),
            Tool::Xrdcp => {
                words.extend(text(&["xrdcp", "-f", "-N", "-s"]));
                words.extend(if is_tree { text(&["-r", "--parallel", "4"]) } else { text(&["-S", &streams]) });
            }
            Tool::Mscp => words = self.mscp(&streams)?,
            Tool::Cp => words.extend(text(&["cp", "-a"])),
            Tool::Wget => return Ok(self.wget(is_tree)),
            Tool::Sftp => return self.sftp(&wrapper, is_tree),
            Tool::Rclone => return self.rclone(&wrapper, is_tree),
            Tool::Iperf3 => return Ok(self.iperf3(&streams)),
        }
        words.extend([from, to]);
        Ok(Command { words, input: None })
    }

    fn bbcp(&self, wrapper: &OsString, streams: &str, is_tree: bool) -> Vec<OsString> {
        // bbcp puts the user and the host into the command that it starts the other end by.
        let mut login = wrapper.clone();
        login.push(" -l %U %H bbcp");
        let mut words: Vec<OsString> = ["bbcp", "-F", "-s", streams, "-S"].map(OsString::from).into();
        words.extend([login.clone(), "-T".into(), login]);
        words.extend(is_tree.then(|| "-r".into()));
        words
    }

    /// A tree by four connections of control, whose files are asked for ahead.
    fn gridftp(&self, streams: &str, is_tree: bool) -> Command {
        let local = |path: OsString| {
            let mut url = OsString::from("file://");
            url.push(path);
            url
        };
        let (mut from, mut to) = self.ends();
        if self.push {
            from = local(from)
        } else {
            to = local(to)
        }
        let mut words: Vec<OsString> = ["globus-url-copy", "-fast", "-p", streams].map(OsString::from).into();
        if is_tree {
            words.extend(["-r", "-cd", "-cc", "4", "-pp"].map(OsString::from));
            from.push("/");
            to.push("/");
        }
        words.extend([from, to]);
        Command { words, input: None }
    }

    fn sftp(&self, wrapper: &OsString, is_tree: bool) -> Result<Command, String> {
        let Far::Ssh(end, directory) = self.far else { return Err(NO_SSH.to_owned()) };
        let (name, near) = (self.name(), self.near.display());
        let recursive = if is_tree { " -r" } else { "" };
        let batch = if self.push {
            format!("put{recursive} \"{near}/{name}\" \"{directory}/{}/\"\n", self.target)
        } else {
            format!("get{recursive} \"{directory}/{name}\" \"{near}/{}/\"\n", self.target)
        };
        let mut words: Vec<OsString> = ["sftp", "-q", "-S"].map(OsString::from).into();
        words.extend([wrapper.clone(), "-b".into(), "-".into(), end.login.clone().into()]);
        Ok(Command { words, input: Some(batch) })
    }

    /// By ssh itself, which rclone calls from its version 1.64 on.
    fn rclone(&self, wrapper: &OsString, is_tree: bool) -> Result<Command, String> {
        let Far::Ssh(end, directory) = self.far else { return Err(NO_SSH.to_owned()) };
        let target = format!("{}/{}", self.target, self.name());
        let there = |path: &str| OsString::from(format!(":sftp:{directory}/{path}"));
        let (from, to) = if self.push {
            (self.near.join(self.name()).into(), there(&target))
        } else {
            (there(&self.name()), self.near.join(&target).into())
        };
        let mut ssh = wrapper.clone();
        ssh.push(format!(" {}", end.login));
        let mut words: Vec<OsString> =
            ["rclone", "--config", "/dev/null", "-q", "--sftp-ssh"].map(OsString::from).into();
        words.push(ssh);
        let verb: &[&str] = if is_tree { &["--transfers", "16", "copy"] } else { &["copyto"] };
        words.extend(verb.iter().map(OsString::from));
        words.extend([from, to]);
        Ok(Command { words, input: None })
    }

    /// mscp speaks ssh by itself: of the words of an ssh command it takes those that it has, too.
    fn mscp(&self, streams: &str) -> Result<Vec<OsString>, String> {
        let Far::Ssh(end, _) = self.far else { return Err(NO_SSH.to_owned()) };
        let mut words: Vec<OsString> = ["mscp", "-q", "-n", streams].map(OsString::from).into();
        let mut given = end.words.iter().skip(1);
        while let Some(word) = given.next() {
            let flag = match word.as_str() {
                "-p" => "-P",
                "-F" | "-i" | "-c" | "-o" => word,
                _ => return Err(format!("it calls no ssh, and has no {word}")),
            };
            let value = given.next().ok_or_else(|| format!("the ssh command ends with {word}"))?;
            words.extend([OsString::from(flag), value.into()]);
        }
        Ok(words)
    }

    /// A tree by the lists that a server makes of its directories, which are not kept.
    fn wget(&self, is_tree: bool) -> Command {
        let (from, to) = self.ends();
        // What this host's configuration says of proxies and robots is another matter.
        let mut words: Vec<OsString> =
            ["wget", "-q", "--no-config", "--no-proxy", "-e", "robots=off"].map(OsString::from).into();
        if is_tree {
            let address = from.to_string_lossy().into_owned();
            let path =
                address.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
            let above = path.split('/').filter(|part| !part.is_empty()).count().saturating_sub(1);
            words.extend(["-r", "-np", "-nH", "-R", "index.html*"].map(OsString::from));
            words.extend([format!("--cut-dirs={above}").into(), "-P".into()]);
            words.extend([self.near.join(&self.target).into(), format!("{address}/").into()]);
        } else {
            words.extend(["-O".into(), to, from]);
        }
        Command { words, input: None }
    }

    fn iperf3(&self, streams: &str) -> Command {
        let (address, port) = match self.far {
            Far::Port(address, port) => (address.clone(), port.to_string()),
            _ => (String::new(), String::new()),
        };
        let size = self.data.bytes().to_string();
        let mut words: Vec<OsString> =
            ["iperf3", "-c", &address, "-p", &port, "-P", streams, "-n", &size, "-J"].map(OsString::from).into();
        words.extend((!self.push).then(|| "-R".into()));
        Command { words, input: None }
    }
}

/// Why a tool that goes by ssh cannot.
pub const NO_SSH: &str = "it goes by ssh, and neither A nor B is at an ssh host";

#[cfg(test)]
mod tests {
    use super::*;

    fn line(tool: Tool, data: Data, push: bool, far: &Far) -> String {
        let job = ToolJob {
            data,
            push,
            near: Path::new("/near/data"),
            far,
            target: "to0".to_owned(),
            streams: 4,
            carrack: Path::new("/bin/carrack"),
            carrack_words: &["--encrypt=none".into()],
        };
        let command = job.command(tool).expect("a command");
        let words: Vec<_> = command.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        format!("{}{}", words.join(" "), command.input.map_or_else(String::new, |input| format!(" < {input}")))
    }

    fn ssh() -> Far {
        let end = SshEnd {
            login: "me@::1".to_owned(),
            prefix: "me@[::1]".to_owned(),
            wrapper: "/near/ssh".into(),
            words: ["ssh", "-p", "2222", "-F", "conf"].map(str::to_owned).into(),
        };
        Far::Ssh(end, "/far/data".to_owned())
    }

    #[test]
    fn commands_by_ssh_name_both_ends_in_both_directions() {
        let (file, tree) = (Data::File(5), Data::Tree { files: 2, size: 3 });
        let cases = [
            (Tool::Scp, file, true, "scp -q -S /near/ssh /near/data/file-5 me@[::1]:/far/data/to0/file-5"),
            (Tool::Scp, tree, false, "scp -q -S /near/ssh -r me@[::1]:/far/data/tree /near/data/to0/"),
            (Tool::Rsync, tree, true, "rsync -a -e /near/ssh /near/data/tree me@[::1]:/far/data/to0/"),
            (
                Tool::Carrack,
                file,
                false,
                "/bin/carrack copy -q --rsh /near/ssh --encrypt=none me@[::1]:/far/data/file-5 /near/data/to0/file-5",
            ),
            (
                Tool::Sftp,
                tree,
                true,
                "sftp -q -S /near/ssh -b - me@::1 < put -r \"/near/data/tree\" \"/far/data/to0/\"\n",
            ),
            (
                Tool::Bbcp,
                tree,
                true,
                "bbcp -F -s 4 -S /near/ssh -l %U %H bbcp -T /near/ssh -l %U %H bbcp -r /near/data/tree \
                 me@[::1]:/far/data/to0/",
            ),
            (
                Tool::Rclone,
                file,
                true,
                "rclone --config /dev/null -q --sftp-ssh /near/ssh me@::1 copyto /near/data/file-5 \
                 :sftp:/far/data/to0/file-5",
            ),
            (Tool::Mscp, file, true, "mscp -q -n 4 -P 2222 -F conf /near/data/file-5 me@[::1]:/far/data/to0/file-5"),
        ];
        for (tool, data, push, expected) in cases {
            assert_eq!(line(tool, data, push, &ssh()), expected, "{}", tool.name());
        }
    }

    #[test]
    fn commands_to_servers_name_both_ends_in_both_directions() {
        let (file, tree) = (Data::File(5), Data::Tree { files: 2, size: 3 });
        let url = |before: &str, behind: &str| Far::Url(before.to_owned(), behind.to_owned());
        let gridftp = url("ftp://h:1/far/data", "");
        assert_eq!(
            line(Tool::Gridftp, tree, true, &gridftp),
            "globus-url-copy -fast -p 4 -r -cd -cc 4 -pp file:///near/data/tree/ ftp://h:1/far/data/to0/tree/"
        );
        assert_eq!(
            line(Tool::Gridftp, file, false, &gridftp),
            "globus-url-copy -fast -p 4 ftp://h:1/far/data/file-5 file:///near/data/to0/file-5"
        );
        assert_eq!(
            line(Tool::CarrackNode, file, true, &url("carrack://h:2", "#sha256:ab")),
            "/bin/carrack copy -q --encrypt=none /near/data/file-5 carrack://h:2/to0/file-5#sha256:ab"
        );
        assert_eq!(
            line(Tool::Xrdcp, file, true, &url("root://h:3//far/data", "")),
            "xrdcp -f -N -s -S 4 /near/data/file-5 root://h:3//far/data/to0/file-5"
        );
        let http = url("http://h:4/x/data", "");
        assert_eq!(
            line(Tool::Wget, file, false, &http),
            "wget -q --no-config --no-proxy -e robots=off -O /near/data/to0/file-5 http://h:4/x/data/file-5"
        );
        assert_eq!(
            line(Tool::Wget, tree, false, &http),
            "wget -q --no-config --no-proxy -e robots=off -r -np -nH -R index.html* --cut-dirs=2 -P /near/data/to0 \
             http://h:4/x/data/tree/"
        );
        let here = Far::Here("/far/data".into());
        assert_eq!(line(Tool::Cp, tree, true, &here), "cp -a /near/data/tree /far/data/to0/");
        assert_eq!(
            line(Tool::Iperf3, file, false, &Far::Port("h".to_owned(), 5201)),
            "iperf3 -c h -p 5201 -P 4 -n 5 -J -R"
        );
    }

    #[test]
    fn tools_say_what_they_do_besides_moving_bytes() {
        let of = |tool: Tool| (tool.encrypts(), tool.verifies());
        assert_eq!((of(Tool::Carrack), of(Tool::Scp)), (("TLS", "BLAKE3"), ("ssh", "transit")));
        assert_eq!((of(Tool::Bbcp), of(Tool::RsyncDaemon)), (("no", "no"), ("no", "checksum")));
        assert!(!Tool::Iperf3.takes(Data::File(1), 2) && Tool::Scp.takes(Data::File(1), 2));
        // The widest word of each column of the table.
        assert!(Tool::ALL.iter().all(|tool| tool.name().len() <= 15 && tool.verifies().len() <= 8));
    }
}
