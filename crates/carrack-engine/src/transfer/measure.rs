//! Measuring an end while its transfer runs: a sample a second, and one at the end.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use carrack_core::ids::StreamId;
use carrack_core::limits;
use carrack_core::timeline::{Queue, QueueFill, Sample, StartStep, StepTime, StreamSample, TcpState, ThreadTime};
use carrack_core::transfer::machine::Machine;
use carrack_core::wire::control::Tell;
use carrack_sys::socket::buffer_bytes;

use super::driver::Driver;
use crate::data::meter::Meter;
use crate::data::traffic::state;
use crate::net::socket::Socket;
use crate::panics::contain;
use crate::sync::lock;

/// What of an end is measured, and by which clock.
#[derive(Clone, Debug)]
pub struct Measured {
    /// When its agent began: the zero of its clock.
    pub began: Instant,
    /// Whether samples tell what the whole host does, not the transfer's own threads alone.
    pub tells_host: bool,
    /// Numbers of the file systems that its files lie on.
    pub devices: Vec<u64>,
}

impl Default for Measured {
    /// From now on, all of the host, and no devices.
    fn default() -> Self {
        Self { began: Instant::now(), tells_host: true, devices: Vec::new() }
    }
}

/// Data streams at one moment, with what the system says of them.
struct Seen {
    streams: Vec<StreamSample>,
    /// An address of this host that one of them has.
    address: Option<IpAddr>,
    /// Bytes in send and receive buffers, and what has room there.
    send_buffers: (u64, u64),
    receive_buffers: (u64, u64),
}

impl<M: Machine> Driver<M> {
    /// Starts the thread that measures. Should it panic, or should there be none, nothing more is measured, and the
    /// transfer goes on.
    pub(super) fn start_sampling(self: &Arc<Self>, describe: impl Fn(&mut Sample) + Send + 'static) {
        let driver = Arc::clone(self);
        let measure = move || {
            if let Err(why) = contain(M::SIDE, "measuring", || driver.measure(&describe)) {
                let note = Tell::Note(format!("nothing more is measured: {}", why.message()));
                let _ = contain(M::SIDE, "a note", || (driver.voice.command)(note));
            }
        };
        match self.start_thread("measuring", measure) {
            Ok(thread) => *lock(&self.sampling.thread) = Some(thread),
            Err(why) => (self.voice.command)(Tell::Note(format!("nothing is measured: {}", why.message()))),
        }
    }

    /// Has the last sample taken and told: after the end of the transfer is told, nothing else may be. The end of one
    /// that has failed does not wait for that: whoever tells of it first is taken for its cause.
    pub(super) fn end_sampling(&self, has_failed: bool) {
        if has_failed {
            *lock(&self.sampling.silent) = true;
        }
        self.sampling.stop.set();
        if !has_failed {
            self.join_sampling();
        }
    }

    /// Waits until nothing is measured any more.
    pub(super) fn join_sampling(&self) {
        self.sampling.stop.set();
        let thread = lock(&self.sampling.thread).take();
        // A panic of it is contained in it.
        thread.into_iter().for_each(|thread| drop(thread.join()));
    }

    /// Takes a sample now and then and tells the command, until the transfer is over; then once more. `describe` fills
    /// in what the machine and its end know.
    fn measure(&self, describe: &dyn Fn(&mut Sample)) {
        let interval = self.tuning.sample_interval;
        let mut next = Instant::now() + interval;
        let mut over = self.sampling.stop.wait(self.tuning.unmeasured.min(interval));
        let mut told: Vec<StartStep> = Vec::new();
        let mut meter =
            (!over).then(|| Meter::new(self.voice.measured.devices.clone(), self.voice.measured.tells_host));
        loop {
            if !over {
                over = self.sampling.stop.wait(next.saturating_duration_since(Instant::now()));
                // One that was late is not made up for.
                next = (next + interval).max(Instant::now());
            }
            let mut sample = self.sample(meter.as_mut());
            describe(&mut sample);
            sample.steps = self.steps(&mut told);
            // Held while it is told: what comes after the end of the transfer would break the protocol.
            let silent = lock(&self.sampling.silent);
            if !*silent {
                (self.voice.command)(Tell::Sample(Box::new(sample)));
            }
            drop(silent);
            if over {
                return;
            }
        }
    }

