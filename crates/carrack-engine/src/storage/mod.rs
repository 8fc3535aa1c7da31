//! Files: where paths lead ([`place`]), what is there ([`walk`], [`source`]), how it gets written ([`destination`], [`tree`],
//! [`part`], [`pipe`]), what it is known by later ([`identity`]), what survives a crash of it ([`marker`]) and is collected when nobody wants
//! it ([`collect`]); all of it within the limit of open files ([`descriptors`]). What is about files of a file system stands in [`posix`].

pub mod destination;
pub mod pipe;
pub mod posix;
pub mod synthetic;

pub(crate) use posix::names;
pub use posix::{
    collect, descriptors, identity, marker, overlap, part, past_cache, place, settle, source, times, tree, walk, watch,
};
