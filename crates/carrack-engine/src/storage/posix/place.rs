//! Where the paths of a request lead: anywhere (over ssh, or on this machine, as the user), or below a
//! node's root and nowhere else.

#![expect(clippy::disallowed_methods, reason = "turns what a user typed, who may go anywhere, into handles")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::Location;
use carrack_core::path::{check_relative, display_bytes, join, split_name};
use carrack_sys::dir::{Dir, Kind, Links, Stat, stat_path};
use carrack_sys::errno::ELOOP;

use super::links::LinkBounds;
use crate::error::{OutsideGrant, failure};
use crate::storage::store::Store;

/// What an agent's paths are relative to.
#[derive(Clone, Debug)]
pub enum Place {
    /// The process's working directory.
    Anywhere {
        /// Where a leading `~/` leads, which no login shell could expand; `None` where it is a name like any other.
        home: Option<PathBuf>,
    },
    /// Below this directory and nowhere else, whatever links and `..` say: a leading slash is the directory itself.
    Beneath(Arc<Dir>),
    /// Of what is below this directory only what a grant covers: this path below it, which leads through no link, and
    /// what is below that. Paths still begin at the directory.
    Granted(Arc<Dir>, Vec<u8>),
    /// A store that has no directories to be opened, and the name of it.
    Stored(String, Arc<dyn Store>),
}

/// Stores beside the file systems of this host, each by the name that a location has for it.
#[derive(Clone, Debug, Default)]
pub struct Stores(BTreeMap<String, Arc<dyn Store>>);

impl Stores {
    /// With one more, or another by this name.
    #[must_use]
    pub fn with(mut self, scheme: &str, store: Arc<dyn Store>) -> Self {
        self.0.insert(scheme.to_owned(), store);
        self
    }

    /// The store that a location is in, if it is in one.
    ///
    /// # Errors
    /// When nobody has given a store this name; for a path at an endpoint, which only its service knows.
    pub fn of(&self, location: &Location) -> Result<Option<Place>, Failure> {
        let scheme = match location {
            Location::Store { scheme, .. } => scheme,
            Location::Endpoint { .. } => {
                let why = format!("only a service knows where {location} is");
                return Err(failure(ErrorCode::Unsupported, Side::Command, why));
            }
            _ => return Ok(None),
        };
        let store = self.0.get(scheme).ok_or_else(|| {
            failure(ErrorCode::Unsupported, Side::Command, format!("there is no store of the name {scheme}"))
        })?;
        Ok(Some(Place::Stored(scheme.clone(), Arc::clone(store))))
    }
}

/// Of a store without directories.
fn no_directories() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the store has no directories that could be opened")
}

impl Place {
    /// Wherever the user of this process may go; a relative path begins in its working directory.
    pub fn anywhere() -> Self {
        Self::Anywhere { home: None }
    }

