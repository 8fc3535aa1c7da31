//! Which token a node is shown, and which files are taken for one.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::kept::{keep_in, kept_in};
use super::*;

/// Whether the command names several nodes.
const ALONE: bool = false;
const OF_SEVERAL: bool = true;

/// A directory in place of the user's and of everybody's.
struct Home {
    directory: tempfile::TempDir,
    variables: HashMap<String, OsString>,
}

impl Home {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), variables: HashMap::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A file with a mode.
    fn write(&self, name: &str, text: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    fn set(&mut self, variable: &str, value: impl Into<OsString>) {
        self.variables.insert(variable.into(), value.into());
    }

    fn choose(&self, of_several: bool, was_pinned: bool) -> Result<Shown, Failure> {
        let variable = |name: &str| self.variables.get(name).cloned();
        let surroundings = Surroundings { variable: &variable, kept: self.path("tokens"), shared: self.path("shared") };
        surroundings.choose(&node("Node.example."), of_several, was_pinned)
    }

    /// The token that a pinned node is shown.
    fn shown(&self, of_several: bool) -> String {
        self.choose(of_several, true).unwrap().token.expect("a token").reveal().to_owned()
    }

    /// Why none was shown.
    fn withheld(&self, of_several: bool, was_pinned: bool) -> Failure {
        let shown = self.choose(of_several, was_pinned).unwrap();
        assert_eq!(shown.token, None);
        *shown.withheld.expect("a reason")
    }

    /// The same in words.
    fn hint(&self, of_several: bool, was_pinned: bool) -> String {
        self.withheld(of_several, was_pinned).message()
    }
}

fn node(host: &str) -> NodeAddress {
    NodeAddress { host: host.into(), port: 7420, pin: None }
}

fn own_name() -> String {
    format!("bt_u{}", carrack_sys::host::user_id())
}

#[test]
fn found_tokens_follow_the_order_of_the_field() {
    let mut home = Home::new();
    assert_eq!(home.choose(ALONE, true).unwrap(), Shown::default());
    home.write(&format!("shared/{}", own_name()), "of-tmp\n", 0o600);
    assert_eq!(home.shown(ALONE), "of-tmp");
    home.write(&format!("run/{}", own_name()), " of-run ", 0o400);
    home.set("XDG_RUNTIME_DIR", home.path("run"));
    assert_eq!(home.shown(ALONE), "of-run");
    let named = home.write("named", "of-file", 0o600);
    home.set("BEARER_TOKEN_FILE", named);
    assert_eq!(home.shown(ALONE), "of-file");
    home.set("BEARER_TOKEN", "of-variable");
    assert_eq!(home.shown(ALONE), "of-variable");
    home.write("tokens/node.example:7420", "kept-for-it", 0o600);
    assert_eq!(home.shown(ALONE), "kept-for-it");
}

#[test]
fn token_that_no_flag_named_is_not_shown_at_a_first_meeting_with_its_node() {
    let mut home = Home::new();
    home.set("BEARER_TOKEN", "a-secret");
    let hint = home.hint(ALONE, false);
    assert!(hint.contains("BEARER_TOKEN") && hint.contains("first meeting"), "{hint}");
    assert_eq!(home.withheld(ALONE, false).reason, Some(Reason::FirstMeeting));
    home.write("tokens/node.example:7420", "a-secret", 0o600);
    for of_several in [ALONE, OF_SEVERAL] {
        let hint = home.hint(of_several, false);
        assert!(hint.contains("kept for it") && !hint.contains("a-secret"), "{hint}");
    }
}

#[test]
fn token_of_another_port_of_the_host_is_named_and_not_shown() {
    let mut home = Home::new();
    home.write("tokens/other.example:7420", "of-another-host", 0o600);
    home.write("tokens/xnode.example:7420", "of-another-host", 0o600);
    assert_eq!(home.choose(ALONE, true).unwrap(), Shown::default());
    home.write("tokens/node.example:7422", "a-secret", 0o600);
    home.write("tokens/node.example:7421", "a-secret", 0o600);
    let withheld = home.withheld(ALONE, true);
    assert_eq!(withheld.reason, Some(Reason::TokenMissing));
    let told = "the token that is kept for node.example:7421 was not shown, because this is node.example:7420";
    assert_eq!(withheld.message(), told);
    // One that is found where other tools look is tried.
    home.set("BEARER_TOKEN", "of-variable");
    assert_eq!(home.shown(ALONE), "of-variable");
}

