//! Where everything goes: rsync's rule of trailing slashes, applied to what is really there.
//!
//! A source directory `dir` goes to `DST/dir`, `dir/` puts its content into `DST`. A source file goes into `DST` when
//! that is a directory, or ends in a slash, or there are several sources; else it becomes `DST`. A copy onto itself, or
//! of a directory into itself, is refused.

use std::collections::HashSet;

use carrack_core::limits;
use carrack_core::location::{Location, SyntheticKind};
use carrack_core::pace;
use carrack_core::path::{check_relative, display_bytes, join};
use carrack_core::report::{ErrorCode, Failure, ItemKind, Reason, Side};
use carrack_core::request::{Compare, CopyRequest};
use carrack_core::tuning::Tuning;
use carrack_core::unicode::fold_case;
use carrack_core::wire::control::{Ask, FileSystemKey, MarkerKey, Origin, PathFacts, Sink, SourceSpec, Tell};

use super::beside::{check_not_one, is_beside_chosen};
use super::ends::Ends;
use crate::end::{End, Inbox, Note};
use crate::error::failure;

/// Paths that fit into one question.
const INSPECTED_AT_ONCE: usize = 64;

/// What each end is to do.
#[derive(Clone)]
pub struct Plan {
    /// For the sender.
    pub sources: Vec<SourceSpec>,
    /// For the receiver: the directory that targets are relative to, or the path of a sink.
    pub directory: Vec<u8>,
    /// For the receiver: its kind of destination.
    pub sink: Sink,
    /// The target of each source, in words that can be typed.
    pub shown: Vec<String>,
    /// The destination takes bytes in order only, once: what a stream was given cannot be taken back.
    pub in_order: bool,
    /// The destination takes each file's bytes in order: they come by one stream.
    pub one_stream: bool,
    /// Sources that are directories and become one at the destination, what is in them not counted.
    pub directories: u64,
    /// Targets of sources that are files.
    pub files: Vec<Vec<u8>>,
    /// All sources are files too large for a bundle.
    pub all_offered: bool,
    /// Unit of sending, in bytes.
    pub block_bytes: u32,
    /// What the receiver's marker is found by when the same is copied again; `None` where nothing can be taken up.
    pub marker: Option<MarkerKey>,
    /// The file systems of the first source and of the destination, where they tell.
    pub file_systems: [Option<FileSystemKey>; 2],
}

impl Plan {
    /// Whether names of two sources would become one where upper and lower case are one.
    pub fn may_clash(&self) -> bool {
        let mut folded: Vec<_> = self.sources.iter().map(|source| fold_case(&source.target)).collect();
        folded.sort_unstable();
        folded.windows(2).any(|two| two[0] == two[1])
    }

    /// What there is only once: a session that may have used it up cannot be followed by another.
    pub fn single_use(&self) -> Option<&'static str> {
        if self.sources.iter().any(|source| source.origin == Origin::Stdin) {
            return Some("standard input cannot be read twice");
        }
        self.in_order.then_some("output to a stream, FIFO or device cannot be undone")
    }

    /// The sources before this one that may have the same names, and itself; none where there are no such.
    pub fn overlapping(&self, number: usize) -> Vec<SourceSpec> {
        let (earlier, own) = (&self.sources[..number], &self.sources[number]);
        // Names differ, unless a directory's content goes there.
        let may = |source: &&SourceSpec| own.target.is_empty() || source.target.is_empty();
        let mut found: Vec<SourceSpec> = earlier.iter().filter(may).take(limits::LISTED_SOURCES - 1).cloned().collect();
        if !found.is_empty() {
            found.push(own.clone());
        }
        found
    }

    /// What the receiver may take: the targets; nothing when the content of a directory goes straight into the
    /// destination, whose names only the sender knows.
    pub fn targets(&self) -> Vec<Vec<u8>> {
        let named = self.sink == Sink::Files && self.sources.iter().all(|source| !source.target.is_empty());
        if named { self.sources.iter().map(|source| source.target.clone()).collect() } else { Vec::new() }
    }
}

