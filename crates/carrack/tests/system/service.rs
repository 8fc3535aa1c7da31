//! The service of managed transfers, by the command line alone: from nothing to tasks that are finished and verified.

mod bench;
mod checks;
mod confined;
mod crossed;
mod documents;
mod downloads;
mod faults;
mod files;
mod guards;
mod in_flight;
mod judge;
mod leftovers;
mod login;
mod operation;
mod paths;
mod receipts;
mod rights;
mod secrets;
mod uploads;

use std::fs;

use crate::support::node::Node;
use crate::support::running::InTime;
use crate::support::service::{Service, object};
use crate::support::sshd::Sshd;
use crate::support::{Sandbox, same_tree, tree, wait_until};

/// An endpoint at a node.
fn add_node(sandbox: &Sandbox, name: &str, node: &Node) {
    let token = node.token_file.display().to_string();
    sandbox.ok(["endpoint", "add", name, &node.at(""), "--token-file", &token]);
}

#[test]
fn task_between_two_nodes_is_finished_and_verified_by_a_few_commands() {
    let sandbox = Sandbox::new();
    let (one, two) = (Node::start(&sandbox, "one", &[]), Node::start(&sandbox, "two", &["--dial-to=127.0.0.0/8"]));
    tree::mixed(&sandbox.path("one/run42"));
    let service = Service::start(&sandbox, &[]);
    add_node(&sandbox, "one", &one);
    add_node(&sandbox, "two", &two);
    let submitted =
        sandbox.ok(["task", "submit", "@one:/run42", "@two:/", "--label", "run 42", "--wait", "--timeout=120s"]);
    let id = submitted.stdout.trim();
    same_tree(&sandbox.path("one/run42"), &sandbox.path("two/run42"));
    let task = object(&sandbox, &["task", "show", id]);
    assert_eq!((&task["state"], &task["request"]["label"]), (&"SUCCEEDED".into(), &"run 42".into()), "{task}");
    assert_eq!(task["progress"]["items_done"], task["progress"]["items_total"], "{task}");
    assert_eq!(task["progress"]["bytes_verified"], task["progress"]["bytes_moved"], "{task}");
    let listed = sandbox.ok(["task", "list", "--label", "run"]).stdout;
    assert!(listed.contains(id) && listed.contains("SUCCEEDED"), "{listed}");
    assert_eq!(sandbox.ok(["task", "list", "--state", "FAILED"]).stdout, "");
    let items = sandbox.ok(["task", "items", id, "--state", "done", "--csv"]).stdout;
    let files =
        tree::walk(&sandbox.path("one/run42")).iter().filter(|path| path.is_file() && !path.is_symlink()).count();
    assert_eq!(items.lines().filter(|line| line.contains(",file,")).count(), files, "{items}");
    let events = sandbox.ok(["task", "events", id]).stdout;
    for kind in [" submitted ", " started ", " ended "] {
        assert!(events.contains(kind), "{kind} is not in {events}");
    }
    // Those who come by the network are not known.
    let url = service.told("service ").trim_start_matches("https://");
    assert!(
        url.starts_with("127.0.0.1:") || service.said.iter().any(|line| line.contains("https://127.0.0.1:")),
        "{url}"
    );
}

#[test]
fn task_that_is_submitted_twice_under_one_id_is_one_task() {
    let sandbox = Sandbox::new();
    let _service = Service::start(&sandbox, &[]);
    sandbox.write("from/a", "a");
    fs::create_dir(sandbox.path("to")).unwrap();
    let submit =
        |label: &str| sandbox.run(["task", "submit", "from/", "to/", "--submission-id=once", "--label", label]);
    let (first, second) = (submit("x"), submit("x"));
    assert_eq!((first.code, second.code, &first.stdout), (0, 0, &second.stdout), "{}{}", first.stderr, second.stderr);
    assert!(second.stderr.contains("no second task"), "{}", second.stderr);
    submit("y").failed_with(2, &["--submission-id"]);
    sandbox.ok(["task", "wait", first.stdout.trim(), "--timeout=120s"]);
    assert_eq!(fs::read(sandbox.path("to/a")).unwrap(), b"a");
    assert_eq!(sandbox.ok(["task", "list"]).stdout.lines().count(), 2);
}

