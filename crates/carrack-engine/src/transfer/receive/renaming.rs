//! Files that the source has renamed: what only the destination has of such a file gets its new name there, and nothing
//! of it is sent.
//!
//! All names are told before anything is sent, so what only the destination has is known by then. A file of the source
//! that is new is compared with those of its size. Each of them is read at most once, whatever it is compared with.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use carrack_core::attributes::Time;
use carrack_core::limits;
use carrack_core::path::split_name;
use carrack_core::report::DestinationCounts;
use carrack_core::request::Renames;
use carrack_core::wire::peer::AskedItem;

use super::changes::short_digest;
use super::only_there::OnlyThere;
use crate::storage::posix::references::FoundReference;
use crate::sync::{lock, wait_timeout};

/// How often who waits for another reader looks whether all is over.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The number of a file that only the destination has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OldName(u32);

/// A file that is getting the name of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TakenName {
    pub old: OldName,
    /// Only samples of it have been read.
    pub by_samples: bool,
}

/// Files that only the destination has, and what the source has made of them.
pub struct Renaming {
    how: Renames,
    files: Mutex<OldFiles>,
    /// One of them has been read.
    read: Condvar,
}

/// What files have in common that may be one.
type OldKey = (u64, Option<Time>);

#[derive(Default)]
struct OldFiles {
    files: Vec<OldFile>,
    /// Bytes of the paths of `files`.
    path_bytes: usize,
    /// Those that were not noted, because there are too many.
    left_out: u64,
    alike: HashMap<OldKey, AlikeFiles>,
    /// By size and the digest of the last name: the one to read first.
    by_name: HashMap<(u64, u64), u32>,
    /// By key and content: files of several times may have the same samples.
    by_content: HashMap<(OldKey, [u8; 32]), Vec<u32>>,
    /// By the digest of the path.
    by_path: HashMap<u64, u32>,
    renamed: RenamedFiles,
}

/// Files that may be one.
#[derive(Default)]
struct AlikeFiles {
    count: usize,
    /// Those that nobody has begun to read.
    unread: Vec<u32>,
    being_read: usize,
}

struct OldFile {
    path: Box<[u8]>,
    key: OldKey,
    state: OldState,
    /// What stood there when it was read.
    found: Option<FoundReference>,
    is_begun: bool,
    /// The source has the old name, too.
    is_told: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OldState {
    Free,
    /// It is getting another name.
    Taken,
    /// It has another name beside the old one, which goes at the end.
    Renamed,
    /// It stays under its name, or is deleted.
    Out,
}

#[derive(Clone, Copy, Default)]
struct RenamedFiles {
    read: OnlyThere,
    by_samples: OnlyThere,
    /// Files of which samples were read, and that were copied under their new names.
    copied_by_samples: OnlyThere,
}

/// What becomes of a file of the source.
pub(super) enum NextOld {
    /// It is this one.
    Is(OldName),
    /// It may be this one, which the caller reads.
    Read(OldName),
    /// It is none of them, or the transfer is over.
    None,
}

impl Renaming {
    pub(super) fn new(how: Renames) -> Self {
        Self { how, files: Mutex::default(), read: Condvar::new() }
    }

    fn key(&self, size: u64, mtime: Option<Time>) -> Option<OldKey> {
        match self.how {
            Renames::Never => None,
            Renames::Content => Some((size, None)),
            // A time in whole seconds may be that of many.
            Renames::Quick => mtime.filter(|mtime| mtime.nanos != 0).map(|mtime| (size, Some(mtime))),
        }
        .filter(|_| size > 0)
    }

    /// Only samples are read of what is compared.
    pub(super) fn by_samples(&self) -> bool {
        self.how == Renames::Quick
    }

    /// A file that only the destination has.
    pub(super) fn note(&self, path: &[u8], size: u64, mtime: Option<Time>) {
        let Some(key) = self.key(size, mtime) else { return };
        let files = &mut *lock(&self.files);
        if files.files.len() >= limits::RENAMED_FILES || files.path_bytes + path.len() > limits::RENAMED_PATH_BYTES {
            files.left_out += 1;
            return;
        }
        files.path_bytes += path.len();
        let number = files.files.len() as u32;
        let (state, found) = (OldState::Free, None);
        files.files.push(OldFile { path: path.into(), key, state, found, is_begun: false, is_told: false });
        files.by_path.insert(short_digest(path), number);
        files.by_name.insert((size, short_digest(split_name(path).1)), number);
        let alike = files.alike.entry(key).or_default();
        alike.count += 1;
        alike.unread.push(number);
    }

