//! A tree, told in the order in which two are compared, with the digests of its files where they are asked for. It is
//! walked as the source of a copy is: what copies have left unfinished does not count, links and rules mean the same.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use carrack_core::attributes::AttributesTold;
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::filter::Filters;
use carrack_core::path::{self, split_name};
use carrack_core::plan::check::listing_order;
use carrack_core::report::{FileDigests, ItemKind};
use carrack_core::request::Digests;
use carrack_core::selection::Selection;
use carrack_core::transfer::ScannedItem;
use carrack_core::wire::control::{Entry, Survey, Surveyed};

use super::{Overlaps, Pages, Summing, digest, stored};
use crate::error::failure;
use crate::storage::place::Place;
use crate::storage::read::{Found, Freshness, Root, Source, Walk, WalkChoice};
use crate::storage::source::PosixSource;

/// Entries of a page, so few that little is told again after a connection was lost; how long one may wait for others;
/// and how large a file is before which none waits.
const PAGE: usize = 128;
const WAITS: Duration = Duration::from_millis(500);
const LARGE_BYTES: u64 = 4 << 20;

/// What of a tree is compared.
pub struct SurveyChoice<'a> {
    pub filters: &'a Filters,
    pub selection: Option<&'a Selection>,
    /// Who asks was let in to all files.
    pub sees_all: bool,
}

/// Tells what is at a path, and below it.
pub fn survey(
    place: &Place,
    (path, survey): (&[u8], &Survey),
    chosen: &SurveyChoice<'_>,
    work: &Summing<'_>,
    send: &mut dyn FnMut(Vec<Entry>) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let root = open(place, (path, survey), chosen)?;
    let in_order = root.source.walks_in_order();
    let filters = Some(chosen.filters).filter(|filters| !filters.is_empty());
    let choice = WalkChoice {
        selection: chosen.selection,
        filters,
        freshness: Freshness::Stored,
        in_order,
        ..WalkChoice::all()
    };
    let pages = Pages { page: Vec::new(), bytes: 0, count: 0, overlaps: Overlaps::new(&[], None), send };
    let mut telling = Surveying { root: &root, survey, filters: chosen.filters, work, pages, flushed: Instant::now() };
    let mut result = Ok(());
    let mut found_all = Vec::new();
    root.walk(0, &choice, &mut |found| {
        if in_order {
            result = telling.tell(found);
        } else {
            found_all.push(found);
        }
        result.is_ok()
    });
    result?;
    // A store that has another order: its list is held whole.
    if !in_order {
        found_all.extend(directories_above(&root, &found_all));
        found_all.sort_by(|one, other| listing_order(path_of(one), path_of(other)));
    }
    found_all.into_iter().try_for_each(|found| telling.tell(found))?;
    telling.pages.flush()?;
    Ok(telling.pages.count)
}

fn open(place: &Place, (path, survey): (&[u8], &Survey), chosen: &SurveyChoice<'_>) -> Result<Root, Failure> {
    let mut source: Box<dyn Source> = match place {
        Place::Stored(_, store) => stored::look(&**store, path).and_then(|_| store.source(path))?,
        _ => Box::new(PosixSource::open(place, path)?),
    };
    if survey.kept.are_listed() && !chosen.sees_all {
        let why = "access control lists and extended attributes are not shown there: compare without them";
        return Err(failure(ErrorCode::PermissionDenied, Side::Source, why).at_path(path));
    }
    let sees_all = chosen.sees_all;
    let told =
        AttributesTold { kept: survey.kept, names: sees_all, at_once: true, hides_names: !sees_all, faked: false };
    source.tell_attributes(told);
    source.follow(chosen.filters.links, b"");
    let target = if source.is_directory() { Vec::new() } else { split_name(path).1.to_vec() };
    Ok(Root { source, target, typed: path.to_vec() })
}

