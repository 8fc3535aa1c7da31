//! Transcripts: every command of a golden file runs again, and what it prints is compared with what is recorded there.
//!
//! A transcript below `tests/golden` is a list of lines `$ COMMAND`, each with what the command has printed (standard
//! output, then standard error) and its exit code. A shell runs the commands, in one sandbox a file; a line `# …` is a
//! comment. Words that differ from run to run are replaced, see [`Words`].

use std::fmt::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use crate::support::json_schema::Schema;
use crate::support::node::Node;
use crate::support::running::InTime;
use crate::support::{Ran, Sandbox, golden, program, ran};

/// The sandbox of one transcript, with `carrack` on the PATH.
pub struct Stage {
    pub sandbox: Sandbox,
    variables: Vec<(&'static str, String)>,
    words: Words,
}

/// Words of a run, and what stands for them in a transcript.
#[derive(Default)]
struct Words {
    pairs: Vec<(String, &'static str)>,
}

impl Stage {
    pub fn new() -> Self {
        let sandbox = Sandbox::new();
        std::fs::create_dir(sandbox.path("bin")).unwrap();
        symlink(program(), sandbox.path("bin/carrack")).unwrap();
        let words = Words { pairs: vec![(sandbox.path("").display().to_string(), "/SANDBOX/")] };
        Self { sandbox, variables: Vec::new(), words }
    }

    /// A variable that the commands may use; in the transcript its name stands for its value.
    pub fn variable(&mut self, name: &'static str, value: String) {
        self.words.pairs.push((value.clone(), name));
        self.variables.push((name, value));
    }

