//! Plans of single views: who starts, who gives way, why the others wait.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::clock::Moment;
use crate::model::BlockedCause;

const SECOND: Duration = Duration::from_secs(1);

/// A view that can be changed.
struct Scene {
    rules: Rules,
    tasks: Vec<Entry>,
    endpoints: BTreeMap<String, EndpointState>,
    sick: BTreeMap<Link, (Duration, u32)>,
    shares: Shares,
    history: History,
}

impl Scene {
    fn new(workers: u32) -> Self {
        Self {
            rules: Rules { workers, ..Rules::default() },
            tasks: Vec::new(),
            endpoints: BTreeMap::new(),
            sick: BTreeMap::new(),
            shares: Shares::default(),
            history: History::default(),
        }
    }

    fn add(&mut self, id: &str, owner: &str, link: (&str, &str), stands: Stands) -> &mut Entry {
        let submitted = Moment(self.tasks.len() as i64);
        let links = vec![Link::new(link.0, link.1)];
        let (id, owner) = (id.to_owned(), owner.to_owned());
        self.tasks.push(Entry { id, owner, priority: 4, submitted, links, token: None, takes: None, stands });
        self.tasks.last_mut().unwrap()
    }

    fn waits(&mut self, id: &str, owner: &str, link: (&str, &str)) -> &mut Entry {
        self.add(id, owner, link, Stands::Waiting { retry_in: Duration::ZERO })
    }

    fn runs(&mut self, id: &str, owner: &str, link: (&str, &str), ran: Duration) {
        self.add(id, owner, link, Stands::Running { ran, remaining: None, leaves: false });
    }

    fn plan(&self) -> Plan {
        let Self { rules, tasks, endpoints, sick, shares, history } = self;
        plan(&View { rules, tasks, endpoints, sick, shares, history })
    }

    fn limit(&mut self, endpoint: &str, transfers: u32) {
        self.endpoints
            .insert(endpoint.to_owned(), EndpointState { transfers: Some(transfers), ..EndpointState::default() });
    }
}

#[test]
fn tasks_of_a_token_with_ceilings_run_one_after_the_other() {
    let mut scene = Scene::new(8);
    for id in ["one", "two", "three"] {
        scene.waits(id, "ann", ("@a", "@b")).token = (id != "three").then(|| "counted".to_owned());
    }
    let plan = scene.plan();
    assert_eq!(started(&plan), ["one", "three"]);
    let waits = plan.queue.iter().find(|place| place.task == "two").unwrap();
    assert!(waits.cause == BlockedCause::Turn && waits.why.contains("token"), "{waits:?}");
}

fn started(plan: &Plan) -> Vec<&str> {
    let start = |decision: &'_ Decision| matches!(decision, Decision::Start { .. });
    plan.decisions.iter().filter(|decision| start(decision)).map(task_of).collect()
}

fn gave_way(plan: &Plan) -> Vec<&str> {
    let gives = |decision: &'_ Decision| matches!(decision, Decision::GiveWay { .. });
    plan.decisions.iter().filter(|decision| gives(decision)).map(task_of).collect()
}

fn task_of(decision: &Decision) -> &str {
    match decision {
        Decision::Start { task, .. } | Decision::GiveWay { task, .. } => task,
    }
}

fn place<'a>(plan: &'a Plan, task: &str) -> &'a Place {
    plan.queue.iter().find(|place| place.task == task).unwrap()
}

#[test]
fn plan_starts_owners_in_turn_then_by_priority_then_by_age() {
    let mut scene = Scene::new(4);
    scene.waits("a1", "ann", ("@x", "@y"));
    scene.waits("a2", "ann", ("@x", "@y"));
    scene.waits("a3", "ann", ("@x", "@y")).priority = 9;
    scene.waits("b1", "bob", ("@x", "@y"));
    let plan = scene.plan();
    // The last of four workers is kept for owners who run nothing.
    assert_eq!(started(&plan), ["a3", "b1", "a1"]);
    let left = place(&plan, "a2");
    assert_eq!((left.position, left.cause), (Some(1), BlockedCause::WorkerLimit));
    assert!(left.why.contains("1 are kept"), "{}", left.why);
}

