//! Ten thousand tasks in a ledger, with bursts planted among them and without: what was planted is named, and nothing
//! else is.

use std::collections::BTreeMap;

use carrack_core::chance::Chance;

use super::{KEPT_MOST, KeptMost, VISITS_MOST, statistics, statistics_within};
use crate::clock::Moment;
use crate::ledger::memory::MemoryLedger;
use crate::ledger::{Ledger, Submission, TaskChange, TaskGuard, TaskVisits, VisitedTasks};
use crate::model::{EndVisit, FaultPlace, FaultStatistics, NewTask, Pair, PlaceKind, TaskState, VisitedDirectory};

const TASKS: u64 = 10_000;
const HOSTS: u64 = 20;
const DISKS: u64 = 3;
const DIRECTORIES: u64 = 8;
const MINUTE: i64 = 60_000_000;
/// Four weeks have so many minutes for each task.
const MINUTES_PER_TASK: i64 = 4;

/// One of the places that tasks are at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    host: u64,
    disk: u64,
    directory: u64,
}

/// Something that is wrong in a time.
struct Planted {
    kind: PlaceKind,
    at: Spot,
    /// Tasks, by their number.
    during: std::ops::Range<u64>,
    /// How many of a hundred tasks there have a fault.
    percent: u64,
}

impl Planted {
    fn covers(&self, spot: Spot, task: u64) -> bool {
        let is_there = match self.kind {
            PlaceKind::Host => spot.host == self.at.host,
            PlaceKind::Disk => (spot.host, spot.disk) == (self.at.host, self.at.disk),
            PlaceKind::Path => spot == self.at,
            PlaceKind::Link => false,
        };
        is_there && self.during.contains(&task)
    }

    fn told(&self) -> (PlaceKind, String, Option<String>) {
        let Spot { host, disk, directory } = self.at;
        let what = match self.kind {
            PlaceKind::Host | PlaceKind::Link => None,
            PlaceKind::Disk => Some(format!("disk-{host}-{disk}")),
            PlaceKind::Path => Some(format!("/mnt{disk}/set{directory}")),
        };
        (self.kind, format!("host-{host}"), what)
    }
}

fn told(place: &FaultPlace) -> (PlaceKind, String, Option<String>) {
    let what = if place.kind == PlaceKind::Disk { place.disk.clone() } else { place.path.clone() };
    (place.kind, place.host.clone(), what)
}

/// One end of a task; a fault is one of an item, of the file system or of the host.
fn visit(spot: Spot, code: Option<&str>, chance: &mut Chance) -> EndVisit {
    let Spot { host, disk, directory } = spot;
    let faults: Vec<String> = code.into_iter().map(str::to_owned).collect();
    let mut visit = EndVisit {
        host: format!("host-{host}"),
        endpoint: Some(format!("endpoint-{host}-{disk}")),
        disk: Some(format!("disk-{host}-{disk}")),
        directory: format!("/mnt{disk}/set{directory}").into_bytes(),
        ..EndVisit::default()
    };
    // Every task is in some of the directories of its set; a fault comes in one of them.
    let first = chance.below(4);
    for number in 0..2 {
        let path = format!("day{}", (first + number) % 4).into_bytes();
        let faults = if number == 0 { faults.clone() } else { Vec::new() };
        visit.directories.push(VisitedDirectory { path, faults });
    }
    visit.directories.sort_by(|one, other| one.path.cmp(&other.path));
    visit
}

/// A ledger with tasks that have faults at random, one in a hundred, and what was planted.
fn ledger(seed: u64, planted: &[Planted]) -> (MemoryLedger, Moment) {
    let (ledger, mut chance) = (MemoryLedger::new(), Chance::new(seed));
    let start = Moment(1_700_000_000_000_000);
    let at = |task: u64| Moment(start.0 + i64::try_from(task).unwrap() * MINUTES_PER_TASK * MINUTE);
    let mut spot = {
        let mut chance = Chance::new(seed ^ 0xfeed);
        move || Spot { host: chance.below(HOSTS), disk: chance.below(DISKS), directory: chance.below(DIRECTORIES) }
    };
    for task in 0..TASKS {
        let mut visits = Vec::new();
        for _ in 0..2 {
            let spot = spot();
            let by_chance = chance.below(200) == 0;
            let is_planted = planted.iter().any(|one| one.covers(spot, task) && chance.below(100) < one.percent);
            let code = (by_chance || is_planted).then_some(if is_planted { "digest-mismatch" } else { "input-output" });
            visits.push(visit(spot, code, &mut chance));
        }
        let id = format!("task-{task}");
        let pair = Pair { source: "/a".into(), destination: Some("/b".into()) };
        let submission = Submission {
            id: id.clone(),
            owner: "ada".to_owned(),
            submission_id: None,
            request: NewTask { pairs: vec![pair], ..NewTask::default() },
            endpoints: Vec::new(),
            estimate: None,
        };
        ledger.submit(&submission, at(task)).unwrap();
        let change = TaskChange { state: Some(TaskState::Succeeded), visits, ..TaskChange::default() };
        ledger.change_task(&id, &TaskGuard::default(), &change, &[], at(task)).unwrap();
    }
    (ledger, at(TASKS))
}

