//! Faults by their places.

use carrack_service::model::{FaultBurst, FaultCode, FaultFigures, FaultPlace, FaultStatistics, PlaceKind};

use super::time;
use crate::output::{format, human};

/// Places with faults that are shown beside those that stand out.
const PLACES_SHOWN: usize = 10;
/// Characters of the number of a file system that are shown.
const DISK_SHOWN: usize = 8;

/// What was found, in lines.
pub fn fault_lines(found: &FaultStatistics) -> Vec<String> {
    let mut lines = Vec::new();
    let FaultStatistics { from, to, tasks, faulty, complete, bursts, places, .. } = found;
    let least = if *complete { "" } else { " (the latest; there were more)" };
    lines.push(format!(
        "{} of {}{least} had a fault from {} to {}",
        format::count(*faulty),
        format::counted(*tasks, "task", "tasks"),
        time(*from),
        time(*to)
    ));
    if bursts.is_empty() {
        lines.push("no place stands out".to_owned());
    }
    bursts.iter().for_each(|burst| lines.extend(burst_lines(burst)));
    if !places.is_empty() {
        lines.push("places with faults:".to_owned());
        for FaultFigures { place, tasks, faulty } in places.iter().take(PLACES_SHOWN) {
            let of = format::counted(*tasks, "task", "tasks");
            lines.push(format!("  {} of {of}: {}", format::count(*faulty), place_words(place)));
        }
        if let Some(more) = places.len().checked_sub(PLACES_SHOWN).filter(|more| *more > 0) {
            lines.push(format!("  and {}", format::counted(more as u64, "other place", "other places")));
        }
    }
    lines.iter().map(|line| human::safe(line)).collect()
}

fn burst_lines(burst: &FaultBurst) -> Vec<String> {
    let FaultBurst { place, alike, endpoints, from, to, tasks, faulty, .. } = burst;
    let mut lines = vec![
        format!("burst: {}", place_words(place)),
        format!(
            "  {} of {} had a fault there from {} to {}; elsewhere {} of {}",
            format::count(*faulty),
            format::counted(*tasks, "task", "tasks"),
            time(*from),
            time(*to),
            format::count(burst.faulty_elsewhere),
            format::count(burst.tasks_elsewhere)
        ),
    ];
    let codes = burst.codes.iter().map(|FaultCode { code, tasks }| format!("{code} {}", format::count(*tasks)));
    lines.push(format!("  what failed: {}", codes.collect::<Vec<_>>().join(", ")));
    if !alike.is_empty() {
        let places: Vec<String> = alike.iter().map(place_words).collect();
        lines.push(format!("  the same tasks were at: {}", places.join("; ")));
    }
    if !endpoints.is_empty() {
        let names: Vec<String> = endpoints.iter().map(|name| format!("@{name}")).collect();
        lines.push(format!("  by: {}", names.join(", ")));
    }
    lines.push(format!("  tasks: {}", burst.examples.join(", ")));
    lines
}

/// A place in words.
fn place_words(place: &FaultPlace) -> String {
    let FaultPlace { kind, host, disk, path, peer } = place;
    match kind {
        PlaceKind::Host => format!("host {host}"),
        PlaceKind::Disk => {
            let number: String = disk.iter().flat_map(|disk| disk.chars()).take(DISK_SHOWN).collect();
            let at = path.as_ref().map_or_else(String::new, |path| format!(", used at {path}"));
            format!("file system {number} of host {host}{at}")
        }
        PlaceKind::Path => format!("directory {} of host {host}", path.as_deref().unwrap_or_default()),
        PlaceKind::Link => format!("way between {host} and {}", peer.as_deref().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_service::clock::Moment;

    #[test]
    fn fault_lines_name_the_place_the_rest_and_what_may_be_it_as_well() {
        let place = |kind, path: Option<&str>| FaultPlace {
            kind,
            host: "nas".into(),
            disk: (kind == PlaceKind::Disk).then(|| "00112233445566778899aabbccddeeff".into()),
            path: path.map(Into::into),
            peer: None,
        };
        let burst = FaultBurst {
            place: place(PlaceKind::Path, Some("/data/a\u{1b}")),
            alike: vec![place(PlaceKind::Disk, Some("/data"))],
            endpoints: vec!["lab".into()],
            from: Moment(0),
            to: Moment(60_000_000),
            tasks: 40,
            faulty: 31,
            tasks_elsewhere: 9_960,
            faulty_elsewhere: 12,
            codes: vec![FaultCode { code: "digest-mismatch".into(), tasks: 31 }],
            chance: 1e-40,
            examples: vec!["t1".into()],
        };
        let found = FaultStatistics {
            from: Moment(0),
            to: Moment(120_000_000),
            tasks: 10_000,
            faulty: 43,
            complete: true,
            comparisons: 7,
            codes: Vec::new(),
            bursts: vec![burst],
            places: vec![FaultFigures { place: place(PlaceKind::Host, None), tasks: 50, faulty: 32 }],
        };
        let lines = fault_lines(&found);
        assert_eq!(lines[0], "43 of 10,000 tasks had a fault from 1970-01-01T00:00:00Z to 1970-01-01T00:02:00Z");
        assert_eq!(lines[1], "burst: directory /data/a\\x1b of host nas");
        assert!(lines[2].ends_with("; elsewhere 12 of 9,960") && lines[2].contains(" 31 of 40 tasks"), "{lines:?}");
        assert_eq!(lines[4], "  the same tasks were at: file system 00112233 of host nas, used at /data");
        assert_eq!(lines.last().map(String::as_str), Some("  32 of 50 tasks: host nas"));
        let none = FaultStatistics { bursts: Vec::new(), places: Vec::new(), ..found };
        assert_eq!(fault_lines(&none)[1..], ["no place stands out"]);
    }
}
