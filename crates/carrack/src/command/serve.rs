//! `carrack serve`: a node. Says where it listens, under which key, and the command that reaches it.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use carrack_core::path::display_bytes;
use carrack_core::pin::format_pin;
use carrack_core::tuning::Tuning;
use carrack_engine::node::Network;
use carrack_engine::node::{Access, Measure, Node, NodeConfig, NodeLog};
use clap::{ArgAction, Command};
use serde_json::json;

use super::context::stop;
use crate::cli::DEFAULT_PORT;
use crate::cli::flag::{Switch, Value};
use crate::cli::flags::Flags;
use crate::cli::ports::parse_listen;
use crate::directories::state_directory;
use crate::error::CommandError;
use crate::exit;
use crate::output::lines::Lines;
use crate::output::{self, json as objects};

const ROOT: Value<Vec<u8>> =
    Value::path("root", "DIR", "Directory to serve; nothing outside it can be reached [required]");
const LISTEN: Value<SocketAddr> =
    Value::new("listen", "ADDR:PORT", parse_listen, "Address to listen on [default: [::]:7420]");
const TOKEN_FILE: Value<Vec<u8>> = Value::path(
    "token-file",
    "FILE",
    "File with the bearer token that clients must show [default: ~/.local/state/carrack/node.token, made if it does \
     not exist]",
);
const ANONYMOUS: Switch =
    Switch::new("anonymous", "Accept clients without a token: anyone who can reach the port can read and write");
const READ_ONLY: Switch = Switch::new("read-only", "Refuse every write");
const MEASURE: Value<Measure> = Value::word(
    "measure",
    "WHO",
    Measure::ALL,
    "Clients that may measure the path to this node (carrack bench net, ladder); one at a time [default: token]",
);
const DIAL_TO: Value<Network> = Value::new(
    "dial-to",
    "CIDR",
    Network::parse,
    "Network, like 10.20.0.0/16, that the node may always connect to for data; without it, the node does not connect \
     to loopback, link-local or its own addresses, and with --anonymous or --read-only only to the host that asks \
     [repeatable]",
);
const KEY_FILE: Value<Vec<u8>> = Value::path(
    "key-file",
    "FILE",
    "File with the node's private key [default: ~/.local/state/carrack/node.key, made if it does not exist]",
);
const JSON: Switch = Switch::new("json", "Print the start-up lines as JSON");

/// What clap knows of it.
pub fn command() -> Command {
    Command::new("serve")
        .about("Serve a directory of this host as a node, on one port")
        .after_help(
            "It prints the commands to copy from and to here, and serves until Ctrl-C stops it. Where XDG_STATE_HOME is set, \
             it stands for ~/.local/state.",
        )
        .args([ROOT.arg(), LISTEN.arg()])
        .arg(TOKEN_FILE.arg().conflicts_with(ANONYMOUS.name))
        .args([ANONYMOUS.arg(), READ_ONLY.arg(), MEASURE.arg()])
        .arg(DIAL_TO.arg().action(ArgAction::Append))
        .args([KEY_FILE.arg(), JSON.arg()])
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    carrack_sys::host::give_memory_back();
    let path = |flag| Ok::<_, CommandError>(flags.get(flag)?.map(|bytes| PathBuf::from(OsString::from_vec(bytes))));
    let root = path(&ROOT)?
        .ok_or_else(|| CommandError::usage("serve needs --root DIR: what is not below it cannot be reached"))?;
    let listen = flags.get(&LISTEN)?;
    let json = flags.has(&JSON);
    let anonymous = flags.has(&ANONYMOUS);
    let config = NodeConfig {
        root: root.clone(),
        listen: listen.unwrap_or(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), DEFAULT_PORT)),
        listener: None,
        access: match path(&TOKEN_FILE)? {
            // A flag outweighs the environment, where the token file may come from.
            _ if anonymous => Access::Anonymous,
            Some(file) => Access::TokenFile(file),
            None => Access::Generated(state_directory().join("node.token")),
        },
        read_only: flags.has(&READ_ONLY),
        measure: flags.get(&MEASURE)?.unwrap_or_default(),
        dial_to: flags.all(&DIAL_TO)?,
        key_file: path(&KEY_FILE)?.unwrap_or_else(|| state_directory().join("node.key")),
        stop: stop(),
        revoked: Default::default(),
        doors: Vec::new(),
        log: NodeLog::none(),
        tuning: Tuning::DEFAULT,
    };
    let node = Node::start(config)?;
    let facts = Announcement {
        address: node.address(),
        fingerprint: node.fingerprint(),
        token_file: node.token_file().map(Path::to_path_buf),
        root,
        read_only: flags.has(&READ_ONLY),
    };
    announce(&facts, anonymous, json);
    node.wait();
    Ok(exit::DONE)
}

/// What the node's users have to know.
struct Announcement {
    address: SocketAddr,
    /// SHA-256 of its public key.
    fingerprint: [u8; 32],
    token_file: Option<PathBuf>,
    root: PathBuf,
    read_only: bool,
}