/// Looks at both ends and settles the plan.
///
/// # Errors
/// When a source is missing or unreadable, or the destination does not fit.
pub fn resolve(request: &CopyRequest, ends: &mut Ends, inbox: &mut Inbox, note: &Note) -> Result<Plan, Failure> {
    let source_facts = inspect(&request.sources, &mut ends.source, inbox, note)?;
    let destination = std::slice::from_ref(&request.destination);
    let there = inspect(destination, &mut ends.destination, inbox, note)?.into_iter().next().flatten();
    for (location, facts) in request.sources.iter().zip(&source_facts) {
        if let Some(facts) = facts.as_ref().filter(|facts| facts.kind.is_none()) {
            let why = match facts.inode {
                0 => "no such file or directory",
                _ => "is a symbolic link to something that does not exist",
            };
            return Err(failure(ErrorCode::NotFound, Side::Source, why).at_end(location.to_string()));
        }
        if facts.as_ref().is_some_and(|facts| facts.kind == Some(ItemKind::Special)) {
            let special = failure(ErrorCode::SpecialFile, Side::Source, "is a FIFO, socket or device");
            return Err(special.at_end(location.to_string()).for_reason(Reason::SpecialNamed));
        }
    }
    let Some(there) = there else {
        return to_stream(request, &ends.tuning, &source_facts, stream_sink(&request.destination), Vec::new());
    };
    if there.kind == Some(ItemKind::Special) {
        let path = request.destination.path().unwrap_or_default().to_vec();
        // What is written to /dev/null is gone in any order; any other device or FIFO gets it in order.
        let null = b"/dev/null";
        let sink = if path == null || there.resolved == null { Sink::Null } else { Sink::Device };
        return to_stream(request, &ends.tuning, &source_facts, sink, path);
    }
    let mut plan = to_files(request, &ends.tuning, &source_facts, &there)?;
    plan.marker = marker(request, &ends.source, &source_facts, &plan);
    let first = source_facts.iter().flatten().next();
    plan.file_systems = [first, Some(&there)].map(|facts| facts?.file_system);
    if ends.source.shares_kernel(&ends.destination) {
        check_not_itself(request, ends, (inbox, note), &source_facts, &there, &plan)?;
    } else if request.options.remove_sources || request.options.moves {
        let targets: Vec<_> = plan.sources.iter().map(|source| target_of(request, &there, &plan, source)).collect();
        let at_targets = standing(&targets, &mut ends.destination, inbox, note)?;
        for ((location, facts), at_target) in request.sources.iter().zip(&source_facts).zip(&at_targets) {
            let found = facts.as_ref().map_or(Ok(()), |facts| check_not_one(&request.options, facts, at_target));
            found.map_err(|why| why.at_end(location.to_string()))?;
        }
    }
    Ok(plan)
}

/// Names what is copied, and where from: the same command gives the same again. Where it goes to is left out but for
/// the targets, because a marker lies there, and is looked for nowhere else.
fn marker(request: &CopyRequest, source: &End, facts: &[Option<PathFacts>], plan: &Plan) -> Option<MarkerKey> {
    if plan.single_use().is_some() {
        return None;
    }
    if request.options.marker_key.is_some() {
        return request.options.marker_key;
    }
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    // A path here is another on another host, though nobody names either.
    add(&source.machine());
    for ((location, facts), source) in request.sources.iter().zip(facts).zip(&plan.sources) {
        match facts {
            Some(facts) => add(&facts.resolved),
            None => add(location.to_string().as_bytes()),
        }
        add(&source.target);
    }
    hasher.finalize().as_bytes().first_chunk().copied()
}

fn stream_sink(destination: &Location) -> Sink {
    match destination {
        Location::Stdio => Sink::Stdout,
        Location::Synthetic { what: SyntheticKind::Memory, .. } => Sink::Memory,
        _ => Sink::Null,
    }
}

/// Asks what [`resolve`] will want to know first.
///
/// # Errors
/// When a connection has ended.
pub fn ask_early(request: &CopyRequest, ends: &mut Ends) -> Result<(), Failure> {
    let destination = std::slice::from_ref(&request.destination);
    for (locations, end) in [(&request.sources[..], &mut ends.source), (destination, &mut ends.destination)] {
        let paths = paths(locations);
        if let Some(portion) = paths.chunks(INSPECTED_AT_ONCE).next() {
            end.ask_early(Ask::Inspect(portion.to_vec()))?;
        }
    }
    Ok(())
}

fn paths(locations: &[Location]) -> Vec<Vec<u8>> {
    locations.iter().filter_map(|location| location.path().map(<[u8]>::to_vec)).collect()
}

