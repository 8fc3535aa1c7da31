//! The service that a verb speaks to: `--service`, else the one that runs on this host, else the one of the last login;
//! with what is known of its key, and the token of a login there.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use carrack_core::failure::{ErrorCode, Failure, Reason, Side};
use carrack_core::location::NodeAddress;
use carrack_core::path::display_bytes;
use carrack_core::pin::format_pin;
use carrack_engine::keys::{KnownKeys, KnownNodes};
use carrack_engine::secrets::{Unread, read_secret, write_whole};
use carrack_service::client::{Answer, Call, Client, ClientError, Events, Target, with_query};
use carrack_service::model::{Listed, Problem, ProblemCode, Secret};
use clap::Arg;
use serde::de::DeserializeOwned;

use crate::cli::flag::{Switch, Value};
use crate::cli::flags::{Flags, variable};
use crate::directories::{config_directory, state_directory};
use crate::error::CommandError;
use crate::output::{format, problem_hints, say};

/// Names the service.
pub const SERVICE: Value<Target> = Value::new(
    "service",
    "URL|SOCKET",
    Target::parse,
    "The service to speak to: https://HOST[:PORT][#sha256:FINGERPRINT], or the path of its socket [default: the one \
     of this host, else that of the last carrack login]",
);

/// Directory of a service of this host.
pub const STATE_DIR: Value<Vec<u8>> = Value::path(
    "state-dir",
    "DIR",
    "Directory of the service: ledger, journals, keys, socket; made if it does not exist [default: \
     ~/.local/state/carrack/service]",
);
/// Socket of a service of this host.
pub const SOCKET: Value<Vec<u8>> =
    Value::path("socket", "PATH", "The service's Unix socket [default: service.sock in the state directory]");

/// Where a service of the system has its socket.
const SYSTEM_SOCKET: &str = "/run/carrack/service.sock";
/// How many rows are asked for at once.
const PAGE: usize = 500;
/// The most bytes that a kept token has.
const TOKEN_BYTES: usize = 4096;

/// Tells each request.
const VERBOSE: Switch =
    Switch::short('v', "verbose", "Tell also what the service is asked, its answer and how long it took");

/// The flag, for a verb and all below it.
pub fn arg() -> Arg {
    SERVICE.arg().global(true)
}

/// The flags of a verb about a service, and of all below it.
pub fn args() -> [Arg; 2] {
    [arg(), VERBOSE.arg().global(true)]
}

/// The directory of the service that runs under this account.
pub fn service_directory() -> PathBuf {
    state_directory().join("service")
}

/// The socket of the service in a directory.
pub fn socket_in(directory: &Path) -> PathBuf {
    directory.join("service.sock")
}

/// A service, and what one is to it.
pub struct Service {
    client: Client,
    keys: KnownNodes,
    is_verbose: bool,
}

impl Service {
    /// The service that the flags mean, with the token of a login there.
    ///
    /// # Errors
    /// A usage error in `--service`; files of the user's that cannot be read.
    pub fn open(flags: &Flags) -> Result<Self, CommandError> {
        let target = target(flags)?;
        let token = match node_of(&target) {
            Some(node) => kept_token(&token_path(&node))?,
            None => None,
        };
        Ok(Self { is_verbose: flags.has_if_known(&VERBOSE), ..Self::at(target, token)? })
    }

    /// The service at this place.
    ///
    /// # Errors
    /// Files of the user's that cannot be read.
    pub fn at(target: Target, token: Option<Secret>) -> Result<Self, CommandError> {
        let keys = KnownNodes::new(config_directory().join("known_services"));
        let target = match node_of(&target) {
            Some(node) if is_unpinned(&target) => match keys.expected(&node)?.pin {
                Some(pin) => target.pinned(pin),
                None => target,
            },
            _ => target,
        };
        let client = Client::new(target, token)
            .map_err(|error| CommandError::file("cannot begin to use", b"the network", &error))?;
        Ok(Self { client, keys, is_verbose: false })
    }

