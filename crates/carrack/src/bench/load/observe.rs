//! Other hosts over the time of a crowd: processors and who uses them, disks and network, as their kernels count them.
//! Nothing of Carrack's is needed there: ssh prints files of `/proc` and `/sys` once a second.

use carrack_sys::host;
use carrack_sys::sync::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use carrack_core::location::SshHost;
use carrack_engine::threads;

use crate::crowd::told::short;
use crate::fan::shell::ssh;

/// A process may end while it is printed, and an interface without a link tells no speed. Those of tunnels and of
/// containers tell one that means nothing, and have no device. So many processes that they would fill a part of the
/// network are left out.
const LINE: &str = "exec sh -c 'while cat /proc/uptime /proc/stat /proc/diskstats /proc/net/dev; do \
    for d in /sys/class/net/*/device; do grep -s . \"${d%device}speed\" /dev/null; done; \
    grep -s . /sys/block/*/queue/rotational /dev/null; \
    set -- /proc/[0-9]*/stat; [ $# -gt 2000 ] || cat \"$@\" 2>/dev/null; \
    echo carrack-observe || exit; sleep 1; done'";
/// What its ssh may take to end.
const ENDS: Duration = Duration::from_secs(5);
const END: &str = "carrack-observe";
/// A host prints no more in a second.
const BLOCK_BYTES: usize = 4 << 20;
/// More than a week: who observes for longer sees the end.
const GLANCES_MAX: usize = 1 << 20;
/// Programs of a second that are kept: those that use most.
const PROGRAMS_MAX: usize = 5;
/// One that uses less of a processor is not kept.
const PROGRAM_LEAST: f64 = 0.02;

/// A host in about a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostGlance {
    /// Share of all processors that were at work.
    pub busy: f64,
    /// Bytes a second that all disks read, and wrote.
    pub disk: [f64; 2],
    /// Share of the time in which each disk had something to do, and whether it turns: then it can do no more.
    pub disks_busy: BTreeMap<String, (f64, bool)>,
    /// Bytes a second that each interface received, and sent.
    pub interfaces: BTreeMap<String, [f64; 2]>,
    /// Bytes a second that an interface can carry each way, where it tells.
    pub speeds: BTreeMap<String, f64>,
    /// Processors that the processes of a name kept busy: of those that used most.
    pub programs: BTreeMap<String, f64>,
}

/// What was seen of a host, or why nothing was.
pub type HostSeen = Result<Vec<(Instant, HostGlance)>, String>;

/// Observes a host until it is dropped.
pub struct HostObserver {
    /// The host.
    pub host: SshHost,
    child: Option<Child>,
    seen: Arc<Mutex<Vec<(Instant, HostGlance)>>>,
    /// Told when all that the host has printed is read.
    is_read: Option<Receiver<()>>,
    errors: Option<Receiver<String>>,
}

impl HostObserver {
    /// Begins to observe.
    pub fn start(to: &SshHost, rsh: &[String]) -> Result<Self, String> {
        let mut command = ssh(rsh, to, LINE).ok_or("the command that reaches other hosts is empty")?;
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let seen = Arc::default();
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let kept = Arc::clone(&seen);
        // Dropped, it ends what it has started.
        let mut observer = Self { host: to.clone(), child: Some(child), seen, is_read: None, errors: None };
        observer.is_read =
            output.map(|output| told("what a host says of itself", move || read(output, &kept))).transpose()?;
        observer.errors = errors.map(|errors| told("the messages of ssh", move || last_line(errors))).transpose()?;
        Ok(observer)
    }