    /// Below a directory and nowhere else, as it is with a node's root.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn beneath(directory: &Path) -> io::Result<Self> {
        Ok(Self::Beneath(Arc::new(Dir::open_ambient(directory)?)))
    }

    /// The directory that its paths begin at and cannot leave, if there is one: device and inode.
    pub(crate) fn root(&self) -> Option<(u64, u64)> {
        let (Self::Beneath(root) | Self::Granted(root, _)) = self else { return None };
        // An open directory can always be looked at.
        Some(root.stat_self().map_or((0, 0), |stat| (stat.device, stat.inode)))
    }

    /// The path as this place takes it: below a root without its leading slashes, with `.` for nothing.
    pub(crate) fn normal(&self, path: &[u8]) -> Vec<u8> {
        match self {
            Self::Anywhere { home } => match (home, path) {
                (_, b"") => b".".to_vec(),
                (Some(home), b"~") => home.as_os_str().as_bytes().to_vec(),
                (Some(home), [b'~', b'/', rest @ ..]) => join(home.as_os_str().as_bytes(), rest),
                _ => path.to_vec(),
            },
            Self::Stored(..) => path.to_vec(),
            Self::Beneath(_) | Self::Granted(..) => {
                let start = path.iter().position(|&byte| byte != b'/').unwrap_or(path.len());
                if path[start..].is_empty() { b".".to_vec() } else { path[start..].to_vec() }
            }
        }
    }

    /// Opens a directory.
    ///
    /// # Errors
    /// Those of the system; `EXDEV` or `InvalidInput` for what leads out of a root.
    pub(crate) fn dir(&self, path: &[u8]) -> io::Result<Dir> {
        let path = self.normal(path);
        match self {
            Self::Anywhere { .. } => Dir::open_ambient(as_path(&path)),
            Self::Beneath(root) => root.open_dir(&path, Links::Beneath),
            Self::Granted(root, prefix) => {
                let (top, path, links) = covered(root, prefix, &path)?;
                top.open_dir(&path, links)
            }
            Self::Stored(..) => Err(no_directories()),
        }
    }

    /// The directory below which a file is, its path there, and what links on it may do: of places that have a root.
    ///
    /// # Errors
    /// As [`Place::dir`].
    pub(crate) fn below(&self, path: &[u8]) -> io::Result<(Arc<Dir>, Vec<u8>, Links)> {
        match self {
            Self::Beneath(root) => Ok((Arc::clone(root), self.normal(path), Links::Beneath)),
            Self::Granted(root, prefix) => covered(root, prefix, path),
            Self::Anywhere { .. } | Self::Stored(..) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Whether a path is all that was granted.
    pub(crate) fn is_granted_alone(&self, path: &[u8]) -> bool {
        matches!(self, Self::Granted(_, prefix) if rest_of(prefix, &self.normal(path)).is_ok_and(<[u8]>::is_empty))
    }

    /// How far links below a directory may lead.
    ///
    /// # Errors
    /// As [`Place::dir`].
    pub(crate) fn link_bounds(&self, path: &[u8]) -> io::Result<LinkBounds> {
        let (outer, path) = match self {
            Self::Anywhere { .. } => return Ok(LinkBounds::Anywhere),
            Self::Stored(..) => return Err(no_directories()),
            Self::Beneath(root) => (Arc::clone(root), self.normal(path)),
            Self::Granted(root, prefix) => {
                (Arc::new(root.open_dir(prefix, Links::Refuse)?), rest_of(prefix, &self.normal(path))?.to_vec())
            }
        };
        // Without the links of its own: one that is exchanged shall not have two trees taken for one.
        let (_, way) = outer.look(&path)?;
        Ok(LinkBounds::Below(outer, way))
    }

    /// Opens the directory that holds a name, and tells the name.
    ///
    /// # Errors
    /// As [`Place::dir`]; `InvalidInput` when the path ends in no name.
    pub(crate) fn parent(&self, path: &[u8]) -> io::Result<(Dir, Vec<u8>)> {
        if let Self::Granted(root, prefix) = self {
            let (top, path, links) = covered(root, prefix, path)?;
            let (directory, name) = split_name(&path);
            let directory = if directory.is_empty() { b"." } else { directory };
            return Ok((top.open_dir(directory, links)?, name.to_vec()));
        }
        let mut path = self.normal(path);
        while path.len() > 1 && path.ends_with(b"/") {
            path.pop();
        }
        let absolute = path.starts_with(b"/");
        let (directory, name) = split_name(&path);
        if matches!(name, b"" | b"." | b"..") {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no entry of a directory"));
        }
        let directory = match directory {
            b"" if absolute => b"/",
            b"" => &b"."[..],
            other => other,
        };
        Ok((self.dir(directory)?, name.to_vec()))
    }

    /// Whether a path, without a slash at its end, is a symbolic link.
    pub(crate) fn names_a_link(&self, path: &[u8]) -> bool {
        let named = !path.ends_with(b"/");
        let stat = self.parent(path).and_then(|(directory, name)| directory.stat_at(&name));
        named && stat.is_ok_and(|stat| stat.kind == Kind::Symlink)
    }

    /// What a path is, links followed.
    ///
    /// # Errors
    /// As [`Place::dir`].
    pub(crate) fn stat(&self, path: &[u8]) -> io::Result<Stat> {
        let path = self.normal(path);
        match self {
            Self::Anywhere { .. } => stat_path(as_path(&path), true),
            Self::Beneath(root) => root.stat(&path, Links::Beneath),
            Self::Granted(root, prefix) => {
                let (top, path, links) = covered(root, prefix, &path)?;
                top.stat(&path, links).and_then(|stat| no_link(stat, links))
            }
            Self::Stored(..) => Err(no_directories()),
        }
    }

    /// Makes a directory and those above it, as `mkdir -p` does, and opens it. With `durably` the names
    /// that were made are synced.
    ///
    /// # Errors
    /// As [`Place::dir`].
    pub(crate) fn make_dirs(&self, path: &[u8], durably: bool) -> io::Result<Dir> {
        Ok(self.make_top(path, durably, 0o777)?.0)
    }

    /// The same, the directory itself with these permissions where it was not there, which is told.
    ///
    /// # Errors
    /// As [`Place::dir`].
    pub(crate) fn make_top(&self, path: &[u8], durably: bool, mode: u32) -> io::Result<(Dir, bool)> {
        let path = self.normal(path);
        match self {
            Self::Anywhere { .. } => make_ambient(as_path(&path), durably, mode),
            Self::Stored(..) => Err(no_directories()),
            Self::Beneath(root) => make_beneath((root.try_clone()?, false), root, &path, (durably, mode)),
            Self::Granted(root, prefix) => {
                let rest = rest_of(prefix, &path)?;
                // What the grant covers may be made; what is above it is somebody else's.
                let (above, name) = split_name(prefix);
                let above = root.open_dir(if above.is_empty() { b"." } else { above }, Links::Refuse)?;
                let is_new = make_one(&above, name, durably, if rest.is_empty() { mode } else { 0o777 })?;
                let top = above.open_dir(name, Links::Refuse)?;
                make_beneath((top.try_clone()?, is_new), &top, rest, (durably, mode))
            }
        }
    }

    /// What a path is, links followed (`None` where nothing is), and the path with its links resolved: of a node
    /// beginning at its root, which is a slash, and found on the same way as what it is. Of something that does not
    /// exist it is the path of its nearest existing directory, and the rest.
    ///
    /// # Errors
    /// As [`Place::dir`].
    pub(crate) fn look(&self, path: &[u8]) -> io::Result<(Option<Stat>, Vec<u8>)> {
        match self {
            Self::Anywhere { .. } => match self.stat(path) {
                Ok(stat) => Ok((Some(stat), self.resolved(path))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((None, self.resolved(path))),
                Err(error) => Err(error),
            },
            Self::Stored(..) => Err(no_directories()),
            Self::Beneath(root) => {
                let (stat, path) = root.look(&self.normal(path))?;
                Ok((stat, [b"/", &path[..]].concat()))
            }
            Self::Granted(root, prefix) => look_covered(root, prefix, path),
        }
    }

    /// The path with its links resolved, as far as it exists: of one that leads anywhere.
    pub(crate) fn resolved(&self, path: &[u8]) -> Vec<u8> {
        let normal = self.normal(path);
        let full = as_path(&normal);
        let full = std::path::absolute(full).unwrap_or_else(|_| full.to_path_buf());
        let mut existing: &Path = &full;
        loop {
            // A path longer than the system takes in one piece is not there; asking that of each
            // part of it would take long.
            if existing.as_os_str().len() < PATH_MAX
                && let Ok(found) = existing.canonicalize()
            {
                let rest = full.strip_prefix(existing).unwrap_or(Path::new(""));
                let resolved = if rest.as_os_str().is_empty() { found } else { found.join(rest) };
                return resolved.into_os_string().into_vec();
            }
            match existing.parent() {
                Some(parent) => existing = parent,
                None => return full.into_os_string().into_vec(),
            }
        }
    }
}

/// The path below what a grant covers, empty for that itself. A path from a client is refused unless it says in plain
/// names where it leads: nobody has to know what the system makes of others.
fn rest_of<'a>(prefix: &[u8], path: &'a [u8]) -> io::Result<&'a [u8]> {
    let is_slash = |byte: &&u8| **byte == b'/';
    let start = path.iter().take_while(is_slash).count();
    let end = path.len() - path[start..].iter().rev().take_while(is_slash).count();
    let plain = &path[start..end];
    if !matches!(plain, b"" | b".") {
        check_relative(plain).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
    }
    // By component: `/foo` does not cover `/foobar`.
    match plain.strip_prefix(prefix) {
        Some(b"") => Ok(b""),
        Some([b'/', rest @ ..]) => Ok(rest),
        _ => {
            let why = format!("the grant covers /{} and what is below it", display_bytes(prefix));
            Err(io::Error::new(io::ErrorKind::PermissionDenied, OutsideGrant(why)))
        }
    }
}

