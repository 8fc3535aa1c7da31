//! Tokens of the service: in no log, file, argument, environment or core; and what becomes of tasks when a token is
//! replaced.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;

use carrack_service::client::{Call, Client, Target};
use carrack_service::model::MadeGrant;
use serde_json::json;

use super::add_node;
use super::login::{add, fed};
use crate::support::node::Node;
use crate::support::process::{signal, workers};
use crate::support::running::InTime;
use crate::support::service::{Service, object};
use crate::support::{Sandbox, tree, wait_until};

const MIB: usize = 1 << 20;

/// A token in a file that only its owner reads.
fn token_file(sandbox: &Sandbox, name: &str, token: &str) -> String {
    let path = sandbox.write(name, format!("{token}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn holds(bytes: &[u8], secret: &str) -> bool {
    bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
}

#[test]
fn v14_token_that_is_replaced_in_mid_task_holds_it_back_until_the_endpoint_has_the_new_one() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "two", &[]);
    let _service = Service::start(&sandbox, &[]);
    add_node(&sandbox, "two", &node);
    let large = sandbox.write("from/large", tree::bytes(24 * MIB, 3));
    let from = large.to_str().unwrap();
    let id = sandbox.ok(["task", "submit", from, "@two:/", "--bwlimit=4MB"]).stdout.trim().to_owned();
    let show = || object(&sandbox, &["task", "show", &id]);
    wait_until("something has been moved", || show()["progress"]["bytes_moved"].as_u64().unwrap_or(0) > 0);
    // The service has a token that the node does not take any more.
    let old = token_file(&sandbox, "old.token", "a-token-that-was-replaced-0123456789");
    sandbox.ok(["endpoint", "edit", "two", "--token-file", &old]);
    workers(&sandbox.path("home")).into_iter().for_each(|worker| signal(worker, "KILL"));
    wait_until("the task waits because its token is refused", || {
        let task = show();
        assert!(!["FAILED", "PARTIAL", "CANCELLED"].contains(&task["state"].as_str().unwrap()), "{task}");
        let why = task["blocked"]["why"].as_str().unwrap_or_default();
        task["state"] == "QUEUED" && task["blocked"]["cause"] == "retry" && why.contains("token")
    });
    sandbox.ok(["endpoint", "edit", "two", "--token-file", node.token_file.to_str().unwrap()]);
    sandbox.ok(["task", "wait", &id, "--timeout=120s"]);
    assert!(fs::read(sandbox.path("two/large")).unwrap() == fs::read(large).unwrap());
}

#[test]
fn v14_endpoint_token_that_expires_in_mid_task_holds_it_back_with_a_hint() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "two", &[]);
    let service = Service::start(&sandbox, &[]);
    add_node(&sandbox, "two", &node);
    // A token that ends by itself: a grant in place of the node's own token.
    let client = Client::new(Target::Socket(service.told("service socket ").into()), None).unwrap();
    let wanted = json!({ "verbs": ["read", "write", "delete"], "path": "/", "seconds": 15 });
    let made = client.call(&Call::post("/endpoints/two/grants").body(&wanted).unwrap()).unwrap();
    let made: MadeGrant = made.json().unwrap();
    let grant = token_file(&sandbox, "grant", made.token.unwrap().reveal());
    sandbox.ok(["endpoint", "add", "short", &node.at(""), "--token-file", &grant]);
    let large = sandbox.write("from/large", tree::bytes(48 * MIB, 4));
    let words = ["task", "submit", large.to_str().unwrap(), "@short:/", "--bwlimit=2MB"];
    let id = sandbox.ok(words).stdout.trim().to_owned();
    let show = || object(&sandbox, &["task", "show", &id]);
    wait_until("the task waits because its token has expired", || {
        let task = show();
        assert!(!task["state"].as_str().unwrap().ends_with("ED") || task["state"] == "QUEUED", "{task}");
        let blocked = &task["blocked"];
        let why = blocked["why"].as_str().unwrap_or_default();
        let hint = blocked["hint"].as_str().unwrap_or_default();
        task["state"] == "QUEUED" && why.contains("expired") && hint.contains("endpoint edit NAME --token-file")
    });
    sandbox.ok(["endpoint", "edit", "short", "--token-file", node.token_file.to_str().unwrap()]);
    sandbox.ok(["task", "wait", &id, "--timeout=120s"]);
    assert!(fs::read(sandbox.path("two/large")).unwrap() == fs::read(large).unwrap());
}

