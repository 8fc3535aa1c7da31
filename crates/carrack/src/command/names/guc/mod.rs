//! Lines of globus-url-copy: what they ask for, in the words of `carrack copy`.

mod list;
mod told;
mod url;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use carrack_core::limits;

use super::line::{LineError, OldLine, by_words};
use super::runner;
use super::step::CopyStep;
use super::told::{NamesVoice, help};
use crate::cli::foreign::GLOBUS_URL_COPY_FLAGS;
use crate::command::tree::version;
use crate::error::CommandError;
use crate::exit;
use crate::output::stream;
use told::GucTeller;
use url::Url;

/// The program's name, before each of its messages.
const NAME: &str = "globus-url-copy";
/// What it ends with where anything has failed.
const FAILED: u8 = 1;

/// A copy of a line, and how its places were typed.
#[derive(Debug)]
struct UrlStep {
    step: CopyStep,
    source: Url,
    destination: Url,
    /// It does again what the one before left: nothing more is said of it.
    repeats: bool,
}

/// Runs a line (without the program's name), and answers with the exit code.
pub fn run(words: &[Vec<u8>]) -> u8 {
    by_words(GLOBUS_URL_COPY_FLAGS, words).and_then(|line| answer(&line)).unwrap_or_else(|error| refuse(&error))
}

/// Says why a line is not taken.
fn refuse(error: &LineError) -> u8 {
    let (text, ours) = match error {
        LineError::Unknown { typed, at } => {
            (format!("argument #{at} ({typed}) : unknown option; -help shows all of them"), None)
        }
        LineError::NoWord { typed, at } => (format!("argument #{at} ({typed}) : a word is missing behind it"), None),
        LineError::Refused { typed, why, ours } => (format!("{typed} is not taken here: {why}"), Some(*ours)),
        LineError::Value { typed, why } => (format!("{typed}: {why}"), None),
    };
    stream::say_line(&format!("\nerror: {text}"));
    ours.into_iter().for_each(|ours| stream::say_line(&format!(" hint: {ours}")));
    FAILED
}

fn say(error: &CommandError) -> u8 {
    if !error.is_silent() {
        stream::say_line(&format!("\nerror: {error}"));
        error.hints.iter().for_each(|hint| stream::say_line(&format!(" hint: {hint}")));
    }
    FAILED
}

/// Does what a line asks for.
fn answer(line: &OldLine) -> Result<u8, LineError> {
    let print = |text: String| stream::print(text.as_bytes()).map_or_else(|error| say(&error), |()| exit::DONE);
    if line.has("-help") {
        let table = help(GLOBUS_URL_COPY_FLAGS);
        return Ok(print(format!("globus-url-copy [FLAGS] SOURCE DESTINATION, by carrack {}\n\n{table}", version())));
    }
    if line.has("-version") {
        return Ok(print(format!("{}\n", version())));
    }
    let flags = flags(line)?;
    let relative = line.has("-rp");
    if let Some(place) = line.value("-list") {
        return Ok(Url::parse(place, relative).and_then(|url| list::list(&url)).unwrap_or_else(|error| say(&error)));
    }
    let pairs = match (line.value("-f"), line.places.as_slice()) {
        (Some(file), []) => list::pairs(file),
        (None, [source, destination]) => Ok(vec![(source.clone(), destination.clone())]),
        (Some(_), _) => Err(CommandError::usage("-f names a file of places, and the line has places, too")),
        (None, [] | [_]) => Err(CommandError::usage("a source and a destination are needed")),
        (None, _) => {
            Err(CommandError::usage("there are more than two places: quote what has a space or a wildcard in it"))
        }
    };
    let parsed = pairs.and_then(|pairs| {
        let url = |text: &[u8]| Url::parse(text, relative);
        pairs.iter().map(|(source, destination)| Ok((url(source)?, url(destination)?))).collect::<Result<Vec<_>, _>>()
    });
    Ok(match parsed.and_then(|pairs| steps(line, &flags, pairs)) {
        Ok(steps) => carry_out(line, &steps),
        Err(error) => say(&error),
    })
}