    /// Looks whether it can be reached, and shows the right key.
    ///
    /// # Errors
    /// When it is not so.
    pub fn reachable(&self) -> Result<(), CommandError> {
        match self.asked(&Call::get("/whoami")) {
            // Who asks without a token is told so.
            Ok(_) | Err(ClientError::Problem(_)) => Ok(()),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Remembers the key that the address named: later commands need not name it.
    ///
    /// # Errors
    /// A list of keys that cannot be used, or that has another key for the service.
    pub fn pin(&self) -> Result<(), CommandError> {
        if let Some(node) = node_of(self.target())
            && let Some(pin) = node.pin
        {
            self.keys.remember(&node, pin)?;
        }
        Ok(())
    }

    /// Makes a call, and tells it where that is asked for.
    fn asked(&self, call: &Call) -> Result<Answer, ClientError> {
        let begun = Instant::now();
        let answer = self.client.call(call);
        if self.is_verbose {
            let became = match &answer {
                Ok(answer) => answer.status.to_string(),
                Err(ClientError::Problem(problem)) => format!("{} {}", problem.status, problem.code.name()),
                Err(_) => "no answer".to_owned(),
            };
            say(&format!("{} {call}: {became} in {}", self.target(), format::duration(begun.elapsed())));
        }
        answer
    }

    /// Where it is.
    pub fn target(&self) -> &Target {
        self.client.target()
    }

    /// The document at a path.
    ///
    /// # Errors
    /// That nobody answers, what the service says no to, and an answer that is no such document.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CommandError> {
        self.call(&Call::get(path))
    }

    /// Makes a call, and reads the document of its answer.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn call<T: DeserializeOwned>(&self, call: &Call) -> Result<T, CommandError> {
        let answer = self.asked(call).and_then(|answer| answer.json());
        answer.map_err(|error| self.error(error))
    }

    /// Makes a call that may be a repetition: the document, and whether it was there before.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn once<T: DeserializeOwned>(&self, call: &Call) -> Result<(T, bool), CommandError> {
        let answer = self.asked(call).map_err(|error| self.error(error))?;
        let document = answer.json().map_err(|error| self.error(error))?;
        Ok((document, answer.is_replay))
    }

    /// Makes a call whose answer may be a document, or nothing.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn answer(&self, call: &Call) -> Result<Answer, CommandError> {
        self.asked(call).map_err(|error| self.error(error))
    }

    /// Makes a call whose answer does not matter.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn run(&self, call: &Call) -> Result<(), CommandError> {
        self.asked(call).map(|_| ()).map_err(|error| self.error(error))
    }

    /// All rows of a list, page by page; at most `most` of them.
    ///
    /// # Errors
    /// As [`Service::get`], and those of `each`.
    pub fn rows<T: DeserializeOwned>(
        &self,
        path: &str,
        most: Option<usize>,
        each: &mut dyn FnMut(T) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let mut left = most.unwrap_or(usize::MAX);
        let mut cursor: Option<String> = None;
        while left > 0 {
            let mut page = with_query(path, &[("limit", &left.min(PAGE).to_string())]);
            if let Some(cursor) = cursor.take() {
                page = with_query(&page, &[("cursor", &cursor)]);
            }
            let listed: Listed<T> = self.get(&page)?;
            for row in listed.items.into_iter().take(left) {
                left -= 1;
                each(row)?;
            }
            match listed.next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        Ok(())
    }

    /// A body of any size, as it comes.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn stream(&self, path: &str, accept: &str) -> Result<impl Read + use<'_>, CommandError> {
        self.client.stream(path, accept).map_err(|error| self.error(error))
    }

    /// Events as they happen, from the one behind `since`.
    pub fn events(&self, since: u64, task: Option<&str>) -> Events<'_> {
        self.client.events(since, task)
    }

    /// Events of a task from now on.
    pub fn events_to_come(&self, task: &str) -> Events<'_> {
        self.client.events_to_come(Some(task))
    }

    /// A call with this document.
    ///
    /// # Errors
    /// When JSON cannot hold it.
    pub fn with(&self, call: Call, document: &impl serde::Serialize) -> Result<Call, CommandError> {
        call.body(document).map_err(|error| self.error(error))
    }

    /// Why a call gave nothing, with what to try.
    pub fn error(&self, error: ClientError) -> CommandError {
        let failure = |code, why: String| Failure::new(code, Side::Command, why);
        match error {
            ClientError::Problem(problem) => self::problem(&problem),
            ClientError::Unreachable { .. } => {
                let error = CommandError::from(failure(ErrorCode::ConnectFailed, error.to_string()));
                match self.target() {
                    Target::Socket(_) => error
                        .hint("start the service: carrack serve --root DIR")
                        .hint("or name one that runs elsewhere: --service https://HOST"),
                    _ => error.hint("is `carrack serve` running there, and is the port open?"),
                }
            }
            ClientError::UnknownKey { shown, .. } => match node_of(self.target()) {
                Some(node) => self.first_meeting(&node, shown),
                None => failure(ErrorCode::KeyMismatch, error.to_string()).into(),
            },
            ClientError::ChangedKey { .. } => {
                let list = self.keys.place().unwrap_or_default();
                CommandError::from(failure(ErrorCode::KeyMismatch, error.to_string())).hint(format!(
                    "if the service was set up anew, remove its line from {list}; if not, somebody is in between"
                ))
            }
            ClientError::Broken(why) => failure(ErrorCode::ConnectionLost, why).into(),
        }
    }

    /// As with nodes: the key is remembered, and nothing secret is shown to it before a person could look at it.
    fn first_meeting(&self, node: &NodeAddress, shown: [u8; 32]) -> CommandError {
        if let Err(failure) = self.keys.remember(node, shown) {
            return failure.into();
        }
        say(&format!("note: first meeting with the service {}: its key is {}", node.known_as(), format_pin(&shown)));
        let why = format!("nothing was sent to the service {}, which was met for the first time", node.known_as());
        Failure::new(ErrorCode::AuthenticationFailed, Side::Command, why).for_reason(Reason::FirstMeeting).into()
    }
}

