//! What was asked for, in types that cannot be wrong. The command line makes them; nothing further in parses text.

mod choices;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::accounts::AccountMaps;
use crate::agents::AgentProgram;
use crate::attributes::KeptAttributes;
use crate::backup::Backup;
use crate::credential::Credential;
use crate::expected::ExpectedDigests;
use crate::filter::Filters;
use crate::growing::{GrowingIdle, GrowingLock, GrowingSources};
use crate::limits;
use crate::location::{Location, NodeAddress};
use crate::mode_change::ModeChange;
use crate::reference::ReferenceDirectories;
use crate::tuning;
use crate::words::{quoted, words};
pub use choices::{
    Compare, Delta, Durability, Existing, HardLinks, InPlace, KeptXattrs, MainDigest, Reflink, Renames, Verify,
};

/// One run of `carrack copy`.
#[derive(Clone, Debug)]
pub struct CopyRequest {
    /// At least one.
    pub sources: Vec<Location>,
    /// The place that the sources are copied to.
    pub destination: Location,
    /// Everything that flags decide.
    pub options: CopyOptions,
}

/// Whether all of these are the same node; or there are none.
pub fn are_one_node<'a>(mut nodes: impl Iterator<Item = &'a NodeAddress>) -> bool {
    let first = nodes.next().map(NodeAddress::known_as);
    nodes.all(|node| first.as_ref() == Some(&node.known_as()))
}

