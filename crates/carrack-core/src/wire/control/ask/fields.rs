//! Requests as fields of a message, and from there back, every value checked.

use std::time::Duration;

use super::{
    Ask, Begin, Collect, Dial, EvidenceAbout, Filter, Hello, List, Listen, MakeDirectory, MarkerKey, Origin, Ports,
    ReadFile, ReceiveRole, Remove, Rename, Role, SendRole, Sink, SourceSpec, Sum, Tunnel,
};
use crate::accounts::{AccountMap, AccountMaps};
use crate::attributes::Time;
use crate::backup::Backup;
use crate::filter::{FileBounds, RuleForm, SourceLinks};
use crate::ids::StreamId;
use crate::limits;
use crate::path::{PathError, check_relative};
use crate::plan::compare::State;
use crate::reference::{ReferenceDirectories, ReferenceUse};
use crate::report::ItemKind;
use crate::request::{Confinement, DeleteOrder};
use crate::wire::control::options::{TransferOptions, Travels, checked};
use crate::wire::control::raw;
use crate::wire::control::session_key::SessionKey;
use crate::wire::mux::Channel;
use crate::wire::values::checked_identity;
use crate::wire::{ProtocolError, peer_text};

impl Ask {
    /// As bytes, with the request's number.
    pub fn encode(self, request: u64) -> Vec<u8> {
        raw::ToAgent { request, ask: Some(self.into()) }.to_bytes()
    }

    /// From bytes: the request's number, and what it asks. One that asks for what may not be asked for is the inner
    /// error: it is refused, and the session goes on.
    ///
    /// # Errors
    /// When the bytes cannot be read, or ask nothing that is known.
    pub fn decode(bytes: &[u8]) -> Result<(u64, Result<Self, ProtocolError>), ProtocolError> {
        let (request, ask) = raw::ToAgent::from_bytes(bytes)?;
        Ok((request, Self::check(ask)))
    }

    /// Every length, count and number of a request. What its paths lead to is the storage's part: as
    /// typed, they may be anything.
    fn check(ask: raw::Ask) -> Result<Self, ProtocolError> {
        Ok(match ask {
            raw::Ask::Hello(hello) => {
                let raw::Hello { oldest, newest, program, token, root, within } = hello;
                let confinement = confinement(root, within)?;
                Self::Hello(Hello { oldest, newest, program: peer_text(&program), token, confinement })
            }
            raw::Ask::Inspect(paths) if paths.paths.len() > limits::INSPECTED_PATHS => {
                let what = format!("the peer asked about {} paths at once", paths.paths.len());
                return Err(ProtocolError::violation(what));
            }
            raw::Ask::Inspect(paths) => Self::Inspect(all(paths.paths, bounded)?),
            raw::Ask::Listen(listen) => Self::Listen(listen.try_into()?),
            raw::Ask::Dial(dial) => Self::Dial(dial.try_into()?),
            raw::Ask::Tunnel(tunnel) => Self::Tunnel(tunnel.try_into()?),
            raw::Ask::Begin(begin) => Self::Begin(begin.try_into()?),
            raw::Ask::Cancel(_) => Self::Cancel,
            raw::Ask::List(list) => Self::List(list.try_into()?),
            raw::Ask::MakeDirectory(make) => {
                Self::MakeDirectory(MakeDirectory { path: bounded(make.path)?, parents: make.parents })
            }
            raw::Ask::Rename(raw::Rename { from, to, no_replace }) => {
                Self::Rename(Rename { from: bounded(from)?, to: bounded(to)?, no_replace })
            }
            raw::Ask::Remove(remove) => {
                let raw::Remove { path, recursive, go_on, empty_only, unchanged } = remove;
                if recursive && empty_only {
                    return Err(ProtocolError::violation(
                        "the peer asked to remove everything, and empty directories alone",
                    ));
                }
                let unchanged = unchanged.map(TryInto::try_into).transpose()?;
                Self::Remove(Remove { path: bounded(path)?, recursive, go_on, empty_only, unchanged })
            }
            raw::Ask::Sum(sum) => {
                let raw::Sum { path, digests, one_file } = sum;
                Self::Sum(Sum { path: bounded(path)?, digests: checked("digests", digests)?, one_file })
            }
            raw::Ask::Bye(_) => Self::Bye,
            raw::Ask::Select(paths) => Self::Select(all(paths.paths, relative)?),
            raw::Ask::Expect(expected) => Self::Expect(all(expected.list, |one| {
                let wrong = |_| ProtocolError::violation("a digest of the wrong length is expected");
                Ok((relative(one.path)?, one.blake3.try_into().map_err(wrong)?))
            })?),
            raw::Ask::Filter(filter) => Self::Filter(filter.try_into()?),
            raw::Ask::Collect(collect) => Self::Collect(Collect {
                path: bounded(collect.path)?,
                older: Duration::from_secs(collect.older_seconds),
                dry_run: collect.dry_run,
                marker: marker_key(collect.marker)?,
            }),
            raw::Ask::Retire(retire) if retire.wake > 0 => Self::Wake(retire.wake),
            raw::Ask::Retire(retire) => Self::Retire(retire.count),
            raw::Ask::Clock(_) => Self::Clock,
            raw::Ask::Trace(_) => Self::Trace,
            raw::Ask::Evidence(about) => Self::Evidence(about.try_into()?),
            raw::Ask::Read(raw::Read { path, offset, length, identity }) => {
                Self::Read(ReadFile { path: bounded(path)?, offset, length, identity: checked_identity(identity)? })
            }
            raw::Ask::MayDelete(raw::MayDelete { may }) => Self::MayDelete(may),
            raw::Ask::Refer(references) => Self::Refer(references.try_into()?),
            raw::Ask::Accounts(accounts) => Self::Accounts(accounts.try_into()?),
        })
    }
}

