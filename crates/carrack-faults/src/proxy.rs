//! A TCP relay on loopback that a test stands between two programs, to disturb what they say to each other.
//!
//! Each connection has one thread that owns both sockets and sleeps in `poll` until there is something to relay or
//! somebody has switched a fault; so a reset is a reset (no FIN before it), and nothing ticks.
//!
//! Left out: packets. Loss and reordering below TCP need a network of their own: [`crate::link`].

use carrack_sys::sync::lock;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use carrack_core::chance::Chance;

/// Read at once. The less a relay holds, the nearer its counters are to what has arrived.
const PIECE_BYTES: usize = 64 << 10;
/// Held per direction while a delay is in force: 1 Gb/s for 0.1 s is 12 MB.
const DELAYED_BYTES_MAX: usize = 32 << 20;
/// Kept of what is said first: a TLS greeting fits.
const FIRST_BYTES: usize = 4096;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the side that connected to the proxy.
    Up,
    /// From the target.
    Down,
}

/// Which bytes of a connection are altered; positions count from its start, separately each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flip {
    /// The one at this position.
    At(u64),
    /// Every n-th, from the n-th on.
    Every(u64),
}

/// What one connection has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Bytes taken from the side that connected.
    pub up: u64,
    /// Bytes taken from the target.
    pub down: u64,
    /// Whether the connection is still there.
    pub open: bool,
}

/// Faults made so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Connections refused: reset as soon as they were accepted.
    pub refused: u64,
    /// Connections reset while they were in use.
    pub resets: u64,
    /// Bytes that were altered on the way.
    pub flips: u64,
    /// Connections closed because nothing came for too long.
    pub idle: u64,
}

/// The relay; everything ends when it is dropped, with resets.
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    wake: OwnedFd,
}

struct State {
    target: SocketAddr,
    chance: Chance,
    refuse: f64,
    refuse_next: u64,
    stalled: bool,
    delay: Duration,
    rate: Option<u64>,
    /// When the next byte may go, each way, at that rate.
    clear_at: [Instant; 2],
    flip: Option<(Way, Flip)>,
    flips_left: u64,
    idle: Option<Duration>,
    reset_after: Option<u64>,
    ended: bool,
    lines: Vec<Line>,
    made: Made,
}

/// What is known of a connection outside its thread.
struct Line {
    carried: Carried,
    /// What the side that connected said first.
    first: Vec<u8>,
    reset: bool,
    stalled: bool,
    /// None once the connection has ended: a relay may see many.
    wake: Option<Arc<OwnedFd>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts to relay to `target`, from the same port of another loopback address: a program that is told the
    /// port by the target itself, as a node tells where data connections go, comes here, too. The target must not
    /// listen on all addresses.
    pub fn start(target: SocketAddr) -> Self {
        Self::with_seed(target, 0)
    }

