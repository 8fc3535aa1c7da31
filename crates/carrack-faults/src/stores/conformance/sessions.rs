//! Rules of several sessions, and of losing power between them.

use std::sync::{Arc, LazyLock};

use carrack_core::attributes::{Attribute, AttributeKind, Attributes, OtherAttributes};
use carrack_core::digest::BlockDigest;
use carrack_core::report::ItemKind;
use carrack_core::request::{Digests, Durability};
use carrack_core::wire::patch::{ChunkHasher, TakenBlock};

use super::trial::{MODE, MTIME, Trial, fingerprint, small_file};
use super::{Broken, Rule, Verdict, ensure};
use carrack_engine::stores::properties::WriteOptions;
use carrack_engine::stores::write::{Destination, EarlierItem, Opening, Part, SmallFile, Stored};

pub(super) const RULES: &[Rule] = &[
    ("what a session published is known to the next, until it is altered", known),
    ("what is known and lacks attributes is told again", known_and_unkept),
    ("nothing is known after the end of all", known_no_more),
    ("blocks that were made durable are held by the next session", resumed),
    ("blocks of other digests are read again", rehashed),
    ("a block that is written again is not held", unclaimed),
    ("a checkpoint reads back", read_back),
    ("what is taken over is what stands at the name, and that stays", taken_over),
    ("no blocks are shared with no file, and room is found for what comes", shared_with_nothing),
    ("a name that outlives a loss of power has all of its content", synced),
    ("what was synced outlives a loss of power", durable),
    ("nobody claims a sync that was not asked for", not_synced),
];

static NO_OTHERS: LazyLock<OtherAttributes> = LazyLock::new(OtherAttributes::default);

fn earlier<'a>(name: &'a str, content: &[u8], block_bytes: Option<u32>) -> EarlierItem<'a> {
    let (path, kind, fingerprint) = (name.as_bytes(), ItemKind::File, Some(fingerprint(content)));
    EarlierItem { path, kind, fingerprint, mode: Some(MODE), mtime: Some(MTIME), others: &NO_OTHERS, block_bytes }
}

fn known(trial: &Trial<'_>) -> Verdict {
    if !trial.properties.resumes {
        return Ok(());
    }
    let large = trial.content(30, 3 * trial.block as usize);
    let to = trial.session()?;
    trial.put_small(&*to, "d/small", b"small")?;
    trial.put_large(&*to, "d/large", &large)?;
    to.finish(false);
    drop(to);
    let to = trial.session()?;
    let options = trial.options();
    ensure(to.known_count(Digests::BLAKE3) > 0, || "nothing is worth asking for".into())?;
    ensure(to.known_count(Digests::NONE) == 0, || "without a digest something is worth asking for".into())?;
    let ask = |item: &EarlierItem<'_>| to.known(item, &options, &|| false);
    let found = ask(&earlier("d/small", b"small", None));
    let small = Some(small_file("d/small", b"small").digests);
    ensure(found == small, || format!("a small file that was published is {found:?}"))?;
    let found = ask(&earlier("d/large", &large, Some(trial.block)));
    ensure(found == Some(trial.digests(&large)), || format!("a large file that was published is {found:?}"))?;
    for (what, item) in [
        ("another source", earlier("d/small", b"other", None)),
        ("another path", earlier("d/other", b"small", None)),
        ("another kind", EarlierItem { kind: ItemKind::Symlink, ..earlier("d/small", b"small", None) }),
        ("no fingerprint", EarlierItem { fingerprint: None, ..earlier("d/small", b"small", None) }),
    ] {
        let found = ask(&item);
        ensure(found.is_none(), || format!("{what} is known: {found:?}"))?;
    }
    let is_present = |to: &dyn Destination, believe| -> Result<bool, Broken> {
        Ok(match to.begin(&trial.new_file("d/large", &large), &options, believe)? {
            Opening::Present(digests) => digests == trial.digests(&large),
            Opening::MayBePresent => {
                let found = to.known(&earlier("d/large", &large, Some(trial.block)), &options, &|| false);
                found == Some(trial.digests(&large))
            }
            Opening::Fresh(part) => {
                part.remove();
                false
            }
            _ => false,
        })
    };
    ensure(is_present(&*to, true)?, || "a large file that was published has to come again".into())?;
    ensure(!is_present(&*to, false)?, || "a large file counts that is not to be believed".into())?;
    if trial.place.alter(b"top/d/small", b"altered by somebody") {
        let found = to.known(&earlier("d/small", b"small", None), &options, &|| false);
        ensure(found.is_none(), || "what was altered is known".into())?;
    }
    Ok(())
}

