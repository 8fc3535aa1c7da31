//! Makers of faults, for tests: a network that resets and stalls, a disk that lies, a machine that loses its power; and
//! the suite that a store passes.
//!
//! Each maker is a value that a test holds: the fault is switched by methods while the program runs, and all of it is
//! gone when the value is dropped. Nothing here is linked into the program. What chooses by chance takes a seed, so
//! that a run can be had again as far as the machine allows it. Makers panic when they cannot do their work: a test
//! whose fault did not happen has shown nothing.
//!
//! [`fuse`], [`image`], [`invented`], [`threads`] and [`throttle`] need root, and so do [`netns`] and [`link`]: a test
//! asks [`can_mount`] or [`netns::can_make`] first, which say so where it has to be passed over.

#![allow(clippy::unwrap_used)]

pub mod fuse;
pub mod image;
pub mod invented;
pub mod link;
pub mod netns;
pub mod node;
pub mod proxy;
pub mod pty;
pub mod race;
pub mod refused;
pub mod stores;
pub mod strace;
pub mod threads;
pub mod throttle;
pub mod watch;

/// Gives something an extended attribute, of a link to the link itself; false where its file system keeps none of them.
pub fn set_xattr(path: &std::path::Path, name: &str, value: &[u8]) -> bool {
    match rustix::fs::lsetxattr(path, name, value, rustix::fs::XattrFlags::empty()) {
        Ok(()) => true,
        Err(rustix::io::Errno::NOTSUP) => {
            println!("skipped: {} keeps no {name}", path.display());
            false
        }
        Err(error) => panic!("{}: {name}: {error}", path.display()),
    }
}

/// Whether file systems can be mounted here. If not, why is printed, for the test that is passed over.
pub fn can_mount(what: &str) -> bool {
    let can = carrack_sys::host::user_id() == 0;
    if !can {
        println!("skipped: {what} needs root");
    }
    can
}