#[test]
fn token_that_was_only_found_is_shown_to_none_of_several_nodes() {
    let mut home = Home::new();
    home.set("BEARER_TOKEN", "a-secret");
    assert_eq!(home.withheld(OF_SEVERAL, true).reason, Some(Reason::TokenOfSeveral));
    home.write("tokens/node.example:7420", "its-own", 0o600);
    assert_eq!(home.shown(OF_SEVERAL), "its-own");
}

/// What anybody may have put into a shared directory, under the name that a token would have.
#[test]
fn found_files_of_others_are_passed_over_without_a_word() {
    let mut home = Home::new();
    let secret = home.write("id_secret", "a-secret-in-one-word", 0o600);
    home.set("XDG_RUNTIME_DIR", home.path("run"));
    let place = home.path("run").join(own_name());
    fs::create_dir(home.path("run")).unwrap();
    let nothing = |home: &Home, what: &str| {
        assert_eq!(home.choose(ALONE, true).unwrap(), Shown::default(), "{what}");
    };
    symlink(&secret, &place).unwrap();
    nothing(&home, "a link to a file of the user's");
    // The next place is looked at.
    home.write(&format!("shared/{}", own_name()), "of-tmp", 0o600);
    assert_eq!(home.shown(ALONE), "of-tmp");
    fs::remove_dir_all(home.path("shared")).unwrap();
    fs::remove_file(&place).unwrap();
    fs::hard_link(&secret, &place).unwrap();
    nothing(&home, "a second name of it");
    fs::remove_file(&place).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&place).status().unwrap().success());
    nothing(&home, "a FIFO, which nobody writes to");
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    nothing(&home, "a directory");
    fs::remove_dir(&place).unwrap();
    symlink("nowhere", &place).unwrap();
    nothing(&home, "a link to nowhere");
    fs::remove_file(&place).unwrap();
    if carrack_sys::host::user_id() == 0 {
        let path = home.write(&format!("run/{}", own_name()), "of-another", 0o600);
        std::os::unix::fs::chown(&path, Some(4711), None).unwrap();
        nothing(&home, "another user's file");
    }
}

#[test]
fn found_files_that_hold_no_token_are_not_shown_and_the_reason_is_told() {
    let mut home = Home::new();
    let pem = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA\n-----END OPENSSH PRIVATE KEY-----\n";
    let path = home.write("key", pem, 0o600);
    home.set("BEARER_TOKEN_FILE", path);
    let hint = home.hint(ALONE, true);
    assert!(hint.contains("it is no token") && !hint.contains("b3Blbn"), "{hint}");
    home.write("key", "word", 0o640);
    assert!(home.hint(ALONE, true).contains("others can read"));
    fs::remove_file(home.path("key")).unwrap();
    assert!(home.hint(ALONE, true).contains("no such file"));
    home.set("BEARER_TOKEN", OsString::from_vec(b"a\xffb".to_vec()));
    assert!(home.hint(ALONE, true).contains("visible ASCII"));
}

/// Nothing is sent in its place.
#[test]
fn kept_token_that_cannot_be_used_is_an_error() {
    let home = Home::new();
    home.write("tokens/node.example:7420", "word", 0o644);
    let failure = home.choose(ALONE, true).unwrap_err();
    assert_eq!(failure.code, ErrorCode::AuthenticationFailed);
    assert!(failure.message().contains("tokens/node.example:7420"), "{failure}");
}

#[test]
fn kept_tokens_are_listed_by_node_and_replaced_whole() {
    let home = Home::new();
    let directory = home.path("config/tokens");
    assert!(kept_in(&directory).unwrap().is_empty());
    for (host, token) in [("b", "one"), ("A.", "two\n"), ("b", "three")] {
        keep_in(&directory, &node(host), token.as_bytes()).unwrap();
    }
    // A link is replaced, not followed: it would not be read.
    fs::remove_file(directory.join("a:7420")).unwrap();
    symlink(home.path("elsewhere"), directory.join("a:7420")).unwrap();
    keep_in(&directory, &node("a"), b"four").unwrap();
    assert!(!home.path("elsewhere").exists());
    assert_eq!(keep_in(&directory, &node("b"), b"two words").unwrap_err().code, ErrorCode::Usage);
    let found = kept_in(&directory).unwrap();
    assert_eq!(found.iter().map(|kept| &*kept.node).collect::<Vec<_>>(), ["a:7420", "b:7420"]);
    assert!(found.iter().all(|kept| kept.refused.is_none()));
    assert_eq!(fs::read_to_string(&found[1].path).unwrap(), "three\n");
    assert_eq!(fs::metadata(&found[1].path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
    fs::set_permissions(&found[0].path, Permissions::from_mode(0o644)).unwrap();
    assert!(kept_in(&directory).unwrap()[0].refused.as_ref().is_some_and(|why| why.contains("others can read")));
}
