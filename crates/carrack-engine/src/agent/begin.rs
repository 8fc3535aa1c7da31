//! The beginning of a transfer: its sources or its destination are opened, and what was connected before is handed to
//! it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::Arc;

use carrack_core::accounts::AccountMaps;
use carrack_core::attributes::AttributesTold;
use carrack_core::backup::Backup;
use carrack_core::expected::ExpectedDigests;
use carrack_core::filter::{AddedRule, Filters};
use carrack_core::grant::Right;
use carrack_core::limits;
use carrack_core::reference::ReferenceDirectories;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::request::{Delta, Existing, InPlace, Renames};
use carrack_core::selection::Selection;
use carrack_core::wire::control::{
    Begin, Filter, Origin, ReceiveRole, Role, SendRole, Sink, SourceSpec, Tell, TransferOptions,
};
use carrack_core::wire::expected::Expected;
use carrack_core::wire::mux::Channel;
use carrack_sys::dir::{Kind, stat_file};
use carrack_sys::file::clear_nonblock;
use carrack_sys::host::sees_trusted_attributes;
use carrack_sys::standard::Patient;

use super::bounded::BoundedTest;
use super::{Agent, DataPort};
use crate::data::measurements::TestWay;
use crate::error::{failure, io_failure, protocol_failure, system_failure};
use crate::standard::Standard;
use crate::storage::null::Null;
use crate::storage::pipe::FifoWriter;
use crate::storage::place::Place;
use crate::storage::posix::extended::Holder;
use crate::storage::posix::faked::shown;
use crate::storage::posix::references::References;
use crate::storage::posix::store::store_of;
use crate::storage::posix::tree::standing_item;
use crate::storage::properties::{MarkerRequest, Properties};
use crate::storage::read::{Root, Source};
use crate::storage::sequential::Sequential;
use crate::storage::stdin::Stdin;
use crate::storage::store::Wanted;
use crate::storage::synthetic::Synthetic;
use crate::storage::write::{Destination, StandingItem};
use crate::transfer::receive::{MappedAccounts, ReceiveChoice, ReceiveRun, SweepOrder};
use crate::transfer::send::{SendChoice, SendRun};
use crate::transfer::{Measured, Running, Voice, write_options};

/// What the peer tells of the next transfer before it begins.
#[derive(Default)]
pub(super) struct Chosen {
    /// What is to be sent of its sources.
    selection: Option<Selection>,
    /// Digests that its files must have.
    expected: Expecting,
    /// What is left out, and what is not deleted.
    filters: Filters,
    /// Where the destination keeps what it replaces.
    backup: Option<Backup>,
    /// Directories at the destination that may have a file already.
    references: Option<ReferenceDirectories>,
    /// Owners and groups that become others.
    accounts: AccountMaps,
}

/// Digests that files of a transfer must have, while the peer tells them.
#[derive(Default)]
struct Expecting {
    digests: BTreeMap<Vec<u8>, [u8; 32]>,
    bytes: usize,
}

impl Expecting {
    /// Of one path the last digest counts.
    fn add(&mut self, path: Vec<u8>, digest: [u8; 32]) -> Result<(), Failure> {
        let (bytes, count) = (self.bytes + path.len() + digest.len(), self.digests.len());
        match self.digests.entry(path) {
            Entry::Occupied(mut known) => drop(known.insert(digest)),
            Entry::Vacant(_) if bytes > limits::SELECTED_BYTES || count >= limits::SELECTED_PATHS => {
                let most = format!("more than {} paths, or {} bytes", limits::SELECTED_PATHS, limits::SELECTED_BYTES);
                let what = format!("the peer expects digests of {most}");
                return Err(failure(ErrorCode::ProtocolViolation, Side::Link, what));
            }
            Entry::Vacant(new) => {
                new.insert(digest);
                self.bytes = bytes;
            }
        }
        Ok(())
    }
}

impl Agent {
    /// Adds to what the next transfer sends, and counts all of it.
    pub(super) fn select(&self, paths: Vec<Vec<u8>>) -> Result<u64, Failure> {
        let mut state = self.lock();
        let selection = state.chosen.selection.get_or_insert_default();
        for path in paths {
            selection.add(path);
            // The peer may say any number of paths, in as many messages as it likes: their sum is what has a bound.
            let (count, bytes) = selection.size();
            if count > limits::SELECTED_PATHS || bytes > limits::SELECTED_BYTES {
                let what =
                    format!("more than {} paths, or {} bytes of them", limits::SELECTED_PATHS, limits::SELECTED_BYTES);
                return Err(failure(ErrorCode::ProtocolViolation, Side::Link, format!("the peer selected {what}")));
            }
        }
        Ok(selection.size().0 as u64)
    }

