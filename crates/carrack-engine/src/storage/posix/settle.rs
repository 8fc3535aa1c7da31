//! When a source's change time proves anything.
//!
//! A file is read, and its change time is the same before and after: then nothing was written meanwhile, but only if a
//! write would have moved it. It would not, where the time before was stamped within the same unit of the file system's
//! clock (a tick of the kernel's, a second on ext3, two on FAT), or by a call to write that is still going on. So what
//! changed just now is waited for until it is older than the unit, and until a call that was under way has ended. Files
//! that changed at the same time are old at the same time: they are not waited for one by one. What a program writes
//! through a mapping (`mmap`) moves no time but at its first touch of a page: only reading twice shows it.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::sync::lock;
use carrack_core::tuning::{RESTS_MAX, SETTLED_AFTER, TICK, WHOLE_SECONDS};
use carrack_sys::dir::{FileTime, Stat};
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
    /// A call to write that has begun before may be under way: it is to be waited for.
    Writing,
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
        if age < SETTLED_AFTER { Rest::Writing } else { Rest::Settled }
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

/// Looks at a file until its change time proves that no write goes unseen from then on; what it is then. `rest` lets so
/// much time pass, and says whether to go on.
///
/// # Errors
/// Those of looking; `None` for a file that is written to all the time.
pub(super) fn settle(
    clocks: &SourceClocks,
    file: &std::fs::File,
    rest: &mut dyn FnMut(Duration) -> bool,
) -> io::Result<Option<Stat>> {
    let mut rests = RESTS_MAX;
    loop {
        let stat = carrack_sys::dir::stat_file(file)?;
        match clocks.rest(&stat, nanos(host::clock()), Instant::now()) {
            Rest::Settled => return Ok(Some(stat)),
            Rest::Writing => {
                // Looking for data waits for whoever is writing: both take the file's lock.
                carrack_sys::file::next_data(file, 0)?;
                return Ok(Some(stat));
            }
            Rest::Young(time) if rests > 0 && rest(time) => {
                rests = if time > TICK { 0 } else { rests - 1 };
            }
            Rest::Young(_) => return Ok(None),
        }
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
            assert_eq!(rest(unit), Rest::Writing);
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
        assert_eq!(rest(1, 3600, TICK), Rest::Writing);
        assert_eq!(rest(1, 2900, TICK), Rest::Settled);
        assert_eq!(rest(1, 4300, TICK), Rest::Young(TICK));
        assert_eq!(rest(1, 3600, TICK), Rest::Settled);
        assert_eq!(rest(2, 3600, 2 * TICK), Rest::Young(TICK));
    }
}
