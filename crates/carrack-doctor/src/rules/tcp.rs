//! Windows, congestion control, options and memory of TCP.

use std::time::Duration;

use super::{Check, FAST, FASTEST, Limit, NUMBER_MAX, Rule, Threshold, Told, View};
use crate::facts::HostFacts;
use crate::finding::EvidenceClass::{EsnetTable, Kernel};
use crate::known::Known;
use crate::parameter::Parameter;
use crate::units;

const FASTERDATA: &str = "fasterdata.es.net, Linux tuning";
const DOCUMENTATION: &str = "kernel, networking/ip-sysctl";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "tcp.receive-buffer",
        threshold: Threshold::plain("one stream's window holds what the path holds: rate x round trip"),
        reason: "a sender has to wait for acknowledgements when the receiver's window is full",
        source: FASTERDATA,
        class: Kernel,
        check: Check::Host(|view| window(view, Buffer::RECEIVE)),
    },
    Rule {
        id: "tcp.send-buffer",
        threshold: Threshold::plain("one stream's send buffer holds what the path holds: rate x round trip"),
        reason: "what was sent stays in the send buffer until it is acknowledged",
        source: FASTERDATA,
        class: Kernel,
        check: Check::Host(|view| window(view, Buffer::SEND)),
    },
    Rule {
        id: "tcp.window-growth",
        threshold: Threshold::plain("tcp_moderate_rcvbuf is on"),
        reason: "without it a window stays as it begins: the second number of tcp_rmem, whatever the third one allows",
        source: DOCUMENTATION,
        class: Kernel,
        check: Check::Host(window_growth),
    },
    Rule {
        id: "tcp.asked-buffers",
        threshold: Threshold::of(
            "rmem_max and wmem_max hold what the path holds; {} at {} where no path is known",
            &[Limit::Bytes(ASKED), Limit::Bits(FAST)],
        ),
        reason: "programs that set their buffers by hand (GridFTP, iperf3 -w) get no more; Carrack leaves them to the kernel",
        source: FASTERDATA,
        class: EsnetTable,
        check: Check::Host(asked_buffers),
    },
    Rule {
        id: "tcp.saved-metrics",
        threshold: Threshold::of("tcp_no_metrics_save is on for far paths at {} and more", &[Limit::Bits(FAST)]),
        reason: "one connection that met losses makes the next ones to that host begin slowly",
        source: FASTERDATA,
        class: EsnetTable,
        check: Check::Host(saved_metrics),
    },
    Rule {
        id: "tcp.congestion-control",
        threshold: Threshold::plain("cubic, htcp or bbr"),
        reason: "older ones need minutes to fill a fast far path again after one loss",
        source: FASTERDATA,
        class: EsnetTable,
        check: Check::Host(congestion),
    },
    Rule {
        id: "tcp.window-scaling",
        threshold: Threshold::plain("on"),
        reason: "without it a window has 64 KiB at most",
        source: "RFC 7323",
        class: Kernel,
        check: Check::Host(|view| option(view, "ipv4/tcp_window_scaling", Parameter::WindowScaling)),
    },
    Rule {
        id: "tcp.sack",
        threshold: Threshold::plain("on"),
        reason: "without it a sender learns of one loss in a round trip only",
        source: "RFC 2018",
        class: Kernel,
        check: Check::Host(|view| option(view, "ipv4/tcp_sack", Parameter::Sack)),
    },
    Rule {
        id: "tcp.timestamps",
        threshold: Threshold::plain("on"),
        reason: "without them round trips are measured seldom, and numbers of fast streams can be taken for old ones",
        source: "RFC 7323",
        class: Kernel,
        check: Check::Host(|view| option(view, "ipv4/tcp_timestamps", Parameter::Timestamps)),
    },
    Rule {
        id: "tcp.mtu-probing",
        threshold: Threshold::of("on where packets are larger than {} bytes", &[Limit::Count(PACKET)]),
        reason: "a router that drops large packets without a word would stop a stream for good",
        source: FASTERDATA,
        class: EsnetTable,
        check: Check::Host(mtu_probing),
    },
    Rule {
        id: "tcp.memory",
        threshold: Threshold::of(
            "TCP has met no memory pressure, and has less than {} of what makes it save",
            &[Limit::Percent(PRESSURE)],
        ),
        reason: "under pressure the kernel shrinks windows, and drops what has come",
        source: DOCUMENTATION,
        class: Kernel,
        check: Check::Host(memory),
    },
    Rule {
        id: "tcp.connection-table",
        threshold: Threshold::of(
            "this host's firewall remembers less than {} of the connections that it may",
            &[Limit::Percent(REMEMBERED)],
        ),
        reason: "once the table is full, packets of new connections are dropped without a word",
        source: "kernel, networking/nf_conntrack-sysctl",
        class: Kernel,
        check: Check::Host(connection_table),
    },
    Rule {
        id: "tcp.listen-queue",
        threshold: Threshold::of(
            "fewer than one connection within {} in the mean was refused because a queue was full",
            &[Limit::Time(REFUSED)],
        ),
        reason: "a crowd of clients is refused while the queue of a listener is full",
        source: DOCUMENTATION,
        class: Kernel,
        check: Check::Host(listen_queue),
    },
    Rule {
        id: "tcp.optmem",
        threshold: Threshold::of("{} at {}", &[Limit::Bytes(NOTES), Limit::Bits(FASTEST)]),
        reason: "sending without a copy keeps its notes there",
        source: FASTERDATA,
        class: EsnetTable,
        check: Check::Host(optmem),
    },
];

