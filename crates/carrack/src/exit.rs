//! Exit codes: fixed for ever, the same in the man page, in JSON and here.

use carrack_core::report::{ErrorCode, Failure, Reason, Report};
#[cfg(feature = "service")]
use carrack_sys::signal::StopSignal;

/// All done and verified.
pub const DONE: u8 = 0;
/// An error that no other code stands for.
pub const OTHER: u8 = 1;
/// The command cannot be carried out as given.
pub const USAGE: u8 = 2;
/// `doctor` has found warnings, and nothing worse.
#[cfg(feature = "terminal")]
pub const WARNINGS: u8 = OTHER;
/// `doctor` has found what keeps data from moving.
#[cfg_attr(not(feature = "terminal"), allow(dead_code))]
pub const FAILURES: u8 = 3;
/// The network, or the way to a host.
pub const NETWORK: u8 = 10;
/// A file or file system.
pub const FILE: u8 = 11;
/// The protocol, or its version.
pub const PROTOCOL: u8 = 12;
/// Stopped by SIGINT.
pub const INTERRUPTED: u8 = 20;
/// Some items failed, the others are there.
pub const PARTIAL: u8 = 23;
/// Some items had vanished from the source; nothing else failed.
pub const VANISHED: u8 = 24;
/// More would have been deleted than might be, or than somebody agreed to: nothing was, or no more than that.
pub const TOO_MANY_DELETIONS: u8 = 25;
/// The digest of what arrived is not that of what was sent.
pub const DIGEST: u8 = 26;
/// Two places are not the same, and everything could be read.
pub const DIFFERENCES: u8 = 27;
/// Nothing was heard for too long, or the time given was over.
pub const TIMEOUT: u8 = 30;
/// Stopped by SIGTERM, or by SIGHUP: run again to go on.
pub const TERMINATED: u8 = 75;
/// Whoever read standard output has closed it: as if `SIGPIPE` had ended the command.
pub const READER_GONE: u8 = 141;
/// Identity or permission at a node.
pub const AUTHENTICATION: u8 = 77;

/// The table as help and the man page show it.
pub const HELP: &str = "\
Exit codes:
   0  everything is done and verified
   1  another error; doctor: warnings, and nothing worse
   2  usage: the command cannot be carried out as given
   3  doctor: failures, which keep data from moving
  10  no connection to a host or node, or it was lost
  11  file or file system
  12  the versions of the two sides do not fit, or one broke the protocol
  20  stopped by SIGINT; files that were copied stay
  23  some items failed, all others are there; with --strict, something was not kept
  24  some items had vanished from the source, all others are there
  25  more would have been deleted than --max-delete allows, or than you agreed to
  26  a digest did not match
  27  check, sum -c: what is compared is not the same, and all of it could be read
  30  timeout: the other side was silent too long, or --deadline passed
  75  stopped by SIGTERM, or by SIGHUP as the terminal closed; files that were copied stay
  77  authentication or authorization
 141  whoever read standard output closed it before all was written";

/// The exit code of an error that ended a command.
pub fn of_code(code: ErrorCode) -> u8 {
    use ErrorCode as E;
    match code {
        E::Usage | E::SameFile => USAGE,
        E::ConnectFailed
        | E::ConnectionLost
        | E::AgentMissing
        | E::AgentRefused
        | E::NoLink
        | E::Busy
        | E::HostUnknown => NETWORK,
        E::Silence | E::DeadlinePassed => TIMEOUT,
        E::NotFound
        | E::PermissionDenied
        | E::IsADirectory
        | E::NotADirectory
        | E::AlreadyExists
        | E::SymlinkRefused
        | E::NameTooLong
        | E::NoSpace
        | E::QuotaExceeded
        | E::ReadOnlyFileSystem
        | E::InputOutput
        | E::FileTooLarge
        | E::SpecialFile
        | E::SourceChanged
        | E::NotEmpty
        | E::Unsupported
        | E::ResourceLimit => FILE,
        E::SourceVanished => VANISHED,
        E::DigestMismatch => DIGEST,
        E::ProtocolViolation | E::VersionMismatch | E::BadPath => PROTOCOL,
        E::AuthenticationFailed | E::KeyMismatch | E::NodeReadOnly | E::OutsideRoot => AUTHENTICATION,
        E::Interrupted => INTERRUPTED,
        E::Terminated => TERMINATED,
        E::Internal | E::Other => OTHER,
    }
}

/// Of a command that a signal ends while it waits for what goes on without it.
#[cfg(feature = "service")]
pub fn of_stop(stop: Option<StopSignal>) -> u8 {
    match stop {
        Some(StopSignal::Terminate | StopSignal::Hangup) => TERMINATED,
        Some(StopSignal::Interrupt) | None => INTERRUPTED,
    }
}

