//! Files: where paths lead ([`place`]), what is there ([`walk`], [`source`]), how it gets written ([`destination`], [`tree`],
//! [`part`], [`pipe`]) and what survives a crash of it ([`marker`]); all of it within the limit of open files ([`descriptors`]).

pub mod descriptors;
pub mod destination;
mod directories;
pub mod marker;
mod names;
pub mod part;
pub mod pipe;
pub mod place;
pub mod source;
pub mod synthetic;
pub mod tree;
pub mod walk;
pub mod watch;