impl From<Ask> for raw::Ask {
    fn from(ask: Ask) -> Self {
        let paths = |paths| raw::Paths { paths };
        match ask {
            Ask::Hello(Hello { oldest, newest, program, token, confinement }) => {
                let Confinement { root, within } = confinement.unwrap_or_default();
                Self::Hello(raw::Hello { oldest, newest, program, token, root, within })
            }
            Ask::Inspect(inspected) => Self::Inspect(paths(inspected)),
            Ask::Listen(listen) => Self::Listen(listen.into()),
            Ask::Dial(dial) => Self::Dial(dial.into()),
            Ask::Tunnel(Tunnel { session, channel, dials }) => {
                Self::Tunnel(raw::Tunnel { session: Some(session.into()), channel: channel.0.into(), dial: dials })
            }
            Ask::Begin(begin) => Self::Begin(begin.into()),
            Ask::Cancel => Self::Cancel(raw::Empty {}),
            Ask::List(List { path, recursive, itself, sources, usage, details, survey }) => {
                let survey = survey.map(Into::into);
                let sources = sources.into_iter().map(Into::into).collect();
                Self::List(raw::List { path, recursive, itself, sources, usage, details, survey })
            }
            Ask::MakeDirectory(MakeDirectory { path, parents }) => {
                Self::MakeDirectory(raw::MakeDirectory { path, parents })
            }
            Ask::Rename(Rename { from, to, no_replace }) => Self::Rename(raw::Rename { from, to, no_replace }),
            Ask::Remove(Remove { path, recursive, go_on, empty_only, unchanged }) => {
                let unchanged = unchanged.map(Into::into);
                Self::Remove(raw::Remove { path, recursive, go_on, empty_only, unchanged })
            }
            Ask::Sum(Sum { path, digests, one_file }) => Self::Sum(raw::Sum { path, digests: digests.raw(), one_file }),
            Ask::Bye => Self::Bye(raw::Empty {}),
            Ask::Select(selected) => Self::Select(paths(selected)),
            Ask::Expect(expected) => {
                let raw = |(path, blake3): (Vec<u8>, [u8; 32])| raw::ExpectedDigest { path, blake3: blake3.to_vec() };
                Self::Expect(raw::Expected { list: expected.into_iter().map(raw).collect() })
            }
            Ask::Filter(filter) => Self::Filter(filter.into()),
            Ask::Collect(Collect { path, older, dry_run, marker }) => {
                let marker = marker.map(|key| key.to_vec()).unwrap_or_default();
                Self::Collect(raw::Collect { path, older_seconds: older.as_secs(), dry_run, marker })
            }
            Ask::Retire(count) => Self::Retire(raw::Retire { count, wake: 0 }),
            Ask::Wake(wake) => Self::Retire(raw::Retire { count: 0, wake }),
            Ask::Clock => Self::Clock(raw::Empty {}),
            Ask::Trace => Self::Trace(raw::Empty {}),
            Ask::Evidence(EvidenceAbout { peer, directory, connections }) => {
                let peer = peer.map(|peer| peer.to_string()).unwrap_or_default();
                let connections = u32::try_from(connections).unwrap_or(u32::MAX);
                Self::Evidence(raw::EvidenceAbout { peer, directory, connections })
            }
            Ask::Read(ReadFile { path, offset, length, identity }) => {
                let identity = identity.map(|identity| identity.to_vec()).unwrap_or_default();
                Self::Read(raw::Read { path, offset, length, identity })
            }
            Ask::MayDelete(may) => Self::MayDelete(raw::MayDelete { may }),
            Ask::Accounts(AccountMaps { users, groups }) => {
                Self::Accounts(raw::RawAccounts { users: users.text().to_owned(), groups: groups.text().to_owned() })
            }
            Ask::Refer(references) => {
                Self::Refer(raw::References { used: references.used().number(), paths: references.paths().to_vec() })
            }
        }
    }
}

