//! Which attributes a copy keeps beside permissions and modification times.

/// Which attributes a copy keeps beside permissions and modification times: those that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptAttributes {
    /// Owners.
    pub owner: bool,
    /// Groups.
    pub group: bool,
    /// Set-user-id, set-group-id and sticky bits.
    pub special_bits: bool,
}

impl KeptAttributes {
    const OWNER: u32 = 1;
    const GROUP: u32 = 2;
    const SPECIAL_BITS: u32 = 4;

    /// As they travel.
    pub fn bits(self) -> u32 {
        let bit = |kept: bool, bit: u32| if kept { bit } else { 0 };
        let Self { owner, group, special_bits } = self;
        bit(owner, Self::OWNER) | bit(group, Self::GROUP) | bit(special_bits, Self::SPECIAL_BITS)
    }

    /// Of such bits; `None` where one is of no kind.
    pub fn from_bits(bits: u32) -> Option<Self> {
        let has = |bit: u32| bits & bit != 0;
        let kept = Self { owner: has(Self::OWNER), group: has(Self::GROUP), special_bits: has(Self::SPECIAL_BITS) };
        (kept.bits() == bits).then_some(kept)
    }

    /// Whether there are any.
    pub fn are_any(self) -> bool {
        self != Self::default()
    }
}

/// How a source tells who owns its items. Owners other than the user that its end runs as, and groups that are none of
/// theirs, it always tells, by number: what is not kept is counted by that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnersTold {
    /// What is kept of them: all of that is told.
    pub kept: KeptAttributes,
    /// By name as well, where there is one.
    pub names: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_attributes_come_back_and_others_are_none() {
        for bits in 0..8 {
            assert_eq!(KeptAttributes::from_bits(bits).map(KeptAttributes::bits), Some(bits));
        }
        assert_eq!(KeptAttributes::from_bits(8), None);
        assert!(!KeptAttributes::default().are_any());
    }
}
