//! Processes seen from outside, through `/proc`: who is there, and what they listen on.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use super::running::InTime;

/// Every process's number.
fn all() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn about(pid: u32, file: &str) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

/// Processes whose environment names a directory: those of one sandbox, or of one of its hosts.
pub fn at_home_in(directory: &Path) -> Vec<u32> {
    let word = directory.as_os_str().as_bytes();
    all().filter(|pid| about(*pid, "environ").windows(word.len()).any(|window| window == word)).collect()
}

/// The agents among them.
pub fn agents(directory: &Path) -> Vec<u32> {
    // Not the shell that looks for one: its line names the verb, too, but as part of a longer word.
    let is_agent = |pid: &u32| about(*pid, "cmdline").split(|&byte| byte == 0).nth(1) == Some(b"agent");
    at_home_in(directory).into_iter().filter(is_agent).collect()
}

/// The workers among them.
#[cfg(feature = "service")]
pub fn workers(directory: &Path) -> Vec<u32> {
    let is_worker = |pid: &u32| about(*pid, "cmdline").split(|&byte| byte == 0).nth(1) == Some(b"worker");
    at_home_in(directory).into_iter().filter(is_worker).collect()
}

/// The state and the parent of a process.
fn state(pid: u32) -> Option<(char, u32)> {
    let stat = String::from_utf8_lossy(&about(pid, "stat")).into_owned();
    // The name before stands in parentheses and may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

/// Whether a process is there and has not ended.
pub fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|(state, _)| state != 'Z')
}

/// Whether every thread of a process has stopped, after `SIGSTOP`: none is inside a system call any
/// more. One that is gone has.
pub fn is_stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let state = |stat: String| stat.rsplit_once(") ")?.1.chars().next();
    threads
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok().and_then(state))
        .all(|state| matches!(state, 'T' | 'Z' | 'X'))
}

/// Whatever a process started, and what that started in turn.
pub fn descendants(pid: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = all().filter_map(|child| Some((child, state(child)?.1))).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        next += 1;
    }
    found.remove(0);
    found
}

/// Sends a signal by number or name; a process that is gone takes none.
pub fn signal(pid: u32, signal: &str) {
    let _ = Command::new("kill").arg(format!("-{signal}")).arg(pid.to_string()).output_in_time().unwrap();
}

/// The sockets that processes listen on, by inode: unlike a port, that is never someone else's later.
pub fn listening(pids: &[u32]) -> HashSet<u64> {
    let open = pids.iter().flat_map(|pid| std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
    let sockets: HashSet<u64> = open
        .filter_map(|entry| {
            let target = std::fs::read_link(entry.path()).ok()?;
            target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
        })
        .collect();
    sockets.intersection(&all_listening()).copied().collect()
}

/// Every socket of this network namespace that somebody listens on.
pub fn all_listening() -> HashSet<u64> {
    const LISTEN: &str = "0A";
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    lines
        .filter_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            (words.get(3) == Some(&LISTEN)).then(|| words.get(9)?.parse().ok()).flatten()
        })
        .collect()
}
