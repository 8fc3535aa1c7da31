//! Owners and groups of another host as numbers of this one.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;

use carrack_core::accounts::{AccountMap, AccountMaps, AccountRule, AccountTarget};
use carrack_core::attributes::{Attribute, AttributeKind, KeptAttributes, OtherAttributes};
use carrack_core::limits::ACCOUNT_NAME_BYTES;
use carrack_core::report::{ErrorCode, Failure, ItemKind, Side};
use carrack_core::wire::peer::{AskedItem, DirectoryAttributes};
use carrack_core::wire::{ProtocolError, attributes};
use carrack_sys::accounts;

use super::ReceiveRun;
use crate::error::{failure, io_failure};
use crate::sync::lock;

/// Names that are asked for: a peer says as many as it likes. Beyond, numbers count.
const NAMES_MAX: usize = 10_000;

type Numbers = Mutex<HashMap<Vec<u8>, Option<u32>>>;

/// Owners and groups that become others, with the numbers that those have here.
#[derive(Default)]
pub struct MappedAccounts {
    maps: AccountMaps,
    users: Vec<u32>,
    groups: Vec<u32>,
}

impl MappedAccounts {
    /// Finds all whom somebody is to become.
    ///
    /// # Errors
    /// With [`ErrorCode::Usage`] where there is nobody of such a name here.
    pub fn find(maps: AccountMaps) -> Result<Self, Failure> {
        let all = |map: &AccountMap, what: &str, ask: fn(&[u8]) -> io::Result<Option<u32>>| {
            let number = |rule: &AccountRule| match &rule.to {
                AccountTarget::Number(number) => Ok(*number),
                AccountTarget::Name(name) => match ask(name.as_bytes()) {
                    Ok(Some(number)) => Ok(number),
                    Ok(None) => {
                        let why = format!("there is no {what} {name} at the destination: name another, or a number");
                        Err(failure(ErrorCode::Usage, Side::Destination, why))
                    }
                    Err(error) => Err(io_failure(Side::Destination, "look up who is named", &error)),
                },
            };
            map.rules().iter().map(number).collect::<Result<Vec<_>, _>>()
        };
        let users = all(&maps.users, "user", accounts::user_of)?;
        let groups = all(&maps.groups, "group", accounts::group_of)?;
        Ok(Self { maps, users, groups })
    }

    fn number(&self, kind: AttributeKind, number: u32, name: &[u8]) -> Option<u32> {
        let (map, numbers) = match kind {
            AttributeKind::OWNER => (&self.maps.users, &self.users),
            _ => (&self.maps.groups, &self.groups),
        };
        map.find(number, name).and_then(|rule| numbers.get(rule).copied())
    }
}

/// The attributes of the item before, as they came and with this host's numbers.
#[derive(Default)]
pub(super) struct LastTold {
    block: Vec<u8>,
    others: OtherAttributes,
}

/// Finds users and groups by the names that the source's host has for them. 0 is 0 at every host, and no name leads to
/// it; a name that this host does not know stands for its number. Where the host cannot tell, it is nobody's.
pub(super) struct Owners {
    kept: KeptAttributes,
    mapped: MappedAccounts,
    users: Numbers,
    groups: Numbers,
}

impl Owners {
    /// Of which these are kept, and some become others.
    pub fn new(kept: KeptAttributes, mapped: MappedAccounts) -> Self {
        Self { kept, mapped, users: Mutex::default(), groups: Mutex::default() }
    }

    /// Attributes as they have come, with this host's numbers. Mostly they are those of the item before.
    ///
    /// # Errors
    /// As [`attributes::decode`].
    pub fn told(&self, block: &[u8], last: &mut LastTold) -> Result<OtherAttributes, ProtocolError> {
        if block.is_empty() {
            return Ok(OtherAttributes::default());
        }
        if last.block == block {
            return Ok(last.others.clone());
        }
        let others = self.here(attributes::decode(block)?);
        // What the host could not tell is asked for again.
        let is_nobodys = |one: &Attribute| one.as_account().is_some_and(|(id, _)| id == OtherAttributes::NO_NUMBER);
        if !others.has(AttributeKind::ACL) && !others.iter().any(is_nobodys) {
            last.block.clear();
            last.block.extend_from_slice(block);
            last.others = others.clone();
        }
        Ok(others)
    }

