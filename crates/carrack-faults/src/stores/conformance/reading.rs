//! Rules of reading.

use std::collections::BTreeSet;

use carrack_core::failure::ErrorCode;
use carrack_core::report::ItemKind;
use carrack_core::selection::Selection;
use carrack_core::tuning::Tuning;

use super::trial::{Trial, lossy};
use super::{Broken, Rule, Verdict, ensure};
use carrack_engine::stores::read::{Found, There, Walk};

pub(super) const RULES: &[Rule] = &[
    ("a walk finds all, each once, directories first", walk),
    ("a walk finds what is selected, and stops when it is told to", selected),
    ("what is under a path is found without a walk", find),
    ("any range of a file is read as it is", ranges),
    ("a hint changes nothing that is read", hints),
    ("a file by itself is one item", one_file),
    ("a change after the listing is noticed", listed),
    ("a change while it is read is noticed", read),
    ("what is not there has vanished", vanished),
    ("two contents have two fingerprints", fingerprints),
    ("only what was copied is deleted", removal),
];

/// Some files, and the directories that they are in.
const FILES: [&str; 6] = ["a", "b/c/d", "b/c-d", "b/e", "b-c", "z/y"];
const DIRECTORIES: [&str; 4] = ["", "b", "b/c", "z"];

fn filled(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    FILES.iter().try_for_each(|name| trial.put_small(&*to, name, name.as_bytes()))?;
    to.sync_all()?;
    to.finish(true);
    Ok(())
}

fn walk(trial: &Trial<'_>) -> Verdict {
    filled(trial)?;
    let source = trial.source("")?;
    ensure(source.is_directory(), || "a directory is none".into())?;
    let items = Trial::listed(&*source)?;
    let mut seen = BTreeSet::new();
    for item in &items {
        let (parent, _) = carrack_core::path::split_name(&item.path);
        let after_parent = !trial.properties.directories || item.path.is_empty() || seen.contains(parent);
        ensure(after_parent, || format!("{:?} comes before its directory", lossy(&item.path)))?;
        ensure(seen.insert(item.path.clone()), || format!("{:?} comes twice", lossy(&item.path)))?;
    }
    let of = |kind| items.iter().filter(move |item| item.kind == kind).map(|item| lossy(&item.path)).collect();
    let (files, directories): (BTreeSet<_>, BTreeSet<_>) = (of(ItemKind::File), of(ItemKind::Directory));
    ensure(files == FILES.map(String::from).into(), || format!("the files found are {files:?}"))?;
    let all = directories == DIRECTORIES.map(String::from).into();
    ensure(all || !trial.properties.directories, || format!("the directories found are {directories:?}"))
}

fn selected(trial: &Trial<'_>) -> Verdict {
    filled(trial)?;
    let source = trial.source("")?;
    let mut selection = Selection::default();
    selection.add(b"t/b/c".to_vec());
    selection.add(b"t/nothing".to_vec());
    let mut files = Vec::new();
    let walk = Walk { target: b"t", selection: Some(&selection), ..Walk::plain(0) };
    source.walk(&walk, &mut |found| {
        if let Found::Item(item) = found
            && item.kind == ItemKind::File
        {
            files.push(lossy(&item.path));
        }
        true
    });
    ensure(files == ["b/c/d"], || format!("selected was b/c, and found are {files:?}"))?;
    let missing: Vec<_> = selection.missing().map(lossy).collect();
    ensure(missing == ["t/nothing"], || format!("told to be missing are {missing:?}"))?;
    let mut count = 0;
    source.walk(&Walk::plain(0), &mut |_| {
        count += 1;
        count < 2
    });
    ensure(count == 2, || format!("{count} items are found when there were to be two"))
}

fn find(trial: &Trial<'_>) -> Verdict {
    filled(trial)?;
    let source = trial.source("")?;
    for (path, wanted) in [
        ("", "directory"),
        ("b/c", "directory"),
        ("b/c/d", "b/c/d"),
        ("a", "a"),
        ("a/below", "a"),
        ("b/other", "nothing"),
        ("other/b", "nothing"),
    ] {
        let found = source.find(path.as_bytes()).map_err(|error| Broken(format!("find {path:?}: {error}")))?;
        let found = match found {
            There::Nothing => "nothing".to_owned(),
            There::Directory(_) => "directory".to_owned(),
            There::Other(at) => lossy(&at),
        };
        ensure(found == wanted, || format!("under {path:?} is {found}, not {wanted}"))?;
    }
    Ok(())
}

