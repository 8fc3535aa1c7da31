//! The way to a host that ssh is being started to, looked at from here meanwhile: where nobody answers, or full packets
//! vanish, ssh would say nothing for as long as it is waited for.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::Location;
use carrack_core::report::PathTrace;
use carrack_sys::threads;

use super::ExaminedPlace;
use crate::control::whereabouts;
use crate::error::{failure, system_failure};
use crate::net::route;
use crate::stop::{Stop, StopReason};
use crate::sync::Latch;

/// A host that is there answers the first packet of a connection sooner; two packets may be lost.
const ANSWER: Duration = Duration::from_secs(8);
/// Addresses of one server that are tried.
const SERVERS: usize = 16;
/// Hosts that find a smaller packet by themselves (`tcp_mtu_probing`) have got through by then.
const THROUGH: Duration = Duration::from_secs(15);

/// What is found out while ssh is started.
pub struct WayToHost {
    /// Ends the start of ssh once it leads nowhere.
    pub stop: Stop,
    over: Arc<Latch>,
    found: Option<mpsc::Receiver<WayThere>>,
    name: String,
}

/// What was found.
struct WayThere {
    /// Why ssh cannot get there.
    why: Option<String>,
    /// The server took a connection, or refused one: what keeps ssh out is not the way.
    is_answered: bool,
    trace: PathTrace,
}

impl WayToHost {
    /// Begins to look, if it is ssh that leads there, and no other host is in between.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn begin(place: ExaminedPlace<'_>, stop: &Stop) -> Result<Self, Failure> {
        let (over, stop) = (Arc::new(Latch::default()), stop.child());
        let Location::Ssh { host, .. } = place.location else {
            return Ok(Self { stop, over, found: None, name: String::new() });
        };
        let (sender, found) = mpsc::channel();
        let (host, reach) = (host.clone(), place.options.reach.clone());
        let (ended, hopeless) = (Arc::clone(&over), stop.clone());
        let name = host.to_string();
        let look = move || {
            let servers = whereabouts::servers(&host, &reach);
            let Some(way) = look(&servers, &ended) else { return };
            let leads_nowhere = way.why.is_some();
            let _ = sender.send(way);
            if leads_nowhere {
                hopeless.request(StopReason::Cancel);
            }
        };
        threads::start("the way to a host", look).map_err(|error| system_failure(Side::Command, &error))?;
        Ok(Self { stop, over, found: Some(found), name })
    }

    /// What became of it, now that ssh has failed: why, and the way as far as it is known, where it may be the cause.
    pub fn end(self, why: Failure) -> (Failure, Option<PathTrace>) {
        // What ssh has said by itself needs nothing to explain it.
        let is_silent = self.stop.requested().is_some();
        if !is_silent {
            self.over.set();
        }
        let way = self.found.as_ref().and_then(|found| found.recv_timeout(Duration::from_secs(1)).ok());
        let Some(WayThere { why: found, is_answered, trace }) = way else { return (why, None) };
        let found = found
            .filter(|_| is_silent)
            .map(|found| failure(ErrorCode::ConnectFailed, Side::Link, found).at_end(self.name.clone()));
        // A server that answered and let nobody in (a key, an agent, a changed host key) is not behind a firewall.
        (found.unwrap_or(why), (is_silent || !is_answered).then_some(trace))
    }
}

impl Drop for WayToHost {
    fn drop(&mut self) {
        self.over.set();
    }
}

/// Tries all addresses at once: ssh tries one after the other, and gets there by any. The first that answers counts,
/// else one that is silent; one without a route ssh passes over.
fn connect(servers: &[SocketAddr]) -> Option<(SocketAddr, io::Result<TcpStream>)> {
    let (sender, receiver) = mpsc::channel();
    for &server in servers.iter().take(SERVERS) {
        let sender = sender.clone();
        let connect = move || {
            // Whoever waited has heard of another one.
            let _ = sender.send((server, TcpStream::connect_timeout(&server, ANSWER)));
        };
        threads::start("an address of a server", connect).ok()?;
    }
    drop(sender);
    let mut best = None;
    for (server, connected) in receiver {
        match connected.as_ref().map_err(io::Error::kind) {
            Ok(_) | Err(ErrorKind::ConnectionRefused) => return Some((server, connected)),
            Err(ErrorKind::TimedOut) => best = Some((server, connected)),
            Err(_) => drop(best.get_or_insert((server, connected))),
        }
    }
    best
}

