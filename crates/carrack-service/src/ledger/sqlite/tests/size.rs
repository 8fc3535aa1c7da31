//! How fast and how large a ledger is. Figures are printed, not judged: they belong to their machine.

use super::*;
use crate::model::{Progress, Rates};

#[test]
#[ignore = "prints figures"]
fn ten_thousand_tasks_are_listed() {
    const TASKS: usize = 10_000;
    let place = Place::new();
    let ledger = place.open();
    let began = Instant::now();
    lock(&ledger.writers).durable.pragma_update(None, "synchronous", "off").unwrap();
    let progress = Progress {
        items_total: 1_000_000,
        bytes_moved: 1 << 44,
        rates: Rates { now: 1.2e9, five_minutes: 1.1e9, all: 0.9e9 },
        limited_by: Some("the disk of the destination".to_owned()),
        ..Progress::default()
    };
    for number in 0..TASKS {
        let id = crate::model::new_id();
        let owner = format!("user {}", number % 20);
        ledger.submit(&Submission { id: id.clone(), owner, ..submission(&id) }, Moment(0)).unwrap();
        let change = TaskChange { progress: Some(progress.clone()), ..TaskChange::default() };
        ledger.change_task(&id, &TaskGuard::default(), &change, &[], Moment(1)).unwrap();
    }
    println!("{TASKS} tasks made in {:?}", began.elapsed());
    let time = |what: &str, act: &dyn Fn() -> usize| {
        let mut times: Vec<_> = (0..20)
            .map(|_| {
                let began = Instant::now();
                let rows = act();
                (began.elapsed(), rows)
            })
            .collect();
        times.sort_unstable();
        println!("{what}: {} rows in {:?} (median of 20), {:?} at most", times[10].1, times[10].0, times[19].0);
    };
    let all = TaskFilter::default();
    let of_one = TaskFilter { owner: Some("user 7".to_owned()), ..TaskFilter::default() };
    let page = |limit| Page { after: None, limit };
    time("all at once", &|| ledger.tasks(&all, &page(TASKS)).unwrap().len());
    time("a page", &|| ledger.tasks(&all, &page(100)).unwrap().len());
    time("a page of one owner", &|| ledger.tasks(&of_one, &page(100)).unwrap().len());
    time("open tasks", &|| ledger.open_tasks().unwrap().len());
    time("counts", &|| ledger.count_tasks().unwrap().len());
    drop(ledger);
    println!("file: {} MiB", std::fs::metadata(place.path()).unwrap().len() >> 20);
}
