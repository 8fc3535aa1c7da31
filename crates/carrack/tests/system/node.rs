//! A node: who is let in, what can be reached, and who is shown the door.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::node::Node;
use crate::support::running::InTime;
use crate::support::{Sandbox, ran, same_tree, tree};

/// A token in a file of its own.
fn token(sandbox: &Sandbox, name: &str, text: &str, mode: u32) -> String {
    let path = sandbox.write(name, text);
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    format!("--token-file={}", path.display())
}

/// It may have been the whole point of the command: that it is not used is told.
#[test]
fn data_address_that_does_not_answer_is_told() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "a");
    let node = Node::start(&sandbox, "root", &[]);
    // Nobody listens there.
    let ran = sandbox.ok(["a", &node.at("b"), &node.token(), "--json", "--data-address=127.0.0.77"]);
    assert_ne!(ran.summary()["link"]["kind"], "direct", "{}", ran.stdout);
    let told = ran.stdout.lines().any(|line| line.contains(r#""type":"note""#) && line.contains("127.0.0.77"));
    assert!(told, "{}", ran.stdout);
}

#[test]
fn token_alone_opens_a_node() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("root/f", "inside");
    let wrong = token(&sandbox, "wrong", "another-token-for-tests-012345678\n", 0o600);
    for arguments in [vec!["ls", ""], vec!["f"], vec!["rm", "f"]] {
        let at = node.at(arguments.last().unwrap());
        let mut words: Vec<&str> = arguments[..arguments.len() - 1].to_vec();
        words.push(&at);
        if arguments.len() == 1 {
            words.push("out");
        }
        sandbox
            .run(words.iter().copied().chain([wrong.as_str()]))
            .failed_with(77, &["not this node's", "--token-file"]);
        sandbox.run(&words).failed_with(77, &["no token", "--token-file"]);
    }
    assert!(sandbox.path("root/f").exists() && !sandbox.path("out").exists());
    let open = token(&sandbox, "open", "a-token-for-tests-only-0123456789\n", 0o644);
    sandbox.run(["ls", &node.at(""), &open]).failed_with(77, &["others can read", "chmod 600"]);
    sandbox.run(["ls", &node.at(""), "--token-file=absent"]).failed_with(77, &["absent"]);
    let right = token(&sandbox, "right", "a-token-for-tests-only-0123456789", 0o400);
    sandbox.ok(["ls", &node.at(""), &right]);
    // By the environment, as other tools of the field take it.
    let mut command = sandbox.carrack();
    command.env("BEARER_TOKEN", Node::TOKEN).args(["ls", &node.at("")]);
    assert!(command.output_in_time().unwrap().status.success());
}

#[test]
fn node_does_not_serve_with_a_token_that_is_none() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("root")).unwrap();
    let serve = |token: &str| {
        sandbox.run(["serve", "--node-only", "--listen=127.0.0.1:0", "--root=root", "--key-file=key", token])
    };
    serve(&token(&sandbox, "open", "a-token-for-tests-only-0123456789\n", 0o644)).failed_with(77, &["others can read"]);
    serve(&token(&sandbox, "short", "guess\n", 0o600)).failed_with(2, &["guessed"]);
    serve(&token(&sandbox, "empty", "\n", 0o600)).failed_with(77, &["empty"]);
    serve("--token-file=absent").failed_with(77, &["absent"]);
    sandbox
        .run(["serve", "--node-only", "--listen=127.0.0.1:0", "--root=absent", "--anonymous", "--key-file=key"])
        .failed_with(11, &["absent"]);
    assert_eq!(
        fs::metadata(sandbox.path("key")).map(|found| found.permissions().mode() & 0o777).unwrap_or(0o600),
        0o600
    );
}

#[test]
fn anonymous_clients_are_let_in_where_that_was_asked_for() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &["--anonymous"]);
    sandbox.write("f", "x");
    sandbox.ok(["f", &node.at("")]);
    assert_eq!(fs::read(sandbox.path("root/f")).unwrap(), b"x");
}