    /// How many files were not noted.
    pub(super) fn left_out(&self) -> u64 {
        lock(&self.files).left_out
    }

    /// The source has this path, so what stands there is not renamed; `true` if it is already.
    pub(super) fn is_told(&self, path: &[u8]) -> bool {
        let files = &mut *lock(&self.files);
        let number = files.by_path.get(&short_digest(path)).copied();
        let Some(file) = number.and_then(|number| files.files.get_mut(number as usize)) else { return false };
        file.is_told = true;
        let has_other = matches!(file.state, OldState::Taken | OldState::Renamed);
        if !has_other {
            file.state = OldState::Out;
        }
        has_other
    }

    /// Whether a file of the source may be one of them.
    pub(super) fn may_be(&self, item: &AskedItem) -> bool {
        let Some(key) = self.key(item.size, item.mtime) else { return false };
        let files = lock(&self.files);
        // Of several, samples do not tell which one it is. One that was not noted may be such.
        let is_one = |alike: &AlikeFiles| alike.count == 1 && files.left_out == 0;
        files.alike.get(&key).is_some_and(|alike| !self.by_samples() || is_one(alike))
    }

    /// What is worth reading before the source has told what its file holds: what has the same last name. Whoever comes
    /// to read it asks [`Self::begins`] first: nobody waits for what is only queued.
    pub(super) fn ahead(&self, item: &AskedItem) -> Option<OldName> {
        let files = &*lock(&self.files);
        let number = files.by_name.get(&(item.size, short_digest(split_name(&item.path).1))).copied()?;
        let is_unread = |file: &&OldFile| file.state == OldState::Free && !file.is_begun;
        files.files.get(number as usize).filter(is_unread).map(|_| OldName(number))
    }

    /// Whether it has yet to be read; the caller does so then.
    pub(super) fn begins(&self, old: OldName) -> bool {
        lock(&self.files).begin(old.0)
    }

    /// Which of them a file is, of which the source has told the digest; it is taken then. Waits while others read what
    /// it may be.
    pub(super) fn next(&self, item: &AskedItem, content: [u8; 32], is_over: &dyn Fn() -> bool) -> NextOld {
        let Some(key) = self.key(item.size, item.mtime) else { return NextOld::None };
        let mut files = lock(&self.files);
        loop {
            if let Some(number) = files.take(key, content) {
                return NextOld::Is(OldName(number));
            }
            if let Some(number) = files.begin_one(key) {
                return NextOld::Read(OldName(number));
            }
            let is_being_read = files.alike.get(&key).is_some_and(|alike| alike.being_read > 0);
            if !is_being_read || is_over() {
                return NextOld::None;
            }
            files = wait_timeout(&self.read, files, LOOK_INTERVAL);
        }
    }

    /// What stood there, and its digest: it has been read, or could not be.
    pub(super) fn has_read(&self, old: OldName, read: Option<(FoundReference, [u8; 32])>) {
        let files = &mut *lock(&self.files);
        let Some(file) = files.files.get_mut(old.0 as usize) else { return };
        if let Some(alike) = files.alike.get_mut(&file.key) {
            alike.being_read = alike.being_read.saturating_sub(1);
        }
        if let Some((found, digest)) = read {
            file.found = Some(found);
            files.by_content.entry((file.key, digest)).or_default().push(old.0);
        }
        self.read.notify_all();
    }

    /// Where it stands.
    pub(super) fn path(&self, old: OldName) -> Vec<u8> {
        lock(&self.files).files.get(old.0 as usize).map(|file| file.path.to_vec()).unwrap_or_default()
    }

    /// What stood there when it was read.
    pub(super) fn found(&self, old: OldName) -> Option<FoundReference> {
        lock(&self.files).files.get(old.0 as usize)?.found
    }

