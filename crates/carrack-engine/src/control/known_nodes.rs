//! The list of known nodes: a line for each, its address and its key's fingerprint. It fails closed: only a list that
//! is not there is an empty one. Whatever else keeps a line from being read ends the command before anything is sent.

#![expect(clippy::disallowed_methods, reason = "files of the user's own, by the path that the user gave them")]

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use carrack_core::limits;
use carrack_core::location::NodeAddress;
use carrack_core::path::display_bytes;
use carrack_core::pin::{format_pin, parse_pin};
use carrack_core::report::{ErrorCode, Failure, Reason, Side};

use crate::error::{describe, failure};
use crate::own_files::{lock_beside, write_whole};
use crate::sync::lock;

/// How long the list is waited for while other commands write it. Whoever writes without its lock may undo another's
/// line: that node is then met for the first time once more.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// The key that a node must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedKey {
    /// None at a first meeting.
    pub pin: Option<[u8; 32]>,
    /// It was pinned before this work began: by the address, or by the list. Somebody has had the chance to look at it.
    pub was_pinned: bool,
}

/// The keys of the nodes that one owner knows, by SHA-256.
pub trait KnownKeys: fmt::Debug + Send + Sync {
    /// Which key a node must show, whose address names none.
    ///
    /// # Errors
    /// When that cannot be known now: nothing is sent to the node then.
    fn expected(&self, node: &NodeAddress) -> Result<ExpectedKey, Failure>;

    /// Remembers the key of a node that was met for the first time; tells what a person should know of that.
    ///
    /// # Errors
    /// When the node has been met meanwhile, and with another key; or keys have become unreadable.
    fn remember(&self, node: &NodeAddress, pin: [u8; 32]) -> Result<Option<String>, Failure>;

    /// Where a person finds the keys: the path of a list. `None` where they are in memory alone.
    fn place(&self) -> Option<String>;
}

/// Keys in memory alone: a node's is what it showed when it was met first, for as long as this lives.
#[derive(Debug, Default)]
pub struct MemoryKeys {
    pins: Mutex<BTreeMap<String, (bool, [u8; 32])>>,
}

impl MemoryKeys {
    /// With the keys of nodes that are known already.
    pub fn new(pinned: impl IntoIterator<Item = (NodeAddress, [u8; 32])>) -> Self {
        let pins = pinned.into_iter().map(|(node, pin)| (node.known_as(), (true, pin)));
        Self { pins: Mutex::new(pins.collect()) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (bool, [u8; 32])>> {
        lock(&self.pins)
    }
}

impl KnownKeys for MemoryKeys {
    fn expected(&self, node: &NodeAddress) -> Result<ExpectedKey, Failure> {
        let known = self.lock().get(&node.known_as()).copied();
        Ok(ExpectedKey { pin: known.map(|(_, pin)| pin), was_pinned: known.is_some_and(|(was_pinned, _)| was_pinned) })
    }

    fn remember(&self, node: &NodeAddress, pin: [u8; 32]) -> Result<Option<String>, Failure> {
        let (_, known) = *self.lock().entry(node.known_as()).or_insert((false, pin));
        if known == pin { Ok(None) } else { Err(changed(self, node, known, pin)) }
    }

    fn place(&self) -> Option<String> {
        None
    }
}

/// Keys in a file, a line for each node, as its owner's work found it: read once, for the first node that is looked up
/// in it. A key that somebody else writes down while the work goes on does not count as pinned before.
#[derive(Debug)]
pub struct KnownNodes {
    path: PathBuf,
    at_start: OnceLock<BTreeMap<String, [u8; 32]>>,
    /// Nodes that were met for the first time by this value's owner, and their keys. The file may have them by now, but
    /// nobody has had the chance to look at them: not before the next owner do they count as pinned.
    met: Mutex<BTreeMap<String, [u8; 32]>>,
}

/// The list, as it was read.
struct PinList {
    text: String,
    pins: BTreeMap<String, [u8; 32]>,
}

impl KnownNodes {
    /// Those in this file. Only one that is not there is empty.
    pub fn new(path: PathBuf) -> Self {
        Self { path, at_start: OnceLock::new(), met: Mutex::default() }
    }

    fn load(&self) -> Result<PinList, Failure> {
        let text = read(&self.path).map_err(|why| unusable(&self.path, &why))?;
        let pins = parse(&text).map_err(|why| unusable(&self.path, &why))?;
        Ok(PinList { text, pins })
    }

    fn met(&self) -> MutexGuard<'_, BTreeMap<String, [u8; 32]>> {
        lock(&self.met)
    }

    fn shown_path(&self) -> String {
        display_bytes(self.path.as_os_str().as_encoded_bytes()).to_string()
    }
}

impl KnownKeys for KnownNodes {
    fn expected(&self, node: &NodeAddress) -> Result<ExpectedKey, Failure> {
        let pins = match self.at_start.get() {
            Some(pins) => pins,
            None => {
                let now = self.load()?.pins;
                self.at_start.get_or_init(|| now)
            }
        };
        let name = node.known_as();
        let met = self.met().get(&name).copied();
        let was_pinned = met.is_none() && pins.contains_key(&name);
        Ok(ExpectedKey { pin: met.or_else(|| pins.get(&name).copied()), was_pinned })
    }