#[test]
fn key_that_is_not_the_one_typed_is_refused() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let other = format!("carrack://{}/#sha256:{}", node.address, "ab".repeat(32));
    sandbox.run(["ls", &other, &node.token()]).failed_with(77, &["is pinned", "the address names another key"]);
    sandbox.run(["root", &other, &node.token()]).failed_with(77, &["is pinned"]);
}

#[test]
fn key_is_pinned_at_the_first_meeting() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let plain = format!("carrack://{}/", node.address);
    let first = sandbox.ok(["ls", &plain, &node.token()]);
    assert!(first.stderr.contains("first meeting"), "{}", first.stderr);
    let known = sandbox.path("home/.config/carrack/known_nodes");
    let line = fs::read_to_string(&known).unwrap();
    assert_eq!(line, format!("{} {}\n", node.address, node.fingerprint.trim_start_matches('#')));
    let second = sandbox.ok(["ls", &plain, &node.token()]);
    assert_eq!(second.stderr, "");
    // Another key at the same address.
    fs::write(&known, format!("{} sha256:{}\n", node.address, "cd".repeat(32))).unwrap();
    sandbox.run(["ls", &plain, &node.token()]).failed_with(77, &["is pinned", "known_nodes"]);
    sandbox.run(["root/", &plain, &node.token()]).failed_with(77, &["is pinned"]);
    // What was typed outweighs the list.
    sandbox.ok(["ls", &node.at(""), &node.token()]);
}

/// What the environment holds may be for any service, and what is kept for another node is that one's.
#[test]
fn token_that_no_flag_named_is_not_shown_at_a_first_meeting() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let plain = format!("carrack://{}/", node.address);
    let ls = |at: &str| {
        let mut command = sandbox.carrack();
        command.env("BEARER_TOKEN", Node::TOKEN).args(["ls", at]);
        ran(command.output_in_time().unwrap())
    };
    ls(&plain).failed_with(77, &["first meeting", "no token", "BEARER_TOKEN was not shown", "#sha256:"]);
    // Whoever runs it again has seen the key.
    assert_eq!(ls(&plain).code, 0);
    std::fs::remove_file(sandbox.path("home/.config/carrack/known_nodes")).unwrap();
    assert_eq!(ls(&node.at("")).code, 0, "pinned by the address");
    // A flag says whose it is.
    sandbox.ok(["ls", &plain, &node.token()]);
}

#[test]
fn token_is_not_shown_to_two_nodes() {
    let sandbox = Sandbox::new();
    let (from, to) = (Node::start(&sandbox, "from", &[]), Node::start(&sandbox, "to", &[]));
    sandbox.write("from/f", "content");
    let words = [from.at("f"), to.at("")];
    let with = |more: &[String]| sandbox.run(words.iter().chain(more));
    with(&[from.token()]).failed_with(2, &["--token-file", "--source-token-file", "--destination-token-file"]);
    for verb in ["stat", "sum"] {
        let said = sandbox.run([verb, &words[0], &words[1], &from.token()]);
        said.failed_with(2, &["--token-file", "several nodes", "carrack token add"]);
    }
    with(&[from.token_as("source")]).failed_with(77, &[&to.address, "no token was shown"]);
    let mut command = sandbox.carrack();
    let found = ran(command.env("BEARER_TOKEN", Node::TOKEN).args(&words).output_in_time().unwrap());
    found.failed_with(77, &["BEARER_TOKEN was not shown", "several nodes", "carrack token add"]);
    assert!(!sandbox.path("to/f").exists());
    with(&[from.token_as("source"), to.token_as("destination")]);
    assert_eq!(fs::read(sandbox.path("to/f")).unwrap(), b"content");
    // From one place of a node to another, and two verbs there, one is enough.
    sandbox.ok([&from.at("f"), &from.at("g"), &from.token()]);
    sandbox.ok(["stat", &from.at("f"), &from.at("g"), &from.token()]);
}

