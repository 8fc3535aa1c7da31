//! What this host says of itself: texts of the kernel, of files and of a few tools, each with a name, and nothing
//! judged. Whoever asks decides what they mean.
//!
//! A kind of facts is one file here, with a function in `KINDS`. What is a file is read with the lists of its kind
//! ([`Gatherer::file`], [`Gatherer::each`]); system calls (`ethtool`, `netlink`) and commands (`programs`) give
//! their answers names of their own. A directory in which such texts were kept (`recorded`) can stand for the host.

mod clock;
mod connection;
mod ethtool;
mod hardware;
mod interrupts;
mod memory;
mod netlink;
mod network;
mod processor;
mod programs;
mod recorded;
mod session;
mod settings;
mod storage;
mod system;

pub use connection::connection;
pub use recorded::{read_text, read_tree, write_tree};

use std::collections::HashSet;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// What became of one question to this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactText {
    /// The answer, as it was given.
    Found(String),
    /// There is no such thing here.
    Absent,
    /// This user may not look.
    Denied,
    /// Looking failed, and why.
    Failed(String),
}

impl From<io::Result<String>> for FactText {
    fn from(result: io::Result<String>) -> Self {
        match result {
            Ok(text) => Self::Found(text),
            Err(error) => error.into(),
        }
    }
}

impl From<io::Error> for FactText {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Absent,
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// What is asked about, beside the host itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct About<'a> {
    /// The address that data would go to.
    pub peer: Option<IpAddr>,
    /// The directory that data would go to or come from, as this process reaches it.
    pub directory: Option<&'a Path>,
}