    /// The file has its new name.
    pub(super) fn has_new_name(&self, taken: TakenName) {
        let files = &mut *lock(&self.files);
        let Some(file) = files.files.get_mut(taken.old.0 as usize) else { return };
        file.state = OldState::Renamed;
        let RenamedFiles { read, by_samples, .. } = &mut files.renamed;
        (if taken.by_samples { by_samples } else { read }).add(file.key.0);
    }

    /// The file has been copied under its new name; the old one is deleted as any other.
    pub(super) fn is_copied(&self, taken: TakenName) {
        let files = &mut *lock(&self.files);
        let Some(file) = files.files.get_mut(taken.old.0 as usize) else { return };
        file.state = OldState::Out;
        if taken.by_samples {
            files.renamed.copied_by_samples.add(file.key.0);
        }
    }

    /// The file did not get its new name.
    pub(super) fn stays(&self, old: OldName) {
        if let Some(file) = lock(&self.files).files.get_mut(old.0 as usize) {
            file.state = OldState::Out;
        }
    }

    /// What stands at a path and has another name now; device and inode.
    pub(super) fn renamed_at(&self, path: &[u8]) -> Option<(u64, u64)> {
        let files = lock(&self.files);
        let number = files.by_path.get(&short_digest(path)).copied()?;
        let file = files.files.get(number as usize).filter(|file| *file.path == *path && !file.is_told)?;
        let found = file.found.filter(|_| file.state == OldState::Renamed)?;
        Some((found.stat.device, found.stat.inode))
    }

    /// All that have another name now.
    pub(super) fn renamed(&self) -> OnlyThere {
        let RenamedFiles { read, by_samples, .. } = lock(&self.files).renamed;
        OnlyThere { items: read.items + by_samples.items, bytes: read.bytes + by_samples.bytes }
    }

    /// With what was renamed. What only samples tell of counts as unread, whether it was renamed or copied.
    pub(super) fn counted(&self, counts: DestinationCounts) -> DestinationCounts {
        let RenamedFiles { read, by_samples, copied_by_samples: copied } = lock(&self.files).renamed;
        DestinationCounts {
            files_renamed: read.items,
            bytes_renamed: read.bytes,
            files_renamed_unread: by_samples.items + copied.items,
            bytes_renamed_unread: by_samples.bytes.saturating_add(copied.bytes),
            ..counts
        }
    }
}

impl OldFiles {
    /// Takes one that holds this.
    fn take(&mut self, key: OldKey, content: [u8; 32]) -> Option<u32> {
        let Self { files, by_content, .. } = self;
        let numbers = by_content.get_mut(&(key, content))?;
        while let Some(number) = numbers.pop() {
            if let Some(file) = files.get_mut(number as usize).filter(|file| file.state == OldState::Free) {
                file.state = OldState::Taken;
                return Some(number);
            }
        }
        None
    }

    /// One that nobody has read; the caller does.
    fn begin_one(&mut self, key: OldKey) -> Option<u32> {
        loop {
            let number = self.alike.get_mut(&key)?.unread.pop()?;
            if self.begin(number) {
                return Some(number);
            }
        }
    }

