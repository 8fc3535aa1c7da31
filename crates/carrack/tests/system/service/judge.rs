//! A judge of tasks: after any sequence of kills, changed endpoints, tokens and deadlines, pauses, retries, and of
//! files that somebody deletes or alters between attempts, a task that says SUCCEEDED has all of its items at the place
//! that its endpoint names now, with the digests that it tells.
//!
//! `CARRACK_JUDGE=300` sets how many sequences; a failure prints its seed and the shortest sequence that still fails,
//! and `CARRACK_JUDGE_SEED=N` runs that one alone.

use carrack_core::chance::Chance;
use carrack_sys::sync::lock;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use carrack_service::journal::{Reader, Record};
use serde_json::Value;

use crate::support::node::Node;
use crate::support::service::Service;
use crate::support::{Ran, Sandbox, b3sum, process, tree};

/// Sequences of an ordinary run.
const SEQUENCES: u64 = 20;
/// Things that happen in one of them.
const ACTIONS: u64 = 7;
/// Sequences at a time.
const AT_ONCE: u64 = 4;
/// How long a task may take to come to its end once nothing disturbs it.
const PATIENCE: Duration = Duration::from_secs(120);

/// What may happen to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Pause,
    Resume,
    KillWorker,
    KillService,
    MoveSource,
    MoveDestination,
    WrongToken,
    RightToken,
    NearDeadline,
    FarDeadline,
    Cancel,
    Retry,
    Delete,
    Alter,
    /// Until a byte more has moved, or the task has come to rest.
    Watch,
}

const ALL: [Action; 15] = [
    Action::Pause,
    Action::Resume,
    Action::KillWorker,
    Action::KillService,
    Action::MoveSource,
    Action::MoveDestination,
    Action::WrongToken,
    Action::RightToken,
    Action::NearDeadline,
    Action::FarDeadline,
    Action::Cancel,
    Action::Retry,
    Action::Delete,
    Action::Alter,
    Action::Watch,
];

fn sequence(seed: u64) -> Vec<Action> {
    let mut chance = Chance::new(seed);
    let mut actions = Vec::new();
    for _ in 0..ACTIONS {
        actions.push(ALL[chance.below(ALL.len() as u64) as usize]);
        // What happens to a task that has done nothing shows little.
        if chance.below(2) == 0 {
            actions.push(Action::Watch);
        }
    }
    actions
}

/// A service, a node, and the state that tasks share.
struct World {
    sandbox: Sandbox,
    node: Node,
    service: std::sync::Mutex<Service>,
    wrong_token: PathBuf,
    judged: AtomicU64,
}

/// One task, with endpoints of its own.
struct Case<'a> {
    world: &'a World,
    name: String,
    chance: Chance,
    task: String,
}

impl World {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let node = Node::start(&sandbox, "far", &["--dial-to=127.0.0.0/8"]);
        let service = std::sync::Mutex::new(Service::start(&sandbox, &[]));
        let wrong_token = sandbox.write("wrong", format!("{}-no-more", Node::TOKEN));
        fs::set_permissions(&wrong_token, fs::Permissions::from_mode(0o600)).unwrap();
        Self { sandbox, node, service, wrong_token, judged: AtomicU64::new(0) }
    }

    /// Runs a verb, also while the service is replaced.
    fn run(&self, words: &[&str]) -> Ran {
        let (until, mut again) = (Instant::now() + PATIENCE, false);
        loop {
            let mut ran = self.sandbox.run(words);
            // A service that was killed before it answered has added the endpoint all the same.
            if again && words.starts_with(&["endpoint", "add"]) && ran.stderr.contains("the name is taken") {
                ran.code = 0;
            }
            let is_away = ran.code == 10 || ran.stderr.contains("Connection re") || ran.stderr.contains("closed");
            if !is_away || Instant::now() > until {
                return ran;
            }
            again = true;
        }
    }

    fn ok(&self, words: &[&str]) -> String {
        let ran = self.run(words);
        assert_eq!(ran.code, 0, "{words:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    fn document(&self, words: &[&str]) -> Value {
        let text = self.ok(words);
        let line: Value = serde_json::from_str(text.lines().next().unwrap_or_default()).unwrap();
        line
    }

    /// The sequence, to its end; the task is judged whenever it says SUCCEEDED.
    fn play(&self, name: &str, seed: u64, actions: &[Action]) {
        let mut case = Case::new(self, name, seed);
        for action in actions {
            case.act(*action);
            if case.state() == "SUCCEEDED" {
                return case.judge();
            }
        }
        case.finish();
        case.judge();
    }

    /// Whether a sequence goes well; what was wrong with it is printed as it happens.
    fn holds(&self, name: &str, seed: u64, actions: &[Action]) -> bool {
        catch_unwind(AssertUnwindSafe(|| self.play(name, seed, actions))).is_ok()
    }

    /// The shortest part of a sequence that still fails.
    fn shrunk(&self, seed: u64) -> Vec<Action> {
        let (mut actions, mut place, mut tries) = (sequence(seed), 0, 0);
        while place < actions.len() {
            let mut fewer = actions.clone();
            fewer.remove(place);
            tries += 1;
            match self.holds(&format!("s{seed}-{tries}"), seed, &fewer) {
                true => place += 1,
                false => actions = fewer,
            }
        }
        actions
    }
}