/// Asks one kind of questions.
type Kind = fn(&mut Gatherer, About<'_>);

/// All kinds, in the order in which they are asked. Of what has an end in any case nothing is left out: interfaces, of
/// which there may be hundreds, come last, and those to containers at their end.
const KINDS: &[Kind] = &[
    system::gather,
    processor::gather,
    memory::gather,
    session::gather,
    network::gather,
    settings::gather,
    hardware::gather,
    storage::gather,
    programs::gather,
    clock::gather,
    netlink::gather,
    network::gather_interfaces,
    interrupts::gather,
    ethtool::gather,
];

/// Gathers all facts of this host. It takes a few seconds at most: every command has a limit.
pub fn gather(about: About<'_>) -> Vec<(String, FactText)> {
    let mut gatherer = Gatherer::at(Path::new("/"));
    KINDS.iter().for_each(|kind| kind(&mut gatherer, about));
    gatherer.texts
}

/// Bytes that are read of one file: no file that is asked for is longer, but for lists of every processor.
const FILE_BYTES: u64 = 64 << 10;
/// Entries of one directory that are looked at.
const ENTRIES: usize = 256;
/// Interfaces that a host may have, and those that are looked at.
const INTERFACES_MAX: usize = 16 << 10;
const INTERFACES: usize = 128;

/// Gathers texts below a root directory: `/`, or one in which a test has put files.
pub struct Gatherer {
    root: PathBuf,
    texts: Vec<(String, FactText)>,
}

impl Gatherer {
    fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), texts: Vec::new() }
    }

    /// Adds an answer under its name.
    pub fn put(&mut self, name: impl Into<String>, text: impl Into<FactText>) {
        self.texts.push((name.into(), text.into()));
    }

    /// Reads a file, named by its path without the leading slash.
    pub fn file(&mut self, name: &str) {
        let text = self.read(name);
        self.put(name, text);
    }

    /// Reads a file, unless somebody has read it already.
    fn file_once(&mut self, name: &str) {
        if !self.texts.iter().any(|(known, _)| known == name) {
            self.file(name);
        }
    }

    /// Whether this is the host itself, and not a directory that stands for it: only a host has programs and a clock.
    fn is_host(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Reads several files of one directory.
    pub fn files(&mut self, directory: &str, names: &[&str]) {
        names.iter().for_each(|name| self.file(&format!("{directory}/{name}")));
    }

    /// Reads such files in every entry of a directory, and tells the entries' names.
    pub fn each(&mut self, directory: &str, names: &[&str]) -> Vec<String> {
        let entries = self.entries(directory);
        entries.iter().for_each(|entry| self.files(&format!("{directory}/{entry}"), names));
        entries
    }

    /// The name that a symbolic link leads to, without its directories.
    pub fn link(&mut self, name: &str) {
        let target = std::fs::read_link(self.root.join(name));
        let last =
            target.map(|target| target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
        self.put(name, last);
    }

    /// The entries of a directory, a line each.
    pub fn listing(&mut self, directory: &str) {
        let text = match std::fs::metadata(self.root.join(directory)) {
            Ok(_) => FactText::Found(self.entries(directory).join("\n")),
            Err(error) => error.into(),
        };
        self.put(directory, text);
    }

    /// The interfaces that are looked at: cards, what is put together from others, and the rest, of which the links to
    /// containers come last.
    pub fn interfaces(&self) -> Vec<String> {
        let is_veth = FactText::Found("veth".to_owned());
        let veths = self.texts.iter().filter(|(_, text)| *text == is_veth);
        let veths: HashSet<&str> = veths.filter_map(|(name, _)| name.strip_prefix("link/")).collect();
        let rank = |name: &String| {
            let place = self.root.join("sys/class/net").join(name);
            let is_upon = |entry: std::fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b"lower_");
            match () {
                () if place.join("device").exists() => 0,
                () if veths.contains(name.as_str()) => 3,
                () if place.read_dir().is_ok_and(|all| all.flatten().any(is_upon)) => 1,
                () => 2,
            }
        };
        let mut names = self.entries_up_to("sys/class/net", INTERFACES_MAX);
        names.sort_by_cached_key(rank);
        names.truncate(INTERFACES);
        names
    }

    /// The entries of a directory, sorted; none where there is no such directory.
    pub fn entries(&self, directory: &str) -> Vec<String> {
        self.entries_up_to(directory, ENTRIES)
    }

    fn entries_up_to(&self, directory: &str, most: usize) -> Vec<String> {
        let listed = std::fs::read_dir(self.root.join(directory)).into_iter().flatten().flatten();
        let names = listed.take(most).filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// The text of a file, as far as it is text.
    pub fn read(&self, name: &str) -> io::Result<String> {
        self.read_up_to(name, FILE_BYTES)
    }

    /// The same of a file that may be longer.
    fn read_up_to(&self, name: &str, most: u64) -> io::Result<String> {
        let mut bytes = Vec::new();
        std::fs::File::open(self.root.join(name))?.take(most).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a file below a root that stands for `/`.
    pub(super) fn put(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn gatherer_reads_lists_below_its_root_and_says_what_is_not_there() {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in [("sys/class/net/eth0/mtu", "9000\n"), ("sys/class/net/lo/mtu", "65536\n")] {
            put(root.path(), name, text);
        }
        std::os::unix::fs::symlink("../../drivers/mlx5_core", root.path().join("sys/class/net/eth0/driver")).unwrap();
        let mut gatherer = Gatherer::at(root.path());
        assert_eq!(gatherer.each("sys/class/net", &["mtu", "speed"]), ["eth0", "lo"]);
        gatherer.link("sys/class/net/eth0/driver");
        gatherer.file("sys/class/net");
        let found = |text: &str| FactText::Found(text.to_owned());
        let texts: Vec<(&str, &FactText)> = gatherer.texts.iter().map(|(name, text)| (name.as_str(), text)).collect();
        assert_eq!(texts[0], ("sys/class/net/eth0/mtu", &found("9000\n")));
        assert_eq!(texts[1], ("sys/class/net/eth0/speed", &FactText::Absent));
        assert_eq!(texts[4], ("sys/class/net/eth0/driver", &found("mlx5_core")));
        assert!(matches!(texts[5].1, FactText::Failed(_)), "{texts:?}");
    }

    /// A host of containers: what is looked at fits into the evidence, and the card is part of it.
    #[test]
    fn card_is_looked_at_among_hundreds_of_links_to_containers() {
        let root = tempfile::tempdir().unwrap();
        let mut gatherer = Gatherer::at(root.path());
        for number in 0..600 {
            let name = format!("a{number:03}");
            put(root.path(), &format!("sys/class/net/{name}/mtu"), "1500\n");
            gatherer.put(format!("link/{name}"), FactText::Found("veth".into()));
        }
        for name in ["vlan5/lower_zz0", "zz0/device/x", "wg0/mtu"] {
            put(root.path(), &format!("sys/class/net/{name}"), "");
        }
        let interfaces = gatherer.interfaces();
        assert_eq!((&interfaces[..3], interfaces.len()), (&["zz0", "vlan5", "wg0"].map(String::from)[..], INTERFACES));
        network::gather_interfaces(&mut gatherer, About::default());
        let known = |name: &str| gatherer.texts.iter().any(|(known, _)| known == name);
        assert!(known("sys/class/net/zz0/mtu") && known("lower/vlan5") && gatherer.texts.len() < 8192);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_host_tells_its_windows_its_interfaces_and_the_route_to_itself() {
        let texts = gather(About { peer: Some([127, 0, 0, 1].into()), directory: None });
        let found = |name: &str| match texts.iter().find(|(known, _)| known == name) {
            Some((_, FactText::Found(text))) => text.clone(),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(found("proc/sys/net/ipv4/tcp_rmem").split_whitespace().count(), 3);
        assert!(found("route/127.0.0.1").contains("dev lo"), "{}", found("route/127.0.0.1"));
        assert!(found("address/lo").lines().any(|line| line == "127.0.0.1/8"));
        let mut names: Vec<&String> = texts.iter().map(|(name, _)| name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "every name once");
    }
}
