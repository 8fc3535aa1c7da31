//! Giving items the owner, group and permissions that they are to have.

use std::fs::File;
use std::io;
use std::sync::OnceLock;

use carrack_core::attributes::nfs4::{self, NFS4_ACL};
use carrack_core::attributes::{AttributeKind, CopyFacts, ExtendedAttributes, Lacks, OtherAttributes};
use carrack_sys::dir::{self, Dir, HeldEntry, Stat};
use carrack_sys::{file, host};

use super::extended::{self, ACCESS, CAPABILITIES, DEFAULT, Holder, if_kept, left_beside, of_bits, to_kernel};
use super::unkept::if_it_can;
use crate::storage::giving::{Giving, MODE_MASK};

/// What gets something.
#[derive(Clone, Copy)]
pub enum Getting<'a> {
    /// An open file.
    File(&'a File),
    /// A symbolic link in a directory.
    Link(&'a Dir, &'a [u8]),
    /// A FIFO, a socket or a device, which is not opened.
    Special(&'a HeldEntry),
    /// An open directory.
    Directory(&'a Dir),
}

impl<'a> Getting<'a> {
    /// Whose extended attributes are read and set; those of links are not.
    pub(super) fn holder(self) -> Option<Holder<'a>> {
        match self {
            Self::File(file) => Some(Holder::File(file)),
            Self::Link(..) => None,
            Self::Special(held) => Some(Holder::Held(held)),
            Self::Directory(dir) => Some(Holder::Directory(dir)),
        }
    }

    pub(super) fn set_extended(self, name: &[u8], value: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => dir::set_extended_attribute(file, name, value),
            Self::Link(..) => Ok(()),
            Self::Special(held) => held.set_extended_attribute(name, value),
            Self::Directory(dir) => dir::set_extended_attribute(dir, name, value),
        }
    }

    pub(super) fn remove_extended(self, name: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => dir::remove_extended_attribute(file, name),
            Self::Link(..) => Ok(()),
            Self::Special(held) => held.remove_extended_attribute(name),
            Self::Directory(dir) => dir::remove_extended_attribute(dir, name),
        }
    }

    pub(super) fn stat(self) -> io::Result<Stat> {
        match self {
            Self::File(file) => dir::stat_file(file),
            Self::Link(dir, name) => dir.stat_at(name),
            Self::Special(held) => held.stat(),
            Self::Directory(dir) => dir.stat_self(),
        }
    }

    fn set_owner(self, owner: Option<u32>, group: Option<u32>) -> io::Result<()> {
        match self {
            Self::File(file) => dir::set_owner(file, owner, group),
            Self::Link(dir, name) => dir.set_link_owner(name, owner, group),
            Self::Special(held) => held.set_owner(owner, group),
            Self::Directory(dir) => dir.set_own_owner(owner, group),
        }
    }

    fn set_mode(self, mode: u32) -> io::Result<()> {
        match self {
            Self::File(file) => file::set_mode(file, mode),
            // It has none.
            Self::Link(..) => Ok(()),
            Self::Special(held) => held.set_mode(mode),
            Self::Directory(dir) => dir.set_own_mode(mode),
        }
    }
}

/// What is shown of an item that every file system shows.
pub fn facts_of(stat: &Stat) -> CopyFacts {
    CopyFacts { owner: stat.uid, group: stat.gid, mode: stat.mode & 0o7777 }
}

/// What an item is that gets extended attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GettingState {
    /// New: it has none.
    Fresh,
    /// It may have some. What it holds has come just now.
    Whole,
    /// It may have some. What it holds has not been looked at.
    Unread,
}

/// How an item came to be that is given all that it is to have.
#[derive(Clone, Copy)]
pub enum Beginning<'a> {
    /// It was there, and has been written over in place.
    Standing,
    /// It is new.
    New,
    /// It is a new file of a directory in which all have the same to begin with.
    NewIn(&'a Born),
}

/// What new files of a directory have to begin with, as the first one has shown. All others are believed to have the
/// same: only where nobody but this process can change the directory.
#[derive(Default)]
pub struct Born(OnceLock<Option<BornWith>>);

/// The owner and the group of a file that has no access control list.
#[derive(Clone, Copy)]
struct BornWith {
    owner: u32,
    group: u32,
}

