//! Flags → [`CopyRequest`], [`Reach`] and how to say what happens.

use std::time::Duration;

use carrack_core::limits;
use carrack_core::location::Location;
use carrack_core::path::display_bytes;
use carrack_core::request::{
    CongestionControl, CopyOptions, CopyRequest, Credential, Digests, Durability, Encrypt, Existing, LinkKind,
    MainDigest, Push, Reach, Verify, are_one_node,
};
use carrack_core::words;

use crate::cli::duration::parse_duration;
use crate::cli::files_from::read_list;
use crate::cli::flags::Flags;
use crate::cli::location::parse_host;
use crate::cli::ports::parse_ports;
use crate::cli::size::{parse_block, parse_rate};
use crate::cli::words::split_words;
use crate::error::CommandError;
use crate::output::{BarChoice, OutputOptions};

/// Between two progress lines where there is no bar.
const STATS_INTERVAL: Duration = Duration::from_secs(5);

/// Everything that `carrack copy` was asked for.
pub fn copy(flags: &Flags) -> Result<(CopyRequest, OutputOptions), CommandError> {
    let mut sources = flags.locations("locations")?;
    let destination = match (sources.pop(), sources.is_empty()) {
        (Some(destination), false) => destination,
        (last, _) => return Err(missing_location(last)),
    };
    check_places(&sources, &destination)?;
    let output = output(flags)?;
    check_standard_output(&destination, &output)?;
    let mut options = copy_options(flags, &output, sources.contains(&Location::Stdio))?;
    (options.source_credential, options.destination_credential) = credentials(flags, &sources, &destination)?;
    Ok((CopyRequest { sources, destination, options }, output))
}

fn missing_location(only: Option<Location>) -> CommandError {
    let error = CommandError::usage("a copy needs a source and a destination: carrack SRC... DST");
    match only {
        Some(Location::Local(word)) if !word.contains(&b'/') => {
            error.hint(format!("{} is not a verb; see carrack --help", display_bytes(&word)))
        }
        _ => error,
    }
}

fn check_places(sources: &[Location], destination: &Location) -> Result<(), CommandError> {
    if sources.len() > limits::SOURCES {
        return Err(CommandError::usage(format!("more than {} sources: name their directory", limits::SOURCES)));
    }
    if sources.contains(&Location::Null) {
        return Err(CommandError::usage("null: is a sink, not a source; for a source use zero:SIZE"));
    }
    if sources.iter().filter(|source| **source == Location::Stdio).count() > 1 {
        return Err(CommandError::usage("standard input can be only one of the sources"));
    }
    match destination {
        Location::Zero(_) | Location::Random(_) => {
            Err(CommandError::usage(format!("{destination} is a source, not a destination; for a sink use null:")))
        }
        Location::Stdio if sources.len() > 1 => Err(CommandError::usage("only one source can go to standard output")),
        _ => Ok(()),
    }
}

/// Standard output carries one thing.
fn check_standard_output(destination: &Location, output: &OutputOptions) -> Result<(), CommandError> {
    let users = [
        (*destination == Location::Stdio, "the data (destination -)"),
        (output.json, "--json"),
        (output.manifest.as_deref() == Some(b"-"), "--manifest -"),
    ];
    let mut users = users.iter().filter(|user| user.0).map(|user| user.1);
    match (users.next(), users.next()) {
        (Some(first), Some(second)) => {
            Err(CommandError::usage(format!("{first} and {second} would both be written to standard output")))
        }
        _ => Ok(()),
    }
}