/// What the flags of a copy decide. `Default` is what a user gets who types none.
#[derive(Clone, Debug)]
pub struct CopyOptions {
    /// Print the plan, move nothing.
    pub dry_run: bool,
    /// A dry run compares both sides, also where a copy would send everything.
    pub plan: bool,
    /// What happens to a name that exists already, or does not.
    pub existing: Existing,
    /// What makes two files the same.
    pub compare: Compare,
    /// Modification times that differ by no more are one time.
    pub modify_window: Duration,
    /// How a file is proved before its name appears.
    pub verify: Verify,
    /// Which digests are computed while the bytes move.
    pub digest: Digests,
    /// Whether data streams keep secrets.
    pub encrypt: Encrypt,
    /// Data connections; `None` lets the path and the processors decide.
    pub streams: Option<u16>,
    /// Leave more of a path that others use to them: each data connection must raise the rate by 5 % in the place of
    /// 1 %. Without effect on a fixed number of connections.
    pub polite: bool,
    /// Unit of sending, hashing and repair, in bytes: a power of two within [`crate::limits::BLOCK_BYTES_MIN`] and
    /// [`crate::limits::BLOCK_BYTES_MAX`]; `None` lets the sources decide.
    pub block_bytes: Option<u32>,
    /// Upper bound of the payload rate, bytes a second over all streams.
    pub rate_limit: Option<u64>,
    /// How the sending host's TCP reacts to loss and delay; `None` leaves it to that host.
    pub congestion: Option<CongestionControl>,
    /// How the host of the sources is reached, and what it is shown.
    pub source: EndOptions,
    /// The same for the host of the destination.
    pub destination: EndOptions,
    /// How data may flow between the two.
    pub links: LinkSet,
    /// Report every item, not only those that failed (for `-v`, `--json` and `--manifest`).
    pub item_events: bool,
    /// Report every item that is made, changed or deleted at the destination, and in what it has changed.
    pub item_changes: bool,
    /// Report the files in flight.
    pub items_in_flight: bool,
    /// Modification times are not set at the destination: an item has the time at which it was written.
    pub no_times: bool,
    /// What is kept beside permissions and times.
    pub kept: KeptAttributes,
    /// How permissions are changed on the way.
    pub mode_change: Option<ModeChange>,
    /// Owners and groups that become others.
    pub accounts: AccountMaps,
    /// Owners and groups are kept by their numbers, and not by their names.
    pub numeric_ids: bool,
    /// What the destination may not set of owners, special bits and devices is written down beside items there.
    pub fake_super: bool,
    /// What is written down so beside items of the source counts as theirs.
    pub from_fake_super: bool,
    /// The destination itself gets owner, permissions and access control list of its source, also where it was there.
    pub top_attributes: bool,
    /// Links at the destination that lead to directories below it are kept, and written through.
    pub keep_directory_links: bool,
    /// What has to have reached stable storage, and when.
    pub durability: Durability,
    /// Whether of a file that the destination has in another state only what differs is sent.
    pub delta: Delta,
    /// Whether files that are copied within a file system share their blocks with their sources.
    pub reflink: Reflink,
    /// What travels over data streams is compressed where that makes it quicker.
    pub compress: bool,
    /// What becomes of a source that grows while it is copied.
    pub growing: GrowingSources,
    /// A file that is followed is whole when it has not grown for so long.
    pub growing_idle: Duration,
    /// It is whole when this file beside it goes.
    pub growing_lock: Option<GrowingLock>,
    /// Have both ends find the way that packets take to the other.
    pub trace: bool,
    /// Attempts in a row that may get nowhere.
    pub retries: u32,
    /// From the start to giving up.
    pub deadline: Option<Duration>,
    /// Go on from where an earlier attempt of the same copy stood.
    pub resume: bool,
    /// By what an earlier attempt is found at the destination; `None` makes it of what is copied and from where. Two
    /// copies with one key must be the same copy.
    pub marker_key: Option<[u8; limits::MARKER_KEY_BYTES]>,
    /// Of what the sources name, only these and what is below them: paths relative to the destination,
    /// as the report names them.
    pub only: Option<Vec<Vec<u8>>>,
    /// What is left out, and what is not deleted.
    pub filters: Filters,
    /// What the destination has and the source has not is deleted.
    pub delete: Option<DeleteOrder>,
    /// It is deleted before anything is sent, and not when all has been copied.
    pub delete_first: bool,
    /// What of what only the destination has is taken for a file that the source has under another name. Only where
    /// that is deleted, and not before anything is sent.
    pub renames: Renames,
    /// Which files are written over where they stand.
    pub in_place: InPlace,
    /// What is replaced or deleted is kept.
    pub backup: Option<Backup>,
    /// Directories at the destination that may have a file already.
    pub references: Option<ReferenceDirectories>,
    /// Files and links that have been copied, verified and synced are deleted at their source.
    pub remove_sources: bool,
    /// Whoever asks deletes the sources once they are copied: source and target may not be one.
    pub moves: bool,
    /// Nothing is copied or deleted unless each source is a directory where a mounted file system begins.
    pub require_mount: bool,
    /// Digests that files must have, by paths relative to the destination: one that has another gets no name there.
    pub expected: ExpectedDigests,
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self {
            dry_run: false,
            plan: false,
            existing: Existing::Replace,
            compare: Compare::Nothing,
            modify_window: Duration::ZERO,
            verify: Verify::Wire,
            digest: Digests::BLAKE3,
            encrypt: Encrypt::Tls,
            streams: None,
            polite: false,
            block_bytes: None,
            rate_limit: None,
            congestion: None,
            source: EndOptions::default(),
            destination: EndOptions::default(),
            links: LinkSet::ALL,
            item_events: false,
            item_changes: false,
            items_in_flight: false,
            no_times: false,
            kept: KeptAttributes::default(),
            mode_change: None,
            accounts: AccountMaps::default(),
            numeric_ids: false,
            fake_super: false,
            from_fake_super: false,
            top_attributes: false,
            keep_directory_links: false,
            durability: Durability::Group,
            delta: Delta::Auto,
            reflink: Reflink::Never,
            compress: false,
            growing: GrowingSources::Refuse,
            growing_idle: GrowingIdle::DEFAULT,
            growing_lock: None,
            trace: false,
            retries: tuning::RETRIES,
            deadline: None,
            resume: true,
            marker_key: None,
            only: None,
            filters: Filters::default(),
            delete: None,
            delete_first: false,
            renames: Renames::Never,
            in_place: InPlace::Never,
            backup: None,
            references: None,
            remove_sources: false,
            moves: false,
            require_mount: false,
            expected: ExpectedDigests::default(),
        }
    }
}

/// How what only the destination has is deleted, after everything has been copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteOrder {
    /// Where more would be deleted, nothing is.
    pub most: Option<u64>,
    /// Where more would be deleted, so many are: rsync's way.
    pub partial: bool,
    /// Where more hundredths of what the destination has would be deleted, nothing is: 0 to 100.
    pub share: Option<u8>,
    /// A source without anything in it empties the destination.
    pub allow_empty: bool,
    /// What failed keeps from being deleted only what is in directories that could not be listed.
    pub ignore_errors: bool,
    /// Whoever the copy is for is asked before much is deleted.
    pub asks: bool,
}

/// What a deletion comes to, before any of it is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletionExtent {
    /// Items that are to be deleted.
    pub items: u64,
    /// Items that the destination has, where it was compared with the source.
    pub of: u64,
    /// Bytes of the files among those that are to be deleted; `None` where it is not known which these are.
    pub bytes: Option<u64>,
}

impl DeletionExtent {
    /// Whether it is so much that it may be a mistake.
    pub fn is_large(&self) -> bool {
        self.items > limits::DELETED_UNASKED || self.items.saturating_mul(2) > self.of
    }
}