    /// The same, with a seed for everything that is done by chance.
    pub fn with_seed(target: SocketAddr, seed: u64) -> Self {
        let free = |last| TcpListener::bind((Ipv4Addr::new(127, 0, 0, last), target.port())).ok();
        let listener = (2..255).find_map(free).expect("no loopback address has this port free");
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let state = State {
            target,
            chance: Chance::new(seed),
            refuse: 0.0,
            refuse_next: 0,
            stalled: false,
            delay: Duration::ZERO,
            rate: None,
            clear_at: [Instant::now(); 2],
            flip: None,
            flips_left: 0,
            idle: None,
            reset_after: None,
            ended: false,
            lines: Vec::new(),
            made: Made::default(),
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), wake: waker() });
        let acceptor = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || accept(&shared, &listener))
        };
        Self { shared, address, acceptor: Some(acceptor) }
    }

    /// Where to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where new connections lead from now on; those that are there stay.
    pub fn retarget(&self, target: SocketAddr) {
        self.change(|state| state.target = target);
    }

    /// Resets every connection that is open; returns how many.
    pub fn reset_all(&self) -> usize {
        self.reset_some(1.0)
    }

    /// Resets each open connection with this probability; returns how many.
    pub fn reset_some(&self, probability: f64) -> usize {
        self.change(|state| {
            let mut count = 0;
            for line in state.lines.iter_mut().filter(|line| line.carried.open && !line.reset) {
                line.reset = state.chance.happens(probability);
                count += usize::from(line.reset);
            }
            count
        })
    }

    /// Resets one connection, by its place in [`Proxy::connections`]; false if it is not open, or was reset already.
    pub fn reset(&self, index: usize) -> bool {
        self.change(|state| {
            let line = state.lines.get_mut(index).filter(|line| line.carried.open && !line.reset);
            line.map(|line| line.reset = true).is_some()
        })
    }

    /// Resets every connection once it has carried this many bytes, both ways together.
    pub fn reset_after(&self, bytes: Option<u64>) {
        self.change(|state| state.reset_after = bytes);
    }

    /// Refuses new connections with this probability.
    pub fn refuse(&self, probability: f64) {
        self.change(|state| state.refuse = probability);
    }

    /// Refuses the next so many connections.
    pub fn refuse_next(&self, count: u64) {
        self.change(|state| state.refuse_next = count);
    }

    /// Relays nothing more, closes included, and keeps everything open, until it is switched off.
    pub fn stall(&self, on: bool) {
        self.change(|state| state.stalled = on);
    }

    /// The same for one connection.
    pub fn stall_one(&self, index: usize, on: bool) {
        self.change(|state| state.lines[index].stalled = on);
    }

    /// Every byte takes this much longer each way.
    pub fn delay(&self, by: Duration) {
        self.change(|state| state.delay = by);
    }

    /// At most this many bytes per second each way, all connections together.
    pub fn rate(&self, bytes_per_second: Option<u64>) {
        self.change(|state| state.rate = bytes_per_second);
    }

    /// Alters bytes of every connection, at most so many in all.
    pub fn flip(&self, way: Way, which: Flip, at_most: u64) {
        self.change(|state| (state.flip, state.flips_left) = (Some((way, which)), at_most));
    }

    /// Closes, in good order, connections on which nothing has come either way for this long.
    pub fn close_idle(&self, after: Option<Duration>) {
        self.change(|state| state.idle = after);
    }

    /// Every connection that was accepted and not refused, in their order.
    pub fn connections(&self) -> Vec<Carried> {
        self.shared.lock().lines.iter().map(|line| line.carried).collect()
    }

    /// What the side that connected said first, at most 4096 bytes of it: by that connections can be told apart.
    pub fn first_words(&self, index: usize) -> Vec<u8> {
        self.shared.lock().lines.get(index).map(|line| line.first.clone()).unwrap_or_default()
    }

    /// What all connections together have carried; `open` if any is.
    pub fn carried(&self) -> Carried {
        self.connections().iter().fold(Carried::default(), |sum, one| Carried {
            up: sum.up + one.up,
            down: sum.down + one.down,
            open: sum.open || one.open,
        })
    }

    /// Faults made so far.
    pub fn made(&self) -> Made {
        self.shared.lock().made
    }

    /// Changes the state and lets every connection see it.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.shared.lock();
        let result = change(&mut state);
        for line in state.lines.iter().filter(|line| line.carried.open) {
            line.wake.iter().for_each(|wake| ring(wake));
        }
        ring(&self.shared.wake);
        result
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.change(|state| state.ended = true);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        let threads: Vec<_> = self.shared.lock().lines.iter_mut().filter_map(|line| line.thread.take()).collect();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A test that panicked while it held this has failed already.
        lock(&self.state)
    }
}

fn waker() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

/// A bell that is ringing already stays so.
fn ring(wake: &OwnedFd) {
    let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
}

fn silence(wake: &OwnedFd) {
    let _ = rustix::io::read(wake, &mut [0; 8]);
}

/// Waits for any of these, or for a time.
fn wait(fds: &mut [PollFd<'_>], timeout: Option<Duration>) {
    // Rounded up: a wait that ends before its time would only be begun again.
    let timeout = timeout.map(|time| (time + Duration::from_micros(1)).try_into().unwrap());
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => panic!("poll: {error}"),
    }
}

