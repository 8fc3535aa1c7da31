//! The test of an endpoint: it is reached, its root is listed, its host is examined (space, clock, data connections
//! both ways, what else is wrong), and a file is written, read back and removed there. What is missing is named with
//! the line that mends it.

use std::sync::Arc;

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::Location;
use carrack_core::report::{ItemKind, LinkReport, Report};
use carrack_core::request::{CopyOptions, CopyRequest, EndOptions, LinkKind, Reach};
use carrack_core::words::shell_word;
use carrack_engine::files::Files;
use carrack_engine::{Context, Copy};

use crate::model::{Endpoint, EndpointCheck, EndpointLocation, EndpointTest, Secret, new_id, percent};
use crate::worker::EndOrder;
use crate::worker::ends::{self, OpenEnd};

/// What is written there, and removed again.
const BYTES: u64 = 4 << 20;
/// A path that leads through more links is not followed to its end.
const LINKS_MOST: usize = 16;

/// Examines the host of an endpoint, and judges what it says: space and inodes, the clock, data connections both ways,
/// what else keeps data from moving. The location is that of the endpoint's root.
pub type ExamineEndpoint = Arc<dyn Fn(&Location, &EndOptions, &Context) -> Vec<EndpointCheck> + Send + Sync>;

/// What a test may use.
pub struct Means<'a> {
    /// What copies are given.
    pub context: &'a Context,
    /// How hosts are reached.
    pub reach: &'a Reach,
    /// How hosts are examined.
    pub examine: &'a ExamineEndpoint,
    /// Nothing of this host is connected to.
    pub far_only: bool,
}

/// Tests an endpoint.
pub fn test(endpoint: &Endpoint, token: Option<&Secret>, means: &Means<'_>) -> EndpointTest {
    let Means { context, reach, examine, far_only } = means;
    let mut checks = Checks { endpoint, checks: Vec::new() };
    let at = match endpoint.location.location() {
        Ok(at) => at,
        Err(why) => {
            checks.failed("root", &Failure::new(ErrorCode::Usage, Side::Source, why));
            return checks.finish();
        }
    };
    let order = EndOrder::at_endpoint(at.clone(), b"", endpoint.read_only, token.cloned());
    let order = EndOrder { far_only: *far_only, ..order };
    let end = match ends::open(&order, Side::Source, reach) {
        Ok(end) => end,
        Err(failure) => {
            checks.failed("root", &failure);
            return checks.finish();
        }
    };
    let unconfined = *context;
    let context = Context { local: end.place.clone(), ..unconfined.clone() };
    let Some(root) = checks.root(&end, &context) else { return checks.finish() };
    // Facts of a directory of a host are the whole host's to tell.
    let (location, options) = match (&at, &end.options.confinement) {
        (Location::Local(_), _) => (at.clone(), end.options.clone()),
        (_, Some(kept)) => {
            let options = EndOptions { confinement: None, ..end.options.clone() };
            (end.location.with_path(kept.root.clone()), options)
        }
        (_, None) => (end.location.clone(), end.options.clone()),
    };
    checks.checks.extend(examine(&location, &options, unconfined));
    if endpoint.read_only {
        checks.unknown("write", "nothing was written: the endpoint is for reading only, or is so for whoever asks");
        return checks.finish();
    }
    checks.data(&end, &context, root);
    checks.finish()
}

struct Checks<'a> {
    endpoint: &'a Endpoint,
    checks: Vec<EndpointCheck>,
}

