//! The order among tasks that wait: owners in turn, then priority, then age.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::clock::Moment;

/// A task that waits, as far as its place matters.
#[derive(Clone, Copy, Debug)]
pub struct Waiting<'a> {
    pub id: &'a str,
    pub owner: &'a str,
    pub priority: u8,
    pub submitted: Moment,
}

/// Owners with tasks that wait; gives out their tasks one by one.
pub struct Turns<'a, T> {
    queues: BTreeMap<&'a str, VecDeque<T>>,
    /// Tasks that count for the owner, time used, age of the oldest, owner: the least goes next.
    owners: BTreeSet<(u32, Duration, Moment, &'a str)>,
}

impl<'a, T> Turns<'a, T> {
    /// From tasks in any order, with what each owner runs and has used.
    pub fn new(
        tasks: impl IntoIterator<Item = (Waiting<'a>, T)>,
        running: &BTreeMap<&'a str, u32>,
        used: impl Fn(&str) -> Duration,
    ) -> Self {
        let mut sorted: Vec<(Waiting<'a>, T)> = tasks.into_iter().collect();
        sorted.sort_by_key(|(task, _)| (std::cmp::Reverse(task.priority), task.submitted, task.id));
        let mut oldest: BTreeMap<&'a str, Moment> = BTreeMap::new();
        let mut queues: BTreeMap<&'a str, VecDeque<T>> = BTreeMap::new();
        for (task, with) in sorted {
            let age = oldest.entry(task.owner).or_insert(task.submitted);
            *age = task.submitted.min(*age);
            queues.entry(task.owner).or_default().push_back(with);
        }
        let owners =
            oldest.into_iter().map(|(owner, age)| (running.get(owner).copied().unwrap_or(0), used(owner), age, owner));
        Self { owners: owners.collect(), queues }
    }

    /// The next task and what its owner has so far. Whoever calls says by `counts` whether it counts for its owner.
    pub fn next(&mut self, counts: impl FnOnce(&T, u32) -> bool) -> Option<T> {
        loop {
            let (count, used, age, owner) = self.owners.pop_first()?;
            let Some(task) = self.queues.get_mut(owner).and_then(VecDeque::pop_front) else { continue };
            let count = count + u32::from(counts(&task, count));
            self.owners.insert((count, used, age, owner));
            return Some(task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(tasks: &[(&'static str, u8, i64)], running: &[(&'static str, u32)]) -> Vec<usize> {
        let waiting = tasks.iter().enumerate().map(|(n, &(owner, priority, submitted))| {
            (Waiting { id: "", owner, priority, submitted: Moment(submitted) }, n)
        });
        let running = running.iter().copied().collect();
        let mut turns = Turns::new(waiting, &running, |_| Duration::ZERO);
        std::iter::from_fn(|| turns.next(|_, _| true)).collect()
    }

    #[test]
    fn owners_take_turns_then_priority_then_age_decides() {
        let tasks = [("ann", 4, 1), ("ann", 4, 2), ("ann", 9, 3), ("bob", 0, 4), ("bob", 4, 5)];
        assert_eq!(turns(&tasks, &[]), [2, 4, 0, 3, 1]);
        assert_eq!(turns(&tasks, &[("ann", 2)]), [4, 3, 2, 0, 1]);
    }
}
