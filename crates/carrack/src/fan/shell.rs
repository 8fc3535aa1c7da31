//! The line of shell at the far side, and the `ssh` that takes it there.
//!
//! It needs a POSIX shell and `head`. It stands between single quotes in a line that the login shell reads, whichever
//! that is: so no single quote, no exclamation mark and no newline are in it.

use std::process::Command;

use carrack_core::location::SshHost;

/// What the far shell says before the command: then ssh has connected, and what came before is a login shell's.
pub const BEGIN_LINE: &str = "carrack-fan";

/// Options that come before the user's own would win; these come behind them.
const QUIET: [&str; 5] = ["-x", "-a", "-T", "-o", "BatchMode=yes"];

/// The line. It takes `length` bytes of standard input for the command, which the login shell then runs. When standard
/// input ends before the command does, nobody waits for it any more: everything in the session's process group ends.
/// When the command ends first, what it has left behind stays.
pub fn line(nonce: &str, length: usize) -> String {
    let script = format!(
        "c=$(head -c {length}; echo .); c=${{c%.}}; exec 3<&0 </dev/null; echo; echo {BEGIN_LINE} {nonce}; \
         {{ trap \"\" TERM; while read -r x; do :; done <&3; \
         kill -0 $$ && {{ kill -TERM 0; sleep 2; kill -KILL 0; }}; }} >/dev/null 2>&1 & \
         exec 3<&-; \"${{SHELL:-sh}}\" -c \"$c\"; exit $?"
    );
    format!("exec sh -c '{script}'")
}

/// ssh to a host, which runs `line` there. No question is asked: with many hosts nobody could answer.
pub fn ssh(rsh: &[String], host: &SshHost, line: &str) -> Option<Command> {
    let (program, arguments) = rsh.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments);
    let is_ssh = program.rsplit('/').next() == Some("ssh");
    if is_ssh {
        command.args(QUIET);
    }
    if let Some(user) = &host.user {
        command.args(["-l", user]);
    }
    if is_ssh {
        command.arg("--");
    }
    command.arg(&host.host).arg(line);
    Some(command)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;

    use super::*;

    fn host(text: &str) -> SshHost {
        SshHost { user: Some("me".to_owned()), host: text.to_owned() }
    }

    #[test]
    fn line_survives_any_login_shell() {
        let line = line("abc", 17);
        let inside = line.strip_prefix("exec sh -c '").and_then(|rest| rest.strip_suffix('\'')).expect("quoted");
        assert!(!inside.contains(['\'', '!', '\n']), "{inside}");
        assert!(Command::new("sh").args(["-n", "-c", inside]).status().expect("sh").success());
    }

    #[test]
    fn host_comes_behind_the_end_of_the_options() {
        let command = ssh(&["ssh".to_owned(), "-p22".to_owned()], &host("-oProxyCommand=x"), "true").expect("words");
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words[words.len() - 5..], ["-l", "me", "--", "-oProxyCommand=x", "true"]);
        assert!(ssh(&[], &host("a"), "true").is_none());
    }

    /// The far side alone, without ssh: what a login shell gets. Standard input ends once the command has said a word.
    fn far(command: &str, until: Option<&str>) -> (String, Option<i32>) {
        use std::os::unix::process::CommandExt;
        let mut child = Command::new("sh")
            .args(["-c", &line("abc", command.len())])
            .env("SHELL", "/bin/sh")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(command.as_bytes()).expect("taken");
        let mut kept = Some(input);
        let mut said = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        while output.read_line(&mut said).expect("UTF-8") > 0 {
            kept.take_if(|_| until.is_some_and(|word| said.ends_with(&format!("{word}\n"))));
        }
        (said, child.wait().expect("an end").code())
    }

    #[test]
    fn command_runs_as_it_was_written_and_its_code_comes_back() {
        let (said, code) = far("echo \"it's $((1+1))\"\ncat; exit 7", None);
        assert_eq!((said.as_str(), code), ("\ncarrack-fan abc\nit's 2\n", Some(7)));
        assert_eq!(far("kill -KILL $$", None).1, Some(128 + 9));
    }

    #[test]
    fn what_a_command_leaves_behind_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let (pipe, done) = (directory.path().join("pipe"), directory.path().join("done"));
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let [pipe, done] = [pipe, done].map(|path| path.display().to_string());
        // It waits until the session is over.
        let (_, code) = far(&format!("{{ read -r x <{pipe}; echo there >{done}; }} >/dev/null 2>&1 & exit 0"), None);
        assert_eq!(code, Some(0));
        std::fs::write(&pipe, "go\n").expect("somebody reads");
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !std::fs::read_to_string(&done).is_ok_and(|text| text == "there\n") {
            assert!(std::time::Instant::now() < end, "it is gone");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn command_ends_with_all_it_started_once_nobody_waits() {
        // The inner shell would hold standard output for a minute.
        let (said, code) = far("echo here; sh -c 'sleep 60; echo there'", Some("here"));
        assert_eq!(said, "\ncarrack-fan abc\nhere\n");
        assert_ne!(code, Some(0));
    }
}