impl TryFrom<raw::Unchanged> for State {
    type Error = ProtocolError;

    fn try_from(raw: raw::Unchanged) -> Result<Self, ProtocolError> {
        let kind = ItemKind::from_number(raw.kind).filter(|kind| matches!(kind, ItemKind::File | ItemKind::Symlink));
        let mtime = Some(Time::new(raw.mtime_seconds, raw.mtime_nanos)).filter(|time| time.is_valid());
        let (Some(kind), Some(mtime)) = (kind, mtime) else {
            return Err(ProtocolError::violation("the peer asked to remove what no file and no link can be"));
        };
        Ok(Self { kind, size: raw.size, mtime: Some(mtime) })
    }
}

impl From<State> for raw::Unchanged {
    fn from(State { kind, size, mtime }: State) -> Self {
        let Time { seconds, nanos } = mtime.unwrap_or_default();
        Self { kind: kind.number(), size, mtime_seconds: seconds, mtime_nanos: nanos }
    }
}

impl TryFrom<raw::Listen> for Listen {
    type Error = ProtocolError;

    fn try_from(listen: raw::Listen) -> Result<Self, ProtocolError> {
        let session = SessionKey::try_from(listen.session)?;
        let (low, high) = (listen.port_low, listen.port_high);
        let wrong = |_| ProtocolError::violation(format!("the peer asked to listen on ports {low} to {high}"));
        let (low, high) = (u16::try_from(low).map_err(wrong)?, u16::try_from(high).map_err(wrong)?);
        let is_any = low == 0 || high == 0;
        Ok(Self { session, ports: (!is_any).then_some(Ports { low, high }) })
    }
}

impl From<Listen> for raw::Listen {
    fn from(listen: Listen) -> Self {
        let (low, high) = listen.ports.map_or((0, 0), |ports| (ports.low, ports.high));
        Self { session: Some(listen.session.into()), port_low: low.into(), port_high: high.into() }
    }
}

impl TryFrom<raw::Dial> for Dial {
    type Error = ProtocolError;

    fn try_from(dial: raw::Dial) -> Result<Self, ProtocolError> {
        let raw::Dial { session, addresses, pin, count, first, timeout_ms, segment, tell_connected } = dial;
        if addresses.len() > limits::DIAL_ADDRESSES {
            let what = format!("the peer asked to connect to one of {} addresses", addresses.len());
            return Err(ProtocolError::violation(what));
        }
        let session = SessionKey::try_from(session)?;
        let pin = pin.try_into().map_err(|_| ProtocolError::violation("a pin of the wrong length"))?;
        let fits = first.checked_add(count).is_some_and(|end| end <= 1 << u16::BITS);
        let numbers = u16::try_from(first).ok().zip(u16::try_from(count).ok());
        let numbers = numbers.filter(|&(_, count)| fits && count <= limits::STREAMS);
        let (first, count) =
            numbers.ok_or_else(|| ProtocolError::violation(format!("{count} data connections were asked for")))?;
        let timeout = Duration::from_millis(timeout_ms.into());
        let timeout = timeout.clamp(Duration::from_millis(1), limits::DIAL_TIMEOUT);
        Ok(Self { session, addresses, pin, first: StreamId(first), count, timeout, segment, tell_connected })
    }
}

impl From<Dial> for raw::Dial {
    fn from(dial: Dial) -> Self {
        let Dial { session, addresses, pin, first, count, timeout, segment, tell_connected } = dial;
        Self {
            session: Some(session.into()),
            addresses,
            pin: pin.to_vec(),
            count: count.into(),
            first: first.0.into(),
            timeout_ms: u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX),
            segment,
            tell_connected,
        }
    }
}

