//! Reference directories: where a destination's host may have a file of the source already. They are only looked into.
//! So is the destination itself, where a file may have another name.

use std::io;
use std::sync::{Arc, Mutex};

use carrack_core::attributes::{CopyFacts, Lacks, OtherAttributes};
use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::path::{bare, display_bytes, join, split_name, within};
use carrack_core::reference::{ReferenceDirectories, ReferenceUse, below_root};
use carrack_sys::dir::{Dir, Kind, Links, Stat};
use carrack_sys::file;

use super::descriptors::patiently;
use super::extended::Holder;
use super::faked::shown;
use super::found::open_found;
use super::giving::facts_of;
use super::part::stat_entry;
use super::place::Place;
use super::tree::{content_of, standing_item};
use crate::data::content::sample_digest;
use crate::error::{failure, io_failure, system_failure};
use crate::storage::giving::Giving;
use crate::storage::write::StandingItem;
use crate::sync::lock;

/// The directory that was looked into last, by its path; `None` where it is not there.
type LastDirectory = Mutex<Option<(Vec<u8>, Option<Arc<Dir>>)>>;

/// Reference directories, opened.
pub struct References {
    /// What becomes of a file that one of them has.
    pub used: ReferenceUse,
    are_named: bool,
    /// What is written down beside items counts as what they are.
    faked: bool,
    directories: Vec<(Dir, LastDirectory)>,
    /// The destination itself, where files may be renamed.
    own: Option<(Dir, LastDirectory)>,
}

/// A regular file in a reference directory, or in the destination.
#[derive(Clone, Copy, Debug)]
pub struct FoundReference {
    /// `None`: the destination.
    directory: Option<usize>,
    /// What it was when it was found.
    pub stat: Stat,
    /// Owner, group and permissions that it counts as having.
    pub facts: CopyFacts,
}

impl FoundReference {
    /// Something of the destination.
    #[cfg(test)]
    pub fn of_destination(stat: Stat) -> Self {
        Self { directory: None, stat, facts: facts_of(&stat) }
    }

    /// As it is compared.
    pub fn item(&self) -> StandingItem {
        StandingItem { facts: self.facts, ..standing_item(&self.stat) }
    }
}

