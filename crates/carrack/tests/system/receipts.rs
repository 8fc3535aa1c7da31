//! Receipts: what a copy has done, signed, and compared with what is there now. Whatever is altered is named.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::sshd::Sshd;
use crate::support::{Ran, Sandbox, tool, tree, wait_until};

const DIFFERENCES: i32 = 27;
const ALTERED: i32 = 26;
const REFUSED: i32 = 77;
const USAGE: i32 = 2;

/// A tree with all kinds of items and names.
fn plant(sandbox: &Sandbox) -> PathBuf {
    let source = sandbox.path("source");
    tree::mixed(&source);
    for name in ["p/data", "p/size", "p/mode", "p/time", "p/name", "p/new\nline", "p/back\\slash", "p/50%"] {
        sandbox.write(format!("source/{name}"), format!("{name} as it was"));
    }
    fs::write(source.join(std::ffi::OsStr::from_bytes(b"p/\xffname")), "not UTF-8").unwrap();
    symlink("data", source.join("p/link")).unwrap();
    source
}

/// The receipt's items by their paths, and its statement.
fn read(receipt: &Path) -> (Vec<Value>, Value) {
    let text = fs::read_to_string(receipt).unwrap();
    let mut lines: Vec<Value> = text
        .lines()
        .take_while(|line| !line.starts_with("-----"))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let statement = lines.pop().unwrap();
    lines.remove(0);
    (lines, statement)
}

fn item<'a>(items: &'a [Value], path: &str) -> &'a Value {
    items.iter().find(|item| item["path"] == path).unwrap_or_else(|| panic!("no {path} in {items:#?}"))
}

/// What `verify` says has changed, one a line.
fn changes(ran: &Ran) -> Vec<&str> {
    ran.stdout.lines().collect()
}

#[test]
fn receipt_of_each_link_proves_what_is_there_and_names_what_has_changed() {
    let sandbox = Sandbox::new();
    let source = plant(&sandbox);
    let node = Node::start(&sandbox, "root", &[]);
    let sshd = Sshd::start(&sandbox);
    let places = [
        ("local", sandbox.path("to-local").display().to_string(), "-q".to_owned()),
        ("node", node.at("to-node"), node.token()),
        ("ssh", format!("far:{}", sandbox.path("to-ssh").display()), sshd.rsh.clone()),
    ];
    for (name, place, more) in &places {
        let receipt = sandbox.path(format!("{name}.receipt"));
        let from = &format!("{}/", source.display());
        let written = receipt.to_str().unwrap();
        let ran = sandbox.ok(["copy", "--durable", "none", "--receipt", written, from, place, more]);
        assert!(more == "-q" || ran.stderr.contains("signed by SHA256:"), "{}", ran.stderr);
        let (items, statement) = read(&receipt);
        assert_eq!((&statement["of"], &statement["ending"]), (&"copy".into(), &"complete".into()));
        assert_eq!(statement["items"], items.len());
        let count = |outcome: &str| statement["outcomes"][outcome].as_u64().unwrap() as usize;
        assert_eq!((count("copied") + count("there"), count("there") > 0), (items.len(), true), "{statement:#}");
        let has_key = statement["hosts"][1]["key"].as_str().is_some_and(|key| key.starts_with("sha256:"));
        assert_eq!(has_key, *name == "node", "{statement:#}");
        let data = item(&items, "p/data");
        let digest = blake3::hash(b"p/data as it was").to_hex();
        assert_eq!((&data["blake3"], &data["size"]), (&digest.as_str().into(), &16.into()));
        let found = fs::metadata(source.join("p/data")).unwrap();
        assert_eq!(data["mode"], format!("{:04o}", found.mode() & 0o7777));
        assert_eq!(data["mtime"], format!("{}.{:09}", found.mtime(), found.mtime_nsec()));
        assert_eq!(item(&items, "p/link")["link_target"], "data");

        let ran = sandbox.ok(["verify", written, place, more]);
        assert_eq!(changes(&ran), <[&str; 0]>::default());
    }

    let there = sandbox.path("root/to-node/p");
    let at = |name: &str| there.join(name);
    let was = fs::metadata(at("data")).unwrap().modified().unwrap();
    fs::write(at("data"), "p/data as it wes").unwrap();
    File::open(at("data")).unwrap().set_times(FileTimes::new().set_modified(was)).unwrap();
    fs::write(at("size"), "longer than it was").unwrap();
    let old = FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(1));
    File::open(at("time")).unwrap().set_times(old).unwrap();
    fs::set_permissions(at("mode"), Permissions::from_mode(0o600)).unwrap();
    fs::rename(at("name"), at("other-name")).unwrap();
    fs::remove_file(at("link")).unwrap();
    symlink("size", at("link")).unwrap();
    let receipt = sandbox.path("node.receipt");
    let ran = sandbox.run(["verify", receipt.to_str().unwrap(), &node.at("to-node"), &node.token()]);
    assert_eq!(ran.code, DIFFERENCES, "{}", ran.stderr);
    let expected = [
        "* p/data (content)",
        "* p/link (target)",
        "* p/mode (mode)",
        "+ p/name",
        "* p/size (size, time, content)",
        "* p/time (time)",
    ];
    assert_eq!(changes(&ran), expected);
    assert!(ran.stderr.contains("not in the receipt: 1 item"), "{}", ran.stderr);
    let ran = sandbox.run(["verify", "--json", receipt.to_str().unwrap(), &node.at("to-node"), &node.token()]);
    let summary: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["compared"]["different"], &summary["compared"]["missing"]), (&5.into(), &1.into()));
    assert_eq!((&summary["compared"]["unclaimed"], &summary["signer"]), (&1.into(), &"self".into()));
}

