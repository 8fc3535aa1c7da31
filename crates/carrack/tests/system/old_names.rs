//! Carrack called as bbcp and as globus-url-copy: each line of the table against what the other program was recorded to
//! do with it (`tests/old-names/record.py`), and what harms.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::support::running::InTime;
use crate::support::sshd::Sshd;
use crate::support::{Ran, Sandbox, is_root, program, ran, tool, tree};

/// The time of every source: in February 2001.
const THEN: i64 = 981_173_106;
const CONTENTS: [(&str, &str); 5] = [("a", "hello\n"), ("b", "world\n"), ("c", "third\n"), ("x", "x\n"), ("y", "y\n")];

/// A line of the table.
#[derive(Debug, Default)]
struct Row {
    name: String,
    before: Vec<String>,
    line: String,
    recorded: String,
    ours: String,
    why: String,
    says: Vec<String>,
}

fn rows() -> Vec<Row> {
    let text = include_str!("../golden/old-names.txt");
    let blocks = text.split("\n\n").map(str::trim).filter(|block| block.starts_with('['));
    let row = |block: &str| {
        let mut row = Row::default();
        for line in block.lines() {
            match line.split_once(": ") {
                _ if line.starts_with('[') => row.name = line.to_owned(),
                Some(("before", text)) => row.before.push(text.to_owned()),
                Some(("line", text)) => row.line = text.to_owned(),
                Some(("recorded", text)) => row.recorded = text.to_owned(),
                Some(("carrack", text)) => row.ours = text.to_owned(),
                Some(("why", text)) => row.why = text.to_owned(),
                Some(("says", text)) => row.says.push(text.to_owned()),
                _ => panic!("{line}: is no line of a row"),
            }
        }
        row
    };
    blocks.map(row).collect()
}