impl References {
    /// Opens those that are there; `tell` is told of each other one. A relative path begins at `destination`, and no
    /// path leaves a root. With `deletes` none may be what is deleted.
    ///
    /// # Errors
    /// One that leads out of a root or of what a grant covers, that is the destination itself or would be deleted, or
    /// cannot be opened.
    pub fn open(
        place: &Place,
        destination: &[u8],
        wanted: &ReferenceDirectories,
        deletes: bool,
        tell: &mut dyn FnMut(String),
    ) -> Result<Self, Failure> {
        let mut directories = Vec::new();
        for typed in wanted.paths() {
            let refuse = |code, why: &str| Err(failure(code, Side::Destination, why).at_path(&typed[..]));
            let path = match path_of(place, destination, typed) {
                Some(path) => path,
                None => return refuse(ErrorCode::PermissionDenied, "leads out of what the node serves"),
            };
            let dir = match place.dir(&path) {
                Ok(dir) => dir,
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    let shown = display_bytes(typed);
                    tell(format!("at the destination there is no directory {shown}: what it was to have is sent"));
                    continue;
                }
                Err(error) => return Err(system_failure(Side::Destination, &error).at_path(&typed[..])),
            };
            match place_below(place, destination, &path).as_deref() {
                Some(b"") => return refuse(ErrorCode::Usage, "is the destination itself"),
                Some(_) if deletes => {
                    let why = "lies in the destination and would be deleted there: name a directory beside it";
                    return refuse(ErrorCode::Usage, why);
                }
                _ if deletes && place_below(place, &path, destination).is_some() => {
                    let why = "holds the destination, where it would be deleted: name a directory beside it";
                    return refuse(ErrorCode::Usage, why);
                }
                _ => directories.push((dir, LastDirectory::default())),
            }
        }
        Ok(Self { used: wanted.used(), are_named: true, faked: false, directories, own: None })
    }

    /// No reference directory.
    pub fn none() -> Self {
        Self { used: ReferenceUse::Link, are_named: false, faked: false, directories: Vec::new(), own: None }
    }

    /// The same, where what is written down beside items counts as what they are, if it is so.
    #[must_use]
    pub fn faked(self, faked: bool) -> Self {
        Self { faked, ..self }
    }

    /// What becomes of what one that was named has.
    pub fn used(&self) -> Option<ReferenceUse> {
        self.are_named.then_some(self.used)
    }

    /// Whether any was named, be it there or not: then files of the destination may be those of other directories.
    pub fn are_named(&self) -> bool {
        self.are_named
    }

    /// Files of the destination may be found, too.
    ///
    /// # Errors
    /// When it cannot be opened; one that is yet to be made has none.
    pub fn with_own(mut self, place: &Place, destination: &[u8]) -> Result<Self, Failure> {
        match place.dir(destination) {
            Ok(dir) => self.own = Some((dir, LastDirectory::default())),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => return Err(system_failure(Side::Destination, &error).at_path(destination)),
        }
        Ok(self)
    }

    /// The regular files at a path, in the order of the directories.
    pub fn find<'a>(&'a self, path: &'a [u8]) -> impl Iterator<Item = FoundReference> + 'a {
        let (parent, name) = split_name(path);
        (0..self.directories.len()).filter_map(move |directory| self.find_in(Some(directory), parent, name))
    }

    /// The regular file at a path of the destination.
    pub fn find_own(&self, path: &[u8]) -> Option<FoundReference> {
        let (parent, name) = split_name(path);
        self.find_in(None, parent, name)
    }

    fn find_in(&self, directory: Option<usize>, parent: &[u8], name: &[u8]) -> Option<FoundReference> {
        let dir = self.directory(directory, parent).ok()??;
        let stat = stat_entry(&dir, name).ok()??;
        let shown = if self.faked { shown(stat, Holder::Entry(&dir, name)) } else { stat };
        (shown.kind == Kind::File).then_some(FoundReference { directory, stat, facts: facts_of(&shown) })
    }

    /// The directory that a file at a path was found in.
    ///
    /// # Errors
    /// When it is not there any more, and those of the system.
    pub fn directory_of(&self, found: &FoundReference, path: &[u8]) -> Result<Arc<Dir>, Failure> {
        let opened = self.directory(found.directory, split_name(path).0);
        opened.and_then(|dir| dir.ok_or_else(|| io::ErrorKind::NotFound.into())).map_err(|error| failed(&error, path))
    }

    /// What a file that was found at a path lacks of what is given and only its extended attributes show. One that
    /// cannot be looked at lacks all of it.
    pub fn lacks(&self, found: &FoundReference, path: &[u8], wanted: &OtherAttributes, giving: &Giving) -> Lacks {
        if !giving.kept().are_listed() {
            return Lacks::default();
        }
        let Ok(directory) = self.directory_of(found, path) else { return Lacks::ALL };
        giving.lacks(Holder::Entry(&directory, split_name(path).1), wanted).unwrap_or(Lacks::ALL)
    }

    /// The BLAKE3 of a file that was found at a path; `None` once told to stop.
    ///
    /// # Errors
    /// When it cannot be read, or is another file by now.
    pub fn content(
        &self,
        found: &FoundReference,
        path: &[u8],
        threads: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<[u8; 32]>, Failure> {
        let directory = self.directory_of(found, path)?;
        let opened = open_found(&directory, split_name(path).1, &found.stat).map_err(|error| failed(&error, path))?;
        content_of(&opened, threads, stop, &|error| failed(&error, path))
    }

    /// The BLAKE3 of samples of a file that was found at a path.
    ///
    /// # Errors
    /// As [`Self::content`].
    pub fn samples(&self, found: &FoundReference, path: &[u8]) -> Result<[u8; 32], Failure> {
        let fail = |error: io::Error| failed(&error, path);
        let directory = self.directory_of(found, path)?;
        let opened = open_found(&directory, split_name(path).1, &found.stat).map_err(fail)?;
        let read = |offset: u64, out: &mut [u8]| match file::read_full_at(&opened, out, offset) {
            Ok(read) if read == out.len() => Ok(()),
            Ok(_) => Err(fail(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(fail(error)),
        };
        sample_digest(found.stat.size, &read)
    }

    /// No link is followed on the way.
    fn directory(&self, number: Option<usize>, parent: &[u8]) -> io::Result<Option<Arc<Dir>>> {
        let opened = match number {
            Some(number) => self.directories.get(number),
            None => self.own.as_ref(),
        };
        let Some((top, last)) = opened else { return Ok(None) };
        if let Some((_, dir)) = lock(last).as_ref().filter(|(path, _)| path == parent) {
            return Ok(dir.clone());
        }
        let opened = match patiently(|| top.open_dir(parent, Links::Refuse)) {
            Ok(dir) => Some(Arc::new(dir)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => None,
            Err(error) => return Err(error),
        };
        *lock(last) = Some((parent.to_vec(), opened.clone()));
        Ok(opened)
    }
}

fn failed(error: &io::Error, path: &[u8]) -> Failure {
    io_failure(Side::Destination, "read in the reference directory", error).at_path(path)
}

/// The path of a reference directory as its place takes it; `None` where it leads out of a root.
fn path_of(place: &Place, destination: &[u8], typed: &[u8]) -> Option<Vec<u8>> {
    match place {
        Place::Anywhere { .. } if typed.starts_with(b"/") => Some(typed.to_vec()),
        Place::Anywhere { .. } => {
            let at = place.normal(destination);
            let is_there = place.stat(&at).is_ok();
            // The system knows the way up from a directory; from one that is yet to be made there is only its path.
            if is_there { Some(join(&at, typed)) } else { beside(&place.resolved(&at), typed) }
        }
        _ => below_root(destination, typed),
    }
}

fn beside(destination: &[u8], typed: &[u8]) -> Option<Vec<u8>> {
    below_root(destination, typed).map(|path| [b"/", &path[..]].concat())
}

/// What a directory is called below the destination, links resolved; `None` where it is not there.
fn place_below(place: &Place, destination: &[u8], path: &[u8]) -> Option<Vec<u8>> {
    let resolved = |path: &[u8]| place.look(path).ok().map(|(_, resolved)| bare(&resolved).to_vec());
    within(&resolved(path)?, &resolved(destination)?).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn open(
        place: &Place,
        destination: &str,
        typed: &str,
        deletes: bool,
    ) -> Result<(References, Vec<String>), Failure> {
        let wanted = ReferenceDirectories::new(ReferenceUse::Link, vec![typed.as_bytes().to_vec()]).unwrap();
        let mut told = Vec::new();
        let opened = References::open(place, destination.as_bytes(), &wanted, deletes, &mut |note| told.push(note));
        opened.map(|references| (references, told))
    }

    fn made(top: &Path) {
        for directory in ["served/d/old", "served/d/new", "outside/old"] {
            fs::create_dir_all(top.join(directory)).unwrap();
            fs::write(top.join(directory).join("f"), "x").unwrap();
        }
        symlink("../../outside/old", top.join("served/d/out")).unwrap();
        symlink("/", top.join("served/d/root")).unwrap();
        symlink("old", top.join("served/d/in")).unwrap();
    }

    #[test]
    fn reference_directories_do_not_leave_a_root_or_what_a_grant_covers() {
        let top = tempfile::tempdir().unwrap();
        made(top.path());
        let root = Arc::new(Dir::open_ambient(&top.path().join("served")).unwrap());
        let beneath = Place::Beneath(Arc::clone(&root));
        let granted = Place::Granted(root, b"d/new".to_vec());
        let outside = top.path().join("outside/old");
        for (place, out) in [
            (&beneath, "../../../outside/old"),
            (&beneath, "../out"),
            (&beneath, "../root/etc"),
            (&beneath, "/../outside/old"),
            (&granted, "../old"),
            (&granted, "/d/old"),
            (&granted, "../../.."),
        ] {
            let refused = open(place, "/d/new", out, false).err().unwrap_or_else(|| panic!("{out} was opened"));
            assert!(refused.to_string().contains(out), "{refused}");
        }
        // A slash is the root itself.
        assert_eq!(open(&beneath, "/d/new", outside.to_str().unwrap(), false).unwrap().1.len(), 1);
        for within in ["../old", "/d/old", "../in", "../../d/old/."] {
            let (references, told) = open(&beneath, "/d/new", within, true).unwrap();
            assert_eq!((references.find(b"f").count(), told.len()), (1, 0), "{within}");
            assert_eq!(references.find(b"none").count() + references.find(b"f/x").count(), 0);
        }
    }

    #[test]
    fn reference_directory_is_not_the_destination_and_not_what_is_deleted() {
        let top = tempfile::tempdir().unwrap();
        made(top.path());
        symlink("new", top.path().join("served/d/twin")).unwrap();
        fs::create_dir(top.path().join("served/d/new/below")).unwrap();
        let anywhere = Place::anywhere();
        let at = |path: &str| top.path().join("served/d").join(path).to_str().unwrap().to_owned();
        for same in [".", "../new", "../twin", "./below/.."] {
            assert!(open(&anywhere, &at("new"), same, false).is_err(), "{same}");
        }
        assert!(open(&anywhere, &at("new"), "below", true).is_err());
        let holds = open(&anywhere, &at("new"), "..", true).err().unwrap();
        assert!(holds.to_string().contains("holds the destination"), "{holds}");
        assert!(open(&anywhere, &at("new"), "..", false).is_ok());
        assert!(open(&anywhere, &at("new"), "below", false).is_ok());
        // A destination that is yet to be made, and one that a link leads to.
        let (references, told) = open(&anywhere, &at("more/new"), "../../old", true).unwrap();
        assert_eq!((references.find(b"f").count(), told.len()), (1, 0));
        assert_eq!(open(&anywhere, &at("twin"), "../old", true).unwrap().0.find(b"f").count(), 1);
        let (references, told) = open(&anywhere, &at("new"), "../nowhere", true).unwrap();
        assert!(references.find(b"f").count() == 0 && told[0].contains("../nowhere"));
    }
}
