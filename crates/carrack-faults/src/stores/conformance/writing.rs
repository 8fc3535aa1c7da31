//! Rules of one session that writes.

use std::time::Duration;

use carrack_core::attributes::{Attribute, AttributeKind, Attributes, OtherAttributes, Time};
use carrack_core::digest::FileDigests;
use carrack_core::failure::ErrorCode;
use carrack_core::report::ItemKind;
use carrack_core::request::Existing;

use super::trial::{MODE, MTIME, TOP, Trial, small_file};
use super::{Broken, Rule, Verdict, ensure};
use carrack_engine::stores::properties::WriteOptions;
use carrack_engine::stores::store::Facts;
use carrack_engine::stores::write::{
    Begun, Destination, NewDirectory, NewFile, Opening, SmallFile, StandingItem, Stored, UnkeptSoFar,
};

pub(super) const RULES: &[Rule] = &[
    ("a path is what was put there", look),
    ("a small file comes back", small),
    ("a small file in pieces comes back", growing),
    ("a large file comes back", large),
    ("a hole reads as zeros", hole),
    ("nothing shows before it is published, and all of it right after", hidden),
    ("what stands at a name is replaced whole", replaced),
    ("what is to be kept is kept", kept),
    ("a directory is not replaced", over_a_directory),
    ("what stands there is told, and can be given attributes", standing),
    ("names in a directory are told, and what is deleted is gone", deleted),
    ("directories come back with their attributes", directories),
    ("links come back, or are refused", links),
    ("attributes are kept, or it is told that they are not", attributes),
    ("what storage gives back is compared", verified),
    ("what is removed leaves nothing behind", removed),
    ("nothing gets its name when the session has been closed", closed),
];

fn path(name: &str) -> Vec<u8> {
    carrack_core::path::join(TOP, name.as_bytes())
}

fn look(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    trial.put_small(&*to, "d/f", b"seven b")?;
    let found = trial.store.look(&path("d/f"))?;
    ensure(found == Some(Facts { kind: ItemKind::File, size: 7 }), || format!("a file of 7 bytes is {found:?}"))?;
    let found = trial.store.look(&path("d"))?.map(|facts| facts.kind);
    ensure(found == Some(ItemKind::Directory), || format!("a directory is {found:?}"))?;
    let found = trial.store.look(&path("other"))?;
    ensure(found.is_none(), || format!("nothing is {found:?}"))
}

fn small(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let block = trial.block as usize;
    for (number, length) in [0, 1, 1000, block + 1].into_iter().enumerate() {
        let (name, content) = (format!("d/{length}"), trial.content(number as u8, length));
        trial.put_small(&*to, &name, &content)?;
        trial.expect(&name, Some(&content))?;
    }
    Ok(())
}

fn growing(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let content = trial.content(1, 10_000);
    let small = small_file("f", &content);
    let stored = match to.begin_small(&small, &trial.options(), content.len() as u64)? {
        Begun::AtOnce => return Ok(()),
        Begun::Kept => return Err(Broken("what is not there is kept".into())),
        Begun::Growing(mut growing) => {
            content.chunks(3000).for_each(|piece| growing.write(piece));
            growing.finish(&small)?
        }
    };
    trial.expect("f", None)?;
    Trial::publish(&*to, &stored)?;
    trial.expect("f", Some(&content))?;
    // Dropped, it leaves nothing.
    drop(to.begin_small(&small_file("g", &content), &trial.options(), 1)?);
    drop(stored);
    to.finish(true);
    trial.expect_nothing_left()
}

fn large(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let block = trial.block as usize;
    for (number, length) in [1, block, 3 * block, 3 * block + 5].into_iter().enumerate() {
        let (name, content) = (format!("d/{length}"), trial.content(number as u8, length));
        trial.put_large(&*to, &name, &content)?;
        trial.expect(&name, Some(&content))?;
    }
    Ok(())
}

