//! Every knob, once: its unit, default, bounds and reason. Automatic first; what a flag can override says so.
//!
//! [`Tuning`] is a value. Whoever starts a transfer hands it over, and each part reads the fields that it needs when it
//! begins: a test can force any path, and two nodes of one process can differ. What both ends must agree on is no knob:
//! see [`crate::limits`].

use std::time::Duration;

use crate::limits;

/// What one read, hash, seal and write handles at a time, in bytes. It stays in a core's second-level cache together
/// with its sealed copy, so that each byte is fetched from memory once on each side. A constant, because buffers of
/// every verb have this size, and [`limits::LARGE_BUFFER_BYTES`] counts in them.
pub const SLICE_BYTES: usize = 256 << 10;

/// How long data may be sent without an acknowledgement, or anything else heard, before the stream is lost. A constant,
/// as what a host's sockets are told.
pub const STREAM_SILENCE: Duration = Duration::from_secs(20);

/// How often TCP asks a host that has been silent whether it is there. A constant, as what a host's sockets are told.
pub const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// From starting ssh, or connecting to a node, to its first word, where nothing else is asked for
/// (`--connect-timeout`): time to type a password.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// Consecutive attempts without progress before a copy is given up, where nothing else is asked for (`--retries`). With
/// the pauses between them a quarter of an hour: a network that is away for ten minutes costs nobody a transfer.
pub const RETRIES: u32 = 40;
/// Age from which nobody will take up what a transfer has left, where nothing else is asked for (`carrack gc
/// --older-than`).
pub const LEFTOVER_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Of what the destination has, in hundredths: the run of a timer that would delete more waits until somebody has
/// looked at its plan. More than half seldom goes on purpose, and all of it where a disk is not mounted.
pub const TIMER_DELETE_SHARE: u8 = 50;
/// How long a command that was told to end, by a signal or its deadline, still waits for whoever does not read what it
/// says: a reader that is only slow takes a pipe's content in that time, and the promise is to end within 2 s.
pub const READER_GRACE: Duration = Duration::from_millis(500);

/// The least difference of two change times where a file system keeps fractions of seconds: two ticks of the slowest
/// kernel (100 a second). Like the four that follow a fact about clocks and storage, not a choice.
pub const TICK: Duration = Duration::from_millis(20);
/// The same where it shows none: FAT counts by two seconds, ext3 and many servers by one; and a tick.
pub const WHOLE_SECONDS: Duration = Duration::from_millis(2020);
/// What changed so long ago is not being written by a call that began then: one call writes 2 GiB at most, at 4 MB/s or
/// faster.
pub const SETTLED_AFTER: Duration = Duration::from_secs(600);
/// Slowest rate at which storage takes what one call writes. A call that writes past the cache (`O_DIRECT`), or that
/// was only handed to the kernel (AIO, `io_uring`), moves the file's times when it begins, and not when it ends. So
/// while somebody has a file open for writing, a call may be under way for as long as writing the whole file takes at
/// this rate.
pub const WRITTEN_BYTES_PER_SECOND_MIN: u64 = 3_000_000;
/// Added to that: the time that the smallest write may take.
pub const WRITE_TAKES: Duration = Duration::from_millis(500);
/// Longest time to wait for such a call, whatever the size of the file. A file that stays open, as that of a database,
/// must not hold a copy up for long; a call of 2 GiB, the largest there is, ends in this time at 48 MB/s.
pub const WRITE_TAKES_MAX: Duration = Duration::from_secs(45);
/// How often a file is looked at that somebody has open for writing and changed a short while ago.
pub const WRITER_LOOK: Duration = Duration::from_millis(50);
/// How often a file that is followed is looked at, at the most, and at the least; in between, four times in the time
/// that it has to rest.
pub const FOLLOW_LOOK_MIN: Duration = Duration::from_millis(20);
/// See [`FOLLOW_LOOK_MIN`].
pub const FOLLOW_LOOK_MAX: Duration = Duration::from_millis(250);
/// How often a file that changes again while its last change becomes old is looked at; where that takes
/// [`WHOLE_SECONDS`], once.
pub const RESTS_MAX: u32 = 5;
/// What the coarsest file systems take for one moment (FAT two seconds, ext3 and many servers one): a file that last
/// changed so short a time ago may change once more, and its times not tell.
pub const CHANGE_TIME_GRAIN: Duration = Duration::from_secs(2);