fn found(seed: u64, planted: &[Planted]) -> FaultStatistics {
    let (ledger, now) = ledger(seed, planted);
    let from = Moment(now.0 - 30 * 24 * 60 * MINUTE);
    let found = ledger.visits(None, from, VISITS_MOST).unwrap();
    statistics(&found, from, now)
}

fn all(tasks: Vec<TaskVisits>) -> VisitedTasks {
    VisitedTasks { tasks, complete: true }
}

#[test]
fn bursts_at_a_disk_a_path_and_a_host_are_named_and_no_others() {
    let spot = |host, disk, directory| Spot { host, disk, directory };
    for seed in 1..=3 {
        let planted = [
            Planted { kind: PlaceKind::Disk, at: spot(3, 1, 0), during: 4_000..5_500, percent: 40 },
            Planted { kind: PlaceKind::Path, at: spot(7, 0, 4), during: 0..TASKS, percent: 50 },
            Planted { kind: PlaceKind::Host, at: spot(12, 0, 0), during: 8_000..8_800, percent: 30 },
        ];
        let found = found(seed, &planted);
        assert_eq!((found.tasks, found.complete), (TASKS, true));
        let mut named: Vec<_> = found.bursts.iter().map(|burst| told(&burst.place)).collect();
        named.sort();
        let mut expected: Vec<_> = planted.iter().map(Planted::told).collect();
        expected.sort();
        assert_eq!(named, expected, "seed {seed}: {:#?}", found.bursts);
        for burst in &found.bursts {
            assert_eq!(burst.codes[0].code, "digest-mismatch");
            assert!(burst.chance < 1e-3 && burst.faulty * 8 > burst.tasks && !burst.examples.is_empty(), "{burst:?}");
        }
        let disk = found.bursts.iter().find(|burst| burst.place.kind == PlaceKind::Disk).unwrap();
        assert_eq!(disk.place.path.as_deref(), Some("/mnt1"));
        assert_eq!(disk.endpoints, ["endpoint-3-1"]);
        let begin = 1_700_000_000_000_000 + 4_000 * MINUTES_PER_TASK * MINUTE;
        let end = begin + 1_500 * MINUTES_PER_TASK * MINUTE;
        assert!(disk.from.0 >= begin && disk.from.0 < begin + (end - begin) / 4, "{disk:?}");
    }
}

#[test]
fn tasks_without_a_burst_have_none() {
    for seed in 100..104 {
        let found = found(seed, &[]);
        assert!(found.faulty > 50, "faults came by chance: {}", found.faulty);
        assert!(found.bursts.is_empty(), "seed {seed}: {:#?}", found.bursts);
        assert!(!found.places.is_empty());
    }
}

#[test]
fn host_that_is_only_somewhat_worse_is_none() {
    // Two in a hundred where elsewhere there is one.
    let spot = Spot { host: 5, disk: 0, directory: 0 };
    let worse = [Planted { kind: PlaceKind::Host, at: spot, during: 0..TASKS, percent: 1 }];
    assert!(found(9, &worse).bursts.is_empty());
}

#[test]
fn task_counts_once_at_a_place_however_many_items_fail_there() {
    let visit = |host: &str, faulty: usize| EndVisit {
        host: host.to_owned(),
        directory: b"/d".to_vec(),
        directories: (0..20)
            .map(|number| VisitedDirectory {
                path: format!("{number:02}").into_bytes(),
                faults: if number < faulty { vec!["input-output".to_owned()] } else { Vec::new() },
            })
            .collect(),
        ..EndVisit::default()
    };
    let row = |number: i64, host: &str, faulty: usize| TaskVisits {
        task: format!("task-{number}"),
        time: Moment(number * MINUTE),
        visits: vec![visit(host, faulty)],
    };
    let rows: Vec<_> = (0..200).map(|number| row(number, "good", 0)).chain([row(200, "bad", 20)]).collect();
    let found = statistics(&all(rows), Moment(0), Moment(1_000 * MINUTE));
    assert!(found.bursts.is_empty(), "{:?}", found.bursts);
    let hosts: BTreeMap<&str, (u64, u64)> = found
        .places
        .iter()
        .filter(|figures| figures.place.kind == PlaceKind::Host)
        .map(|figures| (figures.place.host.as_str(), (figures.tasks, figures.faulty)))
        .collect();
    assert_eq!(hosts, BTreeMap::from([("bad", (1, 1))]));
}