#[test]
fn plan_newcomer_takes_the_reserve_at_once() {
    let mut scene = Scene::new(4);
    for id in ["a1", "a2", "a3"] {
        scene.runs(id, "ann", ("@x", "@y"), SECOND * 9999);
    }
    scene.waits("a4", "ann", ("@x", "@y"));
    scene.waits("b1", "bob", ("@x", "@y"));
    assert_eq!(started(&scene.plan()), ["b1"]);
}

#[test]
fn plan_owner_of_most_gives_way_where_the_reserve_is_used_up() {
    let mut scene = Scene::new(4);
    scene.runs("a1", "ann", ("@x", "@y"), SECOND * 900);
    scene.runs("a2", "ann", ("@x", "@y"), SECOND * 30);
    scene.runs("b1", "bob", ("@x", "@y"), SECOND * 900);
    scene.runs("c1", "cid", ("@x", "@y"), SECOND * 20);
    scene.waits("d1", "dan", ("@x", "@y"));
    scene.waits("d2", "dan", ("@x", "@y"));
    let plan = scene.plan();
    assert_eq!((started(&plan).len(), gave_way(&plan)), (0, vec!["a2"]));
    // Its owner learns nothing of the other.
    let Some(Decision::GiveWay { why, detail, for_whom, .. }) = plan.decisions.first() else { panic!("{plan:?}") };
    assert_eq!(why, "ann has 2 of what another user waits for and has none of");
    assert!(!["dan", "d1", "for_owner", "for_task"].iter().any(|word| detail.to_string().contains(word)), "{detail}");
    assert!(for_whom.starts_with("task d1 of dan"), "{for_whom}");
    // It is on its way out: nobody else has to go for the same owner.
    if let Stands::Running { leaves, .. } = &mut scene.tasks[1].stands {
        *leaves = true;
    }
    assert_eq!(gave_way(&scene.plan()), [""; 0]);
    // Another newcomer needs another one, but everybody left has only one, and has not used up its time.
    scene.waits("e1", "eve", ("@x", "@y"));
    assert_eq!(gave_way(&scene.plan()), [""; 0]);
    scene.shares.advance(SECOND * 100, [("bob", 1)]);
    assert_eq!(gave_way(&scene.plan()), ["b1"]);
}

#[test]
fn plan_what_runs_at_a_drained_endpoint_gives_no_way() {
    let mut scene = Scene::new(4);
    scene.runs("a1", "ann", ("@x", "@y"), SECOND * 900);
    scene.runs("a2", "ann", ("@x", "@y"), SECOND * 30);
    scene.runs("b1", "bob", ("@p", "@q"), SECOND * 20);
    scene.runs("c1", "cid", ("@p", "@q"), SECOND * 20);
    scene.waits("d1", "dan", ("@p", "@q"));
    assert_eq!(gave_way(&scene.plan()), ["a2"]);
    // It would not begin again.
    let drained = EndpointState { drained: Some("new disks".to_owned()), ..EndpointState::default() };
    scene.endpoints.insert("y".to_owned(), drained);
    assert_eq!(gave_way(&scene.plan()), [""; 0]);
}

#[test]
fn plan_endpoint_limit_holds_and_a_holder_of_two_gives_one_back() {
    let mut scene = Scene::new(16);
    scene.limit("y", 2);
    scene.runs("a1", "ann", ("@x", "@y"), SECOND * 50);
    scene.runs("a2", "ann", ("@z", "@y"), SECOND * 40);
    scene.waits("a3", "ann", ("@x", "@y"));
    scene.waits("b1", "bob", ("@y", "@q"));
    scene.waits("b2", "bob", ("@q", "@x"));
    let plan = scene.plan();
    assert_eq!(started(&plan), ["b2"]);
    assert_eq!(place(&plan, "b1").cause, BlockedCause::EndpointLimit);
    assert_eq!(place(&plan, "b1").why, "endpoint y carries 2 transfers, and may carry 2");
    // Bob runs something now, so nobody makes room for him; alone with b1 he would get it.
    scene.tasks.pop();
    assert_eq!(gave_way(&scene.plan()), ["a2"]);
}

#[test]
fn plan_pair_limit_holds_for_the_pair_alone() {
    let mut scene = Scene::new(16);
    scene.rules.per_link = 2;
    for id in ["1", "2", "3"] {
        scene.waits(id, "ann", ("@x", "@y"));
    }
    scene.waits("4", "ann", ("@y", "@x"));
    let plan = scene.plan();
    assert_eq!(started(&plan), ["1", "2", "4"]);
    assert_eq!(place(&plan, "3").cause, BlockedCause::PairLimit);
}

