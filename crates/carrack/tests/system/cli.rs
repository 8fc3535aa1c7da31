//! The command line itself: what programs read of it, what people see of it, and what it refuses.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::node::Node;
use crate::support::running::InTime;
use crate::support::{Sandbox, same_tree, slim_program, tool, tree};

const VERBS: [&str; 31] = [
    "copy",
    "sync",
    "check",
    "gc",
    "ls",
    "stat",
    "mkdir",
    "mv",
    "rm",
    "du",
    "sum",
    "verify",
    "receipt",
    "names",
    "bench",
    "doctor",
    "report",
    "fan",
    "serve",
    "token",
    "tuning",
    "task",
    "endpoint",
    "timer",
    "service",
    "login",
    "logout",
    "whoami",
    "agent",
    "completions",
    "man",
];

/// Every line must be an object with the fields that all have; the last, and only that, a summary.
fn objects(text: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let all: Vec<Value> = text.lines().map(parse).collect();
    for object in &all {
        assert_eq!(object["v"], 1, "{object}");
        assert!(
            object["type"].is_string() && object["time"].as_str().is_some_and(|time| time.ends_with('Z')),
            "{object}"
        );
    }
    let summaries = all.iter().filter(|object| object["type"] == "summary").count();
    assert_eq!((summaries, &all.last().unwrap()["type"]), (1, &"summary".into()), "{text}");
    all
}

#[test]
fn json_is_one_object_a_line_and_a_summary_last() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    tree::mixed(&sandbox.path("tree"));
    let ran = sandbox.ok(["tree", &node.at("there/"), &node.token(), "--json", "--stats=1ms"]);
    assert_eq!(ran.stderr, "");
    let events = objects(&ran.stdout);
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((of("resolved"), of("link"), of("error")), (1, 1, 0));
    let files = tree::walk(&sandbox.path("tree")).iter().filter(|path| !path.is_dir() || path.is_symlink()).count();
    assert_eq!(of("item"), files);
    let summary = events.last().unwrap();
    assert_eq!((&summary["exit_code"], &summary["verb"], &summary["error"]), (&0.into(), &"copy".into(), &Value::Null));
    assert_eq!(summary["files"].as_u64().unwrap() + summary["symlinks"].as_u64().unwrap(), files as u64);
    let published = events.iter().filter(|event| event["type"] == "item");
    for item in published.filter(|item| item["kind"] == "file") {
        assert_eq!(
            (item["blake3"].as_str().map(str::len), &item["outcome"]),
            (Some(64), &"published".into()),
            "{item}"
        );
        assert!(item["path"].is_string() != item["path_b64"].is_string(), "{item}");
    }
    // Failures, of items and of the whole.
    tool(Command::new("mkfifo").arg(sandbox.path("tree/fifo")));
    let failed = sandbox.run(["tree", &node.at("there/"), &node.token(), "--json"]);
    let events = objects(&failed.stdout);
    assert_eq!((failed.code, &events.last().unwrap()["exit_code"]), (23, &23.into()));
    assert!(events.iter().any(|event| event["error"]["code"] == "special-file"));
    let failed = sandbox.run(["absent", &node.at("there/"), &node.token(), "--json"]);
    let events = objects(&failed.stdout);
    assert_eq!((failed.code, &events.last().unwrap()["exit_code"]), (11, &11.into()));
    assert!(events.iter().any(|event| event["type"] == "error" && event["code"] == "not-found"));
    for verb in ["ls", "stat", "sum"] {
        objects(&sandbox.ok([verb, "--json", "tree/one"]).stdout);
        objects(&sandbox.run([verb, "--json", "absent"]).stdout);
    }
    objects(&sandbox.ok(["mkdir", "--json", "new"]).stdout);
    objects(&sandbox.ok(["mv", "--json", "new", "newer"]).stdout);
    objects(&sandbox.ok(["rm", "-r", "--json", "newer"]).stdout);
}

#[test]
fn dry_run_counts_and_moves_nothing() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    tree::mixed(&sandbox.path("tree"));
    for destination in ["here/new".to_string(), node.at("new/")] {
        let ran = sandbox.ok(["-n", "tree", &destination, &node.token()]);
        assert!(ran.stderr.contains("would copy 9 files, 2 symbolic links"), "{}", ran.stderr);
        let json = sandbox.ok(["--dry-run", "tree", "tree/one", "random:5", &destination, &node.token(), "--json"]);
        let events = objects(&json.stdout);
        let summary = events.last().unwrap();
        let expected: u64 = tree::walk(&sandbox.path("tree"))
            .iter()
            .filter_map(|path| path.symlink_metadata().ok().filter(|found| found.is_file()))
            .map(|found| found.len())
            .sum();
        assert_eq!((&summary["dry_run"], &summary["files"]), (&true.into(), &11.into()));
        assert_eq!((&summary["symlinks"], &summary["bytes"]), (&2.into(), &(expected + 1 + 5).into()));
    }
    assert!(!sandbox.path("here").exists() && tree::walk(&sandbox.path("root")).is_empty());
}

