//! Why something failed, as data: what kind, on which side, where, in which call, and why; and the stable tables of
//! error codes and reasons, which travel in messages, stand in JSON and decide exit codes. A number, once given, keeps
//! its meaning; an unknown code from a newer peer becomes [`ErrorCode::Other`], an unknown reason none.
//!
//! What a user can try is not said here: whoever shows a failure decides it, from the code and the reason, and says it
//! in the words of that place (flags in a terminal, buttons on a page).

use std::borrow::Cow;
use std::fmt;

use crate::path::{display_bytes, ends_in};
use crate::words::words;

/// Why an item failed, or a whole transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure, from a stable table.
    pub code: ErrorCode,
    /// Where it happened.
    pub side: Side,
    /// The situation, where what to try depends on more than the code.
    pub reason: Option<Reason>,
    /// On what it happened.
    pub at: Option<Box<At>>,
    /// What was being done: `open`, `rename to its name`.
    pub call: Option<Cow<'static, str>>,
    /// What went wrong, in plain English. Names no flag; printable already.
    pub why: String,
    /// The failure that led to this one.
    pub source: Option<Box<Failure>>,
}

/// On what something failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// The end, in the words that the user typed for it; printable already.
    pub end: Option<String>,
    /// The path there.
    pub path: Option<Vec<u8>>,
    /// The place in the file, in bytes.
    pub offset: Option<u64>,
}

impl Failure {
    /// A failure of which no more is known than why.
    pub fn new(code: ErrorCode, side: Side, why: impl Into<String>) -> Self {
        Self { code, side, reason: None, at: None, call: None, why: why.into(), source: None }
    }

    /// The same in a situation that decides what to try.
    #[must_use]
    pub fn for_reason(mut self, reason: Reason) -> Self {
        self.reason = Some(reason);
        self
    }

    /// The same while this was being done.
    #[must_use]
    pub fn during(mut self, call: impl Into<Cow<'static, str>>) -> Self {
        self.call = Some(call.into());
        self
    }

    /// The same at this end. Where an end is named already it stays: who was closer knew better.
    #[must_use]
    pub fn at_end(mut self, end: impl Into<String>) -> Self {
        let at = self.at.get_or_insert_default();
        at.end.get_or_insert_with(|| end.into());
        self
    }

    /// The same on this path. Where a path is named already it stays: it may be longer.
    #[must_use]
    pub fn at_path(mut self, path: impl Into<Vec<u8>>) -> Self {
        let at = self.at.get_or_insert_default();
        at.path.get_or_insert_with(|| path.into());
        self
    }

    /// The same at this place in the file, in bytes.
    #[must_use]
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.at.get_or_insert_default().offset = Some(offset);
        self
    }

    /// The same because of another failure.
    #[must_use]
    pub fn caused_by(mut self, source: Failure) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// The end where it happened, if it is named.
    pub fn end(&self) -> Option<&str> {
        self.at.as_ref()?.end.as_deref()
    }

    /// The path on which it happened, if it is named.
    pub fn path(&self) -> Option<&[u8]> {
        self.at.as_ref()?.path.as_deref()
    }

    /// What it holds beside itself, in bytes.
    pub fn held_bytes(&self) -> usize {
        let length = |text: Option<&str>| text.map_or(0, str::len);
        let at = self
            .at
            .as_ref()
            .map_or(0, |at| size_of::<At>() + length(at.end.as_deref()) + at.path.as_ref().map_or(0, Vec::len));
        let source = self.source.as_ref().map_or(0, |source| size_of::<Self>() + source.held_bytes());
        self.why.len() + length(self.call.as_deref()) + at + source
    }

    /// Its text, made from all of its parts. See `Display`.
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// Its text as a list shows it that knows each entry's path. Where the failure names that path itself, by the same
    /// name or a longer one, it stands once; where it names another one, both do.
    pub fn message_of(&self, path: &[u8]) -> String {
        match self.path() {
            Some(own) if ends_in(own, path) || path.is_empty() => self.message(),
            Some(_) => format!("{}: {self}", display_bytes(path)),
            None => Composed { failure: self, path }.to_string(),
        }
    }

    /// The same as one text, of at most so many bytes: its code, side and reason stay.
    #[must_use]
    pub fn flat(&self, most: usize) -> Self {
        let mut why = self.message();
        if why.len() > most {
            let end = (0..=most.saturating_sub(CUT_OFF.len())).rev().find(|&end| why.is_char_boundary(end));
            why.truncate(end.unwrap_or(0));
            why.push_str(CUT_OFF);
        }
        Self { reason: self.reason, ..Self::new(self.code, self.side, why) }
    }
}