fn copy_options(flags: &Flags, output: &OutputOptions, takes_stdin: bool) -> Result<CopyOptions, CommandError> {
    let files_from = flags.path("files-from");
    if files_from.as_deref() == Some(b"-") && takes_stdin {
        return Err(CommandError::usage("the source - and --files-from - would both be read from standard input"));
    }
    let default = CopyOptions::default();
    let verify = flags.parse("verify", Verify::parse)?.unwrap_or(default.verify);
    if verify == Verify::Source && takes_stdin {
        return Err(CommandError::usage("--verify source reads the source twice, and standard input can be read once"));
    }
    let encrypt = flags.parse("encrypt", Encrypt::parse)?.unwrap_or(default.encrypt);
    let digest = copied_digests(flags, verify, encrypt)?.unwrap_or(default.digest);
    if output.manifest.is_some() && digest.main != Some(MainDigest::Blake3) {
        let left_out = digest.main.map_or("none", MainDigest::name);
        let message = format!("--manifest needs the BLAKE3 digest of each file, which --digest {left_out} leaves out");
        return Err(CommandError::usage(message));
    }
    Ok(CopyOptions {
        dry_run: flags.has("dry-run"),
        existing: existing(flags),
        verify,
        digest,
        encrypt,
        streams: flags.parse("streams", parse_streams)?.unwrap_or(default.streams),
        block_bytes: flags.parse("block", parse_block)?,
        congestion: flags.parse("congestion", parse_congestion)?,
        rate_limit: flags.parse("bwlimit", parse_rate)?.unwrap_or(default.rate_limit),
        reach: reach(flags)?,
        source_credential: default.source_credential,
        destination_credential: default.destination_credential,
        item_events: output.wants_items(),
        durability: flags.parse("durable", Durability::parse)?.unwrap_or(default.durability),
        allow_growing: flags.has("allow-growing"),
        retries: flags.parse("retries", parse_retries)?.unwrap_or(default.retries),
        deadline: flags.parse("deadline", parse_timeout)?,
        resume: !flags.has("no-resume"),
        only: files_from.map(|path| read_list(&path)).transpose()?,
    })
}

/// The digests of a copy: BLAKE3 is among them where XXH3-128 is not, because blocks are verified by one of them.
fn copied_digests(flags: &Flags, verify: Verify, encrypt: Encrypt) -> Result<Option<Digests>, CommandError> {
    let Some(digests) = flags.parse("digest", parse_digests)? else {
        // What nothing is verified by need not be computed. In the clear it is what keeps others from altering the content, and that is
        // not given up by the way.
        return Ok((verify == Verify::None && encrypt != Encrypt::None).then_some(Digests::NONE));
    };
    if digests.any() {
        return Ok(Some(Digests { main: digests.main.or(Digests::BLAKE3.main), ..digests }));
    }
    if verify != Verify::None {
        return Err(CommandError::usage("--digest none leaves nothing to verify by")
            .hint("add --verify none if nothing shall be verified"));
    }
    Ok(Some(digests))
}

fn existing(flags: &Flags) -> Existing {
    // clap has refused more than one of them.
    if flags.has("no-clobber") {
        Existing::Keep
    } else if flags.has("existing") {
        Existing::Only
    } else if flags.has("update") {
        Existing::Older
    } else {
        Existing::Replace
    }
}

/// How hosts are reached; flags that the verb does not have keep their default.
pub fn reach(flags: &Flags) -> Result<Reach, CommandError> {
    let default = Reach::default();
    Ok(Reach {
        rsh: flags.parse("rsh", split_words)?.unwrap_or(default.rsh),
        remote_path: flags.parse("remote-path", parse_remote_path)?,
        push: if flags.has("no-push") { Push::Never } else { Push::Itself },
        ports: flags.parse("ports", parse_ports)?,
        data_address: flags.parse("data-address", parse_data_address)?,
        link: flags.parse("link", |text| words::parse_among(text, LinkKind::BETWEEN_HOSTS))?,
        connect_timeout: flags.parse("connect-timeout", parse_timeout)?.unwrap_or(default.connect_timeout),
    })
}

/// What the node of the sources is shown, and what the node of the destination is. One file for two nodes is refused: each would learn the
/// other's token.
fn credentials(
    flags: &Flags,
    sources: &[Location],
    destination: &Location,
) -> Result<(Credential, Credential), CommandError> {
    let general = flags.given("token-file");
    let are_one = are_one_node(sources.iter().chain([destination]).filter_map(Location::node));
    let of_end = |name: &str, location: Option<&Location>| {
        let own = flags.given(name);
        let node = location.and_then(Location::node);
        match (own, &general, node) {
            // The environment may hold what another command needs.
            (Some(own), _, None) if own.origin.starts_with("--") => {
                let what = location.map(Location::to_string).unwrap_or_default();
                Err(CommandError::usage(format!("{} is for a node, and {what} is not on one", own.origin)))
            }
            (Some(own), _, Some(_)) => Ok(Credential::File(own.value)),
            (None, Some(general), Some(node)) if !are_one => Err(CommandError::usage(format!(
                "{} names one token, and this copy is between two nodes: each would learn the token of the other",
                general.origin
            ))
            .hint("name two files: --source-token-file FILE and --destination-token-file FILE")
            .hint(format!("or keep each node's token once: carrack token add {} <FILE", node.known_as()))),
            (None, Some(general), Some(_)) => Ok(Credential::File(general.value.clone())),
            _ => Ok(Credential::Found),
        }
    };
    Ok((of_end("source-token-file", sources.first())?, of_end("destination-token-file", Some(destination))?))
}