/// As [`Place::below`], of what a grant covers. Links may lead anywhere below that, and none leads to it: who may write
/// below another grant's path could otherwise have this one lead elsewhere.
fn covered(root: &Arc<Dir>, prefix: &[u8], path: &[u8]) -> io::Result<(Arc<Dir>, Vec<u8>, Links)> {
    match rest_of(prefix, path)? {
        b"" => Ok((Arc::clone(root), prefix.to_vec(), Links::Refuse)),
        rest => Ok((Arc::new(root.open_dir(prefix, Links::Refuse)?), rest.to_vec(), Links::Beneath)),
    }
}

/// A link that is the last name of a path is refused as those before it.
fn no_link(stat: Stat, links: Links) -> io::Result<Stat> {
    if links == Links::Refuse && stat.kind == Kind::Symlink {
        return Err(io::Error::from_raw_os_error(ELOOP));
    }
    Ok(stat)
}

fn look_covered(root: &Arc<Dir>, prefix: &[u8], path: &[u8]) -> io::Result<(Option<Stat>, Vec<u8>)> {
    let at = |rest: &[u8]| match rest {
        b"" | b"." => [b"/", prefix].concat(),
        rest => [b"/", prefix, b"/", rest].concat(),
    };
    let rest = rest_of(prefix, path)?;
    let found = match rest {
        b"" => root
            .stat(prefix, Links::Refuse)
            .and_then(|stat| no_link(stat, Links::Refuse))
            .map(|stat| (Some(stat), Vec::new())),
        rest => root.open_dir(prefix, Links::Refuse).and_then(|top| top.look(rest)),
    };
    match found {
        Ok((stat, resolved)) => Ok((stat, at(&resolved))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((None, at(rest))),
        Err(error) => Err(error),
    }
}

/// Makes a directory, unless it is there; whether it was made.
fn make_one(above: &Dir, name: &[u8], durably: bool, mode: u32) -> io::Result<bool> {
    let made = match above.make_dir(name, mode) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        made => made.map(|()| true)?,
    };
    if made && durably {
        above.sync()?;
    }
    Ok(made)
}

