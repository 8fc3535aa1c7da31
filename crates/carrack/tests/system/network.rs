//! Many at once over a network that resets and refuses: everybody gets through, whole, and nobody sees a half file.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use carrack_core::chance::Chance;
use carrack_faults::image::Scarce;
use carrack_faults::proxy::Proxy;
use carrack_faults::strace::Inject;
use carrack_faults::watch::{self, Allowed, Watcher};

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::{InTime, Running, peak_resident};
use crate::support::{Ran, Sandbox, ran, same_tree, tree, wait_until};

/// A node behind a relay.
struct Behind {
    node: Node,
    proxy: Proxy,
}

impl Behind {
    fn start(sandbox: &Sandbox, seed: u64) -> Self {
        let node = Node::start(sandbox, "root", &[]);
        let proxy = Proxy::with_seed(node.address.parse().unwrap(), seed);
        Self { node, proxy }
    }

    /// A location on the node, by way of the relay.
    fn at(&self, path: &str) -> String {
        self.node.at(path).replace(&self.node.address, &self.proxy.address().to_string())
    }
}

/// Runs a command again until it succeeds, as somebody would who was told that it may pass.
#[track_caller]
fn persist(mut command: impl FnMut() -> Command, attempts: u32) -> (Ran, u32) {
    for attempt in 1.. {
        let done = ran(command().output_in_time().unwrap());
        if done.code == 0 {
            return (done, attempt);
        }
        assert!(attempt < attempts, "{attempt} attempts, and still: {}", done.stderr);
    }
    unreachable!("attempts are counted")
}

/// Resets a part of all connections, each time that so many more have been made, until it is told to stop.
fn disturb(proxy: &Proxy, every: usize, probability: f64, stop: &AtomicBool) {
    let mut next = every;
    while !stop.load(Ordering::Relaxed) {
        if proxy.connections().len() >= next {
            proxy.reset_some(probability);
            next += every;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn hundred_senders_through_resets_and_refusals_lose_nothing() {
    const SENDERS: u64 = 100;
    const FILES: u64 = 10;
    let sandbox = Sandbox::in_memory();
    let behind = Behind::start(&sandbox, 8);
    let mut allowed = Allowed::new();
    for sender in 0..SENDERS {
        let mut chance = Chance::new(sender);
        for file in 0..FILES {
            // One is sent in blocks, the others travel in a bundle; one is empty.
            let size = [(1 << 20) + chance.below(500_000), 0, chance.below(100_000)][(file as usize).min(2)];
            let content = tree::bytes(size as usize, sender * FILES + file + 1);
            sandbox.write(format!("from/s{sender}/f{file}"), &content);
            allowed.insert(PathBuf::from(format!("s{sender}/f{file}")), [watch::content(&content)].into());
        }
    }
    let there = sandbox.path("root/to");
    let watcher = Watcher::start(&there, allowed);
    behind.proxy.refuse(0.1);
    let (stop, attempts) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| disturb(&behind.proxy, 25, 0.2, &stop));
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let (sandbox, behind, attempts) = (&sandbox, &behind, &attempts);
                scope.spawn(move || {
                    let (_, took) = persist(
                        || {
                            let mut command = sandbox.carrack();
                            command.args(["--streams=2", "--block=256K", &behind.node.token()]);
                            command.args([format!("from/s{sender}/"), behind.at(&format!("to/s{sender}"))]);
                            command
                        },
                        60,
                    );
                    attempts.fetch_add(took.into(), Ordering::Relaxed);
                })
            })
            .collect();
        let results: Vec<_> = senders.into_iter().map(|sender| sender.join()).collect();
        stop.store(true, Ordering::Relaxed);
        for result in results {
            result.unwrap();
        }
    });
    let made = behind.proxy.made();
    println!("{} attempts, {made:?}", attempts.into_inner());
    assert!(made.refused > 0 && made.resets > 0, "{made:?}");
    let seen = watcher.end();
    assert_eq!(seen.violations, Vec::<String>::new());
    assert_eq!(watch::files(&there).len() as u64, SENDERS * FILES);
    same_tree(&sandbox.path("from"), &there);
}

