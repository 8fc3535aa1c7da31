//! What the kernel knows of one TCP connection, in words: how it was made, what it has met, and its first packet.

use std::fmt::Write as _;

use rustix::fd::AsFd;

use super::FactText;
use crate::socket::{congestion_control, handshake, take_syn, tcp_facts};

/// The facts of a connection: `tcp`, lines of a name and a value; and `syn`, the first packet in hexadecimal, on the
/// side that accepted it.
pub fn connection(connection: impl AsFd) -> [(&'static str, FactText); 2] {
    let fd = connection.as_fd();
    let syn = match take_syn(fd) {
        Ok(Some(bytes)) => FactText::Found(bytes.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })),
        Ok(None) => FactText::Absent,
        Err(error) => error.into(),
    };
    [("tcp", told(fd).into()), ("syn", syn)]
}

fn told(fd: rustix::fd::BorrowedFd<'_>) -> std::io::Result<String> {
    let (facts, agreed) = (tcp_facts(fd)?, handshake(fd)?);
    let congestion = congestion_control(fd)?;
    let mut lines = format!("congestion {congestion}\n");
    if let Some((theirs, own)) = agreed.scales {
        let _ = writeln!(lines, "their-scale {theirs}\nown-scale {own}");
    }
    let numbers = [
        ("timestamps", u64::from(agreed.timestamps)),
        ("sack", agreed.sack.into()),
        ("scaling", agreed.scales.is_some().into()),
        ("advertised-mss", agreed.advertised_mss.into()),
        ("mss", facts.segment_bytes.into()),
        ("path-mtu", facts.path_mtu.into()),
        ("rtt-us", micros(facts.rtt)),
        ("min-rtt-us", micros(facts.min_rtt)),
        ("segments", facts.segments_out.into()),
        ("resent", facts.retransmits),
        ("timeouts", facts.timeouts.into()),
    ];
    for (name, value) in numbers {
        let _ = writeln!(lines, "{name} {value}");
    }
    Ok(lines)
}

fn micros(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn connection_is_told_with_its_first_packet() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        crate::socket::keep_syn(&listener).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        let [(_, FactText::Found(tcp)), (_, FactText::Found(syn))] = connection(&far) else { panic!() };
        assert!(tcp.lines().all(|line| line.split(' ').count() == 2) && tcp.contains("\nadvertised-mss "), "{tcp}");
        assert!(syn.starts_with("45") && syn.len() >= 80, "{syn}");
        assert_eq!(connection(&near)[1].1, FactText::Absent);
    }
}
