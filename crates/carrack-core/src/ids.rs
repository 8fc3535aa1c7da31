//! Numbers that name something within one transfer, each of a type of its own: one cannot stand where another belongs.
//!
//! They travel as plain numbers; `wire` makes them. Nothing can be computed with them: who needs the number takes it
//! out (`.0`), and says so by that.
//!
//! ```
//! use carrack_core::ids::{ItemId, StreamId};
//! fn cut_off(_: StreamId, _: ItemId) {}
//! cut_off(StreamId(3), ItemId(7));
//! ```
//!
//! Two of them in the wrong order are no program:
//!
//! ```compile_fail,E0308
//! use carrack_core::ids::{ItemId, StreamId};
//! fn cut_off(_: StreamId, _: ItemId) {}
//! cut_off(ItemId(7), StreamId(3));
//! ```
//!
//! Nor is a plain number, which could be anything:
//!
//! ```compile_fail,E0308
//! use carrack_core::ids::{BundleId, ItemId};
//! fn commit(_: BundleId) {}
//! commit(ItemId(7).0);
//! ```

use std::fmt;

/// Defines an id: a number that prints as one, has an order, and has no arithmetic.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($number:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $number);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    )*};
}

ids! {
    /// An item that the sender offers, to send it block by block. The sender counts up from 1; items and bundles
    /// share the count, so that neither is ever taken for the other.
    ItemId(u64);
    /// A bundle of small items, or a question about one.
    BundleId(u64);
    /// A data stream. The end that makes the connection chooses the number, and the receiver takes each once.
    StreamId(u16);
}

impl StreamId {
    /// The data connection inside a tunnel. No direct one of the same session, made after all, gets this number.
    pub const TUNNEL: Self = Self(u16::MAX);
}
