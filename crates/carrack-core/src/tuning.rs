//! Every knob, once: its unit, default, bounds and reason. Automatic first; what a flag can override says so.

use std::time::Duration;

/// Unit of sending, hashing, acknowledging and repair, in bytes (`--block`). Large enough that its frame, its
/// acknowledgement and its lock cost nothing per byte, and that what the marker claims of terabytes fits into memory; small enough that a
/// repair is cheap.
pub const BLOCK_BYTES: u32 = 4 << 20;
/// Of files that are known to be no larger than [`SHORT_FILE_BYTES`]: on a long path the last blocks of many streams end together.
pub const SHORT_BLOCK_BYTES: u32 = 1 << 20;
/// See [`SHORT_BLOCK_BYTES`].
pub const SHORT_FILE_BYTES: u64 = 256 << 30;
/// Of files that are known to be no larger than [`SMALL_FILE_BYTES`]: what 32 streams have left in their last blocks is then a small part
/// of the whole.
pub const SMALL_BLOCK_BYTES: u32 = 256 << 10;
/// See [`SMALL_BLOCK_BYTES`]. In a file system that is memory they are not reserved either: it would take time before the first byte.
pub const SMALL_FILE_BYTES: u64 = 1 << 30;
/// Smallest block: BLAKE3 hashes several kilobytes at once, and a block's bookkeeping must stay far below its bytes.
pub const BLOCK_BYTES_MIN: u32 = 64 << 10;
/// Largest block: one per stream may have to be sent again.
pub const BLOCK_BYTES_MAX: u32 = 64 << 20;

/// What one read, hash, seal and write handles at a time, in bytes. It stays in a core's second-level cache together with
/// its sealed copy, so that each byte is fetched from memory once on each side.
pub const SLICE_BYTES: usize = 256 << 10;

/// What a stream's socket may hold that has not been sent, in bytes: more than a slice, so that the network never waits for the reader.
pub const NOT_SENT_BYTES: u32 = 1 << 20;
/// The same on a far path ([`FAR_RTT`]), where many streams share it: what they hold back at the end each sends alone.
pub const NOT_SENT_BYTES_FAR: u32 = 256 << 10;

/// Files from this size on pass the page cache by on both sides: what is read once and written once would push out what others work
/// with, and lets the system run into a wall of dirty pages.
pub const PAST_CACHE_FILE_BYTES: u64 = 64 << 20;
/// Of such a file storage is asked for at least so many bytes before they are wanted: it is then never idle while a block is digested and sent.
pub const READ_AHEAD_BYTES: u64 = 2 << 20;
/// Unless the system reads so far ahead by itself, in bytes: it does so with large pages, at less cost.
pub const SYSTEM_READ_AHEAD_BYTES: u64 = 1 << 20;

/// Files up to this size travel in bundles, content inline, with no question asked before them; larger ones are offered.
pub const BUNDLED_FILE_BYTES_MAX: u64 = 1 << 20;
/// A bundle is closed when its content reaches this many bytes: one frame a few milliseconds long.
pub const BUNDLE_BYTES: u64 = 1 << 20;
/// Or this many items. Bounds what is held per unacknowledged bundle, and spreads 1,000,000 empty files over streams.
pub const BUNDLE_ITEMS: usize = 256;

/// Data connections on a path with no delay to speak of (`--streams`): one for each processor of the smaller host, at least so many: two
/// overlap the work of two cores.
pub const STREAMS_NEAR: u16 = 2;
/// And at most so many: that many processors do what a path can take.
pub const STREAMS_NEAR_MAX: u16 = 8;
/// On a path with delay, where the sending host takes loss for congestion (cubic, reno): a window that is halved is one of many. At 50 ms
/// and 1 Gbit/s 16 are enough for one packet lost in 10,000, for one in 1,000 it takes 32.
pub const STREAMS_FAR: u16 = 32;
/// On a path with delay, where it does not (bbr): each stream fills the path by itself, and many starve each other.
pub const STREAMS_FAR_BBR: u16 = 8;
/// While a transfer runs, more may be found better: of bbr's eight, or of a near path's few. So many at most for each processor of the
/// smaller host: two threads each, and what a stream costs there is not seen by the network.
pub const STREAMS_PER_PROCESSOR: u16 = 16;
/// And so many in all: beyond, none earns its part.
pub const STREAMS_FOUND_MAX: u16 = 64;
/// Round trip from which a path counts as far.
pub const FAR_RTT: Duration = Duration::from_millis(5);

