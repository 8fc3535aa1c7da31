//! Syncs that delete, keep what they replace, or delete at their source, killed at every system call that matters: at
//! every moment each file is somewhere, whole, and the same command run again completes.

use super::*;

/// What is done, and what the destination has of its own before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Delete,
    DeleteBefore,
    Keep,
    RemoveSources,
}

impl Order {
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Delete => &["sync", "--delete"],
            Self::DeleteBefore => &["sync", "--delete-before"],
            Self::Keep => &["sync", "--delete", "--backup-dir", ".old"],
            Self::RemoveSources => &["copy", "--remove-source-files"],
        }
    }
}

/// What only the destination has, or has in an older state.
const OLD: [(&str, &[u8]); 4] = [("large", b"old"), ("d0/small0", b"old"), ("only", b"only"), ("gone/only", b"only")];

struct SyncScene {
    sandbox: Sandbox,
    node: Option<Node>,
    order: Order,
    /// The tree as it is made for each run.
    kept: PathBuf,
}

impl SyncScene {
    fn new(order: Order, at_a_node: bool) -> Self {
        let sandbox = Sandbox::in_memory();
        let tree = small_tree(&sandbox);
        let kept = sandbox.path("kept");
        fs::rename(tree, &kept).unwrap();
        fs::create_dir(sandbox.path("root")).unwrap();
        let node = at_a_node.then(|| Node::start(&sandbox, ".", &[]));
        Self { sandbox, node, order, kept }
    }

    fn there(&self) -> PathBuf {
        self.sandbox.path("root/to")
    }

    fn command(&self) -> Command {
        let to = self.node.as_ref().map_or("root/to".to_owned(), |node| node.at("root/to"));
        let mut command = self.sandbox.carrack();
        command.args(self.order.words()).args(["--block=1M", "--streams=2"]);
        command.args(self.node.as_ref().map(Node::token)).args(["tree/", &to]);
        command
    }

    fn prepare(&self) -> Watcher {
        for name in ["root", "tree"] {
            let _ = fs::remove_dir_all(self.sandbox.path(name));
        }
        crate::support::tool(Command::new("cp").arg("-a").arg(&self.kept).arg(self.sandbox.path("tree")));
        for (name, content) in OLD {
            self.sandbox.write(Path::new("root/to").join(name), content);
        }
        let mut names = allowed(&self.kept, &OLD);
        for (name, content) in OLD {
            names.entry(Path::new(".old").join(name)).or_default().insert(watch::content(content));
        }
        Watcher::start(&self.there(), names)
    }

    fn points(&self) -> Vec<(String, u64)> {
        self.prepare().end();
        let log = self.sandbox.path("strace.log");
        let traced = Inject::new().watch(&CALLS).log(&log);
        let done = ran(traced.around(&self.command()).output_in_time().unwrap());
        assert_eq!(done.code, 0, "{:?}: {}", self.order, done.stderr);
        self.check_end("undisturbed");
        let found = counts(&log).into_iter().filter(|(call, _)| CALLS.contains(&call.as_str()));
        found.flat_map(|(call, count)| (1..=count).map(move |nth| (call.clone(), nth))).collect()
    }

    fn strike(&self, call: &str, nth: u64) {
        let what = format!("{:?}, node: {}, killed at {call} {nth}", self.order, self.node.is_some());
        let watcher = self.prepare();
        ran(Inject::new().kill(call, nth).around(&self.command()).output_in_time().unwrap());
        self.check_whole(&what);
        let again = ran(self.command().output_in_time().unwrap());
        assert_eq!(again.code, 0, "{what}: {}", again.stderr);
        let seen = watcher.end();
        assert_eq!(seen.violations, Vec::<String>::new(), "{what}");
        wait_until(&format!("nothing is left over: {what}"), || {
            self.node.is_none() || !tree::walk(&self.there()).iter().any(|path| watch::is_hidden(path))
        });
        self.check_end(&what);
    }

    /// Whatever happened, nothing that the user has is nowhere.
    fn check_whole(&self, what: &str) {
        let files = |top: &Path| tree::walk(top).into_iter().filter(|path| path.is_file() && !path.is_symlink());
        let holds = |name: &Path, content: &[u8]| fs::read(name).is_ok_and(|there| there == content);
        for file in files(&self.kept) {
            let name = file.strip_prefix(&self.kept).unwrap();
            let content = fs::read(&file).unwrap();
            let is_here = holds(&self.sandbox.path("tree").join(name), &content);
            let is_there = self.order == Order::RemoveSources && holds(&self.there().join(name), &content);
            assert!(is_here || is_there, "{what}: {name:?} is nowhere");
        }
        if self.order == Order::Keep {
            for (name, content) in OLD {
                let is_kept = [self.there().join(name), self.there().join(".old").join(name)];
                assert!(is_kept.iter().any(|name| holds(name, content)), "{what}: the old {name} is nowhere");
            }
        }
    }

    fn check_end(&self, what: &str) {
        let (tree, there) = (self.sandbox.path("tree"), self.there());
        for (name, content) in OLD {
            let old = there.join(".old").join(name);
            assert_eq!(fs::read(&old).is_ok_and(|kept| kept == content), self.order == Order::Keep, "{what}: {old:?}");
        }
        let _ = fs::remove_dir_all(there.join(".old"));
        if self.order == Order::RemoveSources {
            let left = tree::walk(&tree).into_iter().filter(|path| !path.is_dir() || path.is_symlink());
            assert_eq!(left.collect::<Vec<_>>(), Vec::<PathBuf>::new(), "{what}");
            fs::remove_dir_all(there.join("gone")).unwrap();
            fs::remove_file(there.join("only")).unwrap();
        }
        assert_complete(&self.kept, &there);
    }
}

fn sweep_of_syncs(order: Order, few: u64) {
    for at_a_node in [false, true] {
        let scene = SyncScene::new(order, at_a_node);
        let all = scene.points();
        let chosen = spread(all.len() as u64, points(few));
        println!("{order:?}, node: {at_a_node}: {} of {} points", chosen.len(), all.len());
        for place in chosen {
            let (call, nth) = &all[place as usize - 1];
            scene.strike(call, *nth);
        }
    }
}

#[test]
fn kill_sweep_of_a_sync_that_deletes() {
    sweep_of_syncs(Order::Delete, 5);
}

#[test]
fn kill_sweep_of_a_sync_that_deletes_first() {
    sweep_of_syncs(Order::DeleteBefore, 4);
}

#[test]
fn kill_sweep_of_a_sync_that_keeps_what_it_replaces() {
    sweep_of_syncs(Order::Keep, 4);
}

#[test]
fn kill_sweep_of_a_copy_that_deletes_its_sources() {
    sweep_of_syncs(Order::RemoveSources, 6);
}
