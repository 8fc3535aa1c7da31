//! What an item gets of the attributes of its source beside permissions and times.

use std::sync::Arc;

use carrack_core::attributes::nfs4;
use carrack_core::attributes::{Attribute, AttributeKind, CopyFacts, KeptAttributes, Lacks, OtherAttributes};
use carrack_sys::host;

/// Permission bits that every copy sets. Set-user-id, set-group-id and sticky bits are not a peer's to give, nor to
/// take, unless they were asked for.
pub const MODE_MASK: u32 = 0o777;
const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;

/// What of the attributes of sources is given to items here.
#[derive(Clone, Debug)]
pub struct Giving {
    kept: KeptAttributes,
    fakes: bool,
    user: u32,
    groups: Arc<[u32]>,
}

impl Giving {
    /// As this process may. With `fakes` nothing is set that gives anybody the rights of others: it is written down.
    pub fn new(kept: KeptAttributes, fakes: bool) -> Self {
        if fakes {
            let kept = KeptAttributes { capabilities: false, trusted_xattrs: false, selinux: false, ..kept };
            return Self { kept, fakes, user: 0, groups: Arc::default() };
        }
        let groups = if kept.group { host::group_ids() } else { Vec::new() };
        let user = host::user_id();
        let capabilities = kept.capabilities && host::may_set_capabilities();
        let trusted_xattrs = kept.trusted_xattrs && host::sees_trusted_attributes();
        let devices = kept.devices && host::may_make_devices();
        let kept = KeptAttributes { capabilities, trusted_xattrs, devices, ..kept };
        Self { kept, fakes, user, groups: groups.into() }
    }

    /// Whether owners, special bits and devices are written down beside items.
    pub fn fakes(&self) -> bool {
        self.fakes
    }

    /// What is given, as far as this process may.
    pub fn kept(&self) -> KeptAttributes {
        self.kept
    }

    /// The owner and the group to give, as far as it may be worth a try. Only root gives owners; everybody else gives
    /// the groups that they are in.
    pub fn owners(&self, others: &OtherAttributes) -> (Option<u32>, Option<u32>) {
        let owner = others.number(AttributeKind::OWNER).filter(|_| self.kept.owner && self.user == 0);
        let group = others.number(AttributeKind::GROUP).filter(|_| self.kept.group);
        (owner, group.filter(|group| self.user == 0 || self.groups.contains(group)))
    }

    /// Whether anything is given beside permissions and times.
    pub fn gives(&self) -> bool {
        self.kept.are_any() || self.fakes
    }

    /// Whether special bits are given, or taken.
    pub fn gives_special_bits(&self) -> bool {
        self.kept.special_bits
    }

    /// The permission bits to give to what has this owner and group by now. Set-user-id is given with the owner of the
    /// source alone, and set-group-id with its group: else a program would run as who copied it.
    pub fn mode(&self, mode: u32, others: &OtherAttributes, now: &CopyFacts) -> u32 {
        if !self.kept.special_bits {
            return mode & MODE_MASK | now.mode & 0o7000;
        }
        let is = |kind, number| others.number(kind) == Some(number);
        let without = |is: bool, bit: u32| if is { 0 } else { bit };
        let refused = without(is(AttributeKind::OWNER, now.owner), SET_USER_ID)
            | without(is(AttributeKind::GROUP, now.group), SET_GROUP_ID);
        mode & 0o7777 & !refused
    }

    /// What an item that is this now is to become. Who is not root changes nothing of what belongs to somebody else.
    pub fn wanted(&self, mode: u32, others: &OtherAttributes, now: &CopyFacts, is_directory: bool) -> CopyFacts {
        let (owner, group) = self.owners(others);
        let is_own = self.user == 0 || now.owner == self.user;
        let (owner, group) = (owner.unwrap_or(now.owner), group.filter(|_| is_own).unwrap_or(now.group));
        let mode = self.mode_with(mode, others, now, (owner, group), is_directory);
        CopyFacts { owner, group, mode }
    }

    /// The permission bits to give to what was something else before, and has this owner and group by now. With others
    /// than before a file has none of its set-user-id and set-group-id bits left.
    pub fn mode_with(
        &self,
        mode: u32,
        others: &OtherAttributes,
        before: &CopyFacts,
        (owner, group): (u32, u32),
        is_directory: bool,
    ) -> u32 {
        let is_new = (owner, group) != (before.owner, before.group) && !is_directory;
        let had = if is_new { before.mode & !(SET_USER_ID | SET_GROUP_ID) } else { before.mode };
        self.mode(mode, others, &CopyFacts { owner, group, mode: had })
    }

    /// Whether a file that is there is sent anew, and not given what it lacks: it has other names, or would come to run
    /// with the rights of others, and what it holds has not been looked at.
    pub fn makes_anew(
        &self,
        (wanted, others): (&CopyFacts, &OtherAttributes),
        now: &CopyFacts,
        lacks: Lacks,
        is_shared: bool,
    ) -> bool {
        let differs = (wanted.owner, wanted.group, wanted.mode) != (now.owner, now.group, now.mode & 0o7777);
        let has_capabilities = others.of_kind(AttributeKind::CAPABILITIES).is_some_and(Attribute::travels);
        let runs_otherwise = differs && wanted.mode & (SET_USER_ID | SET_GROUP_ID) != 0;
        let gets_rights = runs_otherwise || self.kept.capabilities && has_capabilities && lacks.capabilities;
        // Other names would change with it.
        let changes_others = is_shared && (self.gives() || self.kept.hard_links);
        self.gives() && gets_rights || changes_others && (differs || lacks.any())
    }