/// Asks an end what the paths of locations are; `None` for locations without one.
pub(super) fn inspect(
    locations: &[Location],
    end: &mut End,
    inbox: &mut Inbox,
    note: &Note,
) -> Result<Vec<Option<PathFacts>>, Failure> {
    let paths = paths(locations);
    let mut facts = Vec::with_capacity(paths.len());
    for portion in paths.chunks(INSPECTED_AT_ONCE) {
        match end.request(inbox, note, Ask::Inspect(portion.to_vec()))? {
            Tell::Inspected(inspected) if inspected.len() == portion.len() => facts.extend(inspected),
            _ => return Err(end.unexpected()),
        }
    }
    if let Some(refusal) = facts.iter().find_map(|facts| facts.failure.clone()) {
        return Err(end.placed(refusal));
    }
    let mut facts = facts.into_iter();
    Ok(locations.iter().map(|location| location.path().and_then(|_| facts.next())).collect())
}

fn block_bytes(request: &CopyRequest, tuning: &Tuning, facts: &[Option<PathFacts>]) -> u32 {
    let size = |facts: &PathFacts| (facts.kind == Some(ItemKind::File)).then_some(facts.size);
    let sizes = facts.iter().map(|facts| facts.as_ref().and_then(size));
    let fitting = pace::block_bytes(tuning, sizes);
    // Of what has changed, a block is the least that is sent.
    let is_sync = request.options.compare != Compare::Nothing;
    let fitting = if is_sync { fitting.min(tuning.short_block_bytes) } else { fitting };
    request.options.block_bytes.unwrap_or(fitting)
}

/// A sink, or a stream of bytes in order.
fn to_stream(
    request: &CopyRequest,
    tuning: &Tuning,
    facts: &[Option<PathFacts>],
    sink: Sink,
    path: Vec<u8>,
) -> Result<Plan, Failure> {
    let in_order = !matches!(sink, Sink::Null | Sink::Memory);
    let directories = facts.iter().flatten().any(|facts| facts.kind == Some(ItemKind::Directory));
    if in_order && (request.sources.len() != 1 || directories) {
        let message = format!("{}: takes the bytes of one file, not of several or of a directory", request.destination);
        return Err(failure(ErrorCode::Usage, Side::Destination, message));
    }
    let sources = request.sources.iter().zip(facts).map(|(location, facts)| {
        let target = if is_contents(location, facts.as_ref()) { Vec::new() } else { name_of(location) };
        source(location, target)
    });
    let shown = request.sources.iter().map(|_| request.destination.to_string()).collect();
    Ok(Plan {
        sources: sources.collect(),
        directory: path,
        sink,
        shown,
        in_order,
        one_stream: in_order,
        directories: 0,
        files: Vec::new(),
        all_offered: false,
        block_bytes: block_bytes(request, tuning, facts),
        marker: None,
        file_systems: [None; 2],
    })
}

fn to_files(
    request: &CopyRequest,
    tuning: &Tuning,
    facts: &[Option<PathFacts>],
    there: &PathFacts,
) -> Result<Plan, Failure> {
    let typed = request.destination.path().unwrap_or_default();
    let is_directory = there.kind == Some(ItemKind::Directory);
    let source_directory = facts.iter().flatten().any(|facts| facts.kind == Some(ItemKind::Directory));
    let into =
        is_directory || typed.ends_with(b"/") || typed.is_empty() || request.sources.len() > 1 || source_directory;
    if into && there.kind == Some(ItemKind::File) {
        let what = if source_directory { "a directory" } else { "several sources, or a path that ends in a slash" };
        let message = format!("{}: is a file, and {what} needs a directory there", request.destination);
        return Err(failure(ErrorCode::NotADirectory, Side::Destination, message));
    }
    let mut sources = Vec::new();
    let mut shown = Vec::new();
    for (location, facts) in request.sources.iter().zip(facts) {
        let target = match (into, is_contents(location, facts.as_ref())) {
            (true, true) => Vec::new(),
            (true, false) => checked_name(name_of(location), location)?,
            (false, _) => checked_name(last_name(typed), &request.destination)?,
        };
        let directory = if into { typed.to_vec() } else { parent_of(typed) };
        shown.push(request.destination.with_path(join_typed(&directory, &target)).to_string());
        sources.push(source(location, target));
    }
    let twice = sources.iter().enumerate().find(|(index, source)| {
        !source.target.is_empty() && sources[..*index].iter().any(|other| other.target == source.target)
    });
    if let Some((_, source)) = twice {
        let message = format!("two sources would both become {}", display_bytes(&source.target));
        return Err(failure(ErrorCode::Usage, Side::Command, message).for_reason(Reason::SameNames));
    }
    check_once(&request.sources, facts, &sources)?;
    let directory = if into { typed.to_vec() } else { parent_of(typed) };
    let named = sources.iter().zip(facts).filter(|(source, _)| !source.target.is_empty());
    let directories =
        named.filter_map(|(_, facts)| facts.as_ref()).filter(|facts| facts.kind == Some(ItemKind::Directory));
    let directories = directories.count() as u64;
    let files = sources
        .iter()
        .zip(facts)
        .filter(|(_, facts)| facts.as_ref().is_some_and(|facts| facts.kind == Some(ItemKind::File)));
    let files = files.map(|(source, _)| source.target.clone()).collect();
    let offered = |facts: &PathFacts| facts.kind == Some(ItemKind::File) && facts.size > tuning.bundled_file_bytes_max;
    let is_offered = |facts: &Option<PathFacts>| facts.as_ref().is_some_and(offered);
    let block_bytes = block_bytes(request, tuning, facts);
    Ok(Plan {
        sources,
        directory,
        sink: Sink::Files,
        shown,
        in_order: false,
        one_stream: false,
        directories,
        files,
        all_offered: facts.iter().all(is_offered),
        block_bytes,
        marker: None,
        file_systems: [None; 2],
    })
}

