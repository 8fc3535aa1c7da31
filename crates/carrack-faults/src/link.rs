//! A long way between two hosts: network namespaces, each with a TUN device, and threads that carry the packets from
//! one to the other, with the rate, delay and faults of a link that there is not.
//!
//! Each direction has one thread, which reads packets from one device into a ring in memory and writes them to the
//! other when their time has come; it waits in `ppoll` and nothing ticks. Packets are handed over uncut, and cut only
//! where something happens to a segment, so that two system calls move 64 KiB; that is what makes several Gbit/s
//! possible beside the programs under test.
//!
//! Left out: jitter, and the gaps between the segments of one super-packet, which arrive together.

mod flows;
mod line;
mod packet;
mod ring;

use carrack_sys::sync::lock;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::netns::Namespace;

pub use line::{Counts, Knobs};

/// The address of each host.
pub const ADDRESSES: [&str; 2] = ["10.200.0.1", "10.200.0.2"];
/// The same of IP version 6.
pub const ADDRESSES_V6: [&str; 2] = ["fd77::1", "fd77::2"];

/// The device's name on both hosts.
const DEVICE: &str = "link0";
/// Packets taken in or delivered before the other of the two has its turn.
const BATCH: usize = 64;
/// So many packets wait in the device while the thread does not run.
const DEVICE_QUEUE: &str = "20000";

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Its address is the first.
    Near,
    /// Its address is the second.
    Far,
}

/// What cannot be changed later.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The largest packet of both devices, in bytes.
    pub mtu: u32,
    /// The congestion control of both hosts; `None`: this host's.
    pub congestion_control: Option<String>,
    /// How large the buffers of a TCP connection may become, in bytes; `None`: the kernel's limits,
    /// too small for a long way.
    pub tcp_buffer_bytes: Option<u64>,
    /// Of everything that happens by chance.
    pub seed: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self { mtu: 9000, congestion_control: None, tcp_buffer_bytes: Some(128 << 20), seed: 0 }
    }
}

/// Two hosts and the link between them; all of it is gone when dropped.
pub struct Link {
    hosts: [Namespace; 2],
    /// The way there and the way back.
    ways: [Way; 2],
    stop: Arc<OwnedFd>,
}

struct Way {
    knobs: Arc<Knobs>,
    counts: Arc<Mutex<Counts>>,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// Makes the hosts NAME-near and NAME-far, and the link, with knobs that `prepare` has set for both directions.
    /// Memory is set aside for that rate and delay; of what is more than fits, packets are dropped (`failed`). What an
    /// earlier run left under this name goes first.
    pub fn new(name: &str, setup: &Setup, prepare: impl Fn(&Knobs)) -> Result<Self, String> {
        let hosts = [Namespace::new(&format!("{name}-near"))?, Namespace::new(&format!("{name}-far"))?];
        let open = |host: &Namespace| {
            let device = host.inside(|| carrack_sys::tun::open(DEVICE, true)).and_then(|opened| opened);
            device.map(Arc::new).map_err(|error| format!("no TUN device in {}: {error}", host.name()))
        };
        let devices = [open(&hosts[0])?, open(&hosts[1])?];
        for (index, host) in hosts.iter().enumerate() {
            set_up(host, index, setup)?;
        }
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| format!("eventfd: {error}"))?);
        let way = |from: usize| {
            let knobs = Arc::new(Knobs::default());
            prepare(&knobs);
            let counts = Arc::new(Mutex::new(Counts::default()));
            let carrier = Carrier {
                line: line::Line::new(&knobs, setup.seed.wrapping_mul(2).wrapping_add(from as u64)),
                knobs: Arc::clone(&knobs),
                counts: Arc::clone(&counts),
                from: Arc::clone(&devices[from]),
                to: Arc::clone(&devices[1 - from]),
                stop: Arc::clone(&stop),
                spare: Vec::new(),
                start: Instant::now(),
            };
            let thread = std::thread::Builder::new().name(["there", "back"][from].into());
            // Ahead of what is measured over it, where this process may: a link that waits for a processor is another.
            let run = move || {
                let _ = rustix::process::nice(-20);
                carrier.run();
            };
            let thread = thread.spawn(run).map_err(|error| format!("no thread: {error}"))?;
            Ok::<_, String>(Way { knobs, counts, thread: Some(thread) })
        };
        let there = way(0)?;
        // Should the second not start, the first ends with the process: there is no test without both.
        let back = way(1)?;
        Ok(Self { hosts, ways: [there, back], stop })
    }

    /// One of the hosts.
    pub fn host(&self, host: Host) -> &Namespace {
        &self.hosts[host as usize]
    }

    /// The direction that begins at a host.
    pub fn from(&self, host: Host) -> &Knobs {
        &self.ways[host as usize].knobs
    }

    /// Changes both directions.
    pub fn both(&self, change: impl Fn(&Knobs)) {
        self.ways.iter().for_each(|way| change(&way.knobs));
    }

    /// What has become of the packets that a host sent.
    pub fn counts(&self, from: Host) -> Counts {
        *lock(&self.ways[from as usize].counts)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        for thread in self.ways.iter_mut().filter_map(|way| way.thread.take()) {
            let _ = thread.join();
        }
    }
}