fn ranges(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let content = trial.content(20, 2 * trial.block as usize + 77);
    trial.put_large(&*to, "f", &content)?;
    let source = trial.source("")?;
    let item = Trial::item(&*source, "f")?;
    ensure(item.size == Some(content.len() as u64), || format!("listed with {:?} bytes", item.size))?;
    let reader = Trial::open(&*source, &item)?;
    reader.check_listed(&item)?;
    ensure(reader.size() == item.size, || format!("opened with {:?} bytes", reader.size()))?;
    ensure(!reader.is_zeros() && !reader.is_hole(0, 10), || "what has content is said to be zeros".into())?;
    for (offset, length) in [(0, 1), (5, 100), (0, content.len()), (content.len() - 9, 9)] {
        let mut out = vec![0; length];
        reader.read_at(offset as u64, &mut out)?;
        ensure(out == content[offset..offset + length], || format!("{length} bytes at {offset} are others"))?;
    }
    let code = reader.read_at(content.len() as u64 - 1, &mut [0; 2]).err().map(|why| why.code);
    ensure(code.is_some(), || "more is read than there is".into())?;
    for most in [content.len(), content.len() + 10] {
        let mut whole = b"kept".to_vec();
        let read = reader.read_whole(&mut whole, most)?;
        ensure(read == content.len() && whole[..4] == *b"kept" && whole[4..] == content, || {
            format!("read whole it has {read} bytes, or others")
        })?;
    }
    let code = reader.read_whole(&mut Vec::new(), content.len() - 1).err().map(|why| why.code);
    ensure(code == Some(ErrorCode::SourceChanged), || format!("a small file that is large: {code:?}"))?;
    let (mut next, mut slice) = (Vec::new(), vec![0; 1000]);
    loop {
        let (length, is_end) = reader.read_next(next.len() as u64, &mut slice, &|| false)?;
        next.extend_from_slice(&slice[..length]);
        if is_end || length == 0 {
            break;
        }
    }
    ensure(next == content, || format!("read in order it has {} bytes, or others", next.len()))?;
    reader.check_unchanged()?;
    Ok(())
}

fn hints(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let block = trial.block as usize;
    let content = trial.content(21, 3 * block + 77);
    trial.put_large(&*to, "f", &content)?;
    let source = trial.source("")?;
    let item = Trial::item(&*source, "f")?;
    // Where large files are read in another way than small ones, this is a large one.
    let tuning = Tuning { past_cache_file_bytes: u64::from(trial.block), ..Tuning::DEFAULT };
    let reader = Trial::opened_with(&*source, &item, &tuning)?;
    let known_by = (reader.size(), reader.fingerprint());
    let same = |offset: usize, length: usize, when: &str| {
        let mut out = vec![0; length];
        reader.read_at(offset as u64, &mut out)?;
        ensure(out == content[offset..offset + length], || format!("{length} bytes at {offset} are others {when}"))
    };
    // In order, back, one over others, and one that goes beyond the end.
    for (offset, length) in [(0, block), (2 * block, block), (block, block), (5, 2 * block), (2 * block, 2 * block)] {
        let wants_to_know = reader.will_read(offset as u64, length as u64);
        let there = length.min(content.len() - offset);
        same(offset, there, "after a hint that they will be read")?;
        same(0, content.len(), "after a hint of some of them")?;
        if wants_to_know {
            reader.was_read(offset as u64, length as u64);
            same(offset, there, "after a hint that they were read")?;
            same(0, content.len(), "after some were said to be read")?;
        }
    }
    ensure((reader.size(), reader.fingerprint()) == known_by, || "it has another size or fingerprint".into())?;
    reader.check_unchanged()?;
    Ok(())
}

fn one_file(trial: &Trial<'_>) -> Verdict {
    filled(trial)?;
    let source = trial.source("b/e")?;
    ensure(!source.is_directory(), || "a file is a directory".into())?;
    let items = Trial::listed(&*source)?;
    let [item] = &items[..] else { return Err(Broken(format!("{} items", items.len()))) };
    ensure(item.path.is_empty() && item.kind == ItemKind::File, || "it is no file, or has a path".into())?;
    let mut content = Vec::new();
    Trial::open(&*source, item)?.read_whole(&mut content, 100)?;
    ensure(content == b"b/e", || format!("it has {} bytes, or others", content.len()))
}

