//! A range of a file, over the control connection: for whoever looks into a file or downloads one. A copy goes over
//! data streams, is verified, and is many times faster.
//!
//! All bytes are of one state of the file: that is looked at when it is opened, again on the way, and once more before
//! the last part leaves. A file that changes meanwhile ends the reading, and its last part is never sent.

use carrack_core::failure::{ErrorCode, Failure, Reason, Side};
use carrack_core::limits;
use carrack_core::report::ItemKind;
use carrack_core::transfer::ScannedItem;
use carrack_core::wire::control::{OpenedFile, ReadFile, Tell};

use super::{Summing, named};
use crate::error::failure;
use crate::storage::place::Place;
use crate::storage::posix::kinds::kind_of;
use crate::storage::read::{OpenOptions, Reader, Source, Walk};
use crate::storage::source::PosixSource;

/// Parts between two looks at whether the file has changed.
const PARTS_BETWEEN_LOOKS: u64 = 512;

/// Puts something over the source, as a grant that counts what is read.
pub type Over<'a> = &'a dyn Fn(Box<dyn Source>) -> Box<dyn Source>;

/// Reads the range, and tells how many bytes it had.
///
/// # Errors
/// When nothing that can be read is there; when it is another state of the file than the one that was asked for, or
/// changes while it is read.
pub fn read(
    place: &Place,
    read: &ReadFile,
    over: Over<'_>,
    work: &Summing<'_>,
    send: &mut dyn FnMut(Tell) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let at = |failure: Failure| failure.at_path(&read.path[..]);
    let (source, item) = open_source(place, &read.path, over)?;
    let mut rest = |time| !work.unread.wait(time);
    let options = &mut OpenOptions { tuning: work.tuning, may_grow: false, rest: &mut rest };
    let reader = source.open(&item, options).map_err(at)?;
    let opened = facts(&*reader, &item).map_err(at)?;
    if read.identity.is_some() && read.identity != opened.identity {
        let changed = failure(ErrorCode::SourceChanged, Side::Source, "is not the file any more that was asked for");
        return Err(at(changed));
    }
    send(Tell::Opened(opened))?;
    let end = read.offset.saturating_add(read.length).min(opened.size);
    let mut offset = read.offset.min(end);
    let mut parts = 0;
    while offset < end {
        if work.unread.is_set() {
            return Err(failure(ErrorCode::ConnectionLost, Side::Link, "the control connection has ended"));
        }
        let length = (end - offset).min(limits::PART_BYTES as u64);
        let mut content = vec![0; length as usize];
        reader.read_at(offset, &mut content).map_err(at)?;
        offset += length;
        parts += 1;
        if offset == end || parts % PARTS_BETWEEN_LOOKS == 0 {
            reader.check_unchanged().map_err(at)?;
        }
        send(Tell::Part(content))?;
    }
    Ok(end.saturating_sub(read.offset))
}

/// What is read, and the file in it.
fn open_source(place: &Place, path: &[u8], over: Over<'_>) -> Result<(Box<dyn Source>, ScannedItem), Failure> {
    let item = Walk::plain(0).item(b"", ItemKind::File);
    if let Place::Stored(_, store) = place {
        check_file(super::stored::look(&**store, path)?.kind, path)?;
        let source = over(store.source(path)?);
        let item = source.look_again(&item).map_err(|why| why.at_path(path))?;
        return Ok((source, item));
    }
    let stat = place.stat(path).map_err(|error| named(path, "stat", &error))?;
    check_file(kind_of(stat.kind), path)?;
    // Opened as a copy's source is: links that were named are followed, as far as the place allows.
    Ok((over(Box::new(PosixSource::open(place, path)?)), item))
}

fn check_file(kind: ItemKind, path: &[u8]) -> Result<(), Failure> {
    let (code, why) = match kind {
        ItemKind::File => return Ok(()),
        ItemKind::Directory => (ErrorCode::IsADirectory, "is a directory"),
        _ => (ErrorCode::Unsupported, "is no file: only files can be read"),
    };
    Err(failure(code, Side::Source, why).at_path(path))
}

