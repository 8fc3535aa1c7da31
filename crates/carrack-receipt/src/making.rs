//! A receipt of a copy: items as it tells them, then what the destination has, once it has ended.

use std::fs::File;
use std::io::Write;

use carrack_core::location::Location;
use carrack_core::report::{Event, Report, Side};
use carrack_core::request::{Compare, CopyOptions};
use carrack_engine::Context;
use carrack_engine::check::{SurveyedPlace, survey};

use crate::error::ReceiptError;
use crate::item::ReceiptItem;
use crate::key::ReceiptKey;
use crate::statement::{HostFacts, Statement, listed_attributes};
use crate::write::Draft;

/// A receipt that is being made.
pub struct Making {
    draft: Draft,
    /// The connection was lost: items are told again from the start.
    again: bool,
    sources: Vec<String>,
    directory: Option<Location>,
    hosts: Vec<HostFacts>,
}

impl Making {
    /// Before anything is moved. `spool` is an empty file that nobody else has: items wait there.
    pub fn new(spool: File) -> Self {
        Self { draft: Draft::new(spool), again: false, sources: Vec::new(), directory: None, hosts: Vec::new() }
    }

    /// An item of an earlier attempt. It stays, unless this one tells it again.
    pub fn earlier(&mut self, item: ReceiptItem) {
        self.draft.add(item);
    }

    /// Calls the hosts so, where they have such a name for people: source and destination.
    pub fn name_hosts(&mut self, names: [Option<String>; 2]) {
        for (host, name) in self.hosts.iter_mut().zip(names) {
            if let Some(name) = name {
                host.name = name;
            }
        }
    }

    /// Takes what a copy tells.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Resolved { sources, directory, .. } => {
                self.sources.clone_from(sources);
                self.directory.clone_from(directory);
            }
            Event::Ends(ends) => {
                let named = [("source", &ends.source), ("destination", &ends.destination)];
                self.hosts = named.map(|(side, end)| HostFacts::of(side, end)).into();
            }
            Event::Item(item) => {
                if std::mem::take(&mut self.again) {
                    self.draft.start_over();
                }
                self.draft.item(item);
            }
            Event::SessionLost { .. } => self.again = true,
            _ => {}
        }
    }

    /// Lists what the destination has, writes the receipt and signs it. `statement` says what the copy does not know of
    /// itself: its identifier, what it is, when it was; its places, if they are not to be told as the copy names them.
    ///
    /// # Errors
    /// When the destination cannot be listed, or the receipt not be written.
    pub fn finish(
        mut self,
        mut statement: Statement,
        (report, options, context): (&Report, &CopyOptions, &Context),
        key: &ReceiptKey,
        out: &mut dyn Write,
    ) -> Result<Statement, ReceiptError> {
        let kept = listed_attributes(options.kept);
        if statement.sources.is_empty() {
            statement.sources = std::mem::take(&mut self.sources);
            statement.destination = self.directory.as_ref().map(ToString::to_string).unwrap_or_default();
        }
        statement.hosts = std::mem::take(&mut self.hosts);
        statement.kept = kept.bits();
        statement = statement.with_report(report, options);
        let Some(directory) = self.directory.filter(|_| report.error.is_none()) else {
            statement.not_claimed.push("attributes of items: the destination was not listed".into());
            return self.draft.write(None, statement, key, out);
        };
        let found = CopyOptions {
            only: self.draft.tops(),
            filters: Default::default(),
            // Who compares content wants digests of what was the same, too: they are made from what is there.
            compare: if options.compare == Compare::Content { Compare::Content } else { Compare::SizeAndTime },
            deadline: None,
            kept,
            ..options.clone()
        };
        let end = &options.destination;
        let place = SurveyedPlace { location: &directory, end, options: &found, side: Side::Destination };
        let draft = self.draft;
        survey(place, context, &|_| (), |pull| draft.write(Some(pull), statement, key, out))?
    }
}
