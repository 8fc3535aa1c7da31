//! What a source tells of its items beside content, permissions and times: owner and group, set-user-id, set-group-id
//! and sticky bits, further names, access control lists, capabilities, extended attributes. Of what nobody keeps only
//! that it is there is told, so that the report can count what was not kept.
//!
//! An owner is told where it is another user than this process runs as, a group where it is none of this process's; of
//! root's, only the effective one counts: whoever copies their own files loses nothing. Extended attributes that file
//! systems and security modules keep for themselves (Lustre's layout, SELinux labels, NFS access control lists, which
//! every file has) are left out.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use carrack_core::attributes::{Attribute, AttributeKind, AttributesTold, KeptAttributes, OtherAttributes, Who};
use carrack_core::limits::ACCOUNT_NAME_BYTES;
use carrack_sys::dir::{Kind, Stat};
use carrack_sys::{accounts, host};

use super::extended::{self, Holder, left_beside};
use super::faked::shown;
use super::times::time_of;
use crate::sync::lock;

/// Says what items of a source have.
pub struct Telling {
    user: u32,
    groups: Vec<u32>,
    /// Of whom it tells.
    told: AttributesTold,
    names: AccountNames,
    /// A device whose file system has said that it keeps no extended attributes; no device's number to begin with.
    without: AtomicU64,
    /// What stat has shown of the item before: the next one has mostly the same.
    last: Mutex<(SeenByStat, OtherAttributes)>,
}

/// All that is told by what stat shows, but for times.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct SeenByStat {
    owner: Option<u32>,
    group: Option<u32>,
    special_bits: u32,
    has_more_names: bool,
    is_flagged: bool,
}