    /// The same attributes, with this host's numbers.
    pub fn here(&self, others: OtherAttributes) -> OtherAttributes {
        others.with_numbers(!self.mapped.maps.are_empty(), |kind, number, name| {
            if let Some(mapped) = self.mapped.number(kind, number, name) {
                return mapped;
            }
            let is_told = (1..=ACCOUNT_NAME_BYTES).contains(&name.len());
            if number == 0 || !is_told || !self.kept.are_any() {
                return number;
            }
            let found = match kind {
                AttributeKind::OWNER => found(&self.users, name, accounts::user_of),
                _ => found(&self.groups, name, accounts::group_of),
            };
            match found {
                Ok(Some(found)) if found != 0 => found,
                Ok(_) => number,
                Err(_) => OtherAttributes::NO_NUMBER,
            }
        })
    }
}

fn found(known: &Numbers, name: &[u8], ask: impl FnOnce(&[u8]) -> io::Result<Option<u32>>) -> io::Result<Option<u32>> {
    {
        let known = lock(known);
        if let Some(found) = known.get(name) {
            return Ok(*found);
        }
        if known.len() >= NAMES_MAX {
            return Ok(None);
        }
    }
    // Not under the lock: a directory service may be slow. What it cannot tell is asked for again.
    let found = ask(name)?;
    lock(known).insert(name.to_vec(), found);
    Ok(found)
}

impl ReceiveRun {
    /// An item of a question as it is to become here: with this host's numbers, and the destination itself with what it
    /// keeps.
    pub(super) fn localize(&self, item: &mut AskedItem) {
        item.others = self.owners.here(std::mem::take(&mut item.others));
        if self.giving.fakes() && item.kind == ItemKind::Symlink {
            // Nothing can be written down beside a link.
            item.others = OtherAttributes::default();
        }
        if let Some(top) = self.destination.kept_by_top().filter(|_| is_top(&item.path, item.kind)) {
            (item.mode, item.others) = (top.mode, item.others.with_access_of(&top.others));
        }
    }

    /// The same of the attributes of a directory.
    pub(super) fn localize_directory(&self, directory: &mut DirectoryAttributes) {
        let attributes = &mut directory.attributes;
        attributes.others = self.owners.here(std::mem::take(&mut attributes.others));
        if let Some(top) = self.destination.kept_by_top().filter(|_| is_top(&directory.path, ItemKind::Directory)) {
            (attributes.mode, attributes.others) = (top.mode, attributes.others.with_access_of(&top.others));
        }
    }
}

fn is_top(path: &[u8], kind: ItemKind) -> bool {
    path.is_empty() && kind == ItemKind::Directory
}

#[cfg(test)]
mod tests {
    use carrack_core::attributes::Attribute;

    use super::*;

    const KEPT: KeptAttributes = KeptAttributes { owner: true, group: true, ..KeptAttributes::NONE };

    fn here(kept: KeptAttributes, kind: AttributeKind, number: u32, name: &str) -> Option<u32> {
        let others = OtherAttributes::new(vec![Attribute::named(kind, number, name.as_bytes())]).unwrap();
        Owners::new(kept, MappedAccounts::default()).here(others).number(kind)
    }

    #[test]
    fn names_are_those_of_this_host_and_none_is_root() {
        let daemon = accounts::user_of(b"daemon").unwrap();
        let owner = |number, name| here(KEPT, AttributeKind::OWNER, number, name);
        assert_eq!(owner(4321, "daemon"), daemon);
        assert_eq!(here(KEPT, AttributeKind::GROUP, 4321, "daemon"), accounts::group_of(b"daemon").unwrap());
        assert_eq!(owner(4321, "nobody here has this name"), Some(4321));
        assert_eq!((owner(4321, "root"), owner(0, "daemon"), owner(0, "root")), (Some(4321), Some(0), Some(0)));
        assert_eq!((owner(4321, ""), owner(4321, &"daemon".repeat(50))), (Some(4321), Some(4321)));
        assert_eq!(here(KeptAttributes::default(), AttributeKind::OWNER, 7, "daemon"), Some(7), "nobody wants to know");
    }

    #[test]
    fn few_names_are_asked_for_and_what_nobody_can_tell_is_asked_for_again() {
        let known = Numbers::default();
        assert!(found(&known, b"ann", |_| Err(io::ErrorKind::TimedOut.into())).is_err());
        assert_eq!(found(&known, b"ann", |_| Ok(Some(5))).unwrap(), Some(5));
        assert_eq!(found(&known, b"ann", |_| panic!("it is known")).unwrap(), Some(5));
        for number in 1..NAMES_MAX {
            assert_eq!(found(&known, &number.to_be_bytes(), |_| Ok(None)).unwrap(), None);
        }
        assert_eq!(found(&known, b"more", |_| panic!("too many")).unwrap(), None);
    }
}