fn hole(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let block = trial.block as usize;
    let mut content = trial.content(2, 3 * block);
    let part = trial.fresh(&*to, &trial.new_file("f", &content))?;
    // What a block held before is gone when it becomes a hole.
    trial.write_blocks(&*part, &content, &[0, 1, 2])?;
    content[block..2 * block].fill(0);
    part.write_hole(block as u64, block as u64)?;
    part.end_block(block as u64, block as u64)?;
    trial.name(&*to, &*part, &content)?;
    trial.expect("f", Some(&content))
}

fn hidden(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let content = trial.content(3, trial.block as usize);
    let waiting = trial.small(&*to, "small", b"small")?;
    let part = trial.fresh(&*to, &trial.new_file("large", &content))?;
    trial.write_blocks(&*part, &content, &[0])?;
    trial.expect("small", None)?;
    trial.expect("large", None)?;
    Trial::publish(&*to, &waiting)?;
    trial.expect("small", Some(b"small"))?;
    trial.name(&*to, &*part, &content)?;
    trial.expect("large", Some(&content))
}

fn replaced(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let (first, second) = (trial.content(4, 2 * trial.block as usize), trial.content(5, trial.block as usize));
    trial.put_large(&*to, "large", &first)?;
    trial.put_small(&*to, "small", b"first")?;
    let waiting = trial.small(&*to, "small", b"second")?;
    let part = trial.fresh(&*to, &trial.new_file("large", &second))?;
    trial.write_blocks(&*part, &second, &[0])?;
    trial.expect("small", Some(b"first"))?;
    trial.expect("large", Some(&first))?;
    Trial::publish(&*to, &waiting)?;
    trial.name(&*to, &*part, &second)?;
    trial.expect("small", Some(b"second"))?;
    trial.expect("large", Some(&second))
}

fn kept(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let content = trial.content(6, trial.block as usize);
    let with = |existing| WriteOptions { existing, ..trial.options() };
    fn plain<'a>(trial: &Trial<'_>, name: &'a str, content: &[u8]) -> NewFile<'a> {
        NewFile { fingerprint: None, ..trial.new_file(name, content) }
    }
    let keeps = |existing, name: &str| -> Result<[bool; 2], Broken> {
        let small = to.write_small(&small_file(name, b"new"), &with(existing), b"new")?;
        if let Stored::Hidden(entry) = &small {
            entry.remove();
        }
        let large = to.begin(&plain(trial, name, &content), &with(existing), true)?;
        if let Opening::Fresh(part) = &large {
            part.remove();
        }
        Ok([matches!(small, Stored::Kept), matches!(large, Opening::Keep)])
    };
    trial.put_small(&*to, "old", b"old")?;
    let attributes = Attributes::new(MODE, Time::new(MTIME.seconds + 1000, 0));
    let newer = SmallFile { attributes, ..small_file("newer", b"newer") };
    Trial::publish(&*to, &to.write_small(&newer, &trial.options(), b"newer")?)?;
    for (existing, name, wanted) in [
        (Existing::Keep, "old", true),
        (Existing::Keep, "new", false),
        (Existing::Only, "old", false),
        (Existing::Only, "new", true),
        (Existing::Replace, "old", false),
        // Of the same time: what stands there is not newer.
        (Existing::Older, "old", false),
        (Existing::Older, "newer", true),
        (Existing::Older, "new", false),
    ] {
        if existing == Existing::Older && trial.properties.times.is_none() {
            continue;
        }
        let found = keeps(existing, name)?;
        ensure(found == [wanted; 2], || format!("{existing:?} of {name}: keeps a small and a large file: {found:?}"))?;
    }
    // What appears at the name meanwhile is kept as well.
    let part = match to.begin(&plain(trial, "late", &content), &with(Existing::Keep), true)? {
        Opening::Fresh(part) => part,
        _ => return Err(Broken("what is not there is kept".into())),
    };
    trial.write_blocks(&*part, &content, &[0])?;
    trial.put_small(&*to, "late", b"other")?;
    part.finish(content.len() as u64)?;
    ensure(!part.publish(trial.digests(&content))?, || "what came meanwhile was replaced".into())?;
    trial.expect("late", Some(b"other"))?;
    trial.expect("old", Some(b"old"))
}