    /// What is left out: listings and sums go by it, too.
    pub(super) fn chosen_filters(&self) -> Filters {
        self.lock().chosen.filters.clone()
    }

    /// What alone is compared.
    pub(super) fn chosen_selection(&self) -> Option<Selection> {
        self.lock().chosen.selection.clone()
    }

    /// Adds to the digests that files of the next transfer must have, and counts all of them.
    pub(super) fn expect(&self, expected: Vec<(Vec<u8>, [u8; 32])>) -> Result<u64, Failure> {
        let mut state = self.lock();
        expected.into_iter().try_for_each(|(path, digest)| state.chosen.expected.add(path, digest))?;
        Ok(state.chosen.expected.digests.len() as u64)
    }

    /// Adds to what the next transfer leaves out, and counts the rules.
    pub(super) fn filter(&self, filter: Filter) -> Result<u64, Failure> {
        let chosen = &mut self.lock().chosen;
        chosen.backup = filter.backup;
        let filters = &mut chosen.filters;
        if filters.is_empty() {
            *filters = Filters::new(filter.deletes_excluded);
        }
        filters.files = filter.files;
        filters.one_file_system = filter.one_file_system;
        filters.links = filter.links;
        let count = filter.rules.len() as u64;
        for (form, line) in filter.rules {
            // Files that a rule names are read where the rule was written.
            let refused = match filters.add(form, &line) {
                Ok(AddedRule::Taken) => continue,
                Ok(AddedRule::Merge(..)) => "it names a file".to_owned(),
                Err(why) => why,
            };
            let what = format!("the peer sent a rule that is none: {refused}");
            return Err(failure(ErrorCode::ProtocolViolation, Side::Link, what));
        }
        Ok(count)
    }

    /// Directories that may have files of what the next transfer receives.
    pub(super) fn refer(&self, references: ReferenceDirectories) -> u64 {
        let count = references.paths().len() as u64;
        self.lock().chosen.references = Some(references);
        count
    }

    /// Owners and groups that become others in what the next transfer receives.
    pub(super) fn map_accounts(&self, accounts: AccountMaps) {
        self.lock().chosen.accounts = accounts;
    }

    /// Opens the reference directories of a transfer.
    fn references(&self, role: &ReceiveRole, options: &TransferOptions) -> Result<Option<References>, Failure> {
        let place = &self.environment.place;
        let is_file_system = role.sink == Sink::Files && !matches!(place, Place::Stored(..));
        let opened = self.reference_directories(role)?.map(|opened| opened.faked(options.fake_super));
        if options.renames == Renames::Never || role.delete.is_none() || !is_file_system {
            return Ok(opened);
        }
        opened.unwrap_or_else(References::none).faked(options.fake_super).with_own(place, &role.directory).map(Some)
    }

    fn reference_directories(&self, role: &ReceiveRole) -> Result<Option<References>, Failure> {
        let Some(wanted) = self.lock().chosen.references.take() else { return Ok(None) };
        let refuse = |why| Err(failure(ErrorCode::Unsupported, Side::Destination, why));
        if role.sink != Sink::Files || matches!(self.environment.place, Place::Stored(..)) {
            return refuse("only a file system has directories whose files can be linked, copied or compared there");
        }
        let mut tell = |note| {
            // A command that cannot be told is gone.
            let _ = self.writer.send(Channel::CONTROL, &Tell::Note(note).encode(0));
        };
        References::open(&self.environment.place, &role.directory, &wanted, role.delete.is_some(), &mut tell).map(Some)
    }