fn listed(trial: &Trial<'_>) -> Verdict {
    filled(trial)?;
    let source = trial.source("")?;
    let item = Trial::item(&*source, "b/e")?;
    let same = source.look_again(&item)?;
    ensure(same.size == item.size, || "looked at again, what has not changed has another size".into())?;
    Trial::open(&*source, &item)?.check_listed(&item)?;
    if !trial.place.alter(b"top/b/e", b"altered by somebody") {
        return Ok(());
    }
    let code = Trial::open(&*source, &item)?.check_listed(&item).err().map(|why| why.code);
    ensure(code == Some(ErrorCode::SourceChanged), || format!("opened, what was altered: {code:?}"))?;
    let again = source.look_again(&item)?;
    ensure(again.size == Some(19), || format!("looked at again it has {:?} bytes", again.size))?;
    Trial::open(&*source, &again)?.check_listed(&again)?;
    Ok(())
}

fn removal(trial: &Trial<'_>) -> Verdict {
    filled(trial)?;
    let source = trial.source("")?;
    if !source.removes() {
        return Ok(());
    }
    let (gone, altered) = (Trial::item(&*source, "a")?, Trial::item(&*source, "b/e")?);
    source.remove(&gone)?;
    source.remove(&gone)?;
    let left = |path: &[u8]| Ok::<_, Broken>(Trial::listed(&*source)?.iter().any(|item| item.path == path));
    ensure(!left(b"a")? && left(b"b-c")?, || "not what was to be deleted is deleted".into())?;
    if !trial.place.alter(b"top/b/e", b"altered by somebody") {
        return Ok(());
    }
    let code = source.remove(&altered).err().map(|why| why.code);
    ensure(code == Some(ErrorCode::SourceChanged), || format!("to be deleted, what was altered: {code:?}"))?;
    ensure(left(b"b/e")?, || "what was altered is deleted".into())
}

fn read(trial: &Trial<'_>) -> Verdict {
    filled(trial)?;
    let source = trial.source("")?;
    let item = Trial::item(&*source, "b/e")?;
    let reader = Trial::open(&*source, &item)?;
    reader.check_unchanged()?;
    if !trial.place.alter(b"top/b/e", b"altered by somebody") {
        return Ok(());
    }
    let code = reader.check_unchanged().err().map(|why| why.code);
    ensure(code == Some(ErrorCode::SourceChanged), || format!("what was altered while it was open: {code:?}"))
}

fn vanished(trial: &Trial<'_>) -> Verdict {
    filled(trial)?;
    let source = trial.source("")?;
    let gone = Walk::plain(0).item(b"b/gone", ItemKind::File);
    let code = Trial::opened(&*source, &gone).err().map(|why| why.code);
    ensure(code == Some(ErrorCode::SourceVanished), || format!("opened: {code:?}"))?;
    let code = source.look_again(&gone).err().map(|why| why.code);
    ensure(code == Some(ErrorCode::SourceVanished), || format!("looked at again: {code:?}"))
}

fn fingerprints(trial: &Trial<'_>) -> Verdict {
    filled(trial)?;
    let source = trial.source("")?;
    let (first, other) = (Trial::item(&*source, "b/e")?, Trial::item(&*source, "a")?);
    let (first_open, other_open) = (Trial::open(&*source, &first)?, Trial::open(&*source, &other)?);
    let of_first = first.fingerprint.zip(first_open.fingerprint());
    ensure(of_first.is_none_or(|(listed, opened)| listed == opened), || "opened, it has another".into())?;
    let of_both = first_open.fingerprint().zip(other_open.fingerprint());
    ensure(of_both.is_none_or(|(first, other)| first != other), || "two files have the same".into())?;
    if trial.place.alter(b"top/b/e", b"altered by somebody") {
        let now = Trial::item(&*source, "b/e")?;
        let both = first.fingerprint.zip(now.fingerprint);
        ensure(both.is_none_or(|(first, now)| first != now), || "a file that was altered has the same".into())?;
    }
    Ok(())
}
