//! The way that packets take to another host, found as tracepath finds it: single datagrams of limited reach, and what
//! comes back. Nothing else is on its way with them. It takes a few seconds, and where large packets vanish without a
//! word up to [`TIME`].

use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use carrack_core::report::{Hop, PathTrace};
use carrack_sys::probe::{Answer, AnswerWord, Prober};

use crate::sync::Latch;

/// Ports from here on, at which nobody listens, as tracepath has them.
const FIRST_PORT: u16 = 44_444;
/// No way is longer than this.
const HOPS_MAX: u8 = 30;
/// Hops that are asked at once. A host answers a few packets at once and then one a second, and has to answer for the
/// largest packet as well.
const AT_ONCE: u8 = 4;
/// Groups of hops in a row that say nothing: nobody behind them will.
const SILENT_GROUPS: usize = 2;
/// How often each is asked.
const TRIES: u16 = 2;
const PATIENCE: Duration = Duration::from_millis(500);
/// The whole search: what is not known by then stays unknown.
pub const TIME: Duration = Duration::from_secs(20);
/// The whole search for hops.
const HOPS_TIME: Duration = Duration::from_secs(5);
/// A host that answers once a second has had time.
const MTU_PATIENCE: Duration = Duration::from_millis(1200);
/// A small packet.
const PROBE_BYTES: u32 = 64;
/// The longest packet of all.
const PACKET_MAX: u32 = 65_535;
/// Sizes that networks have, for a way on which large packets vanish without a word.
const SIZES: [u32; 7] = [8_900, 4_352, 1_500, 1_492, 1_400, 1_280, 576];

/// Finds the way to `to`, from an address of this host. Ends early when the latch is set, and after [`TIME`].
pub fn trace(from: IpAddr, to: IpAddr, over: &Latch) -> PathTrace {
    trace_for(TIME, from, to, over)
}

fn trace_for(time: Duration, from: IpAddr, to: IpAddr, over: &Latch) -> PathTrace {
    let mut found = PathTrace { to: Some(to), ..PathTrace::default() };
    let searched = Tracing { over, begin: Instant::now(), time, asked: 0 }.trace(from, to, &mut found);
    if let Err(error) = searched {
        found.why = format!("no probe can be sent: {error}");
    }
    found
}

struct Tracing<'a> {
    over: &'a Latch,
    begin: Instant,
    time: Duration,
    /// Probes for the largest packet so far: each has a port of its own.
    asked: u16,
}

