//! The transfer's beginning: what is selected, and what each side is told.

use carrack_core::growing::GrowingSources;
use carrack_core::limits;
use carrack_core::location::Location;
use carrack_core::pace::packing::Compressible;
use carrack_core::report::{ErrorCode, Failure, Reason, Side};
use carrack_core::request::{CopyOptions, DeleteOrder, Delta, Reflink, Verify};
use carrack_core::selection::Selection;
use carrack_core::wire::control::{Ask, Begin, Filter, ReceiveRole, Role, SendRole, Tell, TransferOptions};

use super::Copying;
use super::ends::Ends;
use super::resolve::Plan;
use crate::end::EndId;
use crate::error::failure;

impl Copying<'_> {
    /// What `--files-from` chose, if it was given.
    pub(super) fn selection(&self, plan: &Plan) -> Result<Option<Selection>, Failure> {
        let Some(only) = &self.request.options.only else { return Ok(None) };
        let mut selection = Selection::default();
        for path in only {
            let is_named = |target: &[u8]| {
                target.is_empty() || path.strip_prefix(target).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
            };
            if !plan.sources.iter().any(|source| is_named(&source.target)) {
                let why = "was selected, and is not among what would be copied";
                let unplanned = failure(ErrorCode::Usage, Side::Command, why).at_path(&path[..]);
                return Err(unplanned.for_reason(Reason::SelectedUnplanned));
            }
            selection.add(path.clone());
        }
        Ok(Some(selection))
    }

    fn select(&mut self, selection: Option<&Selection>, ends: &mut Ends) -> Result<(), Failure> {
        let Some(selection) = selection else { return Ok(()) };
        let paths = selection.paths().map(|path| (path.len() + 8, path.to_vec()));
        self.tell_source(ends, paths, Ask::Select)
    }

    /// Tells an end what is left out, and what is not deleted.
    fn filter(&mut self, end: EndId, ends: &mut Ends) -> Result<(), Failure> {
        let options = &self.request.options;
        for filter in Filter::messages(&options.filters, options.backup.as_ref()) {
            ends.get(end).request(&mut self.inbox, &self.note, Ask::Filter(filter))?;
        }
        Ok(())
    }

    /// Tells the destination end which directories may have files already, and who becomes whom. One that does not know
    /// what that is cannot do what was asked for.
    fn refer(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        let CopyOptions { references, accounts, .. } = &self.request.options;
        let looks = references.clone().map(|references| {
            let what = "its program is older and looks into no other directories for files: update it there";
            (Ask::Refer(references), what)
        });
        let maps = (!accounts.are_empty()).then(|| {
            let what = "its program is older and gives items no other owners: update it there";
            (Ask::Accounts(accounts.clone()), what)
        });
        for (ask, what) in looks.into_iter().chain(maps) {
            let explained = |why: Failure| match why.code {
                ErrorCode::ProtocolViolation => failure(ErrorCode::Unsupported, Side::Destination, what).caused_by(why),
                _ => why,
            };
            ends.destination.request(&mut self.inbox, &self.note, ask).map_err(explained)?;
        }
        Ok(())
    }

    /// Tells the source end which digests files must have.
    fn expect(&mut self, ends: &mut Ends) -> Result<(), Failure> {
        let expected = self.request.options.expected.clone();
        if expected.is_empty() {
            return Ok(());
        }
        let digests = expected.iter().map(|(path, digest)| (path.len() + digest.len() + 16, (path.clone(), *digest)));
        self.tell_source(ends, digests, Ask::Expect)
    }

    /// Tells the source end of many things, each with the bytes that it takes, in as many messages as they need: of
    /// nothing in one, for no selection is another than an empty one.
    fn tell_source<T>(
        &mut self,
        ends: &mut Ends,
        things: impl Iterator<Item = (usize, T)>,
        ask: impl Fn(Vec<T>) -> Ask,
    ) -> Result<(), Failure> {
        let mut things = things.peekable();
        loop {
            let mut room = limits::TOLD_BYTES;
            let mut page = Vec::new();
            while let Some((bytes, thing)) = things.next_if(|_| room > 0) {
                room = room.saturating_sub(bytes);
                page.push(thing);
            }
            ends.source.request(&mut self.inbox, &self.note, ask(page))?;
            if things.peek().is_none() {
                return Ok(());
            }
        }
    }

    /// Has the receiver begin, and does not wait for its answer: over a long path it comes while the
    /// data connection is made.
    pub(super) fn begin_receiving(&mut self, plan: &Plan, ends: &mut Ends) -> Result<u64, Failure> {
        if plan.in_order {
            // Whoever reads a FIFO meets its end when this session ends, whether or not anything came.
            self.used_up = plan.single_use();
        }
        let options = &self.request.options;
        // Of the second reading of a source the receiver knows nothing.
        let verify = if options.verify == Verify::Source { Verify::Wire } else { options.verify };
        if options.compress {
            let can = self.can_compress(ends);
            if can != Compressible::Yes && self.session == 0 {
                (self.note)(format!("nothing is compressed: {}", can.meaning()));
            }
            self.report.compress = Some(can);
        }
        let options_told = self.transfer_options(plan, ends, verify);
        let receive = ReceiveRole {
            sink: plan.sink,
            directory: plan.directory.clone(),
            targets: plan.targets(),
            marker: plan.marker,
            // A later session of this run goes on from where this run stood.
            anew: !options.resume && self.session == 0,
            partial: options.only.is_some() || !options.filters.is_empty(),
            lacks_top: options.only.is_some(),
            delete: options.delete.map(|order| self.order_to_delete(order)),
            backup: options.backup.clone(),
        };
        if options.delete.is_some() {
            self.filter(EndId::Destination, ends)?;
        }
        self.refer(ends)?;
        ends.destination.ask(Ask::Begin(Begin { options: options_told, role: Role::Receive(receive) }))
    }

    /// What a session may delete: so many in all sessions together.
    fn order_to_delete(&mut self, order: DeleteOrder) -> DeleteOrder {
        let deleted = self.report.at_destination.items_deleted;
        self.untold_deletion |= std::mem::take(&mut self.is_deleting);
        let most = match order.most {
            _ if order.partial && self.untold_deletion => {
                let why = "the connection to the destination was lost, and nobody knows how many items had been deleted \
                           by then: no more are deleted";
                (self.note)(why.to_owned());
                Some(0)
            }
            most => most.map(|most| most.saturating_sub(deleted)),
        };
        DeleteOrder { most, asks: self.context.asker.is_some(), ..order }
    }

    /// Has the sender begin: once the receiver has, if that is `begun` and is to say whether anything is there from an
    /// earlier session.
    pub(super) fn begin_sending(
        &mut self,
        plan: &Plan,
        selection: Option<&Selection>,
        begun: Option<u64>,
        ends: &mut Ends,
    ) -> Result<(), Failure> {
        self.select(selection, ends)?;
        self.filter(EndId::Source, ends)?;
        self.expect(ends)?;
        // From here on bytes may be taken, and written, that there are only once.
        self.used_up = plan.single_use();
        let mut folds_case = false;
        let known = match begun {
            Some(begun) => loop {
                match ends.destination.answer(&mut self.inbox, &self.note, begun)? {
                    Tell::FoldsCase => folds_case = true,
                    began => break matches!(began, Tell::Done(count) if count > 0),
                }
            },
            // Something may be.
            None => true,
        };
        let role = Role::Send(SendRole { sources: plan.sources.clone(), known });
        let verify = self.request.options.verify;
        let options = TransferOptions { folds_case, ..self.transfer_options(plan, ends, verify) };
        let begin = Begin { options, role };
        // From here on the sender may say to delete.
        self.is_deleting = self.request.options.delete.is_some();
        ends.source.request(&mut self.inbox, &self.note, Ask::Begin(begin)).map(|_| ())
    }

    fn transfer_options(&self, plan: &Plan, ends: &Ends, verify: Verify) -> TransferOptions {
        let asked = &self.request.options;
        let mut options = TransferOptions::of(asked, verify, plan.block_bytes, ends.version());
        // Within one process nothing is quicker than to copy.
        if self.is_here() && options.delta == Delta::Auto {
            options.delta = Delta::Never;
        }
        // Where bytes are to be read, or their digests told, nothing is shared.
        let reads = matches!(asked.verify, Verify::Disk | Verify::Source)
            || asked.digest.adler32
            || asked.digest.crc32c
            || !asked.expected.is_empty()
            || asked.remove_sources;
        options.shares =
            self.is_here() && asked.reflink == Reflink::Auto && !reads && asked.growing == GrowingSources::Refuse;
        options.compress &= self.can_compress(ends) == Compressible::Yes;
        options
    }

    fn is_here(&self) -> bool {
        !self.request.destination.is_remote() && !self.request.sources.iter().any(Location::is_remote)
    }

    /// Whether both ends can have what travels compressed.
    fn can_compress(&self, ends: &Ends) -> Compressible {
        if self.is_here() {
            Compressible::Local
        } else if !ends.source.welcome.compresses {
            Compressible::OldSource
        } else if !ends.destination.welcome.compresses {
            Compressible::OldDestination
        } else {
            Compressible::Yes
        }
    }
}
