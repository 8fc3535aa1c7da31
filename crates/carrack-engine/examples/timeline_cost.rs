//! What the timeline costs: the same copies with it and without, in turn.
//!
//!     cargo run --release -p carrack-engine --example timeline_cost 9
//!
//! The argument is how many pairs; the second, if there is one, where the files go (`/dev/shm`). A large file from a
//! node into nothing, since new pages in memory cost a virtual machine a time that varies more than what is measured
//! here; and many small files to a node. Over loopback, encrypted. Both ends are in this process, so its processor time
//! is that of the source, the destination, and the command that keeps the timeline. Without the timeline, an end takes
//! one sample, at its end, and nobody asks for a clock. What varies by itself is shown by a second node without it.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // No product.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::location::{Location, NodeAddress};
use carrack_core::request::{CopyOptions, CopyRequest, Durability};
use carrack_core::tuning::Tuning;
use carrack_engine::node::{Access, Measure, Node, NodeConfig, NodeHandle, NodeLog, NodeRoot};
use carrack_engine::{Context, Copy, Stop};
use carrack_sys::measure::process_cpu_time;

/// Longer than any of these copies.
const NEVER: Duration = Duration::from_secs(24 * 3600);

const LARGE_MIB: u64 = 3 << 10;
const SMALL_FILES: usize = 50_000;
const SMALL_BYTES: usize = 4 << 10;
const SMALL_DIRECTORIES: usize = 250;

/// One way to measure: a node, and copies to it, with the same knobs.
struct Side {
    name: String,
    node: NodeHandle,
    root: PathBuf,
    tuning: Tuning,
}

/// Of one copy, in seconds.
#[derive(Clone, Copy)]
struct Cost {
    cpu: f64,
    wall: f64,
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let pairs: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(9);
    let place = arguments.next().unwrap_or_else(|| "/dev/shm".into());
    let directory = tempfile::tempdir_in(place)?;
    let off = Tuning { sample_interval: NEVER, clock_interval: NEVER, unmeasured: NEVER, ..Tuning::DEFAULT };
    let side = |name, tuning| Side::start(directory.path(), name, tuning);
    let sides = [side("without", off)?, side("with", Tuning::DEFAULT)?, side("again without", off)?];
    println!("| copy | timeline | CPU-s, median of {pairs} | ratio to without, of pairs: median (quartiles) | wall |");
    println!("|---|---|--:|--:|--:|");
    for (name, make) in [("large", make_large as fn(&Path) -> io::Result<()>), ("small", make_small)] {
        let source = directory.path().join(name);
        make(&source)?;
        if source.is_file() {
            sides.iter().try_for_each(|side| fs::hard_link(&source, side.root.join(name)))?;
        }
        // One that counts for nothing: what it finds cold, the others do not.
        sides[0].copy(&source)?;
        let mut costs = [(); 3].map(|()| Vec::new());
        for turn in 0..pairs {
            // Who comes first takes turns, too.
            for place in 0..sides.len() {
                let side = (turn + place) % sides.len();
                costs[side].push(sides[side].copy(&source)?);
            }
        }
        sides.iter().zip(&costs).for_each(|(side, own)| show(name, &side.name, &costs[0], own));
        if source.is_dir() { fs::remove_dir_all(&source)? } else { fs::remove_file(&source)? }
    }
    Ok(())
}

fn make_large(path: &Path) -> io::Result<()> {
    use io::{Read, Write};
    let (mut random, mut file) = (fs::File::open("/dev/urandom")?, fs::File::create(path)?);
    let mut slice = vec![0; 1 << 20];
    for _ in 0..LARGE_MIB {
        random.read_exact(&mut slice)?;
        file.write_all(&slice)?;
    }
    Ok(())
}

fn make_small(path: &Path) -> io::Result<()> {
    for number in 0..SMALL_FILES {
        let parent = path.join(format!("d{:04}", number * SMALL_DIRECTORIES / SMALL_FILES));
        fs::create_dir_all(&parent)?;
        let content: Vec<u8> = number.to_le_bytes().iter().copied().cycle().take(SMALL_BYTES).collect();
        fs::write(parent.join(format!("f{number:06}")), content)?;
    }
    Ok(())
}

impl Side {
    fn start(directory: &Path, name: &str, tuning: Tuning) -> io::Result<Self> {
        let root = directory.join(name);
        fs::create_dir(&root)?;
        let config = NodeConfig {
            root: NodeRoot::Directory(root.clone()),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            listener: None,
            access: Access::Anonymous,
            read_only: false,
            allows_ownership: false,
            measure: Measure::Nobody,
            dial_to: Vec::new(),
            key_file: directory.join(format!("{name}.key")),
            stop: Stop::new(),
            revoked: Default::default(),
            host_grants: None,
            doors: Vec::new(),
            log: NodeLog::none(),
            tuning,
        };
        let node = Node::start(config).map_err(|failure| io::Error::other(failure.message()))?;
        Ok(Self { name: name.into(), node, root, tuning })
    }

    /// A file comes from the node, and goes nowhere; a tree goes to the node.
    fn copy(&self, source: &Path) -> io::Result<Cost> {
        let target = self.root.join("copy");
        if target.is_dir() {
            fs::remove_dir_all(&target)?;
        }
        let address = self.node.address();
        let node =
            NodeAddress { host: address.ip().to_string(), port: address.port(), pin: Some(self.node.fingerprint()) };
        let local = || source.as_os_str().as_encoded_bytes().to_vec();
        let (source, destination) = if source.is_file() {
            (Location::Node { node, path: b"/large".to_vec() }, Location::Null)
        } else {
            (Location::Local(local()), Location::Node { node, path: b"/copy".to_vec() })
        };
        let request = CopyRequest {
            sources: vec![source],
            destination,
            options: CopyOptions { durability: Durability::None, retries: 0, ..CopyOptions::default() },
        };
        let context = Context { tuning: Arc::new(self.tuning), ..Context::default() };
        let (cpu, start) = (process_cpu_time(), Instant::now());
        let mut copy = Copy::start(request, &context);
        // As a program does that shows them.
        while copy.next_event().is_some() {}
        let report = copy.wait();
        if let Some(error) = report.error {
            return Err(io::Error::other(error.message()));
        }
        Ok(Cost { cpu: (process_cpu_time() - cpu).as_secs_f64(), wall: start.elapsed().as_secs_f64() })
    }
}

fn show(name: &str, side: &str, without: &[Cost], with: &[Cost]) {
    let ratios = |of: fn(&Cost) -> f64| -> Vec<f64> {
        sorted(with.iter().zip(without).map(|(with, without)| of(with) / of(without)).collect())
    };
    let middle = |costs: &[Cost]| at(&sorted(costs.iter().map(|cost| cost.cpu).collect()), 0.5);
    let (cpu, wall) = (ratios(|cost| cost.cpu), ratios(|cost| cost.wall));
    println!(
        "| {name} | {side} | {:.3} | {:.3} ({:.3} to {:.3}) | {:.3} |",
        middle(with),
        at(&cpu, 0.5),
        at(&cpu, 0.25),
        at(&cpu, 0.75),
        at(&wall, 0.5)
    );
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The value that this share of them is below, or close to it.
fn at(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}
