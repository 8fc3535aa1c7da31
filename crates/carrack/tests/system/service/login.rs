//! Logging in from another host: by password, by a link that works once, and what ends a login.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use crate::support::service::Service;
use crate::support::{Ran, Sandbox, ran, wait_until};

const OLD: &str = "correct horse battery";
const NEW: &str = "another horse battery";

/// The service's address, with its key.
fn url(service: &Service) -> String {
    let told = service.said.iter().find_map(|line| line.strip_prefix("service https://"));
    format!("https://{}", told.unwrap_or_else(|| panic!("{:?}", service.said)))
}

/// Somebody else's account on another host: a home of their own.
fn from(sandbox: &Sandbox, home: &str, words: &[&str], typed: &str) -> Ran {
    let mut command = sandbox.carrack();
    command.env("HOME", sandbox.path(home)).args(words);
    fed(&mut command, typed)
}

pub fn fed(command: &mut Command, typed: &str) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Who is refused at once reads nothing.
    let _ = child.stdin.take().unwrap().write_all(typed.as_bytes());
    ran(crate::support::running::end_of(child))
}

pub fn add(sandbox: &Sandbox, name: &str, password: &str) {
    let mut command = sandbox.carrack();
    command.args(["service", "user", "add", name, "--password"]);
    let added = fed(&mut command, &format!("{password}\n"));
    assert_eq!(added.code, 0, "{}", added.stderr);
}

#[test]
fn password_logs_in_and_wrong_ones_are_slowed_down() {
    let sandbox = Sandbox::new();
    let service = Service::start(&sandbox, &[]);
    let url = url(&service);
    add(&sandbox, "ada", OLD);
    let login = |password: &str| from(&sandbox, "ada", &["login", "--service", &url, "ada"], &format!("{password}\n"));
    login("wrong horse battery").failed_with(77, &["do not fit"]);
    from(&sandbox, "ada", &["whoami"], "").failed_with(10, &[]);
    let begun = login(OLD);
    assert!(begun.code == 0 && begun.stdout.contains("ada"), "{}{}", begun.stdout, begun.stderr);
    assert!(!begun.stderr.contains(OLD) && !service.log().contains(OLD));
    let who = from(&sandbox, "ada", &["whoami", "--json"], "");
    assert!(who.stdout.contains("\"via\":\"session\""), "{}{}", who.stdout, who.stderr);
    let guesses: Vec<Ran> = (0..8).map(|number| login(&format!("wrong horse {number}"))).collect();
    assert!(guesses[0].stderr.contains("do not fit"), "{}", guesses[0].stderr);
    assert!(guesses.iter().any(|guess| guess.stderr.contains("try again in")), "{}", guesses[7].stderr);
    // Whoever is in stays in.
    assert_eq!(from(&sandbox, "ada", &["whoami"], "").code, 0);
}

#[test]
fn own_password_is_changed_and_ends_logins_elsewhere() {
    let sandbox = Sandbox::new();
    let service = Service::start(&sandbox, &[]);
    let url = url(&service);
    add(&sandbox, "ada", OLD);
    let login = |home: &str, password: &str| {
        from(&sandbox, home, &["login", "--service", &url, "ada"], &format!("{password}\n")).code
    };
    assert_eq!((login("laptop", OLD), login("desk", OLD)), (0, 0));
    let change = |typed: &str| from(&sandbox, "laptop", &["service", "user", "password"], typed);
    change(&format!("wrong horse battery\n{NEW}\n")).failed_with(77, &["another one"]);
    change(&format!("{OLD}\nshort\n")).failed_with(2, &["10 to 1024"]);
    assert_eq!(from(&sandbox, "desk", &["whoami"], "").code, 0, "nothing has changed so far");
    let changed = change(&format!("{OLD}\n{NEW}\n"));
    assert_eq!(changed.code, 0, "{}", changed.stderr);
    assert_eq!(from(&sandbox, "laptop", &["whoami"], "").code, 0, "who has changed it is still in");
    from(&sandbox, "desk", &["whoami"], "").failed_with(77, &[]);
    assert_eq!((login("desk", OLD), login("desk", NEW)), (77, 0));
    let out = from(&sandbox, "laptop", &["logout", "--everywhere"], "");
    assert_eq!(out.code, 0, "{}", out.stderr);
    from(&sandbox, "desk", &["whoami"], "").failed_with(77, &[]);
    assert_eq!(login("desk", NEW), 0);
    sandbox.ok(["service", "user", "logout", "ada"]);
    from(&sandbox, "desk", &["whoami"], "").failed_with(77, &[]);
}

