//! A table of cases, made by crossing two lists: every way in which a source may change between two runs of one
//! command, and every state in which the destination may be found by the second. Whatever had come before, a run
//! that ends with 0 has left what the source has now: bytes are compared with bytes, by nobody who knows of
//! digests, times or markers.
//!
//! Many cases are one run: a file for each, stopped together. A session brings the small files, and is stopped by a
//! signal. The next brings the large ones: those that are to be found in part have a first block that takes long at
//! the rate that is asked for and a last one that is short, with enough streams for all of them. When the last block
//! has landed and the first has hardly begun, it is stopped, too. Then everything is changed, and the same command
//! must end with what is right.

mod case;
mod destination;
mod source;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use carrack_faults::image::{Image, Kind, Scarce};

use self::case::{Case, Change, Content, Shape, cross};
use self::destination::Destination;
use self::source::Source;
use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::{InTime, Running};
use crate::support::{Sandbox, ran, tool, wait_until};

/// At this rate small files wait for nobody, and large ones in part get as much as those that are to be whole: these
/// have come when those have a quarter.
const RATE: &str = "--bwlimit=60MB";

/// Where the last session looks for what those before it have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// Where it was left.
    Kept,
    /// In a copy of the destination, as `rsync -a` makes it.
    Copied,
    /// With a marker of which a byte was altered.
    Damaged,
}

/// The file system that is copied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Ext4,
    /// With times of whole seconds.
    Ext3,
    Xfs,
    /// tmpfs, where others write through mappings, and no time moves.
    Memory,
}

/// One of them, mounted.
enum Far {
    Image(Image),
    Memory(Scarce),
}

impl Far {
    fn new(directory: &Path, on: On) -> Option<Self> {
        const NAME: &str = "far";
        const MIB: u64 = 2000;
        match on {
            On::Ext4 => Image::new(directory, NAME, Kind::Ext4, MIB).map(Self::Image),
            On::Ext3 => Image::of_whole_seconds(directory, NAME, MIB).map(Self::Image),
            On::Xfs => Image::new(directory, NAME, Kind::Xfs, MIB).map(Self::Image),
            On::Memory => Scarce::new(&directory.join(NAME), MIB << 20, 100_000).map(Self::Memory),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Image(image) => image.path(),
            Self::Memory(memory) => memory.path(),
        }
    }
}

/// One run of the program to all its cases.
#[derive(Clone, Copy, Debug)]
struct Run {
    number: usize,
    to_node: bool,
    on: On,
    left: Left,
    flags: &'static [&'static str],
    /// Of the last session, where they are others.
    last_flags: &'static [&'static str],
    changes: &'static [Change],
}

impl Run {
    const fn new(number: usize, (to_node, on): (bool, On), left: Left, flags: &'static [&'static str]) -> Self {
        Self { number, to_node, on, left, flags, last_flags: flags, changes: &Change::ALL }
    }

    /// Both ends, several file systems, the ways to verify, other digests, and what may be wrong with all of the
    /// destination. Each has all cases of small files; those of large ones go round.
    const ALL: [Self; 10] = [
        Self::new(0, (false, On::Ext4), Left::Kept, &[]),
        Self::new(1, (true, On::Ext4), Left::Kept, &["--verify=disk"]),
        Self::new(2, (false, On::Xfs), Left::Copied, &["--verify=disk"]),
        Self::new(3, (true, On::Ext3), Left::Kept, &["--digest=xxh128"]),
        Self::new(4, (false, On::Memory), Left::Kept, &["--verify=disk", "--durable=none"]),
        Self::new(5, (true, On::Ext4), Left::Copied, &["--encrypt=none"]),
        Self { last_flags: &["--digest=xxh128"], ..Self::new(6, (false, On::Ext4), Left::Damaged, &[]) },
        Self::new(7, (true, On::Xfs), Left::Damaged, &["--verify=disk", "--durable=each"]),
        Self { changes: &[Change::LinkSwitched], ..Self::new(8, (false, On::Ext4), Left::Kept, &[]) },
        Self {
            last_flags: &["--verify=none"],
            changes: &[Change::DirectoryExchanged, Change::ExchangedForHoles],
            ..Self::new(9, (false, On::Ext4), Left::Kept, &[])
        },
    ];

    /// Whether it has all cases of a few changes.
    fn is_small(&self) -> bool {
        self.changes.len() < Change::ALL.len()
    }

    fn cases(&self) -> Vec<Case> {
        let all = cross(self.changes);
        let each = |of: &dyn Fn(&Case) -> bool, nth: usize| {
            let of: Vec<Case> = all.iter().filter(|case| of(case)).copied().collect();
            let nth = if self.is_small() { 1 } else { nth };
            of.into_iter().skip(self.number % nth).step_by(nth).collect::<Vec<_>>()
        };
        let small = |case: &Case| case.shape == Shape::Small;
        let whole = each(&|case| !small(case) && !case.state.is_part(), 3);
        [each(&small, 1), whole, each(&|case| case.state.is_part(), 7)].concat()
    }

    fn name(&self) -> String {
        let end = if self.to_node { "to a node" } else { "here" };
        let flags = [self.flags, if self.flags == self.last_flags { &[] } else { self.last_flags }].concat();
        format!("{end} on {:?} {flags:?}, destination {:?}", self.on, self.left)
    }
}

/// A run, built and not yet begun.
struct Scene {
    run: Run,
    cases: Vec<Case>,
    node: Option<Node>,
    source: Source,
    _disk: Image,
    far: Far,
    sandbox: Sandbox,
}