#[test]
fn altered_receipt_and_one_of_an_unknown_signer_are_refused() {
    let sandbox = Sandbox::new();
    let source = plant(&sandbox);
    let receipt = sandbox.path("r");
    sandbox.ok(["copy", "--receipt", "r", "source/", "to"]);
    let text = fs::read_to_string(&receipt).unwrap();
    let refused = |text: &str, code: i32, why: &str| {
        sandbox.write("changed", text);
        for place in [&["to"][..], &[]] {
            let ran = sandbox.run(["verify", "changed"].iter().chain(place));
            assert_eq!(ran.code, code, "{}", ran.stderr);
            assert!(ran.stderr.contains(why), "{}", ran.stderr);
        }
    };
    for (from, to) in [
        ("p/data\",\"kind\"", "p/dato\",\"kind\""),
        ("\"size\":16,", "\"size\":17,"),
        ("\"mode\":\"0", "\"mode\":\"1"),
        ("\"outcome\":\"copied\"", "\"outcome\":\"same\""),
        ("\"of\":\"copy\"", "\"of\":\"sync\""),
        ("\"ending\":\"complete\"", "\"ending\":\"partial\""),
    ] {
        assert!(text.contains(from), "{from}");
        refused(&text.replacen(from, to, 1), ALTERED, "altered");
    }
    // A line away, a line twice, two lines exchanged.
    let lines: Vec<&str> = text.lines().collect();
    let joined = |lines: Vec<&str>| lines.join("\n") + "\n";
    refused(&joined([&lines[..3], &lines[4..]].concat()), ALTERED, "altered");
    refused(&joined([&lines[..4], &lines[3..]].concat()), ALTERED, "its place");
    refused(&joined([&lines[..2], &[lines[3], lines[2]], &lines[4..]].concat()), ALTERED, "its place");
    refused(&text[..text.len() / 2], ALTERED, "cut off");
    refused(&text[..text.len() - 1], ALTERED, "cut off");
    refused(&(text.clone() + "more\n"), ALTERED, "behind the signature");
    refused("", USAGE, "no receipt");
    refused("{}\n", USAGE, "no receipt");
    refused(&text.replacen("{\"carrack_receipt\":1}", "{\"carrack_receipt\":2}", 1), USAGE, "version 2");
    let signature: String = text.lines().skip_while(|line| !line.starts_with("-----")).nth(3).unwrap().into();
    let other: String = signature.chars().rev().collect();
    refused(&text.replacen(&signature, &other, 1), ALTERED, "signature");

    // The same said by somebody else: nobody knows the key.
    let stranger = Sandbox::new();
    tool(Command::new("cp").arg("-a").arg(&source).arg(stranger.path("source")));
    stranger.ok(["copy", "--receipt", "r", "source/", "to"]);
    let theirs = fs::read_to_string(stranger.path("r")).unwrap();
    refused(&theirs, REFUSED, "a key that you do not know");
    let keys = stranger.run(["receipt", "keys"]);
    let key = keys.stdout.lines().next().unwrap().split_once("\" ").unwrap().1.to_owned();
    sandbox.ok(["receipt", "trust", "stranger", &key]);
    sandbox.ok(["verify", "changed", "to"]);
    sandbox.ok(["verify", "--signed-by", "stranger", "changed", "to"]);
    let ran = sandbox.run(["verify", "--signed-by", "self", "changed"]);
    assert_eq!(ran.code, REFUSED, "{}", ran.stderr);
    let ran = sandbox.run(["verify", "--signed-by", "stranger", "r"]);
    assert_eq!(ran.code, REFUSED, "{}", ran.stderr);
    sandbox.ok(["receipt", "forget", "stranger"]);
    refused(&theirs, REFUSED, "a key that you do not know");

    // A receipt of another tree.
    fs::create_dir(sandbox.path("empty")).unwrap();
    let ran = sandbox.run(["verify", "r", "empty"]);
    assert_eq!(ran.code, DIFFERENCES, "{}", ran.stderr);
    assert!(ran.stdout.lines().all(|line| line.starts_with("+ ")), "{}", ran.stdout);
}