#[test]
fn wait_exits_by_how_the_task_ended() {
    let sandbox = Sandbox::new();
    let _service = Service::start(&sandbox, &[]);
    sandbox.write("from/a", "a");
    let submit = |words: &[&str]| {
        let ran = sandbox.ok(["task", "submit"].iter().chain(words));
        ran.stdout.trim().to_owned()
    };
    // A source that is missing cannot come by itself: it fails at once.
    let absent = sandbox.path("absent").display().to_string();
    let failed = submit(&[&absent, "to/"]);
    sandbox.run(["task", "wait", &failed, "--timeout=120s"]).failed_with(1, &["FAILED", "absent"]);
    let partial = submit(&["from/a", &absent, "to"]);
    sandbox.run(["task", "wait", &partial, "--timeout=120s"]).failed_with(23, &["PARTIAL"]);
    let skipped = submit(&["from/a", &absent, "to", "--skip-source-errors"]);
    sandbox.ok(["task", "wait", &skipped, "--timeout=120s"]);
    // It would take hours.
    let long = submit(&["random:1T", "null:", "--bwlimit=1MB"]);
    sandbox.run(["task", "wait", &long, "--timeout=1s"]).failed_with(30, &["has not ended"]);
    sandbox.ok(["task", "cancel", &long]);
    sandbox.run(["task", "wait", &long, "--timeout=120s"]).failed_with(20, &["CANCELLED"]);
    sandbox.run(["task", "wait", "no-such-task"]).failed_with(11, &["no such"]);
}

#[test]
fn task_is_paused_and_goes_on_and_outlives_the_service() {
    let sandbox = Sandbox::new();
    let mut service = Service::start(&sandbox, &[]);
    sandbox.write("from/large", tree::bytes(24 << 20, 7));
    let id = sandbox.ok(["task", "submit", "from/large", "to", "--bwlimit=4MB"]).stdout.trim().to_owned();
    let state = |sandbox: &Sandbox| object(sandbox, &["task", "show", &id])["state"].as_str().unwrap().to_owned();
    let moved =
        |sandbox: &Sandbox| object(sandbox, &["task", "show", &id])["progress"]["bytes_moved"].as_u64().unwrap_or(0);
    wait_until("bytes move", || moved(&sandbox) > 0);
    sandbox.ok(["task", "pause", &id]);
    wait_until("the task is paused", || state(&sandbox) == "PAUSED");
    sandbox.ok(["task", "resume", &id]);
    wait_until("the task goes on", || state(&sandbox) == "ACTIVE");
    service.kill();
    drop(sandbox.run(["task", "list"])); // Nobody answers.
    sandbox.run(["task", "show", &id]).failed_with(10, &["carrack serve"]);
    let _next = Service::start(&sandbox, &[]);
    sandbox.ok(["task", "wait", &id, "--timeout=120s"]);
    let task = object(&sandbox, &["task", "show", &id]);
    assert_eq!((&task["state"], &task["fence"]), (&"SUCCEEDED".into(), &2.into()), "{task}");
    assert_eq!(fs::read(sandbox.path("from/large")).unwrap(), fs::read(sandbox.path("to")).unwrap());
}

