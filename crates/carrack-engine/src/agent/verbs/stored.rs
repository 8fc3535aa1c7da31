//! The verbs on a store that a program has brought along: what reads is made of the store's own walk and readers. What
//! changes something in another way than a copy does is refused.

use std::collections::HashSet;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::filter::Filters;
use carrack_core::path::split_name;
use carrack_core::report::{ItemKind, ItemReport};
use carrack_core::transfer::ScannedItem;
use carrack_core::wire::control::{Entry, List, Sum};

use super::{Pages, Summing, digest, summed};
use crate::error::failure;
use crate::storage::place::Place;
use crate::storage::read::{Found, Freshness, Root, Source, Walk, WalkChoice};
use crate::storage::store::{Facts, Store};

/// Says that a verb is for files, where it would change a store.
///
/// # Errors
/// Of a place in a store.
pub fn check_files(place: &Place, verb: &str, path: &[u8]) -> Result<(), Failure> {
    let Place::Stored(name, _) = place else { return Ok(()) };
    let message =
        format!("{name} is a store: it can be listed, summed and copied, and there is no way to {verb} there");
    Err(failure(ErrorCode::Unsupported, Side::Destination, message).at_path(path))
}

pub(super) fn look(store: &dyn Store, path: &[u8]) -> Result<Facts, Failure> {
    let missing = || failure(ErrorCode::NotFound, Side::Source, "is not there");
    store.look(path).and_then(|facts| facts.ok_or_else(missing)).map_err(|why| why.at_path(path))
}

/// Takes what a walk has found, or what it could not look at: where, and why.
type TakeFound<'a> = &'a mut dyn FnMut(Result<ScannedItem, (Vec<u8>, Failure)>) -> Result<(), Failure>;

/// Hands out what is below a path and not left out, or the one thing that it is, until `each` says why to stop.
fn walk(root: &Root, filters: &Filters, each: TakeFound<'_>) -> Result<(), Failure> {
    let path = &root.typed[..];
    let mut result = Ok(());
    let filters = Some(filters).filter(|filters| !filters.is_empty());
    let chosen = WalkChoice { filters, freshness: Freshness::Stored, ..WalkChoice::all() };
    root.walk(0, &chosen, &mut |found| {
        result = match found {
            Found::Item(item) => each(Ok(item)),
            // Nothing at all could be listed, or no more of it.
            Found::Failure(item, why) if item.path.is_empty() && item.kind == ItemKind::Directory => {
                Err(why.at_path(path))
            }
            // What has no path below is told under the one that was typed.
            Found::Failure(item, why) if item.path.is_empty() => each(Err((path.to_vec(), why))),
            Found::Failure(item, why) => each(Err((item.path, why))),
            Found::LeftOut(_) | Found::Own | Found::Listed { .. } => Ok(()),
        };
        result.is_ok()
    });
    result
}

/// What is at a path, as a source whose rules begin there; of what is no directory they know the name.
fn root(store: &dyn Store, path: &[u8], is_directory: bool) -> Result<Root, Failure> {
    let target = if is_directory { Vec::new() } else { split_name(path).1.to_vec() };
    Ok(Root { source: store.source(path)?, target, typed: path.to_vec() })
}

/// What a listing says of an item under this path.
fn entry(source: &dyn Source, path: &[u8], item: &ScannedItem) -> Entry {
    let link = (item.kind == ItemKind::Symlink).then(|| source.link_target(&item.path));
    let (link_target, failure) = match link {
        Some(Err(why)) => (Vec::new(), Some(why)),
        Some(Ok((target, _))) => (target, None),
        None => (Vec::new(), None),
    };
    Entry {
        path: path.to_vec(),
        kind: Some(item.kind),
        size: item.size.unwrap_or(0),
        mode: item.attributes.mode,
        mtime: item.attributes.mtime.unwrap_or_default(),
        link_target,
        failure,
        ..Entry::default()
    }
}

fn directory(path: &[u8]) -> Entry {
    Entry { path: path.to_vec(), kind: Some(ItemKind::Directory), ..Entry::default() }
}

/// As [`super::list`]. The walk is of everything, also where only what lies directly below is listed. A directory that
/// the store has none of is listed where something lies in it.
pub fn list(store: &dyn Store, list: &List, filters: &Filters, pages: &mut Pages<'_>) -> Result<(), Failure> {
    let facts = look(store, &list.path)?;
    let is_directory = facts.kind == ItemKind::Directory;
    let name = match split_name(&list.path) {
        // What ends in a slash, or is all there is, has no name of its own.
        (_, b"") => &list.path,
        (_, name) => name,
    };
    let root = root(store, &list.path, is_directory)?;
    let source = &*root.source;
    if is_directory && list.itself {
        let mut itself = directory(name);
        // It comes first, if it comes.
        source.walk(&Walk::plain(0), &mut |found| {
            if let Found::Item(item) = found
                && item.path.is_empty()
            {
                itself = entry(source, name, &item);
            }
            false
        });
        return pages.push(itself);
    }
    let mut named = HashSet::new();
    walk(&root, filters, &mut |found| match found {
        Err((path, why)) => pages.push(Entry { path, failure: Some(why), ..Entry::default() }),
        Ok(item) if !is_directory => pages.push(entry(source, name, &item)),
        Ok(item) if item.path.is_empty() => Ok(()),
        Ok(item) => match item.path.iter().position(|&byte| byte == b'/').filter(|_| !list.recursive) {
            Some(end) if named.contains(&item.path[..end]) => Ok(()),
            Some(end) => {
                named.insert(item.path[..end].to_vec());
                pages.push(directory(&item.path[..end]))
            }
            None => {
                if item.kind == ItemKind::Directory {
                    named.insert(item.path.clone());
                }
                pages.push(entry(source, &item.path, &item))
            }
        },
    })
}

/// Of what is a directory, digests may be wanted of one file alone.
pub fn check_may_be_directory(sum: &Sum) -> Result<(), Failure> {
    let refused = || failure(ErrorCode::IsADirectory, Side::Source, "is no file").at_path(&sum.path[..]);
    if sum.one_file { Err(refused()) } else { Ok(()) }
}

/// As [`super::sum`].
pub fn sum(
    store: &dyn Store,
    sum: &Sum,
    filters: &Filters,
    work: &Summing<'_>,
    send: &mut dyn FnMut(Vec<ItemReport>) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let is_directory = look(store, &sum.path)?.kind == ItemKind::Directory;
    if is_directory {
        check_may_be_directory(sum)?;
    }
    let root = root(store, &sum.path, is_directory)?;
    let mut count = 0;
    walk(&root, filters, &mut |found| {
        let (path, result) = match found {
            Ok(item) if item.kind == ItemKind::File => {
                let path = if is_directory { &item.path[..] } else { split_name(&sum.path).1 };
                (path.to_vec(), digest(&*root.source, &item, sum.digests, work))
            }
            Ok(_) => return Ok(()),
            Err((path, why)) => (path, Err(why)),
        };
        count += 1;
        send(vec![summed(path, result)])
    })?;
    Ok(count)
}
