//! What a seed decides.

use std::time::Duration;

use crate::chance::Chance;
pub use crate::chance::mixed as mix;
use crate::growing::GrowingSources;
use crate::request::{Compare, Digests, Durability, MainDigest, Renames, Verify};
use crate::tuning::Tuning;
use crate::wire::Version;
use crate::wire::control::TransferOptions;

/// What chooses faults.
#[derive(Debug)]
pub struct Rng(Chance);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(Chance::new(mix(seed)))
    }

    pub fn next(&mut self) -> u64 {
        self.0.number()
    }

    /// Less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    pub fn up_to(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.below(most.as_nanos() as u64 + 1))
    }

    /// In most runs none, in others up to `most`: runs with few kinds of faults find what runs with all of them hide.
    fn sometimes(&mut self, most: u64) -> u64 {
        if self.chance(300) { 1 + self.below(most) } else { 0 }
    }
}

/// A bug put in on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A block arrives with the content and the digest of another.
    SwappedOnTheWay,
    /// A block is written where another belongs.
    SwappedOnDisk,
    /// Held blocks are confirmed without being compared.
    ConfirmUnread,
    /// The marker claims blocks before they are synced.
    ClaimBeforeSync,
    /// A sync that failed is tried again, and believed.
    SyncAgain,
    /// A claim is left in the marker while its block is written over.
    ClaimKept,
    /// With `--verify disk` a file gets its name before its blocks have been read back.
    PublishUnchecked,
    /// That a source has changed since it was published is not looked at.
    ChangeIgnored,
    /// A hole that comes for a part file is not written: it is taken for granted that nothing stands there.
    HoleNotWritten,
    /// Another file of the same name, size and times is taken for the one that was published.
    IdentityIgnored,
    /// A file of another host is taken for this one's, where all else is the same.
    HostIgnored,
    /// What changed just now is known by its times, though it may change again before these move.
    FreshBelieved,
    /// A source is opened and read though it changed just now.
    NotSettled,
    /// What is opened need not be what was listed.
    ListingBelieved,
    /// What the marker claims is believed of a part file that somebody else has altered.
    PartBelieved,
    /// What was published is believed to stand under its name, whatever stands there.
    NameBelieved,
    /// Of two sources with one name both are sent.
    TwinsSent,
    /// What the second reading gives is not looked at: the first one's digests are handed over instead.
    SecondReadingSkipped,
}

/// Who stops in the middle of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The receiver, and maybe the sender.
    Receiver,
    /// The sender, or the command: the receiver notices.
    Sender,
    /// The receiver's host loses power.
    Power,
}

/// What is copied, how fast, and what goes wrong; chances in thousandths.
#[derive(Debug)]
pub struct Plan {
    pub seed: u64,
    pub options: TransferOptions,
    /// Data streams at the beginning.
    pub streams: u16,
    pub small_items: u64,
    pub large_files: u64,
    pub latency: Duration,
    pub control_latency: Duration,
    pub bytes_per_second: u64,
    pub disk_delay: Duration,
    pub report_delay: Duration,
    /// A data connection is reset, asked once per frame.
    pub loss: u64,
    pub stall: u64,
    pub corruption: u64,
    pub read_failure: u64,
    pub write_failure: u64,
    pub source_change: u64,
    pub refusal: u64,
    pub keep: u64,
    /// Of a file that is offered, blocks are taken over from what stands at its name.
    pub taking_over: u64,
    /// A part file shares its blocks with the source.
    pub sharing: u64,
    pub publish_failure: u64,
    pub commit_failure: u64,
    pub directory_failure: u64,
    /// Every data connection is lost at this moment.
    pub blackout: Option<Duration>,
    /// The user stops one of the sides.
    pub abort: Option<Duration>,
    pub mutant: Option<Mutant>,
    /// The command changes its mind about the number of streams: so many more, or fewer.
    pub changes_of_streams: Vec<(Duration, i16)>,
    /// A sync fails.
    pub sync_failure: u64,
    /// A block that was synced is given back as another.
    pub rot: u64,
    /// After so many steps.
    pub crash: Option<(u64, Crash)>,
    pub tuning: Tuning,
}

/// In most runs none, in others a few, some of them while nothing has been read yet.
fn changes_of_streams(seed: u64) -> Vec<(Duration, i16)> {
    // Of a row of its own: what else a seed decides stays what it was.
    let mut rng = Rng::new(seed ^ 0x5712_ea35);
    let count = if rng.chance(400) { 1 + rng.below(5) } else { 0 };
    let most = [Duration::from_millis(20), Duration::from_secs(2)][rng.below(2) as usize];
    (0..count).map(|_| (rng.up_to(most), rng.below(14) as i16 - 9)).collect()
}

