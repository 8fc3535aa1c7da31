//! What the command asks of an agent: each request checked, so that whoever carries it out need not.

mod fields;
mod survey;

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

pub use self::survey::Survey;

use super::options::TransferOptions;
use super::session_key::SessionKey;
use crate::accounts::AccountMaps;
use crate::backup::Backup;
use crate::filter::{FileBounds, Filters, RuleForm, SourceLinks};
use crate::fingerprint::Fingerprint;
use crate::ids::StreamId;
use crate::limits;
use crate::plan::compare::State;
use crate::reference::ReferenceDirectories;
use crate::request::{Confinement, DeleteOrder, Digests};
use crate::wire::mux::Channel;
use crate::words::words;

/// What the command asks of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The first request: versions, and a node's token.
    Hello(Hello),
    /// What are these paths? They are as typed.
    Inspect(Vec<Vec<u8>>),
    /// Accept data connections.
    Listen(Listen),
    /// Make data connections.
    Dial(Dial),
    /// Carry a data stream over this connection.
    Tunnel(Tunnel),
    /// Start sending or receiving.
    Begin(Begin),
    /// Stop what runs and clean up.
    Cancel,
    /// List a directory, or describe a path.
    List(List),
    /// Make a directory.
    MakeDirectory(MakeDirectory),
    /// Give a path another name.
    Rename(Rename),
    /// Remove paths.
    Remove(Remove),
    /// Digests of files.
    Sum(Sum),
    /// The end: the agent closes the connection.
    Bye,
    /// Of what the next `Begin` names, send only these paths, relative to the destination. Several requests add up.
    Select(Vec<Vec<u8>>),
    /// Of what the next `Begin` names, the files at these paths, relative to the destination, get their names only with
    /// these BLAKE3 digests. Several requests add up.
    Expect(Vec<(Vec<u8>, [u8; 32])>),
    /// Of what the next `Begin` and every `List` and `Sum` before it name, this is left out, or kept from being
    /// deleted. The rules of several requests follow each other.
    Filter(Filter),
    /// Remove what transfers have left that nobody will take up again.
    Collect(Collect),
    /// End so many data streams in good order, each when what it carries has landed; one stays. Asked of a sender.
    Retire(u32),
    /// Have so many data streams go on that were asked to end and are still connected. Asked of a sender.
    Wake(u32),
    /// What does your clock say, in microseconds since the agent began?
    Clock,
    /// Which way do your packets take to the other end of the transfer?
    Trace,
    /// What does your host say of itself? Answered by pages of evidence, and how many texts there are.
    Evidence(EvidenceAbout),
    /// A range of a file. Answered by what the file is, parts of it, and how many bytes there were.
    Read(ReadFile),
    /// The answer to [`Tell::Deletion`](super::Tell::Deletion): whether it may be done.
    MayDelete(bool),
    /// Directories that may have files of what the next `Begin` receives. Who does not know the request cannot do what
    /// was asked for.
    Refer(ReferenceDirectories),
    /// Owners and groups that become others in what the next `Begin` receives. Who does not know the request cannot do
    /// what was asked for.
    Accounts(AccountMaps),
}

/// What is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Rules in their order, as they were given.
    pub rules: Vec<(RuleForm, Vec<u8>)>,
    /// What a plain rule leaves out is deleted.
    pub deletes_excluded: bool,
    /// Only files within these are taken.
    pub files: FileBounds,
    /// Directories where another file system begins are taken as empty.
    pub one_file_system: bool,
    /// What becomes of symbolic links.
    pub links: SourceLinks,
    /// Where the destination keeps what it replaces, nothing goes.
    pub backup: Option<Backup>,
}

impl Filter {
    /// What is left out, in as many messages as it takes; none where nothing is left out or kept.
    pub fn messages(filters: &Filters, backup: Option<&Backup>) -> Vec<Self> {
        let mut rules = filters.lines().map(|(form, line)| (form, line.to_vec())).peekable();
        let mut messages = Vec::new();
        let mut is_first = !filters.is_empty() || backup.is_some();
        while std::mem::take(&mut is_first) || rules.peek().is_some() {
            let (mut room, mut page) = (limits::TOLD_BYTES, Vec::new());
            while let Some(rule) = rules.next_if(|_| room > 0) {
                room = room.saturating_sub(rule.1.len() + 8);
                page.push(rule);
            }
            messages.push(Self {
                rules: page,
                deletes_excluded: filters.deletes_excluded(),
                files: filters.files,
                one_file_system: filters.one_file_system,
                links: filters.links,
                backup: backup.cloned(),
            });
        }
        messages
    }
}

