//! What is told of a ledger in memory, by programs of the shell.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::*;
use crate::clock::Moment;
use crate::ledger::memory::MemoryLedger;
use crate::ledger::{NewEvent, Submission, TaskChange, TaskGuard};
use crate::model::{EventKind, NewTask, Pair, TaskState};
use crate::service::simulation::{Faults, Faulty};

const QUICK: NotifyTimes = NotifyTimes {
    look: Duration::from_millis(5),
    pauses: [Duration::from_millis(5); 2],
    program: Duration::from_secs(20),
};

const NOW: Moment = Moment(1_700_000_000_000_000);

struct Rig {
    ledger: Arc<MemoryLedger>,
    /// What goes wrong when the notifier reads the ledger.
    faults: Option<Arc<Faults>>,
    directory: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        Self { ledger: Arc::default(), faults: None, directory: tempfile::tempdir().expect("a directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A task that ends so, and asks for these ends to be told.
    fn ended(&self, id: &str, state: TaskState, notify: &[Notice]) {
        let pair = Pair { source: "@a:/x".into(), destination: Some("@b:/y".into()) };
        let request = NewTask { pairs: vec![pair; 150], notify: notify.to_vec(), ..NewTask::default() };
        let (owner, endpoints) = ("ada".to_owned(), vec!["a".to_owned(), "b".to_owned()]);
        let submission = Submission { id: id.into(), owner, submission_id: None, request, endpoints, estimate: None };
        self.ledger.submit(&submission, NOW).expect("accepted");
        let guard = TaskGuard { states: Vec::new(), version: None, fence: None };
        let change = TaskChange { state: Some(state), ..TaskChange::default() };
        let event = NewEvent {
            kind: EventKind::Ended,
            owner: "ada".into(),
            task: Some(id.into()),
            subject: None,
            text: format!("ended {}", state.name()),
            detail: json!({ "state": state.name() }),
        };
        self.ledger.change_task(id, &guard, &change, &[event], NOW).expect("ended");
    }

    /// A task that is paused, by a guard or by somebody, and asks for these ends to be told.
    fn paused(&self, id: &str, detail: Value, notify: &[Notice]) {
        let pair = Pair { source: "@a:/x".into(), destination: Some("@b:/y".into()) };
        let request = NewTask { pairs: vec![pair], notify: notify.to_vec(), ..NewTask::default() };
        let (owner, endpoints) = ("ada".to_owned(), Vec::new());
        let submission = Submission { id: id.into(), owner, submission_id: None, request, endpoints, estimate: None };
        self.ledger.submit(&submission, NOW).expect("accepted");
        let change = TaskChange { state: Some(TaskState::Paused), ..TaskChange::default() };
        let (kind, task) = (EventKind::Paused, Some(id.to_owned()));
        let event = NewEvent { kind, owner: "ada".into(), task, subject: None, text: "paused".into(), detail };
        self.ledger.change_task(id, &TaskGuard::default(), &change, &[event], NOW).expect("paused");
    }

    /// Somebody has a task tried again.
    fn retried(&self, id: &str) {
        let event = NewEvent {
            kind: EventKind::Queued,
            owner: "ada".into(),
            task: Some(id.into()),
            subject: None,
            text: "tried again".into(),
            detail: json!({}),
        };
        self.ledger.reopen(id, NOW, None, &event).expect("it waits again");
    }

    /// Runs `script` by the shell with `$1` the directory for each event, until `is_done`.
    fn tell(&self, script: &str, config: NotifyConfig, times: NotifyTimes, is_done: &dyn Fn(&Path) -> bool) {
        let directory = self.directory.path().display().to_string();
        let command = ["/bin/sh", "-c", script, "sh", &directory].map(str::to_owned).to_vec();
        let ledger: Arc<dyn Ledger> = match &self.faults {
            None => Arc::<MemoryLedger>::clone(&self.ledger),
            Some(faults) => Arc::new(Faulty { inner: Arc::clone(&self.ledger), faults: Arc::clone(faults) }),
        };
        let config = NotifyConfig { command, ..config };
        let notifier = Notifier::start_with(config, ledger, self.path("notified"), times).expect("a thread");
        let until = Instant::now() + Duration::from_secs(60);
        while !is_done(self.directory.path()) {
            assert!(Instant::now() < until, "nothing was told in time");
            std::thread::sleep(Duration::from_millis(5));
        }
        notifier.expect("a program was named").stop();
    }

    /// What the program has written, a document a line.
    fn told(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("told")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Whether all events so far were dealt with.
    fn is_kept(&self) -> bool {
        let (last, _) = self.ledger.event_range().expect("events");
        let kept = std::fs::read_to_string(self.path("notified")).unwrap_or_default();
        kept.trim() == last.to_string()
    }
}

fn lines(path: &Path, name: &str) -> usize {
    std::fs::read_to_string(path.join(name)).unwrap_or_default().lines().count()
}

fn of_ends(ends: &[Notice]) -> NotifyConfig {
    NotifyConfig { ends: ends.to_vec(), ..NotifyConfig::default() }
}

const TELL: &str = "cat >> \"$1/told\"";

/// It waits until somebody looks, as a failure does.
#[test]
fn task_that_a_guard_holds_is_told_where_failures_are() {
    let blocked = |cause: &str| json!({ "blocked": { "cause": cause, "why": "3 of 4 items would be deleted" } });
    for (ends, expected) in [(&[Notice::Failed][..], &["held", "asked"][..]), (&[Notice::Succeeded], &["asked"])] {
        let rig = Rig::new();
        let begun = std::cell::Cell::new(false);
        rig.tell(TELL, of_ends(ends), QUICK, &|_| {
            if rig.is_kept() && !begun.replace(true) {
                rig.paused("held", blocked("guard"), &[]);
                rig.paused("asked", blocked("guard"), &[Notice::Failed]);
                rig.paused("not-asked", blocked("guard"), &[Notice::Partial]);
                rig.paused("by-somebody", json!({}), &[]);
                rig.paused("drained", blocked("drained"), &[Notice::Failed]);
            }
            begun.get() && rig.is_kept()
        });
        let told = rig.told();
        let ids: Vec<&str> = told.iter().filter_map(|told| told["event"]["task"].as_str()).collect();
        assert_eq!(ids, expected);
        assert_eq!((&told[0]["event"]["kind"], &told[0]["task"]["state"]), (&"paused".into(), &"PAUSED".into()));
    }
}

#[test]
fn ends_that_are_asked_for_are_told_with_their_task_in_order() {
    let rig = Rig::new();
    // What has happened before is nobody's news.
    rig.ended("old", TaskState::Failed, &[]);
    let begun = std::cell::Cell::new(false);
    rig.tell(TELL, of_ends(&[Notice::Failed]), QUICK, &|_| {
        if rig.is_kept() && !begun.replace(true) {
            rig.ended("quiet", TaskState::Succeeded, &[]);
            rig.ended("failed", TaskState::Failed, &[]);
            rig.ended("asked", TaskState::Succeeded, &[Notice::Succeeded]);
            rig.ended("not-asked", TaskState::Failed, &[Notice::Partial]);
        }
        begun.get() && rig.is_kept()
    });
    let told = rig.told();
    let ids: Vec<&str> = told.iter().filter_map(|told| told["event"]["task"].as_str()).collect();
    assert_eq!(ids, ["failed", "asked"]);
    assert_eq!(
        (&told[0]["v"], &told[0]["type"], &told[0]["task"]["state"]),
        (&1.into(), &"notice".into(), &"FAILED".into())
    );
    assert_eq!(told[0]["event"]["owner"], "ada");
    // A task may have many pairs.
    assert_eq!(
        (told[0]["task"]["request"]["pairs"].as_array().map(Vec::len), &told[0]["pairs"]),
        (Some(100), &150.into())
    );
}

#[test]
fn end_is_told_as_its_event_has_it_whatever_became_of_the_task_since() {
    let rig = Rig::new();
    std::fs::write(rig.path("notified"), "0\n").expect("written");
    rig.ended("waits", TaskState::Failed, &[]);
    rig.retried("waits");
    rig.ended("mended", TaskState::Partial, &[Notice::Partial]);
    rig.retried("mended");
    let change = TaskChange { state: Some(TaskState::Succeeded), ..TaskChange::default() };
    rig.ledger.change_task("mended", &TaskGuard::default(), &change, &[], NOW).expect("ended");
    rig.tell(TELL, of_ends(&[Notice::Failed]), QUICK, &|_| rig.is_kept());
    let told = rig.told();
    let ends: Vec<_> = told.iter().map(|told| (&told["event"]["task"], &told["event"]["detail"]["state"])).collect();
    assert_eq!(ends, [(&"waits".into(), &"FAILED".into()), (&"mended".into(), &"PARTIAL".into())]);
    assert_eq!((&told[0]["task"]["state"], &told[1]["task"]["state"]), (&"QUEUED".into(), &"SUCCEEDED".into()));
}

#[test]
fn notice_is_told_once_whichever_read_of_the_ledger_fails() {
    for call in 1..=8 {
        let faults = Arc::new(Faults::default());
        faults.calls_until_fault.store(call, std::sync::atomic::Ordering::Relaxed);
        let rig = Rig { faults: Some(faults), ..Rig::new() };
        std::fs::write(rig.path("notified"), "0\n").expect("written");
        rig.ended("one", TaskState::Failed, &[]);
        rig.ended("two", TaskState::Failed, &[]);
        rig.tell(TELL, of_ends(&[Notice::Failed]), QUICK, &|_| rig.is_kept());
        let told = rig.told();
        let tasks: Vec<_> = told.iter().map(|told| &told["event"]["task"]).collect();
        assert_eq!(tasks, ["one", "two"], "call {call} fails");
    }
}

#[test]
fn event_that_was_not_told_is_told_again_and_none_after_a_restart() {
    let rig = Rig::new();
    std::fs::write(rig.path("notified"), "0\n").expect("written");
    rig.ended("one", TaskState::Failed, &[]);
    rig.ended("two", TaskState::Failed, &[]);
    // The first two attempts fail.
    let script =
        "echo x >> \"$1/tries\"; [ $(wc -l < \"$1/tries\") -gt 2 ] || { echo no >&2; exit 3; }; cat >> \"$1/told\"";
    rig.tell(script, of_ends(&[Notice::Failed]), QUICK, &|_| rig.is_kept());
    assert_eq!(lines(rig.directory.path(), "tries"), 4);
    let tasks = |rig: &Rig| rig.told().iter().map(|told| told["event"]["task"].to_string()).collect::<Vec<_>>();
    assert_eq!(tasks(&rig), ["\"one\"", "\"two\""]);
    rig.ended("three", TaskState::Failed, &[]);
    rig.tell(TELL, of_ends(&[Notice::Failed]), QUICK, &|_| rig.is_kept());
    assert_eq!(tasks(&rig), ["\"one\"", "\"two\"", "\"three\""]);
}

#[test]
fn event_is_given_up_after_three_attempts_and_the_next_one_told() {
    let rig = Rig::new();
    std::fs::write(rig.path("notified"), "0\n").expect("written");
    rig.ended("one", TaskState::Failed, &[]);
    rig.ended("two", TaskState::Failed, &[]);
    let script =
        "read -r line; case $line in *'\"one\"'*) echo x >> \"$1/tries\"; exit 1;; esac; echo \"$line\" >> \"$1/told\"";
    rig.tell(script, of_ends(&[Notice::Failed]), QUICK, &|_| rig.is_kept());
    assert_eq!((lines(rig.directory.path(), "tries"), rig.told().len()), (3, 1));
}

#[test]
fn program_that_does_not_end_is_killed_with_what_it_started() {
    let rig = Rig::new();
    std::fs::write(rig.path("notified"), "0\n").expect("written");
    rig.ended("one", TaskState::Failed, &[]);
    let times = NotifyTimes { program: Duration::from_millis(300), ..QUICK };
    // Its child holds its standard error, and would outlive it.
    let script = "sleep 1000 & echo $! >> \"$1/children\"; wait";
    rig.tell(script, of_ends(&[Notice::Failed]), times, &|_| rig.is_kept());
    let children = std::fs::read_to_string(rig.path("children")).expect("children");
    assert_eq!(children.lines().count(), 3);
    for child in children.lines() {
        let state = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        // Whoever takes up orphans may not have looked yet.
        assert!(state.is_empty() || state.contains(") Z"), "{state}");
    }
}

#[test]
fn service_that_ends_leaves_the_event_to_the_next_one() {
    let rig = Rig::new();
    std::fs::write(rig.path("notified"), "0\n").expect("written");
    rig.ended("one", TaskState::Failed, &[]);
    rig.tell("echo x >> \"$1/begun\"; sleep 1000", of_ends(&[Notice::Failed]), QUICK, &|path| lines(path, "begun") > 0);
    assert!(!rig.is_kept());
    rig.tell(TELL, of_ends(&[Notice::Failed]), QUICK, &|_| rig.is_kept());
    assert_eq!(rig.told().len(), 1);
}

#[test]
fn document_is_signed_and_no_shell_reads_the_command() {
    let rig = Rig::new();
    std::fs::write(rig.path("notified"), "0\n").expect("written");
    rig.ended("one", TaskState::Partial, &[]);
    let script =
        "cat > \"$1/told\"; echo \"$CARRACK_SIGNATURE\" > \"$1/signature\"; echo \"$CARRACK_EVENT\" > \"$1/kind\"";
    let config = NotifyConfig { key: Some(Secret::new("k")), ..of_ends(&[Notice::Partial]) };
    rig.tell(script, config, QUICK, &|_| rig.is_kept());
    let read = |name: &str| std::fs::read_to_string(rig.path(name)).expect("written");
    assert_eq!(read("signature").trim(), program::signature(&Secret::new("k"), read("told").as_bytes()));
    assert_eq!(read("kind").trim(), "ended");
    // RFC 4231, test case 2.
    let known = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(program::signature(&Secret::new("Jefe"), b"what do ya want for nothing?"), known);
    let event = rig.ledger.events(&EventFilter::default(), 1).expect("events").remove(0);
    let written = rig.path("x; touch y");
    let command = ["/usr/bin/touch".to_owned(), written.display().to_string()];
    let (most, is_over) = (Duration::from_secs(20), &|| false);
    let program = NoticeProgram { command: &command, key: None, most, is_over };
    assert_eq!(program.run(&event, b"{}\n"), Ok(()));
    assert!(written.exists() && !rig.path("y").exists());
    let command = ["/nowhere/program".to_owned()];
    let program = NoticeProgram { command: &command, key: None, most, is_over };
    assert!(program.run(&event, b"{}\n").is_err_and(|why| why.contains("cannot be started")));
}

fn contributed(name: &str) -> String {
    format!("{}/../../contrib/notify/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn notice_is_mailed_to_the_owner_that_the_list_names() {
    let rig = Rig::new();
    std::fs::write(rig.path("notified"), "0\n").expect("written");
    rig.ended("one", TaskState::Failed, &[]);
    let fake = "#!/bin/sh\ncat >> \"$0.mail\"\n";
    std::fs::create_dir(rig.path("bin")).expect("made");
    std::fs::write(rig.path("bin/sendmail"), fake).expect("written");
    std::process::Command::new("chmod").arg("755").arg(rig.path("bin/sendmail")).status().expect("chmod");
    std::fs::write(rig.path("addresses"), "bob bob@example.org\nada ada@example.org # hers\n").expect("written");
    let script = format!("PATH=\"$1/bin:$PATH\" exec '{}' \"$1/addresses\" carrack@example.org", contributed("mail"));
    rig.tell(&script, of_ends(&[Notice::Failed]), QUICK, &|_| rig.is_kept());
    let mail = std::fs::read_to_string(rig.path("bin/sendmail.mail")).expect("a mail");
    for line in ["To: ada@example.org", "From: carrack@example.org", "Subject: carrack: one: FAILED", "ended FAILED"] {
        assert!(mail.lines().any(|told| told == line), "{line} is not in\n{mail}");
    }
    assert!(mail.contains("carrack task show one"), "{mail}");
}

#[test]
fn webhook_posts_the_document_with_its_signature_and_goes_nowhere_else() {
    use std::io::{BufRead, BufReader, Read, Write};

    let rig = Rig::new();
    std::fs::write(rig.path("notified"), "0\n").expect("written");
    rig.ended("one", TaskState::Failed, &[]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
    // The first answer leads elsewhere, and is no success; the second takes it.
    let served = std::thread::spawn(move || {
        let mut told = Vec::new();
        for answer in ["302 Found\r\nLocation: http://127.0.0.1:1/", "204 No Content"] {
            let (stream, _) = listener.accept().expect("a connection");
            let mut reader = BufReader::new(stream);
            let (mut headers, mut length) = (Vec::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                let line = line.trim_end().to_ascii_lowercase();
                if line.is_empty() {
                    break;
                }
                length =
                    line.strip_prefix("content-length: ").map_or(length, |length| length.parse().expect("a number"));
                headers.push(line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("the body");
            write!(reader.get_mut(), "HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .expect("told");
            told.push((headers, body));
        }
        told
    });
    let script = format!("exec '{}' {url}", contributed("webhook"));
    let config = NotifyConfig { key: Some(Secret::new("k")), ..of_ends(&[Notice::Failed]) };
    rig.tell(&script, config, QUICK, &|_| rig.is_kept());
    let told = served.join().expect("served");
    assert_eq!(told.len(), 2);
    for (headers, body) in &told {
        let signature = format!("x-carrack-signature: {}", program::signature(&Secret::new("k"), body));
        assert!(headers.contains(&signature) && headers[0].starts_with("post /hook "), "{headers:?}");
        assert_eq!(serde_json::from_slice::<Value>(body).expect("JSON")["event"]["task"], "one");
    }
    let refused = std::process::Command::new(contributed("webhook")).arg("http://192.0.2.1/x").output().expect("run");
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("only https"));
}