/// The receipt's signature is of the kind that OpenSSH checks, and `b3sum` comes to its digest of the items.
#[test]
fn other_programs_check_a_receipt_without_ours() {
    let sandbox = Sandbox::new();
    plant(&sandbox);
    sandbox.ok(["copy", "--receipt", "r", "source/", "to"]);
    let text = fs::read_to_string(sandbox.path("r")).unwrap();
    let at = text.find("-----BEGIN").unwrap();
    sandbox.write("signature", &text[at..]);
    let keys = sandbox.run(["receipt", "keys"]);
    sandbox.write("signers", &keys.stdout);
    let check = |message: &str| {
        let mut keygen = Command::new("ssh-keygen")
            .args(["-Y", "verify", "-I", "self", "-n", "carrack-receipt"])
            .arg("-f")
            .arg(sandbox.path("signers"))
            .arg("-s")
            .arg(sandbox.path("signature"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut keygen.stdin.take().unwrap(), message.as_bytes()).unwrap();
        keygen.wait().unwrap().success()
    };
    assert!(check(&text[..at]));
    assert!(!check(&text[..at].replacen("copied", "Copied", 1)));
    let (items, statement) = read(&sandbox.path("r"));
    let lines: Vec<&str> = text.lines().collect();
    let of_items: String = lines[1..=items.len()].iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(statement["items_blake3"], blake3::hash(of_items.as_bytes()).to_hex().as_str());
}

#[test]
fn receipt_of_what_failed_or_was_left_alone_claims_nothing_of_it() {
    let sandbox = Sandbox::new();
    for name in ["a", "b", "same"] {
        sandbox.write(format!("source/{name}"), name);
    }
    symlink("a", sandbox.path("source/link")).unwrap();
    sandbox.write("to/b", "somebody's");
    sandbox.write("to/other", "somebody's");
    tool(Command::new("cp").arg("-a").arg(sandbox.path("source/same")).arg(sandbox.path("to/same")));
    fs::create_dir_all(sandbox.path("to/link/full")).unwrap();
    let ran = sandbox.run(["sync", "--ignore-existing", "--receipt", "r", "source/", "to"]);
    assert_eq!(ran.code, 23, "{}", ran.stderr);
    let (items, statement) = read(&sandbox.path("r"));
    assert_eq!((&statement["of"], &statement["ending"]), (&"sync".into(), &"partial".into()));
    assert_eq!((&item(&items, "a")["outcome"], &item(&items, "same")["outcome"]), (&"copied".into(), &"kept".into()));
    let kept = item(&items, "b");
    assert_eq!((&kept["outcome"], &kept["blake3"], &kept["mode"]), (&"kept".into(), &Value::Null, &Value::Null));
    let failed = item(&items, "link");
    assert_eq!((&failed["outcome"], &failed["mode"]), (&"failed".into(), &Value::Null));
    assert!(failed["why"].as_str().unwrap().contains(':'), "{failed:#}");
    sandbox.ok(["verify", "r", "to"]);
    // What was not claimed may change, and what the receipt does not name.
    sandbox.write("to/b", "something else");
    sandbox.write("to/other", "something else");
    sandbox.ok(["verify", "r", "to"]);
    sandbox.write("to/a", "another");
    assert_eq!(sandbox.run(["verify", "r", "to"]).code, DIFFERENCES);

    // Of what was the same the receipt has what was compared: by content, the digest, too.
    for (flags, has_digest) in [("-q", false), ("-c", true)] {
        sandbox.ok(["sync", "--receipt", "r", flags, "source/", "new"]);
        sandbox.ok(["sync", "--receipt", "r", flags, "source/", "new"]);
        let (items, _) = read(&sandbox.path("r"));
        let same = item(&items, "same");
        assert_eq!((&same["outcome"], &same["size"]), (&"same".into(), &4.into()));
        assert_eq!(same["blake3"].is_string(), has_digest, "{same:#}");
        sandbox.ok(["verify", "r", "new"]);
    }

    let ran = sandbox.run(["copy", "-n", "--receipt", "dry", "source", "dry-to"]);
    assert_eq!(ran.code, USAGE, "{}", ran.stderr);
    let ran = sandbox.run(["copy", "--digest", "xxh128", "--receipt", "r2", "source", "to2"]);
    assert_eq!(ran.code, USAGE, "{}", ran.stderr);
    assert!(!sandbox.path("to2").exists());
    let ran = sandbox.run(["copy", "--receipt", "absent/r", "source", "to2"]);
    assert_eq!(ran.code, 11, "{}", ran.stderr);
    assert!(!sandbox.path("to2").exists());
}

#[test]
fn receipt_of_a_copy_that_was_stopped_says_so() {
    let sandbox = Sandbox::new();
    sandbox.write("source/first", "there");
    sandbox.write("source/large", vec![7; 64 << 20]);
    fs::create_dir(sandbox.path("to")).unwrap();
    let words = ["copy", "--bwlimit", "8M", "--receipt", "r", "source/first", "source/large", "to/"];
    let running = Running::start(sandbox.carrack().args(words));
    wait_until("it copies", || !sandbox.parts("to").is_empty());
    signal(running.id(), "INT");
    assert_eq!(running.end().code, 20);
    let (items, statement) = read(&sandbox.path("r"));
    assert_eq!(statement["ending"], "cut", "{statement:#}");
    assert!(statement["error"].as_str().unwrap().contains("interrupted"), "{statement:#}");
    assert!(items.iter().all(|item| item["path"] != "large" || item["outcome"] == "failed"), "{items:#?}");
    sandbox.ok(["verify", "r", "to"]);
    sandbox.ok(["verify", "r"]);
}

#[test]
fn receipt_of_one_file_is_compared_with_it_by_any_name() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "content");
    sandbox.write("to/unread", vec![0; 1000]);
    sandbox.ok(["copy", "--receipt", "r", "a", "to/b"]);
    let (items, _) = read(&sandbox.path("r"));
    assert_eq!(items.iter().map(|item| &item["path"]).collect::<Vec<_>>(), ["b"]);
    sandbox.ok(["verify", "r", "to"]);
    sandbox.ok(["verify", "r", "to/b"]);
    fs::rename(sandbox.path("to/b"), sandbox.path("to/c")).unwrap();
    sandbox.ok(["verify", "r", "to/c"]);
    assert_eq!(sandbox.run(["verify", "r", "to"]).code, DIFFERENCES);
    sandbox.write("to/c", "CONTENT");
    assert_eq!(sandbox.run(["verify", "r", "to/c"]).code, DIFFERENCES);
}

