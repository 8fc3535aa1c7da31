//! Rights that end while they are used.

use std::fs;

use super::Scene;
use crate::support::running::Running;
use crate::support::wait_until;

/// A local endpoint that ada may use, with a file that takes half a minute.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.sandbox.write("archive/large", crate::support::tree::bytes(64 << 20, 5));
    let root = scene.sandbox.path("archive").display().to_string();
    scene.sandbox.ok(["endpoint", "add", "archive", &root, "--users", "ada"]);
    scene
}

#[test]
fn endpoint_session_ends_within_seconds_of_the_tokens_revocation() {
    let scene = scene();
    let ada = scene.log_in("ada", &[]);
    let running = Running::start(ada.command().args(["@archive:/large", "got/", "--bwlimit=1MB"]));
    wait_until("bytes come", || !scene.sandbox.parts("got").is_empty());
    scene.sandbox.ok(["service", "token", "revoke", ada.id()]);
    let ran = running.end();
    super::without_secrets(&ran);
    ran.failed_with(77, &["revoked"]);
    assert!(!scene.sandbox.path("got/large").exists());
    ada.run(&["ls", "@archive:/"]).failed_with(77, &["carrack login"]);
}

#[test]
fn endpoint_session_ends_when_its_user_is_disabled_and_goes_on_when_not() {
    let scene = scene();
    let ada = scene.log_in("ada", &[]);
    let start = || Running::start(ada.command().args(["@archive:/large", "got/", "--bwlimit=8MB"]));
    let running = start();
    wait_until("bytes come", || !scene.sandbox.parts("got").is_empty());
    scene.sandbox.ok(["service", "user", "edit", "ada", "--disable"]);
    running.end().failed_with(77, &["revoked"]);
    scene.sandbox.ok(["service", "user", "edit", "ada", "--enable"]);
    let ran = start().end();
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(fs::metadata(scene.sandbox.path("got/large")).unwrap().len(), 64 << 20);
}