impl TryFrom<raw::Tunnel> for Tunnel {
    type Error = ProtocolError;

    fn try_from(tunnel: raw::Tunnel) -> Result<Self, ProtocolError> {
        let session = SessionKey::try_from(tunnel.session)?;
        let channel = u16::try_from(tunnel.channel).ok().filter(|&channel| channel >= Channel::FIRST_TUNNEL.0);
        let wrong = || ProtocolError::violation(format!("the peer asked for channel {} as a tunnel", tunnel.channel));
        Ok(Self { session, channel: Channel(channel.ok_or_else(wrong)?), dials: tunnel.dial })
    }
}

impl TryFrom<raw::Begin> for Begin {
    type Error = ProtocolError;

    fn try_from(begin: raw::Begin) -> Result<Self, ProtocolError> {
        let without = |what| move || ProtocolError::violation(format!("the peer began a transfer without {what}"));
        let options = TransferOptions::try_from(begin.options.ok_or_else(without("options"))?)?;
        let role = match begin.role.ok_or_else(without("a role"))? {
            raw::Role::Send(role) => {
                if role.sources.len() > limits::SOURCES {
                    return Err(refused_sources());
                }
                Role::Send(SendRole { sources: all(role.sources, SourceSpec::try_from)?, known: role.known })
            }
            raw::Role::Receive(role) => Role::Receive(role.try_into()?),
        };
        Ok(Self { options, role })
    }
}

impl From<Begin> for raw::Begin {
    fn from(begin: Begin) -> Self {
        let role = match begin.role {
            Role::Send(SendRole { sources, known }) => {
                raw::Role::Send(raw::SendRole { sources: sources.into_iter().map(Into::into).collect(), known })
            }
            Role::Receive(role) => raw::Role::Receive(raw::ReceiveRole {
                directory: role.directory,
                sink: role.sink.number(),
                targets: role.targets,
                marker: role.marker.map(|key| key.to_vec()).unwrap_or_default(),
                anew: role.anew,
                partial: role.partial,
                delete: role.delete.map(|order| {
                    let DeleteOrder { most, partial, share, allow_empty, ignore_errors, asks } = order;
                    let share = share.map(Into::into);
                    raw::RawDeleteOrder { most, partial, allow_empty, ignore_errors, asks, share }
                }),
                backup: role.backup.map(Into::into),
                lacks_top: role.lacks_top,
            }),
        };
        Self { options: Some(begin.options.into()), role: Some(role) }
    }
}

impl ReceiveRole {
    /// Whether what comes is dropped: into the device at `directory`, if one is there.
    pub fn is_dropped(&self) -> bool {
        matches!(self.sink, Sink::Null | Sink::Memory)
    }
}

impl Role {
    /// Whether bytes are made up for it, or dropped: it measures, and brings nobody anything.
    pub fn is_synthetic(&self) -> bool {
        match self {
            Self::Send(role) => {
                role.sources.iter().any(|source| matches!(source.origin, Origin::Zeros(_) | Origin::Random(_)))
            }
            Self::Receive(role) => role.is_dropped(),
        }
    }

    /// Refuses what only an end in the command's own process may be asked for: its standard streams.
    ///
    /// # Errors
    /// When it is asked for.
    pub fn check_remote(&self) -> Result<(), ProtocolError> {
        match self {
            Self::Send(role) if role.sources.iter().any(|source| source.origin == Origin::Stdin) => {
                Err(refused_sources())
            }
            Self::Receive(role) if role.sink == Sink::Stdout => Err(refused_sink(role.sink.number())),
            Self::Send(_) | Self::Receive(_) => Ok(()),
        }
    }
}

impl From<Filter> for raw::Filter {
    fn from(filter: Filter) -> Self {
        let Filter { rules, deletes_excluded, files, one_file_system, links, backup } = filter;
        let rule = |(form, line): (RuleForm, Vec<u8>)| raw::FilterRule { form: form.number(), line };
        let FileBounds { size_min, size_max, modified_first, modified_last } = files;
        Self {
            rules: rules.into_iter().map(rule).collect(),
            deletes_excluded,
            size_min,
            size_max,
            first_seconds: modified_first.map(|time| time.seconds),
            first_nanos: modified_first.map_or(0, |time| time.nanos),
            last_seconds: modified_last.map(|time| time.seconds),
            last_nanos: modified_last.map_or(0, |time| time.nanos),
            one_file_system,
            backup: backup.map(Into::into),
            links: links.number(),
        }
    }
}

impl TryFrom<raw::Filter> for Filter {
    type Error = ProtocolError;