/// A word at least so often on every control connection, so that silence means a fault.
pub const HEARTBEAT: Duration = Duration::from_secs(5);
/// Silence that ends a session: several lost heartbeats, yet before a person gives up.
pub const SILENCE: Duration = Duration::from_secs(30);
/// From starting ssh, or connecting to a node, to its first word (`--connect-timeout`): time to type a password.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// A direct data connection that has not been made after this is raced by one the other way.
pub const LINK_STAGGER: Duration = Duration::from_millis(1200);
/// So long one dial may take. If neither way has worked [`LINK_STAGGER`] and this after the first: a tunnel.
pub const LINK_TIMEOUT: Duration = Duration::from_secs(5);
/// From accepting a connection to knowing who is there.
pub const AUTHENTICATE_TIMEOUT: Duration = Duration::from_secs(10);

/// A block that is on its way for longer than this many times the usual, while a stream has nothing to do, is sent again.
pub const STRAGGLER_FACTOR: u32 = 4;
/// And never earlier than this: a pause of the scheduler is not a fault.
pub const STRAGGLER_AGE_MIN: Duration = Duration::from_millis(500);

/// The least difference of two change times where a file system keeps fractions of seconds: two ticks of the slowest kernel (100 a second).
pub const TICK: Duration = Duration::from_millis(20);
/// The same where it shows none: FAT counts by two seconds, ext3 and many servers by one; and a tick.
pub const WHOLE_SECONDS: Duration = Duration::from_millis(2020);
/// What changed so long ago is not being written by a call that began then: one call writes 2 GiB at most, at 4 MB/s or faster.
pub const SETTLED_AFTER: Duration = Duration::from_secs(600);
/// How often a file that changes again while its last change becomes old is looked at; where that takes [`WHOLE_SECONDS`], once.
pub const RESTS_MAX: u32 = 5;

/// How often an end tells where the time of its streams goes, and what they carry: a probe is made of several.
pub const STAGES_INTERVAL: Duration = Duration::from_millis(500);
/// Over so long a rate is compared with what was usual: long enough for it to mean something. An end of version 2 tells as often.
pub const STRETCH: Duration = Duration::from_secs(10);

/// What has landed is told to the sender at most so often: each time wakes a thread of every process on the way and every stream of the
/// sender, which counts at a thousand blocks a second. Shorter than anybody waits for it.
pub const LANDED_INTERVAL: Duration = Duration::from_millis(20);

/// How often progress is told.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// A file system that needs longer than this to sync everything is shared with others: from then on each file is synced
/// by itself.
pub const SYNC_ALL_PATIENCE: Duration = Duration::from_secs(1);

/// What has landed is made durable and written into the marker this often: what a crash costs.
pub const MARKER_INTERVAL: Duration = Duration::from_secs(1);
/// Or after this many bytes, whichever is first.
pub const MARKER_BYTES: u64 = 256 << 20;
/// What the coarsest file systems take for one moment (FAT two seconds, ext3 and many servers one): a file that last changed so short a time ago
/// may change once more, and its times not tell.
pub const CHANGE_TIME_GRAIN: Duration = Duration::from_secs(2);
/// Attempts in a row that get nowhere before a copy is given up (`--retries`). With the pauses between them a quarter of an hour: a
/// network that is away for ten minutes costs nobody a transfer.
pub const RETRIES: u32 = 40;
/// The same before anything has been reached for the first time: a mistyped name should not keep a person waiting.
pub const FIRST_RETRIES: u32 = 4;
/// First pause before trying again; doubled each time, with jitter.
pub const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// Longest pause.
pub const RETRY_PAUSE_MAX: Duration = Duration::from_secs(30);
/// Data sent and not acknowledged, nor anything else heard, for so long: the stream is lost.
pub const STREAM_SILENCE: Duration = Duration::from_secs(20);
/// A read or write of a file that takes longer than this is told as stalled.
pub const STALLED_AFTER: Duration = Duration::from_secs(10);
/// Left by a transfer this long ago, nobody will take it up any more (`carrack gc --older-than`).
pub const LEFTOVER_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long a command that was told to end, by a signal or its deadline, still waits for whoever does not read what it says: a reader
/// that is only slow takes a pipe's content in that time, and the promise is to end within 2 s.
pub const READER_GRACE: Duration = Duration::from_millis(500);