/// Refuses a directory whose content is named twice.
fn check_once(locations: &[Location], facts: &[Option<PathFacts>], sources: &[SourceSpec]) -> Result<(), Failure> {
    let all = || locations.iter().zip(facts).zip(sources).filter(|(_, source)| source.target.is_empty());
    let identity = |facts: &Option<PathFacts>| facts.as_ref().map(|facts| (facts.device, facts.inode));
    let known = |identity: &(u64, u64)| *identity != (0, 0);
    let mut seen = HashSet::new();
    let again =
        all().find(|((_, facts), _)| identity(facts).filter(known).is_some_and(|identity| !seen.insert(identity)));
    again.map_or(Ok(()), |((location, _), _)| {
        let twice = failure(ErrorCode::Usage, Side::Command, "is named twice as a source");
        Err(twice.at_end(location.to_string()).for_reason(Reason::SourceTwice))
    })
}

fn source(location: &Location, target: Vec<u8>) -> SourceSpec {
    let origin = match location {
        Location::Stdio => Origin::Stdin,
        Location::Zero(size) => Origin::Zeros(*size),
        Location::Random(size) => Origin::Random(*size),
        Location::Synthetic { what: SyntheticKind::Zeros(size), .. } => Origin::Zeros(*size),
        Location::Synthetic { what: SyntheticKind::Random(size), .. } => Origin::Random(*size),
        other => Origin::Path(other.path().unwrap_or_default().to_vec()),
    };
    SourceSpec { origin, target }
}

/// Whether a directory's content is meant, not the directory: it ends in a slash, or has no name of its own.
fn is_contents(location: &Location, facts: Option<&PathFacts>) -> bool {
    let path = location.path().unwrap_or_default();
    let nameless = matches!(last_name(path).as_slice(), b"" | b"." | b".." | b"~");
    facts.is_some_and(|facts| facts.kind == Some(ItemKind::Directory)) && (path.ends_with(b"/") || nameless)
}

fn name_of(location: &Location) -> Vec<u8> {
    match location {
        Location::Stdio => b"stdin".to_vec(),
        Location::Zero(_) | Location::Synthetic { what: SyntheticKind::Zeros(_), .. } => b"zero".to_vec(),
        Location::Random(_) | Location::Synthetic { .. } => b"random".to_vec(),
        other => last_name(other.path().unwrap_or_default()),
    }
}

fn checked_name(name: Vec<u8>, location: &Location) -> Result<Vec<u8>, Failure> {
    check_relative(&name).map_err(|error| {
        let why = format!("gives no name to copy to: {error}");
        failure(ErrorCode::Usage, Side::Command, why).at_end(location.to_string())
    })?;
    Ok(name)
}

fn last_name(path: &[u8]) -> Vec<u8> {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |index| index + 1);
    let start = path[..end].iter().rposition(|&byte| byte == b'/').map_or(0, |index| index + 1);
    path[start..end].to_vec()
}

/// The directory that holds a path; `.` for a bare name.
fn parent_of(path: &[u8]) -> Vec<u8> {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(0) => b"/".to_vec(),
        Some(slash) => path[..slash].to_vec(),
        None => b".".to_vec(),
    }
}

