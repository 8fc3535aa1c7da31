//! The storage below the directory that data goes to or comes from.

use super::HostFacts;
use crate::known::{Known, Unknown};

/// The mount that the directory lies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount<'a> {
    /// Where it is mounted.
    pub point: &'a str,
    /// The kind of file system: `ext4`, `zfs`, `nfs4`.
    pub kind: &'a str,
    /// What is mounted: a device, a data set, a server's directory.
    pub source: &'a str,
    options: [&'a str; 2],
}

impl<'a> Mount<'a> {
    /// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
    fn parse(line: &'a str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(4);
        let (point, own) = (left.next()?, left.next()?);
        let mut right = right.split(' ');
        let (kind, source) = (right.next()?, right.next()?);
        Some(Self { point, kind, source, options: [own, right.next().unwrap_or_default()] })
    }

    /// Options of the mount, and of the file system.
    pub fn options(&self) -> impl Iterator<Item = &'a str> {
        self.options.into_iter().flat_map(|options| options.split(','))
    }

    /// Whether it has this option.
    pub fn has(&self, option: &str) -> bool {
        self.options().any(|own| own == option)
    }

    /// Whether another host keeps the files.
    pub fn is_remote(&self) -> bool {
        matches!(
            self.kind,
            "nfs" | "nfs4" | "cifs" | "smb3" | "lustre" | "gpfs" | "beegfs" | "ceph" | "9p" | "virtiofs"
        ) || self.kind.starts_with("fuse.")
    }
}

/// Room in a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that there are.
    pub bytes: u64,
    /// Bytes that this user may have.
    pub bytes_available: u64,
    /// Files that there may be; 0 where there is no such number.
    pub files: u64,
    /// Files that may be added.
    pub files_available: u64,
}

/// A block device below the directory.
#[derive(Clone, Copy, Debug)]
pub struct BlockDevice<'a> {
    /// As the kernel names it.
    pub name: &'a str,
    facts: HostFacts<'a>,
}

impl<'a> BlockDevice<'a> {
    /// The text in one of its files.
    pub fn text(&self, file: &str) -> Known<&'a str> {
        self.facts.text(&format!("sys/class/block/{}/{file}", self.name))
    }

    /// The number in one of its files.
    pub fn number(&self, file: &str) -> Known<i64> {
        self.facts.number(&format!("sys/class/block/{}/{file}", self.name))
    }

    /// Whether it is put together from others.
    pub fn is_array(&self) -> bool {
        self.text("md/level").is_ok()
    }

    /// Whether it is a disk by itself: no array, no partition, no mapping.
    pub fn is_disk(&self) -> bool {
        !self.is_array() && self.text("queue/scheduler").is_ok() && !self.name.starts_with("dm-")
    }

    /// Whether a hypervisor has it, of which nobody here knows what is behind it: virtio and Xen.
    pub fn is_virtual(&self) -> bool {
        ["vd", "xvd"].iter().any(|kind| self.name.starts_with(kind))
    }

    /// Whether it turns. Virtual disks say so, whatever they are.
    pub fn is_rotating(&self) -> Known<bool> {
        Ok(!self.is_virtual() && self.number("queue/rotational")? != 0)
    }

    /// Bytes that are read ahead; `None` of a partition, for which its disk decides.
    pub fn read_ahead(&self) -> Known<Option<u64>> {
        let kib = self.facts.if_any(&format!("sys/class/block/{}/queue/read_ahead_kb", self.name))?;
        let kib = kib.map(|_| self.number("queue/read_ahead_kb")).transpose()?;
        Ok(kib.map(|kib| u64::try_from(kib).unwrap_or(0).saturating_mul(1024)))
    }

    /// The scheduler in use: the word in brackets.
    pub fn scheduler(&self) -> Known<&'a str> {
        let text = self.text("queue/scheduler")?;
        let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(chosen, _)| chosen);
        Ok(chosen.unwrap_or(text))
    }

    /// The node of memory that its controller is at.
    pub fn numa_node(&self) -> Known<i64> {
        self.facts.number(&format!("block/{}/numa-node", self.name))
    }
}

impl<'a> HostFacts<'a> {
    /// The directory, by its real path.
    pub fn directory(&self) -> Known<&'a str> {
        match self.evidence.get("directory") {
            Some(_) => self.text("directory"),
            None => self.text("directory/path").map_err(|why| match self.evidence.get("directory/path") {
                None => Unknown("no directory was named".to_owned()),
                Some(_) => why,
            }),
        }
    }

    /// The mount of the directory.
    pub fn mount(&self) -> Known<Mount<'a>> {
        self.directory()?;
        let line = self.text("directory/mount")?;
        Mount::parse(line).ok_or_else(|| Unknown("nobody tells what is mounted there".to_owned()))
    }

    /// The room of the directory's file system.
    pub fn room(&self) -> Known<Room> {
        self.directory()?;
        let number = |key: &str| self.line_number("directory/statvfs", key);
        let block = number("block-size")?;
        Ok(Room {
            bytes: number("blocks")?.saturating_mul(block),
            bytes_available: number("available")?.saturating_mul(block),
            files: number("files")?,
            files_available: number("files-available")?,
        })
    }

    /// The block devices below the directory, the mounted one first.
    pub fn devices(&self) -> Known<Vec<BlockDevice<'a>>> {
        self.directory()?;
        let names = self.text("directory/devices")?.lines();
        Ok(names.map(|name| BlockDevice { name, facts: *self }).collect())
    }

    /// A property of the directory's ZFS file system.
    pub fn dataset(&self, property: &str) -> Known<&'a str> {
        self.property("command/zfs get", property)
    }

    /// A property of its pool.
    pub fn pool(&self, property: &str) -> Known<&'a str> {
        self.property("command/zpool get", property)
    }

    fn property(&self, command: &str, property: &str) -> Known<&'a str> {
        let lines = self.text(command)?.lines();
        let mut pairs = lines.filter_map(|line| line.split_once('\t'));
        let found = pairs.find(|(name, _)| *name == property).map(|(_, value)| value.trim());
        found.ok_or_else(|| Unknown(format!("{command} tells no {property}")))
    }

    /// Bytes a second that the directory's storage was measured at: `read` or `write`.
    pub fn storage_rate(&self, direction: &str) -> Known<f64> {
        self.measured(&format!("measured/storage/{direction}"), "use --measure-host to measure the storage")
    }

    /// Bytes a second that one processor was measured at, for a kind of work as `bench cpu` names it.
    pub fn work_rate(&self, work: &str) -> Known<f64> {
        self.measured(&format!("measured/processor/{work}"), "use --measure-host to measure the processors")
    }

    fn measured(&self, name: &str, otherwise: &str) -> Known<f64> {
        if self.evidence.get(name).is_none() {
            return Err(Unknown(format!("nobody measured it: {otherwise}")));
        }
        let text = self.text(name)?;
        let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
        rate.ok_or_else(|| Unknown(format!("{name} is no rate")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_has_options_of_its_own_and_of_its_file_system() {
        let line = "36 35 98:0 / /data rw,noatime master:1 - ext4 /dev/md127 rw,data=writeback";
        let mount = Mount::parse(line).unwrap();
        assert_eq!((mount.point, mount.kind, mount.source), ("/data", "ext4", "/dev/md127"));
        assert!(mount.has("noatime") && mount.has("data=writeback") && !mount.has("data") && !mount.is_remote());
        assert_eq!(Mount::parse("nothing"), None);
    }
}
