//! Pages for users are followed word by word: whatever stands behind `$` in an indented block is typed into one shell,
//! in order, with the lines behind `>` that continue it, and has to print what the document says. `…` stands for any
//! text, on a line of its own for any lines. What is not behind `$` is not typed.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use carrack_service::client::{Call, Client, Target};
use carrack_service::model::Secret;
use serde_json::{Value, json};

use crate::support::process::{signal, workers};
use crate::support::running::InTime;
use crate::support::service::Service;
use crate::support::sshd::{Setup, Sshd};
use crate::support::tree::bytes;
use crate::support::{Sandbox, program, ran};

/// A command, and the lines that it prints, as a document has them.
struct Step {
    line: usize,
    command: String,
    printed: Vec<String>,
}

/// What is to be typed in a document, or below one of its headings to the next one of the same depth.
fn steps(document: &str, heading: Option<&str>) -> Vec<Step> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let text = fs::read_to_string(path).unwrap();
    let mut steps: Vec<Step> = Vec::new();
    let (mut within, mut follows) = (heading.is_none(), false);
    for (index, line) in text.lines().enumerate() {
        if let Some(heading) = heading
            && line.starts_with("## ")
        {
            within = line.trim_start_matches("## ") == heading;
        }
        let Some(code) = line.strip_prefix("    ").filter(|_| within) else {
            follows = false;
            continue;
        };
        match code.trim_start().strip_prefix("$ ") {
            Some(command) => {
                follows = true;
                steps.push(Step { line: index + 1, command: command.to_owned(), printed: Vec::new() });
            }
            None if follows => {
                let step = steps.last_mut().unwrap();
                match code.strip_prefix("> ").filter(|_| step.printed.is_empty()) {
                    Some(more) => step.command += &format!("\n{more}"),
                    None => step.printed.push(code.trim_end().to_owned()),
                }
            }
            None => {}
        }
    }
    assert!(!steps.is_empty(), "{document} {heading:?} has nothing to type");
    steps
}

/// Whether text is what a line of a document says, where `…` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let parts: Vec<&str> = pattern.trim().split('…').collect();
    let [first, middle @ .., last] = parts.as_slice() else { return pattern.trim() == text.trim() };
    let Some(mut rest) = text.trim().strip_prefix(first) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Whether lines are what a document says.
fn all_fit(patterns: &[String], lines: &[&str]) -> bool {
    match patterns.split_first() {
        None => lines.is_empty(),
        Some((any, patterns)) if any.trim() == "…" => (0..=lines.len()).any(|from| all_fit(patterns, &lines[from..])),
        Some((pattern, patterns)) => {
            lines.split_first().is_some_and(|(line, lines)| fits(pattern, line) && all_fit(patterns, lines))
        }
    }
}