/// Where a text was cut off.
const CUT_OFF: &str = "…";

/// End, path, call with its place, why, and the text of its source, with a colon between each.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Composed { failure: self, path: self.path().unwrap_or_default() }.fmt(f)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// A failure on a path.
struct Composed<'a> {
    failure: &'a Failure,
    /// Empty: none.
    path: &'a [u8],
}

impl fmt::Display for Composed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { at, call, why, source, .. } = self.failure;
        let mut colon = "";
        let mut part = |text: &dyn fmt::Display| {
            let written = write!(f, "{colon}{text}");
            colon = ": ";
            written
        };
        if let Some(end) = at.as_ref().and_then(|at| at.end.as_ref()) {
            part(end)?;
        }
        if !self.path.is_empty() {
            part(&display_bytes(self.path))?;
        }
        match (call, at.as_ref().and_then(|at| at.offset)) {
            (Some(call), Some(offset)) => part(&format_args!("{call} at {offset}"))?,
            (Some(call), None) => part(call)?,
            (None, Some(offset)) => part(&format_args!("at {offset}"))?,
            (None, None) => {}
        }
        if !why.is_empty() {
            part(why)?;
        }
        if let Some(source) = source {
            part(source)?;
        }
        Ok(())
    }
}

words! {
    /// The situation in which something failed, where what to try depends on more than the code.
    pub enum Reason {
        1 SourceBusy "source-busy" "the source is written to all the time"
        2 SourceGrew "source-grew" "the source grew while it was read"
        3 SizeUnknown "size-unknown" "the source does not know its own size"
        4 SelectedAbsent "selected-absent" "a path that was selected is not there"
        5 SelectedUnplanned "selected-unplanned" "a path that was selected is not among what would be copied"
        6 SameNames "same-names" "two sources have the same name"
        7 TwinNames "twin-names" "the destination takes two names for one"
        8 OtherFileSystem "other-file-system" "the two names are on different file systems"
        9 DirectoryToRemove "directory-to-remove" "a directory was to be removed without what is below it"
        10 CongestionRefused "congestion-refused" "the system does not allow the congestion control that was asked for"
        11 AnswerTooLong "answer-too-long" "the answer is longer than a message may be"
        12 TokenMissing "token-missing" "the node wants a token, and none was shown"
        13 TokenWrong "token-wrong" "the node does not take the token that was shown"
        14 TokenOfSeveral "token-of-several" "a token was not shown because several nodes are named, and it belongs to one"
        15 FirstMeeting "first-meeting" "a token was not shown because the node has not been met before"
        16 KnownNodesUnusable "known-nodes-unusable" "the list of known nodes cannot be used"
        17 NodeAnew "node-anew" "the node shows another key than when it was first met"
        18 TypedKeyWrong "typed-key-wrong" "the node shows another key than its address names"
        19 NodeUnreached "node-unreached" "nothing answers where the node should be"
        20 DialsNoOwnAddress "dials-no-own-address" "the node does not connect to loopback, link-local or its own addresses"
        21 DialsOnlyAsker "dials-only-asker" "the node is anonymous or read-only, and connects only to the host that asks"
        22 AgentNotSent "agent-not-sent" "the host has no carrack, and none may be sent there"
        23 AgentNotKept "agent-not-kept" "no directory of the host can keep and run the agent"
        24 AgentNotFitting "agent-not-fitting" "the host has no carrack, and none that is here runs there"
        25 AgentSilent "agent-silent" "ssh connected, and no agent spoke in time"
        26 AgentEnded "agent-ended" "ssh connected, and the remote side did not run the agent"
        27 SshRefused "ssh-refused" "ssh does not connect without a person's help"
        28 SshConfiguration "ssh-configuration" "ssh does not understand its configuration"
        29 SshHostUnknown "ssh-host-unknown" "ssh does not know the host"
        30 BadRemotePath "bad-remote-path" "the path of the remote program has characters that cannot be passed on"
        31 NoRemoteShell "no-remote-shell" "the command that reaches other hosts is empty"
        32 OwnFileUnreadable "own-file-unreadable" "the program's own file cannot be read, and so not sent"
        33 OwnFileDamaged "own-file-damaged" "the program for other hosts that this one carries is damaged"
        34 LinkNotAllowed "link-not-allowed" "the links that were allowed cannot be made"
        35 NoAddress "no-address" "no address of the end is known here"
        36 SourceReplaced "source-replaced" "something else than a regular file stands where the source was"
        37 InTheWay "in-the-way" "what stands there cannot be replaced"
        38 SeveralHosts "several-hosts" "the sources are on different hosts"
        39 SourceTwice "source-twice" "a source is named twice"
        40 SpecialNamed "special-named" "a FIFO, socket or device was named as a source"
        41 BlockRefused "block-refused" "the destination's store takes no blocks of that size"
        42 GrantOutside "grant-outside" "the path is outside what the grant covers"
        43 GrantRight "grant-right" "the grant does not allow to do this"
        44 GrantCeiling "grant-ceiling" "a ceiling of the grant is reached"
        45 GrantExpired "grant-expired" "the grant has expired"
        46 GrantRevoked "grant-revoked" "the grant has been revoked"
        47 PortInUse "port-in-use" "another program listens on the port already"
        48 ReaderGone "reader-gone" "whoever read standard output has closed it"
        49 TooManyDeletions "too-many-deletions" "more would be deleted than may be"
        50 DeletionUnsure "deletion-unsure" "something failed, so that what the source has is not known for sure"
        51 EmptySource "empty-source" "the source has nothing, and everything would be deleted"
        52 DeletionDeclined "deletion-declined" "whoever was asked about a large deletion did not say yes"
        53 NotMounted "not-mounted" "no file system is mounted at a source, and one was required to be"
        54 RemovalCutShort "removal-cut-short" "all has been copied, and deleting at the source was cut short"
        55 OtherNames "other-names" "a file that is to be written in place has other names"
        56 WrittenByOther "written-by-other" "another program writes the file in place"
        57 SpecialUnasked "special-unasked" "a device, FIFO or socket, which nobody asked to be made"
    }
}