    fn remember(&self, node: &NodeAddress, pin: [u8; 32]) -> Result<Option<String>, Failure> {
        let mut met = self.met();
        let name = node.known_as();
        let lock = lock_beside(&self.path, LOCK_PATIENCE);
        let now = self.load()?;
        if let Some(other) = met.get(&name).or_else(|| now.pins.get(&name)).filter(|other| **other != pin) {
            return Err(changed(self, node, *other, pin));
        }
        // The other end of this copy, or another command, has met it at the same moment.
        let is_new = met.insert(name.clone(), pin).is_none();
        let line = format!("{name} {}\n", format_pin(&pin));
        let written = if now.pins.contains_key(&name) {
            Ok(())
        } else {
            let gap = if now.text.is_empty() || now.text.ends_with('\n') { "" } else { "\n" };
            // Whoever keeps configuration elsewhere has a link here, and wants it followed.
            let real = std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
            write_whole(&real, format!("{}{gap}{line}", now.text).as_bytes())
        };
        drop(lock);
        let (key, shown) = (format_pin(&pin), self.shown_path());
        Ok(match written {
            Ok(()) => is_new.then(|| format!("{node}: first meeting; its key {key} is now pinned in {shown}")),
            Err(error) => {
                let why = describe(&error);
                Some(format!("{node}: first meeting; its key {key} could not be pinned in {shown}: {why}"))
            }
        })
    }

    fn place(&self) -> Option<String> {
        Some(self.shown_path())
    }
}

/// A node shows another key than the known ones say.
pub fn changed(keys: &dyn KnownKeys, node: &NodeAddress, pinned: [u8; 32], shown: [u8; 32]) -> Failure {
    let place = keys.place().map(|path| format!(" in {path}")).unwrap_or_default();
    mismatch(node, pinned, shown, &place).for_reason(Reason::NodeAnew)
}

/// A node shows another key than the one that is pinned at a `place`.
pub fn mismatch(node: &NodeAddress, pinned: [u8; 32], shown: [u8; 32], place: &str) -> Failure {
    let why = format!("shows the key {}, and {} is pinned for it{place}", format_pin(&shown), format_pin(&pinned));
    failure(ErrorCode::KeyMismatch, Side::Link, why).at_end(node.to_string())
}

fn unusable(path: &Path, why: &str) -> Failure {
    let why = format!("{why}; nothing is sent to any node before its key can be looked up there");
    let unusable = failure(ErrorCode::AuthenticationFailed, Side::Command, why).for_reason(Reason::KnownNodesUnusable);
    unusable.at_path(path.as_os_str().as_encoded_bytes())
}

fn read(path: &Path) -> Result<String, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        // A link that leads nowhere is a list that cannot be read now.
        Err(error) if error.kind() == io::ErrorKind::NotFound && std::fs::symlink_metadata(path).is_err() => {
            return Ok(String::new());
        }
        Err(error) => return Err(describe(&error)),
    };
    let regular = file.metadata().map_err(|error| describe(&error))?.is_file();
    if !regular {
        return Err("it is no regular file".into());
    }
    let mut bytes = Vec::new();
    file.take(limits::KNOWN_NODES_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| describe(&error))?;
    if bytes.len() > limits::KNOWN_NODES_BYTES {
        return Err(format!("it has more than {} bytes", limits::KNOWN_NODES_BYTES));
    }
    String::from_utf8(bytes).map_err(|error| {
        let whole = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        format!("line {}: it is not UTF-8", 1 + whole.iter().filter(|&&byte| byte == b'\n').count())
    })
}