#[test]
fn tokens_are_kept_for_each_node_and_shown_to_no_other() {
    let sandbox = Sandbox::new();
    let (from, to) = (Node::start(&sandbox, "from", &[]), Node::start(&sandbox, "to", &[]));
    sandbox.write("from/f", "content");
    let token = from.token_file.to_str().unwrap();
    let added = sandbox.ok(["token", "add", &from.address, token]);
    assert!(added.stderr.contains("is kept in") && !added.stderr.contains(Node::TOKEN), "{}", added.stderr);
    let kept = sandbox.path("home/.config/carrack/tokens").join(&from.address);
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    sandbox.ok(["ls", &from.at("")]);
    sandbox.run([&from.at("f"), &to.at("")]).failed_with(77, &[&to.address, "no token was shown"]);
    // From standard input, with a location in the node's place.
    let mut command = sandbox.carrack();
    command.stdin(fs::File::open(&to.token_file).unwrap()).args(["token", "add", "--json", &to.at("x")]);
    let said = ran(command.output_in_time().unwrap());
    let object: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&object["type"], &object["node"]), (&"token".into(), &to.address.as_str().into()));
    sandbox.ok([&from.at("f"), &to.at("")]);
    // Nothing is shown, and what cannot be used is told.
    fs::set_permissions(&kept, Permissions::from_mode(0o644)).unwrap();
    sandbox.run(["ls", &from.at("")]).failed_with(77, &["others can read", &from.address]);
    let listed = sandbox.ok(["token", "list"]);
    let mut nodes = [from.address.clone(), to.address.clone()];
    nodes.sort();
    assert_eq!(listed.stdout, format!("{}\n{}\n", nodes[0], nodes[1]));
    assert!(listed.stderr.contains("others can read"), "{}", listed.stderr);
    assert!(!sandbox.ok(["--json", "token", "list"]).stdout.contains(Node::TOKEN));
    sandbox.ok(["token", "rm", &from.address, &to.address]);
    assert_eq!(sandbox.ok(["token", "list"]).stdout, "");
    sandbox.run(["token", "rm", &from.address]).failed_with(11, &[&from.address]);
    let words = token_of_words(&sandbox);
    sandbox.run(["token", "add", "h", &words]).failed_with(77, &["it is no token"]);
    sandbox.run(["token", "add", "h:0", token]).failed_with(2, &["is not a port"]);
}

fn token_of_words(sandbox: &Sandbox) -> String {
    let path = sandbox.write("words", "two words");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

/// Whoever may write to a shared directory chooses where a link there leads.
#[test]
fn token_file_is_never_opened_through_a_link() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let name = format!("bt_u{}", carrack_sys::host::user_id());
    fs::create_dir(sandbox.path("run")).unwrap();
    symlink(&node.token_file, sandbox.path("run").join(&name)).unwrap();
    let ls = |sandbox: &Sandbox| {
        let mut command = sandbox.carrack();
        command.env("XDG_RUNTIME_DIR", sandbox.path("run")).args(["ls", &node.at("")]);
        ran(command.output_in_time().unwrap())
    };
    ls(&sandbox).failed_with(77, &["no token was shown"]);
    let link = format!("--token-file={}", sandbox.path("run").join(&name).display());
    sandbox.run(["ls", &node.at(""), &link]).failed_with(77, &["symbolic link"]);
    fs::remove_file(sandbox.path("run").join(&name)).unwrap();
    fs::copy(&node.token_file, sandbox.path("run").join(&name)).unwrap();
    assert_eq!(ls(&sandbox).code, 0);
}