/// Closing then sends a reset at once.
fn close_by_reset(socket: &TcpStream) {
    let _ = rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    loop {
        wait(&mut [PollFd::new(listener, PollFlags::IN), PollFd::new(&shared.wake, PollFlags::IN)], None);
        silence(&shared.wake);
        if shared.lock().ended {
            return;
        }
        while let Ok((client, _)) = listener.accept() {
            let mut state = shared.lock();
            let forced = state.refuse_next > 0;
            state.refuse_next = state.refuse_next.saturating_sub(1);
            let probability = state.refuse;
            if forced || state.chance.happens(probability) {
                state.made.refused += 1;
                close_by_reset(&client);
                continue;
            }
            let wake = Arc::new(waker());
            let index = state.lines.len();
            let carried = Carried { open: true, ..Carried::default() };
            let target = state.target;
            let thread = {
                let (shared, wake) = (Arc::clone(shared), Arc::clone(&wake));
                std::thread::spawn(move || {
                    // The target is asked here, so that a slow one holds nobody else.
                    match TcpStream::connect(target) {
                        Ok(server) => Relay::new(&shared, index, &wake, client, server).run(),
                        Err(_) => close_by_reset(&client),
                    }
                    let mut state = shared.lock();
                    state.lines[index].carried.open = false;
                    state.lines[index].wake = None;
                })
            };
            for ended in state.lines.iter_mut().filter(|line| !line.carried.open) {
                // It ends with that word, or has.
                ended.thread.take().map(JoinHandle::join);
            }
            let first = Vec::new();
            state.lines.push(Line {
                carried,
                first,
                reset: false,
                stalled: false,
                wake: Some(wake),
                thread: Some(thread),
            });
        }
    }
}

/// One direction of one connection.
struct Half {
    /// When each piece is due, and what of it is left to write.
    held: VecDeque<(Instant, Vec<u8>)>,
    held_bytes: usize,
    /// Bytes read so far.
    position: u64,
    read_ended: bool,
    write_ended: bool,
    /// The other side took less than was offered.
    is_full: bool,
}

impl Half {
    fn new() -> Self {
        let held = VecDeque::new();
        Self { held, held_bytes: 0, position: 0, read_ended: false, write_ended: false, is_full: false }
    }

    fn has_room(&self, delay: Duration) -> bool {
        let most = if delay.is_zero() { 1 } else { DELAYED_BYTES_MAX };
        !self.read_ended && self.held_bytes < most
    }
}

/// One connection, in its own thread.
struct Relay<'a> {
    shared: &'a Shared,
    index: usize,
    wake: &'a OwnedFd,
    /// Read by the half of the same index, written by the other one.
    sockets: [TcpStream; 2],
    halves: [Half; 2],
    last_came: Instant,
}

/// What is to be done next, as the state says.
struct Turn {
    reset: bool,
    stalled: bool,
    delay: Duration,
    idle: Option<Duration>,
}

impl<'a> Relay<'a> {
    fn new(shared: &'a Shared, index: usize, wake: &'a OwnedFd, client: TcpStream, server: TcpStream) -> Self {
        for socket in [&client, &server] {
            let _ = socket.set_nodelay(true);
            socket.set_nonblocking(true).unwrap();
        }
        let halves = [Half::new(), Half::new()];
        Self { shared, index, wake, sockets: [client, server], halves, last_came: Instant::now() }
    }

    fn run(mut self) {
        loop {
            let turn = self.turn();
            if turn.reset {
                self.sockets.iter().for_each(close_by_reset);
                return;
            }
            if turn.stalled {
                wait(&mut [PollFd::new(self.wake, PollFlags::IN)], None);
                silence(self.wake);
                continue;
            }
            let mut due = None;
            let before = [self.halves[0].position, self.halves[1].position];
            for way in 0..2 {
                if self.read(way, turn.delay).is_err() || self.write(way, &mut due).is_err() {
                    // What one side did to its connection is done to the other's.
                    self.sockets.iter().for_each(close_by_reset);
                    return;
                }
            }
            if self.halves.iter().all(|half| half.write_ended) {
                return;
            }
            if before != [self.halves[0].position, self.halves[1].position] {
                // Something came: that may have been as much as this connection was to carry.
                continue;
            }
            if let Some(after) = turn.idle {
                let at = self.last_came + after;
                if at <= Instant::now() {
                    self.shared.lock().made.idle += 1;
                    return;
                }
                due = Some(due.map_or(at, |due: Instant| due.min(at)));
            }
            self.sleep(turn.delay, due);
        }
    }