/// Every line, or what is wrong with the first that is none.
fn parse(text: &str) -> Result<BTreeMap<String, [u8; 32]>, String> {
    let mut pins = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (name, pin) = match words[..] {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            [name, pin] if pin.starts_with("sha256:") => (name, pin),
            _ => return Err(format!("line {number}: it is not HOST:PORT sha256:FINGERPRINT")),
        };
        let node = parse_name(name).ok_or_else(|| format!("line {number}: it does not begin with HOST:PORT"))?;
        let pin = parse_pin(pin.as_bytes()).map_err(|why| format!("line {number}: {why}"))?;
        if pins.insert(node.known_as(), pin).is_some_and(|other| other != pin) {
            return Err(format!("line {number}: {} has another key in a line above", node.known_as()));
        }
    }
    Ok(pins)
}

fn parse_name(name: &str) -> Option<NodeAddress> {
    let (host, port) = name.rsplit_once(':')?;
    let port = port.parse().ok().filter(|&port: &u16| port > 0)?;
    let host = match host.strip_prefix('[') {
        Some(host) => host.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    (!host.is_empty()).then(|| NodeAddress { host: host.into(), port, pin: None })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn node(host: &str) -> NodeAddress {
        NodeAddress { host: host.into(), port: 7420, pin: None }
    }

    fn line(host: &str, byte: u8) -> String {
        format!("{host}:7420 {}\n", format_pin(&[byte; 32]))
    }

    #[test]
    fn known_nodes_are_empty_only_where_there_is_no_list() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known_nodes");
        assert!(KnownNodes::new(path.clone()).load().unwrap().pins.is_empty());
        let print = "ab".repeat(32);
        let good = line("a", 1);
        let broken: [(Vec<u8>, &str); 13] = [
            ([good.as_bytes(), b"b:7420 \xff\n"].concat(), "line 2: it is not UTF-8"),
            (good[..good.len() - 2].into(), "line 1: the fingerprint"),
            (format!("{good}node.exa").into(), "line 2: it is not HOST:PORT"),
            (format!("{good}b:7420").into(), "line 2: it is not HOST:PORT"),
            (format!("b:7420 SHA256:{print}\n").into(), "line 1: it is not HOST:PORT sha256:"),
            (format!("b:7420 sha256:{print}00\n").into(), "line 1: the fingerprint"),
            (format!("b:7420 sha256:+{}\n", &print[1..]).into(), "line 1: the fingerprint"),
            (format!("b:7420 {print}\n").into(), "line 1: it is not HOST:PORT sha256:"),
            (format!("b sha256:{print}\n").into(), "line 1: it does not begin with HOST:PORT"),
            (format!("b:0 sha256:{print}\n").into(), "line 1: it does not begin with HOST:PORT"),
            (format!("::1:7420 sha256:{print}\n").into(), "line 1: it does not begin with HOST:PORT"),
            (format!("b:7420 sha256:{print} more\n").into(), "line 1: it is not HOST:PORT"),
            (format!("{good}{}", line("A.", 2)).into(), "line 2: a:7420 has another key"),
        ];
        for (text, why) in broken {
            std::fs::write(&path, text).unwrap();
            let failure = KnownNodes::new(path.clone()).expected(&node("a")).expect_err(why).message();
            assert!(failure.contains(why) && failure.contains("known_nodes"), "{failure}");
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let failure = KnownNodes::new(path.clone()).expected(&node("a")).expect_err("a directory").message();
        assert!(failure.contains("no regular file"), "{failure}");
        let below = directory.path().join("file");
        std::fs::write(&below, "").unwrap();
        assert!(KnownNodes::new(below.join("known_nodes")).expected(&node("a")).is_err(), "where no list can be");
    }

    #[test]
    fn nodes_are_found_however_they_are_typed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known_nodes");
        let v6 = line("[2001:DB8::0A]", 3);
        let text = format!("# a comment\n\n{}{}{v6}", line("Node.Example.", 1), line("node.example", 1));
        std::fs::write(&path, text).unwrap();
        let known = KnownNodes::new(path);
        for host in ["node.example", "NODE.EXAMPLE.", "Node.example"] {
            let expected = known.expected(&node(host)).unwrap();
            assert!(expected.was_pinned && expected.pin == Some([1; 32]), "{host}");
        }
        assert_eq!(known.expected(&node("2001:db8:0::a")).unwrap().pin, Some([3; 32]));
        assert_eq!(known.expected(&node("node.example.org")).unwrap().pin, None);
    }

    #[test]
    fn node_met_in_this_process_does_not_count_as_pinned() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("carrack/known_nodes");
        let known = KnownNodes::new(path.clone());
        let told = [(); 2].map(|()| known.remember(&node("Met."), [7; 32]).unwrap());
        assert!(told[0].is_some() && told[1].is_none(), "{told:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("met:7420 sha256:{}\n", "07".repeat(32)));
        assert_eq!(known.expected(&node("met")).unwrap(), ExpectedKey { pin: Some([7; 32]), was_pinned: false });
        assert_eq!(known.remember(&node("met"), [8; 32]).unwrap_err().code, ErrorCode::KeyMismatch);
        // The next command's user has had the chance to look.
        assert!(KnownNodes::new(path).expected(&node("met")).unwrap().was_pinned);
    }

    #[test]
    fn keys_in_memory_are_pinned_by_their_owner_or_by_the_first_meeting() {
        let keys = MemoryKeys::new([(node("a"), [1; 32])]);
        assert_eq!(keys.expected(&node("A.")).unwrap(), ExpectedKey { pin: Some([1; 32]), was_pinned: true });
        assert_eq!(keys.expected(&node("b")).unwrap(), ExpectedKey { pin: None, was_pinned: false });
        for _ in 0..2 {
            assert_eq!(keys.remember(&node("b"), [2; 32]).unwrap(), None);
        }
        assert_eq!(keys.expected(&node("b")).unwrap(), ExpectedKey { pin: Some([2; 32]), was_pinned: false });
        for known in ["a", "b"] {
            assert_eq!(keys.remember(&node(known), [9; 32]).unwrap_err().code, ErrorCode::KeyMismatch);
        }
    }

    #[test]
    fn node_pinned_while_the_run_goes_on_does_not_count_as_pinned_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known_nodes");
        let expected = |keys: &KnownNodes, host: &str| {
            let expected = keys.expected(&node(host)).unwrap();
            (expected.pin, expected.was_pinned)
        };
        let run = KnownNodes::new(path.clone());
        std::fs::write(&path, line("before", 1)).unwrap();
        assert_eq!(expected(&run, "before"), (Some([1; 32]), true));
        std::fs::write(&path, line("before", 1) + &line("meanwhile", 2)).unwrap();
        // Both ends of a copy, and each of its sessions, are of one run.
        assert_eq!(expected(&run, "meanwhile"), (None, false));
        // What was written down holds all the same.
        assert_eq!(run.remember(&node("meanwhile"), [3; 32]).unwrap_err().code, ErrorCode::KeyMismatch);
        assert_eq!(expected(&KnownNodes::new(path), "meanwhile"), (Some([2; 32]), true));
    }

    /// What another command wrote since this one read the list is kept, and believed.
    #[test]
    fn writing_loses_no_line_and_replaces_no_link() {
        let directory = tempfile::tempdir().unwrap();
        let (path, real) = (directory.path().join("known_nodes"), directory.path().join("real"));
        std::fs::write(&real, line("a", 1).trim_end()).unwrap();
        symlink(&real, &path).unwrap();
        let stale = KnownNodes::new(path.clone());
        std::thread::scope(|scope| {
            for number in 0..8u8 {
                let stale = &stale;
                scope.spawn(move || stale.remember(&node(&format!("n{number}")), [number; 32]).unwrap());
            }
        });
        let now = stale.load().unwrap();
        assert_eq!(now.pins.len(), 9);
        assert!(std::fs::symlink_metadata(&path).unwrap().is_symlink());
        std::fs::write(&real, line("b", 9)).unwrap();
        assert_eq!(stale.remember(&node("b"), [8; 32]).unwrap_err().code, ErrorCode::KeyMismatch);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is left beside them");
    }
}