/// The report of the session that ends a copy tells what all of its items lack.
fn known_and_unkept(trial: &Trial<'_>) -> Verdict {
    if !trial.properties.resumes {
        return Ok(());
    }
    let unknown = Attribute { kind: AttributeKind(u16::MAX), value: Box::from(&b"value"[..]) };
    let others = OtherAttributes::new(vec![unknown]).unwrap_or_default();
    let attributes = Attributes { others: others.clone(), ..Attributes::new(MODE, MTIME) };
    let to = trial.session()?;
    let small = SmallFile { attributes, ..small_file("strange", b"content") };
    let stored = to.write_small(&small, &trial.options(), b"content")?;
    Trial::publish(&*to, &stored)?;
    to.finish(false);
    drop(to);
    let to = trial.session()?;
    let item = EarlierItem { others: &others, ..earlier("strange", b"content", None) };
    let is_known = to.known(&item, &trial.options(), &|| false).is_some();
    let told = to.unkept().attributes.map_or(0, |unkept| unkept.count);
    ensure(told == u64::from(is_known), || format!("of a known item that lacks an attribute {told} are told"))
}

fn known_no_more(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    trial.put_small(&*to, "f", b"content")?;
    to.sync_all()?;
    to.finish(true);
    drop(to);
    trial.expect_nothing_left()?;
    let to = trial.session()?;
    ensure(to.known_count(Digests::BLAKE3) == 0, || "something is worth asking for".into())
}

/// A file of four blocks, of which a session has left these.
fn left(trial: &Trial<'_>, blocks: &[u64]) -> Result<Vec<u8>, Broken> {
    let content = trial.content(31, 4 * trial.block as usize);
    let to = trial.session()?;
    let part = trial.fresh(&*to, &trial.new_file("f", &content))?;
    // One more than is made durable.
    trial.write_blocks(&*part, &content, &[3])?;
    checkpoint(trial, &*part, &content, blocks)?;
    part.leave();
    drop(part);
    to.finish(false);
    Ok(content)
}

fn checkpoint(trial: &Trial<'_>, part: &dyn Part, content: &[u8], blocks: &[u64]) -> Verdict {
    trial.write_blocks(part, content, blocks)?;
    let digests: Vec<_> = blocks.iter().map(|&index| (index, trial.digest(content, index, Digests::BLAKE3))).collect();
    let lost = part.checkpoint(&digests, false)?;
    ensure(lost.is_empty(), || format!("blocks {lost:?} are lost"))
}

type Taken = (Arc<dyn Part>, Vec<(u64, BlockDigest)>, Vec<u64>);

/// What the next session takes up; nothing where it starts over.
fn taken_up(
    trial: &Trial<'_>,
    to: &dyn Destination,
    content: &[u8],
    digests: Digests,
) -> Result<Option<Taken>, Broken> {
    let options = WriteOptions { digests, ..trial.options() };
    match to.begin(&trial.new_file("f", content), &options, true)? {
        Opening::Resumed { part, held, doubtful, .. } => Ok(Some((part, held, doubtful))),
        Opening::Fresh(part) => {
            part.remove();
            Ok(None)
        }
        _ => Err(Broken("what was never published is there".into())),
    }
}

