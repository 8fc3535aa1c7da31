//! Where the paths of an end lead.

/// What an end's paths are paths of.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Paths<'a> {
    /// The whole host.
    Host,
    /// The root of the node with this key and port.
    Node([u8; 32], u16),
    /// The directory that ends of this process are confined to.
    Directory,
    /// A store that the program has given this name to.
    Store(&'a str),
}

impl<'a> Paths<'a> {
    /// Of an end in this process.
    pub(super) fn of(store: Option<&'a str>, confined: bool) -> Self {
        match store {
            Some(name) => Self::Store(name),
            None if confined => Self::Directory,
            None => Self::Host,
        }
    }
}
