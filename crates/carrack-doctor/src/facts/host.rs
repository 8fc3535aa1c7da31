//! A host apart from its network: processors, memory, the limits of a session, the clock.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::HostFacts;
use crate::known::{Known, Unknown};

/// How far a clock is from the one of the host where the question was asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockOffset {
    /// Seconds that it is ahead at least; negative if it is behind; 0 if both may be the same.
    pub least: f64,
    /// How wide the moment is in which it was read, in seconds.
    pub within: f64,
}

/// Processors by their numbers, as the kernel writes them: `0-7,16-23`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorList(Vec<RangeInclusive<u64>>);

impl ProcessorList {
    /// `None` for what is no such list.
    pub fn parse(text: &str) -> Option<Self> {
        let range = |range: &str| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some(first..=last)
        };
        text.trim().split(',').map(range).collect::<Option<Vec<_>>>().map(Self)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, range| sum.saturating_add(range.end() - range.start()).saturating_add(1))
    }

    /// The only one; `None` of several.
    pub fn only(&self) -> Option<u64> {
        (self.count() == 1).then(|| *self.0[0].start())
    }

    /// Whether any is in both.
    pub fn meets(&self, other: &Self) -> bool {
        let overlap = |a: &RangeInclusive<u64>, b: &RangeInclusive<u64>| a.start() <= b.end() && b.start() <= a.end();
        self.0.iter().any(|own| other.0.iter().any(|others| overlap(own, others)))
    }

    /// The most that stand in a row: the first and the last.
    pub fn longest(&self) -> (u64, u64) {
        let longest = self.0.iter().rev().max_by_key(|range| range.end() - range.start());
        longest.map_or((0, 0), |range| (*range.start(), *range.end()))
    }
}

