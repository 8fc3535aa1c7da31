//! What an item has beside its content: permissions and times.

/// A moment by the clock of the host that names it, counted from the beginning of 1970 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Whole seconds, negative before 1970.
    pub seconds: i64,
    /// And nanoseconds, always forward; below [`Time::NANOS_PER_SECOND`] where the time has been checked.
    pub nanos: u32,
}

impl Time {
    /// Nanoseconds of one second.
    pub const NANOS_PER_SECOND: u32 = 1_000_000_000;

    /// From seconds since 1970 and nanoseconds beyond.
    pub const fn new(seconds: i64, nanos: u32) -> Self {
        Self { seconds, nanos }
    }

    /// Whether the nanoseconds are less than a second.
    pub const fn is_valid(self) -> bool {
        self.nanos < Self::NANOS_PER_SECOND
    }
}

/// What an item has beside its content, and is to have at the destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits (07777).
    pub mode: u32,
    /// Modification time; `None` where the source has none.
    pub mtime: Option<Time>,
}

impl Attributes {
    /// Of something that has a modification time.
    pub const fn new(mode: u32, mtime: Time) -> Self {
        Self { mode, mtime: Some(mtime) }
    }
}
