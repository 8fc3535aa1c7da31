//! Faults of system calls, by `strace -e inject`: the n-th call fails, lies, or is the last thing that a program does.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is traced, and what is done to it.
#[derive(Clone, Debug, Default)]
pub struct Inject {
    rules: Vec<(String, String)>,
    /// Descriptors' paths: only calls that touch one of these count.
    paths: Vec<PathBuf>,
    log: Option<PathBuf>,
}

impl Inject {
    /// A run of strace that injects no faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The call fails with this error (`EIO`) at `when`, in strace's words: `3`, `3+`, `3+2`, `1..5`.
    #[must_use]
    pub fn error(self, call: &str, error: &str, when: &str) -> Self {
        self.rule(call, &format!("error={error}:when={when}"))
    }

    /// The call is not made and says that it returned this.
    #[must_use]
    pub fn returns(self, call: &str, value: u64, when: &str) -> Self {
        self.rule(call, &format!("retval={value}:when={when}"))
    }

    /// The program is killed as it enters the call for the n-th time: the call is not made. strace counts the calls
    /// of each thread by itself.
    #[must_use]
    pub fn kill(self, call: &str, when: u64) -> Self {
        self.rule(call, &format!("signal=KILL:when={when}"))
    }

    /// The call takes this many microseconds longer, from `when` on.
    #[must_use]
    pub fn delay(self, call: &str, micros: u64, when: &str) -> Self {
        self.rule(call, &format!("delay_enter={micros}:when={when}"))
    }

    /// Only calls that name this path, or a descriptor open on it, are touched.
    #[must_use]
    pub fn only(mut self, path: impl Into<PathBuf>) -> Self {
        self.paths.push(path.into());
        self
    }

    /// Writes what was traced into a file, for [`counts`].
    #[must_use]
    pub fn log(mut self, path: impl Into<PathBuf>) -> Self {
        self.log = Some(path.into());
        self
    }

    /// Traces calls and does nothing to them.
    #[must_use]
    pub fn watch(mut self, calls: &[&str]) -> Self {
        self.rules.extend(calls.iter().map(|call| (call.to_string(), String::new())));
        self
    }

    fn rule(mut self, call: &str, what: &str) -> Self {
        self.rules.push((call.to_string(), what.to_string()));
        self
    }

    /// The words to put before a program.
    pub fn prefix(&self) -> Vec<OsString> {
        let calls: Vec<&str> = self.rules.iter().map(|(call, _)| call.as_str()).collect();
        let mut words: Vec<OsString> = ["strace", "-f", "-qq", "-o"].map(OsString::from).to_vec();
        words.push(self.log.as_deref().unwrap_or(Path::new("/dev/null")).into());
        // Only what is traced stops the program; without it a copy takes ten times as long.
        words.push("--seccomp-bpf".into());
        words.extend(["-e".into(), format!("trace={}", calls.join(",")).into()]);
        for (call, what) in self.rules.iter().filter(|(_, what)| !what.is_empty()) {
            words.extend(["-e".into(), format!("inject={call}:{what}").into()]);
        }
        for path in &self.paths {
            words.extend(["-P".into(), path.into()]);
        }
        words
    }

    /// The same command under strace. Its environment is what was set explicitly.
    pub fn around(&self, command: &Command) -> Command {
        let prefix = self.prefix();
        let mut wrapped = Command::new(&prefix[0]);
        wrapped.args(&prefix[1..]).arg(command.get_program()).args(command.get_args()).env_clear();
        wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(directory) = command.get_current_dir() {
            wrapped.current_dir(directory);
        }
        wrapped
    }
}

