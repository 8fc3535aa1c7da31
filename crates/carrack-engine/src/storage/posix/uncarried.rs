//! What an item of a source has and a copy does not get: owner and group, set-user-id, set-group-id and sticky bits,
//! further names, access control lists, capabilities, extended attributes. None of it is read, only that it is there is
//! told, so that the report can count what was not kept.
//!
//! An owner is told where it is another user than this process runs as, a group where it is none of this process's; of
//! root's, only the effective one counts: whoever copies their own files loses nothing. Extended attributes that file
//! systems and security modules keep for themselves (Lustre's layout, SELinux labels, NFS access control lists, which
//! every file has) are left out.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use carrack_core::attributes::{Attribute, AttributeKind, KeptAttributes, OtherAttributes, OwnersTold};
use carrack_core::limits::ACCOUNT_NAME_BYTES;
use carrack_sys::dir::{self, Dir, Kind, Stat};
use carrack_sys::{accounts, host};

use crate::sync::lock;

/// Extended attributes that file systems and services keep for themselves: nobody has given them to the file.
const INTERNAL: [&[u8]; 17] = [
    b"trusted.lov",
    b"trusted.lma",
    b"trusted.lmv",
    b"trusted.link",
    b"trusted.fid",
    b"trusted.som",
    b"trusted.hsm",
    b"trusted.dmv",
    b"trusted.version",
    b"trusted.projid",
    b"trusted.overlay.",
    b"trusted.glusterfs.",
    b"trusted.gfid",
    b"trusted.afr.",
    b"trusted.SGI_",
    b"user.overlay.",
    b"user.fuseoverlayfs.",
];

/// Says what items of a source have that does not travel.
pub struct Uncarried {
    user: u32,
    groups: Vec<u32>,
    /// Of whom it tells.
    told: OwnersTold,
    names: AccountNames,
    /// A device whose file system has said that it keeps no extended attributes; no device's number to begin with.
    without: AtomicU64,
}

impl Default for Uncarried {
    fn default() -> Self {
        let (user, mut groups) = (host::user_id(), host::group_ids());
        // Root may give any group, and is in some by accident.
        groups.truncate(if user == 0 { 1 } else { groups.len() });
        let (told, names) = (OwnersTold::default(), AccountNames::default());
        Self { user, groups, told, names, without: AtomicU64::new(u64::MAX) }
    }
}

/// Names of users and groups, by their numbers.
#[derive(Default)]
struct AccountNames {
    users: Mutex<HashMap<u32, Vec<u8>>>,
    groups: Mutex<HashMap<u32, Vec<u8>>>,
}

/// The name of a number, asked for once, unless nobody could tell; empty where there is none.
fn name_of(known: &Mutex<HashMap<u32, Vec<u8>>>, id: u32, ask: fn(u32) -> io::Result<Option<Vec<u8>>>) -> Vec<u8> {
    if let Some(name) = lock(known).get(&id) {
        return name.clone();
    }
    let Ok(found) = ask(id) else { return Vec::new() };
    let name = found.filter(|name| name.len() <= ACCOUNT_NAME_BYTES).unwrap_or_default();
    lock(known).insert(id, name.clone());
    name
}

impl Uncarried {
    /// Tells of owners and groups so from now on.
    pub fn tell_owners(&mut self, told: OwnersTold) {
        self.told = told;
    }

    fn owner(&self, id: u32) -> Attribute {
        let name = || name_of(&self.names.users, id, accounts::user_name);
        Attribute::named(AttributeKind::OWNER, id, &if self.told.names && id != 0 { name() } else { Vec::new() })
    }

    fn group(&self, id: u32) -> Attribute {
        let name = || name_of(&self.names.groups, id, accounts::group_name);
        Attribute::named(AttributeKind::GROUP, id, &if self.told.names && id != 0 { name() } else { Vec::new() })
    }