    /// Starts a transfer. A receiving one answers how many items it knows from earlier sessions: where there are none,
    /// the sender asks nothing and nothing small has to wait for an answer.
    pub(super) fn begin(self: &Arc<Self>, request: u64, begin: Begin) -> Result<u64, Failure> {
        let Begin { options, role } = begin;
        let options = self.within_grant(options);
        if self.lock().running.is_some() {
            return Err(failure(
                ErrorCode::ProtocolViolation,
                Side::Link,
                "the peer began a second transfer in one session",
            ));
        }
        // Standard streams are those of the process that the user started. An agent elsewhere would read and write
        // streams that carry the protocol.
        if self.environment.own.is_none() {
            role.check_remote().map_err(|error| protocol_failure(Side::Link, &error))?;
        }
        let measurement = self.measurement(&role)?;
        let tuning = Arc::clone(&self.environment.tuning);
        let mut known = 0;
        let running = match role {
            Role::Send(role) => Running::Send(self.begin_sending(options, role)?),
            Role::Receive(role) => {
                let options = self.within_rights(options);
                let top = if options.item_changes { self.top_before(&role, &options) } else { None };
                let (destination, references) = self.may_receive(&role, &options)?;
                known = destination.known_count(options.digests);
                if destination.folds_case() {
                    self.page(request, Tell::FoldsCase)?;
                }
                let directory = (role.sink == Sink::Files).then(|| role.directory.clone());
                let voice = self.voice(self.measured(directory));
                let filters = std::mem::take(&mut self.lock().chosen.filters);
                let names_first = options.names_first();
                let sweep = |order| SweepOrder { order, filters, backup: role.backup, brought: known, names_first };
                let delete = role.delete.map(sweep);
                let chosen = ReceiveChoice {
                    expected: Expected::new(role.targets),
                    sweep: delete,
                    references,
                    accounts: MappedAccounts::find(std::mem::take(&mut self.lock().chosen.accounts))?,
                    top,
                    sources: self.environment.sources.clone(),
                };
                Running::Receive(ReceiveRun::start(options, destination, chosen, voice, tuning)?)
            }
        };
        measurement.iter().for_each(|measurement| measurement.has_begun(running.clone()));
        // Connections may arrive while the destination is being opened. Under one lock the transfer becomes known and
        // those that wait are taken, so that none arrives between the two and is left waiting.
        let waiting = loop {
            let mut state = self.lock();
            let Some(early) = state.early.pop_front() else {
                state.measurement = measurement;
                state.running = Some(running.clone());
                break std::mem::take(&mut state.waiting);
            };
            // Without the lock: it is answered at once.
            drop(state);
            running.handle_peer(&early);
        };
        // Only now: the scan's first offer may be answered at once, and the answer is handed to the transfer that the
        // state knows of.
        running.started();
        for connection in waiting {
            running.add_stream(connection);
        }
        Ok(known)
    }

    /// Opens the sources, and starts to send.
    fn begin_sending(self: &Arc<Self>, options: TransferOptions, role: SendRole) -> Result<Arc<SendRun>, Failure> {
        let mut roots = open_roots(&self.environment.place, &role.sources, self.environment.own.as_ref())?;
        let links = self.lock().chosen.filters.links;
        for root in &mut roots {
            root.source.follow(links, &root.target);
            let told = options.attributes_told();
            // Who may read files need not know who has accounts here.
            let names = told.names && self.environment.grant.is_none();
            root.source.tell_attributes(AttributesTold { names, hides_names: told.names && !names, ..told });
        }
        if options.kept.trusted_xattrs && !(self.environment.grant.is_none() && sees_trusted_attributes()) {
            let why = "only root reads extended attributes of the kind trusted, and no grant leads to them: copy without them";
            return Err(failure(ErrorCode::PermissionDenied, Side::Source, why));
        }
        if options.kept.selinux && self.environment.grant.is_some() {
            let why = "no grant leads to the labels of SELinux: copy without them";
            return Err(failure(ErrorCode::PermissionDenied, Side::Source, why));
        }
        if options.removes_sources {
            self.may_remove(&roots, &options)?;
        }
        if let Some(grant) = &self.environment.grant {
            let count = |root: Root| Root { source: grant.count_source(root.source), ..root };
            roots = roots.into_iter().map(count).collect();
        }
        let paths = role.sources.iter().filter_map(|source| match &source.origin {
            Origin::Path(path) => Some(path.clone()),
            _ => None,
        });
        let voice = self.voice(self.measured(paths));
        // It may be large, and only this transfer's scan looks at it.
        let Chosen { selection, expected, filters, backup, references: _, accounts: _ } =
            std::mem::take(&mut self.lock().chosen);
        let expected = ExpectedDigests::new(expected.digests);
        let chosen = SendChoice { selection, filters, backup, expected };
        let run = SendRun::start(options, roots, chosen, role.known, voice, Arc::clone(&self.environment.tuning))?;
        let sender = Arc::downgrade(&run);
        self.environment.sources.iter().for_each(|sources| sources.begin(sender.clone()));
        Ok(run)
    }

