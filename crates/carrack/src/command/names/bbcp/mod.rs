//! Lines of bbcp: what they ask for, in the words of `carrack copy`.

mod checksum;
mod config;
mod told;
mod values;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use carrack_core::limits;
use carrack_core::path::display_bytes;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_engine::Standard;

use super::line::{LineError, OldLine, by_letters};
use super::programs::{PipeFeeding, PipeReading, PipeSide};
use super::runner;
use super::step::{CopyStep, OldPlace, trimmed};
use super::told::help;
use crate::cli::foreign::BBCP_FLAGS;
use crate::command::tree::version;
use crate::error::CommandError;
use crate::exit;
use crate::output::stream;
use checksum::{Checksum, ChecksumLines};
use told::{BbcpTeller, code_of};
use values::shown;

/// The program's name, before each of its messages.
const NAME: &str = "bbcp";
/// What it ends with where its line has a flag that it does not know,
const UNKNOWN_FLAG: u8 = 255;
/// and where the line is wrong in another way.
const WRONG_LINE: u8 = 1;

/// What is to be done.
#[derive(Debug, Default)]
struct BbcpPlan {
    steps: Vec<CopyStep>,
    /// In the place of the one source, and of the target.
    reads: Option<PipeSide>,
    writes: Option<PipeSide>,
    checksum: Option<Checksum>,
}

/// Runs a line (without the program's name), and answers with the exit code.
pub fn run(words: &[Vec<u8>]) -> u8 {
    let line = match config::implicit().and_then(|first| by_letters(BBCP_FLAGS, words).map(|line| first.before(line))) {
        Ok(line) => line,
        Err(error) => return refuse(&error),
    };
    match config::spread(line).and_then(answer) {
        Ok(code) => code,
        Err(error) => refuse(&error),
    }
}

/// Says why a line is not taken.
fn refuse(error: &LineError) -> u8 {
    let (text, code) = match error {
        LineError::Unknown { typed, .. } => {
            (format!("{typed} is no flag of bbcp; bbcp -h has all of them"), UNKNOWN_FLAG)
        }
        LineError::NoWord { typed, .. } => (format!("{typed} needs a word behind it"), WRONG_LINE),
        LineError::Refused { typed, why, .. } => (format!("{typed} is not taken here: {why}"), WRONG_LINE),
        LineError::Value { typed, why } => (format!("{typed}: {why}"), WRONG_LINE),
    };
    stream::say_line(&format!("{NAME}: {text}"));
    if let LineError::Refused { ours, .. } = error {
        stream::say_line(&format!("{NAME}: hint: {ours}"));
    }
    code
}

/// Does what a line asks for.
fn answer(line: OldLine) -> Result<u8, LineError> {
    let printed = if line.has("-h") {
        Some(format!("bbcp [FLAGS] SOURCE... TARGET, by carrack {}\n\n{}", version(), help(BBCP_FLAGS)))
    } else if line.has("-#") {
        Some(format!("{}\n", version()))
    } else if line.has("-$") {
        Some(format!("carrack is licensed under {}\n", env!("CARGO_PKG_LICENSE")))
    } else {
        None
    };
    if let Some(text) = printed {
        return Ok(ended(stream::print(text.as_bytes()).map(|()| exit::DONE)));
    }
    values::check_without_effect(&line)?;
    let teller = BbcpTeller::new(&line)?;
    Ok(match teller {
        Ok(mut teller) => match plan(&line)? {
            Ok(plan) => carry_out(plan, &mut teller),
            Err(error) => teller.fail(&error),
        },
        Err(error) => ended(Err(error)),
    })
}

fn ended(ended: Result<u8, CommandError>) -> u8 {
    ended.unwrap_or_else(|error| {
        stream::say_line(&format!("{NAME}: {error}"));
        code_of(error.failure.code)
    })
}

/// Makes the copies, one after the other, up to the first that fails.
fn carry_out(mut plan: BbcpPlan, teller: &mut BbcpTeller) -> u8 {
    for step in &plan.steps {
        let done = if plan.reads.is_some() || plan.writes.is_some() {
            with_programs(step, plan.reads.take(), plan.writes.take(), teller)
        } else {
            copied(step, plan.checksum.as_ref(), teller)
        };
        match done {
            Ok(exit::DONE) => {}
            Ok(code) => return code,
            Err(error) => return teller.fail(&error),
        }
    }
    teller.all_done();
    exit::DONE
}

