//! What `carrack serve` prints once it serves: where, under which key, and the commands that reach it.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use carrack_core::path::display_bytes;
use carrack_core::pin::format_pin;
use carrack_core::words::shell_word;
use serde_json::json;

use crate::output::lines::Lines;
use crate::output::{self, json as objects};
use carrack_core::location::{DEFAULT_PORT, check_endpoint_name};

/// What the node's users have to know.
pub struct Announcement {
    /// Where it listens.
    pub address: SocketAddr,
    /// SHA-256 of its public key.
    pub fingerprint: [u8; 32],
    /// Where its token is.
    pub token_file: Option<PathBuf>,
    /// What it serves.
    pub root: PathBuf,
    /// Nothing may be changed.
    pub read_only: bool,
    /// The service beside the node, if there is one.
    pub service: Option<AnnouncedService>,
}

/// What the users of a service have to know.
pub struct AnnouncedService {
    /// Its Unix socket.
    pub socket: PathBuf,
    /// Its state directory.
    pub state: PathBuf,
    /// SHA-256 of the public key that its API shows.
    pub fingerprint: [u8; 32],
    /// Whether verbs of this account find the socket by themselves.
    pub is_default: bool,
}

#[cfg(feature = "service")]
impl Announcement {
    /// Where others reach the service, with its key.
    pub fn service_address(&self) -> Option<String> {
        let service = self.service.as_ref()?;
        let host = host_to_type(self.address.ip(), &host_name());
        Some(service_address(&host, self.address.port(), service))
    }
}

fn service_address(host: &str, port: u16, service: &AnnouncedService) -> String {
    format!("https://{}#{}", with_port(host, port), format_pin(&service.fingerprint))
}

/// Prints it.
pub fn announce(facts: &Announcement, anonymous: bool, as_json: bool) {
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
    let mut fields = json!({
        "address": facts.address.to_string(),
        "port": facts.address.port(),
        "root": path(&facts.root),
        "fingerprint": format_pin(&facts.fingerprint),
        "anonymous": anonymous,
        "token_file": facts.token_file.as_deref().map(path),
    });
    if let Some(service) = &facts.service {
        fields["service"] = json!({
            "socket": path(&service.socket),
            "state": path(&service.state),
            "fingerprint": format_pin(&service.fingerprint),
        });
    }
    fields
}

fn lines(facts: &Announcement, anonymous: bool, host: &str) -> Vec<String> {
    let fingerprint = format!("#{}", format_pin(&facts.fingerprint));
    let shown = |path: &Path| display_bytes(path.as_os_str().as_bytes()).to_string();
    let (token, flag) = match &facts.token_file {
        Some(file) => (shown(file), format!(" --token-file {}", shell_word(&shown(file)))),
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
    if cfg!(feature = "service") {
        let name = endpoint_name(&facts.root, host);
        lines.push(format!(
            "to name it in a service: carrack endpoint add {name} 'carrack://{address}/{fingerprint}'{flag}"
        ));
    }
    if let Some(service) = &facts.service {
        let socket = shown(&service.socket);
        let named = if service.is_default { String::new() } else { format!(" --service {}", shell_word(&socket)) };
        lines.push(format!("service state {}", shown(&service.state)));
        lines.push(format!("service socket {socket}"));
        lines.push(format!("service {}", service_address(host, facts.address.port(), service)));
        let login = shell_word(&service_address(host, facts.address.port(), service));
        lines.push(format!("to log in from elsewhere: carrack login --service {login} USER"));
        lines.push(
            "the node's fingerprint stands behind carrack:// addresses, the service's behind https://".to_owned(),
        );
        lines.push(format!("to submit a task: carrack task submit{named} SRC DST"));
    }
    lines
}

/// What an endpoint at this node may be called: as its root, or else as its host.
fn endpoint_name(root: &Path, host: &str) -> String {
    let last = root.file_name().map(|name| name.as_bytes()).unwrap_or_default();
    [last, host.as_bytes()].into_iter().find_map(|name| check_endpoint_name(name).ok()).unwrap_or("NAME").to_owned()
}

/// An address for a URL, whose port is always named: browsers have another default.
fn with_port(host: &str, port: u16) -> String {
    format!("{host}:{port}")
}

/// What a client types to reach an address: "every address" is none.
pub fn host_to_type(address: IpAddr, name: &str) -> String {
    match address {
        _ if address.is_unspecified() => name.to_owned(),
        IpAddr::V6(address) => format!("[{address}]"),
        IpAddr::V4(address) => address.to_string(),
    }
}

/// This host's own name, as good a guess as any: names that others know it by are not known here.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match carrack_core::location::parse_host(name.trim().as_bytes()) {
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
            service: None,
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
        assert_eq!(
            text.last(),
            Some(&format!("to name it in a service: carrack endpoint add data 'carrack://box:99/{pin}'"))
        );
        assert!(text[3].contains("whoever"));
        assert!(text[4].contains("carrack 'carrack://box:99/PATH#"), "{}", text[4]);
    }

    #[test]
    fn serve_tells_how_the_service_is_reached() {
        let service = |is_default| AnnouncedService {
            socket: "/state/service/service.sock".into(),
            state: "/state/service".into(),
            fingerprint: [0xcd; 32],
            is_default,
        };
        let facts = Announcement { service: Some(service(true)), ..facts("[::]:7420", None) };
        let text = lines(&facts, false, "box");
        let url = format!("service https://box:7420#sha256:{}", "cd".repeat(32));
        assert!(text.contains(&url), "{text:?}");
        assert_eq!(text.last().map(String::as_str), Some("to submit a task: carrack task submit SRC DST"));
        let line = objects::object("serving", SystemTime::UNIX_EPOCH, fields(&facts, false));
        assert_eq!(crate::json_schema::Schema::published().check(&line), Ok(()));
        let login = format!(
            "to log in from elsewhere: carrack login --service 'https://box:7420#sha256:{}' USER",
            "cd".repeat(32)
        );
        assert!(text.contains(&login), "{text:?}");
        let facts = Announcement { service: Some(service(false)), ..facts };
        let text = lines(&facts, false, "box");
        assert!(text.iter().any(|line| line.ends_with("--service /state/service/service.sock SRC DST")), "{text:?}");
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
    fn endpoint_is_named_as_its_root_or_its_host() {
        for (root, host, name) in
            [("/data/run42", "box", "run42"), ("/", "box", "box"), ("/my data", "box", "box"), ("/", "[::1]", "NAME")]
        {
            assert_eq!(endpoint_name(Path::new(root), host), name, "{root}");
        }
    }

    #[test]
    fn hosts() {
        for (address, host) in [("::", "box"), ("0.0.0.0", "box"), ("::1", "[::1]"), ("10.0.0.1", "10.0.0.1")] {
            assert_eq!(host_to_type(address.parse().expect("an address"), "box"), host);
        }
        assert_eq!(shell_word("a'b"), "'a'\\''b'");
        assert_eq!(shell_word(""), "''");
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