impl<'a> Case<'a> {
    fn new(world: &'a World, name: &str, seed: u64) -> Self {
        let sandbox = &world.sandbox;
        // Of both sources some files are the same, some have another content, and each has some of its own.
        for (version, place) in [(1, "from"), (2, "from-moved")] {
            let root = sandbox.path(format!("{name}/{place}"));
            for file in 0..5u64 {
                let content = tree::bytes(150_000 + file as usize, seed ^ (file * version.min(1 + file % 2)));
                sandbox.write(root.join(format!("a/d{}/f{file}", file % 2)), content);
            }
            sandbox.write(root.join(format!("a/own{version}")), tree::bytes(1000, version));
            sandbox.write(root.join("b/large"), tree::bytes(900_000, seed + version));
            sandbox.write(root.join("b/small"), "the same");
        }
        for place in ["to", "to-moved"] {
            fs::create_dir_all(sandbox.path(format!("far/{name}/{place}"))).unwrap();
        }
        let mut case = Self { world, name: name.to_owned(), chance: Chance::new(seed ^ 0xffff), task: String::new() };
        let (from, to) = (case.source("from"), case.destination("to"));
        world.ok(&["endpoint", "add", &case.end("f"), &from]);
        let token = world.node.token_file.display().to_string();
        world.ok(&["endpoint", "add", &case.end("t"), &to, "--token-file", &token]);
        let pair = |path: &str| format!("@{}:/{path}", case.end("f"));
        let (a, b, late) = (pair("a"), pair("b/"), pair("late"));
        let to = format!("@{}:/", case.end("t"));
        let submitted = world.ok(&["task", "submit", &a, &b, &late, &to, "--bwlimit=1MB"]);
        case.task = submitted.trim().to_owned();
        case
    }

    fn end(&self, letter: &str) -> String {
        format!("{letter}-{}", self.name)
    }

    fn source(&self, place: &str) -> String {
        self.world.sandbox.path(format!("{}/{place}", self.name)).display().to_string()
    }

    fn destination(&self, place: &str) -> String {
        self.world.node.at(&format!("{}/{place}", self.name))
    }

    fn show(&self) -> Value {
        self.world.document(&["task", "show", &self.task, "--json"])
    }

    fn state(&self) -> String {
        self.show()["state"].as_str().unwrap().to_owned()
    }

    /// The directory that an endpoint names now.
    fn root(&self, letter: &str) -> PathBuf {
        let location = self.world.document(&["endpoint", "show", &self.end(letter), "--json"])["location"].clone();
        match location["kind"].as_str() {
            Some("local") => PathBuf::from(location["root"].as_str().unwrap()),
            _ => self.world.sandbox.path("far").join(location["path"].as_str().unwrap().trim_start_matches('/')),
        }
    }

    /// What is refused, as a change of an endpoint under its task is, is refused.
    fn act(&mut self, action: Action) {
        let (task, world) = (self.task.clone(), self.world);
        let (from, to) = (self.end("f"), self.end("t"));
        let token = world.node.token_file.display().to_string();
        let wrong = world.wrong_token.display().to_string();
        match action {
            Action::Pause => drop(world.run(&["task", "pause", &task])),
            Action::Resume => drop(world.run(&["task", "resume", &task])),
            Action::KillWorker => self.kill_worker(),
            Action::KillService => {
                let mut service = lock(&world.service);
                service.kill();
                // The one before is not dropped before the next one is there: that would end the workers, too.
                let next = Service::start(&world.sandbox, &[]);
                std::mem::forget(std::mem::replace(&mut *service, next));
            }
            Action::MoveSource => {
                let place = if self.root("f").ends_with("from") { "from-moved" } else { "from" };
                drop(world.run(&["endpoint", "edit", &from, "--location", &self.source(place)]));
            }
            Action::MoveDestination => {
                let place = if self.root("t").ends_with("to") { "to-moved" } else { "to" };
                let place = self.destination(place);
                drop(world.run(&["endpoint", "edit", &to, "--location", &place, "--token-file", &token]));
            }
            Action::WrongToken => drop(world.ok(&["endpoint", "edit", &to, "--token-file", &wrong])),
            Action::RightToken => drop(world.ok(&["endpoint", "edit", &to, "--token-file", &token])),
            Action::NearDeadline => drop(world.run(&["task", "update", &task, "--deadline", "1s"])),
            Action::FarDeadline => drop(world.run(&["task", "update", &task, "--deadline", "1h"])),
            Action::Cancel => drop(world.run(&["task", "cancel", &task])),
            Action::Retry => drop(world.run(&["task", "retry", &task, "--no-deadline"])),
            Action::Delete | Action::Alter => self.lose(action),
            Action::Watch => self.watch(),
        }
    }