    /// What is asked for, as far as a grant allows it without being asked. What stands here is told of by digests, only
    /// to who may read it; and where bytes are counted, each counts once.
    fn within_grant(&self, options: TransferOptions) -> TransferOptions {
        match &self.environment.grant {
            Some(grant) if grant.check_right(Right::Read).is_err() || grant.counts_bytes() => {
                // What is written on is compared, too.
                let in_place = if options.in_place == InPlace::Append { InPlace::Never } else { options.in_place };
                TransferOptions { delta: Delta::Never, in_place, ..options }
            }
            _ => options,
        }
    }

    /// What is asked for, as far as this end gives it: who may go anywhere gives what they may, a node owners and
    /// what gives rights only where who runs it has said so. Where somebody is let in to a part of the files alone (a
    /// grant, an endpoint), they could make programs that run as others: that takes a right of its own. What is not
    /// given is counted as not kept.
    fn within_rights(&self, options: TransferOptions) -> TransferOptions {
        let is_free = matches!(self.environment.place, Place::Anywhere { .. });
        let may = self.environment.grant.as_ref().is_none_or(|grant| grant.check_right(Right::Ownership).is_ok());
        let gives = may && (is_free || self.environment.gives_ownership);
        // What is written down gives nobody anything.
        let kept = if gives || options.fake_super { options.kept } else { options.kept.without_privileges() };
        TransferOptions { kept, ..options }
    }

    /// Whether what is copied may be deleted here, and can be.
    fn may_remove(&self, roots: &[Root], options: &TransferOptions) -> Result<(), Failure> {
        if options.tells_names {
            // After a lost session the source has no longer what was moved.
            let why = "what was moved would be taken for what only the destination has: delete at one side alone";
            return Err(failure(ErrorCode::Usage, Side::Source, why));
        }
        let is_link = |root: &&Root| self.environment.place.names_a_link(&root.typed);
        if let Some(root) = roots.iter().find(is_link) {
            let why = "is a symbolic link: what it leads to would be deleted; name that";
            return Err(failure(ErrorCode::Unsupported, Side::Source, why).at_path(&root.typed[..]));
        }
        let of_source = |why: Failure| Failure { side: Side::Source, ..why };
        self.may_write().map_err(of_source)?;
        if let Some(grant) = &self.environment.grant {
            // Each that goes counts when it goes.
            grant.check_right(Right::Delete).and_then(|()| grant.check_in_force()).map_err(of_source)?;
        }
        let why = "nothing that has been copied can be deleted there";
        let stays = roots.iter().find(|root| !root.source.removes());
        stays.map_or(Ok(()), |root| Err(failure(ErrorCode::Unsupported, Side::Source, why).at_path(&root.typed[..])))
    }

    /// The destination before it is made, or its marker is written there; `None` where that is not known.
    fn top_before(&self, role: &ReceiveRole, options: &TransferOptions) -> Option<Option<StandingItem>> {
        let place = &self.environment.place;
        let (stat, _) = place.look(&role.directory).ok()?;
        let top = if options.fake_super { place.dir(&role.directory).ok() } else { None };
        let shown = |stat| top.as_ref().map_or(stat, |top| shown(stat, Holder::Directory(top)));
        Some(stat.map(|stat| standing_item(&shown(stat))))
    }

