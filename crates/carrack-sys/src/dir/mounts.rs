//! Where a directory lies within its file system, whichever mount leads to it.
//!
//! A path says little where directories are mounted a second time (`mount --bind`): what tells is the file system, and
//! the path below its own root, which `/proc/self/mountinfo` has of each mount.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::Dir;

/// The mounts that this process sees.
#[derive(Debug, Default)]
pub struct Mounts(Vec<MountEntry>);

#[derive(Debug, PartialEq, Eq)]
struct MountEntry {
    id: u64,
    /// The file system, as a device's numbers.
    file_system: Vec<u8>,
    /// What of it is mounted.
    root: Vec<u8>,
    /// Where.
    point: Vec<u8>,
    /// What `root` says is so.
    tells_root: bool,
}

/// A directory of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceWithin {
    /// The file system: the same for all mounts of it, until this system is started anew.
    pub file_system: Vec<u8>,
    /// The path below its root; `/` for that itself.
    pub path: Vec<u8>,
}

impl Mounts {
    /// As they are now; none where the system does not tell.
    pub fn now() -> Self {
        std::fs::read("/proc/self/mountinfo").map_or_else(|_| Self::default(), |text| Self::parse(&text))
    }

    fn parse(text: &[u8]) -> Self {
        let lines = text.split(|byte| *byte == b'\n');
        let mount = |line: &[u8]| {
            // ID, parent, MAJOR:MINOR, root, mount point, and more.
            let mut fields = line.split(|byte| *byte == b' ');
            let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
            let file_system = fields.nth(1)?.to_vec();
            let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
            let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
            // Of what a mount of NFS leads to, the system tells no more than `/`, and all mounts of one server's file
            // system have one number.
            let tells_root = !matches!(kind, b"nfs" | b"nfs4");
            Some(MountEntry { id, file_system, root, point, tells_root })
        };
        Self(lines.filter_map(mount).collect())
    }

    /// Where a directory lies, and what else is mounted below it.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn place_of(&self, dir: &Dir) -> io::Result<(PlaceWithin, Vec<PlaceWithin>)> {
        let number = dir.fd.as_fd().as_raw_fd();
        let path = std::fs::read_link(format!("/proc/self/fd/{number}"))?;
        let told = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}"))?;
        let id = told.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
        let found = id.and_then(|id| self.place(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()), id));
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn place(&self, path: &[u8], id: u64) -> Option<(PlaceWithin, Vec<PlaceWithin>)> {
        let mount = self.0.iter().find(|mount| mount.id == id)?;
        let within = joined(&mount.root, below(path, &mount.point)?);
        if !mount.tells_root {
            return None;
        }
        let inside =
            |mount: &&MountEntry| mount.tells_root && below(&mount.point, path).is_some_and(|rest| !rest.is_empty());
        let place =
            |mount: &MountEntry| PlaceWithin { file_system: mount.file_system.clone(), path: mount.root.clone() };
        let others = self.0.iter().filter(inside).map(place).collect();
        Some((PlaceWithin { file_system: mount.file_system.clone(), path: within }, others))
    }
}

impl PlaceWithin {
    /// The directories that it lies in, the topmost first, and itself.
    pub fn above(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self.path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
        let own = (self.path.len() > 1).then_some(&self.path[..]);
        [&b"/"[..]].into_iter().chain(ends.map(|end| &self.path[..end])).chain(own)
    }
}

/// What follows of a path below a directory: empty for that itself, else it begins with a slash.
fn below<'a>(path: &'a [u8], directory: &[u8]) -> Option<&'a [u8]> {
    let directory = directory.strip_suffix(b"/").unwrap_or(directory);
    let rest = path.strip_prefix(directory)?;
    match rest {
        b"/" => Some(b""),
        rest => (rest.is_empty() || rest.starts_with(b"/")).then_some(rest),
    }
}

fn joined(root: &[u8], rest: &[u8]) -> Vec<u8> {
    match (root, rest) {
        (root, b"") => root.to_vec(),
        (b"/", rest) => rest.to_vec(),
        (root, rest) => [root, rest].concat(),
    }
}

/// Spaces and the like are three octal digits after a backslash.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [byte, after @ ..] = rest {
        match (byte, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', more @ ..]) => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = more;
            }
            _ => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"21 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
        30 21 0:25 / /proc rw - proc proc rw\n\
        40 21 254:0 /data/d/sub /out rw - ext4 /dev/vda rw\n\
        41 21 254:0 /data/a\\040b\\134c /mnt/x rw shared:1 - ext4 /dev/vda rw\n\
        42 21 7:1 / /data/d/disk rw - xfs /dev/loop1 rw\n\
        43 21 0:45 / /home/alice rw shared:2 master:3 - nfs4 filer:/ifs/home/alice rw\n\
        44 21 0:45 / /scratch/alice rw - nfs filer:/ifs/scratch/alice rw\n\n";

    #[test]
    fn places_are_the_same_through_any_mount() {
        let mounts = Mounts::parse(TEXT);
        let at = |path: &[u8], id| mounts.place(path, id).map(|(own, _)| own.path);
        assert_eq!(at(b"/", 21).unwrap(), b"/");
        assert_eq!(at(b"/data/d/sub/e", 21).unwrap(), b"/data/d/sub/e");
        assert_eq!(at(b"/out", 40).unwrap(), b"/data/d/sub");
        assert_eq!(at(b"/out/e", 40).unwrap(), b"/data/d/sub/e");
        assert_eq!(at(b"/mnt/x/f", 41).unwrap(), b"/data/a b\\c/f");
        assert_eq!(at(b"/data/d/disk/y", 42).unwrap(), b"/y");
        // Of a mount that is not there, and a path that is not in it.
        assert_eq!((at(b"/out", 99), at(b"/outer", 40)), (None, None));
        // Two exports of one server's file system look as if they were one directory.
        assert_eq!((at(b"/home/alice", 43), at(b"/scratch/alice/x", 44)), (None, None));
        let inside = mounts.place(b"/data/d", 21).unwrap().1;
        assert_eq!(inside, [PlaceWithin { file_system: b"7:1".to_vec(), path: b"/".to_vec() }]);
        assert_eq!(mounts.place(b"/", 21).unwrap().1.len(), 4);
        let place = PlaceWithin { file_system: Vec::new(), path: b"/data/d".to_vec() };
        assert_eq!(place.above().collect::<Vec<_>>(), [&b"/"[..], b"/data", b"/data/d"]);
        let top = PlaceWithin { path: b"/".to_vec(), ..place };
        assert_eq!(top.above().collect::<Vec<_>>(), [b"/"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn place_of_a_directory_that_is_open_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let mounts = Mounts::now();
        let own = mounts.place_of(&Dir::open_ambient(directory.path()).unwrap()).unwrap().0;
        std::fs::create_dir(directory.path().join("a b")).unwrap();
        let below = mounts.place_of(&Dir::open_ambient(&directory.path().join("a b")).unwrap()).unwrap().0;
        assert_eq!(below.file_system, own.file_system);
        assert_eq!(below.path, joined(&own.path, b"/a b"));
    }
}