    /// A script on the PATH.
    pub fn script(&self, name: &str, text: &str) {
        let path = self.sandbox.write(format!("bin/{name}"), format!("#!/bin/sh\n{text}\n"));
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// What stands for ssh: it says a line on standard error and ends; or it runs the command here,
    /// with nothing on the PATH.
    pub fn ssh_scripts(&self) {
        self.script("says", "echo \"$WORDS\" >&2; exit 255");
        self.script("here", "for last; do :; done; PATH=/usr/bin:/bin exec sh -c \"$last\"");
        self.script("waits", "exec sleep 1000");
        self.script("refuses", "echo This account is for file transfers only.; exit 1");
    }

    pub fn run(&self, line: &str) -> Ran {
        let path = format!("{}:{}", self.sandbox.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        // A command that serves instead of refusing must not hold up the tests for ever.
        let mut shell = Command::new("timeout");
        shell
            .args(["--kill-after=5", "60", "sh", "-c"])
            .arg(format!("umask 022; {line}"))
            .current_dir(self.sandbox.path(""))
            .env_clear()
            .stdin(std::process::Stdio::null());
        shell.env("PATH", path).env("HOME", self.sandbox.path("home")).env("LC_ALL", "C.UTF-8");
        ran(shell.envs(self.variables.iter().map(|(name, value)| (name, value))).output_in_time().unwrap())
    }

    /// Runs every command of a transcript anew and compares.
    #[track_caller]
    pub fn transcript(&self, name: &str) {
        let recorded = std::fs::read_to_string(golden::directory().join(name)).unwrap_or_default();
        let kept = |line: &&str| line.starts_with("$ ") || line.starts_with("# ");
        let mut shown = String::new();
        for line in recorded.lines().filter(kept) {
            if !shown.is_empty() {
                shown.push('\n');
            }
            writeln!(shown, "{line}").unwrap();
            let Some(command) = line.strip_prefix("$ ") else { continue };
            let ran = self.run(command);
            for text in [&ran.stdout, &ran.stderr] {
                shown += &self.words.replaced(text);
            }
            if ran.code != 0 {
                writeln!(shown, "[exit code {}]", ran.code).unwrap();
            }
        }
        assert!(recorded.contains("\n$ ") || recorded.starts_with("$ "), "{name} has no command");
        golden::compare(name, &shown);
    }
}

impl Words {
    fn replaced(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (value, name) in &self.pairs {
            text = text.replace(value.as_str(), name);
        }
        // What is measured differs from run to run and from host to host.
        let measured = ["limited by: ", r#"{"v":1,"type":"sample","#, r#"{"v":1,"type":"ends","#];
        // Of a copy; a report has the steps of its file.
        let is_step = |line: &str| line.starts_with(r#"{"v":1,"type":"step","#) && line.contains("error_us");
        let is_told = |line: &&str| !is_step(line) && measured.iter().all(|word| !line.starts_with(word));
        let lines = text.lines().filter(is_told);
        let lines = lines.map(|line| if line.starts_with('{') { object(line) } else { words(line) });
        lines.map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

/// A line for people, its figures, times and ports replaced.
fn words(line: &str) -> String {
    if let Some((what, figures)) = line.split_once(" in ").filter(|(what, _)| what.starts_with("copied ")) {
        let failed = figures.find("; ").map_or("", |at| &figures[at..]);
        return format!("{what} in TIME{failed}");
    }
    // Whoever runs this.
    if let Some((label, _)) = line.split_once(": ").filter(|(label, _)| matches!(label.trim(), "owner" | "group")) {
        return format!("{label}: ACCOUNT");
    }
    let word = |word: &str| {
        let bare = word.trim_end_matches([',', ':', ';']);
        if bare.len() > 19 && bare.ends_with('Z') && bare.as_bytes()[10] == b'T' {
            return word.replace(bare, "TIME");
        }
        // The kernel chooses such ports. Port 1 and 7420 are named by a transcript.
        match bare.rsplit_once(':') {
            Some((host, port)) if bare.starts_with("127.0.0.") && port.len() == 5 => {
                word.replace(bare, &format!("{host}:PORT"))
            }
            _ => word.to_owned(),
        }
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// An object, its changing figures replaced; keys stay in their order.
fn object(line: &str) -> String {
    const FIGURES: [&str; 7] =
        ["time", "mtime", "elapsed_seconds", "moving_seconds", "bytes_per_second", "limited_by", "found"];
    let mut line = line.to_owned();
    for name in ["owner", "group"] {
        let key = format!("\"{name}\":{{\"id\":");
        if let Some(start) = line.find(&key)
            && let Some(end) = line[start..].find('}')
        {
            line.replace_range(start + name.len() + 3..=start + end, "…");
        }
    }
    for name in FIGURES {
        let key = format!("\"{name}\":");
        let Some(start) = line.find(&key).map(|at| at + key.len()) else { continue };
        // What held a copy back is an object, or nothing where it was too short; one in a report has words that stay.
        let is_whole = name == "limited_by" && line.contains(r#""type":"summary""#) && line[start..].starts_with('{');
        let end = if is_whole { line[start..].find("},\"link\"").map(|end| end + 1) } else { None };
        let end = end.or_else(|| line[start..].find([',', '}'])).map_or(line.len(), |end| start + end);
        line.replace_range(start..end, "…");
    }
    line
}

pub fn with_node(stage: &mut Stage, name: &'static str, root: &str, more: &[&str]) -> Node {
    let node = Node::start(&stage.sandbox, root, more);
    stage.words.pairs.push((node.fingerprint.trim_start_matches("#sha256:").to_owned(), "FINGERPRINT"));
    stage.variable(name, node.address.clone());
    node
}

#[test]
fn golden_help() {
    let mut stage = Stage::new();
    let version = stage.run("carrack -V").stdout;
    stage.words.pairs.push((version.trim_start_matches("carrack ").trim().to_owned(), "VERSION"));
    stage.words.pairs.push((format!("carrack {}", env!("CARGO_PKG_VERSION")), "carrack VERSION"));
    stage.transcript("help/carrack.txt");
    let help = stage.run("carrack --help").stdout;
    let verbs = help.split_once("Verbs:\n").unwrap().1.lines().take_while(|line| line.starts_with("  "));
    for verb in verbs.filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help") {
        stage.transcript(&format!("help/{verb}.txt"));
    }
}

#[test]
fn golden_manual_and_completions() {
    let mut stage = Stage::new();
    for (before, shown) in [("carrack ", "carrack VERSION"), ("v", "vVERSION")] {
        stage.words.pairs.push((format!("{before}{}", env!("CARGO_PKG_VERSION")), shown));
    }
    stage.transcript("manual.txt");
}

#[test]
fn golden_usage_messages() {
    Stage::new().transcript("messages/usage.txt");
}

#[test]
fn golden_file_messages() {
    Stage::new().transcript("messages/files.txt");
}

#[test]
fn golden_node_messages() {
    let mut stage = Stage::new();
    let node = with_node(&mut stage, "NODE", "root", &[]);
    let _anonymous = with_node(&mut stage, "READ_ONLY", "open", &["--anonymous", "--read-only"]);
    stage.variable("TOKEN", node.token_file.display().to_string());
    stage.sandbox.write("root/f", "content\n");
    symlink("/etc/passwd", stage.sandbox.path("root/out")).unwrap();
    stage.transcript("messages/node.txt");
}

#[test]
fn golden_ssh_messages() {
    let stage = Stage::new();
    stage.ssh_scripts();
    stage.transcript("messages/ssh.txt");
}

#[test]
fn golden_json_of_the_program() {
    let mut stage = Stage::new();
    let node = with_node(&mut stage, "NODE", "root", &[]);
    stage.variable("TOKEN", node.token_file.display().to_string());
    crate::verbs::marker(&stage.sandbox, "left/.carrack-00112233aabbccdd.marker", *b"0badcafe");
    stage.sandbox.write("left/.f.carrack-0badcafe-1.part", "left");
    stage.transcript("json/program.txt");
}

#[test]
fn golden_results_that_were_kept() {
    Stage::new().transcript("json/bench.txt");
}

#[test]
fn golden_lines_have_every_type_of_the_schema() {
    let files = [
        "json/program.txt",
        "json/events.txt",
        "json/reports.txt",
        "json/bench.txt",
        "json/doctor.txt",
        "json/doctor-state.txt",
        "report/report.txt",
    ];
    let recorded = files.map(|name| std::fs::read_to_string(golden::directory().join(name)).unwrap()).concat();
    let schema = Schema::published();
    // A node prints its line and goes on; no transcript waits for that. What a service answers is in no transcript
    // either, nor are agents, which not every build has, nor what has keys that are made by chance: their tests hold
    // each line against the schema.
    let is_recorded = |kind: &&str| {
        let own = format!("/$defs/managed_{}", kind.replace('-', "_"));
        !["serving", "agent", "receipt", "receipt_key", "bag"].contains(kind) && !schema.has(&own)
    };
    for kind in schema.types().into_iter().filter(is_recorded) {
        assert!(recorded.contains(&format!("{{\"v\":1,\"type\":\"{kind}\"")), "{kind}");
    }
}