/// Declares [`Tuning`] so that each knob's reason, unit and default stand in one place.
macro_rules! knobs {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = $default:expr;)+) => {
        /// The knobs of one transfer, or of one node. [`Tuning::default`] is what the program uses; [`Tuning::check`]
        /// holds the bounds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Tuning {
            $($(#[doc = $doc])+ #[doc = concat!("\n\nDefault: `", stringify!($default), "`.")] pub $name: $type,)+
        }

        impl Tuning {
            /// What the program uses, for constants and static tables.
            pub const DEFAULT: Self = Self { $($name: $default,)+ };
        }
    };
}

knobs! {
    /// Unit of sending, hashing, acknowledging and repair, in bytes (`--block`): a power of two within
    /// [`limits::BLOCK_BYTES_MIN`] and [`limits::BLOCK_BYTES_MAX`]. Large enough that its frame, its acknowledgement
    /// and its lock cost nothing per byte, and that what the marker claims of terabytes fits into memory; small enough
    /// that a repair is cheap.
    block_bytes: u32 = 4 << 20;
    /// The same for files that are known to be no larger than [`Tuning::short_file_bytes`]: on a long path the last
    /// blocks of many streams end together.
    short_block_bytes: u32 = 1 << 20;
    /// See [`Tuning::short_block_bytes`]; at least [`Tuning::small_file_bytes`].
    short_file_bytes: u64 = 256 << 30;
    /// The same for files that are known to be no larger than [`Tuning::small_file_bytes`]: what 32 streams have left
    /// in their last blocks is then a small part of the whole.
    small_block_bytes: u32 = 256 << 10;
    /// See [`Tuning::small_block_bytes`]. In a file system that is memory storage is reserved only for larger files.
    small_file_bytes: u64 = 1 << 30;

    /// What a stream's socket may hold that has not been sent, in bytes: more than a slice, so that the network never
    /// waits for the reader.
    not_sent_bytes: u32 = 1 << 20;
    /// The same on a far path ([`Tuning::far_rtt`]), where many streams share it: what they hold back at the end each
    /// sends alone.
    not_sent_bytes_far: u32 = 256 << 10;

    /// Files of at least this size bypass the page cache on both sides, in bytes: what is read once and written once
    /// would push out what others work with, and lets the system run into a wall of dirty pages.
    past_cache_file_bytes: u64 = 64 << 20;
    /// How far ahead of its reader storage is asked for such a file, in bytes: storage is then never idle while a block
    /// is digested and sent.
    read_ahead_bytes: u64 = 2 << 20;
    /// A system that reads this far ahead by itself is not asked, in bytes: it does so with large pages, at less cost.
    system_read_ahead_bytes: u64 = 1 << 20;

    /// Files up to this size travel in bundles, content inline, with no question asked before them; larger ones are
    /// offered. In bytes, at most [`limits::BUNDLE_BYTES`]; 0 leaves empty files, links and directories to the bundles.
    bundled_file_bytes_max: u64 = 1 << 20;
    /// A bundle is closed when its content reaches this many bytes: one frame a few milliseconds long. Together with
    /// one more of the largest files at most [`limits::BUNDLE_BYTES`].
    bundle_bytes: u64 = 1 << 20;
    /// A bundle is closed when it has this many items, from 1 to [`limits::BUNDLE_ITEMS`]. Bounds what is held per
    /// unacknowledged bundle, and spreads 1,000,000 empty files over streams.
    bundle_items: usize = 256;

    /// Fewest data connections on a path without delay (`--streams`), where each processor of the smaller host gets
    /// one: two overlap the work of two cores.
    streams_near: u16 = 2;
    /// Most data connections there: that many processors do what a path can take.
    streams_near_max: u16 = 8;
    /// Data connections on a path with delay, where the sending host takes loss for congestion (cubic, reno): a window
    /// that is halved is one of many. At 50 ms and 1 Gbit/s 16 are enough for one packet lost in 10,000, for one in
    /// 1,000 it takes 32.
    streams_far: u16 = 32;
    /// Data connections on a path with delay, where it does not (bbr): each stream fills the path by itself, and many
    /// starve each other.
    streams_far_bbr: u16 = 8;
    /// Most data connections for each processor of the smaller host that may be found better while a transfer runs, of
    /// bbr's eight or of a near path's few: two threads each, and the network does not see what a stream costs there.
    streams_per_processor: u16 = 16;
    /// Most data connections that may be found better in all: beyond, none earns its part.
    streams_found_max: u16 = 64;
    /// A stream that is not needed any more stays connected for so long: until then another that is needed need not be
    /// made.
    parked: Duration = Duration::from_secs(60);
    /// Round trip from which a path counts as far.
    far_rtt: Duration = Duration::from_millis(5);

    /// Calls to a file system's metadata that are under way at once, of each kind: looking at files, opening, making
    /// and naming them. 0 leaves it to be found out, where they are slow.
    metadata_workers: u16 = 0;
    /// The most that are found out: a server that takes more serves others as well.
    metadata_workers_most: u16 = 64;
    /// Calls that take less are made by the thread that needs them: handing one over takes a tenth of this, and a local
    /// file system answers sooner.
    metadata_worth: Duration = Duration::from_micros(200);
    /// Threads that look at the entries of a large directory where the calls are short. One looks at some 460,000 files
    /// a second. 0: one for each 16 processors, up to 4.
    scan_threads: u16 = 0;
    /// Threads that give small files their names where the calls are short, each in other directories. One names some
    /// 170,000 files a second in memory, 64,000 on ext4, and 23,000 where each replaces another. 0: one for each 4
    /// processors, up to 16.
    publish_threads: u16 = 0;

    /// Longest pause between two words on a control connection, so that silence means a fault. At most half of
    /// [`Tuning::silence`].
    heartbeat: Duration = Duration::from_secs(5);
    /// Silence that ends a session: several lost heartbeats, yet before a person gives up.
    silence: Duration = Duration::from_secs(30);
    /// A direct data connection that has not been made after this is raced by one the other way.
    link_stagger: Duration = Duration::from_millis(1200);
    /// The longest time for one dial. If neither way has worked [`Tuning::link_stagger`] and this after the first: a
    /// tunnel.
    link_timeout: Duration = Duration::from_secs(5);
    /// From accepting a connection to knowing who is there.
    authenticate_timeout: Duration = Duration::from_secs(10);
    /// A node ends a measurement after so long: nobody keeps its path busy for nothing, and others from measuring.
    measure_longest: Duration = Duration::from_secs(300);

    /// A block that is on its way for longer than this many times the usual, while a stream has nothing to do, is sent
    /// again.
    straggler_factor: u32 = 4;
    /// No block is sent again for that earlier than this: a pause of the scheduler is not a fault.
    straggler_age_min: Duration = Duration::from_millis(500);

    /// How often an end tells where the time of its streams goes, and what they carry: a probe is made of several.
    stages_interval: Duration = Duration::from_millis(500);
    /// How often an end tells what it measures: a person reads of seconds, and reading what a host counts costs a
    /// fifth of a millisecond.
    sample_interval: Duration = Duration::from_secs(1);
    /// How long a session runs before its ends are asked for their clocks, and before they read what their hosts count:
    /// one that ends sooner should not take longer because it is measured. It is told of by one sample of each end.
    unmeasured: Duration = Duration::from_millis(100);
    /// How often the command asks an end for its clock, once it has a few answers: clocks drift slowly.
    clock_interval: Duration = Duration::from_secs(10);
    /// How long a rate is measured before it is compared with the usual one: long enough for it to mean
    /// something.
    stretch: Duration = Duration::from_secs(10);

    /// Least time between two messages that tell the sender what has landed: each wakes a thread of every process on
    /// the way and every stream of the sender, which counts at a thousand blocks a second. Shorter than anybody waits
    /// for it.
    landed_interval: Duration = Duration::from_millis(20);

    /// How often progress is told.
    progress_interval: Duration = Duration::from_millis(250);

    /// A file system that needs longer than this to sync everything is shared with others: from then on each file is
    /// synced by itself.
    sync_all_patience: Duration = Duration::from_secs(1);

    /// How often what has landed is made durable and written into the marker, at least 1 ms: what a crash costs.
    marker_interval: Duration = Duration::from_secs(1);
    /// How many bytes may land before that happens anyway.
    marker_bytes: u64 = 256 << 20;

    /// Consecutive attempts before anything has been reached for the first time: a mistyped name should
    /// not keep a person waiting.
    first_retries: u32 = 4;
    /// First pause before trying again; doubled each time, with jitter.
    retry_pause: Duration = Duration::from_millis(250);
    /// Longest pause before trying again.
    retry_pause_max: Duration = Duration::from_secs(30);
    /// How long a receiver that has failed waits for its threads to leave storage before it tells the command: long
    /// enough for a slow host, and less than [`Tuning::other_end_patience`]. The marker's lock is kept until the last
    /// has left, however long that takes.
    leave_patience: Duration = Duration::from_secs(3);
    /// After one end has failed: how long the other may be silent, and half of the longest time it may take to end. So
    /// long a session also waits for files that an earlier one of the same copy still writes in place.
    other_end_patience: Duration = Duration::from_secs(5);
    /// How long a receiver waits for a marker that another session holds: the agent of a command that is gone holds it
    /// until it notices.
    marker_lock_patience: Duration = Duration::from_secs(3);
    /// A read or write of a file that takes longer than this is told as stalled.
    stalled_after: Duration = Duration::from_secs(10);
    /// How long a command that was told to end waits for ends that take nothing more before it lets go of their
    /// connections: what an honest one needs to hear of it, and short enough to end within 2 s.
    leave_grace: Duration = Duration::from_secs(1);
    /// How long an end of a copy that failed may take to hear that, and to answer: an honest one cleans up and needs a
    /// round trip.
    last_words: Duration = Duration::from_secs(2);
    /// An end's connection is closed this long after the end was first told that the copy is over, whether or not it
    /// takes what is sent to it. At least [`Tuning::last_words`].
    leave_after: Duration = Duration::from_secs(3);
}

