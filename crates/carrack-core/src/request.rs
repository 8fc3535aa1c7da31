//! What was asked for, in types that cannot be wrong. The command line makes them; nothing further in parses text.

use std::time::Duration;

use crate::location::{Location, NodeAddress};
use crate::tuning;
use crate::words::words;

/// One run of `carrack copy`.
#[derive(Clone, Debug)]
pub struct CopyRequest {
    /// At least one.
    pub sources: Vec<Location>,
    /// Where they go.
    pub destination: Location,
    /// Everything that flags decide.
    pub options: CopyOptions,
}

impl CopyRequest {
    /// What the node of the sources is shown, and what the node of the destination is. A token of which nobody has said whose it is goes to
    /// neither of two nodes: one of them would learn the other's.
    pub fn credentials(&self) -> (Credential, Credential) {
        let options = &self.options;
        let (source, destination) = (options.source_credential.clone(), options.destination_credential.clone());
        let named = self.sources.iter().chain([&self.destination]).filter_map(Location::node);
        if are_one_node(named) { (source, destination) } else { (source.of_several(), destination.of_several()) }
    }
}

/// Whether all of these are the same node; or there are none.
pub fn are_one_node<'a>(mut nodes: impl Iterator<Item = &'a NodeAddress>) -> bool {
    let first = nodes.next().map(NodeAddress::known_as);
    nodes.all(|node| first.as_ref() == Some(&node.known_as()))
}

/// The bearer token that a node is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Credential {
    /// The one that is kept for this node; if there is none, one that is found where other tools keep theirs. Either only if the node's key
    /// was pinned before the command began.
    #[default]
    Found,
    /// The one that is kept for this node, if its key was pinned before the command began.
    Kept,
    /// The one in this file, also at a first meeting.
    File(Vec<u8>),
}

impl Credential {
    /// The same where the command names several nodes: a token that is only found is shown to none of them.
    #[must_use]
    pub fn of_several(self) -> Self {
        if self == Self::Found { Self::Kept } else { self }
    }
}

/// What the flags of a copy decide. `Default` is what a user gets who types none.
#[derive(Clone, Debug)]
pub struct CopyOptions {
    /// Print the plan, move nothing.
    pub dry_run: bool,
    /// What happens to a name that exists already, or does not.
    pub existing: Existing,
    /// How a file is proved before its name appears.
    pub verify: Verify,
    /// Which digests are computed while the bytes move.
    pub digest: Digests,
    /// Whether data streams keep secrets.
    pub encrypt: Encrypt,
    /// Data connections; `None` lets the path and the processors decide.
    pub streams: Option<u16>,
    /// Unit of sending, hashing and repair, in bytes: a power of two within [`crate::limits::BLOCK_BYTES_MIN`] and
    /// [`crate::limits::BLOCK_BYTES_MAX`]; `None` lets the sources decide.
    pub block_bytes: Option<u32>,
    /// Upper bound of the payload rate, bytes a second over all streams.
    pub rate_limit: Option<u64>,
    /// How the sending host's TCP reacts to loss and delay; `None` leaves it to that host.
    pub congestion: Option<CongestionControl>,
    /// How the hosts are reached.
    pub reach: Reach,
    /// What the sources' node is shown, if they are on one. [`CopyRequest::credentials`] says what is used.
    pub source_credential: Credential,
    /// The same for the destination's node.
    pub destination_credential: Credential,
    /// Report every item, not only those that failed (for `-v`, `--json` and `--manifest`).
    pub item_events: bool,
    /// What has to have reached stable storage, and when.
    pub durability: Durability,
    /// A source may grow while it is copied: what it had when it was listed is copied.
    pub allow_growing: bool,
    /// Attempts in a row that may get nowhere.
    pub retries: u32,
    /// From the start to giving up.
    pub deadline: Option<Duration>,
    /// Go on from where an earlier attempt of the same copy stood.
    pub resume: bool,
    /// Of what the sources name, only these and what is below them: paths relative to the destination, as the report names them.
    pub only: Option<Vec<Vec<u8>>>,
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self {
            dry_run: false,
            existing: Existing::Replace,
            verify: Verify::Wire,
            digest: Digests::BLAKE3,
            encrypt: Encrypt::Tls,
            streams: None,
            block_bytes: None,
            rate_limit: None,
            congestion: None,
            reach: Reach::default(),
            source_credential: Credential::default(),
            destination_credential: Credential::default(),
            item_events: false,
            durability: Durability::Group,
            allow_growing: false,
            retries: tuning::RETRIES,
            deadline: None,
            resume: true,
            only: None,
        }
    }
}

/// The name of a congestion control, as the kernel knows it: `cubic`, `bbr`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CongestionControl {
    name: [u8; Self::BYTES_MAX],
    length: u8,
}

impl CongestionControl {
    /// The longest name that Linux takes, in bytes.
    pub const BYTES_MAX: usize = 15;