/// A task in as many directories as a visit has, each as deep as a path can be and of its own.
fn deep_task(number: i64) -> TaskVisits {
    let directories = (0..32).map(|directory| VisitedDirectory {
        path: format!("{number}-{directory}{}", "/x".repeat(240)).into_bytes(),
        faults: vec!["input-output".to_owned()],
    });
    let visit = EndVisit {
        host: "host".to_owned(),
        directory: b"/data".to_vec(),
        directories: directories.collect(),
        ..EndVisit::default()
    };
    TaskVisits { task: format!("task-{number}"), time: Moment(number * MINUTE), visits: vec![visit] }
}

#[test]
fn statistics_of_deep_paths_keep_few_of_the_directories_above_each() {
    let tasks = [deep_task(0)];
    let found = super::CountedTasks::of(tasks.iter(), KEPT_MOST);
    // The host, /data, and eleven names below it in each of 32 directories.
    assert_eq!((found.places.len(), found.complete), (2 + 32 * 11, true));
    let longest = found.places.iter().filter_map(|place| place.told().path).map(|path| path.len()).max().unwrap();
    assert!(longest < 64, "{longest}");
}

#[test]
fn statistics_leave_out_places_and_tasks_beyond_their_bounds_and_say_so() {
    // The latest first.
    let tasks: Vec<TaskVisits> = (0..200).rev().map(deep_task).collect();
    let of = |most: KeptMost| statistics_within(most, &all(tasks.clone()), Moment(0), Moment(200 * MINUTE));
    let whole = of(KEPT_MOST);
    assert_eq!((whole.tasks, whole.faulty, whole.complete), (200, 200, true));
    // Two tasks' directories have room: the host is known all the same, and in every task.
    let few = of(KeptMost { place_bytes: 2 * 32 * 11 * 170, ..KEPT_MOST });
    assert_eq!((few.tasks, few.faulty, few.complete), (200, 200, false));
    let host = few.places.iter().find(|figures| figures.place.kind == PlaceKind::Host).unwrap();
    assert_eq!((host.tasks, host.faulty), (200, 200));
    // Ten tasks' stays: the latest ten.
    let latest = of(KeptMost { stays: 10 * (2 + 32 * 11), ..KEPT_MOST });
    assert_eq!((latest.tasks, latest.complete), (10, false));
    let unread = VisitedTasks { complete: false, ..all(tasks.clone()) };
    assert!(!statistics(&unread, Moment(0), Moment(200 * MINUTE)).complete);
}

#[test]
fn link_between_two_hosts_is_named_and_neither_of_them() {
    let visit = |host: u64, is_lost: bool| EndVisit {
        host: format!("host-{host}"),
        directory: format!("/of{host}").into_bytes(),
        faults: if is_lost { vec!["connection-lost".to_owned()] } else { Vec::new() },
        directories: vec![VisitedDirectory::default()],
        ..EndVisit::default()
    };
    let rows: Vec<_> = (0..3_000_i64)
        .map(|number| {
            let (one, other) = (number.unsigned_abs() % 5, 1 + number.unsigned_abs() / 5 % 4);
            let (one, other) = (one, (one + other) % 5);
            let is_bad = one.min(other) == 1 && one.max(other) == 3;
            let is_lost = is_bad && number % 3 == 0 || number % 500 == 1;
            TaskVisits {
                task: format!("task-{number}"),
                time: Moment(number * MINUTE),
                visits: vec![visit(one, is_lost), visit(other, is_lost)],
            }
        })
        .collect();
    let found = statistics(&all(rows), Moment(0), Moment(3_000 * MINUTE));
    let named: Vec<_> = found.bursts.iter().map(|burst| (&burst.place, burst.place.peer.as_deref())).collect();
    assert_eq!(named.len(), 1, "{named:?}");
    assert_eq!((named[0].0.kind, named[0].0.host.as_str(), named[0].1), (PlaceKind::Link, "host-1", Some("host-3")));
}
