//! What a person at a terminal can try about a failure: from its code and its reason, never from its text. Another
//! front end has another table, in the words of its place.

use carrack_core::report::{ErrorCode, Failure, Reason};

/// What to try: half a sentence, or one that begins with a capital letter; `None` where nothing helps.
pub fn of(failure: &Failure) -> Option<&'static str> {
    let source = failure.source.as_deref();
    match (failure.reason, source) {
        (Some(reason), _) => of_reason(reason),
        // One that only adds words to another: the other's situation is known better.
        (None, Some(source)) if source.code == failure.code => of(source),
        (None, Some(source)) => of_code(failure.code).or_else(|| of(source)),
        (None, None) => of_code(failure.code),
    }
}

/// What to try where the code alone says enough.
pub fn of_code(code: ErrorCode) -> Option<&'static str> {
    Some(match code {
        ErrorCode::ResourceLimit => {
            "raise the limit of open files (ulimit -n), threads (ulimit -u, pids.max) or memory, or lower --streams"
        }
        ErrorCode::NoSpace => "free some space or inodes there and run the same command again",
        ErrorCode::QuotaExceeded => "free some space or raise the quota and run the same command again",
        ErrorCode::SourceChanged => "run the same command again",
        ErrorCode::VersionMismatch => "update the older one",
        ErrorCode::HostUnknown => "check the name",
        ErrorCode::Busy => "try again later",
        ErrorCode::Interrupted | ErrorCode::Terminated => "run the same command again to copy what is missing",
        ErrorCode::DeadlinePassed => "--deadline is over: run the same command again to go on from here",
        ErrorCode::Internal => "please report it; trying again may help",
        _ => return None,
    })
}

/// What to try in a situation.
pub fn of_reason(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        // What to try stands in the text of the first; whoever replaced a source knows why; a reader that left reads
        // nothing.
        Reason::SourceReplaced | Reason::ReaderGone => return None,
        Reason::TooManyDeletions => "see with -n what would be deleted, then raise --max-delete or leave it out",
        Reason::DeletionDeclined => "-n shows what would be deleted; answer y, or give --yes, to delete it",
        Reason::DeletionUnsure => "mend what failed and run it again; --ignore-errors deletes all the same",
        Reason::EmptySource => "is it mounted? --allow-empty deletes all the same",
        Reason::NotMounted => "is it mounted? without --require-mount it is copied all the same",
        Reason::SpecialUnasked => "-D makes devices, FIFOs and sockets; --devices or --specials some of them",
        Reason::RemovalCutShort => "run the same command with -c: it deletes there what is the same at the destination",
        Reason::SourceBusy => "run the same command again when nothing writes to it",
        Reason::SourceGrew => "run the same command again, or with --growing snapshot or follow",
        Reason::SizeUnknown => "copy it as a pipe: carrack - DST <FILE",
        Reason::SelectedAbsent => {
            "--files-from names it, or a source with --relative; a symbolic link on the way to it is followed with -k"
        }
        Reason::SelectedUnplanned => {
            "the paths of --files-from are relative to the destination, as the report names them"
        }
        Reason::SameNames => "rename one, or copy to different directories",
        Reason::TwinNames => "rename one, or copy to a file system that tells them apart",
        Reason::OtherFileSystem => "copy, then remove the source",
        Reason::DirectoryToRemove => "remove it with everything below by -r",
        Reason::CongestionRefused => "name another by --congestion",
        Reason::AnswerTooLong => "ask for less at once",
        Reason::TokenMissing | Reason::TokenWrong => {
            "name the file with the node's token by --token-file, or keep it by `carrack token add`"
        }
        Reason::TokenOfSeveral => {
            "give each node its own by --source-token-file and --destination-token-file, or keep it by `carrack token add`"
        }
        Reason::FirstMeeting => {
            "compare the key in the note above with what the node's administrator says, and run the command again; or type it behind \
             the address (#sha256:...)"
        }
        Reason::KnownNodesUnusable => "mend or remove the file, or type the key behind the address (#sha256:...)",
        Reason::NodeAnew => {
            "if the node was set up anew, remove its line from that file and connect again; if not, somebody is in between"
        }
        Reason::TypedKeyWrong => "the address names another key: check it with the node's administrator",
        Reason::NodeUnreached => "Is `carrack serve` running there, and is the port open?",
        Reason::DialsNoOwnAddress => "whoever runs the node may allow that (--dial-to)",
        Reason::DialsOnlyAsker => "whoever runs the node may allow more (--dial-to)",
        Reason::AgentNotSent => "install it there, name it by --remote-path, or leave --no-push out",
        Reason::AgentNotKept => "install carrack there, or name it by --remote-path",
        Reason::AgentNotFitting => "bring one that starts there by `carrack agent add`, or install carrack there",
        Reason::AgentSilent => "If a password or a slow login needs longer, raise --connect-timeout",
        Reason::AgentEnded => "mend that, serve that host with `carrack serve`, or use another account",
        Reason::SshRefused => "Not tried again: an ssh to that host by hand must work without it",
        Reason::SshConfiguration => "Not tried again: mend what it says of its configuration",
        Reason::SshHostUnknown => "Check the name, or give it a HostName in your ssh configuration",
        Reason::BadRemotePath => "name another by --remote-path",
        Reason::NoRemoteShell => "name one by --rsh, or leave it out",
        Reason::OwnFileUnreadable => "with --no-push nothing is sent",
        Reason::OwnFileDamaged => "install this carrack again",
        Reason::LinkNotAllowed => "try --data-address, --ports, or another --link",
        Reason::NoAddress => "name one by --data-address ADDR",
        Reason::OtherNames => "copy it without --inplace and --append: then its other names keep what they have",
        Reason::WrittenByOther => "wait until the other copy has ended",
        Reason::InTheWay => "remove it first, or copy to another name",
        Reason::SeveralHosts => "copy from one host at a time",
        Reason::SourceTwice => "name it once",
        Reason::SpecialNamed => "a pipe is copied by `carrack - DST`",
        Reason::BlockRefused => "name another size by --block, or leave it out",
        Reason::GrantOutside => "name a path that you have a right to, or ask whoever runs the service for one",
        Reason::GrantRight | Reason::GrantCeiling | Reason::GrantRevoked => {
            "ask whoever runs the service for a right that allows it"
        }
        Reason::GrantExpired => "run the same command again; or compare the clocks of the node and the service",
        Reason::PortInUse => "`ss -ltnp` shows which program has it; another port is taken by --listen ADDR:PORT",
    })
}