fn announce(facts: &Announcement, anonymous: bool, as_json: bool) {
    let mut out = Lines::stdout(true);
    if as_json {
        out.json(&objects::object("serving", SystemTime::now(), fields(facts, anonymous)));
    } else {
        let host = host_to_type(facts.address.ip(), &host_name());
        lines(facts, anonymous, &host).iter().for_each(|line| out.line(line.as_bytes()));
    }
    // A node goes on serving whether or not somebody reads this.
    if let Err(error) = out.finish() {
        output::say(&format!("error: {error}"));
    }
}

fn fields(facts: &Announcement, anonymous: bool) -> serde_json::Value {
    let path = |path: &Path| objects::with_path(json!({}), path.as_os_str().as_bytes());
    json!({
        "address": facts.address.to_string(),
        "port": facts.address.port(),
        "root": path(&facts.root),
        "fingerprint": format_pin(&facts.fingerprint),
        "anonymous": anonymous,
        "token_file": facts.token_file.as_deref().map(path),
    })
}

fn lines(facts: &Announcement, anonymous: bool, host: &str) -> Vec<String> {
    let fingerprint = format!("#{}", format_pin(&facts.fingerprint));
    let shown = |path: &Path| display_bytes(path.as_os_str().as_bytes()).to_string();
    let (token, flag) = match &facts.token_file {
        Some(file) => (shown(file), format!(" --token-file {}", quoted(&shown(file)))),
        None if anonymous => ("none asked for: whoever reaches the port may come in".to_owned(), String::new()),
        None => ("none".to_owned(), String::new()),
    };
    let address = match facts.address.port() {
        DEFAULT_PORT => host.to_owned(),
        port => format!("{host}:{port}"),
    };
    let mut lines = vec![
        format!("listening on {}", facts.address),
        format!("root {}", shown(&facts.root)),
        format!("fingerprint {fingerprint}"),
        format!("token {token}"),
        format!("to copy from here: carrack{flag} 'carrack://{address}/PATH{fingerprint}' ."),
    ];
    if !facts.read_only {
        lines.push(format!("to copy to here: carrack{flag} PATH 'carrack://{address}/{fingerprint}'"));
    }
    lines
}

/// A word for a shell: quoted where it has to be.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:@%,".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// What a client types to reach an address: "every address" is none.
fn host_to_type(address: IpAddr, name: &str) -> String {
    match address {
        _ if address.is_unspecified() => name.to_owned(),
        IpAddr::V6(address) => format!("[{address}]"),
        IpAddr::V4(address) => address.to_string(),
    }
}

/// This host's own name, as good a guess as any: names that others know it by are not known here.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match crate::cli::location::parse_host(name.trim().as_bytes()) {
        Ok(name) => name,
        Err(_) => "HOST".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::location::parse_location;

    fn facts(address: &str, token_file: Option<&str>) -> Announcement {
        Announcement {
            address: address.parse().expect("an address"),
            fingerprint: [0xab; 32],
            token_file: token_file.map(PathBuf::from),
            root: PathBuf::from("/data"),
            read_only: false,
        }
    }

    #[test]
    fn serve_tells_what_a_user_needs_to_know() {
        let text = lines(&facts("[::]:7420", Some("/state/my token")), false, "box");
        let pin = format!("#sha256:{}", "ab".repeat(32));
        assert_eq!(text[0], "listening on [::]:7420");
        assert_eq!(text[2], format!("fingerprint {pin}"));
        assert_eq!(text[3], "token /state/my token");
        assert_eq!(
            text[4],
            format!("to copy from here: carrack --token-file '/state/my token' 'carrack://box/PATH{pin}' .")
        );
        assert_eq!(
            text[5],
            format!("to copy to here: carrack --token-file '/state/my token' PATH 'carrack://box/{pin}'")
        );
        let read_only = Announcement { read_only: true, ..facts("[::]:7420", None) };
        assert!(!lines(&read_only, true, "box").iter().any(|line| line.contains("to here")));
        let text = lines(&facts("[::]:99", None), true, "box");
        assert!(text[3].contains("whoever"));
        assert!(text[4].contains("carrack 'carrack://box:99/PATH#"), "{}", text[4]);
    }

    #[test]
    fn location_shown_can_be_typed() {
        let text = lines(&facts("[::1]:99", None), true, "[::1]");
        for line in &text[4..] {
            let location = line.split('\'').nth(1).expect("quoted");
            assert!(parse_location(location.as_bytes()).is_ok(), "{location}");
        }
    }

    #[test]
    fn hosts() {
        for (address, host) in [("::", "box"), ("0.0.0.0", "box"), ("::1", "[::1]"), ("10.0.0.1", "10.0.0.1")] {
            assert_eq!(host_to_type(address.parse().expect("an address"), "box"), host);
        }
        assert_eq!(quoted("a'b"), "'a'\\''b'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn json_shape() {
        let value = fields(&facts("127.0.0.1:5", Some("/t")), false);
        let line = objects::object("serving", SystemTime::UNIX_EPOCH, value.clone());
        assert_eq!(crate::json_schema::Schema::published().check(&line), Ok(()));
        assert_eq!(value["port"], 5);
        assert_eq!(value["root"]["path"], "/data");
        assert_eq!(value["token_file"]["path"], "/t");
        assert_eq!(value["fingerprint"], format!("sha256:{}", "ab".repeat(32)));
    }
}