impl Checks<'_> {
    fn finish(self) -> EndpointTest {
        EndpointTest { ok: self.checks.iter().all(|check| check.ok != Some(false)), checks: self.checks }
    }

    fn told(&mut self, name: &str, ok: Option<bool>, told: String, fix: Option<String>) {
        self.checks.push(EndpointCheck { name: name.to_owned(), ok, told, fix });
    }

    fn good(&mut self, name: &str, told: impl Into<String>) {
        self.told(name, Some(true), told.into(), None);
    }

    fn unknown(&mut self, name: &str, told: &str) {
        self.told(name, None, told.to_owned(), None);
    }

    fn failed(&mut self, name: &str, failure: &Failure) {
        let fix = self.fix(failure.code);
        self.told(name, Some(false), failure.message(), fix);
    }

    /// The line that mends it.
    fn fix(&self, code: ErrorCode) -> Option<String> {
        let name = &self.endpoint.name;
        let location = &self.endpoint.location;
        let host = location.host().unwrap_or("this host");
        // What users have typed stands in a line that somebody else carries out.
        let word = shell_word(location.directory());
        let is_node = location.node_path().is_some();
        Some(match code {
            ErrorCode::AuthenticationFailed if is_node => {
                format!(
                    "carrack endpoint edit {name} --token-file FILE (the token that `carrack serve` on {host} printed)"
                )
            }
            ErrorCode::KeyMismatch => {
                format!(
                    "carrack endpoint edit {name} --location 'carrack://{host}…#sha256:…' (the fingerprint that {host} printed)"
                )
            }
            ErrorCode::ConnectFailed | ErrorCode::Silence if is_node => {
                format!("on {host}: carrack serve --root DIR; and open its port in the firewall")
            }
            ErrorCode::ConnectFailed | ErrorCode::AgentMissing | ErrorCode::AgentRefused => {
                format!("as the account that runs the service: ssh {} true", shell_word(host))
            }
            ErrorCode::NotFound => format!("on {host}: mkdir -p {word}"),
            ErrorCode::PermissionDenied => format!("on {host}: chmod u+rwx {word} (as its owner)"),
            ErrorCode::NodeReadOnly => {
                format!("carrack endpoint edit {name} --read-only, or serve it without --read-only")
            }
            ErrorCode::NoSpace | ErrorCode::QuotaExceeded => format!("on {host}: free some space below {word}"),
            _ => return None,
        })
    }

    /// Reaches the root and lists it; its path, if that went well.
    fn root(&mut self, end: &OpenEnd, context: &Context) -> Option<Vec<u8>> {
        let mut files = match Files::open(&end.location, &end.options, context, &|_| {}) {
            Ok(files) => files,
            Err(failure) => {
                self.failed("reached", &failure);
                return None;
            }
        };
        self.good("reached", "it answers, and lets the service in");
        let root = end.location.path().map(<[u8]>::to_vec).unwrap_or_default();
        if let EndpointLocation::Node { host, port, fingerprint, .. } = &self.endpoint.location
            && let Some(link) = first_link(&mut files, &root)
        {
            let Link { at, target, instead } = link;
            let pin = fingerprint.as_ref().map(|pin| format!("#sha256:{pin}")).unwrap_or_default();
            let instead = instead.map_or_else(|| "/DIR".to_owned(), |path| shown(&path));
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            let fix = format!(
                "carrack endpoint edit {} --location {}",
                self.endpoint.name,
                shell_word(&format!("carrack://{host}:{port}{instead}{pin}"))
            );
            let told = format!("{} is a symbolic link, to {}: no grant leads through one", shown(&at), text(&target));
            self.told("path", Some(false), told, Some(fix));
        }
        let mut count = 0u64;
        match files.list(&root, false, &mut |_| count += 1) {
            Ok(()) => self.good("list", format!("its root is a directory with {count} entries")),
            Err(failure) => {
                self.failed("list", &failure);
                return None;
            }
        }
        Some(root)
    }

    /// Sends a file there and back, verified, and removes it.
    fn data(&mut self, end: &OpenEnd, context: &Context, root: Vec<u8>) {
        let mut path = root;
        if !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend_from_slice(format!(".carrack-endpoint-test-{}", new_id()).as_bytes());
        let there = end.location.with_path(path.clone());
        let written = copy(Location::Random(BYTES), there.clone(), &EndOptions::default(), &end.options, context);
        let is_written = self.report("write", "to there", &written);
        if is_written {
            let read = copy(there, Location::Null, &end.options, &EndOptions::default(), context);
            self.report("read", "from there", &read);
        }
        let removed = Files::open(&end.location, &end.options, context, &|_| {})
            .and_then(|mut files| files.remove(&path, false, &mut |_| {}));
        match removed {
            Ok(_) if is_written => self.good("remove", "the file of the test is removed"),
            Err(failure) if is_written => self.failed("remove", &failure),
            // Nothing was there.
            _ => {}
        }
    }

    fn report(&mut self, name: &str, way: &str, report: &Report) -> bool {
        let failure = report.error.as_ref().or_else(|| report.failures.first().map(|item| &item.failure));
        if let Some(failure) = failure {
            self.failed(name, failure);
            return false;
        }
        self.good(name, format!("{} MiB went {way}, and were verified", BYTES >> 20));
        if let Some(link) = &report.link {
            self.link(name, link);
        }
        true
    }

    fn link(&mut self, name: &str, link: &LinkReport) {
        let name = format!("{name}: data port");
        match link.kind {
            LinkKind::Tunnel => {
                let fix = "open the ports for data connections between the two hosts; `carrack doctor` names what is in the way";
                let told =
                    "data went through the control connection, over one stream: no other connection was possible";
                self.told(&name, Some(false), told.to_owned(), Some(fix.to_owned()));
            }
            kind => self.good(&name, format!("{}: {}", kind.name(), kind.meaning())),
        }
    }
}