fn over_a_directory(trial: &Trial<'_>) -> Verdict {
    if !trial.properties.directories {
        return Ok(());
    }
    let to = trial.session()?;
    trial.put_small(&*to, "d/f", b"f")?;
    let refused = |result: Result<(), Broken>| ensure(result.is_err(), || "a directory is replaced".into());
    refused(trial.small(&*to, "d", b"small").and_then(|stored| Trial::publish(&*to, &stored).map(drop)))?;
    refused(trial.fresh(&*to, &trial.new_file("d", b"large")).map(drop))?;
    // And nothing else becomes a directory.
    refused(to.make_directory(b"d/f").map_err(Broken::from))?;
    trial.expect("d/f", Some(b"f"))
}

fn standing(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    if !to.properties().deletes {
        return Ok(());
    }
    trial.put_small(&*to, "d/f", b"seven b")?;
    let told = |what: &str| -> Result<Vec<Option<StandingItem>>, Broken> {
        let told = to.standing(&[b"d/f", b"d/none", b"d"], None).into_iter().collect::<Result<Vec<_>, _>>()?;
        ensure(told.len() == 3, || format!("{} of 3 paths are told of {what}", told.len()))?;
        Ok(told)
    };
    let first = told("at first")?;
    let file = first[0].ok_or_else(|| Broken("a file is said not to be there".into()))?;
    let found = (file.state.kind, file.state.size);
    ensure(found == (ItemKind::File, 7), || format!("a file of 7 bytes is {found:?}"))?;
    ensure(first[1].is_none(), || format!("nothing is {:?}", first[1]))?;
    let directory = first[2].map(|item| item.state.kind);
    ensure(directory == Some(ItemKind::Directory), || format!("a directory is {directory:?}"))?;
    let digest = small_file("d/f", b"seven b").digests.blake3;
    ensure(to.content(b"d/f", 1, &|| false)? == digest, || "the content of a file has another digest".into())?;
    ensure(to.content(b"d/none", 1, &|| false)?.is_none(), || "nothing has content".into())?;
    for (most, wanted) in [(100, &b"seven b"[..]), (5, b"seven"), (0, b"")] {
        let found = to.first_bytes(b"d/f", most)?;
        ensure(found.as_deref() == Some(wanted), || format!("the first {most} bytes of a file are others"))?;
    }
    ensure(to.first_bytes(b"d/none", 9)?.is_none(), || "nothing has first bytes".into())?;
    let later = Attributes::new(0o600, Time::new(MTIME.seconds + 1000, 0));
    ensure(to.set_attributes(b"d/f", &later, None)?, || "attributes that were set are said to be as before".into())?;
    let after = told("afterwards")?[0].map(|item| (item.facts.mode & 0o777, item.state.mtime));
    let wanted = Some((0o600, later.mtime));
    let unkept = to.unkept();
    let is_told = unkept.times.is_some() || unkept.permissions.is_some();
    ensure(after == wanted || is_told, || format!("what was given {wanted:?} has {after:?}"))
}

fn deleted(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    if !to.properties().deletes {
        return Ok(());
    }
    trial.put_small(&*to, "d/f", b"one")?;
    trial.put_small(&*to, "d/g", b"two")?;
    to.make_directory(b"d/e")?;
    let names = |directory: &[u8]| -> Result<Vec<Vec<u8>>, Broken> {
        let mut names = Vec::new();
        to.list(directory, &mut |name| {
            names.push(name.to_vec());
            true
        })?;
        names.sort();
        Ok(names)
    };
    let found = names(b"d")?;
    ensure(found == [b"e".to_vec(), b"f".to_vec(), b"g".to_vec()], || format!("e, f and g are {found:?}"))?;
    ensure(names(b"none")?.is_empty(), || "what is not there has names".into())?;
    let mut asked = 0;
    to.list(b"d", &mut |_| {
        asked += 1;
        false
    })?;
    ensure(asked == 1, || format!("{asked} names are told to who wants one"))?;
    ensure(to.delete(b"d", ItemKind::Directory).is_err(), || "a directory with something in it is deleted".into())?;
    for (path, kind) in [(&b"d/f"[..], ItemKind::File), (b"d/e", ItemKind::Directory), (b"d/f", ItemKind::File)] {
        to.delete(path, kind)?;
    }
    let found = names(b"d")?;
    ensure(found == [b"g".to_vec()], || format!("g alone is {found:?}"))
}

