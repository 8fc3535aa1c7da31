//! Processors, and the time that threads get of them.

use std::time::Duration;

/// Time of all processors of this host since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processors {
    /// All together.
    pub all: Busy,
    /// Each by itself.
    pub each: Vec<Busy>,
}

/// What a processor did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// At work for anybody.
    pub busy: Duration,
    /// Idle, whatever was waited for.
    pub idle: Duration,
    /// Of the idle time, with a process waiting for a disk.
    pub disk_wait: Duration,
    /// Ready, but the hypervisor gave it to others.
    pub stolen: Duration,
}

/// Processor time of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadFacts {
    /// Used.
    pub cpu: Duration,
    /// Waited for a processor while ready to run.
    pub starved: Duration,
}

/// Processor time of this host; `None` where it does not say.
pub fn processors() -> Option<Processors> {
    parse(&super::read("/proc/stat")?, ticks_per_second())
}

fn parse(text: &str, ticks: u64) -> Option<Processors> {
    let mut found = Processors::default();
    let lines = text.lines().take_while(|line| line.starts_with("cpu"));
    for line in lines {
        let mut words = line.split_ascii_whitespace();
        let name = words.next()?;
        let mut next = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        let (user, nice, system, idle, disk_wait, interrupts, soft, stolen) =
            (next(), next(), next(), next(), next(), next(), next(), next());
        let time = |count: u64| Duration::from_millis(count.saturating_mul(1000) / ticks.max(1));
        let at_work = [user, nice, system, interrupts, soft].into_iter().fold(0, u64::saturating_add);
        let busy = Busy {
            busy: time(at_work),
            idle: time(idle.saturating_add(disk_wait)),
            disk_wait: time(disk_wait),
            stolen: time(stolen),
        };
        if name == "cpu" { found.all = busy } else { found.each.push(busy) }
    }
    (!found.each.is_empty()).then_some(found)
}

#[allow(unsafe_code)]
fn ticks_per_second() -> u64 {
    // SAFETY: sysconf takes a number and touches no memory of ours.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(100)
}

/// The number of the calling thread, for [`thread`]; 0 where threads have none.
pub fn thread_number() -> u32 {
    #[cfg(target_os = "linux")]
    let number = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap_or(0);
    #[cfg(not(target_os = "linux"))]
    let number = 0;
    number
}

/// What a thread of this process has used so far; `None` if it has ended, or where that is not said.
pub fn thread(number: u32) -> Option<ThreadFacts> {
    parse_thread(&super::read(&format!("/proc/self/task/{number}/schedstat"))?)
}

/// `cpu starved slices`, in nanoseconds.
fn parse_thread(text: &str) -> Option<ThreadFacts> {
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok().map(Duration::from_nanos));
    Some(ThreadFacts { cpu: words.next()??, starved: words.next()?? })
}

/// Processor time that this process has used so far, in user and system mode together.
pub fn process_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_read() {
        let text = "cpu  300 20 100 7000 30 4 6 50 9 9\ncpu0 100 0 0 3500 30 0 0 50\ncpu1 200 20 100 3500\nintr 5 6\n";
        let found = parse(text, 100).unwrap();
        assert_eq!(found.all.busy, Duration::from_millis(4300));
        assert_eq!((found.all.idle, found.all.disk_wait), (Duration::from_millis(70_300), Duration::from_millis(300)));
        assert_eq!(found.all.stolen, Duration::from_millis(500));
        assert_eq!((found.each.len(), found.each[1].busy), (2, Duration::from_millis(3200)));
        for wrong in ["", "intr 5", "cpu", "cpu x y z"] {
            assert_eq!(parse(wrong, 0), None, "{wrong:?}");
        }
        assert_eq!(parse("cpu0 x", 100).unwrap().each, [Busy::default()]);
    }

    #[test]
    fn threads_are_read() {
        let facts = ThreadFacts { cpu: Duration::from_nanos(12), starved: Duration::from_nanos(34) };
        assert_eq!(parse_thread("12 34 5\n"), Some(facts));
        for wrong in ["", "1", "x 2 3", "-1 2 3"] {
            assert_eq!(parse_thread(wrong), None, "{wrong:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn work_of_this_thread_is_counted() {
        let before = process_cpu_time();
        while process_cpu_time() - before < Duration::from_millis(30) {
            std::hint::black_box(0);
        }
        if std::path::Path::new("/proc/self/schedstat").exists() {
            let facts = thread(thread_number()).unwrap();
            assert!(facts.cpu > Duration::from_millis(5), "{facts:?}");
        }
        assert_eq!(thread(u32::MAX), None);
        let found = processors().unwrap();
        assert!(found.each.len() >= crate::host::cpu_count());
        let least = found.each.iter().map(|busy| busy.busy).max().unwrap();
        assert!(found.all.busy + Duration::from_secs(1) >= least);
    }
}