    /// What stat shows.
    pub fn of_stat(&self, stat: &Stat) -> OtherAttributes {
        let mut list = Vec::new();
        // A program is given its bits with its owner alone.
        let KeptAttributes { owner, group, special_bits } = self.told.kept;
        let is_program = special_bits && stat.mode & 0o6000 != 0;
        if owner || is_program || stat.uid != self.user {
            list.push(self.owner(stat.uid));
        }
        if group || is_program || !self.groups.contains(&stat.gid) {
            list.push(self.group(stat.gid));
        }
        if stat.kind != Kind::Symlink && stat.mode & 0o7000 != 0 {
            list.push(Attribute::special_bits(stat.mode));
        }
        if stat.kind == Kind::File && stat.links > 1 {
            list.push(Attribute::present(AttributeKind::HARD_LINK));
        }
        checked(list)
    }

    /// What stat shows, and the extended attributes of the open file.
    pub fn of_file(&self, stat: &Stat, file: &std::fs::File) -> OtherAttributes {
        self.with(stat, |each| dir::extended_attributes(file, each))
    }

    /// The same of a file or directory that is not open.
    pub fn of_entry(&self, stat: &Stat, directory: &Dir, name: &[u8]) -> OtherAttributes {
        self.with(stat, |each| directory.extended_attributes(name, each))
    }

    /// The same of an open directory.
    pub fn of_directory(&self, stat: &Stat, directory: &Dir) -> OtherAttributes {
        self.with(stat, |each| dir::extended_attributes(directory, each))
    }

    fn with(&self, stat: &Stat, names: impl FnOnce(&mut dyn FnMut(&[u8])) -> io::Result<()>) -> OtherAttributes {
        let shown = self.of_stat(stat);
        if self.without.load(Ordering::Relaxed) == stat.device {
            return shown;
        }
        let mut found = [false; 3];
        let listed = names(&mut |name| {
            if let Some(kind) = kind_of(name) {
                found[usize::from(kind.0 - AttributeKind::ACL.0)] = true;
            }
        });
        match listed {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                self.without.store(stat.device, Ordering::Relaxed);
            }
            // What cannot be listed is not told; the copy itself does not need it.
            Err(_) | Ok(()) => {}
        }
        if found == [false; 3] {
            return shown;
        }
        let kinds = [AttributeKind::ACL, AttributeKind::CAPABILITIES, AttributeKind::EXTENDED];
        let present = kinds.into_iter().zip(found).filter(|(_, is_there)| *is_there);
        checked(shown.iter().cloned().chain(present.map(|(kind, _)| Attribute::present(kind))).collect())
    }
}

/// They are few, short and in the order of their kinds.
fn checked(list: Vec<Attribute>) -> OtherAttributes {
    OtherAttributes::new(list).unwrap_or_default()
}

