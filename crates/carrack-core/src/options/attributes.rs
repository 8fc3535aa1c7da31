//! What is kept of an item beside its content, permissions and time.

use super::{Definition, Flag, FormGroup, Takes, WordFlag, choices};
use crate::accounts::AccountMap;
use crate::mode_change::ModeChange;
use crate::request::{HardLinks, KeptXattrs};

/// Owners that are kept.
pub const OWNER: Definition = Definition {
    name: "owner",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "owner",
        letter: Some('o'),
        help: "Keep owners, by name. Only root can set them at the destination",
    },
    title: "Keep owners",
    help: "Items get the owners of their sources, by name, where the destination may set them. An endpoint does so \
           only where an admin allows it; else they are counted as not kept.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Groups that are kept.
pub const GROUP: Definition = Definition {
    name: "group",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "group",
        letter: Some('g'),
        help: "Keep groups, by name. Other users than root can set only groups that they are in",
    },
    title: "Keep groups",
    help: "Items get the groups of their sources, by name, where the destination may set them. An endpoint does so \
           only where an admin allows it; else they are counted as not kept.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Set-user-id, set-group-id and sticky bits that are kept.
pub const SPECIAL_BITS: Definition = Definition {
    name: "special_bits",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "perms",
        letter: Some('p'),
        help: "Keep set-user-id, set-group-id and sticky bits, too. A copy gets the first only with its source's owner, \
               the second only with its group",
    },
    title: "Keep special bits",
    help: "Items get the set-user-id, set-group-id and sticky bits of their sources, the first two only with its owner and \
           group. An endpoint sets them only where an admin allows it; else they are counted as not kept.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Access control lists that are kept.
pub const ACLS: Definition = Definition {
    name: "acls",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "acls",
        letter: Some('A'),
        help: "Keep POSIX access control lists (ACLs), those that new files inherit, too. Where one cannot be set, the \
               permissions give nobody more than it does",
    },
    title: "Keep ACLs",
    help: "Items get the POSIX access control lists of their sources, and no others. Where one cannot be set, the \
           permissions give nobody more than it does.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Extended attributes that are kept.
pub const XATTRS: Definition = Definition {
    name: "xattrs",
    group: FormGroup::What,
    flag: Flag::Switches(&[
        WordFlag {
            word: KeptXattrs::All.name(),
            name: "xattrs",
            letter: Some('X'),
            alias: None,
            help: "Keep extended attributes of users (user.NAME), and capabilities of programs, which only root can set",
        },
        WordFlag {
            word: KeptXattrs::User.name(),
            name: "user-xattrs",
            letter: None,
            alias: None,
            help: "Keep extended attributes of users (user.NAME) alone",
        },
    ]),
    title: "Keep extended attributes",
    help: "Items get the extended attributes of their sources, and no others. An endpoint sets \
           capabilities only where an admin allows it; else they are counted as not kept.",
    kind: Takes::Words(choices::<KeptXattrs>),
    default: Some(KeptXattrs::None.name()),
    examples: &[],
};

/// Extended attributes of root that are kept.
pub const TRUSTED: Definition = Definition {
    name: "trusted",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "trusted",
        letter: None,
        help: "Keep extended attributes that only root sees (trusted.NAME), but for those of file systems themselves",
    },
    title: "Keep root's attributes",
    help: "Items get the extended attributes of their sources that only root sees. An endpoint sets them \
           only where an admin allows it; else they are counted as not kept.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Labels of SELinux that are kept.
pub const SELINUX: Definition = Definition {
    name: "selinux",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "selinux",
        letter: None,
        help: "Keep the labels of SELinux (security.selinux). Without it each item gets what the destination's policy \
               gives it",
    },
    title: "Keep SELinux contexts",
    help: "Items get the SELinux contexts of their sources. Without this each gets what the destination's policy \
           gives it. An endpoint sets them only where an admin allows it; else they are counted as not kept.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Whether names of one file are kept.
pub const HARD_LINKS: Definition = Definition {
    name: "hard_links",
    group: FormGroup::What,
    flag: Flag::Switches(&[
        WordFlag {
            word: HardLinks::Keep.name(),
            name: "hard-links",
            letter: Some('H'),
            alias: None,
            help: "Keep hard links: names of one file are names of one file at the destination, too, and it is sent once \
                   [sync does so by itself]",
        },
        WordFlag {
            word: HardLinks::Separate.name(),
            name: "no-hard-links",
            letter: None,
            alias: Some("no-H"),
            help: "Copy each name of a file as a file of its own",
        },
    ]),
    title: "Names of one file",
    help: "Whether names of one file are names of one file at the destination, too.",
    kind: Takes::Words(choices::<HardLinks>),
    default: None,
    examples: &[],
};

/// Devices that are made.
pub const DEVICES: Definition = Definition {
    name: "devices",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "devices",
        letter: None,
        help: "Make block and character devices at the destination. Only root can",
    },
    title: "Keep devices",
    help: "Block and character devices are made at the destination. An endpoint makes them only where an admin allows it; else \
           they are counted as not kept.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// FIFOs and sockets that are made.