impl Default for Tuning {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Tuning {
    /// Threads that look at the entries of a large directory, on a host with so many processors.
    #[must_use]
    pub fn scan_threads(&self, processors: usize) -> usize {
        asked_or(self.scan_threads, (processors / 16).clamp(1, 4))
    }

    /// Threads that give small files their names, on a host with so many processors.
    #[must_use]
    pub fn publish_threads(&self, processors: usize) -> usize {
        asked_or(self.publish_threads, (processors / 4).clamp(1, 16))
    }

    /// Checks the bounds that the fields name.
    ///
    /// # Errors
    /// A sentence that names the first field out of bounds.
    pub fn check(&self) -> Result<(), &'static str> {
        let is_block = |bytes: u32| {
            bytes.is_power_of_two() && (limits::BLOCK_BYTES_MIN..=limits::BLOCK_BYTES_MAX).contains(&bytes)
        };
        let bundle_most = self.bundle_bytes.checked_add(self.bundled_file_bytes_max);
        let bounds = [
            (is_block(self.block_bytes), "block_bytes is not a power of two from 64 KiB to 64 MiB"),
            (is_block(self.short_block_bytes), "short_block_bytes is not a power of two from 64 KiB to 64 MiB"),
            (is_block(self.small_block_bytes), "small_block_bytes is not a power of two from 64 KiB to 64 MiB"),
            (self.small_file_bytes <= self.short_file_bytes, "small_file_bytes is above short_file_bytes"),
            (
                bundle_most.is_some_and(|most| most <= limits::BUNDLE_BYTES),
                "bundle_bytes and bundled_file_bytes_max are above 16 MiB together",
            ),
            ((1..=limits::BUNDLE_ITEMS as usize).contains(&self.bundle_items), "bundle_items is not from 1 to 4096"),
            (
                (1..=limits::STREAMS).contains(&self.streams_near) && self.streams_near <= self.streams_near_max,
                "streams_near is 0, or above streams_near_max",
            ),
            (self.streams_near_max <= limits::STREAMS, "streams_near_max is above 256"),
            ((1..=limits::STREAMS).contains(&self.streams_far), "streams_far is not from 1 to 256"),
            ((1..=limits::STREAMS).contains(&self.streams_far_bbr), "streams_far_bbr is not from 1 to 256"),
            (self.metadata_workers <= limits::METADATA_WORKERS, "metadata_workers is above 256"),
            (
                (1..=limits::METADATA_WORKERS).contains(&self.metadata_workers_most),
                "metadata_workers_most is not from 1 to 256",
            ),
            (self.scan_threads <= limits::METADATA_WORKERS, "scan_threads is above 256"),
            (self.publish_threads <= limits::METADATA_WORKERS, "publish_threads is above 256"),
            (self.heartbeat <= self.silence / 2, "heartbeat is above half of silence"),
            (!self.stages_interval.is_zero(), "stages_interval is 0"),
            (!self.sample_interval.is_zero(), "sample_interval is 0"),
            (!self.clock_interval.is_zero(), "clock_interval is 0"),
            (self.leave_patience < self.other_end_patience, "leave_patience is not below other_end_patience"),
            (self.last_words <= self.leave_after, "last_words is above leave_after"),
            (self.marker_interval >= Duration::from_millis(1), "marker_interval is below 1 ms"),
        ];
        bounds.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, broken)| Err(broken))
    }
}