    fn sample(&self, meter: Option<&mut Meter>) -> Sample {
        let mut sample = Sample::default();
        let (threads, all_threads) = self.crew.times();
        let Seen { streams, address, send_buffers, receive_buffers } = self.look_at_streams(&threads);
        // Those that have gone count, too.
        sample.counts = self.traffic.counts(&self.sockets);
        sample.state = all_streams(&streams);
        sample.streams = streams;
        let fills = [(Queue::SendBuffers, send_buffers), (Queue::ReceiveBuffers, receive_buffers)];
        let fills = fills.into_iter().filter(|(_, (_, size))| *size > 0);
        sample.queues.extend(fills.map(|(queue, (used, size))| QueueFill { queue, used, size }));
        self.stages.fill(&mut sample);
        if let Some(meter) = meter {
            address.into_iter().for_each(|address| meter.set_address(address));
            meter.fill(&mut sample, threads, all_threads);
        }
        sample.at_us = u64::try_from(self.voice.measured.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        sample
    }

    /// The steps of the start that were taken and are not told; with them all are.
    fn steps(&self, told: &mut Vec<StartStep>) -> Vec<StepTime> {
        let began = self.voice.measured.began;
        let at_us = |at: Instant| u64::try_from(at.saturating_duration_since(began).as_micros()).unwrap_or(u64::MAX);
        let new = self.stages.steps().filter(|(step, _)| !told.contains(step));
        let new: Vec<StepTime> = new.map(|(step, at)| StepTime { step, at_us: at_us(at) }).collect();
        told.extend(new.iter().map(|taken| taken.step));
        new
    }

    fn look_at_streams(&self, threads: &HashMap<StreamId, ThreadTime>) -> Seen {
        // The table is not held meanwhile: the calls may take a while, of many sockets.
        let sockets: Vec<(StreamId, Arc<Socket>)> =
            lock(&self.sockets).iter().map(|(number, socket)| (*number, Arc::clone(socket))).collect();
        let mut seen = Seen { streams: Vec::new(), address: None, send_buffers: (0, 0), receive_buffers: (0, 0) };
        for (number, socket) in sockets.into_iter().take(limits::SAMPLE_STREAMS) {
            let Socket::Tcp(tcp) = &*socket else { continue };
            let Ok(facts) = carrack_sys::socket::tcp_facts(tcp) else { continue };
            let mut state = state(&facts);
            let room = buffer_bytes(tcp).unwrap_or_default();
            state.unread_bytes = room.unread;
            seen.send_buffers = plus(seen.send_buffers, (state.unsent_bytes, room.send));
            seen.receive_buffers = plus(seen.receive_buffers, (room.unread, room.receive));
            seen.address = seen.address.or_else(|| tcp.local_addr().ok().map(|address| address.ip()));
            let thread = threads.get(&number).copied().unwrap_or_default();
            seen.streams.push(StreamSample {
                number: number.0,
                counts: self.traffic.counts_of(number, &facts),
                state,
                thread,
            });
        }
        seen.streams.sort_unstable_by_key(|stream| stream.number);
        seen
    }
}

fn plus(one: (u64, u64), other: (u64, u64)) -> (u64, u64) {
    (one.0.saturating_add(other.0), one.1.saturating_add(other.1))
}

/// How streams stand in sum.
pub(super) fn all_streams<'a>(streams: impl IntoIterator<Item = &'a StreamSample>) -> TcpState {
    streams.into_iter().fold(TcpState::default(), |sum, stream| together(sum, stream.state))
}

/// Of two streams the larger times, and the sums of what they have under way.
fn together(one: TcpState, other: TcpState) -> TcpState {
    TcpState {
        cwnd_bytes: one.cwnd_bytes.saturating_add(other.cwnd_bytes),
        window_bytes: one.window_bytes.saturating_add(other.window_bytes),
        in_flight_bytes: one.in_flight_bytes.saturating_add(other.in_flight_bytes),
        unsent_bytes: one.unsent_bytes.saturating_add(other.unsent_bytes),
        unread_bytes: one.unread_bytes.saturating_add(other.unread_bytes),
        delivery_rate: one.delivery_rate.saturating_add(other.delivery_rate),
        ..one.peak(&other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_together_have_the_longest_times_and_the_sums_of_bytes() {
        let one = TcpState { rtt_us: 5, min_rtt_us: 4, cwnd_bytes: 10, delivery_rate: u64::MAX, ..TcpState::default() };
        let other = TcpState { rtt_us: 3, min_rtt_us: 9, cwnd_bytes: 20, delivery_rate: 1, ..TcpState::default() };
        let sum = together(one, other);
        assert_eq!((sum.rtt_us, sum.min_rtt_us, sum.cwnd_bytes, sum.delivery_rate), (5, 9, 30, u64::MAX));
    }
}