/// What the nodes are shown that a verb goes to.
pub fn credential(flags: &Flags, locations: &[Location]) -> Result<Credential, CommandError> {
    let nodes = || locations.iter().filter_map(Location::node);
    match flags.given("token-file") {
        Some(given) if !are_one_node(nodes()) => Err(CommandError::usage(format!(
            "{} names one token, and the locations are on several nodes: each would learn the token of the others",
            given.origin
        ))
        .hint("name one node at a time, or keep each node's token once: carrack token add HOST:PORT <FILE")),
        Some(given) => Ok(Credential::File(given.value)),
        None if are_one_node(nodes()) => Ok(Credential::Found),
        None => Ok(Credential::Found.of_several()),
    }
}

fn output(flags: &Flags) -> Result<OutputOptions, CommandError> {
    Ok(OutputOptions {
        verbose: flags.count("verbose"),
        quiet: flags.has("quiet"),
        json: flags.has("json"),
        log_file: flags.path("log-file"),
        // clap refuses both on the command line; the environment may still name one.
        manifest: flags.path("manifest").filter(|_| !flags.has("dry-run")),
        failed_list: failed_list(flags)?,
        bar: match (flags.has("progress"), flags.has("no-progress")) {
            (true, _) => BarChoice::Always,
            (_, true) => BarChoice::Never,
            _ => BarChoice::Terminal,
        },
        stats: flags.parse("stats", parse_duration)?.unwrap_or(STATS_INTERVAL),
        dry_run: flags.has("dry-run"),
    })
}

fn failed_list(flags: &Flags) -> Result<Option<Vec<u8>>, CommandError> {
    match flags.path("failed-list").filter(|_| !flags.has("dry-run")) {
        Some(path) if path == b"-" => Err(CommandError::usage("--failed-list needs a file: it is written at the end")),
        path => Ok(path),
    }
}

/// The digests of `carrack sum`: those that were asked for, and no other.
pub fn sum_digests(flags: &Flags) -> Result<Digests, CommandError> {
    match flags.parse("digest", parse_digests)? {
        None => Ok(Digests::BLAKE3),
        Some(Digests::NONE) => Err(CommandError::usage("--digest none: a sum of nothing")),
        Some(digests) => Ok(digests),
    }
}

fn parse_digests(text: &str) -> Result<Digests, String> {
    if text == "none" {
        return Ok(Digests::NONE);
    }
    let mut digests = Digests::NONE;
    for name in text.split(',') {
        let main = match name {
            "blake3" => MainDigest::Blake3,
            "xxh128" => MainDigest::Xxh128,
            "adler32" => {
                digests.adler32 = true;
                continue;
            }
            "crc32c" => {
                digests.crc32c = true;
                continue;
            }
            _ => {
                return Err(format!("{name:?} is not a digest: use blake3, xxh128, adler32, crc32c, or none alone"));
            }
        };
        if digests.main.replace(main).is_some_and(|other| other != main) {
            return Err("blake3 and xxh128 are not computed together: name one of them".to_owned());
        }
    }
    Ok(digests)
}

fn parse_retries(text: &str) -> Result<u32, String> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|_| digits)
        .ok_or_else(|| format!("{text:?} is not a number of attempts: use 0 to {}", u32::MAX))
}

fn parse_congestion(text: &str) -> Result<CongestionControl, String> {
    CongestionControl::new(text).ok_or_else(|| format!("{text:?} is no name of a congestion control: try cubic or bbr"))
}

fn parse_streams(text: &str) -> Result<Option<u16>, String> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u16>() {
        _ if text == "auto" => Ok(None),
        Ok(streams) if digits && (1..=limits::STREAMS).contains(&streams) => Ok(Some(streams)),
        _ => Err(format!("{text:?} is not a number of streams: use 1 to {}, or auto", limits::STREAMS)),
    }
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("a timeout of nothing would let nothing happen".to_owned()),
        timeout => Ok(timeout),
    }
}

fn parse_data_address(text: &str) -> Result<String, String> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    match bare.parse::<std::net::IpAddr>() {
        Ok(_) => Ok(bare.to_owned()),
        Err(_) => parse_host(text.as_bytes()),
    }
}

fn parse_remote_path(text: &str) -> Result<String, String> {
    let shown = display_bytes(text.as_bytes());
    match text.chars().next() {
        None => Err("the path is empty".to_owned()),
        Some('-') => Err(format!("{shown} starts with a dash")),
        _ if text.contains(char::is_control) => Err(format!("{shown} contains a control character")),
        _ => Ok(text.to_owned()),
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
