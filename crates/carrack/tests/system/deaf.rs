//! A far side that takes nothing more of what is said to it, and says often enough that it is there: it holds up
//! no signal and no deadline.

use std::fs::File;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use crate::support::process::{at_home_in, descendants, signal};
use crate::support::running::Running;
use crate::support::{Ran, Sandbox, program, wait_until};

/// What the far side takes before it takes nothing more: all that comes before a transfer, and not its beginning.
const TAKEN: usize = 30_000;

/// The flag that starts an agent on this host, as ssh would, and has it hear only so much. It goes on
/// saying that it is there.
fn deaf(sandbox: &Sandbox) -> String {
    let bin = sandbox.path("bin");
    std::fs::create_dir(&bin).unwrap();
    symlink(program(), bin.join("carrack")).unwrap();
    let script = format!(
        "#!/bin/sh\nPATH={}:$PATH\n(dd bs=1 count={TAKEN} 2>&-; exec sleep 600) | sh -c \"$2\"\n",
        bin.display()
    );
    let script = sandbox.write("deaf", script);
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    format!("--rsh={}", script.display())
}

/// Whatever a sandbox's far sides have left; ended when dropped.
struct Left<'a>(&'a Sandbox);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        at_home_in(&self.0.path(".").canonicalize().unwrap()).into_iter().for_each(|pid| signal(pid, "KILL"));
    }
}

/// The process that has the far side's input and does not read it, once nothing more fits into it.
fn unread(command: u32) -> Option<u32> {
    let name = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let sleeper = descendants(command).into_iter().find(|pid| name(pid) == "sleep\n")?;
    let input = File::options().write(true).open(format!("/proc/{sleeper}/fd/0")).ok()?;
    let ready = carrack_sys::socket::wait(&input, false, true, Some(Duration::ZERO)).ok()?;
    (!ready.write).then_some(sleeper)
}

/// Runs a command until the far side takes nothing more, and then to its end, with this signal or its own deadline.
fn ended(sandbox: &Sandbox, words: &[&str], name: Option<&str>) -> Ran {
    let _left = Left(sandbox);
    let mut running = Running::start(sandbox.carrack().args(words));
    let mut sleeper = None;
    wait_until("nothing more is taken", || {
        sleeper = unread(running.id());
        sleeper.is_some() || !running.is_running()
    });
    name.into_iter().for_each(|name| signal(running.id(), name));
    wait_until("the command ends", || !running.is_running());
    let ran = running.end();
    assert!(sleeper.is_some(), "it ended by itself: {}", ran.stderr);
    ran
}

#[test]
fn far_side_that_takes_nothing_more_holds_up_no_signal_and_no_deadline() {
    let sandbox = Sandbox::new();
    let rsh = deaf(&sandbox);
    let far = |name: &str| format!("far:{}", sandbox.path(name).display());
    sandbox.write("tree/a", "a");
    let list: String = (0..20_000).map(|number| format!("{number:0>100}\n")).collect();
    sandbox.write("list", list);
    // Offers of large files pass from one end to the other through the command.
    let deep = ["d".repeat(200), "e".repeat(200), "f".repeat(200)].join("/");
    for number in 0..300 {
        let file = sandbox.write(format!("large/{deep}/{number}"), "");
        File::options().write(true).open(file).unwrap().set_len(2 << 20).unwrap();
    }
    let (from, to) = (far("tree/"), far("there"));
    let pull = ["--files-from=list", &from, "back"];
    let push = ["large", &to];
    for words in [&pull[..], &push[..]] {
        let words = [&[&*rsh], words].concat();
        for (name, code) in [("TERM", 75), ("INT", 20)] {
            let ran = ended(&sandbox, &words, Some(name));
            ran.failed_with(code, &["run the same command again"]);
        }
        let ran = ended(&sandbox, &[&words[..], &["--deadline=3s"]].concat(), None);
        ran.failed_with(30, &["--deadline is over"]);
    }
    // Nothing of it is in the way of a far side that listens.
    let listens = rsh.replace("deaf", "listens");
    let script = std::fs::read_to_string(sandbox.path("deaf")).unwrap();
    let script =
        sandbox.write("listens", script.replace(&format!("(dd bs=1 count={TAKEN} 2>&-; exec sleep 600)"), "cat"));
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    sandbox.ok([&listens, "large", &to]);
    crate::support::same_tree(&sandbox.path("large"), &sandbox.path("there/large"));
}