/// What every line finds, as the recorder makes it.
fn sources(root: &Path) {
    for directory in ["tree/sub", "tree/empty", "out", "state"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    for (name, path) in [("a", "a"), ("b", "b"), ("c", "c"), ("x", "tree/x"), ("y", "tree/sub/y")] {
        fs::write(root.join(path), content(name)).unwrap();
        set_time(&root.join(path), THEN);
    }
    fs::set_permissions(root.join("a"), PermissionsExt::from_mode(0o640)).unwrap();
    symlink("x", root.join("tree/link")).unwrap();
    symlink("a", root.join("l")).unwrap();
}

fn set_time(path: &Path, seconds: i64) {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds.try_into().unwrap());
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

fn content(name: &str) -> &str {
    CONTENTS.iter().find(|(known, _)| *known == name).unwrap().1
}

/// `PATH=CONTENT`, of an older time if ` 1999` stands behind it.
fn before(root: &Path, text: &str) {
    let (path, content) = text.split_once('=').unwrap();
    let (content, is_old) = content.strip_suffix(" 1999").map_or((content, false), |content| (content, true));
    let content = content.replace("\\n", "\n").replace('@', &root.display().to_string());
    let known = CONTENTS.iter().find(|(name, _)| *name == content).map(|(_, text)| (*text).to_owned());
    let content = known.unwrap_or(if content.contains('\n') { content } else { content + "\n" });
    fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
    fs::write(root.join(path), content).unwrap();
    if is_old {
        set_time(&root.join(path), 930_000_000);
    }
}

/// What is below out/, as the recorder tells it.
fn effects(root: &Path) -> String {
    let mut found: Vec<_> =
        tree::walk(&root.join("out")).into_iter().filter(|path| *path != root.join("out")).collect();
    found.sort();
    let told = found.iter().map(|path| {
        let (name, stat) = (path.strip_prefix(root).unwrap().display(), fs::symlink_metadata(path).unwrap());
        let mode = stat.mode() & 0o7777;
        if stat.is_symlink() {
            return format!("{name} -> {}", fs::read_link(path).unwrap().display());
        }
        if stat.is_dir() {
            return format!("{name}/ {mode:o}");
        }
        let when = if stat.mtime() == THEN { "then" } else { "now" };
        let text = fs::read_to_string(path).unwrap();
        let known = CONTENTS.iter().find(|(_, content)| *content == text).map(|(name, _)| *name);
        format!("{name} {mode:o} {when} {}", known.unwrap_or(text.trim()))
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Words of a line as a shell finds them; double quotes keep spaces together.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    let parts = parts.flat_map(|(index, part)| match index % 2 {
        1 => vec![part.to_owned()],
        _ => part.split_whitespace().map(str::to_owned).collect(),
    });
    parts.collect()
}

/// A host, links by the old names, and what runs lines there.
struct Place {
    sandbox: Sandbox,
    far: Sshd,
    path: String,
}

impl Place {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let far = Sshd::start(&sandbox);
        for name in ["cat", "tar", "dd"] {
            symlink(format!("/bin/{name}"), far.bin.join(name)).unwrap();
        }
        let path = far.put_on_path(&sandbox);
        sandbox.ok(["names", "bin"]);
        Self { sandbox, far, path }
    }

    /// A directory of its own, with the sources in it.
    fn directory(&self, name: &str) -> std::path::PathBuf {
        let root = self.sandbox.path(name);
        fs::create_dir(&root).unwrap();
        sources(&root);
        fs::copy(self.sandbox.path("user_key"), root.join("key")).unwrap();
        fs::set_permissions(root.join("key"), PermissionsExt::from_mode(0o600)).unwrap();
        root
    }

    fn command(&self, root: &Path, words: &[String]) -> Command {
        let mut command = Command::new(self.sandbox.path("bin").join(&words[0]));
        command.args(&words[1..]).current_dir(root).env_clear().stdin(std::process::Stdio::null());
        command.env("PATH", &self.path).env("HOME", self.sandbox.path("home")).env("LC_ALL", "C.UTF-8");
        command
    }

    fn run(&self, root: &Path, line: &str) -> Ran {
        let line = line.replace("@bbcp", "/opt/bbcp").replace('@', &root.display().to_string());
        ran(self.command(root, &words(&line)).output_in_time().unwrap())
    }
}

#[test]
fn old_lines_do_what_the_old_programs_were_recorded_to_do() {
    if !is_root() {
        return;
    }
    let rows = rows();
    assert!(rows.len() >= 60, "{}", rows.len());
    let place = Place::new();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let wrong = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    wrong.lock().unwrap().extend(judge(&place, row));
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// What is wrong with a row.
fn judge(place: &Place, row: &Row) -> Option<String> {
    assert!(!row.recorded.is_empty(), "{}: was not recorded", row.name);
    assert_eq!(row.ours.is_empty(), row.why.is_empty(), "{}: differs for a reason, or not", row.name);
    let root = place.directory(&row.name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-"));
    row.before.iter().for_each(|text| before(&root, text));
    let ran = place.run(&root, &row.line);
    let expected = if row.ours.is_empty() { &row.recorded } else { &row.ours };
    let found = format!("{} | {}", ran.code, effects(&root));
    let said = format!("{}{}", ran.stdout, ran.stderr);
    let unsaid = row.says.iter().map(|text| text.replace('@', &root.display().to_string()));
    let unsaid: Vec<String> = unsaid.filter(|text| !said.contains(text.as_str())).collect();
    let leftovers = place.sandbox.parts(&root).len() + place.sandbox.markers(&root).len();
    let is_right = found.trim() == expected.trim() && unsaid.is_empty() && (leftovers == 0 || ran.code != 0);
    (!is_right).then(|| {
        format!(
            "{}\n  {}\n  expected {expected}\n  found    {found}\n  unsaid {unsaid:?}, left {leftovers}\n  {said}",
            row.name, row.line
        )
    })
}

#[test]
fn names_are_links_and_what_is_not_ours_is_left_alone() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("bin")).unwrap();
    let ran = sandbox.ok(["names", "bin"]);
    assert_eq!(ran.stdout.lines().count(), 2, "{}", ran.stdout);
    for name in ["bbcp", "globus-url-copy"] {
        assert_eq!(fs::canonicalize(sandbox.path("bin").join(name)).unwrap(), fs::canonicalize(program()).unwrap());
    }
    sandbox.ok(["names", "bin"]);
    fs::remove_file(sandbox.path("bin/globus-url-copy")).unwrap();
    fs::write(sandbox.path("bin/globus-url-copy"), "theirs").unwrap();
    fs::remove_file(sandbox.path("bin/bbcp")).unwrap();
    sandbox.run(["names", "bin"]).failed_with(11, &["bin/globus-url-copy is there", "no link was made"]);
    assert!(!sandbox.path("bin/bbcp").exists(), "all or none");
    assert_eq!(fs::read(sandbox.path("bin/globus-url-copy")).unwrap(), b"theirs");
    sandbox.run(["names", "none"]).failed_with(11, &["none"]);
    sandbox.run(["names", "far:bin"]).failed_with(2, &["names makes links in a directory here"]);
}

#[test]
fn refusals_name_the_flag_in_the_style_of_the_program_and_what_to_type() {
    let place = Place::new();
    let root = place.directory("work");
    for (line, code, said) in [
        ("bbcp -Q a localhost:@/out/", 255, "bbcp: -Q is no flag of bbcp"),
        ("bbcp -vQ a localhost:@/out/", 255, "bbcp: -Q is no flag of bbcp"),
        ("bbcp -s", 1, "bbcp: -s needs a word behind it"),
        ("bbcp -s 0 a localhost:@/out/", 1, "bbcp: -s 0: a number from 1 to 64 is expected"),
        ("bbcp -w 2Q a localhost:@/out/", 1, "bbcp: -w 2Q"),
        ("bbcp -L x a localhost:@/out/", 1, "carrack copy --timeline FILE"),
        ("bbcp --symlinks ignore -r tree localhost:@/out/", 1, "bbcp: -@ ignore"),
        ("bbcp -S \"rsh %H bbcp\" localhost:@/a @/out/", 1, "it has to begin with ssh"),
        ("bbcp -E md5= localhost:@/a @/out/", 1, "carrack sum HOST:PATH"),
        ("bbcp localhost:@/*/x @/out/", 1, "wildcards are taken in the last name"),
        ("bbcp -N io a b localhost:c", 1, "one source is expected"),
        ("bbcp -C @/none a localhost:@/out/", 1, "bbcp: -C"),
        ("bbcp -l @/none/log a localhost:@/out/", 2, "cannot append to"),
        ("bbcp -+ a localhost:@/out/", 1, "hint: leave it out"),
        ("globus-url-copy -p 0 file://@/a file://@/out/a", 1, "a number from 1 on is expected"),
        ("globus-url-copy -P cat file://@/a file://@/out/a", 1, "PROGRAM | carrack - DST"),
        ("globus-url-copy -nope file://@/a file://@/out/a", 1, "argument #1 (-nope) : unknown option"),
        ("globus-url-copy -vb -p", 1, "argument #2 (-p) : a word is missing"),
        ("globus-url-copy file://@/a gsiftp://host:2811/x", 1, "sshftp://host/x"),
        ("globus-url-copy ftp://host/x file://@/out/x", 1, "nothing else is tried in its place"),
        ("globus-url-copy -f @/none", 1, "cannot read"),
        ("globus-url-copy -df @/dump file://@/a file://@/out/a", 1, "--failed-list"),
        ("globus-url-copy file://@/a http://host/x", 1, "http: is not spoken here"),
        ("globus-url-copy file://@/tree/ file://@/out/new", 1, "a directory ends with a slash"),
        ("globus-url-copy sshftp://localhost:1/@/a sshftp://localhost:2/@/out/a", 1, "one ssh reaches both hosts"),
    ] {
        let ran = place.run(&root, line);
        ran.failed_with(code, &[said]);
        assert_eq!(effects(&root), "", "{line}");
    }
    for line in ["bbcp -h", "bbcp -#", "bbcp '-$'", "globus-url-copy -help", "globus-url-copy -version"] {
        let ran = place.run(&root, &line.replace('\'', ""));
        assert!(ran.code == 0 && !ran.stdout.is_empty() && ran.stderr.is_empty(), "{line}: {}", ran.stderr);
    }
    drop(place.far);
}

/// Names with ends of lines, quotes and wildcards are copied as they are, by both programs; a name that begins with a
/// dash stands behind `--`, or has a directory.
#[test]
fn names_that_harm_are_copied_as_they_are() {
    let place = Place::new();
    let root = place.directory("work");
    let names = ["new\nline", "$(touch canary)", "-f", "a b", "it's", "[a]", "\u{1b}[2J", "@x:y", "zero:5"];
    for name in names {
        fs::write(root.join(name), name).unwrap();
    }
    let out = root.join("out");
    let target = format!("localhost:{}/", out.display());
    let run = |line: Vec<String>| ran(place.command(&root, &line).output_in_time().unwrap());
    for name in names {
        let plain = if name.contains(':') { format!("./{name}") } else { name.to_owned() };
        let ran = run(["bbcp", "-v", "--", &plain, &target].map(str::to_owned).to_vec());
        assert_eq!(ran.code, 0, "{name:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains('\u{1b}'), "{name:?}: {}", ran.stderr);
        assert_eq!(fs::read_to_string(out.join(name)).unwrap(), name);
        fs::remove_file(out.join(name)).unwrap();
        let encoded: String = name.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let (from, to) =
            (format!("file://{}/{encoded}", root.display()), format!("sshftp://localhost{}/", out.display()));
        let ran = run(["globus-url-copy", "-vb", &from, &to].map(str::to_owned).to_vec());
        assert_eq!(ran.code, 0, "{name:?}: {}", ran.stderr);
        assert!(!ran.stdout.contains('\u{1b}'), "{name:?}: {}", ran.stdout);
        assert_eq!(fs::read_to_string(out.join(name)).unwrap(), name);
    }
    assert!(!root.join("canary").exists() && !place.far.home.join("canary").exists());
    fs::create_dir(root.join("globs")).unwrap();
    fs::write(root.join("globs/[a]"), "brackets").unwrap();
    fs::write(root.join("globs/a"), "none").unwrap();
    let ran = run(["bbcp", &format!("localhost:{}/globs/[[]a]", root.display()), "again"].map(str::to_owned).to_vec());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(fs::read_to_string(root.join("again/[a]")).unwrap(), "brackets");
    assert_eq!(fs::read_dir(root.join("again")).unwrap().count(), 1);
}

/// A name keeps its old file until the new one is whole, with `-f` too; what a failing program printed is not copied.
#[test]
fn forced_copy_that_fails_leaves_the_old_file() {
    let place = Place::new();
    let root = place.directory("work");
    before(&root, "out/a=old");
    for (line, said) in [
        ("bbcp -f -N i \"sh -c 'cat a; exit 3'\" localhost:@/out/a", "exit status: 3"),
        ("bbcp -f -N i none/such localhost:@/out/a", "cannot start"),
        ("bbcp -f -E md5=00000000000000000000000000000000 a localhost:@/out/a", "was expected"),
        ("bbcp -f none localhost:@/out/a", "none"),
    ] {
        let ran = place.run(&root, line);
        assert_ne!(ran.code, 0, "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{line}: {}", ran.stderr);
        assert_eq!(effects(&root), "out/a 644 now old", "{line}");
    }
    let ran = place.run(&root, "bbcp -f -N o a \"sh -c 'cat >/dev/null; exit 4'\"");
    ran.failed_with(5, &["exit status: 4"]);
}

/// Progress and rates as scripts read them, of a copy that takes a while.
#[test]
fn progress_lines_are_those_that_scripts_read() {
    let place = Place::new();
    let root = place.directory("work");
    fs::write(root.join("large"), vec![7; 6 << 20]).unwrap();
    let ran = place.run(&root, "bbcp -P 1 -x 2M large localhost:@/out/");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let is_progress = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        matches!(words[..], ["bbcp:", date, time, percent, "done;", _, unit]
            if date.len() == 6 && time.len() == 8 && percent.ends_with('%') && unit.ends_with("B/s"))
    };
    assert!(ran.stderr.lines().any(|line| is_progress(&line)), "{}", ran.stderr);
    let ran = place.run(&root, "globus-url-copy -vb file://@/large sshftp://localhost@/out/other");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.split(['\n', '\r']).collect();
    assert_eq!(lines[0], format!("Source: file://{}/", root.display()));
    assert_eq!(lines[1], format!("Dest:   sshftp://localhost{}/out/", root.display()));
    assert!(lines.contains(&"  large  ->  other"), "{}", ran.stdout);
    let rate = lines.iter().rev().find(|line| line.contains("MB/sec")).unwrap();
    let words: Vec<&str> = rate.split_whitespace().collect();
    assert!(matches!(words[..], ["6291456", "bytes", _, "MB/sec", "avg", _, "MB/sec", "inst"]), "{rate}");
    tool(Command::new("cmp").arg(root.join("large")).arg(root.join("out/other")));
}