/// How often each call was made, by the thread that made it most often: where a sweep over `when` ends, because
/// strace counts for each thread.
pub fn counts(log: &Path) -> BTreeMap<String, u64> {
    let text = String::from_utf8_lossy(&std::fs::read(log).unwrap()).into_owned();
    let mut by_thread = BTreeMap::<(String, &str), u64>::new();
    for line in text.lines() {
        // `PID name(...`, or `PID <... name resumed>`, which is the rest of one that was counted.
        let Some((thread, rest)) = line.split_once(char::is_whitespace) else { continue };
        let Some((name, _)) = rest.trim_start().split_once('(') else { continue };
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            *by_thread.entry((name.to_string(), thread)).or_default() += 1;
        }
    }
    let mut most = BTreeMap::new();
    for ((name, _), count) in by_thread {
        let known = most.entry(name).or_default();
        *known = count.max(*known);
    }
    most
}

/// A call that was made and has returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// `name(arguments) = result`.
    pub text: String,
    /// The line of the log with which it began: of two calls the one that began after the other had
    /// ended saw what that did.
    pub began: usize,
    /// The line with which it ended.
    pub ended: usize,
}

impl Traced {
    /// What is before the parenthesis.
    pub fn name(&self) -> &str {
        self.text.split('(').next().unwrap_or_default()
    }

    /// What it returned; `None` where that is no number.
    pub fn result(&self) -> Option<i64> {
        let (_, result) = self.text.rsplit_once(" = ")?;
        result.split_whitespace().next()?.parse().ok()
    }
}

/// Every call of a log, in the order in which they returned.
pub fn calls(log: &Path) -> Vec<Traced> {
    let text = String::from_utf8_lossy(&std::fs::read(log).unwrap()).into_owned();
    let mut begun = BTreeMap::<&str, (usize, String)>::new();
    let mut all = Vec::new();
    for (line, text) in text.lines().enumerate() {
        let Some((thread, rest)) = text.split_once(char::is_whitespace) else { continue };
        let rest = rest.trim_start();
        if let Some(first) = rest.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, (line, first.to_string()));
        } else if let Some((_, last)) = rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>")) {
            let Some((began, first)) = begun.remove(thread) else { continue };
            all.push(Traced { text: first + last, began, ended: line });
        } else if rest.contains('(') && rest.contains(" = ") {
            all.push(Traced { text: rest.to_string(), began: line, ended: line });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strace_line_is_built_and_the_log_counted() {
        let inject = Inject::new().error("fdatasync", "EIO", "3").kill("renameat2", 2).watch(&["write"]).log("/l");
        let words: Vec<String> = inject.prefix().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(
            words.join(" "),
            "strace -f -qq -o /l --seccomp-bpf -e trace=fdatasync,renameat2,write \
             -e inject=fdatasync:error=EIO:when=3 -e inject=renameat2:signal=KILL:when=2"
        );
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        std::fs::write(
            &log,
            "7  write(1, \"a(b\", 3) = 3\n7 write(1 <unfinished ...>\n8  write(2) = 0\n7 <... write resumed>) = 3\n\
             8 fsync(3) = 0\n8 +++ exited with 0 +++\n9 --- SIGCHLD {si_signo=SIGCHLD} ---\n",
        )
        .unwrap();
        assert_eq!(counts(&log), [("fsync".to_string(), 1), ("write".to_string(), 2)].into());
        let made = calls(&log);
        let told: Vec<_> = made.iter().map(|call| (call.name(), call.result(), call.began, call.ended)).collect();
        let expected = [("write", 3, 0, 0), ("write", 0, 2, 2), ("write", 3, 1, 3), ("fsync", 0, 4, 4)];
        assert_eq!(told, expected.map(|(name, result, began, ended)| (name, Some(result), began, ended)));
        assert_eq!(made[2].text, "write(1) = 3");
    }

    #[test]
    fn call_fails_when_it_was_told_to() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let mut command = Command::new("/bin/cat");
        command.arg("/etc/passwd").env("PATH", "/bin:/usr/bin").current_dir("/");
        let Ok(output) = Inject::new().error("write", "ENOSPC", "1").log(&log).around(&command).output() else {
            println!("skipped: strace is not here");
            return;
        };
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"), "{output:?}");
        assert!(counts(&log)["write"] >= 1);
    }
}