#[test]
fn task_keeps_its_estimate_and_shows_beside_it_what_it_took() {
    let sandbox = Sandbox::new();
    let _service = Service::start(&sandbox, &[]);
    for name in ["from", "to"] {
        fs::create_dir(sandbox.path(name)).unwrap();
        sandbox.ok(["endpoint", "add", name, name]);
    }
    let sizes = [3, 900_000, 30, 20_000_000, 300_000, 5_000_000];
    let mut told = Vec::new();
    for (number, size) in sizes.into_iter().enumerate() {
        sandbox.write(format!("from/{number}/file"), vec![b'x'; size]);
        sandbox.write(format!("from/{number}/second"), "beside it");
        let words = [format!("@from:/{number}"), "@to:/".to_owned()];
        let promise = object(&sandbox, &["task", "submit", "--dry-run", &words[0], &words[1]]);
        let submitted = sandbox.ok(["task", "submit", "--estimate", "--wait", "--timeout=120s", &words[0], &words[1]]);
        let id = submitted.stdout.trim().to_owned();
        let task = object(&sandbox, &["task", "show", &id]);
        let estimate = &task["estimate"];
        assert_eq!((&estimate["bytes"], &estimate["items"]), (&(size as u64 + 9).into(), &3.into()), "{task}");
        // Nothing runs and nothing waits.
        assert_eq!(promise["earliest_start"], promise["expected_start"], "{promise}");
        assert!(promise["expected_start"].is_string() && estimate["latest_start"].is_string(), "{promise} {task}");
        let range = ["least", "most"].map(|end| estimate[format!("seconds_{end}")].as_f64());
        let promised = ["least", "most"].map(|end| promise[format!("expected_seconds_{end}")].as_f64());
        assert_eq!(range, promised, "{promise} {task}");
        let took = estimate["took_seconds"].as_f64().unwrap();
        let shown = sandbox.ok(["task", "show", &id]).stdout;
        assert!(shown.contains("  took: "), "{shown}");
        match range {
            [Some(least), Some(most)] => {
                assert!(number >= 3 && least <= most && most <= 3.0 * least + 3.0, "{task}");
                let is_kept = least <= took && took <= most;
                assert_eq!(shown.contains(", as was expected"), is_kept, "{shown}\n{task}");
            }
            _ => assert!(number < 3 && shown.contains("estimate: not known; made at "), "{shown}\n{task}"),
        }
        let events = sandbox.ok(["task", "events", &id, "--json"]).stdout;
        assert!(events.contains(&format!("\"took_seconds\":{took}")), "{took} is not in {events}");
        told.push((id, estimate.clone()));
    }
    // What was told stays as it was, whatever tasks have ended since; a clone counts as its task did.
    for (id, estimate) in &told {
        assert_eq!(object(&sandbox, &["task", "show", id])["estimate"], *estimate);
    }
    let clone = sandbox.ok(["task", "clone", &told[0].0]).stdout;
    let clone = object(&sandbox, &["task", "show", clone.trim()]);
    assert_eq!(clone["estimate"]["bytes"], 12, "{clone}");
    assert!(clone["estimate"]["seconds_most"].is_u64(), "{clone}");
}

#[test]
fn tasks_are_submitted_through_ssh_without_a_login() {
    let sandbox = Sandbox::new();
    let _service = Service::start(&sandbox, &[]);
    sandbox.write("from/a", "a");
    let sshd = Sshd::start(&sandbox);
    let words: Vec<&str> = sshd.rsh.trim_start_matches("--rsh=").split(' ').collect();
    let (from, to) = (sandbox.path("from/a"), sandbox.path("to"));
    // The account's own home is another one there: the service is named by its socket.
    let socket = sandbox.path("home/.local/state/carrack/service/service.sock");
    let line = format!(
        "carrack task submit --service {} --wait --timeout 120s {} {}",
        socket.display(),
        from.display(),
        to.display()
    );
    let output = std::process::Command::new(words[0]).args(&words[1..]).arg("far").arg(line).output_in_time().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read(to).unwrap(), b"a");
}

#[test]
fn what_was_mistyped_is_told_at_once() {
    let sandbox = Sandbox::new();
    sandbox.run(["login", "ada"]).failed_with(10, &["carrack serve"]);
    let _service = Service::start(&sandbox, &[]);
    sandbox.run(["login", "ada"]).failed_with(2, &["your account is known"]);
    fs::create_dir(sandbox.path("root")).unwrap();
    let added = sandbox.ok(["endpoint", "add", "lab", "root", "--users", "ada", "--users", "*"]);
    assert!(added.stderr.contains("note: there is no user ada") && !added.stderr.contains('*'), "{}", added.stderr);
    sandbox.ok(["service", "user", "add", "ada"]);
    let edited = sandbox.ok(["endpoint", "edit", "lab", "--users", "ada"]);
    assert!(!edited.stderr.contains("no user"), "{}", edited.stderr);
    // A path of an endpoint without its @ is no path here.
    let submitted = sandbox.run(["task", "submit", "lab/run", "@lab:/x"]);
    submitted.failed_with(2, &["lab/run", "@NAME:/PATH"]);
    assert_eq!(sandbox.ok(["task", "list"]).stdout, "");
    // A source that is missing is named.
    let failed = sandbox.run(["task", "submit", "--wait", "@lab:/run/none", "@lab:/x"]);
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    let id = failed.stdout.lines().next().unwrap().split(' ').next().unwrap().to_owned();
    let items = sandbox.ok(["task", "items", &id, "--csv"]).stdout;
    assert!(items.lines().nth(1).is_some_and(|line| line.contains(",/run/none,")), "{items}");
}