impl Born {
    /// What this new file has; `None` where each has to be asked.
    fn with(&self, file: Getting<'_>) -> io::Result<Option<BornWith>> {
        if let Some(known) = self.0.get() {
            return Ok(*known);
        }
        let stat = file.stat()?;
        let has_none = file.holder().is_some_and(|holder| matches!(holder.value(ACCESS), Ok(None)));
        let found = has_none.then_some(BornWith { owner: stat.uid, group: stat.gid });
        Ok(*self.0.get_or_init(|| found))
    }
}

/// What a new item has been given.
#[derive(Clone, Copy, Debug)]
pub struct GivenAttributes {
    /// The system let its permissions be set, and its time where that has been given.
    pub mode_and_time: bool,
    /// It has all else that it is to have.
    pub others: bool,
}

impl Giving {
    /// Gives owner and group, as far as they are kept and it has others; which of the two it has by that.
    ///
    /// # Errors
    /// Those of the system but refusals.
    pub fn give_owners(&self, getting: Getting<'_>, others: &OtherAttributes) -> io::Result<(bool, bool)> {
        self.give_owners_to(getting, others, None)
    }

    fn give_owners_to(
        &self,
        getting: Getting<'_>,
        others: &OtherAttributes,
        born: Option<BornWith>,
    ) -> io::Result<(bool, bool)> {
        let (owner, group) = self.owners(others);
        if self.fakes() || owner.is_none() && group.is_none() {
            return Ok((false, false));
        }
        let now =
            born.map_or_else(|| getting.stat().map(|now| (now.uid, now.gid)), |born| Ok((born.owner, born.group)));
        let now = now?;
        if (owner.unwrap_or(now.0), group.unwrap_or(now.1)) == now {
            return Ok((owner.is_some(), group.is_some()));
        }
        let set = |owner, group| match getting.set_owner(owner, group) {
            // A number that this system does not have, in a container; and an owner who has no room left.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::QuotaExceeded) => {
                Ok(false)
            }
            set => if_it_can(set),
        };
        if set(owner, group)? {
            return Ok((owner.is_some(), group.is_some()));
        }
        // A group may be given where an owner may not.
        let has_group = owner.is_some() && group.is_some() && set(None, group)?;
        Ok((false, has_group))
    }

    /// Gives something new all that it is to have but its time. The owner comes before the permissions, and takes bits
    /// of them away; the permissions and the access control list come last: until then nobody else has any. What was
    /// there before, and is written in place, is not new.
    ///
    /// # Errors
    /// Those of the system but refusals, which it says.
    pub fn give_new(
        &self,
        getting: Getting<'_>,
        mode: u32,
        others: &OtherAttributes,
        beginning: Beginning<'_>,
    ) -> io::Result<GivenAttributes> {
        let stands = match beginning {
            Beginning::Standing => GettingState::Whole,
            Beginning::New | Beginning::NewIn(_) => GettingState::Fresh,
        };
        if self.fakes() {
            return self.give_faked(getting, mode, others, stands);
        }
        let born = match beginning {
            Beginning::NewIn(born) if self.kept().acls || self.owners(others) != (None, None) => born.with(getting)?,
            _ => None,
        };
        let (owner, group) = self.give_owners_to(getting, others, born)?;
        let (capabilities, xattrs) = self.give_extended(getting, others, stands)?;
        let special = mode & 0o7000 != 0 && self.gives_special_bits();
        let mode = if special { self.mode(mode, others, &facts_of(&getting.stat()?)) } else { mode & MODE_MASK };
        let (has_mode, acl) = self.give_mode_to(getting, mode, others, born)?;
        let is_given = |kind| match kind {
            AttributeKind::OWNER => owner,
            AttributeKind::GROUP => group,
            AttributeKind::ACL | AttributeKind::NFS4_ACL => acl,
            AttributeKind::CAPABILITIES => capabilities,
            AttributeKind::EXTENDED => xattrs,
            _ => false,
        };
        Ok(GivenAttributes { mode_and_time: has_mode, others: others.kinds().all(is_given) })
    }

    /// Gives owner, group, permissions and all else that is kept to something that was there, as far as it has others.
    /// `had` are the permissions that count as its own.
    ///
    /// # Errors
    /// Those of the system but refusals.
    pub fn give(&self, getting: Getting<'_>, mode: u32, others: &OtherAttributes, had: u32) -> io::Result<()> {
        if self.fakes() {
            return self.give_faked(getting, mode, others, GettingState::Whole).map(|_| ());
        }
        let before = CopyFacts { mode: had, ..facts_of(&getting.stat()?) };
        let is_directory = matches!(getting, Getting::Directory(_));
        let wanted = self.wanted(mode, others, &before, is_directory);
        let mut stands = before;
        if (wanted.owner, wanted.group) != (before.owner, before.group) {
            shut(getting, mode, wanted.owner != before.owner)?;
            self.give_owners(getting, others)?;
            stands = facts_of(&getting.stat()?);
        }
        if matches!(getting, Getting::Link(..)) {
            return Ok(());
        }
        self.let_owner_write(getting, others, &stands)?;
        self.give_extended(getting, others, GettingState::Unread)?;
        // Another owner takes special bits away, and what was refused is not there.
        let now = facts_of(&getting.stat()?);
        let mode = self.mode_with(mode, others, &before, (now.owner, now.group), is_directory);
        if mode != now.mode || self.kept().acls {
            self.give_mode(getting, mode, others)?;
        }
        Ok(())
    }

    /// On one's own file that is read-only, extended attributes can be set only while it is not.
    fn let_owner_write(&self, getting: Getting<'_>, others: &OtherAttributes, now: &CopyFacts) -> io::Result<()> {
        let Some(holder) = getting.holder().filter(|_| now.mode & 0o200 == 0 && self.kept().has_xattrs()) else {
            return Ok(());
        };
        if now.owner == host::user_id() && now.owner != 0 && self.lacks(holder, others).is_ok_and(|lacks| lacks.xattrs)
        {
            if_it_can(getting.set_mode(now.mode | 0o200))?;
        }
        Ok(())
    }

    /// Gives capabilities and extended attributes, and takes those away that are not to be there; whether it has all of
    /// each by that. Of what is not known of the source nothing is changed.
    pub(super) fn give_extended(
        &self,
        getting: Getting<'_>,
        others: &OtherAttributes,
        stands: GettingState,
    ) -> io::Result<(bool, bool)> {
        let (kept, Some(holder)) = (self.kept(), getting.holder()) else { return Ok((false, false)) };
        let (mut has_capabilities, mut has_xattrs) = (false, false);
        if kept.capabilities {
            match others.of_kind(AttributeKind::CAPABILITIES) {
                // What it holds has not been looked at: it keeps what it has.
                Some(_) if stands == GettingState::Unread => {}
                Some(told) if told.travels() => {
                    has_capabilities = if_kept(getting.set_extended(CAPABILITIES, &told.value))?;
                }
                None if stands != GettingState::Fresh && holder.may_have(CAPABILITIES) => {
                    if_kept(getting.remove_extended(CAPABILITIES))?;
                }
                _ => {}
            }
        }
        if kept.has_xattrs()
            && let Some(wanted) = others.extended()
        {
            has_xattrs = !wanted.are_cut && !wanted.has_others;
            let is_fresh = stands == GettingState::Fresh;
            let there = if is_fresh { Vec::new() } else { holder.kept_names(kept).unwrap_or_default() };
            let has_to_stay = |name: &[u8]| wanted.are_cut || ExtendedAttributes::is_label(name);
            let is_wanted = |name: &[u8]| has_to_stay(name) || wanted.values.iter().any(|(wanted, _)| wanted == name);
            for name in there.iter().filter(|name| !is_wanted(name)) {
                if_kept(getting.remove_extended(name))?;
            }
            for (name, value) in wanted.values.iter().filter(|(name, _)| ExtendedAttributes::is_kept(name, kept)) {
                let has = there.contains(name) && holder.value(name).is_ok_and(|now| now.as_ref() == Some(value));
                has_xattrs &= has || if_kept(getting.set_extended(name, value))?;
            }
            has_xattrs &= wanted.values.iter().all(|(name, _)| ExtendedAttributes::is_kept(name, kept));
        }
        Ok((has_capabilities, has_xattrs))
    }

    /// Gives permissions, and with them the access control lists of the source and no others; whether it has both by
    /// that. Where a list cannot be set the permissions let nobody do more than it does.
    pub(super) fn give_mode(
        &self,
        getting: Getting<'_>,
        mode: u32,
        others: &OtherAttributes,
    ) -> io::Result<(bool, bool)> {
        self.give_mode_to(getting, mode, others, None)
    }

    fn give_mode_to(
        &self,
        getting: Getting<'_>,
        mode: u32,
        others: &OtherAttributes,
        born: Option<BornWith>,
    ) -> io::Result<(bool, bool)> {
        let Some(holder) = getting.holder().filter(|_| self.kept().acls) else {
            return Ok((if_it_can(getting.set_mode(mode))?, false));
        };
        let Some(lists) = others.access_lists() else {
            // Nobody knows whom the source denies what; the bits of its group may be more than that has.
            let mode = self.mode_without(mode, others, Lacks::default());
            let is_set = holder.may_have(ACCESS) && if_kept(getting.set_extended(ACCESS, &of_bits(mode)))?;
            let has_mode = is_set && facts_of(&getting.stat()?).mode == mode;
            return Ok((has_mode || if_it_can(getting.set_mode(mode))?, false));
        };
        let there = born.map_or_else(|| holder.value(ACCESS), |_| Ok(None));
        let is_unsupported = there.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Unsupported);
        let is_nfs4 = others.has(AttributeKind::NFS4_ACL);
        if is_unsupported || is_nfs4 && holder.can_have(NFS4_ACL) {
            return self.give_nfs4(getting, holder, mode, others);
        }
        let mode = if is_nfs4 { self.mode_without(mode, others, Lacks::NO_ACLS) } else { mode };
        let (mut mode, mut has_lists, mut is_set) = (mode, !is_nfs4, false);
        if !lists.access.is_empty() {
            is_set = if_kept(getting.set_extended(ACCESS, &to_kernel(&lists.access)))?;
            has_lists &= is_set;
            mode = if is_set { mode } else { lists.narrowed(mode) };
        }
        // One that was inherited, or is the old one.
        if !is_set && there.map_or(true, |there| there.is_some()) {
            is_set = if_kept(getting.set_extended(ACCESS, &of_bits(mode)))?;
        }
        if matches!(getting, Getting::Directory(_)) {
            if !lists.default.is_empty() {
                has_lists &= if_kept(getting.set_extended(DEFAULT, &to_kernel(&lists.default)))?;
            } else if holder.may_have(DEFAULT) {
                if_kept(getting.remove_extended(DEFAULT))?;
            }
        }
        let has_mode = is_set && facts_of(&getting.stat()?).mode == mode;
        Ok((has_mode || if_it_can(getting.set_mode(mode))?, has_lists))
    }

    /// The same where there are no POSIX lists, or the source has one of NFS version 4. Setting permissions changes
    /// such a list, and setting it the permissions.
    fn give_nfs4(
        &self,
        getting: Getting<'_>,
        holder: Holder<'_>,
        mode: u32,
        others: &OtherAttributes,
    ) -> io::Result<(bool, bool)> {
        let is_directory = matches!(getting, Getting::Directory(_));
        let wanted = others.of_kind(AttributeKind::NFS4_ACL);
        let list = match wanted.filter(|_| !others.has(AttributeKind::ACL)) {
            Some(told) if told.travels() => Some(told.value.to_vec()),
            Some(_) => None,
            None => {
                let there = holder.value(NFS4_ACL).unwrap_or_default();
                there.filter(|there| !nfs4::is_trivial(there)).map(|_| nfs4::of_bits(mode, is_directory))
            }
        };
        let is_set = list.as_ref().map_or(Ok(false), |list| if_kept(getting.set_extended(NFS4_ACL, list)))?;
        let Some(list) = list.filter(|_| is_set) else {
            let mode = self.mode_without(mode, others, Lacks::NO_ACLS);
            return Ok((if_it_can(getting.set_mode(mode))?, others.kinds().all(|kind| !kind.is_access_list())));
        };
        let has_mode = facts_of(&getting.stat()?).mode == mode || if_it_can(getting.set_mode(mode))?;
        let is_there = holder.value(NFS4_ACL)?.as_ref() == Some(&list);
        let has_list = is_there || if_kept(getting.set_extended(NFS4_ACL, &list))?;
        Ok((has_mode, has_list && !others.has(AttributeKind::ACL)))
    }

    /// What an item has of what only its extended attributes show and what is kept; nothing of it where that cannot be
    /// read.
    pub fn listed(&self, holder: Holder<'_>) -> OtherAttributes {
        self.read(holder).unwrap_or_default()
    }

    fn read(&self, holder: Holder<'_>) -> io::Result<OtherAttributes> {
        let kept = self.kept();
        if !kept.are_listed() {
            return Ok(OtherAttributes::default());
        }
        let list = extended::read(holder, kept, left_beside(&OtherAttributes::default()), &|who| (who, Vec::new()))?;
        Ok(OtherAttributes::new(list).unwrap_or_default())
    }

    /// The same, where something of it is to be there.
    pub fn listed_of(&self, holder: Holder<'_>, wanted: &OtherAttributes) -> OtherAttributes {
        let lists = [AttributeKind::ACL, AttributeKind::NFS4_ACL];
        let kinds = [lists[0], lists[1], AttributeKind::CAPABILITIES, AttributeKind::EXTENDED];
        let is_wanted = wanted.kinds().any(|kind| kinds.contains(&kind));
        if is_wanted { self.listed(holder) } else { OtherAttributes::default() }
    }

    /// What an item lacks of that. What its file system cannot have at all does not count: it would be tried each time.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn lacks(&self, holder: Holder<'_>, wanted: &OtherAttributes) -> io::Result<Lacks> {
        let lacks = match self.read(holder) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => OtherAttributes::default(),
            read => read?,
        };
        let lacks = lacks.lacks(wanted, self.kept());
        let can_have = || match (wanted.of_kind(AttributeKind::NFS4_ACL), wanted.of_kind(AttributeKind::ACL)) {
            (Some(_), _) => holder.can_have(NFS4_ACL),
            (None, Some(_)) => holder.can_have(ACCESS),
            (None, None) => holder.can_have(ACCESS) || holder.can_have(NFS4_ACL),
        };
        let no_acls = lacks.acl && !can_have();
        Ok(Lacks {
            acl: lacks.acl && !no_acls,
            capabilities: lacks.capabilities && holder.can_have(CAPABILITIES),
            xattrs: lacks.xattrs && holder.can_have(b"user.carrack"),
            no_acls,
        })
    }
}

