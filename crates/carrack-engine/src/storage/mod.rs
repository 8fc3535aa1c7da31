//! Files: where paths lead ([`place`]), what is there ([`walk`], [`source`]), and how it gets written ([`destination`]); all of
//! it within the limit of open files ([`descriptors`]).

pub mod descriptors;
pub mod destination;
mod directories;
pub mod place;
pub mod source;
pub mod synthetic;
pub mod walk;
