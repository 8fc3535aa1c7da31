//! What of a listing is taken: rules, sizes, ages and file systems leave out here what they leave out of a copy. The
//! rules' top is what is listed, as of a source with a slash at its end; one that is no directory goes by its name.

use std::io;

use carrack_core::attributes::Time;
use carrack_core::filter::{FilterSide, Filters, Scope};
use carrack_core::report::ItemKind;
use carrack_core::wire::control::Entry;
use carrack_sys::dir::{Dir, Kind, Stat};

use crate::storage::entering::{self, Trail};
use crate::storage::times::time_of;

/// What is taken below a directory, as it is listed depth first.
pub(super) struct ListingRules<'a> {
    filters: &'a Filters,
    /// The rules as they hold in the directory that was entered last.
    scope: Scope<'a>,
    /// The only file system that is entered; any where there is none.
    device: Option<u64>,
    trail: Trail,
}

impl<'a> ListingRules<'a> {
    pub fn new(filters: &'a Filters, top: &Dir) -> Self {
        let stat = filters.one_file_system.then(|| top.stat_self().ok()).flatten();
        let device = stat.map(|stat| stat.device);
        Self { filters, scope: filters.scope(FilterSide::Source), device, trail: Trail::default() }
    }

    /// Enters a directory, `path` below the top.
    ///
    /// # Errors
    /// When it is one of those above it, or has a file of rules that cannot be read.
    pub fn enter(&mut self, path: &[u8], directory: &Dir) -> io::Result<()> {
        // A bind mount can put a directory inside itself: the listing would not end.
        self.trail.enter(path, directory)?;
        entering::enter(&mut self.scope, directory, path)
    }

    /// Whether the rules take a name in the directory that was entered last.
    pub fn takes(&self, path: &[u8], kind: Kind) -> bool {
        self.scope.takes(path, kind == Kind::Dir, false)
    }

    /// Whether sizes and ages take it as well.
    pub fn takes_as_it_is(&self, stat: &Stat) -> bool {
        stat.kind != Kind::File || is_within(self.filters, stat.size, time_of(stat.mtime))
    }

    /// Whether a directory is listed, too, and not only named.
    pub fn enters(&self, stat: &Stat) -> bool {
        stat.kind == Kind::Dir && self.device.is_none_or(|only| only == stat.device)
    }
}

fn is_within(filters: &Filters, size: u64, modified: Time) -> bool {
    filters.files.take(Some(size), Some(modified)) == Some(true)
}

/// Whether what was named is taken. A directory is: what is left out is in it.
pub(super) fn takes_alone(filters: &Filters, entry: &Entry) -> bool {
    let takes_name = || filters.scope(FilterSide::Source).takes(&entry.path, false, false);
    match entry.kind {
        Some(ItemKind::Directory) => true,
        Some(ItemKind::File) => takes_name() && is_within(filters, entry.size, entry.mtime),
        _ => takes_name(),
    }
}