#[test]
fn attributes_that_were_kept_are_in_the_receipt() {
    let sandbox = Sandbox::new();
    sandbox.write("source/a", "content");
    let python = |code: &str, path: &Path| {
        tool(
            Command::new("python3").args(["-c", &format!("import os, struct, sys\np = sys.argv[1]\n{code}")]).arg(path),
        )
    };
    // Owner, user 1 with these rights, group, mask, others: as Linux keeps a list.
    let setfacl = |path: &Path, rights: u16| {
        let entries = format!("[(1, 6, -1), (2, {rights}, 1), (4, 4, -1), (16, 7, -1), (32, 4, -1)]");
        let value = format!(
            "struct.pack('<I', 2) + b''.join(struct.pack('<HHI', t, r, i & 0xffffffff) for t, r, i in {entries})"
        );
        python(&format!("os.setxattr(p, 'system.posix_acl_access', {value})"), path)
    };
    let setfattr = |path: &Path, value: &str| python(&format!("os.setxattr(p, 'user.k', b'{value}')"), path);
    setfacl(&sandbox.path("source/a"), 4);
    setfattr(&sandbox.path("source/a"), "secret");
    sandbox.ok(["copy", "-a", "--receipt", "r", "source/", "to"]);
    let (items, _) = read(&sandbox.path("r"));
    let a = item(&items, "a");
    assert_eq!(a["owner"]["id"], fs::metadata(sandbox.path("to/a")).unwrap().uid());
    assert!(a["attributes"]["acl"].is_string() && a["attributes"]["extended-attributes"].is_string(), "{a:#}");
    // What an attribute says stays with the file.
    assert!(!fs::read_to_string(sandbox.path("r")).unwrap().contains("secret"));
    sandbox.ok(["verify", "r", "to"]);
    setfattr(&sandbox.path("to/a"), "two");
    assert_eq!(changes(&sandbox.run(["verify", "r", "to"])), ["* a (xattrs)"]);
    setfattr(&sandbox.path("to/a"), "secret");
    setfacl(&sandbox.path("to/a"), 6);
    let ran = sandbox.run(["verify", "r", "to"]);
    assert!(ran.stdout.contains("acl"), "{}", ran.stdout);
    python("os.removexattr(p, 'system.posix_acl_access')", &sandbox.path("to/a"));
    let ran = sandbox.run(["verify", "r", "to"]);
    assert!(ran.stdout.contains("acl"), "{}", ran.stdout);
}