#[test]
fn manifest_is_what_b3sum_checks() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    tree::mixed(&sandbox.path("tree"));
    for name in ["back\\slash", "both\\\nof them", " lead", "trail ", "-c", "sub/*"] {
        sandbox.write(format!("tree/{name}"), name);
    }
    let ran = sandbox.ok(["tree", &node.at("there/"), &node.token(), "--manifest=sums"]);
    // What b3sum cannot read is left out, and that is said.
    assert!(ran.stderr.contains("1 file left out of the manifest"), "{}", ran.stderr);
    let sums = sandbox.path("sums");
    let checked = tool(Command::new("b3sum").arg("-c").arg(&sums).current_dir(sandbox.path("root/there")));
    assert_eq!(checked.lines().filter(|line| line.ends_with(": OK")).count(), 14, "{checked}");
    // On standard output, and nothing else there.
    let printed = sandbox.ok(["tree", &node.at("there/"), &node.token(), "--manifest=-"]).stdout;
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&printed), sorted(&fs::read_to_string(&sums).unwrap()));
    // Of one file under another name: the name that it has got.
    sandbox.ok(["tree/one", &node.at("renamed"), &node.token(), "--manifest=one"]);
    tool(Command::new("b3sum").arg("-c").arg(sandbox.path("one")).current_dir(sandbox.path("root")));
    sandbox.run(["tree/one", "-", "--manifest=-"]).failed_with(2, &["standard output"]);
    sandbox.run(["tree/one", "two", "--manifest=absent/sums"]).failed_with(11, &["absent/sums"]);
    assert!(!sandbox.path("two").exists());
}

#[test]
fn quiet_is_silent_and_the_log_is_not() {
    let sandbox = Sandbox::new();
    sandbox.write("tree/a", "a");
    let ran = sandbox.ok(["-q", "tree", "there", "--log-file=log"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    let log = fs::read_to_string(sandbox.path("log")).unwrap();
    assert!(log.contains("copied 1 file"), "{log}");
    let failed = sandbox.run(["-q", "absent", "there", "--log-file=log"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (11, ""));
    assert!(failed.stderr.contains("absent"), "{}", failed.stderr);
    let longer = fs::read_to_string(sandbox.path("log")).unwrap();
    assert!(longer.starts_with(&log) && longer.contains("error: ") && longer.len() > log.len(), "{longer}");
    let loud = sandbox.ok(["-v", "tree", "there", "--no-progress"]);
    assert!(
        loud.stdout.is_empty() && loud.stderr.contains("tree/a") && loud.stderr.contains("verified: BLAKE3"),
        "{}",
        loud.stderr
    );
}

#[test]
fn flags_of_how_leave_what_arrives_the_same() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    tree::mixed(&sandbox.path("tree"));
    for (index, flags) in [
        &["--bwlimit=200MB"][..],
        &["--bwlimit=0"],
        &["--verify=disk"],
        &["--verify=none"],
        &["--verify=none", "--digest=none"],
        &["--digest=adler32,crc32c"],
        &["--block=64K", "--streams=3"],
        &["--block=64M", "--streams=auto"],
        &["--link=direct"],
        &["--link=reverse"],
        &["--link=tunnel"],
        &["--encrypt=none", "--verify=disk", "--block=1M"],
        &["-P"],
        &["--stats=0"],
    ]
    .iter()
    .enumerate()
    {
        let there = format!("there-{index}");
        let token = node.token();
        sandbox.ok([&["tree", &node.at(&format!("{there}/")), &token][..], flags].concat());
        same_tree(&sandbox.path("tree"), &sandbox.path("root").join(there).join("tree"));
    }
    let mut command = sandbox.carrack();
    command.env("CARRACK_STREAMS", "3").env("CARRACK_ENCRYPT", "none").args([
        "tree",
        &node.at("env/"),
        &node.token(),
        "--json",
    ]);
    let output = command.output_in_time().unwrap();
    let events = objects(&String::from_utf8(output.stdout).unwrap());
    let link = events.iter().find(|event| event["type"] == "link").unwrap();
    assert_eq!((&link["streams"], &link["cipher"]), (&3.into(), &"none".into()));
}

#[test]
fn usage_that_cannot_be_meant_ends_in_2_and_does_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "a");
    for words in [
        &["a"][..],
        &["a", "b", "--no-such-flag"],
        &["a", "b", "--streams=0"],
        &["a", "b", "--streams=257"],
        &["a", "b", "--streams=-1"],
        &["a", "b", "--block=3M"],
        &["a", "b", "--block=32K"],
        &["a", "b", "--block=128M"],
        &["a", "b", "--bwlimit=fast"],
        &["a", "b", "--verify=maybe"],
        &["a", "b", "--digest=md5"],
        &["a", "b", "--digest=none"],
        &["a", "b", "--encrypt=rot13"],
        &["a", "b", "--link=carrier-pigeon"],
        &["a", "b", "--ports=9-1"],
        &["a", "b", "--connect-timeout=0"],
        &["a", "b", "--no-clobber", "--update"],
        &["a", "null:", "zero:5"],
        &["a", "zero:5"],
        &["null:", "b"],
        &["-", "-", "b"],
        &["a", "a", "-"],
        &["", "b"],
        &["a", "-", "--json"],
        &["a", "host:", "other:x", "b"],
        &["ls", "null:"],
        &["ls", "a", "b"],
        &["mv", "a"],
        &["mv", "a", "b", "c"],
        &["rm"],
        &["sum", "--digest=none", "a"],
        &["serve", "--node-only"],
        &["serve", "--root=.", "--listen=nowhere"],
        &["serve", "--root=.", "--anonymous", "--token-file=t"],
        &["completions", "tcsh"],
        &["man", "a", "b"],
        &["a", "carrack://", "--json"],
        &["a", "carrack://host/x#sha256:12", "--json"],
    ] {
        let ran = sandbox.run(words);
        assert_eq!(ran.code, 2, "{words:?}: {}{}", ran.stdout, ran.stderr);
        assert!(!ran.stderr.is_empty(), "{words:?}");
    }
    assert_eq!(fs::read_dir(sandbox.path(".")).unwrap().count(), 2);
    let mut command = sandbox.carrack();
    let output = command.env("CARRACK_STREAMS", "many").args(["a", "b"]).output_in_time().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("CARRACK_STREAMS"));
}

