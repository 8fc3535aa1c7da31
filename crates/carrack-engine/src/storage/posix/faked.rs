//! Items that are made as far as this process may, with what they are to be written down beside them: owner, special
//! bits, and what device, FIFO or socket an empty file stands for.

use std::io;

use carrack_core::attributes::faked::{FAKED_STAT, FakedStat};
use carrack_core::attributes::{AttributeKind, CopyFacts, OtherAttributes};
use carrack_core::special::SpecialFile;
use carrack_sys::dir::{Kind, Stat};

use super::extended::{Holder, if_kept};
use super::giving::{Getting, GettingState, GivenAttributes, facts_of};
use super::kinds::{special_of, system_kind};
use crate::storage::giving::Giving;

/// What an item stands for, where that is written down.
pub fn shown(stat: Stat, holder: Holder<'_>) -> Stat {
    let is_directory = stat.kind == Kind::Dir;
    if !is_directory && stat.kind != Kind::File {
        return stat;
    }
    let written = holder.value(FAKED_STAT).ok().flatten().and_then(|text| FakedStat::read(&text));
    let Some(faked) = written.filter(|faked| faked.is_directory == is_directory) else { return stat };
    let (kind, numbers) = match faked.special {
        // What holds something is a file.
        Some(special) if stat.size == 0 => (system_kind(special), (special.major, special.minor)),
        None if faked.is_link => (Kind::Symlink, stat.numbers),
        _ => (stat.kind, stat.numbers),
    };
    Stat { kind, numbers, mode: faked.mode, uid: faked.owner, gid: faked.group, ..stat }
}

impl Giving {
    /// What an item counts as.
    pub fn shown(&self, stat: Stat, holder: Holder<'_>) -> Stat {
        if self.fakes() { shown(stat, holder) } else { stat }
    }

    /// Gives an item its permissions and what is nobody's privilege, and writes down what it is to be beyond that.
    ///
    /// # Errors
    /// Those of the system but refusals.
    pub fn give_faked(
        &self,
        getting: Getting<'_>,
        mode: u32,
        others: &OtherAttributes,
        stands: GettingState,
    ) -> io::Result<GivenAttributes> {
        let Some(holder) = getting.holder() else {
            return Ok(GivenAttributes { mode_and_time: true, others: others.is_empty() });
        };
        let real = getting.stat()?;
        let (now, is_directory) = (facts_of(&shown(real, holder)), real.kind == Kind::Dir);
        let wanted = self.wanted(mode, others, &now, is_directory);
        let (_, xattrs) = self.give_extended(getting, others, stands)?;
        // Its owner gets at what it holds.
        let owners = if is_directory { 0o700 } else { 0o600 };
        let (has_mode, acl) = self.give_mode(getting, wanted.mode & 0o777 | owners, others)?;
        let is_written = self.write_down(getting, &wanted, special_of(&shown(real, holder)))?;
        let is_given = |kind| match kind {
            AttributeKind::OWNER | AttributeKind::GROUP | AttributeKind::SPECIAL_BITS => is_written,
            AttributeKind::ACL | AttributeKind::NFS4_ACL => acl,
            AttributeKind::EXTENDED => xattrs,
            _ => false,
        };
        Ok(GivenAttributes { mode_and_time: has_mode, others: others.kinds().all(is_given) })
    }

    /// Writes down what an item is to be, and nothing where it is so; whether it counts as that now.
    ///
    /// # Errors
    /// Those of the system but refusals.
    pub fn write_down(
        &self,
        getting: Getting<'_>,
        wanted: &CopyFacts,
        special: Option<SpecialFile>,
    ) -> io::Result<bool> {
        let Some(holder) = getting.holder() else { return Ok(false) };
        let real = getting.stat()?;
        let CopyFacts { owner, group, mode } = *wanted;
        let text =
            FakedStat { special, is_directory: real.kind == Kind::Dir, is_link: false, mode, owner, group }.text();
        let is_so = special.is_none() && facts_of(&real) == *wanted;
        match holder.value(FAKED_STAT).unwrap_or_default() {
            None if is_so => Ok(true),
            Some(_) if is_so => if_kept(getting.remove_extended(FAKED_STAT)),
            Some(there) if there == text.as_bytes() => Ok(true),
            _ => if_kept(getting.set_extended(FAKED_STAT, text.as_bytes())),
        }
    }
}