/// Makes the copies, one after the other.
fn carry_out(line: &OldLine, steps: &[UrlStep]) -> u8 {
    let mut teller = GucTeller::new(line);
    let mut failed = 0;
    for UrlStep { step, source, destination, repeats } in steps {
        teller.begin(source, destination, *repeats);
        let code = runner::run(step, &mut teller).unwrap_or_else(|error| say(&error));
        if code == exit::DONE {
            continue;
        }
        failed += 1;
        if !line.has("-c") || carrack_sys::signal::stop_requested().is_some() {
            return FAILED;
        }
    }
    if failed > 0 {
        let transfers = if failed == 1 { "transfer" } else { "transfers" };
        NamesVoice::default().line(&format!("\nerror: {failed} {transfers} failed"));
        return FAILED;
    }
    exit::DONE
}

/// What all copies of the line are given.
fn flags(line: &OldLine) -> Result<Vec<OsString>, LineError> {
    let mut flags: Vec<OsString> = Vec::new();
    let mut add = |words: &[&str]| flags.extend(words.iter().map(|word| OsString::from(*word)));
    // Its files are new ones: of now, and with the permissions that the umask leaves.
    let umask = umask();
    add(&["--copy-links"]);
    if !line.has("-preserve") {
        add(&["--no-times"]);
    }
    if !line.has("-cp") {
        add(&["--chmod", &format!("D{:o},F{:o}", 0o777 & !umask, 0o666 & !umask)]);
    }
    if !line.has("-r") {
        add(&["--exclude", "*/"]);
    }
    let most = u64::from(limits::STREAMS);
    let (parallel, files) = (line.number("-p", 1, u64::MAX)?, line.number("-concurrency", 1, u64::MAX)?);
    if parallel.is_some() || files.is_some() {
        let streams = parallel.unwrap_or(1).saturating_mul(files.unwrap_or(1)).min(most);
        add(&["--streams", &streams.to_string()]);
    }
    if let Some(retries) = line.number("-rst-retries", 0, u64::from(u32::MAX))? {
        let retries = if retries == 0 { u64::from(u32::MAX) } else { retries };
        add(&["--retries", &retries.to_string()]);
    }
    match line.number("-stall-timeout", 0, u64::from(u32::MAX))? {
        None | Some(0) => {}
        Some(seconds) => add(&["--io-timeout", &format!("{}s", seconds.clamp(10, 24 * 60 * 60))]),
    }
    if line.has("-notpt") {
        add(&["--link", "tunnel"]);
    }
    line.number("-sync-level", 0, 3)?;
    Ok(flags)
}

/// Permission bits that new files of this process do not get. What they are at the other host is not known here.
fn umask() -> u32 {
    const USUAL: u32 = 0o022;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|umask| u32::from_str_radix(umask.trim(), 8).ok()).unwrap_or(USUAL)
}

/// By what files are left alone that exist; two copies, one after the other, where no flag has both.
fn compared(line: &OldLine) -> &'static [&'static [&'static str]] {
    let level = line.value("-sync-level").filter(|_| line.has("-sync"));
    match (line.has("-sync"), level) {
        (false, _) => &[&[]],
        (true, Some(b"0")) => &[&["--no-clobber"]],
        (true, Some(b"1")) => &[&["--compare", "size"]],
        (true, Some(b"3")) => &[&["--compare", "checksum"]],
        // What has another size, and then what is older: what was copied just now is not.
        (true, _) => &[&["--compare", "size"], &["--update"]],
    }
}