/// In most runs what the program uses, in others knobs that lead down paths which the defaults seldom take: files of
/// any size offered, bundles of one item, a checkpoint for every block or none, everything told at once.
fn tuning(seed: u64) -> Tuning {
    // Of a row of its own, like the changes of streams.
    let mut rng = Rng::new(seed ^ 0x7e91_03b4);
    let parked = [Duration::ZERO, Duration::from_millis(100), Tuning::DEFAULT.parked][(seed % 3) as usize];
    let sample_interval = Duration::from_millis(1);
    let mut tuning = Tuning { parked, sample_interval, ..Tuning::DEFAULT };
    if rng.chance(600) {
        return tuning;
    }
    let millis = Duration::from_millis;
    tuning.bundled_file_bytes_max = [0, 20, 10_000, tuning.bundled_file_bytes_max][rng.below(4) as usize];
    tuning.bundle_items = [1, 3, tuning.bundle_items][rng.below(3) as usize];
    tuning.bundle_bytes = [1, 30_000, tuning.bundle_bytes][rng.below(3) as usize];
    tuning.landed_interval = [Duration::ZERO, millis(20), millis(500)][rng.below(3) as usize];
    tuning.marker_interval = [millis(1), millis(20), millis(1000), millis(3_600_000)][rng.below(4) as usize];
    tuning.marker_bytes = [1, 256 << 10, tuning.marker_bytes][rng.below(3) as usize];
    tuning.straggler_age_min = [millis(1), tuning.straggler_age_min][rng.below(2) as usize];
    assert_eq!(tuning.check(), Ok(()));
    tuning
}

