//! Files: where paths lead ([`place`]), what is there ([`walk`], [`source`]), how it gets written ([`destination`], [`tree`],
//! [`part`], [`pipe`]), what it is known by later ([`identity`]), what survives a crash of it ([`marker`]) and is collected when nobody wants it ([`collect`]); all of it within
//! the limit of open files ([`descriptors`]).

pub mod collect;
pub mod descriptors;
pub mod destination;
mod directories;
pub mod identity;
pub mod marker;
pub(crate) mod names;
pub mod overlap;
pub mod part;
pub mod past_cache;
pub mod pipe;
pub mod place;
pub mod settle;
pub mod source;
pub mod synthetic;
pub mod tree;
mod unkept;
pub mod walk;
pub mod watch;