/// As [`Place::make_top`], below a directory. `begun` is that directory, and whether it was made just now.
fn make_beneath(begun: (Dir, bool), root: &Dir, path: &[u8], (durably, mode): (bool, u32)) -> io::Result<(Dir, bool)> {
    let names: Vec<_> = path.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    let (mut current, mut is_new) = begun;
    for (at, name) in names.iter().enumerate() {
        is_new = make_one(&current, name, durably, if at + 1 == names.len() { mode } else { 0o777 })?;
        // Each hop from the root again: a link in the middle may lead elsewhere below it, never out.
        current = match current.open_dir(name, Links::Refuse) {
            Ok(next) => next,
            Err(_) => return Ok((root.open_dir(path, Links::Beneath)?, false)),
        };
    }
    Ok((current, is_new))
}

fn make_ambient(path: &Path, durably: bool, mode: u32) -> io::Result<(Dir, bool)> {
    let parent = path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    match (Dir::open_ambient(path), parent.zip(path.file_name())) {
        (Err(error), Some((parent, name))) if error.kind() == io::ErrorKind::NotFound => {
            let (above, _) = make_ambient(parent, durably, 0o777)?;
            let is_new = make_one(&above, name.as_bytes(), durably, mode)?;
            Ok((Dir::open_ambient(path)?, is_new))
        }
        // What may be passed through and not read, and paths that go up again: the system knows its way.
        (Err(_), parts) => {
            parts.map_or(Ok(()), |(parent, _)| std::fs::create_dir_all(parent))?;
            let is_new = std::fs::DirBuilder::new().mode(mode).create(path).is_ok();
            std::fs::create_dir_all(path)?;
            Ok((Dir::open_ambient(path)?, is_new))
        }
        (opened, _) => Ok((opened?, false)),
    }
}

/// Linux's, its end counted.
const PATH_MAX: usize = 4096;

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