/// A reader at a shell, in a sandbox with `carrack` on the PATH.
struct Reader {
    sandbox: Sandbox,
    /// Ports that the document names, and those of this run.
    ports: Vec<(&'static str, u16)>,
    /// Directories of other hosts that the document names, and those of this run.
    places: Vec<(&'static str, String)>,
    variables: Vec<(&'static str, String)>,
}

impl Reader {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.path("bin")).unwrap();
        symlink(program(), sandbox.path("bin/carrack")).unwrap();
        // Held until all are chosen, so that no two are the same.
        let held = ["7420", "7421", "7422"].map(|named| (named, TcpListener::bind("127.0.0.1:0").unwrap()));
        let ports = held.iter().map(|(named, socket)| (*named, socket.local_addr().unwrap().port())).collect();
        Self { sandbox, ports, places: Vec::new(), variables: Vec::new() }
    }

    /// Where the pages for people begin: a directory `run42` here, and a host `cluster` behind ssh.
    fn with_cluster() -> (Self, Sshd) {
        let mut reader = Self::new();
        let sandbox = &reader.sandbox;
        sandbox.write("run42/large", bytes(20 << 20, 42));
        sandbox.write("run42/notes.txt", "six\n66\n");
        let sshd = Sshd::with(sandbox, &Setup { name: "cluster", ..Setup::default() });
        sshd.put_on_path(sandbox);
        for place in ["/scratch", "/archive"] {
            let here = reader.sandbox.path(&place[1..]);
            fs::create_dir(&here).unwrap();
            reader.places.push((place, here.display().to_string()));
        }
        (reader, sshd)
    }

    fn port(&self, named: &str) -> u16 {
        self.ports.iter().find(|(port, _)| *port == named).unwrap().1
    }

    /// A line of the document with the ports and places of this run.
    fn here(&self, line: &str) -> String {
        let port = |line: String, (named, port): &(&str, u16)| line.replace(&format!(":{named}"), &format!(":{port}"));
        let place = |line: String, (named, here): &(&str, String)| {
            [":", " "]
                .iter()
                .fold(line, |line, before| line.replace(&format!("{before}{named}"), &format!("{before}{here}")))
        };
        self.places.iter().fold(self.ports.iter().fold(line.to_owned(), port), place)
    }

    /// What a command of the document is here: the pin stands where the document has `#sha256:…`.
    fn typed(&self, command: &str) -> String {
        let command = self.here(command);
        let mut words: Vec<String> = command.split('\'').map(str::to_owned).collect();
        for word in words.iter_mut().skip(1).step_by(2) {
            let port = self.ports.iter().map(|(_, port)| port).find(|port| word.contains(&format!(":{port}/")));
            if let (Some(port), Some(address)) = (port, word.strip_suffix('…')) {
                *word = format!("{address}'$(pin {port})'");
            }
        }
        words.join("'")
    }

    /// A service with two endpoints, of which the first has what is here.
    fn with_service(&self) -> Service {
        let service = Service::start(&self.sandbox, &[]);
        for name in ["lab", "archive"] {
            let root = self.sandbox.path(format!("endpoints/{name}"));
            fs::create_dir_all(&root).unwrap();
            self.sandbox.ok(["endpoint", "add", name, root.to_str().unwrap()]);
        }
        self.sandbox.write("endpoints/lab/run42/notes.txt", "six\n66\n");
        service
    }

    /// Types all that a document says, and compares what is printed.
    fn follow(&self, document: &str, steps: &[Step]) {
        let mut script = "shopt -s expand_aliases\numask 022\ntrap 'for j in $(jobs -p); do \
                          kill $j $(cat /proc/$j/task/$j/children) 2>/dev/null; done' EXIT\n"
            .to_owned();
        script += "pin() { sed -n \"s|.*to name.*:$1/#sha256:\\([0-9a-f]*\\)'.*|\\1|p\" out.* | head -1; }\n";
        for (number, step) in steps.iter().enumerate() {
            let command = self.typed(&step.command);
            writeln!(script, "{{\n{command}\n}} >out.{number} 2>&1 </dev/null\necho $? >code.{number}").unwrap();
            if command.ends_with('&') {
                // Whoever types it sees when it is there.
                let last = step.printed.last().unwrap().split('…').next().unwrap();
                let last = self.here(last);
                writeln!(
                    script,
                    "for _ in $(seq 600); do grep -qF -- {last:?} out.{number} && break; sleep 0.05; done"
                )
                .unwrap();
            }
        }
        self.sandbox.write("script", script);
        let mut shell = Command::new("bash");
        let path = format!("{}:{}", self.sandbox.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        shell.arg("script").current_dir(self.sandbox.path("")).env_clear().stdin(Stdio::null());
        shell.env("PATH", path).env("HOME", self.sandbox.path("home")).env("LC_ALL", "C.UTF-8");
        // Where the document says nothing, the port is 7420; a flag outweighs this.
        shell.env("CARRACK_LISTEN", format!("127.0.0.1:{}", self.port("7420")));
        shell.envs(self.variables.iter().map(|(name, value)| (name, value)));
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        assert!(shell.status().unwrap().success());
        for (number, step) in steps.iter().enumerate() {
            let read = |name: &str| fs::read_to_string(self.sandbox.path(format!("{name}.{number}"))).unwrap();
            let (out, code) = (read("out"), read("code"));
            let printed: Vec<String> = step.printed.iter().map(|line| self.here(line)).collect();
            // Servers write on, what they log is not compared.
            let is_server = step.command.ends_with('&');
            let lines: Vec<&str> = out.lines().filter(|line| !is_server || !line.contains(" carrack::")).collect();
            let place = format!("{document}:{}: $ {}", step.line, step.command);
            assert!(all_fit(&printed, &lines), "{place}\nthe document has\n{}\nprinted was\n{out}", printed.join("\n"));
            assert_eq!(code.trim(), "0", "{place}\n{out}");
        }
    }

    fn out(&self, number: usize) -> String {
        fs::read_to_string(self.sandbox.path(format!("out.{number}"))).unwrap()
    }

    /// An ssh that reaches this host as `localhost`, at the account of the sandbox.
    fn with_ssh(&self) -> Sshd {
        let state = self.sandbox.path("home/.local/state");
        let environment = format!("XDG_STATE_HOME={}", state.display());
        let setup = Setup { name: "localhost", environment: &environment, ..Setup::default() };
        let sshd = Sshd::with(&self.sandbox, &setup);
        sshd.put_on_path(&self.sandbox);
        sshd
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        workers(&self.sandbox.path("home")).into_iter().for_each(|pid| signal(pid, "KILL"));
    }
}

/// The number behind a word in a line of a log.
fn number(line: &str, name: &str) -> u64 {
    let (_, rest) = line.split_once(&format!(" {name}=")).unwrap_or_else(|| panic!("{name} is not in {line}"));
    rest.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn document_patterns_are_held_against_what_is_printed() {
    for (pattern, text, expected) in [
        ("a", "a", true),
        ("a", "b", false),
        ("a…c", "abc", true),
        ("a…c", "abd", false),
        ("…b…", "abc", true),
        ("a…b…d", "a-b-c-d", true),
        ("a…x…d", "a-b-c-d", false),
    ] {
        assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
    }
    let patterns = |all: &[&str]| all.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
    assert!(all_fit(&patterns(&["a", "…", "d"]), &["a", "b", "c", "d"]));
    assert!(all_fit(&patterns(&["…"]), &[]));
    assert!(!all_fit(&patterns(&["a"]), &["a", "b"]));
    assert!(!all_fit(&patterns(&["…", "x"]), &["a", "b"]));
}

#[test]
fn readme_has_examples_that_work() {
    let (reader, _sshd) = Reader::with_cluster();
    let _service = reader.with_service();
    reader.follow("README.md", &steps("README.md", None));
}

#[test]
fn scientist_page_can_be_followed_word_by_word() {
    let (reader, _sshd) = Reader::with_cluster();
    reader.follow("docs/scientist.md", &steps("docs/scientist.md", None));
}

#[test]
fn admin_page_can_be_followed_word_by_word() {
    let reader = Reader::new();
    reader.follow("docs/admin.md", &steps("docs/admin.md", None));
}

#[test]
fn developer_page_can_be_followed_word_by_word() {
    let (reader, _sshd) = Reader::with_cluster();
    reader.follow("docs/developer.md", &steps("docs/developer.md", None));
}

#[test]
fn archives_page_can_be_followed_word_by_word() {
    let (reader, _sshd) = Reader::with_cluster();
    reader.follow("docs/archives.md", &steps("docs/archives.md", None));
}

#[test]
fn recipes_page_can_be_followed_word_by_word() {
    let (reader, _sshd) = Reader::with_cluster();
    let _service = reader.with_service();
    reader.follow("docs/recipes.md", &steps("docs/recipes.md", None));
}

#[test]
fn verify_page_can_be_followed_word_by_word() {
    let reader = Reader::new();
    reader.sandbox.write("photos/a.txt", "abc\n");
    reader.sandbox.write("photos/2024/big.raw", vec![7; 3_000_000]);
    reader.follow("docs/verify.md", &steps("docs/verify.md", None));
}

/// From nothing to a finished, verified task between two nodes, and once more through ssh. The logs count the bytes:
/// all went from node to node, and none through the service.
#[test]
fn operator_page_leads_to_a_finished_task_between_two_nodes() {
    let reader = Reader::new();
    let _sshd = reader.with_ssh();
    let steps = steps("docs/operator.md", None);
    reader.follow("docs/operator.md", &steps);
    let sessions = |number: usize| -> Vec<String> {
        let log = reader.out(number);
        log.lines().filter(|line| line.contains(" carrack::node: session ")).map(str::to_owned).collect()
    };
    let server =
        |of: &str| steps.iter().position(|step| step.command.contains(of) && step.command.ends_with('&')).unwrap();
    let (one, two) = (sessions(server("--root one")), sessions(server("--root two")));
    let sent: u64 = one.iter().map(|line| number(line, "bytes_sent")).sum();
    let received: u64 = two.iter().map(|line| number(line, "bytes_received")).sum();
    // Two tasks of 50 MB and a little more.
    assert!(sent > 100_000_000 && received > 100_000_000, "{sent} {received}");
    let service = reader.out(steps.iter().position(|step| step.command == "carrack serve &").unwrap());
    assert!(service.contains("task accepted") && !service.contains(" carrack::node: session "), "{service}");
}

/// Each documented token that may submit tasks copies between the endpoints that it names, over the network.
#[test]
fn documented_tokens_copy_between_the_endpoints_that_they_name() {
    let documents = ["docs/managed.md", "docs/operations.md", "docs/commands.md", "docs/operator.md"];
    let mut commands = Vec::new();
    for document in documents {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
        let text = fs::read_to_string(path).unwrap();
        let made = text.match_indices("service token create --").map(|(at, _)| &text[at..]);
        let made = made.map(|rest| rest.split(['`', '\n', '>', ')']).next().unwrap().trim().to_owned());
        let before = commands.len();
        commands.extend(made.filter(|command| command.contains("tasks")));
        assert!(commands.len() > before, "{document} makes no token for tasks");
    }
    let sandbox = Sandbox::new();
    let service = Service::start(&sandbox, &[]);
    let address = service.told("service https://");
    for (number, command) in commands.iter().enumerate() {
        let words: Vec<&str> = command.split_whitespace().collect();
        let named = words.windows(2).filter(|pair| pair[0] == "--endpoint").map(|pair| pair[1]);
        let endpoints: Vec<&str> = named.collect();
        let [from, to] = endpoints[..] else { panic!("{command} names no two endpoints") };
        for name in [from, to] {
            let root = sandbox.path(name);
            fs::create_dir_all(&root).unwrap();
            let added = sandbox.run(["endpoint", "add", name, root.to_str().unwrap()]);
            assert!(added.code == 0 || added.stderr.contains("taken"), "{}", added.stderr);
        }
        let content = format!("by {number}");
        sandbox.write(format!("{from}/run/{number}"), &content);
        let token = sandbox.ok(words).stdout.trim().to_owned();
        let target = Target::parse(&format!("https://{address}")).unwrap();
        let client = Client::new(target, Some(Secret::new(token))).unwrap();
        let pair = json!({ "source": format!("@{from}:/run/{number}"), "destination": format!("@{to}:/") });
        let task: Value =
            client.call(&Call::post("/tasks").body(&json!({ "pairs": [pair] })).unwrap()).unwrap().json().unwrap();
        sandbox.ok(["task", "wait", task["id"].as_str().unwrap(), "--timeout=120s"]);
        assert_eq!(fs::read_to_string(sandbox.path(format!("{to}/{number}"))).unwrap(), content, "{command}");
    }
}

#[test]
fn managed_page_can_be_followed_word_by_word() {
    let reader = Reader::new();
    let _sshd = reader.with_ssh();
    reader.follow("docs/managed.md", &steps("docs/managed.md", None));
}

/// Each command of ours in the tables is typed where its words mean something, and does what it says without an error.
#[test]
fn sync_page_can_be_followed_and_its_tables_hold() {
    let reader = Reader::new();
    reader.follow("docs/sync.md", &steps("docs/sync.md", None));
    let sandbox = &reader.sandbox;
    sandbox.write("list", "2026\n");
    sandbox.write("photos/new", "new");
    let setup = Setup { name: "host", ..Setup::default() };
    let sshd = Sshd::with(sandbox, &setup);
    sshd.put_on_path(sandbox);
    let _service = Service::start(sandbox, &[]);
    for name in ["lab", "archive"] {
        sandbox.write(format!("{name}/photos/a"), name);
        sandbox.ok(["endpoint", "add", name, sandbox.path(name).to_str().unwrap()]);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sync.md");
    let text = fs::read_to_string(path).unwrap().replace("\\|", "\u{1}");
    let ours = text.lines().filter_map(|line| line.split('|').nth(2)).map(|cell| cell.trim().trim_matches('`'));
    let ours: Vec<String> =
        ours.filter(|cell| cell.contains("carrack ")).map(|cell| cell.replace('\u{1}', "|")).collect();
    assert!(ours.len() > 25, "{ours:?}");
    let path = format!("{}:{}", sandbox.path("bin").display(), std::env::var("PATH").unwrap());
    for command in ours {
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("set -o pipefail; {command}")]).current_dir(sandbox.path(""));
        shell.env_clear().env("PATH", &path).env("HOME", sandbox.path("home")).env("LC_ALL", "C.UTF-8");
        let ran = ran(shell.stdin(Stdio::null()).output_in_time().unwrap());
        assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
    }
}

#[test]
fn api_page_has_examples_that_work() {
    let mut reader = Reader::new();
    let service = Service::start(&reader.sandbox, &[]);
    reader.variables.push(("SOCKET", service.told("service socket ").to_owned()));
    reader.follow("docs/api.md", &steps("docs/api.md", None));
}