    /// Where what comes goes, if it may, and the directories that may have it already.
    fn may_receive(
        self: &Arc<Self>,
        role: &ReceiveRole,
        options: &TransferOptions,
    ) -> Result<(Box<dyn Destination>, Option<References>), Failure> {
        // Before the destination is looked at: a node for reading makes no directory and no marker.
        if !self.measures(role) {
            self.may_write()?;
        }
        if role.delete.is_some() && !options.plan_only {
            self.may_delete()?;
        }
        // Whoever may write below a node's root would have a link of theirs written through by others.
        if options.keeps_links && !matches!(self.environment.place, Place::Anywhere { .. }) {
            let why = "links below a destination are not written through there: copy without that, or over ssh";
            return Err(failure(ErrorCode::Unsupported, Side::Destination, why).at_path(&role.directory[..]));
        }
        if options.keeps_links && role.delete.is_some() {
            let why =
                "a directory that only a link leads to would be deleted: do not have links written through as well";
            return Err(failure(ErrorCode::Unsupported, Side::Destination, why).at_path(&role.directory[..]));
        }
        let references = self.references(role, options)?;
        let keeps_shared = references.as_ref().is_some_and(References::are_named);
        let destination = self.destination(role, options, keeps_shared)?;
        // One that is yet to be made has nothing to be deleted or kept.
        let Properties { keeps, deletes, .. } = destination.properties();
        if !deletes && (keeps || !options.plan_only) {
            let unsupported = |what| Err(failure(ErrorCode::Unsupported, Side::Destination, what));
            if role.delete.is_some() {
                return unsupported("what only the destination has cannot be found there, and so not deleted");
            }
            if role.backup.is_some() {
                return unsupported("what is replaced cannot be kept there");
            }
        }
        let destination = match &self.environment.grant {
            Some(grant) => grant.count_destination(destination),
            None => destination,
        };
        Ok((destination, references))
    }

    /// A node takes a measurement only from who may, one at a time, and each for a bounded time; what runs for its own
    /// user does as told.
    fn measurement(&self, role: &Role) -> Result<Option<BoundedTest>, Failure> {
        let DataPort::Shared(sessions) = &self.environment.data else { return Ok(None) };
        let way = match role {
            Role::Send(_) if role.is_synthetic() => TestWay::Out,
            Role::Receive(role) if self.measures(role) => TestWay::In,
            Role::Send(_) | Role::Receive(_) => return Ok(None),
        };
        if let Some(grant) = &self.environment.grant {
            return Err(grant.refuse("measure the path to the node"));
        }
        let place = sessions.measurements.begin(&self.environment.peer_address, way)?;
        BoundedTest::start(place, self.environment.tuning.measure_longest).map(Some)
    }

    /// Whether what comes is dropped, and not into a device: one has to be where the client says that it is.
    fn measures(&self, role: &ReceiveRole) -> bool {
        let is_device = || {
            let found = self.environment.place.look(&role.directory);
            matches!(found, Ok((Some(stat), _)) if stat.kind == Kind::CharDevice)
        };
        role.is_dropped() && (role.sink != Sink::Null || role.directory.is_empty() || !is_device())
    }

    /// How a transfer speaks: to the other end, whose messages travel as they are, and to the command.
    fn voice(self: &Arc<Self>, measured: Measured) -> Voice {
        let (peer, command) = (self.writer.clone(), self.writer.clone());
        let record = Arc::clone(&self.record);
        Voice {
            peer: Arc::new(move |message| peer.send(Channel::PEER, &message.encode())),
            command: Arc::new(move |tell| {
                if let Tell::Ended(ended) = &tell {
                    ended.failure.iter().for_each(|failure| record.failed(failure));
                }
                // A command that cannot be told is gone, which the reader of the connection notices and ends
                // everything.
                let _ = command.send(Channel::CONTROL, &tell.encode(0));
            }),
            measured,
        }
    }

    /// Opens the store that a request names as the destination.
    fn destination(
        self: &Arc<Self>,
        role: &ReceiveRole,
        options: &TransferOptions,
        keeps_shared: bool,
    ) -> Result<Box<dyn Destination>, Failure> {
        let path = &role.directory[..];
        match role.sink {
            Sink::Files => {
                let store = store_of(&self.environment.place);
                // Who copies to a far store does not know what it takes.
                store.properties().block_bytes.map_or(Ok(()), |takes| takes.check(options.block_bytes))?;
                store.destination(&Wanted {
                    path,
                    is_copied: role.targets.is_empty() && !role.lacks_top,
                    marker: marker_request(role, options),
                    options: write_options(options),
                    backup: role.backup.as_ref(),
                    keeps_links: options.keeps_links,
                    keeps_shared,
                    tuning: &self.environment.tuning,
                })
            }
            // Standard output is a stream: blocks are written in order, and nothing of it is taken up later.
            Sink::Stdout => {
                let out = self.environment.own.clone().unwrap_or_default().open_output();
                let out = out.map_err(|error| io_failure(Side::Destination, "standard output", &error))?;
                Ok(Box::new(Sequential::new(Box::new(Patient::new(out, self.is_over())))))
            }
            Sink::Null => Ok(Box::new(Null { takes: false })),
            Sink::Memory => Ok(Box::new(Null { takes: true })),
            Sink::Device => self.device(path).map(|device| Box::new(device) as _),
        }
    }