/// The directory that was named is no item of its own name: it may hold one that is called so.
#[test]
fn receipt_of_a_comparison_tells_the_top_from_what_is_in_it() {
    let sandbox = Sandbox::new();
    for (top, mode) in [("a", 0o700), ("b", 0o750)] {
        sandbox.write(format!("{top}/b"), "the same");
        fs::set_permissions(sandbox.path(top), Permissions::from_mode(mode)).unwrap();
        File::open(sandbox.path(format!("{top}/b"))).unwrap().set_modified(UNIX_EPOCH).unwrap();
    }
    for to in ["b", "b/"] {
        assert_eq!(sandbox.run(["check", "-cp", "--receipt", "r", "a", to]).code, DIFFERENCES);
        let (items, statement) = read(&sandbox.path("r"));
        assert_eq!([&item(&items, "")["outcome"], &item(&items, "b")["outcome"]], ["differs", "same"], "{to}");
        assert_eq!(statement["items"], 2);
        sandbox.ok(["verify", "r", "b"]);
    }
    // A file that was named has its name.
    sandbox.ok(["check", "-c", "--receipt", "r", "a/b", "b/b"]);
    assert_eq!(item(&read(&sandbox.path("r")).0, "b")["outcome"], "same");
    sandbox.ok(["verify", "r"]);
}

