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
    /// Where it is made, and where it goes.
    tree: PathBuf,
    there: PathBuf,
}

impl SyncScene {
    fn new(order: Order, at_a_node: bool) -> Self {
        let sandbox = Sandbox::in_memory();
        let tree = small_tree(&sandbox);
        let kept = sandbox.path("kept");
        fs::rename(tree, &kept).unwrap();
        fs::create_dir(sandbox.path("root")).unwrap();
        let node = at_a_node.then(|| Node::start(&sandbox, ".", &[]));
        let (tree, there) = (sandbox.path("tree"), sandbox.path("root/to"));
        Self { sandbox, node, order, kept, tree, there }
    }

    fn command(&self) -> Command {
        let to = self.node.as_ref().map_or(self.there.display().to_string(), |node| node.at("root/to"));
        let mut command = self.sandbox.carrack();
        command.args(self.order.words()).args(["--block=1M", "--streams=2"]);
        command.args(self.node.as_ref().map(Node::token)).args([format!("{}/", self.tree.display()), to]);
        command
    }

    fn prepare(&self) -> Watcher {
        for top in [&self.there, &self.tree] {
            let _ = fs::remove_dir_all(top);
        }
        crate::support::tool(Command::new("cp").arg("-a").arg(&self.kept).arg(&self.tree));
        for (name, content) in OLD {
            self.sandbox.write(self.there.join(name), content);
        }
        Watcher::start(&self.there, self.names())
    }

    /// What each name at the destination may hold.
    fn names(&self) -> Allowed {
        let mut names = allowed(&self.kept, &OLD);
        for (name, content) in OLD {
            names.entry(Path::new(".old").join(name)).or_default().insert(watch::content(content));
        }
        names
    }

    fn points(&self) -> Vec<(String, u64)> {
        self.prepare().end();
        let all = places(&self.sandbox, &self.command(), &CALLS);
        self.check_end("undisturbed");
        all
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
            self.node.is_none() || !tree::walk(&self.there).iter().any(|path| watch::is_hidden(path))
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
            let is_here = holds(&self.tree.join(name), &content);
            let is_there = self.order == Order::RemoveSources && holds(&self.there.join(name), &content);
            assert!(is_here || is_there, "{what}: {name:?} is nowhere");
        }
        if self.order == Order::Keep {
            for (name, content) in OLD {
                let is_kept = [self.there.join(name), self.there.join(".old").join(name)];
                assert!(is_kept.iter().any(|name| holds(name, content)), "{what}: the old {name} is nowhere");
            }
        }
    }

    fn check_end(&self, what: &str) {
        let (tree, there) = (&self.tree, &self.there);
        for (name, content) in OLD {
            let old = there.join(".old").join(name);
            assert_eq!(fs::read(&old).is_ok_and(|kept| kept == content), self.order == Order::Keep, "{what}: {old:?}");
        }
        let _ = fs::remove_dir_all(there.join(".old"));
        if self.order == Order::RemoveSources {
            let left = tree::walk(tree).into_iter().filter(|path| !path.is_dir() || path.is_symlink());
            assert_eq!(left.collect::<Vec<_>>(), Vec::<PathBuf>::new(), "{what}");
            fs::remove_dir_all(there.join("gone")).unwrap();
            fs::remove_file(there.join("only")).unwrap();
        }
        assert_complete(&self.kept, there);
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

/// Both trees are on one file system, whose power is cut at moments spread over the run.
fn power_cuts_of_syncs(order: Order, few: u64) {
    const MANY: usize = 120;
    // Declared before the image: it is unmounted before its directory goes.
    let mut scene = SyncScene::new(order, false);
    tree::many(&scene.kept.join("many"), MANY, 5000);
    let directory = scene.sandbox.path("disks");
    fs::create_dir(&directory).unwrap();
    let Some(image) = Image::new(&directory, "disk", Kind::Ext4, 64) else { return };
    (scene.tree, scene.there) = (image.path().join("tree"), image.path().join("to"));
    let mut chance = Chance::new(few);
    for cut in 0..points(few).min(100) {
        let what = format!("{order:?}, cut {cut}");
        scene.prepare().end();
        crate::support::tool(Command::new("sync").arg("-f").arg(image.path()));
        // Each time after another number of names has come, or gone.
        let all = tree::walk(&scene.tree).len();
        let changed = || tree::walk(&scene.there).len() + all.saturating_sub(tree::walk(&scene.tree).len());
        let wanted = chance.below(if order == Order::RemoveSources { 2 } else { 1 } * all as u64) as usize;
        let mut running = Running::start(&mut scene.command());
        wait_until("the sync has come so far", || changed() > wanted || !running.is_running());
        signal(running.id(), "STOP");
        wait_until("it has stopped", || is_stopped(running.id()));
        let snapshot = image.snapshot(&directory.join("cut.img"));
        signal(running.id(), "CONT");
        let done = running.end();
        assert_eq!(done.code, 0, "{what}: {}", done.stderr);
        let after = snapshot.open(image.path());
        let names = scene.names();
        for path in watch::files(&scene.there) {
            let name = path.strip_prefix(&scene.there).unwrap();
            let content = watch::content(&fs::read(&path).unwrap());
            let is_right = names.get(name).is_some_and(|contents| contents.contains(&content));
            assert!(is_right, "{what}: {name:?} holds {} bytes that nobody sent", content.0);
        }
        scene.check_whole(&what);
        let again = ran(scene.command().output_in_time().unwrap());
        assert_eq!(again.code, 0, "{what}: {}", again.stderr);
        scene.check_end(&what);
        drop(after);
    }
}

#[test]
fn power_cuts_of_a_sync_that_deletes() {
    power_cuts_of_syncs(Order::Delete, 2);
}

#[test]
fn power_cuts_of_a_sync_that_keeps_what_it_replaces() {
    power_cuts_of_syncs(Order::Keep, 2);
}

#[test]
fn power_cuts_of_a_copy_that_deletes_its_sources() {
    power_cuts_of_syncs(Order::RemoveSources, 3);
}