#[test]
fn list_of_known_nodes_that_cannot_be_read_ends_the_command() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let plain = format!("carrack://{}/", node.address);
    let known = sandbox.path("home/.config/carrack/known_nodes");
    let line = format!("{} {}\n", node.address, node.fingerprint.trim_start_matches('#'));
    let cut = line.len() - 5;
    for (list, why) in [
        ([line.as_bytes(), b"\xff\n"].concat(), "line 2: it is not UTF-8"),
        (line.as_bytes()[..cut].to_vec(), "line 1: the fingerprint"),
        (line.replace("sha256:", "SHA256:").into_bytes(), "line 1: it is not HOST:PORT sha256:"),
    ] {
        fs::create_dir_all(known.parent().unwrap()).unwrap();
        fs::write(&known, &list).unwrap();
        for words in [vec!["ls", &plain], vec!["root", &plain]] {
            let said = sandbox.run(words.into_iter().chain([node.token().as_str()]));
            said.failed_with(77, &["known_nodes", why, "nothing is sent"]);
        }
        assert_eq!(fs::read(&known).unwrap(), list, "it is left as it was");
        // What was typed outweighs the list.
        sandbox.ok(["ls", &node.at(""), &node.token()]);
    }
    // The same node, typed in another way.
    let other = "cd".repeat(32);
    fs::write(&known, format!("LocalHost.:{} sha256:{other}\n", node.address.rsplit_once(':').unwrap().1)).unwrap();
    let typed = plain.replace("127.0.0.1", "localhost");
    sandbox.run(["ls", &typed, &node.token()]).failed_with(77, &["is pinned"]);
}

#[test]
fn node_for_reading_lets_nothing_be_changed() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &["--read-only"]);
    sandbox.write("root/d/f", "inside");
    sandbox.write("mine", "outside");
    let at = |path: &str| node.at(path);
    for words in [
        vec!["mine".to_string(), at("d/")],
        vec!["-".into(), at("d/piped")],
        vec!["mkdir".into(), at("new")],
        vec!["mkdir".into(), "-p".into(), at("new/er")],
        vec!["mv".into(), at("d/f"), at("d/g")],
        vec!["rm".into(), at("d/f")],
        vec!["rm".into(), "-r".into(), at("d")],
        vec!["gc".into(), at("d")],
        vec![at("d/f"), at("d/g")],
    ] {
        let ran = sandbox.run(words.iter().chain([&node.token()]));
        assert_eq!(ran.code, 77, "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("for reading only"), "{}", ran.stderr);
    }
    assert_eq!(tree::walk(&sandbox.path("root")).len(), 2);
    assert_eq!(fs::read(sandbox.path("root/d/f")).unwrap(), b"inside");
    sandbox.ok([&at("d"), "copy/", &node.token()]);
    same_tree(&sandbox.path("root/d"), &sandbox.path("copy/d"));
    assert_eq!(sandbox.ok(["sum", &at("d"), &node.token()]).stdout.lines().count(), 1);
}

