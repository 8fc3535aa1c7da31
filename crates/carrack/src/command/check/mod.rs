//! `carrack check`: what two places have, compared where it is, and a line for each difference. With `--repair` the
//! ordinary copy sends what the destination lacks.

mod signing;
mod told;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use carrack_core::attributes::Time;
use carrack_core::limits;
use carrack_core::location::Location;
use carrack_core::path::{bare, split_name};
use carrack_core::plan::check::{CheckCounts, CheckDifferences, CheckFinding, CheckedFacts};
use carrack_core::report::{Event, ItemKind, Side};
use carrack_core::request::{Compare, CopyOptions, CopyRequest, EndOptions};
use carrack_engine::Copy;
use carrack_engine::check::{CheckEvent, ComparisonReport, check};
use carrack_sys::host::clock_seconds;
use clap::{ArgAction, Command};
use serde_json::{Value as Json, json};
use signing::CheckSigning;
use told::Form;

use super::copy::options::{self, DESTINATION_TOKEN_FILE, FILES_FROM, RETRIES, SOURCE_TOKEN_FILE};
use super::named::{self, Needs, VerbPlace};
use super::place::VerbRun;
use super::reach::{JSON, reach, with_endpoints};
use crate::cli::files_from::{end_of_entries, read_list};
use crate::cli::flag::{Positional, Switch};
use crate::cli::flags::Flags;
use crate::cli::{filters, option_flags};
use crate::error::CommandError;
use crate::exit;
use crate::output::itemized::ContentWay;
use crate::output::{BarChoice, CopyTarget, Output, OutputOptions, format, human, json as objects, say};

const CHECKSUM: Switch = Switch::short(
    'c',
    "checksum",
    "Compare content: each side makes the digests of its files, and only these travel. Times are not compared then",
);
const SIZE_ONLY: Switch = Switch::new("size-only", "Compare files by size, not by time");
const REPAIR: Switch =
    Switch::new("repair", "Copy to B what differs or is missing there, then compare that again. Nothing is deleted");
const CSV: Switch = Switch::new("csv", "Write differences as values separated by commas, with headings");
const VERBOSE: Switch = Switch::short('v', "verbose", "Name also what is the same");
const FIRST: Positional = Positional::one("a", "A");
const SECOND: Positional = Positional::one("b", "B");

/// Between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(5);

const NOTES: &str = "\
Each difference is a line, with the signs of rclone:
  +  only A has it
  -  only B has it
  *  it differs; behind the path stands in what: type, size, time, content, target (where a link leads),
     device, mode, owner, group, acl, xattrs, links (it is another name of a file at one side alone)
  !  it cannot be read at one side; the reason is on standard error
  =  it is the same (with -v)
With -q, these lines are printed without counts.

A and B are two directories, compared by what is in them, or two files. Type and size are compared, of files the
modification time as `sync` does, of links where they lead. What an interrupted copy has left does not count.
Each side leaves out what the rules leave out of a copy.

Exit codes: 0 if nothing differs, 27 if something does. If anything could not be read, the code is that of the
failure (11, 23, 24), whether or not something differs.";

