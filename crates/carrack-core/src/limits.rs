//! Every maximum, once. What a peer sends is checked against these before anything is allocated for it.

use std::time::Duration;

/// One control message, encoded, in bytes.
pub const MESSAGE_BYTES: usize = 1 << 20;
/// Memory that one field of a decoded message takes, in bytes, beside what it holds: more than the
/// largest element of any list.
pub const FIELD_BYTES: usize = 256;
/// Fields of one request that hold more than a number: each source of a command has three, and a name may
/// look as if it had some more.
pub const REQUEST_FIELDS: usize = 5 * SOURCES;
/// The same of one answer: a page's entry, or an item, has five.
pub const ANSWER_FIELDS: usize = 64 << 10;
/// The same of one message of the peer conversation: attributes of directories, of which 128 KiB go
/// together, have two for each.
pub const PEER_FIELDS: usize = 128 << 10;
/// Bytes of requests that wait while another is carried out.
pub const REQUEST_BYTES_WAITING: usize = 4 << 20;
/// What ends have said out of turn and a command keeps until it asks for it, in bytes once it is decoded.
pub const WORDS_KEPT_BYTES: usize = 32 << 20;
/// One frame of a multiplexed control connection, in bytes.
pub const MUX_FRAME_BYTES: usize = MESSAGE_BYTES + 64;
/// What a peer may still send over a control connection that this side has ended, in bytes: what was under way before
/// it heard of the end, on a fast and long path, tunnelled streams included.
pub const PARTING_BYTES: usize = 64 << 20;
/// A path relative to the root of a transfer, in bytes: its length is two bytes on the wire. Longer than `PATH_MAX`:
/// every directory is opened in hops.
pub const PATH_BYTES: usize = u16::MAX as usize;
/// Bytes of a location in a document, and of a path there.
pub const LOCATION_BYTES: usize = 16 << 10;
/// One component of it: what every file system in use allows.
pub const NAME_BYTES: usize = 255;
/// Target of a symbolic link, in bytes.
pub const LINK_TARGET_BYTES: usize = 4096;
/// Attributes of one item beside permissions and time, each of another kind.
pub const ATTRIBUTES: usize = 32;
/// What they take where they travel, in bytes: the length is two bytes on the wire.
pub const ATTRIBUTE_BYTES: usize = u16::MAX as usize;
/// Text of an error from the peer, in bytes.
pub const ERROR_TEXT_BYTES: usize = 2048;
/// The parts of an error from the peer, in bytes: three texts and a path for it and each of its sources.
pub const FAILURE_PARTS_BYTES: usize = (FAILURE_SOURCES + 1) * (PATH_BYTES + 4 * ERROR_TEXT_BYTES + 64);
/// Failures that led to one another, below the last.
pub const FAILURE_SOURCES: usize = 3;
/// What a copy has told and its reader has not taken yet, in bytes: then the copy waits. As much again
/// may be in the reader's hands. It is as much as a pipe holds: a command whose output nobody reads
/// should not have finished long ago.
pub const EVENT_BYTES: usize = 64 << 10;
/// Notes for a person that wait while an end is opened: each has at most [`ERROR_TEXT_BYTES`], or is a line of ssh's.
pub const NOTES_WAITING: usize = 64;
/// Smallest block, in bytes: BLAKE3 hashes several kilobytes at once, and a block's bookkeeping must
/// stay far below its bytes.
pub const BLOCK_BYTES_MIN: u32 = 64 << 10;
/// A piece of what a data stream carries, compressed or not, in bytes: what it unpacks to is held in memory.
pub const PIECE_BYTES: u32 = 256 << 10;
/// Largest block, in bytes: one per stream may have to be sent again.
pub const BLOCK_BYTES_MAX: u32 = 64 << 20;
/// Data connections of one transfer.
pub const STREAMS: u16 = 256;
/// Characters of the label of a task.
pub const LABEL_CHARACTERS_MAX: usize = 256;
/// The highest priority of a task.
pub const PRIORITY_MAX: u8 = 9;
/// Calls of one kind to a file system's metadata that one end has under way at once: each is a thread.
pub const METADATA_WORKERS: u16 = 256;
/// Buffers for whole slices of all receiving streams of a process, in bytes: 150 streams have them. A stream beyond
/// handles a TLS record at a time, in 100 KB, so that a node's memory hardly grows with a crowd of clients.
pub const LARGE_BUFFER_BYTES: usize = 128 << 20;
/// Items in one bundle.
pub const BUNDLE_ITEMS: u32 = 4096;
/// Content of one bundle, in bytes: a full one may take one more of the largest bundled file.
pub const BUNDLE_BYTES: u64 = 16 << 20;
/// Bytes of the name of a user or a group that is told: the longest that Linux's own tools take are 32.
pub const ACCOUNT_NAME_BYTES: usize = 255;
/// Chunks of a small file that is compared chunk by chunk: as many digests travel, and are kept until it is sent.
pub const FILE_CHUNKS: usize = 256;
/// Such a file: it is in memory as it was, as it is, and as the patch between them.
pub const PATCHED_BYTES: u64 = 1 << 20;
/// A file: `off_t`.
pub const FILE_BYTES: u64 = i64::MAX as u64;
/// Files that a receiver has open at once. Blocks are only sent for open files, so this bounds descriptors and ledgers.
pub const OPEN_ITEMS: usize = 64;
/// Files offered and not yet answered or waiting for their turn.
pub const OFFERED_ITEMS: usize = 256;
/// Followed files among them, which may grow for ever: others go past them, at both ends.
pub const FOLLOWED_ITEMS: usize = OPEN_ITEMS / 2;
/// Bundles sent and not yet acknowledged.
pub const UNACKNOWLEDGED_BUNDLES: usize = 128;
/// Bundles filled by the scan and not yet taken by a stream.
pub const QUEUED_BUNDLES: usize = 32;
/// Reports of items that nobody has taken from the sender, in bytes: then nothing more is looked for at the source.
/// What is on its way by then is reported beyond it.
pub const REPORT_BYTES_WAITING: usize = 1 << 20;
/// Times that one block or bundle is sent before its file is given up.
pub const SENDS_PER_BLOCK: u32 = 8;
/// Sources of one command.
pub const SOURCES: usize = 65_536;
/// Sources that a listing may look into for the same names.
pub const LISTED_SOURCES: usize = 256;
/// Paths that one request may ask about. Their answer has to fit into a message.
pub const INSPECTED_PATHS: usize = 1024;
/// Requests that wait while another is carried out. A command asks and waits; it never has more than a few out.
pub const REQUESTS_WAITING: usize = 16;
/// What ends have said out of turn and a command keeps until it asks for it, in messages: the answers to all dials, and
/// some besides.
pub const WORDS_KEPT: usize = OWN_DIALS + 32;
/// Blocks, and bundles, that one message says have landed. Each takes 21 bytes at most; what landed while nobody
/// could speak may be more.
pub const LANDED_TOLD: usize = 16_384;
/// What one end has said and the command has not taken yet, decoded, in bytes: the end waits for whoever reads the
/// command's output. A message of the largest size fits.
pub const UNHEARD_BYTES: usize = 4 << 20;
/// Dials of one session at once, and addresses of one dial: each is a thread.
pub const DIALS: usize = 8;
/// Dials at once for a command in the same process, and so many more requests that wait. All connections of a far
/// path's copy can be made together.
pub const OWN_DIALS: usize = 64;
/// See [`DIALS`].
pub const DIAL_ADDRESSES: usize = 32;
/// How long a dial may take, whatever it was asked for.
pub const DIAL_TIMEOUT: Duration = Duration::from_secs(120);
/// Names that a process looks up at once. A look-up cannot be broken off, and holds a thread until the name
/// server answers or is given up.
pub const LOOK_UPS: usize = 64;
/// Data streams carried inside one control connection: each is two threads.
pub const TUNNELS: usize = 64;
/// Entries in one page of a listing.
pub const PAGE_ENTRIES: usize = 1000;
/// Bytes in one page of a listing, roughly.
pub const PAGE_BYTES: usize = 256 << 10;
/// Content of a file in one answer, in bytes. A decoder counts whatever looks like a field, at least one byte each: a
/// part stays below [`ANSWER_FIELDS`] whatever is in the file.
pub const PART_BYTES: usize = 48 << 10;
const _: () = assert!(PART_BYTES + 16 < ANSWER_FIELDS && PART_BYTES < MESSAGE_BYTES);
/// Directories that a directory lies in, and mounts below it, that an end tells of: what is beyond goes unsaid.
pub const PLACES_TOLD: usize = 200;
/// Paths that a receiver names whose items may be gone because a sync failed, in bytes; the rest are counted.
pub const UNSYNCED_PATHS_BYTES: usize = 256 << 10;
/// Number of these paths.
pub const UNSYNCED_PATHS: usize = 8192;
/// Directories whose permissions were not kept, as a receiver names them, in bytes; the rest are counted.
pub const UNKEPT_DIRECTORIES_BYTES: usize = 256 << 10;
/// Number of these directories.
pub const UNKEPT_DIRECTORIES: usize = 4096;
/// Unfinished files outside a selection that a receiver names; the rest are counted.
pub const UNFINISHED_PATHS: usize = 20;
/// Files in flight that a sender names: more than a person follows.
pub const IN_FLIGHT: usize = 8;
/// Paths of these files together, in bytes; one that does not fit in goes unsaid.
pub const IN_FLIGHT_PATHS_BYTES: usize = 32 << 10;
/// Failures that a report keeps in words; the rest are counted.
pub const FAILURES_TOLD: usize = 100;
/// Noise of a login shell before the agent's first word, in bytes.
pub const SHELL_NOISE_BYTES: usize = 256 << 10;
/// A bearer token, in bytes: what HTTP servers take in a header, and half of what a node takes
/// before it knows who speaks.
pub const TOKEN_BYTES: usize = 8 << 10;
/// The path that a grant is for, in bytes: with everything else that it says it is a token of at most [`TOKEN_BYTES`].
pub const GRANT_PREFIX_BYTES: usize = 4096;
/// Grants with ceilings that a node counts at once. One is forgotten when it has expired.
pub const GRANTS_COUNTED: usize = 65_536;
/// The list of known nodes, in bytes: some ten thousand nodes.
pub const KNOWN_NODES_BYTES: usize = 1 << 20;
/// Numbers that are kept of what copies have found; beyond, the oldest make way.
pub const KEPT_TUNING_ENTRIES: usize = 256;
/// The file that keeps them, in bytes: each line has three words of at most [`NAME_BYTES`], and four short ones.
pub const KEPT_TUNING_BYTES: usize = KEPT_TUNING_ENTRIES * (3 * NAME_BYTES + 64);
/// How long a number is kept: by then the path has been rebuilt, or nobody copies between the two any more.
pub const KEPT_TUNING_AGE: Duration = Duration::from_secs(90 * 24 * 3600);
/// A line that ssh, or the far side through it, says on standard error, in bytes; the rest of it is left out.
pub const SSH_MESSAGE_BYTES: u64 = 1024;
/// Lines of it that are passed on in one session: what they are passed to may keep them.
pub const SSH_MESSAGES: usize = 500;
/// Connections to one port that have not yet said who they are: each is a thread and 70 KB. Beyond, the oldest of the
/// network that has the most has to go.
pub const UNAUTHENTICATED: usize = 1024;
/// The first words of a TLS client (its ClientHello, and what comes with it) while it is not yet known what it
/// wants. Browsers say 2 KB.
pub const CLIENT_HELLO_BYTES: usize = 16 << 10;
/// Control sessions of a node at once. While so many are there, more may prove who they are, as many as
/// [`UNAUTHENTICATED`], and are told.
pub const SESSIONS: usize = 1024;
/// Files that only a destination has and that are compared with what the source has under other names. Those beyond are
/// deleted, and sent under their new names: each takes about 300 bytes of memory.
pub const RENAMED_FILES: usize = 1 << 20;
/// Files of a source of which size and time are noted, so that samples are told of none that another one is like; 20
/// to 40 bytes each. Beyond, no samples are told.
pub const NOTED_SOURCES: usize = 1 << 22;
/// Bytes of the paths of [`RENAMED_FILES`].
pub const RENAMED_PATH_BYTES: usize = 64 << 20;
/// Blocks whose digests fit into one message about what is held.
pub const HELD_BLOCKS: usize = 16_384;
/// Held blocks that are told and not yet confirmed or sent, in one transfer: what is told of them is kept until then.
/// Of what an earlier attempt left beyond, nothing is said, and it is sent again.
pub const HELD_BLOCKS_OPEN: usize = 1 << 21;
/// Chunks of held blocks that the sender keeps, in one transfer; of blocks beyond, those that differ are sent whole.
pub const HELD_CHUNKS: usize = 1 << 22;
/// Messages that tell of one item's held blocks: what lies in more pieces is sent again.
pub const HELD_MESSAGES: usize = 8192;
/// Blocks of one file that have landed and wait to be checkpointed. Those beyond are not written down in the marker,
/// unless they have to be read back.
pub const BLOCKS_TO_CHECKPOINT: usize = 16_384;
/// Bytes of the key that a marker is found by.
pub const MARKER_KEY_BYTES: usize = 8;
/// Times that a whole item is sent again after what was written of it was lost, or after its source changed.
pub const ITEM_ATTEMPTS: u32 = 3;
/// Paths that a command may select of its sources, and the bytes of all of them.
pub const SELECTED_PATHS: usize = 4 << 20;
/// See [`SELECTED_PATHS`].
pub const SELECTED_BYTES: usize = 256 << 20;
/// Files with several names of which a source is remembered to have deleted one after it was copied.
pub const LINKED_FILES: usize = 1 << 20;
/// Names of one file that are told to whoever is to make a further one of them.
pub const NAMES_OF_ONE: usize = 8;
/// Bytes of them, with what is told beside.
pub const LINKED_NAMES_BYTES: u64 = (NAMES_OF_ONE * (PATH_BYTES + 8) + 256) as u64;
/// Reference directories of one copy; rsync takes as many.
pub const REFERENCES: usize = 20;
/// Questions about items that may be there, asked and not yet answered.
pub const QUERIES: usize = 32;
/// Items of one question.
pub const ASKED_ITEMS: u32 = 4096;
/// Items that were asked about and of which it is not decided what becomes of them. No sender has so many.
pub const COMPARED_ITEMS: usize = 1 << 16;
/// Rules of what is left out, and the bytes of all of them, or of one file that has some.
pub const FILTER_RULES: usize = 10_000;
/// See [`FILTER_RULES`].
pub const FILTER_BYTES: usize = 1 << 20;
/// Items that a sync deletes without asking, where somebody can be asked; and no more than half of what there is.
pub const DELETED_UNASKED: u64 = 1000;
/// Bytes of paths or rules that are told in one message, roughly; what is more goes into further ones.
pub const TOLD_BYTES: usize = 128 << 10;
/// Payload of one record of a marker, in bytes: digests of [`HELD_BLOCKS`], or a path.
pub const MARKER_RECORD_BYTES: usize = 1 << 20;
/// Sessions that one marker tells of.
pub const MARKER_SESSIONS: usize = 1 << 16;
/// Part files that a marker tells of and that have not been published or removed.
pub const MARKER_PARTS: usize = 1 << 16;
/// Digests of unfinished files that are kept of a marker: 8 TiB at 4 MiB each, in 80 MiB of memory. More is sent again.
pub const MARKER_BLOCKS: usize = 2 << 20;
/// Published items that are kept of a marker, in 64 MiB of memory. More are sent again.
pub const KNOWN_ITEMS: usize = 1 << 20;
/// Things that happened to a copy and that its timeline keeps.
pub const TIMELINE_MARKS: usize = 1024;
/// Streams that one sample of an end tells of: [`STREAMS`], and as many that are lost and not yet gone.
pub const SAMPLE_STREAMS: usize = 2 * STREAMS as usize;
/// Steps of the way to another host that an end may tell.
pub const PATH_HOPS: usize = 64;
/// Devices that one sample of an end tells of.
pub const SAMPLE_DEVICES: usize = 16;
/// Bytes of the name of a device or an interface in a sample. Linux' are shorter.
pub const SAMPLE_NAME_BYTES: usize = 64;
/// Texts of the evidence that one host gives of itself.
pub const EVIDENCE_TEXTS: usize = 8192;
/// Bytes of the name of such a text: the path of a file in `/sys` may be long.
pub const EVIDENCE_NAME_BYTES: usize = 512;
/// Bytes of one such text; what is longer is cut off. The longest that a rule reads in full has some 30 KB.
pub const EVIDENCE_TEXT_BYTES: usize = 64 << 10;
/// Bytes of all of them, with their names.
pub const EVIDENCE_BYTES: usize = 4 << 20;
/// Data connections that one host's evidence tells of.
pub const EVIDENCE_CONNECTIONS: usize = 8;
/// A file that is uploaded through a service, in bytes. The service keeps it on its own disk until it is whole.
pub const UPLOAD_BYTES: u64 = 64 << 30;
/// One block of it, in bytes: a request of HTTP has one.
pub const UPLOAD_BLOCK_BYTES: u32 = 4 << 20;
/// Uploads of one user that have not been published, in bytes of the whole files.
pub const UPLOADS_BYTES: u64 = 256 << 30;
/// Uploads of one user that the service keeps something of.
pub const UPLOADS: usize = 20_000;
/// What uploads leave free where the service keeps its state, in bytes: the ledger has to be written, too.
pub const UPLOAD_SPARE_BYTES: u64 = 256 << 20;