    fn try_from(raw: raw::Filter) -> Result<Self, ProtocolError> {
        let time = |seconds: Option<i64>, nanos| {
            let time = seconds.map(|seconds| Time::new(seconds, nanos));
            let is_valid = time.is_none_or(Time::is_valid);
            is_valid.then_some(time).ok_or_else(|| ProtocolError::violation("the peer sent a time that is none"))
        };
        let files = FileBounds {
            size_min: raw.size_min,
            size_max: raw.size_max,
            modified_first: time(raw.first_seconds, raw.first_nanos)?,
            modified_last: time(raw.last_seconds, raw.last_nanos)?,
        };
        let raw::Filter { rules, deletes_excluded, one_file_system, .. } = raw;
        let backup = raw.backup.map(backup).transpose()?;
        let unknown = || ProtocolError::violation("the peer wants links treated in an unknown way");
        let links = SourceLinks::from_number(raw.links).ok_or_else(unknown)?;
        Ok(Self { rules: all(rules, filter_rule)?, deletes_excluded, files, one_file_system, links, backup })
    }
}

/// A rule of a filter: what it says is checked where it is added to others.
fn filter_rule(rule: raw::FilterRule) -> Result<(RuleForm, Vec<u8>), ProtocolError> {
    let form = RuleForm::from_number(rule.form);
    let form = form.ok_or_else(|| ProtocolError::violation("the peer sent a rule of an unknown form"))?;
    Ok((form, rule.line))
}

/// A marker's key; no bytes stand for none.
fn marker_key(bytes: Vec<u8>) -> Result<Option<MarkerKey>, ProtocolError> {
    let wrong = |key: Vec<u8>| ProtocolError::violation(format!("the peer sent a marker's key of {} bytes", key.len()));
    Some(bytes).filter(|key| !key.is_empty()).map(|key| key.try_into().map_err(wrong)).transpose()
}

pub(super) fn refused_sources() -> ProtocolError {
    ProtocolError::violation("the peer asked for sources that it may not ask for")
}

fn refused_sink(number: u32) -> ProtocolError {
    ProtocolError::violation(format!("the peer asked for a destination of unknown kind {number}"))
}

impl TryFrom<raw::ReceiveRole> for ReceiveRole {
    type Error = ProtocolError;

    fn try_from(role: raw::ReceiveRole) -> Result<Self, ProtocolError> {
        Ok(Self {
            sink: Sink::from_number(role.sink).ok_or_else(|| refused_sink(role.sink))?,
            targets: all(role.targets, target)?,
            directory: bounded(role.directory)?,
            marker: marker_key(role.marker)?,
            anew: role.anew,
            partial: role.partial,
            lacks_top: role.lacks_top,
            delete: role.delete.map(|order| {
                let raw::RawDeleteOrder { most, partial, allow_empty, ignore_errors, asks, share } = order;
                // What is no share lets nothing be deleted.
                let share = share.map(|share| u8::try_from(share).ok().filter(|share| *share <= 100).unwrap_or(0));
                DeleteOrder { most, partial, share, allow_empty, ignore_errors, asks }
            }),
            backup: role.backup.map(backup).transpose()?,
        })
    }
}

impl From<Backup> for raw::RawBackup {
    fn from(backup: Backup) -> Self {
        let (directory, suffix) = backup.parts();
        Self { directory: directory.unwrap_or_default().to_vec(), suffix: suffix.to_vec() }
    }
}

/// What is kept has a directory below the destination and a suffix that is one.
fn backup(raw: raw::RawBackup) -> Result<Backup, ProtocolError> {
    let directory = Some(raw.directory).filter(|directory| !directory.is_empty());
    let refused = |why| ProtocolError::violation(format!("the peer keeps what it replaces where it may not: {why}"));
    Backup::new(directory, Some(raw.suffix)).map_err(refused)
}

impl TryFrom<raw::RawAccounts> for AccountMaps {
    type Error = ProtocolError;

    fn try_from(raw::RawAccounts { users, groups }: raw::RawAccounts) -> Result<Self, ProtocolError> {
        let map = |text: &str| match text {
            "" => Ok(AccountMap::default()),
            text => AccountMap::parse(text).map_err(ProtocolError::violation),
        };
        Ok(Self { users: map(&users)?, groups: map(&groups)? })
    }
}

impl TryFrom<raw::References> for ReferenceDirectories {
    type Error = ProtocolError;

