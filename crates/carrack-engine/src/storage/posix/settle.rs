//! When a source's change time proves anything.
//!
//! A file is read, and its change time is the same before and after: then nothing was written meanwhile, but only if a
//! write would have moved it. It would not, where the time before was stamped within the same unit of the file system's
//! clock (a tick of the kernel's, a second on ext3, two on FAT), or by a call to write that is still going on: a call
//! stamps it when it begins. So what changed just now is waited for until it is older than the unit, and what changed a
//! while ago until no call can be under way that began then.
//!
//! That is so where nobody has the file open for writing, which a lease shows ([`file::writers`]): a call keeps it
//! open, also one that was handed to the kernel, and so does a mapping. Where somebody has, a call may be under way for
//! as long as storage takes to write a file of that size, but no longer than is waited for at most. A file that grows
//! meanwhile is one that is appended to: what was there is not written over, and the call writes no more than what it
//! grew by. Where the system does not tell who has it open, looking for data waits at least for calls that write
//! through the cache. What a program writes through a mapping (`mmap`) then moves no time but at its first touch of a
//! page: only reading twice shows it.
//!
//! Files that changed at the same time are old at the same time: they are not waited for one by one.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::sync::lock;
use carrack_core::tuning::{
    RESTS_MAX, SETTLED_AFTER, TICK, WHOLE_SECONDS, WRITE_TAKES, WRITE_TAKES_MAX, WRITER_LOOK,
    WRITTEN_BYTES_PER_SECOND_MIN,
};
use carrack_sys::dir::{FileTime, Stat};
use carrack_sys::file::{self, Writers};
use carrack_sys::host;

/// Nanoseconds on some clock.
type Nanos = i128;

/// What is known of the clocks of the file systems that sources lie on, by device: what each has
/// shown at least, and when.
#[derive(Default)]
pub struct SourceClocks {
    shown: Mutex<HashMap<u64, (Nanos, Instant)>>,
}

/// What is to be done before a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// Nothing: the file may be read at once.
    Settled,
    /// A call to write that began so long ago may be under way: it is to be waited for.
    Writing(Duration),
    /// A write might not be seen before so much time has passed.
    Young(Duration),
}

impl SourceClocks {
    /// What the change time of a file says that was looked at now. The host's clock is taken for the file
    /// system's, unless that is ahead.
    pub(super) fn rest(&self, stat: &Stat, wall: Nanos, now: Instant) -> Rest {
        let changed = nanos(stat.ctime);
        let clock = if changed <= wall { wall } else { self.ahead(stat.device, changed, now) };
        let age = Duration::from_nanos(u64::try_from(clock - changed).unwrap_or(u64::MAX));
        let unit = if stat.ctime.nanos == 0 { WHOLE_SECONDS } else { TICK };
        if age < unit {
            return Rest::Young(unit - age);
        }
        if age < SETTLED_AFTER { Rest::Writing(age) } else { Rest::Settled }
    }

    /// What a clock shows at least that is ahead of the host's: it has been `changed`, and has
    /// gone on since that was seen.
    fn ahead(&self, device: u64, changed: Nanos, now: Instant) -> Nanos {
        let mut shown = lock(&self.shown);
        let (clock, seen) = shown.entry(device).or_insert((changed, now));
        let shows = *clock + now.saturating_duration_since(*seen).as_nanos() as Nanos;
        if changed > shows {
            (*clock, *seen) = (changed, now);
        }
        shows.max(changed)
    }
}

fn nanos(time: FileTime) -> Nanos {
    Nanos::from(time.seconds) * 1_000_000_000 + Nanos::from(time.nanos)
}

/// How long a call is waited for that writes so many bytes.
fn longest_write(bytes: u64) -> Duration {
    let longest = WRITE_TAKES + Duration::from_millis(bytes / (WRITTEN_BYTES_PER_SECOND_MIN / 1000));
    longest.min(WRITE_TAKES_MAX)
}

/// What a change that is old enough to be seen again says of calls to write that began with it.
enum UnderWay {
    /// None is under way.
    Ended,
    /// One may be: it is to be looked again after so long.
    For(Duration),
    /// There is always another.
    Endless,
}

/// A file that is looked at again and again.
struct Looks<'a> {
    file: &'a std::fs::File,
    /// What it was at first.
    first: Stat,
    /// When it had changed, as it was seen last while somebody had it open for writing.
    changed: Option<FileTime>,
    /// How often it may still be seen to have changed meanwhile.
    changes: u32,
}

impl Looks<'_> {
    /// Whether a call to write may be under way that began so long ago.
    fn calls(&mut self, stat: &Stat, age: Duration) -> io::Result<UnderWay> {
        let writers = file::writers(self.file);
        if writers == Writers::None {
            return Ok(UnderWay::Ended);
        }
        let grown = stat.size.saturating_sub(self.first.size);
        let written = if grown > 0 { grown } else { stat.size };
        let left = longest_write(written).saturating_sub(age);
        if writers == Writers::Unknown || left.is_zero() {
            // Looking for data waits for whoever is writing through the cache: both take the file's lock.
            file::next_data(self.file, 0)?;
            return Ok(UnderWay::Ended);
        }
        if self.changed.replace(stat.ctime).is_some_and(|before| before != stat.ctime) {
            let Some(changes) = self.changes.checked_sub(1) else { return Ok(UnderWay::Endless) };
            self.changes = changes;
        }
        Ok(UnderWay::For(left.min(WRITER_LOOK)))
    }
}

