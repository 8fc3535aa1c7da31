//! The server of a crowd: a node of Carrack's, or another one that programs speak to. What its clients fetch is put
//! there before, and what they sent is looked at afterwards.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_core::location::Location;
use carrack_core::request::{Digests, EndOptions};
use carrack_engine::Context;
use carrack_engine::files::Files;

use super::count::SeenFile;
use crate::crowd::order::set_name;
use crate::crowd::part::{make, path_of};
use crate::crowd::program;
use crate::crowd::told::CarryOutcome;
use crate::far_scratch::{FarScratch, LostHosts, below};

/// How long another program may take for one file that is no part of the crowd.
const PATIENCE: Duration = Duration::from_secs(3600);

/// How another server is spoken to.
#[derive(Clone, Debug)]
pub struct OtherServer {
    /// What `{node}` stands for.
    pub node: String,
    /// A line of shell that sends a file.
    pub put: Option<String>,
    /// One that fetches a file.
    pub get: Option<String>,
    /// Where what it got can be seen: a directory.
    pub check: Option<Location>,
}

/// The server.
pub enum LoadServer {
    /// A node, and the directory of the crowd there.
    Node { scratch: Box<FarScratch>, directory: Location, end: EndOptions },
    /// Another one.
    Other { server: OtherServer, end: EndOptions },
}