    /// Ends, and hands out what was seen; or why nothing was.
    pub fn finish(mut self) -> HostSeen {
        self.end();
        // Something may hold the pipes.
        let _ = self.is_read.take().map(|is_read| is_read.recv_timeout(ENDS));
        let seen = std::mem::take(&mut *lock(&self.seen));
        let said = self.errors.take().and_then(|errors| errors.recv_timeout(ENDS).ok()).unwrap_or_default();
        match seen.is_empty() {
            false => Ok(seen),
            true if said.is_empty() => Err("it tells nothing of its processors: it has no /proc".to_owned()),
            true => Err(said),
        }
    }

    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The far side ends when it has nowhere to print to. Whatever the ssh command has started ends with it.
            host::end_group(child.id(), true);
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for HostObserver {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts a thread, which tells what it has found.
fn told<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Receiver<T>, String> {
    let (teller, found) = channel();
    let started = threads::start(name, move || drop(teller.send(work())));
    started.map(|_| found).map_err(|error| error.to_string())
}

fn last_line(errors: impl Read) -> String {
    let lines = BufReader::new(errors).split(b'\n').map_while(Result::ok);
    let last = lines.filter(|line| !line.trim_ascii().is_empty()).last().unwrap_or_default();
    short(&String::from_utf8_lossy(&last))
}

fn read(output: impl Read, seen: &Mutex<Vec<(Instant, HostGlance)>>) {
    let mut lines = BufReader::new(output);
    let (mut block, mut before) = (Vec::new(), None::<(Instant, Counters)>);
    let mut first = None::<(Instant, f64)>;
    loop {
        let from = block.len();
        match lines.by_ref().take(BLOCK_BYTES as u64).read_until(b'\n', &mut block) {
            Ok(0) | Err(_) => return,
            Ok(_) if block.len() > BLOCK_BYTES => return,
            Ok(_) => {}
        }
        if block[from..].trim_ascii() != END.as_bytes() {
            continue;
        }
        let counters = Counters::parse(&String::from_utf8_lossy(&block));
        block.clear();
        // By the host's own clock: what the network has held back comes all at once.
        let arrived = Instant::now();
        let (begin, up) = *first.get_or_insert((arrived, counters.up_seconds));
        let since = Duration::try_from_secs_f64(counters.up_seconds - up).unwrap_or_default();
        let now = (begin.checked_add(since).unwrap_or(arrived).min(arrived), counters);
        if let Some((_, counters)) = &before {
            let seconds = now.1.up_seconds - counters.up_seconds;
            let glance = now.1.since(counters, seconds);
            let mut seen = lock(seen);
            if seen.len() < GLANCES_MAX {
                seen.push((now.0, glance));
            }
        }
        before = Some(now);
    }
}

/// What the kernel has counted since the host began.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counters {
    /// Seconds since the host began.
    up_seconds: f64,
    /// Disks that turn.
    turning: BTreeSet<String>,
    /// Ticks at work, and idle.
    processors: [u64; 2],
    /// Processors that the host has.
    count: u32,
    /// By disk: bytes read, bytes written, and milliseconds in which it had something to do.
    disks: BTreeMap<String, [u64; 3]>,
    /// Bytes by interface: received, and sent.
    interfaces: BTreeMap<String, [u64; 2]>,
    /// Megabits a second by interface.
    speeds: BTreeMap<String, u64>,
    /// Name and ticks of each process.
    processes: BTreeMap<u32, (String, u64)>,
}

impl Counters {
    fn parse(text: &str) -> Self {
        let mut counters = Self::default();
        text.lines().for_each(|line| counters.take(line));
        let names: Vec<String> = counters.disks.keys().cloned().collect();
        counters.disks.retain(|name, _| is_disk(name, &names));
        counters
    }

    fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        let first = words.first().copied().unwrap_or_default();
        if let [up, idle] = words[..]
            && let (Ok(up), Ok(_)) = (up.parse::<f64>(), idle.parse::<f64>())
        {
            self.up_seconds = if up.is_finite() { up } else { 0.0 };
        } else if let Some((name, turns)) =
            line.strip_prefix("/sys/block/").and_then(|line| line.split_once("/queue/rotational:"))
        {
            self.turning.extend((turns.trim() == "1").then(|| short(name)));
        } else if first == "cpu" {
            // user nice system idle iowait irq softirq
            let busy = [1, 2, 3, 6, 7].map(number).into_iter().fold(0, u64::saturating_add);
            self.processors = [busy, number(4).saturating_add(number(5))];
        } else if first.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok()) {
            self.count = self.count.saturating_add(1);
        } else if let Some((process, name, ticks)) = process(line) {
            self.processes.insert(process, (short(name), ticks));
        } else if let Some((name, speed)) = line.strip_prefix("/sys/class/net/").and_then(|l| l.split_once("/speed:")) {
            // What has no link says -1.
            self.speeds.extend(speed.trim().parse().ok().map(|speed| (short(name), speed)));
        } else if let Some((name, numbers)) =
            line.split_once(':').filter(|(name, _)| !name.contains(' ') || line.starts_with(' '))
        {
            let numbers: Vec<u64> = numbers.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
            if let [received, _, _, _, _, _, _, _, sent, ..] = numbers[..] {
                self.interfaces.insert(short(name), [received, sent]);
            }
        } else if words.len() >= 14 && words[0].parse::<u32>().is_ok() && words[1].parse::<u32>().is_ok() {
            // Sectors of 512 bytes.
            let [read, written] = [number(5), number(9)].map(|sectors| sectors.saturating_mul(512));
            self.disks.insert(short(words[2]), [read, written, number(12)]);
        }
    }

    fn since(&self, before: &Self, seconds: f64) -> HostGlance {
        let seconds = seconds.max(1e-3);
        let [busy, idle] = [0, 1].map(|at| self.processors[at].saturating_sub(before.processors[at]) as f64);
        let rate = |now: u64, then: Option<u64>| now.saturating_sub(then.unwrap_or(now)) as f64 / seconds;
        let (mut disk, mut disks_busy) = ([0.0; 2], BTreeMap::new());
        for (name, now) in &self.disks {
            let then = before.disks.get(name);
            let [read, written, at_work] = [0, 1, 2].map(|at| rate(now[at], then.map(|then| then[at])));
            disk = [disk[0] + read, disk[1] + written];
            disks_busy.insert(name.clone(), ((at_work / 1000.0).min(1.0), self.turning.contains(name)));
        }
        let each = |(name, now): (&String, &[u64; 2])| {
            let then = before.interfaces.get(name);
            (name.clone(), [0, 1].map(|way| rate(now[way], then.map(|then| then[way]))))
        };
        HostGlance {
            busy: busy / (busy + idle).max(1.0),
            disk,
            disks_busy,
            interfaces: self.interfaces.iter().map(each).collect(),
            speeds: self.speeds.iter().map(|(name, speed)| (name.clone(), *speed as f64 * 1e6 / 8.0)).collect(),
            programs: self.programs_since(before, busy + idle),
        }
    }

    /// Processors that the processes of each name used, of those that used most. A process that is new has used all of
    /// its ticks since then.
    fn programs_since(&self, before: &Self, ticks: f64) -> BTreeMap<String, f64> {
        let mut used: BTreeMap<&str, u64> = BTreeMap::new();
        for (process, (name, ticks)) in &self.processes {
            // The number may be another process's by now.
            let then = before.processes.get(process).map_or(0, |(_, then)| *then).min(*ticks);
            let sum = used.entry(name).or_default();
            *sum = sum.saturating_add(ticks - then);
        }
        let processors = |used: u64| used as f64 / ticks.max(1.0) * f64::from(self.count.max(1));
        let mut most: Vec<(&str, f64)> = used.into_iter().map(|(name, used)| (name, processors(used))).collect();
        most.retain(|(_, used)| *used >= PROGRAM_LEAST);
        most.sort_by(|one, other| other.1.total_cmp(&one.1));
        most.into_iter().take(PROGRAMS_MAX).map(|(name, used)| (name.to_owned(), used)).collect()
    }
}

/// A line of `/proc/PID/stat`: the process, its name, and its ticks in user and kernel mode.
fn process(line: &str) -> Option<(u32, &str, u64)> {
    let (number, rest) = line.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let ticks = |at: usize| words.get(at)?.parse::<u64>().ok();
    Some((number.parse().ok()?, name, ticks(11)?.saturating_add(ticks(12)?)))
}

/// Whether a name is of a device by itself: not of a partition, nor of what stands on other devices.
fn is_disk(name: &str, all: &[String]) -> bool {
    let stacked = ["loop", "ram", "zram", "dm-", "md", "sr", "fd"].iter().any(|kind| name.starts_with(kind));
    let is_part_of = |whole: &String| {
        let rest = name.strip_prefix(whole.as_str()).unwrap_or_default();
        // nvme0n1p1 is a part of nvme0n1, and nvme0n10 is another one.
        let ends_with_digit = whole.ends_with(|last: char| last.is_ascii_digit());
        let rest = if ends_with_digit { rest.strip_prefix('p').unwrap_or_default() } else { rest };
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
    };
    !stacked && !all.iter().any(is_part_of)
}

/// The interface that carried most, and what it received and sent a second in the mean.
pub fn busiest(seen: &[(Instant, HostGlance)]) -> Option<(String, [f64; 2])> {
    let all = seen.iter().flat_map(|(_, glance)| &glance.interfaces);
    let of = |way: usize| means(all.clone().map(|(name, rates)| (name.as_str(), rates[way])), seen.len());
    let (received, sent) = (of(0), of(1));
    let most = received.into_iter().map(|(name, received)| (name, [received, sent.get(name).copied().unwrap_or(0.0)]));
    let most = most.max_by(|one, other| one.1.iter().sum::<f64>().total_cmp(&other.1.iter().sum()));
    most.map(|(name, rates)| (name.to_owned(), rates))
}

