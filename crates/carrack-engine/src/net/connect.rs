//! Making connections: to the first of several addresses that answers, each name looked up when its turn
//! comes, all under one deadline.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use carrack_core::tuning::Tuning;
use carrack_core::{limits, tuning};
use carrack_sys::threads;
use socket2::{Domain, Socket as RawSocket, Type};

use super::socket::Socket;

/// Whether an address may be dialled, and why not.
pub type Allow = Arc<dyn Fn(SocketAddr) -> io::Result<()> + Send + Sync>;

/// What a socket may hold, unread, on a long path from its beginning on, in bytes.
const FAR_WINDOW_BYTES: u32 = 8 << 20;

/// What every data socket gets. Failures cost speed, not correctness.
pub fn tune(socket: &Socket) {
    if let Socket::Tcp(tcp) = socket {
        let _ = tcp.set_nodelay(true);
        // Unacknowledged data for this long means that nobody is there, whatever TCP's own patience. The side that only
        // reads has sent nothing that could be acknowledged: it asks.
        let _ = carrack_sys::socket::set_user_timeout(tcp, tuning::STREAM_SILENCE);
        let _ = carrack_sys::socket::set_keep_alive(tcp, tuning::KEEP_ALIVE);
    }
}

/// What a data connection gets once its peer has proved to belong here: for whoever has not, the system holds no more
/// than for anybody. On a long path the window would open by and by, and hold up what the network could take.
pub fn open_window(socket: &Socket) {
    if let Socket::Tcp(tcp) = socket
        && least_round_trip(tcp) >= Tuning::DEFAULT.far_rtt
    {
        let _ = carrack_sys::socket::open_receive_window(tcp, FAR_WINDOW_BYTES);
    }
}

/// Segments of a control connection, in bytes: what goes through every tunnel in use. A path that loses larger
/// packets without a word would hold it up for ever, and it carries little; so it is not left to be found out,
/// as with data connections.
const CONTROL_SEGMENT_BYTES: u32 = 1200;

/// What a connection attempt comes to.
pub type Connected = io::Result<(TcpStream, SocketAddr)>;
/// One way to try.
type Attempt = Box<dyn FnOnce() -> Connected + Send>;

/// The least of the few samples that TCP has had so far: a busy listener makes the others long, not the path. Zero
/// where the system does not tell.
pub fn least_round_trip(socket: impl AsFd) -> Duration {
    let facts = carrack_sys::socket::tcp_facts(socket);
    facts.map(|facts| if facts.min_rtt.is_zero() { facts.rtt } else { facts.min_rtt }).unwrap_or_default()
}

/// Makes a control connection to the first of `host:port` addresses that answers before the deadline; it leaves from
/// the address `local`, if one is given. A name is looked up only when its turn comes: a name server that does not
/// answer must not hold up an address that needs none.
///
/// # Errors
/// The last address's; `TimedOut` when none has answered; [`OtherFamily`] inside when `local` cannot reach any of them.
pub fn connect_any(local: Option<IpAddr>, addresses: &[String], deadline: Instant) -> Connected {
    let (segment, allow) = (CONTROL_SEGMENT_BYTES, Arc::new(|_| Ok(())));
    connect_any_with(addresses, Trying { local, deadline, segment, over: Arc::default(), allow })
}

/// As [`connect_any`], to those addresses only that are allowed (asked once a name has been looked up), and with
/// segments of at most `segment` bytes, if that is not 0.
///
/// # Errors
/// As [`connect_any`]; and why an address is not allowed.
pub fn connect_allowed(
    local: Option<IpAddr>,
    addresses: &[String],
    segment: u32,
    deadline: Instant,
    allow: &Allow,
) -> Connected {
    connect_any_with(addresses, Trying { local, deadline, segment, over: Arc::default(), allow: Arc::clone(allow) })
}

fn connect_any_with(addresses: &[String], trying: Trying) -> Connected {
    let deadline = trying.deadline;
    let all = trying.clone();
    let attempts = addresses.iter().cloned().map(|address| -> Attempt {
        let trying = trying.clone();
        Box::new(move || {
            let found = trying.of_one_family(look_up(&address)?)?;
            let each = trying.clone();
            let connect = |address| -> Attempt {
                let trying = each.clone();
                Box::new(move || trying.connect(address))
            };
            race(found.into_iter().map(connect), trying.deadline)
        })
    });
    let connected = race(attempts, deadline);
    all.over.store(true, Ordering::Relaxed);
    connected
}