/// For showing: without a `.` that nobody typed.
fn join_typed(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match (directory, name) {
        (b".", name) if !name.is_empty() => name.to_vec(),
        (directory, b"") => directory.to_vec(),
        (directory, name) => join(directory, name),
    }
}

/// Where a source goes.
fn target_of(request: &CopyRequest, there: &PathFacts, plan: &Plan, source: &SourceSpec) -> Vec<u8> {
    let becomes_destination = plan.directory != request.destination.path().unwrap_or_default();
    match becomes_destination {
        true => there.resolved.clone(),
        false => join_typed(&there.resolved, &source.target),
    }
}

/// Refuses to copy something onto or into itself, of ends on one host, also if one of them sees other mounts (a
/// container, a service with a file system of its own).
fn check_not_itself(
    request: &CopyRequest,
    ends: &mut Ends,
    (inbox, note): (&mut Inbox, &Note),
    facts: &[Option<PathFacts>],
    there: &PathFacts,
    plan: &Plan,
) -> Result<(), Failure> {
    // A node tells paths below its root, wherever that is: of two ends with other roots, what a directory
    // is says more than its path.
    let same_paths = ends.source.shares_host(&ends.destination) && ends.source.has_paths_of(&ends.destination);
    let slashes = there.resolved.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/').map(|(index, _)| index);
    let above = slashes.map(|index| there.resolved[..index].to_vec());
    let mut asked = [b"/".to_vec()].into_iter().chain(above).chain([there.resolved.clone()]).collect::<Vec<_>>();
    let steps = asked.len();
    let target_of = |source| target_of(request, there, plan, source);
    let targets = plan.sources.iter().map(target_of).collect::<Vec<_>>();
    // In one question: of a node far away each costs a round trip.
    asked.extend_from_slice(&targets);
    let mut way = standing(&asked, &mut ends.destination, inbox, note)?;
    let at_targets = way.split_off(steps);
    // The nearest directory that is there: the destination lies in it, and in all that it lies in.
    let nearest = way.iter().rfind(|one| one.kind == Some(ItemKind::Directory));
    let all = request.sources.iter().zip(&plan.sources).zip(facts).zip(targets).zip(at_targets);
    for ((((location, source), facts), target), at_target) in all {
        let Some(facts) = facts else { continue };
        // Of a source that holds the target, what was chosen may not: then nothing is copied into itself.
        if same_paths && is_beside_chosen(&request.options, source, &facts.resolved, &target) {
            continue;
        }
        check_not_one(&request.options, facts, &at_target).map_err(|why| why.at_end(location.to_string()))?;
        // By what it is, too: the same directory may be mounted in several places.
        let below = same_paths && is_below(&target, &facts.resolved);
        let through_mounts = nearest.into_iter().chain([&at_target]).any(|one| lies_in(one, facts));
        let met = below || is_same(facts, &at_target) || through_mounts || way.iter().any(|one| is_same(facts, one));
        let same_file = facts.kind == Some(ItemKind::File) && met;
        let inside = facts.kind == Some(ItemKind::Directory) && met;
        let same_path = same_paths && target == facts.resolved;
        if same_file || same_path || inside {
            let relation = if inside && !same_path { "lies inside" } else { "is" };
            let why = format!("the target {} {relation} the source; nothing was copied", display_bytes(&target));
            return Err(failure(ErrorCode::SameFile, Side::Command, why).at_end(location.to_string()));
        }
        let holds = (same_paths && is_below(&facts.resolved, &target)) || lies_in(facts, &at_target);
        let harmed = match request.options.delete {
            Some(_) => Some("it would be deleted"),
            None if request.options.keep_directory_links => Some("a link may lead to it"),
            None => None,
        };
        if let Some(harmed) = harmed.filter(|_| holds) {
            let shown = display_bytes(&target);
            let why = format!(
                "the source lies inside the target {shown}, where {harmed}; nothing was copied: choose a target beside it"
            );
            return Err(failure(ErrorCode::SameFile, Side::Command, why).at_end(location.to_string()));
        }
    }
    Ok(())
}

