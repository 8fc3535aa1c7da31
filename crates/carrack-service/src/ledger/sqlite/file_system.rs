//! Whether a file system bears the ledger. SQLite's log needs locks and shared memory that all who use the file see at
//! once; network file systems have neither, and damage it in silence.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{major, minor};

/// Magic numbers of statfs(2) of file systems that are shared over a network.
const NETWORK: &[(u64, &str)] = &[
    (0x6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x517b, "SMB"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x00c3_6400, "Ceph"),
    (0x0102_1997, "9p"),
    (0x1983_0326, "BeeGFS"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x564c, "NCP"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x2003_0528, "OrangeFS"),
    (0xaad7_aaea, "PanFS"),
];
const FUSE: u64 = 0x6573_5546;
/// Of FUSE, those that store on this host.
const LOCAL_FUSE: &[&str] = &["fuseblk", "fuse.fuse-overlayfs", "fuse.bindfs", "fuse.gocryptfs", "fuse.cryfs"];

/// The name of the file system where it is one that cannot bear a ledger.
///
/// # Errors
/// Those of statfs(2) and stat(2).
pub fn unfit(directory: &Path) -> std::io::Result<Option<String>> {
    let found = rustix::fs::statfs(directory)?;
    #[expect(clippy::cast_sign_loss, reason = "a number of 32 bits, which some systems extend by its sign")]
    let magic = found.f_type as u64 & 0xffff_ffff;
    if magic != FUSE {
        return Ok(judged(magic, None));
    }
    let device = fs::metadata(directory)?.dev();
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(judged(magic, type_of(&mounts, major(device), minor(device))))
}

fn judged(magic: u64, kind: Option<&str>) -> Option<String> {
    if magic == FUSE {
        let kind = kind.unwrap_or("fuse");
        return (!LOCAL_FUSE.contains(&kind)).then(|| kind.to_owned());
    }
    NETWORK.iter().find(|(number, _)| *number == magic).map(|(_, name)| (*name).to_owned())
}

/// The type of the mount with this device, from `/proc/self/mountinfo`.
fn type_of(mounts: &str, major: u32, minor: u32) -> Option<&str> {
    let device = format!("{major}:{minor}");
    mounts.lines().find_map(|line| {
        let (fields, rest) = line.split_once(" - ")?;
        (fields.split(' ').nth(2)? == device).then(|| rest.split(' ').next())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        29 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
        41 29 0:57 / /home/u/far rw,nosuid - fuse.sshfs u@host: rw,user_id=0\n\
        42 29 0:58 / /home/u/ntfs rw shared:9 master:3 - fuseblk /dev/sdb1 rw\n";

    #[test]
    fn file_system_of_the_network_is_unfit() {
        for (magic, name) in [(0x6969, "NFS"), (0x0bd0_0bd0, "Lustre"), (0x4750_4653, "GPFS"), (0x0102_1997, "9p")] {
            assert_eq!(judged(magic, None).as_deref(), Some(name));
        }
        for local in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0x2fc1_2fc1] {
            assert_eq!(judged(local, None), None, "{local:x}");
        }
    }

    #[test]
    fn file_system_of_fuse_is_judged_by_its_type() {
        assert_eq!(type_of(MOUNTS, 0, 57), Some("fuse.sshfs"));
        assert_eq!(judged(FUSE, type_of(MOUNTS, 0, 57)).as_deref(), Some("fuse.sshfs"));
        assert_eq!(judged(FUSE, type_of(MOUNTS, 0, 58)), None);
        assert_eq!(judged(FUSE, type_of(MOUNTS, 0, 59)).as_deref(), Some("fuse"));
        assert_eq!(judged(FUSE, Some("fuse.rclone")).as_deref(), Some("fuse.rclone"));
    }

    #[test]
    fn file_system_of_this_host_is_fit() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(unfit(directory.path()).unwrap(), None);
    }
}