/// What the attempts of one dial have in common.
#[derive(Clone)]
struct Trying {
    /// The address to connect from.
    local: Option<IpAddr>,
    deadline: Instant,
    segment: u32,
    /// One of them has worked, or nobody waits any more.
    over: Arc<AtomicBool>,
    allow: Allow,
}

impl Trying {
    /// Those addresses of a host that the local address can reach. The others are not tried: what became
    /// of one that was says more.
    fn of_one_family(&self, found: Vec<SocketAddr>) -> io::Result<Vec<SocketAddr>> {
        let Some(local) = self.local else { return Ok(found) };
        let (reachable, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|to| to.is_ipv4() == local.is_ipv4());
        match others.first() {
            Some(&to) if reachable.is_empty() => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, OtherFamily { local, to }))
            }
            _ => Ok(reachable),
        }
    }

    /// A look-up cannot be broken off. When it comes to its end after its dial, no packet goes out any more.
    fn connect(&self, address: SocketAddr) -> Connected {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || self.over.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        (self.allow)(address)?;
        if self.segment == 0 && self.local.is_none() {
            return Ok((TcpStream::connect_timeout(&address, left)?, address));
        }
        let socket = RawSocket::new(Domain::for_address(address), Type::STREAM, None)?;
        if self.segment > 0 {
            // A system that cannot bound them only does not help against such a path.
            let _ = carrack_sys::socket::set_largest_segment(&socket, self.segment);
        }
        if let Some(local) = self.local {
            leave_from(&socket, local)?;
        }
        socket.connect_timeout(&address.into(), left)?;
        Ok((socket.into(), address))
    }
}

/// Binds a socket to the address of this host that it shall connect from.
fn leave_from(socket: &RawSocket, local: IpAddr) -> io::Result<()> {
    socket.bind(&SocketAddr::new(local, 0).into()).map_err(|error| {
        let why = crate::error::describe(&error);
        io::Error::new(error.kind(), format!("cannot connect from {local}: {why}"))
    })
}

/// An IPv4 address cannot be connected to from an IPv6 address, nor the other way round.
#[derive(Debug)]
pub struct OtherFamily {
    local: IpAddr,
    to: SocketAddr,
}

impl std::error::Error for OtherFamily {}

impl fmt::Display for OtherFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = |ip: IpAddr| if ip.is_ipv4() { "IPv4" } else { "IPv6" };
        let (local, to) = (self.local, self.to.ip());
        write!(f, "cannot connect from {local} to {to}: one is {}, the other {}", family(local), family(to))
    }
}

/// Look-ups of names that are under way in this process, those included that nobody waits for any more.
static LOOK_UPS: AtomicUsize = AtomicUsize::new(0);

/// The addresses of `host:port`.
///
/// # Errors
/// Those of the resolver; `ResourceBusy` when it has not answered to [`limits::LOOK_UPS`] others.
pub fn look_up(address: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(literal) = address.parse() {
        return Ok(vec![literal]);
    }
    let _place = LookUp::begin()?;
    let mut found: Vec<SocketAddr> = address.to_socket_addrs()?.take(limits::DIAL_ADDRESSES).collect();
    found.dedup();
    Ok(found)
}

/// A look-up's place among those that are under way.
struct LookUp;

impl LookUp {
    fn begin() -> io::Result<Self> {
        let place = Self;
        if LOOK_UPS.fetch_add(1, Ordering::Relaxed) >= limits::LOOK_UPS {
            let what = "the name server has not answered to many others: use an address instead of a name";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, what));
        }
        Ok(place)
    }
}

