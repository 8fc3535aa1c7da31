//! What one request may hold, and what a receiver has asked for: checked before anything is looked up, opened or made.

use std::collections::BTreeSet;

use super::ProtocolError;
use super::control::{Ask, Begin, Role, Source};
use crate::failure::ErrorCode;
use crate::limits;
use crate::path::{PathError, check_relative, display_bytes};

/// Checks how much a request asks for. What its paths lead to is the storage's part: as typed, they may be anything.
///
/// # Errors
/// On a path that is too long, on too many of them, and on a target that is no name.
pub fn check_ask(ask: &Ask) -> Result<(), ProtocolError> {
    match ask {
        Ask::Inspect(paths) if paths.paths.len() > limits::INSPECTED_PATHS => {
            Err(ProtocolError::violation(format!("the peer asked about {} paths at once", paths.paths.len())))
        }
        Ask::Inspect(paths) | Ask::Select(paths) => paths.paths.iter().try_for_each(|path| check_length(path)),
        Ask::Collect(collect) => check_length(&collect.path),
        Ask::List(list) if list.sources.len() > limits::LISTED_SOURCES => {
            Err(ProtocolError::violation(format!("the peer asked about {} sources at once", list.sources.len())))
        }
        Ask::List(list) => check_length(&list.path).and_then(|()| list.sources.iter().try_for_each(check_source)),
        Ask::Sum(sum) => check_length(&sum.path),
        Ask::MakeDirectory(make) => check_length(&make.path),
        Ask::Remove(remove) => check_length(&remove.path),
        Ask::Rename(rename) => check_length(&rename.from).and_then(|()| check_length(&rename.to)),
        Ask::Dial(dial) if dial.addresses.len() > limits::DIAL_ADDRESSES => Err(ProtocolError::violation(format!(
            "the peer asked to connect to one of {} addresses",
            dial.addresses.len()
        ))),
        Ask::Begin(Begin { role: Some(Role::Send(send)), .. }) => send.sources.iter().try_for_each(check_source),
        Ask::Begin(Begin { role: Some(Role::Receive(receive)), .. }) => {
            receive.targets.iter().try_for_each(|target| check_target(target))?;
            check_length(&receive.directory)
        }
        Ask::Begin(_)
        | Ask::Hello(_)
        | Ask::Listen(_)
        | Ask::Dial(_)
        | Ask::Tunnel(_)
        | Ask::Cancel(_)
        | Ask::Retire(_)
        | Ask::Bye(_) => Ok(()),
    }
}

fn check_length(path: &[u8]) -> Result<(), ProtocolError> {
    if path.len() > limits::PATH_BYTES { Err(ProtocolError::path(path, PathError::TooLong)) } else { Ok(()) }
}

fn check_source(source: &Source) -> Result<(), ProtocolError> {
    check_length(&source.path)?;
    if source.target.is_empty() { Ok(()) } else { check_target(&source.target) }
}

/// A target is one name's length at most, so that with what is below it it is still a path.
fn check_target(target: &[u8]) -> Result<(), ProtocolError> {
    if target.len() > limits::NAME_BYTES {
        return Err(ProtocolError::path(target, PathError::TooLong));
    }
    check_relative(target).map_err(|error| ProtocolError::path(target, error))
}

/// What a receiver takes: items of these names, and what is below them. A sender could be told to send `report.pdf` into a home
/// directory, and send `.bashrc`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Empty: whatever comes, because the content of a directory was asked for.
    targets: BTreeSet<Vec<u8>>,
}

impl Expected {
    /// These and what is below them; with none, anything.
    pub fn new(targets: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self { targets: targets.into_iter().collect() }
    }

    /// Checks a path that has the form of one.
    ///
    /// # Errors
    /// When it was not asked for.
    pub fn check(&self, path: &[u8]) -> Result<(), ProtocolError> {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(place, _)| place);
        let expected = |end: usize| self.targets.contains(&path[..end]);
        if self.targets.is_empty() || ends.chain([path.len()]).any(expected) {
            return Ok(());
        }
        let shown = display_bytes(&path[..path.len().min(200)]);
        Err(ProtocolError {
            code: ErrorCode::BadPath,
            what: format!("the peer sent the path \"{shown}\", which was not asked for"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::control::{Dial, Paths, ReceiveRole, Rename, SendRole};

    fn code(ask: &Ask) -> Option<ErrorCode> {
        check_ask(ask).err().map(|error| error.code)
    }

    #[test]
    fn what_costs_too_much_is_refused() {
        let long = vec![b'n'; limits::PATH_BYTES + 1];
        let inspect = |paths| Ask::Inspect(Paths { paths });
        assert_eq!(code(&inspect(vec![Vec::new(); limits::INSPECTED_PATHS])), None);
        assert_eq!(code(&inspect(vec![Vec::new(); limits::INSPECTED_PATHS + 1])), Some(ErrorCode::ProtocolViolation));
        assert_eq!(code(&inspect(vec![long.clone()])), Some(ErrorCode::BadPath));
        assert_eq!(code(&Ask::Rename(Rename { from: Vec::new(), to: long.clone() })), Some(ErrorCode::BadPath));
        let addresses = vec![String::new(); limits::DIAL_ADDRESSES + 1];
        assert_eq!(code(&Ask::Dial(Dial { addresses, ..Dial::default() })), Some(ErrorCode::ProtocolViolation));
        let directory = ReceiveRole { directory: long, ..ReceiveRole::default() };
        let begin = |role| Ask::Begin(Begin { options: None, role: Some(role) });
        assert_eq!(code(&begin(Role::Receive(directory))), Some(ErrorCode::BadPath));
    }

    #[test]
    fn targets_are_names() {
        let send = |target: &[u8]| {
            let source = Source { target: target.to_vec(), ..Source::default() };
            code(&Ask::Begin(Begin {
                options: None,
                role: Some(Role::Send(SendRole { sources: vec![source], known: false })),
            }))
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
    fn the_longest_path_has_a_length_on_the_wire() {
        assert!(u16::try_from(limits::PATH_BYTES).is_ok());
        assert!(check_relative(&b"n/".repeat(limits::PATH_BYTES)[..limits::PATH_BYTES]).is_ok());
    }

    #[test]
    fn what_was_not_asked_for_is_not_expected() {
        let expected = Expected::new([b"f".to_vec(), b"a/b".to_vec()]);
        for path in [&b"f"[..], b"f/x", b"f/x/y", b"a/b", b"a/b/c"] {
            assert_eq!(expected.check(path), Ok(()), "{path:?}");
        }
        for path in [&b"g"[..], b"ff", b".f", b"F", b"a", b"a/c", b"x/f", b".bashrc"] {
            let error = expected.check(path).expect_err("not asked for");
            assert_eq!(error.code, ErrorCode::BadPath);
        }
        assert_eq!(Expected::default().check(b"anything"), Ok(()));
    }
}
