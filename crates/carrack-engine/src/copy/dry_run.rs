//! A dry run: what would be copied is counted.

use carrack_core::report::{Event, Failure, FileDigests, ItemKind, ItemReport, Outcome};
use carrack_core::selection::place;
use carrack_core::wire::control::{Ask, List, Origin, Tell};

use super::Copying;
use super::resolve::Plan;
use super::watch::add;
use crate::end::End;
use crate::storage::names::is_own_path;

impl Copying<'_> {
    /// Counts what would be copied: all that the sources have.
    pub(super) fn count(&mut self, plan: &Plan, source: &mut End) -> Result<(), Failure> {
        // Sources that become a directory each: a listing has what is in them, not themselves.
        self.report.counts.directories = plan.directories;
        for (number, wanted) in plan.sources.iter().enumerate() {
            let path = match &wanted.origin {
                Origin::Path(path) => path.clone(),
                made => {
                    self.report.counts.add(ItemKind::File, made_bytes(made));
                    self.tell_planned(wanted.target.clone(), ItemKind::File, made_bytes(made));
                    continue;
                }
            };
            // The source end looks whether two sources have the same names.
            let sources = plan.overlapping(number);
            let list = List { path, recursive: true, sources, ..List::default() };
            let request = source.ask(Ask::List(list))?;
            while let Tell::Page(page) = source.answer(&mut self.inbox, &self.note, request)? {
                for entry in page {
                    let kind = entry.kind;
                    // Of a source that is a file the listing names the file, not a path below it.
                    let is_root = plan.files.contains(&wanted.target);
                    if let Some(failure) = entry.failure {
                        self.count_failure(place(&wanted.target, if is_root { b"" } else { &entry.path }), failure);
                        continue;
                    }
                    // Markers and part files of other copies are no content; a copy leaves them out and counts them,
                    // too.
                    if !is_root && is_own_path(&entry.path, kind) {
                        add(&mut self.report.counts.leftovers_skipped, 1);
                        continue;
                    }
                    match kind {
                        Some(kind @ (ItemKind::File | ItemKind::Directory | ItemKind::Symlink)) => {
                            self.report.counts.add(kind, entry.size);
                            let path = place(&wanted.target, if is_root { b"" } else { &entry.path });
                            self.tell_planned(path, kind, entry.size);
                        }
                        _ => {
                            add(&mut self.report.counts.specials_skipped, 1);
                            add(&mut self.report.counts.files_failed, 1);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// An item that would be copied, where items are told.
    fn tell_planned(&mut self, path: Vec<u8>, kind: ItemKind, size: u64) {
        if self.request.options.item_events {
            let (digests, judgment) = (FileDigests::default(), None);
            let item = ItemReport { path, kind, size, digests, judgment, outcome: Outcome::Planned };
            self.tell_slowly(Event::Item(item));
        }
    }

    /// Something that a dry run has found would fail.
    fn count_failure(&mut self, path: Vec<u8>, failure: Failure) {
        add(&mut self.report.counts.files_failed, 1);
        self.keep_failure(&path, &failure);
    }
}

/// Bytes of a source that is no path, as far as they are known.
fn made_bytes(origin: &Origin) -> u64 {
    match origin {
        Origin::Zeros(size) | Origin::Random(size) => *size,
        Origin::Path(_) | Origin::Stdin => 0,
    }
}