    fn turn(&self) -> Turn {
        let mut state = self.shared.lock();
        let line = &state.lines[self.index];
        let carried = line.carried.up + line.carried.down;
        let spent = state.reset_after.is_some_and(|bytes| carried >= bytes);
        let reset = line.reset || spent;
        let turn = Turn {
            reset: reset || state.ended,
            stalled: state.stalled || line.stalled,
            delay: state.delay,
            idle: state.idle,
        };
        state.made.resets += u64::from(reset);
        turn
    }

    /// Sleeps until something can go on, or a held piece is due.
    fn sleep(&self, delay: Duration, due: Option<Instant>) {
        let mut fds = vec![PollFd::new(self.wake, PollFlags::IN)];
        for (way, socket) in self.sockets.iter().enumerate() {
            let mut events = PollFlags::empty();
            events.set(PollFlags::IN, self.halves[way].has_room(delay));
            events.set(PollFlags::OUT, self.halves[1 - way].is_full);
            // One that is asked nothing would still say that it is closed, and nobody could sleep.
            if !events.is_empty() {
                fds.push(PollFd::from_borrowed_fd(socket.as_fd(), events));
            }
        }
        wait(&mut fds, due.map(|due| due.saturating_duration_since(Instant::now())));
        silence(self.wake);
    }

    fn read(&mut self, way: usize, delay: Duration) -> io::Result<()> {
        let half = &mut self.halves[way];
        while half.has_room(delay) {
            let mut piece = vec![0; PIECE_BYTES];
            match (&self.sockets[way]).read(&mut piece) {
                Ok(0) => half.read_ended = true,
                Ok(count) => {
                    piece.truncate(count);
                    let mut state = self.shared.lock();
                    state.alter(way, half.position, &mut piece);
                    let line = &mut state.lines[self.index];
                    if way == 0 {
                        line.first.extend(piece.iter().take(FIRST_BYTES - line.first.len()));
                    }
                    let carried = &mut line.carried;
                    *(if way == 0 { &mut carried.up } else { &mut carried.down }) += count as u64;
                    half.position += count as u64;
                    half.held_bytes += count;
                    // As it is now: it may have been switched since this turn began.
                    half.held.push_back((Instant::now() + state.delay, piece));
                    self.last_came = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes what is due; notes when the next piece is.
    fn write(&mut self, way: usize, due: &mut Option<Instant>) -> io::Result<()> {
        let half = &mut self.halves[way];
        half.is_full = false;
        while let Some((at, piece)) = half.held.front_mut() {
            let now = Instant::now();
            let at = self.shared.lock().clear(way).map_or(*at, |clear| clear.max(*at));
            if at > now {
                *due = Some(due.map_or(at, |due| due.min(at)));
                return Ok(());
            }
            // Small pieces where there is a rate, so that all connections get their share of it.
            let most = if self.shared.lock().rate.is_some() { piece.len().min(4096) } else { piece.len() };
            match (&self.sockets[1 - way]).write(&piece[..most]) {
                Ok(count) => {
                    self.shared.lock().spend(way, count, now);
                    half.held_bytes -= count;
                    piece.drain(..count);
                    if piece.is_empty() {
                        half.held.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    half.is_full = true;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if half.read_ended && !half.write_ended {
            half.write_ended = true;
            self.sockets[1 - way].shutdown(std::net::Shutdown::Write)?;
        }
        Ok(())
    }
}

impl State {
    fn alter(&mut self, way: usize, position: u64, piece: &mut [u8]) {
        let Some((_, flip)) = self.flip.filter(|(meant, _)| *meant as usize == way) else { return };
        let range = position..position + piece.len() as u64;
        let (mut at, step) = match flip {
            Flip::At(at) => (at, u64::MAX),
            Flip::Every(step) => ((position / step + 1) * step - 1, step),
        };
        while range.contains(&at) && self.flips_left > 0 {
            piece[(at - position) as usize] ^= 0x20;
            self.made.flips += 1;
            self.flips_left -= 1;
            at = at.saturating_add(step);
        }
    }

    fn clear(&self, way: usize) -> Option<Instant> {
        self.rate.map(|_| self.clear_at[way])
    }

    fn spend(&mut self, way: usize, bytes: usize, now: Instant) {
        if let Some(rate) = self.rate {
            let from = self.clear_at[way].max(now);
            self.clear_at[way] = from + Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
        }
    }
}

#[cfg(test)]
mod tests;
