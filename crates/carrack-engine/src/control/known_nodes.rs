//! The list of known nodes: a line for each, its address and its key's fingerprint. It fails closed: only a list that is not there is an empty
//! one. Whatever else keeps a line from being read ends the command before anything is sent.

#![expect(clippy::disallowed_methods, reason = "files of the user's own, by the path that the user gave them")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use carrack_core::limits;
use carrack_core::location::NodeAddress;
use carrack_core::path::display_bytes;
use carrack_core::pin::{format_pin, parse_pin};
use carrack_core::report::{ErrorCode, Failure, Side};

use crate::error::{describe, failure};
use crate::own_files::{config_directory, make_private_directory, write_whole};

/// How long the list is waited for while other commands write it. Whoever writes without its lock may undo another's line: that node is then
/// met for the first time once more.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// Nodes that this process met for the first time, and their keys. The list may have them by now, but nobody has had the chance to look at
/// them: not before the next command do they count as pinned.
static MET: Mutex<BTreeMap<(PathBuf, String), [u8; 32]>> = Mutex::new(BTreeMap::new());

/// The key that a node must show.
pub struct Expected {
    /// None at a first meeting.
    pub pin: Option<[u8; 32]>,
    /// It was pinned before this command began: by the address, or by the list.
    pub was_pinned: bool,
}

/// The list, as it was read.
#[derive(Debug)]
pub struct KnownNodes {
    path: PathBuf,
    text: String,
    pins: BTreeMap<String, [u8; 32]>,
}

/// The user's list as a run found it: read once, for the first node that is looked up in it. A key that somebody else writes down while the
/// run goes on does not count as pinned before. Clones are one list.
#[derive(Clone, Debug, Default)]
pub struct ListAtStart(Arc<OnceLock<KnownNodes>>);

impl ListAtStart {
    /// The list.
    ///
    /// # Errors
    /// When it is there and cannot be read, or not to the last line: file and line are named.
    pub fn load(&self) -> Result<&KnownNodes, Failure> {
        self.load_from(config_directory().join("known_nodes"))
    }

    fn load_from(&self, path: PathBuf) -> Result<&KnownNodes, Failure> {
        match self.0.get() {
            Some(known) => Ok(known),
            None => KnownNodes::load_from(path).map(|known| self.0.get_or_init(|| known)),
        }
    }
}

impl KnownNodes {
    fn load_from(path: PathBuf) -> Result<Self, Failure> {
        let text = read(&path).map_err(|why| unusable(&path, &why))?;
        let pins = parse(&text).map_err(|why| unusable(&path, &why))?;
        Ok(Self { path, text, pins })
    }