impl LoadServer {
    /// Makes the directory of the crowd at a node.
    ///
    /// # Errors
    /// Those of the place.
    pub fn at_node(
        place: &Location,
        end: &EndOptions,
        context: &Context,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, Failure> {
        let scratch = FarScratch::create(place, "load", 0, end, context, &LostHosts::default(), note)?;
        let file = scratch.file("x");
        let path = file.path().unwrap_or_default();
        let directory = file.with_path(path[..path.len().saturating_sub(2)].to_vec());
        Ok(Self::Node { scratch: Box::new(scratch), directory, end: end.clone() })
    }

    /// Puts the files there that clients fetch; the BLAKE3 of each.
    ///
    /// # Errors
    /// What kept one from being there.
    pub fn fill(
        &self,
        count: u32,
        size: u64,
        prefix: &str,
        scratch: &FarScratch,
        context: &Context,
    ) -> Result<Vec<[u8; 32]>, Failure> {
        let one = |number: u32| match self {
            Self::Node { scratch, end, .. } => {
                make(size, scratch.file(&set_name(prefix, number)), end.clone(), context)
            }
            Self::Other { server, .. } => {
                let local = scratch.file("set");
                let digest = make(size, local.clone(), EndOptions::default(), context)?;
                let path = path_of(scratch).join("set");
                run(server.put.as_deref(), &path, &server.node, &set_name(prefix, number), context)?;
                Ok(digest)
            }
        };
        (0..count).map(one).collect()
    }

    /// What is there under these names.
    ///
    /// # Errors
    /// When it cannot be looked at as a whole.
    pub fn look(
        &self,
        names: &[String],
        scratch: &FarScratch,
        context: &Context,
    ) -> Result<BTreeMap<String, SeenFile>, Failure> {
        match self {
            Self::Node { directory, end, .. } => look_below(directory, end, names, context),
            Self::Other { server: OtherServer { check: Some(check), .. }, end } => look_at(check, end, names, context),
            Self::Other { server, .. } => fetch(server, names, scratch, context),
        }
    }

    /// Removes what the crowd has left at another server, where it can be seen; whether anything may be left.
    pub fn clear(&self, names: &[String], context: &Context) -> bool {
        let Self::Other { server, end } = self else { return false };
        let Some(check) = &server.check else { return true };
        let Ok(mut files) = Files::open(check, end, context, &|_| {}) else { return true };
        let mut left = false;
        for name in names {
            let path = below(check, name.as_bytes());
            match files.remove(path.path().unwrap_or_default(), false, &mut |_| {}) {
                Err(why) if why.code != ErrorCode::NotFound => left = true,
                _ => {}
            }
        }
        left
    }
}

fn seen(result: Result<carrack_core::report::FileDigests, Failure>, size: u64) -> SeenFile {
    match result {
        Ok(digests) => SeenFile::File((size, digests.blake3.unwrap_or_default())),
        Err(why) if why.code == ErrorCode::NotFound => SeenFile::Nothing,
        Err(why) => SeenFile::Unreadable(why.to_string()),
    }
}

/// Everything in a directory of the crowd's own, in one go.
fn look_below(
    directory: &Location,
    end: &EndOptions,
    names: &[String],
    context: &Context,
) -> Result<BTreeMap<String, SeenFile>, Failure> {
    let mut found: BTreeMap<String, SeenFile> = names.iter().map(|name| (name.clone(), SeenFile::Nothing)).collect();
    let mut files = Files::open(directory, end, context, &|_| {})?;
    files.sum(directory.path().unwrap_or_default(), Digests::BLAKE3, &mut |entry| {
        if let Some(known) = std::str::from_utf8(&entry.path).ok().and_then(|name| found.get_mut(name)) {
            *known = seen(entry.result, entry.size);
        }
    })?;
    Ok(found)
}

/// Each file by itself, in a directory that has others, too.
fn look_at(
    directory: &Location,
    end: &EndOptions,
    names: &[String],
    context: &Context,
) -> Result<BTreeMap<String, SeenFile>, Failure> {
    let mut files = Files::open(directory, end, context, &|_| {})?;
    let mut found = BTreeMap::new();
    for name in names {
        context.stop.check()?;
        let path = below(directory, name.as_bytes());
        let mut one = SeenFile::Nothing;
        let summed = files.sum(path.path().unwrap_or_default(), Digests::BLAKE3, &mut |entry| {
            one = seen(entry.result, entry.size);
        });
        match summed {
            Ok(()) => {}
            Err(why) if why.code == ErrorCode::NotFound => one = SeenFile::Nothing,
            Err(why) if one == SeenFile::Nothing => one = SeenFile::Unreadable(why.to_string()),
            Err(_) => {}
        }
        found.insert(name.clone(), one);
    }
    Ok(found)
}

/// Fetches each file by the program itself: what comes back is what is there.
fn fetch(
    server: &OtherServer,
    names: &[String],
    scratch: &FarScratch,
    context: &Context,
) -> Result<BTreeMap<String, SeenFile>, Failure> {
    let local = scratch.file("back");
    let path = path_of(scratch).join("back");
    let mut found = BTreeMap::new();
    for name in names {
        context.stop.check()?;
        let fetched = run(server.get.as_deref(), &path, &server.node, name, context);
        let one = look_at(&path_location(scratch), &EndOptions::default(), &["back".to_owned()], context)?;
        let one = match (fetched, one.into_values().next().unwrap_or(SeenFile::Nothing)) {
            // What a program has left that failed is what it could get of the file.
            (_, SeenFile::File(content)) => SeenFile::File(content),
            (_, other) => other,
        };
        let mut files = Files::open(&local, &EndOptions::default(), context, &|_| {})?;
        let _ = files.remove(local.path().unwrap_or_default(), false, &mut |_| {});
        found.insert(name.clone(), one);
    }
    Ok(found)
}

fn path_location(scratch: &FarScratch) -> Location {
    Location::Local(path_of(scratch).into_os_string().into_encoded_bytes())
}

/// Runs a line for one file, which must go well.
fn run(line: Option<&str>, local: &Path, node: &str, name: &str, context: &Context) -> Result<(), Failure> {
    let failure = |why: String| Failure::new(ErrorCode::Other, Side::Destination, why);
    let line = line.ok_or_else(|| failure("there is no line for that way".to_owned()))?;
    let line = program::expand(line, local, node, name);
    let attempt = program::run(&line, Instant::now() + PATIENCE, &context.stop);
    context.stop.check()?;
    match attempt.outcome {
        CarryOutcome::Done => Ok(()),
        _ => Err(failure(format!("{name}: {}", attempt.why))),
    }
}
