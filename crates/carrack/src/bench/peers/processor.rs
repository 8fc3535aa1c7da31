//! Processor time of processes as `/proc` tells it: of servers that were started here, and of an sshd.

use std::collections::{HashMap, HashSet};

/// Ticks a second in `/proc/PID/stat`: USER_HZ, which is the same on every machine that Linux is commonly run on.
const TICKS: f64 = 100.0;

/// What `/proc/PID/stat` says of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessStat {
    /// The name of its program, at most 15 bytes of it.
    pub name: String,
    /// Who started it.
    pub parent: u32,
    /// Its own time, in seconds.
    pub own_seconds: f64,
    /// That of all children that it has waited for, in seconds.
    pub waited_seconds: f64,
}

impl ProcessStat {
    /// From the line; `None` if it is none.
    pub fn parse(line: &str) -> Option<Self> {
        // A name may hold spaces and brackets.
        let (before, after) = line.rsplit_once(')')?;
        let name = before.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = after.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok().map(|ticks| ticks / TICKS);
        Some(Self {
            name,
            parent: fields.get(1)?.parse().ok()?,
            own_seconds: ticks(11)? + ticks(12)?,
            waited_seconds: ticks(13)? + ticks(14)?,
        })
    }
}

/// Whether a process is an sshd that listens, by its name and its title: a session's title begins with `sshd: USER`.
pub fn is_listener(name: &str, title: &str) -> bool {
    name == "sshd" && (!title.starts_with("sshd: ") || title.contains("[listener]"))
}

/// The time of a process, of all that it has started and that still run, and of all that they have waited for; `None`
/// where this cannot be known.
pub fn tree_seconds(root: u32) -> Option<f64> {
    let numbers = std::fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let all: HashMap<u32, ProcessStat> = numbers
        .filter_map(|number: u32| {
            Some((number, ProcessStat::parse(&std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?)?))
        })
        .collect();
    seconds_of_tree(root, &all)
}

fn seconds_of_tree(root: u32, all: &HashMap<u32, ProcessStat>) -> Option<f64> {
    all.get(&root)?;
    let mut members = HashSet::from([root]);
    loop {
        let before = members.len();
        members
            .extend(all.iter().filter(|(_, stat)| members.contains(&stat.parent)).map(|(n, _)| *n).collect::<Vec<_>>());
        if members.len() == before {
            break;
        }
    }
    Some(members.iter().filter_map(|number| all.get(number)).map(|stat| stat.own_seconds + stat.waited_seconds).sum())
}

/// Whether somebody listens on a port of this host's loopback.
pub fn listens(port: u16) -> bool {
    let text = std::fs::read_to_string("/proc/self/net/tcp").unwrap_or_default();
    is_listening(&text, port)
}

fn is_listening(text: &str, port: u16) -> bool {
    /// TCP_LISTEN.
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    text.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().unwrap_or_default();
        local.ends_with(&suffix) && fields.nth(1) == Some(LISTEN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(number: u32, parent: u32, name: &str, [own, waited]: [u64; 2]) -> String {
        format!("{number} ({name}) S {parent} 1 1 0 -1 4194560 9 9 9 9 {own} 5 {waited} 10 20 0 1 0 77 1 1")
    }

    #[test]
    fn processes_are_read_whatever_their_names() {
        let read = ProcessStat::parse(&stat(9, 7, "a) b (c", [95, 200])).expect("a process");
        let expected = ProcessStat { name: "a) b (c".to_owned(), parent: 7, own_seconds: 1.0, waited_seconds: 2.1 };
        assert_eq!(read, expected);
        for line in ["", "9 (x) S", "9 x S 7", "9 (x) S 7 1 1 0 -1 4194560 9 9 9 9 a b c d"] {
            assert_eq!(ProcessStat::parse(line), None, "{line}");
        }
        let own =
            ProcessStat::parse(&std::fs::read_to_string("/proc/self/stat").expect("this process")).expect("a process");
        assert_eq!(own.parent, std::os::unix::process::parent_id());
    }

    #[test]
    fn time_of_a_server_is_that_of_all_it_started() {
        let all = [(1, 0, [0, 0]), (5, 1, [95, 90]), (6, 5, [195, 0]), (7, 6, [0, 0]), (8, 1, [900, 900])];
        let all = all.map(|(number, parent, ticks)| {
            (number, ProcessStat::parse(&stat(number, parent, "x", ticks)).expect("a process"))
        });
        let seconds = seconds_of_tree(5, &HashMap::from(all)).expect("it runs");
        // 0.15 s each are in every line.
        assert!((seconds - (0.95 + 0.90 + 1.95 + 3.0 * 0.15)).abs() < 1e-9, "{seconds}");
        assert_eq!(seconds_of_tree(5, &HashMap::new()), None);
        assert!(tree_seconds(std::process::id()).is_some_and(|seconds| seconds >= 0.0));
    }

    #[test]
    fn listener_is_told_from_its_sessions() {
        for title in ["sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups", "/usr/sbin/sshd -D -e"] {
            assert!(is_listener("sshd", title), "{title}");
        }
        for (name, title) in [
            ("sshd", "sshd: me [priv]"),
            ("sshd", "sshd: me@notty"),
            ("sshd-session", "sshd-session: me"),
            ("sh", "sh"),
        ] {
            assert!(!is_listener(name, title), "{title}");
        }
    }

    #[test]
    fn port_counts_once_somebody_listens_on_it() {
        let table = "  sl  local_address rem_address   st\n   0: 0100007F:1CFC 00000000:0000 0A 0\n   \
                     1: 0100007F:1CFD 0100007F:0016 01 0\n";
        assert!(is_listening(table, 0x1cfc) && !is_listening(table, 0x1cfd) && !is_listening(table, 0xfc));
        let open = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        assert!(listens(open.local_addr().expect("an address").port()));
    }
}