/// A link is printed for a person, never for a file, a pipe or the log.
#[test]
fn login_link_is_printed_on_a_terminal_and_works_once() {
    let sandbox = Sandbox::new();
    let (person, terminal) = carrack_faults::pty::open().unwrap();
    let log = sandbox.path("log");
    let mut command = sandbox.carrack();
    command.args(["serve", "--listen", "127.0.0.1:0"]).stdout(terminal).stderr(File::create(&log).unwrap());
    let mut child = Ended(command.spawn().unwrap());
    // The terminal ends when nobody has it open any more.
    drop(command);
    let mut lines = BufReader::new(person).lines();
    let link = lines.find_map(|line| line.ok().filter(|line| line.contains("login="))).unwrap();
    let link = link.trim().to_owned();
    assert!(link.starts_with("https://127.0.0.1:") && link.contains("#sha256:"), "{link}");
    let login = || from(&sandbox, "elsewhere", &["login", "--link"], &format!("{link}\n"));
    let begun = login();
    assert!(begun.code == 0 && begun.stdout.contains("local"), "{}{}", begun.stdout, begun.stderr);
    assert!(from(&sandbox, "elsewhere", &["task", "list"], "").code == 0, "the session is the service's own user's");
    login().failed_with(77, &["used up"]);
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    let secret = link.rsplit('=').next().unwrap();
    assert!(!std::fs::read_to_string(&log).unwrap().contains(secret));
    let service = Service::start(&sandbox, &[]);
    wait_until("it tells that it has begun", || service.log().contains("has begun"));
    assert!(!service.said.join("\n").contains("login=") && !service.log().contains("login="));
}

#[test]
fn login_link_is_made_later_for_a_user() {
    let sandbox = Sandbox::new();
    let _service = Service::start(&sandbox, &[]);
    sandbox.ok(["service", "user", "add", "ada"]);
    let link = sandbox.ok(["service", "user", "link", "ada"]).stdout;
    let begun = from(&sandbox, "ada", &["login", "--link"], &link);
    assert!(begun.code == 0 && begun.stdout.contains("ada"), "{}{}", begun.stdout, begun.stderr);
    // One's own, for another device.
    let own = from(&sandbox, "ada", &["service", "user", "link"], "").stdout;
    assert_eq!(from(&sandbox, "phone", &["login", "--link"], &own).code, 0);
    from(&sandbox, "ada", &["service", "user", "link", "local"], "").failed_with(11, &["does not exist"]);
    from(&sandbox, "ada", &["login", "--link"], "no link at all\n").failed_with(2, &["no login link"]);
}

/// The prompt is for a person, and nothing that they type is shown.
#[test]
fn password_that_is_typed_is_not_shown() {
    let sandbox = Sandbox::new();
    let service = Service::start(&sandbox, &[]);
    let url = url(&service);
    add(&sandbox, "ada", OLD);
    let (mut person, terminal) = carrack_faults::pty::open().unwrap();
    let mut command = sandbox.carrack();
    let theirs = || terminal.try_clone().unwrap();
    command.env("HOME", sandbox.path("ada")).args(["login", "--service", &url, "ada"]);
    command.stdin(theirs()).stdout(Stdio::piped()).stderr(theirs());
    let mut child = Ended(command.spawn().unwrap());
    drop(command);
    wait_until("nothing that is typed is shown", || !carrack_faults::pty::shows_typing(&person).unwrap());
    person.write_all(format!("{OLD}\n").as_bytes()).unwrap();
    let status = child.0.wait().unwrap();
    assert!(carrack_faults::pty::shows_typing(&person).unwrap(), "the terminal is left as it was");
    drop(terminal);
    let mut shown = Vec::new();
    // Once nobody has the other side open, the terminal ends with an error.
    let _ = person.read_to_end(&mut shown);
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(status.success(), "{shown}");
    assert!(shown.contains("the password of ada: ") && !shown.contains(OLD), "{shown}");
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