/// What the service says is wrong, as an error of the command.
fn problem(problem: &Problem) -> CommandError {
    use ProblemCode as P;
    let code = match problem.code {
        P::Malformed | P::MethodNotAllowed | P::TooLarge | P::Conflict | P::SubmissionDiffers | P::VersionDiffers => {
            ErrorCode::Usage
        }
        P::Unauthenticated | P::WrongLogin | P::Forbidden | P::CsrfMissing => ErrorCode::AuthenticationFailed,
        P::NotFound => ErrorCode::NotFound,
        P::NameTaken => ErrorCode::AlreadyExists,
        P::TooSlow | P::TooMany | P::LedgerHeld | P::Stopping => ErrorCode::Busy,
        P::StorageFull => ErrorCode::NoSpace,
        P::Unreachable => ErrorCode::ConnectFailed,
        _ => ErrorCode::Other,
    };
    let mut error = CommandError::from(Failure::new(code, Side::Command, problem.detail.clone()));
    error.hints.clone_from(&problem.hints);
    error.hints.extend(problem_hints::of_problem(problem.code).map(str::to_owned));
    error
}

/// Which service is meant.
///
/// # Errors
/// A usage error in `--service`.
pub fn target(flags: &Flags) -> Result<Target, CommandError> {
    if let Some(target) = flags.get(&SERVICE)? {
        return Ok(target);
    }
    // Where it was moved to. What is said to this very command outweighs what is there.
    if let Some(socket) = variable_path(SOCKET.name) {
        return Ok(Target::Socket(socket));
    }
    let own = socket_in(&service_directory());
    let (by_variable, by_file) =
        (variable_path(STATE_DIR.name).map(|directory| socket_in(&directory)), of_configuration());
    let usual = [by_variable, by_file, Some(own.clone()), Some(PathBuf::from(SYSTEM_SOCKET))];
    if let Some(socket) = usual.into_iter().flatten().find(|socket| socket.exists()) {
        return Ok(Target::Socket(socket));
    }
    let remembered = std::fs::read_to_string(remembered_path()).ok();
    let remembered = remembered.and_then(|text| Target::parse(text.trim()).ok());
    Ok(remembered.unwrap_or(Target::Socket(own)))
}