#[test]
fn variables_that_would_do_nothing_are_told_or_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "a");
    let with = |name: &str, words: &[&str]| {
        crate::support::ran(sandbox.carrack().env(name, "1").args(words).output_in_time().unwrap())
    };
    with("CARRACK_DRY_RUN", &["a", "b"]).failed_with(2, &["CARRACK_DRY_RUN", "--dry-run"]);
    assert!(!sandbox.path("b").exists());
    let told = with("CARRACK_NOSUCH", &["a", "b"]);
    assert!(told.code == 0 && told.stderr.contains("CARRACK_NOSUCH"), "{}", told.stderr);
    let known = with("CARRACK_STREAMS", &["a", "b"]);
    assert!(known.code == 0 && !known.stderr.contains("CARRACK_"), "{}", known.stderr);
}

#[test]
fn completions_and_manual_pages_know_every_verb() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = sandbox.ok(["completions", shell]).stdout;
        for word in VERBS.iter().chain(&["streams", "token-file", "read-only"]) {
            assert!(script.contains(word), "{word} is not in the script for {shell}");
        }
        assert!(!script.contains("speaks"), "{shell}: a flag that is not for people");
    }
    let script = sandbox.write("completion", sandbox.ok(["completions", "bash"]).stdout);
    tool(Command::new("bash").arg("-n").arg(script));
    let page = sandbox.ok(["man"]).stdout;
    assert!(page.contains(".TH carrack 1") && page.contains("Exit codes"), "{page}");
    sandbox.ok(["man", "pages/made"]);
    let mut pages: Vec<String> = fs::read_dir(sandbox.path("pages/made"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let mut expected: Vec<String> =
        VERBS.iter().map(|verb| format!("carrack-{verb}.1")).chain(["carrack.1".to_string()]).collect();
    expected.extend(["add", "list", "rm"].map(|verb| format!("carrack-token-{verb}.1")));
    expected.extend(["clear", "show"].map(|verb| format!("carrack-tuning-{verb}.1")));
    expected.extend(
        ["cpu", "diff", "disk", "ladder", "list", "load", "net", "peers", "show"]
            .map(|verb| format!("carrack-bench-{verb}.1")),
    );
    let below = [
        ("receipt", "bag forget keys list show trust"),
        ("task", "cancel clone events items list pause preview receipt resume retry show submit update wait watch"),
        ("endpoint", "add edit list rm show test"),
        ("agent", "list add"),
        ("timer", "create edit list pause resume rm run show"),
        (
            "service",
            "backup check config config-check config-show faults restore status token token-create token-list token-revoke",
        ),
        ("service", "user user-add user-edit user-link user-list user-logout user-password"),
    ];
    for (verb, words) in below {
        expected.extend(words.split(' ').map(|word| format!("carrack-{verb}-{word}.1")));
    }
    expected.sort();
    assert_eq!(pages, expected);
    for page in pages {
        let text = fs::read_to_string(sandbox.path("pages/made").join(&page)).unwrap();
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{page}");
    }
}

#[test]
fn version_and_help() {
    let sandbox = Sandbox::new();
    let version = sandbox.ok(["-V"]).stdout;
    // carrack 0.1.0 (COMMIT) protocol 1, or (COMMIT, modified)
    let (number, rest) = version.strip_prefix("carrack ").unwrap().split_once(" (").unwrap();
    let (commit, revision) = rest.trim_end().split_once(") protocol ").unwrap();
    assert!(number.split('.').count() == 3 && !commit.is_empty(), "{version}");
    assert!(revision.parse::<u32>().is_ok(), "{version}");
    let long = sandbox.ok(["--version"]).stdout;
    let agents = long.strip_prefix(&version).unwrap().strip_prefix("agents inside: ").unwrap();
    assert_eq!(agents.trim() == "none", slim_program().is_none(), "{long}");
    for verb in VERBS {
        // The -h of `du` and `ls` is that of every du and ls: sizes for people.
        let flag = if ["du", "ls"].contains(&verb) { "--help" } else { "-h" };
        let (short, long) = (sandbox.ok([verb, flag]).stdout, sandbox.ok(["help", verb]).stdout);
        assert!(short.contains("Usage: carrack") && long.contains("Usage: carrack"), "{verb}: {short}{long}");
    }
    let help = sandbox.ok(["--help"]).stdout;
    assert!(VERBS.iter().all(|verb| help.contains(verb)) && help.contains("Exit codes:"), "{help}");
    let nothing = sandbox.run(Vec::<String>::new());
    nothing.failed_with(2, &["Usage"]);
}

#[test]
fn words_that_are_no_verbs_and_files_that_look_like_hosts_are_told() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "a");
    sandbox.run(["lss", "a"]).failed_with(2, &["lss is no verb", "carrack ls"]);
    sandbox.run(["remove", "a"]).failed_with(2, &["remove is no verb", "carrack rm"]);
    sandbox.run(["help", "lss"]).failed_with(2, &["carrack ls --help"]);
    assert!(sandbox.path("a").exists());
    // A file of that name is a source.
    sandbox.write("lss", "x");
    sandbox.ok(["lss", "copied"]);
    sandbox.write("c:olon", "x");
    sandbox.run(["-e", "false", "c:olon", "here"]).failed_with(10, &["the host c;", "typed ./c:olon"]);
    let quiet = sandbox.run(["-q", "-e", "false", "c:olon", "here"]);
    assert!(!quiet.stderr.contains("./c:olon"), "{}", quiet.stderr);
    sandbox.ok(["./c:olon", "here"]);
    sandbox.run(["-P", "2222", "a", "b"]).failed_with(2, &["-P draws the bar, and 2222", "-e 'ssh -p 2222'"]);
    sandbox.run(["a", "sftp://box/b"]).failed_with(2, &["type box:/b (over ssh)"]);
}