/// Connects to the server, and then asks the routers; `None` where there is no address to be tried.
fn look(servers: &[SocketAddr], over: &Latch) -> Option<WayThere> {
    let begin = Instant::now();
    let (server, connected) = connect(servers)?;
    let from = connected.as_ref().ok().and_then(|socket| socket.local_addr().ok()).map(|address| address.ip());
    let is_silent = connected.as_ref().is_err_and(|error| error.kind() == ErrorKind::TimedOut);
    let is_connected = connected.is_ok();
    let is_refused = connected.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    let is_answered = is_connected || is_refused;
    drop(connected);
    let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() };
    let trace = route::trace(from.unwrap_or(any), server.ip().to_canonical(), over);
    let (address, port) = (server.ip().to_canonical(), server.port());
    if is_silent {
        let why = format!("a connection to {address}, port {port}, timed out after {} s", ANSWER.as_secs());
        return Some(WayThere { why: Some(why), is_answered, trace });
    }
    // Where the far host answers no probe, nobody knows whether it has got the large ones.
    let is_hole = is_connected && trace.reached && trace.drops_large_packets;
    if is_hole && !over.wait(THROUGH.saturating_sub(begin.elapsed())) {
        let passes = trace.mtu_bytes.map_or("smaller ones".to_owned(), |bytes| format!("those of {bytes} bytes"));
        let why = format!(
            "ssh connects to {address}, port {port}, and gets no further: large packets vanish on the way, {passes} arrive"
        );
        return Some(WayThere { why: Some(why), is_answered, trace });
    }
    Some(WayThere { why: None, is_answered, trace })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of a way where ssh has failed: with a word of its own, or because it was stopped.
    fn told(way: WayThere, is_stopped: bool) -> (Failure, Option<PathTrace>) {
        let (sender, found) = mpsc::channel();
        sender.send(way).unwrap();
        let way = WayToHost { stop: Stop::default(), over: Arc::default(), found: Some(found), name: "far".into() };
        if is_stopped {
            way.stop.request(StopReason::Cancel);
        }
        way.end(failure(ErrorCode::AuthenticationFailed, Side::Destination, "Permission denied (publickey)"))
    }

    #[test]
    fn way_to_a_host_that_answered_ssh_is_not_told() {
        let way = |why: Option<&str>, is_answered| WayThere {
            why: why.map(str::to_owned),
            is_answered,
            trace: PathTrace { reached: true, ..PathTrace::default() },
        };
        let (why, trace) = told(way(None, true), false);
        assert_eq!((why.code, trace), (ErrorCode::AuthenticationFailed, None));
        // Nobody has answered, or ssh got no further: the way may say why.
        assert!(told(way(None, false), false).1.is_some());
        let (why, trace) = told(way(Some("large packets vanish"), true), true);
        assert_eq!((why.code, trace.is_some()), (ErrorCode::ConnectFailed, true));
    }

    #[test]
    fn server_that_takes_or_refuses_a_connection_has_answered() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let server = listener.local_addr().unwrap();
        let over = Latch::default();
        over.set();
        let taken = look(&[server], &over).unwrap();
        assert!(taken.is_answered && taken.why.is_none());
        drop(listener);
        let refused = look(&[server], &over).unwrap();
        assert!(refused.is_answered && refused.why.is_none());
        assert!(look(&[], &over).is_none());
    }

    /// A server that is known by two addresses, of which one is silent: ssh gets there by the other.
    #[test]
    fn way_to_a_server_with_one_silent_address_leads_somewhere() {
        // A listener whose queue is full says nothing to whoever else begins a connection.
        let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        full.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        full.listen(0).unwrap();
        let silent = full.local_addr().unwrap().as_socket().unwrap();
        let _filled = TcpStream::connect(silent).unwrap();
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let over = Latch::default();
        over.set();
        let way = look(&[silent, listener.local_addr().unwrap()], &over).unwrap();
        assert!(way.is_answered && way.why.is_none(), "{:?}", way.why);
        let way = look(&[silent], &over).unwrap();
        assert!(!way.is_answered && way.why.is_some_and(|why| why.contains("timed out")));
    }
}
