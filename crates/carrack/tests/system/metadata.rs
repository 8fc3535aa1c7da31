//! File systems whose metadata is on a server that answers each call late: as many workers as it takes.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrack_core::location::Location;
use carrack_core::request::{CopyOptions, CopyRequest, Durability};
use carrack_core::tuning::Tuning;
use carrack_engine::{Context, Copy};
use carrack_faults::can_mount;
use carrack_faults::fuse::{Call, FaultFs, Features, Load};

use crate::support::{Sandbox, same_tree};

/// Files in each directory: the kernel makes names in one directory one after the other.
const IN_EACH: usize = 8;

/// A file system whose server answers `knee` calls at once as fast as one.
struct Scene {
    slow: FaultFs,
    sandbox: Sandbox,
}

impl Scene {
    fn new() -> Option<Self> {
        if !can_mount("a FUSE file system") {
            return None;
        }
        let sandbox = Sandbox::in_memory();
        for name in ["backing", "at", "fast"] {
            std::fs::create_dir(sandbox.path(name)).unwrap();
        }
        let features = Features { many_at_once: true, uncached: true, ..Features::default() };
        let slow = FaultFs::mount(&sandbox.path("backing"), &sandbox.path("at"), features).unwrap();
        Some(Self { slow, sandbox })
    }

    /// Small files below a directory of the sandbox.
    fn write(&self, top: &str, files: usize) {
        for number in 0..files {
            self.sandbox.write(format!("{top}/d{}/f{number}", number / IN_EACH), format!("content {number}"));
        }
    }

    /// The time of a copy with so many workers, or with as many as are found; and the most calls at once.
    fn time(&self, calls: &[Call], from: &Path, to: &Path, workers: u16) -> (Duration, u32) {
        self.slow.load(Load { calls: calls.to_vec(), each: EACH, knee: KNEE });
        let local = |path: &Path| Location::Local(format!("{}/", path.display()).into_bytes());
        let options = CopyOptions { durability: Durability::None, ..CopyOptions::default() };
        let request = CopyRequest { sources: vec![local(from)], destination: local(to), options };
        let streams = Tuning { streams_near: 2, streams_near_max: 2, ..Tuning::default() };
        let tuning = Arc::new(Tuning { metadata_workers: workers, ..streams });
        let start = Instant::now();
        let report = Copy::start(request, &Context { tuning, ..Context::default() }).wait();
        let time = start.elapsed();
        assert!(report.error.is_none() && report.counts.files_failed == 0, "{:?} {:?}", report.error, report.failures);
        (time, self.slow.loaded_most())
    }
}

const KNEE: u32 = 4;
const EACH: Duration = Duration::from_millis(8);
/// Fixed numbers that it is compared with: below the knee, at it, and beyond.
const FIXED: [u16; 3] = [2, 4, 12];

fn is_quiet() -> bool {
    std::env::var_os("CARRACK_QUIET").is_some()
}

/// The copy whose number of workers is found makes more calls at once than it has threads of its own. On a machine that
/// does nothing else (`CARRACK_QUIET=1`) it gets at least nine tenths of what the best fixed number does.
#[track_caller]
fn compare(threads: u32, copy: impl Fn(u16) -> (Duration, u32)) {
    let found = copy(0);
    assert!(found.1 > threads, "{found:?}");
    if !is_quiet() {
        return;
    }
    let fixed: Vec<_> = FIXED.into_iter().map(|workers| (workers, copy(workers))).collect();
    let best = fixed.iter().map(|(_, (time, _))| *time).min().unwrap();
    println!("fixed {fixed:?}, found {found:?}");
    assert!(found.0.mul_f64(0.9) <= best, "found {found:?}, fixed {fixed:?}");
    assert!(fixed[0].1.0 > best.mul_f64(1.3), "two workers should not do: {fixed:?}");
}

#[test]
fn workers_follow_a_slow_source() {
    let Some(scene) = Scene::new() else { return };
    scene.write("backing/tree", 600);
    let (number, fast) = (std::cell::Cell::new(0), scene.sandbox.path("fast"));
    let from = scene.slow.path().join("tree");
    // The walk, and two streams.
    compare(3, |workers| {
        number.set(number.get() + 1);
        scene.time(&[Call::Look, Call::Open], &from, &fast.join(number.get().to_string()), workers)
    });
    same_tree(&scene.sandbox.path("backing/tree"), &fast.join("1"));
}

#[test]
fn workers_follow_a_slow_destination() {
    let Some(scene) = Scene::new() else { return };
    // Long enough that the beginning, when the number is looked for, does not count for much where rates are compared.
    scene.write("fast/tree", if is_quiet() { 4000 } else { 1600 });
    let (number, from) = (std::cell::Cell::new(0), scene.sandbox.path("fast/tree"));
    // Two streams.
    compare(2, |workers| {
        number.set(number.get() + 1);
        scene.time(&[Call::Create], &from, &scene.slow.path().join(number.get().to_string()), workers)
    });
    same_tree(&from, &scene.sandbox.path("backing/1"));
}
