//! The source of a run: built before the first session, changed before the last.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use carrack_faults::image::{Image, Kind, Scarce};

use super::case::{Case, Change, Content, PAGE, Unit};
use crate::support::tool;

const MIB: u64 = 1 << 20;
/// What keeps the session of small files from ending.
const BRAKE: &str = "brake";
const BRAKE_BYTES: u64 = 600 * MIB;

/// A bind mount, gone with the value.
struct Bound(PathBuf);

impl Bound {
    fn new(from: &Path, at: &Path) -> Self {
        tool(Command::new("mount").arg("--bind").arg(from).arg(at));
        Self(at.into())
    }

    /// Gone at once, and from all.
    fn end(self) {
        tool(Command::new("umount").arg(&self.0));
        std::mem::forget(self);
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// The source's directories, and what is mounted there.
pub struct Source {
    cases: Vec<Case>,
    bound: Vec<(Unit, Bound)>,
    /// With whole seconds only.
    coarse: Image,
    /// Taken from the system to be changed as no clock would.
    offline: Image,
    memory: Scarce,
    /// All else lies below it.
    disk: PathBuf,
    /// When the first version of everything had been written, in seconds since 1970.
    written: i64,
}

impl Source {
    /// Through a link, which can be switched, to what is copied.
    pub const LINK: &str = "current";
    const TREE: &str = "tree";
    /// Where directories wait until they are part of the source.
    const HOLD: &str = "hold";
    /// Where what takes another's place waits.
    const SPARE: &str = "spare";
    const AWAY: &str = "away";

    /// Writes the first version of all cases, and the second where it is there before. Nothing of it is seen yet.
    pub fn prepare(disk: &Path, mounts: &Path, cases: &[Case], content: &Content) -> Option<Self> {
        let mut source = Self {
            cases: cases.to_vec(),
            bound: Vec::new(),
            coarse: Image::of_whole_seconds(mounts, "coarse", 400)?,
            offline: Image::new(mounts, "offline", Kind::Ext4, 400)?,
            memory: Scarce::new(&mounts.join("memory"), 800 * MIB, 10_000)?,
            disk: disk.into(),
            written: 0,
        };
        for directory in [Self::TREE, Self::HOLD, Self::SPARE, Self::AWAY] {
            fs::create_dir(disk.join(directory)).unwrap();
        }
        for unit in source.units() {
            fs::create_dir(source.hold(unit)).unwrap();
            if has_spare(unit.change) {
                fs::create_dir(source.spare(unit)).unwrap();
            }
        }
        for case in cases {
            content.write_first(case, &source.hold(case.unit()).join(case.name()));
            if has_spare(case.change) {
                content.write_second(case, &source.spare(case.unit()).join(case.name()));
            }
        }
        // Never written: it reads as zeros, and is no hole.
        let brake = File::create_new(source.tree().join(BRAKE)).unwrap();
        assert!(carrack_sys::file::preallocate(&brake, BRAKE_BYTES).unwrap());
        symlink(Self::TREE, disk.join(Self::LINK)).unwrap();
        source.written = fs::symlink_metadata(disk.join(Self::LINK)).unwrap().ctime();
        Some(source)
    }

    fn units(&self) -> Vec<Unit> {
        let mut units: Vec<Unit> = Vec::new();
        for unit in self.cases.iter().map(Case::unit) {
            if !units.contains(&unit) {
                units.push(unit);
            }
        }
        units
    }

    fn tree(&self) -> PathBuf {
        self.disk.join(Self::TREE)
    }

    fn at(&self, unit: Unit) -> PathBuf {
        self.tree().join(unit.name())
    }

    fn hold(&self, unit: Unit) -> PathBuf {
        let place = match unit.change {
            Change::Coarse | Change::Clamped => self.coarse.path().into(),
            Change::ClockSetBack => self.offline.path().into(),
            Change::MappedInMemory => self.memory.path().into(),
            _ => self.disk.join(Self::HOLD),
        };
        place.join(unit.name())
    }

    fn spare(&self, unit: Unit) -> PathBuf {
        let in_memory = unit.change == Change::MountedOver;
        let place = if in_memory { self.memory.path().into() } else { self.disk.join(Self::SPARE) };
        place.join(unit.name())
    }

    /// Whether the clock has gone on since: what changed just before a session is not believed by anybody.
    pub fn is_old(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64;
        now > self.written + 3
    }

    /// Where the source of a case is.
    pub fn path(&self, case: &Case) -> PathBuf {
        self.disk.join(Self::LINK).join(case.path())
    }

    /// These directories are part of the source from now on.
    pub fn show(&mut self, small: bool) {
        for unit in self.units().into_iter().filter(|unit| unit.small == small) {
            if is_bound(unit.change) {
                fs::create_dir(self.at(unit)).unwrap();
                self.bind(unit, &self.hold(unit));
            } else {
                fs::rename(self.hold(unit), self.at(unit)).unwrap();
            }
        }
        if !small {
            fs::remove_file(self.tree().join(BRAKE)).unwrap();
        }
    }

    fn bind(&mut self, unit: Unit, from: &Path) {
        self.bound.push((unit, Bound::new(from, &self.at(unit))));
    }

    fn unbind(&mut self, unit: Unit) {
        let place = self.bound.iter().position(|(bound, _)| *bound == unit).unwrap();
        self.bound.remove(place).1.end();
    }

    /// Changes every case, and sees that content has changed and nothing else that must not.
    pub fn change(&mut self, content: &Content) {
        let look = |source: &Self, case: &Case| fs::metadata(source.path(case)).unwrap();
        let before: Vec<fs::Metadata> = self.cases.iter().map(|case| look(self, case)).collect();
        self.cases.iter().for_each(|case| self.change_file(case, content));
        self.units().into_iter().for_each(|unit| self.change_directory(unit));
        for (case, before) in self.cases.iter().zip(before) {
            let now = look(self, case);
            let seen = |stat: &fs::Metadata| (stat.len(), stat.mtime(), stat.mtime_nsec());
            assert_eq!(seen(&now), seen(&before), "{case:?}");
            let same = content.is_first(case, &fs::read(self.path(case)).unwrap());
            assert_eq!(same, case.change == Change::Unchanged, "{case:?}");
            assert!(case.change != Change::MappedInMemory || now.ctime() == before.ctime(), "{case:?}");
            assert!(case.change != Change::ClockSetBack || now.ctime() < before.ctime(), "{case:?}");
        }
    }

    fn change_file(&self, case: &Case, content: &Content) {
        let path = self.path(case);
        let put_back = || File::options().write(true).open(&path).unwrap().set_modified(case.time()).unwrap();
        match case.change {
            Change::Overwritten
            | Change::EndOverwritten
            | Change::Filled
            | Change::Coarse
            | Change::Clamped
            | Change::ClockSetBack => content.write_over(case, &path),
            Change::Renamed => {
                let other = path.with_extension("new");
                content.write_second(case, &other);
                fs::rename(&other, &path).unwrap();
            }
            Change::HardLinked => {
                fs::remove_file(&path).unwrap();
                fs::hard_link(self.spare(case.unit()).join(case.name()), &path).unwrap();
            }
            Change::Mapped | Change::MappedInMemory => {
                let tail = case.tail();
                // Read before: in memory the pages may then be written, and nobody is told.
                let map = format!("mmap -rw 0 {}", case.size().next_multiple_of(PAGE));
                let read = format!("mread {} {}", tail.start, tail.len());
                let write = format!("mwrite -S 0x5a {} {}", tail.start, tail.len());
                tool(Command::new("xfs_io").args(["-c", &map, "-c", &read, "-c", &write]).arg(&path));
                // In memory it has not moved, and setting it would move another.
                if case.change == Change::Mapped {
                    put_back();
                }
            }
            Change::Punched => {
                let punch = format!("fpunch {} {}", case.tail().start, case.tail().len());
                tool(Command::new("xfs_io").args(["-c", &punch]).arg(&path));
                put_back();
            }
            _ => {}
        }
    }

    fn change_directory(&mut self, unit: Unit) {
        let (at, spare) = (self.at(unit), self.spare(unit));
        match unit.change {
            Change::DirectoryExchanged | Change::ExchangedForHoles | Change::ExchangedForData => {
                fs::rename(&at, self.disk.join(Self::AWAY).join(unit.name())).unwrap();
                fs::rename(spare, at).unwrap();
            }
            Change::MountedOver => self.bind(unit, &spare),
            Change::BindExchanged => {
                self.unbind(unit);
                self.bind(unit, &spare);
            }
            // Of both units at once: the file system has to be let go.
            Change::ClockSetBack if unit.small => self.set_clock_back(),
            Change::LinkSwitched if unit.small => {
                fs::remove_file(self.disk.join(Self::LINK)).unwrap();
                symlink(Self::SPARE, self.disk.join(Self::LINK)).unwrap();
            }
            _ => {}
        }
    }

    /// What has been written was written an hour before the first session.
    fn set_clock_back(&mut self) {
        let units: Vec<Unit> = self.units().into_iter().filter(|unit| unit.change == Change::ClockSetBack).collect();
        units.iter().for_each(|&unit| self.unbind(unit));
        let hour_ago = format!("@{}", self.written - 3600);
        let cases = self.cases.iter().filter(|case| case.change == Change::ClockSetBack);
        let fields: Vec<_> = cases.map(|case| (case.path(), "ctime", hour_ago.clone())).collect();
        self.offline.set_inode_fields(&fields);
        units.iter().for_each(|&unit| self.bind(unit, &self.hold(unit)));
    }
}

/// Whether another directory is there from the start, to take its place.
fn has_spare(change: Change) -> bool {
    matches!(
        change,
        Change::HardLinked
            | Change::DirectoryExchanged
            | Change::ExchangedForHoles
            | Change::ExchangedForData
            | Change::MountedOver
            | Change::BindExchanged
            | Change::LinkSwitched
    )
}

/// Whether its directory is mounted where it is seen.
fn is_bound(change: Change) -> bool {
    matches!(
        change,
        Change::Coarse | Change::Clamped | Change::ClockSetBack | Change::MappedInMemory | Change::BindExchanged
    )
}