    /// Whether somebody has to read a file; the caller does so then.
    fn begin(&mut self, number: u32) -> bool {
        let Some(file) = self.files.get_mut(number as usize) else { return false };
        if file.state != OldState::Free || std::mem::replace(&mut file.is_begun, true) {
            return false;
        }
        if let Some(alike) = self.alike.get_mut(&file.key) {
            alike.being_read += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use carrack_core::attributes::OtherAttributes;
    use carrack_core::report::ItemKind;
    use carrack_sys::dir::Dir;

    use super::*;

    fn item(path: &str, size: u64) -> AskedItem {
        let (path, mtime) = (path.into(), Some(Time::new(1, 1)));
        let others = OtherAttributes::default();
        AskedItem {
            path,
            kind: ItemKind::File,
            size,
            mtime,
            mode: 0o644,
            others,
            leads_to: Vec::new(),
            hard_link: None,
        }
    }

    fn found() -> FoundReference {
        FoundReference::of_destination(Dir::open_ambient(std::path::Path::new("/")).unwrap().stat_self().unwrap())
    }

    /// Reads what is asked for, as one of these contents; which of them the item is.
    fn told(renaming: &Renaming, item: &AskedItem, content: u8, held: &dyn Fn(&[u8]) -> Option<u8>) -> Option<Vec<u8>> {
        loop {
            match renaming.next(item, [content; 32], &|| false) {
                NextOld::Is(old) => return Some(renaming.path(old)),
                NextOld::None => return None,
                NextOld::Read(old) => {
                    let read = held(&renaming.path(old)).map(|content| (found(), [content; 32]));
                    renaming.has_read(old, read);
                }
            }
        }
    }

    #[test]
    fn each_file_is_read_once_and_taken_once() {
        let renaming = Renaming::new(Renames::Content);
        for name in ["a", "b", "c", "unreadable"] {
            renaming.note(name.as_bytes(), 5, None);
        }
        renaming.note(b"empty", 0, None);
        let reads = Mutex::new(Vec::new());
        let held = |path: &[u8]| {
            lock(&reads).push(path.to_vec());
            (path.len() == 1).then_some(if path == b"c" { 2 } else { 1 })
        };
        assert!(
            renaming.may_be(&item("new", 5)) && !renaming.may_be(&item("new", 6)) && !renaming.may_be(&item("e", 0))
        );
        // That with the same last name comes first, and is read ahead by one alone.
        let ahead = renaming.ahead(&item("d/b", 5)).unwrap();
        assert!(renaming.ahead(&item("e/b", 5)).is_some() && renaming.begins(ahead) && !renaming.begins(ahead));
        assert_eq!((renaming.path(ahead), renaming.ahead(&item("e/b", 5))), (b"b".to_vec(), None));
        renaming.has_read(ahead, Some((found(), [1; 32])));
        let firsts = [told(&renaming, &item("1", 5), 1, &held), told(&renaming, &item("2", 5), 1, &held)];
        assert_eq!(firsts, [Some(b"b".to_vec()), Some(b"a".to_vec())]);
        assert_eq!(told(&renaming, &item("3", 5), 1, &held), None, "nothing else holds this");
        assert_eq!(told(&renaming, &item("4", 5), 2, &held), Some(b"c".to_vec()));
        assert_eq!(told(&renaming, &item("5", 6), 2, &held), None);
        let mut reads = lock(&reads).clone();
        reads.sort();
        assert_eq!(reads, [&b"a"[..], b"c", b"unreadable"]);
    }

    #[test]
    fn name_that_the_source_has_is_neither_taken_nor_forgotten() {
        let renaming = Renaming::new(Renames::Content);
        for name in ["a", "b"] {
            renaming.note(name.as_bytes(), 5, None);
        }
        assert!(!renaming.is_told(b"a"));
        assert_eq!(told(&renaming, &item("new", 5), 1, &|_| Some(1)), Some(b"b".to_vec()));
        assert_eq!(told(&renaming, &item("newer", 5), 1, &|_| Some(1)), None, "a stays");
        let renamed = TakenName { old: OldName(1), by_samples: false };
        renaming.has_new_name(renamed);
        assert_eq!(renaming.renamed(), OnlyThere { items: 1, bytes: 5 });
        let stat = found().stat;
        assert_eq!((renaming.renamed_at(b"a"), renaming.renamed_at(b"b")), (None, Some((stat.device, stat.inode))));
        assert!(renaming.is_told(b"b"), "it has another name already");
        assert_eq!(renaming.renamed_at(b"b"), None);
    }

    #[test]
    fn samples_tell_nothing_of_whole_seconds_and_of_several() {
        let renaming = Renaming::new(Renames::Quick);
        renaming.note(b"a", 5, Some(Time::new(1, 1)));
        renaming.note(b"whole second", 6, Some(Time::new(1, 0)));
        renaming.note(b"no time", 6, None);
        for name in ["c", "d"] {
            renaming.note(name.as_bytes(), 7, Some(Time::new(1, 1)));
        }
        assert!(renaming.may_be(&item("new", 5)));
        for (size, time) in [(5, Time::new(1, 2)), (6, Time::new(1, 0)), (7, Time::new(1, 1))] {
            assert!(!renaming.may_be(&AskedItem { mtime: Some(time), ..item("new", size) }), "{size}");
        }
        assert!(!renaming.may_be(&AskedItem { mtime: None, ..item("new", 6) }));
    }

    /// Two files of one size and one content, but of two times.
    #[test]
    fn samples_find_no_file_of_another_time() {
        let renaming = Renaming::new(Renames::Quick);
        renaming.note(b"a", 5, Some(Time::new(1, 2)));
        let at = |nanos| AskedItem { mtime: Some(Time::new(1, nanos)), ..item("new", 5) };
        // Somebody has asked for it, and it is something else.
        assert_eq!(told(&renaming, &at(2), 2, &|_| Some(1)), None);
        renaming.note(b"b", 5, Some(Time::new(1, 3)));
        assert_eq!(told(&renaming, &at(3), 1, &|_| Some(1)), Some(b"b".to_vec()));
        assert_eq!(told(&renaming, &at(3), 1, &|_| Some(1)), None);
    }

    #[test]
    fn paths_are_bounded_in_bytes_and_samples_are_not_believed_beyond() {
        const LONG: usize = 60_000;
        let renaming = Renaming::new(Renames::Quick);
        let note = |number: u32| {
            let mut path = vec![b'x'; LONG];
            path[..4].copy_from_slice(&number.to_be_bytes());
            renaming.note(&path, 5, Some(Time::new(1, number)));
        };
        let fit = (limits::RENAMED_PATH_BYTES / LONG) as u32;
        (1..=fit).for_each(note);
        assert!(renaming.left_out() == 0 && renaming.may_be(&item("new", 5)));
        (fit + 1..=fit + 2).for_each(note);
        let held = lock(&renaming.files).files.iter().map(|file| file.path.len()).sum::<usize>();
        assert!(held <= limits::RENAMED_PATH_BYTES && held > limits::RENAMED_PATH_BYTES - LONG, "{held}");
        assert_eq!(renaming.left_out(), 2);
        assert!(!renaming.may_be(&item("new", 5)));
    }

    #[test]
    fn copy_by_samples_counts_as_unread_and_its_old_name_is_deleted() {
        for by_samples in [true, false] {
            let renaming = Renaming::new(Renames::Quick);
            renaming.note(b"a", 5, Some(Time::new(1, 1)));
            renaming.is_copied(TakenName { old: OldName(0), by_samples });
            let DestinationCounts { files_renamed, files_renamed_unread, bytes_renamed_unread, .. } =
                renaming.counted(DestinationCounts::default());
            let unread = u64::from(by_samples);
            assert_eq!((files_renamed, files_renamed_unread, bytes_renamed_unread), (0, unread, 5 * unread));
            assert_eq!((renaming.renamed(), renaming.renamed_at(b"a")), (OnlyThere::default(), None));
        }
    }

    /// What is only to be read some time is read by whoever needs it first.
    #[test]
    fn nobody_waits_for_what_nobody_reads() {
        let renaming = Renaming::new(Renames::Content);
        renaming.note(b"a", 5, None);
        let ahead = renaming.ahead(&item("a", 5)).unwrap();
        assert_eq!(told(&renaming, &item("new", 5), 1, &|_| Some(1)), Some(b"a".to_vec()));
        assert!(!renaming.begins(ahead));
    }

    /// Who needs what another is reading waits for it, and not longer than the transfer lasts.
    #[test]
    fn what_another_reads_is_waited_for() {
        let renaming = Renaming::new(Renames::Content);
        renaming.note(b"a", 5, None);
        let ahead = renaming.ahead(&item("a", 5)).unwrap();
        assert!(renaming.begins(ahead));
        assert!(matches!(renaming.next(&item("new", 5), [1; 32], &|| true), NextOld::None), "all is over");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| told(&renaming, &item("new", 5), 1, &|_| None));
            renaming.has_read(ahead, Some((found(), [1; 32])));
            assert_eq!(waits.join().unwrap(), Some(b"a".to_vec()));
        });
    }
}