/// Which versions the command speaks.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Hello {
    /// The number of the oldest.
    pub oldest: u32,
    /// The number of the newest.
    pub newest: u32,
    /// The program's version, for messages.
    pub program: String,
    /// A node's bearer token; empty where none is shown.
    pub token: String,
    /// What the agent keeps to for the whole session. Of agents that ssh starts alone.
    pub confinement: Option<Confinement>,
}

impl fmt::Debug for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { oldest, newest, program, .. } = self;
        write!(f, "Hello {{ {oldest} to {newest}, {program:?} }}")
    }
}

/// Ports that may be listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The lowest port of the range.
    pub low: u16,
    /// The highest port of the range, which belongs to it.
    pub high: u16,
}

/// Accept data connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The session that they are for, and the secret that they prove.
    pub session: SessionKey,
    /// Ports allowed; `None` for any.
    pub ports: Option<Ports>,
}

/// Make data connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dial {
    /// The session that they are for, and the secret that they prove.
    pub session: SessionKey,
    /// `host:port`, tried one after the other.
    pub addresses: Vec<String>,
    /// SHA-256 of the public key that the listener must show.
    pub pin: [u8; 32],
    /// The number of the first connection.
    pub first: StreamId,
    /// How many, at most [`limits::STREAMS`]. Every number up to the last fits into 16 bits.
    pub count: u16,
    /// When to give up: 1 ms to [`limits::DIAL_TIMEOUT`].
    pub timeout: Duration,
    /// Most bytes of a TCP segment in both directions; 0 lets TCP decide.
    pub segment: u32,
    /// Say `Connected` as soon as TCP has connected, before anybody has proved anything. An end that does
    /// not know this says nothing.
    pub tell_connected: bool,
}

/// Carry a data stream inside the control connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// The session that it is for.
    pub session: SessionKey,
    /// Channel of the multiplexed connection, from [`Channel::FIRST_TUNNEL`] on.
    pub channel: Channel,
    /// Whether this end speaks first.
    pub dials: bool,
}

/// Start sending or receiving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begin {
    /// Options of the transfer.
    pub options: TransferOptions,
    /// Whether this end sends or receives, and what.
    pub role: Role,
}

/// What an end does in a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It reads and sends.
    Send(SendRole),
    /// It receives and writes.
    Receive(ReceiveRole),
}

/// The sending role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendRole {
    /// What is sent: at most [`limits::SOURCES`].
    pub sources: Vec<SourceSpec>,
    /// The receiver knows items of an earlier attempt: ask before sending.
    pub known: bool,
}

/// One source of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSpec {
    /// Where its bytes come from.
    pub origin: Origin,
    /// Where it goes, relative to the destination directory; empty for the directory itself.
    pub target: Vec<u8>,
}

/// Where the bytes of a source come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// What is at this path, as typed.
    Path(Vec<u8>),
    /// The program's standard input.
    Stdin,
    /// This many bytes of zeros.
    Zeros(u64),
    /// This many random bytes.
    Random(u64),
}

words! {
    /// What becomes of the bytes that a receiver gets.
    pub enum Sink {
        0 Files "files" "files below a directory"
        1 Stdout "stdout" "the program's standard output"
        2 Null "null" "nothing is kept"
        3 Device "device" "a device or FIFO, written in place"
        4 Memory "memory" "bytes are taken into memory, and nothing is kept"
    }
}

/// The receiving role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveRole {
    /// What becomes of the bytes.
    pub sink: Sink,
    /// The directory that targets are relative to, made when missing; the path of a device or FIFO.
    pub directory: Vec<u8>,
    /// What is taken: items of these names and what is below them. None: whatever comes.
    pub targets: Vec<Vec<u8>>,
    /// What the marker is found by when the same is copied again; `None` for no marker. The answer
    /// to `Begin` counts the items that it knows.
    pub marker: Option<MarkerKey>,
    /// What an earlier attempt has left under that key is not used, but removed.
    pub anew: bool,
    /// The sender leaves items out by a selection: what an earlier attempt has left of these stays.
    pub partial: bool,
    /// The attributes of the source itself do not come: of that only some paths are copied.
    pub lacks_top: bool,
    /// What only the destination has is deleted.
    pub delete: Option<DeleteOrder>,
    /// What is replaced or deleted is kept.
    pub backup: Option<Backup>,
}

/// What a marker is found by.
pub type MarkerKey = [u8; limits::MARKER_KEY_BYTES];