/// What a node uses of its host at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    resident_bytes: u64,
    descriptors: u64,
    threads: u64,
}

impl Usage {
    fn of(process: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let number = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default()
        };
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count() as u64;
        Self { resident_bytes: number("VmRSS:") << 10, descriptors, threads: number("Threads:") }
    }

    fn most(all: &[Self]) -> Self {
        all.iter().fold(Self::default(), |most, one| Self {
            resident_bytes: most.resident_bytes.max(one.resident_bytes),
            descriptors: most.descriptors.max(one.descriptors),
            threads: most.threads.max(one.threads),
        })
    }
}

/// What a worker of the soak has done.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    copies: u64,
    kills: u64,
    failures: u64,
}

/// One copy after the other, each with something going wrong, each completed and compared.
fn soak_worker(sandbox: &Sandbox, behind: &Behind, worker: u64, until: Instant) -> Done {
    let mut chance = Chance::new(worker);
    let mut done = Done::default();
    while Instant::now() < until {
        let round = done.copies;
        let from = format!("from{worker}/{round}");
        for file in 0..chance.below(30) {
            sandbox.write(format!("{from}/f{file}"), tree::bytes(chance.below(60_000) as usize, file + 1));
        }
        sandbox.write(format!("{from}/large"), tree::bytes((2 << 20) + chance.below(8 << 20) as usize, round + 7));
        let to = behind.at(&format!("w{worker}/{round}"));
        let command = |to: &str| {
            let mut command = sandbox.carrack();
            command.args(["--streams=2", "--bwlimit=20MB", &behind.node.token(), &format!("{from}/"), to]);
            command
        };
        match chance.below(4) {
            0 => {
                let mut running = Running::start(&mut command(&to));
                let before = behind.proxy.carried().up;
                let bytes = chance.below(8 << 20);
                wait_until("bytes have come", || behind.proxy.carried().up > before + bytes || !running.is_running());
                signal(running.id(), ["KILL", "TERM"][chance.below(2) as usize]);
                running.end();
                done.kills += 1;
            }
            1 => {
                // A disk that is too small: it must fail, and hold nothing that is wrong.
                let ended = ran(command(&behind.at(&format!("scarce/w{worker}-{round}"))).output_in_time().unwrap());
                assert_ne!(ended.code, 0, "{}", ended.stdout);
                done.failures += 1;
                let _ = fs::remove_dir_all(sandbox.path(format!("root/scarce/w{worker}-{round}")));
            }
            _ => {}
        }
        persist(|| command(&to), 60);
        same_tree(&sandbox.path(&from), &sandbox.path(format!("root/w{worker}/{round}")));
        fs::remove_dir_all(sandbox.path(&from)).unwrap();
        fs::remove_dir_all(sandbox.path(format!("root/w{worker}/{round}"))).unwrap();
        done.copies += 1;
    }
    done
}