fn directories(trial: &Trial<'_>) -> Verdict {
    if !trial.properties.directories {
        return Ok(());
    }
    let to = trial.session()?;
    let names = ["a", "a/b", "a/b/c", "d"];
    to.make_directory(b"a/b/c")?;
    to.make_directory(b"d")?;
    to.make_directory(b"d")?;
    trial.put_small(&*to, "a/f", b"f")?;
    let attributes = Attributes::new(0o750, MTIME);
    let deepest_first = names.iter().rev().filter(|name| name.starts_with('a'));
    let list =
        deepest_first.map(|name| NewDirectory { path: name.as_bytes().to_vec(), attributes: attributes.clone() });
    let failed = to.apply_directories(&list.collect::<Vec<_>>());
    ensure(failed.is_empty(), || format!("attributes of directories: {failed:?}"))?;
    let source = trial.source("")?;
    for name in names {
        let item = Trial::item(&*source, name)?;
        ensure(item.kind == ItemKind::Directory, || format!("{name} is {:?}", item.kind))?;
        if name != "d" {
            check_attributes(trial, name, &attributes, &item.attributes)?;
        }
    }
    Ok(())
}

/// Compares what was set with what is there, as far as the store keeps it.
fn check_attributes(trial: &Trial<'_>, name: &str, wanted: &Attributes, found: &Attributes) -> Verdict {
    let mode = |attributes: &Attributes| attributes.mode & 0o777;
    let same_mode = !trial.properties.permissions || mode(wanted) == mode(found);
    let same_time = trial.properties.times.is_none() || wanted.mtime == found.mtime;
    ensure(same_mode && same_time, || format!("{name} should have {wanted:?} and has {found:?}"))
}

fn links(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let written = to.write_link(&small_file("d/link", b""), &trial.options(), b"to/nowhere");
    if !trial.properties.links {
        return ensure(written.is_err(), || "a link that is not kept is said to be written".into());
    }
    let stored = written?;
    trial.expect_no_item("d/link")?;
    Trial::publish(&*to, &stored)?;
    let source = trial.source("")?;
    let item = Trial::item(&*source, "d/link")?;
    ensure(item.kind == ItemKind::Symlink, || format!("a link is {:?}", item.kind))?;
    let (target, _) = source.link_target(b"d/link")?;
    ensure(target == b"to/nowhere", || format!("a link says {:?}", super::trial::lossy(&target)))
}

fn attributes(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let block = trial.content(7, trial.block as usize);
    // Odd, and of the smallest unit: what is coarse does not keep it.
    let exact = Attributes::new(0o604, Time::new(1_600_000_001, 1));
    for (number, attributes) in [Attributes::new(MODE, MTIME), exact].into_iter().enumerate() {
        let (small_name, large_name) = (format!("small-{number}"), format!("large-{number}"));
        let small = SmallFile { attributes: attributes.clone(), ..small_file(&small_name, b"content") };
        let stored = to.write_small(&small, &trial.options(), b"content")?;
        Trial::publish(&*to, &stored)?;
        let file = NewFile { attributes: attributes.clone(), ..trial.new_file(&large_name, &block) };
        let part = trial.fresh(&*to, &file)?;
        trial.write_blocks(&*part, &block, &[0])?;
        trial.name(&*to, &*part, &block)?;
        let UnkeptSoFar { permissions: modes, times, .. } = to.unkept();
        let source = trial.source("")?;
        for name in [&small_name, &large_name] {
            let item = Trial::item(&*source, name)?;
            let opened = Trial::open(&*source, &item)?.attributes(&item);
            for found in [&item.attributes, &opened] {
                let same_mode = found.mode & 0o777 == attributes.mode & 0o777;
                let same_time = found.mtime == attributes.mtime;
                let told = |kept, told| kept || told;
                ensure(told(same_mode, modes.is_some()) && told(same_time, times.is_some()), || {
                    format!("{name} should have {attributes:?}, has {found:?}, and nothing is told of it")
                })?;
            }
            if number == 0 {
                check_attributes(trial, name, &attributes, &opened)?;
            }
        }
    }
    unknown_attribute(trial, &*to)
}

