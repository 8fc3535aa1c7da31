//! Every knob, once: its unit, default, bounds and reason. Automatic first; what a flag can override says so.

use std::time::Duration;

/// Unit of sending, hashing, acknowledging and repair, in bytes (`--block`). Large enough that its frame, its
/// acknowledgement and its lock cost nothing per byte; small enough that a repair is cheap and eight streams end together.
pub const BLOCK_BYTES: u32 = 4 << 20;
/// Smallest block: BLAKE3 hashes several kilobytes at once, and a block's bookkeeping must stay far below its bytes.
pub const BLOCK_BYTES_MIN: u32 = 64 << 10;
/// Largest block: one per stream may have to be sent again.
pub const BLOCK_BYTES_MAX: u32 = 64 << 20;

/// What one read, hash, seal and write handles at a time, in bytes. It stays in a core's second-level cache together with
/// its sealed copy, so that each byte is fetched from memory once on each side.
pub const SLICE_BYTES: usize = 256 << 10;

/// Files up to this size travel in bundles, content inline, with no question asked before them; larger ones are offered.
pub const BUNDLED_FILE_BYTES_MAX: u64 = 1 << 20;
/// A bundle is closed when its content reaches this many bytes: one frame a few milliseconds long.
pub const BUNDLE_BYTES: u64 = 1 << 20;
/// Or this many items. Bounds what is held per unacknowledged bundle, and spreads 1,000,000 empty files over streams.
pub const BUNDLE_ITEMS: usize = 256;

/// Data connections on a path with no delay to speak of (`--streams`): two overlap the work of two cores, more only cost there.
pub const STREAMS_NEAR: u16 = 2;
/// On a path with delay: loss is shared by several windows.
pub const STREAMS_FAR: u16 = 16;
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
/// No data connection either way after this: tunnel.
pub const LINK_TIMEOUT: Duration = Duration::from_secs(5);
/// From accepting a connection to knowing who is there.
pub const AUTHENTICATE_TIMEOUT: Duration = Duration::from_secs(10);

/// A block that is on its way for longer than this many times the usual, while a stream has nothing to do, is sent again.
pub const STRAGGLER_FACTOR: u32 = 4;
/// And never earlier than this: a pause of the scheduler is not a fault.
pub const STRAGGLER_AGE_MIN: Duration = Duration::from_millis(500);

/// How often progress is told.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// A file system that needs longer than this to sync everything is shared with others: from then on each file is synced
/// by itself.
pub const SYNC_ALL_PATIENCE: Duration = Duration::from_secs(1);
