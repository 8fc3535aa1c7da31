//! Extended attributes: values of an item by their names.

use super::{Attribute, AttributeKind, KeptAttributes};

/// Extended attributes of one item that travel, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtendedAttributes {
    /// Names and values.
    pub values: Vec<(Vec<u8>, Vec<u8>)>,
    /// The item has others of kinds that are not kept.
    pub has_others: bool,
    /// Not all of those that are to be kept are here: what else the item has is not known.
    pub are_cut: bool,
}

/// Beginnings of names that file systems and services keep for themselves: nobody has given them to the item.
const INTERNAL: [&[u8]; 23] = [
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
    b"user.containers.override_stat",
    b"user.virtfs.",
    b"trusted.ec.",
    b"trusted.pgfid.",
    b"trusted.bit-rot.",
    // What rsync keeps of an owner that it may not set.
    b"user.rsync.%",
];

/// Bytes of a name.
const NAME_BYTES: usize = 255;

impl ExtendedAttributes {
    /// Whether one of this name is a property that somebody has given to an item.
    pub fn is_given(name: &[u8]) -> bool {
        let is_plain = name.starts_with(b"user.") || name.starts_with(b"trusted.");
        is_plain && !INTERNAL.iter().any(|internal| name.starts_with(internal))
    }

    /// Whether one of this name is the label that SELinux gives to every item of a system that has it: it can be
    /// another, and not be taken away.
    pub fn is_label(name: &[u8]) -> bool {
        name == b"security.selinux"
    }

    /// Whether one of this name is kept.
    pub fn is_kept(name: &[u8], kept: KeptAttributes) -> bool {
        if Self::is_label(name) {
            return kept.selinux;
        }
        let is_wanted = if name.starts_with(b"user.") { kept.user_xattrs } else { kept.trusted_xattrs };
        is_wanted && Self::is_given(name)
    }

    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        self.values.is_empty() && !self.has_others && !self.are_cut
    }

    /// As an attribute of an item: a byte that is 1 where it has others, and 2 more where some are missing; and of each
    /// the length of its name (a byte), the name, the length of its value (2 bytes) and the value. What does not fit
    /// into so many bytes is missing.
    pub fn attribute(mut self, bytes: usize) -> Attribute {
        self.values.sort_unstable();
        let mut value = vec![0];
        for (name, one) in &self.values {
            if name.len() > NAME_BYTES || value.len() + 1 + name.len() + 2 + one.len() > bytes {
                self.are_cut = true;
                continue;
            }
            value.push(name.len() as u8);
            value.extend_from_slice(name);
            // Less than the whole attribute, whose length is bounded.
            value.extend_from_slice(&(one.len() as u16).to_be_bytes());
            value.extend_from_slice(one);
        }
        value[0] = u8::from(self.has_others) | u8::from(self.are_cut) << 1;
        Attribute { kind: AttributeKind::EXTENDED, value: value.into() }
    }

    /// From the value of such an attribute; `None` where it is not in this form, or one comes twice.
    pub fn from_value(value: &[u8]) -> Option<Self> {
        let (flag, mut rest) = value.split_first()?;
        let mut values: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        while !rest.is_empty() {
            let (length, after) = rest.split_first()?;
            let (name, after) = after.split_at_checked(usize::from(*length))?;
            let (length, after) = after.split_first_chunk()?;
            let (one, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            let is_in_order = values.last().is_none_or(|(last, _)| &last[..] < name);
            if !is_in_order || name.is_empty() || name.contains(&0) {
                return None;
            }
            values.push((name.to_vec(), one.to_vec()));
            rest = after;
        }
        (*flag <= 3).then_some(Self { values, has_others: flag & 1 != 0, are_cut: flag & 2 != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(&str, &[u8])], are_cut: bool) -> ExtendedAttributes {
        let values = values.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())).collect();
        ExtendedAttributes { values, has_others: false, are_cut }
    }

    #[test]
    fn values_come_back_in_order_and_what_is_cut_or_changed_is_none() {
        let some = of(&[("user.b", b""), ("user.a", b"\0x"), ("user.c", &[7; 300])], false);
        let value = some.clone().attribute(usize::MAX).value;
        let expected = of(&[("user.a", b"\0x"), ("user.b", b""), ("user.c", &[7; 300])], false);
        assert_eq!(ExtendedAttributes::from_value(&value), Some(expected));
        let ends: Vec<usize> =
            (0..value.len()).filter(|end| ExtendedAttributes::from_value(&value[..*end]).is_some()).collect();
        // Where one ends and the next has not begun.
        assert_eq!(ends, [1, 12, 21]);
        for value in [&[][..], &[4], &[0, 0, 0, 0], &[0, 1, b'a', 0, 0, 1, b'a', 0, 0], &[0, 1, 0, 0, 0]] {
            assert_eq!(ExtendedAttributes::from_value(value), None, "{value:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_said() {
        let some = of(&[("user.a", &[1; 100]), ("user.b", &[2; 10])], false);
        let cut = ExtendedAttributes::from_value(&some.attribute(40).value).unwrap();
        assert_eq!(cut, of(&[("user.b", &[2; 10])], true));
        let none = of(&[], true).attribute(100);
        assert_eq!(none.value[..], [2]);
        let others = ExtendedAttributes { has_others: true, ..of(&[("user.a", b"")], false) };
        assert_eq!(ExtendedAttributes::from_value(&others.clone().attribute(100).value), Some(others));
        let long = "user.".to_owned() + &"x".repeat(300);
        assert!(ExtendedAttributes::from_value(&of(&[(&long, b"")], false).attribute(1000).value).unwrap().are_cut);
    }

    #[test]
    fn only_what_somebody_has_given_is_kept() {
        let user = KeptAttributes { user_xattrs: true, ..KeptAttributes::NONE };
        let trusted = KeptAttributes { trusted_xattrs: true, ..KeptAttributes::NONE };
        let labels = KeptAttributes { selinux: true, ..KeptAttributes::NONE };
        for (name, of_users, of_root) in [
            ("user.a", true, false),
            ("trusted.a", false, true),
            ("user.overlay.opaque", false, false),
            ("user.containers.override_stat", false, false),
            ("user.virtfs.uid", false, false),
            ("trusted.overlay.opaque", false, false),
            ("user.rsync.%stat", false, false),
            ("trusted.SGI_ACL_FILE", false, false),
            ("security.selinux", false, false),
            ("security.capability", false, false),
            ("system.posix_acl_access", false, false),
            ("lustre.lov", false, false),
        ] {
            let kept = |kept| ExtendedAttributes::is_kept(name.as_bytes(), kept);
            assert_eq!((kept(user), kept(trusted)), (of_users, of_root), "{name}");
            assert_eq!((kept(KeptAttributes::NONE), kept(labels)), (false, name == "security.selinux"), "{name}");
        }
    }
}