/// Each line is one that people type from habit of another program, where it does something else.
#[test]
fn lines_of_other_programs_have_no_other_effect_without_a_word() {
    let sandbox = Sandbox::new();
    sandbox.write("tree/a.txt", "a");
    sandbox.write("tree/sub/b.txt", "b");
    sandbox.write("key", "-----BEGIN OPENSSH PRIVATE KEY-----\n");
    sandbox.write("2024/c", "c");
    sandbox.write("list", "tree\n");
    for (line, said) in [
        (&["-i", "key", "tree", "none"][..], &["-i prints what changes, and key would be copied", "ssh -i KEY"][..]),
        (&["-I", "list", "none"], &["-I sends every file, and list would be copied", "--files-from"]),
        (&["sync", "--delete", "--include", "*.txt", "tree/", "none"], &["--include alone leaves nothing out", "*/"]),
        (&["--exclude", "*.{txt,md}", "tree", "none"], &["{txt,md} is no choice", "a rule for each"]),
        (&["--backup-dir", "remote:old", "tree", "none"], &["remote:old looks like a path on a host", "below DST"]),
        (&["--inplace", "--backup", "tree", "none"], &["error: what is written in place is not kept"]),
        (&["--bwlimit", "10M:1M", "tree", "none"], &["one rate holds"]),
        (&["--bwlimit", "off", "tree", "none"], &["write 0 for no limit"]),
        (&["--timeout=0", "tree", "none"], &["or the flag is left out"]),
        (&["-a", "--no-o", "tree", "none"], &["contradict each other", "leave -a out"]),
        (&["-rt", "tree", "none"], &["-t is a flag of rsync", "leave it out"]),
        (&["--fuzzy", "tree", "none"], &["hint: leave it out"]),
    ] {
        let ran = sandbox.run(line);
        ran.failed_with(2, said);
        assert!(!ran.stderr.contains("--verify none"), "{}", ran.stderr);
        assert!(!sandbox.path("none").exists(), "{line:?}");
    }
    sandbox.ok(["-avzh", "tree/", "letters"]);
    sandbox.ok(["sync", "-rlptgoD", "tree/", "joined"]);
    sandbox.ok(["-h", "--no-o", "tree/", "beside"]);
    for copy in ["letters", "joined", "beside"] {
        assert_eq!(fs::read(sandbox.path(copy).join("sub/b.txt")).unwrap(), b"b", "{copy}");
    }
    sandbox.ok(["--stats", "2024", "year"]);
    assert!(sandbox.path("year/2024/c").exists());
    sandbox.ok(["--backup-dir", "before_12:30", "tree/", "joined"]);
    let alone = sandbox.ok(["-n", "--include", "*.txt", "tree/", "none"]);
    assert!(alone.stderr.contains("note: --include alone leaves nothing out"), "{}", alone.stderr);
    let top = sandbox.ok(["--include", "*.txt", "--exclude", "*", "tree/", "top"]);
    assert!(top.stderr.contains("leaves directories out, too") && !sandbox.path("top/sub").exists(), "{}", top.stderr);
    let all = sandbox.ok(["--include", "*/", "--include", "*.txt", "--exclude", "*", "tree/", "all"]);
    assert!(!all.stderr.contains("note:") && sandbox.path("all/sub/b.txt").exists(), "{}", all.stderr);
    let once = sandbox.ok(["sync", "--max-delete", "1", "tree/", "joined"]);
    assert_eq!(once.stderr.matches("mean nothing without --delete").count(), 1, "{}", once.stderr);
}

