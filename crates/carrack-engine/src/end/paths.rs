//! Where the paths of an end lead.

/// What an end's paths are paths of.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Paths<'a> {
    /// The whole host.
    Host,
    /// The root of the node with this key and port.
    Node([u8; 32], u16),
    /// The directory that an end of this process is confined to, by its device and inode.
    Directory(u64, u64),
    /// A store that the program has given this name to.
    Store(&'a str),
}

impl<'a> Paths<'a> {
    /// Of an end in this process.
    pub(super) fn of(store: Option<&'a str>, root: Option<(u64, u64)>) -> Self {
        match (store, root) {
            (Some(name), _) => Self::Store(name),
            (None, Some((device, inode))) => Self::Directory(device, inode),
            (None, None) => Self::Host,
        }
    }
}