    /// Which key a node must show.
    pub fn expected(&self, node: &NodeAddress) -> Expected {
        let name = node.known_as();
        let met = MET.lock().unwrap_or_else(PoisonError::into_inner).get(&(self.path.clone(), name.clone())).copied();
        let was_pinned = met.is_none() && self.pins.contains_key(&name);
        Expected { pin: met.or_else(|| self.pins.get(&name).copied()), was_pinned }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes down the key of a node that was met for the first time, and tells so.
    ///
    /// # Errors
    /// When another command has met it meanwhile, and with another key; or the list has become unreadable.
    pub fn remember(
        &self,
        node: &NodeAddress,
        pin: [u8; 32],
        note: &Arc<dyn Fn(String) + Send + Sync>,
    ) -> Result<(), Failure> {
        let mut met = MET.lock().unwrap_or_else(PoisonError::into_inner);
        let name = node.known_as();
        let place = (self.path.clone(), name.clone());
        let lock = lock(&self.path);
        let now = Self::load_from(self.path.clone())?;
        if let Some(other) = met.get(&place).or_else(|| now.pins.get(&name)).filter(|other| **other != pin) {
            return Err(now.mismatch(node, *other, pin));
        }
        // The other end of this copy, or another command, has met it at the same moment.
        let is_new = met.insert(place, pin).is_none();
        let shown = display_bytes(self.path.as_os_str().as_encoded_bytes()).to_string();
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
        match written {
            Ok(()) if is_new => {
                note(format!("{node}: first meeting; its key {} is now pinned in {shown}", format_pin(&pin)));
            }
            Ok(()) => {}
            Err(error) => {
                let why = describe(&error);
                note(format!(
                    "{node}: first meeting; its key {} could not be pinned in {shown}: {why}",
                    format_pin(&pin)
                ));
            }
        }
        Ok(())
    }

    /// The node shows another key than the list has.
    pub fn mismatch(&self, node: &NodeAddress, pinned: [u8; 32], shown: [u8; 32]) -> Failure {
        let path = display_bytes(self.path.as_os_str().as_encoded_bytes());
        let advice = format!(
            "if the node was set up anew, remove its line from {path} and connect again; if not, somebody is in between"
        );
        mismatch(node, pinned, shown, &advice)
    }
}

/// A node shows another key than the one that is pinned.
pub fn mismatch(node: &NodeAddress, pinned: [u8; 32], shown: [u8; 32], advice: &str) -> Failure {
    let message =
        format!("{node}: shows the key {}, and {} is pinned for it: {advice}", format_pin(&shown), format_pin(&pinned));
    failure(ErrorCode::KeyMismatch, Side::Link, message)
}

fn unusable(path: &Path, why: &str) -> Failure {
    let shown = display_bytes(path.as_os_str().as_encoded_bytes());
    let message = format!(
        "{shown}: {why}; nothing is sent to any node before its key can be looked up there: mend or remove the file, or type the key behind \
         the address (#sha256:...)"
    );
    failure(ErrorCode::AuthenticationFailed, Side::Command, message)
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

/// Keeps other commands from writing the list at the same time; held until it is dropped. Where nothing can be locked nothing is.
fn lock(path: &Path) -> Option<File> {
    let directory = path.parent()?;
    make_private_directory(directory).ok()?;
    let held = File::open(directory).ok()?;
    let until = Instant::now() + LOCK_PATIENCE;
    while !carrack_sys::file::try_lock(&held).ok()? {
        if Instant::now() >= until {
            return None;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    Some(held)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn node(host: &str) -> NodeAddress {
        NodeAddress { host: host.into(), port: 7420, pin: None }
    }

    fn quiet() -> Arc<dyn Fn(String) + Send + Sync> {
        Arc::new(|_| {})
    }

    fn line(host: &str, byte: u8) -> String {
        format!("{host}:7420 {}\n", format_pin(&[byte; 32]))
    }

    #[test]
    fn only_a_list_that_is_not_there_is_empty() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known_nodes");
        assert!(KnownNodes::load_from(path.clone()).unwrap().pins.is_empty());
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
            let failure = KnownNodes::load_from(path.clone()).expect_err(why);
            assert!(failure.message.contains(why) && failure.message.contains("known_nodes"), "{}", failure.message);
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(KnownNodes::load_from(path.clone()).expect_err("a directory").message.contains("no regular file"));
        let below = directory.path().join("file");
        std::fs::write(&below, "").unwrap();
        assert!(KnownNodes::load_from(below.join("known_nodes")).is_err(), "where no list can be");
    }

    #[test]
    fn nodes_are_found_however_they_are_typed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known_nodes");
        let v6 = line("[2001:DB8::0A]", 3);
        let text = format!("# a comment\n\n{}{}{v6}", line("Node.Example.", 1), line("node.example", 1));
        std::fs::write(&path, text).unwrap();
        let known = KnownNodes::load_from(path).unwrap();
        for host in ["node.example", "NODE.EXAMPLE.", "Node.example"] {
            let expected = known.expected(&node(host));
            assert!(expected.was_pinned && expected.pin == Some([1; 32]), "{host}");
        }
        assert_eq!(known.expected(&node("2001:db8:0::a")).pin, Some([3; 32]));
        assert_eq!(known.expected(&node("node.example.org")).pin, None);
    }

    #[test]
    fn a_node_met_in_this_process_does_not_count_as_pinned() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("carrack/known_nodes");
        let known = KnownNodes::load_from(path.clone()).unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&told);
        let note: Arc<dyn Fn(String) + Send + Sync> = Arc::new(move |text| kept.lock().unwrap().push(text));
        for _ in 0..2 {
            known.remember(&node("Met."), [7; 32], &note).unwrap();
        }
        assert_eq!(told.lock().unwrap().len(), 1, "{told:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("met:7420 sha256:{}\n", "07".repeat(32)));
        let again = KnownNodes::load_from(path.clone()).unwrap();
        let expected = again.expected(&node("met"));
        assert_eq!((expected.pin, expected.was_pinned), (Some([7; 32]), false));
        assert_eq!(again.remember(&node("met"), [8; 32], &note).unwrap_err().code, ErrorCode::KeyMismatch);
    }

    #[test]
    fn node_pinned_while_the_run_goes_on_does_not_count_as_pinned_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known_nodes");
        let expected = |list: &ListAtStart, host: &str| {
            let expected = list.load_from(path.clone()).unwrap().expected(&node(host));
            (expected.pin, expected.was_pinned)
        };
        let run = ListAtStart::default();
        std::fs::write(&path, line("before", 1)).unwrap();
        assert_eq!(expected(&run, "before"), (Some([1; 32]), true));
        std::fs::write(&path, line("before", 1) + &line("meanwhile", 2)).unwrap();
        // Both ends of a copy, and each of its sessions, are of one run.
        assert_eq!(expected(&run.clone(), "meanwhile"), (None, false));
        // What was written down holds all the same.
        let known = run.load_from(path.clone()).unwrap();
        assert_eq!(known.remember(&node("meanwhile"), [3; 32], &quiet()).unwrap_err().code, ErrorCode::KeyMismatch);
        assert_eq!(expected(&ListAtStart::default(), "meanwhile"), (Some([2; 32]), true));
    }

    /// What another command wrote since this one read the list is kept, and believed.
    #[test]
    fn writing_loses_no_line_and_replaces_no_link() {
        let directory = tempfile::tempdir().unwrap();
        let (path, real) = (directory.path().join("known_nodes"), directory.path().join("real"));
        std::fs::write(&real, line("a", 1).trim_end()).unwrap();
        symlink(&real, &path).unwrap();
        let stale = KnownNodes::load_from(path.clone()).unwrap();
        std::thread::scope(|scope| {
            for number in 0..8u8 {
                let stale = &stale;
                scope.spawn(move || stale.remember(&node(&format!("n{number}")), [number; 32], &quiet()).unwrap());
            }
        });
        let now = KnownNodes::load_from(path.clone()).unwrap();
        assert_eq!(now.pins.len(), 9);
        assert!(std::fs::symlink_metadata(&path).unwrap().is_symlink());
        std::fs::write(&real, line("b", 9)).unwrap();
        assert_eq!(stale.remember(&node("b"), [8; 32], &quiet()).unwrap_err().code, ErrorCode::KeyMismatch);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is left beside them");
    }
}
