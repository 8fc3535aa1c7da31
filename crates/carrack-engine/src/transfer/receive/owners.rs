//! Owners and groups of another host as numbers of this one.

use std::collections::HashMap;
use std::sync::Mutex;

use carrack_core::attributes::{AttributeKind, OtherAttributes};
use carrack_sys::accounts;

use crate::sync::lock;

/// Names that are remembered: a peer says as many as it likes.
const REMEMBERED: usize = 10_000;

/// Finds users and groups by the names that the source's host has for them. 0 is 0 at every host, and no name leads to
/// it; a name that this host does not know stands for its number.
#[derive(Default)]
pub(super) struct Owners {
    users: Mutex<HashMap<Vec<u8>, Option<u32>>>,
    groups: Mutex<HashMap<Vec<u8>, Option<u32>>>,
}

impl Owners {
    /// The same attributes, with this host's numbers.
    pub fn here(&self, others: OtherAttributes) -> OtherAttributes {
        others.with_numbers(|kind, number, name| {
            let found = match kind {
                AttributeKind::OWNER => found(&self.users, name, accounts::user_of),
                _ => found(&self.groups, name, accounts::group_of),
            };
            found.filter(|found| number != 0 && *found != 0).unwrap_or(number)
        })
    }
}

fn found(
    known: &Mutex<HashMap<Vec<u8>, Option<u32>>>,
    name: &[u8],
    ask: impl FnOnce(&[u8]) -> Option<u32>,
) -> Option<u32> {
    if let Some(found) = lock(known).get(name) {
        return *found;
    }
    // Not under the lock: a directory service may be slow.
    let found = ask(name);
    let mut known = lock(known);
    if known.len() < REMEMBERED {
        known.insert(name.to_vec(), found);
    }
    found
}

#[cfg(test)]
mod tests {
    use carrack_core::attributes::Attribute;

    use super::*;

    fn here(kind: AttributeKind, number: u32, name: &str) -> Option<u32> {
        let others = OtherAttributes::new(vec![Attribute::named(kind, number, name.as_bytes())]).unwrap();
        Owners::default().here(others).number(kind)
    }

    #[test]
    fn names_are_those_of_this_host_and_none_is_root() {
        let daemon = accounts::user_of(b"daemon").unwrap();
        let owner = |number, name| here(AttributeKind::OWNER, number, name);
        assert_eq!(owner(4321, "daemon"), Some(daemon));
        assert_eq!(here(AttributeKind::GROUP, 4321, "daemon"), accounts::group_of(b"daemon"));
        assert_eq!(owner(4321, "nobody here has this name"), Some(4321));
        assert_eq!((owner(4321, "root"), owner(0, "daemon"), owner(0, "root")), (Some(4321), Some(0), Some(0)));
        assert_eq!(owner(4321, ""), Some(4321));
    }
}