/// The path in the variable of a flag of `carrack serve`.
fn variable_path(flag: &str) -> Option<PathBuf> {
    std::env::var_os(variable(flag)).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The socket that `carrack.toml` names, or that stands in the state directory which it names. A file that cannot be
/// read or understood is the service's to complain of.
fn of_configuration() -> Option<PathBuf> {
    let usual = [config_directory().join("carrack.toml"), PathBuf::from("/etc/carrack/carrack.toml")];
    let file = variable_path("config").or_else(|| usual.into_iter().find(|path| path.exists()))?;
    socket_of(&std::fs::read_to_string(file).ok()?)
}

fn socket_of(configuration: &str) -> Option<PathBuf> {
    let tables: toml::Table = configuration.parse().ok()?;
    let service = tables.get("service")?;
    let path = |key: &str| service.get(key)?.as_str().map(PathBuf::from);
    path("socket").or_else(|| path("state_dir").map(|directory| socket_in(&directory)))
}

/// The file with the address of the last login's service.
pub fn remembered_path() -> PathBuf {
    config_directory().join("service")
}

/// The file with the token of a login at a service.
pub fn token_path(node: &NodeAddress) -> PathBuf {
    config_directory().join("services").join(node.known_as())
}

/// Keeps the token of a session at a service, and makes that service the one of later commands.
///
/// # Errors
/// Files of the user's that cannot be written.
pub fn keep(target: &Target, node: &NodeAddress, token: &Secret) -> Result<(), CommandError> {
    for (path, text) in [(token_path(node), token.reveal().to_owned()), (remembered_path(), target.to_string())] {
        write_whole(&path, format!("{text}\n").as_bytes())
            .map_err(|error| CommandError::file("cannot write", path.as_os_str().as_encoded_bytes(), &error))?;
    }
    Ok(())
}

/// The address of a service on the network.
pub fn node_of(target: &Target) -> Option<NodeAddress> {
    match target {
        Target::Socket(_) => None,
        Target::Tls { host, port, pin } => Some(NodeAddress { host: host.clone(), port: *port, pin: *pin }),
        Target::Loopback { address, port } => Some(NodeAddress { host: address.to_string(), port: *port, pin: None }),
    }
}

fn is_unpinned(target: &Target) -> bool {
    matches!(target, Target::Tls { pin: None, .. })
}

fn kept_token(path: &Path) -> Result<Option<Secret>, CommandError> {
    let refused = |why: &str| {
        let why = format!("{}: {why}", display_bytes(path.as_os_str().as_encoded_bytes()));
        CommandError::from(Failure::new(ErrorCode::AuthenticationFailed, Side::Command, why))
            .hint("carrack login makes it anew")
    };
    match read_secret(path, TOKEN_BYTES, |_| None) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(Secret::new(text.trim()))),
            Err(_) => Err(refused("it holds no token")),
        },
        Err(Unread::Absent) => Ok(None),
        Err(Unread::Foreign(why) | Unread::Unfit(why)) => Err(refused(&why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_the_service_have_the_exit_codes_of_the_command() {
        use crate::exit;
        for (code, exit) in [
            (ProblemCode::Malformed, exit::USAGE),
            (ProblemCode::Unauthenticated, exit::AUTHENTICATION),
            (ProblemCode::Forbidden, exit::AUTHENTICATION),
            (ProblemCode::NotFound, exit::FILE),
            (ProblemCode::Stopping, exit::NETWORK),
            (ProblemCode::LedgerHeld, exit::NETWORK),
            (ProblemCode::Internal, exit::OTHER),
        ] {
            let told = Problem {
                kind: "about:blank".into(),
                title: String::new(),
                status: 400,
                detail: "so it is".into(),
                code,
                hints: vec!["try that".into()],
            };
            let error = problem(&told);
            assert_eq!((error.exit_code(), &error.hints[0][..]), (exit, "try that"), "{}", code.name());
            assert!(error.to_string().contains("so it is"));
        }
    }

    #[test]
    fn token_is_kept_by_the_address_of_its_service() {
        let target = Target::parse("https://Box.example:99").expect("an address");
        let node = node_of(&target).expect("on the network");
        assert!(token_path(&node).ends_with("carrack/services/box.example:99"));
        assert_eq!(node_of(&Target::parse("/run/x.sock").expect("a path")), None);
    }
}