/// What stands at paths of an end; of what may not be looked at nothing is known.
fn standing(paths: &[Vec<u8>], end: &mut End, inbox: &mut Inbox, note: &Note) -> Result<Vec<PathFacts>, Failure> {
    let mut found = Vec::with_capacity(paths.len());
    for portion in paths.chunks(INSPECTED_AT_ONCE) {
        let known = found.len() + portion.len();
        let answer = end.request_or_refusal(inbox, note, Ask::Inspect(portion.to_vec()))?;
        if let Ok(Tell::Inspected(inspected)) = answer {
            found.extend(inspected.into_iter().take(portion.len()));
        }
        found.resize(known, PathFacts::default());
    }
    Ok(found)
}

/// Whether two are one file, or one directory, of one host.
fn is_same(one: &PathFacts, other: &PathFacts) -> bool {
    one.inode != 0 && one.kind == other.kind && (one.device, one.inode) == (other.device, other.inode)
}

/// Whether a directory lies in another, or in what is mounted below that, by whichever mounts their paths lead.
fn lies_in(one: &PathFacts, other: &PathFacts) -> bool {
    one.lies_in.iter().any(|above| other.holds.contains(above))
}

fn is_below(path: &[u8], directory: &[u8]) -> bool {
    let directory = directory.strip_suffix(b"/").unwrap_or(directory);
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(kind: ItemKind) -> PathFacts {
        PathFacts { kind: Some(kind), ..PathFacts::default() }
    }

    fn local(path: &str) -> Location {
        Location::Local(path.as_bytes().to_vec())
    }

    /// Source, what it is, destination, what is there; the directory and target expected.
    #[test]
    fn slashes_mean_what_they_mean_to_rsync() {
        use ItemKind::{Directory, File};
        let cases = [
            ("d", Directory, "new", None, "new", "d"),
            ("d/", Directory, "new", None, "new", ""),
            ("d", Directory, "old", Some(Directory), "old", "d"),
            ("d/", Directory, "old", Some(Directory), "old", ""),
            ("a/d", Directory, "old/", Some(Directory), "old/", "d"),
            (".", Directory, "old", Some(Directory), "old", ""),
            ("a/..", Directory, "old", Some(Directory), "old", ""),
            ("/", Directory, "old", Some(Directory), "old", ""),
            ("f", File, "new", None, ".", "new"),
            ("f", File, "new/", None, "new/", "f"),
            ("f", File, "old", Some(File), ".", "old"),
            ("f", File, "old", Some(Directory), "old", "f"),
            ("a/f", File, "/x/new", None, "/x", "new"),
            ("f", File, "/new", None, "/", "new"),
            ("f", File, "", Some(Directory), "", "f"),
        ];
        for (source, kind, destination, there, directory, target) in cases {
            let request = CopyRequest {
                sources: vec![local(source)],
                destination: local(destination),
                options: Default::default(),
            };
            let there = there.map_or_else(PathFacts::default, facts);
            let plan = to_files(&request, &Tuning::DEFAULT, &[Some(facts(kind))], &there)
                .unwrap_or_else(|failure| panic!("{source} {destination}: {failure:?}"));
            assert_eq!(
                (plan.directory.as_slice(), plan.sources[0].target.as_slice()),
                (directory.as_bytes(), target.as_bytes()),
                "{source} -> {destination}"
            );
        }
    }

    #[test]
    fn request_that_cannot_be_is_refused() {
        let one = |source: &[(&str, ItemKind)], destination: &str, there: Option<ItemKind>| {
            let sources = source.iter().map(|(path, _)| local(path)).collect();
            let request = CopyRequest { sources, destination: local(destination), options: Default::default() };
            let kinds: Vec<_> = source.iter().map(|(_, kind)| Some(facts(*kind))).collect();
            to_files(&request, &Tuning::DEFAULT, &kinds, &there.map_or_else(PathFacts::default, facts))
                .err()
                .map(|failure| failure.code)
        };
        use ItemKind::{Directory, File};
        assert_eq!(one(&[("d", Directory)], "f", Some(File)), Some(ErrorCode::NotADirectory));
        assert_eq!(one(&[("a", File), ("b", File)], "f", Some(File)), Some(ErrorCode::NotADirectory));
        assert_eq!(one(&[("x/a", File), ("y/a", File)], "d", Some(Directory)), Some(ErrorCode::Usage));
        assert_eq!(one(&[("a", File)], "f/", Some(File)), Some(ErrorCode::NotADirectory));
        assert!(
            is_below(b"/a/b", b"/a") && is_below(b"/a", b"/a") && is_below(b"/a", b"/") && !is_below(b"/ab", b"/a")
        );
    }
}