impl CopyOptions {
    /// Whether a dry run looks at both sides as the copy would, and does not only count all that the sources have.
    pub fn plans(&self) -> bool {
        let compares = self.compare != Compare::Nothing || self.existing != Existing::Replace;
        let chooses = self.only.is_some() || !self.filters.is_empty();
        let KeptAttributes { hard_links, devices, specials, .. } = self.kept;
        let makes = hard_links || devices || specials;
        self.dry_run && (self.plan || compares || chooses || makes || self.item_changes || self.delete.is_some())
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

    /// The name as the system has it.
    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.name[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl std::fmt::Debug for CongestionControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
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

    /// Parses `none`, or digests separated by commas.
    ///
    /// # Errors
    /// The sentence that refuses the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::NONE);
        }
        let mut digests = Self::NONE;
        for name in text.split(',') {
            let main = match name {
                "blake3" => MainDigest::Blake3,
                "xxh128" => MainDigest::Xxh128,
                "adler32" => {
                    digests.adler32 = true;
                    continue;
                }
                "crc32c" => {
                    digests.crc32c = true;
                    continue;
                }
                _ => {
                    let name = quoted(name);
                    return Err(format!("{name} is not a digest: use blake3, xxh128, adler32, crc32c, or none alone"));
                }
            };
            if digests.main.replace(main).is_some_and(|other| other != main) {
                return Err("blake3 and xxh128 are not computed together: name one of them".to_owned());
            }
        }
        Ok(digests)
    }

    /// The digests of a copy. BLAKE3 joins those that no block can be verified by. If nothing is asked for, a copy
    /// that verifies nothing computes nothing; but in the clear BLAKE3 is what keeps others from altering the content.
    ///
    /// # Errors
    /// The sentence that refuses to verify by nothing.
    pub fn of_copy(asked: Option<Self>, verify: Verify, encrypt: Encrypt) -> Result<Self, &'static str> {
        match asked {
            None if verify == Verify::None && encrypt != Encrypt::None => Ok(Self::NONE),
            None => Ok(Self::BLAKE3),
            Some(digests) if digests.any() => Ok(Self { main: digests.main.or(Self::BLAKE3.main), ..digests }),
            Some(_) if verify == Verify::None => Ok(Self::NONE),
            Some(_) => Err("digest none leaves nothing to verify by"),
        }
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

/// How one end's host is reached, and what it is shown. Without meaning where the end is in this process.
#[derive(Clone, Debug, Default)]
pub struct EndOptions {
    /// How connections to it are made.
    pub reach: Reach,
    /// What it is shown, if it is a node.
    pub credential: Credential,
    /// What its agent keeps to, if ssh starts it there; `None`: it goes wherever the login may.
    pub confinement: Option<Confinement>,
}

/// Where an agent stays for its whole session. Its paths begin at the root, and no link leads out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// A directory of the agent's host, as the login names it: a leading `~/` is its home.
    pub root: Vec<u8>,
    /// The one path below the root that may be used, and what is below that. It leads through no link. Empty for all.
    pub within: Vec<u8>,
}

/// How a host is reached and data connections to it are made.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The ssh command and its arguments.
    pub rsh: Vec<String>,
    /// Where the remote `carrack` is, when not on the remote PATH.
    pub remote_path: Option<String>,
    /// What an ssh host without an agent is sent.
    pub push: Push,
    /// Ports that its agent may listen on, inclusive; `None` lets the kernel choose.
    pub ports: Option<(u16, u16)>,
    /// The address that data connections to it go to, instead of the one that the control connection used.
    pub data_address: Option<String>,
    /// The address of a node whose name has been looked up: it is connected to, and the name is not looked up again.
    pub node_address: Option<IpAddr>,
    /// The address of this host that connections to it leave from and, if the end is this host, that data connections
    /// are accepted on. `None` lets the system choose. ssh makes its own connection and is not concerned.
    pub local_address: Option<IpAddr>,
    /// From starting ssh, or connecting to a node, to its first word. Typing a password counts.
    pub connect_timeout: Duration,
}

/// A clock shows no later time than this: whoever waits for longer waits for ever.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

impl Reach {
    /// When an attempt to connect that begins now has failed.
    pub fn connect_deadline(&self, now: Instant) -> Instant {
        now + self.connect_timeout.min(CONNECT_TIMEOUT_MAX)
    }
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            rsh: vec!["ssh".into()],
            remote_path: None,
            // Only a program that speaks as an agent may send its own file.
            push: Push::Never,
            ports: None,
            data_address: None,
            node_address: None,
            local_address: None,
            connect_timeout: tuning::CONNECT_TIMEOUT,
        }
    }
}