    /// `None` if no congestion control can have that name.
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=Self::BYTES_MAX).contains(&name.len());
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !fits || !name.bytes().all(plain) {
            return None;
        }
        let mut bytes = [0; Self::BYTES_MAX];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Some(Self { name: bytes, length: name.len() as u8 })
    }

    /// The name.
    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.name[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl std::fmt::Debug for CongestionControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

words! {
    /// What happens to a destination name that exists already, or does not.
    pub enum Existing {
        0 Replace "replace" "replace it, once the new file is whole"
        1 Keep "keep" "leave it as it is"
        2 Only "only" "write only over names that exist"
        3 Older "older" "replace it if the source's modification time is later"
    }
}

words! {
    /// How a file is proved before its name appears.
    pub enum Verify {
        0 Wire "wire" "compare the digest of what the receiver wrote"
        /// Storage is read past the cache.
        1 Disk "disk" "compare also what storage gives back"
        3 Source "source" "as wire, and compare the source read a second time"
        /// The report says so.
        2 None "none" "compare nothing"
    }
}

words! {
    /// What has to have reached stable storage before it is said to be there.
    #[derive(Default)]
    pub enum Durability {
        /// The names are synced at the end.
        #[default]
        0 Group "group" "sync files in groups before their names appear"
        1 Each "each" "sync each file before its name appears, and the name right after"
        /// The copy is *received*, not *durable*.
        2 None "none" "sync nothing"
    }
}

words! {
    /// The digest that what arrives is verified by.
    pub enum MainDigest {
        Blake3 "blake3" "cryptographic; the digests of blocks merge into the file's, which is what b3sum prints"
        /// XXH3 with 128 bits. Anyone who wants to can make other content with the same digest. The digests of blocks do not merge into the
        /// file's.
        Xxh128 "xxh128" "a small part of BLAKE3's cost; it finds accidents, not forgery"
    }
}

/// Digests computed in the one pass that moves the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digests {
    /// The digest that blocks and files are verified by.
    pub main: Option<MainDigest>,
    /// For catalogues that want it (WLCG).
    pub adler32: bool,
    /// For catalogues that want it.
    pub crc32c: bool,
}

impl Digests {
    /// None at all: nobody needs to see the bytes.
    pub const NONE: Self = Self { main: None, adler32: false, crc32c: false };
    /// What a copy computes where nothing else is asked for.
    pub const BLAKE3: Self = Self { main: Some(MainDigest::Blake3), ..Self::NONE };
    /// XXH3-128 alone.
    pub const XXH128: Self = Self { main: Some(MainDigest::Xxh128), ..Self::NONE };

    /// Whether any is wanted.
    pub fn any(self) -> bool {
        self != Self::NONE
    }
}

words! {
    /// Whether data streams keep secrets. Both kinds authenticate every frame.
    pub enum Encrypt {
        Tls "tls" "TLS 1.3 on every stream"
        /// Each frame's header and digest stand under a keyed MAC.
        None "none" "in the clear, every frame authenticated, its content only with BLAKE3"
    }
}

/// How hosts are reached and data connections made.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The ssh command and its arguments.
    pub rsh: Vec<String>,
    /// Where the remote `carrack` is, when not on the remote PATH.
    pub remote_path: Option<String>,
    /// What an ssh host without an agent is sent.
    pub push: Push,
    /// Ports that an agent may listen on, inclusive; `None` lets the kernel choose.
    pub ports: Option<(u16, u16)>,
    /// The address that data connections go to, instead of the one that the control connection used.
    pub data_address: Option<String>,
    /// Only this kind of link.
    pub link: Option<LinkKind>,
    /// From starting ssh, or connecting to a node, to its first word. Typing a password counts.
    pub connect_timeout: Duration,
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            rsh: vec!["ssh".into()],
            remote_path: None,
            push: Push::Itself,
            ports: None,
            data_address: None,
            link: None,
            connect_timeout: tuning::CONNECT_TIMEOUT,
        }
    }
}

/// What an ssh host without an agent is sent.
#[derive(Clone, Copy, Debug)]
pub enum Push {
    /// Nothing: it is an error that it has none.
    Never,
    /// The running program's own file.
    Itself,
    /// A smaller program that the running one carries.
    Slim(&'static SlimProgram),
}

/// A program for other hosts of the same system and kind of processor, compressed.
pub struct SlimProgram {
    /// The program, in gzip's format.
    pub gzip: &'static [u8],
    /// Length of the program, unpacked, in bytes.
    pub size: u64,
    /// BLAKE3 of the program, unpacked.
    pub blake3: [u8; 32],
    /// What POSIX's `cksum` says of the program, unpacked.
    pub cksum: u32,
    /// Unpacks it, for a host that has no `gzip`; `None` if it is damaged.
    pub unpack: fn(&[u8]) -> Option<Vec<u8>>,
}

impl std::fmt::Debug for SlimProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlimProgram").field("size", &self.size).finish_non_exhaustive()
    }
}

words! {
    /// How data streams run between the two ends.
    pub enum LinkKind {
        Memory "memory" "both ends are this process"
        /// Of two remote hosts: the source.
        Direct "direct" "the side that the command runs on connects"
        Reverse "reverse" "the other side connects"
        Tunnel "tunnel" "over the control connections, through the machine where the command runs"
    }
}

impl LinkKind {
    /// The kinds that can be asked for: memory is used wherever both ends are one process.
    pub const BETWEEN_HOSTS: &'static [Self] = &[Self::Direct, Self::Reverse, Self::Tunnel];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: &str, port: u16) -> Location {
        Location::Node { node: NodeAddress { host: host.into(), port, pin: None }, path: Vec::new() }
    }

    #[test]
    fn credentials_of_two_nodes_are_never_found() {
        let request = |source: Location, destination: Location| CopyRequest {
            sources: vec![source],
            destination,
            options: CopyOptions::default(),
        };
        let here = Location::Local(b"f".to_vec());
        for (source, destination) in
            [(node("a", 1), here.clone()), (here.clone(), node("a", 1)), (node("a", 1), node("A.", 1))]
        {
            assert_eq!(request(source, destination).credentials(), (Credential::Found, Credential::Found));
        }
        for destination in [node("b", 1), node("a", 2)] {
            let mut request = request(node("a", 1), destination);
            assert_eq!(request.credentials(), (Credential::Kept, Credential::Kept));
            request.options.source_credential = Credential::File(b"t".to_vec());
            assert_eq!(request.credentials(), (Credential::File(b"t".to_vec()), Credential::Kept));
        }
    }
}
