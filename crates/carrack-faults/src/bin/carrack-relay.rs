//! A relay that stops one of its connections for good, for the benchmark. `carrack-relay --help` says how.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use carrack_faults::proxy::Proxy;
use clap::{Arg, value_parser};

/// How often it is looked how much has been carried.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

fn cli() -> clap::Command {
    let number = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("BYTES").help(help).value_parser(value_parser!(u64))
    };
    clap::Command::new("carrack-relay")
        .about("Relays TCP connections on loopback, and stops one of them")
        .after_help(
            "Prints the address that it listens on: another loopback address, the same port. Stays until its standard input is closed, \
             and then says on standard error how many connections were stopped.",
        )
        .arg(Arg::new("to").value_name("ADDR:PORT").required(true).value_parser(value_parser!(SocketAddr)))
        .arg(number("rate", "At most so much a second each way, all together"))
        .arg(number("stop-after", "Stop a connection once all together have carried so much; none if this is not given"))
        .arg(number("busy", "One that has carried so much itself").default_value("1048576"))
}

fn main() -> ExitCode {
    let matches = cli().get_matches();
    let number = |name: &str| matches.get_one::<u64>(name).copied();
    let proxy = Proxy::start(*matches.get_one::<SocketAddr>("to").expect("is required"));
    proxy.rate(number("rate"));
    println!("{}", proxy.address());
    let _ = std::io::stdout().flush();
    let over = AtomicBool::new(false);
    let stopped = std::thread::scope(|scope| {
        let stopping = scope.spawn(|| stop_one(&proxy, number("stop-after"), number("busy").unwrap_or(0), &over));
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        over.store(true, Ordering::Relaxed);
        stopping.join()
    });
    eprintln!("stopped: {}", usize::from(matches!(stopped, Ok(true))));
    ExitCode::SUCCESS
}

/// Waits until it is time, and stops a connection in the middle of those that are busy.
fn stop_one(proxy: &Proxy, after: Option<u64>, busy: u64, over: &AtomicBool) -> bool {
    let Some(after) = after else { return false };
    while !over.load(Ordering::Relaxed) {
        let connections = proxy.connections();
        if connections.iter().map(|one| one.up).sum::<u64>() >= after {
            let busy: Vec<usize> =
                (0..connections.len()).filter(|&at| connections[at].open && connections[at].up >= busy).collect();
            if let Some(&chosen) = busy.get(busy.len() / 2) {
                proxy.stall_one(chosen, true);
                return true;
            }
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    false
}
