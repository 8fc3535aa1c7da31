//! The pure scheduler over time: tasks of many users, on a clock of their own.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::clock::Moment;

/// A task and the seconds of work that it has left.
struct Job {
    entry: Entry,
    left: u64,
    waited: Option<u64>,
}

/// A crowd of users at one service.
struct Crowd {
    rules: Rules,
    jobs: Vec<Job>,
    endpoints: BTreeMap<String, EndpointState>,
    shares: Shares,
    /// Worker seconds by user.
    served: BTreeMap<String, f64>,
    now: u64,
}

impl Crowd {
    fn new(workers: u32) -> Self {
        let rules = Rules { workers, ..Rules::default() };
        let (shares, served) = (Shares::default(), BTreeMap::new());
        Self { rules, jobs: Vec::new(), endpoints: BTreeMap::new(), shares, served, now: 0 }
    }

    fn submit(&mut self, owner: &str, link: Link, seconds: u64) -> usize {
        let id = format!("{:05}", self.jobs.len());
        let stands = Stands::Waiting { retry_in: Duration::ZERO };
        let submitted = Moment(self.now as i64 * 1_000_000 + self.jobs.len() as i64);
        let entry = Entry {
            id,
            owner: owner.to_owned(),
            priority: 4,
            submitted,
            links: vec![link],
            token: None,
            takes: None,
            stands,
        };
        self.jobs.push(Job { entry, left: seconds, waited: None });
        self.jobs.len() - 1
    }

    /// One second passes. A worker that was told to leave does so within it.
    fn second(&mut self) {
        let open: Vec<Entry> = self.jobs.iter().filter(|job| job.left > 0).map(|job| job.entry.clone()).collect();
        let (sick, history) = (BTreeMap::new(), History::default());
        let Self { rules, endpoints, shares, .. } = &*self;
        let plan = plan(&View { rules, tasks: &open, endpoints, sick: &sick, shares, history: &history });
        for job in &mut self.jobs {
            if let Stands::Running { leaves: true, .. } = job.entry.stands {
                job.entry.stands = Stands::Waiting { retry_in: Duration::ZERO };
            }
        }
        for decision in plan.decisions {
            match decision {
                Decision::Start { task, .. } => {
                    let job = &mut self.jobs[task.parse::<usize>().unwrap()];
                    let waited = (self.now * 1_000_000).saturating_sub(job.entry.submitted.0 as u64) / 1_000_000;
                    job.waited.get_or_insert(waited);
                    job.entry.stands = Stands::Running { ran: Duration::ZERO, remaining: None, leaves: false };
                }
                Decision::GiveWay { task, .. } => {
                    if let Stands::Running { leaves, .. } = &mut self.jobs[task.parse::<usize>().unwrap()].entry.stands
                    {
                        *leaves = true;
                    }
                }
            }
        }
        self.now += 1;
        let mut running: BTreeMap<&str, u32> = BTreeMap::new();
        for job in self.jobs.iter_mut().filter(|job| job.left > 0) {
            if let Stands::Running { ran, .. } = &mut job.entry.stands {
                *ran += Duration::from_secs(1);
                job.left -= 1;
                *running.entry(&job.entry.owner).or_default() += 1;
            }
        }
        for (owner, workers) in &running {
            *self.served.entry((*owner).to_owned()).or_default() += f64::from(*workers);
        }
        self.shares.advance(Duration::from_secs(self.now), running);
    }

    /// Whether each of these users still has work that waits or runs.
    fn all_have_work(&self, users: usize) -> bool {
        let owners: std::collections::BTreeSet<&str> =
            self.jobs.iter().filter(|job| job.left > 0).map(|job| job.entry.owner.as_str()).collect();
        owners.len() == users
    }
}

/// Jain's index: 1 where all have the same, 1/n where one has everything.
fn jain(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let (sum, squares, count) = values
        .fold((0.0, 0.0, 0.0), |(sum, squares, count), value| (sum + value, squares + value * value, count + 1.0));
    sum * sum / (count * squares)
}