#[test]
fn names_that_look_like_escapes_are_copied_and_lead_nowhere_else() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let _service = Service::start(&sandbox, &[]);
    add_node(&sandbox, "lab", &node);
    let to = sandbox.path("to");
    fs::create_dir(&to).unwrap();
    sandbox.ok(["endpoint", "add", "here", to.to_str().unwrap()]);
    sandbox.write("root/secret", "not to be copied");
    let names = ["a%2Fb", "%2E%2E", "%2E%2E%2Fsecret", "c%00", "%252F"];
    for name in names {
        sandbox.write(format!("root/run/{name}"), name);
        // One by itself, then all of the directory.
        let (source, destination) = (format!("@lab:/run/{name}"), format!("@here:/one-{name}"));
        sandbox.ok(["task", "submit", "--wait", &source, &destination]);
        assert_eq!(fs::read(to.join(format!("one-{name}"))).unwrap(), name.as_bytes());
    }
    sandbox.ok(["task", "submit", "--wait", "@lab:/run", "@here:/"]);
    same_tree(&sandbox.path("root/run"), &to.join("run"));
    // What is typed means itself: there is no directory of that name.
    sandbox
        .run(["task", "submit", "--wait", "@lab:/run/%2E%2E%2Fsecret2", "@here:/x"])
        .failed_with(1, &["no such file"]);
    assert!(!to.join("x").exists());
}

#[test]
fn endpoint_test_names_what_is_missing_and_the_line_that_mends_it() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let _service = Service::start(&sandbox, &[]);
    add_node(&sandbox, "good", &node);
    let good = sandbox.ok(["endpoint", "test", "good"]).stdout;
    assert!(!good.contains("BAD"), "{good}");
    // What is told of every endpoint's host, beside what is found there.
    for what in
        ["space: ", "inodes: ", "clock: ", "data port there: ", "data port here: ", "write: ", "read: ", "remove: "]
    {
        assert!(good.contains(&format!(": {what}")), "{what} is not in {good}");
    }
    assert!(good.contains("good: data port there: ") && good.contains("good: clock: "), "{good}");
    sandbox.ok(["endpoint", "add", "no-token", &node.at("")]);
    let bad = sandbox.run(["endpoint", "test", "no-token"]);
    assert_eq!(bad.code, 1, "{}{}", bad.stdout, bad.stderr);
    assert!(bad.stdout.contains("carrack endpoint edit no-token --token-file"), "{}", bad.stdout);
    sandbox.ok(["endpoint", "edit", "no-token", "--token-file", &node.token_file.display().to_string()]);
    sandbox.ok(["endpoint", "test", "no-token"]);
    let shown = sandbox.ok(["endpoint", "show", "no-token", "--json"]).stdout;
    assert!(shown.contains("\"has_token\":true") && !shown.contains(Node::TOKEN), "{shown}");
    let elsewhere = node.at("").replace("127.0.0.1", "localhost");
    let moved = sandbox.ok(["endpoint", "edit", "no-token", "--location", &elsewhere]);
    assert!(moved.stderr.contains("is forgotten; --token-file"), "{}{}", moved.stdout, moved.stderr);
    sandbox.ok(["endpoint", "rm", "no-token"]);
    assert_eq!(sandbox.ok(["endpoint", "list"]).stdout.lines().count(), 2);
}