/// An attribute of a kind that nobody knows fails nothing, and it is told that it is not kept.
fn unknown_attribute(trial: &Trial<'_>, to: &dyn Destination) -> Verdict {
    let unknown = Attribute { kind: AttributeKind(u16::MAX), value: Box::from(&b"value"[..]) };
    let others = OtherAttributes::new(vec![unknown]).unwrap_or_default();
    let attributes = Attributes { others, ..Attributes::new(MODE, MTIME) };
    let small = SmallFile { attributes, ..small_file("strange", b"content") };
    let stored = to.write_small(&small, &trial.options(), b"content")?;
    Trial::publish(to, &stored)?;
    ensure(to.unkept().attributes.is_some(), || "nothing is told of an attribute of an unknown kind".into())
}

fn verified(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let content = trial.content(8, trial.block as usize);
    let wrong = FileDigests { blake3: Some([7; 32]), ..FileDigests::default() };
    let small = SmallFile { digests: wrong, read_back: true, ..small_file("small", b"content") };
    if let Stored::Hidden(entry) = to.write_small(&small, &trial.options(), b"content")? {
        if entry.awaits_sync() {
            to.sync_group()?;
        }
        let code = entry.verify().err().map(|why| why.code);
        ensure(code == Some(ErrorCode::DigestMismatch), || format!("a small file that is another: {code:?}"))?;
        entry.remove();
    }
    let part = trial.fresh(&*to, &trial.new_file("large", &content))?;
    trial.write_blocks(&*part, &content, &[0])?;
    part.finish(content.len() as u64)?;
    let code = part.verify(content.len() as u64, wrong).err().map(|why| why.code);
    ensure(code == Some(ErrorCode::DigestMismatch), || format!("a large file that is another: {code:?}"))?;
    part.verify(content.len() as u64, trial.digests(&content))?;
    part.remove();
    Ok(())
}

fn removed(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let content = trial.content(9, 2 * trial.block as usize);
    let Stored::Hidden(entry) = trial.small(&*to, "small", b"small")? else { return Ok(()) };
    let part = trial.fresh(&*to, &trial.new_file("large", &content))?;
    trial.write_blocks(&*part, &content, &[0])?;
    part.checkpoint(&[(0, trial.digest(&content, 0, trial.options().digests))], false)?;
    // Nothing of this one can be used.
    let useless = trial.fresh(&*to, &trial.new_file("useless", &content))?;
    entry.remove();
    part.remove();
    useless.leave();
    drop((entry, part, useless));
    to.finish(true);
    drop(to);
    trial.expect_nothing_left()?;
    trial.expect("small", None)?;
    trial.expect("large", None)
}

fn closed(trial: &Trial<'_>) -> Verdict {
    if !trial.properties.atomic_publish {
        return Ok(());
    }
    let to = trial.session()?;
    let content = trial.content(10, trial.block as usize);
    let waiting = trial.small(&*to, "small", b"small")?;
    let part = trial.fresh(&*to, &trial.new_file("large", &content))?;
    trial.write_blocks(&*part, &content, &[0])?;
    part.finish(content.len() as u64)?;
    to.close_in(Duration::ZERO);
    let late = Trial::publish(&*to, &waiting).is_ok() || part.publish(trial.digests(&content)).is_ok();
    ensure(!late, || "a name is given".into())?;
    trial.expect("small", None)?;
    trial.expect("large", None)
}