/// The device's addresses, and how TCP is to behave.
fn set_up(host: &Namespace, index: usize, setup: &Setup) -> Result<(), String> {
    host.ip(&["link", "set", DEVICE, "addrgenmode", "none"])?;
    host.ip(&["link", "set", DEVICE, "mtu", &setup.mtu.to_string(), "txqueuelen", DEVICE_QUEUE, "up"])?;
    host.ip(&["addr", "add", &format!("{}/30", ADDRESSES[index]), "dev", DEVICE])?;
    host.ip(&["addr", "add", &format!("{}/126", ADDRESSES_V6[index]), "dev", DEVICE, "nodad"])?;
    if let Some(name) = &setup.congestion_control {
        allow_congestion_control(name)?;
        host.set("ipv4/tcp_congestion_control", name)?;
    }
    if let Some(bytes) = setup.tcp_buffer_bytes {
        host.set("ipv4/tcp_rmem", &format!("4096 131072 {bytes}"))?;
        host.set("ipv4/tcp_wmem", &format!("4096 65536 {bytes}"))?;
        // These belong to one host alone where the kernel is new; elsewhere they are not there.
        let _ = host.set("core/rmem_max", &bytes.to_string());
        let _ = host.set("core/wmem_max", &bytes.to_string());
    }
    // A connection starts as if it were the first.
    host.set("ipv4/tcp_no_metrics_save", "1")
}

/// A namespace may use what the host allows. This is the one thing that stays changed outside.
fn allow_congestion_control(name: &str) -> Result<(), String> {
    const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    let words = |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let has = |list: &str| list.split_whitespace().any(|word| word == name);
    let allowed = words(ALLOWED)?;
    if has(&allowed) {
        return Ok(());
    }
    if !has(&words("/proc/sys/net/ipv4/tcp_available_congestion_control")?) {
        return Err(format!("this kernel has no congestion control {name} (modprobe tcp_{name}?)"));
    }
    std::fs::write(ALLOWED, format!("{} {name}", allowed.trim())).map_err(|error| format!("{ALLOWED}: {error}"))
}

/// What the thread of a direction has.
struct Carrier {
    line: line::Line,
    knobs: Arc<Knobs>,
    counts: Arc<Mutex<Counts>>,
    from: Arc<OwnedFd>,
    to: Arc<OwnedFd>,
    stop: Arc<OwnedFd>,
    spare: Vec<u8>,
    start: Instant,
}

impl Carrier {
    fn run(mut self) {
        // The link must keep its times on a machine that is busy with what is tested. Where this is
        // refused it is less exact.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let _ = rustix::process::setpriority_process(None, -19);
        let mut more = false;
        loop {
            self.deliver();
            *lock(&self.counts) = self.line.counts();
            if !more && self.wait() {
                return;
            }
            more = self.take_in();
        }
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Delivers what is due.
    fn deliver(&mut self) {
        let now = self.now();
        self.line.release(&self.knobs, now, &mut self.spare);
        let to = &self.to;
        for _ in 0..BATCH {
            if !self.line.deliver(now, |packet| rustix::io::write(to, packet).is_ok()) {
                return;
            }
        }
    }

    /// Waits until there is a packet, or one is due; whether this is the end.
    fn wait(&self) -> bool {
        let timeout = self.line.due().map(|due| Duration::from_nanos(due.saturating_sub(self.now())));
        let timeout = timeout.map(|time| time.try_into().expect("a delay fits"));
        let mut fds = [PollFd::new(&self.from, PollFlags::IN), PollFd::new(&self.stop, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
        !fds[1].revents().is_empty()
    }

    /// Takes in what the host has sent; whether there may be more.
    fn take_in(&mut self) -> bool {
        for _ in 0..BATCH {
            let room = self.line.room();
            let has_room = room.is_some();
            let place = room.unwrap_or_else(|| {
                self.spare.resize(packet::PACKET_BYTES_MAX, 0);
                &mut self.spare
            });
            // Mostly EAGAIN; a device that is gone is noticed by whoever waits for packets.
            let Ok(len) = rustix::io::read(&self.from, &mut *place) else { return false };
            if self.knobs.strips_options() {
                packet::strip_options(&mut place[..len]);
            }
            if let Some(most) = self.knobs.segment_most() {
                packet::lower_segment(&mut place[..len], most);
            }
            if has_room {
                let now = self.now();
                self.line.accept(&self.knobs, len, now, &mut self.spare);
            } else {
                self.line.failed();
            }
            if self.line.due().is_some_and(|due| due <= self.now()) {
                return true;
            }
        }
        true
    }
}