#[test]
fn endpoint_test_names_a_link_in_the_endpoints_path_and_the_line_that_mends_it() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let _service = Service::start(&sandbox, &[]);
    fs::create_dir_all(sandbox.path("root/archive/2026/run")).unwrap();
    std::os::unix::fs::symlink("archive/2026", sandbox.path("root/now")).unwrap();
    let token = node.token_file.display().to_string();
    sandbox.ok(["endpoint", "add", "lab", &node.at("now/run"), "--token-file", &token]);
    // Nobody can work there: no grant leads through a link.
    assert_ne!(sandbox.run(["ls", "@lab:/"]).code, 0);
    let tested = sandbox.run(["endpoint", "test", "lab"]);
    assert_eq!(tested.code, 1, "{}{}", tested.stdout, tested.stderr);
    assert!(tested.stdout.contains("/now is a symbolic link, to archive/2026"), "{}", tested.stdout);
    let line = tested.stdout.lines().find_map(|line| line.split_once("carrack endpoint edit lab --location ")).unwrap();
    let mended = line.1.trim().trim_matches('\'');
    assert_eq!(mended, node.at("archive/2026/run"));
    sandbox.ok(["endpoint", "edit", "lab", "--location", mended, "--token-file", &token]);
    sandbox.ok(["endpoint", "test", "lab"]);
    sandbox.ok(["ls", "@lab:/"]);
}

#[test]
fn failures_of_a_task_name_the_endpoint_and_not_where_its_host_is() {
    let sandbox = Sandbox::new();
    let (lab, archive) =
        (Node::start(&sandbox, "lab", &[]), Node::start(&sandbox, "archive", &["--dial-to=127.0.0.0/8"]));
    let service = Service::start(&sandbox, &[]);
    sandbox.write("lab/data/run/x/a", "a");
    sandbox.write("archive/in/run/x", "a file where a directory would be");
    fs::create_dir_all(sandbox.path("here/in")).unwrap();
    for (name, node, below) in [("lab", &lab, "data"), ("archive", &archive, "in")] {
        sandbox.ok(["endpoint", "add", name, &node.at(below), "--token-file", &node.token_file.display().to_string()]);
    }
    sandbox.ok(["endpoint", "add", "here", &sandbox.path("here").display().to_string()]);
    let hosts = [&lab, &archive].map(|node| node.address.to_string());
    let told = |words: &[&str], enough: &dyn Fn(&serde_json::Value) -> bool| {
        let id = sandbox.ok(["task", "submit"].iter().chain(words)).stdout.trim().to_owned();
        let mut task = serde_json::Value::Null;
        wait_until("the task is told as far as it gets", || {
            task = object(&sandbox, &["task", "show", &id]);
            enough(&task)
        });
        let (items, events) = (sandbox.ok(["task", "items", &id]).stdout, sandbox.ok(["task", "events", &id]).stdout);
        let all = format!("{task}\n{items}\n{events}");
        for hidden in &hosts {
            assert!(!all.contains(hidden), "{hidden} is in {all}");
        }
        assert!(!all.contains("/data/run") && !all.contains("/in/run"), "{all}");
        all
    };
    let ended = |task: &serde_json::Value| task["ended"].is_string();
    let all = told(&["@lab:/absent", "@archive:/"], &ended);
    assert!(all.contains("@lab:/absent: "), "{all}");
    let all = told(&["@lab:/run", "@archive:/"], &ended);
    assert!(all.contains("@archive: run/x: "), "{all}");
    let all = told(&["@here:/gone", "@archive:/"], &ended);
    assert!(all.contains("@here:/gone: "), "{all}");
    // What another attempt may mend is told as long as the task waits for it.
    drop(lab);
    let all = told(&["@lab:/run", "@here:/in"], &|task| task["blocked"].is_object());
    assert!(all.contains("@lab: "), "{all}");
    drop(service);
}