impl Default for Telling {
    fn default() -> Self {
        let (user, mut groups) = (host::user_id(), host::group_ids());
        // Root may give any group, and is in some by accident.
        groups.truncate(if user == 0 { 1 } else { groups.len() });
        let (told, names) = (AttributesTold::default(), AccountNames::default());
        Self { user, groups, told, names, without: AtomicU64::new(u64::MAX), last: Mutex::default() }
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

impl Telling {
    /// Tells so from now on.
    pub fn tell_attributes(&mut self, told: AttributesTold) {
        self.told = told;
        self.last = Mutex::default();
    }

    /// Whether what is written down beside items counts as what they are.
    pub fn is_faked(&self) -> bool {
        self.told.faked
    }

    /// What an item of the source counts as.
    pub fn shown(&self, stat: Stat, holder: Holder<'_>) -> Stat {
        if self.told.faked { shown(stat, holder) } else { stat }
    }

    /// Whether what is read is to be as if it had not been.
    pub fn keeps_access_times(&self) -> bool {
        self.told.kept.access_times
    }

    /// Whether what only extended attributes show is told of every item that is found.
    pub fn lists_all(&self) -> bool {
        self.told.at_once && self.told.kept.are_listed()
    }

    /// The name of a user or a group, where it is told.
    fn name(&self, who: Who) -> Vec<u8> {
        match who {
            Who::User(id) if self.told.names && id != 0 => name_of(&self.names.users, id, accounts::user_name),
            Who::GroupOf(id) if self.told.names && id != 0 => name_of(&self.names.groups, id, accounts::group_name),
            _ => Vec::new(),
        }
    }

    /// Whom an entry of a list is about, as it is told.
    fn as_told(&self, who: Who) -> (Who, Vec<u8>) {
        let hidden = |id| if self.told.hides_names && id != 0 { OtherAttributes::NO_NUMBER } else { id };
        let told = match who {
            Who::User(id) => Who::User(hidden(id)),
            Who::GroupOf(id) => Who::GroupOf(hidden(id)),
            who => who,
        };
        (told, self.name(who))
    }

    fn owner(&self, id: u32) -> Attribute {
        Attribute::named(AttributeKind::OWNER, id, &self.name(Who::User(id)))
    }

    fn group(&self, id: u32) -> Attribute {
        Attribute::named(AttributeKind::GROUP, id, &self.name(Who::GroupOf(id)))
    }

    /// What stat shows.
    pub fn of_stat(&self, stat: &Stat) -> OtherAttributes {
        // A program is given its bits with its owner alone.
        let KeptAttributes { owner, group, special_bits, hard_links, access_times, .. } = self.told.kept;
        let is_program = special_bits && stat.mode & 0o6000 != 0;
        let shown = SeenByStat {
            owner: (owner || is_program || stat.uid != self.user).then_some(stat.uid),
            group: (group || is_program || !self.groups.contains(&stat.gid)).then_some(stat.gid),
            special_bits: if stat.kind == Kind::Symlink { 0 } else { stat.mode & 0o7000 },
            has_more_names: stat.kind == Kind::File && stat.links > 1 && !hard_links,
            is_flagged: stat.is_flagged,
        };
        if access_times && stat.kind != Kind::Dir {
            return self.of_shown(shown, Some(Attribute::access_time(time_of(stat.atime))));
        }
        // Nothing to share.
        if shown == SeenByStat::default() {
            return OtherAttributes::default();
        }
        if let (last, told) = &*lock(&self.last)
            && *last == shown
        {
            return told.clone();
        }
        // Not under the lock: a directory service may be slow. What it cannot tell is asked for again.
        let told = self.of_shown(shown, None);
        let is_nameless = |one: &Attribute| one.as_account().is_some_and(|(id, name)| id != 0 && name.is_empty());
        if !self.told.names || !told.iter().any(is_nameless) {
            *lock(&self.last) = (shown, told.clone());
        }
        told
    }

    fn of_shown(&self, shown: SeenByStat, access_time: Option<Attribute>) -> OtherAttributes {
        let special_bits = (shown.special_bits != 0).then(|| Attribute::special_bits(shown.special_bits));
        let present = |is: bool, kind| is.then(|| Attribute::present(kind));
        let list = [
            shown.owner.map(|owner| self.owner(owner)),
            shown.group.map(|group| self.group(group)),
            special_bits,
            present(shown.has_more_names, AttributeKind::HARD_LINK),
            access_time,
            present(shown.is_flagged, AttributeKind::INODE_FLAGS),
        ];
        checked(list.into_iter().flatten().collect())
    }

    /// What stat shows, and the extended attributes of an item; of a link it has none that are told.
    pub fn of(&self, stat: &Stat, holder: Holder<'_>) -> OtherAttributes {
        self.with(stat, |left| extended::read(holder, self.told.kept, left, &|who| self.as_told(who)))
    }

    fn with(&self, stat: &Stat, read: impl FnOnce(usize) -> io::Result<Vec<Attribute>>) -> OtherAttributes {
        let shown = self.of_stat(stat);
        if self.without.load(Ordering::Relaxed) == stat.device {
            return shown;
        }
        let found = match read(left_beside(&shown)) {
            Ok(found) if found.is_empty() => return shown,
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                self.without.store(stat.device, Ordering::Relaxed);
                return shown;
            }
            Err(_) => return self.of_unreadable(stat),
        };
        checked(shown.iter().cloned().chain(found).collect())
    }

    /// What stat shows of an item of which nothing else can be read. What is kept, and may be there, does not travel.
    pub fn of_unreadable(&self, stat: &Stat) -> OtherAttributes {
        let KeptAttributes { acls, capabilities, .. } = self.told.kept;
        let kinds = [
            (acls, AttributeKind::ACL),
            (capabilities, AttributeKind::CAPABILITIES),
            (self.told.kept.has_xattrs(), AttributeKind::EXTENDED),
        ];
        let unknown = kinds.into_iter().filter(|kind| kind.0).map(|kind| Attribute::present(kind.1));
        checked(self.of_stat(stat).iter().cloned().chain(unknown).collect())
    }
}

/// They are few and short enough.
fn checked(mut list: Vec<Attribute>) -> OtherAttributes {
    list.sort_unstable_by_key(|one| one.kind);
    OtherAttributes::new(list).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use carrack_sys::dir::stat_path;

    use super::*;

    fn kinds(attributes: &OtherAttributes) -> Vec<u16> {
        attributes.kinds().map(|kind| kind.0).collect()
    }

    #[test]
    fn stat_shows_what_others_own_special_bits_and_further_names() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        std::fs::write(&path, b"").unwrap();
        // Of a user who is not root, whoever runs this.
        let own = Stat { mode: 0o644, uid: 4321, ..stat_path(&path, true).unwrap() };
        let mut someone = Telling { user: own.uid, groups: vec![7, own.gid], ..Telling::default() };
        assert!(someone.of_stat(&own).is_empty(), "one's own file has nothing that is lost");
        let others = Stat { uid: own.uid + 1, gid: own.gid + 1, mode: 0o6644, links: 2, ..own };
        assert_eq!(kinds(&someone.of_stat(&others)), [1, 2, 3, 4]);
        assert_eq!(kinds(&someone.of_stat(&Stat { gid: 7, ..others })), [1, 3, 4]);
        let telling = |owner, group, special_bits, names| AttributesTold {
            kept: KeptAttributes { owner, group, special_bits, ..KeptAttributes::NONE },
            names,
            at_once: false,
            hides_names: false,
            faked: false,
        };
        someone.tell_attributes(telling(true, true, false, false));
        assert_eq!(kinds(&someone.of_stat(&own)), [1, 2], "where they are kept, all are told");
        someone.tell_attributes(telling(false, true, true, false));
        assert_eq!(kinds(&someone.of_stat(&own)), [2], "what nobody keeps is not lost");
        assert_eq!(kinds(&someone.of_stat(&Stat { mode: 0o4755, ..own })), [1, 2, 3], "a program needs its owner");
        let root = Stat { uid: 0, gid: 0, ..own };
        someone.tell_attributes(telling(true, true, false, true));
        let daemon = accounts::user_of(b"daemon").unwrap().unwrap();
        let named = someone.of_stat(&Stat { uid: daemon, ..root });
        assert_eq!(named.iter().next().and_then(Attribute::as_account), Some((daemon, &b"daemon"[..])));
        assert_eq!(someone.of_stat(&root).iter().next().and_then(Attribute::as_account), Some((0, &b""[..])));
        someone.tell_attributes(AttributesTold::default());
        // A directory has as many names as it has directories below it.
        assert_eq!(kinds(&someone.of_stat(&Stat { kind: Kind::Dir, ..others })), [1, 2, 3]);
        assert_eq!(kinds(&someone.of_stat(&Stat { kind: Kind::Symlink, mode: 0o7777, ..others })), [1, 2]);
    }

    #[test]
    fn file_system_that_keeps_no_extended_attributes_is_asked_once() {
        let place = tempfile::tempdir().unwrap();
        let stat = stat_path(place.path(), true).unwrap();
        let (mut telling, mut asked) = (Telling::default(), 0);
        telling.tell_attributes(AttributesTold { kept: KeptAttributes::ALL, ..AttributesTold::default() });
        let kinds_of =
            |told: &OtherAttributes| -> Vec<u16> { kinds(told).into_iter().filter(|kind| *kind > 4).collect() };
        for (answer, expected, told) in
            [(io::ErrorKind::PermissionDenied, 1, &[5, 6, 7][..]), (io::ErrorKind::Unsupported, 2, &[])]
        {
            let found = telling.with(&stat, |_| {
                asked += 1;
                Err(answer.into())
            });
            assert_eq!((asked, &kinds_of(&found)[..]), (expected, told), "what is not known is not kept");
        }
        telling.with(&stat, |_| panic!("it has said that there are none"));
        let elsewhere = Stat { device: stat.device + 1, ..stat };
        let found = telling.with(&elsewhere, |_| Ok(vec![Attribute::present(AttributeKind::EXTENDED)]));
        assert_eq!(kinds_of(&found), [7]);
    }
}