fn resumed(trial: &Trial<'_>) -> Verdict {
    if !trial.properties.resumes {
        return Ok(());
    }
    let content = left(trial, &[0, 2])?;
    trial.expect("f", None)?;
    let to = trial.session()?;
    let (part, mut held, doubtful) = taken_up(trial, &*to, &content, Digests::BLAKE3)?
        .ok_or_else(|| Broken("a file starts over of which blocks were made durable".into()))?;
    held.extend(part.rehash(&doubtful));
    for index in [0, 2] {
        let found = held.iter().find(|block| block.0 == index).map(|block| block.1);
        let wanted = Some(trial.digest(&content, index, Digests::BLAKE3));
        ensure(found == wanted, || format!("block {index} was made durable and is {found:?}"))?;
    }
    ensure(held.iter().all(|(index, _)| [0, 2, 3].contains(index)), || format!("{held:?} was never written"))?;
    trial.write_blocks(&*part, &content, &[1, 3])?;
    trial.name(&*to, &*part, &content)?;
    trial.expect("f", Some(&content))
}

fn rehashed(trial: &Trial<'_>) -> Verdict {
    if !trial.properties.resumes {
        return Ok(());
    }
    let content = left(trial, &[0, 2])?;
    let to = trial.session()?;
    let more = Digests { crc32c: true, ..Digests::BLAKE3 };
    // Starting over is right, too.
    let Some((part, held, doubtful)) = taken_up(trial, &*to, &content, more)? else { return Ok(()) };
    ensure(held.is_empty(), || "blocks are held that nobody has these digests of".into())?;
    for (index, found) in part.rehash(&doubtful) {
        let wanted = trial.digest(&content, index, more);
        ensure(found == wanted || index == 3, || format!("block {index} is read as {found:?}"))?;
    }
    part.remove();
    Ok(())
}

fn unclaimed(trial: &Trial<'_>) -> Verdict {
    if !trial.properties.resumes {
        return Ok(());
    }
    let content = left(trial, &[0, 2])?;
    let to = trial.session()?;
    let Some((part, ..)) = taken_up(trial, &*to, &content, Digests::BLAKE3)? else {
        return Err(Broken("a file starts over of which blocks were made durable".into()));
    };
    // It is written to, and the session ends in the middle of it.
    part.unclaim(2);
    part.write(2 * u64::from(trial.block), b"not what it was")?;
    part.leave();
    drop(part);
    to.finish(false);
    drop(to);
    let to = trial.session()?;
    let Some((part, mut held, doubtful)) = taken_up(trial, &*to, &content, Digests::BLAKE3)? else { return Ok(()) };
    held.extend(part.rehash(&doubtful));
    for (index, found) in held.iter().filter(|(index, _)| [0, 2].contains(index)) {
        let is_claimed = *found == trial.digest(&content, *index, Digests::BLAKE3);
        ensure(is_claimed == (*index == 0), || format!("block {index} is held as {found:?}"))?;
    }
    part.remove();
    Ok(())
}

fn read_back(trial: &Trial<'_>) -> Verdict {
    if !trial.properties.keeps || !trial.properties.atomic_publish {
        return Ok(());
    }
    let to = trial.session()?;
    let content = trial.content(32, 2 * trial.block as usize);
    let part = trial.fresh(&*to, &trial.new_file("f", &content))?;
    trial.write_blocks(&*part, &content, &[0, 1])?;
    let wrong = BlockDigest { main: [9; 32], ..BlockDigest::default() };
    let right = trial.digest(&content, 0, Digests::BLAKE3);
    let lost = part.checkpoint(&[(0, right), (1, wrong)], true)?;
    part.remove();
    ensure(lost == [1], || format!("of a block that is another, these are said to be lost: {lost:?}"))
}

