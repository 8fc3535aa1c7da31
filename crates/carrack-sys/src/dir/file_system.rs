//! Which file system something is on, and what its times are worth.

use std::io;

use rustix::fd::AsFd;

use crate::retry;

/// One file system, as it is mounted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Tells it from others of this host, over reboots where the file system knows itself; 0 where it does not say.
    pub id: u64,
    /// The number of its kind, as statfs(2) has it; 0 where the system has none.
    pub kind: u32,
    /// Whether a file that has changed shows it.
    pub change_times: ChangeTimes,
    /// All that it holds lies in memory: nothing can be read back past the cache.
    pub in_memory: bool,
    /// ext2 to ext4, XFS, Btrfs or tmpfs: of this kernel alone, without a server or a program behind them. That a
    /// regular file was opened with `O_NONBLOCK` means nothing to them, and they keep the permissions that it is given.
    pub plain: bool,
    /// ext2 to ext4: a file that has lost its last name is freed by whoever took it, and not by a thread of the kernel.
    pub frees_at_once: bool,
}

/// What a file system makes of the time of a file's last change (`ctime`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeTimes {
    /// Every change of content or attributes moves it, and nobody can put it back.
    Kept,
    /// Each file has that of one of several file systems, and of which is not told (overlayfs). Those that are made at
    /// once and never written to show neither a time of birth nor a time of change other than that of modification.
    Layered,
    /// What keeps it is behind the system (FUSE, SMB), or not known. Some show the modification time in its place.
    Unknown,
    /// It does not move with each change: it is not stored, or writes through a mapping of the file do not touch it.
    Useless,
}

// Magic numbers of statfs(2) and of the kernel's file systems.
#[cfg(target_os = "linux")]
mod magic {
    /// ext2, ext3, ext4, xfs, btrfs, zfs, f2fs, bcachefs, jfs, nilfs, reiserfs, ocfs2, gfs2, NFS, Ceph, Lustre, GPFS.
    pub const KEPT: [u32; 16] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x2fc1_2fc1,
        0xf2f5_2010,
        0xca45_1a4e,
        0x3153_464a,
        0x3434,
        0x5265_4973,
        0x7461_636f,
        0x0116_1970,
        0x6969,
        0x00c3_6400,
        0x0bd0_0bd0,
        0x4750_4653,
        0x1983_0326,
    ];
    /// ext2 to ext4.
    pub const EXT: u32 = 0xef53;
    /// ext2 to ext4, XFS, Btrfs, tmpfs.
    pub const PLAIN: [u32; 4] = [EXT, 0x5846_5342, 0x9123_683e, 0x0102_1994];
    /// overlayfs.
    pub const LAYERED: u32 = 0x794c_7630;
    /// tmpfs, ramfs, hugetlbfs.
    pub const MEMORY: [u32; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];
    /// FAT, exFAT, squashfs, cramfs, erofs, ISO 9660, romfs: made at once and mounted in another's
    /// place, or without such a time.
    pub const USELESS: [u32; 7] = [0x4d44, 0x2011_bab0, 0x7371_7368, 0x28cd_3d45, 0xe0f5_e1e2, 0x9660, 0x7275];
}

/// Asks which file system something open is on.
pub fn file_system(open: impl AsFd) -> io::Result<FileSystem> {
    let id = retry(|| rustix::fs::fstatvfs(open.as_fd()))?.f_fsid;
    #[cfg(target_os = "linux")]
    {
        // The number has 32 bits, in a field that is wider on most machines, and signed.
        let found = retry(|| rustix::fs::fstatfs(open.as_fd()))?.f_type as u32;
        let in_memory = magic::MEMORY.contains(&found);
        let change_times = if magic::KEPT.contains(&found) {
            ChangeTimes::Kept
        } else if found == magic::LAYERED {
            ChangeTimes::Layered
        } else if in_memory || magic::USELESS.contains(&found) {
            ChangeTimes::Useless
        } else {
            ChangeTimes::Unknown
        };
        let plain = magic::PLAIN.contains(&found);
        Ok(FileSystem { id, kind: found, change_times, in_memory, plain, frees_at_once: found == magic::EXT })
    }
    #[cfg(not(target_os = "linux"))]
    Ok(FileSystem {
        id,
        kind: 0,
        change_times: ChangeTimes::Unknown,
        in_memory: false,
        plain: false,
        frees_at_once: false,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn file_system_tells_memory_from_a_disk_and_one_from_another() {
        let proc = file_system(File::open("/proc").unwrap()).unwrap();
        assert_eq!((proc.change_times, proc.in_memory, proc.plain), (ChangeTimes::Unknown, false, false));
        let here = file_system(File::open(env!("CARGO_MANIFEST_DIR")).unwrap()).unwrap();
        assert_eq!(here, file_system(File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap()).unwrap());
        if let Ok(shm) = File::open("/dev/shm") {
            let shm = file_system(shm).unwrap();
            assert_eq!((shm.change_times, shm.in_memory, shm.plain), (ChangeTimes::Useless, true, true));
            assert_ne!(shm.id, here.id);
        }
    }
}