/// The mean of each name over so many seconds; one that is not told of in a second has a 0 there.
pub fn means<'a>(all: impl Iterator<Item = (&'a str, f64)>, seconds: usize) -> BTreeMap<&'a str, f64> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    all.for_each(|(name, value)| *sums.entry(name).or_default() += value / seconds.max(1) as f64);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "100.50 7.5\n/sys/block/sda/queue/rotational:1\n/sys/block/nvme0n1/queue/rotational:0\ncpu  100 0 100 700 100 0 0 9\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\n\
        /sys/class/net/eth0/speed:10000\n/sys/class/net/lo/speed:-1\n\
        7 (a:b) c) S 1 7 7 0 -1 4 0 0 0 0 100 50 0 0 20 0\n8 (idle) S 1 8 8 0 -1 4 0 0 0 0 5 5 0 0 20 0\n\
        8 0 sda 1 0 10 0 1 0 20 0 0 0 0\n8 1 sda1 1 0 10 0 1 0 20 0 0 0 0\n\
        259 0 nvme0n1 1 0 0 0 1 0 0 0 0 0 0\n259 1 nvme0n1p1 1 0 9 0 1 0 9 0 0 0 0\n7 0 loop0 1 0 9 0 1 0 9 0 0 0 0\n\
        Inter-|   Receive   |  Transmit\n face |bytes packets\n  eth0: 1000 1 0 0 0 0 0 0 500 1\n    lo: 0 0 0 0 0 0 0 0 0 0\n";
    const TWO: &str = "102.50 7.9\n/sys/block/sda/queue/rotational:1\ncpu  250 0 100 750 100 0 0 9\ncpu0 1 2 3\ncpu1 1 2 3\n\
        /sys/class/net/eth0/speed:10000\n\
        7 (a:b) c) S 1 7 7 0 -1 4 0 0 0 0 160 70 0 0 20 0\n8 (idle) S 1 8 8 0 -1 4 0 0 0 0 5 5 0 0 20 0\n\
        9 (new) S 1 9 9 0 -1 4 0 0 0 0 20 0 0 0 20 0\n\
        8 0 sda 1 0 14 0 1 0 30 0 0 1500 0\n8 1 sda1 1 0 14 0 1 0 30 0 0 0 0\n\
        259 0 nvme0n1 1 0 2 0 1 0 0 0 0 0 0\n259 1 nvme0n1p1 1 0 99 0 1 0 9 0 0 0 0\n7 0 loop0 1 0 99 0 1 0 9 0 0 0 0\n\
        eth0: 5000 1 0 0 0 0 0 0 900 1\n    lo: 8 0 0 0 0 0 0 0 8 0\n";

    #[test]
    fn rates_are_of_whole_disks_and_of_each_interface() {
        let glance = Counters::parse(TWO).since(&Counters::parse(ONE), 2.0);
        assert_eq!((glance.busy, glance.disk), (0.75, [6.0 * 256.0, 10.0 * 256.0]));
        assert_eq!(glance.interfaces["eth0"], [2000.0, 200.0]);
        assert_eq!((glance.disks_busy["sda"], glance.disks_busy["nvme0n1"]), ((0.75, true), (0.0, false)));
        assert_eq!(glance.speeds, BTreeMap::from([("eth0".to_owned(), 1.25e9)]));
        // 200 ticks of two processors: 80 and 20 of them.
        let programs = BTreeMap::from([("a:b) c".to_owned(), 0.8), ("new".to_owned(), 0.2)]);
        assert_eq!(glance.programs, programs);
        let seen = [(Instant::now(), glance)];
        assert_eq!(busiest(&seen), Some(("eth0".to_owned(), [2000.0, 200.0])));
        assert_eq!(busiest(&[]), None);
    }

    #[test]
    fn text_of_another_host_may_be_anything() {
        for text in
            ["", "cpu", "8 0", "::::", "cpu x y\n8 0 sda -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1", "1 () ", "1 (a", "x (a) S"]
        {
            let counters = Counters::parse(text);
            let glance = counters.since(&Counters::default(), 0.0);
            assert!(glance.busy >= 0.0 && glance.disk.iter().all(|rate| *rate >= 0.0), "{text}");
        }
        let most = Counters::parse("cpu 18446744073709551615 18446744073709551615 1 1 1 1 1 1\n");
        assert!(most.since(&Counters::default(), 1.0).busy.is_finite());
    }

    #[test]
    fn blocks_are_read_as_they_come() {
        let text = format!("motd\n{ONE}{END}\n{TWO}{END}\nhalf of the next");
        let seen = Mutex::default();
        read(text.as_bytes(), &seen);
        let seen = seen.into_inner().expect("whole");
        // Both came at once, and are two seconds of the host's clock apart.
        assert_eq!((seen.len(), seen[0].1.interfaces["eth0"]), (1, [2000.0, 200.0]));
    }
}