/// A symbolic link in the path of an endpoint at a node.
struct Link {
    /// Its own path.
    at: Vec<u8>,
    target: Vec<u8>,
    /// The same place without any link; none where that cannot be told from here: a link may lead by an absolute path,
    /// and the node's root may be any directory of its host.
    instead: Option<Vec<u8>>,
}

/// The first link that a path leads through. What cannot be looked at is left to those who need it.
fn first_link(files: &mut Files, path: &[u8]) -> Option<Link> {
    let mut left: Vec<Vec<u8>> = components(path).rev().collect();
    let (mut above, mut first): (Vec<Vec<u8>>, Option<Link>) = (Vec::new(), None);
    let mut links = 0;
    while let Some(name) = left.pop() {
        if name == b".." {
            above.pop();
            continue;
        }
        above.push(name);
        let at = [b"/", &above.join(&b'/')[..]].concat();
        let Ok(found) = files.stat(&at) else { break };
        if found.kind != ItemKind::Symlink {
            continue;
        }
        let is_known = !found.link_target.starts_with(b"/") && links < LINKS_MOST;
        links += 1;
        above.pop();
        left.extend(components(&found.link_target).rev());
        let link = first.get_or_insert(Link { at, target: found.link_target, instead: None });
        if !is_known {
            link.instead = None;
            return first;
        }
    }
    let instead = above.into_iter().chain(left.into_iter().rev()).collect::<Vec<_>>().join(&b'/');
    if let Some(link) = &mut first {
        link.instead = Some([b"/", &instead[..]].concat());
    }
    first
}

fn components(path: &[u8]) -> impl DoubleEndedIterator<Item = Vec<u8>> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".").map(<[u8]>::to_vec)
}

/// A path as a location has it.
fn shown(path: &[u8]) -> String {
    path.split(|byte| *byte == b'/').map(percent).collect::<Vec<_>>().join("/")
}

fn text(bytes: &[u8]) -> String {
    carrack_core::path::display_bytes(bytes).to_string()
}

fn copy(
    source: Location,
    destination: Location,
    source_options: &EndOptions,
    destination_options: &EndOptions,
    context: &Context,
) -> Report {
    let options = CopyOptions {
        source: source_options.clone(),
        destination: destination_options.clone(),
        retries: 0,
        resume: false,
        ..CopyOptions::default()
    };
    let mut copy = Copy::start(CopyRequest { sources: vec![source], destination, options }, context);
    while copy.next_event().is_some() {}
    copy.wait()
}