    /// The permission bits that an item is to have where it lacks this: without a list they give nobody more than it,
    /// and where the list is not known nobody but the owner anything.
    pub fn mode_without(&self, mode: u32, others: &OtherAttributes, lacks: Lacks) -> u32 {
        let nfs4 = others.of_kind(AttributeKind::NFS4_ACL);
        let names = |list: &Attribute| !list.travels() || lacks.no_acls && nfs4::names_somebody(&list.value);
        match others.access_lists() {
            _ if !self.kept.acls => mode,
            _ if nfs4.is_some_and(names) => mode & 0o7700,
            None => mode & 0o7700,
            Some(lists) if lacks.no_acls => lists.narrowed(mode),
            Some(_) => mode,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: KeptAttributes = KeptAttributes::ALL;

    fn owned(owner: u32, group: u32) -> OtherAttributes {
        let numbers = [(AttributeKind::OWNER, owner), (AttributeKind::GROUP, group)];
        OtherAttributes::new(numbers.map(|(kind, number)| Attribute::number(kind, number)).to_vec()).unwrap()
    }

    fn of(kept: KeptAttributes, user: u32, groups: &[u32]) -> Giving {
        Giving { kept, fakes: false, user, groups: groups.into() }
    }

    #[test]
    fn root_gives_owners_and_others_their_own_groups() {
        let source = owned(1000, 100);
        assert_eq!(of(ALL, 0, &[0]).owners(&source), (Some(1000), Some(100)));
        assert_eq!(of(ALL, 7, &[7, 100]).owners(&source), (None, Some(100)));
        assert_eq!(of(ALL, 7, &[7]).owners(&source), (None, None));
        assert_eq!(of(KeptAttributes::default(), 0, &[0]).owners(&source), (None, None));
        assert_eq!(of(ALL, 0, &[0]).owners(&OtherAttributes::default()), (None, None));
    }

    #[test]
    fn program_runs_as_its_owner_or_as_who_starts_it() {
        let source = owned(1000, 100);
        let now = |owner, group| CopyFacts { owner, group, mode: 0o600 };
        let mode = |owner, group| of(ALL, 0, &[0]).mode(0o7755, &source, &now(owner, group));
        assert_eq!([mode(1000, 100), mode(0, 100), mode(1000, 0), mode(0, 0)], [0o7755, 0o3755, 0o5755, 0o1755]);
        // Nobody knows whose it is.
        assert_eq!(of(ALL, 0, &[0]).mode(0o6755, &OtherAttributes::default(), &now(0, 0)), 0o755);
        // Without being asked, what it has stays.
        let plain = of(KeptAttributes::default(), 0, &[0]);
        assert_eq!(plain.mode(0o6755, &source, &CopyFacts { mode: 0o2700, ..now(1000, 100) }), 0o2755);
    }

    #[test]
    fn item_is_wanted_as_it_can_become() {
        let (source, now) = (owned(1000, 100), CopyFacts { owner: 5, group: 5, mode: 0o644 });
        let all = CopyFacts { owner: 1000, group: 100, mode: 0o4755 };
        assert_eq!(of(ALL, 0, &[0]).wanted(0o4755, &source, &now, false), all);
        // What belongs to another stays as it is, and is not tried again and again.
        assert_eq!(of(ALL, 7, &[7, 100]).wanted(0o4644, &source, &now, false), now);
        assert_eq!(of(ALL, 5, &[5, 100]).wanted(0o644, &source, &now, false), CopyFacts { group: 100, ..now });
        // Somebody's program does not become another's, where no bits are given.
        let owners = KeptAttributes { owner: true, ..KeptAttributes::NONE };
        let theirs = CopyFacts { mode: 0o6755, ..now };
        let wanted = |is_directory| of(owners, 0, &[0]).wanted(0o755, &source, &theirs, is_directory).mode;
        assert_eq!((wanted(false), wanted(true)), (0o755, 0o6755));
        let stays = of(owners, 0, &[0]).wanted(0o755, &owned(5, 5), &theirs, false);
        assert_eq!(stays.mode, 0o6755, "with its own owner it stays as it is");
        // What nobody has looked at does not come to run as somebody.
        let giving = of(ALL, 0, &[0]);
        let (nothing, none) = (Lacks::default(), OtherAttributes::default());
        let anew = |wanted: &CopyFacts, now: &CopyFacts, lacks, is_shared| {
            giving.makes_anew((wanted, &none), now, lacks, is_shared)
        };
        assert!(anew(&all, &now, nothing, false) && !anew(&all, &all, nothing, true));
        let plain = CopyFacts { mode: 0o644, ..all };
        assert!(!anew(&plain, &now, nothing, false) && anew(&plain, &now, nothing, true));
        assert!(!of(KeptAttributes::NONE, 0, &[0]).makes_anew((&plain, &none), &now, nothing, true));
        let (acl, rights) = (Lacks { acl: true, ..nothing }, Lacks { capabilities: true, ..nothing });
        assert!(!anew(&now, &now, acl, false) && anew(&now, &now, acl, true));
        let program = vec![Attribute { kind: AttributeKind::CAPABILITIES, value: Box::new([1]) }];
        let program = OtherAttributes::new(program).unwrap();
        assert!(giving.makes_anew((&now, &program), &now, rights, false), "a program that nobody has looked at");
        assert!(!anew(&now, &now, rights, false), "one that is to have fewer rights");
    }
}