    /// Tells when nobody waits any more for what is written.
    fn is_over(self: &Arc<Self>) -> impl Fn() -> bool + Send + use<> {
        let agent = Arc::downgrade(self);
        move || agent.upgrade().is_none_or(|agent| agent.left.is_set())
    }

    /// A device or FIFO, which is written in place. A regular file is refused here: it would be neither whole nor
    /// the old one after a crash.
    fn device(self: &Arc<Self>, path: &[u8]) -> Result<Sequential, Failure> {
        let named = |error: &io::Error| system_failure(Side::Destination, error).at_path(path);
        let (parent, name) = self.environment.place.parent(path).map_err(|error| named(&error))?;
        if parent.stat_at(&name).map_err(|error| named(&error))?.kind == Kind::Fifo {
            // A FIFO is opened when the first byte comes: opening waits for its reader, and may have to be given up.
            return Ok(Sequential::new(Box::new(FifoWriter::new(parent, name, Box::new(self.is_over())))));
        }
        // Opened first and looked at then: what was looked at by name could be another thing by the time it is opened.
        let file = parent.open_write(&name).map_err(|error| named(&error))?;
        let kind = stat_file(&file).map_err(|error| named(&error))?.kind;
        if kind == Kind::File {
            let what = "is a regular file: only devices and FIFOs are written in place";
            return Err(failure(ErrorCode::Unsupported, Side::Destination, what).at_path(path));
        }
        // It was opened without waiting, so that nothing hangs here; its writes are to wait for the device.
        clear_nonblock(&file).map_err(|error| named(&error))?;
        // What a disk is given lies in the cache, and it tells only then that it cannot take it.
        Ok(if kind == Kind::BlockDevice { Sequential::to_disk(file) } else { Sequential::new(Box::new(file)) })
    }
}

/// Opens what a request names as sources. `own` is what `-` stands for, in the process that may read it.
///
/// # Errors
/// When one is not there or not readable.
pub(super) fn open_roots(place: &Place, sources: &[SourceSpec], own: Option<&Standard>) -> Result<Vec<Root>, Failure> {
    let store = store_of(place);
    let open = |spec: &SourceSpec| {
        let (source, typed): (Box<dyn Source>, &[u8]) = match &spec.origin {
            Origin::Path(path) => (store.source(path)?, path),
            Origin::Stdin => (Box::new(Stdin(own.cloned().unwrap_or_default())), b""),
            Origin::Zeros(size) => (Box::new(Synthetic::Zeros(*size)), b""),
            Origin::Random(size) => (Box::new(Synthetic::Random(*size)), b""),
        };
        Ok(Root { source, target: spec.target.clone(), typed: typed.to_vec() })
    };
    sources.iter().map(open).collect()
}

/// What a receiver's marker is found by, where it is to have one.
fn marker_request(role: &ReceiveRole, options: &TransferOptions) -> Option<MarkerRequest> {
    // What is kept as it is may have an unfinished part, too.
    let partial = role.partial || options.existing != Existing::Replace;
    role.marker.map(|key| MarkerRequest { key, anew: role.anew, made_top: false, partial })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_digests_are_bounded_in_bytes_and_each_path_counts_once() {
        let mut expecting = Expecting::default();
        for _ in 0..3 {
            expecting.add(b"path".to_vec(), [1; 32]).unwrap();
        }
        expecting.add(b"path".to_vec(), [2; 32]).unwrap();
        assert_eq!((expecting.bytes, expecting.digests[&b"path"[..]]), (4 + 32, [2; 32]));
        // The last that fits, and one that does not.
        expecting.bytes = limits::SELECTED_BYTES - 2 - 32;
        expecting.add(b"ab".to_vec(), [3; 32]).unwrap();
        assert_eq!(expecting.bytes, limits::SELECTED_BYTES);
        let why = expecting.add(b"c".to_vec(), [4; 32]).unwrap_err();
        assert_eq!(why.code, ErrorCode::ProtocolViolation);
        assert_eq!((expecting.digests.len(), expecting.bytes), (2, limits::SELECTED_BYTES));
        // What is known already takes no more room.
        expecting.add(b"ab".to_vec(), [5; 32]).unwrap();
        assert_eq!(expecting.digests[&b"ab"[..]], [5; 32]);
    }
}
