//! What the service measures at an endpoint, by its own program.

use std::fs;

use carrack_service::client::{Call, Client, Target};

use crate::support::process::{signal, workers};
use crate::support::service::Service;
use crate::support::{Sandbox, wait_until};

/// What measuring storage to the end writes is far more than this.
const WHOLE: u64 = 512 << 20;

/// The bytes that a process has written, as far as it is there.
fn written(pid: u32) -> Option<u64> {
    let told = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    told.lines().find_map(|line| line.strip_prefix("wchar: "))?.parse().ok()
}

#[test]
fn bench_ends_with_the_service_that_is_killed_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    let (home, root) = (sandbox.path("home"), sandbox.path("data"));
    fs::create_dir(&root).unwrap();
    let mut service = Service::start(&sandbox, &[]);
    sandbox.ok(["endpoint", "add", "lab", root.to_str().unwrap()]);
    let socket = home.join(".local/state/carrack/service/service.sock");
    let client = Client::new(Target::Socket(socket), None).unwrap();
    assert_eq!(client.call(&Call::post("/endpoints/lab/bench")).unwrap().status, 202);
    let entries = || fs::read_dir(&root).unwrap().count();
    wait_until("it measures", || entries() > 0);
    let [pid] = workers(&home)[..] else { panic!("not one process measures") };
    // It goes no further before the service is gone.
    signal(pid, "STOP");
    service.kill();
    signal(pid, "CONT");
    let mut last = 0;
    wait_until("no process is left", || {
        last = written(pid).unwrap_or(last);
        workers(&home).is_empty()
    });
    assert!(last < WHOLE, "it went on measuring: {last} bytes were written");
    assert_eq!(entries(), 0);
}