#[test]
fn receipt_of_a_comparison_claims_what_was_the_same() {
    let sandbox = Sandbox::new();
    let source = plant(&sandbox);
    fs::create_dir(sandbox.path("root")).unwrap();
    tool(Command::new("cp").arg("-a").arg(&source).arg(sandbox.path("root/two")));
    let node = Node::start(&sandbox, "root", &[]);
    let (there, token, receipt) = (node.at("two"), node.token(), sandbox.path("check.receipt"));
    let from = source.to_str().unwrap();
    let checked = |flags: &[&str]| {
        let words = ["check", "--receipt", "check.receipt", from, &there, &token];
        sandbox.run(words.iter().chain(flags))
    };
    // The same: all is claimed, and proved where content was read.
    let ran = checked(&["-c"]);
    assert!(ran.code == 0 && ran.stderr.contains("receipt: check.receipt, "), "{}", ran.stderr);
    let (items, statement) = read(&receipt);
    let said = [&statement["of"], &statement["ending"], &statement["compared"], &statement["destination"]];
    let unpinned = there.split('#').next().unwrap();
    assert_eq!(said, ["check", "complete", "checksum", unpinned]);
    assert!(statement["hosts"][1]["key"].as_str().is_some_and(|key| key.starts_with("sha256:")), "{statement:#}");
    assert_eq!((&statement["outcomes"]["same"], items.len()), (&items.len().into(), items.len()));
    assert_eq!(item(&items, "p/data")["blake3"], blake3::hash(b"p/data as it was").to_hex().as_str());
    sandbox.ok(["verify", "check.receipt", &there, &token]);
    sandbox.ok(["verify", "check.receipt", from]);
    // What has changed since is named.
    fs::write(sandbox.path("root/two/p/data"), "another").unwrap();
    let ran = sandbox.run(["verify", "check.receipt", &there, &token]);
    assert_eq!((ran.code, changes(&ran)), (DIFFERENCES, vec!["* p/data (size, time, content)"]), "{}", ran.stderr);
    // What differs is named, and not claimed.
    fs::remove_file(sandbox.path("root/two/p/size")).unwrap();
    fs::write(sandbox.path("root/two/p/more"), "").unwrap();
    assert_eq!(checked(&["-c"]).code, DIFFERENCES);
    let (items, statement) = read(&receipt);
    for (path, outcome) in [("p/data", "differs"), ("p/size", "missing"), ("p/more", "extra"), ("p/mode", "same")] {
        assert_eq!(item(&items, path)["outcome"], outcome, "{path}");
    }
    let data = item(&items, "p/data");
    assert_eq!((&data["why"], &data["blake3"]), (&"size".into(), &Value::Null));
    assert_eq!(statement["ending"], "partial");
    let unsaid = statement["not_claimed"].to_string();
    assert!(unsaid.contains("3 items that differ, or that one place does not have"), "{unsaid}");
    sandbox.ok(["verify", "check.receipt", &there, &token]);
    // Without content, none is claimed; one that cannot finish says so.
    assert_eq!(checked(&[]).code, DIFFERENCES);
    let (items, statement) = read(&receipt);
    assert!(items.iter().all(|item| item["blake3"].is_null()), "{items:#?}");
    assert!(statement["not_claimed"].to_string().contains("content: it was not read"), "{statement:#}");
    sandbox.run(["check", "--receipt", "check.receipt", from, "absent"]).failed_with(11, &["not finished"]);
    let (items, statement) = read(&receipt);
    assert_eq!((items.len(), &statement["ending"]), (0, &"cut".into()));
    let repairing = ["check", "--repair", "--receipt", "r", from, &there, &token];
    sandbox.run(repairing).failed_with(USAGE, &["--receipt"]);
    // Two files.
    sandbox.ok(["check", "-c", "--receipt", "file.receipt", "source/p/mode", "root/two/p/mode"]);
    let (items, _) = read(&sandbox.path("file.receipt"));
    assert_eq!((items.len(), &items[0]["path"]), (1, &"mode".into()));
    sandbox.ok(["verify", "file.receipt", "root/two/p/mode"]);
}

