//! Kernels and sandboxes that refuse what came after Linux 3.10: each newer call, each newer flag, alone and all
//! together. What is copied is the same, and so is what is promised.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use carrack_faults::race::Racer;
use carrack_faults::refused::{CALLS, FLAGS, Newer, within};
use carrack_faults::strace::Inject;

use crate::support::node::Node;
use crate::support::process::{descendants, signal};
use crate::support::running::InTime;
use crate::support::sshd::{Setup, Sshd};
use crate::support::{Ran, Sandbox, program, ran, same_tree, tree};

const EPERM: i32 = 1;
const EINVAL: i32 = 22;
const ENOSYS: i32 = 38;
const EOPNOTSUPP: i32 = 95;

/// Calls that ssh, mv and the tests themselves do without where they are unknown, but not where they are forbidden:
/// those of an old sandbox are old. For these calls Carrack alone is forbidden them, by strace.
const OF_TOOLS: [&str; 4] = ["renameat2", "statx", "close_range", "faccessat2"];

/// What is refused.
struct Refusal {
    by_kernel: Vec<Newer>,
    error: i32,
    /// With EPERM, and to Carrack alone.
    traced: Vec<&'static str>,
}

impl Refusal {
    /// What older kernels answer to calls that they do not know.
    fn unknown(calls: &[Newer]) -> Self {
        Self { by_kernel: calls.to_vec(), error: ENOSYS, traced: Vec::new() }
    }

    /// What older container runtimes answer to them.
    fn forbidden(calls: &[Newer]) -> Self {
        let (of_tools, others): (Vec<Newer>, Vec<Newer>) =
            calls.iter().partition(|newer| OF_TOOLS.contains(&newer.name));
        Self { by_kernel: others, error: EPERM, traced: of_tools.iter().map(|newer| newer.name).collect() }
    }

    /// What older kernels, and file systems, answer to flags that they do not know.
    fn flags(flags: &[Newer], error: i32) -> Self {
        Self { by_kernel: flags.to_vec(), error, traced: Vec::new() }
    }

    /// All that is newer, but for `getrandom`.
    fn all() -> [Self; 4] {
        [
            Self::unknown(&but_random()),
            Self::forbidden(&but_random()),
            Self::flags(FLAGS, EINVAL),
            Self::flags(FLAGS, EOPNOTSUPP),
        ]
    }

    /// The same where no ssh is used.
    fn all_without_ssh() -> impl Iterator<Item = Self> {
        Self::all().into_iter().chain([Self::unknown(CALLS)])
    }

