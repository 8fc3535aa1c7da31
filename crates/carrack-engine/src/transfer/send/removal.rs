//! Deleting at the source what has been copied: noted while it is copied, deleted once all of it is durable.

use carrack_core::attributes::{Attributes, Time};
use carrack_core::report::{ErrorCode, Failure, ItemKind, Side};
use carrack_core::transfer::machine::Machine;
use carrack_core::transfer::{Fingerprint, ScannedItem};

use super::SendRun;
use crate::error::{failure, io_failure};
use crate::storage::read::{Root, Walk};
use crate::sync::lock;
use crate::transfer::spool::Spool;

/// Items that are deleted before it is asked whether the transfer goes on.
const DELETED_AT_ONCE: usize = 1024;

/// Items that have been copied.
#[derive(Default)]
pub(super) struct Copied {
    list: Spool,
    /// Why the list is not whole: nothing is deleted.
    broken: Option<Failure>,
}

impl SendRun {
    /// The item is at the destination.
    pub(super) fn note_copied(&self, item: &ScannedItem) {
        let scratch = || self.root(item).and_then(|root| root.source.scratch());
        let fail = |error: &_| io_failure(Side::Source, "write the list of what is deleted", error);
        let copied = &mut *lock(&self.copied);
        if copied.broken.is_none() {
            copied.broken = copied.list.push(|record| write(record, item), scratch, fail).err();
        }
    }

    /// Deletes what has been copied, and tells what stays.
    pub(super) fn remove_sources(&self) {
        let Copied { list, broken } = std::mem::take(&mut *lock(&self.copied));
        let mut removing = Removing { run: self, batch: Vec::new(), removed: 0 };
        let listed = match broken {
            Some(why) => Err(why),
            None => list
                .each(&mut |record| read(record).is_none_or(|item| removing.take(item)))
                .map_err(|error| io_failure(Side::Source, "read the list of what is deleted", &error)),
        };
        removing.go_on();
        let removed = removing.removed;
        if let Err(why) = listed {
            let top = Walk::plain(0).item(b"", ItemKind::Directory);
            self.driver.tell(|machine| machine.handle_source_kept(&top, why));
        }
        self.driver.tell(|machine| machine.handle_sources_removed(removed));
    }

    /// Why nothing was deleted although all has been copied.
    pub(super) fn why_sources_stay(&self, outcome: &Result<(), Failure>, durable: bool) -> Option<Failure> {
        let stay = self.driver.options.removes_sources && outcome.is_ok() && !durable;
        let why = "what was copied has not reached stable storage, so nothing was deleted at the source";
        stay.then(|| failure(ErrorCode::InputOutput, Side::Source, why))
    }
}

/// Deletes items, many at once where that is worth it.
struct Removing<'a> {
    run: &'a SendRun,
    batch: Vec<ScannedItem>,
    removed: u64,
}

impl Removing<'_> {
    /// The next of the list; `false` when the transfer has ended.
    fn take(&mut self, item: ScannedItem) -> bool {
        self.batch.push(item);
        self.batch.len() < DELETED_AT_ONCE || self.go_on()
    }

    fn go_on(&mut self) -> bool {
        let Self { run, .. } = self;
        let batch = std::mem::take(&mut self.batch);
        let remove = |item: &ScannedItem| {
            if run.driver.is_over() {
                None
            } else {
                Some(run.root(item).and_then(|root: &Root| root.source.remove(item)))
            }
        };
        let removed = run.listing.each(&batch, |item| run.listing.call(|job| job.measure(|_| remove(item))));
        for (item, removed) in batch.iter().zip(removed) {
            match removed {
                Some(Ok(())) => self.removed += 1,
                Some(Err(why)) => self.tell_kept(item, why),
                None => return false,
            }
        }
        true
    }

    /// Whoever reads the reports may be slow: what was told of them is bounded.
    fn tell_kept(&self, item: &ScannedItem, why: Failure) {
        let mut machine = self.run.driver.lock();
        while machine.outcome().is_none() && !machine.wants_items() {
            machine = self.run.driver.wait(machine);
        }
        machine.handle_source_kept(item, why);
        drop(machine);
        self.run.driver.wake();
    }
}

/// What of an item tells that it still is what was copied.
fn write(record: &mut Vec<u8>, item: &ScannedItem) {
    let time = |record: &mut Vec<u8>, time: Option<Time>| {
        let Time { seconds, nanos } = time.unwrap_or(Time::new(i64::MIN, 0));
        record.extend_from_slice(&seconds.to_le_bytes());
        record.extend_from_slice(&nanos.to_le_bytes());
    };
    let (device, inode) = item.file.unwrap_or_default();
    record.extend_from_slice(&item.root.to_le_bytes());
    record.push(item.kind.number() as u8);
    [item.size.unwrap_or(u64::MAX), device, inode].iter().for_each(|number| record.extend(number.to_le_bytes()));
    time(record, item.attributes.mtime);
    time(record, item.changed);
    record.push(u8::from(item.fingerprint.is_some()));
    record.extend_from_slice(&item.fingerprint.unwrap_or_default());
    record.extend_from_slice(&item.path);
}

fn read(record: &[u8]) -> Option<ScannedItem> {
    let mut rest = record;
    let mut take = |length: usize| -> Option<&[u8]> {
        let (head, tail) = rest.split_at_checked(length)?;
        rest = tail;
        Some(head)
    };
    let root = u32::from_le_bytes(take(4)?.try_into().ok()?);
    let kind = ItemKind::from_number(u32::from(*take(1)?.first()?))?;
    let mut number = || Some(u64::from_le_bytes(take(8)?.try_into().ok()?));
    let (size, device, inode) = (number()?, number()?, number()?);
    let mut time = || {
        let seconds = i64::from_le_bytes(take(8)?.try_into().ok()?);
        let nanos = u32::from_le_bytes(take(4)?.try_into().ok()?);
        Some(Time::new(seconds, nanos))
    };
    let (mtime, changed) = (time()?, time()?);
    let (is_known, fingerprint) = (take(1)?.first()? > &0, take(size_of::<Fingerprint>())?.try_into().ok()?);
    let known = |time: Time| (time.seconds > i64::MIN).then_some(time);
    let attributes = Attributes { mtime: known(mtime), ..Attributes::default() };
    let plain = Walk::plain(root).item(rest, kind);
    let size = (size < u64::MAX).then_some(size);
    let (changed, fingerprint) = (known(changed), is_known.then_some(fingerprint));
    Some(ScannedItem { size, attributes, changed, file: Some((device, inode)), fingerprint, ..plain })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back_from_the_list() {
        let plain = Walk::plain(3).item(b"d/f\xff", ItemKind::Symlink);
        let attributes = Attributes { mtime: Some(Time::new(-5, 7)), ..Attributes::default() };
        let (changed, file) = (Some(Time::new(1 << 40, 999_999_999)), Some((u64::MAX, 1)));
        let known =
            ScannedItem { size: Some(9), attributes, changed, file, fingerprint: Some([8; 16]), ..plain.clone() };
        let unknown = ScannedItem { file: Some((0, 0)), ..plain };
        for item in [known, unknown] {
            let mut record = Vec::new();
            write(&mut record, &item);
            assert_eq!(read(&record), Some(item));
            assert_eq!(read(&record[..record.len() - b"d/f\xff".len() - 1]), None);
        }
    }
}