/// Directories that a store has no items of: the other side's are not compared with nothing.
fn directories_above(root: &Root, found: &[Found]) -> Vec<Found> {
    let mut above: BTreeSet<&[u8]> = found.iter().flat_map(|found| path::above(path_of(found))).collect();
    if root.source.is_directory() {
        above.insert(b"");
    }
    found.iter().filter(|found| !matches!(found, Found::Listed { .. } | Found::Own)).for_each(|found| {
        above.remove(path_of(found));
    });
    above.into_iter().map(|path| Found::LeftOut(Walk::plain(0).item(path, ItemKind::Directory))).collect()
}

fn path_of(found: &Found) -> &[u8] {
    match found {
        Found::Item(item) | Found::Failure(item, _) | Found::LeftOut(item) => &item.path,
        Found::Own | Found::Listed { .. } => b"",
    }
}

/// A tree that is being told.
struct Surveying<'a, 'b> {
    root: &'a Root,
    survey: &'a Survey,
    filters: &'a Filters,
    work: &'a Summing<'a>,
    pages: Pages<'b>,
    flushed: Instant,
}

impl Surveying<'_, '_> {
    fn tell(&mut self, found: Found) -> Result<(), Failure> {
        let entry = match found {
            // Nothing at all could be listed.
            Found::Failure(item, why) if item.path.is_empty() => return Err(why.at_path(&self.root.typed[..])),
            // Where its entries would come.
            Found::Failure(item, why) if item.kind == ItemKind::Directory => failed(item, why),
            Found::Item(item) | Found::Failure(item, _) | Found::LeftOut(item) if self.was_told(&item.path) => {
                drop(item);
                return Ok(());
            }
            Found::Item(item) => self.item(item)?,
            Found::Failure(item, why) => failed(item, why),
            Found::LeftOut(item) => Entry {
                path: item.path,
                kind: Some(item.kind),
                surveyed: Some(Surveyed { is_left_out: true, ..Surveyed::default() }),
                ..Entry::default()
            },
            Found::Own | Found::Listed { .. } => return Ok(()),
        };
        self.pages.push(entry)?;
        if self.pages.page.len() >= PAGE || self.flushed.elapsed() >= WAITS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.flushed = Instant::now();
        self.pages.flush()
    }

    /// Whether whoever asks has it from an earlier connection.
    fn was_told(&self, path: &[u8]) -> bool {
        !self.survey.after.is_empty() && listing_order(path, &self.survey.after).is_le()
    }

    fn item(&mut self, mut item: ScannedItem) -> Result<Entry, Failure> {
        let link = (item.kind == ItemKind::Symlink).then(|| self.root.link_target(&item.path, self.filters.links));
        let link_target = match link.transpose() {
            Ok(link) => link.map(|(target, _)| target).unwrap_or_default(),
            Err(why) => return Ok(failed(item, why)),
        };
        let mut digests = FileDigests::default();
        if item.kind == ItemKind::File && self.survey.digests != Digests::NONE {
            if item.size.is_none_or(|size| size >= LARGE_BYTES) {
                self.flush()?;
            }
            match digest(&*self.root.source, &item, self.survey.digests, self.work) {
                Ok((size, found)) => (item.size, digests) = (Some(size), found),
                Err(why) => return Ok(failed(item, why)),
            }
        }
        let ScannedItem { path, kind, size, attributes, special, file, names, .. } = item;
        let file = file.filter(|_| self.survey.kept.hard_links && names > 1);
        let is_timeless = attributes.mtime.is_none();
        Ok(Entry {
            path,
            kind: Some(kind),
            size: size.unwrap_or(0),
            mode: attributes.mode & 0o7777,
            mtime: attributes.mtime.unwrap_or_default(),
            link_target,
            attributes: attributes.others,
            surveyed: Some(Surveyed { digests, is_timeless, is_left_out: false, special, file }),
            ..Entry::default()
        })
    }
}

fn failed(item: ScannedItem, why: Failure) -> Entry {
    Entry { path: item.path, kind: Some(item.kind), failure: Some(why), ..Entry::default() }
}
