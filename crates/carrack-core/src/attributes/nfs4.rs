//! Access control lists of NFS version 4, as its clients show them in an extended attribute: a number of entries, each
//! with a type, flags, a mask and whom it is about, in the encoding of RFC 7530 (XDR).
//!
//! Every item of such a file system has one. One that names nobody but those whom permissions are for is no property of
//! the item, and takes the place of any other where there is to be none.

/// The list of an item.
pub const NFS4_ACL: &[u8] = b"system.nfs4_acl";

const ALLOW: u32 = 0;
const DENY: u32 = 1;
/// Entries that are inherited, or come to be.
const INHERITED: u32 = 0x8f;
/// The entry is about a group.
const OF_GROUP: u32 = 0x40;
const OWNER: &[u8] = b"OWNER@";
const GROUP: &[u8] = b"GROUP@";
const EVERYONE: &[u8] = b"EVERYONE@";

/// What the permission bits `rwx` stand for, `x` first.
const BITS: [u32; 3] = [0x20, 0x2 | 0x4, 0x1];
/// Write to a directory: what is in it may be removed as well.
const DELETE_CHILD: u32 = 0x40;
/// Read attributes and the list, and use it in step with others: of everybody.
const ALWAYS: u32 = 0x80 | 0x2_0000 | 0x10_0000;
/// Write attributes, the list and the owner: of who owns it.
const OF_OWNER: u32 = 0x100 | 0x4_0000 | 0x8_0000;

struct Entry<'a> {
    kind: u32,
    flags: u32,
    who: &'a [u8],
}

/// The entries of a list; `None` where it is in another form.
fn entries(list: &[u8]) -> Option<Vec<Entry<'_>>> {
    fn number(rest: &mut &[u8]) -> Option<u32> {
        let (number, after) = rest.split_first_chunk()?;
        *rest = after;
        Some(u32::from_be_bytes(*number))
    }
    let mut rest = list;
    let count = number(&mut rest)?;
    let mut found = Vec::new();
    for _ in 0..count {
        let (kind, flags, _mask) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
        let length = number(&mut rest)? as usize;
        let who = rest.get(..length)?;
        rest = rest.get(length.next_multiple_of(4)..)?;
        found.push(Entry { kind, flags, who });
    }
    rest.is_empty().then_some(found)
}

fn is_of_mode(who: &[u8]) -> bool {
    [OWNER, GROUP, EVERYONE].contains(&who)
}

/// Whether a list names nobody but those whom permissions are for, and nothing inherits it. What else its masks may say
/// than permissions do is not looked at.
pub fn is_trivial(list: &[u8]) -> bool {
    let is_plain = |entry: &Entry<'_>| entry.kind <= DENY && entry.flags & INHERITED == 0 && is_of_mode(entry.who);
    entries(list).is_some_and(|entries| entries.iter().all(is_plain))
}

/// Whether a list names anybody beside the owner, the group and everybody: then permissions may give some of them more
/// than it does, whatever they say. One in an unknown form may.
pub fn names_somebody(list: &[u8]) -> bool {
    entries(list).is_none_or(|entries| entries.iter().any(|entry| !is_of_mode(entry.who)))
}

/// The list that says no more than these permission bits.
pub fn of_bits(mode: u32, is_directory: bool) -> Vec<u8> {
    let mask = |bits: u32| {
        let given = BITS.iter().enumerate().filter(|(at, _)| bits >> at & 1 != 0).map(|(_, mask)| mask);
        given.fold(if is_directory && bits & 0o2 != 0 { DELETE_CHILD } else { 0 }, |all, mask| all | mask)
    };
    let (owner, group, others) = (mode >> 6 & 0o7, mode >> 3 & 0o7, mode & 0o7);
    let denied_owner = (group | others) & !owner;
    let denied_group = others & !group;
    let all = [
        (DENY, 0, mask(denied_owner), OWNER),
        (ALLOW, 0, mask(owner) | ALWAYS | OF_OWNER, OWNER),
        (DENY, OF_GROUP, mask(denied_group), GROUP),
        (ALLOW, OF_GROUP, mask(group) | ALWAYS, GROUP),
        (ALLOW, 0, mask(others) | ALWAYS, EVERYONE),
    ];
    let needed: Vec<_> = all.into_iter().filter(|(_, _, mask, _)| *mask != 0).collect();
    let mut list = (needed.len() as u32).to_be_bytes().to_vec();
    for (kind, flags, mask, who) in needed {
        for number in [kind, flags, mask, who.len() as u32] {
            list.extend_from_slice(&number.to_be_bytes());
        }
        list.extend_from_slice(who);
        list.resize(list.len().next_multiple_of(4), 0);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u32, u32, &[u8])]) -> Vec<u8> {
        let mut list = (entries.len() as u32).to_be_bytes().to_vec();
        for (kind, flags, who) in entries {
            [*kind, *flags, 0x1f, who.len() as u32].iter().for_each(|number| list.extend(number.to_be_bytes()));
            list.extend_from_slice(who);
            list.resize(list.len().next_multiple_of(4), 0);
        }
        list
    }

    #[test]
    fn lists_that_say_no_more_than_permissions_are_told_from_others() {
        for mode in 0..0o1000 {
            let plain = of_bits(mode, mode & 1 == 0);
            assert!(is_trivial(&plain) && !names_somebody(&plain), "{mode:o}");
        }
        let named = list(&[(ALLOW, 0, b"ann@example.org"), (ALLOW, 0, OWNER)]);
        let denied = list(&[(DENY, 0, b"bob@example.org"), (ALLOW, 0, EVERYONE)]);
        assert!(!is_trivial(&named) && names_somebody(&named));
        assert!(!is_trivial(&denied) && names_somebody(&denied));
        for flags in [0x1, 0x2, 0x8, 0x80] {
            assert!(!is_trivial(&list(&[(ALLOW, flags, OWNER)])), "{flags:x}: what is below inherits it");
        }
        assert!(!is_trivial(&list(&[(2, 0, EVERYONE)])), "audited");
        // Cut anywhere, or longer, it is in no form that is known.
        for broken in (0..named.len()).map(|end| named[..end].to_vec()).chain([[&named[..], b"\0\0\0\0"].concat()]) {
            assert!(!is_trivial(&broken) && names_somebody(&broken), "{broken:?}");
        }
        assert!(!is_trivial(&u32::MAX.to_be_bytes()));
    }

    /// Each class gets just its bits: an entry that denies stands before one that would give more.
    #[test]
    fn list_of_permissions_gives_each_class_its_own() {
        let gives = |mode: u32, class: usize, bit: u32| {
            let list = of_bits(mode, false);
            let mut rest = &list[4..];
            while let Some((head, after)) = rest.split_first_chunk::<16>() {
                let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
                let length = number(12) as usize;
                let is_theirs = [OWNER, GROUP, EVERYONE][class] == &after[..length] || &after[..length] == EVERYONE;
                if is_theirs && number(8) & BITS[bit as usize] != 0 {
                    return number(0) == ALLOW;
                }
                rest = &after[length.next_multiple_of(4)..];
            }
            false
        };
        for mode in 0..0o1000 {
            for (class, shift) in [(0, 6), (1, 3), (2, 0)] {
                for bit in 0..3 {
                    assert_eq!(gives(mode, class, bit), mode >> shift >> bit & 1 != 0, "{mode:o} {class} {bit}");
                }
            }
        }
    }
}