#[test]
fn lists_and_bags_are_what_their_tools_take() {
    let sandbox = Sandbox::new();
    for name in ["a", "dir/b c", "dir/50%", "dir/new\nline", "empty"] {
        sandbox.write(format!("source/{name}"), if name == "empty" { "" } else { name });
    }
    fs::create_dir_all(sandbox.path("bag")).unwrap();
    sandbox.ok(["copy", "--receipt", "r", "source/", "bag/data"]);
    let list = |words: &[&str]| sandbox.ok(["receipt", "list"].iter().chain(words)).stdout;
    sandbox.write("sha", list(&["sha256sum", "r", "bag/data"]));
    let data = sandbox.path("bag/data");
    tool(Command::new("sha256sum").args(["-c", "--strict"]).arg(sandbox.path("sha")).current_dir(&data));
    sandbox.write("b3", list(&["b3sum", "r"]));
    sandbox.ok(["sum", "-c", "b3", "bag/data"]);
    let of_crate: Value = serde_json::from_str(&list(&["ro-crate", "r"])).unwrap();
    let files: Vec<&str> =
        of_crate["@graph"].as_array().unwrap()[2..].iter().map(|file| file["@id"].as_str().unwrap()).collect();
    assert_eq!(files, ["a", "empty", "dir/50%25", "dir/b%20c", "dir/new%0Aline"]);

    let lines = |words: &[&str]| -> Vec<Value> {
        let ran = sandbox.ok(words.iter().chain(&["--json"]));
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    assert_eq!(lines(&["receipt", "bag", "r", "bag"])[0]["files"], 5);
    let shown = &lines(&["receipt", "show", "r"])[0];
    assert_eq!(lines(&["receipt", "keys"])[0]["fingerprint"], shown["key"], "{shown:#}");
    let told = lines(&["copy", "--receipt", "told", "source/", "told-to"]);
    let told = told.iter().find(|line| line["type"] == "receipt").unwrap();
    assert_eq!((&told["path"], &told["items"], &told["key"]), (&"told".into(), &6.into(), &shown["key"]));
    let manifest = fs::read_to_string(sandbox.path("bag/manifest-sha256.txt")).unwrap();
    assert!(manifest.contains("  data/dir/50%25\n") && manifest.contains("  data/dir/new%0Aline\n"), "{manifest}");
    // Neither percent signs nor line ends: other tools read the rest as it stands.
    let plain: String = manifest.lines().filter(|line| !line.contains('%')).map(|line| format!("{line}\n")).collect();
    sandbox.write("plain", plain);
    for list in ["plain", "bag/tagmanifest-sha256.txt"] {
        let mut sums = Command::new("sha256sum");
        tool(sums.args(["-c", "--strict"]).arg(sandbox.path(list)).current_dir(sandbox.path("bag")));
    }
    fs::write(sandbox.path("bag/data/a"), "b").unwrap();
    let ran = sandbox.run(["receipt", "bag", "r", "bag"]);
    assert_eq!(ran.code, ALTERED, "{}", ran.stderr);
    let ran = sandbox.run(["receipt", "list", "sha256sum", "r", "bag/data"]);
    assert_eq!(ran.code, ALTERED, "{}", ran.stderr);
    fs::write(sandbox.path("bag/data/a"), "a").unwrap();
    sandbox.write("bag/data/more", "nobody has signed for it");
    let ran = sandbox.run(["receipt", "bag", "r", "bag"]);
    assert_eq!(ran.code, USAGE, "{}", ran.stderr);
    assert!(ran.stderr.contains("more"), "{}", ran.stderr);
    fs::remove_file(sandbox.path("bag/data/more")).unwrap();

    fs::write(sandbox.path("source").join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
    fs::create_dir(sandbox.path("linked")).unwrap();
    symlink("a", sandbox.path("linked/link")).unwrap();
    for (source, bag) in [("source", "other"), ("linked", "third")] {
        sandbox.ok(["copy", "--receipt", bag, source, &format!("{bag}-bag/data/")]);
        let ran = sandbox.run(["receipt", "bag", bag, &format!("{bag}-bag")]);
        assert_eq!(ran.code, USAGE, "{}", ran.stderr);
        assert_eq!(fs::read_dir(sandbox.path(format!("{bag}-bag"))).unwrap().count(), 1);
    }
}

/// Of the directories that items are in, and of all that a comparison has found the same.
#[test]
fn directories_are_in_a_receipt_with_what_they_had() {
    let sandbox = Sandbox::new();
    for name in ["source/d/deep/a", "source/d/b", "to/other/c"] {
        sandbox.write(name, name);
    }
    fs::create_dir(sandbox.path("source/empty")).unwrap();
    let chmod = |name: &str, mode| fs::set_permissions(sandbox.path(name), Permissions::from_mode(mode)).unwrap();
    chmod("source/d", 0o750);
    sandbox.ok(["copy", "--receipt", "r", "source/", "to"]);
    let (items, statement) = read(&sandbox.path("r"));
    let named: Vec<_> = items.iter().map(|item| item["path"].as_str().unwrap()).collect();
    assert_eq!(named, ["d", "d/b", "d/deep", "d/deep/a"], "what holds nothing of the copy is not claimed");
    let there = item(&items, "d");
    assert_eq!(
        (&there["outcome"], &there["kind"], &there["mode"]),
        (&"there".into(), &"directory".into(), &"0750".into())
    );
    assert!(there["mtime"].is_null() && there["size"].is_null(), "{there:#}");
    assert_eq!((&statement["outcomes"]["there"], &statement["outcomes"]["copied"]), (&2.into(), &2.into()));
    sandbox.ok(["verify", "r", "to"]);
    chmod("to/d", 0o700);
    fs::rename(sandbox.path("to/d/deep"), sandbox.path("to/d/away")).unwrap();
    assert_eq!(changes(&sandbox.run(["verify", "r", "to"])), ["* d (mode)", "+ d/deep", "+ d/deep/a"]);
    // The second copy finds everything there, and claims the same.
    fs::remove_dir_all(sandbox.path("to/d/away")).unwrap();
    sandbox.ok(["sync", "-c", "--receipt", "r2", "source/", "to"]);
    assert_eq!(item(&read(&sandbox.path("r2")).0, "d")["mode"], "0750");
    sandbox.ok(["verify", "r2", "to"]);
    // A comparison has looked at each of them.
    fs::remove_dir_all(sandbox.path("to/other")).unwrap();
    sandbox.ok(["check", "-c", "--receipt", "r3", "source", "to"]);
    let (items, _) = read(&sandbox.path("r3"));
    assert_eq!(item(&items, "empty")["outcome"], "same");
    fs::remove_dir(sandbox.path("to/empty")).unwrap();
    assert_eq!(changes(&sandbox.run(["verify", "r3", "to"])), ["+ empty"]);
    // One file of a tree is compared with itself by any name, as one that was copied alone.
    sandbox.write("list", "d/b\n");
    sandbox.ok(["copy", "--receipt", "r4", "--files-from=list", "source", "one"]);
    sandbox.ok(["verify", "r4", "source/d/b"]);
    sandbox.run(["verify", "r4", "source/d/deep/a"]).failed_with(DIFFERENCES, &[]);
}