/// Looks at a file until its change time proves that no write goes unseen from then on; what it is then. `first` is
/// what it was, and what the host's clock had shown just before. `rest` lets so much time pass, and says whether to go
/// on.
///
/// # Errors
/// Those of looking; `None` for a file that is written to all the time.
pub(super) fn settle(
    clocks: &SourceClocks,
    file: &std::fs::File,
    first: (Stat, FileTime),
    rest: &mut dyn FnMut(Duration) -> bool,
) -> io::Result<Option<Stat>> {
    let mut rests = RESTS_MAX;
    let (mut stat, mut clock) = first;
    let mut looks = Looks { file, first: stat, changed: None, changes: RESTS_MAX };
    loop {
        match clocks.rest(&stat, nanos(clock), Instant::now()) {
            Rest::Settled => return Ok(Some(stat)),
            Rest::Writing(age) => match looks.calls(&stat, age)? {
                UnderWay::Ended => return Ok(Some(stat)),
                UnderWay::For(time) if rest(time) => {}
                UnderWay::For(_) | UnderWay::Endless => return Ok(None),
            },
            Rest::Young(time) if rests > 0 && rest(time) => {
                rests = if time > TICK { 0 } else { rests - 1 };
            }
            Rest::Young(_) => return Ok(None),
        }
        clock = host::clock();
        stat = carrack_sys::dir::stat_file(file)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(device: u64, seconds: i64, nanos: u32) -> Stat {
        let file = tempfile::tempfile().unwrap();
        let mut stat = carrack_sys::dir::stat_file(&file).unwrap();
        (stat.device, stat.ctime) = (device, FileTime { seconds, nanos });
        stat
    }

    #[test]
    fn change_within_the_unit_of_its_clock_is_young() {
        let (clocks, now) = (SourceClocks::default(), Instant::now());
        let second: Nanos = 1_000_000_000;
        for (nanos, unit) in [(0, WHOLE_SECONDS), (7, TICK)] {
            let changed = stat(1, 1000, nanos);
            let at = |after: Duration| 1000 * second + Nanos::from(nanos) + after.as_nanos() as Nanos;
            let rest = |after: Duration| clocks.rest(&changed, at(after), now);
            assert_eq!(rest(Duration::ZERO), Rest::Young(unit));
            assert_eq!(rest(unit / 4), Rest::Young(unit - unit / 4));
            assert_eq!(rest(unit), Rest::Writing(unit));
            assert_eq!(rest(SETTLED_AFTER), Rest::Settled);
        }
    }

    /// A server's clock that is an hour ahead: its files are waited for once, not one by one, and
    /// another's are another's.
    #[test]
    fn clock_that_is_ahead_is_known_by_what_it_has_shown() {
        let (clocks, now) = (SourceClocks::default(), Instant::now());
        let rest = |device, seconds, after: Duration| clocks.rest(&stat(device, seconds, 5), 0, now + after);
        assert_eq!(rest(1, 3600, Duration::ZERO), Rest::Young(TICK));
        assert_eq!(rest(1, 3600, TICK), Rest::Writing(TICK));
        assert_eq!(rest(1, 2900, TICK), Rest::Settled);
        assert_eq!(rest(1, 4300, TICK), Rest::Young(TICK));
        assert_eq!(rest(1, 3600, TICK), Rest::Settled);
        assert_eq!(rest(2, 3600, 2 * TICK), Rest::Young(TICK));
    }

    /// What is open for writing, and changed so long ago, is waited for by its size, or by what it grew by; what nobody
    /// has open is not.
    #[test]
    #[cfg(target_os = "linux")]
    fn file_that_is_open_for_writing_is_waited_for_by_its_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let writer = std::fs::File::create(&path).unwrap();
        let reader = std::fs::File::open(&path).unwrap();
        if file::writers(&reader) == Writers::Unknown {
            return println!("skipped: this file system knows no leases");
        }
        let sized = |size, nanos| Stat { size, ..stat(1, 1000, nanos) };
        let looks = |size| Looks { file: &reader, first: sized(size, 1), changed: None, changes: RESTS_MAX };
        let calls = |looks: &mut Looks<'_>, size, age| match looks.calls(&sized(size, 1), age).unwrap() {
            UnderWay::Ended => None,
            UnderWay::For(time) => Some(time),
            UnderWay::Endless => panic!("it has not changed"),
        };
        let (megabytes, instant) = (1_000_000, Duration::from_millis(1));
        for (size, longest) in [(1000, 500), (15 * megabytes, 5500), (600 * megabytes, 45_000), (1 << 40, 45_000)] {
            let longest = Duration::from_millis(longest);
            assert_eq!(calls(&mut looks(size), size, TICK), Some(WRITER_LOOK), "{size}");
            assert_eq!(calls(&mut looks(size), size, longest - instant), Some(instant), "{size}");
            assert_eq!(calls(&mut looks(size), size, longest), None, "{size}");
        }
        let grown = 600 * megabytes + 1000;
        assert_eq!(calls(&mut looks(600 * megabytes), grown, WRITE_TAKES - instant), Some(instant));
        assert_eq!(calls(&mut looks(600 * megabytes), grown, WRITE_TAKES), None);
        // One that changes whenever it is looked at never rests.
        let (mut looked, mut times) = (looks(1000), 0);
        while !matches!(looked.calls(&sized(1000, times), TICK).unwrap(), UnderWay::Endless) {
            times += 1;
        }
        assert_eq!(times, RESTS_MAX + 1);
        drop(writer);
        assert_eq!(calls(&mut looks(1 << 40), 1 << 40, TICK), None);
    }
}