    fn try_from(raw::References { used, paths }: raw::References) -> Result<Self, ProtocolError> {
        let refused = |why: String| ProtocolError::violation(format!("the peer named reference directories: {why}"));
        let used = ReferenceUse::from_number(used).ok_or_else(|| refused("for a use that is unknown".to_owned()))?;
        Self::new(used, paths).map_err(refused)
    }
}

impl SourceSpec {
    /// What is at a path, which goes into the destination directory itself.
    pub fn at(path: &[u8]) -> Self {
        Self { origin: Origin::Path(path.to_vec()), target: Vec::new() }
    }
}

impl TryFrom<raw::Source> for SourceSpec {
    type Error = ProtocolError;

    fn try_from(source: raw::Source) -> Result<Self, ProtocolError> {
        let origin = match source.synthetic {
            0 => Origin::Path(bounded(source.path)?),
            1 => Origin::Stdin,
            2 => Origin::Zeros(source.size),
            3 => Origin::Random(source.size),
            _ => return Err(refused_sources()),
        };
        let target = if source.target.is_empty() { source.target } else { target(source.target)? };
        Ok(Self { origin, target })
    }
}

impl From<SourceSpec> for raw::Source {
    fn from(source: SourceSpec) -> Self {
        let (synthetic, path, size) = match source.origin {
            Origin::Path(path) => (0, path, 0),
            Origin::Stdin => (1, Vec::new(), 0),
            Origin::Zeros(size) => (2, Vec::new(), size),
            Origin::Random(size) => (3, Vec::new(), size),
        };
        Self { path, target: source.target, synthetic, size }
    }
}

impl TryFrom<raw::List> for List {
    type Error = ProtocolError;

    fn try_from(list: raw::List) -> Result<Self, ProtocolError> {
        let raw::List { path, recursive, itself, sources, usage, details, survey } = list;
        if sources.len() > limits::LISTED_SOURCES {
            let what = format!("the peer asked about {} sources at once", sources.len());
            return Err(ProtocolError::violation(what));
        }
        Ok(Self {
            path: bounded(path)?,
            recursive,
            itself,
            sources: all(sources, SourceSpec::try_from)?,
            usage,
            details,
            survey: survey.map(TryInto::try_into).transpose()?,
        })
    }
}

impl TryFrom<raw::EvidenceAbout> for EvidenceAbout {
    type Error = ProtocolError;

    fn try_from(about: raw::EvidenceAbout) -> Result<Self, ProtocolError> {
        let wrong = |_| ProtocolError::violation("the peer asked about an address that is none");
        let peer = Some(about.peer).filter(|peer| !peer.is_empty());
        let peer = peer.map(|peer| peer.parse().map_err(wrong)).transpose()?;
        let connections = usize::try_from(about.connections).unwrap_or(usize::MAX).min(limits::EVIDENCE_CONNECTIONS);
        Ok(Self { peer, directory: bounded(about.directory)?, connections })
    }
}

fn all<A, B>(list: Vec<A>, check: impl Fn(A) -> Result<B, ProtocolError>) -> Result<Vec<B>, ProtocolError> {
    list.into_iter().map(check).collect()
}

/// A path as typed.
pub(super) fn bounded(path: Vec<u8>) -> Result<Vec<u8>, ProtocolError> {
    if path.len() > limits::PATH_BYTES { Err(ProtocolError::path(&path, PathError::TooLong)) } else { Ok(path) }
}

/// No root is no confinement: a path alone would be kept nowhere.
fn confinement(root: Vec<u8>, within: Vec<u8>) -> Result<Option<Confinement>, ProtocolError> {
    match (root.is_empty(), within.is_empty()) {
        (true, true) => Ok(None),
        (true, false) => Err(ProtocolError::violation("the peer named a path within no directory")),
        (false, true) => Ok(Some(Confinement { root: bounded(root)?, within })),
        (false, false) => Ok(Some(Confinement { root: bounded(root)?, within: relative(within)? })),
    }
}

/// A path below a destination.
fn relative(path: Vec<u8>) -> Result<Vec<u8>, ProtocolError> {
    let path = bounded(path)?;
    check_relative(&path).map_err(|error| ProtocolError::path(&path, error))?;
    Ok(path)
}

/// A target is one name's length at most, so that with what is below it it is still a path.
fn target(path: Vec<u8>) -> Result<Vec<u8>, ProtocolError> {
    if path.len() > limits::NAME_BYTES {
        return Err(ProtocolError::path(&path, PathError::TooLong));
    }
    relative(path)
}