/// `cargo xtask soak`: minutes of copies with kills, resets and a full disk, and a node that must not grow.
#[test]
#[ignore = "takes as long as CARRACK_SOAK_MINUTES says"]
fn soak() {
    const WORKERS: u64 = 8;
    let minutes: f64 = std::env::var("CARRACK_SOAK_MINUTES").map_or(1.0, |text| text.parse().unwrap());
    let sandbox = Sandbox::in_memory();
    let Some(_scarce) = Scarce::new(&sandbox.path("root/scarce"), 1 << 20, 1000) else { return };
    let behind = Behind::start(&sandbox, 1);
    let until = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let (stop, mut samples) = (AtomicBool::new(false), Vec::new());
    behind.proxy.refuse(0.02);
    let done: Vec<Done> = std::thread::scope(|scope| {
        scope.spawn(|| disturb(&behind.proxy, 40, 0.2, &stop));
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (sandbox, behind) = (&sandbox, &behind);
                scope.spawn(move || soak_worker(sandbox, behind, worker, until))
            })
            .collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            if Instant::now() < until {
                samples.push(Usage::of(behind.node.child.id()));
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        stop.store(true, Ordering::Relaxed);
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    // The first tenth is the node finding its size.
    let steady = &samples[samples.len() / 10..];
    let (first, second) = steady.split_at(steady.len() / 2);
    let halves = BTreeMap::from([("first half", Usage::most(first)), ("second half", Usage::most(second))]);
    println!("{:<12} {:>12} {:>12} {:>8}", "most in", "resident MiB", "descriptors", "threads");
    for (half, most) in &halves {
        println!("{half:<12} {:>12} {:>12} {:>8}", most.resident_bytes >> 20, most.descriptors, most.threads);
    }
    let sum = |of: fn(&Done) -> u64| done.iter().map(of).sum::<u64>();
    let (copies, kills, failures) = (sum(|one| one.copies), sum(|one| one.kills), sum(|one| one.failures));
    println!("{copies} copies, {kills} kills, {failures} onto a full disk, {:?}", behind.proxy.made());
    assert!(copies >= WORKERS && !first.is_empty());
    let (first, second) = (&halves["first half"], &halves["second half"]);
    assert!(second.resident_bytes <= first.resident_bytes * 5 / 4 + (16 << 20), "memory grows: {halves:?}");
    assert!(second.descriptors <= first.descriptors * 5 / 4 + 16, "descriptors are lost: {halves:?}");
    assert!(second.threads <= first.threads * 5 / 4 + 16, "threads are lost: {halves:?}");
    let left: Vec<PathBuf> = tree::walk(&sandbox.path("root")).into_iter().filter(|path| path.is_file()).collect();
    wait_until("nothing is left over", || left.iter().all(|path| !path.exists()));
    wait_until("the node is at rest", || Usage::of(behind.node.child.id()).descriptors < 40);
}

/// What a round of the crowd came to.
#[derive(Default)]
struct Crowd {
    /// How often each exit code was seen, and the first words of one that was not 0.
    codes: BTreeMap<i32, usize>,
    said: Option<String>,
}

/// So many commands at once, each with its copy of the same files for the node.
fn crowd_round(sandbox: &Sandbox, node: &Node, clients: usize) -> Crowd {
    let to = sandbox.path("root/to");
    let start = |client: usize| {
        let mut command = sandbox.carrack();
        command.args([&node.token(), "from/", &node.at(&format!("to/{client}"))]).stdout(Stdio::null());
        // Into a file: a full pipe that nobody reads yet would hold the command.
        let said = fs::File::create(sandbox.path(format!("said{client}"))).unwrap();
        command.stderr(said).spawn().unwrap()
    };
    let running: Vec<_> = (0..clients).map(start).collect();
    let (mut crowd, mut whole) = (Crowd::default(), Vec::new());
    for (client, mut child) in running.into_iter().enumerate() {
        let code = child.wait().unwrap().code().unwrap_or(-1);
        *crowd.codes.entry(code).or_default() += 1;
        let said = fs::read_to_string(sandbox.path(format!("said{client}"))).unwrap();
        if code == 0 {
            whole.push(client);
        } else {
            crowd.said.get_or_insert(said);
        }
    }
    for file in tree::walk(&sandbox.path("from")) {
        let (name, content) = (file.file_name().unwrap(), fs::read(&file).unwrap());
        let differs = |client: &usize| fs::read(to.join(client.to_string()).join(name)).ok().as_ref() != Some(&content);
        assert_eq!(whole.iter().find(|client| differs(client)), None, "{name:?} of this client, which ended with 0");
    }
    fs::remove_dir_all(&to).unwrap();
    crowd
}

/// `cargo xtask crowd`: hundreds of commands at once at a node that has one processor, and not much of that.
#[test]
#[ignore = "takes minutes; CARRACK_CROWD_CLIENTS and CARRACK_CROWD_ROUNDS say how many"]
fn crowd() {
    const NODE_BYTES_MAX: u64 = 512 << 20;
    let number = |name: &str, usual: usize| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let (clients, rounds) = (number("CARRACK_CROWD_CLIENTS", 300), number("CARRACK_CROWD_ROUNDS", 10));
    let sandbox = Sandbox::new();
    (0..20).for_each(|file| drop(sandbox.write(format!("from/f{file}"), tree::bytes(1 << 20, file + 1))));
    let slow = ["taskset", "-c", "0", "nice", "-n", "10"].map(str::to_owned);
    let node = Node::on(&slow, &sandbox, "root", "127.0.0.1");
    let mut failed = 0;
    for round in 1..=rounds {
        let begun = Instant::now();
        let crowd = crowd_round(&sandbox, &node, clients);
        let peak = peak_resident(node.child.id()).unwrap();
        let took = begun.elapsed().as_secs();
        println!("round {round}: {clients} commands, {took} s, codes {:?}, node {} MiB", crowd.codes, peak >> 20);
        crowd.said.iter().for_each(|said| println!("  one said: {}", said.trim_end()));
        assert!(peak < NODE_BYTES_MAX, "the node has had {peak} bytes");
        failed += clients - crowd.codes.get(&0).copied().unwrap_or_default();
    }
    assert_eq!(failed, 0, "commands failed");
}

/// Between having everything and having cleaned up much time may pass at a destination, as on a host
/// where hundreds end at once.
#[test]
fn destination_that_is_slow_to_clean_up_is_waited_for() {
    let sandbox = Sandbox::new();
    sandbox.write("from", tree::bytes(100_000, 1));
    // The marker goes at the very end.
    let slow = Inject::new().delay("unlinkat", 6_000_000, "1+");
    let mut command = sandbox.carrack();
    let done = ran(slow.around(command.args(["from", "to", "--json"])).output_in_time().unwrap());
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.summary()["files"], 1, "{}", done.stdout);
}

