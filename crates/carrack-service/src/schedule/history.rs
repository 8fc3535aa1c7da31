//! What links did before: for telling when a task begins and how long it takes.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::estimate::{RUNS_LEAST, Range, Run, Size, estimate};
use super::link::Link;

/// Tasks remembered of each link.
pub(super) const REMEMBERED: usize = 50;
/// Links remembered. The one that was used least recently goes first.
const LINKS: usize = 10_000;

/// Finished tasks by link, in memory.
#[derive(Clone, Debug, Default)]
pub struct History {
    links: BTreeMap<Link, Past>,
    count: u64,
}

#[derive(Clone, Debug, Default)]
struct Past {
    tasks: VecDeque<Run>,
    used: u64,
}

impl History {
    /// A task on this link has ended with success.
    pub fn add(&mut self, link: &Link, took: Duration, size: Size) {
        self.count += 1;
        if !self.links.contains_key(link) && self.links.len() >= LINKS {
            let oldest = self.links.iter().min_by_key(|(_, past)| past.used).map(|(link, _)| link.clone());
            oldest.and_then(|link| self.links.remove(&link));
        }
        let past = self.links.entry(link.clone()).or_default();
        past.used = self.count;
        if past.tasks.len() == REMEMBERED {
            past.tasks.pop_front();
        }
        past.tasks.push_back(Run { took, size });
    }

    /// How long a task on this link took: the middle one of the last. `None` where there was none.
    pub fn usual_time(&self, link: &Link) -> Option<Duration> {
        let mut times: Vec<Duration> = self.links.get(link)?.tasks.iter().map(|run| run.took).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }

    /// How long a task of any size takes on these links, one after the other: as long as the shortest and the longest
    /// of the last. `None` where too few are known of one of them.
    pub fn usual_range(&self, links: &[Link]) -> Option<Range> {
        let sum = links.iter().try_fold(Range::default(), |sum, link| {
            let times = || self.links.get(link).into_iter().flat_map(|past| &past.tasks).map(|run| run.took);
            let (least, most) = times().min().zip(times().max()).filter(|_| self.known(link) >= RUNS_LEAST)?;
            Some(Range { least: sum.least.saturating_add(least), most: sum.most.saturating_add(most) })
        });
        sum.filter(|_| !links.is_empty())
    }

    /// How long a task of this size takes on this link. `None` where too few tasks are known of it.
    pub fn range(&self, link: &Link, size: Size) -> Option<Range> {
        let runs: Vec<Run> = self.links.get(link)?.tasks.iter().copied().collect();
        estimate(&runs, size)
    }

    /// How many tasks are known of this link.
    pub fn known(&self, link: &Link) -> usize {
        self.links.get(link).map_or(0, |past| past.tasks.len())
    }

    /// Bytes a second that tasks on this link moved in all. `None` where there was none, or nothing was moved.
    pub fn usual_rate(&self, link: &Link) -> Option<f64> {
        let tasks = &self.links.get(link)?.tasks;
        let bytes: u64 = tasks.iter().map(|run| run.size.bytes).fold(0, u64::saturating_add);
        let seconds: f64 = tasks.iter().map(|run| run.took.as_secs_f64()).sum();
        (bytes > 0 && seconds > 0.0).then(|| bytes as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_time_is_the_middle_one_and_old_links_go() {
        let mut history = History::default();
        let link = Link::new("@a", "@b");
        assert_eq!(history.usual_time(&link), None);
        for seconds in [1, 100, 3] {
            history.add(&link, Duration::from_secs(seconds), Size { bytes: 1000, items: 1 });
        }
        assert_eq!(history.usual_time(&link), Some(Duration::from_secs(3)));
        assert_eq!(history.usual_rate(&link), Some(3000.0 / 104.0));
        for n in 0..LINKS {
            history.add(&Link::new("@x", &n.to_string()), Duration::from_secs(1), Size::default());
        }
        assert_eq!(history.usual_time(&link), None);
        assert_eq!(history.links.len(), LINKS);
    }
}
