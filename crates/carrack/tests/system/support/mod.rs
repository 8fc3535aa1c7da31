//! What the tests stand on: a directory of their own, the program with nothing of the user's around it, nodes, trees.

pub mod browser;
pub mod counted;
pub mod golden;
pub mod json_schema;
pub mod log;
pub mod netns;
pub mod node;
pub mod process;
pub mod running;
pub mod schema;
#[cfg(feature = "service")]
pub mod service;
pub mod speaker;
pub mod sshd;
#[cfg(feature = "service")]
pub mod tasks;
pub mod tree;

use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use carrack_core::transfer::marker::{Replayed, replay};
use json_schema::Schema;
use running::InTime;

/// A directory that goes away with the test, and the program run inside it with a home of its own.
pub struct Sandbox {
    directory: tempfile::TempDir,
}

/// How a command ended.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The program under test. `CARRACK_TEST_PROGRAM` names another build of it: to see that a new test fails with
/// the code before its fix.
pub fn program() -> PathBuf {
    std::env::var_os("CARRACK_TEST_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_carrack").into(), PathBuf::from)
}

/// The program that it sends to hosts which have none: the slim one for this host, which `make test` names, or itself.
pub fn sent_program() -> PathBuf {
    slim_program().unwrap_or_else(program)
}

/// The slim program for this host inside the program under test, where that was built with one: the build reads the
/// same variable.
pub fn slim_program() -> Option<PathBuf> {
    let directory = std::env::var_os("CARRACK_AGENTS").filter(|path| !path.is_empty()).map(PathBuf::from)?;
    Some(directory.join(format!("linux-{}", std::env::consts::ARCH)))
}

impl Sandbox {
    pub fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// In memory where there is such a place: for a test that moves so much that a disk's speed
    /// would be all it waits for.
    pub fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::below(memory) } else { Self::new() }
    }

    fn below(directory: &Path) -> Self {
        let sandbox = Self { directory: tempfile::tempdir_in(directory).unwrap() };
        std::fs::create_dir(sandbox.path("home")).unwrap();
        sandbox
    }

    /// A path below the directory.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file, and the directories above it.
    pub fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// The inode of what stands there, be it a link.
    pub fn inode(&self, name: impl AsRef<Path>) -> u64 {
        std::fs::symlink_metadata(self.path(name)).unwrap().ino()
    }

    /// When what stands there, or a link leads to, was last modified.
    pub fn modified(&self, name: impl AsRef<Path>) -> SystemTime {
        std::fs::metadata(self.path(name)).unwrap().modified().unwrap()
    }

    /// The program, not started: in the sandbox's directory, with an empty home and no settings.
    pub fn carrack(&self) -> Command {
        let mut command = Command::new(program());
        command.current_dir(self.directory.path()).env_clear().stdin(Stdio::null());
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("LC_ALL", "C.UTF-8");
        command
    }

    /// Runs the program to its end.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        ran(self.carrack().args(arguments).output_in_time().unwrap())
    }

    /// Runs the program, which must succeed.
    pub fn ok<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        ran
    }

    /// Part files left anywhere below a directory.
    pub fn parts(&self, below: impl AsRef<Path>) -> Vec<PathBuf> {
        self.left_with(below, ".part")
    }

    /// Markers left anywhere below a directory.
    pub fn markers(&self, below: impl AsRef<Path>) -> Vec<PathBuf> {
        self.left_with(below, ".marker")
    }

    fn left_with(&self, below: impl AsRef<Path>, end: &str) -> Vec<PathBuf> {
        tree::walk(&self.path(below)).into_iter().filter(|path| path.to_string_lossy().ends_with(end)).collect()
    }

    /// What the one marker below a directory says so far, as somebody who is killed now leaves it. Data that has been
    /// written is in no marker before a disk has it.
    pub fn marked(&self, below: impl AsRef<Path>) -> Option<Replayed> {
        let bytes = std::fs::read(self.markers(below).first()?).ok()?;
        replay(&bytes, carrack_sys::host::boot_id())
    }
}

pub fn ran(output: Output) -> Ran {
    let ran = Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    // An earlier build has an earlier schema.
    if std::env::var_os("CARRACK_TEST_PROGRAM").is_none() {
        ran.hold_against_the_schema();
    }
    ran
}

impl Ran {
    /// Every line of `--json`, whichever test asked for it. A last line without a line feed was cut off.
    #[track_caller]
    fn hold_against_the_schema(&self) {
        const START: &str = "{\"v\":";
        static SCHEMA: LazyLock<Schema> = LazyLock::new(Schema::published);
        for line in self.stdout.split_inclusive('\n').filter(|line| line.starts_with(START) && line.ends_with('\n')) {
            let line = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            SCHEMA.check(&line).unwrap_or_else(|why| panic!("docs/json.schema.json: {why}"));
        }
    }

    /// The last line that `--json` prints: the report.
    #[track_caller]
    pub fn summary(&self) -> serde_json::Value {
        let last = self.stdout.lines().last().unwrap_or_else(|| panic!("nothing was printed: {}", self.stderr));
        serde_json::from_str(last).unwrap()
    }

    /// Asserts the exit code and words that must have been said on standard error.
    #[track_caller]
    pub fn failed_with(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is missing from: {}", self.stderr);
        }
    }
}

/// Polls until something is so; panics if it is not after a time in which it must be on the slowest machine.
#[track_caller]
pub fn wait_until(what: &str, so: impl FnMut() -> bool) {
    wait_until_within(what, Duration::from_secs(60), so);
}

/// The same with more patience, for what takes its time by itself.
#[track_caller]
pub fn wait_until_within(what: &str, patience: Duration, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !so() {
        assert!(Instant::now() < deadline, "waited for nothing: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Built without the calls that only some systems have (`cargo xtask portable`).
pub const PORTABLE: bool = cfg!(carrack_portable);

/// How long what is raced is raced: `CARRACK_RACE_SECONDS`, else enough for some hundred exchanges.
pub fn race_time() -> Duration {
    let seconds = std::env::var("CARRACK_RACE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(2))
}

/// Whether the test may mount, make devices and become somebody else.
pub fn is_root() -> bool {
    let is_root = carrack_sys::host::user_id() == 0;
    assert!(is_root || std::env::var_os("CI").is_none(), "where CI is set no test is skipped: run them as root");
    is_root
}

/// Runs another program, which must succeed, and returns what it printed.
pub fn tool(command: &mut Command) -> String {
    let output = command.output_in_time().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The digest that the independent `b3sum` prints.
pub fn b3sum(path: &Path) -> String {
    tool(Command::new("b3sum").arg("--no-names").arg(path)).trim().to_string()
}

/// Asserts that two trees are the same to `diff`, which follows no link.
#[track_caller]
pub fn same_tree(a: &Path, b: &Path) {
    let output = Command::new("diff").args(["-r", "--no-dereference"]).arg(a).arg(b).output_in_time().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

pub fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}