#[test]
fn timer_submits_its_tasks_and_no_more_after_its_runs() {
    let sandbox = Sandbox::new();
    let _service = Service::start(&sandbox, &[]);
    sandbox.write("from/a", "a");
    let id = sandbox.ok(["timer", "create", "--every=10s", "--runs=2", "--overlap=start", "from/a", "to/"]).stdout;
    let id = id.trim();
    wait_until("the timer has ended", || object(&sandbox, &["timer", "show", id])["state"] == "ended");
    let listed = sandbox.ok(["task", "list", "--timer", id, "--json"]).stdout;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    sandbox.ok(["timer", "rm", id]);
}

/// A nightly timer makes an archive like its source, but for what a rule keeps.
#[test]
fn timer_with_rules_deletes_what_the_source_has_no_more() {
    let sandbox = Sandbox::new();
    let _service = Service::start(&sandbox, &[]);
    for name in ["from/a", "from/scratch.tmp", "to/a", "to/gone", "to/notes.keep"] {
        sandbox.write(name, "x");
    }
    let words = ["--delete", "--exclude=*.tmp", "--filter=protect *.keep", "--max-delete=10", "from/", "to/"];
    let id = sandbox.ok([&["timer", "create", "--every=10s", "--runs=1"][..], &words].concat()).stdout;
    let listed = || sandbox.ok(["task", "list", "--timer", id.trim(), "--json"]).stdout;
    wait_until("its task has ended", || listed().contains("\"SUCCEEDED\""));
    let task: serde_json::Value = serde_json::from_str(listed().lines().next().unwrap()).unwrap();
    assert_eq!(task["progress"]["items_deleted"], 1, "{task}");
    assert_eq!(task["request"]["options"]["filters"], "- *.tmp\nprotect *.keep");
    let mut names: Vec<_> =
        std::fs::read_dir(sandbox.path("to")).unwrap().map(|one| one.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a", "notes.keep"]);
    let deleted = sandbox.ok(["task", "items", task["id"].as_str().unwrap(), "--state=deleted"]).stdout;
    assert!(deleted.contains("gone") && deleted.lines().count() <= 2, "{deleted}");
    sandbox.write("pairs", "from/ to/\nfrom/ to/sub/\n");
    for (words, why) in [
        (&["--delete", "--kind=move", "from/", "to/"][..], "only a task that copies"),
        (&["--delete-excluded", "--batch=pairs"], "one pair"),
    ] {
        sandbox.run([&["task", "submit"], words].concat()).failed_with(2, &[why]);
    }
}

#[test]
fn users_and_tokens_open_the_service_on_its_port_and_revoked_ones_do_not() {
    let sandbox = Sandbox::new();
    let service = Service::start(&sandbox, &[]);
    let url = service.said.iter().find_map(|line| line.strip_prefix("service https://")).unwrap();
    let url = format!("https://{url}");
    let there = |words: &[&str]| {
        let mut all = words.to_vec();
        all.extend(["--service", &url]);
        sandbox.run(all)
    };
    there(&["whoami"]).failed_with(77, &["carrack login"]);
    sandbox.ok(["service", "user", "add", "ada"]);
    let token = sandbox.ok(["service", "token", "create", "--user", "ada", "--label", "test"]).stdout;
    let id = token.trim().split('_').nth(1).unwrap().to_owned();
    let listed = sandbox.ok(["service", "token", "list", "--user", "ada"]).stdout;
    assert!(listed.contains(&id) && !listed.contains(token.trim()), "{listed}");
    assert!(sandbox.ok(["service", "token", "list"]).stdout.is_empty());
    let mut login = sandbox.carrack();
    let file = sandbox.write("token", token.trim());
    login.args(["login", "--token", "--service", &url]).stdin(fs::File::open(file).unwrap());
    let output = login.output_in_time().unwrap();
    assert!(output.status.success(), "{output:?}");
    let who = there(&["whoami", "--json"]);
    assert!(who.stdout.contains("\"user\":\"ada\""), "{}{}", who.stdout, who.stderr);
    // What anybody submits is their own.
    there(&["task", "submit", "/etc/hosts", "/tmp/x"]).failed_with(77, &["@"]);
    sandbox.ok(["service", "token", "revoke", &id]);
    there(&["whoami"]).failed_with(77, &[]);
    there(&["logout"]);
    there(&["logout"]).failed_with(2, &["no login"]);
}