impl Drop for LookUp {
    fn drop(&mut self) {
        LOOK_UPS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Starts one attempt after the other, each with a quarter of a second's advantage over the next (RFC 8305), and takes
/// the first that works. The others end by themselves.
fn race(attempts: impl Iterator<Item = Attempt>, deadline: Instant) -> Connected {
    let mut attempts = attempts.peekable();
    let mut last = None;
    let (sender, results) = mpsc::channel();
    let mut waiting = 0;
    loop {
        if let Some(attempt) = attempts.next() {
            let sender = sender.clone();
            match threads::start("connecting", move || sender.send(attempt())) {
                Ok(_) => waiting += 1,
                // Those that are under way may work.
                Err(error) => last = Some(error),
            }
        }
        if waiting == 0 {
            return Err(last.unwrap_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no address to connect to")));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let is_last = attempts.peek().is_none();
        match results.recv_timeout(if is_last { left } else { left.min(Duration::from_millis(250)) }) {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(error)) => {
                // That one may not be dialled must not outrun what became of another: its time would tell.
                let refused = error.get_ref().is_some_and(|inner| inner.is::<super::dial_rule::Refused>());
                if last.is_none() || !refused {
                    last = Some(error);
                }
                waiting -= 1;
            }
            Err(_) if Instant::now() >= deadline => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "nobody answers there"));
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_address_does_not_hide_a_live_one() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let live = listener.local_addr().unwrap();
        // A port that was free a moment ago refuses at once.
        let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        let (_, address) = connect_any(None, &[dead.to_string(), live.to_string()], deadline).unwrap();
        assert_eq!(address, live);
        let error = connect_any(None, &[dead.to_string()], deadline).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(connect_any(None, &[], deadline).is_err());
        assert!(connect_any(None, &["no.such.host.invalid:1".into()], deadline).is_err());
    }

    #[test]
    fn connect_tries_only_addresses_of_the_local_family() {
        let (four, six) = ("127.0.0.1:1".parse().unwrap(), "[::1]:1".parse().unwrap());
        let from = |local: &str| Trying {
            local: local.parse().ok(),
            deadline: Instant::now(),
            segment: 0,
            over: Arc::default(),
            allow: any(),
        };
        assert_eq!(from("127.0.0.2").of_one_family(vec![six, four]).unwrap(), [four]);
        assert_eq!(from("::1").of_one_family(vec![six, four]).unwrap(), [six]);
        assert_eq!(from("").of_one_family(vec![six, four]).unwrap(), [six, four]);
        let error = from("127.0.0.2").of_one_family(vec![six]).unwrap_err();
        assert_eq!(error.to_string(), "cannot connect from 127.0.0.2 to ::1: one is IPv4, the other IPv6");
    }

    #[test]
    fn connect_leaves_from_the_local_address() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listens = listener.local_addr().unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        let local = IpAddr::from([127, 0, 0, 2]);
        let control = connect_any(Some(local), &[listens.to_string()], deadline).unwrap();
        let data = [0, 1200]
            .map(|segment| connect_allowed(Some(local), &[listens.to_string()], segment, deadline, &any()).unwrap());
        for (made, _) in [control].into_iter().chain(data) {
            let (_, from) = listener.accept().unwrap();
            assert_eq!((from.ip(), from), (local, made.local_addr().unwrap()));
        }
        for (elsewhere, is_other_family) in [("::1", true), ("192.0.2.1", false)] {
            let error = connect_any(elsewhere.parse().ok(), &[listens.to_string()], deadline).unwrap_err();
            assert!(error.to_string().contains(elsewhere), "{error}");
            assert_eq!(error.get_ref().is_some_and(|inner| inner.is::<OtherFamily>()), is_other_family, "{error}");
        }
    }

    fn any() -> Allow {
        Arc::new(|_| Ok(()))
    }

    #[test]
    fn attempt_that_comes_too_late_sends_nothing() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let late = Trying { local: None, deadline: Instant::now(), segment: 0, over: Arc::default(), allow: any() };
        let later = Instant::now() + Duration::from_secs(60);
        let beaten =
            Trying { local: None, deadline: later, segment: 0, over: Arc::new(AtomicBool::new(true)), allow: any() };
        for trying in [late, beaten] {
            assert_eq!(trying.connect(address).unwrap_err().kind(), io::ErrorKind::TimedOut);
            assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
        let won = Trying { local: None, deadline: later, segment: 0, over: Arc::default(), allow: any() };
        assert!(won.connect(address).is_ok());
    }

    #[test]
    fn look_ups_that_no_name_server_answers_are_bounded() {
        let held: Vec<_> = std::iter::from_fn(|| LookUp::begin().ok()).collect();
        assert!(held.len() <= limits::LOOK_UPS);
        assert_eq!(look_up("localhost:1").unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        assert_eq!(look_up("127.0.0.1:1").unwrap(), ["127.0.0.1:1".parse().unwrap()]);
        drop(held);
        assert!(look_up("localhost:1").is_ok());
    }
}
