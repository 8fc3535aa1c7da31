//! Managed transfers from the command line: which service is meant, what it is asked, and how its answers are shown.

pub mod grants;
pub mod identifier;
pub mod secret;
pub mod service;
pub mod show;
pub mod table;