#[test]
fn plan_sick_link_is_tried_by_one_task_at_a_time() {
    let mut scene = Scene::new(16);
    let link = Link::new("@x", "@y");
    scene.waits("1", "ann", ("@x", "@y"));
    scene.waits("2", "bob", ("@x", "@y"));
    scene.sick.insert(link.clone(), (SECOND * 40, 5));
    let plan = scene.plan();
    assert_eq!(started(&plan), [""; 0]);
    let first = place(&plan, "1");
    assert_eq!((first.cause, first.next_try, first.position), (BlockedCause::Retry, Some(SECOND * 40), None));
    assert_eq!(plan.look_again, Some(SECOND * 40));
    scene.sick.insert(link, (Duration::ZERO, 5));
    assert_eq!(started(&scene.plan()), ["1"]);
}

#[test]
fn plan_closed_hour_retry_and_maintenance_keep_tasks_with_their_causes() {
    let mut scene = Scene::new(16);
    scene
        .endpoints
        .insert("x".to_owned(), EndpointState { closed_for: Some(SECOND * 3600), ..EndpointState::default() });
    scene.waits("closed", "ann", ("@x", "@y"));
    scene.waits("retry", "ann", ("@y", "@z")).stands = Stands::Waiting { retry_in: SECOND * 7 };
    scene.waits("held", "ann", ("@y", "@z")).stands = Stands::Held;
    let plan = scene.plan();
    assert_eq!(plan.decisions, []);
    assert_eq!(place(&plan, "closed").cause, BlockedCause::Timetable);
    assert_eq!((place(&plan, "retry").cause, place(&plan, "retry").starts_in), (BlockedCause::Retry, Some(SECOND * 7)));
    assert!(plan.queue.iter().all(|place| place.task != "held"));
    assert_eq!(plan.look_again, Some(SECOND * 7));
    scene.rules.maintenance = Some("disks are exchanged".to_owned());
    let plan = scene.plan();
    assert!(
        plan.queue.iter().all(|place| place.cause == BlockedCause::Maintenance && place.why == "disks are exchanged")
    );
}

#[test]
fn plan_lets_nothing_begin_at_a_drained_endpoint_and_says_why() {
    let mut scene = Scene::new(16);
    let drained = EndpointState { drained: Some("new disks".to_owned()), ..EndpointState::default() };
    scene.endpoints.insert("x".to_owned(), drained);
    scene.add("runs", "ann", ("@x", "@y"), Stands::Running { ran: SECOND, remaining: None, leaves: false });
    scene.waits("to", "ann", ("@y", "@x"));
    scene.waits("beside", "ann", ("@y", "@z"));
    let plan = scene.plan();
    // What runs goes on, and nobody else has to wait.
    assert_eq!(started(&plan), ["beside"]);
    let waits = place(&plan, "to");
    assert_eq!((waits.cause, waits.starts_in), (BlockedCause::Drained, None));
    assert_eq!(waits.why, "endpoint x takes no new transfers: new disks");
    // No time ends that, whatever the other endpoint's timetable says.
    let closed = EndpointState { closed_for: Some(SECOND), ..EndpointState::default() };
    scene.endpoints.insert("a".to_owned(), closed);
    scene.waits("both", "ann", ("@a", "@x"));
    let plan = scene.plan();
    assert_eq!((place(&plan, "both").cause, place(&plan, "both").starts_in), (BlockedCause::Drained, None));
}