/// What clap knows of it.
pub fn command() -> Command {
    let compared = [CHECKSUM.arg(), SIZE_ONLY.arg().conflicts_with(CHECKSUM.name)]
        .into_iter()
        .chain(option_flags::of_comparison())
        .map(|arg| arg.help_heading("What is compared"));
    let tokens = [SOURCE_TOKEN_FILE.arg(), DESTINATION_TOKEN_FILE.arg()].map(|arg| arg.help_heading("Hosts"));
    let files = FILES_FROM.arg().help(
        "Compare only the paths in FILE and what is below them, one a line, relative to A and B; - is standard input",
    );
    let verb = Command::new("check")
        .about("Compare two trees or files, wherever they are, and name what differs")
        .after_help(NOTES)
        .args(compared)
        .arg(REPAIR.arg())
        .args(filters::of_listing())
        .arg(files.help_heading("Which files"))
        .arg(RETRIES.arg().help_heading("Faults"))
        .args(tokens)
        .arg(VERBOSE.arg().action(ArgAction::SetTrue).help_heading("Output"))
        .arg(CSV.arg().conflicts_with(JSON.name).help_heading("Output"))
        .args(signing::arg().map(|arg| arg.conflicts_with(REPAIR.name).help_heading("Output")))
        .args([
            FIRST.arg().required(true).help("A directory or a file; a LOCATION, as in `carrack --help`"),
            SECOND.arg().required(true).help("What it is compared with, at any other place"),
        ]);
    with_endpoints(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let (places, request) = asked(flags)?;
    let mut run = VerbRun::new("check", flags)?;
    for place in &places {
        run.path_of(place)?;
    }
    let signing = CheckSigning::begin(flags)?;
    run.only_reads = !signing.is_any();
    let mut checking = Checking {
        form: if flags.has(&CSV) { Form::Csv } else { Form::of(&run) },
        signing,
        names_same: flags.has(&VERBOSE),
        places: &places,
        request: &request,
        wanted: flags.has(&REPAIR).then(RepairList::default),
        is_file: false,
        began: Instant::now(),
        told: Instant::now(),
        run,
    };
    checking.head();
    let report = checking.compare(&request);
    let made = checking.sign(&report);
    let first = checking.passed(report)?;
    checking.summary("", &first);
    made?;
    let repair = checking.wanted.take().unwrap_or_default();
    if repair.links > 0 && !checking.run.quiet {
        let items = format::counted(repair.links, "item", "items");
        say(&format!("not repaired: hard links of {items}; `carrack sync -H` makes them"));
    }
    if repair.has_top && !checking.run.quiet {
        let top = checking.places[1].name();
        say(&format!("not repaired: the directory {top} itself; `carrack sync --top-attributes` makes it alike"));
    }
    let Some(repair) = Some(repair).filter(|repair| !repair.paths.is_empty()) else {
        return checking.finish(&first, first.differences(), json!({}));
    };
    let left_out = repair.left_out();
    let asked = checking.repair(repair.paths)?;
    // What was left out, and is looked at once more, is counted once.
    checking.wanted = Some(RepairList::default());
    let report = checking.compare(&asked);
    let second = checking.passed(report)?;
    let again = checking.wanted.take().map_or(0, |again| again.links + u64::from(again.has_top));
    // What only the destination has is there as before.
    let still = second.differing + second.only_source + left_out.saturating_sub(again);
    let (left, repaired) =
        (still + first.only_destination, (first.differing + first.only_source).saturating_sub(still));
    if !checking.run.quiet {
        say(&format!("repaired: {}", format::counted(repaired, "item", "items")));
        if repair.cut > 0 {
            say("note: more differs than can be repaired at once: run the same command again");
        }
        say(&format!("still different: {}", format::counted(left, "item", "items")));
    }
    checking.finish(&first, left, json!({ "repaired": repaired, "left": left }))
}

/// The two places, and the copy that would make the second like the first.
fn asked(flags: &Flags) -> Result<(Vec<VerbPlace>, CopyRequest), CommandError> {
    let of_second = if flags.has(&REPAIR) { Needs::COMPARE_AND_WRITE } else { Needs::READ };
    let one = |at: &Positional| {
        let missing = || CommandError::usage(format!("{} is missing", at.name));
        flags.named(at)?.pop().ok_or_else(missing)
    };
    let places = named::open(flags, [(one(&FIRST)?, Needs::READ), (one(&SECOND)?, of_second)])?;
    let [first, second] = &places[..] else { return Err(CommandError::usage("a comparison needs two places")) };
    let own = |place: &VerbPlace| match place.endpoint() {
        Some(_) => Location::Local(place.name().into_bytes()),
        None => place.location().clone(),
    };
    let of_ends = options::credentials(flags, &[own(first)], &own(second))?;
    let end = |place: &VerbPlace, own| {
        let credential = place.credential().unwrap_or(own);
        Ok::<_, CommandError>(EndOptions { reach: reach(flags)?, credential, ..EndOptions::default() })
    };
    let compare = match (flags.has(&CHECKSUM), flags.has(&SIZE_ONLY)) {
        (true, _) => Compare::Content,
        (_, true) => Compare::Size,
        _ => Compare::SizeAndTime,
    };
    let default = CopyOptions::default();
    let mut options = CopyOptions {
        source: end(first, of_ends.0)?,
        destination: end(second, of_ends.1)?,
        filters: filters::filters(flags, false)?,
        retries: flags.get(&RETRIES)?.unwrap_or(default.retries),
        compare,
        ..default
    };
    let compared = option_flags::asked_comparison(flags)?;
    compared.apply(Time::new(clock_seconds(), 0), &mut options).map_err(option_flags::refused_digests)?;
    let list = flags.get(&FILES_FROM)?.map(|path| read_list(&path, end_of_entries(flags))).transpose()?;
    options.only = list.map(|list| list.paths);
    let request =
        CopyRequest { sources: vec![first.location().clone()], destination: second.location().clone(), options };
    Ok((places, request))
}

/// What is to be copied, so that two places become alike.
#[derive(Default)]
struct RepairList {
    paths: Vec<Vec<u8>>,
    bytes: usize,
    /// Items that differ in what no copy of them alone makes the same.
    links: u64,
    /// The directory itself that was named differs: no path below it names that.
    has_top: bool,
    /// More than can be repaired at once.
    cut: u64,
}

impl RepairList {
    fn add(&mut self, path: &[u8], facts: &CheckedFacts, differs: CheckDifferences) {
        if path.is_empty() && facts.state.kind == ItemKind::Directory {
            self.has_top = true;
            return;
        }
        if differs == (CheckDifferences { links: true, ..CheckDifferences::default() }) {
            self.links += 1;
            return;
        }
        let is_full = self.paths.len() >= limits::SELECTED_PATHS || self.bytes + path.len() > limits::SELECTED_BYTES;
        if self.cut > 0 || is_full {
            self.cut += 1;
            return;
        }
        self.bytes += path.len();
        self.paths.push(path.to_vec());
    }

    /// Items that differ and are not copied.
    fn left_out(&self) -> u64 {
        self.links + self.cut + u64::from(self.has_top)
    }
}

/// A comparison that is being told.
struct Checking<'a> {
    run: VerbRun<'a>,
    form: Form,
    signing: CheckSigning,
    places: &'a [VerbPlace],
    request: &'a CopyRequest,
    names_same: bool,
    /// What is to be repaired, where that was asked for.
    wanted: Option<RepairList>,
    /// The source is one file.
    is_file: bool,
    began: Instant,
    /// When progress was told.
    told: Instant,
}