words! {
    /// Where an error happened, as the user sees it.
    pub enum Side {
        1 Source "source" "where the bytes come from"
        2 Destination "destination" "where they go"
        3 Link "link" "between the two, or between the command and one of them"
        4 Command "command" "the command itself"
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who has to act for the error to go away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// A file or file system at one of the ends.
    File,
    /// The network, or the way to a host.
    Network,
    /// The peer broke the protocol, or speaks another version of it.
    Peer,
    /// Identity or permission at a node.
    Authorization,
    /// The command line, or the person who stopped it.
    User,
    /// A fault of Carrack itself.
    Carrack,
}

macro_rules! error_codes {
    ($($number:literal $variant:ident $name:literal $blame:ident $meaning:literal)*) => {
        /// What kind of failure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = $meaning] $variant,)*
        }

        impl ErrorCode {
            /// Every code: the table that the documents are checked against.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The number on the wire.
            pub fn number(self) -> u32 {
                match self { $(Self::$variant => $number,)* }
            }

            /// From the number on the wire.
            pub fn from_number(number: u32) -> Self {
                match number { $($number => Self::$variant,)* _ => Self::Other }
            }

            /// The name in JSON.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it means, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// Who has to act.
            pub fn blame(self) -> Blame {
                match self { $(Self::$variant => Blame::$blame,)* }
            }
        }
    };
}