fn number(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % below
}

#[test]
fn fairness_two_hundred_tasks_of_twenty_users_share_alike_and_all_end() {
    for seed in 0..20 {
        let (mut random, mut crowd) = (seed, Crowd::new(16));
        crowd.endpoints.insert("store".to_owned(), EndpointState { transfers: Some(10), ..EndpointState::default() });
        for n in 0..200 {
            let owner = format!("user {}", n % 20);
            let source = format!("@{}", number(&mut random, 5));
            let destination = if number(&mut random, 2) == 0 { "@store".to_owned() } else { format!("@d{}", n % 7) };
            // The first users' tasks are ten times as large as the last ones'.
            let seconds = 10 + number(&mut random, if n % 20 < 10 { 200 } else { 20 });
            crowd.submit(&owner, Link::new(&source, &destination), seconds);
        }
        let mut fair_until = None;
        while crowd.jobs.iter().any(|job| job.left > 0) {
            assert!(crowd.now < 20_000, "seed {seed}: some task never ends");
            crowd.second();
            if crowd.all_have_work(20) {
                fair_until = Some(jain(crowd.served.values().copied()));
            }
        }
        let index = fair_until.unwrap();
        assert!(index >= 0.95, "seed {seed}: Jain's index {index:.3}");
    }
}

#[test]
fn fairness_many_tasks_of_one_user_do_not_slow_the_others() {
    let mut crowd = Crowd::new(16);
    for _ in 0..500 {
        crowd.submit("crowd", Link::new("@a", "@b"), 100);
    }
    (0..20).for_each(|_| crowd.second());
    for user in 0..4 {
        for _ in 0..50 {
            crowd.submit(&format!("user {user}"), Link::new("@c", &format!("@{user}")), 40);
        }
    }
    crowd.served.clear();
    (0..400).for_each(|_| crowd.second());
    assert!(crowd.all_have_work(5));
    // The crowd's pair may run 8 at once; the others share the rest alike.
    let served: Vec<f64> = crowd.served.values().copied().collect();
    assert!(jain(served.iter().copied()) >= 0.95, "{:?}", crowd.served);
}

#[test]
fn fairness_small_task_beside_giants_starts_within_five_seconds() {
    let mut crowd = Crowd::new(4);
    crowd.endpoints.insert("big".to_owned(), EndpointState { transfers: Some(2), ..EndpointState::default() });
    for _ in 0..20 {
        crowd.submit("giant", Link::new("@big", "@b"), 1_000_000);
        crowd.submit("giant", Link::new("@c", "@d"), 1_000_000);
    }
    (0..50).for_each(|_| crowd.second());
    // Three newcomers one after the other, for places that the giants hold, and one for the endpoint that they fill.
    let links = [("@c", "@d"), ("@c", "@d"), ("@e", "@f"), ("@big", "@f")];
    for (n, (source, destination)) in links.into_iter().enumerate() {
        let job = crowd.submit(&format!("small {n}"), Link::new(source, destination), 3);
        (0..8).for_each(|_| crowd.second());
        let job = &crowd.jobs[job];
        assert!(job.waited.is_some_and(|waited| waited <= 5), "{n}: {:?}", job.waited);
        assert_eq!(job.left, 0);
    }
    // The giants have not been stopped for good.
    assert!(
        crowd.jobs.iter().filter(|job| matches!(job.entry.stands, Stands::Running { .. }) && job.left > 0).count() >= 3
    );
}

#[test]
fn fairness_owners_with_one_giant_each_take_turns() {
    let mut crowd = Crowd::new(2);
    for user in ["a", "b", "c"] {
        crowd.submit(user, Link::new("@x", "@y"), 1_000_000);
    }
    (0..6 * 3600).for_each(|_| crowd.second());
    assert!(jain(crowd.served.values().copied()) >= 0.95, "{:?}", crowd.served);
    assert_eq!(crowd.served.len(), 3);
}