/// What the file is that has been opened.
fn facts(reader: &dyn Reader, item: &ScannedItem) -> Result<OpenedFile, Failure> {
    let unknown = |why| failure(ErrorCode::Unsupported, Side::Source, why).for_reason(Reason::SizeUnknown);
    let Some(size) = reader.size() else {
        return Err(unknown("does not know its own size: no range of it can be read"));
    };
    // A file of /proc says that it is empty.
    if size == 0 && reader.read_next(0, &mut [0], &|| false)?.0 > 0 {
        return Err(unknown("says that it has 0 bytes and has more: it does not know its own size"));
    }
    Ok(OpenedFile { size, mtime: reader.attributes(item).mtime, identity: reader.state() })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, FileTimes};
    use std::io::Write;
    use std::time::SystemTime;

    use carrack_core::tuning::Tuning;

    use super::*;
    use crate::sync::Latch;

    const NAME: &[u8] = b"f";

    fn asked(offset: u64, length: u64, identity: Option<[u8; 16]>) -> ReadFile {
        ReadFile { path: NAME.to_vec(), offset, length, identity }
    }

    /// What is said of a range; `each` sees every part before it is taken.
    fn reading(place: &Place, read: &ReadFile, each: &mut dyn FnMut(usize)) -> Result<(OpenedFile, Vec<u8>), Failure> {
        let (mut opened, mut bytes) = (None, Vec::new());
        let unread = Latch::default();
        let work = Summing { tuning: &Tuning::DEFAULT, unread: &unread };
        let count = super::read(place, read, &|source| source, &work, &mut |tell| {
            match tell {
                Tell::Opened(facts) => opened = Some(facts),
                Tell::Part(part) => {
                    assert!(part.len() <= limits::PART_BYTES);
                    bytes.extend(part);
                    each(bytes.len());
                }
                other => panic!("{other:?}"),
            }
            Ok(())
        })?;
        assert_eq!(count, bytes.len() as u64);
        Ok((opened.expect("facts come first"), bytes))
    }

    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|index| (index % 251) as u8).collect()
    }

    #[test]
    fn reading_gives_each_range_as_it_is_in_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::beneath(directory.path()).unwrap();
        let whole = content(3 * limits::PART_BYTES + 7);
        fs::write(directory.path().join("f"), &whole).unwrap();
        let size = whole.len() as u64;
        let (facts, _) = reading(&place, &asked(0, 0, None), &mut |_| {}).unwrap();
        assert_eq!(facts.size, size);
        assert!(facts.identity.is_some() && facts.mtime.is_some(), "{facts:?}");
        let part = limits::PART_BYTES as u64;
        let ranges = [(0, u64::MAX), (0, size), (1, 1), (part - 1, 2), (part, 2 * part), (size - 1, 5), (size, 1)];
        for (offset, length) in ranges.into_iter().chain([(size + 9, 9), (u64::MAX, u64::MAX)]) {
            let (again, bytes) = reading(&place, &asked(offset, length, facts.identity), &mut |_| {}).unwrap();
            let begin = offset.min(size) as usize;
            let end = offset.saturating_add(length).min(size) as usize;
            assert_eq!((again, &bytes[..]), (facts, &whole[begin..end.max(begin)]), "{offset} {length}");
        }
    }

    #[test]
    fn reading_ends_with_an_error_when_the_file_changes() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::beneath(directory.path()).unwrap();
        let path = directory.path().join("f");
        fs::write(&path, content(3 * limits::PART_BYTES)).unwrap();
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        let (facts, _) = reading(&place, &asked(0, 0, None), &mut |_| {}).unwrap();
        let change: [&dyn Fn(); 3] = [
            &|| drop(File::options().append(true).open(&path).unwrap().write_all(b"more")),
            &|| File::options().write(true).open(&path).unwrap().set_len(limits::PART_BYTES as u64).unwrap(),
            // In place, and the modification time is set back.
            &|| {
                let mut file = File::options().write(true).open(&path).unwrap();
                file.write_all(b"other").unwrap();
                file.set_times(FileTimes::new().set_modified(before)).unwrap();
            },
        ];
        for change in change {
            let mut got = 0;
            let why = reading(&place, &asked(0, u64::MAX, None), &mut |bytes| {
                if got == 0 {
                    change();
                }
                got = bytes;
            });
            assert_eq!(why.unwrap_err().code, ErrorCode::SourceChanged);
            assert!(got < 3 * limits::PART_BYTES, "the last part was sent");
            let stale = reading(&place, &asked(0, 1, facts.identity), &mut |_| {}).unwrap_err();
            assert_eq!(stale.code, ErrorCode::SourceChanged);
            fs::write(&path, content(3 * limits::PART_BYTES)).unwrap();
        }
        // Another file under the same name, of the same size and time.
        let other = directory.path().join("other");
        fs::write(&other, content(3 * limits::PART_BYTES)).unwrap();
        let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
        for file in [&path, &other] {
            File::options().write(true).open(file).unwrap().set_times(times).unwrap();
        }
        let (facts, _) = reading(&place, &asked(0, 0, None), &mut |_| {}).unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(reading(&place, &asked(0, 1, facts.identity), &mut |_| {}).is_err());
    }

    #[test]
    fn reading_refuses_what_is_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::beneath(directory.path()).unwrap();
        let code = || reading(&place, &asked(0, 1, None), &mut |_| {}).unwrap_err().code;
        assert_eq!(code(), ErrorCode::NotFound);
        fs::create_dir(directory.path().join("f")).unwrap();
        assert_eq!(code(), ErrorCode::IsADirectory);
        let proc = Place::beneath(std::path::Path::new("/proc/self")).unwrap();
        let status = ReadFile { path: b"status".to_vec(), ..asked(0, 1, None) };
        let why = reading(&proc, &status, &mut |_| {}).unwrap_err();
        assert_eq!((why.code, why.reason), (ErrorCode::Unsupported, Some(Reason::SizeUnknown)));
    }
}