    fn within<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        within(&self.by_kernel, self.error, run)
    }

    fn inject(&self) -> Option<Inject> {
        let forbid = |inject: Inject, call: &&'static str| inject.error(call, "EPERM", "1+");
        (!self.traced.is_empty()).then(|| self.traced.iter().fold(Inject::new(), forbid))
    }

    fn words(&self) -> Vec<String> {
        let prefix = self.inject().map(|inject| inject.prefix()).unwrap_or_default();
        prefix.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    fn run(&self, sandbox: &Sandbox, arguments: &[&str]) -> Ran {
        let mut command = sandbox.carrack();
        command.args(arguments);
        if let Some(inject) = self.inject() {
            command = inject.around(&command);
        }
        ran(command.output_in_time().unwrap())
    }

    fn ok(&self, sandbox: &Sandbox, arguments: &[&str]) -> Ran {
        let ran = self.run(sandbox, arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        ran
    }

    /// A host that has no agent yet, or one to which calls are forbidden.
    fn host(&self, sandbox: &Sandbox) -> Sshd {
        let far = Sshd::with(sandbox, &Setup { has_agent: false, ..Setup::default() });
        if let Some(words) = Some(self.words()).filter(|words| !words.is_empty()) {
            let wrapper = far.bin.join("carrack");
            let line = format!("#!/bin/sh\nexec /usr/bin/{} {} \"$@\"\n", words.join(" "), program().display());
            std::fs::write(&wrapper, line).unwrap();
            std::fs::set_permissions(wrapper, PermissionsExt::from_mode(0o755)).unwrap();
        }
        far
    }

    fn node(&self, sandbox: &Sandbox) -> Refused {
        let words = self.words();
        Refused(if words.is_empty() {
            Node::start(sandbox, "root", &[])
        } else {
            Node::on(&words, sandbox, "root", "127.0.0.1")
        })
    }
}

/// Without `getrandom`, OpenSSL has no random numbers, and so ssh does nothing. Forbidden, it ends AWS-LC, too; every
/// sandbox that was ever published allows it.
fn but_random() -> Vec<Newer> {
    CALLS.iter().copied().filter(|newer| newer.name != "getrandom").collect()
}

/// A node that ends with what traces it.
struct Refused(Node);

impl Refused {
    fn token(&self) -> String {
        format!("--token-file={}", self.0.token_file.display())
    }

    fn place(&self, path: &str) -> String {
        format!("carrack://{}/{path}{}", self.0.address, self.0.fingerprint)
    }
}

impl Drop for Refused {
    fn drop(&mut self) {
        descendants(self.0.child.id()).into_iter().for_each(|pid| signal(pid, "KILL"));
    }
}

fn at(sandbox: &Sandbox, name: &str) -> String {
    format!("far:{}", sandbox.path(name).display())
}

/// There and back over ssh; then only what is not there, and over what is there.
fn there_and_back(refusal: &Refusal) {
    let sandbox = Sandbox::new();
    tree::mixed(&sandbox.path("tree"));
    sandbox.write("tree/large", tree::bytes(3 << 20, 7));
    refusal.within(|| {
        let far = refusal.host(&sandbox);
        refusal.ok(&sandbox, &[&far.rsh, "tree/", &at(&sandbox, "there")]);
        refusal.ok(&sandbox, &[&far.rsh, &at(&sandbox, "there/"), "back"]);
        std::fs::remove_file(sandbox.path("there/large")).unwrap();
        refusal.ok(&sandbox, &[&far.rsh, "--no-clobber", "tree/", &at(&sandbox, "there")]);
        refusal.ok(&sandbox, &[&far.rsh, "tree/", "back"]);
        refusal.ok(&sandbox, &["mv", &far.rsh, &at(&sandbox, "there/one"), &at(&sandbox, "there/moved")]);
        refusal.ok(&sandbox, &["mv", &far.rsh, &at(&sandbox, "there/moved"), &at(&sandbox, "there/one")]);
    });
    same_tree(&sandbox.path("tree"), &sandbox.path("there"));
    same_tree(&sandbox.path("tree"), &sandbox.path("back"));
    assert_eq!(sandbox.parts(""), Vec::<std::path::PathBuf>::new());
}

#[test]
fn each_newer_call_may_be_unknown() {
    for newer in but_random() {
        println!("{}", newer.name);
        there_and_back(&Refusal::unknown(&[newer]));
    }
}

#[test]
fn each_newer_call_may_be_forbidden() {
    for newer in but_random() {
        println!("{}", newer.name);
        there_and_back(&Refusal::forbidden(&[newer]));
    }
}

#[test]
fn each_newer_flag_may_be_unknown() {
    for newer in FLAGS {
        println!("{}", newer.name);
        for error in [EINVAL, EOPNOTSUPP] {
            there_and_back(&Refusal::flags(&[*newer], error));
        }
    }
}

#[test]
fn all_newer_calls_may_be_refused_to_hosts_that_copy_to_each_other() {
    for refusal in Refusal::all() {
        there_and_back(&refusal);
        let sandbox = Sandbox::new();
        tree::mixed(&sandbox.path("tree"));
        let ran = refusal.within(|| {
            let far = refusal.host(&sandbox);
            let (from, to) = (at(&sandbox, "tree/"), at(&sandbox, "there"));
            refusal.ok(&sandbox, &[&far.rsh, "--json", "--durable", "each", &from, &to])
        });
        same_tree(&sandbox.path("tree"), &sandbox.path("there"));
        assert_eq!(ran.summary()["durable"], true, "{}", ran.stdout);
    }
}

#[test]
fn all_newer_calls_may_be_refused_to_a_node_and_a_copy_goes_on_where_it_stood() {
    for refusal in Refusal::all_without_ssh() {
        let sandbox = Sandbox::new();
        sandbox.write("large", tree::bytes(24 << 20, 3));
        refusal.within(|| {
            let node = refusal.node(&sandbox);
            let (token, place) = (node.token(), node.place(""));
            let slowly = ["--bwlimit=8MB", "--streams=1", "--deadline=2s", &token, "large", &place];
            refusal.run(&sandbox, &slowly).failed_with(30, &["--deadline is over"]);
            let ran = refusal.ok(&sandbox, &["--json", &token, "large", &place]);
            assert!(ran.summary()["bytes_resumed"].as_u64().is_some_and(|bytes| bytes > 0), "{}", ran.stdout);
        });
        assert!(std::fs::read(sandbox.path("root/large")).unwrap() == std::fs::read(sandbox.path("large")).unwrap());
    }
}

/// Links that lead out of a node's root, standing still and put there in the midst of a copy.
#[test]
fn root_of_a_node_is_kept_where_all_newer_calls_are_refused() {
    for refusal in Refusal::all().into_iter().take(2) {
        let sandbox = Sandbox::new();
        sandbox.write("outside/secret", "secret");
        tree::many(&sandbox.path("tree/sub"), 300, 64);
        std::fs::create_dir_all(sandbox.path("root/to/sub")).unwrap();
        symlink(sandbox.path("outside"), sandbox.path("root/out")).unwrap();
        symlink(sandbox.path("outside"), sandbox.path("root/bait")).unwrap();
        let racer = Racer::start(&sandbox.path("root/to/sub"), &sandbox.path("root/bait"));
        refusal.within(|| {
            let node = refusal.node(&sandbox);
            let token = node.token();
            let read = refusal.run(&sandbox, &[&token, &node.place("out/secret"), "here"]);
            assert_ne!(read.code, 0, "{}", read.stderr);
            let written = refusal.run(&sandbox, &[&token, "tree/sub/", &node.place("out")]);
            assert_ne!(written.code, 0, "{}", written.stderr);
            for _ in 0..5 {
                refusal.run(&sandbox, &[&token, "tree/", &node.place("to")]);
                refusal.run(&sandbox, &[&token, &node.place("to/sub/secret"), "here"]);
            }
        });
        assert!(racer.swaps() > 10);
        drop(racer);
        assert_eq!(names(&sandbox.path("outside")), ["secret"]);
        assert!(!sandbox.path("here").exists());
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Linux before 5.3, and older sandboxes.
#[cfg(feature = "service")]
#[test]
fn worker_is_stopped_where_there_are_no_handles_of_processes() {
    use carrack_service::journal::EndKind;
    use carrack_service::model::TaskKind;

    use crate::support::tasks::{Tasks, pair};

    let handles: Vec<Newer> = CALLS.iter().copied().filter(|newer| newer.name.starts_with("pidfd")).collect();
    assert_eq!(handles.len(), 2);
    for error in [ENOSYS, EPERM] {
        let mut tasks = Tasks::new();
        tree::many(&tasks.sandbox.path("from"), 200, 100_000);
        let ends = pair(tasks.local("from", "/"), tasks.local("to", "/"));
        let mut order = tasks.order("one", TaskKind::Copy, vec![ends]);
        order.options.rate_limit = Some(carrack_core::options::RateBound::new(4 << 20));
        let stopped = within(&handles, error, || {
            tasks.start(&order);
            tasks.follow_until_moved("one", 1 << 20);
            tasks.supervisor.stop("one");
            tasks.follow("one", |_| false)
        });
        assert_eq!((stopped.ended().kind, &stopped.why), (EndKind::Stopped, &None), "{error}");
    }
}