fn taken_over(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let block = trial.block as usize;
    let (old, mut new) = (trial.content(34, 3 * block + 5), trial.content(34, 4 * block));
    new[block..2 * block].fill(7);
    trial.put_large(&*to, "f", &old)?;
    let options = WriteOptions { takes_over: true, ..trial.options() };
    let (part, standing) = match to.begin(&trial.new_file("f", &new), &options, false)? {
        Opening::Resumed { part, held, doubtful, standing } if held.is_empty() && doubtful.is_empty() => {
            (part, standing.collect::<Vec<_>>())
        }
        // Not every store can.
        Opening::Fresh(part) => (part, Vec::new()),
        _ => return Err(Broken("what nobody left is resumed".into())),
    };
    ensure(standing.iter().all(|index| *index < 3), || format!("{standing:?} are not all there"))?;
    let taken = part.take_over(&standing);
    for TakenBlock { index, digest, chunks } in &taken {
        let wanted = trial.digest(&old, *index, Digests::BLAKE3);
        ensure(*digest == wanted, || format!("block {index} is taken over as {digest:?}"))?;
        let mut of_block = ChunkHasher::new(new.len() as u64, trial.block);
        let mut read = vec![0; block];
        let count = part.read(index * u64::from(trial.block), &mut read)?;
        of_block.update(&read);
        ensure(count == block && of_block.finish() == *chunks, || format!("block {index} has other chunks"))?;
        ensure(read == old[*index as usize * block..][..block], || format!("block {index} is read as another"))?;
    }
    trial.expect("f", trial.properties.keeps.then_some(&old[..]))?;
    let is_right = |index: &u64| *index != 1 && taken.iter().any(|taken| taken.index == *index);
    let missing: Vec<u64> = (0..4).filter(|index| !is_right(index)).collect();
    trial.write_blocks(&*part, &new, &missing)?;
    trial.name(&*to, &*part, &new)?;
    trial.expect("f", Some(&new))
}

fn shared_with_nothing(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let content = trial.content(35, 2 * trial.block as usize);
    let options = WriteOptions { shares: true, ..trial.options() };
    let Opening::Fresh(part) = to.begin(&trial.new_file("f", &content), &options, false)? else {
        return Err(Broken("what nobody left is resumed".into()));
    };
    ensure(!part.share(None)?, || "blocks are shared with no file".into())?;
    trial.write_blocks(&*part, &content, &[0, 1])?;
    trial.name(&*to, &*part, &content)?;
    trial.expect("f", Some(&content))
}

fn synced(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let content = trial.content(33, trial.block as usize);
    trial.put_small(&*to, "small", b"small")?;
    trial.put_large(&*to, "large", &content)?;
    if !trial.place.lose_power(true) {
        return Ok(());
    }
    for (name, content) in [("small", &b"small"[..]), ("large", &content)] {
        let found = trial.read(name)?;
        ensure(found.as_deref().is_none_or(|found| found == content), || {
            format!("{name} has its name and no content")
        })?;
    }
    Ok(())
}

fn durable(trial: &Trial<'_>) -> Verdict {
    let to = trial.session()?;
    let content = trial.content(34, trial.block as usize);
    trial.put_small(&*to, "d/small", b"small")?;
    trial.put_large(&*to, "d/large", &content)?;
    let is_durable = to.sync_all()?;
    ensure(is_durable == trial.properties.sync, || format!("whether it is durable: {is_durable}"))?;
    if is_durable && trial.place.lose_power(false) {
        trial.expect("d/small", Some(b"small"))?;
        trial.expect("d/large", Some(&content))?;
    }
    Ok(())
}

fn not_synced(trial: &Trial<'_>) -> Verdict {
    let options = WriteOptions { durability: Durability::None, ..trial.options() };
    let to = trial.session_with(options)?;
    let small = small_file("f", b"content");
    if let Stored::Hidden(entry) = to.write_small(&small, &options, b"content")? {
        ensure(!entry.awaits_sync(), || "a file awaits a sync that nobody wants".into())?;
        entry.publish()?;
    }
    ensure(!to.sync_all()?, || "a sync is claimed".into())
}