    fn watch(&self) {
        let (until, before) = (Instant::now() + Duration::from_secs(5), self.show()["progress"]["bytes_moved"].clone());
        loop {
            let now = self.show();
            let rests =
                ["PAUSED", "SUCCEEDED", "PARTIAL", "FAILED", "CANCELLED"].contains(&now["state"].as_str().unwrap());
            if rests || now["progress"]["bytes_moved"] != before || Instant::now() > until {
                return;
            }
        }
    }

    fn kill_worker(&self) {
        let state = self.world.sandbox.path("home/.local/state/carrack/service/tasks").join(&self.task);
        let (mut reader, mut worker) = (Reader::open(&state), None);
        while let Ok(Some(record)) = reader.next_record() {
            match record {
                Record::Began { process, .. } => worker = Some(process),
                Record::Ended(_) => worker = None,
                _ => {}
            }
        }
        let all = process::workers(&self.world.sandbox.path("home"));
        worker.filter(|worker| all.contains(worker)).into_iter().for_each(|worker| process::signal(worker, "KILL"));
    }

    /// Somebody deletes or alters a file while no attempt is under way. A worker may be about to begin: what it has
    /// compared already is not looked at again, so only a task that rests is met.
    fn lose(&mut self, action: Action) {
        let rests = ["PAUSED", "PARTIAL", "FAILED", "CANCELLED"].contains(&self.state().as_str());
        let files: Vec<PathBuf> =
            tree::walk(&self.root("t")).into_iter().filter(|path| path.is_file() && !is_hidden(path)).collect();
        if !rests || files.is_empty() {
            return;
        }
        let file = &files[self.chance.below(files.len() as u64) as usize];
        match action {
            Action::Delete => fs::remove_file(file).unwrap(),
            _ => fs::write(file, vec![b'x'; fs::metadata(file).unwrap().len() as usize]).unwrap(),
        }
    }

    /// Nothing is in the way any more: the task is tried until it has done all.
    fn finish(&mut self) {
        for place in ["from", "from-moved"] {
            self.world.sandbox.write(format!("{}/{place}/late", self.name), "late");
        }
        self.act(Action::RightToken);
        let until = Instant::now() + PATIENCE;
        loop {
            let task = self.show();
            let text = task.to_string();
            assert!(Instant::now() < until, "the task does not come to its end: {text}");
            match task["state"].as_str().unwrap() {
                "SUCCEEDED" => return,
                "PARTIAL" | "FAILED" | "CANCELLED" => self.act(Action::Retry),
                "PAUSED" => self.act(Action::Resume),
                // It waits, or a deadline that passes, for reasons of before.
                _ if task["blocked"].is_object() => self.act(Action::Resume),
                _ => drop(self.world.run(&["task", "wait", &self.task, "--timeout", "2s"])),
            }
        }
    }

    /// Compares each item with what is at the place that the endpoint names now, and the place with the source.
    fn judge(&self) {
        let (from, to) = (self.root("f"), self.root("t"));
        let listed = self.world.ok(&["task", "items", &self.task, "--json"]);
        let mut told = std::collections::BTreeMap::new();
        for line in listed.lines() {
            let item = serde_json::from_str::<Value>(line).unwrap();
            let path = item["path"].as_str().unwrap().to_owned();
            assert_eq!(item["state"], "done", "{item}");
            assert!(told.insert(path.clone(), item.clone()).is_none(), "{path} is told twice: {listed}");
            assert_eq!(b3sum(&to.join(&path)), item["digest"].as_str().unwrap(), "{item} in {}", to.display());
        }
        let mut expected = std::collections::BTreeSet::new();
        for file in tree::walk(&from).into_iter().filter(|path| path.is_file()) {
            let path = file.strip_prefix(&from).unwrap();
            let name = path.strip_prefix("b").unwrap_or(path);
            assert_eq!(
                fs::read(&file).unwrap(),
                fs::read(to.join(name)).unwrap(),
                "{} at {}",
                name.display(),
                to.display()
            );
            expected.insert(name.to_str().unwrap().to_owned());
        }
        assert_eq!(told.keys().cloned().collect::<std::collections::BTreeSet<_>>(), expected);
        self.world.judged.fetch_add(1, Ordering::Relaxed);
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn judge_finds_each_task_that_says_succeeded_where_its_endpoints_lead_now() {
    let world = World::new();
    let seeds: Vec<u64> = match number("CARRACK_JUDGE_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("CARRACK_JUDGE").unwrap_or(SEQUENCES)).collect(),
    };
    let next = AtomicU64::new(0);
    let failed = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    if !world.holds(&format!("s{seed}"), *seed, &sequence(*seed)) {
                        failed.lock().unwrap().push(*seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    if let Some(seed) = failed.first() {
        let shortest = world.shrunk(*seed);
        let replay = format!("CARRACK_JUDGE_SEED={seed} cargo test -p carrack --test system service::judge");
        panic!("seeds {failed:?} fail. Replay: {replay}. The shortest sequence: {shortest:?}");
    }
    println!("{} sequences, each compared at its end", world.judged.load(Ordering::Relaxed));
    assert_eq!(world.judged.load(Ordering::Relaxed), seeds.len() as u64);
}