impl Tracing<'_> {
    fn trace(&mut self, from: IpAddr, to: IpAddr, found: &mut PathTrace) -> io::Result<()> {
        let prober = Prober::new(Some(from), to)?;
        self.find_hops(&prober, to, found)?;
        self.find_mtu(&prober, to, found)?;
        if found.why.is_empty() && !found.reached {
            found.why = match found.hops.iter().rposition(|hop| hop.address.is_some()) {
                Some(last) => format!("nobody behind hop {} answers probes", last + 1),
                None => "nobody on the way answers probes".to_owned(),
            };
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.over.wait(Duration::ZERO) || self.begin.elapsed() >= self.time
    }

    /// How long an answer to what was sent then is waited for; `None` once it is not.
    fn left(&self, sent: Instant, patience: Duration) -> Option<Duration> {
        let left = patience.checked_sub(sent.elapsed())?;
        Some(left.min(self.time.checked_sub(self.begin.elapsed())?))
    }

    fn find_hops(&self, prober: &Prober, to: IpAddr, found: &mut PathTrace) -> io::Result<()> {
        let mut hops = [Hop::default(); HOPS_MAX as usize];
        // How far the host is, or whoever lets nothing pass.
        let mut end: Option<u8> = None;
        let (begin, mut silent) = (Instant::now(), 0);
        let mut group = 1;
        while group <= HOPS_MAX && end.is_none() && silent < SILENT_GROUPS && begin.elapsed() < HOPS_TIME {
            let last = (group + AT_ONCE - 1).min(HOPS_MAX);
            for attempt in 0..TRIES {
                let open = |hops: &[Hop], end: Option<u8>| -> Vec<u8> {
                    let far = end.map_or(last, |end| end.min(last));
                    (group..=far).filter(|distance| hops[usize::from(distance - 1)].address.is_none()).collect()
                };
                let wanted = open(&hops, end);
                if wanted.is_empty() || self.is_over() {
                    break;
                }
                let sent = Instant::now();
                for &distance in &wanted {
                    prober.send(port_of(distance, attempt), distance, PROBE_BYTES)?;
                }
                while let Some(left) = self.left(sent, PATIENCE) {
                    let Some(answer) = prober.answer(left)? else { break };
                    let Some(distance) = distance_of(answer.port) else { continue };
                    let hop = &mut hops[usize::from(distance - 1)];
                    if hop.address.is_none() && answer.from.is_some() {
                        // Of an answer to the first question after the second the time is not known.
                        let is_now = answer.port == port_of(distance, attempt);
                        *hop = Hop { address: answer.from, round_trip: is_now.then(|| sent.elapsed()) };
                    }
                    if answer.word == AnswerWord::Arrived || answer.from == Some(to) {
                        found.reached = true;
                    }
                    if matches!(answer.word, AnswerWord::Arrived | AnswerWord::Refused) {
                        end = Some(end.map_or(distance, |end| end.min(distance)));
                        found.why = refused(&answer, to);
                    }
                    if open(&hops, end).is_empty() {
                        break;
                    }
                }
            }
            let is_silent = (group..=last).all(|distance| hops[usize::from(distance - 1)].address.is_none());
            silent = if is_silent { silent + 1 } else { 0 };
            group = last + 1;
        }
        let heard = hops.iter().rposition(|hop| hop.address.is_some()).map_or(0, |last| last + 1);
        found.hops = hops[..end.map_or(heard, usize::from)].to_vec();
        Ok(())
    }

    /// Begins with what this host takes for the largest packet, and goes down as it is told, or as far as it must.
    fn find_mtu(&mut self, prober: &Prober, to: IpAddr, found: &mut PathTrace) -> io::Result<()> {
        let mut size = prober.known_mtu()?.min(PACKET_MAX);
        found.mtu_bytes = Some(size);
        let mut sizes = SIZES.iter();
        // A host that does not answer small packets answers no large ones, and yet a router may say that they are too
        // large.
        for _ in 0..2 * SIZES.len() {
            if self.is_over() {
                return Ok(());
            }
            match self.ask_size(prober, to, size, found.reached)? {
                SizeAnswer::Fits => {
                    (found.mtu_bytes, found.is_mtu_proved) = (Some(size), true);
                    return Ok(());
                }
                SizeAnswer::AtMost(most) if most < size && most >= SIZES[SIZES.len() - 1] => {
                    size = most;
                    found.mtu_bytes = Some(size);
                }
                SizeAnswer::Silence if !found.reached => return Ok(()),
                SizeAnswer::AtMost(_) | SizeAnswer::Silence => {
                    let Some(smaller) = sizes.find(|smaller| **smaller < size) else { return Ok(()) };
                    size = *smaller;
                    found.drops_large_packets = true;
                }
            }
        }
        Ok(())
    }

    fn ask_size(&mut self, prober: &Prober, to: IpAddr, size: u32, is_reached: bool) -> io::Result<SizeAnswer> {
        for _ in 0..if is_reached { TRIES } else { 1 } {
            if self.is_over() {
                break;
            }
            let port = FIRST_PORT + TRIES * u16::from(HOPS_MAX) + self.asked;
            self.asked += 1;
            match prober.send(port, 64, size) {
                // This host itself sends less: it knows how much.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    return Ok(SizeAnswer::AtMost(prober.known_mtu()?));
                }
                sent => sent?,
            }
            let sent = Instant::now();
            while let Some(left) = self.left(sent, MTU_PATIENCE) {
                let Some(answer) = prober.answer(left)? else { break };
                match answer.word {
                    _ if answer.port != port => {}
                    AnswerWord::Arrived => return Ok(SizeAnswer::Fits),
                    // The host itself lets nobody in, and has had the packet.
                    AnswerWord::Refused if answer.from == Some(to) => return Ok(SizeAnswer::Fits),
                    AnswerWord::TooLarge(most) => return Ok(SizeAnswer::AtMost(most)),
                    AnswerWord::Expired | AnswerWord::Refused => {}
                }
            }
        }
        Ok(SizeAnswer::Silence)
    }
}