/// Makes a copy, and compares what was left alone, where that may be no other than its source.
fn copied(step: &CopyStep, checksum: Option<&Checksum>, teller: &mut BbcpTeller) -> Result<u8, CommandError> {
    let (mut request, context) = runner::request(step)?;
    let sums = checksum.map(|checksum| checksum.prepare(&mut request)).transpose()?;
    match runner::run_request(step, request, context, teller)? {
        exit::DONE => {}
        code => return Ok(code),
    }
    sums.map_or(Ok(()), ChecksumLines::tell)?;
    if teller.compares_next() { runner::run(&compared(step), teller) } else { Ok(exit::DONE) }
}

/// What is different at the target, without a copy.
fn compared(step: &CopyStep) -> CopyStep {
    let mut step = step.clone();
    step.flags.retain(|flag| flag != "--no-clobber");
    step.flags.extend(["--dry-run", "--compare", "checksum"].map(Into::into));
    step
}

/// Makes a copy from a program, to one, or both.
fn with_programs(
    step: &CopyStep,
    reads: Option<PipeSide>,
    writes: Option<PipeSide>,
    teller: &mut BbcpTeller,
) -> Result<u8, CommandError> {
    let (request, mut context) = runner::request(step)?;
    context.stop = context.stop.child();
    let feeding = writes.map(PipeFeeding::start).transpose()?;
    let reading = reads.map(|stream| PipeReading::start(stream, &context.stop)).transpose()?;
    let (reading, input) = reading.unzip();
    let (feeding, output) = feeding.unzip();
    context.standard = Standard { input, output };
    let code = runner::run_request(step, request, context, teller);
    // Why a program failed says more than that the copy was stopped.
    reading.map_or(Ok(()), PipeReading::finish)?;
    feeding.map_or(Ok(()), PipeFeeding::finish)?;
    code
}

fn plan(line: &OldLine) -> Result<Result<BbcpPlan, CommandError>, LineError> {
    let flags = flags(line)?;
    let sources = match line.value("-I") {
        Some(file) => match config::sources(file) {
            Ok(listed) => listed,
            Err(error) => return Ok(Err(error)),
        },
        None => Vec::new(),
    };
    let mut typed: Vec<Vec<u8>> = sources.into_iter().chain(line.places.iter().cloned()).collect();
    let target = typed.pop().filter(|_| !line.places.is_empty() && !typed.is_empty());
    let Some(target) = target else {
        return Ok(Err(CommandError::usage("a source and a target are needed: bbcp [FLAGS] SOURCE... TARGET")));
    };
    let sources: Vec<OldPlace> = typed.iter().map(|source| OldPlace::typed(source)).collect();
    let target = OldPlace::typed(&target);
    let (from, to) = (ssh(line, "-S")?, ssh(line, "-T")?);
    let rsh = match (sources.iter().any(|place| place.host.is_some()), target.host.is_some()) {
        (true, true) if from != to => {
            return Err(LineError::Value {
                typed: "-S and -T".into(),
                why: "one ssh reaches both hosts: name it once, or the same twice".into(),
            });
        }
        (true, _) => from.clone(),
        (false, _) => to.clone(),
    };
    let mut begin = flags;
    if let Some(rsh) = rsh {
        begin.extend(["--rsh".into(), values::joined(&rsh).into()]);
    }
    let ways = [from, to].map(|words| words.unwrap_or_else(|| vec!["ssh".to_owned()]));
    match line.value("-N") {
        Some(way) => piped(way, begin, &sources, &target, &ways),
        None => copies(line, begin, &sources, &target),
    }
}

/// The words that start ssh, where the line says anything of them.
fn ssh(line: &OldLine, flag: &str) -> Result<Option<Vec<String>>, LineError> {
    let text = |value: &[u8]| String::from_utf8(value.to_vec());
    let identity = line.value("-i").map(text).transpose();
    let identity = identity.map_err(|_| LineError::Value { typed: "-i".into(), why: "text is expected".into() })?;
    if let Some(command) = line.value(flag) {
        return values::ssh_words(flag, command, identity.as_deref(), line.has("-4")).map(Some);
    }
    let mut words = vec!["ssh".to_owned()];
    words.extend(line.has("-4").then(|| "-4".to_owned()));
    words.extend(identity.into_iter().flat_map(|key| ["-i".to_owned(), key]));
    Ok((words.len() > 1).then_some(words))
}