/// The kind that an extended attribute of this name counts as; `None` where it is no property of the file that
/// somebody has given to it.
fn kind_of(name: &[u8]) -> Option<AttributeKind> {
    match name {
        b"system.posix_acl_access" | b"system.posix_acl_default" => Some(AttributeKind::ACL),
        b"security.capability" => Some(AttributeKind::CAPABILITIES),
        _ if INTERNAL.iter().any(|internal| name.starts_with(internal)) => None,
        _ if name.starts_with(b"user.") || name.starts_with(b"trusted.") => Some(AttributeKind::EXTENDED),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use carrack_sys::dir::stat_path;

    use super::*;

    fn kinds(attributes: &OtherAttributes) -> Vec<u16> {
        attributes.kinds().map(|kind| kind.0).collect()
    }

    #[test]
    fn extended_attributes_count_as_what_their_names_say() {
        for (name, kind) in [
            (&b"system.posix_acl_access"[..], Some(5)),
            (b"system.posix_acl_default", Some(5)),
            (b"security.capability", Some(6)),
            (b"user.note", Some(7)),
            (b"trusted.note", Some(7)),
            (b"user.", Some(7)),
            (b"security.selinux", None),
            (b"security.ima", None),
            (b"system.nfs4_acl", None),
            (b"trusted.lov", None),
            (b"lustre.lov", None),
            (b"trusted.overlay.opaque", None),
            (b"trusted.SGI_ACL_FILE", None),
            (b"btrfs.compression", None),
            (b"", None),
        ] {
            assert_eq!(kind_of(name).map(|kind| kind.0), kind, "{}", name.escape_ascii());
        }
    }

    #[test]
    fn stat_shows_what_others_own_special_bits_and_further_names() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        std::fs::write(&path, b"").unwrap();
        // Of a user who is not root, whoever runs this.
        let own = Stat { mode: 0o644, uid: 4321, ..stat_path(&path, true).unwrap() };
        let mut someone = Uncarried { user: own.uid, groups: vec![7, own.gid], ..Uncarried::default() };
        assert!(someone.of_stat(&own).is_empty(), "one's own file has nothing that is lost");
        let others = Stat { uid: own.uid + 1, gid: own.gid + 1, mode: 0o6644, links: 2, ..own };
        assert_eq!(kinds(&someone.of_stat(&others)), [1, 2, 3, 4]);
        assert_eq!(kinds(&someone.of_stat(&Stat { gid: 7, ..others })), [1, 3, 4]);
        let telling = |owner, group, special_bits, names| OwnersTold {
            kept: KeptAttributes { owner, group, special_bits },
            names,
        };
        someone.tell_owners(telling(true, true, false, false));
        assert_eq!(kinds(&someone.of_stat(&own)), [1, 2], "where they are kept, all are told");
        someone.tell_owners(telling(false, true, true, false));
        assert_eq!(kinds(&someone.of_stat(&own)), [2], "what nobody keeps is not lost");
        assert_eq!(kinds(&someone.of_stat(&Stat { mode: 0o4755, ..own })), [1, 2, 3], "a program needs its owner");
        let root = Stat { uid: 0, gid: 0, ..own };
        someone.tell_owners(telling(true, true, false, true));
        let daemon = accounts::user_of(b"daemon").unwrap().unwrap();
        let named = someone.of_stat(&Stat { uid: daemon, ..root });
        assert_eq!(named.iter().next().and_then(Attribute::as_account), Some((daemon, &b"daemon"[..])));
        assert_eq!(someone.of_stat(&root).iter().next().and_then(Attribute::as_account), Some((0, &b""[..])));
        someone.tell_owners(OwnersTold::default());
        // A directory has as many names as it has directories below it.
        assert_eq!(kinds(&someone.of_stat(&Stat { kind: Kind::Dir, ..others })), [1, 2, 3]);
        assert_eq!(kinds(&someone.of_stat(&Stat { kind: Kind::Symlink, mode: 0o7777, ..others })), [1, 2]);
    }

    #[test]
    fn file_system_that_keeps_no_extended_attributes_is_asked_once() {
        let place = tempfile::tempdir().unwrap();
        let stat = stat_path(place.path(), true).unwrap();
        let (uncarried, mut asked) = (Uncarried::default(), 0);
        for (answer, expected) in [(io::ErrorKind::PermissionDenied, 1), (io::ErrorKind::Unsupported, 2)] {
            uncarried.with(&stat, |_| {
                asked += 1;
                Err(answer.into())
            });
            assert_eq!(asked, expected);
        }
        uncarried.with(&stat, |_| panic!("it has said that there are none"));
        let elsewhere = Stat { device: stat.device + 1, ..stat };
        let found = uncarried.with(&elsewhere, |each| {
            ["user.a", "security.capability", "user.b"].into_iter().for_each(|name| each(name.as_bytes()));
            Ok(())
        });
        assert_eq!(kinds(&found).iter().filter(|kind| **kind > 4).collect::<Vec<_>>(), [&6, &7]);
    }
}
