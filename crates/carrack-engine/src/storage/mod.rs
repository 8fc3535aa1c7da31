//! Files: where paths lead ([`place`]), what is there ([`walk`], [`source`]), and how it gets written ([`destination`]).

pub mod destination;
pub mod place;
pub mod source;
pub mod synthetic;
pub mod walk;