/// What all copies of the line are given.
fn flags(line: &OldLine) -> Result<Vec<OsString>, LineError> {
    let mut flags: Vec<OsString> = Vec::new();
    let mut add = |words: &[&str]| flags.extend(words.iter().map(|word| OsString::from(*word)));
    if !line.has("-f") {
        add(&["--no-clobber"]);
    }
    match (line.has("-p"), line.has("-~"), line.value("-m")) {
        (true, _, None) => add(&["--owner", "--group"]),
        (true, _, mode) => add(&["--owner", "--group", "--chmod", &values::modes(mode)?]),
        (false, true, mode) => add(&["--atimes", "--chmod", &values::modes(mode)?]),
        (false, false, mode) => add(&["--no-times", "--chmod", &values::modes(mode)?]),
    }
    match line.value("-@") {
        None | Some(b"copy" | b"keep") if line.has("-r") => {}
        None | Some(b"copy" | b"keep" | b"follow") => add(&["--copy-links"]),
        Some(b"ignore") => {
            return Err(LineError::value(
                "-@",
                b"ignore",
                "links are copied as links, or what they lead to is: use copy or follow",
            ));
        }
        Some(other) => return Err(LineError::value("-@", other, "copy or follow is expected")),
    }
    // Below a base the directories on the way are copied, too.
    if !line.has("-r") && !line.has("-d") {
        add(&["--exclude", "*/"]);
    }
    if let Some(streams) = line.number("-s", 1, 64)? {
        add(&["--streams", &streams.to_string()]);
    }
    if line.has("-c") && line.value("-c") != Some(b"0") {
        add(&["--compress"]);
    }
    if let Some(rate) = line.value("-x") {
        add(&["--bwlimit", &format!("{}B", values::size("-x", rate)?)]);
    }
    if let Some(time) = line.value("-t") {
        add(&["--deadline", &format!("{}s", values::seconds("-t", time)?)]);
    }
    if let Some(ports) = line.value("-Z") {
        add(&["--ports", &values::ports(ports)?]);
    }
    if line.has("-R") {
        flags.extend(values::growing(line.value("-R"))?);
    }
    Ok(flags)
}

/// Copies of files and trees: one for each host that sources are on, and one for each pattern.
fn copies(
    line: &OldLine,
    flags: Vec<OsString>,
    sources: &[OldPlace],
    target: &OldPlace,
) -> Result<Result<BbcpPlan, CommandError>, LineError> {
    let mut steps: Vec<(Option<Vec<u8>>, CopyStep)> = Vec::new();
    let new = |flags: &[OsString]| CopyStep {
        flags: flags.to_vec(),
        destination: destination(target),
        ..CopyStep::default()
    };
    let base = line.value("-d");
    for source in sources {
        if source.is_local_directory() && !line.has("-r") {
            let why = format!("{} is a directory: -r copies it", shown(&source.path));
            return Ok(Err(failure(ErrorCode::IsADirectory, why)));
        }
        if source.host.is_some() && source.has_wild_directory() {
            let why = "wildcards are taken in the last name of a path alone".to_owned();
            return Err(LineError::Value { typed: shown(&source.path), why });
        }
        if let Some((directory, pattern)) = source.wildcards().filter(|_| source.host.is_some() && base.is_none()) {
            let mut step = new(&flags);
            step.take_matching(&directory, &pattern, false);
            // No later source joins it.
            steps.push((None, step));
            continue;
        }
        let without_contents = base.filter(|_| !line.has("-r")).map(|base| nothing_in(&path_below(base, source)));
        let word = match base {
            Some(base) => below(base, source),
            None => word_of(source),
        };
        let host = source.host.clone().unwrap_or_default();
        if steps.last().is_none_or(|(last, _)| last.as_ref() != Some(&host)) {
            let mut step = new(&flags);
            step.flags.extend(base.map(|_| "--relative".into()));
            steps.push((Some(host), step));
        }
        if let Some((_, step)) = steps.last_mut() {
            step.sources.push(word);
            step.flags.extend(without_contents.into_iter().flatten());
        }
    }
    let steps = steps.into_iter().map(|(_, step)| step).collect();
    let checksum = line.value("-E").map(|value| Checksum::of(value, sources, target)).transpose()?.flatten();
    Ok(Ok(BbcpPlan { steps, checksum, ..BbcpPlan::default() }))
}