impl Checking<'_> {
    fn compare(&mut self, request: &CopyRequest) -> ComparisonReport {
        let (is_quiet, is_json) = (self.run.quiet || self.run.json, self.run.json);
        let sent = OnceLock::new();
        let context = super::context::context();
        let observer = |event: Event| match event {
            Event::Note(_) | Event::SessionLost { .. } if !is_quiet => {
                human::event(&event, 0).iter().for_each(|line| say(line));
            }
            Event::ProgramSent(program) if is_json => sent.set(program).unwrap_or_default(),
            _ => {}
        };
        let report = check(request, &context, &observer, &mut |event| match event {
            CheckEvent::Found(path, finding, _) => self.found(path, finding),
            CheckEvent::Progress(counts) => self.progress(&counts),
        });
        if let Some(program) = sent.get() {
            self.run.json("program", objects::program(program));
        }
        report
    }

    /// What was found; what ended a comparison early is told with what was found until then.
    fn passed(&mut self, report: ComparisonReport) -> Result<CheckCounts, CommandError> {
        match report.error {
            None => Ok(report.counts),
            Some(error) => {
                self.summary("not finished: ", &report.counts);
                let place = &self.places[usize::from(error.side == Side::Destination)];
                Err(place.tell(error).into())
            }
        }
    }

    /// How a path is called: the top by what was typed.
    fn name(&self, path: &[u8]) -> Vec<u8> {
        if path.is_empty() { self.places[0].shown().to_vec() } else { path.to_vec() }
    }

    /// Writes the receipt that was asked for, of what was found until now.
    fn sign(&mut self, report: &ComparisonReport) -> Result<(), CommandError> {
        let places = [&self.places[0], &self.places[1]].map(VerbPlace::name);
        let signing = std::mem::take(&mut self.signing);
        let Some((line, fields)) = signing.finish(places, report, &self.request.options)? else { return Ok(()) };
        match self.form {
            Form::Json => self.run.json("receipt", fields),
            _ if !self.run.quiet => say(&line),
            _ => {}
        }
        Ok(())
    }

    fn found(&mut self, path: &[u8], finding: &CheckFinding) {
        let name = self.name(path);
        self.signing.found(path, split_name(bare(self.places[1].shown())).1, finding);
        match finding {
            CheckFinding::Same(facts) => {
                self.run.done += 1;
                self.is_file |= path.is_empty() && facts[0].state.kind == ItemKind::File;
                if self.names_same {
                    self.line('=', &name, [Some(&facts[0]), Some(&facts[1])], CheckDifferences::default());
                }
            }
            CheckFinding::OnlySource(facts) => {
                self.run.done += 1;
                self.wanted
                    .as_mut()
                    .into_iter()
                    .for_each(|wanted| wanted.add(path, facts, CheckDifferences::default()));
                self.line('+', &name, [Some(facts), None], CheckDifferences::default());
            }
            CheckFinding::OnlyDestination(facts) => {
                self.run.done += 1;
                self.line('-', &name, [None, Some(facts)], CheckDifferences::default());
            }
            CheckFinding::Differs(facts, differs) => {
                self.run.done += 1;
                self.is_file |= path.is_empty() && facts[0].state.kind == ItemKind::File;
                self.wanted.as_mut().into_iter().for_each(|wanted| wanted.add(path, &facts[0], *differs));
                self.line('*', &name, [Some(&facts[0]), Some(&facts[1])], *differs);
            }
            CheckFinding::Failed(why) => self.failed(&name, why.clone()),
        }
    }

    fn progress(&mut self, counts: &CheckCounts) {
        if self.run.quiet || self.run.json || self.told.elapsed() < PROGRESS {
            return;
        }
        self.told = Instant::now();
        let (items, size) = (format::count(compared(counts)), format::size(counts.bytes));
        let differences = format::counted(counts.differences(), "difference", "differences");
        say(&format!("{} compared items: {items}, {size}; {differences}", format::clock(self.began.elapsed())));
    }

    fn summary(&self, before: &str, counts: &CheckCounts) {
        if self.run.quiet || self.run.json {
            return;
        }
        let items = format::counted(compared(counts), "item", "items");
        let (size, time) = (format::size(counts.bytes), format::duration(self.began.elapsed()));
        say(&format!("{before}compared {items}, {size} of files that both have, in {time}: {}", outcome(counts)));
        let CopyOptions { kept, .. } = &self.request.options;
        let by = match self.request.options.compare {
            Compare::Content => "type, size and content (BLAKE3)",
            Compare::Size => "type and size",
            _ => "type, size and modification time",
        };
        let attributes = [
            (kept.special_bits, "mode"),
            (kept.owner, "owner"),
            (kept.group, "group"),
            (kept.acls, "ACLs"),
            (kept.has_xattrs(), "extended attributes"),
            (kept.hard_links, "hard links"),
        ];
        let attributes = attributes.into_iter().filter_map(|(is_compared, word)| is_compared.then_some(word));
        say(&format!("compared by: {}", [by].into_iter().chain(attributes).collect::<Vec<_>>().join(", ")));
        if counts.timeless > 0 {
            let files = format::counted(counts.timeless, "file", "files");
            say(&format!("not compared: the times of {files}, which one side does not have"));
        }
        if counts.untold > 0 {
            let items = format::counted(counts.untold, "item", "items");
            say(&format!("not compared: ACLs or extended attributes of {items}, which are too long or cannot be read"));
        }
        if counts.unlinked > 0 {
            let files = format::counted(counts.unlinked, "name", "names");
            say(&format!("not compared: whether {files} are of one file: too many files have several names"));
        }
    }

    /// Copies what differs, and answers with what is to be compared again.
    fn repair(&mut self, paths: Vec<Vec<u8>>) -> Result<CopyRequest, CommandError> {
        let mut request = self.request.clone();
        if !self.is_file {
            request.sources.iter_mut().for_each(|source| *source = source.contents());
            request.options.only = Some(paths);
        }
        let output = Output::open(self.repair_output(&request))?;
        let mut copy = Copy::start(request.clone(), &super::context::context());
        while let Some(event) = copy.next_event() {
            output.event(&event);
        }
        let report = copy.wait();
        output.finish(&report, None);
        match report.error {
            Some(error) => Err(error.into()),
            None => Ok(request),
        }
    }

    fn repair_output(&self, request: &CopyRequest) -> OutputOptions {
        OutputOptions {
            verbose: 0,
            quiet: self.run.quiet,
            json: self.run.json,
            log_file: None,
            manifest: None,
            receipt: None,
            failed_list: None,
            timeline: None,
            bar: BarChoice::Terminal,
            stats: PROGRESS,
            figures: false,
            lines: None,
            direction: ContentWay::default(),
            dry_run: false,
            strict: false,
            destination: CopyTarget::Place(request.destination.clone()),
        }
    }

    fn finish(self, counts: &CheckCounts, left: u64, mut more: Json) -> Result<u8, CommandError> {
        let CheckCounts { same, differing, only_source, only_destination, bytes, timeless, unlinked, untold, .. } =
            *counts;
        let fields = [
            ("same", same),
            ("different", differing),
            ("only_source", only_source),
            ("only_destination", only_destination),
            ("bytes", bytes),
            ("timeless", timeless),
            ("unlinked", unlinked),
            ("untold", untold),
        ];
        for (key, count) in fields {
            more[key] = count.into();
        }
        more["elapsed_seconds"] = self.began.elapsed().as_secs_f64().into();
        self.run.finish_with(if left > 0 { exit::DIFFERENCES } else { exit::DONE }, more)
    }
}

fn compared(counts: &CheckCounts) -> u64 {
    counts.same + counts.differences() + counts.failed
}

fn outcome(counts: &CheckCounts) -> String {
    let CheckCounts { differing, only_source, only_destination, failed, .. } = *counts;
    let parts = [
        (differing, "different"),
        (only_source, "only in A"),
        (only_destination, "only in B"),
        (failed, "could not be read"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", format::count(count)))
        .collect();
    if parts.is_empty() { "no differences".to_owned() } else { parts.join(", ") }
}