/// List a directory, or describe a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// The path as the user typed it, not yet resolved.
    pub path: Vec<u8>,
    /// Lists everything below as well.
    pub recursive: bool,
    /// Describe the path itself, even when it is a directory.
    pub itself: bool,
    /// The sources of a copy, up to the one of this path: an entry whose name an earlier one has, too, bears a
    /// failure.
    pub sources: Vec<SourceSpec>,
    /// Tell of each entry what it takes of the storage, too.
    pub usage: bool,
    /// Tell of each entry its owner and group, how many names it has, its access control list, and the names of its
    /// extended attributes, too.
    pub details: bool,
    /// Tell everything below as it is compared with another tree.
    pub survey: Option<Survey>,
}

/// Make a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MakeDirectory {
    /// The path as the user typed it, not yet resolved.
    pub path: Vec<u8>,
    /// And those above it; then one that exists is fine.
    pub parents: bool,
}

/// Which path gets which name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// The path that is renamed, as the user typed it.
    pub from: Vec<u8>,
    /// The new path, as the user typed it.
    pub to: Vec<u8>,
    /// To this very name, and only if nothing has it.
    pub no_replace: bool,
}

/// Which path is removed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remove {
    /// The path as the user typed it, not yet resolved.
    pub path: Vec<u8>,
    /// A directory with everything below it.
    pub recursive: bool,
    /// What cannot be removed below it is told in pages, as entries with a failure, and the answer is how
    /// many were removed. Without that the first such failure is the answer. Either way all is removed that can be.
    pub go_on: bool,
    /// Of a directory, with everything below it, only directories in which nothing else is. Nothing but a
    /// directory is removed. Not with `recursive`.
    pub empty_only: bool,
    /// Only a file or a link that still is this, as its host finds at the moment of removal.
    pub unchanged: Option<State>,
}

/// Digests of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// As typed; a directory stands for all files below it.
    pub path: Vec<u8>,
    /// Which.
    pub digests: Digests,
    /// A directory is refused.
    pub one_file: bool,
}

/// A range of a file, read over the control connection: for a look into a file or a download of one, not for copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFile {
    /// The path as the user typed it, not yet resolved.
    pub path: Vec<u8>,
    /// Where the range begins.
    pub offset: u64,
    /// Its bytes; what lies behind the file's end is left out.
    pub length: u64,
    /// Only if the file is still the one that was known by this; `None` for whatever is there.
    pub identity: Option<Fingerprint>,
}

/// Remove what transfers have left that nobody will take up again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collect {
    /// As typed: a directory, searched with everything below.
    pub path: Vec<u8>,
    /// Only what nothing has been written to for so long, in whole seconds.
    pub older: Duration,
    /// Report what would be removed, and remove nothing.
    pub dry_run: bool,
    /// Only what the copy with this marker key has left in `path`, however old it is. With `dry_run` the
    /// unfinished files that its marker tells of are named, by the names that they would get.
    pub marker: Option<MarkerKey>,
}

/// What evidence is gathered about, beside the host itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvidenceAbout {
    /// The address that data would go to: which way would it take?
    pub peer: Option<IpAddr>,
    /// A directory that data would go to or come from, as typed; empty for none.
    pub directory: Vec<u8>,
    /// So many data connections of this session, at most [`limits::EVIDENCE_CONNECTIONS`]: what TCP knows of each.
    pub connections: usize,
}

#[cfg(test)]
mod tests {
    use super::fields::refused_sources;
    use super::*;
    use crate::failure::ErrorCode;
    use crate::path::check_relative;
    use crate::wire::ProtocolError;
    use crate::wire::control::options::RawOptions;
    use crate::wire::control::raw;

    fn checked(ask: raw::Ask) -> Result<Ask, ProtocolError> {
        Ask::decode(&raw::ToAgent { request: 1, ask: Some(ask) }.to_bytes()).unwrap().1
    }

    fn code(ask: raw::Ask) -> Option<ErrorCode> {
        checked(ask).err().map(|error| error.code)
    }

    fn options() -> Option<RawOptions> {
        Some(RawOptions { block_bytes: 1 << 20, version: 1, ..RawOptions::default() })
    }

    fn session() -> Option<raw::Session> {
        Some(raw::Session { id: vec![1; 16], secret: vec![2; 32], encrypt: true })
    }

