//! Which attributes a copy keeps beside permissions and modification times.

use crate::special::SpecialFile;

/// Which attributes a copy keeps beside permissions and modification times: those that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptAttributes {
    /// Owners.
    pub owner: bool,
    /// Groups.
    pub group: bool,
    /// Set-user-id, set-group-id and sticky bits.
    pub special_bits: bool,
    /// Access control lists.
    pub acls: bool,
    /// Extended attributes of users.
    pub user_xattrs: bool,
    /// Capabilities of programs.
    pub capabilities: bool,
    /// Extended attributes that only root sees (`trusted.`).
    pub trusted_xattrs: bool,
    /// The label by which SELinux rules over an item (`security.selinux`).
    pub selinux: bool,
    /// Names of one file: they are names of one file at the destination, too.
    pub hard_links: bool,
    /// Devices.
    pub devices: bool,
    /// FIFOs and sockets.
    pub specials: bool,
    /// When items were last read; not of directories.
    pub access_times: bool,
}

impl KeptAttributes {
    /// None of them.
    pub const NONE: Self = Self {
        owner: false,
        group: false,
        special_bits: false,
        acls: false,
        user_xattrs: false,
        capabilities: false,
        trusted_xattrs: false,
        selinux: false,
        hard_links: false,
        devices: false,
        specials: false,
        access_times: false,
    };
    /// All of them.
    pub const ALL: Self = Self {
        owner: true,
        group: true,
        special_bits: true,
        acls: true,
        user_xattrs: true,
        capabilities: true,
        trusted_xattrs: true,
        selinux: true,
        hard_links: true,
        devices: true,
        specials: true,
        access_times: true,
    };

    /// As they travel: a bit each.
    pub fn bits(self) -> u32 {
        let Self { owner, group, special_bits, acls, user_xattrs, capabilities, trusted_xattrs, .. } = self;
        let attributes = [owner, group, special_bits, acls, user_xattrs, capabilities, trusted_xattrs];
        let kinds = [self.hard_links, self.devices, self.specials, self.access_times, self.selinux];
        let kinds = attributes.into_iter().chain(kinds);
        kinds.enumerate().map(|(at, kept)| u32::from(kept) << at).sum()
    }

    /// Of such bits; `None` where one is of no kind.
    pub fn from_bits(bits: u32) -> Option<Self> {
        let has = |at: u32| bits >> at & 1 != 0;
        let kept = Self {
            owner: has(0),
            group: has(1),
            special_bits: has(2),
            acls: has(3),
            user_xattrs: has(4),
            capabilities: has(5),
            trusted_xattrs: has(6),
            hard_links: has(7),
            devices: has(8),
            specials: has(9),
            access_times: has(10),
            selinux: has(11),
        };
        (kept.bits() == bits).then_some(kept)
    }

    /// Whether there are any attributes among them; what is made otherwise has none by that.
    pub fn are_any(self) -> bool {
        Self { hard_links: false, devices: false, specials: false, access_times: false, ..self } != Self::NONE
    }

    /// Whether there are any that nothing tells of but the extended attributes of an item.
    pub fn are_listed(self) -> bool {
        self.acls || self.capabilities || self.has_xattrs()
    }

    /// Whether extended attributes of any names are kept.
    pub fn has_xattrs(self) -> bool {
        self.user_xattrs || self.trusted_xattrs || self.selinux
    }

    /// Whether a FIFO, a socket or a device is made. What it is has to be known.
    pub fn has_special(self, special: Option<SpecialFile>) -> bool {
        special.is_some_and(|special| if special.is_device() { self.devices } else { self.specials })
    }

    /// Whether any of them gives somebody the rights of others.
    pub fn gives_rights(self) -> bool {
        self.without_privileges() != self
    }

    /// Those that give nobody the rights of somebody else.
    #[must_use]
    pub fn without_privileges(self) -> Self {
        let Self { acls, user_xattrs, hard_links, specials, access_times, .. } = self;
        Self { acls, user_xattrs, hard_links, specials, access_times, ..Self::NONE }
    }
}

/// How a source tells who owns its items, and what else they have. Owners other than the user that its end runs as, and
/// groups that are none of theirs, it always tells, by number: what is not kept is counted by that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttributesTold {
    /// What is kept of them: all of that is told.
    pub kept: KeptAttributes,
    /// Owners and groups by name as well, where there is one.
    pub names: bool,
    /// They are told of every item that is found, and not only where it is sent: they are compared, or it is followed.
    pub at_once: bool,
    /// Whom access control lists name is not told: their numbers mean nothing to who asks.
    pub hides_names: bool,
    /// What is written down beside items counts as what they are ([`super::faked`]).
    pub faked: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_attributes_come_back_and_others_are_none() {
        for bits in 0..4096 {
            assert_eq!(KeptAttributes::from_bits(bits).map(KeptAttributes::bits), Some(bits));
        }
        assert_eq!(KeptAttributes::from_bits(4096), None);
        assert_eq!((KeptAttributes::ALL.bits(), KeptAttributes::NONE.bits()), (4095, 0));
        let made = KeptAttributes {
            hard_links: true,
            devices: true,
            specials: true,
            access_times: true,
            ..KeptAttributes::NONE
        };
        assert!(!made.are_any() && KeptAttributes { acls: true, ..made }.are_any());
    }

    #[test]
    fn attributes_without_privileges_are_those_of_ones_own_files() {
        let plain = KeptAttributes::ALL.without_privileges();
        let own = KeptAttributes { hard_links: true, specials: true, access_times: true, ..KeptAttributes::NONE };
        assert_eq!(plain, KeptAttributes { acls: true, user_xattrs: true, ..own });
        assert_eq!(KeptAttributes::NONE.without_privileges(), KeptAttributes::NONE);
    }
}