impl Plan {
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let blake3 = !rng.chance(100);
        let verify = match rng.below(3) {
            _ if !blake3 => Verify::None,
            0 => Verify::Disk,
            _ => Verify::Wire,
        };
        let block_bytes = 64 << (10 + rng.below(5));
        let options = TransferOptions {
            digests: Digests {
                main: blake3.then_some(MainDigest::Blake3),
                adler32: rng.chance(300),
                crc32c: rng.chance(300),
            },
            item_events: true,
            items_in_flight: true,
            growing: growing(seed),
            ..TransferOptions::of(&Default::default(), verify, block_bytes, Version::NEWEST)
        };
        let options = compared(seed, options);
        let shares = verify != Verify::Disk && Rng::new(seed ^ 0x5a4e_d000).chance(250);
        let options = TransferOptions { shares, ..options };
        let streams = [1, 2, 2, 3, 4, 7, 8, 16][rng.below(8) as usize];
        let (small_items, large_files) = match rng.below(200) {
            0 => (3000 + rng.below(6000), rng.below(4)),
            1 => (rng.below(10), 250 + rng.below(150)),
            2..40 => (rng.below(3), rng.below(2)),
            40..80 => (0, 1 + rng.below(4)),
            _ => (rng.below(60), rng.below(7)),
        };
        let millis = Duration::from_millis;
        Self {
            seed,
            options,
            streams,
            small_items,
            large_files,
            latency: [millis(0), Duration::from_micros(50), millis(5), millis(80)][rng.below(4) as usize],
            control_latency: [Duration::from_micros(20), millis(1), millis(40), millis(400)][rng.below(4) as usize],
            bytes_per_second: 1 << (20 + rng.below(11)),
            disk_delay: [Duration::ZERO, millis(1), millis(50), millis(3000)][rng.below(4) as usize],
            report_delay: [Duration::ZERO, Duration::ZERO, millis(1), millis(200)][rng.below(4) as usize],
            loss: rng.sometimes(60),
            stall: rng.sometimes(60),
            corruption: if blake3 { rng.sometimes(150) } else { 0 },
            read_failure: rng.sometimes(30),
            write_failure: rng.sometimes(30),
            source_change: if blake3 { rng.sometimes(300) } else { 0 },
            refusal: rng.sometimes(200),
            keep: rng.sometimes(200),
            taking_over: Rng::new(seed ^ 0x0de1_7a00).sometimes(1000),
            sharing: if options.shares { 1 + Rng::new(seed ^ 0x5a4e_0000).below(1000) } else { 0 },
            publish_failure: rng.sometimes(200),
            commit_failure: rng.sometimes(100),
            directory_failure: rng.sometimes(300),
            blackout: rng.chance(40).then(|| rng.up_to(millis(300))),
            abort: rng.chance(40).then(|| rng.up_to(millis(500))),
            mutant: None,
            changes_of_streams: changes_of_streams(seed),
            sync_failure: 0,
            rot: 0,
            crash: None,
            tuning: tuning(seed),
        }
    }

    /// What is the same in all sessions of a row.
    pub fn of_row(seed: u64) -> Self {
        let mut plan = Self::new(mix(!seed));
        let mut rng = Rng::new(seed);
        let millis = Duration::from_millis;
        plan.seed = seed;
        let main = if seed % 3 == 1 { MainDigest::Xxh128 } else { MainDigest::Blake3 };
        plan.options.digests.main = Some(main);
        plan.options.block_bytes = 64 << (10 + rng.below(3));
        plan.options.durability = match rng.below(4) {
            0 => Durability::None,
            1 => Durability::Each,
            _ => Durability::Group,
        };
        (plan.small_items, plan.large_files) = match rng.below(4) {
            0 => (rng.below(40), 0),
            1 => (0, 1 + rng.below(3)),
            _ => (rng.below(30), 1 + rng.below(4)),
        };
        plan.latency = [millis(0), Duration::from_micros(50), millis(5)][rng.below(3) as usize];
        plan.control_latency = [Duration::from_micros(20), millis(1), millis(40)][rng.below(3) as usize];
        // Slow enough for a checkpoint now and then.
        plan.bytes_per_second = 1 << (18 + rng.below(9));
        plan
    }

    /// One session of a row. The last goes as it should.
    pub fn of_session(seed: u64, session: u64, last: bool) -> Self {
        let mut plan = Self::of_row(seed);
        let mut rng = Rng::new(seed.wrapping_mul(31).wrapping_add(session));
        let harm = |rng: &mut Rng, most: u64| if last { 0 } else { rng.sometimes(most) };
        plan.seed = rng.next();
        plan.changes_of_streams = changes_of_streams(plan.seed);
        // Which files are bundled decides what their content is modelled as: the same in all sessions of a row.
        plan.tuning = Tuning { bundled_file_bytes_max: plan.tuning.bundled_file_bytes_max, ..tuning(plan.seed) };
        plan.options.verify = [Verify::Wire, Verify::Disk][rng.below(2) as usize];
        plan.options.shares &= plan.options.verify != Verify::Disk;
        plan.loss = rng.sometimes(60);
        plan.corruption = harm(&mut rng, 150);
        plan.read_failure = harm(&mut rng, 30);
        plan.write_failure = harm(&mut rng, 30);
        plan.source_change = harm(&mut rng, 300);
        plan.refusal = harm(&mut rng, 200);
        plan.keep = harm(&mut rng, 100);
        plan.publish_failure = harm(&mut rng, 200);
        plan.commit_failure = harm(&mut rng, 100);
        plan.directory_failure = harm(&mut rng, 300);
        plan.sync_failure = harm(&mut rng, 200);
        plan.rot = if plan.options.verify == Verify::Disk { harm(&mut rng, 200) } else { 0 };
        if seed % 7 == 6 {
            plan.read_twice();
        }
        plan.blackout = rng.chance(100).then(|| rng.up_to(Duration::from_millis(300)));
        plan.abort = (!last && rng.chance(100)).then(|| rng.up_to(Duration::from_secs(5)));
        let who = [Crash::Receiver, Crash::Sender, Crash::Power][rng.below(3) as usize];
        let steps = 1 << (3 + rng.below(9));
        plan.crash = (!last && rng.chance(800)).then(|| (rng.below(steps), who));
        plan
    }

    /// Sources are read twice, and change without a trace.
    pub fn read_twice(&mut self) {
        (self.options.verify, self.rot) = (Verify::Source, 0);
        self.options.shares = false;
    }

    /// A run with nothing else wrong, and files large enough to have blocks to swap.
    pub fn with_mutant(seed: u64, mutant: Mutant) -> Self {
        let mut plan = Self::new(seed);
        plan.options.digests.main = Some(MainDigest::Blake3);
        plan.options.verify = if mutant == Mutant::SwappedOnDisk { Verify::Disk } else { Verify::Wire };
        plan.options.shares = false;
        plan.options.growing = GrowingSources::Refuse;
        plan.options.block_bytes = 64 << 10;
        plan.large_files = 1 + seed % 3;
        plan.small_items = plan.small_items.min(20);
        plan.mutant = Some(mutant);
        (plan.source_change, plan.blackout, plan.abort) = (0, None, None);
        plan
    }
}

/// Some transfers follow what grows: by a seed of its own, too.
fn growing(seed: u64) -> GrowingSources {
    if Rng::new(seed ^ 0xf011_0000).chance(250) { GrowingSources::Follow } else { GrowingSources::Refuse }
}

/// Some transfers compare, and some tell names: by a seed of its own, so that what older seeds do stays what it was.
fn compared(seed: u64, options: TransferOptions) -> TransferOptions {
    let mut rng = Rng::new(seed ^ 0x5eed_c0de);
    let compare = match rng.below(10) {
        0 => Compare::SizeAndTime,
        1 => Compare::Content,
        _ => Compare::Nothing,
    };
    let (tells_names, removes_sources) = (rng.chance(200), rng.chance(200));
    let deletes_first = tells_names && rng.chance(300);
    // No file of the model has another name: all names come first, and nothing is deleted before the end.
    let renames = if tells_names && rng.chance(200) { Renames::Content } else { Renames::Never };
    TransferOptions { compare, tells_names, removes_sources, deletes_first, renames, ..options }
}