    #[test]
    fn asks_that_cost_too_much_are_refused() {
        let long = vec![b'n'; limits::PATH_BYTES + 1];
        let inspect = |paths| raw::Ask::Inspect(raw::Paths { paths });
        assert_eq!(code(inspect(vec![Vec::new(); limits::INSPECTED_PATHS])), None);
        assert_eq!(code(inspect(vec![Vec::new(); limits::INSPECTED_PATHS + 1])), Some(ErrorCode::ProtocolViolation));
        assert_eq!(code(inspect(vec![long.clone()])), Some(ErrorCode::BadPath));
        let rename = raw::Rename { to: long.clone(), ..raw::Rename::default() };
        assert_eq!(code(raw::Ask::Rename(rename)), Some(ErrorCode::BadPath));
        let addresses = vec![String::new(); limits::DIAL_ADDRESSES + 1];
        let dial = raw::Dial { addresses, ..raw::Dial::default() };
        assert_eq!(code(raw::Ask::Dial(dial)), Some(ErrorCode::ProtocolViolation));
        let directory = raw::ReceiveRole { directory: long, ..raw::ReceiveRole::default() };
        let begin = |role| raw::Ask::Begin(raw::Begin { options: options(), role: Some(role) });
        assert_eq!(code(begin(raw::Role::Receive(directory))), Some(ErrorCode::BadPath));
        let sources = vec![raw::Source::default(); limits::SOURCES + 1];
        let many = begin(raw::Role::Send(raw::SendRole { sources, known: false }));
        assert_eq!(checked(many), Err(refused_sources()));
    }

    #[test]
    fn targets_are_names() {
        let send = |target: &[u8]| {
            let source = raw::Source { target: target.to_vec(), ..raw::Source::default() };
            let role = raw::Role::Send(raw::SendRole { sources: vec![source], known: false });
            code(raw::Ask::Begin(raw::Begin { options: options(), role: Some(role) }))
        };
        for target in [&b""[..], b"name", b"a/b", &[b'n'; 255]] {
            assert_eq!(send(target), None, "{target:?}");
        }
        for target in [&b"../x"[..], b"/x", b"a/", b"a\0", &[b'n'; 256], &b"n/".repeat(200)[..399]] {
            assert_eq!(send(target), Some(ErrorCode::BadPath), "{target:?}");
        }
    }

    /// The longest that a walk finds, below the longest target, still has a length of two bytes.
    #[test]
    fn longest_path_has_a_length_on_the_wire() {
        assert!(u16::try_from(limits::PATH_BYTES).is_ok());
        assert!(check_relative(&b"n/".repeat(limits::PATH_BYTES)[..limits::PATH_BYTES]).is_ok());
    }

    #[test]
    fn dial_numbers_fit_and_its_timeout_is_bounded() {
        let dial = |first, count, timeout_ms| {
            let dial =
                raw::Dial { first, count, timeout_ms, pin: vec![3; 32], session: session(), ..Default::default() };
            match checked(raw::Ask::Dial(dial)) {
                Ok(Ask::Dial(dial)) => Some((dial.first.0, dial.count, dial.timeout)),
                _ => None,
            }
        };
        let second = Duration::from_secs(1);
        assert_eq!(dial(65_535, 1, 1000), Some((65_535, 1, second)));
        assert_eq!(dial(0, 0, 0), Some((0, 0, Duration::from_millis(1))));
        assert_eq!(dial(7, 256, u32::MAX), Some((7, 256, limits::DIAL_TIMEOUT)));
        for (first, count) in [(65_535, 2), (65_536, 0), (0, 257), (u32::MAX, 1), (1, u32::MAX)] {
            assert_eq!(dial(first, count, 1), None, "{count} from {first}");
        }
    }

    #[test]
    fn listen_ports_are_ports_and_none_is_any() {
        let listen = |port_low, port_high| match checked(raw::Ask::Listen(raw::Listen {
            session: session(),
            port_low,
            port_high,
        })) {
            Ok(Ask::Listen(listen)) => Ok(listen.ports.map(|ports| (ports.low, ports.high))),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        };
        assert_eq!(listen(4000, 4999), Ok(Some((4000, 4999))));
        assert_eq!((listen(0, 0), listen(0, 5), listen(5, 0)), (Ok(None), Ok(None), Ok(None)));
        assert!(listen(1, 65_536).is_err() && listen(u32::MAX, 1).is_err());
    }

    #[test]
    fn tunnel_channels_are_those_of_tunnels() {
        for (channel, is_one) in [(0, false), (1, false), (2, true), (65_535, true), (65_536, false)] {
            let tunnel = raw::Tunnel { session: session(), channel, dial: true };
            assert_eq!(checked(raw::Ask::Tunnel(tunnel)).is_ok(), is_one, "{channel}");
        }
    }

    #[test]
    fn select_takes_paths_below_a_destination_alone() {
        let select = |path: &[u8]| code(raw::Ask::Select(raw::Paths { paths: vec![path.to_vec()] }));
        assert_eq!(select(b"a/b"), None);
        for path in [&b""[..], b"/a", b"../a", b"a//b", &vec![b'n'; limits::PATH_BYTES + 1]] {
            assert_eq!(select(path), Some(ErrorCode::BadPath));
        }
    }