/// What was asked for; 0 asks for what is found best.
fn asked_or(asked: u16, best: usize) -> usize {
    if asked == 0 { best } else { asked.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_follow_the_processors_unless_a_number_is_asked_for() {
        let found = [2, 16, 64, 256]
            .map(|processors| (Tuning::DEFAULT.scan_threads(processors), Tuning::DEFAULT.publish_threads(processors)));
        assert_eq!(found, [(1, 1), (1, 4), (4, 16), (4, 16)]);
        let asked = Tuning { scan_threads: 3, publish_threads: 6, ..Tuning::DEFAULT };
        assert_eq!((asked.scan_threads(1), asked.publish_threads(1)), (3, 6));
    }

    #[test]
    fn tuning_check_names_the_field_out_of_bounds() {
        assert_eq!(Tuning::default().check(), Ok(()));
        type Case = (fn(&mut Tuning), &'static str);
        let cases: [Case; 21] = [
            (|tuning| tuning.block_bytes = 3 << 20, "block_bytes"),
            (|tuning| tuning.short_block_bytes = limits::BLOCK_BYTES_MIN / 2, "short_block_bytes"),
            (|tuning| tuning.small_block_bytes = limits::BLOCK_BYTES_MAX * 2, "small_block_bytes"),
            (|tuning| tuning.small_file_bytes = tuning.short_file_bytes + 1, "small_file_bytes"),
            (|tuning| tuning.bundle_bytes = u64::MAX, "bundle_bytes"),
            (|tuning| tuning.bundled_file_bytes_max = limits::BUNDLE_BYTES, "bundle_bytes"),
            (|tuning| tuning.bundle_items = 0, "bundle_items"),
            (|tuning| tuning.streams_near = tuning.streams_near_max + 1, "streams_near"),
            (|tuning| tuning.streams_near_max = limits::STREAMS + 1, "streams_near_max"),
            (|tuning| tuning.streams_far = 0, "streams_far "),
            (|tuning| tuning.metadata_workers = limits::METADATA_WORKERS + 1, "metadata_workers "),
            (|tuning| tuning.metadata_workers_most = 0, "metadata_workers_most"),
            (|tuning| tuning.scan_threads = limits::METADATA_WORKERS + 1, "scan_threads "),
            (|tuning| tuning.publish_threads = limits::METADATA_WORKERS + 1, "publish_threads "),
            (|tuning| tuning.heartbeat = tuning.silence, "heartbeat"),
            (|tuning| tuning.stages_interval = Duration::ZERO, "stages_interval"),
            (|tuning| tuning.sample_interval = Duration::ZERO, "sample_interval"),
            (|tuning| tuning.clock_interval = Duration::ZERO, "clock_interval"),
            (|tuning| tuning.other_end_patience = tuning.leave_patience, "leave_patience"),
            (|tuning| tuning.leave_after = Duration::ZERO, "last_words"),
            (|tuning| tuning.marker_interval = Duration::ZERO, "marker_interval"),
        ];
        for (change, field) in cases {
            let mut tuning = Tuning::default();
            change(&mut tuning);
            let broken = tuning.check().expect_err(field);
            assert!(broken.starts_with(field), "{field}: {broken}");
        }
        let smallest = Tuning { bundled_file_bytes_max: 0, bundle_items: 1, ..Tuning::default() };
        assert_eq!(smallest.check(), Ok(()), "bundles can be turned off");
    }
}