/// A group of processes with little memory; gone when dropped.
struct Group(PathBuf);

impl Group {
    fn new(bytes: u64) -> Option<Self> {
        let name = format!("carrack-test-{}", std::process::id());
        let kinds = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        for (root, limit) in kinds {
            let group = PathBuf::from(root).join(&name);
            if fs::create_dir(&group).is_ok() {
                let group = Self(group);
                if fs::write(group.0.join(limit), bytes.to_string()).is_ok() {
                    return Some(group);
                }
            }
        }
        println!("skipped: control groups with a limit of memory cannot be made here");
        None
    }

    /// The same command, inside.
    fn around(&self, command: &Command) -> Command {
        let mut wrapped = Command::new("sh");
        wrapped.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        wrapped.arg(command.get_program()).args(command.get_args()).env_clear();
        wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(directory) = command.get_current_dir() {
            wrapped.current_dir(directory);
        }
        wrapped
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn memory_of_sixty_four_mebibytes_and_as_many_descriptors_are_enough() {
    // On a disk: what is in memory would count.
    let sandbox = Sandbox::new();
    tree::many(&sandbox.path("tree"), 2000, 3000);
    sandbox.write("tree/large", tree::bytes(150 << 20, 5));
    let Some(group) = Group::new(64 << 20) else { return };
    let node = Node::start(&sandbox, "root", &[]);
    let mut command = sandbox.carrack();
    command.args([&node.token(), "tree/", &node.at("to")]);
    let mut limited = Command::new("prlimit");
    limited.arg("--nofile=64").arg(command.get_program()).args(command.get_args()).env_clear();
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(sandbox.path("."));
    let ended = ran(group.around(&limited).output_in_time().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    same_tree(&sandbox.path("tree"), &sandbox.path("root/to"));
    let mut back = sandbox.carrack();
    back.args([&node.token(), &node.at("to/"), "back"]);
    let ended = ran(group.around(&back).output_in_time().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    same_tree(&sandbox.path("tree"), &sandbox.path("back"));
}