    #[test]
    fn links_are_treated_in_known_ways_alone() {
        let filter = |links| checked(raw::Ask::Filter(raw::Filter { links, ..raw::Filter::default() }));
        let of = |links| match filter(links) {
            Ok(Ask::Filter(filter)) => Some(filter.links.number()),
            _ => None,
        };
        assert_eq!((0..5).filter_map(of).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert!([5, u32::MAX].iter().all(|&links| filter(links).is_err()));
    }

    #[test]
    fn marker_key_has_its_length_or_is_none() {
        let key = |bytes: usize| {
            let role = raw::ReceiveRole { marker: vec![1; bytes], ..raw::ReceiveRole::default() };
            let begin = raw::Begin { options: options(), role: Some(raw::Role::Receive(role)) };
            match checked(raw::Ask::Begin(begin)) {
                Ok(Ask::Begin(Begin { role: Role::Receive(role), .. })) => Ok(role.marker),
                Ok(other) => panic!("{other:?}"),
                Err(error) => Err(error),
            }
        };
        assert_eq!((key(0), key(8)), (Ok(None), Ok(Some([1; 8]))));
        assert!(key(7).is_err() && key(9).is_err());
        let collect = |bytes: usize| {
            checked(raw::Ask::Collect(raw::Collect { marker: vec![1; bytes], ..raw::Collect::default() }))
        };
        let found = collect(8).unwrap();
        assert!(matches!(found, Ask::Collect(Collect { marker: Some(key), .. }) if key == [1; 8]), "{found:?}");
        assert!(collect(7).is_err() && collect(9).is_err());
    }

    #[test]
    fn remote_ends_have_no_standard_streams() {
        let send = |origin| {
            let source = SourceSpec { origin, target: b"t".to_vec() };
            Role::Send(SendRole { sources: vec![SourceSpec::at(b"a"), source], known: false })
        };
        assert!(send(Origin::Path(b"b".to_vec())).check_remote().is_ok());
        assert_eq!(send(Origin::Stdin).check_remote(), Err(refused_sources()));
        for origin in [Origin::Zeros(1), Origin::Random(1)] {
            assert!(send(origin.clone()).check_remote().is_ok() && send(origin).is_synthetic());
        }
        assert!(!send(Origin::Path(b"b".to_vec())).is_synthetic());
        for &sink in Sink::ALL {
            let role = raw::ReceiveRole { sink: sink.number(), ..raw::ReceiveRole::default() };
            let role = Role::Receive(role.try_into().unwrap());
            assert_eq!(role.check_remote().is_ok(), sink != Sink::Stdout);
            assert_eq!(role.is_synthetic(), matches!(sink, Sink::Null | Sink::Memory));
        }
    }

    #[test]
    fn evidence_is_asked_about_an_address_or_none() {
        let about = |peer: &str| {
            let about = raw::EvidenceAbout { peer: peer.to_owned(), ..raw::EvidenceAbout::default() };
            match checked(raw::Ask::Evidence(about)) {
                Ok(Ask::Evidence(about)) => Ok(about.peer),
                Ok(other) => panic!("{other:?}"),
                Err(error) => Err(error),
            }
        };
        assert_eq!((about(""), about("fd77::2")), (Ok(None), Ok(Some("fd77::2".parse().unwrap()))));
        assert!(about("host").is_err() && about("10.0.0.1:22").is_err());
    }

    #[test]
    fn token_is_not_printed() {
        let hello = Hello { oldest: 1, program: "0".into(), token: "t0ken".into(), ..Hello::default() };
        assert!(!format!("{:?}", Ask::Hello(hello)).contains("t0ken"));
    }

    #[test]
    fn path_within_a_root_is_below_it_and_stands_not_alone() {
        let confined = |root: &[u8], within: &[u8]| {
            let hello = raw::Hello { root: root.to_vec(), within: within.to_vec(), ..raw::Hello::default() };
            checked(raw::Ask::Hello(hello)).is_ok()
        };
        assert!(confined(b"~/data", b"") && confined(b"/data", b"run/7") && confined(b"", b""));
        for (root, within) in [(&b""[..], &b"run"[..]), (b"/", b"../up"), (b"/", b"/run"), (b"/", b"a/../b")] {
            assert!(!confined(root, within), "{root:?} {within:?}");
        }
        assert!(!confined(&[b'/'; limits::PATH_BYTES + 1], b""));
    }
}