error_codes! {
    1 NotFound "not-found" File "no such file or directory"
    2 PermissionDenied "permission-denied" File "permission denied"
    3 IsADirectory "is-a-directory" File "a directory stands where a file should go"
    4 NotADirectory "not-a-directory" File "something that is not a directory stands in the path"
    5 AlreadyExists "already-exists" File "the name exists already"
    6 SymlinkRefused "symlink-refused" File "a symbolic link stands in the path, and none is followed there"
    7 NameTooLong "name-too-long" File "the file system does not take a name of this length"
    8 NoSpace "no-space" File "no space, or no inodes, left on the file system"
    9 QuotaExceeded "quota-exceeded" File "a quota is used up"
    10 ReadOnlyFileSystem "read-only-file-system" File "the file system is read-only"
    11 InputOutput "input-output" File "the storage reported an error"
    12 FileTooLarge "file-too-large" File "the file system or a limit does not allow a file of this size"
    13 SpecialFile "special-file" File "a FIFO, socket or device, which is not copied"
    14 SourceChanged "source-changed" File "the source changed while it was read"
    15 SourceVanished "source-vanished" File "the source was there when it was listed, and no more when it was opened"
    16 DigestMismatch "digest-mismatch" File "the digest of what arrived is not the digest of what was sent"
    17 NotEmpty "not-empty" File "the directory is not empty"
    18 Unsupported "unsupported" File "the file system does not support the operation"
    19 SameFile "same-file" User "source and destination are the same, or one lies within the other"
    20 ProtocolViolation "protocol-violation" Peer "the peer sent something that the protocol does not allow"
    21 VersionMismatch "version-mismatch" Peer "the two programs have no protocol version in common"
    22 BadPath "bad-path" Peer "the peer sent a path that may not be used"
    30 ConnectFailed "connect-failed" Network "no connection could be made"
    31 ConnectionLost "connection-lost" Network "the connection was lost"
    32 Silence "silence" Network "the peer said nothing for too long"
    33 AgentMissing "agent-missing" Network "the remote host has no carrack, and none could be put there"
    34 AgentRefused "agent-refused" Network "the remote host did not run the agent"
    35 NoLink "no-link" Network "no data connection could be made in any allowed way"
    36 Busy "busy" Network "the node has as many sessions as it takes"
    37 HostUnknown "host-unknown" Network "there is no host of that name"
    40 AuthenticationFailed "authentication-failed" Authorization "the peer did not prove who it is"
    41 KeyMismatch "key-mismatch" Authorization "the node shows another key than the one pinned"
    42 NodeReadOnly "node-read-only" Authorization "the node serves for reading only"
    43 OutsideRoot "outside-root" Authorization "the path leads outside the node's root"
    50 Usage "usage" User "the command cannot be carried out as given"
    51 Interrupted "interrupted" User "stopped by SIGINT"
    52 Terminated "terminated" User "stopped by SIGTERM"
    53 DeadlinePassed "deadline-passed" User "the time that was given for it is over"
    60 ResourceLimit "resource-limit" File "a limit of the host is reached"
    98 Internal "internal" Carrack "an error in Carrack"
    99 Other "other" Carrack "another error"
}

words! {
    /// Whether the same may succeed when it is tried again and nobody changes anything.
    pub enum Retryable {
        Yes "yes" "it may succeed"
        No "no" "it fails again until somebody changes something"
        Unknown "unknown" "nothing is known of it"
    }
}

impl ErrorCode {
    /// Whether the same command, or a copy of the same item, may succeed later as it is. It is said to users; what
    /// Carrack itself tries again within one command is [`Self::may_pass`].
    pub fn retryable(self) -> Retryable {
        use Retryable::{No, Unknown, Yes};
        match self {
            Self::ConnectFailed
            | Self::ConnectionLost
            | Self::Silence
            | Self::NoLink
            | Self::Busy
            | Self::ResourceLimit => Yes,
            // The next attempt sees the source as it is then.
            Self::SourceChanged => Yes,
            // The next run goes on from where this one stood.
            Self::Interrupted | Self::Terminated | Self::DeadlinePassed => Yes,
            Self::InputOutput | Self::DigestMismatch | Self::ProtocolViolation | Self::Internal | Self::Other => {
                Unknown
            }
            Self::NotFound
            | Self::PermissionDenied
            | Self::IsADirectory
            | Self::NotADirectory
            | Self::AlreadyExists
            | Self::SymlinkRefused
            | Self::NameTooLong
            | Self::NoSpace
            | Self::QuotaExceeded
            | Self::ReadOnlyFileSystem
            | Self::FileTooLarge
            | Self::SpecialFile
            | Self::SourceVanished
            | Self::NotEmpty
            | Self::Unsupported
            | Self::SameFile
            | Self::VersionMismatch
            | Self::BadPath
            | Self::AgentMissing
            | Self::AgentRefused
            | Self::HostUnknown
            | Self::AuthenticationFailed
            | Self::KeyMismatch
            | Self::NodeReadOnly
            | Self::OutsideRoot
            | Self::Usage => No,
        }
    }