pub const SPECIALS: Definition = Definition {
    name: "specials",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "specials",
        letter: None,
        help: "Make FIFOs and sockets at the destination, with nobody at their other end",
    },
    title: "Keep FIFOs and sockets",
    help: "FIFOs and sockets are made at the destination.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Access times that are kept.
pub const ACCESS_TIMES: Definition = Definition {
    name: "access_times",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "atimes",
        letter: Some('U'),
        help: "Keep access times of all but directories. They are set with what is sent or changed, and alone make no \
               difference",
    },
    title: "Keep access times",
    help: "Items but directories get the access times of their sources. They alone make no difference: reading changes \
           them.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Permissions that are changed on the way.
pub const CHMOD: Definition = Definition {
    name: "chmod",
    group: FormGroup::What,
    flag: Flag::Value {
        name: "chmod",
        value_name: "CHANGES",
        help: "Change permissions on the way, as in Dg+s,ug+w,Fo-w or D755,F644. s and t need -p",
    },
    title: "Change permissions",
    help: "How permissions are changed on the way, such as Dg+s,ug+w,Fo-w or D755,F644: D is for directories, F for all else.",
    kind: Takes::Text { characters_max: ModeChange::CHARACTERS_MAX as u64 },
    default: None,
    examples: &["D755,F644", "go-w"],
};

/// Everybody's new owner and group.
pub const CHOWN: Definition = Definition {
    name: "chown",
    group: FormGroup::What,
    flag: Flag::Value {
        name: "chown",
        value_name: "USER:GROUP",
        help: "Give all items this owner and group, by names or numbers of the destination; one of them may be missing",
    },
    title: "New owner and group",
    help: "The owner and the group of all items, by names or numbers of the destination. An endpoint sets them only where an \
           admin allows it.",
    kind: Takes::Text { characters_max: AccountMap::CHARACTERS_MAX as u64 },
    default: None,
    examples: &["data:data", ":project"],
};

/// Owners that become others.
pub const USERMAP: Definition = Definition {
    name: "usermap",
    group: FormGroup::What,
    flag: Flag::Value {
        name: "usermap",
        value_name: "FROM:TO,...",
        help: "Keep owners, and give those that are FROM at the source to TO at the destination: names, numbers, ranges, *",
    },
    title: "Map owners",
    help: "Owners of the source, by names, numbers or ranges of them, and whom their items go to at the destination.",
    kind: Takes::Text { characters_max: AccountMap::CHARACTERS_MAX as u64 },
    default: None,
    examples: &["alice:bob,1000-1999:data"],
};

/// Groups that become others.
pub const GROUPMAP: Definition = Definition {
    name: "groupmap",
    group: FormGroup::What,
    flag: Flag::Value { name: "groupmap", value_name: "FROM:TO,...", help: "The same of groups" },
    title: "Map groups",
    help: "Groups of the source, by names, numbers or ranges of them, and which their items get at the destination.",
    kind: Takes::Text { characters_max: AccountMap::CHARACTERS_MAX as u64 },
    default: None,
    examples: &["users:project,*:data"],
};

/// Owners and groups that are numbers.
pub const NUMERIC_IDS: Definition = Definition {
    name: "numeric_ids",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "numeric-ids",
        letter: None,
        help: "Keep owners and groups by their numbers, whatever their names",
    },
    title: "Owners by number",
    help: "Owners and groups are kept by their numbers, whatever their names are.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Whether what may not be set is written down.
pub const FAKE_SUPER: Definition = Definition {
    name: "fake_super",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "fake-super",
        letter: None,
        help: "Write owners, special bits and devices down in an extended attribute at the destination, in rsync's form, \
               and set none of them: for backups without root",
    },
    title: "Write owners down",
    help: "Owners, special bits and devices that are kept are not set. The destination writes them down beside each item, in \
           an extended attribute that rsync reads, too.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Whether what is written down counts.
pub const FROM_FAKE_SUPER: Definition = Definition {
    name: "from_fake_super",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "from-fake-super",
        letter: None,
        help: "Restore: take what is written down so beside items of the source for what they are",
    },
    title: "Read owners that were written down",
    help: "What a copy has written down beside items of the source, in the place of owners, special bits and devices, counts \
           as what they are.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};

/// Whether the destination itself becomes as its source is.
pub const TOP_ATTRIBUTES: Definition = Definition {
    name: "top_attributes",
    group: FormGroup::What,
    flag: Flag::Switch {
        name: "top-attributes",
        letter: None,
        help: "Give the destination directory itself the permissions, and with -o, -g and -A the owner and ACL, of its \
               source, also where it was there before",
    },
    title: "Attributes of the destination itself",
    help: "The destination directory itself gets the permissions of its source, and owner and access control list where \
           they are kept, also where it was there before.",
    kind: Takes::Switch,
    default: Some("false"),
    examples: &[],
};