#[test]
fn root_of_a_node_is_left_by_no_path() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("outside/secret", "the canary");
    sandbox.write("root/inside/f", "inside");
    sandbox.write("mine", "mine");
    let outside = sandbox.path("outside");
    symlink(&outside, sandbox.path("root/absolute")).unwrap();
    symlink("../outside", sandbox.path("root/up")).unwrap();
    symlink("../../outside", sandbox.path("root/inside/up")).unwrap();
    symlink("up", sandbox.path("root/twice")).unwrap();
    symlink(outside.join("secret"), sandbox.path("root/file")).unwrap();
    symlink("/proc/self/root", sandbox.path("root/magic")).unwrap();
    symlink("inside", sandbox.path("root/good")).unwrap();
    let before = tree::walk(&sandbox.path("root")).len();
    let magic = format!("magic{}", outside.display());
    for way in [
        "absolute",
        "up",
        "inside/up",
        "twice",
        "../outside",
        "inside/../../outside",
        "/../outside",
        "./../outside",
        "%2e%2e/outside",
        &magic,
    ] {
        let at = |name: &str| node.at(&format!("{way}/{name}"));
        for words in [
            vec![at("secret"), "got".to_string()],
            vec![at(""), "got".into()],
            vec!["mine".into(), at("planted")],
            vec!["mine".into(), at("")],
            vec!["-".into(), at("planted")],
            vec!["ls".into(), at("")],
            vec!["ls".into(), "-R".into(), at("")],
            vec!["ls".into(), at("secret")],
            vec!["stat".into(), at("secret")],
            vec!["sum".into(), at("secret")],
            vec!["sum".into(), at("")],
            vec!["mkdir".into(), at("planted")],
            vec!["mkdir".into(), "-p".into(), at("planted/deeper")],
            vec!["rm".into(), at("secret")],
            vec!["mv".into(), at("secret"), node.at("stolen")],
            vec!["mv".into(), node.at("inside/f"), at("planted")],
            vec![node.at("inside/f"), at("planted")],
        ] {
            let ran = sandbox.run(words.iter().chain([&node.token()]));
            assert!([2, 11, 12, 23, 77].contains(&ran.code), "{words:?}: {} {}", ran.code, ran.stderr);
            assert!(!ran.stdout.contains("secret"), "{words:?}: {}", ran.stdout);
            assert!(!sandbox.path("got").exists(), "{words:?}");
        }
    }
    // A link as the last word: what it leads to is neither read nor written.
    sandbox.run([&node.at("file"), "got", &node.token()]).failed_with(77, &["outside"]);
    sandbox.run(["sum", &node.at("file"), &node.token()]).failed_with(77, &["outside"]);
    sandbox.run(["mine", &node.at("absolute"), &node.token()]).failed_with(77, &["outside"]);
    assert_eq!(tree::walk(&outside), [outside.join("secret")]);
    assert_eq!(fs::read(outside.join("secret")).unwrap(), b"the canary");
    assert_eq!(tree::walk(&sandbox.path("root")).len(), before);
    // One that stays inside is followed, and a tree is copied with its links as they are.
    let listed = sandbox.ok(["ls", &node.at("good"), &node.token()]).stdout;
    assert!(["f\nup\n", "up\nf\n"].contains(&listed.as_str()), "{listed}");
    sandbox.ok([&node.at("good/f"), "got", &node.token()]);
    sandbox.ok([&node.at(""), "whole", &node.token()]);
    same_tree(&sandbox.path("root"), &sandbox.path("whole"));
    // Removing a link removes the link.
    sandbox.ok(["rm", &node.at("absolute"), &node.token()]);
    assert!(outside.join("secret").exists());
}

#[test]
fn nodes_copy_while_a_third_only_watches() {
    let sandbox = Sandbox::new();
    tree::mixed(&sandbox.path("from/tree"));
    let (from, to) = (Node::start(&sandbox, "from", &[]), Node::start(&sandbox, "to", &[]));
    for encrypt in ["tls", "none"] {
        let there = format!("there-{encrypt}");
        let ran = sandbox.ok([
            &from.at("tree"),
            &to.at(&there),
            &from.token_as("source"),
            &to.token_as("destination"),
            "--link=direct",
            "--encrypt",
            encrypt,
            "--json",
        ]);
        let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let link = events.iter().find(|event| event["type"] == "link").unwrap();
        assert_eq!((&link["kind"], &link["address"]), (&"direct".into(), &to.address.as_str().into()));
        same_tree(&sandbox.path("from/tree"), &sandbox.path("to").join(&there).join("tree"));
    }
}

/// What a connection that the node has closed gives: an end or an error, at once.
fn is_closed(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    match stream.read(&mut [0; 4096]) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

#[test]
fn silent_clients_are_shown_the_door_and_hold_up_nobody() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    let silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&node.address).unwrap()).collect();
    let mut trickling = TcpStream::connect(&node.address).unwrap();
    // All of them from the address that the honest one comes from, too.
    sandbox.ok(["ls", &node.at(""), &node.token()]);
    assert!(silent.iter().any(|stream| !is_closed(stream)), "the login has to work beside them, not after them");
    // The first bytes of a TLS record that is never completed.
    let hello = [&[0x16, 3, 1, 1, 0, 1, 0, 0, 0xfc, 3, 3][..], &[0; 300]].concat();
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut sent = 0;
    loop {
        // As slow as it gets, and never silent.
        if !is_closed(&trickling) && sent < 250 && trickling.write_all(&hello[sent..=sent]).is_ok() {
            sent += 1;
        }
        if is_closed(&trickling) && silent.iter().all(is_closed) {
            break;
        }
        assert!(Instant::now() < deadline, "they are still there after twice the time that they have");
        std::thread::sleep(Duration::from_millis(100));
    }
    sandbox.ok(["ls", &node.at(""), &node.token()]);
}