#[test]
fn v14_submitters_token_that_expires_in_mid_task_ends_nothing() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "two", &[]);
    let service = Service::start(&sandbox, &[]);
    add_node(&sandbox, "two", &node);
    sandbox.ok(["service", "user", "add", "ada"]);
    sandbox.ok(["endpoint", "edit", "two", "--users", "ada"]);
    let create = ["service", "token", "create", "--user", "ada", "--label", "test", "--expires", "8s"];
    let token = sandbox.write("ada.token", sandbox.ok(create).stdout.trim());
    let url = format!("https://{}", service.told("service https://"));
    let ada = |words: &[&str]| {
        let mut command = sandbox.carrack();
        command.env("HOME", sandbox.path("ada")).args(words).args(["--service", &url]);
        crate::support::ran(command.stdin(fs::File::open(&token).unwrap()).output_in_time().unwrap())
    };
    assert_eq!(ada(&["login", "--token"]).code, 0);
    sandbox.write("two/large", tree::bytes(32 * MIB, 5));
    let submitted = ada(&["task", "submit", "@two:/large", "@two:/copy", "--bwlimit=2MB"]);
    assert_eq!(submitted.code, 0, "{}", submitted.stderr);
    let id = submitted.stdout.trim();
    wait_until("the token has expired", || ada(&["whoami"]).code == 77);
    let task = object(&sandbox, &["task", "show", id]);
    assert!(["QUEUED", "ACTIVE"].contains(&task["state"].as_str().unwrap()), "{task}");
    sandbox.ok(["task", "wait", id, "--timeout=120s"]);
    assert!(fs::read(sandbox.path("two/copy")).unwrap() == fs::read(sandbox.path("two/large")).unwrap());
}

#[test]
fn service_writes_and_shows_no_secret() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "two", &[]);
    let mut service = Service::start(&sandbox, &["--log-format", "json"]);
    add_node(&sandbox, "two", &node);
    sandbox.ok(["service", "user", "add", "ada"]);
    let api = sandbox.ok(["service", "token", "create", "--user", "ada", "--label", "test"]).stdout;
    let api = api.trim().rsplit('_').next().unwrap().to_owned();
    assert!(api.len() >= 16, "the token's secret part");
    let url = service.said.iter().find_map(|line| line.strip_prefix("service https://")).unwrap();
    let mut login = sandbox.carrack();
    let shown = sandbox.write("api.token", format!("{api}-that-is-refused"));
    login.args(["login", "--token", "--service", &format!("https://{url}")]).stdin(fs::File::open(shown).unwrap());
    assert!(!login.output_in_time().unwrap().status.success());
    // A password, a wrong one, and another one later; each comes by standard input.
    let passwords = ["canary of the first password", "canary of a wrong password", "canary of a later password"];
    add(&sandbox, "eve", passwords[0]);
    let eve = |words: &[&str], typed: &str| {
        let mut command = sandbox.carrack();
        command.env("HOME", sandbox.path("eve")).args(words);
        let ran = fed(&mut command, typed);
        let said = [&ran.stdout, &ran.stderr];
        assert!(said.iter().all(|said| passwords.iter().all(|password| !said.contains(password))), "{said:?}");
        ran.code
    };
    let login = ["login", "--service", &format!("https://{url}"), "eve"];
    assert_eq!(passwords.map(|password| eve(&login, &format!("{password}\n"))), [0, 77, 77]);
    let changed = format!("{}\n{}\n", passwords[0], passwords[2]);
    assert_eq!(eve(&["service", "user", "password"], &changed), 0);
    assert_eq!(eve(&login, &format!("{}\n", passwords[2])), 0);
    let from = sandbox.write("from/large", tree::bytes(24 * MIB, 3));
    let id = sandbox.ok(["task", "submit", from.to_str().unwrap(), "@two:/", "--bwlimit=4MB"]).stdout;
    let id = id.trim();
    let moved = || object(&sandbox, &["task", "show", id])["progress"]["bytes_moved"].as_u64().unwrap_or(0) > 0;
    wait_until("something has been moved", moved);
    sandbox.ok(["endpoint", "test", "two"]);
    sandbox.ok(["service", "backup", "ledger.backup"]);
    let mut secrets = vec![Node::TOKEN, &api];
    secrets.extend(passwords);
    let mut processes = workers(&sandbox.path("home"));
    assert!(!processes.is_empty());
    processes.push(service.child.id());
    for process in processes {
        for about in ["cmdline", "environ"] {
            let shown = fs::read(format!("/proc/{process}/{about}")).unwrap();
            assert!(!shown.is_empty() && secrets.iter().all(|secret| !holds(&shown, secret)), "{process}: {about}");
        }
        let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
        let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        assert_eq!(core.split_whitespace().nth(4), Some("0"), "{process}");
    }
    let state = sandbox.path("home/.local/state/carrack/service");
    let of_eve = tree::walk(&sandbox.path("eve")).into_iter().chain([sandbox.path("ledger.backup")]);
    let files = tree::walk(&state).into_iter().chain(of_eve).filter(|path| path.is_file());
    let files: Vec<_> = files.collect();
    assert!(files.iter().any(|path| path.ends_with("ledger.db")), "{files:?}");
    for path in files {
        let content = fs::read(&path).unwrap();
        assert!(secrets.iter().all(|secret| !holds(&content, secret)), "{}", path.display());
    }
    let log = service.log();
    assert!(!log.is_empty() && secrets.iter().all(|secret| !holds(log.as_bytes(), secret)));
    signal(service.child.id(), "ABRT");
    let ended = service.child.wait().unwrap();
    assert!(ended.signal().is_some() && !ended.core_dumped(), "{ended}");
}