impl Scene {
    const THERE: &str = "there";

    fn prepare(run: Run, content: &Content) -> Option<Self> {
        let sandbox = Sandbox::in_memory();
        let disk = Image::new(&sandbox.path(""), "disk", Kind::Ext4, 2000)?;
        let far = Far::new(&sandbox.path(""), run.on)?;
        let cases = run.cases();
        let source = Source::prepare(disk.path(), &sandbox.path(""), &cases, content)?;
        let node = run.to_node.then(|| Node::start(&sandbox, "far", &[]));
        Some(Self { run, cases, node, source, _disk: disk, far, sandbox })
    }

    fn destination(&self, name: &str) -> Destination {
        Destination { at: self.far.path().join(name), in_memory: self.run.on == On::Memory }
    }

    fn command(&self, to: &str, flags: &[&str]) -> Command {
        let mut command = self.sandbox.carrack();
        command.args(["--json", "--block=4M", "--retries=0"]).args(flags);
        command.args(self.node.as_ref().map(Node::token)).arg(format!("disk/{}/", Source::LINK));
        command.arg(self.node.as_ref().map_or(format!("far/{to}"), |node| node.at(to)));
        command
    }

    /// Copies until these cases are where they are wanted, and leaves them there.
    fn session(&mut self, small: bool, streams: &str) {
        self.source.show(small);
        let there = self.destination(Self::THERE);
        let cases: Vec<&Case> = self.cases.iter().filter(|case| case.unit().small == small).collect();
        let mut running = Running::start(self.command(Self::THERE, self.run.flags).args([streams, RATE]));
        let mut ended = false;
        wait_until("whole files have come, and ends of others", || {
            ended = !running.is_running();
            ended || cases.iter().all(|case| there.has_come(case))
        });
        signal(running.id(), "INT");
        let done = running.end();
        let met = !ended && done.code == 20;
        assert!(met, "{}: a session was not met in its midst: {}{}", self.run.name(), done.stdout, done.stderr);
        wait_until("the destination has noticed", || there.is_left());
    }

    /// What happens between the two sessions; where the second goes to.
    fn between(&mut self, content: &Content) -> &'static str {
        const COPY: &str = "copy";
        let mut to = Self::THERE;
        if self.run.left == Left::Copied {
            let far = self.far.path();
            tool(Command::new("rsync").arg("-a").arg(far.join(to).join("")).arg(far.join(COPY)));
            to = COPY;
        }
        self.source.change(content);
        let (destination, elsewhere) = (self.destination(to), self.far.path().join("elsewhere"));
        fs::create_dir(&elsewhere).unwrap();
        for case in self.cases.iter().filter(|case| destination.is_as_wanted(case)) {
            destination.alter(case, content, &elsewhere);
        }
        if self.run.left == Left::Damaged {
            destination.damage_marker();
        }
        to
    }

    /// All sessions, and which cases the last one got wrong.
    fn judge(mut self, content: &Content) -> (usize, Vec<String>) {
        let name = self.run.name();
        wait_until("what was written is old", || self.source.is_old());
        self.session(true, "--streams=2");
        // As many as there are blocks.
        self.session(false, "--streams=128");
        let there = self.destination(Self::THERE);
        let met = self.cases.iter().filter(|case| there.is_as_wanted(case)).count();
        println!("{name}: {} cases, {met} of them met as wanted", self.cases.len());
        assert!(met * 10 >= self.cases.len() * 9, "{name}: {met} of {} cases were met as wanted", self.cases.len());
        let to = self.between(content);
        let done = ran(self.command(to, self.run.last_flags).output_in_time().unwrap());
        let resumed = done.summary()["bytes_resumed"].as_u64().unwrap();
        let vacuous = resumed == 0 && self.run.left == Left::Kept && !self.run.is_small();
        assert!(!vacuous, "{name}: nothing was resumed");
        let destination = self.destination(to);
        let read = |path: PathBuf| fs::read(path).unwrap_or_default();
        let mut wrong = Vec::new();
        if done.code != 0 {
            wrong.push(format!("{name}: exit code {}: {}", done.code, done.stderr.trim_end()));
        }
        for case in &self.cases {
            let path = case.path();
            // What is told to have failed may be anything.
            let told = done.code != 0 && done.stderr.contains(path.to_str().unwrap());
            if !told && read(self.source.path(case)) != read(destination.path(case)) {
                wrong.push(format!("{name}: {}", path.display()));
            }
        }
        (self.cases.len(), wrong)
    }
}

#[test]
fn changes_of_a_source_and_states_of_a_destination_never_end_in_a_wrong_success() {
    const LEAST: usize = 1_449;
    let content = Content::new();
    let (mut count, mut wrong) = (0, Vec::new());
    // Each is built before the one before it runs: what was written just now is not believed anyway.
    let mut scenes = Run::ALL.iter().map(|&run| Scene::prepare(run, &content));
    let Some(mut next) = scenes.next().unwrap() else { return };
    loop {
        let following = scenes.next().flatten();
        let (cases, failed) = next.judge(&content);
        count += cases;
        wrong.extend(failed);
        match following {
            Some(scene) => next = scene,
            None => break,
        }
    }
    println!("{count} cases, {} of them wrong", wrong.len());
    assert!(count >= LEAST, "{count} cases");
    assert!(
        wrong.is_empty(),
        "other content than the source's, and nobody says so, {} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