#[test]
fn garbage_is_answered_by_nothing_that_hurts() {
    let sandbox = Sandbox::new();
    let mut node = Node::start(&sandbox, "root", &[]);
    let tls_record = |kind: u8, length: u16, body: &[u8]| [&[kind, 3, 1][..], &length.to_be_bytes(), body].concat();
    for garbage in [
        tree::bytes(100_000, 1),
        vec![0; 65_536],
        vec![0xff; 65_536],
        b"GET / HTTP/1.1\r\nHost: node\r\n\r\n".to_vec(),
        b"SSH-2.0-OpenSSH_9.9\r\n".to_vec(),
        b"\n".to_vec(),
        Vec::new(),
        tls_record(0x16, 0xffff, &[1; 70_000]),
        tls_record(0x16, 5, &[1, 0, 0, 1, 0]),
        tls_record(0x17, 100, &tree::bytes(100, 2)),
        tls_record(0x15, 2, &[2, 40]),
        b"carrack".to_vec(),
        [b"carrack-data".to_vec(), tree::bytes(1000, 3)].concat(),
    ] {
        let mut stream = TcpStream::connect(&node.address).unwrap();
        // The node may have closed before all of it was written.
        let _ = stream.write_all(&garbage);
        let _ = stream.shutdown(Shutdown::Write);
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let ended = std::io::copy(&mut stream, &mut std::io::sink());
        let waits = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!waits, "{:?} is kept", &garbage[..garbage.len().min(20)]);
    }
    assert!(node.child.try_wait().unwrap().is_none());
    sandbox.ok(["ls", &node.at(""), &node.token()]);
}

#[test]
fn root_that_was_replaced_is_served_without_a_restart() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("file", "content");
    let put = |name: &str| sandbox.ok(["file", &node.at(name), &node.token()]);
    put("first");
    std::fs::rename(sandbox.path("root"), sandbox.path("old")).unwrap();
    // As long as nothing else stands there, it is the same directory.
    put("second");
    assert!(sandbox.path("old/second").exists());
    std::fs::create_dir(sandbox.path("root")).unwrap();
    put("third");
    assert!(sandbox.path("root/third").exists() && !sandbox.path("old/third").exists());
    std::fs::remove_dir_all(sandbox.path("root")).unwrap();
    std::fs::create_dir(sandbox.path("root")).unwrap();
    put("fourth");
    assert_eq!(std::fs::read_dir(sandbox.path("root")).unwrap().count(), 1);
}

#[test]
fn networks_to_dial_are_networks() {
    let sandbox = Sandbox::new();
    for networks in ["10.0.0.0/33", "everywhere", "10.0.0.0/8,", ""] {
        let flag = format!("--dial-to={networks}");
        sandbox.run(["serve", "--root=.", &flag]).failed_with(2, &["--dial-to", "is not a network"]);
    }
    let node = Node::start(&sandbox, "root", &["--dial-to", "10.0.0.0/8,fd00::/8", "--dial-to", "192.0.2.1"]);
    sandbox.ok(["ls", &node.at(""), &node.token()]);
}

#[test]
fn serve_on_a_port_that_is_taken_names_the_port_and_what_to_try() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("root")).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let words = ["serve", "--node-only", "--root", "root", "--listen", &address];
    sandbox.run(words).failed_with(11, &[&address, "ss -ltnp", "--listen ADDR:PORT"]);
}