/// What an ssh host without an agent is sent.
#[derive(Clone, Copy, Debug)]
pub enum Push {
    /// Nothing: it is an error that it has none.
    Never,
    /// The first of these that starts there. Where none is for this system and kind of processor, the program that
    /// copies is one more, as it is: its own file's bytes, which this reads when they are needed.
    Agents(&'static [AgentProgram], fn() -> std::io::Result<Vec<u8>>),
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

/// Ways in which data may flow between two processes; in one process memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSet {
    direct: bool,
    reverse: bool,
    tunnel: bool,
}

impl LinkSet {
    /// Whichever works: direct is tried first, a tunnel is the last resort.
    pub const ALL: Self = Self { direct: true, reverse: true, tunnel: true };
    const NONE: Self = Self { direct: false, reverse: false, tunnel: false };

    /// One way and no other.
    pub const fn only(kind: LinkKind) -> Self {
        Self::NONE.with(kind, true)
    }

    /// All of these but one. Without [`LinkKind::Tunnel`] no data passes through the machine where the command
    /// runs, unless it is an end.
    #[must_use]
    pub const fn without(self, kind: LinkKind) -> Self {
        self.with(kind, false)
    }

    const fn with(mut self, kind: LinkKind, allowed: bool) -> Self {
        match kind {
            LinkKind::Memory => {}
            LinkKind::Direct => self.direct = allowed,
            LinkKind::Reverse => self.reverse = allowed,
            LinkKind::Tunnel => self.tunnel = allowed,
        }
        self
    }

    /// Whether data may flow this way.
    pub const fn allows(self, kind: LinkKind) -> bool {
        match kind {
            LinkKind::Memory => true,
            LinkKind::Direct => self.direct,
            LinkKind::Reverse => self.reverse,
            LinkKind::Tunnel => self.tunnel,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_timeout_beyond_any_clock_is_no_panic() {
        let now = Instant::now();
        let reach = |connect_timeout| Reach { connect_timeout, ..Reach::default() };
        assert_eq!(reach(Duration::from_secs(5)).connect_deadline(now), now + Duration::from_secs(5));
        assert!(reach(Duration::MAX).connect_deadline(now) > now + Duration::from_secs(3600));
    }

    #[test]
    fn options_of_digests_exclude_each_other() {
        let with = Digests { adler32: true, crc32c: true, ..Digests::XXH128 };
        assert_eq!(Digests::parse("crc32c,xxh128,adler32"), Ok(with));
        assert_eq!((Digests::parse("none"), Digests::parse("blake3,blake3")), (Ok(Digests::NONE), Ok(Digests::BLAKE3)));
        for text in ["", ",", "blake3,", "blake3,none", "none,none", "BLAKE3", " blake3", "md5", "blake3,xxh128"] {
            assert!(Digests::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn options_of_a_copy_compute_what_it_verifies_by() {
        let adler = Digests { adler32: true, ..Digests::NONE };
        let of = |asked, verify, encrypt| Digests::of_copy(asked, verify, encrypt);
        assert_eq!(of(None, Verify::Wire, Encrypt::Tls), Ok(Digests::BLAKE3));
        assert_eq!(of(None, Verify::None, Encrypt::Tls), Ok(Digests::NONE));
        assert_eq!(of(None, Verify::None, Encrypt::None), Ok(Digests::BLAKE3));
        assert_eq!(of(Some(adler), Verify::None, Encrypt::Tls), Ok(Digests { adler32: true, ..Digests::BLAKE3 }));
        assert_eq!(of(Some(Digests::NONE), Verify::None, Encrypt::None), Ok(Digests::NONE));
        for verify in [Verify::Wire, Verify::Disk, Verify::Source] {
            assert!(of(Some(Digests::NONE), verify, Encrypt::Tls).is_err(), "{verify:?}");
        }
    }

    #[test]
    fn links_are_a_set() {
        let between = [LinkKind::Direct, LinkKind::Reverse, LinkKind::Tunnel];
        let allowed = |set: LinkSet| between.map(|kind| set.allows(kind));
        assert_eq!(allowed(LinkSet::ALL), [true; 3]);
        assert_eq!(allowed(LinkSet::only(LinkKind::Reverse)), [false, true, false]);
        assert_eq!(allowed(LinkSet::ALL.without(LinkKind::Tunnel)), [true, true, false]);
        assert!(LinkSet::only(LinkKind::Tunnel).allows(LinkKind::Memory));
    }
}