#[test]
fn ls_is_sorted_and_verbs_tell_what_they_did_where_that_is_asked_for() {
    let sandbox = Sandbox::new();
    for (name, size, age) in [("b", 3, 30), ("a", 2000, 10), (".c", 1, 20)] {
        let path = sandbox.write(format!("d/{name}"), vec![7; size]);
        let time = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }
    let listed = |words: &[&str]| sandbox.ok([&["ls"], words].concat()).stdout.replace('\n', " ");
    assert_eq!(listed(&["d"]), ".c a b ");
    assert_eq!(listed(&["-1a", "d"]), ".c a b ");
    assert_eq!(listed(&["-t", "d"]), "a .c b ");
    assert_eq!(listed(&["-tr", "d"]), "b .c a ");
    assert_eq!(listed(&["-S", "d"]), "a b .c ");
    assert!(listed(&["-lhS", "d"]).contains(" 2.0 KiB "), "{}", listed(&["-lhS", "d"]));
    assert!(listed(&[]).contains("d "), "{}", listed(&[]));
    let told = |words: &[&str], text: &str| {
        let ran = sandbox.ok(words.iter().copied());
        assert!(ran.stderr.contains(text), "{words:?}: {}", ran.stderr);
    };
    told(&["mkdir", "-v", "e"], "made: e");
    told(&["mv", "-v", "e", "f"], "renamed: e -> f");
    told(&["-n", "-v", "d", "copied"], "would copy: d/b");
    told(&["rm", "-rv", "d"], "removed: d (4 items)");
}

#[test]
fn hangup_ends_a_copy_with_a_sentence() {
    use std::io::{BufRead, BufReader, Read};
    let sandbox = Sandbox::new();
    let mut command = sandbox.carrack();
    command.args(["-", "y"]).stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("-> y"), "{line}");
    crate::support::process::signal(child.id(), "HUP");
    said.read_to_string(&mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(75), "{line}");
    assert!(line.contains("the session that started this has ended"), "{line}");
}