/// What became of a packet of some size.
enum SizeAnswer {
    Fits,
    AtMost(u32),
    Silence,
}

fn refused(answer: &Answer, to: IpAddr) -> String {
    match answer.from {
        Some(from) if answer.word == AnswerWord::Refused && from != to => format!("{from} lets no probe pass"),
        _ => String::new(),
    }
}

fn port_of(distance: u8, attempt: u16) -> u16 {
    FIRST_PORT + attempt * u16::from(HOPS_MAX) + u16::from(distance - 1)
}

fn distance_of(port: u16) -> Option<u8> {
    let offset = port.checked_sub(FIRST_PORT).filter(|offset| *offset < TRIES * u16::from(HOPS_MAX))?;
    u8::try_from(offset % u16::from(HOPS_MAX)).ok().map(|distance| distance + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn route_to_this_host_is_one_hop_of_its_own_size() {
        for host in ["127.0.0.1", "::1"] {
            let host: IpAddr = host.parse().unwrap();
            if std::net::UdpSocket::bind((host, 0)).is_err() {
                println!("skipped: no {host} here");
                continue;
            }
            let found = trace(host, host, &Latch::default());
            assert!(found.reached && found.why.is_empty(), "{found:?}");
            assert_eq!(found.hops.iter().map(|hop| hop.address).collect::<Vec<_>>(), [Some(host)]);
            assert!(found.is_mtu_proved && found.mtu_bytes.is_some_and(|mtu| mtu >= 1280), "{found:?}");
        }
    }

    #[test]
    fn route_that_nobody_waits_for_ends_at_once() {
        let over = Latch::default();
        over.set();
        let host: IpAddr = "127.0.0.1".parse().unwrap();
        let found = trace(host, host, &over);
        assert!(found.hops.is_empty() && !found.is_mtu_proved, "{found:?}");
        assert_eq!(found.why, "nobody on the way answers probes");
    }

    /// Somebody takes every packet and says nothing.
    #[cfg(target_os = "linux")]
    #[test]
    fn search_for_the_largest_packet_ends_in_time_where_nobody_answers() {
        let [here, there]: [IpAddr; 2] = ["127.0.0.1", "127.0.77.1"].map(|address| address.parse().unwrap());
        let first = FIRST_PORT + TRIES * u16::from(HOPS_MAX);
        let _taken: Vec<_> =
            (first..first + 2 * 2 * SIZES.len() as u16).map(|port| std::net::UdpSocket::bind((there, port))).collect();
        let (begin, time, over) = (Instant::now(), Duration::from_millis(300), Latch::default());
        let mut tracing = Tracing { over: &over, begin, time, asked: 0 };
        let mut found = PathTrace { reached: true, ..PathTrace::default() };
        tracing.find_mtu(&Prober::new(Some(here), there).unwrap(), there, &mut found).unwrap();
        assert!(begin.elapsed() >= time && begin.elapsed() < MTU_PATIENCE, "{:?}", begin.elapsed());
        assert!(!found.is_mtu_proved && found.mtu_bytes.is_some(), "{found:?}");
        // A whole search that has no time finds nothing, and says so.
        let found = trace_for(Duration::ZERO, here, there, &over);
        assert!(found.hops.is_empty() && !found.is_mtu_proved && !found.why.is_empty(), "{found:?}");
    }

    #[test]
    fn ports_of_probes_tell_their_distance() {
        for distance in 1..=HOPS_MAX {
            for attempt in 0..TRIES {
                assert_eq!(distance_of(port_of(distance, attempt)), Some(distance));
            }
        }
        assert_eq!(distance_of(FIRST_PORT - 1), None);
        assert_eq!(distance_of(FIRST_PORT + TRIES * u16::from(HOPS_MAX)), None);
    }
}