    /// Whether the same may work when it is tried again, without anybody doing anything.
    pub fn may_pass(self) -> bool {
        matches!(
            self,
            Self::ConnectFailed
                | Self::ConnectionLost
                | Self::Silence
                | Self::NoLink
                | Self::Busy
                | Self::ResourceLimit
        )
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.meaning())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_unique_and_come_back() {
        for (index, code) in ErrorCode::ALL.iter().enumerate() {
            assert_eq!(ErrorCode::from_number(code.number()), *code);
            for other in &ErrorCode::ALL[index + 1..] {
                assert_ne!(code.number(), other.number());
                assert_ne!(code.name(), other.name());
            }
        }
        assert_eq!(ErrorCode::from_number(12345), ErrorCode::Other);
    }

    #[test]
    fn retryable_is_all_that_carrack_tries_again_itself() {
        for code in ErrorCode::ALL {
            assert!(!code.may_pass() || code.retryable() == Retryable::Yes, "{}", code.name());
        }
        assert_eq!(ErrorCode::Interrupted.retryable(), Retryable::Yes);
        assert_eq!(ErrorCode::NoSpace.retryable(), Retryable::No);
    }

    #[test]
    fn message_has_all_parts_in_order() {
        let inner = Failure::new(ErrorCode::InputOutput, Side::Source, "the disk is gone").during("sync");
        let whole = Failure::new(ErrorCode::InputOutput, Side::Source, "bad sector");
        let whole = whole.at_path(b"a/\x1b".to_vec()).at_offset(7).during("read").at_end("host:d").caused_by(inner);
        assert_eq!(whole.message(), r"host:d: a/\x1b: read at 7: bad sector: sync: the disk is gone");
        assert_eq!(whole.message_of(b"other"), format!("other: {whole}"));
        for same in [&b""[..], b"a/\x1b", b"\x1b"] {
            assert_eq!(whole.message_of(same), whole.message());
        }
        assert_eq!(whole.message_of(b"/\x1b"), format!(r"/\x1b: {whole}"));
        let bare = Failure::new(ErrorCode::InputOutput, Side::Source, "bad sector");
        assert_eq!(bare.message(), "bad sector");
        assert_eq!(bare.message_of(b"other"), "other: bad sector");
        assert_eq!(bare.clone().at_end("host:d").message_of(b"other"), "host:d: other: bad sector");
        assert_eq!(bare.at_offset(7).message(), "at 7: bad sector");
    }

    #[test]
    fn held_bytes_are_those_of_all_parts() {
        let inner = Failure::new(ErrorCode::NotFound, Side::Source, "x".repeat(1000));
        let outer =
            Failure::new(ErrorCode::NotFound, Side::Source, "").during("y".repeat(100)).caused_by(inner.clone());
        assert_eq!(inner.held_bytes(), 1000);
        assert_eq!(outer.held_bytes(), size_of::<Failure>() + 1100);
        let named = outer.clone().at_end("e".repeat(10)).at_path(vec![b'p'; 20]);
        assert_eq!(named.held_bytes(), outer.held_bytes() + size_of::<At>() + 30);
    }

    #[test]
    fn failure_names_end_and_path_of_who_was_closer() {
        let failure = Failure::new(ErrorCode::NotFound, Side::Source, "gone").at_end("a").at_path(b"p".to_vec());
        assert_eq!(failure.clone().at_end("b").at_path(b"q".to_vec()), failure);
    }

    #[test]
    fn flat_keeps_code_and_reason_and_cuts_between_characters() {
        let failure = Failure::new(ErrorCode::NotFound, Side::Source, "é".repeat(10)).at_path(b"p".to_vec());
        let failure = failure.for_reason(Reason::SourceBusy);
        for most in 0..30 {
            let flat = failure.flat(most);
            assert!(flat.why.len() <= most.max(CUT_OFF.len()) && flat.at.is_none(), "{flat:?}");
            assert_eq!((flat.code, flat.side, flat.reason), (failure.code, failure.side, failure.reason));
            assert!(flat.why == failure.message() || flat.why.ends_with(CUT_OFF));
        }
    }
}