/// Until it has its permissions, nobody is to come by another owner or group to what they were for: all but the owner
/// are shut out, whatever a list says, and another owner may do no more than before.
fn shut(getting: Getting<'_>, mode: u32, gets_owner: bool) -> io::Result<()> {
    let now = getting.stat()?.mode & 0o7777;
    // Those of a directory make nothing run, and may be its own to keep.
    let special = if matches!(getting, Getting::Directory(_)) { 0o7000 } else { 0 };
    let shut = now & (special | if gets_owner { mode & 0o700 } else { 0o700 });
    if shut == now { Ok(()) } else { if_it_can(getting.set_mode(shut)).map(|_| ()) }
}

#[cfg(test)]
mod tests {
    use carrack_core::attributes::{AccessEntry, Attribute, KeptAttributes, Who};

    use super::*;

    /// Where the source has a list that is not known here, nobody but the owner gets anything.
    #[test]
    fn list_that_is_not_known_gives_nobody_anything() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        let file = File::create(&path).unwrap();
        let unknown = OtherAttributes::new(vec![Attribute::present(AttributeKind::ACL)]).unwrap();
        let asked = Giving::new(KeptAttributes { acls: true, ..KeptAttributes::NONE }, false);
        let mode = || dir::stat_file(&file).unwrap().mode & 0o7777;
        asked.give_new(Getting::File(&file), 0o664, &unknown, Beginning::New).unwrap();
        assert_eq!(mode(), 0o600);
        file::set_mode(&file, 0o664).unwrap();
        asked.give(Getting::File(&file), 0o664, &unknown, 0o664).unwrap();
        assert_eq!(mode(), 0o600);
        Giving::new(KeptAttributes::NONE, false)
            .give_new(Getting::File(&file), 0o664, &unknown, Beginning::New)
            .unwrap();
        assert_eq!(mode(), 0o664, "nobody has asked for lists");
    }

    /// A directory hands its lists down: then each of its files is asked for what it has.
    #[test]
    fn first_file_of_a_directory_tells_of_all_but_where_it_has_a_list() {
        let place = tempfile::tempdir().unwrap();
        let (top, born) = (Dir::open_ambient(place.path()).unwrap(), Born::default());
        let with = |born: &Born, name: &str| {
            let file = File::create(place.path().join(name)).unwrap();
            born.with(Getting::File(&file)).unwrap().map(|with| with.owner)
        };
        assert_eq!(with(&born, "a"), Some(host::user_id()));
        let named = [(Who::Owner, 7), (Who::User(1), 7), (Who::Group, 7), (Who::Mask, 7), (Who::Others, 0)];
        let named: Vec<_> = named.into_iter().map(|(who, may)| AccessEntry::new(who, may)).collect();
        dir::set_extended_attribute(&top, DEFAULT, &to_kernel(&named)).unwrap();
        assert_eq!(with(&born, "b"), Some(host::user_id()), "it is not asked again");
        let listed = Born::default();
        assert_eq!((with(&listed, "c"), with(&listed, "d")), (None, None));
    }
}