/// The exit code of a copy: of the error that ended it, else of what became of its items.
pub fn of_report(report: &Report) -> u8 {
    if let Some(error) = &report.error {
        return of_code(error.code);
    }
    let told = report.failures.iter().map(|item| &item.failure);
    match (of_items(report.counts.files_failed, report.counts.files_vanished, told), &report.undeleted) {
        (DONE | VANISHED, Some(why))
            if matches!(why.reason, Some(Reason::TooManyDeletions | Reason::DeletionDeclined)) =>
        {
            TOO_MANY_DELETIONS
        }
        (DONE | VANISHED, Some(_)) => PARTIAL,
        (code, _) => code,
    }
}

/// The exit code of a copy that is to keep everything: what was not kept counts as an item that failed.
pub fn of_kept(code: u8, report: &Report) -> u8 {
    let Report { unkept_permissions, unkept_times, unkept_attributes, .. } = report;
    let is_kept = unkept_permissions.is_none() && unkept_times.is_none() && unkept_attributes.is_none();
    if code == DONE && !is_kept { PARTIAL } else { code }
}

/// The exit code of a copy to a stream. It takes one file, so what became of that file is what became of the copy.
pub fn of_stream(report: &Report) -> u8 {
    match report.failures.first() {
        Some(item) if item.failure.reason == Some(Reason::ReaderGone) => READER_GONE,
        Some(item) if report.error.is_none() => of_code(item.failure.code),
        _ => of_report(report),
    }
}

/// The exit code of a command of which some items failed: `told` are the failures known in words, perhaps not all.
pub fn of_items<'a>(failed: u64, vanished: u64, told: impl IntoIterator<Item = &'a Failure>) -> u8 {
    if failed == 0 {
        return DONE;
    }
    if vanished >= failed {
        return VANISHED;
    }
    let mut told = told.into_iter().peekable();
    let mismatches_only = told.peek().is_some() && told.all(|failure| failure.code == ErrorCode::DigestMismatch);
    if mismatches_only { DIGEST } else { PARTIAL }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_core::failure::Blame;
    use carrack_core::report::{Counts, ItemFailure, Side};

    fn failure(code: ErrorCode) -> Failure {
        Failure::new(code, Side::Source, "")
    }

    fn report(failed: u64, vanished: u64, codes: &[ErrorCode]) -> Report {
        let failures = codes.iter().map(|code| ItemFailure { path: b"a".to_vec(), failure: failure(*code) }).collect();
        let counts = Counts { files_failed: failed, files_vanished: vanished, ..Counts::default() };
        Report { counts, failures, ..Report::default() }
    }

    #[test]
    fn exit_codes_follow_their_blame_or_are_exceptions_named_here() {
        for code in ErrorCode::ALL {
            let expected = match (code, code.blame()) {
                (ErrorCode::Silence | ErrorCode::DeadlinePassed, _) => TIMEOUT,
                (ErrorCode::DigestMismatch, _) => DIGEST,
                (ErrorCode::SourceVanished, _) => VANISHED,
                (ErrorCode::Interrupted, _) => INTERRUPTED,
                (ErrorCode::Terminated, _) => TERMINATED,
                (_, Blame::File) => FILE,
                (_, Blame::Network) => NETWORK,
                (_, Blame::Peer) => PROTOCOL,
                (_, Blame::Authorization) => AUTHENTICATION,
                (_, Blame::User) => USAGE,
                (_, Blame::Carrack) => OTHER,
            };
            assert_eq!(of_code(*code), expected, "{}", code.name());
            assert_ne!(of_code(*code), DONE, "an error is never success");
        }
    }

    #[test]
    fn reports() {
        use ErrorCode as E;
        let cases = [
            (report(0, 0, &[]), DONE),
            (report(1, 0, &[E::PermissionDenied]), PARTIAL),
            (report(2, 2, &[E::SourceVanished, E::SourceVanished]), VANISHED),
            (report(2, 1, &[E::SourceVanished, E::NoSpace]), PARTIAL),
            (report(2, 0, &[E::DigestMismatch, E::DigestMismatch]), DIGEST),
            (report(2, 0, &[E::DigestMismatch, E::NoSpace]), PARTIAL),
            (report(1, 0, &[]), PARTIAL),
            (Report { error: Some(failure(E::Interrupted)), ..report(3, 3, &[]) }, INTERRUPTED),
            (Report { error: Some(failure(E::ConnectionLost)), ..report(0, 0, &[]) }, NETWORK),
        ];
        for (report, expected) in cases {
            assert_eq!(of_report(&report), expected, "{report:?}");
        }
    }

    #[test]
    fn help_names_every_code() {
        for code in [
            DONE,
            OTHER,
            USAGE,
            FAILURES,
            NETWORK,
            FILE,
            PROTOCOL,
            INTERRUPTED,
            PARTIAL,
            VANISHED,
            DIGEST,
            DIFFERENCES,
            TIMEOUT,
            TERMINATED,
            AUTHENTICATION,
        ] {
            assert!(HELP.lines().any(|line| line.starts_with(&format!("{code:>4}  "))), "{code}");
        }
    }
}