/// A source as `carrack copy` takes it: a slash at the end of a directory means nothing to bbcp.
fn word_of(source: &OldPlace) -> OsString {
    match (&source.host, &source.path[..]) {
        (None, b"/dev/zero") => format!("zero:{}", limits::FILE_BYTES).into(),
        _ => source.with_path(trimmed(&source.path)).word(),
    }
}

fn destination(target: &OldPlace) -> OsString {
    match (&target.host, &target.path[..]) {
        (None, b"/dev/null") => "null:".into(),
        _ => target.word(),
    }
}

/// A source below the directory that its path at the target begins in.
fn below(base: &[u8], source: &OldPlace) -> OsString {
    source.with_path(&[trimmed(base), b"/./", &path_below(base, source)].concat()).word()
}

/// Its path at the target.
fn path_below(base: &[u8], source: &OldPlace) -> Vec<u8> {
    let path = trimmed(&source.path);
    path.strip_prefix(trimmed(base)).map_or(path, |rest| rest.strip_prefix(b"/").unwrap_or(rest)).to_vec()
}

/// The rule that leaves out what is in a directory.
fn nothing_in(path: &[u8]) -> [OsString; 2] {
    let escaped = path.iter().flat_map(|&byte| {
        let is_special = b"*?[{\\".contains(&byte);
        is_special.then_some(b'\\').into_iter().chain([byte])
    });
    ["--exclude".into(), OsString::from_vec([b"/".to_vec(), escaped.collect(), b"/*".to_vec()].concat())]
}

/// A copy from a program or a named pipe, to one, or both.
fn piped(
    way: &[u8],
    flags: Vec<OsString>,
    sources: &[OldPlace],
    target: &OldPlace,
    [from, to]: &[Vec<String>; 2],
) -> Result<Result<BbcpPlan, CommandError>, LineError> {
    let (reads, writes) = match way {
        b"i" => (true, false),
        b"o" => (false, true),
        b"io" | b"oi" => (true, true),
        other => return Err(LineError::value("-N", other, "i, o or io is expected")),
    };
    let [source] = sources else {
        return Err(LineError::Value {
            typed: format!("-N {}", display_bytes(way)),
            why: "one source is expected".into(),
        });
    };
    let stream = |is: bool, place: &OldPlace, ssh, reads| is.then(|| PipeSide::of(place, ssh, reads)).transpose();
    let streams = stream(reads, source, from, true)
        .and_then(|reading| stream(writes, target, to, false).map(|writing| (reading, writing)));
    Ok(streams.map(|(reading, writing)| {
        // What is read once cannot be compared, nor has it a name or a directory.
        let mut flags = flags;
        if let Some(at) = flags.iter().position(|flag| flag == "--exclude") {
            flags.drain(at..at + 2);
        }
        flags.retain(|flag| flag != "--copy-links");
        let source = if reads { "-".into() } else { word_of(source) };
        let destination = if writes { "-".into() } else { destination(target) };
        let step = CopyStep { flags, sources: vec![source], destination, pattern: None };
        BbcpPlan { steps: vec![step], reads: reading, writes: writing, checksum: None }
    }))
}

/// A failure of the line itself.
fn failure(code: ErrorCode, why: String) -> CommandError {
    CommandError::from(Failure::new(code, Side::Command, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_0_turns_compression_off_and_any_other_turns_it_on() {
        for (words, compresses) in [(&["-c", "0"][..], false), (&["-c"], true), (&["-c", "1"], true), (&["-c9"], true)]
        {
            let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            let flags = flags(&by_letters(BBCP_FLAGS, &words).expect("a line")).expect("flags");
            assert_eq!(flags.iter().any(|flag| flag == "--compress"), compresses, "{words:?}");
        }
    }
}
