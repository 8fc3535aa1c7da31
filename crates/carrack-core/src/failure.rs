//! Why something failed: code, side and words; and the stable table of error codes, which travel in messages, stand in JSON and decide
//! exit codes. A number, once given, keeps its meaning; an unknown number from a newer peer becomes [`ErrorCode::Other`].

use std::fmt;

use crate::words::words;

/// Why an item failed, or a whole transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure, from a stable table.
    pub code: ErrorCode,
    /// Where it happened.
    pub side: Side,
    /// What, on which path, by which call, and what to try. Made printable already.
    pub message: String,
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
    /// Carrack.
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
    53 DeadlinePassed "deadline-passed" User "the time given by --deadline is over"
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
    /// Whether the same command, or a copy of the same item, may succeed later as it is. It is said to users; what Carrack itself tries again within
    /// one command is [`Self::may_pass`].
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
}