impl<'a> HostFacts<'a> {
    /// Which governor how many processors have.
    pub fn governors(&self) -> Known<Vec<(&'a str, u64)>> {
        let lines = self.text("processor/governors")?.lines();
        Ok(lines
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(name, n)| Some((name, n.parse().ok()?)))
            .collect())
    }

    /// Whether the processors have this flag, as `/proc/cpuinfo` names it.
    pub fn has_flag(&self, flag: &str) -> Known<bool> {
        let text = self.text("proc/cpuinfo")?;
        let flags = text.lines().filter_map(|line| line.split_once(':'));
        let mut flags = flags.filter(|(name, _)| matches!(name.trim(), "flags" | "Features"));
        let (_, flags) = flags.next().ok_or_else(|| Unknown("/proc/cpuinfo has no flags".to_owned()))?;
        Ok(flags.split_whitespace().any(|one| one == flag))
    }

    /// The number of processors that work.
    pub fn processors(&self) -> Known<u64> {
        let online = self.text("sys/devices/system/cpu/online").map(ProcessorList::parse)?;
        online.map(|online| online.count()).ok_or_else(|| Unknown("nobody tells how many processors work".to_owned()))
    }

    /// Bytes of a line of `/proc/meminfo`.
    pub fn memory(&self, name: &str) -> Known<u64> {
        let text = self.text("proc/meminfo")?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        kilobytes.map(|kb| kb.saturating_mul(1024)).ok_or_else(|| Unknown(format!("/proc/meminfo has no {name}")))
    }

    /// How long the host has been up.
    pub fn uptime(&self) -> Known<Duration> {
        let text = self.text("proc/uptime")?;
        let seconds = text.split_whitespace().next().and_then(|word| word.parse().ok());
        let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        time.ok_or_else(|| Unknown("/proc/uptime is no time".to_owned()))
    }

    /// Bytes of a page of memory.
    pub fn page_bytes(&self) -> u64 {
        self.number("page-bytes")
            .ok()
            .and_then(|bytes| u64::try_from(bytes).ok())
            .filter(|bytes| *bytes > 0)
            .unwrap_or(4096)
    }

    /// The soft and the hard limit of this session, by its name in `/proc/self/limits`; `None` for no limit.
    pub fn session_limit(&self, name: &str) -> Known<(Option<u64>, Option<u64>)> {
        let line = self.text("proc/self/limits")?.lines().find_map(|line| line.strip_prefix(name));
        let mut words = line.unwrap_or_default().split_whitespace();
        let mut next = || match words.next() {
            Some("unlimited") => Ok(None),
            Some(word) => word.parse().map(Some).map_err(|_| Unknown(format!("{name} is not a number"))),
            None => Err(Unknown(format!("the limits name no {}", name.to_lowercase()))),
        };
        Ok((next()?, next()?))
    }

    /// The values of a file in this session's control group and those around it; of each the group.
    pub fn groups(&self, file: &str) -> Vec<(&'a str, &'a str)> {
        let own = format!("/{file}");
        let groups = self.evidence.iter().filter_map(|(name, _)| name.strip_suffix(own.as_str()));
        let groups = groups.filter(|group| group.starts_with("sys/fs/cgroup"));
        groups.filter_map(|group| Some((group, self.text(&format!("{group}{own}")).ok()?))).collect()
    }

    /// The smallest of the limits that such files set, and its group; `None` if none does.
    pub fn group_limit(&self, files: &[&str]) -> Known<Option<(u64, &'a str)>> {
        // Without a look at the groups nobody can say that there is no limit.
        self.text("proc/self/cgroup")?;
        let all = files.iter().flat_map(|file| self.groups(file));
        let numbers = all.filter_map(|(group, text)| Some((text.parse::<u64>().ok()?, group)));
        // Version 1 writes "no limit" as a number near the largest.
        Ok(numbers.filter(|(limit, _)| *limit < 1 << 62).min())
    }

    /// Whether the kernel knows of somebody who keeps the clock right, and how wrong it may be.
    pub fn clock_discipline(&self) -> Known<(bool, Duration)> {
        let is = self.line_number("clock/discipline", "synchronised")? != 0;
        Ok((is, Duration::from_micros(self.line_number("clock/discipline", "maximum-error-us")?)))
    }

    /// How far its clock is from the one of the host that asked.
    pub fn clock_offset(&self) -> Known<ClockOffset> {
        let time = |name: &str| {
            let text = self.text(name)?;
            text.parse::<u128>().map(|ns| ns as f64 / 1e9).map_err(|_| Unknown(format!("{name} is no time")))
        };
        let (now, asked, answered) = (time("clock/now")?, time("clock/asked")?, time("clock/answered")?);
        let least = if now > answered { now - answered } else { (now - asked).min(0.0) };
        Ok(ClockOffset { least, within: (answered - asked).max(0.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::situation::{Host, HostSide};

    #[test]
    fn processors_are_counted_and_compared_by_ranges() {
        let list = |text: &str| ProcessorList::parse(text).unwrap();
        assert_eq!((list("0-7,16-24\n").count(), list("0-7,16-24").longest()), (17, (16, 24)));
        assert_eq!((list("3").only(), list("3-4").only(), list("3,4").only()), (Some(3), None, None));
        assert_eq!(list("0-1,4-5").longest(), (0, 1));
        assert!(
            list("0-3,9").meets(&list("9-12")) && list("5").meets(&list("0-7")) && !list("0-3").meets(&list("4-9"))
        );
        for none in ["", "3-1", "a", "1,,2", "-1", "1-"] {
            assert_eq!(ProcessorList::parse(none), None, "{none:?}");
        }
        assert_eq!(list("0-18446744073709551615,1").count(), u64::MAX);
    }

    #[test]
    fn limits_of_groups_and_sessions_are_the_smallest_that_there_are() {
        let host = Host::saying(&[
            ("proc/self/cgroup", "0::/a/b"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "1073741824\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("proc/self/limits", "Max processes             unlimited            4096                 processes"),
        ]);
        let facts = HostFacts::of(HostSide::Near, &host).unwrap();
        let limit = facts.group_limit(&["memory.max", "memory.limit_in_bytes"]);
        assert_eq!(limit, Ok(Some((1 << 30, "sys/fs/cgroup/a"))));
        assert_eq!(facts.group_limit(&["pids.max"]), Ok(None));
        assert_eq!(facts.session_limit("Max processes"), Ok((None, Some(4096))));
        assert!(facts.session_limit("Max open files").is_err());
    }

    #[test]
    fn clock_is_off_by_no_less_than_what_cannot_be_the_way() {
        let offset = |now: &str| {
            let host =
                Host::saying(&[("clock/now", now), ("clock/asked", "1000000000"), ("clock/answered", "3000000000")]);
            HostFacts::of(HostSide::Far, &host).unwrap().clock_offset().unwrap().least
        };
        assert_eq!((offset("2000000000"), offset("8000000000"), offset("500000000")), (0.0, 5.0, -0.5));
    }
}
