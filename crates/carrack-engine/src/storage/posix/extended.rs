//! What an item has in extended attributes: access control lists, capabilities, and values by their names. How they are
//! read, in the form in which they travel and are compared, and set.

use std::fs::File;
use std::io;

use carrack_core::attributes::nfs4::{self, NFS4_ACL};
use carrack_core::attributes::{
    AccessEntry, AccessLists, Attribute, AttributeKind, ExtendedAttributes, KeptAttributes, OtherAttributes, Who,
};
use carrack_core::limits::ATTRIBUTE_BYTES;
use carrack_sys::dir::{self, Dir, HeldEntry};

/// The list of an item.
pub const ACCESS: &[u8] = b"system.posix_acl_access";
/// The list that items made in a directory get.
pub const DEFAULT: &[u8] = b"system.posix_acl_default";
/// Capabilities of a program.
pub const CAPABILITIES: &[u8] = b"security.capability";

/// Whose extended attributes are read.
#[derive(Clone, Copy)]
pub enum Holder<'a> {
    /// An open file.
    File(&'a File),
    /// An open directory.
    Directory(&'a Dir),
    /// An entry of a directory, which is not opened.
    Entry(&'a Dir, &'a [u8]),
    /// The same, where it is held.
    Held(&'a HeldEntry),
}

impl Holder<'_> {
    fn names(self, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        match self {
            Self::File(file) => dir::extended_attributes(file, each),
            Self::Directory(directory) => dir::extended_attributes(directory, each),
            Self::Entry(directory, name) => directory.extended_attributes(name, each),
            Self::Held(held) => held.extended_attributes(each),
        }
    }

    /// A value; `None` where there is none of that name.
    ///
    /// # Errors
    /// With [`io::ErrorKind::Unsupported`] where there can be none, and others of the system.
    pub fn value(self, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        match self {
            Self::File(file) => dir::extended_attribute(file, name),
            Self::Directory(directory) => dir::extended_attribute(directory, name),
            Self::Entry(directory, entry) => directory.extended_attribute(entry, name),
            Self::Held(held) => held.extended_attribute(name),
        }
    }

    /// Whether there is one of that name, or nobody can say.
    pub fn may_have(self, name: &[u8]) -> bool {
        self.value(name).map_or_else(|error| error.kind() != io::ErrorKind::Unsupported, |value| value.is_some())
    }

    /// Whether there can be one of that name here.
    pub fn can_have(self, name: &[u8]) -> bool {
        !self.value(name).is_err_and(|error| error.kind() == io::ErrorKind::Unsupported)
    }

    /// The names of those that are kept.
    ///
    /// # Errors
    /// Those of [`Self::value`].
    pub fn kept_names(self, kept: KeptAttributes) -> io::Result<Vec<Vec<u8>>> {
        let mut list = Vec::new();
        self.names(&mut |name| {
            if ExtendedAttributes::is_kept(name, kept) {
                list.push(name.to_vec());
            }
        })?;
        Ok(list)
    }
}

/// Whom an entry of a list is about, and the name that is told.
pub type AsTold<'a> = dyn Fn(Who) -> (Who, Vec<u8>) + 'a;

/// What is there in extended attributes.
#[derive(Default)]
struct ListedNames {
    access: bool,
    default: bool,
    capabilities: bool,
    nfs4: bool,
    /// Names of those that are kept.
    kept: Vec<Vec<u8>>,
    /// There are others that somebody has given.
    others: bool,
}

/// Reads what an item has in extended attributes, in the order of the kinds: values of what is kept, that there is
/// something of what is not. `told` says how users and groups are told. So many bytes are left of what may travel.
///
/// # Errors
/// Those of listing them. A value that cannot be read counts as one that does not travel.
pub fn read(holder: Holder<'_>, kept: KeptAttributes, left: usize, told: &AsTold<'_>) -> io::Result<Vec<Attribute>> {
    let mut found = ListedNames::default();
    holder.names(&mut |name| match name {
        ACCESS => found.access = true,
        DEFAULT => found.default = true,
        CAPABILITIES => found.capabilities = true,
        NFS4_ACL => found.nfs4 = true,
        _ if ExtendedAttributes::is_kept(name, kept) => found.kept.push(name.to_vec()),
        _ => found.others |= ExtendedAttributes::is_given(name),
    })?;
    let mut list = Vec::new();
    let mut left = left;
    let mut push = |attribute: Attribute| {
        let bytes = OtherAttributes::HEAD_BYTES + attribute.value.len();
        let attribute = if bytes <= left { attribute } else { Attribute::present(attribute.kind) };
        left = left.saturating_sub(OtherAttributes::HEAD_BYTES + attribute.value.len());
        list.push(attribute);
    };
    if found.access || found.default {
        let lists = kept.acls.then(|| lists(holder, &found, told)).flatten();
        push(lists.map_or(Attribute::present(AttributeKind::ACL), |lists| lists.attribute()));
    }
    if found.capabilities {
        let value = kept.capabilities.then(|| holder.value(CAPABILITIES).ok().flatten()).flatten();
        push(Attribute { kind: AttributeKind::CAPABILITIES, value: value.unwrap_or_default().into() });
    }
    if !found.kept.is_empty() || found.others {
        let mut extended = ExtendedAttributes { has_others: found.others, ..ExtendedAttributes::default() };
        for name in found.kept {
            match holder.value(&name) {
                Ok(Some(value)) => extended.values.push((name, value)),
                Ok(None) => {}
                Err(_) => extended.are_cut = true,
            }
        }
        let most = left.saturating_sub(OtherAttributes::HEAD_BYTES);
        if !kept.has_xattrs() {
            list.push(Attribute::present(AttributeKind::EXTENDED));
        } else if !extended.are_none() {
            list.push(extended.attribute(most));
        }
    }
    if let Some(nfs4) = found.nfs4.then(|| holder.value(NFS4_ACL).unwrap_or_default()).flatten()
        && !nfs4::is_trivial(&nfs4)
    {
        let left = left_beside(&OtherAttributes::new(list.clone()).unwrap_or_default());
        let travels = kept.acls && nfs4.len() <= left;
        list.push(Attribute {
            kind: AttributeKind::NFS4_ACL,
            value: if travels { nfs4.into() } else { Box::default() },
        });
    }
    Ok(list)
}

/// The lists of an item; `None` where one cannot be read.
fn lists(holder: Holder<'_>, found: &ListedNames, told: &AsTold<'_>) -> Option<AccessLists> {
    let of = |is_there: bool, attribute: &[u8]| {
        if !is_there {
            return Some(Vec::new());
        }
        let mut list = from_kernel(&holder.value(attribute).ok()??)?;
        list.iter_mut().for_each(|entry| (entry.who, entry.name) = told(entry.who));
        Some(list)
    };
    Some(AccessLists { access: of(found.access, ACCESS)?, default: of(found.default, DEFAULT)? }.in_order())
}

/// The version of the kernel's form.
const VERSION: u32 = 2;
/// The number of an entry that needs none.
const NO_ID: u32 = u32::MAX;

/// A list from the kernel's form; `None` where it is another one.
fn from_kernel(value: &[u8]) -> Option<Vec<AccessEntry>> {
    let (version, rest) = value.split_first_chunk()?;
    let (entries, []) = rest.as_chunks::<8>() else { return None };
    let entry = |bytes: &[u8; 8]| {
        let [tag, tag_high, permissions, permissions_high, id @ ..] = *bytes;
        let who = Who::of(tag, u32::from_le_bytes(id))?;
        let is_known = tag_high == 0 && permissions_high == 0 && permissions <= 0o7;
        is_known.then(|| AccessEntry::new(who, permissions))
    };
    if u32::from_le_bytes(*version) != VERSION {
        return None;
    }
    entries.iter().map(entry).collect()
}

/// A list in the kernel's form.
pub fn to_kernel(list: &[AccessEntry]) -> Vec<u8> {
    let mut value = VERSION.to_le_bytes().to_vec();
    for AccessEntry { who, permissions, .. } in list {
        value.extend_from_slice(&[who.tag(), 0, *permissions, 0]);
        value.extend_from_slice(&who.id().unwrap_or(NO_ID).to_le_bytes());
    }
    value
}

/// The list that says no more than these permission bits, in the kernel's form: whoever sets it takes away any other in
/// one step.
pub fn of_bits(mode: u32) -> Vec<u8> {
    let entry = |who, shift: u32| AccessEntry::new(who, (mode >> shift & 0o7) as u8);
    to_kernel(&[entry(Who::Owner, 6), entry(Who::Group, 3), entry(Who::Others, 0)])
}

/// Whether an attribute could be set, and not refused because this file system, or this user, cannot: too long and no
/// room among the reasons. A disk that is full shows with the content.
///
/// # Errors
/// Any other error.
pub fn if_kept(set: io::Result<()>) -> io::Result<bool> {
    use io::ErrorKind::{ArgumentListTooLong, InvalidInput, PermissionDenied, QuotaExceeded, StorageFull, Unsupported};
    let refusals = [ArgumentListTooLong, InvalidInput, PermissionDenied, QuotaExceeded, StorageFull, Unsupported];
    match set {
        Ok(()) => Ok(true),
        Err(error) if refusals.contains(&error.kind()) || error.raw_os_error() == Some(carrack_sys::errno::ERANGE) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// What may travel of an item in extended attributes, beside these. That there is something always may.
pub fn left_beside(others: &OtherAttributes) -> usize {
    ATTRIBUTE_BYTES.saturating_sub(others.encoded_bytes() + 4 * (OtherAttributes::HEAD_BYTES + 1))
}