/// One of the two buffers of a connection.
#[derive(Clone, Copy)]
struct Buffer {
    parameter: Parameter,
    name: &'static str,
    read: fn(&HostFacts<'_>) -> Known<f64>,
    share: fn(&HostFacts<'_>) -> f64,
    /// What stands before the largest size: the least and the first.
    before: &'static str,
}

impl Buffer {
    const RECEIVE: Self = Self {
        parameter: Parameter::ReceiveBuffer,
        name: "receive buffer",
        read: |facts| facts.receive_buffer(),
        share: |facts| facts.window_share(),
        before: "4096 131072",
    };
    const SEND: Self = Self {
        parameter: Parameter::SendBuffer,
        name: "send buffer",
        read: |facts| facts.send_buffer(),
        // The kernel charges a packet's bookkeeping as well: with 1500-byte packets a third.
        share: |_| 2.0 / 3.0,
        before: "4096 65536",
    };
}

/// Streams that a copy has on a path that is worth it, unless a number is given.
pub(super) const STREAMS: u16 = 8;
/// From here on a path counts as far: a loss costs time there.
pub(super) const FAR: Duration = Duration::from_millis(5);
/// Bytes that a program may ask for where no path is known.
const ASKED: u64 = 64 << 20;
/// Bytes of a packet that every path takes.
const PACKET: u64 = 1500;
/// Of a hundred: what TCP may have of the memory at which it begins to save.
const PRESSURE: u64 = 75;
/// TCP may have no more than such a part of all memory.
const MEMORY_PART: u64 = 4;
/// Of a hundred: how full the table of connections may be.
const REMEMBERED: u64 = 90;
/// A listener that refuses a connection so often has too short a queue.
const REFUSED: Duration = Duration::from_secs(3600);
/// Bytes of notes about what is being sent without a copy.
const NOTES: u64 = 1 << 20;
/// No buffer can be larger: the kernel counts in 31 bits.
const BUFFER_MAX: f64 = 2_147_483_647.0;

/// Bytes a second that the path should carry: what is wanted, or what the slower of both interfaces carries.
pub(super) fn wanted_rate(view: &View<'_>) -> Known<f64> {
    if let Some(rate) = view.situation.wish.rate {
        return Ok(rate);
    }
    let own = view.facts.carrier().and_then(|carrier| carrier.speed());
    let other = view.other.map(|other| other.carrier().and_then(|carrier| carrier.speed()));
    let slower = match (own, other) {
        (Ok(own), Some(Ok(other))) => own.min(other),
        (Ok(one), None | Some(Err(_))) | (Err(_), Some(Ok(one))) => one,
        // As fast as it was measured, and perhaps faster.
        (Err(why), None | Some(Err(_))) => match view.sending().rate {
            Some((rate, _)) => return Ok(rate),
            None => return Err(why),
        },
    };
    Ok(slower as f64 / 8.0)
}

/// The round trip that matters.
pub(super) fn round_trip(view: &View<'_>) -> Option<Duration> {
    view.situation.path.round_trip.or(view.situation.wish.round_trip)
}

fn window(view: &View<'_>, buffer: Buffer) -> Known<Vec<Told>> {
    let most = (buffer.read)(&view.facts)?;
    let window = most * (buffer.share)(&view.facts);
    let value = format!("{}'s largest {} is {}", buffer.parameter.name(), buffer.name, units::bytes(most));
    let Some(round_trip) = round_trip(view) else { return by_table(view, buffer, most, value) };
    let rate = wanted_rate(view)?;
    let holds = rate * round_trip.as_secs_f64();
    let one = units::rate(window / round_trip.as_secs_f64().max(1e-6));
    if window >= holds {
        return Ok(vec![Told::ok(format!("{value}: enough for {} at {}", units::rate(rate), units::time(round_trip)))]);
    }
    let streams = view.situation.wish.streams.unwrap_or(STREAMS);
    let all = window * f64::from(streams);
    let (severity, cost) = if all < holds {
        let all = units::rate(all / round_trip.as_secs_f64());
        (
            Told::failure(value),
            format!("one stream is limited to {one} at {}, {streams} streams to {all}", units::time(round_trip)),
        )
    } else {
        let cost = format!("one stream is limited to {one} at {}; {streams} streams are not", units::time(round_trip));
        (Told::warning(value), cost)
    };
    let needed = (holds / (buffer.share)(&view.facts)).min(BUFFER_MAX);
    let should = format!(
        "at least {}: {} at {} are {} on their way",
        units::bytes(needed),
        units::rate(rate),
        units::time(round_trip),
        units::bytes(holds)
    );
    let told = severity.should_be(should).costs(cost);
    Ok(vec![told.sysctl(buffer.parameter, format!("{} {}", buffer.before, rounded_up(needed)))])
}

fn window_growth(view: &View<'_>) -> Known<Vec<Told>> {
    if view.facts.network_number("ipv4/tcp_moderate_rcvbuf")? != 0 {
        return Ok(vec![Told::ok("on")]);
    }
    let sizes = view.facts.numbers("proc/sys/net/ipv4/tcp_rmem")?;
    let window = sizes.get(1).copied().unwrap_or(0) as f64 * view.facts.window_share();
    let time = round_trip(view).unwrap_or(Duration::from_millis(50));
    let one = units::rate(window / time.as_secs_f64().max(1e-6));
    let value = format!("net.ipv4.tcp_moderate_rcvbuf is off, and windows stay at {}", units::bytes(window));
    let is_enough =
        wanted_rate(view).is_ok_and(|rate| round_trip(view).is_some() && window >= rate * time.as_secs_f64());
    let told = if is_enough || round_trip(view).is_none() { Told::warning(value) } else { Told::failure(value) };
    let told = told.costs(format!("one stream to this host is limited to {one} at {}", units::time(time)));
    Ok(vec![told.sysctl(Parameter::WindowGrowth, "1")])
}

fn connection_table(view: &View<'_>) -> Known<Vec<Told>> {
    let file = |name: &str| format!("proc/sys/net/netfilter/nf_conntrack_{name}");
    // Without a firewall that remembers connections there is no table.
    if view.facts.if_any(&file("max"))?.is_none() {
        return Ok(Vec::new());
    }
    let (count, most) = (view.facts.number(&file("count"))?, view.facts.number(&file("max"))?);
    // Zero is no limit.
    if most <= 0 {
        return Ok(vec![Told::ok(format!("{count} connections, and no limit"))]);
    }
    let value = format!("{count} of {most} connections");
    if i128::from(count) * 100 < i128::from(most) * i128::from(REMEMBERED) {
        return Ok(vec![Told::ok(value)]);
    }
    let told = if count >= most { Told::failure(value) } else { Told::warning(value) };
    let told = told.costs("connections that time out, each by chance");
    Ok(vec![told.sysctl(Parameter::ConnectionTable, most.saturating_mul(2).min(NUMBER_MAX).to_string())])
}

fn asked_buffers(view: &View<'_>) -> Known<Vec<Told>> {
    let (receive, send) = (view.facts.network_number("core/rmem_max")?, view.facts.network_number("core/wmem_max")?);
    let least = receive.min(send) as f64;
    let value = format!("rmem_max {}, wmem_max {}", units::bytes(receive as f64), units::bytes(send as f64));
    let (needed, time) = match round_trip(view) {
        Some(time) => (wanted_rate(view)? * time.as_secs_f64(), time),
        None if view.facts.carrier()?.speed()? >= FAST => (ASKED as f64, Duration::from_millis(50)),
        None => return Ok(vec![Told::ok(value)]),
    };
    if least >= needed {
        return Ok(vec![Told::ok(value)]);
    }
    let rate = units::rate(least / time.as_secs_f64().max(1e-6));
    let told = Told::warning(value).should_be(format!("at least {}", units::bytes(needed)));
    let told = told.costs(format!("one stream of such a program is limited to {rate} at {}", units::time(time)));
    let both = [(Parameter::AskedReceiveBuffer, receive), (Parameter::AskedSendBuffer, send)];
    let small = both.into_iter().filter(|(_, bytes)| (*bytes as f64) < needed);
    Ok(small.map(|(parameter, _)| told.clone().sysctl(parameter, rounded_up(needed).to_string())).collect())
}

fn saved_metrics(view: &View<'_>) -> Known<Vec<Told>> {
    let is_far = round_trip(view).is_none_or(|time| time >= FAR);
    let speed = view.facts.carrier()?.speed()?;
    match view.facts.network_number("ipv4/tcp_no_metrics_save")? {
        0 if is_far && speed >= FAST => Ok(vec![Told::warning("0").sysctl(Parameter::SavedMetrics, "1")]),
        value => Ok(vec![Told::ok(value.to_string())]),
    }
}

/// By the interface's speed alone, where no path is known.
fn by_table(view: &View<'_>, buffer: Buffer, most: f64, value: String) -> Known<Vec<Told>> {
    const TIERS: [(u64, f64); 3] = [(FASTEST, 1_073_741_824.0), (40_000_000_000, 268_435_456.0), (FAST, 33_554_432.0)];
    let carrier = view.facts.carrier()?;
    let speed = carrier.speed()?;
    let Some((_, least)) = TIERS.iter().find(|(tier, _)| speed >= *tier) else {
        return Ok(vec![Told::ok(format!("{value}: enough below {}", units::bits(FAST as f64)))]);
    };
    if most >= *least {
        return Ok(vec![Told::ok(value)]);
    }
    // A path of a continent.
    let far = Duration::from_millis(50);
    let window = most * (buffer.share)(&view.facts);
    let cost = format!("one stream is limited to {} at {}", units::rate(window / far.as_secs_f64()), units::time(far));
    let should = format!("at least {} at {}", units::bytes(*least), units::bits(speed as f64));
    let told = Told::warning(value).should_be(should).costs(cost);
    Ok(vec![told.sysctl(buffer.parameter, format!("{} {}", buffer.before, least.min(BUFFER_MAX)))])
}

/// A power of two that is no smaller, within what the kernel takes.
fn rounded_up(bytes: f64) -> u64 {
    let mut size = 4_194_304_u64;
    while (size as f64) < bytes && size < 1 << 30 {
        size *= 2;
    }
    if (size as f64) < bytes { BUFFER_MAX as u64 } else { size }
}

fn congestion(view: &View<'_>) -> Known<Vec<Told>> {
    const GOOD: [&str; 3] = ["cubic", "htcp", "bbr"];
    // What a connection has counts more than what the host gives to most.
    let used = view.facts.congestion_used().or_else(|_| view.facts.congestion())?;
    if GOOD.iter().any(|good| used.starts_with(good)) {
        return Ok(vec![Told::ok(used)]);
    }
    let available = view.facts.congestions().unwrap_or_default();
    let better = ["bbr", "cubic"].into_iter().find(|one| available.contains(one)).unwrap_or("cubic");
    let cost = match round_trip(view).zip(wanted_rate(view).ok()) {
        Some((round_trip, rate)) => recovery(rate, round_trip),
        None => String::new(),
    };
    Ok(vec![Told::warning(used).costs(cost).sysctl(Parameter::CongestionControl, better)])
}

/// One segment more in each round trip, from half the window up: as Reno does.
fn recovery(rate: f64, round_trip: Duration) -> String {
    let segments = rate * round_trip.as_secs_f64() / 1448.0;
    let seconds = round_trip.as_secs_f64() * (segments / 2.0).max(1.0);
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    format!(
        "after one loss the full {} are back after {} if the window grows as Reno's",
        units::rate(rate),
        units::time(time)
    )
}

fn option(view: &View<'_>, file: &str, parameter: Parameter) -> Known<Vec<Told>> {
    if view.facts.network_number(file)? != 0 {
        return Ok(vec![Told::ok("on")]);
    }
    let told = Told::failure(format!("{} is off", parameter.name()));
    let told = if !file.ends_with("window_scaling") {
        Told::warning(format!("{} is off", parameter.name()))
    } else {
        match round_trip(view) {
            Some(round_trip) => {
                let rate = units::rate(65_535.0 / round_trip.as_secs_f64().max(1e-6));
                told.costs(format!("one stream is limited to {rate} at {}", units::time(round_trip)))
            }
            None => told.costs("one stream is limited to 0.66 MB/s at 100 ms"),
        }
    };
    Ok(vec![told.sysctl(parameter, "1")])
}

fn mtu_probing(view: &View<'_>) -> Known<Vec<Told>> {
    let (probing, mtu) = (view.facts.network_number("ipv4/tcp_mtu_probing")?, view.facts.carrier()?.mtu()?);
    if probing != 0 || mtu <= PACKET {
        return Ok(vec![Told::ok(format!("{probing}, packets of {mtu} bytes"))]);
    }
    let told = Told::warning(format!("0, and packets have up to {mtu} bytes"));
    Ok(vec![told.sysctl(Parameter::MtuProbing, "1")])
}

fn memory(view: &View<'_>) -> Known<Vec<Told>> {
    let (used, pressure, most) = view.facts.tcp_memory()?;
    let met = view.facts.counter("proc/net/netstat", "TcpExt", "TCPMemoryPressures").unwrap_or(0);
    let now = format!("{} of {} pages, {met} times under pressure since the start", used, pressure);
    let is_short = u128::from(used) * 100 >= u128::from(pressure) * u128::from(PRESSURE);
    if met == 0 && !is_short {
        return Ok(vec![Told::ok(now)]);
    }
    let should = view.facts.memory("MemTotal").map(|bytes| bytes / MEMORY_PART / view.facts.page_bytes());
    let is_most = should.as_ref().is_ok_and(|pages| most >= *pages);
    // What was met before the limit was raised is counted still.
    if is_most && !is_short {
        return Ok(vec![Told::ok(format!("{now}; the limit is a quarter of memory"))]);
    }
    let told = if used >= pressure { Told::failure(now) } else { Told::warning(now) };
    let told = told.costs("windows shrink while it lasts, whatever tcp_rmem allows");
    Ok(vec![match should {
        // In the proportions that the kernel has by itself.
        Ok(pages) if !is_most => told.sysctl(Parameter::Memory, format!("{} {} {pages}", pages / 2, pages / 3 * 2)),
        Ok(_) | Err(_) => told.advice("fewer connections at once, smaller tcp_rmem and tcp_wmem, or more memory"),
    }])
}

fn listen_queue(view: &View<'_>) -> Known<Vec<Told>> {
    let overflows = view.facts.counter("proc/net/netstat", "TcpExt", "ListenOverflows")?;
    let queue = view.facts.network_number("core/somaxconn");
    if overflows == 0 {
        return Ok(vec![Told::ok("no listener's queue was full since the start")]);
    }
    let value = format!("{overflows} connections were dropped because a listener's queue was full");
    if !view.is_often(overflows, REFUSED) {
        return Ok(vec![Told::ok(format!("{value} since the start"))]);
    }
    let told = Told::warning(value);
    let told = told.costs("each such client waits a second or more before it tries again");
    Ok(vec![match queue {
        Ok(queue) if queue < 4096 => told.sysctl(Parameter::ListenQueue, "4096"),
        Ok(_) | Err(_) => told.advice("raise the backlog of the program that listens: ss -ltn shows each queue"),
    }])
}

fn optmem(view: &View<'_>) -> Known<Vec<Told>> {
    let speed = view.facts.carrier()?.speed()?;
    if speed < FASTEST {
        return Ok(Vec::new());
    }
    let bytes = view.facts.network_number("core/optmem_max")?;
    if bytes >= NOTES as i64 {
        return Ok(vec![Told::ok(units::bytes(bytes as f64))]);
    }
    let told =
        Told::warning(units::bytes(bytes as f64)).costs("programs that send without a copy fall back to copying");
    Ok(vec![told.sysctl(Parameter::OptionMemory, NOTES.to_string())])
}