fn steps(line: &OldLine, flags: &[OsString], pairs: Vec<(Url, Url)>) -> Result<Vec<UrlStep>, CommandError> {
    let mut steps: Vec<UrlStep> = Vec::new();
    for (source, destination) in pairs {
        check(&source, &destination)?;
        for (index, compared) in compared(line).iter().enumerate() {
            let mut step =
                CopyStep { flags: flags.to_vec(), destination: word(&destination, true), ..CopyStep::default() };
            step.flags.extend(compared.iter().map(OsString::from));
            if let Some(port) = source.port.or(destination.port) {
                step.flags.extend(["--rsh".into(), format!("ssh -p {port}").into()]);
            }
            match source.wildcards() {
                Some((directory, pattern)) => step.take_matching(&directory, &pattern, true),
                None => step.sources.push(word(&source, false)),
            }
            let (source, destination) = (source.clone(), destination.clone());
            let joins = index == 0 && compared.is_empty() && step.pattern.is_none();
            match steps.last_mut().filter(|last| joins && last.takes(&source, &destination)) {
                Some(last) => last.step.sources.append(&mut step.sources),
                None => steps.push(UrlStep { step, source, destination, repeats: index > 0 }),
            }
        }
    }
    // A copy of several files goes into their directory.
    for UrlStep { step, destination, .. } in steps.iter_mut().filter(|one| one.step.sources.len() > 1) {
        step.destination = destination.directory().word();
    }
    Ok(steps)
}

impl UrlStep {
    /// Whether another file may go with those of this copy: from the same host to the same directory, with its name.
    fn takes(&self, source: &Url, destination: &Url) -> bool {
        let keeps_name = |source: &Url, destination: &Url| {
            let is_directory = destination.place.path.ends_with(b"/");
            !source.place.path.ends_with(b"/") && (is_directory || source.place.name() == destination.place.name())
        };
        // Two files of one name would be one.
        let is_new = self
            .step
            .sources
            .iter()
            .all(|other| other.as_bytes().rsplit(|&byte| byte == b'/').next() != Some(source.place.name()));
        self.step.pattern.is_none()
            && self.step.sources.len() < limits::SOURCES
            && is_new
            && keeps_name(&self.source, &self.destination)
            && keeps_name(source, destination)
            && self.source.is_at(source)
            && self.destination.is_at(destination)
            && self.destination.directory() == destination.directory()
    }
}

/// Looks at what globus-url-copy refuses, too, as far as it can be seen here.
fn check(source: &Url, destination: &Url) -> Result<(), CommandError> {
    if let (Some(one), Some(other)) = (source.port, destination.port)
        && one != other
    {
        return Err(CommandError::usage(format!("ports {one} and {other}: one ssh reaches both hosts"))
            .hint("name the ports in ~/.ssh/config, and no port on the line"));
    }
    if source.has_wild_directory() {
        let shown = &source.typed;
        return Err(CommandError::usage(format!("{shown}: wildcards are taken in the last name of a path alone")));
    }
    let is_directory = source.place.path.ends_with(b"/") || source.wildcards().is_some();
    if !is_directory && source.place.is_local_directory() {
        let shown = &source.typed;
        return Err(CommandError::usage(format!("{shown} is a directory"))
            .hint(format!("a directory ends with a slash: {shown}/")));
    }
    if is_directory && !destination.place.path.ends_with(b"/") && destination.place.path != b"/dev/null" {
        let shown = &destination.typed;
        return Err(CommandError::usage(format!("{shown}: what is in a directory goes into a directory"))
            .hint(format!("a directory ends with a slash: {shown}/")));
    }
    Ok(())
}

fn word(url: &Url, is_destination: bool) -> OsString {
    match (&url.place.host, &url.place.path[..], is_destination) {
        (None, b"/dev/zero", false) => format!("zero:{}", limits::FILE_BYTES).into(),
        (None, b"/dev/null", true) => "null:".into(),
        _ => url.place.word(),
    }
}

/// A path of bytes as one of the system.
fn path_of(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_permissions_are_kept_on_request_alone() {
        for (words, times, permissions) in [
            (&[][..], false, false),
            (&["-preserve"], true, false),
            (&["-cp"], false, true),
            (&["-copy-perms"], false, true),
        ] {
            let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            let flags = flags(&by_words(GLOBUS_URL_COPY_FLAGS, &words).expect("a line")).expect("flags");
            let has = |flag: &str| flags.iter().any(|given| given == flag);
            assert_eq!((!has("--no-times"), !has("--chmod")), (times, permissions), "{words:?}");
        }
    }
}