#[test]
fn plan_expects_starts_by_what_runs_and_by_what_pairs_did() {
    let mut scene = Scene::new(2);
    scene.history.add(&Link::new("@x", "@y"), SECOND * 100, crate::schedule::Size::default());
    scene.limit("w", 1);
    let remaining = |seconds| Stands::Running { ran: SECOND, remaining: Some(SECOND * seconds), leaves: false };
    scene.add("r1", "ann", ("@x", "@y"), remaining(30));
    scene.add("r2", "bob", ("@v", "@w"), remaining(50));
    scene.waits("1", "ann", ("@x", "@y"));
    scene.waits("2", "ann", ("@x", "@y"));
    scene.waits("3", "ann", ("@x", "@y"));
    let plan = scene.plan();
    let starts: Vec<_> = plan.queue.iter().map(|place| (place.position, place.starts_in)).collect();
    let expected = [30, 50, 130].map(|seconds| Some(SECOND * seconds));
    assert_eq!(starts, [(Some(1), expected[0]), (Some(2), expected[1]), (Some(3), expected[2])]);
    // A pair of which nothing is known: its own start can be told, what comes behind it cannot.
    scene.waits("4", "ann", ("@v", "@w")).priority = 9;
    let starts: Vec<_> = scene.plan().queue.iter().map(|place| (place.task.clone(), place.starts_in)).collect();
    assert_eq!(starts[0], ("4".to_owned(), Some(SECOND * 50)));
}

#[test]
fn plan_of_ten_thousand_tasks_is_quick_and_complete() {
    let mut scene = Scene::new(16);
    for n in 0..10_000 {
        scene.waits(&n.to_string(), &format!("user {}", n % 100), ("@x", &format!("@{}", n % 50)));
    }
    let plan = scene.plan();
    assert_eq!(plan.decisions.len() + plan.queue.len(), 10_000);
    let positions: Vec<u64> = plan.queue.iter().filter_map(|place| place.position).collect();
    assert_eq!(positions, (1..=9_984).collect::<Vec<_>>());
}

#[test]
fn plan_tells_when_the_next_task_can_begin_at_the_earliest_and_at_the_latest() {
    let mut scene = Scene::new(2);
    let link = |from, to| [Link::new(from, to)];
    let next = |scene: &Scene, links: &[Link]| {
        let NextStart { earliest, latest } = scene.plan().next;
        [earliest, latest].map(|free| free.begins(links).map(|wait| wait.as_secs()))
    };
    assert_eq!(next(&scene, &link("@x", "@y")), [Some(0), Some(0)]);
    let range = |least, most| Some(Range { least: SECOND * least, most: SECOND * most });
    scene.runs("r", "ann", ("@x", "@y"), SECOND * 10);
    scene.tasks[0].takes = range(30, 90);
    // One of two workers is free, but kept for owners who run nothing.
    assert_eq!(next(&scene, &link("@x", "@y")), [Some(0), Some(80)]);
    scene.runs("s", "bob", ("@v", "@w"), SECOND);
    scene.tasks[1].takes = range(61, 61);
    assert_eq!(next(&scene, &link("@x", "@y")), [Some(20), Some(80)]);
    scene.waits("w", "ann", ("@x", "@y")).takes = range(100, 200);
    assert_eq!(next(&scene, &link("@x", "@y")), [Some(20), Some(280)]);
    // An endpoint that carries one transfer at a time.
    scene.limit("w", 1);
    scene.runs("t", "eve", ("@v", "@w"), SECOND);
    scene.rules.workers = 9;
    assert_eq!(next(&scene, &link("@x", "@y")), [Some(0), Some(0)]);
    assert_eq!(next(&scene, &link("@v", "@w")), [Some(60), None], "both must end: it carries more than it may");
    scene.limit("w", 2);
    assert_eq!(next(&scene, &link("@v", "@w")), [Some(0), Some(60)]);
    // What takes longer than was expected ends nobody knows when.
    scene.tasks[1].stands = Stands::Running { ran: SECOND * 62, remaining: None, leaves: false };
    assert_eq!(next(&scene, &link("@v", "@w")), [Some(0), None]);
    // A pair that carries as many as it may.
    scene.rules.per_link = 1;
    assert_eq!(next(&scene, &link("@x", "@y")), [Some(20), Some(280)]);
    // Closed hours, sick links and maintenance.
    scene
        .endpoints
        .insert("z".to_owned(), EndpointState { closed_for: Some(SECOND * 3600), ..EndpointState::default() });
    assert_eq!(next(&scene, &link("@q", "@z")), [Some(3600), Some(3600)]);
    scene.sick.insert(Link::new("@q", "@r"), (SECOND * 40, 5));
    assert_eq!(next(&scene, &link("@q", "@r")), [Some(40), None]);
    scene.rules.maintenance = Some("disks are exchanged".to_owned());
    assert_eq!(next(&scene, &link("@x", "@y")), [None, None]);
}
